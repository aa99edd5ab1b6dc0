//! Integration tests: one binary, a module for each part.

mod bases;
mod bot;
mod diff;
mod drift;
mod gate;
mod gate_kernel;
mod mail;
mod oracle;
mod rangediff;
mod report;
mod scratch;
mod support;
