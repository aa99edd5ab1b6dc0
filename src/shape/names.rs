//! The names of a function of the base that are other than the recipe's: parameters and locals that were renamed.
//!
//! Hides how a name is told to stand for another one. Nothing is guessed: a parameter has the place and the type that the recipe gives
//! it, a local the type and the value, no other may be meant, and no name may mean two things, here or in the recipe.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::Result;
use bstr::ByteSlice;
use tree_sitter::Node;

use crate::pattern::Pattern;
use crate::recipe::{FunctionSpec, all_parts};
use crate::syntax::{Declared, Function, Source, declared, token_texts};

/// The names of one function: how the base has them, and how the recipe does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    pairs: Vec<Pair>,
}

/// A name, as the base and as the recipe has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pair {
    /// The base's.
    pub base: String,
    /// The recipe's.
    pub recipe: String,
}

/// A name that the base and the recipe have for other things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The names.
    pub pair: Pair,
    /// Why one cannot be read as the other.
    pub why: String,
    /// Where.
    pub at: usize,
}

impl Names {
    /// How the names of a function differ from those of its recipe; an error is a name that would mean two things.
    pub fn of(source: &Source, function: &Function, spec: &FunctionSpec) -> Result<Self, Clash> {
        let own: Vec<_> = function
            .parameters
            .iter()
            .map(ToString::to_string)
            .collect();
        if own.len() != spec.parameters.len() || !has_types(function, spec) {
            return Ok(Self::default());
        }
        let body = Body::of(source, function);
        let mut pairs: Vec<_> = own.iter().zip(&spec.parameters).map(pair).collect();
        body.add_locals(spec, &own, &mut pairs);
        pairs.retain(|pair| pair.base != pair.recipe);
        if let Some((pair, at)) = pairs.iter().find_map(|pair| {
            let at = own.iter().position(|name| *name == pair.base)?;
            spec.types[at].is_none().then_some((pair, at))
        }) {
            let why = format!(
                "the recipe does not say which type parameter {} has",
                at + 1
            );
            return Err(pair.clash(why, function.start));
        }
        for pair in &pairs {
            body.is_clear(pair)?;
        }
        Ok(Self { pairs })
    }

    /// Whether all names are the recipe's.
    #[must_use]
    pub fn are_the_same(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The pairs of names, as a person reads them.
    #[must_use]
    pub fn shown(&self) -> String {
        let shown = self
            .pairs
            .iter()
            .map(|Pair { base, recipe }| format!("`{base}` as `{recipe}`"));
        shown.collect::<Vec<_>>().join(", ")
    }

    /// A file with the names of one of its functions as the recipe has them.
    #[must_use]
    pub fn to_recipe(&self, source: &Source, function: &Function) -> Source {
        let change = |word: &str| self.pairs.iter().find(|pair| pair.base == word);
        let places = places(source, function, |word| Some(change(word)?.recipe.as_str()));
        renamed(source, &places)
    }

    /// A file with the names of one of its functions as the base has them; an error where somebody uses a name of the base's for
    /// something else by now.
    pub fn to_base(&self, source: &Source, name: &str) -> Result<Source, Clash> {
        let Some(function) = source.only_function(name) else {
            let pair = self.pairs.first().cloned().unwrap_or_default();
            return Err(pair.clash(format!("`{name}()` is not there once any more"), 0));
        };
        let function = &function;
        for pair in &self.pairs {
            let mut leaves = leaves(function.root()).into_iter();
            let other = leaves.find(|leaf| text(source, *leaf) == pair.base && !is_apart(*leaf));
            if let Some(leaf) = other {
                return Err(pair.clash("an edit uses it".to_owned(), leaf.start_byte()));
            }
        }
        let change = |word: &str| self.pairs.iter().find(|pair| pair.recipe == word);
        let places = places(source, function, |word| Some(change(word)?.base.as_str()));
        Ok(renamed(source, &places))
    }
}

impl Pair {
    fn clash(&self, why: String, at: usize) -> Clash {
        Clash {
            pair: self.clone(),
            why,
            at,
        }
    }
}

fn pair((base, recipe): (&String, &String)) -> Pair {
    Pair {
        base: base.clone(),
        recipe: recipe.clone(),
    }
}

/// Whether the parameters have the types that the recipe gives them, where it does.
fn has_types(function: &Function, spec: &FunctionSpec) -> bool {
    let pairs = spec.types.iter().zip(&function.parameter_types);
    pairs
        .into_iter()
        .all(|(wanted, own)| wanted.as_ref().is_none_or(|wanted| wanted == own))
}

/// A function of the base, with what it declares.
struct Body<'a> {
    source: &'a Source,
    function: &'a Function,
    locals: Vec<Local<'a>>,
}

