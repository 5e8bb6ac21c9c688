//! Thinning: of automatic commits that are old enough, only some stay.
//!
//! 1. Only commits at a branch's end are looked at: made automatically, one after the other, and
//!    reached by no other branch, tag, remote's branch or merge. So no commit that a client made,
//!    named or published gets another id.
//! 2. The policy's tiers cut time into pieces, longer ones for older commits; of each piece the
//!    newest commit stays. A commit's piece never changes but for a longer one, so thinning again
//!    takes the same ones away.
//! 3. The commits that stay are made again on top of each other, with the same catalogs, words and
//!    times: a chunk each. The branch moves to the last; its working state isn't touched. The
//!    reflog remembers the old ones, so `undo` brings them back while it does.

use frond_db::inside::{Commit, Error, LatchMode, Outcome, Reader, Scope, refs};
use frond_engine::Durability;
use frond_store::{Chunk, ChunkHash, Lifetime};

use crate::history;
use crate::history::walk::Walk;
use crate::policy::commit_policy::{CommitPolicy, Tier};
use crate::refs::reflog::RefWhy;
use crate::refs::tag;
use crate::repository::Repository;
use crate::state::BranchState;

/// The number of commits that are looked at at most.
const COMMITS_MAX: usize = 100_000;

impl Repository {
    /// Thins the automatic commits of this branch as the database's policy says. Returns how many
    /// went; none of a protected branch.
    ///
    /// # Errors
    /// `UserWritesBlocked` if this is a commit.
    pub fn thin_automatic_commits(&self) -> Result<u64, Error> {
        self.writable_branch()?;
        match self.commit_policy()? {
            Some(policy) => self.thin(&policy, false),
            None => Ok(0),
        }
    }

    /// Thins; with `waits`, only once a good part of the commits would go: each time makes all that
    /// stay again.
    pub(crate) fn thin(&self, policy: &CommitPolicy, waits: bool) -> Result<u64, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        let Some(now) = self.frond().expiry_millis() else { return Ok(0) };
        let scope = Scope::branch(name, branch);
        self.transact_alone(scope, LatchMode::Remover, Durability::Synced, |transaction| {
            // The database's latch is closed: no name of a commit comes or goes.
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            let reader = Reader::now(engine);
            if crate::policy::read(&reader, name, branch)?.protected || state.merging.is_some() {
                return Ok(Outcome::Discard(0));
            }
            let run = self.automatic_run(&reader, &state)?;
            let goes = gone(&run, &policy.thin, now);
            let count = goes.iter().filter(|goes| **goes).count();
            if count == 0 || (waits && count * 4 < run.len()) {
                return Ok(Outcome::Discard(0));
            }
            let chunks = remade(&run, &goes);
            let store = engine.store();
            store.put_many_for(Lifetime::Lasting, &chunks)?;
            store.sync()?;
            for chunk in &chunks {
                state.register(transaction, chunk)?;
            }
            if let Some(head) = chunks.last() {
                let why = format!("policy: thinned {count} automatic commits");
                state.move_ref(transaction, head.hash(), RefWhy::plain(&why, now))?;
            }
            Ok(Outcome::Commit(count as u64))
        })
    }

    /// The automatic commits at the branch's end that no other ref names, newest first.
    fn automatic_run(
        &self,
        reader: &Reader<'_>,
        state: &BranchState,
    ) -> Result<Vec<(ChunkHash, Commit)>, Error> {
        let name = self.repository_name();
        let mut others = Vec::new();
        for branch in self.list_branches()?.iter().filter(|other| other.name != state.branch) {
            others.extend(history::branch_head(reader, name, &branch.name)?);
        }
        let tags = tag::of_database(reader, name)?.into_iter();
        for named in tags.chain(tag::tracking(reader, name, None)?) {
            others.extend(refs::commit_chunk(reader, name, &named.commit)?);
        }
        let tips: Vec<ChunkHash> = state.head_chunk().into_iter().collect();
        let mut walk = Walk::begin(reader.store(), &tips, &others, true)?;
        let mut run = Vec::new();
        while let Some((hash, commit)) = walk.next()? {
            if !commit.automatic || commit.parents.len() > 1 || run.len() == COMMITS_MAX {
                break;
            }
            run.push((hash, commit));
        }
        Ok(run)
    }
}

