//! Finds and fetches Debian's `linux-source-*` packages through apt, without root and without touching the system's apt.
//!
//! Hides apt: its private lists, which mirror the machine uses, and how a download goes on where it was cut off.

mod sources;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use bstr::ByteSlice;

use crate::error::{Exit, Refusal, exit_of};
use crate::exec::{Output, Task};
use crate::import::digest;
use crate::ui::{Ui, shown_text};

use sources::AptSource;

/// Which package is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The newest kernel of the machine's own sources.
    Default,
    /// The newest released kernel of all suites but experimental.
    Newest,
    /// The newest package of one release, such as `7.3`, of all suites but experimental.
    Release(String),
    /// The newest kernel in one suite, such as `sid` or `experimental`.
    Suite(String),
}

impl Wanted {
    /// Reads what follows `debian:`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
        let is_release = text
            .split_once('.')
            .is_some_and(|(major, minor)| digits(major) && digits(minor));
        match text {
            "default" => Ok(Self::Default),
            "newest" => Ok(Self::Newest),
            _ if is_release => Ok(Self::Release(text.to_owned())),
            _ if text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(plain) => {
                Ok(Self::Suite(text.to_owned()))
            }
            _ => Err(Refusal::usage(format!(
                "`debian:{}` names no kernel of Debian's",
                shown_text(text.as_bytes())
            ))
            .hint("say `debian:7.3`, `debian:newest`, or a suite: `debian:sid`, `debian:experimental`")
            .into()),
        }
    }
}

/// A package that the archive has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    /// `name=version`.
    pub(crate) id: String,
    /// The set of sources that has it.
    view: String,
}

/// A package's file on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Download {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its digest, vouched for by the archive's signature.
    pub(crate) sha256: String,
}

/// Where a package's file comes from.
#[derive(Debug)]
struct Remote {
    uri: String,
    size: u64,
    sha256: String,
}

/// Where kernels are looked for besides the machine's own suites. Experimental has to be asked for.
const SUITES: [&str; 4] = ["trixie", "trixie-security", "trixie-backports", "sid"];

/// How long lists are good for.
const FRESH: Duration = Duration::from_hours(24);

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

const OTHER_WAYS: &str =
    "import a directory or a tarball instead, or name a repository with `--tree`";

/// apt, with a private place for all that it writes.
#[derive(Debug)]
pub(crate) struct Apt {
    dir: PathBuf,
    config: Option<PathBuf>,
    lock: File,
    ui: Ui,
    machine: Machine,
}

/// What the machine's apt is set up to.
#[derive(Debug, Default)]
struct Machine {
    list: PathBuf,
    parts: PathBuf,
    methods: PathBuf,
    architecture: String,
}

/// One set of sources, with a package cache of its own.
#[derive(Debug)]
struct View<'a> {
    apt: &'a Apt,
    name: String,
    sources: Vec<AptSource>,
    /// Those whose lists are here, with who made them.
    fetched: Vec<Fetched>,
}

#[derive(Debug)]
struct Fetched {
    source: AptSource,
    origin: String,
    label: String,
}

impl Fetched {
    fn is_debian(&self) -> bool {
        self.origin == "Debian" || self.origin == "Debian Backports"
    }
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

    /// The package that is wanted, as of the lists of today, or of now when `refresh` is set.
    pub(crate) fn find(&self, wanted: &Wanted, refresh: bool) -> Result<Package> {
        let own = sources::read(&self.machine.list, &self.machine.parts)?;
        if own.is_empty() {
            return Err(
                Refusal::tool("apt on this machine knows no source with a `main`")
                    .hint(OTHER_WAYS)
                    .into(),
            );
        }
        let own = self.view("own", own, refresh)?;
        if !own.fetched.iter().any(Fetched::is_debian) {
            return Err(Refusal::tool(
                "none of apt's sources on this machine is Debian's, or can be reached",
            )
            .hint(format!("check the network, or {OTHER_WAYS}"))
            .into());
        }
        match wanted {
            Wanted::Default => own.newest(None, Rc::Refused),
            Wanted::Suite(suite) => {
                let source = own.archive_of(suite)?.with_suite(suite);
                let view = self.view(&format!("suite-{suite}"), vec![source], refresh)?;
                if view.fetched.is_empty() {
                    let mirror = &view.sources[0].uri;
                    return Err(
                        Refusal::usage(format!("`{mirror}` gave no suite `{suite}`"))
                            .hint("check its name, and the network")
                            .into(),
                    );
                }
                view.newest(None, Rc::Allowed)
            }
            Wanted::Newest => self.everywhere(&own, refresh)?.newest(None, Rc::Refused),
            Wanted::Release(release) => self
                .everywhere(&own, refresh)?
                .newest(Some(release), Rc::Refused),
        }
    }

