//! `reroll regen`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use super::letters::{LetterArgs, typed_again};
use super::select::{BaseArgs, SeriesArgs, command_line, print_json};
use crate::edit::Landing;
use crate::error::{Exit, Refusal};
use crate::facts::Found;
use crate::mail::{self, Mail};
use crate::outgoing::{self, Output, Sort, Written};
use crate::recipe::Recipe;
use crate::repo::{ObjectId, Repo};
use crate::rests::Standing;
use crate::series::{
    Regenerated, Series, Taken, Whereabouts, regenerate_left, unproven as unproven_base,
};
use crate::ui::{Ui, shown_text};

/// Regenerate the series on a base, and write its cover letter and patches as mails.
///
/// The files are what `git format-patch` writes for the same commits; `git am`, `git send-email` and b4 take them as they are. The same base,
/// recipe and options give the same bytes on every machine. Where the base's history proves that it has the first patches, the rest is
/// numbered anew, and the cover letter says so.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct Args {
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    series: SeriesArgs,
    /// The directory to write to [default: outgoing/SERIES/vN]
    #[arg(short, long, value_name = "DIR")]
    output_directory: Option<PathBuf>,
    #[command(flatten)]
    letters: LetterArgs,
    /// Leave the commits on this ref, which must not exist, or be where an earlier run left it
    #[arg(long = "ref", value_name = "REF")]
    reference: Option<String>,
    /// Write one mbox to a file (`-`: standard output) instead of a directory
    #[arg(long, value_name = "FILE", conflicts_with = "output_directory")]
    mbox: Option<PathBuf>,
    /// Do everything but write
    #[arg(short = 'n', long, conflicts_with = "reference")]
    dry_run: bool,
    /// Overwrite files that were edited since they were written, and move a ref that is elsewhere
    #[arg(long)]
    force: bool,
    /// Write it although something that it rests on was never proven as it is on this base; the cover letter says so
    #[arg(long)]
    unproven: bool,
    /// Print one JSON object: base, facts, edits with their places, commits, files
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    series: &'a str,
    series_version: u32,
    base: BaseReport<'a>,
    functions: &'a [Whereabouts],
    facts: &'a [Found],
    edits: &'a [Landing],
    upstream: &'a [Taken],
    /// What was never proven as it is on the base, in a sentence; none where all is proven or the recipe does not say what it rests on.
    unproven: Option<String>,
    commits: Vec<CommitReport<'a>>,
    directory: Option<String>,
    files: Vec<&'a str>,
}

#[derive(Serialize)]
struct BaseReport<'a> {
    rev: &'a str,
    commit: String,
    tree: String,
    release: &'a str,
    official: bool,
}

#[derive(Serialize)]
struct CommitReport<'a> {
    patch: &'a str,
    commit: String,
    tree: String,
    subject: String,
    files: Vec<String>,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let recipe = args.series.recipe(ui)?;
    let author = args.letters.author(&recipe, typed_again)?;
    let (mut repo, base) = args.base.open(ui)?;
    // Whatever is refused from here on has left nothing in the repository.
    repo.keep_in_memory()?;
    let options = args.letters.options(&author, &recipe, &base)?;
    let (regenerated, taken) = regenerate_left(&repo, &base, &recipe, &options)?;
    let Some(series) = series(regenerated, &taken, args.json, ui)? else {
        return Ok(Exit::Done);
    };
    if let Some(warning) = &series.unfit_performance {
        ui.warning(warning);
    }
    args.stands(&series, ui)?;
    let official = repo.is_official(&series.base)?;
    if !official && !series.base.imported {
        ui.note(&no_base_commit(&series));
    }
    let mails = args
        .letters
        .letters(&repo, &recipe, &series, &options)?
        .compose()?;
    let name = args.reference.as_deref();
    let to_move = name.map(|name| Move::plan(&repo, name, &series, args.force));
    let to_move = to_move.transpose()?;
    let unproven = series.unproven().map(Standing::sentence);
    let written = args.write(&recipe, &mails, options.version, unproven, ui)?;
    if let Some(to_move) = to_move {
        to_move.make(&repo, &series, ui)?;
    }
    if args.json {
        let report = report(
            &recipe,
            &series,
            official,
            &taken,
            options.version,
            &mails,
            written,
        );
        print_json(&report, ui)?;
    }
    Ok(Exit::Done)
}

