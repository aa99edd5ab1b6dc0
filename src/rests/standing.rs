//! How a base stands: whether all that the series rests on there says what it said where the series was proven.
//!
//! What a definition said elsewhere is not kept, only its digests; where a base that was proven is in the same repository, its text is
//! read from there to show the difference.

use std::collections::BTreeMap;

use anyhow::Result;
use bstr::ByteSlice;
use serde::Serialize;

use super::form::{condition_id, pieces};
use super::reach::{Item, Said};
use super::record::{Known, Proven};
use crate::index::Found;
use crate::ui::shown_text;

/// How a base stands.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// All that the series rests on, by name.
    pub items: Vec<Item>,
    /// What was never proven.
    pub unproven: Vec<Unproven>,
    /// Why nothing at all is proven, if that is so.
    pub reason: Option<String>,
}

/// A definition whose form was never proven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unproven {
    /// Its name.
    pub name: String,
    /// Where it is: `file:line`.
    pub place: String,
    /// What led to it.
    pub by: String,
    /// The releases that another form of it was proven on; none: it was never seen.
    pub proven_on: Vec<String>,
    /// Its lines; a `+` in front of those with something that the nearest known form does not have.
    pub lines: Vec<String>,
    /// How many pieces of the nearest known form are not there any more.
    pub gone: usize,
}

/// How many lines of one definition are shown.
const MOST_LINES: usize = 12;

/// One definition that a series rests on, for a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rest {
    /// Its name.
    pub name: String,
    /// Where it is: `file:line`, the first of them if there are several.
    pub place: String,
    /// What led to it; empty for a structure.
    pub by: String,
    /// Its form: a digest.
    pub form: String,
    /// Whether that form was proven.
    pub proven: bool,
}

impl Standing {
    /// All of it, by name.
    #[must_use]
    pub fn report(&self) -> Vec<Rest> {
        let items = self.items.iter();
        let rest = |item: &Item| Rest {
            name: item.name.clone(),
            place: item.place.clone(),
            by: item.by.clone(),
            form: item.form.id.clone(),
            proven: self.reason.is_none() && !self.unproven.iter().any(|it| it.name == item.name),
        };
        items.map(rest).collect()
    }

    /// Holds what the series rests on against what was proven.
    pub(super) fn of(items: Vec<Item>, proven: &Result<Proven, String>) -> Self {
        let nothing = Proven::default();
        let known = proven.as_ref().unwrap_or(&nothing);
        let unknown = items
            .iter()
            .filter(|item| !known.knows(&item.name, &item.form));
        let unproven = unknown.map(|item| Unproven::of(item, known)).collect();
        Self {
            items,
            unproven,
            reason: proven.as_ref().err().cloned(),
        }
    }

    /// Takes forms (digests by name) for proven that were proven elsewhere with the same recipe.
    pub fn accept(&mut self, forms: &BTreeMap<String, String>) {
        if forms.is_empty() {
            return;
        }
        let items = &self.items;
        self.unproven.retain(|it| {
            let item = items.iter().find(|item| item.name == it.name);
            item.is_none_or(|item| forms.get(&item.name) != Some(&item.form.id))
        });
        // That nothing beside the series is proven does not matter where something else is.
        self.reason = None;
    }

    /// The forms that are unproven: digests by name.
    #[must_use]
    pub fn unproven_forms(&self) -> BTreeMap<String, String> {
        let is_unproven = |item: &&Item| self.unproven.iter().any(|it| it.name == item.name);
        let items = self.items.iter().filter(is_unproven);
        items
            .map(|item| (item.name.clone(), item.form.id.clone()))
            .collect()
    }

    /// Whether everything is as it was proven.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.reason.is_none() && self.unproven.is_empty()
    }

    /// What is unproven, in a sentence; empty where nothing is.
    #[must_use]
    pub fn sentence(&self) -> String {
        if let Some(reason) = &self.reason {
            return format!("nothing is proven: {reason}");
        }
        let names: Vec<_> = self
            .unproven
            .iter()
            .map(|it| format!("`{}`", it.name))
            .collect();
        match names.as_slice() {
            [] => String::new(),
            [name] => {
                format!("{name}, which the series rests on, was never proven as it is on this base")
            }
            [first, .., last] if names.len() <= 4 => {
                let most = names[..names.len() - 1].join(", ");
                let _ = first;
                format!(
                    "{most} and {last}, which the series rests on, were never proven as they are on this base"
                )
            }
            _ => format!(
                "{} and {} more that the series rests on were never proven as they are on this base",
                names[..3].join(", "),
                names.len() - 3
            ),
        }
    }

    /// The definitions that are unproven, line by line.
    #[must_use]
    pub fn details(&self) -> Vec<String> {
        const MOST: usize = 6;
        // Where nothing is proven there is nothing to compare with.
        if self.reason.is_some() {
            return vec![format!(
                "  the series rests on {} definitions and texts here",
                self.items.len()
            )];
        }
        let mut lines: Vec<_> = self
            .unproven
            .iter()
            .take(MOST)
            .flat_map(Unproven::details)
            .collect();
        if self.unproven.len() > MOST {
            let more: Vec<_> = self.unproven[MOST..]
                .iter()
                .map(|it| format!("`{}`", it.name))
                .collect();
            lines.push(format!("  and: {}", more.join(", ")));
        }
        lines
    }
}

