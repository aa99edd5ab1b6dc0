//! The memory of a guest's devices, as files of the host: filled before the guest boots, compared afterwards.
//!
//! Hides what may differ between two boots of the same code: the one address that the kernel happened to allocate.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::error::Refusal;

/// What the backing file is filled with: no size, flag or address of a kernel is made of this byte.
const FILL: u8 = 0x5a;

/// A memory device of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Device {
    /// Its name: `{name}` in the emulator's command is the backing file.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// How much of it is filled in advance and may be compared, from its start, in bytes.
    pub fill: u64,
}

/// Where a guest says that its kernel has put `struct page`s.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Window {
    /// The device's name.
    pub(super) memory: String,
    /// The first byte, from the start of the device.
    pub(super) from: u64,
    /// The first byte after it.
    pub(super) to: u64,
    /// The pages that the kernel has set up in it.
    pub(super) pages: u64,
}

/// What a window held when the guest had ended.
pub(super) struct Content {
    pub(super) window: Window,
    bytes: Vec<u8>,
}

/// Differences that a report shows.
const SHOWN: usize = 8;

/// Bytes of the smallest `struct page`.
const SMALLEST: u64 = 32;

impl Device {
    /// Makes its backing file in `dir`.
    pub(super) fn create(&self, dir: &Path) -> Result<()> {
        let path = dir.join(&self.name);
        let context = || {
            Refusal::tool(format!("cannot write `{}`", path.display()))
                .hint("check the permissions and the free space")
        };
        let mut file = File::create(&path).with_context(context)?;
        let block = vec![FILL; 1 << 20];
        let mut left = self.fill.min(self.size);
        while left > 0 {
            let now = left.min(block.len() as u64);
            file.write_all(&block[..usize::try_from(now)?])
                .with_context(context)?;
            left -= now;
        }
        file.set_len(self.size).with_context(context)
    }

    /// What `window` holds now; `None` where it lies outside of what was filled.
    pub(super) fn read(&self, dir: &Path, window: &Window) -> Result<Option<Content>> {
        if window.from >= window.to || window.to > self.fill.min(self.size) {
            return Ok(None);
        }
        let path = dir.join(&self.name);
        let mut bytes = vec![0; usize::try_from(window.to - window.from)?];
        let file = File::open(&path);
        file.and_then(|file| file.read_exact_at(&mut bytes, window.from))
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(Some(Content {
            window: window.clone(),
            bytes,
        }))
    }
}

impl Content {
    /// Whether the kernel has written as much as its pages must take: what nobody wrote is equal, too.
    pub(super) fn is_written(&self) -> bool {
        let written = self.bytes.iter().filter(|byte| **byte != FILL).count() as u64;
        self.window.pages > 0 && written >= self.window.pages * SMALLEST
    }

    /// The words that differ from `base`, to be shown; the first line counts them. Empty where both are the same but for one address
    /// of the kernel's, which is another in each boot and the same throughout a boot.
    pub(super) fn differences(&self, base: &Self) -> Vec<String> {
        if self.window != base.window {
            return vec![format!("base: {:?}, patch: {:?}", base.window, self.window)];
        }
        let pairs = words(&base.bytes).zip(words(&self.bytes)).enumerate();
        let differ: Vec<_> = pairs
            .filter(|(_, (base, now))| base != now)
            .map(|(index, (base, now))| (index, base, now))
            .collect();
        if let Some(&(_, old, new)) = differ.first()
            && is_address(old)
            && is_address(new)
            && differ
                .iter()
                .all(|&(_, base, now)| (base, now) == (old, new))
            && !words(&base.bytes).any(|word| word == new)
            && !words(&self.bytes).any(|word| word == old)
        {
            return Vec::new();
        }
        let line = |&(index, base, now): &(usize, u64, u64)| {
            let at = self.window.from + 8 * index as u64;
            format!(
                "{}+{at:#x}: base {base:#018x}, patch {now:#018x}",
                self.window.memory
            )
        };
        let mut lines: Vec<_> = differ.iter().take(SHOWN).map(line).collect();
        if !differ.is_empty() {
            lines.insert(
                0,
                format!(
                    "{}: {} words of {} differ",
                    self.window.memory,
                    differ.len(),
                    self.bytes.len() / 8
                ),
            );
        }
        lines
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
}

/// Whether a word can be an address of a 64-bit kernel's: in the upper half, and not a small negative number.
fn is_address(word: u64) -> bool {
    (0xff00_0000_0000_0000..0xffff_ffff_ffff_f000).contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u64 = 0xffff_8880_0123_4000;
    const OTHER: u64 = 0xffff_8880_0123_5000;

    fn content(words: &[u64]) -> Content {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let window = Window {
            memory: "device".to_owned(),
            from: 0x1000,
            to: 0x1000 + bytes.len() as u64,
            pages: words.len() as u64 / 8,
        };
        Content { window, bytes }
    }

    #[test]
    fn one_address_may_be_another_throughout() {
        let base = content(&[1, ADDRESS, 2, ADDRESS]);
        assert!(content(&[1, OTHER, 2, OTHER]).differences(&base).is_empty());
        let half = content(&[1, OTHER, 2, ADDRESS]).differences(&base);
        assert_eq!(
            half,
            [
                "device: 1 words of 4 differ",
                "device+0x1008: base 0xffff888001234000, patch 0xffff888001235000"
            ]
        );
    }

    #[test]
    fn a_word_that_is_no_address_may_not_differ() {
        let base = content(&[1, 0, 2, 0]);
        assert_eq!(content(&[1, 3, 2, 3]).differences(&base).len(), 3);
        assert_eq!(
            content(&[1, ADDRESS, 2, ADDRESS]).differences(&base).len(),
            3
        );
        assert!(content(&[1, 0, 2, 0]).differences(&base).is_empty());
    }

    #[test]
    fn a_window_elsewhere_is_a_difference() {
        let base = content(&[1, 2]);
        let mut moved = content(&[1, 2]);
        moved.window.from += 8;
        assert_eq!(moved.differences(&base).len(), 1);
    }

    #[test]
    fn memory_that_nobody_wrote_is_noticed() {
        let fill = u64::from_le_bytes([FILL; 8]);
        assert!(!content(&[fill; 8]).is_written());
        let mut half = [fill; 8];
        half[..4].fill(0);
        assert!(content(&half).is_written());
        assert!(!content(&[0]).is_written(), "a window without pages");
    }

    #[test]
    fn a_window_outside_of_the_filled_part_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let device = Device {
            name: "device".to_owned(),
            size: 8192,
            fill: 4096,
        };
        device.create(dir.path()).expect("made");
        let window = |from, to| Window {
            memory: "device".to_owned(),
            from,
            to,
            pages: 1,
        };
        let read = |from, to| device.read(dir.path(), &window(from, to)).expect("read");
        assert!(read(0, 4096).is_some_and(|content| !content.is_written()));
        assert!(read(0, 4097).is_none());
        assert!(read(16, 16).is_none());
    }
}
