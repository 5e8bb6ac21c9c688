//! Commits that a command's thread doesn't wait for: its answer is held until one is durable, and
//! sent by the thread that learns of it.
//!
//! A handler leaves its commit here where it may, and answers as if that had succeeded. What it
//! answers is not to leave the server before.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use frond_db::{Database, Deferred, Error, HandedCommit, Interrupt};

use crate::shared::Shared;

/// Takes the commit of a command.
#[derive(Default)]
pub struct HeldCommits {
    /// Whether there may be one: else all are awaited.
    may_hold: bool,
    /// The commits of a write's statements.
    deferred: OnceCell<Arc<Deferred>>,
    /// The commit of a transaction.
    whole: RefCell<Option<HeldCommit>>,
}

/// A commit that is held.
pub struct HeldCommit {
    /// What becomes of it.
    pub commit: HandedCommit,
    /// What is to be done then, before the answer.
    pub end: Option<Box<dyn EndOfCommit>>,
}

impl HeldCommit {
    /// Waits for it.
    ///
    /// # Errors
    /// What became of it.
    pub fn wait(self, server: &Shared) -> Result<(), Error> {
        let done = self.commit.wait();
        let ended = self.end.and_then(|end| end.end(server, &done, true));
        ended.unwrap_or(done)
    }
}

/// What is to be done when it is known what became of a commit.
pub trait EndOfCommit: Send {
    /// Does it, and returns what the command has come to; `None` if that has to wait for someone
    /// who may wait for a commit, and `may_wait` says that the caller mustn't: nothing was done.
    fn end(
        &self,
        server: &Shared,
        done: &Result<(), Error>,
        may_wait: bool,
    ) -> Option<Result<(), Error>>;
}

impl HeldCommits {
    /// Takes a commit if `may_hold` says so.
    pub fn new(may_hold: bool) -> HeldCommits {
        HeldCommits { may_hold, ..HeldCommits::default() }
    }

    /// Whether a transaction's commit may be left here.
    pub fn may_hold(&self) -> bool {
        self.may_hold
    }

    /// The same database, whose writes leave their commit here if they may.
    pub fn deferring(&self, database: Database) -> Database {
        match self.may_hold {
            true => database.deferring(self.deferred.get_or_init(|| Deferred::handing_on().into())),
            false => database,
        }
    }

    /// Takes the commit of a transaction.
    pub fn hold(&self, commit: HeldCommit) {
        self.whole.replace(Some(commit));
    }

    /// Ends a handler that has come to `done`: returns that, and the commit on which it rests;
    /// waits for commits that can't be held.
    pub fn end<T>(
        &self,
        done: Result<T, Error>,
        interrupt: impl FnOnce() -> Interrupt,
    ) -> (Result<T, Error>, Option<HeldCommit>) {
        if let Some(whole) = self.whole.take() {
            return (done, Some(whole));
        }
        let Some(deferred) = self.deferred.get() else { return (done, None) };
        match deferred.take_single() {
            Some(commit) => (done, Some(HeldCommit { commit, end: None })),
            None => (deferred.wait(&interrupt()).and(done), None),
        }
    }
}
