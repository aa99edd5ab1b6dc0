//! A series as its author wrote it: `series.toml`, one `patch.toml` a patch, and their templates.
//!
//! Hides where the files come from (a directory or this binary) and turns what is wrong in them into an error
//! with file and line.

mod check;
mod digest;
mod files;
mod home;
mod read;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::pattern::Pattern;
use crate::ui::shown_text;

pub use files::embedded;
pub use home::Home;

/// A series, read and checked.
#[derive(Clone)]
pub struct Recipe {
    /// Where it was read from, for a person.
    pub origin: String,
    /// A digest of every file that was read: the same digest is the same recipe.
    pub digest: String,
    /// The directory it was read from; `None` is this binary.
    pub directory: Option<std::path::PathBuf>,
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
    /// The template of what stands below the cover letter's `---`: what changed since earlier versions.
    pub cover_notes: String,
    /// C templates by name (the file name without `.tera`).
    pub templates: BTreeMap<String, String>,
    /// The recorded performance, where there is one: what errors call the file, and its text.
    pub performance: Option<(String, String)>,
    /// What the series rests on; `None`: nothing but what it edits is looked at.
    pub rests_on: Option<RestsSpec>,
    /// The forms that it was proven with, where there are some: what errors call the file, and its text.
    pub proven: Option<(String, String)>,
    /// `series.toml` and every `patch.toml` as they were read, by their paths.
    sources: Vec<(String, String)>,
}

impl Recipe {
    /// Where `word` comes in the `[check]` tables of `series.toml`; its first line where it does not.
    #[must_use]
    pub fn place_in_check(&self, word: &str) -> Place {
        let source = self.sources.iter().find(|(path, _)| path == "series.toml");
        let text = source.map_or("", |(_, text)| text);
        let check = text.find("[check").unwrap_or(0);
        let at = text[check..].find(word).map_or(0, |at| check + at);
        Place {
            file: format!("{}/series.toml", self.origin),
            line: text[..at].matches('\n').count() + 1,
        }
    }
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
#[derive(Debug, Clone)]
pub enum Probe {
    /// Whether there is such a file.
    Exists {
        /// The path.
        file: String,
    },
    /// Whether a line of one of these files is this, white space at both ends aside.
    Line {
        /// The paths.
        files: Vec<String>,
        /// The line.
        line: String,
    },
    /// Whether a function has a statement like this; it must have the function.
    Statement {
        /// The path; empty where a base has not said it yet.
        file: String,
        /// How the recipe says that.
        home: Home,
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

/// What the series rests on and does not edit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RestsSpec {
    /// C files besides those of the functions: what is defined out of line is found in them. One that a base does not have is left out.
    #[serde(default)]
    pub files: Vec<String>,
    /// The architectures (directories below `arch/`) whose headers count; none stands for all.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// Structures whose whole layout counts, not just the members that are used.
    #[serde(default)]
    pub layouts: Vec<String>,
    /// Further names.
    #[serde(default)]
    pub names: Vec<String>,
    /// How many steps the names in a definition are followed from the series' own code; what is further away is taken for granted.
    #[serde(default = "depth")]
    pub depth: usize,
    /// What is taken for granted.
    #[serde(default)]
    pub beyond: Vec<Beyond>,
}

fn depth() -> usize {
    3
}

/// Names that are taken for granted: neither compared nor followed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beyond {
    /// The names.
    pub names: Vec<String>,
    /// Why it does not matter to the series what they say.
    pub reason: String,
}

/// What a function of the base must look like: every statement belongs to one part.
#[derive(Debug, Clone)]
pub struct FunctionSpec {
    /// How edits and inputs name it.
    pub id: String,
    /// The file that defines it; empty where a base has not said it yet.
    pub file: String,
    /// How the recipe says that.
    pub home: Home,
    /// Its name in C.
    pub name: String,
    /// The names of its parameters.
    pub parameters: Vec<String>,
    /// Their types, where the recipe says them.
    pub types: Vec<Option<String>>,
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
    /// For a capture, the texts that it may be, token by token (`where`).
    pub only: BTreeMap<String, Vec<String>>,
    /// For a capture, the identifiers it must not mention, and the field it must not be.
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
    /// The template of what stands below its `---`: no part of the commit.
    pub notes: String,
    /// Names that the message and the notes use, and what they stand for.
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
    /// The file it changes or creates; empty where a base has not said it yet.
    pub file: String,
    /// How the recipe says that.
    pub home: Home,
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

impl EditSpec {
    /// The statements that it is about, if it is about some.
    #[must_use]
    pub fn target(&self) -> Option<&Target> {
        match &self.action {
            Action::Insert(Spot::Before(target) | Spot::After(target), _)
            | Action::Replace(target, _)
            | Action::Extract { target, .. } => Some(target),
            Action::Create(_) | Action::Insert(..) => None,
        }
    }

    /// The texts that it renders.
    #[must_use]
    pub fn texts(&self) -> Vec<&Text> {
        match &self.action {
            Action::Create(text) | Action::Insert(_, text) | Action::Replace(_, text) => vec![text],
            Action::Extract { helper, call, .. } => vec![helper, call],
        }
    }

    /// Whether it is about the function that the recipe calls `id` and C calls `name`.
    #[must_use]
    pub fn is_about(&self, id: &str, name: &str) -> bool {
        match (self.target(), &self.action) {
            (Some(Target::Part { function, .. }), _) => function == id,
            (Some(Target::Statement { function, .. } | Target::Function(function)), _) => {
                function == name
            }
            (None, Action::Insert(spot, _)) => matches!(
                spot,
                Spot::BeforeFunction(function)
                    | Spot::AfterFunction(function)
                    | Spot::End(function)
                    | Spot::Parameter(function, _) if function == name
            ),
            (None, _) => false,
        }
    }
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

/// Reads a series: a directory that holds a `series.toml`, or the name of one in the project that `dir` is the root of
/// (`patches/NAME`), or of one embedded in this binary, in this order.
pub fn load(name: &str, dir: &Path) -> Result<Recipe> {
    read::recipe(files::Files::find(name, dir)?)
}

/// A list of parts with all that are nested in them.
#[must_use]
pub fn all_parts(parts: &[PartSpec]) -> Vec<&PartSpec> {
    parts
        .iter()
        .flat_map(|part| std::iter::once(part).chain(all_parts(&part.parts)))
        .collect()
}

/// The seconds since 1970 of a date as recipes and options write it: RFC 3339, or the day alone for its first second in UTC.
pub fn time(date: &str) -> Result<i64> {
    let is_day = date.parse::<jiff::civil::Date>().is_ok() && !date.contains([':', 'T']);
    let whole = if is_day {
        format!("{date}T00:00:00Z")
    } else {
        date.to_owned()
    };
    let parsed: Result<jiff::Timestamp, _> = whole.parse();
    parsed.map(jiff::Timestamp::as_second).map_err(|error| {
        let date = shown_text(date.as_bytes());
        Refusal::usage(format!("`{date}` is no date: {error}"))
            .hint("write it like `2026-11-30` or `2026-11-30T12:00:00Z`")
            .into()
    })
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

/// The error for a line of a recipe.
fn wrong(place: &Place, message: impl std::fmt::Display) -> anyhow::Error {
    Refusal::usage(format!("{place}: {message}"))
        .hint("`ARCHITECTURE.md` describes the recipe's keys")
        .into()
}
