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
//! second finds the ref changed, and runs again on the first one's HEAD. Chunks that a lost attempt
//! put in the store are found again by name or are left to garbage collection.
//!
//! *A commit that is judged first* (by a hook, which may take seconds) is made in one transaction
//! and named in another: 1 to 3 and the commit's record come first, so that its id names exactly
//! what is judged, and the ref moves once that has passed, if the branch is still where it was.

use frond_db::inside::refs::erased::EraseCount;
use frond_db::inside::refs::{format, shallow};
use frond_db::inside::{Commit, Error, LatchMode, Outcome, Reader, Scope, WorkingEntry, system};
use frond_engine::{Durability, Engine, Transaction, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkHash, Lifetime, Session};
use frond_tree::Tree;

use crate::refs::branch_move::BranchMove;
use crate::refs::reflog::RefWhy;
use crate::repository::Repository;
use crate::state::BranchState;
use crate::{CommitId, CommitInfo, history};

/// The author of a commit if the client names none.
pub(crate) const AUTHOR_DEFAULT: &str = "frond";
/// The longest message; it is one chunk with the rest of the commit.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The longest author.
const AUTHOR_BYTES_MAX: usize = 1 << 10;

/// The options of a commit.
#[derive(Clone, Debug, Default)]
pub struct CommitRequest {
    /// The message; when amending, `None` keeps the commit's own.
    pub message: Option<String>,
    /// The author of the changes; when amending, `None` keeps the commit's own. Empty is `frond`.
    pub author: Option<String>,
    /// The committer them, if that is not the author.
    pub committer: Option<String>,
    /// The time when the changes were made, in milliseconds since 1970, if not now.
    pub time_millis: Option<i64>,
    /// Replace HEAD by a commit of its content, its parents and what changed since.
    pub amend: bool,
    /// Commit also if nothing changed.
    pub allow_empty: bool,
    /// Versions that the commit has for parents, too: their changes are in the working state
    /// already, as those of a merge that was made elsewhere are.
    pub merges: Vec<String>,
    /// Whether no client asked for it: the policy's retention may take it away again.
    pub automatic: bool,
}

/// The author, message and other facts that a commit records.
#[derive(Clone, Copy)]
pub(crate) struct Signature<'a> {
    pub author: &'a str,
    pub message: &'a str,
    /// The committer, if it isn't the author.
    pub committer: Option<&'a str>,
    /// The time when the changes were made, if not now.
    pub authored_millis: Option<i64>,
    /// A policy makes it.
    pub automatic: bool,
    /// A revert makes it, of this commit.
    pub reverts: Option<CommitId>,
    /// Now.
    pub time_millis: i64,
}

impl<'a> Signature<'a> {
    /// Checks what a client gave; an empty author is [`AUTHOR_DEFAULT`].
    ///
    /// # Errors
    /// `InvalidLength` if it is too long.
    pub fn new(
        author: &'a str,
        message: &'a str,
        time_millis: i64,
    ) -> Result<Signature<'a>, Error> {
        check_length("message", message, MESSAGE_BYTES_MAX)?;
        check_length("author", author, AUTHOR_BYTES_MAX)?;
        let author = if author.is_empty() { AUTHOR_DEFAULT } else { author };
        Ok(Signature {
            author,
            message,
            committer: None,
            authored_millis: None,
            automatic: false,
            reverts: None,
            time_millis,
        })
    }

    /// Returns the reflog's message about a commit.
    pub fn why(&self, what: &str) -> String {
        format!("{what}: {}", self.message.lines().next().unwrap_or_default())
    }
}

/// A commit that was made, and is to be a branch's.
struct MadeCommit {
    /// The branch as it was found.
    state: BranchState,
    chunk: Chunk,
    info: CommitInfo,
    /// The reflog's message.
    why: String,
    time_millis: i64,
    /// Whether it takes HEAD's place.
    amends: bool,
}

impl MadeCommit {
    /// Moves the branch, which by now is `state`, to the commit, and removes the marks of dropped
    /// collections: the new HEAD doesn't have those that it was made without.
    fn name(&self, transaction: &mut Transaction, state: &BranchState) -> Result<(), Error> {
        let why = RefWhy::plain(&self.why, self.time_millis);
        state.move_ref(transaction, self.chunk.hash(), why)?;
        for (name, entry) in &self.state.entries {
            if *entry == WorkingEntry::Dropped && state.entry(name) == Some(entry) {
                state.delete_entry(transaction, name)?;
            }
        }
        Ok(())
    }
}

