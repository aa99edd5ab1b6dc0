//! Patch mails.
//!
//! Hides headers.
