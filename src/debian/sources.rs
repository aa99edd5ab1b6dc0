//! Reads and writes the lists of package sources that apt keeps (sources.list(5)): one-line and deb822.
//!
//! Hides the two formats: a caller sees archives with suites, and only those that hold packages of `main`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bstr::{BStr, ByteSlice};

use crate::error::Refusal;

/// An archive with one suite of it: what is needed to ask for its packages in the way the machine does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AptSource {
    /// The archive's address, without a slash at its end.
    pub(super) uri: String,
    /// The suite or its codename.
    pub(super) suite: String,
    /// What the machine says about trust, as deb822 fields; a value may have several lines.
    pub(super) options: Vec<(String, String)>,
}

/// The fields that say how an archive is trusted and reached; the others say what to fetch, which is known here.
const OPTIONS: [&str; 12] = [
    "Signed-By",
    "Trusted",
    "Allow-Insecure",
    "Allow-Weak",
    "Allow-Downgrade-To-Insecure",
    "By-Hash",
    "Check-Valid-Until",
    "Valid-Until-Min",
    "Valid-Until-Max",
    "Check-Date",
    "Date-Max-Future",
    "InRelease-Path",
];

impl AptSource {
    /// The same archive with another suite.
    pub(super) fn with_suite(&self, suite: &str) -> Self {
        Self {
            suite: suite.to_owned(),
            ..self.clone()
        }
    }
}

/// All sources in the file `list` and the directory `parts`, in apt's order.
pub(super) fn read(list: &Path, parts: &Path) -> Result<Vec<AptSource>> {
    let mut sources = Vec::new();
    for path in files(list, parts)? {
        let text = fs::read(&path).with_context(|| {
            Refusal::tool(format!("cannot read apt's `{}`", path.display()))
                .hint("give a directory or a tarball instead, or a repository with `--tree`")
        })?;
        sources.extend(if path.extension().is_some_and(|end| end == "sources") {
            deb822(&text)
        } else {
            one_line(&text)
        });
    }
    Ok(sources)
}

/// Files that apt would read: those whose names hold nothing but letters, digits and `-_.`.
fn files(list: &Path, parts: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if let Ok(entries) = fs::read_dir(parts) {
        for entry in entries {
            let path = entry.context("cannot list apt's sources")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            let ends = name.ends_with(".list") || name.ends_with(".sources");
            if ends && !name.starts_with('.') && name.bytes().all(plain) && path.is_file() {
                files.push(path.clone());
            }
        }
    }
    files.sort();
    if list.is_file() {
        files.insert(0, list.to_owned());
    }
    Ok(files)
}

/// The one-line format: `deb [option=value ...] uri suite component ...`.
fn one_line(text: &[u8]) -> Vec<AptSource> {
    text.to_str_lossy()
        .lines()
        .filter_map(one)
        .flatten()
        .collect()
}

fn one(line: &str) -> Option<Vec<AptSource>> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb")?;
    let rest = rest
        .starts_with([' ', '\t', '['])
        .then(|| rest.trim_start())?;
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    let options: Vec<_> = options
        .split_whitespace()
        .filter_map(|option| option.split_once('='))
        .filter_map(|(key, value)| Some((known(key)?, value.replace(',', " "))))
        .collect();
    Some(sources(&[uri], &[suite], words, &options))
}

/// The deb822 format: stanzas of `Field: value`.
fn deb822(text: &[u8]) -> Vec<AptSource> {
    let mut all = Vec::new();
    for stanza in stanzas(text) {
        let field = |name: &str| {
            let mut found = stanza
                .iter()
                .filter(|(key, _)| key.eq_ignore_ascii_case(name));
            found.next().map_or("", |(_, value)| value.as_str())
        };
        let off = ["no", "false", "without", "off", "disable", "0"];
        let enabled = field("Enabled").trim().to_ascii_lowercase();
        let is_deb = field("Types").split_whitespace().any(|kind| kind == "deb");
        if !is_deb || off.contains(&enabled.as_str()) {
            continue;
        }
        let options: Vec<_> = stanza
            .iter()
            .filter_map(|(key, value)| Some((known(key)?, value.clone())))
            .collect();
        let uris: Vec<_> = field("URIs").split_whitespace().collect();
        let suites: Vec<_> = field("Suites").split_whitespace().collect();
        let components = field("Components").split_whitespace();
        all.extend(sources(&uris, &suites, components, &options));
    }
    all
}

fn known(key: &str) -> Option<String> {
    let found = OPTIONS
        .iter()
        .find(|known| known.eq_ignore_ascii_case(key))?;
    Some((*found).to_owned())
}

/// What of it can have Debian's kernels: suites with a `main`, on something that can be reached at any time.
fn sources<'a>(
    uris: &[&str],
    suites: &[&str],
    mut components: impl Iterator<Item = &'a str>,
    options: &[(String, String)],
) -> Vec<AptSource> {
    if !components.any(|component| component == "main") {
        return Vec::new();
    }
    let uris = uris.iter().filter(|uri| !uri.starts_with("cdrom:"));
    let pairs = uris.flat_map(|uri| suites.iter().map(move |suite| (uri, suite)));
    pairs
        .map(|(uri, suite)| AptSource {
            uri: uri.trim_end_matches('/').to_owned(),
            suite: (*suite).to_owned(),
            options: options.to_vec(),
        })
        .collect()
}

