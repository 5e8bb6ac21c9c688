//! `--store`: a data directory whose packs live in a bucket.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use frond_db::{Error, Frond, FrondOptions};
use frond_remote::tiered::{self, LogPlace, StoreOptions};

use super::values::parse_size;

/// What was written goes there at the latest after so long.
const SEND_EVERY: Duration = Duration::from_secs(60);

/// Where packs live, beside the disk.
#[derive(clap::Args)]
pub struct StoreArguments {
    /// Bucket in which packs live (s3://BUCKET/PREFIX); the data directory keeps the log, new packs
    /// and a cache of what is read. A directory keeps the store that it began with
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
            log: match self.store_log.as_str() {
                "bucket" => LogPlace::Bucket,
                _ => LogPlace::Local,
            },
            linger: Duration::from_millis(self.store_linger),
        };
        tiered::open(directory, &store, options)
    }

    /// Has what was written sent to the store every minute, until the result is dropped; nothing
    /// where there is no store, or nothing was written.
    pub fn send_now_and_then(&self, frond: &Frond) -> Option<Sending> {
        self.store.as_ref()?;
        let (stop, stopped) = channel::<()>();
        let frond = frond.clone();
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(SEND_EVERY) == Err(RecvTimeoutError::Timeout) {
                // The engine notes what fails in its background, and a closed one is stopped soon.
                let _ = frond.engine().flush();
            }
        });
        Some(Sending { stop: Some(stop), thread: Some(thread) })
    }
}

/// The thread that sends; it ends when this is dropped.
pub struct Sending {
    stop: Option<Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What it panicked with, it has told.
            let _ = thread.join();
        }
    }
}
