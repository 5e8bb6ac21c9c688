//! Writes batches, in one of three modes, and counts what happened.

use std::collections::HashSet;
use std::io::Read;

use frond_db::{Durability, ErrorKind};
use frond_doc::document::DOCUMENT_BYTES_MAX;
use frond_doc::extended_json;
use frond_doc::pieces::{self, read_bson, read_json};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document, key};
use frond_server::wire::DocumentSequence;

use crate::backend::Backend;
use crate::commands::import::dump::BUCKETS;
use crate::commands::import::progress::Progress;
use crate::failure::Failure;
use crate::input::{DOCUMENT_TEXT_BYTES_MAX, DocumentEncoding, Text};
use crate::output::{array_of, count_of, count_value, documents_of, text_of};

/// Documents that are removed by one command.
const REMOVE_BATCH: usize = 10_000;

/// What to do with documents whose `_id` is there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Mode {
    /// Refuse them; insert the others
    Insert,
    /// Replace them; insert the others
    Upsert,
    /// Like upsert, and remove the documents that the file doesn't have
    ReplaceAll,
}

/// MongoDB's code of a key that is there already.
const DUPLICATE_KEY: u32 = 11000;

/// The counts of an import.
#[derive(Clone, Copy, Default, Debug)]
pub struct Report {
    /// Documents that were not there before.
    pub inserted: u64,
    /// The number of those that a unique index refused, `_id`'s mostly, out of those that could not
    /// be imported.
    pub duplicates: u64,
    /// Documents that were there, with other content.
    pub replaced: u64,
    /// Documents that were there just so.
    pub unchanged: u64,
    /// Documents that were removed.
    pub removed: u64,
    /// Documents that could not be read or written.
    pub failed: u64,
}

impl Report {
    /// As a document.
    pub fn as_document(&self, database: &str, collection: &str) -> DocumentBuf {
        let mut answer = DocumentBuilder::new();
        answer.append("database", Value::String(database));
        answer.append("collection", Value::String(collection));
        for (name, count) in [
            ("inserted", self.inserted),
            ("replaced", self.replaced),
            ("unchanged", self.unchanged),
            ("removed", self.removed),
            ("failed", self.failed),
        ] {
            answer.append(name, count_value(count));
        }
        answer.build()
    }
}

/// Writes to one collection.
pub struct Writer<'a> {
    database: &'a str,
    collection: &'a str,
    mode: Mode,
    is_ordered: bool,
    /// The keys of the `_id`s that the file held: kept in the mode that removes all others.
    seen: HashSet<Vec<u8>>,
    /// The counts so far.
    pub report: Report,
}

