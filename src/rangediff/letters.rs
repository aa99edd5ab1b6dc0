//! The patches of a version that is mails: a directory of patch files, or an mbox.
//!
//! Hides MIME, header encodings, and where message and diff of a mail begin and end.
//!
//! The rules are those of git's `mailsplit.c` and `mailinfo.c`. What `git am` would not take, or would take in part, is
//! refused: a damaged hunk, a binary file, a patch of the series that is missing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice};
use mailparse::{MailHeaderMap, ParsedMail};

use super::Patch;
use super::commits::{change_id, person};
use super::text::{hunk_line, is_head, is_space, subject, trim_end};
use crate::error::Refusal;

/// The patches of a version that was mailed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Letters {
    /// Them, in order.
    pub patches: Vec<Patch>,
    /// What the series is known by over its versions (b4's `change-id:`).
    pub change_id: Option<String>,
}

/// No patch file is longer than this.
const LONGEST: u64 = 256 << 20;
/// Digits of an id that is shown.
const DIGITS: usize = 12;

/// Reads a directory of `*.patch` files, or an mbox.
pub fn of_path(path: &Path) -> Result<Letters> {
    if !path.is_dir() {
        return of_mbox(&read(path)?, &path.display().to_string());
    }
    let mut letters = Vec::new();
    for file in patch_files(path)? {
        let what = file.display().to_string();
        letters.extend(read_mails(&read(&file)?, &what)?);
    }
    series(letters, &path.display().to_string())
}

/// Reads an mbox; `what` is what messages call it. Answers in it are passed over.
pub fn of_mbox(mbox: &[u8], what: &str) -> Result<Letters> {
    series(read_mails(mbox, what)?, what)
}

/// Lets the patches of two versions of one series know each other again: where both name the same `change-id`, a subject
/// that is in each version once is an identity; and where both have as many patches, and all that are known by then are
/// at the same places, the place is one for the rest.
pub fn same_series(old: &mut Letters, new: &mut Letters) {
    let Some(series) = old.change_id.clone() else {
        return;
    };
    if new.change_id.as_ref() != Some(&series) {
        return;
    }
    let once = |patches: &[Patch], subject: &BString| {
        let same = patches.iter().filter(|patch| patch.subject == *subject);
        same.count() == 1
    };
    let known =
        |patch: &Patch| once(&old.patches, &patch.subject) && once(&new.patches, &patch.subject);
    let old_known: Vec<bool> = old.patches.iter().map(known).collect();
    let new_known: Vec<bool> = new.patches.iter().map(known).collect();
    let places = old.patches.iter().zip(&new.patches).zip(&old_known);
    let by_place = old_known == new_known
        && places
            .into_iter()
            .all(|((old, new), &known)| !known || old.subject == new.subject);
    for (patches, known) in [(&mut old.patches, old_known), (&mut new.patches, new_known)] {
        for (place, (patch, known)) in patches.iter_mut().zip(known).enumerate() {
            if patch.identity.is_some() {
                continue;
            }
            let subject = patch.subject.to_str().ok().filter(|_| known);
            patch.identity = match subject {
                Some(subject) => Some(format!("{series} {subject}")),
                None => by_place.then(|| format!("{series} #{}", place + 1)),
            };
        }
    }
}

fn patch_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(|error| not_read(dir, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| not_read(dir, &error))?.path();
        if path.extension().is_some_and(|end| end == "patch") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(
            Refusal::usage(format!("`{}` holds no `*.patch` file", dir.display()))
                .hint("name the directory that `reroll regen` or `git format-patch` wrote")
                .into(),
        );
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let about = fs::metadata(path).map_err(|error| not_read(path, &error))?;
    if !about.is_file() || about.len() > LONGEST {
        return Err(
            Refusal::usage(format!("`{}` is no file of patches", path.display()))
                .hint("name a directory of patches, or an mbox of up to 256 MiB")
                .into(),
        );
    }
    Ok(fs::read(path).map_err(|error| not_read(path, &error))?)
}

fn not_read(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::usage(format!("cannot read `{}`: {error}", path.display()))
        .hint("name a directory of patches, an mbox, or a range like `A..B`")
}

/// One mail, read.
#[derive(Debug)]
struct Letter {
    /// What messages call it.
    what: String,
    tag: Tag,
    /// Its patch; `None` for a cover letter or an answer.
    patch: Option<Patch>,
    change_id: Option<String>,
}

/// What the brackets in front of a subject say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tag {
    version: Option<u32>,
    /// Which patch of how many.
    number: Option<(usize, usize)>,
    is_answer: bool,
}

