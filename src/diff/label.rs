//! The label behind the second `@@` of a hunk: the last line above it that looks like a heading.
//!
//! Hides git's default rule and those of its built-in `diff` drivers that source trees ask for.
//!
//! The rules are those of git's `xdiff/xemit.c` (`get_func_line`, `def_ff`), `xdiff-interface.c`
//! (`ff_regexp`), `userdiff.c` and `diff.c` (`sane_truncate_line`).

use std::sync::LazyLock;

use anyhow::Result;
use bstr::{BStr, ByteSlice};
use regex::bytes::Regex;

use crate::error::Refusal;
use crate::ui::shown_text;

/// What finds labels in one kind of file: git's `diff=NAME` attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// Git's rule for files without a driver: a line that starts with a letter, `_` or `$`.
    Plain,
    /// C and C++.
    Cpp,
    /// Device tree sources.
    Dts,
    /// Rust.
    Rust,
    /// Python.
    Python,
}

/// Drivers that git has built in and this does not have: their labels would differ from git's.
const UNSUPPORTED: [&str; 23] = [
    "ada", "bash", "bibtex", "csharp", "css", "elixir", "fortran", "fountain", "golang", "html",
    "java", "kotlin", "markdown", "matlab", "objc", "pascal", "perl", "php", "ruby", "scheme",
    "tex", "ini", "r",
];

/// The longest label, in bytes.
const LONGEST: usize = 80;

/// One line of a driver's rule: what matches is a label, or is none for certain.
struct Rule {
    is_label: bool,
    pattern: Regex,
}

impl Driver {
    /// Git's driver of this name; a name that git has not built in means the default rule, since no
    /// configuration is read. `path` is for the message.
    pub(super) fn named(name: &BStr, path: &BStr) -> Result<Self> {
        Ok(match name.as_bytes() {
            b"cpp" => Self::Cpp,
            b"dts" => Self::Dts,
            b"rust" => Self::Rust,
            b"python" => Self::Python,
            other => {
                if UNSUPPORTED.iter().any(|name| name.as_bytes() == other) {
                    return Err(unsupported(name, path));
                }
                Self::Plain
            }
        })
    }

    /// The label that `line` would be, if it can be one. The whole of it: not yet cut.
    fn label(self, line: &[u8]) -> Option<&[u8]> {
        let rules: &[Rule] = match self {
            Self::Plain => return plain_label(line),
            Self::Cpp => &CPP,
            Self::Dts => &DTS,
            Self::Rust => &RUST,
            Self::Python => &PYTHON,
        };
        let line = line.strip_suffix(b"\n").map_or(line, |line| {
            line.strip_suffix(b"\r")
                .filter(|line| !line.is_empty())
                .unwrap_or(line)
        });
        let (rule, found) = rules
            .iter()
            .find_map(|rule| Some((rule, rule.pattern.captures(line)?)))?;
        if !rule.is_label {
            return None;
        }
        let label = found.get(1).or_else(|| found.get(0))?;
        Some(label.as_bytes())
    }
}

fn unsupported(name: &BStr, path: &BStr) -> anyhow::Error {
    let (name, path) = (shown_text(name), shown_text(path));
    Refusal::usage(format!(
        "the base's `.gitattributes` gives `{path}` git's diff driver `{name}`, whose labels reroll cannot compute"
    ))
    .hint("the drivers `cpp`, `dts`, `rust` and `python` are known; leave the file out of the series")
    .into()
}

fn plain_label(line: &[u8]) -> Option<&[u8]> {
    let first = line.first()?;
    (first.is_ascii_alphabetic() || matches!(first, b'_' | b'$')).then_some(line)
}

static CPP: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    rules(&[
        // Jump targets and access declarations.
        (
            false,
            r"^[ \t]*[A-Za-z_][A-Za-z_0-9]*:[[:space:]]*($|/[/*])",
        ),
        // Functions, variables and compounds at top level.
        (true, r"^((::[[:space:]]*)?[A-Za-z_].*)$"),
    ])
});

