//! Patch text and diffstat against git's own, on trees made for the purpose.
//!
//! Hides nothing; the oracle is `git diff-tree` with `--attr-source`, which reads attributes from a tree as we do.

use bstr::ByteSlice;
use reroll::diff::{Labels, between};
use reroll::diffstat::{stat, summary};
use reroll::error::{Exit, exit_of};
use reroll::repo::{MODE_FILE, ObjectId};

use crate::scratch::{
    MODE_EXECUTABLE, MODE_LINK, MODE_SUBMODULE, Random, Scratch, TreeFile, assert_same, file,
};

const COMMIT_1: &[u8] = b"1111111111111111111111111111111111111111";
const COMMIT_2: &[u8] = b"2222222222222222222222222222222222222222";

/// Compares patch, diffstat and summary of two trees with git's.
fn compare(scratch: &Scratch, old: ObjectId, new: ObjectId, what: &str) {
    let files = between(&scratch.repo, old, new, &Labels::of(old)).expect("a diff");
    let text: Vec<u8> = files.iter().flat_map(|file| file.text.clone()).collect();
    let (old, new) = (old.to_string(), new.to_string());
    let attributes = format!("--attr-source={old}");
    let args = [
        &attributes,
        "diff-tree",
        "-r",
        "--no-renames",
        "--abbrev=12",
        "-p",
        "--stat=72",
        "--summary",
        &old,
        &new,
    ];
    let gap: &[u8] = if files.is_empty() { b"" } else { b"\n" };
    let ours = [&stat(&files), &summary(&files), gap, &text].concat();
    assert_same(&ours, &scratch.git(&args), what);
}

fn compare_files(old: &[TreeFile<'_>], new: &[TreeFile<'_>], what: &str) {
    let scratch = Scratch::new();
    compare(&scratch, scratch.tree(old), scratch.tree(new), what);
}

#[test]
fn every_kind_of_change_is_written_as_git_writes_it() {
    compare_files(
        &[
            file("gone", "1\n2\n"),
            file("empty-gone", ""),
            file("mode", "same\n"),
            file("mode-and-text", "a\n"),
            file("to-link", "text\n"),
            ("link", MODE_LINK, b"old/target"),
            ("sub", MODE_SUBMODULE, COMMIT_1),
            ("sub-gone", MODE_SUBMODULE, COMMIT_1),
            ("sub-to-file", MODE_SUBMODULE, COMMIT_1),
            file("file-to-dir", "x\n"),
            file("dir-to-file/x", "x\n"),
            file("dir-to-file.c", "x\n"),
            file("same/deep/file", "x\n"),
            file("no-newline", "a\nb"),
            file("no-newline-both", "a\nb"),
            file("newline-lost", "a\nb\n"),
            file("one-line", "a\n"),
        ],
        &[
            file("new", "1\n2\n"),
            file("empty-new", ""),
            ("mode", MODE_EXECUTABLE, b"same\n"),
            ("mode-and-text", MODE_EXECUTABLE, b"b\n"),
            ("to-link", MODE_LINK, b"target"),
            ("link", MODE_LINK, b"new/target"),
            ("sub", MODE_SUBMODULE, COMMIT_2),
            ("sub-new", MODE_SUBMODULE, COMMIT_2),
            file("sub-to-file", "x\n"),
            file("file-to-dir/x", "x\n"),
            file("dir-to-file", "x\n"),
            file("dir-to-file.c", "y\n"),
            file("same/deep/file", "x\n"),
            file("no-newline", "a\nb\n"),
            file("no-newline-both", "a\nc"),
            file("newline-lost", "a\nb"),
            file("one-line", "b\n"),
            ("crlf", MODE_FILE, b"a\r\nb\r\n"),
            ("nul-after-8000", MODE_FILE, &late_nul()),
        ],
        "changes",
    );
}

fn late_nul() -> Vec<u8> {
    [vec![b'a'; 7999], b"\n".to_vec(), b"x\0y\n".to_vec()].concat()
}

#[test]
fn names_are_quoted_as_git_quotes_them() {
    let names = [
        "with blank",
        "with\ttab",
        "with\nnewline",
        "quo\"te",
        "back\\slash",
        "ünïcödé/世界",
        "bell\u{7}",
        "del\u{7f}",
        "blank and ü",
        "'apostrophe'",
    ];
    let old: Vec<_> = names.iter().map(|name| file(name, "a\n")).collect();
    let new: Vec<_> = names.iter().map(|name| file(name, "b\n")).collect();
    compare_files(&old, &new, "changed");
    compare_files(&old, &[], "deleted");
    compare_files(&[], &new, "added");
}

