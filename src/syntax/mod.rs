//! C source together with its syntax tree: finds functions, their parts and their statements.
//!
//! Hides tree-sitter: attribute macros that its grammar does not know are blanked before it parses,
//! at the same length, so that every offset holds in the real text.

mod attributes;
mod layout;
mod parse;
mod source;

pub use layout::{Definition, line_end, line_of, line_start};
pub(crate) use parse::parse;
pub use source::{Function, Source, Statement, block_children};
