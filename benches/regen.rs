//! How long `reroll regen` takes on a full-size kernel repository, beside what git takes to replay the same series.
//!
//! `cargo bench --bench regen -- [--tree REPO --base REV [--newer REV]] [--rounds N] [--history N]`: without a tree it takes the
//! default base of the cache (which it fetches if there is none). The series is moved from the base to `--newer`, a revision of the same
//! repository on which it can be replayed; without one, to the base with one line changed. Every figure of a row is measured in the same rounds, in turn; ratios are medians of the
//! ratios within a round. Where valgrind is installed, callgrind counts the instructions of one run, which no other work on the machine changes.
//! Nothing is judged here.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

const AUTHOR: &str = "A U Thor <author@example.org>";

/// One run of one way to get the patches.
#[derive(Clone, Copy)]
struct Run {
    wall: Duration,
    peak_kib: u64,
}

/// A way to get the patches, and what it took each time.
struct Way {
    name: &'static str,
    /// Puts things back before each run; it is not measured.
    before: Option<Command>,
    steps: Vec<Command>,
    runs: Vec<Run>,
}

struct Options {
    tree: Option<PathBuf>,
    base: String,
    newer: Option<String>,
    rounds: usize,
    history: usize,
}

fn main() {
    let options = options();
    let scratch = tempfile::tempdir().unwrap();
    let source = options
        .tree
        .clone()
        .unwrap_or_else(|| default_base(scratch.path()));
    let bench = Bench::new(scratch.path(), &source, &options);
    println!(
        "base: {} in {}, {} files",
        options.base,
        if options.tree.is_some() {
            "the given tree"
        } else {
            "the cache"
        },
        bench.files()
    );
    println!("git: {}", text(Command::new("git").arg("--version")).trim());
    stages(&bench.bare, options.rounds);
    bench.instructions();
    bench.compare(
        "one commit, bare repository",
        options.rounds,
        vec![
            bench.regen("regen", &bench.bare),
            bench.first("regen, a base that is new to it"),
            bench.replay(),
        ],
    );
    bench.compare(
        "one commit, linked work tree",
        options.rounds.min(9),
        vec![bench.regen("regen", &bench.work_tree), bench.rebase()],
    );
    if options.history > 0 {
        bench.add_history(options.history);
        let label = format!("{} more commits, bare repository", options.history);
        bench.compare(
            &label,
            options.rounds,
            vec![
                bench.regen("regen, long history", &bench.long),
                bench.regen("regen", &bench.bare),
            ],
        );
    }
}

fn options() -> Options {
    let mut options = Options {
        tree: None,
        base: "HEAD".to_owned(),
        newer: None,
        rounds: 11,
        history: 200_000,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} takes a value"));
        match arg.as_str() {
            "--tree" => options.tree = Some(PathBuf::from(value())),
            "--base" => options.base = value(),
            "--newer" => options.newer = Some(value()),
            "--rounds" => options.rounds = value().parse().unwrap(),
            "--history" => options.history = value().parse().unwrap(),
            "--bench" => {}
            other => panic!("unknown argument {other}; see the top of benches/regen.rs"),
        }
    }
    options
}

/// The cache's repository, with its default base as HEAD of a copy that shares its objects.
fn default_base(scratch: &Path) -> PathBuf {
    let ui = reroll::ui::Ui::new(reroll::ui::Color::Auto, false);
    let cache = reroll::cache::Cache::open().unwrap();
    let entry = cache.default_base(ui).unwrap();
    let copy = scratch.join("default.git");
    run(git(scratch)
        .args(["clone", "-q", "--bare", "--shared", "--no-tags"])
        .arg(cache.repo_path())
        .arg(&copy));
    run(git(&copy).args([
        "update-ref",
        "--no-deref",
        "HEAD",
        &entry.commit_id.to_string(),
    ]));
    copy
}

/// A base, the series on it, a newer base, and repositories of every kind that hold them.
struct Bench {
    scratch: PathBuf,
    bare: PathBuf,
    work_tree: PathBuf,
    long: PathBuf,
}

