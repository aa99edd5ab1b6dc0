//! Makes the patches of a recipe on a base, edit after edit.
//!
//! Hides the state between edits: the files so far, and which functions the series has defined.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice};

use super::Patch;
use super::conditional::{Defined, uses_are_below};
use super::ground::Ground;
use super::mentions::{Changed, Step, Trail};
use super::tree::Tree;
use super::write::Writer;
use crate::carry;
use crate::edit::moved::Moved;
use crate::edit::{Anchor, Landing, Search, make, whole_file};
use crate::error::{Exit, Refusal};
use crate::facts;
use crate::recipe::{Action, EditSpec, PatchSpec, Spot, Target, Text};
use crate::repo::{Commit, MODE_FILE, Repo};
use crate::shape::{Clash, Pair};
use crate::syntax::Source;

/// The state of one run.
pub(super) struct Run<'a> {
    repo: &'a Repo,
    tree: Tree<'a>,
    writer: Writer<'a>,
    ground: &'a Ground<'a>,
    landings: Vec<Landing>,
    /// The functions that the edits so far have defined.
    defined: Vec<Defined>,
    /// What the patch that is being made has done so far.
    trail: Trail,
    /// The files that patches in the base have changed.
    skipped: BTreeSet<String>,
}

impl<'a> Run<'a> {
    /// A run that has made nothing yet.
    pub(super) fn new(
        repo: &'a Repo,
        tree: Tree<'a>,
        writer: Writer<'a>,
        ground: &'a Ground<'a>,
    ) -> Self {
        Self {
            repo,
            tree,
            writer,
            ground,
            landings: Vec::new(),
            defined: Vec::new(),
            trail: Trail::default(),
            skipped: BTreeSet::new(),
        }
    }

    /// Where the edits landed, and the writer for what is left to write.
    pub(super) fn end(self) -> (Vec<Landing>, Writer<'a>) {
        (self.landings, self.writer)
    }

