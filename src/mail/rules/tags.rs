//! Rules about the tags of a message.
//!
//! Hides the order that tags stand in.

use std::sync::LazyLock;

use regex::Regex;

use super::Hit;
use super::letter::{Letter, Tag};
use crate::mail::Options;

static FIXES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"^[0-9a-f]{12,40} \("[^"].*"\)$"#).ok());
static PERSON: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^((.* )?<[^<>@ ]+@[^<>@ ]+>|[^<>@ ]+@[^<>@ ]+)( #.*)?$").ok());

const SIGN_OFF: &str = "Signed-off-by";

pub(super) fn sign_off_missing(letter: &Letter<'_>, _options: &Options) -> Vec<Hit> {
    let author = letter.author.as_deref().unwrap_or_default();
    if sign_offs(letter).any(|tag| tag.value == author) {
        return Vec::new();
    }
    let what = format!("there is no `{SIGN_OFF}: {author}`");
    vec![Hit::somewhere(what)]
}

pub(super) fn sign_off_last(letter: &Letter<'_>, options: &Options) -> Vec<Hit> {
    let sender = options.sender.as_ref();
    let sender = sender.map(|sender| format!("{} <{}>", sender.name, sender.email));
    let Some(sender) = sender.or_else(|| letter.author.clone()) else {
        return Vec::new();
    };
    match sign_offs(letter).last() {
        Some(last) if last.value != sender => {
            let what = format!("the last {SIGN_OFF} is not the sender's, `{sender}`");
            vec![Hit::line(last.line, what)]
        }
        _ => Vec::new(),
    }
}

pub(super) fn co_developed(letter: &Letter<'_>, _options: &Options) -> Vec<Hit> {
    let tags: Vec<Tag<'_>> = letter.tags().collect();
    let is_followed = |at: usize| {
        let next = tags.get(at + 1);
        next.is_some_and(|next| next.is(SIGN_OFF) && next.value == tags[at].value)
    };
    let found = tags.iter().enumerate();
    found
        .filter(|&(at, tag)| tag.is("Co-developed-by") && !is_followed(at))
        .map(|(_, tag)| {
            let what = format!("no `{SIGN_OFF}: {}` follows", tag.value);
            Hit::line(tag.line, what)
        })
        .collect()
}

pub(super) fn fixes_form(letter: &Letter<'_>, _options: &Options) -> Vec<Hit> {
    let is_wrong = |tag: &Tag<'_>| tag.is("Fixes") && !matches(FIXES.as_ref(), tag.value);
    hits(
        letter,
        is_wrong,
        "the tag is not in the form that tools read",
    )
}

pub(super) fn reported_by(letter: &Letter<'_>, _options: &Options) -> Vec<Hit> {
    let tags: Vec<Tag<'_>> = letter.tags().collect();
    let is_followed = |at: usize| {
        let mut rest = tags[at..].iter().skip_while(|tag| tag.is("Reported-by"));
        rest.next()
            .is_some_and(|tag| tag.is("Closes") || tag.is("Link"))
    };
    let found = tags.iter().enumerate();
    found
        .filter(|&(at, tag)| tag.is("Reported-by") && !is_followed(at))
        .map(|(_, tag)| Hit::line(tag.line, "no address of the report follows"))
        .collect()
}

pub(super) fn link_form(letter: &Letter<'_>, _options: &Options) -> Vec<Hit> {
    let is_link = |tag: &Tag<'_>| tag.is("Link") || tag.is("Closes");
    let is_public = |value: &str| {
        let host = value
            .strip_prefix("https://")
            .and_then(|it| it.split('/').next());
        host.is_some_and(|host| host.contains('.'))
    };
    let is_wrong = |tag: &Tag<'_>| is_link(tag) && !is_public(tag.value);
    hits(
        letter,
        is_wrong,
        "the address is not one that everybody can open",
    )
}

pub(super) fn address(letter: &Letter<'_>, _options: &Options) -> Vec<Hit> {
    // A tool has no address (the kernel's process/coding-assistants.rst).
    let names_person = |tag: &Tag<'_>| {
        tag.is("Cc") || tag.name.to_lowercase().ends_with("-by") && !tag.is("Assisted-by")
    };
    let is_wrong = |tag: &Tag<'_>| names_person(tag) && !matches(PERSON.as_ref(), tag.value);
    hits(letter, is_wrong, "the tag names no mail address")
}

pub(super) fn order(letter: &Letter<'_>, _options: &Options) -> Vec<Hit> {
    let tags: Vec<Tag<'_>> = letter.tags().collect();
    let ranks: Vec<usize> = (0..tags.len()).filter_map(|at| rank(&tags, at)).collect();
    let known = (0..tags.len()).filter(|&at| rank(&tags, at).is_some());
    let pairs = ranks.windows(2).zip(known.skip(1));
    pairs
        .filter(|(pair, _)| pair[0] > pair[1])
        .map(|(_, at)| {
            let what = format!("`{}` stands too late", tags[at].name);
            Hit::line(tags[at].line, what)
        })
        .collect()
}

/// Where a tag belongs; `None` for tags with no place of their own. What was collected stands above one's own sign-off where b4 adds it,
/// and below where the tip tree wants it, and links stand first or last: all of that is seen on the lists.
fn rank(tags: &[Tag<'_>], at: usize) -> Option<usize> {
    let name = tags[at].name.to_lowercase();
    Some(match name.as_str() {
        "fixes" => 0,
        "reported-by" | "closes" => 1,
        "suggested-by" => 2,
        "co-developed-by" => 3,
        "tested-by" | "reviewed-by" | "acked-by" => 4,
        _ => return None,
    })
}

pub(super) fn stable(letter: &Letter<'_>, _options: &Options) -> Vec<Hit> {
    if letter.tags().any(|tag| tag.is("Fixes")) {
        return Vec::new();
    }
    let is_stable = |tag: &Tag<'_>| tag.is("Cc") && tag.value.contains("stable@");
    hits(
        letter,
        is_stable,
        "stable is copied on a patch that fixes nothing",
    )
}

fn sign_offs<'a>(letter: &'a Letter<'_>) -> impl Iterator<Item = Tag<'a>> {
    letter.tags().filter(|tag| tag.is(SIGN_OFF))
}

fn hits(letter: &Letter<'_>, is_wrong: impl Fn(&Tag<'_>) -> bool, what: &str) -> Vec<Hit> {
    let wrong = letter.tags().filter(|tag| is_wrong(tag));
    wrong
        .map(|tag| Hit::line(tag.line, format!("`{}: {}`: {what}", tag.name, tag.value)))
        .collect()
}

fn matches(pattern: Option<&Regex>, text: &str) -> bool {
    pattern.is_some_and(|pattern| pattern.is_match(text))
}
