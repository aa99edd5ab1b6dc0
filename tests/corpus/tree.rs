//! The files of a kernel as a kind of drift edits them: text of the base in, changed text out.
//!
//! Hides where a function is on which base. Every edit is exact: what it looks for is there once, or the kind makes no sense here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Files by their paths.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Where a function is looked for, in this order.
const PLACES: [&str; 12] = [
    "mm/mm_init.c",
    "mm/page_alloc.c",
    "mm/internal.h",
    "include/linux/mm.h",
    "include/linux/page-flags.h",
    "include/linux/memremap.h",
    "mm/memremap.c",
    "include/linux/page_ref.h",
    "include/linux/mmzone.h",
    "include/linux/pageblock-flags.h",
    "mm/sparse-vmemmap.c",
    "include/asm-generic/memory_model.h",
];

/// The function that sets up one page.
pub(crate) const PAGE: &str = "__init_zone_device_page";
/// The function that sets up the tails of a compound page.
pub(crate) const COMPOUND: &str = "memmap_init_compound";
/// The function that sets up a range of pages.
pub(crate) const RANGE: &str = "memmap_init_zone_device";

/// Reads a file of the base.
pub(crate) type Read = Rc<dyn Fn(&str) -> Option<Vec<u8>>>;

/// What the series makes of the base as it is: the changed files after each patch, with the message of its commit.
pub(crate) type Emitted = Rc<dyn Fn() -> Vec<(String, Files)>>;

/// A state in a history: what has changed since the base, and the message of the commit.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) message: String,
    pub(crate) files: Files,
}

/// A base that is being changed.
pub(crate) struct Tree {
    read: Read,
    emitted: Emitted,
    cache: RefCell<BTreeMap<String, Option<Vec<u8>>>>,
    /// What is changed now.
    pub(crate) files: Files,
    /// The commits below the last one.
    pub(crate) history: Vec<Step>,
}

impl Tree {
    pub(crate) fn new(read: Read, emitted: Emitted) -> Self {
        Self {
            read,
            emitted,
            cache: RefCell::default(),
            files: Files::new(),
            history: Vec::new(),
        }
    }

    /// Back to the base, which is what the next kind starts from.
    pub(crate) fn reset(&mut self) {
        self.files.clear();
        self.history.clear();
    }

