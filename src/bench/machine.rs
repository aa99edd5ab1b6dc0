//! What figures depend on that is no part of the series: the processor, the memory, the load.
//!
//! Hides `/proc` and `/sys`; what cannot be read is said to be unknown.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine that something was measured on. No name, no address: figures are published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Machine {
    /// The processor's model, and family and model by number.
    pub cpu: String,
    /// Logical processors.
    pub cpus: usize,
    /// Memory, in GiB.
    pub memory_gib: u64,
    /// Whether the processor says that there is a hypervisor below it.
    pub virtual_machine: bool,
    /// The kernel that runs there.
    pub kernel: String,
    /// Whether ordinary memory lies on huge pages: `always`, `madvise`, `never`.
    pub huge_pages: String,
}

/// The mean number of processes that wanted to run within a minute, before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Before the first run.
    pub before: f64,
    /// After the last one; the measurement itself is 1 of it.
    pub after: f64,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn this() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let kib = value(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse().ok());
        Self {
            cpu: cpu(&cpuinfo),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: kib.unwrap_or(0_u64).div_ceil(1 << 20),
            virtual_machine: value(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            kernel: plain(&read("/proc/sys/kernel/osrelease")),
            huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
        }
    }
}

/// The load of the last minute; 0 where it cannot be read.
#[must_use]
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|first| first.parse().ok())
        .unwrap_or(0.0)
}

/// Memory that can be had now, in bytes.
pub(super) fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = value(&text, "MemAvailable")?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    Some(kib * 1024)
}

fn cpu(cpuinfo: &str) -> String {
    let value = |name| value(cpuinfo, name).unwrap_or("?");
    let model = value("model name");
    plain(&format!(
        "{model} (family {}, model {})",
        value("cpu family"),
        value("model")
    ))
}

/// The first value of a name in lines `NAME : VALUE`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// The word in brackets.
fn chosen(text: &str) -> String {
    let word = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    word.map_or_else(|| "unknown".to_owned(), |(word, _)| plain(word))
}

/// On one line, in ASCII, not too long: it goes into mails.
pub(super) fn plain(text: &str) -> String {
    const LONGEST: usize = 120;
    let words: Vec<_> = text.split_whitespace().collect();
    let text = words.join(" ");
    text.chars()
        .map(|char| {
            if char.is_ascii_graphic() || char == ' ' {
                char
            } else {
                '?'
            }
        })
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_named_with_family_and_model() {
        let text =
            "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: A  Processor\u{7f} 9\n";
        assert_eq!(cpu(text), "A Processor? 9 (family 25, model 17)");
        assert_eq!(cpu(""), "? (family ?, model ?)");
    }

    #[test]
    fn the_chosen_word_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen(""), "unknown");
    }

    #[test]
    fn this_machine_has_a_processor() {
        let machine = Machine::this();
        assert!(
            machine.cpus > 0 && !machine.cpu.contains('\n'),
            "{machine:?}"
        );
    }
}
