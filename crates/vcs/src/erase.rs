//! Erasing: a document, or a field, goes from all of a database's history.
//!
//! 1. The database's latch is closed: no transaction writes, commits or names a commit meanwhile.
//! 2. Every commit that a branch, a tag or a remote's branch reaches is looked at, parents before
//!    children. One that held what is erased, or whose parent did, is made again: the same words
//!    and times, a catalog without it ([`Rewrite`]), the new parents. Others stay what they are.
//! 3. One transaction moves the branches and tags to the new commits, makes the working states
//!    (those of collections that aren't versioned too) what they are without the erased, forgets
//!    what else could bring it back (the reflog, dropped databases of the name, what is remembered
//!    of clients' last writes, where remotes' branches were if these commits hold it), and records
//!    which commit took the place of which: an old id names the new commit from then on. What the
//!    profiler recorded goes as a whole ([`profile`]): commands carry what they search for and
//!    write. Where no version held it, what can be undone is searched ([`super::erase_past`]), and
//!    forgotten if it did.
//! 4. It counts the erase ([`EraseCount`]). What was read before and isn't written yet (by `$out`
//!    and `$merge`, by a commit whose hook judges it) is never written; nor are commits taken from
//!    elsewhere that were erased here, or follow such ([`erased::refuse`]).
//! 5. What held the erased is garbage now. [`Frond::reclaim`] with `purge` removes it from the
//!    disk: every pack that holds anything dead is written again, and the log begins anew. Where
//!    packs lie in a bucket, it goes from there at once, too.
//!
//! *What stays*: clones, backups and remotes have their own copies: the same has to be erased
//! there, and a push to them needs force. Cursors that are open read what they read until they
//! close; chunks that they hold survive a purge meanwhile, and it has to be run again:
//! [`Repository::erased_left`] shows it. A conflict that waits holds documents, so no merge may
//! wait. Documents that clients send afterwards are new, whatever they hold.
//!
//! [`erased::refuse`]: frond_db::inside::refs::erased::refuse

mod profile;
pub(crate) mod rewrite;
pub(crate) mod undo_history;

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
pub use frond_db::inside::refs::erased::Replaced;
use frond_db::inside::refs::erased::{EraseCount, replaced};
use frond_db::inside::refs::{self, format};
use frond_db::inside::{
    BranchRef, Commit, CommitId, Error, LatchMode, Outcome, Reader, Scope, TreeRef, parse_update,
    parse_variables, system,
};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf, key};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash, Lifetime, SessionMoment};
use frond_tree::{Bounds, Direction, Tree, Value as TreeValue};

use crate::adopt::Adoption;
use crate::erase::rewrite::Rewrite;
use crate::history::walk::Walk;
use crate::refs::reflog::{RefChange, RefWhy};
use crate::refs::tag;
use crate::repository::Repository;
use crate::state::{self, BranchState};
use crate::{TagInfo, history};

/// The data to erase.
#[derive(Clone, Debug, Default)]
pub struct EraseRequest {
    /// The collection, by the name that it has in the versions.
    pub collection: String,
    /// `_id`s of documents; none: all documents.
    pub documents: Vec<ValueBuf>,
    /// Paths of fields, as `$unset` takes them; none: the documents go as a whole.
    pub fields: Vec<String>,
    /// Whether it only reports what would happen.
    pub dry_run: bool,
}

/// The result of an erase.
#[derive(Clone, Debug, Default)]
pub struct Erased {
    /// Documents that went or lost fields, counted in each version in which they changed.
    pub documents: u64,
    /// Commits that were made again, and by which: old, new.
    pub commits: Vec<(CommitId, CommitId)>,
    /// Branches that moved or whose working state changed.
    pub branches: Vec<String>,
    /// Tags that moved.
    pub tags: Vec<String>,
    /// Remotes' branches that were forgotten: they have the erased still.
    pub remotes: Vec<String>,
    /// Chunks every one of which held the erased or led to it: none may be left after a purge.
    held: Vec<ChunkHash>,
    /// When it was done.
    moment: Option<SessionMoment>,
}

impl Erased {
    /// Returns how many operations are under way that began before: what they read and have put
    /// aside (for an index, a collection, a pack to send) a purge leaves until they have ended.
    pub fn under_way(&self) -> usize {
        self.moment.as_ref().map_or(0, SessionMoment::older_count)
    }
}

/// Commits by what they became.
type Map = HashMap<ChunkHash, ChunkHash>;

