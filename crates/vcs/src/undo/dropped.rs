//! Databases that were dropped, and how they come back.
//!
//! `dropDatabase` leaves one record: the repository's, each branch with its HEAD, its working
//! state's catalog and its collections that aren't versioned, the tags, the policies. It refers to
//! the commits and catalogs, so that they stay. A database that comes back has its salt, branches,
//! working states, tags, history, commit policy and branches' policies (but for times to live that
//! are over), and the merges that waited wait again; reflogs and remotes are gone. It may come back
//! under another name, if its own was given away.
//!
//! The record refers to *each* commit that the database had, as the database did, in lists of
//! bounded size behind all else: a backup doesn't follow commits to their parents.

use std::cell::Cell;
use std::iter::Peekable;

use bytes::Bytes;
use frond_db::inside::refs::{self, format};
use frond_db::inside::{
    BranchRef, CatalogEntry, CommitId, Error, EventKind, LatchMode, Outcome, Reader,
    RepositoryRecord, Scope, TreeRef, system,
};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash, ChunkKind};
use frond_tree::{Bounds, Direction, Entry, Tree, Value as TreeValue};

use crate::adopt::Adoption;
use crate::conflict::MergeState;
use crate::history::walk::Walk;
use crate::merge::waiting;
use crate::policy::commit_policy;
use crate::refs::reflog::{RefChange, RefWhy, RememberedMerge};
use crate::refs::tag;
use crate::repository::Repository;
use crate::state::BranchState;
use crate::{BranchPolicy, TagInfo, history, policy};

/// So many commits a list refers to at most: it has 128 KB then.
const COMMITS_A_LIST: usize = 4096;

/// A database that was dropped.
#[derive(Clone, Debug)]
pub struct DroppedDatabase {
    /// Its name.
    pub name: String,
    /// Names the drop; rises in time.
    pub change: u64,
    /// The time: milliseconds since 1970.
    pub time_millis: i64,
    /// Its branches and their commits.
    pub branches: Vec<(String, Option<CommitId>)>,
}

fn damaged() -> Error {
    Error::damaged("the record of a dropped database has not the fields that it should")
}

/// Remembers the database that `transaction` is about to drop.
pub(crate) fn remember(
    transaction: &mut Transaction,
    database: &Repository,
    repository: &RepositoryRecord,
) -> Result<(), Error> {
    let name = database.repository_name();
    let engine = database.frond().engine();
    let mut references = Vec::new();
    let mut record = DocumentBuilder::new();
    let repository = DocumentBuf::from_validated(repository.encode());
    record.append("repository", Value::from(&repository));
    record.append("time", Value::DateTime(database.frond().time_millis()));
    let reader = Reader::within(engine, transaction);
    let commit_policy = commit_policy::stored(&reader, name)?;
    if let Some(policy) = &commit_policy {
        record.append("commitPolicy", Value::from(policy));
    }
    drop(reader);
    record.begin_array("branches");
    for branch in database.list_branches()? {
        append_branch(&mut record, &mut references, transaction, database, &branch.name)?;
    }
    record.end().begin_array("tags");
    let reader = Reader::within(engine, transaction);
    for tag in tag::of_database(&reader, name)? {
        references.push(refs::commit_chunk(&reader, name, &tag.commit)?.ok_or_else(damaged)?);
        append_tag(&mut record, &tag);
    }
    record.end();
    let commits = history::recorded_commits(&reader, name)?;
    drop(reader);
    for some in commits.chunks(COMMITS_A_LIST) {
        let list = Chunk::new(ChunkKind::Blob, some, &[]);
        transaction.put_chunks(std::slice::from_ref(&list));
        references.push(list.hash());
    }
    let key = system::dropped_key(name, transaction.snapshot().sequence().0);
    let record = record.build();
    let value = system::referring_value(transaction, &references, record.as_bytes());
    Ok(transaction.put(TreeId::SYSTEM, key, value)?)
}

