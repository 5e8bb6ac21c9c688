//! Publishes a state that needs no log, for directories that are begun from a bucket's packs alone.
//!
//! 1. A published state is a moment by itself, its horizon, if no base reaches beyond that: a
//!    version commit folds some trees further than the last flush of all.
//! 2. Such a state is published once more, as one whose log begins anew, under a root of its own.
//!    Swapping that sends all packs to the store's tier ([`SELF_CONTAINED_SUFFIX`]).
//! 3. Its first segment is far beyond those of now, so that no place in the log of now is one in
//!    the log that is begun there: a change stream that resumes there gets 286.
//!
//! That packs can't be sent fails no flush: they stay on the disk, and go with a later one. Where
//! another directory leads, nothing is written any more.

use frond_store::local::SELF_CONTAINED_SUFFIX;
use frond_store::{ChunkHash, StoreError};

use crate::compaction::publish::ROOT_NAME;
use crate::error::EngineError;
use crate::log::format::SegmentNumber;
use crate::shared::Shared;
use crate::state::format::EngineState;

/// A number above that of segments that a log begins while the same state is the newest that is
/// whole.
const SEGMENTS_APART: u64 = 1 << 20;
/// The name of this work when it fails.
const WORK: &str = "store";

impl Shared {
    /// Has a published state that is whole without the log sent to the store's tier. The caller is
    /// the only one, and holds a session of the store that has the state's chunks.
    pub(crate) fn publish_self_contained(&self, published: &EngineState) {
        if !self.store.maintenance().is_tiered() {
            return;
        }
        match self.swap_self_contained(published) {
            Ok(()) => self.background.errors.end(WORK),
            Err(error) => {
                self.note_failure(WORK, &EngineError::Store(error));
                if let Err(error @ StoreError::Poisoned { .. }) = self.store.sync() {
                    self.note_failure(WORK, &EngineError::Store(error));
                }
            }
        }
    }

    /// Notes that packs could not be sent, and reports the first of several failures in a row: each
    /// names another object. Where another directory leads, the engine is closed.
    pub(crate) fn note_failed_send(&self, error: &StoreError, is_first: bool) {
        let now = self.machine.clock.now_micros();
        self.background.errors.count_failure(WORK, error.to_string(), now);
        if is_first {
            self.background.errors.report_line(&format!(
                "packs can't be sent to the store, which is tried again: {error}; new ones stay on \
                 the disk until there are as many as may be, and then nothing more is written"
            ));
        }
        if let Err(error @ StoreError::Poisoned { .. }) = self.store.sync() {
            self.note_failure(WORK, &EngineError::Store(error));
        }
    }

    /// Flushes all, and has that sent to the store's tier, or fails with the reason why it can't
    /// be: what is committed from now on may count on it.
    ///
    /// # Errors
    /// As a flush; [`EngineError::Store`] if it can't be sent.
    pub fn send_all(&self) -> Result<(), EngineError> {
        self.flush()?;
        let _session = self.store.session();
        let _only = self.published.flusher();
        let published = {
            let publisher = self.publisher();
            assert!(publisher.beyond.is_empty(), "a flush has brought all up to its horizon");
            publisher.published
        };
        Ok(self.swap_self_contained(&published)?)
    }

    fn swap_self_contained(&self, published: &EngineState) -> Result<(), StoreError> {
        let segment = SegmentNumber(published.segment.0 + SEGMENTS_APART);
        let chunk = EngineState { segment, has_segment: false, ..*published }.encode();
        self.store.put_many(std::slice::from_ref(&chunk))?;
        if let Some(order) = &self.order {
            order.note_self_contained(chunk.hash(), published.horizon);
        }
        let name = format!("{ROOT_NAME}{SELF_CONTAINED_SUFFIX}");
        let before: Option<ChunkHash> = self.store.root(&name)?;
        self.store.swap_root(&name, before, Some(chunk.hash()))
    }
}
