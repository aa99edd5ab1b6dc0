//! Renders the texts of a recipe on a base: what each input stands for, and that nothing is declared or captured in vain.
//!
//! Hides where a value comes from: the facts, a part of a function, what an anchor matched, the base, the series.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Options;
use super::survey::Survey;
use crate::bench::letter;
use crate::bench::record::Performance;
use crate::carry;
use crate::edit::Anchor;
use crate::error::Refusal;
use crate::pattern::Pattern;
use crate::recipe::{EditSpec, Fact, PatchSpec, Place, Recipe, Text, all_parts};
use crate::repo::{Base, Repo, Signature};
use crate::template::{Inputs, Templates};
use crate::trailers::signed_off;

/// What texts are rendered from.
pub(super) struct Writer<'a> {
    pub(super) repo: &'a Repo,
    pub(super) base: &'a Base,
    pub(super) recipe: &'a Recipe,
    pub(super) options: &'a Options,
    pub(super) survey: Survey,
    pub(super) templates: Templates,
    /// What was measured of exactly this series on exactly this base.
    pub(super) performance: Option<Box<Performance>>,
}

impl Writer<'_> {
    /// Renders the texts of one edit. Its inputs and captures are shared by them, and each must be used by at least one.
    pub(super) fn edit_text(
        &mut self,
        edit: &EditSpec,
        texts: &[&Text],
        anchor: &Anchor,
    ) -> Result<Vec<String>> {
        let inputs = self.inputs(&edit.inputs, &edit.place, Some(anchor))?;
        edit_texts(&mut self.templates, self.recipe, edit, texts, &inputs)
    }

    /// The message of a patch, and what stands below its `---`; empty where there is nothing.
    pub(super) fn message(&mut self, spec: &PatchSpec) -> Result<(String, String)> {
        let texts = [&*spec.message, &*spec.notes];
        let name = &spec.name;
        let labels = ["message", "notes"].map(|text| format!("{name}/{text}.txt"));
        let (message, notes) = self.with_notes(&labels, texts, &spec.inputs, &spec.place)?;
        let mut message = format!("{}\n", message.trim_end());
        if self.options.sign_off {
            let Signature { name, email, .. } = &self.options.author;
            let line = format!("Signed-off-by: {name} <{email}>");
            message = signed_off(&message, &line);
        }
        Ok((message, notes))
    }

    /// The cover letter's text, and what stands below its `---`.
    pub(super) fn cover(&mut self) -> Result<(String, String)> {
        let recipe = self.recipe;
        let labels = ["cover.txt", "notes.txt"].map(str::to_owned);
        let texts = [&*recipe.cover, &*recipe.cover_notes];
        let place = Place {
            file: format!("{}/cover.txt", recipe.origin),
            line: 1,
        };
        self.with_notes(&labels, texts, &recipe.series.inputs, &place)
    }

    /// A text and its notes. They share the inputs: each must be used by one of them.
    fn with_notes(
        &mut self,
        labels: &[String; 2],
        [text, notes]: [&str; 2],
        inputs: &BTreeMap<String, Fact>,
        place: &Place,
    ) -> Result<(String, String)> {
        let only = |wanted: &dyn Fn(&str) -> bool| -> BTreeMap<String, Fact> {
            let inputs = inputs.iter().filter(|(name, _)| wanted(name));
            inputs
                .map(|(name, it)| (name.clone(), it.clone()))
                .collect()
        };
        let own = only(&|name| mentions(text, name) || !mentions(notes, name));
        let text = self.text(&labels[0], text, &own, place)?;
        if notes.is_empty() {
            return Ok((text, String::new()));
        }
        let own = only(&|name| mentions(notes, name));
        let notes = self.text(&labels[1], notes, &own, place)?;
        Ok((text, notes.trim_end().to_owned()))
    }

    /// Renders a text that is no part of an edit.
    fn text(
        &mut self,
        label: &str,
        text: &str,
        inputs: &BTreeMap<String, Fact>,
        place: &Place,
    ) -> Result<String> {
        let inputs = self.inputs(inputs, place, None)?;
        let text = carry::plain(text);
        let rendered = self.templates.render(label, &text, &inputs, place)?;
        if carry::has_bytes(&rendered) {
            return Err(Refusal::drift(format!(
                "`{label}` quotes text of the base that is not UTF-8, which no mail can say it is"
            ))
            .hint(format!("take what it quotes out of the inputs at {place}"))
            .into());
        }
        Ok(rendered)
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

    /// What a path stands for: `facts.NAME`, `match.CAPTURE`, `base.release`, `series.title`, `performance.table`, or
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
            ["base", "official"] => Some(Fact::Flag(self.repo.is_official(self.base)?)),
            ["base", "imported"] => Some(Fact::Flag(self.base.imported)),
            ["series", "title"] => Some(Fact::Text(self.recipe.series.title.clone())),
            ["series", "version"] => Some(Fact::Text(self.options.version.to_string())),
            ["performance", "present"] => Some(Fact::Flag(self.performance.is_some())),
            ["performance", "table"] => Some(Fact::Text(self.table(place))),
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
                .hint("`facts.NAME`, `match.CAPTURE`, `FUNCTION.PART.text`, `.code`, `.present`, `.uses.NAME`, `.CAPTURE`, `base.release`, `series.title` or `performance.table`")
                .into()
        })
    }

    /// The recorded performance as text: up to the patch whose message is at `place`, or all of it; empty where there is none.
    fn table(&self, place: &Place) -> String {
        let patches = &self.recipe.patches;
        let index = patches.iter().position(|patch| patch.place == *place);
        let performance = self.performance.as_deref();
        performance.map_or_else(String::new, |it| {
            letter::text(it, index.map(|index| index + 1))
        })
    }

    fn captures_of(&self, function: &str, part: &str) -> Vec<String> {
        let spec = self
            .recipe
            .functions
            .iter()
            .find(|spec| spec.id == function);
        let parts = spec.map(|spec| all_parts(&spec.parts)).unwrap_or_default();
        let found = parts.into_iter().find(|known| known.name == part);
        found
            .map(|part| part.patterns.iter().flat_map(Pattern::names).collect())
            .unwrap_or_default()
    }
}

