//! The kinds of drift: each a function that changes the files of a base, with what is expected of the series on it.
//!
//! Hides nothing: a kind is data. What it is judged by is in `judge`.

#![expect(clippy::too_many_lines, reason = "they are tables")]

mod applied;
mod callee;
mod captures;
mod constant;
mod moved;
mod names;
mod ordinary;
mod style;
mod users;

use crate::tree::{PAGE, RANGE, Tree};

/// A function that changes a base; `None` where that makes no sense on it.
pub(crate) type Make = fn(&mut Tree) -> Option<()>;

/// What a kind is about: the seven kinds of wrong results that were found first, and two of needless refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Group {
    Callee,
    Users,
    Moved,
    Captures,
    Constant,
    Names,
    Applied,
    Style,
    Ordinary,
}

impl Group {
    pub(crate) const ALL: [Self; 9] = [
        Self::Callee,
        Self::Users,
        Self::Moved,
        Self::Captures,
        Self::Constant,
        Self::Names,
        Self::Applied,
        Self::Style,
        Self::Ordinary,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Callee => "what is copied comes from elsewhere",
            Self::Users => "other users of what is changed",
            Self::Moved => "text that moves",
            Self::Captures => "captures",
            Self::Constant => "looks constant",
            Self::Names => "names",
            Self::Applied => "already applied",
            Self::Style => "style",
            Self::Ordinary => "ordinary drift",
        }
    }
}

/// What is expected of the series on a changed base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expects {
    /// Harmless: a person would be annoyed by a refusal.
    Carried,
    /// There is no right answer but no.
    Refused,
    /// Both will do; what is carried has to be right.
    Either,
}

/// A kind of drift.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) group: Group,
    pub(crate) expects: Expects,
    /// Whether "unproven" is as good as carried: something that the series rests on did change.
    pub(crate) unproven: bool,
    /// Whether the series is in the changed base, so that "already applied" is true.
    pub(crate) applied: bool,
    /// A function that is run and compared besides the usual one.
    pub(crate) entry: Option<&'static str>,
    /// A macro that is defined for every compilation: code that is built elsewhere is built here.
    pub(crate) define: Option<&'static str>,
    pub(crate) make: Make,
}

impl Kind {
    fn new(name: &'static str, expects: Expects, make: Make) -> Self {
        Self {
            name,
            group: Group::Ordinary,
            expects,
            unproven: expects != Expects::Carried,
            applied: false,
            entry: None,
            define: None,
            make,
        }
    }

    /// No change at all, for the judge's own test.
    pub(crate) fn nothing() -> Self {
        Self::new("nothing", Expects::Carried, |_| Some(()))
    }

    /// "Unproven" will do as well.
    fn or_unproven(mut self) -> Self {
        self.unproven = true;
        self
    }

    fn applied(mut self) -> Self {
        self.applied = true;
        self
    }

    fn entry(mut self, name: &'static str) -> Self {
        self.entry = Some(name);
        self
    }

    fn define(mut self, name: &'static str) -> Self {
        self.define = Some(name);
        self
    }
}

fn carried(name: &'static str, make: Make) -> Kind {
    Kind::new(name, Expects::Carried, make)
}

fn refused(name: &'static str, make: Make) -> Kind {
    Kind::new(name, Expects::Refused, make)
}

fn either(name: &'static str, make: Make) -> Kind {
    Kind::new(name, Expects::Either, make)
}

/// All kinds, by group.
pub(crate) fn all() -> Vec<Kind> {
    let groups = [
        (Group::Callee, callee::kinds()),
        (Group::Users, users::kinds()),
        (Group::Moved, moved::kinds()),
        (Group::Captures, captures::kinds()),
        (Group::Constant, constant::kinds()),
        (Group::Names, names::kinds()),
        (Group::Applied, applied::kinds()),
        (Group::Style, style::kinds()),
        (Group::Ordinary, ordinary::kinds()),
    ];
    let mut all = Vec::new();
    for (group, kinds) in groups {
        all.extend(kinds.into_iter().map(|kind| Kind { group, ..kind }));
    }
    all
}

