//! A data directory that is being begun: what is made there is synced late, and all at once.
//!
//! An empty directory gets a manifest, a pack, copies and a log, each of which counts on those
//! before it: 17 syncs, of some 0.4 ms each on a fast disk, before a server listens. But as long as
//! nothing has been acknowledged there, to lose all of it is to lose nothing. So:
//!
//! 1. In an empty directory the file [`MARK_NAME`] is created, and its name synced.
//! 2. While everything else is made, nothing is synced.
//! 3. The directory *settles* before the first write, or change of a name, behind that
//!    ([`NewDirectory::end_creation`]): all files are synced, then their names; then the mark is
//!    removed, and that is synced.
//! 4. An opening that finds a mark removes what lies beside it, which may be any part of what was
//!    made, and begins anew ([`remove_unsettled`]).
//!
//! *Invariants*
//! 1. While there is a mark, nothing was acknowledged: no write behind the creation is begun before
//!    the mark is gone for good.
//! 2. A mark that has come back (with files that were copied over older ones, say) costs no data:
//!    it counts only where everything beside it is as small as a creation leaves it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::io::{Disk, DiskFile, DiskSpace, Tier};
use crate::unrelated_files::{MARK_NAME, is_stored};

/// A segment of the log without a record has at most so many bytes.
pub const EMPTY_LOG_BYTES_MAX: u64 = 64;
/// No file that a creation makes is larger: the largest, the first pack, has 659 bytes.
const CREATED_BYTES_MAX: u64 = 4096;

/// The first pack: a creation makes no other.
const FIRST_PACK: &str = "00000000.pack";

/// Removes what a creation that was cut short has left, and its mark. The directory is locked.
///
/// # Errors
/// An error of the system: an opening goes on with it.
pub(crate) fn remove_unsettled(disk: &dyn Disk) -> io::Result<()> {
    let names = disk.list()?;
    if disk.tier().is_some() || !names.iter().any(|name| name == MARK_NAME) {
        return Ok(());
    }
    let stored: Vec<&String> = names.iter().filter(|name| is_stored(name)).collect();
    let mut is_unsettled = true;
    for name in &stored {
        is_unsettled &= may_be_created(disk, name)?;
    }
    if is_unsettled {
        for name in stored {
            disk.remove(name)?;
        }
    }
    disk.sync_directory()?;
    disk.remove(MARK_NAME)?;
    disk.sync_directory()
}

/// Whether a creation may have made this file, so that nothing in it was acknowledged.
fn may_be_created(disk: &dyn Disk, name: &str) -> io::Result<bool> {
    let is_log = name.starts_with("log-") || name.starts_with("spare-log-");
    let is_other = ["MANIFEST", "COPIES"].iter().any(|beginning| name.starts_with(beginning));
    let bytes_max = match name {
        _ if is_log => EMPTY_LOG_BYTES_MAX,
        FIRST_PACK => CREATED_BYTES_MAX,
        _ if is_other => CREATED_BYTES_MAX,
        _ => return Ok(false),
    };
    Ok(disk.open(name)?.bytes()? <= bytes_max)
}

/// How far a creation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Phase {
    /// All is synced as it is asked for. So is a directory that isn't new.
    Settled = 0,
    /// Nothing is synced.
    Creating = 1,
    /// The directory settles before anything else is done.
    Created = 2,
    /// It couldn't settle: what of it is durable is unknown, and nothing is written any more.
    Failed = 3,
}

/// A disk that may be a new directory: taking its lock (`Disk::lock`) decides that.
pub struct NewDirectory {
    state: Arc<State>,
}

struct State {
    disk: Arc<dyn Disk>,
    phase: AtomicU8,
    /// The files of an unsettled directory.
    files: Mutex<BTreeMap<String, Arc<dyn DiskFile>>>,
}

impl NewDirectory {
    /// `disk`, whose lock is to be taken by way of the result.
    pub fn over(disk: &Arc<dyn Disk>) -> Arc<NewDirectory> {
        let phase = AtomicU8::new(Phase::Settled as u8);
        let state = State { disk: Arc::clone(disk), phase, files: Mutex::default() };
        Arc::new(NewDirectory { state: Arc::new(state) })
    }

