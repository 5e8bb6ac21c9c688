//! Names for parts of chunks.

use twox_hash::XxHash3_64;

/// Distinguishes a part of a chunk from its others, except for collisions: a hash of the key by
/// which the part is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryName(pub(crate) u64);

impl EntryName {
    /// The name of the part that is found by `key`.
    pub fn of(key: &[u8]) -> EntryName {
        EntryName(XxHash3_64::oneshot(key))
    }
}
