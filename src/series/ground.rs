//! What a base is beyond the lines that a series edits: the names that its files see, and what the series rests on.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use anyhow::Result;

use super::tree::Tree;
use crate::error::Refusal;
use crate::facts::Files;
use crate::index::{Index, Kind, Question, scan};
use crate::recipe::{Action, EditSpec, Recipe};
use crate::repo::{Base, Repo};
use crate::rests::{self, Item, Root, Standing};
use crate::shape::Sees;
use crate::syntax::Source;

/// What a base is beyond the edited lines. The index is made when the first question needs it.
pub(super) struct Ground<'a> {
    repo: &'a Repo,
    base: &'a Base,
    question: Question,
    index: OnceCell<Index<'a>>,
    parts: OnceCell<Vec<(String, Source)>>,
    /// The files that the series makes: on a base that has its first patches they are there.
    made: Vec<String>,
    /// What the series has added so far: names, what they are, and the file they are in.
    added: RefCell<BTreeMap<String, Vec<(Kind, String)>>>,
}

impl<'a> Ground<'a> {
    /// The ground of a recipe on a base.
    pub(super) fn new(repo: &'a Repo, base: &'a Base, recipe: &Recipe) -> Self {
        let is_c = |path: &String| path.ends_with(".c") || path.ends_with(".h");
        let functions = recipe
            .functions
            .iter()
            .map(|function| function.file.clone());
        let edits = recipe.patches.iter().flat_map(|patch| &patch.edits);
        let edited = edits.map(|edit| edit.file.clone());
        let files = functions.chain(edited).filter(is_c).collect();
        Self {
            repo,
            base,
            question: rests::question(recipe, files),
            made: recipe
                .patches
                .iter()
                .flat_map(|patch| &patch.edits)
                .filter(|edit| matches!(edit.action, Action::Create(_)))
                .map(|edit| edit.file.clone())
                .collect(),
            index: OnceCell::new(),
            parts: OnceCell::new(),
            added: RefCell::default(),
        }
    }

    pub(super) fn index(&self) -> Result<&Index<'a>> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let cache = rests::cache();
        let index = Index::of(
            self.repo,
            self.base.tree_id,
            &self.question,
            cache.as_deref(),
        )?;
        Ok(self.index.get_or_init(|| index))
    }

    /// The definitions that the series reaches on the base, where the recipe says what it rests on.
    pub(super) fn reached(&self, tree: &mut Tree<'_>, recipe: &Recipe) -> Result<Vec<Item>> {
        let Some(spec) = &recipe.rests_on else {
            return Ok(Vec::new());
        };
        let mut functions = Vec::new();
        for function in &recipe.functions {
            let source = tree.source(&function.file)?;
            let found = source
                .as_ref()
                .map(|source| source.functions_named(&function.name));
            for it in found.transpose()?.unwrap_or_default() {
                let text = source
                    .as_ref()
                    .map(|source| source.slice(it.start..it.range.end).to_vec());
                functions.push(Root {
                    name: function.name.clone(),
                    text: text.unwrap_or_default(),
                    path: Some(function.file.clone()),
                });
            }
        }
        rests::reached(self.index()?, recipe, spec, functions)
    }

    /// What a name is for code in the file at `path`.
    pub(super) fn kinds(&self, name: &str, path: &str) -> Result<Vec<Kind>> {
        Ok(self
            .found(name)?
            .into_iter()
            .filter(|(_, file)| is_seen(file, path))
            .map(|(kind, _)| kind)
            .collect())
    }

    /// What a name is for code in the file at `path`, the file itself left out.
    pub(super) fn kinds_outside(&self, name: &str, path: &str) -> Result<Vec<Kind>> {
        let found = self.found(name)?.into_iter();
        let outside = found
            .filter(|(_, file)| file != path && !self.made.contains(file) && is_seen(file, path));
        Ok(outside.map(|(kind, _)| kind).collect())
    }

    /// The files other than the one at `path` that define or declare a name.
    pub(super) fn places_outside(&self, name: &str, path: &str) -> Result<Vec<String>> {
        let found = self.found(name)?.into_iter();
        let outside = found
            .filter(|(_, file)| file != path && !self.made.contains(file) && is_seen(file, path));
        Ok(outside.map(|(_, file)| file).collect())
    }

    /// What the C files include from outside of the headers' directories, with the paths; read once.
    pub(super) fn parts(&self) -> Result<&[(String, Source)]> {
        if let Some(parts) = self.parts.get() {
            return Ok(parts);
        }
        let mut parts = Vec::new();
        for path in self.index()?.files() {
            let is_header = path.starts_with("include/") || path.starts_with("arch/");
            if is_header || path.ends_with(".c") {
                continue;
            }
            let file = self.repo.file(self.base.tree_id, path.as_str().into())?;
            parts.extend(file.map(|file| (path.clone(), Source::new(file.bytes))));
        }
        Ok(self.parts.get_or_init(|| parts))
    }

    fn found(&self, name: &str) -> Result<Vec<(Kind, String)>> {
        let base = self.index()?.kinds(name).into_iter();
        let mut found: Vec<_> = base.map(|(kind, path)| (kind, path.to_owned())).collect();
        found.extend(self.added.borrow().get(name).into_iter().flatten().cloned());
        Ok(found)
    }

    /// Takes in the definitions that an edit has written to a file.
    pub(super) fn add(&self, path: &str, text: &str) {
        let mut added = self.added.borrow_mut();
        for definition in scan(text.as_bytes()).definitions {
            let names = added.entry(definition.name).or_default();
            names.push((definition.kind, path.to_owned()));
        }
    }

    /// Refuses a new file that defines what the base has already.
    pub(super) fn is_new(&self, edit: &EditSpec, text: &str) -> Result<()> {
        for definition in scan(text.as_bytes()).definitions {
            let known = self.index()?.kinds(&definition.name);
            let other = known
                .into_iter()
                .find(|(_, path)| !self.made.iter().any(|it| it == path) && !path.ends_with(".c"));
            if let Some((kind, path)) = other {
                return Err(crate::edit::moved::taken(
                    edit,
                    &definition.name,
                    kind,
                    path,
                ));
            }
        }
        Ok(())
    }
}

impl Sees for Ground<'_> {
    fn definitions(&self, name: &str) -> Vec<(Kind, Vec<u8>)> {
        let found = self.index().and_then(|index| index.definitions(name));
        let seen = found.unwrap_or_default().into_iter().filter(|found| {
            self.question.files.contains(&found.path) || !found.path.ends_with(".c")
        });
        seen.map(|found| (found.definition.kind, found.text().to_vec()))
            .collect()
    }
}

/// Whether code in the file at `path` sees what is in `file`.
fn is_seen(file: &str, path: &str) -> bool {
    file == path || !file.ends_with(".c")
}

/// The refusal of a base that is unproven, for who wants proof.
#[must_use]
pub fn unproven(standing: &Standing, command: &str) -> Refusal {
    Refusal::drift(format!("this base is unproven: {}", standing.sentence()))
        .details(standing.details())
        .hint(format!("`{command}` proves it where the gates pass; `--unproven` goes on without proof and says so in the cover letter"))
}