    /// A file as it is now.
    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        if let Some(bytes) = self.files.get(path) {
            return Some(bytes.clone());
        }
        let mut cache = self.cache.borrow_mut();
        let file = cache
            .entry(path.to_owned())
            .or_insert_with(|| (self.read)(path));
        file.clone()
    }

    /// A file as the base has it.
    pub(crate) fn of_base(&self, path: &str) -> Option<Vec<u8>> {
        (self.read)(path)
    }

    /// Takes away what the base does not have.
    pub(crate) fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        String::from_utf8(self.bytes(path)?).ok()
    }

    /// Gives a file other content; a file that is not there is made.
    pub(crate) fn set(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.to_owned(), bytes.into());
    }

    /// What is there now becomes a commit of the history.
    pub(crate) fn commit(&mut self, message: &str) {
        self.history.push(Step {
            message: message.to_owned(),
            files: self.files.clone(),
        });
    }

    /// The series as it is made of the base: after patch `number`, from 1.
    pub(crate) fn series(&self, number: usize) -> Option<(String, Files)> {
        (self.emitted)().into_iter().nth(number - 1)
    }

    // ---------------------------------------------------------------------------------------- a file's text

    pub(crate) fn edit(
        &mut self,
        path: &str,
        change: impl FnOnce(&str) -> Option<String>,
    ) -> Option<()> {
        let old = self.text(path)?;
        let new = change(&old)?;
        (new != old).then(|| self.set(path, new))
    }

    /// Replaces text that is in a file once.
    pub(crate) fn replace(&mut self, path: &str, from: &str, to: &str) -> Option<()> {
        self.edit(path, |text| once(text, from, to))
    }

    /// Replaces text wherever it is in a file.
    pub(crate) fn replace_all(&mut self, path: &str, from: &str, to: &str) -> Option<()> {
        self.edit(path, |text| Some(text.replace(from, to)))
    }

    pub(crate) fn append(&mut self, path: &str, more: &str) -> Option<()> {
        self.edit(path, |text| Some(format!("{text}{more}")))
    }

    /// Puts lines in front of the last `#endif` of a header.
    pub(crate) fn append_header(&mut self, path: &str, more: &str) -> Option<()> {
        self.edit(path, |text| {
            let at = text.rfind("\n#endif")? + 1;
            Some(format!("{}{more}{}", &text[..at], &text[at..]))
        })
    }

    /// Puts lines in front of the first `#include`.
    pub(crate) fn before_includes(&mut self, path: &str, more: &str) -> Option<()> {
        self.edit(path, |text| {
            let at = text.find("#include ")?;
            Some(format!("{}{more}{}", &text[..at], &text[at..]))
        })
    }

    /// Puts lines behind the last `#include` at the top of a file.
    pub(crate) fn after_includes(&mut self, path: &str, more: &str) -> Option<()> {
        self.edit(path, |text| {
            let last = text.rfind("\n#include ")? + 1;
            let at = last + text[last..].find('\n')? + 1;
            Some(format!("{}{more}{}", &text[..at], &text[at..]))
        })
    }

    // ------------------------------------------------------------------------------------------- functions

    /// The file that defines a function.
    pub(crate) fn file_of(&self, name: &str) -> Option<String> {
        let mut known: Vec<&str> = PLACES.to_vec();
        known.extend(self.files.keys().map(String::as_str));
        let found = known.into_iter().find(|path| {
            self.text(path)
                .is_some_and(|text| find_function(&text, name).is_some())
        });
        found.map(str::to_owned)
    }

    /// The file that has the functions of the series.
    pub(crate) fn home(&self) -> String {
        self.file_of(RANGE).unwrap_or_else(|| PLACES[0].to_owned())
    }

    /// The definition of a function.
    pub(crate) fn function(&self, name: &str) -> Option<String> {
        let text = self.text(&self.file_of(name)?)?;
        let range = find_function(&text, name)?;
        Some(text[range].to_owned())
    }

    /// Changes the definition of a function.
    pub(crate) fn edit_function(
        &mut self,
        name: &str,
        change: impl FnOnce(&str) -> Option<String>,
    ) -> Option<()> {
        let path = self.file_of(name)?;
        self.edit(&path, |text| {
            let range = find_function(text, name)?;
            let new = change(&text[range.clone()])?;
            Some(format!(
                "{}{new}{}",
                &text[..range.start],
                &text[range.end..]
            ))
        })
    }

    /// Replaces text that is in a function once.
    pub(crate) fn within(&mut self, name: &str, from: &str, to: &str) -> Option<()> {
        self.edit_function(name, |text| once(text, from, to))
    }

    /// Puts more behind text that is in a function once.
    pub(crate) fn behind(&mut self, name: &str, text: &str, more: &str) -> Option<()> {
        self.within(name, text, &format!("{text}{more}"))
    }

    /// Puts lines at the end of a function's body.
    pub(crate) fn at_end(&mut self, name: &str, lines: &str) -> Option<()> {
        self.edit_function(name, |text| {
            Some(format!("{}{lines}}}\n", text.strip_suffix("}\n")?))
        })
    }

    /// Puts code in front of a function, and of the comment on it.
    pub(crate) fn before(&mut self, name: &str, code: &str) -> Option<()> {
        let path = self.file_of(name)?;
        self.edit(&path, |text| {
            let at = with_comment(text, find_function(text, name)?.start);
            Some(format!("{}{code}\n{}", &text[..at], &text[at..]))
        })
    }

    /// Puts code behind a function.
    pub(crate) fn after(&mut self, name: &str, code: &str) -> Option<()> {
        let path = self.file_of(name)?;
        self.edit(&path, |text| {
            let at = find_function(text, name)?.end;
            Some(format!("{}\n{code}{}", &text[..at], &text[at..]))
        })
    }

    /// Takes a function, with the comment on it, out of its file.
    pub(crate) fn cut(&mut self, name: &str) -> Option<String> {
        let path = self.file_of(name)?;
        let text = self.text(&path)?;
        let range = find_function(&text, name)?;
        let start = with_comment(&text, range.start);
        let code = text[start..range.end].to_owned();
        let rest = text[range.end..]
            .strip_prefix('\n')
            .unwrap_or(&text[range.end..]);
        self.set(&path, format!("{}{rest}", &text[..start]));
        Some(code)
    }

    /// Renames a word in one function.
    pub(crate) fn rename_in(&mut self, name: &str, from: &str, to: &str) -> Option<()> {
        self.edit_function(name, |text| Some(rename(text, from, to)))
    }

    /// Renames a word in a whole file.
    pub(crate) fn rename(&mut self, path: &str, from: &str, to: &str) -> Option<()> {
        self.edit(path, |text| Some(rename(text, from, to)))
    }

    /// Whether a function has this text.
    pub(crate) fn has(&self, name: &str, text: &str) -> bool {
        self.function(name).is_some_and(|it| it.contains(text))
    }

    /// Whether the reference count is decided by a `switch`.
    pub(crate) fn by_switch(&self) -> bool {
        self.has(PAGE, "switch (pgmap->type)")
    }

    /// How the flags of a page are spelled: `page->flags` or `page->flags.f`.
    pub(crate) fn flags(&self, page: &str) -> Option<String> {
        let field = if self.has("set_page_node", "flags.f") {
            "flags.f"
        } else {
            "flags"
        };
        self.function("set_page_node")?;
        Some(format!("{page}->{field}"))
    }
}

