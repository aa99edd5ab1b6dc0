//! Reading a mail as `git am` does.
//!
//! Hides MIME, character sets, encoded words and headers in the text: `git mailinfo` reads them, so that nobody has to be as wrong as git is
//! where it is. What a charset's name means is the machine's `iconv`, as it is for git.

use std::fs;

use anyhow::{Context, Result};
use bstr::{BString, ByteSlice};
use mailparse::MailHeaderMap;

use super::mbox::commit_id;
use crate::error::Refusal;
use crate::exec::Task;
use crate::temporary;
use crate::ui::shown_text;

/// A mail, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The author's name; git takes the address where there is none.
    pub name: BString,
    /// The author's address.
    pub email: BString,
    /// The header's own subject: what its brackets say of a series.
    pub header: String,
    /// The subject of the commit: without brackets, and from the text where that has one.
    pub subject: BString,
    /// The text below it, up to the `---` or the first line of a diff.
    pub message: Vec<u8>,
    /// From there on.
    pub rest: Vec<u8>,
    /// The commit that the line of an mbox in front of it names.
    pub commit_id: Option<String>,
}

impl Received {
    /// Reads a mail; `what` is what messages call it. A line of an mbox in front of it does not matter.
    pub fn read(mail: &[u8], what: &str) -> Result<Self> {
        let unread = || {
            Refusal::usage(format!("{what} is no mail"))
                .hint("a patch file has `From:` and `Subject:` lines in front; `git format-patch` writes them")
        };
        // What `git mailsplit` does on the way to `git mailinfo`.
        let mail = mail.replace("\r\n", "\n");
        if header(&mail, "From").is_none() {
            return Err(unread().into());
        }
        let place = temporary::directory()?;
        let [message, rest] = ["message", "rest"].map(|name| place.path().join(name));
        let task = Task::git_alone().arg("mailinfo").args([&message, &rest]);
        let ran = task.input(mail.clone()).run()?;
        if !ran.exit.success() {
            let said = ran.stderr.lines().map(shown_text).collect();
            let refusal = Refusal::usage(format!("git cannot read {what}"));
            return Err(refusal.details(said).hint("`git am` does not take it either; get the mail again, or correct its `charset`").into());
        }
        let field = |name: &str| -> BString {
            let mut lines = ran.stdout.lines();
            let found = lines.find_map(|line| line.strip_prefix(name.as_bytes()));
            found.unwrap_or_default().into()
        };
        let written = |file| fs::read(file).with_context(|| temporary::not_written(place.path()));
        let (name, email, subject) = (field("Author: "), field("Email: "), field("Subject: "));
        // A subject may stand in the text alone.
        if email.is_empty() || subject.is_empty() {
            return Err(unread().into());
        }
        Ok(Self {
            name: if name.is_empty() { email.clone() } else { name },
            email,
            header: header(&mail, "Subject").unwrap_or_default(),
            subject,
            message: written(&message)?,
            rest: written(&rest)?,
            commit_id: commit_id(&mail),
        })
    }
}

/// What the brackets in front of a subject say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// Which version.
    pub version: Option<u32>,
    /// Which patch of how many.
    pub number: Option<(usize, usize)>,
    /// Whether it is an answer: `Re:` in front of the brackets. Behind them it is a patch's own, though git takes it away.
    pub is_answer: bool,
}

impl Tag {
    /// What stands in front of a subject's text (git's `cleanup_subject`).
    #[must_use]
    pub fn of(subject: &str) -> Self {
        let mut tag = Self::default();
        let mut rest = subject.trim();
        let mut behind = false;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ':']);
            if rest
                .get(..3)
                .is_some_and(|start| start.eq_ignore_ascii_case("re:"))
                && rest.len() > 3
            {
                tag.is_answer |= !behind;
                rest = &rest[3..];
            } else if let Some((words, after)) =
                rest.strip_prefix('[').and_then(|it| it.split_once(']'))
            {
                tag.learn(words);
                behind = true;
                rest = after;
            } else {
                return tag;
            }
        }
    }

    fn learn(&mut self, words: &str) {
        for word in words.split([' ', ',', '\t']) {
            let numbers = word.split_once('/');
            if let Some((number, total)) = numbers
                && let (Ok(number), Ok(total)) = (number.parse(), total.parse())
            {
                self.number = Some((number, total));
            } else if let Some(version) = word.strip_prefix(['v', 'V'])
                && let Ok(version) = version.parse()
            {
                self.version = Some(version);
            }
        }
    }
}

/// The first line of a header, whatever is written behind it.
fn header(mail: &[u8], name: &str) -> Option<String> {
    let mail = match mail.strip_prefix(b"From ") {
        Some(rest) => rest.split_once_str("\n").map_or(&b""[..], |(_, mail)| mail),
        None => mail,
    };
    let (headers, _) = mailparse::parse_headers(mail).ok()?;
    headers.get_first_value(name)
}
