//! The judge: compiles what the tool made after each patch, runs it, and compares it with what the changed base itself does.
//!
//! Hides the prepared builds, one a base, kept in the cache's lab; and that nothing is judged twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bstr::BStr;
use reroll::exec::{End, Task};
use reroll::gate::settings::Settings;
use reroll::gate::{Complaints, Plan, Replay, Subject, Unit, harness_files};
use reroll::lab::{Files as LabFiles, Lab, Overlay};
use reroll::repo::{File, MODE_FILE, Repo};
use reroll::series::places;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::kinds::Kind;
use crate::support::{Kernel, test_cache};
use crate::tree::{Files, RANGE, find_function};

/// The configuration that everything is compiled in.
const CONFIGURATION: &str = "x86-64 gcc";

/// To be raised whenever the judge judges otherwise than before.
const FORMAT: u32 = 1;

/// Where the functions may be.
const FILES: [&str; 2] = ["mm/mm_init.c", "mm/page_alloc.c"];

/// What compiling and running has shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sentence {
    /// It does what the changed base does.
    Right,
    /// It does not, or does not compile.
    Wrong(String),
    /// The changed base does not compile, or is no measure.
    Mistake(String),
}

/// Everything about a base that its judges share.
pub(crate) struct Bench {
    replay: Replay,
    /// The files that any kind or patch changes, as the base has them.
    files: LabFiles,
    sentences: PathBuf,
    /// What a sentence depends on besides what is judged.
    key: Vec<u8>,
}

/// A judge of changes of one base: a source tree of its own.
pub(crate) struct Judge<'a> {
    bench: &'a Bench,
    overlay: Overlay,
    dir: TempDir,
}

/// What is judged.
pub(crate) struct Case<'a> {
    pub(crate) kind: &'a Kind,
    /// The changed base: what differs from the base.
    pub(crate) drift: &'a Files,
    /// What differs from the changed base after each patch.
    pub(crate) patches: &'a [(String, Files)],
}

/// The judge's own harness.
fn harness() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/harness")
}

impl Bench {
    /// Prepares a base for changes of these files.
    pub(crate) fn prepare(kernel: &Kernel, paths: &BTreeSet<String>) -> Result<Self> {
        let cache = test_cache().context("there is no cache directory")?;
        let lab = Lab::open(&cache.join("reroll/lab"))?;
        let repo = Repo::open(&kernel.git_dir)?;
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let recipe = reroll::recipe::load("zone-device", project)?;
        let base = repo.base(&kernel.commit_id.to_string())?;
        let settings = Settings::on(&recipe, &places(&repo, &base, &recipe)?)?;
        let configuration = settings
            .configuration
            .iter()
            .find(|it| it.name == CONFIGURATION)
            .context("the recipe has the configuration")?
            .clone();
        let subject = Subject::without_mails(&repo, base, Vec::new(), settings)?;
        let prepared = Replay::prepare(&subject, &lab, &configuration, &|_| ())?;
        let replay = match prepared {
            Ok(replay) => replay,
            Err(unfit) => bail!(
                "{}: {}\n{}",
                kernel.name,
                unfit.reason,
                unfit.lines.join("\n")
            ),
        };
        let mut files = LabFiles::new();
        for path in paths {
            let file = repo.file(kernel.tree_id, BStr::new(path))?;
            files.insert(path.as_str().into(), file);
        }
        let own = harness_files(&harness())?;
        let mut key = format!("{FORMAT} {} {own} {}", kernel.tree_id, replay.compiler());
        for shared in ["khost.c", "khost.h"] {
            key += &fs::read_to_string(project.join("harness").join(shared))?;
        }
        let sentences = lab.outcomes().with_file_name("corpus");
        fs::create_dir_all(&sentences).context("cannot make a directory")?;
        Ok(Self {
            replay,
            files,
            sentences,
            key: key.into_bytes(),
        })
    }

