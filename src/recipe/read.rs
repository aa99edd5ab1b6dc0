//! Reads a recipe's TOML into its types, strictly: an unknown key, a key that an action has no use for, a name that comes twice, or
//! a path that leaves the tree is an error with file and line.
//!
//! Hides the keys as they are written.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;

use super::check;
use super::files::Files;
use super::home::{self, RawProbe};
use super::{
    Action, Count, EditSpec, Fact, FactSpec, FunctionSpec, Home, PartSpec, PatchSpec, Place,
    Recipe, RestsSpec, SeriesSpec, Spot, Target, Text, inside, time, wrong,
};
use crate::bench::record;
use crate::error::{Refusal, refusal};
use crate::mail::{ChangeId, Mailbox};
use crate::pattern::Pattern;
use crate::syntax;
use crate::ui::shown_text;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SeriesFile {
    name: String,
    title: String,
    version: u32,
    change_id: Spanned<String>,
    author: Option<Spanned<String>>,
    #[serde(default)]
    sign_off: bool,
    date: Option<Spanned<String>>,
    #[serde(default)]
    prefix: Vec<String>,
    #[serde(default)]
    to: Vec<Spanned<String>>,
    #[serde(default)]
    cc: Vec<Spanned<String>>,
    patches: Vec<Spanned<String>>,
    #[serde(default)]
    inputs: BTreeMap<String, Fact>,
    #[serde(default)]
    fact: Vec<RawFact>,
    #[serde(default)]
    function: Vec<RawFunction>,
    rests_on: Option<RestsSpec>,
    check: Option<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFact {
    name: Spanned<String>,
    about: String,
    must: Option<bool>,
    probe: RawProbe,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFunction {
    id: Spanned<String>,
    file: Option<home::Files>,
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
    r#where: BTreeMap<String, Vec<String>>,
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
    file: Option<String>,
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

/// Reads and checks a whole recipe.
pub(super) fn recipe(files: Files) -> Result<Recipe> {
    let digest = RefCell::default();
    Reader { files, digest }.recipe()
}

struct Reader {
    files: Files,
    /// Over what was read so far.
    digest: RefCell<Sha256>,
}

impl Reader {
    fn recipe(&self) -> Result<Recipe> {
        let (label, text) = self.read("series.toml")?;
        let file: SeriesFile = parse(&label, &text)?;
        let at = |span: Range<usize>| place(&label, &text, span);
        let facts = file.fact.into_iter().map(|raw| {
            let place = at(raw.name.span());
            Ok(FactSpec {
                name: raw.name.into_inner(),
                about: raw.about,
                probe: raw.probe.read(&place)?,
                must: raw.must,
                place,
            })
        });
        let facts = facts.collect::<Result<Vec<_>>>()?;
        let functions = file
            .function
            .into_iter()
            .map(|raw| function(raw, &label, &text))
            .collect::<Result<Vec<_>>>()?;
        let mut sources = vec![("series.toml".to_owned(), text.clone())];
        let patches = file
            .patches
            .iter()
            .map(|name| self.patch(name.get_ref(), &at(name.span()), &mut sources))
            .collect::<Result<Vec<_>>>()?;
        let cover = self.read("cover.txt")?.1;
        let cover_notes = self.notes("notes.txt")?;
        let templates = self.files.templates()?;
        let performance = self.files.read_optional(record::FILE)?;
        let proven = self.files.read_optional(crate::rests::record::FILE)?;
        let recorded = performance.iter().map(|(_, text)| (record::FILE, text));
        let known = proven
            .iter()
            .map(|(_, text)| (crate::rests::record::FILE, text));
        let named = templates.iter().map(|(name, text)| (name.as_str(), text));
        for (name, text) in named.chain(recorded).chain(known) {
            self.learn(name, text);
        }
        let mailboxes = |all: Vec<Spanned<String>>| -> Result<Vec<String>> {
            let all = all.into_iter();
            all.map(|raw| valid(raw, &at, Mailbox::parse_list))
                .collect()
        };
        let author = file
            .author
            .map(|raw| valid(raw, &at, Mailbox::parse_person));
        let date = file.date.map(|raw| valid(raw, &at, time));
        let mut recipe = Recipe {
            digest: crate::digest::hex(&self.digest.borrow().clone().finalize()),
            directory: self.files.directory(),
            origin: label
                .trim_end_matches("series.toml")
                .trim_end_matches('/')
                .to_owned(),
            series: SeriesSpec {
                name: file.name,
                title: file.title,
                version: file.version,
                change_id: valid(file.change_id, &at, ChangeId::parse)?,
                author: author.transpose()?,
                sign_off: file.sign_off,
                date: date.transpose()?,
                prefix: file.prefix,
                to: mailboxes(file.to)?,
                cc: mailboxes(file.cc)?,
                inputs: file.inputs,
                check: file.check,
            },
            facts,
            functions,
            patches,
            cover,
            cover_notes,
            templates,
            performance,
            rests_on: file.rests_on,
            proven,
            sources,
        };
        home::settle(&mut recipe)?;
        check::consistent(&recipe)?;
        Ok(recipe)
    }

    /// A file of the series; it counts for the digest.
    fn read(&self, path: &str) -> Result<(String, String)> {
        let (label, text) = self.files.read(path)?;
        self.learn(path, &text);
        Ok((label, text))
    }

    /// A file of the series that need not be there; it counts for the digest.
    fn notes(&self, path: &str) -> Result<String> {
        let found = self.files.read_optional(path)?;
        let Some((_, text)) = found else {
            return Ok(String::new());
        };
        self.learn(path, &text);
        Ok(text)
    }

    fn learn(&self, path: &str, text: &str) {
        let mut digest = self.digest.borrow_mut();
        digest.update(format!("{path}\0{}\0", text.len()));
        digest.update(text);
    }

    fn patch(
        &self,
        dir: &str,
        named: &Place,
        sources: &mut Vec<(String, String)>,
    ) -> Result<PatchSpec> {
        let number = dir.split_once('-').filter(|(number, name)| {
            number.len() == 4
                && number.bytes().all(|byte| byte.is_ascii_digit())
                && !name.contains('/')
        });
        let (_, name) = number.ok_or_else(|| {
            Refusal::usage(format!(
                "{named}: `{}` is no patch directory",
                shown_text(dir.as_bytes())
            ))
            .hint("patches are named `NNNN-name`")
        })?;
        inside(dir, named)?;
        let path = format!("{dir}/patch.toml");
        let (label, text) = self.read(&path)?;
        let file: PatchFile = parse(&label, &text)?;
        let edits = file
            .edit
            .into_iter()
            .map(|raw| edit(raw, &label, &text))
            .collect::<Result<Vec<_>>>()?;
        sources.push((path, text));
        Ok(PatchSpec {
            name: name.to_owned(),
            message: self.read(&format!("{dir}/message.txt"))?.1,
            notes: self.notes(&format!("{dir}/notes.txt"))?,
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

fn place(label: &str, text: &str, span: Range<usize>) -> Place {
    Place {
        file: label.to_owned(),
        line: text[..span.start].matches('\n').count() + 1,
    }
}

/// A text that `read` takes; otherwise what is wrong with it, with its line.
fn valid<T>(
    raw: Spanned<String>,
    at: &impl Fn(Range<usize>) -> Place,
    read: impl Fn(&str) -> Result<T>,
) -> Result<String> {
    let place = at(raw.span());
    let text = raw.into_inner();
    match read(&text) {
        Ok(_) => Ok(text),
        Err(error) => {
            let message = format!("{place}: {error}");
            let hint = refusal(&error).and_then(|refusal| refusal.hint.clone());
            Err(Refusal::usage(message)
                .hint(hint.unwrap_or_default())
                .into())
        }
    }
}

fn pattern(written: &str, place: &Place) -> Result<Pattern> {
    Pattern::parse(written).map_err(|error| wrong(place, error))
}

fn function(raw: RawFunction, label: &str, text: &str) -> Result<FunctionSpec> {
    let place = place(label, text, raw.id.span());
    let (file, home) = home::Files::home(raw.file, &place)?;
    let parts = raw
        .part
        .into_iter()
        .map(|part| self::part(part, label, text))
        .collect::<Result<Vec<_>>>()?;
    let parameters = raw.parameters.iter().map(|written| {
        let message = || format!("`{written}` is no parameter");
        parameter(written).ok_or_else(|| wrong(&place, message()))
    });
    let (parameters, types) = parameters.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    Ok(FunctionSpec {
        id: raw.id.into_inner(),
        file,
        home,
        name: raw.name,
        parameters,
        types,
        parts,
        place,
    })
}

/// A parameter of a function: its name alone, or as C declares it.
fn parameter(written: &str) -> Option<(String, Option<String>)> {
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if !written.is_empty() && written.chars().all(is_word) {
        return Some((written.to_owned(), None));
    }
    syntax::parameter(written).map(|(name, kind)| (name, Some(kind)))
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
    for (key, names) in [
        ("where", raw.r#where.keys()),
        ("without", raw.without.keys()),
    ] {
        if let Some(name) = names.into_iter().find(|name| !captures.contains(name)) {
            let message = format!("`{key}` names `{name}`, which no pattern captures");
            return Err(wrong(&place, message));
        }
    }
    if let Some((name, _)) = raw.r#where.iter().find(|(_, texts)| texts.is_empty()) {
        return Err(wrong(&place, format!("`where.{name}` allows nothing")));
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
        only: raw.r#where,
        without: raw.without,
        parts,
        place,
    })
}

fn edit(raw: RawEdit, label: &str, text: &str) -> Result<EditSpec> {
    let place = place(label, text, raw.name.span());
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
    let home = keys.home(&action)?;
    keys.none_left(action.verb())?;
    Ok(EditSpec {
        action,
        name: raw.name.into_inner(),
        file: raw.file.unwrap_or_default(),
        home,
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

    /// How the edit says which file it is in: by `file`, or by the function that it is about or names for that.
    fn home(&mut self, action: &Action) -> Result<Home> {
        if let Some(file) = &self.raw.file {
            inside(file, self.place)?;
            return Ok(Home::Exactly);
        }
        let part = self
            .raw
            .part
            .as_deref()
            .and_then(|part| part.split_once('.'));
        let function = match (part, action) {
            (_, Action::Create(_)) => None,
            (Some((function, _)), _) => Some(function.to_owned()),
            (None, _) => self.take("function", self.raw.function.as_ref()),
        };
        let missing = "an edit names its `file`, or a `function` or `part` that is in it";
        let function = function.ok_or_else(|| wrong(self.place, missing))?;
        Ok(Home::With(function))
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
