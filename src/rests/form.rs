//! The form of a definition: what it says, without comments and layout, as digests that can be kept where the text itself must not be.
//!
//! A form is a digest of everything, to be compared, and a short one of each piece (up to `;`, `{` or `}`), so that a person can be
//! shown which pieces of a definition are not those that were proven.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::digest::digest;
use crate::index::Found;
use crate::index::lex::{Token, tokens_in};

/// How many digits of a digest tell one form from another.
const DIGITS: usize = 16;
/// The same for a piece, which is only shown.
const PIECE_DIGITS: usize = 6;

/// A form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// A digest of all of it.
    pub id: String,
    /// A short digest of each piece, in order.
    pub pieces: Vec<String>,
}

/// A piece of a definition in its file.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) range: Range<usize>,
    pub(super) id: String,
}

/// The form of these definitions of one name: all of them, in whatever order they were found.
pub(super) fn form(definitions: &[&Found]) -> Form {
    let mut texts: Vec<(Vec<u8>, Vec<String>)> = definitions
        .iter()
        .map(|found| {
            let pieces = pieces(found).into_iter().map(|piece| piece.id);
            let conditions = found
                .definition
                .conditions
                .iter()
                .map(|it| condition_id(it));
            (canonical(found), conditions.chain(pieces).collect())
        })
        .collect();
    texts.sort();
    texts.dedup();
    let (texts, pieces): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
    Form::of(texts, pieces.concat())
}

/// The form of a text that is no definition.
pub(super) fn text_form(text: &[u8]) -> Form {
    let tokens = tokens_in(text, 0..text.len());
    let pieces = runs(text, &tokens);
    let pieces = pieces.into_iter().map(|run| piece_id(text, run));
    Form::of(vec![joined(text, &tokens)], pieces.collect())
}

/// Tokens one way to write them: with one blank between.
pub(super) fn joined(text: &[u8], tokens: &[Token]) -> Vec<u8> {
    let words = tokens.iter().map(|token| token.text(text));
    words.collect::<Vec<_>>().join(&b' ')
}

/// Tokens up to each `;`, `{` or `}`.
fn runs<'t>(text: &[u8], tokens: &'t [Token]) -> Vec<&'t [Token]> {
    let ends = |token: &Token| matches!(token.text(text), b";" | b"{" | b"}");
    let runs = tokens.split_inclusive(ends);
    runs.filter(|run| !run.is_empty()).collect()
}

impl Form {
    pub(super) fn of(texts: Vec<Vec<u8>>, pieces: Vec<String>) -> Self {
        let id = digest(texts)[..DIGITS].to_owned();
        Self { id, pieces }
    }
}

/// A short digest of tokens.
pub(super) fn piece_id(text: &[u8], tokens: &[Token]) -> String {
    let words = tokens.iter().map(|token| token.text(text).to_vec());
    digest(words)[..PIECE_DIGITS].to_owned()
}

/// A short digest of an `#if` that a definition stands under.
pub(super) fn condition_id(condition: &str) -> String {
    digest([condition.as_bytes().to_vec()])[..PIECE_DIGITS].to_owned()
}

/// The pieces of a definition.
pub(super) fn pieces(found: &Found) -> Vec<Piece> {
    let text = &found.file.text;
    let tokens = tokens_in(text, found.definition.range.clone());
    let runs = runs(text, &tokens).into_iter();
    runs.map(|run| Piece {
        range: run[0].start..run[run.len() - 1].end,
        id: piece_id(text, run),
    })
    .collect()
}

/// The tokens of a definition with its kind and conditions, one way to write each.
fn canonical(found: &Found) -> Vec<u8> {
    let mut text = format!("{:?}\n", found.definition.kind).into_bytes();
    for condition in found.definition.conditions.iter() {
        text.extend_from_slice(condition.as_bytes());
        text.push(b'\n');
    }
    for token in tokens_in(&found.file.text, found.definition.range.clone()) {
        text.extend_from_slice(token.text(&found.file.text));
        text.push(b' ');
    }
    text
}