    fn file(&self, case: &Case<'_>) -> PathBuf {
        let mut digest = Sha256::new();
        let mut add = |bytes: &[u8]| {
            digest.update(bytes.len().to_le_bytes());
            digest.update(bytes);
        };
        add(&self.key);
        add(format!("{:?} {:?}", case.kind.entry, case.kind.define).as_bytes());
        let patches = case.patches.iter().map(|(_, files)| files);
        for files in [case.drift].into_iter().chain(patches) {
            add(&files.len().to_le_bytes());
            for (path, bytes) in files {
                add(path.as_bytes());
                add(bytes);
            }
        }
        let name: String = digest.finalize()[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.sentences.join(name)
    }
}

impl<'a> Judge<'a> {
    pub(crate) fn new(bench: &'a Bench) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        let overlay = Overlay::new(bench.replay.source(), &dir.path().join("src"), &bench.files)?;
        Ok(Self {
            bench,
            overlay,
            dir,
        })
    }

    /// Judges, unless the very same was judged before.
    pub(crate) fn judge(&self, case: &Case<'_>) -> Result<Sentence> {
        let file = self.bench.file(case);
        if let Ok(bytes) = fs::read(&file)
            && let Ok(sentence) = serde_json::from_slice(&bytes)
        {
            return Ok(sentence);
        }
        let sentence = self.find_out(case)?;
        reroll::temporary::write_whole(&file, &serde_json::to_vec(&sentence)?)?;
        Ok(sentence)
    }

    fn find_out(&self, case: &Case<'_>) -> Result<Sentence> {
        let source = self.object_source(case.drift);
        self.put(&[case.drift])?;
        let base = self.dir.path().join("base.o");
        let before = match self.compile(case, &source, &base)? {
            Ok(complaints) => complaints,
            Err(lines) => return Ok(mistake("does not compile", &lines)),
        };
        if let Err(lines) = self.compile_others(case, &source)? {
            return Ok(mistake("does not compile elsewhere", &lines));
        }
        if case.patches.is_empty() {
            return Ok(Sentence::Right);
        }
        let mut variants = vec![("base".to_owned(), base)];
        for (index, (_, files)) in case.patches.iter().enumerate() {
            let number = index + 1;
            self.put(&[case.drift, files])?;
            let object = self.dir.path().join(format!("p{number}.o"));
            match self.compile(case, &source, &object)? {
                Err(lines) => {
                    return Ok(wrong(&format!("patch {number} does not compile"), &lines));
                }
                Ok(now) => {
                    let new = now.since(&before);
                    if !new.is_empty() {
                        return Ok(wrong(&format!("patch {number} brings a warning"), &new));
                    }
                }
            }
            variants.push((format!("p{number}"), object));
        }
        self.put(&[case.drift])?;
        self.run(case, &variants)
    }

    /// The file that has the function under test.
    fn object_source(&self, drift: &Files) -> String {
        let drifted = drift.keys().map(String::as_str);
        let mut paths = FILES.into_iter().chain(drifted);
        let has = |path: &&str| {
            let own = self.bench.files.get(BStr::new(path));
            let own = own.and_then(|file| Some(&file.as_ref()?.bytes));
            let bytes = drift.get(*path).or(own);
            bytes.is_some_and(|it| find_function(&String::from_utf8_lossy(it), RANGE).is_some())
        };
        paths.find(has).unwrap_or(FILES[0]).to_owned()
    }

    /// Makes the tree be the base with these changes, later ones over earlier ones.
    fn put(&self, changes: &[&Files]) -> Result<()> {
        let mut files = self.bench.files.clone();
        for (path, bytes) in changes.iter().flat_map(|files| files.iter()) {
            let file = File {
                mode: MODE_FILE,
                bytes: bytes.clone(),
            };
            files.insert(path.as_str().into(), Some(file));
        }
        self.overlay.put(&files)
    }

    fn compile(
        &self,
        case: &Case<'_>,
        file: &str,
        object: &Path,
    ) -> Result<Result<Complaints, Vec<String>>> {
        let unit = Unit {
            tree: self.overlay.path(),
            file,
            flags: &flags(case),
        };
        self.bench.replay.compile(unit, object)
    }

    /// Compiles what else the kind has changed: of what does not compile nothing can be said.
    fn compile_others(&self, case: &Case<'_>, source: &str) -> Result<Result<(), Vec<String>>> {
        let is_code = |path: &&String| path.ends_with(".c") && *path != source;
        for path in case.drift.keys().filter(is_code) {
            let object = self.dir.path().join("other.o");
            if let Err(lines) = self.compile(case, path, &object)? {
                return Ok(Err(lines));
            }
        }
        Ok(Ok(()))
    }

