//! Takes an edit out of a file again: what its file would be without it.
//!
//! Hides how that is found: the edit's own text is looked for where it would stand, and what it took the place of is put back. None of it
//! needs to be right. A way is only one if the edit, made again, gives the very file; and whoever takes out a whole patch has to make it anew.

mod draft;
mod original;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::{Result, bail};
use bstr::ByteSlice;

use self::draft::{Draft, Found, Holes, mark};
use self::original::{originals, patterns};
use super::{Layout, Search, make};
use crate::carry;
use crate::facts::one_line;
use crate::recipe::{Action, EditSpec, Fact, Spot, Target, Text};
use crate::syntax::{Function, Source, line_end, line_start};
use crate::template::Inputs;

pub use self::draft::Miss;

/// What is known of the inputs that are yes or no, by their paths.
pub type Flags = BTreeMap<String, bool>;

/// Renders texts of an edit with these inputs.
pub(super) type RenderWith<'a> =
    dyn FnMut(&EditSpec, &[&Text], &Inputs) -> Result<Vec<String>> + 'a;

/// More flags than this are not tried out.
const MOST_FLAGS: usize = 5;
/// Ways that are followed for one edit.
const MOST_WAYS: usize = 4;

/// An edit to be taken out.
pub struct Undo<'a, 'r> {
    /// What it needs to find its place again; `defined` are the functions of the edits before it.
    pub search: Search<'a>,
    /// Its file; `None` where there is none.
    pub source: Option<&'a Source>,
    /// What is known by now.
    pub flags: &'a Flags,
    /// The functions that a later edit has written anew: what earlier ones did in them cannot be seen.
    pub rewritten: &'a BTreeSet<String>,
    /// The edits before it.
    pub earlier: &'a [&'a EditSpec],
    /// Renders texts.
    pub render: &'r mut RenderWith<'r>,
}

/// One way to be without the edit.
#[derive(Debug, Clone)]
pub struct Way {
    /// Its file then; `None` where there would be none.
    pub file: Option<Source>,
    /// What is known then besides.
    pub flags: Flags,
    /// The function that it has written anew.
    pub rewritten: Option<String>,
    /// What of the edit is to be seen in the file as it is.
    pub seen: Seen,
}

/// What of an edit is to be seen in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Its text, at this offset.
    Text(usize),
    /// A line at this offset that the base may have had before.
    Shared(usize),
    /// Nothing: its text is empty on this base, or a later edit has taken its place.
    Nothing,
    /// Nothing, for it is not made where the facts are so.
    Unwanted,
}

/// The texts of an edit with some of its inputs decided.
struct Drafted {
    flags: Flags,
    inputs: Inputs,
    texts: Vec<String>,
}

impl Undo<'_, '_> {
    /// The ways to be without it, the likeliest first; none where its text is not there.
    pub fn ways(&mut self) -> Result<Vec<Way>> {
        let Some(source) = self.source else {
            return Ok(Vec::new());
        };
        let edit = self.search.edit;
        let inside = self.function();
        if inside.is_some_and(|name| self.rewritten.contains(name)) {
            return Ok(vec![untouched(source, Seen::Nothing)]);
        }
        match &edit.action {
            Action::Create(text) => Ok(self.created(source, text)),
            Action::Insert(Spot::Parameter(name, text), _) => {
                self.parameter(source, name, text.trim())
            }
            Action::Insert(Spot::Include(header), _) => {
                self.include(source, &format!("#include <{header}>"))
            }
            Action::Insert(Spot::Sorted(line), _) => {
                let lines = lines_like(source.text(), line);
                self.without(source, lines)
            }
            Action::Insert(spot, text) => self.inserted(source, spot, text),
            Action::Replace(Target::Function(name), text) => Ok(self.rewrote(source, name, text)),
            Action::Replace(target, text) => self.replaced(source, target, text),
            Action::Extract {
                target,
                helper,
                call,
            } => self.extracted(source, target, helper, call),
        }
    }

