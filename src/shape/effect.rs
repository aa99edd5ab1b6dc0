//! What a piece of code does: which functions it calls, which names it mentions, what it changes, and what it keeps.
//!
//! Hides syntax trees. Where a piece could mean two things, it is taken to do more rather than less.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tree_sitter::Node;

use crate::syntax::Source;

/// Why the code in a range below a node cannot run once for many things that differ in `varying`, and where: it depends on what varies, it
/// changes what it does not just set, or it keeps what it writes to, which would then be kept in all of the many.
pub(super) fn variation(
    source: &Source,
    node: Node<'_>,
    range: &Range<usize>,
    varying: &[String],
) -> Option<(String, usize)> {
    if let Some(offset) = side_effect(node, range) {
        return Some(("changes something".to_owned(), offset));
    }
    let mentioned = identifiers(source, node, range).into_iter();
    let mut varying = mentioned.filter(|(name, _)| varying.contains(name));
    if let Some((name, offset)) = varying.next() {
        return Some((format!("depends on `{name}`"), offset));
    }
    let (name, offset) = Stores::of(source, node, range).kept()?;
    Some((format!("keeps `{name}` in what it writes"), offset))
}

/// What code writes to, and what it writes there.
struct Stores<'s, 't> {
    source: &'s Source,
    /// Names of what is written to: through them, or by a function that gets them.
    written: BTreeSet<String>,
    /// What is written, and what functions get besides names.
    values: Vec<Node<'t>>,
    /// Variables of the code itself, and the names that their values are made of.
    locals: BTreeMap<String, BTreeSet<String>>,
}

impl<'s, 't> Stores<'s, 't> {
    fn of(source: &'s Source, node: Node<'t>, range: &Range<usize>) -> Self {
        let mut stores = Self {
            source,
            written: BTreeSet::new(),
            values: Vec::new(),
            locals: BTreeMap::new(),
        };
        walk(node, &mut |node| {
            if lies_in(node, range) {
                stores.learn(node);
            }
        });
        stores
    }

    fn learn(&mut self, node: Node<'t>) {
        let field = |name| node.child_by_field_name(name);
        match (node.kind(), field("declarator"), field("value")) {
            ("declaration", Some(declarator), _) => self.declare(declarator, None),
            ("init_declarator", Some(declarator), value) => self.declare(declarator, value),
            _ => {}
        }
        match (node.kind(), field("left"), field("right")) {
            ("assignment_expression", Some(left), Some(right)) => self.assign(left, right),
            ("call_expression", ..) => self.call(field("arguments")),
            _ => {}
        }
    }

    fn declare(&mut self, declarator: Node<'t>, value: Option<Node<'t>>) {
        let mut declared = self.names(declarator).into_iter();
        if let Some((name, _)) = declared.next() {
            let made_of = value.map(|value| self.names(value)).unwrap_or_default();
            let made_of = made_of.into_iter().map(|(name, _)| name);
            self.locals.entry(name).or_default().extend(made_of);
        }
    }

    fn assign(&mut self, left: Node<'t>, right: Node<'t>) {
        let is_local = left.kind() == "identifier" && self.locals.contains_key(self.text(left));
        if is_local {
            self.declare(left, Some(right));
            return;
        }
        let mut root = left;
        while let Some(inner) = root.child_by_field_name("argument") {
            root = inner;
        }
        let roots = self.names(root).into_iter().map(|(name, _)| name);
        self.written.extend(roots);
        self.values.push(right);
    }

    fn call(&mut self, arguments: Option<Node<'t>>) {
        let Some(arguments) = arguments else { return };
        let mut cursor = arguments.walk();
        for argument in arguments.named_children(&mut cursor) {
            if argument.kind() == "identifier" {
                self.written.insert(self.text(argument).to_owned());
            } else {
                self.values.push(argument);
            }
        }
    }

    /// The first name in a value that stands for something that is written to.
    fn kept(&self) -> Option<(String, usize)> {
        let written = self.made_of(self.written.iter().cloned().collect());
        let names = self.values.iter().flat_map(|value| self.names(*value));
        names.into_iter().find(|(name, _)| {
            let made_of = self.made_of(vec![name.clone()]);
            !made_of.is_disjoint(&written)
        })
    }

    /// Names, with those that the values of variables among them are made of.
    fn made_of(&self, mut open: Vec<String>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        while let Some(name) = open.pop() {
            if found.insert(name.clone()) {
                open.extend(self.locals.get(&name).into_iter().flatten().cloned());
            }
        }
        found
    }

