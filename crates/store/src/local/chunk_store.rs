//! The local store's implementation of [`ChunkStore`].

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::{LocalStore, SELF_CONTAINED_SUFFIX, collect};
use crate::chunk::{Chunk, ChunkHash};
use crate::chunk_store::SendFailure;
use crate::error::StoreError;
use crate::gc::session::Session;
use crate::gc::{GarbageCollection, GcReport};
use crate::hash::NameHasherBuilder;
use crate::io::{Tier, TierState};
use crate::pack::codec::Effort;
use crate::pack::frames::Frames;
use crate::read::prefetch::State;
use crate::{
    CacheBudget, ChunkStore, Copies, Damage, EntryLookup, EntryName, Lifetime, Maintenance,
    Prefetched, ROOT_NAME_BYTES_MAX, ReadCache, ReadOptions, ScrubReport, StoreCounters,
};

impl ChunkStore for LocalStore {
    fn read(&self, hash: ChunkHash, options: ReadOptions) -> Result<Chunk, StoreError> {
        self.counters.chunks_read.add(1);
        if let Some(chunk) = self.cache.get(hash) {
            return Ok(chunk);
        }
        self.counters.chunks_fetched.add(1);
        if options.will_replace { self.fetch_past_cache(hash) } else { self.fetch(hash) }
    }

    fn look_up_entry(&self, hash: ChunkHash, part: EntryName) -> Result<EntryLookup, StoreError> {
        self.counters.chunks_read.add(1);
        if let Some(look_up_entry) = self.cache.look_up_entry(hash, part) {
            return Ok(look_up_entry);
        }
        self.counters.chunks_fetched.add(1);
        self.fetch_for_lookup(hash)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, StoreError> {
        self.counters.chunks_read.add(hashes.len() as u64);
        self.fetch_through_cache(hashes)
    }

    fn prefetch(&self, hashes: &[ChunkHash]) -> Result<Vec<Prefetched>, StoreError> {
        self.fetch_prefetched(hashes)
    }

    fn open_prefetched(
        &self,
        ahead: Prefetched,
        options: ReadOptions,
    ) -> Result<Chunk, StoreError> {
        match ahead.0 {
            State::Chunk(chunk) => Ok(chunk),
            State::Stored(stored) if options.will_replace => self.open_stored_past_cache(&stored),
            State::Stored(stored) => self.open_stored(stored),
        }
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        Ok(self.find_and_touch(hashes)?.iter().map(Option::is_some).collect())
    }

    fn has_intact(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        self.find_intact(hashes)
    }

    fn put_many_for(&self, lifetime: Lifetime, chunks: &[Chunk]) -> Result<(), StoreError> {
        self.check_poison()?;
        let names: Vec<ChunkHash> = chunks.iter().map(Chunk::hash).collect();
        let present = self.find_intact(&names)?;
        let mut seen = HashSet::with_hasher(NameHasherBuilder);
        let absent = chunks.iter().zip(present).filter(|(_, present)| !present);
        let absent: Vec<&Chunk> =
            absent.map(|(chunk, _)| chunk).filter(|chunk| seen.insert(chunk.hash())).collect();
        if absent.is_empty() {
            return Ok(());
        }
        self.await_room()?;
        let effort = Effort::from(lifetime);
        let mut frames = Frames::new(self.buffers.take());
        let bytes = absent.iter().map(|chunk| chunk.encoded().len()).sum();
        frames.reserve(absent.len(), bytes);
        absent.iter().for_each(|chunk| frames.push(effort, &[chunk]));
        let added = self.append_absent(lifetime.into(), &mut frames);
        self.buffers.give_back(frames.into_buffer());
        let added = added?;
        for chunk in absent.into_iter().filter(|chunk| added.contains(&chunk.hash())) {
            self.counters.chunks_written.add(1);
            self.counters.bytes_put.add(chunk.encoded().len() as u64);
            // Interior nodes of what was loaded are asked for at each read of it.
            if lifetime != Lifetime::Loaded || chunk.reference_count() > 0 {
                self.cache.insert(chunk.clone());
            }
        }
        self.send_when_due()
    }

    fn sync(&self) -> Result<(), StoreError> {
        let batches = self.writer().batches;
        let mut publisher = self.publisher();
        self.check_poison()?;
        let done = batches <= publisher.batches && self.is_manifest_current(&publisher);
        if !done && self.sync_packs(&mut publisher)? {
            let roots = publisher.manifest.roots.clone();
            self.publish(&mut publisher, roots)?;
        }
        Ok(())
    }

    fn sync_these(&self, hashes: &[ChunkHash]) -> Result<(), StoreError> {
        let located = self.locate(hashes)?;
        let are_durable = {
            let publisher = self.publisher();
            located.iter().all(|(_, at, _)| publisher.is_durable(at))
                && !self.reported.has_any(located.iter().map(|(_, _, hash)| *hash))
                && self.is_manifest_current(&publisher)
                // The sync for which the set was cleared may have failed.
                && self.check_poison().is_ok()
        };
        if are_durable { Ok(()) } else { self.sync() }
    }

    fn root(&self, name: &str) -> Result<Option<ChunkHash>, StoreError> {
        Ok(self.roots.read().expect("no panic while the lock is held").get(name).copied())
    }

    fn swap_root(
        &self,
        name: &str,
        expected: Option<ChunkHash>,
        new: Option<ChunkHash>,
    ) -> Result<(), StoreError> {
        assert!(name.len() <= ROOT_NAME_BYTES_MAX);
        let mut publisher = self.publisher();
        self.check_poison()?;
        let found = publisher.manifest.roots.get(name).copied();
        if found != expected {
            return Err(StoreError::RootChanged { name: name.to_owned(), expected, found });
        }
        if let Some(hash) = new {
            self.locate(&[hash])?;
        }
        self.sync_packs(&mut publisher)?;
        let mut roots = publisher.manifest.roots.clone();
        match new {
            Some(hash) => roots.insert(name.to_owned(), hash),
            None => roots.remove(name),
        };
        self.publish(&mut publisher, roots.clone())?;
        *self.roots.write().expect("no panic while the lock is held") = roots;
        drop(publisher);
        self.spill_keys_when_due();
        if name.ends_with(SELF_CONTAINED_SUFFIX) { self.send_soon() } else { Ok(()) }
    }

    fn session(&self) -> Session {
        self.sessions.begin()
    }

    fn read_cache(&self) -> Option<&dyn ReadCache> {
        Some(self)
    }

    fn maintenance(&self) -> &dyn Maintenance {
        self
    }

    fn counters(&self) -> StoreCounters {
        let (cache_bytes, cache_bytes_max) = self.cache.bytes();
        StoreCounters { cache_bytes, cache_bytes_max, ..self.counters.now() }
    }
}

impl ReadCache for LocalStore {
    fn keep_entry(&self, hash: ChunkHash, part: EntryName, pieces: &[&[u8]]) {
        self.cache.keep_entry(hash, part, pieces);
    }

