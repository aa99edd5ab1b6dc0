//! The forms that a recipe was proven with: `proven.json` beside the series, which only `reroll check --record` writes.
//!
//! It holds digests, not the kernel's text: which forms, and on which bases the build and equality gates passed with them. It counts for
//! the recipe that was proven and no other.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::form::Form;
use super::reach::Item;
use crate::error::Refusal;

/// The file's name beside `series.toml`.
pub const FILE: &str = "proven.json";
/// The layout of the file; raised too where forms come out otherwise than before.
const FORMAT: u32 = 1;

/// What a recipe was proven with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proven {
    format: u32,
    /// The digest of what decides the series' code.
    code: String,
    /// The bases, oldest record first.
    bases: Vec<ProvenBase>,
    /// The forms by the names of the definitions.
    forms: BTreeMap<String, Vec<Known>>,
}

/// A base that the gates passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenBase {
    /// The kernel's release.
    pub release: String,
    /// The base's tree.
    pub tree: String,
    /// The configurations that were built, and those that were run and compared.
    pub configurations: Vec<String>,
}

/// A form that was proven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The form.
    pub form: String,
    /// The short digests of its pieces, with blanks between.
    pub pieces: String,
    /// The bases, as numbers in the list of them.
    pub bases: Vec<usize>,
}

impl Proven {
    /// Reads the file. One of another layout, or of other code, knows nothing: `Err` is the reason, for a person.
    pub fn read(label: &str, text: &str, code: &str) -> Result<Result<Self, String>> {
        let version: Version = parse(label, text)?;
        if version.format != FORMAT {
            return Ok(Err(format!(
                "`{label}` was written by another version of reroll"
            )));
        }
        let proven: Self = parse(label, text)?;
        if proven.code != code {
            return Ok(Err(format!(
                "the recipe's code has changed since `{label}` was recorded"
            )));
        }
        Ok(Ok(proven))
    }

    /// Nothing, for this code.
    #[must_use]
    pub fn nothing(code: &str) -> Self {
        Self {
            format: FORMAT,
            code: code.to_owned(),
            ..Self::default()
        }
    }

    /// The forms of a name that are known.
    #[must_use]
    pub fn known(&self, name: &str) -> &[Known] {
        self.forms.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether a form of a name is known.
    #[must_use]
    pub fn knows(&self, name: &str, form: &Form) -> bool {
        self.known(name).iter().any(|known| known.form == form.id)
    }

    /// The bases.
    #[must_use]
    pub fn bases(&self) -> &[ProvenBase] {
        &self.bases
    }

    /// The releases that a form was proven on.
    #[must_use]
    pub fn releases(&self, known: &Known) -> Vec<&str> {
        let bases = known
            .bases
            .iter()
            .filter_map(|number| self.bases.get(*number));
        bases.map(|base| base.release.as_str()).collect()
    }

    /// Takes in a base with all that the series rests on there. A base of the same release takes the place of the one before.
    pub fn add(&mut self, base: ProvenBase, items: &[Item]) {
        let place = self.bases.iter().position(|known| known.tree == base.tree);
        let number = place.unwrap_or(self.bases.len());
        match place {
            Some(place) => self.bases[place] = base,
            None => self.bases.push(base),
        }
        for known in self.forms.values_mut().flatten() {
            known.bases.retain(|other| *other != number);
        }
        for item in items {
            let forms = self.forms.entry(item.name.clone()).or_default();
            match forms.iter_mut().find(|known| known.form == item.form.id) {
                Some(known) => known.bases.push(number),
                None => forms.push(Known {
                    form: item.form.id.clone(),
                    pieces: item.form.pieces.join(" "),
                    bases: vec![number],
                }),
            }
        }
        for forms in self.forms.values_mut() {
            forms.retain(|known| !known.bases.is_empty());
            for known in forms {
                known.bases.sort_unstable();
            }
        }
        self.forms.retain(|_, forms| !forms.is_empty());
    }

    /// The file's text.
    pub fn text(&self) -> Result<String> {
        // A line a form: a person can read what a commit of the file changes.
        let mut text = String::from("{\n");
        let json = |value: &dyn erased::Json| value.json();
        text.push_str(&format!("  \"format\": {},\n", self.format));
        text.push_str(&format!("  \"code\": {},\n", json(&self.code)?));
        text.push_str("  \"bases\": [\n");
        let bases: Vec<_> = self
            .bases
            .iter()
            .map(|base| Ok(format!("    {}", json(base)?)))
            .collect::<Result<_>>()?;
        text.push_str(&bases.join(",\n"));
        text.push_str("\n  ],\n  \"forms\": {\n");
        let mut forms = Vec::new();
        for (name, known) in &self.forms {
            let known: Vec<_> = known
                .iter()
                .map(|known| Ok(format!("      {}", json(known)?)))
                .collect::<Result<_>>()?;
            forms.push(format!(
                "    {}: [\n{}\n    ]",
                json(name)?,
                known.join(",\n")
            ));
        }
        text.push_str(&forms.join(",\n"));
        text.push_str("\n  }\n}\n");
        Ok(text)
    }
}

/// Lets one closure write values of several types.
mod erased {
    use anyhow::Result;

