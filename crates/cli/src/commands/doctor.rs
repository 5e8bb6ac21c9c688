//! `frond doctor`: how a data directory is, what the machine gives it, and what to do about it.
//!
//! Each line is a finding; where something should be done, the advice stands below it. A directory that
//! another process has open is looked at from outside only. Damage is for `frond fsck`, which reads all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::backend::{is_in_use, open_failure};
use crate::commands::transfer::failure;
use crate::directory::check_there;
use crate::failure::{Failure, describe};
use crate::output::{bytes, counted};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond doctor
  frond doctor --data /var/lib/frond
  frond doctor --store s3://bucket/prefix     can the store hold a remote? Writers race on it

The exit code is 1 if something is found that keeps Frond from working.";

/// Syncs of a small write that are timed.
const SYNC_COUNT: usize = 20;
/// A name that no file of a data directory has.
const PROBE_NAME: &str = "doctor.probe";
/// A sync that returns sooner than this has most likely reached no disk.
const SYNC_MICROS_MIN: u128 = 15;
/// One that takes longer makes every write wait.
const SYNC_MILLIS_MAX: u128 = 20;
/// A server holds a file for each pack and connection.
const OPEN_FILES_MIN: u64 = 4096;
/// Less room than this is soon gone, beside what a collection needs.
const ROOM_BYTES_MIN: u64 = 1 << 30;
/// Bytes that are worth a collection.
const DEAD_BYTES_MIN: u64 = 64 << 20;

/// Tell how a data directory is and what to do next
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Data directory
    #[arg(long, value_name = "DIR", default_value = "./frond-data")]
    data: PathBuf,

    /// Bucket to look at instead (s3://BUCKET/PREFIX): writers race on a conditional put, and a store
    /// where two win is refused
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    store: Option<String>,
}

impl Doctor {
    /// Looks at everything.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        if let Some(store) = &self.store {
            return look_at_store(terminal, store);
        }
        check_there(&self.data, ": name one with --data")?;
        let mut report = Report { terminal, problems: 0 };
        report.directory(&self.data)?;
        report.room(&self.data)?;
        report.syncs(&self.data)?;
        report.open_files()?;
        let problems = report.problems;
        terminal.finish()?;
        match problems {
            0 => Ok(()),
            _ => Err(Failure::failed(counted(problems, "problem"))),
        }
    }
}

fn look_at_store(terminal: &mut Terminal, store: &str) -> Result<(), Failure> {
    let raced = frond_remote::race::race(store).map_err(failure)?;
    let rounds = counted(raced.rounds, "round");
    writeln!(terminal, "conditional put: {rounds} in which writers raced")?;
    if raced.nobody_won > 0 {
        writeln!(terminal, "nobody won {} of them: that is slow, but safe", raced.nobody_won)?;
    }
    if raced.is_safe() {
        writeln!(terminal, "one won each, as it must: the store can hold a remote")?;
        return Ok(());
    }
    terminal.finish()?;
    Err(Failure::failed(format!(
        "the store can't hold a remote, pushes would be lost: two won {} rounds, and {} were undone",
        raced.two_won, raced.lost
    )))
}

struct Report<'a> {
    terminal: &'a mut Terminal,
    problems: u64,
}