    fn link_budget(&self) -> &Arc<CacheBudget> {
        &self.budget
    }

    fn pin_budget(&self) -> &Arc<CacheBudget> {
        &self.pin_budget
    }

    fn withhold(&self, bytes: u64) {
        self.cache.withhold(bytes);
    }
}

impl Maintenance for LocalStore {
    fn collect(&self, collection: &mut GarbageCollection<'_>) -> Result<GcReport, StoreError> {
        collect::collect(self, collection)
    }

    fn damages(&self) -> Vec<Damage> {
        self.all_damages()
    }

    fn take_findings(&self) -> Vec<Damage> {
        self.new_findings()
    }

    fn has_doubts(&self) -> bool {
        self.is_in_doubt()
    }

    fn report_lost(&self, needed: &[ChunkHash]) -> Result<(), StoreError> {
        self.settle_doubts(needed)
    }

    fn scrub(
        &self,
        first: u64,
        throttle: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ScrubReport, StoreError> {
        self.scrub_all(first, throttle)
    }

    fn copies(&self) -> Option<&Copies> {
        Some(&self.copies)
    }

    fn is_tiered(&self) -> bool {
        self.disk.tier().is_some()
    }

    fn send_until_stopped(&self, on_attempt: &mut dyn FnMut(&Result<(), StoreError>)) {
        self.run_sender(on_attempt);
    }

    fn purge_tier(&self) -> Result<(), StoreError> {
        self.send_sealed()?;
        self.disk.tier().map_or(Ok(()), Tier::purge)
    }

    fn stop_sending(&self) {
        self.stop_sender();
    }

    fn tier_state(&self) -> Option<TierState> {
        self.disk.tier().map(Tier::state)
    }

    fn tend_tier(&self) -> Vec<String> {
        self.disk.tier().map_or_else(Vec::new, Tier::tend)
    }

    fn send_failure(&self) -> Option<SendFailure> {
        self.failure_to_send()
    }
}