/// A commit that no branch is at yet; it and all that it refers to are kept.
pub struct CommitToJudge {
    made: MadeCommit,
    /// The count where the working state was read.
    erases: EraseCount,
    _session: Session,
}

impl CommitToJudge {
    /// The commit's id, by which it can be read.
    pub fn id(&self) -> CommitId {
        self.made.info.id
    }
}

fn check_length(what: &str, text: &str, max: usize) -> Result<(), Error> {
    if text.len() <= max {
        return Ok(());
    }
    Err(Error::invalid(Code::InvalidLength, format!("the {what} is longer than {max} bytes")))
}

impl Repository {
    /// Records the branch's working state as a commit. An empty `author` is `frond`. Writers go on.
    /// The cost follows what changed since the last commit.
    ///
    /// # Errors
    /// `BadValue` if nothing changed; `UserWritesBlocked` if this version is a commit;
    /// `IllegalOperation` if a merge waits for its conflicts.
    pub fn commit(&self, message: &str, author: &str) -> Result<CommitInfo, Error> {
        self.commit_as(&CommitRequest {
            message: Some(message.to_owned()),
            author: Some(author.to_owned()),
            ..CommitRequest::default()
        })
    }

    /// Records the branch's working state as a commit, as `request` says.
    ///
    /// # Errors
    /// As [`Repository::commit`]; `BadValue` if there is no commit to amend, or no version that is
    /// merged.
    pub fn commit_as(&self, request: &CommitRequest) -> Result<CommitInfo, Error> {
        self.transact_to_commit(|transaction| {
            let made = self.made(transaction, request)?;
            made.state.register(transaction, &made.chunk)?;
            made.name(transaction, &made.state)?;
            Ok(Outcome::Commit(made.info))
        })
    }

    /// Makes the commit that [`Repository::commit_as`] would, and registers its id: it can be read,
    /// and judged. No branch is at it until [`Repository::commit_judged`]; if that never comes, a
    /// collection of garbage removes it.
    ///
    /// # Errors
    /// As [`Repository::commit_as`].
    pub fn commit_to_judge(&self, request: &CommitRequest) -> Result<CommitToJudge, Error> {
        let session = self.frond().engine().store().session();
        self.transact_to_commit(|transaction| {
            let erases = {
                let reader = Reader::within(self.frond().engine(), transaction);
                EraseCount::at(&reader)?
            };
            let made = self.made(transaction, request)?;
            made.state.register(transaction, &made.chunk)?;
            Ok(Outcome::Commit((made, erases)))
        })
        .map(|(made, erases)| CommitToJudge { made, erases, _session: session })
    }

    /// Moves the branch to a commit that was judged: exactly that. What was written since is a
    /// change against it.
    ///
    /// # Errors
    /// `ConflictingOperationInProgress` (117) if the branch has moved, or a merge into it began or
    /// ended, since the commit was made; `QueryPlanKilled` (175) if something was erased; as
    /// [`Repository::commit_as`].
    pub fn commit_judged(&self, judged: &CommitToJudge) -> Result<CommitInfo, Error> {
        let CommitToJudge { made, erases, .. } = judged;
        self.transact_to_commit(|transaction| {
            let engine = self.frond().engine();
            erases.check(engine, transaction)?;
            let (name, branch) = (&made.state.database, &made.state.branch);
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            if (state.at, &state.merging) != (made.state.at, &made.state.merging) {
                let message = format!("{branch} has moved while the commit was judged: try again");
                return Err(Error::invalid(Code::ConflictingOperationInProgress, message));
            }
            if made.amends {
                state.refuse_protected(transaction, self, "amending a commit")?;
            }
            let commit = Commit::decode(&made.chunk)?;
            self.check_commit(transaction, &commit.parents, &commit.catalog)?;
            // A collection of garbage may have removed its id.
            state.register(transaction, &made.chunk)?;
            // What has no entry any more is what HEAD had.
            state.keep(engine, transaction, &commit.catalog)?;
            made.name(transaction, &state)?;
            Ok(Outcome::Commit(made.info.clone()))
        })
    }

    fn transact_to_commit<T>(
        &self,
        body: impl FnMut(&mut Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        let scope = Scope::branch(self.repository_name(), self.writable_branch()?);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, body)
    }

