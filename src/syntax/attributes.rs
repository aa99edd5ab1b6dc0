//! The attribute macros that the kernel writes among the words of a declaration.
//!
//! Hides the list of them.

/// Words that the kernel puts between a type and a function's name, and that the C grammar takes for part
/// of the declaration (`include/linux/{init,compiler_types,compiler_attributes}.h`).
const ATTRIBUTES: &[&str] = &[
    "__always_inline",
    "__always_unused",
    "__bpf_kfunc",
    "__cold",
    "__cpuidle",
    "__deprecated",
    "__exit",
    "__flatten",
    "__head",
    "__hot",
    "__init",
    "__init_memblock",
    "__init_or_module",
    "__initdata",
    "__initdata_memblock",
    "__iomem",
    "__irq_entry",
    "__kprobes",
    "__latent_entropy",
    "__maybe_unused",
    "__meminit",
    "__meminitdata",
    "__must_check",
    "__naked",
    "__net_exit",
    "__net_init",
    "__no_kmsan_checks",
    "__no_profile",
    "__no_sanitize_address",
    "__no_sanitize_memory",
    "__no_sanitize_thread",
    "__noendbr",
    "__noreturn",
    "__paginginit",
    "__percpu",
    "__pure",
    "__read_mostly",
    "__ref",
    "__refdata",
    "__ro_after_init",
    "__sched",
    "__softirq_entry",
    "__used",
    "__user",
    "__visible",
    "__weak",
    "asmlinkage",
    "noinline",
    "noinline_for_stack",
    "noinstr",
    "notrace",
];

/// Whether a word is one of them.
pub(super) fn is_attribute(word: &[u8]) -> bool {
    ATTRIBUTES
        .binary_search_by(|known| known.as_bytes().cmp(word))
        .is_ok()
}

/// Whether a byte can be part of a word of C.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The text with each attribute macro overwritten by blanks.
pub(super) fn without_attributes(text: &[u8]) -> Vec<u8> {
    let mut blanked = text.to_vec();
    let mut at = 0;
    while let Some(start) = text[at..]
        .iter()
        .position(|&byte| is_word(byte))
        .map(|skip| at + skip)
    {
        let end = text[start..]
            .iter()
            .position(|&byte| !is_word(byte))
            .map_or(text.len(), |length| start + length);
        let word = &text[start..end];
        if matches!(word[0], b'_' | b'a' | b'n') && is_attribute(word) {
            blanked[start..end].fill(b' ');
        }
        at = end;
    }
    blanked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_list_is_sorted() {
        assert!(ATTRIBUTES.is_sorted());
    }
}
