//! Makes one edit of a file, whoever renders its texts.
//!
//! Hides in which order an edit's anchors are looked for, and what is proven in between.

use anyhow::Result;
use bstr::ByteSlice;

use super::{Anchor, Search, keeps_comments, replace, whole_file};
use crate::carry;
use crate::error::Refusal;
use crate::recipe::{Action, Spot, Target, Text};
use crate::shape::quote;
use crate::syntax::Source;

/// Renders texts of an edit for the anchor that was found.
pub type Render<'a> = dyn FnMut(&[&Text], &Anchor) -> Result<Vec<String>> + 'a;

/// Makes the edit that `search` is for in a file that is there; where it landed, and the file then.
pub fn make(
    search: &Search<'_>,
    source: &Source,
    render: &mut Render<'_>,
) -> Result<(Anchor, Source)> {
    let edit = search.edit;
    match &edit.action {
        // A new file has no anchor to be looked for.
        Action::Create(_) => Ok((whole_file(), source.clone())),
        Action::Insert(spot, text) => {
            let anchor = search.spot(source, spot)?;
            let rendered = render(&[text], &anchor)?.remove(0);
            is_new(search, source, &anchor, &rendered)?;
            let beside = matches!(spot, Spot::BeforeFunction(_) | Spot::AfterFunction(_));
            let changes = anchor.function_name().filter(|_| !beside);
            let new = replace(source, &anchor, &rendered, edit, changes, &edit.defines)?;
            Ok((anchor, new))
        }
        Action::Replace(target, text) => {
            let mut anchor = search.target(source, target)?;
            let rendered = render(&[text], &anchor)?;
            let mut inputs = edit.inputs.values();
            if !inputs.any(|input| input.is_path("match.text")) {
                anchor.leave_comments_above();
            }
            if !matches!(target, Target::Function(_)) {
                keeps_comments(source, &anchor, &rendered, edit)?;
            }
            let changes = anchor.function_name();
            let new = replace(source, &anchor, &rendered[0], edit, changes, &edit.defines)?;
            Ok((anchor, new))
        }
        Action::Extract {
            target,
            helper,
            call,
        } => {
            let anchor = search.target(source, target)?;
            let rendered = render(&[helper, call], &anchor)?;
            keeps_comments(source, &anchor, &rendered, edit)?;
            let changes = anchor.function_name();
            let shortened = replace(source, &anchor, &rendered[1], edit, changes, &[])?;
            let place = search.helper(&shortened, &anchor)?;
            let new = replace(&shortened, &place, &rendered[0], edit, None, &edit.defines)?;
            Ok((anchor, new))
        }
    }
}

/// Demands that what is to be inserted does not stand at its place already: the base would have it twice.
fn is_new(search: &Search<'_>, source: &Source, anchor: &Anchor, rendered: &str) -> Result<()> {
    let laid = anchor.lay_out(rendered);
    let at = anchor.range.start;
    let (before, behind) = source.text().split_at(at);
    let laid = &*carry::unpack(&laid);
    let there = if laid.trim_ascii().is_empty() {
        None
    } else if before.ends_with(laid) {
        Some(at - laid.len()..at)
    } else {
        behind.starts_with(laid).then(|| at..at + laid.len())
    };
    let Some(there) = there else {
        return Ok(());
    };
    let edit = search.edit;
    let blank = source
        .slice(there.clone())
        .bytes()
        .take_while(u8::is_ascii_whitespace);
    let start = there.start + blank.count();
    let place = format!("{}:{}", edit.file, source.line(start));
    Err(Refusal::drift(format!(
        "patch `{}`, edit `{}` inserts what the base has at {place} already",
        search.patch, edit.name
    ))
    .details(quote(source, &edit.file, &(start..there.end)))
    .hint(format!(
        "if the base has got it from elsewhere, take the edit out at {}",
        edit.place
    ))
    .into())
}
