//! Finds the anchors of edits: the one place in a file that each is about.
//!
//! Hides what makes a place unique, and what is shown when there is none or more than one.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use bstr::{BStr, ByteSlice};
use tree_sitter::Node;

use super::braces::Braces;
use super::{Anchor, Layout};
use crate::error::Refusal;
use crate::facts::one_line;
use crate::pattern::{Match, Pattern};
use crate::recipe::{EditSpec, FunctionSpec, PartSpec, Spot, Target, all_parts};
use crate::shape::{Missing, closest, left_aligned, missing, names_in, quote};
use crate::syntax::{Function, Source, Statement, is_word, line_end, line_start};

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
                let end = behind_calls(source.text(), function.range.end, &function.name);
                Ok(beside(source, function, end, Layout::DefinitionAfter))
            }
            Spot::Before(target) => {
                let mut anchor = self.place(source, target)?;
                let start = line_start(source.text(), anchor.range.start);
                anchor.become_lines(start);
                Ok(anchor)
            }
            Spot::After(target) => {
                let mut anchor = self.place(source, target)?;
                let behind = behind_comments(source.text(), anchor.range.end);
                let end = line_end(source.text(), behind);
                if !source.slice(behind..end).trim_ascii().is_empty() {
                    return Err(self.lost(
                        "there is something else behind the anchor on its line",
                        quote(source, &self.edit.file, &anchor.range),
                    ));
                }
                anchor.become_lines(end);
                Ok(anchor)
            }
            Spot::End(name) => {
                let function = self.function(source, name)?;
                let end = function.body.end;
                if line_start(source.text(), end) != end {
                    return Err(self.lost(
                        format!("`{name}()` does not end on a line of its own"),
                        quote(source, &self.edit.file, &(function.start..end)),
                    ));
                }
                if let Some(range) = last_jump(&function)? {
                    return Err(self.lost(
                        format!("what stands at the end of `{name}()` would never run: a jump is in front of it"),
                        quote(source, &self.edit.file, &range),
                    ));
                }
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

    /// The statements that a target names, where something takes their place.
    pub fn target(&self, source: &Source, target: &Target) -> Result<Anchor> {
        let anchor = self.place(source, target)?;
        if anchor.in_pieces {
            return Err(self.lost(
                "the declaration is there in pieces, with something in between",
                quote(source, &self.edit.file, &anchor.range),
            ));
        }
        Ok(anchor)
    }

    /// The statements that a target names, where something is put beside them.
    fn place(&self, source: &Source, target: &Target) -> Result<Anchor> {
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
                self.statements(source, function, std::slice::from_ref(&**pattern))
            }
            Target::Part { function, part } => {
                let (spec, part) = self.part(function, part)?;
                let function = self.function(source, &spec.name)?;
                self.statements(source, function, &part.patterns)
            }
        }
    }

    /// The one place in a function that one of the patterns is about.
    fn statements(
        &self,
        source: &Source,
        function: Function,
        patterns: &[Pattern],
    ) -> Result<Anchor> {
        let block = function.block()?;
        let found = patterns
            .iter()
            .flat_map(|pattern| pattern.find(source, block));
        let found: Vec<_> = found.collect();
        if found.is_empty()
            && let Some((found, in_pieces)) = pieces(source, block, patterns)
        {
            let mut anchor = self.only(source, function, vec![found], patterns)?;
            anchor.in_pieces = in_pieces;
            return Ok(anchor);
        }
        self.only(source, function, found, patterns)
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
            let Missing { message, details } = missing(source, &self.edit.file, name);
            return Err(self.lost(message, details));
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
        patterns: &[Pattern],
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
            let wanted: Vec<_> = patterns.iter().map(Pattern::written).collect();
            let near = closest(&wanted, statements.into_iter()).into_iter();
            let near: Vec<_> = near.flat_map(|range| quote(source, file, &range)).collect();
            let heading = (!near.is_empty()).then(|| "nearest in the base:".to_owned());
            return Err(self.lost(
                format!("no statement of `{}()` looks like {written}", function.name),
                heading.into_iter().chain(near).collect(),
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
        let braces = Braces::around(source, function.block()?, &(found.start..found.range.end));
        Ok(Anchor {
            at: found.start,
            target: found.range.clone(),
            ranges: found.captures.values().cloned().collect(),
            matched: one_line(source.slice(found.start..found.range.end)),
            range: found.range,
            function: Some(function),
            captures,
            layout: Layout::Statements(indentation),
            braces,
            in_pieces: false,
        })
    }

    /// The place behind the last parameter; on a line of its own where the list has several lines and the last one
    /// has no room left.
    fn parameter(&self, source: &Source, function: Function, text: &str) -> Result<Anchor> {
        if function.parameters.is_empty() {
            return Err(self.lost(
                format!("`{}()` has no parameter to stand behind", function.name),
                quote(
                    source,
                    &self.edit.file,
                    &(function.start..function.body.start),
                ),
            ));
        }
        let at = function.parameters_end;
        if source.text()[..at].trim_ascii_end().ends_with(b"...") {
            return Err(self.lost(
                format!(
                    "`{}()` takes any number of arguments behind its last parameter",
                    function.name
                ),
                quote(
                    source,
                    &self.edit.file,
                    &(function.start..function.body.start),
                ),
            ));
        }
        let line = source.slice(line_start(source.text(), at)..at);
        let several_lines = line_start(source.text(), at) > function.start;
        let between = if several_lines && columns(line) + ", )".len() + text.len() > 80 {
            let indentation = line.len() - line.trim_start().len();
            format!(",\n{}", line[..indentation].as_bstr())
        } else {
            ", ".to_owned()
        };
        Ok(beside(source, function, at, Layout::Parameter(between)))
    }

    /// The error for an anchor that is not there.
    pub(super) fn lost(&self, what: impl std::fmt::Display, details: Vec<String>) -> anyhow::Error {
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

fn all_statements(source: &Source, block: Node<'_>) -> Vec<(String, Range<usize>)> {
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
fn columns(line: &BStr) -> usize {
    line.chars().fold(0, |column, char| {
        if char == '\t' {
            (column / 8 + 1) * 8
        } else {
            column + 1
        }
    })
}

/// A declaration of the patterns that a function has in pieces: from the first to the last, and whether something else stands
/// in between. `None` where there is none, or some in different blocks.
fn pieces(source: &Source, block: Node<'_>, patterns: &[Pattern]) -> Option<(Match, bool)> {
    let mut found = None;
    let mut open = vec![block];
    while let Some(node) = open.pop() {
        let mut cursor = node.walk();
        let children: Vec<_> = node.children(&mut cursor).collect();
        let statements = source.statements(&children);
        let is_piece = |statement: &Statement<'_>| names_in(patterns, source, statement).is_some();
        let first = statements.iter().position(is_piece);
        let last = statements.iter().rposition(is_piece);
        if let Some((first, last)) = first.zip(last) {
            let all = statements[first..=last].iter().all(is_piece);
            let place = Match {
                range: statements[first].range.start..statements[last].range.end,
                start: statements[first].node.start_byte(),
                captures: BTreeMap::new(),
            };
            if found.replace((place, !all)).is_some() {
                return None;
            }
        }
        open.extend(children);
    }
    found
}

/// Behind the comments that begin on the line that an offset lies in, with nothing in front of them.
pub(super) fn behind_comments(text: &[u8], offset: usize) -> usize {
    let line = &text[offset..line_end(text, offset)];
    let comment = offset + line.len() - line.trim_ascii_start().len();
    let rest = &text[comment..];
    let length = match rest.get(..2) {
        Some(b"/*") => rest[2..].find("*/").map(|close| close + 4),
        Some(b"//") => Some(line_end(rest, 0) - 1),
        _ => None,
    };
    length.map_or(offset, |length| behind_comments(text, comment + length))
}

/// The last statement of a function if it leaves it in any case.
fn last_jump(function: &Function) -> Result<Option<Range<usize>>> {
    let block = function.block()?;
    let mut cursor = block.walk();
    let last = block.named_children(&mut cursor);
    let last = last.filter(|node| node.kind() != "comment").last();
    let mut last = last.filter(|node| !node.kind().starts_with("preproc"));
    while let Some(node) = last.filter(|node| node.kind() == "labeled_statement") {
        let children = u32::try_from(node.named_child_count()).unwrap_or(u32::MAX);
        last = children.checked_sub(1).and_then(|at| node.named_child(at));
    }
    let jump = last.filter(|node| matches!(node.kind(), "return_statement" | "goto_statement"));
    Ok(jump.map(|node| node.byte_range()))
}

/// Behind the calls in column 0 that follow a function and are about it, as `EXPORT_SYMBOL(name);` is: up to the first line that is none.
fn behind_calls(text: &[u8], offset: usize, name: &[u8]) -> usize {
    let mut end = offset;
    let mut at = offset;
    while at < text.len() {
        let line_end = line_end(text, at);
        let line = text[at..line_end].trim_ascii_end();
        at = line_end;
        if line.is_empty() {
            continue;
        }
        let call = line.strip_suffix(b");");
        let Some((word, arguments)) = call.and_then(|call| call.split_once_str("(")) else {
            break;
        };
        let is_name = word.first().is_some_and(|it| !it.is_ascii_digit());
        let is_call = is_name && word.iter().all(|&byte| is_word(byte));
        let mut words = crate::index::lex::words(arguments);
        if !is_call || !words.any(|word| word == name) {
            break;
        }
        end = line_end;
    }
    end
}

fn beside(source: &Source, function: Function, at: usize, layout: Layout) -> Anchor {
    let matched = one_line(source.slice(function.start..function.body.start - 1));
    let captures = BTreeMap::from([("text".to_owned(), matched.clone())]);
    Anchor {
        range: at..at,
        at: function.start,
        target: at..at,
        ranges: Vec::new(),
        matched,
        captures,
        function: Some(function),
        layout,
        braces: None,
        in_pieces: false,
    }
}
