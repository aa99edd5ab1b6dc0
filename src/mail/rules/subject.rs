//! Rules about subjects.
//!
//! Hides how a verb's form is guessed.

use std::collections::BTreeMap;

use super::letter::Letter;
use super::{Context, Hit};

/// The longest summary, in characters.
const LONGEST: usize = 75;

/// Verbs that subjects begin with, whose third person is no order.
const VERBS: [&str; 40] = [
    "add",
    "allow",
    "avoid",
    "change",
    "clean",
    "convert",
    "correct",
    "create",
    "delete",
    "disable",
    "drop",
    "enable",
    "ensure",
    "export",
    "extend",
    "factor",
    "fix",
    "handle",
    "implement",
    "improve",
    "introduce",
    "make",
    "merge",
    "move",
    "optimize",
    "prepare",
    "prevent",
    "provide",
    "reduce",
    "remove",
    "rename",
    "replace",
    "rework",
    "set",
    "simplify",
    "speed",
    "split",
    "support",
    "update",
    "use",
];

/// Words that end like a participle and are none.
const NO_PARTICIPLES: [&str; 8] = [
    "bring", "embed", "feed", "need", "ring", "seed", "speed", "string",
];

pub(super) fn length(letter: &Letter<'_>) -> Vec<Hit> {
    let count = letter.subject().chars().count();
    let what = format!("the subject has {count} characters, {LONGEST} are allowed");
    hit_if(count > LONGEST, what)
}

pub(super) fn subsystem(letter: &Letter<'_>) -> Vec<Hit> {
    let prefix = letter.subject().split_once(": ");
    let what = "the subject names no subsystem";
    hit_if(prefix.is_none_or(|(prefix, _)| prefix.is_empty()), what)
}

pub(super) fn imperative(letter: &Letter<'_>) -> Vec<Hit> {
    let word = letter.summary().split(' ').next().unwrap_or_default();
    let lower = word.to_lowercase();
    let participle = (lower.ends_with("ing") || lower.ends_with("ed"))
        && !NO_PARTICIPLES.contains(&lower.as_str());
    let stems = [lower.strip_suffix('s'), lower.strip_suffix("es")];
    let person = stems.into_iter().flatten().any(|it| VERBS.contains(&it))
        || lower
            .strip_suffix("ies")
            .is_some_and(|stem| VERBS.contains(&format!("{stem}y").as_str()));
    let what = format!("`{word}` is no order");
    hit_if(participle || person, what)
}

pub(super) fn full_stop(letter: &Letter<'_>) -> Vec<Hit> {
    let what = "the subject ends in a full stop";
    hit_if(letter.subject().ends_with('.'), what)
}

pub(super) fn file_path(letter: &Letter<'_>) -> Vec<Hit> {
    let suffixes = [
        ".c", ".h", ".S", ".rs", ".dts", ".dtsi", ".py", ".sh", ".rst", ".txt",
    ];
    let is_path = |word: &&str| suffixes.iter().any(|suffix| word.ends_with(suffix));
    let words = letter.subject().split([' ', ':', ',']);
    words
        .filter(is_path)
        .map(|word| Hit::line(1, format!("the subject names the file `{word}`")))
        .collect()
}

pub(super) fn tool_name(letter: &Letter<'_>) -> Vec<Hit> {
    let tools = [
        "checkpatch",
        "checkpatch.pl",
        "coccinelle",
        "coccicheck",
        "coverity",
        "reroll",
        "smatch",
        "syzbot",
    ];
    let words = letter.subject().split([' ', ':', ',']);
    words
        .filter(|word| tools.contains(&word.to_lowercase().as_str()))
        .map(|word| Hit::line(1, format!("the subject names the tool `{word}`")))
        .collect()
}

pub(super) fn unique(context: &Context<'_>) -> Vec<Hit> {
    let mut seen: BTreeMap<&str, String> = BTreeMap::new();
    let mut hits = Vec::new();
    for letter in context.letters.iter().filter(|it| it.author.is_some()) {
        match seen.get(letter.subject()) {
            Some(first) => {
                let what = format!("the subject is that of {first}");
                hits.push(Hit::line(1, what).of(letter.name()));
            }
            None => drop(seen.insert(letter.subject(), letter.name())),
        }
    }
    hits
}

fn hit_if(wrong: bool, what: impl Into<String>) -> Vec<Hit> {
    wrong.then(|| Hit::line(1, what)).into_iter().collect()
}
