//! Reads the references in documents that a request met ([`frond_query::large`]): by the reader
//! that they came from, which keeps the chunks they name from being collected.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use frond_doc::path::Path;
use frond_doc::pieces::{self, LargeDocument, Long, VisitPart};
use frond_doc::{Document, DocumentBuf, Reference, ValueBuf};
use frond_query::QueryError;
use frond_query::large::{Depth, Large, NeededPaths, Pieces};
use frond_store::ChunkStore;

use crate::collection::deferred_errors::DeferredErrors;
use crate::error::Error;
use crate::large::{self, unreadable};
use crate::reader::Reader;

/// References at one moment.
struct Handles {
    reader: Reader<'static>,
    deferred: DeferredErrors,
    /// Whether any document with references came out.
    has_references: AtomicBool,
}

/// The [`Pieces`] of the references that `reader` gives out. Documents that may be undone from one
/// call to the next ([`Reader::may_be_undone`]) are given out whole.
pub(crate) fn handles(reader: &Reader<'static>, deferred: &DeferredErrors) -> Large {
    let (reader, deferred) = (reader.clone(), deferred.clone());
    Large::new(Arc::new(Handles { reader, deferred, has_references: AtomicBool::new(false) }))
}

impl Pieces for Handles {
    fn has_references(&self) -> bool {
        self.has_references.load(Ordering::Relaxed)
    }

    fn note_references(&self) {
        self.has_references.store(true, Ordering::Relaxed);
    }

    fn open(&self, reference: Reference<'_>) -> Result<ValueBuf, QueryError> {
        let opened = self.reader.read_pieces(|store| pieces::open(store, reference));
        opened.map_err(|error| self.deferred.keep(error))
    }

    fn element_count(&self, array: Reference<'_>) -> Result<u64, QueryError> {
        let count = self.reader.read_pieces(|store| pieces::element_count(store, array));
        count.map_err(|error| self.deferred.keep(error))
    }

    fn elements(
        &self,
        array: Reference<'_>,
        positions: Range<u64>,
    ) -> Result<ValueBuf, QueryError> {
        let found = self.reader.read_pieces(|store| pieces::elements(store, array, positions));
        found.map_err(|error| self.deferred.keep(error))
    }

