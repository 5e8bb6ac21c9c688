//! The system's counts for this process: time on processors, page faults, threads.
//!
//! Linux has them in `/proc/self/stat`: numbers behind the program's name, which stands in
//! parentheses and may hold anything (proc(5)). Elsewhere there are none.

use std::fs;

/// The system's counts for this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessCounts {
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Microseconds on processors in the program.
    pub user_micros: u64,
    /// Microseconds on processors in the system.
    pub system_micros: u64,
    /// Threads now.
    pub threads: u64,
    /// The most memory that it ever had.
    pub resident_peak_bytes: u64,
}

/// The positions of the numbers, counted from that behind the name.
const MINOR_FAULTS: usize = 7;
const MAJOR_FAULTS: usize = 9;
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const THREADS: usize = 17;

impl ProcessCounts {
    /// Asks the system; `None` where it doesn't say.
    pub fn read() -> Option<ProcessCounts> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        ProcessCounts::parse(&stat, &status, ticks_per_second)
    }

    fn parse(stat: &str, status: &str, ticks_per_second: u64) -> Option<ProcessCounts> {
        let (_, numbers) = stat.rsplit_once(')')?;
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        let number = |position: usize| numbers.get(position)?.parse::<u64>().ok();
        let micros = |position| {
            let ticks = number(position)?;
            ticks.checked_mul(1_000_000)?.checked_div(ticks_per_second)
        };
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let peak: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(ProcessCounts {
            minor_faults: number(MINOR_FAULTS)?,
            major_faults: number(MAJOR_FAULTS)?,
            user_micros: micros(USER_TICKS)?,
            system_micros: micros(SYSTEM_TICKS)?,
            threads: number(THREADS)?,
            resident_peak_bytes: peak.checked_mul(1 << 10)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_behind_any_name() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194560 111 5 22 6 300 40 0 0 20 0 9 0 100 1 2";
        let status = "Name:\tx\nVmHWM:\t    2048 kB\n";
        let expected = ProcessCounts {
            minor_faults: 111,
            major_faults: 22,
            user_micros: 3_000_000,
            system_micros: 400_000,
            threads: 9,
            resident_peak_bytes: 2 << 20,
        };
        assert_eq!(ProcessCounts::parse(stat, status, 100), Some(expected));
        assert_eq!(ProcessCounts::parse("7 (a) S 1", status, 100), None);
        assert_eq!(ProcessCounts::parse(stat, "", 100), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn system_counts() {
        let counts = ProcessCounts::read().expect("Linux tells it");
        assert!(counts.threads > 0 && counts.minor_faults > 0 && counts.resident_peak_bytes > 0);
    }
}
