//! Opening a data directory, and closing it: where the layers are put together.

use std::path::Path;
use std::sync::Arc;

use frond_engine::Engine;
use frond_store::io::{Clock, Machine};

use crate::inside::{BelievedClock, Error, Frond, FrondOptions, hook, open_machine};
use crate::version::{Layer, automatic};

impl Frond {
    /// Opens `directory`, making it where it is missing.
    pub fn open(directory: &Path, options: FrondOptions) -> Result<Frond, Error> {
        let machine = open_machine(directory)?;
        Frond::open_on(&machine, options)
    }

    /// Opens the data directory that is `machine`'s disk.
    pub fn open_on(machine: &Machine, options: FrondOptions) -> Result<Frond, Error> {
        let clock = Arc::new(BelievedClock::new(Arc::clone(&machine.clock)));
        let machine = &Machine { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..machine.clone() };
        let engine = Engine::open(machine, options.engine)?;
        let frond = Frond::assemble(machine, clock, engine, options, hook::layer(Layer))?;
        // Caches that the process has for all that it opens are as large as this one says.
        frond.set_memory_pressure(0);
        automatic::begin_to_watch(&frond)?;
        frond.begin_clock()?;
        Ok(frond)
    }

    /// What `engine` holds, whose log lies on `machine`'s disk; what it knows of time isn't asked.
    pub(crate) fn over(
        machine: &Machine,
        engine: Engine,
        options: FrondOptions,
    ) -> Result<Frond, Error> {
        let clock = Arc::new(BelievedClock::new(Arc::clone(&machine.clock)));
        let frond = Frond::assemble(machine, clock, engine, options, hook::layer(Layer))?;
        automatic::begin_to_watch(&frond)?;
        Ok(frond)
    }

    /// Folds what is in memory, syncs and lets go of the directory.
    pub fn close(&self) -> Result<(), Error> {
        // Whoever closes a full disk's directory wants it closed.
        let _ = self.keep_clock();
        self.engine().checkpoint()?;
        Ok(self.engine().close()?)
    }
}