/// Decides which of `run`, newest first, go: the newest always stays.
fn gone(run: &[(ChunkHash, Commit)], tiers: &[Tier], now_millis: i64) -> Vec<bool> {
    let mut last_piece = None;
    let mut goes = Vec::with_capacity(run.len());
    for (position, (_, commit)) in run.iter().enumerate() {
        let age = now_millis.saturating_sub(commit.timestamp_millis);
        let tier = tiers.iter().rev().find(|tier| tier.older_millis <= age);
        let piece = tier
            .map(|tier| (tier.every_millis, commit.timestamp_millis.div_euclid(tier.every_millis)));
        goes.push(position > 0 && piece.is_some() && piece == last_piece);
        last_piece = piece;
    }
    goes
}

/// The commits that stay and have another parent now, oldest first.
fn remade(run: &[(ChunkHash, Commit)], goes: &[bool]) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    // Parent and generation of the next that stays, once something before it went.
    let mut below: Option<(Vec<ChunkHash>, u64)> = None;
    for ((_, commit), goes) in run.iter().zip(goes).rev() {
        if *goes {
            below.get_or_insert_with(|| (commit.parents.clone(), commit.generation));
            continue;
        }
        let Some((parents, generation)) = below.take() else { continue };
        let remade = Commit { parents, generation, ..commit.clone() };
        let chunk = remade.encode();
        below = Some((vec![chunk.hash()], generation + 1));
        chunks.push(chunk);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use frond_tree::{Tree, TreeFormat};

    use super::*;

    fn commit(time: i64) -> (ChunkHash, Commit) {
        let commit = Commit {
            catalog: Tree { root: ChunkHash([1; 32]), format: TreeFormat::new(7) },
            parents: vec![ChunkHash([9; 32])],
            author: "a".to_owned(),
            message: time.to_string(),
            committer: None,
            timestamp_millis: time,
            authored_millis: None,
            generation: 5,
            automatic: true,
            reverts: None,
        };
        (ChunkHash([time as u8; 32]), commit)
    }

    #[test]
    fn the_newest_of_each_piece_stays_and_stays() {
        let tiers = [
            Tier { older_millis: 10, every_millis: 5 },
            Tier { older_millis: 50, every_millis: 20 },
        ];
        let run: Vec<_> = (0..=100).rev().map(commit).collect();
        let goes = gone(&run, &tiers, 100);
        let kept = |goes: &[bool]| -> Vec<i64> {
            let kept = run.iter().zip(goes).filter(|(_, goes)| !**goes);
            kept.map(|((_, commit), _)| commit.timestamp_millis).collect()
        };
        let expected: Vec<i64> = (91..=100)
            .rev()
            .chain([90, 89, 84, 79, 74, 69, 64, 59, 54])
            .chain([50, 39, 19])
            .collect();
        assert_eq!(kept(&goes), expected);
        let left: Vec<_> = run.iter().zip(&goes).filter(|(_, goes)| !**goes).collect();
        let left: Vec<_> = left.into_iter().map(|(commit, _)| commit.clone()).collect();
        assert!(!gone(&left, &tiers, 100).contains(&true), "once is enough");
        let chunks = remade(&run, &goes);
        // The oldest that stays has others below it that went.
        assert_eq!(chunks.len(), left.len());
        let last = Commit::decode(chunks.last().expect("some")).expect("a commit");
        assert_eq!(last.timestamp_millis, 100);
        assert_eq!(last.generation, 5 + left.len() as u64 - 1);
        assert!(remade(&run[..3], &[false; 3]).is_empty());
    }
}
