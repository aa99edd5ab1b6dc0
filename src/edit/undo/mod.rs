//! Takes an edit out of a file again: what its file would be without it.
//!
//! Hides how that is found: the edit's own text is looked for where it would stand, and what it took the place of is put back. None of it
//! needs to be right. A way is only one if the edit, made again, gives the very file; and whoever takes out a whole patch has to make it anew.

mod added;
mod draft;
mod miss;
mod original;
mod places;
mod replaced;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use self::draft::{Draft, Holes, mark};
use self::original::originals;
use super::{Search, make};
use crate::recipe::{Action, EditSpec, Fact, Spot, Target, Text};
use crate::syntax::{Function, Source};
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
                Ok(self.include(source, &format!("#include <{header}>")))
            }
            Action::Insert(Spot::Sorted(line), _) => Ok(self.sorted(source, line)),
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
    ) -> Option<Way> {
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
        same.then(|| Way {
            file: Some(file),
            flags: drafted.flags.clone(),
            rewritten: None,
            seen: Seen::Text(at),
        })
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
}

/// A path whose value is yes or no.
fn flag(input: &Fact) -> Option<&String> {
    let Fact::Text(path) = input else {
        return None;
    };
    let words: Vec<&str> = path.split('.').collect();
    let is_flag = matches!(
        words.as_slice(),
        ["facts", _] | [_, _, "present"] | [_, _, "uses", _] | ["base", "official" | "imported"]
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
