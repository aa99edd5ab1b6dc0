//! Regenerates a kernel patch series on any base, instead of replaying it.
//!
//! Modules stand in the order that data flows through them; `ARCHITECTURE.md` draws the flow.

pub mod cache;
pub mod debian;
pub mod error;
pub mod exec;
pub mod import;
pub mod repo;
pub mod ui;
