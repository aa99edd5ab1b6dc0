//! Help, completions and man pages, all from the same definitions; and how a command behaves in a pipe.
//!
//! Hides how the subcommands are found: the help names them.

use std::io::Read;

use bstr::ByteSlice;

use crate::support::{AUTHOR, Ran, Sandbox, Tiny};

/// The words of each subcommand, those of nested ones too, as the help lists them.
fn commands(sandbox: &Sandbox, words: &[String]) -> Vec<Vec<String>> {
    let help = help(sandbox, words, "--help");
    let listed = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let listed = listed.split("\n\n").next().unwrap_or_default();
    let names = listed
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let mut found = vec![words.to_vec()];
    for name in names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
    {
        let below = [words, &[name.to_owned()]].concat();
        found.extend(commands(sandbox, &below));
    }
    found
}

fn help(sandbox: &Sandbox, words: &[String], flag: &str) -> String {
    let ran = sandbox.reroll(words).arg(flag).run().expect_exit(0);
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    ran.stdout.to_string()
}

#[test]
fn every_subcommand_and_option_is_documented_in_short_lines() {
    let sandbox = Sandbox::new();
    let all = commands(&sandbox, &[]);
    for name in ["regen", "facts", "explain", "base", "completions", "man"] {
        assert!(all.iter().any(|words| words == &[name]), "{name}: {all:?}");
    }
    assert!(all.iter().any(|words| words == &["base", "add"]));
    for words in &all {
        for flag in ["--help", "-h"] {
            let text = help(&sandbox, words, flag);
            let shown = format!("{words:?} {flag}");
            assert!(text.contains("Usage: reroll"), "{shown}\n{text}");
            let first = text.lines().next().unwrap_or_default();
            assert!(
                first.len() > 15 && !first.starts_with("Usage"),
                "{shown}: what it does: {first}"
            );
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{shown}: {line}");
                assert!(
                    !line.contains('\u{1b}') && !line.contains('\t'),
                    "{shown}: {line}"
                );
            }
            // An option or argument is documented on its own line, or on the next ones.
            let lines: Vec<_> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let entry = line.trim_start();
                let indented = line.len() - entry.len();
                if !(entry.starts_with('-') || entry.starts_with('<'))
                    || !(2..8).contains(&indented)
                {
                    continue;
                }
                let same = entry
                    .split_once("  ")
                    .is_some_and(|(_, text)| text.trim().len() > 3);
                let next = lines.get(at + 1).is_some_and(|line| {
                    line.trim().len() > 3 && line.len() - line.trim_start().len() >= 10
                });
                assert!(same || next, "{shown}: `{entry}` is not documented");
            }
        }
    }
}

#[test]
fn the_help_names_the_exit_codes_and_an_example() {
    let sandbox = Sandbox::new();
    let text = help(&sandbox, &[], "--help");
    for word in [
        "Exit codes",
        "0 ",
        "1 ",
        "2 ",
        "3 ",
        "4 ",
        "130 ",
        "reroll regen --author",
    ] {
        assert!(text.contains(word), "{word}\n{text}");
    }
    // What its arguments say at length is there, and not in the short help.
    for (name, words) in [
        ("regen", "the same bytes on every machine"),
        ("check", "a second run says `cached`"),
        ("bench", "a non-temporal fill"),
        ("diff", "paired by identity"),
    ] {
        let shown = |flag| help(&sandbox, &[name.to_owned()], flag).replace('\n', " ");
        assert!(shown("--help").contains(words), "{name}: {words}");
        assert!(!shown("-h").contains(words), "{name}: {words}");
    }
    for name in ["regen", "facts", "explain"] {
        let text = help(&sandbox, &[name.to_owned()], "--help");
        assert!(
            text.contains("--json"),
            "every reading command has it\n{text}"
        );
    }
}

