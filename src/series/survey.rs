//! What a base says about itself before anything is edited: its release, the facts, and the functions' parts.
//!
//! Hides how a base that does not fit, or has the series already, is told from one that does.

use std::collections::BTreeMap;

use anyhow::Result;
use bstr::ByteSlice;

use super::place::{Placed, placed_fact};
use super::tree::Tree;
use crate::error::Refusal;
use crate::facts::{self, Found};
use crate::recipe::{Action, EditSpec, Fact, FunctionSpec, PatchSpec, Recipe};
use crate::shape::{Mismatch, Missing, Parts, Sees, divide, missing, quote};
use crate::syntax::Source;

/// What a base says about itself: enough to explain, or to regenerate.
pub(super) struct Survey {
    /// The kernel's release.
    pub(super) release: String,
    /// The facts, in the recipe's order.
    pub(super) facts: Vec<Found>,
    pub(super) parts: BTreeMap<String, Parts>,
}

impl Survey {
    /// Surveys a base.
    pub(super) fn of(tree: &mut Tree<'_>, placed: &Placed, sees: &dyn Sees) -> Result<Self> {
        let release = release(tree)?;
        // First: a function that has changed is explained best by its parts.
        let parts = shapes(tree, placed, sees)?;
        Ok(Self {
            release,
            facts: facts(tree, placed)?,
            parts,
        })
    }
}

/// Probes every fact of the recipe.
pub(super) fn facts(tree: &mut Tree<'_>, placed: &Placed) -> Result<Vec<Found>> {
    let facts = placed.recipe.facts.iter();
    facts
        .map(|spec| facts::probe(&placed_fact(tree, spec)?, tree))
        .collect()
}

/// The kernel's release; a base without one is no kernel.
pub(super) fn release(tree: &mut Tree<'_>) -> Result<String> {
    let makefile = facts::Files::bytes(tree, "Makefile")?;
    let release = makefile.as_deref().and_then(facts::release);
    release.ok_or_else(|| {
        Refusal::usage(format!(
            "`{}` is no kernel: its root has no `Makefile` that says which version it is",
            tree.base.rev
        ))
        .hint("name a kernel's revision with `--base`")
        .into()
    })
}

/// What of a patch a base has: the files that it creates, and the functions that it defines, whatever the facts are.
#[derive(Debug, Default)]
pub(super) struct Presence {
    pub(super) there: Vec<String>,
    pub(super) missing: Vec<String>,
}

/// What of each patch the base has.
pub(super) fn presence(tree: &mut Tree<'_>, recipe: &Recipe) -> Result<Vec<Presence>> {
    let mut found = Vec::new();
    for patch in &recipe.patches {
        let mut presence = Presence::default();
        for edit in patch.edits.iter().filter(|edit| edit.when.is_empty()) {
            presence.look(tree, edit)?;
        }
        found.push(presence);
    }
    Ok(found)
}

impl Presence {
    fn look(&mut self, tree: &mut Tree<'_>, edit: &EditSpec) -> Result<()> {
        if let Action::Create(_) = edit.action {
            let found = tree.entry(&edit.file)?.is_some();
            self.add(found, format!("`{}`", edit.file));
        }
        for name in &edit.defines {
            let mentioned = tree
                .entry(&edit.file)?
                .is_some_and(|entry| entry.bytes.contains_str(name));
            let source = if mentioned {
                facts::Files::source(tree, &edit.file)?
            } else {
                None
            };
            let functions = source
                .map(|source| source.functions_named(name))
                .transpose()?;
            let found = functions.is_some_and(|functions| !functions.is_empty());
            self.add(found, format!("`{name}()` in `{}`", edit.file));
        }
        Ok(())
    }

    fn add(&mut self, found: bool, what: String) {
        if found {
            self.there.push(what);
        } else {
            self.missing.push(what);
        }
    }
}

