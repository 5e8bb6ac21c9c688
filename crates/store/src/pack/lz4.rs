//! Compresses into LZ4's block format: chunks of a few kilobytes, as the leaves of trees are.
//!
//! A block is a row of *sequences*: bytes as they are (*literals*), then a *match*, which says how
//! far back the same bytes stood and how many they are. It ends with literals alone.
//!
//! 1. From the end of the last match on, every second place is looked at, and after many in vain
//!    fewer and fewer. Its next bytes are hashed to a slot of a table, which holds where bytes of
//!    that slot stood last; this place and the one behind it are entered into the table.
//! 2. If four bytes are the same, the match is made as long as it goes, backward too: so what
//!    begins between two places that are looked at is found whole.
//!
//! The format is that of <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>, the search
//! that of its reference, but for the places between. Measured on the leaves of a collection with
//! four indexes: 886 MB/s and 0.553 of the size, where `lz4_flex` (safe) does 650 MB/s and 0.548.
//! With each place looked at it were a sixth slower (0.546), without a note of the places between a
//! tenth faster (0.564).

use std::ops::Range;

/// A match has so many bytes at least.
const MATCH_BYTES_MIN: usize = 4;
/// The last bytes of a block are literals, so many at least.
const LITERAL_BYTES_LAST: usize = 5;
/// The last match begins so many bytes before the end, at least.
const MATCH_BYTES_BEFORE_END: usize = 12;
const _: () = assert!(size_of::<u64>() <= MATCH_BYTES_BEFORE_END);
/// Places take two bytes.
pub(super) const CONTENT_BYTES_MAX: usize = u16::MAX as usize;

/// A length below this stands in a sequence's first byte; of others the rest stands behind, in
/// bytes of `LENGTH_MORE`, and one that is less.
const LENGTH_LONG: usize = 15;
const LENGTH_MORE: usize = 255;

const SLOT_BITS: u32 = 12;
const HASHED_BYTES: u32 = 6;
const MULTIPLIER: u64 = 0xcf1b_bcdc_b7a5_6463;
/// The distance from one place that is looked at to the next, in parts of a byte: a part more after
/// each one in vain.
const STEP_PARTS: usize = 32;
const STEP_FIRST: usize = 2 * STEP_PARTS;
/// Literals are copied in pieces of so many bytes where there is room: a copy of any length is a
/// call.
const PIECE_BYTES: usize = 16;

/// A hash table of positions, kept for its memory.
pub(super) struct SlotTable(Box<[u16; 1 << SLOT_BITS]>);

impl Default for SlotTable {
    fn default() -> SlotTable {
        SlotTable(Box::new([0; 1 << SLOT_BITS]))
    }
}

impl SlotTable {
    /// Notes that `bytes` stand at `place`; returns where others of their slot stood, or the first
    /// place.
    #[inline]
    fn note(&mut self, bytes: u64, place: usize) -> usize {
        let hash = (bytes << (u64::BITS - 8 * HASHED_BYTES)).wrapping_mul(MULTIPLIER);
        let slot = &mut self.0[(hash >> (u64::BITS - SLOT_BITS)) as usize];
        usize::from(std::mem::replace(slot, place as u16))
    }

    /// The first of some of `places` where bytes are that stood before, and where they did.
    #[inline]
    fn search(&mut self, content: &[u8], places: Range<usize>) -> Option<(usize, usize)> {
        let (mut at, mut step) = (places.start, STEP_FIRST);
        while at < places.end {
            let bytes = word(content, at);
            let before = self.note(bytes, at);
            self.note(bytes >> 8, at + 1);
            if first_bytes(content, before) == bytes as u32 {
                return Some((at, before));
            }
            at += step / STEP_PARTS;
            step += 1;
        }
        None
    }
}

/// Compresses `content`, of at most [`CONTENT_BYTES_MAX`] (asserted), into the beginning of `out`,
/// which has room for whatever it may become. Returns how long that is.
pub(super) fn compress(content: &[u8], out: &mut [u8], places: &mut SlotTable) -> usize {
    assert!(content.len() <= CONTENT_BYTES_MAX);
    places.0.fill(0);
    let mut block = Block { out, end: 0 };
    let mut literals_start = 0;
    if let Some(last) = content.len().checked_sub(MATCH_BYTES_BEFORE_END) {
        let end = content.len() - LITERAL_BYTES_LAST;
        // An empty slot holds the first place, so nothing is searched for there.
        let mut at = 1;
        while let Some((found, before)) = places.search(content, at..last + 1) {
            let back = common_end(&content[literals_start..found], &content[..before]);
            let (rest, rest_before) = (found + MATCH_BYTES_MIN, before + MATCH_BYTES_MIN);
            let more = common_start(&content[rest..end], &content[rest_before..]);
            block.push(content, literals_start..found - back, found - before, back + more);
            at = rest + more;
            literals_start = at;
            if at <= last {
                places.note(word(content, at - 2), at - 2);
            }
        }
    }
    block.finish(&content[literals_start..])
}

#[inline]
fn word(content: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*content[at..].first_chunk().expect("the last match begins before"))
}

#[inline]
fn first_bytes(content: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*content[at..].first_chunk().expect("what was noted lies before the end"))
}

