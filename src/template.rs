//! Renders a recipe's templates: C code and messages; knows Tera.
//!
//! Hides Tera's two silences: a name that nobody declared, and the blank line that a tag alone on a line leaves.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use tera::{Context, Delimiters, Kwargs, State, Tera};

use crate::error::Refusal;
use crate::recipe::{Fact, Place};

/// Tags of recipe templates: C's `{{0}}` and `%` must survive, so Tera's own do not do.
const DELIMITERS: [(&str, &str); 3] = [("@%", "%@"), ("@{", "}@"), ("@#", "#@")];

/// The values of a template's inputs, by name.
pub type Inputs = BTreeMap<String, Fact>;

/// Tera, set up for text in which nothing is escaped.
pub struct Templates {
    tera: Tera,
}

impl Templates {
    /// An empty set.
    pub fn new() -> Result<Self> {
        let mut tera = Tera::new();
        let [
            (block_start, block_end),
            (variable_start, variable_end),
            (comment_start, comment_end),
        ] = DELIMITERS;
        tera.set_delimiters(Delimiters {
            block_start: block_start.into(),
            block_end: block_end.into(),
            variable_start: variable_start.into(),
            variable_end: variable_end.into(),
            comment_start: comment_start.into(),
            comment_end: comment_end.into(),
        })?;
        tera.autoescape_on(Vec::<&str>::new());
        tera.register_filter("tabs", tabs);
        Ok(Self { tera })
    }

    /// Renders `text` with `inputs`, which must be the names it uses, no fewer and no more. `label` is what errors
    /// call it, `place` the recipe line that asked for it.
    pub fn render(
        &mut self,
        label: &str,
        text: &str,
        inputs: &Inputs,
        place: &Place,
    ) -> Result<String> {
        if !text.contains('@') && inputs.is_empty() {
            return Ok(text.to_owned());
        }
        let broken = |error: tera::Error| {
            let details = error.to_string();
            let details = details.lines().map(|line| format!("  {line}")).collect();
            Refusal::usage(format!("{place}: `{label}` does not render"))
                .details(details)
                .hint("mend the template; tags are `@{ }@`, `@% %@` and `@# #@`")
        };
        self.tera
            .add_raw_template(label, &without_tag_lines(text))
            .map_err(broken)?;
        let used: BTreeSet<&str> = self
            .tera
            .get_template_variables(label)
            .map_err(broken)?
            .into_iter()
            .collect();
        let given: BTreeSet<&str> = inputs.keys().map(String::as_str).collect();
        if let Some(name) = used.difference(&given).next() {
            return Err(Refusal::usage(format!(
                "{place}: `{label}` uses `{name}`, which `inputs` does not declare"
            ))
            .hint(format!("add `{name} = \"...\"` to the inputs"))
            .into());
        }
        if let Some(name) = given.difference(&used).next() {
            return Err(Refusal::usage(format!(
                "{place}: `{label}` does not use its input `{name}`"
            ))
            .hint("take it out of the inputs, or use it")
            .into());
        }
        let mut context = Context::new();
        for (name, value) in inputs {
            match value {
                Fact::Flag(flag) => context.insert(name.clone(), flag),
                Fact::Text(text) => context.insert(name.clone(), text),
            }
        }
        Ok(self.tera.render(label, &context).map_err(broken)?)
    }
}

/// Renders an HTML page with Tera's own tags: whatever `data` holds is escaped, for it may come from anywhere. Control characters are
/// the caller's affair.
pub fn page(template: &'static str, data: &impl serde::Serialize) -> Result<String> {
    // Tera escapes by the name's suffix.
    const NAME: &str = "page.html";
    let mut tera = Tera::new();
    tera.autoescape_on([".html"]);
    tera.add_raw_template(NAME, template)?;
    Ok(tera.render(NAME, &Context::from_serialize(data)?)?)
}

