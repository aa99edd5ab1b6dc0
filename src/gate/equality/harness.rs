//! A harness: C that runs an object of the kernel in an ordinary program, and the manifest that says how to build it.
//!
//! Hides the saved commands of kbuild, static keys, symbol names and stubs for sanitisers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bstr::ByteSlice;
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::digest::hex;
use crate::error::Refusal;
use crate::exec::{Output, Task};
use crate::gate::kbuild::{Bench, Step, Trouble, flat, step};
use crate::gate::settings::{Configuration, Equality};
use crate::gate::warnings;
use crate::lab::Lab;

static HARNESS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/harness");

/// `harness.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Manifest {
    /// C files compiled with the very command that kbuild used for the object.
    kernel: Vec<String>,
    /// Flags added to that command.
    #[serde(default)]
    kernel_flags: Vec<String>,
    /// C files of the host's side.
    user: Vec<String>,
    /// More files of the host's side, C or assembly, by kbuild's name of the architecture.
    arch: BTreeMap<String, Vec<String>>,
    /// Flags of the host's compiler.
    #[serde(default)]
    user_flags: Vec<String>,
    /// The header that declares `struct variant`, `variants` and `nr_variants`.
    table: String,
    /// Functions that are taken from other objects where the one under test has them not.
    #[serde(default)]
    helpers: Vec<String>,
    /// Macros that are 1 unless any object refers to a symbol: 0 then.
    #[serde(default)]
    unless_symbol: BTreeMap<String, String>,
    /// Functions of the kernel side, each of which runs the reference and then plants a fault.
    pub(super) faults: Vec<String>,
    /// Arguments that make the program compare all variants with the first.
    verify: Vec<String>,
    /// The same where an emulator runs it; empty is as anywhere else.
    #[serde(default)]
    verify_emulated: Vec<String>,
    /// The same on little memory, enough to see each fault.
    pub(super) verify_faults: Vec<String>,
    /// Arguments that make it time all variants; empty is a harness that cannot.
    #[serde(default)]
    pub(super) bench: Vec<String>,
    /// Arguments of the runs that compare them before that.
    #[serde(default)]
    pub(super) verify_bench: Vec<Vec<String>>,
    /// Arguments of the runs that compare the code at all its placements.
    #[serde(default)]
    pub(super) verify_placed: Vec<Vec<String>>,
}

/// A harness found in a directory.
pub(super) struct Harness {
    dir: PathBuf,
    pub(super) manifest: Manifest,
}

/// A function that is run and compared: the name it goes by, and the object that has it.
pub(super) struct Variant {
    pub(super) name: String,
    /// `None` is a function of the kernel side itself.
    pub(super) object: Option<PathBuf>,
    /// The number of the placement that the object is made for; 0 where there is one only.
    pub(super) placement: u32,
}

impl Variant {
    /// A function of `object`, wherever that is put.
    pub(super) fn new(name: impl Into<String>, object: Option<PathBuf>) -> Self {
        Self {
            name: name.into(),
            object,
            placement: 0,
        }
    }

    /// The name of the function in the program.
    fn symbol(&self) -> String {
        match self.placement {
            0 => format!("init_{}", self.name),
            placement => format!("init_{}_at_{placement}", self.name),
        }
    }
}

/// Calls that sanitisers put into objects.
const SANITIZERS: [&str; 7] = [
    "asan",
    "kasan",
    "kcsan",
    "tsan",
    "msan",
    "ubsan",
    "sanitizer",
];

/// The directory of the harness that `equality` names: beside the series, in the current project, or the one in this binary,
/// which is written into `lab`.
pub fn directory(lab: &Lab, series: &Path, equality: &Equality) -> Result<PathBuf> {
    let places = [series.join(&equality.harness), equality.harness.clone()];
    if let Some(place) = places
        .into_iter()
        .find(|place| place.join("harness.toml").is_file())
    {
        return place.canonicalize().with_context(|| unreadable(&place));
    }
    if equality.harness != Path::new("harness") {
        return Err(unreadable(&equality.harness).into());
    }
    let mut digest = Sha256::new();
    for file in HARNESS.files() {
        digest.update(file.path().as_os_str().as_encoded_bytes());
        digest.update(file.contents());
    }
    let name = hex(&digest.finalize()[..8]);
    let files = HARNESS.files().map(|file| (file.path(), file.contents()));
    lab.keep(&format!("harness-{name}"), files)
}

