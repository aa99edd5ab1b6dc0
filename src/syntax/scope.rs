//! Which names a function declares, and what each use of a name in it means: a declaration of its own, or something outside.
//!
//! Follows C's blocks. What the parser makes no sense of is read as uses of names, so that a doubt shows as a name from outside.

use std::ops::Range;

use anyhow::Result;
use bstr::ByteSlice;
use tree_sitter::Node;

use super::attributes::is_word;
use super::source::{Function, Source};

/// A name that a function declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// The name.
    pub name: String,
    /// Its type as it is written, one blank between tokens.
    pub kind: String,
    /// Where the name is.
    pub at: usize,
    /// The block that it can be seen in.
    pub block: Range<usize>,
}

/// A name that a function uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The name.
    pub name: String,
    /// Where it is.
    pub at: usize,
    /// The declaration that it means, as a number in [`Scope::declared`]; none is something outside of the function.
    pub declared: Option<usize>,
    /// Whether it is called.
    pub called: bool,
    /// Whether it may be the name of a member: an argument of a macro that takes one.
    pub member: bool,
    /// Whether its value is changed, or its address is taken.
    pub written: bool,
}

/// The names of a function.
#[derive(Debug, Default)]
pub struct Scope {
    /// What it declares, parameters first.
    pub declared: Vec<Local>,
    /// What it uses, in order.
    pub uses: Vec<Use>,
}

/// Macros of the kernel that take the name of a member.
const MEMBER_MACROS: [&str; 8] = [
    "offsetof",
    "offsetofend",
    "container_of",
    "container_of_const",
    "sizeof_field",
    "struct_size",
    "rb_entry",
    "FIELD_SIZEOF",
];

impl Scope {
    /// Reads a function.
    pub fn of(source: &Source, function: &Function) -> Result<Self> {
        let block = function.block()?;
        let mut walker = Walker {
            source,
            scope: Self::default(),
            open: Vec::new(),
            around: Vec::new(),
        };
        match block.parent() {
            Some(definition) => walker.node(definition),
            None => walker.node(block),
        }
        Ok(walker.scope)
    }

    /// The uses of what is outside of the function.
    pub fn free(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|used| used.declared.is_none())
    }

    /// Whether the function declares a name anywhere.
    #[must_use]
    pub fn declares(&self, name: &str) -> bool {
        self.declared.iter().any(|declared| declared.name == name)
    }

    /// Whether a name comes in the function at all.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        self.declares(name) || self.uses.iter().any(|used| used.name == name)
    }
}

struct Walker<'a, 't> {
    source: &'a Source,
    scope: Scope,
    /// The blocks around, each with where its declarations start in the list of those that can be seen.
    open: Vec<(Range<usize>, Vec<usize>)>,
    /// The nodes around, outermost first: a tree is asked for a parent only from its root down.
    around: Vec<Node<'t>>,
}

