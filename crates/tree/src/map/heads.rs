//! The heads of a node's keys, close together: derived from a node, for searching it.
//!
//! A node's keys lie as far apart as its entries, so each step of a search waits for memory: in a leaf with
//! values of 1 KB four times, for one entry. Their heads, the eight bytes behind what all keys begin with, are
//! compared first, sixteen of them in two lines of the processor's cache; only keys with equal heads
//! are looked at themselves.
//!
//! ```text
//! SIZE  FIELD
//! 1     how long the prefix is
//! ...   the prefix that all keys have
//! 8*n   heads, little-endian: as numbers they are ordered as keys are
//! ```
//!
//! *Surprise*: keys of a damaged node needn't ascend. Then the answers are wrong, as those of a search
//! among the keys themselves are.

use std::ops::Range;

/// A longer prefix is cut: heads are then equal more often.
const PREFIX_BYTES_MAX: usize = 63;
const HEAD_BYTES: usize = size_of::<u64>();
/// In a leaf heads take at most such a part of the node's bytes.
const SHARE_OF_LEAF: usize = 16;

/// The heads of a node's keys.
pub(super) struct Heads<'a> {
    prefix: &'a [u8],
    heads: &'a [[u8; HEAD_BYTES]],
}

/// Whether heads are worth their memory in a leaf with so many entries.
pub(super) fn are_worth(entry_count: usize, leaf_bytes: usize) -> bool {
    1 + PREFIX_BYTES_MAX + entry_count * HEAD_BYTES <= leaf_bytes / SHARE_OF_LEAF
}

/// Derives the heads of `keys`, which ascend.
pub(super) fn of<'k>(mut keys: impl DoubleEndedIterator<Item = &'k [u8]> + Clone) -> Vec<u8> {
    let all = keys.clone();
    let first = keys.next().unwrap_or_default();
    let last = keys.next_back().unwrap_or(first);
    let common = first.iter().zip(last).take_while(|(first, last)| first == last).count();
    let prefix = &first[..common.min(PREFIX_BYTES_MAX)];
    let mut derived = vec![prefix.len() as u8];
    derived.extend_from_slice(prefix);
    derived.extend(
        all.flat_map(|key| head(key.get(prefix.len()..).unwrap_or_default()).to_le_bytes()),
    );
    derived
}

/// The first bytes of a key as a number; a short one is filled up with zeros, so heads of keys are equal more often than
/// keys, but never in another order.
fn head(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; HEAD_BYTES];
    head[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(head)
}

impl<'a> Heads<'a> {
    /// What `of` derived.
    pub(super) fn new(derived: &'a [u8]) -> Heads<'a> {
        let (prefix_bytes, rest) = derived.split_first().unwrap_or((&0, &[]));
        let (prefix, heads) = rest.split_at(usize::from(*prefix_bytes));
        Heads { prefix, heads: heads.as_chunks().0 }
    }

    /// The positions of the keys whose heads equal that of `key`. Those before are less, those
    /// behind are not.
    pub(super) fn around(&self, key: &[u8]) -> Range<usize> {
        let Some(rest) = key.strip_prefix(self.prefix) else {
            let position = if key < self.prefix { 0 } else { self.heads.len() };
            return position..position;
        };
        let head = head(rest);
        let start = self.heads.partition_point(|other| u64::from_le_bytes(*other) < head);
        let equal =
            self.heads[start..].iter().take_while(|other| u64::from_le_bytes(**other) == head);
        start..start + equal.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_among_their_heads() {
        let tables: [&[&[u8]]; 5] = [
            &[],
            &[b"only"],
            &[b"", b"\0", b"\0\0", b"a", b"a\0", b"ab"],
            &[b"user0001", b"user00010000000001", b"user00010000000002", b"user0002", b"user9"],
            &[&[7; 80], &[7; 81], &[7; 100], &[8; 3]],
        ];
        for keys in tables {
            let derived = of(keys.iter().copied());
            let heads = Heads::new(&derived);
            let mut wanted: Vec<Vec<u8>> =
                vec![vec![], vec![0], vec![0xff], b"user".to_vec(), b"v".to_vec()];
            for key in keys {
                wanted.push(key.to_vec());
                wanted.push([*key, b"\0"].concat());
                wanted.push(key[..key.len().saturating_sub(1)].to_vec());
            }
            for key in wanted {
                let expected = keys.partition_point(|other| *other < &key[..]);
                let around = heads.around(&key);
                assert!(
                    around.start <= expected && expected <= around.end,
                    "{key:?} in {keys:?}: {around:?}"
                );
            }
        }
    }
}
