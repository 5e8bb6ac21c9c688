//! A connection that is lent to the threads that talk to clients.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use frond_db::Error;
use tokio::sync::{oneshot, watch};

use super::conversation::{Conversation, HeldReply, Pause};
use super::socket::Socket;
use crate::workers::{Talk, Thread};

/// What comes back from a loan: the conversation, and why it doesn't go on.
type Talked = io::Result<(Conversation, Pause)>;

/// A connection that is lent.
pub(super) struct Lent {
    pub socket: Arc<Socket>,
    pub conversation: Conversation,
    /// Ends the loan.
    pub ends: oneshot::Sender<Talked>,
    /// Signals that the server stops.
    pub stop: watch::Receiver<bool>,
    /// The time for which the socket blocks where a client is silent inside a message; `None`
    /// before the first turn, when it doesn't block.
    pub blocks_for: Option<Duration>,
}

impl Lent {
    /// Ends the loan.
    fn end(self, ended: io::Result<Pause>) {
        let Lent { socket, conversation, ends, blocks_for, .. } = self;
        let unblocked = blocks_for.map_or(Ok(()), |_| socket.unblock());
        // The task that takes it back holds it alone.
        drop(socket);
        // The task that waits for it is gone only if the runtime is.
        let _ = ends.send(unblocked.and(ended).map(|pause| (conversation, pause)));
    }
}

impl Lent {
    /// Sends the answer that was held, once its commit has come to `done`, and waits for the client
    /// to speak. Without `may_wait` this may be a thread on which all commits wait.
    fn answer_held(mut self: Box<Self>, held: HeldReply, done: Result<(), Error>, may_wait: bool) {
        let (workers, must_go_on) = (self.conversation.workers(), self.must_go_on());
        // Where the system has no thread, the connection ends.
        match self.conversation.take_held(held, done, may_wait) {
            Err((held, done)) => {
                let answer = move || self.answer_held(held, done, true);
                drop(workers.run(answer, must_go_on));
            }
            Ok(()) if self.conversation.send_now(&self.socket) => workers.watch(self),
            Ok(()) => drop(workers.talk(self)),
        }
    }
}

impl Talk for Lent {
    fn turn(mut self: Box<Self>, thread: &mut Thread<'_>) -> Option<Box<dyn Talk>> {
        // Its turn may come only after the server began to stop.
        if *self.stop.borrow() && !self.conversation.is_answering() {
            return None;
        }
        let quiet = self.conversation.quiet();
        if self.blocks_for != Some(quiet) {
            if let Err(error) = self.socket.block(quiet) {
                self.end(Err(error));
                return None;
            }
            self.blocks_for = Some(quiet);
        }
        let pause = self.conversation.talk(&self.socket, thread);
        if let Pause::Held(commit, held) = pause {
            commit.hand_on(move |done| self.answer_held(held, done, false));
            return None;
        }
        if matches!(pause, Pause::Silent) && !self.conversation.is_inside() {
            return Some(self);
        }
        self.end(Ok(pause));
        None
    }

    fn give_back(self: Box<Self>) {
        self.end(Ok(Pause::Silent));
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn must_go_on(&self) -> bool {
        self.conversation.must_go_on()
    }
}
