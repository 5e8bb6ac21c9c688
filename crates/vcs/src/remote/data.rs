//! A data directory as a remote.
//!
//! A branch there moves as it would by a fast-forward: with its working state, which must be its
//! HEAD's, in one transaction. So a push never changes under clients' feet what was not committed.

use std::collections::{BTreeSet, HashSet};

use frond_db::inside::refs::{self, erased, format};
use frond_db::inside::{
    BranchRef, Commit, Error, Frond, Outcome, Reader, RepositoryRecord, TreeRef, system,
};
use frond_engine::{Snapshot, Transaction, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash, Lifetime, Session};
use frond_tree::{Tree, TreeFormat, Value as TreeValue};

use crate::adopt::Adoption;
use crate::commit;
use crate::history;
use crate::history::walk::Walk;
use crate::refs::branch_move::BranchMove;
use crate::refs::reflog::{RefChange, RefWhy};
use crate::refs::tag;
use crate::remote::mend::has_intact;
use crate::remote::{RefUpdate, Remote, RemoteState, admit};
use crate::repository::Repository;
use crate::state::BranchState;

/// Commits that are read together to be registered.
const REGISTER_BATCH: usize = 1_000;

/// A database of another data directory.
pub struct DataRemote {
    frond: Frond,
    database: Repository,
    /// Keeps new chunks from being collected until the refs name them, and also those that come
    /// here from now on.
    _session: Session,
    /// Keeps older chunks, too: a clone that is under way never finds them gone.
    _snapshot: Snapshot,
}

impl DataRemote {
    /// The database `name` of `frond`; it may not exist yet.
    ///
    /// # Errors
    /// As [`Repository::open`]; `UserWritesBlocked` (371) if `name` names a commit.
    pub fn new(frond: Frond, name: &str) -> Result<DataRemote, Error> {
        let database = Repository::open(&frond, name)?;
        database.writable_branch()?;
        let session = frond.engine().store().session();
        let snapshot = frond.engine().snapshot();
        Ok(DataRemote { frond, database, _session: session, _snapshot: snapshot })
    }

    /// Checks what a client put here and wants refs to name: that it is all here, and is what it
    /// should be. See `admit`.
    ///
    /// # Errors
    /// `Damaged` with what is missing or wrong; `IllegalOperation` if the repository is another
    /// one.
    pub fn check_update(&self, update: &RefUpdate) -> Result<(), Error> {
        let (store, reader) = (self.frond.engine().store(), self.database.reader());
        let name = self.database.repository_name();
        if let Some(repository) = refs::repository(&reader, name)?
            && repository.salt != update.salt
        {
            return Err(other_lineage(name));
        }
        let mut known: HashSet<ChunkHash> = HashSet::new();
        let is_known = |hash: ChunkHash, known: &HashSet<ChunkHash>| {
            let is_there = || refs::commit_chunk(&reader, name, &format::id_of(hash));
            Ok::<bool, Error>(known.contains(&hash) || is_there()? == Some(hash))
        };
        let mut new = Vec::new();
        for hash in &update.commits {
            if is_known(*hash, &known)? {
                continue;
            }
            let chunk = store.get(*hash)?;
            for parent in Commit::decode(&chunk)?.parents {
                if !is_known(parent, &known)? {
                    let message = format!("commit {hash}: its parent {parent} is not here");
                    return Err(Error::damaged(message));
                }
            }
            known.insert(*hash);
            new.push(chunk);
        }
        for named in update.tags.iter().map(|(_, chunk)| *chunk).chain([update.new]) {
            if !is_known(named, &known)? {
                return Err(Error::damaged(format!("commit {named} is not here")));
            }
        }
        admit::complete(&**store, &new, &HashSet::new())?;
        admit::check(store, name, TreeFormat::new(update.salt), &new, &HashSet::new())
    }
}

