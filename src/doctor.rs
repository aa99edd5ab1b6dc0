//! Looks for the outside tools that the gates of a series need.
//!
//! Hides where tools are looked for; what is missing is told with what it would enable.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::gate::settings::{Configuration, Guest, Settings};
use crate::gate::toolchain::Tool;
use crate::ui::shown_text;

/// What is there and what is not.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The version of this object.
    format: u32,
    tools: Vec<Examined>,
}

/// One outside tool.
#[derive(Debug, Serialize)]
struct Examined {
    name: String,
    package: String,
    /// Its version, or that it is there; `None` where it is not.
    found: Option<String>,
    /// The gates and configurations that need it.
    enables: Vec<String>,
}

/// Looks for everything that `settings` need.
pub fn examine(settings: &Settings) -> Result<Diagnosis> {
    let mut needs: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut need = |tool: Tool, enables: &str| {
        let list = needs.entry((tool.name, tool.package)).or_default();
        if !list.iter().any(|known| known == enables) {
            list.push(enables.to_owned());
        }
    };
    need(Tool::new("git", "git"), "apply");
    need(Tool::new("perl", "perl"), "checkpatch");
    need(Tool::new("perl", "perl"), "maintainers");
    for configuration in &settings.configuration {
        let build = format!("build {}", configuration.name);
        for tool in configuration.tools() {
            need(tool, &build);
        }
        let run = format!("equality {}", configuration.name);
        for tool in equality_tools(configuration) {
            need(tool, &run);
        }
    }
    for tool in settings.guest.iter().flat_map(Guest::tools) {
        need(tool, "guest");
    }
    let tools = needs.into_iter().map(|((name, package), enables)| {
        let tool = Tool::new(&name, &package);
        let found = tool.find().map(|_| tool.version()).transpose()?;
        Ok(Examined {
            name,
            package,
            found,
            enables,
        })
    });
    Ok(Diagnosis {
        format: 1,
        tools: tools.collect::<Result<_>>()?,
    })
}

fn equality_tools(configuration: &Configuration) -> Vec<Tool> {
    if configuration.equality {
        configuration.emulator_tools()
    } else {
        Vec::new()
    }
}

impl Diagnosis {
    /// As one JSON object.
    pub fn json(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self).context("a diagnosis is always JSON")?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// A line a tool, then what to install.
    #[must_use]
    pub fn text(&self) -> String {
        let width = self
            .tools
            .iter()
            .map(|tool| tool.name.chars().count())
            .max()
            .unwrap_or(0);
        let mut lines: Vec<_> = self.tools.iter().map(|tool| tool.line(width)).collect();
        let mut packages: Vec<_> = self.missing().map(|tool| tool.package.as_str()).collect();
        packages.sort_unstable();
        packages.dedup();
        if !packages.is_empty() {
            lines.push(format!(
                "\nto run every gate: apt install {}",
                packages.join(" ")
            ));
        }
        lines.join("\n") + "\n"
    }

    fn missing(&self) -> impl Iterator<Item = &Examined> {
        self.tools.iter().filter(|tool| tool.found.is_none())
    }
}

impl Examined {
    fn line(&self, width: usize) -> String {
        let name = &self.name;
        match &self.found {
            Some(version) => format!(
                "{name:width$}  {}",
                if version.is_empty() {
                    "there".to_owned()
                } else {
                    shown_text(version.as_bytes())
                }
            ),
            None => format!(
                "{name:width$}  missing (package {}); would enable: {}",
                self.package,
                self.enables.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_told_with_its_package_and_what_it_would_enable() {
        let text = "[[configuration]]\nname = \"far away\"\narch = \"none\"\ncross = \"no-such-machine-\"\n";
        let settings: Settings = toml::from_str(text).expect("settings");
        let text = examine(&settings).expect("a diagnosis").text();
        let line = text
            .lines()
            .find(|line| line.starts_with("no-such-machine-gcc"))
            .expect("a line");
        assert!(
            line.contains("missing (package gcc-no-such-machine)"),
            "{line}"
        );
        assert!(line.ends_with("would enable: build far away"), "{line}");
        assert!(
            text.contains("apt install binutils-no-such-machine gcc-no-such-machine"),
            "{text}"
        );
    }
}
