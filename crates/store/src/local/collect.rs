//! Garbage collection: removes unreachable chunks while the store serves.
//!
//! 1. From now on, note every chunk that is reported to a caller. Seal the open packs: what is
//!    written from now on lies in packs that this collection leaves alone.
//! 2. Mark what can be reached from the named roots, the caller's roots, and what open sessions
//!    wrote or touched ([`super::mark`], [`crate::gc::session`]).
//! 3. Take what is dead out of the index, a few chunks at a time. Within the same lock, look
//!    whether one of them was touched meanwhile: it lives then, with all it refers to. A chunk that
//!    is out of the index doesn't exist: putting it again writes it again.
//! 4. Packs without live chunks go. Packs with few are moved elsewhere ([`super::repack`]) as far
//!    as space demands, a round at a time, so that a round's packs are gone before the next needs
//!    room. Frames that were read to be moved were checked; damaged ones are set aside
//!    ([`super::heal`]), and if one is needed its pack stays as it is. A pack with damage, but with
//!    copies elsewhere of all that is needed, is moved however much of it lives: damage doesn't
//!    stay for ever.
//! 5. A pack goes by publishing a manifest without it, after the packs with its chunks were synced
//!    and these chunks were read once more from there ([`super::reread`]): what isn't whole is
//!    written again from the pack that would go. Then its file is deleted; readers that hold it
//!    read on.
//!
//! *Crash*: before 5, the old packs are listed and whole, and a chunk that lies in two packs is
//! found in either. After it, the old files are not listed, and are removed by the next opening.
//! Dead chunks in packs that stay are in the index again after an opening: they may refer to chunks
//! that are gone. So `has_many` says that a chunk is there, and never that all it refers to is.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, MutexGuard, TryLockError};
use std::time::Duration;

use super::mark::{Halt, Marks};
use super::repack::Repack;
use super::{CHANGED_TOGETHER, LocalStore};
use crate::ChunkStore;
use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::gc::session::Sessions;
use crate::gc::{GarbageCollection, GcReport};
use crate::index::Index;
use crate::io::pause;
use crate::location::PackedChunk;
use crate::location::{PURPOSE_COUNT, PackNumber, Purpose};
use crate::manifest::{PackState, SetAsideReason};
use crate::pack::Pack;
use crate::pack::reader::read_index;
use crate::pack::writer::{PACK_CHUNKS_MAX, Written};

/// The interval at which a collection that waits for another one looks whether that has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A round moves packs of about this many bytes, and of what a collection may take of the disk at
/// most.
const ROUND_BYTES: u64 = 1 << 30;
/// The share of what is reachable that all packs together take at most, without `pack_history`,
/// while packs with few live chunks stay: packs of folds die by themselves soon, and what has moved
/// was written for nothing. Collected again when they have grown by half, they take twice that at
/// most.
const WHOLE_PERCENT_MAX: u64 = 133;
/// Packs below this part of a full one are small: with `pack_history` they are put together.
const SMALL_PACK_DIVISOR: u64 = 8;
/// The percentage of a pack that must be where it should be, with `pack_history`, or it is
/// rewritten.
const PACKED_PERCENT_MIN: u64 = 90;
/// The percentage of history, without it, from which on packs that version commits wrote are packed
/// too; and of these so many bytes at most in one collection.
const STEADY_HISTORY_PERCENT_MIN: u64 = 60;
const STEADY_BYTES_MAX: u64 = 256 << 20;
/// The number of small packs of a kind above which they are put together, without it.
const SMALL_PACKS_MAX: usize = 16;

