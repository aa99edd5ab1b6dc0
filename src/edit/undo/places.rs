//! Where a text with holes stands in a file, laid out as the place wants it.
//!
//! Hides that the layout is known only once the place is.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use bstr::ByteSlice;

use super::draft::{Draft, Found, Holes};
use super::only;
use crate::edit::Layout;
use crate::syntax::{Source, line_end, line_start};

/// Where something of a function may be, or of the whole file; `None` where there is no such function.
pub(super) fn region(source: &Source, function: Option<&str>) -> Result<Option<Range<usize>>> {
    match function {
        None => Ok(Some(0..source.text().len())),
        Some(name) => Ok(only(source, name)?.map(|function| function.body)),
    }
}

pub(super) fn line_starts(text: &[u8], region: &Range<usize>) -> Vec<usize> {
    let newlines = text[region.clone()].find_iter("\n");
    let starts = newlines.map(|newline| region.start + newline + 1);
    let first = (line_start(text, region.start) == region.start).then_some(region.start);
    first
        .into_iter()
        .chain(starts)
        .filter(|start| *start < region.end)
        .collect()
}

/// Where a text stands in a region, laid out as the place wants it.
pub(super) fn places(
    source: &Source,
    region: &Range<usize>,
    rendered: &str,
    layout: impl Fn(&str) -> Layout,
    holes: &Holes,
) -> Vec<Found> {
    let text = source.text();
    let mut drafts: BTreeMap<&[u8], Option<(Draft, bool)>> = BTreeMap::new();
    let mut found = Vec::new();
    for start in line_starts(text, region) {
        let blanks = |at: usize| text[at..].iter().take_while(|byte| b" \t".contains(byte));
        let line = if rendered.starts_with('\n') {
            line_end(text, start)
        } else {
            start
        };
        let indentation = &text[line..line + blanks(line).count()];
        let draft = drafts.entry(indentation).or_insert_with(|| {
            let layout = layout(indentation.to_str().ok()?);
            let inside = matches!(layout, Layout::Statements(_));
            Draft::read(&layout.lay_out(rendered)).map(|draft| (draft, inside))
        });
        if let Some((draft, inside)) = draft {
            let start = start + if *inside { indentation.len() } else { 0 };
            let end = region.end.max(start);
            found.extend(draft.at(text, start..end, holes).unwrap_or_default());
        }
    }
    found
}

/// The first byte behind `at` that is no white space.
pub(super) fn text_start(source: &Source, at: usize) -> usize {
    let blank = source.text()[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace());
    at + blank.count()
}