/// A branch, and the chunks that its record refers to: those of its working state, of HEAD, of the
/// merge that waits, and of each collection that isn't versioned.
fn append_branch(
    record: &mut DocumentBuilder,
    references: &mut Vec<ChunkHash>,
    transaction: &Transaction,
    database: &Repository,
    branch: &str,
) -> Result<(), Error> {
    let (engine, name) = (database.frond().engine(), database.repository_name());
    let reader = Reader::within(engine, transaction);
    let policy = policy::read(&reader, name, branch)?;
    let state = BranchState::read(&reader, name, branch)?;
    let merge = waiting::remember(engine, transaction, &state)?;
    references.push(state.working_catalog(engine, transaction.snapshot())?.root);
    references.extend(state.head_chunk());
    record
        .push_begin_document()
        .append("name", Value::String(branch))
        .append("head", Value::Boolean(state.head_chunk().is_some()));
    if policy != BranchPolicy::default() {
        let policy = DocumentBuf::from_validated(policy.encode());
        record.append("policy", Value::from(&policy));
    }
    if let Some(merge) = &merge {
        record.append("merge", Value::from(&DocumentBuf::from_validated(merge.record.clone())));
        references.extend(&merge.references);
        for id in waiting::state_of(merge)?.commits() {
            references.extend(refs::commit_chunk(&reader, name, &id)?);
        }
    }
    record.begin_array("unversioned");
    for (collection, _) in state.live().filter(|(_, live)| !live.is_versioned()) {
        let found = state.entry_now(engine, transaction.snapshot(), collection)?;
        let (entry, order) = found.ok_or_else(damaged)?;
        references.push(entry);
        references.extend(order);
        record
            .push_begin_document()
            .append("name", Value::String(collection))
            .append("ordered", Value::Boolean(order.is_some()))
            .end();
    }
    record.end().end();
    Ok(())
}

fn append_tag(record: &mut DocumentBuilder, tag: &TagInfo) {
    record.push_begin_document().append("name", Value::String(&tag.name));
    for (field, text) in [("message", &tag.message), ("author", &tag.author)] {
        if let Some(text) = text {
            record.append(field, Value::String(text));
        }
    }
    record.append("time", Value::DateTime(tag.time_millis)).end();
}

/// A branch of it.
struct Branch {
    name: String,
    head: Option<ChunkHash>,
    working: ChunkHash,
    /// Collections that aren't versioned: name, entry, order.
    unversioned: Vec<(String, ChunkHash, Option<ChunkHash>)>,
    policy: BranchPolicy,
    /// The merge that waits, and the commits that it needs.
    merge: Option<(RememberedMerge, Vec<ChunkHash>)>,
}

impl Branch {
    /// Reads what `append_branch` wrote; `references` begin with the branch's.
    fn decode(
        branch: Document<'_>,
        references: &mut Peekable<impl Iterator<Item = ChunkHash>>,
    ) -> Result<Branch, Error> {
        let name = branch.get("name").and_then(system::as_string).ok_or_else(damaged)?;
        let working = references.next().ok_or_else(damaged)?;
        let has_head = branch.get("head").is_some_and(|head| head.is_truthy());
        let head = has_head.then(|| references.next().ok_or_else(damaged)).transpose()?;
        let policy = branch.get("policy").and_then(|policy| policy.as_document());
        let policy = policy.map(|policy| BranchPolicy::decode(policy.to_buf().into_bytes()));
        let policy = policy.transpose()?.unwrap_or_default();
        let mut merge = None;
        if let Some(Value::Document(record)) = branch.get("merge") {
            let record = record.to_buf().into_bytes();
            let state = MergeState::decode(record.clone())?;
            let count = waiting::references_count(&state);
            let found: Vec<ChunkHash> = references.by_ref().take(count).collect();
            let is_next = |id: CommitId| references.next_if(|chunk| format::id_of(*chunk) == id);
            let commits = state.commits().filter_map(is_next).collect();
            merge = Some((RememberedMerge { record, references: found }, commits));
        }
        let mut unversioned = Vec::new();
        let collections = branch.get("unversioned").and_then(|value| value.as_array());
        for collection in collections.iter().flat_map(|array| array.iter()) {
            let collection = collection.as_document().ok_or_else(damaged)?;
            let name = collection.get("name").and_then(system::as_string).ok_or_else(damaged)?;
            let entry = references.next().ok_or_else(damaged)?;
            let is_ordered = collection.get("ordered").is_some_and(|is| is.is_truthy());
            let order = is_ordered.then(|| references.next().ok_or_else(damaged));
            unversioned.push((name, entry, order.transpose()?));
        }
        Ok(Branch { name, head, working, unversioned, policy, merge })
    }
}

/// The content of a record of a dropped database.
struct Remembered {
    key: Bytes,
    repository: RepositoryRecord,
    /// Says when and how commits are made.
    commit_policy: Option<DocumentBuf>,
    branches: Vec<Branch>,
    tags: Vec<(TagInfo, ChunkHash)>,
    time_millis: i64,
}

