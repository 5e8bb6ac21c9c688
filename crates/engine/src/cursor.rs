//! Reading a range: the overlay's stream laid over the tree's.

use bytes::Bytes;
use frond_tree::{Cursor, Direction, Entry};

use crate::error::EngineError;
use crate::overlay::interleave::{Interleave, precedes};

/// An iterator over a range of a tree in a snapshot or transaction. Owns what it needs, and goes on
/// showing the tree as it was when the cursor was opened.
pub struct EntryCursor {
    overlay: Interleave,
    /// The key that the overlay gives next.
    overlay_key: Option<Bytes>,
    base: Option<Cursor>,
    /// The entry that the base gives next.
    base_entry: Option<Entry>,
    direction: Direction,
    started: bool,
}

impl EntryCursor {
    pub(crate) fn new(
        overlay: Interleave,
        base: Option<Cursor>,
        direction: Direction,
    ) -> EntryCursor {
        let (overlay_key, base_entry) = (None, None);
        EntryCursor { overlay, overlay_key, base, base_entry, direction, started: false }
    }

    fn advance_base(&mut self) -> Result<(), EngineError> {
        self.base_entry = match &mut self.base {
            Some(base) => base.next().transpose()?,
            None => None,
        };
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Entry>, EngineError> {
        if !self.started {
            self.started = true;
            self.overlay_key = self.overlay.peek_key()?;
            self.advance_base()?;
        }
        loop {
            let base_first = match (&self.overlay_key, &self.base_entry) {
                (None, None) => return Ok(None),
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some(key), Some(entry)) => {
                    if entry.key == *key {
                        self.advance_base()?;
                        continue; // The overlay hides the base's entry.
                    }
                    precedes(self.direction, &entry.key, key)
                }
            };
            if base_first {
                let entry = self.base_entry.take();
                self.advance_base()?;
                return Ok(entry);
            }
            let written = self.overlay.next().transpose()?;
            self.overlay_key = self.overlay.peek_key()?;
            if let Some((key, Some(value))) = written {
                return Ok(Some(Entry { key, value }));
            }
        }
    }
}

impl Iterator for EntryCursor {
    type Item = Result<Entry, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.step() {
            Ok(entry) => entry.map(Ok),
            Err(error) => {
                // Nothing may follow an error: a caller that goes on would miss entries.
                self.overlay = Interleave::new(Vec::new(), self.direction);
                self.overlay_key = None;
                self.base = None;
                self.base_entry = None;
                Some(Err(error))
            }
        }
    }
}
