//! Merging another version into a branch.
//!
//! 1. Read the branch; its working state must be HEAD's, so that every change of it is in a commit:
//!    what isn't committed yet is, first, in the same transaction, unless the request refuses that.
//! 2. Nothing to merge if the other commit is an ancestor of HEAD. If HEAD is one of the other, the
//!    branch moves there (fast-forward), unless a merge commit is asked for.
//! 3. Otherwise merge three ways, from the best common ancestor (of several, from their merge): the
//!    collections that the other side changed since, their specifications, their documents field by
//!    field; index entries derive from the merged documents. The result is a catalog, made of trees
//!    in which only changes are new.
//! 4. Without conflicts: a commit with two parents; one transaction moves the ref and gives the
//!    live collections their new bases, so that readers see all of it at once.
//! 5. With conflicts: one transaction makes the working state the merged catalog, ours kept where
//!    both sides conflict, and stores the merge and its conflicts. The branch's HEAD stays.
//!
//! *Concurrency*: a new base conflicts with every write to its tree since the transaction's
//! snapshot. Then all runs again, with the working state that it finds.
//!
//! 6. Conflicts of the schema (a collection dropped on one side and changed on the other, or
//!    renamed on one and renamed otherwise or dropped on the other; options or an index changed
//!    differently on both) wait alone, and nothing else is merged before they are decided: then it
//!    all runs again with the decisions.
//!
//! *Squash*: the merge is a commit of one parent. *Refused as a whole*, with nothing changed: more
//! indexes than there may be, documents that become too large. The error names all of them.

pub(crate) mod catalogs;
pub(crate) mod collection;
pub(crate) mod field_rule;
pub(crate) mod fields;
pub(crate) mod judged;
pub(crate) mod notes;
pub(crate) mod pick;
pub(crate) mod rebase;
mod renames;
pub(crate) mod replay;
pub(crate) mod resolve;
mod reused_names;
pub(crate) mod waiting;

use std::collections::BTreeMap;

use frond_db::inside::merge_rules::MergeSide;
use frond_db::inside::refs::{self, format};
use frond_db::inside::{Commit, Error, LatchMode, Outcome, Reader, Scope};
use frond_engine::{Durability, Transaction};
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::Tree;

use crate::adopt::Adoption;
use crate::commit::{AUTHOR_DEFAULT, Signature};
use crate::conflict::{self, MergeKind, MergeState, StoredConflict};
use crate::history::base;
use crate::merge::catalogs::{CatalogMerge, MergedCatalog};
use crate::merge::judged::JudgedMerge;
use crate::merge::replay::Resume;
use crate::refs::branch_move::BranchMove;
use crate::refs::reflog::RefWhy;
use crate::repository::Repository;
use crate::state::BranchState;
use crate::three_way::ThreeWay;
use crate::{MergeOutcome, MergeRequest, history};

impl Repository {
    /// Merges another version into this branch. Changes that aren't committed are, first.
    ///
    /// # Errors
    /// `BadValue` if `merge_in` names no commit; `UserWritesBlocked` if this is a commit;
    /// `IllegalOperation` if the working state has changes, another merge waits, or the request
    /// wants a fast-forward only and there is none; `OperationFailed` if the result can't be (a
    /// document that is too large): then nothing was changed, and the details' `conflicts` say why.
    pub fn merge(&self, request: &MergeRequest) -> Result<MergeOutcome, Error> {
        self.merge_decided(request, None, Extent::Whole)
    }

    /// Returns how a merge would end, and changes nothing: it is made, and not committed. The
    /// commit that the outcome names doesn't exist.
    ///
    /// # Errors
    /// As [`Repository::merge`].
    pub fn preview_merge(&self, request: &MergeRequest) -> Result<MergeOutcome, Error> {
        self.merge_decided(request, None, Extent::Preview)
    }

