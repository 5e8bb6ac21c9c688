//! Keeps the process within the memory that it may take.
//!
//! The memory that is charged to budgets is not all that a process takes: an allocator keeps pages
//! for each thread, stacks stay as deep as they once were, and free memory lies between used
//! memory. So it is measured, each [`TICK`], what the process has of memory that is no file's:
//!
//! 1. Up to the budget, and something for each connection, nothing happens.
//! 2. Beyond, *pressure* rises with what is too much, up to all at [`FULL_BYTES`]. Caches and
//!    budgets leave as much of theirs in proportion (`Frond::set_memory_pressure`,
//!    `MemoryQueue::withhold`), and fewer clients have a thread.
//! 3. It falls slowly, so that memory that was given back isn't taken again at once by all that
//!    waited.
//! 4. The allocator gives back what was freed when a thread frees more: so that it does so while no
//!    client's thread works, a piece is taken and freed here.
//!
//! Where the system doesn't report a process's memory, budgets alone bound it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use frond_db::PRESSURE_MAX;
use tokio::sync::watch;

use crate::machine_memory;
use crate::shared::Shared;

/// The interval of measurements. Two processors fill some ten megabytes meanwhile.
const TICK: Duration = Duration::from_millis(10);
/// The interval of checks while less than half of the budget is taken.
const TICK_CALM: Duration = Duration::from_millis(50);
/// The memory of an idle connection: its state, and the system's buffers.
const CONNECTION_BYTES: u64 = 32 << 10;
/// Pressure begins so far above the budget: bursts that end by themselves.
const FREE_BYTES: u64 = 4 << 20;
/// And is all there is of it so far above that.
const FULL_BYTES: u64 = 32 << 20;
/// The amount by which pressure falls in a tick.
const FALL: u32 = PRESSURE_MAX / 50;
/// Others are notified in steps of so much: a cache that changes its size again and again forgets
/// what it learnt.
const STEP: u32 = PRESSURE_MAX / 8;
/// A size above what the allocator keeps for a thread.
const PIECE_BYTES: usize = 2 << 20;

/// Begins the measuring, for a process that may take `budget`; it ends when the server stops.
///
/// # Errors
/// The system has no thread for it.
pub fn start(
    shared: &Arc<Shared>,
    budget: u64,
    stop: watch::Receiver<bool>,
) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("frond-memory".to_owned()).spawn(move || {
        let (mut governor, mut yielded) = (Governor { budget, pressure: 0 }, 0);
        while !*stop.borrow() {
            let Some(taken) = machine_memory::own_bytes_now() else { return };
            let connections = shared.connection_counts().0 as u64;
            let pressure = governor.look(taken, connections).next_multiple_of(STEP);
            if pressure != yielded {
                yield_memory(&shared, pressure);
                yielded = pressure;
            }
            let is_calm = taken < budget / 2 && pressure == 0;
            if !is_calm {
                drop(std::hint::black_box(Vec::<u8>::with_capacity(PIECE_BYTES)));
            }
            // The thread that stops the server wakes it.
            std::thread::park_timeout(if is_calm { TICK_CALM } else { TICK });
        }
        yield_memory(&shared, 0);
    })
}

/// Has all that can give way do so.
fn yield_memory(shared: &Shared, pressure: u32) {
    shared.frond.set_memory_pressure(pressure);
    let part = |bytes: usize| {
        let part = bytes as u64 * u64::from(pressure) / u64::from(PRESSURE_MAX);
        usize::try_from(part).unwrap_or(bytes)
    };
    for budget in [shared.messages.shares(), &shared.answers, &shared.kept_documents] {
        budget.withhold(part(budget.bytes()));
    }
    shared.workers.withhold(part(shared.workers.count() / 4 * 3));
    shared.note_memory_pressure(pressure);
}

/// The budget, and for how long it was exceeded.
struct Governor {
    budget: u64,
    /// The pressure in thousandths.
    pressure: u32,
}

impl Governor {
    /// The pressure where the process takes so much, and has so many connections.
    fn look(&mut self, taken: u64, connections: u64) -> u32 {
        let free = self.budget.saturating_add(connections * CONNECTION_BYTES + FREE_BYTES);
        let above = taken.saturating_sub(free).min(FULL_BYTES) * u64::from(PRESSURE_MAX);
        // At most `PRESSURE_MAX`.
        let measured = (above / FULL_BYTES) as u32;
        self.pressure = measured.max(self.pressure.saturating_sub(FALL));
        self.pressure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_rises_with_what_is_too_much_and_falls_slowly() {
        let mut governor = Governor { budget: 100 << 20, pressure: 0 };
        assert_eq!(governor.look(104 << 20, 0), 0);
        assert_eq!(governor.look(120 << 20, 0), PRESSURE_MAX / 2);
        assert_eq!(governor.look(1 << 40, 0), PRESSURE_MAX);
        assert_eq!(governor.look(0, 0), PRESSURE_MAX - FALL);
        let ticks = (1..).take_while(|_| 0 < governor.look(0, 0)).count();
        assert!((40..60).contains(&ticks), "{ticks}");
        assert_eq!(governor.look(120 << 20, 512), 0, "connections take some, too");
    }
}
