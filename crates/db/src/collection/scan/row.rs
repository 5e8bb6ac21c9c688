//! The rows of a scan, and the parts of them that were read.
//!
//! A scan may have read of a document no more than it was asked for: the filter's fields of a large
//! one, the parts of an index's keys, or nothing where only the count matters. So a [`Row`] doesn't
//! show what it has unless its caller says which is meant: *Invariant*: nothing but
//! [`Row::into_whole`] makes a [`FetchedDocument`] of a row, and a `FetchedDocument` has all of its
//! document's fields.

use bytes::Bytes;
use frond_doc::pieces::LargeDocument;
use frond_doc::{Document, DocumentBuf};
use frond_query::metadata;
use frond_tree::Value;

use crate::collection::handles::LazyLargeDocuments;
use crate::error::Error;
use crate::large;
use crate::reader::Reader;
use crate::schema::TreeRef;

/// A part holds no more documents than this, or than have so many bytes, or one.
const PART_COUNT_MAX: usize = 10_000;
const PART_BYTES_MAX: usize = 1 << 20;

/// A whole document that was found, and the key of its `_id`.
#[derive(Clone, Debug)]
pub struct FetchedDocument {
    /// Its key in the documents' tree.
    pub id_key: Bytes,
    /// The document, with all its fields.
    pub document: DocumentBuf,
    /// The document's pieces, if it is large.
    pub large: Option<LargeDocument>,
}

impl FetchedDocument {
    /// Takes what the search left in the document.
    pub fn take_metadata(&mut self) -> DocumentBuf {
        take_metadata(&mut self.document)
    }
}

/// A document that a scan came to: the key of its `_id`, and what was read of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its key in the documents' tree.
    pub id_key: Bytes,
    /// The document's pieces, if it is large and they are known.
    pub large: Option<LargeDocument>,
    read: Read,
}

#[derive(Clone, Debug)]
enum Read {
    Whole(DocumentBuf),
    /// The fields that were asked for, and perhaps more.
    Part(DocumentBuf),
}

/// What a scan shows to a caller that only looks at it.
pub enum VisitedRow<'a> {
    /// A whole document, where it lies.
    InPlace(Document<'a>),
    /// What doesn't lie in one piece.
    Owned(Row),
}

impl Row {
    /// A row that was read wholly.
    pub fn whole(id_key: Bytes, document: DocumentBuf, large: Option<LargeDocument>) -> Row {
        Row { id_key, large, read: Read::Whole(document) }
    }

    /// A row of a document from which only these fields were read.
    pub fn part(id_key: Bytes, fields: DocumentBuf, large: Option<LargeDocument>) -> Row {
        Row { id_key, large, read: Read::Part(fields) }
    }

    /// The fields that the scan was asked for: others may be absent that the document has.
    pub fn fields(&self) -> Document<'_> {
        match &self.read {
            Read::Whole(document) | Read::Part(document) => document.view(),
        }
    }

    /// As [`Row::asked`].
    pub fn into_fields(self) -> DocumentBuf {
        match self.read {
            Read::Whole(document) | Read::Part(document) => document,
        }
    }

    /// The document with all its fields: read now, from the tree of `documents`, unless it was
    /// before. The metadata that the search left in it before ([`Row::take_metadata`]) are not in
    /// the document that is read now.
    ///
    /// # Errors
    /// `Damaged` if the document isn't there or isn't what was written; as [`Reader::get`].
    pub fn into_whole(
        self,
        reader: &Reader<'_>,
        documents: TreeRef,
    ) -> Result<FetchedDocument, Error> {
        let Row { id_key, large, read } = self;
        let (document, large) = match (read, large) {
            (Read::Whole(document), large) => (document, large),
            (Read::Part(_), Some(large)) => (reader.large_document(&large)?, Some(large)),
            (Read::Part(_), None) => match reader.get(documents, &id_key)? {
                Some(value) => reader.document_and_pieces(&value)?,
                None => return Err(Error::damaged("a document that was found is absent")),
            },
        };
        Ok(FetchedDocument { id_key, document, large })
    }

    /// Whether its document is what `value` holds.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn is_of(&self, reader: &Reader<'_>, value: &Value) -> Result<bool, Error> {
        match (large::head(value), &self.large, &self.read) {
            (Some(now), Some(before), _) => Ok(now == *before),
            (None, None, Read::Whole(document)) => Ok(reader.read(value)? == document.as_bytes()),
            _ => Ok(false),
        }
    }

    /// Takes what the search left in what it read.
    pub fn take_metadata(&mut self) -> DocumentBuf {
        match &mut self.read {
            Read::Whole(document) | Read::Part(document) => take_metadata(document),
        }
    }

    /// This row, with what is asked for of what was read.
    pub(super) fn opened(self, lazily: &LazyLargeDocuments) -> Result<Row, Error> {
        let read = match self.read {
            Read::Part(fields) => Read::Part(lazily.open(fields)?),
            whole => whole,
        };
        Ok(Row { read, ..self })
    }

    /// This row, with other fields in the place of those that were read.
    pub(super) fn with_read(self, change: impl FnOnce(Document<'_>) -> DocumentBuf) -> Row {
        let read = match self.read {
            Read::Whole(document) => Read::Whole(change(document.view())),
            Read::Part(fields) => Read::Part(change(fields.view())),
        };
        Row { read, ..self }
    }

    /// Whether all of the document was read.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.read, Read::Whole(_))
    }
}

impl From<FetchedDocument> for Row {
    fn from(found: FetchedDocument) -> Row {
        Row::whole(found.id_key, found.document, found.large)
    }
}

/// Documents that were found and are kept until they are written.
#[derive(Default)]
pub struct FoundRows {
    pub rows: Vec<Row>,
    bytes: usize,
}

impl FoundRows {
    /// Adds a document.
    pub fn push(&mut self, row: Row) {
        self.bytes += size_of::<Row>() + row.id_key.len() + row.fields().as_bytes().len();
        self.rows.push(row);
    }

    /// Returns the memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether they are as many as a part holds.
    pub fn is_full(&self) -> bool {
        PART_COUNT_MAX <= self.rows.len() || PART_BYTES_MAX <= self.bytes
    }
}

fn take_metadata(document: &mut DocumentBuf) -> DocumentBuf {
    let carried = metadata::split(document.view());
    *document = metadata::strip(document.clone());
    carried
}
