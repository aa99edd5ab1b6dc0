//! Holds the functions that a recipe builds on against its idea of them: every statement belongs to exactly one part.
//!
//! Hides the bookkeeping of conservation: what nothing claims, or two parts claim, becomes an error that names it.

mod effect;
mod names;
mod near;
mod steady;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bstr::ByteSlice;
use tree_sitter::Node;

use effect::{called, identifiers, variation};
pub use names::{Clash, Names, Pair};
use near::nearest;
pub use near::{Missing, closest, left_aligned, missing, quote, unreadable};

use steady::Steady;
pub use steady::{Blind, Sees};

use crate::pattern::{Captures, InFor, Pattern};
use crate::recipe::{Count, FunctionSpec, PartSpec};
use crate::syntax::{Function, Scope, Source, Statement, block_children, token_texts};

/// The name of the capture that nested parts divide among them.
pub(crate) const BODY: &str = "BODY";

/// One part as a base has it. A part that is not there has empty texts.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// How many statements it has.
    pub statements: usize,
    /// Its statements with their comments, moved to the left margin.
    pub text: String,
    /// The same without the comments above the first one.
    pub code: String,
    /// What its metavariables stand for.
    pub captures: BTreeMap<String, String>,
    /// Every identifier in it.
    pub identifiers: BTreeSet<String>,
    /// The line of its first statement.
    pub line: usize,
}

/// The parts of one function, by name.
pub type Parts = BTreeMap<String, Part>;

/// One way in which a function is not what the recipe says.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// What is wrong, in a sentence.
    pub message: String,
    /// Lines of source that show it.
    pub details: Vec<String>,
    /// What to do.
    pub hint: String,
}

/// Divides `function` into the parts that `spec` lists; what does not fit is returned, all of it.
pub fn divide(
    source: &Source,
    function: &Function,
    spec: &FunctionSpec,
    sees: &dyn Sees,
) -> Result<Parts, Vec<Mismatch>> {
    let mut division = Division {
        source,
        spec,
        sees,
        scope: Scope::of(source, function).unwrap_or_default(),
        parts: Parts::new(),
        mismatches: Vec::new(),
    };
    division.parameters(function);
    match function.block() {
        Ok(block) => division.block(
            &block_children(block),
            &spec.parts,
            &format!("`{}()`", spec.name),
        ),
        Err(error) => division.mismatches.push(Mismatch {
            message: error.to_string(),
            details: Vec::new(),
            hint: String::new(),
        }),
    }
    if division.mismatches.is_empty() {
        Ok(division.parts)
    } else {
        Err(division.mismatches)
    }
}

struct Division<'a> {
    source: &'a Source,
    spec: &'a FunctionSpec,
    sees: &'a dyn Sees,
    scope: Scope,
    parts: Parts,
    mismatches: Vec<Mismatch>,
}

/// A part's claim on a statement.
struct Claim<'a> {
    part: &'a PartSpec,
    captures: Captures,
    /// The names of the part's patterns that the statement declares.
    names: Vec<Name>,
    /// The names that a `for` declares, which its pattern expects to be declared already.
    in_for: Vec<InFor>,
}

/// A name that a pattern declares: which pattern of the part, and which of its names.
type Name = (usize, usize);

/// A statement that belongs to a part.
struct Claimed<'s, 'n> {
    statement: &'s Statement<'n>,
    captures: Captures,
    names: Vec<Name>,
}

