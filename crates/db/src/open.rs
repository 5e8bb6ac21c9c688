//! Opening a data directory, and closing it.

use std::sync::Arc;

use frond_engine::Engine;
use frond_store::io::{Clock, Machine};

use crate::clock::BelievedClock;
use crate::error::Error;
use crate::frond::{Frond, FrondOptions};
use crate::hook::{self, NoVersions, Versions};
use crate::set::check_alone;

impl Frond {
    /// Opens the data directory that is `machine`'s disk without a layer of versions: what is
    /// dropped is gone, and no stage shows history. For tests of databases alone: programs open
    /// with `frond_vcs::open`.
    ///
    /// # Errors
    /// If the disk doesn't answer or what it holds can't be read.
    pub fn open_bare(machine: &Machine, options: FrondOptions) -> Result<Frond, Error> {
        Frond::open_with(machine, options, NoVersions)
    }

    /// Opens the data directory that is `machine`'s disk, with a layer of versions.
    ///
    /// # Errors
    /// As [`Frond::open_bare`].
    #[doc(hidden)]
    pub fn open_with(
        machine: &Machine,
        options: FrondOptions,
        versions: impl Versions + 'static,
    ) -> Result<Frond, Error> {
        check_alone(machine)?;
        let clock = Arc::new(BelievedClock::new(Arc::clone(&machine.clock)));
        let machine = &Machine { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..machine.clone() };
        let engine = Engine::open(machine, options.engine)?;
        let frond = Frond::assemble(machine, clock, engine, options, hook::layer(versions))?;
        // Caches that the process has for all that it opens are as large as this one says.
        frond.set_memory_pressure(0);
        frond.begin_clock()?;
        Ok(frond)
    }

    /// Opens the content of `engine`, whose log lies on `machine`'s disk; its knowledge of time
    /// isn't used.
    ///
    /// # Errors
    /// If temporary files of an earlier process can't be removed.
    #[doc(hidden)]
    pub fn over(
        machine: &Machine,
        engine: Engine,
        options: FrondOptions,
        versions: impl Versions + 'static,
    ) -> Result<Frond, Error> {
        let clock = Arc::new(BelievedClock::new(Arc::clone(&machine.clock)));
        Frond::assemble(machine, clock, engine, options, hook::layer(versions))
    }

    /// Folds what is in memory, syncs and lets go of the directory.
    ///
    /// # Errors
    /// If the disk doesn't answer.
    pub fn close(&self) -> Result<(), Error> {
        self.engine().begin_close();
        // A caller that closes a directory on a full disk wants it closed all the same.
        let _ = self.keep_clock();
        self.engine().checkpoint()?;
        Ok(self.engine().close()?)
    }
}
