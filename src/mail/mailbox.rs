//! A person's name and address, as people write them.
//!
//! Hides which characters git would drop from an identity without a word.

use anyhow::Result;

use crate::error::Refusal;
use crate::ui::shown_text;

/// A person's name and address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    /// The name; empty for an address alone, as a list has it.
    pub name: String,
    /// The address.
    pub email: String,
}

impl Mailbox {
    /// Reads `Name <address>` or a bare address.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, email) = match text.split_once('<') {
            Some((name, rest)) => (name.trim_matches(' '), rest.trim_end().strip_suffix('>')),
            None => ("", Some(text.trim())),
        };
        // git takes these out of an identity (`ident.c`, `strbuf_addstr_without_crud`).
        let crud = |text: &str| {
            text.contains(['<', '>', '\n', '\0']) || text.chars().any(char::is_control)
        };
        let email = email.filter(|email| {
            !email.contains(char::is_whitespace) && !crud(email) && is_address(email)
        });
        match email.filter(|_| !crud(name)) {
            Some(email) => Ok(Self {
                name: name.to_owned(),
                email: email.to_owned(),
            }),
            None => Err(Refusal::usage(format!(
                "`{}` is no name and address",
                shown_text(text.as_bytes())
            ))
            .hint("write it like `A U Thor <author@example.org>`")
            .into()),
        }
    }

    /// The same for somebody who must have a name: an author.
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
}

fn is_address(email: &str) -> bool {
    email.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !domain.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_read() {
        let mailbox = Mailbox::parse("Ä. U. Thör, Jr. <a+b@example.org>").unwrap();
        assert_eq!(
            (mailbox.name.as_str(), mailbox.email.as_str()),
            ("Ä. U. Thör, Jr.", "a+b@example.org")
        );
        assert_eq!(Mailbox::parse("list@example.org").unwrap().name, "");
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
        ] {
            assert!(Mailbox::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(Mailbox::parse_person("<a@example.org>").is_err());
    }
}
