//! Two versions of a series against `git range-diff`, on random histories and on cases made for the purpose.
//!
//! Hides how histories are made; the oracle is the installed git without rename detection, which reroll has off.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use reroll::error::{Exit, exit_of};
use reroll::exec::{End, Output, Task};
use reroll::rangediff::{
    Authors, By, Detail, Kind, Options, Pair, Patch, as_text, compare, cost, for_terminal, of_mbox,
    of_path, of_range, same_series,
};
use reroll::repo::{MODE_FILE, ObjectId};

use crate::scratch::{MODE_EXECUTABLE, Random, Scratch, assert_same, author, text, thor};

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
        let all = [
            &["-c", "diff.renames=false", "range-diff", "--no-color"],
            args,
        ]
        .concat();
        self.git(&all)
    }

    /// Ours and git's text are the same, or our pairs cost less: git's solver misses the cheapest at times.
    fn assert_equal_or_cheaper(&self, old: &str, new: &str, factor: u32, what: &str) -> Vec<Pair> {
        let options = Options {
            creation_factor: factor,
        };
        let (old_patches, new_patches) = (self.patches(old), self.patches(new));
        let pairs = compare(&old_patches, &new_patches, &options).expect("pairs");
        let factor = format!("--creation-factor={factor}");
        let gits = self.range_diff(&[&factor, "-s", old, new]);
        let gits: Vec<_> = gits.lines().map(numbers).collect();
        let ours: Vec<_> = pairs.iter().map(|pair| (pair.old, pair.new)).collect();
        if ours == gits {
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
        pairs
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
        for pair in scratch.assert_equal_or_cheaper(&old, &new, factor, &format!("seed {seed}")) {
            *seen
                .entry(format!("{:?} {:?}", pair.kind, pair.by))
                .or_insert(0) += 1;
        }
    }
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
