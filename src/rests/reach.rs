//! What code reaches: the definitions that it uses, and what those use, as far as the recipe follows them.
//!
//! Names are looked up as a compiler would see them, but in every configuration at once. Of a structure only the members count that the
//! code reached mentions, unless the recipe says that its layout does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::Result;

use super::form::{Form, form, joined, piece_id};
use crate::index::lex::{Kind as TokenKind, Token, tokens_in};
use crate::index::{Found, Index, Kind, is_keyword};
use crate::recipe::RestsSpec;

/// A definition that a series rests on.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its name; `struct x` for one with members.
    pub name: String,
    /// What it says on this base.
    pub form: Form,
    /// Where it is: `file:line`, the first of them if there are several.
    pub place: String,
    /// What led to it: the name of another item, or the series itself.
    pub by: String,
    /// What a person can be shown of it.
    pub said: Said,
}

/// What a person can be shown of an item.
#[derive(Debug, Clone)]
pub enum Said {
    /// The definitions of a name.
    Definitions(Vec<Found>),
    /// A text of the base, where it is no definition.
    Text(String),
    /// Nothing: only the form was kept, from another run.
    Nothing,
}

impl Item {
    fn of(name: &str, form: Form, by: &str, definitions: Vec<Found>) -> Self {
        let first = definitions.first();
        Self {
            name: name.to_owned(),
            form,
            place: first.map_or_else(String::new, |it| format!("{}:{}", it.path, it.line())),
            by: by.to_owned(),
            said: Said::Definitions(definitions),
        }
    }
}

/// Code that things are looked for from: a name for a person, its text, and the file that it is in, if any.
pub struct Root {
    /// What it is, for a person.
    pub name: String,
    /// Its text.
    pub text: Vec<u8>,
    /// The file that it is in: what is local to that file counts for it.
    pub path: Option<String>,
}

/// What code mentions.
#[derive(Default)]
struct Mentions {
    names: BTreeSet<String>,
    tags: BTreeSet<String>,
    members: BTreeSet<String>,
}

impl Mentions {
    /// Without the names of the members themselves: a function may have the same.
    fn without(mut self, members: &[Member]) -> Self {
        for member in members {
            self.names.remove(&member.name);
        }
        self
    }
}

struct Reach<'a, 'r> {
    index: &'a Index<'r>,
    spec: &'a RestsSpec,
    beyond: BTreeSet<&'a str>,
    /// The C files that the series' functions are in.
    own: BTreeSet<&'a str>,
    /// By name; tags are written with their keyword.
    items: BTreeMap<String, Item>,
    tags: BTreeSet<String>,
    members: BTreeSet<String>,
    /// Names that were looked up, or will be.
    seen: BTreeSet<String>,
    /// Names to look up, nearest first.
    open: VecDeque<Step>,
}

/// A name to look up.
struct Step {
    name: String,
    /// What led to it.
    by: String,
    /// The C file that it was in.
    path: Option<String>,
    /// How far from the series' own code it is.
    depth: usize,
}

/// Everything that `roots` reach, by name.
pub fn reach(index: &Index<'_>, spec: &RestsSpec, roots: &[Root]) -> Result<Vec<Item>> {
    let beyond = spec.beyond.iter().flat_map(|it| &it.names);
    let mut reach = Reach {
        index,
        spec,
        beyond: beyond.map(String::as_str).collect(),
        own: roots.iter().filter_map(|it| it.path.as_deref()).collect(),
        items: BTreeMap::new(),
        tags: BTreeSet::new(),
        members: BTreeSet::new(),
        seen: BTreeSet::new(),
        open: VecDeque::new(),
    };
    for root in roots {
        let tokens = tokens_in(&root.text, 0..root.text.len());
        let found = mentions(&root.text, &tokens);
        reach.mention(found, &root.name, root.path.as_deref(), 1);
    }
    let named = Mentions {
        names: spec.names.iter().cloned().collect(),
        ..Mentions::default()
    };
    reach.mention(named, "the recipe", None, 1);
    reach.tags.extend(spec.layouts.iter().cloned());
    reach.follow()?;
    Ok(reach.items.into_values().collect())
}

impl Reach<'_, '_> {
    fn mention(&mut self, mentions: Mentions, by: &str, path: Option<&str>, depth: usize) {
        if depth > self.spec.depth {
            return;
        }
        // A macro of a member's name takes the member's place.
        let hidden = mentions.members.iter().filter(|name| {
            let kinds = self.index.kinds(name);
            kinds.iter().any(|(kind, _)| *kind == Kind::Macro)
        });
        let names = mentions.names.iter().chain(hidden).cloned();
        let new = names.filter(|name| self.seen.insert(name.clone()));
        self.open.extend(new.map(|name| Step {
            name,
            by: by.to_owned(),
            path: path.map(str::to_owned),
            depth,
        }));
        self.tags.extend(mentions.tags);
        self.members.extend(mentions.members);
    }

    /// Follows names until there is none left, then the structures, whose members may lead to more names and members.
    fn follow(&mut self) -> Result<()> {
        loop {
            while let Some(step) = self.open.pop_front() {
                if !self.beyond.contains(step.name.as_str()) {
                    self.look_up(&step)?;
                }
            }
            let before = (self.tags.len(), self.members.len());
            for tag in self.tags.clone() {
                if !self.beyond.contains(tag.as_str()) {
                    self.structure(&tag)?;
                }
            }
            let after = (self.tags.len(), self.members.len());
            if before == after && self.open.is_empty() {
                return Ok(());
            }
        }
    }

