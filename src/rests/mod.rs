//! What a series rests on and does not edit: the definitions that its code reaches on a base, and whether they say what they said
//! where the series was proven.
//!
//! An edit can be right in every line that it touches and wrong all the same: a function that it calls stores something else now, a
//! structure that it copies has moved. So each definition has a form, and a form that was never proven makes the base unproven.

mod form;
mod kept;
mod reach;
pub mod record;
mod standing;
mod taken;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

pub use form::Form;
use kept::Kept;
pub use reach::{Item, Root, Said, reach};
pub use record::Proven;
pub use standing::{Rest, Standing, Unproven};
pub use taken::Taken;

use crate::error::Refusal;
use crate::index::{Index, Kind, Question};
use crate::recipe::{Action, Recipe, RestsSpec, Spot, Text};

/// What the index of a base is asked for a recipe.
#[must_use]
pub fn question(recipe: &Recipe, files: Vec<String>) -> Question {
    let headers = recipe.patches.iter().flat_map(|patch| &patch.edits);
    let headers = headers.filter_map(|edit| match &edit.action {
        Action::Insert(Spot::Include(header), _) => Some(header.clone()),
        _ => None,
    });
    let spec = recipe.rests_on.as_ref();
    let more = spec.iter().flat_map(|spec| spec.files.iter().cloned());
    let mut files: Vec<_> = files.into_iter().chain(more).collect();
    files.sort();
    files.dedup();
    Question {
        files,
        headers: headers.collect(),
        architectures: match spec {
            Some(spec) => spec.architectures.clone(),
            None => built_for(recipe),
        },
    }
}

/// The architectures (directories below `arch/`) that the recipe's configurations are for, as kbuild's `SRCARCH` names them; empty, and
/// so all, where it has none.
fn built_for(recipe: &Recipe) -> Vec<String> {
    let check = recipe.series.check.as_ref();
    let configurations = check.and_then(|check| check.get("configuration")?.as_array());
    let names = configurations.into_iter().flatten();
    let names = names.filter_map(|it| it.get("arch")?.as_str());
    let mut found: Vec<_> = names
        .map(|name| match name {
            "i386" | "x86_64" => "x86",
            "sparc32" | "sparc64" => "sparc",
            "parisc64" => "parisc",
            name => name,
        })
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The definitions that a series reaches. `functions` are the base's functions that the recipe builds on: their texts, and where they are.
pub fn reached(
    index: &Index<'_>,
    recipe: &Recipe,
    spec: &RestsSpec,
    functions: Vec<Root>,
) -> Result<Vec<Item>> {
    let mut roots = functions;
    let templates = recipe
        .templates
        .iter()
        .map(|(name, text)| (format!("{name}.tera"), text));
    let inline = recipe
        .patches
        .iter()
        .flat_map(|patch| &patch.edits)
        .flat_map(|edit| {
            let texts = edit.texts().into_iter();
            texts.filter_map(move |text| match text {
                Text::Inline(text) => Some((edit.name.clone(), text)),
                Text::Template(_) => None,
            })
        });
    roots.extend(templates.chain(inline).map(|(name, text)| Root {
        name,
        text: without_tags(text).into_bytes(),
        path: None,
    }));
    let own = own(recipe, &roots);
    let kept = Kept::of(index, spec, &roots);
    if let (Some(mut items), Ok(proven)) = (kept.read(), proven(recipe)?) {
        items.retain(|item| !own.contains(&item.name));
        if items.iter().all(|it| proven.knows(&it.name, &it.form)) {
            return Ok(items);
        }
    }
    let mut items = reach(index, spec, &roots)?;
    kept.write(&items);
    items.retain(|item| !own.contains(&item.name));
    Ok(items)
}

/// The names of what the series edits or defines: where a base has a part of the series, they are there already, and whether that part is
/// the recipe's is found by its content.
fn own(recipe: &Recipe, roots: &[Root]) -> BTreeSet<String> {
    let edits = recipe.patches.iter().flat_map(|patch| &patch.edits);
    let functions = recipe.functions.iter().map(|function| &function.name);
    let declared = functions.chain(edits.flat_map(|edit| &edit.defines));
    let texts = roots.iter().filter(|root| root.path.is_none());
    let written = texts.flat_map(|root| crate::index::scan(&root.text).definitions);
    let written = written.filter(|it| matches!(it.kind, Kind::Macro | Kind::Call));
    declared.cloned().chain(written.map(|it| it.name)).collect()
}

/// How a base stands, by the definitions that are reached there and by what the recipe takes from it.
pub fn stand(
    mut items: Vec<Item>,
    taken: &Taken<'_>,
    recipe: &Recipe,
    spec: &RestsSpec,
) -> Result<Standing> {
    items.extend(taken.items(recipe));
    let beyond = |item: &Item| spec.beyond.iter().any(|it| it.names.contains(&item.name));
    items.retain(|item| !beyond(item));
    Ok(Standing::of(items, &proven(recipe)?))
}

/// What the recipe was proven with; or why nothing is.
pub fn proven(recipe: &Recipe) -> Result<Result<Proven, String>> {
    match &recipe.proven {
        Some((label, text)) => Proven::read(label, text, &recipe.code_digest()),
        None => Ok(Err(format!(
            "`{}/{}` is not there: the series was never proven",
            recipe.origin,
            record::FILE
        ))),
    }
}

/// A template's text without its tags, whose words are none of C's.
fn without_tags(text: &str) -> String {
    let mut rest = text;
    let mut code = String::new();
    while let Some(at) = rest.find('@') {
        let close = match rest.get(at..at + 2) {
            Some("@{") => "}@",
            Some("@%") => "%@",
            Some("@#") => "#@",
            _ => {
                code.push_str(&rest[..=at]);
                rest = &rest[at + 1..];
                continue;
            }
        };
        code.push_str(&rest[..at]);
        code.push(' ');
        rest = rest[at..]
            .split_once(close)
            .map_or("", |(_, behind)| behind);
    }
    code + rest
}

/// Where the indexes of trees are kept; `None` where the user has no cache.
#[must_use]
pub fn cache() -> Option<std::path::PathBuf> {
    let cache = crate::cache::Cache::open().ok()?;
    Some(cache.index_path())
}

/// The directory of a series on disk takes the record; the one in this binary cannot.
pub fn write(directory: &Path, proven: &Proven) -> Result<()> {
    let text = proven.text()?;
    let file = directory.join(record::FILE);
    let write = || -> std::io::Result<()> {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let mut aside = tempfile::Builder::new()
            .permissions(mode)
            .tempfile_in(directory)?;
        std::io::Write::write_all(&mut aside, text.as_bytes())?;
        aside.as_file().sync_all()?;
        aside.persist(&file)?;
        Ok(())
    };
    write().map_err(|error| {
        Refusal::tool(format!("cannot write `{}`: {error}", file.display()))
            .hint("check the permissions and the free space; the gates' outcomes are kept, so that a second run is quick")
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_templates_are_no_code() {
        assert_eq!(
            without_tags("a(@{ b | tabs(n=1) }@);@% if c %@ d @# e #@"),
            "a( );  d  "
        );
        assert_eq!(without_tags("a @ b @{ c"), "a @ b  ");
    }
}