impl<'a> Writer<'a> {
    /// A writer to `database.collection`. An ordered one stops at the first error of a batch.
    pub fn new(database: &'a str, collection: &'a str, mode: Mode, is_ordered: bool) -> Writer<'a> {
        let (seen, report) = (HashSet::new(), Report::default());
        Writer { database, collection, mode, is_ordered, seen, report }
    }

    /// Counts and reports a document that could not be imported.
    pub fn failed(&mut self, line: u64, what: &str, progress: &Progress) {
        self.report.failed += 1;
        progress.problem(self.report.failed, line, what);
    }

    /// Writes a batch; `lines` are its documents' lines.
    ///
    /// # Errors
    /// As `Backend::execute`(crate::backend::Backend); documents that are refused are counted.
    pub fn write(
        &mut self,
        backend: &mut dyn Backend,
        documents: Vec<DocumentBuf>,
        lines: &[u64],
        progress: &Progress,
    ) -> Result<(), Failure> {
        if self.mode == Mode::Insert || self.is_of_buckets() {
            return self.insert(backend, documents, lines, progress);
        }
        let (mut statements, mut statement_lines) = (Vec::new(), Vec::new());
        let (mut without_id, mut without_id_lines) = (Vec::new(), Vec::new());
        for (document, line) in documents.into_iter().zip(lines) {
            match document.get("_id") {
                Some(id) => {
                    if self.mode == Mode::ReplaceAll {
                        self.seen.insert(key::of_id(id).into());
                    }
                    statements.push(replacement(&document, id));
                    statement_lines.push(*line);
                }
                None if self.mode == Mode::ReplaceAll => {
                    let what = "--mode replace-all needs an _id in each document";
                    self.failed(*line, what, progress);
                }
                None => {
                    without_id.push(document);
                    without_id_lines.push(*line);
                }
            }
        }
        self.insert(backend, without_id, &without_id_lines, progress)?;
        self.replace(backend, statements, &statement_lines, progress)
    }

    /// Whether it writes the buckets of a time series: they are inserted only, and one that is
    /// there stays as it is.
    fn is_of_buckets(&self) -> bool {
        self.collection.starts_with(BUCKETS)
    }

    /// Writes a document that is too long to be held, if it can be put into the database as it
    /// comes; otherwise it is held all the same, up to a limit.
    ///
    /// # Errors
    /// As [`Writer::write`]; [`Failure::Failed`] if the source can't be read.
    pub fn stream(
        &mut self,
        backend: &mut dyn Backend,
        mut text: Text,
        line: u64,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let embedded = backend.embedded().filter(|_| self.mode == Mode::Insert);
        let Some(frond) = embedded else {
            return match held(text) {
                Ok(document) => self.write(backend, vec![document], &[line], progress),
                Err(what) => {
                    self.failed(line, &what, progress);
                    Ok(())
                }
            };
        };
        let mut fill = |writer: &mut pieces::Writer<'_>| match text.carrier {
            DocumentEncoding::Json => read_json(&mut text, writer),
            DocumentEncoding::Bson => read_bson(&mut text, writer),
        };
        let database = frond.database(self.database)?;
        match database.insert_streamed(self.collection, &mut fill, Durability::Synced) {
            Ok(_) => self.report.inserted += 1,
            Err(error) if error.kind == ErrorKind::Invalid => {
                self.failed(line, &error.message, progress);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn insert(
        &mut self,
        backend: &mut dyn Backend,
        documents: Vec<DocumentBuf>,
        lines: &[u64],
        progress: &Progress,
    ) -> Result<(), Failure> {
        if documents.is_empty() {
            return Ok(());
        }
        let command = document! { "insert": self.collection, "ordered": self.is_ordered };
        let answer = self.send(backend, &command, "documents", documents)?;
        self.report.inserted += count_of(answer.view(), "n");
        self.report_errors(&answer, lines, progress);
        Ok(())
    }

    fn replace(
        &mut self,
        backend: &mut dyn Backend,
        statements: Vec<DocumentBuf>,
        lines: &[u64],
        progress: &Progress,
    ) -> Result<(), Failure> {
        if statements.is_empty() {
            return Ok(());
        }
        let command = document! { "update": self.collection, "ordered": self.is_ordered };
        let answer = self.send(backend, &command, "updates", statements)?;
        let upserted = array_of(answer.view(), "upserted").iter().count() as u64;
        let modified = count_of(answer.view(), "nModified");
        let reached = count_of(answer.view(), "n");
        self.report.inserted += upserted;
        self.report.replaced += modified;
        self.report.unchanged += reached.saturating_sub(upserted + modified);
        self.report_errors(&answer, lines, progress);
        Ok(())
    }

    /// Removes the documents of the collection that the file didn't hold.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn remove_others(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let mut find = DocumentBuilder::new();
        find.append("find", Value::String(self.collection));
        find.begin_document("projection").append("_id", Value::Int32(1)).end();
        find.append("batchSize", Value::Int32(10_000));
        let mut others = Vec::new();
        backend.for_each_document(self.database, &find.build(), &mut |document| {
            let id = document.get("_id").unwrap_or(Value::Null);
            if !self.seen.contains(&key::of_id(id)[..]) {
                others.push(removal(id));
            }
            Ok(())
        })?;
        for statements in others.chunks(REMOVE_BATCH) {
            let command = document! { "delete": self.collection };
            let answer = self.send(backend, &command, "deletes", statements.to_vec())?;
            self.report.removed += count_of(answer.view(), "n");
            if let Some(error) = documents_of(answer.view(), "writeErrors").next() {
                return Err(Failure::failed(text_of(error, "errmsg")));
            }
        }
        Ok(())
    }

    fn send(
        &self,
        backend: &mut dyn Backend,
        command: &DocumentBuf,
        name: &str,
        documents: Vec<DocumentBuf>,
    ) -> Result<DocumentBuf, Failure> {
        let sequence = DocumentSequence { name: name.to_owned(), documents };
        backend.execute_with(self.database, command.view(), vec![sequence])
    }

    fn report_errors(&mut self, answer: &DocumentBuf, lines: &[u64], progress: &Progress) {
        for error in documents_of(answer.view(), "writeErrors") {
            let position = usize::try_from(count_of(error, "index")).unwrap_or(usize::MAX);
            let line = lines.get(position).copied().unwrap_or(0);
            let is_duplicate = count_of(error, "code") == u64::from(DUPLICATE_KEY);
            if is_duplicate && self.mode != Mode::Insert && self.is_of_buckets() {
                self.report.unchanged += 1;
                continue;
            }
            self.failed(line, text_of(error, "errmsg"), progress);
            self.report.duplicates += u64::from(is_duplicate);
        }
    }
}

