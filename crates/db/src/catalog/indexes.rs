//! Making, dropping and listing indexes.
//!
//! 1. *Build*: the documents are folded as they are now; the tree that results is scanned and the index
//!    built from it, in bounded memory, while writers go on ([`Builder`]).
//! 2. *Catch up and publish*, in one transaction: the documents are folded as they are at its snapshot; by
//!    the difference between the two trees the index gets what changed meanwhile, as after a merge. The
//!    transaction makes the folded tree the documents' base (which it is already, so nothing changes, but
//!    it conflicts with every concurrent write to them) and the working entry name the new index.
//! 3. A writer that committed in between makes it lose: it catches up again, now from where it was, with
//!    the collection's gate closed. So writers wait for what was written since the last attempt, not for
//!    the build.
//!
//! So an index is never seen unfinished, a version commit has it whole or not at all, and a build that is
//! killed or crashes leaves nothing: until it is published nobody has heard of it.

use frond_doc::{DocumentBuf, Value};
use frond_engine::{Durability, Transaction};
use frond_query::{Code, Collation, text};
use frond_tree::{Bounds, Direction, Tree};

use crate::catalog::build::{Builder, Progress};
use crate::catalog::view::Index;
use crate::catalog::{CatalogView, Collection, ID_INDEX_NAME, IndexSpec, adopt, clustered};
use crate::collection::{Interrupt, view};
use crate::contention::{Outcome, Role, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::large::read_document;
use crate::name;
use crate::reader::{Reader, TreePlace};
use crate::system::{LiveCollection, LiveIndex, WorkingEntry};
use crate::transaction::not_in_transaction;
use crate::version::merge_index;

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

/// Indexes that were built and aren't published yet.
struct Prepared {
    /// The collection's.
    uuid: [u8; 16],
    /// The documents that they file.
    documents: Tree,
    indexes: Vec<(IndexSpec, Tree)>,
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
        self.create_indexes_unless(collection, specs, &Interrupt::default())
    }

    /// As [`Database::create_indexes`]; `interrupt` may stop it.
    pub fn create_indexes_unless(
        &self,
        collection: &str,
        specs: &[IndexSpec],
        interrupt: &Interrupt,
    ) -> Result<IndexesCreated, Error> {
        let branch = self.writable_branch()?;
        name::check_collection(self.repository_name(), collection)?;
        for spec in specs {
            spec.shape()?;
        }
        let scope = Scope::collection(self.repository_name(), branch, collection);
        // What is built belongs to nobody yet: a collection of garbage mustn't take it.
        let _session = self.frond().engine().store().session();
        let mut prepared = match self.transaction() {
            None => self.prepare(collection, specs, interrupt)?,
            Some(_) => None,
        };
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
            for spec in &specs {
                spec.shape()?;
            }
            let wanted = missing_indexes(there, &specs)?;
            let before = there.len() as u32 + 1;
            let created_collection = found.is_none();
            let after = before + wanted.len() as u32;
            let answer = IndexesCreated { before, after, created_collection };
            if wanted.is_empty() && !created_collection {
                return Ok(Outcome::Discard(answer));
            }
            interrupt.check()?;
            self.build_and_publish(transaction, branch, collection, found, wanted, &mut prepared)?;
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
        prepared: &mut Option<Prepared>,
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
        let is_prepared = |prepared: &&mut Prepared| prepared.uuid == live.uuid;
        match prepared.as_mut().filter(is_prepared) {
            Some(prepared) => self.catch_up(name, prepared, documents)?,
            None => *prepared = None,
        }
        for spec in wanted {
            let ready = prepared.iter().flat_map(|prepared| &prepared.indexes);
            let tree = match ready.into_iter().find(|(ready, _)| *ready == spec) {
                Some((_, tree)) => *tree,
                None => self.build_index(name, documents, &spec, &Interrupt::default(), None)?,
            };
            let id = engine.reserve_tree_id();
            transaction.set_base(id, tree)?;
            live.indexes.push(LiveIndex { spec, tree: id });
        }
        adopt::put_entry(transaction, self, branch, name, &WorkingEntry::Live(live))
    }

    /// Builds the indexes that are missing, from the documents as they are now. `None` if there is no
    /// collection, or nothing to build.
    fn prepare(
        &self,
        name: &str,
        specs: &[IndexSpec],
        interrupt: &Interrupt,
    ) -> Result<Option<Prepared>, Error> {
        let engine = self.frond().engine();
        let snapshot = engine.snapshot();
        let reader = Reader::at(engine, snapshot.clone());
        let Some(found) = CatalogView::open(&reader, self)?.collection(name)? else {
            return Ok(None);
        };
        view::refuse(found.options.view(), &self.namespace(name))?;
        let wanted = missing_indexes(&found.indexes, specs)?;
        if wanted.is_empty() {
            return Ok(None);
        }
        let documents = match found.documents {
            TreePlace::Committed(tree) => tree,
            TreePlace::Live(id) => *engine
                .fold(&snapshot, &[id])?
                .first()
                .ok_or_else(|| Error::internal("a fold of one tree gave none"))?,
        };
        drop((reader, snapshot));
        let count = documents.count(&**engine.store())?;
        let names = wanted.iter().map(|spec| spec.name.clone()).collect();
        let total = count.saturating_mul(wanted.len() as u64);
        let described = wanted.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", ");
        let namespace = self.namespace(name);
        self.frond().notice(&format!("index build of {namespace}: {described}: {count} documents"));
        let running = self.frond().builds().begin(namespace.clone(), names, total);
        let mut indexes = Vec::new();
        for spec in wanted {
            let progress = Some(&*running.progress);
            let tree = self.build_index(name, documents, &spec, interrupt, progress)?;
            indexes.push((spec, tree));
        }
        self.frond().notice(&format!("index build of {namespace}: {described}: built"));
        Ok(Some(Prepared { uuid: found.uuid, documents, indexes }))
    }

    /// Gives indexes that were built what has changed up to `documents`.
    fn catch_up(&self, name: &str, prepared: &mut Prepared, documents: Tree) -> Result<(), Error> {
        let store = self.frond().engine().store();
        let namespace = self.namespace(name);
        let mut caught_up = Vec::new();
        for (spec, tree) in &prepared.indexes {
            let changes = prepared.documents.diff(store, &documents);
            let (tree, duplicates) = merge_index::apply(store, spec, tree, changes, &namespace)?;
            if let Some(duplicate) = duplicates.into_iter().next() {
                return Err(duplicate.error);
            }
            caught_up.push((spec.clone(), tree));
        }
        prepared.documents = documents;
        prepared.indexes = caught_up;
        Ok(())
    }

    pub(super) fn build_index(
        &self,
        name: &str,
        documents: Tree,
        spec: &IndexSpec,
        interrupt: &Interrupt,
        progress: Option<&Progress>,
    ) -> Result<Tree, Error> {
        let store = self.frond().engine().store();
        let index = Index::new(spec.clone(), TreePlace::Committed(documents));
        let mut documents_read =
            documents.range(store, Bounds::all(), Direction::Ascending).map(|entry| {
                let entry = entry?;
                Ok((entry.key, read_document(&**store, &entry.value)?))
            });
        let find = |id_key: &[u8]| {
            let value = documents.get(&**store, id_key)?;
            Ok(value.map(|value| read_document(&**store, &value)).transpose()?)
        };
        let namespace = &self.namespace(name);
        let (frond, format) = (self.frond(), documents.format);
        let builder = Builder { frond, format, namespace, interrupt, progress };
        builder.index_tree(&index, &mut documents_read, &find)
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

    /// The indexes of a collection, `_id`'s first. `NamespaceNotFound` (26) if there is none,
    /// `CommandNotSupportedOnView` (166) if it is a view.
    pub fn list_indexes(&self, collection: &str) -> Result<Vec<IndexSpec>, Error> {
        let found = self.indexed(collection)?;
        let others = found.indexes.into_iter().map(|index| index.spec);
        Ok(std::iter::once(IndexSpec::of_id()).chain(others).collect())
    }

    /// The indexes of a collection as `listIndexes` tells them. Fails as [`Database::list_indexes`].
    pub fn describe_indexes(&self, collection: &str) -> Result<Vec<DocumentBuf>, Error> {
        let found = self.indexed(collection)?;
        let id = clustered::id_index(found.options.view());
        let others = found.indexes.iter().map(|index| index.spec.to_document());
        Ok(std::iter::once(id).chain(others).collect())
    }

    /// The indexes of a collection, and how often each was used since it was used first, or since the data
    /// directory was opened. Fails as [`Database::list_indexes`].
    pub fn index_uses(&self, collection: &str) -> Result<Vec<(IndexSpec, u64)>, Error> {
        let found = self.indexed(collection)?;
        let others = found.indexes.into_iter().map(|index| index.spec);
        let specs = std::iter::once(IndexSpec::of_id()).chain(others);
        let usage = self.frond().usage();
        Ok(specs
            .map(|spec| {
                let uses = usage.of(found.uuid, &spec.name);
                (spec, uses)
            })
            .collect())
    }

    fn indexed(&self, collection: &str) -> Result<Collection, Error> {
        let reader = self.reader();
        let found = CatalogView::open(&reader, self)?.collection(collection)?;
        let found = found.ok_or_else(|| self.no_collection(collection))?;
        view::refuse(found.options.view(), &self.namespace(collection))?;
        Ok(found)
    }

    pub(crate) fn no_collection(&self, collection: &str) -> Error {
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
            check_only_text(&known, spec)?;
            wanted.push(spec.clone());
        }
    }
    if there.len() + wanted.len() + 1 > INDEXES_MAX {
        let message = format!("a collection has at most {INDEXES_MAX} indexes");
        return Err(Error::invalid(Code::CannotCreateIndex, message));
    }
    Ok(wanted)
}

/// Refuses a second text index: a `$text` doesn't say which it asks.
fn check_only_text(known: &[&IndexSpec], spec: &IndexSpec) -> Result<(), Error> {
    let other = known.iter().find(|other| other.text.is_some());
    match other.filter(|_| spec.text.is_some()) {
        None => Ok(()),
        Some(other) => {
            let message = format!(
                "only one text index per collection allowed, found existing text index \"{}\"",
                other.name
            );
            Err(Error::invalid(Code::CannotCreateIndex, message))
        }
    }
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
