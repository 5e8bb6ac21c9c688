//! Bit packing: numbers of a fixed width, one after the other, the lowest bit first.

const WORD_BITS: u32 = u64::BITS;
/// An unaligned word from the byte where a number begins holds all of it up to this width.
const WIDTH_IN_WORD_MAX: u32 = WORD_BITS - 7;

/// Returns how many bits `number` needs.
pub(super) fn width(number: u64) -> u32 {
    WORD_BITS - number.leading_zeros()
}

/// Returns how many bytes so many numbers take.
pub(super) fn packed_bytes(count: usize, width: u32) -> Option<usize> {
    Some(count.checked_mul(width as usize)?.div_ceil(8))
}

/// Appends `numbers`, none of which needs more than `width` bits, which are at most 64.
pub(super) fn pack(out: &mut Vec<u8>, width: u32, numbers: impl Iterator<Item = u64>) {
    if width == 0 {
        return;
    }
    let (mut waiting, mut waiting_bits) = (0u64, 0);
    for number in numbers {
        debug_assert!(self::width(number) <= width);
        waiting |= number << waiting_bits;
        waiting_bits += width;
        if WORD_BITS <= waiting_bits {
            out.extend_from_slice(&waiting.to_le_bytes());
            waiting_bits -= WORD_BITS;
            // The bits of the number that had no room; of the whole width where it had none.
            waiting = number.checked_shr(width - waiting_bits).unwrap_or(0);
        }
    }
    out.extend_from_slice(&waiting.to_le_bytes()[..waiting_bits.div_ceil(8) as usize]);
}

/// Appends to `numbers` the first `count` of those in `packed`, each as `number` makes it.
///
/// `packed` is as long as [`packed_bytes`] says, and `width` at most 64.
pub(super) fn unpack(
    packed: &[u8],
    width: u32,
    count: usize,
    numbers: &mut Vec<i64>,
    number: impl Fn(u64) -> i64,
) {
    let mask = if width == WORD_BITS { u64::MAX } else { (1 << width) - 1 };
    let place = |position: usize| {
        let bit = position * width as usize;
        (bit / 8, (bit % 8) as u32)
    };
    // Those of which all lies in a word that is there.
    let mut in_word = 0;
    if width <= WIDTH_IN_WORD_MAX
        && let Some(last_start) = packed.len().checked_sub(size_of::<u64>())
    {
        in_word = (last_start * 8 + 7).checked_div(width as usize).map_or(0, |last| last + 1);
        in_word = in_word.min(count);
        numbers.extend((0..in_word).map(|position| {
            let (byte, shift) = place(position);
            let word = packed[byte..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            number(word >> shift & mask)
        }));
    }
    numbers.extend((in_word..count).map(|position| {
        let (byte, shift) = place(position);
        let mut word = [0; size_of::<u128>()];
        let rest = &packed[byte..packed.len().min(byte + word.len())];
        word[..rest.len()].copy_from_slice(rest);
        number((u128::from_le_bytes(word) >> shift) as u64 & mask)
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_widths_come_back() {
        for width in 1..=WORD_BITS {
            for count in [0, 1, 2, 7, 8, 9, 63, 100] {
                let noise = |n: u64| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - width);
                let numbers: Vec<u64> =
                    (0..count).map(noise).chain([u64::MAX >> (64 - width)]).collect();
                let mut packed = Vec::new();
                pack(&mut packed, width, numbers.iter().copied());
                assert_eq!(packed_bytes(numbers.len(), width), Some(packed.len()));
                let mut found = Vec::new();
                unpack(&packed, width, numbers.len(), &mut found, |number| number as i64);
                assert!(found.iter().map(|number| *number as u64).eq(numbers), "{width} bits");
            }
        }
    }
}
