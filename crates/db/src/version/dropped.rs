//! Databases that were dropped, and how they come back.
//!
//! `dropDatabase` leaves one record: the repository's, each branch with its HEAD and its working
//! state's catalog, the tags. It refers to the commits and catalogs, so that they stay. A database
//! that comes back has its salt, branches, working states, tags and history; reflogs, merges that
//! waited and remotes are gone. It may come back under another name, if its own was given away.

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::{Bounds, Direction, Entry, Tree, Value as TreeValue};

use crate::contention::{Outcome, Role, Scope};
use crate::database::{self, Database};
use crate::error::Error;
use crate::reader::{Reader, TreePlace};
use crate::system::{self, BranchRef, Repository};
use crate::version::adopt::Adoption;
use crate::version::reflog::{RefChange, RefWhy};
use crate::version::state::BranchState;
use crate::version::walk::Walk;
use crate::version::{CommitId, TagInfo, format, history, tag};

/// A database that was dropped.
#[derive(Clone, Debug)]
pub struct DroppedDatabase {
    /// Its name.
    pub name: String,
    /// Names the drop; rises in time.
    pub change: u64,
    /// When: milliseconds since 1970.
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
    database: &Database,
    repository: &Repository,
) -> Result<(), Error> {
    let name = database.repository_name();
    let engine = database.frond().engine();
    let mut references = Vec::new();
    let mut record = DocumentBuilder::new();
    let repository = DocumentBuf::from_validated(repository.encode());
    record.append("repository", Value::from(&repository));
    record.append("time", Value::DateTime(database.frond().now_millis()));
    record.begin_array("branches");
    for branch in database.list_branches()? {
        let state = {
            let reader = Reader::within(engine, transaction);
            BranchState::read(&reader, name, &branch.name)?
        };
        let working = state.working_catalog(engine, transaction.snapshot())?;
        references.push(working.root);
        references.extend(state.head_chunk());
        let has_head = state.head_chunk().is_some();
        record
            .push_begin_document()
            .append("name", Value::String(&branch.name))
            .append("head", Value::Boolean(has_head))
            .end();
    }
    record.end().begin_array("tags");
    let reader = Reader::within(engine, transaction);
    let tags = tag::of_database(&reader, name)?;
    for tag in &tags {
        let chunk = database::commit_chunk(&reader, name, &tag.commit)?.ok_or_else(damaged)?;
        references.push(chunk);
        let text = |text: &'_ Option<String>| text.clone();
        record.push_begin_document().append("name", Value::String(&tag.name));
        for (field, text) in [("message", text(&tag.message)), ("author", text(&tag.author))] {
            if let Some(text) = text {
                record.append(field, Value::String(&text));
            }
        }
        record.append("time", Value::DateTime(tag.time_millis)).end();
    }
    record.end();
    drop(reader);
    let key = system::dropped_key(name, transaction.snapshot().sequence().0);
    let record = record.build();
    let value = system::referring_value(transaction, &references, record.as_bytes());
    Ok(transaction.put(TreeId::SYSTEM, key, value)?)
}

/// What a record of a dropped database says.
struct Remembered {
    key: Bytes,
    repository: Repository,
    /// Name, HEAD, working state.
    branches: Vec<(String, Option<ChunkHash>, ChunkHash)>,
    tags: Vec<(TagInfo, ChunkHash)>,
    time_millis: i64,
}

impl Remembered {
    fn decode(reader: &Reader<'_>, entry: &Entry) -> Result<Remembered, Error> {
        let store = &**reader.store();
        let mut references = system::references_of(store, &entry.value)?.into_iter();
        let record = system::record(reader.read(&entry.value)?)?;
        let Some(Value::Document(repository)) = record.get("repository") else {
            return Err(damaged());
        };
        let Some(Value::DateTime(time_millis)) = record.get("time") else {
            return Err(damaged());
        };
        let repository = Repository::decode(repository.to_buf().into_bytes())?;
        let mut branches = Vec::new();
        for branch in documents(&record, "branches")? {
            let name = branch.get("name").and_then(system::as_string).ok_or_else(damaged)?;
            let working = references.next().ok_or_else(damaged)?;
            let has_head = branch.get("head").is_some_and(|head| head.is_truthy());
            let head = has_head.then(|| references.next().ok_or_else(damaged)).transpose()?;
            branches.push((name, head, working));
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
        Ok(Remembered { key: entry.key.clone(), repository, branches, tags, time_millis })
    }
}

fn documents<'a>(
    record: &'a DocumentBuf,
    name: &str,
) -> Result<impl Iterator<Item = Document<'a>> + use<'a>, Error> {
    let array = record.get(name).and_then(|value| value.as_array()).ok_or_else(damaged)?;
    Ok(array.iter().filter_map(|value| value.as_document()))
}