    /// Where the objects are that functions come from which the object under test has not.
    fn helpers(&self, case: &Case<'_>) -> Result<PathBuf> {
        let headers = case.drift.keys().any(|path| path.ends_with(".h"));
        let dir = self.dir.path().join("kept");
        fs::create_dir_all(&dir).context("cannot make a directory")?;
        for (source, object) in self.bench.replay.helpers() {
            let kept = dir.join(&object);
            if headers || case.drift.contains_key(&source) {
                if let Err(lines) = self.compile(case, &source, &kept)? {
                    bail!("{source} does not compile: {}", lines.join("\n"));
                }
            } else {
                fs::copy(self.bench.replay.kept().join(&object), &kept)
                    .with_context(|| format!("cannot copy `{object}`"))?;
            }
        }
        Ok(dir)
    }

    /// Runs the objects, and compares.
    fn run(&self, case: &Case<'_>, variants: &[(String, PathBuf)]) -> Result<Sentence> {
        let kept = self.helpers(case)?;
        for entry in [Some(RANGE), case.kind.entry].into_iter().flatten() {
            let plan = Plan {
                harness: &harness(),
                tree: self.overlay.path(),
                flags: &flags(case),
                kept: &kept,
                entry,
                variants,
                work: self.dir.path(),
            };
            let program = match self.bench.replay.link(plan)? {
                Ok(program) => program,
                Err(lines) => return Ok(mistake("cannot be run", &lines)),
            };
            let sentence = run_program(&program)?;
            if sentence != Sentence::Right {
                return Ok(sentence);
            }
        }
        Ok(Sentence::Right)
    }
}

fn flags(case: &Case<'_>) -> Vec<String> {
    case.kind
        .define
        .iter()
        .map(|name| format!("-D{name}=1"))
        .collect()
}

/// Reads what the harness says: see `harness/compare.c`.
fn run_program(program: &Path) -> Result<Sentence> {
    let task = Task::new(program).home().timeout(Duration::from_mins(5));
    let output = task.run()?;
    let mut checks = 0;
    let mut differing = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(Value::Object(record)) = serde_json::from_str(line) else {
            continue;
        };
        if let Some(number) = record.get("checks").and_then(Value::as_i64) {
            checks = number;
        } else if let Some(name) = record.get("variant").and_then(Value::as_str) {
            differing
                .entry(name.to_owned())
                .or_insert_with(|| tell(&record));
        }
    }
    if let Some(what) = differing.get("base") {
        return Ok(Sentence::Mistake(format!(
            "the changed base crashes, or is not the same twice: {what}"
        )));
    }
    if let Some((name, what)) = differing.first_key_value() {
        let number = name.trim_start_matches('p');
        return Ok(Sentence::Wrong(format!("patch {number} differs: {what}")));
    }
    if output.exit != End::Code(0) || checks <= 0 {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!(
            "the harness ended with {:?} after {checks} comparisons: {said}",
            output.exit
        );
    }
    Ok(Sentence::Right)
}

/// A difference in one line.
fn tell(record: &serde_json::Map<String, Value>) -> String {
    let value = |key: &str| record.get(key).map(ToString::to_string).unwrap_or_default();
    let place = format!(
        "type {} order {} altmap {} reserve {} node {} of {} pages",
        value("type"),
        value("order"),
        value("altmap"),
        value("reserve"),
        value("nid"),
        value("pages")
    );
    let what = if value("status") != "0" {
        format!("it crashes with status {}", value("status"))
    } else if value("page").is_empty() {
        format!(
            "pageblock calls {}, notes {} (now and in the base)",
            value("pageblock_calls"),
            value("notes")
        )
    } else {
        format!(
            "page {} word {} is {}, not {}",
            value("page"),
            value("word"),
            value("got"),
            value("expected")
        )
    };
    format!("{place}: {what}").replace('"', "")
}

fn wrong(what: &str, lines: &[String]) -> Sentence {
    Sentence::Wrong(format!("{what}: {}", first(lines)))
}

fn mistake(what: &str, lines: &[String]) -> Sentence {
    Sentence::Mistake(format!("the changed base {what}: {}", lines.join(" / ")))
}

fn first(lines: &[String]) -> &str {
    lines.first().map_or("", String::as_str)
}
