//! Three-way merge of one collection: options, indexes, documents.
//!
//! 1. A side that is as the base was gives way to the other as a whole: nothing below is read.
//! 2. Options and each index, by name, are merged as values: what one side changed counts, equal
//!    changes agree, anything else refuses the merge.
//! 3. Documents: the trees' differences from the base are interleaved; what both sides changed is
//!    merged field by field.
//! 4. Each index starts from a side that has it, ours first, and gets the entries of the documents
//!    that differ between that side and the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Edit, MergeConflict, Tree, TreeError, TreeFormat, Value};

use crate::catalog::entry::CatalogEntry;
use crate::catalog::{INDEXES_MAX, IndexSpec};
use crate::collection::write::DOCUMENT_BYTES_MAX;
use crate::error::Error;
use crate::large::{read_document, value_of};
use crate::version::conflict::StoredConflict;
use crate::version::field_merge::{Prefer, merge_documents};
use crate::version::merge_index;

/// A collection on the three sides; `None` where it doesn't exist.
pub(crate) struct CollectionMerge<'a> {
    pub store: &'a Arc<dyn ChunkStore>,
    pub format: TreeFormat,
    /// For messages.
    pub namespace: String,
    pub collection: &'a str,
    pub base: Option<&'a CatalogEntry>,
    pub ours: Option<&'a CatalogEntry>,
    pub theirs: Option<&'a CatalogEntry>,
    /// What a document has where both sides conflict.
    pub prefer: Prefer,
}

/// What a merge of a collection gives.
pub(crate) struct MergedCollection {
    pub entry: Option<CatalogEntry>,
    /// In the order of documents; the entry has what is preferred there.
    pub conflicts: Vec<StoredConflict>,
    /// What unique indexes refuse, in words.
    pub duplicates: Vec<String>,
}

