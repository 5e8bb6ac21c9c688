//! Packs: append-only files of frames (docs/format/pack.md).
//!
//! A pack is *open* while frames are appended to it, then *sealed* by an index at its end, which is
//! searched on disk ([`table`]). Frames describe themselves, so an open pack needs no index: it is
//! scanned when the store is opened.

pub(crate) mod codec;
mod columns;
pub(crate) mod format;
pub(crate) mod frames;
mod lz4;
pub(crate) mod outline;
pub(crate) mod reader;
pub(crate) mod recover;
pub(crate) mod table;
pub(crate) mod writer;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::error::StoreError;
use crate::io::DiskFile;
use crate::location::{FrameOffset, PackNumber, PackedChunk, Purpose};
use crate::pack::table::PackTable;

/// `EIO`: what a disk answers for a sector whose bytes it has lost.
const ERROR_OF_MEDIUM: i32 = 5;

/// A pack's file, open.
pub(crate) struct Pack {
    pub(crate) number: PackNumber,
    pub(crate) purpose: Purpose,
    pub(crate) name: String,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Set when it is sealed.
    pub(crate) table: OnceLock<PackTable>,
    /// The chunks that frames hold, by name: set when a page of the index was found damaged.
    rescued: OnceLock<Vec<PackedChunk>>,
    written: AtomicU64,
    /// The ends of places that are no frames: see [`recover`].
    gap_ends: Mutex<BTreeSet<u64>>,
}

impl Pack {
    pub(crate) fn new(number: PackNumber, purpose: Purpose, file: Arc<dyn DiskFile>) -> Pack {
        Pack {
            number,
            purpose,
            name: number.to_string(),
            file,
            table: OnceLock::new(),
            rescued: OnceLock::new(),
            written: AtomicU64::new(0),
            gap_ends: Mutex::default(),
        }
    }

    /// Notes that a place that is no frame ends at `end`: no frame reaches across.
    pub(crate) fn note_gap_end(&self, end: u64) {
        self.gap_ends.lock().expect("no panic while the lock is held").insert(end);
    }

    /// Cuts the first `bytes` bytes into parts across whose ends no frame reaches: where each ends.
    pub(crate) fn part_ends(&self, bytes: u64) -> Vec<u64> {
        let ends = self.gap_ends.lock().expect("no panic while the lock is held");
        ends.range(..bytes).copied().chain([bytes]).collect()
    }

    /// Returns how many bytes lie whole in the file, as far as was noted: what is behind may be
    /// half written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Notes that so many do.
    pub(crate) fn note_written(&self, bytes: u64) {
        self.written.store(bytes, Ordering::Release);
    }

    /// The chunks of whole frames by ascending name, where the index can't be used: reads all
    /// frames, once.
    pub(crate) fn rescued(&self) -> Result<&[PackedChunk], StoreError> {
        if self.rescued.get().is_none() {
            let bytes = self.file.bytes().map_err(|error| self.io(error))?;
            let mut entries = recover::recover(self, bytes)?.entries;
            entries.sort_unstable();
            entries.dedup_by_key(|entry| entry.hash);
            self.rescued.get_or_init(|| entries);
        }
        Ok(self.rescued.get().map(Vec::as_slice).unwrap_or_default())
    }

    pub(crate) fn io(&self, source: std::io::Error) -> StoreError {
        StoreError::io(&self.name, source)
    }

    pub(crate) fn damaged(&self, offset: u64, what: &str) -> StoreError {
        StoreError::damaged(&self.name, offset, what)
    }

    /// Reads `bytes` bytes that were there once: too short a file is damaged.
    pub(crate) fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, StoreError> {
        let mut buffer = vec![0; bytes];
        self.read_to(offset, &mut buffer)?;
        Ok(buffer)
    }

    /// As `read`, into the whole of `buffer`.
    pub(crate) fn read_to(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.file.read_exact_at(offset, buffer).map_err(|error| self.unread(offset, error))
    }

    /// As `read`, past the system's cache if it can be passed; returns where in `buffer`, which may
    /// grow, the bytes are.
    pub(crate) fn read_past_cache(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Range<usize>, StoreError> {
        let read = self.file.read_past_cache(offset, bytes, buffer);
        read.map_err(|error| self.unread(offset, error))
    }

    /// Whether a frame comes from beyond the disk; the next read of it asks there again.
    pub(crate) fn forget_cached(&self, place: FrameOffset) -> bool {
        self.file.forget_cached(u64::from(place.offset), u64::from(place.bytes))
    }

    fn unread(&self, offset: u64, error: std::io::Error) -> StoreError {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return self.damaged(offset, "the file ends before its content");
        }
        if error.raw_os_error() == Some(ERROR_OF_MEDIUM) {
            return self.damaged(offset, "the disk can't read this");
        }
        self.io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::PackNumber;

    #[test]
    fn a_pack_and_its_file_name_find_each_other() {
        assert_eq!(PackNumber(0x2a).to_string(), "0000002a.pack");
        assert_eq!(PackNumber::from_file_name("0000002a.pack"), Some(PackNumber(0x2a)));
        for name in ["2a.pack", "0000002A.pack", "+000002a.pack", "log", ".pack", "0000002a"] {
            assert_eq!(PackNumber::from_file_name(name), None, "{name}");
        }
    }
}
