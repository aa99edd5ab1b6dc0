//! How the patches fit another base: clean, drifted, in conflict, or upstream already.
//!
//! Hides what git says about hunks; a verdict on "upstream" rests on patch-ids alone.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use anyhow::Result;
use bstr::{BString, ByteSlice};

use super::run::Context;
use super::scratch::{Scratch, said};
use super::{Mail, Name, Outcome, Verdict};
use crate::exec::Task;
use crate::lab::Files;
use crate::repo::{Base, ObjectId, Repo};

/// The commits between the base and the other one that touch the same files.
struct Upstream {
    /// Commits by patch-id.
    by_patch_id: BTreeMap<String, String>,
    /// Commits by subject.
    by_subject: BTreeMap<BString, String>,
}

/// Tries the patches on the revision that the options name.
pub(super) fn run(context: &Context<'_>) -> Result<()> {
    let Some(rev) = &context.options.onto else {
        return Ok(());
    };
    let subject = context.subject;
    let repo = Repo::open(&subject.git_dir)?;
    let onto = repo.base(rev)?;
    let files: Files = subject
        .base_files
        .keys()
        .map(|path| Ok((path.clone(), repo.file(onto.tree_id, path.as_bstr())?)))
        .collect::<Result<_>>()?;
    let scratch = Scratch::with(&files)?;
    let upstream = Upstream::read(context, &onto)?;
    let mut left_out = Vec::new();
    for number in context.numbers() {
        let since = Instant::now();
        let blank = Outcome::new(Name::Apply)
            .patch(number)
            .configuration(&format!("onto {rev}"));
        let mut outcome = match subject.mail(number) {
            None => blank.error("there is no mail for this patch"),
            Some(mail) => try_one(&scratch, &upstream, mail, blank)?,
        };
        if outcome.verdict == Some(Verdict::Conflict) && !left_out.is_empty() {
            outcome
                .lines
                .push(format!("note: tried without patch {}", left_out.join(", ")));
        }
        if outcome.verdict == Some(Verdict::Conflict) {
            left_out.push(number.to_string());
        }
        let subject = subject.patches[number - 1].commit.subject();
        if let Some(commit) = upstream
            .by_subject
            .get(&subject)
            .filter(|_| outcome.verdict != Some(Verdict::Upstream))
        {
            outcome.lines.push(format!(
                "remark: {commit} has the same subject, but another patch-id"
            ));
        }
        outcome.seconds = since.elapsed().as_secs_f64();
        context.found(outcome);
    }
    Ok(())
}

fn try_one(scratch: &Scratch, upstream: &Upstream, mail: &Mail, blank: Outcome) -> Result<Outcome> {
    let verdict = |mut outcome: Outcome, verdict| {
        outcome.verdict = Some(verdict);
        outcome
    };
    if let Some(commit) = patch_id(&mail.bytes)?.and_then(|id| upstream.by_patch_id.get(&id)) {
        let mut outcome = verdict(blank, Verdict::Upstream);
        outcome.reason = format!("already upstream as {commit}");
        return Ok(outcome);
    }
    let output = scratch
        .git(&["apply", "--index", "-v"])
        .input(&mail.bytes[..])
        .run()?;
    let said = said(&output);
    if !output.exit.success() {
        let lines = conflict(scratch, mail, &said);
        return Ok(verdict(
            blank.fail("conflict").lines(lines),
            Verdict::Conflict,
        ));
    }
    scratch.commit_all("applied")?;
    let moved: Vec<_> = said
        .into_iter()
        .filter(|line| line.starts_with("Hunk ") && line.contains("offset"))
        .collect();
    if moved.is_empty() {
        return Ok(verdict(blank, Verdict::Clean));
    }
    let mut outcome = verdict(blank, Verdict::Drifted).lines(moved);
    "applies at other lines".clone_into(&mut outcome.reason);
    Ok(outcome)
}

