//! What is written for the user stays what it is: a device, a FIFO, a link, a mode, a person's file; on odd file systems, and after a kill.
//!
//! Hides how each command that writes a file is run. [`THERE`] says what is under the name before and after: whoever finds a case adds a line. So do
//! [`ODD`], for file systems, and [`BESIDE`], for what lies in a directory.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};

use crate::bot::{Play, QUICK};
use crate::support::{AUTHOR, Ran, Tiny, in_path, left_out};

/// What is done before, in a directory of its own, where `out` is the name that is written to.
type Setup = fn(&Path);

/// What has to be there afterwards.
type Expected = fn(&Path, &[u8]);

/// What is under a name before a file is written there: what it is called, how it comes to be, whether it may be written, and what is there then.
const THERE: &[(&str, Setup, bool, Expected)] = &[
    (
        "nothing",
        |_| {},
        true,
        |dir, new| {
            holds(&dir.join("out"), new);
            mode(&dir.join("out"), 0o644);
        },
    ),
    (
        "an empty file with a mode",
        |dir| file(dir, "", 0o664),
        true,
        |dir, new| {
            holds(&dir.join("out"), new);
            mode(&dir.join("out"), 0o664);
        },
    ),
    (
        "a secret empty file",
        |dir| file(dir, "", 0o600),
        true,
        |dir, new| {
            holds(&dir.join("out"), new);
            mode(&dir.join("out"), 0o600);
        },
    ),
    (
        "a person's file",
        |dir| file(dir, "mine\n", 0o644),
        false,
        |dir, _| {
            holds(&dir.join("out"), b"mine\n");
        },
    ),
    (
        "a link to an empty file",
        |dir| {
            fs::create_dir(dir.join("else")).expect("a directory");
            fs::write(dir.join("else/real"), "").expect("a file");
            symlink("else/real", dir.join("out")).expect("a link");
        },
        true,
        |dir, new| {
            leads(&dir.join("out"), "else/real");
            holds(&dir.join("else/real"), new);
        },
    ),
    (
        "a link to a person's file",
        |dir| {
            fs::write(dir.join("real"), "mine\n").expect("a file");
            symlink("real", dir.join("out")).expect("a link");
        },
        false,
        |dir, _| {
            leads(&dir.join("out"), "real");
            holds(&dir.join("real"), b"mine\n");
        },
    ),
    (
        "a link to nothing",
        |dir| symlink("later", dir.join("out")).expect("a link"),
        true,
        |dir, new| {
            leads(&dir.join("out"), "later");
            holds(&dir.join("later"), new);
        },
    ),
    (
        "a chain of links",
        |dir| {
            symlink(dir.join("two"), dir.join("out")).expect("a link");
            symlink("three", dir.join("two")).expect("a link");
        },
        true,
        |dir, new| {
            assert!(dir.join("out").is_symlink() && dir.join("two").is_symlink());
            holds(&dir.join("three"), new);
        },
    ),
    (
        "a file with two names",
        |dir| {
            file(dir, "", 0o640);
            fs::hard_link(dir.join("out"), dir.join("other")).expect("a name");
        },
        true,
        |dir, new| {
            holds(&dir.join("other"), new);
            mode(&dir.join("other"), 0o640);
        },
    ),
    (
        "a directory",
        |dir| fs::create_dir(dir.join("out")).expect("a directory"),
        false,
        |dir, _| {
            assert!(dir.join("out").is_dir());
        },
    ),
    (
        "what a killed run left",
        |dir| {
            fs::write(dir.join(".out.reroll-4194304999-0"), "half").expect("a file");
        },
        true,
        |dir, new| {
            holds(&dir.join("out"), new);
            assert!(!dir.join(".out.reroll-4194304999-0").exists());
        },
    ),
];

fn file(dir: &Path, text: &str, mode: u32) {
    let path = dir.join("out");
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
}

