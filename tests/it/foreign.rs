//! `reroll check` on what reroll did not make: mails of git and of people, branches, an mbox.
//!
//! Hides the little kernel that they are for.

use crate::support::{Ran, Sandbox};

const MAKEFILE: &str = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 0\n";

/// A repository `r` with a kernel at `base`, and a branch `topic` on it with these commits: each a list of git's arguments.
fn repository(commits: &[(&str, &[&[&str]])]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox
        .git(["init", "-q", "-b", "main", "r"])
        .run()
        .expect_exit(0);
    sandbox.write("r/Makefile", MAKEFILE);
    sandbox.write(
        "r/mm/a.c",
        (1..=30).map(|it| format!("{it}\n")).collect::<String>(),
    );
    sandbox.write("r/mm/old.c", "int old;\n");
    let git = |args: &[&str]| {
        sandbox
            .git(args)
            .dir(sandbox.path("r"))
            .run()
            .expect_exit(0)
    };
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "base"]);
    git(&["tag", "base"]);
    git(&["checkout", "-q", "-b", "topic"]);
    for (subject, steps) in commits {
        for step in *steps {
            if let ["write", path, text] = step {
                sandbox.write(format!("r/{path}"), text);
            } else {
                git(step);
            }
        }
        git(&["add", "."]);
        let message =
            format!("{subject}\n\nSay why.\n\nSigned-off-by: A U Thor <author@example.org>");
        git(&["commit", "-q", "-m", &message]);
    }
    sandbox
}

fn format_patch(sandbox: &Sandbox, to: &str, args: &[&str]) {
    let git = sandbox
        .git(["format-patch", "-q", "-o"])
        .dir(sandbox.path("r"));
    let git = git.args([sandbox.path(to)]).args([
        "--to",
        "A Person <person@example.org>",
        "--cc",
        "linux-mm@kvack.org",
    ]);
    git.args(args).args(["base..topic"]).run().expect_exit(0);
}

fn check(sandbox: &Sandbox, args: &[&str]) -> Ran {
    sandbox.reroll(["check", "--tree", "r"]).args(args).run()
}

/// Renames, deletions, modes and links.
const ODD: [(&str, &[&[&str]]); 4] = [
    ("mm: rename a file", &[&["mv", "mm/a.c", "mm/b.c"]]),
    (
        "mm: delete a file",
        &[
            &["rm", "-q", "mm/old.c"],
            &["write", "mm/new.c", "int new;\n"],
        ],
    ),
    (
        "mm: change a mode",
        &[
            &["update-index", "--chmod=+x", "mm/new.c"],
            &["checkout", "-q", "mm/new.c"],
        ],
    ),
    (
        "mm: delete all of it",
        &[
            &["rm", "-q", "-r", "-f", "mm"],
            &["write", "b.c", "int b;\n"],
        ],
    ),
];

#[test]
fn renames_deletions_and_modes_apply() {
    let sandbox = repository(&ODD);
    for (dir, arg) in [("plain", "--no-renames"), ("renames", "-M")] {
        format_patch(
            &sandbox,
            dir,
            &["--cover-letter", "--subject-prefix=PATCH", arg],
        );
        let ran = check(&sandbox, &[dir, "--base", "base", "--gate", "apply"]);
        ran.expect_exit(0)
            .says(&["is about functions that this base does not have"]);
        let mbox: Vec<u8> = sandbox
            .files(dir)
            .into_values()
            .flat_map(Vec::from)
            .collect();
        sandbox.write("s.mbx", mbox);
        check(&sandbox, &["s.mbx", "--base", "base", "--gate", "apply"]).expect_exit(0);
    }
    check(
        &sandbox,
        &["--branch", "topic", "--base", "base", "--gate", "apply"],
    )
    .expect_exit(0);
}

#[test]
fn patches_are_in_the_order_of_their_numbers() {
    let texts: Vec<_> = (1..=11).map(|it| format!("line {it}\n")).collect();
    let steps: Vec<Vec<[&str; 3]>> = texts
        .iter()
        .map(|text| vec![["write", "mm/a.c", text]])
        .collect();
    let steps: Vec<Vec<&[&str]>> = steps
        .iter()
        .map(|step| step.iter().map(|it| &it[..]).collect())
        .collect();
    let subjects: Vec<_> = (1..=11).map(|it| format!("mm: step {it}")).collect();
    let commits: Vec<_> = subjects
        .iter()
        .zip(&steps)
        .map(|(subject, steps)| (subject.as_str(), &steps[..]))
        .collect();
    let sandbox = repository(&commits);
    format_patch(&sandbox, "git", &[]);
    for (name, bytes) in sandbox.files("git") {
        sandbox.write(format!("out/{}", name.trim_start_matches('0')), bytes);
    }
    check(&sandbox, &["out", "--base", "base", "--gate", "apply"]).expect_exit(0);
    let seventh = sandbox.path("out/7-mm-step-7.patch");
    std::fs::remove_file(seventh).expect("it is there");
    let ran = check(&sandbox, &["out", "--base", "base", "--gate", "apply"]);
    ran.expect_exit(2)
        .says(&["patch 7/11 is missing from `out`"]);
}

const ONE: [(&str, &[&[&str]]); 1] = [("mm: change a line", &[&["write", "mm/a.c", "1\n"]])];

