//! How long `reroll bot run` takes for many bases at once, and what memory it takes for them.
//!
//! `cargo bench --bench bot -- [--tree REPO --base REV] [--bases N] [--gates GATE,GATE] [--rounds N]`: without a tree it takes the default
//! base of the cache (which it fetches if there is none). The bases are commits on top of that one, each with a harmless change in the file
//! that the shipped series edits most, and with a release of its own; all of them are new to the bot. Memory is the peak of the resident set
//! (`VmHWM`) of that one process, read when so many records are there. Nothing is judged here.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

/// The file that the series edits most.
const FILE: &str = "mm/mm_init.c";

struct Options {
    tree: Option<PathBuf>,
    base: String,
    bases: usize,
    gates: Vec<String>,
    rounds: usize,
}

/// What one run took.
struct Run {
    wall: Duration,
    cpu: Duration,
    /// The peak in KiB when so many records were there.
    peaks: Vec<(usize, u64)>,
    /// The peak of the whole run, in KiB.
    peak: u64,
}

fn main() {
    let options = options();
    let scratch = tempfile::tempdir().unwrap();
    let play = Play::new(scratch.path(), &options);
    println!("git: {}", text(Command::new("git").arg("--version")).trim());
    println!(
        "{} bases on {}, gates: [{}], load {}",
        options.bases,
        options.base,
        options.gates.join(", "),
        std::fs::read_to_string("/proc/loadavg")
            .unwrap_or_default()
            .trim()
    );
    for round in 1..=options.rounds {
        let run = play.run(&marks(options.bases));
        println!(
            "round {round}: {:.2} s, {:.2} s of the processor's time, {:.1} ms a base",
            run.wall.as_secs_f64(),
            run.cpu.as_secs_f64(),
            run.wall.as_secs_f64() * 1e3 / count(options.bases)
        );
        for (bases, kib) in &run.peaks {
            println!("  VmHWM after {bases:4} bases: {:6.1} MB", megabytes(*kib));
        }
        println!("  peak of the run:        {:6.1} MB", megabytes(run.peak));
        let again = play.run(&[]);
        println!(
            "  again, with nothing new: {:.0} ms, peak {:.1} MB",
            again.wall.as_secs_f64() * 1e3,
            megabytes(again.peak)
        );
        play.forget();
    }
}

/// How many records memory is read at.
fn marks(bases: usize) -> Vec<usize> {
    let marks = [bases / 10, bases / 2, bases];
    marks.into_iter().filter(|mark| *mark > 0).collect()
}

/// A remote with the bases, and a bot that shares the objects of a kernel with it.
struct Play {
    dir: PathBuf,
    objects: String,
}

impl Play {
    fn new(dir: &Path, options: &Options) -> Self {
        let source = options.tree.clone().unwrap_or_else(cache);
        let commit = match &options.tree {
            Some(_) => {
                text(git(&source).args(["rev-parse", &format!("{}^{{commit}}", options.base)]))
            }
            None => default_base(),
        };
        let commit = commit.trim().to_owned();
        let objects = text(git(&source).args([
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ]));
        let play = Self {
            dir: dir.to_owned(),
            objects,
        };
        let remote = play.repository("remote.git");
        let read = |path: &str| text(git(&remote).args(["show", &format!("{commit}:{path}")]));
        let (file, makefile) = (read(FILE), read("Makefile"));
        feed(git(&remote).args(["fast-import", "--quiet"]), |input| {
            for number in 1..=options.bases {
                let changed =
                    file.replacen("#include", &format!("/* base {number} */\n#include"), 1);
                let changed = format!("{changed}\n/* The end of base {number}. */\n");
                let makefile: String = makefile
                    .lines()
                    .map(|line| {
                        if line.starts_with("SUBLEVEL =") {
                            format!("SUBLEVEL = {number}\n")
                        } else {
                            format!("{line}\n")
                        }
                    })
                    .collect();
                let from = if number == 1 {
                    format!("from {commit}\n")
                } else {
                    String::new()
                };
                write!(
                    input,
                    "commit refs/heads/main\nmark :{number}\ncommitter A <a@example.org> {} +0000\ndata 5\nbase\n{from}\
                     M 100644 inline {FILE}\ndata {}\n{changed}\nM 100644 inline Makefile\ndata {}\n{makefile}\n\
                     reset refs/tags/b{number}\nfrom :{number}\n\n",
                    1_700_000_000 + number,
                    changed.len(),
                    makefile.len()
                )
                .unwrap();
            }
        });
        let gates = options.gates.iter().map(|gate| format!("\"{gate}\""));
        let config = format!(
            "repository = \"bot.git\"\nseries = [\"zone-device\"]\nauthor = \"A U Thor <author@example.org>\"\nsign-off = true\n\
             gates = [{}]\n[[watch]]\nname = \"main\"\nremote = \"remote.git\"\ntags = [\"b*\"]\n",
            gates.collect::<Vec<_>>().join(", ")
        );
        std::fs::write(dir.join("bot.toml"), config).unwrap();
        play.repository("bot.git");
        play
    }

