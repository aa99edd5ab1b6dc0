//! Finds the places of whole lines that have their own order: `#include`s, and sorted runs.
//!
//! Hides what makes a run sorted.

use std::collections::BTreeMap;

use anyhow::Result;
use bstr::{BStr, ByteSlice};

use super::{Anchor, Layout, Search};
use crate::syntax::{code_lines, line_end, line_of, line_start};

impl Search<'_> {
    /// The place of a new `#include <header>`: in its alphabetical place where the last run of includes from the same directory
    /// is sorted, behind that run where it is not, and in a paragraph of its own behind all includes where there is none.
    pub(super) fn include(&self, text: &[u8], header: &str) -> Result<Anchor> {
        let line = format!("#include <{header}>");
        let includes: Vec<(usize, &BStr)> = include_lines(text);
        let there = includes
            .iter()
            .find(|(_, found)| found.trim() == line.as_bytes());
        if let Some((offset, _)) = there {
            return Ok(Anchor {
                matched: line,
                ..whole_lines(text, *offset, Layout::Nothing)
            });
        }
        let directory = header
            .split_once('/')
            .map_or("", |(directory, _)| directory);
        let family = format!("#include <{directory}/");
        let last = includes
            .iter()
            .rposition(|(_, found)| found.starts_with(family.as_bytes()));
        let (offset, layout) = match (last, includes.last()) {
            (Some(last), _) => {
                let run: Vec<_> = includes[..=last]
                    .iter()
                    .rev()
                    .take_while(|(_, found)| found.starts_with(family.as_bytes()))
                    .collect();
                let sorted = run.is_sorted_by(|(_, later), (_, earlier)| later >= earlier);
                let before = run
                    .iter()
                    .rev()
                    .find(|(_, found)| sorted && found.as_bytes() > line.as_bytes());
                (
                    before.map_or_else(|| line_end(text, includes[last].0), |(offset, _)| *offset),
                    Layout::Lines(String::new()),
                )
            }
            (None, Some(&(offset, _))) => (line_end(text, offset), Layout::DefinitionAfter),
            (None, None) => {
                return Err(self.lost(
                    format!("`{}` has no `#include` outside of an `#if`", self.edit.file),
                    Vec::new(),
                ));
            }
        };
        Ok(whole_lines(text, offset, layout))
    }

    /// The place of a line among those that start like it (up to its last word).
    pub(super) fn sorted(&self, text: &[u8], line: &str) -> Result<Anchor> {
        let prefix = line
            .rsplit_once(' ')
            .map_or(line, |(prefix, _)| prefix)
            .as_bytes();
        let mut offset = 0;
        let mut run = Vec::new();
        for candidate in text.lines_with_terminator() {
            if candidate.starts_with(prefix) {
                run.push((offset, candidate.trim_end()));
            }
            offset += candidate.len();
        }
        if let Some((offset, _)) = run
            .iter()
            .find(|(_, candidate)| *candidate == line.as_bytes())
        {
            return Err(self.lost(
                format!(
                    "`{}:{}` has `{line}` already",
                    self.edit.file,
                    line_of(text, *offset)
                ),
                Vec::new(),
            ));
        }
        let place = run
            .iter()
            .filter(|(_, candidate)| *candidate < line.as_bytes())
            .count();
        let (before, after) = run.split_at(place);
        if run.is_empty() {
            let what = format!(
                "`{}` has no line that starts with `{}`",
                self.edit.file,
                prefix.as_bstr()
            );
            return Err(self.lost(what, Vec::new()));
        }
        let is_astray = |(at, (_, other)): &(usize, &(usize, &[u8]))| {
            (*at < place) != (*other < line.as_bytes())
        };
        if let Some((_, (offset, other))) = run.iter().enumerate().find(is_astray) {
            let (file, number) = (&self.edit.file, line_of(text, *offset));
            return Err(self.lost(
                format!(
                    "the lines of `{file}` that start with `{}` leave no one place for `{line}`",
                    prefix.as_bstr()
                ),
                vec![format!(
                    "  {file}:{number}: {} (out of order)",
                    other.as_bstr()
                )],
            ));
        }
        let offset = before
            .last()
            .map_or_else(|| after[0].0, |(offset, _)| line_end(text, *offset));
        Ok(whole_lines(text, offset, Layout::Lines(String::new())))
    }
}

/// `#include` lines with their offsets, without the comments behind them; those below an `#if` left out.
fn include_lines(text: &[u8]) -> Vec<(usize, &BStr)> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for code in code_lines(text) {
        let line = &text[code.clone()];
        let Some(directive) = line.strip_prefix(b"#").map(<[u8]>::trim_ascii_start) else {
            continue;
        };
        if directive.starts_with(b"if") {
            depth += 1;
        } else if directive.starts_with(b"endif") {
            depth = depth.saturating_sub(1);
        } else if directive.starts_with(b"include") && depth == 0 {
            found.push((line_start(text, code.start), line.as_bstr()));
        }
    }
    found
}

fn whole_lines(text: &[u8], offset: usize, layout: Layout) -> Anchor {
    let neighbour = text[..offset]
        .lines()
        .next_back()
        .map(|line| line.to_str_lossy().into_owned())
        .unwrap_or_default();
    Anchor {
        function: None,
        range: offset..offset,
        at: offset,
        target: offset..offset,
        ranges: Vec::new(),
        matched: neighbour,
        captures: BTreeMap::new(),
        layout,
        braces: None,
        in_pieces: false,
    }
}
