//! What the tests stand on: a sandbox with a hermetic git and the built `reroll`, repositories made of files, real kernels.
//!
//! Hides environments, object plumbing, and how real kernels come into the cache once for all tests.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use bstr::{BStr, BString, ByteSlice};
use reroll::recipe;
use reroll::repo::{MODE_FILE, ObjectId, Repo, Signature};
use reroll::series::{Options, Regenerated, regenerate};
use tempfile::TempDir;

/// The author of every patch.
pub(crate) const AUTHOR: &str = "A U Thor <author@example.org>";

/// Where kernels for development are looked for: a directory of repositories, each with a revision `base`.
const DEVELOPMENT: &str = "REROLL_TEST_BASES";

/// The kernels that the shipped series is for: the name of each, and where Debian has it.
const KERNELS: [(&str, &str); 6] = [
    (STABLE, "debian:bookworm"),
    ("6.1", "debian:6.1"),
    ("6.12", "debian:6.12"),
    ("7.2", "debian:7.2"),
    ("7.3", "debian:7.3"),
    ("rc", "debian:experimental"),
];

/// The one whose suite a machine need not have: it has an older 6.1, with the functions in another file.
const STABLE: &str = "stable61";

/// How long an imported kernel is taken for the newest one.
const FRESH: Duration = Duration::from_hours(24);

/// The files that a slice of a kernel holds: what the series changes, and every header that it sees.
const SLICE: [&str; 6] = [
    ".gitattributes",
    "Makefile",
    "mm",
    "include",
    "arch/x86/include",
    "arch/arm64/include",
];

/// A temporary directory with a home of its own.
pub(crate) struct Sandbox {
    dir: TempDir,
}

/// A program to run with nothing in its environment but what a test says.
pub(crate) struct Program {
    command: Command,
    what: String,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ran {
    what: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: BString,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(dir.path().join("home")).expect("a home");
        Self { dir }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file, and the directories that it needs.
    pub(crate) fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> BString {
        let path = self.path(name);
        let bytes = fs::read(&path);
        bytes
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .into()
    }

    /// The built binary.
    pub(crate) fn reroll<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Program {
        self.program(env!("CARGO_BIN_EXE_reroll")).args(args)
    }

    /// git, as one finds it in `PATH`.
    pub(crate) fn git<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Program {
        let program = self
            .program("git")
            .args(["-c", "protocol.file.allow=always"]);
        program.args(args)
    }

    /// Any program, in the sandbox and with its home.
    pub(crate) fn program(&self, name: &str) -> Program {
        let mut program = Program::new(name).dir(self.dir.path());
        let home = self.path("home");
        program.command.env_clear().env("PATH", path_variable());
        program
            .env("HOME", &home)
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_COMMITTER_NAME", "C O Mitter")
            .env("GIT_COMMITTER_EMAIL", "committer@example.org")
            .env("GIT_COMMITTER_DATE", "1700000000 +0000")
            .env("GIT_AUTHOR_NAME", "A U Thor")
            .env("GIT_AUTHOR_EMAIL", "author@example.org")
            .env("GIT_AUTHOR_DATE", "1700000000 +0000")
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
    }

    /// What is in a directory: name and content of every file, without those in directories below.
    pub(crate) fn files(&self, dir: impl AsRef<Path>) -> BTreeMap<String, BString> {
        let dir = self.path(dir);
        let entries =
            fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let file = |entry: fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("a file").into())
        };
        let entries = entries.map(|entry| entry.expect("an entry"));
        let files = entries.filter(|entry| !entry.path().is_dir());
        files.map(file).collect()
    }

    /// Everything below a directory, files and directories, sorted: to see that nothing was written. What reroll keeps in the user's
    /// cache to be quicker the next time is no output.
    pub(crate) fn listing(&self, dir: impl AsRef<Path>) -> Vec<String> {
        let root = self.path(dir);
        let (mut open, mut found) = (vec![root.clone()], Vec::new());
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten() {
                let path = entry.expect("an entry").path();
                if path.ends_with("home/cache") {
                    continue;
                }
                found.push(
                    path.strip_prefix(&root)
                        .expect("below")
                        .display()
                        .to_string(),
                );
                if path.is_dir() && !path.is_symlink() {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

impl Program {
    fn new(name: &str) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests look at the binary from outside"
        )]
        let command = Command::new(name);
        Self {
            command,
            what: Path::new(name)
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            self.what
                .push_str(&format!(" {}", arg.as_ref().to_string_lossy()));
            self.command.arg(arg);
        }
        self
    }

    pub(crate) fn arg(self, arg: impl AsRef<OsStr>) -> Self {
        self.args([arg])
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Starts it with piped outputs.
    pub(crate) fn start(mut self) -> Child {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.command
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.what))
    }

    /// Runs it with its standard output in a file.
    pub(crate) fn run_into(mut self, file: fs::File) -> Ran {
        let what = self.what.clone();
        self.command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(Stdio::piped());
        let child = self.command.spawn().expect("it starts");
        Ran::of(what, child.wait_with_output().expect("it ends"))
    }

    pub(crate) fn run(self) -> Ran {
        let what = self.what.clone();
        let output = self.start().wait_with_output().expect("it ends");
        Ran::of(what, output)
    }
}

