//! Commits that nobody asks for, and what else policies do by themselves.
//!
//! 1. Each write notes its bytes under the branch that it went to ([`Automatic::note`]), if the
//!    database has a policy: in memory, and only as a hint of what is worth looking at.
//! 2. Whoever runs the data directory calls [`Frond::run_policies`] from time to time, a server every
//!    second. It commits the branches of which enough was written, or whose first change since the
//!    last commit is old enough; thins automatic commits; removes branches whose time is over.
//! 3. After an opening nothing is noted: every branch of a database with a policy is looked at once.
//!
//! A branch with nothing to commit, or a merge that waits, is left alone until it is written again. What
//! a rule of the policy refuses is tried again after the next write or interval, and reported.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use frond_engine::TreeId;
use frond_query::Code;
use frond_tree::{Bounds, Direction};

use crate::database::Database;
use crate::error::{Error, ErrorKind};
use crate::frond::Frond;
use crate::reader::{Reader, TreeRef};
use crate::system;
use crate::version::commit_policy::{self, CommitPolicy};
use crate::version::policy::BranchPolicy;
use crate::version::{CommitInfo, CommitRequest};

/// What is remembered between two runs.
///
/// *Thread safety*: any number of threads. Neither lock is held while the other is taken.
#[derive(Default)]
pub(crate) struct Automatic {
    /// Databases with a policy, and whether their branches were looked at since the opening.
    watched: RwLock<HashSet<String>>,
    new: Mutex<HashSet<String>>,
    /// What was written, by database and branch, since it was last committed.
    changed: Mutex<BTreeMap<(String, String), Changed>>,
    /// Whether any branch takes no direct writes; never taken back.
    some_closed: AtomicBool,
}

/// What was written to a branch.
#[derive(Clone, Copy, Default, Debug)]
struct Changed {
    bytes: u64,
    /// When the first of it was.
    since_millis: i64,
}

/// What a run of the policies did.
#[derive(Clone, Debug, Default)]
pub struct PolicyRun {
    /// Commits that were made, with the names of their databases.
    pub commits: Vec<(String, CommitInfo)>,
    /// Branches that were removed, as `shop@try`.
    pub removed: Vec<String>,
    /// Automatic commits that were thinned out.
    pub thinned: u64,
    /// What didn't work, by database.
    pub failed: Vec<(String, Error)>,
}