    /// The commit that is asked for, of the working state as the transaction finds it.
    fn made(
        &self,
        transaction: &mut Transaction,
        request: &CommitRequest,
    ) -> Result<MadeCommit, Error> {
        let (name, branch) = (self.repository_name(), self.writable_branch()?);
        let engine = self.frond().engine();
        if frond_db::inside::refs::repository(&self.reader(), name)?.is_none() {
            if !request.allow_empty {
                return Err(nothing_to_commit());
            }
            frond_db::inside::adopt::ensure_repository(transaction, self, branch)?;
        }
        let state = BranchState::validated(self.frond(), transaction, name, branch)?;
        // A merge that waits for decisions about the schema has merged nothing yet.
        if state
            .merging
            .as_ref()
            .is_some_and(|merge| merge.decisions.is_none() || merge.kind.is_replay())
        {
            state.refuse_while_merging("a commit")?;
        }
        let catalog = state.working_catalog(engine, transaction.snapshot())?;
        if request.amend {
            return self.amended(transaction, state, catalog, request);
        }
        let is_unchanged = catalog.root == state.head_catalog(&**engine.store())?.root;
        let merged = self.merged_parents(state.head_chunk(), request)?;
        if is_unchanged && !request.allow_empty && merged.is_empty() {
            return Err(nothing_to_commit());
        }
        let message = request.message.as_deref().unwrap_or_default();
        let author = request.author.as_deref().unwrap_or_default();
        let signature = self.signature(request, author, message)?;
        let parents: Vec<_> = state.head_chunk().into_iter().chain(merged).collect();
        let (chunk, info) = self.make_commit(transaction, catalog, &parents, &signature)?;
        let (why, time_millis) = (signature.why("commit"), signature.time_millis);
        Ok(MadeCommit { state, chunk, info, why, time_millis, amends: false })
    }

    /// Makes a commit that passes the policy's rules, and makes it durable with all that it refers
    /// to.
    ///
    /// # Errors
    /// `DocumentValidationFailure` if a rule doesn't let it pass.
    pub(crate) fn make_commit(
        &self,
        transaction: &mut Transaction,
        catalog: Tree,
        parents: &[ChunkHash],
        signature: &Signature<'_>,
    ) -> Result<(Chunk, CommitInfo), Error> {
        self.check_commit(transaction, parents, &catalog)?;
        make(self.frond().engine(), catalog, parents, signature)
    }

    /// Checks what a commit changes by the policy's rules.
    fn check_commit(
        &self,
        transaction: &mut Transaction,
        parents: &[ChunkHash],
        catalog: &Tree,
    ) -> Result<(), Error> {
        let store = &**self.frond().engine().store();
        let before = match parents.first() {
            Some(parent) => history::load(store, *parent)?.catalog,
            None => Tree::empty(store, catalog.format)?,
        };
        let act = (self.writable_branch()?, BranchMove::Commit);
        self.check_move(transaction, act, (&before, catalog))
    }

    /// The parents besides HEAD, each once.
    fn merged_parents(
        &self,
        head: Option<ChunkHash>,
        request: &CommitRequest,
    ) -> Result<Vec<ChunkHash>, Error> {
        let reader = self.reader();
        let mut parents = Vec::new();
        for version in &request.merges {
            let parent = self.revision(&reader, version)?;
            if Some(parent) != head && !parents.contains(&parent) {
                parents.push(parent);
            }
        }
        Ok(parents)
    }

    fn signature<'a>(
        &self,
        request: &'a CommitRequest,
        author: &'a str,
        message: &'a str,
    ) -> Result<Signature<'a>, Error> {
        let signature = Signature::new(author, message, self.frond().time_millis())?;
        if let Some(committer) = &request.committer {
            check_length("committer", committer, AUTHOR_BYTES_MAX)?;
        }
        let committer =
            request.committer.as_deref().filter(|committer| *committer != signature.author);
        let (authored_millis, automatic) = (request.time_millis, request.automatic);
        Ok(Signature { committer, authored_millis, automatic, ..signature })
    }

    /// The commit of the same parents that takes HEAD's place.
    fn amended(
        &self,
        transaction: &mut Transaction,
        state: BranchState,
        catalog: Tree,
        request: &CommitRequest,
    ) -> Result<MadeCommit, Error> {
        let Some((head_chunk, head)) = &state.head else {
            let message = format!("{} has no commit to amend", state.branch);
            return Err(Error::invalid(Code::BadValue, message));
        };
        shallow::refuse(&**self.frond().engine().store(), *head_chunk, "amending")?;
        state.refuse_protected(transaction, self, "amending a commit")?;
        let message = request.message.as_deref().unwrap_or(&head.message);
        let author = request.author.as_deref().unwrap_or(&head.author);
        let mut signature = self.signature(request, author, message)?;
        if request.time_millis.is_none() {
            let authored = head.authored_millis.unwrap_or(head.timestamp_millis);
            signature.authored_millis = Some(authored);
        }
        let (chunk, info) = self.make_commit(transaction, catalog, &head.parents, &signature)?;
        let (why, time_millis) = (signature.why("commit (amend)"), signature.time_millis);
        Ok(MadeCommit { state, chunk, info, why, time_millis, amends: true })
    }
}

