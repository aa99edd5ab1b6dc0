//! Finds where an edit lands in a file, and makes it there.
//!
//! Hides anchors: each matches exactly once or is an error that shows the nearest candidates, and after each
//! change only the definitions that the recipe names may have changed.

mod braces;
mod lines;
mod make;
pub mod moved;
mod search;
mod undo;

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use bstr::{BStr, ByteSlice};
use serde::Serialize;
use tree_sitter::Node;

use crate::carry;
use crate::error::Refusal;
use crate::recipe::{EditSpec, Place};
use crate::shape::quote;
use crate::syntax::{Function, Source, line_end, line_start};
use crate::template::indent;

pub use make::{Render, make};
pub use search::Search;
pub use undo::{Flags, Miss, Seen, Undo, Way};

/// Where an edit landed.
#[derive(Debug, Clone, Serialize)]
pub struct Landing {
    /// The patch.
    pub patch: String,
    /// The edit.
    pub edit: String,
    /// What it does: `create`, `insert`, `replace`, `extract`.
    pub action: &'static str,
    /// The file.
    pub file: String,
    /// The function it is in or beside; none for whole lines and new files.
    pub function: Option<String>,
    /// The line of the file as the edits before it left it; 1 for a new file.
    pub line: usize,
    /// The text that the anchor matched.
    pub matched: String,
    /// What the metavariables stand for that are kept.
    #[serde(skip)]
    pub captures: BTreeMap<String, String>,
    /// Where the recipe says so.
    pub recipe: Place,
}

/// An anchor that was found: what is to be replaced there, and what the pattern captured.
#[derive(Debug, Clone)]
pub struct Anchor {
    /// The function it is in or beside.
    pub function: Option<Function>,
    /// The bytes that the edit replaces; empty for an insertion.
    pub range: Range<usize>,
    /// Offset whose line is reported.
    pub at: usize,
    /// The statements that the edit is about, also where it only puts something beside them.
    pub target: Range<usize>,
    /// What the metavariables stand for, in the file.
    pub ranges: Vec<Range<usize>>,
    /// The text that matched.
    pub matched: String,
    /// What the metavariables stand for, moved to the left margin, and `text`: the whole match.
    pub captures: BTreeMap<String, String>,
    /// How the new text is laid out there.
    layout: Layout,
    /// Where braces would go, if the statement has none around it.
    braces: Option<braces::Braces>,
    /// A declaration that is there in pieces, with something else in between.
    in_pieces: bool,
}

/// How new text sits at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Layout {
    /// In the place of statements: indented as they are, no newline at the end.
    Statements(String),
    /// Whole lines, indented like this.
    Lines(String),
    /// A definition of its own, with an empty line behind it.
    DefinitionBefore,
    /// A definition of its own, with an empty line in front of it.
    DefinitionAfter,
    /// In the place of a definition.
    Definition,
    /// Behind the last parameter, with this between the two.
    Parameter(String),
    /// Not at all: it is there already.
    Nothing,
    /// As it is.
    Plain,
}

impl Anchor {
    /// The name of the function that it is in or beside.
    #[must_use]
    pub fn function_name(&self) -> Option<&str> {
        self.function
            .as_ref()
            .and_then(|function| function.name.to_str().ok())
    }

    /// Turns the statements' own place into a place for whole lines at `offset`.
    fn become_lines(&mut self, offset: usize) {
        self.range = offset..offset;
        if let Layout::Statements(indentation) = &self.layout {
            self.layout = Layout::Lines(indentation.clone());
        }
    }

    /// Leaves the comments above the first statement where they are.
    pub fn leave_comments_above(&mut self) {
        if matches!(self.layout, Layout::Statements(_)) {
            self.range.start = self.at;
        }
    }

    /// The file with `rendered` in its place.
    fn put(&self, source: &Source, rendered: &str) -> Source {
        let empty = rendered.trim().is_empty();
        let new = if empty {
            String::new()
        } else {
            self.lay_out(rendered)
        };
        let replaces = matches!(self.layout, Layout::Statements(_));
        let braces = self.braces.as_ref();
        let braces = braces.filter(|it| it.are_needed(&new, replaces));
        let new = carry::unpack(&new);
        if let Some(braces) = braces {
            return braces.put(source, &self.range, &new);
        }
        let text = source.text();
        let end = line_end(text, self.range.end);
        if empty && text[self.range.end..end].trim_ascii().is_empty() {
            source.replace(self.lines(text), b"")
        } else {
            source.replace(self.range.clone(), &new)
        }
    }