impl Remembered {
    fn decode(reader: &Reader<'_>, entry: &Entry) -> Result<Remembered, Error> {
        let store = &**reader.store();
        let mut references = system::references_of(store, &entry.value)?.into_iter().peekable();
        let record = system::record(reader.read(&entry.value)?)?;
        let Some(Value::Document(repository)) = record.get("repository") else {
            return Err(damaged());
        };
        let Some(Value::DateTime(time_millis)) = record.get("time") else {
            return Err(damaged());
        };
        let repository = RepositoryRecord::decode(repository.to_buf().into_bytes())?;
        let mut branches = Vec::new();
        for branch in documents(&record, "branches")? {
            branches.push(Branch::decode(branch, &mut references)?);
        }
        let mut tags = Vec::new();
        for tag in documents(&record, "tags")? {
            let chunk = references.next().ok_or_else(damaged)?;
            let Some(Value::DateTime(time_millis)) = tag.get("time") else {
                return Err(damaged());
            };
            let tag = TagInfo {
                name: tag.get("name").and_then(system::as_string).ok_or_else(damaged)?,
                commit: format::id_of(chunk),
                message: tag.get("message").and_then(system::as_string),
                author: tag.get("author").and_then(system::as_string),
                time_millis,
            };
            tags.push((tag, chunk));
        }
        let commit_policy = record.get("commitPolicy").and_then(|policy| policy.as_document());
        let commit_policy = commit_policy.map(|policy| policy.to_buf());
        let key = entry.key.clone();
        Ok(Remembered { key, repository, commit_policy, branches, tags, time_millis })
    }
}

/// The dropped databases that can come back: when each was dropped, and what its branches held.
pub(crate) fn kept(reader: &Reader<'_>) -> Result<Vec<(i64, Vec<Tree>)>, Error> {
    let place = TreeRef::Live(TreeId::SYSTEM);
    let mut kept = Vec::new();
    let bounds = Bounds::prefix(&system::all_dropped_prefix());
    for entry in reader.range(place, bounds, Direction::Ascending)? {
        let found = Remembered::decode(reader, &entry?)?;
        let format = found.repository.format();
        let working = found.branches.iter().map(|branch| Tree { root: branch.working, format });
        kept.push((found.time_millis, working.collect()));
    }
    Ok(kept)
}

fn documents<'a>(
    record: &'a DocumentBuf,
    name: &str,
) -> Result<impl Iterator<Item = Document<'a>> + use<'a>, Error> {
    let array = record.get(name).and_then(|value| value.as_array()).ok_or_else(damaged)?;
    Ok(array.iter().filter_map(|value| value.as_document()))
}

impl Repository {
    /// Whether the database exists: something was written to it, and it wasn't dropped since.
    ///
    /// # Errors
    /// `Damaged` if its record isn't one; `Unavailable` if the disk doesn't answer.
    pub fn exists(&self) -> Result<bool, Error> {
        Ok(refs::repository(&self.reader(), self.repository_name())?.is_some())
    }

    /// Refuses to show versions where there are none: an empty answer would hide a misspelt name.
    ///
    /// # Errors
    /// `NamespaceNotFound` if the database doesn't exist.
    pub fn check_exists(&self) -> Result<(), Error> {
        if self.exists()? { Ok(()) } else { Err(refs::missing(self.repository_name())) }
    }

