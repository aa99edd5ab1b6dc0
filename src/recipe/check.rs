//! What must hold between the parts of a recipe, whatever the base: names are unique, what is named is there, and nothing is
//! captured in vain.
//!
//! Hides nothing else; every rule is an error with file and line.

use std::collections::BTreeMap;

use anyhow::Result;

use super::{EditSpec, Fact, Recipe, Target, Text, all_parts, wrong};
use crate::error::Refusal;
use crate::pattern::Pattern;

/// Checks a whole recipe.
pub(super) fn consistent(recipe: &Recipe) -> Result<()> {
    unique(recipe)?;
    for edit in recipe.patches.iter().flat_map(|patch| &patch.edits) {
        named_things_are_there(recipe, edit)?;
        captures_of_edit_are_used(edit)?;
    }
    captures_of_parts_are_used(recipe)
}

/// Names that must not come twice.
fn unique(recipe: &Recipe) -> Result<()> {
    let mut seen = BTreeMap::new();
    let facts = recipe
        .facts
        .iter()
        .map(|fact| (format!("fact `{}`", fact.name), &fact.place));
    let functions = recipe
        .functions
        .iter()
        .map(|function| (format!("function `{}`", function.id), &function.place));
    let patches = recipe
        .patches
        .iter()
        .map(|patch| (format!("patch `{}`", patch.name), &patch.place));
    let edits = recipe.patches.iter().flat_map(|patch| {
        patch.edits.iter().map(move |edit| {
            (
                format!("edit `{}` of patch `{}`", edit.name, patch.name),
                &edit.place,
            )
        })
    });
    let parts = recipe.functions.iter().flat_map(|function| {
        all_parts(&function.parts)
            .into_iter()
            .map(move |part| (format!("part `{}.{}`", function.id, part.name), &part.place))
    });
    for (what, place) in facts
        .chain(functions)
        .chain(patches)
        .chain(edits)
        .chain(parts)
    {
        if let Some(first) = seen.insert(what.clone(), place) {
            return Err(wrong(place, format!("{what} is already at {first}")));
        }
    }
    Ok(())
}

/// Facts, parts and templates that an edit names.
fn named_things_are_there(recipe: &Recipe, edit: &EditSpec) -> Result<()> {
    let known = |name: &String| recipe.facts.iter().any(|fact| fact.name == *name);
    if let Some(name) = edit.when.keys().find(|name| !known(name)) {
        let message =
            format!("`when` asks for the fact `{name}`, which `series.toml` does not probe");
        return Err(wrong(&edit.place, message));
    }
    if let Some(Target::Part { function, part }) = edit.target() {
        let spec = recipe.functions.iter().find(|spec| spec.id == *function);
        let found = spec.is_some_and(|spec| {
            all_parts(&spec.parts)
                .iter()
                .any(|known| known.name == *part)
        });
        if !found {
            return Err(wrong(
                &edit.place,
                format!("the recipe has no part `{function}.{part}`"),
            ));
        }
    }
    let missing = edit.texts().into_iter().find_map(|text| match text {
        Text::Template(name) if !recipe.templates.contains_key(name) => Some(name),
        _ => None,
    });
    match missing {
        Some(name) => Err(
            Refusal::usage(format!("{}: there is no template `{name}`", edit.place))
                .hint("templates are files `NAME.tera` in the series' folder of `templates/`")
                .into(),
        ),
        None => Ok(()),
    }
}

/// A capture that no input takes up was written for nothing, and is likely a mistake.
fn captures_of_edit_are_used(edit: &EditSpec) -> Result<()> {
    let Some(Target::Statement { pattern, .. }) = edit.target() else {
        return Ok(());
    };
    let used = |name: &String| {
        edit.inputs
            .values()
            .any(|input| input.is_path(&format!("match.{name}")))
    };
    match pattern.names().into_iter().find(|name| !used(name)) {
        Some(name) => Err(Refusal::usage(format!(
            "{}: edit `{}` captures `${name}` and does not use it",
            edit.place, edit.name
        ))
        .hint(format!("write `$_{name}` for what does not matter"))
        .into()),
        None => Ok(()),
    }
}

/// The same for a capture of a part: by an input, by `where` or `without`, or as the `BODY` of nested parts.
fn captures_of_parts_are_used(recipe: &Recipe) -> Result<()> {
    let patches = recipe.patches.iter();
    let of_patches = patches.flat_map(|patch| {
        patch
            .edits
            .iter()
            .map(|edit| &edit.inputs)
            .chain([&patch.inputs])
    });
    let inputs: Vec<&Fact> = of_patches
        .chain([&recipe.series.inputs])
        .flat_map(BTreeMap::values)
        .collect();
    for function in &recipe.functions {
        for part in all_parts(&function.parts) {
            let used = |name: &String| {
                let path = format!("{}.{}.{name}", function.id, part.name);
                let divided = name == "BODY" && !part.parts.is_empty();
                divided
                    || part.only.contains_key(name)
                    || part.without.contains_key(name)
                    || inputs.iter().any(|input| input.is_path(&path))
            };
            let names = part.patterns.iter().flat_map(Pattern::names);
            if let Some(name) = names.into_iter().find(|name| !used(name)) {
                return Err(Refusal::usage(format!(
                    "{}: part `{}` captures `${name}` and nothing uses it",
                    part.place, part.name
                ))
                .hint(format!("write `$_{name}` for what does not matter"))
                .into());
            }
        }
    }
    Ok(())
}