#[track_caller]
fn holds(path: &Path, bytes: &[u8]) {
    let found = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        !bytes.is_empty() && found == bytes,
        "{}: {}",
        path.display(),
        found.as_bstr()
    );
}

#[track_caller]
fn mode(path: &Path, mode: u32) {
    let found = fs::metadata(path).expect("a file").permissions().mode() & 0o7777;
    assert_eq!(found, mode, "{}: {found:o}", path.display());
}

#[track_caller]
fn leads(path: &Path, target: &str) {
    assert_eq!(fs::read_link(path).expect("a link"), Path::new(target));
}

/// The commands that write a file: `{}` is its name.
const WRITERS: [(&str, &[&str]); 7] = [
    (
        "mails",
        &[
            "regen", "--tree", "remote", "--base", "v1.1", "--author", AUTHOR, "--mbox", "{}",
        ],
    ),
    (
        "check",
        &[
            "check", "--tree", "remote", "--base", "v1.1", "--branch", "series", "--gate", "apply",
            "--junit", "{}",
        ],
    ),
    ("page", &["report", "-o", "{}"]),
    ("junit", &["report", "--junit", "{}"]),
    ("markdown", &["report", "--markdown", "{}"]),
    (
        "cell",
        &["bot", "cell", "tiny/v1.1/quick", "--output", "{}"],
    ),
    ("manual", &["man", "{dir}"]),
];

/// A project in which each command of [`WRITERS`] has something to write.
fn play() -> Play {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    play.git(
        "remote",
        &[
            "fetch",
            "-q",
            "../bot.git",
            "refs/heads/reroll/tiny/v1.1:refs/heads/series",
        ],
    );
    play
}

/// Runs a command that writes to a file; its exit code, and what it says.
fn run(play: &Play, args: &[&str], path: &Path, more: &[&str]) -> (i32, String) {
    let dir = path.parent().expect("a directory");
    fs::create_dir_all(dir).expect("a directory");
    let filled = args.iter().map(|arg| {
        arg.replace("{}", &path.display().to_string())
            .replace("{dir}", &dir.display().to_string())
    });
    let filled: Vec<_> = filled.chain(more.iter().map(|&it| it.to_owned())).collect();
    let filled: Vec<_> = filled.iter().map(String::as_str).collect();
    let output = play.start(&filled).wait_with_output().expect("it ends");
    (
        output.status.code().expect("a code"),
        output.stderr.to_str_lossy().into_owned(),
    )
}

/// The name of the only cell that can be run here.
fn cell(play: &Play) -> String {
    let (json, _) = play.reroll(&["bot", "plan", "--all", "--format", "github"], 0);
    let matrix: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    matrix["include"][0]["id"]
        .as_str()
        .expect("a cell")
        .to_owned()
}

#[test]
fn what_is_under_a_name_stays_what_it_is() {
    let play = play();
    let cell = cell(&play);
    for (name, args) in WRITERS {
        if name == "manual" {
            continue;
        }
        let args: Vec<_> = args
            .iter()
            .map(|arg| {
                if *arg == "tiny/v1.1/quick" {
                    cell.as_str()
                } else {
                    arg
                }
            })
            .collect();
        let whole = play.path(&format!("whole/{name}"));
        assert_eq!(run(&play, &args, &whole, &[]).0, 0, "{name}");
        let whole = fs::read(whole).expect("a file");
        for (at, (what, setup, may, check)) in THERE.iter().enumerate() {
            let dir = play.path(&format!("there/{name}/{at}"));
            fs::create_dir_all(&dir).expect("a directory");
            setup(&dir);
            let (code, said) = run(&play, &args, &dir.join("out"), &[]);
            assert_eq!(code, if *may { 0 } else { 2 }, "{name}, {what}: {said}");
            // What tells how long it took is another each time.
            let new = if name == "check" && *may {
                fs::read(dir.join("out")).expect("a file")
            } else {
                whole.clone()
            };
            check(&dir, &new);
            let left = fs::read_dir(&dir).expect("a directory").flatten();
            let left: Vec<_> = left
                .map(|it| it.file_name())
                .filter(|it| it.to_string_lossy().contains(".reroll-"))
                .collect();
            assert!(left.is_empty(), "{name}, {what}: {left:?}");
            if !may && !dir.join("out").is_dir() {
                let (code, said) = run(&play, &args, &dir.join("out"), &["--force"]);
                assert_eq!(code, 0, "{name}, {what}, forced: {said}");
                assert!(fs::read(dir.join("out")).expect("a file").len() > 10);
            }
        }
    }
}

