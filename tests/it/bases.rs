//! The cache of bases: every form of a source, hostile archives, runs that were killed, and a Debian mirror on disk.
//!
//! Hides how the little kernel of these tests is packed.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reroll::cache::{AddOptions, Cache, State};
use reroll::error::{Exit, exit_of};
use reroll::exec::{End, Task};
use reroll::import::Source;
use reroll::ui::{Color, Ui};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const TIME: u64 = 1_700_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Executable,
    Link,
}

/// The little kernel: every mode, names that need quoting, files that its own `.gitignore` would drop.
fn kernel() -> Vec<(&'static [u8], Kind, &'static [u8])> {
    use Kind::{Executable, Link, Plain};
    vec![
        (b".gitignore", Plain, b"*.o\n/mm/\n"),
        (b"Documentation/a \"quoted\\name\".rst", Plain, b"x"),
        (b"Documentation/line\nfeed", Plain, b"x"),
        (b"Documentation/\xff\xfe", Plain, b"not UTF-8\0\xff"),
        (b"Kconfig", Plain, b"mainmenu \"Linux\"\n"),
        (
            b"Makefile",
            Plain,
            b"VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION = -rc1\n",
        ),
        (b"arch/Makefile", Plain, b"obj-y += x86/\n"),
        (b"arch/link", Link, b"../mm"),
        (b"empty", Plain, b""),
        (b"lib/blob.o", Plain, b"ignored, and yet here"),
        (b"mm/mm_init.c", Plain, b"void __init mm_init(void)\n{\n}\n"),
        (b"scripts/run.sh", Executable, b"#!/bin/sh\n"),
        (b"scripts/dangling", Link, b"/no/such/place"),
    ]
}

fn ui() -> Ui {
    Ui::new(Color::Never, true)
}

fn scratch() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn add(cache: &Cache, name: &str, source: &Path) -> anyhow::Result<reroll::cache::Added> {
    let source = Source::parse(source.to_str().expect("plain"))?;
    cache.add(name, &source, AddOptions::default(), ui())
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits: Vec<_> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

fn git(repo: &Path, args: &[&str]) -> Vec<u8> {
    Task::git()
        .arg("-C")
        .arg(repo)
        .args(args)
        .output()
        .expect("git runs")
}

fn write_directory(dir: &Path) {
    for (path, kind, bytes) in kernel() {
        let path = dir.join(std::ffi::OsStr::from_bytes(path));
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        if kind == Kind::Link {
            symlink(std::ffi::OsStr::from_bytes(bytes), &path).expect("linked");
            continue;
        }
        fs::write(&path, bytes).expect("written");
        let mode = if kind == Kind::Executable {
            0o755
        } else {
            0o640
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
    }
}

/// A tar file that can hold anything: the crate's own setters refuse what these tests need.
#[derive(Default)]
struct Tar(Vec<u8>);

impl Tar {
    fn of_kernel(top: &str) -> Self {
        Self::of(top, &kernel())
    }

    fn of(top: &str, files: &[(&[u8], Kind, &[u8])]) -> Self {
        let mut tar = Self::default();
        if !top.is_empty() {
            tar.add(top.as_bytes(), b'5', b"", b"");
        }
        for &(path, kind, bytes) in files {
            let path = [top.as_bytes(), path].concat();
            match kind {
                Kind::Link => tar.add(&path, b'2', bytes, b""),
                _ => tar.add_mode(
                    &path,
                    b'0',
                    b"",
                    bytes,
                    if kind == Kind::Executable {
                        0o755
                    } else {
                        0o644
                    },
                ),
            };
        }
        tar
    }

    fn add(&mut self, path: &[u8], kind: u8, link: &[u8], bytes: &[u8]) -> &mut Self {
        self.add_mode(path, kind, link, bytes, 0o644)
    }

    fn add_mode(
        &mut self,
        path: &[u8],
        kind: u8,
        link: &[u8],
        bytes: &[u8],
        mode: u32,
    ) -> &mut Self {
        let mut block = [0_u8; 512];
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, path);
        put(100, format!("{mode:07o}").as_bytes());
        put(124, format!("{:011o}", bytes.len()).as_bytes());
        put(136, format!("{TIME:011o}").as_bytes());
        put(148, b"        ");
        put(156, &[kind]);
        put(157, link);
        put(257, b"ustar\x0000");
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.0.extend_from_slice(&block);
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn end(&self) -> Vec<u8> {
        let mut bytes = self.0.clone();
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }
}

fn packed(form: &str, bytes: &[u8]) -> Vec<u8> {
    match form {
        "xz" => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            encoder.write_all(bytes).expect("packed");
            encoder.finish().expect("packed")
        }
        "gz" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).expect("packed");
            encoder.finish().expect("packed")
        }
        "zst" => zstd::encode_all(bytes, 1).expect("packed"),
        _ => bytes.to_vec(),
    }
}

