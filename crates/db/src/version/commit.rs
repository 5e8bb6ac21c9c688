//! A version commit: what the branch changed becomes chunks, and HEAD moves.
//!
//! 1. In a transaction read the branch: HEAD, working entries, no merge that waits.
//! 2. Fold the branch's live trees as they are at the transaction's snapshot, and make the catalog.
//! 3. Nothing changed if that is HEAD's: the same content has the same root.
//! 4. Put the commit's chunk, sync the store; then commit the transaction that moves the ref,
//!    registers the id and writes the reflog.
//!
//! Writers go on: what they write after the snapshot is a change against the new HEAD. Live
//! collections stay live, their base is now the committed tree. Two commits of one branch: the
//! second finds the ref changed, and runs again on the first one's HEAD. What a lost attempt put in
//! the store is found again by its name or is left to garbage collection.

use frond_engine::{Durability, Engine, Transaction, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash, Lifetime};
use frond_tree::Tree;

use crate::contention::{Outcome, Role, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::system::{self, WorkingEntry};
use crate::version::format::{self, Commit};
use crate::version::state::BranchState;
use crate::version::{CommitInfo, history};

/// Who makes a commit if nobody says.
pub(crate) const AUTHOR_DEFAULT: &str = "frond";
/// Longest message; it is one chunk with the rest of the commit.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Longest author.
const AUTHOR_BYTES_MAX: usize = 1 << 10;

/// What a commit says of itself.
#[derive(Clone, Copy)]
pub(crate) struct Signature<'a> {
    pub author: &'a str,
    pub message: &'a str,
    /// Now.
    pub time_millis: i64,
}

impl<'a> Signature<'a> {
    /// Checks what a client gave; an empty author is nobody.
    ///
    /// # Errors
    /// `BadValue` if it is too long.
    pub fn new(
        author: &'a str,
        message: &'a str,
        time_millis: i64,
    ) -> Result<Signature<'a>, Error> {
        let too_long = |what: &str, max: usize| {
            Error::invalid(Code::BadValue, format!("the {what} is longer than {max} bytes"))
        };
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(too_long("message", MESSAGE_BYTES_MAX));
        }
        if author.len() > AUTHOR_BYTES_MAX {
            return Err(too_long("author", AUTHOR_BYTES_MAX));
        }
        let author = if author.is_empty() { AUTHOR_DEFAULT } else { author };
        Ok(Signature { author, message, time_millis })
    }

    /// What the reflog says of a commit.
    pub fn why(&self, what: &str) -> String {
        format!("{what}: {}", self.message.lines().next().unwrap_or_default())
    }
}

impl Database {
    /// Records the branch's working state as a commit. An empty `author` is `frond`. Writers go on.
    /// The cost follows what changed since the last commit.
    ///
    /// # Errors
    /// `BadValue` if nothing changed; `IllegalOperation` if this version is a commit, or a merge
    /// waits for its conflicts.
    pub fn commit(&self, message: &str, author: &str) -> Result<CommitInfo, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let signature = Signature::new(author, message, self.frond().now_millis())?;
        let engine = self.frond().engine();
        let scope = Scope::branch(name, branch);
        self.frond().transact(scope, Role::Writer, Durability::Synced, |transaction| {
            if crate::database::repository(&self.reader(), name)?.is_none() {
                return Err(nothing_to_commit());
            }
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            state.refuse_while_merging("a commit")?;
            let catalog = state.working_catalog(engine, transaction.snapshot())?;
            if catalog.root == state.head_catalog(&**engine.store())?.root {
                return Err(nothing_to_commit());
            }
            state.forget_dropped(transaction)?;
            let parents: Vec<ChunkHash> = state.head_chunk().into_iter().collect();
            let (chunk, info) = make(engine, catalog, &parents, &signature)?;
            state.record(transaction, &chunk, &signature.why("commit"), signature.time_millis)?;
            Ok(Outcome::Commit(info))
        })
    }
}

fn nothing_to_commit() -> Error {
    Error::invalid(Code::BadValue, "nothing to commit, working state clean")
}

/// Puts a commit in the store and makes it durable, with all that it refers to.
pub(crate) fn make(
    engine: &Engine,
    catalog: Tree,
    parents: &[ChunkHash],
    signature: &Signature<'_>,
) -> Result<(Chunk, CommitInfo), Error> {
    let store = engine.store();
    // A clock that was set back must not make a commit older than its parents: the log of a
    // history is ordered by time.
    let (mut timestamp_millis, mut generation) = (signature.time_millis, 1);
    for parent in parents {
        let parent = history::load(&**store, *parent)?;
        timestamp_millis = timestamp_millis.max(parent.timestamp_millis);
        generation = generation.max(parent.generation.saturating_add(1));
    }
    let commit = Commit {
        catalog,
        parents: parents.to_vec(),
        author: signature.author.to_owned(),
        message: signature.message.to_owned(),
        timestamp_millis,
        generation,
    };
    let chunk = commit.encode();
    store.put_many_for(Lifetime::Lasting, std::slice::from_ref(&chunk))?;
    store.sync()?;
    let info = history::info(chunk.hash(), &commit);
    Ok((chunk, info))
}

impl BranchState {
    /// Moves the branch to a commit that was just made, and registers its id.
    pub fn record(
        &self,
        transaction: &mut Transaction,
        chunk: &Chunk,
        why: &str,
        time_millis: i64,
    ) -> Result<(), Error> {
        let key = system::commit_key(&self.database, &format::id_of(chunk.hash()).0);
        transaction.put(TreeId::SYSTEM, key, system::commit_value(chunk))?;
        self.move_ref(transaction, chunk.hash(), why, time_millis)
    }

    /// Removes the marks of dropped collections: the new HEAD doesn't have them.
    pub fn forget_dropped(&self, transaction: &mut Transaction) -> Result<(), Error> {
        for (name, entry) in &self.entries {
            if *entry == WorkingEntry::Dropped {
                self.delete_entry(transaction, name)?;
            }
        }
        Ok(())
    }
}
