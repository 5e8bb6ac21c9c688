//! The heads of a node's keys, close together: derived from a node, for searching it.
//!
//! A node's keys lie as far apart as its entries, so each step of a search waits for memory: in a
//! leaf with values of 1 KB four times, for one entry. Their heads, the two, four or eight bytes
//! behind what all keys begin with, are compared first, in a line or two of the processor's cache;
//! only keys with equal heads are looked at themselves. Of a leaf's entries it is kept where they
//! start, too, so that the node's own table isn't needed.
//!
//! ```text
//! SIZE  FIELD
//! 1     how long the prefix is
//! 1     how long a head is: the fewest bytes that tell nearly all keys apart, or 8
//! ...   the prefix that all keys have
//! w*n   heads, little-endian: as numbers they are ordered as keys are
//! 2*n   where entries start; not in an interior node, nor where that would take too much
//! ```
//!
//! *Surprise*: keys of a damaged node needn't ascend. Then the answers are wrong, as those of a
//! search among the keys themselves are.

use std::ops::Range;

/// A longer prefix is cut: heads are then equal more often.
const PREFIX_BYTES_MAX: usize = 63;
const HEAD_BYTES_MAX: usize = size_of::<u64>();
const START_BYTES: usize = size_of::<u16>();
/// The number of keys of which one may have the head of the one before it.
const KEYS_A_TIE: usize = 16;
/// The divisor of the node's bytes that gives the most that heads, and starts with them, take in a
/// leaf.
const SHARE_OF_LEAF: usize = 16;

/// The heads of a node's keys.
pub(super) struct KeyPrefixes<'a> {
    prefix: &'a [u8],
    width: u8,
    prefixes: &'a [u8],
    starts: &'a [[u8; START_BYTES]],
}

/// Returns how long the heads of so many keys are at most.
pub(super) fn bytes_max(key_count: usize) -> usize {
    2 + PREFIX_BYTES_MAX + key_count * HEAD_BYTES_MAX
}

/// Derives the heads of an interior node's `keys`, which ascend.
pub(super) fn of_children<'k>(keys: impl DoubleEndedIterator<Item = &'k [u8]> + Clone) -> Vec<u8> {
    let (prefix, prefixes) = prefix_and_heads(keys);
    encode(prefix, &prefixes)
}

/// Derives the heads of a leaf's `keys`, which ascend, and where its entries start; `None` if that
/// isn't worth its memory.
pub(super) fn of_entries<'k>(
    keys: impl DoubleEndedIterator<Item = &'k [u8]> + Clone,
    starts: impl Iterator<Item = usize>,
    leaf_bytes: usize,
) -> Option<Vec<u8>> {
    let (prefix, prefixes) = prefix_and_heads(keys);
    let mut derived = encode(prefix, &prefixes);
    let bytes_max = leaf_bytes / SHARE_OF_LEAF;
    let bytes = derived.len();
    if bytes + prefixes.len() * START_BYTES <= bytes_max {
        for start in starts {
            match u16::try_from(start) {
                Ok(start) => derived.extend_from_slice(&start.to_le_bytes()),
                Err(_) => {
                    derived.truncate(bytes);
                    break;
                }
            }
        }
    }
    (bytes <= bytes_max).then_some(derived)
}

fn prefix_and_heads<'k>(
    mut keys: impl DoubleEndedIterator<Item = &'k [u8]> + Clone,
) -> (&'k [u8], Vec<u64>) {
    let all = keys.clone();
    let first = keys.next().unwrap_or_default();
    let last = keys.next_back().unwrap_or(first);
    let common = first.iter().zip(last).take_while(|(first, last)| first == last).count();
    let prefix = &first[..common.min(PREFIX_BYTES_MAX)];
    (prefix, all.map(|key| head(key.get(prefix.len()..).unwrap_or_default())).collect())
}

fn encode(prefix: &[u8], prefixes: &[u64]) -> Vec<u8> {
    let cut = |head: u64, width: usize| head >> (8 * (HEAD_BYTES_MAX - width));
    let are_distinct = |width: &usize| {
        let ties = prefixes.windows(2).filter(|pair| cut(pair[0], *width) == cut(pair[1], *width));
        ties.count() <= prefixes.len() / KEYS_A_TIE
    };
    let width = [2, 4].into_iter().find(are_distinct).unwrap_or(HEAD_BYTES_MAX);
    let mut derived = vec![prefix.len() as u8, width as u8];
    derived.extend_from_slice(prefix);
    for head in prefixes {
        derived.extend_from_slice(&cut(*head, width).to_le_bytes()[..width]);
    }
    derived
}

/// The first bytes of a key as a number; a short one is filled up with zeros, so heads of keys are
/// equal more often than keys, but never in another order.
fn head(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; HEAD_BYTES_MAX];
    head[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(head)
}

