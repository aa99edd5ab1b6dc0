//! Finds the places of whole lines that have their own order: `#include`s, and sorted runs.
//!
//! Hides what makes a run sorted, and which lines are there in every configuration.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use bstr::{BStr, ByteSlice};

use super::search::behind_comments;
use super::{Anchor, Layout, Search};
use crate::syntax::{
    code_lines, directive, is_word, line_end, line_of, line_start, logical_line_end,
};

impl Search<'_> {
    /// The place of a new `#include <header>` among those at the head of the file: in its alphabetical place where the last run of includes
    /// from the same directory is sorted, behind that run where it is not, and in a paragraph of its own behind all of them where there is none.
    pub(super) fn include(&self, text: &[u8], header: &str) -> Result<Anchor> {
        let line = format!("#include <{header}>");
        let includes = Includes::of(text);
        let is_it = |(_, found): &&(Range<usize>, &BStr)| found.trim() == line.as_bytes();
        if let Some((range, _)) = includes.head.iter().find(is_it) {
            return Ok(Anchor {
                matched: line,
                ..whole_lines(text, range.start, Layout::Nothing)
            });
        }
        if let Some((range, _)) = includes.elsewhere.iter().find(is_it) {
            let (file, number) = (&self.edit.file, line_of(text, range.start));
            return Err(self.lost(
                format!("`{file}` includes `<{header}>` already, but not in every configuration, or not at its head"),
                vec![format!("  {file}:{number}: {line}")],
            ));
        }
        let includes = includes.head;
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
                    before.map_or_else(|| includes[last].0.end, |(range, _)| range.start),
                    Layout::Lines(String::new()),
                )
            }
            (None, Some((range, _))) => (range.end, Layout::DefinitionAfter),
            (None, None) => {
                return Err(self.lost(
                    format!("`{}` has no `#include` at its head that is outside of an `#if` and of a comment", self.edit.file),
                    Vec::new(),
                ));
            }
        };
        Ok(whole_lines(text, offset, layout))
    }

    /// The place of a line among those that start like it (up to its last word) and are there in every configuration.
    pub(super) fn sorted(&self, text: &[u8], line: &str) -> Result<Anchor> {
        let prefix = line
            .rsplit_once(' ')
            .map_or(line, |(prefix, _)| prefix)
            .as_bytes();
        let is_c = [".c", ".h", ".S"]
            .iter()
            .any(|it| self.edit.file.ends_with(it));
        let lines = if is_c {
            c_lines(text)
        } else {
            make_lines(text)
        };
        let (run, conditional): (Vec<_>, Vec<_>) = lines
            .into_iter()
            .map(|line| (line.range.clone(), text[line.range].trim_end(), line.always))
            .filter(|(_, candidate, _)| candidate.starts_with(prefix))
            .partition(|(.., always)| *always);
        let mut there = run.iter().chain(&conditional);
        if let Some((range, ..)) = there.find(|(_, candidate, _)| *candidate == line.as_bytes()) {
            return Err(self.lost(
                format!(
                    "`{}:{}` has `{line}` already",
                    self.edit.file,
                    line_of(text, range.start)
                ),
                Vec::new(),
            ));
        }
        let place = run
            .iter()
            .filter(|(_, candidate, _)| *candidate < line.as_bytes())
            .count();
        let (before, after) = run.split_at(place);
        if run.is_empty() {
            let what = format!(
                "`{}` has no line {}that starts with `{}`",
                self.edit.file,
                if conditional.is_empty() {
                    ""
                } else {
                    "outside of a conditional "
                },
                prefix.as_bstr()
            );
            return Err(self.lost(what, Vec::new()));
        }
        let is_astray = |(at, (_, other, _)): &(usize, &(Range<usize>, &[u8], bool))| {
            (*at < place) != (*other < line.as_bytes())
        };
        if let Some((_, (range, other, _))) = run.iter().enumerate().find(is_astray) {
            let (file, number) = (&self.edit.file, line_of(text, range.start));
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
            .map_or_else(|| after[0].0.start, |(range, ..)| range.end);
        Ok(whole_lines(text, offset, Layout::Lines(String::new())))
    }
}

