//! apt, told to write to a private place only.
//!
//! Hides its options, and how the machine's apt is set up.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bstr::ByteSlice;

use crate::error::{Exit, Refusal, exit_of};
use crate::exec::{Output, Task};
use crate::ui::Ui;

/// What every apt command is told: nothing of the system's is written, no hook of the system's runs.
const CONFIG: &str = r#"#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Sandbox::User "";
APT::Get::List-Cleanup "false";
APT::Cmd::Disable-Script-Warning "true";
Acquire::ForceHash "SHA256";
Acquire::Languages "none";
Acquire::Retries "2";
Debug::NoLocking "true";
Dir::State::status "/dev/null";
Dir::State::lists "lists/";
Dir::Cache::archives "archives/";
Dir::Cache::srcpkgcache "";
Dir::Etc::SourceParts "/dev/null";
"#;

pub(super) const OTHER_WAYS: &str =
    "import a directory or a tarball instead, or name a repository with `--tree`";

/// apt, with a private place for all that it writes.
#[derive(Debug)]
pub(crate) struct Apt {
    pub(super) dir: PathBuf,
    config: Option<PathBuf>,
    lock: File,
    pub(super) ui: Ui,
    pub(super) machine: Machine,
}

/// What the machine's apt is set up to.
#[derive(Debug, Default)]
pub(super) struct Machine {
    pub(super) list: PathBuf,
    pub(super) parts: PathBuf,
    pub(super) methods: PathBuf,
    pub(super) architecture: String,
}

impl Apt {
    /// Asks the machine's apt how it is set up, and makes a place below `dir`. `config` stands for `APT_CONFIG`; `lock`
    /// is an open file whose lock has to last as long as any child.
    pub(crate) fn open(dir: &Path, config: Option<&Path>, lock: &File, ui: Ui) -> Result<Self> {
        for dir in [dir.join("lists/partial"), dir.join("archives/partial")] {
            fs::create_dir_all(&dir).with_context(|| not_written(&dir))?;
        }
        write(&dir.join("apt.conf"), CONFIG)?;
        let mut apt = Self {
            dir: dir.to_owned(),
            config: config.map(Path::to_owned),
            lock: lock.try_clone().context("cannot keep the lock")?,
            ui,
            machine: Machine::default(),
        };
        apt.machine = apt.ask_machine()?;
        Ok(apt)
    }

    fn ask_machine(&self) -> Result<Machine> {
        let asked = self.task("apt-config")?.args([
            "shell",
            "LIST",
            "Dir::Etc::SourceList/f",
            "PARTS",
            "Dir::Etc::SourceParts/d",
            "METHODS",
            "Dir::Bin::methods/d",
            "ARCHITECTURE",
            "APT::Architecture",
        ]);
        let text = asked.output().map_err(|error| match exit_of(&error) {
            Exit::Interrupted => error,
            _ => error.context(
                Refusal::tool("there is no apt on this machine to fetch a Debian kernel with")
                    .hint(OTHER_WAYS),
            ),
        })?;
        let text = text.to_str_lossy();
        let value = |name: &str| {
            let mut lines = text.lines();
            let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix("='"));
            let value = found
                .and_then(|value| value.strip_suffix('\''))
                .unwrap_or("");
            value.replace(r"'\''", "'")
        };
        Ok(Machine {
            list: value("LIST").into(),
            parts: value("PARTS").into(),
            methods: value("METHODS").into(),
            architecture: value("ARCHITECTURE"),
        })
    }

    fn task(&self, program: impl AsRef<OsStr>) -> Result<Task> {
        let lock = self.lock.try_clone().context("cannot keep the lock")?;
        let task = Task::new(program).network().holding(lock);
        Ok(match &self.config {
            Some(config) => task.env("APT_CONFIG", config),
            None => task,
        })
    }

    /// Any of apt's programs, writing to the private place only.
    pub(super) fn apt_task(&self, program: impl AsRef<OsStr>) -> Result<Task> {
        let mut task = self.task(program)?.arg("-c").arg(self.dir.join("apt.conf"));
        for key in ["Dir::State", "Dir::Cache", "Dir::Log"] {
            task = task.arg("-o").arg(option(key, &self.dir));
        }
        Ok(task)
    }

    /// One that looks at one set of sources.
    pub(super) fn view_task(&self, view: &str, program: &str) -> Result<Task> {
        let list = option("Dir::Etc::SourceList", &self.view_path(view, "sources"));
        let cache = option("Dir::Cache::pkgcache", &self.view_path(view, "pkgcache"));
        Ok(self
            .apt_task(program)?
            .arg("-o")
            .arg(list)
            .arg("-o")
            .arg(cache))
    }

    pub(super) fn view_path(&self, view: &str, suffix: &str) -> PathBuf {
        self.dir.join(format!("{view}.{suffix}"))
    }
}

/// What apt complained about.
pub(super) fn complaints(output: &Output) -> Vec<String> {
    let text = output.stderr.to_str_lossy();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(str::to_owned).collect()
}

fn option(key: &str, value: &Path) -> OsString {
    let mut option = OsString::from(key);
    option.push("=");
    option.push(value);
    option
}

/// Writes aside and renames: a run that is killed leaves the old file or the new one. A file that holds the text already
/// is left alone, since apt throws its cache away when a list of sources is newer.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let mut aside = path.to_owned().into_os_string();
    aside.push(".new");
    fs::write(&aside, text)
        .and_then(|()| fs::rename(&aside, path))
        .with_context(|| not_written(path))
}

pub(super) fn not_written(path: &Path) -> Refusal {
    Refusal::tool(format!("cannot write `{}`", path.display()))
        .hint("check the permissions and the free space, or set `XDG_CACHE_HOME` to another place")
}
