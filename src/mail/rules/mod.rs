//! The conventions of kernel mail as named rules over what is to be sent.
//!
//! Hides how each rule reads messages and tags; nothing is refused here, a gate decides.
//!
//! The rules come from the kernel's `process/submitting-patches.rst`, `process/maintainer-tip.rst`,
//! `process/5.Posting.rst`, `process/stable-kernel-rules.rst` and `process/generated-content.rst`.
//! Carrying review tags over to a changed patch needs the version before, so it is not checked here.

mod letter;
mod series;
mod subject;
mod tags;
mod text;

use std::fmt;

use super::{Cover, Maker, Options, Patch};
use letter::Letter;

/// A rule that can be switched off by its name.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// What to do about what it finds.
    pub fix: &'static str,
    look: Look,
    /// It is about mails of this maker, and of those behind it.
    least: Maker,
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// Each patch, and the cover letter.
    Letter(fn(&Letter<'_>) -> Vec<Hit>),
    /// Each patch.
    Patch(fn(&Letter<'_>, &Options) -> Vec<Hit>),
    /// The series as a whole.
    Series(fn(&Context<'_>) -> Vec<Hit>),
}

/// Everything that is to be sent, read once.
struct Context<'a> {
    cover: Option<&'a Cover>,
    patches: &'a [Patch],
    options: &'a Options,
    /// The cover letter first, if there is one.
    letters: Vec<Letter<'a>>,
}

/// One thing found; a rule over the series says in which letter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hit {
    patch: Option<String>,
    part: Part,
    line: Option<usize>,
    what: String,
}

/// Something that a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule, in kebab-case.
    pub rule: &'static str,
    /// ``patch `NAME` ``, `cover letter`, or `series`.
    pub patch: String,
    /// Which part of it.
    pub part: Part,
    /// The line in that part, from 1; `None` where no line is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub fix: &'static str,
}

/// A part of a patch or of the cover letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The commit message, whose line 1 is the subject; of a cover letter, its subject and blurb.
    Message,
    /// The text below the `---`.
    Notes,
    /// The author, or the sender.
    Author,
    /// Recipients, prefix, signature.
    Options,
    /// The diff of this file.
    Diff(String),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message => f.write_str("message"),
            Self::Notes => f.write_str("notes"),
            Self::Author => f.write_str("author"),
            Self::Options => f.write_str("options"),
            Self::Diff(path) => write!(f, "diff of `{path}`"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.patch, self.part)?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        write!(f, ": {} ({})", self.what, self.rule)
    }
}

/// All rules, in the order they are run.
pub const RULES: [Rule; 31] = [
    letter(
        "subject-length",
        "shorten the summary to 75 characters",
        subject::length,
    ),
    letter(
        "subject-subsystem",
        "begin the subject with `subsystem: `",
        subject::subsystem,
    ),
    letter(
        "subject-imperative",
        "say what the patch does as an order: `add`, not `adds` or `added`",
        subject::imperative,
    ),
    letter(
        "subject-full-stop",
        "leave out the full stop",
        subject::full_stop,
    ),
    letter(
        "subject-file-path",
        "name the subsystem or function, not a file",
        subject::file_path,
    ),
    letter(
        "subject-tool-name",
        "say what was wrong, not what found it",
        subject::tool_name,
    ),
    series(
        Maker::Git,
        "subject-unique",
        "give each patch a summary of its own",
        subject::unique,
    ),
    letter("body-width", "wrap the text at 75 columns", text::width),
    patch(
        "body-missing",
        "say the problem and what the patch does about it",
        text::missing,
    ),
    letter(
        "body-this-patch",
        "say it as an order to the code: `add ...`",
        text::this_patch,
    ),
    letter(
        "placeholder",
        "fill it in or take it out",
        text::placeholder,
    ),
    letter(
        "scissors-line",
        "write the line differently",
        text::scissors,
    ),
    patch(
        "sign-off-missing",
        "add the author's Signed-off-by",
        tags::sign_off_missing,
    ),
    patch(
        "sign-off-last",
        "put the sender's Signed-off-by after all others",
        tags::sign_off_last,
    ),
    patch(
        "co-developed-sign-off",
        "follow each Co-developed-by by that person's Signed-off-by",
        tags::co_developed,
    ),
    patch(
        "fixes-form",
        "write `Fixes: <12 digits of the commit> (\"subject\")`, on one line",
        tags::fixes_form,
    ),
    patch(
        "reported-by-closes",
        "follow Reported-by by Closes or Link with the report's address",
        tags::reported_by,
    ),
    patch(
        "link-form",
        "give the https address of a public archive",
        tags::link_form,
    ),
    patch("tag-address", "write `Name <user@host>`", tags::address),
    patch(
        "tag-order",
        "sort the tags: Fixes, Reported-by, Closes, Suggested-by, Co-developed-by, Signed-off-by, Tested-by, Reviewed-by, Acked-by, Cc, Link",
        tags::order,
    ),
    patch(
        "stable-tag",
        "add Fixes, or leave stable out: a speed-up is no stable material",
        tags::stable,
    ),
    series(
        Maker::Person,
        "cover-missing",
        "write a cover letter",
        series::cover_missing,
    ),
    series(
        Maker::Recipe,
        "generated-content",
        "say in the cover letter that the series was generated, by which tool, version and recipe",
        series::generated,
    ),
    series(
        Maker::Git,
        "series-length",
        "send at most 15 patches at a time",
        series::length,
    ),
    series(
        Maker::Person,
        "version-changelog",
        "say below the `---` or in the cover letter what changed since the last version",
        series::changelog,
    ),
    series(
        Maker::Person,
        "version-link",
        "link to the last version in a public archive",
        series::version_link,
    ),
    series(
        Maker::Person,
        "base-named",
        "name the base: by its commit, or by its release in the cover letter (`based on ...`)",
        series::base_named,
    ),
    series(
        Maker::Recipe,
        "change-id-missing",
        "give the series a change id",
        series::change_id,
    ),
    series(
        Maker::Person,
        "recipients-missing",
        "add the maintainers as `To`",
        series::recipients,
    ),
    series(
        Maker::Person,
        "recipients-list",
        "copy the mailing lists",
        series::lists,
    ),
    series(
        Maker::Person,
        "recipients-twice",
        "name each recipient once",
        series::twice,
    ),
];

