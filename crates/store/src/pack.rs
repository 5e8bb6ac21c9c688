//! Packs: append-only files of frames (docs/format/pack.md).
//!
//! A pack is *open* while frames are appended to it, then *sealed* by an index at its end, which is searched
//! on disk ([`table`]). Frames describe themselves, so an open pack needs no index: it is scanned when the store is opened.

pub(crate) mod codec;
pub(crate) mod format;
pub(crate) mod frames;
mod lz4;
pub(crate) mod reader;
pub(crate) mod table;
pub(crate) mod writer;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::Lifetime;
use crate::error::StoreError;
use crate::io::DiskFile;
use crate::pack::table::PackTable;

/// A pack's number; later packs have larger numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PackNumber(pub(crate) u32);

impl PackNumber {
    /// The number of the pack whose file is called `name`, if it is a pack's.
    pub(crate) fn from_file_name(name: &str) -> Option<PackNumber> {
        let number = PackNumber(u32::from_str_radix(name.strip_suffix(".pack")?, 16).ok()?);
        (number.to_string() == name).then_some(number)
    }
}

/// Writes the name of the pack's file.
impl fmt::Display for PackNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}.pack", self.0)
    }
}

/// Which chunks a pack is for: those that live about as long lie together, so that packs die whole.
/// Stored: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub(crate) enum Purpose {
    /// [`Lifetime::Brief`].
    Brief = 0,
    /// [`Lifetime::Working`] and [`Lifetime::Loaded`].
    Working = 1,
    /// [`Lifetime::Lasting`].
    Lasting = 2,
    /// What a collection found to be history only, in groups of related chunks.
    Packed = 3,
}

/// How many purposes there are.
pub(crate) const PURPOSE_COUNT: usize = 4;

impl Purpose {
    pub(crate) const ALL: [Purpose; PURPOSE_COUNT] =
        [Purpose::Brief, Purpose::Working, Purpose::Lasting, Purpose::Packed];

    pub(crate) fn from_stored(number: u16) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| *purpose as u16 == number)
    }
}

impl From<Lifetime> for Purpose {
    fn from(lifetime: Lifetime) -> Purpose {
        match lifetime {
            Lifetime::Brief => Purpose::Brief,
            Lifetime::Working | Lifetime::Loaded => Purpose::Working,
            Lifetime::Lasting => Purpose::Lasting,
        }
    }
}

/// A pack's file, open.
pub(crate) struct Pack {
    pub(crate) number: PackNumber,
    pub(crate) purpose: Purpose,
    pub(crate) name: String,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Set when it is sealed.
    pub(crate) table: OnceLock<PackTable>,
    written: AtomicU64,
}

impl Pack {
    pub(crate) fn new(number: PackNumber, purpose: Purpose, file: Arc<dyn DiskFile>) -> Pack {
        Pack {
            number,
            purpose,
            name: number.to_string(),
            file,
            table: OnceLock::new(),
            written: AtomicU64::new(0),
        }
    }

    /// How many bytes lie whole in the file, as far as was noted: what is behind may be half written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Notes that so many do.
    pub(crate) fn note_written(&self, bytes: u64) {
        self.written.store(bytes, Ordering::Release);
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

    /// As `read`, past the system's cache if it can be passed; returns where in `buffer`, which may grow, the bytes are.
    pub(crate) fn read_past_cache(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Range<usize>, StoreError> {
        let read = self.file.read_past_cache(offset, bytes, buffer);
        read.map_err(|error| self.unread(offset, error))
    }

    fn unread(&self, offset: u64, error: std::io::Error) -> StoreError {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return self.damaged(offset, "the file ends before its content");
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