    /// A bare repository that has the kernel's objects without a copy.
    fn repository(&self, name: &str) -> PathBuf {
        let path = self.dir.join(name);
        run(git(&self.dir).args(["init", "-q", "--bare", name]));
        std::fs::write(path.join("objects/info/alternates"), &self.objects).unwrap();
        path
    }

    /// The bot as it was before it ran.
    fn forget(&self) {
        std::fs::remove_dir_all(self.dir.join("bot.git")).unwrap();
        let _ = std::fs::remove_dir_all(self.dir.join("cache"));
        self.repository("bot.git");
    }

    fn run(&self, marks: &[usize]) -> Run {
        let since = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_reroll"))
            .args(["-q", "bot", "run"])
            .current_dir(&self.dir)
            .env("XDG_CACHE_HOME", self.dir.join("cache"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let records = self.dir.join("bot.git/refs/reroll/records/zone-device");
        let status = format!("/proc/{}/status", child.id());
        let mut peaks = Vec::new();
        let mut left = marks.iter().peekable();
        while let Some(mark) = left.peek() {
            // A process that has ended has no such line any more.
            let peak = std::fs::read_to_string(&status)
                .ok()
                .and_then(|status| peak(&status));
            let Some(peak) = peak else { break };
            if std::fs::read_dir(&records).is_ok_and(|found| found.count() >= **mark) {
                peaks.push((**mark, peak));
                left.next();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let ended = child.wait4().unwrap();
        assert!(ended.status.success(), "the bot failed");
        let peak = ended.rusage.maxrss / 1024;
        // The last record may have come with the end.
        peaks.extend(left.map(|mark| (*mark, peak)));
        Run {
            wall: since.elapsed(),
            cpu: ended.rusage.utime + ended.rusage.stime,
            peaks,
            peak,
        }
    }
}

/// `VmHWM` in KiB.
fn peak(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn cache() -> PathBuf {
    reroll::cache::Cache::open().unwrap().repo_path()
}

fn default_base() -> String {
    let ui = reroll::ui::Ui::new(reroll::ui::Color::Auto, false);
    let entry = reroll::cache::Cache::open().unwrap().default_base(ui);
    entry.unwrap().commit_id.to_string()
}

fn options() -> Options {
    let mut options = Options {
        tree: None,
        base: "the default base".to_owned(),
        bases: 100,
        gates: Vec::new(),
        rounds: 3,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} takes a value"));
        match arg.as_str() {
            "--tree" => options.tree = Some(PathBuf::from(value())),
            "--base" => options.base = value(),
            "--bases" => options.bases = value().parse().unwrap(),
            "--gates" => options.gates = value().split(',').map(str::to_owned).collect(),
            "--rounds" => options.rounds = value().parse().unwrap(),
            "--bench" => {}
            other => panic!("unknown argument {other}; see the top of benches/bot.rs"),
        }
    }
    if options.tree.is_some() && options.base == "the default base" {
        "HEAD".clone_into(&mut options.base);
    }
    options
}

#[expect(clippy::cast_precision_loss, reason = "a peak of 2^52 KiB is far away")]
fn megabytes(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "nobody has that many bases")]
fn count(bases: usize) -> f64 {
    bases as f64
}

fn git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .arg("-C")
        .arg(dir);
    command
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?} failed");
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