#[test]
fn devices_and_pipes_are_written_through() {
    let play = play();
    let cell = cell(&play);
    let is_root = fs::metadata("/proc/self").expect("proc").uid() == 0;
    if !is_root {
        left_out("devices", "only root can make one");
    }
    for (name, args) in WRITERS {
        if name == "manual" {
            continue;
        }
        let args: Vec<_> = args
            .iter()
            .map(|arg| {
                if *arg == "tiny/v1.1/quick" {
                    cell.as_str()
                } else {
                    arg
                }
            })
            .collect();
        let dir = play.path(&format!("through/{name}"));
        fs::create_dir_all(&dir).expect("a directory");

        let fifo = dir.join("fifo");
        let path = fifo.display().to_string();
        assert!(
            play.command("mkfifo", ".", &[&path])
                .status()
                .expect("mkfifo")
                .success()
        );
        let reader = std::thread::spawn(move || fs::read(path).expect("a pipe"));
        let (code, said) = run(&play, &args, &fifo, &[]);
        assert_eq!(code, 0, "{name}: {said}");
        assert!(reader.join().expect("read").len() > 10, "{name}");
        assert!(
            fs::symlink_metadata(&fifo)
                .expect("there")
                .file_type()
                .is_fifo(),
            "{name}"
        );

        if is_root {
            let null = dir.join("null");
            let path = null.display().to_string();
            assert!(
                play.command("mknod", ".", &[&path, "c", "1", "3"])
                    .status()
                    .expect("mknod")
                    .success()
            );
            for more in [&[][..], &["--force"]] {
                let (code, said) = run(&play, &args, &null, more);
                assert_eq!(code, 0, "{name}: {said}");
                assert!(
                    fs::symlink_metadata(&null)
                        .expect("there")
                        .file_type()
                        .is_char_device(),
                    "{name}"
                );
            }
            let full = dir.join("full");
            symlink("/dev/full", &full).expect("a link");
            let (code, said) = run(&play, &args, &full, &[]);
            assert_eq!(code, 4, "{name}: {said}");
            assert!(said.contains("hint: make room"), "{said}");
        }
    }
}

#[test]
fn an_open_file_is_written_through() {
    let play = play();
    let sh = |script: &str| {
        let script = script.replace(
            "{mails}",
            &format!(
                "'{}' regen --tree remote --base v1.1 --author '{AUTHOR}' --mbox",
                env!("CARGO_BIN_EXE_reroll")
            ),
        );
        let output = play
            .command("bash", ".", &["-c", &script])
            .output()
            .expect("bash");
        assert!(
            output.status.success(),
            "{script}: {}",
            output.stderr.as_bstr()
        );
        output.stdout
    };
    let mails = sh("{mails} -");
    assert!(mails.starts_with(b"From "));
    for (script, before) in [
        ("{mails} /dev/stdout", ""),
        ("{mails} /dev/fd/1 | cat", ""),
        ("{mails} /proc/self/fd/1", ""),
        ("{mails} /dev/stdout > file; cat file", ""),
        (
            "echo before > file; {mails} /dev/stdout >> file; cat file",
            "before\n",
        ),
        (
            "(echo before; {mails} /dev/stdout) > file; cat file",
            "before\n",
        ),
        ("{mails} /dev/fd/3 3> file; cat file", ""),
        ("{mails} >(cat > file) && sleep 0.5; cat file", ""),
        ("{mails} /dev/stderr --quiet 2>&1", ""),
        ("{mails} /dev/stdout | head -c 1 > /dev/null; {mails} -", ""),
    ] {
        let expected = [before.as_bytes(), &mails].concat();
        assert_eq!(sh(script).as_bstr(), expected.as_bstr(), "{script}");
        let _ = fs::remove_file(play.path("file"));
    }
}

