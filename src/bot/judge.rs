//! One series on one base: regenerated, checked, compared, and given a verdict.
//!
//! Hides how each verdict is reached. The result depends on nothing but the base, the recipe, the configuration and the records before it.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::compare::{self, Version};
use super::config::Config;
use super::plan::Checks;
use super::record::{
    BaseRecord, Compared, Conflict, FORMAT, FactChange, FactRecord, LandingRecord, PatchRecord,
    Record, Verdict,
};
use super::watch::Watched;
use crate::cli::letters::LetterArgs;
use crate::edit::Landing;
use crate::error::{Exit, exit_of, refusal};
use crate::gate::settings::Settings;
use crate::gate::{self, PROOF};
use crate::rangediff;
use crate::recipe::Recipe;
use crate::repo::{Base, Repo};
use crate::series::still::Still;
use crate::series::upstream::{self, History, Match, SAME_PATCH_ID};
use crate::series::{Merged, Options, Regenerated, Series, placed, regenerate, regenerate_rest};

/// What is done the same way for each base of a series.
pub(super) struct Judge<'a> {
    /// The repository.
    pub repo: &'a Repo,
    /// The configuration.
    pub config: &'a Config,
    /// The recipe.
    pub recipe: &'a Recipe,
    /// What the recipe says about checks.
    pub settings: &'a Settings,
    /// A digest of the harness that the gates run, where they run one.
    harness: Option<String>,
}

