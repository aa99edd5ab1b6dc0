//! The diff in the second half of a mail.
//!
//! Hides where it begins and ends: hunks are counted, and one that is damaged is refused.

use anyhow::Result;
use bstr::{BStr, ByteSlice};

use crate::error::Refusal;
use crate::rangediff::text::{hunk_line, is_head};

/// What a line of a mail's second half is.
enum State {
    Outside,
    Head,
    /// So many lines of the hunk are left on the old and on the new side.
    Hunk(usize, usize),
}

/// The diff in a mail's second half, and everything else in it. Hunks are counted, so that a signature is not taken for
/// a removed line.
pub(super) fn diff(rest: &[u8], what: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let damaged = |why: &str| {
        Refusal::usage(format!("{what} holds a patch that is damaged: {why}"))
            .hint("get the mail again as it was sent; `git am` does not take it either")
    };
    let (mut diff, mut others) = (Vec::new(), Vec::new());
    let mut state = State::Outside;
    for line in rest.lines_with_terminator() {
        if let State::Hunk(old @ 1.., new) | State::Hunk(old, new @ 1..) = state {
            let (less_old, less_new) = match line[0] {
                b' ' | b'\n' => (1, 1),
                b'-' => (1, 0),
                b'+' => (0, 1),
                b'\\' => (0, 0),
                _ => return Err(damaged("a hunk is cut off").into()),
            };
            let left = old.checked_sub(less_old).zip(new.checked_sub(less_new));
            let (old, new) =
                left.ok_or_else(|| damaged("a hunk is longer than its `@@` line says"))?;
            if line == b"\n" {
                diff.push(b' ');
            }
            diff.extend_from_slice(line);
            state = State::Hunk(old, new);
            continue;
        }
        let is_hunk = line.starts_with(b"@@ ") && !matches!(state, State::Outside);
        if line.starts_with(b"diff --git ") {
            state = State::Head;
        } else if is_hunk {
            let (old, new) = hunk_size(line).ok_or_else(|| damaged("an `@@` line is wrong"))?;
            state = State::Hunk(old, new);
        } else if matches!(state, State::Head) && is_binary(line) {
            return Err(Refusal::usage(format!("{what} changes a binary file"))
                .hint("only text can be compared; leave that patch out")
                .into());
        } else if !(matches!(state, State::Head) && is_head(line)
            || matches!(state, State::Hunk(..)) && line[0] == b'\\')
        {
            if line.starts_with(b"--- a/") {
                return Err(damaged("it has no `diff --git` line").into());
            }
            state = State::Outside;
            others.extend_from_slice(line);
            continue;
        }
        diff.extend_from_slice(line);
    }
    if let State::Hunk(1.., _) | State::Hunk(_, 1..) = state {
        return Err(damaged("its end is missing").into());
    }
    if !diff.is_empty() && !diff.ends_with(b"\n") {
        diff.push(b'\n');
    }
    Ok((diff, others))
}

fn is_binary(line: &[u8]) -> bool {
    line.starts_with(b"GIT binary patch") || line.starts_with(b"Binary files ")
}

/// The lines on each side of a hunk, from its `@@ -1,2 +3,4 @@`.
fn hunk_size(line: &[u8]) -> Option<(usize, usize)> {
    let (ranges, _) = hunk_line(line)?;
    let (old, new) = ranges.trim().split_once_str(" ")?;
    let count = |range: &[u8], sign: &[u8]| {
        let range = range.strip_prefix(sign)?.as_bstr();
        let count = range
            .split_once_str(",")
            .map_or(BStr::new("1"), |(_, count)| count.as_bstr());
        count.to_str().ok()?.parse().ok()
    };
    Some((count(old, b"-")?, count(new, b"+")?))
}
