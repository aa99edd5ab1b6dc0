//! The `[check]` table of a recipe: what the gates build, compare and forgive.
//!
//! Hides the spelling of the table; the gates see configurations, options and reasons.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Name;
pub use super::guest::Device;
use crate::error::Refusal;

/// The `[check]` table of `series.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    /// What kbuild makes after each patch: `mm/mm_init.o`.
    pub objects: Vec<String>,
    /// Options that every configuration wants; a configuration can leave them out.
    pub options: Vec<String>,
    /// The matrix of builds.
    pub configuration: Vec<Configuration>,
    /// What modpost looks at.
    pub section: Section,
    /// What must not change what is written to memory.
    pub equality: Option<Equality>,
    /// The kernel that boots in an emulator with and without the patches.
    pub guest: Option<Guest>,
    /// What is not run, and why.
    pub skip: Vec<Skip>,
    /// Findings of checkpatch that stay, and why.
    pub accept: Vec<Accept>,
    /// The functions whose objects are left out: no base has said yet which file they are in.
    #[serde(skip)]
    pub open: Vec<String>,
}

/// One way to build the objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Configuration {
    /// Its name in reports: `x86-64 gcc`.
    pub name: String,
    /// Kbuild's `ARCH`: `x86_64`, `i386`, `arm64`.
    pub arch: String,
    /// Who compiles.
    #[serde(default)]
    pub compiler: Compiler,
    /// The prefix of a cross compiler and its binutils: `aarch64-linux-gnu-`.
    #[serde(default)]
    pub cross: Option<String>,
    /// The target that makes the first `.config`: `defconfig`, `x86_64_defconfig`.
    #[serde(default = "defconfig")]
    pub defconfig: String,
    /// Options wanted here beyond [`Settings::options`]: `KASAN=y`, `HUGETLB_PAGE=n`.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether [`Settings::options`] are wanted here too.
    #[serde(default = "yes")]
    pub common_options: bool,
    /// Flags for the compiler beyond kbuild's own (`KCFLAGS`).
    #[serde(default)]
    pub flags: Vec<String>,
    /// Kbuild's `W=`: `1`.
    #[serde(default = "warnings")]
    pub warnings: String,
    /// What runs besides the compiler.
    #[serde(default)]
    pub analyser: Option<Analyser>,
    /// Whether modpost looks at the objects.
    #[serde(default)]
    pub section: bool,
    /// Whether the objects are run and compared.
    #[serde(default)]
    pub equality: bool,
    /// The command that runs a program of this architecture: `["qemu-aarch64-static"]`; empty where the machine itself can.
    #[serde(default)]
    pub emulator: Vec<String>,
    /// Debian packages that hold the tools of this configuration.
    #[serde(default)]
    pub packages: Vec<String>,
}

/// A compiler family.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compiler {
    /// `gcc`, with the cross prefix in front.
    #[default]
    Gcc,
    /// LLVM with this suffix: `-19`; empty is the unversioned one.
    Llvm(String),
}

/// A source analyser that kbuild runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Analyser {
    /// sparse, through kbuild's `C=2`.
    Sparse,
}

/// What modpost looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Section {
    /// Objects linked with [`Settings::objects`] before modpost looks, so that calls into them are seen. Ones that the
    /// base cannot build are left out and named.
    pub with: Vec<String>,
}

/// What must not change what is written to memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Equality {
    /// The object under test: `mm/mm_init.o`.
    pub object: String,
    /// The function that is called.
    pub entry: String,
    /// The directory of the harness, beside `series.toml` or embedded.
    pub harness: PathBuf,
    /// Numbers of the patches after which it runs; empty is after each.
    #[serde(default)]
    pub after: Vec<usize>,
    /// Objects whose functions the object needs at run time.
    #[serde(default)]
    pub with: Vec<String>,
}

