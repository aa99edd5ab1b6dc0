//! The mail gate: the conventions of a kernel patch mail, each rule by its name.
//!
//! Hides where the rules live and which of them the recipe leaves out.

use anyhow::Result;
use bstr::ByteSlice;

use super::build::counted;
use super::run::Context;
use super::{Name, Outcome, Subject};
use crate::mail::rules;
use crate::ui::shown_text;

/// The rule about commits that nobody has; it needs the repository, so it is here.
const BASE_COMMIT: &str = "base-commit-unknown";

/// One thing found.
struct Finding {
    /// The patch's number; 0 is the cover letter, `None` the series.
    patch: Option<usize>,
    rule: &'static str,
    text: String,
}

/// Looks at every mail, and at the series as a whole.
#[expect(clippy::unnecessary_wraps, reason = "as every gate")]
pub(super) fn run(context: &Context<'_>) -> Result<()> {
    let subject = context.subject;
    let letters = &subject.letters;
    let found = rules::check(letters.cover.as_ref(), &letters.patches, &letters.options);
    let mut findings: Vec<_> = found
        .iter()
        .map(|finding| numbered(subject, finding))
        .collect();
    findings.extend(unknown_bases(subject));
    let cover = letters.cover.as_ref().map(|_| 0);
    for patch in cover
        .into_iter()
        .chain(context.numbers())
        .map(Some)
        .chain([None])
    {
        let mut blank = Outcome::new(Name::Mail);
        blank.patch = patch;
        if let Some(skip) = context.skip(Name::Mail, None, patch) {
            context.found(blank.skipped(&skip.reason));
            continue;
        }
        let mine: Vec<_> = findings
            .iter()
            .filter(|finding| finding.patch == patch)
            .collect();
        context.found(judge(subject, &mine, blank));
    }
    Ok(())
}

/// Whether there is a rule of this name.
pub(super) fn is_rule(name: &str) -> bool {
    name == BASE_COMMIT || rules::RULES.iter().any(|rule| rule.name == name)
}

fn judge(subject: &Subject, findings: &[&Finding], blank: Outcome) -> Outcome {
    let (mut left, mut accepted) = (Vec::new(), Vec::new());
    for finding in findings {
        match subject.left_out(Name::Mail, finding.rule, finding.patch) {
            Some(skip) => accepted.push(format!("accepted: {}: {}", finding.rule, skip.reason)),
            None => left.push(finding.text.clone()),
        }
    }
    if left.is_empty() {
        return blank.lines(accepted);
    }
    let reason = counted(left.len(), "finding");
    blank
        .fail(reason)
        .lines(left.into_iter().chain(accepted).collect())
}

/// A finding of the rules with the number of its patch.
fn numbered(subject: &Subject, finding: &rules::Finding) -> Finding {
    let patch = if finding.patch == "cover letter" {
        Some(0)
    } else {
        let fits = |name: &str| finding.patch == format!("patch `{name}`");
        subject
            .patches
            .iter()
            .position(|patch| fits(&patch.name))
            .map(|index| index + 1)
    };
    Finding {
        patch,
        rule: finding.rule,
        text: format!("{finding}; {}", finding.fix),
    }
}

/// `base-commit:` lines that name a commit which others cannot have.
fn unknown_bases(subject: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    for mail in &subject.mails {
        for line in mail.bytes.lines() {
            let Some(id) = line.strip_prefix(b"base-commit: ") else {
                continue;
            };
            let is_known = subject.official && id == subject.base.commit_id.to_string().as_bytes();
            if !is_known {
                let id = shown_text(id);
                let text = format!(
                    "`base-commit: {id}` is no commit that others have ({BASE_COMMIT}); leave it out and name the release"
                );
                findings.push(Finding {
                    patch: Some(mail.number),
                    rule: BASE_COMMIT,
                    text,
                });
            }
        }
    }
    findings
}
