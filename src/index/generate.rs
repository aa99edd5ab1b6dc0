//! Names that macros define where they are called at file level: `FLAG(Red)` may define `SetRed()`.
//!
//! Expands nothing: what a macro puts together with `##`, itself or through the macros that it calls, is taken for names.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::scan::{Generator, Invocation, Scan};

/// How deep macros that call macros are followed.
const DEEPEST: usize = 8;

/// The macros of many files that may define things, by name.
pub(super) struct Generators<'a> {
    by_name: HashMap<&'a str, Vec<&'a Generator>>,
}

impl<'a> Generators<'a> {
    pub(super) fn of(files: &'a [(String, Scan)]) -> Self {
        let mut by_name: HashMap<&str, Vec<&Generator>> = HashMap::new();
        for generator in files.iter().flat_map(|(_, scan)| &scan.generators) {
            by_name.entry(&generator.name).or_default().push(generator);
        }
        Self { by_name }
    }

    /// The names that a call defines.
    pub(super) fn names(&self, call: &Invocation) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut seen = HashSet::new();
        self.expand(&call.name, &call.arguments, 0, &mut names, &mut seen);
        // `DEFINE_MUTEX(lock)`: the name is an argument.
        if call.name.starts_with("DEFINE_") || call.name.starts_with("DECLARE_") {
            names.extend(call.arguments.iter().filter(|it| is_name(it)).cloned());
        }
        names
    }

    fn expand(
        &self,
        name: &str,
        arguments: &[String],
        depth: usize,
        names: &mut BTreeSet<String>,
        seen: &mut HashSet<(String, Vec<String>)>,
    ) {
        // A macro that every architecture has leads to the same ones again and again.
        if depth == DEEPEST || !seen.insert((name.to_owned(), arguments.to_vec())) {
            return;
        }
        for generator in self.by_name.get(name).into_iter().flatten() {
            let value = |word: &str| {
                let place = generator.parameters.iter().position(|it| it == word);
                place.map_or_else(
                    || word.to_owned(),
                    |place| arguments.get(place).cloned().unwrap_or_default(),
                )
            };
            for paste in &generator.pastes {
                let pasted: String = paste.iter().map(|piece| value(piece)).collect();
                if is_name(&pasted) {
                    names.insert(pasted);
                }
            }
            for (called, passed) in &generator.calls {
                let passed: Vec<_> = passed.iter().map(|word| value(word)).collect();
                self.expand(called, &passed, depth + 1, names, seen);
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::scan;

    #[test]
    fn names_are_put_together_through_several_macros() {
        let text = b"#define SET(n, l) void Set##n(void);\n#define GET(n) int n##_get(void);\n#define FLAG(n, l) SET(n, l) GET(l)\nFLAG(Red, red)\nDEFINE_LOCK(big);\nint x;\n";
        let files = vec![("a.h".to_owned(), scan(text))];
        let generators = Generators::of(&files);
        let names = |index: usize| generators.names(&files[0].1.invocations[index]);
        assert_eq!(
            names(0).into_iter().collect::<Vec<_>>(),
            ["SetRed", "red_get"]
        );
        assert_eq!(names(1).into_iter().collect::<Vec<_>>(), ["big"]);
    }

    #[test]
    fn a_macro_that_calls_itself_ends() {
        let files = vec![(
            "a.h".to_owned(),
            scan(b"#define A(n) A(n) B_##n\nA(x)\nint y;\n"),
        )];
        let names = Generators::of(&files).names(&files[0].1.invocations[0]);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["B_x"]);
    }
}
