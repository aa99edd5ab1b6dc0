//! Integration tests: one binary, a module for each part.

mod bases;
mod bench;
mod bot;
mod bot_bases;
mod bot_debian;
mod bot_key;
mod bot_merged;
mod cases;
mod ci_github;
mod ci_gitlab;
mod cli;
mod configuration;
mod diff;
mod drift;
mod failure;
mod forms;
mod gate;
mod gate_kernel;
mod mail;
mod oracle;
mod rangediff;
mod recipe;
mod report;
mod report_browser;
mod scratch;
mod support;