    /// The lines of the anchor, with the empty line above them where what follows is empty or the end of a block:
    /// what has to go when nothing takes its place.
    fn lines(&self, text: &[u8]) -> Range<usize> {
        let mut start = line_start(text, self.range.start);
        let end = line_end(text, self.range.end);
        let next = text[end..].lines().next().unwrap_or_default().trim();
        if text[..start].ends_with(b"\n\n") && (next.is_empty() || next == b"}") {
            start -= 1;
        }
        start..end
    }

    /// `rendered` as it will stand in the file, bytes that are no text still packed.
    #[must_use]
    fn lay_out(&self, rendered: &str) -> String {
        self.layout.lay_out(rendered)
    }
}

impl Layout {
    fn lay_out(&self, rendered: &str) -> String {
        let rendered = rendered.strip_suffix('\n').unwrap_or(rendered);
        match self {
            Self::Statements(indentation) => indent(rendered, indentation),
            Self::Lines(indentation) => {
                let first = if rendered.starts_with('\n') {
                    ""
                } else {
                    indentation
                };
                format!("{first}{}\n", indent(rendered, indentation))
            }
            Self::Definition => format!("{rendered}\n"),
            Self::Parameter(between) => format!("{between}{}", rendered.trim()),
            Self::DefinitionBefore => format!("{rendered}\n\n"),
            Self::DefinitionAfter => format!("\n{rendered}\n"),
            Self::Nothing => String::new(),
            Self::Plain => rendered.to_owned(),
        }
    }
}

/// Makes a change and proves that nothing but `changes` changed, that nothing but `defines` was added, and that
/// the parser makes sense of both.
pub fn replace(
    source: &Source,
    anchor: &Anchor,
    rendered: &str,
    edit: &EditSpec,
    changes: Option<&str>,
    defines: &[String],
) -> Result<Source> {
    let empty = rendered.trim().is_empty();
    if anchor.layout == Layout::Nothing {
        return Ok(source.clone());
    }
    let new = if empty && anchor.range.is_empty() {
        source.clone()
    } else {
        anchor.put(source, rendered)
    };
    let proof = Proof {
        before: definitions(source),
        after: definitions(&new),
        source,
        new: &new,
        edit,
    };
    if leaves_comment_open(rendered) {
        return Err(proof.broken("writes a comment that has no end"));
    }
    proof.are_new(defines)?;
    proof.others_are_untouched(changes)?;
    proof.additions_are(defines)?;
    let added = defines.iter().map(String::as_str);
    for name in changes.into_iter().chain(added) {
        proof.parses(name)?;
    }
    Ok(new)
}

/// What an edit did to the definitions of a file.
struct Proof<'a> {
    source: &'a Source,
    new: &'a Source,
    before: Definitions<'a>,
    after: Definitions<'a>,
    edit: &'a EditSpec,
}

/// The texts of definitions, by name; a name can be defined more than once (under `#if`).
type Definitions<'a> = BTreeMap<&'a BStr, Vec<&'a BStr>>;

