//! A long answer as JSON, printed while it comes.

use std::io::Write;

use frond_doc::extended_json::{self, Form};
use frond_doc::{Document, DocumentBuilder};

use crate::failure::Failure;
use crate::terminal::Terminal;

/// An answer that is a list, printed as [`answer_json`](crate::output::answer_json) shows it
/// whole, document by document.
pub struct JsonList {
    name: &'static str,
    count: u64,
}

impl JsonList {
    /// A list of that name, before its first document.
    pub fn new(name: &'static str) -> JsonList {
        JsonList { name, count: 0 }
    }

    /// The number of documents that were printed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Prints a document, without the `_id` that a row has besides.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn print(&mut self, terminal: &mut Terminal, row: Document<'_>) -> Result<(), Failure> {
        let mut shown = DocumentBuilder::new();
        for (name, value) in row.iter().filter(|(name, _)| *name != "_id") {
            shown.append(name, value);
        }
        let mut text = match self.count {
            0 => format!("{{\"{}\":[", self.name),
            _ => ",".to_owned(),
        };
        extended_json::write(shown.build().view(), Form::Relaxed, &mut text);
        self.count += 1;
        Ok(write!(terminal, "{text}")?)
    }

    /// Ends it, with the name of the next page if there is one.
    ///
    /// # Errors
    /// As [`JsonList::print`].
    pub fn end(self, terminal: &mut Terminal, next: Option<&str>) -> Result<(), Failure> {
        if self.count == 0 {
            write!(terminal, "{{\"{}\":[", self.name)?;
        }
        // An id needs no escape.
        let next = next.map(|next| format!(",\"next\":\"{next}\"")).unwrap_or_default();
        Ok(writeln!(terminal, "]{next}}}")?)
    }
}
