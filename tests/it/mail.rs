//! Mails against `git format-patch`, and back through `git mailinfo` and `git am`.
//!
//! Hides how a series is built and how the oracle is asked.

use std::fs;

use bstr::ByteSlice;
use reroll::diff::{Labels, between};
use reroll::error::{Exit, exit_of, refusal};
use reroll::mail::{
    ChangeId, Cover, Mail, Mailbox, Options, Patch, Threading, compose, damage, mbox,
};
use reroll::repo::{ObjectId, Repo, Signature};

use crate::scratch::{
    MODE_EXECUTABLE, MODE_LINK, Random, Scratch, TreeFile, assert_same, author, file, text, thor,
};

/// A series in a scratch repository: its base and its commits.
struct Series {
    scratch: Scratch,
    base: ObjectId,
    commits: Vec<ObjectId>,
}

impl Series {
    /// One commit after another; each changes `mm/f.c` and adds what is named.
    fn new(commits: &[(Signature, String)]) -> Self {
        let extra: [&[TreeFile<'_>]; 4] = [
            &[],
            &[file(
                "include/asm-generic/a_rather_long_header_name_for_the_diffstat.h",
                "1\n",
            )],
            &[
                ("scripts/run", MODE_EXECUTABLE, b"#!\n"),
                file("ünï/with blank", "x"),
            ],
            &[("link", MODE_LINK, b"to"), file("gone", "y\n")],
        ];
        let scratch = Scratch::new();
        let mut files = vec![
            file(".gitattributes", "*.[ch] diff=cpp\n"),
            file("gone", "x\n"),
        ];
        let body: Vec<String> = (0..=commits.len()).map(source).collect();
        let tree = |files: &[TreeFile<'_>], at: usize| {
            let all = [files, &[file("mm/f.c", &body[at])]].concat();
            scratch.tree(&all)
        };
        let base_tree = tree(&files, 0);
        let root = scratch.commit(base_tree, None, &thor(), "root\n");
        let base = scratch.commit(base_tree, Some(root), &thor(), "base\n");
        let mut tip = base;
        let mut ids = Vec::new();
        for (at, (author, message)) in commits.iter().enumerate() {
            for new in extra[at % extra.len()] {
                files.retain(|(path, ..)| path != &new.0);
                files.push(*new);
            }
            if at == 5 {
                files.retain(|(path, ..)| *path != "gone");
            }
            tip = scratch.commit(tree(&files, at + 1), Some(tip), author, message);
            ids.push(tip);
        }
        scratch.publish(tip);
        Self {
            scratch,
            base,
            commits: ids,
        }
    }

    fn patches(&self, repo: &Repo) -> Vec<Patch> {
        let mut old = tree_of(repo, self.base);
        let labels = Labels::of(old);
        let mut patches = Vec::new();
        for (at, &id) in self.commits.iter().enumerate() {
            let commit = repo.commit(id).expect("a commit");
            let files = between(repo, old, commit.tree_id, &labels).expect("a diff");
            old = commit.tree_id;
            patches.push(Patch {
                name: format!("{:04}-patch", at + 1),
                commit,
                files,
                notes: String::new(),
            });
        }
        patches
    }

    fn cover(&self, repo: &Repo, subject: &str, blurb: &str) -> Cover {
        let (old, last) = (
            tree_of(repo, self.base),
            *self.commits.last().expect("a commit"),
        );
        Cover {
            subject: subject.to_owned(),
            blurb: blurb.to_owned(),
            files: between(repo, old, tree_of(repo, last), &Labels::of(old)).expect("a diff"),
            notes: String::new(),
        }
    }

    /// What git writes for the same commits, in a work tree. Message ids aside, `args` ask for the same.
    fn gits(
        &self,
        cover: Option<&Cover>,
        committer: &Mailbox,
        args: &[&str],
    ) -> Vec<(String, Vec<u8>)> {
        if !self.scratch.path("work").exists() {
            self.scratch.clone("work");
        }
        let _ = fs::remove_dir_all(self.scratch.path("out"));
        let description = self.scratch.path("description");
        let mut all = vec![
            "-c",
            "core.abbrev=12",
            "format-patch",
            "-q",
            "--no-renames",
            "-o",
            "../out",
        ];
        let (base, from) = (
            format!("--base={}", self.base),
            format!("--description-file={}", text(&description)),
        );
        if let Some(cover) = cover {
            fs::write(
                &description,
                format!("{}\n\n{}\n", cover.subject, cover.blurb),
            )
            .expect("written");
            all.extend(["--cover-letter", "--cover-from-description=subject", &from]);
        }
        let range = format!("{}..main", self.base);
        all.extend([&base, "--signature=test 1"]);
        all.extend(args);
        all.push(&range);
        let when = thor();
        let env = [
            format!("GIT_COMMITTER_NAME={}", committer.name),
            format!("GIT_COMMITTER_EMAIL={}", committer.email),
            format!("GIT_COMMITTER_DATE={} -0330", when.time),
        ];
        let env: Vec<&str> = env.iter().map(String::as_str).collect();
        let output = self.scratch.try_git("work", &env, &all);
        assert!(output.exit.success(), "{}", output.stderr.to_str_lossy());
        let mut files: Vec<_> = fs::read_dir(self.scratch.path("out"))
            .expect("git wrote a directory")
            .map(|entry| entry.expect("an entry").path())
            .map(|path| {
                let name = path.file_name().expect("a name").to_str().expect("UTF-8");
                (name.to_owned(), fs::read(&path).expect("readable"))
            })
            .collect();
        files.sort();
        files
    }
}

impl Series {
    fn gits_stdout(&self, args: &[&str]) -> Vec<u8> {
        let range = format!("{}..main", self.base);
        self.scratch.git(&[args, &[&range]].concat())
    }

