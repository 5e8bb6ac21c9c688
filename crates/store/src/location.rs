//! The location of a chunk: its pack, and its frame in it.

use std::fmt;

use crate::Lifetime;
use crate::hash::ChunkHash;

/// A pack's number; later packs have larger numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PackNumber(pub(crate) u32);

impl PackNumber {
    /// The number of the pack whose file is called `name`, if it is a pack's.
    pub(crate) fn from_file_name(name: &str) -> Option<PackNumber> {
        let number = PackNumber(u32::from_str_radix(name.strip_suffix(".pack")?, 16).ok()?);
        (number.to_string() == name).then_some(number)
    }
}

/// Writes the name of the pack's file.
impl fmt::Display for PackNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}.pack", self.0)
    }
}

/// The kind of chunks in a pack: those that live about as long lie together, so that packs become
/// garbage as a whole. Stored: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub(crate) enum Purpose {
    /// [`Lifetime::Brief`].
    Brief = 0,
    /// [`Lifetime::Working`], [`Lifetime::Rewritten`] and [`Lifetime::Loaded`].
    Working = 1,
    /// [`Lifetime::Lasting`].
    Lasting = 2,
    /// Chunks that a collection found to be history only, in groups of related chunks.
    Packed = 3,
}

/// The number of purposes there are.
pub(crate) const PURPOSE_COUNT: usize = 4;

impl Purpose {
    pub(crate) const ALL: [Purpose; PURPOSE_COUNT] =
        [Purpose::Brief, Purpose::Working, Purpose::Lasting, Purpose::Packed];

    pub(crate) fn from_stored(number: u16) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| *purpose as u16 == number)
    }
}

impl From<Lifetime> for Purpose {
    fn from(lifetime: Lifetime) -> Purpose {
        match lifetime {
            Lifetime::Brief => Purpose::Brief,
            Lifetime::Working | Lifetime::Rewritten | Lifetime::Loaded => Purpose::Working,
            Lifetime::Lasting => Purpose::Lasting,
        }
    }
}

/// The location of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Location {
    pub(crate) pack: PackNumber,
    pub(crate) place: FrameOffset,
    /// Whether the chunk refers to others: if not, following references needs no read of it.
    pub(crate) refers: bool,
    /// Its position in the index of its pack, if that is sealed.
    pub(crate) position: Option<u32>,
}

/// A chunk in a pack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PackedChunk {
    pub(crate) hash: ChunkHash,
    pub(crate) place: FrameOffset,
    pub(crate) refers: bool,
}

impl PackedChunk {
    /// As a place in `pack`.
    pub(crate) fn location(&self, pack: PackNumber, position: Option<u32>) -> Location {
        Location { pack, place: self.place, refers: self.refers, position }
    }
}

/// The offset and size of a frame in its pack. Packs end below 4 GiB, so 32 bits do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FrameOffset {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

impl FrameOffset {
    /// Returns where the next frame begins.
    pub(crate) fn end(self) -> u64 {
        u64::from(self.offset) + u64::from(self.bytes)
    }
}
