//! The fault that closed the engine for writing: a failed write or sync, after which the disk's
//! state is unknown, or a panic in the midst of one.
//!
//! 1. The first one is kept; nothing leads back but opening the directory again. Reads go on.
//! 2. It is reported once, to the sink, with no lock held. That is before any member of the group
//!    that failed is notified: a caller that learns of the outcome of its transaction finds the
//!    fault, and the log has its line, whatever becomes of the process then.
//! 3. That the engine was closed by its owner is no fault.

use std::sync::OnceLock;

/// Takes the fault.
type Sink = Box<dyn Fn(&Fault) + Send + Sync>;

/// The reason why an engine takes no more writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The operation that failed, the file, and the disk's message.
    pub message: String,
    /// The time, by the machine's clock: microseconds since 1970.
    pub at_micros: i64,
}

/// Holds the first fault, and reports it once.
#[derive(Default)]
pub(crate) struct FaultCell {
    fault: OnceLock<Fault>,
    sink: OnceLock<Sink>,
    reported: OnceLock<()>,
}

impl FaultCell {
    /// Keeps the first fault; it is to be reported by [`FaultCell::report`] when no lock is held.
    pub fn set(&self, message: &str, at_micros: i64) {
        drop(self.fault.set(Fault { message: message.to_owned(), at_micros }));
    }

    /// The fault, if there is one.
    pub fn get(&self) -> Option<&Fault> {
        self.fault.get()
    }

    /// Has `sink` called, at once if there is a fault by now. Only the first sink counts.
    pub fn on_fault(&self, sink: impl Fn(&Fault) + Send + Sync + 'static) {
        drop(self.sink.set(Box::new(sink)));
        self.report();
    }

    /// Reports a fault that wasn't reported yet, or waits until another thread has reported it. The
    /// caller holds no lock.
    pub fn report(&self) {
        let (Some(fault), Some(sink)) = (self.fault.get(), self.sink.get()) else { return };
        self.reported.get_or_init(|| sink(fault));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread;

    use super::*;

    #[test]
    fn the_first_fault_is_reported_once_by_any_thread() {
        for sink_comes_first in [false, true] {
            let cell = FaultCell::default();
            let lines: Arc<Mutex<Vec<String>>> = Arc::default();
            let sink = {
                let lines = Arc::clone(&lines);
                move |fault: &Fault| lines.lock().unwrap().push(fault.message.clone())
            };
            if sink_comes_first {
                cell.on_fault(sink.clone());
            }
            cell.set("first", 1);
            cell.set("second", 2);
            cell.report();
            if !sink_comes_first {
                cell.on_fault(sink);
            }
            cell.report();
            assert_eq!(*lines.lock().unwrap(), ["first"]);
            assert_eq!(cell.get(), Some(&Fault { message: "first".to_owned(), at_micros: 1 }));
        }
    }

    /// Else its client may learn of it, and the process be killed, before the log has a line.
    #[test]
    fn a_thread_that_finds_another_reporting_waits_for_that() {
        const BEGUN: u8 = 1;
        const WAITED_FOR: u8 = 2;
        const REPORTED: u8 = 3;
        let cell = FaultCell::default();
        let phase = Arc::new(AtomicU8::new(0));
        let await_phase = |phase: &AtomicU8, awaited| {
            while phase.load(Ordering::SeqCst) != awaited {
                thread::yield_now();
            }
        };
        let of_sink = Arc::clone(&phase);
        cell.on_fault(move |_| {
            of_sink.store(BEGUN, Ordering::SeqCst);
            await_phase(&of_sink, WAITED_FOR);
            (0..1_000).for_each(|_| thread::yield_now());
            of_sink.store(REPORTED, Ordering::SeqCst);
        });
        cell.set("first", 1);
        thread::scope(|scope| {
            scope.spawn(|| cell.report());
            await_phase(&phase, BEGUN);
            phase.store(WAITED_FOR, Ordering::SeqCst);
            cell.report();
            assert_eq!(phase.load(Ordering::SeqCst), REPORTED);
        });
    }
}
