//! The pipeline for GitLab, run by `gitlab-ci-local` with its shell executor.

use std::fs;
use std::path::{Path, PathBuf};

use crate::bot::{Play, recipe};
use crate::support::left_out;

/// What stands for a project access token.
const TOKEN: &str = "glpat-a-secret-of-this-test";

/// A project with `ci/gitlab.yml`, and what a runner's image would have in `PATH`.
struct Project {
    play: Play,
    runner: PathBuf,
}

impl Project {
    /// None where there is no `gitlab-ci-local`.
    fn new() -> Option<Self> {
        let Some(runner) = crate::support::in_path("gitlab-ci-local") else {
            left_out(
                "the GitLab pipeline",
                "gitlab-ci-local is not there; `tests/run` installs it",
            );
            return None;
        };
        let play = project();
        let pipeline = read("ci/gitlab.yml");
        play.write("project/.gitlab-ci.yml", &pipeline);
        play.write("project/.gitignore", ".gitlab-ci-local\nbot.git\n");
        let origin = "git@gitlab.example.org:group/project.git";
        play.git("project", &["remote", "add", "origin", origin]);
        play.git("project", &["add", "-A"]);
        play.git("project", &["commit", "-q", "-m", "project"]);
        let project = Self { play, runner };
        project.spy_on_git();
        Some(project)
    }

    /// A git in front of the real one that tells which job started it, and what that job gives git. The job's name is the parent's:
    /// a git that reroll starts sees nothing of it.
    fn spy_on_git(&self) {
        let git = crate::support::in_path("git").expect("git");
        let told = self.play.path("told");
        self.play.write(
            "bin/git",
            &format!(
                "#!/bin/sh\njob=$(tr '\\0' '\\n' < /proc/$PPID/environ | sed -n 's/^CI_JOB_NAME=//p')\necho \"$job $GIT_CONFIG_KEY_0 $GIT_CONFIG_VALUE_0\" >> '{}'\nexec '{}' \"$@\"\n",
                told.display(),
                git.display()
            ),
        );
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(self.play.path("bin/git"), mode).expect("a mode");
    }

    /// Runs the pipeline; what it says.
    fn run(&self) -> String {
        let binary = Path::new(env!("CARGO_BIN_EXE_reroll"));
        let path = std::env::var("PATH").expect("PATH");
        let path = format!(
            "{}:{}:{path}",
            self.play.path("bin").display(),
            binary.parent().expect("a directory").display()
        );
        let mut command = self
            .play
            .command(&self.runner.to_string_lossy(), "project", &[]);
        let output = command.env("PATH", path).output().expect("it starts");
        let text = [&output.stdout[..], &output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(output.status.success(), "{text}");
        text
    }
}

/// A file of this repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file")
}

/// A bot's own project in `project`, with two bases in a remote and a repository to push to.
pub(crate) fn project() -> Play {
    let play = Play::new("push = \"shared.git\"\n");
    play.git(".", &["init", "-q", "--bare", "-b", "main", "shared.git"]);
    play.release(1, "one");
    play.release(2, "two");
    let mut config = play.read("bot.toml");
    for name in ["remote", "shared.git"] {
        let absolute = format!("\"{}\"", play.path(name).display());
        config = config.replace(&format!("\"{name}\""), &absolute);
    }
    play.git(".", &["init", "-q", "-b", "main", "project"]);
    play.write("project/bot.toml", &config);
    let series = play.read("patches/tiny/series.toml");
    play.write("project/patches/tiny/series.toml", &series);
    for (path, text) in recipe() {
        play.write(&format!("project/patches/tiny/{path}"), text);
    }
    play
}

/// Both bases have a result and a record where the bot pushes to.
#[track_caller]
pub(crate) fn assert_all_done(play: &Play, said: &str) {
    let refs = play.refs("shared.git");
    for prefix in ["refs/heads/reroll/tiny/", "refs/reroll/records/tiny/"] {
        assert_eq!(refs.matches(prefix).count(), 2, "{refs}\n{said}");
    }
}

#[test]
fn the_gitlab_pipeline_runs_on_a_shell() {
    let Some(project) = Project::new() else {
        return;
    };
    let said = project.run();
    assert_all_done(&project.play, &said);
    // Once more: the plan has nothing, and nothing moves.
    let before = project.play.refs("shared.git");
    let said = project.run();
    assert!(said.contains("nothing new"), "{said}");
    assert_eq!(project.play.refs("shared.git"), before);
}

#[test]
fn every_job_of_the_gitlab_pipeline_has_the_token_and_none_shows_it() {
    let Some(project) = Project::new() else {
        return;
    };
    // Where the runner has the variables of a project.
    let variables = format!("global:\n  BOT_TOKEN: {TOKEN}\n");
    project
        .play
        .write("home/.gitlab-ci-local/variables.yml", &variables);
    let said = project.run();
    assert_all_done(&project.play, &said);
    assert!(!said.contains(TOKEN), "{said}");
    let told = project.play.read("told");
    for job in ["plan", "tiny/v1.1/quick", "tiny/v1.2/quick", "merge"] {
        // Those that stay on the machine are given nothing.
        let mut lines = told
            .lines()
            .filter(|line| line.split(' ').next() == Some(job) && *line != format!("{job}  "))
            .peekable();
        assert!(lines.peek().is_some(), "{job} asks git nothing: {told}");
        for line in lines {
            let host = "gitlab.example.org/";
            let given = format!("{job} url.https://bot:{TOKEN}@{host}.insteadOf https://{host}");
            assert_eq!(line.to_lowercase(), given.to_lowercase());
        }
    }
}