impl<'t> Walker<'_, 't> {
    fn node(&mut self, node: Node<'t>) {
        self.around.push(node);
        self.read(node);
        self.around.pop();
    }

    fn read(&mut self, node: Node<'t>) {
        match node.kind() {
            "function_definition" | "compound_statement" | "for_statement" => {
                self.open.push((node.byte_range(), Vec::new()));
                self.children(node);
                self.open.pop();
            }
            "declaration" | "parameter_declaration" => self.declaration(node),
            "identifier" => self.uses(node),
            "preproc_ifdef" | "preproc_elifdef" => self.but(node, &["name"]),
            "preproc_if" | "preproc_elif" => self.but(node, &["condition"]),
            "function_declarator" => {
                // The name of the function itself is no use of it.
                let name = node.child_by_field_name("declarator");
                if let Some(name) = name.filter(|name| name.kind() != "identifier") {
                    self.node(name);
                }
                self.but(node, &["declarator"]);
            }
            "comment" | "attribute_specifier" | "preproc_def" | "preproc_function_def" => {}
            _ => self.children(node),
        }
    }

    fn children(&mut self, node: Node<'t>) {
        self.but(node, &[]);
    }

    fn but(&mut self, node: Node<'t>, fields: &[&str]) {
        let left_out: Vec<_> = fields
            .iter()
            .filter_map(|field| node.child_by_field_name(field))
            .collect();
        let mut cursor = node.walk();
        let children: Vec<_> = node.named_children(&mut cursor).collect();
        for child in children
            .into_iter()
            .filter(|child| !left_out.contains(child))
        {
            self.node(child);
        }
    }

    /// A declaration: values are read before the name can be seen, which is how the kernel means `int a = a(b);`.
    fn declaration(&mut self, node: Node<'t>) {
        let mut cursor = node.walk();
        let declarators: Vec<_> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        let first = declarators
            .first()
            .map_or(node.end_byte(), Node::start_byte);
        let specifiers = words(self.source.slice(node.start_byte()..first));
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor).collect::<Vec<_>>() {
            if declarators.contains(&child) {
                self.declarator(child, &specifiers);
            } else {
                self.node(child);
            }
        }
    }

    fn declarator(&mut self, node: Node<'t>, specifiers: &str) {
        let declarator = if node.kind() == "init_declarator" {
            if let Some(value) = node.child_by_field_name("value") {
                self.node(value);
            }
            node.child_by_field_name("declarator").unwrap_or(node)
        } else {
            node
        };
        let Some(name) = super::source::declared_name(declarator) else {
            self.children(declarator);
            return;
        };
        self.sizes(declarator, name);
        let text = |range| words(self.source.slice(range));
        let around = [
            specifiers.to_owned(),
            text(declarator.start_byte()..name.start_byte()),
            text(name.end_byte()..declarator.end_byte()),
        ];
        let around: Vec<_> = around.into_iter().filter(|text| !text.is_empty()).collect();
        let (block, seen) = match self.open.last_mut() {
            Some((block, seen)) => (block.clone(), seen),
            None => return,
        };
        seen.push(self.scope.declared.len());
        self.scope.declared.push(Local {
            name: self
                .source
                .slice(name.byte_range())
                .to_str_lossy()
                .into_owned(),
            kind: around.join(" "),
            at: name.start_byte(),
            block,
        });
    }

    /// What a declarator has besides its name: sizes of arrays, parameters.
    fn sizes(&mut self, node: Node<'t>, name: Node<'t>) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor).collect::<Vec<_>>() {
            if child == name || child.kind() == "parameter_list" {
                continue;
            }
            let holds =
                child.start_byte() <= name.start_byte() && name.end_byte() <= child.end_byte();
            if holds {
                self.sizes(child, name);
            } else {
                self.node(child);
            }
        }
    }

    fn uses(&mut self, node: Node<'t>) {
        let name = self
            .source
            .slice(node.byte_range())
            .to_str_lossy()
            .into_owned();
        let declared = self.open.iter().rev().find_map(|(_, seen)| {
            let own = seen.iter().rev().copied();
            own.into_iter()
                .find(|number| self.scope.declared[*number].name == name)
        });
        let around = &self.around[..self.around.len() - 1];
        let called = around
            .last()
            .is_some_and(|parent| parent.child_by_field_name("function") == Some(node));
        self.scope.uses.push(Use {
            declared: declared.filter(|_| !called || declared.is_some()),
            at: node.start_byte(),
            called,
            member: self.may_be_member(node),
            written: is_written(node, around),
            name,
        });
    }

    /// Whether a name is an argument of a macro that takes members. Asked of the text: where there is a type among the arguments, the
    /// parser sees no call.
    fn may_be_member(&self, node: Node<'t>) -> bool {
        let text = &self.source.text()[..node.start_byte()];
        let mut depth = 0_usize;
        // No further than to the start of the statement.
        let stop = text.iter().rposition(|byte| {
            match byte {
                b')' => depth += 1,
                b'(' | b';' | b'{' | b'}' if depth == 0 => return true,
                b'(' => depth -= 1,
                _ => {}
            }
            false
        });
        let Some(open) = stop.filter(|at| text[*at] == b'(') else {
            return false;
        };
        let before = text[..open].trim_end();
        let start = before
            .iter()
            .rposition(|&byte| !is_word(byte))
            .map_or(0, |last| last + 1);
        let callee = before[start..].to_str_lossy();
        MEMBER_MACROS.contains(&&*callee)
            || ["list_entry", "for_each_entry", "first_entry"]
                .iter()
                .any(|part| callee.contains(part))
    }
}

