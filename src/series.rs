//! The pipeline: a base and a recipe become commits, patch after patch.
//!
//! Hides the order of things: facts and shapes come from the base, once; each patch reads what the patch before it left.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice};

use crate::edit::{Anchor, Landing, Search, replace, whole_file};
use crate::error::Refusal;
use crate::facts::{self, Found};
use crate::recipe::{Action, EditSpec, Fact, PatchSpec, Place, Recipe, Text};
use crate::repo::{Base, Commit, File, MODE_FILE, ObjectId, Repo, Signature};
use crate::shape::{Mismatch, Parts, divide, quote};
use crate::syntax::Source;
use crate::template::{Inputs, Templates};

/// What the user decides about a run; everything else is the recipe's or the base's.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who wrote the patches.
    pub author: Signature,
    /// Whether the author signs them off.
    pub sign_off: bool,
    /// The series' version.
    pub version: u32,
}

/// A regenerated series.
#[derive(Debug)]
pub struct Series {
    /// What it was regenerated on.
    pub base: Base,
    /// The kernel's release, as its `Makefile` says it.
    pub release: String,
    /// The facts, in the recipe's order.
    pub facts: Vec<Found>,
    /// Where each edit landed.
    pub landings: Vec<Landing>,
    /// The patches as commits, in order.
    pub patches: Vec<Patch>,
    /// The cover letter's text.
    pub cover: String,
}

/// One regenerated patch.
#[derive(Debug)]
pub struct Patch {
    /// Its name in the recipe: its identity.
    pub name: String,
    /// Its commit.
    pub commit: Commit,
    /// The files it touches, by path.
    pub files: Vec<BString>,
}

/// What became of a run.
#[derive(Debug)]
pub enum Regenerated {
    /// A series.
    Series(Box<Series>),
    /// The base has the whole series already: these definitions and files.
    Applied(Vec<String>),
}

/// What a base says about itself: enough to explain, or to regenerate.
pub struct Survey {
    /// The kernel's release.
    pub release: String,
    /// The facts, in the recipe's order.
    pub facts: Vec<Found>,
    parts: BTreeMap<String, Parts>,
}

/// A base's files with the changes so far.
struct Tree<'a> {
    repo: &'a Repo,
    base: &'a Base,
    files: BTreeMap<String, Option<Entry>>,
}

/// A file that was read or made.
#[derive(Clone)]
struct Entry {
    mode: u32,
    bytes: Vec<u8>,
    source: Option<Source>,
}

impl<'a> Tree<'a> {
    fn new(repo: &'a Repo, base: &'a Base) -> Self {
        Self {
            repo,
            base,
            files: BTreeMap::new(),
        }
    }

    fn entry(&mut self, path: &str) -> Result<Option<&mut Entry>> {
        if !self.files.contains_key(path) {
            let file = self.repo.file(self.base.tree_id, path.into())?;
            let entry = file.filter(|file| file.mode & 0o170_000 == 0o100_000).map(
                |File { mode, bytes }| Entry {
                    mode,
                    bytes,
                    source: None,
                },
            );
            self.files.insert(path.to_owned(), entry);
        }
        Ok(self.files.get_mut(path).and_then(Option::as_mut))
    }

    fn write(&mut self, path: &str, mode: u32, bytes: Vec<u8>, source: Option<Source>) {
        self.files.insert(
            path.to_owned(),
            Some(Entry {
                mode,
                bytes,
                source,
            }),
        );
    }
}

impl facts::Files for Tree<'_> {
    fn bytes(&mut self, path: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.entry(path)?.map(|entry| entry.bytes.clone()))
    }

    fn source(&mut self, path: &str) -> Result<Option<Source>> {
        let Some(entry) = self.entry(path)? else {
            return Ok(None);
        };
        if entry.source.is_none() {
            entry.source = Some(Source::parse(entry.bytes.clone())?);
        }
        Ok(entry.source.clone())
    }
}

/// Probes the facts of a base: the kernel's release, and what the recipe asks.
pub fn facts(repo: &Repo, base: &Base, recipe: &Recipe) -> Result<(String, Vec<Found>)> {
    let mut tree = Tree::new(repo, base);
    let release = release(&mut tree)?;
    let probes = recipe
        .facts
        .iter()
        .map(|spec| facts::probe(spec, &mut tree));
    Ok((release, probes.collect::<Result<Vec<_>>>()?))
}

