//! Chooses a kernel: of the machine's own suites, of one suite, or of every suite that the mirror has.
//!
//! Hides which suites those are.

use anyhow::Result;

use super::apt::{Apt, OTHER_WAYS};
use super::sources;
use super::view::{Fetched, Package, Rc, View};
use crate::error::Refusal;
use crate::ui::shown_text;

/// Which package is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The newest kernel of the machine's own sources.
    Default,
    /// The newest released kernel of all suites but experimental.
    Newest,
    /// The newest package of one release, such as `7.3`, of all suites but experimental.
    Release(String),
    /// The newest kernel in one suite, such as `sid` or `experimental`.
    Suite(String),
}

impl Wanted {
    /// Reads what follows `debian:`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
        let is_release = text
            .split_once('.')
            .is_some_and(|(major, minor)| digits(major) && digits(minor));
        match text {
            "default" => Ok(Self::Default),
            "newest" => Ok(Self::Newest),
            _ if is_release => Ok(Self::Release(text.to_owned())),
            _ if text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(plain) => {
                Ok(Self::Suite(text.to_owned()))
            }
            _ => Err(Refusal::usage(format!(
                "`debian:{}` names no kernel of Debian's",
                shown_text(text.as_bytes())
            ))
            .hint("say `debian:7.3`, `debian:newest`, or a suite: `debian:sid`, `debian:experimental`")
            .into()),
        }
    }
}

/// Where kernels are looked for besides the machine's own suites. Experimental has to be asked for.
const SUITES: [&str; 4] = ["trixie", "trixie-security", "trixie-backports", "sid"];

impl Apt {
    /// The package that is wanted, as of the lists of today, or of now when `refresh` is set.
    pub(crate) fn find(&self, wanted: &Wanted, refresh: bool) -> Result<Package> {
        let own = sources::read(&self.machine.list, &self.machine.parts)?;
        if own.is_empty() {
            return Err(
                Refusal::tool("apt on this machine knows no source with a `main`")
                    .hint(OTHER_WAYS)
                    .into(),
            );
        }
        let own = self.view("own", own, refresh)?;
        if !own.fetched.iter().any(Fetched::is_debian) {
            return Err(Refusal::tool(
                "none of apt's sources on this machine is Debian's, or can be reached",
            )
            .hint(format!("check the network, or {OTHER_WAYS}"))
            .into());
        }
        match wanted {
            Wanted::Default => own.newest(None, Rc::Refused),
            Wanted::Suite(suite) => {
                let source = own.archive_of(suite)?.with_suite(suite);
                let view = self.view(&format!("suite-{suite}"), vec![source], refresh)?;
                if view.fetched.is_empty() {
                    let mirror = &view.sources[0].uri;
                    return Err(
                        Refusal::usage(format!("`{mirror}` gave no suite `{suite}`"))
                            .hint("check its name, and the network")
                            .into(),
                    );
                }
                view.newest(None, Rc::Allowed)
            }
            Wanted::Newest => self.everywhere(&own, refresh)?.newest(None, Rc::Refused),
            Wanted::Release(release) => self
                .everywhere(&own, refresh)?
                .newest(Some(release), Rc::Refused),
        }
    }

    /// The machine's own suites and those in [`SUITES`].
    fn everywhere(&self, own: &View<'_>, refresh: bool) -> Result<View<'_>> {
        let mut sources: Vec<_> = own.debian().cloned().collect();
        for suite in SUITES {
            if sources.iter().any(|source| source.suite == suite) {
                continue;
            }
            match own.archive_of(suite) {
                Ok(archive) => sources.push(archive.with_suite(suite)),
                Err(error) => self.ui.warning(&format!("`{suite}` is left out: {error}")),
            }
        }
        self.view("all", sources, refresh)
    }
}
