//! What is proven: a base, the patches on it as commits, their mails and the settings.
//!
//! Hides the repository: everything that a gate reads later is read here, once, so that gates are plain data and threads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use bstr::{BString, ByteSlice};

use super::Name;
use super::settings::{Settings, Skip};
use crate::error::Refusal;
use crate::lab::{Files, safe_path};
use crate::mail::{self, Letters};
use crate::repo::{Base, Commit, ObjectId, Repo};
use crate::series::Series;

/// A series to prove.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The repository that holds the base.
    pub git_dir: PathBuf,
    /// What the series stands on.
    pub base: Base,
    /// Whether others can have the base's commit; asked where there are mails that may name it.
    pub official: bool,
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
    /// The file's name: `0001-slug.patch`.
    pub file_name: String,
    /// All of it.
    pub bytes: Vec<u8>,
    /// The patch's number in the series, from 1; 0 is the cover letter.
    pub number: usize,
}

impl Mail {
    /// What a patch is called that has no name but its mail's.
    pub(super) fn patch_name(&self) -> String {
        let name = Path::new(&self.file_name).file_stem();
        name.unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Subject {
    /// Reads what the gates need of these commits, each of which has the one before (the first: the base) as its parent.
    pub fn new(
        repo: &Repo,
        base: Base,
        patches: Vec<(String, ObjectId)>,
        mails: Vec<Mail>,
        letters: Letters,
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
            official: !mails.is_empty() && repo.is_official(&base)?,
            base_files: files(repo, base.tree_id, &paths)?,
            patches: patches.collect::<Result<_>>()?,
            base,
            mails,
            letters,
            settings,
            harness: None,
        })
    }

    /// Commits without mails: for what looks at code alone.
    pub fn without_mails(
        repo: &Repo,
        base: Base,
        patches: Vec<(String, ObjectId)>,
        settings: Settings,
    ) -> Result<Self> {
        let letters = Letters {
            cover: None,
            patches: Vec::new(),
            options: mail::Options::default(),
        };
        Self::new(repo, base, patches, Vec::new(), letters, settings)
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
        let (patches, mails) = (patches.collect(), mails.collect());
        Self::new(repo, series.base.clone(), patches, mails, letters, settings)
    }

    /// The number of a patch by its name or number, for settings that name one.
    pub(super) fn is_patch(&self, number: Option<usize>, name: &str) -> bool {
        number
            .and_then(|number| number.checked_sub(1))
            .is_some_and(|index| self.patches[index].name == name)
    }

    /// The entry that leaves a rule of a gate out for a patch, if one does.
    pub(super) fn left_out(&self, gate: Name, rule: &str, patch: Option<usize>) -> Option<&Skip> {
        let fits = |skip: &&Skip| {
            let name = skip.patch.as_deref();
            skip.gate == gate
                && skip.rule.as_deref() == Some(rule)
                && name.is_none_or(|name| self.is_patch(patch, name))
        };
        self.settings.skip.iter().find(fits)
    }

    /// The mail of patch `number`.
    pub(super) fn mail(&self, number: usize) -> Option<&Mail> {
        self.mails.iter().find(|mail| mail.number == number)
    }
}

fn files(repo: &Repo, tree_id: ObjectId, paths: &BTreeSet<BString>) -> Result<Files> {
    let read = |path: &BString| Ok((path.clone(), repo.file(tree_id, path.as_bstr())?));
    paths.iter().map(read).collect()
}