impl Division<'_> {
    fn parameters(&mut self, function: &Function) {
        let names = function.parameters.iter().map(ToString::to_string);
        let found: Vec<_> = names.collect();
        let message = if found == self.spec.parameters {
            let types = self.spec.types.iter().zip(&function.parameter_types);
            let other = |(wanted, own): (&Option<String>, &String)| {
                let wanted = wanted.as_ref().filter(|wanted| *wanted != own)?;
                Some(format!("expected `{wanted}`, found `{own}`"))
            };
            let mut names = found.iter().zip(types);
            let other = names.find_map(|(name, types)| Some((name, other(types)?)));
            let Some((name, what)) = other else {
                return;
            };
            format!(
                "`{name}` of `{}()` has another type: {what}",
                self.spec.name
            )
        } else {
            let (wanted, found) = (self.spec.parameters.join(", "), found.join(", "));
            format!(
                "`{}()` has other parameters: expected ({wanted}), found ({found})",
                self.spec.name
            )
        };
        self.mismatches.push(Mismatch {
            message,
            details: self.quote(&(function.start..function.body.start)),
            hint: format!(
                "look what the change means for the series, then mend `parameters` and what uses them at {}",
                self.spec.place
            ),
        });
    }

    /// Gives each statement of a block to a part, then checks that each part got what it needs.
    fn block(&mut self, nodes: &[Node<'_>], parts: &[PartSpec], inside: &str) {
        let source = self.source;
        let statements = source.statements(nodes);
        let mut owned: BTreeMap<&str, Vec<Claimed<'_, '_>>> = BTreeMap::new();
        let mut in_for: BTreeMap<&str, Vec<Name>> = BTreeMap::new();
        for statement in &statements {
            let Some(claim) = self.claim(statement, parts, inside) else {
                continue;
            };
            for name in &claim.in_for {
                if let Some((part, name)) = self.declared_in_for(name, parts, inside) {
                    in_for.entry(part).or_default().push(name);
                }
            }
            owned.entry(&claim.part.name).or_default().push(Claimed {
                statement,
                captures: claim.captures,
                names: claim.names,
            });
        }
        for part in parts {
            let claimed = owned.remove(part.name.as_str()).unwrap_or_default();
            let in_for = in_for.remove(part.name.as_str()).unwrap_or_default();
            self.count(part, &claimed, &in_for, &statements, inside);
            if let Some(first) = claimed.first().filter(|_| !part.parts.is_empty()) {
                self.nested(part, first.statement, &first.captures);
            } else if !part.parts.is_empty() {
                self.block(&[], &absent(&part.parts), inside);
            }
            self.parts.insert(part.name.clone(), self.part(&claimed));
        }
    }

    /// The part that declares a name in front of the `for` that declares it in the base; otherwise the mismatch is recorded.
    fn declared_in_for<'p>(
        &mut self,
        name: &InFor,
        parts: &'p [PartSpec],
        inside: &str,
    ) -> Option<(&'p str, Name)> {
        for part in parts {
            for (pattern, declares) in part.patterns.iter().map(Pattern::declares).enumerate() {
                let is_it = |known: &crate::syntax::Declared<'_>| {
                    known.name == name.name && known.value.is_none() && name.has_type_of(known)
                };
                if let Some(at) = declares.iter().position(is_it) {
                    return Some((&part.name, (pattern, at)));
                }
            }
        }
        let at = self.at(name.at);
        self.mismatches.push(Mismatch {
            message: format!(
                "{at}: the `for` declares `{}`, and no part of {inside} does so",
                name.shown()
            ),
            details: self.quote(&(name.at..name.at)),
            hint: format!(
                "look what the change means for the series, then mend the parts of `{}` at {}",
                self.spec.id, self.spec.place
            ),
        });
        None
    }

    /// The one part that a statement belongs to; otherwise the mismatch is recorded.
    fn claim<'p>(
        &mut self,
        statement: &Statement<'_>,
        parts: &'p [PartSpec],
        inside: &str,
    ) -> Option<Claim<'p>> {
        let mut objections = Vec::new();
        let mut claims = Vec::new();
        for rest in [false, true] {
            if claims.is_empty() {
                let candidates = parts.iter().filter(|part| part.rest == rest);
                claims = candidates
                    .filter_map(|part| self.claim_of(part, statement, &mut objections))
                    .collect();
            }
        }
        if claims.len() == 1 {
            return claims.pop();
        }
        let at = self.at(statement.node.start_byte());
        let (message, hint) = if claims.is_empty() {
            let hint = "decide what it means for the series, then let a part claim it";
            (
                format!("{at}: no part of {inside} claims this statement"),
                format!(
                    "{hint}: `[[function.part]]` of `{}` at {}",
                    self.spec.id, self.spec.place
                ),
            )
        } else {
            let names: Vec<_> = claims
                .iter()
                .map(|claim| format!("`{}` ({})", claim.part.name, claim.part.place))
                .collect();
            (
                format!(
                    "{at}: more than one part of {inside} claims this statement: {}",
                    names.join(", ")
                ),
                "make the patterns say which".to_owned(),
            )
        };
        let mut details = self.quote(&statement.range);
        details.extend(objections);
        if let Some(at) = first_error(statement.node) {
            details.push(format!(
                "the parser makes no sense of it at {}",
                self.at(at)
            ));
        }
        self.mismatches.push(Mismatch {
            message,
            details,
            hint,
        });
        None
    }

    fn claim_of<'p>(
        &self,
        part: &'p PartSpec,
        statement: &Statement<'_>,
        objections: &mut Vec<String>,
    ) -> Option<Claim<'p>> {
        let (captures, names, in_for) = self.wanted(part, statement)?;
        let foreign = part.calls.as_ref().and_then(|allowed| {
            called(self.source, statement.node)
                .into_iter()
                .find(|(name, _)| !allowed.contains(name))
        });
        if let Some((name, offset)) = foreign {
            objections.push(format!(
                "part `{}` would claim it, but it calls `{name}()` at {} ({})",
                part.name,
                self.at(offset),
                part.place
            ));
            return None;
        }
        if let Some(why) = self.out_of_bounds(part, statement, &captures) {
            objections.push(format!(
                "part `{}` would claim it, but its {why} ({})",
                part.name, part.place
            ));
            return None;
        }
        Some(Claim {
            part,
            captures,
            names,
            in_for,
        })
    }

    /// What a capture is that it must not be, and where.
    fn out_of_bounds(
        &self,
        part: &PartSpec,
        statement: &Statement<'_>,
        captures: &Captures,
    ) -> Option<String> {
        let captured = |name: &String| captures.get(name).map(|range| (name.clone(), range));
        for (allowed, (name, range)) in bounds(&part.only, captured) {
            let text = self.source.slice(range.clone());
            if !allowed
                .iter()
                .any(|allowed| same_tokens(allowed.as_bytes(), text))
            {
                let allowed: Vec<_> = allowed.iter().map(|text| format!("`{text}`")).collect();
                let (text, at) = (text.to_str_lossy(), self.at(range.start));
                let allowed = allowed.join(" or ");
                return Some(format!("`{name}` is `{text}` and not {allowed} at {at}"));
            }
        }
        for (banned, (name, range)) in bounds(&part.without, captured) {
            let steady = Steady {
                sees: self.sees,
                scope: &self.scope,
                varying: banned,
                calls: part.calls.as_deref().unwrap_or_default(),
            };
            let why = variation(self.source, statement.node, range, banned);
            if let Some((why, at)) = why.or_else(|| steady.objection(self.source, range)) {
                return Some(format!("`{name}` {why} at {}", self.at(at)));
            }
            let text = self.source.slice(range.clone());
            if let Some(field) = banned.iter().find(|banned| *text == banned.as_bytes()) {
                return Some(format!("`{name}` is `{field}` at {}", self.at(range.start)));
            }
        }
        None
    }

    /// What makes a statement one of a part's: it is what a pattern says, or it declares nothing but names of the part's patterns.
    fn wanted(
        &self,
        part: &PartSpec,
        statement: &Statement<'_>,
    ) -> Option<(Captures, Vec<Name>, Vec<InFor>)> {
        for (at, pattern) in part.patterns.iter().enumerate() {
            if let Some(whole) = pattern.claim(self.source, statement) {
                let names = pattern.declares();
                let are_known = names.iter().all(|known| !known.name.contains('$'));
                let all = (0..names.len()).filter(|_| are_known);
                let all = all.map(|name| (at, name)).collect();
                return Some((whole.captures, all, whole.in_for));
            }
        }
        let (names, captures) = names_in(&part.patterns, self.source, statement)?;
        Some((captures, names, Vec::new()))
    }

    fn count(
        &mut self,
        part: &PartSpec,
        claimed: &[Claimed<'_, '_>],
        in_for: &[Name],
        statements: &[Statement<'_>],
        inside: &str,
    ) {
        let names: Vec<_> = claimed
            .iter()
            .flat_map(|it| &it.names)
            .chain(in_for)
            .collect();
        if self.declares_all(part, &names, claimed, inside).is_none() {
            return;
        }
        let whole = claimed.iter().filter(|it| it.names.is_empty()).count();
        let in_pieces: BTreeSet<_> = names.iter().map(|(pattern, _)| pattern).collect();
        let wanted = match (part.count, whole + in_pieces.len()) {
            (Count::One, 1) | (Count::Optional, 0 | 1) | (Count::Any, _) => return,
            (Count::One, 0) => "one, found none",
            (Count::One, _) => "one, found more",
            (Count::Optional, _) => "at most one, found more",
        };
        let patterns: Vec<_> = part
            .patterns
            .iter()
            .map(|pattern| format!("`{}`", pattern.written()))
            .collect();
        let details = if claimed.is_empty() {
            nearest(self.source, &self.spec.file, part, statements)
        } else {
            claimed
                .iter()
                .flat_map(|it| self.quote(&it.statement.range))
                .collect()
        };
        self.mismatches.push(Mismatch {
            message: format!(
                "part `{}` of {inside}: expected {wanted} statement like {}",
                part.name,
                patterns.join(" or ")
            ),
            details,
            hint: format!("mend the part's patterns at {}", part.place),
        });
    }

    /// Whether a declaration that is there in pieces is there as a whole, each name once; otherwise the mismatch is recorded.
    fn declares_all(
        &mut self,
        part: &PartSpec,
        names: &[&Name],
        claimed: &[Claimed<'_, '_>],
        inside: &str,
    ) -> Option<()> {
        for (at, pattern) in part.patterns.iter().enumerate() {
            let times = |name| names.iter().filter(|it| **it == &(at, name)).count();
            let declares = pattern.declares();
            let times: Vec<_> = (0..declares.len()).map(times).collect();
            let is_whole = times.iter().all(|times| *times == 1);
            if is_whole || times.iter().all(|times| *times == 0) {
                continue;
            }
            let wrong = times
                .iter()
                .position(|times| *times != 1)
                .unwrap_or_default();
            let how = if times[wrong] == 0 {
                "not at all"
            } else {
                "more than once"
            };
            self.mismatches.push(Mismatch {
                message: format!(
                    "part `{}` of {inside}: `{}` is declared in pieces, and `{}` {how}",
                    part.name,
                    pattern.written(),
                    declares[wrong].name
                ),
                details: claimed
                    .iter()
                    .flat_map(|it| self.quote(&it.statement.range))
                    .collect(),
                hint: format!("mend the part's patterns at {}", part.place),
            });
            return None;
        }
        Some(())
    }

    /// Divides the `BODY` of a claimed statement.
    fn nested(&mut self, part: &PartSpec, statement: &Statement<'_>, captures: &Captures) {
        let body = captures.get(BODY).cloned().unwrap_or(0..0);
        let nodes = nodes_in(statement.node, &body);
        self.block(
            &nodes,
            &part.parts,
            &format!("part `{}` of `{}()`", part.name, self.spec.name),
        );
    }

    fn part(&self, claimed: &[Claimed<'_, '_>]) -> Part {
        let Some(Claimed {
            statement: first,
            captures,
            ..
        }) = claimed.first()
        else {
            return Part::default();
        };
        let text = |range: &Range<usize>| left_aligned(self.source, range);
        let texts = |first: String| {
            let others = claimed[1..].iter().map(|it| text(&it.statement.range));
            std::iter::once(first)
                .chain(others)
                .collect::<Vec<_>>()
                .join("\n")
        };
        Part {
            statements: claimed.len(),
            text: texts(text(&first.range)),
            code: texts(text(&(first.node.start_byte()..first.range.end))),
            captures: captures
                .iter()
                .map(|(name, range)| (name.clone(), text(range)))
                .collect(),
            identifiers: claimed
                .iter()
                .flat_map(|it| {
                    let node = it.statement.node;
                    identifiers(self.source, node, &node.byte_range())
                })
                .map(|(name, _)| name)
                .collect(),
            line: self.source.line(first.node.start_byte()),
        }
    }

    fn at(&self, offset: usize) -> String {
        format!("{}:{}", self.spec.file, self.source.line(offset))
    }

    fn quote(&self, range: &Range<usize>) -> Vec<String> {
        quote(self.source, &self.spec.file, range)
    }
}

