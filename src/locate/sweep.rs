//! Reads many files once, to see which of them define a function.
//!
//! Hides the threads, each of which has the repository open for itself. A file is looked at more closely only where it has the name as
//! a whole word.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use bstr::Finder;
use serde::{Deserialize, Serialize};

use crate::exec::check_interrupted;
use crate::facts::one_line;
use crate::repo::{ObjectId, Repo};
use crate::shape::unreadable;
use crate::syntax::{Source, line_end, line_start};

/// A file that defines a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// The file.
    pub file: String,
    /// The line of the definition; of the first, where there are several.
    pub line: usize,
    /// The definition's first line or lines, on one.
    pub head: String,
    /// Whether it can be read as one definition.
    pub readable: bool,
}

impl Site {
    /// The definition of a function in a file, if it has one.
    pub fn of(file: &str, source: &Source, name: &str) -> Result<Option<Self>> {
        let functions = source.functions_named(name)?;
        let site = |start: usize, end: usize| Self {
            file: file.to_owned(),
            line: source.line(start),
            head: one_line(source.slice(start..end)),
            readable: !functions.is_empty(),
        };
        if let Some(function) = functions.first() {
            return Ok(Some(site(function.start, function.body.start - 1)));
        }
        let text = source.text();
        let found = unreadable(source, name);
        Ok(found.map(|at| site(line_start(text, at), line_end(text, at))))
    }
}

/// Files that one thread takes at a time; so many are not worth a second thread.
const CHUNK: usize = 256;

/// More threads than this only wait for the same disk.
const MOST_THREADS: usize = 8;

/// Which of these files define each of the `names`; or how many of them are missing from a partial clone.
pub(super) fn sweep(
    repo: &Repo,
    files: &[(String, ObjectId)],
    names: &[&str],
) -> Result<Result<Vec<Vec<Site>>, usize>> {
    let missing = repo.missing(files.iter().map(|(_, id)| *id))?;
    if missing > 0 {
        return Ok(Err(missing));
    }
    let sweep = Sweep {
        path: repo.path(),
        files,
        names,
        next: AtomicUsize::new(0),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = files.len().div_ceil(CHUNK).min(cores).min(MOST_THREADS);
    let mut found = std::thread::scope(|scope| -> Result<Vec<(usize, Site)>> {
        let others: Vec<_> = (1..threads)
            .map(|_| scope.spawn(|| sweep.work(&Repo::open(sweep.path)?)))
            .collect();
        let mut found = sweep.work(repo)?;
        for other in others {
            match other.join() {
                Ok(sites) => found.extend(sites?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(found)
    })?;
    found.sort();
    let mut sites = vec![Vec::new(); names.len()];
    for (name, site) in found {
        sites[name].push(site);
    }
    Ok(Ok(sites))
}

/// What all threads share.
struct Sweep<'a> {
    path: &'a Path,
    files: &'a [(String, ObjectId)],
    names: &'a [&'a str],
    next: AtomicUsize,
}

impl Sweep<'_> {
    /// Takes chunk after chunk until none is left; each definition comes with the number of its name.
    fn work(&self, repo: &Repo) -> Result<Vec<(usize, Site)>> {
        let finders: Vec<_> = self.names.iter().map(Finder::new).collect();
        let mut found = Vec::new();
        loop {
            let start = self.next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(rest) = self.files.get(start..).filter(|rest| !rest.is_empty()) else {
                return Ok(found);
            };
            check_interrupted()?;
            for (file, id) in &rest[..rest.len().min(CHUNK)] {
                let bytes = repo.blob_once(*id);
                let bytes = bytes.with_context(|| format!("cannot read `{file}`"))?;
                let names = self.names.iter().zip(&finders).enumerate();
                let names = names.filter(|(_, (name, finder))| mentions(&bytes, name, finder));
                for (number, (name, _)) in names {
                    let site = Site::of(file, &Source::new(bytes.clone()), name)?;
                    found.extend(site.map(|site| (number, site)));
                }
            }
        }
    }
}

/// Whether a text has a name as a whole word.
fn mentions(text: &[u8], name: &str, finder: &Finder<'_>) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_bound = |byte: Option<&u8>| byte.is_none_or(|byte| !is_word(byte));
    let mut at = 0;
    while let Some(skip) = finder.find(&text[at..]) {
        let start = at + skip;
        let before = start.checked_sub(1).and_then(|before| text.get(before));
        if is_bound(before) && is_bound(text.get(start + name.len())) {
            return true;
        }
        at = start + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_as_a_whole_word_only() {
        let has = |text: &str| mentions(text.as_bytes(), "init", &Finder::new("init"));
        assert!(has("init") && has("x init(void)") && has("initial(init)"));
        assert!(!has("__init x") && !has("initial") && !has("init2") && !has(""));
    }

    #[test]
    fn every_file_is_looked_at_once_and_the_order_is_the_trees() {
        let dir = tempfile::tempdir().expect("a directory");
        let repo = Repo::init_bare(dir.path()).expect("a repository");
        let has = |number: usize| number == 5 || number == 900;
        let files: Vec<_> = (0..1000)
            .map(|number| {
                let text = if has(number) {
                    "static int f(int a)\n{\n\treturn a;\n}\n".to_owned()
                } else {
                    format!("int g{number}(void)\n{{\n\treturn f(1);\n}}\n")
                };
                let id = repo.write_blob(text.as_bytes()).expect("a blob");
                (format!("{number:04}.c"), id)
            })
            .collect();
        let swept = |files: &[_], names: &[&str]| {
            let found = sweep(&repo, files, names)
                .expect("read")
                .expect("nothing is missing");
            let name = |site: &Site| (site.file.clone(), site.line, site.head.clone());
            found
                .iter()
                .map(|sites| sites.iter().map(name).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let f = |file: &str| (file.to_owned(), 1, "static int f(int a)".to_owned());
        let g = ("0007.c".to_owned(), 1, "int g7(void)".to_owned());
        let expected = [vec![f("0005.c"), f("0900.c")], vec![], vec![g]];
        assert_eq!(swept(&files, &["f", "h", "g7"]), expected);
        assert_eq!(swept(&files[..5], &["f"]), [vec![]]);
    }
}
