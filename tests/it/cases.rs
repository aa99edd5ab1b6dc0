//! Inputs that trip tools which make mails and replay patches: each is refused with the right words, or survives `git am`.
//!
//! Hides how a recipe comes to have such an input, and the way back through git.

use bstr::ByteSlice;

use crate::support::{AUTHOR, Tiny};

const MESSAGE: &str = "patches/tiny/0002-batch/message.txt";

/// The fixture with another message for its second patch.
fn with_message(message: &str) -> Tiny {
    let tiny = Tiny::new();
    tiny.sandbox.write(MESSAGE, message);
    tiny.edit(
        "patches/tiny/0002-batch/patch.toml",
        "[inputs]\nlevel = \"scan.start.LEVEL\"\n",
        "",
    );
    tiny.edit("patches/tiny/series.toml", "$$$LEVEL", "$$$_LEVEL");
    tiny
}

/// Refused, naming the patch, the line of the message, and the rule.
#[track_caller]
fn refused(message: &str, line: usize, rule: &str) {
    let tiny = with_message(message);
    tiny.refused(
        2,
        &[
            &format!("patch `batch`, message line {line}: "),
            &format!("({rule})"),
        ],
    );
}

/// Goes out and comes back: trees, authors, dates and whole messages are the same behind `git am`.
#[track_caller]
fn survives(tiny: &Tiny, args: &[&str]) {
    let sandbox = &tiny.sandbox;
    let program = tiny.reroll(&["regen", "-o", "out", "--ref", "refs/heads/series"]);
    program.args(args).run().expect_exit(0);
    sandbox
        .git(["clone", "-q", "tree.git", "am"])
        .run()
        .expect_exit(0);
    let git = |args: &[&str]| sandbox.git(args).dir(sandbox.path("am"));
    git(&["checkout", "-q", "--detach", &tiny.rev])
        .run()
        .expect_exit(0);
    let mails = sandbox.files("out");
    let names = mails
        .keys()
        .filter(|name| name.starts_with('0') && !name.starts_with("0000"));
    let paths: Vec<_> = names.map(|name| sandbox.path("out").join(name)).collect();
    git(&["am", "-q"]).args(paths).run().expect_exit(0);
    let log = |range: &str| {
        git(&[
            "log",
            "--date=raw",
            "--format=%T%n%an%n%ae%n%ad%n%B%x00",
            range,
        ])
        .run()
        .expect_exit(0)
        .stdout
    };
    let (found, expected) = (
        log(&format!("{}..HEAD", tiny.rev)),
        log(&format!("{}..origin/series", tiny.rev)),
    );
    assert!(!expected.is_empty());
    assert_eq!(found, expected);
    let mails = mails.iter().filter(|(name, _)| name.starts_with('0'));
    for (name, mail) in mails {
        let head = mail.split_str("\n\n").next().unwrap_or_default();
        assert!(head.is_ascii(), "{name}: {}", head.as_bstr());
        // What cannot be folded, a single word, may be long.
        let too_long = head.lines().find(|line| {
            line.len() > 78 && line.trim().contains_str(" ") && !line.starts_with(b"From ")
        });
        assert_eq!(too_long.map(ByteSlice::as_bstr), None, "{name}");
    }
}

#[test]
fn a_message_with_a_line_that_cuts_it_is_refused() {
    let table = "lamp: start lamps in batches\n\nBefore and after:\n\nmetric        base\n---\nfirst start   1500 ms\n\nFaster.\n";
    refused(table, 6, "message-cut");
    for line in [
        "--- ",
        "--- a/drivers/lamp.c",
        "Index: drivers/lamp.c",
        "diff -u a b",
        "diff --git a/x b/x",
    ] {
        let message = format!("lamp: start lamps in batches\n\nText.\n{line}\nMore.\n");
        let tiny = with_message(&message);
        tiny.refused(2, &["patch `batch`, message line 4: ", "indent the line"]);
    }
    // The same, indented, is only text.
    let tiny = with_message(
        "lamp: start lamps in batches\n\nBefore and after:\n\n  metric  base\n  ---\n  start   1500 ms\n\nFaster.\n",
    );
    survives(&tiny, &["--author", AUTHOR, "--signoff"]);
}

