//! The text that two patches are compared as, and the difference of two such texts.
//!
//! Hides the parsing of patch text and git's choice of what counts: the author, the message, and the diff without line
//! numbers and object ids.
//!
//! The rules are those of git's `range-diff.c` (`read_patches`) on the output of `git log -p`, and of its `pretty.c`
//! (white space and tabs in messages).

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice};
use git2::DiffOptions;
use unicode_width::UnicodeWidthChar;

use super::Patch;
use crate::diff::{self, Driver, unquoted};

/// A patch in git's comparable form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Normal {
    /// All of it.
    pub(super) text: Vec<u8>,
    /// Where the diff begins; 0 for a patch that changes no file (git compares all of it then).
    diff_at: usize,
    /// Lines of the diff, by which the cost of a patch is reckoned.
    pub(super) size: usize,
}

/// The longest label of an `@@` line, in bytes.
const LONGEST_LABEL: usize = 80;
/// Tab stops in messages.
const TAB: usize = 8;

impl Normal {
    /// The text of a patch.
    pub(super) fn of(patch: &Patch) -> Self {
        let mut text = b" ## Metadata ##\nAuthor: ".to_vec();
        text.extend_from_slice(&patch.author);
        text.extend_from_slice(b"\n\n ## Commit message ##\n");
        push_message(&mut text, &patch.message);
        if !patch.notes.is_empty() {
            text.extend_from_slice(b"\n\n ## Notes ##\n");
            push_indented(&mut text, patch.notes.lines().map(ToOwned::to_owned));
        }
        let mut normal = Self {
            text,
            diff_at: 0,
            size: 0,
        };
        normal.push_diff(&patch.diff);
        normal
    }

    /// What is compared to find the same patch: its diff.
    pub(super) fn diff(&self) -> &[u8] {
        &self.text[self.diff_at..]
    }

    fn push_diff(&mut self, diff: &[u8]) {
        let mut lines = diff.split(|&byte| byte == b'\n').peekable();
        let mut name = BString::default();
        while let Some(line) = lines.next() {
            if line.starts_with(b"diff --git ") {
                let mut head = Head::new(line);
                while let Some(line) = lines.next_if(|line| is_head(line)) {
                    head.learn(line);
                }
                self.text.push(b'\n');
                if self.diff_at == 0 {
                    self.diff_at = self.text.len();
                }
                name = head.name().clone();
                self.push_line(&head.title());
            } else if let Some((_, label)) = hunk_line(line) {
                let place = if label.is_empty() {
                    Vec::new()
                } else {
                    [b" ", &name[..], b":"].concat()
                };
                self.push_line(&[b"@@", &place[..], label].concat());
            } else if let Some(names) = line.strip_prefix(b"Binary files ") {
                // Git compares without prefixes.
                let names = names
                    .strip_prefix(b"a/")
                    .unwrap_or(names)
                    .replacen(" and b/", " and ", 1);
                self.push_line(&[b" Binary files ", &names[..]].concat());
            } else if !line.is_empty() {
                let sign: &[u8] = if matches!(line[0], b'+' | b'-' | b' ') {
                    b""
                } else {
                    b" "
                };
                self.push_line(&[sign, line].concat());
            }
        }
    }

    /// A line of the diff; git's strings end at a NUL.
    fn push_line(&mut self, line: &[u8]) {
        let end = line.find_byte(0).unwrap_or(line.len());
        self.text.extend_from_slice(&line[..end]);
        self.text.push(b'\n');
        self.size += 1;
    }
}

/// The two sides of an `@@ -1,2 +3,4 @@ label` line around its second `@@`.
pub(super) fn hunk_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    line.strip_prefix(b"@@ ")?.split_once_str("@@")
}

/// Git's own idea of white space.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Without white space at the end.
pub(super) fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|&byte| !is_space(byte));
    &line[..end.map_or(0, |end| end + 1)]
}

/// A message's first paragraph on one line (git's `format_subject`).
pub(super) fn subject(message: &[u8]) -> BString {
    let lines = message.split(|&byte| byte == b'\n').map(trim_end);
    let first = lines.skip_while(|line| line.is_empty());
    bstr::join(" ", first.take_while(|line| !line.is_empty())).into()
}

fn push_message(text: &mut Vec<u8>, message: &[u8]) {
    let end = message.find_byte(0).unwrap_or(message.len());
    let lines = trim_end(&message[..end])
        .split(|&byte| byte == b'\n')
        .map(trim_end);
    let lines = lines.skip_while(|line| line.is_empty());
    push_indented(text, lines.map(expand_tabs));
}

fn push_indented(text: &mut Vec<u8>, lines: impl Iterator<Item = Vec<u8>>) {
    for line in lines {
        text.extend_from_slice(trim_end(&[b"    ", &line[..]].concat()));
        text.push(b'\n');
    }
}

