//! Equal parts of one document: what was made a container once isn't made one again.
//!
//! Containers are found by their length and their ends, and compared whole: of unequal ones the
//! comparison mostly ends at once, so that a document without equal parts pays some nanoseconds for
//! each. One that comes to the place of another has it forgotten.

use frond_store::ChunkHash;

use crate::element_type::ElementType;
use crate::pieces::item::Layout;
use crate::raw::array_at;

/// Containers that are remembered, at most.
const SLOTS: usize = 256;

/// The containers of a document so far.
#[derive(Default)]
pub(super) struct DedupedParts<'b> {
    /// None of them before the first container.
    slots: Vec<Option<Container<'b>>>,
}

#[derive(Clone)]
struct Container<'b> {
    kind: ElementType,
    bson: &'b [u8],
    made: (Layout, ChunkHash),
}

impl<'b> DedupedParts<'b> {
    /// The parts that an equal document or array was made into, if it is remembered.
    pub(super) fn get(&self, kind: ElementType, bson: &[u8]) -> Option<(Layout, ChunkHash)> {
        let entry = self.slots.get(slot(bson))?.as_ref()?;
        (entry.kind == kind && entry.bson == bson).then_some(entry.made)
    }

    pub(super) fn add(&mut self, kind: ElementType, bson: &'b [u8], made: (Layout, ChunkHash)) {
        self.slots.resize(SLOTS, None);
        self.slots[slot(bson)] = Some(Container { kind, bson, made });
    }
}

/// Returns the slot by the length, what comes behind it, and the end, mixed as Fibonacci hashing
/// does.
fn slot(bson: &[u8]) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let word = |offset| array_at(bson, offset).map_or(0, u64::from_le_bytes);
    let ends = [word(0), word(8), word(bson.len().saturating_sub(16))];
    let mixed = ends.iter().fold(0_u64, |hash, word| (hash ^ word).wrapping_mul(GOLDEN));
    (mixed >> 32) as usize % SLOTS
}