impl Proof<'_> {
    fn others_are_untouched(&self, changes: Option<&str>) -> Result<()> {
        let touched = self.before.iter().find(|(name, texts)| {
            self.after.get(*name) != Some(texts) && changes.is_none_or(|changes| **name != changes)
        });
        match touched {
            Some((name, _)) => Err(self.broken(&format!(
                "changes or breaks `{name}()`, which it does not name"
            ))),
            None => Ok(()),
        }
    }

    fn are_new(&self, defines: &[String]) -> Result<()> {
        let mut names = defines.iter();
        match names.find(|name| self.before.contains_key(name.as_bytes().as_bstr())) {
            Some(name) => Err(self.is_there_already(name)),
            None => Ok(()),
        }
    }

    fn additions_are(&self, defines: &[String]) -> Result<()> {
        let added = self.after.keys();
        let added = added.filter(|name| !self.before.contains_key(*name));
        let mut added: Vec<String> = added.map(ToString::to_string).collect();
        let mut wanted = defines.to_vec();
        added.sort();
        wanted.sort();
        if added == wanted {
            return Ok(());
        }
        let (added, wanted) = (added.join(", "), wanted.join(", "));
        Err(self.broken(&format!(
            "defines [{added}], but its `defines` says [{wanted}]"
        )))
    }

    /// A function that is there as it should be. One that the parser did not understand before need not be understood now.
    fn parses(&self, name: &str) -> Result<()> {
        let now = self.new.functions_named(name)?;
        let clean = now.iter().all(|function| function.clean) || {
            let before = self.source.functions_named(name)?;
            before.iter().any(|function| !function.clean)
        };
        if now.len() == 1 && clean {
            return Ok(());
        }
        Err(self.broken(&format!(
            "breaks `{name}()`: it does not parse as a function any more"
        )))
    }

    fn is_there_already(&self, name: &str) -> anyhow::Error {
        let EditSpec { place, file, .. } = self.edit;
        let found = self.source.layout().filter(|(known, _)| *known == name);
        let heads = found.flat_map(|(_, definition)| quote(self.source, file, &definition.head()));
        let heads = heads.collect();
        Refusal::drift(format!(
            "edit `{}` defines `{name}()`, which `{file}` has already",
            self.edit.name
        ))
        .details(heads)
        .hint(format!("choose another name for it at {place}"))
        .into()
    }

    fn broken(&self, what: &str) -> anyhow::Error {
        let EditSpec { place, name, .. } = self.edit;
        Refusal::usage(format!("{place}: edit `{name}` {what}"))
            .hint("mend its template, or `defines`")
            .into()
    }
}

/// Demands that every comment of the statements that an edit takes the place of is in what it `rendered`: the statements are
/// named by the recipe, but what the base says about them is not.
pub fn keeps_comments(
    source: &Source,
    anchor: &Anchor,
    rendered: &[String],
    edit: &EditSpec,
) -> Result<()> {
    let Some(function) = &anchor.function else {
        return Ok(());
    };
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let rendered = plain(&rendered.join("\n"));
    let comments = comments(function.block()?, &anchor.range);
    let texts: Vec<_> = comments
        .iter()
        .map(|range| plain(&carry::pack(source.slice(range.clone()))))
        .collect();
    let is_lost = |text: &String| {
        let there = texts.iter().filter(|other| *other == text).count();
        rendered.matches(text.as_str()).count() < there
    };
    let lost = comments.iter().zip(&texts).find(|(_, text)| is_lost(text));
    let Some((range, _)) = lost else {
        return Ok(());
    };
    let place = format!("{}:{}", edit.file, source.line(range.start));
    Err(Refusal::drift(format!(
        "edit `{}` would lose the comment at {place} in `{}()`",
        edit.name, function.name
    ))
    .details(quote(source, &edit.file, range))
    .hint(format!(
        "let a template of the edit show it (`match.text`, or a capture) at {}",
        edit.place
    ))
    .into())
}

/// The comments below a node that lie in a range.
fn comments(node: Node<'_>, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let bytes = node.byte_range();
        if node.kind() == "comment" && range.start <= bytes.start && bytes.end <= range.end {
            found.push(bytes);
        }
        let mut cursor = node.walk();
        open.extend(node.children(&mut cursor));
    }
    found.sort_by_key(|range| range.start);
    found
}

/// Whether a text has a comment that goes on behind it, over code that nobody named.
fn leaves_comment_open(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, comment)) = rest.split_once("/*") {
        let Some((_, behind)) = comment.split_once("*/") else {
            return true;
        };
        rest = behind;
    }
    false
}

/// Everything that is laid out like a definition.
fn definitions(source: &Source) -> Definitions<'_> {
    let mut found = Definitions::new();
    for (name, definition) in source.layout() {
        let text = source.slice(definition.start..definition.range.end);
        found.entry(name).or_default().push(text);
    }
    found
}

/// The anchor of a whole new file.
#[must_use]
pub fn whole_file() -> Anchor {
    Anchor {
        function: None,
        range: 0..0,
        at: 0,
        target: 0..0,
        ranges: Vec::new(),
        matched: String::new(),
        captures: BTreeMap::new(),
        layout: Layout::Plain,
        braces: None,
        in_pieces: false,
    }
}
