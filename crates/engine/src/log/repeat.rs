//! A repeat: a value that ends with another that the same transaction wrote earlier, into another
//! tree.
//!
//! An index that holds documents writes each of them a second time, behind a few bytes of its own.
//! The log gets these bytes, and where in the record the others stand.
//!
//! 1. Of each long value its first bytes are hashed.
//! 2. Those of a later tree are looked up from each of their first places on, and compared where
//!    the hash is known.
//!
//! A repeat that this doesn't find costs bytes, never correctness. A tree's values aren't compared
//! with one another, so a transaction pays only where it writes long values into several trees.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use frond_tree::{Content, Value};
use twox_hash::XxHash3_64;

use crate::entry::OverlayEntry;
use crate::fingerprint::IdentityHasher;
use crate::ids::TreeId;

/// Shorter values are written again. So many bytes of a value are hashed.
const REPEATED_BYTES_MIN: usize = 64;
/// A value has at most so many bytes before those that it repeats: the key of an `_id`, type bits.
const OWN_BYTES_MAX: usize = 32;

/// A value that ends with an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Repeat {
    /// Its entry's position among all that are written.
    pub position: usize,
    /// The position of the earlier one.
    pub of: usize,
    /// The number of bytes it has before those.
    pub own_bytes: usize,
}

/// Values by their names: where the first such stands, and itself.
type Earlier<'a> = HashMap<u64, (usize, &'a [u8]), BuildHasherDefault<IdentityHasher>>;

/// Finds the values of `writes` that end with an earlier one, by ascending position; `may_be` says
/// by its position whether an entry may be the earlier or the later one.
pub(crate) fn find_repeats(
    writes: &[(TreeId, Vec<OverlayEntry>)],
    may_be: impl Fn(usize) -> bool,
) -> Vec<Repeat> {
    let holds_long = |entries: &[OverlayEntry]| entries.iter().any(|entry| long(entry).is_some());
    let mut repeats = Vec::new();
    if writes.iter().filter(|(_, entries)| holds_long(entries)).nth(1).is_none() {
        return repeats;
    }
    let mut earlier = Earlier::default();
    let mut own = Vec::new();
    let mut position = 0;
    for (_, entries) in writes {
        let is_first = earlier.is_empty();
        for (value, position) in entries.iter().map(long).zip(position..) {
            let Some(value) = value.filter(|_| may_be(position)) else { continue };
            let repeat = if is_first { None } else { repeat_in(&earlier, value) };
            match repeat {
                Some((of, own_bytes)) => repeats.push(Repeat { position, of, own_bytes }),
                None => own.push((name(value), (position, value))),
            }
        }
        position += entries.len();
        for (name, value) in own.drain(..) {
            earlier.entry(name).or_insert(value);
        }
    }
    repeats
}

/// Returns which of the `earlier` values `value` ends with, and behind how many bytes.
fn repeat_in(earlier: &Earlier<'_>, value: &[u8]) -> Option<(usize, usize)> {
    let own_bytes_max = OWN_BYTES_MAX.min(value.len() - REPEATED_BYTES_MIN);
    (0..=own_bytes_max).find_map(|own_bytes| {
        let rest = &value[own_bytes..];
        let (of, found) = earlier.get(&name(rest))?;
        (*found == rest).then_some((*of, own_bytes))
    })
}

/// The content of an entry, if it is long enough.
fn long((_, value): &OverlayEntry) -> Option<&[u8]> {
    match value {
        Some(Value { content: Content::Inline(bytes), .. }) => {
            Some(&bytes[..]).filter(|bytes| REPEATED_BYTES_MIN <= bytes.len())
        }
        _ => None,
    }
}

/// A hash of its first bytes and its length.
fn name(value: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(value.len() as u64, &value[..REPEATED_BYTES_MIN])
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// Entries of a tree with these values.
    fn tree(number: u64, values: &[&[u8]]) -> (TreeId, Vec<OverlayEntry>) {
        let entries = values.iter().enumerate().map(|(position, value)| {
            (Bytes::from(format!("{position:04}")), Some(Value::inline(value.to_vec())))
        });
        (TreeId(number), entries.collect())
    }

    fn check(writes: &[(TreeId, Vec<OverlayEntry>)], expected: &[(usize, usize, usize)]) {
        let found = find_repeats(writes, |_| true);
        let found: Vec<_> =
            found.iter().map(|found| (found.position, found.of, found.own_bytes)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn values_that_end_with_an_earlier_one_of_another_tree_are_found() {
        let document = |number: u8| [number; 100].to_vec();
        let behind = |own: usize, number: u8| [vec![0; own], document(number)].concat();
        let (first, second) = (document(1), document(2));
        let documents = tree(1, &[&first, b"short", &second, &first]);
        check(std::slice::from_ref(&documents), &[]);
        let names = tree(2, &[b"a", b"b"]);
        let held = tree(3, &[&behind(2, 2), &second, &behind(33, 1), &behind(32, 1), b"short"]);
        let writes = [documents.clone(), names, held];
        check(&writes, &[(6, 2, 2), (7, 2, 0), (9, 0, 32)]);
        let found = find_repeats(&writes, |position| position != 2);
        assert_eq!(found.iter().map(|found| found.position).collect::<Vec<_>>(), [9]);
        // A third tree repeats the second's, which isn't a repeat; not what is only alike at its
        // front.
        let longer = [&first[..], &[9]].concat();
        let writes = [documents, tree(2, &[&longer]), tree(3, &[&behind(5, 1), &longer])];
        check(&writes, &[(5, 0, 5), (6, 4, 0)]);
    }

    #[test]
    fn a_short_value_and_one_of_just_the_length() {
        let (least, less) = ([5; REPEATED_BYTES_MIN], [5; REPEATED_BYTES_MIN - 1]);
        check(&[tree(1, &[&least]), tree(2, &[&least])], &[(1, 0, 0)]);
        check(&[tree(1, &[&less]), tree(2, &[&less])], &[]);
    }
}
