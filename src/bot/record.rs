//! What the bot knows of a series on a base, as it is kept in the repository.
//!
//! Hides nothing: the types are the JSON. There is no clock, no host and no path of a machine in it, so that two runs write the same bytes.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::gate::{Finding, Name, Outcome, Status};
pub use crate::series::upstream::Suspect;
use crate::ui::shown_text;

/// The version of the JSON object.
pub const FORMAT: u32 = 2;

/// How a patch, or a whole series, is on a base; a series is what the worst of its patches is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Regenerated, and it changes what it changed before.
    Clean,
    /// The base has it.
    Upstream,
    /// Regenerated, but it changes something else than before, or elsewhere.
    Drifted,
    /// Regenerated, but something that it rests on was never proven as it is on the base.
    Unproven,
    /// The base has something very much like it; a person has to say whether it is the same.
    ProbablyUpstream,
    /// The base does not fit the recipe.
    Conflict,
}

impl Verdict {
    /// As a person reads it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Upstream => "upstream",
            Self::Drifted => "drifted",
            Self::Unproven => "unproven",
            Self::ProbablyUpstream => "probably upstream",
            Self::Conflict => "conflict",
        }
    }
}

/// All that is known of a series on a base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// The version of this object.
    pub format: u32,
    /// The version of reroll.
    pub tool: String,
    /// A digest of everything that the result depends on: the same key is the same result.
    pub key: String,
    /// The recipe's digest.
    pub recipe: String,
    /// The series.
    pub series: String,
    /// Its title.
    pub title: String,
    /// Its version.
    pub series_version: u32,
    /// The base.
    pub base: BaseRecord,
    /// The worst of the patches' verdicts, and of how the base stands.
    pub verdict: Verdict,
    /// The patches in the recipe's order.
    pub patches: Vec<PatchRecord>,
    /// What the gates found.
    pub gates: Vec<GateRecord>,
    /// The facts.
    pub facts: Vec<FactRecord>,
    /// Facts that are not as they were on the base before.
    pub changed_facts: Vec<FactChange>,
    /// What it was compared with.
    pub compared: Option<Compared>,
    /// How the base stands by what the series rests on; none where the recipe does not say what that is, or nothing was regenerated.
    pub standing: Option<StandingRecord>,
    /// Why it could not be regenerated, or was refuted.
    pub conflict: Option<Conflict>,
    /// The last patch's commit.
    pub tip: Option<String>,
    /// The cover letter's text.
    pub cover: String,
    /// The newest base, up to this one, that the whole series was regenerated on: its commit.
    pub whole: Option<String>,
    /// The record that this one takes the place of: its commit.
    pub previous: Option<String>,
}

/// A base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BaseRecord {
    /// Its name: a tag's or a branch's.
    pub name: String,
    /// Its commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// The kernel's release as its `Makefile` says; empty where that says nothing.
    pub release: String,
    /// The committer's time, seconds since 1970.
    pub time: i64,
}

/// One patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PatchRecord {
    /// Its name in the recipe.
    pub name: String,
    /// Its number among those that are sent; none for one that is not.
    pub number: Option<usize>,
    /// Its subject, where it was regenerated.
    pub subject: String,
    /// How it is.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// Lines that show it.
    pub details: Vec<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// The commit of the base that has it, or something like it.
    pub upstream: Option<Suspect>,
    /// Where its edits landed.
    pub landings: Vec<LandingRecord>,
}

/// Where an edit landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LandingRecord {
    /// The edit.
    pub edit: String,
    /// What it does.
    pub action: String,
    /// The file.
    pub file: String,
    /// The function.
    pub function: Option<String>,
    /// The line.
    pub line: usize,
    /// The text that its anchor matched.
    pub matched: String,
}

/// What one gate found about one patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GateRecord {
    /// The gate.
    pub gate: Name,
    /// The patch's number, from 1; 0 is the cover letter; none is the whole series.
    pub patch: Option<usize>,
    /// The configuration.
    pub configuration: Option<String>,
    /// What it found.
    pub status: Status,
    /// Why.
    pub reason: String,
    /// The lines that matter.
    pub lines: Vec<String>,
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FactRecord {
    /// Its name.
    pub name: String,
    /// What it means.
    pub about: String,
    /// Its value.
    pub value: String,
    /// Where it was found.
    pub place: String,
}

/// A fact that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FactChange {
    /// Its name.
    pub name: String,
    /// What it means.
    pub about: String,
    /// What it was.
    pub old: String,
    /// What it is.
    pub new: String,
}

/// The range-diff with an earlier result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Compared {
    /// The base of the earlier result.
    pub base: String,
    /// Its last patch.
    pub tip: String,
    /// Whether the recipe was another one.
    pub other_recipe: bool,
    /// The patches that are not equal.
    pub pairs: Vec<PairRecord>,
}

/// A pair of patches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairRecord {
    /// The patch's name.
    pub patch: String,
    /// `equal`, `changed`, `new`, `dropped` or `split`.
    pub kind: String,
    /// The difference.
    pub lines: Vec<String>,
}

