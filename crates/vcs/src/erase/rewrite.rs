//! Versions of a collection without documents, or fields, that are erased.
//!
//! - Of named documents, each version's tree is asked for them: O(log n) a version.
//! - Of a field of all documents, a version is made from the one before it: the result for the
//!   parent, with what differs between the two, less the field. Only the first version is read
//!   whole.
//! - Index entries derive from the documents that differ, as in a merge. An index over an erased
//!   field is left out where the field goes from all documents: it would file nothing but nulls.
//!
//! The same content gives the same tree by either way, so what didn't hold the erased is what it
//! was.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use frond_db::inside::large::{read_document, value_of};
use frond_db::inside::{
    CatalogEntry, Error, FetchedDocument, IndexSpec, ParsedUpdate, changed_entries,
};
use frond_doc::DocumentBuf;
use frond_query::{Code, Filter};
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Edit, Tree, TreeError, TreeFormat, Value};

use crate::history::path_filter::refuse_points;
use crate::state;

/// Makes versions without what is erased.
pub(crate) struct Rewrite<'a> {
    pub store: &'a Arc<dyn ChunkStore>,
    pub format: TreeFormat,
    pub collection: &'a str,
    /// The namespace, for messages.
    pub namespace: String,
    /// Keys of the documents, ascending; none: all documents.
    pub id_keys: Vec<Bytes>,
    /// The update that removes the fields; `None`: the documents are removed.
    pub update: Option<ParsedUpdate>,
    /// Paths of the fields.
    pub fields: &'a [String],
    /// The rewritten entries, by the chunks of the old ones.
    pub done: HashMap<ChunkHash, CatalogEntry>,
    /// Documents that were taken out or changed, each version of each once or more.
    pub documents: u64,
}

