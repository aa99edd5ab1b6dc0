//! The guest gate: a kernel with and one without the patches boot under an emulator, and what they left in memory is compared.
//!
//! Hides the emulator and the devices; a caller hears whether a real boot of base and patch wrote the same.

mod memory;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bstr::ByteSlice;

use super::build::counted;
use super::cache::Key;
use super::equality::{directory, harness_digest};
use super::kbuild::{Bench, Step, Trouble, step};
use super::run::Context;
use super::settings::Guest;
use super::toolchain::{Tool, missing};
use super::{Name, Outcome};
use crate::exec::{End, Task};
use memory::{Content, Window};

pub use memory::Device;

/// Longer than a boot takes where the emulator is slow.
const TIMEOUT: Duration = Duration::from_mins(15);

/// What the guest is given to start from, in the language of the kernel's own `gen_init_cpio`.
const INITRD: &str =
    "dir /dev 755 0 0\nnod /dev/console 600 0 0 c 5 1\ndir /sys 755 0 0\nfile /init init 755 0 0\n";

/// A patch whose outcome is still to be found out.
struct Cell {
    patch: usize,
    key: Key,
}

/// What a guest left behind.
struct Left {
    contents: Vec<Content>,
    complaints: Vec<String>,
    log: PathBuf,
}

/// Boots what is not known yet and tells what was found.
pub(super) fn run(context: &Context<'_>) -> Result<()> {
    let Some(spec) = &context.subject.settings.guest else {
        let blank = Outcome::new(Name::Guest);
        context.found(blank.skipped("the recipe has no `[check.guest]`"));
        return Ok(());
    };
    let cells = unknown(context, spec)?;
    if cells.is_empty() {
        return Ok(());
    }
    let since = Instant::now();
    let room = match Bench::prepare(context, &spec.configuration)? {
        Ok(bench) => Room {
            bench: bench.with_all_cores(),
            spec,
            init: directory(context.subject)?.join(&spec.init),
        },
        Err(trouble) => {
            for cell in cells {
                let blank = blank(spec, cell.patch, since);
                context.found(trouble.outcome(blank, "cannot prepare the build"));
            }
            return Ok(());
        }
    };
    room.find_out(&cells)
}

/// The patches whose outcome has to be found out; the others are told at once.
fn unknown(context: &Context<'_>, spec: &Guest) -> Result<Vec<Cell>> {
    let tools = spec.tools();
    let missing = missing(&tools);
    let versions = match missing {
        Some(_) => Vec::new(),
        None => tools
            .iter()
            .map(|tool| context.version(tool))
            .collect::<Result<_>>()?,
    };
    let subject = context.subject;
    let digest = harness_digest(subject)?;
    let mut cells = Vec::new();
    for patch in context.numbers() {
        if !spec.after.is_empty() && !spec.after.contains(&patch) {
            continue;
        }
        let blank = blank(spec, patch, Instant::now());
        let key = || {
            let trees = [
                subject.base.tree_id,
                subject.patches[patch - 1].commit.tree_id,
            ];
            Ok(Key::of(&(
                Name::Guest,
                patch,
                trees.map(|id| id.to_string()),
                (spec, &subject.settings.options, &versions, &digest),
            )))
        };
        if let Some(key) = context.unknown(blank, missing.as_ref(), key)? {
            cells.push(Cell { patch, key });
        }
    }
    Ok(cells)
}

fn blank(spec: &Guest, patch: usize, since: Instant) -> Outcome {
    let mut outcome = Outcome::new(Name::Guest)
        .configuration(&spec.configuration.name)
        .patch(patch);
    outcome.seconds = since.elapsed().as_secs_f64();
    outcome
}

/// Where kernels are built and booted.
struct Room<'a, 'b> {
    bench: Bench<'a, 'b>,
    spec: &'a Guest,
    init: PathBuf,
}

