//! The patches of a series that a base has already, always the first ones: found, taken out, and proven.
//!
//! Hides how a base without them is had: each file is merged back to what it was, and the recipe has to make of it exactly what
//! the base has.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use super::ground::Ground;
use super::run::Run;
use super::survey::{self, Presence, Survey};
use super::tree::Tree;
use super::write::Writer;
use super::{Options, Regenerated, Series, regenerate};
use crate::error::{Exit, exit_of};
use crate::exec::Task;
use crate::recipe::Recipe;
use crate::repo::{Base, File, ObjectId, Repo};
use crate::template::Templates;

/// The first patches of a series, which a base has.
#[derive(Debug, Default)]
pub struct Merged {
    /// How many.
    pub patches: usize,
    /// The files that they change, as the base would have them without those patches.
    files: BTreeMap<String, Option<File>>,
}

impl Merged {
    /// Finds out how many of the first patches `base` has, where an older base, `before`, has none of them. Only what is proven
    /// counts: taken out of the base's files and made again by the recipe they give the very same files.
    pub fn find(
        repo: &Repo,
        base: &Base,
        recipe: &Recipe,
        options: &Options,
        before: &Base,
    ) -> Result<Self> {
        let presence = survey::presence(&mut Tree::new(repo, base), recipe)?;
        let candidates = candidates(&presence);
        if candidates.is_empty() {
            return Ok(Self::default());
        }
        let series = match regenerate(repo, before, recipe, options) {
            Ok(Regenerated::Series(series)) => series,
            Ok(Regenerated::Applied(_)) => return Ok(Self::default()),
            Err(error) if is_refused(&error) => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        for patches in candidates {
            let Some(files) = undone(repo, base, &series, patches)? else {
                continue;
            };
            let merged = Self { patches, files };
            match merged.is_proven(repo, base, recipe, options) {
                Ok(true) => return Ok(merged),
                Ok(false) => {}
                Err(error) if is_refused(&error) => {}
                Err(error) => return Err(error),
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

    fn is_proven(
        &self,
        repo: &Repo,
        base: &Base,
        recipe: &Recipe,
        options: &Options,
    ) -> Result<bool> {
        let mut tree = Tree::new(repo, base);
        self.undo(&mut tree);
        let files = recipe
            .functions
            .iter()
            .map(|function| function.file.clone());
        let ground = Ground::new(repo, base, recipe, files.collect());
        let writer = Writer {
            base,
            recipe,
            options,
            survey: Survey::of(&mut tree, recipe, &ground)?,
            templates: Templates::new()?,
            performance: None,
        };
        let mut run = Run::new(repo, tree, writer, &ground);
        let mut same = false;
        for spec in &recipe.patches[..self.patches] {
            same = run.skip(spec)?;
        }
        Ok(same)
    }

    /// What the cover letter says about them.
    pub(super) fn note(&self, writer: &mut Writer<'_>, recipe: &Recipe) -> Result<String> {
        let what = match self.patches {
            1 => "This base has the first patch of the series".to_owned(),
            count => format!("This base has the first {count} patches of the series"),
        };
        let mut note = format!("{what}; only the rest is sent:\n");
        for spec in &recipe.patches[..self.patches] {
            let message = writer.message(spec)?;
            note.push_str(&format!(
                "\n  {}",
                message.lines().next().unwrap_or_default()
            ));
        }
        Ok(note + "\n")
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
fn undone(
    repo: &Repo,
    base: &Base,
    series: &Series,
    patches: usize,
) -> Result<Option<BTreeMap<String, Option<File>>>> {
    let tree_ids = [
        base.tree_id,
        series.patches[patches - 1].commit.tree_id,
        series.base.tree_id,
    ];
    let mut files = BTreeMap::new();
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

/// Git's own three-way merge of one file (ours, ancestor, theirs); `None` where it conflicts.
fn merge(sides: [&[u8]; 3]) -> Result<Option<Vec<u8>>> {
    let dir = crate::temporary::directory()?;
    let names = ["ours", "ancestor", "theirs"];
    for (name, bytes) in names.into_iter().zip(sides) {
        fs::write(dir.path().join(name), bytes).context("cannot write a temporary file")?;
    }
    let merge = Task::git_alone()
        .dir(dir.path())
        .args(["merge-file", "-p", "-q"]);
    let output = merge.args(names).run()?;
    Ok(output.exit.success().then_some(output.stdout))
}

fn is_refused(error: &anyhow::Error) -> bool {
    matches!(exit_of(error), Exit::Drift | Exit::Usage)
}
