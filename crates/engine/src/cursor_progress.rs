//! The progress of a cursor through its range.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use frond_tree::{Bounds, Direction};

/// A cursor's progress, shared by the cursor and the read set.
pub(crate) struct CursorProgress {
    bounds: Bounds,
    direction: Direction,
    progress: Mutex<Progress>,
}

/// The part that was read.
#[derive(Default)]
struct Progress {
    /// The last key, if there was one.
    key: Option<Vec<u8>>,
    /// Whether there is nothing behind it.
    ended: bool,
}

impl CursorProgress {
    /// Begins with nothing read.
    pub fn new(bounds: Bounds, direction: Direction) -> CursorProgress {
        CursorProgress { bounds, direction, progress: Mutex::default() }
    }

    /// The cursor stands at `key`, or at its end.
    pub fn note(&self, key: Option<&[u8]>) {
        let mut progress = self.progress();
        match key {
            Some(key) => {
                let last = progress.key.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
            None => progress.ended = true,
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("no panic while the lock is held")
    }

    /// Returns the part of its bounds that was read; `None`: nothing.
    pub fn read(self: &Arc<CursorProgress>) -> Option<Bounds> {
        let progress = self.progress();
        // A cursor that is still there may go on.
        if progress.ended || Arc::strong_count(self) > 1 {
            return Some(self.bounds.clone());
        }
        let key = progress.key.as_ref()?;
        let mut bounds = self.bounds.clone();
        match self.direction {
            Direction::Ascending => {
                // The least key behind it.
                let end: Vec<u8> = key.iter().copied().chain([0]).collect();
                bounds.end = Some(Bytes::from(end));
            }
            Direction::Descending => bounds.start = Some(Bytes::copy_from_slice(key)),
        }
        Some(bounds)
    }
}
