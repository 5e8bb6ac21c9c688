//! Rebase: the commits that this branch has and another version hasn't, made again on top of that.
//!
//! Each commit is picked in turn, the oldest first, onto the catalog that the one before gave. All of it
//! happens beside the branch; one transaction then moves it. A commit that would change nothing is
//! left out; merges are left out too, since what they brought is there or picked by itself. A
//! conflict refuses the whole, names the commit, and changes nothing: merge instead, or prefer a side.

use std::collections::BTreeMap;

use frond_engine::Transaction;
use frond_query::Code;
use frond_store::{Chunk, ChunkHash};

use crate::contention::Outcome;
use crate::database::{self, Database};
use crate::error::Error;
use crate::reader::Reader;
use crate::version::adopt::Adoption;
use crate::version::commit::Signature;
use crate::version::format::{self, Commit};
use crate::version::merge_catalogs::CatalogMerge;
use crate::version::merge_rules::MergeRules;
use crate::version::reflog::RefWhy;
use crate::version::state::BranchState;
use crate::version::walk::Walk;
use crate::version::{CommitId, CommitInfo, history};

/// More commits than this are not rebased at once.
const COMMITS_MAX: usize = 10_000;

/// What a rebase did.
#[derive(Clone, Debug)]
pub struct Rebased {
    /// HEAD now.
    pub head: CommitId,
    /// The commits that were made, the oldest first.
    pub commits: Vec<CommitInfo>,
}

impl Database {
    /// Makes this branch's own commits again on top of `onto`.
    ///
    /// # Errors
    /// `BadValue` if `onto` names no commit; `IllegalOperation` if this is a commit, is protected, has
    /// changes that aren't committed, or a merge waits; `OperationFailed` if a commit conflicts.
    pub fn rebase(&self, onto: &str, rules: &MergeRules) -> Result<Rebased, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        self.replace_working_state(branch, |transaction| {
            if database::repository(&self.reader(), name)?.is_none() {
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
            let (chunks, commits) = self.remake(transaction, &state, onto_chunk, &own, rules)?;
            let head = chunks.last().map_or(onto_chunk, Chunk::hash);
            let catalog = history::load(&**engine.store(), head)?.catalog;
            let adoption = Adoption { head: catalog, before: clean, after: catalog };
            state.adopt(engine, transaction, &adoption)?;
            for chunk in &chunks {
                state.register(transaction, chunk)?;
            }
            let why = format!("rebase: onto {onto}");
            let why = RefWhy::replacing(&why, self.frond().now_millis(), clean);
            state.move_ref(transaction, head, why)?;
            Ok(Outcome::Commit(Rebased { head: format::id_of(head), commits }))
        })
    }

    /// The commits that the branch has and `onto` hasn't, without merges, the oldest first.
    fn own_commits(
        &self,
        state: &BranchState,
        onto: ChunkHash,
    ) -> Result<Vec<(ChunkHash, Commit)>, Error> {
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
                own.push((hash, commit));
            }
        }
        own.reverse();
        Ok(own)
    }

    fn remake(
        &self,
        transaction: &mut Transaction,
        state: &BranchState,
        onto: ChunkHash,
        own: &[(ChunkHash, Commit)],
        rules: &MergeRules,
    ) -> Result<(Vec<Chunk>, Vec<CommitInfo>), Error> {
        let engine = self.frond().engine();
        let store = &**engine.store();
        let decisions = BTreeMap::new();
        let format = state.repository.format();
        let merge = CatalogMerge { database: self, format, rules, decisions: &decisions };
        let (mut chunks, mut commits) = (Vec::new(), Vec::new());
        let (mut parent, mut catalog) = (onto, history::load(store, onto)?.catalog);
        for (hash, commit) in own {
            let before = self.catalog_before(state, commit, None)?;
            let merged = merge.merge([&before, &catalog, &commit.catalog])?;
            if let Some(conflict) = merged.schema.first().or(merged.conflicts.first()) {
                let message = format!(
                    "commit {} ({}) conflicts in {} with what it would be rebased onto: merge \
                     instead, or prefer a side",
                    format::id_of(*hash),
                    commit.message.lines().next().unwrap_or_default(),
                    self.namespace(&conflict.collection)
                );
                return Err(Error::invalid(Code::OperationFailed, message));
            }
            if merged.catalog.root == catalog.root {
                continue;
            }
            catalog = merged.catalog;
            let signature = Signature {
                committer: commit.committer.as_deref(),
                authored_millis: Some(commit.authored_millis.unwrap_or(commit.timestamp_millis)),
                ..Signature::new(&commit.author, &commit.message, self.frond().now_millis())?
            };
            let (chunk, info) = self.make_commit(transaction, catalog, &[parent], &signature)?;
            parent = chunk.hash();
            chunks.push(chunk);
            commits.push(info);
        }
        Ok((chunks, commits))
    }
}