impl Remote for DataRemote {
    fn state(&self) -> Result<Option<RemoteState>, Error> {
        let reader = self.database.reader();
        let name = self.database.repository_name();
        let Some(repository) = refs::repository(&reader, name)? else {
            return Ok(None);
        };
        let known = |id| {
            let chunk = refs::commit_chunk(&reader, name, &id)?;
            chunk.ok_or_else(|| Error::damaged(format!("commit {id} of {name} is not known")))
        };
        let mut branches = std::collections::BTreeMap::new();
        // In the reader's moment: it doesn't know a commit that came since.
        for branch in self.database.branches_at(&reader)? {
            if let Some(head) = branch.head {
                branches.insert(branch.name, known(head)?);
            }
        }
        let mut tags = std::collections::BTreeMap::new();
        for tag in tag::of_database(&reader, name)? {
            let chunk = known(tag.commit)?;
            tags.insert(tag.name.clone(), (tag, chunk));
        }
        let (salt, default_branch) = (repository.salt, repository.default_branch);
        Ok(Some(RemoteState { salt, default_branch, branches, tags }))
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        has_intact(&**self.frond.engine().store(), hashes)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.frond.engine().store().get_many(hashes)?)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        Ok(self.frond.engine().store().put_many_for(Lifetime::Lasting, chunks)?)
    }

    fn update(&self, update: &RefUpdate) -> Result<(), Error> {
        let database = &self.database;
        self.frond.engine().store().sync()?;
        database.replace_working_state(&update.branch, |transaction| {
            ensure_repository(database, transaction, update.salt, &update.default_branch)?;
            let new = unknown(database, transaction, &update.commits)?;
            register(database, transaction, &update.commits)?;
            database.check_commits(transaction, &update.branch, &new)?;
            for (tag, _) in &update.tags {
                let is_taken = {
                    let reader = Reader::within(self.frond.engine(), transaction);
                    let name = database.repository_name();
                    tag::target(&reader, name, &tag.name)?.is_some()
                        || refs::branch_ref(&reader, name, &tag.name)?.is_some()
                };
                if !is_taken {
                    tag.put(transaction, database.repository_name())?;
                }
            }
            move_branch(database, transaction, update, &new)?;
            Ok(Outcome::Commit(()))
        })
    }
}

/// Makes the repository where there is none, with the salt of the one that it comes from.
pub(crate) fn ensure_repository(
    database: &Repository,
    transaction: &mut Transaction,
    salt: u64,
    default_branch: &str,
) -> Result<(), Error> {
    let (name, frond) = (database.repository_name(), database.frond());
    let known = refs::repository(&Reader::within(frond.engine(), transaction), name)?;
    match known {
        Some(known) if known.salt == salt => return Ok(()),
        Some(_) => return Err(other_lineage(name)),
        None => refs::claim_name(frond.engine(), transaction, name)?,
    }
    let repository = RepositoryRecord {
        salt,
        uuid: frond.new_uuid(),
        created_millis: frond.time_millis(),
        default_branch: default_branch.to_owned(),
    };
    let record = TreeValue::inline(repository.encode());
    transaction.put(TreeId::SYSTEM, system::repository_key(name), record)?;
    let head = TreeValue::inline(BranchRef::default().encode());
    Ok(transaction.put(TreeId::SYSTEM, system::branch_key(name, default_branch), head)?)
}

/// Says that two repositories have nothing in common.
pub(crate) fn other_lineage(name: &str) -> Error {
    let message = format!(
        "{name} and the remote are repositories of different origin: clone the one, and import the \
         other's documents"
    );
    Error::invalid(Code::IllegalOperation, message)
}

/// Those of `commits` that the database doesn't know.
fn unknown(
    database: &Repository,
    transaction: &Transaction,
    commits: &[ChunkHash],
) -> Result<Vec<ChunkHash>, Error> {
    let reader = Reader::within(database.frond().engine(), transaction);
    let mut unknown = Vec::new();
    for hash in commits {
        let id = format::id_of(*hash);
        if refs::commit_chunk(&reader, database.repository_name(), &id)?.is_none() {
            unknown.push(*hash);
        }
    }
    Ok(unknown)
}

/// Registers commits that came. With one that was erased here, all are refused: the transaction
/// passes its database's latch, which an erase closes, so that none comes in beside it.
pub(crate) fn register(
    database: &Repository,
    transaction: &mut Transaction,
    commits: &[ChunkHash],
) -> Result<(), Error> {
    let (name, engine) = (database.repository_name(), database.frond().engine());
    for batch in commits.chunks(REGISTER_BATCH) {
        let chunks = engine.store().get_many(batch)?;
        let mut named = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            named.push((chunk.hash(), Commit::decode(chunk)?.parents));
        }
        erased::refuse(&Reader::within(engine, transaction), name, named)?;
        for chunk in &chunks {
            commit::register(transaction, name, chunk)?;
        }
    }
    Ok(())
}