    /// The databases of this data directory that were dropped and can come back, newest first.
    ///
    /// # Errors
    /// `Damaged` if a record isn't one; `Unavailable` if the disk doesn't answer.
    pub fn dropped_databases(&self) -> Result<Vec<DroppedDatabase>, Error> {
        let reader = self.reader();
        let prefix = system::all_dropped_prefix();
        let place = TreeRef::Live(TreeId::SYSTEM);
        let mut dropped = Vec::new();
        for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Descending)? {
            let entry = entry?;
            let (name, change) = system::name_and_sequence(&prefix, &entry.key)?;
            let found = Remembered::decode(&reader, &entry)?;
            let branches = found.branches.into_iter();
            let branches = branches.map(|branch| (branch.name, branch.head.map(format::id_of)));
            let time_millis = found.time_millis;
            let branches = branches.collect();
            dropped.push(DroppedDatabase { name, change, time_millis, branches });
        }
        dropped.sort_by_key(|each| std::cmp::Reverse(each.change));
        Ok(dropped)
    }

    /// Brings back, as this database, the one that was dropped last under the name `dropped`.
    ///
    /// # Errors
    /// `NoSuchKey` if none was; `NamespaceExists` if this database exists.
    pub fn undrop(&self, dropped: &str) -> Result<DroppedDatabase, Error> {
        let name = self.repository_name();
        let branch = self.writable_branch()?;
        let scope = Scope::branch(name, branch);
        let has_policy = Cell::new(false);
        let back =
            self.transact_alone(scope, LatchMode::Remover, Durability::Synced, |transaction| {
                let (found, change) = {
                    let reader = Reader::within(self.frond().engine(), transaction);
                    if refs::repository(&reader, name)?.is_some() {
                        let message =
                            format!("database {name} exists: bring {dropped} back as another");
                        return Err(Error::invalid(Code::NamespaceExists, message));
                    }
                    let bounds = Bounds::prefix(&system::dropped_prefix(dropped));
                    let place = TreeRef::Live(TreeId::SYSTEM);
                    let last = reader.range(place, bounds, Direction::Descending)?.next();
                    let Some(last) = last.transpose()? else {
                        let message =
                            format!("no database {dropped} was dropped, as far as is known");
                        return Err(Error::invalid(Code::NoSuchKey, message));
                    };
                    let change = system::sequence_at_end(&last.key)?;
                    (Remembered::decode(&reader, &last)?, change)
                };
                self.bring_database_back(transaction, &found)?;
                let branches = found.branches.iter();
                let branches = branches
                    .map(|branch| (branch.name.clone(), branch.head.map(format::id_of)))
                    .collect();
                has_policy.set(found.commit_policy.is_some());
                let (name, time_millis) = (dropped.to_owned(), found.time_millis);
                Ok(Outcome::Commit(DroppedDatabase { name, change, time_millis, branches }))
            })?;
        self.frond().written().watch(name, has_policy.get());
        Ok(back)
    }

    fn bring_database_back(
        &self,
        transaction: &mut Transaction,
        found: &Remembered,
    ) -> Result<(), Error> {
        let name = self.repository_name();
        let engine = self.frond().engine();
        let store = engine.store();
        refs::claim_name(engine, transaction, name)?;
        let record = TreeValue::inline(found.repository.encode());
        transaction.put(TreeId::SYSTEM, system::repository_key(name), record)?;
        let mut tips: Vec<ChunkHash> = found.tags.iter().map(|(_, chunk)| *chunk).collect();
        tips.extend(found.branches.iter().filter_map(|branch| branch.head));
        let merges = found.branches.iter().filter_map(|branch| branch.merge.as_ref());
        tips.extend(merges.flat_map(|(_, commits)| commits));
        let mut walk = Walk::begin(store, &tips, &[], false)?;
        while let Some((hash, _)) = walk.next()? {
            let key = system::commit_key(name, &format::id_of(hash).0);
            transaction.put(TreeId::SYSTEM, key, system::commit_value(&store.get(hash)?))?;
        }
        for (tag, _) in &found.tags {
            tag.put(transaction, name)?;
        }
        if let Some(policy) = &found.commit_policy {
            let record = TreeValue::inline(policy.clone().into_bytes());
            transaction.put(TreeId::SYSTEM, system::commit_policy_key(name), record)?;
        }
        for Branch { name: branch, head, working, unversioned, policy, merge } in &found.branches {
            let commit = head.map(format::id_of);
            let record = TreeValue::inline(BranchRef { commit }.encode());
            transaction.put(TreeId::SYSTEM, system::branch_key(name, branch), record)?;
            let state = {
                let reader = Reader::within(engine, transaction);
                BranchState::read(&reader, name, branch)?
            };
            let head = match head {
                Some(head) => history::load(&**store, *head)?.catalog,
                None => Tree::empty(&**store, found.repository.format())?,
            };
            let after = Tree { root: *working, format: found.repository.format() };
            state.record_unread(engine, transaction, EventKind::Rewritten);
            state.adopt(engine, transaction, &Adoption { head, before: head, after })?;
            for (collection, entry, order) in unversioned {
                let entry = CatalogEntry::decode(&store.get(*entry)?)?;
                let order = order.map(|root| Tree { root, format: after.format });
                state.go_live(engine, transaction, collection, &entry, order)?;
            }
            if let Some((merge, _)) = merge {
                waiting::restore(engine, transaction, &state, merge)?;
            }
            self.restore_policy(transaction, branch, *policy)?;
            let why =
                RefWhy::plain("branch: came back with its database", self.frond().time_millis());
            RefChange { from: None, to: commit, why }.log(transaction, name, branch)?;
        }
        Ok(transaction.delete(TreeId::SYSTEM, found.key.clone())?)
    }

    /// Forgets databases that were dropped before `before_millis`: they can't come back any more,
    /// and their chunks can be collected. Returns how many.
    ///
    /// # Errors
    /// As [`Repository::dropped_databases`]; as a commit of a transaction: then none is forgotten.
    pub fn expire_dropped(&self, before_millis: i64) -> Result<u64, Error> {
        let scope = Scope::branch(self.repository_name(), "");
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            transaction.give_back();
            let mut count = 0;
            for each in self.dropped_databases()? {
                if each.time_millis < before_millis {
                    let key = system::dropped_key(&each.name, each.change);
                    transaction.delete(TreeId::SYSTEM, key)?;
                    count += 1;
                }
            }
            Ok(Outcome::commit_if(count > 0, count))
        })
    }
}
