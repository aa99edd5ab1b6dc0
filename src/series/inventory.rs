//! Which edits of a series a base has, one by one, where it has a part of them: what a person has to look at.
//!
//! Hides how that is told in files that later edits changed again. It is a report, and no proof of anything.

use anyhow::Result;
use bstr::ByteSlice;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::tree::Tree;
use super::without::{State, Without};
use crate::edit::{Flags, Miss, Seen};
use crate::error::{Refusal, refusal};
use crate::recipe::{Action, EditSpec, Fact, PatchSpec, Recipe};
use crate::syntax::{Source, line_of};

/// How one edit is in the base.
#[derive(Debug, Clone, PartialEq, Eq)]
enum How {
    /// Its text is there.
    There,
    /// There is nothing to be seen of it: its text is empty here, or a later edit has taken its place.
    Unseen,
    /// Something of its name is there: the line that the edit would write, and the one that is there.
    Other { expected: String, found: String },
    /// It is not there.
    Missing,
}

/// One edit, and where it is or would be: a line of the base.
struct Item<'a> {
    patch: &'a PatchSpec,
    edit: &'a EditSpec,
    how: How,
    line: Option<usize>,
    /// Whether the base can have it from the series only.
    own: bool,
}

/// How each edit of a series is in a base.
pub(super) struct Inventory<'a>(Vec<Item<'a>>);

impl<'a> Inventory<'a> {
    /// Looks for each edit, the last one first, and goes on without those that it finds.
    pub(super) fn of(tree: &mut Tree<'_>, recipe: &'a Recipe) -> Result<Self> {
        let mut without = Without::new(recipe, recipe.patches.len())?;
        let start = State::of(tree, &without.edits)?;
        let mut state = start.clone();
        let mut items = Vec::new();
        for index in (0..without.edits.len()).rev() {
            let (patch, edit) = without.edits[index];
            let way = without.ways(&state, index)?.into_iter().next();
            let way = way.filter(|way| way.seen != Seen::Unwanted);
            let (how, at) = match &way {
                Some(way) => seen(way.seen),
                None => missed(without.miss(&state, index)?, &state, edit),
            };
            items.push(Item {
                patch,
                edit,
                line: at.and_then(|at| base_line(&start, &state, &edit.file, at)),
                how,
                own: matches!(way.as_ref().map(|way| way.seen), Some(Seen::Text(_))),
            });
            // What has another text is taken away, too: what stood beside it is seen then.
            let altered = matches!(items.last(), Some(item) if item.is_other());
            if let Some(way) = way {
                state = state.with(edit, way);
            } else if altered {
                state = without.forced(&state, index)?;
            }
        }
        items.reverse();
        items.retain(|it| it.how == How::There || is_made(it.edit, &state.flags));
        Ok(Self(items))
    }

    /// Whether the base has something that it can have from the series only.
    pub(super) fn has_some(&self) -> bool {
        self.0.iter().any(|item| item.own)
    }

    /// Why a base is neither one without the series nor one that has it; `objection` is what is said of it without the edits.
    pub(super) fn refusal(&self, objection: Option<&anyhow::Error>) -> Refusal {
        let (message, mut details) = if self.has_some() {
            let seen = self.0.iter().filter(|it| it.how != How::Unseen);
            let (all, there) = (
                seen.clone().count(),
                seen.filter(|it| it.how == How::There).count(),
            );
            (
                format!(
                    "a part of the series is in the base already: {there} of {all} edits are there as the recipe makes them"
                ),
                self.lines(),
            )
        } else {
            let others = self.0.iter().filter(|it| it.is_other());
            (self.names(), others.flat_map(Item::lines).collect())
        };
        if let Some(objection) = objection {
            details.push(format!("  without the edits that are there: {objection}"));
            let more = refusal(objection)
                .map(|it| &it.details[..])
                .unwrap_or_default();
            details.extend(more.iter().map(|line| format!("  {line}")));
        }
        Refusal::drift(message).details(details).hint(self.hint())
    }

    /// What has a name of the series', and is something else.
    fn names(&self) -> String {
        let others = self.0.iter().filter(|it| it.is_other());
        let names = others.map(|it| match &it.edit.action {
            Action::Create(_) => format!("`{}`", it.edit.file),
            _ => format!(
                "`{}()` in `{}`",
                it.edit.defines.join("()`, `"),
                it.edit.file
            ),
        });
        let names: Vec<_> = names.collect();
        match names.len() {
            0 => "the base has names of the series already, and no edit is there as the recipe makes it".to_owned(),
            1 => format!("{} is in the base already, and not as the recipe makes it", names[0]),
            _ => format!("{} are in the base already, and not as the recipe makes them", names.join(", ")),
        }
    }

