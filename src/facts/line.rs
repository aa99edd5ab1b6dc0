//! The probe of a line: whether a file has it, and what comes closest where it has not.
//!
//! Hides what may differ in a line that is the same: white space, and for a line of the preprocessor all that is between tokens.

use bstr::ByteSlice;

use crate::shape::closest;
use crate::syntax::{code_lines, line_of, tokens};

/// Where a file has a line, counted from 0.
pub(super) fn find(text: &[u8], file: &str, line: &str) -> Option<usize> {
    let wanted = Line::of(line.as_bytes());
    let found = lines(text, file).find(|(_, candidate)| Line::of(candidate) == wanted);
    found.map(|(offset, _)| line_of(text, offset) - 1)
}

/// The line that was looked for, and those of the file that come closest.
pub(super) fn nearest(text: &[u8], file: &str, line: &str) -> Vec<String> {
    let is_near = |candidate: &[u8]| {
        let (one, other) = (candidate.trim_ascii().len(), line.len());
        one < 3 * other && other < 3 * one
    };
    let near = lines(text, file).filter(|(_, candidate)| is_near(candidate));
    let near = near.map(|(offset, candidate)| {
        let shown = candidate.trim_ascii_end().to_str_lossy().into_owned();
        (shown.clone(), (line_of(text, offset), shown))
    });
    let found = closest(&[line], near).into_iter().take(1);
    let found: Vec<_> = found
        .map(|(number, shown)| format!("  {file}:{number}: {shown}"))
        .collect();
    let heading = if found.is_empty() {
        "and no line of it comes close"
    } else {
        "the nearest line of it is"
    };
    let wanted = [format!("expected: {line}"), heading.to_owned()];
    wanted.into_iter().chain(found).collect()
}

/// The lines of a file with their offsets: of one in C those that are code, with what a backslash joins to them.
fn lines<'t>(text: &'t [u8], file: &str) -> Box<dyn Iterator<Item = (usize, &'t [u8])> + 't> {
    if file.ends_with(".c") || file.ends_with(".h") {
        return Box::new(code_lines(text).map(|line| (line.start, &text[line])));
    }
    let mut offset = 0;
    Box::new(text.lines_with_terminator().map(move |line| {
        offset += line.len();
        (offset - line.len(), line)
    }))
}

/// What makes a line the same as another one.
#[derive(PartialEq, Eq)]
enum Line<'t> {
    /// Its tokens, and whether the name that a `#define` defines takes arguments.
    Directive(Vec<&'t [u8]>, bool),
    /// Its words.
    Other(Vec<&'t [u8]>),
}

impl<'t> Line<'t> {
    fn of(line: &'t [u8]) -> Self {
        if !line.trim_ascii_start().starts_with(b"#") {
            return Self::Other(line.fields().collect());
        }
        let found: Vec<_> = tokens(line).collect();
        let texts: Vec<_> = found.iter().map(|token| &line[token.clone()]).collect();
        let takes_arguments = texts.get(1) == Some(&&b"define"[..])
            && texts.get(3) == Some(&&b"("[..])
            && found[2].end == found[3].start;
        Self::Directive(texts, takes_arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_is_its_tokens() {
        let line = "#define active(t) enabled(t)";
        for same in [
            "#define active(t) enabled(t)\n",
            "# define active(t)\tenabled( t )\n",
            "#define\tactive( t ) enabled(t) /* why */\n",
            "  #define active(t) \\\n\tenabled(t)\n",
            "int x; /* a\n*/ #define active(t) enabled(t)\n",
        ] {
            assert!(find(same.as_bytes(), "a.h", line).is_some(), "{same}");
        }
        for other in [
            "#define active (t) enabled(t)\n",
            "#define active(t) enabled(t) + 1\n",
            "#define active(u) enabled(u)\n",
            "/*\n#define active(t) enabled(t)\n*/\n",
            "#if 0\n#define active(t) enabled(t)\n#endif\n",
            "#undef active\n",
        ] {
            assert_eq!(find(other.as_bytes(), "a.h", line), None, "{other}");
        }
        let text = b"#define a \\\n 1\n\n#define active(t) enabled(t)\n";
        assert_eq!(find(text, "a.h", line), Some(3));
    }

    #[test]
    fn another_line_is_its_words() {
        assert_eq!(find(b"a\n\tint  x;\n", "a.c", "int x;"), Some(1));
        assert_eq!(find(b"int x ;\n", "a.c", "int x;"), None);
        let kbuild = b"clean:\n\trm */*.o\nobj-y  += a.o\n";
        assert_eq!(find(kbuild, "Kbuild", "obj-y += a.o"), Some(2));
    }

    #[test]
    fn the_nearest_line_is_shown_with_its_number() {
        let text = b"#define A 1\n#define active(t) enabled(t, 0)\n#define B 2\n";
        assert_eq!(
            nearest(text, "a.h", "#define active(t) enabled(t)"),
            [
                "expected: #define active(t) enabled(t)",
                "the nearest line of it is",
                "  a.h:2: #define active(t) enabled(t, 0)"
            ]
        );
        assert_eq!(
            nearest(b"", "a.h", "x = 1;")[1],
            "and no line of it comes close"
        );
    }
}
