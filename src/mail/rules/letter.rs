//! A commit message or cover letter as the rules read it: subject, text and tags.
//!
//! Hides that tags are git's trailers.

use std::borrow::Cow;

use bstr::ByteSlice;

use super::super::{Cover, Patch, identity};
use crate::trailers;
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
        let block = trailers::block(text.as_bytes());
        let tags_from = text[..block.start].lines().count();
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

    /// The tags, in order: git's trailers.
    pub(super) fn tags(&self) -> impl Iterator<Item = Tag<'_>> {
        let all = trailers::trailers(self.text.as_bytes()).into_iter();
        all.filter_map(|trailer| {
            Some(Tag {
                line: trailer.line,
                name: trailer.key.to_str().ok()?,
                value: trailer.value.to_str().ok()?,
            })
        })
    }
}

impl Tag<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}
