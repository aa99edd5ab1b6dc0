//! The diff in the second half of a mail.
//!
//! Hides where it begins and ends, and its forms: git's own, git's without or with other prefixes, and that of `diff -u` as quilt writes it.
//! Hunks are counted, and one that is damaged is refused, as is all that `git apply` does not take. The names are those that git finds.

use anyhow::Result;
use bstr::{BStr, BString, ByteSlice};

use crate::diff::quoted_with;
use crate::error::Refusal;
use crate::exec::Task;
use crate::rangediff::text::{hunk_line, is_head, trim_end};
use crate::ui::shown_text;

/// What a line of a mail's second half is.
enum State {
    Outside,
    Head,
    /// So many lines of the hunk are left on the old and on the new side.
    Hunk(usize, usize),
}

/// The diff of one file.
#[derive(Default)]
struct Section<'a> {
    /// Its `diff --git` line, if it has one.
    git: Option<&'a [u8]>,
    /// The lines from there to the first hunk.
    head: Vec<&'a [u8]>,
    hunks: Vec<u8>,
}

/// The diff in a mail's second half, and everything else in it. Hunks are counted, so that a signature is not taken for
/// a removed line.
pub(super) fn diff(rest: &[u8], what: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let (sections, others) = sections(rest, what)?;
    let mut diff = Vec::new();
    if sections.is_empty() {
        return Ok((diff, others));
    }
    let has_prefixes = !sections.iter().any(Section::is_bare);
    let names = names(rest, has_prefixes, what)?;
    if names.len() != sections.len() {
        return Err(damaged(what, "git finds other files in it").into());
    }
    for (section, name) in sections.iter().zip(&names) {
        section.write(name.as_bstr(), &mut diff);
    }
    if !diff.ends_with(b"\n") {
        diff.push(b'\n');
    }
    Ok((diff, others))
}

fn damaged(what: &str, why: &str) -> Refusal {
    Refusal::usage(format!("{what} holds a patch that is damaged: {why}"))
        .hint("get the mail again as it was sent; `git am` does not take it either")
}