/// The series to write, once it is said what is left out of it and why; `None` where nothing is left to do.
pub(super) fn series(
    regenerated: Regenerated,
    taken: &[Taken],
    json: bool,
    ui: Ui,
) -> Result<Option<Box<Series>>> {
    for taken in taken {
        ui.note(&taken.note());
    }
    match regenerated {
        Regenerated::Series(series) => {
            tell_places(&series.places, ui);
            Ok(Some(series))
        }
        Regenerated::Applied(what) => {
            applied(&what, taken, json, ui)?;
            Ok(None)
        }
    }
}

/// Says which functions are where the recipe does not list them.
pub(super) fn tell_places(places: &[Whereabouts], ui: Ui) {
    for note in places.iter().filter_map(Whereabouts::note) {
        ui.note(&note);
    }
}

/// Says that there is nothing to do.
pub(super) fn applied(what: &[String], taken: &[Taken], json: bool, ui: Ui) -> Result<Exit> {
    if json {
        let report = serde_json::json!({ "version": 1, "applied": what, "upstream": taken });
        print_json(&report, ui)?;
    } else {
        // Patches that neither make files nor define functions have nothing to be called by.
        let what = match what {
            [] => "all of the series".to_owned(),
            what => what.join(", "),
        };
        ui.status(&format!("already applied: the base has {what}"));
    }
    Ok(Exit::Done)
}

impl Args {
    /// Refuses a base that is unproven, unless that is what the user wants.
    fn stands(&self, series: &Series, ui: Ui) -> Result<()> {
        let Some(standing) = series.unproven() else {
            return Ok(());
        };
        if self.unproven {
            ui.warning(&format!("unproven: {}", standing.sentence()));
            return Ok(());
        }
        let words = ["check".to_owned(), "--record".to_owned()];
        let words = [
            &words[..],
            &self.base.words(),
            &self.series.words(),
            &self.letters.words(),
        ];
        Err(unproven_base(standing, &command_line(&words.concat())).into())
    }

    fn directory(&self, recipe: &Recipe, version: u32) -> PathBuf {
        let usual = || PathBuf::from(format!("outgoing/{}/v{version}", recipe.series.name));
        self.output_directory.clone().unwrap_or_else(usual)
    }

    /// Says what would be written.
    fn tell(&self, recipe: &Recipe, mails: &[Mail], version: u32, ui: Ui) -> Result<()> {
        let place = match &self.mbox {
            Some(file) if file.as_os_str() == "-" => "to standard output".to_owned(),
            Some(file) => format!("to {}", file.display()),
            None => format!("in {}", self.directory(recipe, version).display()),
        };
        ui.status(&format!("would write {} mails {place}", mails.len()));
        if let Some(name) = &self.reference {
            ui.status(&format!("would move {}", shown_text(name.as_bytes())));
        }
        if self.json {
            return Ok(());
        }
        let names = mails.iter().map(|mail| format!("{}\n", mail.file_name));
        ui.text(&names.collect::<String>())
    }

    /// Writes the mails; says where to, if they went to a directory.
    fn write(
        &self,
        recipe: &Recipe,
        mails: &[Mail],
        version: u32,
        unproven: Option<String>,
        ui: Ui,
    ) -> Result<Option<PathBuf>> {
        if self.dry_run {
            self.tell(recipe, mails, version, ui)?;
            return Ok(None);
        }
        if let Some(file) = &self.mbox {
            let mbox = mail::mbox(mails);
            if file.as_os_str() == "-" {
                ui.data(&mbox)?;
            } else {
                let output = Output {
                    path: file,
                    sort: Sort::Mails,
                    force: self.force,
                };
                output.write(&mbox)?;
            }
            return Ok(None);
        }
        let directory = self.directory(recipe, version);
        let files: Vec<_> = mails
            .iter()
            .map(|mail| (mail.file_name.clone(), mail.bytes.clone()))
            .collect();
        let written = outgoing::write(&directory, &files, unproven, self.force)?;
        let verb = match written {
            Written::New | Written::Replaced => "wrote",
            Written::Unchanged => "unchanged:",
        };
        ui.status(&format!(
            "{verb} {} mails in {}",
            mails.len(),
            directory.display()
        ));
        if written == Written::Replaced && !self.letters.has_version() {
            ui.note(&format!(
                "other mails of v{version} were there and are gone; if they were sent, or somebody else has them, `-v {}` is the next version",
                version + 1
            ));
        }
        Ok(Some(directory))
    }
}