    /// The function in which the edit changes something.
    fn function(&self) -> Option<&str> {
        let target = match &self.search.edit.action {
            Action::Insert(Spot::Parameter(name, _) | Spot::End(name), _) => return Some(name),
            Action::Create(_) | Action::Replace(Target::Function(_), _) => None,
            _ => self.search.edit.target(),
        };
        target.and_then(|target| self.name(target))
    }

    /// The name of the function that a target is in.
    fn name<'t>(&'t self, target: &'t Target) -> Option<&'t str> {
        match target {
            Target::Function(name) => Some(name),
            Target::Statement { function, .. } => Some(function),
            Target::Part { function, .. } => {
                let mut specs = self.search.functions.iter();
                let spec = specs.find(|spec| spec.id == *function);
                spec.map(|spec| spec.name.as_str())
            }
        }
    }

    /// The edit's texts, once for each way in which its flags may be.
    fn drafts(&mut self, texts: &[&Text]) -> Vec<Drafted> {
        self.drafts_of(self.search.edit, texts)
    }

    fn drafts_of(&mut self, edit: &EditSpec, texts: &[&Text]) -> Vec<Drafted> {
        let paths: BTreeSet<&String> = edit.inputs.values().filter_map(flag).collect();
        let known = |path: &&String| self.flags.contains_key(*path);
        let (known, open): (Vec<_>, Vec<_>) = paths.into_iter().partition(known);
        if open.len() > MOST_FLAGS {
            return Vec::new();
        }
        let mut drafted: Vec<Drafted> = Vec::new();
        for choice in (0..1_usize << open.len()).rev() {
            let open = open.iter().enumerate();
            let chosen = open.map(|(bit, path)| ((*path).clone(), choice >> bit & 1 == 1));
            let known = known
                .iter()
                .map(|path| ((*path).clone(), self.flags[*path]));
            let mut flags: Flags = known.chain(chosen).collect();
            let inputs = marked(edit, &flags);
            let Ok(texts) = (self.render)(edit, texts, &inputs) else {
                continue;
            };
            if let Some(same) = drafted.iter_mut().find(|it| it.texts == texts) {
                // What makes no difference stays open.
                same.flags
                    .retain(|path, value| flags.get(path) == Some(value));
                continue;
            }
            flags.retain(|path, _| !self.flags.contains_key(path));
            drafted.push(Drafted {
                flags,
                inputs,
                texts,
            });
        }
        drafted
    }

    fn created(&mut self, source: &Source, text: &Text) -> Vec<Way> {
        let all = 0..source.text().len();
        let drafts = self.drafts(&[text]).into_iter();
        let is_it = |drafted: &Drafted| {
            let whole = format!("{}\n", drafted.texts[0].trim_end_matches('\n'));
            let draft = Draft::read(&whole);
            let found = draft.and_then(|it| it.at(source.text(), all.clone(), &Holes::new()).ok());
            found.is_some_and(|found| found.iter().any(|found| found.range == all))
        };
        let ways = drafts.filter(is_it).map(|drafted| Way {
            file: None,
            flags: drafted.flags,
            rewritten: None,
            seen: Seen::Text(0),
        });
        ways.collect()
    }

    fn parameter(&mut self, source: &Source, name: &str, text: &str) -> Result<Vec<Way>> {
        let Some(function) = only(source, name)? else {
            return Ok(Vec::new());
        };
        let end = function.parameters_end;
        let before = source
            .slice(function.start..end)
            .strip_suffix(text.as_bytes());
        let before = before.and_then(|before| before.trim_end().strip_suffix(b","));
        let found = before.map(|before| function.start + before.len()..end);
        self.without(source, found.into_iter().collect())
    }

