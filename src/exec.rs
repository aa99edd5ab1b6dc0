//! Runs child processes: the only spawner.
//!
//! Hides process groups, timeouts and interruption: a child never outlives the run that started it. Hides, too, the user's surroundings: a child
//! sees of the environment what [`surroundings`] lists, and no home.

mod git;
mod surroundings;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::process::Signal;

use crate::error::Refusal;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT, SIGTERM and SIGHUP set a flag that the long loops look at, instead of killing the process.
pub fn catch_signals() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::SeqCst)).context("cannot catch signals")
}

/// Stops a long loop once the user has asked for it (exit 130).
pub fn check_interrupted() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) {
        return Err(Refusal::interrupted().into());
    }
    Ok(())
}

/// What a child left behind.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub exit: End,
    /// What it wrote to standard output, where that was not sent to a file.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, where that was not sent to a file.
    pub stderr: Vec<u8>,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Killed by us: it ran longer than it was given.
    TimedOut,
}

impl End {
    /// Whether it ended with code 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

/// A child to run: never through a shell, in a process group of its own, with no standard input
/// unless given.
#[derive(Debug)]
pub struct Task {
    program: OsString,
    command: Command,
    timeout: Option<Duration>,
    input: Option<Vec<u8>>,
    held: Option<File>,
    log: Option<PathBuf>,
    /// What the child works in, and nobody needs when it has ended.
    place: Option<tempfile::TempDir>,
}

impl Task {
    /// A child running `program`, found in `PATH`. Of the user's environment it sees where programs and temporary files are, and nothing
    /// else: no home, language, flags or configuration.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref();
        #[expect(clippy::disallowed_methods, reason = "the one spawner")]
        let mut command = Command::new(program);
        command.env_clear().envs(surroundings::plain());
        Self {
            program: program.to_owned(),
            command,
            timeout: None,
            input: None,
            held: None,
            log: None,
            place: None,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Lets the child see the user's home: for compilers and what runs them, whose caches lie there.
    #[must_use]
    pub fn home(self) -> Self {
        self.envs(surroundings::home())
    }

    /// Lets the child see what the network needs: the home, proxies, certificates, agents and passwords.
    #[must_use]
    pub fn network(self) -> Self {
        self.envs(surroundings::network())
    }

    fn envs(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.command.envs(variables);
        self
    }

    /// Runs in `dir`.
    #[must_use]
    pub fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Kills the child's whole group after this long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Bytes for its standard input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// An open file as its standard input (of a child that is fed: as its standard output, to which it must not write).
    /// A lock on that file lasts until the child is gone as well, even where this
    /// process is killed first.
    #[must_use]
    pub fn holding(mut self, file: File) -> Self {
        self.held = Some(file);
        self
    }

    /// Sends both outputs to `file` (created anew) instead of into memory.
    #[must_use]
    pub fn log(mut self, file: &Path) -> Self {
        self.log = Some(file.to_owned());
        self
    }

    /// Runs it to its end. An `Err` means that it could not be started or that the user stopped the run;
    /// a failing child is an [`Output`].
    pub fn run(mut self) -> Result<Output> {
        let (stdout, stderr) = match &self.log {
            Some(path) => {
                let file = File::create(path)
                    .with_context(|| format!("cannot create the log `{}`", path.display()))?;
                (Stdio::from(file.try_clone()?), Stdio::from(file))
            }
            None => (Stdio::piped(), Stdio::piped()),
        };
        let stdin = match self.held.take() {
            Some(file) => Stdio::from(file),
            None if self.input.is_some() => Stdio::piped(),
            None => Stdio::null(),
        };
        self.command.stdin(stdin).stdout(stdout).stderr(stderr);
        let child = self.spawn()?;
        wait(child, self.input, self.timeout)
    }

    /// Runs it while `write`, on this thread, feeds its standard input. The child is killed at once when `write`
    /// fails; a child that fails is an error that quotes its standard error.
    pub fn feed<T>(mut self, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
        let what = format!("`{}`", self.program.display());
        let stdout = self.held.take().map_or_else(Stdio::null, Stdio::from);
        self.command
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::piped());
        let mut child = self.spawn()?;
        let errors = drain(child.stderr.take());
        let written = match child.stdin.take() {
            Some(mut stdin) => write(&mut stdin),
            None => Err(anyhow!("a child has no standard input")),
        };
        let ended = match &written {
            // Who does not read its input to the end is about to say why.
            Err(error) if is_broken_pipe(error) => watch(&mut child, Some(LAST_WORDS)),
            Err(_) => Ok(End::TimedOut),
            Ok(_) => watch(&mut child, self.timeout),
        };
        if !matches!(ended, Ok(End::Code(_))) {
            stop(&mut child);
        }
        let stderr = errors.join().unwrap_or_default();
        match (ended?, written) {
            (End::Code(0), Ok(value)) => Ok(value),
            (End::Code(0) | End::TimedOut, Err(error)) => Err(error),
            (exit, _) => Err(failed(&what, exit, &stderr)),
        }
    }