/// Renders texts of one edit with these values of its inputs, each of which must be used by at least one.
pub(super) fn edit_texts(
    templates: &mut Templates,
    recipe: &Recipe,
    edit: &EditSpec,
    texts: &[&Text],
    inputs: &Inputs,
) -> Result<Vec<String>> {
    let mut sources = Vec::new();
    for text in texts {
        sources.push(match text {
            Text::Inline(text) => (format!("{} ({})", edit.name, edit.place), text.clone()),
            Text::Template(name) => {
                let text = recipe.templates.get(name).cloned().ok_or_else(|| {
                    Refusal::usage(format!("{}: there is no template `{name}`", edit.place)).hint(
                        "templates are files `NAME.tera` in the series' folder of `templates/`",
                    )
                })?;
                (name.clone(), text)
            }
        });
    }
    let mut unused: Vec<&String> = edit.inputs.keys().collect();
    let mut rendered = Vec::new();
    for (label, text) in &sources {
        let text = &*carry::plain(text);
        let mine: Inputs = inputs
            .iter()
            .filter(|(name, _)| mentions(text, name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        unused.retain(|name| !mine.contains_key(*name));
        rendered.push(templates.render(label, text, &mine, &edit.place)?);
    }
    if let Some(name) = unused.first() {
        return Err(Refusal::usage(format!(
            "{}: no template of edit `{}` uses its input `{name}`",
            edit.place, edit.name
        ))
        .hint("take it out of the inputs, or use it")
        .into());
    }
    Ok(rendered)
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
