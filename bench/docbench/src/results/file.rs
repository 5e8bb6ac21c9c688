//! Results files are written line by line and read whole.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use crate::results::{End, Line, Row, RunHeader, SCHEMA, TargetLine};
use crate::target::Failure;

/// Writes lines; each is on the disk's way when the call returns.
pub struct Writer {
    file: File,
}

impl Writer {
    /// Makes the file, or empties it.
    pub fn create(path: &Path) -> Result<Writer, Failure> {
        let file = File::create(path)
            .map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
        Ok(Writer { file })
    }

    /// Appends a line.
    pub fn line(&mut self, line: &Line) -> Result<(), Failure> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        Ok(self.file.write_all(&text)?)
    }
}

/// A results file, read.
#[derive(Clone, Debug)]
pub struct Results {
    /// Its first line.
    pub run: RunHeader,
    /// Its targets, in order.
    pub targets: Vec<TargetLine>,
    /// Its rows, in order.
    pub rows: Vec<Row>,
    /// Its last line; `None` if the run was cut off.
    pub end: Option<End>,
}

impl Results {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Results, Failure> {
        let named = |error: String| Failure::Other(format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(|error| named(error.to_string()))?;
        let (mut run, mut end) = (None, None);
        let (mut targets, mut rows) = (Vec::new(), Vec::new());
        for (position, text) in BufReader::new(file).lines().enumerate() {
            let text = text?;
            let line = serde_json::from_str(&text)
                .map_err(|error| named(format!("line {}: {error}", position + 1)))?;
            match line {
                Line::Run(header) => run = Some(header),
                Line::Target(target) => targets.push(target),
                Line::Row(row) => rows.push(row),
                Line::End(last) => end = Some(last),
            }
        }
        let run: RunHeader = run.ok_or_else(|| named("has no line of type run".into()))?;
        if run.schema != SCHEMA {
            return Err(named(format!("has schema {}, this program reads {SCHEMA}", run.schema)));
        }
        Ok(Results { run, targets, rows, end })
    }
}
