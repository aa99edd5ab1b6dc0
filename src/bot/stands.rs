//! Whether a base is proven for a series, and how it is proven where it was not: the build and equality gates are run, whatever is
//! configured, and what they find decides.
//!
//! What the bot has proven on one base counts on the next ones: a form (see [`crate::rests`]) is the same wherever it is.

use super::judge::Earlier;
use super::record::{Conflict, GateRecord, Record, StandingRecord, Verdict};
use crate::gate::settings::Settings;
use crate::gate::{Name, PROOF, Status, proof};
use crate::rests::Standing;
use crate::series::Series;

/// The gates of a base: the configured ones, and those that it needs beyond them.
pub(super) fn all_gates(configured: &[Name], needs: &[Name]) -> Vec<Name> {
    let more = needs.iter().filter(|gate| !configured.contains(gate));
    configured.iter().chain(more).copied().collect()
}

/// How a base stands before the gates have run.
pub(super) struct Stands {
    standing: Standing,
    record: StandingRecord,
}

impl Stands {
    /// `None` where the recipe does not say what it rests on.
    pub(super) fn of(series: &Series, digest: &str, earlier: &Earlier<'_>) -> Option<Self> {
        let mut standing = series.standing.clone()?;
        let mut record = StandingRecord::default();
        let own = earlier.own.map(|kept| &kept.record);
        for before in own.into_iter().chain(earlier.neighbour) {
            if let Some(known) = before.standing.as_ref().filter(|_| before.recipe == digest) {
                let forms = known.forms.iter();
                let forms = forms.map(|(name, form)| (name.clone(), form.clone()));
                record.forms.extend(forms);
            }
        }
        standing.accept(&record.forms);
        if !standing.is_proven() {
            record.sentence = standing.sentence();
            record.details = standing.details();
        }
        Some(Self { standing, record })
    }

    /// The gates that are needed beyond those that are configured.
    pub(super) fn needs(&self) -> &'static [Name] {
        if self.standing.is_proven() {
            &[]
        } else {
            &PROOF
        }
    }

    /// What a cell leaves, which has seen a part of the gates: all of them decide once they are folded together.
    pub(super) fn of_part(self) -> StandingRecord {
        let mut record = self.record;
        if !self.standing.is_proven() {
            record.missing = vec!["this is a part of the gates".to_owned()];
        }
        record
    }

    /// Takes in what the gates found; `trouble` is what kept those from running that nobody configured.
    pub(super) fn end(
        self,
        record: &mut Record,
        patches: usize,
        settings: &Settings,
        trouble: Vec<String>,
    ) {
        let mut stands = self.record;
        if self.standing.is_proven() {
            record.standing = Some(stands);
            return;
        }
        match proof(patches, &record.gates, settings) {
            Ok(configurations) => {
                stands.configurations = configurations;
                stands.forms.extend(self.standing.unproven_forms());
            }
            Err(missing) => {
                let refuted: Vec<_> = record.gates.iter().filter(|it| refutes(it)).collect();
                if !refuted.is_empty() {
                    record.conflict = Some(conflict(&stands, &refuted));
                    let numbers: Vec<_> = refuted.iter().filter_map(|it| it.patch).collect();
                    refute(record, &numbers);
                }
                stands.missing = if trouble.is_empty() { missing } else { trouble };
            }
        }
        record.standing = Some(stands);
    }
}

/// Whether a gate says that the series is wrong on the base, and not only that it could not be found out.
fn refutes(gate: &GateRecord) -> bool {
    PROOF.contains(&gate.gate) && gate.status == Status::Fail
}

/// What the base changed was tried, and the series is wrong with it.
fn conflict(stands: &StandingRecord, refuted: &[&GateRecord]) -> Conflict {
    let lines = refuted.iter().flat_map(|gate| {
        let title = format!("{}: {}", gate.title(), gate.reason);
        std::iter::once(title).chain(gate.lines.iter().map(|line| format!("  {line}")))
    });
    Conflict {
        message: format!("{}; the gates refute it", stands.sentence),
        details: stands.details.iter().cloned().chain(lines).collect(),
        hint: "look what the base changed there, then mend the recipe, or say under `[rests-on]` why it does not matter".to_owned(),
        suspects: Vec::new(),
    }
}

/// The patches with these numbers are what the gates refute.
fn refute(record: &mut Record, numbers: &[usize]) {
    let message = record.conflict.as_ref().map(|it| it.message.clone());
    for patch in &mut record.patches {
        if patch.number.is_some_and(|number| numbers.contains(&number)) {
            patch.verdict = Verdict::Conflict;
            patch.reason = message.clone().unwrap_or_default();
        }
    }
}