/// Moves the branch, if the policy's rules let it.
fn move_branch(
    database: &Repository,
    transaction: &mut Transaction,
    update: &RefUpdate,
    new: &[ChunkHash],
) -> Result<(), Error> {
    let (name, engine) = (database.repository_name(), database.frond().engine());
    let store = &**engine.store();
    let key = system::branch_key(name, &update.branch);
    let is_there = {
        let reader = Reader::within(engine, transaction);
        reader.get(TreeRef::Live(TreeId::SYSTEM), &key)?.is_some()
    };
    if !is_there {
        let record = TreeValue::inline(BranchRef::default().encode());
        transaction.put(TreeId::SYSTEM, key, record)?;
    }
    let state = BranchState::validated(database.frond(), transaction, name, &update.branch)?;
    if state.head_chunk() != update.expected {
        return Err(moved_on(&update.branch));
    }
    state.refuse_while_merging("a push")?;
    state.refuse_push_to_closed(transaction, database)?;
    if update.force && !database.is_forward(&state, update.new)? {
        state.refuse_protected(transaction, database, "a push by force")?;
    }
    let before = state.working_catalog(engine, transaction.snapshot())?;
    if before.root != state.head_catalog(store)?.root {
        let message = format!(
            "branch {} of the remote has changes that are not committed there: commit them or reset the \
             branch there first, or push to another branch",
            update.branch
        );
        return Err(Error::invalid(Code::IllegalOperation, message));
    }
    let catalog: Tree = history::load(store, update.new)?.catalog;
    debug_assert_eq!(catalog.format, TreeFormat::new(update.salt));
    if is_there {
        check_rules(database, transaction, &state, (update, new), (before, catalog))?;
    } else {
        database.check_named(transaction, (None, &*update.branch), Some(update.new))?;
    }
    let adoption = Adoption { head: catalog, before, after: catalog };
    state.adopt(engine, transaction, &adoption)?;
    let why = RefWhy::replacing("push", database.frond().time_millis(), before);
    let record = BranchRef { commit: Some(format::id_of(update.new)) };
    let key = system::branch_key(name, &update.branch);
    transaction.put(TreeId::SYSTEM, key, TreeValue::inline(record.encode()))?;
    RefChange { from: state.head_id(), to: record.commit, why }.log(
        transaction,
        name,
        &update.branch,
    )
}

/// Checks what a push changes on a branch by the commit policy's rules, as far as it isn't of new
/// commits, which were checked one by one.
fn check_rules(
    database: &Repository,
    transaction: &mut Transaction,
    state: &BranchState,
    (update, new): (&RefUpdate, &[ChunkHash]),
    (before, catalog): (Tree, Tree),
) -> Result<(), Error> {
    let act = (&*update.branch, BranchMove::FastForward);
    if !new.contains(&update.new) {
        return database.check_move(transaction, act, (&before, &catalog));
    }
    let changed = || {
        let is_any_known = brings_known(database, state, update.new, new)?;
        Ok(is_any_known.then_some((before, catalog)))
    };
    database.check_brought(transaction, act, changed)
}

/// Whether a push brings the branch commits that the database has already, besides `new` ones.
fn brings_known(
    database: &Repository,
    state: &BranchState,
    tip: ChunkHash,
    new: &[ChunkHash],
) -> Result<bool, Error> {
    let new: BTreeSet<ChunkHash> = new.iter().copied().collect();
    let head: Vec<ChunkHash> = state.head_chunk().into_iter().collect();
    let mut walk = Walk::begin(database.frond().engine().store(), &[tip], &head, false)?;
    while let Some((hash, _)) = walk.next()? {
        if !new.contains(&hash) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Says that another client moved the branch first.
pub(crate) fn moved_on(branch: &str) -> Error {
    let message = format!(
        "branch {branch} of the remote is not where it was when it was looked at: fetch it and try \
         again"
    );
    Error::invalid(Code::IllegalOperation, message)
}
