//! CRC-64/NVME, by the names of the crate `crc-fast`, in whose place it stands.
//!
//! `object_store` computes one checksum by that crate: an object's, if the environment says
//! `AWS_CHECKSUM_ALGORITHM=crc64nvme`. The crate brings tables for each CRC that is known and each
//! instruction set, and chooses among them when it runs, so that no linker can leave them out:
//! 0.7 MB of the program.
//!
//! *Slicing by eight*: eight bytes are XORed into the state, and the effect of each of them, on the
//! state eight bytes further, is looked up in a table of its own. 16 KB of tables, computed by the
//! compiler. A gigabyte takes about a second, and a bucket is further away than that.
//!
//! Source: M. E. Kounavis, F. L. Berry, "Novel Table Lookup-Based Algorithms for High-Performance
//! CRC Generation", 2008; parameters: NVM Express, NVM Command Set 1.0, 5.2.1.3.4.

/// The polynomial, its bits reversed, since the lowest bit of a byte comes first.
const POLYNOMIAL: u64 = 0x9a6c_9329_ac4b_c9b5;
/// The bytes that are taken at once.
const SLICES: usize = 8;

/// `TABLES[n][byte]` is the state that `byte` leaves after it and `n` zero bytes.
static TABLES: [[u64; 256]; SLICES] = tables();

const fn tables() -> [[u64; 256]; SLICES] {
    let mut tables = [[0; 256]; SLICES];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            state = if state & 1 == 1 { state >> 1 ^ POLYNOMIAL } else { state >> 1 };
            bit += 1;
        }
        tables[0][byte] = state;
        byte += 1;
    }
    let mut slice = 1;
    while slice < SLICES {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[slice - 1][byte];
            tables[slice][byte] = tables[0][(before & 0xff) as usize] ^ before >> 8;
            byte += 1;
        }
        slice += 1;
    }
    tables
}

/// The CRCs that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrcAlgorithm {
    /// CRC-64/NVME, which S3 calls `CRC64NVME`.
    Crc64Nvme,
}

/// A checksum on its way.
#[derive(Clone, Debug)]
pub struct Digest {
    state: u64,
}

impl Digest {
    /// The checksum of nothing yet.
    pub fn new(algorithm: CrcAlgorithm) -> Digest {
        match algorithm {
            CrcAlgorithm::Crc64Nvme => Digest { state: u64::MAX },
        }
    }

    /// Takes in the bytes that come next.
    pub fn update(&mut self, bytes: &[u8]) {
        let (groups, rest) = bytes.as_chunks::<SLICES>();
        for group in groups {
            let mixed = (self.state ^ u64::from_le_bytes(*group)).to_le_bytes();
            self.state = 0;
            for (table, byte) in TABLES.iter().rev().zip(mixed) {
                self.state ^= table[usize::from(byte)];
            }
        }
        for byte in rest {
            let low = self.state.to_le_bytes()[0] ^ byte;
            self.state = TABLES[0][usize::from(low)] ^ self.state >> 8;
        }
    }

    /// Returns the checksum of all bytes so far.
    pub fn finalize(&self) -> u64 {
        !self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum, bit by bit.
    fn model(bytes: &[u8]) -> u64 {
        let mut state = u64::MAX;
        for byte in bytes {
            state ^= u64::from(*byte);
            for _ in 0..8 {
                state = if state & 1 == 1 { state >> 1 ^ POLYNOMIAL } else { state >> 1 };
            }
        }
        !state
    }

    #[test]
    fn published_values() {
        let zeros = [0; 4_096];
        let ones = [0xff; 4_096];
        let checks: [(&[u8], u64); 4] = [
            // The check value of the catalogue of parametrised CRC algorithms.
            (b"123456789", 0xae8b_1486_0a79_9888),
            // The examples of the NVM Command Set.
            (&zeros, 0x6482_d367_eb22_b64e),
            (&ones, 0xc0dd_ba73_02ec_a3ac),
            (b"", 0),
        ];
        for (bytes, expected) in checks {
            let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
            digest.update(bytes);
            assert_eq!(digest.finalize(), expected, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn however_the_bytes_are_cut() {
        let mut last = 0x2545_f491_4f6c_dd1d_u64;
        let bytes: Vec<u8> = (0..251)
            .map(|_| {
                last = last.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                last.to_be_bytes()[0]
            })
            .collect();
        for first in 0..23 {
            for second in first..bytes.len() {
                let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
                digest.update(&bytes[..first]);
                digest.update(&bytes[first..second]);
                assert_eq!(digest.finalize(), model(&bytes[..second]), "{first}, {second}");
            }
        }
    }
}
