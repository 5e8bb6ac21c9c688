//! Writes of one request that share a sync.
//!
//! A request that writes in several transactions, one after the other, need not wait for each: its
//! answer goes out when the last is durable, and the log keeps their order. So each is given its
//! place in the log and left there ([`PendingCommit`]), and the next begins ahead of what is
//! visible, where it sees those before it.
//!
//! *Invariants*: 1. No result of such a transaction may be passed on before [`Deferred::wait`] has
//! succeeded; the request that fails in between waits, too. 2. Changes of the catalog are awaited
//! at once, and all before with them: others look for the new definitions. 3. A transaction that
//! replaces whole trees waits for the line before it begins (`Frond::attempt_until_done`): these
//! transactions hold their latches until they have their place only. 4. If one is refused (a full
//! disk), none behind it becomes: each requires the one before it. So what a request leaves behind
//! is what its first operations did, and a document that was to be copied, then removed, is in one
//! of both places.
//!
//! *Surprising*: where the disk is full, or a sync fails, the request learns it at its end: what
//! its earlier transactions became isn't reported then, as where one transaction of several fails.

use std::sync::{Mutex, PoisonError};

use frond_engine::{PendingCommit, Sequence};

use super::handed_commit::HandedCommit;
use super::outcome;
use crate::error::Error;
use crate::interrupt::Interrupt;

/// The number of commits that are awaited together: until then they hold keys with which others may
/// conflict.
const UNAWAITED_MAX: usize = 4_096;

/// The transactions of one request that aren't awaited yet.
#[derive(Default)]
pub struct Deferred {
    unawaited: Mutex<Vec<PendingCommit>>,
    /// Whether what becomes of a single one is handed on.
    hands_on: bool,
}

impl Deferred {
    /// Transactions of a request that is answered by the thread that learns what became of them, if
    /// it is a single one ([`Deferred::take_single`]).
    pub fn handing_on() -> Deferred {
        Deferred { hands_on: true, ..Deferred::default() }
    }

    pub(super) fn hands_on(&self) -> bool {
        self.hands_on
    }

    /// Takes the commit that isn't awaited, if there is one only, and what becomes of it can be
    /// handed on. All else is to be awaited.
    pub fn take_single(&self) -> Option<HandedCommit> {
        let mut unawaited = self.unawaited.lock().unwrap_or_else(PoisonError::into_inner);
        match &unawaited[..] {
            [single] if single.can_hand_on() => unawaited.pop().map(HandedCommit::new),
            _ => None,
        }
    }

    /// Adds one; waits for all if they are many.
    pub(super) fn add(
        &self,
        transaction: PendingCommit,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let mut unawaited = self.unawaited.lock().unwrap_or_else(PoisonError::into_inner);
        unawaited.push(transaction);
        let are_many = UNAWAITED_MAX <= unawaited.len();
        drop(unawaited);
        if are_many { self.wait(interrupt) } else { Ok(()) }
    }

    /// The place of the last one, without which the next isn't to be.
    pub(super) fn last(&self) -> Option<Sequence> {
        let unawaited = self.unawaited.lock().unwrap_or_else(PoisonError::into_inner);
        unawaited.iter().rev().find_map(PendingCommit::sequence)
    }

    /// Waits until all are as durable as asked, and what they could read is visible.
    ///
    /// # Errors
    /// The first error: a full disk refused one, or a sync failed and what became of it is unknown;
    /// what `interrupt` says, where the log lies in a bucket.
    pub fn wait(&self, interrupt: &Interrupt) -> Result<(), Error> {
        let mut unawaited = self.unawaited.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *unawaited);
        drop(unawaited);
        let keep_going = || interrupt.check().is_ok();
        let mut awaited = Ok(());
        // Each is asked, also after an error: a refusal is kept until its transaction learns of it.
        for transaction in all {
            awaited = awaited.and(outcome(transaction.wait(&keep_going), interrupt));
        }
        awaited
    }
}
