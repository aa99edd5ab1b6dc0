//! Any bytes in a `String`, and back: templates are text, and what a base says is not always.
//!
//! Hides how: a byte that is no part of UTF-8 becomes one of 128 characters of a private plane. Where a text has such a character
//! itself, its bytes are taken one by one, so that whatever is packed is unpacked to the same bytes.

use std::borrow::Cow;

/// The character that stands for the byte 0x80; the others follow.
const FIRST: u32 = 0x0010_FF00;

/// The bytes as text.
#[must_use]
pub fn pack(bytes: &[u8]) -> String {
    let mut packed = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        push(chunk.valid(), &mut packed);
        packed.extend(chunk.invalid().iter().map(|byte| stand_in(*byte)));
    }
    packed
}

/// A text of our own, in which no character stands for a byte.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if !has_bytes(text) {
        return Cow::Borrowed(text);
    }
    let mut packed = String::with_capacity(text.len());
    push(text, &mut packed);
    Cow::Owned(packed)
}

/// The bytes that were packed.
#[must_use]
pub fn unpack(text: &str) -> Cow<'_, [u8]> {
    if !has_bytes(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        match byte(char) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// Whether some of a text stands for bytes that are no UTF-8.
#[must_use]
pub fn has_bytes(text: &str) -> bool {
    text.as_bytes().contains(&0xF4) && text.chars().any(|char| byte(char).is_some())
}

fn push(text: &str, packed: &mut String) {
    for char in text.chars() {
        if byte(char).is_some() {
            let mut bytes = [0; 4];
            let bytes = char.encode_utf8(&mut bytes).bytes();
            packed.extend(bytes.map(stand_in));
        } else {
            packed.push(char);
        }
    }
}

/// The byte that a character stands for.
fn byte(char: char) -> Option<u8> {
    let offset = u32::from(char).checked_sub(FIRST)?;
    u8::try_from(offset + 0x80).ok().filter(|_| offset < 0x80)
}

/// The character that stands for a byte, which is not in ASCII.
fn stand_in(byte: u8) -> char {
    let offset = u32::from(byte).saturating_sub(0x80);
    char::from_u32(FIRST + offset).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn latin_1_is_carried_and_text_is_left_alone() {
        let packed = pack(b"caf\xe9 \xff");
        assert!(has_bytes(&packed) && packed.starts_with("caf"));
        assert_eq!(&*unpack(&packed), b"caf\xe9 \xff");
        assert_eq!(
            pack("caf\u{e9} \u{10FFFF}".as_bytes()),
            "caf\u{e9} \u{10FFFF}"
        );
        assert!(!has_bytes("caf\u{e9}"));
    }

    #[test]
    fn every_byte_has_its_own_character() {
        for byte in 0x80..=0xFF {
            assert_eq!(&*unpack(&pack(&[byte])), [byte]);
        }
    }

    proptest! {
        #[test]
        fn whatever_is_packed_is_unpacked(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(unpack(&pack(&bytes)).into_owned(), bytes);
        }

        #[test]
        fn text_with_the_characters_themselves_is_kept(
            chars in proptest::collection::vec(prop_oneof![any::<char>(), proptest::char::range('\u{10FEF0}', '\u{10FF90}')], 0..32),
        ) {
            let text: String = chars.into_iter().collect();
            prop_assert_eq!(unpack(&plain(&text)).into_owned(), text.as_bytes());
            prop_assert_eq!(unpack(&pack(text.as_bytes())).into_owned(), text.as_bytes());
            prop_assert_eq!(pack(text.as_bytes()), plain(&text));
        }

        #[test]
        fn parts_are_packed_one_by_one(one in proptest::collection::vec(any::<u8>(), 0..16), other in "[ -~]{0,16}") {
            // What stands around a text does not change what it stands for.
            let together = pack(&one) + &plain(&other);
            prop_assert_eq!(unpack(&together).into_owned(), [&one[..], other.as_bytes()].concat());
        }
    }
}
