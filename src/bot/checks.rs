//! What the gates say of a result: which are run, what they find, and what that says of a base that is unproven.
//!
//! Hides that a gate which nobody has configured may fail to run, and that cells of a matrix see a part of them.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::judge::{Earlier, Judge};
use super::plan::Checks;
use super::record::{GateRecord, Record};
use super::stands::{Stands, all_gates};
use super::watch::Watched;
use crate::cache::Cache;
use crate::cli::letters::LetterArgs;
use crate::error::Refusal;
use crate::gate::settings::Settings;
use crate::gate::{self, Name, Outcome, Status, Subject};
use crate::lab::Lab;
use crate::series::{Options, Series};

/// What gates found.
#[derive(Default)]
struct Found {
    gates: Vec<GateRecord>,
    /// What kept those from running that are not configured.
    trouble: Vec<String>,
}

impl Judge<'_> {
    /// Where the harness is, if one of these gates runs it.
    pub(super) fn harness_directory(&self, gates: &[Name]) -> Result<Option<PathBuf>> {
        let runs = |gate: &Name| matches!(gate, Name::Equality | Name::Guest);
        let equality = self.settings.equality.as_ref();
        let Some(equality) = equality.filter(|_| gates.iter().any(runs)) else {
            return Ok(None);
        };
        let origin = Path::new(&self.recipe.origin);
        gate::harness_directory(&lab()?, origin, equality).map(Some)
    }

    /// What the gates find, and what that says of a base that is unproven.
    pub(super) fn checked(
        &self,
        record: &mut Record,
        series: &Series,
        earlier: &Earlier<'_>,
        letters: (&LetterArgs, &Options),
        checks: &Checks,
    ) -> Result<()> {
        let stands = Stands::of(series, &self.recipe.digest, earlier);
        let needs = stands.as_ref().map_or(&[][..], Stands::needs);
        let Found { gates, trouble } = self.gates(series, letters, checks, needs)?;
        record.gates = gates;
        let Some(stands) = stands else {
            return Ok(());
        };
        if matches!(checks, Checks::Some(..)) {
            record.standing = Some(stands.of_part());
            return Ok(());
        }
        let settings = self.settings.without(series.merged);
        stands.end(record, series.patches.len(), &settings, trouble);
        let standing = record.standing.as_ref();
        if standing.is_some_and(|it| !it.is_proven()) {
            record.cover = series.blurb();
        }
        Ok(())
    }

    /// The gates that a result on a base takes beyond those that are configured: those that prove a base that is unproven.
    pub(super) fn needs(
        &self,
        watched: &Watched,
        earlier: &Earlier<'_>,
    ) -> Result<&'static [Name]> {
        if self.recipe.rests_on.is_none() {
            return Ok(&[]);
        }
        let (_, options) = self.letters(&watched.base)?;
        let series = self.series_on(&watched.base, &options)?;
        let stands = series.and_then(|it| Stands::of(&it, &self.recipe.digest, earlier));
        Ok(stands.as_ref().map_or(&[], Stands::needs))
    }

    /// What the configured gates find, and those that are needed beyond them. A configured one that could not run is an error of the
    /// surroundings.
    fn gates(
        &self,
        series: &Series,
        (letters, options): (&LetterArgs, &Options),
        checks: &Checks,
        needs: &[Name],
    ) -> Result<Found> {
        let configured = &self.config.gates;
        let gates = match checks {
            Checks::Known(known) => {
                return Ok(Found {
                    gates: known.gates.clone(),
                    trouble: Vec::new(),
                });
            }
            Checks::All => all_gates(configured, needs),
            Checks::Some(gates, _) => gates.clone(),
        };
        if gates.is_empty() {
            return Ok(Found::default());
        }
        let mut subject = self.subject(series, letters, options, checks)?;
        subject.harness = self.harness_directory(&gates)?;
        let options = gate::Options {
            gates,
            ..gate::Options::default()
        };
        let report = gate::check(&subject, &options, &lab()?, &|_| {})?;
        let (broken, outcomes): (Vec<_>, Vec<_>) = report
            .outcomes
            .iter()
            .partition(|outcome| outcome.status == Status::Error);
        let is_configured = |outcome: &&&Outcome| configured.contains(&outcome.gate);
        if let Some(outcome) = broken.iter().find(is_configured) {
            let mut details = outcome.lines.clone();
            if !outcome.packages.is_empty() {
                details.push(format!("apt install {}", outcome.packages.join(" ")));
            }
            return Err(Refusal::tool(not_run(outcome))
                .details(details)
                .hint("`reroll doctor` shows which tools are missing; the next run tries again")
                .into());
        }
        let mut gates: Vec<_> = outcomes.into_iter().map(GateRecord::of).collect();
        gates.sort_by_key(GateRecord::place);
        let mut trouble: Vec<_> = broken.into_iter().map(not_run).collect();
        trouble.dedup();
        Ok(Found { gates, trouble })
    }

    fn subject(
        &self,
        series: &Series,
        letters: &LetterArgs,
        options: &Options,
        checks: &Checks,
    ) -> Result<Subject> {
        let letters = letters.letters(self.repo, self.recipe, series, options)?;
        let mut settings = Settings::on(self.recipe, &series.places)?;
        if let Checks::Some(_, Some(name)) = checks {
            settings.configuration.retain(|it| it.name == *name);
        }
        Subject::from_series(self.repo, series, letters, settings)
    }
}

/// What is said of a gate that could not run.
fn not_run(outcome: &Outcome) -> String {
    let (gate, reason) = (outcome.gate, &outcome.reason);
    format!("the gate `{gate}` could not run: {reason}")
}

fn lab() -> Result<Lab> {
    let repo = Cache::open()?.repo_path();
    Lab::open(&repo.with_file_name("lab"))
}