const fn letter(name: &'static str, fix: &'static str, look: fn(&Letter<'_>) -> Vec<Hit>) -> Rule {
    rule(Maker::Git, name, fix, Look::Letter(look))
}

const fn patch(
    name: &'static str,
    fix: &'static str,
    look: fn(&Letter<'_>, &Options) -> Vec<Hit>,
) -> Rule {
    rule(Maker::Git, name, fix, Look::Patch(look))
}

const fn series(
    least: Maker,
    name: &'static str,
    fix: &'static str,
    look: fn(&Context<'_>) -> Vec<Hit>,
) -> Rule {
    rule(least, name, fix, Look::Series(look))
}

const fn rule(least: Maker, name: &'static str, fix: &'static str, look: Look) -> Rule {
    Rule {
        name,
        fix,
        look,
        least,
    }
}

/// Everything that the conventions say against a series.
#[must_use]
pub fn check(cover: Option<&Cover>, patches: &[Patch], options: &Options) -> Vec<Finding> {
    let covers = cover.into_iter().map(Letter::of_cover);
    let context = Context {
        cover,
        patches,
        options,
        letters: covers.chain(patches.iter().map(Letter::of_patch)).collect(),
    };
    let apply = RULES.iter().filter(|rule| rule.least <= options.maker);
    apply.flat_map(|rule| rule.find(&context)).collect()
}

impl Rule {
    fn find(&self, context: &Context<'_>) -> Vec<Finding> {
        let letters = context.letters.iter();
        let named = |letter: &Letter<'_>, hits: Vec<Hit>| {
            let name = letter.name();
            let hits = hits.into_iter().map(move |hit| hit.of(name.clone()));
            hits.collect::<Vec<_>>()
        };
        let hits: Vec<Hit> = match self.look {
            Look::Letter(look) => letters.flat_map(|it| named(it, look(it))).collect(),
            Look::Patch(look) => letters
                .filter(|letter| letter.author.is_some())
                .flat_map(|it| named(it, look(it, context.options)))
                .collect(),
            Look::Series(look) => look(context),
        };
        hits.into_iter().map(|hit| self.finding(hit)).collect()
    }

    fn finding(&self, hit: Hit) -> Finding {
        Finding {
            rule: self.name,
            patch: hit.patch.unwrap_or_else(|| "series".to_owned()),
            part: hit.part,
            line: hit.line,
            what: hit.what,
            fix: self.fix,
        }
    }
}

impl Hit {
    /// In a line (from 1) of the message.
    fn line(line: usize, what: impl Into<String>) -> Self {
        Self {
            patch: None,
            part: Part::Message,
            line: Some(line),
            what: what.into(),
        }
    }

    /// In a letter, with no line to blame.
    fn somewhere(what: impl Into<String>) -> Self {
        Self {
            line: None,
            ..Self::line(0, what)
        }
    }

    /// In what the series is sent with.
    fn options(what: impl Into<String>) -> Self {
        Self {
            part: Part::Options,
            ..Self::somewhere(what)
        }
    }

    fn of(self, patch: String) -> Self {
        Self {
            patch: Some(patch),
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