impl Room<'_, '_> {
    fn find_out(&self, cells: &[Cell]) -> Result<()> {
        let context = self.bench.context;
        let total = cells.len() as u64 + 1;
        let name = &self.spec.configuration.name;
        context.step(name, "building and booting the base", 0, total);
        let base = self.boot(0)?;
        for (done, cell) in cells.iter().enumerate() {
            let what = format!("building and booting patch {}", cell.patch);
            context.step(name, &what, done as u64 + 1, total);
            let since = Instant::now();
            let outcome = match &base {
                Err(trouble) => {
                    trouble.outcome(blank(self.spec, cell.patch, since), "no guest of the base")
                }
                Ok(base) => {
                    let left = self.boot(cell.patch)?;
                    let blank = blank(self.spec, cell.patch, since);
                    match left {
                        Ok(left) => judge(blank, base, &left),
                        // The base's guest came to its end: it is the patch that makes the difference.
                        Err(trouble) => blank
                            .fail(trouble.reason)
                            .lines(trouble.lines)
                            .log(trouble.log),
                    }
                }
            };
            context.cache.put(&cell.key, std::slice::from_ref(&outcome));
            context.found(outcome);
        }
        Ok(())
    }

    /// Builds the kernel after a patch (0 is the base), boots it, and reads what it left.
    fn boot(&self, number: usize) -> Step<Left> {
        let subject = self.bench.context.subject;
        let files = match number {
            0 => &subject.base_files,
            _ => &subject.patches[number - 1].files,
        };
        self.bench.dir.put(files)?;
        let configuration = &self.spec.configuration;
        let log = |what: &str| format!("{}-p{number}-{what}", configuration.name);
        // With it comes `usr/gen_init_cpio`.
        let target = std::slice::from_ref(&self.spec.target);
        step!(self.bench.make(configuration, &log("kernel"), target));
        let dir = self.bench.dir.kept(number);
        fs::create_dir_all(&dir).context("cannot make a directory for the guest")?;
        step!(self.make_initrd(&dir, &self.bench.context.log(&log("init"))));
        for device in &self.spec.memory {
            device.create(&dir)?;
        }
        let log = self.bench.context.log(&log("console"));
        let output = self.bench.dir.run_with_output(self.emulator(&dir))?;
        let console = [&output.stdout[..], &output.stderr].concat();
        fs::write(&log, &console).context("cannot write a log")?;
        let left = self.left(&dir, output.exit, &console, log);
        for device in &self.spec.memory {
            // It is made anew before it is read again.
            let _ = fs::remove_file(dir.join(&device.name));
        }
        left
    }

    /// Compiles the guest's program and packs it.
    fn make_initrd(&self, dir: &Path, log: &Path) -> Step<()> {
        let trouble = |reason: &str, text: &[u8]| -> Step<()> {
            fs::write(log, text).context("cannot write a log")?;
            Ok(Err(Trouble {
                reason: reason.to_owned(),
                lines: super::warnings::errors(text, ""),
                log: log.to_owned(),
            }))
        };
        let compile = Task::new(self.spec.configuration.host_cc())
            .home()
            .dir(dir)
            .args(["-static", "-O2", "-Wall", "-Wextra", "-o", "init"])
            .arg(&self.init);
        let output = self.bench.dir.run_with_output(compile)?;
        if !output.exit.success() {
            return trouble("the guest's program does not compile", &output.stderr);
        }
        fs::write(dir.join("initrd.list"), INITRD)
            .context("cannot write the list of the initrd")?;
        let pack = Task::new(self.bench.dir.objects().join("usr/gen_init_cpio"))
            .home()
            .dir(dir)
            .args(["-t", "0", "initrd.list"]);
        let output = self.bench.dir.run_with_output(pack)?;
        if !output.exit.success() {
            return trouble("cannot pack the guest's program", &output.stderr);
        }
        fs::write(dir.join("initrd"), &output.stdout).context("cannot write the initrd")?;
        Ok(Ok(()))
    }

