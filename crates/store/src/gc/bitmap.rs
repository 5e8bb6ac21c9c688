//! A bitmap with a bit for each chunk of sealed packs, by its position in its pack's index.

use std::collections::BTreeMap;

use crate::location::PackNumber;

/// A bit for each chunk of sealed packs; no bits are set at first. No bits are set at first.
#[derive(Clone, Default, Debug)]
pub(crate) struct PackBitmap(BTreeMap<PackNumber, Vec<u64>>);

fn place(position: u32) -> (usize, u64) {
    ((position / u64::BITS) as usize, 1 << (position % u64::BITS))
}

impl PackBitmap {
    /// Sets the bit. Returns whether it was clear.
    pub(crate) fn set(&mut self, pack: PackNumber, position: u32) -> bool {
        let (word, bit) = place(position);
        let words = self.0.entry(pack).or_default();
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        let was_clear = words[word] & bit == 0;
        words[word] |= bit;
        was_clear
    }

    pub(crate) fn get(&self, pack: PackNumber, position: u32) -> bool {
        let (word, bit) = place(position);
        let words = self.0.get(&pack);
        words.and_then(|words| words.get(word)).is_some_and(|found| found & bit != 0)
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.values().flatten().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The packs with bits that are set.
    pub(crate) fn packs(&self) -> impl Iterator<Item = PackNumber> {
        self.0.keys().copied()
    }

    /// Sets all bits that `other` has set.
    pub(crate) fn set_all(&mut self, other: &PackBitmap) {
        for (pack, others) in &other.0 {
            let words = self.0.entry(*pack).or_default();
            words.resize(words.len().max(others.len()), 0);
            words.iter_mut().zip(others).for_each(|(word, other)| *word |= other);
        }
    }

    /// Clears all bits that `other` has set.
    pub(crate) fn clear_all(&mut self, other: &PackBitmap) {
        self.0.retain(|pack, words| {
            let others = other.0.get(pack).map_or(&[][..], Vec::as_slice);
            words.iter_mut().zip(others).for_each(|(word, other)| *word &= !other);
            words.iter().any(|word| *word != 0)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_by_pack_and_position() {
        let (one, two) = (PackNumber(1), PackNumber(2));
        let (mut bits, mut others) = (PackBitmap::default(), PackBitmap::default());
        assert!(bits.set(one, 0) && bits.set(one, 1000) && !bits.set(one, 0) && bits.set(two, 63));
        assert!(others.set(one, 0) && others.set(two, 64) && others.set(two, 63));
        assert!(bits.get(one, 1000) && !bits.get(one, 999) && !bits.get(PackNumber(3), 0));
        let mut both = bits.clone();
        both.set_all(&others);
        assert_eq!((bits.count(), both.count()), (3, 4));
        assert!(both.get(two, 64) && both.get(one, 1000));
        bits.clear_all(&others);
        assert_eq!(bits.packs().collect::<Vec<_>>(), [one]);
        assert!(bits.get(one, 1000) && bits.count() == 1 && !bits.is_empty());
    }
}
