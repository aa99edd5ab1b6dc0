//! A series that reroll did not make: the commits of a branch, a directory of patches, or an mbox.
//!
//! Hides how mails become commits, commits mails, and what a mail's words are.

use std::path::Path;

use anyhow::Result;
use bstr::ByteSlice;

use super::scratch::Scratch;
use super::settings::Settings;
use super::subject::{Mail, Subject};
use crate::diff::{self, FileDiff, Labels};
use crate::error::Refusal;
use crate::exec::Task;
use crate::mail::{self, Letters, Mailbox, Maker, Received, Tag, inbox};
use crate::repo::{Base, Commit, ObjectId, Repo};
use crate::temporary;

/// Mails in order; the cover letter, if any, is number 0.
#[derive(Debug, Clone)]
pub struct Mails {
    mails: Vec<Foreign>,
}

/// A mail, and what it says.
#[derive(Debug, Clone)]
struct Foreign {
    mail: Mail,
    read: Received,
    tag: Tag,
}

impl Mails {
    /// Those in a directory, or in an mbox.
    pub fn of_path(path: &Path) -> Result<Self> {
        let mut number = 0;
        let mut mails = Vec::new();
        for inbound in inbox::of_path(path)? {
            let is_cover = inbound.is_cover();
            number += usize::from(!is_cover);
            let number = if is_cover { 0 } else { number };
            let name = inbound.file.as_deref().and_then(Path::file_name);
            let name = name.map(|name| name.to_string_lossy().into_owned());
            let subject = inbound.read.subject.to_str_lossy();
            let mail = Mail {
                file_name: name.unwrap_or_else(|| mail::file_name("", number, &subject)),
                bytes: inbound.bytes,
                number,
            };
            mails.push(Foreign {
                mail,
                read: inbound.read,
                tag: inbound.tag,
            });
        }
        if number == 0 {
            return Err(Refusal::usage(format!("`{}` holds no patch", path.display())).into());
        }
        Ok(Self { mails })
    }

    /// The commit that the mails say they are for (`base-commit:`).
    #[must_use]
    pub fn base_commit(&self) -> Option<String> {
        let lines = self.mails.iter().flat_map(|it| it.mail.bytes.lines());
        let mut ids = lines.filter_map(|line| line.strip_prefix(b"base-commit: "));
        Some(ids.next()?.trim().to_str().ok()?.to_owned())
    }

    fn patches(&self) -> impl Iterator<Item = &Foreign> {
        self.mails.iter().filter(|it| it.mail.number > 0)
    }

    /// What they say, as far as it can be read back; the messages are the commits' own.
    fn letters(
        &self,
        repo: &Repo,
        base: &Base,
        commits: &[(String, Commit)],
        maker: Maker,
    ) -> Result<Letters> {
        let labels = Labels::of(base.tree_id);
        let mut before = base.tree_id;
        let mut patches = Vec::new();
        for ((name, commit), patch) in commits.iter().zip(self.patches()) {
            let files = diff::between(repo, before, commit.tree_id, &labels)?;
            before = commit.tree_id;
            patches.push(mail::Patch {
                name: name.clone(),
                commit: commit.clone(),
                files,
                notes: notes(&patch.read.rest),
            });
        }
        let first = self.mails.first();
        let bytes = first.map_or(&[][..], |it| &it.mail.bytes);
        let change_id = bytes
            .lines()
            .find_map(|line| line.strip_prefix(b"change-id: "));
        let change_id = change_id.and_then(|id| mail::ChangeId::parse(&id.to_str_lossy()).ok());
        let options = mail::Options {
            version: first.and_then(|it| it.tag.version),
            to: Mailbox::in_header(bytes, "To"),
            cc: Mailbox::in_header(bytes, "Cc"),
            base_commit: self.base_commit().and_then(|id| id.parse().ok()),
            change_id,
            maker,
            ..mail::Options::default()
        };
        let cover = self.mails.iter().find(|it| it.mail.number == 0);
        let files = diff::between(repo, base.tree_id, before, &labels)?;
        Ok(Letters {
            cover: cover.map(|it| read_cover(&it.read, files)),
            patches,
            options,
        })
    }

    fn into_subject(
        self,
        repo: &Repo,
        base: Base,
        patches: Vec<(String, ObjectId)>,
        settings: Settings,
        maker: Maker,
    ) -> Result<Subject> {
        let commits = patches
            .iter()
            .map(|(name, id)| Ok((name.clone(), repo.commit(*id)?)));
        let commits: Vec<_> = commits.collect::<Result<_>>()?;
        let letters = self.letters(repo, &base, &commits, maker)?;
        let mails = self.mails.into_iter().map(|it| it.mail).collect();
        Subject::new(repo, base, patches, mails, letters, settings)
    }
}

