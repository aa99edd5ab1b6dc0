//! What the README and the help claim: every command and option that they name is there, every file that they name exists, and the series
//! is proven on the releases that the README says.
//!
//! Hides how commands are found in a text.

use std::fs;
use std::path::Path;

use crate::support::Sandbox;

/// A file of the project.
pub(crate) fn project(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands between backquotes, and the lines that are set in.
fn code(text: &str) -> Vec<String> {
    let inline = text.lines().filter(|line| !line.starts_with("    "));
    let mut found: Vec<String> = Vec::new();
    for line in inline {
        found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    let blocks = text.lines().filter_map(|line| line.strip_prefix("    "));
    found.extend(blocks.map(|line| line.trim_start_matches("$ ").to_owned()));
    found
}

/// The commands of reroll in a text: words, without what follows a pipe or a `...`.
fn commands(text: &str) -> Vec<Vec<String>> {
    let found = code(text).into_iter().filter_map(|code| {
        let rest = code
            .strip_prefix("reroll ")
            .or_else(|| code.strip_prefix("cargo run --release -- "))?;
        let words: Vec<_> = rest.split_whitespace().map(str::to_owned).collect();
        let is_name = |word: &String| word.bytes().all(|byte| byte.is_ascii_lowercase());
        words.first().is_some_and(is_name).then_some(words)
    });
    found.collect()
}

/// The help of a subcommand, of that of `base` and `bot` too.
fn help(words: &[String]) -> String {
    let sandbox = Sandbox::new();
    let depth = match words[0].as_str() {
        "base" | "bot" => 2,
        "report" if words.get(1).is_some_and(|word| word == "merge") => 2,
        _ => 1,
    };
    let names = words.iter().take(depth).map(String::as_str);
    let ran = sandbox.reroll(names.chain(["--help"])).run().expect_exit(0);
    ran.stdout.to_string()
}

#[test]
fn every_command_and_option_that_is_named_is_there() {
    let mut seen = 0;
    for file in [
        "README.md",
        "ARCHITECTURE.md",
        "docs/performance.md",
        "docs/drift.md",
    ] {
        for words in commands(&project(file)) {
            let help = help(&words);
            let options = words
                .iter()
                .filter(|word| word.starts_with('-') && word.len() > 1);
            for option in options {
                let name = option
                    .split('=')
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches([',', ';']);
                let is_there = help
                    .split([' ', ',', '\n', '[', ']', '='])
                    .any(|word| word == name);
                assert!(
                    is_there,
                    "{file}: `reroll {}` has no `{name}`",
                    words.join(" ")
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 30, "{seen} options were found");
}

#[test]
fn every_file_that_is_linked_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, dir) in [
        ("README.md", root.to_owned()),
        ("docs/performance.md", root.join("docs")),
    ] {
        let text = project(file);
        for link in text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap_or_default();
            if !link.is_empty() && !link.contains("://") {
                assert!(dir.join(link).exists(), "{file} links to `{link}`");
            }
        }
    }
}

#[test]
fn the_series_is_proven_on_the_releases_that_the_readme_names() {
    let readme = project("README.md");
    let line = readme
        .lines()
        .find(|line| line.contains("proven on the releases of Linux"));
    let line = line.expect("the README says on which");
    let proven: serde_json::Value =
        serde_json::from_str(&project("patches/zone-device/proven.json")).expect("JSON");
    let bases = proven["bases"].as_array().expect("a list");
    let releases: Vec<_> = bases
        .iter()
        .filter_map(|base| base["release"].as_str())
        .collect();
    let named = line.split(|char: char| !char.is_ascii_digit() && char != '.');
    let named: Vec<_> = named
        .filter(|word| word.contains('.') && word.starts_with(|it: char| it.is_ascii_digit()))
        .collect();
    assert!(named.len() >= 4, "{named:?}");
    for name in named {
        let name = name.trim_end_matches('.');
        let fits = |release: &&&str| **release == name || release.starts_with(&format!("{name}."));
        assert!(
            releases.iter().find(fits).is_some(),
            "{name} is not among {releases:?}"
        );
    }
}

#[test]
fn the_exit_codes_of_the_readme_are_those_of_the_help() {
    let readme = project("README.md");
    let sandbox = Sandbox::new();
    let help = sandbox
        .reroll(["--help"])
        .run()
        .expect_exit(0)
        .stdout
        .to_string();
    let (_, table) = readme.split_once("## Exit codes").expect("a table");
    let codes = table.lines().filter_map(|line| {
        line.strip_prefix("| ")?
            .split(' ')
            .next()?
            .parse::<u32>()
            .ok()
    });
    let codes: Vec<_> = codes.collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 70, 130]);
    for code in codes.iter().filter(|code| **code != 70) {
        assert!(help.contains(&format!("{code} ")), "{code}");
    }
}
