//! Which file something is in: as a recipe says it, or left for each base to say.
//!
//! Hides the spelling: a path, a list of paths, or nothing, and that an edit which names no file is in that of its function.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Deserialize;

use super::{
    Action, EditSpec, FactSpec, FunctionSpec, PatchSpec, Place, Probe, Recipe, Spot, Target,
    inside, wrong,
};

/// How a recipe says which file something is in. The file itself stands beside it: empty where only a base can say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// In that file, and nowhere else.
    Exactly,
    /// In the one of these files that defines it; where none does, where the base has it.
    Searched(Vec<String>),
    /// In the file of the function with this `id`.
    With(String),
}

/// One path, or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Files {
    One(String),
    Several(Vec<String>),
}

impl Files {
    /// All of them.
    pub(super) fn list(self) -> Vec<String> {
        match self {
            Self::One(file) => vec![file],
            Self::Several(files) => files,
        }
    }

    /// What a key `file` says that may be left out: the file, if it is that one, and how it is known.
    pub(super) fn home(files: Option<Self>, place: &Place) -> Result<(String, Home)> {
        let (file, home) = match files {
            Some(Self::One(file)) => (file, Home::Exactly),
            Some(Self::Several(files)) => (String::new(), Home::Searched(files)),
            None => (String::new(), Home::Searched(Vec::new())),
        };
        let listed = match &home {
            Home::Searched(files) => files.iter().collect(),
            _ => vec![&file],
        };
        listed
            .into_iter()
            .try_for_each(|file| inside(file, place))?;
        Ok((file, home))
    }
}

/// A probe as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum RawProbe {
    Exists {
        file: String,
    },
    Line {
        file: Files,
        line: String,
    },
    Statement {
        file: Option<Files>,
        function: String,
        pattern: String,
    },
    Function {
        files: Vec<String>,
        name: String,
    },
    Kconfig {
        file: String,
        symbol: String,
        needs: String,
    },
}

impl RawProbe {
    pub(super) fn read(self, place: &Place) -> Result<Probe> {
        Ok(match self {
            Self::Exists { file } => Probe::Exists { file },
            Self::Line { file, line } => {
                let files = file.list();
                if files.is_empty() {
                    return Err(wrong(place, "a line is probed in at least one file"));
                }
                Probe::Line { files, line }
            }
            Self::Statement {
                file,
                function,
                pattern,
            } => {
                let (file, home) = Files::home(file, place)?;
                Probe::Statement {
                    file,
                    home,
                    function,
                    pattern,
                }
            }
            Self::Function { files, name } => Probe::Function { files, name },
            Self::Kconfig {
                file,
                symbol,
                needs,
            } => Probe::Kconfig {
                file,
                symbol,
                needs,
            },
        })
    }
}

/// Finds the function that each edit and each probed statement without a `file` of its own is in.
pub(super) fn settle(recipe: &mut Recipe) -> Result<()> {
    let Recipe {
        facts,
        functions,
        patches,
        ..
    } = recipe;
    for fact in facts {
        settle_fact(fact, functions);
    }
    // Functions of the series' own are where an edit has defined them.
    let mut defined: BTreeMap<String, (String, Home)> = BTreeMap::new();
    for edit in patches
        .iter_mut()
        .flat_map(|patch: &mut PatchSpec| &mut patch.edits)
    {
        if let Home::With(written) = &edit.home {
            let found = owner(edit, written, functions).or_else(|| defined.get(written).cloned());
            (edit.file, edit.home) = found.ok_or_else(|| unknown(edit, written))?;
        }
        for name in &edit.defines {
            defined.insert(name.clone(), (edit.file.clone(), edit.home.clone()));
        }
    }
    Ok(())
}

fn settle_fact(fact: &mut FactSpec, functions: &[FunctionSpec]) {
    let Probe::Statement {
        file,
        home,
        function,
        ..
    } = &mut fact.probe
    else {
        return;
    };
    let spec = functions.iter().find(|spec| spec.name == *function);
    if let (Home::Searched(listed), Some(spec)) = (&home, spec)
        && listed.is_empty()
    {
        file.clone_from(&spec.file);
        *home = Home::With(spec.id.clone());
    }
}

/// The function of the recipe that an edit is in, by what the edit says: where lines are inserted by their own order, the `id` will do.
fn owner(edit: &EditSpec, written: &str, functions: &[FunctionSpec]) -> Option<(String, Home)> {
    let by_id = matches!(edit.target(), Some(Target::Part { .. }));
    let either = matches!(
        edit.action,
        Action::Insert(Spot::Include(_) | Spot::Sorted(_), _)
    );
    let is_it = |spec: &&FunctionSpec| {
        !by_id && spec.name == written || (by_id || either) && spec.id == written
    };
    let spec = functions.iter().find(is_it)?;
    Some((spec.file.clone(), Home::With(spec.id.clone())))
}

fn unknown(edit: &EditSpec, written: &str) -> anyhow::Error {
    let message = format!(
        "edit `{}` names no `file`, and `{written}` is neither a `[[function]]` of the recipe nor defined by an edit before",
        edit.name
    );
    wrong(&edit.place, message)
}

impl Recipe {
    /// A copy in which every file is known that the function with each of these ids is in.
    #[must_use]
    pub fn placed(&self, files: &BTreeMap<String, String>) -> Self {
        let mut placed = self.clone();
        for spec in &mut placed.functions {
            if let Some(file) = files.get(&spec.id) {
                spec.file.clone_from(file);
            }
        }
        let known: BTreeMap<_, _> = placed
            .functions
            .iter()
            .map(|spec| (&spec.id, &spec.file))
            .collect();
        let put = |file: &mut String, home: &Home| {
            if let Home::With(id) = home
                && let Some(known) = known.get(id)
            {
                (*known).clone_into(file);
            }
        };
        for edit in placed.patches.iter_mut().flat_map(|patch| &mut patch.edits) {
            put(&mut edit.file, &edit.home);
        }
        for fact in &mut placed.facts {
            if let Probe::Statement { file, home, .. } = &mut fact.probe {
                put(file, home);
            }
        }
        placed
    }

    /// The files that an edit may be in: the one, or where no base has said it yet, those that the recipe lists.
    #[must_use]
    pub fn files_of<'a>(&'a self, edit: &'a EditSpec) -> Vec<&'a str> {
        if !edit.file.is_empty() {
            return vec![&edit.file];
        }
        let mut functions = self.functions.iter();
        let spec = functions.find(|spec| edit.home == Home::With(spec.id.clone()));
        spec.map(FunctionSpec::files).unwrap_or_default()
    }
}

impl FunctionSpec {
    /// The same for a function.
    #[must_use]
    pub fn files(&self) -> Vec<&str> {
        match &self.home {
            Home::Searched(files) if self.file.is_empty() => {
                files.iter().map(String::as_str).collect()
            }
            _ => vec![&self.file],
        }
    }
}
