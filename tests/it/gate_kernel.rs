//! The gates on a real kernel: the shipped series is green, and each planted fault turns its gate red.
//!
//! Hides how a fault is planted. The kernel is the newest of those that all tests use, or `REROLL_TEST_BASE` of the git repository
//! `REROLL_TEST_TREE`.

use std::fs;
use std::path::{Path, PathBuf};

use bstr::{BStr, ByteSlice};
use reroll::exec::{End, Task};
use reroll::repo::{Commit, MODE_FILE, Repo};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Kernel, kernels, left_out, newest};

const FILE: &str = "mm/mm_init.c";

/// The head of the function that gives a template its page frame number: what is added there goes into every page.
const SET_PFN: &str = "static __always_inline void zone_device_template_set_pfn(struct page *template,\n\t\t\t\t\t\t\t unsigned long pfn)\n{\n";

/// A repository beside the kernel's that borrows its objects, with the regenerated series on a branch.
struct Real {
    dir: TempDir,
    base: String,
    commits: Vec<Commit>,
}

/// The newest kernel, if there is one.
fn real() -> Option<Real> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    match var("REROLL_TEST_TREE").zip(var("REROLL_TEST_BASE")) {
        Some((tree, base)) => Some(real_at(&PathBuf::from(tree), &base.to_string_lossy())),
        None => real_of(newest()),
    }
}

/// A kernel by the name that all tests have for it, if it is there.
fn real_named(name: &str) -> Option<Real> {
    real_of(kernels().iter().find(|kernel| kernel.name == name))
}

fn real_of(kernel: Option<&Kernel>) -> Option<Real> {
    let Some(kernel) = kernel else {
        left_out("the gates on a real kernel", "it is not there");
        return None;
    };
    Some(real_at(&kernel.git_dir, &kernel.commit_id.to_string()))
}

/// A repository that borrows the objects of `tree`, with the series on `base` in a branch.
fn real_at(tree: &Path, base: &str) -> Real {
    let dir = tempfile::tempdir().expect("a directory");
    let clone = dir.path().join("kernel.git");
    let git = Task::git().args([
        "-c",
        "safe.directory=*",
        "clone",
        "-q",
        "--bare",
        "--shared",
    ]);
    git.arg(tree).arg(&clone).output().expect("a clone");
    let mut real = Real {
        dir,
        base: base.to_owned(),
        commits: Vec::new(),
    };
    let out = real.dir.path().join("mails");
    let task = real
        .reroll("regen")
        .args(["--ref", "refs/heads/reroll-test", "--signoff", "-o"])
        .arg(out);
    task.output().expect("regenerated");
    let repo = real.repo();
    let mut commit = repo
        .commit(repo.base("reroll-test").expect("a branch").commit_id)
        .expect("a commit");
    let base = repo.base(&real.base).expect("the base").commit_id;
    while commit.id != base {
        let parent = commit.parent_ids[0];
        real.commits.insert(0, commit);
        commit = repo.commit(parent).expect("a commit");
    }
    real
}

impl Real {
    fn repo(&self) -> Repo {
        Repo::open(&self.dir.path().join("kernel.git")).expect("a repository")
    }

