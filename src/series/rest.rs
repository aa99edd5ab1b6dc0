//! Regenerates what is left of a series where a base has its first patches.
//!
//! Hides where it is looked for that it has: in the base's own files, and in its history, which says besides which commits brought them. Finding is no
//! verdict: what is left out is proven like everywhere else, by content.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::inventory::Inventory;
use super::merged::{Merged, Question};
use super::survey;
use super::tree::Tree;
use super::upstream::{self, History, Match, Suspect};
use super::{Options, Regenerated, placed, regenerate, regenerate_rest};
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
/// Digits of an id in a sentence.
const DIGITS: usize = 12;

/// Regenerates the series on `base`, or what is left of it where it is proven that `base` has the first patches.
pub fn regenerate_left(
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    options: &Options,
) -> Result<(Regenerated, Vec<Taken>)> {
    let whole = regenerate(repo, base, recipe, options);
    match &whole {
        Ok(Regenerated::Series(_)) => return Ok((whole?, Vec::new())),
        Err(error) if exit_of(error) != Exit::Drift => return Ok((whole?, Vec::new())),
        _ => {}
    }
    let recipe = &placed(repo, base, recipe)?;
    let past = Past::of(Question {
        repo,
        base,
        recipe,
        options,
    })?;
    let (merged, before) = past.first_patches()?;
    let taken = past.taken(&merged, before)?;
    if merged.patches == recipe.patches.len() {
        let named = survey::named(&mut Tree::new(repo, base), recipe)?;
        Ok((Regenerated::Applied(named), taken))
    } else if merged.patches > 0 {
        let rest = regenerate_rest(repo, base, recipe, options, &merged, &mut |_| {});
        Ok((rest.map_err(|error| in_spite_of(error, &taken))?, taken))
    } else {
        match whole {
            Ok(applied) => Ok((applied, taken)),
            Err(error) => Err(past.unproven(error)?),
        }
    }
}

/// What the history of a base has of a time without the series.
struct Past<'a> {
    question: Question<'a>,
    /// Older bases that have nothing of it, the newest first.
    befores: Vec<Base>,
    /// Why they could not be looked for.
    trouble: Option<anyhow::Error>,
}

impl<'a> Past<'a> {
    fn of(question: Question<'a>) -> Result<Self> {
        let (befores, trouble) = match befores(question.repo, question.base, question.recipe) {
            Ok(befores) => (befores, None),
            Err(error) if exit_of(&error) == Exit::Interrupted => return Err(error),
            Err(error) => (Vec::new(), Some(error)),
        };
        Ok(Self {
            question,
            befores,
            trouble,
        })
    }

    /// How many of the first patches the base has, and the older base that says when they came.
    fn first_patches(&self) -> Result<(Merged, Option<&Base>)> {
        let Question {
            repo,
            base,
            recipe,
            options,
        } = self.question;
        for before in &self.befores {
            let merged = Merged::find(repo, base, recipe, options, Some(before))?;
            if merged.patches > 0 {
                return Ok((merged, Some(before)));
            }
        }
        let merged = Merged::find(repo, base, recipe, options, None)?;
        Ok((merged, None))
    }

    /// What is said of the patches that the base has.
    fn taken(&self, merged: &Merged, before: Option<&Base>) -> Result<Vec<Taken>> {
        let names = self.question.recipe.patches.iter().zip(&merged.subjects);
        let mut commits = match before {
            Some(before) => self.commits(before)?,
            None => Vec::new(),
        };
        commits.resize_with(merged.patches, || None);
        let taken = names.zip(commits).map(|((spec, subject), found)| Taken {
            patch: spec.name.clone(),
            subject: subject.clone(),
            how: upstream::how(found.as_ref()),
            commit: found.map(|found| found.commit),
        });
        Ok(taken.collect())
    }

    /// What the history since an older base has of each patch. The names of the commits are not what is proven.
    fn commits(&self, before: &Base) -> Result<Vec<Option<Match>>> {
        match self.matches(before) {
            Err(error) if exit_of(&error) == Exit::Interrupted => Err(error),
            other => Ok(other.unwrap_or_default()),
        }
    }

    fn matches(&self, before: &Base) -> Result<Vec<Option<Match>>> {
        let Question {
            repo,
            base,
            recipe,
            options,
        } = self.question;
        let Regenerated::Series(series) = regenerate(repo, before, recipe, options)? else {
            return Ok(Vec::new());
        };
        let patches = rangediff::of_series(repo, &series)?;
        match History::between(repo, before.commit_id, base.commit_id)? {
            Some(history) => history.commits_of(recipe)?.find(&patches),
            None => Ok(Vec::new()),
        }
    }

    /// The error of a run where nothing was proven, with what is there all the same and with a base to go to.
    fn unproven(self, error: anyhow::Error) -> Result<anyhow::Error> {
        let Question {
            repo,
            base,
            recipe,
            options,
        } = self.question;
        let mut refusal = match error.downcast::<Refusal>() {
            Ok(refusal) => refusal,
            Err(error) => return Ok(error),
        };
        let mut tree = Tree::new(repo, base);
        if survey::named(&mut tree, recipe)?.is_empty() {
            let inventory = Inventory::of(&mut tree, recipe)?;
            if inventory.has_some() {
                refusal
                    .details
                    .push("of the series the base has:".to_owned());
                refusal.details.extend(inventory.there());
            }
        }
        if let Some(trouble) = self.trouble {
            let trouble = format!("  the base's history could not be looked at: {trouble:#}");
            refusal.details.push(trouble);
        }
        for before in self.befores {
            let made = regenerate(repo, &before, recipe, options);
            if matches!(made, Ok(Regenerated::Series(_))) {
                let id = before.commit_id.to_string();
                let hint = refusal.hint.take().unwrap_or_default();
                let to = format!(
                    "regenerate on the last base without it (`--base {}`)",
                    &id[..DIGITS]
                );
                refusal.hint = Some(format!("{to}, or {hint}"));
                break;
            }
        }
        Ok(refusal.into())
    }
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
