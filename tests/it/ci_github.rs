//! The workflow for GitHub: its own steps are run in order, as a runner would, with a checkout, artifacts and outputs of this test's.
//!
//! A key, an action, an expression or a condition that is not known here is a failure: what is not understood was not tested.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::bot::Play;
use crate::ci_gitlab::{assert_all_done, project, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Workflow {
    #[serde(rename = "name")]
    _name: String,
    on: BTreeMap<String, Option<Value>>,
    permissions: BTreeMap<String, String>,
    #[serde(rename = "concurrency")]
    _concurrency: String,
    jobs: BTreeMap<String, Job>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Job {
    name: Option<String>,
    #[serde(default)]
    needs: Needs,
    r#if: Option<String>,
    runs_on: String,
    #[serde(default)]
    outputs: BTreeMap<String, String>,
    strategy: Option<Strategy>,
    steps: Vec<Step>,
}

#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Needs {
    #[default]
    Nothing,
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Strategy {
    fail_fast: bool,
    matrix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    id: Option<String>,
    r#if: Option<String>,
    uses: Option<String>,
    #[serde(default)]
    with: BTreeMap<String, Value>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    run: Option<String>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Success,
    Failure,
    Skipped,
}

/// A run of the whole workflow.
#[derive(Default)]
struct Run {
    /// By job, or `cell NAME` for one of a matrix.
    ends: BTreeMap<String, End>,
    /// By job, then name.
    outputs: BTreeMap<String, BTreeMap<String, String>>,
    summary: String,
    log: String,
}

/// The values of expressions while a job runs.
#[derive(Default)]
struct Context {
    /// By `needs.JOB.outputs.NAME`, `steps.ID.outputs.NAME` and `matrix.NAME`.
    values: BTreeMap<String, String>,
}

/// What runs a workflow, and what it keeps between jobs.
struct Runner<'a> {
    play: &'a Play,
    /// The id of a cell whose machine has no `reroll`.
    broken: Option<&'a str>,
    jobs: usize,
}

impl Job {
    fn needs(&self) -> &[String] {
        match &self.needs {
            Needs::Nothing => &[],
            Needs::One(one) => std::slice::from_ref(one),
            Needs::Several(several) => several,
        }
    }
}

impl Context {
    /// Replaces every `${{ .. }}`.
    fn fill(&self, text: &str) -> String {
        let mut parts = text.split("${{");
        let mut filled = parts.next().expect("a first part").to_owned();
        for part in parts {
            let (expression, rest) = part.split_once("}}").expect("an end of the expression");
            filled.push_str(&self.value(expression.trim()));
            filled.push_str(rest);
        }
        filled
    }

    fn value(&self, expression: &str) -> String {
        if expression == "vars.REROLL_RUNNER || 'self-hosted'" {
            return "self-hosted".to_owned();
        }
        let path = expression
            .strip_prefix("fromJSON(")
            .and_then(|rest| rest.strip_suffix(')'))
            .unwrap_or(expression);
        let value = self.values.get(path);
        value.cloned().unwrap_or_else(|| {
            panic!(
                "an unknown expression: {expression}; known: {:?}",
                self.values.keys()
            )
        })
    }

    /// Whether something is to be run; `sound` says that nothing before it has failed.
    fn holds(&self, condition: Option<&String>, sound: bool) -> bool {
        let Some(condition) = condition else {
            return sound;
        };
        let terms: Vec<_> = condition.split("&&").map(str::trim).collect();
        let is_always = terms.contains(&"always()");
        let holds = |term: &&str| {
            if let Some((path, value)) = term.split_once(" == ") {
                return self.value(path) == value.trim_matches('\'');
            }
            assert_eq!(*term, "always()", "an unknown condition: {condition}");
            true
        };
        terms.iter().all(holds) && (sound || is_always)
    }
}

impl Runner<'_> {
    /// Runs every job after those it needs.
    fn run(&mut self, text: &str) -> Run {
        let workflow: Workflow = serde_saphyr::from_str(text).expect("a workflow");
        let triggers: Vec<_> = workflow.on.keys().map(String::as_str).collect();
        assert_eq!(triggers, ["schedule", "workflow_dispatch"]);
        assert_eq!(workflow.permissions["contents"], "write", "it pushes");
        drop(fs::remove_dir_all(self.play.path("artifacts")));
        fs::create_dir(self.play.path("artifacts")).expect("a directory");
        let mut run = Run::default();
        let mut open: BTreeSet<&String> = workflow.jobs.keys().collect();
        while !open.is_empty() {
            let is_ready = |name: &&&String| {
                let needs = workflow.jobs[**name].needs();
                needs.iter().all(|need| run.ends.contains_key(need))
            };
            let name = *open.iter().find(is_ready).expect("no job needs itself");
            open.remove(name);
            self.job(name, &workflow.jobs[name], &mut run);
        }
        run
    }

    fn job(&mut self, name: &str, job: &Job, run: &mut Run) {
        let mut context = Context::default();
        for need in job.needs() {
            for (output, value) in run.outputs.get(need).into_iter().flatten() {
                let path = format!("needs.{need}.outputs.{output}");
                context.values.insert(path, value.clone());
            }
        }
        let sound = job.needs().iter().all(|it| run.ends[it] == End::Success);
        if !context.holds(job.r#if.as_ref(), sound) {
            run.ends.insert(name.to_owned(), End::Skipped);
            return;
        }
        assert_eq!(context.fill(&job.runs_on), "self-hosted");
        let end = match &job.strategy {
            None => self.steps(name, job, context, run),
            Some(strategy) => self.cells(job, strategy, &context, run),
        };
        run.ends.insert(name.to_owned(), end);
    }

    /// Every cell of the matrix, each on a machine of its own.
    fn cells(&mut self, job: &Job, strategy: &Strategy, context: &Context, run: &mut Run) -> End {
        assert!(
            !strategy.fail_fast,
            "a cell that fails must not end the others"
        );
        let matrix: Value = serde_json::from_str(&context.fill(&strategy.matrix)).expect("JSON");
        let cells = matrix["include"].as_array().expect("a list");
        assert!(
            (1..=256).contains(&cells.len()),
            "more jobs than there may be"
        );
        let mut all = End::Success;
        for cell in cells {
            let mut context = Context {
                values: context.values.clone(),
            };
            for (key, value) in cell.as_object().expect("an object") {
                let value = value.as_str().expect("text").to_owned();
                context.values.insert(format!("matrix.{key}"), value);
            }
            let name = context.fill(job.name.as_ref().expect("a name"));
            let end = self.steps(&name, job, context, run);
            run.ends.insert(format!("cell {name}"), end);
            if end == End::Failure {
                all = end;
            }
        }
        all
    }

    /// The steps of one job, in a directory of its own.
    fn steps(&mut self, name: &str, job: &Job, mut context: Context, run: &mut Run) -> End {
        self.jobs += 1;
        let machine = format!("machines/{}", self.jobs);
        self.play.write(&format!("{machine}/home/.keep"), "");
        let mut sound = true;
        for step in &job.steps {
            if !context.holds(step.r#if.as_ref(), sound) {
                continue;
            }
            match (&step.uses, &step.run) {
                (Some(action), None) => self.action(action, step, &machine, &context),
                (None, Some(script)) => {
                    let outputs = self.script(name, script, step, &machine, &context, run);
                    sound &= outputs.is_some();
                    for (output, value) in outputs.into_iter().flatten() {
                        let id = step.id.as_ref().expect("outputs need an id");
                        let path = format!("steps.{id}.outputs.{output}");
                        context.values.insert(path, value);
                    }
                }
                _ => panic!("a step of {name} that is neither an action nor a script"),
            }
        }
        if !sound {
            return End::Failure;
        }
        let outputs = job.outputs.iter();
        let outputs = outputs.map(|(output, text)| (output.clone(), context.fill(text)));
        run.outputs.insert(name.to_owned(), outputs.collect());
        End::Success
    }

    fn action(&self, action: &str, step: &Step, machine: &str, context: &Context) {
        let with = |key: &str| {
            let value = step.with.get(key).expect("an input");
            value
                .as_str()
                .map_or_else(|| value.to_string(), |text| context.fill(text))
        };
        let inputs: Vec<_> = step.with.keys().map(String::as_str).collect();
        let work = self.play.path(&format!("{machine}/work"));
        match (action, &inputs[..]) {
            ("actions/checkout@v4", []) => self.checkout(machine),
            ("actions/upload-artifact@v4", ["name", "path"]) => {
                let name = with("name");
                assert!(
                    !name.contains(['"', ':', '<', '>', '|', '*', '?', '\r', '\n', '\\', '/']),
                    "no name for an artifact: {name}"
                );
                let to = self.play.path("artifacts").join(&name);
                assert!(!to.exists(), "two artifacts are called {name}");
                crate::support::copy(&work.join(with("path")), &to);
            }
            ("actions/download-artifact@v4", ["merge-multiple", "path"]) => {
                assert_eq!(with("merge-multiple"), "true");
                for entry in fs::read_dir(self.play.path("artifacts")).expect("a directory") {
                    let from = entry.expect("an entry").path();
                    crate::support::copy(&from, &work.join(with("path")));
                }
            }
            _ => panic!("an unknown action: {action} with {inputs:?}"),
        }
    }

    /// What the action does: the newest commit alone, of a repository that is there for this job only.
    fn checkout(&self, machine: &str) {
        let origin = format!("file://{}", self.play.path("shared.git").display());
        let work = format!("{machine}/work");
        self.play.git(
            ".",
            &["clone", "-q", "--depth=1", "--branch=main", &origin, &work],
        );
    }

    /// Runs a script as a runner does; its outputs, or none where it fails.
    fn script(
        &self,
        job: &str,
        script: &str,
        step: &Step,
        machine: &str,
        context: &Context,
        run: &mut Run,
    ) -> Option<BTreeMap<String, String>> {
        assert!(
            !script.contains("${{"),
            "a shell reads what an expression is: {script}"
        );
        let file = |name: &str| self.play.path(&format!("{machine}/{name}"));
        for name in ["output", "summary"] {
            fs::write(file(name), "").expect("a file");
        }
        fs::write(file("script.sh"), script).expect("a file");
        let script = file("script.sh").to_string_lossy().into_owned();
        let work = format!("{machine}/work");
        let mut command = self.play.command("bash", &work, &["-e", &script]);
        if self.broken != Some(job) {
            command.env("PATH", path_with_reroll());
        }
        command
            .env("HOME", file("home"))
            .env("XDG_CACHE_HOME", file("home/cache"))
            .env("CI", "true")
            .env("GITHUB_OUTPUT", file("output"))
            .env("GITHUB_STEP_SUMMARY", file("summary"));
        for (name, value) in &step.env {
            command.env(name, context.fill(value));
        }
        let ended = command.output().expect("bash starts");
        let said = [&ended.stdout[..], &ended.stderr].concat();
        run.log
            .push_str(&format!("{job}: {}\n", String::from_utf8_lossy(&said)));
        run.summary.push_str(&text(&file("summary")));
        let outputs = text(&file("output"));
        let pair = |line: &str| {
            let (name, value) = line.split_once('=').expect("NAME=VALUE");
            (name.to_owned(), value.to_owned())
        };
        ended
            .status
            .success()
            .then(|| outputs.lines().map(pair).collect())
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

fn path_with_reroll() -> String {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_reroll"));
    let dir = binary.parent().expect("a directory").display();
    format!("{dir}:{}", std::env::var("PATH").expect("PATH"))
}

/// A project on a host, set up as the workflow says.
fn hosted() -> Play {
    let play = project();
    let config = play.read("project/bot.toml");
    play.write("project/bot.toml", &config.replace("\"bot.git\"", "\".\""));
    play.git("project", &["add", "-A"]);
    play.git("project", &["commit", "-q", "-m", "project"]);
    play.git("project", &["push", "-q", "../shared.git", "main"]);
    play
}

fn runner<'a>(play: &'a Play, broken: Option<&'a str>) -> Runner<'a> {
    let jobs = fs::read_dir(play.path("machines")).map_or(0, Iterator::count);
    Runner { play, broken, jobs }
}

fn run(play: &Play, broken: Option<&str>) -> Run {
    runner(play, broken).run(&read("ci/github.yml"))
}

#[test]
fn the_github_workflow_goes_from_the_plan_over_its_cells_to_the_page() {
    let play = hosted();
    let ended = run(&play, None);
    let log = &ended.log;
    let names: Vec<_> = ended.ends.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "cell",
            "cell tiny/v1.1/quick",
            "cell tiny/v1.2/quick",
            "merge",
            "plan"
        ],
        "{log}"
    );
    assert!(
        ended.ends.values().all(|end| *end == End::Success),
        "{:?}\n{log}",
        ended.ends
    );
    assert_all_done(&play, log);
    assert!(
        ended.summary.contains("| v1.2 | clean |\n| v1.1 | clean |"),
        "{}",
        ended.summary
    );
    assert!(
        play.read("artifacts/report/index.html")
            .contains("tiny on v1.2")
    );
    assert!(
        play.read("artifacts/report/reroll.xml")
            .contains("tiny on v1.1")
    );

    // A runner that was never there before has the state: nothing is new.
    let before = play.refs("shared.git");
    let ended = run(&play, None);
    assert_eq!(ended.outputs["plan"]["any"], "false", "{}", ended.log);
    assert_eq!(
        (ended.ends["cell"], ended.ends["merge"]),
        (End::Skipped, End::Skipped)
    );
    assert_eq!(play.refs("shared.git"), before);
}

