//! The only writer to the terminal: data on standard output; status, warnings, errors and progress
//! on standard error.
//!
//! Hides colour, terminal detection and the escaping of what comes from trees and mails.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use bstr::ByteSlice;
use indicatif::{DecimalBytes, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::{Refusal, hint_of, refusal};

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where everything a person reads goes.
#[derive(Debug, Clone, Copy)]
pub struct Ui {
    quiet: bool,
}

/// What the whole process shares, since it has one terminal.
struct Terminal {
    quiet: bool,
    /// The board that is drawn.
    bars: Option<MultiProgress>,
}

static TERMINAL: Mutex<Terminal> = Mutex::new(Terminal {
    quiet: false,
    bars: None,
});

/// Nothing is broken for a terminal that is narrower than this.
const NARROWEST: usize = 20;

/// A progress bar appears only after this long.
const PROGRESS_AFTER: Duration = Duration::from_millis(250);

impl Ui {
    /// Decides colour, and what [`notice`] says, for the whole process; `quiet` drops status lines and progress.
    #[must_use]
    pub fn new(color: Color, quiet: bool) -> Self {
        match color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
        terminal().quiet = quiet;
        Self { quiet }
    }

    /// Data: bytes to standard output as they are. A closed pipe is not an error.
    pub fn data(self, bytes: &[u8]) -> Result<()> {
        let mut out = io::stdout().lock();
        printed(out.write_all(bytes).and_then(|()| out.flush()))
    }

    /// Text for a person on standard output; its styles are dropped where colour is off.
    pub fn text(self, text: &str) -> Result<()> {
        let mut out = anstream::stdout().lock();
        printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// A line of talk: what is being done or was done.
    pub fn status(self, line: &str) {
        if !self.quiet {
            talk("", Style::new(), line);
        }
    }

    /// Something that was decided for the user, and that has to be seen though nothing is wrong.
    pub fn note(self, line: &str) {
        talk("note: ", bold(AnsiColor::Green), line);
    }

    /// Something the user should know though the work goes on.
    pub fn warning(self, line: &str) {
        talk("warning: ", bold(AnsiColor::Yellow), line);
    }

    /// What to do next.
    pub fn hint(self, line: &str) {
        talk("hint: ", bold(AnsiColor::Cyan), line);
    }

    /// An error with its causes, details and hint.
    pub fn error(self, error: &anyhow::Error) {
        let refusal = refusal(error);
        talk("error: ", bold(AnsiColor::Red), &error.to_string());
        for cause in error.chain().skip(1) {
            talk("caused by: ", Style::new().bold(), &cause.to_string());
        }
        for line in refusal.map_or(&[][..], |Refusal { details, .. }| details) {
            talk("", Style::new(), line);
        }
        if let Some(hint) = hint_of(error) {
            self.hint(hint);
        }
    }

    /// Several bars at once, with lines above them, for work that goes on side by side.
    #[must_use]
    pub fn board(self) -> Board {
        let shown = !self.quiet && io::stderr().is_terminal();
        let target = if shown {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let all = MultiProgress::with_draw_target(target);
        terminal().bars = shown.then(|| all.clone());
        Board {
            ui: self,
            shown,
            all,
            bars: Mutex::default(),
        }
    }

    /// A bar of `total` units (bytes, files ...), or a spinner where the total is not known (0).
    /// Shown on a terminal only, and only once the work has taken a while.
    #[must_use]
    pub fn progress(self, label: &str, total: u64) -> Progress {
        let shown = !self.quiet && io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = if total == 0 {
            "{msg} {spinner} {human_pos}"
        } else {
            "{msg} [{bar:30}] {percent}% {eta}"
        };
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_message(shown_text(label.as_bytes()));
        Progress {
            bar,
            since: Instant::now(),
            shown,
        }
    }
}

/// Bars of work that goes on side by side; they disappear when dropped. Shown on a terminal only.
#[derive(Debug)]
pub struct Board {
    ui: Ui,
    shown: bool,
    all: MultiProgress,
    bars: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Board {
    /// A line that stays, above the bars. On a terminal or not.
    pub fn status(&self, line: &str) {
        self.ui.status(line);
    }

    /// Moves the bar called `name` to `done` of `total` and says what is done now.
    pub fn step(&self, name: &str, what: &str, done: u64, total: u64) {
        if !self.shown {
            return;
        }
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = bars.entry(name.to_owned()).or_insert_with(|| {
            let bar = self.all.add(ProgressBar::new(total));
            if let Ok(style) =
                ProgressStyle::with_template("{prefix:24} [{bar:20}] {elapsed} {msg}")
            {
                bar.set_style(style);
            }
            bar.set_prefix(shown_text(name.as_bytes()));
            bar.enable_steady_tick(Duration::from_secs(1));
            bar
        });
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(shown_text(what.as_bytes()));
    }

    /// Takes the bar called `name` away.
    pub fn end(&self, name: &str) {
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = bars.remove(name) {
            bar.finish_and_clear();
            self.all.remove(&bar);
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        terminal().bars = None;
    }
}

/// A running progress bar; it disappears when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    shown: bool,
}

impl Progress {
    /// Moves to `position` units.
    pub fn set(&mut self, position: u64) {
        if self.shown && self.since.elapsed() >= PROGRESS_AFTER {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = false;
        }
        self.bar.set_position(position);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A line of talk from where no [`Ui`] is at hand, such as a thread that waits.
pub fn notice(line: &str) {
    let quiet = terminal().quiet;
    if !quiet {
        talk("", Style::new(), line);
    }
}

/// Bytes from a tree, a mail or a log, safe to print: control characters and invalid UTF-8 are
/// written as `\xNN` or `\u{NNNN}`, tabs stay.
#[must_use]
pub fn shown_text(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for (start, end, char) in bytes.char_indices() {
        match char {
            '\t' => shown.push('\t'),
            char::REPLACEMENT_CHARACTER => {
                for byte in &bytes[start..end] {
                    shown.push_str(&format!("\\x{byte:02x}"));
                }
            }
            char if char.is_control() || is_bidi(char) => {
                shown.push_str(&char.escape_unicode().to_string());
            }
            char => shown.push(char),
        }
    }
    shown
}

/// A number of bytes as a person reads it: `1.95 GB`.
#[must_use]
pub fn shown_size(bytes: u64) -> String {
    DecimalBytes(bytes).to_string()
}

/// Characters that reorder what a terminal shows (Unicode's bidirectional controls).
fn is_bidi(char: char) -> bool {
    matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

fn bold(color: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(color.into()))
}

/// Writes one message to standard error, above the bars that are drawn; where even that fails there is nobody left to tell.
fn talk(label: &str, style: Style, line: &str) {
    let width = width();
    let lines = line.lines().map(|line| shown_text(line.as_bytes()));
    let lines: Vec<_> = lines
        .enumerate()
        .map(|(number, line)| match width {
            // Source that is quoted keeps its columns.
            Some(width) if !line.starts_with(' ') => {
                wrapped(&line, if number == 0 { label.len() } else { 2 }, width)
            }
            _ => line,
        })
        .collect();
    // What is on a line of its own must not look like one of ours.
    let text = format!("{style}{label}{style:#}{}", lines.join("\n  "));
    let write = || {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    };
    let bars = terminal().bars.clone();
    match bars {
        Some(bars) => bars.suspend(write),
        None => write(),
    }
}

/// How many columns the terminal has that talk goes to; `None` where it is none.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width >= NARROWEST)
}

/// A line broken at blanks, its first part behind `used` columns.
fn wrapped(line: &str, used: usize, width: usize) -> String {
    let first = "_".repeat(used);
    let options = textwrap::Options::new(width)
        .initial_indent(&first)
        .subsequent_indent("  ")
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(line, options);
    lines.join("\n")[used..].to_owned()
}

fn terminal() -> MutexGuard<'static, Terminal> {
    TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What became of printing: a reader that has gone has seen enough, and anything else is an error (exit 4).
pub fn printed(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(anyhow::Error::new(error)
            .context(
                Refusal::tool("cannot write to standard output")
                    .hint("make room on the disk that it goes to"),
            )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(shown_text(b"a\x1b[31mb\tc\xff"), "a\\u{1b}[31mb\tc\\xff");
        assert_eq!(shown_text("x\u{202e}y".as_bytes()), "x\\u{202e}y");
        assert_eq!(shown_text("Thör 世界".as_bytes()), "Thör 世界");
    }
}
