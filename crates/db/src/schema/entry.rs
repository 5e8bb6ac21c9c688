//! A collection's entry in a commit's catalog: a chunk that references its trees.
//!
//! The references are the root of the documents' tree and those of the indexes, in their order. The
//! payload is BSON: `{options, indexes: [{name, key, unique, sparse}]}`. Nothing in it is local to
//! a data directory or depends on history: indexes stand in the order of their names.

use bytes::Bytes;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_store::{Chunk, ChunkHash, ChunkKind};
use frond_tree::{Tree, TreeFormat};

use crate::definition::IndexSpec;
use crate::error::Error;
use crate::system;
use crate::timeseries::Series;

/// A collection as a commit has it.
#[derive(Clone, PartialEq, Debug)]
pub struct CatalogEntry {
    /// As given to `create`.
    pub options: DocumentBuf,
    /// The documents by `_id`.
    pub documents: ChunkHash,
    /// All indexes but `_id`'s, and the roots of their trees; ascending by name.
    pub indexes: Vec<(IndexSpec, ChunkHash)>,
}

impl CatalogEntry {
    /// Makes an entry; `indexes` may stand in any order.
    pub fn new(
        options: DocumentBuf,
        documents: ChunkHash,
        mut indexes: Vec<(IndexSpec, ChunkHash)>,
    ) -> CatalogEntry {
        indexes.sort_by(|(left, _), (right, _)| left.name.cmp(&right.name));
        CatalogEntry { options, documents, indexes }
    }

    /// Returns the time series, if the collection is one.
    pub fn series(&self) -> Option<Series> {
        Series::of(self.options.view())
    }

    /// The chunk to store.
    pub fn encode(&self) -> Chunk {
        assert!(self.is_in_order(), "a catalog's indexes stand in the order of their names");
        let mut builder = DocumentBuilder::new();
        builder.append("options", Value::from(&self.options));
        builder.begin_array("indexes");
        for (spec, _) in &self.indexes {
            let mut entry = DocumentBuilder::new();
            spec.append_stored(&mut entry);
            builder.push(Value::from(&entry.build()));
        }
        builder.end();
        let roots = self.indexes.iter().map(|(_, root)| *root);
        let references: Vec<ChunkHash> = std::iter::once(self.documents).chain(roots).collect();
        Chunk::new(ChunkKind::CatalogEntry, &references, builder.build().as_bytes())
    }

    /// Reads a stored chunk.
    ///
    /// # Errors
    /// `Damaged` if the chunk is of another kind, or its payload and references don't fit each
    /// other.
    pub fn decode(chunk: &Chunk) -> Result<CatalogEntry, Error> {
        let damaged =
            |what: &str| Error::damaged(format!("catalog entry {}: {what}", chunk.hash()));
        if chunk.kind() != ChunkKind::CatalogEntry {
            return Err(damaged("is a chunk of another kind"));
        }
        let payload = system::record(Bytes::copy_from_slice(chunk.payload()))?;
        let options = payload.get("options").and_then(|value| value.as_document());
        let stored = payload.get("indexes").and_then(|value| value.as_array());
        let (Some(options), Some(stored)) = (options, stored) else {
            return Err(damaged("has no options or no indexes"));
        };
        let mut references = chunk.references();
        let documents = references.next().ok_or_else(|| damaged("references no documents"))?;
        let mut indexes = Vec::new();
        for index in stored.iter() {
            let spec = index.as_document().ok_or_else(|| damaged("an index is no document"))?;
            let root = references.next().ok_or_else(|| damaged("an index has no tree"))?;
            indexes.push((IndexSpec::decode_stored(spec)?, root));
        }
        if references.next().is_some() {
            return Err(damaged("references more trees than it has indexes"));
        }
        let entry = CatalogEntry { options: options.to_buf(), documents, indexes };
        match entry.is_in_order() {
            true => Ok(entry),
            false => Err(damaged("has indexes that aren't in the order of their names")),
        }
    }

    /// Whether the indexes stand in the order of their names, no two of which are the same.
    fn is_in_order(&self) -> bool {
        self.indexes.is_sorted_by(|(left, _), (right, _)| left.name < right.name)
    }

    /// The documents' tree.
    pub fn documents_tree(&self, format: TreeFormat) -> Tree {
        Tree { root: self.documents, format }
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;
    use crate::error::ErrorKind;

    fn index(name: &str) -> (IndexSpec, ChunkHash) {
        let mut key = DocumentBuilder::new();
        key.append(name, Value::Int32(1));
        let spec = document! { "key": &key.build(), "name": name };
        (IndexSpec::parse(spec.view()).expect("an index"), ChunkHash([1; 32]))
    }

    /// Its chunk may come from elsewhere, by a push: what no build writes isn't believed.
    #[test]
    fn entries_in_another_order_or_with_more_trees_are_damage() {
        let indexes = vec![index("b"), index("a")];
        let entry = CatalogEntry::new(DocumentBuf::empty(), ChunkHash([2; 32]), indexes);
        let chunk = entry.encode();
        assert_eq!(CatalogEntry::decode(&chunk).expect("as it was written"), entry);

        let references: Vec<ChunkHash> = chunk.references().collect();
        let named = |from: u8, to: u8| {
            let mut payload = chunk.payload().to_vec();
            let name = [2, 0, 0, 0, from, 0];
            let at = payload.windows(name.len()).position(|found| found == name);
            payload[at.expect("the name") + 4] = to;
            Chunk::new(ChunkKind::CatalogEntry, &references, &payload)
        };
        let more = [&references[..], &[ChunkHash([3; 32])]].concat();
        let more = Chunk::new(ChunkKind::CatalogEntry, &more, chunk.payload());
        for wrong in [named(b'a', b'c'), named(b'a', b'b'), more] {
            let error = CatalogEntry::decode(&wrong).expect_err("it is damaged");
            assert_eq!(error.kind, ErrorKind::Damaged, "{error}");
        }
    }
}