    /// Merges; with `decisions`, those of a merge that waits, which this one then replaces.
    fn merge_decided(
        &self,
        request: &MergeRequest,
        decisions: Option<&BTreeMap<String, MergeSide>>,
        extent: Extent,
    ) -> Result<MergeOutcome, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let message = match &request.message {
            Some(message) => message.clone(),
            None => format!("Merge {} into {branch}", request.merge_in),
        };
        let author = request.author.as_deref().unwrap_or(AUTHOR_DEFAULT);
        let signature = Signature::new(author, &message, self.frond().time_millis())?;
        let merged = self.replace_working_state(branch, |transaction| {
            if refs::repository(&self.reader(), name)?.is_none() {
                return Err(nothing_there(&request.merge_in, name));
            }
            let mut state = BranchState::validated(self.frond(), transaction, name, branch)?;
            if let Some(judged) = &request.judged {
                judged.check(&state)?;
            }
            let waits = state.merging.as_ref().map(|merge| &merge.decisions);
            if decisions.is_some() && waits == Some(&decisions.cloned()) {
                conflict::clear(self.frond().engine(), transaction, name, branch)?;
                state.merging = None;
            }
            let none = BTreeMap::new();
            let decisions = decisions.unwrap_or(&none);
            let merge = Merge { database: self, state: &state, request, signature, decisions };
            let outcome = match merge.run(transaction)? {
                // In the same transaction: busy writers would make it dirty again before another
                // one.
                Outcome::Discard(None) if !request.refuse_dirty => {
                    let act = format!("merging {}", request.merge_in);
                    self.commit_working(transaction, &mut state, &act, author)?;
                    Merge { database: self, state: &state, request, signature, decisions }
                        .run(transaction)?
                }
                outcome => outcome,
            };
            Ok(match (outcome, extent) {
                (Outcome::Commit(outcome), Extent::Preview) => Outcome::Discard(outcome),
                (outcome, _) => outcome,
            })
        })?;
        merged.ok_or_else(|| {
            let message = format!(
                "{branch} has changes that are not committed: commit them or reset the branch first"
            );
            Error::invalid(Code::IllegalOperation, message)
        })
    }

    /// Makes a commit of what the branch has not committed, before `act`: HEAD of what `state` says
    /// from then on.
    pub(super) fn commit_working(
        &self,
        transaction: &mut Transaction,
        state: &mut BranchState,
        act: &str,
        author: &str,
    ) -> Result<(), Error> {
        let engine = self.frond().engine();
        let catalog = state.working_catalog(engine, transaction.snapshot())?;
        let message = format!("Working state of {} before {act}", state.branch);
        let signature = Signature::new(author, &message, self.frond().time_millis())?;
        let parents: Vec<ChunkHash> = state.head_chunk().into_iter().collect();
        let (chunk, _) = self.make_commit(transaction, catalog, &parents, &signature)?;
        // If the merge is made in this transaction, its own move of the branch takes the place of
        // this one.
        state.record(transaction, &chunk, &signature.why("commit"), &signature)?;
        state.head = Some((chunk.hash(), Commit::decode(&chunk)?));
        Ok(())
    }

    /// Ends a merge whose conflicts are all resolved: a commit, of two parents unless it was a
    /// squash. A pick, a revert or a rebase goes on, and may wait again. Where the schema's were
    /// resolved, it goes on with the documents, and may wait again.
    ///
    /// # Errors
    /// `IllegalOperation` if no merge waits, or conflicts are left.
    pub fn merge_continue(
        &self,
        message: Option<&str>,
        author: Option<&str>,
    ) -> Result<MergeOutcome, Error> {
        self.merge_continue_judged(message, author, None)
    }

    /// As [`Repository::merge_continue`], if all is as it was when that was judged.
    ///
    /// # Errors
    /// As there; `ConflictingOperationInProgress` (117) if the branch has changed.
    pub fn merge_continue_judged(
        &self,
        message: Option<&str>,
        author: Option<&str>,
        judged: Option<&JudgedMerge>,
    ) -> Result<MergeOutcome, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let reader = self.reader();
        if refs::branch_ref(&reader, name, branch)?.is_none() {
            return Err(conflict::no_merge(branch));
        }
        let waiting = BranchState::read(&reader, name, branch)?.merging;
        let Some(merge) = waiting else {
            return Err(conflict::no_merge(branch));
        };
        if merge.kind.is_replay() {
            return Ok(self.resume_replay(Resume::Continue(judged), message, author)?.0);
        }
        if let Some(decisions) = &merge.decisions {
            conflict::refuse_left(&conflict::counts(&reader, name, branch)?)?;
            let request = MergeRequest {
                merge_in: merge.theirs.to_string(),
                message: Some(message.unwrap_or(&merge.message).to_owned()),
                author: Some(author.unwrap_or(&merge.author).to_owned()),
                squash: merge.kind == MergeKind::Squash,
                rules: merge.rules.clone(),
                judged: judged.cloned(),
                ..MergeRequest::default()
            };
            return self.merge_decided(&request, Some(decisions), Extent::Whole);
        }
        self.end_merge(branch, [message, author], judged)
    }

    fn end_merge(
        &self,
        branch: &str,
        [message, author]: [Option<&str>; 2],
        judged: Option<&JudgedMerge>,
    ) -> Result<MergeOutcome, Error> {
        let name = self.repository_name();
        let engine = self.frond().engine();
        let scope = Scope::branch(name, branch);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            let Some(merge) = state.merging.as_ref().filter(|merge| merge.decisions.is_none())
            else {
                return Err(conflict::no_merge(branch));
            };
            let catalog = state.working_catalog(engine, transaction.snapshot())?;
            if let Some(judged) = judged {
                judged.check_waiting(&state, merge, &catalog)?;
            }
            let (conflicts, theirs) = {
                let reader = Reader::within(engine, transaction);
                let theirs = refs::commit_chunk(&reader, name, &merge.theirs)?;
                (conflict::counts(&reader, name, branch)?, theirs)
            };
            conflict::refuse_left(&conflicts)?;
            let theirs = theirs.ok_or_else(|| {
                Error::damaged(format!("the commit {} that is merged is not known", merge.theirs))
            })?;
            let mut signature = Signature::new(
                author.unwrap_or(&merge.author),
                message.unwrap_or(&merge.message),
                self.frond().time_millis(),
            )?;
            signature.reverts = (merge.kind == MergeKind::Revert).then_some(merge.theirs);
            let other = (merge.kind == MergeKind::Merge).then_some(theirs);
            let parents: Vec<ChunkHash> = state.head_chunk().into_iter().chain(other).collect();
            let (chunk, commit) = self.make_commit(transaction, catalog, &parents, &signature)?;
            state.forget_dropped(transaction)?;
            conflict::clear(engine, transaction, name, branch)?;
            state.register(transaction, &chunk)?;
            let why = signature.why("merge");
            // The reflog keeps the working state as it would be without the merge.
            let before = self.without_merge(merge, catalog)?.catalog;
            let why = RefWhy::replacing(&why, signature.time_millis, before);
            state.move_ref(transaction, chunk.hash(), why)?;
            Ok(Outcome::Commit(MergeOutcome::Merged { commit }))
        })
    }
}