impl Bench {
    fn new(scratch: &Path, source: &Path, options: &Options) -> Self {
        let bench = Self {
            scratch: scratch.to_owned(),
            bare: scratch.join("bare.git"),
            work_tree: scratch.join("work"),
            long: scratch.join("long.git"),
        };
        let commit =
            |rev: &str| text(git(source).args(["rev-parse", &format!("{rev}^{{commit}}")]));
        let base = commit(&options.base);
        run(git(scratch).args(["init", "-q", "--bare"]).arg(&bench.bare));
        let objects = text(git(source).args([
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ]));
        std::fs::write(bench.bare.join("objects/info/alternates"), objects).unwrap();
        run(git(&bench.bare).args(["update-ref", "refs/heads/base", base.trim()]));
        run(git(&bench.bare).args(["symbolic-ref", "HEAD", "refs/heads/base"]));
        let series = ["--ref", "refs/heads/series", "-o"];
        run(reroll(&bench.bare, "base", &series).arg(scratch.join("first")));
        match &options.newer {
            Some(newer) => {
                run(git(&bench.bare).args([
                    "update-ref",
                    "refs/heads/newer",
                    commit(newer).trim(),
                ]));
            }
            None => bench.newer_base(),
        }
        run(git(&bench.bare)
            .args(["worktree", "add", "-q", "-f"])
            .arg(&bench.work_tree)
            .arg("newer"));
        bench
    }

    /// A base with a change elsewhere in the file that the series edits most, as a new -rc has.
    fn newer_base(&self) {
        let file = text(git(&self.bare).args(["show", "base:mm/mm_init.c"]));
        let changed = file.replacen("#include", "/* a newer base */\n#include", 1);
        let mut stream = format!(
            "commit refs/heads/newer\ncommitter A <a@example.org> 1700000000 +0000\ndata 6\nnewer\n\nfrom refs/heads/base\nM 100644 inline mm/mm_init.c\ndata {}\n",
            changed.len()
        );
        stream.push_str(&changed);
        stream.push('\n');
        feed(git(&self.bare).args(["fast-import", "--quiet"]), |input| {
            input.write_all(stream.as_bytes()).unwrap();
        });
    }

    /// A copy of the repository in which the newer base has many commits behind it.
    fn add_history(&self, commits: usize) {
        run(git(&self.scratch)
            .args(["clone", "-q", "--bare", "--shared"])
            .arg(&self.bare)
            .arg(&self.long));
        feed(git(&self.long).args(["fast-import", "--quiet"]), |input| {
            for number in 0..commits {
                let from = if number == 0 {
                    "from refs/heads/newer^0\n"
                } else {
                    ""
                };
                let body = format!("{number}\n");
                write!(input, "commit refs/heads/newer\ncommitter A <a@example.org> {} +0000\ndata 1\nx\n{from}M 100644 inline samples/counter\ndata {}\n{body}\n", 1_700_000_001 + number, body.len()).unwrap();
            }
        });
    }

    fn files(&self) -> usize {
        text(git(&self.bare).args(["ls-tree", "-r", "--name-only", "base"]))
            .lines()
            .count()
    }

    fn regen(&self, name: &'static str, tree: &Path) -> Way {
        let out = self.scratch.join("out").join(name.replace(' ', "-"));
        let mut step = reroll(tree, "newer", &["--force", "-o"]);
        // A directory that is there already, with other content, so that each run writes all of it.
        step.arg(out);
        Way {
            name,
            before: None,
            steps: vec![step],
            runs: Vec::new(),
        }
    }

    /// The same where the index of the base has to be made first.
    fn first(&self, name: &'static str) -> Way {
        let mut way = self.regen(name, &self.bare);
        let cache = self.scratch.join("cache");
        let mut forget = Command::new("rm");
        forget.arg("-rf").arg(&cache);
        way.before = Some(forget);
        way.steps[0].env("XDG_CACHE_HOME", cache);
        way
    }

