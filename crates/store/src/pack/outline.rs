//! The outline of a sealed pack's index: what an opening needs of it, in a seventh of its bytes.
//!
//! 1. The *fences* of its pages, as [`table`](super::table) keeps them: with these a page is found.
//! 2. The *starts* of its names: their first six bytes. Four of them file a chunk in memory. All
//!    six tell chunks of several packs apart whose names begin alike, so that no page is read to
//!    see whether they are one: of 100 million names, a million pairs agree in four bytes, and 18
//!    in six.
//!
//! An index may name a chunk twice; its start is there once.

pub(crate) mod format;

use bytes::Bytes;

use self::format::{START_BYTES, encode_outline, parse_outline};
use super::table::fence;
use super::table::format::{PAGE_ENTRY_COUNT, index_bytes};
use crate::chunk::ChunkHash;
use crate::hash::NameBeginning;
use crate::location::PackedChunk;

/// The first six bytes of a name, as a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct NameStart(u64);

impl NameStart {
    pub(crate) fn of(hash: ChunkHash) -> NameStart {
        NameStart::of_bytes(&hash.0)
    }

    fn of_bytes(name: &[u8]) -> NameStart {
        let bytes = name.iter().take(START_BYTES);
        NameStart(bytes.fold(0, |start, byte| start << 8 | u64::from(*byte)))
    }

    pub(crate) fn beginning(self) -> NameBeginning {
        NameBeginning((self.0 >> (8 * (START_BYTES - size_of::<NameBeginning>()))) as u32)
    }
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outline {
    /// Where the index begins in its pack.
    pub(crate) index_offset: u32,
    /// The number of its entries.
    pub(crate) entry_count: u32,
    /// The fences of its pages.
    pub(crate) fences: Vec<u64>,
    /// The starts of its names, which ascend, each of [`START_BYTES`].
    starts: Bytes,
}

impl Outline {
    /// The outline of the index at `index_offset` whose entries are `entries`, in their order.
    pub(crate) fn new(index_offset: u32, entries: &[PackedChunk]) -> Outline {
        let mut last = None;
        let mut starts = Vec::with_capacity(entries.len() * START_BYTES);
        for entry in entries {
            if last.replace(entry.hash) != Some(entry.hash) {
                starts.extend_from_slice(&entry.hash.0[..START_BYTES]);
            }
        }
        Outline {
            index_offset,
            entry_count: u32::try_from(entries.len()).expect("an index counts in 32 bits"),
            fences: entries.chunks(PAGE_ENTRY_COUNT).map(|page| fence(page[0].hash)).collect(),
            starts: Bytes::from(starts),
        }
    }

    /// Its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode_outline(self.index_offset, self.entry_count, &self.fences, &self.starts)
    }

    /// Reads one; `None` if it isn't that of a pack of `pack_bytes`.
    pub(crate) fn parse(bytes: &Bytes, pack_bytes: u64) -> Option<Outline> {
        let (index_offset, entry_count, fences, starts) = parse_outline(bytes)?;
        let end = u64::from(index_offset) + index_bytes(entry_count as usize) as u64;
        let page_count = (entry_count as usize).div_ceil(PAGE_ENTRY_COUNT);
        let outline = Outline { index_offset, entry_count, fences, starts };
        let count = outline.starts().len();
        let is_sound = end == pack_bytes
            && outline.fences.len() == page_count
            && outline.fences.is_sorted()
            && (1..=entry_count as usize).contains(&count)
            && outline.starts().is_sorted();
        is_sound.then_some(outline)
    }

    /// The starts of its names.
    pub(crate) fn starts(&self) -> impl ExactSizeIterator<Item = NameStart> {
        self.starts.chunks_exact(START_BYTES).map(NameStart::of_bytes)
    }

    /// Those of names that begin with `beginning`.
    pub(crate) fn alike(&self, beginning: NameBeginning) -> impl Iterator<Item = NameStart> {
        let (starts, _) = self.starts.as_chunks::<START_BYTES>();
        let from =
            starts.partition_point(|start| NameStart::of_bytes(start).beginning() < beginning);
        let starts = starts[from..].iter().map(|start| NameStart::of_bytes(start));
        starts.take_while(move |start| start.beginning() == beginning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HASH_BYTES;
    use crate::location::FrameOffset;

    fn entries(count: u32) -> Vec<PackedChunk> {
        let place = FrameOffset { offset: 16, bytes: 10 };
        let entry = |number: u32| {
            let mut hash = ChunkHash([0; HASH_BYTES]);
            // Three names begin alike, and two of these start alike.
            hash.0[..4].copy_from_slice(&(number / 3).wrapping_mul(0x9e37_79b9).to_be_bytes());
            hash.0[if number.is_multiple_of(3) { 4 } else { 20 }] = 1 + (number % 3) as u8;
            PackedChunk { hash, place, refers: false }
        };
        let mut entries: Vec<PackedChunk> = (0..count).map(entry).collect();
        entries.sort_unstable();
        // An index may name a chunk twice.
        entries.insert(5, entries[5]);
        entries
    }

    #[test]
    fn an_outline_has_each_name_once_and_is_read_back() {
        for count in [6, 102, 105, 999] {
            let entries = entries(count);
            let outline = Outline::new(4_000, &entries);
            assert_eq!(outline.starts().len(), count as usize);
            let pack_bytes = 4_000 + index_bytes(entries.len()) as u64;
            let bytes = Bytes::from(outline.encode());
            assert_eq!(Outline::parse(&bytes, pack_bytes), Some(outline.clone()));
            assert_eq!(Outline::parse(&bytes, pack_bytes + 40), None, "of another index");
            assert_eq!(Outline::parse(&bytes.slice(1..), pack_bytes), None);
            assert_eq!(Outline::parse(&bytes.slice(..bytes.len() - 1), pack_bytes), None);
            for entry in &entries {
                let beginning = NameBeginning::of(entry.hash);
                let alike: Vec<NameStart> = outline.alike(beginning).collect();
                assert_eq!(alike.len(), 3, "{:?}", entry.hash);
                assert!(alike.contains(&NameStart::of(entry.hash)));
            }
        }
    }
}
