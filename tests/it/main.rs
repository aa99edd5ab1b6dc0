//! Integration tests: one binary, a module for each part.

mod diff;
mod mail;
mod rangediff;
mod scratch;