/// What is said of each capture that is there, with the capture.
fn bounds<T>(
    said: &BTreeMap<String, Vec<String>>,
    captured: impl Fn(&String) -> Option<T>,
) -> impl Iterator<Item = (&Vec<String>, T)> {
    said.iter()
        .filter_map(move |(name, texts)| Some((texts, captured(name)?)))
}

/// Whether two texts differ in white space and comments at most.
fn same_tokens(one: &[u8], other: &[u8]) -> bool {
    token_texts(one).eq(token_texts(other))
}

/// Which names of the patterns a declaration declares, if it declares nothing else.
pub(crate) fn names_in(
    patterns: &[Pattern],
    source: &Source,
    statement: &Statement<'_>,
) -> Option<(Vec<Name>, Captures)> {
    let mut captures = Captures::new();
    let mut found: Vec<Option<Name>> = Vec::new();
    for (at, pattern) in patterns.iter().enumerate() {
        let (names, captured) = pattern.names_in(source, statement);
        captures.extend(captured);
        found.resize(found.len().max(names.len()), None);
        for (known, name) in found.iter_mut().zip(names) {
            *known = known.or(name.map(|name| (at, name)));
        }
    }
    let found: Option<Vec<Name>> = found.into_iter().collect();
    found
        .filter(|names| !names.is_empty())
        .map(|names| (names, captures))
}

