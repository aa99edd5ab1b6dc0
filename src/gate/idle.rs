//! What of `[check]` would never run or never count: a number of no patch, a name that the recipe does not have, a table that nobody wants.
//!
//! Hides nothing else. A gate that never runs proves nothing, and it would not be missed.

use super::Name;
use super::settings::{Settings, Skip};

/// What of the table would never do anything in a series of these patches: a sentence, and the word to look for.
pub(super) fn idle(settings: &Settings, patches: &[&str]) -> Option<(String, String)> {
    let numbers = [
        ("equality", settings.equality.as_ref().map(|it| &it.after)),
        ("guest", settings.guest.as_ref().map(|it| &it.after)),
    ];
    for (table, after) in numbers {
        let mut after = after.into_iter().flatten();
        if let Some(number) = after.find(|number| !(1..=patches.len()).contains(*number)) {
            let count = patches.len();
            return Some((
                format!("`after` of `[check.{table}]` has {number}, and there are {count} patches"),
                number.to_string(),
            ));
        }
    }
    if settings.equality.is_some()
        && settings.guest.is_none()
        && !settings.configuration.iter().any(|it| it.equality)
    {
        let what = "`[check.equality]` is there, and no configuration wants it".to_owned();
        return Some((what, "[check.equality]".to_owned()));
    }
    if !settings.section.with.is_empty() && !settings.configuration.iter().any(|it| it.section) {
        let what = "`[check.section]` is there, and no configuration wants it".to_owned();
        return Some((what, "[check.section]".to_owned()));
    }
    let accepts = settings.accept.iter().map(|it| &it.patch);
    let mut named = settings
        .skip
        .iter()
        .map(|it| &it.patch)
        .chain(accepts)
        .flatten();
    if let Some(name) = named.find(|name| !patches.contains(&name.as_str())) {
        return Some((
            format!("the series has no patch `{name}`"),
            format!("\"{name}\""),
        ));
    }
    settings
        .skip
        .iter()
        .find_map(|skip| idle_skip(settings, skip))
}

fn idle_skip(settings: &Settings, skip: &Skip) -> Option<(String, String)> {
    let gate = skip.gate;
    if let Some(rule) = &skip.rule
        && gate != super::gate_of(rule)
    {
        let what = format!(
            "`{rule}` is a rule of the gate `{}`, not of `{gate}`",
            super::gate_of(rule)
        );
        return Some((what, format!("\"{rule}\"")));
    }
    let name = skip.configuration.as_ref()?;
    let known = match gate {
        Name::Build | Name::Section | Name::Equality => {
            settings.configuration.iter().any(|it| it.name == *name)
        }
        Name::Guest => settings
            .guest
            .as_ref()
            .is_some_and(|it| it.configuration.name == *name),
        _ => false,
    };
    let what = format!("the gate `{gate}` has no configuration `{name}`");
    (!known).then(|| (what, format!("\"{name}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_never_run_or_count_is_refused() {
        const CHECK: &str = r#"
objects = ["mm/a.o"]
[[configuration]]
name = "gcc"
arch = "x86_64"
section = true
equality = true
[section]
with = ["mm/b.o"]
[equality]
object = "mm/a.o"
entry = "a"
harness = "harness"
after = [1, 2]
[[skip]]
gate = "build"
patch = "one"
configuration = "gcc"
reason = "why"
[[skip]]
gate = "mail"
rule = "body-width"
reason = "why"
[[accept]]
type = "LONG_LINE"
patch = "two"
reason = "why"
"#;
        let idle = |text: &str| {
            let settings: Settings = toml::from_str(text).expect("parses");
            super::idle(&settings, &["one", "two"]).map(|(what, _)| what)
        };
        assert_eq!(idle(CHECK), None);
        for (from, to, words) in [
            ("[1, 2]", "[9]", "has 9, and there are 2 patches"),
            ("[1, 2]", "[0]", "has 0"),
            ("equality = true", "", "no configuration wants it"),
            ("section = true", "", "no configuration wants it"),
            ("\"one\"", "\"three\"", "no patch `three`"),
            ("\"two\"", "\"three\"", "no patch `three`"),
            (
                "configuration = \"gcc\"",
                "configuration = \"clang\"",
                "no configuration `clang`",
            ),
            (
                "gate = \"build\"",
                "gate = \"apply\"",
                "no configuration `gcc`",
            ),
            (
                "gate = \"mail\"",
                "gate = \"build\"",
                "a rule of the gate `mail`",
            ),
        ] {
            assert!(CHECK.contains(from), "{from}");
            let what = idle(&CHECK.replacen(from, to, 1)).unwrap_or_default();
            assert!(what.contains(words), "{from}: {what}");
        }
    }
}