    /// Applies each mail by `git am`, and then all of them as one mbox: tree, author, date and message must be
    /// those of the commit.
    fn round_trip(&self, mails: &[Mail]) -> Vec<ObjectId> {
        let patches: Vec<&Mail> = mails
            .iter()
            .filter(|mail| !mail.file_name.ends_with("cover-letter.patch"))
            .collect();
        assert_eq!(patches.len(), self.commits.len());
        let all: Vec<Mail> = patches.iter().map(|&mail| mail.clone()).collect();
        let each = patches
            .iter()
            .map(|mail| (mail.file_name.clone(), mail.bytes.clone()));
        self.apply("am-each", &each.collect::<Vec<_>>());
        self.apply("am-mbox", &[("series.mbox".to_owned(), mbox(&all))])
    }

    fn apply(&self, name: &str, files: &[(String, Vec<u8>)]) -> Vec<ObjectId> {
        let work = self.scratch.clone(name);
        self.scratch
            .git_in(name, &["reset", "-q", "--hard", &self.base.to_string()]);
        for (file, bytes) in files {
            fs::write(self.scratch.path(file), bytes).expect("written");
            let output = self
                .scratch
                .try_git(name, &[], &["am", "-q", &format!("../{file}")]);
            assert!(
                output.exit.success(),
                "{file}: {}",
                output.stderr.to_str_lossy()
            );
        }
        let range = format!("{}..HEAD", self.base);
        let ids = self
            .scratch
            .git_in(name, &["rev-list", "--reverse", &range]);
        let ids: Vec<ObjectId> = ids
            .to_str()
            .expect("ids")
            .lines()
            .map(|id| id.parse().expect("an id"))
            .collect();
        let repo = Repo::open(&work).expect("a repository");
        let got: Vec<_> = ids.iter().map(|&id| facts(&repo, id)).collect();
        let wanted: Vec<_> = self.commits.iter().map(|&id| facts(&repo, id)).collect();
        assert_eq!(got, wanted);
        ids
    }
}

/// What of a commit a mail has to carry.
fn facts(repo: &Repo, id: ObjectId) -> (ObjectId, Signature, bstr::BString) {
    let commit = repo.commit(id).expect("a commit");
    (commit.tree_id, commit.author, commit.message)
}

fn tree_of(repo: &Repo, commit: ObjectId) -> ObjectId {
    repo.commit(commit).expect("a commit").tree_id
}

/// C with a jump label, so that the `cpp` driver shows.
fn source(version: usize) -> String {
    let mut text = String::from("int f(void)\n{\n\tone();\n\ttwo();\n\tthree();\nout:\n");
    for line in 0..20 {
        let value = if line == 12 { version } else { 0 };
        text.extend([
            "\tcall(",
            &line.to_string(),
            ", ",
            &value.to_string(),
            ");\n",
        ]);
    }
    text + "}\n"
}

fn options() -> Options {
    Options {
        signature: "test 1".to_owned(),
        ..Options::default()
    }
}

fn mailbox(name: &str, email: &str) -> Mailbox {
    Mailbox {
        name: name.to_owned(),
        email: email.to_owned(),
    }
}

fn committer(series: &Series) -> Mailbox {
    let last = series.commits.last().expect("a commit");
    let commit = series.scratch.repo.commit(*last).expect("a commit");
    mailbox(
        &commit.committer.name.to_string(),
        &commit.committer.email.to_string(),
    )
}

/// Message ids hold git's clock; everything else about them is compared.
fn without_ids(mail: &[u8]) -> Vec<u8> {
    let lines = mail.lines_with_terminator().map(|line| {
        let label = ["Message-ID: ", "In-Reply-To: ", "References: "]
            .iter()
            .find(|label| line.starts_with(label.as_bytes()));
        label.map_or(line.to_vec(), |label| format!("{label}<id>\n").into_bytes())
    });
    lines.collect::<Vec<_>>().concat()
}

fn assert_equal(ours: &[Mail], gits: &[(String, Vec<u8>)]) {
    let names: Vec<&str> = ours.iter().map(|mail| mail.file_name.as_str()).collect();
    let wanted: Vec<&str> = gits.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, wanted);
    for (mail, (name, bytes)) in ours.iter().zip(gits) {
        assert_same(&without_ids(&mail.bytes), &without_ids(bytes), name);
    }
}

