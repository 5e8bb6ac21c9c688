//! Finds which pack may hold a chunk: a set of pairs of 32 bits of a name and a pack's number.
//!
//! 1. Pairs are added in memory ([`buckets`]). Once these take more than they may, they go to a
//!    file ([`spilled`]), merged with those that lie there: 8 bytes of disk for each chunk, and a
//!    sixty-fourth of a byte of memory.
//! 2. The file never changes. A pair of it that is removed is noted as *taken*, until the next
//!    merge leaves it out.
//! 3. A thread that holds the index's lock reads no file: what a search needs of it is read before
//!    ([`KeysRead`]), and a search under the lock is right if the file is still the same
//!    ([`Keys::is_same_file`]).
//! 4. A merge goes on without the lock, too: [`Keys::freeze`] leaves it what was in memory, which
//!    is searched meanwhile, and [`Keys::thaw`] puts the new file in the place of both.
//!
//! An equal pair may be there more than once: two chunks of a pack whose names begin alike. So what
//! counts is how often it is in memory and in the file, less how often it was taken.

mod buckets;
mod spilled;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use self::buckets::Buckets;
use self::spilled::SpillWriter;
pub(crate) use self::spilled::Spilled;
use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::hash::NameBeginning;
use crate::io::Disk;
use crate::location::PackNumber;

/// The memory of a pair, with what buckets have room for.
const PAIR_MEMORY: u64 = 10;
/// The memory of a pair that was taken.
const TAKEN_MEMORY: u64 = 24;

/// The beginning of a name, and a pack's number. Ordered by name first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Pair(u64);

impl Pair {
    pub(crate) fn of(beginning: NameBeginning, pack: PackNumber) -> Pair {
        Pair(u64::from(beginning.0) << u32::BITS | u64::from(pack.0))
    }

    fn pack(self) -> PackNumber {
        PackNumber(self.0 as u32)
    }

    fn beginning(self) -> NameBeginning {
        NameBeginning((self.0 >> u32::BITS) as u32)
    }
}

/// All pairs of names that begin so.
fn alike_range(beginning: NameBeginning) -> RangeInclusive<Pair> {
    Pair::of(beginning, PackNumber(0))..=Pair::of(beginning, PackNumber(u32::MAX))
}

fn pair(hash: ChunkHash, pack: PackNumber) -> Pair {
    Pair::of(NameBeginning::of(hash), pack)
}

/// How often `pair` is in `pairs`, which ascend.
fn count_in(pairs: &[Pair], pair: Pair) -> usize {
    let from = pairs.partition_point(|other| *other < pair);
    pairs[from..].iter().take_while(|other| **other == pair).count()
}

/// The set of pairs.
#[derive(Default, Debug)]
pub(crate) struct Keys {
    resident: Buckets,
    /// What goes to the file now.
    frozen: Option<Arc<Buckets>>,
    spilled: Option<Arc<Spilled>>,
    /// How often a pair of `frozen` and `spilled` was removed: never more often than it is there.
    taken: BTreeMap<Pair, u32>,
}

/// What was read of the file of a set of pairs, for searches of certain names.
#[derive(Default)]
pub(crate) struct KeysRead {
    of: Option<Arc<Spilled>>,
    /// The beginnings of these names, which ascend strictly.
    beginnings: Vec<NameBeginning>,
    /// All pairs of them that are in the file, ascending.
    pairs: Vec<Pair>,
}

impl KeysRead {
    /// Reads what a search of `names` needs of `spilled`.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Damaged`].
    pub(crate) fn of(
        spilled: Option<Arc<Spilled>>,
        names: impl Iterator<Item = ChunkHash>,
    ) -> Result<KeysRead, StoreError> {
        let Some(file) = &spilled else { return Ok(KeysRead::default()) };
        let mut beginnings: Vec<NameBeginning> = names.map(NameBeginning::of).collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        let mut pairs = Vec::new();
        file.read_alike(&beginnings, &mut pairs)?;
        Ok(KeysRead { of: spilled, beginnings, pairs })
    }

    /// Those of names that begin so, which is one that was read.
    fn alike(&self, beginning: NameBeginning) -> &[Pair] {
        if self.of.is_none() {
            return &[];
        }
        // One that wasn't would seem to be absent, and be lost.
        assert!(self.beginnings.binary_search(&beginning).is_ok(), "its keys were read before");
        let range = alike_range(beginning);
        let from = self.pairs.partition_point(|pair| pair < range.start());
        let count = self.pairs[from..].iter().take_while(|pair| *pair <= range.end()).count();
        &self.pairs[from..from + count]
    }
}

/// What a merge begins with.
pub(crate) struct Frozen {
    resident: Arc<Buckets>,
    spilled: Option<Arc<Spilled>>,
    taken: BTreeMap<Pair, u32>,
}

impl Frozen {
    /// How many pairs a file with all of it has.
    pub(crate) fn count(&self) -> u64 {
        let spilled = self.spilled.as_ref().map_or(0, |spilled| spilled.count());
        (self.resident.count() + spilled) as u64
    }

    /// Writes a file with all that is there.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Damaged`].
    pub(crate) fn merge(&self, disk: &dyn Disk) -> Result<Spilled, StoreError> {
        let mut writer = SpillWriter::create(disk)?;
        let mut taken = self.taken.iter().map(|(pair, count)| (*pair, *count)).peekable();
        let mut passed = 0;
        let mut push = |pair: Pair| {
            while taken.next_if(|(next, _)| *next < pair).is_some() {
                passed = 0;
            }
            match taken.peek() {
                Some((next, count)) if *next == pair && passed < *count => {
                    passed += 1;
                    Ok(())
                }
                _ => writer.push(pair),
            }
        };
        let mut resident = self.resident.iter().peekable();
        for pair in self.spilled.iter().flat_map(|spilled| spilled.iter()) {
            let pair = pair?;
            while let Some(before) = resident.next_if(|before| *before < pair) {
                push(before)?;
            }
            push(pair)?;
        }
        resident.try_for_each(push)?;
        writer.finish()
    }
}

