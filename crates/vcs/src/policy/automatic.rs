//! Commits that no client asks for, and what else policies do by themselves.
//!
//! 1. Each write notes its bytes under the branch that it went to ([`Written::note`]), if the
//!    database has a policy: in memory, and only as a hint of what is worth looking at.
//! 2. The process that has the data directory open calls [`run_policies`] from time to time. It
//!    commits the branches to which enough was written, or whose first change since the last commit
//!    is old enough; thins automatic commits; removes branches whose time is over. A server does
//!    the same every second in parts ([`due_commits`], [`commit_due`], [`expire_branches`]): one
//!    database's rules, however slow, hold up no other's commits, and may be interrupted.
//! 3. After an opening nothing is noted: every branch of a database with a policy is looked at
//!    once.
//!
//! A branch with nothing to commit, or a merge that waits, is left alone until it is written again.
//! A commit that a rule of the policy refuses, or that is interrupted, is tried again after the
//! next write, and reported.

use std::time::Duration;

use frond_db::Interrupt;
use frond_db::inside::{Changed, Error, ErrorKind, Frond, Reader, TreeRef, system};
use frond_engine::TreeId;
use frond_query::Code;
use frond_store::io::steady_now;
use frond_tree::{Bounds, Direction};

use crate::policy::BranchPolicy;
use crate::policy::commit_policy::{self, CommitPolicy};
use crate::repository::Repository;
use crate::{CommitInfo, CommitRequest};

/// The result of running the policies.
#[derive(Clone, Debug, Default)]
pub struct PolicyRun {
    /// Commits that were made, with the names of their databases.
    pub commits: Vec<(String, CommitInfo)>,
    /// Branches that were removed, as `shop@try`.
    pub removed: Vec<String>,
    /// Automatic commits that were thinned out.
    pub thinned: u64,
    /// The errors, by database.
    pub failed: Vec<(String, Error)>,
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

/// Has what is written be noted as the policies of a data directory ask for it.
pub(crate) fn begin_to_watch(frond: &Frond) -> Result<(), Error> {
    let reader = &Reader::now(frond.engine());
    let written = frond.written();
    let place = TreeRef::Live(TreeId::SYSTEM);
    let prefix = system::all_commit_policies_prefix();
    for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
        let (database, _) = system::database_and_branch(&prefix, &entry?.key)?;
        written.watch(&database, true);
    }
    for (_, _, policy) in branch_policies(reader)? {
        if policy.closed {
            written.note_closed();
        }
    }
    if frond.some_fenced()? {
        written.note_closed();
    }
    Ok(())
}

/// An automatic commit that is due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueCommit {
    /// The database's name.
    pub database: String,
    /// The branch.
    pub branch: String,
    /// The time that it may take: its rules are expressions that clients wrote.
    time_max: Option<Duration>,
    reason: &'static str,
}

/// Does what policies ask for now: automatic commits, thinning, removing branches whose time is
/// over. Costs little when there is nothing to do; to be called from time to time.
pub fn run_policies(frond: &Frond) -> PolicyRun {
    let mut run = PolicyRun::default();
    for due in due_commits(frond, &mut run) {
        commit_due(frond, &due, &Interrupt::default(), &mut run);
    }
    expire_branches(frond, &mut run);
    run
}

/// Returns the automatic commits that are due, in the order of their databases: each is due until
/// it is begun.
pub fn due_commits(frond: &Frond, run: &mut PolicyRun) -> Vec<DueCommit> {
    look_at_new(frond, run);
    let mut all = Vec::new();
    for (key, changed) in frond.written().all_changed() {
        match due_commit(frond, &key, changed) {
            Ok(due) => all.extend(due),
            Err(error) => run.failed.push((key.0, error)),
        }
    }
    all
}

/// Makes an automatic commit, as long as `interrupt` and the policy's limit of time let it go on,
/// and thins those before it.
pub fn commit_due(frond: &Frond, due: &DueCommit, interrupt: &Interrupt, run: &mut PolicyRun) {
    if let Err(error) = make_commit(frond, due, &limited(interrupt, due.time_max), run) {
        run.failed.push((due.database.clone(), error));
    }
}

