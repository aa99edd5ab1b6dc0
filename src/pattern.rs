//! Statement patterns: C snippets with metavariables, matched against syntax trees exactly.
//!
//! `$NAME` stands for one node, `$$$NAME` for any number of neighbours (arguments, cases, statements), and a name that starts
//! with `_` is not kept. Comments and white space do not count; everything else must agree, token by token, or mean the same by the
//! rules of C alone. Hides how a snippet is parsed on its own.

mod matcher;

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Result, anyhow};
use bstr::ByteSlice;
use tree_sitter::{Node, Tree};

pub(crate) use self::matcher::InFor;
use self::matcher::Matcher;
use crate::syntax::{Declared, Source, Statement, block_children, declared, parse};

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

/// What makes a statement one of a pattern's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claim {
    /// What the metavariables stand for.
    pub(crate) captures: Captures,
    /// The names that a `for` declares, which the pattern expects to be declared already.
    pub(crate) in_for: Vec<InFor>,
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

    /// A range of the snippet, as its nodes count.
    pub(crate) fn slice(&self, range: Range<usize>) -> &[u8] {
        self.source.slice(range)
    }

    /// The metavariables that are kept, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names = self.metavariables();
        names.retain(|name| !name.starts_with('_'));
        names
    }

    /// All metavariables, sorted.
    #[must_use]
    pub fn metavariables(&self) -> Vec<String> {
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

    /// What the pattern declares, where it is a declaration.
    pub(crate) fn declares(&self) -> Vec<Declared<'_>> {
        let declarations: Vec<_> = self.declaration().into_iter().collect();
        let text = self.source.text();
        let names = declarations
            .into_iter()
            .flat_map(|node| declared(text, node));
        names.collect()
    }

    fn declaration(&self) -> Option<Node<'_>> {
        let nodes = self.nodes();
        let is_one = nodes.len() == 1 && nodes[0].kind() == "declaration";
        is_one.then(|| nodes[0])
    }

    /// Where one statement, and it alone, is what the pattern says.
    pub(crate) fn claim(&self, file: &Source, statement: &Statement<'_>) -> Option<Claim> {
        let mut matcher = Matcher::new(&self.source, file);
        let matched = matcher.sequence(&self.nodes(), &[statement.node]);
        matched.then_some(Claim {
            captures: matcher.captures,
            in_for: matcher.in_for,
        })
    }

    /// Where a statement and the pattern are declarations: for each name that the statement declares, which one of the pattern's it
    /// is, if it is one, and what the metavariables in its value stand for.
    pub(crate) fn names_in(
        &self,
        file: &Source,
        statement: &Statement<'_>,
    ) -> (Vec<Option<usize>>, Captures) {
        let given = statement.node;
        let wanted = self.declaration().filter(|_| given.kind() == "declaration");
        let mut matcher = Matcher::new(&self.source, file);
        let names = wanted.map(|wanted| matcher.names(wanted, given));
        (names.unwrap_or_default(), matcher.captures)
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
        let mut matcher = Matcher::new(&self.source, file);
        matcher.sequence(wanted, &nodes).then(|| Match {
            range: run[0].range.start..run[run.len() - 1].range.end,
            start: nodes[0].start_byte(),
            captures: matcher.captures,
        })
    }
}

