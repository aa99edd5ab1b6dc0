//! What an edit may have taken the place of, from what it kept of it.
//!
//! Hides how a pattern becomes a statement again. Its layout may be another one than the base's was; the edit that is made of it is the same.

use std::collections::BTreeMap;

use crate::pattern::Pattern;
use crate::recipe::{FunctionSpec, Target, all_parts};
use crate::template::indent;

/// What a target may have been, where these paths stand for these texts; none where something of it was not kept.
pub(super) fn originals(
    target: &Target,
    functions: &[FunctionSpec],
    values: &BTreeMap<String, String>,
) -> Vec<String> {
    if let Some(text) = values.get("match.text") {
        return vec![text.clone()];
    }
    let own = match target {
        Target::Part { function, part } => format!("{function}.{part}."),
        _ => String::from("match."),
    };
    let captures = ["match.", &own].map(|own| {
        let values = values.iter();
        values.filter_map(move |(path, value)| Some((path.strip_prefix(own)?, value.as_str())))
    });
    let captures = captures.into_iter().flatten().collect();
    let filled = patterns(target, functions)
        .into_iter()
        .filter_map(|it| filled(it.written(), &captures));
    filled.collect()
}

/// The patterns, one of which a target matches.
pub(super) fn patterns<'a>(target: &'a Target, functions: &'a [FunctionSpec]) -> Vec<&'a Pattern> {
    match target {
        Target::Function(_) => Vec::new(),
        Target::Statement { pattern, .. } => vec![pattern],
        Target::Part { function, part } => {
            let spec = functions.iter().find(|spec| spec.id == *function);
            let parts = spec.map(|spec| all_parts(&spec.parts)).unwrap_or_default();
            let part = parts.into_iter().find(|known| known.name == *part);
            part.map(|part| part.patterns.iter().collect())
                .unwrap_or_default()
        }
    }
}

/// A pattern as a statement; `None` where a metavariable stands for something unknown.
fn filled(written: &str, captures: &BTreeMap<&str, &str>) -> Option<String> {
    let mut text = String::new();
    let mut rest = written.trim_end_matches('\n');
    while let Some((before, behind)) = rest.split_once('$') {
        text.push_str(before);
        let many = behind.strip_prefix("$$");
        let name = many.unwrap_or(behind);
        let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let end = name.find(|char| !is_word(char)).unwrap_or(name.len());
        let value = captures.get(&name[..end])?;
        rest = &name[end..];
        match rest.strip_prefix(';').filter(|_| many.is_some()) {
            // Statements are lines of their own.
            Some(behind) => {
                let lines = text.trim_end_matches([' ', '\t', '\n']).len();
                text.truncate(lines);
                text.push_str(&format!("\n\t{}\n", indent(value, "\t")));
                rest = behind.trim_start_matches([' ', '\n']);
            }
            None => text.push_str(value),
        }
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_becomes_what_it_matched() {
        let captures = BTreeMap::from([("BODY", "a();\n/* b */\nb();"), ("N", "n + 1")]);
        assert_eq!(
            filled("for (i = 0; i < $N; i++) { $$$BODY; }", &captures).unwrap(),
            "for (i = 0; i < n + 1; i++) {\n\ta();\n\t/* b */\n\tb();\n}"
        );
        assert_eq!(
            filled("f($N, $$$N);", &captures).unwrap(),
            "f(n + 1, n + 1);"
        );
        assert!(filled("f($_OTHER);", &captures).is_none());
        assert!(filled("f($$$_);", &captures).is_none());
    }
}