impl Repository {
    /// Erases documents or fields from all history of this database; see the module. The bytes go
    /// with the next [`crate::reclaim()`] that purges.
    ///
    /// # Errors
    /// `BadValue` if nothing is named, or `_id` is among the fields; `NoSuchKey` if no version, and
    /// nothing that can be undone, has such a document or field; `IllegalOperation` if a merge
    /// waits; `DuplicateKey` if a unique index of some version won't have the documents without
    /// their fields.
    pub fn erase(&self, request: &EraseRequest) -> Result<Erased, Error> {
        check(request)?;
        let name = self.repository_name();
        let scope = Scope::branch(name, "");
        let mut erased =
            self.transact_alone(scope, LatchMode::Remover, Durability::Synced, |transaction| {
                let reader = Reader::now(self.frond().engine());
                let Some(repository) = refs::repository(&reader, name)? else {
                    return Err(history::no_branch(name, system::DEFAULT_BRANCH));
                };
                let mut rewrite = self.rewrite(request, repository.format())?;
                let mut erased = Erased::default();
                let now = self.frond().time_millis();
                let map =
                    self.rewrite_commits(transaction, &reader, &mut rewrite, &mut erased, now)?;
                self.move_branches(transaction, &mut rewrite, &map, &mut erased)?;
                self.move_tags(transaction, &reader, &map, &mut erased)?;
                for (old, _) in &erased.commits {
                    transaction.delete(TreeId::SYSTEM, system::commit_key(name, &old.0))?;
                }
                erased.documents = rewrite.documents;
                if erased.commits.is_empty() && erased.branches.is_empty() {
                    erased.held = self.past_holding(&reader, &mut rewrite)?;
                    erased.documents = rewrite.documents;
                    if erased.held.is_empty() {
                        return Err(not_found(request, &rewrite.namespace));
                    }
                }
                if request.dry_run {
                    return Ok(Outcome::Discard(erased));
                }
                EraseCount::note(self.frond().engine(), transaction)?;
                self.empty_profiles(transaction)?;
                self.forget_the_past(transaction, &reader, &erased.branches, now)?;
                Ok(Outcome::Commit(erased))
            })?;
        if !request.dry_run {
            // Moments that can be read again show the erased, and so does the log that is kept for
            // change streams; answers of writes that could be sent again hold documents.
            self.frond().forget_moments();
            self.frond().engine().forget_changes()?;
            self.frond().forget_answers()?;
            erased.moment = Some(self.frond().engine().store().session().moment());
        }
        Ok(erased)
    }

    /// Returns how many chunks that led to what was erased are still stored: more than none after a
    /// purge means that a cursor or a transaction holds them.
    ///
    /// # Errors
    /// `Unavailable` if the disk doesn't answer.
    pub fn erased_left(&self, erased: &Erased) -> Result<u64, Error> {
        let found = self.frond().engine().store().has_many(&erased.held)?;
        Ok(found.iter().filter(|found| **found).count() as u64)
    }

    /// Returns the commits that were replaced, and those in their places, by the old ones' ids.
    ///
    /// # Errors
    /// `Damaged` if a record isn't one; `Unavailable` if the disk doesn't answer.
    pub fn erased_commits(&self) -> Result<Vec<Replaced>, Error> {
        replaced(&self.reader(), self.repository_name())
    }