/// A name that a function declares.
struct Local<'a> {
    declared: Declared<'a>,
    in_for: bool,
    /// Where it can be used.
    scope: Range<usize>,
}

impl<'a> Body<'a> {
    fn of(source: &'a Source, function: &'a Function) -> Self {
        let mut locals = Vec::new();
        let mut open = vec![function.root()];
        while let Some(node) = open.pop() {
            if node.kind() == "declaration" {
                let around = std::iter::successors(node.parent(), Node::parent);
                let mut around = around.filter(|node| opens_scope(*node));
                let scope = around
                    .next()
                    .map_or(node.end_byte(), |node| node.end_byte());
                let in_for = node
                    .parent()
                    .is_some_and(|node| node.kind() == "for_statement");
                locals.extend(
                    declared(source.text(), node)
                        .into_iter()
                        .map(|declared| Local {
                            in_for,
                            scope: declared.node.start_byte()..scope,
                            declared,
                        }),
                );
            }
            open.extend(node.children(&mut node.walk()));
        }
        Self {
            source,
            function,
            locals,
        }
    }

    /// Finds the locals that have another name than the recipe's; with each that is found, the values of others can be read.
    fn add_locals(&self, spec: &FunctionSpec, parameters: &[String], pairs: &mut Vec<Pair>) {
        let parts = all_parts(&spec.parts);
        let patterns: Vec<_> = parts.into_iter().flat_map(|part| &part.patterns).collect();
        let wanted: Vec<_> = patterns
            .iter()
            .flat_map(|it| it.declares().into_iter().map(|name| (*it, name)))
            .collect();
        let mut own: BTreeSet<&str> = self
            .locals
            .iter()
            .map(|local| local.declared.name.as_str())
            .collect();
        own.extend(parameters.iter().map(String::as_str));
        let recipes: BTreeSet<&str> = wanted.iter().map(|(_, name)| name.name.as_str()).collect();
        let is_open = |pairs: &[Pair], name: &str| {
            !pairs
                .iter()
                .any(|pair| pair.base == name || pair.recipe == name)
        };
        loop {
            let missing = wanted.iter().filter(|(_, name)| {
                !own.contains(name.name.as_str()) && is_open(pairs, &name.name)
            });
            let missing: Vec<_> = missing.collect();
            let spare = self.locals.iter().filter(|local| {
                let name = local.declared.name.as_str();
                !recipes.contains(name)
                    && !spec.parameters.iter().any(|it| it == name)
                    && is_open(pairs, name)
            });
            let mut meant: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for local in spare {
                for (pattern, name) in &missing {
                    if self.may_be(local, pattern, name, pairs) {
                        meant
                            .entry(&local.declared.name)
                            .or_default()
                            .insert(&name.name);
                    }
                }
            }
            let only = meant.iter().find_map(|(base, recipe)| {
                let one = recipe.first().filter(|_| recipe.len() == 1)?;
                let times = meant.values().filter(|others| others.contains(one)).count();
                (times == 1).then(|| Pair {
                    base: (*base).to_owned(),
                    recipe: (*one).to_owned(),
                })
            });
            match only {
                Some(pair) => pairs.push(pair),
                None => return,
            }
        }
    }

    /// Whether a local has the type and the value that a pattern gives a name.
    fn may_be(
        &self,
        local: &Local<'_>,
        pattern: &Pattern,
        name: &Declared<'_>,
        pairs: &[Pair],
    ) -> bool {
        if !local.declared.has_type_of(name) {
            return false;
        }
        let wanted = name.value.clone().map(|range| pattern.slice(range));
        let Some(wanted) = wanted else {
            return local.declared.value.is_none() || local.in_for;
        };
        let Some(own) = local.declared.value.clone() else {
            return false;
        };
        let own = token_texts(self.source.slice(own)).map(|token| {
            let pair = pairs.iter().find(|pair| pair.base.as_bytes() == token);
            pair.map_or(token, |pair| pair.recipe.as_bytes())
        });
        own.eq(token_texts(wanted))
    }

