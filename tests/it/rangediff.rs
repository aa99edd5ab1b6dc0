//! Two versions of a series against `git range-diff`, on random histories and on cases made for the purpose.
//!
//! Hides how histories are made; the oracle is the installed git.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use reroll::error::{Exit, exit_of};
use reroll::exec::{End, Output, Task};
use reroll::rangediff::{
    Authors, By, Detail, Kind, Options, Pair, Patch, as_text, compare, cost, for_terminal, of_mbox,
    of_path, of_range, same_series,
};
use reroll::repo::{MODE_FILE, ObjectId};

use crate::scratch::{
    MODE_EXECUTABLE, MODE_LINK, Random, Scratch, TreeFile, assert_same, author, file, text, thor,
};

/// A version's files: mode and text by path.
type Files = BTreeMap<String, (u32, String)>;

/// A change that can be made on any base: it is found by a line's text.
#[derive(Debug, Clone)]
struct Step {
    message: String,
    edits: Vec<Edit>,
}

#[derive(Debug, Clone)]
enum Edit {
    /// Lines behind the line that is this.
    Insert(String, usize, Vec<String>),
    /// The line that is this goes away.
    Remove(String, usize),
    Create(String, String),
    Delete(String),
    Mode(String),
    /// The newline at the end of the file goes away.
    Cut(String),
}

impl Edit {
    fn make(&self, files: &mut Files) {
        let place = |text: &str, anchor: usize| {
            let wanted = format!("line {anchor} of the file");
            text.lines().position(|line| line.trim() == wanted)
        };
        let change = |files: &mut Files, path: &str, anchor: usize, lines: Option<&[String]>| {
            let Some((_, text)) = files.get_mut(path) else {
                return;
            };
            let Some(at) = place(text, anchor) else {
                return;
            };
            let ends = text.ends_with('\n');
            let mut all: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
            match lines {
                Some(lines) => drop(all.splice(at..at, lines.iter().cloned())),
                None => drop(all.remove(at)),
            }
            *text = all.join("\n") + if ends && !all.is_empty() { "\n" } else { "" };
        };
        match self {
            Self::Insert(path, anchor, lines) => change(files, path, *anchor, Some(lines)),
            Self::Remove(path, anchor) => change(files, path, *anchor, None),
            Self::Create(path, text) => drop(files.insert(path.clone(), (MODE_FILE, text.clone()))),
            Self::Delete(path) => drop(files.remove(path)),
            Self::Mode(path) => {
                if let Some((mode, _)) = files.get_mut(path) {
                    *mode = MODE_EXECUTABLE;
                }
            }
            Self::Cut(path) => {
                if let Some((_, text)) = files.get_mut(path) {
                    text.truncate(text.trim_end().len());
                }
            }
        }
    }
}

/// A kernel of two files with functions in them.
fn base_files() -> Files {
    let mut files = Files::new();
    for path in ["mm/init.c", "mm/with blank ü.c"] {
        let mut text = String::new();
        for at in 0..60 {
            if at % 12 == 0 {
                text += &format!("static int function_{at}_of_a_file(struct page *page)\n{{\n");
            }
            text += &format!("\tline {at} of the file\n");
            if at % 12 == 11 {
                text += "}\n\n";
            }
        }
        files.insert(path.to_owned(), (MODE_FILE, text));
    }
    files
}

const WORDS: [&str; 12] = [
    "page",
    "zone",
    "\tindented\tby\ttabs",
    "}",
    "",
    "if (x)",
    "ünïcödé 世界",
    "return 0;",
    "template",
    "@@ -1 +1 @@ not a hunk",
    "-- ",
    " ## not a title ##",
];

fn random_step(random: &mut Random) -> Step {
    let mut message = format!("mm: {} {}", random.pick(&WORDS[..2]), random.below(1000));
    for _ in 0..random.below(6) {
        message += ["\n\n", "\n", "\n  \n", " \n"][random.below(4)];
        message += random.pick(&WORDS);
    }
    message += ["", "\n", "\n\n"][random.below(3)];
    let paths = ["mm/init.c", "mm/with blank ü.c"];
    let edits = (0..random.below(4)).map(|_| {
        let path = (*random.pick(&paths)).to_owned();
        let anchor = random.below(60);
        match random.below(12) {
            0 | 1 => Edit::Remove(path, anchor),
            2 => Edit::Create(
                format!("new/{}", random.below(3)),
                "a\n\nb\n".repeat(random.below(4)),
            ),
            3 if random.below(3) == 0 => Edit::Delete(path),
            4 => Edit::Mode(path),
            5 => Edit::Cut(path),
            _ => {
                let count = 1 + random.below(8);
                let lines =
                    (0..count).map(|_| format!("\t{} {}", random.pick(&WORDS), random.below(4)));
                Edit::Insert(path, anchor, lines.collect())
            }
        }
    });
    let edits = edits.collect();
    Step { message, edits }
}

/// The next version of a series: patches dropped, added, moved, said or done otherwise.
fn next_version(random: &mut Random, steps: &[Step]) -> Vec<Step> {
    let mut next = Vec::new();
    for step in steps {
        let mut step = step.clone();
        match random.below(9) {
            0 => continue,
            1 => next.push(random_step(random)),
            2 => step.message += "\nand more\n",
            3 | 4 => step.edits.extend(random_step(random).edits),
            5 => {
                step = Step {
                    message: step.message,
                    ..random_step(random)
                }
            }
            6 => drop(step.edits.pop()),
            _ => {}
        }
        let at = if random.below(6) == 0 {
            random.below(next.len() + 1)
        } else {
            next.len()
        };
        next.insert(at, step);
    }
    next
}

