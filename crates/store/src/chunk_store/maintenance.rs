//! Maintenance of a store: garbage collection, scrubbing, and reports of damage.

use std::ops::ControlFlow;

use crate::chunk::ChunkHash;
use crate::copies::Copies;
use crate::damage::{Damage, ScrubReport};
use crate::error::StoreError;
use crate::gc::{GarbageCollection, GcReport};
use crate::io::TierState;

/// A failure to send packs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SendFailure {
    /// The time since when: microseconds since 1970, by the machine's clock.
    pub since_micros: i64,
    /// The message of its last failure.
    pub message: String,
    /// Whether nothing more is put: as much as may be on the disk is there.
    pub is_full: bool,
}

/// The services of a [`ChunkStore`](super::ChunkStore) for background work and the operator. A
/// store that lies on no disk has garbage, but no damage.
pub trait Maintenance: Send + Sync {
    /// Removes chunks that can't be reached from the named roots, from the roots that `gc`
    /// gives, or from what sessions protect. Readers and writers go on. One runs at a time.
    ///
    /// # Errors
    /// [`StoreError::Missing`] or [`StoreError::Damaged`] if something reachable can't be read:
    /// nothing was removed that isn't garbage. [`StoreError::Io`] with a full disk: likewise.
    fn collect(&self, collection: &mut GarbageCollection<'_>) -> Result<GcReport, StoreError>;

    /// Returns the damage that was found and not put again since, by file and offset.
    fn damages(&self) -> Vec<Damage> {
        Vec::new()
    }

    /// Takes the damage that was found since the last call, including damage that was healed at
    /// once and indexes that were made again. Meant for a log.
    fn take_findings(&self) -> Vec<Damage> {
        Vec::new()
    }

    /// Whether something may be missing that was durable: an opening found what a crash leaves, or
    /// damage. Then [`report_lost`](Maintenance::report_lost) says which.
    fn has_doubts(&self) -> bool {
        false
    }

    /// Looks for `needed`, which acknowledged writes refer to, and for what that refers to. Where
    /// something isn't there, places that may have held it count as damage from then on.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the disk doesn't answer. Damage is none.
    fn report_lost(&self, _needed: &[ChunkHash]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Reads everything again from the disk, and sets aside what is damaged; heals it where the
    /// cache has it. Begins at the pack of number `first`, counted round and round. `throttle` is
    /// called with how many bytes were read since the last call, and may say that it is enough.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the disk doesn't answer. Damage is none.
    fn scrub(
        &self,
        _first: u64,
        _pace: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ScrubReport, StoreError> {
        Ok(ScrubReport::default())
    }

    /// The second copies of some of the chunks, where the store keeps such.
    fn copies(&self) -> Option<&Copies> {
        None
    }

    /// Whether its packs live in a tier beyond the disk: then a root of the name of another and
    /// `SELF_CONTAINED_SUFFIX` names what a directory begins with that has the tier alone, and
    /// swapping it sends all packs there.
    fn is_tiered(&self) -> bool {
        false
    }

    /// Sends packs to the tier whenever that is due, until `stop_sending`: while this runs, nothing
    /// that is put waits for the tier, unless the disk has as many new packs as it may. `report`
    /// gets each attempt's outcome.
    fn send_until_stopped(&self, _report: &mut dyn FnMut(&Result<(), StoreError>)) {}

    /// Sends all packs to the tier, if there is one, and has it remove at once what they replaced:
    /// after a collection nothing of what that removed is there any more.
    ///
    /// # Errors
    /// [`StoreError::Io`]: the tier doesn't answer; some of it may still be there.
    fn purge_tier(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Ends `send_until_stopped`; what is on its way is given up.
    fn stop_sending(&self) {}

    /// Returns how the tier is used, if there is one.
    fn tier_state(&self) -> Option<TierState> {
        None
    }

    /// Does at the tier what is to be done now and then, if it is due. Returns what an operator is
    /// to read, each line once.
    fn tend_tier(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns since when and why packs can't be sent to the tier, if that is so.
    fn send_failure(&self) -> Option<SendFailure> {
        None
    }
}