    /// The machine's own suites and those in [`SUITES`].
    fn everywhere(&self, own: &View<'_>, refresh: bool) -> Result<View<'_>> {
        let mut sources: Vec<_> = own.debian().cloned().collect();
        for suite in SUITES {
            if sources.iter().any(|source| source.suite == suite) {
                continue;
            }
            match own.archive_of(suite) {
                Ok(archive) => sources.push(archive.with_suite(suite)),
                Err(error) => self.ui.warning(&format!("`{suite}` is left out: {error}")),
            }
        }
        self.view("all", sources, refresh)
    }

    /// Makes sure that the lists of these sources are here and fresh.
    fn view(&self, name: &str, sources: Vec<AptSource>, refresh: bool) -> Result<View<'_>> {
        let mut view = View {
            apt: self,
            name: name.to_owned(),
            sources,
            fetched: Vec::new(),
        };
        let text = sources::write(&view.sources, &self.machine.architecture);
        write(&self.view_path(name, "sources"), &text)?;
        let stamp = self.view_path(name, "updated");
        if refresh || !is_fresh(&stamp, &text) {
            self.ui.status("fetching Debian's package lists");
            let output = view.task("apt-get")?.args(["-q", "update"]).run()?;
            view.fetched = view.look()?;
            // Its age counts, so it is written anew.
            let _ = fs::remove_file(&stamp);
            if view.judge(&output) {
                write(&stamp, &text)?;
            }
        } else {
            view.fetched = view.look()?;
        }
        view.warn_of_missing();
        Ok(view)
    }

    /// Fetches the package's file. One that was cut off goes on where it was.
    pub(crate) fn download(&self, package: &Package) -> Result<Download> {
        let remote = self.locate(package)?;
        let file = format!("{}.deb", package.id.replace([':', '='], "_"));
        let path = self.dir.join("archives").join(file);
        let id = &package.id;
        if !self.is_there(&path, &remote)? {
            let megabytes = remote.size.div_ceil(1_000_000);
            self.ui.status(&format!("fetching {id} ({megabytes} MB)"));
            let output = self.fetch(&path, &remote)?;
            if !output.exit.success() || !self.is_there(&path, &remote)? {
                return Err(Refusal::tool(format!("{id} could not be fetched"))
                    .details(complaints(&output))
                    .hint("check the network and run it again; `--refresh` renews the lists")
                    .into());
            }
        }
        Ok(Download {
            path,
            sha256: remote.sha256,
        })
    }

    /// Asks apt, which answers `'uri' file size SHA256:digest`.
    fn locate(&self, package: &Package) -> Result<Remote> {
        let ask = self.view_task(&package.view, "apt-get")?;
        let line = ask
            .args(["--print-uris", "download", &package.id])
            .output()?;
        let line = line.to_str_lossy();
        let mut words = line.split_whitespace();
        let mut parse = || {
            let uri = words.next()?.strip_prefix('\'')?.strip_suffix('\'')?;
            let size = words.nth(1)?.parse().ok()?;
            let sha256 = words.next()?.strip_prefix("SHA256:")?;
            Some(Remote {
                uri: uri.to_owned(),
                size,
                sha256: sha256.to_owned(),
            })
        };
        parse().with_context(|| {
            Refusal::tool(format!("apt does not say where to get {}", package.id))
                .details(vec![line.trim().to_owned()])
                .hint(OTHER_WAYS)
        })
    }

    /// The whole file, with the digest that the lists promise.
    fn is_there(&self, path: &Path, remote: &Remote) -> Result<bool> {
        if !fs::metadata(path).is_ok_and(|found| found.len() == remote.size) {
            return Ok(false);
        }
        if digest(path, self.ui)? == remote.sha256 {
            return Ok(true);
        }
        // Going on from wrong bytes would never end well.
        fs::remove_file(path).with_context(|| not_written(path))?;
        Ok(false)
    }

    fn fetch(&self, path: &Path, remote: &Remote) -> Result<Output> {
        let task = self
            .apt_task(self.machine.methods.join("../apt-helper"))?
            .args(["-q", "download-file", &remote.uri])
            .arg(path)
            .arg(format!("SHA256:{}", remote.sha256));
        self.watched(task, path, remote.size)
    }