#[test]
fn a_message_that_quotes_a_diff_is_refused_unless_it_is_indented() {
    let diff = "diff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1,3 +1,4 @@\n x\n y\n z\n+w\n";
    let message = |diff: &str| {
        format!("lamp: start lamps in batches\n\nWhat we do not want:\n\n{diff}\nso drop it.\n")
    };
    refused(&message(diff), 5, "message-cut");
    let indented = diff.replace('\n', "\n    ");
    let indented = format!("    {}\n", indented.trim_end());
    survives(
        &with_message(&message(&indented)),
        &["--author", AUTHOR, "--signoff"],
    );
}

#[test]
fn a_message_that_mail_or_git_would_change_is_refused() {
    let subject = "lamp: start lamps in batches";
    for (message, words) in [
        (
            format!(
                "{subject}\n\nText.\nFrom 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n"
            ),
            "message line 4",
        ),
        (
            format!("{subject}\n\nText, \u{0} a NUL.\n"),
            "message line 3",
        ),
        (format!("{subject}\n\nText.\r\nMore.\n"), "message line 3"),
        (format!("{subject}\n\nText.   \nMore.\n"), "message line 3"),
        (
            format!("{subject}\n\nText.\n\n\n\nMore.\n"),
            "message line 4",
        ),
        (
            format!("{subject}\nsecond line\n\nText.\n"),
            "message line 2",
        ),
        (
            format!("{subject}\n\nSubject: another\n\nText.\n"),
            "message line 3",
        ),
        (
            format!("{subject}\n\nFrom: Some One <someone@example.org>\n\nText.\n"),
            "message line 3",
        ),
        (
            format!("{subject}\n\n{}\n", "x".repeat(999)),
            "message line 3",
        ),
        ("[RFC] lamp: start\n\nText.\n".to_owned(), "bracket"),
        ("lamp:\tstart  lamps\n\nText.\n".to_owned(), "subject"),
        ("Re: lamp: start\n\nText.\n".to_owned(), "subject"),
        ("\n\nText.\n".to_owned(), "subject"),
    ] {
        let tiny = with_message(&message);
        tiny.refused(2, &["patch `batch`", words]);
    }
}

#[test]
fn hostile_subjects_survive_the_way_through_mail() {
    for subject in [
        "mm: ünïcödé subject that is long enough to need folding over more than one line 世界世界世界世界世界世界世界世界世界世界",
        "mm: what about =?UTF-8?q?literal?= encoded-words in an ASCII subject?",
        "mm: 這是一個非常長的主旨行用來測試多位元組字元不會在編碼字中間被切開這是一個非常長的主旨行",
        "mm: an-extremely-long-single-token-subject-without-any-spaces-that-cannot-be-folded-by-the-mailer-at-all-really",
        "mm: a bracketed [tag] in it : with a colon, and \"quotes\" (and parentheses)",
        "mm: \u{1f600} beyond the basic plane, e\u{301} combining",
        "mm: 100% <b>bold</b> & $HOME `id` ../../etc/passwd",
        "../../../../etc/passwd",
        "-rf --force",
    ] {
        let tiny = with_message(&format!("{subject}\n\nTëxt of the mëssage.\n"));
        survives(&tiny, &["--author", AUTHOR, "--signoff"]);
        let names = tiny.sandbox.listing("out");
        assert!(
            names
                .iter()
                .all(|name| name.starts_with("000") || name.starts_with(".reroll")),
            "{names:?}"
        );
    }
}

