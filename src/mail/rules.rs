//! The conventions of kernel mail as named rules over what is to be sent.
//!
//! Hides how each rule reads messages and tags; nothing is refused here, a gate decides.

use std::fmt;

use super::{Cover, Options, Patch};

/// Something that a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule, in kebab-case.
    pub rule: &'static str,
    /// The patch's name, or `cover letter`.
    pub patch: String,
    /// Which part of it.
    pub part: Part,
    /// The line in that part, from 1; `None` where no line is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub fix: &'static str,
}

/// A part of a patch or of the cover letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The commit message, whose line 1 is the subject; of a cover letter, its subject and blurb.
    Message,
    /// The text below the `---`.
    Notes,
    /// The author, or the sender.
    Author,
    /// Recipients, prefix, signature.
    Options,
    /// The diff of this file.
    Diff(String),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message => f.write_str("message"),
            Self::Notes => f.write_str("notes"),
            Self::Author => f.write_str("author"),
            Self::Options => f.write_str("options"),
            Self::Diff(path) => write!(f, "diff of `{path}`"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.patch, self.part)?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        write!(f, ": {} ({})", self.what, self.rule)
    }
}

/// Everything that the conventions say against a series.
#[must_use]
pub fn check(_cover: Option<&Cover>, _patches: &[Patch], _options: &Options) -> Vec<Finding> {
    Vec::new()
}
