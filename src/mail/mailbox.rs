//! A person's name and address, as people and programs write them: plainly, quoted, encoded, with what `get_maintainer.pl` or a stable tag
//! says behind it.
//!
//! Hides which characters git would drop from an identity without a word.

use anyhow::Result;
use mailparse::{MailAddr, SingleInfo};

use crate::error::Refusal;
use crate::ui::shown_text;

/// A person's name and address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    /// The name, without the quotes that mail may need around it; empty for an address alone, as a list has it.
    pub name: String,
    /// The address.
    pub email: String,
}

impl Mailbox {
    /// Reads `Name <address>` or a bare address.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Refusal::usage(format!(
                "`{}` is no name and address",
                shown_text(text.as_bytes())
            ))
            .hint("write it like `A U Thor <author@example.org>`")
        };
        let text = without_remark(text);
        // A plain name may have any punctuation; only what mail has marks for needs more reading.
        let is_marked = text.contains(['"', '(']) || text.contains("=?");
        let read = if is_marked { marked(text) } else { plain(text) };
        Ok(read.filter(Self::is_sound).ok_or_else(wrong)?)
    }

    /// Reads several, with commas in between, as `git format-patch --cc` and mail headers have them.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        divided(text).into_iter().map(Self::parse).collect()
    }

    /// The same as [`Self::parse`] for somebody who must have a name: an author.
    pub fn parse_person(text: &str) -> Result<Self> {
        let mailbox = Self::parse(text)?;
        if mailbox.name.is_empty() {
            return Err(
                Refusal::usage(format!("`{}` has no name", shown_text(text.as_bytes())))
                    .hint("write it like `A U Thor <author@example.org>`")
                    .into(),
            );
        }
        Ok(mailbox)
    }

    /// Whom all header lines of this name in a mail address: folded, quoted and encoded as mail allows. What is no address is nobody's.
    #[must_use]
    pub fn in_header(mail: &[u8], name: &str) -> Vec<Self> {
        let Ok((headers, _)) = mailparse::parse_headers(mail) else {
            return Vec::new();
        };
        let lines = mailparse::MailHeaderMap::get_all_headers(&headers[..], name);
        let lists = lines.into_iter().map(mailparse::addrparse_header);
        let lists = lists
            .filter_map(Result::ok)
            .map(mailparse::MailAddrList::into_inner);
        lists.flat_map(singles).map(Self::of).collect()
    }

    fn of(single: SingleInfo) -> Self {
        Self {
            name: single.display_name.unwrap_or_default().trim().to_owned(),
            email: single.addr,
        }
    }

    /// Whether git writes it as it is: it takes angle brackets and control characters out (`ident.c`, `strbuf_addstr_without_crud`).
    fn is_sound(&self) -> bool {
        let crud = |text: &str| text.contains(['<', '>']) || text.chars().any(char::is_control);
        let Self { name, email } = self;
        !crud(name) && !crud(email) && !email.contains(char::is_whitespace) && is_address(email)
    }
}

fn plain(text: &str) -> Option<Mailbox> {
    let (name, email) = match text.split_once('<') {
        Some((name, rest)) => (name.trim_matches(' '), rest.trim_end().strip_suffix('>')?),
        None => ("", text.trim()),
    };
    Some(Mailbox {
        name: name.to_owned(),
        email: email.to_owned(),
    })
}

/// With quotes, comments or encoded words, as a header has it.
fn marked(text: &str) -> Option<Mailbox> {
    if text.contains(['\n', '\r', '\0']) {
        return None;
    }
    let line = format!("To: {text}");
    let (header, _) = mailparse::parse_header(line.as_bytes()).ok()?;
    let list = mailparse::addrparse_header(&header).ok()?;
    let mut found = singles(list.into_inner());
    found.pop().filter(|_| found.is_empty()).map(Mailbox::of)
}

fn singles(list: Vec<MailAddr>) -> Vec<SingleInfo> {
    let singles = list.into_iter().flat_map(|one| match one {
        MailAddr::Single(single) => vec![single],
        MailAddr::Group(group) => group.addrs,
    });
    singles.collect()
}