#[test]
fn a_cell_that_breaks_takes_no_other_with_it_and_is_planned_again() {
    let play = hosted();
    let ended = run(&play, Some("tiny/v1.1/quick"));
    assert_eq!(ended.ends["cell tiny/v1.1/quick"], End::Failure);
    assert_eq!(ended.ends["cell tiny/v1.2/quick"], End::Success);
    assert_eq!(ended.ends["merge"], End::Success, "{}", ended.log);
    let records = || {
        play.refs("shared.git")
            .matches("refs/reroll/records/")
            .count()
    };
    assert_eq!(records(), 1, "{}", ended.log);
    assert!(
        ended.summary.contains("| v1.2 | clean |") && !ended.summary.contains("v1.1"),
        "{}",
        ended.summary
    );
    let ended = run(&play, None);
    assert!(
        !ended.ends.contains_key("cell tiny/v1.2/quick"),
        "it is done"
    );
    assert_eq!(ended.ends["cell tiny/v1.1/quick"], End::Success);
    assert_all_done(&play, &ended.log);
}

/// Runs the workflow with one change.
fn run_changed(from: &str, to: &str) {
    let text = read("ci/github.yml");
    assert!(text.contains(from), "{from}");
    let play = hosted();
    runner(&play, None).run(&text.replace(from, to));
}

#[test]
#[should_panic(expected = "an unknown expression: steps.plan.outputs.matrices")]
fn an_expression_that_leads_nowhere_is_seen() {
    run_changed(
        "${{ steps.plan.outputs.matrix }}",
        "${{ steps.plan.outputs.matrices }}",
    );
}

#[test]
#[should_panic(expected = "an unknown action: actions/checkout@v9")]
fn an_action_that_is_not_known_is_seen() {
    run_changed("actions/checkout@v4", "actions/checkout@v9");
}

#[test]
#[should_panic(expected = "unknown field `timeout`")]
fn a_key_that_is_not_known_is_seen() {
    run_changed("    strategy:", "    timeout: 5\n    strategy:");
}