/// Whether a text is one statement that can stand for another one anywhere, without braces.
pub(crate) fn is_one_statement(text: &str) -> bool {
    let Ok(pattern) = Pattern::parse(text) else {
        return false;
    };
    let nodes = pattern.nodes();
    // An `if` would take the `else` of another one.
    let can_stand_alone = matches!(
        nodes[0].kind(),
        "expression_statement"
            | "return_statement"
            | "continue_statement"
            | "break_statement"
            | "goto_statement"
            | "compound_statement"
            | "do_statement"
    );
    nodes.len() == 1 && can_stand_alone
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
        Some(Meta::One(name) | Meta::Many(name)) => names.push(name.to_owned()),
        None => {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                collect_names(pattern, child, names);
            }
        }
    }
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
    fn braces_around_a_single_statement_may_be_there_or_not() {
        for (one, other) in [
            ("if (c) s;", "if (c) { s; }"),
            ("if (c) s; else t;", "if (c) { s; } else { t; }"),
            ("if (c) s; else if (d) t;", "if (c) s; else if (d) { t; }"),
            (
                "for (i = 0; i < n; i++) s;",
                "for (i = 0; i < n; i++) { s; }",
            ),
            ("while (c) s;", "while (c) { /* why */ s; }"),
            ("do s; while (c);", "do { s; } while (c);"),
            ("if (c) while (d) s;", "if (c) { while (d) { s; } }"),
        ] {
            assert_eq!(find(one, other).len(), 1, "{one} in {other}");
            assert_eq!(find(other, one).len(), 1, "{other} in {one}");
        }
        for (one, other) in [
            ("if (c) s;", "if (c) { s; t; }"),
            ("if (c) s;", "if (c) { }"),
            ("if (c) s;", "if (c) s; else t;"),
            ("if (a) if (b) s; else t;", "if (a) { if (b) s; } else t;"),
            ("s; { t; }", "s; t;"),
        ] {
            assert_eq!(find(one, other).len(), 0, "{one} in {other}");
            assert_eq!(find(other, one).len(), 0, "{other} in {one}");
        }
        let found = find(
            "if (c) { $$$BODY; }",
            "\tif (c)\n\t\t/* why */\n\t\ts; /* the if's */",
        );
        assert_eq!(found[0]["BODY"], "/* why */\n\t\ts;");
        assert_eq!(find("if (c) f($X);", "if (c) { f(a); }")[0]["X"], "a");
    }

    #[test]
    fn parentheses_that_change_nothing_may_be_there_or_not() {
        for (one, other) in [
            ("if (a == 1) s;", "if ((a == 1)) s;"),
            ("if (a && b == 1) s;", "if (a && (b == 1)) s;"),
            ("return x;", "return (x);"),
            ("f(a, b + 1);", "f((a), (b + 1));"),
            ("x = a * b + c;", "x = (a * b) + c;"),
            ("n = sizeof(x);", "n = sizeof x;"),
        ] {
            assert_eq!(find(one, other).len(), 1, "{one} in {other}");
            assert_eq!(find(other, one).len(), 1, "{other} in {one}");
        }
        for (one, other) in [
            ("x = a * b + c;", "x = a * (b + c);"),
            ("f(a);", "(f)(a);"),
            ("f(a, b);", "f((a, b));"),
            ("x = (u8)a + b;", "x = (u8)(a + b);"),
        ] {
            assert_eq!(find(one, other).len(), 0, "{one} in {other}");
            assert_eq!(find(other, one).len(), 0, "{other} in {one}");
        }
        assert_eq!(find("f($X);", "f((a));")[0]["X"], "(a)");
    }

    #[test]
    fn a_step_whose_value_nobody_uses_may_stand_on_either_side() {
        for (one, other) in [
            ("x++;", "++x;"),
            ("p->n--;", "--p->n;"),
            ("for (;; x++) { }", "for (;; ++x) { }"),
            ("for (;; x++, y--) { }", "for (;; ++x, --y) { }"),
            ("for (x++; ;) { }", "for (++x; ;) { }"),
        ] {
            assert_eq!(find(one, other).len(), 1, "{one} in {other}");
            assert_eq!(find(other, one).len(), 1, "{other} in {one}");
        }
        for (one, other) in [
            ("y = x++;", "y = ++x;"),
            ("f(x++);", "f(++x);"),
            ("x++;", "--x;"),
            ("x++;", "x--;"),
            ("while (x++) { }", "while (++x) { }"),
            ("for (; x++;) { }", "for (; ++x;) { }"),
            ("y = (a, x++);", "y = (a, ++x);"),
            ("a[x++] = 0;", "a[++x] = 0;"),
        ] {
            assert_eq!(find(one, other).len(), 0, "{one} in {other}");
        }
    }

    #[test]
    fn a_variable_may_be_const_in_the_file_and_not_the_other_way_round() {
        assert_eq!(find("int x = f();", "const int x = f();").len(), 1);
        assert_eq!(find("const int x = f();", "int x = f();").len(), 0);
        assert_eq!(find("int *x = f();", "const int *x = f();").len(), 0);
    }

    #[test]
    fn the_words_of_a_type_may_be_in_any_order() {
        for (one, other) in [
            ("unsigned long const x;", "const unsigned long x;"),
            ("unsigned long x = 1;", "long unsigned int x = 1;"),
            ("unsigned x;", "unsigned int x;"),
            ("const struct page *p;", "struct page const *p;"),
            ("static const u8 x[2];", "const static u8 x[2];"),
            ("y = (unsigned long)x;", "y = (long unsigned)x;"),
            ("n = sizeof(unsigned long);", "n = sizeof(long unsigned);"),
            ("int a, b = 1;", "int b = 1, a;"),
        ] {
            assert_eq!(find(one, other).len(), 1, "{one} in {other}");
            assert_eq!(find(other, one).len(), 1, "{other} in {one}");
        }
        for (one, other) in [
            ("unsigned long x;", "unsigned x;"),
            ("int x;", "unsigned int x;"),
            ("const int *p;", "int *const p;"),
            ("int *x;", "const int *x;"),
            ("long x;", "long long x;"),
            ("struct a *p;", "struct b *p;"),
            ("int a, b = 1;", "int b, a = 1;"),
            ("int a, b;", "int a;"),
            ("int a;", "int a, b;"),
            ("int *a, b;", "int a, *b;"),
        ] {
            assert_eq!(find(one, other).len(), 0, "{one} in {other}");
        }
        assert_eq!(
            find("long unsigned n = $N;", "unsigned long n = f(1);")[0]["N"],
            "f(1)"
        );
    }

    #[test]
    fn a_name_that_a_for_sets_may_be_declared_there() {
        let pattern = Pattern::parse("for (i = $FROM; i < n; i++) { $$$_BODY; }").unwrap();
        let claim = |body: &str| {
            let file = Source::new(format!("void f(void)\n{{\n{body}\n}}\n").into_bytes());
            let function = &file.functions().unwrap()[0];
            let nodes = block_children(function.block().unwrap());
            let claim = pattern.claim(&file, &file.statements(&nodes)[0]);
            let shown = claim.map(|claim| {
                let from = file.slice(claim.captures["FROM"].clone()).to_string();
                let in_for = claim.in_for.iter().map(InFor::shown);
                std::iter::once(from).chain(in_for).collect::<Vec<_>>()
            });
            shown.unwrap_or_default()
        };
        assert_eq!(claim("for (i = 1; i < n; i++) { s; }"), ["1"]);
        assert_eq!(
            claim("for (long unsigned i = g(2); i < n; ++i) s;"),
            ["g(2)", "long unsigned i"]
        );
        for other in [
            "for (int j = 1; i < n; i++) { s; }",
            "for (int i = 1, j = 2; i < n; i++) { s; }",
            "for (int i; i < n; i++) { s; }",
            "for (int i = 1; i <= n; i++) { s; }",
        ] {
            assert!(claim(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn a_declaration_may_declare_some_of_the_names() {
        let pattern = Pattern::parse("unsigned long i, n = $N;").unwrap();
        let names = |body: &str| {
            let file = Source::new(format!("void f(void)\n{{\n{body}\n}}\n").into_bytes());
            let function = &file.functions().unwrap()[0];
            let nodes = block_children(function.block().unwrap());
            pattern.names_in(&file, &file.statements(&nodes)[0]).0
        };
        assert_eq!(names("unsigned long n = a + b;"), [Some(1)]);
        assert_eq!(names("long unsigned i;"), [Some(0)]);
        assert_eq!(names("unsigned long n = 1, i;"), [Some(1), Some(0)]);
        assert_eq!(names("unsigned long i, j;"), [Some(0), None]);
        assert_eq!(names("unsigned long i = 1;"), [None]);
        assert_eq!(names("int i;"), [None]);
        assert_eq!(names("i = 1;"), []);
    }

    #[test]
    fn one_statement_stands_anywhere_without_braces() {
        for one in [
            "f(a,\n  b);",
            "return;",
            "/* why */\nf();",
            "{ a(); b(); }",
            "do a(); while (c);",
        ] {
            assert!(is_one_statement(one), "{one}");
        }
        for other in [
            "",
            "a(); b();",
            "int x;",
            "if (c) a();",
            "for (;;) if (c) a();",
            "a()",
        ] {
            assert!(!is_one_statement(other), "{other}");
        }
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
