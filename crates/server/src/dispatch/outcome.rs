//! The outcome of a message: the answer to send, and the next step of its connection.

use std::time::Duration;

use bytes::Bytes;
use frond_db::HandedCommit;
use frond_doc::DocumentBuf;

use super::held::HeldAnswer;
use crate::cursors::Parked;
use crate::outgoing::Outgoing;
use crate::wire::Header;

/// The outcome of a message.
pub struct Outcome {
    /// The answer to send; `None` if the client wants none.
    pub reply: Option<Outgoing>,
    /// Whether the connection can't go on.
    pub close: bool,
    /// The wait before the message is answered by [`answer_hello`](super::answer_hello); nothing
    /// was done yet.
    pub wait: Option<Wait>,
    /// The request of the next answer, which the client doesn't repeat.
    pub repeat: Option<Repeat>,
    /// The answer that is made once it is known what became of its commit.
    pub held: Option<(HandedCommit, Box<HeldAnswer>)>,
    /// The request that is answered once there is something to report, or its time is over.
    pub parked: Option<(Repeat, Parked)>,
}

/// A message that is answered later: a `getMore` that waits; or that is answered again, since the
/// client takes several answers and there are more: its header names the answer before as what the
/// next one answers.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// The header.
    pub header: Header,
    /// The message.
    pub message: Bytes,
}

/// A `hello` that is answered when there is news, or late.
#[derive(Clone, PartialEq, Debug)]
pub struct Wait {
    /// The time to wait.
    pub time: Duration,
    /// The topology that the client knows.
    pub topology: i64,
    /// Whether the client takes one answer after the other, without asking again.
    pub repeats: bool,
    /// Whether it came with a checksum.
    pub has_checksum: bool,
    /// The command.
    pub hello: DocumentBuf,
}

impl Outcome {
    pub(super) fn reply(reply: Option<Outgoing>, close: bool) -> Outcome {
        Outcome { reply, close, wait: None, repeat: None, held: None, parked: None }
    }

    /// Closes the connection.
    pub fn closing() -> Outcome {
        Outcome::reply(None, true)
    }
}
