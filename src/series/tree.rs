//! A base's files with the changes of the patches so far.
//!
//! Hides what was read already, what was parsed, and that a function of the base may have other names than the recipe's: whoever reads
//! C from here sees the recipe's, and what is written has the base's.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::error::Refusal;
use crate::facts;
use crate::recipe::FunctionSpec;
use crate::repo::{Base, File, Repo};
use crate::shape::{Clash, Names, Pair};
use crate::syntax::{Source, has_crlf};

/// A base's files with the changes so far.
pub(super) struct Tree<'a> {
    pub(super) repo: &'a Repo,
    pub(super) base: &'a Base,
    files: BTreeMap<String, Option<Entry>>,
    functions: Vec<FunctionSpec>,
    /// The names of functions that are not the recipe's, or why they cannot be read as those: by file and function.
    names: BTreeMap<(String, String), Result<Names, String>>,
}

/// A file that was read or made.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
    source: Option<Source>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(repo: &'a Repo, base: &'a Base) -> Self {
        Self {
            repo,
            base,
            files: BTreeMap::new(),
            functions: Vec::new(),
            names: BTreeMap::new(),
        }
    }

    /// Shows these functions with the recipe's names from now on.
    pub(super) fn show(&mut self, functions: &[FunctionSpec]) {
        self.functions = functions.to_vec();
        for entry in self.files.values_mut().flatten() {
            entry.source = None;
        }
    }

    /// What a person has to know who reads of a file's functions: which names are shown as others, and which could not be.
    pub(super) fn notes(&self, path: &str) -> Vec<String> {
        let of_file = self.names.iter().filter(|((file, _), _)| file == path);
        let notes = of_file.map(|((_, function), names)| match names {
            Ok(names) => format!("in `{function}()` the base's {} is shown", names.shown()),
            Err(why) => why.clone(),
        });
        notes.collect()
    }

    pub(super) fn entry(&mut self, path: &str) -> Result<Option<&mut Entry>> {
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

    /// Takes a file for what it was, or was not, before the base got something.
    pub(super) fn put_back(&mut self, path: &str, file: Option<&File>) {
        let entry = file.map(|File { mode, bytes }| Entry {
            mode: *mode,
            bytes: bytes.clone(),
            source: None,
        });
        self.files.insert(path.to_owned(), entry);
    }

    /// Takes what an edit made of a file; an error is a name that it uses and the base has for something else.
    pub(super) fn write(&mut self, path: &str, mode: u32, source: Source) -> Result<(), Clash> {
        let mut written = source.clone();
        for ((file, name), names) in &self.names {
            if let Ok(names) = names
                && file == path
            {
                written = names.to_base(&written, name)?;
            }
        }
        self.files.insert(
            path.to_owned(),
            Some(Entry {
                mode,
                bytes: written.text().to_vec(),
                source: Some(source),
            }),
        );
        Ok(())
    }

    /// A file as the recipe reads it.
    fn view(&mut self, path: &str, mut source: Source) -> Source {
        let functions = self.functions.iter().filter(|spec| spec.file == path);
        for spec in functions {
            let Some(function) = source.only_function(&spec.name) else {
                continue;
            };
            let names = Names::of(&source, &function, spec);
            if let Ok(names) = &names {
                if names.are_the_same() {
                    continue;
                }
                source = names.to_recipe(&source, &function);
            }
            let names = names.map_err(|Clash { pair, why, at }| {
                let (Pair { base, recipe }, line) = (pair, source.line(at));
                format!(
                    "`{base}` of `{}()` is not read as `{recipe}`: {why} ({path}:{line})",
                    spec.name
                )
            });
            self.names
                .insert((path.to_owned(), spec.name.clone()), names);
        }
        source
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
            if has_crlf(&entry.bytes) {
                return Err(carriage_returns(path));
            }
            let source = Source::new(entry.bytes.clone());
            let source = self.view(path, source);
            if let Some(entry) = self.entry(path)? {
                entry.source = Some(source);
            }
        }
        Ok(self.entry(path)?.and_then(|entry| entry.source.clone()))
    }
}

/// The refusal of a file whose lines nobody would mix with those of a template.
fn carriage_returns(path: &str) -> anyhow::Error {
    Refusal::drift(format!(
        "`{path}` has lines that end in CRLF, and those of a series end in LF"
    ))
    .hint("regenerate on a base whose files have LF, as the kernel's own do")
    .into()
}