/// Lines that one rule or another takes for a label, or does not.
const LINES: [&str; 26] = [
    "int f(void)",
    "\tint rc;",
    "out:",
    "\tretry: /* again */",
    "default:",
    "static const struct very_long_type_name_for_a_label *a_function_with_a_long_name(struct parameter *p)",
    "struct s {",
    "}",
    "",
    "  ",
    "$dollar",
    "_under = 1;",
    "#define X \\",
    "::global::name()",
    "&node {",
    "\t/ {",
    "/ {",
    "\tchild@1 {",
    "reg = <1>;",
    "fn run() {",
    "pub(crate) async fn walk<T>(t: T) {",
    "impl<T> Trait for T {",
    "use x;",
    "    def method(self):",
    "class C:",
    "label at the cut \u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}",
];

fn random_text(random: &mut Random) -> Vec<String> {
    let count = random.below(90);
    let ends = ["\n", "\n", "\n", "\n", "\n", "\n", " \n", "\r\n"];
    (0..count)
        .map(|_| {
            let more = "x".repeat(random.below(3) * random.below(30));
            let end = random.pick(&ends);
            format!("{}{more}{end}", random.pick(&LINES))
        })
        .collect()
}

fn random_edit(random: &mut Random, lines: &[String]) -> Vec<String> {
    let mut lines = lines.to_vec();
    for _ in 0..=random.below(5) {
        let at = random.below(lines.len() + 1);
        match random.below(3) {
            0 => lines.insert(at, format!("new {}\n", random.below(9))),
            1 if at < lines.len() => drop(lines.remove(at)),
            _ if at < lines.len() => lines[at] = format!("{}\n", random.pick(&LINES)),
            _ => {}
        }
    }
    if random.below(6) == 0
        && let Some(last) = lines.last_mut()
    {
        last.truncate(last.trim_end().len());
    }
    lines
}

#[test]
fn hunks_and_labels_of_random_files_equal_gits() {
    let mut random = Random(0x5eed);
    let scratch = Scratch::new();
    let suffixes = ["c", "h", "dts", "dtsi", "rs", "py", "txt"];
    let attributes =
        "*.[ch] diff=cpp\n*.dts diff=dts\n*.dts[io] diff=dts\n*.rs diff=rust\n*.py diff=python\n";
    let names: Vec<String> = (0..700)
        .map(|at| format!("d{}/f{at}.{}", at % 7, random.pick(&suffixes)))
        .collect();
    let old: Vec<_> = names.iter().map(|_| random_text(&mut random)).collect();
    let new: Vec<_> = old
        .iter()
        .map(|old| random_edit(&mut random, old))
        .collect();
    let tree = |texts: &[Vec<String>]| {
        let texts: Vec<String> = texts.iter().map(|lines| lines.concat()).collect();
        let files = names
            .iter()
            .zip(&texts)
            .map(|(name, text)| file(name, text));
        let mut files: Vec<_> = files.collect();
        files.push(file(".gitattributes", attributes));
        scratch.tree(&files)
    };
    compare(&scratch, tree(&old), tree(&new), "random files");
}

#[test]
fn attributes_of_random_patterns_are_read_as_git_reads_them() {
    let patterns = [
        "*.c",
        "*.[ch]",
        "/a/*.c",
        "a/*.c",
        "a/**/x.c",
        "**/b/*",
        "a/**",
        "x.*",
        "[!x].c",
        "b/",
        "!x.c",
        "\"x.c\"",
        "\"\\170.c\"",
        "\\x.c",
        "?.c",
        "a/?/x.c",
        "[[:lower:]].h",
        "x.c/",
        "*",
        "/x.c",
        "[a-x].c",
        "a**c",
        "[]x].c",
        "**/x.c",
        "b/x.h",
        "[x-",
        "*.h",
    ];
    let states = [
        "diff=cpp",
        "diff=dts",
        "diff",
        "!diff",
        "cee",
        "-cee",
        "!cee",
        "diff=nobody",
        "text -cee diff=rust",
        "diff=cpp !diff",
        "cee diff=dts",
        "diff=dts cee",
    ];
    let paths = [
        "x.c",
        "y.c",
        "x.h",
        "a/x.c",
        "a/y.h",
        "a/b/x.c",
        "a/b/y.c",
        "a/b/c/x.c",
        "b/x.c",
        "b/x.h",
        "z",
    ];
    let body = "out:\n1\n/ {\n2\n3\nfn x() {\n4\n5\nint f;\n6\n7\nend:\n8\n9\n10\n11\n";
    let changed = body.replace("11\n", "12\n").replace("5\n", "five\n");
    let mut random = Random(0xa77);
    for round in 0..30 {
        let mut texts = Vec::new();
        for directory in ["", "a/", "a/b/"] {
            let mut text = String::new();
            if random.below(2) == 0 {
                text += "[attr]cee diff=cpp\n";
            }
            for _ in 0..random.below(6) {
                let (pattern, state) = (random.pick(&patterns), random.pick(&states));
                text.extend([pattern, " ", state, "\n"]);
            }
            texts.push((format!("{directory}.gitattributes"), text));
        }
        let scratch = Scratch::new();
        let tree = |body: &str| {
            let files = paths.iter().map(|path| file(path, body));
            let attributes = texts.iter().map(|(path, text)| file(path, text));
            scratch.tree(&files.chain(attributes).collect::<Vec<_>>())
        };
        let what = format!("round {round}: {texts:?}");
        compare(&scratch, tree(body), tree(&changed), &what);
    }
}

