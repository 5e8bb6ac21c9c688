//! Making, dropping and listing indexes.
//!
//! An index is built and published in one transaction:
//!
//! 1. The documents are folded as they are at the transaction's snapshot; the tree that results is
//!    scanned and the index built from it, seen by nobody.
//! 2. The transaction makes the folded tree the documents' base (which it is already, so nothing
//!    changes, but it conflicts with every concurrent write to them) and the working entry name the
//!    new index. A writer that committed in between makes it lose and start again, then with the
//!    collection's gate closed: writers wait until the build is done.
//!
//! So an index is never seen unfinished, and a version commit has it whole or not at all. It is thin:
//! a large build holds up writers of its collection (not readers, not other collections).

use frond_doc::{DocumentBuf, Value};
use frond_engine::{Durability, Transaction};
use frond_query::{Code, Collation, text};
use frond_tree::{Bounds, Direction, Tree};

use crate::catalog::view::Index;
use crate::catalog::{CatalogView, Collection, ID_INDEX_NAME, IndexSpec, adopt, build};
use crate::collection::view;
use crate::contention::{Outcome, Role, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::large::read_document;
use crate::name;
use crate::reader::TreePlace;
use crate::system::{LiveCollection, LiveIndex, WorkingEntry};
use crate::transaction::not_in_transaction;

/// Indexes of a collection at most, `_id`'s counted.
pub(crate) const INDEXES_MAX: usize = 64;

/// What `createIndexes` answers.
#[derive(Clone, Copy, Debug)]
pub struct IndexesCreated {
    /// Indexes before, `_id` counted.
    pub before: u32,
    /// Indexes after.
    pub after: u32,
    /// Whether the collection was made by this.
    pub created_collection: bool,
}

impl Database {
    /// Makes indexes, all or none, filled from the documents that are there.
    ///
    /// # Errors
    /// `IndexOptionsConflict` (85), `IndexKeySpecsConflict` (86), `DuplicateKey` (11000).
    pub fn create_indexes(
        &self,
        collection: &str,
        specs: &[IndexSpec],
    ) -> Result<IndexesCreated, Error> {
        let branch = self.writable_branch()?;
        name::check_collection(self.repository_name(), collection)?;
        for spec in specs {
            spec.shape()?;
        }
        let scope = Scope::collection(self.repository_name(), branch, collection);
        // In a transaction of several requests nothing is replaced: it has made the collection itself.
        let role = self.transaction().map_or(Role::Replacer, |_| Role::Writer);
        self.transact(scope, role, Durability::Synced, |transaction| {
            let found = adopt::find(transaction, self, branch, collection)?;
            if let Some(found) = &found {
                view::refuse(found.options.view(), &self.namespace(collection))?;
                if self.transaction().is_some() {
                    check_own_and_empty(transaction, found)?;
                }
            }
            let there = found.as_ref().map_or(&[][..], |found| &found.indexes);
            let collation = match &found {
                Some(found) => found.collation()?,
                None => Collation::SIMPLE,
            };
            let specs: Vec<IndexSpec> =
                specs.iter().map(|spec| spec.in_collection(&collation)).collect();
            let wanted = missing_indexes(there, &specs)?;
            let before = there.len() as u32 + 1;
            let created_collection = found.is_none();
            let after = before + wanted.len() as u32;
            let answer = IndexesCreated { before, after, created_collection };
            if wanted.is_empty() && !created_collection {
                return Ok(Outcome::Discard(answer));
            }
            self.build_and_publish(transaction, branch, collection, found, wanted)?;
            Ok(Outcome::Commit(answer))
        })
    }

    fn build_and_publish(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        name: &str,
        found: Option<Collection>,
        wanted: Vec<IndexSpec>,
    ) -> Result<(), Error> {
        let engine = self.frond().engine();
        let store = engine.store();
        let (mut live, documents) = match found {
            Some(found) => {
                let live = adopt::adopt(transaction, self, branch, name, &found)?;
                let tree = match found.documents {
                    TreePlace::Committed(tree) => tree,
                    TreePlace::Live(_) if self.transaction().is_some() => {
                        let format = adopt::ensure_repository(transaction, self, branch)?.format();
                        Tree::empty(&**store, format)?
                    }
                    TreePlace::Live(id) => {
                        let snapshot = transaction.snapshot().clone();
                        let folded = engine.fold(&snapshot, &[id])?;
                        let tree = *folded.first().expect("one tree was asked for");
                        transaction.set_base(id, tree)?;
                        tree
                    }
                };
                (live, tree)
            }
            None => {
                let options = DocumentBuf::empty();
                let live = adopt::create(transaction, self, branch, name, options)?;
                let format = adopt::ensure_repository(transaction, self, branch)?.format();
                (live, Tree::empty(&**store, format)?)
            }
        };
        for spec in wanted {
            let tree = self.build_index(name, documents, &spec)?;
            let id = engine.reserve_tree_id();
            transaction.set_base(id, tree)?;
            live.indexes.push(LiveIndex { spec, tree: id });
        }
        adopt::put_entry(transaction, self, branch, name, &WorkingEntry::Live(live))
    }

    fn build_index(&self, name: &str, documents: Tree, spec: &IndexSpec) -> Result<Tree, Error> {
        let store = self.frond().engine().store();
        let index = Index::new(spec.clone(), TreePlace::Committed(documents));
        let mut documents_read =
            documents.range(store, Bounds::all(), Direction::Ascending).map(|entry| {
                let entry = entry?;
                Ok((entry.key, read_document(&**store, &entry.value)?))
            });
        let namespace = self.namespace(name);
        build::index_tree(&**store, documents.format, &index, &namespace, &mut documents_read)
    }

    /// Drops the index called `index` (`*`: all but `_id`'s); answers how many there were.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `IndexNotFound` (27), `InvalidOptions` (72) for `_id`'s.
    pub fn drop_indexes(&self, collection: &str, index: &str) -> Result<u32, Error> {
        let branch = self.writable_branch()?;
        let scope = Scope::collection(self.repository_name(), branch, collection);
        self.transact(scope, Role::Replacer, Durability::Synced, |transaction| {
            let Some(found) = adopt::find(transaction, self, branch, collection)? else {
                return Err(self.no_collection(collection));
            };
            if index == ID_INDEX_NAME {
                return Err(Error::invalid(Code::InvalidOptions, "cannot drop _id index"));
            }
            let count = found.indexes.len() as u32 + 1;
            let goes = |candidate: &LiveIndex| index == "*" || candidate.spec.name == index;
            let live = adopt::adopt(transaction, self, branch, collection, &found)?;
            let (gone, kept): (Vec<_>, Vec<_>) = live.indexes.into_iter().partition(goes);
            if gone.is_empty() {
                if index == "*" {
                    return Ok(Outcome::Discard(count));
                }
                let message = format!("index not found with name [{index}]");
                return Err(Error::invalid(Code::IndexNotFound, message));
            }
            for index in &gone {
                transaction.drop_tree(index.tree)?;
            }
            let entry = WorkingEntry::Live(LiveCollection { indexes: kept, ..live });
            adopt::put_entry(transaction, self, branch, collection, &entry)?;
            Ok(Outcome::Commit(count))
        })
    }

    /// The indexes of a collection, `_id`'s first. `NamespaceNotFound` (26) if there is none.
    pub fn list_indexes(&self, collection: &str) -> Result<Vec<IndexSpec>, Error> {
        let reader = self.reader();
        let found = CatalogView::open(&reader, self)?.collection(collection)?;
        let found = found.ok_or_else(|| self.no_collection(collection))?;
        let others = found.indexes.into_iter().map(|index| index.spec);
        Ok(std::iter::once(IndexSpec::of_id()).chain(others).collect())
    }

    fn no_collection(&self, collection: &str) -> Error {
        let message = format!("ns does not exist: {}", self.namespace(collection));
        Error::invalid(Code::NamespaceNotFound, message)
    }
}

/// Refuses indexes of a collection that a transaction of several requests has not made itself, or
/// has put documents into: they could not be built within a statement.
fn check_own_and_empty(transaction: &Transaction, found: &Collection) -> Result<(), Error> {
    if let TreePlace::Live(documents) = found.documents
        && transaction.own_base(documents).is_some()
        && transaction.range(documents, Bounds::all(), Direction::Ascending)?.next().is_none()
    {
        return Ok(());
    }
    Err(not_in_transaction("indexes of a collection that it has not made, or that has documents,"))
}

/// Those of `specs` that aren't there yet.
fn missing_indexes(there: &[Index], specs: &[IndexSpec]) -> Result<Vec<IndexSpec>, Error> {
    let mut wanted: Vec<IndexSpec> = Vec::new();
    for spec in specs {
        let known: Vec<&IndexSpec> =
            there.iter().map(|index| &index.spec).chain(wanted.iter()).collect();
        if !spec.is_id() && !is_there(&known, spec)? {
            wanted.push(spec.clone());
        }
    }
    if there.len() + wanted.len() + 1 > INDEXES_MAX {
        let message = format!("a collection has at most {INDEXES_MAX} indexes");
        return Err(Error::invalid(Code::CannotCreateIndex, message));
    }
    Ok(wanted)
}

/// Whether `spec` is among `known` already.
fn is_there(known: &[&IndexSpec], spec: &IndexSpec) -> Result<bool, Error> {
    let told = |other: &IndexSpec| {
        format!(
            "Requested index: {}, existing index: {}",
            text::value(Value::from(&spec.to_document())),
            text::value(Value::from(&other.to_document()))
        )
    };
    for other in known {
        let is_named = other.name == spec.name;
        let is_same = other.is_same_index(spec);
        let has_same_options = other.has_same_options(spec);
        let (code, message) = match (is_named, is_same, has_same_options) {
            (true, true, true) => return Ok(true),
            (true, true, false) => (
                Code::IndexOptionsConflict,
                format!(
                    "An equivalent index already exists with the same name but different options. {}",
                    told(other)
                ),
            ),
            (true, false, _) => (
                Code::IndexKeySpecsConflict,
                format!(
                    "An existing index has the same name as the requested index. When index names \
                     are not specified, they are auto generated and can cause conflicts. Please \
                     refer to our documentation. {}",
                    told(other)
                ),
            ),
            (false, true, true) => (
                Code::IndexOptionsConflict,
                format!("Index already exists with a different name: {}", other.name),
            ),
            (false, true, false) => (
                Code::IndexOptionsConflict,
                format!(
                    "An equivalent index already exists with a different name and options. {}",
                    told(other)
                ),
            ),
            (false, false, _) => continue,
        };
        return Err(Error::invalid(code, message));
    }
    Ok(false)
}
