//! The `diff` attribute of a path, from the `.gitattributes` files of a tree alone.
//!
//! Hides the files' format, macros, precedence and git's wildcards; no work tree, index or
//! configuration is asked (libgit2 and git would ask all three).
//!
//! The rules are those of git's `attr.c`, `dir.c` and `wildmatch.c`.

use std::collections::HashMap;

use anyhow::Result;
use bstr::{BStr, BString, ByteSlice};

use super::path::unquoted;
use crate::repo::{ObjectId, Repo};

/// What a file says about an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing, or `!name`.
    Unspecified,
    /// `name`.
    Set,
    /// `-name`.
    Unset,
    /// `name=value`.
    Value(BString),
}

/// The attributes of one tree, each directory's file read once.
pub(super) struct Attributes<'r> {
    repo: &'r Repo,
    tree_id: ObjectId,
    files: HashMap<BString, Vec<Line>>,
}

/// One line of a file.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    subject: Subject,
    states: Vec<(BString, State)>,
}

/// What a line speaks of.
#[derive(Debug, PartialEq, Eq)]
enum Subject {
    /// `[attr]NAME`: what else holds where NAME is set.
    Macro(BString),
    /// Files of this name, at any depth.
    Name(BString),
    /// Files at this path, from the directory of the attributes file.
    Path(BString),
}

/// Git's one built-in macro.
const BUILT_IN: &[u8] = b"[attr]binary -diff -merge -text\n";
const BLANK: &[u8] = b" \t\r\n";

impl<'r> Attributes<'r> {
    pub(super) fn new(repo: &'r Repo, tree_id: ObjectId) -> Self {
        Self {
            repo,
            tree_id,
            files: HashMap::new(),
        }
    }

    /// The `diff` attribute of the file at `path`: the nearest file's last matching line that knows.
    pub(super) fn diff(&mut self, path: &BStr) -> Result<State> {
        let mut directories: Vec<&BStr> = vec![BStr::new("")];
        directories.extend(path.find_iter("/").map(|slash| path[..slash].as_bstr()));
        for directory in &directories {
            self.read(directory)?;
        }
        let built_in = parse(BUILT_IN, true);
        let root = self.files.get(BStr::new("")).unwrap_or(&built_in);
        let mut known = Known::default();
        for &directory in directories.iter().rev() {
            let below = directory.len() + usize::from(!directory.is_empty());
            for line in self.files.get(directory).into_iter().flatten().rev() {
                if line.subject.matches(path[below..].as_bstr()) {
                    known.learn(&line.states, &[root, &built_in]);
                }
            }
        }
        Ok(known
            .0
            .remove(BStr::new("diff"))
            .unwrap_or(State::Unspecified))
    }

    fn read(&mut self, directory: &BStr) -> Result<()> {
        if self.files.contains_key(directory) {
            return Ok(());
        }
        let mut path = directory.to_owned();
        if !directory.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(b".gitattributes");
        let lines = match self.repo.file(self.tree_id, path.as_bstr())? {
            // Git follows no symbolic link to attributes.
            Some(file) if file.mode & super::MODE_KIND == super::MODE_REGULAR => {
                parse(&file.bytes, directory.is_empty())
            }
            _ => Vec::new(),
        };
        self.files.insert(directory.to_owned(), lines);
        Ok(())
    }
}

/// The states found so far for one path; what is known first stays.
#[derive(Default)]
struct Known(HashMap<BString, State>);

impl Known {
    fn learn(&mut self, states: &[(BString, State)], macros: &[&Vec<Line>]) {
        for (name, state) in states.iter().rev() {
            if self.0.contains_key(name) {
                continue;
            }
            self.0.insert(name.clone(), state.clone());
            if *state == State::Set
                && let Some(line) = expansion(name, macros)
            {
                self.learn(&line.states, macros);
            }
        }
    }
}

/// What the macro `name` stands for: its last definition, the root's before the built-in one.
fn expansion<'a>(name: &BString, macros: &[&'a Vec<Line>]) -> Option<&'a Line> {
    let defines = |line: &&Line| matches!(&line.subject, Subject::Macro(it) if it == name);
    macros
        .iter()
        .find_map(|lines| lines.iter().rev().find(defines))
}

impl Subject {
    /// Whether the file at `path` (from the directory of the attributes file) is meant.
    fn matches(&self, path: &BStr) -> bool {
        match self {
            Self::Macro(_) => false,
            Self::Name(pattern) => {
                let name = path
                    .rsplit_once_str("/")
                    .map_or(path, |(_, name)| name.as_bstr());
                wildcard(pattern, name)
            }
            Self::Path(pattern) => wildcard(pattern, path),
        }
    }
}

/// The lines of one file; git ignores what it does not understand, with a warning at most.
fn parse(bytes: &[u8], is_root: bool) -> Vec<Line> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|&byte| byte == b'\n');
    // Git ignores lines of 2048 bytes and more.
    lines
        .filter(|line| line.len() < 2048)
        .filter_map(|line| parse_line(line, is_root))
        .collect()
}

fn parse_line(line: &[u8], is_root: bool) -> Option<Line> {
    let line = line.trim_start_with(|char| char.is_ascii() && BLANK.contains(&(char as u8)));
    if line.is_empty() || line.starts_with(b"#") {
        return None;
    }
    let (name, rest) = unquoted(line).unwrap_or_else(|| {
        let (name, rest) = word(line);
        (name.into(), rest)
    });
    if !line.starts_with(b"\"")
        && let Some(first) = name.strip_prefix(b"[attr]")
    {
        if !is_root {
            return None;
        }
        let (name, rest) = if first.is_empty() {
            word(rest)
        } else {
            (first, rest)
        };
        let subject = Subject::Macro(name.into());
        return Some(Line {
            subject,
            states: states(rest),
        });
    }
    Some(Line {
        subject: subject(name.as_bstr())?,
        states: states(rest),
    })
}