/// Whether the value of a name is changed there, or its address is taken.
fn is_written(node: Node<'_>, around: &[Node<'_>]) -> bool {
    let mut inner = node;
    for parent in around.iter().rev().copied() {
        let is = |field: &str| parent.child_by_field_name(field) == Some(inner);
        match parent.kind() {
            "update_expression" => return true,
            "assignment_expression" => return is("left"),
            "pointer_expression" => {
                let operator = parent.child_by_field_name("operator");
                return operator.is_some_and(|operator| operator.kind() == "&");
            }
            "field_expression" => {
                let operator = parent.child_by_field_name("operator");
                if !is("argument") || operator.is_some_and(|operator| operator.kind() == "->") {
                    return false;
                }
            }
            "subscript_expression" if is("argument") => {}
            "parenthesized_expression" => {}
            _ => return false,
        }
        inner = parent;
    }
    false
}

fn words(text: &bstr::BStr) -> String {
    let words: Vec<_> = text.fields().map(|word| word.to_str_lossy()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        let source = Source::new(text.as_bytes().to_vec());
        let function = source.functions().expect("functions").remove(0);
        Scope::of(&source, &function).expect("a scope")
    }

    fn free(text: &str) -> Vec<String> {
        scope(text).free().map(|used| used.name.clone()).collect()
    }

    #[test]
    fn what_is_declared_is_not_from_outside() {
        let text = "static int f(struct a *a, int n)\n{\n\tint i, *p = &n;\n\n\tfor (int k = 0; k < MAX; k++)\n\t\tg(a->b, p[i], k);\n\treturn n;\n}\n";
        assert_eq!(free(text), ["MAX", "g"]);
        let found = scope(text);
        let kinds: Vec<_> = found
            .declared
            .iter()
            .map(|it| (it.name.as_str(), it.kind.as_str()))
            .collect();
        assert_eq!(
            kinds,
            [
                ("a", "struct a *"),
                ("n", "int"),
                ("i", "int"),
                ("p", "int *"),
                ("k", "int")
            ]
        );
    }

    #[test]
    fn a_name_is_seen_in_its_block_only() {
        assert_eq!(
            free("void f(void)\n{\n\tif (1) {\n\t\tint i = i(1);\n\t\tg(i);\n\t}\n\ti = 2;\n}\n"),
            ["i", "g", "i"]
        );
        assert_eq!(
            free("void f(void)\n{\n\tfor (int i = 0; i; i++) ;\n\ti = 2;\n}\n"),
            ["i"]
        );
    }

    #[test]
    fn members_labels_and_conditions_are_no_uses() {
        let text = "void f(struct a *a)\n{\n#ifdef X\n\tgoto out;\n#endif\n#if defined(Y) && Z\n\ta->b.c = (struct d){ .e = 1 };\n#endif\nout:\n\treturn;\n}\n";
        assert_eq!(free(text), Vec::<String>::new());
        let found = scope("void f(void)\n{\n\tg(list_entry(p, member));\n}\n");
        let members: Vec<_> = found
            .uses
            .iter()
            .filter(|it| it.member)
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(members, ["p", "member"]);
    }

    #[test]
    fn what_is_written_is_told() {
        let written = |body: &str| {
            let found = scope(&format!(
                "void f(int n, struct a s, struct a *p)\n{{\n\t{body}\n}}\n"
            ));
            found
                .uses
                .into_iter()
                .filter(|it| it.written)
                .map(|it| it.name)
                .collect::<Vec<_>>()
        };
        for body in ["n = 1;", "n++;", "g(&n);", "n += 2;"] {
            assert_eq!(written(body), ["n"], "{body}");
        }
        assert_eq!(written("s.b.c = 1;"), ["s"]);
        assert_eq!(written("g(&s.b);"), ["s"]);
        for body in ["p->b = 1;", "g(n);", "g(&p->b);", "*p = s;", "m = n;"] {
            assert!(
                !written(body).contains(&"n".to_owned())
                    && !written(body).contains(&"p".to_owned()),
                "{body}"
            );
        }
    }
}
