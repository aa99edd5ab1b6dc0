//! A base without the first patches of a series: their edits are taken out of its files, the last one first.
//!
//! Hides the search for the files that give the base again. It needs no history, and nobody has to believe it: what it finds is proven by
//! whoever asks, who makes the patches on it anew.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::tree::Tree;
use super::write::edit_texts;
use crate::edit::{Flags, Miss, Search, Seen, Undo, Way};
use crate::exec::check_interrupted;
use crate::recipe::{EditSpec, Fact, PatchSpec, Recipe};
use crate::repo::{File, MODE_FILE};
use crate::syntax::Source;
use crate::template::Templates;

/// Files by path; `None` is one that is not there.
pub(super) type Files = BTreeMap<String, Option<File>>;

/// How many edits are taken out, and put back, in one search.
const MOST_LOOKS: usize = 1000;

/// The files of a base while edits are taken out.
#[derive(Clone)]
pub(super) struct State {
    files: BTreeMap<String, Option<(u32, Source)>>,
    /// The facts, as the edits that were there tell them.
    pub(super) flags: Flags,
    /// The functions that an edit which is out already has written anew.
    rewritten: BTreeSet<String>,
}

/// Takes the edits of a recipe out of a base.
pub(super) struct Without<'a> {
    recipe: &'a Recipe,
    templates: Templates,
    /// The edits in the order in which they are made.
    pub(super) edits: Vec<(&'a PatchSpec, &'a EditSpec)>,
    looks: usize,
}

/// Judges what was found.
pub(super) type Proof<'p> = dyn FnMut(&Files) -> Result<bool> + 'p;

impl<'a> Without<'a> {
    /// For the edits of the first `patches` patches.
    pub(super) fn new(recipe: &'a Recipe, patches: usize) -> Result<Self> {
        let patches = recipe.patches[..patches].iter();
        let edits = patches.flat_map(|patch| patch.edits.iter().map(move |edit| (patch, edit)));
        Ok(Self {
            recipe,
            templates: Templates::new()?,
            edits: edits.collect(),
            looks: 0,
        })
    }

    /// The files that change, as they would be without the edits; the first that `proof` accepts.
    pub(super) fn find(
        &mut self,
        tree: &mut Tree<'_>,
        proof: &mut Proof<'_>,
    ) -> Result<Option<Files>> {
        let start = State::of(tree, &self.edits)?;
        self.search(&start, &start, self.edits.len(), proof)
    }

    fn search(
        &mut self,
        start: &State,
        state: &State,
        left: usize,
        proof: &mut Proof<'_>,
    ) -> Result<Option<Files>> {
        check_interrupted()?;
        let Some(index) = left.checked_sub(1) else {
            let files = state.changed(start);
            return Ok(if proof(&files)? { Some(files) } else { None });
        };
        self.looks += 1;
        for way in self.ways(state, index)? {
            if self.looks > MOST_LOOKS {
                break;
            }
            let next = state.with(self.edits[index].1, way);
            if let Some(found) = self.search(start, &next, index, proof)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The ways to be without one edit.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is of one lifetime"
    )]
    pub(super) fn ways(&mut self, state: &State, index: usize) -> Result<Vec<Way>> {
        let (_, edit) = self.edits[index];
        let wanted = edit.when.iter().filter_map(|(name, value)| match value {
            Fact::Flag(value) => Some((format!("facts.{name}"), *value)),
            Fact::Text(_) => None,
        });
        let wanted: Flags = wanted.collect();
        let untouched = Way {
            file: state.files[&edit.file]
                .as_ref()
                .map(|(_, source)| source.clone()),
            flags: Flags::new(),
            rewritten: None,
            seen: Seen::Unwanted,
        };
        if wanted
            .iter()
            .any(|(fact, value)| state.flags.get(fact) == Some(&!value))
        {
            return Ok(vec![untouched]);
        }
        let mut flags = state.flags.clone();
        flags.extend(wanted.clone());
        let mut ways = self.undo(state, index, &flags, |undo| undo.ways())?;
        for way in &mut ways {
            way.flags.extend(wanted.clone());
        }
        // On a base where the facts are otherwise it was not made.
        let open = wanted
            .iter()
            .find(|(fact, _)| !state.flags.contains_key(*fact));
        if let Some((fact, value)) = open {
            let mut flags = Flags::new();
            if wanted.len() == 1 {
                flags.insert(fact.clone(), !value);
            }
            ways.push(Way { flags, ..untouched });
        }
        Ok(ways)
    }