/// Regenerates the series of `recipe` on `base`: commits in `repo`, which nothing points at.
pub fn regenerate(
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    options: &Options,
) -> Result<Regenerated> {
    let mut tree = Tree::new(repo, base);
    let release = release(&mut tree)?;
    if let Some(what) = applied(&mut tree, recipe)? {
        return Ok(Regenerated::Applied(what));
    }
    let facts = recipe
        .facts
        .iter()
        .map(|spec| facts::probe(spec, &mut tree))
        .collect::<Result<Vec<_>>>()?;
    let parts = shapes(&mut tree, recipe)?;
    let survey = Survey {
        release,
        facts,
        parts,
    };
    let mut run = Run {
        repo,
        base,
        recipe,
        options,
        survey,
        tree,
        templates: Templates::new()?,
        landings: Vec::new(),
        defined: Vec::new(),
    };
    let mut patches: Vec<Patch> = Vec::new();
    for spec in &recipe.patches {
        let before = patches
            .last()
            .map_or((base.commit_id, base.tree_id), |patch| {
                (patch.commit.id, patch.commit.tree_id)
            });
        patches.push(run.patch(spec, before)?);
    }
    run.unused_captures()?;
    let cover_place = Place {
        file: format!("{}/cover.txt", recipe.origin),
        line: 1,
    };
    let cover = run.text(
        "cover.txt",
        &recipe.cover,
        &recipe.series.inputs,
        &cover_place,
        None,
    )?;
    Ok(Regenerated::Series(Box::new(Series {
        base: base.clone(),
        release: run.survey.release,
        facts: run.survey.facts,
        landings: run.landings,
        patches,
        cover,
    })))
}

fn release(tree: &mut Tree<'_>) -> Result<String> {
    let makefile = facts::Files::bytes(tree, "Makefile")?;
    let release = makefile.as_deref().and_then(facts::release);
    release.ok_or_else(|| {
        Refusal::usage(format!(
            "`{}` is no kernel: its root has no `Makefile` that says which version it is",
            tree.base.rev
        ))
        .hint("name a kernel's revision with `--base`")
        .into()
    })
}

/// Whether everything that the recipe creates is there already. A part of it is a base that a person has to look at.
fn applied(tree: &mut Tree<'_>, recipe: &Recipe) -> Result<Option<Vec<String>>> {
    let mut there = Vec::new();
    let mut missing = Vec::new();
    for edit in recipe
        .patches
        .iter()
        .flat_map(|patch| &patch.edits)
        .filter(|edit| edit.when.is_empty())
    {
        if let Action::Create(_) = edit.action {
            let found = tree.entry(&edit.file)?.is_some();
            if found { &mut there } else { &mut missing }.push(format!("`{}`", edit.file));
        }
        for name in &edit.defines {
            let mentioned = tree
                .entry(&edit.file)?
                .is_some_and(|entry| entry.bytes.contains_str(name));
            let source = if mentioned {
                facts::Files::source(tree, &edit.file)?
            } else {
                None
            };
            let found = source.is_some_and(|source| !source.functions_named(name).is_empty());
            if found { &mut there } else { &mut missing }
                .push(format!("`{name}()` in `{}`", edit.file));
        }
    }
    if there.is_empty() {
        return Ok(None);
    }
    if missing.is_empty() {
        return Ok(Some(there));
    }
    let list = |label: &str, what: &[String]| format!("  {label}: {}", what.join(", "));
    Err(Refusal::drift("a part of the series is in the base already")
        .details(vec![list("there", &there), list("missing", &missing)])
        .hint("regenerate on a base from before that part, or take the patches that were merged out of `patches` in `series.toml`")
        .into())
}

