//! The corpus of drift: kernels changed in many ways, and what the shipped series makes of each: right, refused, unproven or wrong.
//!
//! A program of its own (`cargo test --test corpus`, and `-- --help`), since its result is a table. What the tool believes of its own
//! result counts for nothing here: what it made is compiled after each patch, run, and compared with the changed base.

mod base;
mod judge;
mod kinds;
mod planted;
#[path = "../it/support.rs"]
#[allow(dead_code, reason = "the other tests use more of it")]
mod support;
mod table;
mod tree;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use clap::Parser;

use base::Answer;
use judge::{Bench, Case, Judge, Sentence};
use kinds::{Expects, Kind};
use support::Kernel;
use table::{Found, Table, Verdict};
use tree::{Files, Step};

/// The bases of the part that runs in CI.
const FIXED: [&str; 3] = ["6.1", "6.12", "7.3"];

/// One in so many of the harmless kinds is judged in CI.
const JUDGED: usize = 3;

/// How many needless refusals the fixed part may have.
const NEEDLESS: usize = 12;

/// Kernels changed in many ways, and what the series makes of them.
#[derive(Debug, Parser)]
#[command(name = "corpus")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
struct Args {
    /// Run every kind on every base, instead of the part that CI runs
    #[arg(long)]
    all: bool,
    /// Run the part that is meant for CI: three bases, every harmful kind, one in three of the harmless ones
    #[arg(long)]
    fixed: bool,
    /// Run only these kinds (a name, or the start of one)
    #[arg(long = "kind", value_name = "NAME")]
    kinds: Vec<String>,
    /// Run only on these bases
    #[arg(long = "base", value_name = "NAME")]
    bases: Vec<String>,
    /// List kinds, what is expected of each, and the bases that it makes sense on
    #[arg(long)]
    list: bool,
    /// Only ask the tool: nothing is compiled, and what is carried is not judged
    #[arg(long)]
    no_native: bool,
    /// Only see whether every changed base compiles, whatever the tool says
    #[arg(long)]
    check_kinds: bool,
    /// Print every answer
    #[arg(long, short)]
    verbose: bool,
    /// Print the changes that a kind makes, as the files that it leaves, into DIR
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
    /// Plant faults in the recipe, and see that the judge calls each of them wrong
    #[arg(long)]
    planted: bool,
    /// Write the table to FILE, too
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// How many runs at once
    #[arg(long, short, default_value_t = 2)]
    jobs: usize,
    /// What `cargo test` hands to every test: without a name that is part of `corpus`, nothing is run
    #[arg(hide = true)]
    filters: Vec<String>,
    #[arg(long, hide = true)]
    nocapture: bool,
    #[arg(long, short, hide = true)]
    quiet: bool,
    #[arg(long, hide = true)]
    test_threads: Option<usize>,
}

