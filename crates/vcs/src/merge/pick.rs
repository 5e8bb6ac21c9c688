//! Cherry-pick and revert: what one commit did, done again or undone, as a commit of its own.
//!
//! Both are a replay ([`crate::merge::replay`]) of one step on top of HEAD. Of a merge commit the
//! caller must say which parent it is compared with.

use std::collections::BTreeMap;

use frond_db::inside::merge_rules::MergeRules;
use frond_db::inside::refs::{self, shallow};
use frond_db::inside::{Commit, Error, Reader};
use frond_engine::Transaction;
use frond_query::Code;
use frond_tree::Tree;

use crate::commit::AUTHOR_DEFAULT;
use crate::conflict::MergeKind;
use crate::history::base;
use crate::merge::catalogs::CatalogMerge;
use crate::merge::replay::Replay;
use crate::repository::Repository;
use crate::state::BranchState;
use crate::three_way::ThreeWay;
use crate::{MergeOutcome, history};

/// The direction: to do the commit's changes again or to undo them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PickKind {
    /// Do again what the commit did.
    #[default]
    Pick,
    /// Undo what the commit did.
    Revert,
}

/// The commit to pick or revert, and the options.
#[derive(Clone, Debug, Default)]
pub struct PickRequest {
    /// The commit.
    pub revision: String,
    /// Pick or revert.
    pub kind: PickKind,
    /// The parent with which a merge is compared, counted from 1; 0 is what merging the parents
    /// gives by itself, so that only what was decided beside it is picked or reverted.
    pub parent: Option<u32>,
    /// The new commit's message; default: the commit's own, or that it was reverted.
    pub message: Option<String>,
    /// Its author; default: the commit's own, of a revert `frond`.
    pub author: Option<String>,
    /// The rules for merging documents, where they aren't the usual ones.
    pub rules: MergeRules,
    /// Fail if the branch has changes that are not committed, instead of committing them first.
    pub refuse_dirty: bool,
}

impl Repository {
    /// Does again, or undoes, what one commit did. Changes that are not committed become a commit
    /// of their own first, in the same transaction: a branch that clients write to is never clean
    /// for long.
    ///
    /// # Errors
    /// `BadValue` if the revision names no commit, or a merge and no parent was named;
    /// `NoProgressMade` if the commit would change nothing; `UserWritesBlocked` if this is a
    /// commit; `IllegalOperation` if it has changes that it is to refuse, or a merge waits;
    /// `OperationFailed` if the result can't be.
    pub fn pick(&self, request: &PickRequest) -> Result<MergeOutcome, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        let replayed = self.replace_working_state(branch, |transaction| {
            self.refuse_closed(transaction)?;
            if refs::repository(&self.reader(), name)?.is_none() {
                let message = format!("no branch or revision {} in {name}", request.revision);
                return Err(Error::invalid(Code::BadValue, message));
            }
            let mut state = BranchState::validated(self.frond(), transaction, name, branch)?;
            state.refuse_while_merging("a pick or a revert")?;
            // As it is named now, HEAD too.
            let chunk = self.revision(&Reader::within(engine, transaction), &request.revision)?;
            shallow::refuse(&**engine.store(), chunk, "a pick or a revert")?;
            let picked = history::load(&**engine.store(), chunk)?;
            let kind = match request.kind {
                PickKind::Pick => MergeKind::Pick,
                PickKind::Revert => MergeKind::Revert,
            };
            if !request.refuse_dirty && !state.is_clean(engine, transaction)? {
                let author = request.author.as_deref().unwrap_or(AUTHOR_DEFAULT);
                let act = format!("a {} of {}", kind.verb(), request.revision);
                self.commit_working(transaction, &mut state, &act, author)?;
            }
            let clean = state.clean_catalog(engine, transaction)?;
            let first_line = picked.message.lines().next().unwrap_or_default();
            let text = match (&request.message, request.kind) {
                (Some(message), _) => message.lines().next().unwrap_or_default().to_owned(),
                (None, PickKind::Pick) => first_line.to_owned(),
                (None, PickKind::Revert) => format!("Revert \"{first_line}\""),
            };
            let replay = Replay {
                database: self,
                state: &state,
                kind,
                parent: request.parent,
                why: format!("{}: {text}", kind.verb()),
                rules: &request.rules,
                message: request.message.as_deref(),
                author: request.author.as_deref(),
                working: clean,
                before: clean,
                skipped: None,
                tip: state.head_chunk(),
                catalog: clean,
                made: Vec::new(),
                set_aside: Vec::new(),
            };
            replay.run(transaction, &[chunk], &BTreeMap::new())
        })?;
        replayed.outcome()
    }

    /// Returns the catalog that a commit is compared with: a parent's, or the empty one.
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
            (Some(0), 2) => return self.merged_alone(state, commit),
            (Some(number), _) => (number as usize).wrapping_sub(1),
        };
        let Some(parent) = commit.parents.get(position) else {
            let message = format!("the commit has {} parents", commit.parents.len());
            return Err(Error::invalid(Code::BadValue, message));
        };
        Ok(history::load(store, *parent)?.catalog)
    }

    /// What merging the two parents of a commit gives by itself: the first one's where both sides
    /// conflict. What the commit has beside that was decided when the merge was concluded.
    ///
    /// # Errors
    /// `IllegalOperation` if the merge needs decisions about the schema.
    fn merged_alone(&self, state: &BranchState, commit: &Commit) -> Result<Tree, Error> {
        let store = self.frond().engine().store();
        let mut load = |hash| history::load(&**store, hash);
        let [ours, theirs] = [load(commit.parents[0])?, load(commit.parents[1])?];
        let bases = base::merge_bases(&commit.parents[..1], commit.parents[1], &mut load)?;
        let (rules, decisions) = (MergeRules::default(), BTreeMap::new());
        let format = state.repository.format();
        let merge = CatalogMerge {
            database: self,
            format,
            rules: &rules,
            decisions: &decisions,
            by_rules: true,
        };
        let base = merge.base_catalog(store, &bases)?;
        let merged = merge.merge(ThreeWay::new(&base, &ours.catalog, &theirs.catalog))?;
        if !merged.schema.is_empty() {
            let message = "the merge needed decisions about collections, so what it would have \
                           been without them isn't known: name a parent";
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        Ok(merged.catalog)
    }
}

impl BranchState {
    /// Whether the working state is HEAD's.
    ///
    /// # Errors
    /// As [`BranchState::working_catalog`].
    fn is_clean(
        &self,
        engine: &frond_engine::Engine,
        transaction: &Transaction,
    ) -> Result<bool, Error> {
        let working = self.working_catalog(engine, transaction.snapshot())?;
        Ok(working.root == self.head_catalog(&**engine.store())?.root)
    }

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
        if self.is_clean(engine, transaction)? {
            return Ok(working);
        }
        let message = format!(
            "{} has changes that are not committed: commit them or reset the branch first",
            self.branch
        );
        Err(Error::invalid(Code::IllegalOperation, message))
    }
}
