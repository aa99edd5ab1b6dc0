//! The tokens of C: what is left of a text without white space and comments.
//!
//! Hides the longest match, so that `a+++b` has the tokens the compiler sees. No parser is asked: a line of the preprocessor has tokens too.

use std::ops::Range;

use bstr::Finder;

use super::attributes::is_word;
use super::layout::{code_lines, literal};

/// The operators of more than one character, the longest first.
const OPERATORS: [&[u8]; 23] = [
    b"<<=", b">>=", b"...", b"->", b"++", b"--", b"<<", b">>", b"<=", b">=", b"==", b"!=", b"&&",
    b"||", b"*=", b"/=", b"%=", b"+=", b"-=", b"&=", b"^=", b"|=", b"##",
];

/// Where the tokens of a text are, comments left out.
pub fn tokens(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let (is_token, length) = next(&text[at..]);
            at += length;
            if is_token {
                return Some(at - length..at);
            }
        }
        None
    })
}

/// The texts of the tokens of a text.
pub fn token_texts(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    tokens(text).map(|token| &text[token])
}

/// Where a word is in the code of a file: in no comment, no literal and below no `#if 0`.
#[must_use]
pub fn mentions(text: &[u8], word: &str) -> Vec<usize> {
    let finder = Finder::new(word);
    if finder.find(text).is_none() {
        return Vec::new();
    }
    let lines = code_lines(text).filter(|line| finder.find(&text[line.clone()]).is_some());
    let words = lines.flat_map(|line| {
        let words = tokens(&text[line.clone()]);
        words.map(move |token| line.start + token.start..line.start + token.end)
    });
    let wanted = words.filter(|token| text[token.clone()] == *word.as_bytes());
    wanted.map(|token| token.start).collect()
}

/// Whether a text starts with a token, and how long that, or what stands between tokens, is.
fn next(text: &[u8]) -> (bool, usize) {
    let length_while = |is: fn(u8) -> bool| text.iter().take_while(|&&byte| is(byte)).count();
    match text[0] {
        byte if byte.is_ascii_whitespace() => {
            (false, length_while(|byte| byte.is_ascii_whitespace()))
        }
        b'\\' if text[1..].starts_with(b"\n") => (false, 2),
        b'\\' if text[1..].starts_with(b"\r\n") => (false, 3),
        b'/' if text[1..].starts_with(b"*") => {
            let close = text[2..].windows(2).position(|pair| pair == b"*/");
            (false, close.map_or(text.len(), |close| close + 4))
        }
        b'/' if text[1..].starts_with(b"/") => (false, length_while(|byte| byte != b'\n')),
        b'"' | b'\'' => (true, literal(text)),
        byte if byte.is_ascii_digit() => (true, number(text)),
        byte if is_word(byte) => (true, length_while(is_word)),
        _ => {
            let operator = OPERATORS.iter().find(|operator| text.starts_with(operator));
            (true, operator.map_or(1, |operator| operator.len()))
        }
    }
}

/// How long the number is that a text starts with.
fn number(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        let is_exponent = matches!(text[at - 1], b'e' | b'E' | b'p' | b'P');
        let is_hexadecimal = text.starts_with(b"0x") || text.starts_with(b"0X");
        let is_sign = matches!(text[at], b'+' | b'-') && is_exponent;
        let is_sign = is_sign && (!is_hexadecimal || matches!(text[at - 1], b'p' | b'P'));
        if !is_word(text[at]) && text[at] != b'.' && !is_sign {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text.as_bytes()).map(|token| &text[token]).collect()
    }

    #[test]
    fn tokens_are_the_longest_that_can_be() {
        assert_eq!(texts("a+++b"), ["a", "++", "+", "b"]);
        assert_eq!(texts("x->y<<=1UL"), ["x", "->", "y", "<<=", "1UL"]);
        assert_eq!(
            texts("0x1e+2 1e+2 1.5f"),
            ["0x1e", "+", "2", "1e+2", "1.5f"]
        );
        assert_eq!(
            texts("f(\"a\\\"b\", 'c')"),
            ["f", "(", "\"a\\\"b\"", ",", "'c'", ")"]
        );
    }

    #[test]
    fn white_space_and_comments_are_no_tokens() {
        assert_eq!(texts("a/* b */c // d\n\\\ne"), ["a", "c", "e"]);
        assert_eq!(texts("a / b /* open"), ["a", "/", "b"]);
        assert_eq!(texts("#\tdefine  A\t1"), ["#", "define", "A", "1"]);
    }

    #[test]
    fn a_word_is_mentioned_in_code_only() {
        let text = "/* f */\nint f(void);\nchar *p = \"f\"; // f\n#if 0\nf\n#endif\n\tf2(f);\n";
        let found = mentions(text.as_bytes(), "f");
        let expected = [text.find("f(v").expect("f"), text.find("f);").expect("f")];
        assert_eq!(found, expected);
    }
}
