//! Mails as people have them, read by `reroll diff` and taken by `git am`: the same patch, or refused by both. A table that anyone can add a
//! line to.
//!
//! Hides how a mail is made of a commit, and how what git makes of it is held against it.

use bstr::{BString, ByteSlice};

use crate::support::Sandbox;

/// A mail: its header lines, and its text.
struct Mail {
    from: &'static str,
    subject: &'static str,
    kind: &'static str,
    encoding: &'static str,
    text: Vec<u8>,
}

/// What becomes of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// `git am` makes the very commit.
    Same,
    /// `git am` makes another one; so it is shown.
    Other,
    /// `git am` does not take it.
    Refused,
}
use Fate::{Other, Refused, Same};

const FROM: &str = "=?UTF-8?q?J=C3=B6rg=20=C3=96?= <author@example.org>";
const SUBJECT: &str = "[PATCH] =?UTF-8?q?mm:=20gr=C3=B6=C3=9Fe?=";
const UTF_8: &str = "text/plain; charset=UTF-8";
const MESSAGE: &str = "Text = ö.\n\nSigned-off-by: Jörg Ö <author@example.org>\n";
const RELAY: &str = "J via Relay <relay@example.org>";

/// A repository with a commit on a base, tagged so, and the commit's diff.
fn repository() -> (Sandbox, BString) {
    let sandbox = Sandbox::new();
    sandbox
        .git(["init", "-q", "-b", "main", "r"])
        .run()
        .expect_exit(0);
    let lines = |five: &str| -> String {
        let lines = (1..=40).map(|it| {
            if it == 5 {
                format!("{five}\n")
            } else {
                format!("{it}\n")
            }
        });
        lines.collect::<String>() + "\n\n\tint x;   \n"
    };
    let git = |args: &[&str]| {
        sandbox
            .git(args)
            .dir(sandbox.path("r"))
            .run()
            .expect_exit(0)
    };
    sandbox.write("r/mm/a.c", lines("5"));
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "base"]);
    git(&["tag", "base"]);
    sandbox.write("r/mm/a.c", lines("fünf = \"=\" "));
    let author = "Jörg Ö <author@example.org>";
    git(&[
        "commit",
        "-q",
        "-a",
        "--author",
        author,
        "-m",
        &format!("mm: größe\n\n{MESSAGE}"),
    ]);
    git(&["tag", "tip"]);
    let diff = git(&["diff", "base", "tip"]).stdout;
    (sandbox, diff)
}

/// A text as quoted-printable.
fn quoted(text: &[u8]) -> Vec<u8> {
    let mut written = Vec::new();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let mut width = 0;
        for (at, &byte) in line.iter().enumerate() {
            let is_last = line.get(at + 1) == Some(&b'\n');
            let plain = byte == b'\n'
                || (b'!'..=b'~').contains(&byte) && byte != b'='
                || byte == b' ' && !is_last;
            let word = if plain {
                vec![byte]
            } else {
                format!("={byte:02X}").into_bytes()
            };
            if width + word.len() > 75 && byte != b'\n' {
                written.extend_from_slice(b"=\n");
                width = 0;
            }
            width += word.len();
            written.extend(word);
        }
    }
    written
}

/// A text as base64.
fn base64(text: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut written = Vec::new();
    for (number, group) in text.chunks(3).enumerate() {
        let bits = group
            .iter()
            .fold(0_usize, |bits, &byte| bits << 8 | usize::from(byte))
            << (8 * (3 - group.len()));
        for digit in 0..4 {
            let is_there = digit <= group.len();
            written.push(if is_there {
                DIGITS[bits >> (18 - 6 * digit) & 63]
            } else {
                b'='
            });
        }
        if number % 19 == 18 {
            written.push(b'\n');
        }
    }
    written.push(b'\n');
    written
}

