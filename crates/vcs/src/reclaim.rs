//! Giving back the disk space of what no database needs any more.
//!
//! 1. States that were remembered so that they could be undone are forgotten once they are old
//!    enough: changes of refs, dropped collections and branches, dropped databases.
//! 2. A commit's record goes if no branch, tag, remote's branch, waiting merge or remembered change
//!    reaches the commit any more: until then `shop@<commit>` reads it.
//! 3. The engine collects. It follows references from its trees and knows nothing of databases.
//!
//! *Step 2 and others*: that nothing names a commit is a statement about many records, which
//! optimism can't validate. So it is made twice: with the database in use, and, only if there is
//! something to remove, once more with the database's latch closed.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use frond_db::inside::refs::{self, repositories};
use frond_db::inside::{
    CommitId, Error, Frond, Interrupt, LatchMode, Outcome, Reader, Scope, TreeRef, system,
};
use frond_engine::{Durability, KeepGoing, ReclaimOptions, TreeId};
use frond_store::{ChunkHash, GcReport};
use frond_tree::{Bounds, Direction};

use crate::conflict::MergeState;
use crate::history::walk::Walk;
use crate::refs::tag;
use crate::repository::Repository;

/// The result of giving space back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reclaimed {
    /// Changes and dropped databases that can't be undone any more.
    pub changes_forgotten: u64,
    /// Commits that nothing names any more.
    pub commits_forgotten: u64,
    /// The store's report.
    pub collected: GcReport,
}

/// Removes what can't be reached, while readers and writers go on. Dropped, deleted or replaced
/// data can be brought back for `undo_millis`. Thorough: folds everything first and packs history
/// in groups of related chunks.
///
/// # Errors
/// `Damaged` if something reachable can't be read (nothing that can be read was removed);
/// `Unavailable` if the disk is full.
pub fn reclaim(
    frond: &Frond,
    undo_millis: u64,
    options: ReclaimOptions,
) -> Result<Reclaimed, Error> {
    reclaim_until(frond, undo_millis, options, &Interrupt::default())
}

/// As [`reclaim`]; `interrupt` may stop it. What was done stays done.
///
/// # Errors
/// As [`reclaim`]; what `interrupt` says.
pub fn reclaim_until(
    frond: &Frond,
    undo_millis: u64,
    options: ReclaimOptions,
    interrupt: &Interrupt,
) -> Result<Reclaimed, Error> {
    interrupt.check()?;
    let mut reclaimed = forget(frond, undo_millis)?;
    let interrupted: Arc<OnceLock<Error>> = Arc::default();
    let keep_going: Arc<KeepGoing> = {
        let (interrupt, interrupted) = (interrupt.clone(), Arc::clone(&interrupted));
        Arc::new(move || match interrupt.check() {
            Ok(()) => true,
            Err(error) => {
                interrupted.get_or_init(|| error);
                false
            }
        })
    };
    let collected = frond.engine().reclaim_while(options, &keep_going);
    if let Some(error) = interrupted.get() {
        return Err(error.clone());
    }
    reclaimed.collected = collected?;
    Ok(reclaimed)
}

/// Forgets what can be brought back and was dropped, deleted or replaced before that: the next
/// collection removes it, on each member of a set.
///
/// # Errors
/// `Damaged` if something of it can't be read; what a write may meet.
pub fn forget(frond: &Frond, undo_millis: u64) -> Result<Reclaimed, Error> {
    let undo_millis = i64::try_from(undo_millis).unwrap_or(i64::MAX);
    let before_millis = match frond.expiry_millis() {
        // Where nothing is kept no clock is asked: what a wrong one has dated goes, too.
        _ if undo_millis == 0 => i64::MAX,
        Some(now) => now.saturating_sub(undo_millis),
        None => i64::MIN,
    };
    let mut reclaimed = Reclaimed::default();
    let names = repositories(&Reader::now(frond.engine()))?;
    for (name, _) in names {
        // A copy of what another line has stays as it is.
        if frond.check_used_here(&name).is_err() {
            continue;
        }
        let database = Repository::default_branch_of(frond, name)?;
        reclaimed.changes_forgotten += database.expire_reflog(before_millis)?;
        reclaimed.commits_forgotten += database.forget_commits()?;
    }
    // Any database knows of all that were dropped.
    let any = Repository::default_branch_of(frond, "admin".to_owned())?;
    reclaimed.changes_forgotten += any.expire_dropped(before_millis)?;
    Ok(reclaimed)
}

impl Repository {
    /// Removes the records of commits that nothing names any more. Returns how many.
    fn forget_commits(&self) -> Result<u64, Error> {
        if self.forgettable()?.is_empty() {
            return Ok(0);
        }
        let scope = Scope::branch(self.repository_name(), "");
        self.frond().transact(scope, LatchMode::Remover, Durability::Synced, |transaction| {
            // The latch is closed: what is there now stays as it is until this has committed.
            let keys = self.forgettable()?;
            transaction.give_back();
            for key in &keys {
                transaction.delete(TreeId::SYSTEM, key.clone())?;
            }
            Ok(Outcome::commit_if(!keys.is_empty(), keys.len() as u64))
        })
    }

    /// The keys of commits that nothing names.
    fn forgettable(&self) -> Result<Vec<Bytes>, Error> {
        let reader = self.reader();
        let name = self.repository_name();
        let mut named = HashSet::new();
        let mut walk = Walk::begin(reader.store(), &self.named_commits(&reader)?, &[], false)?;
        while let Some((hash, _)) = walk.next()? {
            named.insert(hash);
        }
        let mut keys = Vec::new();
        let bounds = Bounds::prefix(&system::commit_key(name, &[]));
        let place = TreeRef::Live(TreeId::SYSTEM);
        for entry in reader.range(place, bounds, Direction::Ascending)? {
            let entry = entry?;
            if !named.contains(&system::commit_chunk(&entry.value)?) {
                keys.push(entry.key);
            }
        }
        Ok(keys)
    }

    /// The commits that something of this database names.
    fn named_commits(&self, reader: &Reader<'_>) -> Result<Vec<ChunkHash>, Error> {
        let name = self.repository_name();
        let mut ids: HashSet<CommitId> = HashSet::new();
        for branch in self.list_branches()? {
            ids.extend(branch.head);
            let key = system::merge_key(name, &branch.name);
            if let Some(merge) = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &key)? {
                ids.extend(MergeState::decode(merge)?.commits());
            }
        }
        ids.extend(tag::of_database(reader, name)?.iter().map(|tag| tag.commit));
        ids.extend(tag::tracking(reader, name, None)?.iter().map(|tag| tag.commit));
        for change in self.reflog(None)? {
            ids.extend(change.from);
            ids.extend(change.to);
            if let Some(merge) = change.merge {
                ids.extend(MergeState::decode(merge.record)?.commits());
            }
        }
        let mut chunks = Vec::with_capacity(ids.len());
        for id in ids {
            // A remembered change may name a commit that was forgotten before.
            chunks.extend(refs::commit_chunk(reader, name, &id)?);
        }
        Ok(chunks)
    }
}