    /// Makes the edits of a patch that the base has: the next patches stand on it, but no commit is written. Whether what it made is
    /// exactly what the base has.
    pub(super) fn skip(&mut self, spec: &PatchSpec) -> Result<bool> {
        let landed = self.landings.len();
        for path in self.edits(spec)? {
            self.skipped.insert(path);
        }
        self.landings.truncate(landed);
        let base = self.writer.base;
        for path in &self.skipped {
            let wanted = self.repo.file(base.tree_id, path.as_str().into())?;
            let made = self.tree.entry(path)?;
            let made = made.map(|entry| (entry.mode, &entry.bytes));
            if made != wanted.as_ref().map(|file| (file.mode, &file.bytes)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the next patch, on the base or on the one before.
    pub(super) fn patch(&mut self, spec: &PatchSpec, before: Option<&Patch>) -> Result<Patch> {
        let touched = self.edits(spec)?;
        let mut files = Vec::new();
        for path in &touched {
            let entry = self.tree.entry(path)?;
            let entry = entry.context("a file that was edited is gone")?;
            let blob_id = self.repo.write_blob(&entry.bytes)?;
            files.push((BStr::new(path), entry.mode, blob_id));
        }
        let base = self.writer.base;
        let (parent_id, tree_id) = before.map_or((base.commit_id, base.tree_id), |patch| {
            (patch.commit.id, patch.commit.tree_id)
        });
        let tree_id = self.repo.write_tree(tree_id, &files)?;
        let author = self.writer.options.author.clone();
        let (message, notes) = self.writer.message(spec)?;
        let message = BString::from(message);
        let id = self
            .repo
            .write_commit(tree_id, Some(parent_id), &author, message.as_bstr())?;
        Ok(Patch {
            name: spec.name.clone(),
            commit: Commit {
                id,
                tree_id,
                parent_ids: vec![parent_id],
                committer: author.clone(),
                author,
                message,
            },
            notes,
            files: touched.into_iter().map(BString::from).collect(),
        })
    }

    /// Makes the edits of a patch; the files it touches, sorted.
    fn edits(&mut self, spec: &PatchSpec) -> Result<Vec<String>> {
        let mut touched = BTreeSet::new();
        self.trail = Trail::default();
        for edit in &spec.edits {
            if self.wanted(edit)? {
                self.edit(spec, edit)
                    .map_err(|error| self.placed(edit, error))?;
                touched.insert(edit.file.clone());
            }
        }
        if touched.is_empty() {
            return Err(Refusal::drift(format!(
                "patch `{}` changes nothing on this base",
                spec.name
            ))
            .hint(format!(
                "look at the `when`s of its edits in {}",
                spec.place.file
            ))
            .into());
        }
        self.trail.settle(spec, self.ground)?;
        for path in &touched {
            let mut steps = self.trail.steps.iter().filter(|step| step.file == *path);
            let Some(last) = steps.next_back() else {
                continue;
            };
            let defined = self.defined.iter().filter(|it| it.edit.file == *path);
            uses_are_below(&defined.collect::<Vec<_>>(), spec, &last.after)?;
        }
        Ok(touched.into_iter().collect())
    }

    /// Says that lines are counted in the file as it is by now, where that is not the base's any more.
    fn placed(&self, edit: &EditSpec, error: anyhow::Error) -> anyhow::Error {
        if !self
            .landings
            .iter()
            .any(|landing| landing.file == edit.file)
        {
            return error;
        }
        match error.downcast::<Refusal>() {
            Ok(mut refusal) if refusal.exit == Exit::Drift => {
                let note = "lines are counted in the file as the edits before this one left it";
                refusal.details.push(note.to_owned());
                refusal.details.extend(self.tree.notes(&edit.file));
                refusal.into()
            }
            Ok(refusal) => refusal.into(),
            Err(error) => error,
        }
    }

    /// Whether the facts are as an edit wants them.
    fn wanted(&self, edit: &EditSpec) -> Result<bool> {
        let mut wanted = true;
        for (name, value) in &edit.when {
            let found = self
                .writer
                .survey
                .facts
                .iter()
                .find(|fact| fact.name == *name)
                .ok_or_else(|| {
                    Refusal::usage(format!(
                        "{}: `when` asks for the fact `{name}`, which `series.toml` does not probe",
                        edit.place
                    ))
                    .hint("add a `[[fact]]`, or mend the name")
                })?;
            if std::mem::discriminant(&found.value) != std::mem::discriminant(value) {
                return Err(Refusal::usage(format!(
                    "{}: `when` compares `{name}` ({}) with {value}",
                    edit.place, found.value
                ))
                .hint("a fact is `true` or `false`")
                .into());
            }
            wanted &= found.value == *value;
        }
        Ok(wanted)
    }

    /// Makes one edit.
    fn edit(&mut self, patch: &PatchSpec, edit: &EditSpec) -> Result<()> {
        if let Action::Create(text) = &edit.action {
            return self.create(patch, edit, text);
        }
        let recipe = self.writer.recipe;
        let search = Search {
            patch: &patch.name,
            edit,
            functions: &recipe.functions,
            defined: self.defined.iter().map(|it| it.name.clone()).collect(),
        };
        let (source, mode) = self.existing(patch, edit)?;
        let writer = &mut self.writer;
        let mut written = Vec::new();
        let (anchor, new) = make(&search, &source, &mut |texts, anchor| {
            written = writer.edit_text(edit, texts, anchor)?;
            Ok(written.clone())
        })?;
        self.prove(edit, &source, &new, &anchor)?;
        self.ground.add(&edit.file, definitions(edit, &written));
        self.follow(edit, &source, &new, &anchor, &written);
        self.land(patch, edit, &source, &anchor);
        self.defined.extend(edit.defines.iter().map(|name| Defined {
            name: name.clone(),
            edit: edit.clone(),
        }));
        self.write(patch, edit, mode, new)
    }

    fn write(
        &mut self,
        patch: &PatchSpec,
        edit: &EditSpec,
        mode: u32,
        source: Source,
    ) -> Result<()> {
        let written = self.tree.write(&edit.file, mode, source);
        written.map_err(|Clash { pair: Pair { base, recipe }, why, .. }| {
            Refusal::drift(format!(
                "patch `{}`, edit `{}`: `{base}` is what the base calls the recipe's `{recipe}`, but {why}",
                patch.name, edit.name
            ))
            .hint(format!("use another name for it at {}", edit.place))
            .into()
        })
    }

    /// Keeps what an edit was about, and what it changes for others.
    fn follow(
        &mut self,
        edit: &EditSpec,
        before: &Source,
        after: &Source,
        anchor: &Anchor,
        written: &[String],
    ) {
        let (how, parameters) = match &edit.action {
            Action::Insert(Spot::Parameter(..), _) => ("takes another parameter", true),
            Action::Extract { .. } if written.last().is_some_and(|call| call.trim().is_empty()) => {
                ("does not do any more what moves out of it", false)
            }
            _ => ("", false),
        };
        if let Some(name) = anchor.function_name().filter(|_| !how.is_empty()) {
            self.trail.changed.push(Changed {
                name: name.to_owned(),
                file: edit.file.clone(),
                edit: edit.clone(),
                how,
                parameters,
            });
        }
        self.trail.steps.push(Step {
            file: edit.file.clone(),
            before: before.clone(),
            after: after.clone(),
            target: anchor.target.clone(),
        });
    }

    /// Proves that an edit's text means in its place what it says.
    fn prove(
        &self,
        edit: &EditSpec,
        before: &Source,
        after: &Source,
        anchor: &Anchor,
    ) -> Result<()> {
        let (ground, path) = (self.ground, edit.file.as_str());
        // Made here, so that what cannot be read is an error and not a name that nobody knows.
        ground.index()?;
        let steps = &self.trail.steps;
        let first = steps.iter().find(|step| step.file == path);
        Moved {
            edit,
            file: path,
            start: first.map_or(before, |step| &step.before),
            before,
            after,
            anchor,
            kinds: &|name| ground.kinds(name, path).unwrap_or_default(),
            pending: &|pending| {
                self.trail
                    .pending
                    .borrow_mut()
                    .push((edit.file.clone(), pending));
            },
            outside: &|name| ground.kinds_outside(name, path).unwrap_or_default(),
        }
        .prove()
    }

    fn create(&mut self, patch: &PatchSpec, edit: &EditSpec, text: &Text) -> Result<()> {
        if self.tree.entry(&edit.file)?.is_some() {
            return Err(Refusal::drift(format!(
                "patch `{}`, edit `{}` creates `{}`, but the base has it",
                patch.name, edit.name, edit.file
            ))
            .hint(format!(
                "rename it, or insert into it instead, at {}",
                edit.place
            ))
            .into());
        }
        let anchor = whole_file();
        let rendered = self.writer.edit_text(edit, &[text], &anchor)?.remove(0);
        if rendered.trim().is_empty() {
            return Err(Refusal::usage(format!(
                "{}: edit `{}` creates a file with nothing in it",
                edit.place, edit.name
            ))
            .hint("mend its template, or make the edit depend on a fact with `when`")
            .into());
        }
        let rendered = format!("{}\n", rendered.trim_end_matches('\n'));
        let source = Source::new(carry::unpack(&rendered).into_owned());
        self.ground.is_new(edit, &rendered)?;
        self.ground.add(&edit.file, &rendered);
        self.land(patch, edit, &source, &anchor);
        self.write(patch, edit, MODE_FILE, source)
    }

    fn existing(&mut self, patch: &PatchSpec, edit: &EditSpec) -> Result<(Source, u32)> {
        let missing = || {
            Refusal::drift(format!(
                "patch `{}`, edit `{}` changes `{}`, which the base does not have",
                patch.name, edit.name, edit.file
            ))
            .hint(format!("say where the code is now at {}", edit.place))
        };
        let mode = self.tree.entry(&edit.file)?.ok_or_else(missing)?.mode;
        let source = facts::Files::source(&mut self.tree, &edit.file)?.ok_or_else(missing)?;
        Ok((source, mode))
    }

    fn land(&mut self, patch: &PatchSpec, edit: &EditSpec, source: &Source, anchor: &Anchor) {
        self.landings.push(Landing {
            patch: patch.name.clone(),
            edit: edit.name.clone(),
            action: edit.action.verb(),
            file: edit.file.clone(),
            function: anchor
                .function
                .as_ref()
                .map(|function| function.name.to_string()),
            line: source.line(anchor.at),
            matched: anchor.matched.clone(),
            captures: anchor.captures.clone(),
            recipe: edit.place.clone(),
        });
    }
}

/// What of an edit's texts stands at file level.
fn definitions<'t>(edit: &EditSpec, written: &'t [String]) -> &'t str {
    match &edit.action {
        Action::Insert(Spot::BeforeFunction(_) | Spot::AfterFunction(_), _)
        | Action::Replace(Target::Function(_), _)
        | Action::Extract { .. } => written.first().map_or("", String::as_str),
        _ => "",
    }
}