    fn hint(&self) -> String {
        let differs = |it: &&Item<'_>| !matches!(it.how, How::There | How::Unseen);
        let last = self.0.iter().rposition(|it| it.own).unwrap_or(self.0.len());
        let other = self.0.iter().find(|it| it.is_other());
        let first = other.or_else(|| self.0[..last].iter().find(differs));
        let Some(item) = first.or_else(|| self.0.iter().find(differs)) else {
            return "look what the base changed besides, and let the recipe's parts claim it"
                .to_owned();
        };
        let place = &item.edit.place;
        let make = format!(
            "let the recipe make what the base has, at {place}, and what is merged is left out"
        );
        if self.has_some() {
            make
        } else {
            format!("{make}; if it is something else, give the series' own another name there")
        }
    }

    /// What is there, as a person reads it.
    pub(super) fn there(&self) -> Vec<String> {
        let own = self.0.iter().filter(|it| it.own);
        own.flat_map(Item::lines).collect()
    }

    /// The edits as a person reads them, patch by patch, what is not there first.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for items in self.0.chunk_by(|one, two| one.patch.name == two.patch.name) {
            let seen: Vec<_> = items.iter().filter(|it| it.how != How::Unseen).collect();
            let all = |how: &How| seen.iter().all(|item| item.how == *how);
            let name = &items[0].patch.name;
            if seen.is_empty() {
                continue;
            }
            if all(&How::There) {
                lines.push(format!("  there: patch `{name}`, all of its edits"));
            } else if all(&How::Missing) {
                lines.push(format!("  not there: patch `{name}`, none of its edits"));
            } else {
                let (there, not): (Vec<_>, Vec<_>) =
                    seen.into_iter().partition(|it| it.how == How::There);
                // A line that others want as well says nothing.
                let there = there.into_iter().filter(|it| it.own);
                lines.extend(not.into_iter().chain(there).flat_map(Item::lines));
            }
        }
        lines
    }
}

impl Item<'_> {
    fn is_other(&self) -> bool {
        matches!(self.how, How::Other { .. })
    }

    fn lines(&self) -> Vec<String> {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        let EditSpec { name, file, .. } = self.edit;
        let what = format!("patch `{}`, edit `{name}`: {file}{line}", self.patch.name);
        match &self.how {
            How::There => vec![format!("  there: {what}")],
            How::Missing | How::Unseen => vec![format!("  not there: {what}")],
            How::Other { expected, found } => vec![
                format!("  with another text: {what}"),
                format!("    the recipe's: {expected}"),
                format!("    the base's:   {found}"),
            ],
        }
    }
}

fn seen(seen: Seen) -> (How, Option<usize>) {
    match seen {
        Seen::Text(at) | Seen::Shared(at) => (How::There, Some(at)),
        Seen::Nothing | Seen::Unwanted => (How::Unseen, None),
    }
}

fn missed(miss: Option<Miss>, state: &State, edit: &EditSpec) -> (How, Option<usize>) {
    let text = state.source(&edit.file).map(Source::text);
    match (miss, text) {
        (Some(Miss { at, expected }), Some(text)) if !expected.is_empty() => {
            let found = text.lines().nth(line_of(text, at) - 1).unwrap_or_default();
            let found = found.to_str_lossy().into_owned();
            (How::Other { expected, found }, Some(at))
        }
        (miss, _) => (How::Missing, miss.map(|miss| miss.at)),
    }
}

/// Whether an edit is made where these facts are known.
fn is_made(edit: &EditSpec, flags: &Flags) -> bool {
    edit.when.iter().all(|(fact, value)| {
        let known = flags.get(&format!("facts.{fact}"));
        known.is_some_and(|known| Fact::Flag(*known) == *value)
    })
}

/// The line of the base in which an offset lies that was found when some edits were out already.
fn base_line(start: &State, state: &State, file: &str, at: usize) -> Option<usize> {
    let (base, now) = (start.source(file)?.text(), state.source(file)?.text());
    let line = line_of(now, at) - 1;
    let [old, new]: [Vec<&[u8]>; 2] = [base, now].map(|text| text.lines().collect());
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let op = ops.into_iter().find(|op| op.new_range().contains(&line))?;
    Some(
        1 + match op {
            DiffOp::Equal {
                old_index,
                new_index,
                ..
            } => old_index + line - new_index,
            other => other.old_range().start,
        },
    )
}
