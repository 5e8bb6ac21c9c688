//! Adds what several packs have of names that begin alike: one chunk that each of them holds, or
//! several chunks.
//!
//! Of packs with an outline the starts of the names are known. A start that one pack alone has is
//! that of chunks that no other holds, so no page is read for it. Among the rest the names decide,
//! which are in pages.

use std::collections::HashMap;

use super::Loaded;
use crate::error::StoreError;
use crate::hash::NameBeginning;
use crate::location::{PackNumber, PackedChunk};
use crate::manifest::PackState;
use crate::pack::outline::{NameStart, Outline};

/// What [`Index::insert_whole`](crate::index::Index::insert_whole) leaves.
type Alike = (PackNumber, NameBeginning);

impl Loaded {
    /// Adds `left`, which ascend by their beginnings, of packs of which some have outlines.
    pub(super) fn insert_alike(
        &mut self,
        left: &[Alike],
        outlines: &HashMap<PackNumber, Outline>,
    ) -> Result<(), StoreError> {
        for group in left.chunk_by(|(_, left), (_, right)| left == right) {
            if group.iter().any(|(number, _)| outlines.contains_key(number)) {
                self.insert_by_starts(group, outlines)?;
                continue;
            }
            for (number, beginning) in group {
                let chunks = self.named_alike(*number, *beginning)?;
                self.insert_all(*number, PackState::Sealed, &chunks)?;
            }
        }
        Ok(())
    }

    /// Adds what packs have of one beginning.
    fn insert_by_starts(
        &mut self,
        group: &[Alike],
        outlines: &HashMap<PackNumber, Outline>,
    ) -> Result<(), StoreError> {
        let mut starts: Vec<(NameStart, PackNumber)> = Vec::new();
        for (number, beginning) in group {
            match outlines.get(number) {
                Some(outline) => {
                    starts.extend(outline.alike(*beginning).map(|start| (start, *number)));
                }
                None => {
                    let mut chunks = self.named_alike(*number, *beginning)?;
                    chunks.dedup_by_key(|chunk| chunk.hash);
                    let start = |chunk: &PackedChunk| (NameStart::of(chunk.hash), *number);
                    starts.extend(chunks.iter().map(start));
                }
            }
        }
        starts.sort_unstable();
        for same in starts.chunk_by(|(left, _), (right, _)| left == right) {
            let mut packs: Vec<PackNumber> = same.iter().map(|(_, pack)| *pack).collect();
            packs.dedup();
            if let [pack] = packs[..] {
                let beginning = same[0].0.beginning();
                same.iter().for_each(|_| self.index.insert_beginning(beginning, pack));
                continue;
            }
            for pack in packs {
                let mut chunks = self.named_alike(pack, same[0].0.beginning())?;
                chunks.retain(|chunk| NameStart::of(chunk.hash) == same[0].0);
                self.insert_all(pack, PackState::Sealed, &chunks)?;
            }
        }
        Ok(())
    }

    fn named_alike(
        &self,
        number: PackNumber,
        beginning: NameBeginning,
    ) -> Result<Vec<PackedChunk>, StoreError> {
        self.index.packs()[&number].named_alike(&self.pages, beginning)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ChunkStore;
    use crate::chunk::{Chunk, ChunkKind};
    use crate::index::{Index, PackPairs};
    use crate::io::Machine;
    use crate::local::{LocalOptions, LocalStore};
    use crate::location::Purpose;
    use crate::pack::Pack;
    use crate::pack::reader::read_index;
    use crate::pack::table::PageCache;

    /// Two packs with the same chunks: each chunk is in force in one of them, whichever of them
    /// have outlines.
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
        for outlined in [[false, false], [true, false], [false, true], [true, true]] {
            let (mut pairs, mut outlines) = (Vec::new(), HashMap::new());
            let mut loaded = Loaded {
                index: Index::default(),
                pages: PageCache::new(1 << 20),
                packs: Vec::new(),
                open: Vec::new(),
                damaged: Vec::new(),
                findings: Vec::new(),
            };
            let mut names = Vec::new();
            for (number, outlined) in [PackNumber(3), PackNumber(4)].into_iter().zip(outlined) {
                let pack = Arc::new(Pack::new(number, Purpose::Working, Arc::clone(&file)));
                let entries = read_index(&pack, bytes).unwrap();
                pairs.push(PackPairs::of(number, &entries));
                names = entries.iter().map(|entry| entry.hash).collect();
                loaded.index.add_pack(pack);
                if outlined {
                    outlines.insert(number, Outline::new(0, &entries));
                }
            }
            let left = loaded.index.insert_whole(pairs);
            assert_eq!(left.len(), 2 * names.len());
            loaded.insert_alike(&left, &outlines).unwrap();
            for name in &names {
                let is_in = |number| loaded.index.lies_in(*name, PackNumber(number));
                assert_eq!([is_in(3), is_in(4)], [true, false], "{outlined:?}");
            }
        }
        drop((file, store));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