    /// The emulator, in the directory where its files are: it reads commas in a path as its own.
    fn emulator(&self, dir: &Path) -> Task {
        let kernel = self.bench.dir.objects().join(&self.spec.image);
        let filled = |word: &String| {
            let word = word
                .replace("{kernel}", &kernel.display().to_string())
                .replace("{initrd}", "initrd");
            self.spec.memory.iter().fold(word, |word, device| {
                word.replace(&format!("{{{}}}", device.name), &device.name)
            })
        };
        let words: Vec<_> = self
            .spec
            .configuration
            .emulator
            .iter()
            .map(filled)
            .collect();
        let (program, arguments) = words
            .split_first()
            .map_or(("", &[][..]), |(first, rest)| (first, rest));
        Task::new(program)
            .home()
            .args(arguments)
            .dir(dir)
            .timeout(TIMEOUT)
    }

    /// What the guest says that it has set up, read from the files of its devices.
    fn left(&self, dir: &Path, end: End, console: &[u8], log: PathBuf) -> Step<Left> {
        let trouble = |reason: String| {
            let lines = console
                .lines()
                .rev()
                .take(12)
                .map(shown)
                .collect::<Vec<_>>();
            let lines = lines.into_iter().rev().collect();
            Ok(Err(Trouble {
                reason,
                lines,
                log: log.clone(),
            }))
        };
        if end != End::Code(0) {
            return trouble(match end {
                End::TimedOut => "the guest did not come to its end".to_owned(),
                end => format!("the emulator ended with {end:?}"),
            });
        }
        let windows: Vec<Window> = console
            .lines()
            .filter_map(|line| serde_json::from_slice(line.trim()).ok())
            .collect();
        let mut contents = Vec::new();
        for device in &self.spec.memory {
            let mut of_device = windows.iter().filter(|it| it.memory == device.name);
            let (Some(window), None) = (of_device.next(), of_device.next()) else {
                return trouble(format!("the guest did not set up `{}`", device.name));
            };
            match device.read(dir, window)? {
                Some(content) if content.is_written() => contents.push(content),
                _ => {
                    return trouble(format!(
                        "the guest's kernel wrote nothing to `{}`",
                        device.name
                    ));
                }
            }
        }
        Ok(Ok(Left {
            contents,
            complaints: complaints(console),
            log,
        }))
    }
}

/// What a kernel says about its own faults.
fn complaints(console: &[u8]) -> Vec<String> {
    const WORDS: [&[u8]; 5] = [
        b"WARNING:",
        b"BUG:",
        b"BUG ",
        b"Oops",
        b"page dumped because",
    ];
    console
        .lines()
        .filter(|line| WORDS.iter().any(|word| line.contains_str(word)))
        .map(shown)
        .collect()
}

fn shown(line: &[u8]) -> String {
    line.trim_end().to_str_lossy().into_owned()
}

fn judge(blank: Outcome, base: &Left, now: &Left) -> Outcome {
    let blank = blank.log(now.log.clone());
    if now.complaints.len() > base.complaints.len() {
        return blank
            .fail("the guest's kernel complains, the base's does not")
            .lines(now.complaints.clone());
    }
    let pairs = base.contents.iter().zip(&now.contents);
    let differences: Vec<_> = pairs
        .flat_map(|(base, now)| now.differences(base))
        .collect();
    if !differences.is_empty() {
        return blank
            .fail("the booted kernels wrote different bytes")
            .lines(differences);
    }
    let pages: u64 = now.contents.iter().map(|it| it.window.pages).sum();
    let line = format!(
        "{pages} pages of {} are equal",
        counted(now.contents.len(), "device")
    );
    blank.lines(vec![line])
}

impl Guest {
    /// Everything that must be there to build and boot it.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let mut tools = self.configuration.tools();
        tools.extend(self.configuration.emulator_tools());
        tools
    }
}