fn nothing_to_commit() -> Error {
    Error::invalid(Code::BadValue, "nothing to commit, working state clean")
}

/// Puts a commit in the store and makes it durable, with all that it refers to.
fn make(
    engine: &Engine,
    catalog: Tree,
    parents: &[ChunkHash],
    signature: &Signature<'_>,
) -> Result<(Chunk, CommitInfo), Error> {
    let store = engine.store();
    // A clock that was set back must not make a commit older than its parents: the log of a
    // history is ordered by time. A time that is given may lie in the past, as that of a history
    // that is imported does, never in the future, where it would hold for all that comes after.
    let now = signature.time_millis;
    let authored = signature.authored_millis.unwrap_or(now);
    let (mut timestamp_millis, mut generation) = (authored.min(now), 1);
    for parent in parents {
        let parent = history::load(&**store, *parent)?;
        timestamp_millis = timestamp_millis.max(parent.timestamp_millis);
        generation = generation.max(parent.generation.saturating_add(1));
    }
    let is_recorded = signature.authored_millis.is_some() && authored != timestamp_millis;
    let commit = Commit {
        catalog,
        parents: parents.to_vec(),
        author: signature.author.to_owned(),
        message: signature.message.to_owned(),
        committer: signature.committer.map(str::to_owned),
        timestamp_millis,
        authored_millis: is_recorded.then_some(authored),
        generation,
        automatic: signature.automatic,
        reverts: signature.reverts,
    };
    let chunk = commit.encode();
    store.put_many_for(Lifetime::Lasting, std::slice::from_ref(&chunk))?;
    store.sync()?;
    let info = history::info(chunk.hash(), &commit);
    Ok((chunk, info))
}

/// Registers the id of a commit of a database.
///
/// # Errors
/// As the transaction's `put`; if a parent that is registered can't be read.
pub(crate) fn register(
    transaction: &mut Transaction,
    database: &str,
    chunk: &Chunk,
) -> Result<(), Error> {
    if transaction.is_carried() {
        note_parents(transaction, database, &Commit::decode(chunk)?)?;
    }
    let key = system::commit_key(database, &format::id_of(chunk.hash()).0);
    Ok(transaction.put(TreeId::SYSTEM, key, system::commit_value(chunk))?)
}

/// Says what of a commit the members of a set have: what is registered is on all of them, and most
/// of the commit is in its parents.
fn note_parents(
    transaction: &mut Transaction,
    database: &str,
    commit: &Commit,
) -> Result<(), Error> {
    for parent in &commit.parents {
        let snapshot = transaction.snapshot();
        let key = system::commit_key(database, &format::id_of(*parent).0);
        let registered = snapshot.get(TreeId::SYSTEM, &key)?;
        let registered = registered.map(|value| system::commit_chunk(&value)).transpose()?;
        if registered == Some(*parent) {
            let before = Commit::decode(&snapshot.store().get(*parent)?)?.catalog;
            transaction.note_shared(*parent);
            transaction.note_similar(commit.catalog.root, before.root);
        }
    }
    Ok(())
}

impl BranchState {
    /// Moves the branch to a commit that was just made, and registers its id.
    ///
    /// # Errors
    /// As the transaction's `put`: another may have moved the branch.
    pub fn record(
        &self,
        transaction: &mut Transaction,
        chunk: &Chunk,
        why: &str,
        signature: &Signature<'_>,
    ) -> Result<(), Error> {
        self.register(transaction, chunk)?;
        self.move_ref(transaction, chunk.hash(), RefWhy::plain(why, signature.time_millis))
    }

    /// Registers the id of a commit.
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn register(&self, transaction: &mut Transaction, chunk: &Chunk) -> Result<(), Error> {
        register(transaction, &self.database, chunk)
    }

    /// Removes the marks of dropped collections: the new HEAD doesn't have them.
    ///
    /// # Errors
    /// As the transaction's `delete`.
    pub fn forget_dropped(&self, transaction: &mut Transaction) -> Result<(), Error> {
        for (name, entry) in &self.entries {
            if *entry == WorkingEntry::Dropped {
                self.delete_entry(transaction, name)?;
            }
        }
        Ok(())
    }
}