impl Unproven {
    fn of(item: &Item, proven: &Proven) -> Self {
        let known = proven.known(&item.name);
        let nearest = known.iter().min_by_key(|known| distance(known, item));
        let old: Vec<&str> = nearest
            .map(|known| known.pieces.split(' ').collect())
            .unwrap_or_default();
        let gone = old
            .iter()
            .filter(|id| !item.form.pieces.iter().any(|own| own == *id))
            .count();
        let releases = known.iter().flat_map(|known| proven.releases(known));
        let mut proven_on: Vec<String> = releases.map(str::to_owned).collect();
        proven_on.sort();
        proven_on.dedup();
        Self {
            name: item.name.clone(),
            place: item.place.clone(),
            by: item.by.clone(),
            proven_on,
            lines: match &item.said {
                Said::Text(text) => quoted_lines(text),
                Said::Definitions(definitions) => definitions
                    .iter()
                    .flat_map(|it| shown(it, nearest.map(|_| old.as_slice())))
                    .collect(),
                Said::Nothing => Vec::new(),
            },
            gone,
        }
    }

    fn details(&self) -> Vec<String> {
        let by = if self.by.is_empty() {
            String::new()
        } else {
            format!(", by way of `{}`", self.by)
        };
        let mut lines = vec![if self.proven_on.is_empty() {
            format!("  `{}` ({}{by}) was never seen:", self.name, self.place)
        } else {
            let on = self.proven_on.join(", ");
            format!(
                "  `{}` ({}{by}) is otherwise than on {on}:",
                self.name, self.place
            )
        }];
        let shown = self.lines.iter().take(MOST_LINES);
        lines.extend(shown.map(|line| format!("  {line}")));
        if self.lines.len() > MOST_LINES {
            lines.push(format!(
                "    ... and {} more lines",
                self.lines.len() - MOST_LINES
            ));
        }
        match self.gone {
            0 => {}
            1 => lines.push("    one piece that was proven is gone".to_owned()),
            gone => lines.push(format!("    {gone} pieces that were proven are gone")),
        }
        lines
    }
}

/// How many pieces a known form and an item's do not share.
fn distance(known: &Known, item: &Item) -> usize {
    let (own, known): (&[String], Vec<&str>) =
        (&item.form.pieces, known.pieces.split(' ').collect());
    let gone = known.iter().filter(|id| !own.iter().any(|own| own == *id));
    let new = own.iter().filter(|id| !known.contains(&id.as_str()));
    gone.count() + new.count()
}

/// A text that is no definition, line by line.
fn quoted_lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| format!("  {}", shown_text(line.as_bytes())))
        .collect()
}

/// The lines of a definition; where `known` are the pieces of a form, only the lines around what is new, which are marked.
fn shown(found: &Found, known: Option<&[&str]>) -> Vec<String> {
    let text = &found.file.text;
    let is_new = |id: &str| known.is_some_and(|known| !known.contains(&id));
    let new: Vec<_> = pieces(found)
        .into_iter()
        .filter(|piece| is_new(&piece.id))
        .map(|piece| piece.range)
        .collect();
    let conditions = found.definition.conditions.iter();
    let conditions = conditions.filter(|it| is_new(&condition_id(it)));
    let mut lines: Vec<_> = conditions
        .map(|it| format!("+ under `#if {}`", shown_text(it.as_bytes())))
        .collect();
    let mut at = crate::syntax::line_start(text, found.definition.range.start);
    let mut number = found.line();
    while at < found.definition.range.end {
        let end = crate::syntax::line_end(text, at);
        let touched = new.iter().any(|range| range.start < end && at < range.end);
        if touched || known.is_none() {
            let mark = if touched { '+' } else { ' ' };
            let line = text[at..end].trim_end();
            lines.push(format!(
                "{mark} {}:{number}: {}",
                found.path,
                shown_text(line.as_bstr())
            ));
        }
        at = end;
        number += 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rests::Form;
    use crate::rests::record::ProvenBase;

    #[test]
    fn a_definition_is_shown_beside_the_form_that_it_differs_least_from() {
        let item = |id: &str, pieces: &str| Item {
            name: "a".to_owned(),
            form: Form {
                id: id.to_owned(),
                pieces: pieces.split(' ').map(str::to_owned).collect(),
            },
            place: String::new(),
            by: String::new(),
            said: Said::Nothing,
        };
        let mut proven = Proven::nothing("code");
        for (release, pieces) in [("old", "x x x x x y"), ("new", "x b c")] {
            let base = ProvenBase {
                release: release.to_owned(),
                tree: release.to_owned(),
                configurations: Vec::new(),
            };
            proven.add(base, &[item(release, pieces)]);
        }
        // One piece more than the new form, and the old one's `y` is no loss.
        let found = Unproven::of(&item("now", "x b c d"), &proven);
        assert_eq!(found.gone, 0);
        assert_eq!(found.proven_on, ["new", "old"]);
    }
}
