//! The range of Sequences whose entries a reader sees.

use crate::ids::Sequence;

/// The moments of which a reader wants to see the entries: `after < sequence <= up_to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    /// What the base already contains.
    pub after: Sequence,
    /// The reader's Sequence.
    pub up_to: Sequence,
}

impl Window {
    pub fn contains(self, sequence: Sequence) -> bool {
        self.after < sequence && sequence <= self.up_to
    }
}
