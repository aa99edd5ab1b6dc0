//! The checkpatch gate: the base's own `scripts/checkpatch.pl --strict` on every mail, the cover letter included.
//!
//! Hides checkpatch's output format and which findings the recipe accepts.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use bstr::ByteSlice;

use super::build::counted;
use super::cache::digest;
use super::run::Context;
use super::settings::Accept;
use super::toolchain::{Tool, missing};
use super::{Mail, Name, Outcome, script};
use crate::temporary;

/// What checkpatch takes a cover letter's `change-id:` for, and why it is none: reroll and b4 write it below the letter's own text.
const GERRIT: &str = "GERRIT_CHANGE_ID";
const NO_GERRIT: &str = "the cover letter carries b4's change-id, which is no trailer of Gerrit's";

/// One finding of checkpatch.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Its name: `LONG_LINE`.
    kind: String,
    /// Its words.
    message: String,
    /// All its lines.
    lines: Vec<String>,
}

/// Runs checkpatch on every mail.
pub(super) fn run(context: &Context<'_>) -> Result<()> {
    let subject = context.subject;
    let perl = Tool::new("perl", "perl");
    for mail in &subject.mails {
        if let Some((_, packages)) = missing(std::slice::from_ref(&perl)) {
            let blank = Outcome::new(Name::Checkpatch).patch(mail.number);
            context.found(blank.error("not installed: perl").packages(&packages));
            continue;
        }
        let parts = (
            subject.base.tree_id.to_string(),
            digest(&mail.bytes),
            &subject.settings.accept,
            (&mail.file_name, NO_GERRIT),
        );
        context.cached(Name::Checkpatch, Some(mail.number), &parts, |source| {
            look(context, mail, source)
        })?;
    }
    Ok(())
}

fn look(context: &Context<'_>, mail: &Mail, source: &Path) -> Result<Outcome> {
    let blank = Outcome::new(Name::Checkpatch).patch(mail.number);
    let checkpatch = source.join("scripts/checkpatch.pl");
    if !checkpatch.is_file() {
        return Ok(blank.error("the base has no `scripts/checkpatch.pl`"));
    }
    // It writes a cache of names where it runs, and judges a cover letter by the file's name.
    let dir = script::place(source, ".checkpatch.conf")?;
    let file = dir.path().join(safe_name(&mail.file_name));
    fs::write(&file, &mail.bytes).with_context(|| temporary::not_written(dir.path()))?;
    let task = script::perl(&checkpatch, dir.path());
    let task = task.args(["--strict", "--show-types", "--color=never", "--no-summary"]);
    let output = task.arg(&file).run()?;
    let log = context.log(&format!("checkpatch-p{}", mail.number));
    fs::write(&log, [&output.stdout[..], &output.stderr].concat()).context("cannot write a log")?;
    let findings = parse(
        &output
            .stdout
            .to_str_lossy()
            .replace(&format!("{}/", dir.path().display()), ""),
    );
    let blank = blank.log(log);
    // It ends with 1 when it has findings; anything else that is not 0 is its own trouble.
    if findings.is_empty() && !output.exit.success() {
        return Ok(blank
            .error("checkpatch broke")
            .lines(super::scratch::said(&output)));
    }
    Ok(judge(context, mail.number, findings, blank))
}

fn judge(context: &Context<'_>, number: usize, findings: Vec<Finding>, blank: Outcome) -> Outcome {
    let subject = context.subject;
    let accepts = |accept: &&Accept, finding: &Finding| {
        accept.kind == finding.kind
            && accept
                .patch
                .as_deref()
                .is_none_or(|name| subject.is_patch(Some(number), name))
            && accept
                .message
                .as_deref()
                .is_none_or(|text| finding.message.contains(text))
    };
    let (mut left, mut accepted) = (Vec::new(), Vec::new());
    for finding in findings {
        let mut accepts = subject
            .settings
            .accept
            .iter()
            .filter(|it| accepts(it, &finding));
        let reason = accepts.next().map(|accept| accept.reason.as_str());
        let reason =
            reason.or_else(|| (finding.kind == GERRIT && number == 0).then_some(NO_GERRIT));
        match reason {
            Some(reason) => accepted.push(format!("accepted: {}: {reason}", finding.kind)),
            None => left.push(finding),
        }
    }
    if left.is_empty() {
        return blank.lines(accepted);
    }
    let reason = counted(left.len(), "finding");
    blank.fail(reason).lines(
        left.into_iter()
            .flat_map(|finding| finding.lines)
            .chain(accepted)
            .collect(),
    )
}

/// The findings in checkpatch's output: `CHECK:TYPE: words`, then lines up to an empty one.
fn parse(text: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let head = ["ERROR:", "WARNING:", "CHECK:"]
            .iter()
            .find_map(|level| line.strip_prefix(level));
        if let Some((kind, message)) = head.and_then(|rest| rest.split_once(": ")) {
            findings.push(Finding {
                kind: kind.to_owned(),
                message: message.to_owned(),
                lines: vec![line.to_owned()],
            });
            open = true;
        } else if line.is_empty() {
            open = false;
        } else if let Some(last) = findings.last_mut().filter(|_| open) {
            last.lines.push(line.to_owned());
        }
    }
    findings
}

/// A file name without a directory in it.
fn safe_name(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default();
    if name.is_empty() || name.starts_with('-') || name.starts_with('.') {
        "mail.patch".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_with_their_lines() {
        let text = "ERROR:CODE_INDENT: code indent should use tabs\n#20: FILE: a.c:1:\n+        x;$\n\nCHECK:SPACING: y\n#21:\n\n";
        let findings = parse(text);
        assert_eq!(findings.len(), 2);
        assert_eq!(
            (findings[0].kind.as_str(), findings[0].lines.len()),
            ("CODE_INDENT", 3)
        );
    }
}
