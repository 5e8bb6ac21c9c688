//! Files for what clients keep in memory that stall inside a large message or answer, while other
//! clients wait for that memory.
//!
//! 1. A message that came in part goes to a file, and its rest after it, as it comes. It takes
//!    memory again when all of it is here.
//! 2. An answer that was taken in part goes to a file, and is sent from there.
//! 3. All files together take no more than [`STALLED_BYTES_MAX`], since a client needs no login to
//!    stall. Where there is no room, what the client has stays in memory.
//!
//! The files are temporary ones of the data directory, and count there, too.

use std::io;

use frond_db::Frond;
use frond_db::memory_queue::{MemoryQueue, MemoryShare};
use frond_query::pipeline::SpillFile;

use crate::limits::STALLED_BYTES_MAX;

/// The files of all clients.
///
/// *Thread safety*: everything may be called from any number of threads at once.
pub struct StalledFiles {
    frond: Frond,
    room: MemoryQueue,
}

/// The bytes of one client, whose file is removed when this is dropped.
pub struct StalledBytes {
    file: Box<dyn SpillFile>,
    bytes: usize,
    share: MemoryShare,
}

impl StalledFiles {
    /// Files in the data directory of `frond`, none yet.
    pub fn new(frond: Frond) -> StalledFiles {
        StalledFiles { frond, room: MemoryQueue::new(STALLED_BYTES_MAX) }
    }

    /// Writes `pieces` to a file, one behind the other. `None` if there is no room, or the disk has
    /// failed.
    pub fn put(&self, pieces: &[&[u8]]) -> Option<StalledBytes> {
        let share = self.room.try_take(pieces.iter().map(|piece| piece.len()).sum())?;
        let file = self.frond.create_temporary_file().ok()?;
        let mut stalled = StalledBytes { file, bytes: 0, share };
        pieces.iter().all(|piece| stalled.append(piece)).then_some(stalled)
    }

    /// Returns how many bytes all files have.
    pub fn bytes(&self) -> usize {
        self.room.held()
    }

    /// Takes all that is left, so that no file has room.
    #[cfg(test)]
    pub fn take_room(&self) -> MemoryShare {
        self.room.try_take(STALLED_BYTES_MAX - self.bytes()).expect("it is free")
    }
}

impl StalledBytes {
    /// Returns how many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends bytes; false, and nothing was appended, if there is no room, or the disk has failed.
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        let after = self.bytes + bytes.len();
        let has_room = after <= self.share.bytes() || self.share.try_grow(after);
        if !has_room || self.file.append(bytes).is_err() {
            return false;
        }
        self.bytes = after;
        true
    }

    /// Reads bytes from `position` on: `bytes_max` of them, or fewer at the end.
    ///
    /// # Errors
    /// The error of the disk.
    pub fn read(&self, position: usize, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; bytes_max.min(self.bytes - position)];
        self.file.read_at(position as u64, &mut bytes).map_err(io::Error::other)?;
        Ok(bytes)
    }
}
