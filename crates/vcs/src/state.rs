//! A branch at one moment: its HEAD, its working state, the merge that waits.
//!
//! *Everything is a catalog*: the working state is HEAD's catalog with the entries of the
//! collections that were touched since, their trees folded. So status, diff, merge and reset
//! compare and make catalogs, and never ask whether a version was committed.
//!
//! *Concurrency*: a writer validates what it read: the ref, the merge, and the working entries that
//! there were. A collection dropped meanwhile must not come back with the new HEAD. Entries that
//! appear meanwhile don't disturb a commit: a collection that another transaction adopts or creates
//! is a change against the new HEAD as it would be one against the old.

use std::sync::Arc;

use bytes::Bytes;
use frond_db::Interrupt;
use frond_db::inside::refs::{self, format};
use frond_db::inside::{
    BranchRef, CatalogEntry, Commit, CommitId, Error, Frond, LatchMode, LiveCollection, Outcome,
    Reader, RepositoryRecord, Scope, TreeRef, WorkingEntry, catalog_view, system,
};
use frond_engine::{Durability, Engine, Snapshot, Transaction, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime, PutFor};
use frond_tree::{Content, Edit, Tree, TreeError, Value};

use crate::conflict::MergeState;
use crate::history;
use crate::refs::reflog::{RefChange, RefWhy};
use crate::repository::Repository;

/// A branch at one moment.
pub(crate) struct BranchState {
    /// The database, without a version.
    pub database: String,
    pub branch: String,
    pub repository: RepositoryRecord,
    /// The chunk of HEAD and what it says; `None` before the first commit.
    pub head: Option<(ChunkHash, Commit)>,
    /// The commit that the ref names: HEAD, until a transaction makes another one.
    pub at: Option<CommitId>,
    /// Working entries, ascending by the collection's name.
    pub entries: Vec<(String, WorkingEntry)>,
    /// The merge that waits for its conflicts.
    pub merging: Option<MergeState>,
}

