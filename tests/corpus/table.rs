//! What was found, counted by group, and listed where it is not right.
//!
//! Hides how columns are laid out; the same counts make the table on the terminal and the one in `docs/`.

use std::collections::BTreeMap;

use crate::kinds::{Expects, Group};

/// What became of one kind on one base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Carried, and what it does is what the changed base does.
    Right,
    RefusedRightly,
    RefusedNeedlessly,
    /// Unproven, where that is as good an answer as any.
    Unproven,
    UnprovenNeedlessly,
    Wrong,
    /// An exit code that says neither done nor refused.
    Broken,
    /// Carried, and nobody has looked.
    Carried,
    /// The kind itself is mistaken: the changed base does not compile, or is not the same twice.
    Mistake,
}

impl Verdict {
    const COLUMNS: [(Self, &'static str); 9] = [
        (Self::Right, "right"),
        (Self::RefusedRightly, "refused rightly"),
        (Self::RefusedNeedlessly, "refused needlessly"),
        (Self::Unproven, "unproven"),
        (Self::UnprovenNeedlessly, "unproven needlessly"),
        (Self::Wrong, "WRONG"),
        (Self::Broken, "BROKEN"),
        (Self::Carried, "not judged"),
        (Self::Mistake, "MISTAKEN KIND"),
    ];

    fn name(self) -> &'static str {
        Self::COLUMNS
            .iter()
            .find(|(it, _)| *it == self)
            .map_or("", |(_, name)| name)
    }

    /// Whether it is listed one by one.
    fn is_listed(self) -> bool {
        !matches!(
            self,
            Self::Right | Self::RefusedRightly | Self::Unproven | Self::Carried
        )
    }
}

/// One kind on one base.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) kind: &'static str,
    pub(crate) group: Group,
    pub(crate) expects: Expects,
    pub(crate) base: String,
    pub(crate) verdict: Verdict,
    /// The first line of a message, or what differs.
    pub(crate) why: String,
    pub(crate) seconds: f64,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) found: Vec<Found>,
}

impl Table {
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.found.iter().filter(|it| it.verdict == verdict).count()
    }

    fn cell(&self, group: Option<Group>, verdict: Verdict) -> usize {
        let is = |it: &&Found| it.verdict == verdict && group.is_none_or(|group| it.group == group);
        self.found.iter().filter(is).count()
    }

    /// The columns that say something.
    fn columns(&self) -> Vec<(Verdict, &'static str)> {
        let optional = [Verdict::Broken, Verdict::Carried, Verdict::Mistake];
        let says = |(verdict, _): &(Verdict, &str)| {
            !optional.contains(verdict) || self.count(*verdict) > 0
        };
        Verdict::COLUMNS.into_iter().filter(says).collect()
    }

    /// The table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let columns = self.columns();
        let mut text = "| kind | runs |".to_owned();
        for (_, name) in &columns {
            text.push_str(&format!(" {name} |"));
        }
        text.push_str("\n|---|---|");
        text.push_str(&"---|".repeat(columns.len()));
        text.push('\n');
        let rows = Group::ALL.into_iter().map(Some).chain([None]);
        for group in rows {
            let runs: usize = columns.iter().map(|(it, _)| self.cell(group, *it)).sum();
            if runs == 0 {
                continue;
            }
            text.push_str(&format!(
                "| {} | {runs} |",
                group.map_or("all", Group::name)
            ));
            for (verdict, _) in &columns {
                text.push_str(&format!(" {} |", self.cell(group, *verdict)));
            }
            text.push('\n');
        }
        text
    }

    /// What is listed one by one, by verdict, kind and message.
    pub(crate) fn list(&self) -> String {
        let mut groups: BTreeMap<(Verdict, &str, &str), Vec<&str>> = BTreeMap::new();
        for it in self.found.iter().filter(|it| it.verdict.is_listed()) {
            let key = (it.verdict, it.kind, it.why.as_str());
            groups.entry(key).or_default().push(&it.base);
        }
        let mut text = String::new();
        let mut last = None;
        for ((verdict, kind, why), bases) in groups {
            if last != Some(verdict) {
                text.push_str(&format!("\n{}:\n\n", verdict.name()));
                last = Some(verdict);
            }
            text.push_str(&format!("- `{kind}` on {}: {why}\n", bases.join(", ")));
        }
        text
    }

    /// What was carried against the expectation, which is no proof that it is wrong.
    pub(crate) fn unexpected(&self) -> String {
        let carried = |it: &&Found| {
            it.expects == Expects::Refused
                && matches!(it.verdict, Verdict::Right | Verdict::Carried)
        };
        let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for it in self.found.iter().filter(carried) {
            kinds.entry(it.kind).or_default().push(&it.base);
        }
        let line =
            |(kind, bases): (&str, Vec<&str>)| format!("- `{kind}` on {}\n", bases.join(", "));
        kinds.into_iter().map(line).collect()
    }
}
