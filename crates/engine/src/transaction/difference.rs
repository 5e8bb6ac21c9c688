//! Finds what differs between a key's old and new value: the log gets only that, and a replay makes
//! the new value again.
//!
//! *Why that is sound*. The old value is the one in the transaction's snapshot, and it must be
//! there again when the record is replayed. Call S the Sequence at which the transaction commits.
//! 1. It is what the key has just before S: a transaction that asks for it has read, so if another
//!    wrote the key since the snapshot, the commit is a conflict; the same if the tree was
//!    replaced. The snapshot moves only if the key is locked and was not written since. A tree
//!    that has its base from this very transaction has no old value here.
//! 2. Whatever wrote the old value is before S in the log, or in the base that a replay finds,
//!    which stands for the tree at one moment F ([`crate::state::base`]). The log has everything
//!    above F, and is replayed in order. If F is below S, the replay finds the key as it was just
//!    before S. If it isn't, no reader ever asks for what the key had at S.
//! 3. A transaction that is refused for a full disk was never visible. A transaction that read it
//!    ahead of that is behind it in the log, and so refused with it, or finds out when it is queued
//!    ([`crate::queue::queued_reads`]): so nothing differs from that.
//!
//! *Chunks*, of large values, are made of chunks of the old value, and these must be there whatever
//! became of the key since: the record's memtable names them, collections keep them, and a flush
//! packs those that only the log's earlier segments had (`overlay::pending`). Chunks that a new
//! value refers to and the transaction didn't bring must be reached from the key's old value; those
//! of any other value are packed when the transaction commits.
//!
//! A chunk that was made of an old one by putting bytes in the place of others knows which
//! ([`Origin`](frond_store::chunk::Origin)): nothing is compared then.
//!
//! A patch names what it is a patch of by a hash, and a chunk that comes of one is compared with
//! its name: if there were a defect in all this, an opening would fail, not guess.

use std::collections::HashSet;

use frond_store::chunk::HASH_BYTES;
use frond_store::{Chunk, ChunkHash, ChunkStore, NameHasherBuilder};
use frond_tree::{Content, Value};

use crate::error::EngineError;
use crate::log::patch::Patch;
use crate::log::record::ChunkPatch;

/// The least length of values: of shorter ones a patch saves little.
const VALUE_BYTES_MIN: usize = 192;
/// The greatest length of old values: longer ones aren't read for this.
const VALUE_BYTES_MAX: u64 = 1 << 20;
/// A new chunk is compared with so many old ones at most.
const CANDIDATE_COUNT_MAX: usize = 8;

/// The differences between two values.
#[derive(Clone, Default)]
pub(crate) struct Difference {
    /// The patch, if the new value is inline.
    pub value: Option<Patch>,
    /// The patches by the new chunks' names.
    pub chunks: Vec<(ChunkHash, ChunkPatch)>,
}

impl Difference {
    /// Whether it is worth while to read the old value.
    pub fn may_be_little(new: &Value) -> bool {
        match &new.content {
            Content::Inline(bytes) => VALUE_BYTES_MIN <= bytes.len(),
            Content::Chunk { .. } => true,
            Content::Sequence { .. } => false,
        }
    }

    /// Finds what differs; `own` returns the chunks that the transaction brought, `store` has all
    /// others.
    ///
    /// # Errors
    /// [`EngineError::Store`] or [`EngineError::Tree`] if a chunk of one of the values can't be
    /// read.
    pub fn find(
        store: &dyn ChunkStore,
        own: &dyn Fn(ChunkHash) -> Option<Chunk>,
        old: &Value,
        new: &Value,
    ) -> Result<Difference, EngineError> {
        let mut difference = Difference::default();
        match (&old.content, &new.content) {
            (Content::Chunk { hash: old, .. }, Content::Chunk { hash: new, .. }) => {
                let mut pairs = Pairs { store, own, found: HashSet::default(), difference };
                pairs.descend(*old, *new)?;
                difference = pairs.difference;
            }
            (_, Content::Inline(bytes)) if old.bytes() <= VALUE_BYTES_MAX => {
                difference.value = Patch::between(&old.read(store)?, bytes);
            }
            _ => {}
        }
        Ok(difference)
    }
}

/// Finds for new chunks old ones that they are like: two chunks have chunks that are like each
/// other below them.
struct Pairs<'a> {
    store: &'a dyn ChunkStore,
    own: &'a dyn Fn(ChunkHash) -> Option<Chunk>,
    /// New chunks that have been looked at.
    found: HashSet<ChunkHash, NameHasherBuilder>,
    difference: Difference,
}

