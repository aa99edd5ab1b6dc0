//! One attempt to match a pattern: token by token, but for what C lets one write in two ways.
//!
//! Hides those ways: parentheses and braces around a single thing, `++x` for `x++` where nobody looks at the value, the order of the words of a
//! type and of the names of a declaration, and a name that is declared in the `for` that the pattern only sets it in.

use std::ops::Range;

use bstr::ByteSlice;
use tree_sitter::Node;

use super::{Captures, Meta, meta};
use crate::syntax::{Declared, Source, declared, shown, specifier_count, specifiers};

/// One attempt to match.
pub(super) struct Matcher<'a> {
    pub(super) pattern: &'a Source,
    pub(super) file: &'a Source,
    pub(super) captures: Captures,
    /// What a `for` of the file declares where the pattern's only sets it.
    pub(super) in_for: Vec<InFor>,
}

/// A name that a `for` declares.
#[derive(Debug, Clone)]
pub(crate) struct InFor {
    /// The name.
    pub(crate) name: String,
    /// The words of its type, sorted.
    pub(crate) specifiers: Vec<String>,
    /// The tokens around the name.
    pub(crate) shape: Vec<String>,
    /// Where it is declared.
    pub(crate) at: usize,
}

impl InFor {
    /// Whether it has the type that another declaration gives a name.
    pub(crate) fn has_type_of(&self, other: &Declared<'_>) -> bool {
        self.specifiers == other.specifiers && self.shape == other.shape
    }

    /// The declaration as one writes it.
    pub(crate) fn shown(&self) -> String {
        shown(&self.specifiers, &self.shape, &self.name)
    }
}

impl<'a> Matcher<'a> {
    pub(super) fn new(pattern: &'a Source, file: &'a Source) -> Self {
        Self {
            pattern,
            file,
            captures: Captures::new(),
            in_for: Vec::new(),
        }
    }

    /// Matches neighbours with neighbours; `$$$` takes as few as it can.
    pub(super) fn sequence(&mut self, wanted: &[Node<'_>], given: &[Node<'_>]) -> bool {
        let Some((&first, rest)) = wanted.split_first() else {
            return given.is_empty();
        };
        if let Some(Meta::Many(name)) = meta(self.pattern, first) {
            return (0..=given.len()).any(|count| {
                let range = span(&given[..count]);
                self.attempt(|it| it.keep(name, range) && it.sequence(rest, &given[count..]))
            });
        }
        given
            .split_first()
            .is_some_and(|(&node, others)| self.node(first, node) && self.sequence(rest, others))
    }

    /// Tries something; where it fails nothing is kept of it.
    fn attempt(&mut self, try_it: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = (self.captures.clone(), self.in_for.len());
        let matched = try_it(self);
        if !matched {
            self.captures = before.0;
            self.in_for.truncate(before.1);
        }
        matched
    }

    pub(super) fn node(&mut self, wanted: Node<'_>, given: Node<'_>) -> bool {
        if let Some(Meta::One(name)) = meta(self.pattern, wanted) {
            let fits = wanted.kind() == "identifier" || wanted.kind() == given.kind();
            return fits && self.keep(name, given.byte_range());
        }
        if wanted.kind_id() != given.kind_id() {
            return match (in_parentheses(wanted), in_parentheses(given)) {
                (Some(wanted), _) => self.node(wanted, given),
                (None, Some(given)) => self.node(wanted, given),
                (None, None) => self.in_braces(wanted, given),
            };
        }
        if !may_be_written_otherwise(wanted) {
            return self.alike(wanted, given);
        }
        self.attempt(|it| it.alike(wanted, given))
            || self.attempt(|it| it.another_way(wanted, given))
    }

    /// Token by token.
    fn alike(&mut self, wanted: Node<'_>, given: Node<'_>) -> bool {
        let (inner, outer) = (meaningful(wanted), meaningful(given));
        if inner.is_empty() || outer.is_empty() {
            let same =
                self.pattern.text()[wanted.byte_range()] == self.file.text()[given.byte_range()];
            return inner.is_empty() && outer.is_empty() && same;
        }
        self.sequence(&inner, &outer)
    }