/// A pattern; `None` where git ignores it: negative ones, and those that mean directories only.
fn subject(pattern: &BStr) -> Option<Subject> {
    if pattern.starts_with(b"!") || pattern.ends_with(b"/") {
        return None;
    }
    Some(if pattern.contains(&b'/') {
        Subject::Path(pattern.strip_prefix(b"/").unwrap_or(pattern).into())
    } else {
        Subject::Name(pattern.to_owned())
    })
}

fn states(mut rest: &[u8]) -> Vec<(BString, State)> {
    let mut found = Vec::new();
    loop {
        let (token, after) = word(rest);
        if token.is_empty() {
            return found;
        }
        rest = after;
        found.push(match (token[0], token.split_once_str("=")) {
            (b'-', _) => (token[1..].into(), State::Unset),
            (b'!', _) => (token[1..].into(), State::Unspecified),
            (_, Some((name, value))) => (name.into(), State::Value(value.into())),
            (_, None) => (token.into(), State::Set),
        });
    }
}

/// The next word and what follows it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let blank = |byte: &u8| BLANK.contains(byte);
    let start = text.iter().position(|byte| !blank(byte));
    let text = &text[start.unwrap_or(text.len())..];
    text.split_at(text.iter().position(blank).unwrap_or(text.len()))
}

/// Git's `wildmatch` with `WM_PATHNAME`: `*`, `?` and `[...]` do not match a slash, `**` does where
/// it stands for whole directories.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    wildcard_at(pattern, 0, text)
}

fn wildcard_at(whole: &[u8], at: usize, text: &[u8]) -> bool {
    let pattern = &whole[at..];
    let Some(&first) = pattern.first() else {
        return text.is_empty();
    };
    if first == b'*' {
        return star(whole, at, text);
    }
    let Some((&byte, rest)) = text.split_first() else {
        return false;
    };
    let used = match first {
        b'?' => (byte != b'/').then_some(1),
        b'[' => class(&pattern[1..], byte).map(|used| used + 1),
        b'\\' => (pattern.get(1) == Some(&byte)).then_some(2),
        literal => (literal == byte).then_some(1),
    };
    used.is_some_and(|used| wildcard_at(whole, at + used, rest))
}

fn star(whole: &[u8], at: usize, text: &[u8]) -> bool {
    let stars = whole[at..].iter().take_while(|&&byte| byte == b'*').count();
    let next = at + stars;
    let after = &whole[next..];
    let at_start = at == 0 || whole[at - 1] == b'/';
    let at_end = after.is_empty() || after.starts_with(b"/") || after.starts_with(b"\\/");
    let deep = stars > 1 && at_start && at_end;
    // `**/` also means no directory at all.
    if deep && after.starts_with(b"/") && wildcard_at(whole, next + 1, text) {
        return true;
    }
    let reach = if deep {
        text.len()
    } else {
        text.find_byte(b'/').unwrap_or(text.len())
    };
    (0..=reach).any(|skip| wildcard_at(whole, next, &text[skip..]))
}

/// Whether `byte` is in the class behind a `[`; the length up to its `]` if so.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let first = usize::from(negated);
    let mut at = first;
    let mut found = false;
    let mut last = None;
    loop {
        let char = *pattern.get(at)?;
        if char == b']' && at > first {
            let matches = found != negated && byte != b'/';
            return matches.then_some(at + 1);
        }
        let named = pattern[at..].strip_prefix(b"[:");
        if let Some((name, _)) = named.and_then(|rest| rest.split_once_str(":]")) {
            found |= named_class(name, byte)?;
            at += name.len() + 4;
            last = None;
        } else if let (b'-', Some(low), Some(true)) =
            (char, last, pattern.get(at + 1).map(|&next| next != b']'))
        {
            let (high, used) = literal(&pattern[at + 1..])?;
            found |= (low..=high).contains(&byte);
            at += 1 + used;
            last = None;
        } else {
            let (char, used) = literal(&pattern[at..])?;
            found |= char == byte;
            at += used;
            last = Some(char);
        }
    }
}

/// One byte of a class, and its length: a backslash takes the next one as it is.
fn literal(pattern: &[u8]) -> Option<(u8, usize)> {
    match *pattern.first()? {
        b'\\' => Some((*pattern.get(1)?, 2)),
        byte => Some((byte, 1)),
    }
}

fn named_class(name: &[u8], byte: u8) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte == b' ' || byte.is_ascii_graphic(),
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_gits_do() {
        for (pattern, text, wanted) in [
            ("*.[ch]", "mm_init.c", true),
            ("*.[ch]", "mm_init.cc", false),
            ("mm/*.c", "mm/a.c", true),
            ("mm/*.c", "mm/x/a.c", false),
            ("mm/**/a.c", "mm/a.c", true),
            ("mm/**/a.c", "mm/x/y/a.c", true),
            ("**/a.c", "x/y/a.c", true),
            ("mm/**", "mm/x/y", true),
            ("m**c", "m/c", false),
            ("[!a-c]x", "dx", true),
            ("[!a-c]x", "bx", false),
            ("[]-]x", "-x", true),
            ("[[:digit:]]x", "1x", true),
            ("\\*x", "*x", true),
            ("?", "/", false),
        ] {
            let found = wildcard(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn comments_negative_patterns_and_nested_macros_are_ignored() {
        assert_eq!(parse(b"# x\n\n!*.c diff=cpp\ndir/ diff\n", true), vec![]);
        assert_eq!(parse(b"[attr]c diff=cpp\n", false), vec![]);
        assert_eq!(parse(b"[attr]c diff=cpp\n", true).len(), 1);
    }
}
