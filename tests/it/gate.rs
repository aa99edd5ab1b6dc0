//! `reroll check` on a stand-in for a kernel: a few files whose Makefile speaks enough of kbuild.
//!
//! Hides that stand-in: it knows defconfig, olddefconfig, prepare, objects, `O=`, `W=` and `C=`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bstr::BString;
use reroll::exec::{Output, Task};
use reroll::repo::{MODE_FILE, ObjectId, Repo, Signature};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{in_path, left_out};

const MAKEFILE: &str = r#"
MAKEFLAGS += -rR
.PHONY: FORCE
VERSION = 6
PATCHLEVEL = 99
SUBLEVEL = 0
EXTRAVERSION =
CFLAGS_OF_ARCH := -DARCH_$(ARCH)
ifneq ($(W),)
CFLAGS_OF_ARCH += -Wall
endif
defconfig:
	@echo CONFIG_ALWAYS=y > $(O)/.config
olddefconfig:
	@awk 'NR == FNR { known[$$1] = 1; next } match($$0, /CONFIG_[A-Z0-9_]+/) { name = substr($$0, RSTART + 7, RLENGTH - 7); if (known[name]) line[name] = $$0 } END { for (name in line) print line[name] }' Kconfig $(O)/.config > $(O)/.config.new
	@mv $(O)/.config.new $(O)/.config
prepare:
	@mkdir -p $(O)/scripts/mod
	@cp scripts/modpost.sh $(O)/scripts/mod/modpost
	@chmod +x $(O)/scripts/mod/modpost
	@echo once >> $(O)/prepared
%.o: FORCE
	@mkdir -p $(O)/$(@D)
	@echo '  CC      $@'
	@if test -f slow; then sleep `cat slow`; fi
	@if ! test $(O)/$@ -nt $(CURDIR)/$*.c; then gcc $(CFLAGS_OF_ARCH) $(KCFLAGS) -Iinclude -c -o $(O)/$@ $(CURDIR)/$*.c; fi
	@echo 'savedcmd_$@ := gcc $(CFLAGS_OF_ARCH) -I$(CURDIR)/include -c -o $@ $(CURDIR)/$*.c ; true' > $(O)/$(@D)/.$(@F).cmd
	@if test "$(C)" = 2 && ! test -f no-sparse; then echo '  CHECK   $*.c'; $(CHECK) -Iinclude $*.c; fi
FORCE:
"#;

// Like the real one, it takes `-E` to make a mismatch an error.
const MODPOST: &str = "#!/bin/sh
test \"$1\" = -E && exit 1
for last; do :; done
nm \"$last\" | sed -n 's/.* T \\(unmarked_.*\\)/WARNING: modpost: vmlinux: section mismatch in reference: \\1+0x1c (section: .text) -> setup (section: .init.text)/p'
";

const CHECKPATCH: &str = r#"#!/usr/bin/perl
my $bad = 0;
while (<>) {
	if (/^\+ {8}/) { $bad = 1; print "ERROR:CODE_INDENT: code indent should use tabs where possible\n#$.: FILE: x\n$_\n"; }
}
exit $bad;
"#;

const GET_MAINTAINER: &str = r#"#!/usr/bin/perl
print "A Maintainer <m\@example.org> (maintainer:THINGS)\n", "list\@example.org (open list:THINGS)\n";
"#;

const THING: &str = "int thing_a(int x);
int thing_b(int x);

int thing_a(int x)
{
	int unused_before;

	return x + 1;
}

int thing_b(int x)
{
	return x + 2;
}

void thing_fill(long *memory, int count);
void thing_fill(long *memory, int count)
{
	for (int i = 0; i < count; i++)
		memory[i] = i;
}
";

const SETTINGS: &str = r#"
objects = ["mm/thing.o"]
options = ["ALWAYS=y"]
[[configuration]]
name = "gcc"
arch = "x86_64"
section = true
[[configuration]]
name = "sparse"
arch = "x86_64"
analyser = "sparse"
[[configuration]]
name = "arm64"
arch = "arm64"
[[skip]]
gate = "mail"
reason = "the letters are not what these tests are about"
"#;

/// A stand-in kernel with a series on top, and a cache of its own.
struct Kernel {
    dir: TempDir,
    files: BTreeMap<String, String>,
    commits: Vec<ObjectId>,
    settings: String,
}

impl Kernel {
    fn new() -> Self {
        Self::with(&[])
    }

    /// One with more files in its base.
    fn with(more: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let base = [
            ("Makefile", MAKEFILE),
            ("Kconfig", "ALWAYS\nSOMETIMES\nWERROR\n"),
            ("scripts/modpost.sh", MODPOST),
            ("scripts/checkpatch.pl", CHECKPATCH),
            ("scripts/get_maintainer.pl", GET_MAINTAINER),
            (
                "include/thing.h",
                "#define __user __attribute__((noderef, address_space(1)))\n",
            ),
            ("mm/thing.c", THING),
        ];
        let mut kernel = Self {
            dir,
            files: BTreeMap::new(),
            commits: Vec::new(),
            settings: SETTINGS.to_owned(),
        };
        Repo::init_bare(&kernel.path("kernel.git")).expect("a repository");
        kernel.commit("start", &[("COPYING", "GPL-2.0\n")]);
        kernel.commit("base", &[&base[..], more].concat());
        kernel
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn repo(&self) -> Repo {
        Repo::open(&self.path("kernel.git")).expect("a repository")
    }

    /// The file as it is now, with a text replaced.
    fn edited(&self, path: &str, from: &str, to: &str) -> String {
        let text = &self.files[path];
        assert_eq!(text.matches(from).count(), 1, "`{from}` in {path}");
        text.replace(from, to)
    }

    /// A commit on top, with this subject or whole message.
    fn commit(&mut self, message: &str, files: &[(&str, &str)]) {
        self.commit_by("A U Thor", message, files);
    }

    /// The same by somebody of this name.
    fn commit_by(&mut self, name: &str, message: &str, files: &[(&str, &str)]) {
        let repo = self.repo();
        for (path, text) in files {
            self.files.insert((*path).to_owned(), (*text).to_owned());
        }
        let ids: Vec<(BString, ObjectId)> = self
            .files
            .iter()
            .map(|(path, text)| {
                (
                    path.as_str().into(),
                    repo.write_blob(text.as_bytes()).expect("a blob"),
                )
            })
            .collect();
        let entries: Vec<_> = ids
            .iter()
            .map(|(path, id)| (path.as_ref(), MODE_FILE, *id))
            .collect();
        let tree = repo.write_new_tree(&entries).expect("a tree");
        let message = if message.contains('\n') {
            message.to_owned()
        } else {
            format!(
                "mm: {message}\n\nThere is a reason.\n\nSigned-off-by: A U Thor <author@example.org>\n"
            )
        };
        let author = Signature {
            name: name.into(),
            email: "author@example.org".into(),
            time: 1_700_000_000 + i64::try_from(self.commits.len()).expect("few"),
            offset: 60,
        };
        let parent = self.commits.last().copied();
        let id = repo
            .write_commit(tree, parent, &author, message.as_str().into())
            .expect("a commit");
        self.commits.push(id);
    }

    /// A commit that replaces one text of `mm/thing.c`.
    fn patch(&mut self, message: &str, from: &str, to: &str) {
        let text = self.edited("mm/thing.c", from, to);
        self.commit(message, &[("mm/thing.c", &text)]);
    }

    /// `reroll check` on everything after the base.
    fn task(&self, args: &[&str]) -> Task {
        let settings: String = self
            .settings
            .replace("\n[[", "\n[[check.")
            .replace("\n[section", "\n[check.section")
            .replace("\n[equality", "\n[check.equality")
            .replace("\n[guest", "\n[check.guest");
        let series = self.path("series");
        fs::create_dir_all(series.join("0001-nothing")).expect("a directory");
        let text = format!(
            "name = \"series\"\ntitle = \"mm: things\"\nversion = 1\nchange-id = \"20260101-things-0123456789ab\"\npatches = []\n[check]\n{settings}"
        );
        fs::write(series.join("series.toml"), text).expect("written");
        fs::write(series.join("cover.txt"), "Words.\n").expect("written");
        let repo = self.path("kernel.git");
        Task::new(env!("CARGO_BIN_EXE_reroll"))
            .home()
            .env("XDG_CACHE_HOME", self.path("cache"))
            .args(["check", "--json", "--tree"])
            .arg(repo)
            .arg("--series")
            .arg(series)
            .args(["--base", &self.commits[1].to_string()])
            .args(args)
    }

    fn branch(&self) -> [String; 2] {
        [
            "--branch".to_owned(),
            self.commits.last().expect("commits").to_string(),
        ]
    }

    fn check(&self, args: &[&str]) -> Report {
        let [flag, rev] = self.branch();
        let output = self
            .task(&[&[flag.as_str(), rev.as_str()], args].concat())
            .run()
            .expect("reroll starts");
        Report::new(&output)
    }
}

/// What `--json` said.
#[derive(Debug)]
struct Report {
    exit: reroll::exec::End,
    outcomes: Vec<Value>,
    stderr: String,
}

impl Report {
    fn new(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let value: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {stderr}"));
        let outcomes = value["outcomes"].as_array().expect("outcomes").clone();
        Self {
            exit: output.exit,
            outcomes,
            stderr,
        }
    }

