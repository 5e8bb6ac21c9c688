//! What becomes of a message: what is sent, and what its connection does next.

use std::time::Duration;

use bytes::Bytes;
use frond_doc::DocumentBuf;

use crate::cursors::Parked;
use crate::outgoing::Outgoing;
use crate::wire::Header;

/// What to do after a message.
pub struct Outcome {
    /// What to send; `None` if the client wants no answer.
    pub reply: Option<Outgoing>,
    /// Whether the connection can't go on.
    pub close: bool,
    /// How long to wait before the message is answered by [`answer_hello`](super::answer_hello);
    /// nothing was done yet.
    pub wait: Option<Wait>,
    /// What is answered next, without being asked again.
    pub repeat: Option<Repeat>,
    /// What is answered once there is something to tell, or its time is over.
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
    /// How long.
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
        Outcome { reply, close, wait: None, repeat: None, parked: None }
    }

    /// Closes the connection.
    pub fn closing() -> Outcome {
        Outcome::reply(None, true)
    }
}
