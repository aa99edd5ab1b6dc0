//! Integration tests: one binary, a module for each part.

mod bases;
mod bench;
mod diff;
mod drift;
mod gate;
mod gate_kernel;
mod mail;
mod oracle;
mod scratch;
mod support;