/// A digest of all files of a harness.
pub fn digest(dir: &Path) -> Result<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>()
        })
        .with_context(|| unreadable(dir))?;
    names.sort();
    let mut digest = Sha256::new();
    for path in names.iter().filter(|path| path.is_file()) {
        let bytes = fs::read(path).with_context(|| unreadable(path))?;
        digest.update(path.file_name().unwrap_or_default().as_encoded_bytes());
        digest.update(bytes.len().to_le_bytes());
        digest.update(bytes);
    }
    Ok(hex(&digest.finalize()))
}

fn unreadable(path: &Path) -> Refusal {
    Refusal::usage(format!("cannot read the harness `{}`", path.display()))
        .hint("`[check.equality]` names its directory; it must hold a `harness.toml`")
}

impl Harness {
    /// Reads the manifest in `dir`.
    pub(super) fn open(dir: &Path) -> Result<Self> {
        let path = dir.join("harness.toml");
        let text = fs::read_to_string(&path).with_context(|| unreadable(&path))?;
        let manifest = toml::from_str(&text)
            .with_context(|| Refusal::usage(format!("`{}` is wrong", path.display())))?;
        Ok(Self {
            dir: dir.canonicalize()?,
            manifest,
        })
    }

    /// The arguments that make a program of `configuration` compare all variants with the first.
    pub(super) fn verify(&self, configuration: &Configuration) -> &[String] {
        let manifest = &self.manifest;
        if configuration.emulator.is_empty() || manifest.verify_emulated.is_empty() {
            &manifest.verify
        } else {
            &manifest.verify_emulated
        }
    }

    /// Links a program in `work` that runs `variants`, all made by the build in `bench`.
    pub(super) fn link(
        &self,
        bench: &Bench<'_, '_>,
        configuration: &Configuration,
        spec: &Equality,
        variants: &[Variant],
        work: &Path,
    ) -> Result<Result<PathBuf, Trouble>> {
        let objects = bench.dir.objects();
        let log = format!(
            "{}-{}",
            configuration.name,
            flat(&work.display().to_string())
        );
        let site = Site {
            configuration,
            spec,
            command: &command(&objects, &spec.object)?,
            objects: &objects,
            kept: &bench.dir.kept(0),
            log: &bench.context.log(&log),
            run: &|task| bench.dir.run_with_output(task),
        };
        self.link_at(&site, variants, work)
    }

    /// The same for a build that is somewhere else.
    pub(super) fn link_at(
        &self,
        site: &Site<'_>,
        variants: &[Variant],
        work: &Path,
    ) -> Step<PathBuf> {
        let linker = Linker {
            harness: self,
            site,
            work,
        };
        linker.link(variants)
    }
}

/// The build whose objects are linked to a program.
pub(super) struct Site<'a> {
    pub(super) configuration: &'a Configuration,
    pub(super) spec: &'a Equality,
    /// The command that compiled the object under test: see [`command`].
    pub(super) command: &'a [String],
    /// Kbuild's `O=` directory.
    pub(super) objects: &'a Path,
    /// Where the objects are that helpers come from.
    pub(super) kept: &'a Path,
    /// What a tool said that failed.
    pub(super) log: &'a Path,
    /// Runs a tool.
    pub(super) run: &'a dyn Fn(Task) -> Result<Output>,
}

/// One program in the making.
struct Linker<'a> {
    harness: &'a Harness,
    site: &'a Site<'a>,
    work: &'a Path,
}

