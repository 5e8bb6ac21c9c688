//! The operating system's disk, clock and randomness.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::io::Errno;
#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, clock_gettime};

use super::direct::Direct;
use super::directory_lock::{DirectoryLock, LOCK_NAME, check_same};
use super::{Chance, Clock, Disk, DiskFile, DiskSpace, OF_DIRECTORIES, OF_FILES};

/// A directory of the operating system.
///
/// Before a name is used it is looked whether the directory is still the one that was opened: once
/// another has its path, its files are another process's. Where the system can't lock directories,
/// no name is used any more once the lock is another file ([`super::directory_lock`]).
pub struct SystemDisk {
    path: PathBuf,
    directory: File,
    lock: DirectoryLock,
}

impl SystemDisk {
    /// Opens `path`, creating it and its parents where missing, for their owner alone.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn open(path: &Path) -> io::Result<SystemDisk> {
        DirBuilder::new().recursive(true).mode(OF_DIRECTORIES).create(path)?;
        let path = path.canonicalize()?;
        match path.parent().map(File::open) {
            Some(Ok(parent)) => parent.sync_all()?,
            // A process that may not look into it has not just made a directory there.
            Some(Err(error)) if error.kind() != io::ErrorKind::PermissionDenied => {
                return Err(error);
            }
            _ => {}
        }
        let directory = File::open(&path)?;
        Ok(SystemDisk { path, directory, lock: DirectoryLock::default() })
    }

    /// Checks that the path leads to the directory that was opened, and that the lock, if this
    /// process holds it, is what another would try to lock.
    fn check_own(&self) -> io::Result<()> {
        check_same(&self.directory, &self.path)?;
        self.lock.check(&self.path)
    }
}