    fn rewrite<'a>(
        &'a self,
        request: &'a EraseRequest,
        format: frond_tree::TreeFormat,
    ) -> Result<Rewrite<'a>, Error> {
        let mut id_keys: Vec<Bytes> =
            request.documents.iter().map(|id| key::of_id(id.as_value())).collect();
        id_keys.sort();
        id_keys.dedup();
        let mut update = None;
        if !request.fields.is_empty() {
            let mut unset = DocumentBuilder::new();
            unset.begin_document("$unset");
            for field in &request.fields {
                unset.append(field, Value::String(""));
            }
            unset.end();
            let unset: DocumentBuf = unset.build();
            let unset = Value::from(&unset).to_buf();
            update = Some(parse_update(
                self,
                &unset,
                None,
                &parse_variables(self.frond(), None, self.interrupt())?,
                None,
            )?);
        }
        Ok(Rewrite {
            store: self.frond().engine().store(),
            format,
            collection: &request.collection,
            namespace: self.namespace(&request.collection),
            id_keys,
            update,
            fields: &request.fields,
            done: HashMap::new(),
            documents: 0,
        })
    }

    /// Makes every commit again that branches or tags reach and that held the erased.
    fn rewrite_commits(
        &self,
        transaction: &mut Transaction,
        reader: &Reader<'_>,
        rewrite: &mut Rewrite<'_>,
        erased: &mut Erased,
        now_millis: i64,
    ) -> Result<Map, Error> {
        let name = self.repository_name();
        let store = reader.store();
        let mut tips = Vec::new();
        for branch in self.list_branches()? {
            tips.extend(history::branch_head(reader, name, &branch.name)?);
        }
        let tags = tag::of_database(reader, name)?.into_iter();
        for named in tags.chain(tag::tracking(reader, name, None)?) {
            tips.extend(refs::commit_chunk(reader, name, &named.commit)?);
        }
        let mut walk = Walk::begin(store, &tips, &[], false)?;
        let mut commits: Vec<(ChunkHash, Commit)> = Vec::new();
        while let Some(next) = walk.next()? {
            commits.push(next);
        }
        let mut map = Map::new();
        let mut catalogs: HashMap<ChunkHash, (Tree, Tree)> = HashMap::new();
        for (hash, commit) in commits.into_iter().rev() {
            let before = commit.parents.first().and_then(|parent| catalogs.get(parent)).copied();
            let catalog = rewrite.catalog(commit.catalog, before)?;
            catalogs.insert(hash, (commit.catalog, catalog));
            let parents: Vec<ChunkHash> =
                commit.parents.iter().map(|parent| *map.get(parent).unwrap_or(parent)).collect();
            if catalog.root == commit.catalog.root && parents == commit.parents {
                continue;
            }
            erased.held.push(hash);
            if catalog.root != commit.catalog.root {
                erased.held.push(commit.catalog.root);
            }
            if transaction.is_carried() {
                // All members have the chunks that branches and tags reach.
                let stay = commit.parents.iter().filter(|parent| !map.contains_key(*parent));
                stay.for_each(|parent| transaction.note_shared(*parent));
                transaction.note_similar(catalog.root, commit.catalog.root);
            }
            let chunk = Commit { catalog, parents, ..commit }.encode();
            store.put_many_for(Lifetime::Lasting, std::slice::from_ref(&chunk))?;
            map.insert(hash, chunk.hash());
            erased.commits.push((format::id_of(hash), format::id_of(chunk.hash())));
            self.replace_commit(transaction, hash, &chunk, now_millis)?;
        }
        store.sync()?;
        let by_old: BTreeMap<CommitId, CommitId> = erased.commits.iter().copied().collect();
        for known in replaced(reader, name)? {
            // The replacement of an earlier erase is replaced itself.
            if let Some(new) = by_old.get(&known.new) {
                put_replaced(transaction, name, &Replaced { new: *new, ..known })?;
            }
        }
        Ok(map)
    }

    fn replace_commit(
        &self,
        transaction: &mut Transaction,
        old: ChunkHash,
        chunk: &Chunk,
        time_millis: i64,
    ) -> Result<(), Error> {
        let name = self.repository_name();
        let (old, new) = (format::id_of(old), format::id_of(chunk.hash()));
        let key = system::commit_key(name, &new.0);
        transaction.put(TreeId::SYSTEM, key, system::commit_value(chunk))?;
        put_replaced(transaction, name, &Replaced { old, new, time_millis })
    }

    /// Moves each branch, and makes its working state what it is without the erased.
    fn move_branches(
        &self,
        transaction: &mut Transaction,
        rewrite: &mut Rewrite<'_>,
        map: &Map,
        erased: &mut Erased,
    ) -> Result<(), Error> {
        let name = self.repository_name();
        let engine = self.frond().engine();
        for branch in self.list_branches()? {
            let state = BranchState::validated(self.frond(), transaction, name, &branch.name)?;
            state.refuse_while_merging("erasing")?;
            let head = state.head_catalog(&**engine.store())?;
            let new_head = rewrite.catalog(head, None)?;
            let working = state.working_catalog(engine, transaction.snapshot())?;
            let after = rewrite.catalog(working, Some((head, new_head)))?;
            let mut changed = self.erase_unversioned(transaction, &state, rewrite)?;
            if (head.root, working.root) != (new_head.root, after.root) {
                let adoption = Adoption { head: new_head, before: working, after };
                state.adopt(engine, transaction, &adoption)?;
                changed = true;
            }
            if working.root != after.root {
                erased.held.push(working.root);
            }
            let moved = state.head_chunk().and_then(|head| map.get(&head)).copied();
            if let Some(to) = moved {
                let record =
                    TreeValue::inline(BranchRef { commit: Some(format::id_of(to)) }.encode());
                let key = system::branch_key(name, &branch.name);
                transaction.put(TreeId::SYSTEM, key, record)?;
            }
            if changed || moved.is_some() {
                erased.branches.push(branch.name);
            }
        }
        Ok(())
    }

    /// The same for a collection that is in no commit; returns whether it held the erased.
    fn erase_unversioned(
        &self,
        transaction: &mut Transaction,
        state: &BranchState,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<bool, Error> {
        let engine = self.frond().engine();
        let found = state
            .live()
            .find(|(collection, live)| *collection == rewrite.collection && !live.is_versioned());
        let Some((collection, live)) = found else { return Ok(false) };
        let folded = engine.fold(transaction.snapshot(), &live.trees())?;
        let before = state::committed_form(live, folded.into_iter())?;
        let after = rewrite.entry(&before, None)?;
        if before == after {
            return Ok(false);
        }
        state.rebase(engine, transaction, collection, live, Some(&before), &after)?;
        Ok(true)
    }

    /// Moves tags, and forgets where remotes' branches were if these commits hold the erased.
    fn move_tags(
        &self,
        transaction: &mut Transaction,
        reader: &Reader<'_>,
        map: &Map,
        erased: &mut Erased,
    ) -> Result<(), Error> {
        let name = self.repository_name();
        for tag in tag::of_database(reader, name)? {
            let chunk = refs::commit_chunk(reader, name, &tag.commit)?;
            let Some(to) = chunk.and_then(|chunk| map.get(&chunk)) else { continue };
            erased.tags.push(tag.name.clone());
            TagInfo { commit: format::id_of(*to), ..tag }.put(transaction, name)?;
        }
        for tracking in tag::tracking(reader, name, None)? {
            let chunk = refs::commit_chunk(reader, name, &tracking.commit)?;
            if chunk.is_none_or(|chunk| map.contains_key(&chunk)) {
                erased.remotes.push(tracking.name.clone());
                let key = system::tracking_key(name, &tracking.name);
                transaction.delete(TreeId::SYSTEM, key)?;
            }
        }
        Ok(())
    }

    /// Forgets the reflog, and databases of this name that were dropped; remembers that something
    /// was erased.
    fn forget_the_past(
        &self,
        transaction: &mut Transaction,
        reader: &Reader<'_>,
        branches: &[String],
        now_millis: i64,
    ) -> Result<(), Error> {
        let name = self.repository_name();
        for prefix in [system::reflogs_prefix(name), system::dropped_prefix(name)] {
            let place = TreeRef::Live(TreeId::SYSTEM);
            for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
                transaction.delete(TreeId::SYSTEM, entry?.key)?;
            }
        }
        for branch in branches {
            let to = match transaction.get(TreeId::SYSTEM, &system::branch_key(name, branch))? {
                Some(value) => BranchRef::decode(transaction.read(&value)?)?.commit,
                None => None,
            };
            let why = RefWhy::plain("erase: what was before can't be undone", now_millis);
            RefChange { from: None, to, why }.log(transaction, name, branch)?;
        }
        Ok(())
    }
}

