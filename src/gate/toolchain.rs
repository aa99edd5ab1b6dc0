//! The outside programs a configuration needs: which are there, which version, which Debian package has them.
//!
//! Hides `PATH` and the naming habits of cross compilers and LLVM.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::settings::{Analyser, Compiler, Configuration};
use crate::exec::Task;

/// An outside program or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tool {
    /// What is run, or the header that must be there.
    pub(crate) name: String,
    /// The Debian package that has it.
    pub(crate) package: String,
}

/// What the compiler of a configuration says about its version; `None` where it is not in `PATH`.
#[must_use]
pub fn compiler_version(configuration: &Configuration) -> Option<String> {
    let compiler = configuration.cc();
    // A recipe may come from anywhere, and whoever only regenerates does not expect it to bring a program along.
    if compiler.contains('/') {
        return None;
    }
    let version = Tool::new(&compiler, "").version().ok();
    version.filter(|version| !version.is_empty())
}

/// What kbuild itself runs on every architecture.
const KBUILD: [(&str, &str); 8] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("perl", "perl"),
    ("/usr/include/gelf.h", "libelf-dev"),
];

impl Tool {
    pub(crate) fn new(name: &str, package: &str) -> Self {
        Self {
            name: name.to_owned(),
            package: package.to_owned(),
        }
    }

    /// Where it is, if anywhere.
    pub(crate) fn find(&self) -> Option<PathBuf> {
        find(&self.name)
    }

    /// The first words it says about its version; empty for what says none.
    pub(crate) fn version(&self) -> Result<String> {
        if self.name.starts_with('/') {
            return Ok(String::new());
        }
        let output = Task::new(&self.name).home().arg("--version").run()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text
            .lines()
            .find(|line| !line.is_empty())
            .unwrap_or_default()
            .to_owned())
    }
}

/// Where a program is found in `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

impl Configuration {
    /// The compiler's name.
    pub(crate) fn cc(&self) -> String {
        match &self.compiler {
            Compiler::Gcc => format!("{}gcc", self.prefix()),
            Compiler::Llvm(suffix) => format!("clang{suffix}"),
        }
    }

    /// A program of the compiler's family that works on objects: `ld`, `nm`, `objcopy`.
    pub(crate) fn binutil(&self, name: &str) -> String {
        match (&self.compiler, name) {
            (Compiler::Gcc, _) => format!("{}{name}", self.prefix()),
            (Compiler::Llvm(suffix), "ld") => format!("ld.lld{suffix}"),
            (Compiler::Llvm(suffix), _) => format!("llvm-{name}{suffix}"),
        }
    }

    /// The compiler of ordinary programs for its architecture.
    pub(crate) fn host_cc(&self) -> String {
        format!("{}gcc", self.prefix())
    }

    /// Everything that must be there to build it.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let mut tools: Vec<_> = KBUILD
            .iter()
            .map(|(name, package)| Tool::new(name, package))
            .collect();
        let suffix = match &self.compiler {
            Compiler::Gcc => {
                let cross = self.prefix().trim_end_matches('-');
                tools.push(Tool::new(&self.cc(), &dashed("gcc", cross)));
                tools.push(Tool::new(&self.binutil("ld"), &dashed("binutils", cross)));
                None
            }
            Compiler::Llvm(suffix) => Some(suffix),
        };
        if let Some(suffix) = suffix {
            tools.push(Tool::new(&self.cc(), &format!("clang{suffix}")));
            tools.push(Tool::new(&self.binutil("ld"), &format!("lld{suffix}")));
            tools.push(Tool::new(
                &self.binutil("objcopy"),
                &format!("llvm{suffix}"),
            ));
        }
        if self.analyser == Some(Analyser::Sparse) {
            tools.push(Tool::new("sparse", "sparse"));
        }
        tools.dedup();
        tools
    }

    /// What must be there to run its programs, besides what builds them.
    pub(crate) fn emulator_tools(&self) -> Vec<Tool> {
        let package = |name: &str| match name.strip_prefix("qemu-") {
            Some(rest) if rest.ends_with("-static") => "qemu-user-static",
            Some(rest) if rest.starts_with("system-x86") => "qemu-system-x86",
            Some(rest) if rest.starts_with("system-a") => "qemu-system-arm",
            Some(rest) if rest.starts_with("system-") => "qemu-system-misc",
            _ => "qemu-user",
        };
        let emulator = self
            .emulator
            .first()
            .map(|name| Tool::new(name, package(name)));
        emulator.into_iter().collect()
    }

    /// Make's assignments that select architecture and compiler.
    pub(crate) fn make_variables(&self) -> Vec<String> {
        let mut variables = vec![format!("ARCH={}", self.arch)];
        match &self.compiler {
            Compiler::Gcc if self.prefix().is_empty() => {}
            Compiler::Gcc => variables.push(format!("CROSS_COMPILE={}", self.prefix())),
            Compiler::Llvm(suffix) if suffix.is_empty() => variables.push("LLVM=1".to_owned()),
            Compiler::Llvm(suffix) => variables.push(format!("LLVM={suffix}")),
        }
        if !self.flags.is_empty() {
            variables.push(format!("KCFLAGS={}", self.flags.join(" ")));
        }
        if !self.warnings.is_empty() {
            variables.push(format!("W={}", self.warnings));
        }
        variables
    }

    fn prefix(&self) -> &str {
        self.cross.as_deref().unwrap_or_default()
    }
}

fn dashed(name: &str, cross: &str) -> String {
    if cross.is_empty() {
        name.to_owned()
    } else {
        format!("{name}-{cross}")
    }
}

/// The packages of those tools that are not there, and their names.
pub(crate) fn missing(tools: &[Tool]) -> Option<(Vec<String>, Vec<String>)> {
    let missing = tools.iter().filter(|tool| tool.find().is_none());
    let (names, mut packages): (Vec<_>, Vec<_>) = missing
        .map(|tool| (tool.name.clone(), tool.package.clone()))
        .unzip();
    packages.sort();
    packages.dedup();
    (!names.is_empty()).then_some((names, packages))
}
