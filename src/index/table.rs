//! The names of an index as a text that is searched where it lies: it is read whole in a millisecond, and kept in the cache.
//!
//! One line a definition, sorted: `name TAB kind TAB number of the file TAB offset`, behind the paths of the files and an empty line.

use std::fs;
use std::path::Path;

use bstr::{BStr, ByteSlice};

use super::Question;
use super::generate::Generators;
use super::scan::{Kind, Scan};
use crate::digest::digest;
use crate::repo::ObjectId;

/// The rules by which an index is made: one that was made by other rules is not found again.
const RULES: [&str; 6] = [
    include_str!("closure.rs"),
    include_str!("generate.rs"),
    include_str!("lex.rs"),
    include_str!("mod.rs"),
    include_str!("scan.rs"),
    include_str!("table.rs"),
];

/// A letter a kind, in the order of [`Kind`].
const KINDS: [(Kind, u8); 9] = [
    (Kind::Macro, b'm'),
    (Kind::Call, b'c'),
    (Kind::Function, b'f'),
    (Kind::Prototype, b'p'),
    (Kind::Tag, b's'),
    (Kind::Type, b't'),
    (Kind::Enumerator, b'e'),
    (Kind::Variable, b'v'),
    (Kind::Generated, b'g'),
];

/// The names of an index.
pub(super) struct Table {
    files: Vec<String>,
    lines: Vec<u8>,
}

/// The name of an index's file in the cache.
pub(super) fn file_name(tree_id: ObjectId, question: &Question) -> String {
    let lists = [&question.files, &question.headers, &question.architectures];
    let parts = lists.into_iter().map(|list| list.join("\0").into_bytes());
    let rules = RULES.iter().map(|text| text.as_bytes().to_vec());
    let id = digest(parts.chain(rules));
    format!("{tree_id}-{}", &id[..16])
}

impl Table {
    pub(super) fn of(files: &[(String, Scan)]) -> Self {
        let generators = Generators::of(files);
        let mut lines = Vec::new();
        let mut add = |name: &str, kind: Kind, file: usize, offset: usize| {
            lines.push(format!(
                "{name}\t{}\t{file}\t{offset}\n",
                char::from(letter(kind))
            ));
        };
        for (number, (_, scan)) in files.iter().enumerate() {
            for it in &scan.definitions {
                add(&it.name, it.kind, number, it.range.start);
            }
            for call in &scan.invocations {
                for name in generators.names(call) {
                    add(&name, Kind::Generated, number, call.range.start);
                }
            }
        }
        lines.sort_unstable();
        lines.dedup();
        Self {
            files: files.iter().map(|(path, _)| path.clone()).collect(),
            lines: lines.concat().into_bytes(),
        }
    }

    pub(super) fn size(&self) -> (usize, usize) {
        (self.lines.lines().count(), self.files.len())
    }

    pub(super) fn files(&self) -> &[String] {
        &self.files
    }

    /// What a name is, and where.
    pub(super) fn find(&self, name: &str) -> Vec<(Kind, &str)> {
        let lines = self.lines_of(name);
        lines.map(|(kind, path, _)| (kind, path)).collect()
    }

    /// The macro calls that define a name: the file, and where in it.
    pub(super) fn generated(&self, name: &str) -> Vec<(&str, usize)> {
        let lines = self.lines_of(name);
        let calls = lines.filter(|(kind, ..)| *kind == Kind::Generated);
        calls.map(|(_, path, offset)| (path, offset)).collect()
    }

    fn lines_of(&self, name: &str) -> impl Iterator<Item = (Kind, &str, usize)> + use<'_> {
        let wanted = format!("{name}\t");
        let rest = &self.lines[self.lower_bound(wanted.as_bytes())..];
        let own = rest
            .lines()
            .take_while(move |line| line.starts_with(wanted.as_bytes()));
        own.filter_map(|line| self.entry(line))
    }

    /// Where the first line is that is not before `wanted`.
    fn lower_bound(&self, wanted: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.lines.len());
        while low < high {
            let middle = crate::syntax::line_start(&self.lines, usize::midpoint(low, high));
            let end = crate::syntax::line_end(&self.lines, middle);
            if &self.lines[middle..end] < wanted {
                low = end;
            } else {
                high = middle;
            }
        }
        low
    }

    fn entry(&self, line: &[u8]) -> Option<(Kind, &str, usize)> {
        let mut fields = line.splitn_str(4, "\t").map(BStr::new);
        let (_, kind, file, offset) = (
            fields.next()?,
            fields.next()?,
            fields.next()?,
            fields.next()?,
        );
        let number = |text: &BStr| text.to_str().ok()?.parse::<usize>().ok();
        let kind = KINDS
            .iter()
            .find(|(_, letter)| kind.as_bytes() == [*letter])?
            .0;
        Some((kind, self.files.get(number(file)?)?, number(offset)?))
    }

    /// Reads a table; `None` where there is none, or a broken one.
    pub(super) fn read(file: &Path) -> Option<Self> {
        let bytes = fs::read(file).ok()?;
        let (sum, rest) = bytes.split_once_str("\n")?;
        if checksum(rest).as_bytes() != sum {
            return None;
        }
        let (files, lines) = rest.split_once_str("\n\n")?;
        let files = files.lines().map(|path| path.to_str_lossy().into_owned());
        Some(Self {
            files: files.collect(),
            lines: lines.to_vec(),
        })
    }

    /// Leaves the table in the cache: written aside, renamed last.
    pub(super) fn write(&self, file: &Path) -> std::io::Result<()> {
        let directory = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let mut rest = self.files.join("\n").into_bytes();
        rest.extend_from_slice(b"\n\n");
        rest.extend_from_slice(&self.lines);
        let sum = format!("{}\n", checksum(&rest)).into_bytes();
        crate::temporary::write_whole(file, &[sum, rest].concat())
    }
}

/// Tells a file that was cut short or damaged. It is the user's own cache: nobody needs to be kept from writing to it.
fn checksum(bytes: &[u8]) -> String {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    format!("{:08x}", sum.sum())
}

fn letter(kind: Kind) -> u8 {
    let found = KINDS.iter().find(|(known, _)| *known == kind);
    found.map_or(b'?', |(_, letter)| *letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::scan;

    fn table() -> Table {
        let one = scan(b"#define A 1\nint ab(void);\nstruct a { int b; };\n");
        let two = scan(b"#define A(x) x\nvoid a(void) { }\n");
        Table::of(&[("one.h".to_owned(), one), ("two.h".to_owned(), two)])
    }

    #[test]
    fn names_are_found_exactly() {
        let table = table();
        assert_eq!(
            table.find("A"),
            [(Kind::Call, "two.h"), (Kind::Macro, "one.h")]
        );
        assert_eq!(
            table.find("a"),
            [(Kind::Function, "two.h"), (Kind::Tag, "one.h")]
        );
        assert_eq!(table.find("ab"), [(Kind::Prototype, "one.h")]);
        assert!(
            table.find("b").is_empty() && table.find("").is_empty() && table.find("zz").is_empty()
        );
    }

    #[test]
    fn a_broken_file_is_as_good_as_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("sub/x");
        assert!(Table::read(&file).is_none());
        table().write(&file).expect("written");
        assert_eq!(Table::read(&file).expect("read").find("ab").len(), 1);
        let mut bytes = fs::read(&file).expect("bytes");
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        fs::write(&file, bytes).expect("written");
        assert!(Table::read(&file).is_none());
    }
}
