//! Which Sequences' entries a reader sees.

use crate::ids::Sequence;

/// The moments of which a reader wants to see the entries: `after < sequence <= upto`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    /// What the base already contains.
    pub after: Sequence,
    /// The reader's Sequence.
    pub upto: Sequence,
}

impl Window {
    pub fn contains(self, sequence: Sequence) -> bool {
        self.after < sequence && sequence <= self.upto
    }
}
