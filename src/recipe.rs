//! A series as its author wrote it: `series.toml`, one `patch.toml` a patch, and their templates.
//!
//! Hides where the files come from (a directory or this binary) and turns what is wrong in them into an error
//! with file and line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::error::Refusal;
use crate::pattern::Pattern;
use crate::ui::shown_text;

static PATCHES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/patches");
static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// A series, read and checked.
pub struct Recipe {
    /// Where it was read from, for a person.
    pub origin: String,
    /// `series.toml`.
    pub series: SeriesSpec,
    /// The facts to probe.
    pub facts: Vec<FactSpec>,
    /// What the functions that the edits build on must look like.
    pub functions: Vec<FunctionSpec>,
    /// The patches, in order.
    pub patches: Vec<PatchSpec>,
    /// The cover letter's template.
    pub cover: String,
    /// C templates by name (the file name without `.tera`).
    pub templates: BTreeMap<String, String>,
}

/// A place in a recipe: a file and a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file, relative to the project.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// `series.toml` without its facts and functions.
#[derive(Debug, Clone)]
pub struct SeriesSpec {
    /// The series' name: the directory's name below `patches/`.
    pub name: String,
    /// The cover letter's subject.
    pub title: String,
    /// The version that is being worked on, from 1.
    pub version: u32,
    /// B4's form: `YYYYMMDD-topic-hash`; stays the same over versions.
    pub change_id: String,
    /// `Name <address>`.
    pub author: Option<String>,
    /// Whether the author signs off every patch.
    pub sign_off: bool,
    /// The date of the patches (RFC 3339); the base's own where there is none.
    pub date: Option<String>,
    /// Words for the subject's bracket, before `PATCH`: `RFC`, `RESEND`.
    pub prefix: Vec<String>,
    /// `To:` recipients.
    pub to: Vec<String>,
    /// `Cc:` recipients.
    pub cc: Vec<String>,
    /// Names that the cover letter's template uses, and what they stand for.
    pub inputs: BTreeMap<String, Fact>,
    /// What `reroll check` is told; its own types read it.
    pub check: Option<toml::Table>,
}

/// A fact to probe.
#[derive(Debug, Clone)]
pub struct FactSpec {
    /// Its name, as templates and `when` use it.
    pub name: String,
    /// What it means, in a few words.
    pub about: String,
    /// How it is found out.
    pub probe: Probe,
    /// What it has to be: the series is wrong on any other base.
    pub must: Option<bool>,
    /// Where the recipe says so.
    pub place: Place,
}

/// Ways to find something out about a base.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// Whether there is such a file.
    Exists {
        /// The path.
        file: String,
    },
    /// Whether a line of a file is this, white space at both ends aside.
    Line {
        /// The path.
        file: String,
        /// The line.
        line: String,
    },
    /// Whether a function has a statement like this; it must have the function.
    Statement {
        /// The path.
        file: String,
        /// The function.
        function: String,
        /// The pattern.
        pattern: String,
    },
    /// Whether one of these files defines the function.
    Function {
        /// The paths.
        files: Vec<String>,
        /// The function.
        name: String,
    },
    /// Whether a Kconfig symbol cannot be set without another one: by `depends on` and enclosing `if`s, followed
    /// through the same file.
    Kconfig {
        /// The path.
        file: String,
        /// The symbol.
        symbol: String,
        /// What it needs.
        needs: String,
    },
}

/// What a function of the base must look like: every statement belongs to one part.
#[derive(Debug, Clone)]
pub struct FunctionSpec {
    /// How edits and inputs name it.
    pub id: String,
    /// The file that defines it.
    pub file: String,
    /// Its name in C.
    pub name: String,
    /// The names of its parameters.
    pub parameters: Vec<String>,
    /// Its parts.
    pub parts: Vec<PartSpec>,
    /// Where the recipe says so.
    pub place: Place,
}

/// One part of a function.
#[derive(Debug, Clone)]
pub struct PartSpec {
    /// Its name, unique in the function.
    pub name: String,
    /// It is a statement that one of these matches.
    pub patterns: Vec<Pattern>,
    /// How many statements it may have.
    pub count: Count,
    /// It takes only what no other part has claimed.
    pub rest: bool,
    /// The functions it may call; `None`: any.
    pub calls: Option<Vec<String>>,
    /// For a capture, the identifiers it must not mention.
    pub without: BTreeMap<String, Vec<String>>,
    /// The parts of the capture `BODY`.
    pub parts: Vec<PartSpec>,
    /// Where the recipe says so.
    pub place: Place,
}

