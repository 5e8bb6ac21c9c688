//! Full disks, killed processes and power cuts, and what is there afterwards.

use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};

use frond_db::{Error, Frond, ReclaimOptions};
use frond_query::Code;
use frond_store::local::{LocalOptions, LocalStore};
use frond_testkit::SimDisk;
use frond_testkit::machine::machine;

use super::state::{Found, Tried};
use super::{FOR_EVER, World};

/// Collects beside everything else: when it is asked to, if it isn't at it.
pub struct Collector {
    turns: SyncSender<()>,
    thread: JoinHandle<u32>,
}

impl Collector {
    fn begin(frond: &Frond, disk: &SimDisk) -> Collector {
        let (turns, requests) = mpsc::sync_channel(1);
        let (frond, disk) = (frond.clone(), disk.clone());
        let thread = thread::spawn(move || {
            let mut done = 0;
            while requests.recv().is_ok() {
                let thorough = done % 3 == 0;
                let options = ReclaimOptions { thorough, bytes_a_second: None, purge: false };
                match frond_vcs::reclaim(&frond, if done % 2 == 0 { 0 } else { FOR_EVER }, options)
                {
                    Ok(_) => done += 1,
                    Err(error) if is_full(&error) => {}
                    Err(_) if disk.is_dead() => break,
                    Err(error) => panic!("a collection failed: {error}"),
                }
            }
            done
        });
        Collector { turns, thread }
    }

    pub fn collect(&self) {
        // A collector that is at it already need not be asked.
        let _ = self.turns.try_send(());
    }

    fn end(self) -> u32 {
        drop(self.turns);
        self.thread.join().expect("no collection fails that may not")
    }
}

fn is_full(error: &Error) -> bool {
    error.code == Code::OutOfDiskSpace
}

impl World {
    /// Has collections run in the background, too, where others work there.
    pub fn watch(&mut self) {
        if self.options.engine.fold_threads > 0 {
            self.collector = Some(Collector::begin(&self.frond, &self.disk));
        }
    }

    /// Has the disk fail soon.
    pub fn trouble(&mut self) -> Result<(), Error> {
        if self.is_full {
            self.heal();
        } else if self.random.one_in(3) {
            (self.is_full, self.was_full) = (true, true);
            self.disk.fill_after(self.random.below(100_000) as u64);
        } else {
            self.disk.crash_after(self.random.below(80) as u64);
        }
        Ok(())
    }

    pub fn heal(&mut self) {
        self.disk.make_room();
        self.is_full = false;
    }

    pub fn restart_by_chance(&mut self) -> Result<(), Error> {
        match self.random.below(4) {
            0 => self.restart(true),
            1 => self.restart(false),
            _ => Ok(()),
        }
    }

    /// Ends what is under way, also the process.
    fn stop(&mut self) {
        self.transactions.clear();
        self.held.clear();
        if let Some(collector) = self.collector.take() {
            self.seen.collections += collector.end();
        }
    }

    /// Finds out, if a step has failed, what it has left.
    pub fn recover(&mut self, result: Result<(), Error>) {
        let mut result = result;
        // A failure while finding out is found out next.
        while self.disk.is_dead() || result.is_err() {
            if self.disk.is_dead() {
                result = self.restart(false);
                continue;
            }
            let error = result.expect_err("it has failed");
            assert!(self.was_full && is_full(&error), "{error:?}");
            self.seen.full += 1;
            // Nothing that was visible may be gone.
            result = self.identify(self.log.len() - 1);
            if self.random.one_in(2) {
                self.heal();
            }
        }
    }

    /// Kills the process, or cuts the power, and opens what is left.
    pub fn restart(&mut self, closes: bool) -> Result<(), Error> {
        self.heal();
        let was_dead = self.disk.is_dead();
        self.stop();
        if closes && !was_dead {
            self.frond.close()?;
            self.durable = self.log.len() - 1;
            self.seen.kills += 1;
        }
        let kills = !was_dead && self.random.one_in(2);
        self.disk = match kills {
            true => self.disk.kill(),
            false => self.disk.crash(),
        };
        if kills {
            // Everything that the process has written is there as long as there is power.
            self.seen.kills += 1;
        } else {
            self.seen.cuts += 1;
        }
        self.was_full = false;
        // Recovery may be interrupted too, as often as it likes.
        while self.random.one_in(3) {
            self.disk.crash_after(self.random.below(30) as u64);
            drop(frond_vcs::open_on(&machine(&self.disk, &self.clock, 1), self.options));
            self.disk = self.disk.crash();
            self.seen.cuts += 1;
        }
        self.check_chunks();
        let machine = machine(&self.disk, &self.clock, self.random.next());
        self.frond = frond_vcs::open_on(&machine, self.options)?;
        self.identify(self.durable)?;
        // The state that was found stays.
        self.durable = self.log.len() - 1;
        self.frond.engine().check()?;
        self.check_history(self.log.len().is_multiple_of(4))?;
        self.watch();
        Ok(())
    }

    /// Checks that every chunk is whole, and all that others refer to are there.
    fn check_chunks(&self) {
        let machine = machine(&self.disk, &self.clock, 2);
        let store =
            LocalStore::open(&machine, LocalOptions::default()).expect("nothing is damaged");
        let damages = store.verify(&mut |_| ()).expect("the disk works");
        assert!(damages.is_empty(), "{damages:?}");
        let missing = store.missing_parts().expect("the disk works");
        assert!(missing.is_empty(), "chunks are missing: {missing:?}");
    }

    /// Finds the state that everything is in: the one that was tried, or one of the log's from
    /// `first` on.
    fn identify(&mut self, first: usize) -> Result<(), Error> {
        let found = Found::read(&self.frond)?;
        let tried = std::mem::take(&mut self.tried);
        for Tried { mut model, commit } in tried {
            if found.difference(&self.history, &model).is_some() {
                continue;
            }
            if let Some((branch, parents)) = commit {
                let id = found.head(&branch).expect("it was compared");
                let made = model.0.get_mut(&branch).expect("it was compared");
                made.head = Some(self.history.add((*made.working).clone(), parents, id));
            }
            self.log.push(model);
            return Ok(());
        }
        let mut differences = Vec::new();
        for state in self.log[first..].iter().rev() {
            match found.difference(&self.history, state) {
                None => {
                    let state = state.clone();
                    self.log.push(state);
                    return Ok(());
                }
                Some(difference) => differences.push(difference),
            }
        }
        panic!("what is there is no state that may be there: {differences:#?}");
    }
}
