//! A data directory as a member of a replica set: what others have committed is applied here. So is
//! the log in a bucket, where it lies there.
//!
//! The process's memory of the catalog is given up as for a commit of its own: before a change is
//! visible.

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::Timestamp;
pub use frond_engine::order::Order;
use frond_engine::order::{SetEntry, SlotOrder};
use frond_engine::{Engine, ReclaimOptions, TreeId};
use frond_store::StoreError;
use frond_store::io::{Clock, Machine};
use frond_store::tiered::Slots;
use frond_tree::{Bounds, Direction};

use crate::clock::BelievedClock;
use crate::error::Error;
use crate::frond::{Frond, FrondOptions};
use crate::hook::{self, Versions};
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::system;

/// The file of a data directory that names the set of which it is a member.
pub const MEMBER_FILE: &str = "set-member";

/// Fails if a data directory is a member's: what is written there alone no other member has.
pub(crate) fn check_alone(machine: &Machine) -> Result<(), Error> {
    let names = machine.disk.list().map_err(|error| StoreError::io("the directory", error))?;
    match names.iter().any(|name| name == MEMBER_FILE) {
        false => Ok(()),
        true => Err(Error::bad_value(
            "it is a member of a replica set: serve it with --members, and ask the server",
        )),
    }
}

/// The changes of an entry of the set's log besides those of documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntryChanges {
    /// Users or roles.
    pub access: bool,
    /// Whether settings of the whole set changed.
    pub settings: bool,
}

/// The moment of the first transaction of an entry: those of one log ascend.
///
/// # Errors
/// If it is no entry.
pub fn first_moment(entry: &Bytes) -> Result<Timestamp, StoreError> {
    frond_engine::order::first_sequence(entry).map(|sequence| Timestamp(sequence.0))
}

impl Frond {
    /// Opens a member's data directory: it follows until [`Frond::lead`].
    ///
    /// # Errors
    /// As [`Frond::open_bare`].
    #[doc(hidden)]
    pub fn open_in_set(
        machine: &Machine,
        options: FrondOptions,
        versions: impl Versions + 'static,
        order: Arc<dyn Order>,
    ) -> Result<Frond, Error> {
        let clock = Arc::new(BelievedClock::new(Arc::clone(&machine.clock)));
        let machine = &Machine { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..machine.clone() };
        let engine = Engine::open_in_set(machine, options.engine, order)?;
        let frond = Frond::assemble(machine, clock, engine, options, hook::layer(versions))?;
        frond.set_memory_pressure(0);
        frond.begin_clock()?;
        Ok(frond)
    }

