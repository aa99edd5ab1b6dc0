//! Statement patterns: C snippets with metavariables, matched against syntax trees exactly.
//!
//! `$NAME` stands for one node, `$$$NAME` for any number of neighbours (arguments, cases, statements), and a name that starts
//! with `_` is not kept. Comments and white space do not count; everything else must agree, token by token.
//! Hides how a snippet is parsed on its own.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Result, anyhow};
use bstr::ByteSlice;
use tree_sitter::{Node, Tree};

use crate::syntax::{Source, Statement, block_children, parse};

const BEFORE: &str = "void pattern(void)\n{\n";
const AFTER: &str = "\n}\n";

/// One snippet: a run of one or more statements.
#[derive(Clone)]
pub struct Pattern {
    written: String,
    source: Source,
    tree: Tree,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pattern").field(&self.written).finish()
    }
}

/// What the metavariables of a pattern stand for: byte ranges in the file it was matched against.
pub type Captures = BTreeMap<String, Range<usize>>;

/// A place where a pattern matches.
#[derive(Debug, Clone)]
pub struct Match {
    /// From the first statement's comments to the end of the last one.
    pub range: Range<usize>,
    /// Where the first statement itself starts.
    pub start: usize,
    /// What the metavariables stand for.
    pub captures: Captures,
}

impl Pattern {
    /// Reads a snippet. An error says in a few words what is wrong with it.
    pub fn parse(written: &str) -> Result<Self> {
        let source = Source::new(format!("{BEFORE}{written}{AFTER}").into_bytes());
        let tree = parse(source.text(), 0)?;
        let pattern = Self {
            written: written.to_owned(),
            source,
            tree,
        };
        if pattern.tree.root_node().has_error() || pattern.nodes().is_empty() {
            return Err(anyhow!(
                "`{written}` is no C statement; one that stands for statements needs its `;` (`$$$BODY;`)"
            ));
        }
        Ok(pattern)
    }

