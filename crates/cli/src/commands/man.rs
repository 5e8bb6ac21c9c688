//! `frond man`: the manual pages, one for each command, from what `--help` says.
//!
//! The text below the options in help becomes two sections: EXAMPLES, whose lines stay as they are,
//! and NOTES.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::output::counted;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  frond man ~/.local/share/man/man1 && man frond-merge
  frond man /usr/local/share/man/man1";

/// The manual that the pages belong to.
const MANUAL: &str = "Frond";
/// The beginning of the examples below a command's options.
const EXAMPLES_MARK: &str = "Examples:";

/// Write the manual pages into a directory
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Manual {
    /// Directory for the pages; it is made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Manual {
    /// Writes the pages of `command`, the whole command line.
    ///
    /// # Errors
    /// [`Failure::Failed`] if a page can't be written.
    pub fn run(&self, command: Command, terminal: &mut Terminal) -> Result<(), Failure> {
        let failed = |error| Failure::file(&self.directory.display().to_string(), &error);
        fs::create_dir_all(&self.directory).map_err(failed)?;
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let count = write_pages(&command, &self.directory).map_err(failed)?;
        let pages = counted(count, "page");
        Ok(writeln!(terminal, "{pages} in {}", self.directory.display())?)
    }
}

/// Writes a command's page and those of the commands below it; returns how many.
fn write_pages(command: &Command, directory: &Path) -> io::Result<u64> {
    let version = format!("frond {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).manual(MANUAL).source(version);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    page.extend_from_slice(synopsis(command).as_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    page.extend_from_slice(sections(&below).as_bytes());
    File::create(directory.join(man.get_filename()))?.write_all(&page)?;
    let mut count = 1;
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        count += write_pages(inner, directory)?;
    }
    Ok(count)
}

/// The lines that `--help` begins with. (The generator's own name each option, without its value,
/// and before what the command is about.)
fn synopsis(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let lines = usage.trim_start_matches("Usage:").lines().map(|line| escaped(line.trim()));
    format!(".SH SYNOPSIS\n.nf\n{}.fi\n", lines.collect::<String>())
}

/// The sections of what stands below the options.
fn sections(below: &str) -> String {
    let (examples, notes) = match below.strip_prefix(EXAMPLES_MARK) {
        None => ("", below),
        Some(rest) => rest.split_once("\n\n").unwrap_or((rest, "")),
    };
    let mut text = String::new();
    if !examples.trim().is_empty() {
        text.push_str(".SH EXAMPLES\n.nf\n");
        for line in examples.trim_matches('\n').lines() {
            text.push_str(&escaped(line.strip_prefix("  ").unwrap_or(line)));
        }
        text.push_str(".fi\n");
    }
    if !notes.trim().is_empty() {
        text.push_str(".SH NOTES\n");
        for line in notes.lines() {
            // Indented lines are a table; an empty line ends a paragraph.
            match (line.is_empty(), line.starts_with("  ")) {
                (true, _) => text.push_str(".PP\n"),
                (_, true) => text.push_str(&format!(".br\n{}", escaped(line))),
                _ => text.push_str(&escaped(line)),
            }
        }
    }
    text
}

/// A line of text that roff shows as it stands.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\(rs").replace('-', "\\-").replace('\'', "\\(aq");
    let guard = if line.starts_with('.') { "\\&" } else { "" };
    format!("{guard}{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_paragraphs_become_sections() {
        let below = "Examples:\n  frond x -a\n  frond y '\\d'\n\nA note.\n.dotted\n\nMore.";
        let expected = ".SH EXAMPLES\n.nf\nfrond x \\-a\nfrond y \\(aq\\(rsd\\(aq\n.fi\n\
                        .SH NOTES\nA note.\n\\&.dotted\n.PP\nMore.\n";
        assert_eq!(sections(below), expected);
        assert_eq!(sections(""), "");
        assert_eq!(sections("Only a note."), ".SH NOTES\nOnly a note.\n");
    }
}