/// Without what is no part of it behind an address: the role that `get_maintainer.pl` says, or the versions of a stable tag.
fn without_remark(text: &str) -> &str {
    let text = text.trim();
    let text = text
        .split_once(" #")
        .filter(|(before, _)| before.contains('@'))
        .map_or(text, |(before, _)| before);
    let text = text.trim_end();
    match text.rfind('>') {
        Some(close) if text[close + 1..].trim_start().starts_with('(') => &text[..=close],
        _ => text,
    }
}

/// The parts of a list: at commas outside of quotes, brackets and comments, behind an address. A plain name may have a comma.
fn divided(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut quoted, mut depth) = (false, 0_usize);
    for (at, char) in text.char_indices() {
        match char {
            '"' => quoted = !quoted,
            '(' | '<' if !quoted => depth += 1,
            ')' | '>' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 && text[start..at].contains('@') => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if parts.is_empty() || !text[start..].trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

fn is_address(email: &str) -> bool {
    email.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !domain.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mailbox: &Mailbox) -> String {
        format!("{}|{}", mailbox.name, mailbox.email)
    }

    #[test]
    fn names_and_addresses_are_read() {
        for (text, read) in [
            (
                "Ä. U. Thör, Jr. <a+b@example.org>",
                "Ä. U. Thör, Jr.|a+b@example.org",
            ),
            ("list@example.org", "|list@example.org"),
            (
                "\"R. J. Example\" <rj@example.org>",
                "R. J. Example|rj@example.org",
            ),
            (
                "\"Example, R. \\\"J\\\"\" <rj@example.org>",
                "Example, R. \"J\"|rj@example.org",
            ),
            (
                "=?UTF-8?q?J=C3=B6rg?= <j@example.org>",
                "Jörg|j@example.org",
            ),
            (
                "R <r@example.org> (reviewer:MEMORY (MM))",
                "R|r@example.org",
            ),
            ("stable@example.org # 6.1+", "|stable@example.org"),
            ("<stable@example.org> # 6.1.x: a1b2", "|stable@example.org"),
        ] {
            assert_eq!(shown(&Mailbox::parse(text).expect(text)), read);
        }
    }

    #[test]
    fn lists_are_divided_behind_addresses() {
        for (text, read) in [
            ("A <a@b.org>, B <b@b.org>", vec!["A|a@b.org", "B|b@b.org"]),
            ("a@b.org,b@b.org,", vec!["|a@b.org", "|b@b.org"]),
            (
                "Thor, A <a@b.org>, \"B, C\" <b@b.org>",
                vec!["Thor, A|a@b.org", "B, C|b@b.org"],
            ),
        ] {
            let list = Mailbox::parse_list(text).expect(text);
            assert_eq!(list.iter().map(shown).collect::<Vec<_>>(), read);
        }
        assert!(Mailbox::parse_list("a@b.org, b").is_err());
    }

    #[test]
    fn recipients_are_read_as_mail_has_them() {
        let mail = b"From: a@example.org\nTo: \"Doe, Jane\" <jane@example.org>,\n\tlist@example.org\nCc: =?UTF-8?q?J=C3=B6rg_=C3=96?= <j@example.org>\nCC: B <b@example.org>\nSubject: [PATCH] a\n\nTo: nobody@example.org\n";
        let found =
            |name| -> Vec<String> { Mailbox::in_header(mail, name).iter().map(shown).collect() };
        assert_eq!(
            found("To"),
            ["Doe, Jane|jane@example.org", "|list@example.org"]
        );
        assert_eq!(found("Cc"), ["Jörg Ö|j@example.org", "B|b@example.org"]);
        assert!(found("Bcc").is_empty());
    }

    #[test]
    fn what_git_would_mangle_is_refused() {
        for wrong in [
            "",
            "A",
            "A <a>",
            "A <a@b",
            "A <<a@b>",
            "A\n<a@b>",
            "A <a @b>",
            "A <a@b@c>",
            "A\u{1b}[31m <a@b>",
            "<@b>",
            "\"A\" <a@b>, c@d",
            "\"A",
        ] {
            assert!(Mailbox::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(Mailbox::parse_person("<a@example.org>").is_err());
    }
}