#[test]
fn completions_are_made_for_each_shell_and_parse() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox
            .reroll(["completions", shell])
            .run()
            .expect_exit(0)
            .stdout
            .to_string();
        for word in ["regen", "output-directory", "reroll"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        let file = sandbox.write(format!("completions.{shell}"), &script);
        let is_here = std::env::split_paths(&std::env::var_os("PATH").expect("PATH"))
            .any(|dir| dir.join(shell).exists());
        if matches!(shell, "bash" | "zsh" | "fish") && (is_here || shell == "bash") {
            sandbox
                .program(shell)
                .arg("-n")
                .arg(file)
                .run()
                .expect_exit(0);
        }
    }
    sandbox.reroll(["completions", "sh"]).run().expect_exit(2);
}

#[test]
fn there_is_a_man_page_for_each_subcommand() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("man")).expect("a directory");
    sandbox.reroll(["man", "man"]).run().expect_exit(0);
    let pages = sandbox.files("man");
    for words in commands(&sandbox, &[]) {
        let name = format!(
            "{}.1",
            [&["reroll".to_owned()][..], &words].concat().join("-")
        );
        let page = pages
            .get(&name)
            .unwrap_or_else(|| panic!("{name}: {:?}", pages.keys()));
        assert!(
            page.starts_with(b".ie") || page.starts_with(b".TH"),
            "{name}: {page}"
        );
    }
    sandbox.reroll(["man", "nowhere"]).run().refused(2);
}

/// Commands that print to standard output.
const PRINTING: [&[&str]; 5] = [
    &["facts"],
    &["facts", "--json"],
    &["explain"],
    &["regen", "--author", AUTHOR, "--mbox", "-"],
    &["regen", "--author", AUTHOR, "-n", "--json"],
];

#[test]
fn a_full_disk_behind_standard_output_is_told_and_no_bug() {
    let tiny = Tiny::new();
    let full = || {
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it")
    };
    let is_told = |ran: Ran, args: &[&str]| {
        assert_eq!(ran.code, Some(4), "{args:?}: {}", ran.stderr);
        for words in ["cannot write to standard output", "hint: "] {
            assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
        }
    };
    for args in [
        &["--help"][..],
        &["--version"],
        &["regen", "--help"],
        &["completions", "bash"],
    ] {
        is_told(tiny.sandbox.reroll(args).run_into(full()), args);
    }
    for args in PRINTING {
        is_told(tiny.reroll(args).run_into(full()), args);
    }
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let tiny = Tiny::new();
    for args in PRINTING {
        let mut child = tiny.reroll(args).start();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child
            .stderr
            .take()
            .expect("a pipe")
            .read_to_string(&mut stderr)
            .expect("text");
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{args:?}");
        let said: Vec<_> = stderr
            .lines()
            .filter(|line| !line.starts_with("series: ") && !line.starts_with("would write "))
            .collect();
        assert!(said.is_empty(), "{args:?}: {said:?}");
    }
    for args in [&["completions", "bash"][..], &["--help"]] {
        let mut child = tiny.sandbox.reroll(args).start();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child
            .stderr
            .take()
            .expect("a pipe")
            .read_to_string(&mut stderr)
            .expect("text");
        child.wait().expect("it ends");
        assert!(
            !stderr.contains("panicked") && !stderr.contains("Broken pipe"),
            "{args:?}: {stderr}"
        );
    }
}

#[test]
fn talk_goes_to_standard_error_and_colour_where_it_is_asked_for() {
    let tiny = Tiny::new();
    let ran = tiny.regen().run().expect_exit(0);
    assert!(
        ran.stdout.is_empty()
            && ran.stderr == "series: tiny, from patches/tiny\nwrote 4 mails in out\n",
        "{ran:?}"
    );
    assert!(
        tiny.regen()
            .arg("--quiet")
            .run()
            .expect_exit(0)
            .stderr
            .is_empty()
    );
    let error = |args: &[&str]| {
        tiny.sandbox
            .reroll(["facts", "--tree", "nowhere"])
            .args(args)
    };
    let colour =
        |program: crate::support::Program| program.run().expect_exit(2).stderr.contains('\u{1b}');
    assert!(!colour(error(&[])), "no terminal");
    assert!(colour(error(&["--color", "always"])));
    assert!(!colour(
        error(&["--color", "never"]).env("CLICOLOR_FORCE", "1")
    ));
    assert!(!colour(
        error(&[]).env("NO_COLOR", "1").env("TERM", "xterm")
    ));
    assert!(
        error(&["--quiet"])
            .run()
            .expect_exit(2)
            .stderr
            .starts_with("error: "),
        "an error is never quiet"
    );
}

