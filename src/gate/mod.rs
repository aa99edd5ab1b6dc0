//! Gates prove a series before it is sent: each says pass, fail, error or skipped, as data.
//!
//! Hides how a gate finds out: a caller hands over a [`Subject`] and gets a [`Report`].

mod apply;
mod build;
mod cache;
mod checkpatch;
pub mod command;
mod equality;
mod follow;
mod foreign;
mod guest;
mod idle;
mod kbuild;
mod mail;
mod maintainers;
mod onto;
mod proof;
mod read;
mod render;
mod run;
mod scratch;
mod script;
mod section;
pub mod settings;
mod subject;
pub(crate) mod toolchain;
mod warnings;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Exit;

pub use equality::{
    Complaints, Native, Plan, Replay, Unfit, Unit, build_native, harness_directory, harness_files,
};
pub use foreign::Mails;
pub use proof::{Finding, PROOF, proof};
pub use run::{CachePolicy, Event, Options, check};
pub use subject::{Mail, Patch, Subject};
pub use toolchain::compiler_version;

/// The gates, in the order of a report.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Every mail goes through `git am` and gives the very same commit.
    Apply,
    /// Every mail keeps the conventions.
    Mail,
    /// The base's own checkpatch is content.
    Checkpatch,
    /// Every patch compiles by itself without a new warning.
    Build,
    /// No new section mismatch.
    Section,
    /// What is written to memory stays the same.
    Equality,
    /// A booted kernel leaves the same in memory; slow.
    Guest,
    /// Who gets the mails.
    Maintainers,
}

impl Name {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Apply,
        Self::Mail,
        Self::Checkpatch,
        Self::Build,
        Self::Section,
        Self::Equality,
        Self::Guest,
        Self::Maintainers,
    ];

    /// Whether it takes so long that it is run only where it is asked for.
    #[must_use]
    pub fn is_slow(self) -> bool {
        self == Self::Guest
    }

    /// As the command line spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Mail => "mail",
            Self::Checkpatch => "checkpatch",
            Self::Build => "build",
            Self::Section => "section",
            Self::Equality => "equality",
            Self::Guest => "guest",
            Self::Maintainers => "maintainers",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a gate found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It ran and is content.
    Pass,
    /// The recipe leaves it out.
    Skipped,
    /// It ran and is not content.
    Fail,
    /// It could not run, which is never a pass.
    Error,
}

impl Status {
    /// As a report spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Skipped => "skipped",
            Self::Fail => "fail",
            Self::Error => "error",
        }
    }
}

/// How a patch fits another base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it is.
    Clean,
    /// At other lines.
    Drifted,
    /// Not at all.
    Conflict,
    /// A commit with the same patch-id is there.
    Upstream,
}

/// What one gate found about one patch in one configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Outcome {
    /// The gate.
    pub gate: Name,
    /// The patch's number in the series, from 1; 0 is the cover letter; `None` is the whole series.
    pub patch: Option<usize>,
    /// The configuration or other variant of the gate.
    pub configuration: Option<String>,
    /// What it found.
    pub status: Status,
    /// Why, in a sentence; empty for a plain pass.
    pub reason: String,
    /// How the patch fits another base, where that was asked.
    pub verdict: Option<Verdict>,
    /// The lines that matter, hostile as they came.
    pub lines: Vec<String>,
    /// Debian packages that would let it run.
    pub packages: Vec<String>,
    /// The child's whole log.
    pub log: Option<PathBuf>,
    /// How long it took when it ran.
    pub seconds: f64,
    /// Whether this is what an earlier run found.
    #[serde(skip_deserializing)]
    pub cached: bool,
}

/// Everything the gates found.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The base as the user named it.
    pub base: String,
    /// The patches' names, in order.
    pub patches: Vec<String>,
    /// In the order gate, configuration, patch.
    pub outcomes: Vec<Outcome>,
    /// Where the logs are.
    pub run_directory: PathBuf,
}

impl Report {
    /// What the process exits with: a failure outweighs an error, since it says something about the series.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let any = |status| self.outcomes.iter().any(|outcome| outcome.status == status);
        if any(Status::Fail) {
            Exit::Failed
        } else if any(Status::Error) {
            Exit::Tool
        } else {
            Exit::Done
        }
    }
}

impl Outcome {
    /// A pass of the whole series, to be refined.
    fn new(gate: Name) -> Self {
        Self {
            gate,
            patch: None,
            configuration: None,
            status: Status::Pass,
            reason: String::new(),
            verdict: None,
            lines: Vec::new(),
            packages: Vec::new(),
            log: None,
            seconds: 0.0,
            cached: false,
        }
    }

    fn patch(mut self, number: usize) -> Self {
        self.patch = Some(number);
        self
    }

    fn configuration(mut self, name: &str) -> Self {
        self.configuration = Some(name.to_owned());
        self
    }

    fn log(mut self, log: PathBuf) -> Self {
        self.log = Some(log);
        self
    }

    fn lines(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    fn fail(mut self, reason: impl Into<String>) -> Self {
        self.status = Status::Fail;
        self.reason = reason.into();
        self
    }

    fn error(mut self, reason: impl Into<String>) -> Self {
        self.status = Status::Error;
        self.reason = reason.into();
        self
    }

    fn skipped(mut self, reason: impl Into<String>) -> Self {
        self.status = Status::Skipped;
        self.reason = reason.into();
        self
    }

    fn packages(mut self, packages: &[String]) -> Self {
        self.packages = packages.to_vec();
        self
    }
}

/// Whether a gate has a rule of this name that can be left out by itself.
fn is_rule(name: &str) -> bool {
    name == maintainers::MISSING || mail::is_rule(name)
}

/// The gate that a rule is of.
fn gate_of(rule: &str) -> Name {
    if rule == maintainers::MISSING {
        Name::Maintainers
    } else {
        Name::Mail
    }
}
