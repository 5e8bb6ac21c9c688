//! Undoing a change of a ref: what the reflog remembers comes back.
//!
//! 1. The change is the one that is named, or the newest that is neither an undoing nor undone: so
//!    undoing again goes back further. Naming an undoing brings back what it took.
//! 2. HEAD becomes what it was before the change. Where the change had replaced the working state
//!    (a reset, a merge, a deleted branch) that comes back too; where it had not (a commit) the
//!    working state stays as it is. A deleted branch has its policy again, but for a time to live
//!    that is over. A dropped collection comes back alone. A merge that waited in the working state
//!    waits again.
//! 3. Writes since the change stay: that is a merge, whose base is the state that the change left.
//!    Where it changed the same as the change did it is *set aside*: reported, and remembered.
//! 4. The undoing is a change of its own, remembered with what it takes away.

pub(crate) mod dropped;
pub(crate) mod undoable;

use frond_db::inside::{
    BranchRef, CatalogEntry, CommitId, Error, EventKind, EventRecorder, Outcome, Reader,
    WorkingEntry, definition, refs, system,
};
use frond_doc::Document;
use frond_engine::Transaction;
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::Tree;

use crate::adopt::Adoption;
use crate::merge::waiting;
use crate::refs::reflog::{self, Lost, RefChange, RefChangeInfo, RefWhy};
use crate::repository::Repository;
use crate::state::{self, BranchState};
use crate::{conflict, history};

/// The result of an undo.
#[derive(Clone, Debug)]
pub struct UndoReport {
    /// The change.
    pub change: RefChangeInfo,
    /// HEAD of its branch now.
    pub head: Option<CommitId>,
    /// Collections in which something was written since that is set aside.
    pub set_aside: Vec<String>,
}

impl Repository {
    /// Undoes a change of `branch` (default: this one; or a tag): `change`, or the newest that can
    /// be.
    ///
    /// # Errors
    /// `NoSuchKey` if there is no such change; `UserWritesBlocked` if this is a commit;
    /// `IllegalOperation` if a merge waits, or the branch has moved on from where the change had
    /// brought it; `NamespaceExists` if a branch or collection would come back where there is
    /// another one.
    pub fn undo(&self, branch: Option<&str>, change: Option<u64>) -> Result<UndoReport, Error> {
        let branch = match branch {
            Some(branch) => branch,
            None => self.writable_branch()?,
        };
        let name = self.repository_name();
        let engine = self.frond().engine();
        self.replace_working_state(branch, |transaction| {
            let changes = {
                let reader = Reader::within(engine, transaction);
                if refs::repository(&reader, name)?.is_none() {
                    return Err(history::no_branch(name, branch));
                }
                reflog::of_branch(&reader, name, branch)?
            };
            let moved = changes.iter().position(RefChangeInfo::is_move);
            let since = &changes[..moved.unwrap_or(changes.len())];
            let found = find(since, change)
                .ok_or_else(|| nothing_to_undo(branch, change, moved.map(|at| &changes[at])))?;
            if let Some(before) = &found.tag {
                self.undo_tag(transaction, found, before)?;
                let (change, head) = (found.clone(), Some(before.commit));
                return Ok(Outcome::Commit(UndoReport { change, head, set_aside: Vec::new() }));
            }
            let is_there = {
                let reader = Reader::within(engine, transaction);
                refs::branch_ref(&reader, name, branch)?.is_some()
            };
            match (is_there, found.is_deletion()) {
                (false, _) => self.create_for_undo(transaction, branch, found)?,
                (true, false) => {}
                (true, true) => {
                    let message = format!(
                        "branch {branch} was made again: delete it before the one that was deleted \
                         comes back"
                    );
                    return Err(Error::invalid(Code::NamespaceExists, message));
                }
            }
            Ok(Outcome::Commit(self.undo_change(transaction, branch, &changes, found)?))
        })
    }

