//! One version of a C file: its functions and their statements.
//!
//! Hides when what is parsed, and that an edit costs the parsing of what it changed only.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice, Finder};
use tree_sitter::{InputEdit, Node, Point, Tree};

use super::attributes::{is_word, name_in, without_calls};
use super::declared::{declared, shown};
use super::layout::{Definition, definitions, line_of};
use super::parse::parse;

/// One version of a C file: its bytes, and where its functions are.
///
/// Functions are found by their layout (a body closes in column 0), and each that is asked for is parsed by itself: what the parser cannot make sense of elsewhere in the file does not matter, and an edit costs the
/// parsing of what it changed.
#[derive(Debug, Clone)]
pub struct Source {
    file: Rc<Contents>,
}

#[derive(Debug)]
struct Contents {
    text: Vec<u8>,
    definitions: Vec<Definition>,
    /// Definitions that were parsed already, by where they start; `None` is one that is no function.
    parsed: RefCell<HashMap<usize, Option<Function>>>,
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
    /// Their types, as [`parameter`] writes them.
    pub parameter_types: Vec<String>,
    /// Where the parenthesis is that closes its parameters.
    pub parameters_end: usize,
    /// Between the braces of the body, braces excluded.
    pub body: Range<usize>,
    /// Whether the parser made sense of all of it.
    pub clean: bool,
    tree: Tree,
}

impl Function {
    /// The same function after an edit in front of it took `gone` bytes and put `new` ones there; `None` where
    /// the tree does not follow.
    fn moved(&self, gone: usize, new: usize) -> Option<Self> {
        let mut tree = self.tree.clone();
        let origin = Point::new(0, 0);
        tree.edit(&InputEdit {
            start_byte: 0,
            old_end_byte: gone,
            new_end_byte: new,
            start_position: origin,
            old_end_position: origin,
            new_end_position: origin,
        });
        let offset = |at: usize| at - gone + new;
        let range = |range: &Range<usize>| offset(range.start)..offset(range.end);
        let body = range(&self.body);
        only_function(&tree, &body)?;
        Some(Self {
            name: self.name.clone(),
            range: range(&self.range),
            start: offset(self.start),
            parameters: self.parameters.clone(),
            parameter_types: self.parameter_types.clone(),
            parameters_end: offset(self.parameters_end),
            clean: self.clean,
            body,
            tree,
        })
    }

