//! Probes: what a recipe wants to know about a base, each answer with the place where it was found.
//!
//! Hides how an answer is found; never looks at a version number to find one.

mod line;

use std::collections::BTreeSet;

use anyhow::Result;
use bstr::{BStr, ByteSlice};
use serde::Serialize;

use crate::error::Refusal;
use crate::pattern::Pattern;
use crate::recipe::{Fact, FactSpec, Probe};
use crate::shape::{Missing, missing, quote};
use crate::syntax::{Function, Source};

/// An answer.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// The fact's name.
    pub name: String,
    /// What it means.
    pub about: String,
    /// Its value.
    pub value: Fact,
    /// Where it was found: `file:line: text`; for a "no", where it was looked for.
    pub place: String,
}

/// The files of a base, as the probes see them.
pub trait Files {
    /// A file's bytes; `None` where there is none.
    fn bytes(&mut self, path: &str) -> Result<Option<Vec<u8>>>;
    /// A C file with its tree.
    fn source(&mut self, path: &str) -> Result<Option<Source>>;
}

/// The kernel's release as its `Makefile` says it (`VERSION`, `PATCHLEVEL`, `SUBLEVEL`, `EXTRAVERSION`).
/// `None` means that this is no kernel.
#[must_use]
pub fn release(makefile: &[u8]) -> Option<String> {
    let value = |name: &str| {
        let lines = makefile.lines().take(12);
        let mut values = lines.filter_map(|line| {
            line.strip_prefix(name.as_bytes())?
                .trim_start()
                .strip_prefix(b"=")
        });
        values
            .next()
            .map(|value| value.trim().to_str_lossy().into_owned())
    };
    let (version, patchlevel) = (value("VERSION")?, value("PATCHLEVEL")?);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let sublevel = value("SUBLEVEL").filter(|sublevel| digits(sublevel) && sublevel != "0");
    let extra = value("EXTRAVERSION").unwrap_or_default();
    let sublevel = sublevel
        .map(|sublevel| format!(".{sublevel}"))
        .unwrap_or_default();
    (digits(&version) && digits(&patchlevel))
        .then(|| format!("{version}.{patchlevel}{sublevel}{extra}"))
}

/// Probes one fact.
pub fn probe(spec: &FactSpec, files: &mut dyn Files) -> Result<Found> {
    let mut near = Vec::new();
    let (value, place) = match &spec.probe {
        Probe::Exists { file } => {
            let there = files.bytes(file)?.is_some();
            (there, file.clone())
        }
        Probe::Line { files: paths, line } => {
            let (found, nearest) = lines(spec, files, paths, line)?;
            near = nearest;
            found
        }
        Probe::Statement {
            file,
            function,
            pattern,
            ..
        } => {
            let source = needed(spec, file, files.source(file)?)?;
            statement(spec, &source, file, function, pattern)?
        }
        Probe::Function { files: paths, name } => function(files, paths, name)?,
        Probe::Kconfig {
            file,
            symbol,
            needs,
        } => {
            let bytes = needed(spec, file, files.bytes(file)?)?;
            kconfig(file, &bytes, symbol, needs)
        }
    };
    if spec.must.is_some_and(|must| must != value) {
        near.insert(0, format!("  looked for it in {place}"));
        return Err(Refusal::drift(format!(
            "the fact `{}` is {value} on this base: {}",
            spec.name, spec.about
        ))
        .details(near)
        .hint(format!(
            "the series builds on the opposite; look what it means for it, then mend {}",
            spec.place
        ))
        .into());
    }
    Ok(Found {
        name: spec.name.clone(),
        about: spec.about.clone(),
        value: Fact::Flag(value),
        place,
    })
}

fn needed<T>(spec: &FactSpec, file: &str, found: Option<T>) -> Result<T> {
    found.ok_or_else(|| {
        Refusal::drift(format!(
            "the base has no `{file}`, which the fact `{}` is probed in",
            spec.name
        ))
        .hint(format!("say where to look now at {}", spec.place))
        .into()
    })
}

