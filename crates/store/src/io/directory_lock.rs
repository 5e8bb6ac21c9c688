//! The lock of a data directory: one process at a time has it open.
//!
//! The file `LOCK` is locked, and so is the directory itself, since that file may be taken for a
//! stale one and removed.
//!
//! *Forks*: a lock of the system is of the open file, which a child that is forked shares. It would
//! outlast the process that took it for as long as a child lives, though the child can't use what
//! it protects: it has none of its parent's threads. So a child closes what it inherited
//! ([`close_inherited_locks`]), and the process that took a lock unlocks it and doesn't only close
//! it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::OF_FILES;

pub(super) const LOCK_NAME: &str = "LOCK";
const REPLACED: &str = "the data directory was removed, moved or begun anew while this process had it: what lies \
                        there now isn't its own";
const NO_PANIC: &str = "no panic while the lock is held";

/// A directory's lock, held or not.
#[derive(Default)]
pub(super) struct DirectoryLock(Arc<Mutex<Option<Held>>>);

struct Held {
    file: File,
    /// The directory, opened for this alone; `None` where the system can't lock directories, as
    /// some network file systems can't.
    directory: Option<File>,
    /// The process that took it.
    process: u32,
}

type Locks = Mutex<Vec<Weak<Mutex<Option<Held>>>>>;

/// Those of this process.
static LOCKS: Locks = Mutex::new(Vec::new());

/// Closes, in a child that was just forked, the locks of its parent, whose they stay until it ends.
/// The child uses nothing of what they protect.
pub fn close_inherited_locks() {
    close_all(&LOCKS);
}

fn close_all(locks: &Locks) {
    // A lock that another thread of the parent held at the fork stays locked for good: the child
    // hasn't got that thread. That is so for a moment only, while a lock is taken or let go.
    let Ok(mut locks) = locks.try_lock() else { return };
    for lock in std::mem::take(&mut *locks).iter().filter_map(Weak::upgrade) {
        if let Ok(mut held) = lock.try_lock() {
            // Unlocked it would be for the parent, too.
            drop(held.take());
        }
    }
}

impl DirectoryLock {
    /// Takes the lock of the directory at `path`.
    ///
    /// # Errors
    /// `WouldBlock` if it is taken, by this process or another; what the system says.
    pub fn take(&self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(OF_FILES);
        let file = options.open(path.join(LOCK_NAME))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::from(io::ErrorKind::WouldBlock),
            TryLockError::Error(error) => error,
        })?;
        let directory = File::open(path)?;
        let directory = match directory.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            locked => locked.is_ok().then_some(directory),
        };
        *self.held() = Some(Held { file, directory, process: process::id() });
        let mut locks = LOCKS.lock().expect(NO_PANIC);
        locks.retain(|lock| lock.strong_count() > 0);
        locks.push(Arc::downgrade(&self.0));
        Ok(())
    }

    /// Lets go of it, if this process took it.
    pub fn release(&self) {
        // A child that was forked only closes what it has of its parent.
        let own = self.held().take().filter(|held| held.process == process::id());
        if let Some(Held { file, directory, .. }) = own {
            // Such a child may share them: to close them isn't enough. Whatever is wrong with them,
            // they end with the process.
            drop((file.unlock(), directory.map(|directory| directory.unlock())));
        }
    }

    /// Whether it is held here.
    pub fn is_held(&self) -> bool {
        self.held().is_some()
    }

    /// Checks that another process that wants the lock, if it is held here, would want this one.
    ///
    /// # Errors
    /// Says that it is another's directory by now; what the system says.
    pub fn check(&self, path: &Path) -> io::Result<()> {
        match self.held().as_ref().filter(|held| held.directory.is_none()) {
            Some(held) => check_same(&held.file, &path.join(LOCK_NAME)),
            None => Ok(()),
        }
    }

    /// Makes it what it is on a system that can't lock directories.
    #[cfg(test)]
    pub fn forget_directory(&self) {
        self.held().as_mut().expect("it is held").directory = None;
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().expect(NO_PANIC)
    }
}

/// Checks that `path` leads to a file that is open.
pub(super) fn check_same(file: &File, path: &Path) -> io::Result<()> {
    let held = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) if (there.dev(), there.ino()) == (held.dev(), held.ino()) => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Err(io::Error::other(REPLACED)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::io::{Chance, SystemChance};

    fn temporary_directory() -> PathBuf {
        let mut own = [0; 8];
        SystemChance.fill(&mut own);
        let name = format!("frond-lock-{:016x}", u64::from_le_bytes(own));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a new directory");
        path
    }

    /// The files of a lock as the other side of a fork has them: they share it.
    fn shared_files(lock: &DirectoryLock) -> Vec<File> {
        let held = lock.held();
        let Held { file, directory, .. } = held.as_ref().expect("it is held");
        let files = std::iter::once(file).chain(directory);
        files.map(|file| file.try_clone().expect("open")).collect()
    }

    #[test]
    fn a_lock_is_one_processs_until_it_is_let_go() {
        let path = temporary_directory();
        let (lock, other) = (DirectoryLock::default(), DirectoryLock::default());
        lock.take(&path).expect("no process has it");
        let refused = other.take(&path).expect_err("it is taken");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        lock.release();
        other.take(&path).expect("it was let go");
        std::fs::remove_dir_all(&path).expect("ours");
    }

    #[test]
    fn a_child_that_was_forked_takes_no_lock_from_its_parent_and_holds_none_after_it() {
        let path = temporary_directory();
        let (lock, other) = (DirectoryLock::default(), DirectoryLock::default());
        lock.take(&path).expect("no process has it");
        let of_parent = shared_files(&lock);
        close_all(&Mutex::new(vec![Arc::downgrade(&lock.0)]));
        let refused = other.take(&path).expect_err("its parent's");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(of_parent);
        other.take(&path).expect("the parent has ended, and the child has none");
        std::fs::remove_dir_all(&path).expect("ours");
    }

    /// A process that forked a child which didn't close the locks lets go of them all the same; the
    /// child doesn't.
    #[test]
    fn only_the_process_that_took_a_lock_lets_go_of_it() {
        for is_child in [false, true] {
            let path = temporary_directory();
            let (lock, other) = (DirectoryLock::default(), DirectoryLock::default());
            lock.take(&path).expect("no process has it");
            let shared = shared_files(&lock);
            if is_child {
                lock.held().as_mut().expect("it is held").process = 0;
            }
            lock.release();
            assert_eq!(other.take(&path).is_err(), is_child);
            drop(shared);
            other.release();
            other.take(&path).expect("nothing holds it");
            std::fs::remove_dir_all(&path).expect("ours");
        }
    }
}