    fn reroll(&self, command: &str) -> Task {
        let task = Task::new(env!("CARGO_BIN_EXE_reroll")).home();
        // The user's own cache: the source and the builds of a kernel are worth keeping between tests.
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = || var("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let cache = var("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
        let cache = cache.unwrap_or_else(|| self.dir.path().join("cache"));
        let task = task.env("XDG_CACHE_HOME", cache);
        let task = task.args([
            command,
            "--series",
            "zone-device",
            "--author",
            "A U Thor <author@example.org>",
        ]);
        task.arg("--tree")
            .arg(self.dir.path().join("kernel.git"))
            .args(["--base", &self.base])
    }

    /// What is neither pass nor skipped: `gate configuration patch: status`.
    fn check(&self, args: &[&str]) -> (Vec<String>, String) {
        let output = self
            .reroll("check")
            .args(["--json"])
            .args(args)
            .run()
            .expect("reroll starts");
        let stderr = output.stderr.to_str_lossy().into_owned();
        assert!(matches!(output.exit, End::Code(0 | 1 | 4)), "{stderr}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let outcomes = report["outcomes"].as_array().expect("outcomes");
        let bad = outcomes
            .iter()
            .filter(|it| !matches!(it["status"].as_str(), Some("pass" | "skipped")));
        let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let name = |it: &Value| {
            format!(
                "{} {} {}: {}",
                text(it, "gate"),
                text(it, "configuration"),
                it["patch"],
                text(it, "status")
            )
        };
        (
            bad.map(name).collect(),
            serde_json::to_string_pretty(outcomes).expect("JSON"),
        )
    }

    /// The file after the last patch.
    fn source(&self) -> String {
        let tree = self.commits.last().expect("patches").tree_id;
        let file = self
            .repo()
            .file(tree, BStr::new(FILE))
            .expect("readable")
            .expect("there");
        String::from_utf8(file.bytes).expect("text")
    }

    /// The series with another text of the file in its last patch; the id of its tip.
    fn planted(&self, text: &str) -> String {
        let repo = self.repo();
        let [.., before, last] = &self.commits[..] else {
            panic!("a series of several patches")
        };
        let id = repo.write_blob(text.as_bytes()).expect("a blob");
        let tree = repo
            .write_tree(last.tree_id, &[(BStr::new(FILE), MODE_FILE, id)])
            .expect("a tree");
        repo.write_commit(tree, Some(before.id), &last.author, last.message.as_ref())
            .expect("a commit")
            .to_string()
    }
}

/// `text` with one place of it replaced.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "`{from}`");
    text.replace(from, to)
}

/// `text` with more code in front of the first function that sets up device memory.
fn with_function(text: &str, code: &str) -> String {
    let at = text
        .find("static void __ref __init_zone_device_page(")
        .or_else(|| text.find("static void __ref memmap_init_compound("));
    let at = at.expect("a function of the file");
    format!("{}{code}\n{}", &text[..at], &text[at..])
}

/// Every gate but the slow one, in every configuration of the recipe.
fn assert_all_green(real: &Real) {
    let (bad, all) = real.check(&["--signoff"]);
    assert_eq!(bad, Vec::<String>::new(), "{all}");
    let outcomes: Value = serde_json::from_str(&all).expect("JSON");
    let count = |gate: &str| {
        let outcomes = outcomes.as_array().expect("outcomes").iter();
        outcomes.filter(|it| it["gate"] == gate).count()
    };
    let patches = real.commits.len();
    assert_eq!(count("build"), 8 * patches, "{all}");
    assert_eq!(count("equality"), 6 * (patches - 1), "{all}");
    for gate in ["apply", "mail", "checkpatch", "section", "maintainers"] {
        assert!(count(gate) >= patches, "{gate}: {all}");
    }
}

#[test]
fn the_shipped_series_passes_every_gate_on_the_newest_kernel() {
    let Some(real) = real() else { return };
    assert_all_green(&real);
}

#[test]
fn the_shipped_series_passes_every_gate_on_a_long_term_kernel() {
    let Some(real) = real_named("6.12") else {
        return;
    };
    assert_all_green(&real);
}

#[test]
fn a_booted_kernel_writes_the_same_and_a_fault_turns_the_guest_gate_red() {
    let Some(real) = real() else { return };
    let (bad, all) = real.check(&["--gate", "guest"]);
    assert_eq!(bad, Vec::<String>::new(), "{all}");
    assert!(all.contains("pages of 2 devices are equal"), "{all}");

    let source = real.source();
    let fault = format!("{SET_PFN}\tatomic_set(&template->_mapcount, 0);\n");
    let tip = real.planted(&replaced(&source, SET_PFN, &fault));
    let (bad, all) = real.check(&["--branch", &tip, "--gate", "guest"]);
    assert_eq!(bad, ["guest x86-64 guest 4: fail"], "{all}");
    assert!(all.contains("words of"), "{all}");
}

#[test]
fn faults_in_what_is_written_turn_the_equality_gate_red() {
    let Some(real) = real() else { return };
    let source = real.source();
    let in_set_pfn = |line: &str| replaced(&source, SET_PFN, &format!("{SET_PFN}\t{line}\n"));
    let kept = source.split_inclusive('\n');
    let dropped: String = kept.filter(|line| !line.contains("dst[1]")).collect();
    assert_ne!(dropped, source);
    let (before, function) = source
        .split_once("void __ref memmap_init_zone_device(")
        .expect("the function");
    let calls = function.replacen(
        "pageblock_migratetype_init_range(start_pfn, nr_pages,",
        "pageblock_migratetype_init_range(start_pfn, nr_pages - pageblock_nr_pages,",
        1,
    );
    let missing = format!("{before}void __ref memmap_init_zone_device({calls}");
    let mut faults = vec![
        (
            "a tail refcount of 1",
            replaced(
                &source,
                "template = *pfn_to_page(pfn - 1);",
                "template = *pfn_to_page(pfn - 1);\n\tatomic_set(&template._refcount, 1);",
            ),
        ),
        ("a word not copied", dropped),
        ("the wrong node", in_set_pfn("set_page_node(template, 0);")),
        (
            "a template that points to itself",
            in_set_pfn("INIT_LIST_HEAD(&template->lru);"),
        ),
    ];
    if missing != source {
        faults.push(("a missing pageblock call", missing));
    }
    for (name, text) in faults {
        let tip = real.planted(&text);
        let (bad, all) = real.check(&[
            "--branch",
            &tip,
            "--configuration",
            "x86-64 gcc",
            "--gate",
            "apply,build,section,equality",
        ]);
        assert_eq!(bad, ["equality x86-64 gcc 4: fail"], "{name}: {all}");
    }
}

#[test]
fn faults_in_the_code_turn_the_builds_red_that_can_see_them() {
    let Some(real) = real() else { return };
    let source = real.source();
    let faults = [
        (
            "a warning under W=1",
            &["build x86-64 gcc", "build arm64 gcc"][..],
            "void planted(void);\nvoid planted(void)\n{\n\tint set_only;\n\n\tset_only = 1;\n}\n",
        ),
        (
            "an address-space error",
            &["build x86-64 sparse"],
            "int planted(const int __user *value);\nint planted(const int __user *value)\n{\n\treturn *value;\n}\n",
        ),
        (
            "a call of an __init function",
            &["section x86-64 gcc"],
            "static noinline void __init planted_init(void)\n{\n\tbarrier();\n}\n\nvoid planted(void);\nvoid planted(void)\n{\n\tplanted_init();\n}\n",
        ),
        (
            "a symbol missing on arm64",
            &["build arm64 gcc"],
            "#ifdef CONFIG_ARM64\nint planted(void);\nint planted(void)\n{\n\treturn missing_on_arm64;\n}\n#endif\n",
        ),
    ];
    for (name, seen_by, code) in faults {
        let tip = real.planted(&with_function(&source, code));
        let configurations = ["x86-64 gcc", "x86-64 sparse", "arm64 gcc"]
            .map(|name| ["--configuration", name])
            .concat();
        let (bad, all) = real.check(
            &[
                &["--branch", &tip, "--gate", "apply,build,section"][..],
                &configurations,
            ]
            .concat(),
        );
        let expected: Vec<_> = seen_by.iter().map(|it| format!("{it} 4: fail")).collect();
        assert_eq!(bad, expected, "{name}: {all}");
    }
}

#[test]
fn a_space_indented_line_turns_the_bases_own_checkpatch_red() {
    let Some(real) = real() else { return };
    let text = with_function(
        &real.source(),
        "static inline int planted(void)\n{\n        return 0;\n}\n",
    );
    let tip = real.planted(&text);
    let (bad, all) = real.check(&["--branch", &tip, "--gate", "apply,checkpatch"]);
    assert!(bad.contains(&"checkpatch  4: fail".to_owned()), "{all}");
    assert!(all.contains("code indent should use tabs"), "{all}");
}

#[test]
fn patches_of_the_real_kernel_answer_get_maintainer() {
    let Some(real) = real() else { return };
    let file = real.dir.path().join("report.xml");
    let (bad, all) = real.check(&[
        "--gate",
        "maintainers",
        "--junit",
        file.to_str().expect("text"),
    ]);
    assert_eq!(bad, Vec::<String>::new(), "{all}");
    assert!(all.contains("To: ") && all.contains("Cc: "), "{all}");
    assert!(
        fs::read_to_string(file)
            .expect("written")
            .contains("<testcase")
    );
}