fn deb(version: &str, form: &str, source: &[u8]) -> Vec<u8> {
    let control = format!("Package: linux-source-7.3\nVersion: {version}\nDescription: x\n y\n");
    let mut control_tar = Tar::default();
    control_tar
        .add(b"./", b'5', b"", b"")
        .add(b"./control", b'0', b"", control.as_bytes());
    let mut data_tar = Tar::default();
    let path = format!("./usr/src/linux-source-7.3.tar.{form}");
    data_tar
        .add(b"./usr/share/doc/x", b'0', b"", b"text")
        .add(path.as_bytes(), b'0', b"", source)
        .add(
            b"./usr/src/linux-patch-7.3-rt.patch.xz",
            b'0',
            b"",
            b"other",
        );
    let mut archive = ar::Builder::new(Vec::new());
    let mut member = |name: &str, bytes: &[u8]| {
        let header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        archive.append(&header, bytes).expect("packed");
    };
    member("debian-binary", b"2.0\n");
    member(
        &format!("control.tar.{form}"),
        &packed(form, &control_tar.end()),
    );
    member(&format!("data.tar.{form}"), &packed(form, &data_tar.end()));
    archive.into_inner().expect("packed")
}

fn kernel_deb(version: &str, form: &str) -> Vec<u8> {
    let source = packed(form, &Tar::of_kernel("linux-source-7.3/").end());
    deb(version, form, &source)
}

/// The package of a kernel with these files.
pub(crate) fn deb_of(version: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_bytes(), Kind::Plain, text.as_bytes()))
        .collect();
    let source = packed("xz", &Tar::of("linux-source-7.3/", &files).end());
    deb(version, "xz", &source)
}

/// Nothing in the cache tells that something was tried.
fn assert_nothing_left(dir: &Path) {
    let repo = dir.join("bases.git");
    assert_eq!(git(&repo, &["for-each-ref"]), b"");
    let packs = fs::read_dir(repo.join("objects/pack")).map_or(0, Iterator::count);
    assert_eq!(packs, 0, "in {}", repo.display());
    for entry in fs::read_dir(&repo).expect("listed") {
        let name = entry.expect("listed").file_name();
        assert!(!name.to_string_lossy().starts_with("fast_import_crash"));
    }
}

#[test]
fn every_form_of_a_source_gives_the_tree_that_git_makes_of_the_directory() {
    let dir = scratch();
    let cache = Cache::at(&dir.path().join("cache"));
    let tree = dir.path().join("tree");
    write_directory(&tree);
    let added = add(&cache, "directory", &tree).expect("imported");
    assert_eq!(added.state, State::New);
    assert_eq!(added.base.release, "7.3.4-rc1");
    assert_eq!(added.base.origin, "directory");

    let oracle = dir.path().join("oracle");
    write_directory(&oracle);
    git(&oracle, &["init", "-q"]);
    git(&oracle, &["add", "--force", "--all"]);
    let expected = git(&oracle, &["write-tree"]);

    let forms = [
        ("tar", Tar::of_kernel("linux-7.3/").end()),
        ("bare-tar", Tar::of_kernel("").end()),
        ("dot-tar", Tar::of_kernel("./").end()),
        ("xz", packed("xz", &Tar::of_kernel("linux-7.3/").end())),
        ("gz", packed("gz", &Tar::of_kernel("linux-7.3/").end())),
        ("zst", packed("zst", &Tar::of_kernel("linux-7.3/").end())),
        ("deb-xz", kernel_deb("7.3.4-1", "xz")),
        ("deb-gz", kernel_deb("7.3.4-1", "gz")),
        ("deb-zst", kernel_deb("7.3.4-1", "zst")),
    ];
    for (name, bytes) in &forms {
        // No name tells what it is.
        let path = dir.path().join(format!("source-{name}.bin"));
        fs::write(&path, bytes).expect("written");
        let base = add(&cache, name, &path).expect(name).base;
        let commit = git(&cache.repo_path(), &["cat-file", "commit", name]);
        let commit = String::from_utf8(commit).expect("text");
        let package = base
            .package
            .as_ref()
            .map_or(String::new(), |package| format!(" ({package})"));
        assert_eq!(
            commit,
            format!(
                "tree {}author reroll <reroll@localhost> {TIME} +0000\n\
                 committer reroll <reroll@localhost> {TIME} +0000\n\n\
                 Linux 7.3.4-rc1{package}\n\nReroll-import: sha256:{}\n",
                String::from_utf8_lossy(&expected),
                sha256(bytes)
            )
        );
        assert_eq!(base.package.is_some(), name.starts_with("deb"));
    }
    let directory = git(&cache.repo_path(), &["rev-parse", "directory^{tree}"]);
    assert_eq!(directory, expected);
    git(&cache.repo_path(), &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(cache.list().expect("listed").len(), forms.len() + 1);
}

#[test]
fn the_same_source_is_the_same_commit_in_any_cache_and_a_second_import_does_nothing() {
    let dir = scratch();
    let path = dir.path().join("k.tar");
    fs::write(&path, Tar::of_kernel("k/").end()).expect("written");
    let tree = dir.path().join("tree");
    write_directory(&tree);
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let (one, two) = (Cache::at(&one), Cache::at(&two));
    for (name, source) in [("file", &path), ("directory", &tree)] {
        let first = add(&one, name, source).expect("imported");
        assert_eq!(add(&two, name, source).expect("imported"), first);
        let again = add(&one, name, source).expect("looked at");
        assert_eq!(
            (again.state, again.base),
            (State::Unchanged, first.base.clone())
        );
        let other = add(&one, &format!("{name}-2"), source).expect("named");
        assert_eq!(other.state, State::New);
        assert_eq!(other.base.commit_id, first.base.commit_id);
    }
}

#[test]
fn a_name_that_is_taken_is_given_away_by_force_only() {
    let dir = scratch();
    let cache = Cache::at(&dir.path().join("cache"));
    let tree = dir.path().join("tree");
    write_directory(&tree);
    let first = add(&cache, "k", &tree).expect("imported").base;
    fs::write(tree.join("new-file"), "new").expect("written");
    let tar = dir.path().join("k.tar");
    fs::write(&tar, Tar::of_kernel("").end()).expect("written");
    let before = objects(&cache);
    for source in [&tree, &tar] {
        let error = add(&cache, "k", source).expect_err("taken");
        assert_eq!(exit_of(&error), Exit::Usage);
        assert_eq!(cache.list().expect("listed"), std::slice::from_ref(&first));
        assert_eq!(objects(&cache), before, "what was refused is gone");
    }
    let force = AddOptions {
        force: true,
        ..AddOptions::default()
    };
    let source = Source::Directory(tree);
    let second = cache.add("k", &source, force, ui()).expect("replaced");
    assert_eq!(second.state, State::Replaced);
    assert_ne!(second.base.commit_id, first.commit_id);
    assert!(!objects(&cache).contains(&first.commit_id.to_string()));
}

fn objects(cache: &Cache) -> String {
    let all = [
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objectname)",
    ];
    String::from_utf8(git(&cache.repo_path(), &all)).expect("text")
}

