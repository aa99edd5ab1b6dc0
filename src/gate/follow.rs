//! Objects of a `[check]` table that stand for the function which they have.
//!
//! Hides `{ function = "..." }`: where it is known which file a function is in, the table comes to name that file's object.

use anyhow::Result;
use toml::{Table, Value};

use crate::error::Refusal;
use crate::recipe::{FunctionSpec, Recipe};

/// The lists of objects in a table; the last key is the list's.
const LISTS: [&[&str]; 3] = [&["objects"], &["section", "with"], &["equality", "with"]];

/// Replaces every function in `table` by the object of its file; those whose file is not known yet are left out, and returned.
pub(super) fn follow(table: &mut Table, recipe: &Recipe) -> Result<Vec<String>> {
    let mut open = Vec::new();
    for path in LISTS {
        if let Some(Value::Array(list)) = value(table, path) {
            *list = followed(list, recipe, &mut open)?;
        }
    }
    let Some(object) = value(table, &["equality", "object"]).filter(|it| it.is_table()) else {
        return Ok(open);
    };
    let name = function(object, recipe)?;
    *object = if let Some(object) = object_of(name)? {
        Value::String(object)
    } else {
        open.push(name.name.clone());
        // No target of make's: nobody builds it by mistake.
        Value::String(format!("{}()", name.name))
    };
    let object = object.clone();
    if let Some(Value::Array(with)) = value(table, &["equality", "with"]) {
        with.retain(|other| *other != object);
    }
    Ok(open)
}

/// A list with objects alone; one that comes twice since it was followed is there once.
fn followed(list: &[Value], recipe: &Recipe, open: &mut Vec<String>) -> Result<Vec<Value>> {
    let mut objects: Vec<Value> = Vec::new();
    for entry in list {
        if !entry.is_table() {
            objects.push(entry.clone());
            continue;
        }
        let spec = function(entry, recipe)?;
        match object_of(spec)?.map(Value::String) {
            Some(object) if list.contains(&object) || objects.contains(&object) => {}
            Some(object) => objects.push(object),
            None => open.push(spec.name.clone()),
        }
    }
    Ok(objects)
}

fn value<'a>(table: &'a mut Table, path: &[&str]) -> Option<&'a mut Value> {
    match path {
        [key] => table.get_mut(*key),
        [key, rest @ ..] => value(table.get_mut(*key)?.as_table_mut()?, rest),
        [] => None,
    }
}

/// The function of the recipe that a `{ function = "..." }` names, by its name in C or its `id`.
fn function<'a>(entry: &Value, recipe: &'a Recipe) -> Result<&'a FunctionSpec> {
    let table = entry.as_table().filter(|table| table.len() == 1);
    let name = table.and_then(|table| table.get("function")?.as_str());
    let wrong = |what: String| {
        Refusal::usage(format!("`[check]` in {}/series.toml {what}", recipe.origin))
            .hint("an object is a path, or `{ function = \"...\" }` with a function of the recipe")
    };
    let Some(name) = name else {
        return Err(wrong("has an object that is neither a path nor a function".to_owned()).into());
    };
    let mut functions = recipe.functions.iter();
    let found = functions.find(|spec| spec.name == name || spec.id == name);
    found.ok_or_else(|| {
        wrong(format!(
            "follows `{name}`, which is no `[[function]]` of the recipe"
        ))
        .into()
    })
}

/// The object that kbuild makes of the file that a function is in; `None` where that is not known.
fn object_of(spec: &FunctionSpec) -> Result<Option<String>> {
    let FunctionSpec { file, name, .. } = spec;
    if file.is_empty() {
        return Ok(None);
    }
    match file.strip_suffix(".c") {
        Some(stem) => Ok(Some(format!("{stem}.o"))),
        None => Err(Refusal::drift(format!(
            "`[check]` follows `{name}()`, which is in `{file}`: no object is made of that alone"
        ))
        .hint("name an object that has the function")
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The shipped series with its first function (`one`) and its last (`two`) in these files; empty is nowhere yet.
    fn recipe(one: &str, two: &str) -> Recipe {
        let name = &crate::recipe::embedded()[0];
        let recipe = crate::recipe::load(name, std::path::Path::new("/nowhere"));
        let recipe = recipe.expect("the embedded series");
        let [first, .., last] = recipe.functions.as_slice() else {
            panic!("a series with several functions");
        };
        let files = [(first, one), (last, two)];
        let files = files.map(|(spec, file)| (spec.id.clone(), file.to_owned()));
        recipe.placed(&BTreeMap::from(files))
    }

    /// A table in which `ONE` and `TWO` stand for the functions, by name and by `id`.
    fn table(text: &str) -> Table {
        let recipe = recipe("", "");
        let [one, .., two] = recipe.functions.as_slice() else {
            panic!("a series with several functions");
        };
        let follow = |name: &str| format!("{{ function = \"{name}\" }}");
        let text = text
            .replace("ONE", &follow(&one.name))
            .replace("SAME", &follow(&one.id))
            .replace("TWO", &follow(&two.name));
        text.parse().expect("a table")
    }

    const TABLE: &str = r#"
objects = ["mm/b.o", SAME, ONE, TWO]
[section]
with = ["mm/a.o"]
[equality]
object = TWO
with = ["mm/a.o", "mm/c.o"]
"#;

    #[test]
    fn a_function_becomes_the_object_of_its_file_once() {
        let mut found = table(TABLE);
        let open = follow(&mut found, &recipe("mm/a.c", "mm/a.c")).expect("followed");
        assert!(open.is_empty());
        let expected = "objects = [\"mm/b.o\", \"mm/a.o\"]\n[section]\nwith = [\"mm/a.o\"]\n[equality]\nobject = \"mm/a.o\"\nwith = [\"mm/c.o\"]\n";
        assert_eq!(found, table(expected));
    }

    #[test]
    fn a_table_of_paths_stays_as_it_is() {
        let text = "objects = [\"a.o\", \"a.o\"]\n[equality]\nobject = \"a.o\"\nwith = [\"a.o\"]\n";
        let mut found = table(text);
        follow(&mut found, &recipe("", "")).expect("nothing to follow");
        assert_eq!(found, table(text));
    }

    #[test]
    fn what_is_not_known_is_said_and_left_out() {
        let mut found = table(TABLE);
        let recipe = recipe("mm/a.c", "");
        let open = follow(&mut found, &recipe).expect("followed");
        let name = &recipe.functions.last().expect("a function").name;
        assert_eq!(open, [name.as_str(); 2]);
        assert_eq!(found["objects"].as_array().map(Vec::len), Some(2));
        let object = found["equality"]["object"].as_str();
        assert_eq!(object, Some(format!("{name}()").as_str()));
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        let known = recipe("mm/a.c", "mm/a.c");
        for entry in [
            "{ function = \"nobody\" }",
            "{ file = \"x\" }",
            "{ function = \"x\", more = 1 }",
        ] {
            let mut found = table(&format!("objects = [{entry}]\n"));
            follow(&mut found, &known).expect_err(entry);
        }
        let mut found = table("objects = [ONE]\n");
        let error = follow(&mut found, &recipe("mm/a.h", "")).expect_err("a header");
        assert_eq!(crate::error::exit_of(&error), crate::error::Exit::Drift);
    }
}
