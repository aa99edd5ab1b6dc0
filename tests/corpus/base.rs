//! The bases that are changed, and what the series makes of a state of one: the real tool is run on a commit in a scratch repository.
//!
//! Hides repositories: nothing is ever written to the one that has the base.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use bstr::{BStr, ByteSlice};
use reroll::repo::{ObjectId, Repo};

use crate::support::{AUTHOR, Kernel, Ran, Sandbox, Store, kernels, someone};
use crate::tree::{Files, Step, Tree};

/// The files that the series changes, wherever its functions are.
pub(crate) const EMITTED: [&str; 5] = [
    "mm/mm_init.c",
    "mm/page_alloc.c",
    "include/asm-generic/Kbuild",
    "include/asm-generic/struct_page_init.h",
    "arch/x86/include/asm/struct_page_init.h",
];

const RESULT: &str = "refs/heads/series";

/// What `regen` said.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The files after each patch, with the message of its commit.
    Carried(Vec<(String, Files)>),
    /// The series is in the base, it says.
    Applied(String),
    /// With the first line of why.
    Refused(String),
    /// With the first line of why.
    Unproven(String),
    /// Neither an answer nor a refusal.
    Broken(String),
}

/// The bases with these names, or all.
pub(crate) fn bases(names: &[String]) -> Vec<&'static Kernel> {
    let wanted = |kernel: &&Kernel| names.is_empty() || names.contains(&kernel.name);
    kernels().iter().filter(wanted).collect()
}

/// What the base's `Makefile` says that it is: `6.12.94`.
pub(crate) fn release(kernel: &Kernel) -> String {
    let makefile = kernel.file("Makefile");
    let text = makefile.to_str_lossy();
    let value = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name} =")));
        line.and_then(|line| line.split_once('='))
            .map_or("", |(_, value)| value.trim())
    };
    let [version, patch, sub, extra] =
        ["VERSION", "PATCHLEVEL", "SUBLEVEL", "EXTRAVERSION"].map(value);
    format!("{version}.{patch}.{sub}{extra}")
}

/// A base to be changed.
pub(crate) fn tree(kernel: &'static Kernel) -> Tree {
    let repo = Repo::open(&kernel.git_dir).expect("a repository");
    let read = move |path: &str| {
        let file = repo
            .file(kernel.tree_id, BStr::new(path))
            .expect("a readable tree");
        file.map(|file| file.bytes)
    };
    let emitted: OnceCell<Vec<(String, Files)>> = OnceCell::new();
    let emit = move || {
        let made = emitted.get_or_init(|| match regen(kernel, &[], None) {
            Answer::Carried(patches) => patches,
            // Kinds that need the series itself make no sense then.
            _ => Vec::new(),
        });
        made.clone()
    };
    Tree::new(Rc::new(read), Rc::new(emit))
}

/// Runs the series on the last of these states of a base.
pub(crate) fn regen(kernel: &Kernel, steps: &[Step], series: Option<&Path>) -> Answer {
    let sandbox = Sandbox::new();
    let store = Store::beside(&sandbox, "store.git", kernel);
    let (tip, tree_id) = commit_all(&store, kernel, steps);
    let run = sandbox.reroll([
        "regen", "--author", AUTHOR, "-s", "-o", "out", "--ref", RESULT,
    ]);
    let run = match series {
        // Another recipe than the one that ships was never proven.
        Some(series) => run.arg("--unproven").arg("--series").arg(series),
        None => run,
    };
    let ran = run
        .args(["--base", &tip.to_string(), "--tree"])
        .arg(&store.path)
        .run();
    read_answer(&store, tip, tree_id, &ran)
}

/// The states as a line of commits; its tip and its tree.
fn commit_all(store: &Store, kernel: &Kernel, steps: &[Step]) -> (ObjectId, ObjectId) {
    let mut tip = (None, kernel.tree_id);
    for step in steps {
        let files: Vec<_> = step
            .files
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
            .collect();
        let tree_id = store.tree_with(kernel.tree_id, &files);
        let commit = store
            .repo
            .write_commit(
                tree_id,
                tip.0,
                &someone(),
                step.message.as_bytes().as_bstr(),
            )
            .expect("a commit");
        tip = (Some(commit), tree_id);
    }
    let commit = tip.0.unwrap_or_else(|| {
        let message = "the base as it is\n".into();
        let commit = store.repo.write_commit(tip.1, None, &someone(), message);
        commit.expect("a commit")
    });
    (commit, tip.1)
}

fn read_answer(store: &Store, tip: ObjectId, tree_id: ObjectId, ran: &Ran) -> Answer {
    let line = first_line(&ran.stderr);
    match ran.code {
        Some(0) => {}
        Some(3) if line.contains("unproven") => return Answer::Unproven(line),
        Some(3) => return Answer::Refused(line),
        code => return Answer::Broken(format!("exit {code:?}: {line}")),
    }
    match store.repo.reference(RESULT).expect("readable refs") {
        Some(result) => Answer::Carried(patches(&store.repo, tip, tree_id, result)),
        None if ran.stderr.contains("already applied") => Answer::Applied(line),
        None => Answer::Broken(format!("exit 0 and no result: {line}")),
    }
}

/// The first line of an error, or of anything that was said.
fn first_line(stderr: &str) -> String {
    let error = stderr.lines().find(|line| line.starts_with("error: "));
    let mut said = stderr.lines().filter(|line| !line.starts_with("series: "));
    let line = error.or_else(|| said.next()).unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// The changed files after each commit from `tip` (of `tree_id`) to `result`.
fn patches(
    repo: &Repo,
    tip: ObjectId,
    tree_id: ObjectId,
    result: ObjectId,
) -> Vec<(String, Files)> {
    let mut found = Vec::new();
    let mut id = result;
    while id != tip {
        let commit = repo.commit(id).expect("a commit");
        let paths = repo
            .changed_paths(tree_id, commit.tree_id)
            .expect("readable trees");
        let read = |path: &BStr| {
            let file = repo.file(commit.tree_id, path).expect("a readable tree");
            let file = file.unwrap_or_else(|| panic!("the series removes {path}"));
            (path.to_string(), file.bytes)
        };
        let files: BTreeMap<_, _> = paths.iter().map(|path| read(path.as_bstr())).collect();
        found.push((commit.message.to_string(), files));
        id = commit.parent_ids[0];
    }
    found.reverse();
    found
}
