//! Integration tests: one binary, a module for each part.

mod bases;
mod bench;
mod diff;
mod gate;
mod mail;
mod scratch;