impl Ran {
    pub(crate) fn of(what: String, output: Output) -> Self {
        Self {
            what,
            code: output.status.code(),
            stdout: output.stdout.into(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn expect_exit(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "{}\n--- stdout\n{}\n--- stderr\n{}",
            self.what,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Standard error has each of these.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{}\nsays nothing of `{word}`:\n{}",
                self.what,
                self.stderr
            );
        }
        self
    }

    /// Refused: one `error:` line, a hint, nothing on standard output, no control characters.
    #[track_caller]
    pub(crate) fn refused(self, code: i32) -> Self {
        let ran = self.expect_exit(code);
        let count = |label: &str| {
            ran.stderr
                .lines()
                .filter(|line| line.starts_with(label))
                .count()
        };
        assert_eq!(
            count("error: "),
            1,
            "{}\none sentence:\n{}",
            ran.what,
            ran.stderr
        );
        assert!(
            count("hint: ") >= 1,
            "{}\na hint:\n{}",
            ran.what,
            ran.stderr
        );
        // A program that has asked for JSON is told of the error, and of nothing else.
        let is_json = ran.what.contains(" --json")
            && ran.stdout.starts_with(b"{\n  \"version\": 1,\n  \"error\"");
        assert!(
            ran.stdout.is_empty() || is_json,
            "{}\nno data:\n{}",
            ran.what,
            ran.stdout
        );
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        let hostile = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
        assert!(
            !ran.stderr.contains(hostile),
            "{}\nescaped:\n{:?}",
            ran.what,
            ran.stderr
        );
        ran
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// A bare repository in a sandbox, written through the library.
pub(crate) struct Store {
    pub(crate) repo: Repo,
    pub(crate) path: PathBuf,
}

impl Store {
    /// An empty one.
    pub(crate) fn new(sandbox: &Sandbox, name: &str) -> Self {
        let path = sandbox.path(name);
        let repo = Repo::init_bare(&path).expect("a repository");
        Self { repo, path }
    }

    /// One that has every object of a real base through `alternates`, and keeps what is new to itself.
    pub(crate) fn beside(sandbox: &Sandbox, name: &str, base: &Kernel) -> Self {
        let path = sandbox.path(name);
        drop(Repo::init_bare(&path).expect("a repository"));
        let objects = format!("{}\n", base.git_dir.join("objects").display());
        fs::write(path.join("objects/info/alternates"), objects).expect("alternates");
        let repo = Repo::open(&path).expect("a repository");
        Self { repo, path }
    }

    /// A tree of these files and nothing else.
    pub(crate) fn tree(&self, files: &[(&str, &[u8])]) -> ObjectId {
        let ids: Vec<_> = files
            .iter()
            .map(|(path, bytes)| self.entry(path, bytes))
            .collect();
        self.repo.write_new_tree(&ids).expect("a tree")
    }

    /// A copy of a tree in which these files have this content.
    pub(crate) fn tree_with(&self, tree_id: ObjectId, files: &[(&str, &[u8])]) -> ObjectId {
        let ids: Vec<_> = files
            .iter()
            .map(|(path, bytes)| self.entry(path, bytes))
            .collect();
        self.repo.write_tree(tree_id, &ids).expect("a tree")
    }

    fn entry<'a>(&self, path: &'a str, bytes: &[u8]) -> (&'a BStr, u32, ObjectId) {
        (
            path.into(),
            MODE_FILE,
            self.repo.write_blob(bytes).expect("a blob"),
        )
    }

    /// A commit; HEAD and its branch are moved to it.
    pub(crate) fn commit(
        &self,
        tree_id: ObjectId,
        parent: Option<ObjectId>,
        message: &str,
    ) -> ObjectId {
        let commit_id = self
            .repo
            .write_commit(tree_id, parent, &someone(), message.into())
            .expect("a commit");
        fs::create_dir_all(self.path.join("refs/heads")).expect("a directory");
        fs::write(self.path.join("HEAD"), "ref: refs/heads/main\n").expect("HEAD");
        fs::write(self.path.join("refs/heads/main"), format!("{commit_id}\n")).expect("a branch");
        commit_id
    }

    /// Tags a commit, so that others can have it.
    pub(crate) fn publish(&self, commit_id: &str) {
        fs::create_dir_all(self.path.join("refs/tags")).expect("a directory");
        fs::write(
            self.path.join("refs/tags/published"),
            format!("{commit_id}\n"),
        )
        .expect("a tag");
    }

    /// The content of a file at a revision.
    pub(crate) fn file(&self, rev: &str, path: &str) -> BString {
        let tree_id = self.repo.base(rev).expect("a revision").tree_id;
        let file = self.repo.file(tree_id, path.into()).expect("a tree");
        file.unwrap_or_else(|| panic!("{rev}:{path}")).bytes.into()
    }
}

/// Who commits bases.
pub(crate) fn someone() -> Signature {
    Signature {
        name: "Some One".into(),
        email: "someone@example.org".into(),
        time: 1_600_000_000,
        offset: 120,
    }
}

/// A real kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Its name in [`KERNELS`].
    pub(crate) name: String,
    /// The bare repository that has it. Not to be written to.
    pub(crate) git_dir: PathBuf,
    /// Its commit.
    pub(crate) commit_id: ObjectId,
    /// Its tree.
    pub(crate) tree_id: ObjectId,
}

impl Kernel {
    fn of(name: &str, git_dir: &Path, rev: &str) -> Self {
        let repo = Repo::open(git_dir).expect("the cache is a repository");
        let base = repo
            .base(rev)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        Self {
            name: name.to_owned(),
            git_dir: git_dir.to_owned(),
            commit_id: base.commit_id,
            tree_id: base.tree_id,
        }
    }

