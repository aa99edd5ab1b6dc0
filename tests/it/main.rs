//! Integration tests: one binary, a module for each part.

mod bases;
mod diff;
mod gate;
mod mail;
mod oracle;
mod scratch;
mod support;