/// The `#include`s of a file: their whole lines, each with its text without the comment behind it.
struct Includes<'a> {
    /// Those at the head of the file that are there in every configuration, up to the first code, and up to the first macro behind an
    /// `#include`: what is included behind a macro may be made for it (`CREATE_TRACE_POINTS`).
    head: Vec<(Range<usize>, &'a BStr)>,
    /// All others.
    elsewhere: Vec<(Range<usize>, &'a BStr)>,
}

impl<'a> Includes<'a> {
    fn of(text: &'a [u8]) -> Self {
        let mut found = Self {
            head: Vec::new(),
            elsewhere: Vec::new(),
        };
        let guard = usize::from(has_guard(text));
        let mut depth = 0_usize;
        let mut at_head = true;
        for code in code_lines(text) {
            let line = &text[code.clone()];
            let Some((word, rest)) = directive(line) else {
                at_head = false;
                continue;
            };
            match word {
                b"if" | b"ifdef" | b"ifndef" => depth += 1,
                b"endif" => depth = depth.saturating_sub(1),
                b"include" => {
                    let start = line_start(text, code.start);
                    let end = line_end(text, behind_comments(text, code.end));
                    let list = if at_head && depth == guard {
                        &mut found.head
                    } else {
                        &mut found.elsewhere
                    };
                    list.push((start..end, line.trim_ascii_start().as_bstr()));
                }
                b"define" | b"undef" | b"pragma" => {
                    at_head &= found.head.is_empty() && !rest.starts_with(MAKES_CODE);
                }
                _ => {}
            }
        }
        found
    }
}

/// This macro makes the headers behind it write code of their own (`include/trace/define_trace.h`).
const MAKES_CODE: &[u8] = b"CREATE_TRACE_POINTS";

/// Whether a file is a header whose every line is inside of a guard: `#ifndef X`, `#define X`, and the `#endif` is its last code.
fn has_guard(text: &[u8]) -> bool {
    let mut lines = code_lines(text).map(|code| directive(&text[code]));
    let Some(Some((b"ifndef", name))) = lines.next() else {
        return false;
    };
    if lines.next() != Some(Some((b"define", name))) {
        return false;
    }
    let mut depth = 1_usize;
    let mut closed = false;
    for line in lines {
        if closed {
            return false;
        }
        match line.map(|(word, _)| word) {
            Some(b"if" | b"ifdef" | b"ifndef") => depth += 1,
            Some(b"else" | b"elif") if depth == 1 => return false,
            Some(b"endif") => depth -= 1,
            _ => {}
        }
        closed = depth == 0;
    }
    closed
}

/// A line of a file, with those that continue it.
struct Line {
    range: Range<usize>,
    /// Whether it is there in every configuration.
    always: bool,
}

/// The lines of a C file that hold code.
fn c_lines(text: &[u8]) -> Vec<Line> {
    let guard = usize::from(has_guard(text));
    let mut depth = 0_usize;
    let mut lines = Vec::new();
    for code in code_lines(text) {
        match directive(&text[code.clone()]).map(|(word, _)| word) {
            Some(b"if" | b"ifdef" | b"ifndef") => depth += 1,
            Some(b"endif") => depth = depth.saturating_sub(1),
            _ => lines.push(Line {
                range: line_start(text, code.start)
                    ..line_end(text, behind_comments(text, code.end)),
                always: depth == guard,
            }),
        }
    }
    lines
}

/// The lines of a makefile, or of a file that is written like one (`Kconfig`, a list). A block that starts with a word of theirs (`if`,
/// `define`) ends with `endif` or `endef`; what starts with a tab is a recipe or an attribute of the line above.
fn make_lines(text: &[u8]) -> Vec<Line> {
    let mut depth = 0_usize;
    let mut lines = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = logical_line_end(text, at);
        let line = text[at..end].trim_start_with(|it| it == ' ');
        match line
            .split(|&byte| !is_word(byte))
            .next()
            .unwrap_or_default()
        {
            b"if" | b"ifdef" | b"ifndef" | b"ifeq" | b"ifneq" | b"define" => depth += 1,
            b"endif" | b"endef" => depth = depth.saturating_sub(1),
            _ => lines.push(Line {
                range: at..end,
                always: depth == 0,
            }),
        }
        at = end;
    }
    lines
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
