//! Reads the change events of the log, in the order of their Sequences.
//!
//! The events it returns are durable and visible, whole, and each record comes once. Where the log
//! isn't kept any more the answer is [`ChangesError::Gone`], never silence.

use std::sync::Arc;

use frond_store::{Chunk, StoreError};

use crate::change_event::LoggedEvent;
use crate::error::EngineError;
use crate::ids::Sequence;
use crate::log::decode;
use crate::log::follow::{Follower, Next};
use crate::log::format::{LogOffset, damaged};
use crate::shared::Shared;

/// Reads the events of the transactions after a Sequence.
pub struct Changes {
    shared: Arc<Shared>,
    /// Everything up to it was read.
    after: Sequence,
    follower: Option<Follower>,
}

/// The events of one transaction.
#[derive(Clone, Debug)]
pub struct LoggedEvents {
    /// The transaction's place.
    pub sequence: Sequence,
    /// The events it recorded, in order; none for most transactions that no client follows.
    pub events: Vec<LoggedEvent>,
    /// The chunks to which that leads, and others that the transaction brought.
    pub chunks: Vec<Chunk>,
    /// The memory they hold together: all of the transaction's record.
    pub bytes: u64,
}

/// The reason why the log can't be followed.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The next record isn't kept any more.
    #[error("the log is kept from {} on only", .kept_after.0)]
    Gone {
        /// Records behind this one are kept.
        kept_after: Sequence,
    },
    /// It can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Changes {
    pub(crate) fn new(shared: Arc<Shared>, after: Sequence) -> Changes {
        Changes { shared, after, follower: None }
    }

    /// Everything up to here was read.
    pub fn position(&self) -> Sequence {
        self.after
    }

    /// The next transaction's; `None` where there is none yet.
    ///
    /// # Errors
    /// [`ChangesError::Gone`]; [`ChangesError::Store`] if a segment can't be read or is damaged.
    pub fn next_record(&mut self) -> Result<Option<LoggedEvents>, ChangesError> {
        self.check_kept()?;
        let read = self.read();
        if read.is_err() {
            // The file may be another segment's by now.
            self.check_kept()?;
        }
        Ok(read?)
    }

    /// Fails if what comes next isn't kept any more.
    ///
    /// # Errors
    /// [`ChangesError::Gone`].
    pub fn check(&self) -> Result<(), ChangesError> {
        self.check_kept()
    }

    fn check_kept(&self) -> Result<(), ChangesError> {
        let (_, kept_after) = self.shared.kept.floor();
        self.shared.kept.note_followed(self.shared.now_seconds());
        if !self.shared.kept.is_on() || self.after < kept_after {
            return Err(ChangesError::Gone { kept_after });
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<LoggedEvents>, StoreError> {
        let end = self.shared.horizon.end();
        if end.sequence <= self.after {
            return Ok(None);
        }
        let disk = &*self.shared.machine.disk;
        let (first, _) = self.shared.kept.floor();
        // One whose segment is gone, with nothing in it that was not read, begins again.
        self.follower.take_if(|follower| follower.segment() < first);
        let mut follower = match self.follower.take() {
            Some(follower) => follower,
            None => match Follower::open(disk, first, end.segment, self.after)? {
                Some(follower) => follower,
                None => {
                    self.after = end.sequence;
                    return Ok(None);
                }
            },
        };
        loop {
            let (sequence, payload) = match follower.next(disk, (end.segment, end.offset))? {
                Next::Record(sequence, payload) => (sequence, payload),
                Next::Nothing => {
                    self.follower = Some(follower);
                    self.after = end.sequence;
                    return Ok(None);
                }
            };
            if sequence <= self.after {
                continue;
            }
            let events = decode::events(&payload);
            let (events, chunks) =
                events.map_err(|what| damaged(follower.segment(), LogOffset(0), what))?;
            self.after = sequence;
            self.follower = Some(follower);
            let bytes = payload.len() as u64;
            return Ok(Some(LoggedEvents { sequence, events, chunks, bytes }));
        }
    }
}

impl Shared {
    /// See [`Engine::forget_changes`](crate::Engine::forget_changes).
    ///
    /// # Errors
    /// As there.
    pub fn forget_changes(&self) -> Result<(), EngineError> {
        if !self.kept.may_be_on() {
            return Ok(self.trim_retained_states()?);
        }
        let io = |error| StoreError::io("a segment of the log that was kept", error);
        let _no_spares = self.recycled.none().map_err(io)?;
        self.flush()?;
        let end = self.horizon.end();
        self.kept.forget((end.segment, end.sequence)).map_err(io)?;
        Ok(self.retained_states.keep_from(&*self.store, None)?)
    }
}