    /// Counts the instructions of `regen` twice, and names where most of them are.
    fn instructions(&self) {
        const SHOWN: usize = 12;
        if !Command::new("valgrind")
            .arg("--version")
            .output()
            .is_ok_and(|it| it.status.success())
        {
            println!("\ninstructions: left out, valgrind is not installed");
            return;
        }
        let profile = self.scratch.join("callgrind.out");
        let mut counts = Vec::new();
        for _ in 0..2 {
            let _ = std::fs::remove_dir_all(self.scratch.join("out"));
            let way = self.regen("regen", &self.bare);
            let mut valgrind = Command::new("valgrind");
            valgrind
                .args(["--tool=callgrind", "-q"])
                .arg(format!("--callgrind-out-file={}", profile.display()))
                .arg(way.steps[0].get_program())
                .args(way.steps[0].get_args());
            run(&mut valgrind);
            let text = std::fs::read_to_string(&profile).unwrap();
            let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
            counts.push(total.unwrap().trim().parse::<u64>().unwrap());
        }
        println!(
            "\ninstructions of `regen`, bare repository, by callgrind: {} and {}",
            counts[0], counts[1]
        );
        let mut annotate = Command::new("callgrind_annotate");
        let listing = text(
            annotate
                .args(["--inclusive=yes", "--threshold=100"])
                .arg(&profile),
        );
        // `  1,234 (12.3%)  file:function [object]`
        let ours = listing.lines().filter_map(|line| {
            let (count, rest) = line.trim().split_once(" (")?;
            let (share, place) = rest.split_once("%)")?;
            let function = place.rsplit_once(" [").map_or(place, |(place, _)| place);
            let function = &function[function.find(":reroll::")? + 1..];
            Some((count, share.trim(), function))
        });
        let mut seen = std::collections::BTreeSet::new();
        for (count, share, function) in ours.filter(|it| seen.insert(it.2)).take(SHOWN) {
            println!("  {count:>14}  {share:>6} %  {function}");
        }
    }

    /// `git replay` and `git format-patch` of the same commits, without any checkout.
    fn replay(&self) -> Way {
        let mut replay = git(&self.bare);
        replay.args(["replay", "--onto", "newer", "base..series"]);
        Way {
            name: "git replay + git format-patch",
            before: None,
            steps: vec![replay, self.format_patch(&self.bare, "base..series")],
            runs: Vec::new(),
        }
    }

    /// `git rebase --onto` in a work tree, and `git format-patch`.
    fn rebase(&self) -> Way {
        let mut before = git(&self.work_tree);
        before.args(["checkout", "-q", "--detach", "series"]);
        let mut rebase = git(&self.work_tree);
        rebase.args(["rebase", "-q", "--onto", "newer", "base"]);
        Way {
            name: "git rebase --onto + git format-patch",
            before: Some(before),
            steps: vec![rebase, self.format_patch(&self.work_tree, "newer..HEAD")],
            runs: Vec::new(),
        }
    }

    fn format_patch(&self, tree: &Path, range: &str) -> Command {
        let mut step = git(tree);
        step.args([
            "-c",
            "core.abbrev=12",
            "format-patch",
            "-q",
            "--cover-letter",
            "-v1",
            "-o",
        ])
        .arg(self.scratch.join("git-out"))
        .arg(range);
        step
    }

    /// Runs the ways in turn, round after round, and prints what each took and the ratio to the first.
    fn compare(&self, label: &str, rounds: usize, mut ways: Vec<Way>) {
        for round in 0..=rounds {
            for way in &mut ways {
                let _ = std::fs::remove_dir_all(self.scratch.join("out"));
                if let Some(before) = &mut way.before {
                    run(before);
                }
                let run = way.steps.iter_mut().map(measure).reduce(|a, b| Run {
                    wall: a.wall + b.wall,
                    peak_kib: a.peak_kib.max(b.peak_kib),
                });
                if round > 0 {
                    way.runs.push(run.unwrap());
                }
            }
        }
        println!("\n{label}: {rounds} rounds");
        let first: Vec<f64> = ways[0]
            .runs
            .iter()
            .map(|run| run.wall.as_secs_f64())
            .collect();
        for way in &ways {
            let walls: Vec<f64> = way.runs.iter().map(|run| run.wall.as_secs_f64()).collect();
            let ratios: Vec<f64> = walls
                .iter()
                .zip(&first)
                .map(|(wall, first)| wall / first)
                .collect();
            let peak = way.runs.iter().map(|run| run.peak_kib).max().unwrap_or(0);
            let [low, middle, high] = spread(&walls).map(|seconds| seconds * 1e3);
            let mut line = String::new();
            write!(line, "  {:40} median {middle:8.1} ms  min {low:8.1}  max {high:8.1}  peak {:6.1} MB  x{:.2}", way.name, megabytes(peak), spread(&ratios)[1]).unwrap();
            println!("{line}");
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a peak of 2^52 KiB is far away")]
fn megabytes(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// Least, median and greatest.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [
        sorted[0],
        sorted[sorted.len() / 2],
        sorted[sorted.len() - 1],
    ]
}

fn measure(step: &mut Command) -> Run {
    let start = Instant::now();
    let child = step.stdout(Stdio::null()).spawn().unwrap();
    let used = child.wait4().unwrap();
    assert!(used.status.success(), "{step:?} failed");
    Run {
        wall: start.elapsed(),
        peak_kib: used.rusage.maxrss / 1024,
    }
}

fn reroll(tree: &Path, base: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reroll"));
    command
        .args([
            "-q",
            "regen",
            "--series",
            "zone-device",
            "--author",
            AUTHOR,
            "--signoff",
            // The bases of a benchmark need not be proven.
            "--unproven",
            "--base",
            base,
            "--tree",
        ])
        .arg(tree)
        .args(more);
    command
}

fn git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "A U Thor")
            .env(format!("GIT_{role}_EMAIL"), "author@example.org");
    }
    command.arg("-C").arg(dir);
    command
}