    /// The content of a file.
    pub(crate) fn file(&self, path: &str) -> BString {
        let repo = Repo::open(&self.git_dir).expect("a repository");
        let file = repo.file(self.tree_id, path.into()).expect("a tree");
        file.unwrap_or_else(|| panic!("{}: no {path}", self.name))
            .bytes
            .into()
    }

    /// The file that has the functions which the shipped series is about.
    pub(crate) fn home(&self) -> &'static str {
        let has = |path: &&str| {
            let text = self.file(path);
            text.contains_str("\nvoid __ref memmap_init_zone_device(")
        };
        let files = ["mm/mm_init.c", "mm/page_alloc.c"];
        let found = files.into_iter().find(has);
        found.unwrap_or_else(|| panic!("{}: it is elsewhere", self.name))
    }

    /// A repository of its own with a small part of it: no objects are shared, and the commit is an import.
    pub(crate) fn slice(&self, sandbox: &Sandbox, name: &str) -> (Store, ObjectId) {
        let store = Store::beside(sandbox, name, self);
        let listing = sandbox
            .git(["ls-tree", "-r", "-z", &self.tree_id.to_string(), "--"])
            .args(SLICE)
            .env("GIT_DIR", &store.path)
            .run()
            .expect_exit(0);
        let mut files = Vec::new();
        for entry in listing
            .stdout
            .split_str("\0")
            .filter(|entry| !entry.is_empty())
        {
            let (head, path) = entry.split_once_str("\t").expect("a tab");
            let words: Vec<_> = head.to_str_lossy().split(' ').map(str::to_owned).collect();
            let mode = u32::from_str_radix(&words[0], 8).expect("a mode");
            files.push((path.as_bstr(), mode, words[2].parse().expect("an id")));
        }
        let tree_id = store.repo.write_new_tree(&files).expect("a tree");
        let commit_id = store.commit(tree_id, None, "a slice of a kernel\n");
        let git_dir = [OsStr::new("--git-dir"), store.path.as_os_str()];
        sandbox
            .git(git_dir)
            .args(["repack", "-a", "-d", "-q"])
            .run()
            .expect_exit(0);
        fs::remove_file(store.path.join("objects/info/alternates")).expect("it is there");
        let path = store.path;
        (
            Store {
                repo: Repo::open(&path).expect("a repository"),
                path,
            },
            commit_id,
        )
    }
}

