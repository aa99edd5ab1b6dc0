//! Reads what compilers, analysers and linkers complain about, and tells new complaints from old ones.
//!
//! Hides line numbers and paths of this machine: a complaint is the same when file and words are.

use std::collections::BTreeMap;

use bstr::ByteSlice;
use serde::{Deserialize, Serialize};

/// One complaint of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Warning {
    /// What makes it the same as another: file and message.
    pub(super) key: String,
    /// As it was said, with the lines that go with it.
    pub(super) lines: Vec<String>,
}

/// The complaints in a log, in order. `source` is the directory that paths start with, which is cut off.
pub(super) fn parse(log: &[u8], source: &str) -> Vec<Warning> {
    let prefix = format!("{source}/");
    let mut warnings: Vec<Warning> = Vec::new();
    let mut open = false;
    for line in log.lines() {
        let line = line.to_str_lossy();
        let line = if source.is_empty() {
            line.into_owned()
        } else {
            line.replace(&prefix, "")
        };
        if let Some(key) = key(&line) {
            warnings.push(Warning {
                key,
                lines: vec![line],
            });
            open = true;
        } else if open && goes_on(&line) {
            if let Some(last) = warnings.last_mut() {
                last.lines.push(line);
            }
        } else {
            open = false;
        }
    }
    warnings
}

/// The complaints of `now` that `before` has not, counted: a second one of the same words is new.
pub(super) fn new_ones(before: &[Warning], now: &[Warning]) -> Vec<Warning> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for warning in before {
        *known.entry(&warning.key).or_default() += 1;
    }
    let is_new = |warning: &&Warning| match known.get_mut(warning.key.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    now.iter().filter(is_new).cloned().collect()
}

/// The errors among complaints, or the last lines of a log that has none.
pub(super) fn errors(log: &[u8], source: &str) -> Vec<String> {
    const TAIL: usize = 12;
    let errors: Vec<_> = parse(log, source)
        .into_iter()
        .filter(|warning| warning.key.contains("error: "))
        .collect();
    if errors.is_empty() {
        let lines: Vec<_> = log
            .lines()
            .map(|line| line.to_str_lossy().into_owned())
            .collect();
        return lines[lines.len().saturating_sub(TAIL)..].to_vec();
    }
    errors
        .into_iter()
        .flat_map(|warning| warning.lines)
        .collect()
}

/// `FILE: warning: words`, with the line numbers taken out; `None` for what is no complaint.
fn key(line: &str) -> Option<String> {
    let kind = ["warning: ", "error: ", "WARNING: ", "ERROR: "]
        .into_iter()
        .find_map(|kind| {
            let at = line.find(kind)?;
            (at == 0 || line[..at].ends_with([' ', ':'])).then_some((at, kind))
        });
    let (at, kind) = kind?;
    let place: Vec<_> = line[..at]
        .split(':')
        .filter(|part| !is_number(part.trim()))
        .collect();
    let message = &line[at + kind.len()..];
    Some(format!(
        "{}{kind}{}",
        place.join(":"),
        without_addresses(message)
    ))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `f+0x1c` becomes `f+0x`: an offset in an object moves with every edit.
fn without_addresses(message: &str) -> String {
    let mut words = message.split("0x");
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        text.push_str("0x");
        text.push_str(word.trim_start_matches(|char: char| char.is_ascii_hexdigit()));
    }
    text
}

/// Whether a line belongs to the complaint before it: source, carets and notes.
fn goes_on(line: &str) -> bool {
    line.starts_with(' ')
        && !line
            .trim_start()
            .starts_with(|char: char| char.is_ascii_uppercase())
        || line.contains(": note: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &[u8] = b"  CC      mm/a.o\n/src/mm/a.c:10:5: warning: unused variable 'x' [-Wunused-variable]\n   10 | int x;\n      |     ^\n";

    #[test]
    fn a_complaint_at_another_line_is_the_same() {
        let before = parse(BEFORE, "/src");
        let now = parse(
            b"/src/mm/a.c:99:1: warning: unused variable 'x' [-Wunused-variable]\n",
            "/src",
        );
        assert_eq!(new_ones(&before, &now), []);
        assert_eq!(before[0].lines.len(), 3);
    }

    #[test]
    fn another_message_or_a_second_one_is_new() {
        let before = parse(BEFORE, "/src");
        let twice = [BEFORE, BEFORE].concat();
        assert_eq!(new_ones(&before, &parse(&twice, "/src")).len(), 1);
        let other = parse(
            b"/src/mm/a.c:10:5: warning: unused variable 'y' [-Wunused-variable]\n",
            "/src",
        );
        assert_eq!(new_ones(&before, &other).len(), 1);
    }

    #[test]
    fn offsets_in_objects_do_not_count() {
        let old = parse(b"WARNING: modpost: vmlinux: section mismatch in reference: f+0x1c (section: .text) -> g\n", "/src");
        let new = parse(b"WARNING: modpost: vmlinux: section mismatch in reference: f+0x20 (section: .text) -> g\n", "/src");
        assert_eq!(new_ones(&old, &new), []);
    }

    #[test]
    fn a_line_that_only_speaks_of_warnings_is_none() {
        assert_eq!(
            parse(
                b"  CC      lib/warning: no\n  HOSTCC  scripts/x\nall is well\n",
                "/src"
            ),
            []
        );
    }
}
