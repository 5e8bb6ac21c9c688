//! A set of live chunks: a bit for one in a sealed pack, the name of one in an open pack. Names
//! become bits when their pack is sealed, so the set stays small.

use std::collections::HashSet;

use crate::chunk::ChunkHash;
use crate::gc::bitmap::PackBitmap;
use crate::hash::NameHasherBuilder;
use crate::location::PackNumber;
use crate::location::{Location, PackedChunk};

/// A set of live chunks.
#[derive(Clone, Default, Debug)]
pub(crate) struct LiveSet {
    pub(crate) bits: PackBitmap,
    pub(crate) names: HashSet<ChunkHash, NameHasherBuilder>,
}

impl LiveSet {
    pub(crate) fn add(&mut self, hash: ChunkHash, at: &Location) {
        match at.position {
            Some(position) => drop(self.bits.set(at.pack, position)),
            None => drop(self.names.insert(hash)),
        }
    }

    /// Adds all that `other` notes.
    pub(crate) fn add_all(&mut self, other: &LiveSet) {
        self.bits.set_all(&other.bits);
        self.names.extend(&other.names);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bits.is_empty() && self.names.is_empty()
    }

    /// Turns the names of `chunks`, which `pack`'s index has in this order, into bits.
    pub(crate) fn seal(&mut self, pack: PackNumber, chunks: &[PackedChunk]) {
        if self.names.is_empty() {
            return;
        }
        for (position, chunk) in (0..).zip(chunks) {
            if self.names.remove(&chunk.hash) {
                self.bits.set(pack, position);
            }
        }
    }
}