/// Tabs as blanks, up to where a width cannot be told (git's `strbuf_add_tabexpand`).
fn expand_tabs(line: &[u8]) -> Vec<u8> {
    let mut expanded = Vec::new();
    let mut rest = line;
    while let Some(tab) = rest.find_byte(b'\t')
        && let Some(width) = width(&rest[..tab])
    {
        expanded.extend_from_slice(&rest[..tab]);
        expanded.extend(std::iter::repeat_n(b' ', TAB - width % TAB));
        rest = &rest[tab + 1..];
    }
    expanded.extend_from_slice(rest);
    expanded
}

fn width(text: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(text).ok()?;
    text.chars().map(UnicodeWidthChar::width).sum()
}

/// The lines between `diff --git` and the first `@@`.
#[derive(Debug, Default)]
struct Head {
    /// From the `diff --git` line: a name that is the same on both sides.
    same: BString,
    old: Option<BString>,
    new: Option<BString>,
    old_mode: Option<BString>,
    new_mode: Option<BString>,
    kind: HeadKind,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum HeadKind {
    #[default]
    Modified,
    New,
    Deleted,
    Renamed,
}

/// What begins a line between `diff --git` and the first `@@`.
const HEAD_LINES: [&str; 14] = [
    "old mode ",
    "new mode ",
    "deleted file mode ",
    "new file mode ",
    "copy from ",
    "copy to ",
    "rename from ",
    "rename to ",
    "rename old ",
    "rename new ",
    "similarity index ",
    "dissimilarity index ",
    "index ",
    "--- ",
];

/// Whether a line belongs to the head of a file's diff.
pub(super) fn is_head(line: &[u8]) -> bool {
    line.starts_with(b"+++ ")
        || HEAD_LINES
            .iter()
            .any(|start| line.starts_with(start.as_bytes()))
}

impl Head {
    fn new(line: &[u8]) -> Self {
        Self {
            same: same_name(&line["diff --git ".len()..]).unwrap_or_default(),
            ..Self::default()
        }
    }

    fn learn(&mut self, line: &[u8]) {
        let after = |start: &str| line.strip_prefix(start.as_bytes());
        let mode = |rest: &[u8]| Some(BString::from(trim_end(rest)));
        if let Some(rest) = after("--- ") {
            self.old = side(rest).or(self.old.take());
        } else if let Some(rest) = after("+++ ") {
            self.new = side(rest).or(self.new.take());
        } else if let Some(rest) = after("old mode ") {
            self.old_mode = mode(rest);
        } else if let Some(rest) = after("new mode ") {
            self.new_mode = mode(rest);
        } else if after("new file mode ").is_some() {
            self.kind = HeadKind::New;
        } else if after("deleted file mode ").is_some() {
            self.kind = HeadKind::Deleted;
        } else if let Some(rest) = after("rename from ") {
            self.kind = HeadKind::Renamed;
            self.old = Some(whole_name(rest));
        } else if let Some(rest) = after("rename to ").or(after("copy to ")) {
            self.new = Some(whole_name(rest));
        }
    }

    fn old_name(&self) -> &BString {
        self.old.as_ref().unwrap_or(&self.same)
    }

    fn new_name(&self) -> &BString {
        self.new.as_ref().unwrap_or(&self.same)
    }

    fn name(&self) -> &BString {
        match self.kind {
            HeadKind::Deleted => self.old_name(),
            _ => self.new_name(),
        }
    }

