//! A git repository as the source of bases and the sink of commits; knows git2.
//!
//! Hides object storage: packs, alternates, partial clones, and whether what is written is kept.

mod store;

pub use store::*;
