//! The outline of a sealed pack's index: what an opening needs of it, in a seventh of its bytes.
//!
//! 1. The *fences* of its pages, as [`table`](super::table) keeps them: with these a page is found.
//! 2. The *starts* of its names: their first six bytes. Four of them file a chunk in memory. All
//!    six tell chunks of several packs apart whose names begin alike, so that no page is read to
//!    see whether they are one: of 100 million names, a million pairs agree in four bytes, and 18
//!    in six.
//!
//! An index may name a chunk twice; its start is there once.
//!
//! An opening reads the starts of many packs side by side ([`Starts`]), each from where it lies.

pub(crate) mod format;

use std::io;
use std::ops::Range;

use bytes::Bytes;

use self::format::{START_BYTES, encode_outline, parse_outline};
use super::table::fence;
use super::table::format::{PAGE_ENTRY_COUNT, index_bytes};
use crate::chunk::ChunkHash;
use crate::hash::NameBeginning;
use crate::io::StoredBytes;
use crate::location::{PackNumber, PackedChunk};

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

    /// Where the first `part` of `parts` almost equal parts of all starts end; `None` for all.
    pub(crate) fn of_part(part: u64, parts: u64) -> Option<NameStart> {
        let all = 1u64 << (8 * START_BYTES);
        (part < parts).then(|| NameStart(all / parts * part))
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

    /// Those of `pack`, of which this is the outline, to be read from where it lies, if it lies
    /// elsewhere.
    pub(crate) fn into_starts(self, pack: PackNumber, elsewhere: Option<StoredBytes>) -> Starts {
        let range = match &elsewhere {
            Some(outline) => outline.len() - self.starts.len()..outline.len(),
            None => 0..self.starts.len(),
        };
        let bytes = elsewhere.unwrap_or(StoredBytes::Held(self.starts));
        Starts { pack, bytes, first: range.start, left: range, read: Bytes::new() }
    }
}

/// The starts of a pack's names, which are read in their order.
pub(crate) struct Starts {
    pub(crate) pack: PackNumber,
    bytes: StoredBytes,
    /// Where the first lies among them.
    first: usize,
    /// What of these bytes wasn't read yet.
    left: Range<usize>,
    /// What was read and not taken yet.
    read: Bytes,
}

/// Starts are read by so many bytes at once.
const READ_BYTES: usize = 512 * START_BYTES;

impl Starts {
    /// How many are left.
    pub(crate) fn count(&self) -> usize {
        (self.left.len() + self.read.len()) / START_BYTES
    }

    /// Begins again.
    pub(crate) fn rewind(&mut self) {
        self.left.start = self.first;
        self.read = Bytes::new();
    }

    /// Takes those below `end`, or all.
    ///
    /// # Errors
    /// An error of the disk.
    pub(crate) fn take_below(
        &mut self,
        end: Option<NameStart>,
        taken: &mut Vec<(NameStart, PackNumber)>,
    ) -> io::Result<()> {
        loop {
            if self.read.is_empty() {
                let next = self.left.start..self.left.end.min(self.left.start + READ_BYTES);
                if next.is_empty() {
                    return Ok(());
                }
                self.left.start = next.end;
                self.read = self.bytes.read(next)?;
            }
            let (starts, _) = self.read.as_chunks::<START_BYTES>();
            let starts = starts.iter().map(|start| NameStart::of_bytes(start));
            let before = taken.len();
            let below = starts.take_while(|start| end.is_none_or(|end| *start < end));
            taken.extend(below.map(|start| (start, self.pack)));
            self.read = self.read.slice((taken.len() - before) * START_BYTES..);
            if !self.read.is_empty() {
                return Ok(());
            }
        }
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
        }
    }

    /// From memory and from a file, each start is taken once, in its part.
    #[test]
    fn starts_are_taken_part_by_part() {
        let entries = entries(4_999);
        let outline = Outline::new(4_000, &entries);
        let expected: Vec<NameStart> = outline.starts().collect();
        let bytes = Bytes::from(outline.encode());
        for elsewhere in [None, Some(StoredBytes::Held(bytes))] {
            for parts in [1, 2, 7, 64] {
                let mut starts = outline.clone().into_starts(PackNumber(3), elsewhere.clone());
                assert_eq!(starts.count(), expected.len());
                let (mut all, mut from) = (Vec::new(), NameStart(0));
                for part in 1..=parts {
                    let (end, before) = (NameStart::of_part(part, parts), all.len());
                    starts.take_below(end, &mut all).unwrap();
                    let is_within =
                        |start: NameStart| from <= start && end.is_none_or(|end| start < end);
                    assert!(all[before..].iter().all(|(start, _)| is_within(*start)));
                    from = end.unwrap_or(from);
                }
                assert_eq!(starts.count(), 0);
                assert!(all.iter().map(|(start, _)| *start).eq(expected.iter().copied()));
            }
        }
    }
}