    /// An include may have been there before, and so be nothing that the edit did.
    fn include(&mut self, source: &Source, line: &str) -> Result<Vec<Way>> {
        let text = source.text();
        let lines = lines_like(text, line);
        let there = lines.first().map(|range| range.start);
        let alone = lines.iter().filter_map(|range| {
            text[..range.start]
                .ends_with(b"\n\n")
                .then_some(range.start - 1..range.end)
        });
        let mut ways = self.without(source, lines.iter().cloned().chain(alone).collect())?;
        if let (true, Some(at)) = (ways.is_empty(), there) {
            ways.push(untouched(source, Seen::Shared(at)));
        }
        ways.truncate(1);
        for (way, at) in ways.iter_mut().zip(there) {
            way.seen = Seen::Shared(at);
        }
        Ok(ways)
    }

    /// The file without one of these ranges, where the edit puts it there again.
    fn without(&mut self, source: &Source, ranges: Vec<Range<usize>>) -> Result<Vec<Way>> {
        let drafted = Drafted {
            flags: Flags::new(),
            inputs: Inputs::new(),
            texts: Vec::new(),
        };
        let mut ways = Vec::new();
        for range in ranges {
            let at = range.start;
            let file = source.replace(range, b"");
            ways.extend(self.proven(source, file, &drafted, &Holes::new(), at)?);
        }
        Ok(ways)
    }

    fn inserted(&mut self, source: &Source, spot: &Spot, text: &Text) -> Result<Vec<Way>> {
        let edit = self.search.edit;
        if !edit.defines.is_empty() && edit.defines.iter().all(|it| self.rewritten.contains(it)) {
            let after = matches!(spot, Spot::AfterFunction(_));
            return Ok(self.removed(source, after)?.into_iter().collect());
        }
        let function = match spot {
            Spot::BeforeFunction(_) | Spot::AfterFunction(_) => None,
            _ => self.function(),
        };
        let Some(region) = region(source, function)? else {
            return Ok(Vec::new());
        };
        let mut ways = Vec::new();
        for drafted in self.drafts(&[text]) {
            let rendered = drafted.texts[0].clone();
            if rendered.trim().is_empty() {
                let flags = drafted.flags;
                ways.push(Way {
                    flags,
                    ..untouched(source, Seen::Nothing)
                });
                continue;
            }
            let layout = |indentation: &str| match spot {
                Spot::BeforeFunction(_) => Layout::DefinitionBefore,
                Spot::AfterFunction(_) => Layout::DefinitionAfter,
                Spot::End(_) => Layout::Lines("\t".to_owned()),
                _ => Layout::Lines(indentation.to_owned()),
            };
            for found in places(source, &region, &rendered, layout, &Holes::new()) {
                let at = text_start(source, found.range.start);
                let file = source.replace(found.range.clone(), b"");
                ways.extend(self.proven(source, file, &drafted, &found.holes, at)?);
                if ways.len() >= MOST_WAYS {
                    return Ok(ways);
                }
            }
        }
        Ok(ways)
    }

    /// The file without the functions that the edit defined and that a later edit has written anew.
    fn removed(&self, source: &Source, after: bool) -> Result<Option<Way>> {
        let mut file = source.clone();
        for name in &self.search.edit.defines {
            let Some(function) = only(&file, name)? else {
                return Ok(None);
            };
            let Range { mut start, mut end } = function.range;
            if after && file.text()[..start].ends_with(b"\n\n") {
                start -= 1;
            } else if !after && file.text()[end..].starts_with(b"\n") {
                end += 1;
            }
            file = file.replace(start..end, b"");
        }
        Ok(Some(Way {
            file: Some(file),
            ..untouched(source, Seen::Nothing)
        }))
    }

