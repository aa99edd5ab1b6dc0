//! Keeps series alive: looks for new bases, regenerates each series on each, and records what came of it.
//!
//! Hides the order of things, so that a run which is killed, or two at once, end where one undisturbed run does: what is done is known by a
//! key, each result is written whole by one compare and swap of a ref, and it depends on nothing but what was recorded before it.

mod cells;
mod checks;
mod compare;
pub mod config;
mod judge;
pub mod plan;
mod publish;
pub mod record;
mod stands;
pub mod state;
mod tell;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::error::{Exit, Refusal, exit_of};
use crate::exec::check_interrupted;
use crate::gate::settings::Settings;
use crate::recipe::{self, Recipe};
use crate::repo::Repo;
use crate::ui::{Ui, shown_text};
use cells::Elsewhere;
pub use cells::found_in;
use config::{Config, Retry};
use judge::{Earlier, Judge};
pub use plan::Checks;
use publish::Published;
use record::Record;
use state::{Branch, Kept, State, branch_ref, wanted_tip};
use tell::tell;
use watch::Watched;

/// How often cells are looked at again because another bot was at work.
const MOST_ROUNDS: usize = 5;

/// A bot with its repository and recipes.
pub struct Bot {
    config: Config,
    repo: Repo,
    series: Vec<(Recipe, Settings)>,
}

/// What a run found to tell.
#[derive(Debug, Default)]
struct Run {
    /// Errors of the surroundings.
    troubles: Vec<anyhow::Error>,
    /// Branches that somebody else has moved.
    edited: BTreeSet<String>,
    /// Branches that a work tree stands on, with where it is.
    used: BTreeMap<String, PathBuf>,
    /// What a push did not move, as git tells of each.
    stale: Vec<String>,
}

impl Bot {
    /// Opens the repository, which is made where there is none, and reads the recipes.
    pub fn open(config: Config) -> Result<Self> {
        let path = config.repository_path();
        let repo = if path.exists() {
            Repo::open(&path)?
        } else {
            new_repository(&path)?
        };
        let mut series = Vec::new();
        for name in &config.series {
            let recipe = recipe::load(name, &config.dir)?;
            let settings = Settings::of(&recipe)?;
            if series
                .iter()
                .any(|(known, _): &(Recipe, _)| known.series.name == recipe.series.name)
            {
                return Err(Refusal::usage(format!(
                    "two series are called `{}`",
                    recipe.series.name
                ))
                .hint("give each a `name` of its own in its `series.toml`")
                .into());
            }
            series.push((recipe, settings));
        }
        Ok(Self {
            config,
            repo,
            series,
        })
    }