/// One kind on one base.
struct Job {
    kind: Kind,
    kernel: &'static Kernel,
    steps: Vec<Step>,
    /// Whether what is carried is compiled and run.
    judged: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if !args.filters.is_empty() && !args.filters.iter().any(|it| "corpus".contains(it.as_str())) {
        return ExitCode::SUCCESS;
    }
    tree::self_test();
    let asked = args.all || args.fixed || args.planted || args.list || args.check_kinds;
    if !asked
        && args.kinds.is_empty()
        && args.bases.is_empty()
        && args.dump.is_none()
        && !args.no_native
    {
        say(
            "left out: the corpus of drift has a command of its own (`cargo test --test corpus -- --fixed`, or `--all`)",
        );
        return ExitCode::SUCCESS;
    }
    reroll::exec::catch_signals().expect("signals");
    let chosen = !args.kinds.is_empty() || !args.bases.is_empty();
    let bases = base::bases(&names_of_bases(&args));
    let all = bases.len();
    let bases = proven(bases);
    let kinds = chosen_kinds(&args);
    if bases.is_empty() && all > 0 {
        // A point release of this morning says nothing about the tool.
        return ExitCode::SUCCESS;
    }
    if bases.is_empty() || kinds.is_empty() {
        say("there is no such base or no such kind");
        // Where no base can be had, `support` has said so, and has failed in CI.
        return if chosen {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        };
    }
    let judges = !args.no_native && !args.list && !args.check_kinds;
    let planted = judges && (args.planted || !chosen);
    if planted && let Err(missed) = planted::check() {
        say(&missed);
        return ExitCode::FAILURE;
    }
    if args.planted {
        return ExitCode::SUCCESS;
    }
    let (mut jobs, nowhere) = jobs(&kinds, &bases);
    if args.list {
        list(&kinds, &jobs);
        return ExitCode::SUCCESS;
    }
    if let Some(dir) = &args.dump {
        dump(dir, &jobs);
        return ExitCode::SUCCESS;
    }
    if !args.all && !chosen {
        jobs = fixed(jobs);
    }
    let benches = prepare(&args, &jobs).unwrap_or_else(|error| panic!("{error:#}"));
    let since = Instant::now();
    let table = run(&args, &benches, jobs);
    report(&table, since);
    // A run that was stopped has seen a part of it.
    let stopped = reroll::exec::check_interrupted().is_err();
    if let Some(file) = args.write.as_ref().filter(|_| !stopped) {
        std::fs::write(file, page(&table, &bases)).expect("the page");
    }
    let whole = (args.all || !chosen) && bases.len() == all;
    let nowhere = if whole { nowhere } else { Vec::new() };
    for kind in &nowhere {
        say(&format!("`{kind}` makes sense on none of the bases"));
    }
    verdict(&args, &table, nowhere.is_empty())
}

/// Those on which the series is proven as it ships: on another one every kind would be unproven.
fn proven(bases: Vec<&'static Kernel>) -> Vec<&'static Kernel> {
    let is_proven = |kernel: &&'static Kernel| {
        let answer = base::regen(kernel, &[], None);
        if let Answer::Unproven(why) = &answer {
            say(&format!("left out: {}: {why}", kernel.name));
        }
        !matches!(answer, Answer::Unproven(_))
    };
    bases.into_iter().filter(is_proven).collect()
}

fn names_of_bases(args: &Args) -> Vec<String> {
    if args.bases.is_empty() && args.kinds.is_empty() && !args.all && !args.list {
        return FIXED.map(str::to_owned).to_vec();
    }
    args.bases.clone()
}

fn chosen_kinds(args: &Args) -> Vec<Kind> {
    let mut kinds = kinds::all();
    let mut names = BTreeSet::new();
    for kind in &kinds {
        assert!(
            names.insert(kind.name),
            "two kinds are called `{}`",
            kind.name
        );
    }
    let is = |kind: &Kind, name: &String| kind.name.starts_with(name.as_str());
    kinds.retain(|kind| args.kinds.is_empty() || args.kinds.iter().any(|name| is(kind, name)));
    kinds
}