impl Linker<'_> {
    fn link(&self, variants: &[Variant]) -> Step<PathBuf> {
        let mut objects = Vec::new();
        for name in &self.harness.manifest.kernel {
            objects.push(step!(self.compile_kernel_half(name)));
        }
        for variant in variants {
            if let Some(object) = &variant.object {
                objects.push(step!(self.variant(&variant.symbol(), object)));
            }
        }
        let mut undefined = step!(self.symbols(&objects, &["-u"]));
        objects.extend(step!(self.helpers(&undefined)));
        undefined.extend(step!(self.symbols(&objects, &["-u"])));
        let table = self.work.join("variants.c");
        write(&table, &table_text(&self.harness.manifest.table, variants))?;
        let stubs = self.work.join("sanitizer.S");
        write(
            &stubs,
            &sanitizer_text(&self.site.configuration.arch, &undefined),
        )?;
        self.link_all(&objects, &[table, stubs], &undefined)
    }

    /// Runs a step in the `O=` directory.
    fn run(&self, task: Task, what: &str) -> Step<Vec<u8>> {
        let output = (self.site.run)(task.home().dir(self.site.objects))?;
        let text = [&output.stdout[..], &output.stderr].concat();
        if output.exit.success() {
            return Ok(Ok(output.stdout));
        }
        fs::write(self.site.log, &text).context("cannot write a log")?;
        let lines = warnings::errors(&text, "");
        Ok(Err(Trouble {
            reason: what.to_owned(),
            lines,
            log: self.site.log.to_owned(),
        }))
    }

    /// Compiles a file of the kernel half with the command that kbuild saved for the object under test.
    fn compile_kernel_half(&self, name: &str) -> Step<PathBuf> {
        let object = self.work.join(flat(name)).with_extension("o");
        let command = self.site.command;
        let task = Task::new(&command[0])
            .args(&command[1..])
            .arg(format!("-I{}", self.harness.dir.display()))
            .args(&self.harness.manifest.kernel_flags)
            .arg("-o")
            .arg(&object)
            .arg(self.harness.dir.join(name));
        step!(self.run(
            task,
            &format!("`{name}` does not compile with the kernel's flags")
        ));
        Ok(Ok(object))
    }

    /// A copy of an object in which only the entry can be seen, under a name of its own.
    fn variant(&self, symbol: &str, object: &Path) -> Step<PathBuf> {
        let copy = self.work.join(format!("variant-{symbol}.o"));
        fs::copy(object, &copy).with_context(|| format!("cannot copy `{}`", object.display()))?;
        let objtool = self.site.objects.join("tools/objtool/objtool");
        if objtool.is_file() {
            // As the compiler wrote it, a static key that is off is a taken jump.
            step!(self.run(
                Task::new(objtool).arg("--hacks=jump_label").arg(&copy),
                "objtool does not take the object"
            ));
        }
        let entry = &self.site.spec.entry;
        // One after the other: GNU's objcopy keeps symbols by their new names, LLVM's by the old ones.
        for flag in [
            format!("--redefine-sym={entry}={symbol}"),
            format!("--keep-global-symbol={symbol}"),
        ] {
            let task = Task::new(self.site.configuration.binutil("objcopy"))
                .arg(flag)
                .arg(&copy);
            step!(self.run(task, "objcopy does not take the object"));
        }
        let seen = step!(self.symbols(std::slice::from_ref(&copy), &["-g", "--defined-only"]));
        if !seen.iter().any(|it| it == symbol) {
            let reason = format!("the object has no function `{entry}`");
            return Ok(Err(Trouble {
                reason,
                lines: Vec::new(),
                log: self.site.log.to_owned(),
            }));
        }
        Ok(Ok(copy))
    }

    /// The names that `nm` lists.
    fn symbols(&self, objects: &[PathBuf], which: &[&str]) -> Step<Vec<String>> {
        let task = Task::new(self.site.configuration.binutil("nm"))
            .args(which)
            .args(objects);
        let text = step!(self.run(task, "nm does not take the object"));
        let last = |line: &[u8]| {
            line.rsplit_once_str(" ")
                .map(|(_, name)| name.to_str_lossy().into_owned())
        };
        Ok(Ok(text
            .lines()
            .filter(|line| !line.ends_with(b":"))
            .filter_map(last)
            .collect()))
    }

    /// Copies of other objects in which only one helper can be seen, for each helper that is needed.
    fn helpers(&self, undefined: &[String]) -> Step<Vec<PathBuf>> {
        let mut copies = Vec::new();
        let needed = self
            .harness
            .manifest
            .helpers
            .iter()
            .filter(|helper| undefined.contains(helper));
        for helper in needed {
            for object in &self.site.spec.with {
                let object = self.site.kept.join(flat(object));
                if !object.is_file()
                    || !step!(
                        self.symbols(std::slice::from_ref(&object), &["-g", "--defined-only"])
                    )
                    .contains(helper)
                {
                    continue;
                }
                let copy = self.work.join(format!("helper-{helper}.o"));
                let task = Task::new(self.site.configuration.binutil("objcopy"));
                let task = task
                    .arg(format!("--keep-global-symbol={helper}"))
                    .arg(&object)
                    .arg(&copy);
                step!(self.run(task, "objcopy does not take the object"));
                copies.push(copy);
                break;
            }
        }
        Ok(Ok(copies))
    }

    fn link_all(
        &self,
        objects: &[PathBuf],
        made: &[PathBuf],
        undefined: &[String],
    ) -> Step<PathBuf> {
        let manifest = &self.harness.manifest;
        let arch = &self.site.configuration.arch;
        let Some(of_arch) = manifest.arch.get(arch) else {
            let reason = format!("the harness has nothing for `{arch}`");
            return Ok(Err(Trouble {
                reason,
                lines: Vec::new(),
                log: self.site.log.to_owned(),
            }));
        };
        let program = self.work.join("program");
        let own = manifest
            .user
            .iter()
            .chain(of_arch)
            .map(|name| self.harness.dir.join(name));
        let defines = manifest
            .unless_symbol
            .iter()
            .map(|(name, symbol)| format!("-D{name}={}", u8::from(!undefined.contains(symbol))));
        // What is not stubbed is address 0: reaching it crashes instead of passing.
        let task = Task::new(self.site.configuration.host_cc())
            .args(&manifest.user_flags)
            .args([
                "-static",
                "-Wl,--unresolved-symbols=ignore-all",
                "-Wl,--no-warn-rwx-segments",
                "-Wl,--no-warn-execstack",
            ])
            .args(defines)
            .arg(format!("-I{}", self.harness.dir.display()))
            .arg("-o")
            .arg(&program)
            .args(own)
            .args(made)
            .args(objects)
            .arg("-lpthread");
        step!(self.run(task, "the harness does not link"));
        Ok(Ok(program))
    }
}

