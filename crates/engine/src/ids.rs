//! Names of trees and of moments.

/// A tree of this data directory. Local: never hashed, cloned or sent. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TreeId(pub u64);

impl TreeId {
    /// The one tree that exists in every engine from the start: local state of the layer above.
    pub const SYSTEM: TreeId = TreeId(1);
}

/// A moment in the life of a data directory: a transaction's place in the one order of all.
///
/// A hybrid clock and MongoDB's cluster time: seconds since 1970 in the high 32 bits, a counter in
/// the low ones. Never goes back, not even over restarts and clock changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Sequence(pub u64);