/// A kernel that boots in an emulator and leaves the memory of its devices behind, to be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Guest {
    /// How the kernel is built. Its emulator is the whole machine's: `{kernel}`, `{initrd}` and the name of a device in braces stand for
    /// files in its arguments.
    pub configuration: Configuration,
    /// What kbuild makes: `bzImage`.
    pub target: String,
    /// Where the kernel is then, below the `O=` directory: `arch/x86/boot/bzImage`.
    pub image: PathBuf,
    /// The C file in the directory of [`Equality::harness`] that is the guest's only program. For each device it prints a JSON object
    /// with `memory`, `from` and `to` (bytes from the device's start), and `pages` that were set up there.
    pub init: PathBuf,
    /// Numbers of the patches after which it boots; empty is after each.
    #[serde(default)]
    pub after: Vec<usize>,
    /// Memory devices that are files of the host.
    pub memory: Vec<Device>,
}

/// Something that is not run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Skip {
    /// The gate.
    pub gate: Name,
    /// One configuration of it; all where absent.
    #[serde(default)]
    pub configuration: Option<String>,
    /// One patch by its name; all where absent.
    #[serde(default)]
    pub patch: Option<String>,
    /// One rule of the gate `mail` or `maintainers` by its name; the whole gate where absent.
    #[serde(default)]
    pub rule: Option<String>,
    /// Why; shown in every report.
    pub reason: String,
}

/// A finding of checkpatch that stays, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Accept {
    /// Checkpatch's own name of the finding: `FILE_PATH_CHANGES`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The patch by its name; all where absent.
    #[serde(default)]
    pub patch: Option<String>,
    /// Text that the finding's message must hold.
    #[serde(default)]
    pub message: Option<String>,
    /// Why; shown in every report.
    pub reason: String,
}

/// A wanted value of a Kconfig option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Its name, without `CONFIG_`.
    pub name: &'a str,
    /// `y`, `m`, `n` or a value.
    pub value: &'a str,
}

fn defconfig() -> String {
    "defconfig".to_owned()
}

fn yes() -> bool {
    true
}

fn warnings() -> String {
    "1".to_owned()
}

impl Settings {
    /// The options wanted in `configuration`: the common ones first, its own last.
    pub fn wanted<'a>(
        &'a self,
        configuration: &'a Configuration,
    ) -> impl Iterator<Item = Wanted<'a>> {
        let common = self
            .options
            .iter()
            .filter(|_| configuration.common_options)
            .filter(|common| {
                let name = wanted(common).name;
                configuration
                    .options
                    .iter()
                    .all(|own| wanted(own).name != name)
            });
        // Warnings are compared with the base's: they must not stop the build.
        let own = common
            .chain(&configuration.options)
            .map(|text| wanted(text));
        [wanted("WERROR=n")].into_iter().chain(own)
    }

    /// The same for a series whose first `merged` patches the base has.
    #[must_use]
    pub fn without(&self, merged: usize) -> Self {
        let mut settings = self.clone();
        settings.leave_out(merged);
        settings
    }

    /// Counts patches without the first `merged`, which the base has.
    pub(super) fn leave_out(&mut self, merged: usize) {
        // None that is left is none at all, which an empty list does not say.
        let gone = |after: &mut Vec<usize>| {
            let named = !after.is_empty();
            after.retain(|number| *number > merged);
            for number in &mut *after {
                *number -= merged;
            }
            named && after.is_empty()
        };
        if self.guest.as_mut().is_some_and(|it| gone(&mut it.after)) {
            self.guest = None;
        }
        if self.equality.as_mut().is_some_and(|it| gone(&mut it.after)) {
            for configuration in &mut self.configuration {
                configuration.equality = false;
            }
        }
    }

    /// Refuses a table that parses but cannot be meant (exit 2).
    pub fn validate(&self) -> Result<(), Refusal> {
        for (index, configuration) in self.configuration.iter().enumerate() {
            let name = &configuration.name;
            if self.configuration[..index]
                .iter()
                .any(|other| other.name == *name)
            {
                return Err(Refusal::usage(format!(
                    "two configurations of `[check]` are called `{name}`"
                )));
            }
            if configuration.equality && self.equality.is_none() {
                return Err(Refusal::usage(format!(
                    "configuration `{name}` wants equality, but there is no `[check.equality]`"
                )));
            }
        }
        if let Some(guest) = &self.guest {
            guest.validate(self)?;
        }
        let unknown = self
            .skip
            .iter()
            .filter_map(|skip| skip.rule.as_deref())
            .find(|rule| !super::is_rule(rule));
        if let Some(rule) = unknown {
            return Err(Refusal::usage(format!(
                "`[[check.skip]]` names `{rule}`, which is no rule of the gates `mail` and `maintainers`"
            )));
        }
        let guests = self.guest.iter().map(|guest| &guest.configuration);
        let options = self
            .configuration
            .iter()
            .chain(guests)
            .flat_map(|it| &it.options)
            .chain(&self.options);
        let words = options.map(|text| (text, is_option(text)));
        let targets = self.objects.iter().chain(&self.section.with);
        let of_equality = |it: &'_ Equality| {
            let object = self.open.is_empty().then(|| it.object.clone());
            it.with.iter().cloned().chain(object).collect::<Vec<_>>()
        };
        let of_equality: Vec<_> = self.equality.iter().flat_map(of_equality).collect();
        let targets = targets.chain(&of_equality);
        for (text, right) in words.chain(targets.map(|text| (text, is_target(text)))) {
            if !right {
                return Err(Refusal::usage(format!(
                    "`{text}` in `[check]` is neither `OPTION=value` nor the path of an object"
                )));
            }
        }
        let reasons = self
            .skip
            .iter()
            .map(|it| &it.reason)
            .chain(self.accept.iter().map(|it| &it.reason));
        if reasons.into_iter().any(|reason| reason.trim().is_empty()) {
            return Err(Refusal::usage(
                "an entry of `[[check.skip]]` or `[[check.accept]]` has no reason",
            )
            .hint("say in a sentence why it may stay; the report shows it"));
        }
        Ok(())
    }
}