    /// The node of all of it.
    pub(crate) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// The node of the body.
    pub fn block(&self) -> Result<Node<'_>> {
        block_in(&self.tree, &self.body).context("the body of a function is not where it was found")
    }
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
    /// Reads a file.
    #[must_use]
    pub fn new(text: Vec<u8>) -> Self {
        let definitions = definitions(&text);
        let parsed = RefCell::default();
        Self {
            file: Rc::new(Contents {
                text,
                definitions,
                parsed,
            }),
        }
    }

    /// The same file with `range` replaced by `new`. What was parsed and is not touched need not be parsed again.
    #[must_use]
    pub fn replace(&self, range: Range<usize>, new: &[u8]) -> Self {
        let text = &self.file.text;
        let replaced = Self::new([&text[..range.start], new, &text[range.end..]].concat());
        for function in self.file.parsed.borrow().values().flatten() {
            let kept = if function.range.end <= range.start {
                Some(function.clone())
            } else if function.range.start >= range.end {
                function.moved(range.len(), new.len())
            } else {
                None
            };
            if let Some(function) = kept.filter(|function| replaced.has(function)) {
                let mut parsed = replaced.file.parsed.borrow_mut();
                parsed.insert(function.start, Some(function));
            }
        }
        replaced
    }

    /// Whether a function of an earlier version is one of this one, at the same place.
    fn has(&self, function: &Function) -> bool {
        self.file.definitions.iter().any(|definition| {
            definition.range == function.range
                && definition.start == function.start
                && (definition.open + 1..definition.end - 1) == function.body
        })
    }

    /// The bytes.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.file.text
    }

    /// A range of the bytes.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> &BStr {
        self.file.text[range].as_bstr()
    }

    /// The line that an offset lies in, counted from 1.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        line_of(&self.file.text, offset)
    }

    /// Every function that is defined in the file, in order.
    pub fn functions(&self) -> Result<Vec<Function>> {
        let parsed = self
            .file
            .definitions
            .iter()
            .map(|definition| self.function(definition));
        Ok(parsed
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// The functions named `name`.
    pub fn functions_named(&self, name: &str) -> Result<Vec<Function>> {
        let mentions = Finder::new(name);
        let mut found = Vec::new();
        for definition in &self.file.definitions {
            if mentions.find(&self.file.text[definition.head()]).is_some() {
                found.extend(
                    self.function(definition)?
                        .filter(|function| function.name == name),
                );
            }
        }
        Ok(found)
    }

    /// The function named `name`, if there is one and no other.
    #[must_use]
    pub fn only_function(&self, name: &str) -> Option<Function> {
        let mut found = self.functions_named(name).ok()?;
        found.pop().filter(|_| found.is_empty())
    }

    /// What is laid out like a function, by the word in front of its parameters.
    pub fn layout(&self) -> impl Iterator<Item = (&BStr, &Definition)> {
        self.file.definitions.iter().map(|definition| {
            let header = &self.file.text[definition.head()];
            let before = header.split(|&byte| byte == b'(').next();
            let before = before.unwrap_or_default().trim_end();
            let start = before.iter().rposition(|&byte| !is_word(byte));
            let word = &before[start.map_or(0, |last| last + 1)..];
            // An attribute with arguments may stand in front of the name.
            let name = Some(word).filter(|word| !word.starts_with(b"__"));
            let name = name.or_else(|| name_in(header)).unwrap_or(word);
            (name.as_bstr(), definition)
        })
    }

    /// Parses one definition; `None` where the parser does not see one function there.
    fn function(&self, definition: &Definition) -> Result<Option<Function>> {
        if let Some(known) = self.file.parsed.borrow().get(&definition.start) {
            return Ok(known.clone());
        }
        let parsed = self.parse(definition)?;
        let mut known = self.file.parsed.borrow_mut();
        Ok(known.entry(definition.start).or_insert(parsed).clone())
    }

    fn parse(&self, definition: &Definition) -> Result<Option<Function>> {
        let mut text = without_calls(&self.file.text[definition.head()]);
        text.extend_from_slice(&self.file.text[definition.open..definition.end]);
        let tree = parse(&text, definition.start)?;
        let body = definition.open + 1..definition.end - 1;
        let Some(declarator) = only_function(&tree, &body) else {
            return Ok(None);
        };
        let name = declarator.child_by_field_name("declarator");
        let parameters = parameters(self.text(), declarator).into_iter();
        let (parameters, parameter_types) = parameters.unzip();
        let list = declarator.child_by_field_name("parameters");
        Ok(name.map(|name| Function {
            name: self.file.text[name.byte_range()].into(),
            range: definition.range.clone(),
            start: definition.start,
            parameters,
            parameter_types,
            parameters_end: list.map_or(declarator.end_byte(), |list| list.end_byte() - 1),
            clean: !tree.root_node().has_error(),
            body,
            tree: tree.clone(),
        }))
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
                        && !self.file.text[last.range.end..node.start_byte()].contains(&b'\n')
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
        self.file.text[between]
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

/// The declarator of the function that a tree consists of, if its body is where the layout says.
fn only_function<'a>(tree: &'a Tree, body: &Range<usize>) -> Option<Node<'a>> {
    let root = tree.root_node();
    let mut cursor = root.walk();
    let mut found = root
        .named_children(&mut cursor)
        .filter(|node| node.kind() == "function_definition");
    let (node, other) = (found.next()?, found.next());
    let is_body = node.child_by_field_name("body") == block_in(tree, body);
    let declarator = function_declarator(node.child_by_field_name("declarator")?);
    declarator.filter(|_| is_body && other.is_none())
}

/// The compound statement whose inside is `body`.
fn block_in<'a>(tree: &'a Tree, body: &Range<usize>) -> Option<Node<'a>> {
    let root = tree.root_node();
    let found = root.descendant_for_byte_range(body.start.saturating_sub(1), body.end + 1);
    found.filter(|node| node.kind() == "compound_statement")
}

/// Goes through pointers to the declarator that has the parameters.
fn function_declarator(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "function_declarator" => Some(node),
        _ => function_declarator(node.child_by_field_name("declarator")?),
    }
}

/// The names and types of the parameters that a declarator has.
fn parameters(text: &[u8], declarator: Node<'_>) -> Vec<(BString, String)> {
    let Some(list) = declarator.child_by_field_name("parameters") else {
        return Vec::new();
    };
    let mut cursor = list.walk();
    let parameters = list
        .children(&mut cursor)
        .filter(|node| node.kind() == "parameter_declaration");
    let named = parameters.flat_map(|node| declared(text, node));
    named
        .map(|it| {
            (
                it.name.as_str().into(),
                shown(&it.specifiers, &it.shape, ""),
            )
        })
        .collect()
}

