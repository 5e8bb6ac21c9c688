//! A cursor over a range: merges the overlay's stream with the tree's.
//!
//! A caller that only looks at entries steps and borrows ([`EntryCursor::step`],
//! [`EntryCursor::entry_ref`]); as an iterator the cursor makes an owned entry of each, which costs
//! more than walking does.

use std::sync::Arc;

use bytes::Bytes;
use frond_tree::{Cursor, Direction, Entry, EntryRef};

use crate::cursor_progress::CursorProgress;
use crate::error::EngineError;
use crate::overlay::interleave::{Interleave, precedes};
use crate::snapshot::current::View;

/// An iterator over a range of a tree in a snapshot or transaction. Owns what it needs, and goes on
/// showing the tree as it was when the cursor was opened.
pub struct EntryCursor {
    overlay: Interleave,
    /// The key that the overlay gives next.
    overlay_key: Option<Bytes>,
    /// Stands at the entry that it gives next, or that was given last; `None` at its end.
    base: Option<Cursor>,
    at: At,
    direction: Direction,
    /// The view that is read, so that it stays as long as it may.
    view: Option<Arc<View>>,
    /// The progress of the cursor, noted for others.
    reach: Option<Arc<CursorProgress>>,
}

/// The position of a cursor.
enum At {
    /// Before the first step.
    Start,
    /// At the base's entry.
    Base,
    /// At an entry of the overlay.
    Overlay(Entry),
    End,
}

impl EntryCursor {
    pub(crate) fn new(
        overlay: Interleave,
        base: Option<Cursor>,
        direction: Direction,
        view: Option<Arc<View>>,
    ) -> EntryCursor {
        let (overlay_key, at) = (None, At::Start);
        EntryCursor { overlay, overlay_key, base, at, direction, view, reach: None }
    }

    /// This cursor, not moved yet, which notes in `reach` how far it has come.
    pub(crate) fn noting(self, reach: Option<Arc<CursorProgress>>) -> EntryCursor {
        EntryCursor { reach, ..self }
    }

    /// Moves to the next entry; false if there is none. Nothing follows an error.
    ///
    /// # Errors
    /// As the store; damaged trees and runs; [`EngineError::SnapshotTooOld`];
    /// [`EngineError::Withdrawn`].
    pub fn step(&mut self) -> Result<bool, EngineError> {
        let mut moved = self.try_step();
        if let Some(Err(error)) = self.view.as_ref().map(|view| view.check()) {
            moved = Err(error);
        }
        if let (Some(reach), Ok(_)) = (&self.reach, &moved) {
            reach.note(
                self.entry_ref().filter(|_| matches!(moved, Ok(true))).map(|entry| entry.key),
            );
        }
        if !matches!(moved, Ok(true)) {
            // A caller that goes on after an error would miss entries.
            self.overlay = Interleave::new(Vec::new(), self.direction);
            self.overlay_key = None;
            self.base = None;
            self.view = None;
            self.at = At::End;
        }
        moved
    }

    /// The entry that `step` moved to. `None` before the first step and after the last.
    pub fn entry_ref(&self) -> Option<EntryRef<'_>> {
        match &self.at {
            At::Start | At::End => None,
            At::Base => self.base.as_ref().and_then(Cursor::entry_ref),
            At::Overlay(entry) => Some(entry.borrowed()),
        }
    }

    /// The entry that `step` moved to, sharing the bytes of where it lies. `None` before the first
    /// step and after the last.
    pub fn entry(&self) -> Option<Entry> {
        match &self.at {
            At::Start | At::End => None,
            At::Base => self.base.as_ref().and_then(Cursor::entry),
            At::Overlay(entry) => Some(entry.clone()),
        }
    }

    fn try_step(&mut self) -> Result<bool, EngineError> {
        match self.at {
            At::Start => {
                self.overlay_key = self.overlay.peek_key()?;
                self.step_base()?;
            }
            At::Base => self.step_base()?,
            At::Overlay(_) | At::End => {}
        }
        loop {
            let base_key = match (&self.overlay_key, &self.base) {
                (None, None) => return Ok(false),
                (None, Some(_)) | (Some(_), None) => None,
                (Some(_), Some(base)) => base.entry_ref().map(|entry| entry.key),
            };
            let base_first = match (&self.overlay_key, base_key) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(key), Some(base_key)) => {
                    if base_key == key {
                        self.step_base()?;
                        continue; // The overlay hides the base's entry.
                    }
                    precedes(self.direction, base_key, key)
                }
            };
            if base_first {
                self.at = At::Base;
                return Ok(true);
            }
            let written = self.overlay.next().transpose()?;
            self.overlay_key = self.overlay.peek_key()?;
            if let Some((key, Some(value))) = written {
                self.at = At::Overlay(Entry { key, value });
                return Ok(true);
            }
        }
    }

    fn step_base(&mut self) -> Result<(), EngineError> {
        if let Some(base) = &mut self.base
            && !base.step()?
        {
            self.base = None;
        }
        Ok(())
    }
}

impl Iterator for EntryCursor {
    type Item = Result<Entry, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.step() {
            Ok(true) => self.entry().map(Ok),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
