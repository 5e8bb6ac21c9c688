//! Entries in memory: their bytes in blocks, so that they cost what they are long and no allocation
//! each, and may be sorted by moving 24 bytes.
//!
//! *Invariant*: of two entries the one that came first lies before the other in the blocks. So
//! entries of equal keys are ordered by where they lie, and sorting needs no second copy of the
//! list to be stable.

use frond_store::budget::{Exceeded, Reservation};

/// A block's bytes, unless an entry alone has more. The first ones are smaller.
const BLOCK_BYTES_MAX: usize = 256 << 10;
const BLOCK_BYTES_MIN: usize = 4 << 10;

/// The position of an entry. The key is followed by the document.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The key's first eight bytes, most significant first: most keys differ there.
    head: u64,
    block: u32,
    start: u32,
    key_bytes: u32,
    document_bytes: u32,
}

/// The entries.
#[derive(Debug)]
pub(super) struct SortBuffer {
    blocks: Vec<Vec<u8>>,
    places: Vec<Place>,
    /// The bytes of keys and documents.
    bytes: usize,
    reservation: Reservation,
}

impl SortBuffer {
    /// Holds nothing, and then what `reservation` allows.
    pub(super) fn new(reservation: Reservation) -> SortBuffer {
        SortBuffer { blocks: Vec::new(), places: Vec::new(), bytes: 0, reservation }
    }

    /// Checks whether they may stay in memory.
    pub(super) fn check(&mut self) -> Result<(), Exceeded> {
        let bytes = self.bytes();
        self.reservation.hold(bytes)
    }

    /// Gives all memory back.
    pub(super) fn clear(&mut self) {
        (self.blocks, self.places, self.bytes) = (Vec::new(), Vec::new(), 0);
        self.reservation.release();
    }

    /// Returns how many there are.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// Returns the memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.places.capacity() * size_of::<Place>()
    }

    /// Copies an entry.
    pub(super) fn push(&mut self, key: &[u8], document: &[u8]) {
        let wanted = key.len() + document.len();
        let has_room =
            self.blocks.last().is_some_and(|block| wanted <= block.capacity() - block.len());
        if !has_room {
            let before = self.blocks.last().map_or(0, Vec::capacity);
            let bytes = (before * 2).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX).max(wanted);
            self.blocks.push(Vec::with_capacity(bytes));
        }
        let block_position = self.blocks.len() - 1;
        let block = &mut self.blocks[block_position];
        let whole = |count: usize| u32::try_from(count).expect("blocks and documents end at 2 GiB");
        self.places.push(Place {
            head: head_of(key),
            block: whole(block_position),
            start: whole(block.len()),
            key_bytes: whole(key.len()),
            document_bytes: whole(document.len()),
        });
        block.extend_from_slice(key);
        block.extend_from_slice(document);
        self.bytes += wanted;
    }

    /// The key and the document at a position.
    pub(super) fn entry(&self, position: usize) -> (&[u8], &[u8]) {
        let place = self.places[position];
        let entry = &self.blocks[place.block as usize][place.start as usize..];
        let (key, rest) = entry.split_at(place.key_bytes as usize);
        (key, &rest[..place.document_bytes as usize])
    }

    /// Returns the first position, of entries that are sorted, whose key isn't less than `key`.
    pub(super) fn first_from(&self, key: &[u8]) -> usize {
        self.places.partition_point(|place| self.key_of(place) < key)
    }

    fn key_of(&self, place: &Place) -> &[u8] {
        let block = &self.blocks[place.block as usize];
        &block[place.start as usize..][..place.key_bytes as usize]
    }

    /// The key at the last position.
    pub(super) fn last_key(&self) -> Option<&[u8]> {
        let last = self.places.len().checked_sub(1)?;
        Some(self.entry(last).0)
    }

    /// Sorts by the keys; equal ones stay in the order in which they came.
    pub(super) fn sort(&mut self) {
        let blocks = &self.blocks;
        let key = |place: &Place| {
            &blocks[place.block as usize][place.start as usize..][..place.key_bytes as usize]
        };
        self.places.sort_unstable_by(|left, right| {
            left.head
                .cmp(&right.head)
                .then_with(|| key(left).cmp(key(right)))
                .then_with(|| (left.block, left.start).cmp(&(right.block, right.start)))
        });
    }

    /// Keeps the first `count`, which are sorted, and gives the memory of the others back.
    pub(super) fn truncate(&mut self, count: usize) {
        let (places, blocks) = (std::mem::take(&mut self.places), std::mem::take(&mut self.blocks));
        self.clear();
        for place in places.iter().take(count) {
            let entry = &blocks[place.block as usize][place.start as usize..];
            let (key, rest) = entry.split_at(place.key_bytes as usize);
            self.push(key, &rest[..place.document_bytes as usize]);
        }
    }
}

/// The first eight bytes of a key as a number, so that the numbers of two keys never stand
/// otherwise than the keys.
fn head_of(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(head)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Resources;

    #[test]
    fn sorts_as_keys_compare_and_keeps_what_is_equal_in_order() {
        let keys: [&[u8]; 8] = [b"b", b"", b"\0", b"abcdefgh", b"abcdefghi", b"a", b"b", b"\0\0"];
        let mut kept = SortBuffer::new(Resources::default().reservation());
        for (position, key) in keys.iter().enumerate() {
            kept.push(key, &[position as u8; 3000]);
        }
        kept.sort();
        let mut model: Vec<(&[u8], u8)> =
            keys.iter().enumerate().map(|(position, key)| (*key, position as u8)).collect();
        model.sort();
        let found: Vec<(&[u8], u8)> =
            (0..8).map(|position| (kept.entry(position).0, kept.entry(position).1[0])).collect();
        assert_eq!(found, model);
        for key in [&b""[..], b"\0", b"\0a", b"abcdefghh", b"b", b"c"] {
            let expected = model.partition_point(|(other, _)| *other < key);
            assert_eq!(kept.first_from(key), expected, "{key:?}");
        }
        kept.truncate(3);
        assert_eq!((kept.count(), kept.last_key()), (3, Some(&b"\0\0"[..])));
        assert_eq!(kept.bytes, 3 * 3000 + 3);
    }
}