impl BranchState {
    /// Reads what `branch` is in the moment of `reader`.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such database or branch.
    pub fn read(reader: &Reader<'_>, database: &str, branch: &str) -> Result<BranchState, Error> {
        let Some(repository) = refs::repository(reader, database)? else {
            return Err(refs::missing(database));
        };
        let head = match history::branch_head(reader, database, branch)? {
            Some(chunk) => Some((chunk, history::load(&**reader.store(), chunk)?)),
            None => None,
        };
        let entries =
            catalog_view::working_entries(reader, &system::working_prefix(database, branch))?;
        let merge_key = system::merge_key(database, branch);
        let merging = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &merge_key)?;
        Ok(BranchState {
            database: database.to_owned(),
            branch: branch.to_owned(),
            repository,
            at: head.as_ref().map(|(chunk, _)| format::id_of(*chunk)),
            head,
            entries,
            merging: merging.map(MergeState::decode).transpose()?,
        })
    }

    /// As `read`, in a transaction that conflicts if anything of it changes before it commits.
    ///
    /// # Errors
    /// As [`BranchState::read`].
    pub fn validated(
        frond: &Frond,
        transaction: &mut Transaction,
        database: &str,
        branch: &str,
    ) -> Result<BranchState, Error> {
        let state =
            BranchState::read(&Reader::within(frond.engine(), transaction), database, branch)?;
        transaction.validate(TreeId::SYSTEM, system::branch_key(database, branch));
        transaction.validate(TreeId::SYSTEM, system::merge_key(database, branch));
        for (name, _) in &state.entries {
            transaction.validate(TreeId::SYSTEM, system::working_key(database, branch, name));
        }
        Ok(state)
    }

    /// HEAD's chunk.
    pub fn head_chunk(&self) -> Option<ChunkHash> {
        self.head.as_ref().map(|(chunk, _)| *chunk)
    }

    /// HEAD's id.
    pub fn head_id(&self) -> Option<CommitId> {
        self.head_chunk().map(format::id_of)
    }

    /// The catalog of HEAD: empty before the first commit.
    ///
    /// # Errors
    /// `Unavailable` if the store takes no empty tree.
    pub fn head_catalog(&self, store: &dyn ChunkStore) -> Result<Tree, Error> {
        match &self.head {
            Some((_, commit)) => Ok(commit.catalog),
            None => Ok(Tree::empty(store, self.repository.format())?),
        }
    }

    /// The catalog of the working state at `snapshot`, the moment in which this was read. Folds
    /// the live trees: the cost follows what changed since they were last folded.
    ///
    /// # Errors
    /// As the engine's `fold`; `Unavailable` if the store takes no chunks.
    pub fn working_catalog(&self, engine: &Engine, snapshot: &Snapshot) -> Result<Tree, Error> {
        let store = PutFor::new(&**engine.store(), Lifetime::Lasting);
        let head = self.head_catalog(&store)?;
        let versioned = self.live().filter(|(_, live)| live.is_versioned());
        let trees: Vec<TreeId> = versioned.flat_map(|(_, live)| live.trees()).collect();
        let mut folded = engine.fold(snapshot, &trees)?.into_iter();
        let mut chunks = Vec::new();
        let mut edits: Vec<Result<(Bytes, Edit), TreeError>> = Vec::new();
        for (name, entry) in &self.entries {
            let key = Bytes::copy_from_slice(name.as_bytes());
            let committed = head.get(&store, &key)?;
            match entry {
                WorkingEntry::Live(live) if live.is_versioned() => {
                    let roots = folded.by_ref().take(live.trees().len());
                    let chunk = committed_form(live, roots)?.encode();
                    let value = entry_value(&chunk);
                    if committed.as_ref() != Some(&value) {
                        edits.push(Ok((key, Edit::Put(value))));
                        chunks.push(chunk);
                    }
                }
                // Dropped, or left out of commits.
                _ if committed.is_some() => edits.push(Ok((key, Edit::Delete))),
                _ => {}
            }
        }
        assert!(folded.next().is_none(), "each tree that was folded belongs to a collection");
        store.put_many(&chunks)?;
        Ok(head.apply(&store, &mut edits.into_iter())?)
    }

    /// As [`BranchState::working_catalog`], for a request that may be interrupted meanwhile.
    ///
    /// # Errors
    /// As there; what `interrupt` says.
    pub fn working_catalog_while(
        &self,
        engine: &Engine,
        snapshot: Snapshot,
        interrupt: &Interrupt,
    ) -> Result<Tree, Error> {
        let snapshot = match interrupt.keep_going() {
            Some(keep_going) => snapshot.asking(keep_going),
            None => snapshot,
        };
        let catalog = self.working_catalog(engine, &snapshot);
        if catalog.is_err() {
            // A fold that was interrupted doesn't know why.
            interrupt.check()?;
        }
        catalog
    }

    /// The collections that lie in trees of the engine.
    pub fn live(&self) -> impl Iterator<Item = (&str, &LiveCollection)> {
        self.entries.iter().filter_map(|(name, entry)| match entry {
            WorkingEntry::Live(live) => Some((name.as_str(), live)),
            WorkingEntry::Dropped => None,
        })
    }

    /// The working entry of `collection`.
    pub fn entry(&self, collection: &str) -> Option<&WorkingEntry> {
        let position =
            self.entries.binary_search_by(|(name, _)| name.as_str().cmp(collection)).ok()?;
        Some(&self.entries[position].1)
    }

    /// Refuses what can't be done while a merge waits.
    ///
    /// # Errors
    /// `IllegalOperation`.
    pub fn refuse_while_merging(&self, what: &str) -> Result<(), Error> {
        if self.merging.is_none() {
            return Ok(());
        }
        let message = format!(
            "{what} is not possible while a merge into {} waits: resolve its conflicts and \
             continue it, or abort it",
            self.branch
        );
        Err(Error::invalid(Code::IllegalOperation, message))
    }

    /// Moves the branch to the commit in `chunk`, and remembers why.
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn move_ref(
        &self,
        transaction: &mut Transaction,
        chunk: ChunkHash,
        why: RefWhy<'_>,
    ) -> Result<(), Error> {
        self.move_ref_to(transaction, Some(format::id_of(chunk)), why)
    }

    /// Moves the branch to a commit, or to before the first one, and remembers why.
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn move_ref_to(
        &self,
        transaction: &mut Transaction,
        to: Option<CommitId>,
        why: RefWhy<'_>,
    ) -> Result<(), Error> {
        let record = Value::inline(BranchRef { commit: to }.encode());
        let key = system::branch_key(&self.database, &self.branch);
        transaction.put(TreeId::SYSTEM, key, record)?;
        let change = RefChange { from: self.at, to, why };
        change.log(transaction, &self.database, &self.branch)
    }
}

