//! The mails of a series: a cover letter and its patches, in the bytes of `git format-patch`.
//!
//! Hides headers, threading, file names and where each line of a mail goes.
//!
//! Equal to `git -c core.abbrev=12 format-patch --no-renames --cover-letter --base=BASE` with the
//! same options, message ids aside. Two things differ on purpose: a cover letter whose own text is
//! not ASCII says so in its headers (git looks at the commits only), and no mailmap is applied.

mod header;
pub mod inbox;
mod mailbox;
mod mbox;
mod received;
pub mod rules;
mod survive;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use bstr::ByteSlice;

use crate::diff::FileDiff;
use crate::diffstat;
use crate::digest::digest;
use crate::error::Refusal;
use crate::repo::{Commit, ObjectId, Signature};

pub use mailbox::Mailbox;
pub use received::{Received, Tag};
pub use survive::damage;

/// Whether the mails of a series are tied together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threading {
    /// No message ids; whatever sends the mails makes them.
    #[default]
    None,
    /// Stable message ids, and every patch answers the first mail.
    Shallow,
}

/// What a series is known by over all its versions: `date-topic-hash`, as b4 has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeId {
    /// `YYYYMMDD-topic`.
    stem: String,
    /// Twelve hexadecimal digits.
    hash: String,
}

/// How mails are made from patches.
#[derive(Debug, Clone)]
pub struct Options {
    /// `Some(n)`: file names begin with `vN-` and subjects say `PATCH vN`; `None`: neither.
    pub version: Option<u32>,
    /// What stands in the bracket before the version: `PATCH`, `RFC PATCH`, `PATCH RESEND` ...
    pub prefix: String,
    /// Who sends the mails; `None`: each author. An author who is not the sender stands in the body.
    pub sender: Option<Mailbox>,
    /// Recipients.
    pub to: Vec<Mailbox>,
    /// Copies.
    pub cc: Vec<Mailbox>,
    /// Message ids or none; [`Threading::Shallow`] needs a change id.
    pub threading: Threading,
    /// The base, where others have that commit.
    pub base_commit: Option<ObjectId>,
    /// The tree of the base: mails for different bases are different mails.
    pub base_tree: Option<ObjectId>,
    /// What the series is known by over all its versions.
    pub change_id: Option<ChangeId>,
    /// The text under `-- `.
    pub signature: String,
    /// Who made the mails: which rules apply to them.
    pub maker: Maker,
}

/// Who made mails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maker {
    /// Git, of commits: the messages are a person's, and nothing else is.
    Git,
    /// A person.
    Person,
    /// A recipe.
    Recipe,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: None,
            prefix: "PATCH".to_owned(),
            sender: None,
            to: Vec::new(),
            cc: Vec::new(),
            threading: Threading::None,
            base_commit: None,
            base_tree: None,
            change_id: None,
            signature: concat!("reroll ", env!("CARGO_PKG_VERSION")).to_owned(),
            maker: Maker::Recipe,
        }
    }
}

/// One patch of a series.
#[derive(Debug, Clone)]
pub struct Patch {
    /// What messages call it: the recipe's name for it.
    pub name: String,
    /// Its commit.
    pub commit: Commit,
    /// What it changes.
    pub files: Vec<FileDiff>,
    /// Text below the `---`, which no commit keeps: what changed since the last version.
    pub notes: String,
}

/// The cover letter.
#[derive(Debug, Clone)]
pub struct Cover {
    /// Its subject, without the bracket.
    pub subject: String,
    /// Its text.
    pub blurb: String,
    /// What the whole series changes.
    pub files: Vec<FileDiff>,
    /// Text below a `---` after the blurb: what changed since the last version.
    pub notes: String,
}

/// A whole series as it would be sent.
#[derive(Debug, Clone)]
pub struct Letters {
    /// The cover letter, if there is one.
    pub cover: Option<Cover>,
    /// The patches, in order.
    pub patches: Vec<Patch>,
    /// How the mails are made.
    pub options: Options,
}

