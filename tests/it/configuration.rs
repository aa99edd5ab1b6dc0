//! What somebody has configured git to changes nothing: not in the user's files, not in the repository's, not in the environment.
//!
//! Hides how the keys are found: git lists them itself, so that a key which a new release brings is tried as well. [`AWKWARD`] says what they are set
//! to; whoever finds a value that makes a difference adds a line.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use bstr::ByteSlice;
use reroll::exec::Task;

use crate::bot::{Play, QUICK};
use crate::support::copy;

/// The sections whose keys are tried.
const SECTIONS: [&str; 9] = [
    "am", "color", "core", "diff", "format", "i18n", "log", "mailinfo", "merge",
];

/// Keys that are left out, and why.
const LEFT_OUT: [(&str, &str); 7] = [
    (
        "core.bare",
        "says what kind of repository it is: git itself finds another one, or none",
    ),
    (
        "core.worktree",
        "says where the work tree is: git itself looks elsewhere",
    ),
    (
        "core.repositoryFormatVersion",
        "git refuses a repository of another format",
    ),
    (
        "core.createObject",
        "says how the file system makes files, of which one way does not work here",
    ),
    (
        "core.fsync",
        "says when what was written is safe, and no more",
    ),
    ("core.fsyncMethod", "the same"),
    (
        "core.unsetenvvars",
        "is for Windows alone, and git refuses other values there",
    ),
];

