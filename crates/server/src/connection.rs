//! One client's connection, from its first byte to its last.
//!
//! 1. A connection whose client says nothing waits here, as a task of some hundred bytes.
//! 2. When the client speaks, a thread takes the connection, and [`Conversation`] stays with it as long as
//!    the client is busy: the hand-over costs more than a small command does.
//!    It is looked now and then whether the client is still there, since its command may wait for another's transaction.
//!    Where memory is little there are not as many threads as clients: they take turns ([`crate::turns`]).
//! 3. When the client pauses, the connection comes back: to wait for the next message, for the rest of one,
//!    or until more of an answer is taken.
//!
//! *Invariants*
//! 1. A connection that stalls inside a message or an answer is closed, sooner if somebody waits for the
//!    memory that it holds; one that is idle between messages is not.

mod compressed;
mod conversation;
mod incoming;

use std::io;
use std::net::Shutdown;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::dispatch::{self, Wait};
use crate::limits::{GONE_STEP, QUIET, QUIET_CROWDED, STALL_MAX, STALL_STEP};
use crate::shared::{Peer, Shared};

use self::conversation::{Conversation, Pause};

/// Serves a connection until the client closes it, breaks the protocol or stalls, or the server
/// stops. A command that runs when the server stops is still answered.
pub async fn serve(
    mut stream: TcpStream,
    shared: Arc<Shared>,
    peer: Peer,
    mut stop: watch::Receiver<bool>,
) {
    let mut conversation = Conversation::new(Arc::clone(&shared), peer, stop.clone());
    let mut interest = Interest::READABLE;
    while wait(&stream, interest, &conversation, &mut stop).await {
        let lent = talk(&shared, peer, stream, conversation, &mut stop);
        let Ok((back, talked, pause)) = lent.await else { return };
        (stream, conversation) = (back, talked);
        interest = match pause {
            Pause::Silent => Interest::READABLE,
            Pause::Full => Interest::WRITABLE,
            Pause::Closed => return,
            Pause::Hello { wait, request_id } => {
                let hello = LateHello { shared: &shared, peer, wait, request_id };
                let has_more = conversation.has_more();
                if !hello.tell(&mut stream, has_more, &mut stop).await {
                    return;
                }
                // What came in already is answered, whether or not more comes: writing is possible now.
                if has_more { Interest::WRITABLE } else { Interest::READABLE }
            }
        };
    }
}

/// Waits until the conversation can go on; tells whether it may.
async fn wait(
    stream: &TcpStream,
    interest: Interest,
    conversation: &Conversation,
    stop: &mut watch::Receiver<bool>,
) -> bool {
    let mut ready = pin!(stream.ready(interest));
    let mut stalled = Duration::ZERO;
    while stalled < STALL_MAX && !conversation.is_too_slow(Instant::now()) {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop), if !conversation.is_answering() => return false,
            ready = &mut ready => return ready.is_ok(),
            () = sleep(STALL_STEP), if conversation.is_inside() => stalled += STALL_STEP,
        }
    }
    false
}

/// Lends the connection to a thread until there is a pause.
async fn talk(
    shared: &Shared,
    peer: Peer,
    stream: TcpStream,
    mut conversation: Conversation,
    stop: &mut watch::Receiver<bool>,
) -> io::Result<(TcpStream, Conversation, Pause)> {
    let turn = tokio::select! {
        turn = shared.turns.take(|| shared.sessions.has_open()) => turn,
        _ = stop.wait_for(|stop| *stop) => return Err(io::ErrorKind::ConnectionAborted.into()),
    };
    let quiet = if shared.is_crowded() { QUIET_CROWDED } else { QUIET };
    let stream = Arc::new(stream.into_std()?);
    let lent = Arc::clone(&stream);
    let mut task = tokio::task::spawn_blocking(move || {
        lent.set_nonblocking(false)?;
        lent.set_read_timeout(Some(quiet))?;
        lent.set_write_timeout(Some(STALL_STEP))?;
        let pause = conversation.talk(&lent);
        lent.set_nonblocking(true)?;
        drop(turn);
        Ok::<_, io::Error>((conversation, pause))
    });
    let talked = loop {
        tokio::select! {
            talked = &mut task => break Some(talked),
            _ = stop.wait_for(|stop| *stop) => break None,
            () = sleep(GONE_STEP) => if is_gone(&stream) {
                shared.operations.abandon(peer.id);
            },
        }
    };
    let talked = match talked {
        Some(talked) => talked,
        None => {
            // A thread that waits for its client wakes up; one that runs a command still answers it.
            let _ = stream.shutdown(Shutdown::Read);
            task.await
        }
    };
    // The task fails only if it panicked outside of a handler, which ends this connection alone.
    let (conversation, pause) = talked.map_err(io::Error::other)??;
    let stream = Arc::into_inner(stream).ok_or(io::ErrorKind::ResourceBusy)?;
    Ok((TcpStream::from_std(stream)?, conversation, pause))
}

/// Whether the client has closed its side, and all that it said was read.
fn is_gone(stream: &std::net::TcpStream) -> bool {
    match net::recv(stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, bytes)) => bytes == 0,
        Err(error) => error != Errno::AGAIN && error != Errno::INTR,
    }
}

/// A `hello` that asks for news. The answer goes out when there is some, or the time is up; again and again if the
/// client takes several.
struct LateHello<'a> {
    shared: &'a Shared,
    peer: Peer,
    wait: Wait,
    request_id: i32,
}

impl LateHello<'_> {
    /// Answers; tells whether the connection goes on. `has_more`: the client has said more already, which
    /// ends the repeating.
    async fn tell(
        mut self,
        stream: &mut TcpStream,
        mut has_more: bool,
        stop: &mut watch::Receiver<bool>,
    ) -> bool {
        let mut topology = self.shared.topology.subscribe();
        loop {
            let known = self.wait.topology;
            let mut late = pin!(sleep(self.wait.time));
            loop {
                // A client that is gone is noticed by the end of its stream.
                let mut byte = [0];
                tokio::select! {
                    biased;
                    _ = stop.wait_for(|stop| *stop) => return false,
                    () = &mut late => break,
                    _ = topology.wait_for(|now| *now != known) => break,
                    peeked = stream.peek(&mut byte), if !has_more => match peeked {
                        Ok(1..) => has_more = true,
                        _ => return false,
                    },
                }
            }
            self.wait.repeats &= !has_more;
            // What comes after this is told with the next answer.
            self.wait.topology = *topology.borrow_and_update();
            let (reply, id) =
                dispatch::answer_hello(self.shared, self.peer, &self.wait, self.request_id);
            if !matches!(timeout(STALL_MAX, stream.write_all(&reply)).await, Ok(Ok(()))) {
                return false;
            }
            if !self.wait.repeats {
                return true;
            }
            self.request_id = id;
        }
    }
}
