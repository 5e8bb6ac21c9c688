//! Cherry-pick and revert: what one commit did, done again or undone, as a commit of its own.
//!
//! Both are three-way merges with HEAD as ours. To pick a commit, its parent is the base and itself
//! theirs; to revert it, the other way round. So both merge field by field, keep indexes right and
//! may conflict, and a conflict waits as a merge's does; continued, it is a commit of one parent.
//!
//! Of a merge commit somebody must say which parent it is compared with. Conflicts of the schema
//! refuse, unless a side is preferred.

use std::collections::BTreeMap;

use frond_engine::Transaction;
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::Tree;

use crate::contention::Outcome;
use crate::database::{self, Database};
use crate::error::Error;
use crate::reader::Reader;
use crate::version::adopt::Adoption;
use crate::version::commit::{self, AUTHOR_DEFAULT, Signature};
use crate::version::conflict::{self, MergeKind, MergeState};
use crate::version::format::{self, Commit};
use crate::version::merge_catalogs::{CatalogMerge, MergedCatalog};
use crate::version::merge_rules::MergeRules;
use crate::version::reflog::RefWhy;
use crate::version::state::BranchState;
use crate::version::{MergeOutcome, history, shallow};

/// Whether to do again or to undo.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PickKind {
    /// Do again what the commit did.
    #[default]
    Pick,
    /// Undo what the commit did.
    Revert,
}

/// Which commit to pick or revert, and how.
#[derive(Clone, Debug, Default)]
pub struct PickRequest {
    /// The commit.
    pub revision: String,
    /// Pick or revert.
    pub kind: PickKind,
    /// Of a merge: which parent it is compared with, counted from 1.
    pub parent: Option<u32>,
    /// The new commit's message; default: the commit's own, or that it was reverted.
    pub message: Option<String>,
    /// Its author; default: the commit's own, of a revert nobody.
    pub author: Option<String>,
    /// How documents are merged, where not as usual.
    pub rules: MergeRules,
}