#[test]
fn what_reroll_wrote_itself_it_writes_over_until_somebody_edits_it() {
    let play = play();
    let cell = cell(&play);
    for (name, args) in WRITERS {
        if name == "manual" {
            continue;
        }
        let args: Vec<_> = args
            .iter()
            .map(|arg| {
                if *arg == "tiny/v1.1/quick" {
                    cell.as_str()
                } else {
                    arg
                }
            })
            .collect();
        let path = play.path(&format!("own/{name}"));
        for _ in 0..2 {
            assert_eq!(run(&play, &args, &path, &[]).0, 0, "{name}");
        }
        // As if another version of reroll had written it.
        let mut other = fs::read(&path).expect("a file");
        other.extend_from_slice(b"<!-- another -->\n");
        fs::write(&path, &other).expect("written");
        let is_known_by_its_mark = name != "mails";
        let (code, said) = run(&play, &args, &path, &[]);
        assert_eq!(
            code,
            if is_known_by_its_mark { 0 } else { 2 },
            "{name}: {said}"
        );
    }
    // Another series under the same name replaces the first.
    let path = play.path("own/mbox");
    assert_eq!(run(&play, WRITERS[0].1, &path, &[]).0, 0);
    assert_eq!(run(&play, WRITERS[0].1, &path, &["--signoff"]).0, 0);
    assert!(
        fs::read(&path)
            .expect("a file")
            .contains_str("Signed-off-by")
    );
}

#[test]
fn the_manual_replaces_its_own_pages_alone() {
    let play = play();
    let dir = play.path("man");
    assert_eq!(run(&play, &["man", "{dir}"], &dir.join("x"), &[]).0, 0);
    assert_eq!(run(&play, &["man", "{dir}"], &dir.join("x"), &[]).0, 0);
    fs::write(dir.join("reroll.1"), "mine\n").expect("written");
    assert_eq!(run(&play, &["man", "{dir}"], &dir.join("x"), &[]).0, 2);
    assert_eq!(
        run(&play, &["man", "{dir}"], &dir.join("x"), &["--force"]).0,
        0
    );
}

/// Runs `regen -o v1` on a tiny series.
fn regen(tiny: &Tiny, author: &str, more: &[&str]) -> Ran {
    let program = tiny.reroll(&["regen", "-s", "--author", author, "-o", "v1"]);
    program.args(more).run()
}

/// The mails in a directory, and who sent them.
fn senders(dir: &Path) -> Vec<(String, BString)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mails = entries.filter(|it| it.path().extension().is_some_and(|end| end == "patch"));
    let mut senders: Vec<_> = mails
        .map(|it| {
            let text = fs::read(it.path()).expect("a mail");
            let from = text
                .lines()
                .find(|line| line.starts_with(b"From: "))
                .expect("a sender");
            (it.file_name().to_string_lossy().into_owned(), from.into())
        })
        .collect();
    senders.sort();
    senders
}

const OTHER: &str = "B U Thor <author@example.org>";

