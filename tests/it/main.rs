//! Integration tests: one binary, a module for each part.

mod diff;
mod gate;
mod mail;
mod scratch;
