//! What was sorted in parts, cut into pieces between groups of keys, so that several threads can
//! interleave it.
//!
//! 1. The parts stay as they are, in memory, and are shared.
//! 2. The largest part has its keys at equal distances: each is where a piece begins, once it is
//!    brought back to the beginning of its group.
//! 3. A piece has of each part the positions between two such keys. So entries of one group, and
//!    equal keys, are in one piece, where they are interleaved as all of them would be.

use std::sync::Arc;

use super::buffer::SortBuffer;
use super::{Sorted, Source};
use crate::error::QueryError;

/// Returns the beginning of a key, by which its entries stay together: a lesser key is less than
/// the beginning of a greater one of another group.
pub(in crate::pipeline) type GroupOf = fn(&[u8]) -> &[u8];

/// Sorted entries in pieces that follow one another.
pub(in crate::pipeline) struct SortedPieces {
    buffers: Vec<Arc<SortBuffer>>,
    /// The positions, in each buffer, where the pieces begin, and where the last one ends.
    cuts: Vec<Vec<usize>>,
}

impl SortedPieces {
    /// Cuts `parts`, of which nothing came out, into pieces: as many as `wanted` says for how many
    /// entries there are, or fewer where groups are large. Gives the parts back where they aren't
    /// in memory, or there would be one piece.
    pub(in crate::pipeline) fn cut(
        parts: Vec<Sorted>,
        group_of: GroupOf,
        wanted: impl FnOnce(u64) -> usize,
    ) -> Result<SortedPieces, Vec<Sorted>> {
        let in_memory = |part: &Sorted| part.kept.clone().filter(|_| part.runs.is_empty());
        let Some(buffers) = parts.iter().map(in_memory).collect::<Option<Vec<_>>>() else {
            return Err(parts);
        };
        let total: usize = buffers.iter().map(|buffer| buffer.count()).sum();
        let count = wanted(total as u64);
        let Some(largest) = buffers.iter().max_by_key(|buffer| buffer.count()) else {
            return Err(parts);
        };
        let mut cuts = vec![vec![0; buffers.len()]];
        for piece in 1..count {
            let position = largest.count() * piece / count;
            if position == 0 {
                continue;
            }
            let (key, _) = largest.entry(position);
            let begins = group_of(key);
            let cut: Vec<usize> = buffers.iter().map(|it| it.first_from(begins)).collect();
            if cuts.last() != Some(&cut) {
                cuts.push(cut);
            }
        }
        if cuts.len() < 2 {
            return Err(parts);
        }
        cuts.push(buffers.iter().map(|buffer| buffer.count()).collect());
        Ok(SortedPieces { buffers, cuts })
    }

    /// Returns how many pieces there are.
    pub(in crate::pipeline) fn count(&self) -> usize {
        self.cuts.len() - 1
    }

    /// The entries of a piece, in their order.
    pub(in crate::pipeline) fn piece(&self, position: usize) -> Result<Sorted, QueryError> {
        let (from, to) = (&self.cuts[position], &self.cuts[position + 1]);
        let ranges = from.iter().zip(to).map(|(from, to)| *from..*to);
        let mut sources = Vec::with_capacity(self.buffers.len());
        for (buffer, range) in self.buffers.iter().zip(ranges) {
            let kept = Some((Arc::clone(buffer), range));
            sources.push(Source::Sorted(Sorted::of_sources(Vec::new(), kept, usize::MAX)?));
        }
        Sorted::of_sources(sources, None, usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::DocumentBuf;

    use super::*;
    use crate::pipeline::{Resources, Sorter};

    /// Sorts the keys in parts of these lengths; each document tells its place.
    fn sorted(keys: &[&[u8]], lengths: &[usize]) -> Vec<Sorted> {
        let resources = Resources::default();
        let mut entries = keys.iter().enumerate();
        let part = |length: &usize| {
            let mut sorter = Sorter::new("test", &resources, usize::MAX);
            for (place, key) in entries.by_ref().take(*length) {
                let document = frond_doc::document! { "place": place as i64 };
                sorter.add_view(key, document.view()).expect("it is little");
            }
            sorter.finish().expect("it is in memory")
        };
        lengths.iter().map(part).collect()
    }

    fn all(sorted: Sorted) -> Vec<(Vec<u8>, DocumentBuf)> {
        let entries = sorted.map(|entry| entry.expect("it is in memory"));
        entries.map(|(key, document)| (key.to_vec(), document)).collect()
    }

    #[test]
    fn pieces_are_what_is_interleaved_and_groups_stay_together() {
        let keys: [&[u8]; 13] = [
            b"b1", b"a1", b"b1", b"c2", b"a0", b"b0", b"b1", b"d", b"c1", b"a1", b"e7", b"b9", b"e",
        ];
        for lengths in [&[13][..], &[5, 8], &[0, 6, 7], &[4, 4, 4, 1], &[1, 12, 0]] {
            let expected = Sorted::interleaved(sorted(&keys, lengths), usize::MAX).expect("right");
            let expected = all(expected);
            for wanted in 2..9 {
                let cut = SortedPieces::cut(sorted(&keys, lengths), |key| &key[..1], |_| wanted);
                let pieces = cut.unwrap_or_else(|_| panic!("{lengths:?} in {wanted}"));
                let piece = |position| all(pieces.piece(position).expect("it is in memory"));
                let found: Vec<_> = (0..pieces.count()).map(piece).collect();
                for next in found.windows(2) {
                    let group = |entry: Option<&(Vec<u8>, _)>| entry.map(|(key, _)| key[0]);
                    assert!(group(next[0].last()) < group(next[1].first()), "{lengths:?}");
                }
                assert_eq!(found.concat(), expected, "{lengths:?} in {wanted}");
            }
        }
    }

    #[test]
    fn one_group_is_not_cut() {
        let keys: [&[u8]; 4] = [b"a4", b"a3", b"a2", b"a1"];
        let cut = SortedPieces::cut(sorted(&keys, &[2, 2]), |key| &key[..1], |_| 3);
        let parts = cut.err().expect("it has one group");
        let left = all(Sorted::interleaved(parts, usize::MAX).expect("right"));
        assert_eq!(left.len(), keys.len());
    }
}