/// Looks for a line in each of the files that the base has, of which there must be one; what comes closest where none has it.
fn lines(
    spec: &FactSpec,
    files: &mut dyn Files,
    paths: &[String],
    line: &str,
) -> Result<((bool, String), Vec<String>)> {
    let mut looked = Vec::new();
    let mut near = Vec::new();
    for path in paths {
        let Some(bytes) = files.bytes(path)? else {
            continue;
        };
        let found = line::find(&bytes, path, line);
        if found.is_some() {
            return Ok(((true, place(path, found, line)), Vec::new()));
        }
        near.extend(line::nearest(&bytes, path, line));
        looked.push(path.as_str());
    }
    let found = (!looked.is_empty()).then(|| (false, looked.join(", ")));
    Ok((needed(spec, &paths.join("`, `"), found)?, near))
}

fn place(file: &str, line: Option<usize>, text: &str) -> String {
    line.map_or_else(
        || file.to_owned(),
        |line| format!("{file}:{}: {text}", line + 1),
    )
}

fn statement(
    spec: &FactSpec,
    source: &Source,
    file: &str,
    function: &str,
    written: &str,
) -> Result<(bool, String)> {
    let pattern = Pattern::parse(written)
        .map_err(|error| Refusal::usage(format!("{}: {error}", spec.place)))?;
    let functions = source.functions_named(function)?;
    let [function] = functions.as_slice() else {
        return Err(not_one(spec, source, file, function, &functions));
    };
    let found = pattern.find(source, function.block()?);
    let line = source.line(found.first().map_or(function.start, |found| found.start));
    let text = found
        .first()
        .map_or(function.name.to_string() + "()", |found| {
            one_line(source.slice(found.start..found.range.end))
        });
    Ok((!found.is_empty(), format!("{file}:{line}: {text}")))
}

/// The refusal of a probe of a function that is not there once.
fn not_one(
    spec: &FactSpec,
    source: &Source,
    file: &str,
    name: &str,
    found: &[Function],
) -> anyhow::Error {
    let Missing { message, details } = match found {
        [] => missing(source, file, name),
        several => Missing {
            message: format!("`{file}` defines `{name}()` {} times", several.len()),
            details: several
                .iter()
                .flat_map(|found| quote(source, file, &(found.start..found.body.start)))
                .collect(),
        },
    };
    Refusal::drift(format!("{message}; the fact `{}` needs one", spec.name))
        .details(details)
        .hint(format!("say where to look now at {}", spec.place))
        .into()
}

/// A statement on one line, cut where it gets long.
#[must_use]
pub fn one_line(text: &BStr) -> String {
    const MOST: usize = 72;
    let words: Vec<_> = text.fields().map(|word| word.to_str_lossy()).collect();
    let line = words.join(" ");
    if line.chars().count() <= MOST {
        return line;
    }
    line.chars().take(MOST).chain(" ...".chars()).collect()
}

fn function(files: &mut dyn Files, paths: &[String], name: &str) -> Result<(bool, String)> {
    for path in paths {
        let mentioned = files
            .bytes(path)?
            .is_some_and(|bytes| bytes.contains_str(name));
        let Some(source) = mentioned.then(|| files.source(path)).transpose()?.flatten() else {
            continue;
        };
        if let Some(function) = source.functions_named(name)?.first() {
            let line = source.line(function.start);
            return Ok((
                true,
                format!(
                    "{path}:{line}: {}",
                    one_line(source.slice(function.start..function.body.start - 1))
                ),
            ));
        }
    }
    Ok((false, paths.join(", ")))
}

/// One line of a Kconfig file that a symbol depends on.
struct Dependency {
    line: usize,
    terms: Vec<String>,
}

