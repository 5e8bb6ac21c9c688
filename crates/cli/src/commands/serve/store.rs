//! `--store`: a data directory whose packs live in a bucket; and one that reads what another server
//! has there (`--store-read-only`).

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use frond_db::{Error, ErrorKind, Frond, FrondOptions};
use frond_remote::tiered::{self, LogPlace, Reading, StoreOptions};

use super::process;
use super::values::parse_size;
use crate::notice::print;

/// The time within which writes are sent there.
const SEND_EVERY: Duration = Duration::from_secs(60);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A reader looks for what was acknowledged since: $0.52 a month.
const READ_EVERY: Duration = Duration::from_secs(2);
/// And whether it is to be opened again.
const COMPARE_EVERY: Duration = Duration::from_secs(30);
/// It isn't opened again sooner: connections end then.
const OPEN_AGAIN: Duration = Duration::from_secs(60);
/// Nor where the log lies on another disk: each minute there may be something newer.
const OPEN_AGAIN_WITHOUT_LOG: Duration = Duration::from_secs(600);

/// Where packs live, beside the disk.
#[derive(clap::Args)]
pub struct StoreArguments {
    /// Bucket in which packs live (s3://BUCKET/PREFIX, az:// or gs://); the data directory keeps
    /// the log, new packs and a cache of what is read. A directory keeps the store that it began
    /// with
    #[arg(long, value_name = "URL", conflicts_with = "members")]
    store: Option<String>,

    /// Disk space for what is read from the store: bytes, or a number with KB, MB or GB
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_size,
        default_value = "10GB",
        requires = "store"
    )]
    store_cache: u64,

    /// Let an empty data directory take over a store that another directory wrote: that one can
    /// then write no more, and what it acknowledged in its last minute may be lost, unless
    /// --store-log is bucket
    #[arg(long, requires = "store")]
    store_take_over: bool,

    /// Begin as a clone of another server's store (its bucket), whose packs are read where
    /// they lie and aren't copied: with an empty data directory, and a --store where nothing lies
    #[arg(long, value_name = "URL", requires = "store",
          conflicts_with_all = ["store_take_over", "store_read_only"])]
    store_clone_of: Option<String>,

    /// After how many days without a sign of life of this clone its source lets go of what only the
    /// clone needs [default: never]
    #[arg(long, value_name = "DAYS", requires = "store",
          value_parser = clap::value_parser!(u32).range(1..=36_500))]
    store_pin_days: Option<u32>,

    /// Where the log lies: on the disk (local), with which acknowledged writes are lost, or in the
    /// store (bucket), where each write waits for a request. It can be changed from local to
    /// bucket, not back
    #[arg(long, value_name = "PLACE", value_parser = ["local", "bucket"], default_value = "local",
          requires = "store")]
    store_log: String,

    /// With the log in the store, for how many milliseconds writes wait for others while some are
    /// on their way there; 20 means at most 50 requests a second
    #[arg(long, value_name = "MS", default_value_t = 20, requires = "store")]
    store_linger: u64,

    /// Show what another server has in the store, and take no writes: a secondary for reads. The
    /// data directory has a copy of the index and a cache, and nothing of its own
    #[arg(long, requires = "store", conflicts_with_all = ["store_take_over", "store_log"])]
    store_read_only: bool,

    /// What the directory reads, once it is open.
    #[arg(skip)]
    reading: OnceLock<Arc<Reading>>,
}

impl StoreArguments {
    /// Opens the data directory.
    ///
    /// # Errors
    /// As [`frond_vcs::open`]; if the store doesn't answer, or another directory leads there.
    pub fn open(&self, directory: &Path, options: FrondOptions) -> Result<Frond, Error> {
        let Some(url) = &self.store else { return frond_vcs::open(directory, options) };
        let store = StoreOptions {
            url: url.clone(),
            cache_bytes: self.store_cache,
            take_over: self.store_take_over,
            clone_of: self.store_clone_of.clone(),
            pin_lease: self.store_pin_days.map(|days| DAY * days),
            log: match self.store_log.as_str() {
                "bucket" => LogPlace::Bucket,
                _ => LogPlace::Local,
            },
            linger: Duration::from_millis(self.store_linger),
        };
        if !self.store_read_only {
            return tiered::open(directory, &store, options);
        }
        let reading = Arc::new(Reading::open(directory, &store, options)?);
        let frond = reading.frond().clone();
        // It is opened once.
        let _ = self.reading.set(reading);
        Ok(frond)
    }

    /// Whether packs lie in a bucket.
    pub fn is_bucket(&self) -> bool {
        self.store.is_some()
    }

    /// Whether the server takes no writes.
    pub fn reads_only(&self) -> bool {
        self.store_read_only
    }

    /// Does what goes on beside the server, until the result is dropped: what was written is sent
    /// to the store every minute, or read from there. Nothing where there is no store.
    pub fn work_beside(&self, frond: &Frond) -> Option<Beside> {
        self.store.as_ref()?;
        let (stop, stopped) = channel::<()>();
        let frond = frond.clone();
        let thread = match self.reading.get().cloned() {
            Some(reading) => thread::spawn(move || read_on(&reading, &stopped)),
            None => thread::spawn(move || send_now_and_then(&frond, &stopped)),
        };
        Some(Beside { stop: Some(stop), thread: Some(thread) })
    }
}

/// Whether a time passed and nothing said to stop.
fn keep_going(stopped: &Receiver<()>, time: Duration) -> bool {
    stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

fn send_now_and_then(frond: &Frond, stopped: &Receiver<()>) {
    while keep_going(stopped, SEND_EVERY) {
        // The engine notes what fails in its background, and a closed one is stopped soon.
        let _ = frond.engine().flush();
    }
}

/// Shows what was acknowledged elsewhere. The process begins anew where that can't be read on.
fn read_on(reading: &Reading, stopped: &Receiver<()>) {
    let least = if reading.follows() { OPEN_AGAIN } else { OPEN_AGAIN_WITHOUT_LOG };
    let begun = Instant::now();
    let (mut compared, mut is_due, mut is_reported) = (begun, false, false);
    while keep_going(stopped, READ_EVERY) {
        match reading.read_on() {
            Ok(changes) => {
                // What the server remembers of users and settings goes with the process.
                is_due |= changes.access || changes.settings;
                is_reported = false;
            }
            Err(error) => {
                is_due |= error.kind != ErrorKind::Unavailable;
                if !is_reported {
                    print(format_args!("frond: the store can't be read on: {}", error.message));
                }
                is_reported = true;
            }
        }
        if begun.elapsed() < least {
            continue;
        }
        if !is_due && COMPARE_EVERY <= compared.elapsed() {
            compared = Instant::now();
            is_due = reading.is_outdated().unwrap_or(false);
        }
        if is_due {
            process::begin_anew();
        }
    }
}

/// The thread that does that; it ends when this is dropped.
pub struct Beside {
    stop: Option<Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Beside {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread has reported its panic itself.
            let _ = thread.join();
        }
    }
}
