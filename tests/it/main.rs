//! Integration tests: one binary, a module for each part.

mod bases;
mod diff;
mod mail;
mod scratch;