/// `text` with the one place of `from` replaced.
pub(crate) fn once(text: &str, from: &str, to: &str) -> Option<String> {
    (text.matches(from).count() == 1).then(|| text.replacen(from, to, 1))
}

/// `text` with a whole word replaced everywhere.
pub(crate) fn rename(text: &str, from: &str, to: &str) -> String {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let mut new = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let end = at + from.len();
        let whole = !rest[..at].ends_with(is_word) && !rest[end..].starts_with(is_word);
        // What came before is part of the decision where a match starts right at `rest`.
        let glued = at == 0 && new.ends_with(is_word);
        new.push_str(&rest[..at]);
        new.push_str(if whole && !glued { to } else { from });
        rest = &rest[end..];
    }
    new + rest
}

/// The definition of a function, from its first line to its closing brace.
pub(crate) fn find_function(text: &str, name: &str) -> Option<Range<usize>> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let rest = &text[at..];
        if is_head(line, name) && rest.find('{')? < rest.find(';')? {
            return Some(at..at + rest.find("\n}\n")? + 3);
        }
        at += line.len();
    }
    None
}

fn is_head(line: &str, name: &str) -> bool {
    let Some(at) = line.find(&format!("{name}(")) else {
        return false;
    };
    let starts = !line.starts_with(['\t', ' ', '*', '/', '#']);
    starts && (at == 0 || line[..at].ends_with([' ', '*']))
}

/// Where the comment starts that ends on the line above `at`, or `at` itself.
fn with_comment(text: &str, at: usize) -> usize {
    let above = &text[..at];
    if !above.ends_with("*/\n") {
        return at;
    }
    above.rfind("/*").unwrap_or(at)
}

/// What every run begins with: there is no harness that would run a `#[test]`.
pub(crate) fn self_test() {
    assert_eq!(rename("a ab a_b (a)", "a", "x"), "x ab a_b (x)");
    let text = "int f(void);\n\n/* It. */\nint f(void)\n{\n\treturn 1;\n}\n";
    let range = find_function(text, "f").expect("a function");
    assert_eq!(&text[range.clone()], "int f(void)\n{\n\treturn 1;\n}\n");
    assert_eq!(&text[with_comment(text, range.start)..][..9], "/* It. */");
    assert_eq!(once("a a", "a", "b"), None);
}