#[test]
fn a_removed_base_gives_its_space_back_and_the_others_stay() {
    let dir = scratch();
    let cache = Cache::at(&dir.path().join("cache"));
    assert!(cache.remove("k").is_err(), "there is no cache yet");
    let tree = dir.path().join("tree");
    write_directory(&tree);
    add(&cache, "a", &tree).expect("imported");
    fs::write(tree.join("more"), "more").expect("written");
    add(&cache, "b", &tree).expect("imported");
    cache.remove("b").expect("removed");
    git(&cache.repo_path(), &["fsck", "--strict"]);
    let names: Vec<_> = cache
        .list()
        .expect("listed")
        .into_iter()
        .map(|base| base.name)
        .collect();
    assert_eq!(names, ["a"]);
    cache.remove("a").expect("removed");
    assert_eq!(objects(&cache), "");
    let error = cache.remove("a").expect_err("gone");
    assert_eq!(exit_of(&error), Exit::Usage);
    add(&cache, "a", &tree).expect("imported once more");
}

/// What is wrong, and the archive.
fn hostile_archives() -> Vec<(&'static str, Vec<u8>)> {
    let good = || Tar::of_kernel("k/");
    let with = |path: &[u8], kind: u8, link: &[u8]| good().add(path, kind, link, b"").end();
    let whole = good().end();
    let mut bad_sum = whole.clone();
    bad_sum[150] ^= 1;
    let mut broken_xz = packed("xz", &whole);
    let middle = broken_xz.len() / 2;
    broken_xz[middle] ^= 0xff;
    let mut bad_checksum = packed("gz", &whole);
    let end = bad_checksum.len() - 6;
    bad_checksum[end] ^= 0xff;
    let cut = |mut bytes: Vec<u8>, less: usize| {
        bytes.truncate(bytes.len() - less);
        bytes
    };
    let huge = {
        let mut tar = good();
        let at = tar.0.len();
        tar.add(b"k/huge", b'0', b"", b"");
        tar.0[at + 124..at + 136].copy_from_slice(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
        let block = &mut tar.0[at..at + 512];
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        tar.end()
    };
    let two_in_deb = {
        let source = packed("xz", &whole);
        let mut data = Tar::default();
        data.add(b"./usr/src/linux-source-7.3.tar.xz", b'0', b"", &source);
        data.add(b"./usr/src/linux-source-7.4.tar.xz", b'0', b"", &source);
        let mut archive = ar::Builder::new(Vec::new());
        let data = data.end();
        let header = ar::Header::new(b"data.tar".to_vec(), data.len() as u64);
        archive.append(&header, &data[..]).expect("packed");
        archive.into_inner().expect("packed")
    };
    vec![
        ("an absolute path", with(b"/etc/x", b'0', b"")),
        ("a path that leaves", with(b"k/../../x", b'0', b"")),
        ("a directory that leaves", with(b"../x/", b'5', b"")),
        (
            "git's own directory",
            with(b"k/.git/hooks/post-checkout", b'0', b""),
        ),
        (
            "git's own directory, capitals",
            with(b"k/sub/.GIT/config", b'0', b""),
        ),
        (
            "git's own directory, a link",
            with(b"k/.git", b'2', b"/tmp"),
        ),
        ("a character device", with(b"k/dev", b'3', b"")),
        ("a block device", with(b"k/dev", b'4', b"")),
        ("a pipe", with(b"k/pipe", b'6', b"")),
        ("an unknown kind", with(b"k/x", b'V', b"")),
        ("a file twice", with(b"k/Makefile", b'0', b"")),
        (
            "a file twice, spelt otherwise",
            with(b"k/.//Makefile", b'0', b""),
        ),
        ("a file below a link", with(b"k/arch/link/x", b'0', b"")),
        ("a file below a file", with(b"k/Makefile/x", b'0', b"")),
        ("a hard link to nowhere", with(b"k/x", b'1', b"k/nothing")),
        (
            "a hard link out of the tree",
            with(b"k/x", b'1', b"../../etc/passwd"),
        ),
        ("a link to nothing", with(b"k/x", b'2', b"")),
        ("a sparse file", with(b"k/x", b'S', b"")),
        ("an impossible size", huge),
        ("a broken header", bad_sum),
        ("no closing block", cut(whole.clone(), 1024)),
        ("cut off in a file", cut(whole.clone(), 1024 + 600)),
        ("cut off xz", cut(packed("xz", &whole), 30)),
        ("cut off gz", cut(packed("gz", &whole), 9)),
        ("cut off zst", cut(packed("zst", &whole), 9)),
        ("a flipped bit in xz", broken_xz),
        ("a flipped bit in gz's checksum", bad_checksum),
        ("cut off deb", cut(kernel_deb("7.3.4-1", "xz"), 100)),
        ("two kernels in a deb", two_in_deb),
        ("an empty deb", b"!<arch>\n".to_vec()),
        ("an empty file", Vec::new()),
        ("no archive", b"hello, world\n".repeat(100)),
        (
            "an empty tar",
            Tar::default().add(b"k/", b'5', b"", b"").end(),
        ),
        (
            "no kernel",
            Tar::default().add(b"k/x.c", b'0', b"", b"int x;").end(),
        ),
        ("a Makefile that is a link", {
            Tar::default()
                .add(b"k/Makefile", b'2', b"VERSION = 1", b"")
                .add(b"k/Kconfig", b'0', b"", b"")
                .end()
        }),
    ]
}

#[test]
fn a_hostile_or_broken_archive_is_refused_and_leaves_nothing() {
    let dir = scratch();
    let cache = Cache::at(&dir.path().join("cache"));
    for (what, bytes) in hostile_archives() {
        let path = dir.path().join("source");
        fs::write(&path, bytes).expect("written");
        let error = add(&cache, "k", &path).expect_err(what);
        assert_eq!(exit_of(&error), Exit::Usage, "{what}: {error:#}");
        assert_nothing_left(&dir.path().join("cache"));
    }
}

#[test]
fn what_harmless_archives_hold_besides_files_does_no_harm() {
    let dir = scratch();
    let cache = Cache::at(&dir.path().join("cache"));
    let mut tar = Tar::default();
    tar.add(
        b"pax_global_header",
        b'g',
        b"",
        b"52 comment=0123456789012345678901234567890123456789\n",
    );
    tar.0.extend(Tar::of_kernel("k/").0);
    tar.add(b"k/hard", b'1', b"k/scripts/run.sh", b"");
    let long = format!("k/{}/x.c", "d".repeat(150));
    tar.add(b"././@LongLink", b'L', b"", format!("{long}\0").as_bytes());
    tar.add(&long.as_bytes()[..100], b'0', b"", b"long");
    let path = dir.path().join("k.tar");
    fs::write(&path, tar.end()).expect("written");
    add(&cache, "k", &path).expect("imported");
    let repo = cache.repo_path();
    let listed = git(&repo, &["ls-tree", "-r", "k"]);
    let listed = String::from_utf8_lossy(&listed);
    let run = listed
        .lines()
        .find(|line| line.ends_with("scripts/run.sh"))
        .expect("there");
    let hard = listed
        .lines()
        .find(|line| line.ends_with("\thard"))
        .expect("there");
    assert_eq!(run.split('\t').next(), hard.split('\t').next());
    assert!(listed.contains(&"d".repeat(150)));
    assert!(!listed.contains("pax_global_header"));
}

#[test]
fn a_directory_with_something_that_git_cannot_hold_is_refused() {
    let dir = scratch();
    let cache = Cache::at(&dir.path().join("cache"));
    let tree = dir.path().join("tree");
    write_directory(&tree);
    fs::create_dir_all(tree.join("sub/.git")).expect("made");
    fs::write(tree.join("sub/.git/config"), "").expect("written");
    assert!(add(&cache, "k", &tree).is_err(), "a repository below it");
    fs::rename(tree.join("sub/.git"), tree.join(".git")).expect("moved");
    let error = add(&cache, "k", &tree).expect_err("a repository itself");
    let hint = reroll::error::refusal(&error).and_then(|refusal| refusal.hint.clone());
    assert!(hint.is_some_and(|hint| hint.contains("--tree")));
    fs::remove_dir_all(tree.join(".git")).expect("removed");
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).expect("bound");
    assert!(add(&cache, "k", &tree).is_err(), "a socket");
    assert_nothing_left(&dir.path().join("cache"));
    fs::remove_file(tree.join("socket")).expect("removed");
    add(&cache, "k", &tree).expect("imported");
}

