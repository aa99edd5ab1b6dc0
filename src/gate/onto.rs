//! How the patches fit another base: clean, drifted, in conflict, or upstream already.
//!
//! Hides what git says about hunks. "Upstream" is a patch-id in the history whose change is still in the files.

use std::fs;
use std::time::Instant;

use anyhow::Result;
use bstr::{BString, ByteSlice};

use super::run::Context;
use super::scratch::{Scratch, said};
use super::{Mail, Name, Outcome, Verdict};
use crate::error::{Exit, exit_of};
use crate::lab::Files;
use crate::rangediff::Patch;
use crate::repo::{Base, Repo};
use crate::series::still::Still;
use crate::series::upstream::{History, Match, Suspect};

/// The other base, and what its history has of the patches.
struct Onto {
    /// Its files, on which patch after patch is tried.
    scratch: Scratch,
    /// Its files as they are.
    as_is: Scratch,
    /// For each patch a commit that has its patch-id, or something like it.
    matches: Vec<Option<Match>>,
    /// A commit with the subject of each.
    namesakes: Vec<Option<Suspect>>,
    /// Why its history could not be looked at.
    trouble: Option<String>,
}

/// Tries the patches on each revision that the options name.
pub(super) fn run(context: &Context<'_>) -> Result<()> {
    let mut revs = context.options.onto.iter();
    revs.try_for_each(|rev| try_on(context, rev))
}

fn try_on(context: &Context<'_>, rev: &str) -> Result<()> {
    let subject = context.subject;
    let onto = Onto::open(context, rev)?;
    let mut left_out = Vec::new();
    for number in context.numbers() {
        let since = Instant::now();
        let blank = Outcome::new(Name::Apply)
            .patch(number)
            .configuration(&format!("onto {rev}"));
        let mut outcome = match subject.mail(number) {
            None => blank.error("there is no mail for this patch"),
            Some(mail) => onto.try_one(mail, blank, number - 1)?,
        };
        if outcome.verdict == Some(Verdict::Conflict) {
            if !left_out.is_empty() {
                let left_out = left_out.join(", ");
                outcome
                    .lines
                    .push(format!("note: tried without patch {left_out}"));
            }
            left_out.push(number.to_string());
        }
        onto.remark(&mut outcome, number - 1);
        outcome.seconds = since.elapsed().as_secs_f64();
        context.found(outcome);
    }
    Ok(())
}

impl Onto {
    fn open(context: &Context<'_>, rev: &str) -> Result<Self> {
        let subject = context.subject;
        let repo = Repo::open(&subject.git_dir)?;
        let onto = repo.base(rev)?;
        let read = |path: &BString| Ok((path.clone(), repo.file(onto.tree_id, path.as_bstr())?));
        let files: Files = subject.base_files.keys().map(read).collect::<Result<_>>()?;
        let mut found = Self {
            scratch: Scratch::with(&files)?,
            as_is: Scratch::with(&files)?,
            matches: subject.patches.iter().map(|_| None).collect(),
            namesakes: subject.patches.iter().map(|_| None).collect(),
            trouble: None,
        };
        match found.read(context, &repo, &onto) {
            Err(error) if exit_of(&error) == Exit::Interrupted => return Err(error),
            Err(error) => found.trouble = Some(format!("{error:#}")),
            Ok(()) => {}
        }
        Ok(found)
    }

    /// Reads the commits that `onto` has and the base has not; none where the two have no history in common.
    fn read(&mut self, context: &Context<'_>, repo: &Repo, onto: &Base) -> Result<()> {
        let subject = context.subject;
        let history = History::between(repo, subject.base.commit_id, onto.commit_id)?;
        let Some(history) = history else {
            return Ok(());
        };
        let paths: Vec<_> = subject.base_files.keys().map(ToString::to_string).collect();
        let commits = history.commits(&paths)?;
        let patches = subject
            .patches
            .iter()
            .enumerate()
            .map(|(index, patch)| Patch {
                subject: patch.commit.subject(),
                diff: subject
                    .mail(index + 1)
                    .map(|mail| diff(&mail.bytes))
                    .unwrap_or_default(),
                ..Patch::default()
            });
        let patches: Vec<_> = patches.collect();
        self.matches = commits.find(&patches)?;
        let namesake = |patch: &Patch| commits.namesake(&patch.subject).cloned();
        self.namesakes = patches.iter().map(namesake).collect();
        Ok(())
    }

