//! What a walk may expect: the names of one document, in their order.
//!
//! Documents of a collection mostly have the same outermost fields in the same order. A name that is
//! expected is compared, not looked for: where its value begins is known before its bytes have
//! arrived, and of the chain from one element to the next only the value's length is left.
//!
//! 1. The second document that is asked for some names is learnt from; the first may be the only one.
//! 2. A walk follows the layout until an element has another name than expected, or the layout ends.
//!    It goes on from there as if it had walked all the way.
//!
//! *Invariant*: what is found is what a walk without a layout finds.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{ScannedNames, Walk};
use crate::raw::{array_at, element_value_bytes};

/// No layout knows more fields: what lies behind is walked over.
const FIELD_COUNT_MAX: usize = 64;
/// A name and its zero are compared as one number.
const FRONT_BYTES: usize = size_of::<u128>();

/// The layout of one document, once it is known. Derived, so that clones begin anew.
#[derive(Default, Debug)]
pub(super) struct Learnt {
    has_met_one: AtomicBool,
    layout: OnceLock<Layout>,
}

/// The first fields of a document.
#[derive(Debug)]
pub(super) struct Layout {
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    /// The name and its zero.
    front: u128,
    /// Which bits of a document count for that.
    mask: u128,
    name_bytes: u8,
    /// Its number among those that are asked for.
    number: Option<u8>,
}

impl Clone for Learnt {
    fn clone(&self) -> Learnt {
        Learnt::default()
    }
}

impl Learnt {
    /// What to expect of a document.
    #[inline]
    pub(super) fn layout(&self, document: &[u8], names: &ScannedNames) -> Option<&Layout> {
        self.layout.get().or_else(|| self.learn(document, names))
    }

    #[cold]
    fn learn(&self, document: &[u8], names: &ScannedNames) -> Option<&Layout> {
        let has_met_one = self.has_met_one.swap(true, Ordering::Relaxed);
        has_met_one.then(|| self.layout.get_or_init(|| Layout::of(document, names)))
    }
}

impl Layout {
    fn of(document: &[u8], names: &ScannedNames) -> Layout {
        let mut fields = Vec::new();
        let mut walk = Walk::over(document);
        while let Some(met) = walk.next() {
            if FIELD_COUNT_MAX == fields.len() || FRONT_BYTES <= met.name.len() {
                break;
            }
            let mut front = [0; FRONT_BYTES];
            front[..met.name.len()].copy_from_slice(met.name);
            let unused = (FRONT_BYTES - met.name.len() - 1) as u32 * u8::BITS;
            fields.push(Field {
                front: u128::from_le_bytes(front),
                mask: u128::MAX >> unused,
                name_bytes: met.name.len() as u8,
                number: names.position(met.head, met.name).map(|number| number as u8),
            });
        }
        Layout { fields }
    }

    /// Walks on from the element at `offset`, the `passed`th of its document, over those that are as
    /// expected. Tells `meet` where each field begins that is asked for, until that says `true`;
    /// returns whether it did. `offset` and `passed` are then those of the next element.
    #[inline]
    pub(super) fn follow(
        &self,
        document: &[u8],
        offset: &mut usize,
        passed: &mut usize,
        mut meet: impl FnMut(u8, u32) -> bool,
    ) -> bool {
        for field in self.fields.get(*passed..).unwrap_or(&[]) {
            let begin = *offset;
            let Some(front) = array_at::<FRONT_BYTES>(document, begin + 1) else { break };
            if u128::from_le_bytes(front) & field.mask != field.front {
                break;
            }
            let value_offset = begin + usize::from(field.name_bytes) + 2;
            let Some(rest) = document.get(value_offset..) else { break };
            let bytes = document.get(begin).and_then(|kind| element_value_bytes(*kind, rest));
            let Some(bytes) = bytes.filter(|bytes| *bytes <= rest.len()) else { break };
            *offset = value_offset + bytes;
            *passed += 1;
            if field.number.is_some_and(|number| meet(number, begin as u32)) {
                return true;
            }
        }
        false
    }
}