/// What the base has by name of what the recipe creates; that says nothing yet of what it is.
pub(super) fn named(tree: &mut Tree<'_>, recipe: &Recipe) -> Result<Vec<String>> {
    let presence = presence(tree, recipe)?;
    Ok(presence.into_iter().flat_map(|it| it.there).collect())
}

/// Divides every function that the recipe builds on; all that does not fit is reported at once.
fn shapes(
    tree: &mut Tree<'_>,
    placed: &Placed,
    sees: &dyn Sees,
) -> Result<BTreeMap<String, Parts>> {
    let recipe = &placed.recipe;
    let mut divided = BTreeMap::new();
    let mut mismatches = Vec::new();
    for spec in &recipe.functions {
        let shaped = match placed.troubles.get(&spec.id) {
            Some(trouble) => Err(vec![trouble.clone()]),
            None => shape(tree, spec, sees)?,
        };
        match shaped {
            Ok(parts) => drop(divided.insert(spec.id.clone(), parts)),
            Err(mut wrong) => {
                for mismatch in &mut wrong {
                    mismatch.details.extend(tree.notes(&spec.file));
                    mismatch.details.extend(needed_by(recipe, spec));
                }
                mismatches.append(&mut wrong);
            }
        }
    }
    if mismatches.is_empty() {
        Ok(divided)
    } else {
        Err(drifted(mismatches))
    }
}

/// One function of the base, divided; or why it cannot be.
fn shape(
    tree: &mut Tree<'_>,
    spec: &FunctionSpec,
    sees: &dyn Sees,
) -> Result<Result<Parts, Vec<Mismatch>>> {
    let FunctionSpec {
        file, name, place, ..
    } = spec;
    let mismatch = |message, details, hint| {
        Ok(Err(vec![Mismatch {
            message,
            details,
            hint,
        }]))
    };
    let source = facts::Files::source(tree, file)?.unwrap_or_else(|| Source::new(Vec::new()));
    let found = source.functions_named(name)?;
    match found.as_slice() {
        [function] => Ok(divide(&source, function, spec, sees)),
        [] => {
            let Missing { message, details } = missing(&source, file, name);
            let hint = format!("say which function it is now at {place}");
            mismatch(message, details, hint)
        }
        several => {
            let heads = several.iter().map(|found| found.start..found.body.start);
            let details = heads.flat_map(|head| quote(&source, file, &head));
            let message = format!("`{file}` defines `{name}()` {} times", several.len());
            let hint = format!("say which one is meant at {place}");
            mismatch(message, details.collect(), hint)
        }
    }
}

/// The edits that build on a function, a line for each patch that has some.
fn needed_by(recipe: &Recipe, spec: &FunctionSpec) -> Vec<String> {
    let path = format!("{}.", spec.id);
    let builds_on = |edit: &&EditSpec| {
        let inputs = edit.inputs.values();
        let mut paths = inputs.filter_map(|input| match input {
            Fact::Text(path) => Some(path),
            Fact::Flag(_) => None,
        });
        edit.is_about(&spec.id, &spec.name) || paths.any(|input| input.starts_with(&path))
    };
    let line = |patch: &PatchSpec| {
        let edits = patch.edits.iter().filter(builds_on);
        let names: Vec<_> = edits.map(|edit| format!("`{}`", edit.name)).collect();
        let list = names.join(", ");
        (!names.is_empty()).then(|| format!("  patch `{}` builds on it: {list}", patch.name))
    };
    recipe.patches.iter().filter_map(line).collect()
}

/// One error for all that does not fit.
fn drifted(mut mismatches: Vec<Mismatch>) -> anyhow::Error {
    let first = mismatches.remove(0);
    let mut details = first.details;
    let mut hint = first.hint;
    if !mismatches.is_empty() {
        details.push(format!("  hint: {hint}"));
        hint = String::from("mend each of these places in the recipe, then run it again");
    }
    for mismatch in mismatches {
        details.push(mismatch.message);
        details.extend(mismatch.details);
        details.push(format!("  hint: {}", mismatch.hint));
    }
    Refusal::drift(first.message)
        .details(details)
        .hint(hint)
        .into()
}