/// What lies in a directory beside the mails, and what of it must be as before: its mode and time as well.
const BESIDE: &[(&str, Setup)] = &[
    ("a file", |dir| {
        fs::write(dir.join("notes"), "mine").expect("a file");
    }),
    ("a secret file", |dir| {
        fs::write(dir.join("notes"), "mine").expect("a file");
        fs::set_permissions(dir.join("notes"), fs::Permissions::from_mode(0o600)).expect("a mode");
    }),
    ("a directory", |dir| {
        fs::create_dir_all(dir.join("replies/deep")).expect("a directory");
    }),
    ("a link", |dir| {
        symlink("/etc/hostname", dir.join("link")).expect("a link");
    }),
    ("a link to nothing", |dir| {
        symlink("nowhere", dir.join("link")).expect("a link");
    }),
    ("a name that is not UTF-8", |dir| {
        let name = std::os::unix::ffi::OsStrExt::from_bytes(b"n\xfc");
        let name: &std::ffi::OsStr = name;
        fs::write(dir.join(name), "").expect("a file");
    }),
    ("a mode of its own", |dir| {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o2770)).expect("a mode");
    }),
    ("a file that cannot be read", |dir| {
        fs::write(dir.join("locked"), "").expect("a file");
        fs::set_permissions(dir.join("locked"), fs::Permissions::from_mode(0o0)).expect("a mode");
    }),
];

/// Everything about what is no mail in a directory, and the directory itself.
fn others(dir: &Path) -> Vec<String> {
    let about = |path: PathBuf| {
        let meta = fs::symlink_metadata(&path).expect("there");
        format!(
            "{:?} {:o} {} {}",
            path.file_name(),
            meta.mode(),
            meta.ino(),
            if meta.is_dir() { 0 } else { meta.mtime_nsec() }
        )
    };
    let entries = fs::read_dir(dir)
        .expect("a directory")
        .flatten()
        .map(|it| it.path());
    let others = entries.filter(|path| {
        path.extension().is_none_or(|end| end != "patch") && !path.ends_with(".reroll")
    });
    let mut all: Vec<_> = others.chain([dir.to_owned()]).map(about).collect();
    all.sort();
    all
}

#[test]
fn what_lies_beside_the_mails_stays_as_it_is() {
    for (what, setup) in BESIDE {
        let tiny = Tiny::new();
        regen(&tiny, AUTHOR, &[]).expect_exit(0);
        let dir = tiny.sandbox.path("v1");
        setup(&dir);
        let before = others(&dir);
        regen(&tiny, OTHER, &[]).expect_exit(0);
        assert_eq!(others(&dir), before, "{what}");
        assert!(
            senders(&dir)
                .iter()
                .all(|(_, from)| from.contains_str("B U Thor")),
            "{what}"
        );
        regen(&tiny, OTHER, &[]).expect_exit(0).says(&["unchanged"]);
    }
}

#[test]
fn a_directory_that_is_reached_in_another_way_is_the_same_directory() {
    let tiny = Tiny::new();
    let dir = tiny.sandbox.path("real");
    fs::create_dir(&dir).expect("a directory");
    fs::write(dir.join("notes"), "mine").expect("a file");
    symlink("real", tiny.sandbox.path("v1")).expect("a link");
    regen(&tiny, AUTHOR, &[]).expect_exit(0);
    assert!(tiny.sandbox.path("v1").is_symlink() && dir.join("notes").exists());
    assert_eq!(senders(&dir).len(), 4);

    let series = tiny.sandbox.path("patches/tiny").display().to_string();
    let args = [
        "regen", "-s", "--author", OTHER, "-o", ".", "--series", &series,
    ];
    let inode = fs::metadata(&dir).expect("there").ino();
    tiny.reroll(&args).dir(&dir).run().expect_exit(0);
    assert_eq!(fs::metadata(&dir).expect("there").ino(), inode);
    assert!(
        senders(&dir)
            .iter()
            .all(|(_, from)| from.contains_str("B U Thor"))
    );

    symlink("later", tiny.sandbox.path("dangling")).expect("a link");
    let args = ["regen", "-s", "--author", AUTHOR, "-o", "dangling"];
    tiny.reroll(&args).run().expect_exit(0);
    assert!(tiny.sandbox.path("dangling").is_symlink());
    assert_eq!(senders(&tiny.sandbox.path("later")).len(), 4);
}

