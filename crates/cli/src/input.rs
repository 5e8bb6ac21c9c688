//! Files to documents: JSON in three shapes, CSV, TSV and BSON, compressed or not, as a stream; and
//! Parquet, which is read at places.
//!
//! A source yields one [`Record`] a document. A wrong document is a record too, with the number of
//! its line, and the source goes on behind it where it can; only a reader that fails ends it. A
//! file may be larger than memory, and so may a document of JSON or BSON: a long one is given as
//! [`Text`].

pub mod archive;
pub mod bson;
pub mod compressed;
pub mod csv;
pub mod json;
pub mod parquet;
pub mod window;

use std::io::{BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use frond_doc::DocumentBuf;

use crate::failure::{Failure, describe};
use crate::input::window::Window;

/// The longest text of one document that must be held in memory.
pub const DOCUMENT_TEXT_BYTES_MAX: usize = 256 << 20;

/// One document, or what is wrong where one was expected.
pub struct Record {
    /// The line where it begins, counted from 1.
    pub line: u64,
    /// The document, or why there is none.
    pub document: Result<Parsed, String>,
}

/// A document as its source gives it.
pub enum Parsed {
    /// In memory.
    Whole(DocumentBuf),
    /// As it comes, to be read by another thread before the source goes on.
    Streamed(Text),
}

/// The encoding of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DocumentEncoding {
    /// Extended JSON.
    Json,
    /// BSON.
    Bson,
}

/// The bytes of a long JSON object or BSON document, as they come. It ends early where the input
/// does.
pub struct Text {
    /// The encoding of the bytes.
    pub carrier: DocumentEncoding,
    bits: Receiver<Vec<u8>>,
    now: Vec<u8>,
    offset: usize,
}

impl Text {
    /// Returns a text and the sender of its pieces, few of which may wait.
    fn channel(carrier: DocumentEncoding) -> (SyncSender<Vec<u8>>, Text) {
        let (sender, bits) = sync_channel(BITS_WAITING);
        (sender, Text { carrier, bits, now: Vec::new(), offset: 0 })
    }
}

impl Read for Text {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        while self.offset == self.now.len() {
            // The sender is gone: the end.
            let Ok(next) = self.bits.recv() else { return Ok(0) };
            (self.now, self.offset) = (next, 0);
        }
        let rest = &self.now[self.offset..];
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        self.offset += count;
        Ok(count)
    }
}

/// The bytes that are read of a file at once: so many that most documents lie in them whole.
const READ_BYTES: usize = 1 << 20;
/// The bytes of a long text that go from one thread to another at once, at most.
const BIT_BYTES: usize = 64 << 10;
/// Bits of a text that wait between two threads.
const BITS_WAITING: usize = 4;
/// Documents whose text is longer are streamed.
pub const STREAMED_TEXT_BYTES_MIN: usize = 8 << 20;

/// Documents in the order of their file.
pub type Source = Box<dyn Iterator<Item = Result<Record, Failure>> + Send>;

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// One JSON object after another, mostly one a line; or one array of objects
    Json,
    /// Comma-separated values; the first line names the fields
    Csv,
    /// Values separated by tabs, quotes and all as they stand; the first line names the fields
    Tsv,
    /// Documents as mongodump writes them
    Bson,
    /// Columns as data tools write them; rows become documents
    Parquet,
    /// By the file's name, or else by its first character
    Auto,
}

/// Reads `reader` as `format`; `name` is its file's name, where it has one.
///
/// # Errors
/// [`Failure::Failed`] if it can't be read, or its format can't be recognized; what the format's
/// head is refused for.
pub fn open(
    reader: impl Read + Send + 'static,
    name: Option<&str>,
    format: Format,
    blanks: csv::EmptyCells,
) -> Result<Source, Failure> {
    let reader = compressed::plain(reader).map_err(|error| Failure::file("input", &error))?;
    let mut reader = Window::new(reader, READ_BYTES, STREAMED_TEXT_BYTES_MIN);
    let name = name.map(str::to_ascii_lowercase).unwrap_or_default();
    let name = compressed::plain_name(&name);
    if format == Format::Parquet {
        let what = "Parquet is read from its end: name a file, not a pipe";
        return Err(Failure::Usage(what.to_owned()));
    }
    if format == Format::Bson || (format == Format::Auto && name.ends_with(".bson")) {
        return Ok(Box::new(bson::BsonSource::new(reader)));
    }
    let first = skip_byte_order_mark(&mut reader)?;
    let format = match format {
        Format::Auto => guess(name, first)?,
        other => other,
    };
    match format {
        Format::Csv => Ok(Box::new(csv::CsvSource::open(reader, csv::Cells::Csv, blanks)?)),
        Format::Tsv => Ok(Box::new(csv::CsvSource::open(reader, csv::Cells::Tsv, blanks)?)),
        _ => Ok(Box::new(json::JsonSource::new(reader))),
    }
}

/// Guesses by the name's ending (in small letters), or else by the first byte that isn't white
/// space.
fn guess(name: &str, first: Option<u8>) -> Result<Format, Failure> {
    for (ending, format) in [(".csv", Format::Csv), (".tsv", Format::Tsv)] {
        if name.ends_with(ending) {
            return Ok(format);
        }
    }
    let is_json = [".json", ".jsonl", ".ndjson"].iter().any(|ending| name.ends_with(ending));
    match first {
        _ if is_json => Ok(Format::Json),
        Some(b'{' | b'[') | None => Ok(Format::Json),
        Some(_) => Err(Failure::Usage(
            "the input doesn't begin as JSON, and its name doesn't say what it is: use --format json, \
             csv, tsv, bson or parquet"
                .to_owned(),
        )),
    }
}

/// Skips a byte order mark and looks at the first byte that isn't white space, if it is near.
fn skip_byte_order_mark(reader: &mut impl BufRead) -> Result<Option<u8>, Failure> {
    let failed = |error| Failure::file("input", &error);
    if reader.fill_buf().map_err(failed)?.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3);
    }
    let start = reader.fill_buf().map_err(failed)?;
    Ok(start.iter().copied().find(|byte| !byte.is_ascii_whitespace()))
}

/// A failure of the reader in the middle of the input.
fn broken(line: u64, error: &std::io::Error) -> Failure {
    Failure::failed(format!("line {line}: {}", describe(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_guessed() {
        for (name, first, expected) in [
            ("a.csv", Some(b'{'), Some(Format::Csv)),
            ("a.csv", None, Some(Format::Csv)),
            ("a.tsv", Some(b'x'), Some(Format::Tsv)),
            ("a.jsonl", Some(b'x'), Some(Format::Json)),
            ("a.txt", Some(b'['), Some(Format::Json)),
            ("", Some(b'{'), Some(Format::Json)),
            ("", None, Some(Format::Json)),
            ("", Some(b'n'), None),
        ] {
            assert_eq!(guess(name, first).ok(), expected, "{name} {first:?}");
        }
    }
}
