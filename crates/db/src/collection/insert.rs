//! `insert`.

use frond_doc::{DocError, Document, DocumentBuf, DocumentBuilder, Timestamp, Value, normalise};
use frond_engine::Durability;
use frond_query::Code;

use crate::collection::WriteReport;
use crate::collection::batch::{BATCH_COUNT_MAX, BatchOptions, BatchReport};
use crate::collection::write::CollectionWriter;
use crate::database::Database;
use crate::error::Error;
use crate::name;
use crate::retry::StatementDone;

/// A transaction of a large insert holds at most so many bytes of documents (or one document).
const BATCH_BYTES_MAX: usize = 8 << 20;

impl Database {
    /// Inserts documents in their order, `_id` made where absent. With `ordered`, stops at the
    /// first that fails; the others before it stay.
    ///
    /// Large requests are several transactions, one after the other.
    ///
    /// # Errors
    /// What concerns the request as a whole; what concerns a document is in the report.
    pub fn insert(
        &self,
        collection: &str,
        documents: &[DocumentBuf],
        ordered: bool,
        durability: Durability,
    ) -> Result<WriteReport, Error> {
        let options = BatchOptions { ordered, durability };
        if let Some(series) = name::of_buckets(collection) {
            return self.insert_buckets(series, documents, options);
        }
        let prepare = |begun: usize| {
            let rest = &documents[begun..];
            rest[..batch_count(rest)].iter().map(|document| self.normalise(document)).collect()
        };
        let insert = |writer: &mut CollectionWriter<'_>, document: &DocumentBuf| {
            writer.insert(document)?;
            Ok(StatementDone { count: 1, ..StatementDone::default() })
        };
        let report = self.run_statements(collection, options, documents.len(), prepare, insert)?;
        let BatchReport { count, errors, retried, each, .. } = report;
        Ok(WriteReport { count, errors, retried, each })
    }

    fn normalise(&self, document: &DocumentBuf) -> Result<DocumentBuf, Error> {
        let document =
            normalise::for_insert(document, || self.frond().new_object_id()).map_err(|error| {
                match error {
                    DocError::Invalid { what, .. } => Error::invalid(Code::BadValue, what),
                    error => error.into(),
                }
            })?;
        let document = self.set_zero_timestamps(document);
        self.check_document(document.view())?;
        Ok(document)
    }

    /// Replaces empty timestamps, which stand for "now", outside `_id` and nested documents.
    pub(crate) fn set_zero_timestamps(&self, document: DocumentBuf) -> DocumentBuf {
        let is_zero = |name: &str, value: &Value<'_>| {
            *value == Value::Timestamp(Timestamp(0)) && name != "_id"
        };
        if self.keeps_empty_timestamps()
            || !document.iter().any(|(name, value)| is_zero(name, &value))
        {
            return document;
        }
        let now = Value::Timestamp(self.frond().new_timestamp());
        let mut builder = DocumentBuilder::new();
        for (name, value) in document.iter() {
            builder.append(name, if is_zero(name, &value) { now } else { value });
        }
        builder.build()
    }

    /// Checks what is demanded of a document that is to be inserted.
    pub(crate) fn check_document(&self, document: Document<'_>) -> Result<(), Error> {
        self.check_size(document.as_bytes().len() as u64)?;
        check_id(document)
    }

    /// Refuses a document of more bytes than are taken here.
    ///
    /// # Errors
    /// `BSONObjectTooLarge` (10334).
    #[doc(hidden)]
    pub fn check_size(&self, bytes: u64) -> Result<(), Error> {
        let max = self.frond().document_bytes_max();
        if bytes > max {
            let message =
                format!("object to insert too large. size in bytes: {bytes}, max size: {max}");
            return Err(Error::invalid(Code::BSONObjectTooLarge, message));
        }
        Ok(())
    }
}

fn batch_count(documents: &[DocumentBuf]) -> usize {
    let mut bytes = 0;
    let fits = documents.iter().take(BATCH_COUNT_MAX).take_while(|document| {
        bytes += document.as_bytes().len();
        bytes <= BATCH_BYTES_MAX
    });
    fits.count().max(1)
}

/// Checks a document's `_id`.
///
/// # Errors
/// `InvalidIdField` (53), or `DollarPrefixedFieldName` (52) for a field within it.
pub fn check_id(document: Document<'_>) -> Result<(), Error> {
    normalise::check_id(document).map_err(|why| {
        let code =
            if why.contains('$') { Code::DollarPrefixedFieldName } else { Code::InvalidIdField };
        Error::invalid(code, why)
    })
}
