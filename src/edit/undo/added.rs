//! Undoes what an edit added: a file, lines, parameters, definitions, and a function that it wrote anew.
//!
//! Hides where each of them would stand.

use std::ops::Range;

use anyhow::Result;
use bstr::ByteSlice;

use super::draft::{Draft, Found, Holes};
use super::places::{line_starts, places, region, text_start};
use super::{Drafted, Flags, MOST_WAYS, Seen, Undo, Way, only, untouched};
use crate::edit::Layout;
use crate::recipe::{Spot, Text};
use crate::syntax::{Source, line_end};
use crate::template::Inputs;

impl Undo<'_, '_> {
    pub(super) fn created(&mut self, source: &Source, text: &Text) -> Vec<Way> {
        let all = 0..source.text().len();
        let drafts = self.drafts(&[text]).into_iter();
        let is_it = |drafted: &Drafted| {
            let whole = format!("{}\n", drafted.texts[0].trim_end_matches('\n'));
            let draft = Draft::read(&whole);
            let found = draft.and_then(|it| it.at(source.text(), all.clone(), &Holes::new()).ok());
            found.is_some_and(|found| found.iter().any(|found| found.range == all))
        };
        let ways = drafts.filter(is_it).map(|drafted| Way {
            file: None,
            flags: drafted.flags,
            rewritten: None,
            seen: Seen::Text(0),
        });
        ways.collect()
    }

    pub(super) fn parameter(
        &mut self,
        source: &Source,
        name: &str,
        text: &str,
    ) -> Result<Vec<Way>> {
        let Some(function) = only(source, name)? else {
            return Ok(Vec::new());
        };
        let end = function.parameters_end;
        let before = source
            .slice(function.start..end)
            .strip_suffix(text.as_bytes());
        let before = before.and_then(|before| before.trim_end().strip_suffix(b","));
        let found = before.map(|before| function.start + before.len()..end);
        Ok(self.without(source, found.into_iter().collect()))
    }

    /// An include may have been there before, and so be nothing that the edit did.
    pub(super) fn include(&mut self, source: &Source, line: &str) -> Vec<Way> {
        let text = source.text();
        let lines = lines_like(text, line);
        let there = lines.first().map(|range| range.start);
        let alone = lines.iter().filter_map(|range| {
            text[..range.start]
                .ends_with(b"\n\n")
                .then_some(range.start - 1..range.end)
        });
        let mut ways = self.without(source, lines.iter().cloned().chain(alone).collect());
        if let (true, Some(at)) = (ways.is_empty(), there) {
            ways.push(untouched(source, Seen::Shared(at)));
        }
        ways.truncate(1);
        for (way, at) in ways.iter_mut().zip(there) {
            way.seen = Seen::Shared(at);
        }
        ways
    }

    pub(super) fn sorted(&mut self, source: &Source, line: &str) -> Vec<Way> {
        self.without(source, lines_like(source.text(), line))
    }

    /// The file without one of these ranges, where the edit puts it there again.
    fn without(&mut self, source: &Source, ranges: Vec<Range<usize>>) -> Vec<Way> {
        let drafted = Drafted {
            flags: Flags::new(),
            inputs: Inputs::new(),
            texts: Vec::new(),
        };
        let mut ways = Vec::new();
        for range in ranges {
            let at = range.start;
            let file = source.replace(range, b"");
            ways.extend(self.proven(source, file, &drafted, &Holes::new(), at));
        }
        ways
    }

    pub(super) fn inserted(
        &mut self,
        source: &Source,
        spot: &Spot,
        text: &Text,
    ) -> Result<Vec<Way>> {
        let edit = self.search.edit;
        if !edit.defines.is_empty() && edit.defines.iter().all(|it| self.rewritten.contains(it)) {
            let after = matches!(spot, Spot::AfterFunction(_));
            return Ok(self.removed(source, after)?.into_iter().collect());
        }
        let function = match spot {
            Spot::BeforeFunction(_) | Spot::AfterFunction(_) => None,
            _ => self.function(),
        };
        let Some(region) = region(source, function)? else {
            return Ok(Vec::new());
        };
        let mut ways = Vec::new();
        for drafted in self.drafts(&[text]) {
            let rendered = drafted.texts[0].clone();
            if rendered.trim().is_empty() {
                let flags = drafted.flags;
                ways.push(Way {
                    flags,
                    ..untouched(source, Seen::Nothing)
                });
                continue;
            }
            let layout = |indentation: &str| match spot {
                Spot::BeforeFunction(_) => Layout::DefinitionBefore,
                Spot::AfterFunction(_) => Layout::DefinitionAfter,
                Spot::End(_) => Layout::Lines("\t".to_owned()),
                _ => Layout::Lines(indentation.to_owned()),
            };
            for found in places(source, &region, &rendered, layout, &Holes::new()) {
                let at = text_start(source, found.range.start);
                let file = source.replace(found.range.clone(), b"");
                ways.extend(self.proven(source, file, &drafted, &found.holes, at));
                if ways.len() >= MOST_WAYS {
                    return Ok(ways);
                }
            }
        }
        Ok(ways)
    }

    /// The file without the functions that the edit defined and that a later edit has written anew.
    pub(super) fn removed(&self, source: &Source, after: bool) -> Result<Option<Way>> {
        let mut file = source.clone();
        for name in &self.search.edit.defines {
            let Some(function) = only(&file, name)? else {
                return Ok(None);
            };
            let Range { mut start, mut end } = function.range;
            if after && file.text()[..start].ends_with(b"\n\n") {
                start -= 1;
            } else if !after && file.text()[end..].starts_with(b"\n") {
                end += 1;
            }
            file = file.replace(start..end, b"");
        }
        Ok(Some(Way {
            file: Some(file),
            ..untouched(source, Seen::Nothing)
        }))
    }

    /// A function that the edit has written anew: it stays, for nobody can see what it was, but what came with it goes.
    pub(super) fn rewrote(&mut self, source: &Source, name: &str, text: &Text) -> Vec<Way> {
        let mut ways = Vec::new();
        let Ok(Some(function)) = only(source, name) else {
            return ways;
        };
        let known = self.rewritten.contains(name);
        for drafted in self.drafts(&[text]) {
            let region = 0..source.text().len();
            let layout = |_: &str| Layout::Definition;
            let found = places(source, &region, &drafted.texts[0], layout, &Holes::new());
            let is_it = |found: &&Found| {
                found.range.start <= function.range.start && function.range.end <= found.range.end
            };
            let range = found.iter().find(is_it).map(|found| found.range.clone());
            let range = range.or_else(|| known.then(|| function.range.clone()));
            ways.extend(range.map(|range| {
                let seen = if known {
                    Seen::Nothing
                } else {
                    Seen::Text(range.start)
                };
                let own = source.slice(function.range.clone()).to_vec();
                Way {
                    file: Some(source.replace(range, &own)),
                    flags: drafted.flags.clone(),
                    rewritten: Some(name.to_owned()),
                    seen,
                }
            }));
        }
        ways
    }
}

/// The lines of a file that are this line.
fn lines_like(text: &[u8], line: &str) -> Vec<Range<usize>> {
    let ranges = line_starts(text, &(0..text.len())).into_iter();
    let ranges = ranges.map(|start| start..line_end(text, start));
    ranges
        .filter(|range| text[range.clone()].trim_end() == line.as_bytes())
        .collect()
}
