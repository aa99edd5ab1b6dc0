//! What the code that a series makes depends on, as a digest: templates, edits, facts and functions.
//!
//! Hides what does not count: messages, recipients, comments, the layout of the files, and where they are.

use super::Recipe;
use crate::digest::digest;

/// Keys of `series.toml` and `patch.toml` that say something about code.
const KEYS: [&str; 4] = ["patches", "fact", "function", "edit"];

impl Recipe {
    /// A digest of all that decides, on a given base, which code the series makes.
    #[must_use]
    pub fn code_digest(&self) -> String {
        let sources = self.sources.iter().flat_map(|(path, text)| {
            let mut table: toml::Table = text.parse().unwrap_or_default();
            table.retain(|key, _| KEYS.contains(&key));
            [
                path.clone().into_bytes(),
                serde_json::to_vec(&table).unwrap_or_default(),
            ]
        });
        let templates = self
            .templates
            .iter()
            .flat_map(|(name, text)| [name.clone().into_bytes(), text.clone().into_bytes()]);
        digest(sources.chain(templates))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::load;

    fn recipe() -> Recipe {
        load(
            &crate::recipe::embedded()[0],
            std::path::Path::new("/nowhere"),
        )
        .expect("the embedded series")
    }

    fn with(change: impl FnOnce(&mut Recipe)) -> String {
        let mut recipe = recipe();
        change(&mut recipe);
        recipe.code_digest()
    }

    fn edit_source(recipe: &mut Recipe, path: &str, from: &str, to: &str) {
        let source = recipe
            .sources
            .iter_mut()
            .find(|(name, _)| name == path)
            .expect("a source");
        assert!(source.1.contains(from), "`{from}` in {path}");
        source.1 = source.1.replacen(from, to, 1);
    }

    #[test]
    fn templates_edits_and_functions_count() {
        let own = recipe().code_digest();
        let template = with(|it| {
            it.templates
                .insert("page-copy.c".to_owned(), "x".to_owned());
        });
        let edit = with(|it| {
            edit_source(
                it,
                "0002-head-template/patch.toml",
                "bool use_template;",
                "int use_template;",
            );
        });
        let function = with(|it| {
            edit_source(
                it,
                "series.toml",
                "set_page_count(page, 0);",
                "set_page_count(page, 1);",
            );
        });
        let order = with(|it| edit_source(it, "series.toml", "\"0001-factor-helpers\", ", ""));
        for other in [template, edit, function, order] {
            assert_ne!(own, other);
        }
    }

    #[test]
    fn words_and_recipients_do_not() {
        let own = recipe().code_digest();
        let message = with(|it| it.patches[0].message.push('x'));
        let title = with(|it| edit_source(it, "series.toml", "title = \"mm:", "title = \"mm2:"));
        let comment = with(|it| {
            edit_source(
                it,
                "0002-head-template/patch.toml",
                "\n[[edit]]",
                "\n\n# words\n[[edit]]",
            );
        });
        let inputs = with(|it| {
            edit_source(
                it,
                "0002-head-template/patch.toml",
                "[inputs]",
                "[inputs]\nmore = true",
            );
        });
        assert_eq!([&message, &title, &comment, &inputs], [&own; 4]);
    }

    #[test]
    fn parts_are_told_apart() {
        let of = |parts: &[&str]| digest(parts.iter().map(|part| part.as_bytes().to_vec()));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
    }
}
