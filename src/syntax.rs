//! C source together with its syntax tree: finds functions, their parts and their statements.
//!
//! Hides tree-sitter: attribute macros that its grammar does not know are blanked before it parses,
//! at the same length, so that every offset holds in the real text.

use std::cell::RefCell;
use std::ops::Range;

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice};
use tree_sitter::{InputEdit, Node, Parser, Point, Tree};

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

thread_local! {
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// One version of a C file: its bytes and its tree.
#[derive(Clone)]
pub struct Source {
    text: Vec<u8>,
    tree: Tree,
}

/// A function definition in a [`Source`]. Ranges are byte offsets.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name.
    pub name: BString,
    /// From the comment above it to the end of the line that closes it.
    pub range: Range<usize>,
    /// Where its definition starts, comment excluded.
    pub start: usize,
    /// The names of its parameters, in order; empty for `(void)`.
    pub parameters: Vec<BString>,
    /// Between the braces of the body, braces excluded.
    pub body: Range<usize>,
}

/// Nodes of the statements of one block, in order, each with the place where its comments start.
pub struct Statement<'a> {
    /// The statement.
    pub node: Node<'a>,
    /// From the first comment above it (same indentation, no blank line between) to its end, a comment behind
    /// it on the same line included.
    pub range: Range<usize>,
}

impl Source {
    /// Parses a file from nothing.
    pub fn parse(text: Vec<u8>) -> Result<Self> {
        let tree = parse(&text, None)?;
        Ok(Self { text, tree })
    }

    /// The same file with `range` replaced by `new`, parsed again where that can have changed anything.
    pub fn replace(&self, range: Range<usize>, new: &[u8]) -> Result<Self> {
        let mut text = Vec::with_capacity(self.text.len() + new.len());
        text.extend_from_slice(&self.text[..range.start]);
        text.extend_from_slice(new);
        text.extend_from_slice(&self.text[range.end..]);
        let mut old = self.tree.clone();
        let new_end = range.start + new.len();
        old.edit(&InputEdit {
            start_byte: range.start,
            old_end_byte: range.end,
            new_end_byte: new_end,
            start_position: point(&self.text, range.start),
            old_end_position: point(&self.text, range.end),
            new_end_position: point(&text, new_end),
        });
        let tree = parse(&text, Some(&old))?;
        Ok(Self { text, tree })
    }

    /// The bytes.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// A range of the bytes.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> &BStr {
        self.text[range].as_bstr()
    }

    /// The line that an offset lies in, counted from 1.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        line_of(&self.text, offset)
    }

    /// The tree's root.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// Every function that is defined in the file, in order.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        collect_functions(self, self.root(), &mut found);
        found
    }

    /// The functions named `name`.
    #[must_use]
    pub fn functions_named(&self, name: &str) -> Vec<Function> {
        let mut found = self.functions();
        found.retain(|function| function.name == name);
        found
    }

    /// The node of the block that `body` (see [`Function::body`]) is the inside of.
    pub fn block(&self, body: &Range<usize>) -> Result<Node<'_>> {
        self.root()
            .descendant_for_byte_range(body.start.saturating_sub(1), body.end + 1)
            .filter(|node| node.kind() == "compound_statement")
            .context("the body of a function is not where it was found")
    }

    /// The statements among the children of a block, in order.
    #[must_use]
    pub fn statements<'a>(&'a self, nodes: &[Node<'a>]) -> Vec<Statement<'a>> {
        let mut statements: Vec<Statement<'a>> = Vec::new();
        let mut comments: Option<usize> = None;
        let mut last_comment_end = 0;
        for &node in nodes {
            if node.kind() == "comment" {
                let same_line = statements.last_mut().filter(|last| {
                    comments.is_none()
                        && !self.text[last.range.end..node.start_byte()].contains(&b'\n')
                });
                if let Some(last) = same_line {
                    last.range.end = node.end_byte();
                } else {
                    let joined =
                        comments.is_some() && !self.blank_line(last_comment_end..node.start_byte());
                    comments = if joined {
                        comments
                    } else {
                        Some(node.start_byte())
                    };
                    last_comment_end = node.end_byte();
                }
            } else if node.is_named() {
                let attached = comments
                    .take()
                    .filter(|_| !self.blank_line(last_comment_end..node.start_byte()));
                statements.push(Statement {
                    node,
                    range: attached.unwrap_or(node.start_byte())..node.end_byte(),
                });
            }
        }
        statements
    }

    /// Whether a range between two nodes holds an empty line.
    fn blank_line(&self, between: Range<usize>) -> bool {
        self.text[between]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count()
            > 1
    }
}

