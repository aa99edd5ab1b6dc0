//! Paths as git writes them in patches and diffstats: quoted in C's manner where they need it.
//!
//! Hides git's `quote_c_style` with its default `core.quotePath`.

use bstr::{BStr, BString, ByteSlice};

/// The path, in double quotes with escapes where it holds anything but printable ASCII.
#[must_use]
pub fn quoted(path: &BStr) -> BString {
    quoted_with("", path)
}

/// The same behind a prefix that stands inside the quotes (`"a/..."`).
pub(super) fn quoted_with(prefix: &str, path: &BStr) -> BString {
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
}
