//! The resources that a process has used so far, by the kernel's count.
//!
//! Each target and workload run in a process of their own, so that its memory and its processor
//! time are theirs alone: of all threads, those in the background and those that have ended
//! included. *Bytes written* are what the process handed to `write` and its like (`wchar`):
//! `write_bytes` counts whole folios of the page cache, and would say 1 MB for 8 KB synced inside
//! an old file. No target writes through a mapping. The work of the kernel's own threads for the
//! file system isn't counted.

use std::fs;
use std::io::{self, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use crate::target::Failure;

/// The kernel's unit of processor time in `/proc`, on every platform that Linux has today.
const TICK_SECONDS: f64 = 0.01;
/// `st_blocks` counts these, whatever the file system's block size.
const BLOCK_BYTES: u64 = 512;
const PROBE_SYNCS: usize = 200;
const GB: f64 = 1e9;
const PROBE_MEMORY_BYTES: usize = 512 << 20;

/// Processor time of this process, in seconds; a multiple of a hundredth.
pub fn cpu_seconds() -> Result<f64, Failure> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // Fields 14 and 15; the second may itself contain blanks, and ends with the last `)`.
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?;
    let times = fields.split_whitespace().skip(11).take(2);
    let ticks: Result<u64, _> = times.map(str::parse::<u64>).sum();
    Ok(ticks? as f64 * TICK_SECONDS)
}

/// Processor time of this process's living threads, in seconds; exact, but without those that
/// ended.
pub fn cpu_seconds_of_threads() -> Result<f64, Failure> {
    cpu_seconds_of_threads_named(|_| true)
}

/// The same, of threads whose names are wanted.
pub fn cpu_seconds_of_threads_named(is_wanted: impl Fn(&str) -> bool) -> Result<f64, Failure> {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let path = task?.path();
        if is_wanted(fs::read_to_string(path.join("comm"))?.trim_end()) {
            let schedule = fs::read_to_string(path.join("schedstat"))?;
            let running = schedule.split_whitespace().next().ok_or("an empty schedstat")?;
            nanos += running.parse::<u64>()?;
        }
    }
    Ok(nanos as f64 / 1e9)
}

/// The processor time of the calling thread, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSeconds {
    /// The seconds on a processor.
    pub running: f64,
    /// Ready to run, while others had them all.
    pub waiting: f64,
}

impl ThreadSeconds {
    /// Reads the seconds up to now.
    pub fn now() -> Result<ThreadSeconds, Failure> {
        let schedule = fs::read_to_string("/proc/thread-self/schedstat")?;
        let mut nanos = schedule.split_whitespace().map(str::parse::<u64>);
        let mut seconds = || -> Result<f64, Failure> {
            Ok(nanos.next().ok_or("a short schedstat")?? as f64 / 1e9)
        };
        Ok(ThreadSeconds { running: seconds()?, waiting: seconds()? })
    }

    /// Returns the difference from `before`.
    pub fn since(self, before: ThreadSeconds) -> ThreadSeconds {
        ThreadSeconds {
            running: self.running - before.running,
            waiting: self.waiting - before.waiting,
        }
    }
}

/// Bytes that this process has written.
pub fn written_bytes() -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    Ok(line.ok_or("no wchar in /proc/self/io")?.parse()?)
}

/// Bytes that were read from a disk for this process, through the file system's cache, by calls and
/// by faults.
pub fn disk_read_bytes() -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    Ok(line.ok_or("no read_bytes in /proc/self/io")?.parse()?)
}

/// The most memory that this process has had, in bytes.
pub fn memory_bytes_max() -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.ok_or("no VmHWM in /proc/self/status")?.parse::<u64>()? << 10)
}

/// Bytes that the files below `directory` occupy.
pub fn disk_bytes(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A background thread may remove a file at any time.
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => sum += disk_bytes(&entry.path())?,
            Ok(metadata) => sum += metadata.blocks() * BLOCK_BYTES,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sum)
}

/// Returns the time that the disk itself takes to append and sync 4 KB: the median, in
/// microseconds.
pub fn sync_probe_micros(directory: &Path) -> io::Result<f64> {
    let path = directory.join("probe");
    let mut file = fs::File::create(&path)?;
    let mut taken = Vec::with_capacity(PROBE_SYNCS);
    for _ in 0..PROBE_SYNCS {
        let begin = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        taken.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    fs::remove_file(&path)?;
    taken.sort_unstable_by(f64::total_cmp);
    Ok(taken[PROBE_SYNCS / 2])
}

/// Processor time for writing a GB to a file, in seconds: into pages that the kernel's cache takes
/// for it, and over those. In a virtual machine the first may cost ten times the second, since its
/// host gives memory when it is touched, and takes back what is free for some seconds; then all who
/// write new files pay for it.
pub fn memory_probe_seconds(directory: &Path) -> Result<[f64; 2], Failure> {
    let path = directory.join("probe");
    let mut file = fs::File::create(&path)?;
    let piece = vec![7; 1 << 20];
    let mut seconds = [0.0; 2];
    for taken in &mut seconds {
        file.rewind()?;
        let before = cpu_seconds_of_threads()?;
        for _ in 0..PROBE_MEMORY_BYTES / piece.len() {
            file.write_all(&piece)?;
        }
        *taken = (cpu_seconds_of_threads()? - before) * GB / PROBE_MEMORY_BYTES as f64;
    }
    fs::remove_file(&path)?;
    Ok(seconds)
}

/// The cost of a piece of work.
pub struct Cost {
    /// The seconds from begin to end.
    pub wall_seconds: f64,
    /// The processor time of all threads.
    pub cpu_seconds: f64,
}

/// A begun measurement.
pub struct Meter {
    begin: Instant,
    cpu_before: f64,
}

impl Meter {
    /// Begins.
    pub fn start() -> Result<Meter, Failure> {
        Ok(Meter { cpu_before: cpu_seconds()?, begin: Instant::now() })
    }

    /// Returns the cost since the beginning.
    pub fn cost(&self) -> Result<Cost, Failure> {
        let wall_seconds = self.begin.elapsed().as_secs_f64();
        Ok(Cost { wall_seconds, cpu_seconds: cpu_seconds()? - self.cpu_before })
    }
}
