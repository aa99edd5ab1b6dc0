//! Proves that an edit's text means in its place what it says: names that it uses are declared there, names that it adds are new, and
//! what moves to another function takes nothing with it that stays behind.
//!
//! All of it is about names and control flow, and rests on no list of a recipe: whatever the base has done to a function, text that
//! would mean something else in it is refused.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::Result;
use bstr::ByteSlice;
use tree_sitter::Node;

use super::Anchor;
use crate::error::Refusal;
use crate::index::Kind;
use crate::recipe::{Action, EditSpec};
use crate::shape::quote;
use crate::syntax::{Function, Scope, Source, Use, mentions};

/// An edit that was made, and what can be known of names.
pub struct Moved<'a> {
    /// The edit.
    pub edit: &'a EditSpec,
    /// The path of the file.
    pub file: &'a str,
    /// The file before the patch.
    pub start: &'a Source,
    /// The file before.
    pub before: &'a Source,
    /// The file after.
    pub after: &'a Source,
    /// Where it landed.
    pub anchor: &'a Anchor,
    /// What a name is for code in the file: there, in the base's headers, or by the series so far; empty: nothing that can be seen.
    pub kinds: &'a dyn Fn(&str) -> Vec<Kind>,
    /// Takes names that nothing declares so far: a later edit of the patch may.
    pub pending: &'a dyn Fn(Pending),
    /// The same for what is not in the file itself.
    pub outside: &'a dyn Fn(&str) -> Vec<Kind>,
}

/// A name that a function uses and nothing declares so far.
#[derive(Debug)]
pub struct Pending {
    /// The name.
    pub name: String,
    /// Whether it is called.
    pub called: bool,
    /// What is wrong if nothing declares it in the end.
    pub error: anyhow::Error,
}

impl Pending {
    /// Whether a name that is all this will do.
    #[must_use]
    pub fn is_met_by(&self, kinds: &[Kind]) -> bool {
        fits(kinds, self.called)
    }
}