impl Keys {
    /// The file, if there is one.
    pub(crate) fn spilled(&self) -> Option<Arc<Spilled>> {
        self.spilled.clone()
    }

    /// Whether what was read is of the file that there is now.
    pub(crate) fn is_same_file(&self, read: &KeysRead) -> bool {
        match (&self.spilled, &read.of) {
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (None, None) => true,
            _ => false,
        }
    }

    /// The memory that it takes.
    pub(crate) fn memory(&self) -> u64 {
        let frozen = self.frozen.as_ref().map_or(0, |frozen| frozen.count());
        (self.resident.count() + frozen) as u64 * PAIR_MEMORY
            + self.taken.len() as u64 * TAKEN_MEMORY
    }

    pub(crate) fn insert(&mut self, hash: ChunkHash, pack: PackNumber) {
        self.resident.insert(pair(hash, pack));
    }

    /// The packs that may hold `hash`, each once, ascending.
    pub(crate) fn packs(&self, hash: ChunkHash, read: &KeysRead) -> Vec<PackNumber> {
        debug_assert!(self.is_same_file(read));
        let beginning = NameBeginning::of(hash);
        let resident = self.resident.alike(beginning);
        let frozen = self.frozen.as_ref().map_or(&[][..], |frozen| frozen.alike(beginning));
        let all = [resident, frozen, read.alike(beginning)];
        let mut pairs: Vec<Pair> = all.into_iter().flatten().copied().collect();
        pairs.sort_unstable();
        let is_left = |same: &&[Pair]| self.taken_count(same[0]) < same.len();
        pairs.chunk_by(Pair::eq).filter(is_left).map(|same| same[0].pack()).collect()
    }

    fn taken_count(&self, pair: Pair) -> usize {
        match self.taken.is_empty() {
            true => 0,
            false => self.taken.get(&pair).map_or(0, |count| *count as usize),
        }
    }

    fn count_of(&self, pair: Pair, read: &KeysRead) -> usize {
        debug_assert!(self.is_same_file(read));
        let frozen = self.frozen.as_ref().map_or(0, |frozen| frozen.count_of(pair));
        let spilled = count_in(read.alike(pair.beginning()), pair);
        self.resident.count_of(pair) + frozen + spilled - self.taken_count(pair)
    }

    pub(crate) fn contains(&self, hash: ChunkHash, pack: PackNumber, read: &KeysRead) -> bool {
        self.count_of(pair(hash, pack), read) > 0
    }

    /// Takes one such pair away, if there is one.
    pub(crate) fn remove(&mut self, hash: ChunkHash, pack: PackNumber, read: &KeysRead) {
        let pair = pair(hash, pack);
        if !self.resident.remove(pair) && self.count_of(pair, read) > 0 {
            *self.taken.entry(pair).or_default() += 1;
        }
    }

    /// What is to go to the file. Until [`Keys::thaw`] all of it is in force.
    pub(crate) fn freeze(&mut self) -> Frozen {
        // One that is there already is left of a merge that failed.
        let resident =
            self.frozen.get_or_insert_with(|| Arc::new(std::mem::take(&mut self.resident)));
        let (resident, spilled) = (Arc::clone(resident), self.spilled.clone());
        Frozen { resident, spilled, taken: self.taken.clone() }
    }

    /// Has `merged` be the file, which has all of `frozen`.
    pub(crate) fn thaw(&mut self, frozen: &Frozen, merged: Spilled) {
        self.frozen = None;
        self.spilled = Some(Arc::new(merged));
        for (pair, count) in &frozen.taken {
            let left = self.taken.get(pair).map_or(0, |now| now.saturating_sub(*count));
            match left {
                0 => self.taken.remove(pair),
                left => self.taken.insert(*pair, left),
            };
        }
    }
}

/// Makes a set of pairs that come in order: in memory as far as they may be there.
pub(crate) struct KeysBuilder {
    resident: Buckets,
    file: Option<SpillWriter>,
}

impl KeysBuilder {
    /// For about `count` pairs, which may take `memory_max` bytes of memory.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub(crate) fn new(
        disk: &dyn Disk,
        count: usize,
        memory_max: u64,
    ) -> Result<KeysBuilder, StoreError> {
        match count as u64 * PAIR_MEMORY <= memory_max {
            true => Ok(KeysBuilder { resident: Buckets::for_count(count), file: None }),
            false => {
                let file = Some(SpillWriter::create(disk)?);
                Ok(KeysBuilder { resident: Buckets::default(), file })
            }
        }
    }

    /// Adds a pair, none of those before being greater.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub(crate) fn push(&mut self, pair: Pair) -> Result<(), StoreError> {
        match &mut self.file {
            Some(file) => file.push(pair),
            None => {
                self.resident.insert(pair);
                Ok(())
            }
        }
    }

    /// The set.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub(crate) fn finish(self) -> Result<Keys, StoreError> {
        let spilled = self.file.map(|file| file.finish().map(Arc::new)).transpose()?;
        Ok(Keys { resident: self.resident, spilled, ..Keys::default() })
    }
}

#[cfg(test)]
mod tests;