/// The document of a text that can't be streamed, or why there is none.
fn held(text: Text) -> Result<DocumentBuf, String> {
    if text.carrier == DocumentEncoding::Bson {
        let what = format!(
            "a document of more than {DOCUMENT_BYTES_MAX} bytes goes into a data directory only \
             (--data, --mode insert)"
        );
        return Err(what);
    }
    let mut whole = String::new();
    let max = DOCUMENT_TEXT_BYTES_MAX as u64;
    match text.take(max + 1).read_to_string(&mut whole) {
        Err(_) => return Err("the text is not UTF-8".to_owned()),
        Ok(bytes) if bytes as u64 > max => {
            return Err(format!(
                "an object of more than {max} bytes goes into a data directory only (--data, \
                 --mode insert), if no brace is missing"
            ));
        }
        Ok(_) => {}
    }
    let document = extended_json::parse(&whole).map_err(|error| error.to_string())?;
    let (bytes, max) = (document.as_bytes().len(), DOCUMENT_BYTES_MAX);
    match bytes > max {
        true => Err(format!("document of {bytes} bytes; at most {max} are accepted")),
        false => Ok(document),
    }
}

/// `{q: {_id}, u: document, upsert: true}`. A document with a name that begins with `$`, which an
/// insert takes and a replacement doesn't, goes as MongoDB advises:
/// `u: [{$replaceWith: {$literal: document}}]`.
pub fn replacement(document: &DocumentBuf, id: Value<'_>) -> DocumentBuf {
    let mut statement = DocumentBuilder::with_capacity(document.as_bytes().len() + 64);
    statement.begin_document("q").append("_id", id).end();
    if document.view().iter().any(|(name, _)| name.starts_with('$')) {
        statement.begin_array("u").push_begin_document().begin_document("$replaceWith");
        statement.append("$literal", Value::Document(document.view())).end().end().end();
    } else {
        statement.append("u", Value::Document(document.view()));
    }
    statement.append("upsert", Value::Boolean(true));
    statement.build()
}

/// `{q: {_id: {$eq}}, limit: 1}`.
pub fn removal(id: Value<'_>) -> DocumentBuf {
    let mut statement = DocumentBuilder::new();
    statement.begin_document("q").begin_document("_id").append("$eq", id).end().end();
    statement.append("limit", Value::Int32(1));
    statement.build()
}