/// Returns with how many same bytes both begin, as far as the first goes, which is no longer than
/// the other.
#[inline]
fn common_start(left: &[u8], right: &[u8]) -> usize {
    let (words, left_rest) = left.as_chunks();
    let (words_right, _) = right.as_chunks();
    for (position, (word, word_right)) in words.iter().zip(words_right).enumerate() {
        let difference = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*word_right);
        if difference != 0 {
            return position * size_of::<u64>() + (difference.trailing_zeros() / 8) as usize;
        }
    }
    let whole = left.len() - left_rest.len();
    whole + left_rest.iter().zip(&right[whole..]).take_while(|(left, right)| left == right).count()
}

/// Returns with how many same bytes both end.
#[inline]
fn common_end(left: &[u8], right: &[u8]) -> usize {
    let pairs = left.iter().rev().zip(right.iter().rev());
    pairs.take_while(|(left, right)| left == right).count()
}

/// The block being written.
struct Block<'a> {
    out: &'a mut [u8],
    end: usize,
}

impl Block<'_> {
    /// Adds a sequence whose match is so many bytes longer than the shortest.
    #[inline]
    fn push(&mut self, content: &[u8], literals: Range<usize>, distance: usize, longer: usize) {
        let count = literals.len();
        let lengths = count.min(LENGTH_LONG) << 4 | longer.min(LENGTH_LONG);
        self.push_byte(lengths);
        self.push_rest(count);
        let pieces = content[literals.start..].first_chunk::<PIECE_BYTES>();
        let budget = self.out[self.end..].first_chunk_mut::<PIECE_BYTES>();
        match (pieces, budget) {
            (Some(piece), Some(budget)) if count <= PIECE_BYTES => *budget = *piece,
            _ => self.out[self.end..self.end + count].copy_from_slice(&content[literals]),
        }
        self.end += count;
        let distance = distance as u16;
        self.out[self.end..self.end + size_of::<u16>()].copy_from_slice(&distance.to_le_bytes());
        self.end += size_of::<u16>();
        self.push_rest(longer);
    }

    /// Adds the last sequence, which has no match. Returns how long the block is.
    fn finish(mut self, literals: &[u8]) -> usize {
        self.push_byte(literals.len().min(LENGTH_LONG) << 4);
        self.push_rest(literals.len());
        self.out[self.end..self.end + literals.len()].copy_from_slice(literals);
        self.end + literals.len()
    }

    /// Appends the part of a length that doesn't fit into the first byte.
    #[inline]
    fn push_rest(&mut self, length: usize) {
        let Some(mut rest) = length.checked_sub(LENGTH_LONG) else { return };
        while LENGTH_MORE <= rest {
            self.push_byte(LENGTH_MORE);
            rest -= LENGTH_MORE;
        }
        self.push_byte(rest);
    }

    #[inline]
    fn push_byte(&mut self, byte: usize) {
        self.out[self.end] = byte as u8;
        self.end += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::codec::compressed_bytes_max;

    /// A number below `below` that looks random.
    fn random(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 33) as usize % below
    }

    /// Compresses, and compares with what comes back. Returns how long the block is.
    fn check(content: &[u8], places: &mut SlotTable) -> usize {
        let mut out = vec![0xaa; compressed_bytes_max(content.len())];
        let bytes = compress(content, &mut out, places);
        let mut back = vec![0x55; content.len()];
        let count = lz4_flex::block::decompress_into(&out[..bytes], &mut back).unwrap();
        assert!(count == content.len() && back == content, "{} bytes", content.len());
        bytes
    }

    #[test]
    fn compression_round_trips() {
        let (mut state, mut places) = (7, SlotTable::default());
        for round in 0..4_000 {
            let longest = if round % 20 == 0 { CONTENT_BYTES_MAX + 1 } else { 600 };
            let bytes = random(&mut state, longest);
            let letters = 1 + random(&mut state, 256);
            let mut content: Vec<u8> = Vec::new();
            while content.len() < bytes {
                let count = 1 + random(&mut state, if round % 3 == 0 { 700 } else { 30 });
                if random(&mut state, 2) == 0 && !content.is_empty() {
                    let from = random(&mut state, content.len());
                    content.extend(
                        (from..from + count)
                            .map(|at| content[at % content.len()])
                            .collect::<Vec<u8>>(),
                    );
                } else {
                    content.extend((0..count).map(|_| random(&mut state, letters) as u8));
                }
            }
            content.truncate(bytes);
            check(&content, &mut places);
        }
    }

    #[test]
    fn all_lengths_come_back() {
        let mut places = SlotTable::default();
        for bytes in (0..700).chain([CONTENT_BYTES_MAX - 1, CONTENT_BYTES_MAX]) {
            let same = vec![b'a'; bytes];
            let once: Vec<u8> = (0..bytes).map(|at| (at * at / 7) as u8).collect();
            let twice = [&once[..bytes / 2], &once[..bytes - bytes / 2]].concat();
            for content in [same, once, twice] {
                check(&content, &mut places);
            }
        }
    }

    #[test]
    fn a_block_is_about_as_long_as_with_each_place_looked_at() {
        let (mut state, mut places) = (11, SlotTable::default());
        let mut document = |number: usize| {
            let (name, size) = (random(&mut state, 1 << 30), random(&mut state, 1 << 20));
            format!("_id: {number:08}, name: {name:x}, origin: harbour, size: {size}, kind: leaf; ")
        };
        let content: Vec<u8> = (0..100).flat_map(|number| document(number).into_bytes()).collect();
        let bytes = check(&content, &mut places);
        let other = lz4_flex::block::compress(&content).len();
        assert!(bytes <= other + other / 16, "{bytes} bytes, {other} by the other");
    }
}
