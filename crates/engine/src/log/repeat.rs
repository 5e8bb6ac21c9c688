//! A repeat: a value that ends with another that the same transaction wrote earlier, into another
//! tree.
//!
//! An index that holds documents writes each of them a second time, behind a few bytes of its own.
//! The log gets these bytes, and where in the record the others stand.
//!
//! 1. Of each long value its first bytes are hashed.
//! 2. Those of a later tree are looked up from each of their first places on from which they are as
//!    long as an earlier one, and compared where the hash is known.
//!
//! A repeat that this doesn't find costs bytes, never correctness. A tree's values aren't compared
//! with one another, so a transaction pays only where it writes long values into several trees.

use std::collections::{BTreeSet, HashMap};
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

/// The values of the trees before.
#[derive(Default)]
struct Earlier<'a> {
    /// By their names: where the first such stands, and itself.
    values: HashMap<u64, (usize, &'a [u8]), BuildHasherDefault<IdentityHasher>>,
    /// Their lengths. Mostly there is no other tree's value of about a document's length, as where
    /// the other holds what a session has done: then nothing is hashed in vain.
    lengths: BTreeSet<usize>,
}

/// Finds the values of `writes` that end with an earlier one, by ascending position; `may_be` says
/// by its position whether an entry may be the earlier or the later one.
pub(crate) fn find_repeats(
    writes: &[(TreeId, Vec<OverlayEntry>)],
    may_be: impl Fn(usize) -> bool,
) -> Vec<Repeat> {
    let holds_long = |entries: &[OverlayEntry]| entries.iter().any(|entry| long(entry).is_some());
    let mut repeats = Vec::new();
    let last = writes.iter().rposition(|(_, entries)| holds_long(entries)).unwrap_or(0);
    if !writes[..last].iter().any(|(_, entries)| holds_long(entries)) {
        return repeats;
    }
    let mut earlier = Earlier::default();
    let mut own = Vec::new();
    let mut position = 0;
    for (tree, (_, entries)) in writes.iter().enumerate() {
        let is_first = earlier.values.is_empty();
        for (value, position) in entries.iter().map(long).zip(position..) {
            let Some(value) = value.filter(|_| may_be(position)) else { continue };
            let repeat = if is_first { None } else { earlier.repeated_in(value) };
            match repeat {
                Some((of, own_bytes)) => repeats.push(Repeat { position, of, own_bytes }),
                // Behind the last tree there is none that repeats it.
                None if tree == last => {}
                None => own.push((name(value), (position, value))),
            }
        }
        position += entries.len();
        for (name, value) in own.drain(..) {
            earlier.lengths.insert(value.1.len());
            earlier.values.entry(name).or_insert(value);
        }
    }
    repeats
}

impl Earlier<'_> {
    /// Returns which of the values `value` ends with, and behind how many bytes.
    fn repeated_in(&self, value: &[u8]) -> Option<(usize, usize)> {
        let least = value.len().saturating_sub(OWN_BYTES_MAX).max(REPEATED_BYTES_MIN);
        let mut lengths = self.lengths.range(least..=value.len()).rev();
        lengths.find_map(|length| {
            let own_bytes = value.len() - length;
            let rest = &value[own_bytes..];
            let (of, found) = self.values.get(&name(rest))?;
            (*found == rest).then_some((*of, own_bytes))
        })
    }
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