fn may_not_write(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

impl Disk for SystemDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.check_own()?;
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(OF_FILES);
        let file = options.open(path)?;
        Ok(Arc::new(SystemFile::new(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.check_own()?;
        let path = self.path.join(name);
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            // A backup on a read-only disk, or of another owner, can be read. A process that means
            // to write took the lock.
            Err(error) if may_not_write(&error) && !self.lock.is_held() => File::open(path)?,
            opened => opened?,
        };
        Ok(Arc::new(SystemFile::new(file)))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.check_own()?;
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && entry.file_type()?.is_file()
                && name != LOCK_NAME
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.check_own()?;
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.check_own()?;
        std::fs::remove_file(self.path.join(name))
    }

    fn space(&self) -> io::Result<Option<DiskSpace>> {
        let found = rustix::fs::fstatvfs(&self.directory)?;
        let bytes = found.f_blocks.saturating_mul(found.f_frsize);
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        // Some network file systems know neither.
        Ok((bytes > 0).then_some(DiskSpace { bytes, free }))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn lock(&self) -> io::Result<()> {
        self.lock.take(&self.path)
    }

    fn unlock(&self) {
        self.lock.release();
    }
}

struct SystemFile {
    file: File,
    direct: Direct,
}

impl SystemFile {
    fn new(file: File) -> SystemFile {
        SystemFile { file, direct: Direct::default() }
    }
}

impl DiskFile for SystemFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn read_past_cache(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Range<usize>> {
        match self.direct.read(&self.file, offset, bytes, buffer)? {
            Some(read) => Ok(read),
            None => self.read_into(offset, bytes, buffer),
        }
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

/// The operating system's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn steady_micros(&self) -> i64 {
        let now = clock_gettime(STEADY_CLOCK);
        now.tv_sec.saturating_mul(MICROS_PER_SECOND).saturating_add(now.tv_nsec / NANOS_PER_MICRO)
    }
}

/// Linux's goes on while the machine sleeps.
#[cfg(any(target_os = "linux", target_os = "android"))]
const STEADY_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const STEADY_CLOCK: ClockId = ClockId::Monotonic;

const MICROS_PER_SECOND: i64 = 1_000_000;
const NANOS_PER_MICRO: i64 = 1_000;

/// The operating system's randomness.
pub struct SystemChance;

impl Chance for SystemChance {
    fn fill(&self, buffer: &mut [u8]) {
        fill_by_call(buffer)
            .or_else(|_| fill_from_device(buffer))
            .expect("the operating system always has random bytes");
    }
}

/// Fills `buffer` without a file: a container of one program has no devices.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn fill_by_call(buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match getrandom(&mut buffer[filled..], GetRandomFlags::empty()) {
            // A signal may cut it short.
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn fill_by_call(_buffer: &mut [u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// For systems that have no such call, or don't allow it.
fn fill_from_device(buffer: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(buffer)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn temporary_disk() -> (PathBuf, SystemDisk) {
        let mut own = [0; 8];
        SystemChance.fill(&mut own);
        let name = format!("frond-disk-{:016x}", u64::from_le_bytes(own));
        let path = std::env::temp_dir().join(name);
        let disk = SystemDisk::open(&path).expect("a new directory");
        (path, disk)
    }

    /// Each alone fills all of it, also where one call of the system returns less.
    #[test]
    #[cfg(target_os = "linux")]
    fn random_bytes_come_by_a_call_and_from_the_device() {
        for fill in [fill_by_call, fill_from_device] {
            let mut bytes = vec![0; 1 << 20];
            fill(&mut bytes).expect("random bytes");
            // By chance, zeros of this length come once in 2^64 beginnings.
            assert!(bytes.chunks(8).all(|eight| eight != [0; 8]));
        }
    }

    /// The effect of a sync shows after a power cut only. But Linux refuses to sync files that lie
    /// on no disk: so a refusal shows that it was asked.
    #[test]
    #[cfg(target_os = "linux")]
    fn syncs_of_names_and_of_files_reach_the_system() {
        let path = Path::new("/proc/self");
        let refused = |done: io::Result<()>| {
            assert_eq!(done.expect_err("no disk").kind(), io::ErrorKind::InvalidInput);
        };
        let directory = File::open(path).expect("it is there");
        let lock = DirectoryLock::default();
        let disk = SystemDisk { path: path.to_owned(), directory, lock };
        refused(disk.sync_directory());
        refused(disk.open("comm").expect("it is there").sync());
        // The name of a directory that is opened lies in the one above.
        refused(SystemDisk::open(path).map(|_| ()));
    }

    /// A server whose directory was removed or moved touches nothing of the one that has its path.
    #[test]
    fn a_directory_that_another_has_begun_anew_is_left_alone() {
        for is_moved in [false, true] {
            let (path, old) = temporary_disk();
            let elsewhere = path.with_extension("moved");
            old.lock().expect("the only one");
            old.create("a").expect("it is its own");
            match is_moved {
                true => std::fs::rename(&path, &elsewhere).expect("moved"),
                false => std::fs::remove_dir_all(&path).expect("removed"),
            }
            let new = SystemDisk::open(&path).expect("made anew");
            new.lock().expect("another directory");
            for name in ["a", "b"] {
                let file = new.create(name).expect("it is empty");
                file.write_all_at(0, b"new").expect("written");
            }
            let opened = old.open("b").map(drop);
            for done in [old.create("c").map(drop), opened, old.rename("a", "b"), old.remove("b")] {
                assert!(done.expect_err("another's").to_string().contains("begun anew"));
            }
            assert_eq!(new.list().expect("read"), ["a", "b"]);
            assert_eq!(new.open("b").expect("it is there").bytes().expect("read"), 3);
            std::fs::remove_dir_all(&path).expect("removed");
            drop(std::fs::remove_dir_all(elsewhere));
        }
    }

    /// Only one process at a time makes files in the directory, whether that can be locked or not.
    #[test]
    fn a_lock_that_was_removed_lets_no_second_process_in() {
        let (path, disk) = temporary_disk();
        disk.lock().expect("the only one");
        std::fs::remove_file(path.join(LOCK_NAME)).expect("taken for a stale one");
        let other = SystemDisk::open(&path).expect("it is there");
        assert_eq!(other.lock().expect_err("in use").kind(), io::ErrorKind::WouldBlock);
        disk.create("a").expect("it has the directory");
        disk.unlock();
        other.lock().expect("the first has let go");
        // As on a system that can't lock directories.
        other.lock.forget_directory();
        other.create("b").expect("its lock is there");
        std::fs::remove_file(path.join(LOCK_NAME)).expect("it is there");
        for done in [other.create("c").map(drop), other.rename("a", "c"), other.remove("a")] {
            assert!(done.expect_err("another may come").to_string().contains("begun anew"));
        }
        std::fs::remove_dir_all(&path).expect("removed");
    }

    /// Also at its end, which is no sector's, what was written a moment ago, and when the name is
    /// gone.
    #[test]
    fn a_file_is_read_past_the_cache_wherever_it_is_asked_for() {
        let (path, disk) = temporary_disk();
        let file = disk.create("a").expect("a new file");
        let content: Vec<u8> = (0..20_001u32).flat_map(|number| number.to_le_bytes()).collect();
        file.write_all_at(0, &content).expect("written");
        let mut buffer = Vec::new();
        let ends = [0, 1, 511, 512, 513, 4_095, 4_096, 9_000, content.len() - 1, content.len()];
        let mut check = |content: &[u8]| {
            for (position, start) in ends.iter().enumerate() {
                for end in &ends[position..] {
                    let read = file.read_past_cache(*start as u64, end - start, &mut buffer);
                    assert_eq!(buffer[read.expect("read")], content[*start..*end]);
                }
            }
            let beyond = file.read_past_cache(content.len() as u64 - 10, 11, &mut buffer);
            assert_eq!(beyond.expect_err("too short").kind(), io::ErrorKind::UnexpectedEof);
        };
        check(&content);
        file.write_all_at(600, b"changed").expect("written");
        disk.remove("a").expect("there");
        let mut changed = content.clone();
        changed[600..607].copy_from_slice(b"changed");
        check(&changed);
        std::fs::remove_dir_all(&path).expect("ours");
    }

    #[test]
    fn only_what_asks_for_rights_is_tried_without_them() {
        let check = |kind: io::ErrorKind, expected| {
            assert_eq!(may_not_write(&kind.into()), expected, "{kind}");
        };
        check(io::ErrorKind::ReadOnlyFilesystem, true);
        check(io::ErrorKind::PermissionDenied, true);
        check(io::ErrorKind::NotFound, false);
    }

    /// The tests' own umask lets all others read.
    #[test]
    fn created_files_are_private_to_their_owner() {
        let (path, disk) = temporary_disk();
        disk.create("a").expect("a new file");
        disk.lock().expect("no process has it");
        let mode = |path: &Path| {
            std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
        };
        let modes = [mode(&path), mode(&path.join("a")), mode(&path.join(LOCK_NAME))];
        assert_eq!(modes, [OF_DIRECTORIES, OF_FILES, OF_FILES]);
        std::fs::remove_dir_all(&path).expect("ours");
    }

    #[test]
    fn a_file_that_is_opened_again_is_read_and_written() {
        let (path, disk) = temporary_disk();
        disk.create("a").expect("a new file").write_all_at(0, b"abc").expect("written");
        let file = disk.open("a").expect("it is there");
        file.write_all_at(1, b"x").expect("written");
        let mut bytes = [0; 3];
        file.read_exact_at(0, &mut bytes).expect("read");
        assert_eq!(&bytes, b"axc");
        let long = crate::io::ALLOCATED_BYTES as u64 * 2 + 5;
        file.allocate(long).expect("room");
        assert_eq!(file.bytes().expect("it is open"), long);
        std::fs::remove_dir_all(&path).expect("ours");
    }

    #[test]
    fn the_clock_shows_the_time_of_day_and_goes_on() {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("later");
        assert!(since_1970.as_micros() as i64 - SystemClock.now_micros() < 3_600_000_000);
        let (begun, steady) = (crate::io::steady_now(), SystemClock.steady_micros());
        crate::io::pause(std::time::Duration::from_millis(5));
        let passed = SystemClock.steady_micros() - steady;
        assert!(passed >= 5_000, "{passed} microseconds");
        assert!(passed <= begun.elapsed().as_micros() as i64 + 1_000_000, "{passed} microseconds");
    }

    #[test]
    fn a_read_only_file_is_opened_for_reading_only() {
        let (path, disk) = temporary_disk();
        disk.create("a").expect("a new file").write_all_at(0, b"abc").expect("written");
        let allow = |mode| {
            std::fs::set_permissions(path.join("a"), PermissionsExt::from_mode(mode))
                .expect("ours");
        };
        allow(0o400);
        let mut bytes = [0; 3];
        disk.open("a").expect("to read").read_exact_at(0, &mut bytes).expect("read");
        assert_eq!(&bytes, b"abc");
        // To root everything is allowed.
        let is_root = OpenOptions::new().write(true).open(path.join("a")).is_ok();
        disk.lock().expect("no process has it");
        assert_eq!(disk.open("a").is_ok(), is_root);
        std::fs::remove_dir_all(&path).expect("ours");
    }
}