impl Scratch {
    fn tree_of(&self, files: &Files) -> ObjectId {
        let files: Vec<_> = files
            .iter()
            .map(|(path, (mode, text))| (path.as_str(), *mode, text.as_bytes()))
            .collect();
        self.tree(&files)
    }

    /// A base of its own, and the commits of these steps on it: `base..tip`.
    fn version(&self, base: &Files, steps: &[Step]) -> String {
        let mut files = base.clone();
        let person = author("A Ü Thor", "author@example.org");
        let base_id = self.commit(self.tree_of(&files), None, &thor(), "base\n");
        let mut tip = base_id;
        for step in steps {
            for edit in &step.edits {
                edit.make(&mut files);
            }
            tip = self.commit(self.tree_of(&files), Some(tip), &person, &step.message);
        }
        format!("{base_id}..{tip}")
    }

    fn patches(&self, range: &str) -> Vec<Patch> {
        let (from, to) = range.split_once("..").expect("a range");
        of_range(&self.repo, from, to, Authors::Mapped)
            .expect("patches")
            .patches
    }

    fn range_diff(&self, args: &[&str]) -> Vec<u8> {
        let all = [&["range-diff", "--no-color"], args].concat();
        self.git(&all)
    }

    /// Ours and git's text are the same, or our pairs cost less: git's solver misses the cheapest at times.
    fn assert_equal_or_cheaper(
        &self,
        old: &str,
        new: &str,
        factor: u32,
        what: &str,
    ) -> (bool, Vec<Pair>) {
        let options = Options {
            creation_factor: factor,
        };
        let (old_patches, new_patches) = (self.patches(old), self.patches(new));
        let pairs = compare(&old_patches, &new_patches, &options).expect("pairs");
        let factor = format!("--creation-factor={factor}");
        let gits = self.range_diff(&[&factor, "-s", old, new]);
        let gits: Vec<_> = gits.lines().map(numbers).collect();
        let ours: Vec<_> = pairs.iter().map(|pair| (pair.old, pair.new)).collect();
        let is_same = ours == gits;
        if is_same {
            let ours = as_text(&old_patches, &new_patches, &pairs, Detail::Full);
            assert_same(&ours, &self.range_diff(&[&factor, old, new]), what);
        } else {
            let cost =
                |pairs: &[_]| cost(&old_patches, &new_patches, pairs, &options).expect("a cost");
            let (ours, gits) = (cost(&ours), cost(&gits));
            assert!(
                ours < gits,
                "{what}: other pairs than git's, which cost {ours} instead of {gits}"
            );
        }
        (is_same, pairs)
    }

    /// Ours and git's text are the same.
    fn assert_equal_to_git(&self, old: &str, new: &str, factor: u32, what: &str) -> Vec<Pair> {
        let options = Options {
            creation_factor: factor,
        };
        let (old_patches, new_patches) = (self.patches(old), self.patches(new));
        let pairs = compare(&old_patches, &new_patches, &options).expect("pairs");
        let factor = format!("--creation-factor={factor}");
        let ours = as_text(&old_patches, &new_patches, &pairs, Detail::Full);
        assert_same(&ours, &self.range_diff(&[&factor, old, new]), what);
        pairs
    }
}

/// The numbers of a header line, from 0.
fn numbers(line: &[u8]) -> (Option<usize>, Option<usize>) {
    let words: Vec<_> = line.fields().collect();
    let number = |word: &[u8]| {
        word.to_str_lossy()
            .trim_end_matches(':')
            .parse::<usize>()
            .ok()
    };
    (
        number(words[0]).map(|at| at - 1),
        number(words[3]).map(|at| at - 1),
    )
}

#[test]
fn the_text_is_gits_on_random_histories() {
    let count =
        std::env::var("REROLL_TEST_HISTORIES").map_or(60, |count| count.parse().expect("a number"));
    let scratch = Scratch::new();
    let mut seen = BTreeMap::new();
    let mut tally = [0, 0];
    for seed in 1..=count {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        let steps: Vec<_> = (0..random.below(12))
            .map(|_| random_step(&mut random))
            .collect();
        let next = next_version(&mut random, &steps);
        if steps.is_empty() || next.is_empty() {
            continue; // git takes no empty range.
        }
        let base = base_files();
        let mut moved = base.clone();
        for _ in 0..random.below(3) {
            random_step(&mut random)
                .edits
                .iter()
                .for_each(|edit| edit.make(&mut moved));
        }
        let (old, new) = (
            scratch.version(&base, &steps),
            scratch.version(&moved, &next),
        );
        let factor = [60, 60, 20, 99, 999][random.below(5)];
        let what = format!("seed {seed}");
        let (is_same, pairs) = scratch.assert_equal_or_cheaper(&old, &new, factor, &what);
        tally[usize::from(is_same)] += 1;
        for pair in pairs {
            *seen
                .entry(format!("{:?} {:?}", pair.kind, pair.by))
                .or_insert(0) += 1;
        }
    }
    assert!(
        tally[1] > 4 * tally[0],
        "git had other pairs too often: {tally:?}"
    );
    for kind in [
        "Equal Some(Text)",
        "Changed Some(Text)",
        "Changed Some(Content)",
        "New None",
        "Dropped None",
    ] {
        assert!(seen.contains_key(kind), "no history had `{kind}`: {seen:?}");
    }
}