/// The only part of a mail that has several.
fn part(kind: &str, encoding: &str, text: &[u8], behind: &str) -> Vec<u8> {
    let head = format!("--b\nContent-Type: {kind}\nContent-Transfer-Encoding: {encoding}\n\n");
    [head.as_bytes(), text, b"\n", behind.as_bytes(), b"--b--\n"].concat()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn mails_are_read_as_git_reads_them() {
    let (sandbox, diff) = repository();
    let whole = |message: &str, diff: &[u8]| {
        [
            message.as_bytes(),
            b"---\n mm/a.c | 2 +-\n\n",
            diff,
            b"-- \n2.47.3\n\n",
        ]
        .concat()
    };
    let plain = whole(MESSAGE, &diff);
    let latin = plain
        .to_str_lossy()
        .chars()
        .map(|it| u8::try_from(u32::from(it)).unwrap_or(b'?'))
        .collect::<Vec<u8>>();
    let hunks = &diff[diff.find("@@ ").expect("a hunk")..];
    let quilt = [
        b"--- a/mm/a.c~mm-size\n+++ a/mm/a.c\n".as_slice(),
        hunks,
        b"_\n\nPatches that may follow are\n",
    ]
    .concat();
    let index = [b"Index: linux/mm/a.c\n===================\n--- linux.orig/mm/a.c\t2026-01-01 00:00:00.000000000 +0000\n+++ linux/mm/a.c\t2026-01-02 00:00:00.000000000 +0000\n".as_slice(), hunks].concat();
    let other = diff.replace(" a/mm", " i/mm").replace(" b/mm", " w/mm");
    let cut = diff.replace("\n 4\n", "\n4\n");
    let inner = |head: &str| whole(&format!("{head}\n\n{MESSAGE}"), &diff);
    let table = [
        ("plain", FROM, SUBJECT, UTF_8, "8bit", plain.clone(), Same),
        (
            "raw UTF-8 in the header",
            "Jörg Ö <author@example.org>",
            "[PATCH] mm: größe",
            UTF_8,
            "8bit",
            plain.clone(),
            Same,
        ),
        (
            "a character divided between two encoded words",
            "=?UTF-8?q?J=C3?=\n =?UTF-8?q?=B6rg=20=C3=96?= <author@example.org>",
            "[PATCH] =?UTF-8?q?mm:=20gr=C3?=\n =?UTF-8?q?=B6=C3=9Fe?=",
            UTF_8,
            "8bit",
            plain.clone(),
            Same,
        ),
        (
            "a name behind the address",
            "author@example.org (=?UTF-8?q?J=C3=B6rg=20=C3=96?=)",
            SUBJECT,
            UTF_8,
            "8bit",
            plain.clone(),
            Same,
        ),
        (
            "a quoted name",
            "\"Jörg Ö\" <author@example.org>",
            SUBJECT,
            UTF_8,
            "8bit",
            plain.clone(),
            Same,
        ),
        (
            "charset in quotes",
            FROM,
            SUBJECT,
            "text/plain; charset=\"utf-8\"",
            "8bit",
            plain.clone(),
            Same,
        ),
        (
            "no charset",
            FROM,
            SUBJECT,
            "text/plain",
            "8bit",
            plain.clone(),
            Same,
        ),
        (
            "a charset that is wrong",
            FROM,
            SUBJECT,
            "text/plain; charset=iso-8859-1",
            "8bit",
            plain.clone(),
            Other,
        ),
        (
            "a charset that is none",
            FROM,
            SUBJECT,
            "text/plain; charset=y",
            "8bit",
            plain.clone(),
            Refused,
        ),
        (
            "Latin-1 as it is, diff included",
            FROM,
            SUBJECT,
            "text/plain; charset=iso-8859-1",
            "8bit",
            latin,
            Other,
        ),
        (
            "a subject in the text alone",
            FROM,
            "",
            UTF_8,
            "8bit",
            inner("Subject: [PATCH] mm: größe"),
            Same,
        ),
        (
            "an author in the text",
            RELAY,
            SUBJECT,
            UTF_8,
            "8bit",
            inner(&format!("From: {FROM}")),
            Same,
        ),
        (
            "an author and a subject in the text",
            RELAY,
            "[PATCH] x",
            UTF_8,
            "8bit",
            inner(
                "From: Jörg Ö <author@example.org>\nSubject: [PATCH] =?UTF-8?q?mm:=20gr=C3=B6=C3=9Fe?=",
            ),
            Same,
        ),
        (
            "a folded subject in the text",
            RELAY,
            "[PATCH] x",
            UTF_8,
            "8bit",
            inner("From: Jörg Ö <author@example.org>\nSubject: [PATCH] mm:\n größe"),
            Same,
        ),
        (
            "quoted-printable",
            FROM,
            SUBJECT,
            UTF_8,
            "quoted-printable",
            quoted(&plain),
            Same,
        ),
        (
            "base64",
            FROM,
            SUBJECT,
            UTF_8,
            "base64",
            base64(&plain),
            Same,
        ),
        (
            "quoted-printable in a part",
            FROM,
            SUBJECT,
            "multipart/mixed; boundary=b",
            "7bit",
            part(UTF_8, "quoted-printable", &quoted(&plain), ""),
            Same,
        ),
        (
            "base64 that is signed",
            FROM,
            SUBJECT,
            "multipart/signed; boundary=b",
            "7bit",
            part(
                UTF_8,
                "base64",
                &base64(&plain),
                "--b\nContent-Type: application/pgp-signature\n\nx\n",
            ),
            Same,
        ),
        (
            "the diff as an attachment of bytes",
            FROM,
            SUBJECT,
            "multipart/mixed; boundary=b",
            "7bit",
            [
                part(UTF_8, "8bit", MESSAGE.as_bytes(), "")
                    .strip_suffix(b"--b--\n")
                    .expect("an end"),
                &part(
                    "application/octet-stream; name=a.patch",
                    "base64",
                    &base64(&diff),
                    "",
                ),
            ]
            .concat(),
            Same,
        ),
        (
            "the form of quilt",
            FROM,
            SUBJECT,
            UTF_8,
            "8bit",
            whole(MESSAGE, &quilt),
            Same,
        ),
        (
            "diff -u with an Index line",
            FROM,
            SUBJECT,
            UTF_8,
            "8bit",
            whole(MESSAGE, &index),
            Same,
        ),
        (
            "other prefixes",
            FROM,
            SUBJECT,
            UTF_8,
            "8bit",
            whole(MESSAGE, &other),
            Same,
        ),
        (
            "format=flowed that lost blanks",
            FROM,
            SUBJECT,
            "text/plain; charset=UTF-8; format=flowed",
            "8bit",
            whole(MESSAGE, &cut),
            Refused,
        ),
        (
            "another tag in front",
            FROM,
            "[tip: mm/core] [RFC] Re: =?UTF-8?q?mm:=20gr=C3=B6=C3=9Fe?=",
            UTF_8,
            "8bit",
            plain.clone(),
            Same,
        ),
        (
            "scissors are a part of the text",
            FROM,
            SUBJECT,
            UTF_8,
            "8bit",
            whole(&format!("-- >8 --\n{MESSAGE}"), &diff),
            Other,
        ),
    ];
    for (what, from, subject, kind, encoding, text, fate) in table {
        let mail = Mail {
            from,
            subject,
            kind,
            encoding,
            text,
        };
        for newline in ["\n", "\r\n"] {
            let found = mail.fate(&sandbox, newline);
            assert_eq!(found, fate, "{what}, {newline:?}");
        }
    }
}

impl Mail {
    /// What git makes of it, where reroll agrees.
    fn fate(&self, sandbox: &Sandbox, newline: &str) -> Fate {
        let Self {
            from,
            subject,
            kind,
            encoding,
            text,
        } = self;
        let head = format!(
            "From: {from}\nDate: Tue, 14 Nov 2023 22:13:20 +0000\nSubject: {subject}\nMIME-Version: 1.0\nContent-Type: {kind}\nContent-Transfer-Encoding: {encoding}\n\n"
        );
        let mail = [head.as_bytes(), text].concat().replace("\n", newline);
        let mail = sandbox.write("mail", mail);
        let git = |args: &[&str]| sandbox.git(args).dir(sandbox.path("r"));
        git(&["checkout", "-q", "-f", "--detach", "base"])
            .run()
            .expect_exit(0);
        let am = git(&["am", "-q"]).args([&mail]).run();
        if am.code != Some(0) {
            git(&["am", "--abort"]).run();
            let ran = sandbox
                .reroll(["diff", "mail", "base..tip", "--tree", "r"])
                .run();
            if ran.stderr.contains("am` does not take it either") || ran.stderr.contains("no patch")
            {
                ran.expect_exit(2);
            } else {
                panic!(
                    "git refuses: {}\nreroll does not: {} {}",
                    am.stderr,
                    ran.stdout.to_str_lossy(),
                    ran.stderr
                );
            }
            return Refused;
        }
        // What git made of it is what reroll reads in it.
        let diff = |range: &str| sandbox.reroll(["diff", "mail", range, "--tree", "r"]).run();
        diff("base..HEAD").expect_exit(0);
        let is_same = |format: &str| {
            let log = |rev: &str| {
                git(&["log", "-1", &format!("--format={format}"), rev])
                    .run()
                    .expect_exit(0)
                    .stdout
            };
            log("HEAD") == log("tip")
        };
        let exit = diff("base..tip").code;
        if is_same("%T%n%an%n%ae%n%B") {
            assert_eq!(exit, Some(0));
            Same
        } else {
            assert_eq!(exit, Some(1));
            Other
        }
    }
}