impl Report<'_> {
    fn finding(&mut self, name: &str, what: &str) -> Result<(), Failure> {
        let name = self.terminal.paint(Style::Strong, format!("{name:<12}"));
        Ok(writeln!(self.terminal, "{name}{what}")?)
    }

    fn advice(&mut self, what: &str) -> Result<(), Failure> {
        let what = self.terminal.paint(Style::Changed, what);
        Ok(writeln!(self.terminal, "            {what}")?)
    }

    fn problem(&mut self, name: &str, what: &str, advice: &str) -> Result<(), Failure> {
        self.problems += 1;
        let what = self.terminal.paint(Style::Removed, what);
        self.finding(name, &what)?;
        self.advice(advice)
    }

    fn directory(&mut self, directory: &Path) -> Result<(), Failure> {
        let health = match frond_db::health(directory) {
            Ok(health) => health,
            Err(error) => {
                let failure = open_failure(directory, &error).to_string();
                if is_in_use(&error) {
                    self.finding("in use", "another process has the directory open")?;
                    return self.advice("what it holds is told once that has ended");
                }
                let advice = format!("frond fsck --data {} lists all damage", directory.display());
                return self.problem("directory", &failure, &advice);
            }
        };
        let what = format!(
            "{}, {}, {}; format version {}",
            counted(health.databases, "database"),
            counted(health.branches, "branch").replace("branchs", "branches"),
            counted(health.commits, "commit"),
            health.format_version
        );
        self.finding("holds", &what)?;
        let dead = health.bytes_packs.saturating_sub(health.bytes_live);
        let what = format!(
            "{} in {}: {} needed, {} garbage",
            bytes(health.bytes_packs),
            counted(health.packs, "pack"),
            bytes(health.bytes_live),
            bytes(dead)
        );
        self.finding("packs", &what)?;
        if DEAD_BYTES_MIN.max(health.bytes_live) < dead {
            self.advice(&format!("frond gc --data {} gives it back", directory.display()))?;
        }
        let segments = counted(health.log_segments, "segment");
        self.finding("log", &format!("{} in {segments}", bytes(health.bytes_log)))
    }

    fn room(&mut self, directory: &Path) -> Result<(), Failure> {
        let found = match rustix::fs::statvfs(directory) {
            Ok(found) => found,
            Err(error) => {
                let error = describe(&io::Error::from(error));
                return self.problem("room", &error, "the file system doesn't tell its room");
            }
        };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let all = found.f_blocks.saturating_mul(found.f_frsize);
        let what = format!("{} of {} free", bytes(free), bytes(all));
        if free < ROOM_BYTES_MIN {
            let advice = "writes are refused on a full disk: make room, or frond gc";
            return self.problem("room", &what, advice);
        }
        self.finding("room", &what)
    }

    fn syncs(&mut self, directory: &Path) -> Result<(), Failure> {
        let mut times = match time_syncs(directory) {
            Ok(times) => times,
            Err(error) => {
                let advice = "Frond must be able to create and sync files in its directory";
                return self.problem("syncs", &describe(&error), advice);
            }
        };
        times.sort_unstable();
        let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
        let millis = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
        self.finding("syncs", &format!("{}, at worst {}", millis(median), millis(worst)))?;
        if median.as_micros() < SYNC_MICROS_MIN {
            self.advice("that is no disk's speed: does the file system ignore syncs?")?;
        }
        if SYNC_MILLIS_MAX < median.as_millis() {
            self.advice("each acknowledged write waits for one: use a faster disk, or j: false")?;
        }
        Ok(())
    }

    fn open_files(&mut self) -> Result<(), Failure> {
        // A server asks for as many as it may have.
        let limit = getrlimit(Resource::Nofile).maximum;
        let what = limit.map_or("without limit".to_owned(), |limit| format!("at most {limit}"));
        self.finding("open files", &what)?;
        if limit.is_some_and(|limit| limit < OPEN_FILES_MIN) {
            let advice =
                format!("a server with many clients needs more: ulimit -Hn {OPEN_FILES_MIN}");
            self.advice(&advice)?;
        }
        Ok(())
    }
}

/// How long syncs of a few bytes take.
fn time_syncs(directory: &Path) -> io::Result<Vec<Duration>> {
    let path = directory.join(PROBE_NAME);
    let mut file = File::create(&path)?;
    let mut time = || {
        file.write_all(&[0; 512])?;
        let begun = Instant::now();
        file.sync_data()?;
        Ok(begun.elapsed())
    };
    let times: io::Result<Vec<Duration>> = (0..SYNC_COUNT).map(|_| time()).collect();
    fs::remove_file(&path)?;
    times
}
