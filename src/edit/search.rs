//! Finds the anchors of edits: the one place in a file that each is about.
//!
//! Hides what makes a place unique, and what is shown when there is none or more than one.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use bstr::{BStr, ByteSlice};

use super::{Anchor, Layout};
use crate::error::Refusal;
use crate::facts::one_line;
use crate::pattern::{Match, Pattern};
use crate::recipe::{EditSpec, FunctionSpec, PartSpec, Spot, Target, all_parts};
use crate::shape::{closest, left_aligned, quote, similar_functions};
use crate::syntax::{Function, Source, line_end, line_of, line_start};

/// What the search for anchors needs to know.
pub struct Search<'a> {
    /// The patch, for errors.
    pub patch: &'a str,
    /// The edit.
    pub edit: &'a EditSpec,
    /// The functions whose parts the recipe lists.
    pub functions: &'a [FunctionSpec],
    /// The functions that earlier edits of the series have defined.
    pub defined: Vec<String>,
}

impl Search<'_> {
    /// Where an insertion goes.
    pub fn spot(&self, source: &Source, spot: &Spot) -> Result<Anchor> {
        match spot {
            Spot::BeforeFunction(name) => {
                let function = self.function(source, name)?;
                let start = function.range.start;
                Ok(beside(source, function, start, Layout::DefinitionBefore))
            }
            Spot::AfterFunction(name) => {
                let function = self.function(source, name)?;
                let end = function.range.end;
                Ok(beside(source, function, end, Layout::DefinitionAfter))
            }
            Spot::Before(target) => {
                let mut anchor = self.target(source, target)?;
                let start = line_start(source.text(), anchor.range.start);
                anchor.become_lines(start);
                Ok(anchor)
            }
            Spot::After(target) => {
                let mut anchor = self.target(source, target)?;
                let end = line_end(source.text(), anchor.range.end);
                anchor.become_lines(end);
                Ok(anchor)
            }
            Spot::End(name) => {
                let function = self.function(source, name)?;
                let end = function.body.end;
                Ok(beside(
                    source,
                    function,
                    end,
                    Layout::Lines("\t".to_owned()),
                ))
            }
            Spot::Parameter(name, text) => {
                let function = self.function(source, name)?;
                self.parameter(source, function, text.trim())
            }
            Spot::Include(header) => self.include(source.text(), header),
            Spot::Sorted(line) => self.sorted(source.text(), line),
        }
    }

    /// The statements that a target names.
    pub fn target(&self, source: &Source, target: &Target) -> Result<Anchor> {
        match target {
            Target::Function(name) => {
                let function = self.function(source, name)?;
                if !self.defined.contains(name) {
                    return Err(Refusal::usage(format!(
                        "{}: edit `{}` replaces the whole of `{name}()`, which is the base's own",
                        self.edit.place, self.edit.name
                    ))
                    .hint("take the base's functions apart by `part` or `statement`, so that nothing of them is lost")
                    .into());
                }
                let range = function.range.clone();
                let mut anchor = beside(source, function, range.start, Layout::Definition);
                anchor.range = range;
                Ok(anchor)
            }
            Target::Statement { function, pattern } => {
                let function = self.function(source, function)?;
                let found = pattern.find(source, function.block()?);
                self.only(source, function, found, &[pattern])
            }
            Target::Part { function, part } => {
                let (spec, part) = self.part(function, part)?;
                let function = self.function(source, &spec.name)?;
                let block = function.block()?;
                let found: Vec<_> = part
                    .patterns
                    .iter()
                    .flat_map(|pattern| pattern.find(source, block))
                    .collect();
                self.only(
                    source,
                    function,
                    found,
                    &part.patterns.iter().collect::<Vec<_>>(),
                )
            }
        }
    }

    /// The place in front of the function that an anchor is in, where a helper goes to.
    pub fn helper(&self, source: &Source, anchor: &Anchor) -> Result<Anchor> {
        let name = anchor.function_name().unwrap_or_default();
        let function = self.function(source, name)?;
        let start = function.range.start;
        Ok(beside(source, function, start, Layout::DefinitionBefore))
    }

    fn part(&self, function: &str, part: &str) -> Result<(&FunctionSpec, &PartSpec)> {
        let spec = self.functions.iter().find(|spec| spec.id == function);
        let found = spec.and_then(|spec| {
            Some((
                spec,
                all_parts(&spec.parts)
                    .into_iter()
                    .find(|known| known.name == part)?,
            ))
        });
        found.ok_or_else(|| {
            Refusal::usage(format!(
                "{}: the recipe has no part `{function}.{part}`",
                self.edit.place
            ))
            .hint("parts are listed under `[[function]]` in `series.toml`")
            .into()
        })
    }

    /// The one function of this name.
    fn function(&self, source: &Source, name: &str) -> Result<Function> {
        let mut found = source.functions_named(name)?;
        if found.len() == 1 {
            return Ok(found.remove(0));
        }
        if found.is_empty() {
            return Err(self.lost(
                format!("`{}` does not define `{name}()`", self.edit.file),
                similar_functions(source, &self.edit.file, name),
            ));
        }
        let places = found
            .iter()
            .flat_map(|function| {
                quote(
                    source,
                    &self.edit.file,
                    &(function.start..function.body.start),
                )
            })
            .collect();
        Err(self.lost(
            format!(
                "`{}` defines `{name}()` {} times",
                self.edit.file,
                found.len()
            ),
            places,
        ))
    }

    fn only(
        &self,
        source: &Source,
        function: Function,
        mut found: Vec<Match>,
        patterns: &[&Pattern],
    ) -> Result<Anchor> {
        let file = &self.edit.file;
        let written: Vec<_> = patterns
            .iter()
            .map(|pattern| format!("`{}`", pattern.written()))
            .collect();
        let written = written.join(" or ");
        if found.len() > 1 {
            let places = found
                .iter()
                .flat_map(|found| quote(source, file, &found.range))
                .collect();
            let times = found.len();
            return Err(self.lost(
                format!(
                    "{times} places in `{}()` look like {written}; expected one",
                    function.name
                ),
                places,
            ));
        }
        let Some(found) = found.pop() else {
            let block = function.block()?;
            let statements = all_statements(source, block);
            let wanted: Vec<_> = patterns.iter().map(|pattern| pattern.written()).collect();
            let near = closest(&wanted, statements.into_iter())
                .into_iter()
                .flat_map(|range| quote(source, file, &range))
                .collect();
            return Err(self.lost(
                format!("no statement of `{}()` looks like {written}", function.name),
                near,
            ));
        };
        let text = left_aligned(source, &found.range);
        let mut captures: BTreeMap<_, _> = found
            .captures
            .iter()
            .map(|(name, range)| (name.clone(), left_aligned(source, range)))
            .collect();
        captures.insert("text".to_owned(), text);
        let start = line_start(source.text(), found.range.start);
        let indentation = source.slice(start..found.range.start).to_string();
        if !indentation.trim().is_empty() {
            return Err(self.lost(
                "the anchor does not stand at the start of a line".to_owned(),
                quote(source, file, &found.range),
            ));
        }
        Ok(Anchor {
            at: found.start,
            matched: one_line(source.slice(found.start..found.range.end)),
            range: found.range,
            function: Some(function),
            captures,
            layout: Layout::Statements(indentation),
        })
    }

    /// The place behind the last parameter; on a line of its own where the list has several lines and the last one
    /// has no room left.
    fn parameter(&self, source: &Source, function: Function, text: &str) -> Result<Anchor> {
        let header = source
            .slice(function.start..function.body.start)
            .to_string();
        let close = header
            .rfind(')')
            .filter(|_| !function.parameters.is_empty());
        let close = close.ok_or_else(|| {
            self.lost(
                format!("`{}()` has no parameter to stand behind", function.name),
                Vec::new(),
            )
        })?;
        let line = header[..close]
            .rfind('\n')
            .map_or(&header[..close], |newline| &header[newline + 1..close]);
        let several_lines = line.len() < close;
        let between = if several_lines && columns(line) + ", )".len() + text.len() > 80 {
            let indentation = line.len() - line.trim_start().len();
            format!(",\n{}", &line[..indentation])
        } else {
            ", ".to_owned()
        };
        let at = function.start + close;
        Ok(beside(source, function, at, Layout::Parameter(between)))
    }

    /// The place of a new `#include <header>`: in its alphabetical place where the last run of includes from the same directory
    /// is sorted, behind that run where it is not, and in a paragraph of its own behind all includes where there is none.
    fn include(&self, text: &[u8], header: &str) -> Result<Anchor> {
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
                    format!("`{}` has no `#include`s", self.edit.file),
                    Vec::new(),
                ));
            }
        };
        Ok(whole_lines(text, offset, layout))
    }

    /// The place of a line among those that start like it (up to its last word).
    fn sorted(&self, text: &[u8], line: &str) -> Result<Anchor> {
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
        let clear = !run.is_empty()
            && before.iter().all(|(_, other)| *other < line.as_bytes())
            && after.iter().all(|(_, other)| *other > line.as_bytes());
        if !clear {
            let prefix = prefix.as_bstr();
            return Err(self.lost(
                format!(
                    "the lines of `{}` that start with `{prefix}` leave no one place for `{line}`",
                    self.edit.file
                ),
                Vec::new(),
            ));
        }
        let offset = before
            .last()
            .map_or_else(|| after[0].0, |(offset, _)| line_end(text, *offset));
        Ok(whole_lines(text, offset, Layout::Lines(String::new())))
    }

    /// The error for an anchor that is not there.
    fn lost(&self, what: impl std::fmt::Display, candidates: Vec<String>) -> anyhow::Error {
        let mut details = Vec::new();
        if !candidates.is_empty() {
            details.push("nearest in the base:".to_owned());
            details.extend(candidates);
        }
        Refusal::drift(format!(
            "patch `{}`, edit `{}` has no anchor: {what}",
            self.patch, self.edit.name
        ))
        .details(details)
        .hint(format!(
            "look what the base changed, then mend {}",
            self.edit.place
        ))
        .into()
    }
}

