//! The maintainers gate: whom the base's own `scripts/get_maintainer.pl` names for each patch.
//!
//! Hides its roles: maintainers become `To`, reviewers and lists become `Cc`; and that the mails of a branch are addressed to nobody yet.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use bstr::ByteSlice;

use super::cache::digest;
use super::run::Context;
use super::toolchain::{Tool, missing};
use super::{Mail, Name, Outcome, Status, script};
use crate::mail::{Mailbox, Maker};
use crate::temporary;

/// What is found where a mail goes to none of its maintainers, as `[[check.skip]]` names it.
pub(super) const MISSING: &str = "maintainer-missing";

/// Asks for every patch.
pub(super) fn run(context: &Context<'_>) -> Result<()> {
    let subject = context.subject;
    let perl = Tool::new("perl", "perl");
    for mail in subject.mails.iter().filter(|mail| mail.number > 0) {
        if let Some((_, packages)) = missing(std::slice::from_ref(&perl)) {
            let blank = Outcome::new(Name::Maintainers).patch(mail.number);
            context.found(blank.error("not installed: perl").packages(&packages));
            continue;
        }
        let skip = subject.left_out(Name::Maintainers, MISSING, Some(mail.number));
        let skip = skip.map(|skip| skip.reason.as_str());
        let options = &subject.letters.options;
        let reaches_nobody = options.maker == Maker::Git;
        let parts = (
            subject.base.tree_id.to_string(),
            digest(&mail.bytes),
            (MISSING, reaches_nobody, skip),
        );
        context.cached(Name::Maintainers, Some(mail.number), &parts, |source| {
            let outcome = ask(mail, source)?;
            if reaches_nobody || outcome.status != Status::Pass {
                return Ok(outcome);
            }
            Ok(addressed(outcome, mail, skip))
        })?;
    }
    Ok(())
}

/// Holds whom the script names against whom the mail does.
fn addressed(outcome: Outcome, mail: &Mail, skip: Option<&str>) -> Outcome {
    let named: BTreeSet<_> = ["To", "Cc"]
        .iter()
        .flat_map(|header| Mailbox::in_header(&mail.bytes, header))
        .map(|mailbox| mailbox.email.to_lowercase())
        .collect();
    let maintainers = outcome
        .lines
        .iter()
        .filter_map(|line| line.strip_prefix("To: "));
    let mut maintainers = maintainers.filter_map(|text| Mailbox::parse(text).ok());
    if maintainers.any(|it| named.contains(&it.email.to_lowercase())) {
        return outcome;
    }
    let Some(reason) = skip else {
        return outcome.fail(format!(
            "the mail goes to none of the maintainers ({MISSING})"
        ));
    };
    let mut lines = outcome.lines.clone();
    lines.push(format!("accepted: {MISSING}: {reason}"));
    outcome.lines(lines)
}

fn ask(mail: &Mail, source: &Path) -> Result<Outcome> {
    let blank = Outcome::new(Name::Maintainers).patch(mail.number);
    let get_maintainer = source.join("scripts/get_maintainer.pl");
    if !get_maintainer.is_file() {
        return Ok(blank.error("the base has no `scripts/get_maintainer.pl`"));
    }
    let dir = temporary::directory()?;
    let file = dir.path().join("mail.patch");
    fs::write(&file, &mail.bytes).with_context(|| temporary::not_written(dir.path()))?;
    // It runs in the base's own tree, and reads the options and the list of people to leave out that lie there.
    let task = script::perl(&get_maintainer, source);
    // Without git: the exported source has no history, and the user's must not change the answer.
    let output = task
        .args(["--nogit", "--nogit-fallback", "--rolestats"])
        .arg(&file)
        .run()?;
    if !output.exit.success() {
        return Ok(blank
            .error("get_maintainer.pl broke")
            .lines(super::scratch::said(&output)));
    }
    let lines: Vec<_> = output
        .stdout
        .lines()
        .filter_map(|line| recipient(&line.to_str_lossy()))
        .collect();
    if !lines.iter().any(|line| line.starts_with("To: ")) {
        return Ok(blank.fail("nobody maintains these files").lines(lines));
    }
    Ok(blank.lines(lines))
}

/// `Name <address> (role:SUBSYSTEM)` as a header line that `git send-email` and b4 read.
fn recipient(line: &str) -> Option<String> {
    let (address, role) = line.split_at(role_at(line.trim_end())?);
    let role = role.trim_start_matches(" (");
    let is_maintainer = ["maintainer", "supporter"]
        .iter()
        .any(|name| role.starts_with(name));
    Some(format!(
        "{}: {}",
        if is_maintainer { "To" } else { "Cc" },
        address.trim()
    ))
}

/// Where the role in brackets starts that ends the line. A section's title may have brackets, and end in one: `(open list:DAX (DIRECT))`.
fn role_at(line: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, char) in line.char_indices().rev() {
        match char {
            ')' => depth += 1,
            '(' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return at
                .checked_sub(1)
                .filter(|&blank| line.as_bytes()[blank] == b' ');
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_decide_between_to_and_cc() {
        let lines = [
            "A U Thor <author@example.org> (maintainer:MEMORY MANAGEMENT)",
            "R V Iewer <r@example.org> (reviewer:MEMORY MANAGEMENT)",
            "list@example.org (open list:MEMORY MANAGEMENT)",
            "D A X <d@example.org> (maintainer:DEVICE DIRECT ACCESS (DAX))",
            "Paren Theses (of old) <p@example.org> (supporter:KERNEL (KVM) (x86/KVM))",
            "kvm@example.org (open list:KERNEL VIRTUAL MACHINE (KVM))",
            "no role",
            "(no address)",
        ];
        let got: Vec<_> = lines.iter().filter_map(|line| recipient(line)).collect();
        assert_eq!(
            got,
            [
                "To: A U Thor <author@example.org>",
                "Cc: R V Iewer <r@example.org>",
                "Cc: list@example.org",
                "To: D A X <d@example.org>",
                "To: Paren Theses (of old) <p@example.org>",
                "Cc: kvm@example.org",
            ]
        );
    }
}