impl Guest {
    fn validate(&self, settings: &Settings) -> Result<(), Refusal> {
        let wrong = |what: &str| {
            Err(Refusal::usage(format!("`[check.guest]` {what}"))
                .hint("ARCHITECTURE.md lists what the table says"))
        };
        let inside = |path: &Path| {
            path.components()
                .all(|part| matches!(part, std::path::Component::Normal(_)))
        };
        let plain = |text: &str| {
            let word = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
            !text.is_empty() && !text.starts_with('-') && text.chars().all(word)
        };
        if settings.equality.is_none() {
            return wrong("needs `[check.equality]`, which names the harness");
        }
        if !inside(&self.image) || !inside(&self.init) {
            return wrong("names a path that is not inside of its directory");
        }
        if !plain(&self.target) || !self.memory.iter().all(|device| plain(&device.name)) {
            return wrong("has a target or a device that is no plain word");
        }
        if self.memory.is_empty() || self.configuration.emulator.is_empty() {
            return wrong("needs a device in `memory` and an emulator");
        }
        Ok(())
    }
}

/// `NAME=value`; a bare name is `NAME=y`.
fn wanted(text: &str) -> Wanted<'_> {
    let (name, value) = text.split_once('=').unwrap_or((text, "y"));
    Wanted {
        name: name.strip_prefix("CONFIG_").unwrap_or(name),
        value,
    }
}

/// One line of a `.config` and no more.
fn is_option(text: &str) -> bool {
    let Wanted { name, value } = wanted(text);
    let word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    !name.is_empty()
        && name.chars().all(word)
        && !value.is_empty()
        && !value.contains(char::is_control)
}