    pub(super) trait Json {
        fn json(&self) -> Result<String>;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> Result<String> {
            Ok(serde_json::to_string(self)?)
        }
    }
}

/// What every layout of the file has.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

fn parse<T: serde::de::DeserializeOwned>(label: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).with_context(|| {
        Refusal::usage(format!("`{label}` is no record of what was proven"))
            .hint("take it from the history of the series, or remove it and prove the series anew: `reroll check --record`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rests::reach::Said;

    fn item(name: &str, form: &str) -> Item {
        Item {
            name: name.to_owned(),
            form: Form {
                id: form.to_owned(),
                pieces: vec!["aa".to_owned(), form.to_owned()],
            },
            place: String::new(),
            by: String::new(),
            said: Said::Nothing,
        }
    }

    fn base(release: &str) -> ProvenBase {
        ProvenBase {
            release: release.to_owned(),
            tree: release.repeat(2),
            configurations: vec!["gcc".to_owned()],
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut proven = Proven::nothing("code");
        proven.add(base("1"), &[item("a", "x"), item("b", "y")]);
        proven.add(base("2"), &[item("a", "z"), item("b", "y")]);
        let text = proven.text().expect("text");
        assert_eq!(
            Proven::read("f", &text, "code")
                .expect("read")
                .expect("known"),
            proven
        );
        assert!(proven.knows("a", &item("a", "z").form) && proven.knows("a", &item("a", "x").form));
        assert!(
            !proven.knows("b", &item("b", "x").form) && !proven.knows("c", &item("c", "x").form)
        );
        assert_eq!(proven.releases(&proven.known("b")[0]), ["1", "2"]);
    }

    #[test]
    fn a_base_that_is_proven_again_forgets_what_it_had() {
        let mut proven = Proven::nothing("code");
        proven.add(base("1"), &[item("a", "x"), item("b", "y")]);
        proven.add(base("1"), &[item("a", "z")]);
        assert!(!proven.knows("a", &item("a", "x").form));
        assert!(proven.known("b").is_empty());
        assert_eq!(proven.bases().len(), 1);
    }

    #[test]
    fn a_record_of_other_code_or_layout_knows_nothing_and_says_why() {
        let text = Proven::nothing("code").text().expect("text");
        let why = Proven::read("f", &text, "other")
            .expect("read")
            .expect_err("a reason");
        assert!(why.contains("has changed"), "{why}");
        let why = Proven::read("f", "{\"format\": 9, \"x\": 1}", "code")
            .expect("read")
            .expect_err("a reason");
        assert!(why.contains("another version"), "{why}");
        assert!(Proven::read("f", "{", "code").is_err());
    }
}