#[test]
fn hostile_authors_survive_or_are_refused_before_anything_is_written() {
    for author in [
        "Ä. U. Thör <author1@example.org>",
        "作者測試 <author4@example.org>",
        "Foo Bar, Junior <foo+kernel@example.org>",
        "Plain Name <plain@example.org>",
        "A-B O'Neil <o'neil@example.org>",
        "Someone Whose Name Is Long Enough To Be Folded By Mailer <long@example.org>",
    ] {
        let tiny = Tiny::new();
        survives(&tiny, &["--author", author, "--signoff"]);
        let tiny = Tiny::new();
        survives(
            &tiny,
            &[
                "--author",
                author,
                "--signoff",
                "--from",
                "S Ender <sender@example.org>",
            ],
        );
    }
    // Whether the full stop at the end stays depends on the git.
    let stop = "Foo B. Bar, Jr. <foo@example.org>";
    let tiny = Tiny::new();
    if tiny.reroll(&["regen", "-n", "--author", stop]).run().code == Some(0) {
        survives(&tiny, &["--author", stop, "--signoff"]);
    }
    // In the body of a mail, git decodes what looks like an encoded word.
    let literal = "Ünï =?UTF-8?q?literal?= Cöde <x@example.org>";
    survives(&Tiny::new(), &["--author", literal, "--signoff"]);
    let tiny = Tiny::new();
    let program = tiny.reroll(&["regen", "-o", "out", "--author", literal]);
    let program = program.args(["--from", "S Ender <sender@example.org>"]);
    program.run().refused(2).says(&["author-survives"]);
    for author in [
        "Ä. \"Ü\" Thör (Example, Inc.) <author2@example.org>",
        "José \"Pepe\" N. <pepe@example.org>",
        "Tab\tName <tab@example.org>",
        "Double  Blank <blank@example.org>",
        "A <evil> <author@example.org>",
        "A\nBcc: everyone@example.org <author@example.org>",
        "A U Thor <author@example.org>\nBcc: <everyone@example.org>",
        "Esc\u{1b}[31m <esc@example.org>",
        "Way Too Long A Name For Git Which Takes The Address Instead Of It <too-long@example.org>",
    ] {
        let tiny = Tiny::new();
        let ran = tiny
            .reroll(&[
                "regen",
                "-o",
                "out",
                "--signoff",
                "--ref",
                "refs/heads/series",
                "--author",
                author,
            ])
            .run();
        ran.refused(2);
        assert!(!tiny.sandbox.path("out").exists(), "{author}");
        assert_eq!(
            tiny.store
                .repo
                .reference("refs/heads/series")
                .expect("a name"),
            None
        );
    }
}

#[test]
fn hunk_headers_follow_the_attributes_of_the_base_in_a_bare_repository_too() {
    let undo = "\tundo(d, 1);\n\tundo(d, 2);\n\tundo(d, 3);\n\tundo(d, 4);\n\tundo(d, 5);\n\tundo(d, 6);\n\tundo(d, 7);\n\tundo(d, 8);\n";
    let probe = format!(
        "static int probe(struct dev *d)\n{{\n\tint rc;\n\n\trc = one(d);\n\tif (rc)\n\t\tgoto err_data;\n\treturn 0;\n\nerr_data:\n{undo}\treturn rc;\n}}\n"
    );
    let label = |attributes: Option<&str>| {
        let mut tiny = with_message("lamp: undo all\n\nText.\n");
        let files = [
            ("drivers/probe.c", probe.as_bytes()),
            (".gitattributes", attributes.unwrap_or_default().as_bytes()),
        ];
        tiny.commit(&files, "add a probe\n");
        let edit = "[[edit]]\nname = \"undo\"\naction = \"replace\"\nfile = \"drivers/probe.c\"\nfunction = \"probe\"\nstatement = \"undo(d, 7);\"\ntext = \"undo(d, 77);\"\n";
        tiny.sandbox
            .write("patches/tiny/0002-batch/patch.toml", edit);
        tiny.edit(
            "patches/tiny/series.toml",
            "[\"0001-split\", \"0002-batch\", \"0003-table\"]",
            "[\"0002-batch\"]",
        );
        survives(&tiny, &["--author", AUTHOR]);
        // What git says where it has a work tree to read the attributes from.
        let sandbox = &tiny.sandbox;
        sandbox
            .git(["clone", "-q", "tree.git", "work"])
            .run()
            .expect_exit(0);
        let git = sandbox
            .git(["-c", "core.abbrev=12", "diff", &tiny.rev, "origin/series"])
            .dir(sandbox.path("work"));
        let gits = git.run().expect_exit(0).stdout;
        let mail = sandbox.read("out/0001-lamp-undo-all.patch");
        assert!(mail.contains_str(&gits), "{mail}\n--- git says\n{gits}");
        let line = mail
            .lines()
            .find(|line| line.starts_with(b"@@"))
            .expect("a hunk");
        line.to_str_lossy().into_owned()
    };
    assert!(label(Some("*.[ch] diff=cpp\n")).ends_with("@@ static int probe(struct dev *d)"));
    assert!(label(None).ends_with("@@ err_data:"));
}