/// A file of numbered lines, with lines put in behind some of them.
fn numbered(lines: usize, extra: &[(usize, &str)]) -> Files {
    let mut text = String::new();
    for at in 1..=lines {
        text += &format!("{at}\n");
        for (_, line) in extra.iter().filter(|(behind, _)| *behind == at) {
            text += &format!("{line}\n");
        }
    }
    Files::from([("mm_init.c".to_owned(), (MODE_FILE, text))])
}

impl Scratch {
    /// Commits of whole trees: `base..tip`.
    fn history(&self, states: &[(Files, &str)]) -> String {
        let mut ids = Vec::new();
        for (files, message) in states {
            let tree_id = self.tree_of(files);
            ids.push(self.commit(tree_id, ids.last().copied(), &thor(), message));
        }
        format!("{}..{}", ids[0], ids[ids.len() - 1])
    }

    /// The shared case: a base that moved, and a patch in the middle that was written anew.
    fn rewritten(&self, trailer: &str) -> (String, String) {
        let state = |upstream: bool, parts: usize, what: &str| {
            let template: Vec<_> = (1..=6)
                .map(|at| (120 + at, format!("{what} {at}")))
                .collect();
            let mut extra = Vec::new();
            if upstream {
                extra.extend([
                    (94, "upstream new line near the context"),
                    (129, "more upstream"),
                ]);
            }
            if parts > 0 {
                extra.push((99, "helper_a"));
            }
            if parts > 1 {
                extra.extend(template.iter().map(|(at, line)| (*at, line.as_str())));
            }
            if parts > 2 {
                extra.push((149, "tail old"));
            }
            numbered(200, &extra)
        };
        let message = |subject: &str, body: &str, id: &str| {
            let trailer = if trailer.is_empty() {
                String::new()
            } else {
                format!("\n{trailer}: {id}\n")
            };
            format!("{subject}\n{body}{trailer}")
        };
        let version = |upstream: bool, what: &str, body: &str| {
            self.history(&[
                (state(upstream, 0, what), "base\n"),
                (
                    state(upstream, 1, what),
                    &message("mm: factor helpers", "", "I1"),
                ),
                (
                    state(upstream, 2, what),
                    &message("mm: add template fast path", body, "I2"),
                ),
                (
                    state(upstream, 3, what),
                    &message("mm: extend to tails", "", "I3"),
                ),
            ])
        };
        let rewritten =
            "\nA rewritten explanation, after review.\n\nWith more words than before.\n";
        (
            version(false, "tmpl old", "\nOld text about the template.\n"),
            version(true, "completely new implementation line", rewritten),
        )
    }
}

fn kinds(pairs: &[Pair]) -> Vec<(Kind, Option<By>)> {
    pairs.iter().map(|pair| (pair.kind, pair.by)).collect()
}

#[test]
fn a_patch_that_was_written_anew_is_lost_by_content_as_git_loses_it() {
    let scratch = Scratch::new();
    let (old, new) = scratch.rewritten("");
    let pairs = scratch.assert_equal_to_git(&old, &new, 60, "60");
    assert!(
        kinds(&pairs).contains(&(Kind::Dropped, None)),
        "{:?}",
        kinds(&pairs)
    );
    for factor in [0, 99, 999] {
        scratch.assert_equal_to_git(&old, &new, factor, "another factor");
    }
}

#[test]
fn a_change_id_keeps_the_pair_of_a_patch_that_was_written_anew() {
    let scratch = Scratch::new();
    for trailer in ["Change-Id", "change-id"] {
        let (old, new) = scratch.rewritten(trailer);
        let pairs = compare(
            &scratch.patches(&old),
            &scratch.patches(&new),
            &Options::default(),
        )
        .expect("pairs");
        assert_eq!(pairs.len(), 3);
        let by_identity = |pair: &Pair| pair.by == Some(By::Identity);
        assert!(pairs.iter().all(by_identity), "{:?}", kinds(&pairs));
    }
    // An id that several patches have names none of them: content decides.
    let (old, new) = scratch.rewritten("Change-Id: the-series-x");
    let same = |range: &str| {
        let mut patches = scratch.patches(range);
        for patch in &mut patches {
            patch.identity = Some("same".into());
        }
        patches
    };
    let pairs = compare(&same(&old), &same(&new), &Options::default()).expect("pairs");
    assert!(pairs.iter().all(|pair| pair.by != Some(By::Identity)));
}

#[test]
fn what_applied_of_a_series_is_equal_and_the_rest_is_dropped() {
    let scratch = Scratch::new();
    let state = |x: &str, y: &str, z: &str| {
        let file = |text: &str| numbered(40, &[(10, text)])["mm_init.c"].clone();
        Files::from([
            ("x.c".into(), file(x)),
            ("y.c".into(), file(y)),
            ("z.c".into(), file(z)),
        ])
    };
    let old = scratch.history(&[
        (state("", "", ""), "base\n"),
        (state("ten", "", ""), "mm: one\n"),
        (state("ten", "twenty", ""), "mm: two\n"),
        (state("ten", "twenty", "thirty"), "mm: three\n"),
    ]);
    // The new base has a commit of the same subject as 3/3, which is another change.
    let new = scratch.history(&[
        (state("", "upstream", "five"), "mm: three\n"),
        (state("ten", "upstream", "five"), "mm: one\n"),
    ]);
    let pairs = scratch.assert_equal_to_git(&old, &new, 60, "half");
    let dropped = (Kind::Dropped, None);
    assert_eq!(
        kinds(&pairs),
        [(Kind::Equal, Some(By::Text)), dropped, dropped]
    );
}

