//! Regenerates a kernel patch series on any base, instead of replaying it.
//!
//! Modules stand in the order that data flows through them; `ARCHITECTURE.md` draws the flow.

pub mod bench;
pub mod bot;
pub mod cache;
pub mod carry;
pub mod cli;
pub mod debian;
pub mod diff;
pub mod diffstat;
pub mod digest;
pub mod doctor;
pub mod edit;
pub mod error;
pub mod exec;
pub mod facts;
pub mod gate;
pub mod import;
pub mod index;
pub mod lab;
pub mod locate;
pub mod lock;
pub mod mail;
pub mod outgoing;
pub mod pattern;
pub mod rangediff;
pub mod recipe;
pub mod repo;
pub mod report;
pub mod rests;
pub mod series;
pub mod shape;
pub mod syntax;
pub mod template;
pub mod temporary;
pub mod trailers;
pub mod ui;