impl Pairs<'_> {
    /// Goes through the new chunks that `new` reaches, beside those that `old` reaches.
    fn descend(&mut self, old: ChunkHash, new: ChunkHash) -> Result<(), EngineError> {
        let mut open = vec![(old, new)];
        while let Some((old, new)) = open.pop() {
            // A chunk that the transaction brought itself may be in no base and no log: no patch
            // can be made from it.
            if (self.own)(old).is_some() || !self.found.insert(new) {
                continue;
            }
            let Some(new) = (self.own)(new) else { continue };
            if let Some(origin) = new.origin().filter(|origin| origin.old == old) {
                let patch = Patch::of_origin(origin, &new);
                debug_assert!(patch.as_ref().is_none_or(|patch| self.is_right(patch, old, &new)));
                let patch = patch.map(|patch| (new.hash(), ChunkPatch { old, patch }));
                self.difference.chunks.extend(patch);
                let changed = origin.reference;
                open.extend(changed.map(|(position, gone)| (gone, new.reference(position))));
                continue;
            }
            let old = self.store.get(old)?;
            if let Some(patch) = Patch::between_chunks(&old, &new) {
                let patch = ChunkPatch { old: old.hash(), patch };
                self.difference.chunks.push((new.hash(), patch));
            }
            open.extend(self.pairs_below(&old, &new)?);
        }
        Ok(())
    }

    /// Whether the patch turns the one chunk into the other.
    fn is_right(&self, patch: &Patch, old: ChunkHash, new: &Chunk) -> bool {
        let made = self.store.get(old).map(|old| patch.apply_to_chunk(&old));
        made.is_ok_and(|made| made.as_deref() == Ok(new.encoded()))
    }

    /// Pairs what `new` refers to and `old` doesn't with what `old` refers to and `new` doesn't.
    fn pairs_below(
        &self,
        old: &Chunk,
        new: &Chunk,
    ) -> Result<Vec<(ChunkHash, ChunkHash)>, EngineError> {
        let (gone, come) = differing(old, new);
        let come: Vec<Chunk> = come.into_iter().filter_map(self.own).collect();
        if let ([gone], [come]) = (&gone[..], &come[..]) {
            return Ok(vec![(*gone, come.hash())]);
        }
        let mut pairs = Vec::new();
        for come in come {
            let mut likest: Option<(usize, ChunkHash)> = None;
            for hash in gone.iter().take(CANDIDATE_COUNT_MAX) {
                let candidate = self.store.get(*hash)?;
                let bytes = Patch::bytes_between(candidate.encoded(), come.encoded());
                if likest.is_none_or(|(least, _)| bytes < least) {
                    likest = Some((bytes, *hash));
                }
            }
            pairs.extend(likest.map(|(_, hash)| (hash, come.hash())));
        }
        Ok(pairs)
    }
}

/// Returns the references of `before` alone, and those of `after` alone, in their order. Most
/// changes are in one place: equal references on both sides of it are left out without being looked
/// up.
fn differing(before: &Chunk, after: &Chunk) -> (Vec<ChunkHash>, Vec<ChunkHash>) {
    let (before_count, after_count) = (before.reference_count(), after.reference_count());
    fn names(chunk: &Chunk) -> std::slice::ChunksExact<'_, u8> {
        chunk.references_bytes().chunks_exact(HASH_BYTES)
    }
    let front = names(before).zip(names(after)).take_while(|(left, right)| left == right).count();
    let (behind, others) = (names(before).rev(), names(after).rev());
    let both = before_count.min(after_count) - front;
    let back = behind.zip(others).take(both).take_while(|(left, right)| left == right).count();
    let between = |chunk: &Chunk, count: usize| -> Vec<ChunkHash> {
        (front..count - back).map(|position| chunk.reference(position)).collect()
    };
    let (before, after) = (between(before, before_count), between(after, after_count));
    if before.len().max(after.len()) <= 1 {
        return (before, after);
    }
    let only = |these: &[ChunkHash], others: &[ChunkHash]| {
        let others: HashSet<&ChunkHash> = others.iter().collect();
        these.iter().filter(|hash| !others.contains(hash)).copied().collect()
    };
    (only(&before, &after), only(&after, &before))
}

#[cfg(test)]
mod tests {
    use frond_store::ChunkKind;
    use frond_store::memory::MemoryStore;

    use super::*;

    /// Its origin says where it differs from another chunk than the one that the log makes it of.
    #[test]
    fn a_chunk_that_was_made_of_another_is_compared() {
        let other = Chunk::new(ChunkKind::Blob, &[], &[7; 300]);
        let mut bytes = [7; 300];
        bytes[100] = 8;
        let old = Chunk::new(ChunkKind::Blob, &[], &bytes);
        let mut change = other.change();
        change.put_payload(200, b"x");
        let new = change.finish();
        assert!(new.origin().is_some_and(|origin| origin.old == other.hash()));
        let store = MemoryStore::new();
        store.put_many(&[other.clone(), old.clone()]).expect("memory takes all");
        let own = |hash| (hash == new.hash()).then(|| new.clone());
        let value = |chunk: &Chunk| {
            let content = Content::Chunk { hash: chunk.hash(), bytes: 300 };
            Value { flags: 0, content }
        };
        for old in [other, old] {
            let found = Difference::find(&*store, &own, &value(&old), &value(&new));
            let found = found.expect("all can be read");
            let [(name, patch)] = &found.chunks[..] else { panic!("one chunk comes") };
            assert_eq!((*name, patch.old), (new.hash(), old.hash()));
            let made = patch.patch.apply_to_chunk(&old).expect("it is made of this one");
            assert_eq!(new.encoded(), &made);
        }
    }
}