#[test]
fn notes_and_the_mailmap_are_shown_as_git_shows_them() {
    let scratch = Scratch::new();
    let with = |text: &str| {
        let mailmap = "Mapped Name <mapped@example.org> <author@example.org>\n";
        Files::from([
            ("f".to_owned(), (MODE_FILE, text.to_owned())),
            (".mailmap".to_owned(), (MODE_FILE, mailmap.to_owned())),
        ])
    };
    let old = scratch.history(&[
        (with("a\n"), "base\n"),
        (with("b\n"), "subject\n\nold text\n"),
    ]);
    let new = scratch.history(&[
        (with("a\n"), "base\n"),
        (with("b\n"), "subject, too\n\nnew text\n"),
    ]);
    let tip = new.split_once("..").expect("a range").1;
    scratch.publish(tip.parse().expect("an id"));
    scratch.git(&[
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "notes",
        "add",
        "-m",
        "changed since v1:\n\n - text",
        tip,
    ]);
    let pairs = scratch.assert_equal_to_git(&old, &new, 60, "notes");
    let diff = pairs[0].diff.to_str_lossy();
    assert!(
        diff.contains("+ ## Notes ##") && diff.contains("Author: Mapped Name"),
        "{diff}"
    );
}

#[test]
fn ids_are_as_long_as_gits_in_a_repository_with_packs() {
    let scratch = Scratch::new();
    let (old, new) = scratch.rewritten("");
    // A pack index of 2^16 objects: git counts them, and opens no pack that it is not asked for.
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    index.extend(std::iter::repeat_n([0, 1, 0, 0], 256).flatten());
    index.resize(index.len() + 28 * 0x1_0000 + 40, 0);
    let pack = scratch.path("repo.git/objects/pack");
    fs::create_dir_all(&pack).expect("a directory");
    let name = "pack-1111111111111111111111111111111111111111";
    fs::write(pack.join(format!("{name}.idx")), index).expect("an index");
    fs::write(pack.join(format!("{name}.pack")), b"").expect("a pack");
    let short = &scratch.patches(&old)[0].short_id;
    assert_eq!(short.len(), 9, "{short}");
    let gits = scratch.range_diff(&["-s", &old, &new]);
    assert!(gits.contains_str(short), "{}", gits.to_str_lossy());
}

/// The files of a directory, by name.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a directory");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

/// Writes the commits of a range as git writes patches, with these options.
fn format_patch(scratch: &Scratch, range: &str, dir: &str, args: &[&str]) -> PathBuf {
    let to = scratch.path(dir);
    let output = text(&to);
    let start = ["format-patch", "-q", "-o", &output];
    scratch.git(&[&start, args, &[range]].concat());
    to
}

#[test]
fn mails_give_what_their_commits_give() {
    let scratch = Scratch::new();
    let step = |at: usize| Step {
        message: format!(
            "mm: ünï {at} {}\n\nText with\ta tab.\n\n  - 世界\n\nSigned-off-by: A <a@example.org>\n",
            "long ".repeat(20)
        ),
        edits: vec![
            Edit::Insert(
                "mm/init.c".into(),
                at * 9,
                vec!["-- ".into(), String::new(), "\tx".into()],
            ),
            Edit::Remove("mm/with blank ü.c".into(), at * 7),
            Edit::Create(format!("new/{at}"), "--- a\n+++ b\n".into()),
        ],
    };
    let steps: Vec<_> = (0..5).map(step).collect();
    let range = scratch.version(&base_files(), &steps);
    let commits = {
        let (from, to) = range.split_once("..").expect("a range");
        scratch.publish(from.parse().expect("an id"));
        of_range(&scratch.repo, from, to, Authors::AsWritten)
            .expect("patches")
            .patches
    };
    for (at, args) in [
        &["--cover-letter", "-v2"][..],
        &["--from=S Ender <s@example.org>", "--force-in-body-from"],
        &["-N"],
        &["--base=HEAD", "--rfc"],
        &["--attach"],
        &["--zero-commit"],
        &["--thread", "--subject-prefix=PATCH net-next"],
    ]
    .into_iter()
    .enumerate()
    {
        let dir = format_patch(&scratch, &range, &format!("out{at}"), args);
        let letters = of_path(&dir).expect("mails");
        let pairs = compare(&letters.patches, &commits, &Options::default()).expect("pairs");
        let shown = as_text(&letters.patches, &commits, &pairs, Detail::Full);
        assert_eq!(pairs.len(), 5);
        for pair in &pairs {
            assert_eq!(pair.kind, Kind::Equal, "{args:?}: {}", shown.to_str_lossy());
        }
        for (mail, commit) in letters.patches.iter().zip(&commits) {
            assert_eq!(mail.subject, commit.subject);
            assert_eq!(
                mail.id,
                if args.contains(&"--zero-commit") {
                    ""
                } else {
                    &commit.id
                }
            );
        }
        if !args.contains(&"-N") {
            // The order of an mbox means nothing where mails are numbered.
            let mails = files(&dir)
                .into_iter()
                .rev()
                .map(|file| fs::read(file).expect("a mail"));
            let mbox: Vec<u8> = mails.flatten().collect();
            assert_eq!(
                of_mbox(&mbox, "mbox").expect("mails").patches,
                letters.patches
            );
        }
    }
}