    /// What means the same, written in another way.
    fn another_way(&mut self, wanted: Node<'_>, given: Node<'_>) -> bool {
        match wanted.kind() {
            "declaration" | "parameter_declaration" | "type_descriptor" => {
                self.declaration(wanted, given)
            }
            "update_expression" => self.update(wanted, given),
            "for_statement" => self.declared_in_for(wanted, given),
            _ => false,
        }
    }

    /// `++x` for `x++`, where nobody looks at the value.
    fn update(&mut self, wanted: Node<'_>, given: Node<'_>) -> bool {
        let [wanted, given] = [wanted, given].map(|node| {
            let operator = node.child_by_field_name("operator")?.kind();
            let argument = node.child_by_field_name("argument")?;
            (!is_used(node)).then_some((operator, argument))
        });
        let both = wanted.zip(given);
        both.is_some_and(|(wanted, given)| wanted.0 == given.0 && self.node(wanted.1, given.1))
    }

    /// The body of a statement with braces around it, and without.
    fn in_braces(&mut self, wanted: Node<'_>, given: Node<'_>) -> bool {
        if !is_body(wanted) || !is_body(given) {
            return false;
        }
        match (inside(wanted), inside(given)) {
            (Some(wanted), None) => self.sequence(&wanted, &[given]),
            (None, Some(given)) => given.len() == 1 && self.node(wanted, given[0]),
            _ => false,
        }
    }

    /// The same specifiers in another order, and the same names in another order.
    fn declaration(&mut self, wanted: Node<'_>, given: Node<'_>) -> bool {
        let words = specifiers(self.pattern.text(), wanted);
        let has_meta = words.iter().any(|word| word.contains('$'));
        let mut own = specifiers(self.file.text(), given);
        if wanted.kind() == "declaration" && !words.iter().any(|word| word == "const") {
            // A variable that may not change is one still; what a pointer points to is another matter.
            let all = declared(self.file.text(), given);
            if !all.iter().any(|it| it.shape.iter().any(|part| part == "*")) {
                own.retain(|word| word != "const");
            }
        }
        if has_meta || words != own {
            return false;
        }
        let rest = |node| meaningful(node).split_off(specifier_count(node));
        if self.attempt(|it| it.sequence(&rest(wanted), &rest(given))) {
            return true;
        }
        let all = declared(self.pattern.text(), wanted).len();
        let names = self.names(wanted, given);
        wanted.kind() == "declaration" && names.len() == all && names.iter().all(Option::is_some)
    }

    /// For each name that a declaration declares, which one of the pattern's declaration it is: with the same type and value.
    pub(super) fn names(&mut self, wanted: Node<'_>, given: Node<'_>) -> Vec<Option<usize>> {
        let known = declared(self.pattern.text(), wanted);
        let mut found = Vec::new();
        for new in declared(self.file.text(), given) {
            let at = known.iter().position(|known| known.name == new.name);
            let at = at.filter(|at| known[*at].specifiers == new.specifiers);
            let at = at.filter(|at| !found.contains(&Some(*at)));
            found.push(at.filter(|at| self.attempt(|it| it.node(known[*at].node, new.node))));
        }
        found
    }

    /// `for (x = 0; ...)` in the pattern, `for (int x = 0; ...)` in the file.
    fn declared_in_for(&mut self, wanted: Node<'_>, given: Node<'_>) -> bool {
        let (Some((set, wanted)), Some((declaration, given))) = (start_of(wanted), start_of(given))
        else {
            return false;
        };
        if declaration.kind() != "declaration" {
            return false;
        }
        let new = declared(self.file.text(), declaration);
        let set = assignments(set);
        let pairs = set.iter().zip(&new);
        let same =
            set.len() == new.len() && pairs.into_iter().all(|(set, new)| self.sets(*set, new));
        self.in_for.extend(new.into_iter().map(|new| InFor {
            name: new.name,
            specifiers: new.specifiers,
            shape: new.shape,
            at: new.node.start_byte(),
        }));
        same && self.sequence(&wanted, &given)
    }

    /// Whether an assignment of the pattern gives a name what its declaration gives it.
    fn sets(&mut self, assignment: Node<'_>, new: &Declared<'_>) -> bool {
        let field = |name| assignment.child_by_field_name(name);
        let is_plain = field("operator").is_some_and(|operator| operator.kind() == "=");
        let value = new.node.child_by_field_name("value");
        let (Some(left), Some(right), Some(value)) = (field("left"), field("right"), value) else {
            return false;
        };
        let name = self.pattern.slice(left.byte_range());
        is_plain && name == new.name.as_bytes() && self.node(right, value)
    }

