//! What is a trailer, held against git's own answer; the table can take any message.

use std::fmt::Write as _;

use reroll::trailers::trailers;

use crate::support::Sandbox;

/// Messages of every shape: a subject stands in front of each unless it starts with `!`.
const MESSAGES: &[&str] = &[
    "",
    "Text only.",
    "Signed-off-by: A <a@example.org>",
    "Text.\n\nSigned-off-by: A <a@example.org>",
    "Text.\nSigned-off-by: A <a@example.org>",
    "Text: more\nSigned-off-by: A <a@example.org>",
    "Text.\nText.\nText.\nText.\nSigned-off-by: A <a@example.org>",
    "Closes: https://example.org/1",
    "Link: https://example.org/1 [1]\nLink: https://example.org/2 # [2]",
    "Closes: https://example.org/1\nText behind it.",
    "The option is documented in: a file.\nNoticed-by: nobody",
    "Fixes: 0123456789ab (\"mm: break it\")\n\nSigned-off-by: A <a@example.org>",
    "Fixes: 0123456789ab (\"mm: a subject that\nis wrapped\")\nSigned-off-by: A <a@example.org>",
    "Fixes: 0123456789ab (\"mm: a subject that\n  is folded\")\nSigned-off-by: A <a@example.org>",
    "Fixes: 0123456789ab (\"mm: a subject that\n  is folded\")",
    "  Continued: from nothing\nKey: value",
    "Key: value\n[ bp: Massage. ]\nSigned-off-by: A <a@example.org>",
    "Key: value\n[ bp: Massage. ]\n",
    "(cherry picked from commit 0123456789012345678901234567890123456789)",
    "Key: value\n(cherry picked from commit 0123456789012345678901234567890123456789)\nText.",
    "Assisted-by: Tool:version [check]\nCc: <stable@example.org> # 6.1.x",
    "Key : value\nOther\t: value",
    "Key with words: value",
    "1-2-3: value",
    ": value\nKey: value",
    "Key:\nOther:   ",
    "Key: value\n\n\n",
    "Key: value\n   \n",
    "Key: value\n\t\nOther: value",
    "Key: value\n# a comment\nOther: value",
    "# Key: value\nOther: value",
    "Key: value\n\n# a comment\n",
    "Key: value\n\nConflicts:\n\tmm/mm_init.c\n",
    "Key: value\nConflicts:\n\tmm/mm_init.c\n",
    "Text.\n\nhttps://example.org/1\nKey: value",
    "Text.\n\nnote: this is prose\nand goes on",
    "Reported-by: syzbot+1@example.org\nCloses: https://example.org/1",
    "Change-Id: I0123456789012345678901234567890123456789",
    "Signed-off-by: A <a@example.org>\n---\nnotes",
    "Caf\u{e9}: value\nKey: caf\u{e9}",
    "signed-off-by: A <a@example.org>\nText.",
    "Signed-off-by:A <a@example.org>\nText.",
    "!",
    "!one line",
    "!io-uring: one line",
    "!io-uring: one line\n",
    "!Key: value\nKey: value",
    "!Key: value\n\nKey: value",
    "!# comment\nsubject\n\nKey: value",
    "!\n\nsubject\n\nKey: value",
    "!subject\nSigned-off-by: A <a@example.org>",
];

#[test]
fn trailers_are_what_git_says_they_are() {
    let sandbox = Sandbox::new();
    let mut all = Vec::new();
    for text in MESSAGES {
        let whole = text
            .strip_prefix('!')
            .map_or_else(|| format!("mm: do something\n\n{text}"), str::to_owned);
        for ending in ["", "\n"] {
            all.push(format!("{whole}{ending}"));
        }
    }
    for message in all {
        let name = sandbox.write("message", &message);
        let git = sandbox.git(["interpret-trailers", "--parse", "--no-divider"]);
        let ran = git.arg(name).run().expect_exit(0);
        let mut own = String::new();
        for trailer in trailers(message.as_bytes()) {
            let _ = writeln!(own, "{}: {}", trailer.key, trailer.unfolded());
        }
        assert_eq!(own, ran.stdout.to_string(), "{message:?}");
    }
}