/// The filter `tabs(n=N)`: every line but the first and the empty ones moves N tabs to the right.
#[expect(
    clippy::needless_pass_by_value,
    reason = "Tera's filters are called so"
)]
fn tabs(text: &str, kwargs: Kwargs, _: &State<'_>) -> tera::TeraResult<String> {
    let tabs: usize = kwargs.must_get("n")?;
    Ok(indent(text, &"\t".repeat(tabs)))
}

/// Puts `indentation` in front of every line but the first, the empty ones and preprocessor directives.
#[must_use]
pub fn indent(text: &str, indentation: &str) -> String {
    let mut lines = text.split('\n');
    let mut indented = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        indented.push('\n');
        if !line.is_empty() && !line.starts_with('#') {
            indented.push_str(indentation);
        }
        indented.push_str(line);
    }
    indented
}

/// Takes out the lines' own blanks and newline where a line holds a block or comment tag and nothing else.
fn without_tag_lines(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            if is_tag_line(line.trim()) {
                line.trim()
            } else {
                line
            }
        })
        .collect()
}

fn is_tag_line(line: &str) -> bool {
    let [block, _, comment] = DELIMITERS;
    [block, comment].iter().any(|(start, end)| {
        let inner = line
            .strip_prefix(start)
            .and_then(|rest| rest.strip_suffix(end));
        inner.is_some_and(|inner| !inner.contains(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str, inputs: &[(&str, Fact)]) -> Result<String> {
        let place = Place {
            file: "patch.toml".into(),
            line: 7,
        };
        let inputs = inputs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        Templates::new().unwrap().render("t", text, &inputs, &place)
    }

    fn text(text: &str) -> Fact {
        Fact::Text(text.into())
    }

    #[test]
    fn a_page_escapes_whatever_it_is_given() {
        let data = BTreeMap::from([("x", "<script>\"'&")]);
        let page = page("<p title=\"{{ x }}\">{% if x %}{{ x }}{% endif %}", &data).unwrap();
        assert!(
            !page.contains("<script>") && !page.contains("\"'"),
            "{page}"
        );
    }

    #[test]
    fn braces_percent_signs_and_ampersands_of_c_survive() {
        let c = "int a[] = {{0}};\nif (a && b % c)\n\tx = \"<%d>\";\n@{ x }@\n";
        assert_eq!(
            render(c, &[("x", text("a < b && \"c\""))]).unwrap(),
            c.replace("@{ x }@", "a < b && \"c\"")
        );
    }

    #[test]
    fn a_tag_alone_on_a_line_leaves_no_line_behind() {
        let rendered = render(
            "{\n\t@% if x %@\n\ta();\n\t@% endif %@\n\tb();\n}\n",
            &[("x", Fact::Flag(true))],
        )
        .unwrap();
        assert_eq!(rendered, "{\n\ta();\n\tb();\n}\n");
    }

    #[test]
    fn a_name_that_is_not_declared_is_refused_even_in_a_condition() {
        let error = render("@% if typo %@x@% endif %@", &[])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("patch.toml:7") && error.contains("`typo`"),
            "{error}"
        );
    }

    #[test]
    fn an_input_that_is_not_used_is_refused() {
        let error = render("@{ a }@", &[("a", text("1")), ("b", text("2"))])
            .unwrap_err()
            .to_string();
        assert!(error.contains("does not use its input `b`"), "{error}");
    }

    #[test]
    fn broken_syntax_names_the_template_and_the_recipe_line() {
        let error = render("@% if x %@", &[("x", Fact::Flag(true))]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("patch.toml:7: `t` does not render")
        );
        assert!(!crate::error::refusal(&error).unwrap().details.is_empty());
    }

    #[test]
    fn tabs_leave_the_first_line_empty_lines_and_directives() {
        let rendered = render(
            "\t@{ x | tabs(n=1) }@\n",
            &[("x", text("a\n\tb\n\n#endif\nc"))],
        )
        .unwrap();
        assert_eq!(rendered, "\ta\n\t\tb\n\n#endif\n\tc\n");
    }
}
