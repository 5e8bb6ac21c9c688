//! Damage that was found in packs.

use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::location::Location;

/// A place in a pack where the bytes aren't what was written. It was *set aside*: what lies there
/// doesn't count as stored, so the next put of the same chunk writes it again, and heals it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Damage {
    /// The pack's file inside the data directory.
    pub file: String,
    /// The offset of the frame in it.
    pub offset: u64,
    /// The chunk that is lost until it is put again; `None` if it isn't known what lay there.
    pub chunk: Option<ChunkHash>,
    /// A description of the fault.
    pub what: String,
}

impl Damage {
    /// As the error that a reader gets.
    pub fn error(&self) -> StoreError {
        StoreError::damaged(&self.file, self.offset, &self.what)
    }
}

/// The report of a scrub.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScrubReport {
    /// Chunks that were read.
    pub chunks: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// The number of times damage was found meanwhile, by the scrub or by readers.
    pub damaged: u64,
    /// Whether it ended early.
    pub stopped: bool,
}

/// A place in a pack for which it isn't known for sure what lay there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hole {
    /// The damage that readers get that miss a chunk.
    pub(crate) damage: Damage,
    pub(crate) origin: HoleOrigin,
}

/// The cause of a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HoleOrigin {
    /// Damage: it was durable.
    Damage,
    /// As `Damage`, and the chunks that should lie there are known as lost, or were put again.
    Named,
    /// Damage, or a crash, which leaves such places of writes that were never acknowledged.
    DamageOrCrash,
}

/// A damaged frame in which a chunk lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FrameDamage {
    pub(crate) at: Location,
    pub(crate) what: String,
}

impl FrameDamage {
    /// The damage to `chunk`, as it is reported.
    pub(crate) fn of(&self, chunk: ChunkHash) -> Damage {
        Damage {
            file: self.at.pack.to_string(),
            offset: u64::from(self.at.place.offset),
            chunk: Some(chunk),
            what: self.what.clone(),
        }
    }
}
