//! A recipe as a base has it: with the file that each of its functions is in.
//!
//! Hides how a file that the recipe leaves open is found. Nothing is guessed: one file has to define the function, and it is said which
//! one where the recipe does not list it.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::tree::Tree;
use crate::error::Refusal;
use crate::facts::Files;
use crate::locate::{Locator, Site, Sites};
use crate::recipe::{FactSpec, FunctionSpec, Home, Place, Probe, Recipe};
use crate::shape::{Mismatch, Missing, missing};

/// Where a function of the recipe is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Whereabouts {
    /// What the recipe calls it.
    pub id: String,
    /// Its name in C.
    pub function: String,
    /// The file that defines it.
    pub file: String,
    /// The line of the definition.
    pub line: usize,
    /// Whether the recipe lists that file.
    pub listed: bool,
    /// Where the recipe speaks of it.
    pub recipe: Place,
}

impl Whereabouts {
    /// What a person is told who has not written where it is.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let Self { function, file, .. } = self;
        (!self.listed).then(|| format!("`{function}()` is in `{file}` on this base"))
    }
}

/// A recipe on a base.
pub(super) struct Placed {
    /// The recipe with the files that were found. Where none was, it is the first one that is listed.
    pub(super) recipe: Recipe,
    /// The functions that were found.
    pub(super) found: Vec<Whereabouts>,
    /// What is wrong with the others, by their ids.
    pub(super) troubles: BTreeMap<String, Mismatch>,
}

impl Placed {
    /// Finds every function of the recipe in a base.
    pub(super) fn of(tree: &mut Tree<'_>, recipe: &Recipe) -> Result<Self> {
        let locator = locator(tree, recipe);
        let mut found = Vec::new();
        let mut troubles = BTreeMap::new();
        let mut files = BTreeMap::new();
        for spec in &recipe.functions {
            match whereabouts(tree, &locator, spec)? {
                Ok(whereabouts) => {
                    files.insert(spec.id.clone(), whereabouts.file.clone());
                    found.push(whereabouts);
                }
                Err(mismatch) => {
                    let listed = listed(spec).into_iter().next().unwrap_or_default();
                    files.insert(spec.id.clone(), listed);
                    troubles.insert(spec.id.clone(), mismatch);
                }
            }
        }
        Ok(Self {
            recipe: recipe.placed(&files),
            found,
            troubles,
        })
    }
}

/// A look at a base for all functions of a recipe that may have to be found.
fn locator<'a>(tree: &Tree<'a>, recipe: &Recipe) -> Locator<'a> {
    let functions = recipe.functions.iter().map(|spec| (&spec.home, &spec.name));
    let facts = recipe.facts.iter().filter_map(|fact| match &fact.probe {
        Probe::Statement { home, function, .. } => Some((home, function)),
        _ => None,
    });
    let is_open = |home: &Home| matches!(home, Home::Searched(_));
    let names = functions
        .chain(facts)
        .filter(|(home, _)| is_open(home))
        .map(|(_, name)| name.clone());
    Locator::of(tree.repo, tree.base.tree_id, names.collect())
}

/// A fact with the file that it is probed in.
pub(super) fn placed_fact(tree: &mut Tree<'_>, spec: &FactSpec) -> Result<FactSpec> {
    let locator = Locator::of(tree.repo, tree.base.tree_id, Vec::new());
    let mut placed = spec.clone();
    if let Probe::Statement {
        file,
        home: Home::Searched(listed),
        function,
        ..
    } = &mut placed.probe
    {
        match find(tree, &locator, function, listed, &spec.place)? {
            Ok(site) => *file = site.file,
            Err(Mismatch {
                message,
                details,
                hint,
            }) => {
                let message = format!("{message}; the fact `{}` is probed in it", spec.name);
                return Err(Refusal::drift(message).details(details).hint(hint).into());
            }
        }
    }
    Ok(placed)
}

/// Where a function of the recipe is, or why that cannot be said.
fn whereabouts(
    tree: &mut Tree<'_>,
    locator: &Locator<'_>,
    spec: &FunctionSpec,
) -> Result<Result<Whereabouts, Mismatch>> {
    let FunctionSpec { name, place, .. } = spec;
    let listed = listed(spec);
    let site = match spec.home {
        Home::Searched(_) => find(tree, locator, name, &listed, place)?,
        _ => exactly(tree, locator, name, &spec.file, place)?,
    };
    Ok(site.map(|site| Whereabouts {
        id: spec.id.clone(),
        function: name.clone(),
        listed: listed.contains(&site.file),
        file: site.file,
        line: site.line,
        recipe: place.clone(),
    }))
}

