//! C source together with its syntax tree: finds functions, their parts and their statements.
//!
//! Hides tree-sitter: attribute macros that its grammar does not know are blanked before it parses,
//! at the same length, so that every offset holds in the real text.

mod source;

pub use source::*;
