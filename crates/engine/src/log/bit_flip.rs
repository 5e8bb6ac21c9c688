//! Finds a single flipped bit in a record.
//!
//! The newest record of the log has none behind it, and maybe no mark, that calls it durable. If it
//! isn't whole, a crash may have torn it. But if one bit makes it whole, it was written as it is
//! then: that its checksum holds by chance happens once in 2⁴⁷ records.

/// The longest body that is tried: the work grows with the square of the length.
pub(super) const TRIED_BYTES_MAX: u64 = 16 << 10;

/// Returns where a byte with one bit turned over makes `bytes` whole, and that byte.
pub(super) fn flipped_byte<B>(bytes: &mut B, is_whole: impl Fn(&B) -> bool) -> Option<(usize, u8)>
where
    B: AsMut<[u8]> + ?Sized,
{
    for position in 0..bytes.as_mut().len() {
        for bit in 0..8 {
            bytes.as_mut()[position] ^= 1 << bit;
            if is_whole(bytes) {
                return Some((position, bytes.as_mut()[position]));
            }
            bytes.as_mut()[position] ^= 1 << bit;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::format::payload_checksum;

    #[test]
    fn one_bit_is_found_wherever_it_is_and_two_are_not() {
        let right: Vec<u8> = (0..300_u32).map(|number| (number * 7) as u8).collect();
        let checksum = payload_checksum(&right);
        let is_whole = |bytes: &[u8]| payload_checksum(bytes) == checksum;
        for bit in 0..right.len() * 8 {
            let mut bytes = right.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let found = flipped_byte(&mut bytes[..], is_whole);
            assert_eq!(found, Some((bit / 8, right[bit / 8])), "bit {bit}");
        }
        let mut bytes = right.clone();
        bytes[0] ^= 1;
        bytes[299] ^= 1;
        assert_eq!(flipped_byte(&mut bytes[..], is_whole), None);
    }
}