    fn look_up(&mut self, step: &Step) -> Result<()> {
        let Step {
            name,
            by,
            path,
            depth,
        } = step;
        let all = self.index.definitions(name)?;
        let visible = all.into_iter().filter(|found| {
            found.definition.kind != Kind::Tag && self.is_visible(found, path.as_deref())
        });
        let mut definitions: Vec<_> = visible.collect();
        // A body says all that a prototype says.
        if definitions
            .iter()
            .any(|it| it.definition.kind != Kind::Prototype)
        {
            definitions.retain(|it| it.definition.kind != Kind::Prototype);
        }
        if definitions.is_empty() {
            return Ok(());
        }
        for found in &definitions {
            let range = found.definition.range.clone();
            let tokens = tokens_in(&found.file.text, range);
            let path = found.path.ends_with(".c").then_some(found.path.as_str());
            self.mention(mentions(&found.file.text, &tokens), name, path, depth + 1);
        }
        let form = form(&definitions.iter().collect::<Vec<_>>());
        let item = Item::of(name, form, by, definitions);
        self.items.insert(name.clone(), item);
        Ok(())
    }

    /// Whether code in the file at `path` can mean this definition: what another C file keeps to itself is none of its business. Code of no
    /// C file, a template's or a header's, means in the series' own files what they say.
    fn is_visible(&self, found: &Found, path: Option<&str>) -> bool {
        let is_there = match path {
            Some(path) => path == found.path,
            None => self.own.contains(found.path.as_str()),
        };
        if !found.path.ends_with(".c") || is_there {
            return true;
        }
        let is_static = tokens_in(found.text(), 0..found.text().len())
            .iter()
            .take_while(|token| !token.is(found.text(), "("))
            .any(|token| token.is(found.text(), "static"));
        found.definition.kind == Kind::Function && !is_static
    }

    /// A structure: all of it where the recipe rests on its layout, else the members that are used.
    fn structure(&mut self, tag: &str) -> Result<()> {
        let all = self.index.definitions(tag)?;
        let definitions: Vec<_> = all
            .into_iter()
            .filter(|it| it.definition.kind == Kind::Tag)
            .collect();
        let whole = self.spec.layouts.iter().any(|layout| layout == tag);
        let mut used = Vec::new();
        for found in &definitions {
            let text = &found.file.text;
            let tokens = tokens_in(text, found.definition.range.clone());
            let members = members(text, &tokens);
            if whole {
                let found = values(text, &tokens).without(&members);
                self.mention(found, &format!("struct {tag}"), None, 2);
            }
            for member in members {
                if whole || self.members.contains(&member.name) {
                    used.push((member, text));
                }
            }
        }
        if used.is_empty() {
            return Ok(());
        }
        let form = if whole {
            form(&definitions.iter().collect::<Vec<_>>())
        } else {
            let mut texts: Vec<_> = used
                .iter()
                .map(|(member, text)| joined(text, &member.tokens))
                .collect();
            texts.sort();
            texts.dedup();
            let pieces = used
                .iter()
                .map(|(member, text)| piece_id(text, &member.tokens));
            Form::of(texts, pieces.collect())
        };
        if !whole {
            for (member, text) in &used {
                let own = std::slice::from_ref(member);
                let found = values(text, &member.tokens).without(own);
                self.mention(found, &format!("struct {tag}"), None, self.spec.depth);
            }
        }
        let name = format!("struct {tag}");
        let item = Item::of(&name, form, "", definitions);
        self.items.insert(name, item);
        Ok(())
    }
}

/// The names, tags and members in a piece of code.
fn mentions(text: &[u8], tokens: &[Token]) -> Mentions {
    let mut found = Mentions::default();
    let mut before: &[u8] = b"";
    for token in tokens {
        let word = token.text(text);
        if token.kind == TokenKind::Word && !is_keyword(word) {
            let name = String::from_utf8_lossy(word).into_owned();
            match before {
                b"->" | b"." => found.members.insert(name),
                b"struct" | b"union" | b"enum" => found.tags.insert(name),
                _ => found.names.insert(name),
            };
        }
        before = word;
    }
    found
}

/// The same in members of a structure, where a pointer's type does not matter.
fn values(text: &[u8], tokens: &[Token]) -> Mentions {
    let mut found = mentions(text, tokens);
    for window in tokens.windows(3) {
        let is_tag = matches!(window[0].text(text), b"struct" | b"union");
        if is_tag && window[2].is(text, "*") {
            found
                .tags
                .remove(&*String::from_utf8_lossy(window[1].text(text)));
        }
    }
    found
}

/// A member of a structure.
struct Member {
    name: String,
    tokens: Vec<Token>,
}

/// The members of a structure, those of unnamed structures in it included.
fn members(text: &[u8], tokens: &[Token]) -> Vec<Member> {
    let open = tokens.iter().position(|token| token.is(text, "{"));
    let inner = open.map_or(&[][..], |open| &tokens[open + 1..]);
    let mut found = Vec::new();
    let ends = |token: &Token| matches!(token.text(text), b";" | b"{" | b"}");
    for run in inner.split(ends) {
        let mut names = Vec::new();
        for (index, token) in run.iter().enumerate() {
            let next = run.get(index + 1).map(|next| next.text(text));
            let named = matches!(
                next,
                None | Some(
                    b"," | b":" | b"[" | b")" | b"__aligned" | b"____cacheline_aligned_in_smp"
                )
            );
            if token.kind == TokenKind::Word && named && !is_keyword(token.text(text)) {
                names.push(String::from_utf8_lossy(token.text(text)).into_owned());
            }
        }
        found.extend(names.into_iter().map(|name| Member {
            name,
            tokens: run.to_vec(),
        }));
    }
    found
}