impl CollectionMerge<'_> {
    /// Merges; the inner error says in words why that is refused.
    pub fn run(&self) -> Result<Result<MergedCollection, String>, Error> {
        let whole = |entry: Option<&CatalogEntry>| {
            let entry = entry.cloned();
            Ok(Ok(MergedCollection { entry, conflicts: Vec::new(), duplicates: Vec::new() }))
        };
        if self.ours == self.theirs || self.theirs == self.base {
            return whole(self.ours);
        }
        if self.ours == self.base {
            return whole(self.theirs);
        }
        let (Some(ours), Some(theirs)) = (self.ours, self.theirs) else {
            return Ok(Err(format!(
                "collection {} was dropped on one side and changed on the other",
                self.namespace
            )));
        };
        let options = match self.merge_options(ours, theirs) {
            Ok(options) => options,
            Err(why) => return Ok(Err(why)),
        };
        let specs = match self.merge_specs(ours, theirs) {
            Ok(specs) => specs,
            Err(why) => return Ok(Err(why)),
        };
        let (documents, conflicts) = match self.merge_documents(ours, theirs)? {
            Ok(merged) => merged,
            Err(why) => return Ok(Err(why)),
        };
        let mut indexes = Vec::with_capacity(specs.len());
        let mut duplicates = Vec::new();
        for spec in specs {
            let (tree, more) = self.merge_index(&spec, [ours, theirs], &documents)?;
            indexes.push((spec, tree.root));
            duplicates.extend(more);
        }
        let entry = Some(CatalogEntry::new(options, documents.root, indexes));
        Ok(Ok(MergedCollection { entry, conflicts, duplicates }))
    }

    fn merge_options(
        &self,
        ours: &CatalogEntry,
        theirs: &CatalogEntry,
    ) -> Result<DocumentBuf, String> {
        let base = self.base.map(|base| &base.options);
        let merged = merge_values(base, Some(&ours.options), Some(&theirs.options));
        merged.flatten().cloned().ok_or_else(|| {
            format!("collection {} has different options on both sides", self.namespace)
        })
    }

    fn merge_specs(
        &self,
        ours: &CatalogEntry,
        theirs: &CatalogEntry,
    ) -> Result<Vec<IndexSpec>, String> {
        let base = self.base.map(specs).unwrap_or_default();
        let (ours, theirs) = (specs(ours), specs(theirs));
        let mut merged: Vec<IndexSpec> = Vec::new();
        let only_theirs = theirs.keys().filter(|name| !ours.contains_key(*name));
        for name in ours.keys().chain(only_theirs) {
            let sides = [&base, &ours, &theirs].map(|side| side.get(name).copied());
            match merge_values(sides[0], sides[1], sides[2]) {
                Some(Some(spec)) => merged.push(spec.clone()),
                Some(None) => {}
                None => {
                    return Err(format!(
                        "index {name} of collection {} was changed differently on both sides",
                        self.namespace
                    ));
                }
            }
        }
        // The index of `_id` counts, too.
        if merged.len() >= INDEXES_MAX {
            return Err(format!(
                "collection {} got more than {INDEXES_MAX} indexes",
                self.namespace
            ));
        }
        for (position, spec) in merged.iter().enumerate() {
            let same = merged[..position].iter().find(|before| before.is_same_index(spec));
            if let Some(same) = same {
                return Err(format!(
                    "collection {} got indexes {} and {} of the same key",
                    self.namespace, same.name, spec.name
                ));
            }
        }
        Ok(merged)
    }

    /// Merges the documents; the preferred side's stays where both conflict. The inner error says in words
    /// that a document would become too large to be one.
    fn merge_documents(
        &self,
        ours: &CatalogEntry,
        theirs: &CatalogEntry,
    ) -> Result<Result<(Tree, Vec<StoredConflict>), String>, Error> {
        let base = match self.base {
            Some(base) => base.documents_tree(self.format),
            None => Tree::empty(&**self.store, self.format)?,
        };
        let mut conflicts = Vec::new();
        let mut too_large = None;
        let mut resolve = |conflict: MergeConflict| {
            let merged = self.merge_document(conflict, &mut conflicts)?;
            let Some(merged) = merged else { return Ok(None) };
            let Some(document) = merged else { return Ok(Some(Edit::Delete)) };
            let bytes = document.as_bytes().len();
            if bytes > DOCUMENT_BYTES_MAX {
                too_large.get_or_insert(bytes);
            }
            Ok(Some(Edit::Put(value_of(&**self.store, self.format, &document)?)))
        };
        let merged = Tree::merge(
            self.store,
            &base,
            &ours.documents_tree(self.format),
            &theirs.documents_tree(self.format),
            &mut resolve,
        )?;
        Ok(match too_large {
            None => Ok((merged, conflicts)),
            Some(bytes) => Err(format!(
                "a document of collection {} would have {bytes} bytes, at most \
                 {DOCUMENT_BYTES_MAX} are allowed",
                self.namespace
            )),
        })
    }

    /// The document in the place of ours, `Some(None)` if it goes; `None` if ours stays.
    fn merge_document(
        &self,
        conflict: MergeConflict,
        conflicts: &mut Vec<StoredConflict>,
    ) -> Result<Option<Option<DocumentBuf>>, TreeError> {
        let read = |value: &Option<Value>| {
            value.as_ref().map(|value| read_document(&**self.store, value)).transpose()
        };
        let (base, ours) = (read(&conflict.base)?, read(&conflict.ours)?);
        let theirs = read(&conflict.theirs)?;
        let merged = {
            let [base, ours, theirs] =
                [&base, &ours, &theirs].map(|side| side.as_ref().map(DocumentBuf::view));
            merge_documents(base, ours, theirs, self.prefer)
        };
        let edit = (merged.document != ours).then_some(merged.document);
        if let Some(paths) = merged.conflict {
            let collection = self.collection.to_owned();
            let id_key = conflict.key;
            conflicts.push(StoredConflict { collection, id_key, paths, base, ours, theirs });
        }
        Ok(edit)
    }

    /// The index `spec` over `documents`, from the tree of the first side that has it.
    fn merge_index(
        &self,
        spec: &IndexSpec,
        sides: [&CatalogEntry; 2],
        documents: &Tree,
    ) -> Result<(Tree, Vec<String>), Error> {
        for side in sides {
            let Some((_, root)) = side.indexes.iter().find(|(known, _)| known == spec) else {
                continue;
            };
            let index = Tree { root: *root, format: self.format };
            let changes = side.documents_tree(self.format).diff(self.store, documents);
            return merge_index::apply(self.store, spec, &index, changes, &self.namespace);
        }
        Err(Error::internal(format!("index {} is on neither side of a merge", spec.name)))
    }
}

fn specs(entry: &CatalogEntry) -> BTreeMap<&str, &IndexSpec> {
    entry.indexes.iter().map(|(spec, _): &(_, ChunkHash)| (spec.name.as_str(), spec)).collect()
}

/// Merges what is compared as a whole; `None` if both sides changed it differently.
fn merge_values<T: PartialEq>(
    base: Option<T>,
    ours: Option<T>,
    theirs: Option<T>,
) -> Option<Option<T>> {
    if ours == theirs || theirs == base {
        Some(ours)
    } else if ours == base {
        Some(theirs)
    } else {
        None
    }
}
