//! Undoes what an edit put in the place of something else, which comes back: where it was, or out of the function that it was moved to.
//!
//! Hides that what was taken without leaving anything may have stood anywhere: it comes back at the end of the function.

use std::ops::Range;

use anyhow::Result;
use bstr::ByteSlice;

use super::draft::Holes;
use super::places::{places, region};
use super::{MOST_WAYS, Undo, Way, only};
use crate::carry;
use crate::edit::Layout;
use crate::recipe::{Target, Text};
use crate::syntax::{Source, line_start};

impl Undo<'_, '_> {
    pub(super) fn replaced(
        &mut self,
        source: &Source,
        target: &Target,
        text: &Text,
    ) -> Result<Vec<Way>> {
        let Some(region) = region(source, self.name(target))? else {
            return Ok(Vec::new());
        };
        let mut ways = Vec::new();
        for drafted in self.drafts(&[text]) {
            let rendered = drafted.texts[0].clone();
            let layout = |indentation: &str| Layout::Statements(indentation.to_owned());
            for found in places(source, &region, &rendered, layout, &Holes::new()) {
                for original in self.originals(target, &found.holes) {
                    let at = found.range.start;
                    let file = put_back(source, found.range.clone(), &original);
                    ways.extend(self.proven(source, file, &drafted, &found.holes, at));
                }
                if ways.len() >= MOST_WAYS {
                    return Ok(ways);
                }
            }
        }
        Ok(ways)
    }

    pub(super) fn extracted(
        &mut self,
        source: &Source,
        target: &Target,
        helper: &Text,
        call: &Text,
    ) -> Result<Vec<Way>> {
        let mut ways = Vec::new();
        for drafted in self.drafts(&[helper, call]) {
            let all = 0..source.text().len();
            let layout = |_: &str| Layout::DefinitionBefore;
            for helper in places(source, &all, &drafted.texts[0], layout, &Holes::new()) {
                let at = helper.range.start;
                let shorter = source.replace(helper.range.clone(), b"");
                let rest = self.merged_back(&shorter, target, &drafted.texts[1], &helper.holes)?;
                for (file, holes) in rest {
                    ways.extend(self.proven(source, file, &drafted, &holes, at));
                    if ways.len() >= MOST_WAYS {
                        return Ok(ways);
                    }
                }
            }
        }
        Ok(ways)
    }

    /// The file with the statements back in the place of the call that was left for them.
    pub(super) fn merged_back(
        &mut self,
        source: &Source,
        target: &Target,
        call: &str,
        holes: &Holes,
    ) -> Result<Vec<(Source, Holes)>> {
        let name = self.name(target);
        let (Some(region), Some(name)) = (region(source, name)?, name) else {
            return Ok(Vec::new());
        };
        let mut files = Vec::new();
        if call.trim().is_empty() {
            let Some(function) = only(source, name)? else {
                return Ok(files);
            };
            for original in self.originals(target, holes) {
                for blank in ["", "\n"] {
                    let end = function.body.end;
                    let lines = Layout::Lines("\t".to_owned()).lay_out(&original);
                    let lines = format!("{blank}{lines}");
                    let lines = carry::unpack(&lines);
                    files.push((source.replace(end..end, &lines), holes.clone()));
                }
            }
            return Ok(files);
        }
        let layout = |indentation: &str| Layout::Statements(indentation.to_owned());
        for found in places(source, &region, call, layout, holes) {
            for original in self.originals(target, &found.holes) {
                let file = put_back(source, found.range.clone(), &original);
                files.push((file, found.holes.clone()));
            }
        }
        Ok(files)
    }
}

/// The file with statements in the place of others, indented as these are.
fn put_back(source: &Source, range: Range<usize>, original: &str) -> Source {
    let start = line_start(source.text(), range.start);
    let indentation = source.slice(start..range.start).to_str_lossy().into_owned();
    let laid = Layout::Statements(indentation).lay_out(original);
    source.replace(range, &carry::unpack(&laid))
}
