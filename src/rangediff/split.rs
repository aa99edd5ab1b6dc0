//! Tells that an old patch is now several.
//!
//! Hides what counts as the same change. Nothing is guessed: a patch is split only where each of its changes is found,
//! byte for byte and in the same file, in exactly one new patch, and not all in the same one.

use std::collections::{BTreeMap, BTreeSet};

use bstr::ByteSlice;

use super::text::Normal;
use super::{Kind, Pair};

/// One change: the file's title, and the lines with a sign that stand together.
type Change<'a> = (&'a [u8], Vec<&'a [u8]>);

/// Turns pairs whose old patch is split into [`Kind::Split`].
pub(super) fn remark(pairs: &mut [Pair], old: &[Normal], new: &[Normal]) {
    let old_places = places(old);
    let new_places = places(new);
    for pair in pairs {
        if !matches!(pair.kind, Kind::Changed | Kind::Dropped) {
            continue;
        }
        let Some(before) = pair.old else { continue };
        let into = holders(&old[before], &old_places, &new_places);
        if into.len() > 1 {
            pair.kind = Kind::Split;
            pair.into = into.into_iter().collect();
        }
    }
}

/// The new patches that hold the changes of an old one; none where one of its changes is nowhere, or in several.
fn holders(
    patch: &Normal,
    old: &BTreeMap<Change<'_>, BTreeSet<usize>>,
    new: &BTreeMap<Change<'_>, BTreeSet<usize>>,
) -> BTreeSet<usize> {
    let mut holders = BTreeSet::new();
    for change in changes(patch) {
        // What several old patches do alike tells nothing about any of them.
        if old.get(&change).is_some_and(|places| places.len() > 1) {
            continue;
        }
        match new.get(&change) {
            Some(places) if places.len() == 1 => holders.extend(places),
            _ => return BTreeSet::new(),
        }
    }
    holders
}

fn places(patches: &[Normal]) -> BTreeMap<Change<'_>, BTreeSet<usize>> {
    let mut places: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
    for (at, patch) in patches.iter().enumerate() {
        for change in changes(patch) {
            places.entry(change).or_default().insert(at);
        }
    }
    places
}

/// The changes of a patch, in order.
fn changes(patch: &Normal) -> Vec<Change<'_>> {
    let mut found: Vec<Change<'_>> = Vec::new();
    let mut file: &[u8] = b"";
    let mut goes_on = false;
    for line in patch.diff().lines_with_terminator() {
        let is_change = matches!(line.first(), Some(b'+' | b'-'));
        if is_change {
            match found.last_mut().filter(|_| goes_on) {
                Some((_, lines)) => lines.push(line),
                None => found.push((file, vec![line])),
            }
        } else if line.starts_with(b" ## ") && line.ends_with(b" ##\n") {
            file = line;
        }
        goes_on = is_change;
    }
    found
}