/// The command that kbuild has saved for an object of the `O=` directory `objects`, without source and output.
pub(super) fn command(objects: &Path, object: &str) -> Result<Vec<String>> {
    let saved = objects.join(saved_command(object));
    let text = fs::read_to_string(&saved)
        .with_context(|| format!("kbuild left no `{}`", saved.display()))?;
    words(&text).with_context(|| format!("cannot read the command in `{}`", saved.display()))
}

/// Where kbuild keeps the command that made an object.
fn saved_command(object: &str) -> PathBuf {
    let path = Path::new(object);
    path.with_file_name(format!(".{}.cmd", flat(object)))
}

/// The compiler's command without source, output and dependency file, from the first line of a `.cmd` file.
fn words(text: &str) -> Option<Vec<String>> {
    let line = text.lines().next()?;
    // The variable was called `cmd_...` up to 6.1, `savedcmd_...` since.
    let (_, command) = line.split_once(" := ")?;
    let command = command.replace("$(pound)", "#").replace("$$", "$");
    let words = shlex::split(&command)?;
    let end = words
        .iter()
        .position(|word| word.ends_with(';'))
        .unwrap_or(words.len());
    let mut kept = Vec::new();
    let mut words = words.into_iter().take(end);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-o" => drop(words.next()),
            _ if word.starts_with("-Wp,-MMD") => {}
            _ => kept.push(word),
        }
    }
    // The source comes last.
    kept.pop()
        .filter(|source| Path::new(source).extension() == Some("c".as_ref()))?;
    (kept.len() > 1).then_some(kept)
}