/// Puts the mails of a version in order, and makes sure that it is one version and all of it.
fn series(mut letters: Vec<Letter>, what: &str) -> Result<Letters> {
    letters.retain(|letter| !letter.tag.is_answer);
    let change_id = letters.iter().find_map(|letter| letter.change_id.clone());
    if let Some(letter) = letters.iter().find(|letter| letter.is_lost()) {
        return Err(Refusal::usage(format!("{} holds no patch", letter.what))
            .hint("cover letters are `0/N`, answers `Re:`; move other mails away")
            .into());
    }
    letters.retain(|letter| letter.patch.is_some());
    let mut versions: Vec<u32> = letters
        .iter()
        .map(|letter| letter.tag.version.unwrap_or(1))
        .collect();
    versions.sort_unstable();
    versions.dedup();
    if let [first, second, ..] = versions[..] {
        return Err(Refusal::usage(format!(
            "`{what}` holds more than one version: v{first} and v{second}"
        ))
        .hint("keep each version in a directory or an mbox of its own")
        .into());
    }
    if letters.is_empty() {
        return Err(Refusal::usage(format!("`{what}` holds no patch"))
            .hint("name a directory of patches, an mbox, or a range like `A..B`")
            .into());
    }
    let numbers: Option<Vec<_>> = letters.iter().map(|letter| letter.tag.number).collect();
    if let Some(numbers) = numbers {
        complete(&numbers, what)?;
        letters.sort_by_key(|letter| letter.tag.number);
    }
    let patches = letters
        .into_iter()
        .filter_map(|letter| letter.patch)
        .collect();
    Ok(Letters { patches, change_id })
}

impl Letter {
    /// Neither a patch nor a cover letter.
    fn is_lost(&self) -> bool {
        self.patch.is_none() && self.tag.number.is_none_or(|(number, _)| number > 0)
    }
}

/// Refuses a version of which a patch is missing, or there twice.
fn complete(numbers: &[(usize, usize)], what: &str) -> Result<()> {
    let total = numbers
        .iter()
        .map(|&(_, total)| total)
        .max()
        .unwrap_or_default();
    for number in 1..=total {
        let count = numbers.iter().filter(|&&(it, _)| it == number).count();
        if count != 1 {
            let verb = if count == 0 {
                "is missing from"
            } else {
                "is more than once in"
            };
            return Err(
                Refusal::usage(format!("patch {number}/{total} {verb} `{what}`"))
                    .hint("compare whole versions; `git format-patch` and `b4 am` write them")
                    .into(),
            );
        }
    }
    Ok(())
}

fn read_mails(bytes: &[u8], what: &str) -> Result<Vec<Letter>> {
    let mails = split(bytes);
    let single = mails.len() == 1;
    let mut letters = Vec::new();
    for (at, mail) in mails.into_iter().enumerate() {
        let what = if single {
            format!("`{what}`")
        } else {
            format!("mail {} of `{what}`", at + 1)
        };
        letters.push(letter(mail, what)?);
    }
    Ok(letters)
}

/// The mails of an mbox, each with its `From ` line if it has one.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut mails = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in bytes.lines_with_terminator() {
        if is_from_line(line) && at > start {
            mails.push(&bytes[start..at]);
            start = at;
        }
        at += line.len();
    }
    mails.push(&bytes[start..]);
    mails
}

/// Git's `is_from_line`: `From `, and a time with a year behind it.
fn is_from_line(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ").filter(|_| line.len() >= 20) else {
        return false;
    };
    let Some(colon) = rest[..rest.len() - 1]
        .rfind_byte(b':')
        .filter(|&at| at >= 4)
    else {
        return false;
    };
    let digit = |at: usize| rest.get(at).is_some_and(u8::is_ascii_digit);
    let year = rest.get(colon + 3..).unwrap_or_default().trim_start();
    let digits = year.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let year = year[..digits]
        .to_str()
        .ok()
        .and_then(|year| year.parse::<u32>().ok());
    [colon - 4, colon - 2, colon - 1, colon + 1, colon + 2]
        .into_iter()
        .all(digit)
        && year.is_some_and(|year| year > 90)
}