    /// As it was written.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The metavariables that are kept, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for node in self.nodes() {
            collect_names(&self.source, node, &mut names);
        }
        names.sort();
        names.dedup();
        names
    }

    /// The top nodes of the snippet.
    fn nodes(&self) -> Vec<Node<'_>> {
        let end = self.source.text().len() - AFTER.len() + 2;
        let root = self.tree.root_node();
        let block = root.descendant_for_byte_range(BEFORE.len() - 2, end);
        let block = block.filter(|node| node.kind() == "compound_statement");
        let children = block.map(block_children).unwrap_or_default();
        children
            .into_iter()
            .filter(|node| node.kind() != "comment")
            .collect()
    }

    /// Where one statement, and it alone, is what the pattern says.
    #[must_use]
    pub fn matches(&self, file: &Source, statement: &Statement<'_>) -> Option<Captures> {
        let mut matcher = Matcher {
            pattern: &self.source,
            file,
            captures: Captures::new(),
        };
        matcher
            .sequence(&self.nodes(), &[statement.node])
            .then_some(matcher.captures)
    }

    /// All runs of statements below `block`, at any depth, that match; outer blocks first.
    #[must_use]
    pub fn find(&self, file: &Source, block: Node<'_>) -> Vec<Match> {
        let mut found = Vec::new();
        self.find_below(file, block, &self.nodes(), &mut found);
        found
    }

    fn find_below(
        &self,
        file: &Source,
        node: Node<'_>,
        wanted: &[Node<'_>],
        found: &mut Vec<Match>,
    ) {
        if node.child_count() == 0 {
            return;
        }
        let mut cursor = node.walk();
        let children: Vec<_> = node.children(&mut cursor).collect();
        let kind = wanted[0].kind_id();
        let can_start = || {
            meta(&self.source, wanted[0]).is_some()
                || children.iter().any(|child| child.kind_id() == kind)
        };
        if holds_statements(node.kind()) && can_start() {
            let statements = file.statements(&children);
            let runs = statements.windows(wanted.len());
            found.extend(runs.filter_map(|run| self.matches_run(file, run, wanted)));
        }
        for child in children {
            self.find_below(file, child, wanted, found);
        }
    }

    fn matches_run(
        &self,
        file: &Source,
        run: &[Statement<'_>],
        wanted: &[Node<'_>],
    ) -> Option<Match> {
        let nodes: Vec<_> = run.iter().map(|statement| statement.node).collect();
        let mut matcher = Matcher {
            pattern: &self.source,
            file,
            captures: Captures::new(),
        };
        matcher.sequence(wanted, &nodes).then(|| Match {
            range: run[0].range.start..run[run.len() - 1].range.end,
            start: nodes[0].start_byte(),
            captures: matcher.captures,
        })
    }
}

/// Nodes whose named children can be statements.
fn holds_statements(kind: &str) -> bool {
    kind.ends_with("_statement")
        || kind == "else_clause"
        || kind.starts_with("preproc_")
        || kind == "ERROR"
}

/// What a node of a pattern stands for.
enum Meta<'a> {
    One(&'a str),
    Many(&'a str),
}

/// `$NAME`, `$$$NAME`, and `$$$NAME;` as a statement.
fn meta<'a>(pattern: &'a Source, node: Node<'_>) -> Option<Meta<'a>> {
    let statement = node.kind() == "expression_statement";
    if node.child_count() > 0 && !statement {
        return None;
    }
    let text = pattern.text()[node.byte_range()].to_str().ok()?;
    let text = if statement {
        text.strip_suffix(';')?.trim_end()
    } else {
        text
    };
    let name = |text: &'a str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            .then_some(text)
    };
    match text.strip_prefix("$$$") {
        Some(rest) => name(rest).map(Meta::Many),
        None if statement => None,
        None => text.strip_prefix('$').and_then(name).map(Meta::One),
    }
}

fn collect_names(pattern: &Source, node: Node<'_>, names: &mut Vec<String>) {
    match meta(pattern, node) {
        Some(Meta::One(name) | Meta::Many(name)) => {
            if !name.starts_with('_') {
                names.push(name.to_owned());
            }
        }
        None => {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                collect_names(pattern, child, names);
            }
        }
    }
}

/// One attempt to match.
struct Matcher<'a> {
    pattern: &'a Source,
    file: &'a Source,
    captures: Captures,
}

impl Matcher<'_> {
    /// Matches neighbours with neighbours; `$$$` takes as few as it can.
    fn sequence(&mut self, wanted: &[Node<'_>], given: &[Node<'_>]) -> bool {
        let Some((&first, rest)) = wanted.split_first() else {
            return given.is_empty();
        };
        if let Some(Meta::Many(name)) = meta(self.pattern, first) {
            return (0..=given.len()).any(|count| {
                let before = self.captures.clone();
                let range = span(&given[..count]);
                let matched = self.keep(name, range) && self.sequence(rest, &given[count..]);
                if !matched {
                    self.captures = before;
                }
                matched
            });
        }
        given
            .split_first()
            .is_some_and(|(&node, others)| self.node(first, node) && self.sequence(rest, others))
    }

    fn node(&mut self, wanted: Node<'_>, given: Node<'_>) -> bool {
        if let Some(Meta::One(name)) = meta(self.pattern, wanted) {
            let fits = wanted.kind() == "identifier" || wanted.kind() == given.kind();
            return fits && self.keep(name, given.byte_range());
        }
        if wanted.kind_id() != given.kind_id() {
            return false;
        }
        let (inner, outer) = (meaningful(wanted), meaningful(given));
        if inner.is_empty() || outer.is_empty() {
            let same =
                self.pattern.text()[wanted.byte_range()] == self.file.text()[given.byte_range()];
            return inner.is_empty() && outer.is_empty() && same;
        }
        self.sequence(&inner, &outer)
    }

    /// Records a capture; a name that comes twice must stand for the same text.
    fn keep(&mut self, name: &str, range: Range<usize>) -> bool {
        if name.starts_with('_') {
            return true;
        }
        let text = &self.file.text()[range.clone()];
        let earlier = self.captures.entry(name.to_owned()).or_insert(range);
        self.file.text()[earlier.clone()] == *text
    }
}