    /// Whether nothing was ever written: no database, not even one that was dropped, no user, no
    /// session. What time it was, which every server notes, doesn't count.
    ///
    /// # Errors
    /// `Damaged` or `Unavailable` if the system tree can't be read.
    pub fn holds_nothing(&self) -> Result<bool, Error> {
        let (reader, all) = (Reader::now(self.engine()), Bounds::all());
        let system = TreeRef::Live(TreeId::SYSTEM);
        for entry in reader.range(system, all, Direction::Ascending)? {
            if entry?.key != system::clock_key() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Opens a data directory whose log lies in a bucket, as `slots`: all that lies there is
    /// applied, and it follows until [`Frond::lead`].
    ///
    /// # Errors
    /// As [`Frond::open_bare`]; if the bucket doesn't answer, or another directory leads there.
    #[doc(hidden)]
    pub fn open_with_slots(
        machine: &Machine,
        options: FrondOptions,
        versions: impl Versions + 'static,
        slots: &Arc<Slots>,
    ) -> Result<Frond, Error> {
        check_alone(machine)?;
        let order = Arc::new(SlotOrder::new(Arc::clone(slots)));
        let frond = Frond::open_in_set(machine, options, versions, order)?;
        slots.replay(&mut |entry| frond.apply_entry(&entry).map(drop))?;
        Ok(frond)
    }

    /// Opens a data directory that reads what another one leads, whose log, if it lies in the
    /// bucket, is `slots`: it follows, and never leads. What lies there is applied by
    /// [`Frond::read_on`].
    ///
    /// # Errors
    /// As [`Frond::open_bare`].
    #[doc(hidden)]
    pub fn open_reader(
        machine: &Machine,
        options: FrondOptions,
        versions: impl Versions + 'static,
        slots: &Arc<Slots>,
    ) -> Result<Frond, Error> {
        let order = Arc::new(SlotOrder::new(Arc::clone(slots)));
        slots.begin_to_read();
        Frond::open_in_set(machine, options, versions, order)
    }

    /// Applies what lies in `slots` and wasn't read yet. Returns what it changed besides documents.
    ///
    /// # Errors
    /// As [`Frond::apply_entry`]; `Unavailable` if the bucket doesn't answer.
    pub fn read_on(&self, slots: &Slots) -> Result<EntryChanges, Error> {
        let mut changes = EntryChanges::default();
        slots.read_on(&mut |entry| {
            let entry = self.apply_entry(&entry)?;
            changes.access |= entry.access;
            changes.settings |= entry.settings;
            Ok::<(), Error>(())
        })?;
        Ok(changes)
    }

    /// Says what names the set, for good: the tokens of change streams are the same on all of its
    /// members.
    pub fn name_set(&self, id: u64) {
        let named = self.set_id().get_or_init(|| id);
        debug_assert_eq!(*named, id, "a directory is of one set");
    }

    /// Applies an entry of the set's log: all of it is visible then. Entries are applied one at a
    /// time, in their order; what was applied before changes nothing.
    ///
    /// # Errors
    /// If it is none, or can't be applied: the databases are closed for writing then, and to be
    /// opened again.
    pub fn apply_entry(&self, entry: &Bytes) -> Result<EntryChanges, Error> {
        let entry = SetEntry::decode(entry)?;
        let catalog = entry.writes(TreeId::SYSTEM, |key| !system::is_of_session(key));
        let access = catalog && entry.writes(TreeId::SYSTEM, system::is_of_access);
        let settings = catalog && entry.writes(TreeId::SYSTEM, system::is_setting);
        let has_bases = entry.has_bases();
        let change = catalog.then(|| self.catalog_cache().begin_change());
        self.engine().apply(entry)?;
        drop(change);
        if has_bases {
            self.note_definitions_changed();
        }
        Ok(EntryChanges { access, settings })
    }

    /// Makes durable in this member's own log what is visible: without the set's log it is kept,
    /// too. Returns the moment of the last of it.
    ///
    /// # Errors
    /// If the databases are closed for writing, or the sync fails.
    pub fn sync_log(&self) -> Result<Timestamp, Error> {
        let visible = self.operation_time();
        self.engine().sync_log()?;
        Ok(visible)
    }

    /// Takes writes from now on: this member leads, and has applied all that was committed before.
    pub fn lead(&self) {
        self.engine().lead();
    }

    /// Removes from this member's disk, and from what its readers keep, all that the databases
    /// don't have any more. Cursors that are open end.
    ///
    /// # Errors
    /// As a collection's.
    pub fn purge(&self) -> Result<(), Error> {
        self.forget_moments();
        self.engine().checkpoint()?;
        self.engine().expire_old_snapshots();
        let options = ReclaimOptions { thorough: true, bytes_a_second: None, purge: true };
        self.engine().reclaim(options)?;
        Ok(())
    }

    /// Has the members keep no longer what former leaders have sent them for transactions that came
    /// to nothing. Returns how many chunks that led to all of it.
    ///
    /// # Errors
    /// As a write's: it stays until another member leads.
    pub fn remove_left_staging(&self) -> Result<usize, Error> {
        Ok(self.engine().remove_left_staging()?)
    }

    /// Takes no writes any more: this member led, and doesn't. The directory is to be opened again.
    pub fn depose(&self) {
        self.engine().depose();
    }
}
