//! A base's files with the changes of the patches so far.
//!
//! Hides what was read already, and what was parsed.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::error::Refusal;
use crate::facts;
use crate::repo::{Base, File, Repo};
use crate::syntax::{Source, has_crlf};

/// A base's files with the changes so far.
pub(super) struct Tree<'a> {
    pub(super) repo: &'a Repo,
    pub(super) base: &'a Base,
    files: BTreeMap<String, Option<Entry>>,
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
        }
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

    pub(super) fn write(&mut self, path: &str, mode: u32, bytes: Vec<u8>, source: Option<Source>) {
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
            if has_crlf(&entry.bytes) {
                return Err(carriage_returns(path));
            }
            entry.source = Some(Source::new(entry.bytes.clone()));
        }
        Ok(entry.source.clone())
    }
}

/// The refusal of a file whose lines nobody would mix with those of a template.
fn carriage_returns(path: &str) -> anyhow::Error {
    Refusal::drift(format!(
        "the lines of `{path}` end in CRLF, and those of a series in LF"
    ))
    .hint("regenerate on a base whose files have LF, as the kernel's own do")
    .into()
}