/// Authors and messages that survive, each with something that trips a tool.
fn hostile() -> Vec<(Signature, String)> {
    let cases = [
        (
            "Ä. U. Thör",
            "mm: ünïcödé subject that is long enough to need folding over more than one line 世界世界世界世界世界世界世界世界世界世界",
            "body\n",
        ),
        (
            "Foo B. Bar, Jr",
            "mm: what about =?UTF-8?q?literal?= encoded-words in an ASCII subject?",
            "Bödy.\n",
        ),
        (
            "作者測試",
            "mm: 這是一個非常長的主旨行用來測試多位元組字元不會在編碼字中間被切開這是一個非常長的主旨行",
            "",
        ),
        (
            "Plain Name",
            "mm: an-extremely-long-single-token-subject-without-any-spaces-that-cannot-be-folded-by-the-mailer-at-all-really",
            "Text.\n\n  indented ---\n --- a/f\n diff --git a/x b/x\n\nSigned-off-by: Plain Name <plain@example.org>\n",
        ),
        (
            "O'Neil \"Q\" \\ Back",
            "mm: trailing dot. and [tag] in the middle: yes...",
            "-- >8 --\n",
        ),
        (
            "Very Long Name That Goes On (and On) Until It Is Sixty Byte",
            "Makefile, scripts: x/y_z.c & a~b^c",
            "From: is no header in the second line\nFrom here\n",
        ),
        (
            "A U Thor",
            "mm: a subject of just about the length that is allowed for one in kernel",
            "---a\n----\n--\n+++ b/f\n@@ -1 +1 @@\n",
        ),
        ("=?x", "ünï: short", "\tTab first\n"),
    ];
    cases
        .iter()
        .enumerate()
        .map(|(at, (name, subject, body))| {
            let body = body.replace("From here", "from here");
            let body = body.replace("From: is", "Sender: is");
            let message = if body.is_empty() {
                format!("{subject}\n")
            } else {
                format!("{subject}\n\n{body}")
            };
            (
                author(name, &format!("author{at}+kernel@example.org")),
                message,
            )
        })
        .collect()
}

/// The same, but for the names that lose something where they stand in the body.
fn hostile_in_body() -> Vec<(Signature, String)> {
    let mut commits = hostile();
    commits[4].0.name = "O'Neil & Sons".into();
    commits[7].0.name = "Ex = Why".into();
    commits
}

const COVER: &str =
    "mm: the whole sérieś of patches, with a subject that has to be folded somewhere";

#[test]
fn a_hostile_series_equals_gits() {
    let series = Series::new(&hostile());
    let patches = series.patches(&series.scratch.repo);
    let cover = series.cover(&series.scratch.repo, COVER, "Blurb.\n\nMöre.");
    let options = Options {
        base_commit: Some(series.base),
        ..options()
    };
    let mails = compose(Some(&cover), &patches, &options).expect("mails");
    assert_equal(&mails, &series.gits(Some(&cover), &committer(&series), &[]));
    series.round_trip(&mails);
}

