//! Shows the progress of a run: the present step, its rate, and the time that is left.
//!
//! On a terminal it is a line that changes; elsewhere (a log) one line for each step. The time left
//! is extrapolated from the steps so far.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::drive;

/// The rate is that of the last so long.
const RATE_SPAN: Duration = Duration::from_secs(1);

/// Writes how many operations of a load end in a second; nothing where none does.
fn rate() -> impl Fn(&ProgressState, &mut dyn fmt::Write) + Clone + Send + Sync {
    let last = Arc::new(Mutex::new((Instant::now(), 0_u64, 0.0)));
    move |_, out| {
        // A clock, a count and a rate: whole after each statement.
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, before, _) = *last;
        if since.elapsed() >= RATE_SPAN {
            let ended = drive::ended();
            let rate = (ended - before) as f64 / since.elapsed().as_secs_f64();
            *last = (Instant::now(), ended, rate);
        }
        if last.2 > 0.0 {
            // A line that can't be drawn is drawn again soon.
            let _ = write!(out, "{:.0}/s ", last.2);
        }
    }
}

/// The line. Cheap to update; shared by all threads.
pub struct Progress {
    bar: ProgressBar,
    is_terminal: bool,
    begin: Instant,
}

impl Progress {
    /// Makes one for `steps` steps: a workload on a target in a repetition each.
    pub fn new(steps: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        let template = "{elapsed_precise} {wide_bar:.cyan} {pos}/{len}  {rate}{msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("rate", rate()));
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        let is_terminal = !bar.is_hidden();
        Progress { bar, is_terminal, begin: Instant::now() }
    }

    /// A step begins.
    pub fn step(&self, what: &str) {
        self.bar.set_prefix(what.to_owned());
        self.say("starting");
        if !self.is_terminal {
            let done = self.bar.position();
            let all = self.bar.length().unwrap_or(done);
            eprintln!("[{:>5.0} s] {}/{all} {what}{}", self.seconds(), done + 1, self.left());
        }
    }

    /// The step has ended.
    pub fn stepped(&self) {
        self.bar.inc(1);
    }

    /// Shows the present part of the step, such as a phase and its rate.
    pub fn say(&self, what: &str) {
        self.bar.set_message(format!("{}: {what}{}", self.bar.prefix(), self.left()));
    }

    /// A line that stays.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Returns the seconds since the run began.
    pub fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn left(&self) -> String {
        let done = self.bar.position();
        let all = self.bar.length().unwrap_or(done);
        if done == 0 || done >= all {
            return String::new();
        }
        let seconds = self.seconds() / done as f64 * (all - done) as f64;
        format!(", about {:.0} min left", (seconds / 60.0).ceil())
    }
}
