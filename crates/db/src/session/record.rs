//! The record of a session's last write or transaction, as it is stored
//! (docs/format/system-tree.md).
//!
//! Statements that did the same, one after the other, are one run: an insert of a thousand
//! documents is remembered in a few bytes. Documents and ids are stored as bytes, so that a record
//! isn't nested more deeply than what it holds.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf};

use crate::error::Error;
use crate::system::{self, SUBTYPE_GENERIC, append_bytes, field};

/// The result of one statement of an insert, update or delete.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StatementDone {
    /// Documents that were inserted, matched or deleted; an upserted one isn't counted.
    pub count: u64,
    /// Documents that an update changed.
    pub modified: u64,
    /// `_id` of the document that was upserted.
    pub upserted: Option<ValueBuf>,
}

/// The result of a `findAndModify`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindAndModifyReport {
    /// The document before or after, projected.
    pub value: Option<DocumentBuf>,
    /// Whether one was there.
    pub updated_existing: bool,
    /// The number of documents that were changed, inserted or removed: 0 or 1.
    pub count: u64,
    /// `_id` of the upserted document.
    pub upserted: Option<ValueBuf>,
    /// Whether this was done before: the answer is that of the first time.
    pub retried: bool,
}

/// The record of a session.
#[derive(Clone, Debug)]
pub struct Record {
    /// The number of the write or transaction.
    pub number: i64,
    /// The time when it was written: milliseconds since 1970.
    pub used_millis: i64,
    /// The result of the write or transaction.
    pub what: Remembered,
}

/// The result of a write or transaction.
#[derive(Clone, Debug)]
pub enum Remembered {
    /// Statements: first of a run to the last of it, and what each of them did.
    Statements(BTreeMap<i32, (i32, StatementDone)>),
    /// A `findAndModify` and its answer, less what it says of retries.
    Modified(FindAndModifyReport),
    /// A transaction: it was committed.
    Committed,
    /// A write that was done, and whose answer is no longer known.
    Forgotten,
}

impl Record {
    /// A record of a write that has done nothing yet.
    pub fn new(number: i64, used_millis: i64) -> Record {
        Record { number, used_millis, what: Remembered::Statements(BTreeMap::new()) }
    }

    /// The number of a stored record, without reading the rest of it.
    ///
    /// # Errors
    /// `Damaged` if the record has no number.
    pub fn number_of(stored: &Bytes) -> Result<i64, Error> {
        integer(&system::record(stored.clone())?, "number")
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        matches!(&self.what, Remembered::Statements(runs) if runs.is_empty())
    }

    /// Returns the result of the statement `id`, if it was run.
    pub fn statement(&self, id: i32) -> Option<&StatementDone> {
        let Remembered::Statements(runs) = &self.what else { return None };
        let (_, (last, done)) = runs.range(..=id).next_back()?;
        (id <= *last).then_some(done)
    }

    /// Adds what the statement `id`, which is not in the record, did.
    pub fn add(&mut self, id: i32, done: &StatementDone) {
        debug_assert!(self.statement(id).is_none(), "a statement is remembered once");
        let Remembered::Statements(runs) = &mut self.what else { return };
        if let Some((_, (last, before))) = runs.range_mut(..id).next_back()
            && last.checked_add(1) == Some(id)
            && before == done
            && done.upserted.is_none()
        {
            *last = id;
            return;
        }
        runs.insert(id, (id, done.clone()));
    }

    /// Forgets the answer, if it has parts of documents, but not that the write was done. Returns
    /// whether there was something to forget.
    pub fn forget_answer(&mut self) -> bool {
        let has_parts = match &self.what {
            Remembered::Modified(report) => report.value.is_some() || report.upserted.is_some(),
            Remembered::Statements(runs) => runs.values().any(|(_, done)| done.upserted.is_some()),
            Remembered::Committed | Remembered::Forgotten => false,
        };
        if has_parts {
            self.what = Remembered::Forgotten;
        }
        has_parts
    }

    /// Adds the statements that another record of the same write has beyond this one's; returns
    /// whether there were any.
    pub fn add_all(&mut self, other: &Record) -> bool {
        assert_eq!(self.number, other.number, "both are of one write");
        if matches!(other.what, Remembered::Forgotten) {
            let is_known = matches!(self.what, Remembered::Forgotten);
            self.what = Remembered::Forgotten;
            return !is_known;
        }
        let Remembered::Statements(runs) = &other.what else { return false };
        let mut has_more = false;
        for (first, (last, done)) in runs {
            for id in *first..=*last {
                if self.statement(id).is_none() {
                    self.add(id, done);
                    has_more = true;
                }
            }
        }
        has_more && matches!(self.what, Remembered::Statements(_))
    }

