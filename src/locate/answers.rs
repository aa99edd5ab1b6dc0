//! What was found in a tree, kept by the tree's id, which says all that is in it.
//!
//! Hides the file. A cache that cannot be read or written is none: the next run looks again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Site;
use crate::repo::ObjectId;
use crate::temporary::write_whole;

/// Answers that were found otherwise than today are not taken.
const FORMAT: u32 = 1;

/// The answers about one tree.
#[derive(Debug)]
pub(super) struct Answers {
    path: Option<PathBuf>,
    /// What was read or found so far.
    known: RefCell<Option<Known>>,
}

/// The file: what each name is defined by, in each stretch of the tree.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    format: u32,
    tool: String,
    stretches: BTreeMap<String, BTreeMap<String, Vec<Site>>>,
}

impl Answers {
    /// Those about a tree in a directory; in none they are kept as long as this.
    pub(super) fn of(directory: Option<PathBuf>, tree_id: ObjectId) -> Self {
        Self {
            path: directory.map(|directory| directory.join(format!("{tree_id}.json"))),
            known: RefCell::default(),
        }
    }

    pub(super) fn get(&self, stretch: &str, name: &str) -> Option<Vec<Site>> {
        let mut known = self.known.borrow_mut();
        let known = known.get_or_insert_with(|| self.read());
        known.stretches.get(stretch)?.get(name).cloned()
    }

    /// Keeps answers beside those that are there. Of two runs at once the later one's stay, and the other's are looked for again.
    pub(super) fn put(&self, stretch: &str, answers: impl Iterator<Item = (String, Vec<Site>)>) {
        let mut known = self.read();
        let names = known.stretches.entry(stretch.to_owned()).or_default();
        names.extend(answers);
        let made = |path: &PathBuf| fs::create_dir_all(path.parent()?).ok();
        if let Some(path) = &self.path
            && made(path).is_some()
            && let Ok(bytes) = serde_json::to_vec(&known)
        {
            let _ = write_whole(path, &bytes);
        }
        self.known.replace(Some(known));
    }

    /// What the file says, or nothing.
    fn read(&self) -> Known {
        let nothing = Known {
            format: FORMAT,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            stretches: BTreeMap::new(),
        };
        let bytes = self.path.as_ref().and_then(|path| fs::read(path).ok());
        let known = bytes.and_then(|bytes| serde_json::from_slice::<Known>(&bytes).ok());
        let is_ours = |known: &Known| known.format == nothing.format && known.tool == nothing.tool;
        known.filter(is_ours).unwrap_or(nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        Site {
            file: "mm/a.c".to_owned(),
            line: 7,
            head: "int f(void)".to_owned(),
            readable: true,
        }
    }

    fn put(answers: &Answers, name: &str, sites: &[Site]) {
        answers.put("mm", std::iter::once((name.to_owned(), sites.to_vec())));
    }

    #[test]
    fn an_answer_comes_back_for_its_tree_stretch_and_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let of = |digit: &str| {
            let tree_id = digit.repeat(40).parse().expect("an id");
            Answers::of(Some(dir.path().join("deeper")), tree_id)
        };
        let answers = of("1");
        assert_eq!(answers.get("mm", "f"), None);
        put(&answers, "f", &[site()]);
        put(&of("1"), "g", &[]);
        assert_eq!(answers.get("mm", "f"), Some(vec![site()]));
        assert_eq!(of("1").get("mm", "f"), Some(vec![site()]));
        assert_eq!(of("1").get("mm", "g"), Some(Vec::new()));
        assert_eq!(of("1").get("/", "f"), None);
        assert_eq!(of("2").get("mm", "f"), None);
    }

    #[test]
    fn a_file_that_is_broken_or_of_another_tool_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let of = || {
            let tree_id = "1".repeat(40).parse().expect("an id");
            Answers::of(Some(dir.path().to_owned()), tree_id)
        };
        put(&of(), "f", &[site()]);
        let path = of().path.expect("a path");
        let text = fs::read_to_string(&path).expect("written");
        let tool = env!("CARGO_PKG_VERSION");
        let other = text.replace(tool, "0.0.0");
        for broken in [&other, &text[..text.len() / 2], "", "null"] {
            fs::write(&path, broken).expect("written");
            assert_eq!(of().get("mm", "f"), None);
        }
        // It is mended by the next answer.
        put(&of(), "g", &[]);
        assert_eq!(of().get("mm", "g"), Some(Vec::new()));
    }

    #[test]
    fn without_a_place_an_answer_is_there_as_long_as_the_question() {
        let of = || Answers::of(None, "1".repeat(40).parse().expect("an id"));
        let answers = of();
        put(&answers, "f", &[site()]);
        assert_eq!(answers.get("mm", "f"), Some(vec![site()]));
        assert_eq!(of().get("mm", "f"), None);
    }
}
