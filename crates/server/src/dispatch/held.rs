//! An answer that is held until its commit is durable.
//!
//! *Surprising*: it is made by a thread that leads a group of commits. So whatever may wait for a
//! commit, or for someone who may, is left to another thread: a record of the profiler, a line of
//! the log about what took long, a transaction that another command has locked.

use std::sync::Arc;
use std::time::Instant;

use frond_db::request_profile::RequestProfile;
use frond_db::{Error, HandedCommit};
use frond_doc::DocumentBuilder;

use super::failure::{Failure, guarded, labels};
use super::outcome::Outcome;
use super::run::record_run;
use super::{profile, reply_of};
use crate::commands::Command;
use crate::common_fields::Part;
use crate::held_commits::{EndOfCommit, HeldCommit};
use crate::operations::Operation;
use crate::peer::Peer;
use crate::request::Answer;
use crate::shared::Shared;
use crate::wire::DocumentSequence;

/// A command that has run, and whose commit isn't known to be durable.
pub(super) struct HeldRun {
    pub commit: HeldCommit,
    pub command: &'static Command,
    pub part: Option<Part>,
    pub operation: Arc<Operation>,
    /// The answer if all is well.
    pub answer: DocumentBuilder,
    pub work: RequestProfile,
}

/// An answer that is held. Its command is among those that run.
pub struct HeldAnswer {
    command: &'static Command,
    part: Option<Part>,
    operation: Arc<Operation>,
    answer: DocumentBuilder,
    work: RequestProfile,
    end: Option<Box<dyn EndOfCommit>>,
    sequences: Vec<DocumentSequence>,
    request_id: i32,
}

impl HeldAnswer {
    /// The answer of a command that came as the message `request_id`, with `sequences`; and the
    /// commit for which it waits.
    pub(super) fn new(
        run: HeldRun,
        sequences: Vec<DocumentSequence>,
        request_id: i32,
    ) -> (HandedCommit, Box<HeldAnswer>) {
        let HeldRun { commit, command, part, operation, answer, work } = run;
        let HeldCommit { commit, end } = commit;
        let held =
            HeldAnswer { command, part, operation, answer, work, end, sequences, request_id };
        (commit, Box::new(held))
    }

    /// Makes the answer of a command whose commit has come to `done`.
    ///
    /// # Errors
    /// Gives all of it back where that may have to wait for a commit, and `may_wait` says that the
    /// caller mustn't.
    pub fn answer(
        self: Box<Self>,
        (server, peer): (&Shared, &Arc<Peer>),
        done: Result<(), Error>,
        may_wait: bool,
    ) -> Result<Outcome, (Box<HeldAnswer>, Result<(), Error>)> {
        if !may_wait && profile::may_report(server, &self.operation, &self.work) {
            return Err((self, done));
        }
        let ended = match &self.end {
            Some(end) => end.end(server, &done, may_wait),
            None => Some(done.clone()),
        };
        let Some(ended) = ended else { return Err((self, done)) };
        let HeldAnswer { command, part, operation, answer, work, sequences, request_id, .. } =
            *self;
        let body = guarded(server, || {
            let _running = server.operations.resume(&operation, Instant::now());
            let done: Answer = ended.map(|()| answer);
            record_run(server, (&operation, &sequences), &done, &work);
            done.map_err(|error| {
                let labels = labels(command, part, &error);
                Failure::new(error, &labels)
            })
        });
        if peer.is_hung_up() {
            return Ok(Outcome::closing());
        }
        Ok(Outcome::reply(Some(reply_of(server, body, request_id, None)), false))
    }
}
