//! One thread that syncs the log for all who committed, as MongoDB's journal flusher does.
//!
//! Syncs are *rounds*, one after the other, as long as a committer waits. It waits for the first
//! round that begins after its commit, with all others that committed during the one before. At
//! most two rounds are waited for, and the end of one wakes those alone who wait for it.

use std::sync::{Condvar, Mutex, MutexGuard};

use crate::target::Failure;

#[derive(Default)]
pub struct Journal {
    rounds: Mutex<Rounds>,
    requested: Condvar,
    /// Of the even rounds, and of the odd ones.
    ended: [Condvar; 2],
}

#[derive(Default)]
struct Rounds {
    requested: u64,
    begun: u64,
    ended: u64,
    failure: Option<String>,
    stops: bool,
}

impl Journal {
    /// Returns once all that this thread committed is on the disk.
    pub fn wait(&self) -> Result<(), Failure> {
        let mut rounds = self.rounds();
        let next = rounds.begun + 1;
        if rounds.requested < next {
            rounds.requested = next;
            self.requested.notify_one();
        }
        while rounds.ended < next && rounds.failure.is_none() {
            let ended = &self.ended[next as usize % 2];
            rounds = ended.wait(rounds).expect("no panic while the lock is held");
        }
        rounds.failure.as_ref().map_or(Ok(()), |failure| Err(failure.as_str().into()))
    }

    /// Does rounds until one fails, or [`Journal::stop`].
    pub fn run(&self, mut sync: impl FnMut() -> Result<(), Failure>) {
        while let Some(round) = self.begin() {
            let synced = sync();
            let mut rounds = self.rounds();
            match synced {
                Ok(()) => {
                    rounds.ended = round;
                    self.ended[round as usize % 2].notify_all();
                }
                Err(failure) => {
                    rounds.failure = Some(failure.to_string());
                    self.ended.iter().for_each(Condvar::notify_all);
                }
            }
        }
    }

    /// The next round, once it was asked for.
    fn begin(&self) -> Option<u64> {
        let mut rounds = self.rounds();
        while rounds.requested <= rounds.begun && !rounds.stops {
            rounds = self.requested.wait(rounds).expect("no panic while the lock is held");
        }
        if rounds.stops || rounds.failure.is_some() {
            return None;
        }
        rounds.begun += 1;
        Some(rounds.begun)
    }

    /// Ends `run`.
    pub fn stop(&self) {
        self.rounds().stops = true;
        self.requested.notify_one();
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().expect("no panic while the lock is held")
    }
}
