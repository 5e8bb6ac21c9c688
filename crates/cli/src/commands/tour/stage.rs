//! The stage of the tour: runs commands, measures their cost, and prints steps.
//!
//! A step is a heading with its costs at the right, the commands as one would type them in mongosh,
//! and their results.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use frond_doc::{Document, DocumentBuf, extended_json};

use crate::backend::{Backend, Embedded, STOP_IT};
use crate::failure::Failure;
use crate::output::bytes;
use crate::terminal::{Style, Terminal};

/// Columns of the whole tour.
pub const COLUMNS: usize = 78;
/// The beginning of each line below a heading.
pub const INDENT: &str = "    ";

/// Runs and shows the tour's steps.
pub struct Stage<'a> {
    /// The terminal to print on.
    pub terminal: &'a mut Terminal,
    backend: Box<Embedded>,
    directory: PathBuf,
    step: u32,
    /// The time of the commands since the last heading.
    elapsed: Duration,
    /// Chunks written before the last heading.
    chunks_before: u64,
}

impl<'a> Stage<'a> {
    /// A stage on an empty directory.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    pub fn open(directory: &Path, terminal: &'a mut Terminal) -> Result<Stage<'a>, Failure> {
        let backend = Box::new(Embedded::open(directory, STOP_IT)?);
        let (_, counters) = backend.frond().counters();
        Ok(Stage {
            terminal,
            backend,
            directory: directory.to_owned(),
            step: 0,
            elapsed: Duration::ZERO,
            chunks_before: counters.chunks_written,
        })
    }

    /// Runs a command, given as JSON, and counts its time into the step's.
    ///
    /// # Errors
    /// As [`Stage::look`].
    pub fn run(&mut self, database: &str, command: &str) -> Result<DocumentBuf, Failure> {
        let begun = Instant::now();
        let answer = self.look(database, command);
        self.elapsed += begun.elapsed();
        answer
    }

    /// Runs a command that only looks at what a step did: its time doesn't count.
    ///
    /// # Errors
    /// [`Failure::Refused`] or [`Failure::Failed`] if the command, or one of its writes, fails.
    pub fn look(&mut self, database: &str, command: &str) -> Result<DocumentBuf, Failure> {
        let command = extended_json::parse(command)
            .map_err(|error| Failure::failed(format!("{error} in {command}")))?;
        let answer = (&mut *self.backend as &mut dyn Backend).execute(database, &command)?;
        check_writes(answer.view())?;
        Ok(answer)
    }

    /// Ends a step's commands: prints its heading, with what they cost.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn heading(&mut self, title: &str) -> Result<(), Failure> {
        self.step += 1;
        let cost = self.cost()?;
        let number = format!("{:>2}", self.step);
        let gap = COLUMNS.saturating_sub(
            number.chars().count() + 2 + title.chars().count() + cost.chars().count(),
        );
        let number = self.terminal.paint(Style::Accent, number);
        let title = self.terminal.paint(Style::Strong, title);
        let cost = self.terminal.paint(Style::Quiet, cost);
        Ok(writeln!(self.terminal, "\n{number}  {title}{:gap$}{cost}", "")?)
    }

    /// Time, chunks written, and what lies on the disk now.
    fn cost(&mut self) -> Result<String, Failure> {
        let (_, counters) = self.backend.frond().counters();
        let chunks = counters.chunks_written - self.chunks_before;
        self.chunks_before = counters.chunks_written;
        let elapsed = std::mem::take(&mut self.elapsed);
        let written = match chunks {
            0 => String::new(),
            1 => "1 chunk".to_owned(),
            count => format!("{count} chunks"),
        };
        let disk = bytes(self.disk_bytes()?);
        Ok(format!("{}  {written:>9}  {disk:>9}", duration(elapsed)))
    }

    /// Bytes of all files in the data directory.
    ///
    /// # Errors
    /// [`Failure::Failed`] if a directory can't be read.
    pub fn disk_bytes(&self) -> Result<u64, Failure> {
        let failed = |error| Failure::file(&self.directory.display().to_string(), &error);
        let mut total = 0;
        let mut directories = vec![self.directory.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let metadata = entry.metadata().map_err(failed)?;
                if metadata.is_dir() {
                    directories.push(entry.path());
                } else {
                    total += metadata.len();
                }
            }
        }
        Ok(total)
    }

    /// Prints a line of text.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn text(&mut self, line: &str) -> Result<(), Failure> {
        Ok(writeln!(self.terminal, "{INDENT}{line}")?)
    }

    /// Prints what one would type in mongosh, where the prompt is the database's name, or `...`
    /// on a line that goes on.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn typed(&mut self, database: &str, command: &str) -> Result<(), Failure> {
        let mark = if database == "..." { "" } else { ">" };
        let prompt = self.terminal.paint(Style::Quiet, format!("{database}{mark}"));
        let command = self.terminal.paint(Style::Accent, command);
        Ok(writeln!(self.terminal, "{INDENT}{prompt} {command}")?)
    }

    /// Closes the database.
    ///
    /// # Errors
    /// [`Failure::Failed`] if not all could be made durable.
    pub fn close(self) -> Result<(), Failure> {
        self.backend.close()
    }
}

/// The documents of an answer's first batch.
pub fn first_batch(answer: &DocumentBuf) -> Vec<DocumentBuf> {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document());
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch")?.as_array());
    let documents = batch.iter().flat_map(|batch| batch.iter());
    documents.filter_map(|value| Some(value.as_document()?.to_buf())).collect()
}

/// Writes answer with `ok: 1` where single documents failed: in the tour none may.
fn check_writes(answer: Document<'_>) -> Result<(), Failure> {
    match answer.get("writeErrors") {
        None => Ok(()),
        Some(errors) => Err(Failure::failed(crate::output::json(errors))),
    }
}

/// `412 µs`, `18.2 ms`.
fn duration(elapsed: Duration) -> String {
    let micros = elapsed.as_micros();
    if micros < 1_000 {
        format!("{micros} µs")
    } else {
        format!("{:.1} ms", elapsed.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration(Duration::from_micros(412)), "412 µs");
        assert_eq!(duration(Duration::from_micros(18_240)), "18.2 ms");
    }
}
