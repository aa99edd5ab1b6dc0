//! The bot's work as cells of a matrix: planned here, run on machines of their own, and folded together again.
//!
//! Hides when what a cell found still counts: it must have seen the very base, recipe, configuration and result that the record is of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::judge::{Earlier, Judge};
use super::plan::{self, Cell, Checks, Found, Known};
use super::publish::Published;
use super::record::{GateRecord, Record};
use super::stands::all_gates;
use super::state::Kept;
use super::watch::Watched;
use super::{Bot, Run};
use crate::error::{Exit, Refusal};
use crate::gate::PROOF;
use crate::ui::Ui;

/// What cells found elsewhere, by series and base.
#[derive(Debug, Default)]
pub(super) struct Elsewhere(BTreeMap<(String, String), Known>);

impl Elsewhere {
    /// What stands for the checks of a series on a base; `None` where no cell was there, and nothing new is to be made.
    pub(super) fn checks(&self, series: &str, base: &str) -> Option<Checks> {
        let known = self.0.get(&(series.to_owned(), base.to_owned()));
        known.cloned().map(Checks::Known)
    }

    /// Folds the cells of a series on a base into one; an `Err` says what is wrong with them.
    fn add(&mut self, series: &str, base: &str, found: &[&Found]) -> Result<(), String> {
        let ends: BTreeSet<_> = found
            .iter()
            .map(|it| (&it.record.key, &it.record.tip))
            .collect();
        let (1, Some((key, tip))) = (ends.len(), ends.first()) else {
            return Err(format!(
                "{series}/{base}: its cells saw different bases, recipes or results"
            ));
        };
        let gates = found.iter().flat_map(|it| it.record.gates.iter().cloned());
        let mut known = Known {
            key: (*key).clone(),
            tip: (*tip).clone(),
            gates: gates.collect(),
        };
        known.gates.sort_by_key(GateRecord::place);
        self.0.insert((series.to_owned(), base.to_owned()), known);
        Ok(())
    }
}

impl Bot {
    /// The cells that are to be run, or with `all` all there are.
    pub fn plan(&self, all: bool, ui: Ui) -> Result<Vec<Cell>> {
        self.cells(&self.watched(ui)?, all)
    }

    /// All bases there are, once what the push remote knows is taken in.
    fn watched(&self, ui: Ui) -> Result<Vec<Watched>> {
        let mut run = Run::default();
        let state = self.state();
        if let Some(push) = &self.config.push {
            let remote = self.config.remote(push);
            run.attempt(self.config.retry, ui, || Published::take(&state, &remote))?;
        }
        let bases = self.bases(&mut run, ui)?;
        run.troubles.pop().map_or(Ok(bases), Err)
    }

    fn cells(&self, bases: &[Watched], all: bool) -> Result<Vec<Cell>> {
        let state = self.state();
        let mut cells = Vec::new();
        for (recipe, settings) in &self.series {
            let judge = self.judge(recipe, settings)?;
            for (place, watched) in bases.iter().enumerate() {
                let own = state.get(&recipe.series.name, &watched.base.rev)?;
                let key = judge.key(&watched.base)?;
                if all || own.as_ref().is_none_or(|own| own.record.key != key) {
                    cells.extend(self.cells_on(&judge, bases, place)?);
                }
            }
        }
        Ok(cells)
    }

    /// The cells of a series on the base at `place`.
    fn cells_on(&self, judge: &Judge<'_>, bases: &[Watched], place: usize) -> Result<Vec<Cell>> {
        let (series, base) = (&judge.recipe.series.name, &bases[place].base.rev);
        let (own, neighbour) = self.earlier(judge, bases, place)?;
        let earlier = Earlier {
            own: own.as_ref(),
            neighbour: neighbour.as_ref(),
        };
        let needs = judge.needs(&bases[place], &earlier)?;
        let gates = all_gates(&self.config.gates, needs);
        Ok(plan::cells(&gates, judge.settings, series, base))
    }

    /// The records that a series on the base at `place` is compared with: its own, and a neighbour's. They decide which patches are taken
    /// to be in the base, and what is proven.
    fn earlier(
        &self,
        judge: &Judge<'_>,
        bases: &[Watched],
        place: usize,
    ) -> Result<(Option<Kept>, Option<Record>)> {
        let series = &judge.recipe.series.name;
        let own = self.state().get(series, &bases[place].base.rev)?;
        let neighbour = self.neighbour(&bases[..place], series, &judge.recipe.digest)?;
        Ok((own, neighbour))
    }

