//! The patches of a series that a base has already, always the first ones: found, taken out, and proven.
//!
//! Hides how a base without them is had: each file is merged back to what it was, or the edits are taken out of it one by one; and the recipe has to
//! make of it exactly what the base has.

use anyhow::Result;

use super::ground::Ground;
use super::place::Placed;
use super::run::Run;
use super::still::merge;
use super::survey::{self, Presence, Survey};
use super::tree::Tree;
use super::without::{Files, Without};
use super::write::Writer;
use super::{Options, Regenerated, Series, regenerate};
use crate::error::{Exit, exit_of};
use crate::recipe::Recipe;
use crate::repo::{Base, File, ObjectId, Repo};
use crate::template::Templates;

/// The first patches of a series, which a base has.
#[derive(Debug, Default)]
pub struct Merged {
    /// How many.
    pub patches: usize,
    /// The files that they change, as the base would have them without those patches.
    files: Files,
    /// Their subjects on this base.
    pub(super) subjects: Vec<String>,
}

/// What is to be said against a proof; `None`: no more than that it fails.
pub(super) type Objection = Option<anyhow::Error>;

/// A base, and the series that it may have a part of.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) repo: &'a Repo,
    pub(super) base: &'a Base,
    pub(super) recipe: &'a Recipe,
    pub(super) options: &'a Options,
}

impl Merged {
    /// Finds out how many of the first patches `base` has. Only what is proven counts: taken out of the base's files and made again by the
    /// recipe they give the very same files. An older base that has none of them, `before`, helps to take them out.
    pub fn find(
        repo: &Repo,
        base: &Base,
        recipe: &Recipe,
        options: &Options,
        before: Option<&Base>,
    ) -> Result<Self> {
        let recipe = &Placed::of(&mut Tree::new(repo, base), recipe)?.recipe;
        let presence = survey::presence(&mut Tree::new(repo, base), recipe)?;
        let candidates = candidates(&presence);
        let before = before.filter(|_| !candidates.is_empty());
        let series = match before.map(|before| regenerate(repo, before, recipe, options)) {
            Some(Ok(Regenerated::Series(series))) => Some(series),
            Some(Err(error)) if !is_refused(&error) => return Err(error),
            _ => None,
        };
        let question = Question {
            repo,
            base,
            recipe,
            options,
        };
        for patches in candidates {
            let merged = match &series {
                Some(series) => question.merged_back(series, patches)?,
                None => None,
            };
            let merged = match merged {
                Some(merged) => Some(merged),
                None => question.taken_out(patches)?.ok(),
            };
            if let Some(merged) = merged {
                return Ok(merged);
            }
        }
        Ok(Self::default())
    }

    /// Shows a tree as it would be without the patches.
    pub(super) fn undo(&self, tree: &mut Tree<'_>) {
        for (path, file) in &self.files {
            tree.put_back(path, file.as_ref());
        }
    }

    /// What the cover letter says about them.
    pub(super) fn note(&self) -> String {
        let what = match self.patches {
            1 => "This base has the first patch of the series".to_owned(),
            count => format!("This base has the first {count} patches of the series"),
        };
        let mut note = format!("{what}; only the rest is sent:\n");
        for subject in &self.subjects {
            note.push_str(&format!("\n  {subject}"));
        }
        note + "\n"
    }
}