#[test]
fn one_series_knows_its_patches_by_subject_and_place() {
    let scratch = Scratch::new();
    let (old, new) = scratch.rewritten("");
    let read = |range: &str, dir: &str, id: &str| {
        let dir = format_patch(&scratch, range, dir, &["--cover-letter"]);
        let cover = dir.join("0000-cover-letter.patch");
        let text = fs::read_to_string(&cover).expect("a cover letter");
        let text = text.replace("*** BLURB HERE ***", &format!("Blurb.\n\nchange-id: {id}"));
        fs::write(&cover, text).expect("written");
        of_path(&dir).expect("mails")
    };
    let (id, other_id) = ("20261130-x-0123456789ab", "20261130-y-0123456789ab");
    let (v1, v2) = (read(&old, "v1", id), read(&new, "v2", id));
    let (mut one, mut two) = (v1.clone(), v2.clone());
    same_series(&mut one, &mut two);
    let pairs = compare(&one.patches, &two.patches, &Options::default()).expect("pairs");
    assert_eq!(pairs.len(), 3, "{:?}", kinds(&pairs));
    assert!(
        pairs.iter().all(|pair| pair.by == Some(By::Identity)),
        "{:?}",
        kinds(&pairs)
    );
    // A new subject for one of them: the others say which one it is.
    let (mut one, mut two) = (v1.clone(), v2.clone());
    two.patches[1].subject = "mm: another subject".into();
    same_series(&mut one, &mut two);
    let pairs = compare(&one.patches, &two.patches, &Options::default()).expect("pairs");
    assert_eq!(pairs.len(), 3, "{:?}", kinds(&pairs));
    // A place is none where the number of patches changed, and nothing is shared with another series.
    let (mut one, mut two) = (v1.clone(), v2.clone());
    two.patches[1].subject = "mm: another subject".into();
    one.patches.truncate(2);
    same_series(&mut one, &mut two);
    assert_eq!(one.patches[1].identity, None);
    let (mut one, mut two) = (v1, read(&new, "v3", other_id));
    same_series(&mut one, &mut two);
    let mut all = one.patches.iter().chain(&two.patches);
    assert!(all.all(|patch| patch.identity.is_none()));
}

#[test]
fn mails_that_are_not_a_whole_version_are_refused() {
    let scratch = Scratch::new();
    let (range, _) = scratch.rewritten("");
    let dir = format_patch(&scratch, &range, "v1", &["-v1", "--cover-letter"]);
    let read = |file: PathBuf| fs::read_to_string(file).expect("a mail");
    let mails: Vec<String> = files(&dir).into_iter().map(read).collect();
    let whole = mails.concat();
    let count = |mbox: &str| {
        of_mbox(mbox.as_bytes(), "mbox")
            .expect("mails")
            .patches
            .len()
    };
    assert_eq!(count(&whole), 3);
    let answer = mails[1].replace("Subject: [", "Subject: Re: [");
    assert_eq!(count(&(whole.clone() + &answer)), 3);
    let last = &mails[3];
    let (mail, _) = last.split_once("diff --git").expect("a diff");
    let with = |last: &str| mails[..3].concat() + last;
    for (mbox, why) in [
        (with(""), "patch 3/3 is missing from `mbox`"),
        (
            whole.clone() + &mails[2],
            "patch 2/3 is more than once in `mbox`",
        ),
        (
            with(&last.replace("[PATCH v1", "[PATCH v2")),
            "more than one version",
        ),
        (with(&last.replace("+tail old\n", "")), "damaged"),
        (
            with(last.split_once("+tail old").expect("a line").0),
            "damaged: its end is missing",
        ),
        (
            with(&last.replace("@@ -", "@@ -x")),
            "damaged: git does not read it",
        ),
        (
            with(&last.replace("@@ -", "GIT binary patch\n@@ -")),
            "binary",
        ),
        (with(mail), "holds no patch"),
        (mails[0].clone(), "`mbox` holds no patch"),
        ("just text\n".to_owned(), "no mail"),
        (String::new(), "no mail"),
    ] {
        let error = of_mbox(mbox.as_bytes(), "mbox").expect_err(why);
        assert_eq!(exit_of(&error), Exit::Usage);
        assert!(
            error.to_string().contains(why),
            "`{error}` is not about: {why}"
        );
    }
}

#[test]
fn a_split_is_said_only_where_every_change_is_found() {
    let scratch = Scratch::new();
    let history = |extra: &[&[(usize, &str)]]| {
        let mut states = vec![(numbered(100, &[]), "base\n")];
        states.extend(extra.iter().map(|extra| (numbered(100, extra), "mm: x\n")));
        scratch.history(&states)
    };
    let both = [(20, "one"), (70, "two")];
    let old = history(&[&both]);
    let pairs = scratch.assert_equal_to_git(&old, &history(&[&both[..1], &both]), 60, "split");
    let split: Vec<_> = pairs
        .iter()
        .filter(|pair| pair.kind == Kind::Split)
        .collect();
    assert_eq!(split.len(), 1, "{:?}", kinds(&pairs));
    assert_eq!((split[0].old, &split[0].into[..]), (Some(0), &[0, 1][..]));
    let other = [(20, "one"), (70, "two, but otherwise")];
    let pairs =
        scratch.assert_equal_to_git(&old, &history(&[&other[..1], &other]), 60, "not split");
    assert!(
        pairs.iter().all(|pair| pair.kind != Kind::Split),
        "{:?}",
        kinds(&pairs)
    );
    // One change in two new patches, and one in none: where they went is not known.
    let again = [(20, "one"), (40, "one"), (70, "two")];
    let three = [(20, "one"), (50, "three"), (70, "two")];
    for (old, new) in [
        (history(&[&both]), history(&[&again[..1], &again])),
        (history(&[&three]), history(&[&both[..1], &both])),
    ] {
        let pairs = scratch.assert_equal_to_git(&old, &new, 60, "not known");
        let is_split = |pair: &Pair| pair.kind == Kind::Split;
        assert!(!pairs.iter().any(is_split), "{:?}", kinds(&pairs));
    }
}

