//! What a series defines below an `#if` of the base is there in those configurations only: who uses it must stand below the same `#if`.
//!
//! Conditions are compared as they are written.

use anyhow::Result;
use bstr::ByteSlice;

use crate::error::Refusal;
use crate::recipe::{EditSpec, PatchSpec};
use crate::shape::quote;
use crate::syntax::{Source, code_lines, directive, is_word};
use crate::ui::shown_text;

/// A name that an edit has defined in a file.
pub(super) struct Defined {
    /// The name.
    pub(super) name: String,
    /// The edit.
    pub(super) edit: EditSpec,
}

/// Refuses a use of one of these names in the file as `patch` leaves it that stands where its only definition may not be.
pub(super) fn uses_are_below(
    defined: &[&Defined],
    patch: &PatchSpec,
    source: &Source,
) -> Result<()> {
    let mut heads = Vec::new();
    for defined in defined {
        let functions = source.functions_named(&defined.name)?;
        if let [function] = &functions[..] {
            heads.push((*defined, function.start..function.body.start));
        }
    }
    // The places of each name, its own head first; one pass over the file finds what all of them stand below.
    let mut places = Vec::new();
    for (number, (defined, head)) in heads.iter().enumerate() {
        places.push((number, head.start));
        let uses = words(source.text(), &defined.name);
        let uses = uses.filter(|at| !head.contains(at));
        places.extend(uses.map(|at| (number, at)));
    }
    let offsets: Vec<_> = places.iter().map(|(_, at)| *at).collect();
    let conditions = conditions_at(source.text(), &offsets);
    let mut own: &[Vec<u8>] = &[];
    for ((number, at), conditions) in places.iter().zip(&conditions) {
        let (defined, head) = &heads[*number];
        // A comment is no use.
        let Some(conditions) = conditions else {
            continue;
        };
        if *at == head.start {
            own = conditions;
        } else if let Some(lacking) = own.iter().find(|it| !conditions.contains(it)) {
            return Err(refusal(defined, patch, source, *at, lacking));
        }
    }
    Ok(())
}

fn refusal(
    Defined { name, edit }: &Defined,
    patch: &PatchSpec,
    source: &Source,
    at: usize,
    lacking: &[u8],
) -> anyhow::Error {
    Refusal::drift(format!(
        "patch `{}`: `{name}()` is used where it may not be there: edit `{}` defines it below `#{}` on this base",
        patch.name,
        edit.name,
        shown_text(lacking)
    ))
    .details(quote(source, &edit.file, &(at..at + name.len())))
    .hint(format!("look what the base does there, then mend {}", edit.place))
    .into()
}

/// Where a word stands by itself.
fn words<'t>(text: &'t [u8], word: &'t str) -> impl Iterator<Item = usize> + 't {
    text.find_iter(word).filter(move |at| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        let behind = text.get(at + word.len());
        ![before, behind]
            .into_iter()
            .flatten()
            .any(|&byte| is_word(byte))
    })
}

/// The conditions that each of some offsets stands below, as they are written; an `#else` has a `!` in front of what it turns around.
/// `None` where there is no code.
fn conditions_at(text: &[u8], offsets: &[usize]) -> Vec<Option<Vec<Vec<u8>>>> {
    let mut found = vec![None; offsets.len()];
    if offsets.is_empty() {
        return found;
    }
    let mut open: Vec<Vec<u8>> = Vec::new();
    for code in code_lines(text) {
        let Some((word, rest)) = directive(&text[code.clone()]) else {
            for (at, conditions) in offsets.iter().zip(&mut found) {
                if code.contains(at) {
                    *conditions = Some(open.clone());
                }
            }
            continue;
        };
        let rest = || rest.fields().collect::<Vec<_>>().join(&b' ');
        match word {
            b"if" | b"ifdef" | b"ifndef" => open.push([word, b" ", &rest()].concat()),
            b"else" => {
                if let Some(last) = open.last_mut() {
                    last.insert(0, b'!');
                }
            }
            b"elif" | b"elifdef" | b"elifndef" => {
                if let Some(last) = open.last_mut() {
                    *last = [b"!", &last[..], b" && ", &rest()].concat();
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
        let text = "a\n#ifdef  X\nb\n#if Y\nc\n#else\nd\n#endif\n#elif Z\ng\n#endif\nh\n";
        let place = |it: char| text.find(&format!("{it}\n")).unwrap_or_default();
        let offsets: Vec<_> = "abcdgh".chars().map(place).collect();
        let found = conditions_at(text.as_bytes(), &offsets);
        let found: Vec<Vec<String>> = found
            .into_iter()
            .map(std::option::Option::unwrap_or_default)
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
