//! What a series defines below an `#if` of the base is there in those configurations only: who uses it must stand below the same `#if`.
//!
//! Conditions are compared as they are written.

use anyhow::Result;
use bstr::ByteSlice;

use crate::error::Refusal;
use crate::recipe::{EditSpec, PatchSpec};
use crate::shape::quote;
use crate::syntax::{Source, code_lines, mentions};
use crate::ui::shown_text;

/// A name that an edit has defined in a file.
pub(super) struct Defined {
    /// The name.
    pub(super) name: String,
    /// The edit.
    pub(super) edit: EditSpec,
}

/// Refuses a use of a name in the file as `patch` leaves it that stands where its only definition may not be.
pub(super) fn uses_are_below(defined: &Defined, patch: &PatchSpec, source: &Source) -> Result<()> {
    let Defined { name, edit } = defined;
    let places = mentions(source.text(), name);
    let functions = source.functions_named(name)?;
    let [function] = &functions[..] else {
        return Ok(());
    };
    let head = function.start..function.body.start;
    let offsets = [&[head.start], &places[..]].concat();
    let mut found = conditions_at(source.text(), &offsets).into_iter();
    let own = found.next().unwrap_or_default();
    let astray = places
        .iter()
        .zip(found)
        .filter(|(at, _)| !head.contains(at))
        .find_map(|(at, conditions)| {
            let lacking = own.iter().find(|it| !conditions.contains(it))?;
            Some((*at, lacking.clone()))
        });
    let Some((at, lacking)) = astray else {
        return Ok(());
    };
    Err(Refusal::drift(format!(
        "patch `{}`: `{name}()` is used where it may not be there: edit `{}` defines it below `#{}` on this base",
        patch.name, edit.name, shown_text(&lacking)
    ))
    .details(quote(source, &edit.file, &(at..at + name.len())))
    .hint(format!("look what the base does there, then mend {}", edit.place))
    .into())
}

/// The conditions that each of some offsets stands below, as they are written; an `#else` has a `!` in front of what it turns around.
fn conditions_at(text: &[u8], offsets: &[usize]) -> Vec<Vec<Vec<u8>>> {
    let mut found = vec![Vec::new(); offsets.len()];
    let mut open: Vec<Vec<u8>> = Vec::new();
    for code in code_lines(text) {
        let line = text[code.clone()].trim_ascii_start();
        let Some(directive) = line.strip_prefix(b"#").map(<[u8]>::trim_ascii_start) else {
            for (at, conditions) in offsets.iter().zip(&mut found) {
                if code.contains(at) {
                    conditions.clone_from(&open);
                }
            }
            continue;
        };
        let words: Vec<_> = directive.fields().collect();
        match words.first().copied().unwrap_or_default() {
            b"if" | b"ifdef" | b"ifndef" => open.push(words.join(&b' ')),
            b"else" => {
                if let Some(last) = open.last_mut() {
                    last.insert(0, b'!');
                }
            }
            b"elif" | b"elifdef" | b"elifndef" => {
                if let Some(last) = open.last_mut() {
                    *last = [b"!", &last[..], b" && ", &words[1..].join(&b' ')].concat();
                }
            }
            b"endif" => drop(open.pop()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_the_line() {
        let text = "a\n#ifdef  X\nb\n#if Y\nc\n#else\nd\n#endif\n#elif Z\ne\n#endif\nf\n";
        let place = |it: char| text.find(&format!("{it}\n")).unwrap_or_default();
        let offsets: Vec<_> = "abcdef".chars().map(place).collect();
        let found = conditions_at(text.as_bytes(), &offsets);
        let found: Vec<Vec<String>> = found
            .into_iter()
            .map(|it| it.iter().map(|it| it.to_str_lossy().into_owned()).collect())
            .collect();
        assert_eq!(found[0], Vec::<String>::new());
        assert_eq!(found[1], ["ifdef X"]);
        assert_eq!(found[2], ["ifdef X", "if Y"]);
        assert_eq!(found[3], ["ifdef X", "!if Y"]);
        assert_eq!(found[4], ["!ifdef X && Z"]);
        assert_eq!(found[5], Vec::<String>::new());
    }
}
