//! The chunks that a transaction refers to but doesn't contain, with everything below them.
//!
//! Members put them before they apply the transaction, and what is put must lead to what is there
//! ([`crate::overlay::pending`], invariant 4). So they come in an order in which each stands behind
//! all that it leads to, and a chunk that the transaction brings is among them too, where one of
//! the others leads to it.
//!
//! Chunks that all members have don't travel again. A transaction's maker names them
//! ([`SharedChunks`]): the engine doesn't know that an old version's chunks are kept by all members
//! that know the version. Of a new tree that is much like one that they have only what differs
//! travels: both are walked level by level, and what lies in both is passed over.

use std::collections::HashSet;

use frond_store::{Chunk, ChunkHash, ChunkStore, StoreError};
use frond_tree::Content;

use crate::log::record::Record;

/// The number of chunks that are read at once.
const BATCH: usize = 256;

/// The chunks that the other members of a set are known to have.
#[derive(Default, Debug)]
pub(crate) struct SharedChunks {
    /// Chunks that they have with all that these lead to.
    pub roots: Vec<ChunkHash>,
    /// A root of the transaction's, and one that they have.
    pub alike: Vec<(ChunkHash, ChunkHash)>,
}

/// Walks over the referenced chunks; see the module.
pub(crate) struct ReferencedChunks<'a> {
    record: &'a Record,
    store: &'a dyn ChunkStore,
    /// The chunks that needn't travel, or were gathered.
    known: HashSet<ChunkHash>,
    /// The chunks that are yet to be walked from, and the chunks read below them.
    roots: Vec<ChunkHash>,
    read_roots: Vec<Chunk>,
    path: Vec<Node>,
    gathered: ChunkBatch,
    bytes: usize,
    /// Whether a chunk that the record brings lies below what was walked.
    pub reaches_own: bool,
}

/// Chunks, in an order in which they can be put.
#[derive(Default)]
pub(crate) struct ChunkBatch {
    pub chunks: Vec<Chunk>,
    /// Those of them that lead to all others, and how long their payloads are.
    pub tops: Vec<(ChunkHash, u64)>,
}

/// A chunk that leads to others, some of which are yet to be gathered.
struct Node {
    chunk: Chunk,
    below: std::vec::IntoIter<Chunk>,
    /// The number of tops there were before.
    top_count: usize,
}