#[test]
fn a_half_applied_series_is_not_taken_for_a_whole_one() {
    // An unrelated commit has the subject of a patch: that says nothing.
    let mut tiny = Tiny::new();
    tiny.commit(&[("README", b"x\n")], "lamp: move the delay to a table\n");
    let ran = tiny.regen().run().expect_exit(0);
    assert!(!ran.stderr.contains("already applied"), "{}", ran.stderr);
    // Patch after patch merged: only the rest goes out, until all are there.
    let tiny = Tiny::new();
    let report = tiny
        .regen()
        .args(["--ref", "refs/heads/series", "--json"])
        .run()
        .expect_exit(0)
        .json();
    let commits = report["commits"].as_array().expect("a list");
    assert_eq!(report["upstream"].as_array().map(Vec::len), Some(0));
    for (at, commit) in commits.iter().enumerate() {
        let rev = commit["commit"].as_str().expect("an id");
        let program = tiny.sandbox.reroll([
            "regen", "--author", AUTHOR, "-s", "-o", "again", "--force", "--json", "--base", rev,
            "--tree",
        ]);
        let ran = program.arg(&tiny.store.path).run().expect_exit(0);
        let json = ran.json();
        for (index, commit) in commits[..=at].iter().enumerate() {
            let [patch, subject] =
                ["patch", "subject"].map(|key| commit[key].as_str().expect("text"));
            let id = &commit["commit"].as_str().expect("an id")[..12];
            let note = format!(
                "note: patch `{patch}` (\"{subject}\") is upstream and left out: {id} (\"{subject}\") has the same patch-id\n"
            );
            assert!(ran.stderr.contains(&note), "{note}{}", ran.stderr);
            assert_eq!(json["upstream"][index]["patch"], patch);
        }
        assert_eq!(ran.stderr.matches("note: patch `").count(), at + 1);
        if at + 1 == commits.len() {
            let applied = json["applied"].as_array().expect("a list");
            assert!(applied.contains(&"`include/table.h`".into()), "{applied:?}");
            assert!(applied.contains(&"`lamp_warm_up()` in `drivers/lamp.c`".into()));
            continue;
        }
        // What is left makes of the base exactly what the whole series makes of it, in mails that count anew.
        let rest = json["commits"].as_array().expect("a list");
        let trees = |commits: &[serde_json::Value]| {
            let tree = |commit: &serde_json::Value| commit["tree"].clone();
            commits.iter().map(tree).collect::<Vec<_>>()
        };
        assert_eq!(trees(rest), trees(&commits[at + 1..]));
        let mails = tiny.sandbox.files("again");
        let last = mails
            .iter()
            .rfind(|(name, _)| name.starts_with('0'))
            .expect("a mail")
            .1;
        let count = rest.len();
        assert!(last.contains_str(format!("{count}/{count}] ")), "{last}");
        let cover = &mails["0000-cover-letter.patch"];
        let subject = commits[0]["subject"].as_str().expect("text");
        assert!(cover.contains_str("only the rest is sent:\n\n"), "{cover}");
        assert!(cover.contains_str(format!("\n  {subject}\n")), "{cover}");
        assert_eq!(mails.len(), count + 1, "with the cover letter");
    }
    // One of its functions alone, with other content.
    let mut tiny = Tiny::new();
    tiny.change(
        "drivers/lamp.c",
        "/* Sets a level. */\n",
        "static void lamp_settle(void)\n{\n}\n\n/* Sets a level. */\n",
    );
    tiny.refused(
        3,
        &[
            "`lamp_settle()` in `drivers/lamp.c` is in the base already, and not as the recipe makes it",
        ],
    );
}

#[test]
fn what_the_ignore_rules_of_a_tree_would_drop_is_in_the_patches() {
    let mut tiny = Tiny::new();
    tiny.commit(
        &[(".gitignore", b"/include/\n*.o\ntable.h\n/drivers\n")],
        "ignore much\n",
    );
    survives(&tiny, &["--author", AUTHOR, "--signoff"]);
    let mail = tiny
        .sandbox
        .read("out/0003-lamp-move-the-delay-to-a-table.patch");
    assert!(mail.contains_str("create mode 100644 include/table.h"));
    // A symbolic link where a file or a directory is wanted is not followed.
    let tiny = Tiny::new();
    let base = tiny.store.repo.base(&tiny.rev).expect("a base");
    let blob_id = tiny.store.repo.write_blob(b"/etc/passwd").expect("a blob");
    let tree_id = tiny
        .store
        .repo
        .write_tree(
            base.tree_id,
            &[("drivers/lamp.c".into(), 0o120_000, blob_id)],
        )
        .expect("a tree");
    let mut tiny = tiny;
    tiny.rev = tiny
        .store
        .commit(tree_id, Some(base.commit_id), "x\n")
        .to_string();
    tiny.refused(3, &["drivers/lamp.c"]);
}