/// How many statements a part has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Count {
    /// Exactly one.
    #[default]
    One,
    /// One or none.
    Optional,
    /// Any number.
    Any,
}

/// One patch.
#[derive(Debug, Clone)]
pub struct PatchSpec {
    /// Its name: the directory's without the number. The patch's identity over versions and bases.
    pub name: String,
    /// The template of its commit message.
    pub message: String,
    /// Names that the message uses, and what they stand for.
    pub inputs: BTreeMap<String, Fact>,
    /// What it does.
    pub edits: Vec<EditSpec>,
    /// Where it is.
    pub place: Place,
}

/// One edit of a patch.
#[derive(Debug, Clone)]
pub struct EditSpec {
    /// Its name, unique in the patch.
    pub name: String,
    /// The file it changes or creates.
    pub file: String,
    /// Facts that must have these values; otherwise there is nothing to do.
    pub when: BTreeMap<String, Fact>,
    /// What it does.
    pub action: Action,
    /// The functions it adds, which the result must have and the file before must not.
    pub defines: Vec<String>,
    /// Names that its templates use, and what they stand for.
    pub inputs: BTreeMap<String, Fact>,
    /// Where the recipe says so.
    pub place: Place,
}

/// What an edit does.
#[derive(Debug, Clone)]
pub enum Action {
    /// Creates the file.
    Create(Text),
    /// Puts text somewhere.
    Insert(Spot, Text),
    /// Puts text in the place of statements.
    Replace(Target, Text),
    /// Moves statements to a new function (`helper`) in front of theirs; `call` stays behind.
    Extract {
        /// What moves.
        target: Target,
        /// The new function.
        helper: Text,
        /// What stays.
        call: Text,
    },
}

impl Action {
    /// The word for it in the recipe.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Insert(..) => "insert",
            Self::Replace(..) => "replace",
            Self::Extract { .. } => "extract",
        }
    }
}

/// Text to be rendered.
#[derive(Debug, Clone)]
pub enum Text {
    /// A template file, by name.
    Template(String),
    /// Written in the recipe itself.
    Inline(String),
}

/// What an edit takes the place of.
#[derive(Debug, Clone)]
pub enum Target {
    /// A whole function with the comment above it, which an earlier edit of the series has defined: the base's own
    /// functions are only ever taken apart statement by statement.
    Function(String),
    /// A part of a function whose parts the recipe lists.
    Part {
        /// The function's id.
        function: String,
        /// The part.
        part: String,
    },
    /// What matches a pattern.
    Statement {
        /// The function's name in C.
        function: String,
        /// The pattern: exactly one place must match.
        pattern: Box<Pattern>,
    },
}

/// Where an insertion goes.
#[derive(Debug, Clone)]
pub enum Spot {
    /// In front of a function, its comment included.
    BeforeFunction(String),
    /// Behind a function.
    AfterFunction(String),
    /// On the last lines of a function's body.
    End(String),
    /// Behind the last parameter of a function: the function, and the new parameter.
    Parameter(String, String),
    /// On the lines in front of statements.
    Before(Target),
    /// On the lines behind statements.
    After(Target),
    /// Among the `#include`s.
    Include(String),
    /// Into the sorted run of lines that start with this prefix.
    Sorted(String),
}

/// A fact's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// Yes or no.
    Flag(bool),
    /// A text.
    Text(String),
}

impl Fact {
    /// Whether this, as an input, is the path `path`.
    #[must_use]
    pub fn is_path(&self, path: &str) -> bool {
        matches!(self, Self::Text(text) if text == path)
    }
}