    /// Makes a branch that was deleted, at the commit where it was, for its working state to come
    /// back to.
    fn create_for_undo(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        change: &RefChangeInfo,
    ) -> Result<(), Error> {
        let name = self.repository_name();
        if change.to.is_some() {
            let message = format!("branch {branch} is gone: undo its deletion first");
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        let record = frond_tree::Value::inline(BranchRef { commit: change.from }.encode());
        let system = frond_engine::TreeId::SYSTEM;
        transaction.validate(system, system::repository_key(name));
        transaction.put(system, system::branch_key(name, branch), record)?;
        if let Some(recorder) = EventRecorder::new(self.frond().engine(), (name, branch, "")) {
            recorder.record(transaction, EventKind::Rewritten, Document::empty());
        }
        change.policy.map_or(Ok(()), |policy| self.restore_policy(transaction, branch, policy))
    }

    fn undo_change(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        changes: &[RefChangeInfo],
        change: &RefChangeInfo,
    ) -> Result<UndoReport, Error> {
        let name = self.repository_name();
        let engine = self.frond().engine();
        let state = BranchState::validated(self.frond(), transaction, name, branch)?;
        let was_deleted = change.to.is_none();
        if !was_deleted {
            state.refuse_while_merging("an undo")?;
        }
        let why = format!("undo: {}", change.why);
        let now = self.frond().time_millis();
        let before = state.working_catalog(engine, transaction.snapshot())?;
        if let (Some(collection), Some(entry)) = (&change.collection, change.lost) {
            self.bring_back(transaction, &state, before, collection, (entry, change.order))?;
            let (from, to) = (state.head_id(), state.head_id());
            let why = RefWhy { undid: Some(change.change), ..RefWhy::plain(&why, now) };
            RefChange { from, to, why }.log(transaction, name, branch)?;
            return Ok(UndoReport { change: change.clone(), head: to, set_aside: Vec::new() });
        }
        if brought_back(change) {
            let message = format!("'{}' brought a collection back: drop it again", change.why);
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        if !was_deleted && state.head_id() != change.to {
            return Err(gone_on(branch, change));
        }
        if state.head_id() != change.from {
            state.refuse_protected(transaction, self, "an undo")?;
        }
        let head = self.catalog_at(transaction, &state, change.from)?;
        let (mut lost, mut set_aside) = (Lost::Nothing, Vec::new());
        match change.lost {
            Some(root) => {
                let mut after = Tree { root, format: state.repository.format() };
                if !was_deleted {
                    let left = self.left_by(transaction, &state, changes, change)?;
                    let carried = self.carry_since(vec![left], before, after)?;
                    (after, set_aside) = (carried.catalog, carried.set_aside);
                }
                state.adopt(engine, transaction, &Adoption { head, before, after })?;
                conflict::clear(engine, transaction, name, branch)?;
                if let Some(merge) = &change.merge {
                    waiting::restore(engine, transaction, &state, merge)?;
                }
                lost = Lost::Working(before);
            }
            None => state.keep(engine, transaction, &head)?,
        }
        let undid = Some(change.change);
        let why = RefWhy { lost, undid, ..RefWhy::plain(&why, now) };
        state.move_ref_to(transaction, change.from, why)?;
        Ok(UndoReport { change: change.clone(), head: change.from, set_aside })
    }

    /// The working state that a change left, which had replaced the one before.
    fn left_by(
        &self,
        transaction: &Transaction,
        state: &BranchState,
        changes: &[RefChangeInfo],
        change: &RefChangeInfo,
    ) -> Result<Tree, Error> {
        let tree = |root| Tree { root, format: state.repository.format() };
        if let Some(root) = change.left {
            return Ok(tree(root));
        }
        let undid = change.undid.and_then(|undid| changes.iter().find(|each| each.change == undid));
        if let Some((undid, root)) = undid.and_then(|undid| Some((undid, undid.lost?))) {
            let Some(now) = change.lost.filter(|_| undid.to.is_some()) else {
                return Ok(tree(root));
            };
            // As it was made: with what had been written until then.
            let base = self.left_by(transaction, state, changes, undid)?;
            return Ok(self.carry_since(vec![base], tree(now), tree(root))?.catalog);
        }
        match (&change.merge, change.lost) {
            (Some(merge), Some(lost)) if change.is_abort() => {
                Ok(self.without_merge(&waiting::state_of(merge)?, tree(lost))?.catalog)
            }
            _ => self.catalog_at(transaction, state, change.to),
        }
    }

    /// The catalog of a commit; of none, the empty one.
    fn catalog_at(
        &self,
        transaction: &Transaction,
        state: &BranchState,
        commit: Option<CommitId>,
    ) -> Result<Tree, Error> {
        let engine = self.frond().engine();
        let store = &**engine.store();
        let Some(id) = commit else {
            return Ok(Tree::empty(store, state.repository.format())?);
        };
        let reader = Reader::within(engine, transaction);
        let chunk = refs::commit_chunk(&reader, self.repository_name(), &id)?;
        let chunk = chunk.ok_or_else(|| {
            let message = format!("the commit {} of the reflog is not known", id);
            Error::damaged(message)
        })?;
        Ok(history::load(store, chunk)?.catalog)
    }

    /// Makes a collection that was dropped be there again.
    fn bring_back(
        &self,
        transaction: &mut Transaction,
        state: &BranchState,
        before: Tree,
        collection: &str,
        (entry, order): (ChunkHash, Option<ChunkHash>),
    ) -> Result<(), Error> {
        let engine = self.frond().engine();
        let store = engine.store();
        let is_live = matches!(state.entry(collection), Some(WorkingEntry::Live(_)));
        if is_live || state::catalog_entry(store, &before, collection)?.is_some() {
            let message = format!(
                "collection {} exists again: rename it before the one that was dropped comes back",
                self.namespace(collection)
            );
            return Err(Error::invalid(Code::NamespaceExists, message));
        }
        let entry = CatalogEntry::decode(&store.get(entry)?)?;
        if !definition::is_versioned(&entry.options) {
            state.validate_absence(transaction, collection);
            state.record_return(engine, transaction, collection, &entry)?;
            let order = order.map(|root| Tree { root, format: before.format });
            return state.go_live(engine, transaction, collection, &entry, order);
        }
        let after = state::with_entry(&**store, &before, collection, Some(&entry))?;
        let head = state.head_catalog(&**store)?;
        state.adopt(engine, transaction, &Adoption { head, before, after })
    }

    /// Remembers a collection that `transaction` drops, so that the drop can be undone.
    pub(crate) fn remember_drop(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        collection: &str,
    ) -> Result<(), Error> {
        let name = self.repository_name();
        let engine = self.frond().engine();
        let state = {
            let reader = Reader::within(engine, transaction);
            BranchState::read(&reader, name, branch)?
        };
        let found = state.entry_now(engine, transaction.snapshot(), collection)?;
        let Some((entry, order)) = found else {
            return Ok(());
        };
        let why = format!("drop: collection {collection}");
        let lost = Lost::Collection(collection, entry, order);
        let why = RefWhy { lost, ..RefWhy::plain(&why, self.frond().time_millis()) };
        RefChange { from: state.head_id(), to: state.head_id(), why }.log(transaction, name, branch)
    }
}

/// Says that a branch has gone on since a change that is to be undone.
fn gone_on(branch: &str, change: &RefChangeInfo) -> Error {
    let message = format!(
        "{branch} is not at the commit to which the change '{}' brought it: undo what came after it \
         first",
        change.why
    );
    Error::invalid(Code::IllegalOperation, message)
}

fn nothing_to_undo(branch: &str, change: Option<u64>, moved: Option<&RefChangeInfo>) -> Error {
    let message = match change {
        _ if moved.is_some_and(|moved| change.is_none_or(|change| change <= moved.change)) => {
            format!(
                "{branch} came here from another line, and what was done before can't be undone \
                 here: reset it to a commit instead"
            )
        }
        Some(change) => format!("the reflog of {branch} has no change {change}"),
        None => format!("the reflog of {branch} has nothing that could be undone"),
    };
    Error::invalid(Code::NoSuchKey, message)
}

/// The change that is named; or the newest that is neither an undoing nor undone. `changes` come
/// newest first.
fn find(changes: &[RefChangeInfo], change: Option<u64>) -> Option<&RefChangeInfo> {
    if let Some(change) = change {
        return changes.iter().find(|each| each.change == change);
    }
    reflog::standing(changes).map(|(_, change)| change).find(|change| is_undoable(change))
}

/// Whether `change` undid a drop: it has moved no ref, and replaced no working state.
fn brought_back(change: &RefChangeInfo) -> bool {
    change.undid.is_some() && change.from == change.to && change.lost.is_none()
}

/// A branch's beginning has nothing before it.
fn is_undoable(change: &RefChangeInfo) -> bool {
    change.from.is_some() || change.lost.is_some() || change.why.starts_with("commit")
}

impl BranchState {
    /// The chunk of a collection's entry as the working state has it at `snapshot`, and the order
    /// of a capped one; only its trees are folded.
    ///
    /// # Errors
    /// As the engine's `fold`; `Unavailable` if the store takes no chunks; `Damaged` if HEAD's
    /// catalog can't be read.
    pub fn entry_now(
        &self,
        engine: &frond_engine::Engine,
        snapshot: &frond_engine::Snapshot,
        collection: &str,
    ) -> Result<Option<(ChunkHash, Option<ChunkHash>)>, Error> {
        let store = engine.store();
        match self.entry(collection) {
            Some(WorkingEntry::Dropped) => Ok(None),
            Some(WorkingEntry::Live(live)) => {
                let folded = engine.fold(snapshot, &live.trees())?;
                let order = folded.last().filter(|_| live.order.is_some()).map(|order| order.root);
                let chunk = state::committed_form(live, folded.into_iter())?.encode();
                store.put_many(std::slice::from_ref(&chunk))?;
                Ok(Some((chunk.hash(), order)))
            }
            None => {
                let head = self.head_catalog(&**store)?;
                let entry = state::catalog_entry(store, &head, collection)?;
                Ok(entry.map(|entry| (entry.encode().hash(), None)))
            }
        }
    }
}
