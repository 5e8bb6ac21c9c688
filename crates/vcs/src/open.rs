//! Opening a data directory with versions.

use std::path::Path;
use std::sync::Arc;

use frond_db::inside::open_machine;
use frond_db::{Error, Frond, FrondOptions};
use frond_engine::Engine;
use frond_engine::order::Order;
use frond_query::Code;
use frond_store::io::Machine;
use frond_store::tiered::Slots;
use frond_store::unrelated_file;

use crate::layer::Layer;
use crate::policy::automatic;

/// Opens `directory`, making it where it is missing.
///
/// # Errors
/// `BadValue` if it is no data directory, and holds other files; if it can't be made, another
/// process has it open, or what it holds can't be read.
pub fn open(directory: &Path, options: FrondOptions) -> Result<Frond, Error> {
    refuse_foreign(directory)?;
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

/// Opens `directory` as that of a member of a replica set: see [`Frond::open_in_set`]. Returns the
/// machine whose disk it is, too.
///
/// # Errors
/// As [`open`].
pub fn open_in_set(
    directory: &Path,
    options: FrondOptions,
    order: Arc<dyn Order>,
    prepare: &dyn Fn(&Machine) -> Result<(), Error>,
) -> Result<(Frond, Machine), Error> {
    refuse_foreign(directory)?;
    let machine = open_machine(directory)?;
    prepare(&machine)?;
    let frond = Frond::open_in_set(&machine, options, Layer, order)?;
    automatic::begin_to_watch(&frond)?;
    Ok((frond, machine))
}

/// Opens the data directory that is `machine`'s disk and whose log lies in a bucket, as `slots`. It
/// leads, and has all that was acknowledged.
///
/// # Errors
/// As [`open`]; if the bucket doesn't answer, or another directory leads there.
pub fn open_with_slots(
    machine: &Machine,
    options: FrondOptions,
    slots: &Arc<Slots>,
) -> Result<Frond, Error> {
    let frond = Frond::open_with_slots(machine, options, Layer, slots)?;
    lead(&frond)?;
    frond.remove_left_staging()?;
    Ok(frond)
}

/// Opens the data directory that is `machine`'s disk, and reads what another one leads whose log
/// may lie in `slots`: it takes no writes.
///
/// # Errors
/// As [`open`].
pub fn open_reader(
    machine: &Machine,
    options: FrondOptions,
    slots: &Arc<Slots>,
) -> Result<Frond, Error> {
    Frond::open_reader(machine, options, Layer, slots)
}

/// Has a member of a set take writes: it leads from now on, and has applied all that was committed
/// before.
///
/// # Errors
/// If what branches ask for can't be read: then it doesn't lead.
pub fn lead(frond: &Frond) -> Result<(), Error> {
    automatic::begin_to_watch(frond)?;
    frond.lead();
    Ok(())
}

/// Opens the content of `engine`, whose log lies on `machine`'s disk; its knowledge of time isn't
/// used.
pub(crate) fn over(
    machine: &Machine,
    engine: Engine,
    options: FrondOptions,
) -> Result<Frond, Error> {
    let frond = Frond::over(machine, engine, options, Layer)?;
    automatic::begin_to_watch(&frond)?;
    Ok(frond)
}

/// Refuses to make a data directory where there are other files.
fn refuse_foreign(directory: &Path) -> Result<(), Error> {
    let Some(file) = unrelated_file(directory) else { return Ok(()) };
    let message = format!(
        "{} is not a data directory of Frond, and not empty (it holds {file}): name an empty or \
         new one",
        directory.display()
    );
    Err(Error::invalid(Code::BadValue, message))
}
