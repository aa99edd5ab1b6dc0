//! What is proven: a base, the patches on it as commits, their mails and the settings.
//!
//! Hides the repository: everything that a gate reads later is read here, once, so that gates are plain data and threads.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bstr::{BString, ByteSlice};
use mailparse::{MailAddr, MailHeaderMap};

use super::scratch::Scratch;
use super::settings::Settings;
use crate::diff::{self, FileDiff, Labels};
use crate::error::Refusal;
use crate::exec::Task;
use crate::lab::{Files, safe_path};
use crate::mail::{self, Letters, Mailbox};
use crate::repo::{Base, Commit, ObjectId, Repo};
use crate::series::Series;
use crate::temporary;

/// A series to prove.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The repository that holds the base.
    pub git_dir: PathBuf,
    /// What the series stands on.
    pub base: Base,
    /// The paths that any patch touches, as the base has them.
    pub base_files: Files,
    /// The patches, first to last.
    pub patches: Vec<Patch>,
    /// The mails as they would be sent; a cover letter has no patch.
    pub mails: Vec<Mail>,
    /// The same as data, for the rules about their words.
    pub letters: Letters,
    /// The recipe's `[check]`.
    pub settings: Settings,
    /// Where the harness that the settings name was found.
    pub harness: Option<PathBuf>,
}

/// One patch of a series.
#[derive(Debug, Clone)]
pub struct Patch {
    /// Its name: `0001-factor-helpers`.
    pub name: String,
    /// Its commit.
    pub commit: Commit,
    /// Every path that the series touches, as it is after this patch.
    pub files: Files,
}

/// One mail of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The file's name: `v1-0001-slug.patch`.
    pub file_name: String,
    /// All of it.
    pub bytes: Vec<u8>,
    /// The patch's number in the series, from 1; 0 is the cover letter.
    pub number: usize,
}

impl Subject {
    /// Reads what the gates need of these commits, each of which has the one before (the first: the base) as its parent.
    pub fn new(
        repo: &Repo,
        base: Base,
        patches: Vec<(String, ObjectId)>,
        mails: Vec<Mail>,
        settings: Settings,
    ) -> Result<Self> {
        settings.validate()?;
        anyhow::ensure!(settings.open.is_empty(), "the settings are of no base yet");
        let mut paths = BTreeSet::new();
        let mut parent = (base.commit_id, base.tree_id);
        let mut commits = Vec::new();
        for (name, id) in patches {
            let commit = repo.commit(id)?;
            if commit.parent_ids != [parent.0] {
                return Err(Refusal::usage(format!(
                    "patch `{name}` ({id}) does not stand on {}",
                    parent.0
                ))
                .hint("a series is a line of commits without merges, from the base on")
                .into());
            }
            paths.extend(repo.changed_paths(parent.1, commit.tree_id)?);
            parent = (id, commit.tree_id);
            commits.push((name, commit));
        }
        paths
            .iter()
            .try_for_each(|path| safe_path(path.as_bstr()))?;
        let letters = letters(repo, &base, &commits, &mails)?;
        let patches = commits.into_iter().map(|(name, commit)| {
            let files = files(repo, commit.tree_id, &paths)?;
            Ok(Patch {
                name,
                commit,
                files,
            })
        });
        Ok(Self {
            git_dir: repo.path().canonicalize()?,
            base_files: files(repo, base.tree_id, &paths)?,
            patches: patches.collect::<Result<_>>()?,
            base,
            mails,
            letters,
            settings,
            harness: None,
        })
    }