impl Automatic {
    /// What the policies of a data directory ask to be watched.
    pub fn open(reader: &Reader<'_>) -> Result<Automatic, Error> {
        let automatic = Automatic::default();
        let place = TreeRef::Live(TreeId::SYSTEM);
        let prefix = system::all_commit_policies_prefix();
        for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
            let (database, _) = system::database_and_branch(&prefix, &entry?.key)?;
            automatic.watch(&database, true);
        }
        for (_, _, policy) in branch_policies(reader)? {
            if policy.closed {
                automatic.note_closed();
            }
        }
        Ok(automatic)
    }

    /// A database got a policy, or lost it.
    pub fn watch(&self, database: &str, has_policy: bool) {
        let mut watched = self.watched.write().unwrap_or_else(PoisonError::into_inner);
        if has_policy {
            watched.insert(database.to_owned());
        } else {
            watched.remove(database);
        }
        drop(watched);
        if has_policy {
            self.new.lock().unwrap_or_else(PoisonError::into_inner).insert(database.to_owned());
        }
    }

    /// Notes a write of about so many bytes.
    pub fn note(&self, database: &str, branch: &str, bytes: u64, now_millis: impl Fn() -> i64) {
        let watched = self.watched.read().unwrap_or_else(PoisonError::into_inner);
        let is_watched = watched.contains(database);
        drop(watched);
        if !is_watched || bytes == 0 {
            return;
        }
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Changed { bytes: 0, since_millis: now_millis() };
        let key = (database.to_owned(), branch.to_owned());
        changed.entry(key).or_insert_with(fresh).bytes += bytes;
    }

    /// Notes that a branch takes no direct writes.
    pub fn note_closed(&self) {
        self.some_closed.store(true, Ordering::Release);
    }

    /// Whether any branch may take no direct writes.
    pub fn some_closed(&self) -> bool {
        self.some_closed.load(Ordering::Acquire)
    }

    fn take_new(&self) -> HashSet<String> {
        std::mem::take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn all_changed(&self) -> Vec<((String, String), Changed)> {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.iter().map(|(key, changed)| (key.clone(), *changed)).collect()
    }

    /// Takes what was noted of a branch: it is about to be committed.
    fn take(&self, key: &(String, String)) {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// The policies of all branches: database, branch, policy.
fn branch_policies(reader: &Reader<'_>) -> Result<Vec<(String, String, BranchPolicy)>, Error> {
    let prefix = system::all_policies_prefix();
    let place = TreeRef::Live(TreeId::SYSTEM);
    let mut policies = Vec::new();
    for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
        let entry = entry?;
        let (database, branch) = system::database_and_branch(&prefix, &entry.key)?;
        policies.push((database, branch, BranchPolicy::decode(reader.read(&entry.value)?)?));
    }
    Ok(policies)
}

impl Frond {
    /// Does what policies ask for now: automatic commits, thinning, removing branches whose time is
    /// over. Costs little when there is nothing to do; to be called from time to time.
    pub fn run_policies(&self) -> PolicyRun {
        let mut run = PolicyRun::default();
        self.look_at_new(&mut run);
        for (key, changed) in self.automatic().all_changed() {
            let (database, branch) = &key;
            if let Err(error) = self.commit_if_due(database, branch, changed, &mut run) {
                run.failed.push((database.clone(), error));
            }
        }
        if let Err(error) = self.remove_expired(&mut run) {
            run.failed.push(("admin".to_owned(), error));
        }
        run
    }

    /// Lets every branch of a database that has a policy since now count as written.
    fn look_at_new(&self, run: &mut PolicyRun) {
        for name in self.automatic().take_new() {
            let branches = self.database(&name).and_then(|database| database.list_branches());
            match branches {
                Ok(branches) => {
                    for branch in branches {
                        self.automatic().note(&name, &branch.name, 1, || self.time_millis());
                    }
                }
                Err(error) => run.failed.push((name, error)),
            }
        }
    }

    fn commit_if_due(
        &self,
        name: &str,
        branch: &str,
        changed: Changed,
        run: &mut PolicyRun,
    ) -> Result<(), Error> {
        let key = (name.to_owned(), branch.to_owned());
        let now = self.time_millis();
        let policy = commit_policy::read(&Reader::now(self.engine()), name, now)?;
        let Some(policy) = policy.filter(|policy| policy.commits(branch)) else {
            self.automatic().take(&key);
            return Ok(());
        };
        let waited = now.saturating_sub(changed.since_millis);
        let reason = if policy.changed_bytes.is_some_and(|bytes| bytes <= changed.bytes) {
            "size"
        } else if policy.every_millis.is_some_and(|every| every <= waited) {
            "interval"
        } else {
            return Ok(());
        };
        // Taken first: what is written from now on is noted for the next commit.
        self.automatic().take(&key);
        let database = self.database(&format!("{name}@{branch}"))?;
        let Some(commit) = database.commit_automatically(&policy, reason)? else { return Ok(()) };
        run.commits.push((name.to_owned(), commit));
        if !policy.thin.is_empty() {
            run.thinned += database.thin(&policy, true)?;
        }
        Ok(())
    }

    fn remove_expired(&self, run: &mut PolicyRun) -> Result<(), Error> {
        let Some(now) = self.expiry_millis() else { return Ok(()) };
        for (name, branch, policy) in branch_policies(&Reader::now(self.engine()))? {
            let is_over = policy.expires_millis.is_some_and(|expires| expires <= now);
            if !is_over || policy.protected {
                continue;
            }
            match self.database(&name)?.delete_branch(&branch, true) {
                Ok(()) => run.removed.push(format!("{name}@{branch}")),
                Err(error) => run.failed.push((name, error)),
            }
        }
        Ok(())
    }
}

impl Database {
    /// Commits what changed, if anything did.
    fn commit_automatically(
        &self,
        policy: &CommitPolicy,
        reason: &str,
    ) -> Result<Option<CommitInfo>, Error> {
        let status = self.status()?;
        if status.collections.is_empty() || status.merging.is_some() {
            return Ok(None);
        }
        let count = |collection: &crate::version::CollectionStatus| {
            collection.added + collection.removed + collection.modified
        };
        let changes: u64 = status.collections.iter().map(count).sum();
        let names: Vec<&str> =
            status.collections.iter().map(|collection| collection.collection.as_str()).collect();
        let message = policy
            .message
            .replace("{database}", self.repository_name())
            .replace("{branch}", &status.branch)
            .replace("{reason}", reason)
            .replace("{changes}", &changes.to_string())
            .replace("{collections}", &names.join(", "));
        let request = CommitRequest {
            message: Some(message),
            author: policy.author.clone(),
            automatic: true,
            ..CommitRequest::default()
        };
        match self.commit_as(&request) {
            Ok(commit) => Ok(Some(commit)),
            // Somebody else committed it meanwhile.
            Err(error) if error.kind == ErrorKind::Invalid && error.code == Code::BadValue => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
