//! Standard output, with colours and a pager where it is a terminal and the user didn't turn them
//! off.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};

use crate::failure::Failure;
use crate::pager::Pager;

/// The kind of a piece of text, which decides its look.
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
    /// Text that readers may skip: costs, hints.
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

/// When output is coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    Auto,
    /// In any case
    Always,
    /// Not at all
    Never,
}

/// Whether standard output was closed when the program was started: the runtime then opens the null
/// device in its place, for reading, too, as no redirection does.
pub fn is_output_closed() -> bool {
    let is_null = || {
        let (out, null) = (fstat(io::stdout()).ok()?, stat("/dev/null").ok()?);
        Some(out.st_rdev == null.st_rdev && out.st_ino == null.st_ino)
    };
    let opened = fcntl_getfl(io::stdout());
    is_null() == Some(true) && opened.is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR)
}

/// Standard output, buffered; perhaps through a pager.
pub struct Terminal {
    out: BufWriter<Out>,
    is_coloured: bool,
}

/// The output. Standard output isn't locked for longer than a write: a server's threads may have
/// their log there.
enum Out {
    Standard(Stdout),
    Paged(Pager),
}

impl Terminal {
    /// Coloured as `colour` says. With `is_long` it goes through a pager if standard output is a
    /// terminal.
    pub fn new(colour: Colour, is_long: bool) -> Terminal {
        let set = |name: &str| std::env::var_os(name).unwrap_or_default();
        let is_terminal = io::stdout().is_terminal();
        let is_coloured = match colour {
            Colour::Auto => is_terminal && set("NO_COLOR").is_empty() && set("TERM") != "dumb",
            Colour::Always => true,
            Colour::Never => false,
        };
        let pager = if is_long && is_terminal { Pager::of_environment() } else { None };
        let out = pager.map_or_else(|| Out::Standard(io::stdout()), Out::Paged);
        Terminal { out: BufWriter::new(out), is_coloured }
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

    /// Writes what is buffered; a pager is waited for.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let done = self.out.flush();
        if let Out::Paged(pager) = self.out.get_mut() {
            pager.end();
        }
        Ok(done?)
    }

    /// As [`Terminal::finish`], for a program that goes on all the same: output that can't be
    /// written, since the reader is gone or the disk is full, is forgotten.
    pub fn finish_or_forget(&mut self) {
        if self.finish().is_err() {
            let fresh = BufWriter::new(Out::Standard(io::stdout()));
            drop(std::mem::replace(&mut self.out, fresh).into_parts());
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::Standard(out) => out.write(bytes),
            Out::Paged(pager) => pager.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Standard(out) => out.flush(),
            Out::Paged(pager) => pager.flush(),
        }
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