    /// A regenerated series with its mails. Settings that name patches by their numbers in the recipe come to name those of its mails.
    pub fn from_series(
        repo: &Repo,
        series: &Series,
        letters: Letters,
        mut settings: Settings,
    ) -> Result<Self> {
        settings.leave_out(series.merged);
        let first = usize::from(letters.cover.is_none());
        let mails = letters.compose()?.into_iter().enumerate();
        let mails = mails.map(|(index, mail)| Mail {
            file_name: mail.file_name,
            bytes: mail.bytes,
            number: index + first,
        });
        let patches = series.patches.iter();
        let patches = patches.map(|patch| (patch.name.clone(), patch.commit.id));
        let subject = Self::new(
            repo,
            series.base.clone(),
            patches.collect(),
            mails.collect(),
            settings,
        )?;
        Ok(Self { letters, ..subject })
    }

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
        let names = mails
            .iter()
            .map(|mail| mail.file_name.trim_end_matches(".patch").to_owned());
        let patches = names.zip(commits).collect();
        Self::new(repo, base, patches, mails, settings)
    }

    /// The `*.patch` files of a directory as a series: each is applied, as git applies mails, to the files of `base` that it touches. The
    /// commits go to `repo`, which may keep them in memory.
    pub fn from_directory(repo: &Repo, base: Base, dir: &Path, settings: Settings) -> Result<Self> {
        let mails = read_mails(dir)?;
        let scratch = Scratch::new()?;
        let mut parent = (base.commit_id, base.tree_id);
        let mut patches = Vec::new();
        for mail in mails.iter().filter(|mail| mail.number > 0) {
            for path in scratch.paths(&mail.bytes)? {
                if !scratch.has_seen(path.as_bstr())? {
                    scratch.add_missing(repo, base.tree_id, path.as_bstr())?;
                }
            }
            let name = mail.file_name.trim_end_matches(".patch").to_owned();
            let commit = scratch.am(&mail.bytes)?.map_err(|lines| {
                Refusal::usage(format!(
                    "`{}` does not apply to `{}`",
                    mail.file_name, base.rev
                ))
                .details(lines)
                .hint("name its own base with `--base`")
            })?;
            parent = scratch.transplant(repo, parent, &commit)?;
            patches.push((name, parent.0));
        }
        Self::new(repo, base, patches, mails, settings)
    }

    /// The number of a patch by its name or number, for settings that name one.
    pub(super) fn is_patch(&self, number: Option<usize>, name: &str) -> bool {
        number
            .and_then(|number| number.checked_sub(1))
            .is_some_and(|index| self.patches[index].name == name)
    }

    /// The mail of patch `number`.
    pub(super) fn mail(&self, number: usize) -> Option<&Mail> {
        self.mails.iter().find(|mail| mail.number == number)
    }
}

/// What the mails say, as far as it can be read back from them; the messages are the commits' own.
fn letters(
    repo: &Repo,
    base: &Base,
    commits: &[(String, Commit)],
    mails: &[Mail],
) -> Result<Letters> {
    let labels = Labels::of(base.tree_id);
    let mut before = base.tree_id;
    let mut patches = Vec::new();
    for (name, commit) in commits {
        let files = diff::between(repo, before, commit.tree_id, &labels)?;
        before = commit.tree_id;
        patches.push(mail::Patch {
            name: name.clone(),
            commit: commit.clone(),
            files,
            notes: String::new(),
        });
    }
    let first = mails.first().map_or(&[][..], |mail| &mail.bytes);
    let value = |name: &str| {
        let prefix = format!("{name}: ");
        let line = first
            .lines()
            .find_map(|line| line.strip_prefix(prefix.as_bytes()));
        line.map(|value| value.to_str_lossy().into_owned())
    };
    let options = mail::Options {
        to: recipients(first, "To"),
        cc: recipients(first, "Cc"),
        base_commit: value("base-commit").and_then(|id| id.parse().ok()),
        change_id: value("change-id").and_then(|id| mail::ChangeId::parse(&id).ok()),
        ..mail::Options::default()
    };
    let cover = mails.iter().find(|mail| mail.number == 0);
    let files = diff::between(repo, base.tree_id, before, &labels)?;
    Ok(Letters {
        cover: cover.map(|mail| read_cover(mail, files)),
        patches,
        options,
    })
}

/// Whom all header lines of this name address: folded, quoted and encoded as mail allows. What is no address is nobody's.
fn recipients(mail: &[u8], name: &str) -> Vec<Mailbox> {
    let Ok((headers, _)) = mailparse::parse_headers(mail) else {
        return Vec::new();
    };
    let lines = headers.get_all_headers(name).into_iter();
    let all = lines.filter_map(|header| mailparse::addrparse_header(header).ok());
    let singles = all.flat_map(|list| {
        let list = list.into_inner().into_iter();
        list.flat_map(|one| match one {
            MailAddr::Single(single) => vec![single],
            MailAddr::Group(group) => group.addrs,
        })
    });
    let mailbox = |one: mailparse::SingleInfo| Mailbox {
        name: one.display_name.unwrap_or_default(),
        email: one.addr,
    };
    singles.map(mailbox).collect()
}

