//! `reroll bench`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::check::lab_directory;
use super::regen::{applied, tell_places};
use super::select::{BaseArgs, SeriesArgs};
use crate::bench::letter;
use crate::bench::record::{self, Performance, Run};
use crate::bench::{
    Machine, Measured, Memory, PLACEMENTS, Plan, Setting, Step, load, measure, plot, table, work,
};
use crate::error::{Exit, Refusal};
use crate::gate::settings::{Configuration, Settings};
use crate::gate::{Native, Subject, Unfit, build_native, harness_directory};
use crate::lab::Lab;
use crate::outgoing::{Output, Sort};
use crate::recipe::Recipe;
use crate::repo::{Repo, Signature};
use crate::series::{Options, Regenerated, Series, regenerate};
use crate::ui::{Ui, shown_text};

/// Measure a series: the base's own object and the one after each patch, called natively and in turn in one program.
///
/// The series is regenerated in memory and its objects are built with kbuild; ones that do not write the same as the base are refused
/// (exit code 1). Every round runs everything once, in an order that changes, beside the limit: a non-temporal fill of the same memory. How
/// fast code is depends on where it lies, so all of it is measured at 8 placements, which take turns; what is slower than the base at all of
/// them is marked. ^C ends it and keeps what is measured (exit code 130). No root, no virtual machine, no module.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    series: SeriesArgs,
    /// Sizes of the device, in pages
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "26214400"
    )]
    pages: Vec<u64>,
    /// How often everything runs at each of 8 placements of the code
    #[arg(long, value_name = "N", default_value = "3")]
    rounds: u32,
    /// Orders of compound pages; 0 is single pages
    #[arg(
        long = "order",
        value_name = "N",
        value_delimiter = ',',
        default_value = "0,9,18"
    )]
    orders: Vec<u32>,
    /// Numbers of threads that share the pages
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    threads: Vec<u32>,
    /// What the memory was before
    #[arg(
        long,
        value_name = "STATE",
        value_delimiter = ',',
        default_value = "touched,first-touch"
    )]
    memory: Vec<Memory>,
    /// The configuration of `[check]` to build [default: the first that can run on this machine]
    #[arg(long, value_name = "NAME")]
    configuration: Option<String>,
    /// Print JSON lines: one for the run, one for each figure
    #[arg(long)]
    json: bool,
    /// Draw the medians and their spread, after each patch, to FILE
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Store the result beside the series, for its letters: `performance.json`
    #[arg(long)]
    record: bool,
    /// Overwrite a file though somebody else wrote it
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let recipe = args.series.recipe(ui)?;
    let draft = Settings::of(&recipe)?;
    let configuration = configuration(&draft, args.configuration.as_deref())?;
    let plan = args.plan().settings()?;
    if args.record {
        record::output(&record::place(&recipe)?, args.force).check()?;
    }
    args.picture().map_or(Ok(()), |it| it.check())?;
    let (mut repo, base) = args.base.open(ui)?;
    repo.keep_in_memory()?;
    let series = match regenerate(&repo, &base, &recipe, &anybody(&recipe, base.time))? {
        Regenerated::Series(series) => series,
        Regenerated::Applied(what) => return applied(&what, &[], args.json, ui),
    };
    let lab = Lab::open(&lab_directory()?)?;
    tell_places(&series.places, ui);
    let settings = Settings::on(&recipe, &series.places)?;
    let subject = subject(&repo, &series, &recipe, settings.clone(), &lab)?;
    let native = build(&subject, &lab, configuration, ui)?;
    let measured = watch(&native, &plan, &subject, ui)?;

    let run = describe(
        &recipe,
        &series,
        &settings,
        configuration,
        &native,
        &measured,
    )?;
    let performance = Performance::new(run, measured.figures);
    args.print(&performance, ui)?;
    if measured.interrupted {
        ui.status("interrupted: the figures are of the rounds that were complete by then");
        if args.record {
            ui.status("nothing was recorded");
        }
        return Ok(Exit::Interrupted);
    }
    if args.record {
        let file = performance.store(&recipe, args.force)?;
        ui.status(&format!("recorded in {}", file.display()));
        if let Some(reason) = letter::unfit(&performance) {
            ui.warning(&format!("the letters will not show it: {reason}"));
        }
    }
    Ok(Exit::Done)
}

/// The configuration called `name`, or the first whose objects run on this machine.
fn configuration<'a>(settings: &'a Settings, name: Option<&str>) -> Result<&'a Configuration> {
    let arch = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        other => other,
    };
    let runs = |it: &&Configuration| it.equality && it.emulator.is_empty() && it.arch == arch;
    let fits: Vec<_> = settings.configuration.iter().filter(runs).collect();
    let found = match name {
        Some(name) => fits.iter().find(|it| it.name == name),
        None => fits.first(),
    };
    let names: Vec<_> = fits.iter().map(|it| format!("`{}`", it.name)).collect();
    found.copied().ok_or_else(|| {
        let message = match name {
            Some(name) => format!(
                "no configuration `{}` runs on this machine ({arch})",
                shown_text(name.as_bytes())
            ),
            None => format!("no configuration of the series runs on this machine ({arch})"),
        };
        let names = if names.is_empty() {
            "none does".to_owned()
        } else {
            names.join(", ")
        };
        Refusal::usage(message)
            .hint(format!(
                "it takes one with `equality = true` in `[check]`: {names}"
            ))
            .into()
    })
}

/// Nobody reads the messages: any author will do.
fn anybody(recipe: &Recipe, time: i64) -> Options {
    Options {
        author: Signature {
            name: "nobody".into(),
            email: "nobody".into(),
            time,
            offset: 0,
        },
        sign_off: false,
        version: recipe.series.version,
    }
}