/// The name of a patch file, as `git format-patch` gives it.
#[must_use]
pub fn file_name(prefix: &str, number: usize, subject: &str) -> String {
    let mut name = format!("{prefix}{number:04}-{}", header::slug(subject));
    name.truncate(NAME_LENGTH);
    name + ".patch"
}

impl Letters {
    /// The mails, the cover letter first; see [`compose`].
    pub fn compose(&self) -> Result<Vec<Mail>> {
        compose(self.cover.as_ref(), &self.patches, &self.options)
    }
}

/// A mail, ready to be written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The file's name, as git names it.
    pub file_name: String,
    /// With its angle brackets; `None` without threading.
    pub message_id: Option<String>,
    /// The whole file.
    pub bytes: Vec<u8>,
}

/// File names are cut to this, `.patch` aside (git's `format.filenameMaxLength`, less suffix and NUL).
const NAME_LENGTH: usize = 64 - ".patch".len() - 1;

/// The mails of a series, the cover letter first. What git would damage on the way is refused (exit 2).
pub fn compose(cover: Option<&Cover>, patches: &[Patch], options: &Options) -> Result<Vec<Mail>> {
    survive::refuse(cover, patches, options)?;
    let series = Series {
        cover,
        patches,
        options,
        stem: message_stem(patches, options)?,
    };
    let mut mails = Vec::new();
    if let Some(cover) = cover {
        mails.push(series.cover_mail(cover)?);
    }
    for (at, patch) in patches.iter().enumerate() {
        mails.push(series.patch_mail(at + 1, patch)?);
    }
    Ok(mails)
}

/// One mbox of all mails, as `git format-patch --stdout` writes: one more blank line between two. No line needs a
/// `>`: mails with a `From ` line in their text are refused by [`compose`].
#[must_use]
pub fn mbox(mails: &[Mail]) -> Vec<u8> {
    let mails: Vec<&[u8]> = mails.iter().map(|mail| &mail.bytes[..]).collect();
    mails.join(&b'\n')
}

impl ChangeId {
    /// Reads `20261130-topic-0123456789ab`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            let shown = crate::ui::shown_text(text.as_bytes());
            Refusal::usage(format!("`{shown}` is no change id"))
                .hint("it is a date, a topic and twelve hexadecimal digits: `20261130-topic-0123456789ab`")
        };
        let (stem, hash) = text.rsplit_once('-').ok_or_else(wrong)?;
        let (date, topic) = stem.split_once('-').ok_or_else(wrong)?;
        let is_date = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
        let is_hash = hash.len() == 12 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_topic = !topic.is_empty()
            && topic
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if !(is_date && is_topic && is_hash) {
            return Err(wrong().into());
        }
        Ok(Self {
            stem: stem.to_owned(),
            hash: hash.to_owned(),
        })
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stem, self.hash)
    }
}

/// Digits in a message id that tell prefixes and bases from each other.
const KIND_DIGITS: usize = 8;

/// The parts of a message id around the mail's number: they hold no time of day, so that a second run does not
/// make a second thread.
struct MessageStem {
    before: String,
    after: String,
}

fn message_stem(patches: &[Patch], options: &Options) -> Result<Option<MessageStem>> {
    if options.threading == Threading::None {
        return Ok(None);
    }
    let change_id = options.change_id.as_ref().ok_or_else(|| {
        Refusal::usage("threading needs a change id, which message ids are made from")
            .hint("give the series a change id, or leave message ids to what sends the mails")
    })?;
    let ours = options.sender.as_ref().map(|sender| sender.email.clone());
    let theirs = || {
        patches
            .last()
            .map(|it| it.commit.committer.email.to_string())
    };
    let email = ours.or_else(theirs).unwrap_or_default();
    let domain = email
        .rsplit_once('@')
        .map_or("localhost", |(_, domain)| domain);
    // Lists drop a mail whose id they have seen, so what is sent again, as another kind of series, or for another base has ids of its own.
    let base = options.base_tree.map(|id| id.to_string());
    let parts = [options.prefix.clone(), base.unwrap_or_default()];
    let kind = &digest(parts.map(String::into_bytes))[..KIND_DIGITS];
    Ok(Some(MessageStem {
        before: format!("{}-v{}", change_id.stem, options.version.unwrap_or(1)),
        after: format!("{}-{kind}@{domain}", change_id.hash),
    }))
}