/// Every real kernel that can be had. One that cannot is a failure in CI, and said elsewhere.
pub(crate) fn kernels() -> &'static [Kernel] {
    static FOUND: OnceLock<Vec<Kernel>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let found = match std::env::var_os(DEVELOPMENT) {
            Some(dir) => development(Path::new(&dir)),
            None => imported(),
        };
        let any = !found.is_empty();
        let proven: Vec<_> = found.into_iter().filter(is_proven).collect();
        if any && proven.is_empty() {
            left_out("every base", "nothing is proven: `reroll check --record`");
        }
        proven
    })
}

/// Whether the shipped series was proven with all that it rests on there. A point release of tomorrow may have something that was not:
/// that is no fault of what is tested here, and is said.
fn is_proven(kernel: &Kernel) -> bool {
    let recipe = recipe::load("zone-device", Path::new(env!("CARGO_MANIFEST_DIR")));
    let recipe = recipe.unwrap_or_else(|error| panic!("{error:#}"));
    let mut repo = Repo::open(&kernel.git_dir).expect("a repository");
    repo.keep_in_memory().expect("memory");
    let base = repo.base(&kernel.commit_id.to_string()).expect("a base");
    let options = Options {
        author: someone(),
        sign_off: true,
        version: 1,
    };
    let Ok(Regenerated::Series(series)) = regenerate(&repo, &base, &recipe, &options) else {
        return true;
    };
    // A record that is none of this recipe's is a mistake, and the tests are to see it.
    let unproven = series.unproven().filter(|it| it.reason.is_none());
    if let Some(standing) = unproven {
        say_left_out(&format!("the base {}", kernel.name), &standing.sentence());
    }
    unproven.is_none()
}

/// The newest released kernel that can be had, for what need not be seen on all of them.
pub(crate) fn newest() -> Option<&'static Kernel> {
    let released = || kernels().iter().filter(|kernel| kernel.name != "rc");
    released()
        .max_by_key(|kernel| number(&kernel.name))
        .or(kernels().last())
}

fn number(name: &str) -> Vec<u32> {
    name.split(['.', '-'])
        .map_while(|part| part.parse().ok())
        .collect()
}