/// The statements in a block node: its children but the braces.
#[must_use]
pub fn block_children(block: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = block.walk();
    block.children(&mut cursor).filter(Node::is_named).collect()
}

/// The line that an offset lies in, counted from 1.
#[must_use]
pub fn line_of(text: &[u8], offset: usize) -> usize {
    text[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// The offset of the start of the line that `offset` lies in.
#[must_use]
pub fn line_start(text: &[u8], offset: usize) -> usize {
    text[..offset]
        .rfind_byte(b'\n')
        .map_or(0, |newline| newline + 1)
}

/// The offset behind the newline that ends the line `offset` lies in.
#[must_use]
pub fn line_end(text: &[u8], offset: usize) -> usize {
    text[offset..]
        .find_byte(b'\n')
        .map_or(text.len(), |newline| offset + newline + 1)
}

fn parse(text: &[u8], old: Option<&Tree>) -> Result<Tree> {
    let blanked = blank_attributes(text);
    PARSER.with_borrow_mut(|parser| {
        if parser.is_none() {
            let mut new = Parser::new();
            new.set_language(&tree_sitter_c::LANGUAGE.into())
                .context("the C grammar does not fit tree-sitter")?;
            *parser = Some(new);
        }
        let parser = parser.as_mut().context("no parser")?;
        parser.parse(&blanked, old).context("tree-sitter gave up")
    })
}

/// The text with each attribute macro overwritten by blanks.
fn blank_attributes(text: &[u8]) -> Vec<u8> {
    let mut blanked = text.to_vec();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
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
        if matches!(word[0], b'_' | b'a' | b'n')
            && ATTRIBUTES
                .binary_search_by(|known| known.as_bytes().cmp(word))
                .is_ok()
        {
            blanked[start..end].fill(b' ');
        }
        at = end;
    }
    blanked
}

fn point(text: &[u8], offset: usize) -> Point {
    Point {
        row: line_of(text, offset) - 1,
        column: offset - line_start(text, offset),
    }
}

/// Looks for definitions everywhere but inside functions: below `#if`s, and below what the parser could not make sense of.
fn collect_functions(source: &Source, node: Node<'_>, found: &mut Vec<Function>) {
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        match child.kind() {
            "function_definition" => found.extend(function(source, child)),
            "translation_unit" | "ERROR" | "linkage_specification" | "declaration_list" => {
                collect_functions(source, child, found);
            }
            kind if kind.starts_with("preproc_") => collect_functions(source, child, found),
            _ => {}
        }
    }
}

/// A definition as data; `None` where the tree's idea of it does not agree with the kernel's layout: the body's
/// braces stand in column 0.
fn function(source: &Source, node: Node<'_>) -> Option<Function> {
    let text = &source.text;
    let block = node
        .child_by_field_name("body")
        .filter(|block| block.kind() == "compound_statement")?;
    let body = block.start_byte() + 1..block.end_byte() - 1;
    let in_column_0 = |offset: usize| offset == 0 || text[offset - 1] == b'\n';
    let one_line = !text[block.byte_range()].contains(&b'\n');
    let braces_in_column_0 = in_column_0(block.start_byte()) && in_column_0(body.end);
    if !one_line && !braces_in_column_0 {
        return None;
    }
    let declarator = function_declarator(node.child_by_field_name("declarator")?)?;
    let name = declarator.child_by_field_name("declarator")?;
    let start = line_start(text, node.start_byte());
    let blanked_before = text[start..node.start_byte()].to_vec();
    let start = if blanked_before.trim().is_empty() {
        node.start_byte()
    } else {
        start
    };
    Some(Function {
        name: text[name.byte_range()].into(),
        range: comment_start(source, node, start)..line_end(text, body.end),
        start,
        parameters: parameters(source, declarator),
        body,
    })
}

