//! The resources of a stage: memory, and files for data that doesn't fit into it.
//!
//! This crate knows no disk: the caller gives files ([`Spill`]), which are written from their
//! beginning to their end, then read, and gone when they are dropped.

use std::fmt;
use std::sync::Arc;

use crate::code::Code;
use crate::cores::Cores;
use crate::error::QueryError;
use crate::examined;
use crate::memory::KeepGoing;
use frond_store::budget::{Exceeded, MemoryBudget, Reservation};

/// The bytes that a stage may keep in memory by default: MongoDB's limit.
pub const MEMORY_BYTES_MAX: usize = 100 << 20;

/// Makes temporary files.
pub trait Spill: Send + Sync {
    /// Makes an empty file.
    ///
    /// # Errors
    /// The error of the disk.
    fn create(&self) -> Result<Box<dyn SpillFile>, QueryError>;
}

/// A temporary file; dropping it removes it.
pub trait SpillFile: Send + Sync {
    /// Appends bytes.
    ///
    /// # Errors
    /// The error of the disk.
    fn append(&mut self, bytes: &[u8]) -> Result<(), QueryError>;

    /// Fills `buffer` with the bytes from `offset` on, all of which were appended before.
    ///
    /// # Errors
    /// The error of the disk.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), QueryError>;
}

/// The resources of a stage: memory, files for what exceeds it, and the interrupt.
#[derive(Clone)]
pub struct Resources {
    /// Bytes that a stage keeps in memory at most.
    pub memory_bytes_max: usize,
    /// The memory that all requests keep together; `None`: it isn't counted.
    pub memory: Option<Arc<MemoryBudget>>,
    /// `None`: what needs more memory is refused.
    pub spill: Option<Arc<dyn Spill>>,
    /// Checks whether the stage must stop; `None`: it need not.
    pub go_on: Option<Arc<KeepGoing>>,
    /// The cores on which parts of its documents may be worked on; `None`: on one.
    pub cores: Option<Arc<Cores>>,
}

impl Default for Resources {
    fn default() -> Resources {
        Resources {
            memory_bytes_max: MEMORY_BYTES_MAX,
            memory: None,
            spill: None,
            go_on: None,
            cores: None,
        }
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resources")
            .field("memory_bytes_max", &self.memory_bytes_max)
            .field("can_spill", &self.spill.is_some())
            .finish()
    }
}

impl Resources {
    /// Checks whether to go on; called wherever a stage works long without reading documents.
    ///
    /// # Errors
    /// The error of the query.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        self.go_on.as_ref().map_or(Ok(()), |go_on| go_on())
    }

    /// Returns the resources of one of `count` threads that work for a stage together: no more
    /// memory than one thread has that does it all.
    pub fn of_part(&self, count: usize) -> Resources {
        // Without files one thread fails where it needs more, counted by what its lists have room
        // for: that is at most twice what is in them.
        let shares = if self.spill.is_some() { count } else { count * 2 };
        Resources { memory_bytes_max: self.memory_bytes_max / shares, ..self.clone() }
    }

    /// Memory for a stage.
    pub fn reservation(&self) -> Reservation {
        self.reservation_of(self.memory_bytes_max)
    }

    /// Memory for a stage that has a limit of its own.
    pub fn reservation_of(&self, bytes_max: usize) -> Reservation {
        Reservation::new(bytes_max, self.memory.clone())
    }

    /// Whether what is ready and only waits for its reader should leave the memory to others.
    pub(crate) fn is_strained(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.is_strained())
    }

    /// Returns where `stage` puts what it can't keep, since it has `exceeded` its memory.
    ///
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed` if there is no disk for it.
    pub(crate) fn spill_of(
        &self,
        stage: &str,
        exceeded: Exceeded,
    ) -> Result<&Arc<dyn Spill>, QueryError> {
        let spill = self.spill.as_ref().ok_or_else(|| {
            let message = format!(
                "{stage} exceeded memory limit of {exceeded}, but did not opt in to external sorting."
            );
            QueryError::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message)
        })?;
        examined::note_disk();
        Ok(spill)
    }
}