    /// The record to store.
    pub fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        builder.append("number", Value::Int64(self.number));
        builder.append("used", Value::DateTime(self.used_millis));
        match &self.what {
            Remembered::Committed => {
                builder.append("committed", Value::Boolean(true));
            }
            Remembered::Forgotten => {
                builder.append("forgotten", Value::Boolean(true));
            }
            Remembered::Modified(report) => append_modified(&mut builder, report),
            Remembered::Statements(runs) => {
                builder.begin_array("statements");
                for (first, (last, done)) in runs {
                    assert!(first <= last, "a run of statements ends where it begins, or later");
                    builder.push_begin_document();
                    builder.append("first", Value::Int32(*first));
                    builder.append("last", Value::Int32(*last));
                    builder.append("count", Value::Int64(done.count as i64));
                    builder.append("modified", Value::Int64(done.modified as i64));
                    append_value(&mut builder, "upserted", done.upserted.as_ref());
                    builder.end();
                }
                builder.end();
            }
        }
        builder.build().into_bytes()
    }

    /// Reads a stored record.
    ///
    /// # Errors
    /// `Damaged` if a field is missing or of another type.
    pub fn decode(bytes: Bytes) -> Result<Record, Error> {
        let record = system::record(bytes)?;
        let what = if record.get("committed").is_some() {
            Remembered::Committed
        } else if record.get("forgotten").is_some() {
            Remembered::Forgotten
        } else if let Some(modified) = record.get("modified") {
            let modified = modified.as_document().map(|modified| modified.to_buf());
            let modified = modified.ok_or_else(|| damaged("modified"))?;
            Remembered::Modified(decode_modified(&modified)?)
        } else {
            let stored = field(&record, "statements", |value| value.as_array())?;
            let mut runs = BTreeMap::new();
            for run in stored.iter() {
                let run = run.as_document().ok_or_else(|| damaged("statements"))?.to_buf();
                let (first, last) = (integer(&run, "first")?, integer(&run, "last")?);
                let done = StatementDone {
                    count: integer(&run, "count")?,
                    modified: integer(&run, "modified")?,
                    upserted: read_value(&run, "upserted")?,
                };
                runs.insert(first, (last, done));
            }
            Remembered::Statements(runs)
        };
        let used_millis = field(&record, "used", |value| match value {
            Value::DateTime(millis) => Some(millis),
            _ => None,
        })?;
        Ok(Record { number: integer(&record, "number")?, used_millis, what })
    }
}

fn append_modified(builder: &mut DocumentBuilder, report: &FindAndModifyReport) {
    builder.begin_document("modified");
    builder.append("count", Value::Int64(report.count as i64));
    builder.append("updatedExisting", Value::Boolean(report.updated_existing));
    if let Some(value) = &report.value {
        append_bytes(builder, "value", SUBTYPE_GENERIC, value.as_bytes());
    }
    append_value(builder, "upserted", report.upserted.as_ref());
    builder.end();
}

fn decode_modified(modified: &DocumentBuf) -> Result<FindAndModifyReport, Error> {
    Ok(FindAndModifyReport {
        value: read_document(modified, "value")?,
        updated_existing: field(modified, "updatedExisting", |value| Some(value.is_truthy()))?,
        count: integer(modified, "count")?,
        upserted: read_value(modified, "upserted")?,
        retried: false,
    })
}

/// Appends a value as the bytes of a document that holds it under the empty name.
fn append_value(builder: &mut DocumentBuilder, name: &str, value: Option<&ValueBuf>) {
    if let Some(value) = value {
        let mut holder = DocumentBuilder::new();
        holder.append("", value.as_value());
        append_bytes(builder, name, SUBTYPE_GENERIC, holder.build().as_bytes());
    }
}

fn read_value(record: &DocumentBuf, name: &str) -> Result<Option<ValueBuf>, Error> {
    let Some(holder) = read_document(record, name)? else { return Ok(None) };
    holder.get("").map(|value| Some(value.to_buf())).ok_or_else(|| damaged(name))
}

/// Reads a document that was stored as bytes: it was valid when it was, and the record is checked
/// as a whole by the tree that holds it.
fn read_document(record: &DocumentBuf, name: &str) -> Result<Option<DocumentBuf>, Error> {
    match record.get(name) {
        None => Ok(None),
        Some(Value::Binary(binary)) if 5 <= binary.bytes.len() => {
            Ok(Some(DocumentBuf::from_validated(Bytes::copy_from_slice(binary.bytes))))
        }
        Some(_) => Err(damaged(name)),
    }
}

fn integer<T: TryFrom<i64>>(record: &DocumentBuf, name: &str) -> Result<T, Error> {
    field(record, name, |value| value.as_integer().and_then(|number| T::try_from(number).ok()))
}

fn damaged(name: &str) -> Error {
    Error::damaged(format!("a session's record has no proper field {name}"))
}
