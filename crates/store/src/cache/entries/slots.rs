//! A hash table from fingerprints to records, of eight bytes each, at most seven eighths full.
//!
//! A fingerprint's way begins at a position that follows from it, and goes on to the next vacant
//! one. Removing a slot leaves no gap: those behind move up as far as their ways allow (Knuth, 6.4,
//! algorithm R).

/// A fingerprint, which isn't zero, or zero for a vacant position; and where its record lies.
type Slot = (u32, RecordAddress);

/// The address of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RecordAddress {
    pub(super) segment: u16,
    pub(super) offset: u16,
}

#[derive(Default)]
pub(super) struct SlotTable {
    slots: Vec<Slot>,
    count: usize,
}

impl SlotTable {
    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>()
    }

    /// As `bytes`, with one more.
    pub(super) fn bytes_next(&self) -> usize {
        if self.is_full() { self.larger() * size_of::<Slot>() } else { self.bytes() }
    }

    pub(super) fn get(&self, print: u32) -> Option<RecordAddress> {
        self.find(print).ok().map(|at| self.slots[at].1)
    }

    pub(super) fn insert(&mut self, print: u32, place: RecordAddress) {
        if self.is_full() {
            self.resize(self.larger());
        }
        match self.find(print) {
            Ok(at) => self.slots[at].1 = place,
            Err(at) => {
                self.slots[at] = (print, place);
                self.count += 1;
            }
        }
    }

    /// Gives memory back, if few are left.
    pub(super) fn shrink(&mut self) {
        if self.count < self.slots.len() / 3 {
            self.resize(self.slots.len() / 2);
        }
    }

    pub(super) fn remove(&mut self, print: u32) {
        let Ok(mut gap) = self.find(print) else { return };
        self.count -= 1;
        let mut at = gap;
        loop {
            at = self.next(at);
            let (print, _) = self.slots[at];
            if print == 0 {
                break;
            }
            // It may move if its way began at the gap or before, round the end.
            let from = self.begin(print);
            let is_behind =
                if gap < at { gap < from && from <= at } else { gap < from || from <= at };
            if !is_behind {
                self.slots[gap] = self.slots[at];
                gap = at;
            }
        }
        self.slots[gap] = Slot::default();
    }

    /// Returns where `print` is, or where it would be. A table without positions has no place.
    fn find(&self, print: u32) -> Result<usize, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        let mut at = self.begin(print);
        loop {
            match self.slots[at].0 {
                found if found == print => return Ok(at),
                0 => return Err(at),
                _ => at = self.next(at),
            }
        }
    }

    fn begin(&self, print: u32) -> usize {
        ((u64::from(print) * self.slots.len() as u64) >> u32::BITS) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    fn is_full(&self) -> bool {
        self.slots.len() / 8 * 7 <= self.count
    }

    fn larger(&self) -> usize {
        (self.slots.len() / 4 * 5).max(8).next_multiple_of(8)
    }

    fn resize(&mut self, count: usize) {
        let slots = vec![Slot::default(); count];
        let old = std::mem::replace(&mut self.slots, slots);
        for (print, place) in old.into_iter().filter(|(print, _)| *print != 0) {
            if let Err(at) = self.find(print) {
                self.slots[at] = (print, place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_is_a_map() {
        let (mut places, mut model) = (SlotTable::default(), BTreeMap::new());
        let mut chance = 1u64;
        for round in 0..20_000u32 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Most begin in few places, some at the end.
            let few = (chance >> 40) as u32 % 300;
            let print = if few.is_multiple_of(3) { u32::MAX - few } else { 1 + few };
            if chance >> 33 & 3 < 2 {
                let place = RecordAddress { segment: round as u16, offset: few as u16 };
                places.insert(print, place);
                model.insert(print, place);
            } else {
                places.remove(print);
                model.remove(&print);
                places.shrink();
            }
            assert_eq!(places.get(print), model.get(&print).copied());
            if round % 64 == 0 {
                let all = (1..400).chain(u32::MAX - 400..=u32::MAX);
                assert!(
                    all.into_iter().all(|print| places.get(print) == model.get(&print).copied())
                );
                assert_eq!(places.count, model.len());
            }
        }
        assert!(places.slots.len() < 500);
    }
}