/// Says why the letter has no `base-commit:`.
fn no_base_commit(series: &Series) -> String {
    let id = series.base.commit_id.to_string();
    format!(
        "the mails have no `base-commit:`: {} is on no tag and no remote branch, so others cannot have it; push it, or take a base that they have",
        &id[..12]
    )
}

/// Where the commits are to be left, and what the ref was when the run began.
struct Move<'a> {
    name: &'a str,
    old: Option<ObjectId>,
    new: ObjectId,
}

impl<'a> Move<'a> {
    /// Refuses, before anything is written, a ref that is elsewhere, and a branch that a work tree is on.
    fn plan(repo: &Repo, name: &'a str, series: &Series, force: bool) -> Result<Self> {
        let last = series.patches.last().context("a series has patches")?;
        let (old, new) = (repo.reference(name)?, last.commit.id);
        let plan = Self { name, old, new };
        if old == Some(new) {
            return Ok(plan);
        }
        if let Some(old) = old.filter(|_| !force) {
            return Err(Refusal::usage(format!(
                "`{}` is at {old}, and would move to {new}",
                shown_text(name.as_bytes())
            ))
            .hint("`--force` moves it; the old commits stay in its reflog")
            .into());
        }
        match repo.used_by(name)? {
            Some(root) => Err(in_use(name, &root).into()),
            None => Ok(plan),
        }
    }

    /// Writes the commits and points the ref at the last: by compare and swap, once, and after everything else.
    fn make(&self, repo: &Repo, series: &Series, ui: Ui) -> Result<()> {
        let Self { name, old, new } = *self;
        if old == Some(new) {
            ui.status(&format!("unchanged: {name} is at {new}"));
            return Ok(());
        }
        let commit_ids: Vec<_> = series.patches.iter().map(|patch| patch.commit.id).collect();
        let disk = Repo::open(repo.path())?;
        disk.keep(repo, &commit_ids)?;
        disk.update_reference(name, old, new, "reroll: regenerate")?;
        ui.status(&format!("{name} is at {new}"));
        Ok(())
    }
}

/// The refusal to move a branch under the work tree that stands on it.
fn in_use(name: &str, root: &Path) -> Refusal {
    Refusal::usage(format!(
        "cannot move `{}`: the work tree `{}` is on it",
        shown_text(name.as_bytes()),
        root.display()
    ))
    .hint("`git switch --detach` there first, end what it is in the middle of, or name another ref")
}

fn report<'a>(
    recipe: &'a Recipe,
    series: &'a Series,
    official: bool,
    taken: &'a [Taken],
    version: u32,
    mails: &'a [Mail],
    directory: Option<PathBuf>,
) -> Report<'a> {
    let commits = series.patches.iter().map(|patch| CommitReport {
        patch: &patch.name,
        commit: patch.commit.id.to_string(),
        tree: patch.commit.tree_id.to_string(),
        subject: patch.commit.subject().to_string(),
        files: patch.files.iter().map(ToString::to_string).collect(),
    });
    Report {
        version: 1,
        series: &recipe.series.name,
        series_version: version,
        base: BaseReport {
            rev: &series.base.rev,
            commit: series.base.commit_id.to_string(),
            tree: series.base.tree_id.to_string(),
            release: &series.release,
            official,
        },
        functions: &series.places,
        facts: &series.facts,
        edits: &series.landings,
        upstream: taken,
        unproven: series.unproven().map(Standing::sentence),
        commits: commits.collect(),
        directory: directory.map(|directory| directory.display().to_string()),
        files: mails.iter().map(|mail| mail.file_name.as_str()).collect(),
    }
}
