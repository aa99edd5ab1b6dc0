//! What a recipe takes from a base without saying what it is: the texts that its open metavariables stand for, and what its facts are.
//!
//! A pattern says what it does not say with `$NAME`. Where the recipe bounds that (`where`, `without`, nested parts), the engine holds the
//! base to it. Where it does not, anything would do; so it must be what it was where the series was proven.

use std::collections::BTreeMap;

use super::form::text_form;
use super::reach::{Item, Said};
use crate::edit::Landing;
use crate::facts::Found;
use crate::pattern::Pattern;
use crate::recipe::{FunctionSpec, PartSpec, Recipe, Target, all_parts};
use crate::shape::Parts;

/// What a recipe has taken from a base.
pub struct Taken<'a> {
    /// The functions' parts, by the functions' ids.
    pub parts: &'a BTreeMap<String, Parts>,
    /// The facts.
    pub facts: &'a [Found],
    /// Where the edits landed.
    pub landings: &'a [Landing],
}

impl Taken<'_> {
    /// All of it as items beside the definitions that the series reaches.
    pub(super) fn items(&self, recipe: &Recipe) -> Vec<Item> {
        let mut items = Vec::new();
        for function in &recipe.functions {
            if let Some(parts) = self.parts.get(&function.id) {
                open_parts(function, &function.parts, parts, &mut items);
            }
        }
        items.extend(self.facts.iter().map(fact));
        items.extend(self.landings.iter().filter_map(|it| edit(recipe, it)));
        items
    }
}

/// The parts whose pattern takes whatever stands in their place.
fn open_parts(function: &FunctionSpec, specs: &[PartSpec], parts: &Parts, items: &mut Vec<Item>) {
    for spec in specs {
        open_parts(function, &spec.parts, parts, items);
        let Some(part) = parts.get(&spec.name).filter(|part| part.statements > 0) else {
            continue;
        };
        if spec.patterns.iter().any(|pattern| is_open(spec, pattern)) {
            items.push(item(
                format!("{}: {}", function.name, spec.name),
                &part.code,
                format!("{}:{}", function.file, part.line),
            ));
        }
    }
}

/// Whether a pattern of a part has a metavariable that can be anything.
fn is_open(part: &PartSpec, pattern: &Pattern) -> bool {
    let is_bounded = |name: &String| {
        part.only.contains_key(name)
            || part.without.contains_key(name)
            || name == crate::shape::BODY && !part.parts.is_empty()
    };
    pattern.metavariables().iter().any(|name| !is_bounded(name))
}

fn fact(fact: &Found) -> Item {
    let value = fact.value.to_string();
    item(format!("fact {}", fact.name), &value, fact.place.clone())
}

/// What the pattern of an edit matched, if it has metavariables.
fn edit(recipe: &Recipe, landing: &Landing) -> Option<Item> {
    let patch = recipe.patches.iter().find(|it| it.name == landing.patch)?;
    let edit = patch.edits.iter().find(|it| it.name == landing.edit)?;
    let Some(Target::Statement { pattern, .. }) = edit.target() else {
        return None;
    };
    let mut names = pattern.metavariables();
    names.retain(|name| name != crate::shape::BODY || !is_divided(recipe, pattern));
    // Where all are kept only they count: the rest is spelled out, or means the same by C's rules.
    let kept: Option<Vec<_>> = names
        .iter()
        .map(|name| landing.captures.get(name))
        .collect();
    let text = match kept {
        Some(kept) => kept
            .into_iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n"),
        None => landing.matched.clone(),
    };
    (!names.is_empty()).then(|| {
        item(
            format!("edit {}/{}", patch.name, edit.name),
            &text,
            format!("{}:{}", landing.file, landing.line),
        )
    })
}

/// Whether a part of the recipe has the same pattern, and divides its body among parts of its own.
fn is_divided(recipe: &Recipe, pattern: &Pattern) -> bool {
    let parts = recipe.functions.iter().flat_map(|it| all_parts(&it.parts));
    let mut divided = parts.filter(|part| !part.parts.is_empty());
    divided.any(|part| {
        let mut patterns = part.patterns.iter();
        patterns.any(|own| own.written().trim() == pattern.written().trim())
    })
}

fn item(name: String, text: &str, place: String) -> Item {
    Item {
        name,
        form: text_form(text.as_bytes()),
        place,
        by: String::new(),
        said: Said::Text(text.to_owned()),
    }
}
