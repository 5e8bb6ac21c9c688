//! Finds where chunks lie: in memory, or in the pages of packs' indexes.
//!
//! No lock is held while a page is read. A caller that only reads a chunk takes what was found: a
//! pack's file stays readable while a reader holds it. One that reports to others that a chunk is
//! there confirms it under the index's lock, and searches again if it moved or went meanwhile
//! ([`LocalStore::find_and_touch`]).

use std::sync::Arc;

use super::LocalStore;
use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::index::Known;
use crate::location::Location;
use crate::pack::Pack;

/// A chunk's pack, and where in it the chunk lies.
pub(super) type PackLocation = (Arc<Pack>, Location);

/// A chunk to be searched in the index of a pack.
struct Search {
    pack: Arc<Pack>,
    hash: ChunkHash,
    /// Among those that are asked for.
    position: usize,
}

impl LocalStore {
    pub(super) fn find(&self, hash: ChunkHash) -> Result<Option<PackLocation>, StoreError> {
        let names = std::iter::once(hash);
        match self.index_for(names, |index, read| index.look(hash, read))? {
            Known::Here(pack, at) => Ok(Some((pack, at))),
            Known::Perhaps(packs) => {
                for pack in packs {
                    if let Some(at) = self.search(&pack, hash)? {
                        return Ok(Some((pack, at)));
                    }
                }
                Ok(None)
            }
        }
    }

    /// As `find`, for many; each page is read once, in the order of the packs.
    pub(super) fn find_many(
        &self,
        hashes: &[ChunkHash],
    ) -> Result<Vec<Option<PackLocation>>, StoreError> {
        let mut found: Vec<Option<PackLocation>> = vec![None; hashes.len()];
        let mut searches: Vec<Search> = Vec::new();
        self.index_for(hashes.iter().copied(), |index, read| {
            for (position, hash) in hashes.iter().copied().enumerate() {
                match index.look(hash, read) {
                    Known::Here(pack, at) => found[position] = Some((pack, at)),
                    Known::Perhaps(packs) => {
                        let search = |pack| Search { pack, hash, position };
                        searches.extend(packs.into_iter().map(search));
                    }
                }
            }
        })?;
        searches.sort_unstable_by_key(|search| (search.pack.number, search.hash));
        for Search { pack, hash, position } in searches {
            if found[position].is_none()
                && let Some(at) = self.search(&pack, hash)?
            {
                found[position] = Some((pack, at));
            }
        }
        Ok(found)
    }

    pub(super) fn search(
        &self,
        pack: &Pack,
        hash: ChunkHash,
    ) -> Result<Option<Location>, StoreError> {
        let found = pack.search(&self.pages, hash)?;
        Ok(found.map(|(position, chunk)| chunk.location(pack.number, Some(position))))
    }

    /// As `find_many`, for a caller that reports to others that the chunks are there; notes that
    /// this was reported.
    pub(super) fn find_and_touch(
        &self,
        hashes: &[ChunkHash],
    ) -> Result<Vec<Option<PackLocation>>, StoreError> {
        let mut is_there: Vec<Option<PackLocation>> = vec![None; hashes.len()];
        let mut left: Vec<usize> = (0..hashes.len()).collect();
        while !left.is_empty() {
            let wanted: Vec<ChunkHash> = left.iter().map(|position| hashes[*position]).collect();
            let found = self.find_many(&wanted)?;
            left = self.index_for(wanted.iter().copied(), |index, read| {
                let (mut again, mut confirmed) = (Vec::new(), Vec::new());
                for (position, found) in left.iter().copied().zip(&found) {
                    let Some((pack, at)) = found else { continue };
                    if index.is_at(hashes[position], at, read) {
                        is_there[position] = Some((Arc::clone(pack), *at));
                        confirmed.push((hashes[position], at, pack.purpose));
                    } else {
                        again.push(position);
                    }
                }
                self.reported.note(confirmed.iter().filter(|(_, at, _)| at.refers).map(|it| it.0));
                self.sessions.touch(confirmed);
                again
            })?;
        }
        Ok(is_there)
    }
}
