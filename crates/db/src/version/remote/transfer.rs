//! Which chunks move: those that the new commits reach and the other side lacks.
//!
//! 1. The commits that the other side doesn't have are gone through, the oldest first. Each is compared with
//!    its parents, which are there by then.
//! 2. A commit's tree of chunks is walked level by level from its catalog, beside those of its parents.
//!    What a parent's level has too is there with all below it, and is not looked at. So the cost
//!    follows the change, not the data.
//! 3. Of what is new, in batches: what the other side has already (a transfer that was cut) isn't sent
//!    again, but what it refers to is looked at, since it may have come without that.
//!
//! Hashes are kept in memory, 32 bytes for each chunk that moves; chunks only a batch at a time.

use std::collections::HashSet;

use frond_store::{Chunk, ChunkHash, ChunkStore};

use crate::error::Error;
use crate::version::format::Commit;
use crate::version::history;

/// Chunks that are asked for and put together.
const BATCH: usize = 256;

/// How much has moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Commits that the other side lacked.
    pub commits: u64,
    /// Of these, done.
    pub commits_done: u64,
    /// Chunks that were sent.
    pub chunks: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
    /// Chunks that were there already.
    pub known: u64,
}

/// Moves chunks between two places, of which one is this directory's store.
pub(crate) trait Lane {
    /// Tells for each of `hashes` whether the place that chunks are sent to has it.
    fn has_many(&mut self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error>;
    /// Gets chunks from the place that they are sent from.
    fn get_many(&mut self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error>;
    /// Puts chunks where they are sent to.
    fn put_many(&mut self, chunks: &[Chunk]) -> Result<(), Error>;
}

/// A transfer on its way.
pub(crate) struct Transfer<'a> {
    /// This directory's chunks: what both sides have is read here.
    pub local: &'a dyn ChunkStore,
    pub lane: &'a mut dyn Lane,
    pub progress: &'a mut dyn FnMut(&Moved),
    pub moved: Moved,
    /// What was looked at.
    seen: HashSet<ChunkHash>,
}

impl<'a> Transfer<'a> {
    /// Nothing moved yet.
    pub fn new(
        local: &'a dyn ChunkStore,
        lane: &'a mut dyn Lane,
        progress: &'a mut dyn FnMut(&Moved),
    ) -> Transfer<'a> {
        Transfer { local, lane, progress, moved: Moved::default(), seen: HashSet::new() }
    }

    /// Moves commits that the other side lacks, the oldest first. Their chunks are `chunks`.
    pub fn commits(&mut self, chunks: &[Chunk]) -> Result<(), Error> {
        self.moved.commits = chunks.len() as u64;
        for chunk in chunks {
            let commit = Commit::decode(chunk)?;
            let mut before = Vec::new();
            for parent in &commit.parents {
                before.push(self.commit_there(*parent)?.catalog.root);
            }
            self.tree(commit.catalog.root, before)?;
            self.send(&[chunk.hash()], std::slice::from_ref(chunk))?;
            self.moved.commits_done += 1;
            (self.progress)(&self.moved);
        }
        Ok(())
    }

    /// A commit that both sides have by now.
    fn commit_there(&self, hash: ChunkHash) -> Result<Commit, Error> {
        history::load(self.local, hash)
    }

    /// Moves what is below `root`, and isn't below one of `before`.
    fn tree(&mut self, root: ChunkHash, before: Vec<ChunkHash>) -> Result<(), Error> {
        let (mut fresh, mut old) = (vec![root], before);
        while !fresh.is_empty() {
            let known: HashSet<ChunkHash> = old.iter().copied().collect();
            let shared: HashSet<ChunkHash> = fresh.iter().copied().collect();
            fresh.retain(|hash| !known.contains(hash) && self.seen.insert(*hash));
            // What stands on both sides needs no opening to find what they share below it.
            old.retain(|hash| !shared.contains(hash));
            let mut below = Vec::new();
            for batch in fresh.chunks(BATCH) {
                below.extend(self.batch(batch)?);
            }
            fresh = unique(below);
            old = if fresh.is_empty() { Vec::new() } else { self.references(&old)? };
        }
        Ok(())
    }

    /// Sends what of a batch is missing; returns what all of it refers to.
    fn batch(&mut self, hashes: &[ChunkHash]) -> Result<Vec<ChunkHash>, Error> {
        let there = self.lane.has_many(hashes)?;
        let pairs = || hashes.iter().copied().zip(there.iter().copied());
        let missing: Vec<ChunkHash> =
            pairs().filter(|(_, there)| !there).map(|(hash, _)| hash).collect();
        let known: Vec<ChunkHash> =
            pairs().filter(|(_, there)| *there).map(|(hash, _)| hash).collect();
        let chunks = self.lane.get_many(&missing)?;
        let mut below: Vec<ChunkHash> = chunks.iter().flat_map(Chunk::references).collect();
        self.send(&missing, &chunks)?;
        self.moved.known += known.len() as u64;
        below.extend(self.references(&known)?);
        Ok(below)
    }

    fn send(&mut self, hashes: &[ChunkHash], chunks: &[Chunk]) -> Result<(), Error> {
        debug_assert!(hashes.iter().copied().eq(chunks.iter().map(Chunk::hash)));
        if chunks.is_empty() {
            return Ok(());
        }
        self.lane.put_many(chunks)?;
        self.moved.chunks += chunks.len() as u64;
        self.moved.bytes += chunks.iter().map(|chunk| chunk.encoded().len() as u64).sum::<u64>();
        (self.progress)(&self.moved);
        Ok(())
    }

    /// What chunks that this directory has refer to.
    fn references(&self, hashes: &[ChunkHash]) -> Result<Vec<ChunkHash>, Error> {
        let mut found = Vec::new();
        for batch in hashes.chunks(BATCH) {
            let chunks = self.local.get_many(batch)?;
            found.extend(chunks.iter().flat_map(Chunk::references));
        }
        Ok(unique(found))
    }
}

fn unique(mut hashes: Vec<ChunkHash>) -> Vec<ChunkHash> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}
