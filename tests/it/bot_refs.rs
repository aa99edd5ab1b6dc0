//! What the bot does with refs that others use: branches that work trees stand on, results that are overwritten or forgotten, tags that are
//! gone or are of trees, patterns and names that fit nothing.

use crate::bot::{Play, QUICK};

/// A play whose repository is the work tree `here`, in which the bot's results are branches, with a result on `main` that is behind.
fn behind() -> Play {
    let play = Play::new(QUICK);
    let config = play.read("bot.toml").replace("bot.git", "here") + "branches = [\"main\"]\n";
    play.write("bot.toml", &config);
    play.git(".", &["init", "-q", "-b", "own", "here"]);
    play.git("here", &["commit", "-q", "--allow-empty", "-m", "own"]);
    play.release(1, "one");
    play.bot();
    play.change("return 0;", "return 1;");
    play.commit("mm: return one");
    play
}

const BRANCH: &str = "reroll/tiny/main";

#[test]
fn a_branch_that_any_work_tree_uses_is_left_alone() {
    type Use = fn(&Play);
    let uses: [(&str, Use); 5] = [
        ("the main work tree is on it", |play| {
            drop(play.git("here", &["checkout", "-q", BRANCH]));
        }),
        ("a linked work tree is on it", |play| {
            drop(play.git("here", &["worktree", "add", "-q", "../linked", BRANCH]));
        }),
        ("it is bisected", |play| {
            play.git("here", &["checkout", "-q", BRANCH]);
            play.git("here", &["bisect", "start", "HEAD", "HEAD~3"]);
        }),
        ("it is rebased", |play| {
            play.git("here", &["worktree", "add", "-q", "../linked", BRANCH]);
            play.git(
                "linked",
                &[
                    "-c",
                    "sequence.editor=sed -i 1s/pick/edit/",
                    "rebase",
                    "-q",
                    "-i",
                    "HEAD~2",
                ],
            );
        }),
        ("a rebase will update it", |play| {
            play.git(
                "here",
                &["worktree", "add", "-q", "-b", "top", "../linked", BRANCH],
            );
            play.git("linked", &["commit", "-q", "--allow-empty", "-m", "top"]);
            play.git(
                "linked",
                &[
                    "-c",
                    "sequence.editor=sed -i 1s/pick/edit/",
                    "rebase",
                    "-q",
                    "-i",
                    "--keep-empty",
                    "--update-refs",
                    "HEAD~3",
                ],
            );
        }),
    ];
    for (what, use_it) in uses {
        // Through the repository, and through a linked work tree of it.
        for repository in ["here", "other"] {
            let play = behind();
            play.git("here", &["worktree", "add", "-q", "--detach", "../other"]);
            let config = play
                .read("bot.toml")
                .replace("\"here\"", &format!("\"{repository}\""));
            play.write("bot.toml", &config);
            use_it(&play);
            let before = play.git("here", &["rev-parse", BRANCH]);
            for args in [
                &["bot", "run"][..],
                &["bot", "run", "--recreate", "tiny/main"],
            ] {
                let (_, said) = play.reroll(args, 0);
                assert!(
                    said.contains("the branch of tiny/main is left alone: the work tree `"),
                    "{what}: {said}"
                );
                assert_eq!(play.git("here", &["rev-parse", BRANCH]), before, "{what}");
            }
        }
    }
}

#[test]
fn what_is_overwritten_on_the_push_remote_is_kept_there() {
    let play = Play::pushing();
    play.release(1, "one");
    play.bot();
    let edited = play.work_on("shared.git", "reroll/tiny/v1.1");
    let (_, said) = play.reroll(&["bot", "run"], 0);
    assert!(
        said.contains("tiny/v1.1 was moved by somebody else"),
        "{said}"
    );
    play.reroll(&["bot", "run", "--recreate", "tiny/v1.1"], 0);
    for repository in ["shared.git", "bot.git"] {
        let refs = play.refs(repository);
        assert!(
            refs.contains(&format!("{edited} refs/reroll/replaced/tiny/v1.1/{edited}")),
            "{repository}: {refs}"
        );
    }
    assert_ne!(
        play.git("shared.git", &["rev-parse", "reroll/tiny/v1.1"]),
        edited
    );
}

