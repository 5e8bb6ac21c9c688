//! Repeats something and says how long it took.

use std::hint::black_box;
use std::time::Instant;

/// The number of runs the median is of; of what takes long, as many as fit into [`RUNS_NANOS`], but
/// a few.
const RUNS: usize = 101;
const RUNS_MIN: usize = 5;
const RUNS_NANOS: f64 = 1e9;
/// A run takes about so long: less than a turn that the system gives, so that where others use the
/// machine most runs are undisturbed.
const RUN_NANOS: f64 = 1e6;

/// Nanoseconds of one call of `work`: the median of several runs.
pub fn nanos<R>(mut work: impl FnMut(usize) -> R) -> f64 {
    let mut count = 1;
    let per_call = loop {
        let nanos = timed(count, &mut work);
        if RUN_NANOS / 10.0 < nanos {
            break nanos / count as f64;
        }
        count *= 4;
    };
    let count = ((RUN_NANOS / per_call) as usize).max(1);
    let fitting = (RUNS_NANOS / per_call / count as f64) as usize;
    let run_count = fitting.clamp(RUNS_MIN, RUNS);
    let mut runs: Vec<f64> =
        (0..run_count).map(|_| timed(count, &mut work) / count as f64).collect();
    runs.sort_by(f64::total_cmp);
    runs[run_count / 2]
}

fn timed<R>(count: usize, work: &mut impl FnMut(usize) -> R) -> f64 {
    let start = Instant::now();
    for turn in 0..count {
        black_box(work(black_box(turn)));
    }
    start.elapsed().as_nanos() as f64
}

/// A time as a table shows it.
pub fn text(nanos: f64) -> String {
    match nanos {
        ..10.0 => format!("{nanos:.1} ns"),
        10.0..10_000.0 => format!("{nanos:.0} ns"),
        10_000.0..10_000_000.0 => format!("{:.0} µs", nanos / 1e3),
        _ => format!("{:.0} ms", nanos / 1e6),
    }
}
