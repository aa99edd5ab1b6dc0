//! Where an edit would be whose text is not there, and what is there instead.
//!
//! Hides how far a text agrees with what has its name.

use super::draft::{Draft, Holes, Miss};
use super::original::patterns;
use super::places::{line_starts, text_start};
use super::{Undo, only};
use crate::facts::one_line;
use crate::recipe::Action;
use crate::syntax::Source;

impl Undo<'_, '_> {
    /// Where a text of the edit that is not there would be, or where what has its name is another text.
    pub fn miss(&mut self) -> Option<Miss> {
        let source = self.source?;
        let edit = self.search.edit;
        if let Some(miss) = self.other_text(source) {
            return Some(miss);
        }
        let anchor = match &edit.action {
            Action::Create(_) => return None,
            Action::Insert(spot, _) => self.search.spot(source, spot),
            Action::Replace(target, _) | Action::Extract { target, .. } => {
                self.search.target(source, target)
            }
        };
        anchor.ok().map(|anchor| Miss {
            at: anchor.at,
            expected: String::new(),
        })
    }

    /// Where the file or the function that it makes stops being what it would make.
    pub(super) fn other_text(&mut self, source: &Source) -> Option<Miss> {
        let edit = self.search.edit;
        let text = match &edit.action {
            Action::Create(text) | Action::Insert(_, text) | Action::Replace(_, text) => vec![text],
            Action::Extract { helper, call, .. } => vec![helper, call],
        };
        let region = match (&edit.action, edit.defines.first()) {
            (Action::Create(_), _) => 0..1,
            (_, Some(name)) => {
                let function = only(source, name).ok().flatten()?;
                function.range.start..function.start + 1
            }
            _ => return None,
        };
        let starts = line_starts(source.text(), &region);
        let mut misses = Vec::new();
        for drafted in self.drafts(&text) {
            let Some(draft) = Draft::read(drafted.texts[0].trim_end_matches('\n')) else {
                continue;
            };
            for start in &starts {
                let range = *start..source.text().len();
                match draft.at(source.text(), range, &Holes::new()) {
                    Err(miss) => misses.push(miss),
                    Ok(_) => return Some(self.other_place(source, *start)),
                }
            }
        }
        misses.into_iter().max_by_key(|miss| miss.at)
    }

    /// What is wrong with a text that is what the edit would write around code of the base's.
    pub(super) fn other_place(&self, source: &Source, at: usize) -> Miss {
        let edit = self.search.edit;
        let patterns = match &edit.action {
            Action::Extract { target, .. } => patterns(target, self.search.functions),
            _ => Vec::new(),
        };
        let written: Vec<_> = patterns
            .iter()
            .map(|it| one_line(it.written().into()))
            .collect();
        let body = edit
            .defines
            .first()
            .and_then(|name| only(source, name).ok().flatten());
        match body {
            Some(function) if !written.is_empty() => Miss {
                at: text_start(source, function.body.start),
                expected: format!("nothing but `{}`", written.join("` or `")),
            },
            _ => Miss {
                at,
                expected: "the same, but at another place".to_owned(),
            },
        }
    }
}
