//! Takes records from the push remote, and pushes records and results to it by compare and swap.
//!
//! Hides git's leases. Where two bots differ, what was pushed first stays.

use std::time::Duration;

use anyhow::{Context, Result};
use bstr::ByteSlice;

use super::state::{State, branch_ref, wanted_tip};
use super::watch::{ask, fetch, masked};
use crate::error::Refusal;
use crate::exec::Task;
use crate::repo::{ObjectId, Repo};
use crate::ui::shown_text;

/// What a push remote has.
pub(super) struct Published {
    remote: String,
    refs: Vec<(String, ObjectId)>,
}

/// How a push ended.
#[derive(Debug, Default)]
pub(super) struct Pushed {
    /// Refs that were not where they had been, or could not be locked, as git tells of each: to be looked at again.
    pub(super) stale: Vec<String>,
    /// Branches of the remote that somebody else has moved.
    pub(super) edited: Vec<String>,
}

/// One ref to push.
struct Update {
    name: String,
    old: Option<ObjectId>,
    /// `None`: it is deleted.
    new: Option<ObjectId>,
}

/// Refs that are pushed at once.
const BATCH: usize = 200;
/// How long a push may take.
const TRANSFER: Duration = Duration::from_hours(2);

impl Published {
    /// Asks the remote, and takes the records that are new there.
    pub(super) fn take(state: &State<'_>, remote: &str) -> Result<Self> {
        let prefix = state.records();
        let refs: Vec<_> = ask(state.repo, remote)?
            .into_iter()
            .filter(|(name, _)| name.starts_with(&prefix) || name.starts_with("refs/heads/reroll/"))
            .collect();
        let published = Self {
            remote: remote.to_owned(),
            refs,
        };
        let records = published
            .refs
            .iter()
            .filter(|(name, _)| name.starts_with(&prefix));
        let mut unknown = Vec::new();
        for (name, id) in records.clone() {
            if state.repo.reference(name)? != Some(*id) && state.repo.commit(*id).is_err() {
                unknown.push(name.as_str());
            }
        }
        fetch(state.repo, remote, &unknown)?;
        for (name, theirs) in records {
            let mine = state.repo.reference(name)?;
            if mine != Some(*theirs) && !is_ahead(state.repo, mine, *theirs)? {
                // It must be readable before it takes the place of anything.
                state.read(*theirs, name)?;
                state.swap(name, mine, *theirs)?;
            }
        }
        Ok(published)
    }

    fn at(&self, name: &str) -> Option<ObjectId> {
        let found = self.refs.iter().find(|(known, _)| known == name);
        found.map(|(_, id)| *id)
    }

    /// Pushes what the remote has not: each ref only if it is still where it was when the remote was asked.
    pub(super) fn push(&self, state: &State<'_>, recreate: &[String]) -> Result<Pushed> {
        let mut pushed = Pushed::default();
        let mut updates = Vec::new();
        for kept in state.all()? {
            let record = state.record_ref(&kept.record.series, &kept.record.base.name);
            updates.push((record, kept.id));
            let branch = branch_ref(&kept.record);
            let Some(tip) = wanted_tip(&kept.record)? else {
                continue;
            };
            let name = kept.record.result_name();
            match self.at(&branch) {
                Some(theirs) if theirs != tip && !state.has_left(&kept, theirs)? => {
                    if !recreate.contains(&name) {
                        pushed.edited.push(name);
                        continue;
                    }
                    // What somebody else has left there stays reachable, here and there.
                    fetch(state.repo, &self.remote, &[&branch])?;
                    let keep = state.keep_replaced(&kept.record, theirs)?;
                    updates.push((keep, theirs));
                    updates.push((branch, tip));
                }
                _ => updates.push((branch, tip)),
            }
        }
        let updates = updates.into_iter().map(|(name, new)| Update {
            old: self.at(&name),
            name,
            new: Some(new),
        });
        let updates: Vec<_> = updates.filter(|it| it.old != it.new).collect();
        for batch in updates.chunks(BATCH) {
            pushed.stale.extend(self.push_batch(state.repo, batch)?);
        }
        Ok(pushed)
    }

    /// Deletes refs that the remote has where they are here.
    pub(super) fn delete(&self, state: &State<'_>, refs: &[(String, ObjectId)]) -> Result<()> {
        let gone = refs.iter().filter(|(name, id)| self.at(name) == Some(*id));
        let updates = gone.map(|(name, id)| Update {
            name: name.clone(),
            old: Some(*id),
            new: None,
        });
        let updates: Vec<_> = updates.collect();
        for batch in updates.chunks(BATCH) {
            let stale = self.push_batch(state.repo, batch)?;
            if !stale.is_empty() {
                return Err(Refusal::tool(
                    "the push remote does not let go of what is to be forgotten",
                )
                .details(stale)
                .hint("another bot may be at work; run it again")
                .into());
            }
        }
        Ok(())
    }

    /// Those that somebody else has moved, or holds.
    fn push_batch(&self, repo: &Repo, batch: &[Update]) -> Result<Vec<String>> {
        let mut task = Task::git_remote(repo.path())?.args([
            "push",
            "--porcelain",
            "--no-verify",
            "--no-signed",
            "--no-follow-tags",
            "--recurse-submodules=no",
        ]);
        for Update { name, old, .. } in batch {
            let old = old.map(|old| old.to_string()).unwrap_or_default();
            task = task.arg(format!("--force-with-lease={name}:{old}"));
        }
        task = task.arg("--").arg(&self.remote);
        for Update { name, new, .. } in batch {
            let new = new.map(|new| new.to_string()).unwrap_or_default();
            task = task.arg(format!("{new}:{name}"));
        }
        let output = task.timeout(TRANSFER).run()?;
        if output.exit.success() {
            return Ok(Vec::new());
        }
        let lines = output
            .stdout
            .lines()
            .filter(|line| line.starts_with(b"!\t"));
        let (stale, refused): (Vec<_>, Vec<_>) = lines.partition(|line| {
            line.contains_str("(stale info)")
                || line.contains_str("(fetch first)")
                || line.contains_str("failed to update ref")
                || line.contains_str("cannot lock ref")
                || line.contains_str("(failed to lock")
        });
        if refused.is_empty() && !stale.is_empty() {
            return Ok(stale.into_iter().map(shown_text).collect());
        }
        let mut details: Vec<_> = refused.iter().map(|line| shown_text(line)).collect();
        details.extend(output.stderr.lines().map(shown_text));
        let error = Refusal::tool("a push failed").details(details);
        Err(masked(&error.into(), &self.remote, "push to"))
    }
}

/// Whether what is here was made from what is there.
fn is_ahead(repo: &Repo, mine: Option<ObjectId>, theirs: ObjectId) -> Result<bool> {
    let Some(mine) = mine else {
        return Ok(false);
    };
    let common = repo
        .merge_base(mine, theirs)
        .context("cannot compare two records")?;
    Ok(common == Some(theirs))
}