impl Question<'_> {
    /// The first patches, where the edits can be taken out of the base one by one and the recipe makes the base of what is left; otherwise
    /// what the recipe says to that.
    pub(super) fn taken_out(&self, patches: usize) -> Result<Result<Merged, Objection>> {
        let mut merged = None;
        let mut objection = None;
        let mut tree = Tree::new(self.repo, self.base);
        Without::new(self.recipe, patches)?.find(&mut tree, &mut |files| {
            match self.proven(patches, files.clone())? {
                Ok(proven) => merged = Some(proven),
                Err(other) => objection = other.or(objection.take()),
            }
            Ok(merged.is_some())
        })?;
        Ok(merged.ok_or(objection))
    }

    /// The first patches, where they can be merged out of the base's files, as `series` was made on an older base.
    fn merged_back(&self, series: &Series, patches: usize) -> Result<Option<Merged>> {
        match undone(self.repo, self.base, series, patches)? {
            Some(files) => Ok(self.proven(patches, files)?.ok()),
            None => Ok(None),
        }
    }

    /// The proof: with these files the first patches give the very base.
    fn proven(&self, patches: usize, files: Files) -> Result<Result<Merged, Objection>> {
        let mut merged = Merged {
            patches,
            files,
            subjects: Vec::new(),
        };
        match self.made_again(&merged) {
            Ok(Some(subjects)) => {
                merged.subjects = subjects;
                Ok(Ok(merged))
            }
            Ok(None) => Ok(Err(None)),
            Err(error) if is_refused(&error) => Ok(Err(Some(error))),
            Err(error) => Err(error),
        }
    }

    /// The subjects of the patches, where they make of the files what the base has.
    fn made_again(&self, merged: &Merged) -> Result<Option<Vec<String>>> {
        let Self {
            repo,
            base,
            recipe,
            options,
        } = *self;
        let mut tree = Tree::new(repo, base);
        let placed = Placed::of(&mut tree, recipe)?;
        merged.undo(&mut tree);
        let recipe = &placed.recipe;
        tree.show(&recipe.functions);
        let ground = Ground::new(repo, base, recipe);
        let writer = Writer {
            repo,
            base,
            recipe,
            options,
            survey: Survey::of(&mut tree, &placed, &ground)?,
            templates: Templates::new()?,
            performance: None,
        };
        let mut run = Run::new(repo, tree, writer, &ground);
        let patches = &recipe.patches[..merged.patches];
        let mut same = false;
        for spec in patches {
            same = run.skip(spec)?;
        }
        if !same {
            return Ok(None);
        }
        let (_, mut writer) = run.end();
        let subjects = patches.iter().map(|spec| {
            let (message, _) = writer.message(spec)?;
            Ok(message.lines().next().unwrap_or_default().to_owned())
        });
        subjects.collect::<Result<_>>().map(Some)
    }
}

/// How many of the first patches may be there, the most first.
fn candidates(presence: &[Presence]) -> Vec<usize> {
    let least = presence
        .iter()
        .rposition(|patch| !patch.there.is_empty())
        .map_or(1, |last| last + 1);
    let first_missing = presence.iter().position(|patch| !patch.missing.is_empty());
    let most = first_missing.unwrap_or(presence.len());
    (least..=most).rev().collect()
}

/// The files that the first patches change, as the base would have them without; `None` where they cannot be taken out.
fn undone(repo: &Repo, base: &Base, series: &Series, patches: usize) -> Result<Option<Files>> {
    let tree_ids = [
        base.tree_id,
        series.patches[patches - 1].commit.tree_id,
        series.base.tree_id,
    ];
    let mut files = Files::new();
    for path in series.patches[..patches]
        .iter()
        .flat_map(|patch| &patch.files)
    {
        let read = |tree_id: ObjectId| repo.file(tree_id, path.as_ref());
        let [now, with, without] = [read(tree_ids[0])?, read(tree_ids[1])?, read(tree_ids[2])?];
        let undone = if now == with {
            without
        } else {
            match (now, with, without) {
                (Some(now), Some(with), Some(without)) => {
                    let Some(bytes) = merge([&now.bytes, &with.bytes, &without.bytes])? else {
                        return Ok(None);
                    };
                    Some(File {
                        mode: now.mode,
                        bytes,
                    })
                }
                _ => return Ok(None),
            }
        };
        files.insert(path.to_string(), undone);
    }
    Ok(Some(files))
}

fn is_refused(error: &anyhow::Error) -> bool {
    matches!(exit_of(error), Exit::Drift | Exit::Usage)
}