impl Rewrite<'_> {
    /// A catalog without the erased; `before` is one that was rewritten already, and what it
    /// became.
    ///
    /// # Errors
    /// `Damaged` if something of it can't be read; `Unavailable` if the store takes no chunks.
    pub fn catalog(&mut self, old: Tree, before: Option<(Tree, Tree)>) -> Result<Tree, Error> {
        let Some(entry) = state::catalog_entry(self.store, &old, self.collection)? else {
            return Ok(old);
        };
        let mut entry_before = None;
        if let Some((old, new)) = before {
            let old = state::catalog_entry(self.store, &old, self.collection)?;
            let new = state::catalog_entry(self.store, &new, self.collection)?;
            entry_before = old.zip(new);
        }
        let rewritten = self.entry(&entry, entry_before.as_ref())?;
        if rewritten == entry {
            return Ok(old);
        }
        state::with_entry(&**self.store, &old, self.collection, Some(&rewritten))
    }

    /// A collection without the erased.
    ///
    /// # Errors
    /// As [`Rewrite::catalog`].
    pub fn entry(
        &mut self,
        entry: &CatalogEntry,
        before: Option<&(CatalogEntry, CatalogEntry)>,
    ) -> Result<CatalogEntry, Error> {
        let name = entry.encode().hash();
        if let Some(done) = self.done.get(&name) {
            return Ok(done.clone());
        }
        self.check_points(entry)?;
        let documents = if self.id_keys.is_empty() {
            self.all_documents(entry, before)?
        } else {
            self.named_documents(entry)?
        };
        let mut indexes = Vec::with_capacity(entry.indexes.len());
        for (spec, root) in &entry.indexes {
            if self.id_keys.is_empty() && self.is_over_erased(spec) {
                continue;
            }
            let index = spec.tree(*root, self.format);
            let root = self.index(spec, entry, index, documents, before)?.root;
            indexes.push((spec.clone(), root));
        }
        let rewritten = CatalogEntry::new(entry.options.clone(), documents.root, indexes);
        self.done.insert(name, rewritten.clone());
        Ok(rewritten)
    }

    /// Refuses to erase points by `_id`, or what they lie by.
    fn check_points(&self, entry: &CatalogEntry) -> Result<(), Error> {
        let Some(series) = entry.series() else { return Ok(()) };
        if !self.id_keys.is_empty() {
            return refuse_points(entry, self.collection);
        }
        let lies_by = |field: &&String| {
            let first = field.split('.').next();
            first == Some(&series.time) || first == series.meta.as_deref()
        };
        match self.fields.iter().find(lies_by) {
            None => Ok(()),
            Some(field) => {
                let message = format!("{field} can't be taken from the points of a time series");
                Err(Error::invalid(Code::BadValue, message))
            }
        }
    }

    fn named_documents(&mut self, entry: &CatalogEntry) -> Result<Tree, Error> {
        let documents = entry.documents_tree(self.format);
        let keys: Vec<&[u8]> = self.id_keys.iter().map(|key| &key[..]).collect();
        let mut edits = Vec::new();
        for (key, value) in keys.iter().zip(documents.get_many(&**self.store, &keys)?) {
            let Some(value) = value else { continue };
            let edit = match self.without_fields(key, &value)? {
                Some(changed) if changed == value => continue,
                Some(changed) => Edit::Put(changed),
                None => Edit::Delete,
            };
            self.documents += 1;
            edits.push(Ok((Bytes::copy_from_slice(key), edit)));
        }
        Ok(documents.apply(&**self.store, &mut edits.into_iter())?)
    }

    fn all_documents(
        &mut self,
        entry: &CatalogEntry,
        before: Option<&(CatalogEntry, CatalogEntry)>,
    ) -> Result<Tree, Error> {
        let store = self.store;
        let empty = Tree::empty(&**store, self.format)?;
        let (old, new) = match before {
            Some((old, new)) => (old.documents_tree(self.format), new.documents_tree(self.format)),
            None => (empty, empty),
        };
        let (mut failed, mut count) = (None, 0);
        let mut edits = old.diff(store, &entry.documents_tree(self.format)).map_while(|change| {
            let edit = change.map_err(Error::from).and_then(|change| {
                let Some(value) = change.to else { return Ok((change.key, Edit::Delete)) };
                let changed = self.without_fields(&change.key, &value)?;
                count += u64::from(changed.as_ref() != Some(&value));
                Ok((change.key, changed.map_or(Edit::Delete, Edit::Put)))
            });
            edit.map_err(|error| failed = Some(error)).ok().map(Ok::<_, TreeError>)
        });
        let rewritten = new.apply(&**store, &mut edits)?;
        drop(edits);
        self.documents += count;
        failed.map_or(Ok(rewritten), Err)
    }

    /// The value of a document without the fields; `None` if the document goes.
    fn without_fields(&self, key: &[u8], value: &Value) -> Result<Option<Value>, Error> {
        let Some(update) = &self.update else { return Ok(None) };
        let document = read_document(&**self.store, value)?;
        let id_key = Bytes::copy_from_slice(key);
        let changed: Option<DocumentBuf> =
            update.apply(&Filter::all(), &FetchedDocument { id_key, document, large: None })?;
        Ok(Some(match changed {
            Some(changed) => value_of(&**self.store, self.format, &changed)?,
            None => value.clone(),
        }))
    }

    fn is_over_erased(&self, spec: &IndexSpec) -> bool {
        let erased = |path: &str| {
            self.fields.iter().any(|field| {
                let field = field.replace(".$[]", "");
                path.strip_prefix(&field)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        spec.key.iter().any(|(path, _)| erased(path))
    }

    fn index(
        &self,
        spec: &IndexSpec,
        entry: &CatalogEntry,
        index: Tree,
        documents: Tree,
        before: Option<&(CatalogEntry, CatalogEntry)>,
    ) -> Result<Tree, Error> {
        // Where the version before has the index, its result differs less from this one's.
        let start = before.filter(|_| self.id_keys.is_empty()).and_then(|(_, new)| {
            let (_, root) = new.indexes.iter().find(|(known, _)| known == spec)?;
            Some((spec.tree(*root, self.format), new.documents_tree(self.format)))
        });
        let (tree, files) = start.unwrap_or((index, entry.documents_tree(self.format)));
        let changes = files.diff(self.store, &documents);
        let (tree, duplicates) =
            changed_entries::apply(self.store, spec, &tree, changes, &self.namespace)?;
        match duplicates.first() {
            None => Ok(tree),
            Some(duplicate) => {
                let message = format!(
                    "without the fields a unique index refuses a version: {}",
                    duplicate.error.message
                );
                Err(Error::invalid(Code::DuplicateKey, message))
            }
        }
    }
}
