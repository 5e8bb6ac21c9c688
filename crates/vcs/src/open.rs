//! Opening a data directory with versions.

use std::path::Path;

use frond_db::inside::open_machine;
use frond_db::{Error, Frond, FrondOptions};
use frond_engine::Engine;
use frond_store::io::Machine;

use crate::layer::Layer;
use crate::policy::automatic;

/// Opens `directory`, making it where it is missing.
///
/// # Errors
/// If it can't be made, another process has it open, or what it holds can't be read.
pub fn open(directory: &Path, options: FrondOptions) -> Result<Frond, Error> {
    open_on(&open_machine(directory)?, options)
}

/// Opens the data directory that is `machine`'s disk.
///
/// # Errors
/// As [`open`].
pub fn open_on(machine: &Machine, options: FrondOptions) -> Result<Frond, Error> {
    let frond = Frond::open_with(machine, options, Layer)?;
    automatic::begin_to_watch(&frond)?;
    Ok(frond)
}

/// What `engine` holds, whose log lies on `machine`'s disk; what it knows of time isn't asked.
pub(crate) fn over(
    machine: &Machine,
    engine: Engine,
    options: FrondOptions,
) -> Result<Frond, Error> {
    let frond = Frond::over(machine, engine, options, Layer)?;
    automatic::begin_to_watch(&frond)?;
    Ok(frond)
}