static DTS: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    rules(&[
        (false, ";"),
        (false, "="),
        (true, r"^[ \t]*((/[ \t]*\{|&?[a-zA-Z_]).*)"),
    ])
});

static RUST: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    rules(&[(
        true,
        r#"^[\t ]*((pub(\([^)]+\))?[\t ]+)?((async|const|unsafe|extern([\t ]+"[^"]+"))[\t ]+)?(struct|enum|union|mod|trait|fn|impl|macro_rules!)[< \t]+[^;]*)$"#,
    )])
});

static PYTHON: LazyLock<Vec<Rule>> =
    LazyLock::new(|| rules(&[(true, r"^[ \t]*((class|(async[ \t]+)?def)[ \t].*)$")]));

/// Compiles patterns that are constants; bytes, not characters, as in git's C locale.
fn rules(patterns: &[(bool, &str)]) -> Vec<Rule> {
    let compiled = patterns.iter().filter_map(|&(is_label, pattern)| {
        let pattern = Regex::new(&format!("(?s-u){pattern}")).ok()?;
        Some(Rule { is_label, pattern })
    });
    compiled.collect()
}

/// Finds the labels of one file's hunks, from the first to the last: a hunk with no heading between
/// it and the hunk before keeps that one's label.
pub(super) struct Search<'a> {
    lines: Vec<&'a [u8]>,
    driver: Driver,
    /// Lines below this were searched for an earlier hunk.
    searched: usize,
    label: &'a [u8],
}

impl<'a> Search<'a> {
    pub(super) fn new(old: &'a [u8], driver: Driver) -> Self {
        Self {
            lines: old.lines_with_terminator().collect(),
            driver,
            searched: 0,
            label: b"",
        }
    }

    /// Ends the `@@` line of the hunk whose first line is `first` (from 0).
    pub(super) fn push_label(&mut self, text: &mut Vec<u8>, first: usize) {
        let above = self.lines.get(self.searched..first).unwrap_or_default();
        let found = above.iter().rev().find_map(|line| self.driver.label(line));
        if let Some(found) = found {
            self.label = trim(&found[..found.len().min(LONGEST)]);
        }
        self.searched = first;
        if !self.label.is_empty() {
            text.push(b' ');
            text.extend_from_slice(valid_part(self.label));
        }
        text.push(b'\n');
    }
}

/// Without white space at the end, as git's own `isspace` has it.
fn trim(label: &[u8]) -> &[u8] {
    let end = label
        .iter()
        .rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    &label[..end.map_or(0, |end| end + 1)]
}

/// Up to the first byte that is not UTF-8: the cut may have gone through a character.
fn valid_part(label: &[u8]) -> &[u8] {
    match std::str::from_utf8(label) {
        Ok(_) => label,
        Err(error) => &label[..error.valid_up_to()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(
            [CPP.len(), DTS.len(), RUST.len(), PYTHON.len()],
            [2, 3, 1, 1]
        );
    }

    #[test]
    fn a_jump_target_is_no_label_in_c() {
        assert_eq!(Driver::Plain.label(b"out:\n"), Some(&b"out:\n"[..]));
        assert_eq!(Driver::Cpp.label(b"out:\n"), None);
        assert_eq!(Driver::Cpp.label(b"out: /* x */\n"), None);
        assert_eq!(
            Driver::Cpp.label(b"int f(void)\r\n"),
            Some(&b"int f(void)"[..])
        );
    }

    #[test]
    fn a_driver_of_git_that_is_not_here_is_refused() {
        assert!(Driver::named(BStr::new("golang"), BStr::new("a.go")).is_err());
        let plain = Driver::named(BStr::new("nobody"), BStr::new("a.x"));
        assert_eq!(plain.expect("the default rule"), Driver::Plain);
    }
}
