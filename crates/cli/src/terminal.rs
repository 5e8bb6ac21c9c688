//! Standard output, with colours where it is a terminal and the user didn't turn them off.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use crate::failure::Failure;

/// What a piece of text is: how it looks follows from that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Only on the right side of a diff; success.
    Added,
    /// Only on the left side of a diff; conflicts.
    Removed,
    /// On both sides, and different; commit ids.
    Changed,
    /// Names and headings.
    Strong,
    /// What the eye may pass over: costs, hints.
    Quiet,
    /// Commands to type.
    Accent,
}

impl Style {
    /// The parameters of the escape sequence that begins it.
    fn parameters(self) -> &'static str {
        match self {
            Style::Added => "32",
            Style::Removed => "31",
            Style::Changed => "33",
            Style::Strong => "1",
            Style::Quiet => "2",
            Style::Accent => "36",
        }
    }
}

/// Standard output, buffered.
pub struct Terminal {
    out: BufWriter<StdoutLock<'static>>,
    is_coloured: bool,
}

impl Terminal {
    /// Coloured if standard output is a terminal and `NO_COLOR` is not set (or empty).
    pub fn new() -> Terminal {
        let set = |name: &str| std::env::var_os(name).unwrap_or_default();
        let is_coloured =
            io::stdout().is_terminal() && set("NO_COLOR").is_empty() && set("TERM") != "dumb";
        Terminal { out: BufWriter::new(io::stdout().lock()), is_coloured }
    }

    /// `text`, coloured where colours are on. The text must be the program's own or escaped: a
    /// stored string can't send escape sequences to a terminal, since JSON escapes them.
    pub fn paint(&self, style: Style, text: impl Display) -> String {
        if self.is_coloured {
            format!("\x1b[{}m{text}\x1b[0m", style.parameters())
        } else {
            text.to_string()
        }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
