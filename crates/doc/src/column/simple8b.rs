//! Words of 64 bits that hold up to sixty numbers each: Simple-8b, as MongoDB extends it.
//!
//! 1. The low four bits are a *selector*: it says how many numbers follow and of how many bits. A
//!    number of ones alone stands for none: a value is missing there.
//! 2. Selectors 7 and 8 have four more bits. If these aren't zero, they announce numbers that end
//!    in zeros: each has the count of these in its low bits, by 1 (selector 7) or by 4 (selector
//!    8).
//! 3. Selector 15 repeats the number before it, 120 times for each of its four more bits' count.

use crate::error::DocError;

/// A number of a word; `None`: its value is missing.
pub type Slot = Option<u128>;

/// Numbers in a unit of repetition.
const REPEATED_COUNT: usize = 120;
const SELECTOR_BITS: u32 = 4;
const REPEAT: u64 = 15;

/// The layout of the numbers of a word.
struct Layout {
    /// The position of the first bit.
    start: u32,
    /// The number of bits each has, those of its zeros included.
    bits: u32,
    /// The number of them that count zeros.
    zero_bits: u32,
    /// The number of zeros one stands for.
    zeros: u32,
}

/// Appends a word's numbers; `previous` is the one before them.
///
/// # Errors
/// [`DocError::Invalid`] for a selector that there is none of.
pub fn read(word: u64, previous: Slot, slots: &mut Vec<Slot>) -> Result<(), DocError> {
    let (selector, more) = (word & 15, word >> SELECTOR_BITS & 15);
    if selector == REPEAT {
        let count = (more as usize + 1) * REPEATED_COUNT;
        slots.extend(std::iter::repeat_n(previous, count));
        return Ok(());
    }
    let Some(layout) = layout(selector, more) else {
        return Err(super::invalid(format!("no selector {selector}, {more} of a word")));
    };
    let mask = (1_u64 << layout.bits) - 1;
    let mut shift = layout.start;
    while shift + layout.bits <= u64::BITS {
        let number = word >> shift & mask;
        slots.push((number != mask).then(|| {
            let zeros = number & ((1 << layout.zero_bits) - 1);
            u128::from(number >> layout.zero_bits) << (zeros as u32 * layout.zeros)
        }));
        shift += layout.bits;
    }
    Ok(())
}

fn layout(selector: u64, more: u64) -> Option<Layout> {
    let plain = |start, bits| Some(Layout { start, bits, zero_bits: 0, zeros: 0 });
    let extended =
        |bits, zero_bits, zeros| Some(Layout { start: 2 * SELECTOR_BITS, bits, zero_bits, zeros });
    match (selector, more) {
        (7, 0) => plain(2 * SELECTOR_BITS, 7),
        (8, 0) => plain(2 * SELECTOR_BITS, 8),
        (7, 1..=9) => extended([6, 7, 8, 9, 11, 14, 18, 28, 56][more as usize - 1], 4, 1),
        (8, 1..=7) => extended([8, 9, 11, 14, 18, 28, 56][more as usize - 1], 4, 4),
        (8, 8..=13) => extended([9, 11, 14, 18, 28, 56][more as usize - 8], 5, 4),
        (1..=6, _) => plain(SELECTOR_BITS, selector as u32),
        (9..=14, _) => plain(SELECTOR_BITS, [10, 12, 15, 20, 30, 60][selector as usize - 9]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(word: u64, previous: Slot) -> Vec<Slot> {
        let mut slots = Vec::new();
        read(word, previous, &mut slots).expect("a selector");
        slots
    }

    #[test]
    fn each_selector_holds_as_many_numbers_as_fit() {
        for (selector, count) in
            [60, 30, 20, 15, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1].into_iter().enumerate()
        {
            let found = slots(selector as u64 + 1, None);
            assert_eq!(found, vec![Some(0); count], "selector {}", selector + 1);
        }
        for (more, count) in [9, 8, 7, 6, 5, 4, 3, 2, 1].into_iter().enumerate() {
            assert_eq!(slots(7 | (more as u64 + 1) << 4, None).len(), count, "7, {}", more + 1);
        }
        for (more, count) in [7, 6, 5, 4, 3, 2, 1, 6, 5, 4, 3, 2, 1].into_iter().enumerate() {
            assert_eq!(slots(8 | (more as u64 + 1) << 4, None).len(), count, "8, {}", more + 1);
        }
        assert!(read(0, None, &mut Vec::new()).is_err());
        assert!(read(7 | 10 << 4, None, &mut Vec::new()).is_err());
        assert!(read(8 | 14 << 4, None, &mut Vec::new()).is_err());
    }

    #[test]
    fn numbers_stand_from_the_low_bits_up() {
        assert_eq!(slots(14 | 5 << 4, None), [Some(5)]);
        assert_eq!(slots(13 | 1 << 4 | 2 << 34, None), [Some(1), Some(2)]);
        assert_eq!(slots(13 | 1 << 4 | ((1 << 30) - 1) << 34, None), [Some(1), None]);
        // A value of 52 bits and its zeros: 3 behind 2 of them, then behind 2 times 4.
        assert_eq!(slots(7 | 9 << 4 | 2 << 8 | 3 << 12, None), [Some(3 << 2)]);
        assert_eq!(slots(8 | 7 << 4 | 2 << 8 | 3 << 12, None), [Some(3 << 8)]);
        assert_eq!(slots(8 | 13 << 4 | 31 << 8 | 3 << 13, None), [Some(3 << 124)]);
        assert_eq!(slots(15, Some(9)), vec![Some(9); 120]);
        assert_eq!(slots(15 | 15 << 4, None), vec![None; 1_920]);
    }
}