/// Without the styles.
fn plain(styled: &str) -> String {
    anstream::adapter::strip_str(styled).to_string()
}

#[test]
fn a_terminal_shows_the_same_lines_with_the_changed_words_marked() {
    let scratch = Scratch::new();
    for seed in 1..=20_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let steps: Vec<_> = (0..4).map(|_| random_step(&mut random)).collect();
        let next = next_version(&mut random, &steps);
        let base = base_files();
        let [old, new] =
            [&steps, &next].map(|steps| scratch.patches(&scratch.version(&base, steps)));
        let pairs = compare(&old, &new, &Options::default()).expect("pairs");
        let styled = for_terminal(&old, &new, &pairs, Detail::Full);
        let text = as_text(&old, &new, &pairs, Detail::Full);
        assert_same(plain(&styled).as_bytes(), &text, "styles aside");
    }
    let patch = |word: &str| Patch {
        identity: Some("x".to_owned()),
        message: format!("mm: the {word} way to do\x1b[31m it\n").into(),
        subject: "mm: \x1b[31m".into(),
        ..Patch::default()
    };
    let (old, new) = (vec![patch("old")], vec![patch("new")]);
    let pairs = compare(&old, &new, &Options::default()).expect("pairs");
    let styled = for_terminal(&old, &new, &pairs, Detail::Full);
    assert!(
        styled.contains("\x1b[1m\x1b[7m\x1b[32mnew\x1b[0m"),
        "{styled:?}"
    );
    assert!(!styled.contains("\x1b[31m it"), "{styled:?}");
    assert!(plain(&styled).contains("\\u{1b}[31m it"), "{styled:?}");
}

fn reroll(dir: &Path, args: &[&str]) -> Output {
    let path = std::env::var("PATH").expect("PATH");
    Task::new("env")
        .dir(dir)
        .args([
            "-i",
            &format!("PATH={path}"),
            &format!("HOME={}", dir.display()),
        ])
        .arg(env!("CARGO_BIN_EXE_reroll"))
        .args(args)
        .run()
        .expect("reroll starts")
}

#[test]
fn the_command_prints_gits_bytes_and_says_by_its_exit_code_whether_versions_differ() {
    let scratch = Scratch::new();
    let (old, new) = scratch.rewritten("");
    let dir = scratch.path(".");
    let run = |args: &[&str]| reroll(&dir, &[&["diff", "--tree", "repo.git"], args].concat());
    let output = run(&[&old, &new]);
    assert_eq!(
        output.exit,
        End::Code(1),
        "{}",
        output.stderr.to_str_lossy()
    );
    assert_same(
        &output.stdout,
        &scratch.range_diff(&[&old, &new]),
        "command",
    );
    let output = run(&["-s", &old, &new]);
    assert_same(
        &output.stdout,
        &scratch.range_diff(&["-s", &old, &new]),
        "summary",
    );
    let out = text(&format_patch(&scratch, &old, "v1", &[]));
    let (base, tip) = old.split_once("..").expect("a range");
    let (old, new, out) = (old.as_str(), new.as_str(), out.as_str());
    for equal in [&[old, old][..], &[old, out], &["--base", base, tip, old]] {
        assert_eq!(run(equal).exit, End::Code(0), "{equal:?}");
    }
    for wrong in [
        &[][..],
        &[old],
        &["nothing", old],
        &["a...b", old],
        &["no..where", old],
        &["--bases", "x"],
        &["--rebased", old, new],
        &["--series", "x", old, new],
        &["--bases", "a..b", old, new],
    ] {
        let output = run(wrong);
        let said = output.stderr.to_str_lossy();
        assert_eq!(output.exit, End::Code(2), "{wrong:?}: {said}");
    }
    let output = run(&["--json", "--creation-factor=99", old, new]);
    assert_eq!(output.exit, End::Code(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&report["version"], &report["equal"]),
        (&1.into(), &false.into())
    );
    let subjects = report["pairs"].as_array().expect("pairs").iter();
    let subjects: Vec<_> = subjects.map(|pair| &pair["old"]["subject"]).collect();
    assert!(
        subjects.contains(&&"mm: add template fast path".into()),
        "{subjects:?}"
    );
}

/// A recipe of two patches that create a file each.
fn write_recipe(dir: &Path, first: &str) {
    let write = |path: &str, text: &str| {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("written");
    };
    let series = "name = \"x\"\ntitle = \"mm: x\"\nversion = 1\nchange-id = \"20261130-x-0123456789ab\"\npatches = [\"0001-first\", \"0002-second\"]\n";
    write("series.toml", series);
    write("cover.txt", "Text.\n");
    for (name, file, text) in [
        ("0001-first", "mm/first.c", first),
        ("0002-second", "mm/second.c", "int second;\n"),
    ] {
        write(
            &format!("{name}/message.txt"),
            &format!("mm: {name}\n\nText.\n"),
        );
        let edit = format!(
            "[[edit]]\nname = \"create\"\naction = \"create\"\nfile = \"{file}\"\ntext = '''\n{text}'''\n"
        );
        write(&format!("{name}/patch.toml"), &edit);
    }
}