    fn reach(
        &self,
        document: Document<'_>,
        path: &Path,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, QueryError> {
        let answer = self.reader.read_pieces(|it| pieces::visit_reached(it, document, path, visit));
        answer.map_err(|error| self.deferred.keep(error))
    }

    fn long(
        &self,
        reference: Reference<'_>,
        visit: &mut dyn FnMut(Long<'_>) -> Option<bool>,
    ) -> Result<Option<bool>, QueryError> {
        let answer = self.reader.read_pieces(|it| pieces::long(it, reference, visit));
        answer.map_err(|error| self.deferred.keep(error))
    }

    fn whole(&self, document: Document<'_>) -> Result<DocumentBuf, QueryError> {
        let whole = self.reader.read_pieces(|store| pieces::whole(store, document));
        whole.map_err(|error| self.deferred.keep(error))
    }
}

/// The same of a store.
struct Stored(Arc<dyn ChunkStore>);

/// Returns a reader of references from a store that has all chunks they name.
pub(crate) fn stored(store: &Arc<dyn ChunkStore>) -> Large {
    Large::new(Arc::new(Stored(store.clone())))
}

impl Pieces for Stored {
    fn has_references(&self) -> bool {
        true
    }

    fn note_references(&self) {}

    fn open(&self, reference: Reference<'_>) -> Result<ValueBuf, QueryError> {
        pieces::open(&*self.0, reference).map_err(|error| unreadable(error).as_query())
    }

    fn element_count(&self, array: Reference<'_>) -> Result<u64, QueryError> {
        pieces::element_count(&*self.0, array).map_err(|error| unreadable(error).as_query())
    }

    fn elements(
        &self,
        array: Reference<'_>,
        positions: Range<u64>,
    ) -> Result<ValueBuf, QueryError> {
        let found = pieces::elements(&*self.0, array, positions);
        found.map_err(|error| unreadable(error).as_query())
    }

    fn reach(
        &self,
        document: Document<'_>,
        path: &Path,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, QueryError> {
        let answer = pieces::visit_reached(&*self.0, document, path, visit);
        answer.map_err(|error| unreadable(error).as_query())
    }

    fn long(
        &self,
        reference: Reference<'_>,
        visit: &mut dyn FnMut(Long<'_>) -> Option<bool>,
    ) -> Result<Option<bool>, QueryError> {
        let answer = pieces::long(&*self.0, reference, visit);
        answer.map_err(|error| unreadable(error).as_query())
    }

    fn whole(&self, document: Document<'_>) -> Result<DocumentBuf, QueryError> {
        pieces::whole(&*self.0, document).map_err(|error| unreadable(error).as_query())
    }
}

/// A document with more outermost fields is rather read whole, and kept with an index of them.
const FIELD_COUNT_MAX: u64 = 24;

/// The form in which a scan gives out large documents: with references for what the caller didn't
/// ask for.
#[derive(Clone)]
pub(crate) struct LazyLargeDocuments {
    large: Large,
    /// The parts that are needed of documents that pass.
    needed_fields: NeededPaths,
    /// The outermost fields that alone are given out.
    names: Option<Vec<Box<[u8]>>>,
    /// Whether a document that is kept in memory whole serves as well: not where references are
    /// stored again.
    takes_kept: bool,
}

impl LazyLargeDocuments {
    /// All outermost fields, to be stored again or not.
    pub fn new(large: &Large, takes_kept: bool) -> LazyLargeDocuments {
        let mut needed_fields = NeededPaths::default();
        needed_fields.add("_id", Depth::Whole);
        LazyLargeDocuments { large: large.clone(), needed_fields, names: None, takes_kept }
    }

    /// Returns the reader of the references.
    pub fn large(&self) -> &Large {
        &self.large
    }

    /// Adds parts that are needed.
    pub fn with_needed(mut self, more: &NeededPaths) -> LazyLargeDocuments {
        self.needed_fields.add_all(more);
        self
    }

    /// Gives out no more outermost fields than those of these paths and what else is asked for.
    pub fn only(mut self, paths: &[String]) -> LazyLargeDocuments {
        let outermost = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
        let names = paths.iter().map(outermost);
        self.names = Some(names.map(|name| name.into_bytes().into()).collect());
        self
    }

    /// Gives out all outermost fields, whatever was said before.
    pub fn of_all_fields(self) -> LazyLargeDocuments {
        LazyLargeDocuments { names: None, ..self }
    }

    /// Reads the parts of a document that the filter needs, before it is known whether it passes.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn read(
        &self,
        reader: &Reader<'_>,
        document: &LargeDocument,
        filter: &NeededPaths,
    ) -> Result<DocumentBuf, Error> {
        if self.takes_kept && document.bytes() <= large::KEPT_BYTES_MAX {
            if let Some(known) = large::known(document) {
                return Ok(known);
            }
            let count = reader.read_pieces(|store| document.field_count(store))?;
            if FIELD_COUNT_MAX < count {
                return reader.large_document(document);
            }
        }
        let names = self.names(filter);
        let names: Option<Vec<&[u8]>> =
            names.as_ref().map(|names| names.iter().map(|name| &**name).collect());
        self.large.note_references();
        let shallow = reader.read_pieces(|store| document.shallow(store, names.as_deref()))?;
        Ok(self.large.open_document(filter, shallow)?)
    }

    /// Reads the parts that are needed of a document that passes.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn open(&self, document: DocumentBuf) -> Result<DocumentBuf, Error> {
        Ok(self.large.open_document(&self.needed_fields, document)?)
    }

    /// The outermost fields that are read; `None`: all.
    fn names(&self, filter: &NeededPaths) -> Option<Vec<Box<[u8]>>> {
        let mut names = self.names.clone()?;
        let needed_fields = self.needed_fields.outermost_names()?.chain(filter.outermost_names()?);
        names.extend(needed_fields.map(Box::from));
        names.sort_unstable();
        names.dedup();
        Some(names)
    }
}