    /// The identifiers in a node but for the functions that it calls, and where.
    fn names(&self, node: Node<'_>) -> Vec<(String, usize)> {
        let mut names = Vec::new();
        walk(node, &mut |node| {
            let called = node
                .parent()
                .and_then(|parent| parent.child_by_field_name("function"));
            if node.kind() == "identifier" && called != Some(node) {
                names.push((self.text(node).to_owned(), node.start_byte()));
            }
        });
        names
    }

    fn text(&self, node: Node<'_>) -> &'s str {
        std::str::from_utf8(self.source.slice(node.byte_range())).unwrap_or_default()
    }
}

/// The functions (and macros) that are called below a node, and where.
pub(super) fn called(source: &Source, node: Node<'_>) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    walk(node, &mut |node| {
        if let Some(function) = node
            .child_by_field_name("function")
            .filter(|_| node.kind() == "call_expression")
        {
            let name = source.slice(function.byte_range()).to_string();
            names.push((name, node.start_byte()));
        }
    });
    names
}

/// The identifiers below a node that lie in a range, and where.
pub(super) fn identifiers(
    source: &Source,
    node: Node<'_>,
    range: &Range<usize>,
) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    walk(node, &mut |node| {
        if node.kind() == "identifier" && lies_in(node, range) {
            let name = source.slice(node.byte_range()).to_string();
            names.push((name, node.start_byte()));
        }
    });
    names
}

/// Where something in a range below a node changes what it does not just set: `++`, `+=`, an assignment within an expression.
fn side_effect(node: Node<'_>, range: &Range<usize>) -> Option<usize> {
    let mut found = None;
    walk(node, &mut |node| {
        let sets = node.kind() == "assignment_expression"
            && node
                .child_by_field_name("operator")
                .is_some_and(|operator| operator.kind() == "=")
            && node
                .parent()
                .is_some_and(|parent| parent.kind() == "expression_statement");
        let changes = matches!(node.kind(), "assignment_expression" | "update_expression");
        if changes && !sets && lies_in(node, range) {
            found = found.or(Some(node.start_byte()));
        }
    });
    found
}

fn lies_in(node: Node<'_>, range: &Range<usize>) -> bool {
    range.start <= node.start_byte() && node.end_byte() <= range.end
}

fn walk<'a>(node: Node<'a>, visit: &mut impl FnMut(Node<'a>)) {
    visit(node);
    let mut cursor = node.walk();
    for child in node.children(&mut cursor).collect::<Vec<_>>() {
        walk(child, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(body: &str) -> Option<String> {
        let file = format!("void f(struct lamp *lamp)\n{{\n{body}\n}}\n");
        let source = Source::new(file.into_bytes());
        let function = &source.functions().expect("functions")[0];
        let block = function.block().expect("a body");
        let varying = ["i".to_owned()];
        variation(&source, block, &block.byte_range(), &varying).map(|(why, _)| why)
    }

    #[test]
    fn what_runs_once_for_many_sets_what_is_the_same_for_all() {
        for body in [
            "lamp->on = true;",
            "lamp->level = bus->level; lamp->bus = bus;",
            "switch (bus->kind) { case A: set(lamp, 1); break; default: lamp->a[0] = B; }",
            "int level = bus->level; lamp->level = level;",
            "if (lamp->on) lamp->level = 0;",
        ] {
            assert_eq!(why(body), None, "{body}");
        }
    }

    #[test]
    fn what_differs_changes_or_keeps_itself_is_told() {
        for (body, expected) in [
            ("lamp->on = i & 1;", "depends on `i`"),
            ("lamp->count++;", "changes something"),
            ("lamp->count |= 1;", "changes something"),
            (
                "lamp->next = &lamp->list;",
                "keeps `lamp` in what it writes",
            ),
            (
                "lamp->self = (void *)lamp;",
                "keeps `lamp` in what it writes",
            ),
            ("set(lamp, (long)lamp);", "keeps `lamp` in what it writes"),
            (
                "of(lamp)->self = of(lamp);",
                "keeps `lamp` in what it writes",
            ),
            (
                "set(lamp, 1); last = lamp;",
                "keeps `lamp` in what it writes",
            ),
            (
                "struct lamp *it = lamp; it->self = lamp;",
                "keeps `lamp` in what it writes",
            ),
            (
                "struct lamp *it; it = lamp; lamp->self = it;",
                "keeps `it` in what it writes",
            ),
        ] {
            assert_eq!(why(body).as_deref(), Some(expected), "{body}");
        }
    }
}
