//! `reroll report`.
use crate::ui::Ui;
use crate::error::Exit;
#[derive(Debug, clap::Args)]
pub(super) struct Args {}
pub(super) fn run(_args: &Args, _ui: Ui) -> anyhow::Result<Exit> { Ok(Exit::Done) }
