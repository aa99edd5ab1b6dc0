//! Integration tests: one binary, a module for each part.

mod bases;
mod diff;
mod drift;
mod gate;
mod mail;
mod oracle;
mod scratch;
mod support;