fn sections<'a>(rest: &'a [u8], what: &str) -> Result<(Vec<Section<'a>>, Vec<u8>)> {
    let (mut sections, mut others): (Vec<Section<'a>>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut state = State::Outside;
    let lines: Vec<_> = rest.lines_with_terminator().collect();
    for (at, &line) in lines.iter().enumerate() {
        if let (State::Hunk(old @ 1.., new) | State::Hunk(old, new @ 1..), Some(section)) =
            (&state, sections.last_mut())
        {
            let (less_old, less_new) = match line[0] {
                b' ' | b'\n' => (1, 1),
                b'-' => (1, 0),
                b'+' => (0, 1),
                b'\\' => (0, 0),
                _ => return Err(damaged(what, "a hunk is cut off").into()),
            };
            let left = old.checked_sub(less_old).zip(new.checked_sub(less_new));
            let (old, new) =
                left.ok_or_else(|| damaged(what, "a hunk is longer than its `@@` line says"))?;
            if line == b"\n" {
                section.hunks.push(b' ');
            }
            section.hunks.extend_from_slice(line);
            state = State::Hunk(old, new);
            continue;
        }
        let is_inside = !matches!(state, State::Outside);
        if line.starts_with(b"diff --git ") {
            sections.push(Section::new(Some(line)));
            state = State::Head;
        } else if !matches!(state, State::Head) && starts_plain(&lines[at..]) {
            sections.push(Section::new(None));
            state = State::Head;
        }
        let Some(section) = sections
            .last_mut()
            .filter(|_| is_inside || matches!(state, State::Head))
        else {
            others.extend_from_slice(line);
            continue;
        };
        if line.starts_with(b"@@ ") {
            let (old, new) =
                hunk_size(line).ok_or_else(|| damaged(what, "an `@@` line is wrong"))?;
            section.hunks.extend_from_slice(line);
            state = State::Hunk(old, new);
        } else if matches!(state, State::Head) && is_binary(line) {
            return Err(Refusal::usage(format!("{what} changes a binary file"))
                .hint("only text can be compared; leave that patch out")
                .into());
        } else if matches!(state, State::Head)
            && (is_head(line) || line.starts_with(b"diff --git "))
        {
            section.head.push(line);
        } else if matches!(state, State::Hunk(..)) && line[0] == b'\\' {
            section.hunks.extend_from_slice(line);
        } else {
            state = State::Outside;
            others.extend_from_slice(line);
        }
    }
    if let State::Hunk(1.., _) | State::Hunk(_, 1..) = state {
        return Err(damaged(what, "its end is missing").into());
    }
    Ok((sections, others))
}

/// Whether lines begin the diff of a file without a line of git's (`diff -u`, quilt).
fn starts_plain(lines: &[&[u8]]) -> bool {
    let [old, new, hunk, ..] = lines else {
        return false;
    };
    old.starts_with(b"--- ") && new.starts_with(b"+++ ") && hunk.starts_with(b"@@ -")
}

impl<'a> Section<'a> {
    fn new(git: Option<&'a [u8]>) -> Self {
        Self {
            git,
            ..Self::default()
        }
    }

    /// Whether git wrote it without the prefixes `a/` and `b/`: both names are the same.
    fn is_bare(&self) -> bool {
        let names = self.git.and_then(|line| line.strip_prefix(b"diff --git "));
        let names = names.map(trim_end).unwrap_or_default();
        let half = names.len() / 2;
        names.len() % 2 == 1 && names[half] == b' ' && names[..half] == names[half + 1..]
    }

    /// Writes it as git does where nobody has configured anything.
    fn write(&self, name: &BStr, diff: &mut Vec<u8>) {
        let is_usual = self.git.is_some_and(|line| {
            let names = &line["diff --git ".len()..];
            names.starts_with(b"a/") || names.starts_with(b"\"a/")
        });
        if is_usual && !self.is_bare() {
            diff.extend(self.head.concat());
        } else {
            self.write_head(name, diff);
        }
        diff.extend_from_slice(&self.hunks);
    }

    fn write_head(&self, name: &BStr, diff: &mut Vec<u8>) {
        let [old, new] = ["a/", "b/"].map(|prefix| quoted_with(prefix, name));
        let nothing = BString::from("/dev/null");
        // A range of no lines in the first hunk of a plain diff says the same as the name (git's `parse_single_patch`).
        let ranges = hunk_line(&self.hunks).filter(|_| self.git.is_none());
        let is_nothing = |sign: &str, range: &str| {
            let line = format!("{sign} /dev/null");
            self.head.iter().any(|it| it.starts_with(line.as_bytes()))
                || ranges.is_some_and(|(it, _)| it.contains_str(range))
        };
        let is_new = is_nothing("---", "-0,0 ");
        let is_gone = is_nothing("+++", "+0,0 ");
        let mut line = |parts: &[&[u8]]| {
            diff.extend(parts.concat());
            diff.push(b'\n');
        };
        line(&[b"diff --git ", &old, b" ", &new]);
        if self.git.is_none() && is_new {
            line(&[b"new file mode 100644"]);
        } else if self.git.is_none() && is_gone {
            line(&[b"deleted file mode 100644"]);
        }
        for kept in &self.head {
            let starts = [&b"diff --git "[..], b"--- ", b"+++ "];
            if !starts.iter().any(|start| kept.starts_with(start)) {
                line(&[trim_end(kept)]);
            }
        }
        if !self.hunks.is_empty() {
            line(&[b"--- ", if is_new { &nothing } else { &old }]);
            line(&[b"+++ ", if is_gone { &nothing } else { &new }]);
        }
    }
}

/// The names of the files that a patch changes, in its order, as `git am` finds them.
fn names(rest: &[u8], has_prefixes: bool, what: &str) -> Result<Vec<BString>> {
    let mut task = Task::git_alone().args(["apply", "--numstat", "-z"]);
    if !has_prefixes {
        task = task.arg("-p0");
    }
    let ran = task.input(rest).run()?;
    if !ran.exit.success() {
        let said = ran.stderr.lines().map(shown_text).collect();
        return Err(damaged(what, "git does not read it").details(said).into());
    }
    let fields = ran.stdout.split_str("\0");
    let names = fields.filter_map(|field| field.splitn_str(3, "\t").nth(2));
    Ok(names.map(BString::from).collect())
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
