//! What a declaration declares: one entry a name, however the declaration is written.
//!
//! Hides the order of qualifiers and specifiers, which C leaves free, and how deep a name sits in its declarator.

use std::ops::Range;

use bstr::ByteSlice;
use tree_sitter::Node;

/// One name of a declaration.
#[derive(Debug, Clone)]
pub(crate) struct Declared<'a> {
    /// The name.
    pub(crate) name: String,
    /// The type, storage class and qualifiers, sorted.
    pub(crate) specifiers: Vec<String>,
    /// The tokens around the name: `*`, `[4]`. The name itself is empty.
    pub(crate) shape: Vec<String>,
    /// The declarator, with its value.
    pub(crate) node: Node<'a>,
    /// Where its value is, if it has one.
    pub(crate) value: Option<Range<usize>>,
}

impl Declared<'_> {
    /// Whether another name is declared with the same type.
    pub(crate) fn has_type_of(&self, other: &Declared<'_>) -> bool {
        self.specifiers == other.specifiers && self.shape == other.shape
    }
}

/// A declaration as one writes it.
pub(crate) fn shown(specifiers: &[String], shape: &[String], name: &str) -> String {
    let shape = shape
        .iter()
        .map(|token| if token.is_empty() { name } else { token });
    format!("{} {}", specifiers.join(" "), shape.collect::<String>())
}

/// What a `declaration` or `parameter_declaration` in a text declares, in order.
pub(crate) fn declared<'a>(text: &[u8], declaration: Node<'a>) -> Vec<Declared<'a>> {
    let specifiers = specifiers(text, declaration);
    let mut cursor = declaration.walk();
    let declarators = declaration.children_by_field_name("declarator", &mut cursor);
    let declared = declarators.filter_map(|node| {
        let declarator = match node.kind() {
            "init_declarator" => node.child_by_field_name("declarator")?,
            _ => node,
        };
        let name = super::source::declared_name(declarator)?;
        let shape = leaves(declarator).into_iter().map(|leaf| {
            if leaf == name {
                String::new()
            } else {
                text_of(text, leaf)
            }
        });
        let value = node.child_by_field_name("value");
        Some(Declared {
            name: text_of(text, name),
            specifiers: specifiers.clone(),
            shape: shape.collect(),
            node,
            value: value.map(|value| value.byte_range()),
        })
    });
    declared.collect()
}

/// The type, storage class and qualifiers of a declaration, or of a type in a cast: sorted, and `int` left out where another word
/// implies it.
pub(crate) fn specifiers(text: &[u8], node: Node<'_>) -> Vec<String> {
    let mut cursor = node.walk();
    let mut found = Vec::new();
    for child in leading(node, &mut cursor) {
        add_specifiers(text, child, &mut found);
    }
    let implies = |word: &String| matches!(word.as_str(), "unsigned" | "long" | "short");
    if found.iter().any(implies) {
        found.retain(|word| word != "int");
    }
    found.sort();
    found
}

/// The children of a declaration in front of its declarators, comments left out.
fn leading<'a>(node: Node<'a>, cursor: &mut tree_sitter::TreeCursor<'a>) -> Vec<Node<'a>> {
    let declarator = node.child_by_field_name("declarator");
    let is_specifier = |child: &Node<'_>| Some(*child) != declarator && child.kind() != ";";
    let children = node.children(cursor).take_while(is_specifier);
    children.filter(|child| child.kind() != "comment").collect()
}

/// How many of the children of a declaration are specifiers, comments left out.
pub(crate) fn specifier_count(node: Node<'_>) -> usize {
    leading(node, &mut node.walk()).len()
}

fn add_specifiers(text: &[u8], node: Node<'_>, found: &mut Vec<String>) {
    if node.kind() == "sized_type_specifier" || node.kind() == "type_qualifier" {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            add_specifiers(text, child, found);
        }
    } else if node.kind() != "comment" {
        let words = leaves(node).into_iter().map(|leaf| text_of(text, leaf));
        found.push(words.collect::<Vec<_>>().join(" "));
    }
}

/// The leaves below a node, comments left out.
fn leaves(node: Node<'_>) -> Vec<Node<'_>> {
    if node.child_count() == 0 {
        return vec![node];
    }
    let mut cursor = node.walk();
    let children = node.children(&mut cursor);
    let code = children.filter(|child| child.kind() != "comment");
    code.flat_map(leaves).collect()
}

fn text_of(text: &[u8], node: Node<'_>) -> String {
    text[node.byte_range()].to_str_lossy().into_owned()
}