/// C that lists the variants.
fn table_text(header: &str, variants: &[Variant]) -> String {
    use std::fmt::Write as _;
    let mut text = format!("#include \"{header}\"\n");
    for variant in variants {
        let _ = writeln!(text, "void {}(void);", variant.symbol());
    }
    text.push_str("const struct variant variants[] = {\n");
    for variant in variants {
        let (name, symbol, placement) = (&variant.name, variant.symbol(), variant.placement);
        let _ = writeln!(text, "\t{{ \"{name}\", {symbol}, {placement} }},");
    }
    let _ = writeln!(
        text,
        "}};\nconst unsigned int nr_variants = {};",
        variants.len()
    );
    text
}

/// Assembly that answers sanitisers: they return, their memory functions do the work, and KMSAN gets an address back.
fn sanitizer_text(arch: &str, undefined: &[String]) -> String {
    use std::fmt::Write as _;
    let is_sanitizer = |name: &&String| {
        let word = name.strip_prefix("__").unwrap_or_default();
        SANITIZERS.iter().any(|prefix| {
            word.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with('_'))
        })
    };
    let mut names: Vec<_> = undefined.iter().filter(is_sanitizer).collect();
    names.sort();
    names.dedup();
    let mut text = "\t.text\n".to_owned();
    for name in names {
        let memory = name
            .trim_start_matches("__")
            .split_once("_mem")
            .map(|(_, rest)| format!("mem{rest}"));
        let memory = memory.filter(|name| ["memcpy", "memset", "memmove"].contains(&name.as_str()));
        let code = match (arch, memory) {
            ("arm64", Some(function)) => format!("b {function}"),
            ("arm64", None) => "ret".to_owned(),
            (_, Some(function)) => format!("jmp {function}"),
            (_, None) if name.starts_with("__msan_") => {
                "lea reroll_shadow, %rax; mov %rax, %rdx; ret".to_owned()
            }
            (_, None) => "ret".to_owned(),
        };
        let _ = writeln!(text, "\t.globl {name}\n{name}:\n\t{code}");
    }
    text.push_str("\t.bss\n\t.balign 64\nreroll_shadow:\n\t.skip 65536\n\t.section .note.GNU-stack, \"\", %progbits\n");
    text
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_saved_command_loses_source_output_and_dependencies() {
        let text = "savedcmd_mm/a.o := gcc -Wp,-MMD,mm/.a.o.d -DNAME='\"a\"' -Wl,x   -c -o mm/a.o /src/mm/a.c  ; ./tools/objtool/objtool mm/a.o\n\nsource_mm/a.o := /src/mm/a.c\n";
        assert_eq!(
            words(text).expect("a command"),
            ["gcc", "-DNAME=\"a\"", "-Wl,x", "-c"]
        );
    }

    #[test]
    fn a_command_that_compiles_no_c_is_none() {
        assert_eq!(
            words("savedcmd_mm/a.o := gcc -c -o mm/a.o /src/mm/a.S\n"),
            None
        );
        assert_eq!(words(""), None);
    }

    #[test]
    fn memory_functions_of_sanitisers_do_their_work() {
        let names = ["__msan_memset", "__asan_load8_noabort", "memcpy"].map(str::to_owned);
        let text = sanitizer_text("x86_64", &names);
        assert!(text.contains("__msan_memset:\n\tjmp memset\n"), "{text}");
        assert!(text.contains("__asan_load8_noabort:\n\tret\n"), "{text}");
        assert!(!text.contains(".globl memcpy"), "{text}");
    }
}
