//! Digests of bytes, and bytes as digits.

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest of parts, each told from the next: 40 hexadecimal digits, as many as a commit's id has.
#[must_use]
pub fn digest(parts: impl IntoIterator<Item = Vec<u8>>) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(&part);
    }
    hex(&digest.finalize()[..20])
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_from_each_other() {
        let of = |parts: &[&str]| digest(parts.iter().map(|it| it.as_bytes().to_vec()));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&["ab"]).len(), 40);
        assert_eq!(hex(&[0, 255]), "00ff");
    }
}