fn letter(mail: &[u8], what: String) -> Result<Letter> {
    let unread = || {
        Refusal::usage(format!("{what} is no mail"))
            .hint("a patch file has `From:` and `Subject:` lines in front; `git format-patch` writes them")
    };
    let mail = unix_lines(mail);
    let (id, mail) = from_line(&mail);
    let parsed = mailparse::parse_mail(mail).with_context(unread)?;
    let header = |name: &str| parsed.headers.get_first_value(name);
    let (Some(raw_subject), Some(from)) = (header("Subject"), header("From")) else {
        return Err(unread().into());
    };
    let (tag, mut title) = tagged(&raw_subject);
    let mut author = author(&from).unwrap_or_else(|| from.clone().into());
    let body = Body::of(&parsed)?;
    let (inner, message) = in_body(&body.message);
    if let Some(from) = inner.from {
        author = self::author(&from).unwrap_or_else(|| from.into());
    }
    if let Some(subject) = inner.subject {
        title = tagged(&subject).1;
    }
    let (diff, foot) = diff(&body.rest, &what)?;
    let is_cover = tag.number.is_some_and(|(number, _)| number == 0);
    let has_patch = !diff.is_empty() && !is_cover && !tag.is_answer;
    let mut text = title.into_bytes();
    text.extend_from_slice(b"\n\n");
    text.extend_from_slice(message);
    let patch = Patch {
        identity: change_id(&text),
        short_id: id
            .as_ref()
            .map_or("-".repeat(DIGITS), |id| id[..DIGITS].to_owned()),
        id: id.unwrap_or_default(),
        subject: subject(&text),
        author,
        message: text.into(),
        notes: BString::default(),
        diff,
    };
    let known = series_id(&foot).or_else(|| is_cover.then(|| series_id(&body.message)).flatten());
    Ok(Letter {
        what,
        tag,
        patch: has_patch.then_some(patch),
        change_id: known,
    })
}

/// Takes the carriage returns away from a mail that has them in its header as well.
fn unix_lines(mail: &[u8]) -> Vec<u8> {
    let first = mail.lines_with_terminator().next().unwrap_or_default();
    if first.ends_with(b"\r\n") {
        mail.replace("\r\n", "\n")
    } else {
        mail.to_vec()
    }
}

/// The commit's id in the `From ` line, and the mail behind it.
fn from_line(mail: &[u8]) -> (Option<String>, &[u8]) {
    if !mail.starts_with(b"From ") {
        return (None, mail);
    }
    let (line, rest) = mail.split_once_str("\n").unwrap_or((mail, b""));
    let word = line[5..]
        .split(|&byte| byte == b' ')
        .next()
        .unwrap_or_default();
    let is_id = word.len() == 40 && word.iter().all(u8::is_ascii_hexdigit);
    let id = is_id.then(|| word.to_str_lossy().into_owned());
    (id.filter(|id| id.bytes().any(|byte| byte != b'0')), rest)
}

/// `Name <address>` as git writes it.
fn author(from: &str) -> Option<BString> {
    let list = mailparse::addrparse(from).ok()?;
    let single = list.extract_single_info()?;
    let name = single.display_name.unwrap_or_else(|| single.addr.clone());
    Some(person(name.as_bytes(), single.addr.as_bytes()))
}

/// Divides the brackets of a subject from its text (git's `cleanup_subject`).
fn tagged(subject: &str) -> (Tag, String) {
    let mut tag = Tag::default();
    let mut rest = subject.trim();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ':']);
        if rest
            .get(..3)
            .is_some_and(|start| start.eq_ignore_ascii_case("re:"))
            && rest.len() > 3
        {
            tag.is_answer = true;
            rest = &rest[3..];
        } else if let Some((words, after)) =
            rest.strip_prefix('[').and_then(|it| it.split_once(']'))
        {
            tag.learn(words);
            rest = after;
        } else {
            return (tag, single_blanks(rest));
        }
    }
}