/// A path below the tree that is no option or assignment of make's.
fn is_target(text: &str) -> bool {
    let word = |char: char| char.is_ascii_alphanumeric() || "_-./".contains(char);
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.starts_with('-');
    text.chars().all(word)
        && text.split('/').all(plain)
        && Path::new(text).extension() == Some("o".as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
objects = ["mm/a.o"]
options = ["ONE=y", "TWO"]
[[configuration]]
name = "clang"
arch = "x86_64"
compiler = { llvm = "-19" }
options = ["TWO=n"]
"#;

    #[test]
    fn a_configurations_own_option_comes_instead_of_the_common_one() {
        let settings: Settings = toml::from_str(TABLE).expect("parses");
        settings.validate().expect("valid");
        let wanted: Vec<_> = settings.wanted(&settings.configuration[0]).collect();
        let expected = [("WERROR", "n"), ("ONE", "y"), ("TWO", "n")];
        assert_eq!(wanted, expected.map(|(name, value)| Wanted { name, value }));
        assert_eq!(
            settings.configuration[0].compiler,
            Compiler::Llvm("-19".to_owned())
        );
    }

    #[test]
    fn numbers_of_patches_follow_a_series_without_its_first_ones() {
        let table = "[[configuration]]\nname = \"gcc\"\narch = \"x86_64\"\nequality = true\n\
                     [equality]\nobject = \"mm/a.o\"\nentry = \"a\"\nharness = \"harness\"\nafter = [1, 3]\n";
        let after = |merged| {
            let mut settings: Settings = toml::from_str(table).expect("parses");
            settings.leave_out(merged);
            let equality = settings.equality.expect("it is there");
            (equality.after, settings.configuration[0].equality)
        };
        assert_eq!(after(0), (vec![1, 3], true));
        assert_eq!(after(2), (vec![1], true));
        assert_eq!(after(3), (vec![], false));
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let error = toml::from_str::<Settings>("object = []").expect_err("unknown key");
        assert!(
            error.to_string().contains("unknown field `object`"),
            "{error}"
        );
    }

    #[test]
    fn an_object_cannot_be_an_option_of_make() {
        for object in ["--eval=x", "../x.o", "a/../x.o", "A=b.o", "/x.o", "-x/y.o"] {
            let settings = Settings {
                objects: vec![object.to_owned()],
                ..Settings::default()
            };
            assert!(settings.validate().is_err(), "{object}");
        }
    }

    #[test]
    fn an_option_cannot_smuggle_a_second_line() {
        let settings = Settings {
            options: vec!["A=y\nB".to_owned()],
            ..Settings::default()
        };
        assert!(settings.validate().is_err());
    }

    #[test]
    fn a_guest_that_cannot_be_meant_is_refused() {
        const GUEST: &str = r#"
[equality]
object = "mm/a.o"
entry = "a"
harness = "harness"
[guest]
target = "bzImage"
image = "arch/x86/boot/bzImage"
init = "guest.c"
memory = [{ name = "one", size = 4096, fill = 4096 }]
[guest.configuration]
name = "guest"
arch = "x86_64"
emulator = ["qemu-system-x86_64"]
"#;
        let validate = |text: &str| {
            let settings: Settings = toml::from_str(text).expect("parses");
            settings.validate()
        };
        validate(GUEST).expect("it can be meant");
        let (_, alone) = GUEST.split_once("[guest]").expect("a guest");
        let faults = [
            (format!("[guest]{alone}"), "needs `[check.equality]`"),
            (GUEST.replace("arch/x86/boot", "../boot"), "not inside"),
            (GUEST.replace("\"guest.c", "\"/guest.c"), "not inside"),
            (
                GUEST.replace("\"bzImage\"", "\"--eval=x\""),
                "no plain word",
            ),
            (GUEST.replace("\"one\"", "\"a,b\""), "no plain word"),
            (GUEST.replace("\"qemu-system-x86_64\"", ""), "an emulator"),
            (
                GUEST.replace("{ name = \"one\", size = 4096, fill = 4096 }", ""),
                "a device",
            ),
        ];
        for (text, words) in faults {
            let refusal = validate(&text).expect_err(words);
            assert!(refusal.message.contains(words), "{refusal}");
            assert!(refusal.hint.is_some() && refusal.exit == crate::error::Exit::Usage);
        }
    }
}
