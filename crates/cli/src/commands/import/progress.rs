//! A progress bar by bytes or commits, on standard error, where that is a terminal.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::notice::print;

/// The number of documents whose problem is printed; of the others only the count is.
const PROBLEMS_SHOWN_MAX: u64 = 20;

/// The progress of the import.
pub struct Progress(ProgressBar);

impl Progress {
    /// Begins; `bytes` is the input's size, where it is known.
    pub fn begin(bytes: Option<u64>) -> Progress {
        let (bar, template) = match bytes {
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{wide_bar:.green} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
            ),
            None => (ProgressBar::new_spinner(), "{spinner} {bytes}  {bytes_per_sec}"),
        };
        // Hidden where standard error is no terminal.
        bar.set_draw_target(ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(template).expect("the template is a constant");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress(bar)
    }

    /// Begins; there are so many commits.
    pub fn of_commits(count: u64) -> Progress {
        let bar = ProgressBar::new(count);
        bar.set_draw_target(ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{wide_bar:.green} {pos}/{len} commits  {eta} left");
        bar.set_style(style.expect("the template is a constant"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress(bar)
    }

    /// Counts a commit.
    pub fn step(&self) {
        self.0.inc(1);
    }

    /// Counts the bytes that are read from `reader`.
    pub fn counting<R: Read + Send>(&self, reader: R) -> impl Read + Send + use<R> {
        self.0.wrap_read(reader)
    }

    /// Counts bytes that are read elsewhere.
    pub fn advancing(&self) -> Arc<dyn Fn(usize) + Send + Sync> {
        let bar = self.0.clone();
        Arc::new(move |bytes| bar.inc(bytes as u64))
    }

    /// Prints what is wrong with the document on `line`, which is the `count`th that failed.
    pub fn problem(&self, count: u64, line: u64, what: &str) {
        self.0.suspend(|| {
            if count <= PROBLEMS_SHOWN_MAX {
                print(format_args!("line {line}: {}", crate::output::plain(what)));
            } else if count == PROBLEMS_SHOWN_MAX + 1 {
                print(format_args!("more documents failed; they are counted, but not listed"));
            }
        });
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
