//! A disk in memory that fails as real ones do: it loses, tears and reorders what was not synced.
//!
//! *The model*
//! 1. Reads see every write at once, as through a page cache.
//! 2. A write to a file is pending until that file is synced. A power cut keeps, loses or tears
//!    each pending write by itself, whatever was written before or after it; a lost write may still
//!    have lengthened its file, which then holds zeros.
//! 3. A created, renamed or removed name is pending until the directory is synced. A power cut
//!    keeps a prefix of the pending ones. So a synced file whose name was not synced may be gone.
//! 4. A failed sync makes nothing durable *for good*: what was pending then is kept or lost at
//!    once, though reads still see it, and no later sync saves it (as Linux does).
//! 5. The operation during which the power fails is under way: its effect is pending too.
//!
//! *Replay*: one seed decides everything; a test with one thread repeats exactly. *Crash points*:
//! run once and ask [`SimDisk::operations`], then run again with [`SimDisk::crash_after`] for each
//! number below that.
//!
//! ```text
//! let disk = SimDisk::new(seed);
//! disk.crash_after(17);
//! work(&disk.machine());            // fails somewhere
//! check(&disk.crash().machine());   // what a restart finds
//! ```

mod state;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use frond_store::io::{Disk, DiskFile, DiskSpace, Machine};

use crate::machine::{SimClock, machine};
use state::{FileId, NameChange, State};

/// A simulated disk. Cloning shares it.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// An empty disk.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk::with_state(State::new(seed))
    }

    fn with_state(state: State) -> SimDisk {
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// This disk with a new clock and new dice.
    pub fn machine(&self) -> Machine {
        let seed = self.state().random.next();
        machine(self, &SimClock::new(), seed)
    }

    /// Returns how many files were removed and are still open: on a real disk they keep their
    /// space.
    pub fn removed_but_open(&self) -> usize {
        let state = self.state();
        let is_removed = |file: &&FileId| !state.names.values().any(|named| named == *file);
        state.open.iter().filter(is_removed).count()
    }

    /// Cuts the power: the result holds what a restart would find. This disk is dead from now on,
    /// so that threads that still run can't matter.
    pub fn crash(&self) -> SimDisk {
        let mut state = self.state();
        state.dead = true;
        SimDisk::with_state(state.after_power_cut())
    }

    /// Kills the process, not the power: every write is still there, and as pending as it was. This
    /// disk is dead from now on.
    pub fn kill(&self) -> SimDisk {
        let mut state = self.state();
        state.dead = true;
        SimDisk::with_state(state.after_kill())
    }

    /// Writes, changes of length, syncs and changes of names so far, failed ones included.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Lets `operations` more succeed; during the next one the power fails: from then on everything
    /// fails (reading too), until [`SimDisk::crash`] gives the disk that a restart finds.
    pub fn crash_after(&self, operations: u64) {
        let mut state = self.state();
        state.power_fails_at = Some(state.operations + operations);
    }

    /// Whether the power has failed.
    pub fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// The file that was written, synced or named while the power failed; while the directory was
    /// synced, the one that was named last.
    pub fn lost_power_at(&self) -> Option<String> {
        self.state().lost_power_at.clone()
    }

    /// Lets `writes` more succeed; the next one writes a part and fails, once.
    pub fn fail_write_after(&self, writes: u64) {
        self.state().writes_until_failure = Some(writes);
    }

    /// Lets `syncs` more succeed (of files and of the directory); the next one fails, once.
    pub fn fail_sync_after(&self, syncs: u64) {
        self.state().syncs_until_failure = Some(syncs);
    }

    /// The next sync of a file to which a write with these bytes is pending fails, once; all others
    /// succeed. So a test chooses whose sync fails while background work syncs too.
    pub fn fail_sync_of(&self, bytes: &[u8]) {
        self.state().sync_fails_of = Some(bytes.to_vec());
    }

    /// Lets `changes` of names more succeed (creating, renaming, removing); the next one fails,
    /// once, and changes nothing.
    pub fn fail_name_change_after(&self, changes: u64) {
        self.state().name_changes_until_failure = Some(changes);
    }

    /// Lets files grow by `bytes` more in all; after that writes fail with `StorageFull`.
    pub fn fill_after(&self, bytes: u64) {
        self.state().bytes_free = Some(bytes);
    }

    /// Lets all files together have `bytes` at most, from now on: what is removed makes room. The
    /// disk reports how much there is.
    pub fn limit_to(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Ends what [`SimDisk::fill_after`] began.
    pub fn make_room(&self) {
        self.state().bytes_free = None;
    }

    /// Lets so many files be open at once, from now on: to open or make one more fails as it does
    /// in a process without file descriptors.
    pub fn limit_open_files_to(&self, count: Option<usize>) {
        self.state().open_max = count;
    }

    /// Turns over one bit of a file, counted from the file's start: durably, as a failing disk
    /// does.
    ///
    /// # Panics
    /// If there is no such file or bit.
    pub fn flip_bit(&self, name: &str, bit: u64) {
        let mut state = self.state();
        let file = state.names[name];
        let byte = usize::try_from(bit / 8).expect("a simulated file fits in memory");
        state.file(file).damage(byte, 1 << (bit % 8));
    }

    /// Has every read of this file fail, as of sectors that a disk doesn't give back; another file
    /// may take its name.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn make_unreadable(&self, name: &str) {
        self.state().make_unreadable(name);
    }

    /// All bytes of a file, written ones not yet synced included.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let mut state = self.state();
        let file = *state.names.get(name)?;
        Some(state.file(file).now.clone())
    }

    /// Another disk with the same files, all of them durable: for a test to damage.
    pub fn copy(&self, seed: u64) -> SimDisk {
        let copy = SimDisk::new(seed);
        for name in self.list().expect("a simulated disk lists its files") {
            copy.set_contents(&name, &self.contents(&name).expect("the file was listed"));
        }
        copy
    }

    /// Makes `name` a durable file of these bytes.
    pub fn set_contents(&self, name: &str, contents: &[u8]) {
        self.state().set_contents(name, contents);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }
}