    /// Says that all is there with which a directory begins: what is written from now on may be
    /// acknowledged once it is synced.
    pub fn end_creation(&self) {
        let (creating, created) = (Phase::Creating as u8, Phase::Created as u8);
        let phase = &self.state.phase;
        // Others it isn't the end of.
        let _ = phase.compare_exchange(creating, created, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Makes durable with what the directory begins, if that isn't done.
    ///
    /// # Errors
    /// An error of the system, now or before.
    pub fn sync_creation(&self) -> io::Result<()> {
        self.state.sync_creation()
    }
}

impl State {
    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Settled,
            1 => Phase::Creating,
            2 => Phase::Created,
            _ => Phase::Failed,
        }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Arc<dyn DiskFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins in the directory, which was locked, if it is empty.
    fn begin(&self) -> io::Result<()> {
        let disk = &*self.disk;
        remove_unsettled(disk)?;
        if disk.tier().is_some() || disk.list()?.iter().any(|name| is_stored(name)) {
            return Ok(());
        }
        disk.create(MARK_NAME)?;
        disk.sync_directory()?;
        self.phase.store(Phase::Creating as u8, Ordering::Release);
        Ok(())
    }

    /// What any write or change of a name comes behind.
    fn before_change(&self) -> io::Result<()> {
        match self.phase() {
            Phase::Settled | Phase::Creating => Ok(()),
            Phase::Created | Phase::Failed => self.sync_creation(),
        }
    }

    fn sync_creation(&self) -> io::Result<()> {
        // Held over the syncs: there is nothing that others may do before.
        let mut files = self.files();
        match self.phase() {
            Phase::Settled => return Ok(()),
            Phase::Creating | Phase::Created => {}
            Phase::Failed => {
                return Err(io::Error::other("the files of a new directory couldn't be synced"));
            }
        }
        let settled = self.make_durable(&files);
        let phase = if settled.is_ok() { Phase::Settled } else { Phase::Failed };
        self.phase.store(phase as u8, Ordering::Release);
        files.clear();
        settled
    }

    fn make_durable(&self, files: &BTreeMap<String, Arc<dyn DiskFile>>) -> io::Result<()> {
        for file in files.values() {
            file.sync()?;
        }
        self.disk.sync_directory()?;
        self.disk.remove(MARK_NAME)?;
        self.disk.sync_directory()
    }

    /// Syncs by `sync`, unless that is done by settling.
    fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.phase() {
            Phase::Settled => sync(),
            Phase::Creating => Ok(()),
            Phase::Created | Phase::Failed => self.sync_creation(),
        }
    }
}

impl NewDirectory {
    /// What `of` gives under `name`, noted if the directory isn't settled.
    fn named(
        &self,
        name: &str,
        of: impl FnOnce() -> io::Result<Arc<dyn DiskFile>>,
    ) -> io::Result<Arc<dyn DiskFile>> {
        let state = &self.state;
        if state.phase() == Phase::Settled {
            return of();
        }
        let mut files = state.files();
        let file = of()?;
        files.insert(name.to_owned(), Arc::clone(&file));
        Ok(Arc::new(NewFile { file, state: Arc::clone(state) }))
    }
}

impl Disk for NewDirectory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.state.before_change()?;
        self.named(name, || self.state.disk.create(name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.named(name, || self.state.disk.open(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.state.disk.list()?;
        names.retain(|name| name != MARK_NAME);
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state.before_change()?;
        let mut files = self.state.files();
        self.state.disk.rename(from, to)?;
        let file = files.remove(from);
        files.extend(file.map(|file| (to.to_owned(), file)));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.state.before_change()?;
        let mut files = self.state.files();
        self.state.disk.remove(name)?;
        files.remove(name);
        Ok(())
    }

    fn space(&self) -> io::Result<Option<DiskSpace>> {
        self.state.disk.space()
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.state.sync(|| self.state.disk.sync_directory())
    }

    fn lock(&self) -> io::Result<()> {
        self.state.disk.lock()?;
        let begun = self.state.begin();
        if begun.is_err() {
            self.state.disk.unlock();
        }
        begun
    }

    fn unlock(&self) {
        self.state.disk.unlock();
    }

    fn tier(&self) -> Option<&dyn Tier> {
        self.state.disk.tier()
    }
}

/// A file of a directory that was new when it was opened.
struct NewFile {
    file: Arc<dyn DiskFile>,
    state: Arc<State>,
}

impl DiskFile for NewFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, buffer)
    }

    fn read_into(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Range<usize>> {
        self.file.read_into(offset, bytes, buffer)
    }

    fn read_past_cache(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Range<usize>> {
        self.file.read_past_cache(offset, bytes, buffer)
    }

    fn forget_cached(&self, offset: u64, bytes: u64) -> bool {
        self.file.forget_cached(offset, bytes)
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.state.before_change()?;
        self.file.write_all_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.state.sync(|| self.file.sync())
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.state.before_change()?;
        self.file.set_bytes(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.state.before_change()?;
        self.file.allocate(bytes)
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
}