/// `#include` lines with their offsets, those below an `#if` left out.
fn include_lines(text: &[u8]) -> Vec<(usize, &BStr)> {
    let mut depth = 0_usize;
    let mut offset = 0;
    let mut found = Vec::new();
    for line in text.lines_with_terminator() {
        let directive = line
            .strip_prefix(b"#")
            .map(<[u8]>::trim_start)
            .unwrap_or_default();
        if directive.starts_with(b"if") {
            depth += 1;
        } else if directive.starts_with(b"endif") {
            depth = depth.saturating_sub(1);
        } else if directive.starts_with(b"include") && depth == 0 {
            found.push((offset, line.as_bstr()));
        }
        offset += line.len();
    }
    found
}

fn all_statements(source: &Source, block: tree_sitter::Node<'_>) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    let mut open = vec![block];
    while let Some(node) = open.pop() {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            if child.kind().ends_with("_statement") || child.kind() == "declaration" {
                found.push((
                    source.slice(child.byte_range()).to_string(),
                    child.byte_range(),
                ));
            }
            open.push(child);
        }
    }
    found
}

/// How wide a line is with the kernel's tabs of 8.
fn columns(line: &str) -> usize {
    line.chars().fold(0, |column, char| {
        if char == '\t' {
            (column / 8 + 1) * 8
        } else {
            column + 1
        }
    })
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
        matched: neighbour,
        captures: BTreeMap::new(),
        layout,
    }
}

fn beside(source: &Source, function: Function, at: usize, layout: Layout) -> Anchor {
    let matched = one_line(source.slice(function.start..function.body.start - 1));
    let captures = BTreeMap::from([("text".to_owned(), matched.clone())]);
    Anchor {
        range: at..at,
        at: function.start,
        matched,
        captures,
        function: Some(function),
        layout,
    }
}