/// How a base stands by what the series rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StandingRecord {
    /// What was not proven before, in a sentence; empty where all was.
    pub sentence: String,
    /// The definitions, line by line.
    pub details: Vec<String>,
    /// The configurations that the gates proved it in here.
    pub configurations: Vec<String>,
    /// What a proof lacks, a line each; empty where it is proven.
    pub missing: Vec<String>,
    /// What the bot has proven so far, here and on older bases, beyond what is kept beside the series: digests by name.
    pub forms: BTreeMap<String, String>,
}

impl StandingRecord {
    /// Whether everything is proven by now.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether the gates proved here what was not proven before.
    #[must_use]
    pub fn is_proven_here(&self) -> bool {
        self.is_proven() && !self.sentence.is_empty()
    }

    /// What a proof lacks, as a person reads it.
    pub fn lacks(&self) -> impl Iterator<Item = String> {
        let missing = self.missing.iter();
        missing.map(|line| format!("not proven: {line}"))
    }

    /// What is to be said of it; `None` where all was proven before.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let sentence = (!self.sentence.is_empty()).then_some(self.sentence.as_str())?;
        Some(if self.is_proven() {
            let names = self.configurations.join(", ");
            format!(
                "{sentence}; the gates prove it here: built after each patch, run and compared ({names})"
            )
        } else {
            sentence.to_owned()
        })
    }
}

/// Why a base does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conflict {
    /// What is wrong.
    pub message: String,
    /// The base's lines, candidates.
    pub details: Vec<String>,
    /// What to do.
    pub hint: String,
    /// Commits of the base that changed the functions in question, newest first.
    pub suspects: Vec<Suspect>,
}

impl Record {
    /// What a person calls the result: `SERIES/BASE`.
    #[must_use]
    pub fn result_name(&self) -> String {
        format!("{}/{}", self.series, self.base.name)
    }

    /// The JSON.
    pub fn json(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self).context("a record is always JSON")?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads the JSON; `place` is where it was found.
    pub fn parse(bytes: &[u8], place: &str) -> Result<Self> {
        let parsed: Result<Self, _> = serde_json::from_slice(bytes);
        parsed.map_err(|error| {
            Refusal::usage(format!("`{}` is no record of the bot: {error}", shown_text(place.as_bytes())))
                .hint("another version of reroll wrote it, or something else; delete that ref to begin anew")
                .into()
        })
    }

    /// Whether nothing but a machine that can run the gates is missing for a proof.
    #[must_use]
    pub fn can_be_proven(&self) -> bool {
        self.verdict == Verdict::Unproven && !self.gates_failed()
    }

    /// Whether another record says the same of the same.
    #[must_use]
    pub fn says_what(&self, other: &Self) -> bool {
        let plain = |record: &Self| Self {
            previous: None,
            compared: None,
            ..record.clone()
        };
        plain(self) == plain(other)
    }

    /// Whether a gate was not content.
    #[must_use]
    pub fn gates_failed(&self) -> bool {
        self.gates.iter().any(|gate| gate.status >= Status::Fail)
    }

    /// Whether the result can go out without a person.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.tip.is_some() && !self.gates_failed() && self.verdict < Verdict::Unproven
    }

    /// The verdict in a few words.
    #[must_use]
    pub fn state(&self) -> String {
        let count = |verdict| {
            self.patches
                .iter()
                .filter(|patch| patch.verdict == verdict)
                .count()
        };
        let (all, upstream) = (self.patches.len(), count(Verdict::Upstream));
        let mut state = self.verdict.as_str().to_owned();
        if upstream > 0 && upstream < all {
            state.push_str(&format!(" ({upstream} of {all} upstream)"));
        }
        let mut failed: Vec<_> = self
            .gates
            .iter()
            .filter(|gate| gate.status >= Status::Fail)
            .map(|gate| gate.gate.as_str())
            .collect();
        failed.dedup();
        if !failed.is_empty() {
            state.push_str(&format!(", {} fails", failed.join(" and ")));
        }
        state
    }
}

impl<'a> From<&'a GateRecord> for Finding<'a> {
    fn from(record: &'a GateRecord) -> Self {
        Self {
            gate: record.gate,
            patch: record.patch,
            configuration: record.configuration.as_deref(),
            status: record.status,
        }
    }
}

impl GateRecord {
    /// The gate, its configuration and the patch, as a person reads it.
    #[must_use]
    pub fn title(&self) -> String {
        let configuration = self.configuration.as_ref().map(|name| format!(" {name}"));
        let patch = match self.patch {
            None => String::new(),
            Some(0) => ", cover letter".to_owned(),
            Some(number) => format!(", patch {number}"),
        };
        format!("{}{}{patch}", self.gate, configuration.unwrap_or_default())
    }

    /// What records are sorted by.
    #[must_use]
    pub fn place(&self) -> (Name, Option<String>, Option<usize>) {
        (self.gate, self.configuration.clone(), self.patch)
    }

    /// What is worth keeping of an outcome.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            gate: outcome.gate,
            patch: outcome.patch,
            configuration: outcome.configuration.clone(),
            status: outcome.status,
            reason: outcome.reason.clone(),
            lines: outcome.lines.iter().take(MOST_LINES).cloned().collect(),
        }
    }
}

/// Lines that are kept of one finding.
pub const MOST_LINES: usize = 200;