    /// Whether the base's name means one thing in the function, and the recipe's nothing.
    fn is_clear(&self, pair: &Pair) -> Result<(), Clash> {
        let clash = |why: &str, at| Err(pair.clash(why.to_owned(), at));
        if !self.function.clean {
            return clash(
                "the function cannot be read as a whole",
                self.function.start,
            );
        }
        let locals = self
            .locals
            .iter()
            .filter(|local| local.declared.name == pair.base);
        let scopes: Vec<_> = locals.map(|local| &local.scope).collect();
        let is_parameter = self
            .function
            .parameters
            .iter()
            .any(|name| *name == pair.base);
        if let Some(scope) = scopes.get(usize::from(!is_parameter)) {
            return clash("it is declared more than once", scope.start);
        }
        for leaf in leaves(self.function.root()) {
            let at = leaf.start_byte();
            if leaf.kind().starts_with("preproc_") || leaf.kind().starts_with('#') {
                return clash("lines of the preprocessor may use it", at);
            }
            if is_apart(leaf) {
                continue;
            }
            let word = text(self.source, leaf);
            let is_outside = || scopes.iter().any(|scope| !scope.contains(&at));
            if word == pair.recipe && !is_called(leaf) {
                return clash("that is something else here", at);
            }
            if word == pair.base && (leaf.kind() != "identifier" || is_called(leaf) || is_outside())
            {
                return clash("it is something else here, too", at);
            }
        }
        Ok(())
    }
}

fn opens_scope(node: Node<'_>) -> bool {
    matches!(node.kind(), "compound_statement" | "for_statement")
}

/// Whether a leaf is a name of its own kind: a member, a label or a tag, which no variable can be mistaken for.
fn is_apart(leaf: Node<'_>) -> bool {
    let is_tag = leaf.parent().is_some_and(|parent| {
        matches!(
            parent.kind(),
            "struct_specifier" | "union_specifier" | "enum_specifier"
        )
    });
    is_tag
        || matches!(
            leaf.kind(),
            "field_identifier" | "statement_identifier" | "comment"
        )
}

/// Whether a leaf names what is called: a macro of the name of a variable is one only there.
fn is_called(leaf: Node<'_>) -> bool {
    let parent = leaf.parent();
    parent.and_then(|parent| parent.child_by_field_name("function")) == Some(leaf)
}

/// The variables of a function to be renamed, and how.
fn places<'n>(
    source: &Source,
    function: &Function,
    change: impl Fn(&str) -> Option<&'n str>,
) -> Vec<(Range<usize>, &'n str)> {
    let leaves = leaves(function.root()).into_iter();
    let names = leaves.filter(|leaf| leaf.kind() == "identifier" && !is_called(*leaf));
    let mut places: Vec<_> = names
        .filter_map(|leaf| Some((leaf.byte_range(), change(&text(source, leaf))?)))
        .collect();
    places.sort_by_key(|(range, _)| range.start);
    places
}

fn renamed(source: &Source, places: &[(Range<usize>, &str)]) -> Source {
    let old = source.text();
    let mut new = Vec::with_capacity(old.len());
    let mut at = 0;
    for (range, name) in places {
        new.extend_from_slice(&old[at..range.start]);
        new.extend_from_slice(name.as_bytes());
        at = range.end;
    }
    new.extend_from_slice(&old[at..]);
    Source::new(new)
}

fn text(source: &Source, leaf: Node<'_>) -> String {
    source.slice(leaf.byte_range()).to_str_lossy().into_owned()
}

fn leaves(node: Node<'_>) -> Vec<Node<'_>> {
    let (mut found, mut open) = (Vec::new(), vec![node]);
    while let Some(node) = open.pop() {
        if node.child_count() == 0 {
            found.push(node);
        }
        open.extend(node.children(&mut node.walk()));
    }
    found
}
