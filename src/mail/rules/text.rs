//! Rules about the text of messages.
//!
//! Hides what counts as prose.

use super::Hit;
use super::letter::Letter;
use crate::mail::Options;

/// The widest line of prose, in characters.
const WIDEST: usize = 75;

pub(super) fn width(letter: &Letter<'_>) -> Vec<Hit> {
    let is_wide = |line: &str| line.chars().count() > WIDEST && is_prose(line);
    lines_with(letter, |line| {
        let what = || format!("{} columns, {WIDEST} are allowed", line.chars().count());
        is_wide(line).then(what)
    })
}

/// Indented and quoted lines, tables, and what has no blank to break at are left as they are.
fn is_prose(line: &str) -> bool {
    !line.starts_with([' ', '\t', '>', '|', '[']) && !line.contains("://") && line.contains(' ')
}

pub(super) fn missing(letter: &Letter<'_>, _options: &Options) -> Vec<Hit> {
    if letter.body().any(|(_, line)| !line.trim().is_empty()) {
        return Vec::new();
    }
    vec![Hit::somewhere("the message has no text")]
}

pub(super) fn this_patch(letter: &Letter<'_>) -> Vec<Hit> {
    if letter.author.is_none() {
        return Vec::new();
    }
    let phrases = ["this patch", "this commit"];
    lines_with(letter, |line| {
        let lower = line.to_lowercase();
        let phrase = phrases.iter().find(|&phrase| lower.contains(phrase))?;
        Some(format!("the text says `{phrase}`"))
    })
}

pub(super) fn placeholder(letter: &Letter<'_>) -> Vec<Hit> {
    let marks = [
        "***", "TODO", "FIXME", "XXX", "TBD", "@{", "@%", "{{", "<insert", "EDITME",
    ];
    let find = |line: &str| marks.into_iter().find(|mark| line.contains(mark));
    let subject = find(letter.subject());
    let subject = subject.map(|mark| Hit::line(1, format!("`{mark}` was left in the subject")));
    let body = lines_with(letter, |line| {
        find(line).map(|mark| format!("`{mark}` was left in the text"))
    });
    subject.into_iter().chain(body).collect()
}

/// `git am --scissors` drops everything above such a line.
pub(super) fn scissors(letter: &Letter<'_>) -> Vec<Hit> {
    let marks = [">8", "8<", ">%", "%<"];
    lines_with(letter, |line| {
        let rest = marks
            .iter()
            .fold(line.to_owned(), |line, mark| line.replace(mark, ""));
        let only = rest.chars().all(|char| char == '-' || char == ' ');
        (rest != line && only && rest.contains('-'))
            .then(|| "`git am --scissors` cuts the message here".to_owned())
    })
}

fn lines_with(letter: &Letter<'_>, find: impl Fn(&str) -> Option<String>) -> Vec<Hit> {
    letter
        .body()
        .filter_map(|(at, line)| Some(Hit::line(at, find(line)?)))
        .collect()
}