/// Git's `cleanup_space`.
fn single_blanks(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

impl Tag {
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

/// The two halves of a mail's text.
struct Body {
    /// In UTF-8.
    message: Vec<u8>,
    /// From the `---`, or from the first line of a diff, as the bytes are.
    rest: Vec<u8>,
}

impl Body {
    fn of(mail: &ParsedMail<'_>) -> Result<Self> {
        let (mut raw, mut decoded) = (Vec::new(), Vec::new());
        for part in mail.parts() {
            if !part.ctype.mimetype.starts_with("text/") || part.ctype.mimetype == "text/html" {
                continue;
            }
            let bytes = part
                .get_body_raw()
                .context("a mail's encoding is damaged")?;
            let charset = part.ctype.charset.to_ascii_lowercase();
            if matches!(charset.as_str(), "utf-8" | "us-ascii") {
                decoded.extend_from_slice(&bytes);
            } else {
                decoded.extend(
                    part.get_body()
                        .context("a mail's encoding is damaged")?
                        .into_bytes(),
                );
            }
            raw.extend(bytes);
        }
        let end = message_end(&decoded);
        decoded.truncate(end);
        raw.drain(..message_end(&raw));
        Ok(Self {
            message: decoded,
            rest: raw,
        })
    }
}

/// Where a mail's message ends (git's `patchbreak`).
fn message_end(body: &[u8]) -> usize {
    let mut at = 0;
    for line in body.lines_with_terminator() {
        let dashes = line.strip_prefix(b"---").is_some_and(|rest| {
            trim_end(rest).is_empty()
                || (rest[0] == b' ' && rest.get(1).is_some_and(|&it| !is_space(it)))
        });
        if dashes || line.starts_with(b"diff -") || line.starts_with(b"Index: ") {
            return at;
        }
        at += line.len();
    }
    body.len()
}

/// Headers that open the text, because the author did not send the mail.
#[derive(Debug, Default)]
struct InBody {
    from: Option<String>,
    subject: Option<String>,
}

fn in_body(message: &[u8]) -> (InBody, &[u8]) {
    let mut inner = InBody::default();
    let mut rest = message.trim_start_with(|char| char == '\n');
    loop {
        let (line, after) = rest.split_once_str("\n").unwrap_or((rest, b""));
        let text = line.to_str_lossy();
        let (key, value) = text.split_once(": ").unwrap_or_default();
        match key.to_ascii_lowercase().as_str() {
            "from" => inner.from = Some(value.to_owned()),
            "subject" => inner.subject = Some(value.to_owned()),
            "date" => {}
            _ => return (inner, rest.trim_start_with(|char| char == '\n')),
        }
        rest = after;
        while let (Some(b' ' | b'\t'), Some(subject)) = (rest.first(), &mut inner.subject) {
            let (line, after) = rest.split_once_str("\n").unwrap_or((rest, b""));
            subject.push_str(&line.to_str_lossy());
            rest = after;
        }
    }
}

/// b4's line that names a series.
fn series_id(text: &[u8]) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(b"change-id: "))?;
    Some(value.trim().to_str().ok()?.to_owned())
}

/// What a line of a mail's second half is.
enum State {
    Outside,
    Head,
    /// So many lines of the hunk are left on the old and on the new side.
    Hunk(usize, usize),
}

/// The diff in a mail's second half, and everything else in it. Hunks are counted, so that a signature is not taken for
/// a removed line.
fn diff(rest: &[u8], what: &str) -> Result<(Vec<u8>, Vec<u8>)> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAIL: &str = "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n\
        From: =?UTF-8?q?A=20=C3=9C?= <a@example.org>\nSubject: [PATCH v2 1/1] mm: x\n\nText.\n---\n f | 1 +\n\n\
        diff --git \"a/\\303\\274\" \"b/\\303\\274\"\nindex 1..2 100644\n--- \"a/\\303\\274\"\n+++ \"b/\\303\\274\"\n@@ -1,2 +1,3 @@ f\n a\n+-- \n b\n-- \n2.47.3\n\n";

    #[test]
    fn a_mail_is_read() {
        let letters = of_mbox(MAIL.as_bytes(), "mbox").expect("a mail");
        let patch = &letters.patches[0];
        assert_eq!(patch.author, "A Ü <a@example.org>");
        assert_eq!(patch.subject, "mm: x");
        assert!(patch.diff.ends_with(b"@@ f\n a\n+-- \n b\n"));
    }

    #[test]
    fn a_quoted_from_line_divides_no_mail_but_a_real_one_does() {
        assert!(is_from_line(
            b"From a@example.org Thu Jan  1 00:00:00 2024\n"
        ));
        assert!(!is_from_line(
            b">From a@example.org Thu Jan  1 00:00:00 2024\n"
        ));
        assert!(!is_from_line(b"From the beginning of time: never\n"));
    }

    proptest! {
        #[test]
        fn no_damage_to_a_mail_makes_the_reader_panic(
            cut in 0..MAIL.len(), length in 0_usize..40, with in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let mut mail = MAIL.as_bytes().to_vec();
            mail.splice(cut..(cut + length).min(mail.len()), with);
            if let Ok(letters) = of_mbox(&mail, "mbox") {
                let pairs = super::super::compare(&letters.patches, &letters.patches, &super::super::Options::default());
                prop_assert!(pairs.expect("pairs").iter().all(|pair| pair.kind == super::super::Kind::Equal));
            }
        }
    }
}
