//! Scrubs: reads everything again in the background, so slowly that no client notices, and reports
//! damage.
//!
//! 1. A pass takes three weeks, or as long as the rate allows at most; little data takes less, and
//!    then nothing is read until three weeks are over. Each pass begins at a random pack, so
//!    that a server that restarts often still covers all of them.
//! 2. Damage that a scrub, a reader, a put or a move finds is logged once. Damaged chunks count as
//!    absent from then on: the store heals them from its cache, and from the next put of the same
//!    content.

use std::sync::atomic::Ordering;
use std::time::Duration;

use frond_store::io::steady_now;

use crate::gc::reclaim::GcThrottle;
use crate::shared::Shared;

/// The interval at which findings are written to the log.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A pass takes about so long.
const PASS: Duration = Duration::from_secs(21 * 24 * 3600);
/// Slower isn't worth a pass of its own.
const BYTES_A_SECOND_MIN: u64 = 64 << 10;

/// The background thread.
pub(crate) fn scrub_until_stopped(shared: &Shared) {
    shared.background.throttle.begin();
    for pass in 0u64.. {
        let begun = steady_now();
        if let Some(most) = shared.options.scrub_bytes_a_second {
            let stored = shared.store.counters().bytes_stored;
            let rate = (stored / PASS.as_secs()).max(BYTES_A_SECOND_MIN).min(most);
            let mut limiter = GcThrottle::new(shared, Some(rate));
            let mut throttle = |bytes: u64| {
                shared.report_findings();
                shared.counters.scrubbed_bytes.fetch_add(bytes, Ordering::Relaxed);
                limiter.throttle(bytes)
            };
            match shared
                .store
                .maintenance()
                .scrub(shared.conflict_seed.wrapping_add(pass), &mut throttle)
            {
                Ok(scrubbed) if scrubbed.stopped => return,
                Ok(_) => shared.background.errors.end("scrub"),
                Err(error) => shared.note_failure("scrub", &error.into()),
            }
        }
        while shared.options.scrub_bytes_a_second.is_none() || begun.elapsed() < PASS {
            shared.report_findings();
            shared.tend_tier();
            if !shared.signals.pause(LOOK_EVERY) {
                return;
            }
        }
    }
}

impl Shared {
    /// Does at the store's tier what is to be done now and then, and reports what it says.
    fn tend_tier(&self) {
        if self.background.errors.has_sink() {
            for notice in self.store.maintenance().tend_tier() {
                self.background.errors.report_line(&notice);
            }
        }
    }

    /// Reports to the log what was found damaged since the last call, if there is one.
    pub fn report_findings(&self) {
        if !self.background.errors.has_sink() {
            return;
        }
        for finding in self.store.maintenance().take_findings() {
            let chunk = finding.chunk.map(|hash| format!(" (chunk {hash})")).unwrap_or_default();
            self.background
                .errors
                .report_line(&format!("stored data are damaged: {}{chunk}", finding.error()));
        }
    }
}