impl Disk for SimDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.check_may_open()?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.new_file();
        state.change_name(NameChange::Create { name: name.to_owned(), file })?;
        Ok(SimFile::open(self, &mut state, file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.check_may_open()?;
        let file = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(SimFile::open(self, &mut state, file))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.state();
        state.check_alive()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.check_alive()?;
        if !state.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change_name(NameChange::Rename { from: from.to_owned(), to: to.to_owned() })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.check_alive()?;
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change_name(NameChange::Remove { name: name.to_owned() })
    }

    fn space(&self) -> io::Result<Option<DiskSpace>> {
        let state = self.state();
        let space_of = |(bytes, free)| DiskSpace { bytes, free };
        Ok(state.capacity.zip(state.room()).map(space_of))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.state().sync_names()
    }

    fn lock(&self) -> io::Result<()> {
        let mut state = self.state();
        state.check_alive()?;
        if std::mem::replace(&mut state.locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }

    fn unlock(&self) {
        self.state().locked = false;
    }
}

struct SimFile {
    state: Arc<Mutex<State>>,
    file: FileId,
}

impl SimFile {
    fn open(disk: &SimDisk, state: &mut State, file: FileId) -> Arc<dyn DiskFile> {
        state.open.push(file);
        Arc::new(SimFile { state: Arc::clone(&disk.state), file })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        // A test that has failed already needs no count.
        let Ok(mut state) = self.state.lock() else { return };
        let at = state.open.iter().position(|open| *open == self.file);
        if let Some(at) = at {
            state.open.swap_remove(at);
        }
    }
}

impl DiskFile for SimFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut state = self.state();
        state.check_readable(self.file)?;
        let now = &state.file(self.file).now;
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|start| now.get(start..start.checked_add(buffer.len())?))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.state().write(self.file, offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.state().sync_file(self.file)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.state().set_bytes(self.file, bytes)
    }

    fn bytes(&self) -> io::Result<u64> {
        let mut state = self.state();
        state.check_alive()?;
        Ok(state.file(self.file).now.len() as u64)
    }
}

#[cfg(test)]
mod tests;
