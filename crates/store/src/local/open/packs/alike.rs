//! Files the chunks of sealed packs, of which several may hold the same one.
//!
//! 1. The starts of all packs' names are gone through side by side, part by part, so that memory
//!    holds those of one part only. A start that one pack alone has is that of chunks that no other
//!    holds: their keys come in order, and no page is read for them.
//! 2. Of the rest, which are few, the names decide, which are in pages.

use super::Loaded;
use crate::error::StoreError;
use crate::index::{Keys, KeysBuilder, Pair};
use crate::io::Disk;
use crate::location::{PackNumber, PackedChunk};
use crate::manifest::PackState;
use crate::pack::outline::{NameStart, Starts};

/// The starts of a part: 16 bytes of memory each.
const PART_COUNT: usize = 1 << 17;

/// A start that several packs have, and one of them.
type Alike = (NameStart, PackNumber);

/// Returns the keys of what one pack alone holds, and what is left to be added, ascending. The keys
/// take `memory_max` bytes of memory, and the rest of them lies in a file of `disk`, but for a disk
/// that has no room or fails: data must be readable there.
pub(super) fn keys_of(
    disk: &dyn Disk,
    mut packs: Vec<Starts>,
    memory_max: u64,
) -> Result<(Keys, Vec<Alike>), StoreError> {
    if let Ok(made) = file_all(disk, &mut packs, memory_max) {
        return Ok(made);
    }
    packs.iter_mut().for_each(Starts::rewind);
    file_all(disk, &mut packs, u64::MAX)
}

fn file_all(
    disk: &dyn Disk,
    packs: &mut [Starts],
    memory_max: u64,
) -> Result<(Keys, Vec<Alike>), StoreError> {
    let count: usize = packs.iter().map(Starts::count).sum();
    let parts = count.div_ceil(PART_COUNT) as u64;
    let mut builder = KeysBuilder::new(disk, count, memory_max)?;
    let (mut left, mut starts, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    for part in 1..=parts {
        let end = NameStart::of_part(part, parts);
        for pack in &mut *packs {
            let taken = pack.take_below(end, &mut starts);
            taken.map_err(|error| StoreError::io(pack.pack.to_string(), error))?;
        }
        starts.sort_unstable();
        for same in starts.chunk_by(|(left, _), (right, _)| left == right) {
            let (start, pack) = same[0];
            if same.iter().all(|(_, other)| *other == pack) {
                pairs.extend(same.iter().map(|_| Pair::of(start.beginning(), pack)));
            } else {
                left.extend_from_slice(same);
            }
        }
        starts.clear();
        // Of names that begin alike, the packs may not ascend.
        pairs.sort_unstable();
        pairs.drain(..).try_for_each(|pair| builder.push(pair))?;
    }
    left.dedup();
    Ok((builder.finish()?, left))
}

impl Loaded {
    /// Adds `left`, which [`keys_of`] returned.
    pub(super) fn insert_alike(&mut self, left: &[Alike]) -> Result<(), StoreError> {
        for (start, number) in left {
            let pack = &self.index.packs()[number];
            let mut chunks = pack.named_alike(&self.pages, start.beginning())?;
            chunks.retain(|chunk: &PackedChunk| NameStart::of(chunk.hash) == *start);
            self.insert_all(*number, PackState::Sealed, &chunks)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ChunkStore;
    use crate::chunk::{Chunk, ChunkKind};
    use crate::index::{Index, KeysRead};
    use crate::io::Machine;
    use crate::local::{LocalOptions, LocalStore};
    use crate::location::Purpose;
    use crate::pack::Pack;
    use crate::pack::outline::Outline;
    use crate::pack::reader::read_index;
    use crate::pack::table::PageCache;

    /// Two packs with the same chunks: each chunk is in force in one of them, whether keys lie in
    /// memory or in a file.
    #[test]
    fn a_chunk_of_two_packs_is_in_force_in_one() {
        let name = format!("frond-alike-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let machine = Machine::system(&directory).unwrap();
        let options = LocalOptions { pack_bytes_target: 1 << 10, ..LocalOptions::default() };
        let store = LocalStore::open(&machine, options).unwrap();
        for number in 0..100u32 {
            store.put_many(&[Chunk::new(ChunkKind::Blob, &[], &number.to_le_bytes())]).unwrap();
        }
        let (file, bytes) = store.index(|index| {
            let sealed = index.packs().values().find_map(|it| Some((it, it.table.get()?)));
            let (pack, table) = sealed.expect("a pack is sealed");
            (Arc::clone(&pack.file), table.pack_bytes)
        });
        for memory_max in [0, u64::MAX] {
            let mut starts = Vec::new();
            let mut loaded = Loaded {
                index: Index::default(),
                pages: PageCache::new(1 << 20),
                packs: Vec::new(),
                open: Vec::new(),
                damaged: Vec::new(),
                findings: Vec::new(),
            };
            let (mut names, mut packs) = (Vec::new(), Vec::new());
            for number in [PackNumber(3), PackNumber(4), PackNumber(5)] {
                let pack = Arc::new(Pack::new(number, Purpose::Working, Arc::clone(&file)));
                let entries = read_index(&pack, bytes).unwrap();
                // The last one holds the first of them only.
                let held = if number == PackNumber(5) { &entries[..1] } else { &entries };
                starts.push(Outline::new(0, held).into_starts(number, None));
                names = entries.iter().map(|entry| entry.hash).collect();
                packs.push(pack);
            }
            let (keys, left) = keys_of(&*machine.disk, starts, memory_max).unwrap();
            assert_eq!(left.len(), 2 * names.len() + 1);
            loaded.index = Index::of_keys(keys);
            packs.into_iter().for_each(|pack| loaded.index.add_pack(pack));
            loaded.insert_alike(&left).unwrap();
            for name in &names {
                let spilled = loaded.index.keys().spilled();
                assert_eq!(spilled.is_some(), memory_max == 0);
                let read = KeysRead::of(spilled, std::iter::once(*name)).unwrap();
                let is_in = |number| loaded.index.lies_in(*name, PackNumber(number), &read);
                assert_eq!([is_in(3), is_in(4), is_in(5)], [true, false, false], "{memory_max}");
            }
        }
        drop((file, store));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
