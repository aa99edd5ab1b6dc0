//! The pipeline: a base and a recipe become commits, patch after patch.
//!
//! Hides the order of things: facts and shapes come from the base, once; each patch reads what the patch before it left.

mod conditional;
mod ground;
mod inventory;
mod mentions;
mod merged;
mod place;
mod rest;
mod run;
pub(crate) mod still;
mod survey;
mod tree;
pub mod upstream;
mod without;
mod write;

use anyhow::Result;
use bstr::BString;

use crate::bench::letter;
use crate::bench::record::{self, Standing};
use crate::edit::Landing;
use crate::facts::Found;
use crate::recipe::Recipe;
use crate::repo::{Base, Commit, Repo, Signature};
use crate::rests;
use crate::template::Templates;
use ground::Ground;
pub use ground::unproven;
use inventory::Inventory;
pub use merged::Merged;
use merged::Question;
use place::Placed;
pub use place::Whereabouts;
pub use rest::{Taken, regenerate_left};
use run::Run;
use survey::Survey;
use tree::Tree;
use write::Writer;

/// What the user decides about a run; everything else is the recipe's or the base's.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who wrote the patches.
    pub author: Signature,
    /// Whether the author signs them off.
    pub sign_off: bool,
    /// The series' version.
    pub version: u32,
}

/// A regenerated series.
#[derive(Debug)]
pub struct Series {
    /// What it was regenerated on.
    pub base: Base,
    /// The kernel's release, as its `Makefile` says it.
    pub release: String,
    /// The facts, in the recipe's order.
    pub facts: Vec<Found>,
    /// Where each function of the recipe is.
    pub places: Vec<Whereabouts>,
    /// Where each edit landed.
    pub landings: Vec<Landing>,
    /// How many of the first patches are not among these: the base has them.
    pub merged: usize,
    /// The patches as commits, in order.
    pub patches: Vec<Patch>,
    /// The cover letter's text, without what is said of a base that is unproven.
    pub cover: String,
    /// What stands below the cover letter's `---`.
    pub cover_notes: String,
    /// Whether all that the series rests on says what it said where it was proven; `None` where the recipe does not say what that is.
    pub standing: Option<rests::Standing>,
    /// What to warn of where the recorded performance was left out.
    pub unfit_performance: Option<String>,
}

impl Series {
    /// How the base stands, where something that the series rests on was never proven there.
    #[must_use]
    pub fn unproven(&self) -> Option<&rests::Standing> {
        self.standing.as_ref().filter(|it| !it.is_proven())
    }

    /// The cover letter's text as it is sent: it says where the base is unproven.
    #[must_use]
    pub fn blurb(&self) -> String {
        let Some(standing) = self.unproven() else {
            return self.cover.clone();
        };
        let sentence = format!("Unproven on this base: {}.", standing.sentence());
        let note = letter::wrapped(&sentence);
        format!("{}\n\n{note}\n", self.cover.trim_end())
    }
}

/// One regenerated patch.
#[derive(Debug)]
pub struct Patch {
    /// Its name in the recipe: its identity.
    pub name: String,
    /// Its commit.
    pub commit: Commit,
    /// What stands below its `---`.
    pub notes: String,
    /// The files it touches, by path.
    pub files: Vec<BString>,
}

/// What became of a run.
#[derive(Debug)]
pub enum Regenerated {
    /// A series.
    Series(Box<Series>),
    /// The base has the whole series already: these definitions and files.
    Applied(Vec<String>),
}

/// What can be asked of a base before anything is regenerated on it.
#[derive(Debug)]
pub struct Probed {
    /// The kernel's release.
    pub release: String,
    /// Where those functions of the recipe are that were found.
    pub places: Vec<Whereabouts>,
    /// The facts, in the recipe's order.
    pub facts: Vec<Found>,
}

/// Probes the facts of a base: the kernel's release, where the functions are, and what the recipe asks.
pub fn facts(repo: &Repo, base: &Base, recipe: &Recipe) -> Result<Probed> {
    let mut tree = Tree::new(repo, base);
    let release = survey::release(&mut tree)?;
    let placed = Placed::of(&mut tree, recipe)?;
    tree.show(&placed.recipe.functions);
    Ok(Probed {
        release,
        facts: survey::facts(&mut tree, &placed)?,
        places: placed.found,
    })
}