/// What a result is compared with.
#[derive(Debug, Default)]
pub(super) struct Earlier<'a> {
    /// The record that the new one takes the place of.
    pub own: Option<&'a super::state::Kept>,
    /// The newest older base's record that has the same recipe.
    pub neighbour: Option<&'a Record>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        repo: &'a Repo,
        config: &'a Config,
        recipe: &'a Recipe,
        settings: &'a Settings,
    ) -> Result<Self> {
        let mut judge = Self {
            repo,
            config,
            recipe,
            settings,
            harness: None,
        };
        // Where a base is unproven the harness runs, whatever is configured.
        let gates = match recipe.rests_on {
            Some(_) => &PROOF[..],
            None => &config.gates,
        };
        let harness = judge.harness_directory(gates)?;
        judge.harness = harness.map(|dir| gate::harness_files(&dir)).transpose()?;
        Ok(judge)
    }

    /// A digest of everything that the result on a base depends on; `[check]` is a part of the recipe.
    pub(super) fn key(&self, base: &Base) -> Result<String> {
        let config = self.config;
        let parts = (
            FORMAT,
            env!("CARGO_PKG_VERSION"),
            &self.recipe.digest,
            (&config.author, config.sign_off, &config.gates),
            &self.harness,
            (&base.rev, base.commit_id.to_string()),
        );
        let bytes = serde_json::to_vec(&parts).context("a key is always JSON")?;
        Ok(crate::digest::hex(&Sha256::digest(&bytes)))
    }

    /// Judges. An `Err` is no verdict: the surroundings failed, or the user stopped it.
    pub(super) fn judge(
        &self,
        watched: &Watched,
        earlier: &Earlier<'_>,
        checks: &Checks,
    ) -> Result<Record> {
        let base = &watched.base;
        let (letters, options) = self.letters(base)?;
        let whole = self.whole(earlier, base)?;
        let merged = Merged::find(self.repo, base, self.recipe, &options, whole.as_ref())?;
        let history = whole
            .as_ref()
            .map(|whole| History::between(self.repo, whole.commit_id, base.commit_id));
        let history = history.transpose()?.flatten();
        let matches = self.matches(whole.as_ref(), history.as_ref(), earlier, &options)?;
        let mut record = self.blank(watched, earlier, &matches, merged.patches)?;
        if merged.patches == self.recipe.patches.len() {
            record.whole = whole.map(|whole| whole.commit_id.to_string());
            return Ok(folded(record));
        }
        let mut at = None;
        let mut started = |name: &str| at = Some(name.to_owned());
        let result = regenerate_rest(
            self.repo,
            base,
            self.recipe,
            &options,
            &merged,
            &mut started,
        );
        match result {
            Ok(Regenerated::Series(series)) => {
                self.regenerated(&mut record, &series, earlier, &matches)?;
                self.checked(&mut record, &series, earlier, (&letters, &options), checks)?;
                // What may be in the base is looked for again on the next one.
                let nothing = matches
                    .iter()
                    .all(|found| present(found.as_ref()).is_none());
                let is_whole = merged.patches == 0 && nothing;
                let commit = if is_whole { Some(base) } else { whole.as_ref() };
                record.whole = commit.map(|base| base.commit_id.to_string());
            }
            Ok(Regenerated::Applied(_)) => {
                applied(&mut record, &matches);
                record.whole = whole.map(|whole| whole.commit_id.to_string());
            }
            Err(error) if matches!(exit_of(&error), Exit::Drift | Exit::Usage) => {
                let conflict = self.conflict(&error, history.as_ref())?;
                conflicting(&mut record, at.as_deref(), &conflict, &matches);
                record.conflict = Some(conflict);
                record.whole = whole.map(|whole| whole.commit_id.to_string());
            }
            Err(error) => return Err(error),
        }
        Ok(folded(record))
    }

    /// How the bot's letters are, and what regenerating asks for.
    pub(super) fn letters(&self, base: &Base) -> Result<(LetterArgs, Options)> {
        let letters = LetterArgs::of(self.config.author.as_deref(), self.config.sign_off);
        let author = letters.author(self.recipe, || {
            "set `author` in the bot's configuration".to_owned()
        })?;
        let options = letters.options(&author, self.recipe, base)?;
        Ok((letters, options))
    }

    /// The newest older base that the whole series was regenerated on.
    fn whole(&self, earlier: &Earlier<'_>, base: &Base) -> Result<Option<Base>> {
        let own = earlier.own.and_then(|kept| kept.record.whole.as_ref());
        let own = own.filter(|whole| **whole != base.commit_id.to_string());
        let whole = own.or(earlier.neighbour.and_then(|record| record.whole.as_ref()));
        let whole = whole.map(|whole| self.repo.base(whole)).transpose()?;
        Ok(whole.filter(|whole| whole.commit_id != base.commit_id))
    }

    /// What the history since that base has of each patch.
    fn matches(
        &self,
        whole: Option<&Base>,
        history: Option<&History<'_>>,
        earlier: &Earlier<'_>,
        options: &Options,
    ) -> Result<Vec<Option<Match>>> {
        let nothing = self.recipe.patches.iter().map(|_| None).collect();
        let (Some(whole), Some(history)) = (whole, history) else {
            return Ok(nothing);
        };
        let commits = history.commits_of(&placed(self.repo, whole, self.recipe)?)?;
        if commits.is_empty() {
            return Ok(nothing);
        }
        let patches = self.patches_on(whole, earlier, options)?;
        patches.map_or(Ok(nothing), |patches| commits.find(&patches))
    }

    /// The whole series on an older base, as a record has it, or made anew; `None` where it does not fit.
    fn patches_on(
        &self,
        whole: &Base,
        earlier: &Earlier<'_>,
        options: &Options,
    ) -> Result<Option<Vec<Version>>> {
        let commit = whole.commit_id.to_string();
        let records = earlier
            .own
            .map(|kept| &kept.record)
            .into_iter()
            .chain(earlier.neighbour);
        let recorded = records.into_iter().find(|record| {
            let is_whole = record.patches.iter().all(|patch| patch.commit.is_some());
            record.base.commit == commit && record.recipe == self.recipe.digest && is_whole
        });
        if let Some(record) = recorded {
            return compare::recorded(self.repo, record).map(Some);
        }
        let series = self.series_on(whole, options)?;
        series
            .map(|series| rangediff::of_series(self.repo, &series))
            .transpose()
    }

    /// The whole series made anew on a base; `None` where it does not fit, or is there.
    pub(super) fn series_on(&self, base: &Base, options: &Options) -> Result<Option<Box<Series>>> {
        match regenerate(self.repo, base, self.recipe, options) {
            Ok(Regenerated::Series(series)) => Ok(Some(series)),
            Ok(Regenerated::Applied(_)) => Ok(None),
            Err(error) if matches!(exit_of(&error), Exit::Drift | Exit::Usage) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A record in which the first patches are upstream and nothing else is said yet.
    fn blank(
        &self,
        watched: &Watched,
        earlier: &Earlier<'_>,
        matches: &[Option<Match>],
        merged: usize,
    ) -> Result<Record> {
        let Watched { base, release } = watched;
        let patches = self.recipe.patches.iter().enumerate().map(|(index, spec)| {
            let mut record = PatchRecord {
                name: spec.name.clone(),
                number: None,
                subject: String::new(),
                verdict: Verdict::Clean,
                reason: String::new(),
                details: Vec::new(),
                commit: None,
                upstream: present(matches[index].as_ref()).map(|found| found.commit.clone()),
                landings: Vec::new(),
            };
            if index < merged {
                record.verdict = Verdict::Upstream;
                record.reason = upstream::how(matches[index].as_ref());
            } else if let Some(found) = present(matches[index].as_ref()) {
                suspected(&mut record, found);
            }
            record
        });
        Ok(Record {
            format: FORMAT,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            key: self.key(base)?,
            recipe: self.recipe.digest.clone(),
            series: self.recipe.series.name.clone(),
            title: self.recipe.series.title.clone(),
            series_version: self.recipe.series.version,
            base: BaseRecord {
                name: base.rev.clone(),
                commit: base.commit_id.to_string(),
                tree: base.tree_id.to_string(),
                release: release.clone(),
                time: base.time,
            },
            verdict: Verdict::Clean,
            patches: patches.collect(),
            gates: Vec::new(),
            facts: Vec::new(),
            changed_facts: Vec::new(),
            compared: None,
            standing: None,
            conflict: None,
            tip: None,
            cover: String::new(),
            whole: None,
            previous: earlier.own.map(|kept| kept.id.to_string()),
        })
    }

    /// What was regenerated, compared with what there was before.
    fn regenerated(
        &self,
        record: &mut Record,
        series: &Series,
        earlier: &Earlier<'_>,
        matches: &[Option<Match>],
    ) -> Result<()> {
        for (index, patch) in series.patches.iter().enumerate() {
            let place = record.patches.iter().position(|it| it.name == patch.name);
            let place = place.context("a patch is one of the recipe's")?;
            let landings = series
                .landings
                .iter()
                .filter(|landing| landing.patch == patch.name);
            let entry = &mut record.patches[place];
            entry.number = Some(index + 1);
            entry.subject = patch.commit.subject().to_string();
            entry.commit = Some(patch.commit.id.to_string());
            entry.landings = landings.map(landing).collect();
            match matches[place].as_ref().filter(|found| found.exact) {
                Some(found) if found.is_gone() => entry.reason = found.fate(),
                Some(found) => {
                    entry.reason = format!(
                        "{} has the same patch-id, but the base is not what the patch makes of it",
                        found.commit.shown()
                    );
                }
                None => {}
            }
        }
        record.tip = series
            .patches
            .last()
            .map(|patch| patch.commit.id.to_string());
        record.cover.clone_from(&series.cover);
        record.facts = series
            .facts
            .iter()
            .map(|fact| FactRecord {
                name: fact.name.clone(),
                about: fact.about.clone(),
                value: fact.value.to_string(),
                place: fact.place.clone(),
            })
            .collect();
        let new = compare::read(self.repo, &record.patches)?;
        let own = earlier.own.map(|kept| &kept.record);
        let usable = |it: &&Record| it.tip.is_some();
        let neighbour = earlier.neighbour.filter(usable);
        let before = own.filter(usable).or(neighbour);
        let old = before
            .map(|before| compare::recorded(self.repo, before))
            .transpose()?;
        let (Some(before), Some(old)) = (before, old) else {
            return Ok(());
        };
        // What the author changed is no drift: only results of the same recipe tell what the base did.
        if before.recipe == record.recipe {
            drifts(record, before, &old, &new);
        } else if let Some(neighbour) = neighbour {
            drifts(
                record,
                neighbour,
                &compare::recorded(self.repo, neighbour)?,
                &new,
            );
        }
        record.compared = Some(Compared {
            base: before.base.name.clone(),
            tip: before.tip.clone().unwrap_or_default(),
            other_recipe: before.recipe != record.recipe,
            pairs: compare::pairs(&old, &new)?,
        });
        Ok(())
    }

    /// Why the base does not fit, and which commits may have done it.
    fn conflict(&self, error: &anyhow::Error, history: Option<&History<'_>>) -> Result<Conflict> {
        let refused = refusal(error);
        let text = |text: &str| localised(text, &self.recipe.origin);
        let details = refused.map_or(&[][..], |refused| &refused.details);
        let details: Vec<_> = details.iter().map(|line| text(line)).collect();
        let hint = refused
            .and_then(|refused| refused.hint.as_deref())
            .unwrap_or_default();
        let message = text(&format!("{error:#}"));
        let all = format!("{message}\n{}", details.join("\n"));
        let suspects = match history {
            Some(history) => history.suspects(self.recipe, &all)?,
            None => Vec::new(),
        };
        Ok(Conflict {
            message,
            details,
            hint: text(hint),
            suspects,
        })
    }
}

/// Marks the patches that drifted, and the facts that changed.
fn drifts(record: &mut Record, before: &Record, old: &[Version], new: &[Version]) {
    for entry in record
        .patches
        .iter_mut()
        .filter(|entry| entry.verdict == Verdict::Clean)
    {
        let find = |versions: &'_ [Version]| {
            versions
                .iter()
                .position(|it| it.identity.as_deref() == Some(entry.name.as_str()))
        };
        let earlier = before
            .patches
            .iter()
            .find(|it| it.name == entry.name && it.commit.is_some());
        let (Some(earlier), Some(was), Some(is)) = (earlier, find(old), find(new)) else {
            continue;
        };
        if let Some((reason, details)) =
            compare::drift((earlier, &old[was]), (&entry.landings, &new[is]))
        {
            entry.verdict = Verdict::Drifted;
            entry.reason = format!("unlike on {}: {reason}", before.base.name);
            entry.details = details;
        }
    }
    for fact in &record.facts {
        let was = before.facts.iter().find(|it| it.name == fact.name);
        if let Some(was) = was.filter(|was| was.value != fact.value) {
            record.changed_facts.push(FactChange {
                name: fact.name.clone(),
                about: fact.about.clone(),
                old: was.value.clone(),
                new: fact.value.clone(),
            });
        }
    }
}

