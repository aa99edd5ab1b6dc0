//! The diffstat and the summary lines of a patch mail, as git writes them.
//!
//! Hides how names and bars share the 72 columns.
//!
//! The rules are those of git's `diff.c` (`show_stats`, `show_shortstats`, `diff_summary`).

use bstr::BString;

use crate::diff::{Change, FileDiff, quoted};

/// The width git gives a diffstat in a mail.
const WIDTH: usize = 72;

/// The columns of one diffstat.
struct Columns {
    name: usize,
    count: usize,
    bar: usize,
    /// The most lines changed in one file.
    most: usize,
}

/// The lines of `git diff --stat` at mail width, the total last. Nothing where nothing differs.
#[must_use]
pub fn stat(files: &[FileDiff]) -> Vec<u8> {
    if files.is_empty() {
        return Vec::new();
    }
    let names: Vec<BString> = files
        .iter()
        .map(|file| quoted(file.path.as_ref()))
        .collect();
    let columns = Columns::fit(&names, files);
    let mut text = Vec::new();
    for (name, file) in names.iter().zip(files) {
        columns.push_line(&mut text, name, file);
    }
    push_total(&mut text, files);
    text
}

/// The lines of `git diff --summary`: files made and removed, and modes changed.
#[must_use]
pub fn summary(files: &[FileDiff]) -> Vec<u8> {
    let mut text = Vec::new();
    for file in files {
        let what = match file.change {
            Change::Added { mode } => format!(" create mode {mode:06o} "),
            Change::Deleted { mode } => format!(" delete mode {mode:06o} "),
            Change::Modified { old_mode, new_mode } if old_mode != new_mode => {
                format!(" mode change {old_mode:06o} => {new_mode:06o} ")
            }
            Change::Modified { .. } => continue,
        };
        text.extend_from_slice(what.as_bytes());
        text.extend_from_slice(&quoted(file.path.as_ref()));
        text.push(b'\n');
    }
    text
}

impl Columns {
    /// Shares the width: what both want if it fits, else bars get 3/8 of it at most.
    fn fit(names: &[BString], files: &[FileDiff]) -> Self {
        let most = files.iter().map(changed).max().unwrap_or(0);
        let count = most.to_string().len();
        // At least 10 columns for names and 6 for bars.
        let width = WIDTH.max(16 + 6 + count);
        let mut name = names.iter().map(|name| name.len()).max().unwrap_or(0);
        let mut bar = most;
        if name + count + 6 + bar > width {
            bar = bar.min((width * 3 / 8).saturating_sub(count + 6).max(6));
            let left = width - count - 6;
            if name > left - bar {
                name = left - bar;
            } else {
                bar = left - name;
            }
        }
        Self {
            name,
            count,
            bar,
            most,
        }
    }

    fn push_line(&self, text: &mut Vec<u8>, name: &[u8], file: &FileDiff) {
        let (mark, name, room) = self.shorten(name);
        let padding = " ".repeat(room.saturating_sub(name.len()));
        let count = changed(file);
        text.extend_from_slice(format!(" {mark}").as_bytes());
        text.extend_from_slice(name);
        let gap = if count > 0 { " " } else { "" };
        let (plus, minus) = self.bars(file);
        let rest = format!(
            "{padding} | {count:>width$}{gap}{}{}\n",
            "+".repeat(plus),
            "-".repeat(minus),
            width = self.count
        );
        text.extend_from_slice(rest.as_bytes());
    }

    /// A name that is too long loses its head, up to the next slash.
    fn shorten<'a>(&self, name: &'a [u8]) -> (&'static str, &'a [u8], usize) {
        if name.len() <= self.name {
            return ("", name, self.name);
        }
        let room = self.name - 3;
        let tail = &name[name.len() - room..];
        let slash = tail.iter().position(|&byte| byte == b'/').unwrap_or(0);
        ("...", &tail[slash..], room)
    }

    /// How many `+` and `-` a file gets: the sum and the smaller side are scaled, the larger is the rest.
    fn bars(&self, file: &FileDiff) -> (usize, usize) {
        let (plus, minus) = (file.insertions, file.deletions);
        if self.bar > self.most {
            return (plus, minus);
        }
        let mut total = self.scale(plus + minus);
        if total < 2 && plus > 0 && minus > 0 {
            total = 2;
        }
        if plus < minus {
            let plus = self.scale(plus);
            (plus, total - plus)
        } else {
            let minus = self.scale(minus);
            (total - minus, minus)
        }
    }

    /// No mark for nothing, at least one for anything (git's `scale_linear`).
    fn scale(&self, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        1 + count * (self.bar - 1) / self.most
    }
}

fn changed(file: &FileDiff) -> usize {
    file.insertions + file.deletions
}

fn push_total(text: &mut Vec<u8>, files: &[FileDiff]) {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let plus: usize = files.iter().map(|file| file.insertions).sum();
    let minus: usize = files.iter().map(|file| file.deletions).sum();
    let files = format!(" {} file{} changed", files.len(), plural(files.len()));
    text.extend_from_slice(files.as_bytes());
    if plus > 0 || minus == 0 {
        let count = format!(", {plus} insertion{}(+)", plural(plus));
        text.extend_from_slice(count.as_bytes());
    }
    if minus > 0 || plus == 0 {
        let count = format!(", {minus} deletion{}(-)", plural(minus));
        text.extend_from_slice(count.as_bytes());
    }
    text.push(b'\n');
}