    /// The state in the repository.
    #[must_use]
    pub fn state(&self) -> State<'_> {
        State::new(&self.repo, &self.config.namespace)
    }

    /// Does what is to be done, and tells what changed. `recreate` names results (`SERIES/BASE`) whose branches may be overwritten.
    pub fn run(&self, recreate: &[String], ui: Ui) -> Result<Exit> {
        self.run_with(recreate, None, ui)
    }

    fn run_with(&self, recreate: &[String], elsewhere: Option<&Elsewhere>, ui: Ui) -> Result<Exit> {
        let mut run = Run::default();
        for _ in 0..MOST_ROUNDS {
            run = Run::default();
            self.round(&mut run, recreate, elsewhere, ui)?;
            if run.stale.is_empty() {
                break;
            }
        }
        if !run.stale.is_empty() {
            run.troubles
                .push(not_pushed(std::mem::take(&mut run.stale)));
        }
        for name in &run.edited {
            ui.warning(&format!(
                "the branch of {} was moved by somebody else, and is left alone",
                shown_text(name.as_bytes())
            ));
        }
        for (name, place) in &run.used {
            ui.warning(&format!(
                "the branch of {} is left alone: the work tree `{}` stands on it",
                shown_text(name.as_bytes()),
                shown_text(place.as_os_str().as_encoded_bytes())
            ));
        }
        if !run.edited.is_empty() {
            ui.hint("`--recreate SERIES/BASE` overwrites it; what is there now is kept below `refs/reroll/replaced`");
        }
        let mut exit = Exit::Done;
        for error in &run.troubles {
            ui.error(error);
            exit = if exit_of(error) == Exit::Bug {
                Exit::Bug
            } else {
                Exit::Tool
            };
        }
        self.are_results(recreate)?;
        Ok(exit)
    }

    /// One time through all cells. Where another bot has pushed meanwhile it is to be done again: `stale` of the run.
    fn round(
        &self,
        run: &mut Run,
        recreate: &[String],
        elsewhere: Option<&Elsewhere>,
        ui: Ui,
    ) -> Result<()> {
        let state = self.state();
        let remote = self
            .config
            .push
            .as_ref()
            .map(|push| self.config.remote(push));
        let published = match &remote {
            Some(remote) => {
                run.attempt(self.config.retry, ui, || Published::take(&state, remote))?
            }
            None => None,
        };
        let bases = self.bases(run, ui)?;
        let board = ui.board();
        let total = bases.len() as u64;
        for (recipe, settings) in &self.series {
            let judge = self.judge(recipe, settings)?;
            let mut neighbour: Option<Record> = None;
            for (done, watched) in bases.iter().enumerate() {
                check_interrupted()?;
                board.step(&recipe.series.name, &watched.base.rev, done as u64, total);
                let checks = match elsewhere {
                    Some(known) => known.checks(&recipe.series.name, &watched.base.rev),
                    None => Some(Checks::All),
                };
                let kept = run.attempt(self.config.retry, ui, || {
                    self.cell(&judge, watched, neighbour.as_ref(), checks.as_ref(), ui)
                })?;
                let Some(kept) = kept.flatten() else {
                    continue;
                };
                self.mend_branch(run, &kept, recreate)?;
                if kept.record.tip.is_some() && kept.record.recipe == recipe.digest {
                    neighbour = Some(kept.record);
                }
            }
        }
        let Some(published) = published else {
            return Ok(());
        };
        let pushed = run.attempt(self.config.retry, ui, || published.push(&state, recreate))?;
        let pushed = pushed.unwrap_or_default();
        run.edited.extend(pushed.edited);
        run.stale = pushed.stale;
        Ok(())
    }

    /// Refuses names of results that are none.
    fn are_results(&self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let known = self.state().all()?.into_iter();
        let known: BTreeSet<_> = known.map(|kept| kept.record.result_name()).collect();
        match names.iter().find(|name| !known.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(Refusal::usage(format!(
                "there is no result `{}`",
                shown_text(name.as_bytes())
            ))
            .hint("write SERIES/BASE, as `reroll bot status` has them; everything else was done")
            .into()),
        }
    }

    /// Forgets the results on a base, and the base: records and what a watch fetched are deleted, here and on the push remote. Branches stay.
    /// What is still watched comes back with the next run.
    pub fn forget(&self, base: &str, ui: Ui) -> Result<()> {
        let state = self.state();
        let records = state
            .all()?
            .into_iter()
            .filter(|kept| kept.record.base.name == base);
        let mut refs: Vec<_> = records
            .map(|kept| (state.record_ref(&kept.record.series, base), kept.id))
            .collect();
        for watch in &self.config.watch {
            let found = self.repo.references(&state.bases(&watch.name))?;
            refs.extend(
                found.into_iter().filter(|(name, _)| {
                    name.rsplit('/').next() == Some(state::encode(base).as_str())
                }),
            );
        }
        if refs.is_empty() {
            return Err(Refusal::usage(format!(
                "nothing is known of a base `{}`",
                shown_text(base.as_bytes())
            ))
            .hint("`reroll bot status` lists the bases")
            .into());
        }
        if let Some(push) = &self.config.push {
            Published::take(&state, &self.config.remote(push))?.delete(&state, &refs)?;
        }
        for (name, id) in &refs {
            let shown = shown_text(name.as_bytes());
            if !state.delete(name, *id)? {
                return Err(Refusal::tool(format!("`{shown}` was moved meanwhile"))
                    .hint("another bot may be at work; run it again")
                    .into());
            }
            ui.status(&format!("deleted {shown}"));
        }
        Ok(())
    }

    fn judge<'a>(&'a self, recipe: &'a Recipe, settings: &'a Settings) -> Result<Judge<'a>> {
        Judge::new(&self.repo, &self.config, recipe, settings)
    }

    /// All bases that are watched, oldest version first.
    fn bases(&self, run: &mut Run, ui: Ui) -> Result<Vec<Watched>> {
        let state = self.state();
        let mut bases: Vec<Watched> = Vec::new();
        for watch in &self.config.watch {
            let found = run.attempt(self.config.retry, ui, || {
                watch::bases(&self.config, &state, watch, ui)
            })?;
            for watched in found.unwrap_or_default() {
                let name = &watched.base.rev;
                let same = bases.iter().find(|known| known.base.rev == *name);
                match same {
                    None => bases.push(watched),
                    Some(known) if known.base.commit_id == watched.base.commit_id => {}
                    Some(_) => ui.warning(&format!(
                        "two watches have a base `{}`; that of `{}` is left out",
                        shown_text(name.as_bytes()),
                        watch.name
                    )),
                }
            }
        }
        watch::sort(&mut bases);
        Ok(bases)
    }

    /// The record of one cell: that which is there, or a new one where there is something new. Without `checks`, or with those of something
    /// else, nothing new is made.
    fn cell(
        &self,
        judge: &Judge<'_>,
        watched: &Watched,
        neighbour: Option<&Record>,
        checks: Option<&Checks>,
        ui: Ui,
    ) -> Result<Option<Kept>> {
        let state = self.state();
        let key = judge.key(&watched.base)?;
        let (series, base) = (&judge.recipe.series.name, &watched.base.rev);
        for _ in 0..MOST_ROUNDS {
            let own = state.get(series, base)?;
            let is_done = own.as_ref().is_some_and(|own| own.record.key == key);
            // What this machine could not prove is tried again: it may have the tools by now.
            let again = own
                .as_ref()
                .filter(|own| is_done && own.record.can_be_proven());
            let is_done = is_done && again.is_none();
            let Some(checks) = checks.filter(|_| !is_done) else {
                return Ok(own);
            };
            let earlier = Earlier {
                own: own.as_ref(),
                neighbour,
            };
            let record = judge.judge(watched, &earlier, checks)?;
            let is_same = |own: &Kept| record.says_what(&own.record);
            if !checks.are_of(&record) || again.is_some_and(is_same) {
                return Ok(own);
            }
            let id = state.write(&record)?;
            let name = state.record_ref(series, base);
            if state.swap(&name, own.as_ref().map(|own| own.id), id)? {
                let before = own.as_ref().map(|own| &own.record).or(neighbour);
                tell(&record, before, ui)?;
                return Ok(Some(Kept { id, record }));
            }
        }
        Err(Refusal::tool(format!(
            "the record of {series} on {} does not stay where it is",
            shown_text(base.as_bytes())
        ))
        .hint("bots with different recipes or configurations need a `namespace` each")
        .into())
    }

    /// Brings the branch of a result to where its record says, unless somebody else has moved it.
    fn mend_branch(&self, run: &mut Run, kept: &Kept, recreate: &[String]) -> Result<()> {
        let state = self.state();
        let record = &kept.record;
        let name = record.result_name();
        let branch = branch_ref(record);
        for _ in 0..MOST_ROUNDS {
            let (old, tip) = match (state.branch(kept)?, wanted_tip(record)?) {
                (Branch::Behind(old), Some(tip)) => (old, tip),
                (Branch::Edited(_), Some(_)) if let Some(place) = self.repo.used_by(&branch)? => {
                    run.used.insert(name, place);
                    return Ok(());
                }
                (Branch::Edited(old), Some(tip)) if recreate.contains(&name) => {
                    state.keep_replaced(record, old)?;
                    (Some(old), tip)
                }
                (Branch::Edited(_), _) => {
                    run.edited.insert(name);
                    return Ok(());
                }
                _ => return Ok(()),
            };
            if state.swap(&branch, old, tip)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// All records, and how their branches are.
    pub fn status(&self) -> Result<Vec<(Kept, Branch)>> {
        let state = self.state();
        let records = state.all()?.into_iter();
        records
            .map(|kept| {
                let branch = state.branch(&kept)?;
                Ok((kept, branch))
            })
            .collect()
    }

    /// The performance that is recorded beside the series: what errors call each file, and its text.
    pub fn recorded(&self) -> impl Iterator<Item = &(String, String)> {
        self.series
            .iter()
            .filter_map(|(recipe, _)| recipe.performance.as_ref())
    }
}

impl Run {
    /// Tries something a bounded number of times, where it is the surroundings that fail. What still fails then is noted, and is `None`.
    fn attempt<T>(
        &mut self,
        retry: Retry,
        ui: Ui,
        mut work: impl FnMut() -> Result<T>,
    ) -> Result<Option<T>> {
        let mut pause = Duration::from_secs_f64(retry.seconds);
        for left in (0..retry.tries).rev() {
            let error = match work() {
                Ok(value) => return Ok(Some(value)),
                Err(error) => error,
            };
            check_interrupted()?;
            // A tool, the network, the disk: it says nothing about a base or a recipe.
            if exit_of(&error) != Exit::Tool {
                return Err(error);
            }
            if left == 0 {
                self.troubles.push(error);
                break;
            }
            ui.status(&format!(
                "{error:#}; trying again in {:.0} s",
                pause.as_secs_f64()
            ));
            wait(pause)?;
            pause *= 2;
        }
        Ok(None)
    }
}

/// What is said of refs that a remote does not take, however often it is asked where they are.
fn not_pushed(lines: Vec<String>) -> anyhow::Error {
    Refusal::tool("the push remote does not take what nobody else moves there")
        .details(lines)
        .hint("look at the refs there: a lock that was left behind, a rule of the server's, or a name that is in the way of another")
        .into()
}

/// Sleeps, unless the user stops it.
pub fn wait(pause: Duration) -> Result<()> {
    const SLICE: Duration = Duration::from_millis(50);
    let since = Instant::now();
    while since.elapsed() < pause {
        check_interrupted()?;
        std::thread::sleep(SLICE.min(pause));
    }
    Ok(())
}

/// A new bare repository, which appears whole or not at all.
fn new_repository(path: &Path) -> Result<Repo> {
    let not_made = || {
        Refusal::tool(format!("cannot make the repository `{}`", path.display()))
            .hint("check the permissions and the free space of its directory, which must exist")
    };
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let aside = tempfile::Builder::new()
        .prefix(".reroll-new-")
        .tempdir_in(parent.unwrap_or(Path::new(".")));
    let aside = aside.with_context(not_made)?;
    let new = aside.path().join("new");
    drop(Repo::init_bare(&new)?);
    match std::fs::rename(&new, path) {
        Err(error) if !path.exists() => Err(error).with_context(not_made),
        // Where it is there by now another bot has made it.
        _ => Repo::open(path),
    }
}

/// What results are sorted by: the base's version, its time, its name.
#[must_use]
pub fn sort_key(record: &Record) -> impl Ord + use<> {
    let base = &record.base;
    (watch::version(&base.release), base.time, base.name.clone())
}

/// What releases are sorted by: their numbers, then the release candidate.
#[must_use]
pub fn release_key(release: &str) -> impl Ord + use<> {
    watch::version(release)
}