fn development(dir: &Path) -> Vec<Kernel> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let name = |path: &Path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        name.strip_suffix(".git").unwrap_or(&name).to_owned()
    };
    paths
        .iter()
        .map(|path| Kernel::of(&name(path), path, "base"))
        .collect()
}

fn imported() -> Vec<Kernel> {
    let Some(cache) = test_cache() else {
        left_out(
            "every base",
            "there is no cache directory: set REROLL_TEST_CACHE",
        );
        return Vec::new();
    };
    fs::create_dir_all(cache.join("reroll")).expect("a cache directory");
    let lock = fs::File::create(cache.join("reroll/tests.lock")).expect("a lock file");
    lock.lock().expect("the lock");
    KERNELS
        .iter()
        .filter_map(|(name, source)| import(&cache, name, source))
        .collect()
}

/// Where the imported kernels are: as reroll itself finds it, unless `REROLL_TEST_CACHE` says otherwise.
pub(crate) fn test_cache() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("REROLL_TEST_CACHE")
        .or_else(|| set("XDG_CACHE_HOME"))
        .or_else(|| Some(set("HOME")?.join(".cache")))
}

/// Imports one kernel through the product's own cache, under a name that no user has; one of today is taken as it is.
fn import(cache: &Path, name: &str, source: &str) -> Option<Kernel> {
    let tag = format!("test-{name}");
    let git_dir = cache.join("reroll/bases.git");
    let stamp = cache.join(format!("reroll/{tag}.stamp"));
    let rev = format!("refs/tags/{tag}");
    let is_there = || Repo::open(&git_dir).is_ok_and(|repo| repo.base(&rev).is_ok());
    if is_fresh(&stamp) && is_there() {
        return Some(Kernel::of(name, &git_dir, &rev));
    }
    // The machine's own environment: how it reaches its mirror is its own affair.
    let program = Program::new(env!("CARGO_BIN_EXE_reroll"));
    let ran = program
        .env("XDG_CACHE_HOME", cache)
        .args(["base", "add", "--force", &tag, source])
        .run();
    if ran.code == Some(0) {
        fs::write(&stamp, "").expect("a stamp");
    } else if !is_there() && name == STABLE {
        say_left_out(&format!("the base {name}"), &ran.stderr);
        return None;
    } else if !is_there() {
        left_out(&format!("the base {name}"), &ran.stderr);
        return None;
    }
    Some(Kernel::of(name, &git_dir, &rev))
}

fn is_fresh(stamp: &Path) -> bool {
    let modified = fs::metadata(stamp).and_then(|found| found.modified());
    modified.is_ok_and(|then| {
        SystemTime::now()
            .duration_since(then)
            .is_ok_and(|age| age < FRESH)
    })
}

/// Says that something was not tested. In CI that is a failure.
#[track_caller]
pub(crate) fn left_out(name: &str, reason: &str) {
    assert!(
        std::env::var("CI").map_or(true, |ci| ci != "true"),
        "{name} cannot be left out in CI: {reason}"
    );
    say_left_out(name, reason);
}

/// Says that something was not tested which is not to be had everywhere.
pub(crate) fn say_left_out(name: &str, reason: &str) {
    // Past the capture of a passing test: what was not tested must be seen.
    let _ = writeln!(std::io::stderr(), "left out: {name}: {}", reason.trim_end());
}

/// Where a program is that `PATH` has.
pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    let paths = path_variable();
    let mut found = std::env::split_paths(&paths).map(|dir| dir.join(program));
    found.find(|path| path.is_file())
}

fn path_variable() -> OsString {
    std::env::var_os("PATH").expect("PATH")
}

