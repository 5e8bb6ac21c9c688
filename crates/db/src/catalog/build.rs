//! Building an index's tree from documents that are there.
//!
//! Every document's entries are collected, sorted and built into a tree whose nodes are written once
//! each. They are held in memory: about the index's own size.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_doc::DocumentBuf;
use frond_store::ChunkStore;
use frond_tree::{Entry, Tree, TreeFormat, Value};

use crate::catalog::index_entry;
use crate::catalog::view::Index;
use crate::collection::duplicate;
use crate::error::Error;

/// Builds the tree of `index` over `documents`: each with the key of its `_id`.
///
/// # Errors
/// `DuplicateKey` if the index is unique and two documents have one key.
pub(crate) fn index_tree(
    store: &dyn ChunkStore,
    format: TreeFormat,
    index: &Index,
    namespace: &str,
    documents: &mut dyn Iterator<Item = Result<(Bytes, DocumentBuf), Error>>,
) -> Result<Tree, Error> {
    let mut entries: BTreeMap<Bytes, Value> = BTreeMap::new();
    for document in documents {
        let (id_key, document) = document?;
        for (key, value) in index_entry::entries(index, &id_key, document.view(), namespace)? {
            if index.spec.unique && entries.contains_key(&key) {
                let (spec, shape) = (&index.spec, &index.shape);
                let view = document.view();
                let error =
                    duplicate::of_index(namespace, &spec.name, &spec.key, shape, &key, view);
                return Err(error);
            }
            entries.insert(key, value);
        }
    }
    let mut entries = entries.into_iter().map(|(key, value)| Ok(Entry { key, value }));
    Ok(Tree::load(store, format, &mut entries)?)
}
