//! What was sorted in parts, cut into pieces between groups of keys, so that several threads can
//! interleave it.
//!
//! 1. The parts stay as they are, in memory or in files, and are shared.
//! 2. Each tells some of its keys, at about equal distances. In the order of these keys it is known
//!    about how many entries lie before each of them: a piece begins where its share lies behind,
//!    once the key is brought back to the beginning of its group.
//! 3. A piece has of each part what lies between two such keys. So entries of one group, and equal
//!    keys, are in one piece, where they are interleaved as all of them would be.

use std::sync::Arc;

use bytes::Bytes;

use super::buffer::SortBuffer;
use super::run::Run;
use super::{Sorted, Source};
use crate::error::QueryError;

/// Returns the beginning of a key, by which its entries stay together: a lesser key is less than
/// the beginning of a greater one of another group.
pub(in crate::pipeline) type GroupOf = fn(&[u8]) -> &[u8];

/// The keys that a part in memory tells for each piece that is wanted.
const KEYS_A_PIECE: u64 = 4;

/// Sorted entries in pieces that follow one another.
pub(in crate::pipeline) struct SortedPieces {
    /// In the order in which equal entries come.
    stores: Vec<Store>,
    /// The keys where the pieces begin, but for the first.
    cuts: Vec<Bytes>,
}

/// What is sorted.
enum Store {
    Buffer(Arc<SortBuffer>),
    /// It isn't read itself.
    Run(Run),
}

impl SortedPieces {
    /// Cuts `parts`, of which nothing came out, into pieces: as many as `wanted` says for how many
    /// entries there are, or fewer where groups are large. Gives the parts back where there would
    /// be one piece.
    pub(in crate::pipeline) fn cut(
        parts: Vec<Sorted>,
        group_of: GroupOf,
        wanted: impl FnOnce(u64) -> usize,
    ) -> Result<SortedPieces, Vec<Sorted>> {
        let Some(stores) = stores_of(&parts) else { return Err(parts) };
        let total: u64 = stores.iter().map(Store::count).sum();
        let count = wanted(total).max(1) as u64;
        let mut keys: Vec<(&[u8], u64)> = Vec::new();
        for store in &stores {
            keys.extend(store.keys((total / (count * KEYS_A_PIECE)).max(1)));
        }
        keys.sort_unstable();
        let (mut cuts, mut before): (Vec<Bytes>, u64) = (Vec::new(), 0);
        let mut last = keys.first().map_or(&[][..], |(key, _)| group_of(key));
        for (key, distance) in &keys {
            let share = u128::from(total) * (cuts.len() as u128 + 1);
            let is_reached = share <= u128::from(before) * u128::from(count);
            before += distance;
            let begins = group_of(key);
            if is_reached && last < begins && (cuts.len() as u64) + 1 < count {
                cuts.push(Bytes::copy_from_slice(begins));
                last = begins;
            }
        }
        if cuts.is_empty() { Err(parts) } else { Ok(SortedPieces { stores, cuts }) }
    }

    /// Returns how many pieces there are.
    pub(in crate::pipeline) fn count(&self) -> usize {
        self.cuts.len() + 1
    }

    /// The entries of a piece, in their order.
    ///
    /// # Errors
    /// An error of reading a run.
    pub(in crate::pipeline) fn piece(&self, position: usize) -> Result<Sorted, QueryError> {
        let from = position.checked_sub(1).and_then(|before| self.cuts.get(before));
        let (from, to) = (from.map(|key| &key[..]), self.cuts.get(position).map(|key| &key[..]));
        let mut sources = Vec::with_capacity(self.stores.len());
        for store in &self.stores {
            sources.push(match store {
                Store::Buffer(buffer) => {
                    let begin = from.map_or(0, |key| buffer.first_from(key));
                    let end = to.map_or(buffer.count(), |key| buffer.first_from(key));
                    let kept = Some((Arc::clone(buffer), begin..end));
                    Source::Sorted(Sorted::of_sources(Vec::new(), kept, usize::MAX)?)
                }
                Store::Run(run) => Source::Run(run.between(from, to)?),
            });
        }
        Sorted::of_sources(sources, None, usize::MAX)
    }
}

/// What the parts are kept in; `None` if they are interleaved already.
fn stores_of(parts: &[Sorted]) -> Option<Vec<Store>> {
    let mut stores = Vec::new();
    for part in parts {
        for source in &part.runs {
            let Source::Run(run) = source else { return None };
            stores.push(Store::Run(run.twin()));
        }
        if part.runs.is_empty() {
            stores.push(Store::Buffer(part.kept.clone()?));
        }
    }
    Some(stores)
}

impl Store {
    /// Returns how many entries there are.
    fn count(&self) -> u64 {
        match self {
            Store::Buffer(buffer) => buffer.count() as u64,
            Store::Run(run) => run.count(),
        }
    }