impl std::fmt::Display for Fact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Text(text) => f.write_str(&shown_text(text.as_bytes())),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SeriesFile {
    name: String,
    title: String,
    version: u32,
    change_id: String,
    author: Option<String>,
    #[serde(default)]
    sign_off: bool,
    date: Option<String>,
    #[serde(default)]
    prefix: Vec<String>,
    #[serde(default)]
    to: Vec<String>,
    #[serde(default)]
    cc: Vec<String>,
    patches: Vec<Spanned<String>>,
    #[serde(default)]
    inputs: BTreeMap<String, Fact>,
    #[serde(default)]
    fact: Vec<RawFact>,
    #[serde(default)]
    function: Vec<RawFunction>,
    check: Option<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFact {
    name: Spanned<String>,
    about: String,
    must: Option<bool>,
    probe: Probe,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFunction {
    id: Spanned<String>,
    file: String,
    name: String,
    parameters: Vec<String>,
    #[serde(default)]
    part: Vec<RawPart>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    name: Spanned<String>,
    patterns: Vec<String>,
    #[serde(default)]
    count: Count,
    #[serde(default)]
    rest: bool,
    calls: Option<Vec<String>>,
    #[serde(default)]
    without: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    part: Vec<RawPart>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchFile {
    #[serde(default)]
    inputs: BTreeMap<String, Fact>,
    #[serde(default)]
    edit: Vec<RawEdit>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Verb {
    Create,
    Insert,
    Replace,
    Extract,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawEdit {
    name: Spanned<String>,
    action: Verb,
    file: String,
    #[serde(default)]
    when: BTreeMap<String, Fact>,
    function: Option<String>,
    statement: Option<String>,
    part: Option<String>,
    place: Option<Side>,
    include: Option<String>,
    sorted: Option<String>,
    template: Option<String>,
    text: Option<String>,
    call: Option<String>,
    #[serde(default)]
    defines: Vec<String>,
    #[serde(default)]
    inputs: BTreeMap<String, Fact>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Side {
    Before,
    After,
    End,
    Parameter,
}

/// The names of the series that this binary has in it.
#[must_use]
pub fn embedded() -> Vec<String> {
    let names = PATCHES.dirs().filter_map(|dir| dir.path().file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// Reads a series: a directory that holds a `series.toml`, or the name of one in the project that `dir` is the root of
/// (`patches/NAME`), or of one embedded in this binary, in this order.
pub fn load(name: &str, dir: &Path) -> Result<Recipe> {
    let files = Files::find(name, dir)?;
    Reader { files }.recipe()
}

/// Where a recipe's files are.
enum Files {
    Disk { series: PathBuf, templates: PathBuf },
    Embedded { name: String },
}

impl Files {
    fn find(name: &str, dir: &Path) -> Result<Self> {
        let named = Path::new(name);
        let dir = if dir == Path::new(".") {
            Path::new("")
        } else {
            dir
        };
        let candidates = [dir.join(named), dir.join("patches").join(named)];
        if let Some(series) = candidates
            .into_iter()
            .find(|series| series.join("series.toml").is_file())
        {
            let own = series.join("templates");
            let shared = series
                .join("../../templates")
                .join(series.file_name().unwrap_or_default());
            let templates = if own.is_dir() { own } else { shared };
            return Ok(Self::Disk { series, templates });
        }
        if embedded().iter().any(|known| known == name) {
            return Ok(Self::Embedded {
                name: name.to_owned(),
            });
        }
        Err(Refusal::usage(format!(
            "there is no series `{}`",
            shown_text(name.as_bytes())
        ))
        .hint(format!(
            "`--series` takes a directory that holds a `series.toml`, or one of: {}",
            embedded().join(", ")
        ))
        .into())
    }

    /// A file of the series by its path below it; the label is what errors call it.
    fn read(&self, path: &str) -> Result<(String, String)> {
        let (label, bytes) = match self {
            Self::Disk { series, .. } => {
                let file = series.join(path);
                (file.display().to_string(), std::fs::read(&file).ok())
            }
            Self::Embedded { name } => {
                let file = format!("{name}/{path}");
                (
                    format!("patches/{file}"),
                    PATCHES.get_file(&file).map(|file| file.contents().to_vec()),
                )
            }
        };
        let bytes = bytes.ok_or_else(|| {
            Refusal::usage(format!("the recipe has no `{label}`")).hint("`series.toml` names the patches; each is a directory with `patch.toml` and `message.txt`")
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Refusal::usage(format!("`{label}` is not UTF-8")))?;
        Ok((label, text))
    }

    /// All templates.
    fn templates(&self) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        let mut add = |file: &Path, bytes: &[u8]| -> Result<()> {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if let Some(name) = name.strip_suffix(".tera") {
                let text = String::from_utf8(bytes.to_vec())
                    .map_err(|_| Refusal::usage(format!("the template `{name}` is not UTF-8")))?;
                found.insert(name.to_owned(), text);
            }
            Ok(())
        };
        match self {
            Self::Disk { templates, .. } => {
                let Ok(entries) = std::fs::read_dir(templates) else {
                    return Ok(found);
                };
                for entry in entries {
                    let path = entry?.path();
                    if path.is_file() {
                        add(
                            &path,
                            &std::fs::read(&path)
                                .with_context(|| format!("cannot read `{}`", path.display()))?,
                        )?;
                    }
                }
            }
            Self::Embedded { name } => {
                for file in TEMPLATES.get_dir(name).into_iter().flat_map(Dir::files) {
                    add(file.path(), file.contents())?;
                }
            }
        }
        Ok(found)
    }
}

struct Reader {
    files: Files,
}

impl Reader {
    fn recipe(&self) -> Result<Recipe> {
        let (label, text) = self.files.read("series.toml")?;
        let file: SeriesFile = parse(&label, &text)?;
        let at = |span: std::ops::Range<usize>| place(&label, &text, span);
        let facts = file.fact.into_iter().map(|raw| FactSpec {
            place: at(raw.name.span()),
            name: raw.name.into_inner(),
            about: raw.about,
            probe: raw.probe,
            must: raw.must,
        });
        let facts: Vec<_> = facts.collect();
        let functions = file
            .function
            .into_iter()
            .map(|raw| function(raw, &label, &text))
            .collect::<Result<Vec<_>>>()?;
        let patches = file
            .patches
            .iter()
            .map(|name| self.patch(name.get_ref(), &at(name.span())))
            .collect::<Result<Vec<_>>>()?;
        let recipe = Recipe {
            origin: label
                .trim_end_matches("series.toml")
                .trim_end_matches('/')
                .to_owned(),
            series: SeriesSpec {
                name: file.name,
                title: file.title,
                version: file.version,
                change_id: file.change_id,
                author: file.author,
                sign_off: file.sign_off,
                date: file.date,
                prefix: file.prefix,
                to: file.to,
                cc: file.cc,
                inputs: file.inputs,
                check: file.check,
            },
            facts,
            functions,
            patches,
            cover: self.files.read("cover.txt")?.1,
            templates: self.files.templates()?,
        };
        unique(&recipe)?;
        Ok(recipe)
    }

    fn patch(&self, dir: &str, named: &Place) -> Result<PatchSpec> {
        let number = dir.split_once('-').filter(|(number, _)| {
            number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        let (_, name) = number.ok_or_else(|| {
            Refusal::usage(format!(
                "{named}: `{}` is no patch directory",
                shown_text(dir.as_bytes())
            ))
            .hint("patches are named `NNNN-name`")
        })?;
        inside(dir, named)?;
        let (label, text) = self.files.read(&format!("{dir}/patch.toml"))?;
        let file: PatchFile = parse(&label, &text)?;
        let edits = file
            .edit
            .into_iter()
            .map(|raw| edit(raw, &label, &text))
            .collect::<Result<Vec<_>>>()?;
        Ok(PatchSpec {
            name: name.to_owned(),
            message: self.files.read(&format!("{dir}/message.txt"))?.1,
            inputs: file.inputs,
            edits,
            place: Place {
                file: label,
                line: 1,
            },
        })
    }
}

fn parse<T: serde::de::DeserializeOwned>(label: &str, text: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            text[..span.start.min(text.len())].matches('\n').count() + 1
        });
        let message = error
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        Refusal::usage(format!("{label}:{line}: {message}"))
            .hint("`ARCHITECTURE.md` describes the recipe's keys")
            .into()
    })
}

fn place(label: &str, text: &str, span: std::ops::Range<usize>) -> Place {
    Place {
        file: label.to_owned(),
        line: text[..span.start].matches('\n').count() + 1,
    }
}

fn wrong(place: &Place, message: impl std::fmt::Display) -> anyhow::Error {
    Refusal::usage(format!("{place}: {message}"))
        .hint("`ARCHITECTURE.md` describes the recipe's keys")
        .into()
}

/// A path of the recipe must stay in the tree, and out of git's own directory.
fn inside(path: &str, place: &Place) -> Result<()> {
    let bad = |part: &str| {
        matches!(part, "" | "." | "..")
            || part.eq_ignore_ascii_case(".git")
            || part.bytes().any(|byte| byte < b' ' || byte == b'\\')
    };
    if path.split('/').any(bad) {
        return Err(wrong(
            place,
            format!("`{}` leaves the tree", shown_text(path.as_bytes())),
        ));
    }
    Ok(())
}

fn pattern(written: &str, place: &Place) -> Result<Pattern> {
    Pattern::parse(written).map_err(|error| wrong(place, error))
}

fn function(raw: RawFunction, label: &str, text: &str) -> Result<FunctionSpec> {
    let place = place(label, text, raw.id.span());
    inside(&raw.file, &place)?;
    let parts = raw
        .part
        .into_iter()
        .map(|part| self::part(part, label, text))
        .collect::<Result<Vec<_>>>()?;
    Ok(FunctionSpec {
        id: raw.id.into_inner(),
        file: raw.file,
        name: raw.name,
        parameters: raw.parameters,
        parts,
        place,
    })
}

fn part(raw: RawPart, label: &str, text: &str) -> Result<PartSpec> {
    let place = place(label, text, raw.name.span());
    let patterns = raw
        .patterns
        .iter()
        .map(|written| pattern(written, &place))
        .collect::<Result<Vec<_>>>()?;
    if patterns.is_empty() {
        return Err(wrong(&place, "a part without patterns claims nothing"));
    }
    let captures: Vec<_> = patterns.iter().flat_map(Pattern::names).collect();
    if let Some(name) = raw.without.keys().find(|name| !captures.contains(name)) {
        return Err(wrong(
            &place,
            format!("`without` names `{name}`, which no pattern captures"),
        ));
    }
    if !raw.part.is_empty()
        && !patterns
            .iter()
            .all(|pattern| pattern.names().iter().any(|name| name == "BODY"))
    {
        return Err(wrong(
            &place,
            "a part with parts of its own needs `$$$BODY;` in each pattern",
        ));
    }
    let parts = raw
        .part
        .into_iter()
        .map(|inner| part(inner, label, text))
        .collect::<Result<Vec<_>>>()?;
    Ok(PartSpec {
        name: raw.name.into_inner(),
        patterns,
        count: raw.count,
        rest: raw.rest,
        calls: raw.calls,
        without: raw.without,
        parts,
        place,
    })
}

fn edit(raw: RawEdit, label: &str, text: &str) -> Result<EditSpec> {
    let place = place(label, text, raw.name.span());
    inside(&raw.file, &place)?;
    let mut keys = Keys {
        raw: &raw,
        place: &place,
        used: Vec::new(),
    };
    let action = match raw.action {
        Verb::Create => Action::Create(keys.text()?),
        Verb::Insert => {
            let spot = keys.spot()?;
            // A line in a sorted run, and an include, are their own text.
            match &spot {
                Spot::Sorted(line) => Action::Insert(spot.clone(), Text::Inline(line.clone())),
                Spot::Include(header) => {
                    let line = format!("#include <{header}>");
                    Action::Insert(spot, Text::Inline(line))
                }
                _ => Action::Insert(spot, keys.text()?),
            }
        }
        Verb::Replace => Action::Replace(keys.target()?, keys.text()?),
        Verb::Extract => {
            let call = keys
                .take("call", raw.call.as_ref())
                .ok_or_else(|| wrong(&place, "`extract` needs `call`: what stays behind"))?;
            Action::Extract {
                target: keys.target()?,
                helper: keys.text()?,
                call: Text::Inline(call),
            }
        }
    };
    keys.none_left(action.verb())?;
    Ok(EditSpec {
        action,
        name: raw.name.into_inner(),
        file: raw.file,
        when: raw.when,
        defines: raw.defines,
        inputs: raw.inputs,
        place,
    })
}

/// The optional keys of an edit, taken one by one, so that one that its action has no use for is an error.
struct Keys<'a> {
    raw: &'a RawEdit,
    place: &'a Place,
    used: Vec<&'static str>,
}

impl Keys<'_> {
    fn take(&mut self, name: &'static str, value: Option<&String>) -> Option<String> {
        self.used.push(name);
        value.cloned()
    }

    fn text(&mut self) -> Result<Text> {
        let raw = self.raw;
        match (
            self.take("template", raw.template.as_ref()),
            self.take("text", raw.text.as_ref()),
        ) {
            (Some(template), None) => Ok(Text::Template(template)),
            (None, Some(text)) => Ok(Text::Inline(text)),
            _ => Err(wrong(
                self.place,
                "an edit needs either `template` or `text`",
            )),
        }
    }

    fn function(&mut self, what: &str) -> Result<String> {
        let raw = self.raw;
        let function = self.take("function", raw.function.as_ref());
        function.ok_or_else(|| wrong(self.place, format!("{what} needs the `function` it is in")))
    }

    fn target(&mut self) -> Result<Target> {
        let raw = self.raw;
        let part = self.take("part", raw.part.as_ref());
        let statement = self.take("statement", raw.statement.as_ref());
        match (part, statement) {
            (Some(part), None) => {
                let (function, part) = part
                    .split_once('.')
                    .ok_or_else(|| wrong(self.place, "`part` is written `function.part`"))?;
                Ok(Target::Part {
                    function: function.to_owned(),
                    part: part.to_owned(),
                })
            }
            (None, Some(statement)) => Ok(Target::Statement {
                function: self.function("`statement`")?,
                pattern: Box::new(pattern(&statement, self.place)?),
            }),
            (None, None) => Ok(Target::Function(
                self.function("an edit without `part` or `statement`")?,
            )),
            _ => Err(wrong(
                self.place,
                "an edit has either `part` or `statement`",
            )),
        }
    }

    fn spot(&mut self) -> Result<Spot> {
        let raw = self.raw;
        if let Some(include) = self.take("include", raw.include.as_ref()) {
            return Ok(Spot::Include(include));
        }
        if let Some(sorted) = self.take("sorted", raw.sorted.as_ref()) {
            return Ok(Spot::Sorted(sorted));
        }
        self.used.push("place");
        let side = raw
            .place
            .ok_or_else(|| wrong(self.place, "`insert` needs `place`, `include` or `sorted`"))?;
        Ok(match (side, self.whole()) {
            (Side::Before, true) => Spot::BeforeFunction(self.function("`place`")?),
            (Side::After, true) => Spot::AfterFunction(self.function("`place`")?),
            (Side::Before, false) => Spot::Before(self.target()?),
            (Side::After, false) => Spot::After(self.target()?),
            (Side::End, _) => Spot::End(self.function("`place`")?),
            (Side::Parameter, _) => {
                let text = self.raw.text.clone();
                let text = text.ok_or_else(|| wrong(self.place, "a parameter needs `text`"))?;
                Spot::Parameter(self.function("`place`")?, text)
            }
        })
    }

    /// Whether the edit is about a function as a whole.
    fn whole(&self) -> bool {
        self.raw.statement.is_none() && self.raw.part.is_none()
    }

    fn none_left(&self, verb: &str) -> Result<()> {
        let raw = self.raw;
        let given = [
            ("function", raw.function.is_some()),
            ("statement", raw.statement.is_some()),
            ("part", raw.part.is_some()),
            ("place", raw.place.is_some()),
            ("include", raw.include.is_some()),
            ("sorted", raw.sorted.is_some()),
            ("template", raw.template.is_some()),
            ("text", raw.text.is_some()),
            ("call", raw.call.is_some()),
        ];
        match given
            .iter()
            .find(|(name, given)| *given && !self.used.contains(name))
        {
            Some((name, _)) => Err(wrong(
                self.place,
                format!("`{verb}` has no use for `{name}` here"),
            )),
            None => Ok(()),
        }
    }
}

/// Names that must not come twice.
fn unique(recipe: &Recipe) -> Result<()> {
    let mut seen = BTreeMap::new();
    let facts = recipe
        .facts
        .iter()
        .map(|fact| (format!("fact `{}`", fact.name), &fact.place));
    let functions = recipe
        .functions
        .iter()
        .map(|function| (format!("function `{}`", function.id), &function.place));
    let patches = recipe
        .patches
        .iter()
        .map(|patch| (format!("patch `{}`", patch.name), &patch.place));
    let edits = recipe.patches.iter().flat_map(|patch| {
        patch.edits.iter().map(move |edit| {
            (
                format!("edit `{}` of patch `{}`", edit.name, patch.name),
                &edit.place,
            )
        })
    });
    let parts = recipe.functions.iter().flat_map(|function| {
        all_parts(&function.parts)
            .into_iter()
            .map(move |part| (format!("part `{}.{}`", function.id, part.name), &part.place))
    });
    for (what, place) in facts
        .chain(functions)
        .chain(patches)
        .chain(edits)
        .chain(parts)
    {
        if let Some(first) = seen.insert(what.clone(), place) {
            return Err(wrong(place, format!("{what} is already at {first}")));
        }
    }
    Ok(())
}

/// A list of parts with all that are nested in them.
#[must_use]
pub fn all_parts(parts: &[PartSpec]) -> Vec<&PartSpec> {
    parts
        .iter()
        .flat_map(|part| std::iter::once(part).chain(all_parts(&part.parts)))
        .collect()
}