/// Every kind on every base that it makes sense on, and the kinds for which that is none.
fn jobs(kinds: &[Kind], bases: &[&'static Kernel]) -> (Vec<Job>, Vec<&'static str>) {
    let mut jobs = Vec::new();
    let mut nowhere: BTreeSet<_> = kinds.iter().map(|kind| kind.name).collect();
    for kernel in bases {
        let mut tree = base::tree(kernel);
        for kind in kinds {
            tree.reset();
            if (kind.make)(&mut tree).is_none() {
                continue;
            }
            let mut steps = tree.history.clone();
            if steps.last().is_none_or(|step| step.files != tree.files) {
                steps.push(Step {
                    message: "changed by the corpus\n".to_owned(),
                    files: tree.files.clone(),
                });
            }
            nowhere.remove(kind.name);
            jobs.push(Job {
                kind: kind.clone(),
                kernel,
                steps,
                judged: true,
            });
        }
    }
    (jobs, nowhere.into_iter().collect())
}

/// The part that CI runs: each kind once, on the bases by turns. What is carried is judged where it should have been refused, and for
/// one in so many of the others.
fn fixed(jobs: Vec<Job>) -> Vec<Job> {
    let mut kinds: Vec<Vec<Job>> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for job in jobs {
        let place = *places.entry(job.kind.name).or_insert_with(|| {
            kinds.push(Vec::new());
            kinds.len() - 1
        });
        kinds[place].push(job);
    }
    let pick = |(turn, mut jobs): (usize, Vec<Job>)| {
        let job = jobs.swap_remove(turn % jobs.len());
        let judged = turn.is_multiple_of(JUDGED) || job.kind.expects == Expects::Refused;
        Job { judged, ..job }
    };
    kinds.into_iter().enumerate().map(pick).collect()
}

fn list(kinds: &[Kind], jobs: &[Job]) {
    for kind in kinds {
        let bases: Vec<_> = jobs
            .iter()
            .filter(|job| job.kind.name == kind.name)
            .map(|job| job.kernel.name.as_str())
            .collect();
        let expects = match kind.expects {
            Expects::Carried => "carried",
            Expects::Refused => "refused",
            Expects::Either => "either",
        };
        say(&format!(
            "{:<52} {:<9} {:<38} {}",
            kind.name,
            expects,
            kind.group.name(),
            bases.join(" ")
        ));
    }
    say(&format!("{} kinds, {} runs", kinds.len(), jobs.len()));
}

fn dump(dir: &std::path::Path, jobs: &[Job]) {
    for job in jobs {
        let Some(step) = job.steps.last() else {
            continue;
        };
        for (path, bytes) in &step.files {
            let path = dir.join(&job.kernel.name).join(job.kind.name).join(path);
            let parent = path.parent().expect("a parent");
            std::fs::create_dir_all(parent).expect("a directory");
            std::fs::write(path, bytes).expect("a file");
        }
    }
}

/// What every job needs of its base, made once; nothing where nothing is judged.
type Benches = BTreeMap<String, Bench>;

fn prepare(args: &Args, jobs: &[Job]) -> anyhow::Result<Benches> {
    let mut benches = Benches::new();
    if args.no_native {
        return Ok(benches);
    }
    for job in jobs {
        if benches.contains_key(&job.kernel.name) {
            continue;
        }
        let mine = jobs.iter().filter(|it| it.kernel.name == job.kernel.name);
        let drifted = mine.flat_map(|it| it.steps.iter().flat_map(|step| step.files.keys()));
        let paths = drifted
            .cloned()
            .chain(base::EMITTED.map(str::to_owned))
            .collect();
        let since = Instant::now();
        let bench = Bench::prepare(job.kernel, &paths)?;
        if since.elapsed().as_secs() > 2 {
            say(&format!(
                "prepared {} in {} s",
                job.kernel.name,
                since.elapsed().as_secs()
            ));
        }
        benches.insert(job.kernel.name.clone(), bench);
    }
    Ok(benches)
}

fn run(args: &Args, benches: &Benches, jobs: Vec<Job>) -> Table {
    let total = jobs.len();
    let queue = Mutex::new(VecDeque::from(jobs));
    let found = Mutex::new(Vec::new());
    let worker = || {
        let mut judges: BTreeMap<&str, Judge<'_>> = BTreeMap::new();
        while let Some(job) = { queue.lock().expect("the queue").pop_front() } {
            let name = job.kernel.name.as_str();
            let judge = benches.get(name).map(|bench| {
                let judge = judges.remove(name);
                judge.unwrap_or_else(|| Judge::new(bench).expect("a source tree"))
            });
            let one = find_out(args, &job, judge.as_ref());
            if reroll::exec::check_interrupted().is_err() {
                return;
            }
            if let Some(judge) = judge {
                judges.insert(&job.kernel.name, judge);
            }
            let mut found = found.lock().expect("the list");
            progress(args, &one, found.len() + 1, total);
            found.push(one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(worker);
        }
    });
    let mut found = found.into_inner().expect("the list");
    found.sort_by(|a: &Found, b: &Found| {
        (a.group, a.kind, &a.base).cmp(&(b.group, b.kind, &b.base))
    });
    Table { found }
}

/// Asks the tool, and has judged what it says.
fn find_out(args: &Args, job: &Job, judge: Option<&Judge<'_>>) -> Found {
    let since = Instant::now();
    let answer = if args.check_kinds {
        Answer::Carried(Vec::new())
    } else {
        base::regen(job.kernel, &job.steps, None)
    };
    let (mut verdict, mut why, patches) = weigh(&job.kind, answer);
    if let Some(judge) = judge.filter(|_| job.judged) {
        let drift = job
            .steps
            .last()
            .map(|step| step.files.clone())
            .unwrap_or_default();
        let case = Case {
            kind: &job.kind,
            drift: &drift,
            patches: &patches,
        };
        match judge.judge(&case) {
            Ok(Sentence::Right) if verdict == Verdict::Carried => verdict = Verdict::Right,
            Ok(Sentence::Right) => {}
            Ok(Sentence::Wrong(what)) => (verdict, why) = (Verdict::Wrong, what),
            Ok(Sentence::Mistake(what)) => (verdict, why) = (Verdict::Mistake, what),
            Err(error) => (verdict, why) = (Verdict::Mistake, format!("{error:#}")),
        }
    }
    Found {
        kind: job.kind.name,
        group: job.kind.group,
        expects: job.kind.expects,
        base: job.kernel.name.clone(),
        verdict,
        why,
        seconds: since.elapsed().as_secs_f64(),
    }
}

/// What an answer is worth before anything is compiled, and what there is to compile.
fn weigh(kind: &Kind, answer: Answer) -> (Verdict, String, Vec<(String, Files)>) {
    let (verdict, why) = match answer {
        Answer::Broken(why) => (Verdict::Broken, why),
        Answer::Applied(why) if !kind.applied => (Verdict::Wrong, why),
        Answer::Applied(why) => (Verdict::Right, why),
        Answer::Refused(why) if kind.expects == Expects::Carried => {
            (Verdict::RefusedNeedlessly, why)
        }
        Answer::Refused(why) => (Verdict::RefusedRightly, why),
        Answer::Unproven(why) if kind.unproven => (Verdict::Unproven, why),
        Answer::Unproven(why) => (Verdict::UnprovenNeedlessly, why),
        Answer::Carried(patches) => return (Verdict::Carried, String::new(), patches),
    };
    (verdict, why, Vec::new())
}

fn progress(args: &Args, one: &Found, done: usize, total: usize) {
    if args.verbose {
        say(&format!(
            "{:<6} {:<48} {:.1} s {:?}: {}",
            one.base, one.kind, one.seconds, one.verdict, one.why
        ));
    } else if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r{done} of {total} ");
    }
}