impl Subject {
    /// The commits from `base` to `tip` as a series, with the mails that git writes for them.
    pub fn from_branch(repo: &Repo, base: Base, tip: &str, settings: Settings) -> Result<Self> {
        let tip = repo.base(tip)?;
        let mut commits = Vec::new();
        let mut id = tip.commit_id;
        while id != base.commit_id {
            let commit = repo.commit(id)?;
            let [parent] = commit.parent_ids[..] else {
                return Err(Refusal::usage(format!(
                    "`{}` is no line of commits on top of `{}`: {id} has {} parents",
                    tip.rev,
                    base.rev,
                    commit.parent_ids.len()
                ))
                .hint("name with `--base` the commit that the series starts from")
                .into());
            };
            commits.push(id);
            id = parent;
        }
        commits.reverse();
        if commits.is_empty() {
            let message = format!("`{}` has no commit on top of `{}`", tip.rev, base.rev);
            return Err(Refusal::usage(message).into());
        }
        let mails = format_patch(repo, &base, &tip)?;
        let names: Vec<_> = mails.patches().map(|it| it.mail.patch_name()).collect();
        if names.len() != commits.len() {
            return Err(Refusal::usage(format!(
                "`{}` has a commit that changes nothing, of which there is no mail",
                tip.rev
            ))
            .hint("take it out of the branch")
            .into());
        }
        let patches = names.into_iter().zip(commits).collect();
        mails.into_subject(repo, base, patches, settings, Maker::Git)
    }

    /// Mails as a series: each is applied, as git applies mails, to the files of `base` that it touches. The commits go to `repo`, which may
    /// keep them in memory.
    pub fn from_mails(repo: &Repo, base: Base, mails: Mails, settings: Settings) -> Result<Self> {
        let scratch = Scratch::new()?;
        let mut parent = (base.commit_id, base.tree_id);
        let mut patches = Vec::new();
        for Foreign { mail, read, .. } in mails.patches() {
            for path in scratch.paths(&read.rest)? {
                if !scratch.has_seen(path.as_bstr())? {
                    scratch.add_missing(repo, base.tree_id, path.as_bstr())?;
                }
            }
            let commit = scratch.am(&mail.bytes)?.map_err(|lines| {
                Refusal::usage(format!(
                    "`{}` does not apply to `{}`",
                    mail.file_name, base.rev
                ))
                .details(lines)
                .hint("name its own base with `--base`")
            })?;
            parent = scratch.transplant(repo, parent, &commit)?;
            patches.push((mail.patch_name(), parent.0));
        }
        mails.into_subject(repo, base, patches, settings, Maker::Person)
    }
}

/// What stands between the `---` of a mail and its diffstat.
fn notes(rest: &[u8]) -> String {
    let mut lines = rest.lines();
    if lines.next() != Some(b"---") {
        return String::new();
    }
    let is_stat = |line: &&[u8]| {
        line.starts_with(b" ") && line.contains_str(" | ") || line.starts_with(b"diff ")
    };
    let notes: Vec<_> = lines.take_while(|line| !is_stat(line)).collect();
    bstr::join("\n", notes).to_str_lossy().trim().to_owned()
}

/// A cover letter's own words: its subject without the bracket, and its text up to the list of patches.
fn read_cover(read: &Received, files: Vec<FileDiff>) -> mail::Cover {
    let is_list = |line: &&[u8]| line.ends_with(b"):") && line.contains(&b'(');
    let blurb = read.message.lines();
    let blurb: Vec<_> = blurb
        .take_while(|line| !is_list(line) && *line != b"-- ")
        .collect();
    mail::Cover {
        subject: read.subject.to_str_lossy().into_owned(),
        blurb: bstr::join("\n", blurb).to_str_lossy().trim().to_owned(),
        files,
        notes: notes(&read.rest),
    }
}

/// The mails that git writes for the commits from `base` to `tip`, whatever the user has configured.
fn format_patch(repo: &Repo, base: &Base, tip: &Base) -> Result<Mails> {
    let dir = temporary::directory()?;
    Task::git_reading(repo.common_path())?
        .env("GIT_ATTR_SOURCE", base.tree_id.to_string())
        .args(["-c", "core.abbrev=12", "format-patch", "-q", "-o"])
        .arg(dir.path())
        .arg(format!("{}..{}", base.commit_id, tip.commit_id))
        .output()?;
    Mails::of_path(dir.path())
}