impl Database {
    /// Whether the database exists: something was written to it, and it wasn't dropped since.
    pub fn exists(&self) -> Result<bool, Error> {
        Ok(database::repository(&self.reader(), self.repository_name())?.is_some())
    }

    /// Refuses to tell of versions where there are none: nothing told would hide a misspelt name.
    ///
    /// # Errors
    /// `NamespaceNotFound` if the database doesn't exist.
    pub fn check_exists(&self) -> Result<(), Error> {
        if self.exists()? { Ok(()) } else { Err(database::missing(self.repository_name())) }
    }

    /// The databases of this data directory that were dropped and can come back, newest first.
    pub fn dropped_databases(&self) -> Result<Vec<DroppedDatabase>, Error> {
        let reader = self.reader();
        let prefix = system::all_dropped_prefix();
        let place = TreePlace::Live(TreeId::SYSTEM);
        let mut dropped = Vec::new();
        for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Descending)? {
            let entry = entry?;
            let (name, change) = system::name_and_sequence(&prefix, &entry.key)?;
            let found = Remembered::decode(&reader, &entry)?;
            let branches = found.branches.into_iter();
            let branches = branches.map(|(name, head, _)| (name, head.map(format::id_of)));
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
        self.transact_alone(scope, Role::Remover, Durability::Synced, |transaction| {
            let (found, change) = {
                let reader = Reader::within(self.frond().engine(), transaction);
                if database::repository(&reader, name)?.is_some() {
                    let message =
                        format!("database {name} exists: bring {dropped} back as another");
                    return Err(Error::invalid(Code::NamespaceExists, message));
                }
                let bounds = Bounds::prefix(&system::dropped_prefix(dropped));
                let place = TreePlace::Live(TreeId::SYSTEM);
                let last = reader.range(place, bounds, Direction::Descending)?.next();
                let Some(last) = last.transpose()? else {
                    let message = format!("no database {dropped} was dropped, as far as is known");
                    return Err(Error::invalid(Code::NoSuchKey, message));
                };
                let change = system::sequence_at_end(&last.key)?;
                (Remembered::decode(&reader, &last)?, change)
            };
            self.bring_database_back(transaction, &found)?;
            let branches = found.branches.iter();
            let branches =
                branches.map(|(name, head, _)| (name.clone(), head.map(format::id_of))).collect();
            let (name, time_millis) = (dropped.to_owned(), found.time_millis);
            Ok(Outcome::Commit(DroppedDatabase { name, change, time_millis, branches }))
        })
    }

    fn bring_database_back(
        &self,
        transaction: &mut Transaction,
        found: &Remembered,
    ) -> Result<(), Error> {
        let name = self.repository_name();
        let engine = self.frond().engine();
        let store = engine.store();
        let record = TreeValue::inline(found.repository.encode());
        transaction.put(TreeId::SYSTEM, system::repository_key(name), record)?;
        let mut tips: Vec<ChunkHash> = found.tags.iter().map(|(_, chunk)| *chunk).collect();
        tips.extend(found.branches.iter().filter_map(|(_, head, _)| *head));
        let mut walk = Walk::begin(store, &tips, &[], false)?;
        while let Some((hash, _)) = walk.next()? {
            let key = system::commit_key(name, &format::id_of(hash).0);
            transaction.put(TreeId::SYSTEM, key, system::commit_value(&store.get(hash)?))?;
        }
        for (tag, _) in &found.tags {
            tag.put(transaction, name)?;
        }
        for (branch, head, working) in &found.branches {
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
            state.adopt(engine, transaction, &Adoption { head, before: head, after })?;
            let why =
                RefWhy::plain("branch: came back with its database", self.frond().now_millis());
            RefChange { from: None, to: commit, why }.log(transaction, name, branch)?;
        }
        Ok(transaction.delete(TreeId::SYSTEM, found.key.clone())?)
    }

    /// Forgets databases that were dropped before `before_millis`: they can't come back any more,
    /// and their chunks can be collected. Returns how many.
    pub fn expire_dropped(&self, before_millis: i64) -> Result<u64, Error> {
        let scope = Scope::branch(self.repository_name(), "");
        self.transact_alone(scope, Role::Writer, Durability::Synced, |transaction| {
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
