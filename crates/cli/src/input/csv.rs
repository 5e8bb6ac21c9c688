//! CSV and TSV with a header, as mongoimport reads them by default.
//!
//! - In TSV a quote is a letter like others, and no cell holds a tab or the end of a line.
//! - The first line names the fields. A dotted name (`address.city`) makes nested documents.
//! - A cell that reads as an integer becomes an int or, where it doesn't fit, a long; one that
//!   reads as a decimal number a double; everything else stays text. (So `007` becomes 7; what
//!   must stay text is better imported as JSON.) Unlike mongoimport, the words `nan`, `inf` and
//!   `infinity` stay text.
//! - A line with fewer cells than the header lacks the last fields; cells beyond the header are
//!   named `field<position>`.
//! - A line is held in memory, so one of more than [`LINE_BYTES_MAX`] ends the input: mostly a
//!   quote is missing, or this is no text with lines.
//! - Input that ends within a quoted cell is cut off, and a quote that stands elsewhere than around
//!   a cell, or twice within one that is quoted, leaves open where cells end: errors, as with
//!   mongoimport. (The reader of lines would take what there is for the last line, and `"x"y` for
//!   `xy`.)

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use csv::{ReaderBuilder, StringRecord, StringRecordsIntoIter};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::failure::Failure;
use crate::input::{Parsed, Record};

/// The longest line: far longer than the text of the largest document that is taken.
const LINE_BYTES_MAX: usize = 64 << 20;
/// The depth to which a dotted name may nest documents.
const HEADER_DEPTH_MAX: usize = 50;

/// The form of cells in a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cells {
    /// Between commas, or quoted.
    Csv,
    /// Between tabs.
    Tsv,
}

/// The treatment of empty cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EmptyCells {
    /// An empty string.
    Kept,
    /// No field.
    Ignored,
}

/// A part of the header: where a field's value comes from.
#[derive(Debug)]
enum Node {
    Column(usize),
    Nested(Fields),
}

/// Fields in the header's order, and where each of them is.
#[derive(Debug, Default)]
struct Fields {
    nodes: Vec<(String, Node)>,
    positions: HashMap<String, usize>,
}

impl Fields {
    fn push(&mut self, name: &str, node: Node) {
        self.positions.insert(name.to_owned(), self.nodes.len());
        self.nodes.push((name.to_owned(), node));
    }

    /// Puts a column below its path; fails where something else is there.
    fn insert(&mut self, path: &[&str], column: usize) -> Result<(), ()> {
        let Some((first, rest)) = path.split_first() else { return Err(()) };
        let Some(position) = self.positions.get(*first) else {
            let mut node = Node::Column(column);
            for part in rest.iter().rev() {
                let mut nested = Fields::default();
                nested.push(part, node);
                node = Node::Nested(nested);
            }
            self.push(first, node);
            return Ok(());
        };
        match &mut self.nodes[*position].1 {
            Node::Nested(nested) => nested.insert(rest, column),
            Node::Column(_) => Err(()),
        }
    }
}

/// The place of the text within a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Nothing was read, or the mark that UTF-8 may begin with.
    Start,
    /// Nothing of the cell was read.
    Before,
    /// In one without quotes, or behind them.
    Plain,
    /// Between its quotes.
    Quoted,
    /// Behind a quote that ends it, unless another follows.
    Quote,
}

impl Place {
    /// Returns where the text is behind `byte`; or what is wrong with that.
    fn after(self, byte: u8) -> Result<Place, &'static str> {
        Ok(match (self, byte) {
            (Place::Quoted, b'"') => Place::Quote,
            (Place::Quoted, _) | (Place::Start | Place::Before | Place::Quote, b'"') => {
                Place::Quoted
            }
            (Place::Start, 0xef | 0xbb | 0xbf) => Place::Start,
            (_, b',' | b'\n' | b'\r') => Place::Before,
            (Place::Quote, _) => return Err("text follows the closing quote of a cell"),
            (Place::Plain, b'"') => return Err("a quote within a cell that isn't quoted"),
            _ => Place::Plain,
        })
    }
}

/// The part of the text that was read.
#[derive(Clone, Copy, Default, Debug)]
struct Reached {
    lines: u64,
    /// Characters since the line began.
    characters: u64,
}

impl Reached {
    fn pass(&mut self, bytes: &[u8]) {
        let count = |bytes: &[u8], is: fn(&u8) -> bool| bytes.iter().filter(|one| is(one)).count();
        let line = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                self.lines += count(&bytes[..=end], |byte| *byte == b'\n') as u64;
                self.characters = 0;
                &bytes[end + 1..]
            }
            None => bytes,
        };
        // Bytes that go on with a character of UTF-8 are none of their own.
        self.characters += count(line, |byte| byte & 0xc0 != 0x80) as u64;
    }
}

/// The quotes of CSV: what was read of them, and what is wrong.
#[derive(Clone, Copy)]
struct Quotes {
    place: Place,
    reached: Reached,
    wrong: Option<&'static str>,
}