    /// Starts it in a process group of its own.
    fn spawn(&mut self) -> Result<Child> {
        self.command.process_group(0).spawn().map_err(|error| {
            let program = self.program.display();
            Refusal::tool(format!("cannot run `{program}`: {error}"))
                .hint(format!("install the Debian package that has `{program}`"))
                .into()
        })
    }

    /// Runs it and returns its standard output; a failure is an error that quotes its standard error.
    pub fn output(self) -> Result<Vec<u8>> {
        let what = format!("`{}`", self.program.display());
        let output = self.run()?;
        if output.exit.success() {
            return Ok(output.stdout);
        }
        Err(failed(&what, output.exit, &output.stderr))
    }
}

/// How long a child that closed its input may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How long a child that is asked to end may take to tidy up (git removes its lock files, apt dates a partial file).
const GRACE: Duration = Duration::from_millis(300);

fn failed(what: &str, exit: End, stderr: &[u8]) -> anyhow::Error {
    let details = String::from_utf8_lossy(stderr)
        .lines()
        .map(str::to_owned)
        .collect();
    Refusal::tool(format!("{what} failed: {exit:?}"))
        .details(details)
        .into()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Feeds, drains and watches one child.
fn wait(mut child: Child, input: Option<Vec<u8>>, timeout: Option<Duration>) -> Result<Output> {
    let stdin = child.stdin.take();
    let feeder = std::thread::spawn(move || {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A child that does not read its input to the end says so by its exit code.
            let _ = stdin.write_all(&input);
        }
    });
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let ended = watch(&mut child, timeout);
    if !matches!(ended, Ok(End::Code(_))) {
        stop(&mut child);
    }
    let _ = feeder.join();
    let stdout = stdout.join().unwrap_or_default();
    let stderr = stderr.join().unwrap_or_default();
    Ok(Output {
        exit: ended?,
        stdout,
        stderr,
    })
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Waits for the end, the timeout or ^C, whichever is first.
fn watch(child: &mut Child, timeout: Option<Duration>) -> Result<End> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a child")? {
            return Ok(end_of(status));
        }
        check_interrupted()?;
        if timeout.is_some_and(|timeout| start.elapsed() > timeout) {
            return Ok(End::TimedOut);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn end_of(status: ExitStatus) -> End {
    status
        .code()
        .map_or_else(|| End::Signal(status.signal().unwrap_or(0)), End::Code)
}

/// Ends the child and everything it started in its group: asks, then kills.
fn stop(child: &mut Child) {
    signal_group(child, Signal::TERM);
    let start = Instant::now();
    while start.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal_group(child, Signal::KILL);
    let _ = child.wait();
}

fn signal_group(child: &Child, signal: Signal) {
    let group = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // The group may be gone already, which is what was wanted.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_takes_too_long_is_killed_with_its_children() {
        let start = Instant::now();
        let output = Task::new("sh")
            .args(["-c", "sleep 60 & sleep 60"])
            .timeout(Duration::from_millis(100))
            .run()
            .expect("sh starts");
        assert_eq!(output.exit, End::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_fed_child_gets_every_byte_and_its_failure_is_quoted() {
        let dir = tempfile::tempdir().expect("a directory");
        let task = Task::new("sh").args(["-c", "cat > out"]).dir(dir.path());
        task.feed(|out| Ok(out.write_all(b"abc")?))
            .expect("it is read");
        let written = std::fs::read(dir.path().join("out")).expect("it was written");
        assert_eq!(written, b"abc");

        let error = Task::new("sh")
            .args(["-c", "exec 0<&-; echo why >&2; exit 3"])
            .feed(|out| {
                loop {
                    out.write_all(&[0; 4096])?;
                }
            })
            .map(|(): ()| ())
            .expect_err("it fails");
        let refusal = crate::error::refusal(&error).expect("a refusal");
        assert_eq!(refusal.details, ["why"]);
    }

    #[test]
    fn a_child_whose_feeder_fails_is_killed() {
        let start = Instant::now();
        let error = Task::new("sleep")
            .arg("60")
            .feed(|_| -> Result<()> { Err(anyhow!("the feeder's reason")) })
            .expect_err("the feeder failed");
        assert_eq!(error.to_string(), "the feeder's reason");
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_missing_program_is_a_tool_error_with_a_hint() {
        let error = Task::new("no-such-program-anywhere")
            .run()
            .expect_err("cannot start");
        let refusal = crate::error::refusal(&error).expect("a refusal");
        assert_eq!(refusal.exit, crate::error::Exit::Tool);
        assert!(refusal.hint.is_some());
    }

    #[test]
    fn input_reaches_the_child_and_output_comes_back() {
        let bytes = Task::new("cat").input("abc").output().expect("cat runs");
        assert_eq!(bytes, b"abc");
    }
}