    /// Runs one cell, and writes no ref for it.
    pub fn run_cell(&self, id: &str, ui: Ui) -> Result<Found> {
        let bases = self.watched(ui)?;
        let (judge, place) = self.of_cell(id, &bases)?;
        let cells = self.cells_on(&judge, &bases, place)?;
        let cell = plan::find(&cells, id)?;
        let (own, neighbour) = self.earlier(&judge, &bases, place)?;
        let earlier = Earlier {
            own: own.as_ref(),
            neighbour: neighbour.as_ref(),
        };
        let checks = cell.checks();
        let mut run = Run::default();
        let record = run.attempt(self.config.retry, ui, || {
            judge.judge(&bases[place], &earlier, &checks)
        })?;
        match (record, run.troubles.pop()) {
            (Some(record), _) => Ok(Found {
                id: id.to_owned(),
                record,
            }),
            (None, trouble) => Err(trouble.context("a cell that failed says why")?),
        }
    }

    /// The series and the base that a cell is of.
    fn of_cell(&self, id: &str, bases: &[Watched]) -> Result<(Judge<'_>, usize)> {
        for (recipe, settings) in &self.series {
            let is_of = |it: &Watched| plan::is_of(id, &recipe.series.name, &it.base.rev);
            if let Some(place) = bases.iter().position(is_of) {
                return Ok((self.judge(recipe, settings)?, place));
            }
        }
        Err(plan::no_cell(id))
    }

    /// The record of the newest of these bases that has a result of this recipe.
    fn neighbour(&self, bases: &[Watched], series: &str, recipe: &str) -> Result<Option<Record>> {
        let state = self.state();
        for watched in bases.iter().rev() {
            let kept = state.get(series, &watched.base.rev)?;
            let usable = |record: &Record| record.tip.is_some() && record.recipe == recipe;
            if let Some(kept) = kept.filter(|kept| usable(&kept.record)) {
                return Ok(Some(kept.record));
            }
        }
        Ok(None)
    }

    /// Folds what cells found into the records. A series on a base of which a cell is missing, or saw something else than there is now,
    /// is left for the next plan.
    pub fn merge(&self, found: &[Found], ui: Ui) -> Result<Exit> {
        let mut elsewhere = Elsewhere::default();
        let mut missing = Vec::new();
        for (recipe, settings) in &self.series {
            let series = &recipe.series.name;
            let records = found.iter().map(|it| &it.record);
            let bases: BTreeSet<_> = records
                .filter(|record| record.series == *series)
                .map(|record| &record.base.name)
                .collect();
            for base in bases {
                let own = found.iter().map(|it| &it.record);
                let mut own = own.filter(|it| it.series == *series && it.base.name == *base);
                let is_unproven =
                    own.any(|it| it.standing.as_ref().is_some_and(|it| !it.is_proven()));
                let needs = if is_unproven { &PROOF[..] } else { &[] };
                let gates = all_gates(&self.config.gates, needs);
                let ids = plan::cells(&gates, settings, series, base);
                let ids: Vec<_> = ids.iter().map(Cell::id).collect();
                let cells = ids.iter().map(|id| found.iter().find(|it| it.id == *id));
                match cells.clone().collect::<Option<Vec<_>>>() {
                    Some(cells) => missing.extend(elsewhere.add(series, base, &cells).err()),
                    None => missing.extend(
                        ids.iter()
                            .zip(cells)
                            .filter(|(_, cell)| cell.is_none())
                            .map(|(id, _)| id.clone()),
                    ),
                }
            }
        }
        let exit = self.run_with(&[], Some(&elsewhere), ui)?;
        for ((series, base), known) in &elsewhere.0 {
            let kept = self.state().get(series, base)?;
            if kept.is_none_or(|kept| kept.record.key != known.key) {
                missing.push(format!(
                    "{series}/{base}: its cells saw another base, recipe, configuration or result than there is now"
                ));
            }
        }
        if missing.is_empty() {
            return Ok(exit);
        }
        Err(
            Refusal::tool(format!("{} cells have left nothing of use", missing.len()))
                .details(missing)
                .hint("their logs tell why; the next plan has them again")
                .into(),
        )
    }
}

/// Reads the files that cells have left in a directory.
pub fn found_in(dir: &Path) -> Result<Vec<Found>> {
    let unreadable = || {
        Refusal::usage(format!("cannot read `{}`", dir.display()))
            .hint("name the directory that the cells' files were gathered in")
    };
    let mut paths = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).with_context(unreadable)? {
            let entry = entry.with_context(unreadable)?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                _ if entry.path().extension().is_some_and(|end| end == "json") => {
                    paths.push(entry.path());
                }
                _ => {}
            }
        }
    }
    paths.sort();
    let read = |path: &PathBuf| {
        let bytes = std::fs::read(path).with_context(unreadable)?;
        serde_json::from_slice(&bytes).with_context(|| {
            Refusal::usage(format!(
                "`{}` is nothing that a cell has left",
                path.display()
            ))
            .hint("gather the files of `reroll bot cell` alone")
        })
    };
    paths.iter().map(read).collect()
}
