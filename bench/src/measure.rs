//! The cost of an operation: wall time, processor time, bytes written.
//!
//! Processor time is the kernel's count in `/proc/<process>/stat`, of this process for an embedded
//! database and of all the server's processes for a server. Its resolution is a hundredth of a
//! second, so a row needs many operations; a child process that has ended is counted in the parent
//! that waited for it.
//!
//! Bytes are what reached the block device, by its own count: of *all* processes, so nothing else
//! may write meanwhile ([`idle_bytes_per_second`] shows it). Surprising, and the reason:
//! `write_bytes` in `/proc/<process>/io` counts whole folios of the page cache. With Linux 6.18 on
//! ext4, 8 KB written and synced inside a file that was written before count as 1 MB, while the
//! device gets 8 KB. PostgreSQL's log is such a file, and would have seemed to write fifty times as
//! much as it does.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::target::{Failure, Target};

/// The kernel's unit of processor time in `/proc`: hundredths of a second on every platform that
/// Linux has today.
const TICK_MICROS: u64 = 10_000;
/// `st_blocks` counts these, whatever the file system's block size.
const BLOCK_BYTES: u64 = 512;
/// A block device's `stat` counts these, whatever its sector size.
const SECTOR_BYTES: u64 = 512;
const IDLE: Duration = Duration::from_secs(3);
const PROBE_SYNCS: usize = 200;

/// The processes whose costs are counted.
#[derive(Clone, Copy, Debug)]
pub enum Processes {
    /// This process: the database is embedded.
    Own,
    /// A server's first process and its children.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "PostgreSQL alone is a server")
    )]
    Server {
        /// The first process.
        process: u32,
    },
}

/// The cost of a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The number of operations.
    pub operations: u64,
    /// The microseconds from the first one's begin to the last one's end.
    pub wall_micros: u64,
    /// Processor time, of all threads.
    pub cpu_micros: u64,
    /// Bytes that reached the device; `None` where the file system isn't on one that counts.
    pub written_bytes: Option<u64>,
}

/// Runs `work`, which is `operations` operations, and answers what it cost `target`.
pub fn measured(
    target: &dyn Target,
    operations: u64,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<Sample, Failure> {
    let cpu_before = cpu_micros(target.processes())?;
    let written_before = device_written_bytes(target.directory());
    let begin = Instant::now();
    work()?;
    let wall_micros = begin.elapsed().as_micros() as u64;
    let cpu_after = cpu_micros(target.processes())?;
    let written_after = device_written_bytes(target.directory());
    Ok(Sample {
        operations,
        wall_micros,
        cpu_micros: cpu_after.saturating_sub(cpu_before),
        written_bytes: written_before
            .zip(written_after)
            .map(|(before, after)| after.saturating_sub(before)),
    })
}

/// The processor time that this process and `target`'s have used so far, and that of all processes
/// of the machine.
#[derive(Clone, Copy)]
pub struct MachineUse {
    ours_micros: u64,
    all_micros: u64,
}

impl MachineUse {
    /// As it is now, when no target runs yet.
    pub fn before() -> Result<MachineUse, Failure> {
        Ok(MachineUse { ours_micros: cpu_micros(Processes::Own)?, all_micros: busy_micros()? })
    }

    /// Processor time that neither this process nor `target`'s has used since, a second of one
    /// processor's. The kernel's own threads count as others.
    pub fn others_since(self, target: &dyn Target, wall: Duration) -> Result<f64, Failure> {
        let mut ours = cpu_micros(Processes::Own)? - self.ours_micros;
        if let server @ Processes::Server { .. } = target.processes() {
            ours += cpu_micros(server)?;
        }
        let others = (busy_micros()? - self.all_micros).saturating_sub(ours);
        Ok(others as f64 / wall.as_micros().max(1) as f64)
    }
}

/// Returns the busy time of all processors since the machine began: user, nice, system, interrupts;
/// neither idle nor waiting for the disk.
fn busy_micros() -> Result<u64, Failure> {
    let stat = fs::read_to_string("/proc/stat")?;
    let fields: Option<Vec<u64>> = stat
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("cpu "))
        .and_then(|line| line.split_whitespace().map(|field| field.parse().ok()).collect());
    match fields.as_deref() {
        Some([user, nice, system, _idle, _waiting, interrupts, soft_interrupts, ..]) => {
            Ok((user + nice + system + interrupts + soft_interrupts) * TICK_MICROS)
        }
        _ => Err("no times in /proc/stat".into()),
    }
}

fn cpu_micros(processes: Processes) -> Result<u64, Failure> {
    match processes {
        Processes::Own => cpu_micros_of("self"),
        Processes::Server { process } => {
            let mut sum = cpu_micros_of(&process.to_string())?;
            let children = format!("/proc/{process}/task/{process}/children");
            for child in fs::read_to_string(children)?.split_whitespace() {
                // A child that has just ended is in its parent's count, next time.
                sum += cpu_micros_of(child).unwrap_or(0);
            }
            Ok(sum)
        }
    }
}

fn cpu_micros_of(process: &str) -> Result<u64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    Ok(cpu_ticks(&stat).ok_or("no times in /proc/.../stat")? * TICK_MICROS)
}

/// User and system time of a process and of its children that have ended: fields 14 to 17, of which
/// the second may itself contain blanks and ends with the last `)`.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().ok()).sum()
}

/// Bytes that the block device below `directory` has written since it is there.
fn device_written_bytes(directory: &Path) -> Option<u64> {
    let device = fs::metadata(directory).ok()?.dev();
    // As the C library's major() and minor() take it apart.
    let major = ((device >> 32) & 0xffff_f000) | ((device >> 8) & 0xfff);
    let minor = ((device >> 12) & 0xffff_ff00) | (device & 0xff);
    let stat = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    written_sectors(&stat).map(|sectors| sectors * SECTOR_BYTES)
}

/// The seventh field of a block device's `stat`.
fn written_sectors(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(6)?.parse().ok()
}

/// Returns the bytes that other processes write to the device, measured over a short idle time.
pub fn idle_bytes_per_second(directory: &Path) -> Option<u64> {
    let before = device_written_bytes(directory)?;
    thread::sleep(IDLE);
    let after = device_written_bytes(directory)?;
    Some((after - before) / IDLE.as_secs())
}

/// Bytes that the files below `directory` occupy.
pub fn disk_bytes(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A server may remove a file at any time.
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
pub fn sync_probe_micros(directory: &Path) -> io::Result<u64> {
    let path = directory.join("probe");
    let mut file = fs::File::create(&path)?;
    let mut taken = Vec::with_capacity(PROBE_SYNCS);
    for _ in 0..PROBE_SYNCS {
        let begin = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        taken.push(begin.elapsed().as_micros() as u64);
    }
    fs::remove_file(&path)?;
    taken.sort_unstable();
    Ok(taken[PROBE_SYNCS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_behind_the_name() {
        let stat = "17 (a name) b) S 1 17 17 0 -1 4194560 1 2 3 4 5 60 7 800 20 0 1 0 9 9 9";
        assert_eq!(cpu_ticks(stat), Some(5 + 60 + 7 + 800));
        assert_eq!(cpu_ticks("17 (x) S 1 17"), Some(0));
        assert_eq!(cpu_ticks("nothing"), None);
    }

    #[test]
    fn sectors_written_are_the_seventh_field() {
        let stat = "   10 20 30 40 50 60 70 80 90 100 110\n";
        assert_eq!(written_sectors(stat), Some(70));
        assert_eq!(written_sectors("1 2 3"), None);
    }
}
