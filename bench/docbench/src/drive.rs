//! Loads: how operations arrive, and what is measured of them.
//!
//! - **Closed loop** ([`closed_loop`]): each client sends its next operation when the last was
//!   answered. The original publications do that; its latencies leave out the wait of clients that
//!   would have come while the database stood still (coordinated omission).
//! - **Open loop** ([`open_loop`]): operations arrive at a rate, by a Poisson process drawn before
//!   the run from the seed, whether or not the database keeps up. Up to 64 threads take the next
//!   arrival when they are free, each by another of its connections every time; its latency counts
//!   from the moment when it should have begun. (With a thread for each of 500 connections most of
//!   what was measured was how two processors wake a thousand threads.)
//!
//! Both have a warm-up that is not in the histograms and is in the throughput series, so that a
//! reader can see whether the state was steady. Any failed operation ends the run, except what the
//! client itself handles (a conflict that it retries).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::random::Random;
use crate::target::Failure;

/// Latencies are recorded in microseconds with three digits, up to ten minutes.
const LATENCY_MICROS_MAX: u64 = 600_000_000;
/// Histograms that clients share.
const PARTS_MAX: usize = 8;
/// Threads of an open loop.
const OPEN_THREADS_MAX: usize = 64;
/// The parts of the throughput series.
pub const SERIES_STEP: Duration = Duration::from_millis(200);

/// Operations that ended in this process.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Operations that ended in this process, for a display of the rate while a load runs.
pub fn ended() -> u64 {
    ENDED.load(Ordering::Relaxed)
}

/// The operation of a client, under whose name its latency is filed, such as `read`.
pub type Operation = &'static str;

/// One client with its connection.
pub trait Client: Send {
    /// Does the next operation, the answer checked.
    fn operate(&mut self, random: &mut Random) -> Result<Operation, Failure>;
}

/// The times of warm-up and measurement, and the seed.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The time that isn't in the histograms.
    pub warm_up: Duration,
    /// The time that is in the histograms.
    pub measured: Duration,
    /// The seed of the operations and arrivals.
    pub seed: u64,
}

/// The measurements of all clients.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Latencies in microseconds, by operation.
    pub latencies: BTreeMap<Operation, Histogram<u64>>,
    /// Operations that ended in each [`SERIES_STEP`], the warm-up's first.
    pub series: Vec<u64>,
    /// Operations that are in the histograms.
    pub operations: u64,
    /// The time in which they ended.
    pub seconds: f64,
}

impl Measured {
    /// Operations a second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }

    /// All operations' latencies together.
    pub fn all_latencies(&self) -> Histogram<u64> {
        let mut all = new_histogram();
        for histogram in self.latencies.values() {
            all.add(histogram).expect("all histograms have the same bounds");
        }
        all
    }

    /// A quantile of all operations' latencies, in milliseconds.
    pub fn millis_at(&self, quantile: f64) -> f64 {
        self.all_latencies().value_at_quantile(quantile) as f64 / 1e3
    }
}

/// An empty histogram of latencies.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, 3).expect("the bounds are right")
}

/// The measurements of some clients.
struct Part {
    latencies: BTreeMap<Operation, Histogram<u64>>,
    series: Vec<u64>,
    last: Duration,
}

impl Part {
    fn new() -> Part {
        Part { latencies: BTreeMap::new(), series: Vec::new(), last: Duration::ZERO }
    }

    /// An operation that began or should have begun at `begin` and ended at `end`, both since the
    /// start.
    fn add(&mut self, span: &Span, operation: Operation, begin: Duration, end: Duration) {
        ENDED.fetch_add(1, Ordering::Relaxed);
        let step = (end.as_nanos() / SERIES_STEP.as_nanos()) as usize;
        if self.series.len() <= step {
            self.series.resize(step + 1, 0);
        }
        self.series[step] += 1;
        if begin >= span.warm_up {
            let micros = (end.saturating_sub(begin)).as_micros() as u64;
            let histogram = self.latencies.entry(operation).or_insert_with(new_histogram);
            histogram.saturating_record(micros.max(1));
            self.last = self.last.max(end);
        }
    }
}

fn together(span: &Span, parts: Vec<Part>) -> Measured {
    let mut whole = Measured {
        latencies: BTreeMap::new(),
        series: Vec::new(),
        operations: 0,
        seconds: span.measured.as_secs_f64(),
    };
    for part in parts {
        for (operation, histogram) in part.latencies {
            whole.operations += histogram.len();
            let all = whole.latencies.entry(operation).or_insert_with(new_histogram);
            all.add(&histogram).expect("all histograms have the same bounds");
        }
        if whole.series.len() < part.series.len() {
            whole.series.resize(part.series.len(), 0);
        }
        for (all, one) in whole.series.iter_mut().zip(part.series) {
            *all += one;
        }
        // A client still busy at the end makes the time longer: its operation is counted too.
        let seconds = part.last.saturating_sub(span.warm_up).as_secs_f64();
        whole.seconds = whole.seconds.max(seconds);
    }
    whole
}

