//! What a C file sees: the definitions in it, and in all that it includes.
//!
//! Every header counts, whatever the configuration, in the base as it is in git: nothing has to be configured or built. The table of
//! names is made once for a tree and kept in the cache; what a definition says is read again where somebody asks.

mod closure;
mod generate;
pub mod lex;
mod scan;
mod table;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Result;
use bstr::ByteSlice;

use crate::repo::{ObjectId, Repo};
use closure::Closure;
use table::Table;

pub use scan::{Conditions, Definition, Include, Invocation, Kind, Scan, is_keyword, scan};

/// What an index is of.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The C files, as paths in the tree.
    pub files: Vec<String>,
    /// Further headers, as an `#include <...>` names them.
    pub headers: Vec<String>,
    /// The architectures (directories below `arch/`) whose headers count; none stands for all.
    pub architectures: Vec<String>,
}

/// What some C files of a tree see.
pub struct Index<'r> {
    repo: &'r Repo,
    tree_id: ObjectId,
    table: Table,
    /// Its file in the cache.
    kept_in: Option<PathBuf>,
    /// The files that somebody has asked about.
    read: RefCell<HashMap<String, Rc<File>>>,
}

/// A file of an index with what it defines.
#[derive(Debug)]
pub struct File {
    /// Its bytes.
    pub text: Vec<u8>,
    /// What it defines, generated names included.
    pub definitions: Vec<Definition>,
}

/// A definition, and where it is.
#[derive(Debug, Clone)]
pub struct Found {
    /// The file's path.
    pub path: String,
    /// The file.
    pub file: Rc<File>,
    /// The definition.
    pub definition: Definition,
}

impl Found {
    /// The text of the definition.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.file.text[self.definition.range.clone()]
    }

    /// Its first line in the file, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        crate::syntax::line_of(&self.file.text, self.definition.range.start)
    }
}

impl<'r> Index<'r> {
    /// The index of a tree: from the directory `cache` where it has it, else made and, if that is possible, left there.
    pub fn of(
        repo: &'r Repo,
        tree_id: ObjectId,
        question: &Question,
        cache: Option<&Path>,
    ) -> Result<Self> {
        let file = cache.map(|cache| cache.join(table::file_name(tree_id, question)));
        let kept_in = file.clone();
        let known = file.as_deref().and_then(Table::read);
        let table = if let Some(table) = known {
            table
        } else {
            let closure = Closure::of(repo, tree_id, question)?;
            let table = Table::of(&closure.files);
            // A cache that cannot be written costs the next run its time, nothing else.
            let _ = file.map(|file| table.write(&file));
            table
        };
        Ok(Self {
            repo,
            tree_id,
            table,
            kept_in,
            read: RefCell::default(),
        })
    }

    /// What a name is, each with the file that says so; empty where nothing that is seen defines it.
    #[must_use]
    pub fn kinds(&self, name: &str) -> Vec<(Kind, &str)> {
        self.table.find(name)
    }

    /// Its file in the cache, whether or not it could be written; what is found by way of it can be kept beside it.
    #[must_use]
    pub fn kept_in(&self) -> Option<&Path> {
        self.kept_in.as_deref()
    }

    /// How many names it has, and how many files.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        self.table.size()
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[String] {
        self.table.files()
    }

    /// Every definition of a name.
    pub fn definitions(&self, name: &str) -> Result<Vec<Found>> {
        let mut paths: Vec<_> = self.kinds(name).into_iter().map(|(_, path)| path).collect();
        paths.dedup();
        let mut found = Vec::new();
        for path in paths {
            let file = self.file(path)?;
            let own = file.definitions.iter().filter(|it| it.name == name);
            found.extend(own.map(|definition| Found {
                path: path.to_owned(),
                file: file.clone(),
                definition: definition.clone(),
            }));
        }
        for (path, range) in self.table.generated(name) {
            let file = self.file(path)?;
            let calls = file.definitions.iter().filter(|it| it.range.start == range);
            found.extend(calls.map(|call| Found {
                path: path.to_owned(),
                file: file.clone(),
                definition: Definition {
                    name: name.to_owned(),
                    ..call.clone()
                },
            }));
        }
        Ok(found)
    }

    fn file(&self, path: &str) -> Result<Rc<File>> {
        if let Some(known) = self.read.borrow().get(path) {
            return Ok(known.clone());
        }
        let text = self.repo.file(self.tree_id, path.as_bytes().as_bstr())?;
        let text = text.map(|file| file.bytes).unwrap_or_default();
        let mut found = scan(&text);
        let calls = found.invocations.drain(..).map(|call| Definition {
            name: String::new(),
            kind: Kind::Generated,
            range: call.range,
            conditions: call.conditions,
        });
        found.definitions.extend(calls);
        let file = Rc::new(File {
            text,
            definitions: found.definitions,
        });
        self.read.borrow_mut().insert(path.to_owned(), file.clone());
        Ok(file)
    }
}
