//! Cuts C into tokens, comments and white space left out.
//!
//! A lexer and not the parser, because what is asked here is asked of thousands of headers that the parser makes no sense of: which
//! names there are, and whether two pieces of code say the same.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or a keyword.
    Word,
    /// A number.
    Number,
    /// A string or a character.
    Text,
    /// An operator or a bracket.
    Punctuation,
    /// A whole line of the preprocessor, its continuations included.
    Directive,
}

/// A token and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its first byte.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
}

impl Token {
    /// Its text.
    #[must_use]
    pub fn text<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        &file[self.start..self.end]
    }

    /// Whether its text is `text`.
    #[must_use]
    pub fn is(&self, file: &[u8], text: &str) -> bool {
        self.text(file) == text.as_bytes()
    }
}

/// The longest first, as C reads them.
const OPERATORS: [&[u8]; 22] = [
    b"<<=", b">>=", b"...", b"->", b"++", b"--", b"<<", b">>", b"<=", b">=", b"==", b"!=", b"&&",
    b"||", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"##",
];

/// The tokens of a whole file, or of whole lines of one.
#[must_use]
pub fn tokens(text: &[u8]) -> Vec<Token> {
    Lexer::new(text, 0..text.len(), true).collect()
}

/// The tokens of a piece of a file; a `#` in it is an operator.
#[must_use]
pub fn tokens_in(text: &[u8], range: Range<usize>) -> Vec<Token> {
    Lexer::new(text, range, false).collect()
}

/// The texts of the tokens of a piece of code, line ends and `\` left out.
pub fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lexer = Lexer::new(text, 0..text.len(), false);
    lexer.map(move |token| token.text(text))
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    end: usize,
    /// Whether a `#` would start a directive here.
    fresh: bool,
    directives: bool,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a [u8], range: Range<usize>, directives: bool) -> Self {
        Self {
            text,
            at: range.start,
            end: range.end,
            fresh: true,
            directives,
        }
    }

    fn byte(&self, at: usize) -> u8 {
        if at < self.end { self.text[at] } else { 0 }
    }

    /// Goes over white space, continued lines and comments.
    fn skip_blanks(&mut self) {
        while self.at < self.end {
            match (self.text[self.at], self.byte(self.at + 1)) {
                (b'\n', _) => {
                    self.fresh = true;
                    self.at += 1;
                }
                (b' ' | b'\t' | b'\r' | 0x0b | 0x0c, _) => self.at += 1,
                (b'\\', b'\n') => self.at += 2,
                (b'\\', b'\r') => self.at += 3,
                (b'/', b'*' | b'/') => self.at = comment_end(&self.text[..self.end], self.at),
                _ => return,
            }
        }
    }

    fn token(&self) -> (Kind, usize) {
        let start = self.at;
        let first = self.text[start];
        if first == b'#' && self.fresh && self.directives {
            return (Kind::Directive, self.directive_end());
        }
        let run = |from: usize, keep: fn(u8) -> bool| {
            let rest = &self.text[from..self.end];
            from + rest.iter().take_while(|&&byte| keep(byte)).count()
        };
        if first.is_ascii_digit() || first == b'.' && self.byte(start + 1).is_ascii_digit() {
            return (
                Kind::Number,
                run(start, |byte| is_word(byte) || byte == b'.'),
            );
        }
        if is_word(first) {
            return (Kind::Word, run(start, is_word));
        }
        if first == b'"' || first == b'\'' {
            return (Kind::Text, quoted_end(&self.text[..self.end], start));
        }
        let rest = &self.text[start..self.end];
        let operator = OPERATORS.iter().find(|operator| rest.starts_with(operator));
        (Kind::Punctuation, start + operator.map_or(1, |it| it.len()))
    }

    /// Behind the last character of a directive, where no continuation follows; a comment may span lines.
    fn directive_end(&self) -> usize {
        let text = &self.text[..self.end];
        let mut at = self.at;
        while at < self.end {
            match (text[at], self.byte(at + 1)) {
                (b'\n', _) => return at,
                (b'\\', b'\n') => at += 2,
                (b'\\', b'\r') => at += 3,
                (b'/', b'*' | b'/') => at = comment_end(text, at),
                (b'"' | b'\'', _) => at = quoted_end(text, at),
                _ => at += 1,
            }
        }
        self.end
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_blanks();
        if self.at >= self.end {
            return None;
        }
        let start = self.at;
        let (kind, end) = self.token();
        self.at = end;
        self.fresh = false;
        Some(Token { kind, start, end })
    }
}

/// Whether a byte can be part of an identifier; bytes that are not ASCII count, as compilers take them.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Behind a comment that starts at `at`; the newline behind `//` is no part of it.
fn comment_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at + 2..];
    let end = if text[at + 1] == b'*' {
        bstr::ByteSlice::find(rest, "*/").map(|length| length + 2)
    } else {
        bstr::ByteSlice::find_byte(rest, b'\n')
    };
    end.map_or(text.len(), |length| at + 2 + length)
}

/// Behind a string or character that starts at `at`; one that is not closed ends with its line.
fn quoted_end(text: &[u8], at: usize) -> usize {
    let quote = text[at];
    let mut end = at + 1;
    while end < text.len() {
        match text[end] {
            b'\\' => end += 2,
            b'\n' => return end,
            byte if byte == quote => return end + 1,
            _ => end += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<&str> {
        let bytes = text.as_bytes();
        tokens(bytes)
            .iter()
            .map(|token| &text[token.start..token.end])
            .collect()
    }

    #[test]
    fn comments_and_white_space_are_no_tokens() {
        assert_eq!(all("a /* b */ +\tc // d\n e"), ["a", "+", "c", "e"]);
        assert_eq!(
            all("a->b++ <<= 0x1fUL"),
            ["a", "->", "b", "++", "<<=", "0x1fUL"]
        );
        assert_eq!(all("\"/* x\" 'a' '\\''"), ["\"/* x\"", "'a'", "'\\''"]);
    }

    #[test]
    fn a_directive_is_one_token_with_its_continuations() {
        let text = "#define A(x) \\\n\tf(x) /* g\n h */\nint a;\n # if 0 // \n";
        assert_eq!(
            all(text),
            [
                "#define A(x) \\\n\tf(x) /* g\n h */",
                "int",
                "a",
                ";",
                "# if 0 // "
            ]
        );
        assert_eq!(all("a # b"), ["a", "#", "b"]);
    }

    #[test]
    fn what_never_ends_ends_with_the_text() {
        for text in ["/*", "\"", "'", "#define", "a \\", "//", "/", "\"\\"] {
            assert!(
                tokens(text.as_bytes())
                    .iter()
                    .all(|it| it.end <= text.len()),
                "{text}"
            );
        }
    }

    #[test]
    fn words_of_a_piece_do_not_see_its_layout() {
        let one: Vec<_> = words(b"do { \\\n\tf(a);\\\n} while (0)").collect();
        let two: Vec<_> = words(b"do{f(a);/**/}while(0)").collect();
        assert_eq!(one, two);
    }
}
