//! Puts braces around a statement that has none, where an edit makes more or less of it than one statement.
//!
//! Hides what a statement without braces hangs on: an `if`, an `else`, a loop or a label.

use std::ops::Range;

use tree_sitter::Node;

use crate::pattern::is_one_statement;
use crate::syntax::{Source, line_start};

/// Where braces would go.
#[derive(Debug, Clone)]
pub(super) struct Braces {
    /// Behind what the statement hangs on.
    open: usize,
    /// Behind the statement.
    close: usize,
    /// The indentation of what it hangs on.
    indentation: Vec<u8>,
    /// It hangs on a label, so that what is put beside it needs no braces.
    is_labeled: bool,
}

impl Braces {
    /// Where they would go around the statement in a range below a node; `None` where it stands in a block.
    pub(super) fn around(source: &Source, block: Node<'_>, range: &Range<usize>) -> Option<Self> {
        let mut node = block.named_descendant_for_byte_range(range.start, range.start + 1)?;
        while node
            .parent()
            .is_some_and(|parent| parent.start_byte() == node.start_byte())
        {
            node = node.parent()?;
        }
        let parent = node.parent()?;
        let is_labeled = parent.kind() == "labeled_statement";
        let hangs = match parent.kind() {
            "if_statement" | "else_clause" | "for_statement" | "while_statement"
            | "do_statement" => node.kind() != "compound_statement",
            _ => is_labeled,
        };
        let before = std::iter::successors(node.prev_sibling(), Node::prev_sibling);
        let mut before = before.skip_while(|node| node.kind() == "comment");
        let head = before.next().filter(|_| hangs)?;
        // A label may stand in column 0, where a brace would end the function.
        let aligned = if is_labeled { node } else { parent };
        let line = &source.text()[line_start(source.text(), aligned.start_byte())..];
        let blank = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
        Some(Self {
            open: head.end_byte(),
            close: range.end,
            indentation: blank.copied().collect(),
            is_labeled,
        })
    }

    /// Whether what takes the place of the statement, or is put beside it, needs them.
    pub(super) fn are_needed(&self, new: &str, replaces: bool) -> bool {
        if replaces {
            !is_one_statement(new)
        } else {
            !self.is_labeled
        }
    }

    /// The file with the braces, and `new` in place of `range`, which is the statement or the lines beside it.
    pub(super) fn put(&self, source: &Source, range: &Range<usize>, new: &[u8]) -> Source {
        let text = source.text();
        let mut inside = text[self.open..range.start].to_vec();
        inside.extend_from_slice(new);
        let end = self.close.max(range.end);
        inside.extend_from_slice(&text[range.end..end]);
        let behind = if inside.ends_with(b"\n") {
            &b"\n"[..]
        } else {
            b""
        };
        let inside = inside.trim_ascii_end();
        let braced = [b" {", inside, b"\n", &self.indentation, b"}", behind];
        source.replace(self.open..end, &braced.concat())
    }
}