    /// Where an edit whose text is not there would be.
    pub(super) fn miss(&mut self, state: &State, index: usize) -> Result<Option<Miss>> {
        self.undo(state, index, &state.flags, |undo| Ok(undo.miss()))
    }

    /// The state without what has a name of an edit's, whatever it is.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is of one lifetime"
    )]
    pub(super) fn forced(&mut self, state: &State, index: usize) -> Result<State> {
        let way = self.undo(state, index, &state.flags, |undo| undo.by_name())?;
        let edit = self.edits[index].1;
        Ok(way.map_or_else(|| state.clone(), |way| state.with(edit, way)))
    }

    fn undo<T>(
        &mut self,
        state: &State,
        index: usize,
        flags: &Flags,
        then: impl FnOnce(&mut Undo<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let (patch, edit) = self.edits[index];
        let earlier: Vec<_> = self.edits[..index].iter().map(|(_, edit)| *edit).collect();
        let defined = earlier.iter().flat_map(|edit| edit.defines.iter().cloned());
        let (recipe, templates) = (self.recipe, &mut self.templates);
        let mut undo = Undo {
            search: Search {
                patch: &patch.name,
                edit,
                functions: &recipe.functions,
                defined: defined.collect(),
            },
            source: state.source(&edit.file),
            flags,
            rewritten: &state.rewritten,
            earlier: &earlier,
            render: &mut |edit, texts, inputs| edit_texts(templates, recipe, edit, texts, inputs),
        };
        then(&mut undo)
    }
}

impl State {
    /// The files of a base that edits are about.
    pub(super) fn of(tree: &mut Tree<'_>, edits: &[(&PatchSpec, &EditSpec)]) -> Result<Self> {
        let mut files = BTreeMap::new();
        for (_, edit) in edits {
            let entry = tree.entry(&edit.file)?;
            let file = entry.map(|entry| (entry.mode, Source::new(entry.bytes.clone())));
            files.insert(edit.file.clone(), file);
        }
        Ok(Self {
            files,
            flags: Flags::new(),
            rewritten: BTreeSet::new(),
        })
    }

    /// A file as it is by now.
    pub(super) fn source(&self, path: &str) -> Option<&Source> {
        let file = self.files.get(path).and_then(Option::as_ref);
        file.map(|(_, source)| source)
    }

    /// The state without an edit, in one of the ways to be so.
    pub(super) fn with(&self, edit: &EditSpec, way: Way) -> Self {
        let mut state = self.clone();
        let mode = self.files[&edit.file]
            .as_ref()
            .map_or(MODE_FILE, |(mode, _)| *mode);
        let file = way.file.map(|source| (mode, source));
        state.files.insert(edit.file.clone(), file);
        state.flags.extend(way.flags);
        state.rewritten.extend(way.rewritten);
        state
    }

    /// The files that are not as they were.
    fn changed(&self, start: &Self) -> Files {
        let text =
            |file: &Option<(u32, Source)>| file.as_ref().map(|(_, source)| source.text().to_vec());
        let files = self.files.iter();
        let files = files.filter(|(path, file)| text(file) != text(&start.files[*path]));
        let file = |(mode, source): &(u32, Source)| File {
            mode: *mode,
            bytes: source.text().to_vec(),
        };
        files
            .map(|(path, now)| (path.clone(), now.as_ref().map(file)))
            .collect()
    }
}