#[test]
fn a_series_with_a_sender_recipients_and_threading_equals_gits() {
    let series = Series::new(&hostile_in_body());
    let patches = series.patches(&series.scratch.repo);
    let cover = series.cover(&series.scratch.repo, COVER, "Blurb.\n\nMöre.");
    let sender = mailbox("Sänder, S", "sender@example.org");
    let full = Options {
        version: Some(12),
        prefix: "RFC PATCH".to_owned(),
        sender: Some(sender.clone()),
        to: vec![
            mailbox("", "list@example.org"),
            mailbox("A Person", "a@example.org"),
        ],
        cc: vec![mailbox("B Person", "b@example.org")],
        threading: Threading::Shallow,
        base_commit: Some(series.base),
        change_id: Some(ChangeId::parse("20261130-topic-0123456789ab").expect("an id")),
        ..options()
    };
    let args = [
        "-v12",
        "--subject-prefix=RFC PATCH",
        "--from=Sänder, S <sender@example.org>",
        "--to=list@example.org",
        "--to=A Person <a@example.org>",
        "--cc=B Person <b@example.org>",
        "--thread",
    ];
    let gits = series.gits(Some(&cover), &sender, &args);
    let mut mails = compose(Some(&cover), &patches, &full).expect("mails");
    series.round_trip(&mails);
    let line = b"change-id: 20261130-topic-0123456789ab\n";
    assert!(mails[0].bytes.contains_str(line));
    mails[0].bytes = mails[0].bytes.replace(line, b"");
    assert_equal(&mails, &gits);
}

#[test]
fn every_mail_comes_back_as_its_commit_from_files_and_from_an_mbox() {
    let series = Series::new(&hostile());
    let mut patches = series.patches(&series.scratch.repo);
    patches[0].notes = "Changes since v1:\n- möre\n  --- indented\n".to_owned();
    let mut cover = series.cover(&series.scratch.repo, COVER, "Blurb.");
    cover.notes = "v2: all of it".to_owned();
    let mails = compose(Some(&cover), &patches, &options()).expect("mails");
    series.round_trip(&mails);
}

#[test]
fn an_mbox_equals_what_git_writes_to_standard_output() {
    let series = Series::new(&hostile());
    let attributes = format!("--attr-source={}", series.base);
    let gits = series.gits_stdout(&[
        &attributes,
        "-c",
        "core.abbrev=12",
        "format-patch",
        "--stdout",
        "--signature=test 1",
        "--no-renames",
    ]);
    let patches = series.patches(&series.scratch.repo);
    let mails = compose(None, &patches, &options()).expect("mails");
    assert_same(&mbox(&mails), &gits, "mbox");
}