fn report(table: &Table, since: Instant) {
    say(&format!("\n{}{}", table.markdown(), table.list()));
    let unexpected = table.unexpected();
    if !unexpected.is_empty() {
        say(&format!(
            "carried where a refusal is expected:\n\n{unexpected}"
        ));
    }
    say(&format!(
        "{} runs in {} s",
        table.found.len(),
        since.elapsed().as_secs()
    ));
}

/// The page for `docs/`.
fn page(table: &Table, bases: &[&Kernel]) -> String {
    let kinds: BTreeSet<_> = table.found.iter().map(|it| it.kind).collect();
    let names: Vec<_> = bases.iter().map(|kernel| base::release(kernel)).collect();
    let mut text = format!(
        "# Drift\n\nWhat the series makes of kernels that were changed by a program: {} kinds of change on Linux {}, {} runs.\n\n\
         Every result is compiled after each patch, run, and compared with the memory that the changed kernel itself writes; what the tool \
         believes of it counts for nothing. A warning that the changed kernel does not have is wrong, too, and so is \"already applied\" where \
         it is not true.\n\n    cargo test --test corpus -- --all --write docs/drift.md\n\nmakes this page; `-- --fixed` runs \
         the part that CI runs, and `-- --help` says more. The kinds are in `tests/corpus/kinds/`.\n\n",
        kinds.len(),
        names.join(", "),
        table.found.len()
    );
    text.push_str(&table.markdown());
    text.push_str(&table.list());
    text
}

fn verdict(args: &Args, table: &Table, everywhere: bool) -> ExitCode {
    let needless =
        table.count(Verdict::RefusedNeedlessly) + table.count(Verdict::UnprovenNeedlessly);
    let bad = [Verdict::Wrong, Verdict::Broken, Verdict::Mistake]
        .map(|verdict| table.count(verdict))
        .iter()
        .sum::<usize>();
    let too_many = needless > NEEDLESS && !args.no_native;
    if bad > 0 || too_many || !everywhere {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Prints a line: this is a program, and its result is what it prints.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