fn subject(
    repo: &Repo,
    series: &Series,
    recipe: &Recipe,
    settings: Settings,
    lab: &Lab,
) -> Result<Subject> {
    let patches = series
        .patches
        .iter()
        .map(|patch| (patch.name.clone(), patch.commit.id))
        .collect();
    let mut subject = Subject::without_mails(repo, series.base.clone(), patches, settings)?;
    if let Some(equality) = &subject.settings.equality {
        subject.harness = Some(harness_directory(lab, Path::new(&recipe.origin), equality)?);
    }
    Ok(subject)
}

fn build(subject: &Subject, lab: &Lab, configuration: &Configuration, ui: Ui) -> Result<Native> {
    let patches = subject.patches.len();
    ui.status(&format!(
        "building the object of the base and after each of {patches} patches ({})",
        configuration.name
    ));
    let board = ui.board();
    let built = build_native(subject, lab, configuration, PLACEMENTS, &|event| {
        event.draw(&board);
    })?;
    drop(board);
    match built {
        Ok(native) => {
            let equal = native.comparisons;
            ui.status(&format!(
                "built; {equal} comparisons with the base, all equal"
            ));
            ui.status(&format!(
                "objects: p0 to p{patches} in {}",
                native.objects.display()
            ));
            Ok(native)
        }
        Err(unfit) => Err(refused(subject, unfit).into()),
    }
}

/// A patch that does not do is a failed check (exit 1), everything else is the machine's or the base's fault (exit 4).
fn refused(subject: &Subject, unfit: Unfit) -> Refusal {
    let mut details = unfit.lines;
    details.truncate(5);
    details.extend(unfit.log.map(|log| format!("log: {}", log.display())));
    let patch = unfit
        .patch
        .and_then(|number| Some((number, subject.patches.get(number - 1)?)));
    let Some((number, patch)) = patch else {
        return Refusal::tool(format!("nothing was measured: {}", unfit.reason))
            .details(details)
            .hint("`reroll doctor` shows what is missing");
    };
    let mut refusal = Refusal::tool(format!("patch {number}, `{}`, is not measured: {}", patch.name, unfit.reason))
        .details(details)
        .hint("figures of code that does something else are worth nothing; `reroll check --gate build,equality` shows more");
    refusal.exit = Exit::Failed;
    refusal
}

fn watch(native: &Native, plan: &[Setting], subject: &Subject, ui: Ui) -> Result<Measured> {
    let machine = Machine::this();
    let load = load();
    #[expect(clippy::cast_precision_loss, reason = "few processors")]
    let busy = load > machine.cpus as f64 / 2.0;
    if busy {
        ui.warning(&format!(
            "the machine is busy, load {load:.1} on {} CPUs: figures will spread",
            machine.cpus
        ));
    }
    let patches: Vec<_> = subject
        .patches
        .iter()
        .map(|patch| patch.name.clone())
        .collect();
    let mut bar = ui.progress("measuring", work(plan, patches.len()));
    let mut said = None;
    measure(native, plan, &patches, &mut |step: &Step<'_>| {
        if said != Some(step.number) {
            said = Some(step.number);
            let left = step
                .left
                .map(|left| format!(", about {} left", duration(left)))
                .unwrap_or_default();
            let title = table::setting_title(step.setting);
            ui.status(&format!(
                "{} of {}: {title}{left}",
                step.number + 1,
                step.settings
            ));
        }
        bar.set(step.done);
    })
}

fn duration(left: Duration) -> String {
    match left.as_secs() {
        0..=90 => format!("{} s", left.as_secs()),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

impl Args {
    fn plan(&self) -> Plan {
        Plan {
            pages: self.pages.clone(),
            orders: self.orders.clone(),
            threads: self.threads.clone(),
            memory: self.memory.clone(),
            rounds: self.rounds,
        }
    }

    /// The file of the picture, if one is wanted.
    fn picture(&self) -> Option<Output<'_>> {
        Some(Output {
            path: self.svg.as_deref()?,
            sort: Sort::Picture,
            force: self.force,
        })
    }

    fn print(&self, performance: &Performance, ui: Ui) -> Result<()> {
        if self.json {
            ui.data(performance.lines()?.as_bytes())?;
        } else {
            ui.text(&table::text(performance))?;
        }
        let Some(output) = self.picture() else {
            return Ok(());
        };
        match plot::svg(performance) {
            Some(svg) => {
                output.write(svg.as_bytes())?;
                ui.status(&format!("drew {}", output.path.display()));
            }
            None => ui.warning(
                "nothing to draw: the picture is of memory that was touched, and one thread",
            ),
        }
        Ok(())
    }
}

/// What it was measured on.
fn describe(
    recipe: &Recipe,
    series: &Series,
    settings: &Settings,
    configuration: &Configuration,
    native: &Native,
    measured: &Measured,
) -> Result<Run> {
    let equality = settings.equality.as_ref();
    Ok(Run {
        date: record::today()?,
        series: recipe.series.name.clone(),
        patches: series
            .patches
            .iter()
            .map(|patch| patch.name.clone())
            .collect(),
        code: recipe.code_digest(),
        release: series.release.clone(),
        tree: series.base.tree_id.to_string(),
        object: equality.map(|it| it.object.clone()).unwrap_or_default(),
        entry: equality.map(|it| it.entry.clone()).unwrap_or_default(),
        configuration: configuration.name.clone(),
        options: record::options_digest(settings, configuration),
        compiler: record::compiler(&native.compiler),
        kconfig: record::kconfig(settings, configuration),
        flags: record::flags(&native.command),
        machine: Machine::this(),
        load: measured.load,
        comparisons: native.comparisons,
    })
}
