//! Accounts for every mention of a function that a patch changes for those who call it: it takes other parameters, or something that it
//! did is done elsewhere. A mention that no edit of the patch is about would be left with the old function in mind.
//!
//! Mentions are followed through the patch's edits as places in the file, so that the same words elsewhere do not do.

use std::cell::RefCell;
use std::ops::Range;

use anyhow::Result;
use bstr::ByteSlice;

use super::ground::Ground;
use crate::edit::moved::Pending;
use crate::error::Refusal;
use crate::index::Kind;
use crate::index::lex::{Token as Lexed, tokens_in};
use crate::recipe::{EditSpec, PatchSpec};
use crate::shape::quote;
use crate::syntax::{Function, Source, mentions as words};

/// One edit that a patch has made.
pub(super) struct Step {
    /// The file.
    pub(super) file: String,
    /// It before.
    pub(super) before: Source,
    /// It after.
    pub(super) after: Source,
    /// The statements that the edit is about, in the file before.
    pub(super) target: Range<usize>,
}

/// A function that is not for its callers what it was.
pub(super) struct Changed {
    /// Its name.
    pub(super) name: String,
    /// The file that defines it.
    pub(super) file: String,
    /// The edit that changes it.
    pub(super) edit: EditSpec,
    /// What is changed, for a person: `takes other parameters`.
    pub(super) how: &'static str,
    /// Whether calls must have as many arguments as it has parameters now.
    pub(super) parameters: bool,
}

/// What a patch has done so far.
#[derive(Default)]
pub(super) struct Trail {
    pub(super) steps: Vec<Step>,
    pub(super) changed: Vec<Changed>,
    /// Names that nothing declared when they were used, with the file.
    pub(super) pending: RefCell<Vec<(String, Pending)>>,
}

impl Trail {
    /// Refuses a patch that leaves a mention unaccounted for, or uses a name that nothing declares.
    pub(super) fn settle(&self, patch: &PatchSpec, ground: &Ground<'_>) -> Result<()> {
        for (path, pending) in self.pending.take() {
            if !pending.is_met_by(&ground.kinds(&pending.name, &path)?) {
                return Err(pending.error);
            }
        }
        for changed in &self.changed {
            nobody_else_sees(changed, patch, ground)?;
            let mut steps = self.steps.iter().filter(|step| step.file == changed.file);
            let Some(first) = steps.next() else { continue };
            for at in mentions(&first.before, &changed.name)? {
                if !self.is_accounted_for(changed, at) {
                    return Err(left(changed, patch, (&first.before, &changed.file), at));
                }
            }
            if changed.parameters
                && let Some(last) = self.steps.iter().rfind(|step| step.file == changed.file)
            {
                calls_fit(changed, patch, &last.after)?;
            }
        }
        Ok(())
    }

    /// Follows a mention through the edits of its file until one is about it.
    fn is_accounted_for(&self, changed: &Changed, mut at: usize) -> bool {
        for step in self.steps.iter().filter(|step| step.file == changed.file) {
            match step.follow(at) {
                Some(next) => at = next,
                None => return true,
            }
        }
        false
    }
}

/// A function that a header declares may be called from anywhere.
fn nobody_else_sees(changed: &Changed, patch: &PatchSpec, ground: &Ground<'_>) -> Result<()> {
    let others = ground.places_outside(&changed.name, &changed.file)?;
    let Some(other) = others.first() else {
        return no_part_mentions(changed, patch, ground);
    };
    let Changed {
        name, edit, how, ..
    } = changed;
    Err(Refusal::drift(format!(
        "patch `{}`, edit `{}`: `{name}()` {how}, but `{other}` declares it on this base, so that other files can call it",
        patch.name, edit.name
    ))
    .hint(format!("look who calls it there, then mend {}", edit.place))
    .into())
}

impl Step {
    /// Where what was at `at` is after the edit; `None` where the edit is about it.
    fn follow(&self, at: usize) -> Option<usize> {
        if self.target.contains(&at) {
            return None;
        }
        let (before, after) = (self.before.text(), self.after.text());
        if at >= self.target.end {
            // Whatever an edit writes, it writes in front of what follows its place.
            let behind = before.len() - at;
            return after.len().checked_sub(behind);
        }
        let same = before
            .iter()
            .zip(after)
            .take_while(|(old, new)| old == new)
            .count();
        if at < same {
            return Some(at);
        }
        // A new function stands in front of the one that the statements were in.
        let moved = &before[same..self.target.start.max(same)];
        let shift = bstr::ByteSlice::find(&after[same..], moved)?;
        Some(at + shift)
    }
}

/// A file that is included and is no header for others is a part of the file: what it says of the function would be left behind.
fn no_part_mentions(changed: &Changed, patch: &PatchSpec, ground: &Ground<'_>) -> Result<()> {
    for (path, source) in ground.parts()? {
        let is_other = *path != changed.file;
        if let Some(at) = words(source.text(), &changed.name)
            .first()
            .filter(|_| is_other)
        {
            return Err(left(changed, patch, (source, path), *at));
        }
    }
    Ok(())
}