// ------------------------------------------------------------------------------ what several groups build on

const FILE: &str = "mm/mm_init.c";
const INTERNAL: &str = "mm/internal.h";
const SINGLE: &str = "__init_single_page";

/// A statement of the page function that all bases have.
const DATA: &str = "\tpage->zone_device_data = NULL;\n";
/// A statement that is in the page function and in the loop over tails.
const COUNT: &str = "\t\tset_page_count(page, 0);\n";

/// A statement in the page function, behind the stores.
fn in_page(tree: &mut Tree, code: &str) -> Option<()> {
    tree.behind(PAGE, DATA, code)
}

/// A statement in the function that initializes any struct page.
fn in_single(tree: &mut Tree, code: &str) -> Option<()> {
    tree.behind(SINGLE, "\tpage_kasan_tag_reset(page);\n", code)
}

/// Declares what the judge counts the calls of.
fn declare_note(tree: &mut Tree, path: &str) -> Option<()> {
    tree.after_includes(
        path,
        "\nvoid note_device_page(struct page *page, unsigned long value);\n",
    )
}

/// Makes the reference count depend on something more.
fn count_if(tree: &mut Tree, condition: &str) -> Option<()> {
    if tree.by_switch() {
        let new = format!("\t\tif ({condition})\n\t\t\tset_page_count(page, 0);\n");
        return tree.within(PAGE, COUNT, &new);
    }
    let new = format!("(pgmap->type == MEMORY_DEVICE_COHERENT && ({condition})))");
    tree.within(PAGE, "pgmap->type == MEMORY_DEVICE_COHERENT)", &new)
}

/// The call that sets up one pageblock of this base.
fn one_block(tree: &Tree) -> &'static str {
    let ranges = tree.function("pageblock_migratetype_init_range");
    if ranges.is_some_and(|text| text.contains("init_pageblock_migratetype(")) {
        "init_pageblock_migratetype(page, MIGRATE_MOVABLE, false);"
    } else {
        "set_pageblock_migratetype(page, MIGRATE_MOVABLE);"
    }
}

/// Takes the set-up of the pageblocks out of the range function.
fn no_blocks_in_range(tree: &mut Tree) -> Option<()> {
    tree.edit_function(RANGE, |text| {
        let at = text.find("\tpageblock_migratetype_init_range(")?;
        let end = at + text[at..].find(";\n\n")? + 3;
        Some(format!("{}{}", &text[..at], &text[end..]))
    })
}

/// The shape of 7.1: the page function sets up the pageblock, page by page. `more` stands in the block, before or behind the call.
fn blocks_in_page(tree: &mut Tree, before: &str, behind: &str) -> Option<()> {
    let call = one_block(tree);
    no_blocks_in_range(tree)?;
    let block = format!("\n\tif (pageblock_aligned(pfn)) {{\n{before}\t\t{call}\n{behind}\t}}\n");
    tree.at_end(PAGE, &block)
}

/// The code of a function with the entry's parameters that sets up every page of a range by itself.
fn second_caller(name: &str) -> String {
    let parameters = "struct zone *zone, unsigned long start_pfn,\n\t\t\t\t unsigned long nr_pages, struct dev_pagemap *pgmap)";
    format!(
        "void {name}({parameters};\nvoid __ref {name}({parameters}\n{{\n\
         \tunsigned long pfn;\n\n\
         \tfor (pfn = start_pfn; pfn < start_pfn + nr_pages; pfn++)\n\
         \t\t__init_zone_device_page(pfn_to_page(pfn), pfn, zone_idx(zone),\n\
         \t\t\t\t\tzone->zone_pgdat->node_id, pgmap);\n}}\n"
    )
}
