//! C source together with its syntax tree: finds functions, their parts and their statements.
//!
//! Hides tree-sitter: attribute macros that its grammar does not know are blanked before it parses,
//! at the same length, so that every offset holds in the real text.

mod attributes;
mod declared;
mod layout;
mod parse;
mod scope;
mod source;
mod tokens;

pub(crate) use attributes::is_word;
pub(crate) use declared::{Declared, declared, shown, specifier_count, specifiers};
pub use layout::{
    Definition, code_lines, directive, has_crlf, line_end, line_of, line_start, logical_line_end,
};
pub(crate) use parse::parse;
pub use scope::{Local, Scope, Use};
pub use source::{Function, Source, Statement, block_children, parameter};
pub use tokens::{mentions, token_texts, tokens};