/// A node's children without comments.
fn meaningful(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .filter(|child| child.kind() != "comment")
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, body: &str) -> Vec<BTreeMap<String, String>> {
        let file = Source::new(format!("void f(void)\n{{\n{body}\n}}\n").into_bytes());
        let function = &file.functions().unwrap()[0];
        let matches = Pattern::parse(pattern)
            .unwrap()
            .find(&file, function.block().unwrap());
        let text = |range: &Range<usize>| file.slice(range.clone()).to_string();
        matches
            .iter()
            .map(|found| {
                found
                    .captures
                    .iter()
                    .map(|(name, range)| (name.clone(), text(range)))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn tokens_must_agree_but_white_space_and_comments_need_not() {
        assert_eq!(find("f(a, b);", "\tf(a,\n\t  /* why */ b);").len(), 1);
        assert_eq!(find("f(a, b);", "\tf(a, b, c);").len(), 0);
        assert_eq!(find("f(a, b);", "\tg(a, b);").len(), 0);
        assert_eq!(find("x = 1;", "\tx += 1;").len(), 0);
    }

    #[test]
    fn metavariables_stand_for_nodes_and_runs() {
        let found = find("prep($FIRST, $$$REST);", "\tprep(head->x, a, b + 1);");
        assert_eq!(found[0]["FIRST"], "head->x");
        assert_eq!(found[0]["REST"], "a, b + 1");
        assert_eq!(find("prep($$$ALL);", "\tprep();")[0]["ALL"], "");
        assert_eq!(
            find(
                "page->$FIELD = $_;",
                "\tpage->a = 1;\n\tpage->b.c = 1;\n\tfolio->a = 1;"
            )
            .len(),
            1
        );
        assert_eq!(find("f($A, $A);", "\tf(x, x);\n\tf(x, y);").len(), 1);
    }

    #[test]
    fn bodies_cases_and_conditions_can_be_left_open() {
        let found = find(
            "for (i = 0; i < n; i++) { $$$BODY; }",
            "\tfor (i = 0; i < n; i++) {\n\t\ta();\n\t\tb();\n\t}",
        );
        assert_eq!(found[0]["BODY"], "a();\n\t\tb();");
        let body = "/* one */\n\t\ta();\n\t\t/* two */";
        let found = find(
            "while (x) { $$$BODY; }",
            &format!("\twhile (x) {{\n\t\t{body}\n\t}}"),
        );
        assert_eq!(found[0]["BODY"], body, "no comment is lost");
        let found = find(
            "switch (t) { $$$CASES; }",
            "\tswitch (t) {\n\tcase A:\n\t\tx();\n\t\tbreak;\n\tcase B:\n\t\tbreak;\n\t}",
        );
        assert!(found[0]["CASES"].starts_with("case A:"));
        assert_eq!(
            find(
                "if ($COND) set(page, 0);",
                "\tif (a ||\n\t    b)\n\t\tset(page, 0);"
            )[0]["COND"],
            "a ||\n\t    b"
        );
    }

    #[test]
    fn a_run_is_found_at_any_depth_and_each_time() {
        assert_eq!(
            find(
                "a(); b();",
                "\tif (x) {\n\t\ta();\n\t\tb();\n\t}\n\ta();\n\tb();"
            )
            .len(),
            2
        );
        assert_eq!(
            find("a();", "\tif (x)\n\t\ta();\n\telse\n\t\ta();").len(),
            2
        );
    }

    #[test]
    fn a_snippet_that_is_no_c_is_refused() {
        for wrong in ["", "f(", "for (", "$$$BODY", "case A"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_those_that_are_kept() {
        assert_eq!(
            Pattern::parse("f($A, $_, $$$B); $$$_REST;")
                .unwrap()
                .names(),
            ["A", "B"]
        );
    }
}
