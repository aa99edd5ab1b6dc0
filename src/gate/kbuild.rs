//! Kbuild in an `O=` directory of its own: configured once, then asked for objects after each patch.
//!
//! Hides make's variables, what a log says, and the proof that an analyser ran.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Outcome;
use super::cache::Key;
use super::run::Context;
use super::settings::{Configuration, Wanted};
use super::warnings::{self, Warning};
use crate::exec::{End, Task};
use crate::lab::BuildDir;

/// A prepared `O=` directory.
pub(super) struct Bench<'a, 'b> {
    pub(super) context: &'a Context<'b>,
    pub(super) dir: BuildDir,
    /// How many jobs `make` may run.
    jobs: usize,
}

/// Why something could not be built.
pub(super) struct Trouble {
    pub(super) reason: String,
    pub(super) lines: Vec<String>,
    pub(super) log: PathBuf,
}

/// How a build ended.
pub(super) struct Built {
    pub(super) warnings: Vec<Warning>,
    pub(super) log: PathBuf,
}

/// `Ok(Err(_))` is a step that failed: it says something about the series or the machine, not about us.
pub(super) type Step<T> = Result<Result<T, Trouble>>;

/// Leaves with a failed step.
macro_rules! step {
    ($step:expr) => {
        match $step? {
            Ok(value) => value,
            Err(trouble) => return Ok(Err(trouble)),
        }
    };
}
pub(super) use step;

/// Longer than any single step takes on a slow machine: what hangs is stopped.
const TIMEOUT: Duration = Duration::from_mins(45);

/// What sparse says about this file proves that it ran, and on which file: kbuild skips a sparse that it finds too old
/// and says nothing that changes its exit code.
const CANARY: &str = "static int reroll_canary(const int __attribute__((noderef, address_space(1))) *pointer)\n\
                      {\n\treturn *pointer;\n}\n";
const CANARY_NAME: &str = "reroll-canary.h";

/// All that decides what kbuild makes of a source.
pub(super) fn identity<'a>(
    context: &'a Context<'_>,
    configuration: &'a Configuration,
) -> (Vec<String>, Vec<String>) {
    let wanted = context.subject.settings.wanted(configuration);
    let options = wanted
        .map(|wanted| format!("{}={}", wanted.name, wanted.value))
        .collect();
    let mut variables = configuration.make_variables();
    variables.push(configuration.defconfig.clone());
    (variables, options)
}

impl Trouble {
    /// `blank` as an error for this reason.
    pub(super) fn outcome(&self, blank: Outcome, what: &str) -> Outcome {
        blank
            .error(format!("{what}: {}", self.reason))
            .lines(self.lines.clone())
            .log(self.log.clone())
    }
}

impl<'a, 'b> Bench<'a, 'b> {
    /// The `O=` directory of a configuration, ready to build objects in; its lock is held from here on.
    pub(super) fn prepare(
        context: &'a Context<'b>,
        configuration: &Configuration,
    ) -> Result<Result<Self, Trouble>> {
        let subject = context.subject;
        let name = &configuration.name;
        let source = context.source(name)?;
        let tools = configuration.tools();
        let versions = tools.iter().map(|tool| context.version(tool));
        let versions: Vec<_> = versions.collect::<Result<_>>()?;
        let paths: Vec<_> = subject.base_files.keys().map(ToString::to_string).collect();
        let key = Key::of(&(
            "bench",
            subject.base.tree_id.to_string(),
            identity(context, configuration),
            paths,
            versions,
        ));
        let dir = context
            .lab
            .build_dir(key.as_str(), &source, &subject.base_files)?;
        let jobs = context.make_jobs;
        let bench = Self { context, dir, jobs };
        if !bench.dir.is_ready() {
            context.step(name, "configuring", 0, bench.steps());
            if let Err(trouble) = bench.configure(configuration)? {
                return Ok(Err(trouble));
            }
            bench.dir.set_ready()?;
        }
        fs::write(bench.canary(), CANARY).context("cannot write the canary for sparse")?;
        Ok(Ok(bench))
    }

    /// The same, for a build so large that it is worth all cores.
    pub(super) fn with_all_cores(mut self) -> Self {
        self.jobs = std::thread::available_parallelism().map_or(1, usize::from);
        self
    }