/// A kernel that takes a moment to import.
fn write_large_tar(path: &Path) {
    let mut tar = Tar::of_kernel("k/");
    let mut state = 1_u64;
    let mut noise = Vec::with_capacity(1 << 16);
    while noise.len() < 1 << 16 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        noise.extend_from_slice(format!("{:x} ", state >> 40).as_bytes());
    }
    for number in 0..400_usize {
        let bytes = &noise[number * 40..number * 40 + 40_000];
        tar.add(
            format!("k/drivers/f{number}.c").as_bytes(),
            b'0',
            b"",
            bytes,
        );
    }
    fs::write(path, tar.end()).expect("written");
}

fn reroll(cache_home: &Path) -> Task {
    Task::new(env!("CARGO_BIN_EXE_reroll")).env("XDG_CACHE_HOME", cache_home)
}

#[test]
fn an_import_that_is_killed_at_any_time_is_done_by_the_next_run() {
    let dir = scratch();
    let path = dir.path().join("k.tar");
    write_large_tar(&path);
    let whole = Cache::at(&dir.path().join("whole"));
    let expected = add(&whole, "k", &path).expect("imported").base;
    let mut killed = 0;
    for milliseconds in [5, 20, 50, 100, 200, 300, 500, 800] {
        let home = dir.path().join("home");
        let cache = Cache::at(&home.join("reroll"));
        let output = Task::new("timeout")
            .args([
                "--signal=KILL",
                &format!("{}", f64::from(milliseconds) / 1000.0),
            ])
            .arg(env!("CARGO_BIN_EXE_reroll"))
            .args(["base", "add", "k"])
            .arg(&path)
            .env("XDG_CACHE_HOME", &home)
            .run()
            .expect("timeout runs");
        killed += u32::from(output.exit != End::Code(0));
        let before = cache.list().expect("whatever is there can be read");
        assert!(
            before.is_empty() || before == [expected.clone()],
            "after {milliseconds} ms"
        );
        let again = add(&cache, "k", &path).expect("the next run does it");
        assert_eq!(again.base, expected);
        git(&cache.repo_path(), &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(
            git(&cache.repo_path(), &["for-each-ref", "refs/reroll"]),
            b""
        );
        fs::remove_dir_all(&home).expect("removed");
    }
    assert!(
        killed >= 3,
        "too few runs were killed to prove anything: {killed}"
    );
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let dir = scratch();
    let cache = Cache::at(&dir.path().join("cache"));
    let tree = dir.path().join("tree");
    write_directory(&tree);
    let base = add(&cache, "k", &tree).expect("imported").base;
    let repo = cache.repo_path();
    let id = base.commit_id.to_string();
    git(&repo, &["update-ref", "refs/reroll/importing", &id]);
    let left = [
        "objects/pack/tmp_pack_AbCdEf",
        "objects/pack/tmp_idx_AbCdEf",
        "objects/pack/.tmp-1-pack-x.pack",
        "fast_import_crash_1",
        "refs/tags/k.lock",
        "config.lock",
        "HEAD.lock",
        "packed-refs.lock",
    ];
    for name in left {
        fs::write(repo.join(name), "").expect("written");
    }
    fs::write(tree.join("more"), "more").expect("written");
    add(&cache, "l", &tree).expect("imported");
    for name in left {
        assert!(!repo.join(name).exists(), "{name}");
    }
    assert_eq!(git(&repo, &["for-each-ref", "refs/reroll"]), b"");
}

#[test]
fn two_imports_at_once_do_not_hurt_each_other() {
    let dir = scratch();
    let path = dir.path().join("k.tar");
    write_large_tar(&path);
    let cache = Cache::at(&dir.path().join("cache"));
    let states: Vec<State> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| add(&cache, "k", &path).expect("imported").state))
            .collect();
        runs.into_iter()
            .map(|run| run.join().expect("joined"))
            .collect()
    });
    assert_eq!(
        states.iter().filter(|&&state| state == State::New).count(),
        1
    );
    assert_eq!(
        states
            .iter()
            .filter(|&&state| state == State::Unchanged)
            .count(),
        2
    );
}