impl Quotes {
    /// Goes on through `bytes`; returns how many are right.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut right = bytes.len();
        for (position, byte) in bytes.iter().enumerate() {
            match self.place.after(*byte) {
                Ok(place) => self.place = place,
                Err(wrong) => {
                    (right, self.wrong) = (position, Some(wrong));
                    break;
                }
            }
        }
        self.reached.pass(&bytes[..right]);
        right
    }

    fn check(&self) -> io::Result<()> {
        let Some(wrong) = self.wrong else { return Ok(()) };
        let Reached { lines, characters } = self.reached;
        let what = format!(
            "line {}, column {}: {wrong} (one within quotes is written twice)",
            lines + 1,
            characters + 1
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

/// A reader that ends with an error once too much was read for one line, within quotes, or at one
/// that is wrong.
struct Bounded<R> {
    reader: R,
    /// The bytes read since the last complete line.
    bytes: Arc<AtomicUsize>,
    /// `None` where quotes are letters.
    quotes: Option<Quotes>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.load(Ordering::Relaxed) > LINE_BYTES_MAX {
            let megabytes = LINE_BYTES_MAX >> 20;
            let what = format!("a line of more than {megabytes} MB: is a quote missing?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.quotes.map_or(Ok(()), |quotes| quotes.check())?;
        let mut count = self.reader.read(buffer)?;
        self.bytes.fetch_add(count, Ordering::Relaxed);
        if let Some(quotes) = &mut self.quotes {
            if count == 0 && quotes.place == Place::Quoted {
                let what = "a quote is not closed: the input is cut off";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
            count = quotes.pass(&buffer[..count]);
            if count == 0 {
                quotes.check()?;
            }
        }
        Ok(count)
    }
}

/// Documents of a CSV file.
pub struct CsvSource<R> {
    records: StringRecordsIntoIter<Bounded<R>>,
    /// The bytes read since the last complete line.
    bytes: Arc<AtomicUsize>,
    fields: Fields,
    column_count: usize,
    blanks: EmptyCells,
}

impl<R: Read> CsvSource<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// A header that names a field twice, or a field and a field inside it.
    pub fn open(reader: R, cells: Cells, blanks: EmptyCells) -> Result<CsvSource<R>, Failure> {
        let mut builder = ReaderBuilder::new();
        if cells == Cells::Tsv {
            builder.delimiter(b'\t').quoting(false);
        }
        let bytes = Arc::new(AtomicUsize::new(0));
        let quotes = Quotes { place: Place::Start, reached: Reached::default(), wrong: None };
        let quotes = (cells == Cells::Csv).then_some(quotes);
        let reader = Bounded { reader, bytes: Arc::clone(&bytes), quotes };
        let mut reader = builder.flexible(true).from_reader(reader);
        let header = reader.headers().map_err(|error| Failure::failed(error_text(&error)))?.clone();
        let mut fields = Fields::default();
        for (column, name) in header.iter().enumerate() {
            let path: Vec<&str> = name.split('.').collect();
            if path.iter().any(|part| part.is_empty() || part.contains('\0')) {
                return Err(wrong_header(column, name, "is empty or has an empty part"));
            }
            if path.len() > HEADER_DEPTH_MAX {
                return Err(wrong_header(column, name, "nests too deeply"));
            }
            let inserted = fields.insert(&path, column);
            inserted.map_err(|()| wrong_header(column, name, "clashes with another column"))?;
        }
        let (records, column_count) = (reader.into_records(), header.len());
        Ok(CsvSource { records, bytes, fields, column_count, blanks })
    }

    fn document(&self, record: &StringRecord) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        self.append_fields(&self.fields, record, &mut builder);
        for column in self.column_count..record.len() {
            self.append_cell(&format!("field{column}"), record.get(column), &mut builder);
        }
        builder.build()
    }

    fn append_fields(&self, fields: &Fields, record: &StringRecord, builder: &mut DocumentBuilder) {
        for (name, node) in &fields.nodes {
            match node {
                Node::Column(column) => self.append_cell(name, record.get(*column), builder),
                Node::Nested(nested) if self.has_any(nested, record) => {
                    builder.begin_document(name);
                    self.append_fields(nested, record, builder);
                    builder.end();
                }
                Node::Nested(_) => {}
            }
        }
    }

    fn append_cell(&self, name: &str, cell: Option<&str>, builder: &mut DocumentBuilder) {
        if let Some(cell) = cell.filter(|cell| self.is_kept(cell)) {
            builder.append(name, guess(cell));
        }
    }

    fn is_kept(&self, cell: &str) -> bool {
        self.blanks == EmptyCells::Kept || !cell.is_empty()
    }

    fn has_any(&self, fields: &Fields, record: &StringRecord) -> bool {
        fields.nodes.iter().any(|(_, node)| match node {
            Node::Column(column) => record.get(*column).is_some_and(|cell| self.is_kept(cell)),
            Node::Nested(nested) => self.has_any(nested, record),
        })
    }
}

impl<R: Read> Iterator for CsvSource<R> {
    type Item = Result<Record, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?;
        self.bytes.store(0, Ordering::Relaxed);
        let record = match record {
            Ok(record) => {
                let line = record.position().map_or(0, csv::Position::line);
                Ok(Record { line, document: Ok(Parsed::Whole(self.document(&record))) })
            }
            Err(error) if error.is_io_error() => Err(Failure::failed(error_text(&error))),
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                Ok(Record { line, document: Err(error_text(&error)) })
            }
        };
        Some(record)
    }
}

/// A cell's value, by how it reads.
fn guess(cell: &str) -> Value<'_> {
    if let Ok(number) = cell.parse::<i32>() {
        return Value::Int32(number);
    }
    if let Ok(number) = cell.parse::<i64>() {
        return Value::Int64(number);
    }
    let is_word = cell.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_alphabetic());
    match cell.parse::<f64>() {
        Ok(number) if !is_word => Value::Double(number),
        _ => Value::String(cell),
    }
}

fn wrong_header(column: usize, name: &str, what: &str) -> Failure {
    Failure::failed(format!("line 1: column {} of the header, {name:?}, {what}", column + 1))
}

fn error_text(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "the text is not UTF-8".to_owned(),
        csv::ErrorKind::Io(error) => crate::failure::describe(error),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
