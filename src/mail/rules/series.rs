//! Rules about the series as a whole: cover letter, versions, base, recipients.
//!
//! Hides how a mailing list is told from a person.

use std::collections::BTreeSet;

use super::{Context, Hit, Part};
use crate::mail::Mailbox;

/// The most patches of one series.
const MOST: usize = 15;
/// What a finding calls the cover letter.
const COVER: &str = "cover letter";

pub(super) fn cover_missing(context: &Context<'_>) -> Vec<Hit> {
    let what = "more than one patch, and no cover letter";
    hit_if(
        context.cover.is_none() && context.patches.len() > 1,
        Hit::somewhere(what),
    )
}

pub(super) fn generated(context: &Context<'_>) -> Vec<Hit> {
    let Some(cover) = context.cover else {
        return Vec::new();
    };
    let text = format!("{}\n{}", cover.blurb, cover.notes).to_lowercase();
    let tool = concat!("reroll ", env!("CARGO_PKG_VERSION"));
    let says = text.contains("generated") && text.contains(tool) && text.contains("recipe");
    let what = format!("the cover letter does not say `generated`, `{tool}` and `recipe`");
    hit_if(!says, Hit::somewhere(what).of(COVER.to_owned()))
}

pub(super) fn length(context: &Context<'_>) -> Vec<Hit> {
    let count = context.patches.len();
    let what = format!("{count} patches, {MOST} are the most that reviewers take");
    hit_if(count > MOST, Hit::somewhere(what))
}

pub(super) fn changelog(context: &Context<'_>) -> Vec<Hit> {
    let what = "a new version that does not say what changed";
    let says = !all_notes(context).trim().is_empty();
    hit_if(is_later_version(context) && !says, notes(what))
}

pub(super) fn version_link(context: &Context<'_>) -> Vec<Hit> {
    let what = "a new version without a link to the last one";
    let links = all_notes(context).contains("https://");
    hit_if(is_later_version(context) && !links, notes(what))
}

fn is_later_version(context: &Context<'_>) -> bool {
    context.options.version.is_some_and(|version| version > 1)
}

/// What changed may stand in the cover letter or under each patch.
fn all_notes(context: &Context<'_>) -> String {
    let cover = context.cover.map(|cover| cover.blurb.lines());
    let changes = cover.into_iter().flatten();
    // A cover letter without notes may have its history in the blurb.
    let changes = changes.skip_while(|line| !line.to_lowercase().starts_with("changes"));
    let mut text: String = changes.flat_map(|line| [line, "\n"]).collect();
    text += context.cover.map_or("", |cover| &cover.notes);
    text.extend(context.patches.iter().map(|patch| patch.notes.as_str()));
    text
}

pub(super) fn base_named(context: &Context<'_>) -> Vec<Hit> {
    let blurb = context.cover.map_or("", |cover| &cover.blurb);
    let notes = context.cover.map_or("", |cover| &cover.notes);
    let text = format!("{blurb}\n{notes}").to_lowercase();
    let named = ["based on", "applies to", "applies on"]
        .iter()
        .any(|phrase| text.contains(phrase));
    let what =
        "no base commit, and the cover letter does not say which release the series is based on";
    let named = named || context.options.base_commit.is_some();
    hit_if(!named, Hit::somewhere(what))
}

pub(super) fn change_id(context: &Context<'_>) -> Vec<Hit> {
    let what = "the series has no change id, so tools cannot tell its versions";
    hit_if(context.options.change_id.is_none(), Hit::options(what))
}

pub(super) fn recipients(context: &Context<'_>) -> Vec<Hit> {
    let what = "the series goes to nobody";
    hit_if(context.options.to.is_empty(), Hit::options(what))
}

pub(super) fn lists(context: &Context<'_>) -> Vec<Hit> {
    let what = "no mailing list gets the series";
    let options = context.options;
    let reached = options.to.iter().chain(&options.cc).any(is_list);
    hit_if(!reached, Hit::options(what))
}

/// By its host or its name: lists of the kernel live on few hosts, others are called `linux-...`.
fn is_list(mailbox: &Mailbox) -> bool {
    let (user, host) = mailbox.email.split_once('@').unwrap_or_default();
    let hosts = ["vger.kernel.org", "kvack.org", "lists.linux.dev"];
    hosts.contains(&host)
        || host.starts_with("lists.")
        || user.starts_with("linux-")
        || user.ends_with("-list")
}

pub(super) fn twice(context: &Context<'_>) -> Vec<Hit> {
    let mut seen = BTreeSet::new();
    let options = context.options;
    let all = options.to.iter().chain(&options.cc);
    all.filter(|mailbox| !seen.insert(mailbox.email.to_lowercase()))
        .map(|mailbox| Hit::options(format!("`{}` stands there twice", mailbox.email)))
        .collect()
}

fn notes(what: &str) -> Hit {
    Hit {
        part: Part::Notes,
        ..Hit::somewhere(what)
    }
}

fn hit_if(wrong: bool, hit: Hit) -> Vec<Hit> {
    wrong.then_some(hit).into_iter().collect()
}