/// Runs `clients` one a thread, each as fast as it is answered.
pub fn closed_loop(clients: &mut [Box<dyn Client + '_>], span: Span) -> Result<Measured, Failure> {
    let stop = AtomicBool::new(false);
    in_threads(clients, 1, &span, |clients, random, start, part| {
        let end = span.warm_up + span.measured;
        while !stop.load(Ordering::Relaxed) {
            let begin = start.elapsed();
            if begin >= end {
                break;
            }
            let operation = clients[0].operate(random).inspect_err(|_| {
                stop.store(true, Ordering::Relaxed);
            })?;
            let answered = start.elapsed();
            locked(part).add(&span, operation, begin, answered);
        }
        Ok(())
    })
}

/// Runs operations that arrive at `rate` a second over the connections of `clients`.
pub fn open_loop(
    clients: &mut [Box<dyn Client + '_>],
    rate: f64,
    span: Span,
) -> Result<Measured, Failure> {
    let arrivals = arrivals(rate, &span);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let share = clients.len().div_ceil(OPEN_THREADS_MAX);
    in_threads(clients, share, &span, |clients, random, start, part| {
        let mut turn = 0;
        while !stop.load(Ordering::Relaxed) {
            let Some(intended) = arrivals.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            if let Some(early) = intended.checked_sub(start.elapsed()) {
                std::thread::sleep(early);
            }
            turn = (turn + 1) % clients.len();
            let operation = clients[turn].operate(random).inspect_err(|_| {
                stop.store(true, Ordering::Relaxed);
            })?;
            let answered = start.elapsed();
            locked(part).add(&span, operation, *intended, answered);
        }
        Ok(())
    })
}

fn locked(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    // A client that panicked has ended the run; what the others did is of no use then.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns when operations should begin, since the start.
fn arrivals(rate: f64, span: &Span) -> Vec<Duration> {
    let end = (span.warm_up + span.measured).as_secs_f64();
    let mut random = Random::of(span.seed, &[u64::MAX]);
    let mut arrivals = Vec::with_capacity((end * rate * 1.1) as usize);
    let mut time = random.arrival(rate);
    while time < end {
        arrivals.push(Duration::from_secs_f64(time));
        time += random.arrival(rate);
    }
    arrivals
}

/// Runs `work` in threads, each with so many of the clients.
fn in_threads<'c>(
    clients: &mut [Box<dyn Client + 'c>],
    share: usize,
    span: &Span,
    work: impl Fn(
        &mut [Box<dyn Client + 'c>],
        &mut Random,
        Instant,
        &Mutex<Part>,
    ) -> Result<(), Failure>
    + Sync,
) -> Result<Measured, Failure> {
    let shares = clients.chunks_mut(share.max(1));
    let (barrier, started) = (Barrier::new(shares.len()), OnceLock::new());
    // Shared by some clients each: hundreds of histograms would touch so much new memory that it
    // shows.
    let parts: Vec<_> = (0..PARTS_MAX).map(|_| Mutex::new(Part::new())).collect();
    let done: Result<(), Failure> = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(shares.len());
        for (position, clients) in shares.enumerate() {
            let (barrier, started, work) = (&barrier, &started, &work);
            let part = &parts[position % PARTS_MAX];
            threads.push(scope.spawn(move || {
                let mut random = Random::of(span.seed, &[position as u64]);
                barrier.wait();
                let start = *started.get_or_init(Instant::now);
                work(clients, &mut random, start, part)
            }));
        }
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::Other("a client panicked".into())))
        });
        // All are awaited before the first failure is reported.
        ended.collect::<Vec<_>>().into_iter().collect()
    });
    done?;
    let parts =
        parts.into_iter().map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(together(span, parts.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers in no time, except that everything waits while the `stall` lasts.
    struct Stalling {
        start: Instant,
        stall: (Duration, Duration),
    }

    impl Client for Stalling {
        fn operate(&mut self, _: &mut Random) -> Result<Operation, Failure> {
            let now = self.start.elapsed();
            if self.stall.0 <= now && now < self.stall.1 {
                std::thread::sleep(self.stall.1 - now);
            }
            Ok("nothing")
        }
    }

    fn span() -> Span {
        Span { warm_up: Duration::from_millis(100), measured: Duration::from_millis(900), seed: 1 }
    }

    fn stalling(count: usize) -> Vec<Box<dyn Client>> {
        let start = Instant::now();
        let stall = (Duration::from_millis(500), Duration::from_millis(600));
        (0..count).map(|_| Box::new(Stalling { start, stall }) as Box<dyn Client>).collect()
    }

    #[test]
    fn a_stall_shows_in_the_open_loop() {
        let measured = open_loop(&mut stalling(4), 1_000.0, span()).expect("nothing fails");
        assert!((800..1_000).contains(&measured.operations), "{}", measured.operations);
        // A tenth of all operations should have begun in the stall.
        assert!(measured.millis_at(0.999) > 80.0, "{}", measured.millis_at(0.999));
        assert!(measured.millis_at(0.95) > 20.0, "{}", measured.millis_at(0.95));
    }

    #[test]
    fn a_closed_loop_hides_a_stall() {
        let measured = closed_loop(&mut stalling(1), span()).expect("nothing fails");
        assert!(measured.millis_at(0.99) < 20.0, "{}", measured.millis_at(0.99));
    }

    #[test]
    fn a_failure_ends_the_run() {
        struct Failing;
        impl Client for Failing {
            fn operate(&mut self, _: &mut Random) -> Result<Operation, Failure> {
                Err(Failure::Wrong("42".into()))
            }
        }
        let mut clients: Vec<Box<dyn Client>> = vec![Box::new(Failing)];
        assert!(matches!(closed_loop(&mut clients, span()), Err(Failure::Wrong(_))));
    }

    #[test]
    fn arrivals_follow_from_the_seed() {
        assert_eq!(arrivals(100.0, &span()), arrivals(100.0, &span()));
        assert!((70..130).contains(&arrivals(100.0, &span()).len()));
    }
}