#[test]
fn names_and_patterns_that_fit_nothing_are_said() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    let (_, said) = play.reroll(&["bot", "run", "--recreate", "tiny/v1.9"], 2);
    assert!(
        said.contains("there is no result `tiny/v1.9`")
            && said.contains("everything else was done"),
        "{said}"
    );
    assert_eq!(play.verdicts("v1.1"), ["clean"; 4]);
    let config = play.read("bot.toml").replace(
        "tags = [\"v*\"]",
        "tags = [\"v*\", \"w*\", \"!v9*\"]\nbranches = [\"mian\"]",
    );
    play.write("bot.toml", &config);
    let (_, said) = play.reroll(&["bot", "run"], 0);
    for pattern in ["w*", "mian"] {
        assert!(
            said.contains(&format!(
                "note: `{pattern}` of the watch `main` fits nothing"
            )),
            "{said}"
        );
    }
    assert!(!said.contains("v9") && !said.contains("`v*`"), "{said}");
}

#[test]
fn an_unknown_name_hides_no_trouble() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    std::fs::rename(play.path("remote"), play.path("gone")).expect("renamed");
    let (_, said) = play.reroll(&["bot", "run", "--recreate", "tiny/v1.9"], 2);
    assert!(said.contains("error: cannot ask"), "{said}");
    assert!(said.contains("there is no result `tiny/v1.9`"), "{said}");
}

#[test]
fn patterns_of_the_own_repository_that_fit_nothing_are_said() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.git(".", &["clone", "-q", "--bare", "remote", "bot.git"]);
    let config = play.read("bot.toml");
    let config = config.replace(
        "remote = \"remote\"\ntags = [\"v*\"]",
        "refs = [\"refs/tags/v*\", \"refs/tags/w*\"]",
    );
    play.write("bot.toml", &config);
    let (_, said) = play.reroll(&["bot", "run"], 0);
    assert!(
        said.contains("note: `refs/tags/w*` of the watch `main` fits nothing"),
        "{said}"
    );
    assert!(!said.contains("`refs/tags/v*`"), "{said}");
    assert_eq!(play.verdicts("v1.1"), ["clean"; 4]);
}

#[test]
fn a_base_that_is_damaged_is_said_as_long_as_it_is() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    play.release(2, "two");
    let id = play.git("remote", &["rev-parse", "v1.2^{commit}"]);
    play.git(
        "bot.git",
        &[
            "fetch",
            "-q",
            "../remote",
            "refs/tags/v1.2:refs/reroll/bases/main/tags/v1.2",
        ],
    );
    let file = play.path("bot.git/objects").join(&id[..2]).join(&id[2..]);
    assert!(file.exists(), "the object is in a file of its own");
    let bytes = std::fs::read(&file).expect("an object");
    std::fs::remove_file(&file).expect("removed");
    std::fs::write(&file, &bytes[..10]).expect("cut");
    for _ in 0..2 {
        let (_, said) = play.reroll(&["bot", "run"], 0);
        assert!(
            said.contains("`v1.2` of the watch `main` is left out: object "),
            "{said}"
        );
    }
}

#[test]
fn a_tag_of_a_tree_is_said_once() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.git("remote", &["tag", "v0-tree", "HEAD^{tree}"]);
    let (_, said) = play.reroll(&["bot", "run"], 0);
    assert!(
        said.contains("`v0-tree` of the watch `main` is no commit"),
        "{said}"
    );
    let (_, said) = play.reroll(&["bot", "run"], 0);
    assert!(!said.contains("v0-tree"), "{said}");
}

#[test]
fn a_base_is_forgotten_here_and_on_the_push_remote() {
    let play = Play::pushing();
    play.release(1, "one");
    play.release(2, "two");
    play.bot();
    play.git("remote", &["tag", "-d", "v1.1"]);
    play.bot();
    // What is gone from a remote stays known until somebody says that it is not wanted.
    assert!(play.records().contains_key("v1.1"));
    let (_, said) = play.reroll(&["bot", "forget", "v1.1"], 0);
    assert!(
        said.contains("deleted refs/reroll/records/tiny/v1.1"),
        "{said}"
    );
    play.bot();
    let records = play.records();
    assert!(!records.contains_key("v1.1") && records.contains_key("v1.2"));
    for repository in ["bot.git", "shared.git"] {
        let refs = play.refs(repository);
        assert!(
            !refs.contains("records/tiny/v1.1") && !refs.contains("bases/main/tags/v1.1"),
            "{refs}"
        );
        assert!(refs.contains("refs/heads/reroll/tiny/v1.1"), "{refs}");
    }
    let (_, said) = play.reroll(&["bot", "forget", "v1.1"], 2);
    assert!(said.contains("nothing is known of a base `v1.1`"), "{said}");
}

#[test]
fn another_base_is_named_where_it_is_told_beside() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    play.change("int i;", "long i;");
    play.release(2, "two");
    let (told, _) = play.reroll(&["bot", "run"], 0);
    assert!(told.contains("(was clean on v1.1)"), "{told}");
}
