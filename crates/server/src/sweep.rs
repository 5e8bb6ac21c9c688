//! The periodic work of a server: it aborts transactions that have been open for too long, forgets
//! sessions that no client uses and the record of their writes, removes documents that have
//! expired, and does the work of policies.
//!
//! One task wakes up; the work blocks, so it runs on a blocking thread, one piece at a time.

use std::sync::Arc;
use std::time::Instant;

use frond_db::{Error, Interrupt};
use frond_query::Code;
use frond_vcs::PolicyRun;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::automatic_commits::{self, AutomaticCommits};
use crate::limits::{
    CERTIFICATE_INTERVAL, POLICY_INTERVAL, SESSION_IDLE_MAX, SESSION_SWEEP_INTERVAL,
    TRANSACTION_SWEEP_INTERVAL,
};
use crate::log::{Component, Event, Severity};
use crate::shared::Shared;
use crate::tls::Tls;
use crate::transactions;

/// A piece of it.
type Work = Box<dyn FnOnce() + Send>;

/// Starts the task; it ends when the server stops.
pub fn start(shared: &Arc<Shared>, stop: &watch::Sender<bool>) -> JoinHandle<()> {
    let (shared, mut stop) = (Arc::clone(shared), stop.subscribe());
    tokio::spawn(async move {
        let mut transactions = tokio::time::interval(TRANSACTION_SWEEP_INTERVAL);
        let mut policies = tokio::time::interval(POLICY_INTERVAL);
        let mut sessions = tokio::time::interval(SESSION_SWEEP_INTERVAL);
        let mut certificates = tokio::time::interval(CERTIFICATE_INTERVAL);
        let commits = AutomaticCommits::default();
        let mut expired: Option<tokio::time::Instant> = None;
        let stopping = stop.clone();
        let mut expiring: Option<JoinHandle<()>> = None;
        loop {
            // The other turns come often enough for an interval that is changed meanwhile.
            let due = expired.map_or_else(tokio::time::Instant::now, |expired| {
                expired + shared.expire_interval()
            });
            let of = |work: fn(&Shared)| -> Work {
                let shared = Arc::clone(&shared);
                Box::new(move || work(&shared))
            };
            let work: Work = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                _ = sessions.tick() => of(forget_sessions),
                _ = certificates.tick() => of(warn_of_certificate),
                _ = policies.tick() => {
                    let (shared, commits) = (Arc::clone(&shared), commits.clone());
                    Box::new(move || run_policies(&shared, &commits))
                }
                _ = transactions.tick() => of(abort_expired),
                () = tokio::time::sleep_until(due) => {
                    expired = Some(tokio::time::Instant::now());
                    // It may take long, and nothing else is to wait for it.
                    if expiring.as_ref().is_none_or(JoinHandle::is_finished) {
                        let (shared, stop) = (Arc::clone(&shared), stopping.clone());
                        let work = move || expire_documents(&shared, &stop);
                        expiring = Some(tokio::task::spawn_blocking(work));
                    }
                    continue;
                }
            };
            // A panic in it ends this turn alone.
            let _ = tokio::task::spawn_blocking(work).await;
        }
    })
}

/// Removes documents that have expired, until the server stops.
pub fn expire_documents(shared: &Shared, stop: &watch::Receiver<bool>) {
    if !shared.is_primary() {
        return;
    }
    let stop = stop.clone();
    let interrupt = Interrupt::new(move || match *stop.borrow() {
        true => Err(Error::invalid(Code::InterruptedAtShutdown, "the server stops")),
        false => Ok(()),
    });
    // Documents that couldn't be removed now (the disk is full, say) are removed the next time.
    let mut removed = 0;
    let _ = shared.frond.expire_counted(&interrupt, &mut removed);
    shared.usage.work().count_expired(removed);
}

/// Warns that the server's certificate ends soon, where it does.
pub fn warn_of_certificate(shared: &Shared) {
    let warning = shared.tls.as_ref().and_then(Tls::warning);
    if let Some(warning) = warning {
        let event = Event {
            severity: Severity::Warning,
            component: Component::Network,
            id: 0,
            context: "certificates",
            message: &warning,
        };
        shared.log.write(&event, |_| {});
    }
}

/// Begins the automatic commits that are due, and removes branches whose time is over.
pub fn run_policies(shared: &Arc<Shared>, commits: &AutomaticCommits) {
    if !shared.is_primary() {
        return;
    }
    // A time that couldn't be recorded now (the disk is full, say) is recorded the next time.
    let _ = shared.frond.keep_clock();
    shared.frond.engine().hold_reserve();
    commits.begin(shared);
    let mut run = PolicyRun::default();
    frond_vcs::expire_branches(&shared.frond, &mut run);
    automatic_commits::report(shared, run);
}

/// Aborts the transactions that are open for too long. One whose statement runs is left for the
/// next time: all the others would wait for that statement.
pub fn abort_expired(shared: &Shared) {
    for slot in shared.sessions.expired(Instant::now(), shared.time_limits.transaction()) {
        transactions::abort_idle(shared, &slot);
    }
}

/// Aborts all transactions but those in which a statement runs: the server stops, so no client can
/// go on with them, and commands that are still to be answered may wait for what they lock.
pub fn abort_all_idle(shared: &Shared) {
    for slot in shared.sessions.open_in(None) {
        transactions::abort_idle(shared, &slot);
    }
}

/// Forgets the sessions that no client has used for long.
pub fn forget_sessions(shared: &Shared) {
    let expired = shared.sessions.expire(Instant::now());
    if !expired.is_empty() {
        for slot in shared.sessions.open_in(Some(&expired)) {
            transactions::abort_slot(shared, &slot);
        }
        shared.cursors.kill_sessions(Some(&expired));
    }
    if !shared.is_primary() {
        return;
    }
    let idle_millis = i64::try_from(SESSION_IDLE_MAX.as_millis()).unwrap_or(i64::MAX);
    let Some(now_millis) = shared.frond.expiry_millis() else { return };
    let before = now_millis.saturating_sub(idle_millis);
    // Records that couldn't be removed now (the disk is full, say) are removed the next time.
    let _ = shared.frond.forget_retries(before);
}
