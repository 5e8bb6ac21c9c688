//! Layers: stores in front of another store, each of which implements only what it changes.

use std::ops::Deref;

use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::{
    Admission, ChunkStore, EntryLookup, EntryName, Lifetime, Maintenance, Prefetched, ReadCache,
    ReadOptions, Session, StoreCounters, UnreadableRange,
};

/// The part of a store that a layer implements; everything else is passed on. [`Layered`] makes a
/// [`ChunkStore`] of it.
pub trait StoreLayer: Send + Sync {
    /// The store behind.
    fn inner(&self) -> &dyn ChunkStore;

    /// The chunk named `hash`, if it is here, whether or not it is behind too.
    fn own(&self, _hash: ChunkHash) -> Option<Chunk> {
        None
    }

    /// Whether the chunks named `hashes` are here or behind.
    ///
    /// # Errors
    /// As [`ChunkStore::has_many`].
    fn has(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        let mut has = self.inner().has_many(hashes)?;
        for (has, hash) in has.iter_mut().zip(hashes) {
            *has = *has || self.own(*hash).is_some();
        }
        Ok(has)
    }

    /// Whether the chunks named `hashes` are here, or behind and whole.
    ///
    /// # Errors
    /// As [`ChunkStore::has_intact`].
    fn has_checked(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        let mut has = self.inner().has_intact(hashes)?;
        for (has, hash) in has.iter_mut().zip(hashes) {
            *has = *has || self.own(*hash).is_some();
        }
        Ok(has)
    }

    /// Takes chunks, put with a hint or without.
    ///
    /// # Errors
    /// As [`ChunkStore::put_many`].
    fn put(&self, hint: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
        match hint {
            Some(lifetime) => self.inner().put_many_for(lifetime, chunks),
            None => self.inner().put_many(chunks),
        }
    }

    /// Makes chunks durable.
    ///
    /// # Errors
    /// As [`ChunkStore::sync_these`].
    fn make_durable(&self, hashes: &[ChunkHash]) -> Result<(), StoreError> {
        self.inner().sync_these(hashes)
    }

    /// Whether readers pass over a part of a tree, see [`ChunkStore::skip_unreadable`].
    fn note_lost(&self, lost: UnreadableRange) -> bool {
        self.inner().skip_unreadable(lost)
    }

    /// Returns how the store is kept in order, see [`ChunkStore::maintenance`].
    fn upkeep(&self) -> &dyn Maintenance {
        self.inner().maintenance()
    }
}

/// The [`ChunkStore`] that a layer makes of the store behind it.
pub struct Layered<L>(pub L);

impl<L> Deref for Layered<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.0
    }
}

impl<L: StoreLayer> ChunkStore for Layered<L> {
    fn read(&self, hash: ChunkHash, options: ReadOptions) -> Result<Chunk, StoreError> {
        self.own(hash).map_or_else(|| self.inner().read(hash, options), Ok)
    }