/// See the module.
pub(super) fn collect(
    store: &LocalStore,
    collection: &mut GarbageCollection<'_>,
) -> Result<GcReport, StoreError> {
    let mut collected =
        GcReport { bytes_before: store.counters().bytes_stored, ..GcReport::default() };
    let Some(_one) = turn(store, collection) else {
        (collected.bytes_after, collected.stopped) = (collected.bytes_before, true);
        return Ok(collected);
    };
    store.check_poison()?;
    store.sessions.begin_collection();
    let _noting = EndWhenDropped(&store.sessions);
    let marks = Marks::new(store, &[]);
    let mut collector = Collector { store, collection, marks, collected };
    match collector.run() {
        Ok(()) => {}
        Err(Halt::Stopped) => collector.collected.stopped = true,
        Err(Halt::Failed(error)) => return Err(error),
    }
    let mut collected = collector.collected;
    collected.bytes_after = store.counters().bytes_stored;
    Ok(collected)
}

/// Waits until no other collection runs, which may take hours at a slow pace; `None` if this one is
/// to stop meanwhile.
fn turn<'a>(
    store: &'a LocalStore,
    collection: &mut GarbageCollection<'_>,
) -> Option<MutexGuard<'a, ()>> {
    loop {
        match store.collector.try_lock() {
            Ok(turn) => return Some(turn),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Poisoned(_)) => panic!("no panic while the lock is held"),
        }
        if (collection.throttle)(0).is_break() {
            return None;
        }
        pause(LOOK_EVERY);
    }
}

struct EndWhenDropped<'a>(&'a Sessions);

impl Drop for EndWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.end_collection();
    }
}

struct Collector<'a, 'b> {
    store: &'a LocalStore,
    collection: &'a mut GarbageCollection<'b>,
    marks: Marks<'a>,
    collected: GcReport,
}

/// A sealed pack, and what of it is needed.
struct Candidate {
    pack: Arc<Pack>,
    bytes: u64,
    chunk_count: usize,
    /// Bytes of frames with live chunks.
    bytes_live: u64,
    /// The number of these bytes that are of chunks that lie where a collection would put them.
    bytes_packed: u64,
}

impl Candidate {
    /// Returns how many hundredths of the pack `bytes` are.
    fn percent(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(100) / self.bytes.max(1)
    }
}

