//! `frond doctor`: how a data directory is, what the machine gives it, and what to do about it.
//!
//! Each line is a finding; where something should be done, the advice stands below it. A directory
//! that another process has open is looked at from outside only; a running server reports its own
//! state. Damage is for `frond fsck`, which reads all.

mod price;
mod server;
mod store;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use frond_db::{ClockState, Reserve};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_server::MachineMemory;
use rustix::process::{Resource, getrlimit};

use crate::arguments::{Target, server_of};
use crate::backend::{Backend, Remote, USE_URI, is_in_use, open_failure};
use crate::directory::check_there;
use crate::failure::{Failure, describe};
use crate::output::{bytes, counted, json};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond doctor
  frond doctor --data /var/lib/frond
  frond doctor --uri 127.0.0.1:27017          a running server: does it take writes?
  frond doctor --uri 127.0.0.1:27017 --store-times 10 --store-gigabytes 1000
                                              also: what would its bucket cost a month?
  frond doctor --store s3://bucket/prefix     can the store be relied on, and how fast is it?
  frond doctor --store s3://bucket/prefix --remove-pin ID
                                              a clone of it is gone: what it relied on may go
  frond doctor --accept-clock                 the clock jumped, and is right now: trust it
  frond doctor --accept-clock --uri 127.0.0.1:27017

The exit code is 1 if anything keeps Frond from working.";

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
/// Less room than so many times what is held back is worth a word.
const ROOM_LOW_TIMES: u64 = 2;
/// With less memory than this most of what is read comes from the disk.
const MEMORY_BYTES_MIN: u64 = 256 << 20;
/// Bytes that are worth a collection.
const DEAD_BYTES_MIN: u64 = 64 << 20;

/// Report on the health of a data directory or a server, and what to do next
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Data directory
    #[arg(long, value_name = "DIR", default_value = "./frond-data")]
    data: PathBuf,

    /// Running server to examine instead
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["data", "store"])]
    uri: Option<String>,

    /// Bucket to examine instead (s3://BUCKET/PREFIX, az:// or gs://): 32 writers race on
    /// conditional puts, replies are dropped, requests are timed; a store where two writers win, or
    /// that ignores conditions, fails
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    store: Option<String>,

    /// Remove this pin from the bucket instead: what a clone relied on may be collected. The clone
    /// that it names loses data, if there is one
    #[arg(long, value_name = "ID", requires = "store")]
    remove_pin: Option<String>,

    /// Trust the machine's clock, however far it has jumped since the directory was last used:
    /// from now on data expires by it
    #[arg(long, conflicts_with = "store")]
    accept_clock: bool,

    #[command(flatten)]
    plan: price::Plan,

    /// Print one finding per line, as JSON
    #[arg(long, conflicts_with = "accept_clock")]
    json: bool,
}

impl Doctor {
    /// Looks at everything.
    ///
    /// # Errors
    /// [`Failure::Failed`] if something is wrong, or it can't be looked at.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        if let Some(store) = &self.store {
            return match &self.remove_pin {
                Some(pin) => store::remove_pin(terminal, store, pin),
                None => store::look_at(terminal, store, self.json),
            };
        }
        if self.accept_clock {
            let target = Target { data: self.data.clone(), uri: self.uri.clone() };
            return accept_clock(terminal, &target);
        }
        let mut report = Report { terminal, problems: 0, as_json: self.json, finding: None };
        match &self.uri {
            Some(uri) => {
                let server = Remote::connect(&server_of(uri)?)?;
                report.server(status_of(server)?.view(), &self.plan)?;
            }
            None => {
                check_there(&self.data, ": name one with --data, or a server with --uri")?;
                let target = Target { data: self.data.clone(), uri: None };
                match target.connected()? {
                    Some(server) => report.server(status_of(server)?.view(), &self.plan)?,
                    None => report.directory(&self.data)?,
                }
                report.room(&self.data)?;
                report.syncs(&self.data)?;
                report.open_files()?;
                report.memory()?;
            }
        }
        report.flush()?;
        let problems = report.problems;
        terminal.finish()?;
        match problems {
            0 => Ok(()),
            _ if self.json => Err(Failure::Reported),
            _ => Err(Failure::failed(counted(problems, "problem"))),
        }
    }
}

fn status_of(mut server: Remote) -> Result<DocumentBuf, Failure> {
    let command = document! { "serverStatus": 1_i32 };
    server.execute_with("admin", command.view(), Vec::new())
}

fn accept_clock(terminal: &mut Terminal, target: &Target) -> Result<(), Failure> {
    let mut backend = target.open()?;
    let command = document! { "frondClock": 1_i32, "accept": true };
    let answer = backend.execute("admin", &command)?;
    let message = answer.get("message").and_then(|message| message.as_str()).unwrap_or_default();
    writeln!(terminal, "clock: {message}")?;
    backend.close()
}

struct Report<'a> {
    terminal: &'a mut Terminal,
    problems: u64,
    /// Whether findings are printed as JSON, each when its advice is known.
    as_json: bool,
    finding: Option<Finding>,
}

/// A finding that isn't printed yet.
struct Finding {
    name: String,
    what: String,
    is_problem: bool,
    advice: Option<String>,
}

