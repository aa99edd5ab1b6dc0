//! Where the files of a recipe are: on disk, or in this binary.
//!
//! Hides the difference from everything that reads a recipe.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use include_dir::{Dir, include_dir};

use crate::error::Refusal;
use crate::ui::shown_text;

static PATCHES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/patches");
static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates");

const UTF8: &str = "save it as UTF-8; the kernel's own files may have any bytes";

/// Where a recipe's files are.
pub(super) enum Files {
    Disk { series: PathBuf, templates: PathBuf },
    Embedded { name: String },
}

impl Files {
    pub(super) fn find(name: &str, dir: &Path) -> Result<Self> {
        let named = Path::new(name);
        let dir = if dir == Path::new(".") {
            Path::new("")
        } else {
            dir
        };
        let candidates = [dir.join(named), dir.join("patches").join(named)];
        if let Some(series) = candidates
            .into_iter()
            .find(|series| series.join("series.toml").is_file())
        {
            let own = series.join("templates");
            let shared = series
                .join("../../templates")
                .join(series.file_name().unwrap_or_default());
            let templates = if own.is_dir() { own } else { shared };
            return Ok(Self::Disk { series, templates });
        }
        if embedded().iter().any(|known| known == name) {
            return Ok(Self::Embedded {
                name: name.to_owned(),
            });
        }
        Err(Refusal::usage(format!(
            "there is no series `{}`",
            shown_text(name.as_bytes())
        ))
        .hint(format!(
            "`--series` takes a directory that holds a `series.toml`, or one of: {}",
            embedded().join(", ")
        ))
        .into())
    }

    /// A file of the series by its path below it; the label is what errors call it.
    pub(super) fn read(&self, path: &str) -> Result<(String, String)> {
        self.read_optional(path)?.ok_or_else(|| {
            Refusal::usage(format!("the recipe has no `{}`", self.label(path)))
                .hint("`series.toml` names the patches; each is a directory with `patch.toml` and `message.txt`")
                .into()
        })
    }

    /// The same for a file that need not be there.
    pub(super) fn read_optional(&self, path: &str) -> Result<Option<(String, String)>> {
        let bytes = match self {
            Self::Disk { series, .. } => match std::fs::read(series.join(path)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    let message = format!("cannot read `{}`: {error}", self.label(path));
                    return Err(Refusal::usage(message).into());
                }
                read => read.ok(),
            },
            Self::Embedded { name } => PATCHES
                .get_file(format!("{name}/{path}"))
                .map(|file| file.contents().to_vec()),
        };
        let label = self.label(path);
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let text = String::from_utf8(bytes)
            .map_err(|_| Refusal::usage(format!("`{label}` is not UTF-8")).hint(UTF8))?;
        Ok(Some((label, text)))
    }

    /// The directory of the series; `None` is this binary.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Disk { series, .. } => Some(series.clone()),
            Self::Embedded { .. } => None,
        }
    }

    /// What errors call a file.
    fn label(&self, path: &str) -> String {
        match self {
            Self::Disk { series, .. } => series.join(path).display().to_string(),
            Self::Embedded { name } => format!("patches/{name}/{path}"),
        }
    }

    /// All templates.
    pub(super) fn templates(&self) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        let mut add = |file: &Path, bytes: &[u8]| -> Result<()> {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if let Some(name) = name.strip_suffix(".tera") {
                let text = String::from_utf8(bytes.to_vec()).map_err(|_| {
                    Refusal::usage(format!("the template `{name}` is not UTF-8")).hint(UTF8)
                })?;
                found.insert(name.to_owned(), text);
            }
            Ok(())
        };
        match self {
            Self::Disk { templates, .. } => {
                let Ok(entries) = std::fs::read_dir(templates) else {
                    return Ok(found);
                };
                for entry in entries {
                    let path = entry?.path();
                    if path.is_file() {
                        add(
                            &path,
                            &std::fs::read(&path)
                                .with_context(|| format!("cannot read `{}`", path.display()))?,
                        )?;
                    }
                }
            }
            Self::Embedded { name } => {
                for file in TEMPLATES.get_dir(name).into_iter().flat_map(Dir::files) {
                    add(file.path(), file.contents())?;
                }
            }
        }
        Ok(found)
    }
}

/// The names of the series that this binary has in it.
#[must_use]
pub fn embedded() -> Vec<String> {
    let names = PATCHES.dirs().filter_map(|dir| dir.path().file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}