#[test]
fn recipes_are_regenerated_and_their_patches_known_by_name() {
    let scratch = Scratch::new();
    let dir = scratch.path(".");
    write_recipe(&scratch.path("old/x"), "int first;\n");
    write_recipe(
        &scratch.path("new/x"),
        "long other(void);\nlong thing(void);\nlong entirely;\n",
    );
    let base = |name: &str, extra: &str| {
        let makefile = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 0\nEXTRAVERSION =\nNAME = x\n";
        let files = Files::from([
            ("Makefile".to_owned(), (MODE_FILE, makefile.to_owned())),
            ("other".to_owned(), (MODE_FILE, extra.to_owned())),
        ]);
        let id = scratch.commit(scratch.tree_of(&files), None, &thor(), "base\n");
        scratch.git(&["update-ref", &format!("refs/tags/{name}"), &id.to_string()]);
    };
    base("b1", "1\n");
    base("b2", "2\n");
    let run = |args: &[&str]| {
        let start = ["diff", "--json", "--tree", "repo.git", "--series", "old/x"];
        reroll(&dir, &[&start, args].concat())
    };
    let objects = || scratch.git(&["count-objects"]);
    let before = objects();
    let output = run(&["--bases", "b1..b2"]);
    assert_eq!(
        output.exit,
        End::Code(0),
        "{}",
        output.stderr.to_str_lossy()
    );
    for args in [
        &["--base", "b1"][..],
        &["--bases", "b1..b2"],
        &["--bases", "b1..b2", "--rebased"],
    ] {
        let output = run(&[args, &["--new-series", "new/x"]].concat());
        assert_eq!(
            output.exit,
            End::Code(1),
            "{}",
            output.stderr.to_str_lossy()
        );
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let pairs = report["pairs"].as_array().expect("pairs");
        let kinds: Vec<_> = pairs
            .iter()
            .map(|pair| (pair["kind"].as_str(), pair["by"].as_str()))
            .collect();
        let by = Some("identity");
        assert_eq!(kinds, [(Some("changed"), by), (Some("equal"), by)]);
        assert_eq!(pairs[0]["old"]["identity"], "first");
    }
    assert_eq!(objects(), before, "nothing is written to the repository");
}

#[test]
fn labels_are_those_that_the_base_asks_for_as_with_git_in_a_work_tree() {
    let scratch = Scratch::new();
    let with = |extra: &str| {
        let body =
            format!("int f(void)\n{{\n\ta;\nout:\n\tb;\n\tc;\n\td;\n\te;\n{extra}\tg;\n}}\n");
        Files::from([
            (
                ".gitattributes".to_owned(),
                (MODE_FILE, "*.c diff=cpp\n".to_owned()),
            ),
            ("f.c".to_owned(), (MODE_FILE, body)),
        ])
    };
    let old = scratch.history(&[(with(""), "base\n"), (with("\tx;\n"), "mm: x\n")]);
    let new = scratch.history(&[(with(""), "base\n"), (with("\ty;\n"), "mm: x\n")]);
    let base = old.split_once("..").expect("a range").0;
    let gits = scratch.git(&[
        &format!("--attr-source={base}"),
        "range-diff",
        "--no-color",
        "--creation-factor=999",
        &old,
        &new,
    ]);
    let (old, new) = (scratch.patches(&old), scratch.patches(&new));
    let pairs = compare(
        &old,
        &new,
        &Options {
            creation_factor: 999,
        },
    )
    .expect("pairs");
    let ours = as_text(&old, &new, &pairs, Detail::Full);
    assert!(
        ours.contains_str("@@ f.c: int f(void)"),
        "{}",
        ours.to_str_lossy()
    );
    assert_same(&ours, &gits, "labels");
}

#[test]
fn patches_that_fit_several_are_paired_as_git_pairs_them() {
    let scratch = Scratch::new();
    // The same diff three times in the old version: done, undone, done again.
    let (with, without) = (numbered(20, &[(9, "x")]), numbered(20, &[]));
    let states = [
        (without.clone(), "base\n"),
        (with.clone(), "mm: do\n"),
        (without.clone(), "mm: undo\n"),
        (with.clone(), "mm: do again\n"),
    ];
    let (old, new) = (scratch.history(&states), scratch.history(&states[..2]));
    scratch.assert_equal_to_git(&old, &new, 60, "fewer");
    scratch.assert_equal_to_git(&new, &old, 60, "more");
    // Small patches that cost the same.
    let mut tally = [0, 0];
    for seed in 1..=60_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut version = || {
            let mut extra: Vec<(usize, &str)> = Vec::new();
            let mut states = vec![(numbered(30, &extra), "base\n")];
            for _ in 0..=random.below(5) {
                for _ in 0..=random.below(3) {
                    extra.push((1 + random.below(29), random.pick(&["a", "b"])));
                }
                states.push((numbered(30, &extra), "mm: x\n"));
            }
            scratch.history(&states)
        };
        let (old, new) = (version(), version());
        let (is_same, _) = scratch.assert_equal_or_cheaper(&old, &new, 99, &format!("seed {seed}"));
        tally[usize::from(is_same)] += 1;
    }
    assert!(
        tally[1] > 3 * tally[0],
        "git had other pairs too often: {tally:?}"
    );
}

