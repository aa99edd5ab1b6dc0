//! What a series was found to rest on, kept beside the index of its tree: following a hundred definitions through the headers of a kernel
//! takes longer than all the rest of a run.
//!
//! Only forms are kept. They serve where every one of them was proven; where one was not, a person has to be shown what it says, and it is
//! looked for again.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::form::Form;
use super::reach::{Item, Root, Said};
use crate::digest::digest;
use crate::index::Index;
use crate::recipe::RestsSpec;
use crate::temporary::write_whole;

/// The rules by which things are found, besides those of the index: what was kept by other rules is not found again.
const RULES: [&str; 3] = [
    include_str!("mod.rs"),
    include_str!("reach.rs"),
    include_str!("form.rs"),
];

/// A file of forms in the cache.
pub(super) struct Kept {
    file: Option<PathBuf>,
}

/// An item without its text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    form: Form,
    place: String,
    by: String,
}

impl Kept {
    /// The file for what `roots` reach in the tree of an index; none where the user has no cache.
    pub(super) fn of(index: &Index<'_>, spec: &RestsSpec, roots: &[Root]) -> Self {
        let file = index.kept_in().map(|index| {
            let mut parts: Vec<Vec<u8>> = RULES.iter().map(|it| it.as_bytes().to_vec()).collect();
            parts.push(format!("{spec:?}").into_bytes());
            for root in roots {
                let path = root.path.clone().unwrap_or_default();
                parts.extend([root.name.clone().into_bytes(), path.into_bytes()]);
                parts.push(root.text.clone());
            }
            let mut name = index.as_os_str().to_owned();
            name.push(format!("-{}.json", &digest(parts)[..16]));
            PathBuf::from(name)
        });
        Self { file }
    }

    /// What is there; `None` where nothing is, or nothing that can be read.
    pub(super) fn read(&self) -> Option<Vec<Item>> {
        let text = fs::read(self.file.as_ref()?).ok()?;
        let rows: Vec<Row> = serde_json::from_slice(&text).ok()?;
        let items = rows.into_iter().map(|row| Item {
            name: row.name,
            form: row.form,
            place: row.place,
            by: row.by,
            said: Said::Nothing,
        });
        Some(items.collect())
    }

    /// Keeps items. A cache that cannot be written costs the next run its time, nothing else.
    pub(super) fn write(&self, items: &[Item]) {
        let rows: Vec<_> = items
            .iter()
            .map(|item| Row {
                name: item.name.clone(),
                form: item.form.clone(),
                place: item.place.clone(),
                by: item.by.clone(),
            })
            .collect();
        if let Some(file) = &self.file
            && let Ok(text) = serde_json::to_vec(&rows)
        {
            let _ = write_whole(file, &text);
        }
    }
}