fn check(request: &EraseRequest) -> Result<(), Error> {
    let wrong =
        |why: &str| Err(Error::invalid(Code::BadValue, format!("nothing is erased: {why}")));
    if request.collection.is_empty() {
        return wrong("a collection must be named");
    }
    if request.documents.is_empty() && request.fields.is_empty() {
        return wrong("documents or fields must be named; a whole collection is dropped");
    }
    let is_id = |field: &String| field == "_id" || field.starts_with("_id.");
    if request.fields.iter().any(is_id) {
        return wrong("_id can't be taken from documents: erase the documents");
    }
    Ok(())
}

fn not_found(request: &EraseRequest, namespace: &str) -> Error {
    let fields = request.fields.join(", ");
    let what = match (request.documents.is_empty(), fields.is_empty()) {
        (true, _) => format!("a document with {fields}"),
        (false, true) => "a document with such an _id".to_owned(),
        (false, false) => format!("{fields} in a document with such an _id"),
    };
    let message = format!(
        "nothing is erased: no version of {namespace} has {what}, and nothing that can be undone has it (an _id's type \
         counts; what an interrupted erase left behind is removed by frond gc --purge)"
    );
    Error::invalid(Code::NoSuchKey, message)
}

/// Notes that a commit has another one's place.
///
/// # Errors
/// As the transaction's `put`.
pub(crate) fn put_replaced(
    transaction: &mut Transaction,
    database: &str,
    replaced: &Replaced,
) -> Result<(), Error> {
    let mut record = DocumentBuilder::new();
    system::append_bytes(&mut record, "commit", system::SUBTYPE_GENERIC, &replaced.new.0);
    record.append("time", Value::DateTime(replaced.time_millis));
    let key = system::erased_key(database, &replaced.old.0);
    let record = TreeValue::inline(record.build().into_bytes());
    Ok(transaction.put(TreeId::SYSTEM, key, record)?)
}
