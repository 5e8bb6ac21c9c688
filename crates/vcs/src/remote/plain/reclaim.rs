//! Collecting a plain remote: what no ref needs goes.
//!
//! 1. The chunks that the refs reach are found by reading them. (It lies elsewhere: only the names
//!    are kept here.)
//! 2. Packs without any of it are *doomed*. Of those that are mostly garbage, or small where there
//!    are many small ones, what is needed is put into new packs first, and then they are doomed,
//!    too.
//! 3. The refs are swapped, if they are what they were: now they count one collection more, and
//!    name the doomed packs, in which no client finds anything from now on. A push that began
//!    before is refused when it ends, and run again: what it had found there may be gone. Packs
//!    that are damaged are doomed in any case, once all that is needed was found whole.
//! 4. The doomed packs are removed. A client that is just reading one finds it gone, and looks for
//!    its chunks where they were put in step 2.

use std::collections::HashSet;

use frond_db::inside::Error;
use frond_store::{ChunkHash, ChunkKind};

use super::PlainRemote;
use super::format::Refs;
use crate::remote::Remote;
use crate::remote::plain::packs::check::name_of_pack;

/// Chunks that are read together.
const BATCH: usize = 256;
/// A pack of fewer chunks is a small one.
const SMALL_COUNT_MAX: usize = 64;
/// The number of small packs that are put up with.
const SMALL_PACKS_MAX: usize = 8;

/// The result of a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlainReclaimed {
    /// Chunks that are needed.
    pub chunks_live: u64,
    /// Chunks that are gone.
    pub chunks_dead: u64,
    /// Packs that are gone.
    pub packs_removed: u64,
    /// Bytes of all packs before and after.
    pub bytes_before: u64,
    /// See `bytes_before`.
    pub bytes_after: u64,
}

impl PlainRemote {
    /// Removes what no branch, tag or backup needs. `progress` is called with how many chunks were
    /// looked at.
    ///
    /// # Errors
    /// `Damaged` if something that is needed is not there (nothing was removed); `Unavailable` if
    /// the refs were changed meanwhile: try again.
    pub fn reclaim(&self, progress: &mut dyn FnMut(u64)) -> Result<PlainReclaimed, Error> {
        let (mut refs, version) = self.read_refs()?;
        self.packs.refresh(&refs.doomed)?;
        let bytes_before = self.bytes()?;
        let live = self.mark(&refs, progress)?;
        let contents = self.packs.contents();
        let total: usize = contents.values().map(Vec::len).sum();
        let damaged: HashSet<String> =
            self.packs.damages().into_iter().map(|damage| damage.file).collect();
        let mut doomed = Vec::new();
        let is_small = |hashes: &[ChunkHash]| hashes.len() < SMALL_COUNT_MAX;
        let small_count = contents.values().filter(|hashes| is_small(hashes)).count();
        for (name, hashes) in &contents {
            let needed: Vec<ChunkHash> =
                hashes.iter().copied().filter(|hash| live.contains(hash)).collect();
            let is_mostly_dead = needed.len() < hashes.len().div_ceil(2);
            if needed.is_empty()
                || is_mostly_dead
                || damaged.contains(name)
                || (is_small(hashes) && small_count > SMALL_PACKS_MAX)
            {
                for batch in needed.chunks(BATCH) {
                    self.packs.put_again(self.get_many(batch)?)?;
                }
                doomed.push(name.clone());
            }
        }
        self.packs.flush()?;
        self.packs.refresh(&doomed)?;
        for backup in &refs.backups {
            self.put_directory_twice(backup.root, false, &|hashes| self.get_many(hashes))?;
        }
        // Those that an earlier collection left, since it was cut, are removed with the others.
        let there = self.place.list(super::packs::PACK_PREFIX)?;
        refs.doomed.retain(|name| there.iter().any(|(found, _)| found == name));
        refs.doomed.extend(doomed);
        refs.collections += 1;
        // All that is needed was read: what isn't there isn't needed.
        refs.packs = self.packs.marked()?;
        refs.packs.retain(|id, _| !refs.doomed.contains(&name_of_pack(id)));
        if !self.swap_refs(version.as_ref(), &mut refs)? {
            let message = "the remote's refs were changed while it was collected: run it again";
            return Err(Error::unavailable(message));
        }
        *self.collections.lock().expect("no panic while the lock is held") = refs.collections;
        for name in &refs.doomed {
            self.place.remove(name)?;
        }
        self.place.sweep()?;
        self.packs.refresh(&refs.doomed)?;
        Ok(PlainReclaimed {
            chunks_live: live.len() as u64,
            chunks_dead: total.saturating_sub(live.len()) as u64,
            packs_removed: refs.doomed.len() as u64,
            bytes_before,
            bytes_after: self.bytes()?,
        })
    }

    fn bytes(&self) -> Result<u64, Error> {
        let packs = self.place.list(super::packs::PACK_PREFIX)?;
        Ok(packs.iter().map(|(_, bytes)| bytes).sum())
    }

    /// The names of all chunks that the refs reach.
    fn mark(
        &self,
        refs: &Refs,
        progress: &mut dyn FnMut(u64),
    ) -> Result<HashSet<ChunkHash>, Error> {
        let mut stack: Vec<ChunkHash> = refs.backups.iter().map(|backup| backup.root).collect();
        if let Some(state) = &refs.repository {
            stack.extend(state.branches.values());
            stack.extend(state.tags.values().map(|(_, chunk)| *chunk));
        }
        let mut live: HashSet<ChunkHash> = HashSet::new();
        let mut waiting: Vec<ChunkHash> = Vec::new();
        loop {
            while let Some(hash) = stack.pop() {
                if live.insert(hash) {
                    waiting.push(hash);
                }
            }
            if waiting.is_empty() {
                return Ok(live);
            }
            let batch = waiting.split_off(waiting.len().saturating_sub(BATCH));
            for chunk in self.get_many(&batch)? {
                let mut references: Vec<ChunkHash> = chunk.references().collect();
                if chunk.kind() == ChunkKind::Commit {
                    // A backup of a shallow clone has commits whose parents are elsewhere.
                    let there = self.packs.has_many(&references);
                    let mut there = there.iter().enumerate();
                    references.retain(|_| there.next().is_some_and(|(at, is)| at == 0 || *is));
                }
                stack.extend(references);
            }
            progress(live.len() as u64);
        }
    }
}
