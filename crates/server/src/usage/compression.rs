//! The savings of compression: bytes before and behind it, by compressor and direction. Headers
//! aren't counted, as in MongoDB.

use super::Counters;
use crate::wire::{COMPRESSED_HEADER_BYTES, Compressor, HEADER_BYTES};

/// Bytes that went into something, and that came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThroughBytes {
    /// The bytes that went in.
    pub bytes_in: u64,
    /// The bytes that came out.
    pub bytes_out: u64,
}

/// Counters of compression.
#[derive(Default)]
pub struct Compression([Counters<4>; Compressor::ALL.len()]);

impl Compression {
    /// Counts an answer that has `plain` bytes and goes as `compressed`.
    pub fn count_answer(&self, compressor: Compressor, plain: usize, compressed: usize) {
        let counters = &self.0[compressor as usize];
        counters.add(0, plain.saturating_sub(HEADER_BYTES) as u64);
        counters.add(1, compressed.saturating_sub(COMPRESSED_HEADER_BYTES) as u64);
    }

    /// Counts a message that came as `compressed` bytes and has `plain`.
    pub fn count_message(&self, compressor: Compressor, compressed: usize, plain: usize) {
        let counters = &self.0[compressor as usize];
        counters.add(2, compressed.saturating_sub(COMPRESSED_HEADER_BYTES) as u64);
        counters.add(3, plain.saturating_sub(HEADER_BYTES) as u64);
    }

    /// Returns the counts of compressing messages, and those of decompressing them.
    pub fn of(&self, compressor: Compressor) -> (ThroughBytes, ThroughBytes) {
        let [plain_in, compressed_out, compressed_in, plain_out] =
            self.0[compressor as usize].read();
        (
            ThroughBytes { bytes_in: plain_in, bytes_out: compressed_out },
            ThroughBytes { bytes_in: compressed_in, bytes_out: plain_out },
        )
    }
}
