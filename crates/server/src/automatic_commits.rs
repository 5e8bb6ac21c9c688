//! Makes the automatic commits of commit policies: each database's by itself.
//!
//! 1. Once a second the sweep asks which commits are due ([`AutomaticCommits::begin`]). Those of
//!    one database are made one after the other on a thread of their own, up to
//!    [`AUTOMATIC_COMMITS_MAX`] databases at once: a rule that is slow holds up its own database
//!    alone. While a database's are made no more of it begin; they stay due.
//! 2. Each is an operation: `currentOp` lists it, `killOp` ends it, and so does the server's stop,
//!    at once, since no client waits for it. So does its policy's limit of time. One that is ended
//!    makes no commit, and the log says why.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frond_db::{Error, Interrupt};
use frond_doc::{Value, document};
use frond_query::Code;
use frond_vcs::{DueCommit, PolicyRun};

use crate::common_fields::Common;
use crate::limits::AUTOMATIC_COMMITS_MAX;
use crate::log::{self, Severity};
use crate::peer::Peer;
use crate::shared::Shared;

/// The databases whose automatic commits are being made. Clones are of the same.
#[derive(Clone, Default)]
pub struct AutomaticCommits(Arc<Mutex<BTreeSet<String>>>);

/// A database whose commits are made until this is dropped.
struct Busy {
    database: String,
    all: AutomaticCommits,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.all.databases().remove(&self.database);
    }
}

impl AutomaticCommits {
    /// Begins the commits that are due; to be called on a thread of the server's runtime.
    pub fn begin(&self, shared: &Arc<Shared>) {
        if !shared.is_primary() || shared.drain.is_begun() {
            return;
        }
        let mut run = PolicyRun::default();
        let mut due = frond_vcs::due_commits(&shared.frond, &mut run);
        report(shared, run);
        while let Some(first) = due.first() {
            let database = first.database.clone();
            let count = due.iter().take_while(|due| due.database == database).count();
            let commits: Vec<DueCommit> = due.drain(..count).collect();
            let Some(busy) = self.busy(database) else { continue };
            let shared = Arc::clone(shared);
            tokio::task::spawn_blocking(move || {
                for due in &commits {
                    make(&shared, due);
                }
                drop(busy);
            });
        }
    }

    /// The database from now on, unless its commits are being made, or those of too many others.
    fn busy(&self, database: String) -> Option<Busy> {
        let mut databases = self.databases();
        if AUTOMATIC_COMMITS_MAX <= databases.len() || !databases.insert(database.clone()) {
            return None;
        }
        Some(Busy { database, all: self.clone() })
    }

    fn databases(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // The set is whole after each statement, so a panic elsewhere can't have broken it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make(shared: &Arc<Shared>, due: &DueCommit) {
    if shared.drain.is_begun() {
        return;
    }
    let database = format!("{}@{}", due.database, due.branch);
    let sent = document! { "frondCommit": 1_i32, "automatic": true, "$db": database.as_str() };
    let (peer, common) = (Arc::new(Peer::own()), Common::default());
    let running = shared.operations.begin(&peer, "frondCommit", (&database, &sent), &common);
    let (operation, stopping) = (Arc::clone(&running.operation), Arc::clone(shared));
    let interrupt = Interrupt::new(move || {
        if stopping.drain.is_begun() {
            return Err(Error::invalid(Code::InterruptedAtShutdown, "the server stops"));
        }
        operation.check()
    });
    let mut run = PolicyRun::default();
    frond_vcs::commit_due(&shared.frond, due, &interrupt, &mut run);
    report(shared, run);
}

/// Logs what failed of policies.
pub fn report(shared: &Shared, run: PolicyRun) {
    for (database, error) in run.failed {
        shared.log.write(&log::storage(Severity::Warning, "a policy failed"), |attributes| {
            attributes
                .append("db", Value::String(&database))
                .append("error", Value::String(&error.to_string()));
        });
    }
}
