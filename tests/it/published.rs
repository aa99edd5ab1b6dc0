//! Whether others can have a base: only of such a one a letter has a `base-commit:`.

use std::fs;
use std::path::Path;

use reroll::exec::Task;
use reroll::repo::Repo;

/// Git as somebody else runs it.
fn git(dir: &Path, args: &[&str]) -> String {
    let task = Task::git().env("GIT_AUTHOR_NAME", "A U Thor");
    let task = task
        .env("GIT_AUTHOR_EMAIL", "author@example.org")
        .env("GIT_COMMITTER_NAME", "A U Thor")
        .env("GIT_COMMITTER_EMAIL", "author@example.org");
    let output = task.dir(dir).args(args).output().expect("git runs");
    String::from_utf8(output).expect("text").trim().to_owned()
}

/// A repository of theirs with two commits, and a clone of it with one more.
fn clone(options: &[&str]) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let theirs = dir.path().join("theirs");
    fs::create_dir(&theirs).expect("a directory");
    git(&theirs, &["init", "-q", "-b", "main"]);
    for message in ["one", "two"] {
        git(&theirs, &["commit", "-q", "--allow-empty", "-m", message]);
    }
    let args = [&["clone", "-q"], options, &["theirs", "mine"]].concat();
    git(dir.path(), &args);
    let mine = dir.path().join("mine");
    if !options.contains(&"--bare") {
        git(&mine, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    }
    (dir, mine)
}

#[track_caller]
fn official(repo: &Path, rev: &str) -> bool {
    let repo = Repo::open(repo).expect("a repository");
    let base = repo.base(rev).expect("a commit");
    repo.is_official(&base).expect("an answer")
}

#[test]
fn what_is_on_a_remote_branch_is_published_and_what_comes_after_is_not() {
    let (_dir, mine) = clone(&[]);
    assert!(official(&mine, "HEAD^"), "the remote branch is there");
    assert!(!official(&mine, "HEAD"), "nobody else has it");
    assert!(
        !official(&mine, "HEAD~2"),
        "a commit without a parent holds an import"
    );
    git(&mine, &["commit", "-q", "--allow-empty", "-m", "more"]);
    git(&mine, &["push", "-q", "origin", "HEAD:refs/heads/pushed"]);
    assert!(
        official(&mine, "HEAD") && official(&mine, "HEAD^"),
        "it was pushed"
    );
}

#[test]
fn what_a_tag_leads_to_is_published_whatever_the_tag_is_of() {
    for (kind, packed) in [("-a", false), ("-a", true), ("--no-sign", false)] {
        let (_dir, mine) = clone(&[]);
        let tag = ["tag", "-m", "a tag", kind, "v1", "HEAD"];
        git(&mine, if kind == "-a" { &tag } else { &["tag", "v1"] });
        git(&mine, &["tag", "-a", "-m", "a tag of a tag", "v2", "v1"]);
        git(&mine, &["tag", "-d", "v1"]);
        git(&mine, &["tag", "tree", "HEAD^{tree}"]);
        if packed {
            git(&mine, &["pack-refs", "--all"]);
            git(&mine, &["repack", "-q", "-a", "-d"]);
        }
        assert!(official(&mine, "HEAD"), "{kind} {packed}");
        git(&mine, &["commit", "-q", "--allow-empty", "-m", "more"]);
        assert!(
            !official(&mine, "HEAD") && official(&mine, "HEAD^"),
            "{kind} {packed}"
        );
    }
}

#[test]
fn the_branches_of_a_bare_clone_are_those_of_the_remote_and_of_a_bare_repository_nobodys() {
    let (_dir, mine) = clone(&["--bare"]);
    assert!(official(&mine, "main"));
    git(&mine, &["remote", "remove", "origin"]);
    assert!(!official(&mine, "main"));
}

#[test]
fn what_a_bot_fetched_is_published_and_what_it_made_is_not() {
    for (name, expected) in [
        ("refs/reroll/bases/main/heads/x", true),
        ("refs/reroll-mm/bases/main/tags/x", true),
        ("refs/reroll/replaced/x/y", false),
        ("refs/heads/reroll/tiny/bases", false),
    ] {
        let (_dir, mine) = clone(&[]);
        git(&mine, &["update-ref", name, "HEAD"]);
        assert_eq!(official(&mine, "HEAD"), expected, "{name}");
    }
}

#[test]
fn a_ref_whose_object_is_lost_or_cut_short_neither_hangs_nor_proves_anything() {
    let (_dir, mine) = clone(&[]);
    git(&mine, &["tag", "-a", "-m", "a tag", "v1", "HEAD"]);
    let tag = git(&mine, &["rev-parse", "refs/tags/v1"]);
    let file = mine.join(".git/objects").join(&tag[..2]).join(&tag[2..]);
    let bytes = fs::read(&file).expect("a loose object");
    fs::remove_file(&file).expect("removed");
    assert!(!official(&mine, "HEAD"), "the tag is lost");
    fs::write(&file, &bytes[..bytes.len() / 2]).expect("written");
    assert!(!official(&mine, "HEAD"), "the tag is cut short");
    assert!(official(&mine, "HEAD^"), "the remote branch is whole");
}