    /// Records a capture; a name that comes twice must stand for the same text.
    fn keep(&mut self, name: &str, range: Range<usize>) -> bool {
        if name.starts_with('_') {
            return true;
        }
        let text = &self.file.text()[range.clone()];
        let earlier = self.captures.entry(name.to_owned()).or_insert(range);
        self.file.text()[earlier.clone()].as_bstr() == text.as_bstr()
    }
}

/// Whether C has another way to write it.
fn may_be_written_otherwise(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "declaration"
            | "parameter_declaration"
            | "type_descriptor"
            | "update_expression"
            | "for_statement"
    )
}

/// What a `for` starts with, and what stands behind the `;` that ends it.
fn start_of(statement: Node<'_>) -> Option<(Node<'_>, Vec<Node<'_>>)> {
    let start = statement.child_by_field_name("initializer")?;
    let mut children = meaningful(statement);
    let at = children.iter().position(|child| *child == start)?;
    // A declaration has its own.
    let skip = if start.kind() == "declaration" { 1 } else { 2 };
    Some((start, children.split_off(at + skip)))
}

/// A node's children without comments.
fn meaningful(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .filter(|child| child.kind() != "comment")
        .collect()
}

/// What stands in parentheses that change nothing: those of an expression, but for the name of what is called, which is no macro then.
fn in_parentheses(node: Node<'_>) -> Option<Node<'_>> {
    let parent = node.parent()?;
    let is_called = parent.child_by_field_name("function") == Some(node);
    let is_part_of_statement = parent.kind().ends_with("_statement");
    let alone = node.kind() == "parenthesized_expression" && !is_called;
    let is_needed = is_part_of_statement
        && !matches!(parent.kind(), "return_statement" | "expression_statement");
    let inner = meaningful(node);
    (alone && !is_needed && inner.len() == 3).then(|| inner[1])
}

/// The statements between braces, comments left out; `None` for what has no braces.
fn inside(node: Node<'_>) -> Option<Vec<Node<'_>>> {
    let is_block = node.kind() == "compound_statement";
    is_block.then(|| {
        meaningful(node)
            .into_iter()
            .filter(Node::is_named)
            .collect()
    })
}

/// Whether a statement is what another one, `if`, `else` or a loop, is about.
fn is_body(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else {
        return false;
    };
    let is = |name| parent.child_by_field_name(name) == Some(node);
    match parent.kind() {
        "if_statement" => is("consequence"),
        "for_statement" | "while_statement" | "do_statement" => is("body"),
        "else_clause" => node.is_named(),
        _ => false,
    }
}

/// Whether somebody may look at the value of an expression.
fn is_used(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else {
        return true;
    };
    let is = |name| parent.child_by_field_name(name) == Some(node);
    match parent.kind() {
        "expression_statement" => false,
        "for_statement" => !is("update") && !is("initializer"),
        "comma_expression" => is("right") && is_used(parent),
        _ => true,
    }
}

/// The assignments of `a = 1, b = 2`.
fn assignments(node: Node<'_>) -> Vec<Node<'_>> {
    if node.kind() != "comma_expression" {
        return vec![node];
    }
    let sides = ["left", "right"].map(|name| node.child_by_field_name(name));
    sides.into_iter().flatten().flat_map(assignments).collect()
}

/// From the first to the last of neighbours, with the comments before, between and behind them; an empty
/// range where there is none.
fn span(nodes: &[Node<'_>]) -> Range<usize> {
    let (Some(&first), Some(&last)) = (nodes.first(), nodes.last()) else {
        return 0..0;
    };
    let is_comment = |node: &Node<'_>| node.kind() == "comment";
    let before = std::iter::successors(first.prev_sibling(), Node::prev_sibling);
    let start = before.take_while(is_comment).last().unwrap_or(first);
    let behind = std::iter::successors(last.next_sibling(), Node::next_sibling);
    let end = behind.take_while(is_comment).last().unwrap_or(last);
    start.start_byte()..end.end_byte()
}