/// A record with the worst of its patches' verdicts, and of how the base stands.
fn folded(mut record: Record) -> Record {
    let conflict = record.conflict.as_ref().map(|_| Verdict::Conflict);
    let unproven = record.standing.as_ref().filter(|it| !it.is_proven());
    let worst = record
        .patches
        .iter()
        .map(|patch| patch.verdict)
        .chain(conflict)
        .chain(unproven.map(|_| Verdict::Unproven))
        .max();
    record.verdict = worst.unwrap_or(Verdict::Clean);
    record
}

/// What is said of a patch that the history has something of, though it was not proven to be in the base.
fn suspected(record: &mut PatchRecord, found: &Match) {
    let what = if found.exact {
        SAME_PATCH_ID
    } else {
        "has the same subject and most of the lines"
    };
    record.verdict = Verdict::ProbablyUpstream;
    record.reason = format!("{} {what}", found.commit.shown());
}

/// What the history has of a patch, if anything of it is there still.
fn present(found: Option<&Match>) -> Option<&Match> {
    found.filter(|found| !found.is_gone())
}

/// The base is what the recipe makes of it.
fn applied(record: &mut Record, matches: &[Option<Match>]) {
    for (patch, found) in record.patches.iter_mut().zip(matches) {
        patch.verdict = Verdict::Upstream;
        patch.reason = upstream::how(found.as_ref());
    }
}