/// What keys are set to: a key, or the beginning of one with a `*`, and values that each make some git speak or act otherwise. A key without a line
/// here is set to `true`.
const AWKWARD: &[(&str, &[&str])] = &[
    ("am.*", &["true"]),
    ("color.ui", &["always"]),
    ("color.diff", &["always"]),
    ("color.advice.*", &["red"]),
    ("color.blame.*", &["red"]),
    ("color.branch.*", &["red"]),
    ("color.decorate.*", &["red"]),
    ("color.diff.*", &["red"]),
    ("color.grep.*", &["red"]),
    ("color.interactive.*", &["red"]),
    ("color.push.*", &["red"]),
    ("color.remote.*", &["red"]),
    ("color.status.*", &["red"]),
    ("color.transport.*", &["red"]),
    ("color.pager", &["true"]),
    ("color.*", &["always"]),
    ("core.abbrev", &["5", "40", "no"]),
    ("core.askPass", &["/bin/false"]),
    ("core.attributesFile", &["{attributes}"]),
    ("core.autocrlf", &["true", "input"]),
    ("core.bigFileThreshold", &["1"]),
    ("core.commentChar", &["auto", "%"]),
    ("core.commentString", &["mm"]),
    ("core.deltaBaseCacheLimit", &["1"]),
    ("core.editor", &["/bin/false"]),
    ("core.eol", &["crlf"]),
    ("core.excludesFile", &["{everything}"]),
    ("core.fsmonitor", &["/bin/false"]),
    ("core.hooksPath", &["{hooks}"]),
    ("core.logAllRefUpdates", &["always"]),
    ("core.maxTreeDepth", &["1"]),
    ("core.notesRef", &["refs/notes/other"]),
    ("core.packedGit*", &["1"]),
    ("core.pager", &["/bin/false"]),
    ("core.quotePath", &["false", "true"]),
    ("core.safecrlf", &["true"]),
    ("core.sharedRepository", &["group"]),
    ("core.sshCommand", &["/bin/false"]),
    ("core.symlinks", &["false"]),
    (
        "core.whitespace",
        &["cr-at-eol", "tabwidth=3,tab-in-indent"],
    ),
    ("core.compression", &["0"]),
    ("core.looseCompression", &["0"]),
    ("core.alternateRefsCommand", &["/bin/false"]),
    ("core.gitProxy", &["/bin/false"]),
    ("core.checkStat", &["minimal"]),
    ("core.filesRefLockTimeout", &["0"]),
    ("core.packedRefsTimeout", &["0"]),
    ("core.checkRoundtripEncoding", &["UTF-16"]),
    ("core.fsmonitorHookVersion", &["2"]),
    ("core.hideDotFiles", &["false"]),
    ("core.splitIndex", &["true"]),
    ("core.untrackedCache", &["keep"]),
    ("diff.<driver>.binary", &["true"]),
    ("diff.<driver>.command", &["/bin/true"]),
    ("diff.<driver>.textconv", &["/bin/true"]),
    ("diff.<driver>.xfuncname", &["^(.*)$"]),
    ("diff.<driver>.wordRegex", &["."]),
    ("diff.algorithm", &["histogram", "patience", "minimal"]),
    ("diff.colorMoved", &["zebra"]),
    ("diff.colorMovedWS", &["ignore-all-space"]),
    ("diff.context", &["0", "1", "99"]),
    ("diff.dirstat", &["lines"]),
    ("diff.dstPrefix", &["new/"]),
    ("diff.srcPrefix", &["old/"]),
    ("diff.external", &["/bin/true"]),
    ("diff.guitool", &["x"]),
    ("diff.ignoreSubmodules", &["all"]),
    ("diff.indentHeuristic", &["false"]),
    ("diff.interHunkContext", &["99"]),
    ("diff.mnemonicPrefix", &["true"]),
    ("diff.noPrefix", &["true"]),
    ("diff.noprefix", &["true"]),
    ("diff.orderFile", &["{order}", "/nonexistent"]),
    ("diff.relative", &["true"]),
    ("diff.renameLimit", &["1"]),
    ("diff.renames", &["copies", "false"]),
    ("diff.stat*", &["10"]),
    ("diff.submodule", &["log"]),
    ("diff.suppressBlankEmpty", &["true"]),
    ("diff.tool", &["x"]),
    ("diff.wordRegex", &["."]),
    ("diff.wsErrorHighlight", &["all"]),
    ("format.attach", &["true"]),
    ("format.cc", &["x@example.org"]),
    ("format.coverFromDescription", &["auto"]),
    ("format.coverLetter", &["true"]),
    ("format.encodeEmailHeaders", &["false"]),
    ("format.filenameMaxLength", &["10"]),
    ("format.from", &["S <s@example.org>"]),
    ("format.headers", &["X-A: b"]),
    ("format.notes", &["*"]),
    ("format.numbered", &["false", "true"]),
    ("format.outputDirectory", &["elsewhere"]),
    ("format.pretty", &["oneline"]),
    ("format.signature", &["sig"]),
    ("format.signatureFile", &["{order}", "/nonexistent"]),
    ("format.subjectPrefix", &["X"]),
    ("format.suffix", &[".eml"]),
    ("format.thread", &["deep"]),
    ("format.to", &["x@example.org"]),
    ("format.useAutoBase", &["whenAble", "true"]),
    ("i18n.commitEncoding", &["ISO-8859-1"]),
    ("i18n.logOutputEncoding", &["UTF-16", "ISO-8859-1"]),
    ("log.date", &["relative", "format:x"]),
    ("log.decorate", &["full"]),
    ("log.diffMerges", &["on"]),
    ("log.excludeDecoration", &["*"]),
    ("log.graphColors", &["red"]),
    ("log.initialDecorationSet", &["all"]),
    ("merge.<driver>.driver", &["/bin/false"]),
    ("merge.<driver>.name", &["x"]),
    ("merge.<driver>.recursive", &["binary"]),
    ("merge.branchdesc", &["true"]),
    ("merge.conflictStyle", &["diff3", "zdiff3"]),
    ("merge.directoryRenames", &["conflict"]),
    ("merge.ff", &["false"]),
    ("merge.guitool", &["x"]),
    ("merge.log", &["5"]),
    ("merge.renameLimit", &["1"]),
    ("merge.suppressDest", &["main"]),
    ("merge.tool", &["x"]),
    ("merge.verbosity", &["5"]),
];

/// What no key takes.
const NONSENSE: &str = "no such value";

/// One setting: a key as git writes it, and its value.
type Setting = (String, String);

/// The keys that this git knows, but for those that are left out. What is named by its user is called as the kernel calls it.
fn keys(play: &Play) -> Vec<String> {
    let list = play.git(".", &["help", "--config"]);
    let known = list.lines().filter(|key| {
        let section = key.split('.').next().unwrap_or_default();
        SECTIONS.contains(&section) && !LEFT_OUT.iter().any(|(left_out, _)| left_out == key)
    });
    let keys: Vec<_> = known.map(str::to_owned).collect();
    assert!(keys.len() > 100, "git lists its keys: {keys:?}");
    keys
}

