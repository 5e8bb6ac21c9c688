//! The form in which a find shows the documents that it finds.

use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value, key};
use frond_query::large::{Large, NeededPaths};
use frond_query::memory::RequestMemory;
use frond_query::metadata::{self, MetadataKind};
use frond_query::{Filter, Projection, QueryError, SortPattern};

use crate::collection::FindRequest;
use crate::collection::plan::Order;

/// The steps by which a found document becomes one of the answer.
pub(crate) struct ResultShape {
    projection: Option<Projection>,
    /// Shows a projection which element of an array was found.
    filter: Filter,
    /// Reads what a projection leaves as references.
    large: Large,
    all: NeededPaths,
    /// The order whose key is shown.
    key_of: Option<SortPattern>,
    /// Whether documents carry metadata, which no client sees.
    carries: bool,
    /// Whether each is shown with its key.
    shows_record_id: bool,
    /// The positions of the sort key among an index's keys, if these are shown in its place.
    keys: Option<Vec<String>>,
}

impl ResultShape {
    /// Returns the form that `request` asks for.
    pub(crate) fn of(
        request: &FindRequest,
        order: &Order,
        filter: Filter,
        projection: Option<Projection>,
        large: Large,
    ) -> ResultShape {
        let shows_key = projection
            .as_ref()
            .is_some_and(|projection| projection.metadata().contains(MetadataKind::SortKey));
        let paths = || {
            let shown = request.projection.as_ref().map(DocumentBuf::view);
            shown.map(metadata::sort_key_paths).unwrap_or_default()
        };
        ResultShape {
            key_of: order.pattern().filter(|_| shows_key).cloned(),
            carries: shows_key || !filter.metadata().is_empty(),
            shows_record_id: request.shows_record_id,
            keys: request.gives_keys.then(paths),
            all: NeededPaths::all(),
            projection,
            filter,
            large,
        }
    }

    /// The document that is shown of one that was found.
    ///
    /// # Errors
    /// An error of the projection; `Damaged` or `Unavailable` if a value can't be read.
    pub(crate) fn show(&self, document: DocumentBuf) -> Result<DocumentBuf, QueryError> {
        let document = match &self.key_of {
            Some(pattern) => {
                let key = pattern.sort_key(document.view(), &pattern.collation);
                metadata::append_sort_key(document.view(), &key)
            }
            None => document,
        };
        if let Some(sort_key_paths) = &self.keys {
            return Ok(metadata::index_key(document.view(), sort_key_paths));
        }
        let projected = match &self.projection {
            Some(projection) => {
                let projected = projection.apply(document.view(), &self.filter)?;
                self.bare(self.large.open_document(&self.all, projected)?)
            }
            None if self.shows_record_id => self.bare(document.clone()),
            None => return Ok(self.bare(document)),
        };
        Ok(if self.shows_record_id { with_record_id(&projected, &document) } else { projected })
    }

    /// The memory of the request, if the projection runs a client's scripts.
    pub(crate) fn memory_of_scripts(&self) -> Option<RequestMemory> {
        let projection = self.projection.as_ref()?;
        projection.runs_scripts().then(|| projection.memory().clone())
    }

    /// The document without metadata.
    fn bare(&self, document: DocumentBuf) -> DocumentBuf {
        if self.carries { metadata::strip(document) } else { document }
    }
}

/// A document with what MongoDB calls its record's id: the key of its `_id`, as in clustered
/// collections.
fn with_record_id(projected: &DocumentBuf, document: &DocumentBuf) -> DocumentBuf {
    let key = key::of_id(document.get("_id").unwrap_or(Value::Null));
    let mut builder = DocumentBuilder::new();
    for (name, value) in projected.iter() {
        builder.append(name, value);
    }
    builder.append("$recordId", Value::Binary(Binary { subtype: 0, bytes: &key }));
    builder.build()
}
