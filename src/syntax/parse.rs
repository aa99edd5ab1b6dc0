//! Parses pieces of C.
//!
//! Hides the parser, of which each thread has one, and that attribute macros are blanked before it reads: at the same length, so that
//! every offset holds in the real text.

use std::cell::RefCell;

use anyhow::{Context, Result};
use tree_sitter::{Parser, Point, Tree};

use super::attributes::without_attributes;

thread_local! {
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Parses a piece of a file that starts at `offset`; the nodes have the file's offsets.
pub(crate) fn parse(text: &[u8], offset: usize) -> Result<Tree> {
    let blanked = without_attributes(text);
    let end = offset + text.len();
    PARSER.with_borrow_mut(|parser| {
        if parser.is_none() {
            let mut new = Parser::new();
            let grammar = tree_sitter_c::LANGUAGE.into();
            new.set_language(&grammar)
                .context("the C grammar does not fit tree-sitter")?;
            *parser = Some(new);
        }
        let parser = parser.as_mut().context("no parser")?;
        parser
            .set_included_ranges(&[tree_sitter::Range {
                start_byte: offset,
                end_byte: end,
                start_point: Point::new(0, 0),
                end_point: Point::new(u32::MAX as usize, u32::MAX as usize),
            }])
            .context("a piece of a file has no range")?;
        let mut read = |at: usize, _: Point| match at.checked_sub(offset) {
            Some(skip) if skip < blanked.len() => &blanked[skip..],
            _ => &[],
        };
        parser
            .parse_with_options(&mut read, None, None)
            .context("tree-sitter gave up")
    })
}
