//! The kinds of failure a caller branches on, each with its hint and exit code.
//!
//! Hides how an error travels: everything is an `anyhow::Error`, and the outermost [`Refusal`] in
//! its chain decides what the process exits with and which hint is shown.

use std::fmt;

/// Exit codes of the process. The README has the same table; each has a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; also "nothing to do".
    Done = 0,
    /// A gate failed, or two versions differ.
    Failed = 1,
    /// The command line, the recipe or another input is wrong.
    Usage = 2,
    /// The base does not fit the recipe; a person has to look.
    Drift = 3,
    /// An outside tool, the network or the disk is missing or broke.
    Tool = 4,
    /// A bug in reroll itself.
    Bug = 70,
    /// Stopped by the user.
    Interrupted = 130,
}

/// An error that a user can meet, with what to do next.
#[derive(Debug)]
pub struct Refusal {
    /// What the process exits with.
    pub exit: Exit,
    /// What happened and where: lower case, no full stop.
    pub message: String,
    /// Further lines shown as they are: source, candidates.
    pub details: Vec<String>,
    /// What to do next.
    pub hint: Option<String>,
}

impl Refusal {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            details: Vec::new(),
            hint: None,
        }
    }

    /// The command line or another input of the user is wrong (exit 2).
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The base does not fit the recipe (exit 3).
    pub fn drift(message: impl Into<String>) -> Self {
        Self::new(Exit::Drift, message)
    }

    /// An outside tool, the network or the disk is missing or broke (exit 4).
    pub fn tool(message: impl Into<String>) -> Self {
        Self::new(Exit::Tool, message)
    }

    /// Stopped by the user (exit 130).
    #[must_use]
    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds lines that are shown under the message.
    #[must_use]
    pub fn details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// The refusal in `error`'s chain, if any: the outermost one.
#[must_use]
pub fn refusal(error: &anyhow::Error) -> Option<&Refusal> {
    // A refusal that was attached as context is seen by `anyhow` only: in the chain, its type is hidden.
    let attached = error.downcast_ref();
    attached.or_else(|| error.chain().find_map(|cause| cause.downcast_ref()))
}

/// What the process exits with for `error`. Without a [`Refusal`] it is the surroundings where the disk or a repository failed, and else
/// a bug.
#[must_use]
pub fn exit_of(error: &anyhow::Error) -> Exit {
    match refusal(error) {
        Some(refusal) => refusal.exit,
        None if is_of_surroundings(error) => Exit::Tool,
        None => Exit::Bug,
    }
}

/// What to do next about `error`.
#[must_use]
pub fn hint_of(error: &anyhow::Error) -> Option<&str> {
    match refusal(error) {
        Some(refusal) => refusal.hint.as_deref(),
        None if is_of_surroundings(error) => Some(
            "check the disk, the permissions and the free space; of a repository, `git fsck` says what is damaged",
        ),
        None => {
            Some("this is a bug in reroll: please report it with what was run and what it printed")
        }
    }
}

/// An error as `--json` has it, in place of a report.
#[must_use]
pub fn json_of(error: &anyhow::Error) -> Vec<u8> {
    let details = refusal(error).map(|refusal| refusal.details.clone());
    let causes = error.chain().skip(1).map(ToString::to_string);
    let report = serde_json::json!({
        "version": 1,
        "error": {
            "message": error.to_string(),
            "causes": causes.collect::<Vec<_>>(),
            "details": details.unwrap_or_default(),
            "hint": hint_of(error),
            "exit": exit_of(error) as u8,
        },
    });
    format!("{report:#}\n").into_bytes()
}

fn is_of_surroundings(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.is::<std::io::Error>() || cause.is::<git2::Error>())
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_refusal_is_found_wherever_it_was_attached() {
        let itself = anyhow::Error::new(Refusal::tool("x"));
        let context = anyhow!("cause").context(Refusal::tool("x"));
        let below = Err::<(), _>(anyhow!("cause").context(Refusal::tool("x"))).context("more");
        let both = anyhow::Error::new(Refusal::usage("y")).context(Refusal::tool("x"));
        let below_itself = anyhow::Error::new(Refusal::tool("x")).context("more");
        for error in [
            itself,
            context,
            below.expect_err("an error"),
            both,
            below_itself,
        ] {
            assert_eq!(exit_of(&error), Exit::Tool, "{error:#}");
        }
        assert_eq!(exit_of(&anyhow!("x")), Exit::Bug);
    }

    #[test]
    fn what_the_disk_or_a_repository_does_is_no_bug() {
        let disk = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let objects = git2::Error::from_str("a damaged object");
        for error in [anyhow::Error::new(disk), anyhow::Error::new(objects)] {
            let error = error.context("more");
            assert_eq!(exit_of(&error), Exit::Tool);
            assert!(hint_of(&error).is_some_and(|hint| hint.contains("git fsck")));
        }
        let bug = anyhow!("x");
        assert!(hint_of(&bug).is_some_and(|hint| hint.contains("a bug")));
    }
}
