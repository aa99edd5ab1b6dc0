//! The attribute macros that the kernel writes among the words of a declaration.
//!
//! Hides the list of them, and how those that have arguments are told from a name with its parameters.

use std::ops::Range;

use bstr::ByteSlice;

use super::layout::{line_end, literal};

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
pub(crate) fn is_word(byte: u8) -> bool {
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

/// Something in the head of a definition, outside of all parentheses.
enum Item {
    Word(Range<usize>),
    /// A pair of parentheses with all in between.
    Group(Range<usize>),
    /// A `*`, or anything else.
    Other,
}

/// The head of a definition with each attribute that has arguments, in front of its name (`__printf(1, 2)`) or behind its parameters
/// (`__releases(lock)`), overwritten by blanks; as it is where that cannot be told. By the kernel's convention their names start with `__`.
pub(super) fn without_calls(head: &[u8]) -> Vec<u8> {
    let items = items(head);
    let mut blanked = head.to_vec();
    let Some(parameters) = parameters(head, &items) else {
        return blanked;
    };
    for (at, pair) in items.windows(2).enumerate() {
        if let [Item::Word(word), Item::Group(group)] = pair
            && at + 1 != parameters
            && head[word.clone()].starts_with(b"__")
        {
            for byte in &mut blanked[word.start..group.end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
    }
    blanked
}

/// The name of the function that a definition's head is of; `None` where that cannot be told.
pub(super) fn name_in(head: &[u8]) -> Option<&[u8]> {
    let items = items(head);
    match &items[parameters(head, &items)? - 1] {
        Item::Word(word) => Some(&head[word.clone()]),
        Item::Group(_) | Item::Other => None,
    }
}

/// Which item is the parameters: the first pair of parentheses behind a name that has a type in front of it and nothing but attributes
/// behind it, with something in it that declares.
fn parameters(head: &[u8], items: &[Item]) -> Option<usize> {
    let text = |range: &Range<usize>| &head[range.clone()];
    let is_dunder = |word: &[u8]| word.starts_with(b"__") || is_attribute(word);
    let is_type = |at: usize| match &items[at] {
        Item::Word(word) => {
            let follows = matches!(items.get(at + 1), Some(Item::Group(_)));
            !follows && !is_attribute(text(word)) && !is_storage(text(word))
        }
        Item::Group(_) | Item::Other => false,
    };
    let is_behind = |at: usize| match &items[at] {
        Item::Word(word) => is_dunder(text(word)),
        Item::Group(_) => matches!(&items[at - 1], Item::Word(word) if is_dunder(text(word))),
        Item::Other => false,
    };
    (1..items.len()).find(|&at| {
        let has_name = match (&items[at - 1], &items[at]) {
            (Item::Word(_), Item::Group(group)) => declares(text(group)),
            _ => false,
        };
        has_name && (0..at - 1).any(is_type) && (at + 1..items.len()).all(is_behind)
    })
}

/// Whether what is in parentheses declares parameters: `()`, `(void)`, or a first one of at least two words. The arguments of an attribute
/// do not: numbers, and expressions that name a lock.
fn declares(group: &[u8]) -> bool {
    let inside = group[1..group.len() - 1].trim_ascii();
    let first = inside
        .split(|&byte| byte == b',')
        .next()
        .unwrap_or_default();
    let mut words = first
        .split(|&byte| !is_word(byte))
        .filter(|word| !word.is_empty());
    let has_two = words.nth(1).is_some();
    let is_expression =
        first.find("->").is_some() || first.find(".").is_some() || first.starts_with(b"&");
    matches!(inside, b"" | b"void") || has_two && !is_expression
}

fn is_storage(word: &[u8]) -> bool {
    matches!(
        word,
        b"static" | b"extern" | b"inline" | b"__inline" | b"__inline__"
    )
}

fn items(head: &[u8]) -> Vec<Item> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut open = None;
    let mut depth = 0_usize;
    while at < head.len() {
        let rest = &head[at..];
        let length = match rest[0] {
            b'/' if rest.starts_with(b"/*") => rest[2..].find("*/").map_or(rest.len(), |it| it + 4),
            b'/' if rest.starts_with(b"//") => line_end(rest, 0),
            b'"' | b'\'' => literal(rest),
            byte if is_word(byte) => {
                let end = rest.iter().position(|&byte| !is_word(byte));
                end.unwrap_or(rest.len())
            }
            _ => 1,
        };
        let is_outside = depth == 0;
        match rest[0] {
            b'(' => {
                open = open.or(Some(at));
                depth += 1;
            }
            b')' => {
                depth = depth.saturating_sub(1);
                if let Some(open) = open.take_if(|_| depth == 0) {
                    found.push(Item::Group(open..at + 1));
                }
            }
            byte if is_word(byte) && is_outside => found.push(Item::Word(at..at + length)),
            byte if is_outside && !byte.is_ascii_whitespace() && byte != b'/' => {
                found.push(Item::Other);
            }
            _ => {}
        }
        at += length;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_with_arguments_are_blanked_and_nothing_else_is() {
        for (head, blanked) in [
            (
                "static void f(int a)\n\t__releases(&a->b)\n",
                "static void f(int a)\n\n",
            ),
            (
                "void f(int a) __must_hold(&a->b) __acquires(c)",
                "void f(int a)",
            ),
            (
                "static __printf(2, 3) void f(char *a, ...)",
                "static void f(char *a, ...)",
            ),
            (
                "int f(int a) /* (b) */ __cold __section(\".c)\")",
                "int f(int a) /* (b) */ __cold",
            ),
            ("static __le32 __f(int a)", "static __le32 __f(int a)"),
            (
                "static __printf(1, 2) __le32 __f(int a)",
                "static __le32 __f(int a)",
            ),
            (
                "static __always_inline __must_check int f(void)",
                "static __always_inline __must_check int f(void)",
            ),
            ("void (*f(int a))(int)", "void (*f(int a))(int)"),
            ("SYSCALL_DEFINE1(f, int, a)", "SYSCALL_DEFINE1(f, int, a)"),
            (
                "struct a *f(int (*b)(int, void *))",
                "struct a *f(int (*b)(int, void *))",
            ),
            ("typeof(a) f(int b)", "typeof(a) f(int b)"),
            ("void __attribute__((weak)) __f(int a)", "void __f(int a)"),
            ("void __printf(1, 2) __f(char *a)", "void __f(char *a)"),
            (
                "void __f(struct a *b) __must_hold(b->lock)",
                "void __f(struct a *b)",
            ),
            (
                "static void __f(void) __acquires(RCU)",
                "static void __f(void)",
            ),
        ] {
            let found = without_calls(head.as_bytes());
            assert_eq!(found.len(), head.len());
            let words = |text: &[u8]| {
                text.fields()
                    .map(|it| it.to_str_lossy().into_owned())
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&found), words(blanked.as_bytes()), "{head}");
        }
    }

    #[test]
    fn the_attribute_list_is_sorted() {
        assert!(ATTRIBUTES.is_sorted());
    }
}