impl Report<'_> {
    fn finding(&mut self, name: &str, what: &str) -> Result<(), Failure> {
        self.found(name, what, false)
    }

    fn found(&mut self, name: &str, what: &str, is_problem: bool) -> Result<(), Failure> {
        if self.as_json {
            self.flush()?;
            let (name, what) = (name.to_owned(), what.to_owned());
            self.finding = Some(Finding { name, what, is_problem, advice: None });
            return Ok(());
        }
        let what = match is_problem {
            true => self.terminal.paint(Style::Removed, what),
            false => what.to_owned(),
        };
        let name = self.terminal.paint(Style::Strong, format!("{name:<12}"));
        Ok(writeln!(self.terminal, "{name}{what}")?)
    }

    fn advice(&mut self, what: &str) -> Result<(), Failure> {
        if let Some(finding) = &mut self.finding {
            finding.advice = Some(what.to_owned());
            return Ok(());
        }
        let what = self.terminal.paint(Style::Changed, what);
        Ok(writeln!(self.terminal, "            {what}")?)
    }

    fn problem(&mut self, name: &str, what: &str, advice: &str) -> Result<(), Failure> {
        self.problems += 1;
        self.found(name, what, true)?;
        self.advice(advice)
    }

    /// Prints the last finding, where findings are printed as JSON.
    fn flush(&mut self) -> Result<(), Failure> {
        let Some(Finding { name, what, is_problem, advice }) = self.finding.take() else {
            return Ok(());
        };
        let mut line = DocumentBuilder::new();
        line.append("name", Value::String(&name)).append("what", Value::String(&what));
        line.append("problem", Value::Boolean(is_problem));
        if let Some(advice) = &advice {
            line.append("advice", Value::String(advice));
        }
        Ok(writeln!(self.terminal, "{}", json(Value::from(&line.build())))?)
    }

    fn directory(&mut self, directory: &Path) -> Result<(), Failure> {
        let health = match frond_vcs::health(directory) {
            Ok(health) => health,
            Err(error) => {
                let failure = open_failure(directory, &error, USE_URI).to_string();
                if is_in_use(&error) {
                    self.finding("in use", "another process has the directory open")?;
                    return self
                        .advice("--uri asks a server; else run this again once it has ended");
                }
                if directory.join(frond_db::set::MEMBER_FILE).exists() {
                    self.finding("in a set", "it is a replica set's member")?;
                    return self.advice("ask its server: frond doctor --uri HOST:PORT");
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
            self.advice(&format!("frond gc --data {} frees it", directory.display()))?;
        }
        let segments = counted(health.log_segments, "segment");
        self.finding("log", &format!("{} in {segments}", bytes(health.bytes_log)))?;
        if health.damages > 0 {
            let what = format!("{} known to be damaged", counted(health.damages, "place"));
            let list = "lists it by branch, collection and _id";
            let advice = format!("frond fsck --data {} {list}", directory.display());
            self.problem("damage", &what, &advice)?;
        }
        for mended in &health.mended {
            self.finding("mended", mended)?;
            self.advice("it is whole again; check the disk")?;
        }
        self.clock(&health.clock)
    }

    fn clock(&mut self, clock: &ClockState) -> Result<(), Failure> {
        if clock.is_doubted {
            let advice = "set it; or, if it is right, frond doctor --accept-clock";
            return self.problem("clock", &clock.describe(), advice);
        }
        self.finding("clock", &clock.describe())
    }

    fn room(&mut self, directory: &Path) -> Result<(), Failure> {
        let found = match rustix::fs::statvfs(directory) {
            Ok(found) => found,
            Err(error) => {
                let error = describe(&io::Error::from(error));
                return self.problem(
                    "room",
                    &error,
                    "the file system doesn't report its free \
                                                     space",
                );
            }
        };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let all = found.f_blocks.saturating_mul(found.f_frsize);
        let reserve = Reserve::Share.of(all);
        let what = format!("{} of {} free, {} held back", bytes(free), bytes(all), bytes(reserve));
        if free < reserve {
            let advice = "only deletes, drops and frond gc work: free some space";
            return self.problem("room", &what, advice);
        }
        self.finding("room", &what)?;
        if free < reserve.saturating_mul(ROOM_LOW_TIMES) {
            self.advice(
                "that won't last: once only the reserve is left, writes that grow the \
                         data are refused",
            )?;
        }
        Ok(())
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
            self.advice("no disk is that fast: does the file system ignore syncs?")?;
        }
        if SYNC_MILLIS_MAX < median.as_millis() {
            self.advice("each acknowledged write waits for one: use a faster disk, or j: false")?;
        }
        Ok(())
    }

    fn memory(&mut self) -> Result<(), Failure> {
        let memory = MachineMemory::read();
        let (Some(most), Some(budget)) = (memory.bytes(), memory.budget_bytes()) else {
            return self.finding("memory", "the system doesn't report how much there is");
        };
        let whose =
            if memory.group_bytes.is_some() { "the control group's" } else { "the machine's" };
        let what =
            format!("{}, {whose}; a server without --memory takes {}", bytes(most), bytes(budget));
        self.finding("memory", &what)?;
        if most < MEMORY_BYTES_MIN {
            self.advice("with so little, sorts and reads mostly go to the disk")?;
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

/// Returns how long syncs of a few bytes take.
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