/// Where the parser did not understand something below a node.
fn first_error(node: Node<'_>) -> Option<usize> {
    if node.is_error() || node.is_missing() {
        return Some(node.start_byte());
    }
    let mut cursor = node.walk();
    let mut wrong = node.children(&mut cursor).filter(Node::has_error);
    wrong.find_map(first_error)
}

/// The parts of something that is not there: each may be missing.
fn absent(parts: &[PartSpec]) -> Vec<PartSpec> {
    let missing = |part: &PartSpec| PartSpec {
        count: Count::Any,
        parts: absent(&part.parts),
        ..part.clone()
    };
    parts.iter().map(missing).collect()
}

/// The nodes of a capture: the outermost ones that lie in its range.
fn nodes_in<'a>(node: Node<'a>, range: &Range<usize>) -> Vec<Node<'a>> {
    if range.is_empty() {
        return Vec::new();
    }
    let mut cursor = node.walk();
    let inside =
        |child: &Node<'_>| range.start <= child.start_byte() && child.end_byte() <= range.end;
    let children: Vec<_> = node.children(&mut cursor).collect();
    let found: Vec<_> = children.iter().copied().filter(inside).collect();
    if found.iter().any(|child| child.start_byte() == range.start) {
        return found.into_iter().filter(Node::is_named).collect();
    }
    children
        .into_iter()
        .find_map(|child| Some(nodes_in(child, range)).filter(|nodes| !nodes.is_empty()))
        .unwrap_or_default()
}