/// `interrupt`, and so much time from now on.
fn limited(interrupt: &Interrupt, time_max: Option<Duration>) -> Interrupt {
    let Some(time_max) = time_max else { return interrupt.clone() };
    let (interrupt, begun) = (interrupt.clone(), steady_now());
    Interrupt::new(move || {
        interrupt.check()?;
        if begun.elapsed() < time_max {
            return Ok(());
        }
        let seconds = time_max.as_secs();
        let message = format!("the commit takes longer than its policy's maxSeconds, {seconds}");
        Err(Error::invalid(Code::MaxTimeMSExpired, message))
    })
}

/// Removes the branches whose time is over.
pub fn expire_branches(frond: &Frond, run: &mut PolicyRun) {
    if let Err(error) = remove_expired(frond, run) {
        run.failed.push(("admin".to_owned(), error));
    }
}

/// Lets every branch of a database that has a policy since now count as written.
fn look_at_new(frond: &Frond, run: &mut PolicyRun) {
    for name in frond.written().take_new() {
        let branches = Repository::open(frond, &name).and_then(|database| database.list_branches());
        match branches {
            Ok(branches) => {
                for branch in branches {
                    frond.written().note(&name, &branch.name, 1, || frond.time_millis());
                }
            }
            Err(error) => run.failed.push((name, error)),
        }
    }
}

/// The commit of a branch that was written to, if it is due.
fn due_commit(
    frond: &Frond,
    key: &(String, String),
    changed: Changed,
) -> Result<Option<DueCommit>, Error> {
    let (database, branch) = key;
    let now = frond.time_millis();
    let policy = commit_policy::read(&Reader::now(frond.engine()), database, now)?;
    let Some(policy) = policy.filter(|policy| policy.commits(branch)) else {
        frond.written().take(key);
        return Ok(None);
    };
    let waited = now.saturating_sub(changed.since_millis);
    let reason = if policy.changed_bytes.is_some_and(|bytes| bytes <= changed.bytes) {
        "size"
    } else if policy.every_millis.is_some_and(|every| every <= waited) {
        "interval"
    } else {
        return Ok(None);
    };
    let (database, branch) = (database.clone(), branch.clone());
    Ok(Some(DueCommit { database, branch, time_max: policy.time_max(), reason }))
}

fn make_commit(
    frond: &Frond,
    due: &DueCommit,
    interrupt: &Interrupt,
    run: &mut PolicyRun,
) -> Result<(), Error> {
    let DueCommit { database: name, branch, reason, .. } = due;
    // Taken first: what is written from now on is noted for the next commit.
    frond.written().take(&(name.clone(), branch.clone()));
    let policy = commit_policy::read(&Reader::now(frond.engine()), name, frond.time_millis())?;
    let Some(policy) = policy.filter(|policy| policy.commits(branch)) else { return Ok(()) };
    let database = frond.database(&format!("{name}@{branch}"))?.interruptible(interrupt.clone());
    let database = Repository::from(database);
    let Some(commit) = database.commit_automatically(&policy, reason)? else { return Ok(()) };
    run.commits.push((name.clone(), commit));
    if !policy.thin.is_empty() {
        run.thinned += database.thin(&policy, true)?;
    }
    Ok(())
}

fn remove_expired(frond: &Frond, run: &mut PolicyRun) -> Result<(), Error> {
    let Some(now) = frond.expiry_millis() else { return Ok(()) };
    for (name, branch, policy) in branch_policies(&Reader::now(frond.engine()))? {
        let is_over = policy.expires_millis.is_some_and(|expires| expires <= now);
        if !is_over || policy.protected || frond.check_used_here(&name).is_err() {
            continue;
        }
        match Repository::open(frond, &name)?.delete_branch(&branch, true) {
            Ok(()) => run.removed.push(format!("{name}@{branch}")),
            Err(error) => run.failed.push((name, error)),
        }
    }
    Ok(())
}

impl Repository {
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
        let count = |collection: &crate::CollectionStatus| {
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
            // Another client committed it meanwhile.
            Err(error) if error.kind == ErrorKind::Invalid && error.code == Code::BadValue => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