/// Nothing was made: whose fault it is, as far as that is known.
fn conflicting(
    record: &mut Record,
    at: Option<&str>,
    conflict: &Conflict,
    matches: &[Option<Match>],
) {
    let place = at.and_then(|at| record.patches.iter().position(|patch| patch.name == at));
    let is_named = |name: &str| {
        conflict
            .details
            .iter()
            .any(|line| line.contains(&format!("patch `{name}` builds on it")))
    };
    let any_named = record.patches.iter().any(|patch| is_named(&patch.name));
    for (index, patch) in record.patches.iter_mut().enumerate() {
        if patch.verdict != Verdict::Clean {
            let found = matches[index].as_ref();
            if found.is_some_and(|it| it.exact && it.still == Still::There) {
                patch.verdict = Verdict::Upstream;
            }
            continue;
        }
        let not_tried = |on: &str| (Verdict::Conflict, format!("it was not tried: {on}"));
        (patch.verdict, patch.reason) = match (place, at) {
            (Some(place), _) if index < place => (
                Verdict::Clean,
                "it fits, but is not sent without the rest".to_owned(),
            ),
            (Some(place), Some(at)) if index > place => not_tried(&format!("it stands on `{at}`")),
            (None, _) if any_named && !is_named(&patch.name) => {
                not_tried("the base does not fit the other patches")
            }
            _ => (Verdict::Conflict, conflict.message.clone()),
        };
    }
}

fn landing(landing: &Landing) -> LandingRecord {
    LandingRecord {
        edit: landing.edit.clone(),
        action: landing.action.to_owned(),
        file: landing.file.clone(),
        function: landing.function.clone(),
        line: landing.line,
        matched: landing.matched.clone(),
    }
}

/// A text without the path of the recipe, which another machine has elsewhere.
fn localised(text: &str, origin: &str) -> String {
    text.replace(&format!("{origin}/"), "")
}
