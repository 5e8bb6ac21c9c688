//! A chunk that is derived from another of the same length by replacing some bytes. It remembers
//! its *origin*, so that a reader can find what differs without comparing.
//!
//! Only a few places are remembered, none of them long: a chunk that differs more has no origin,
//! and comparing finds what is shorter to write.

use std::ops::Range;
use std::sync::Arc;

use super::{Chunk, ChunkHash, Derived, HASH_BYTES, OFFSET_REFERENCES};

/// A change is in so many places at most: a name, and the sums of a child and of all.
const PLACE_COUNT_MAX: usize = 3;
/// The longest place: in a longer one there may be bytes again that agree.
const PLACE_BYTES_MAX: usize = 64;

/// The chunk from which another was derived, and where they differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The chunk that it was made of; it has as many bytes and references.
    pub old: ChunkHash,
    /// The one reference that changed: its position, and what was there.
    pub reference: Option<(usize, ChunkHash)>,
    /// Beginnings and ends in the encoded bytes, ascending; the last ones may be empty.
    places: [(u32, u32); PLACE_COUNT_MAX],
}

impl Origin {
    /// Returns where the encoded bytes differ, ascending.
    pub fn places(&self) -> impl Iterator<Item = Range<usize>> + Clone + '_ {
        let used = self.places.iter().filter(|(start, end)| start < end);
        used.map(|(start, end)| *start as usize..*end as usize)
    }

    /// Adds a place; `None` if that is more than is remembered.
    fn add(&mut self, place: Range<usize>) -> Option<()> {
        let (start, end) = (u32::try_from(place.start).ok()?, u32::try_from(place.end).ok()?);
        let is_short = place.len() <= PLACE_BYTES_MAX;
        let count = self.places().count();
        let is_next = self.places().all(|before| before.end <= place.start);
        let free = self.places.get_mut(count).filter(|_| is_short && is_next)?;
        *free = (start, end);
        Some(())
    }
}

/// A chunk on its way to being another.
pub struct ChunkChange<'a> {
    of: &'a Chunk,
    encoded: Vec<u8>,
    origin: Option<Origin>,
}

impl Chunk {
    /// Begins a chunk of the same kind, with as many references and as long a payload.
    pub fn change(&self) -> ChunkChange<'_> {
        let places = [(0, 0); PLACE_COUNT_MAX];
        let origin = Some(Origin { old: self.hash(), reference: None, places });
        ChunkChange { of: self, encoded: self.encoded().to_vec(), origin }
    }

    /// Returns the chunk that this one was made of; `None` if it was made otherwise, or read.
    pub fn origin(&self) -> Option<&Origin> {
        match self.0.derived.get()? {
            Derived::Nothing(origin) => Some(origin),
            _ => None,
        }
    }
}

impl ChunkChange<'_> {
    /// Puts a name in the place of the reference at `position`.
    pub fn put_reference(&mut self, position: usize, name: ChunkHash) {
        let at = OFFSET_REFERENCES + position * HASH_BYTES;
        if self.encoded[at..at + HASH_BYTES] == name.0 {
            return;
        }
        let gone = self.of.reference(position);
        self.origin = self.origin.take().filter(|origin| origin.reference.is_none());
        if let Some(origin) = &mut self.origin {
            origin.reference = Some((position, gone));
        }
        // All of it, though some bytes may agree: names are noted whole.
        self.note(at, &name.0);
    }

    /// Puts bytes in the place of as many of the payload, from `offset` on.
    pub fn put_payload(&mut self, offset: usize, bytes: &[u8]) {
        let at = self.of.payload_offset() + offset;
        let old = &self.encoded[at..at + bytes.len()];
        let front = old.iter().zip(bytes).take_while(|(old, new)| old == new).count();
        let rest = old[front..].iter().zip(&bytes[front..]);
        let back = rest.rev().take_while(|(old, new)| old == new).count();
        let differing = &bytes[front..bytes.len() - back];
        if !differing.is_empty() {
            self.note(at + front, differing);
        }
    }

    fn note(&mut self, at: usize, bytes: &[u8]) {
        self.encoded[at..at + bytes.len()].copy_from_slice(bytes);
        let noted = self.origin.as_mut().and_then(|origin| origin.add(at..at + bytes.len()));
        if noted.is_none() {
            self.origin = None;
        }
    }

    /// Names it.
    pub fn finish(self) -> Chunk {
        let (payload_offset, kind) = (self.of.payload_offset(), self.of.kind());
        let chunk = Chunk::named(self.encoded.into(), payload_offset, kind);
        if let Some(origin) = self.origin {
            chunk.0.derived.get_or_init(|| Derived::Nothing(Arc::new(origin)));
        }
        chunk
    }
}

#[cfg(test)]
mod tests {
    use frond_testkit::random::{assert_met, for_seeds};

    use super::*;
    use crate::ChunkKind;

    /// Goal: a changed chunk is the one that is made anew of the same parts, and its origin says
    /// where all differences are.
    #[test]
    fn a_changed_chunk_is_as_if_made_anew_and_knows_where_it_differs() {
        let mut known_count = 0;
        for_seeds(300, |mut random| {
            let name = |number: usize| ChunkHash([number as u8; HASH_BYTES]);
            let mut references: Vec<ChunkHash> = (0..random.below(5)).map(name).collect();
            let mut payload = vec![7; random.below(300)];
            let old = Chunk::new(ChunkKind::SequenceNode, &references, &payload);
            let mut change = old.change();
            for _ in 0..random.below(3) {
                if !references.is_empty() && random.one_in(2) {
                    let position = random.below(references.len());
                    references[position] = name(random.below(7));
                    change.put_reference(position, references[position]);
                }
                let start = random.below(payload.len() + 1);
                let end = start + random.below((payload.len() - start).min(90) + 1);
                payload[start..end].iter_mut().for_each(|byte| *byte = 7 + random.below(2) as u8);
                change.put_payload(start, &payload[start..end]);
            }
            let new = change.finish();
            assert_eq!(new, Chunk::new(ChunkKind::SequenceNode, &references, &payload));
            let Some(origin) = new.origin() else { return };
            known_count += 1;
            assert_eq!(origin.old, old.hash());
            let mut made = old.encoded().to_vec();
            origin.places().for_each(|at| made[at.clone()].copy_from_slice(&new.encoded()[at]));
            assert_eq!(made, &new.encoded()[..]);
            for (position, name) in old.references().enumerate() {
                let is_changed = new.reference(position) != name;
                assert_eq!(origin.reference == Some((position, name)), is_changed);
            }
        });
        assert_met("known origins", known_count, 100);
    }
}