impl<'a> KeyPrefixes<'a> {
    /// Splits the bytes that were derived from a node with so many entries.
    pub(super) fn new(derived: &'a [u8], entry_count: usize) -> KeyPrefixes<'a> {
        let ([prefix_bytes, width], rest) = derived.split_first_chunk().unwrap_or((&[0, 8], &[]));
        let (prefix, rest) = rest.split_at(usize::from(*prefix_bytes));
        let (prefixes, starts) = rest.split_at(entry_count * usize::from(*width));
        KeyPrefixes { prefix, width: *width, prefixes, starts: starts.as_chunks().0 }
    }

    /// Returns where the entries start; empty if that wasn't kept.
    pub(super) fn starts(&self) -> &'a [[u8; START_BYTES]] {
        self.starts
    }

    /// The positions of the keys whose heads equal that of `key`. Those before are less, those
    /// behind are not.
    pub(super) fn around(&self, key: &[u8]) -> Range<usize> {
        let Some(rest) = key.strip_prefix(self.prefix) else {
            let count = self.prefixes.len() / usize::from(self.width);
            let position = if key < self.prefix { 0 } else { count };
            return position..position;
        };
        match self.width {
            2 => around::<2>(self.prefixes, head(rest)),
            4 => around::<4>(self.prefixes, head(rest)),
            _ => around::<HEAD_BYTES_MAX>(self.prefixes, head(rest)),
        }
    }
}

/// The positions of the heads that equal the beginning of `head`.
fn around<const WIDTH: usize>(prefixes: &[u8], head: u64) -> Range<usize> {
    let wanted = head >> (8 * (HEAD_BYTES_MAX - WIDTH));
    let number = |head: &[u8; WIDTH]| {
        let mut bytes = [0; HEAD_BYTES_MAX];
        bytes[..WIDTH].copy_from_slice(head);
        u64::from_le_bytes(bytes)
    };
    let (prefixes, _) = prefixes.as_chunks::<WIDTH>();
    let start = prefixes.partition_point(|head| number(head) < wanted);
    let equal = prefixes[start..].iter().take_while(|head| number(head) == wanted);
    start..start + equal.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_among_their_heads() {
        let tables: [&[&[u8]]; 6] = [
            &[],
            &[b"only"],
            &[b"", b"\0", b"\0\0", b"a", b"a\0", b"ab"],
            &[b"user0001", b"user00010000000001", b"user00010000000002", b"user0002", b"user9"],
            &[b"user01abcd", b"user01abce", b"user02abcd", b"user02abce"],
            &[&[7; 80], &[7; 81], &[7; 100], &[8; 3]],
        ];
        for keys in tables {
            let derived = of_children(keys.iter().copied());
            let prefixes = KeyPrefixes::new(&derived, keys.len());
            let mut wanted: Vec<Vec<u8>> =
                vec![vec![], vec![0], vec![0xff], b"user".to_vec(), b"v".to_vec()];
            for key in keys {
                wanted.push(key.to_vec());
                wanted.push([*key, b"\0"].concat());
                wanted.push(key[..key.len().saturating_sub(1)].to_vec());
            }
            for key in wanted {
                let expected = keys.partition_point(|other| *other < &key[..]);
                let around = prefixes.around(&key);
                assert!(
                    around.start <= expected && expected <= around.end,
                    "{key:?} in {keys:?}: {around:?}"
                );
            }
        }
    }

    #[test]
    fn heads_are_as_short_as_keeps_keys_apart() {
        let check = |keys: &[&[u8]], expected: u8| {
            assert_eq!(of_children(keys.iter().copied())[1], expected, "{keys:?}");
        };
        check(&[b"user10", b"user11", b"user12"], 2);
        check(&[b"user1ab0", b"user1ab1", b"user2ab0"], 4);
        check(&[b"user1abcdefghi", b"user1abcdefghj", b"user2"], 8);
    }

    #[test]
    fn starts_are_kept_where_they_fit() {
        let keys: [&[u8]; 3] = [b"k1", b"k2", b"k3"];
        let check = |starts: [usize; 3], leaf_bytes, expected: Option<usize>| {
            let derived = of_entries(keys.into_iter(), starts.into_iter(), leaf_bytes);
            let found = derived.map(|derived| KeyPrefixes::new(&derived, 3).starts().len());
            assert_eq!(found, expected, "{starts:?} in {leaf_bytes}");
        };
        let own = 2 + 1 + 3 * 2;
        check([44, 50, 60], (own + 6) * SHARE_OF_LEAF, Some(3));
        check([44, 50, 60], (own + 5) * SHARE_OF_LEAF, Some(0));
        check([44, 50, 60], (own - 1) * SHARE_OF_LEAF, None);
        check([44, 50, 1 << 16], 1 << 17, Some(0));
    }
}