#[test]
fn a_mail_that_is_no_file_any_more_is_somebodys() {
    let tiny = Tiny::new();
    regen(&tiny, AUTHOR, &[]).expect_exit(0);
    let dir = tiny.sandbox.path("v1");
    let (name, _) = senders(&dir).remove(0);
    fs::rename(dir.join(&name), tiny.sandbox.path("kept")).expect("moved");
    symlink("../kept", dir.join(&name)).expect("a link");
    regen(&tiny, OTHER, &[]).refused(2).says(&[&name]);
    assert!(dir.join(&name).is_symlink());
    regen(&tiny, OTHER, &["--force"]).expect_exit(0);
    assert!(!dir.join(&name).is_symlink());
    let kept = fs::read(tiny.sandbox.path("kept")).expect("there");
    assert!(
        kept.contains_str("A U Thor"),
        "what the link leads to is not written"
    );
}

#[test]
fn git_takes_no_file_of_the_directory_but_the_mails() {
    let tiny = Tiny::new();
    regen(&tiny, AUTHOR, &[]).expect_exit(0);
    let entries = fs::read_dir(tiny.sandbox.path("v1"))
        .expect("a directory")
        .flatten();
    let files = entries.filter(|it| it.path().is_file());
    let names: Vec<_> = files
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.len() == 4 && names.iter().all(|name| name.ends_with(".patch")),
        "{names:?}"
    );
}

/// What an odd file system answers to a system call, as strace injects it.
const ODD: &[(&str, &str)] = &[
    (
        "NFS, 9p, FUSE: no exchange of two names",
        "renameat2:error=EINVAL",
    ),
    ("an old kernel", "renameat2:error=ENOSYS"),
    ("no locks", "flock:error=ENOLCK"),
    ("no locks of this kind", "flock:error=EOPNOTSUPP"),
    (
        "CIFS, FAT: no second name for a file",
        "link,linkat:error=EPERM",
    ),
    ("CIFS: no owners", "chown,fchown,fchownat:error=EPERM"),
    ("a file system that keeps no times", "utimensat:error=EPERM"),
];

/// A run of reroll under strace with these injections; `None` where there is none.
fn strace(tiny: &Tiny, inject: &[String], args: &[&str]) -> Option<Ran> {
    let strace = in_path("strace")?;
    let mut program = tiny.sandbox.program(&strace.to_string_lossy());
    program = program.args(["-f", "-qq", "-o", "/dev/null"]);
    for inject in inject {
        let calls = inject.split(':').next().unwrap_or_default();
        // A call that this machine does not have has a question mark.
        let calls: Vec<_> = calls.split(',').map(|call| format!("?{call}")).collect();
        let calls = calls.join(",");
        let rest = inject.split_once(':').map_or("", |(_, rest)| rest);
        program = program.args([
            format!("--trace={calls}"),
            format!("--inject={calls}:{rest}"),
        ]);
    }
    let program = program.arg(env!("CARGO_BIN_EXE_reroll")).args(args);
    let ran = program
        .args(["--base", &tiny.rev, "--tree"])
        .arg(&tiny.store.path)
        .run();
    if ran.stderr.contains("PTRACE") || ran.stderr.contains("ptrace") {
        return None;
    }
    Some(ran)
}

#[test]
fn a_second_run_works_on_every_file_system() {
    for (what, inject) in ODD {
        let tiny = Tiny::new();
        for author in [AUTHOR, OTHER, AUTHOR] {
            for place in [["-o", "v1"], ["--mbox", "mbox"]] {
                let args = [&["regen", "-s", "--author", author][..], &place].concat();
                let Some(ran) = strace(&tiny, &[(*inject).to_owned()], &args) else {
                    return left_out(
                        "odd file systems",
                        "strace is not installed, or may not trace",
                    );
                };
                ran.expect_exit(0);
            }
            let name = &author[..8];
            let dir = tiny.sandbox.path("v1");
            assert!(
                senders(&dir)
                    .iter()
                    .all(|(_, from)| from.contains_str(name)),
                "{what}"
            );
            assert!(tiny.sandbox.read("mbox").contains_str(name), "{what}");
        }
    }
}