/// Divides every function that the recipe builds on; all that does not fit is reported at once.
fn shapes(tree: &mut Tree<'_>, recipe: &Recipe) -> Result<BTreeMap<String, Parts>> {
    let mut divided = BTreeMap::new();
    let mut mismatches = Vec::new();
    for spec in &recipe.functions {
        let Some(source) = facts::Files::source(tree, &spec.file)? else {
            mismatches.push(Mismatch {
                message: format!("the base has no `{}`", spec.file),
                details: Vec::new(),
                hint: format!("say where `{}()` is now at {}", spec.name, spec.place),
            });
            continue;
        };
        let found = source.functions_named(&spec.name);
        match found.as_slice() {
            [function] => match divide(&source, function, spec) {
                Ok(parts) => drop(divided.insert(spec.id.clone(), parts)),
                Err(wrong) => mismatches.extend(wrong),
            },
            [] => {
                let functions = source
                    .functions()
                    .into_iter()
                    .map(|function| (function.name.to_string(), function));
                let near = crate::shape::closest(&[&spec.name], functions);
                let lines = near.into_iter().flat_map(|function| {
                    quote(
                        &source,
                        &spec.file,
                        &(function.start..function.body.start - 1),
                    )
                });
                let details = std::iter::once("nearest in the base:".to_owned())
                    .chain(lines)
                    .collect();
                let message = format!("`{}` does not define `{}()`", spec.file, spec.name);
                mismatches.push(Mismatch {
                    message,
                    details,
                    hint: format!("say which function it is now at {}", spec.place),
                });
            }
            several => {
                let details = several
                    .iter()
                    .flat_map(|function| {
                        quote(&source, &spec.file, &(function.start..function.body.start))
                    })
                    .collect();
                let message = format!(
                    "`{}` defines `{}()` {} times",
                    spec.file,
                    spec.name,
                    several.len()
                );
                mismatches.push(Mismatch {
                    message,
                    details,
                    hint: format!("say which one is meant at {}", spec.place),
                });
            }
        }
    }
    if mismatches.is_empty() {
        Ok(divided)
    } else {
        Err(drifted(recipe, mismatches))
    }
}

/// One error for all that does not fit; it names the patches that depend on it.
fn drifted(recipe: &Recipe, mut mismatches: Vec<Mismatch>) -> anyhow::Error {
    let first = mismatches.remove(0);
    let mut details = first.details;
    let dependants: Vec<_> = recipe
        .patches
        .iter()
        .map(|patch| format!("`{}`", patch.name))
        .collect();
    for mismatch in mismatches {
        details.push(mismatch.message);
        details.extend(mismatch.details);
        details.push(format!("  hint: {}", mismatch.hint));
    }
    details.push(format!(
        "nothing was regenerated; the patches are {}",
        dependants.join(", ")
    ));
    Refusal::drift(first.message)
        .details(details)
        .hint(first.hint)
        .into()
}

/// The state of one run.
struct Run<'a> {
    repo: &'a Repo,
    base: &'a Base,
    recipe: &'a Recipe,
    options: &'a Options,
    survey: Survey,
    tree: Tree<'a>,
    templates: Templates,
    landings: Vec<Landing>,
    /// The functions that the edits so far have defined.
    defined: Vec<String>,
}