/// Where the comment that ends on the line above `start` begins; `start` where there is none.
fn comment_start(source: &Source, node: Node<'_>, start: usize) -> usize {
    let comment = node
        .prev_sibling()
        .filter(|sibling| sibling.kind() == "comment");
    let attached = comment.filter(|comment| {
        !source.blank_line(comment.end_byte()..start)
            && source.text[..comment.start_byte()]
                .last()
                .is_none_or(|&byte| byte == b'\n')
    });
    attached.map_or(start, |comment| comment.start_byte())
}

/// Goes through pointers to the declarator that has the parameters.
fn function_declarator(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "function_declarator" => Some(node),
        _ => function_declarator(node.child_by_field_name("declarator")?),
    }
}

fn parameters(source: &Source, declarator: Node<'_>) -> Vec<BString> {
    let Some(list) = declarator.child_by_field_name("parameters") else {
        return Vec::new();
    };
    let mut cursor = list.walk();
    let declared = list
        .children(&mut cursor)
        .filter(|node| node.kind() == "parameter_declaration");
    declared
        .filter_map(|node| declared_name(node.child_by_field_name("declarator")?))
        .map(|node| source.text[node.byte_range()].into())
        .collect()
}

/// The identifier in the middle of a declarator (`*page`, `(*fn)(int)`, `name[4]`).
fn declared_name(node: Node<'_>) -> Option<Node<'_>> {
    if node.kind() == "identifier" {
        return Some(node);
    }
    let mut cursor = node.walk();
    let inner = node
        .child_by_field_name("declarator")
        .or_else(|| node.named_children(&mut cursor).next())?;
    declared_name(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"#include <linux/a.h>\n\n/* What it does. */\nstatic bool __init_memblock first(struct page *page,\n\t\t\t\t  unsigned long pfn)\n{\n\tint a;\n\n\t/* about one */\n\tone(page); /* behind */\n\n\t/* two lines\n\t * about two */\n\ttwo(pfn);\n}\n\n#ifdef CONFIG_X\nvoid __meminit second(void)\n{\n\tif (x) {\n\t\ty();\n\t}\n}\n#else\nstatic inline void second(void) {}\n#endif\n";

    #[test]
    fn the_attribute_list_is_sorted() {
        assert!(ATTRIBUTES.is_sorted());
    }

    #[test]
    fn functions_are_found_with_their_attributes_parameters_and_comments() {
        let source = Source::parse(FILE.to_vec()).unwrap();
        let functions = source.functions();
        let names: Vec<_> = functions
            .iter()
            .map(|function| function.name.to_string())
            .collect();
        assert_eq!(names, ["first", "second", "second"]);
        assert_eq!(functions[0].parameters, ["page", "pfn"]);
        assert!(functions[1].parameters.is_empty());
        assert!(
            source
                .slice(functions[0].range.clone())
                .starts_with(b"/* What it does. */\nstatic bool")
        );
        assert!(
            source
                .slice(functions[0].range.clone())
                .ends_with(b"two(pfn);\n}\n")
        );
        assert!(
            source
                .slice(functions[1].start..functions[1].body.start)
                .starts_with(b"void __meminit second")
        );
        assert_eq!(source.line(functions[1].start), 18);
    }

    #[test]
    fn a_statement_has_the_comments_above_and_behind_it() {
        let source = Source::parse(FILE.to_vec()).unwrap();
        let function = &source.functions()[0];
        let block = source.block(&function.body).unwrap();
        let statements = source.statements(&block_children(block));
        let texts: Vec<_> = statements
            .iter()
            .map(|statement| source.slice(statement.range.clone()).to_string())
            .collect();
        assert_eq!(texts[0], "int a;");
        assert_eq!(texts[1], "/* about one */\n\tone(page); /* behind */");
        assert_eq!(texts[2], "/* two lines\n\t * about two */\n\ttwo(pfn);");
    }

    #[test]
    fn a_replacement_parses_as_if_from_nothing() {
        let source = Source::parse(FILE.to_vec()).unwrap();
        let at = source.text().find("one(page);").unwrap();
        let edited = source
            .replace(at..at + 10, b"three(page, pfn);\n\tfour();")
            .unwrap();
        let fresh = Source::parse(edited.text().to_vec()).unwrap();
        assert_eq!(edited.root().to_sexp(), fresh.root().to_sexp());
    }
}