#[test]
fn an_interrupted_import_says_so_and_leaves_nothing() {
    let dir = scratch();
    let path = dir.path().join("k.tar");
    write_large_tar(&path);
    let mut interrupted = 0;
    // On a busy machine an import begins later, and lasts longer.
    for milliseconds in [50, 100, 200, 300, 600, 1200, 2400, 4800] {
        if interrupted > 1 {
            break;
        }
        let home = dir.path().join(format!("home-{milliseconds}"));
        let output = Task::new("timeout")
            .args([
                "--preserve-status",
                "--signal=INT",
                &format!("{}", f64::from(milliseconds) / 1000.0),
            ])
            .arg(env!("CARGO_BIN_EXE_reroll"))
            .args(["base", "add", "k"])
            .arg(&path)
            .env("XDG_CACHE_HOME", &home)
            .timeout(Duration::from_mins(1))
            .run()
            .expect("timeout runs");
        // Before the handler is in place the signal itself ends the process, which is no matter here.
        if output.exit == End::Code(130)
            && String::from_utf8_lossy(&output.stderr).contains("interrupted")
        {
            interrupted += 1;
            if home.join("reroll/bases.git/HEAD").exists() {
                assert_nothing_left(&home.join("reroll"));
            }
        }
    }
    assert!(interrupted > 0, "no run was interrupted");
}