    /// A function that the edit has written anew: it stays, for nobody can see what it was, but what came with it goes.
    fn rewrote(&mut self, source: &Source, name: &str, text: &Text) -> Vec<Way> {
        let mut ways = Vec::new();
        let Ok(Some(function)) = only(source, name) else {
            return ways;
        };
        let known = self.rewritten.contains(name);
        for drafted in self.drafts(&[text]) {
            let region = 0..source.text().len();
            let layout = |_: &str| Layout::Definition;
            let found = places(source, &region, &drafted.texts[0], layout, &Holes::new());
            let is_it = |found: &&Found| {
                found.range.start <= function.range.start && function.range.end <= found.range.end
            };
            let range = found.iter().find(is_it).map(|found| found.range.clone());
            let range = range.or_else(|| known.then(|| function.range.clone()));
            ways.extend(range.map(|range| {
                let seen = if known {
                    Seen::Nothing
                } else {
                    Seen::Text(range.start)
                };
                let own = source.slice(function.range.clone()).to_vec();
                Way {
                    file: Some(source.replace(range, &own)),
                    flags: drafted.flags.clone(),
                    rewritten: Some(name.to_owned()),
                    seen,
                }
            }));
        }
        ways
    }

    fn replaced(&mut self, source: &Source, target: &Target, text: &Text) -> Result<Vec<Way>> {
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
                    ways.extend(self.proven(source, file, &drafted, &found.holes, at)?);
                }
                if ways.len() >= MOST_WAYS {
                    return Ok(ways);
                }
            }
        }
        Ok(ways)
    }

    fn extracted(
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
                    ways.extend(self.proven(source, file, &drafted, &holes, at)?);
                    if ways.len() >= MOST_WAYS {
                        return Ok(ways);
                    }
                }
            }
        }
        Ok(ways)
    }

    /// The file with the statements back in the place of the call that was left for them.
    fn merged_back(
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

    /// What a target may have been, where the holes stand for these texts. What an earlier edit wrote is laid out as that did it.
    fn originals(&mut self, target: &Target, holes: &Holes) -> Vec<String> {
        let inputs = self.search.edit.inputs.values();
        let values = inputs.enumerate().filter_map(|(number, input)| {
            let value = holes.get(&number)?;
            match input {
                Fact::Text(path) => Some((path.clone(), value.clone())),
                Fact::Flag(_) => None,
            }
        });
        let values: BTreeMap<_, _> = values.collect();
        let bare = originals(target, self.search.functions, &values);
        if values.contains_key("match.text") {
            return bare;
        }
        let written: Vec<_> = bare.iter().flat_map(|it| self.as_written(it)).collect();
        written.into_iter().chain(bare).collect()
    }

    /// Statements as earlier edits wrote them, if they did.
    fn as_written(&mut self, statements: &str) -> Vec<String> {
        let file = &self.search.edit.file;
        let mut found = Vec::new();
        for edit in self.earlier.iter().rev().filter(|edit| edit.file == *file) {
            let (Action::Insert(_, text) | Action::Replace(_, text)) = &edit.action else {
                continue;
            };
            for drafted in self.drafts_of(edit, &[text]) {
                let draft = Draft::read(drafted.texts[0].trim_end_matches('\n'));
                found.extend(draft.and_then(|draft| draft.laid_out(statements)));
            }
        }
        found
    }

    /// The way to `file`, if the edit makes of it what there is.
    fn proven(
        &mut self,
        source: &Source,
        file: Source,
        drafted: &Drafted,
        holes: &Holes,
        at: usize,
    ) -> Result<Option<Way>> {
        let edit = self.search.edit;
        let render = &mut self.render;
        let made = make(&self.search, &file, &mut |texts, anchor| {
            let mut inputs = drafted.inputs.clone();
            for (number, (name, input)) in edit.inputs.iter().enumerate() {
                let Some(value) = holes.get(&number) else {
                    continue;
                };
                let captured = match input {
                    Fact::Text(path) => anchor
                        .captures
                        .get(path.strip_prefix("match.").unwrap_or("")),
                    Fact::Flag(_) => None,
                };
                if captured.is_some_and(|captured| captured != value) {
                    bail!("the pattern captures something else");
                }
                inputs.insert(name.clone(), Fact::Text(value.clone()));
            }
            render(edit, texts, &inputs)
        });
        let same = made.is_ok_and(|(_, made)| made.text() == source.text());
        Ok(same.then(|| Way {
            file: Some(file),
            flags: drafted.flags.clone(),
            rewritten: None,
            seen: Seen::Text(at),
        }))
    }

    /// The file without whatever has a name of the edit's. That proves nothing.
    pub fn by_name(&mut self) -> Result<Option<Way>> {
        match (&self.search.edit.action, self.source) {
            (Action::Create(_), Some(source)) => Ok(Some(Way {
                file: None,
                ..untouched(source, Seen::Nothing)
            })),
            (Action::Insert(spot, _), Some(source)) => {
                self.removed(source, matches!(spot, Spot::AfterFunction(_)))
            }
            (Action::Extract { .. }, Some(source)) => self.removed(source, false),
            _ => Ok(None),
        }
    }

    /// Where a text of the edit that is not there would be, or where what has its name is another text.
    pub fn miss(&mut self) -> Option<Miss> {
        let source = self.source?;
        let edit = self.search.edit;
        if let Some(miss) = self.other_text(source) {
            return Some(miss);
        }
        let anchor = match &edit.action {
            Action::Create(_) => return None,
            Action::Insert(spot, _) => self.search.spot(source, spot),
            Action::Replace(target, _) | Action::Extract { target, .. } => {
                self.search.target(source, target)
            }
        };
        anchor.ok().map(|anchor| Miss {
            at: anchor.at,
            expected: String::new(),
        })
    }

    /// Where the file or the function that it makes stops being what it would make.
    fn other_text(&mut self, source: &Source) -> Option<Miss> {
        let edit = self.search.edit;
        let text = match &edit.action {
            Action::Create(text) | Action::Insert(_, text) | Action::Replace(_, text) => vec![text],
            Action::Extract { helper, call, .. } => vec![helper, call],
        };
        let region = match (&edit.action, edit.defines.first()) {
            (Action::Create(_), _) => 0..1,
            (_, Some(name)) => {
                let function = only(source, name).ok().flatten()?;
                function.range.start..function.start + 1
            }
            _ => return None,
        };
        let starts = line_starts(source.text(), &region);
        let mut misses = Vec::new();
        for drafted in self.drafts(&text) {
            let Some(draft) = Draft::read(drafted.texts[0].trim_end_matches('\n')) else {
                continue;
            };
            for start in &starts {
                let range = *start..source.text().len();
                match draft.at(source.text(), range, &Holes::new()) {
                    Err(miss) => misses.push(miss),
                    Ok(_) => return Some(self.other_place(source, *start)),
                }
            }
        }
        misses.into_iter().max_by_key(|miss| miss.at)
    }

    /// What is wrong with a text that is what the edit would write around code of the base's.
    fn other_place(&self, source: &Source, at: usize) -> Miss {
        let edit = self.search.edit;
        let patterns = match &edit.action {
            Action::Extract { target, .. } => patterns(target, self.search.functions),
            _ => Vec::new(),
        };
        let written: Vec<_> = patterns
            .iter()
            .map(|it| one_line(it.written().into()))
            .collect();
        let body = edit
            .defines
            .first()
            .and_then(|name| only(source, name).ok().flatten());
        match body {
            Some(function) if !written.is_empty() => Miss {
                at: text_start(source, function.body.start),
                expected: format!("nothing but `{}`", written.join("` or `")),
            },
            _ => Miss {
                at,
                expected: "the same, but at another place".to_owned(),
            },
        }
    }
}