/// The calls that change a directory.
const CHANGES: &str = "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,write";

#[test]
fn a_run_that_is_killed_at_any_step_is_finished_by_the_next() {
    let place = |tiny: &Tiny| tiny.sandbox.path("v1");
    for first in [true, false] {
        let mut kills = 0;
        for step in 1.. {
            assert!(step < 300, "it never comes to its end");
            let tiny = Tiny::new();
            if !first {
                regen(&tiny, AUTHOR, &[]).expect_exit(0);
            }
            let args = ["regen", "-s", "--author", OTHER, "-v", "2", "-o", "v1"];
            let inject = [format!("{CHANGES}:signal=KILL:when={step}")];
            let Some(ran) = strace(&tiny, &inject, &args) else {
                return left_out(
                    "kills at each step",
                    "strace is not installed, or may not trace",
                );
            };
            // Old and new mails are never there together.
            let names = senders(&place(&tiny));
            let versions: std::collections::BTreeSet<_> =
                names.iter().map(|(name, _)| &name[..3]).collect();
            assert!(versions.len() <= 1, "step {step}: {names:?}");
            if ran.code == Some(0) {
                break;
            }
            kills += 1;
            let again = tiny
                .reroll(&["regen", "-s", "--author", OTHER, "-v", "2", "-o", "v1"])
                .run();
            again.expect_exit(0);
            let names = senders(&place(&tiny));
            assert!(
                names.len() == 4 && names.iter().all(|(name, _)| name.starts_with("v2-")),
                "step {step}: {names:?}"
            );
            let left: Vec<_> = tiny
                .sandbox
                .listing(".")
                .into_iter()
                .filter(|name| {
                    name.contains(".reroll-")
                        || name.ends_with(".new")
                        || name.ends_with("plan.json")
                        || name.contains(".reroll/new")
                })
                .collect();
            assert!(left.is_empty(), "step {step}: {left:?}");
        }
        assert!(kills > 5, "{kills} kills");
    }
}

#[test]
fn a_full_disk_changes_nothing_and_leaves_nothing() {
    let tiny = Tiny::new();
    regen(&tiny, AUTHOR, &[]).expect_exit(0);
    let before = tiny.sandbox.listing(".");
    let senders_before = senders(&tiny.sandbox.path("v1"));
    for step in 1..6 {
        let inject = [format!("write:error=ENOSPC:when={step}")];
        let args = ["regen", "-q", "-s", "--author", OTHER, "-o", "v1"];
        let Some(ran) = strace(&tiny, &inject, &args) else {
            return left_out("a full disk", "strace is not installed, or may not trace");
        };
        if ran.code == Some(0) {
            break;
        }
        ran.refused(4)
            .says(&["cannot write to `v1`: No space left", "hint: make room"]);
        assert_eq!(tiny.sandbox.listing("."), before, "step {step}");
        assert_eq!(senders(&tiny.sandbox.path("v1")), senders_before);
    }
}

#[test]
fn somebody_who_waits_for_a_reader_can_stop() {
    let play = play();
    assert!(
        play.command("mkfifo", ".", &["fifo"])
            .status()
            .expect("mkfifo")
            .success()
    );
    let args: Vec<_> = WRITERS[0]
        .1
        .iter()
        .map(|arg| if *arg == "{}" { "fifo" } else { arg })
        .collect();
    let mut child = play.start(&args);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("small")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    let mut said = String::new();
    child
        .stderr
        .take()
        .expect("a pipe")
        .read_to_string(&mut said)
        .expect("text");
    assert!(said.contains("interrupted"), "{said}");
}
