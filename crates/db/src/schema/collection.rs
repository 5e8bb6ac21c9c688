//! A collection and its indexes, as they can be read: what they are, and where their trees lie.

use std::sync::Arc;

use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value as BsonValue, key};
use frond_query::index::{FieldKind, IndexShape};
use frond_query::sort::SortField;
use frond_query::{Collation, Projection};
use frond_store::{Chunk, ChunkHash, ChunkKind};

use crate::definition::IndexSpec;
use crate::error::Error;
use crate::schema::TreeRef;
use crate::schema::entry::CatalogEntry;
use crate::system::{self, LiveCollection, RepositoryRecord};
use crate::timeseries::Series;

/// A collection that can be read: what it is and where its trees lie.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Local to this data directory.
    pub uuid: [u8; 16],
    /// As given to `create`.
    pub options: DocumentBuf,
    /// The time series, if it is one, whose documents lie by their places.
    pub series: Option<Arc<Series>>,
    /// The documents by `_id`.
    pub documents: TreeRef,
    /// All indexes but `_id`'s; that too, where the documents' own tree can't be it
    /// ([`Collection::collated_id`]).
    pub indexes: Vec<Index>,
    /// The order of insertion, of a capped collection: see `collection::capped`.
    pub order: Option<TreeRef>,
}

/// An index that can be read.
#[derive(Clone, Debug)]
pub struct Index {
    /// As it was asked for.
    pub spec: IndexSpec,
    /// The shape of its keys.
    pub shape: Arc<IndexShape>,
    /// The parts of documents that its entries hold.
    pub held: Held,
    /// Its entries.
    pub tree: TreeRef,
    /// Whether the keys of documents are those of their `_id`s.
    pub holds_ids: bool,
}

/// The parts of documents that an index's entries hold besides their keys.
#[derive(Clone, Debug)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// Some fields: those that are included, those of the key, and `_id`.
    Fields(Arc<Projection>),
    /// All of them, if the document isn't large.
    Document,
}

impl Index {
    /// The index `spec` whose entries lie in `tree`.
    pub fn new(spec: IndexSpec, tree: TreeRef) -> Index {
        let shape =
            spec.shape().expect("a definition is checked when it is made, and when it is read");
        let held = match (spec.clustering, spec.include.is_empty()) {
            (true, _) => Held::Document,
            (false, true) => Held::Nothing,
            (false, false) => Held::Fields(Arc::new(included(&spec, &shape))),
        };
        Index { spec, shape: Arc::new(shape), held, tree, holds_ids: true }
    }

    /// Paths and directions.
    pub fn fields(&self) -> &[SortField] {
        self.shape.sort_fields()
    }

    /// Cuts the parts of a key of this index off its front.
    ///
    /// # Errors
    /// `Damaged` if `rest` doesn't begin with a key of this index.
    pub fn skip_key(&self, rest: &mut &[u8]) -> Result<(), Error> {
        for descending in self.shape.parts() {
            key::skip(rest, *descending)
                .map_err(|error| Error::damaged(format!("key of an index: {error}")))?;
        }
        Ok(())
    }

    /// Whether the key of an entry was cut ([`key::cut`]): it doesn't hold all of its parts then,
    /// nor name the document.
    pub fn is_cut(&self, entry_key: &[u8]) -> bool {
        let parts = self.shape.parts().iter().copied();
        let id = (!self.spec.unique).then_some(false);
        key::is_cut(entry_key, parts.chain(id))
    }

    /// The outermost fields that decide about its entries; `None` if all may.
    pub fn outermost_names(&self) -> Option<Vec<&[u8]>> {
        if matches!(self.held, Held::Document) {
            return None;
        }
        let mut names = self.shape.outermost_names()?;
        names.extend(self.spec.include.iter().map(|path| match path.split_once('.') {
            Some((first, _)) => first.as_bytes(),
            None => path.as_bytes(),
        }));
        Some(names)
    }

