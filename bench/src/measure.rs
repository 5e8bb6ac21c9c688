//! What an operation costs: wall time, processor time, bytes written.
//!
//! Processor time and bytes are the kernel's own counts in `/proc`, of this process for an embedded
//! database and of all the server's processes for a server. Surprises:
//! - Processor time has a resolution of a hundredth of a second: a row needs many operations.
//! - `write_bytes` counts pages as they become dirty, so a page that is written twice before it
//!   reaches the disk counts once.
//! - A child process that has ended is counted in the parent that waited for it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use crate::target::{Failure, Target};

/// The kernel's unit of processor time in `/proc`: hundredths of a second on every platform that
/// Linux has today.
const TICK_MICROS: u64 = 10_000;
/// `st_blocks` counts these, whatever the file system's block size.
const BLOCK_BYTES: u64 = 512;
const PROBE_SYNCS: usize = 200;

/// Whose costs are counted.
#[derive(Clone, Copy, Debug)]
pub enum Processes {
    /// This process: the database is embedded.
    Own,
    /// A server's first process and its children.
    Server {
        /// The first process.
        process: u32,
    },
}

/// What has been used since the processes began.
#[derive(Clone, Copy, Default, Debug)]
struct Usage {
    cpu_micros: u64,
    written_bytes: u64,
}

/// What a row of the table has cost.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// How many operations.
    pub operations: u64,
    /// From the first one's begin to the last one's end.
    pub wall_micros: u64,
    /// Processor time, of all threads.
    pub cpu_micros: u64,
    /// Bytes handed to the disk.
    pub written_bytes: u64,
}

/// Runs `work`, which is `operations` operations, and answers what it cost `target`.
pub fn measured(
    target: &dyn Target,
    operations: u64,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<Sample, Failure> {
    let before = usage(target.processes())?;
    let begin = Instant::now();
    work()?;
    let wall_micros = begin.elapsed().as_micros() as u64;
    let after = usage(target.processes())?;
    Ok(Sample {
        operations,
        wall_micros,
        cpu_micros: after.cpu_micros.saturating_sub(before.cpu_micros),
        written_bytes: after.written_bytes.saturating_sub(before.written_bytes),
    })
}

fn usage(processes: Processes) -> Result<Usage, Failure> {
    match processes {
        Processes::Own => usage_of("self"),
        Processes::Server { process } => {
            let mut sum = usage_of(&process.to_string())?;
            let children = format!("/proc/{process}/task/{process}/children");
            for child in fs::read_to_string(children)?.split_whitespace() {
                // A child that has just ended is in its parent's count, next time.
                if let Ok(usage) = usage_of(child) {
                    sum.cpu_micros += usage.cpu_micros;
                    sum.written_bytes += usage.written_bytes;
                }
            }
            Ok(sum)
        }
    }
}

fn usage_of(process: &str) -> Result<Usage, Failure> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let io = fs::read_to_string(format!("/proc/{process}/io"))?;
    Ok(Usage {
        cpu_micros: cpu_ticks(&stat).ok_or("no times in /proc/.../stat")? * TICK_MICROS,
        written_bytes: written(&io).ok_or("no write_bytes in /proc/.../io")?,
    })
}

/// User and system time of a process and of its children that have ended: fields 14 to 17, of which
/// the second may itself contain blanks and ends with the last `)`.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().ok()).sum()
}

fn written(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.trim().parse().ok()
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

/// What the disk itself takes for 4 KB appended and synced: the median, in microseconds.
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
    fn written_bytes_are_those_that_go_to_the_disk() {
        let io = "wchar: 5\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n";
        assert_eq!(written(io), Some(4096));
        assert_eq!(written("wchar: 5\n"), None);
    }
}
