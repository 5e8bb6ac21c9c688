//! CRC-32C (Castagnoli), the checksum that OP_MSG may carry.
//!
//! A table of 256 entries, one byte a step: messages with a checksum are rare (drivers send none,
//! and answers have one only if the request had), so the simple form is enough.

/// The Castagnoli polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = remainder & 1;
            remainder >>= 1;
            if carry == 1 {
                remainder ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}

/// Returns the checksum of `bytes`.
pub fn checksum(bytes: &[u8]) -> u32 {
    checksum_of(&[bytes])
}

/// Returns the checksum of all pieces, one behind the other.
pub fn checksum_of(pieces: &[&[u8]]) -> u32 {
    let mut state = u32::MAX;
    for byte in pieces.iter().copied().flatten() {
        state = TABLE[usize::from(state as u8 ^ byte)] ^ (state >> 8);
    }
    !state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums() {
        // The check value of the algorithm's catalogue, and two vectors of RFC 3720, B.4.
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(checksum(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(checksum(b""), 0);
        assert_eq!(checksum_of(&[b"1234", b"", b"56789"]), 0xe306_9283);
    }
}