/// A cover letter's own words: its subject without the bracket, and its text up to the list of patches.
fn read_cover(mail: &Mail, files: Vec<FileDiff>) -> mail::Cover {
    let (head, body) = mail
        .bytes
        .split_once_str("\n\n")
        .unwrap_or((&mail.bytes, b""));
    let headers = mailparse::parse_headers(head).map(|(headers, _)| headers);
    let subject = headers.ok().and_then(|it| it.get_first_value("Subject"));
    let subject = subject.unwrap_or_default();
    let subject = subject
        .split_once("] ")
        .map_or(&*subject, |(_, subject)| subject);
    let is_list = |line: &&[u8]| line.ends_with(b"):") && line.contains(&b'(');
    let blurb: Vec<_> = body
        .lines()
        .take_while(|line| !is_list(line) && *line != b"-- ")
        .collect();
    let blurb = bstr::join("\n", blurb).to_str_lossy().trim().to_owned();
    mail::Cover {
        subject: subject.to_owned(),
        blurb,
        files,
        notes: String::new(),
    }
}

fn files(repo: &Repo, tree_id: ObjectId, paths: &BTreeSet<BString>) -> Result<Files> {
    let read = |path: &BString| Ok((path.clone(), repo.file(tree_id, path.as_bstr())?));
    paths.iter().map(read).collect()
}

/// The mails that git writes for the commits from `base` to `tip`, whatever the user has configured.
fn format_patch(repo: &Repo, base: &Base, tip: &Base) -> Result<Vec<Mail>> {
    let dir = temporary::directory()?;
    Task::git_reading(repo.common_path())?
        .env("GIT_ATTR_SOURCE", base.tree_id.to_string())
        .args(["-c", "core.abbrev=12", "format-patch", "-q", "-o"])
        .arg(dir.path())
        .arg(format!("{}..{}", base.commit_id, tip.commit_id))
        .output()?;
    read_mails(dir.path())
}

/// The `*.patch` files of a directory in order; the cover letter, if any, is number 0.
fn read_mails(dir: &Path) -> Result<Vec<Mail>> {
    let unreadable = || Refusal::usage(format!("cannot read the patches in `{}`", dir.display()));
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).with_context(unreadable)? {
        let name = entry.with_context(unreadable)?.file_name();
        let name = name
            .into_string()
            .ok()
            .filter(|name| Path::new(name).extension() == Some("patch".as_ref()));
        names.extend(name);
    }
    names.sort();
    let mut number = 0;
    let mut mails = Vec::new();
    for file_name in names {
        let bytes = fs::read(dir.join(&file_name)).with_context(unreadable)?;
        let is_cover = file_name.ends_with("cover-letter.patch");
        number += usize::from(!is_cover);
        mails.push(Mail {
            file_name,
            bytes,
            number: if is_cover { 0 } else { number },
        });
    }
    if number == 0 {
        return Err(Refusal::usage(format!("there is no `*.patch` in `{}`", dir.display())).into());
    }
    Ok(mails)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_are_read_as_mail_has_them() {
        let mail = b"From: a@example.org\nTo: \"Doe, Jane\" <jane@example.org>,\n\tlist@example.org\nCc: =?UTF-8?q?J=C3=B6rg_=C3=96?= <j@example.org>\nCC: B <b@example.org>\nSubject: [PATCH] a\n\nTo: nobody@example.org\n";
        let shown = |name| -> Vec<String> {
            let found = recipients(mail, name).into_iter();
            found
                .map(|it| format!("{}|{}", it.name, it.email))
                .collect()
        };
        assert_eq!(
            shown("To"),
            ["Doe, Jane|jane@example.org", "|list@example.org"]
        );
        assert_eq!(
            shown("Cc"),
            ["J\u{f6}rg \u{d6}|j@example.org", "B|b@example.org"]
        );
        assert!(shown("Bcc").is_empty());
    }
}