impl Collector<'_, '_> {
    fn run(&mut self) -> Result<(), Halt> {
        if self.collection.options.dry_run {
            self.marks = Marks::new(self.store, &self.store.sealed_packs());
            self.mark(&[])?;
            self.collected.chunks_live = self.marks.count();
            self.collected.bytes_live = self.marks.bytes_live()?;
            return Ok(());
        }
        let sealed = self.seal()?;
        self.store.check_duplicates()?;
        self.marks = Marks::new(self.store, &sealed);
        self.mark(&sealed)?;
        self.collected.chunks_live = self.marks.count();
        let mut candidates = Vec::with_capacity(sealed.len());
        for (pack, bytes) in sealed {
            let entries = match read_index(&pack, bytes) {
                // The next opening makes another; until then the pack is left as it is.
                Err(error @ StoreError::Damaged { .. }) if !self.is_purge() => {
                    self.store.note_file_finding(error);
                    continue;
                }
                entries => entries?,
            };
            self.remove_dead(&pack, &entries)?;
            candidates.push(self.candidate(pack, bytes, &entries)?);
            self.store.spill_keys_when_due();
            super::mark::throttle(self.collection.throttle, entries.len() as u64 * 40)?;
        }
        if self.is_purge() {
            self.check_nothing_lost()?;
        }
        let damaged = self.packs_with_lost();
        candidates.retain(|candidate| !damaged.contains(&candidate.pack.number));
        self.drop_unreadable(&damaged)?;
        let (empty, rest): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| candidate.bytes_live == 0);
        self.drop_packs(&empty)?;
        self.move_rounds(self.victims(rest))
    }

    /// Whether nothing dead may stay.
    fn is_purge(&self) -> bool {
        self.collection.options.live_percent_min > 100
    }

    /// Returns the packs with chunks that are lost and needed: these can't be moved, and must not
    /// go, since perhaps they can be read one day.
    fn packs_with_lost(&self) -> HashSet<PackNumber> {
        self.store.index(|index| {
            let needed = index.lost().filter(|(hash, damage)| self.marks.needs(**hash, damage));
            needed.map(|(_, damage)| damage.at.pack).collect()
        })
    }

    fn check_nothing_lost(&self) -> Result<(), StoreError> {
        let lost = self.store.index(|index| {
            let mut lost = index.lost();
            let lost = lost.find(|(hash, damage)| self.marks.needs(**hash, damage));
            lost.map(|(hash, damage)| damage.of(*hash).error())
        });
        lost.map_or(Ok(()), Err)
    }

    /// Step 1. Returns the sealed packs and their lengths.
    fn seal(&self) -> Result<Vec<(Arc<Pack>, u64)>, StoreError> {
        let result = {
            let mut writer = self.store.writer();
            let mut written = Written::default();
            let result = writer.seal_all(&mut written);
            self.store.note_written(written);
            result
        };
        // On a full disk what is sealed already can still go, and that is what it needs.
        match result.and_then(|()| self.store.sync()) {
            Err(error) if !error.is_full() => return Err(error),
            _ => {}
        }
        let durable: HashSet<PackNumber> = {
            let publisher = self.store.publisher();
            let sealed = publisher.packs.iter().filter(|entry| entry.state == PackState::Sealed);
            sealed.map(|entry| entry.number).collect()
        };
        let mut sealed = self.store.sealed_packs();
        sealed.retain(|(pack, _)| durable.contains(&pack.number));
        Ok(sealed)
    }

    /// Step 2.
    fn mark(&mut self, sealed: &[(Arc<Pack>, u64)]) -> Result<(), Halt> {
        // In this order: what a session protected that has ended since, the roots reach by now.
        let (moment, touched) = self.store.sessions.protected();
        let mut roots = (self.collection.roots)()?;
        roots.extend(self.store.roots.read().expect("no panic while the lock is held").values());
        self.marks.mark_roots(&roots, self.collection.throttle)?;
        self.marks.mark_touched(&touched, self.collection.throttle)?;
        let Some(moment) = moment else { return Ok(()) };
        let may_hold = |pack: &Pack| moment.may_be_before(pack.purpose, pack.number);
        for (pack, bytes) in sealed.iter().filter(|(pack, _)| may_hold(pack)) {
            let mut young = match read_index(pack, *bytes) {
                Err(StoreError::Damaged { .. }) => pack.rescued()?.to_vec(),
                entries => entries?,
            };
            young.retain(|it| moment.is_before(pack.purpose, &it.location(pack.number, None)));
            let mut are_in_force = self.store.are_in_force(pack.number, &young)?.into_iter();
            young.retain(|_| are_in_force.next() == Some(true));
            let names: Vec<ChunkHash> = young.iter().map(|entry| entry.hash).collect();
            self.marks.mark_names(&names, self.collection.throttle)?;
        }
        Ok(())
    }

    /// Step 3, for one pack.
    fn remove_dead(&mut self, pack: &Pack, entries: &[PackedChunk]) -> Result<(), Halt> {
        let positions: Vec<(u32, &PackedChunk)> = (0..).zip(entries).collect();
        for batch in positions.chunks(CHANGED_TOGETHER) {
            loop {
                let names = batch.iter().map(|(_, entry)| entry.hash);
                let (mut index, read) = self.store.index_mut_for(names)?;
                let fresh = self.marks.mark_at_once(self.store.sessions.take_fresh(), &index);
                if !fresh.is_empty() {
                    drop(index);
                    self.marks.mark_touched(&fresh, self.collection.throttle)?;
                    continue;
                }
                for (position, entry) in batch {
                    let is_dead = !self.marks.is_live(pack.number, *position)
                        && index.lies_in(entry.hash, pack.number, &read)
                        && !self.has_live_namesake(pack.number, entries, entry.hash);
                    if is_dead {
                        index.remove_sealed(entry.hash, pack.number, &read);
                        self.collected.chunks_dead += 1;
                    }
                }
                break;
            }
        }
        Ok(())
    }

    /// Checks whether an entry of this name is live: an index may have a chunk twice, and one place
    /// of it is marked.
    fn has_live_namesake(
        &self,
        pack: PackNumber,
        entries: &[PackedChunk],
        hash: ChunkHash,
    ) -> bool {
        let first = entries.partition_point(|entry| entry.hash < hash);
        let namesakes = entries[first..].iter().take_while(|entry| entry.hash == hash);
        (first as u32..).zip(namesakes).any(|(position, _)| self.marks.is_live(pack, position))
    }

    fn candidate(
        &self,
        pack: Arc<Pack>,
        bytes: u64,
        entries: &[PackedChunk],
    ) -> Result<Candidate, StoreError> {
        let (mut live, mut packed) = (0, 0);
        // A group's bytes are shared among its chunks, some of which may be dead.
        let whole: u64 = entries.iter().map(|entry| u64::from(entry.place.bytes)).sum();
        let share = |entry: &PackedChunk| match pack.purpose {
            Purpose::Packed => bytes / (entries.len() as u64).max(1),
            _ => u64::from(entry.place.bytes) * bytes / whole.max(1),
        };
        let are_in_force = self.store.are_in_force(pack.number, entries)?;
        for ((position, entry), is_in_force) in (0..).zip(entries).zip(are_in_force) {
            if !is_in_force {
                continue;
            }
            live += share(entry).max(1);
            let in_place = match pack.purpose {
                Purpose::Packed | Purpose::Brief => true,
                Purpose::Lasting => self.marks.is_current(pack.number, position),
                Purpose::Working => false,
            };
            packed += if in_place { share(entry).max(1) } else { 0 };
        }
        let chunk_count = entries.len();
        Ok(Candidate { pack, bytes, chunk_count, bytes_live: live, bytes_packed: packed })
    }

    /// The packs that are to be moved because little of them lives.
    fn sparse(&self, candidates: &[Candidate]) -> HashSet<PackNumber> {
        let options = self.collection.options;
        let live: u64 = candidates.iter().map(|candidate| candidate.bytes_live).sum();
        let mut whole: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
        let whole_max = match options.pack_history || self.store.is_short() {
            true => 0,
            false => live.saturating_mul(WHOLE_PERCENT_MAX) / 100,
        };
        let percent_min = u64::from(options.live_percent_min);
        let is_sparse =
            |candidate: &&Candidate| candidate.percent(candidate.bytes_live) < percent_min;
        let mut sparse: Vec<&Candidate> = candidates.iter().filter(is_sparse).collect();
        // Those first that win most for what is written.
        sparse.sort_by_key(|candidate| candidate.percent(candidate.bytes_live));
        let mut is_due = |candidate: &&Candidate| {
            let is_due = whole_max < whole;
            whole -= candidate.bytes.saturating_sub(candidate.bytes_live);
            is_due
        };
        let due = sparse.into_iter().take_while(|candidate| is_due(candidate));
        due.map(|candidate| candidate.pack.number).collect()
    }

    /// The packs that are to be moved.
    fn victims(&self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let options = self.collection.options;
        let sparse = self.sparse(&candidates);
        let damaged: HashSet<PackNumber> = self.store.index(|index| {
            let aside = index.aside().iter();
            let damaged = aside.filter(|(_, aside)| aside.why == SetAsideReason::Damaged);
            damaged.map(|((pack, _), _)| *pack).collect()
        });
        let bytes_small = self.store.pack_bytes_target / SMALL_PACK_DIVISOR;
        // A pack of brief chunks dies soon and whole.
        let is_small = |candidate: &Candidate| {
            candidate.bytes < bytes_small
                && candidate.chunk_count < PACK_CHUNKS_MAX / SMALL_PACK_DIVISOR as usize
                && candidate.pack.purpose != Purpose::Brief
        };
        let mut small_counts = [0; PURPOSE_COUNT];
        for candidate in candidates.iter().filter(|candidate| is_small(candidate)) {
            small_counts[candidate.pack.purpose as usize] += 1;
        }
        let mut steady_bytes = 0;
        let small_max = if options.pack_history { 1 } else { SMALL_PACKS_MAX };
        let is_victim = |candidate: &Candidate| {
            let small_count = small_counts[candidate.pack.purpose as usize];
            let bytes_history = candidate.bytes_live.saturating_sub(candidate.bytes_packed);
            let is_history = candidate.pack.purpose == Purpose::Lasting
                && !is_small(candidate)
                && STEADY_HISTORY_PERCENT_MIN <= candidate.percent(bytes_history)
                && steady_bytes < STEADY_BYTES_MAX;
            if is_history {
                steady_bytes += candidate.bytes_live;
                return true;
            }
            sparse.contains(&candidate.pack.number)
                || damaged.contains(&candidate.pack.number)
                || (is_small(candidate) && small_max < small_count)
                || (options.pack_history
                    && candidate.percent(candidate.bytes_packed) < PACKED_PERCENT_MIN)
        };
        candidates.into_iter().filter(is_victim).collect()
    }

    /// Step 4. Where the disk has no room to move anything, what is left stays.
    fn move_rounds(&mut self, victims: Vec<Candidate>) -> Result<(), Halt> {
        let mut left = victims;
        while !left.is_empty() {
            let (round, rest) = self.next_round(left);
            let moved =
                if round.is_empty() { self.nothing_fits() } else { self.move_packs(&round) };
            let is_full = match moved {
                Err(Halt::Failed(error)) if error.is_full() && !self.is_purge() => true,
                moved => moved.map(|()| false)?,
            };
            // Those that met damage stay, and what there was no room for.
            let damaged = self.packs_with_lost();
            let goes = |it: &Candidate| {
                !damaged.contains(&it.pack.number)
                    && (!is_full || self.is_empty(it).unwrap_or(false))
            };
            let (go, stay): (Vec<_>, Vec<_>) = round.into_iter().partition(goes);
            if self.is_purge() && !stay.is_empty() {
                self.check_nothing_lost()?;
            }
            self.drop_packs(&go)?;
            self.store.spill_keys_when_due();
            if is_full {
                return Ok(());
            }
            left = rest;
        }
        Ok(())
    }

    /// Takes from `left` as many packs as there is room to move, those first that win most for what
    /// is written where there isn't enough for all; and the rest.
    fn next_round(&self, mut left: Vec<Candidate>) -> (Vec<Candidate>, Vec<Candidate>) {
        // An eighth for the new packs' indexes.
        let room = self.store.writable_bytes().map_or(u64::MAX, |bytes| bytes / 8 * 7);
        let bytes_max = ROUND_BYTES.min(room);
        if bytes_max < left.iter().map(|victim| victim.bytes_live).sum() {
            left.sort_by_key(|victim| victim.percent(victim.bytes_live));
        }
        let mut bytes = 0;
        left.into_iter().partition(|victim| {
            let is_alone = bytes == 0 && victim.bytes_live <= room;
            let fits = is_alone || bytes + victim.bytes_live <= bytes_max;
            bytes += if fits { victim.bytes_live } else { 0 };
            fits
        })
    }

    /// Moves what lives in `round` elsewhere.
    fn move_packs(&mut self, round: &[Candidate]) -> Result<(), Halt> {
        let recodes = self.collection.options.pack_history;
        let mut repack = Repack::new(self.store, &self.marks, recodes, self.collection.throttle);
        let mut moved = Vec::new();
        for victim in round {
            let entries = read_index(&victim.pack, victim.bytes)?;
            repack.add(&victim.pack, &entries)?;
            moved.extend(entries.iter().map(|entry| entry.hash));
        }
        self.collected.chunks_moved += repack.finish()?;
        self.store.reread(&moved, self.collection.throttle)
    }

    fn nothing_fits(&self) -> Result<(), Halt> {
        let message = "no room to move what is needed out of packs with garbage";
        let error = io::Error::new(io::ErrorKind::StorageFull, message);
        Err(StoreError::io("the packs", error).into())
    }

    /// Forgets packs whose files are gone, or in which nothing can be read: marking has found all
    /// that is needed elsewhere, but for what `damaged` packs hold.
    fn drop_unreadable(&mut self, damaged: &HashSet<PackNumber>) -> Result<(), Halt> {
        let is_readable = |index: &Index, number| {
            index.packs().get(&number).is_some_and(|pack| pack.table.get().is_some())
        };
        let gone: Vec<PackNumber> = self.store.index(|index| {
            let holes = index.holes().iter();
            let mut gone: Vec<PackNumber> = holes
                .filter_map(|hole| PackNumber::from_file_name(&hole.damage.file))
                .filter(|number| !is_readable(index, *number) && !damaged.contains(number))
                .collect();
            // The chunks of an open pack, or one for whose index there was no room, are known.
            if !gone.is_empty() {
                let held: HashSet<PackNumber> =
                    index.open_chunks().map(|(_, at)| at.pack).collect();
                gone.retain(|number| !held.contains(number));
            }
            gone
        });
        let mut publisher = self.store.publisher();
        let all = publisher.packs.clone();
        publisher
            .packs
            .retain(|entry| entry.state == PackState::Open || !gone.contains(&entry.number));
        if publisher.packs.len() == all.len() {
            return Ok(());
        }
        let is_listed = |number| publisher.packs.iter().any(|entry| entry.number == number);
        let gone: Vec<PackNumber> = gone.into_iter().filter(|it| !is_listed(*it)).collect();
        let roots = publisher.manifest.roots.clone();
        if let Err(error) = self.store.publish(&mut publisher, roots) {
            publisher.packs = all;
            return Err(error.into());
        }
        drop(publisher);
        self.store.index_mut().drop_packs(|number| gone.contains(&number));
        for number in gone {
            let _ = self.store.disk.remove(&number.to_string());
        }
        Ok(())
    }

    /// Step 5. Nothing in the index lies in these packs any more.
    fn drop_packs(&mut self, packs: &[Candidate]) -> Result<(), Halt> {
        if packs.is_empty() {
            return Ok(());
        }
        for candidate in packs {
            self.check_empty(candidate)?;
        }
        let goes = |number: PackNumber| packs.iter().any(|gone| gone.pack.number == number);
        {
            let mut publisher = self.store.publisher();
            self.store.sync_packs(&mut publisher)?;
            let all = publisher.packs.clone();
            publisher.packs.retain(|entry| !goes(entry.number));
            let roots = publisher.manifest.roots.clone();
            if let Err(error) = self.store.publish(&mut publisher, roots) {
                publisher.packs = all;
                return Err(error.into());
            }
        }
        self.store.index_mut().drop_packs(goes);
        for candidate in packs {
            // A pack that can't be removed now is removed by the next opening: no manifest lists
            // it.
            let _ = self.store.disk.remove(&candidate.pack.name);
            self.store.counters.bytes_stored.subtract(candidate.bytes);
            self.collected.packs_removed += 1;
        }
        Ok(())
    }

    /// Checks that nothing is lost, which is worth reading the index once more.
    fn check_empty(&self, candidate: &Candidate) -> Result<(), StoreError> {
        assert!(self.is_empty(candidate)?, "a pack that goes holds nothing that is needed");
        Ok(())
    }

    fn is_empty(&self, candidate: &Candidate) -> Result<bool, StoreError> {
        let entries = read_index(&candidate.pack, candidate.bytes)?;
        let are_in_force = self.store.are_in_force(candidate.pack.number, &entries)?;
        Ok(!are_in_force.contains(&true))
    }
}