    /// Runs a child that writes `path`, and shows how far it is.
    fn watched(&self, task: Task, path: &Path, size: u64) -> Result<Output> {
        let mut progress = self.ui.progress("downloading", size);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| task.run());
            while !running.is_finished() {
                progress.set(fs::metadata(path).map_or(0, |found| found.len()));
                std::thread::sleep(Duration::from_millis(50));
            }
            running
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread that watched a child died")))
        })
    }

    /// Forgets what was downloaded.
    pub(crate) fn tidy(&self) -> Result<()> {
        let archives = self.dir.join("archives");
        fs::remove_dir_all(&archives).with_context(|| not_written(&archives))
    }

    fn task(&self, program: impl AsRef<OsStr>) -> Result<Task> {
        let lock = self.lock.try_clone().context("cannot keep the lock")?;
        let task = Task::new(program).env("LC_ALL", "C").holding(lock);
        Ok(match &self.config {
            Some(config) => task.env("APT_CONFIG", config),
            None => task,
        })
    }

    /// Any of apt's programs, writing to the private place only.
    fn apt_task(&self, program: impl AsRef<OsStr>) -> Result<Task> {
        let mut task = self.task(program)?.arg("-c").arg(self.dir.join("apt.conf"));
        for key in ["Dir::State", "Dir::Cache", "Dir::Log"] {
            task = task.arg("-o").arg(option(key, &self.dir));
        }
        Ok(task)
    }

    /// One that looks at one set of sources.
    fn view_task(&self, view: &str, program: &str) -> Result<Task> {
        let list = option("Dir::Etc::SourceList", &self.view_path(view, "sources"));
        let cache = option("Dir::Cache::pkgcache", &self.view_path(view, "pkgcache"));
        Ok(self
            .apt_task(program)?
            .arg("-o")
            .arg(list)
            .arg("-o")
            .arg(cache))
    }

    fn view_path(&self, view: &str, suffix: &str) -> PathBuf {
        self.dir.join(format!("{view}.{suffix}"))
    }
}

/// Whether a release candidate will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rc {
    Allowed,
    Refused,
}

impl View<'_> {
    fn task(&self, program: &str) -> Result<Task> {
        self.apt.view_task(&self.name, program)
    }

    /// Which of the sources' lists are here.
    fn look(&self) -> Result<Vec<Fetched>> {
        let format = "$(REPO_URI)\t$(RELEASE)\t$(ORIGIN)\t$(LABEL)";
        let targets = self
            .task("apt-get")?
            .args(["indextargets", "--format", format, "Created-By: Packages"])
            .output()?;
        let mut all = Vec::new();
        for line in targets.to_str_lossy().lines() {
            let fields: Vec<_> = line.split('\t').collect();
            let [uri, suite, origin, label] = fields[..] else {
                continue;
            };
            let uri = uri.trim_end_matches('/');
            let mut sources = self.sources.iter();
            let source = sources.find(|source| source.uri == uri && source.suite == suite);
            all.extend(source.map(|source| Fetched {
                source: source.clone(),
                origin: origin.to_owned(),
                label: label.to_owned(),
            }));
        }
        Ok(all)
    }

    /// Passes on what apt complained about; the answer is whether asking again tomorrow is soon enough.
    fn judge(&self, output: &Output) -> bool {
        let failed = output.stderr.contains_str("Failed to fetch");
        if failed || self.fetched.is_empty() {
            for line in complaints(output) {
                self.apt.ui.warning(&line);
            }
        }
        !failed && !self.fetched.is_empty()
    }

    /// Says which sources nothing is known of.
    fn warn_of_missing(&self) {
        for source in &self.sources {
            if !self.fetched.iter().any(|found| found.source == *source) {
                let AptSource { uri, suite, .. } = source;
                let ui = self.apt.ui;
                ui.warning(&format!(
                    "`{suite}` of `{uri}` could not be fetched: left out"
                ));
            }
        }
    }

    /// The sources that are Debian's.
    fn debian(&self) -> impl Iterator<Item = &AptSource> {
        let debian = self.fetched.iter().filter(|found| found.is_debian());
        debian.map(|found| &found.source)
    }

    /// The machine's mirror for a suite: security updates are an archive of their own.
    fn archive_of(&self, suite: &str) -> Result<&AptSource> {
        let label = if suite.ends_with("-security") {
            "Debian-Security"
        } else {
            "Debian"
        };
        let mut found = self.fetched.iter();
        let found = found.find(|found| found.is_debian() && found.label == label);
        found.map(|found| &found.source).ok_or_else(|| {
            Refusal::tool(format!(
                "apt on this machine has no source labelled `{label}`"
            ))
            .hint(OTHER_WAYS)
            .into()
        })
    }

    /// The newest kernel, or the newest package of one release.
    fn newest(&self, release: Option<&str>, rc: Rc) -> Result<Package> {
        let mut names = self.names()?;
        if let Some(release) = release {
            names.retain(|(_, name)| name.strip_prefix(PREFIX) == Some(release));
        }
        names.sort_by(|a, b| b.cmp(a));
        for (_, name) in &names {
            if let Some(version) = self.newest_version(name, rc)? {
                return Ok(Package {
                    id: format!("{name}={version}"),
                    view: self.name.clone(),
                });
            }
        }
        let what = release.map_or_else(|| "kernel source".to_owned(), |r| format!("{PREFIX}{r}"));
        let known: Vec<_> = self.names()?.into_iter().map(|(_, name)| name).collect();
        let known = match known.join("`, `") {
            known if known.is_empty() => "it has none at all".to_owned(),
            known => format!("there is `{known}`"),
        };
        Err(Refusal::usage(format!(
            "the mirror has no {what}, candidates aside: {known}"
        ))
        .hint("release candidates are in `debian:experimental`; `--refresh` renews the lists")
        .into())
    }

    /// The packages that hold a kernel, with their numbers.
    fn names(&self) -> Result<Vec<((u32, u32), String)>> {
        let names = self
            .task("apt-cache")?
            .args(["pkgnames", PREFIX])
            .output()?;
        let names = names.to_str_lossy();
        Ok(names.lines().filter_map(numbered).collect())
    }

    /// The first version that will do; apt lists the newest first.
    fn newest_version(&self, name: &str, rc: Rc) -> Result<Option<String>> {
        let table = self.task("apt-cache")?.args(["madison", name]).output()?;
        let table = table.to_str_lossy();
        let places: Vec<_> = self
            .debian()
            .map(|source| format!("{} {}/", source.uri, source.suite))
            .collect();
        let mut versions = table.lines().filter_map(|line| {
            let mut cells = line.splitn(3, " | ").map(str::trim);
            let (found, version, place) = (cells.next()?, cells.next()?, cells.next()?);
            let known = places.iter().any(|known| place.starts_with(known.as_str()));
            (found == name && known && is_version(version)).then_some(version)
        });
        let version = versions.find(|version| rc == Rc::Allowed || !is_candidate(version));
        Ok(version.map(str::to_owned))
    }
}