/// What git said about each hunk that does not fit, with the lines that are in its place.
fn conflict(scratch: &Scratch, mail: &Mail, said: &[String]) -> Vec<String> {
    const AROUND: usize = 4;
    let mut lines = Vec::new();
    for line in said.iter().filter(|line| line.starts_with("error: ")) {
        lines.push(line.clone());
        let Some((path, number)) = line
            .strip_prefix("error: patch failed: ")
            .and_then(|rest| rest.rsplit_once(':'))
        else {
            continue;
        };
        let Ok(number) = number.parse::<usize>() else {
            continue;
        };
        lines.push("expected:".to_owned());
        lines.extend(
            expected(&mail.bytes, path, number)
                .into_iter()
                .map(|line| format!("  {line}")),
        );
        lines.push("found:".to_owned());
        let text = fs::read(scratch.path().join(path)).unwrap_or_default();
        let found = text
            .lines()
            .enumerate()
            .skip(number.saturating_sub(1))
            .take(2 * AROUND);
        lines
            .extend(found.map(|(index, line)| format!("  {}: {}", index + 1, line.to_str_lossy())));
    }
    lines
}

/// The old side of the hunk that starts at line `number` of `path`.
fn expected(mail: &[u8], path: &str, number: usize) -> Vec<String> {
    const MOST: usize = 8;
    let file = format!("--- a/{path}");
    let hunk = format!("@@ -{number},");
    let in_file = mail.lines().skip_while(|line| *line != file.as_bytes());
    let in_hunk = in_file
        .skip_while(|line| !line.starts_with(hunk.as_bytes()))
        .skip(1);
    let body = in_hunk.take_while(|line| {
        line.first().is_some_and(|first| b" +-\\".contains(first)) && *line != b"-- "
    });
    body.filter(|line| line[0] != b'+')
        .map(|line| line[1..].to_str_lossy().into_owned())
        .take(MOST)
        .collect()
}

impl Upstream {
    /// Reads the commits that `onto` has and the base has not; none where the two have no history in common.
    fn read(context: &Context<'_>, onto: &Base) -> Result<Self> {
        let subject = context.subject;
        let repo = Repo::open(&subject.git_dir)?;
        let git = || Task::git_reading(repo.common_path());
        let mut upstream = Self {
            by_patch_id: BTreeMap::new(),
            by_subject: BTreeMap::new(),
        };
        let common = git()?
            .arg("merge-base")
            .args([subject.base.commit_id, onto.commit_id].map(|id: ObjectId| id.to_string()))
            .run()?;
        if !common.exit.success() {
            return Ok(upstream);
        }
        let range = format!("{}..{}", subject.base.commit_id, onto.commit_id);
        let paths: Vec<_> = subject
            .base_files
            .keys()
            .map(|path| path.to_path_lossy().into_owned())
            .collect();
        let log = |args: &[&str]| {
            git()?
                .arg("log")
                .args(args)
                .args(["--no-merges", &range, "--"])
                .args(&paths)
                .output()
        };
        for line in log(&["--format=%h %s"])?.lines() {
            if let Some((id, subject)) = line.split_once_str(" ") {
                upstream
                    .by_subject
                    .entry(subject.into())
                    .or_insert_with(|| id.to_str_lossy().into_owned());
            }
        }
        let patches = log(&["-p", "--full-diff", "--no-ext-diff", "--no-textconv"])?;
        for line in patch_ids(&patches)?.lines() {
            if let Some((id, commit)) = line.split_once(' ') {
                upstream
                    .by_patch_id
                    .insert(id.to_owned(), commit.chars().take(12).collect());
            }
        }
        Ok(upstream)
    }
}

fn patch_id(mail: &[u8]) -> Result<Option<String>> {
    let text = patch_ids(mail)?;
    Ok(text
        .split(' ')
        .next()
        .filter(|id| !id.is_empty())
        .map(str::to_owned))
}

fn patch_ids(patches: &[u8]) -> Result<String> {
    let output = Task::git_alone()
        .args(["patch-id", "--stable"])
        .input(patches)
        .output()?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}
