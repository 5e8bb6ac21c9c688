//! Stalls writers: before a commit while memory is at its limit, and after it for the rest of the
//! delay that the pressure demands ([`crate::background::backpressure`]).

use std::time::{Duration, Instant};

use frond_store::io::{pause, steady_now};

use crate::background::backpressure::{FOLD_PRESSURE_URGENT, PRESSURE_URGENT, SEALED_COUNT_MAX};
use crate::error::EngineError;
use crate::shared::Shared;
use crate::slow_commits::{Stage, Stopwatch};

/// The shortest delay: less is not slept, and the next commit's turn begins where this one's ends.
const DELAY_MIN: Duration = Duration::from_micros(300);
/// The interval at which a writer that was stopped looks again.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The time until which a commit is to last, if it is to be delayed.
#[must_use]
#[derive(Default)]
pub(crate) struct Delay(Option<Instant>);

impl Shared {
    /// Lets a commit of `bytes` begin as soon as there is room for it; returns how long it is to
    /// take, as the pressure demands.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine is closed while the commit waits,
    /// [`EngineError::Interrupted`] if `keep_going` says no meanwhile; without background threads,
    /// what a flush or fold fails with. A tree that is damaged stops no commit.
    pub fn stall(
        &self,
        bytes: u64,
        watch: &mut Stopwatch,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Delay, EngineError> {
        if self.options.fold_threads == 0 {
            while self.flush_sealed()? {}
            loop {
                match self.work_once() {
                    Ok(true) => {}
                    Ok(false) => break,
                    // As in the background: what is written lies above what is damaged.
                    Err(error) if error.is_damage() => {
                        self.note_failure("fold", &error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            return Ok(Delay(None));
        }
        let (view, _) = self.current.view();
        let waiting: u64 = view.state.memtables().map(|memtable| memtable.bytes()).sum();
        let allowed = self.options.memtable_bytes_max.max(1) * SEALED_COUNT_MAX as u64;
        drop(view);
        let pressure = waiting.saturating_mul(1000) / allowed;
        let is_urgent = PRESSURE_URGENT <= pressure
            || FOLD_PRESSURE_URGENT <= self.background.backpressure.fold_pressure();
        self.background.throttle.set_urgent(is_urgent);
        let delay = self.background.backpressure.delay(bytes, pressure);
        let turn = (!delay.is_zero()).then(|| self.background.backpressure.reserve_turn(delay));
        if SEALED_COUNT_MAX <= self.sealed_count() {
            self.wait_for_flush(keep_going)?;
            self.counters.delay_micros.add(micros(watch.lap(Stage::Stop)));
        }
        Ok(Delay(turn))
    }

    /// Waits for the end of a commit's turn, which it has come to by itself.
    pub fn delay(&self, turn: Delay, watch: &mut Stopwatch) {
        let Delay(Some(end)) = turn else { return };
        let left = end.saturating_duration_since(steady_now());
        if DELAY_MIN <= left {
            pause(left);
        }
        self.counters.delay_micros.add(micros(watch.lap(Stage::Delay)));
    }

    fn sealed_count(&self) -> usize {
        self.current.view().0.state.sealed.len()
    }

    /// Waits until fewer memtables are sealed than may be.
    fn wait_for_flush(&self, keep_going: &dyn Fn() -> bool) -> Result<(), EngineError> {
        let failures_before = self.signals.flush_failure_count();
        while SEALED_COUNT_MAX <= self.sealed_count() {
            // A flush that failed before may be out of date: there may be room by now.
            let refusal = self.signals.await_flush(failures_before, LOOK_EVERY);
            self.queue().check_open()?;
            if !keep_going() {
                return Err(EngineError::Interrupted);
            }
            if let Some(refusal) = refusal
                && SEALED_COUNT_MAX <= self.sealed_count()
            {
                return Err(refusal.error());
            }
        }
        Ok(())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use frond_store::local::{LocalOptions, LocalStore};
    use frond_testkit::SimDisk;

    use super::*;
    use crate::options::EngineOptions;
    use crate::recovery;

    #[test]
    fn a_commit_lasts_until_its_turn_ends() {
        let machine = SimDisk::new(1).machine();
        let store = LocalStore::open(&machine, LocalOptions::default()).expect("the disk opens");
        let shared =
            recovery::open(&machine, store, EngineOptions::default()).expect("an empty directory");
        let mut watch = Stopwatch::start();
        let end = steady_now() + Duration::from_millis(20);
        shared.delay(Delay(Some(end)), &mut watch);
        assert!(end <= steady_now());
        shared.delay(Delay(Some(end)), &mut watch);
        shared.delay(Delay(None), &mut watch);
    }
}
