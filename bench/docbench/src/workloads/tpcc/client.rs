//! One client: draws transactions and runs each until it isn't in anybody's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::drive::{Client, Operation, Span};
use crate::random::Random;
use crate::target::{Failure, Session};
use crate::workloads::tpcc::Form;
use crate::workloads::tpcc::input::{Input, Sizes};

/// A client that still loses this long after the end gives up, so that the run comes to its end.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause before a second attempt, doubled each time, up to 64 of them.
const PAUSE_MICROS: u64 = 100;

/// The counters of all clients.
pub struct Counts {
    /// Transactions that were begun, the same one each time.
    pub attempts: AtomicU64,
    /// Transactions that lost to others and began again.
    pub conflicts: AtomicU64,
    /// Makes unique keys.
    ids: AtomicU64,
    deadline: Instant,
}

impl Counts {
    /// Begins counts for a run that begins now.
    pub fn new(span: &Span) -> Counts {
        let began = span.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
        Counts {
            attempts: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            ids: AtomicU64::new(began << 22),
            deadline: Instant::now() + span.warm_up + span.measured + PATIENCE,
        }
    }
}

/// A terminal of a warehouse.
pub struct TpccClient {
    session: Box<dyn Session>,
    form: Arc<dyn Form>,
    counts: Arc<Counts>,
    sizes: Sizes,
    warehouse: i64,
}

impl TpccClient {
    /// The client at `position`; clients are spread over the warehouses.
    pub fn new(
        session: Box<dyn Session>,
        form: Arc<dyn Form>,
        counts: Arc<Counts>,
        sizes: Sizes,
        position: u64,
    ) -> TpccClient {
        let warehouse = position as i64 % sizes.warehouses + 1;
        TpccClient { session, form, counts, sizes, warehouse }
    }
}

impl Client for TpccClient {
    fn operate(&mut self, random: &mut Random) -> Result<Operation, Failure> {
        let id = self.counts.ids.fetch_add(1, Ordering::Relaxed) as i64;
        let input = Input::draw(random, &self.sizes, self.warehouse, id);
        let mut pause = PAUSE_MICROS;
        loop {
            self.counts.attempts.fetch_add(1, Ordering::Relaxed);
            match self.form.run(&mut *self.session, &input) {
                Ok(true) => return Ok(input.name()),
                Ok(false) => return Ok("new order, rolled back"),
                Err(Failure::Conflict(_)) => {
                    self.session.rollback()?;
                    self.counts.conflicts.fetch_add(1, Ordering::Relaxed);
                    if Instant::now() > self.counts.deadline {
                        return Ok("given up");
                    }
                    std::thread::sleep(Duration::from_micros(random.below(pause)));
                    pause = (pause * 2).min(PAUSE_MICROS * 64);
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}