    /// Some keys, the least among them where it isn't long, and how many entries lie from each to
    /// the next: about `distance` where they are free to choose.
    fn keys(&self, distance: u64) -> Vec<(&[u8], u64)> {
        match self {
            Store::Buffer(buffer) => {
                let step = usize::try_from(distance).unwrap_or(usize::MAX);
                let positions = (0..buffer.count()).step_by(step);
                positions.map(|position| (buffer.entry(position).0, distance)).collect()
            }
            Store::Run(run) => {
                let distance = run.count() / (run.marks().len().max(1) as u64);
                run.marks().iter().map(|mark| (&mark.key[..], distance)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::DocumentBuf;

    use super::*;
    use crate::pipeline::{Resources, Sorter, Spill, SpillFile};

    /// Files in memory.
    struct Files;

    struct File(Vec<u8>);

    impl Spill for Files {
        fn create(&self) -> Result<Box<dyn SpillFile>, QueryError> {
            Ok(Box::new(File(Vec::new())))
        }
    }

    impl SpillFile for File {
        fn append(&mut self, bytes: &[u8]) -> Result<(), QueryError> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), QueryError> {
            let offset = usize::try_from(offset).unwrap();
            buffer.copy_from_slice(&self.0[offset..][..buffer.len()]);
            Ok(())
        }
    }

    /// Resources by which so much stays in memory.
    fn resources(memory_bytes_max: usize) -> Resources {
        Resources { memory_bytes_max, spill: Some(Arc::new(Files)), ..Resources::default() }
    }

    /// Sorts the keys in parts of these lengths; each document tells its place.
    fn sorted<K: AsRef<[u8]>>(keys: &[K], lengths: &[usize], resources: &Resources) -> Vec<Sorted> {
        let mut entries = keys.iter().enumerate();
        let part = |length: &usize| {
            let mut sorter = Sorter::new("test", resources, usize::MAX);
            for (place, key) in entries.by_ref().take(*length) {
                let padding = "p".repeat(place % 97);
                let document =
                    frond_doc::document! { "place": place as i64, "p": padding.as_str() };
                sorter.add_view(key.as_ref(), document.view()).expect("there are files");
            }
            sorter.finish().expect("files are in memory")
        };
        lengths.iter().map(part).collect()
    }

    fn all(sorted: Sorted) -> Vec<(Vec<u8>, DocumentBuf)> {
        let entries = sorted.map(|entry| entry.expect("files are in memory"));
        entries.map(|(key, document)| (key.to_vec(), document)).collect()
    }

    /// The entries of each piece; all of them are `expected`.
    fn checked(pieces: &SortedPieces, expected: &[(Vec<u8>, DocumentBuf)], prefix: usize) {
        let piece = |position| all(pieces.piece(position).expect("files are in memory"));
        let found: Vec<_> = (0..pieces.count()).map(piece).collect();
        for next in found.windows(2) {
            let group = |entry: Option<&(Vec<u8>, _)>| entry.map(|(key, _)| key[..prefix].to_vec());
            assert!(group(next[0].last()) < group(next[1].first()));
        }
        assert_eq!(found.concat(), expected);
    }

    #[test]
    fn pieces_are_what_is_interleaved_and_groups_stay_together() {
        let keys: [&[u8]; 13] = [
            b"b1", b"a1", b"b1", b"c2", b"a0", b"b0", b"b1", b"d", b"c1", b"a1", b"e7", b"b9", b"e",
        ];
        for (lengths, bytes) in [&[13][..], &[5, 8], &[0, 6, 7], &[4, 4, 4, 1], &[1, 12, 0]]
            .into_iter()
            .flat_map(|lengths| [(lengths, 1 << 20), (lengths, 300), (lengths, 1)])
        {
            let resources = resources(bytes);
            let parts = || sorted(&keys, lengths, &resources);
            let expected = all(Sorted::interleaved(parts(), usize::MAX).expect("right"));
            for wanted in 2..9 {
                let cut = SortedPieces::cut(parts(), |key| &key[..1], |_| wanted);
                let pieces = cut.unwrap_or_else(|_| panic!("{lengths:?} in {wanted}"));
                checked(&pieces, &expected, 1);
            }
        }
    }

    #[test]
    fn long_runs_are_cut_between_their_marks() {
        let mut state = 0x5bd1_e995_u64;
        let mut chance = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (state >> 33) % below
        };
        let key = |_| {
            let long = "l".repeat(if chance(5) == 0 { 300 } else { 0 });
            format!("{:03}{}{long}", chance(700), chance(9)).into_bytes()
        };
        let keys: Vec<Vec<u8>> = (0..9000).map(key).collect();
        let lengths = [3100, 17, 2900, 2983];
        let resources = resources(130_000);
        let parts = || sorted(&keys, &lengths, &resources);
        assert!(parts().iter().any(|part| 1 < part.runs.len()), "some are in files");
        let expected = all(Sorted::interleaved(parts(), usize::MAX).expect("right"));
        for wanted in [2, 7, 31, 250] {
            let cut = SortedPieces::cut(parts(), |key| &key[..3], |_| wanted);
            let pieces = cut.unwrap_or_else(|_| panic!("{wanted}"));
            checked(&pieces, &expected, 3);
            let largest = (0..pieces.count()).map(|position| pieces.piece(position));
            let largest = largest.map(|piece| all(piece.expect("right")).len()).max();
            // A run tells where it is only at its marks.
            let distance =
                |store: &Store| store.keys(1).first().map_or(0, |(_, distance)| *distance);
            let unknown: u64 = pieces.stores.iter().map(distance).sum();
            let fair = keys.len() / wanted * 2 + usize::try_from(unknown).expect("few");
            assert!(largest < Some(fair), "{largest:?} of {wanted}: {fair}");
        }
    }

    #[test]
    fn one_group_is_not_cut() {
        let keys: [&[u8]; 4] = [b"a4", b"a3", b"a2", b"a1"];
        for bytes in [1 << 20, 1] {
            let resources = resources(bytes);
            let parts = sorted(&keys, &[2, 2], &resources);
            let cut = SortedPieces::cut(parts, |key| &key[..1], |_| 3);
            let parts = cut.err().expect("it has one group");
            let left = all(Sorted::interleaved(parts, usize::MAX).expect("right"));
            assert_eq!(left.len(), keys.len());
        }
    }
}
