//! A commit message or cover letter as the rules read it: subject, text and tags.
//!
//! Hides which lines are tags.

use std::borrow::Cow;

use bstr::ByteSlice;

use super::super::{Cover, Patch, identity};
use crate::ui::shown_text;

/// A message, taken apart.
pub(super) struct Letter<'a> {
    /// The recipe's name of the patch; `None` for the cover letter.
    patch: Option<&'a str>,
    /// `Name <address>`; `None` for the cover letter.
    pub(super) author: Option<String>,
    /// The text from the subject on.
    text: Cow<'a, str>,
    /// Where the tags begin: a line number from 0, or the end.
    tags_from: usize,
}

/// A trailer of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    /// Its line, from 1.
    pub(super) line: usize,
    /// What stands before the colon.
    pub(super) name: &'a str,
    /// What stands after it.
    pub(super) value: &'a str,
}

impl<'a> Letter<'a> {
    pub(super) fn of_patch(patch: &'a Patch) -> Self {
        let (name, email) = identity(&patch.commit.author);
        let author = Some(format!("{name} <{email}>"));
        let text = patch.commit.message.to_str_lossy();
        Self::new(Some(&patch.name), author, text)
    }

    pub(super) fn of_cover(cover: &'a Cover) -> Self {
        let text = format!("{}\n\n{}", cover.subject, cover.blurb);
        Self::new(None, None, text.into())
    }

    fn new(patch: Option<&'a str>, author: Option<String>, text: Cow<'a, str>) -> Self {
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let start = lines.iter().rposition(|line| line.is_empty());
        let tags_from = start
            .map(|blank| blank + 1)
            .filter(|&start| lines[start..].iter().any(|line| tag(line).is_some()))
            .unwrap_or(lines.len());
        Self {
            patch,
            author,
            text,
            tags_from,
        }
    }

    /// What a finding calls it.
    pub(super) fn name(&self) -> String {
        self.patch.map_or_else(
            || "cover letter".to_owned(),
            |name| format!("patch `{}`", shown_text(name.as_bytes())),
        )
    }

    pub(super) fn subject(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// The subject without what stands before the last `: `.
    pub(super) fn summary(&self) -> &str {
        let subject = self.subject();
        subject
            .rsplit_once(": ")
            .map_or(subject, |(_, summary)| summary)
    }

    /// The lines between subject and tags, with their numbers from 1.
    pub(super) fn body(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().take(self.tags_from).skip(1);
        lines.map(|(at, line)| (at + 1, line))
    }

    /// The tags, in order.
    pub(super) fn tags(&self) -> impl Iterator<Item = Tag<'_>> {
        let lines = self.text.lines().enumerate().skip(self.tags_from);
        lines.filter_map(|(at, line)| {
            let (name, value) = tag(line)?;
            let line = at + 1;
            Some(Tag { line, name, value })
        })
    }
}

impl Tag<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// A line that is a tag: `Word-word: value`, of a kind that kernel messages have.
fn tag(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(": ")?;
    let lower = name.to_ascii_lowercase();
    let known = [
        "fixes",
        "closes",
        "link",
        "cc",
        "bugzilla",
        "change-id",
        "based-on",
    ];
    let is_word = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_tag = known.contains(&lower.as_str()) || lower.ends_with("-by");
    (is_word && is_tag).then_some((name, value.trim()))
}