#[test]
fn an_unwritable_cache_is_one_clear_sentence() {
    let dir = scratch();
    let file = dir.path().join("file");
    fs::write(&file, "").expect("written");
    let tree = dir.path().join("tree");
    write_directory(&tree);
    let cache = Cache::at(&file.join("cache"));
    let error = add(&cache, "k", &tree).expect_err("no directory");
    assert_eq!(exit_of(&error), Exit::Tool);
    assert!(cache.list().expect("nothing is there").is_empty());
    let output = reroll(&file)
        .args(["base", "list", "--json"])
        .run()
        .expect("runs");
    assert_eq!(output.exit, End::Code(0));
}

/// A Debian archive on disk, with the machine's apt set up to use it.
pub(crate) struct Mirror {
    dir: TempDir,
    architecture: String,
}

impl Mirror {
    /// `None` on a machine without apt, which CI is not.
    pub(crate) fn new() -> Option<Self> {
        let asked = Task::new("dpkg").arg("--print-architecture").output();
        let Ok(architecture) = asked else {
            assert!(std::env::var_os("CI").is_none(), "CI needs apt and dpkg");
            return None;
        };
        let mirror = Self {
            dir: scratch(),
            architecture: String::from_utf8_lossy(&architecture).trim().to_owned(),
        };
        fs::create_dir_all(mirror.path("sources.d")).expect("made");
        let config = format!(
            "Dir::Etc::SourceList \"{0}/none.list\";\nDir::Etc::SourceParts \"{0}/sources.d\";\n\
             APT::Update::Post-Invoke {{ \"touch {0}/a-hook-ran\"; }};\n",
            mirror.dir.path().display()
        );
        fs::write(mirror.path("apt.conf"), config).expect("written");
        Some(mirror)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn cache(&self) -> Cache {
        Cache::at(&self.path("cache")).with_apt_config(&self.path("apt.conf"))
    }

    /// The machine's own sources.
    pub(crate) fn own(&self, suites: &[(&str, &str)]) {
        let lines: Vec<_> = suites
            .iter()
            .map(|(archive, suite)| {
                format!(
                    "deb [trusted=yes] file:{}/{archive} {suite} main\n",
                    self.dir.path().display()
                )
            })
            .collect();
        fs::write(self.path("sources.d/own.list"), lines.concat()).expect("written");
    }

    /// Publishes a suite with these `(package, version)`, each a real `.deb`.
    fn suite(&self, archive: &str, suite: &str, label: &str, packages: &[(&str, &str)]) {
        let packages: Vec<_> = packages
            .iter()
            .map(|&(name, version)| (name, version, kernel_deb(version, "xz")))
            .collect();
        self.publish(archive, suite, label, &packages);
    }

    /// Publishes a suite with these `(package, version, file)`.
    pub(crate) fn publish(
        &self,
        archive: &str,
        suite: &str,
        label: &str,
        packages: &[(&str, &str, Vec<u8>)],
    ) {
        let top = self.path(archive);
        fs::create_dir_all(top.join("pool")).expect("made");
        let mut text = String::new();
        for (name, version, bytes) in packages {
            let file = format!("pool/{name}_{version}_all.deb");
            fs::write(top.join(&file), bytes).expect("written");
            text.push_str(&format!(
                "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: A U Thor <author@example.org>\n\
                 Filename: {file}\nSize: {}\nSHA256: {}\nDescription: x\n\n",
                bytes.len(),
                sha256(bytes)
            ));
        }
        let list = format!("main/binary-{}/Packages", self.architecture);
        let dists = top.join("dists").join(suite);
        fs::create_dir_all(dists.join(&list).parent().expect("a parent")).expect("made");
        fs::write(dists.join(&list), &text).expect("written");
        let origin = if label.starts_with("Debian") {
            "Debian"
        } else {
            label
        };
        let release = format!(
            "Origin: {origin}\nLabel: {label}\nSuite: {suite}\nCodename: {suite}\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n\
             Architectures: {} all\nComponents: main\nSHA256:\n {} {} {list}\n",
            self.architecture,
            sha256(text.as_bytes()),
            text.len()
        );
        fs::write(dists.join("Release"), release).expect("written");
    }
}

fn debian(cache: &Cache, name: &str, wanted: &str) -> anyhow::Result<reroll::cache::Added> {
    let source = Source::parse(&format!("debian:{wanted}"))?;
    cache.add(name, &source, AddOptions::default(), ui())
}

#[test]
fn debian_kernels_come_from_the_machine_s_own_mirror() {
    let Some(mirror) = Mirror::new() else { return };
    let old = [
        ("linux-source-6.1", "6.1.192-3"),
        ("linux-source-6.1", "6.1.170-3"),
        ("linux-source", "6.1.192-3"),
    ];
    mirror.suite("debian", "bookworm", "Debian", &old);
    let security = [
        ("linux-source-6.12", "6.12.9-1"),
        ("linux-source-6.12", "6.12.117-1~deb12u1"),
    ];
    mirror.suite(
        "security",
        "bookworm-security",
        "Debian-Security",
        &security,
    );
    mirror.suite(
        "other",
        "bookworm",
        "Somebody",
        &[("linux-source-9.9", "9.9-1")],
    );
    mirror.suite(
        "debian",
        "sid",
        "Debian",
        &[
            ("linux-source-7.3", "7.3~rc7-1"),
            ("linux-source-7.2", "7.2.13-1"),
        ],
    );
    let backports = [
        ("linux-source-7.2", "7.2.14-1~bpo13+1"),
        ("linux-source-6.12", "6.12.95-1~bpo13+1"),
    ];
    mirror.suite("debian", "trixie-backports", "Debian", &backports);
    mirror.suite(
        "debian",
        "experimental",
        "Debian",
        &[("linux-source-7.3", "7.3~rc7-1~exp1")],
    );
    mirror.own(&[
        ("other", "bookworm"),
        ("debian", "bookworm"),
        ("security", "bookworm-security"),
    ]);
    let cache = mirror.cache();

    let base = cache.default_base(ui()).expect("fetched");
    assert_eq!(
        base.origin, "linux-source-6.12=6.12.117-1~deb12u1",
        "of the machine's own suites only"
    );
    assert_eq!(base.name, "default");
    for (name, wanted, origin) in [
        ("old", "6.1", "linux-source-6.1=6.1.192-3"),
        ("lts", "6.12", "linux-source-6.12=6.12.117-1~deb12u1"),
        ("newest", "newest", "linux-source-7.2=7.2.14-1~bpo13+1"),
        ("unstable", "sid", "linux-source-7.3=7.3~rc7-1"),
        ("next", "experimental", "linux-source-7.3=7.3~rc7-1~exp1"),
        (
            "security",
            "bookworm-security",
            "linux-source-6.12=6.12.117-1~deb12u1",
        ),
    ] {
        let added = debian(&cache, name, wanted).expect(wanted);
        assert_eq!(
            (added.state, added.base.origin.as_str()),
            (State::New, origin),
            "{wanted}"
        );
        let again = debian(&cache, name, wanted).expect(wanted);
        assert_eq!(again.state, State::Unchanged);
    }
    for wanted in ["7.3", "5.10", "9.9", "nosuch"] {
        let error = debian(&cache, "x", wanted).expect_err(wanted);
        assert_eq!(exit_of(&error), Exit::Usage, "{wanted}: {error:#}");
    }
    let archives = fs::read_dir(mirror.path("cache/apt/archives")).expect("listed");
    let kept = archives.filter(|entry| entry.as_ref().expect("listed").path().is_file());
    assert_eq!(kept.count(), 0, "what was downloaded is gone");
    assert!(
        !mirror.path("a-hook-ran").exists(),
        "no hook of the system's runs"
    );
}

#[test]
fn package_lists_are_asked_for_once_a_day_or_on_demand_and_the_default_base_never_again() {
    let Some(mirror) = Mirror::new() else { return };
    mirror.suite(
        "debian",
        "bookworm",
        "Debian",
        &[("linux-source-6.1", "6.1.1-1")],
    );
    mirror.own(&[("debian", "bookworm")]);
    let cache = mirror.cache();
    let first = cache.default_base(ui()).expect("fetched");
    mirror.suite(
        "debian",
        "bookworm",
        "Debian",
        &[("linux-source-6.1", "6.1.2-1")],
    );
    let same = debian(&cache, "default", "default").expect("the lists of today");
    assert_eq!((same.state, &same.base), (State::Unchanged, &first));
    let source = Source::parse("debian:default").expect("a source");
    let refresh = AddOptions {
        refresh: true,
        force: false,
    };
    let error = cache
        .add("default", &source, refresh, ui())
        .expect_err("taken");
    assert_eq!(exit_of(&error), Exit::Usage);
    let force = AddOptions {
        refresh: true,
        force: true,
    };
    let added = cache
        .add("default", &source, force, ui())
        .expect("replaced");
    assert_eq!(added.base.origin, "linux-source-6.1=6.1.2-1");
    fs::remove_dir_all(mirror.path("debian")).expect("removed");
    assert_eq!(
        cache.default_base(ui()).expect("without a mirror"),
        added.base
    );
}

#[test]
fn a_download_that_is_whole_already_is_used_and_a_wrong_one_is_not() {
    let Some(mirror) = Mirror::new() else { return };
    mirror.suite(
        "debian",
        "sid",
        "Debian",
        &[("linux-source-7.3", "7.3.4-1")],
    );
    mirror.own(&[("debian", "sid")]);
    let cache = mirror.cache();
    let deb = kernel_deb("7.3.4-1", "xz");
    let archives = mirror.path("cache/apt/archives");
    let kept = archives.join("linux-source-7.3_7.3.4-1.deb");
    for wrong in [
        vec![0; deb.len()],
        deb[..100].to_vec(),
        [&deb[..], b"more"].concat(),
    ] {
        fs::create_dir_all(&archives).expect("made");
        fs::write(&kept, wrong).expect("written");
        debian(&cache, "k", "sid").expect("fetched anew");
        cache.remove("k").expect("removed");
    }
    let pool = mirror.path("debian/pool/linux-source-7.3_7.3.4-1_all.deb");
    fs::remove_file(&pool).expect("removed");
    let error = debian(&cache, "k", "sid").expect_err("it is not there");
    assert_eq!(exit_of(&error), Exit::Tool);
    fs::create_dir_all(&archives).expect("made");
    fs::write(&kept, &deb).expect("written");
    debian(&cache, "k", "sid").expect("it was fetched before");
    fs::write(&pool, vec![0; deb.len()]).expect("written");
    cache.remove("k").expect("removed");
    let error =
        debian(&cache, "k", "sid").expect_err("the mirror's file is not what its lists say");
    assert_eq!(exit_of(&error), Exit::Tool);
}

#[test]
fn without_a_source_of_debian_s_it_is_said_what_else_to_do() {
    let Some(mirror) = Mirror::new() else { return };
    let refused = |cache: &Cache| {
        let error = cache.default_base(ui()).expect_err("no source");
        assert_eq!(exit_of(&error), Exit::Tool);
        let hint = reroll::error::refusal(&error).and_then(|refusal| refusal.hint.clone());
        assert!(
            hint.is_some_and(|hint| hint.contains("--tree")),
            "{error:#}"
        );
    };
    refused(&mirror.cache());
    mirror.suite("other", "sid", "Somebody", &[("linux-source-9.9", "9.9-1")]);
    mirror.own(&[("other", "sid")]);
    refused(&mirror.cache());
    mirror.own(&[("gone", "sid")]);
    refused(&mirror.cache());
}

#[test]
fn a_machine_without_apt_is_one_clear_sentence() {
    let dir = scratch();
    let bin = dir.path().join("bin");
    fs::create_dir(&bin).expect("made");
    let git = Task::new("sh")
        .args(["-c", "command -v git"])
        .output()
        .expect("git is there");
    let git = String::from_utf8(git).expect("plain");
    symlink(git.trim(), bin.join("git")).expect("linked");
    let output = reroll(dir.path())
        .env("PATH", &bin)
        .args(["base", "add", "k", "debian:newest"])
        .run()
        .expect("runs");
    assert_eq!(output.exit, End::Code(4));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("no apt on this machine") && text.contains("hint: "),
        "{text}"
    );
}

#[test]
fn memory_does_not_grow_with_the_archive() {
    let dir = scratch();
    let path = dir.path().join("k.tar");
    let mut file = File::create(&path).expect("made");
    let mut tar = Tar::of_kernel("k/");
    // A single file that would not fit: 300 MB of zeros, written without holding them.
    let size = 300_u64 << 20;
    let at = tar.0.len();
    tar.add(b"k/large", b'0', b"", b"");
    let block = &mut tar.0[at..at + 512];
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    file.write_all(&tar.0).expect("written");
    let length = tar.0.len() as u64 + size + 1024;
    file.set_len(length).expect("set");
    // `ulimit -v` bounds the address space of reroll and of its git alike.
    let output = Task::new("sh")
        .args([
            "-c",
            "ulimit -v 262144; exec \"$0\" base add k \"$1\"",
            env!("CARGO_BIN_EXE_reroll"),
        ])
        .arg(&path)
        .env("XDG_CACHE_HOME", dir.path())
        .run()
        .expect("runs");
    assert_eq!(
        output.exit,
        End::Code(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