/// The values that a key is tried with.
fn values(key: &str) -> &'static [&'static str] {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => key.starts_with(start),
        None => key == pattern,
    };
    let line = AWKWARD.iter().find(|(pattern, _)| fits(pattern));
    line.map_or(&["true"], |(_, values)| values)
}

/// Keys with their awkward values; the last of each is what git goes by.
fn awkward(play: &Play, keys: &[String]) -> Vec<Setting> {
    let path = |name: &str| play.path(name).display().to_string();
    let set = |key: &String, value: &str| {
        let value = value
            .replace("{attributes}", &path("awkward/attributes"))
            .replace("{everything}", &path("awkward/everything"))
            .replace("{hooks}", &path("awkward/hooks"))
            .replace("{order}", &path("awkward/order"));
        (key.replace("<driver>", "cpp"), value)
    };
    let all = keys
        .iter()
        .flat_map(|key| values(key).iter().map(move |value| set(key, value)));
    all.collect()
}

fn nonsense(keys: &[String]) -> Vec<Setting> {
    let set = |key: &String| (key.replace("<driver>", "cpp"), NONSENSE.to_owned());
    keys.iter().map(set).collect()
}

/// A file of configuration with these settings.
fn file(settings: &[Setting]) -> String {
    let mut text = String::new();
    for (key, value) in settings {
        let (section, rest) = key.split_once('.').expect("a section");
        let (middle, name) = rest
            .rsplit_once('.')
            .map_or(("", rest), |(middle, name)| (middle, name));
        let head = if middle.is_empty() {
            format!("[{section}]")
        } else {
            format!("[{section} \"{middle}\"]")
        };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        writeln!(text, "{head}\n\t{name} = \"{value}\"").expect("text");
    }
    text
}

/// Where settings stand.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// `~/.gitconfig`, with attributes and ignored files beside it.
    User,
    /// The configuration of the kernel's repository and of the bot's.
    Repository,
    /// `GIT_CONFIG_PARAMETERS`, and other variables that git listens to.
    Parameters,
    /// `GIT_CONFIG_COUNT`.
    Count,
}

/// A remote whose HEAD has the first two of four patches, `series` with all of them on `v1.1`, and the mails of the rest.
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
    play.merge_patches("v1.1", 2, "Signed-off-by: Up Stream <up@example.org>");
    play.git(
        "remote",
        &["format-patch", "-q", "-o", "../mails", "v1.1..series"],
    );
    play.git(
        "remote",
        &["notes", "--ref=other", "add", "-m", "a note", "series"],
    );
    play.write(
        "awkward/attributes",
        "*.c -diff -text\n* text=auto eol=crlf\n",
    );
    play.write("awkward/everything", "*\n");
    play.write("awkward/order", "Makefile\nmm/*\n*.h\n");
    for hook in [
        "applypatch-msg",
        "pre-applypatch",
        "commit-msg",
        "pre-commit",
        "pre-push",
        "reference-transaction",
    ] {
        let name = format!("awkward/hooks/{hook}");
        play.write(&name, "#!/bin/sh\nexit 1\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(play.path(&name), mode).expect("a mode");
    }
    play.git(".", &["init", "-q", "--bare", "pushed.git"]);
    play
}

/// Every command that starts git, and the exit code it ends with where nothing is configured.
const COMMANDS: [(&[&str], i32); 6] = [
    (&["regen", "--tree", "remote", "--mbox", "-"], 0),
    (&["explain", "--tree", "remote"], 0),
    (
        &[
            "check",
            "--tree",
            "remote",
            "--base",
            "v1.1",
            "--branch",
            "series",
            "--gate",
            "apply,mail",
            "--onto",
            "main",
            "--renew",
            "--json",
        ],
        0,
    ),
    (
        &[
            "check",
            "mails",
            "--tree",
            "remote",
            "--base",
            "v1.1",
            "--gate",
            "apply,mail",
            "--renew",
            "--json",
        ],
        1,
    ),
    (&["diff", "--tree", "remote", "mails", "v1.1..series"], 0),
    (
        &["diff", "--tree", "remote", "v1.1..series", "v1.1..main"],
        1,
    ),
];