/// The entry that a commit has for a live collection whose trees were folded to `trees`.
pub(crate) fn committed_form(
    live: &LiveCollection,
    mut trees: impl Iterator<Item = Tree>,
) -> Result<CatalogEntry, Error> {
    let missing = || Error::internal("folding gave fewer trees than it was asked for");
    let documents = trees.next().ok_or_else(missing)?.root;
    let mut indexes = Vec::with_capacity(live.indexes.len());
    for index in &live.indexes {
        indexes.push((index.spec.clone(), trees.next().ok_or_else(missing)?.root));
    }
    Ok(CatalogEntry::new(live.options.clone(), documents, indexes))
}

/// The value under which a catalog has the entry in `chunk`.
pub(crate) fn entry_value(chunk: &Chunk) -> Value {
    let bytes = chunk.payload().len() as u64;
    Value { flags: 0, content: Content::Chunk { hash: chunk.hash(), bytes } }
}

/// A catalog with another entry of `collection`, or none. The chunks are put, not synced.
pub(crate) fn with_entry(
    store: &dyn ChunkStore,
    catalog: &Tree,
    collection: &str,
    entry: Option<&CatalogEntry>,
) -> Result<Tree, Error> {
    let edit = match entry {
        Some(entry) => {
            let chunk = entry.encode();
            store.put_many(std::slice::from_ref(&chunk))?;
            Edit::Put(entry_value(&chunk))
        }
        None => Edit::Delete,
    };
    let key = Bytes::copy_from_slice(collection.as_bytes());
    Ok(catalog.apply(store, &mut std::iter::once(Ok((key, edit))))?)
}

/// The entry of `collection` in a catalog.
pub(crate) fn catalog_entry(
    store: &Arc<dyn ChunkStore>,
    catalog: &Tree,
    collection: &str,
) -> Result<Option<CatalogEntry>, Error> {
    let value = catalog.get(&**store, collection.as_bytes())?;
    value.map(|value| catalog_view::read_entry(&**store, &value)).transpose()
}

impl Repository {
    /// Runs `body` in a transaction that replaces trees of this branch, as a merge and a reset do:
    /// if it loses, writers of the branch's collections wait until it is done.
    pub(crate) fn replace_working_state<T>(
        &self,
        branch: &str,
        mut body: impl FnMut(&mut Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        self.refuse_in_transaction("a command of versions")?;
        self.writable_branch()?;
        let name = self.repository_name();
        let prefix = system::working_prefix(name, branch);
        let scopes: Vec<Scope> = catalog_view::working_entries(&self.reader(), &prefix)?
            .iter()
            .map(|(collection, _)| Scope::collection(name, branch, collection))
            .collect();
        let (scope, mode) = (Scope::branch(name, branch), LatchMode::Replacer);
        let body = |transaction: &mut Transaction| {
            self.check_fence(transaction)?;
            body(transaction)
        };
        let answer = self.frond().transact_over(scope, &scopes, mode, Durability::Synced, body)?;
        self.note_written(1);
        Ok(answer)
    }

    /// The state of this branch at the moment of `reader`.
    ///
    /// # Errors
    /// `IllegalOperation` if this is a commit; `NamespaceNotFound` if the branch is gone.
    pub(crate) fn branch_state(&self, reader: &Reader<'_>) -> Result<BranchState, Error> {
        BranchState::read(reader, self.repository_name(), self.working_branch()?)
    }
}