impl<'a> ReferencedChunks<'a> {
    /// Begins with all that a record names and doesn't bring.
    ///
    /// # Errors
    /// An error of reading.
    pub fn new(
        record: &'a Record,
        store: &'a dyn ChunkStore,
        have: &SharedChunks,
    ) -> Result<ReferencedChunks<'a>, StoreError> {
        let mut walk = ReferencedChunks {
            record,
            store,
            known: have.roots.iter().copied().collect(),
            roots: roots(record),
            read_roots: Vec::new(),
            path: Vec::new(),
            gathered: ChunkBatch::default(),
            bytes: 0,
            reaches_own: false,
        };
        if walk.roots.is_empty() {
            return Ok(walk);
        }
        // Where a chunk is made of another, all that one refers to is where the value before is.
        let origins = store.get_many(&record.origins())?;
        walk.known.extend(origins.iter().flat_map(Chunk::references));
        for (new, old) in &have.alike {
            walk.pass_over_common(*new, *old)?;
        }
        Ok(walk)
    }

    /// Gathers more until there are so many bytes; whether there are.
    ///
    /// # Errors
    /// An error of reading.
    pub fn gather(&mut self, bytes_max: usize) -> Result<bool, StoreError> {
        loop {
            let Some(node) = self.path.last_mut() else {
                // One after the other: what stands in the path is below what stands before it.
                if let Some(root) = self.read_roots.pop() {
                    self.enter(root)?;
                    continue;
                }
                if self.roots.is_empty() {
                    return Ok(false);
                }
                let from = self.roots.len().saturating_sub(BATCH);
                let roots = self.roots.split_off(from);
                self.read_roots = self.read(roots)?;
                continue;
            };
            match node.below.next() {
                Some(chunk) => self.enter(chunk)?,
                None => {
                    let node = self.path.pop().expect("it was the last one");
                    self.leave(node);
                    if bytes_max <= self.bytes {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Takes what was gathered.
    pub fn take(&mut self) -> ChunkBatch {
        self.bytes = 0;
        for node in &mut self.path {
            node.top_count = 0;
        }
        std::mem::take(&mut self.gathered)
    }

    fn enter(&mut self, chunk: Chunk) -> Result<(), StoreError> {
        if self.known.contains(&chunk.hash()) {
            return Ok(());
        }
        let below = self.read(chunk.references().collect())?.into_iter();
        self.path.push(Node { chunk, below, top_count: self.gathered.tops.len() });
        Ok(())
    }

    fn leave(&mut self, node: Node) {
        // It may have been reached by another way meanwhile.
        if !self.known.insert(node.chunk.hash()) {
            return;
        }
        self.gathered.tops.truncate(node.top_count);
        self.gathered.tops.push((node.chunk.hash(), node.chunk.payload().len() as u64));
        self.bytes += node.chunk.encoded().len();
        self.gathered.chunks.push(node.chunk);
    }

    fn read(&mut self, mut wanted: Vec<ChunkHash>) -> Result<Vec<Chunk>, StoreError> {
        wanted.retain(|hash| !self.known.contains(hash));
        let mut found: Vec<Chunk> =
            wanted.iter().filter_map(|hash| own(self.record, *hash).cloned()).collect();
        self.reaches_own |= !found.is_empty();
        wanted.retain(|hash| own(self.record, *hash).is_none());
        found.extend(self.store.get_many(&wanted)?);
        Ok(found)
    }

    /// Passes over what `new` has in common with `old`, that all have.
    fn pass_over_common(&mut self, new: ChunkHash, old: ChunkHash) -> Result<(), StoreError> {
        self.known.insert(old);
        let (mut news, mut olds) = (vec![new], vec![old]);
        while !news.is_empty() && !olds.is_empty() {
            news.retain(|hash| !self.known.contains(hash));
            let held = self.below(&olds)?;
            let below = self.below(&news)?;
            self.known.extend(below.intersection(&held));
            olds = held.difference(&below).copied().collect();
            news = below.difference(&held).copied().collect();
        }
        Ok(())
    }

    /// Returns the references of chunks.
    fn below(&self, hashes: &[ChunkHash]) -> Result<HashSet<ChunkHash>, StoreError> {
        let mut below = HashSet::new();
        for batch in hashes.chunks(BATCH) {
            let foreign = batch.iter().filter(|hash| own(self.record, **hash).is_none());
            let foreign: Vec<ChunkHash> = foreign.copied().collect();
            below.extend(self.store.get_many(&foreign)?.iter().flat_map(Chunk::references));
        }
        Ok(below)
    }
}

/// Returns the chunks that a record names and doesn't bring.
fn roots(record: &Record) -> Vec<ChunkHash> {
    let mut roots: Vec<ChunkHash> = record.chunks.iter().flat_map(Chunk::references).collect();
    let values = record.writes.iter().flat_map(|(_, entries)| entries);
    roots.extend(values.filter_map(|(_, value)| match value.as_ref()?.content {
        Content::Inline(_) => None,
        Content::Chunk { hash, .. } | Content::Sequence { root: hash, .. } => Some(hash),
    }));
    roots.retain(|hash| own(record, *hash).is_none());
    roots.extend(record.bases.iter().filter_map(|(_, base)| Some((*base)?.root)));
    roots
}

/// A chunk that the record brings.
fn own(record: &Record, hash: ChunkHash) -> Option<&Chunk> {
    let place = record.chunks.binary_search_by_key(&hash, Chunk::hash).ok();
    place.map(|place| &record.chunks[place])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use frond_store::ChunkKind;
    use frond_store::memory::MemoryStore;
    use frond_testkit::random::for_seeds;
    use frond_tree::Value;

    use super::*;
    use crate::ids::TreeId;

    /// A record that names these values' chunks, and brings none of them.
    fn naming(roots: &[Chunk]) -> Record {
        let entries = roots.iter().enumerate().map(|(number, root)| {
            let content = Content::Chunk { hash: root.hash(), bytes: root.payload().len() as u64 };
            (number.to_be_bytes().to_vec().into(), Some(Value { flags: 0, content }))
        });
        Record { writes: vec![(TreeId(2), entries.collect())], ..Record::default() }
    }

    /// Members can't keep it before they have the record.
    #[test]
    fn chunks_that_lead_to_one_in_the_record_are_reported() {
        let store = MemoryStore::new();
        let own = Chunk::new(ChunkKind::Blob, &[], b"brought");
        let above = Chunk::new(ChunkKind::Blob, &[own.hash()], b"above");
        let apart = Chunk::new(ChunkKind::Blob, &[], b"apart");
        store.put_many(&[own.clone(), above.clone(), apart.clone()]).unwrap();
        for (root, expected) in [(apart, false), (above, true)] {
            let record = Record { chunks: vec![own.clone()], ..naming(&[root]) };
            let mut walk =
                ReferencedChunks::new(&record, &*store, &SharedChunks::default()).unwrap();
            while walk.gather(usize::MAX).unwrap() {}
            assert_eq!(walk.reaches_own, expected);
        }
    }

    #[test]
    fn all_of_a_piece_is_below_its_tops() {
        for_seeds(200, |mut random| {
            let store = MemoryStore::new();
            let mut chunks: Vec<Chunk> = Vec::new();
            for number in 0..1 + random.below(40) {
                let below: Vec<ChunkHash> = match chunks.is_empty() {
                    true => Vec::new(),
                    false => (0..random.below(4)).map(|_| random.choose(&chunks).hash()).collect(),
                };
                chunks.push(Chunk::new(ChunkKind::Blob, &below, &number.to_be_bytes()));
            }
            store.put_many(&chunks).unwrap();
            let roots: Vec<Chunk> =
                (0..1 + random.below(6)).map(|_| random.choose(&chunks).clone()).collect();
            let record = naming(&roots);
            let mut walk =
                ReferencedChunks::new(&record, &*store, &SharedChunks::default()).unwrap();
            let bytes_max = 1 + random.below(600);
            let (mut is_more, mut gathered) = (true, HashSet::new());
            while is_more {
                is_more = walk.gather(bytes_max).unwrap();
                let ChunkBatch { chunks, tops } = walk.take();
                let piece: HashMap<ChunkHash, &Chunk> =
                    chunks.iter().map(|chunk| (chunk.hash(), chunk)).collect();
                let mut open: Vec<ChunkHash> = tops.iter().map(|(hash, _)| *hash).collect();
                let mut kept = HashSet::new();
                while let Some(hash) = open.pop() {
                    if let Some(chunk) = piece.get(&hash)
                        && kept.insert(hash)
                    {
                        open.extend(chunk.references());
                    }
                }
                assert_eq!(kept.len(), piece.len(), "of what members put nothing may go");
                for chunk in &chunks {
                    assert!(gathered.insert(chunk.hash()));
                    assert!(chunk.references().all(|below| gathered.contains(&below)));
                }
            }
            assert!(roots.iter().all(|root| gathered.contains(&root.hash())));
        });
    }
}
