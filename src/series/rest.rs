//! Regenerates what is left of a series where a base has its first patches, and its own history says what it was without them.
//!
//! Hides how that older base is found. Finding is no verdict: what is left out is proven like everywhere else, by content.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::Serialize;

use super::merged::Merged;
use super::survey;
use super::tree::Tree;
use super::upstream::{self, History, Suspect};
use super::{Options, Regenerated, regenerate, regenerate_rest};
use crate::error::{Exit, Refusal, exit_of};
use crate::exec::check_interrupted;
use crate::rangediff;
use crate::recipe::Recipe;
use crate::repo::{Base, ObjectId, Repo};

/// A patch that the base has, and that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Its name in the recipe.
    pub patch: String,
    /// Its subject.
    pub subject: String,
    /// How that is known, in a sentence.
    pub how: String,
    /// The commit of the base that has it, where one was found.
    pub commit: Option<Suspect>,
}

/// How many older bases are tried.
const MOST_BASES: usize = 3;
/// How long they are looked for: a partial clone fetches what it is asked for.
const SEARCH: Duration = Duration::from_mins(2);

/// Regenerates the series on `base`, or what is left of it where the history of `base` proves that it has the first patches.
pub fn regenerate_left(
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    options: &Options,
) -> Result<(Regenerated, Vec<Taken>)> {
    let whole = regenerate(repo, base, recipe, options);
    let can_be_partial = match &whole {
        Ok(Regenerated::Series(_)) => false,
        Ok(Regenerated::Applied(_)) => true,
        Err(error) => exit_of(error) == Exit::Drift,
    };
    if !can_be_partial {
        return Ok((whole?, Vec::new()));
    }
    match taken(repo, base, recipe, options) {
        Ok(Some((merged, taken))) if merged.patches < recipe.patches.len() => {
            let rest = regenerate_rest(repo, base, recipe, options, &merged, &mut |_| {})
                .map_err(|error| in_spite_of(error, &taken))?;
            Ok((rest, taken))
        }
        Ok(Some((_, taken))) => Ok((whole?, taken)),
        Ok(None) => unproven(whole, repo, base, recipe, None),
        Err(error) if exit_of(&error) == Exit::Interrupted => Err(error),
        Err(error) => unproven(whole, repo, base, recipe, Some(&error)),
    }
}

/// The first patches that `base` has, as its history proves it.
fn taken(
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    options: &Options,
) -> Result<Option<(Merged, Vec<Taken>)>> {
    for before in befores(repo, base, recipe)? {
        let merged = Merged::find(repo, base, recipe, options, &before)?;
        if merged.patches > 0 {
            let names = &recipe.patches[..merged.patches];
            let found = commits(repo, base, recipe, options, &before)?;
            let taken = names
                .iter()
                .zip(found)
                .map(|(spec, (subject, found))| Taken {
                    patch: spec.name.clone(),
                    subject,
                    how: upstream::how(found.as_ref()),
                    commit: found.map(|found| found.commit),
                });
            return Ok(Some((merged, taken.collect())));
        }
    }
    Ok(None)
}

/// Older bases that have nothing of the series: the parents of commits that brought the first of it. The newest come first.
fn befores(repo: &Repo, base: &Base, recipe: &Recipe) -> Result<Vec<Base>> {
    let mut known: BTreeMap<ObjectId, bool> = BTreeMap::new();
    let mut has_some = |id: ObjectId| -> Result<bool> {
        if let Some(known) = known.get(&id) {
            return Ok(*known);
        }
        let base = repo.base(&id.to_string())?;
        let presence = survey::presence(&mut Tree::new(repo, &base), recipe)?;
        let found = presence.iter().any(|patch| !patch.there.is_empty());
        known.insert(id, found);
        Ok(found)
    };
    let mut befores = Vec::new();
    if !has_some(base.commit_id)? {
        return Ok(befores);
    }
    let since = Instant::now();
    for id in upstream::touching(repo, base.commit_id, recipe)? {
        check_interrupted()?;
        if befores.len() == MOST_BASES || since.elapsed() > SEARCH {
            break;
        }
        let commit = repo.commit(id)?;
        // A shallow clone ends here, and so does a root.
        let Some(parent) = commit.parent_ids.first().copied() else {
            continue;
        };
        if repo.commit(parent).is_err() || !has_some(id)? || has_some(parent)? {
            continue;
        }
        befores.push(repo.base(&parent.to_string())?);
    }
    Ok(befores)
}

/// The subject of each patch, and what the history since `before` has of it.
fn commits(
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    options: &Options,
    before: &Base,
) -> Result<Vec<(String, Option<upstream::Match>)>> {
    let Regenerated::Series(series) = regenerate(repo, before, recipe, options)? else {
        bail!("a base without the series is said to have it");
    };
    let patches = rangediff::of_series(repo, &series)?;
    let history = History::between(repo, before.commit_id, base.commit_id)?;
    let look = |history: History<'_>| history.commits_of(recipe)?.find(&patches);
    let found = match history.map(look) {
        Some(Ok(found)) => found,
        Some(Err(error)) if exit_of(&error) == Exit::Interrupted => return Err(error),
        // The names of the commits are not what is proven.
        _ => patches.iter().map(|_| None).collect(),
    };
    let subjects = patches.iter().map(|patch| patch.subject.to_string());
    Ok(subjects.zip(found).collect())
}

/// What becomes of a run where nothing was proven: what it was, unless it took a part of the series for all of it.
fn unproven(
    whole: Result<Regenerated>,
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    trouble: Option<&anyhow::Error>,
) -> Result<(Regenerated, Vec<Taken>)> {
    let trouble =
        trouble.map(|error| format!("  the base's history could not be looked at: {error:#}"));
    match whole {
        Ok(applied) => {
            let presence = survey::presence(&mut Tree::new(repo, base), recipe)?;
            // Patches get in one after another: what a later one defines vouches for those before it.
            let seen = presence.iter().rposition(|patch| !patch.there.is_empty());
            let Some(unseen) = recipe.patches.get(seen.map_or(0, |seen| seen + 1)) else {
                return Ok((applied, Vec::new()));
            };
            let name = &unseen.name;
            Err(Refusal::drift(format!(
                "the base has all that the series defines, but whether it has patch `{name}`, which defines nothing, cannot be told"
            ))
            .details(trouble.into_iter().collect())
            .hint("a repository that has the base's history lets reroll prove it: name one with `--tree`")
            .into())
        }
        Err(error) => match (error.downcast::<Refusal>(), trouble) {
            (Ok(mut refusal), trouble) => {
                refusal.details.extend(trouble);
                Err(refusal.into())
            }
            (Err(error), _) => Err(error),
        },
    }
}

/// The rest does not fit: which patches were left out before that was found.
fn in_spite_of(error: anyhow::Error, taken: &[Taken]) -> anyhow::Error {
    match error.downcast::<Refusal>() {
        Ok(mut refusal) => {
            refusal.details.extend(taken.iter().map(Taken::note));
            refusal.into()
        }
        Err(error) => error,
    }
}

impl Taken {
    /// What a person is told.
    #[must_use]
    pub fn note(&self) -> String {
        let Self {
            patch,
            subject,
            how,
            ..
        } = self;
        format!("patch `{patch}` (\"{subject}\") is upstream and left out: {how}")
    }
}