#[test]
fn diffstats_of_random_files_equal_gits() {
    let mut random = Random(0xd1ff);
    let parts = [
        "mm",
        "include",
        "a_long_directory_name",
        "ünïcödé",
        "with blank",
        "x",
        "asm-generic",
    ];
    for round in 0..40 {
        let scratch = Scratch::new();
        let most = [3, 9, 40, 70, 300, 12000][random.below(6)];
        let texts: Vec<_> = (0..=random.below(6))
            .map(|at| {
                let depth = 1 + random.below(6);
                let name: Vec<_> = (0..depth).map(|_| random.pick(&parts)).collect();
                let name = format!("{}{at}/f{at}", name.join("/"));
                let (old, new) = (random.below(most), random.below(most));
                (name, "old\n".repeat(old), "new\n".repeat(new))
            })
            .collect();
        let old: Vec<_> = texts.iter().map(|(name, old, _)| file(name, old)).collect();
        let new: Vec<_> = texts
            .iter()
            .map(|(name, _, new)| {
                let mode = if random.below(8) == 0 {
                    MODE_EXECUTABLE
                } else {
                    MODE_FILE
                };
                (name.as_str(), mode, new.as_bytes())
            })
            .collect();
        let what = format!("round {round}");
        compare(&scratch, scratch.tree(&old), scratch.tree(&new), &what);
        let empty = scratch.tree(&[]);
        compare(&scratch, empty, scratch.tree(&new), &what);
    }
}

#[test]
fn a_binary_file_is_refused_by_name() {
    let scratch = Scratch::new();
    let old = scratch.tree(&[]);
    for files in [
        &[("logo.gif", MODE_FILE, &b"GIF\0"[..])][..],
        &[
            file("logo.gif", "text\n"),
            file(".gitattributes", "*.gif binary\n"),
        ],
        &[
            file("logo.gif", "text\n"),
            file(".gitattributes", "*.gif -diff\n"),
        ],
    ] {
        let new = scratch.tree(files);
        let error = between(&scratch.repo, old, new, &Labels::of(new)).expect_err("refused");
        assert_eq!(exit_of(&error), Exit::Usage);
        assert!(
            error.to_string().contains("`logo.gif` is binary"),
            "{error}"
        );
    }
}

#[test]
fn a_driver_that_is_not_known_here_is_refused_by_name() {
    let scratch = Scratch::new();
    let attributes = file(".gitattributes", "*.go diff=golang\n");
    let old = scratch.tree(&[attributes, file("x.go", "a\n")]);
    let new = scratch.tree(&[attributes, file("x.go", "b\n")]);
    let error = between(&scratch.repo, old, new, &Labels::of(old)).expect_err("refused");
    assert_eq!(exit_of(&error), Exit::Usage);
    assert!(error.to_string().contains("`golang`"), "{error}");
}

#[test]
fn equal_subtrees_are_not_read() {
    let scratch = Scratch::new();
    let old = scratch.tree(&[file("a/x", "1\n"), file("b/y", "1\n")]);
    let new = scratch.tree(&[file("a/x", "2\n"), file("b/y", "1\n")]);
    let tree = scratch.git(&["rev-parse", &format!("{old}:b")]);
    let tree = tree.to_str().expect("an id").trim().to_owned();
    let object = scratch
        .path("repo.git/objects")
        .join(&tree[..2])
        .join(&tree[2..]);
    std::fs::remove_file(object).expect("the object is loose");
    let files = between(&scratch.repo, old, new, &Labels::of(old)).expect("a diff");
    assert_eq!(files.len(), 1);
}
