//! Regenerates a kernel patch series on any base, instead of replaying it.
//!
//! Modules stand in the order that data flows through them; `ARCHITECTURE.md` draws the flow.

pub mod diff;
pub mod diffstat;
pub mod error;
pub mod exec;
pub mod mail;
pub mod repo;
pub mod ui;