/// The name and the type of a parameter that is written as C; `None` where it is none.
#[must_use]
pub fn parameter(written: &str) -> Option<(String, String)> {
    let source = Source::new(format!("void f({written})\n{{\n}}\n").into_bytes());
    let functions = source.functions().ok()?;
    let [function] = functions.as_slice() else {
        return None;
    };
    let mut parameters = function.parameters.iter().zip(&function.parameter_types);
    let (name, kind) = parameters.next()?;
    (function.clean && parameters.next().is_none()).then(|| (name.to_string(), kind.clone()))
}

/// The identifier in the middle of a declarator (`*page`, `(*fn)(int)`, `name[4]`).
pub(super) fn declared_name(node: Node<'_>) -> Option<Node<'_>> {
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

    fn functions(text: &[u8]) -> (Source, Vec<Function>) {
        let source = Source::new(text.to_vec());
        let functions = source.functions().unwrap();
        (source, functions)
    }

    #[test]
    fn functions_are_found_with_their_attributes_parameters_and_comments() {
        let (source, functions) = functions(FILE);
        let names: Vec<_> = functions
            .iter()
            .map(|function| function.name.to_string())
            .collect();
        assert_eq!(names, ["first", "second", "second"]);
        assert_eq!(functions[0].parameters, ["page", "pfn"]);
        assert!(functions[1].parameters.is_empty());
        assert!(functions.iter().all(|function| function.clean));
        let text = |range: &Range<usize>| source.slice(range.clone());
        assert!(text(&functions[0].range).starts_with(b"/* What it does. */\nstatic bool"));
        assert!(text(&functions[0].range).ends_with(b"two(pfn);\n}\n"));
        assert!(
            source
                .slice(functions[1].start..functions[1].body.start)
                .starts_with(b"void __meminit second")
        );
        assert_eq!(source.line(functions[1].start), 18);
        let layout: Vec<_> = source.layout().map(|(name, _)| name.to_string()).collect();
        assert_eq!(layout, names);
    }

    #[test]
    fn a_statement_has_the_comments_above_and_behind_it() {
        let (source, functions) = functions(FILE);
        let block = functions[0].block().unwrap();
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
    fn what_only_looks_like_a_function_is_none() {
        for text in [
            "struct a b[] =\n{\n\t{ 1 },\n};\n",
            "/*\nint f(void)\n{\n}\n*/\n",
            "#define f(x) \\\ndo {\t\\\n} while (0)\n",
            "#ifdef A\nint f(int a)\n#else\nint f(void)\n#endif\n{\n}\n",
            "int f(void);\n{\n}\n",
        ] {
            assert!(functions(text.as_bytes()).1.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_body_that_never_ends_is_no_function() {
        assert!(functions(b"int f(void)\n{\n\treturn 0;\n").1.is_empty());
        assert!(functions(b"int f(void)\n{").1.is_empty());
        assert!(functions(b"").1.is_empty());
    }

    #[test]
    fn a_replacement_is_read_as_if_from_nothing() {
        let source = Source::new(FILE.to_vec());
        let at = source.text().find("one(page);").unwrap();
        let edited = source.replace(at..at + 10, b"three(page, pfn);\n\tfour();");
        assert_eq!(
            edited.file.definitions,
            Source::new(edited.text().to_vec()).file.definitions
        );
    }

    #[test]
    fn what_was_parsed_moves_with_the_text_in_front_of_it() {
        let source = Source::new(FILE.to_vec());
        source.functions().unwrap();
        for (range, new) in [
            (0..0, "/* more */\n"),
            (0..20, ""),
            (0..20, "x\n"),
            (0..5, "a\n\n\nb\n"),
        ] {
            let edited = source.replace(range, new.as_bytes());
            assert_eq!(
                edited.file.parsed.borrow().len(),
                3,
                "all were kept: {new:?}"
            );
            let fresh = Source::new(edited.text().to_vec());
            for (kept, parsed) in edited
                .functions()
                .unwrap()
                .iter()
                .zip(fresh.functions().unwrap())
            {
                assert_eq!(kept.name, parsed.name);
                let nodes = |function: &Function| {
                    let block = function.block().unwrap();
                    let mut ranges = Vec::new();
                    let mut open = vec![block];
                    while let Some(node) = open.pop() {
                        ranges.push((node.kind().to_owned(), node.byte_range()));
                        let mut cursor = node.walk();
                        open.extend(node.children(&mut cursor));
                    }
                    ranges
                };
                assert_eq!(nodes(kept), nodes(&parsed));
            }
        }
    }
}