#[test]
fn the_users_configuration_and_the_kind_of_repository_change_nothing() {
    let series = Series::new(&hostile());
    let bare = &series.scratch.repo;
    let all = |repo: &Repo| {
        let cover = series.cover(repo, COVER, "Blurb.");
        let mails = compose(Some(&cover), &series.patches(repo), &options()).expect("mails");
        mbox(&mails)
    };
    let wanted = all(bare);
    assert!(
        wanted.contains_str("@@ -16,7 +16,7 @@ int f(void)"),
        "no jump label"
    );
    let hostile = [
        ("diff.algorithm", "histogram"),
        ("diff.context", "1"),
        ("diff.interHunkContext", "9"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.srcPrefix", "x/"),
        ("diff.suppressBlankEmpty", "true"),
        ("diff.indentHeuristic", "false"),
        ("diff.renames", "copies"),
        ("diff.cpp.xfuncname", "^.*call.*$"),
        ("diff.statNameWidth", "12"),
        ("core.abbrev", "7"),
        ("core.quotePath", "false"),
        ("core.bare", "false"),
        ("core.autocrlf", "true"),
        ("core.attributesFile", "../attributes"),
        ("format.from", "Else <else@example.org>"),
        ("format.subjectPrefix", "NO"),
        ("format.numbered", "false"),
        ("format.headers", "X-No: no"),
        ("format.signature", "no"),
        ("format.encodeEmailHeaders", "false"),
        ("format.mboxrd", "true"),
        ("i18n.logOutputEncoding", "ISO-8859-1"),
        ("i18n.commitEncoding", "ISO-8859-1"),
        ("user.name", "No Body"),
    ];
    series.scratch.clone("hostile");
    fs::write(series.scratch.path("attributes"), "*.c -diff\n").expect("written");
    for (key, value) in hostile {
        series.scratch.git_in("hostile", &["config", key, value]);
    }
    let info = series.scratch.path("hostile/.git/info");
    fs::create_dir_all(&info).expect("a directory");
    fs::write(info.join("attributes"), "*.c -diff\n").expect("written");
    fs::write(series.scratch.path("hostile/.gitattributes"), "*.c -diff\n").expect("written");
    let work = Repo::open(&series.scratch.path("hostile")).expect("a repository");
    assert_same(&all(&work), &wanted, "hostile configuration");
}

#[test]
fn without_a_cover_the_first_patch_names_the_base() {
    for count in [1, 3] {
        let series = Series::new(&hostile()[..count]);
        let patches = series.patches(&series.scratch.repo);
        let with_base = Options {
            base_commit: Some(series.base),
            version: Some(1),
            ..options()
        };
        let mails = compose(None, &patches, &with_base).expect("mails");
        let gits = series.gits(None, &committer(&series), &["-v1", "--no-cover-letter"]);
        assert_equal(&mails, &gits);
        let base = format!("\n\nbase-commit: {}\n", series.base);
        assert!(mails[0].bytes.contains_str(base));
    }
}

/// Rules that refuse what today's git would carry, for the sake of other software.
const CAUTIOUS: [&str; 6] = [
    "mbox-from",
    "control-character",
    "nul",
    "line-length",
    "carriage-return",
    "address",
];

/// Checks the model of git against git: a commit without damage must come back as it was, and one
/// with damage must not.
fn check_model(scratch: &Scratch, author: &Signature, message: &str, sender: Option<&Mailbox>) {
    let (old, new) = (
        scratch.tree(&[file("f", "1\n")]),
        scratch.tree(&[file("f", "2\n")]),
    );
    let base = scratch.commit(old, None, &thor(), "base\n");
    let id = scratch.commit(new, Some(base), author, message);
    let patch = Patch {
        name: "x".to_owned(),
        commit: scratch.repo.commit(id).expect("a commit"),
        files: between(&scratch.repo, old, new, &Labels::of(old)).expect("a diff"),
        notes: String::new(),
    };
    let options = Options {
        sender: sender.cloned(),
        ..options()
    };
    let found = damage(None, std::slice::from_ref(&patch), &options);
    let survived = survives(scratch, base, id, sender);
    let exact: Vec<_> = found
        .iter()
        .filter(|finding| !CAUTIOUS.contains(&finding.rule))
        .collect();
    if found.is_empty() {
        assert!(survived, "not noticed: {author:?} {message:?}");
        let mails = compose(None, &[patch], &options).expect("mails");
        assert_eq!(mails.len(), 1);
    } else {
        assert!(
            exact.is_empty() || !survived,
            "refused, but survives: {found:?} {message:?}"
        );
        compose(None, &[patch], &options).expect_err("damage is refused");
    }
}

fn survives(scratch: &Scratch, base: ObjectId, id: ObjectId, sender: Option<&Mailbox>) -> bool {
    if !scratch.path("am").exists() {
        scratch.publish(base);
        scratch.clone("am");
    }
    let from = sender.map(|Mailbox { name, email }| format!("--from={name} <{email}>"));
    let range = format!("{base}..{id}");
    let mut args = vec!["format-patch", "--stdout", "--no-renames", &range];
    args.extend(from.as_deref());
    fs::write(scratch.path("mail"), scratch.git(&args)).expect("written");
    scratch.git_in("am", &["reset", "-q", "--hard", &base.to_string()]);
    let output = scratch.try_git("am", &[], &["am", "-q", "../mail"]);
    if !output.exit.success() {
        let _ = scratch.try_git("am", &[], &["am", "--abort"]);
        return false;
    }
    let repo = Repo::open(&scratch.path("am")).expect("a repository");
    let head = repo.base("HEAD").expect("a commit").commit_id;
    facts(&repo, head) == facts(&scratch.repo, id)
}

#[test]
fn a_message_is_refused_exactly_when_git_damages_it() {
    let lines = [
        "plain text",
        "",
        "---",
        "--- ",
        "--- a/f",
        "---\ta/f",
        "----",
        "---a",
        "Index: f",
        "Index:",
        "diff -u",
        "diff --git a/f b/f",
        "difference",
        " diff --git a/f b/f",
        "From: A <a@example.org>",
        "subject: x",
        "Date: today",
        "[PATCH] x",
        ">From me",
        ">From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001",
        "[PATCH]x",
        "date : x",
        "blank at the end ",
        "+++ b/f",
        "@@ -1 +1 @@",
        "-- ",
        "-- >8 --",
        "# comment",
        "ünïcödé",
        "\tindented",
        "Signed-off-by: A U Thor <author@example.org>",
    ];
    let subjects = [
        "mm: one",
        "[tag] mm: one",
        "Re: mm",
        "re:x",
        ": x",
        "mm:  two",
        "mm:\ttab",
        " mm: lead",
        "ünï cödé",
        "mm: [x] y",
        "=?UTF-8?q?x?=",
        "Regular: x",
        "mm: trail.",
        "x",
    ];
    let scratch = Scratch::new();
    let mut random = Random(0x3a11);
    for line in lines {
        check_model(&scratch, &thor(), &format!("mm: x\n\n{line}\nlast\n"), None);
        check_model(
            &scratch,
            &thor(),
            &format!("mm: x\n\nfirst\n{line}\nlast\n"),
            None,
        );
    }
    for subject in subjects {
        check_model(&scratch, &thor(), &format!("{subject}\n\nbody\n"), None);
    }
    for end in [
        "",
        "\n",
        "\n\n",
        "\n\nbody",
        "\nsecond\n",
        "\n\n\nbody\n",
        "\n\nbody\n\n",
    ] {
        check_model(&scratch, &thor(), &format!("mm: x{end}"), None);
    }
    for _ in 0..20 {
        let body: Vec<_> = (0..random.below(5)).map(|_| random.pick(&lines)).collect();
        let message = format!("{}\n\n{}\n", random.pick(&subjects), body.join("\n"));
        check_model(&scratch, &thor(), &message, None);
    }
}

#[test]
fn a_name_is_refused_exactly_when_git_damages_it() {
    let names = [
        "A U Thor",
        "José \"Pepe\" N",
        "Jose \"Pepe\" N",
        "Foo (Comment) Bar",
        "(Foo)",
        "(Føø)",
        "Føø (Bar",
        "Føø \\ Bar",
        "Føø (a\\b) Bar",
        "Foo \\ Bar",
        "Foo, Jr.",
        "Foo, Jr",
        "Føø, Inc",
        "a@b",
        "Foo  Bar",
        "Foo\tBar",
        "=?UTF-8?q?x?=",
        "'Foo'",
        "O'Foo",
        "作者測試",
        "0123456789012345678901234567890123456789012345678901234567890",
        "012345678901234567890123456789012345678901234567890123456789",
        "Foo: Bar; Baz",
        "[Foo] Bar",
        "From",
        "-",
    ];
    let scratch = Scratch::new();
    let sender = mailbox("Sender", "sender@example.org");
    for name in names {
        let author = author(name, "author@example.org");
        check_model(&scratch, &author, "mm: x\n\nbody\n", None);
        check_model(&scratch, &author, "mm: x\n\nbody\n", Some(&sender));
    }
    let mut random = Random(0xa07);
    let parts = [
        "A", " ", " ", "\"", "(", ")", "\\", "ü", ".", ",", "'", "=?", "x y", ";",
    ];
    for round in 0..40 {
        let name: String = (0..2 + random.below(7))
            .map(|_| random.pick(&parts))
            .collect();
        let name = format!("N{name}n");
        let sender = (round % 2 == 0).then_some(&sender);
        let author = author(&name, "author@example.org");
        check_model(&scratch, &author, "mm: x\n\nbody\n", sender);
    }
}

/// Names and subjects of every length, so that each place where git folds is met.
#[test]
fn random_headers_and_shortlogs_equal_gits() {
    let words = [
        "mm:",
        "add",
        "a",
        "ünïcödé",
        "世界",
        "much",
        "longer-words-of-all-kinds",
        "x",
        "(paren)",
        "\"quoted\"",
        "=?q?",
        "comma,",
        "dot.",
        "under_score",
        "q=1?",
        "é",
        "\u{301}combining",
        "\u{1f600}",
        "-",
        "..",
    ];
    let mut random = Random(0xf01d);
    let commits: Vec<_> = (0..70)
        .map(|at| {
            let mut some = |most: usize| {
                let words: Vec<_> = (0..=random.below(most))
                    .map(|_| random.pick(&words))
                    .collect();
                words.join(" ")
            };
            let (name, subject) = (some(4), some(18));
            let name = format!("N {} N", name.replace(['"', '(', ')'], ""));
            let name: String = name.chars().take(25).collect();
            let name = format!("{}n", name.trim());
            let email = format!("{}@example.org", "a".repeat(1 + at % 40));
            (author(&name, &email), format!("mm: {subject}\n\nbody\n"))
        })
        .collect();
    let series = Series::new(&commits);
    let patches = series.patches(&series.scratch.repo);
    let cover = series.cover(&series.scratch.repo, "mm: x", "Blurb.");
    let options = Options {
        base_commit: Some(series.base),
        ..options()
    };
    let mails = compose(Some(&cover), &patches, &options).expect("mails");
    assert_equal(&mails, &series.gits(Some(&cover), &committer(&series), &[]));
}

#[test]
fn message_ids_are_stable_and_differ_where_mails_do() {
    let series = Series::new(&hostile_in_body()[..2]);
    let patches = series.patches(&series.scratch.repo);
    let on = |base_tree, version: Option<u32>, prefix: &str| -> Vec<String> {
        let options = Options {
            base_tree,
            version,
            prefix: prefix.to_owned(),
            threading: Threading::Shallow,
            sender: Some(mailbox("Sender", "sender@example.org")),
            change_id: Some(ChangeId::parse("20261130-topic-0123456789ab").expect("an id")),
            ..options()
        };
        let mails = compose(None, &patches, &options).expect("mails");
        mails
            .into_iter()
            .filter_map(|mail| mail.message_id)
            .collect()
    };
    let ids = |version, prefix: &str| on(None, version, prefix);
    let first = ids(None, "PATCH");
    let start = "<20261130-topic-v1-2-0123456789ab-";
    assert!(
        first[1].starts_with(start) && first[1].ends_with("@example.org>"),
        "{}",
        first[1]
    );
    assert_eq!(first, ids(Some(1), "PATCH"));
    assert_ne!(first, ids(Some(2), "PATCH"));
    // Whatever makes them other mails makes other ids.
    assert_ne!(first, ids(None, "PATCH RESEND"));
    assert_ne!(first, ids(None, "RFC PATCH"));
    let base = Some(series.base);
    assert_ne!(first, on(base, None, "PATCH"));
    assert_eq!(on(base, None, "PATCH"), on(base, None, "PATCH"));
}

#[test]
fn damage_is_refused_with_patch_line_rule_and_advice() {
    let body = "mm: speed up\n\nmetric  base\n---\nrebind  62%\n\nSigned-off-by: A U Thor <author@example.org>\n";
    let series = Series::new(&[(thor(), body.to_owned())]);
    let patches = series.patches(&series.scratch.repo);
    let error = compose(None, &patches, &options()).expect_err("refused");
    assert_eq!(exit_of(&error), Exit::Usage);
    assert_eq!(
        error.to_string(),
        "patch `0001-patch`, message line 4: `---` ends the message: git drops what follows, tags too (message-cut)"
    );
    let hint = refusal(&error).and_then(|refusal| refusal.hint.as_deref());
    assert_eq!(hint, Some("indent the line, or write it differently"));
}

#[test]
fn threading_without_a_change_id_is_refused() {
    let series = Series::new(&hostile()[..1]);
    let options = Options {
        threading: Threading::Shallow,
        ..options()
    };
    let patches = series.patches(&series.scratch.repo);
    let error = compose(None, &patches, &options).expect_err("refused");
    assert_eq!(exit_of(&error), Exit::Usage);
    for wrong in [
        "",
        "topic",
        "2026-topic-0123456789ab",
        "20261130-0123456789ab",
        "20261130-a b-0123456789ab",
    ] {
        assert!(ChangeId::parse(wrong).is_err(), "{wrong}");
    }
}
