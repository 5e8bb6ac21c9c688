//! Cuts a long item by its content, so that an insertion moves only the cuts near it.
//!
//! A gear hash (Xia et al., FastCDC, 2016, section 4.1) of the last 64 bytes; a piece ends where
//! its ten highest bits are zero. Integer arithmetic only: the rule is part of the format.

/// No piece but an item's last is shorter.
const PIECE_BYTES_MIN: usize = 256;
/// Bits of the hash that are zero at a cut: 1 KB between cuts on average, after the minimum.
const CUT_BITS: u32 = 10;

/// A random number for each byte. Stored: the constants decide where cuts lie.
static GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state = 0_u64;
    let mut position = 0;
    while position < table.len() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[position] = z ^ (z >> 31);
        position += 1;
    }
    table
}

/// Returns how many bytes at the front of `bytes` are the first piece: at most `bytes_max`.
pub(super) fn first_piece(bytes: &[u8], bytes_max: usize) -> usize {
    if bytes.len() <= bytes_max {
        return bytes.len(); // Only what is too long is cut at all.
    }
    let mut hash = 0_u64;
    for (position, byte) in bytes[..bytes_max].iter().enumerate() {
        hash = (hash << 1).wrapping_add(GEAR[*byte as usize]);
        if PIECE_BYTES_MIN <= position + 1 && hash >> (64 - CUT_BITS) == 0 {
            return position + 1;
        }
    }
    bytes_max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_bytes_are_whole() {
        assert_eq!(first_piece(&[], 2048), 0);
        assert_eq!(first_piece(&[0; 2048], 2048), 2048);
    }

    /// The stored rule: a change of these numbers is a change of the format.
    #[test]
    fn cuts_are_where_they_were() {
        let bytes: Vec<u8> =
            (0..20_000_u32).map(|n| ((n * n).wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        let mut rest = bytes.as_slice();
        let mut cuts = Vec::new();
        while !rest.is_empty() {
            let count = first_piece(rest, 2047);
            assert!(count <= 2047 && (PIECE_BYTES_MIN <= count || count == rest.len()));
            cuts.push(count);
            rest = &rest[count..];
        }
        assert_eq!(cuts, CUTS);
    }

    const CUTS: [usize; 19] = [
        941, 929, 728, 802, 1001, 335, 1301, 2047, 1442, 1103, 1255, 2047, 557, 1168, 874, 306,
        871, 1160, 1133,
    ];
}