/// A repository with a base, and two versions of a series with all that is odd: renames, copies, modes, links, deletions, binary files,
/// another character set, and nobody's name.
fn odd() -> (Scratch, String, String) {
    let scratch = Scratch::new();
    let lines = |five: &str| -> String {
        let line = |it: usize| {
            if it == 5 {
                format!("{five}\n")
            } else {
                format!("{it}\n")
            }
        };
        (1..=60).map(line).collect()
    };
    let commit = |parent: Option<ObjectId>, files: &[TreeFile<'_>], message: &str| {
        let tree = scratch.tree(files);
        scratch.commit(tree, parent, &thor(), message)
    };
    let bin: [&[u8]; 3] = [b"\0one", b"\0two", b"\0three"];
    let texts = ["5", "five", "FIVE"].map(lines);
    let base = commit(
        None,
        &[file("a.c", &texts[0]), ("b.bin", MODE_FILE, bin[0])],
        "base\n",
    );
    let version = |text: &str, bin: &[u8], more: &[TreeFile<'_>]| {
        let renamed = [file("d.c", text)];
        let first = commit(
            Some(base),
            &[&renamed[..], &[("b.bin", MODE_FILE, b"\0one")]].concat(),
            "mm: rename it\n\nText.\n",
        );
        let second = commit(
            Some(first),
            &[&renamed[..], &[("b.bin", MODE_FILE, bin)]].concat(),
            "mm: change the binary\n",
        );
        commit(
            Some(second),
            &[&renamed[..], &[("b.bin", MODE_FILE, bin)], more].concat(),
            "mm: and more\n",
        )
    };
    let one = version(
        &texts[1],
        bin[1],
        &[
            ("l", MODE_LINK, b"d.c"),
            ("e.c", MODE_EXECUTABLE, texts[1].as_bytes()),
        ],
    );
    let two = version(&texts[2], bin[2], &[("l", MODE_LINK, b"e.c")]);
    // Git writes what libgit2 does not.
    let odd = |tip: ObjectId, head: &str, message: &[u8]| {
        let tree = scratch.repo.commit(tip).expect("a commit").tree_id;
        let text = [
            format!("tree {tree}\nparent {tip}\n{head}\n\n").as_bytes(),
            message,
        ]
        .concat();
        let path = scratch.path("commit");
        std::fs::write(&path, text).expect("a file");
        let id = scratch.git(&[
            "hash-object",
            "-t",
            "commit",
            "-w",
            "--literally",
            &path.display().to_string(),
        ]);
        id.trim().to_str_lossy().parse::<ObjectId>().expect("an id")
    };
    let people = "committer C <c@example.org> 1700000000 +0000";
    let latin = |tip| {
        odd(
            tip,
            &format!(
                "author J\u{f6}rg <j@example.org> 1700000000 +0000\n{people}\nencoding ISO-8859-1"
            )
            .replace('\u{f6}', "o"),
            b"mm: gr\xf6\xdfe\n",
        )
    };
    let (one, two) = (latin(one), latin(two));
    let nobody = |tip| {
        odd(
            tip,
            &format!("author  <> 1700000000 +0000\n{people}"),
            b"mm: nobody\n",
        )
    };
    let (one, two) = (nobody(one), nobody(two));
    scratch.git(&["update-ref", "refs/heads/one", &one.to_string()]);
    scratch.git(&["update-ref", "refs/heads/two", &two.to_string()]);
    (scratch, format!("{base}..{one}"), format!("{base}..{two}"))
}

#[test]
fn what_is_odd_in_a_range_is_as_git_shows_it() {
    let (scratch, one, two) = odd();
    for (old, new) in [(&one, &two), (&two, &one), (&one, &one)] {
        let gits = scratch.git(&["range-diff", "--no-color", old, new]);
        let range = |text: &str| {
            let (from, to) = text.split_once("..").expect("a range");
            of_range(&scratch.repo, from, to, Authors::Mapped).expect("a range")
        };
        let (old, new) = (range(old), range(new));
        let pairs = compare(&old.patches, &new.patches, &Options::default()).expect("pairs");
        let ours = as_text(&old.patches, &new.patches, &pairs, Detail::Full);
        assert_same(&ours, &gits, "a range");
    }
    // What git's text does not show is known all the same.
    let range = |text: &str| {
        let (from, to) = text.split_once("..").expect("a range");
        of_range(&scratch.repo, from, to, Authors::Mapped)
            .expect("a range")
            .patches
    };
    let (old, new) = (range(&one), range(&two));
    assert_ne!(old[1].binaries(), new[1].binaries());
    assert!(old[0].binaries().is_empty());
}

#[test]
fn the_mails_of_a_rename_pair_with_it() {
    let (scratch, one, _) = odd();
    let (base, _) = one.split_once("..").expect("a range");
    let first = scratch.git(&["rev-list", "--reverse", &one]);
    let first = first
        .lines()
        .next()
        .expect("a commit")
        .to_str_lossy()
        .into_owned();
    for arg in ["-M", "--find-renames=90%"] {
        let out = scratch.path("out").display().to_string();
        scratch.git(&[
            "format-patch",
            "-q",
            arg,
            "-o",
            &out,
            &format!("{base}..{first}"),
        ]);
        let mails = of_path(&scratch.path("out")).expect("mails").patches;
        let range = of_range(&scratch.repo, base, &first, Authors::AsWritten).expect("a range");
        let pairs = compare(&mails, &range.patches, &Options::default()).expect("pairs");
        assert_eq!(pairs.len(), 1);
        assert_eq!(pairs[0].kind, Kind::Equal, "{arg}");
    }
}

#[test]
fn commits_that_others_take_the_place_of_are_counted() {
    let (scratch, one, _) = odd();
    let list = scratch.git(&["rev-list", &one]);
    let ids: Vec<_> = list
        .lines()
        .map(|id| id.to_str_lossy().into_owned())
        .collect();
    scratch.git(&["replace", &ids[2], &ids[3]]);
    let (from, to) = one.split_once("..").expect("a range");
    let range = of_range(&scratch.repo, from, to, Authors::Mapped).expect("a range");
    assert_eq!((range.replaced, range.patches.len()), (1, 5));
}