const PREFIX: &str = "linux-source-";

/// `linux-source-7.3` with its numbers; not `linux-source` alone, nor anything longer.
fn numbered(name: &str) -> Option<((u32, u32), String)> {
    let (major, minor) = name.strip_prefix(PREFIX)?.split_once('.')?;
    Some(((major.parse().ok()?, minor.parse().ok()?), name.to_owned()))
}

/// Debian sorts a candidate before its release with a `~`; experimental marks its own in the same way.
fn is_candidate(version: &str) -> bool {
    version.contains("~rc") || version.contains("~exp")
}

/// Characters that a version may have (deb-version(7)).
fn is_version(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".+-~:".contains(&b);
    !text.is_empty() && text.bytes().all(plain)
}

/// `name version` from the text of a package's `control` file.
pub(crate) fn package_of_control(text: &[u8]) -> Option<String> {
    let stanza = sources::stanzas(text).into_iter().next()?;
    let field = |name: &str| {
        let mut found = stanza
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        Some(found.next()?.1.clone())
    };
    let (name, version) = (field("Package")?, field("Version")?);
    (is_version(&name) && is_version(&version)).then(|| format!("{name} {version}"))
}

/// What apt complained about.
fn complaints(output: &Output) -> Vec<String> {
    let text = output.stderr.to_str_lossy();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(str::to_owned).collect()
}

fn is_fresh(stamp: &Path, text: &str) -> bool {
    let age = fs::metadata(stamp)
        .and_then(|found| found.modified())
        .ok()
        .and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_some_and(|age| age < FRESH) && fs::read_to_string(stamp).is_ok_and(|found| found == text)
}

fn option(key: &str, value: &Path) -> OsString {
    let mut option = OsString::from(key);
    option.push("=");
    option.push(value);
    option
}

/// Writes aside and renames: a run that is killed leaves the old file or the new one. A file that holds the text already
/// is left alone, since apt throws its cache away when a list of sources is newer.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let mut aside = path.to_owned().into_os_string();
    aside.push(".new");
    fs::write(&aside, text)
        .and_then(|()| fs::rename(&aside, path))
        .with_context(|| not_written(path))
}

fn not_written(path: &Path) -> Refusal {
    Refusal::tool(format!("cannot write `{}`", path.display()))
        .hint("check the permissions and the free space, or set `XDG_CACHE_HOME` to another place")
}
