//! Holds the functions that a recipe builds on against its idea of them: every statement belongs to exactly one part.
//!
//! Hides the bookkeeping of conservation: what nothing claims, or two parts claim, becomes an error that names it.

mod effect;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bstr::ByteSlice;
use tree_sitter::Node;

use effect::{called, identifiers, variation};

use crate::pattern::{Captures, Pattern};
use crate::recipe::{Count, FunctionSpec, PartSpec};
use crate::syntax::{Function, Source, Statement, block_children};

/// The name of the capture that nested parts divide among them.
const BODY: &str = "BODY";

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
) -> Result<Parts, Vec<Mismatch>> {
    let mut division = Division {
        source,
        spec,
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
    parts: Parts,
    mismatches: Vec<Mismatch>,
}

/// A part's claim on a statement.
struct Claim<'a> {
    part: &'a PartSpec,
    captures: Captures,
}

impl Division<'_> {
    fn parameters(&mut self, function: &Function) {
        if function.parameters.iter().eq(&self.spec.parameters) {
            return;
        }
        let found: Vec<_> = function
            .parameters
            .iter()
            .map(ToString::to_string)
            .collect();
        let line = self.source.line(function.start);
        self.mismatches.push(Mismatch {
            message: format!("`{}()` has other parameters: expected ({}), found ({})", self.spec.name, self.spec.parameters.join(", "), found.join(", ")),
            details: vec![format!("{}:{line}: {}", self.spec.file, first_line(self.source, function.start..function.body.start))],
            hint: format!("look what the change means for the series, then mend `parameters` and what uses them at {}", self.spec.place),
        });
    }

    /// Gives each statement of a block to a part, then checks that each part got what it needs.
    fn block(&mut self, nodes: &[Node<'_>], parts: &[PartSpec], inside: &str) {
        let source = self.source;
        let statements = source.statements(nodes);
        let mut owned: BTreeMap<&str, Vec<(&Statement<'_>, Captures)>> = BTreeMap::new();
        for statement in &statements {
            if let Some(Claim { part, captures }) = self.claim(statement, parts, inside) {
                let claimed = owned.entry(&part.name).or_default();
                claimed.push((statement, captures));
            }
        }
        for part in parts {
            let claimed = owned.remove(part.name.as_str()).unwrap_or_default();
            self.count(part, &claimed, &statements, inside);
            if let Some((statement, _)) = claimed.first().filter(|_| !part.parts.is_empty()) {
                self.nested(part, statement, &claimed[0].1);
            } else if !part.parts.is_empty() {
                self.block(&[], &absent(&part.parts), inside);
            }
            self.parts.insert(part.name.clone(), self.part(&claimed));
        }
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
        let captures = part
            .patterns
            .iter()
            .find_map(|pattern| pattern.matches(self.source, statement))?;
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
        for (capture, banned) in &part.without {
            let range = captures.get(capture).cloned().unwrap_or(0..0);
            if let Some((why, offset)) = variation(self.source, statement.node, &range, banned) {
                objections.push(format!(
                    "part `{}` would claim it, but its `{capture}` {why} at {} ({})",
                    part.name,
                    self.at(offset),
                    part.place
                ));
                return None;
            }
        }
        Some(Claim { part, captures })
    }

    fn count(
        &mut self,
        part: &PartSpec,
        claimed: &[(&Statement<'_>, Captures)],
        statements: &[Statement<'_>],
        inside: &str,
    ) {
        let wanted = match (part.count, claimed.len()) {
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
                .flat_map(|(statement, _)| self.quote(&statement.range))
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

    fn part(&self, claimed: &[(&Statement<'_>, Captures)]) -> Part {
        let Some((first, captures)) = claimed.first() else {
            return Part::default();
        };
        let text = |range: &Range<usize>| left_aligned(self.source, range);
        let texts: Vec<_> = claimed
            .iter()
            .map(|(statement, _)| text(&statement.range))
            .collect();
        Part {
            statements: claimed.len(),
            text: texts.join("\n"),
            code: text(&(first.node.start_byte()..first.range.end)),
            captures: captures
                .iter()
                .map(|(name, range)| (name.clone(), text(range)))
                .collect(),
            identifiers: claimed
                .iter()
                .flat_map(|(statement, _)| {
                    identifiers(self.source, statement.node, &statement.node.byte_range())
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

/// The parts of something that is not there: each may be missing.
fn absent(parts: &[PartSpec]) -> Vec<PartSpec> {
    let missing = |part: &PartSpec| PartSpec {
        count: Count::Any,
        parts: absent(&part.parts),
        ..part.clone()
    };
    parts.iter().map(missing).collect()
}

/// A few lines of source, each with its file and line number.
#[must_use]
pub fn quote(source: &Source, file: &str, range: &Range<usize>) -> Vec<String> {
    const MOST: usize = 8;
    let first = source.line(range.start);
    let start = crate::syntax::line_start(source.text(), range.start);
    let lines: Vec<_> = source.text()[start..range.end].lines().collect();
    let shown = lines.iter().take(MOST).enumerate();
    let mut quoted: Vec<_> = shown
        .map(|(index, line)| format!("  {file}:{}: {}", first + index, line.as_bstr()))
        .collect();
    if lines.len() > MOST {
        quoted.push(format!("  ... and {} more lines", lines.len() - MOST));
    }
    quoted
}

/// The statements that look most like what a part wants.
fn nearest(
    source: &Source,
    file: &str,
    part: &PartSpec,
    statements: &[Statement<'_>],
) -> Vec<String> {
    let candidates = statements.iter().map(|statement| {
        (
            source.slice(statement.node.byte_range()).to_string(),
            statement.node.byte_range(),
        )
    });
    closest(
        &part
            .patterns
            .iter()
            .map(Pattern::written)
            .collect::<Vec<_>>(),
        candidates,
    )
    .into_iter()
    .flat_map(|range| quote(source, file, &range))
    .collect()
}

/// The heads of the functions whose names resemble `name` most.
#[must_use]
pub fn similar_functions(source: &Source, file: &str, name: &str) -> Vec<String> {
    let functions = source
        .layout()
        .map(|(name, definition)| (name.to_string(), definition.head()));
    let near = closest(&[name], functions);
    near.into_iter()
        .flat_map(|head| quote(source, file, &head))
        .collect()
}

/// Of the candidates, the (at most three) that resemble one of the `wanted` texts most, the best first.
pub fn closest<T>(wanted: &[&str], candidates: impl Iterator<Item = (String, T)>) -> Vec<T> {
    const MOST: usize = 3;
    const LEAST: f32 = 0.4;
    let ratio = |a: &str, b: &str| similar::TextDiff::from_chars(a, b).ratio();
    let mut scored: Vec<_> = candidates
        .map(|(text, candidate)| {
            (
                wanted
                    .iter()
                    .map(|wanted| ratio(wanted, &text))
                    .fold(0.0, f32::max),
                candidate,
            )
        })
        .filter(|(score, _)| *score >= LEAST)
        .collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    scored
        .into_iter()
        .take(MOST)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// A range of source with the first line's indentation taken from every line.
#[must_use]
pub fn left_aligned(source: &Source, range: &Range<usize>) -> String {
    let indentation =
        source.text()[crate::syntax::line_start(source.text(), range.start)..].to_vec();
    let indentation: Vec<u8> = indentation
        .into_iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .collect();
    let lines = source.text()[range.clone()]
        .lines()
        .map(|line| line.strip_prefix(&indentation[..]).unwrap_or(line));
    let lines: Vec<_> = lines
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    lines.join("\n")
}

fn first_line(source: &Source, range: Range<usize>) -> String {
    source
        .slice(range)
        .lines()
        .next()
        .map(|line| line.to_str_lossy().into_owned())
        .unwrap_or_default()
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
        // Comments behind the last statement, or in front of the first, belong to the body too.
        return children.into_iter().filter(Node::is_named).collect();
    }
    children
        .into_iter()
        .find_map(|child| Some(nodes_in(child, range)).filter(|nodes| !nodes.is_empty()))
        .unwrap_or_default()
}
