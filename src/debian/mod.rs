//! Finds and fetches Debian's `linux-source-*` packages through apt, without root and without touching the system's apt.
//!
//! Hides apt: its private lists, which mirror the machine uses, and how a download goes on where it was cut off.

mod apt;
mod download;
mod find;
mod sources;
mod view;

pub(crate) use apt::Apt;
pub use find::Wanted;
pub(crate) use view::package_of_control;