/// A path whose value is yes or no.
fn flag(input: &Fact) -> Option<&String> {
    let Fact::Text(path) = input else {
        return None;
    };
    let words: Vec<&str> = path.split('.').collect();
    let is_flag = matches!(
        words.as_slice(),
        ["facts", _] | [_, _, "present"] | [_, _, "uses", _] | ["base", "official"]
    );
    (is_flag || path == "performance.present").then_some(path)
}

/// The inputs of an edit with these flags; a mark stands for each text.
fn marked(edit: &EditSpec, flags: &Flags) -> Inputs {
    let inputs = edit.inputs.iter().enumerate();
    let value = |(number, (name, input)): (usize, (&String, &Fact))| {
        let known = flag(input).and_then(|path| flags.get(path));
        let value = match (input, known) {
            (Fact::Flag(value), _) | (_, Some(value)) => Fact::Flag(*value),
            _ => Fact::Text(mark(number)),
        };
        (name.clone(), value)
    };
    inputs.map(value).collect()
}

fn untouched(source: &Source, seen: Seen) -> Way {
    Way {
        file: Some(source.clone()),
        flags: Flags::new(),
        rewritten: None,
        seen,
    }
}

/// The one function of this name.
fn only(source: &Source, name: &str) -> Result<Option<Function>> {
    let mut found = source.functions_named(name)?;
    Ok(if found.len() == 1 { found.pop() } else { None })
}

