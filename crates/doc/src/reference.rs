//! A value that lies in the store, as an element of a document in memory.
//!
//! A large document on its way through a pipeline has its long values as references
//! ([`crate::pieces`], `shallow`): a stage that copies an element copies its reference, and nothing
//! of what it stands for is read. A stage that looks at a value has it opened first.
//!
//! *Invariants*: 1. References never leave the process: validation refuses their type byte, what is
//! stored or sent has none. 2. Nothing compares, orders or prints them: that would be a wrong
//! answer, so it panics.
//!
//! ```text
//! OFFSET SIZE
//!      0    1  the value's type byte
//!      1    1  0: slices, 1: a document, 2: an array, 3: an array that keeps its names
//!      2    1  how many documents and arrays are open around its elements
//!      3    8  how long its BSON is
//!     11   32  the hash of its root
//! ```

use crate::element_type::{ElementType, kind_of};

const OFFSET_LAYOUT: usize = 1;
const OFFSET_DEPTH: usize = 2;
const OFFSET_BYTES: usize = 3;
pub(crate) const OFFSET_ROOT: usize = OFFSET_BYTES + size_of::<u64>();
/// The length of a reference.
pub const REFERENCE_BYTES: usize = OFFSET_ROOT + 32;

/// A reference, in place of a value that lies in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference<'a>(&'a [u8]);

impl<'a> Reference<'a> {
    /// The reference of these bytes, if they are one.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Reference<'a>> {
        let is_one = bytes.len() == REFERENCE_BYTES && kind_of(bytes[0]).is_some();
        is_one.then_some(Reference(bytes))
    }

    /// Appends the bytes of a reference.
    pub(crate) fn append(
        out: &mut Vec<u8>,
        kind: ElementType,
        layout: u8,
        depth: usize,
        bytes: u64,
        root: &[u8; 32],
    ) {
        out.extend_from_slice(&[kind as u8, layout, u8::try_from(depth).unwrap_or(u8::MAX)]);
        out.extend_from_slice(&bytes.to_le_bytes());
        out.extend_from_slice(root);
    }

    /// The type of the value.
    pub fn kind(&self) -> ElementType {
        kind_of(self.0[0]).expect("decoding looked at it")
    }

    /// Returns how long the value is in BSON.
    pub fn bytes(&self) -> u64 {
        u64::from_le_bytes(self.array_at(OFFSET_BYTES))
    }

    pub(crate) fn layout(&self) -> u8 {
        self.0[OFFSET_LAYOUT]
    }

    pub(crate) fn depth(&self) -> usize {
        usize::from(self.0[OFFSET_DEPTH])
    }

    pub(crate) fn root(&self) -> [u8; 32] {
        self.array_at(OFFSET_ROOT)
    }

    pub(crate) fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    fn array_at<const COUNT: usize>(&self, offset: usize) -> [u8; COUNT] {
        *self.0[offset..].first_chunk().expect("all references are of one length")
    }
}