/// What every mail of a series needs to know.
struct Series<'a> {
    cover: Option<&'a Cover>,
    patches: &'a [Patch],
    options: &'a Options,
    stem: Option<MessageStem>,
}

/// The parts of one mail that are not the same in all.
struct Letter<'a> {
    number: usize,
    /// The commit in the `From` line of the mbox.
    commit: &'a Commit,
    from: (String, String),
    when: &'a Signature,
    subject: &'a str,
    /// Whether the text is more than ASCII.
    is_wide: bool,
}

impl Series<'_> {
    fn cover_mail(&self, cover: &Cover) -> Result<Mail> {
        let Some(last) = self.patches.last() else {
            return Err(Refusal::usage("a series without a patch has no cover letter").into());
        };
        let committer = &last.commit.committer;
        let text = [&cover.subject, &cover.blurb, &cover.notes];
        let letter = Letter {
            number: 0,
            commit: &last.commit,
            from: self.sender().unwrap_or_else(|| identity(committer)),
            when: committer,
            subject: &cover.subject,
            is_wide: self.patches.iter().any(|patch| !is_ascii(&patch.commit))
                || text.iter().any(|text| !text.is_ascii()),
        };
        let mut bytes = self.headers(&letter)?;
        push_paragraph(&mut bytes, &cover.blurb);
        if !cover.notes.is_empty() {
            bytes.extend_from_slice(b"---\n");
            push_paragraph(&mut bytes, &cover.notes);
        }
        bytes.extend_from_slice(self.shortlog().as_bytes());
        bytes.extend(diffstat::stat(&cover.files));
        bytes.extend(diffstat::summary(&cover.files));
        bytes.push(b'\n');
        self.push_end(&mut bytes, true);
        let prefix = self.file_prefix();
        Ok(Mail {
            file_name: format!("{prefix}0000-cover-letter.patch"),
            message_id: self.message_id(0),
            bytes,
        })
    }

    fn patch_mail(&self, number: usize, patch: &Patch) -> Result<Mail> {
        let author = identity(&patch.commit.author);
        let from = self.sender().unwrap_or_else(|| author.clone());
        let in_body = if from == author {
            String::new()
        } else {
            format!("From: {} <{}>\n\n", author.0, author.1)
        };
        let message = patch.commit.message.to_str_lossy();
        let (subject, body) = split_message(&message);
        let letter = Letter {
            number,
            commit: &patch.commit,
            from,
            when: &patch.commit.author,
            subject,
            is_wide: !message.is_ascii() || !in_body.is_ascii() || !patch.notes.is_ascii(),
        };
        let mut bytes = self.headers(&letter)?;
        bytes.extend_from_slice(in_body.as_bytes());
        bytes.extend_from_slice(body.as_bytes());
        bytes.extend_from_slice(b"---\n");
        if !patch.notes.is_empty() {
            push_paragraph(&mut bytes, &patch.notes);
        }
        bytes.extend(diffstat::stat(&patch.files));
        bytes.extend(diffstat::summary(&patch.files));
        bytes.push(b'\n');
        bytes.extend(patch.files.iter().flat_map(|file| &file.text));
        self.push_end(&mut bytes, number == 1 && self.cover.is_none());
        Ok(Mail {
            file_name: self.file_name(number, subject),
            message_id: self.message_id(number),
            bytes,
        })
    }

    /// Everything up to and with the blank line.
    fn headers(&self, letter: &Letter<'_>) -> Result<Vec<u8>> {
        let mut lines = format!("From {} Mon Sep 17 00:00:00 2001\n", letter.commit.id);
        if let Some(id) = self.message_id(letter.number) {
            lines.extend(["Message-ID: ", &id, "\n"]);
        }
        let first = usize::from(self.cover.is_none());
        if let Some(id) = self.message_id(first).filter(|_| letter.number != first) {
            lines.extend(["In-Reply-To: ", &id, "\nReferences: ", &id, "\n"]);
        }
        lines += &header::mailbox("From", &letter.from.0, &letter.from.1);
        lines += &header::date(letter.when)?;
        lines += &header::subject(&self.tag(letter.number), letter.subject);
        if letter.is_wide {
            lines += "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n";
        }
        lines += &header::mailboxes("To", &self.options.to);
        lines += &header::mailboxes("Cc", &self.options.cc);
        lines.push('\n');
        Ok(lines.into_bytes())
    }

    /// `[PATCH v2 03/12]`; a single patch without a cover has no number.
    fn tag(&self, number: usize) -> String {
        let Options {
            prefix, version, ..
        } = self.options;
        let version = version.map_or(String::new(), |version| format!(" v{version}"));
        let total = self.patches.len();
        if total == 1 && self.cover.is_none() {
            return format!("[{prefix}{version}]");
        }
        let width = total.to_string().len();
        format!("[{prefix}{version} {number:0width$}/{total}]")
    }

    fn file_prefix(&self) -> String {
        let version = self.options.version;
        version.map_or(String::new(), |version| format!("v{version}-"))
    }

    fn file_name(&self, number: usize, subject: &str) -> String {
        file_name(&self.file_prefix(), number, subject)
    }

    fn message_id(&self, number: usize) -> Option<String> {
        let MessageStem { before, after } = self.stem.as_ref()?;
        Some(format!("<{before}-{number}-{after}>"))
    }

    fn sender(&self) -> Option<(String, String)> {
        let sender = self.options.sender.as_ref()?;
        Some((sender.name.clone(), sender.email.clone()))
    }

    /// Subjects by author, authors by name (git's `shortlog`), with the blank line after each.
    fn shortlog(&self) -> String {
        let mut authors: BTreeMap<String, Vec<&Patch>> = BTreeMap::new();
        for patch in self.patches {
            let (name, _) = identity(&patch.commit.author);
            authors.entry(name).or_default().push(patch);
        }
        let mut text = String::new();
        for (name, patches) in authors {
            text.extend([&name, " (", &patches.len().to_string(), "):\n"]);
            for patch in patches {
                let message = patch.commit.message.to_str_lossy();
                text.push_str("  ");
                let wrap = header::Wrap {
                    column: 2,
                    may_break: false,
                    indent: 4,
                    width: 72,
                };
                header::push_wrapped(&mut text, split_message(&message).0, wrap);
                text.push('\n');
            }
            text.push('\n');
        }
        text
    }

    /// The base where this mail has to name it, and the signature.
    fn push_end(&self, bytes: &mut Vec<u8>, names_base: bool) {
        let Options {
            base_commit,
            change_id,
            signature,
            ..
        } = self.options;
        if names_base && (base_commit.is_some() || change_id.is_some()) {
            bytes.push(b'\n');
            let base = base_commit.map(|id| format!("base-commit: {id}\n"));
            let change = change_id.as_ref().map(|id| format!("change-id: {id}\n"));
            for line in [base, change].into_iter().flatten() {
                bytes.extend_from_slice(line.as_bytes());
            }
        }
        let signature = signature.trim_end_matches('\n');
        bytes.extend_from_slice(format!("-- \n{signature}\n\n").as_bytes());
    }
}

/// The subject, and the body with its newline at the end; the body may be empty.
fn split_message(message: &str) -> (&str, &str) {
    let (subject, rest) = message.split_once('\n').unwrap_or((message, ""));
    (subject, rest.trim_start_matches('\n'))
}

/// Text and a blank line.
fn push_paragraph(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(text.trim_end_matches('\n').as_bytes());
    bytes.extend_from_slice(b"\n\n");
}

fn identity(signature: &Signature) -> (String, String) {
    let text = |bytes: &[u8]| bytes.to_str_lossy().into_owned();
    (text(&signature.name), text(&signature.email))
}

/// Whether a whole commit is ASCII, its people too: git looks at all of it for the cover letter.
fn is_ascii(commit: &Commit) -> bool {
    let people = [&commit.author, &commit.committer];
    commit.message.is_ascii()
        && people
            .iter()
            .all(|person| person.name.is_ascii() && person.email.is_ascii())
}
