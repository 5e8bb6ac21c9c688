//! Rebase: the commits that this branch has and another version hasn't, made again on top of that.
//!
//! It is a replay ([`crate::merge::replay`]) of these commits, the oldest first. A commit that
//! would change nothing is left out; merges are left out too, since what they brought is there or
//! picked by itself. One that conflicts waits until it is resolved and continued, or skipped, or
//! all is given up.

use std::collections::BTreeMap;

use frond_db::inside::merge_rules::MergeRules;
use frond_db::inside::refs::{self, format};
use frond_db::inside::{CommitId, Error, Outcome, Reader};
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::Tree;

use crate::conflict::MergeKind;
use crate::history::base;
use crate::history::walk::Walk;
use crate::merge::replay::{Replay, Replayed};
use crate::refs::branch_move::BranchMove;
use crate::repository::Repository;
use crate::state::BranchState;
use crate::{CommitInfo, history};

/// The number of commits above which they are not rebased at once.
const COMMITS_MAX: usize = 10_000;

/// The result of a rebase.
#[derive(Clone, Debug)]
pub struct Rebased {
    /// The commit that the branch is at once it is done.
    pub head: CommitId,
    /// The commits that were made, the oldest first.
    pub commits: Vec<CommitInfo>,
    /// Conflicts that wait, a collection; the branch hasn't moved then.
    pub conflicts: Vec<(String, u64)>,
}

impl Repository {
    /// Makes this branch's own commits again on top of `onto`.
    ///
    /// # Errors
    /// `BadValue` if `onto` names no commit; `UserWritesBlocked` if this is a commit;
    /// `IllegalOperation` if it is protected, has changes that aren't committed, or a merge waits.
    pub fn rebase(&self, onto: &str, rules: &MergeRules) -> Result<Rebased, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        let replayed = self.replace_working_state(branch, |transaction| {
            if refs::repository(&self.reader(), name)?.is_none() {
                let message = format!("no branch or revision {onto} in {name}");
                return Err(Error::invalid(Code::BadValue, message));
            }
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            state.refuse_while_merging("a rebase")?;
            let onto_chunk = self.revision(&Reader::within(engine, transaction), onto)?;
            if !self.is_forward(&state, onto_chunk)? {
                state.refuse_protected(transaction, self, "a rebase")?;
            }
            let clean = state.clean_catalog(engine, transaction)?;
            let own = self.own_commits(&state, onto_chunk)?;
            let catalog = history::load(&**engine.store(), onto_chunk)?.catalog;
            let act = (branch, BranchMove::FastForward);
            if own.is_empty() {
                self.check_move(transaction, act, (&clean, &catalog))?;
            } else {
                let changed = || Ok(Some((self.base_of(&state, onto_chunk)?, catalog)));
                self.check_brought(transaction, act, changed)?;
            }
            let replay = Replay {
                database: self,
                state: &state,
                kind: MergeKind::Rebase,
                parent: None,
                why: format!("rebase: onto {onto}"),
                rules,
                message: None,
                author: None,
                working: clean,
                before: clean,
                skipped: None,
                tip: Some(onto_chunk),
                catalog,
                made: Vec::new(),
                set_aside: Vec::new(),
            };
            replay.run(transaction, &own, &BTreeMap::new()).map(|outcome| match outcome {
                Outcome::Commit(done) => Outcome::Commit((done, onto_chunk)),
                Outcome::Discard(done) => Outcome::Discard((done, onto_chunk)),
            })
        })?;
        let (made, head, conflicts) = match replayed {
            (Replayed::Done { made, head, .. }, onto) => (made, head.unwrap_or(onto), Vec::new()),
            (Replayed::Waits { made, counts, .. }, onto) => (made, onto, counts),
        };
        let head = made.last().map_or(format::id_of(head), |commit| commit.id);
        Ok(Rebased { head, commits: made, conflicts })
    }

    /// The catalog that the branch and `onto` have both gone on from; empty if there is none.
    fn base_of(&self, state: &BranchState, onto: ChunkHash) -> Result<Tree, Error> {
        let store = self.frond().engine().store();
        let ours: Vec<ChunkHash> = state.head_chunk().into_iter().collect();
        let load = &mut |hash| history::load(&**store, hash);
        match base::merge_bases(&ours, onto, load)?.first() {
            Some(base) => Ok(history::load(&**store, *base)?.catalog),
            None => Ok(Tree::empty(&**store, state.repository.format())?),
        }
    }

    /// The commits that the branch has and `onto` hasn't, without merges, the oldest first.
    fn own_commits(&self, state: &BranchState, onto: ChunkHash) -> Result<Vec<ChunkHash>, Error> {
        let store = self.frond().engine().store();
        let tips: Vec<ChunkHash> = state.head_chunk().into_iter().collect();
        let mut walk = Walk::begin(store, &tips, &[onto], false)?;
        let mut own = Vec::new();
        while let Some((hash, commit)) = walk.next()? {
            if own.len() == COMMITS_MAX {
                let message = format!("more than {COMMITS_MAX} commits can't be rebased at once");
                return Err(Error::invalid(Code::BadValue, message));
            }
            if commit.parents.len() < 2 {
                own.push(hash);
            }
        }
        own.reverse();
        Ok(own)
    }
}