impl Database {
    /// Does again, or undoes, what one commit did. The branch must have no changes that are not
    /// committed.
    ///
    /// # Errors
    /// `BadValue` if the revision names no commit, or a merge and no parent was named, or the commit
    /// would change nothing; `IllegalOperation` if this is a commit, has changes, or a merge waits;
    /// `OperationFailed` if the schema conflicts, `DuplicateKey` if a unique index does.
    pub fn pick(&self, request: &PickRequest) -> Result<MergeOutcome, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        self.replace_working_state(branch, |transaction| {
            if database::repository(&self.reader(), name)?.is_none() {
                let message = format!("no branch or revision {} in {name}", request.revision);
                return Err(Error::invalid(Code::BadValue, message));
            }
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            state.refuse_while_merging("a pick or a revert")?;
            let clean = state.clean_catalog(engine, transaction)?;
            let chunk = self.revision(&Reader::within(engine, transaction), &request.revision)?;
            shallow::refuse(&**engine.store(), chunk, "a pick or a revert")?;
            let picked = history::load(&**engine.store(), chunk)?;
            let merged = self.merge_picked(&state, &clean, &picked, request)?;
            self.record_picked(transaction, &state, clean, &merged, (chunk, &picked), request)
        })
    }

    fn merge_picked(
        &self,
        state: &BranchState,
        ours: &Tree,
        picked: &Commit,
        request: &PickRequest,
    ) -> Result<MergedCatalog, Error> {
        let before = self.catalog_before(state, picked, request.parent)?;
        let (base, theirs) = match request.kind {
            PickKind::Pick => (&before, &picked.catalog),
            PickKind::Revert => (&picked.catalog, &before),
        };
        let decisions = BTreeMap::new();
        let merge = CatalogMerge {
            database: self,
            format: state.repository.format(),
            rules: &request.rules,
            decisions: &decisions,
        };
        let merged = merge.merge([base, ours, theirs])?;
        if let Some(conflict) = merged.schema.first() {
            let message = format!(
                "can't {} {}: collection {} was changed on both sides ({}): prefer a side, or \
                 change it by hand first",
                request.kind.verb(),
                request.revision,
                self.namespace(&conflict.collection),
                conflict.kind.name()
            );
            return Err(Error::invalid(Code::OperationFailed, message));
        }
        Ok(merged)
    }

    /// What a commit is compared with: a parent's catalog, or the empty one.
    pub(crate) fn catalog_before(
        &self,
        state: &BranchState,
        commit: &Commit,
        parent: Option<u32>,
    ) -> Result<Tree, Error> {
        let store = &**self.frond().engine().store();
        let position = match (parent, commit.parents.len()) {
            (None, 0) => return Ok(Tree::empty(store, state.repository.format())?),
            (None, 1) => 0,
            (None, _) => {
                let message = "the commit is a merge: name the parent that it is compared with";
                return Err(Error::invalid(Code::BadValue, message));
            }
            (Some(number), _) => (number as usize).wrapping_sub(1),
        };
        let Some(parent) = commit.parents.get(position) else {
            let message = format!("the commit has {} parents", commit.parents.len());
            return Err(Error::invalid(Code::BadValue, message));
        };
        Ok(history::load(store, *parent)?.catalog)
    }

    fn record_picked(
        &self,
        transaction: &mut Transaction,
        state: &BranchState,
        clean: Tree,
        merged: &MergedCatalog,
        (chunk, picked): (ChunkHash, &Commit),
        request: &PickRequest,
    ) -> Result<Outcome<MergeOutcome>, Error> {
        let engine = self.frond().engine();
        let (name, branch) = (self.repository_name(), state.branch.as_str());
        let id = format::id_of(chunk);
        let first_line = picked.message.lines().next().unwrap_or_default();
        let reverts = format!("Revert \"{first_line}\"\n\nThis undoes what commit {id} did.");
        let is_pick = request.kind == PickKind::Pick;
        let own = if is_pick { picked.message.as_str() } else { &reverts };
        let message = request.message.as_deref().unwrap_or(own);
        let nobody = if is_pick { picked.author.as_str() } else { AUTHOR_DEFAULT };
        let author = request.author.as_deref().unwrap_or(nobody);
        let mut signature = Signature::new(author, message, self.frond().now_millis())?;
        if is_pick {
            let authored = picked.authored_millis.unwrap_or(picked.timestamp_millis);
            signature.authored_millis = Some(authored);
        }
        if !merged.conflicts.is_empty() {
            let adoption = Adoption { head: clean, before: clean, after: merged.catalog };
            state.adopt(engine, transaction, &adoption)?;
            let merge = MergeState {
                theirs: id,
                message: message.to_owned(),
                author: author.to_owned(),
                kind: MergeKind::Pick,
                rules: request.rules.clone(),
                decisions: None,
                remaining: merged.conflicts.len() as u64,
            };
            conflict::store(transaction, name, branch, &merge, &merged.conflicts)?;
            let counts = conflict::count_all(&merged.conflicts);
            return Ok(Outcome::Commit(MergeOutcome::Conflicts { counts }));
        }
        if merged.catalog.root == clean.root {
            let message = format!("nothing to {}: {branch} has it already", request.kind.verb());
            return Err(Error::invalid(Code::BadValue, message));
        }
        let catalog = merged.catalog;
        let adoption = Adoption { head: catalog, before: clean, after: catalog };
        state.adopt(engine, transaction, &adoption)?;
        let parents: Vec<ChunkHash> = state.head_chunk().into_iter().collect();
        let (chunk, commit) = commit::make(engine, catalog, &parents, &signature)?;
        state.register(transaction, &chunk)?;
        let why = signature.why(request.kind.verb());
        let why = RefWhy::replacing(&why, signature.time_millis, clean);
        state.move_ref(transaction, chunk.hash(), why)?;
        Ok(Outcome::Commit(MergeOutcome::Merged { commit }))
    }
}

impl PickKind {
    fn verb(self) -> &'static str {
        match self {
            PickKind::Pick => "cherry-pick",
            PickKind::Revert => "revert",
        }
    }
}

impl BranchState {
    /// The catalog of the working state, which must be HEAD's.
    ///
    /// # Errors
    /// `IllegalOperation` if there are changes that are not committed.
    pub fn clean_catalog(
        &self,
        engine: &frond_engine::Engine,
        transaction: &Transaction,
    ) -> Result<Tree, Error> {
        let working = self.working_catalog(engine, transaction.snapshot())?;
        if working.root == self.head_catalog(&**engine.store())?.root {
            return Ok(working);
        }
        let message = format!(
            "{} has changes that are not committed: commit them or reset the branch first",
            self.branch
        );
        Err(Error::invalid(Code::IllegalOperation, message))
    }
}