impl Moved<'_> {
    /// Proves it all.
    pub fn prove(&self) -> Result<()> {
        let changed = self.anchor.function_name();
        // What the base's function takes from outside is there, also for what is moved out of it.
        let origin = changed
            .map(|name| scope(self.before, name))
            .transpose()?
            .flatten();
        let origin = origin.map(|(_, scope)| scope).unwrap_or_default();
        for name in changed
            .into_iter()
            .chain(self.edit.defines.iter().map(String::as_str))
        {
            let before = scope(self.before, name)?;
            if let Some((_, scope)) = scope(self.after, name)? {
                let before = before.map(|(_, scope)| scope).unwrap_or_default();
                self.names_are_declared(name, [&before, &origin], &scope)?;
                self.names_are_new(name, &before, &scope)?;
            }
        }
        self.definitions_are_new()?;
        match &self.edit.action {
            Action::Extract { .. } => self.stays_whole(),
            Action::Replace(..) => self.loops_keep_their_ends(),
            _ => Ok(()),
        }
    }

    /// Names that a function did not take from outside before must be there to be taken.
    fn names_are_declared(
        &self,
        function: &str,
        [before, origin]: [&Scope; 2],
        after: &Scope,
    ) -> Result<()> {
        let known = before.free().chain(origin.free());
        let known: BTreeSet<&str> = known.map(|used| used.name.as_str()).collect();
        let new = after
            .free()
            .filter(|used| !known.contains(used.name.as_str()) && !used.member);
        for used in new {
            if is_given(&used.name)
                || fits(&(self.kinds)(&used.name), used.called)
                || self.is_used_elsewhere(&used.name)?
            {
                continue;
            }
            let lost = if before.declares(&used.name) {
                "it is not declared there on this base"
            } else {
                "nothing that can be seen there declares it on this base"
            };
            let message = format!(
                "in `{function}()`, edit `{}` uses `{}`, but {lost}",
                self.edit.name, used.name
            );
            let range = used.at..used.at + used.name.len();
            (self.pending)(Pending {
                name: used.name.clone(),
                called: used.called,
                error: self.refuse(message, self.after, &range),
            });
        }
        Ok(())
    }

    /// Whether the file as the patch found it takes a name from outside in any of its functions: then it is declared somewhere.
    fn is_used_elsewhere(&self, name: &str) -> Result<bool> {
        if self.start.mention(name).is_none() {
            return Ok(false);
        }
        for function in self.start.functions()? {
            let mentions = self.start.slice(function.body.clone()).contains_str(name);
            if mentions
                && Scope::of(self.start, &function)?
                    .free()
                    .any(|used| used.name == name)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Names that an edit declares in a function must not mean something there already.
    fn names_are_new(&self, function: &str, before: &Scope, after: &Scope) -> Result<()> {
        for declared in &after.declared {
            let twice = after.declared.iter().any(|other| {
                other.name == declared.name
                    && other.block == declared.block
                    && other.at < declared.at
            });
            let is_new = !before.declares(&declared.name);
            let taken = if twice {
                Some("declares a second time".to_owned())
            } else if !is_new {
                None
            } else if before.mentions(&declared.name) {
                Some("declares, though it is something else there already".to_owned())
            } else if (self.kinds)(&declared.name).contains(&Kind::Macro) {
                Some("declares, though it is a macro on this base".to_owned())
            } else {
                None
            };
            if let Some(taken) = taken {
                return Err(self.refuse(
                    format!(
                        "in `{function}()`, `{}` is a name that edit `{}` {taken}",
                        declared.name, self.edit.name
                    ),
                    self.after,
                    &(declared.at..declared.at + declared.name.len()),
                ));
            }
        }
        Ok(())
    }

    /// Functions that an edit defines must not be there in any form.
    fn definitions_are_new(&self) -> Result<()> {
        for name in &self.edit.defines {
            if let Some(at) = self.start.mention(name) {
                return Err(self.refuse(
                    format!(
                        "edit `{}` defines `{name}()`, but the name is in use in the file already",
                        self.edit.name
                    ),
                    self.start,
                    &(at..at + name.len()),
                ));
            }
            if let Some(kind) = (self.outside)(name).first() {
                return Err(taken(self.edit, name, *kind, self.file));
            }
        }
        self.macros_are_new()
    }

    /// Macros that an edit writes must not be there in any form, in the file or in what it includes.
    fn macros_are_new(&self) -> Result<()> {
        let macros = |source: &Source| -> Vec<String> {
            let found = crate::index::scan(source.text()).definitions.into_iter();
            let macros = found.filter(|it| matches!(it.kind, Kind::Macro | Kind::Call));
            macros.map(|it| it.name).collect()
        };
        let defines = |source: &Source| source.text().find_iter("define").count();
        if defines(self.after) <= defines(self.before) {
            return Ok(());
        }
        let (before, after) = (macros(self.before), macros(self.after));
        let count = |list: &[String], name: &String| list.iter().filter(|it| *it == name).count();
        for name in &after {
            let old = count(&before, name);
            if count(&after, name) <= old {
                continue;
            }
            if old > 0 {
                return Err(taken(self.edit, name, Kind::Macro, self.file));
            }
            if let Some(kind) = (self.outside)(name).first() {
                return Err(taken(self.edit, name, *kind, "a header of the file"));
            }
        }
        Ok(())
    }

    /// Statements that move to another function must end where they end, and mean the same there.
    fn stays_whole(&self) -> Result<()> {
        let Some(function) = &self.anchor.function else {
            return Ok(());
        };
        let range = self.anchor.range.clone();
        let block = function.block()?;
        if let Some((what, at)) = escape(block, &range, &range) {
            return Err(self.refuse(
                format!("edit `{}` moves statements of `{}()` to another function, but the `{what}` in them leads out of them", self.edit.name, function.name),
                self.before,
                &(at..at + what.len()),
            ));
        }
        let origin = Scope::of(self.before, function)?;
        let Some((_, helper)) = self
            .edit
            .defines
            .iter()
            .find_map(|name| scope(self.after, name).transpose())
            .transpose()?
        else {
            return Ok(());
        };
        let moved = origin.uses.iter().filter(|used| range.contains(&used.at));
        for used in moved {
            if let Some(why) = changes_meaning(used, &origin, &helper, &range) {
                return Err(self.refuse(
                    format!(
                        "edit `{}` moves statements of `{}()` to another function, where {why}",
                        self.edit.name, function.name
                    ),
                    self.before,
                    &(used.at..used.at + used.name.len()),
                ));
            }
        }
        Ok(())
    }

    /// A `break` or `continue` that is carried over must still belong to the loop or `switch` that it belonged to.
    fn loops_keep_their_ends(&self) -> Result<()> {
        let Some(function) = &self.anchor.function else {
            return Ok(());
        };
        let matched = self.anchor.range.clone();
        for range in &self.anchor.ranges {
            if let Some((what @ ("break" | "continue"), at)) =
                escape(function.block()?, range, &matched)
            {
                return Err(self.refuse(
                    format!("edit `{}` puts another loop around statements of `{}()`, but the `{what}` in them means the base's own", self.edit.name, function.name),
                    self.before,
                    &(at..at + what.len()),
                ));
            }
        }
        Ok(())
    }

    fn refuse(&self, message: String, source: &Source, range: &Range<usize>) -> anyhow::Error {
        let mut details = quote(source, self.file, range);
        if std::ptr::eq(source, self.after) {
            details.push("  the line is counted in the file as the edit would leave it".to_owned());
        }
        Refusal::drift(message)
            .details(details)
            .hint(format!(
                "look what the base changed, then mend {}",
                self.edit.place
            ))
            .into()
    }
}

/// Whether a name is the compiler's own, or one that kbuild defines for every file.
fn is_given(name: &str) -> bool {
    const PREFIXES: [&str; 5] = ["__builtin_", "__atomic_", "__sync_", "CONFIG_", "KBUILD_"];
    const NAMES: [&str; 7] = [
        "__func__",
        "__FUNCTION__",
        "__LINE__",
        "__FILE__",
        "__COUNTER__",
        "__VA_ARGS__",
        "typeof",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name)
}

/// Whether a name that is all this can be used: a macro with parameters only where it is called.
fn fits(kinds: &[Kind], called: bool) -> bool {
    kinds.iter().any(|kind| called || *kind != Kind::Call)
}

/// Why a name means something else in the function that it moves to.
fn changes_meaning(
    used: &Use,
    origin: &Scope,
    helper: &Scope,
    moved: &Range<usize>,
) -> Option<String> {
    let name = &used.name;
    if matches!(
        name.as_str(),
        "__func__" | "__FUNCTION__" | "__PRETTY_FUNCTION__"
    ) {
        return Some(format!("`{name}` is another name"));
    }
    let there = helper
        .declared
        .iter()
        .find(|declared| declared.name == *name);
    let Some(declared) = used.declared.map(|number| &origin.declared[number]) else {
        return there.map(|_| format!("`{name}` is not what it is here, but a variable"));
    };
    if moved.contains(&declared.at) {
        return None;
    }
    if used.written {
        return Some(format!("a change of `{name}` is lost"));
    }
    match there {
        None => Some(format!("there is no `{name}`")),
        Some(there) if plain(&there.kind) != plain(&declared.kind) => Some(format!(
            "`{name}` is `{}`, but here it is `{}`",
            there.kind, declared.kind
        )),
        Some(_) => None,
    }
}

/// A type without what does not matter where its value is passed on.
fn plain(kind: &str) -> String {
    let words = kind.split_whitespace();
    let matters = |word: &&str| *word != "const" || kind.contains('*');
    let mut words: Vec<_> = words.filter(matters).collect();
    if words
        .iter()
        .any(|word| matches!(*word, "long" | "short" | "unsigned"))
    {
        words.retain(|word| *word != "int");
    }
    if !kind.contains('*') {
        words.sort_unstable();
    }
    words.join(" ")
}

/// The first statement in a range that leads out of it: a `return`, a `goto` or a label, or a `break` or `continue` of something that is
/// `within` a wider range but not in this one.
fn escape(
    block: Node<'_>,
    range: &Range<usize>,
    within: &Range<usize>,
) -> Option<(&'static str, usize)> {
    let mut open = vec![block];
    let mut found: Option<(&'static str, usize)> = None;
    while let Some(node) = open.pop() {
        let inside = range.start <= node.start_byte() && node.end_byte() <= range.end;
        let what = match node.kind() {
            "return_statement" => Some("return"),
            "goto_statement" => Some("goto"),
            "labeled_statement" => Some("label"),
            "break_statement" => leaves(node, range, within, true).then_some("break"),
            "continue_statement" => leaves(node, range, within, false).then_some("continue"),
            _ => None,
        };
        if let Some(what) = what.filter(|_| inside) {
            let first = found.is_none_or(|(_, at)| node.start_byte() < at);
            found = if first {
                Some((what, node.start_byte()))
            } else {
                found
            };
        }
        let mut cursor = node.walk();
        open.extend(node.children(&mut cursor));
    }
    found
}

/// Whether a `break` (or a `continue`) belongs to something outside of `range` that is `within` the wider one, or that is not there.
fn leaves(node: Node<'_>, range: &Range<usize>, within: &Range<usize>, is_break: bool) -> bool {
    let mut around = std::iter::successors(node.parent(), Node::parent);
    let owner = around.find(|it| {
        matches!(
            it.kind(),
            "for_statement" | "while_statement" | "do_statement"
        ) || is_break && it.kind() == "switch_statement"
    });
    let in_range = |node: &Node<'_>, range: &Range<usize>| {
        range.start <= node.start_byte() && node.end_byte() <= range.end
    };
    owner.is_none_or(|owner| {
        !in_range(&owner, range) && (range == within || in_range(&owner, within))
    })
}

/// The refusal of a name that a header has already.
#[must_use]
pub fn taken(edit: &EditSpec, name: &str, kind: Kind, file: &str) -> anyhow::Error {
    let (by, what) = (&edit.name, word(kind));
    Refusal::drift(format!(
        "edit `{by}` defines `{name}`, but {what} of that name can be seen in `{file}` on this base"
    ))
    .hint(format!("give it another name at {}", edit.place))
    .into()
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Macro | Kind::Call => "a macro",
        Kind::Function | Kind::Prototype => "a function",
        Kind::Tag | Kind::Type => "a type",
        Kind::Enumerator => "a constant",
        Kind::Variable | Kind::Generated => "a definition",
    }
}

impl Source {
    /// Where `name` is mentioned in code.
    pub(crate) fn mention(&self, name: &str) -> Option<usize> {
        self.text().find(name)?;
        mentions(self.text(), name).into_iter().next()
    }
}

/// The function of this name, and what its names mean.
fn scope(source: &Source, name: &str) -> Result<Option<(Function, Scope)>> {
    let found = source.functions_named(name)?.into_iter().next();
    found
        .map(|function| Ok((function.clone(), Scope::of(source, &function)?)))
        .transpose()
}
