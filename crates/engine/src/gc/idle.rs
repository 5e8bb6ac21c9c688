//! Runs a thorough collection by itself, in slices, while the engine is idle.
//!
//! 1. Each second (a fifteenth of [`EngineOptions::quiet_millis`]) it is looked whether anything
//!    was committed. A second in which something was counts five that are quiet, so that a commit
//!    now and then doesn't put it off for ever. After fifteen quiet ones the engine is quiet.
//! 2. If enough was written since all was packed the last time, memtables are flushed, the runs
//!    folded step by step, and a collection packs history, at the rate of other background
//!    collections; the log's spares go, too. All of that lets other threads go first.
//! 3. When commits come again, it ends behind its step. Work that was done stays done, and the rest
//!    is done in the next quiet time.
//!
//! It removes the same as any collection: nothing that a snapshot, the reflog or a remote still
//! needs. While it isn't quiet, collections that growth makes due bound what waits: see
//! [`super::reclaim`].
//!
//! [`EngineOptions::quiet_millis`]: crate::EngineOptions::quiet_millis

use std::time::{Duration, Instant};

use frond_store::io::steady_now;

use super::reclaim::{GcThrottle, ReclaimOptions};
use crate::error::EngineError;
use crate::ids::Sequence;
use crate::shared::Shared;

/// The number of looks in a row, finding nothing, after which it is quiet.
const QUIET_LOOKS: u32 = 15;
/// A look that finds something makes up for so many that don't.
const BUSY_LOOKS: u32 = 5;
/// Packed chunks are packed once more when so many bytes, and such a part of all, were written
/// since.
const WRITTEN_BYTES_MIN: u64 = 1 << 20;
const WRITTEN_SHARE: u64 = 16;
/// The interval of checks without a result.
const NEVER: Duration = Duration::from_secs(3600);

/// Tracks how idle an engine is.
pub(crate) struct IdleCollection {
    check_interval: Duration,
    looked: Instant,
    visible: Sequence,
    /// The number of looks it takes until it is quiet, if none finds anything.
    left: u32,
    /// The bytes written when all was packed, or that failed. The bytes from before the opening
    /// aren't known.
    written: Option<u64>,
}

impl IdleCollection {
    /// It isn't, when the engine is opened.
    pub fn new(shared: &Shared) -> IdleCollection {
        let millis = shared.options.quiet_millis.map(|millis| millis / u64::from(QUIET_LOOKS));
        IdleCollection {
            check_interval: millis.map_or(NEVER, |millis| Duration::from_millis(millis.max(1))),
            looked: steady_now(),
            visible: shared.current().1,
            left: QUIET_LOOKS,
            written: None,
        }
    }

    /// The interval of checks.
    pub fn check_interval(&self) -> Duration {
        self.check_interval
    }

    /// Looks, if it is time to.
    fn look(&mut self, shared: &Shared) {
        if self.looked.elapsed() < self.check_interval {
            return;
        }
        self.looked = steady_now();
        let visible = shared.current().1;
        self.left = match visible == std::mem::replace(&mut self.visible, visible) {
            true => self.left.saturating_sub(1),
            false => (self.left + BUSY_LOOKS).min(QUIET_LOOKS),
        };
    }

    /// Whether commits came again: more than one now and then.
    fn is_over(&mut self, shared: &Shared) -> bool {
        self.look(shared);
        BUSY_LOOKS < self.left
    }

    /// Whether it is quiet, and there may be something to pack.
    fn is_due(&mut self, shared: &Shared) -> bool {
        self.look(shared);
        let counters = shared.store.counters();
        let most = WRITTEN_BYTES_MIN.max(counters.bytes_stored / WRITTEN_SHARE);
        let unpacked = match self.written {
            Some(written) => counters.bytes_written.saturating_sub(written),
            None => counters.bytes_stored,
        };
        self.left == 0 && shared.options.quiet_millis.is_some() && most <= unpacked
    }

    /// Packs all if it is quiet and that is due. Returns whether all is packed now; what ended it
    /// is tried again after more was written.
    ///
    /// # Errors
    /// As [`Shared::repack_while`].
    pub fn pack_if_due(&mut self, shared: &Shared) -> Result<bool, EngineError> {
        if !self.is_due(shared) {
            return Ok(false);
        }
        let packed = shared.repack_while(&mut || !self.is_over(shared));
        if !matches!(packed, Ok(false)) {
            self.written = Some(shared.store.counters().bytes_written);
        }
        packed
    }
}

impl Shared {
    /// Packs all, at the rate of background collections, until `keep_going` says no: asked between
    /// two steps. Returns whether it came to its end.
    ///
    /// # Errors
    /// As [`Engine::repack_while`](crate::Engine::repack_while).
    pub fn repack_while(&self, keep_going: &mut dyn FnMut() -> bool) -> Result<bool, EngineError> {
        let _no_spares = self.no_spares()?;
        self.flush()?;
        self.fold_in_steps_while(&mut 0, keep_going)?;
        let options = ReclaimOptions {
            thorough: true,
            bytes_a_second: self.options.reclaim_bytes_a_second,
            purge: false,
        };
        let mut throttle = GcThrottle::new(self, options.bytes_a_second);
        let mut throttle = |bytes| throttle.throttle_while(bytes, keep_going);
        Ok(!self.collect_throttled(options, &mut throttle)?.stopped)
    }
}