/// What every command says.
fn outcomes(play: &Play, environment: &dyn Fn(&mut Command)) -> Vec<String> {
    COMMANDS
        .iter()
        .map(|(args, _)| outcome(play, args, environment))
        .collect()
}

fn outcome(play: &Play, args: &[&str], environment: &dyn Fn(&mut Command)) -> String {
    let mut command = play.command(env!("CARGO_BIN_EXE_reroll"), ".", args);
    command.env("REROLL_AUTHOR", "A U Thor <author@example.org>");
    environment(&mut command);
    let output = command.output().expect("reroll starts");
    let text = if args.contains(&"--json") {
        without_time(&output.stdout)
    } else {
        output.stdout.to_str_lossy().into_owned()
    };
    let said = output.stderr.to_str_lossy();
    // The gates run side by side, and tell in the order in which they end.
    let mut said: Vec<_> = said.lines().collect();
    said.sort_unstable();
    format!(
        "{args:?}\nexit {:?}\n{text}\n{}",
        output.status.code(),
        said.join("\n")
    )
}

fn without_time(json: &[u8]) -> String {
    let mut report: serde_json::Value = serde_json::from_slice(json).unwrap_or_default();
    report["run-directory"].take();
    for outcome in report["outcomes"].as_array_mut().into_iter().flatten() {
        for key in ["seconds", "log"] {
            outcome[key].take();
        }
    }
    serde_json::to_string_pretty(&report).expect("JSON")
}

