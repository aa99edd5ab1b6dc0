//! Paths as git writes them in patches and diffstats: quoted in C's manner where they need it.
//!
//! Hides git's `quote_c_style` with its default `core.quotePath`, and its `unquote_c_style`.

use bstr::{BStr, BString, ByteSlice};

/// The path, in double quotes with escapes where it holds anything but printable ASCII.
#[must_use]
pub fn quoted(path: &BStr) -> BString {
    quoted_with("", path)
}

/// The same behind a prefix that stands inside the quotes (`"a/..."`).
pub(crate) fn quoted_with(prefix: &str, path: &BStr) -> BString {
    let mut text = BString::from(prefix);
    if !path.iter().any(|&byte| needs_quotes(byte)) {
        text.extend_from_slice(path);
        return text;
    }
    text.insert(0, b'"');
    for &byte in path.as_bytes() {
        push_escaped(&mut text, byte);
    }
    text.push(b'"');
    text
}

/// The text in double quotes with C's escapes that another one begins with, and what follows it.
pub(crate) fn unquoted(text: &[u8]) -> Option<(BString, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = BString::default();
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (escaped, after) = unescape(rest)?;
                name.push(escaped);
                rest = after;
            }
            byte => name.push(byte),
        }
    }
}

fn needs_quotes(byte: u8) -> bool {
    !(b' '..=b'~').contains(&byte) || matches!(byte, b'"' | b'\\')
}

fn push_escaped(text: &mut BString, byte: u8) {
    let letter = match byte {
        0x07 => b'a',
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0b => b'v',
        0x0c => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        byte if needs_quotes(byte) => {
            text.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            return;
        }
        byte => {
            text.push(byte);
            return;
        }
    };
    text.extend_from_slice(&[b'\\', letter]);
}

/// The byte behind a backslash.
fn unescape(text: &[u8]) -> Option<(u8, &[u8])> {
    let (&letter, rest) = text.split_first()?;
    let byte = match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'"' | b'\\' => letter,
        b'0'..=b'3' => {
            let digits = std::str::from_utf8(text.get(..3)?).ok()?;
            return Some((u8::from_str_radix(digits, 8).ok()?, &text[3..]));
        }
        _ => return None,
    };
    Some((byte, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_git_quotes_is_quoted() {
        assert_eq!(quoted(BStr::new("a b.c")), "a b.c");
        assert_eq!(quoted(BStr::new("a\tb")), "\"a\\tb\"");
        assert_eq!(
            quoted_with("b/", BStr::new("ü\x01")),
            "\"b/\\303\\274\\001\""
        );
    }

    #[test]
    fn what_is_quoted_is_unquoted_and_what_git_does_not_write_is_not() {
        let path = BString::from(&b"a\x07\x08\t\n\x0b\x0c\r\"\\\xfc\x01 z"[..]);
        let mut text = quoted(path.as_bstr());
        text.extend_from_slice(b" rest");
        assert_eq!(unquoted(&text), Some((path, &b" rest"[..])));
        for wrong in ["a", "\"a", "\"\\x\"", "\"\\40\"", "\"\\400\"", "\"\\"] {
            assert_eq!(unquoted(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