    fn configure(&self, configuration: &Configuration) -> Result<Result<(), Trouble>> {
        let settings = &self.context.subject.settings;
        let steps = [configuration.defconfig.as_str(), "olddefconfig", "prepare"];
        for (index, target) in steps.into_iter().enumerate() {
            if index == 1 {
                let lines: Vec<_> = settings
                    .wanted(configuration)
                    .map(|wanted| match wanted.value {
                        "n" => format!("# CONFIG_{} is not set\n", wanted.name),
                        value => format!("CONFIG_{}={value}\n", wanted.name),
                    })
                    .collect();
                let path = self.dir.objects().join(".config");
                let old = fs::read_to_string(&path).context("`defconfig` left no `.config`")?;
                fs::write(&path, old + &lines.concat()).context("cannot write `.config`")?;
            }
            let built = self.make(
                configuration,
                &format!("{}-{target}", configuration.name),
                &[target.to_owned()],
            )?;
            let built = match built {
                Ok(built) => built,
                Err(trouble) => return Ok(Err(trouble)),
            };
            if index == 1 {
                let config = fs::read_to_string(self.dir.objects().join(".config"))?;
                let lost = lost_options(settings.wanted(configuration), &config);
                if !lost.is_empty() {
                    let reason = format!(
                        "options did not survive `olddefconfig`: {}",
                        lost.join(", ")
                    );
                    return Ok(Err(Trouble {
                        reason,
                        lines: lost,
                        log: built.log,
                    }));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Runs `make` for `targets`; what it complained about, or why it failed.
    pub(super) fn make(
        &self,
        configuration: &Configuration,
        log: &str,
        targets: &[String],
    ) -> Result<Result<Built, Trouble>> {
        let log = self.context.log(log);
        let source = self.dir.source();
        let analyses =
            configuration.analyser.is_some() && targets.iter().any(|target| target.contains('/'));
        let jobs = if analyses { 1 } else { self.jobs };
        let mut task = Task::new("make")
            .home()
            .args(["-C"])
            .arg(&source)
            .arg(format!("O={}", self.dir.objects().display()))
            .arg(format!("-j{jobs}"))
            .args(configuration.make_variables());
        if analyses {
            // Sparse 0.6.4 does not know the keyword that newer kernels ask for, and kbuild would not run it then.
            let check = format!(
                "CHECK=sparse -D__typeof_unqual__=__typeof__ -include {}",
                self.canary().display()
            );
            task = task.args(["C=2", &check]);
        }
        let output = self
            .dir
            .run(task.args(targets).log(&log).timeout(TIMEOUT))?;
        let text = fs::read(&log).context("cannot read a log")?;
        let source = source.display().to_string();
        if !output.exit.success() {
            let reason = match output.exit {
                End::TimedOut => format!("`make {}` took too long", targets.join(" ")),
                _ => format!("`make {}` failed", targets.join(" ")),
            };
            return Ok(Err(Trouble {
                reason,
                lines: warnings::errors(&text, &source),
                log,
            }));
        }
        let mut warnings = warnings::parse(&text, &source);
        if analyses {
            if let Some(target) = not_analysed(&String::from_utf8_lossy(&text), targets) {
                let reason = format!("sparse did not run on the source of `{target}`");
                return Ok(Err(Trouble {
                    reason,
                    lines: warnings::errors(&text, &source),
                    log,
                }));
            }
            warnings.retain(|warning| !warning.key.contains(CANARY_NAME));
        }
        Ok(Ok(Built { warnings, log }))
    }

    /// Builds those of `targets` that this source has and names them: what is not there cannot be needed either.
    pub(super) fn make_what_can(
        &self,
        configuration: &Configuration,
        log: &str,
        targets: &[String],
    ) -> Result<Vec<String>> {
        if targets.is_empty() || self.make(configuration, log, targets)?.is_ok() {
            return Ok(targets.to_vec());
        }
        let mut made = Vec::new();
        for target in targets {
            if self
                .make(
                    configuration,
                    &format!("{log}-{}", flat(target)),
                    std::slice::from_ref(target),
                )?
                .is_ok()
            {
                made.push(target.clone());
            }
        }
        Ok(made)
    }

    /// Number of steps that a bar shows.
    pub(super) fn steps(&self) -> u64 {
        self.context.subject.patches.len() as u64 + 2
    }

    fn canary(&self) -> PathBuf {
        self.dir.kept(0).with_file_name(CANARY_NAME)
    }
}

/// The wanted options that a `.config` does not have.
fn lost_options<'a>(wanted: impl Iterator<Item = Wanted<'a>>, config: &str) -> Vec<String> {
    let mut lost = Vec::new();
    for option in wanted {
        let prefix = format!("CONFIG_{}=", option.name);
        let is = config
            .lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .unwrap_or("n");
        if is.trim_matches('"') != option.value.trim_matches('"') {
            lost.push(format!("{}={} (it is {is})", option.name, option.value));
        }
    }
    lost
}

/// The first target whose source sparse did not look at: no canary after its `CHECK` line.
fn not_analysed<'a>(log: &str, targets: &'a [String]) -> Option<&'a String> {
    let mut current = "";
    let mut seen = Vec::new();
    for line in log.lines() {
        let trimmed = line.trim_start();
        if let Some(path) = trimmed.strip_prefix("CHECK ") {
            current = path.trim();
        } else if line.contains(CANARY_NAME) && line.contains("warning:") {
            seen.push(current);
        }
    }
    let source = |target: &str| format!("/{}.c", target.trim_end_matches(".o"));
    targets.iter().find(|target| {
        !seen
            .iter()
            .any(|path| format!("/{path}").ends_with(&source(target)))
    })
}

/// The file name under which an object is kept.
pub(super) fn flat(object: &str) -> String {
    Path::new(object).file_name().map_or_else(
        || object.replace('/', "-"),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_vanished_is_named() {
        let wanted = [("A", "y"), ("B", "y"), ("C", "n"), ("D", "n")]
            .map(|(name, value)| Wanted { name, value });
        let lost = lost_options(
            wanted.into_iter(),
            "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\n",
        );
        assert_eq!(lost, ["B=y (it is n)", "C=n (it is y)"]);
    }

    #[test]
    fn a_check_line_without_a_canary_is_no_proof() {
        let targets = ["mm/a.o".to_owned()];
        let ran = "  CHECK   ../mm/a.c\n/x/reroll-canary.h:3:9: warning: dereference of noderef expression\n";
        assert_eq!(not_analysed(ran, &targets), None);
        assert_eq!(
            not_analysed("  CHECK   ../mm/a.c\n  CC      mm/a.o\n", &targets),
            Some(&targets[0])
        );
        let other = "  CHECK   scripts/mod/empty.c\n/x/reroll-canary.h:3:9: warning: x\n";
        assert_eq!(not_analysed(other, &targets), Some(&targets[0]));
    }
}