#[test]
fn two_versions_are_not_one() {
    let sandbox = repository(&ONE);
    format_patch(&sandbox, "out", &[]);
    format_patch(&sandbox, "out", &["-v2"]);
    let ran = check(&sandbox, &["out", "--base", "base", "--gate", "apply"]);
    ran.expect_exit(2)
        .says(&["`out` holds more than one version: v1 and v2"]);
}

#[test]
fn the_base_that_the_mails_name_is_used() {
    let sandbox = repository(&ONE);
    format_patch(&sandbox, "out", &["--base=base"]);
    check(&sandbox, &["out", "--gate", "apply"]).expect_exit(0);
    format_patch(&sandbox, "bare", &[]);
    let ran = check(&sandbox, &["bare", "--gate", "apply"]);
    ran.expect_exit(2).says(&["does not apply to `HEAD`"]);
    let mail = sandbox
        .files("out")
        .into_values()
        .next()
        .expect("a mail")
        .to_string();
    let at = mail.find("base-commit: ").expect("a base");
    sandbox.write(
        "other/0001-a.patch",
        format!("{}base-commit: {}\n", &mail[..at], "1".repeat(40)),
    );
    let ran = check(&sandbox, &["other", "--gate", "apply"]);
    ran.expect_exit(2).says(&[
        "the mails name their base, `base-commit: 1111",
        "name another base with `--base`",
    ]);
    check(&sandbox, &["other", "--base", "base", "--gate", "apply"]).expect_exit(0);
}

#[test]
fn a_tree_that_is_not_there_is_not_taken_for_a_base_that_is_missing() {
    let sandbox = repository(&ONE);
    format_patch(&sandbox, "out", &["--base=base"]);
    let ran = sandbox.reroll(["check", "out", "--tree", "nowhere"]).run();
    let ran = ran.expect_exit(2).says(&["cannot open `nowhere`"]);
    assert!(!ran.stderr.contains("base-commit"), "{}", ran.stderr);
    // Without a tree and a cache the name is unknown, and nothing is fetched for it.
    let ran = sandbox.reroll(["check", "out"]).run();
    ran.expect_exit(2).says(&["the cache has no base `"]);
}

#[test]
fn a_subject_that_begins_like_an_answer_is_found_and_not_passed_over() {
    let sandbox = repository(&[
        ONE[0],
        ("Re: mm: change more", &[&["write", "mm/a.c", "2\n"]]),
    ]);
    let args = ["--branch", "topic", "--base", "base", "--gate", "apply"];
    let ran = check(&sandbox, &args);
    ran.expect_exit(1);
}

#[test]
fn rules_are_about_those_who_made_the_mails() {
    let sandbox = repository(&ODD);
    let mail = |what: &str| check(&sandbox, &[what, "--base", "base", "--gate", "mail"]);
    // What git writes of a branch has no cover letter, no recipients and no base that a person chose.
    let ran = check(
        &sandbox,
        &["--branch", "topic", "--base", "base", "--gate", "mail"],
    );
    ran.expect_exit(0);
    // Who has written mails is asked for those, but not for what only a recipe has.
    format_patch(&sandbox, "out", &[]);
    let ran = mail("out").expect_exit(1);
    let said = ran.stdout.to_string();
    for rule in ["cover-missing", "base-named"] {
        assert!(said.contains(&format!("({rule})")), "{said}");
    }
    for rule in [
        "generated-content",
        "change-id-missing",
        "recipients-missing",
        "version-changelog",
    ] {
        assert!(!said.contains(rule), "{said}");
    }
    // A later version says what changed, in a directory as well.
    format_patch(&sandbox, "v2", &["-v2", "--base=base"]);
    let said = mail("v2").expect_exit(1).stdout.to_string();
    assert!(
        said.contains("(version-changelog)") && said.contains("(version-link)"),
        "{said}"
    );
    let first = sandbox.files("v2").into_iter().next().expect("a mail");
    let text = first.1.to_string().replacen(
        "---\n",
        "---\nChanges since v1: all of it.\nLink: https://lore.example.org/x\n\n",
        1,
    );
    sandbox.write(format!("v2/{}", first.0), text);
    let said = mail("v2").expect_exit(1).stdout.to_string();
    assert!(!said.contains("version-"), "{said}");
    assert!(said.contains("(cover-missing)"));
}

#[test]
fn a_finding_can_be_left_by_hand_with_a_reason() {
    let sandbox = repository(&ODD);
    format_patch(&sandbox, "out", &["--base=base"]);
    let check = |args: &[&str]| {
        check(
            &sandbox,
            &[&["out", "--base", "base", "--gate", "mail", "--json"], args].concat(),
        )
    };
    let ran = check(&[
        "--skip",
        "base-commit-unknown=nobody has it",
        "--skip",
        "cover-missing=it is short",
    ])
    .expect_exit(0);
    let said = ran.stdout.to_string();
    assert!(
        said.contains("accepted: cover-missing: it is short"),
        "{said}"
    );
    for (skip, words) in [
        ("cover-missing", "there is no reason"),
        ("cover-missing= ", "there is no reason"),
        ("no-such=why", "there is no such rule"),
        ("=why", "there is no such rule"),
    ] {
        check(&["--skip", skip]).expect_exit(2).says(&[words]);
    }
}