    /// Everything that is neither pass nor skipped: `gate[ configuration] patch: status`.
    fn bad(&self) -> Vec<String> {
        let bad = self
            .outcomes
            .iter()
            .filter(|it| !matches!(it["status"].as_str(), Some("pass" | "skipped")));
        let name = |it: &Value| {
            let configuration = it["configuration"]
                .as_str()
                .map(|it| format!(" {it}"))
                .unwrap_or_default();
            format!(
                "{}{configuration} {}: {}",
                it["gate"].as_str().expect("text"),
                it["patch"],
                it["status"].as_str().expect("text")
            )
        };
        bad.map(name).collect()
    }

    /// The first outcome like this.
    fn of(&self, gate: &str, configuration: Option<&str>, patch: u64) -> &Value {
        let fits = |it: &&Value| {
            it["gate"] == gate
                && it["configuration"].as_str() == configuration
                && it["patch"] == patch
        };
        self.outcomes.iter().find(fits).expect("an outcome")
    }

    fn lines(value: &Value) -> String {
        let lines = value["lines"].as_array().expect("lines").iter();
        lines
            .map(|line| line.as_str().expect("text").to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The outcomes without times and places.
    fn comparable(&self) -> Vec<Value> {
        let strip = |it: &Value| {
            let mut it = it.clone();
            for key in ["seconds", "log", "cached"] {
                it.as_object_mut().expect("an object").remove(key);
            }
            it
        };
        self.outcomes.iter().map(strip).collect()
    }
}

/// A series of two patches that nothing can be said against.
fn clean() -> Kernel {
    let mut kernel = Kernel::new();
    kernel.patch("count further", "x + 1", "x + 11");
    kernel.patch("count even further", "x + 2", "x + 22");
    kernel
}

/// Whether a tool is there; in CI it has to be.
fn have(tool: &str) -> bool {
    let there = in_path(tool).is_some();
    if !there {
        left_out(tool, "it is not installed");
    }
    there
}

#[test]
fn a_clean_series_passes_and_a_second_run_knows_it_at_once() {
    if !have("sparse") {
        return;
    }
    let kernel = clean();
    let report = kernel.check(&[]);
    assert_eq!(report.bad(), Vec::<String>::new(), "{}", report.stderr);
    assert_eq!(report.exit, reroll::exec::End::Code(0));
    let since = Instant::now();
    let again = kernel.check(&[]);
    assert!(since.elapsed() < Duration::from_secs(2));
    assert_eq!(again.comparable(), report.comparable());
    let found_out = again
        .outcomes
        .iter()
        .filter(|it| it["gate"] != "mail" && it["cached"] != true);
    assert_eq!(found_out.count(), 0);
    assert!(
        again.stderr.contains("pass build gcc, patch 1 (cached)"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_patch_that_compiles_only_with_the_next_fails_alone() {
    let mut kernel = Kernel::new();
    kernel.patch("use what is not there", "x + 1", "helper(x)");
    kernel.patch(
        "add it",
        "int thing_a(int x);",
        "static int helper(int x)\n{\n\treturn x;\n}\n\nint thing_a(int x);",
    );
    let report = kernel.check(&["--gate", "apply,build,checkpatch"]);
    assert_eq!(
        report.bad(),
        [
            "build gcc 1: fail",
            "build sparse 1: fail",
            "build arm64 1: fail"
        ]
    );
    assert_eq!(report.exit, reroll::exec::End::Code(1));
}

#[test]
fn only_warnings_that_the_base_does_not_have_fail() {
    let mut kernel = Kernel::new();
    kernel.patch(
        "leave something",
        "\treturn x + 2;",
        "\tint unused_now;\n\n\treturn x + 2;",
    );
    let report = kernel.check(&["--gate", "apply,build,checkpatch"]);
    assert_eq!(report.bad(), ["build gcc 1: fail", "build arm64 1: fail"]);
    let lines = Report::lines(report.of("build", Some("gcc"), 1));
    assert!(
        lines.contains("unused_now") && !lines.contains("unused_before"),
        "{lines}"
    );
    assert!(lines.starts_with('+'), "{lines}");
}

#[test]
fn an_address_space_error_fails_under_sparse_only() {
    if !have("sparse") {
        return;
    }
    let mut kernel = Kernel::new();
    let text = kernel.edited("mm/thing.c", "int thing_a(int x);", "#include <thing.h>\n#ifndef __CHECKER__\n#undef __user\n#define __user\n#endif\nint thing_c(int __user *x);\nint thing_c(int __user *x)\n{\n\treturn *x;\n}\n\nint thing_a(int x);");
    kernel.commit("read from afar", &[("mm/thing.c", &text)]);
    let report = kernel.check(&["--gate", "apply,build,section,checkpatch"]);
    assert_eq!(report.bad(), ["build sparse 1: fail"], "{report:?}");
}

#[test]
fn sparse_that_kbuild_skips_in_silence_is_an_error() {
    if !have("sparse") {
        return;
    }
    let mut kernel = Kernel::with(&[("no-sparse", "")]);
    kernel.patch("count further", "x + 1", "x + 11");
    let report = kernel.check(&["--gate", "build"]);
    assert_eq!(report.bad(), ["build sparse 1: error"]);
    assert_eq!(report.exit, reroll::exec::End::Code(4));
    let reason = report.of("build", Some("sparse"), 1)["reason"]
        .as_str()
        .expect("text");
    assert!(
        reason.contains("sparse did not run on the source of `mm/thing.o`"),
        "{reason}"
    );
}

#[test]
fn an_option_that_vanishes_is_an_error() {
    let mut kernel = clean();
    kernel.settings = SETTINGS.replace("ALWAYS=y", "SOMETIMES=y\", \"NEVER=y");
    let report = kernel.check(&["--gate", "build"]);
    assert_eq!(report.bad().len(), 6);
    let reason = report.of("build", Some("gcc"), 1)["reason"]
        .as_str()
        .expect("text");
    assert!(
        reason.contains("did not survive `olddefconfig`: NEVER=y (it is n)"),
        "{reason}"
    );
}

#[test]
fn a_new_section_mismatch_fails_the_section_gate_only() {
    let mut kernel = Kernel::new();
    kernel.patch("call what is gone by then", "int thing_a(int x);", "int unmarked_caller(void);\nint unmarked_caller(void)\n{\n\treturn 0;\n}\n\nint thing_a(int x);");
    let report = kernel.check(&["--gate", "apply,build,section,checkpatch"]);
    assert_eq!(report.bad(), ["section gcc 1: fail"]);
    assert!(Report::lines(report.of("section", Some("gcc"), 1)).contains("unmarked_caller"));
}

#[test]
fn a_symbol_missing_on_one_architecture_fails_there_only() {
    let mut kernel = Kernel::new();
    kernel.patch(
        "use what arm64 has not",
        "x + 1",
        "\n#ifdef ARCH_arm64\n\tmissing_here\n#else\n\tx\n#endif\n",
    );
    let report = kernel.check(&["--gate", "apply,build,section"]);
    assert_eq!(report.bad(), ["build arm64 1: fail"]);
}

#[test]
fn a_space_indented_line_fails_checkpatch_only() {
    let mut kernel = Kernel::new();
    kernel.patch("count further", "\treturn x + 1;", "        return x + 1;");
    let report = kernel.check(&["--gate", "apply,build,section,checkpatch,maintainers"]);
    assert_eq!(report.bad(), ["checkpatch 1: fail"]);
    kernel.settings =
        format!("{SETTINGS}[[accept]]\ntype = \"CODE_INDENT\"\nreason = \"on purpose\"\n");
    let report = kernel.check(&["--gate", "checkpatch"]);
    assert_eq!(report.bad(), Vec::<String>::new());
    assert!(Report::lines(report.of("checkpatch", None, 1)).contains("on purpose"));
}

#[test]
fn a_message_with_a_cut_line_fails_the_apply_gate_only() {
    let mut kernel = Kernel::new();
    kernel.patch("mm: count further\n\nbefore  after\n---\n1  11\n\nSigned-off-by: A U Thor <author@example.org>\n", "x + 1", "x + 11");
    kernel.patch("count even further", "x + 2", "x + 22");
    let report = kernel.check(&["--gate", "apply,build,section,checkpatch"]);
    assert_eq!(report.bad(), ["apply 1: fail"]);
    let lines = Report::lines(report.of("apply", None, 1));
    assert!(lines.contains("-Signed-off-by: A U Thor"), "{lines}");
}

#[test]
fn a_message_that_quotes_a_diff_fails_the_apply_gate() {
    let mut kernel = Kernel::new();
    let quoted = "mm: count further\n\nNot like this:\n\ndiff --git a/mm/thing.c b/mm/thing.c\n--- a/mm/thing.c\n+++ b/mm/thing.c\n@@ -1,2 +1,3 @@\n int thing_a(int x);\n int thing_b(int x);\n+int thing_c(int x);\n\nSigned-off-by: A U Thor <author@example.org>\n";
    kernel.patch(quoted, "x + 1", "x + 11");
    let report = kernel.check(&["--gate", "apply"]);
    assert_eq!(report.bad(), ["apply 1: fail"]);
}

#[test]
fn maintainers_come_as_headers() {
    let report = clean().check(&["--gate", "maintainers"]);
    let lines = Report::lines(report.of("maintainers", None, 1));
    assert_eq!(
        lines,
        "To: A Maintainer <m@example.org>\nCc: list@example.org"
    );
}

#[test]
fn a_missing_compiler_is_an_error_with_its_package() {
    let mut kernel = clean();
    kernel.settings = format!(
        "{SETTINGS}[[configuration]]\nname = \"far\"\narch = \"far\"\ncross = \"no-such-machine-\"\n"
    );
    let report = kernel.check(&["--gate", "build"]);
    assert_eq!(report.bad(), ["build far 1: error", "build far 2: error"]);
    let far = report.of("build", Some("far"), 1);
    assert_eq!(far["packages"][1], "gcc-no-such-machine");
}

#[test]
fn a_guest_is_left_out_unless_asked_for_and_then_named_with_what_it_needs() {
    let mut kernel = clean();
    let guests = |report: &Report| {
        let of_guest = report.outcomes.iter().filter(|it| it["gate"] == "guest");
        of_guest.cloned().collect::<Vec<_>>()
    };
    let report = kernel.check(&["--gate", "apply", "--slow"]);
    let found = guests(&report);
    assert_eq!(found.len(), 1, "{}", report.stderr);
    assert_eq!(found[0]["status"], "skipped");
    assert!(found[0]["reason"].to_string().contains("check.guest"));

    let dir = kernel.path("series/own");
    fs::create_dir_all(&dir).expect("a directory");
    for (name, text) in HARNESS {
        fs::write(dir.join(name), text).expect("written");
    }
    kernel.settings = format!(
        "{SETTINGS}[equality]\nobject = \"mm/thing.o\"\nentry = \"thing_fill\"\nharness = \"own\"\n\
         [guest]\ntarget = \"bzImage\"\nimage = \"bzImage\"\ninit = \"guest.c\"\n\
         memory = [{{ name = \"one\", size = 4096, fill = 4096 }}]\n\
         [guest.configuration]\nname = \"guest\"\narch = \"x86_64\"\nemulator = [\"qemu-system-x86-not-there\"]\n"
    );
    assert_eq!(guests(&kernel.check(&["--gate", "apply"])).len(), 0);
    let report = kernel.check(&["--gate", "guest"]);
    assert_eq!(
        report.bad(),
        ["guest guest 1: error", "guest guest 2: error"]
    );
    assert_eq!(guests(&report)[0]["packages"][0], "qemu-system-x86");
    assert_eq!(report.exit, reroll::exec::End::Code(4));
}

#[test]
fn a_directory_of_patches_is_proven_like_the_branch_it_came_from() {
    let kernel = clean();
    let branch = kernel.check(&["--gate", "apply,build"]);
    let dir = kernel.path("patches");
    let range = format!("{}..{}", kernel.commits[1], kernel.commits[3]);
    let git = Task::git()
        .arg("--git-dir")
        .arg(kernel.path("kernel.git"))
        .args(["format-patch", "-q", "-o"]);
    git.arg(&dir).arg(&range).output().expect("patches");
    let output = kernel
        .task(&[dir.to_str().expect("text"), "--gate", "apply,build"])
        .run()
        .expect("reroll starts");
    let report = Report::new(&output);
    assert_eq!(report.comparable(), branch.comparable());
    // The commits are the same ones, so that the builds are known.
    assert_eq!(report.of("build", Some("gcc"), 2)["cached"], true);
}

#[test]
fn other_bases_are_told_clean_drifted_conflict_or_upstream() {
    let mut kernel = Kernel::new();
    let base = kernel.files.clone();
    kernel.patch("one", "x + 1", "x + 11");
    kernel.patch("two", "x + 2", "x + 22");
    kernel.commit("three", &[("mm/other.c", "int other;\n")]);
    let series = kernel.commits.clone();

    // Another base: `one` is there, `two` meets a rework, `three` is only a namesake, and everything has moved.
    kernel.commits.truncate(2);
    kernel.files = base.clone();
    kernel.patch("merged", "x + 1", "x + 11");
    let text =
        kernel
            .edited("mm/thing.c", "x + 2", "x + 3")
            .replacen("int thing_a", "\n\nint thing_a", 1);
    kernel.commit("rework", &[("mm/thing.c", &text)]);
    kernel.commit("three", &[("mm/thing.c", &format!("{text}\n/* end */\n"))]);
    let onto = kernel.commits.last().expect("commits").to_string();
    // And one in which things have only moved.
    kernel.commits.truncate(2);
    kernel.files = base;
    let text = format!("/* one */\n/* two */\n/* three */\n/* four */\n{THING}");
    kernel.commit("move", &[("mm/thing.c", &text)]);
    let moved = kernel.commits.last().expect("commits").to_string();

    kernel.commits = series;
    let verdicts = |report: &Report, rev: &str| -> Vec<String> {
        let name = format!("onto {rev}");
        (1..=3)
            .map(|patch| {
                report.of("apply", Some(&name), patch)["verdict"]
                    .as_str()
                    .expect("text")
                    .to_owned()
            })
            .collect()
    };
    let report = kernel.check(&["--gate", "apply", "--onto", &onto]);
    assert_eq!(verdicts(&report, &onto), ["upstream", "conflict", "clean"]);
    let two = Report::lines(report.of("apply", Some(&format!("onto {onto}")), 2));
    assert!(
        two.contains("patch failed: mm/thing.c:")
            && two.contains("expected:")
            && two.contains("x + 3"),
        "{two}"
    );
    let three = Report::lines(report.of("apply", Some(&format!("onto {onto}")), 3));
    assert!(
        three.contains("remark:") && three.contains("same subject, but another patch-id"),
        "{three}"
    );
    let report = kernel.check(&["--gate", "apply", "--onto", &moved]);
    assert_eq!(verdicts(&report, &moved), ["drifted", "drifted", "clean"]);
}

/// The verdict on each patch, with why.
fn onto(kernel: &Kernel, series: &[ObjectId], rev: &ObjectId) -> Vec<(String, String)> {
    let rev = rev.to_string();
    let tip = series.last().expect("commits").to_string();
    let args = ["--branch", &tip, "--gate", "apply", "--onto", &rev];
    let output = kernel.task(&args).run().expect("reroll starts");
    let report = Report::new(&output);
    let name = format!("onto {rev}");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let patches = 1..=u64::try_from(series.len() - 2).expect("few");
    let outcomes = patches.map(|patch| {
        let outcome = report.of("apply", Some(&name), patch);
        let reason = format!("{}\n{}", text(&outcome["reason"]), Report::lines(outcome));
        (text(&outcome["verdict"]), reason)
    });
    outcomes.collect()
}

#[test]
fn what_was_reverted_is_not_upstream_whatever_the_messages_say() {
    let mut kernel = Kernel::new();
    let base = kernel.files.clone();
    kernel.patch("one", "x + 1", "x + 11");
    let series = kernel.commits.clone();
    // Upstream something comes first, so that the commit is another one.
    kernel.commits.truncate(2);
    kernel.files = base;
    kernel.commit("other", &[("mm/other.c", "int other;\n")]);
    kernel.patch("one", "x + 1", "x + 11");
    let merged = kernel.commits[3].to_string();
    let (commits, files) = (kernel.commits.clone(), kernel.files.clone());
    let found =
        |kernel: &Kernel| onto(kernel, &series, kernel.commits.last().expect("one")).remove(0);
    let upstream = format!("already upstream as {}\n", &merged[..12]);
    let reverted = format!("upstream as {}, reverted since\n", &merged[..12]);
    let changed = format!("remark: upstream as {}, changed since", &merged[..12]);
    assert_eq!(found(&kernel), ("upstream".to_owned(), upstream.clone()));

    let messages = [
        format!("Revert \"mm: one\"\n\nThis reverts commit {merged}.\n"),
        format!(
            "Revert \"mm: one\"\n\nThis reverts commit {} (\"mm: one\"), which\nbroke things.\n",
            &merged[..12]
        ),
        "mm: count less\n\nIt was too much.\n".to_owned(),
    ];
    for message in messages {
        kernel.commits.clone_from(&commits);
        kernel.files.clone_from(&files);
        kernel.patch(&message, "x + 11", "x + 1");
        assert_eq!(
            found(&kernel),
            ("clean".to_owned(), reverted.clone()),
            "{message}"
        );
        // The code above has moved besides.
        let text = format!(
            "/* one */\n/* two */\n/* three */\n/* four */\n{}",
            kernel.files["mm/thing.c"]
        );
        kernel.commit("move", &[("mm/thing.c", &text)]);
        let (verdict, reason) = found(&kernel);
        assert_eq!(verdict, "drifted", "{reason}");
        assert!(reason.starts_with(reverted.trim_end()), "{reason}");
        // The revert is reverted.
        kernel.patch("count further again", "x + 1;", "x + 11;");
        assert_eq!(found(&kernel).0, "upstream", "{message}");
    }
    // Changed again by somebody: neither what it was nor what the patch makes of it.
    kernel.commits.clone_from(&commits);
    kernel.files.clone_from(&files);
    kernel.patch("count elsewhere", "x + 11", "x + 12");
    let (verdict, reason) = found(&kernel);
    assert_eq!(verdict, "conflict", "{reason}");
    assert!(reason.contains(&changed), "{reason}");
    // Something beside it changed: it is there all the same.
    kernel.commits.clone_from(&commits);
    kernel.files.clone_from(&files);
    kernel.patch(
        "no local",
        "\tint unused_before;\n\n",
        "\tint used_before;\n\n",
    );
    assert_eq!(found(&kernel).0, "upstream");
    // A tree without that history has the change, and nothing says which commit brought it.
    let [start, tip] =
        [commits[0], commits[3]].map(|id| kernel.repo().commit(id).expect("it is there"));
    let import = kernel
        .repo()
        .write_commit(tip.tree_id, None, &start.author, "import\n".into());
    let import = import.expect("a commit");
    let (verdict, reason) = onto(&kernel, &series, &import).remove(0);
    assert_eq!(verdict, "conflict", "{reason}");
    assert!(
        reason.contains("remark: the files have its change, though no commit has its patch-id"),
        "{reason}"
    );
}

#[test]
fn patches_that_stand_on_each_other_are_upstream_as_far_as_they_are_there() {
    let mut kernel = Kernel::new();
    let base = kernel.files.clone();
    kernel.patch("one", "x + 1", "x + 11");
    kernel.patch("two", "x + 11", "x + 111");
    kernel.commit("three", &[("mm/new.c", "int new;\n")]);
    let series = kernel.commits.clone();
    kernel.commits.truncate(2);
    kernel.files = base;
    kernel.commit("other", &[("mm/other.c", "int other;\n")]);
    kernel.patch("one", "x + 1", "x + 11");
    kernel.patch("two", "x + 11", "x + 111");
    kernel.commit("three", &[("mm/new.c", "int new;\n")]);
    let verdicts = |kernel: &Kernel| -> Vec<String> {
        let found = onto(kernel, &series, kernel.commits.last().expect("one"));
        found.into_iter().map(|(verdict, _)| verdict).collect()
    };
    assert_eq!(verdicts(&kernel), ["upstream"; 3]);
    kernel.patch("less", "x + 111", "x + 11");
    assert_eq!(verdicts(&kernel), ["upstream", "clean", "upstream"]);
    kernel.patch("still less", "x + 11", "x + 1");
    assert_eq!(verdicts(&kernel), ["clean", "clean", "upstream"]);
}

#[test]
fn a_patch_of_which_only_the_subject_is_upstream_is_not_upstream() {
    let lines = |changed: &[(usize, &str)]| -> String {
        let line = |number: usize| {
            let found = changed.iter().find(|(it, _)| *it == number);
            found.map_or_else(|| format!("{number}\n"), |(_, text)| format!("{text}\n"))
        };
        (1..=40).map(line).collect()
    };
    let plain = lines(&[]);
    let mut kernel = Kernel::with(&[("mm/x.c", &plain), ("mm/y.c", &plain), ("mm/z.c", &plain)]);
    let base = kernel.files.clone();
    kernel.commit("one", &[("mm/x.c", &lines(&[(10, "ten")]))]);
    kernel.commit("two", &[("mm/y.c", &lines(&[(20, "twenty")]))]);
    kernel.commit("three", &[("mm/z.c", &lines(&[(30, "thirty")]))]);
    let series = kernel.commits.clone();
    // The other base has a rework of what `two` changes, and something else that is called `three`.
    kernel.commits.truncate(2);
    kernel.files = base;
    kernel.commit("rework y", &[("mm/y.c", &lines(&[(20, "reworked")]))]);
    kernel.commit("three", &[("mm/z.c", &lines(&[(5, "five")]))]);
    let onto = kernel.commits.last().expect("commits").to_string();
    kernel.commits = series;

    let report = kernel.check(&["--gate", "apply", "--onto", &onto]);
    let configuration = format!("onto {onto}");
    let of = |patch| report.of("apply", Some(&configuration), patch);
    let verdicts = [1, 2, 3].map(|patch| of(patch)["verdict"].as_str().expect("text"));
    assert_eq!(verdicts, ["clean", "conflict", "clean"]);
    assert_eq!(report.bad(), [format!("apply {configuration} 2: fail")]);
    assert_eq!(report.exit, reroll::exec::End::Code(1));
    assert_eq!(Report::lines(of(1)), "");
    let three = Report::lines(of(3));
    assert!(three.starts_with("remark: "), "{three}");
    assert!(
        three.contains("same subject, but another patch-id"),
        "{three}"
    );
}

/// Authors and subjects that mail has trouble with, and the line that shows what git would make of them; none where they survive.
const HOSTILE: [(&str, &str, &str); 10] = [
    (
        "Ä. U. Thör",
        "mm: ünïcödé subject that is long enough to need folding over more than one line 世界世界世界世界世界世界世界世界",
        "",
    ),
    (
        "Ä. Ü Thör (Example, Inc.)",
        "mm: what about =?UTF-8?q?literal?= encoded-words in an ASCII subject?",
        "",
    ),
    (
        "Foo B. Bar, Jr.",
        "mm: plain : with colon and a [tag] inside",
        "",
    ),
    (
        "作者測試",
        "mm: 這是一個非常長的主旨行用來測試多位元組字元不會在編碼字中間被切開這是一個非常長的主旨行",
        "",
    ),
    (
        "Plain Name",
        "mm: an-extremely-long-single-token-subject-without-any-spaces-that-cannot-be-folded-by-the-mailer-at-all-really",
        "",
    ),
    ("Dot Name", "mm: a dot at the end.", ""),
    (
        "Bracket Name",
        "[RFC] mm: a bracket in front",
        "+Subject: mm: a bracket in front",
    ),
    (
        "Ä. \"Ü\" Thör",
        "mm: quotes in the name",
        "+Author: Ä. Ü Thör",
    ),
    ("Tab\tName", "mm: a tab in the name", "+Author: Tab Name"),
    (
        "Space Name",
        "mm: double  spaces",
        "+Subject: mm: double spaces",
    ),
];

#[test]
fn hostile_authors_and_subjects_survive_or_fail_the_apply_gate_with_what_is_lost() {
    let mut kernel = Kernel::new();
    let mut text = THING.to_owned();
    for (number, (name, subject, _)) in HOSTILE.iter().enumerate() {
        text += &format!("/* {number} */\n");
        let message = format!("{subject}\n\nWhy.\n\nSigned-off-by: {name} <author@example.org>\n");
        kernel.commit_by(name, &message, &[("mm/thing.c", &text)]);
    }
    let report = kernel.check(&["--gate", "apply"]);
    for (number, (name, subject, lost)) in (1..).zip(&HOSTILE) {
        let outcome = report.of("apply", None, number);
        let lines = Report::lines(outcome);
        let status = if lost.is_empty() { "pass" } else { "fail" };
        assert_eq!(outcome["status"], status, "{name}: {subject}\n{lines}");
        assert!(lines.contains(lost), "{name}: {subject}\n{lines}");
    }
}

#[test]
fn junit_has_a_case_for_each_patch_gate_and_configuration() {
    let kernel = clean();
    let file = kernel.path("junit.xml");
    kernel.check(&[
        "--gate",
        "build,apply",
        "--junit",
        file.to_str().expect("text"),
    ]);
    let text = fs::read_to_string(file).expect("written");
    assert_eq!(text.matches("<testcase ").count(), 8, "{text}");
    assert!(text.contains("classname=\"build arm64\""), "{text}");
}

#[test]
fn an_unknown_key_in_the_settings_is_refused() {
    let mut kernel = clean();
    kernel.settings = SETTINGS.replace("objects", "object");
    let [flag, rev] = kernel.branch();
    let output = kernel.task(&[&flag, &rev]).run().expect("reroll starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.exit, reroll::exec::End::Code(2), "{stderr}");
    assert!(stderr.contains("unknown field `object`"), "{stderr}");
}

/// Processes whose command line or directory is below `dir`.
fn alive_below(dir: &Path) -> Vec<String> {
    let mut alive = Vec::new();
    for entry in fs::read_dir("/proc").expect("proc").flatten() {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if cwd.starts_with(dir)
            || command.contains(dir.to_str().expect("text")) && !command.contains("reroll check")
        {
            alive.push(command);
        }
    }
    alive
}

/// When a check is ended.
#[derive(Clone, Copy)]
enum After {
    Time(Duration),
    /// Once a child that begins like this runs.
    Child(&'static str),
}

/// Starts a check and ends it with `signal` after a while; how long it took to be gone.
fn interrupted(kernel: &Kernel, signal: rustix::process::Signal, after: After) -> Duration {
    let [flag, rev] = kernel.branch();
    let args = [flag.as_str(), rev.as_str(), "--gate", "build,section"];
    std::thread::scope(|scope| {
        let run = scope.spawn(|| kernel.task(&args).run());
        match after {
            After::Time(after) => std::thread::sleep(after),
            After::Child(name) => wait_for_child(kernel, name),
        }
        let pid = own_check(&kernel.path("kernel.git"));
        let since = Instant::now();
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, signal);
        }
        let _ = run.join();
        since.elapsed()
    })
}

/// Waits until a child of a check runs whose command line begins like this.
fn wait_for_child(kernel: &Kernel, name: &str) {
    let deadline = Instant::now() + Duration::from_mins(1);
    let is_there = || {
        let alive = alive_below(&kernel.path("cache"));
        alive.iter().any(|it| it.starts_with(name))
    };
    while !is_there() {
        assert!(Instant::now() < deadline, "no {name} in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process of `reroll check` on this repository.
fn own_check(repo: &Path) -> Option<rustix::process::Pid> {
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let command = String::from_utf8_lossy(&fs::read(entry.path().join("cmdline")).ok()?)
            .replace('\0', " ");
        let mine = command.contains("reroll check") && command.contains(repo.to_str()?);
        let pid = entry.file_name().to_str()?.parse().ok()?;
        mine.then(|| rustix::process::Pid::from_raw(pid)).flatten()
    })
}

#[test]
fn an_interrupted_check_is_gone_within_a_second_with_its_children() {
    let mut kernel = Kernel::with(&[("slow", "30\n")]);
    kernel.patch("count further", "x + 1", "x + 11");
    let took = interrupted(&kernel, rustix::process::Signal::INT, After::Child("sleep"));
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(alive_below(&kernel.path("cache")), Vec::<String>::new());
}

#[test]
fn a_killed_check_leaves_nothing_stale() {
    let mut kernel = Kernel::with(&[("slow", "0.3\n")]);
    kernel.patch("count further", "x + 1", "x + 11");
    kernel.patch(
        "leave something",
        "\treturn x + 2;",
        "\tint unused_now;\n\n\treturn x + 2;",
    );
    let undisturbed = kernel.check(&["--gate", "build,section"]);
    assert_eq!(
        undisturbed.bad(),
        ["build gcc 2: fail", "build arm64 2: fail"]
    );
    let expected = undisturbed.comparable();
    for millis in [50, 150, 300, 500, 700, 900, 1200, 1600, 2000] {
        fs::remove_dir_all(kernel.path("cache")).expect("removed");
        interrupted(
            &kernel,
            rustix::process::Signal::KILL,
            After::Time(Duration::from_millis(millis)),
        );
        let report = kernel.check(&["--gate", "build,section"]);
        assert_eq!(report.comparable(), expected, "killed after {millis} ms");
    }
}

/// One build, in one configuration.
const ONE_BUILD: [&str; 4] = ["--gate", "build", "--configuration", "gcc"];

#[test]
fn who_waits_for_another_run_says_so_once() {
    let mut kernel = Kernel::with(&[("slow", "2\n")]);
    kernel.patch("count further", "x + 1", "x + 11");
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| kernel.check(&ONE_BUILD));
        wait_for_child(&kernel, "sleep");
        let second = kernel.check(&ONE_BUILD);
        (first.join().expect("the first run ends"), second)
    });
    let waiting = "waiting for another reroll that uses `";
    assert_eq!(
        second.stderr.matches(waiting).count(),
        1,
        "{}",
        second.stderr
    );
    assert!(!first.stderr.contains(waiting), "{}", first.stderr);
    assert_eq!(first.bad(), Vec::<String>::new(), "{}", first.stderr);
    assert_eq!(second.comparable(), first.comparable());
}

#[test]
fn threads_of_one_run_wait_for_each_other_in_silence() {
    let mut kernel = Kernel::with(&[("slow", "0.5\n")]);
    kernel.patch("count further", "x + 1", "x + 11");
    // Every configuration wants the source, and each has a build directory of its own.
    let report = kernel.check(&["--gate", "build,checkpatch,maintainers"]);
    assert!(!report.stderr.contains("waiting"), "{}", report.stderr);
}

impl Kernel {
    /// `reroll base` with the cache of the checks; what it said.
    fn base(&self, args: &[&str]) -> String {
        let task = Task::new(env!("CARGO_BIN_EXE_reroll"))
            .home()
            .env("XDG_CACHE_HOME", self.path("cache"))
            .arg("base")
            .args(args);
        let output = task.run().expect("reroll starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.exit, reroll::exec::End::Code(0), "{said}");
        said
    }

    /// The sources and builds in the lab.
    fn lab(&self) -> Vec<String> {
        let mut found = Vec::new();
        for part in ["build", "source"] {
            let dir = self.path("cache/reroll/lab").join(part);
            for entry in fs::read_dir(dir).expect("a lab").flatten() {
                if entry.path().is_dir() {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    found.push(format!("{part}/{name}"));
                }
            }
        }
        found.sort();
        found
    }

    /// Makes all in the lab look as if it was used last so many days ago.
    fn age(&self, days: u64) {
        let then = std::time::SystemTime::now() - Duration::from_hours(24 * days);
        for name in self.lab() {
            let lock = self.path("cache/reroll/lab").join(format!("{name}.lock"));
            let lock = fs::File::options().write(true).open(lock).expect("a lock");
            lock.set_modified(then).expect("a time");
        }
    }
}

#[test]
fn what_was_not_used_for_long_is_pruned_and_made_again() {
    let kernel = clean();
    assert!(
        kernel.base(&["prune"]).contains("freed 0 B"),
        "there is no lab"
    );
    let report = kernel.check(&ONE_BUILD);
    let lab = kernel.lab();
    assert_eq!(lab.len(), 2, "a source and a build: {lab:?}");
    kernel.age(29);
    assert!(kernel.base(&["prune"]).contains("freed 0 B"));
    assert_eq!(kernel.lab(), lab);
    // A use counts.
    kernel.age(31);
    kernel.check(&["--gate", "build", "--configuration", "gcc", "--renew"]);
    kernel.base(&["prune"]);
    assert_eq!(kernel.lab(), lab);
    kernel.age(31);
    let said = kernel.base(&["prune", "--dry-run"]);
    for name in &lab {
        assert!(said.contains(&format!("would remove {name} (")), "{said}");
    }
    assert!(
        said.contains("would free ") && !said.contains("free 0 B"),
        "{said}"
    );
    assert_eq!(kernel.lab(), lab);
    let said = kernel.base(&["prune"]);
    for name in &lab {
        assert!(said.contains(&format!("removed {name} (")), "{said}");
    }
    assert!(
        said.contains("freed ") && !said.contains("freed 0 B"),
        "{said}"
    );
    assert_eq!(kernel.lab(), Vec::<String>::new());
    let again = kernel.check(&["--gate", "build", "--configuration", "gcc", "--renew"]);
    assert_eq!(again.comparable(), report.comparable());
    assert_eq!(kernel.lab(), lab);
}

#[test]
fn what_was_found_of_a_tree_long_ago_is_pruned() {
    let kernel = clean();
    for (dir, days) in [("index", 29), ("index", 31), ("places", 31)] {
        let dir = kernel.path("cache/reroll").join(dir);
        fs::create_dir_all(&dir).expect("a directory");
        let file = fs::File::create(dir.join(format!("{days}-days"))).expect("a file");
        std::io::Write::write_all(&mut &file, b"x").expect("written");
        let then = std::time::SystemTime::now() - Duration::from_hours(24 * days);
        file.set_modified(then).expect("a time");
    }
    let file = |name: &str| kernel.path("cache/reroll").join(name);
    let said = kernel.base(&["prune", "--dry-run"]);
    assert!(
        said.contains("would remove index (") && file("index/31-days").exists(),
        "{said}"
    );
    let said = kernel.base(&["prune"]);
    assert!(
        said.contains("removed index (") && said.contains("removed places ("),
        "{said}"
    );
    assert!(file("index/29-days").exists());
    assert!(!file("index/31-days").exists() && !file("places/31-days").exists());
}

#[test]
fn the_source_of_a_base_in_the_cache_is_not_pruned_before_the_base_is_removed() {
    let kernel = clean();
    for (name, text) in &Kernel::new().files {
        let path = kernel.path("directory").join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("written");
    }
    let directory = kernel.path("directory");
    kernel.base(&["add", "mine", directory.to_str().expect("text")]);
    kernel.check(&ONE_BUILD);
    kernel.age(31);
    kernel.base(&["prune"]);
    let lab = kernel.lab();
    assert!(
        matches!(&lab[..], [only] if only.starts_with("source/")),
        "{lab:?}"
    );
    kernel.base(&["remove", "mine"]);
    kernel.base(&["prune"]);
    assert_eq!(kernel.lab(), Vec::<String>::new());
}

#[test]
fn what_is_in_use_is_not_pruned_and_what_a_killed_run_left_is() {
    let mut kernel = Kernel::with(&[("slow", "1\n")]);
    kernel.patch("count further", "x + 1", "x + 11");
    let left = kernel.path("cache/reroll/lab/source/0123.partial/mm");
    fs::create_dir_all(&left).expect("a directory");
    std::thread::scope(|scope| {
        let check = scope.spawn(|| kernel.check(&ONE_BUILD));
        wait_for_child(&kernel, "sleep");
        let before = kernel.lab();
        let said = kernel.base(&["prune", "--older-than", "0"]);
        assert!(said.contains("left alone, in use: 1"), "{said}");
        assert!(said.contains("removed source/0123.partial ("), "{said}");
        assert_eq!(kernel.lab().len(), before.len() - 1);
        let report = check.join().expect("the check ends");
        assert_eq!(report.bad(), Vec::<String>::new(), "{}", report.stderr);
    });
    kernel.base(&["prune", "--older-than", "0"]);
    assert_eq!(kernel.lab(), Vec::<String>::new());
}

/// A series of one patch with this message, its mail gate not left out.
fn mailed(message: &str, args: &[&str]) -> Report {
    let mut kernel = Kernel::new();
    kernel.patch(message, "x + 1", "x + 11");
    let about_series = [
        "recipients-missing",
        "recipients-list",
        "change-id-missing",
        "base-named",
        "cover-missing",
    ];
    let (before, _) = SETTINGS.split_once("[[skip]]").expect("settings");
    before.clone_into(&mut kernel.settings);
    for rule in about_series.iter().filter(|rule| {
        reroll::mail::rules::RULES
            .iter()
            .any(|it| it.name == **rule)
    }) {
        kernel.settings += &format!(
            "[[skip]]\ngate = \"mail\"\nrule = \"{rule}\"\nreason = \"a branch has no letters\"\n"
        );
    }
    kernel.check(&[&["--gate", "mail,apply,checkpatch"], args].concat())
}

#[test]
fn a_plain_message_passes_the_mail_gate() {
    let report = mailed(
        "mm: count further\n\nThe count is short. Count further.\n\nSigned-off-by: A U Thor <author@example.org>\n",
        &[],
    );
    assert_eq!(report.bad(), Vec::<String>::new(), "{report:?}");
}

#[test]
fn a_subject_of_76_characters_fails_the_mail_gate_only() {
    let subject = format!("mm: {}", "count ".repeat(12)).trim_end().to_owned();
    let message = format!(
        "{subject}x\n\nThe count is short.\n\nSigned-off-by: A U Thor <author@example.org>\n"
    );
    assert_eq!(subject.len() + 1, 76);
    let report = mailed(&message, &[]);
    assert_eq!(report.bad(), ["mail 1: fail"], "{report:?}");
    assert!(Report::lines(report.of("mail", None, 1)).contains("(subject-length)"));
}

#[test]
fn a_missing_sign_off_fails_the_mail_gate_only() {
    let report = mailed(
        "mm: count further\n\nThe count is short. Count further.\n",
        &[],
    );
    assert_eq!(report.bad(), ["mail 1: fail"], "{report:?}");
}

#[test]
fn a_base_commit_that_nobody_has_fails_the_mail_gate_only() {
    let mut kernel = clean();
    kernel.settings = SETTINGS.replace(
        "reason = \"the letters are not what these tests are about\"\n",
        "rule = \"recipients-missing\"\nreason = \"nobody\"\n",
    );
    let dir = kernel.path("patches");
    let range = format!("{}..{}", kernel.commits[1], kernel.commits[3]);
    // The commit before the base: it is in no tree that the series names.
    let base = format!("--base={}", kernel.commits[0]);
    let git = Task::git()
        .arg("--git-dir")
        .arg(kernel.path("kernel.git"))
        .args(["format-patch", "-q", &base, "-o"]);
    git.arg(&dir).arg(&range).output().expect("patches");
    let output = kernel
        .task(&[dir.to_str().expect("text"), "--gate", "mail,apply"])
        .run()
        .expect("reroll starts");
    let report = Report::new(&output);
    assert!(
        report.bad().iter().all(|bad| bad.starts_with("mail ")),
        "{report:?}"
    );
    assert!(
        Report::lines(report.of("mail", None, 1)).contains("base-commit-unknown"),
        "{report:?}"
    );
}

#[test]
fn a_rule_that_does_not_exist_is_refused() {
    let mut kernel = clean();
    kernel.settings =
        format!("{SETTINGS}[[skip]]\ngate = \"mail\"\nrule = \"no-such-rule\"\nreason = \"why\"\n");
    let [flag, rev] = kernel.branch();
    let output = kernel.task(&[&flag, &rev]).run().expect("reroll starts");
    assert_eq!(output.exit, reroll::exec::End::Code(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-rule"));
}

const HARNESS: [(&str, &str); 4] = [
    (
        "harness.toml",
        "kernel = [\"kernel.c\"]\nuser = [\"main.c\"]\ntable = \"user.h\"\nfaults = [\"fault_word\"]\nverify = [\"5\"]\nverify-faults = [\"5\"]\n[arch]\nx86_64 = []\n",
    ),
    (
        "user.h",
        "struct variant { const char *name; void *fn; };\nextern const struct variant variants[];\nextern const unsigned int nr_variants;\n",
    ),
    (
        "kernel.c",
        "void init_base(long *memory, int count);\nvoid init_fault_word(long *memory, int count);\nvoid init_fault_word(long *memory, int count)\n{\n\tinit_base(memory, count);\n\tmemory[4] = 7;\n}\n",
    ),
    (
        "main.c",
        r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "user.h"
int main(int argc, char **argv)
{
	int count = atoi(argv[argc - 1]), failed = 0;
	long base[64] = { 0 }, now[64] = { 0 };
	((void (*)(long *, int))variants[0].fn)(base, 8);
	for (unsigned int i = 1; i < nr_variants; i++) {
		((void (*)(long *, int))variants[i].fn)(now, 8);
		int equal = !memcmp(base, now, count * sizeof(long));
		failed += !equal;
		printf("{\"variant\":\"%s\",\"bytes_equal\":%s}\n", variants[i].name, equal ? "true" : "false");
	}
	printf("{\"checks\":%u,\"failed\":%d}\n", nr_variants - 1, failed);
	return failed != 0;
}
"#,
    ),
];

/// What the equality gate says about one patch that replaces a text, with a change of the harness.
fn filled(from: &str, to: &str, harness: (&str, &str)) -> Report {
    let mut kernel = Kernel::new();
    kernel.patch("fill otherwise", from, to);
    "objects = [\"mm/thing.o\"]\n[equality]\nobject = \"mm/thing.o\"\nentry = \"thing_fill\"\nharness = \"own\"\n[[configuration]]\nname = \"gcc\"\narch = \"x86_64\"\nequality = true\n".clone_into(&mut kernel.settings);
    let dir = kernel.path("series/own");
    fs::create_dir_all(&dir).expect("a directory");
    for (name, text) in HARNESS {
        fs::write(dir.join(name), text.replace(harness.0, harness.1)).expect("written");
    }
    kernel.check(&["--gate", "apply,build,equality"])
}

#[test]
fn an_object_that_writes_the_same_passes_and_the_planted_fault_was_noticed() {
    let report = filled("memory[i] = i;", "memory[i] = (long)i;", ("", ""));
    assert_eq!(report.bad(), Vec::<String>::new(), "{report:?}");
    assert_eq!(
        Report::lines(report.of("equality", Some("gcc"), 1)),
        "1 comparison, 1 planted fault noticed"
    );
}

#[test]
fn an_object_that_writes_something_else_fails_the_equality_gate_only() {
    let report = filled("memory[i] = i;", "memory[i] = i == 3 ? 0 : i;", ("", ""));
    assert_eq!(report.bad(), ["equality gcc 1: fail"], "{report:?}");
}

#[test]
fn an_object_that_crashes_fails_the_equality_gate() {
    let report = filled("memory[i] = i;", "((long *)0)[i] = i;", ("", ""));
    assert_eq!(report.bad(), ["equality gcc 1: fail"], "{report:?}");
    let reason = report.of("equality", Some("gcc"), 1)["reason"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(reason.contains("crashed with signal 11"), "{reason}");
}

#[test]
fn a_harness_that_does_not_notice_its_planted_fault_is_an_error() {
    let report = filled("memory[i] = i;", "memory[i] = (long)i;", ("\"5\"", "\"4\""));
    assert_eq!(report.bad(), ["equality gcc 1: error"], "{report:?}");
    let reason = report.of("equality", Some("gcc"), 1)["reason"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(
        reason.contains("does not notice planted faults: fault_word"),
        "{reason}"
    );
}

#[test]
fn a_run_that_ended_behind_the_base_leaves_its_warnings_to_be_heard() {
    let mut kernel = Kernel::with(&[]);
    kernel.patch("count further", "x + 1", "x + 11");
    let expected = kernel.check(&ONE_BUILD).comparable();
    // The build directory as such a run leaves it: the base's files, and their object, newer than they are.
    for file in ["src/mm/thing.c", "obj/mm/thing.o"] {
        for entry in fs::read_dir(kernel.path("cache/reroll/lab/build"))
            .expect("a lab")
            .flatten()
        {
            let path = entry.path().join(file);
            if file.ends_with(".c") && path.exists() {
                let text = fs::read_to_string(&path).expect("a file");
                fs::write(&path, text.replace("x + 11", "x + 1")).expect("a file");
            } else if path.exists() {
                let object = fs::File::options()
                    .write(true)
                    .open(&path)
                    .expect("an object");
                object
                    .set_modified(std::time::SystemTime::now())
                    .expect("a time");
            }
        }
    }
    let again = kernel.check(&[&ONE_BUILD[..], &["--renew"]].concat());
    assert_eq!(again.comparable(), expected);
}
