//! What a run says of a new record, if it is not what a person knows already.
//!
//! Hides which differences are none: lines that moved, a neighbour's record that said the same.

use anyhow::Result;

use super::record::{Record, StandingRecord, Verdict};
use crate::gate::Status;
use crate::ui::{Ui, shown_text};

/// Lines of details that are told about one patch.
const TOLD: usize = 12;

/// Whether an earlier record says the same. Where a line is does not matter; a patch that drifted did so on this base.
fn is_known(record: &Record, before: &Record) -> bool {
    let words = |record: &Record| {
        let patches = record
            .patches
            .iter()
            .filter(|patch| patch.verdict > Verdict::Clean);
        let plain = |text: &str| {
            text.chars()
                .filter(|char| !char.is_ascii_digit())
                .collect::<String>()
        };
        let standing = record.standing.as_ref().and_then(StandingRecord::told);
        let standing = standing.map(|told| (String::new(), plain(&told)));
        patches
            .map(|patch| (patch.name.clone(), plain(&patch.reason)))
            .chain(standing)
            .collect::<Vec<_>>()
    };
    record.verdict != Verdict::Drifted
        && record.state() == before.state()
        && words(record) == words(before)
}

/// Tells of a new record, if it is not what a person knows already.
pub(super) fn tell(record: &Record, before: Option<&Record>, ui: Ui) -> Result<()> {
    let state = record.state();
    // A new base is told beside the one before it.
    let was = before.map(|before| {
        if before.base.name == record.base.name {
            before.state()
        } else {
            format!("{} on {}", before.state(), before.base.name)
        }
    });
    // What was proven on the base before is no news.
    let standing = record.standing.as_ref();
    let is_news = standing.is_some_and(StandingRecord::is_proven_here);
    if !is_news && before.is_some_and(|before| is_known(record, before)) {
        return Ok(());
    }
    let was = was.map_or(String::new(), |was| format!(" (was {was})"));
    let mut text = format!("{} on {}: {state}{was}\n", record.series, record.base.name);
    for patch in record
        .patches
        .iter()
        .filter(|patch| patch.verdict > Verdict::Clean)
    {
        text.push_str(&format!(
            "  {}: {}: {}\n",
            patch.name,
            patch.verdict.as_str(),
            patch.reason
        ));
        for line in patch.details.iter().take(TOLD) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    if let Some(standing) = standing.filter(|_| record.conflict.is_none()) {
        let told = standing.told();
        text.extend(told.iter().map(|told| format!("  {told}\n")));
        let details = standing.details.iter().filter(|_| told.is_some());
        text.extend(details.take(TOLD).map(|line| format!("  {line}\n")));
        let lacks = standing.lacks().take(TOLD);
        text.extend(lacks.map(|line| format!("  {line}\n")));
    }
    if let Some(conflict) = &record.conflict {
        for line in conflict.details.iter().take(TOLD) {
            text.push_str(&format!("  {line}\n"));
        }
        for suspect in &conflict.suspects {
            text.push_str(&format!(
                "  changed by {}: {}\n",
                suspect.shown(),
                suspect.what
            ));
        }
        text.push_str(&format!("  hint: {}\n", conflict.hint));
    }
    for gate in record
        .gates
        .iter()
        .filter(|gate| gate.status >= Status::Fail)
    {
        text.push_str(&format!("  {}: {}\n", gate.title(), gate.reason));
        for line in gate.lines.iter().take(TOLD) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    let lines: Vec<_> = text
        .lines()
        .map(|line| shown_text(line.as_bytes()))
        .collect();
    ui.text(&(lines.join("\n") + "\n"))
}
