//! The shapes that a thread has met last: leaves that are written, read back or scanned one after
//! the other are mostly of one collection, and to take a shape apart costs as much as some rows.
//!
//! A known shape is used for nothing but what one that is taken apart anew would be.

use std::cell::RefCell;
use std::rc::Rc;

use super::shape::Shape;

/// The number of shapes that are remembered.
const COUNT_MAX: usize = 4;
/// A shape that is longer isn't: threads are many.
const BYTES_MAX: usize = 4 << 10;

thread_local! {
    /// The one that was used last is the last.
    static KNOWN: RefCell<Vec<Rc<Shape>>> = const { RefCell::new(Vec::new()) };
}

/// The shape of `document`, if it has one.
pub(super) fn of(document: &[u8]) -> Option<Rc<Shape>> {
    known(|shape| shape.is_of(document)).or_else(|| Shape::of(document).map(remember))
}

/// Takes `bytes` apart, if they are a shape.
pub(super) fn parse(bytes: &[u8]) -> Option<Rc<Shape>> {
    known(|shape| shape.bytes == bytes).or_else(|| Shape::parse(bytes).map(remember))
}

fn known(is_it: impl Fn(&Shape) -> bool) -> Option<Rc<Shape>> {
    KNOWN.with_borrow_mut(|known| {
        let position = known.iter().rposition(|shape| is_it(shape))?;
        let shape = known.remove(position);
        known.push(Rc::clone(&shape));
        Some(shape)
    })
}

/// Returns `shape`, remembered.
fn remember(shape: Shape) -> Rc<Shape> {
    let shape = Rc::new(shape);
    if shape.bytes.len() <= BYTES_MAX {
        KNOWN.with_borrow_mut(|known| {
            if known.len() == COUNT_MAX {
                known.remove(0);
            }
            known.push(Rc::clone(&shape));
        });
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{NAME: 7}`.
    fn document(name: &str) -> Vec<u8> {
        let element = [&[0x10], name.as_bytes(), &[0, 7, 0, 0, 0]].concat();
        let bytes = 4 + element.len() as i32 + 1;
        [&bytes.to_le_bytes()[..], &element, &[0]].concat()
    }

    #[test]
    fn a_shape_is_taken_apart_once() {
        let (plum, pear) = (document("plum"), document("pear"));
        let first = of(&plum).expect("a shape");
        let other = of(&pear).expect("a shape");
        assert_eq!(other.bytes, b"\x10pear\0\0");
        assert!(Rc::ptr_eq(&first, &of(&plum).expect("a shape")));
        assert!(Rc::ptr_eq(&other, &parse(&other.bytes).expect("a shape")));
        for number in 0..COUNT_MAX {
            assert_eq!(of(&document(&format!("n{number}"))).expect("a shape").slots.len(), 1);
        }
        let again = of(&plum).expect("a shape");
        assert!(!Rc::ptr_eq(&first, &again) && first.bytes == again.bytes, "it was forgotten");
        assert!(of(&plum[..9]).is_none() && parse(&other.bytes[..5]).is_none());
        let long = document(&"n".repeat(BYTES_MAX));
        assert!(!Rc::ptr_eq(&of(&long).expect("a shape"), &of(&long).expect("a shape")));
    }
}
