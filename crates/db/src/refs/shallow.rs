//! Shallow clones: history that ends before its beginning, because the rest was left where it came
//! from.
//!
//! A commit's chunk names its parents, here or not: its name would be another without them. Which
//! parents are known not to be here is listed in a chunk that the store's root [`ROOT_NAME`] names:
//! 32 bytes each, ascending. Readers of history follow parents by `history::load`, which leaves out
//! what is listed and not here. So history simply ends there; what isn't listed and is missing is
//! still damage.
//!
//! A listed commit that is here counts: another database may have brought it, or a fetch since.

use std::collections::{BTreeSet, HashSet};

use frond_query::Code;
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore, StoreError};

use crate::error::Error;
use crate::refs::format::{self, Commit};

/// The root that names the list.
const ROOT_NAME: &str = "shallow";
const HASH_BYTES: usize = frond_store::chunk::HASH_BYTES;

/// The names in the list, ascending.
///
/// # Errors
/// [`StoreError::Missing`] if the list's root names no chunk; as the store.
pub fn listed(store: &dyn ChunkStore) -> Result<BTreeSet<ChunkHash>, StoreError> {
    let Some(root) = store.root(ROOT_NAME)? else { return Ok(BTreeSet::new()) };
    let list = store.get(root)?;
    let hash = |bytes: &[u8]| {
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(bytes);
        ChunkHash(hash)
    };
    Ok(list.payload().chunks_exact(HASH_BYTES).map(hash).collect())
}

/// Returns those of `parents` that are known not to be here.
///
/// # Errors
/// As [`listed`].
pub fn absent(store: &dyn ChunkStore, parents: &[ChunkHash]) -> Result<Vec<ChunkHash>, StoreError> {
    if parents.is_empty() || store.root(ROOT_NAME)?.is_none() {
        return Ok(Vec::new());
    }
    let listed = listed(store)?;
    let there = store.has_many(parents)?;
    let is_absent = |(hash, there): &(&ChunkHash, &bool)| !**there && listed.contains(*hash);
    let absent = parents.iter().zip(&there).filter(is_absent);
    Ok(absent.map(|(hash, _)| *hash).collect())
}

/// Lists commits that will not be here, before a commit comes that names one as its parent. Those
/// that are here by now leave the list.
///
/// # Errors
/// As [`listed`]; `Unavailable` if the list can't be written.
pub fn list(store: &dyn ChunkStore, commits: &HashSet<ChunkHash>) -> Result<(), Error> {
    // Another caller may list others meanwhile.
    loop {
        let root = store.root(ROOT_NAME)?;
        let known = listed(store)?;
        let all: Vec<ChunkHash> = known.iter().chain(commits).copied().collect();
        let there = store.has_many(&all)?;
        let absent = all.iter().zip(&there).filter(|(_, there)| !**there).map(|(hash, _)| *hash);
        let absent: BTreeSet<ChunkHash> = absent.collect();
        if absent == known {
            return Ok(());
        }
        let payload: Vec<u8> = absent.iter().flat_map(|hash| hash.0).collect();
        let chunk = Chunk::new(ChunkKind::Blob, &[], &payload);
        let _session = store.session();
        store.put_many(std::slice::from_ref(&chunk))?;
        let new = (!absent.is_empty()).then(|| chunk.hash());
        match store.swap_root(ROOT_NAME, root, new) {
            Err(StoreError::RootChanged { .. }) => {}
            done => return Ok(done?),
        }
    }
}

/// Refuses what needs the parents of a commit whose parents aren't here.
///
/// # Errors
/// `IllegalOperation` (20) then; `Damaged` if the chunk is absent or no commit.
pub fn refuse(store: &dyn ChunkStore, commit: ChunkHash, what: &str) -> Result<(), Error> {
    let parents = Commit::decode(&store.get(commit)?)?.parents;
    if absent(store, &parents)?.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{what} is not possible: the parents of commit {} are not in this shallow clone (fetch more \
         with --depth or --unshallow)",
        format::id_of(commit)
    );
    Err(Error::invalid(Code::IllegalOperation, message))
}