/// Follows `depends on` and `if` from `symbol` until `needs` is met. An alternative (`||`) or a negation proves nothing.
fn kconfig(file: &str, bytes: &[u8], symbol: &str, needs: &str) -> (bool, String) {
    let mut open = vec![symbol.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(symbol) = open.pop() {
        for dependency in dependencies(bytes, &symbol) {
            if dependency.terms.iter().any(|term| term == needs) {
                let text = bytes
                    .lines()
                    .nth(dependency.line)
                    .map(|line| line.trim().to_str_lossy().into_owned());
                return (
                    true,
                    place(file, Some(dependency.line), &text.unwrap_or_default()),
                );
            }
            open.extend(
                dependency
                    .terms
                    .into_iter()
                    .filter(|term| seen.insert(term.clone())),
            );
        }
    }
    (false, format!("{file} (config {symbol})"))
}

/// What one symbol of a Kconfig file depends on: its own `depends on` lines and the `if`s around it.
fn dependencies(bytes: &[u8], symbol: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut around: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (number, line) in bytes.lines().enumerate() {
        let line = line.to_str_lossy();
        let words: Vec<&str> = line.split_whitespace().collect();
        match (
            line.starts_with(|first: char| first.is_whitespace()),
            words.as_slice(),
        ) {
            (false, ["if", rest @ ..]) => around.push((number, rest.join(" "))),
            (false, ["endif", ..]) => drop(around.pop()),
            (false, ["config" | "menuconfig", name]) => {
                inside = *name == symbol;
                if inside {
                    found.extend(around.iter().map(|(line, condition)| Dependency {
                        line: *line,
                        terms: terms(condition),
                    }));
                }
            }
            (false, [first, ..]) if !first.starts_with('#') => inside = false,
            (true, ["help" | "---help---"]) => inside = false,
            (true, ["depends", "on", rest @ ..]) if inside => found.push(Dependency {
                line: number,
                terms: terms(&rest.join(" ")),
            }),
            _ => {}
        }
    }
    found
}

/// The symbols that a condition needs for certain.
fn terms(condition: &str) -> Vec<String> {
    if condition.contains("||") {
        return Vec::new();
    }
    let plain = |term: &&str| {
        term.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    condition
        .split("&&")
        .map(|term| term.trim().trim_matches(['(', ')']))
        .filter(plain)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_what_the_makefile_says() {
        let makefile =
            b"# SPDX\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 0\nEXTRAVERSION = -rc7\nNAME = x\n";
        assert_eq!(release(makefile).as_deref(), Some("7.3-rc7"));
        assert_eq!(
            release(b"VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n").as_deref(),
            Some("6.12.117")
        );
        assert_eq!(release(b"all:\n\techo VERSION = 1\n"), None);
    }

    const KCONFIG: &[u8] = b"menu \"M\"\n\nmenuconfig HOTPLUG\n\tbool \"x\"\n\tdepends on SPARSE && !BROKEN\n\tdepends on 64BIT\n\nif HOTPLUG\n\nconfig REMOVE\n\tbool\n\tdepends on A || 32BIT\n\nendif\n\nconfig DEVICE\n\tbool \"depends on NOTHING\"\n\tdepends on REMOVE\n\thelp\n\t  depends on LUCK\n";

    #[test]
    fn kconfig_dependencies_are_followed_through_the_file() {
        let ask = |symbol: &str, needs: &str| kconfig("mm/Kconfig", KCONFIG, symbol, needs);
        assert_eq!(
            ask("DEVICE", "64BIT"),
            (true, "mm/Kconfig:6: depends on 64BIT".into())
        );
        assert!(ask("DEVICE", "SPARSE").0);
        assert!(!ask("DEVICE", "A").0, "an alternative proves nothing");
        assert!(!ask("DEVICE", "BROKEN").0, "a negation proves nothing");
        assert!(!ask("HOTPLUG", "REMOVE").0);
        assert!(!ask("DEVICE", "LUCK").0, "a help text says nothing");
    }
}
