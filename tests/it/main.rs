//! Integration tests: one binary, a module for each part.

mod bases;
mod diff;
mod gate;
mod gate_kernel;
mod mail;
mod scratch;
