//! The apply gate: every mail goes through git as its receiver would do it, and must give back the very same commit.
//!
//! Hides the scratch repository: it holds only the files that the series touches.

use std::fs;
use std::time::Instant;

use anyhow::Result;
use bstr::{BStr, ByteSlice};

use super::cache::{Key, digest, quick_format};
use super::run::Context;
use super::scratch::{Scratch, said};
use super::{Mail, Name, Outcome, Patch, Status};
use crate::lab::Files;
use crate::repo::{Commit, Repo, Signature};

/// Proves every mail.
pub(super) fn run(context: &Context<'_>) -> Result<()> {
    let subject = context.subject;
    let git = context.version(&super::toolchain::Tool::new("git", "git"))?;
    let mails: Vec<_> = subject
        .mails
        .iter()
        .map(|mail| (mail.number, digest(&mail.bytes)))
        .collect();
    let ids = [subject.base.commit_id]
        .into_iter()
        .chain(subject.patches.iter().map(|patch| patch.commit.id));
    let ids: Vec<_> = ids.map(|id| id.to_string()).collect();
    let parts = (git, mails, ids, &subject.settings.skip);
    let key = Key::of(&(Name::Apply, quick_format(Name::Apply), parts));
    if let Some(outcomes) = context.cache.get(&key) {
        context.found_all(outcomes);
        return Ok(());
    }
    let scratch = Scratch::with(&subject.base_files)?;
    let mut outcomes = Vec::new();
    for number in context.numbers() {
        let since = Instant::now();
        let patch = &subject.patches[number - 1];
        let blank = Outcome::new(Name::Apply).patch(number);
        let mut outcome = match (
            context.skip(Name::Apply, None, Some(number)),
            subject.mail(number),
        ) {
            (Some(skip), _) => blank.skipped(&skip.reason),
            (None, None) => blank.error("there is no mail for this patch"),
            (None, Some(mail)) => prove(&scratch, patch, mail, blank)?,
        };
        if outcome.status != Status::Pass {
            // The next mail is judged by itself.
            scratch.set(&patch.files)?;
        }
        outcome.seconds = since.elapsed().as_secs_f64();
        context.found(outcome.clone());
        outcomes.push(outcome);
    }
    context.cache.put(&key, &outcomes);
    Ok(())
}

/// One mail: `git mailinfo`, then `git am` on the patch before it.
fn prove(scratch: &Scratch, patch: &Patch, mail: &Mail, blank: Outcome) -> Result<Outcome> {
    let mut lines = read_back(scratch, patch, mail)?;
    let applied = match scratch.am(&mail.bytes)? {
        Ok(commit) => commit,
        Err(said) => return Ok(blank.fail("git am refuses it").lines(said)),
    };
    lines.extend(differences(&patch.commit, &applied));
    lines.extend(wrong_files(scratch, &patch.files, &applied)?);
    if lines.is_empty() {
        return Ok(blank);
    }
    Ok(blank
        .fail("what git am makes of the mail is not the commit")
        .lines(lines))
}

/// What `git mailinfo` reads in the headers, compared with the commit.
fn read_back(scratch: &Scratch, patch: &Patch, mail: &Mail) -> Result<Vec<String>> {
    let dir = crate::temporary::directory()?;
    let files = ["message", "patch"].map(|name| dir.path().join(name));
    let output = scratch
        .git(&["mailinfo"])
        .args(&files)
        .input(&mail.bytes[..])
        .run()?;
    if !output.exit.success() {
        return Ok(said(&output));
    }
    let commit = &patch.commit;
    let header = |name: &str| {
        let found = output
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(name.as_bytes()));
        found.unwrap_or_default().as_bstr().to_owned()
    };
    let wanted = [
        ("Author: ", commit.author.name.clone()),
        ("Email: ", commit.author.email.clone()),
        ("Subject: ", commit.subject()),
    ];
    let mut lines = Vec::new();
    for (name, wanted) in wanted {
        let is = header(name);
        if is != wanted {
            lines.extend([format!("-{name}{wanted}"), format!("+{name}{is}")]);
        }
    }
    if fs::read(&files[1])?.is_empty() {
        lines.push("there is no patch in the mail".to_owned());
    }
    Ok(lines)
}

/// What differs between a commit and what a mail of it became, as lines of a diff.
fn differences(wanted: &Commit, is: &Commit) -> Vec<String> {
    let author = |author: &Signature| {
        let (name, email) = (author.name.as_bstr(), author.email.as_bstr());
        format!(
            "author {name} <{email}> {} {:+}",
            author.time, author.offset
        )
    };
    let (old, new) = (author(&wanted.author), author(&is.author));
    let mut lines = Vec::new();
    if old != new {
        lines.extend([format!("-{old}"), format!("+{new}")]);
    }
    if wanted.message != is.message {
        lines.extend(line_diff(wanted.message.as_bstr(), is.message.as_bstr()));
    }
    lines
}

/// Changed lines only, `-` for what was wanted and `+` for what is.
pub(super) fn line_diff(wanted: &BStr, is: &BStr) -> Vec<String> {
    let (wanted, is) = (wanted.to_str_lossy(), is.to_str_lossy());
    let diff = similar::TextDiff::from_lines(wanted.as_ref(), is.as_ref());
    let changes = diff
        .iter_all_changes()
        .filter(|change| change.tag() != similar::ChangeTag::Equal);
    changes
        .map(|change| format!("{}{}", change.tag(), change.value().trim_end_matches('\n')))
        .collect()
}

/// The files that are not as the patch wants them, and those it should not have touched.
fn wrong_files(scratch: &Scratch, wanted: &Files, commit: &Commit) -> Result<Vec<String>> {
    let repo = Repo::open(scratch.path())?;
    let mut lines = Vec::new();
    for (path, wanted) in wanted {
        if repo.file(commit.tree_id, path.as_bstr())? != *wanted {
            lines.push(format!("`{path}` is not as the commit has it"));
        }
    }
    for (path, ..) in repo.files(commit.tree_id)? {
        if !wanted.contains_key(&path) {
            lines.push(format!("`{path}` is touched, which the commit does not"));
        }
    }
    Ok(lines)
}
