//! The range of Sequences whose entries a reader sees.

use crate::ids::Sequence;

/// The moments whose entries a reader wants to see: `after < sequence <= up_to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    /// The Sequence up to which the base already contains the entries.
    pub after: Sequence,
    /// The reader's Sequence.
    pub up_to: Sequence,
}

impl Window {
    pub fn contains(self, sequence: Sequence) -> bool {
        self.after < sequence && sequence <= self.up_to
    }
}