    fn look_up_entry(&self, hash: ChunkHash, part: EntryName) -> Result<EntryLookup, StoreError> {
        match self.own(hash) {
            Some(chunk) => Ok(EntryLookup::Chunk(chunk, Admission::InMemory)),
            None => self.inner().look_up_entry(hash, part),
        }
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, StoreError> {
        let own: Vec<Option<Chunk>> = hashes.iter().map(|hash| self.own(*hash)).collect();
        let absent = || hashes.iter().zip(&own).filter(|(_, own)| own.is_none());
        let wanted: Vec<ChunkHash> = absent().map(|(hash, _)| *hash).collect();
        let mut behind = wanted.iter().copied().zip(self.inner().get_many(&wanted)?);
        let mut take = |(own, hash): (Option<Chunk>, &ChunkHash)| match own {
            Some(chunk) => Ok(chunk),
            None => behind.next().map(|(_, chunk)| chunk).ok_or(StoreError::Missing(*hash)),
        };
        own.into_iter().zip(hashes).map(&mut take).collect()
    }

    fn prefetch(&self, hashes: &[ChunkHash]) -> Result<Vec<Prefetched>, StoreError> {
        let mut own = hashes.iter().map(|hash| self.own(*hash)).enumerate();
        match own.find_map(|(position, own)| own.map(|own| (position, own))) {
            Some((0, own)) => Ok(vec![own.into()]),
            Some((end, _)) => self.inner().prefetch(&hashes[..end]),
            None => self.inner().prefetch(hashes),
        }
    }

    fn open_prefetched(
        &self,
        ahead: Prefetched,
        options: ReadOptions,
    ) -> Result<Chunk, StoreError> {
        self.inner().open_prefetched(ahead, options)
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        self.has(hashes)
    }

    fn has_intact(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        self.has_checked(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), StoreError> {
        self.put(None, chunks)
    }

    fn put_many_for(&self, lifetime: Lifetime, chunks: &[Chunk]) -> Result<(), StoreError> {
        self.put(Some(lifetime), chunks)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.inner().sync()
    }

    fn sync_these(&self, hashes: &[ChunkHash]) -> Result<(), StoreError> {
        self.make_durable(hashes)
    }

    fn root(&self, name: &str) -> Result<Option<ChunkHash>, StoreError> {
        self.inner().root(name)
    }

    fn swap_root(
        &self,
        name: &str,
        expected: Option<ChunkHash>,
        new: Option<ChunkHash>,
    ) -> Result<(), StoreError> {
        self.inner().swap_root(name, expected, new)
    }

    fn session(&self) -> Session {
        self.inner().session()
    }

    fn skip_unreadable(&self, lost: UnreadableRange) -> bool {
        self.note_lost(lost)
    }

    fn read_cache(&self) -> Option<&dyn ReadCache> {
        self.inner().read_cache()
    }

    fn maintenance(&self) -> &dyn Maintenance {
        self.upkeep()
    }

    fn counters(&self) -> StoreCounters {
        self.inner().counters()
    }
}

/// A store with `lifetime` as the hint of every chunk that is put without one: for code that
/// writes trees and doesn't know how long they are needed.
#[derive(Clone, Copy)]
pub struct PutFor<'a> {
    store: &'a dyn ChunkStore,
    lifetime: Lifetime,
}

impl<'a> PutFor<'a> {
    /// A layer over `store`.
    pub fn new(store: &'a dyn ChunkStore, lifetime: Lifetime) -> Layered<PutFor<'a>> {
        Layered(PutFor { store, lifetime })
    }
}

impl StoreLayer for PutFor<'_> {
    fn inner(&self) -> &dyn ChunkStore {
        self.store
    }

    fn put(&self, hint: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
        self.store.put_many_for(hint.unwrap_or(self.lifetime), chunks)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chunk::ChunkKind;
    use crate::memory::MemoryStore;

    struct WithOne {
        store: Arc<MemoryStore>,
        one: Chunk,
    }

    impl StoreLayer for WithOne {
        fn inner(&self) -> &dyn ChunkStore {
            &*self.store
        }

        fn own(&self, hash: ChunkHash) -> Option<Chunk> {
            (hash == self.one.hash()).then(|| self.one.clone())
        }
    }

    #[test]
    fn own_chunks_come_before_those_behind_and_in_order() {
        let chunk = |payload: &str| Chunk::new(ChunkKind::Blob, &[], payload.as_bytes());
        let (one, behind, absent) = (chunk("one"), chunk("behind"), chunk("absent"));
        let layer = Layered(WithOne { store: MemoryStore::new(), one: one.clone() });
        layer.put_many(std::slice::from_ref(&behind)).unwrap();
        let hashes = [&behind, &one, &behind].map(Chunk::hash);
        assert_eq!(layer.get_many(&hashes).unwrap(), [behind.clone(), one.clone(), behind]);
        assert_eq!(layer.get(one.hash()).unwrap(), one);
        assert_eq!(layer.has_many(&[absent.hash(), one.hash()]).unwrap(), [false, true]);
        let requested = [absent.hash(), one.hash(), hashes[0]];
        assert_eq!(layer.has_intact(&requested).unwrap(), [false, true, true]);
        let missing = layer.get_many(&[one.hash(), absent.hash()]).unwrap_err();
        assert!(matches!(missing, StoreError::Missing(hash) if hash == absent.hash()));
        assert_eq!(layer.store.chunk_count(), 1);
    }
}