/// Where a function is mentioned in code, its own head left out.
fn mentions(source: &Source, name: &str) -> Result<Vec<usize>> {
    let heads: Vec<_> = source
        .functions_named(name)?
        .iter()
        .map(|it: &Function| it.start..it.body.start)
        .collect();
    let found = words(source.text(), name).into_iter();
    let mut found: Vec<_> = found
        .filter(|at| !heads.iter().any(|head| head.contains(at)))
        .filter(|at| !is_selected(source, *at))
        .collect();
    // A structure may have a member of the name. Calls are none: only what is left is worth the scan.
    if found.iter().any(|at| !is_called(source, *at, name)) {
        let definitions = crate::index::scan(source.text()).definitions;
        let in_structure = |at: &usize| {
            let mut tags = definitions.iter().filter(|it| it.kind == Kind::Tag);
            tags.any(|it| it.range.contains(at) && it.name != name)
        };
        found.retain(|at| !in_structure(at));
    }
    Ok(found)
}

/// Whether a member is selected there: the name is behind `.` or `->`.
fn is_selected(source: &Source, at: usize) -> bool {
    let before = source.text()[..at].trim_end();
    before.ends_with(b"->") || before.ends_with(b".") && !before.ends_with(b"..")
}

fn is_called(source: &Source, at: usize, name: &str) -> bool {
    let behind = &source.text()[at + name.len()..];
    behind.trim_start().starts_with(b"(")
}

/// Every call must have as many arguments as the function has parameters.
fn calls_fit(changed: &Changed, patch: &PatchSpec, source: &Source) -> Result<()> {
    let functions = source.functions_named(&changed.name)?;
    let Some(function) = functions.first() else {
        return Ok(());
    };
    for at in mentions(source, &changed.name)? {
        let rest = tokens_in(source.text(), at..source.text().len());
        if arguments(&rest[1..], source.text()) != Some(function.parameters.len()) {
            return Err(left(changed, patch, (source, &changed.file), at));
        }
    }
    Ok(())
}

/// How many arguments the brackets have that these tokens start with; `None` where they start with none.
fn arguments(tokens: &[Lexed], text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let (mut commas, mut any) = (0, false);
    for token in tokens {
        match token.text(text) {
            b"(" | b"[" | b"{" => depth += 1,
            b")" | b"]" | b"}" => depth = depth.checked_sub(1)?,
            b"," if depth == 1 => commas += 1,
            _ if depth == 0 => return None,
            _ => any = true,
        }
        if depth == 0 {
            return Some(if any || commas > 0 { commas + 1 } else { 0 });
        }
    }
    None
}

fn left(
    changed: &Changed,
    patch: &PatchSpec,
    (source, file): (&Source, &str),
    at: usize,
) -> anyhow::Error {
    let Changed {
        name, edit, how, ..
    } = changed;
    Refusal::drift(format!(
        "patch `{}`, edit `{}`: `{name}()` {how}, but {file}:{} mentions it, and no edit of the patch is about that",
        patch.name,
        edit.name,
        source.line(at)
    ))
    .details(quote(source, file, &(at..at + name.len())))
    .hint(format!("look what the base does there, then add an edit for it, or mend {}", edit.place))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(before: &str, after: &str, target: Range<usize>) -> Step {
        let source = |text: &str| Source::new(text.as_bytes().to_vec());
        Step {
            file: "a.c".to_owned(),
            before: source(before),
            after: source(after),
            target,
        }
    }

    #[test]
    fn a_place_is_followed_through_an_edit() {
        let replaced = step("one two three", "one TWOTWO three", 4..7);
        assert_eq!(
            [0, 4, 6, 8].map(|at| replaced.follow(at)),
            [Some(0), None, None, Some(11)]
        );
        let extracted = step(
            "head f(x) { a; b; } tail",
            "head g(y) { b; } f(x) { a; } tail",
            15..17,
        );
        assert_eq!(extracted.follow(0), Some(0));
        assert_eq!(extracted.follow(12), Some(24), "`a` of `f`");
        assert_eq!(extracted.follow(20), Some(29), "`tail`");
        let inserted = step("a b", "a new b", 2..2);
        assert_eq!([0, 2].map(|at| inserted.follow(at)), [Some(0), Some(6)]);
    }

    #[test]
    fn arguments_are_counted_at_their_own_depth() {
        let count =
            |text: &str| arguments(&tokens_in(text.as_bytes(), 0..text.len()), text.as_bytes());
        assert_eq!(count("()"), Some(0));
        assert_eq!(count("(a)"), Some(1));
        assert_eq!(count("(a, g(b, c), (d, e))"), Some(3));
        assert_eq!(count("; (a)"), None);
        assert_eq!(count("(a"), None);
    }

    #[test]
    fn mentions_are_in_code_and_not_in_the_head() {
        let source = Source::new(b"void f(void);\n/* f */\nvoid f(void)\n{\n\tg(\"f\");\n}\n#define A f\nvoid h(void)\n{\n\tf();\n}\n".to_vec());
        assert_eq!(mentions(&source, "f").expect("mentions").len(), 3);
    }
}