fn nothing_there(merge_in: &str, database: &str) -> Error {
    Error::invalid(Code::BadValue, format!("no branch or revision {merge_in} in {database}"))
}

/// The extent of a merge.
#[derive(Clone, Copy)]
enum Extent {
    Whole,
    /// The result is discarded.
    Preview,
}

/// A merge into a branch, within a transaction.
struct Merge<'a> {
    database: &'a Repository,
    state: &'a BranchState,
    request: &'a MergeRequest,
    signature: Signature<'a>,
    /// Conflicts of the schema that were decided, by id.
    decisions: &'a BTreeMap<String, MergeSide>,
}

/// A commit and its chunk's name.
struct Side {
    chunk: ChunkHash,
    commit: Commit,
}

impl Merge<'_> {
    /// Merges; answers `None` and does nothing if the working state is not HEAD's.
    fn run(&self, transaction: &mut Transaction) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        self.state.refuse_while_merging("another merge")?;
        let engine = self.database.frond().engine();
        let store = engine.store();
        let theirs = {
            let reader = Reader::within(engine, transaction);
            let judged = self.request.judged.as_ref().and_then(JudgedMerge::theirs);
            let chunk = match judged {
                Some(id) => self.database.revision(&reader, &id.to_string())?,
                None => self.database.revision(&reader, &self.request.merge_in)?,
            };
            Side { chunk, commit: history::load(&**store, chunk)? }
        };
        let Some((ours, head)) = &self.state.head else {
            let Some(clean) = self.clean_catalog(transaction)? else {
                return Ok(Outcome::Discard(None));
            };
            return self.fast_forward(transaction, &theirs, clean);
        };
        let mut load = |hash| history::load(&**store, hash);
        let bases = base::merge_bases(&[*ours], theirs.chunk, &mut load)?;
        let base = bases.first().copied();
        if base == Some(theirs.chunk) {
            let head = format::id_of(*ours);
            return Ok(Outcome::Discard(Some(MergeOutcome::UpToDate { head })));
        }
        let Some(clean) = self.clean_catalog(transaction)? else {
            return Ok(Outcome::Discard(None));
        };
        let forward = !self.request.no_fast_forward && !self.request.squash;
        if base == Some(*ours) && forward {
            return self.fast_forward(transaction, &theirs, clean);
        }
        if self.request.fast_forward_only {
            let message = format!(
                "{} has commits that {} lacks: a fast-forward is not possible",
                self.state.branch, self.request.merge_in
            );
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        let merge = CatalogMerge {
            database: self.database,
            format: self.state.repository.format(),
            rules: &self.request.rules,
            decisions: self.decisions,
            by_rules: true,
        };
        let base = merge.base_catalog(store, &bases)?;
        let catalogs = ThreeWay::new(&base, &head.catalog, &theirs.commit.catalog);
        let merged = merge.merge(catalogs)?;
        if !merged.schema.is_empty() {
            self.wait_for_decisions(transaction, clean, &merged.schema, theirs.chunk)
        } else if merged.conflicts.is_empty() || self.request.rules.on_conflict.is_some() {
            self.record(transaction, clean, merged.catalog, *ours, theirs.chunk)
        } else {
            let both_ways = merge.both_ways(catalogs, &merged)?;
            self.wait(transaction, clean, &merged, both_ways, theirs.chunk)
        }
    }

    /// The catalog of the working state, if it is HEAD's.
    fn clean_catalog(&self, transaction: &Transaction) -> Result<Option<Tree>, Error> {
        let engine = self.database.frond().engine();
        let working = self.state.working_catalog(engine, transaction.snapshot())?;
        let head = self.state.head_catalog(&**engine.store())?;
        Ok((working.root == head.root).then_some(working))
    }

    fn fast_forward(
        &self,
        transaction: &mut Transaction,
        theirs: &Side,
        clean: Tree,
    ) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        let catalog = theirs.commit.catalog;
        let act = (&*self.state.branch, BranchMove::FastForward);
        self.database.check_move(transaction, act, (&clean, &catalog))?;
        let adoption = Adoption { head: catalog, before: clean, after: catalog };
        self.state.adopt(self.database.frond().engine(), transaction, &adoption)?;
        let why = format!("merge {}: fast-forward", self.request.merge_in);
        let why = RefWhy::replacing(&why, self.signature.time_millis, clean);
        self.state.move_ref(transaction, theirs.chunk, why)?;
        let head = format::id_of(theirs.chunk);
        Ok(Outcome::Commit(Some(MergeOutcome::FastForward { head })))
    }

    fn record(
        &self,
        transaction: &mut Transaction,
        clean: Tree,
        catalog: Tree,
        ours: ChunkHash,
        theirs: ChunkHash,
    ) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        let engine = self.database.frond().engine();
        let adoption = Adoption { head: catalog, before: clean, after: catalog };
        self.state.adopt(engine, transaction, &adoption)?;
        let parents = [ours, theirs];
        let parents = if self.request.squash { &parents[..1] } else { &parents };
        let (chunk, commit) =
            self.database.make_commit(transaction, catalog, parents, &self.signature)?;
        let why = self.signature.why("merge");
        self.state.register(transaction, &chunk)?;
        let why = RefWhy::replacing(&why, self.signature.time_millis, clean);
        self.state.move_ref(transaction, chunk.hash(), why)?;
        Ok(Outcome::Commit(Some(MergeOutcome::Merged { commit })))
    }

    fn wait(
        &self,
        transaction: &mut Transaction,
        clean: Tree,
        merged: &MergedCatalog,
        both_ways: Vec<ChunkHash>,
        theirs: ChunkHash,
    ) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        let adoption = Adoption { head: clean, before: clean, after: merged.catalog };
        self.state.adopt(self.database.frond().engine(), transaction, &adoption)?;
        let merge = self.waiting(theirs, (clean, both_ways), &merged.conflicts, None);
        self.store(transaction, &merge, &merged.conflicts)
    }

    /// Lets the merge wait for decisions about the schema; the working state stays as it is.
    fn wait_for_decisions(
        &self,
        transaction: &mut Transaction,
        clean: Tree,
        schema: &[StoredConflict],
        theirs: ChunkHash,
    ) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        let catalogs = (clean, vec![clean.root]);
        let merge = self.waiting(theirs, catalogs, schema, Some(self.decisions.clone()));
        self.store(transaction, &merge, schema)
    }

    fn waiting(
        &self,
        theirs: ChunkHash,
        (before, merged): (Tree, Vec<ChunkHash>),
        conflicts: &[StoredConflict],
        decisions: Option<BTreeMap<String, MergeSide>>,
    ) -> MergeState {
        MergeState {
            theirs: format::id_of(theirs),
            message: self.signature.message.to_owned(),
            author: self.signature.author.to_owned(),
            kind: if self.request.squash { MergeKind::Squash } else { MergeKind::Merge },
            parent: None,
            tip: None,
            rest: Vec::new(),
            why: String::new(),
            before: before.root,
            merged,
            rules: self.request.rules.clone(),
            decisions,
            remaining: conflicts.len() as u64,
        }
    }

    fn store(
        &self,
        transaction: &mut Transaction,
        merge: &MergeState,
        conflicts: &[StoredConflict],
    ) -> Result<Outcome<Option<MergeOutcome>>, Error> {
        let (database, branch) = (&self.state.database, &self.state.branch);
        self.database.frond().engine().store().sync()?;
        conflict::store(transaction, database, branch, merge, conflicts)?;
        let counts = conflict::count_all(conflicts);
        Ok(Outcome::Commit(Some(MergeOutcome::Conflicts { counts })))
    }
}
