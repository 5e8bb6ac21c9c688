//! The threads on which scripts run, apart from their requests.
//!
//! QuickJS asks whether to go on each ten thousand steps; a step of its library may take long, and
//! a script can repeat it. So a request waits for a call, asks itself whether to go on, and may
//! leave the call behind:
//!
//! 1. [`run`] takes a thread that is idle, or a new one while there are fewer than
//!    [`thread_count_max`]; else it waits for one.
//! 2. While the call runs the request asks whether to go on, every [`CHECK_EVERY`]. If it is to
//!    stop, the script is interrupted, and gets [`STOP_COUNT`] times as long to stop: most do at
//!    once.
//! 3. Then the request leaves. The thread ends with the call, at the engine's next question at the
//!    latest, and so does what the call was given: the engine, and the memory set aside for it.
//!
//! *Thread safety*: any thread may call [`run`]; no lock is held while a job runs or is asked for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The interval at which a request asks whether to go on while a script runs.
const CHECK_EVERY: Duration = Duration::from_millis(5);
/// It waits so many times longer for a script that was interrupted.
const STOP_COUNT: usize = 10;
/// Idle threads that are kept.
const IDLE_COUNT_MAX: usize = 16;
/// Scripts that run at once, on a machine of one core.
const THREADS_MIN: usize = 2;
/// The engine's stack, and what calls it.
const STACK_BYTES: usize = 1 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// The reason why a job has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobFailure {
    /// The request is to stop, and has left.
    Left,
    /// There is no thread for it, or it panicked.
    Failed,
}

/// The threads of this process.
struct Threads {
    state: Mutex<State>,
    freed: Condvar,
}

struct State {
    idle: Vec<Sender<Job>>,
    /// All that there are.
    count: usize,
}

static THREADS: Threads =
    Threads { state: Mutex::new(State { idle: Vec::new(), count: 0 }), freed: Condvar::new() };

/// Runs a job on another thread and waits for it, as long as `go_on` says so; then `stop` is set,
/// by which the job is to end.
///
/// # Errors
/// [`JobFailure`].
pub fn run<T: Send + 'static>(
    stop: &AtomicBool,
    go_on: impl Fn() -> bool,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JobFailure> {
    let thread = THREADS.take(&go_on)?;
    let (reply, replied) = mpsc::sync_channel(1);
    stop.store(false, Ordering::Relaxed);
    let job = move || {
        // It fails where the request has left.
        let _ = reply.send(job());
    };
    thread.send(Box::new(job)).map_err(|_| JobFailure::Failed)?;
    let mut stop_requests = 0;
    while stop_requests <= STOP_COUNT {
        match replied.recv_timeout(CHECK_EVERY) {
            Ok(result) => {
                THREADS.give_back(thread);
                return Ok(result);
            }
            Err(RecvTimeoutError::Disconnected) => return Err(JobFailure::Failed),
            Err(RecvTimeoutError::Timeout) if 0 < stop_requests || !go_on() => {
                stop.store(true, Ordering::Relaxed);
                stop_requests += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Err(JobFailure::Left)
}

/// Returns how many scripts run at once, those that were left behind too: one for each core, since
/// none waits for anything, and those that were left behind are to leave cores to others.
pub fn thread_count_max() -> usize {
    thread::available_parallelism().map_or(1, usize::from).max(THREADS_MIN)
}

/// Returns how many threads there are, idle ones too.
#[cfg(test)]
pub fn thread_count() -> usize {
    THREADS.state().count
}

impl Threads {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread that does nothing.
    fn take(&self, go_on: &impl Fn() -> bool) -> Result<Sender<Job>, JobFailure> {
        loop {
            {
                let mut state = self.state();
                if let Some(idle) = state.idle.pop() {
                    return Ok(idle);
                }
                if state.count < thread_count_max() {
                    state.count += 1;
                    drop(state);
                    return begin();
                }
                let waited = self.freed.wait_timeout(state, CHECK_EVERY);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
            if !go_on() {
                return Err(JobFailure::Left);
            }
        }
    }

    fn give_back(&self, thread: Sender<Job>) {
        let mut state = self.state();
        if state.idle.len() < IDLE_COUNT_MAX {
            state.idle.push(thread);
        }
        drop(state);
        self.freed.notify_one();
    }
}

/// Counts a thread until it has ended, however it does.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        THREADS.state().count -= 1;
        THREADS.freed.notify_one();
    }
}

/// A new thread, which was counted. It ends once its jobs have no sender: where it was left behind,
/// or isn't kept.
#[expect(clippy::disallowed_methods, reason = "these may outlive the call: a request leaves them")]
fn begin() -> Result<Sender<Job>, JobFailure> {
    let counted = Counted;
    let (sender, jobs) = mpsc::channel::<Job>();
    let work = move || {
        let _counted = counted;
        jobs.iter().for_each(|job| job());
    };
    let named = thread::Builder::new().name("frond-script".to_owned()).stack_size(STACK_BYTES);
    named.spawn(work).map(|_| sender).map_err(|_| JobFailure::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn unstopped() -> Arc<AtomicBool> {
        Arc::default()
    }

    #[test]
    fn a_job_that_is_left_behind_ends_by_itself() {
        let (stop, ended) = (unstopped(), Arc::new(AtomicBool::new(false)));
        let (until, end) = (unstopped(), Arc::clone(&ended));
        let stopped = Arc::clone(&until);
        let job = move || {
            while !stopped.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            end.store(true, Ordering::Relaxed);
        };
        assert_eq!(run(&stop, || false, job), Err(JobFailure::Left));
        assert!(stop.load(Ordering::Relaxed) && !ended.load(Ordering::Relaxed));
        assert_eq!(run(&unstopped(), || true, || 1), Ok(1), "others run meanwhile");
        until.store(true, Ordering::Relaxed);
        while !ended.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    }

    #[test]
    fn a_job_that_stops_on_request_has_a_result() {
        let stop = unstopped();
        let stopped = Arc::clone(&stop);
        let job = move || {
            while !stopped.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            "stopped"
        };
        assert_eq!(run(&stop, || false, job), Ok("stopped"));
    }

    #[test]
    fn a_job_that_panics_has_none() {
        let job = || -> i32 { panic!("a defect") };
        assert_eq!(run(&unstopped(), || true, job), Err(JobFailure::Failed));
        assert_eq!(run(&unstopped(), || true, || 2), Ok(2));
    }

    #[test]
    fn there_are_no_more_threads_than_may_be() {
        let jobs: Vec<_> = (0..3 * thread_count_max())
            .map(|number| {
                thread::spawn(move || {
                    let job = move || (number, thread_count());
                    run(&unstopped(), || true, job).expect("it runs")
                })
            })
            .collect();
        for (number, job) in jobs.into_iter().enumerate() {
            let (found, count) = job.join().expect("no panic");
            assert!(found == number && count <= thread_count_max());
        }
    }
}
