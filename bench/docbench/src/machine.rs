//! The machine: what it is, what its disk takes for a sync, and how often the disk was flushed.
//!
//! A write that was synced makes the disk flush its cache, and the block device counts that. So a
//! target that acknowledges writes without syncing is found: one client's writes, one after the
//! other, with fewer flushes than writes. Where the disk has no cache that must be flushed nothing
//! is counted, and nothing can be said.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::results::Machine;

const PROBE_SYNCS: usize = 200;
/// `st_blocks` counts these, whatever the file system's block size.
const BLOCK_BYTES: u64 = 512;
/// The kernel's unit of processor time in `/proc`, on every platform that Linux has today.
const TICK_SECONDS: f64 = 0.01;

/// The machine that we run on, with its disk below `directory`.
pub fn machine(directory: &Path) -> Machine {
    let field = |path: &str, name: &str, end: char| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(end).map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    let kilobytes = field("/proc/meminfo", "MemTotal", ':');
    let kilobytes = kilobytes.split(' ').next().and_then(|text| text.parse::<u64>().ok());
    Machine {
        processor: field("/proc/cpuinfo", "model name", ':'),
        processors: std::thread::available_parallelism().map_or(0, |count| count.get()),
        memory_bytes: kilobytes.unwrap_or(0) << 10,
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        system: field("/etc/os-release", "PRETTY_NAME", '=').trim_matches('"').to_owned(),
        disk: disk(directory),
        load: load(),
    }
}

/// Load averages over 1, 5 and 15 minutes.
pub fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// The commit of the sources in the current directory, and whether the tree differs from it.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match (git(&["rev-parse", "--short", "HEAD"]), git(&["status", "--porcelain", "-uno"])) {
        (Some(commit), Some(changes)) if changes.is_empty() => commit,
        (Some(commit), _) => format!("{commit} with changes"),
        _ => "not in a repository".into(),
    }
}

fn disk(directory: &Path) -> String {
    let Ok(directory) = fs::canonicalize(directory) else {
        return String::new();
    };
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let found = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (device, place, kind) = (words.next()?, words.next()?, words.next()?);
            directory.starts_with(place).then(|| (place.len(), format!("{kind} on {device}")))
        })
        .max_by_key(|(length, _)| *length);
    found.map_or(String::new(), |(_, text)| text)
}

/// Returns the time that the disk takes to append and sync 4 KB: the median, in microseconds.
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

/// Returns how often the block device below `directory` was flushed since the machine began; `None`
/// where it doesn't count.
pub fn flushes(directory: &Path) -> Option<u64> {
    let device = fs::metadata(directory).ok()?.dev();
    // As the C library's major() and minor() take it apart.
    let major = ((device >> 32) & 0xffff_f000) | ((device >> 8) & 0xfff);
    let minor = ((device >> 12) & 0xffff_ff00) | (device & 0xff);
    let base = format!("/sys/dev/block/{major}:{minor}");
    // A partition's own file has no such count on older kernels: then its disk's has.
    [format!("{base}/stat"), format!("{base}/../stat")].iter().find_map(|path| {
        let stat = fs::read_to_string(path).ok()?;
        stat.split_whitespace().nth(15)?.parse().ok()
    })
}

/// Whether the disk below `directory` counts a flush for each sync.
pub fn counts_flushes(directory: &Path) -> bool {
    let Some(before) = flushes(directory) else {
        return false;
    };
    sync_probe_micros(directory).is_ok()
        && flushes(directory).is_some_and(|after| after - before >= PROBE_SYNCS as u64)
}

/// Writes what waits and empties the operating system's caches of files.
///
/// # Errors
/// Whatever the system answers: it lets only root do that.
pub fn drop_caches() -> io::Result<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3")
}

/// Bytes that the files below `directory` occupy.
pub fn disk_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    // A server may remove a file at any time, so what is gone counts nothing.
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * BLOCK_BYTES,
        Err(_) => 0,
    });
    sizes.sum()
}

/// Processor time of some processes and their children so far, in seconds.
pub fn cpu_seconds(processes: &[u32]) -> f64 {
    let of = |process: u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        cpu_ticks(&stat).unwrap_or(0) as f64 * TICK_SECONDS
    };
    let mut sum = 0.0;
    for process in processes {
        sum += of(*process);
        let children = format!("/proc/{process}/task/{process}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        if *process != std::process::id() {
            sum += children.split_whitespace().flat_map(str::parse).map(of).sum::<f64>();
        }
    }
    sum
}

/// User and system time of a process and of its children that have ended: fields 14 to 17, of which
/// the second may itself contain blanks and ends with the last `)`.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_behind_the_name() {
        let stat = "17 (a name) b) S 1 17 17 0 -1 4194560 1 2 3 4 5 60 7 800 20 0 1 0 9 9 9";
        assert_eq!(cpu_ticks(stat), Some(5 + 60 + 7 + 800));
        assert_eq!(cpu_ticks("nothing"), None);
    }

    #[test]
    fn the_machine_is_known() {
        let machine = machine(Path::new("/"));
        assert!(machine.processors > 0 && machine.memory_bytes > 1 << 20, "{machine:?}");
    }
}