/// The stanzas of a deb822 text (deb822(5)): fields in their order, further lines of a value kept with their indent.
pub(super) fn stanzas(text: &[u8]) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    for line in text.lines() {
        let line = line.trim_end().as_bstr();
        if line.is_empty() {
            all.push(Vec::new());
        } else if !line.starts_with(b"#")
            && let Some(stanza) = all.last_mut()
        {
            add_line(stanza, line);
        }
    }
    all.retain(|stanza| !stanza.is_empty());
    all
}

fn add_line(stanza: &mut Vec<(String, String)>, line: &BStr) {
    let text = line.to_str_lossy();
    if text.starts_with([' ', '\t']) {
        if let Some((_, value)) = stanza.last_mut() {
            value.push('\n');
            value.push_str(&text);
        }
    } else if let Some((key, value)) = text.split_once(':') {
        stanza.push((key.trim().to_owned(), value.trim().to_owned()));
    }
}

/// A deb822 list for apt that asks for nothing but the packages of `main`, of this architecture.
pub(super) fn write(sources: &[AptSource], architecture: &str) -> String {
    let mut text = String::new();
    for source in sources {
        let _ = write!(
            text,
            "Types: deb\nURIs: {}\nSuites: {}\nComponents: main\nArchitectures: {architecture}\n\
             Targets: Packages\nPDiffs: no\n",
            source.uri, source.suite
        );
        for (key, value) in &source.options {
            let _ = writeln!(text, "{key}: {value}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, suite: &str, options: &[(&str, &str)]) -> AptSource {
        AptSource {
            uri: uri.into(),
            suite: suite.into(),
            options: options
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
        }
    }

    #[test]
    fn the_one_line_format_is_read() {
        let text = b"# a comment\n\
            deb http://mirror.example.org/debian/ trixie main contrib # more\n\
            deb-src http://mirror.example.org/debian trixie main\n\
            deb [ arch=amd64,arm64 signed-by=/a.gpg,/b.gpg trusted=yes ] https://mirror.example.org/sec trixie-security main\n\
            deb\t[trusted=yes]\tfile:/srv/x\tsid\tmain\n\
            deb [lang=en] http://example.org/flat ./\n\
            deb cdrom:[Debian GNU/Linux 13]/ trixie main\n\
            deb http://example.org/other trixie non-free\n\
            debx http://example.org/debian trixie main\n\
            deb [broken http://example.org/debian trixie main\n\
            deb http://example.org/short\n";
        let trusted = ("Trusted", "yes");
        assert_eq!(
            one_line(text),
            [
                source("http://mirror.example.org/debian", "trixie", &[]),
                source(
                    "https://mirror.example.org/sec",
                    "trixie-security",
                    &[("Signed-By", "/a.gpg /b.gpg"), trusted]
                ),
                source("file:/srv/x", "sid", &[trusted]),
            ]
        );
    }

    #[test]
    fn the_deb822_format_is_read() {
        let text = b"Types: deb deb-src\n\
            # a comment between the fields\n\
            URIs: http://mirror.example.org/debian/ http://two.example.org/debian\n\
            Suites: trixie\n\ttrixie-updates\n\
            Components: main non-free-firmware\n\
            signed-by: /usr/share/keyrings/x.gpg\n\
            Languages: de\n\
            \r\n\
            Types: deb\nURIs: http://off.example.org\nSuites: trixie\nComponents: main\nEnabled: No\n\
            \n\n\
            Types: deb-src\nURIs: http://src.example.org\nSuites: trixie\nComponents: main\n\
            \n\
            Types: deb\nURIs: http://key.example.org\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n";
        let key = [("Signed-By", "/usr/share/keyrings/x.gpg")];
        assert_eq!(
            deb822(text),
            [
                source("http://mirror.example.org/debian", "trixie", &key),
                source("http://mirror.example.org/debian", "trixie-updates", &key),
                source("http://two.example.org/debian", "trixie", &key),
                source("http://two.example.org/debian", "trixie-updates", &key),
                source(
                    "http://key.example.org",
                    "sid",
                    &[("Signed-By", "\n -----BEGIN\n .\n abc")]
                ),
            ]
        );
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let sources = [
            source(
                "http://mirror.example.org/debian",
                "trixie",
                &[("Signed-By", "\n -----BEGIN\n .\n abc")],
            ),
            source("file:/srv/x", "sid", &[("Trusted", "yes")]),
        ];
        assert_eq!(deb822(write(&sources, "amd64").as_bytes()), sources);
    }

    #[test]
    fn only_files_that_apt_reads_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let line = |name: &str| {
            let text = format!("deb http://example.org/{name} sid main\n");
            fs::write(dir.path().join(name), text).expect("written");
        };
        for name in [
            "b.list",
            "a.list",
            "c.list.save",
            "d.list~",
            ".e.list",
            "f g.list",
        ] {
            line(name);
        }
        let list = dir.path().join("none");
        let found = read(&list, dir.path()).expect("read");
        let uris: Vec<_> = found.iter().map(|source| source.uri.as_str()).collect();
        assert_eq!(
            uris,
            ["http://example.org/a.list", "http://example.org/b.list"]
        );
    }
}
