//! Integration tests: one binary, a module for each part.

mod bases;
mod bot;
mod diff;
mod gate;
mod mail;
mod rangediff;
mod scratch;