    /// The commit that has the patch-id of a patch, and what became of its change.
    fn same(&self, index: usize) -> Option<&Match> {
        self.matches[index].as_ref().filter(|found| found.exact)
    }

    fn try_one(&self, mail: &Mail, blank: Outcome, index: usize) -> Result<Outcome> {
        let verdict = |mut outcome: Outcome, verdict| {
            outcome.verdict = Some(verdict);
            outcome
        };
        let same = self.same(index);
        if let Some(found) = same
            && (found.still == Still::There
                || found.still == Still::Changed && self.is_there(mail)?)
        {
            let mut outcome = verdict(blank, Verdict::Upstream);
            outcome.reason = format!("already upstream as {}", found.commit.short_id());
            return Ok(outcome);
        }
        let output = self
            .scratch
            .git(&["apply", "--index", "-v"])
            .input(&mail.bytes[..])
            .run()?;
        let said = said(&output);
        if !output.exit.success() {
            let mut lines = conflict(&self.scratch, mail, &said);
            if same.is_none() && self.is_there(mail)? {
                lines.push(
                    "remark: the files have its change, though no commit has its patch-id"
                        .to_owned(),
                );
            }
            let outcome = blank.fail("conflict").lines(lines);
            return Ok(verdict(outcome, Verdict::Conflict));
        }
        self.scratch.commit_all("applied")?;
        let moved: Vec<_> = said
            .into_iter()
            .filter(|line| line.starts_with("Hunk ") && line.contains("offset"))
            .collect();
        let since = same.map(Match::fate);
        if moved.is_empty() {
            let mut outcome = verdict(blank, Verdict::Clean);
            outcome.reason = since.unwrap_or_default();
            return Ok(outcome);
        }
        let mut outcome = verdict(blank, Verdict::Drifted).lines(moved);
        let reason = "applies at other lines";
        outcome.reason =
            since.map_or_else(|| reason.to_owned(), |since| format!("{since}; {reason}"));
        Ok(outcome)
    }

    /// Whether the files have the change of a patch: it can be taken out of them, exactly, and cannot be put in.
    fn is_there(&self, mail: &Mail) -> Result<bool> {
        let applies = |args: &[&str]| -> Result<bool> {
            let output = self.as_is.git(args).input(&mail.bytes[..]).run()?;
            Ok(output.exit.success())
        };
        Ok(applies(&["apply", "--check", "-R"])? && !applies(&["apply", "--check"])?)
    }

    /// Says besides what the history has of a patch that the other base does not have.
    fn remark(&self, outcome: &mut Outcome, index: usize) {
        let same = self.same(index);
        let namesake = self.namesakes[index].as_ref().filter(|_| same.is_none());
        let remark = match (outcome.verdict, same, namesake, &self.trouble) {
            (Some(Verdict::Upstream), ..) => return,
            (Some(Verdict::Conflict), Some(found), ..) => found.fate(),
            (_, None, Some(commit), _) => {
                let id = commit.short_id();
                format!("{id} has the same subject, but another patch-id")
            }
            (.., Some(trouble)) => format!("the history could not be looked at: {trouble}"),
            _ => return,
        };
        outcome.lines.push(format!("remark: {remark}"));
    }
}

/// The patch text of a mail.
fn diff(mail: &[u8]) -> Vec<u8> {
    let start = mail.find("\ndiff --git ").map_or(mail.len(), |at| at + 1);
    let text = &mail[start..];
    let end = text.rfind("\n-- \n").map_or(text.len(), |at| at + 1);
    text[..end].to_vec()
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
