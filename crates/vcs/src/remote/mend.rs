//! Mends damage found on the other side of a transfer, from where the chunks are whole.

use std::collections::HashSet;
use std::sync::Arc;

use frond_db::inside::{Error, ErrorKind};
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime};

use crate::remote::transfer::{Endpoint, Transfer, each};

/// Chunks that are put together.
const BATCH: usize = 256;

/// Gets chunks by their names.
pub(crate) type Get<'a> = &'a dyn Fn(&[ChunkHash]) -> Result<Vec<Chunk>, Error>;

/// Puts those of `hashes` that `get` has; returns how many, and the others.
pub(crate) fn mend(
    hashes: &[ChunkHash],
    get: Get<'_>,
    put: &dyn Fn(&[Chunk]) -> Result<(), Error>,
) -> Result<(u64, Vec<ChunkHash>), Error> {
    let (mut mended, mut lost) = (0, Vec::new());
    for batch in hashes.chunks(BATCH) {
        let chunks = each(batch, get, &mut |hash, _| lost.push(hash))?;
        if !chunks.is_empty() {
            put(&chunks)?;
        }
        mended += chunks.len() as u64;
    }
    Ok((mended, lost))
}

/// Returns for each of `hashes` whether `store` has its chunk, whole: it is read.
pub(crate) fn has_intact(store: &dyn ChunkStore, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
    let mut there = store.has_many(hashes)?;
    let known: Vec<ChunkHash> =
        hashes.iter().zip(&there).filter(|(_, there)| **there).map(|(hash, _)| *hash).collect();
    let get = |hashes: &[ChunkHash]| Ok::<Vec<Chunk>, Error>(store.get_many(hashes)?);
    match get(&known) {
        Ok(_) => return Ok(there),
        Err(error) if error.kind != ErrorKind::Damaged => return Err(error),
        Err(_) => {}
    }
    let mut damaged = Vec::new();
    for batch in known.chunks(BATCH) {
        each(batch, &get, &mut |hash, _| damaged.push(hash))?;
    }
    for (hash, there) in hashes.iter().zip(&mut there) {
        *there &= !damaged.contains(hash);
    }
    Ok(there)
}

/// Chunks go from one store to another.
struct Between<'a> {
    from: &'a Arc<dyn ChunkStore>,
    to: &'a Arc<dyn ChunkStore>,
    lifetime: Lifetime,
}

impl Endpoint for Between<'_> {
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        has_intact(&**self.to, hashes)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.from.get_many(hashes)?)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        Ok(self.to.put_many_for(self.lifetime, chunks)?)
    }

    fn read_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.from.get_many(hashes)?)
    }
}

/// Brings commits (the oldest first, without parents that are `absent`) from one store to another.
pub(crate) fn carry_commits(
    from: &Arc<dyn ChunkStore>,
    to: &Arc<dyn ChunkStore>,
    lifetime: Lifetime,
    commits: &[Chunk],
    absent: &HashSet<ChunkHash>,
) -> Result<(), Error> {
    let lane = Between { from, to, lifetime };
    Transfer::new(&lane, &mut |_| {}).commits(commits, absent)
}

/// Brings what is below `roots`, which are no commits, and not below those that are `there`, from
/// one store to another.
pub(crate) fn carry_trees(
    from: &Arc<dyn ChunkStore>,
    to: &Arc<dyn ChunkStore>,
    lifetime: Lifetime,
    (roots, there): (Vec<ChunkHash>, Vec<ChunkHash>),
) -> Result<(), Error> {
    let lane = Between { from, to, lifetime };
    Transfer::new(&lane, &mut |_| {}).tree(roots, there)
}