/// Runs everything with these settings at one place, and takes them away again.
fn with(play: &Play, place: Place, settings: &[Setting]) -> Vec<String> {
    let text = file(settings);
    let config = play.path("remote/.git/config");
    let before = fs::read_to_string(&config).expect("a configuration");
    if place == Place::Repository {
        fs::write(&config, format!("{before}{text}")).expect("written");
    }
    if place == Place::User {
        play.write("home/.gitconfig", &text);
        play.write("home/.config/git/attributes", "* -diff\n");
        play.write("home/.config/git/ignore", "*\n");
    }
    let found = outcomes(play, &|command| surround(command, place, settings));
    fs::write(&config, before).expect("written");
    for name in ["home/.gitconfig", "home/.config"] {
        let path = play.path(name);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    found
}

fn surround(command: &mut Command, place: Place, settings: &[Setting]) {
    match place {
        Place::User => {
            command.env_remove("GIT_CONFIG_GLOBAL");
        }
        Place::Repository => {}
        Place::Parameters => {
            let quoted =
                |(key, value): &Setting| format!("'{key}'='{}'", value.replace('\'', "'\\''"));
            let all: Vec<_> = settings.iter().map(quoted).collect();
            command.env("GIT_CONFIG_PARAMETERS", all.join(" "));
            for (key, value) in VARIABLES {
                command.env(key, value);
            }
        }
        Place::Count => {
            command.env("GIT_CONFIG_COUNT", settings.len().to_string());
            for (number, (key, value)) in settings.iter().enumerate() {
                command.env(format!("GIT_CONFIG_KEY_{number}"), key);
                command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
            }
        }
    }
}

/// Variables of git's, each set so that a git which sees it works on something else or speaks otherwise.
const VARIABLES: [(&str, &str); 16] = [
    ("GIT_DIR", "/nonexistent"),
    ("GIT_WORK_TREE", "/nonexistent"),
    ("GIT_INDEX_FILE", "/nonexistent/index"),
    ("GIT_OBJECT_DIRECTORY", "/nonexistent"),
    ("GIT_COMMON_DIR", "/nonexistent"),
    ("GIT_NAMESPACE", "x"),
    ("GIT_EXTERNAL_DIFF", "/bin/true"),
    ("GIT_DIFF_OPTS", "-u0"),
    ("GIT_ICASE_PATHSPECS", "1"),
    ("GIT_GLOB_PATHSPECS", "1"),
    ("GIT_NOTES_REF", "refs/heads/main"),
    ("GIT_TEMPLATE_DIR", "/nonexistent"),
    ("GIT_ATTR_SOURCE", "nonexistent"),
    ("GIT_TRACE", "1"),
    ("GIT_EXEC_PATH", "/nonexistent"),
    ("GIT_DEFAULT_HASH", "sha256"),
];

#[track_caller]
fn assert_equal(found: &[String], expected: &[String], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn no_key_at_any_place_changes_what_a_command_says() {
    let play = play();
    let keys = keys(&play);
    let expected = outcomes(&play, &|_| {});
    for (said, (args, code)) in expected.iter().zip(COMMANDS) {
        assert!(
            said.contains(&format!("exit Some({code})")),
            "{args:?}: {said}"
        );
    }
    for settings in [awkward(&play, &keys), nonsense(&keys)] {
        for place in [
            Place::User,
            Place::Repository,
            Place::Parameters,
            Place::Count,
        ] {
            let found = with(&play, place, &settings);
            assert_equal(&found, &expected, &format!("{place:?}"));
        }
    }
    for section in SECTIONS {
        let start = format!("{section}.");
        let some: Vec<_> = keys
            .iter()
            .filter(|key| key.starts_with(&start))
            .cloned()
            .collect();
        let found = with(&play, Place::Repository, &awkward(&play, &some));
        assert_equal(&found, &expected, section);
    }
}

#[test]
fn no_single_key_changes_what_git_reads_in_a_repository() {
    let play = play();
    let keys = keys(&play);
    let git_dir = play.path("remote/.git");
    let id = |name: &str| play.git("remote", &["rev-parse", &format!("{name}^{{commit}}")]);
    let range = format!("{}..{}", id("v1.1"), id("series"));
    let read = |git_dir: &Path| -> Vec<Vec<u8>> {
        let git = |args: &[&str]| {
            let task = Task::git_reading(git_dir)
                .expect("git")
                .args(args)
                .arg(&range);
            task.output().expect("git reads")
        };
        vec![
            git(&["log", "-p", "--stat"]),
            git(&["format-patch", "--stdout"]),
        ]
    };
    let expected = read(&git_dir);
    let config = fs::read_to_string(git_dir.join("config")).expect("a configuration");
    for settings in [awkward(&play, &keys), nonsense(&keys)] {
        for setting in settings {
            let text = format!("{config}{}", file(std::slice::from_ref(&setting)));
            fs::write(git_dir.join("config"), text).expect("written");
            assert_eq!(read(&git_dir), expected, "{setting:?}");
        }
    }
}

#[test]
fn nothing_that_is_configured_changes_what_the_bot_fetches_and_pushes() {
    let play = play();
    let toml = play
        .read("bot.toml")
        .replacen("series =", "push = \"pushed.git\"\nseries =", 1);
    play.write("bot.toml", &toml);
    let keys = keys(&play);
    let mut settings = awkward(&play, &keys);
    let more = [
        ("fetch.prune", "true"),
        ("fetch.recurseSubmodules", "true"),
        ("push.followTags", "true"),
        ("push.gpgSign", "true"),
        ("push.pushOption", "x"),
        ("push.recurseSubmodules", "check"),
        ("remote.pushDefault", "nowhere"),
        ("transfer.hideRefs", "refs/heads"),
    ];
    settings.extend(more.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let run = |place: Option<Place>| {
        for name in ["bot.git", "pushed.git"] {
            fs::remove_dir_all(play.path(name)).expect("it was there");
            play.git(".", &["init", "-q", "--bare", name]);
        }
        let mut environment: Box<dyn Fn(&mut Command)> = Box::new(|_| {});
        match place {
            Some(Place::Repository) => {
                let config = play.read("bot.git/config");
                // A tree as deep as every kernel's cannot be read then, by any git.
                let own = settings
                    .iter()
                    .filter(|(key, _)| key != "core.maxTreeDepth");
                let own: Vec<_> = own.cloned().collect();
                play.write("bot.git/config", &format!("{config}{}", file(&own)));
            }
            Some(Place::User) => {
                play.write("home/.gitconfig", &file(&settings));
                environment = Box::new(|command| surround(command, Place::User, &[]));
            }
            Some(place) => environment = Box::new(move |command| surround(command, place, &[])),
            None => {}
        }
        let said = outcome(&play, &["bot", "run"], &*environment);
        // Git warns of settings that it has given up.
        let said: Vec<_> = said
            .lines()
            .filter(|line| !line.starts_with("warning: core."))
            .collect();
        let said = said.join("\n");
        let _ = fs::remove_file(play.path("home/.gitconfig"));
        // Git itself is to see none of it now.
        play.git(".", &["-C", "bot.git", "config", "--list", "--name-only"]);
        play.write(
            "bot.git/config",
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        );
        (said, play.refs("bot.git"), play.refs("pushed.git"))
    };
    let expected = run(None);
    assert!(expected.0.contains("exit Some(0)"), "{expected:?}");
    assert!(
        expected.2.contains("refs/heads/reroll/tiny/v1.1"),
        "{expected:?}"
    );
    for place in [Place::Repository, Place::User, Place::Parameters] {
        assert_eq!(run(Some(place)), expected, "{place:?}");
    }
}

#[test]
fn the_users_way_to_a_remote_counts() {
    let play = play();
    let renamed =
        play.read("bot.toml")
            .replacen("remote = \"remote\"", "remote = \"shelf:remote\"", 1);
    play.write("bot.toml", &renamed);
    fs::remove_dir_all(play.path("bot.git")).expect("it was there");
    let rule = format!(
        "[url \"{}/\"]\n\tinsteadOf = shelf:\n",
        play.path(".").display()
    );
    let user = |command: &mut Command| {
        command.env_remove("GIT_CONFIG_GLOBAL");
    };
    play.write("home/.gitconfig", &rule);
    let said = outcome(&play, &["bot", "run"], &user);
    assert!(said.contains("exit Some(0)"), "{said}");
    let broken = |command: &mut Command| {
        user(command);
        command.env("GIT_CONFIG_COUNT", "many");
    };
    let said = outcome(&play, &["bot", "run"], &broken);
    assert!(
        said.contains("git cannot read your configuration"),
        "{said}"
    );
}

#[test]
fn the_table_has_no_line_for_a_key_that_no_git_has() {
    let play = Play::new(QUICK);
    let list = play.git(".", &["help", "--config"]);
    let known: BTreeSet<String> = list.lines().map(str::to_lowercase).collect();
    for (pattern, _) in AWKWARD {
        let pattern = pattern.to_lowercase();
        let fits = |key: &String| match pattern.strip_suffix('*') {
            Some(start) => key.starts_with(start),
            None => *key == pattern,
        };
        // What came or went with a release is worth a line, too; a whole section that is spelled wrong is not.
        let section = pattern.split('.').next().unwrap_or_default();
        assert!(
            known.iter().any(fits) || SECTIONS.contains(&section),
            "{pattern}"
        );
    }
}

/// Options and lists of people that a person keeps for other projects: in the home, and where reroll is run.
const PERSONAL: [(&str, &str); 5] = [
    (
        ".checkpatch.conf",
        "--ignore SPACING,OPEN_BRACE,CODE_INDENT,LONG_LINE\n--no-signoff\n",
    ),
    (".checkpatch.conf", "--terse\n"),
    (".get_maintainer.conf", "--no-m\n--no-r\n"),
    (".get_maintainer.conf", "--norolestats\n"),
    (".get_maintainer.ignore", "Keeper <keeper@example.org>\n"),
];

/// Variables that change what perl or a script does.
const PERSONAL_VARIABLES: [(&str, &str); 6] = [
    ("PERL5OPT", "-Mstrict -e1"),
    ("PERL5LIB", "/nonexistent"),
    ("PERL_UNICODE", "SDA"),
    ("PYTHONPATH", "/nonexistent"),
    ("GIT_DIR", "/nonexistent"),
    ("LC_ALL", "tr_TR.UTF-8"),
];

/// Small scripts that read what the kernel's read: options from the directory, the home and `.scripts`; then they say what they saw.
const SCRIPT: &str = r#"#!/usr/bin/perl
my @seen = ();
for my $dir (".", $ENV{HOME}, ".scripts") {
	for my $name (".checkpatch.conf", ".get_maintainer.conf", ".get_maintainer.ignore") {
		next if !open(my $file, "<", "$dir/$name");
		push(@seen, map { chomp; "$name: $_" } <$file>);
	}
}
push(@seen, map { "$_ is set" } grep { /^(PERL|PYTHON|GIT_|LC_ALL)/ && "$_=$ENV{$_}" ne "LC_ALL=C" } sort keys %ENV);
"#;

#[test]
fn a_script_of_the_kernel_sees_only_what_the_base_has() {
    let play = Play::new(QUICK);
    let checkpatch =
        format!("{SCRIPT}print(\"ERROR:SEEN: $_\\n\\n\") for @seen;\nexit(@seen != 0);\n");
    let maintainers = format!(
        "{SCRIPT}print(\"Keeper <keeper\\@example.org> (maintainer:POOLS)\\n\");\nprint(\"seen\\@example.org (open list:$_)\\n\") for @seen;\n"
    );
    play.write("remote/scripts/checkpatch.pl", &checkpatch);
    play.write("remote/scripts/get_maintainer.pl", &maintainers);
    play.base("v1.1", "scripts");
    play.git("remote", &["switch", "-q", "-c", "series"]);
    play.change("struct pool", "/* Pools. */\nstruct pool");
    play.commit("mm: pool: describe\n\nWords.\n\nSigned-off-by: A U Thor <author@example.org>");
    let check = |environment: &dyn Fn(&mut Command)| {
        let args = [
            "check",
            "--tree",
            "remote",
            "--base",
            "v1.1",
            "--branch",
            "series",
            "--gate",
            "checkpatch,maintainers",
            "--json",
        ];
        outcome(&play, &args, environment)
    };
    // Nothing is found anew here: what an earlier run found would be told, had it depended on the surroundings.
    let expected = check(&|_| {});
    assert!(
        !expected.contains("seen@") && !expected.contains("SEEN"),
        "{expected}"
    );
    for (name, text) in PERSONAL {
        for place in ["home", "."] {
            let file = format!("{place}/{name}");
            play.write(&file, text);
            let fresh = fresh(&play);
            assert_eq!(check(&fresh), expected, "{file}: {text}");
            fs::remove_file(play.path(&file)).expect("it was there");
        }
    }
    let cache = fresh(&play);
    let variables = |command: &mut Command| {
        cache(command);
        command.envs(PERSONAL_VARIABLES);
    };
    assert_eq!(check(&variables), expected, "variables");

    // The base's own options are everybody's.
    play.git("remote", &["switch", "-q", "main"]);
    play.write("remote/.checkpatch.conf", "--own\n");
    play.write("remote/.get_maintainer.conf", "--own\n");
    play.base("v1.2", "options");
    play.git("remote", &["switch", "-q", "series"]);
    play.git("remote", &["rebase", "-q", "v1.2"]);
    let args = [
        "check",
        "--tree",
        "remote",
        "--base",
        "v1.2",
        "--branch",
        "series",
        "--gate",
        "checkpatch",
        "--json",
    ];
    let said = outcome(&play, &args, &|_| {});
    assert!(said.contains("SEEN: .checkpatch.conf: --own"), "{said}");
}

/// A cache that nothing was found in yet.
fn fresh(play: &Play) -> impl Fn(&mut Command) + use<> {
    let cache = play.path("home/fresh");
    let _ = fs::remove_dir_all(&cache);
    move |command| {
        command.env("XDG_CACHE_HOME", &cache);
    }
}

#[test]
fn a_copy_of_a_repository_is_read_by_its_objects_alone() {
    let play = play();
    let tip = play.git("remote", &["rev-parse", "series"]);
    copy(
        &play.path("remote/.git/objects"),
        &play.path("bare/objects"),
    );
    let log = Task::git_reading(&play.path("bare")).expect("git");
    let log = log.args(["log", "-1", "--format=%H"]).arg(&tip).output();
    assert_eq!(log.expect("git reads").trim().to_str_lossy(), tip);
}