fn run(command: &mut Command) {
    assert!(
        command.stdout(Stdio::null()).status().unwrap().success(),
        "{command:?} failed"
    );
}

fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn feed(command: &mut Command, write: impl FnOnce(&mut dyn std::io::Write)) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = std::io::BufWriter::new(child.stdin.take().unwrap());
    write(&mut input);
    input.flush().unwrap();
    drop(input);
    assert!(child.wait().unwrap().success(), "{command:?} failed");
}

/// What each stage of `regen` takes, in this process: nothing is read or known from the round before but what the system caches.
fn stages(tree: &Path, rounds: usize) {
    const NAMES: [&str; 7] = [
        "read the recipe",
        "open the repository, find the base",
        "facts",
        "the series: facts, shapes, edits, commits",
        "diffs",
        "mails",
        "write them",
    ];
    let out = tempfile::tempdir().unwrap();
    let mut taken: [Vec<f64>; NAMES.len()] = Default::default();
    for round in 0..=rounds {
        let times = one_by_one(tree, &out.path().join(round.to_string()));
        for (all, time) in taken.iter_mut().zip(times) {
            if round > 0 {
                all.push(time.as_secs_f64() * 1e3);
            }
        }
    }
    println!("\nstage by stage, in one process: {rounds} rounds");
    for (name, times) in NAMES.iter().zip(&taken) {
        let [low, middle, high] = spread(times);
        println!("  {name:44} median {middle:8.2} ms  min {low:8.2}  max {high:8.2}");
    }
}

fn one_by_one(tree: &Path, out: &Path) -> [Duration; 7] {
    use reroll::{diff, mail, outgoing, recipe, repo, series};

    let mut since = Instant::now();
    let mut lap = || std::mem::replace(&mut since, Instant::now()).elapsed();
    let recipe = recipe::load("zone-device", Path::new("/")).unwrap();
    let read = lap();
    let mut repo = repo::Repo::open(tree).unwrap();
    repo.keep_in_memory().unwrap();
    let base = repo.base("newer").unwrap();
    let opened = lap();
    series::facts(&repo, &base, &recipe).unwrap();
    let probed = lap();
    let author = repo::Signature {
        name: "A U Thor".into(),
        email: "author@example.org".into(),
        time: base.time,
        offset: 0,
    };
    let options = series::Options {
        author,
        sign_off: true,
        version: 1,
    };
    let made = match series::regenerate(&repo, &base, &recipe, &options).unwrap() {
        series::Regenerated::Series(series) => series,
        series::Regenerated::Applied(_) => panic!("the base has the series"),
    };
    let regenerated = lap();
    let labels = diff::Labels::of(base.tree_id);
    let mut before = base.tree_id;
    let mut between = |tree_id| {
        diff::between(
            &repo,
            std::mem::replace(&mut before, tree_id),
            tree_id,
            &labels,
        )
        .unwrap()
    };
    let patches: Vec<_> = made
        .patches
        .iter()
        .map(|patch| mail::Patch {
            name: patch.name.clone(),
            commit: patch.commit.clone(),
            files: between(patch.commit.tree_id),
            notes: String::new(),
        })
        .collect();
    let cover = mail::Cover {
        subject: recipe.series.title.clone(),
        blurb: made.cover.clone(),
        files: diff::between(&repo, base.tree_id, before, &labels).unwrap(),
        notes: String::new(),
    };
    let compared = lap();
    let options = mail::Options {
        version: Some(1),
        ..mail::Options::default()
    };
    let mails = mail::compose(Some(&cover), &patches, &options).unwrap();
    let composed = lap();
    let files: Vec<_> = mails
        .into_iter()
        .map(|mail| (mail.file_name, mail.bytes))
        .collect();
    outgoing::write(out, &files, None, false).unwrap();
    [read, opened, probed, regenerated, compared, composed, lap()]
}
