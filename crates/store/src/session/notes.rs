//! Notes of chunks: a bit for one in a sealed pack, the name of one in an open pack. So notes stay small
//! however many there are: names become bits when their pack is sealed.

use std::collections::HashSet;

use crate::bits::Bits;
use crate::chunk::ChunkHash;
use crate::index::{Location, NameHasherBuilder, PackedChunk};
use crate::pack::PackNumber;

/// See the module.
#[derive(Clone, Default, Debug)]
pub(crate) struct Notes {
    pub(crate) bits: Bits,
    pub(crate) names: HashSet<ChunkHash, NameHasherBuilder>,
}

impl Notes {
    pub(crate) fn add(&mut self, hash: ChunkHash, at: &Location) {
        match at.position {
            Some(position) => drop(self.bits.set(at.pack, position)),
            None => drop(self.names.insert(hash)),
        }
    }

    /// Adds all that `other` notes.
    pub(crate) fn add_all(&mut self, other: &Notes) {
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
