//! Options that say how the mails of a series look: who wrote it, who sends it, to whom.
//!
//! Hides how a recipe and the command line share that; `regen` and `check` make the very same mails.

use anyhow::Result;

use super::select::{command_line, option};
use crate::diff::{self, Labels};
use crate::error::Refusal;
use crate::mail::{self, ChangeId, Cover, Letters, Mailbox, Threading};
use crate::recipe::{self, Recipe};
use crate::repo::{Base, Repo, Signature};
use crate::series::{Options, Series};

/// How the mails look.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct LetterArgs {
    /// The version of the series [default: the recipe's]
    #[arg(short = 'v', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    reroll_count: Option<u32>,
    /// Who wrote the patches; git's own configuration is not asked
    #[arg(long, value_name = "NAME <ADDRESS>", env = "REROLL_AUTHOR")]
    author: Option<String>,
    /// Who sends the mails; an author who does not stands in the body
    #[arg(long, value_name = "NAME <ADDRESS>")]
    from: Option<String>,
    /// Add the author's Signed-off-by to each patch
    #[arg(short, long)]
    signoff: bool,
    /// The date of the patches (RFC 3339) [default: the recipe's, else the base's]
    #[arg(long, value_name = "DATE")]
    date: Option<String>,
    /// Say `RFC PATCH` in the subjects
    #[arg(long)]
    rfc: bool,
    /// Say `PATCH RESEND` in the subjects
    #[arg(long)]
    resend: bool,
    /// Add a recipient (also a list of the recipe's)
    #[arg(long, value_name = "ADDRESS")]
    to: Vec<String>,
    /// Add a copy
    #[arg(long, value_name = "ADDRESS")]
    cc: Vec<String>,
    /// Leave out message ids and threading
    #[arg(long)]
    no_thread: bool,
}

/// The command as it was typed, with an author.
pub(super) fn typed_again() -> String {
    let author = ["--author", "A U Thor <author@example.org>"].map(str::to_owned);
    let words: Vec<_> = std::env::args().skip(1).chain(author).collect();
    format!("`{}`, with your own name", command_line(&words))
}

impl LetterArgs {
    /// Whether the version was said.
    pub(super) fn has_version(&self) -> bool {
        self.reroll_count.is_some()
    }

    /// What a configuration says instead of a command line.
    pub(crate) fn of(author: Option<&str>, signoff: bool) -> Self {
        Self {
            author: author.map(str::to_owned),
            signoff,
            ..Self::default()
        }
    }

    /// The author, who has to be named; `how` says how, where nobody is.
    pub(crate) fn author(&self, recipe: &Recipe, how: impl Fn() -> String) -> Result<Mailbox> {
        let text = self.author.as_ref().or(recipe.series.author.as_ref());
        let text = text.ok_or_else(|| {
            Refusal::usage("nobody is named as the author of the patches").hint(format!(
                "{}; or set REROLL_AUTHOR, or `author` in {}/series.toml",
                how(),
                recipe.origin
            ))
        })?;
        Mailbox::parse_person(text)
    }

    /// Who is the author, and whether it is signed off, as words of a command line.
    pub(super) fn words(&self) -> Vec<String> {
        let signed = self.signoff.then(|| "--signoff".to_owned());
        [
            option("--author", self.author.clone()),
            signed.into_iter().collect(),
        ]
        .concat()
    }

    /// What regenerating asks for.
    pub(crate) fn options(
        &self,
        author: &Mailbox,
        recipe: &Recipe,
        base: &Base,
    ) -> Result<Options> {
        Ok(Options {
            author: self.signature(author, recipe, base)?,
            sign_off: self.signoff || recipe.series.sign_off,
            version: self.reroll_count.unwrap_or(recipe.series.version),
        })
    }

    fn signature(&self, author: &Mailbox, recipe: &Recipe, base: &Base) -> Result<Signature> {
        let date = self.date.as_ref().or(recipe.series.date.as_ref());
        let time = date.map_or(Ok(base.time), |date| recipe::time(date))?;
        Ok(Signature {
            name: author.name.clone().into(),
            email: author.email.clone().into(),
            time,
            offset: 0,
        })
    }

    /// The cover letter and the patches as they would be sent.
    pub(crate) fn letters(
        &self,
        repo: &Repo,
        recipe: &Recipe,
        series: &Series,
        options: &Options,
    ) -> Result<Letters> {
        let labels = Labels::of(series.base.tree_id);
        let mut before = series.base.tree_id;
        let mut patches = Vec::new();
        for patch in &series.patches {
            let files = diff::between(repo, before, patch.commit.tree_id, &labels)?;
            before = patch.commit.tree_id;
            patches.push(mail::Patch {
                name: patch.name.clone(),
                commit: patch.commit.clone(),
                files,
                notes: patch.notes.clone(),
            });
        }
        let cover = Cover {
            subject: recipe.series.title.clone(),
            blurb: series.blurb(),
            files: diff::between(repo, series.base.tree_id, before, &labels)?,
            notes: series.cover_notes.clone(),
        };
        let options = self.mail_options(repo, recipe, series, options)?;
        Ok(Letters {
            cover: Some(cover),
            patches,
            options,
        })
    }

    fn mail_options(
        &self,
        repo: &Repo,
        recipe: &Recipe,
        series: &Series,
        options: &Options,
    ) -> Result<mail::Options> {
        let mailboxes = |texts: &[&[String]]| {
            texts
                .iter()
                .copied()
                .flatten()
                .map(|text| Mailbox::parse_list(text))
                .collect::<Result<Vec<_>>>()
                .map(|lists| lists.concat())
        };
        let mut words: Vec<&str> = recipe.series.prefix.iter().map(String::as_str).collect();
        words.extend(self.rfc.then_some("RFC"));
        words.push("PATCH");
        words.extend(self.resend.then_some("RESEND"));
        Ok(mail::Options {
            // The first version has no number on the lists.
            version: Some(options.version).filter(|version| *version > 1),
            prefix: words.join(" "),
            sender: self
                .from
                .as_ref()
                .map(|from| Mailbox::parse(from))
                .transpose()?,
            to: mailboxes(&[&recipe.series.to, &self.to])?,
            cc: mailboxes(&[&recipe.series.cc, &self.cc])?,
            threading: if self.no_thread {
                Threading::None
            } else {
                Threading::Shallow
            },
            base_commit: repo
                .is_official(&series.base)?
                .then_some(series.base.commit_id),
            base_tree: Some(series.base.tree_id),
            change_id: Some(ChangeId::parse(&recipe.series.change_id)?),
            ..mail::Options::default()
        })
    }
}