impl Run<'_> {
    fn patch(
        &mut self,
        spec: &PatchSpec,
        (parent_id, tree_id): (ObjectId, ObjectId),
    ) -> Result<Patch> {
        let mut touched: Vec<String> = Vec::new();
        for edit in &spec.edits {
            if self.wanted(edit)? && self.edit(spec, edit)? && !touched.contains(&edit.file) {
                touched.push(edit.file.clone());
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
        touched.sort();
        let mut files = Vec::new();
        for path in &touched {
            let entry = self
                .tree
                .entry(path)?
                .context("a file that was edited is gone")?;
            let (mode, bytes) = (entry.mode, entry.bytes.clone());
            files.push((BStr::new(path), mode, self.repo.write_blob(&bytes)?));
        }
        let tree_id = self.repo.write_tree(tree_id, &files)?;
        let message = self.message(spec)?;
        let id = self.repo.write_commit(
            tree_id,
            Some(parent_id),
            &self.options.author,
            message.as_bytes().as_bstr(),
        )?;
        let author = self.options.author.clone();
        let commit = Commit {
            id,
            tree_id,
            parent_ids: vec![parent_id],
            committer: author.clone(),
            author,
            message: message.into(),
        };
        Ok(Patch {
            name: spec.name.clone(),
            commit,
            files: touched.into_iter().map(BString::from).collect(),
        })
    }

    /// Whether the facts are as an edit wants them.
    fn wanted(&self, edit: &EditSpec) -> Result<bool> {
        let mut wanted = true;
        for (name, value) in &edit.when {
            let found = self
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
                .into());
            }
            wanted &= found.value == *value;
        }
        Ok(wanted)
    }

    /// Makes one edit; says whether there was anything to do.
    fn edit(&mut self, patch: &PatchSpec, edit: &EditSpec) -> Result<bool> {
        let recipe = self.recipe;
        let search = Search {
            patch: &patch.name,
            edit,
            functions: &recipe.functions,
            defined: self.defined.clone(),
        };
        if let Action::Create(text) = &edit.action {
            return self.create(patch, edit, text).map(|()| true);
        }
        let (source, mode) = self.existing(patch, edit)?;
        let (anchor, new) = match &edit.action {
            Action::Create(_) => return Ok(false),
            Action::Insert(spot, text) => {
                let anchor = search.spot(&source, spot)?;
                let rendered = self.edit_text(edit, &[text], &anchor)?.remove(0);
                let changes = anchor.function.as_ref().filter(|_| {
                    !matches!(
                        spot,
                        crate::recipe::Spot::BeforeFunction(_)
                            | crate::recipe::Spot::AfterFunction(_)
                    )
                });
                let changes = changes.map(|function| function.name.to_string());
                let new = replace(
                    &source,
                    &anchor,
                    &rendered,
                    edit,
                    changes.as_deref(),
                    &edit.defines,
                )?;
                (anchor, new)
            }
            Action::Replace(target, text) => {
                let anchor = search.target(&source, target)?;
                let rendered = self.edit_text(edit, &[text], &anchor)?.remove(0);
                let changes = anchor
                    .function
                    .as_ref()
                    .map(|function| function.name.to_string());
                let new = replace(
                    &source,
                    &anchor,
                    &rendered,
                    edit,
                    changes.as_deref(),
                    &edit.defines,
                )?;
                (anchor, new)
            }
            Action::Extract {
                target,
                helper,
                call,
            } => {
                let anchor = search.target(&source, target)?;
                let rendered = self.edit_text(edit, &[helper, call], &anchor)?;
                let function = anchor
                    .function
                    .clone()
                    .context("an extraction is always from a function")?;
                let changed = replace(
                    &source,
                    &anchor,
                    &rendered[1],
                    edit,
                    Some(&function.name.to_string()),
                    &[],
                )?;
                let new = replace(
                    &changed,
                    &search.helper(&source, &function),
                    &rendered[0],
                    edit,
                    None,
                    &edit.defines,
                )?;
                (anchor, new)
            }
        };
        self.land(patch, edit, &source, &anchor);
        self.defined.extend(edit.defines.iter().cloned());
        self.tree
            .write(&edit.file, mode, new.text().to_vec(), Some(new));
        Ok(true)
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
        let rendered = self.edit_text(edit, &[text], &anchor)?.remove(0);
        let rendered = format!("{}\n", rendered.trim_end_matches('\n'));
        let source = Source::parse(rendered.clone().into_bytes())?;
        self.land(patch, edit, &source, &anchor);
        self.tree
            .write(&edit.file, MODE_FILE, rendered.into_bytes(), Some(source));
        Ok(())
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
            recipe: edit.place.clone(),
        });
    }

    /// Renders the texts of one edit. Its inputs and captures are shared by them, and each must be used by at least one.
    fn edit_text(
        &mut self,
        edit: &EditSpec,
        texts: &[&Text],
        anchor: &Anchor,
    ) -> Result<Vec<String>> {
        let mut sources = Vec::new();
        for text in texts {
            sources.push(match text {
                Text::Inline(text) => (format!("{} ({})", edit.name, edit.place), text.clone()),
                Text::Template(name) => {
                    let text = self.recipe.templates.get(name).cloned().ok_or_else(|| {
                        Refusal::usage(format!("{}: there is no template `{name}`", edit.place)).hint("templates are files `NAME.tera` in the series' folder of `templates/`")
                    })?;
                    (name.clone(), text)
                }
            });
        }
        let inputs = self.inputs(&edit.inputs, &edit.place, Some(anchor))?;
        let mut unused: Vec<&String> = edit.inputs.keys().collect();
        let mut rendered = Vec::new();
        for (label, text) in &sources {
            let mine: Inputs = inputs
                .iter()
                .filter(|(name, _)| mentions(text, name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            unused.retain(|name| !mine.contains_key(*name));
            rendered.push(self.templates.render(label, text, &mine, &edit.place)?);
        }
        if let Some(name) = unused.first() {
            return Err(Refusal::usage(format!(
                "{}: no template of edit `{}` uses its input `{name}`",
                edit.place, edit.name
            ))
            .hint("take it out of the inputs, or use it")
            .into());
        }
        self.captures_are_used(edit, anchor)?;
        Ok(rendered)
    }

    /// A capture that no input takes up was written for nothing, and is likely a mistake.
    fn captures_are_used(&self, edit: &EditSpec, anchor: &Anchor) -> Result<()> {
        if let Action::Insert(
            crate::recipe::Spot::Before(target) | crate::recipe::Spot::After(target),
            _,
        )
        | Action::Replace(target, _)
        | Action::Extract { target, .. } = &edit.action
            && let crate::recipe::Target::Statement { pattern, .. } = target
        {
            let used = |name: &String| {
                edit.inputs
                    .values()
                    .any(|input| input.is_path(&format!("match.{name}")))
            };
            if let Some(name) = pattern
                .names()
                .iter()
                .find(|name| anchor.captures.contains_key(*name) && !used(name))
            {
                return Err(Refusal::usage(format!(
                    "{}: edit `{}` captures `${name}` and does not use it",
                    edit.place, edit.name
                ))
                .hint(format!("write `$_{name}` for what does not matter"))
                .into());
            }
        }
        Ok(())
    }

    /// A capture of a part that nothing in the recipe takes up.
    fn unused_captures(&self) -> Result<()> {
        let edits = self.recipe.patches.iter().flat_map(|patch| {
            patch
                .edits
                .iter()
                .flat_map(|edit| edit.inputs.values())
                .chain(patch.inputs.values())
        });
        let paths: Vec<&Fact> = edits.chain(self.recipe.series.inputs.values()).collect();
        for function in &self.recipe.functions {
            for part in crate::recipe::all_parts(&function.parts) {
                let names = part
                    .patterns
                    .iter()
                    .flat_map(crate::pattern::Pattern::names);
                let needed = |name: &String| {
                    (name == "BODY" && !part.parts.is_empty())
                        || part.without.contains_key(name)
                        || paths.iter().any(|input| {
                            input.is_path(&format!("{}.{}.{name}", function.id, part.name))
                        })
                };
                if let Some(name) = names.into_iter().find(|name| !needed(name)) {
                    return Err(Refusal::usage(format!(
                        "{}: part `{}` captures `{name}` and nothing uses it",
                        part.place, part.name
                    ))
                    .hint("a name that starts with `_` is not kept")
                    .into());
                }
            }
        }
        Ok(())
    }

    fn message(&mut self, spec: &PatchSpec) -> Result<String> {
        let label = format!("{}/message.txt", spec.name);
        let message = self.text(&label, &spec.message, &spec.inputs, &spec.place, None)?;
        let mut message = format!("{}\n", message.trim_end());
        if self.options.sign_off {
            let Signature { name, email, .. } = &self.options.author;
            let line = format!("Signed-off-by: {name} <{email}>\n");
            let last = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
            let trailers = last.lines().all(|line| {
                line.split_once(": ")
                    .is_some_and(|(key, _)| key.contains('-') || key == "Fixes" || key == "Cc")
            });
            message.push_str(if trailers { "" } else { "\n" });
            message.push_str(&line);
        }
        Ok(message)
    }

    fn text(
        &mut self,
        label: &str,
        text: &str,
        inputs: &BTreeMap<String, Fact>,
        place: &Place,
        anchor: Option<&Anchor>,
    ) -> Result<String> {
        let inputs = self.inputs(inputs, place, anchor)?;
        self.templates.render(label, text, &inputs, place)
    }

    fn inputs(
        &self,
        declared: &BTreeMap<String, Fact>,
        place: &Place,
        anchor: Option<&Anchor>,
    ) -> Result<Inputs> {
        declared
            .iter()
            .map(|(name, path)| Ok((name.clone(), self.input(path, place, anchor)?)))
            .collect()
    }

    /// The value of an input: itself, or what its path stands for.
    fn input(&self, declared: &Fact, place: &Place, anchor: Option<&Anchor>) -> Result<Fact> {
        match declared {
            Fact::Flag(_) => Ok(declared.clone()),
            Fact::Text(path) => self.value(path, place, anchor),
        }
    }

    /// What a path stands for: `facts.NAME`, `match.CAPTURE`, `base.release`, `series.title`, or
    /// `FUNCTION.PART.{text,code,present,CAPTURE}` and `FUNCTION.PART.uses.IDENTIFIER`.
    fn value(&self, path: &str, place: &Place, anchor: Option<&Anchor>) -> Result<Fact> {
        let words: Vec<&str> = path.split('.').collect();
        let found = match words.as_slice() {
            ["facts", name] => self
                .survey
                .facts
                .iter()
                .find(|fact| fact.name == *name)
                .map(|fact| fact.value.clone()),
            ["match", name] => anchor
                .and_then(|anchor| anchor.captures.get(*name))
                .cloned()
                .map(Fact::Text),
            ["base", "release"] => Some(Fact::Text(self.survey.release.clone())),
            ["base", "official"] => Some(Fact::Flag(self.base.official)),
            ["series", "title"] => Some(Fact::Text(self.recipe.series.title.clone())),
            ["series", "version"] => Some(Fact::Text(self.options.version.to_string())),
            ["tool", "version"] => Some(Fact::Text(env!("CARGO_PKG_VERSION").to_owned())),
            [function, part, rest @ ..] => self
                .survey
                .parts
                .get(*function)
                .and_then(|parts| parts.get(*part))
                .and_then(|found| match rest {
                    ["text"] => Some(Fact::Text(found.text.clone())),
                    ["code"] => Some(Fact::Text(found.code.clone())),
                    ["present"] => Some(Fact::Flag(found.statements > 0)),
                    ["uses", name] => Some(Fact::Flag(found.identifiers.contains(*name))),
                    [capture]
                        if self
                            .captures_of(function, part)
                            .iter()
                            .any(|name| name == capture) =>
                    {
                        Some(Fact::Text(
                            found.captures.get(*capture).cloned().unwrap_or_default(),
                        ))
                    }
                    _ => None,
                }),
            _ => None,
        };
        found.ok_or_else(|| {
            Refusal::usage(format!("{place}: the input `{path}` stands for nothing"))
                .hint("`facts.NAME`, `match.CAPTURE`, `FUNCTION.PART.text`, `.code`, `.present`, `.uses.NAME`, `.CAPTURE`, `base.release` or `series.title`")
                .into()
        })
    }

    fn captures_of(&self, function: &str, part: &str) -> Vec<String> {
        let spec = self
            .recipe
            .functions
            .iter()
            .find(|spec| spec.id == function);
        let parts = spec
            .map(|spec| crate::recipe::all_parts(&spec.parts))
            .unwrap_or_default();
        let found = parts.into_iter().find(|known| known.name == part);
        found
            .map(|part| {
                part.patterns
                    .iter()
                    .flat_map(crate::pattern::Pattern::names)
                    .collect()
            })
            .unwrap_or_default()
    }
}

/// Whether a template has `name` as a word inside one of its tags; the exact check is the template engine's.
fn mentions(text: &str, name: &str) -> bool {
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.match_indices(name).any(|(start, _)| {
        let before = text[..start].chars().next_back().is_some_and(is_word);
        let after = text[start + name.len()..]
            .chars()
            .next()
            .is_some_and(is_word);
        let tag = text[..start].rfind("@{").max(text[..start].rfind("@%"));
        let closed = text[..start].rfind("}@").max(text[..start].rfind("%@"));
        !before && !after && tag > closed
    })
}