/// Where `base` has the functions of the recipe; those that were not found are left out.
pub fn places(repo: &Repo, base: &Base, recipe: &Recipe) -> Result<Vec<Whereabouts>> {
    Ok(Placed::of(&mut Tree::new(repo, base), recipe)?.found)
}

/// The recipe with the files in which `base` has its functions. Where one was not found it is the first that the recipe lists.
pub fn placed(repo: &Repo, base: &Base, recipe: &Recipe) -> Result<Recipe> {
    Ok(Placed::of(&mut Tree::new(repo, base), recipe)?.recipe)
}

/// Regenerates the series of `recipe` on `base`: commits in `repo`, which nothing points at.
pub fn regenerate(
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    options: &Options,
) -> Result<Regenerated> {
    let nothing = Merged::default();
    regenerate_rest(repo, base, recipe, options, &nothing, &mut |_| {})
}

/// Regenerates what is left of the series where the base has its first patches; `started` hears the name of each patch as it is begun.
pub fn regenerate_rest(
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    options: &Options,
    merged: &Merged,
    started: &mut dyn FnMut(&str),
) -> Result<Regenerated> {
    let mut tree = Tree::new(repo, base);
    survey::release(&mut tree)?;
    let placed = Placed::of(&mut tree, recipe)?;
    let recipe = &placed.recipe;
    if merged.patches == 0
        && let Some(applied) = applied(repo, base, recipe, options)?
    {
        return Ok(applied);
    }
    merged.undo(&mut tree);
    tree.show(&recipe.functions);
    let ground = Ground::new(repo, base, recipe);
    let survey = Survey::of(&mut tree, &placed, &ground)?;
    let (performance, unfit_performance) = match record::standing(recipe, base, &survey.release)? {
        Standing::None => (None, None),
        Standing::Unfit(warning) => (None, Some(warning)),
        Standing::Current(performance) => (Some(performance), None),
    };
    let writer = Writer {
        repo,
        base,
        recipe,
        options,
        survey,
        templates: Templates::new()?,
        performance,
    };
    let reached = ground.reached(&mut tree, recipe)?;
    let mut run = Run::new(repo, tree, writer, &ground);
    let (there, rest) = recipe.patches.split_at(merged.patches);
    for spec in there {
        run.skip(spec)?;
    }
    let mut patches: Vec<Patch> = Vec::new();
    for spec in rest {
        started(&spec.name);
        let patch = run.patch(spec, patches.last())?;
        patches.push(patch);
    }
    let (landings, mut writer) = run.end();
    let (mut cover, cover_notes) = writer.cover()?;
    if !there.is_empty() {
        cover = format!("{}\n\n{}", cover.trim_end(), merged.note());
    }
    let standing = match &recipe.rests_on {
        None => None,
        Some(spec) => {
            let taken = rests::Taken {
                parts: &writer.survey.parts,
                facts: &writer.survey.facts,
                landings: &landings,
            };
            Some(rests::stand(reached, &taken, recipe, spec)?)
        }
    };
    Ok(Regenerated::Series(Box::new(Series {
        base: base.clone(),
        release: writer.survey.release,
        facts: writer.survey.facts,
        places: placed.found.clone(),
        landings,
        merged: merged.patches,
        patches,
        cover,
        cover_notes,
        standing,
        unfit_performance,
    })))
}

/// What becomes of a base that has something of what the series defines: it has all of the series, or a person has to look. `None`: it has nothing.
fn applied(
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    options: &Options,
) -> Result<Option<Regenerated>> {
    let mut tree = Tree::new(repo, base);
    let named = survey::named(&mut tree, recipe)?;
    if named.is_empty() {
        return Ok(None);
    }
    let question = Question {
        repo,
        base,
        recipe,
        options,
    };
    match question.taken_out(recipe.patches.len())? {
        Ok(_) => Ok(Some(Regenerated::Applied(named))),
        Err(objection) => {
            let inventory = Inventory::of(&mut tree, recipe)?;
            Err(inventory.refusal(objection.as_ref()).into())
        }
    }
}
