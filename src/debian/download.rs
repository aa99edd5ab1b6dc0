//! Fetches the file of a package.
//!
//! Hides where it comes from, and that one which was cut off goes on where it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use bstr::ByteSlice;

use super::apt::{Apt, OTHER_WAYS, complaints, not_written};
use super::view::Package;
use crate::error::Refusal;
use crate::exec::{Output, Task};
use crate::import::digest;

/// A package's file on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Download {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its digest, vouched for by the archive's signature.
    pub(crate) sha256: String,
}

/// Where a package's file comes from.
#[derive(Debug)]
struct Remote {
    uri: String,
    size: u64,
    sha256: String,
}

impl Apt {
    /// Fetches the package's file. One that was cut off goes on where it was.
    pub(crate) fn download(&self, package: &Package) -> Result<Download> {
        let remote = self.locate(package)?;
        let file = format!("{}.deb", package.id.replace([':', '='], "_"));
        let path = self.dir.join("archives").join(file);
        let id = &package.id;
        if !self.is_there(&path, &remote)? {
            let megabytes = remote.size.div_ceil(1_000_000);
            self.ui.status(&format!("fetching {id} ({megabytes} MB)"));
            let output = self.fetch(&path, &remote)?;
            if !output.exit.success() || !self.is_there(&path, &remote)? {
                return Err(Refusal::tool(format!("{id} could not be fetched"))
                    .details(complaints(&output))
                    .hint("check the network and run it again; `--refresh` renews the lists")
                    .into());
            }
        }
        Ok(Download {
            path,
            sha256: remote.sha256,
        })
    }

    /// Asks apt, which answers `'uri' file size SHA256:digest`.
    fn locate(&self, package: &Package) -> Result<Remote> {
        let ask = self.view_task(&package.view, "apt-get")?;
        let line = ask
            .args(["--print-uris", "download", &package.id])
            .output()?;
        let line = line.to_str_lossy();
        let mut words = line.split_whitespace();
        let mut parse = || {
            let uri = words.next()?.strip_prefix('\'')?.strip_suffix('\'')?;
            let size = words.nth(1)?.parse().ok()?;
            let sha256 = words.next()?.strip_prefix("SHA256:")?;
            Some(Remote {
                uri: uri.to_owned(),
                size,
                sha256: sha256.to_owned(),
            })
        };
        parse().with_context(|| {
            Refusal::tool(format!("apt does not say where to get {}", package.id))
                .details(vec![line.trim().to_owned()])
                .hint(OTHER_WAYS)
        })
    }

    /// The whole file, with the digest that the lists promise.
    fn is_there(&self, path: &Path, remote: &Remote) -> Result<bool> {
        if !fs::metadata(path).is_ok_and(|found| found.len() == remote.size) {
            return Ok(false);
        }
        if digest(path, self.ui)? == remote.sha256 {
            return Ok(true);
        }
        // Going on from wrong bytes would never end well.
        fs::remove_file(path).with_context(|| not_written(path))?;
        Ok(false)
    }

    fn fetch(&self, path: &Path, remote: &Remote) -> Result<Output> {
        let task = self
            .apt_task(self.machine.methods.join("../apt-helper"))?
            .args(["-q", "download-file", &remote.uri])
            .arg(path)
            .arg(format!("SHA256:{}", remote.sha256));
        self.watched(task, path, remote.size)
    }

    /// Runs a child that writes `path`, and shows how far it is.
    fn watched(&self, task: Task, path: &Path, size: u64) -> Result<Output> {
        let mut progress = self.ui.progress("downloading", size);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| task.run());
            while !running.is_finished() {
                progress.set(fs::metadata(path).map_or(0, |found| found.len()));
                std::thread::sleep(Duration::from_millis(50));
            }
            running
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread that watched a child died")))
        })
    }

    /// Forgets what was downloaded.
    pub(crate) fn tidy(&self) -> Result<()> {
        let archives = self.dir.join("archives");
        fs::remove_dir_all(&archives).with_context(|| not_written(&archives))
    }
}