#[test]
fn who_waits_for_the_cache_says_so_once_unless_it_is_told_to_be_quiet() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "kernel/Makefile",
        "VERSION = 6\nPATCHLEVEL = 99\nSUBLEVEL = 0\nEXTRAVERSION =\n",
    );
    sandbox.write("kernel/Kconfig", "");
    let lock = sandbox.write("home/cache/reroll/lock", "");
    let held = std::fs::File::open(lock).expect("a file");
    held.lock().expect("nobody has it");
    let add = |args: &[&str]| {
        let all = [args, &["base", "add", "mine", "kernel"]].concat();
        sandbox.reroll(all).start()
    };
    let (talks, quiet) = (add(&[]), add(&["--quiet"]));
    std::thread::sleep(std::time::Duration::from_millis(1800));
    held.unlock().expect("it was held");
    let said = |child: std::process::Child| {
        let output = child.wait_with_output().expect("it ends");
        Ran::of("base add".to_owned(), output).expect_exit(0).stderr
    };
    let waiting = "waiting for another reroll that changes the cache of bases\n";
    let talks = said(talks);
    assert_eq!(talks.matches(waiting).count(), 1, "{talks}");
    assert_eq!(said(quiet), "");
}

#[test]
fn a_run_starts_where_it_is_told_to() {
    let tiny = Tiny::new();
    let program = tiny
        .sandbox
        .reroll(["-C"])
        .arg(tiny.sandbox.path("."))
        .args(["regen", "--author", AUTHOR, "--tree", "tree.git"]);
    program
        .dir("/")
        .run()
        .expect_exit(0)
        .says(&["outgoing/tiny/v1"]);
    assert!(
        tiny.sandbox
            .path("outgoing/tiny/v1/0000-cover-letter.patch")
            .exists()
    );
    let version = tiny
        .sandbox
        .reroll(["--version"])
        .run()
        .expect_exit(0)
        .stdout;
    assert_eq!(version, format!("reroll {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_recipe_of_the_directories_above_is_found_and_said() {
    let tiny = Tiny::new();
    let below = tiny.sandbox.path("patches/tiny/0001-split");
    let regen = |dir: &std::path::Path| {
        let program = tiny.regen().args(["-n"]).dir(dir);
        program.run().expect_exit(0)
    };
    regen(&below).says(&["series: tiny, from ../../../patches/tiny"]);
    // Not beyond the repository that one stands in.
    tiny.sandbox
        .write("patches/.git/HEAD", "ref: refs/heads/main\n");
    let program = tiny.regen().args(["-n"]).dir(&below);
    program
        .run()
        .says(&["series: zone-device, from this binary"]);
}

#[test]
fn a_directory_that_is_named_comes_before_a_series_of_the_directories_above() {
    let tiny = Tiny::new();
    // Another series of the same name, as a directory where one stands.
    for (name, text) in crate::support::tree_files(&tiny.sandbox.path("patches/tiny"), "") {
        tiny.sandbox.write(format!("below/tiny/{name}"), text);
    }
    for (name, text) in crate::support::tree_files(&tiny.sandbox.path("templates/tiny"), "") {
        tiny.sandbox
            .write(format!("below/tiny/templates/{name}"), text);
    }
    let below = tiny.sandbox.path("below");
    let program = tiny.regen().args(["-n", "--series", "tiny"]).dir(&below);
    program
        .run()
        .expect_exit(0)
        .says(&["series: tiny, from tiny\n"]);
    let program = tiny
        .regen()
        .args(["-n", "--series", "tiny"])
        .dir(tiny.sandbox.path("below/tiny"));
    program
        .run()
        .expect_exit(0)
        .says(&["series: tiny, from ../../patches/tiny\n"]);
}

#[test]
fn a_dry_run_says_what_would_be_written() {
    let tiny = Tiny::new();
    let ran = tiny.regen().arg("-n").run().expect_exit(0);
    assert!(
        ran.stderr.contains("would write 4 mails in out"),
        "{}",
        ran.stderr
    );
    let said = ran.stdout.to_string();
    let names: Vec<_> = said.lines().collect();
    assert_eq!(names.len(), 4);
    assert_eq!(names[0], "0000-cover-letter.patch");
    assert!(!tiny.sandbox.path("out").exists());
}

#[test]
fn an_error_is_json_where_json_is_asked_for() {
    let tiny = Tiny::new();
    let ran = tiny
        .regen()
        .args(["--json", "--date", "never"])
        .run()
        .expect_exit(2);
    let json = ran.json();
    assert_eq!(json["error"]["exit"], 2);
    let message = json["error"]["message"].as_str().expect("a message");
    assert!(message.contains("`never` is no date"));
    assert!(
        json["error"]["hint"]
            .as_str()
            .expect("a hint")
            .contains("write it like")
    );
    let plain = tiny.regen().args(["--date", "never"]).run().expect_exit(2);
    assert!(plain.stdout.is_empty());
}

#[test]
fn who_has_not_said_the_author_is_shown_the_whole_command() {
    let tiny = Tiny::new();
    let program = tiny
        .sandbox
        .reroll(["regen", "--base", &tiny.rev, "-o", "a b", "--tree"]);
    let ran = program.args([&tiny.store.path]).run().expect_exit(2);
    let hint = ran
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("hint: `"));
    let command = hint.and_then(|hint| hint.split_once("`, with your own name"));
    let (command, _) = command.expect("a command");
    let path = std::path::Path::new(env!("CARGO_BIN_EXE_reroll"))
        .parent()
        .expect("a directory");
    let path = format!("PATH={}:/usr/bin:/bin", path.display());
    let words = format!("{path} {command}");
    tiny.sandbox
        .program("sh")
        .args(["-c", &words])
        .run()
        .expect_exit(0);
    assert_eq!(tiny.sandbox.files("a b").len(), 4);
}

#[test]
fn a_day_is_a_date() {
    let tiny = Tiny::new();
    tiny.regen()
        .args(["--date", "2026-05-20"])
        .run()
        .expect_exit(0);
    let mail = tiny.sandbox.read("out/0000-cover-letter.patch");
    assert!(mail.contains_str("Date: Wed, 20 May 2026 00:00:00 +0000"));
}

#[test]
fn messages_are_broken_at_words_on_a_narrow_terminal() {
    let tiny = Tiny::new();
    let command = format!(
        "stty cols 60 <> /dev/tty 2>&0; '{}' regen --series nothing-like-it",
        env!("CARGO_BIN_EXE_reroll")
    );
    let program = tiny
        .sandbox
        .program("script")
        .args(["-qec", &command, "/dev/null"]);
    let said = program.run().stdout.to_string();
    let lines: Vec<_> = said
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    assert!(
        lines.iter().any(|line| line.contains("there is no series")),
        "{said}"
    );
    let plain = |line: &str| {
        line.replace("\u{1b}[1m", "")
            .replace("\u{1b}[0m", "")
            .replace("\u{1b}[31m", "")
            .replace("\u{1b}[36m", "")
    };
    assert!(
        lines.iter().all(|line| plain(line).len() <= 60),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.starts_with("  ")), "{lines:?}");
}
