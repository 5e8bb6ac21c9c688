//! The shared state of the background threads: their errors, the schedule of compaction,
//! backpressure, and how they yield to clients. `threads` starts them; `compaction` and `gc` do the
//! work.

pub(crate) mod backpressure;
pub(crate) mod compaction_scheduler;
pub(crate) mod errors;
pub(crate) mod throttle;
pub(crate) mod throttled_store;
pub(crate) mod workers;

use std::sync::Arc;

use self::backpressure::Backpressure;
use self::compaction_scheduler::CompactionScheduler;
use self::errors::BackgroundErrors;
use self::throttle::Throttle;
use self::workers::Workers;

/// The state that background threads share with each other, and with the writers that they delay.
#[derive(Default)]
pub(crate) struct Background {
    /// The schedule: the trees that have runs, and the workers that fold them; see `compaction`.
    pub scheduler: CompactionScheduler,
    /// The speed that writers may have.
    pub backpressure: Backpressure,
    /// The throttle, which makes background threads let others go first.
    pub throttle: Arc<Throttle>,
    /// Background threads at work, which hold the State with which they began.
    pub workers: Workers,
    /// The errors.
    pub errors: BackgroundErrors,
}