/// Where something of a function may be, or of the whole file; `None` where there is no such function.
fn region(source: &Source, function: Option<&str>) -> Result<Option<Range<usize>>> {
    match function {
        None => Ok(Some(0..source.text().len())),
        Some(name) => Ok(only(source, name)?.map(|function| function.body)),
    }
}

fn line_starts(text: &[u8], region: &Range<usize>) -> Vec<usize> {
    let newlines = text[region.clone()].find_iter("\n");
    let starts = newlines.map(|newline| region.start + newline + 1);
    let first = (line_start(text, region.start) == region.start).then_some(region.start);
    first
        .into_iter()
        .chain(starts)
        .filter(|start| *start < region.end)
        .collect()
}

/// The lines of a file that are this line.
fn lines_like(text: &[u8], line: &str) -> Vec<Range<usize>> {
    let ranges = line_starts(text, &(0..text.len())).into_iter();
    let ranges = ranges.map(|start| start..line_end(text, start));
    ranges
        .filter(|range| text[range.clone()].trim_end() == line.as_bytes())
        .collect()
}

/// Where a text stands in a region, laid out as the place wants it.
fn places(
    source: &Source,
    region: &Range<usize>,
    rendered: &str,
    layout: impl Fn(&str) -> Layout,
    holes: &Holes,
) -> Vec<Found> {
    let text = source.text();
    let mut drafts: BTreeMap<&[u8], Option<(Draft, bool)>> = BTreeMap::new();
    let mut found = Vec::new();
    for start in line_starts(text, region) {
        let blanks = |at: usize| text[at..].iter().take_while(|byte| b" \t".contains(byte));
        let line = if rendered.starts_with('\n') {
            line_end(text, start)
        } else {
            start
        };
        let indentation = &text[line..line + blanks(line).count()];
        let draft = drafts.entry(indentation).or_insert_with(|| {
            let layout = layout(indentation.to_str().ok()?);
            let inside = matches!(layout, Layout::Statements(_));
            Draft::read(&layout.lay_out(rendered)).map(|draft| (draft, inside))
        });
        if let Some((draft, inside)) = draft {
            let start = start + if *inside { indentation.len() } else { 0 };
            let end = region.end.max(start);
            found.extend(draft.at(text, start..end, holes).unwrap_or_default());
        }
    }
    found
}

/// The first byte behind `at` that is no white space.
fn text_start(source: &Source, at: usize) -> usize {
    let blank = source.text()[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace());
    at + blank.count()
}

/// The file with statements in the place of others, indented as these are.
fn put_back(source: &Source, range: Range<usize>, original: &str) -> Source {
    let start = line_start(source.text(), range.start);
    let indentation = source.slice(start..range.start).to_str_lossy().into_owned();
    let laid = Layout::Statements(indentation).lay_out(original);
    source.replace(range, &carry::unpack(&laid))
}
