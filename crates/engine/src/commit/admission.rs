//! Admits transactions that make the data grow, or refuses them while the disk is too full
//! ([`crate::disk_reserve`]).

use std::io;
use std::sync::PoisonError;

use frond_store::{Headroom, StoreError};

use crate::commit::stall::Delay;
use crate::disk_reserve::{DiskStatus, WAITING_SHARE};
use crate::error::EngineError;
use crate::shared::Shared;
use crate::slow_commits::Stopwatch;

impl Shared {
    /// Lets a commit of so many bytes begin: as far as the disk goes, and once there is memory, if
    /// `keep_going` says that it may still wait for that.
    ///
    /// # Errors
    /// The disk is too full for it, or as [`stall`](Shared::stall).
    pub fn admit(
        &self,
        bytes: u64,
        gives_back: bool,
        watch: &mut Stopwatch,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Delay, EngineError> {
        if !gives_back {
            self.admit_growth(bytes)?;
            return self.stall(bytes, watch, keep_going);
        }
        let _essential = Headroom::Essential.enter();
        self.admit_giving_back(bytes)?;
        match self.stall(bytes, watch, keep_going) {
            // Writes that wait in memory can't be flushed before space has been given back.
            Err(error) if error.is_full() => Ok(Delay::default()),
            admitted => admitted,
        }
    }

    /// Lets growth by about so many bytes begin. Entries that wait in memtables will be written
    /// once more before the log gives its space back, so where that comes near the reserve they are
    /// written first.
    ///
    /// # Errors
    /// The disk is as full as it may be.
    fn admit_growth(&self, bytes: u64) -> Result<(), EngineError> {
        let Some(room) = self.space.status_for_growth(bytes) else { return Ok(()) };
        if room.has_beside_reserve(self.waiting_bytes()) {
            return Ok(());
        }
        if self.give_up_kept(self.waiting_bytes())? {
            return Ok(());
        }
        if self.space.disk_status().is_some_and(|room| !room.is_spent()) {
            self.flush_waiting(room.reserve / WAITING_SHARE)?;
        }
        match self.space.disk_status() {
            Some(room) if room.is_short() => Err(refusal(room).into()),
            _ => Ok(()),
        }
    }

    /// Lets a record of about so many bytes into the log that gives space back, unless it took what
    /// is left free for flushing and publishing it.
    ///
    /// # Errors
    /// The disk is too full even for that.
    fn admit_giving_back(&self, bytes: u64) -> Result<(), EngineError> {
        self.space.release_reserve();
        let is_full = |room: &DiskStatus| room.is_full_for(bytes);
        if !self.space.status_for_growth(bytes).is_some_and(|room| is_full(&room)) {
            return Ok(());
        }
        self.give_up_kept(bytes)?;
        self.flush_waiting(0)?;
        match self.space.disk_status().filter(is_full) {
            Some(room) => Err(refusal(room).into()),
            None => Ok(()),
        }
    }

    /// Gives up the log that is kept for change streams before refusing anything; returns
    /// whether so much then fits beside the reserve.
    fn give_up_kept(&self, bytes: u64) -> Result<bool, EngineError> {
        if self.kept.bytes() == 0 {
            return Ok(false);
        }
        let _no_spares = self.no_spares()?;
        self.trim_log_to(0)?;
        Ok(self.space.disk_status().is_some_and(|room| room.has_beside_reserve(bytes)))
    }

    /// Bytes of memtables that aren't flushed.
    fn waiting_bytes(&self) -> u64 {
        let (view, _) = self.current.view();
        view.state.memtables().map(|memtable| memtable.bytes()).sum()
    }

    fn flush_waiting(&self, waiting_max: u64) -> Result<(), EngineError> {
        let _one = self.space.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.waiting_bytes() <= waiting_max {
            return Ok(()); // Another thread has just flushed them.
        }
        let _no_spares = self.no_spares()?;
        match self.flush() {
            Err(error) if !error.is_full() => Err(error),
            _ => Ok(()),
        }
    }
}

fn refusal(room: DiskStatus) -> StoreError {
    let message = format!(
        "{} MB are free on the disk, and {} MB are reserved so that deletes and garbage collection \
         still work: delete or drop something, then run frond gc, or make room",
        room.free.saturating_add(room.held) >> 20,
        room.reserve >> 20
    );
    StoreError::io("the data directory", io::Error::new(io::ErrorKind::StorageFull, message))
}