    /// Whether both versions of a document are certain to have the same entries: nothing that
    /// decides about them has changed.
    pub fn files_alike(&self, before: Document<'_>, after: Document<'_>) -> bool {
        let Some(mut names) = self.outermost_names() else { return false };
        // Entries hold the type of `_id`, which its key doesn't.
        names.push(b"_id");
        let decides = |element: &RawElement<'_>| names.contains(&element.name);
        before.elements().filter(decides).eq(after.elements().filter(decides))
    }
}

/// The projection to what an index with included fields holds: of paths one of which lies below
/// another, the outer.
fn included(spec: &IndexSpec, shape: &IndexShape) -> Projection {
    let keys = shape.fields().iter().filter(|field| field.kind != FieldKind::Wildcard);
    let mut paths: Vec<&str> = spec.include.iter().map(String::as_str).collect();
    paths.extend(keys.map(|field| field.path.as_str()));
    paths.sort_unstable();
    let mut outer: Vec<&str> = Vec::new();
    for path in paths {
        let below = |above: &&str| {
            path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !outer.iter().any(below) {
            outer.push(path);
        }
    }
    let mut projection = DocumentBuilder::new();
    for path in outer {
        projection.append(path, BsonValue::Int32(1));
    }
    Projection::parse(projection.build().view()).expect("paths of fields make a projection")
}

impl Collection {
    /// A collection in the engine's trees.
    pub fn live(live: &LiveCollection) -> Collection {
        let series = Series::of(live.options.view()).map(Arc::new);
        let index = |index: &system::LiveIndex| Index {
            holds_ids: series.is_none(),
            ..Index::new(index.spec.clone(), TreeRef::Live(index.tree))
        };
        Collection {
            uuid: live.uuid,
            options: live.options.clone(),
            documents: TreeRef::Live(live.documents),
            indexes: live.indexes.iter().map(index).collect(),
            order: live.order.map(TreeRef::Live),
            series,
        }
    }

    /// A collection as a commit of `repository` has it under `name`.
    pub fn committed(
        entry: &CatalogEntry,
        repository: &RepositoryRecord,
        name: &str,
    ) -> Collection {
        let format = repository.format();
        let series = Series::of(entry.options.view()).map(Arc::new);
        let index = |(spec, root): &(IndexSpec, ChunkHash)| Index {
            holds_ids: series.is_none(),
            ..Index::new(spec.clone(), TreeRef::Committed(spec.tree(*root, format)))
        };
        Collection {
            uuid: uuid_of_committed(repository, name),
            options: entry.options.clone(),
            documents: TreeRef::Committed(entry.documents_tree(format)),
            indexes: entry.indexes.iter().map(index).collect(),
            order: None,
            series,
        }
    }

    /// Whether a document may lie under a key.
    pub fn is_key_of(&self, key: &[u8], document: Document<'_>) -> bool {
        is_key_of(self.series.as_deref(), key, document)
    }

    /// Returns how strings compare where a request doesn't say.
    ///
    /// # Errors
    /// `BadValue` (2) if the stored one is none that this build knows.
    pub fn collation(&self) -> Result<Collation, Error> {
        match self.options.get("collation") {
            Some(BsonValue::Document(specification)) => Ok(Collation::parse(specification)?),
            _ => Ok(Collation::SIMPLE),
        }
    }

    /// The indexes that were asked for.
    pub fn secondary_indexes(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter().filter(|index| !index.spec.is_id())
    }

    /// The index of `_id` that a collection with these options is made with.
    ///
    /// # Errors
    /// As [`Collection::collation`].
    pub fn needed_id_index(&self) -> Result<Option<IndexSpec>, Error> {
        if self.series.is_some() || self.options.get("viewOn").is_some() {
            return Ok(None);
        }
        Ok(IndexSpec::of_collated_id(&self.collation()?))
    }

    /// The index of `_id` as it is shown: the tree of documents, or that beside it, which is unique
    /// as every index of `_id` is, so that it isn't said.
    pub fn id_index(&self) -> IndexSpec {
        match self.collated_id() {
            Some(position) => IndexSpec { unique: false, ..self.indexes[position].spec.clone() },
            None => IndexSpec::of_id(),
        }
    }

    /// Returns where the index of `_id` by the collection's collation stands among the indexes.
    /// Such a collection has one: its documents lie by the bytes of their `_id`s.
    pub fn collated_id(&self) -> Option<usize> {
        self.indexes.iter().position(|index| index.spec.is_id())
    }

    /// All trees: the documents', then each index's, then the order's.
    pub fn trees(&self) -> Vec<TreeRef> {
        let indexes = self.indexes.iter().map(|index| index.tree);
        std::iter::once(self.documents).chain(indexes).chain(self.order).collect()
    }
}

/// Whether a document may lie under a key, in a time series if it is one.
pub fn is_key_of(series: Option<&Series>, key: &[u8], document: Document<'_>) -> bool {
    match series {
        Some(series) => series.is_place(key, document),
        None => document.get("_id").is_some_and(|id| key::of_id(id) == key),
    }
}

/// A collection that no branch of this data directory has written has no record that could hold a
/// UUID: it is derived from the repository's, and kept when the collection is adopted.
fn uuid_of_committed(repository: &RepositoryRecord, name: &str) -> [u8; 16] {
    let mut bytes = repository.uuid.to_vec();
    bytes.extend_from_slice(name.as_bytes());
    let hash = Chunk::new(ChunkKind::Blob, &[], &bytes).hash();
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&hash.0[..16]);
    uuid[6] = (uuid[6] & 0x0f) | 0x80;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
    uuid
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    #[test]
    fn an_index_knows_which_changes_leave_its_entries_as_they_are() {
        let index = |spec: IndexSpec| Index::new(spec, TreeRef::Live(frond_engine::TreeId(9)));
        let plain = || IndexSpec::plain("a".to_owned(), document! { "a.b": 1 });
        let more_than_one = document! { "$gt": 1 };
        let by_a = index(plain());
        let with = index(IndexSpec { include: vec!["i.j".to_owned()], ..plain() });
        let partial = Some(document! { "p": &more_than_one });
        let partial = index(IndexSpec { partial, ..plain() });
        let wild = index(IndexSpec::plain("w".to_owned(), document! { "$**": 1 }));
        let (one, two, double) =
            (document! { "b": 1 }, document! { "b": 2 }, document! { "b": 1.0 });
        let before = document! { "_id": 1, "a": &one, "i": 1, "p": 1, "z": 1 };
        for (after, alike) in [
            (document! { "_id": 1, "a": &one, "i": 1, "p": 1, "z": 2 }, [1, 1, 1]),
            (document! { "z": 1, "_id": 1, "y": 1, "a": &one, "i": 1, "p": 1 }, [1, 1, 1]),
            (document! { "_id": 1, "a": &one, "i": 1, "p": 1, "i": 2 }, [1, 0, 1]),
            (document! { "_id": 1, "a": &one, "i": 2, "p": 1 }, [1, 0, 1]),
            (document! { "_id": 1, "a": &one, "i": 1, "p": 2 }, [1, 1, 0]),
            (document! { "_id": 1, "a": &one, "p": 1 }, [1, 0, 1]),
            (document! { "_id": 1, "a": &two, "i": 1, "p": 1 }, [0, 0, 0]),
            (document! { "_id": 1, "a": &double, "i": 1, "p": 1 }, [0, 0, 0]),
            (document! { "_id": 1, "i": 1, "p": 1 }, [0, 0, 0]),
            (document! { "_id": 1.0, "a": &one, "i": 1, "p": 1 }, [0, 0, 0]),
        ] {
            let found = [&by_a, &with, &partial]
                .map(|index| i32::from(index.files_alike(before.view(), after.view())));
            assert_eq!(found, alike, "{after:?}");
            assert!(!wild.files_alike(before.view(), after.view()));
        }
    }
}