/// Bytes that must be the same; shows the first line that is not.
#[track_caller]
pub(crate) fn assert_same(found: &[u8], expected: &[u8], what: &str) {
    if found != expected {
        let pair = found
            .lines()
            .zip(expected.lines())
            .enumerate()
            .find(|(_, (a, b))| a != b);
        let shown = pair.map(|(at, (a, b))| {
            format!(
                "line {}:\n found:    {}\n expected: {}",
                at + 1,
                a.as_bstr(),
                b.as_bstr()
            )
        });
        panic!(
            "{what}: {} and {} bytes differ: {}\n--- found\n{}\n--- expected\n{}",
            found.len(),
            expected.len(),
            shown.unwrap_or_default(),
            found.as_bstr(),
            expected.as_bstr()
        );
    }
}

/// A project with the recipe `tests/fixtures/tiny`, and a repository with the tree that it is for.
pub(crate) struct Tiny {
    pub(crate) sandbox: Sandbox,
    pub(crate) store: Store,
    pub(crate) rev: String,
}

impl Tiny {
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox::new();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny");
        for dir in ["patches", "templates"] {
            copy(&fixture.join(dir), &sandbox.path(dir));
        }
        let files = tree_files(&fixture.join("tree"), "");
        let files: Vec<_> = files
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
            .collect();
        let store = Store::new(&sandbox, "tree.git");
        let tree_id = store.tree(&files);
        let rev = store
            .commit(tree_id, None, "a tree for tests\n")
            .to_string();
        Self {
            sandbox,
            store,
            rev,
        }
    }

    /// A commit with these files changed or added; runs are on it from now on.
    pub(crate) fn commit(&mut self, files: &[(&str, &[u8])], message: &str) -> String {
        let base = self.store.repo.base(&self.rev).expect("a commit");
        let tree_id = self.store.tree_with(base.tree_id, files);
        self.rev = self
            .store
            .commit(tree_id, Some(base.commit_id), message)
            .to_string();
        self.rev.clone()
    }

    /// Changes a file of the tree, in which `from` must be once.
    #[track_caller]
    pub(crate) fn change(&mut self, path: &str, from: &str, to: &str) {
        let text = self.store.file(&self.rev, path);
        let text = text.to_str().expect("UTF-8");
        assert_eq!(text.matches(from).count(), 1, "`{from}` is in {path} once");
        self.commit(
            &[(path, text.replacen(from, to, 1).as_bytes())],
            "changed by a test\n",
        );
    }

    /// Changes a file of the project, in which `from` must be once.
    #[track_caller]
    pub(crate) fn edit(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.sandbox.path(path)).expect("a file");
        assert_eq!(text.matches(from).count(), 1, "`{from}` is in {path} once");
        self.sandbox.write(path, text.replacen(from, to, 1));
    }

    pub(crate) fn reroll(&self, args: &[&str]) -> Program {
        let program = self
            .sandbox
            .reroll(args)
            .args(["--base", &self.rev, "--tree"]);
        program.arg(&self.store.path)
    }

    pub(crate) fn regen(&self) -> Program {
        self.reroll(&["regen", "--author", AUTHOR, "-s", "-o", "out"])
    }

    /// Refused; neither a directory nor an object nor a ref is there that was not before, but for what the tool keeps for itself.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, words: &[&str]) -> Ran {
        let listing = || {
            let mut listing = self.sandbox.listing(".");
            listing.retain(|path| !path.starts_with("home/cache"));
            listing
        };
        let before = listing();
        let ran = self.regen().args(["--ref", "refs/heads/series"]).run();
        let ran = ran.refused(code).says(words);
        assert_eq!(listing(), before, "nothing is written");
        ran
    }
}

/// Copies a directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    for (path, bytes) in tree_files(from, "") {
        let to = to.join(path);
        fs::create_dir_all(to.parent().expect("a parent")).expect("directories");
        fs::write(to, bytes).expect("it is written");
    }
}

/// Every file below a directory, by its path with `/`.
pub(crate) fn tree_files(dir: &Path, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.expect("an entry");
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(tree_files(&entry.path(), &format!("{path}/")));
        } else {
            found.push((path, fs::read(entry.path()).expect("a file")));
        }
    }
    found.sort();
    found
}