/// The files that the recipe lists for a function.
fn listed(spec: &FunctionSpec) -> Vec<String> {
    match &spec.home {
        Home::Searched(files) => files.clone(),
        _ => vec![spec.file.clone()],
    }
}

/// A function that has to be in one file.
fn exactly(
    tree: &mut Tree<'_>,
    locator: &Locator<'_>,
    name: &str,
    file: &str,
    place: &Place,
) -> Result<Result<Site, Mismatch>> {
    let site = site_in(tree, file, name)?;
    if let Some(site) = site.as_ref().filter(|site| site.readable) {
        return Ok(Ok(site.clone()));
    }
    let (message, details) = match tree.source(file)? {
        Some(source) => {
            let Missing { message, details } = missing(&source, file, name);
            (message, details)
        }
        None => (format!("the base has no `{file}`"), Vec::new()),
    };
    let mut mismatch = Mismatch {
        message,
        details,
        hint: format!("say which function it is now at {place}"),
    };
    if site.is_some() {
        return Ok(Err(mismatch));
    }
    match locator.find(name, &[file.to_owned()])? {
        Sites::Found(sites) if sites.is_empty() => {}
        Sites::Found(sites) => {
            mismatch.details = quoted(&sites);
            mismatch.hint = format!("say where `{name}()` is now at {place}; `file` may be a list");
        }
        Sites::Missing(count) => {
            mismatch.details.push(unread(count));
            mismatch.hint = format!("say where `{name}()` is now at {place}");
        }
    }
    Ok(Err(mismatch))
}

/// A function that may be in any of these files, or where the base has it.
fn find(
    tree: &mut Tree<'_>,
    locator: &Locator<'_>,
    name: &str,
    listed: &[String],
    place: &Place,
) -> Result<Result<Site, Mismatch>> {
    let mut sites = Vec::new();
    for file in listed {
        sites.extend(site_in(tree, file, name)?);
    }
    if sites.is_empty() {
        match locator.find(name, listed)? {
            Sites::Found(found) => sites = found,
            Sites::Missing(count) => return Ok(Err(untold(name, listed, count, place))),
        }
    }
    match sites.as_slice() {
        [site] if site.readable => Ok(Ok(sites.remove(0))),
        [] => nowhere(tree, name, listed, place).map(Err),
        [site] => Ok(Err(Mismatch {
            message: format!(
                "`{}:{}` has `{name}()`, but not as one definition that can be read",
                site.file, site.line
            ),
            details: quoted(&sites),
            hint: format!("look what the base has there, then mend {place}"),
        })),
        several => {
            let files: Vec<_> = several
                .iter()
                .map(|site| format!("`{}`", site.file))
                .collect();
            Ok(Err(Mismatch {
                message: format!("{} define `{name}()`", files.join(" and ")),
                details: quoted(&sites),
                hint: format!("list the one that is meant, and it alone, at {place}"),
            }))
        }
    }
}

/// What a file of the base has of a function.
fn site_in(tree: &mut Tree<'_>, file: &str, name: &str) -> Result<Option<Site>> {
    let source = tree.source(file)?;
    source.map_or(Ok(None), |source| Site::of(file, &source, name))
}

/// A function that no file of the base has, with what those that are listed have instead.
fn nowhere(tree: &mut Tree<'_>, name: &str, listed: &[String], place: &Place) -> Result<Mismatch> {
    let mut details = Vec::new();
    for file in listed {
        if let Some(source) = tree.source(file)? {
            details.extend(missing(&source, file, name).details);
        }
    }
    Ok(Mismatch {
        message: format!("no file of the base defines `{name}()`"),
        details,
        hint: format!("say which function it is now at {place}"),
    })
}

/// A function of which a partial clone does not tell where it is.
fn untold(name: &str, listed: &[String], count: usize, place: &Place) -> Mismatch {
    let message = match listed {
        [] => format!("where the base defines `{name}()` cannot be told"),
        listed => format!("`{}` does not define `{name}()`", listed.join("`, `")),
    };
    Mismatch {
        message,
        details: vec![unread(count)],
        hint: format!("say in which file it is at {place}, or use a clone that has all of them"),
    }
}

fn quoted(sites: &[Site]) -> Vec<String> {
    let line = |site: &Site| format!("  {}:{}: {}", site.file, site.line, site.head);
    sites.iter().map(line).collect()
}

fn unread(count: usize) -> String {
    format!(
        "  the rest of the tree was not looked at: {count} of its files are not in this partial clone"
    )
}