    /// ` ## NAME ##`.
    fn title(&self) -> Vec<u8> {
        let mut title = b" ## ".to_vec();
        if self.kind == HeadKind::Renamed {
            title.extend_from_slice(self.old_name());
            title.extend_from_slice(b" => ");
        }
        title.extend_from_slice(self.name());
        title.extend_from_slice(match self.kind {
            HeadKind::New => b" (new)",
            HeadKind::Deleted => b" (deleted)",
            _ => b"",
        });
        if let (Some(old), Some(new)) = (&self.old_mode, &self.new_mode)
            && old != new
        {
            title.extend_from_slice(format!(" (mode change {old} => {new})").as_bytes());
        }
        title.extend_from_slice(b" ##");
        title
    }
}

/// The name in `a/NAME b/NAME`, both being the same.
fn same_name(names: &[u8]) -> Option<BString> {
    if names.starts_with(b"\"") {
        let (name, _) = unquoted(names)?;
        return Some(without_prefix(name.as_bstr()).to_owned());
    }
    // `a/x b/x`: the blank in the middle divides it.
    let (old, new) = (
        names.get(..names.len() / 2)?,
        names.get(names.len() / 2 + 1..)?,
    );
    let old = without_prefix(old.as_bstr());
    (old == without_prefix(new.as_bstr())).then(|| old.to_owned())
}

/// The name behind `---` or `+++`; `None` for `/dev/null`.
fn side(rest: &[u8]) -> Option<BString> {
    if let Some((name, _)) = unquoted(rest) {
        return Some(without_prefix(name.as_bstr()).to_owned());
    }
    let name = rest
        .split(|&byte| byte == b'\t')
        .next()
        .unwrap_or_default()
        .as_bstr();
    (name != "/dev/null").then(|| without_prefix(name).to_owned())
}

fn whole_name(rest: &[u8]) -> BString {
    unquoted(rest).map_or_else(|| rest.into(), |(name, _)| name)
}

fn without_prefix(name: &BStr) -> &BStr {
    name.split_once_str("/")
        .map_or(name, |(_, name)| name.as_bstr())
}

/// The difference of two patches' texts: `@@` lines without numbers, and which part of the patch it is behind them.
pub(super) fn difference(old: &Normal, new: &Normal) -> Result<Vec<u8>> {
    let found = diff::hunks(&old.text, &new.text, Driver::Plain)?;
    let lines: Vec<&[u8]> = old.text.lines_with_terminator().collect();
    let mut shown = Vec::new();
    for line in found.text.lines_with_terminator() {
        let Some((ranges, _)) = hunk_line(line) else {
            shown.extend_from_slice(line);
            continue;
        };
        let first = first_line(ranges).context("libgit2 wrote no range")?;
        shown.extend_from_slice(b"@@");
        if let Some(label) = lines[..first].iter().rev().find_map(|line| label(line)) {
            shown.push(b' ');
            shown.extend_from_slice(label);
        }
        shown.push(b'\n');
    }
    Ok(shown)
}

/// The first line (from 0) of the old side of `-1,2 +3,4 `.
fn first_line(ranges: &[u8]) -> Option<usize> {
    let old = ranges
        .strip_prefix(b"-")?
        .split(|&byte| byte == b' ')
        .next()?;
    let (start, count) = old.split_once_str(",").unwrap_or((old, b"1"));
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<usize>().ok();
    // A range without lines is named by the line before it.
    Some(number(start)? - usize::from(number(count)? > 0))
}

/// A line of a patch's text that says which part of the patch follows: ` ## NAME ##`, or an `@@` line of the patch
/// itself, which may stand behind one sign.
fn label(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let title = line
        .strip_prefix(b" ## ")
        .and_then(|rest| rest.strip_suffix(b" ##"));
    let hunk = || {
        line.strip_prefix(b"@@ ")
            .or_else(|| line.get(1..)?.strip_prefix(b"@@ "))
    };
    let found = title.or_else(hunk)?;
    let cut = trim_end(&found[..found.len().min(LONGEST_LABEL)]);
    Some(match std::str::from_utf8(cut) {
        Ok(_) => cut,
        Err(error) => &cut[..error.valid_up_to()],
    })
}

/// How many lines the difference of two diffs has, `@@` lines counted: what changing one into the other costs.
pub(super) fn cost(old: &Normal, new: &Normal) -> Result<usize> {
    let mut options = DiffOptions::new();
    options
        .context_lines(3)
        .interhunk_lines(0)
        .indent_heuristic(false)
        .force_text(true);
    let patch = git2::Patch::from_buffers(old.diff(), None, new.diff(), None, Some(&mut options))
        .context("libgit2 cannot diff two buffers")?;
    let mut lines = patch.num_hunks();
    for at in 0..patch.num_hunks() {
        lines += patch.num_lines_in_hunk(at).context("libgit2 lost a hunk")?;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_in_messages_are_blanks_up_to_a_control_character() {
        assert_eq!(expand_tabs(b"a\tb\tc"), b"a       b       c");
        assert_eq!(expand_tabs("世\tb".as_bytes()), "世      b".as_bytes());
        assert_eq!(expand_tabs(b"a\x01\tb"), b"a\x01\tb");
        assert_eq!(expand_tabs(b"\xff\tb"), b"\xff\tb");
    }

    #[test]
    fn names_are_read_from_every_kind_of_head() {
        let name = |lines: &[&str]| {
            let mut head = Head::new(lines[0].as_bytes());
            lines[1..]
                .iter()
                .for_each(|line| head.learn(line.as_bytes()));
            BString::from(head.title())
        };
        let title = name(&[
            "diff --git a/a b b/a b",
            "old mode 100644",
            "new mode 100755",
        ]);
        assert_eq!(title, " ## a b (mode change 100644 => 100755) ##");
        let title = name(&[
            "diff --git \"a/\\303\\274\\n\" \"b/\\303\\274\\n\"",
            "new file mode 100644",
        ]);
        assert_eq!(title, " ## ü\n (new) ##");
        let title = name(&[
            "diff --git a/x b/y",
            "rename from x",
            "rename to y",
            "--- a/x",
            "+++ b/y",
        ]);
        assert_eq!(title, " ## x => y ##");
        let title = name(&[
            "diff --git a/x b/x",
            "deleted file mode 100644",
            "--- a/x",
            "+++ /dev/null",
        ]);
        assert_eq!(title, " ## x (deleted) ##");
    }
}
