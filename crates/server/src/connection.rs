//! One client's connection, from its first byte to its last.
//!
//! 1. A connection whose client says nothing waits here, as a task of some hundred bytes; before
//!    that it shakes hands, where there is TLS ([`handshake`]).
//! 2. When the client speaks, the connection is [lent] to the threads that talk to clients, and
//!    stays with them also while its client is silent between two messages: to hand it over costs
//!    more than a small command does. It is looked now and then whether the client of a command is
//!    still there ([`crate::lent_connections`]).
//! 3. When the client pauses otherwise, the connection comes back: to wait for the rest of a
//!    message, or until more of an answer is taken.
//!
//! *Invariants*
//! 1. A connection that stalls inside a message or an answer is closed; one that is idle between
//!    messages is not. If another one waits for the memory that it holds, what is in it goes to a
//!    file at once ([`crate::stalled_bytes`]), or else it is closed sooner.

mod compressed;
mod conversation;
pub(crate) mod handshake;
mod incoming;
mod late_hello;
mod lent;
pub mod socket;
mod stream;

use std::io;
use std::net::Shutdown;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::limits::{STALL_MAX, STALL_STEP};
use crate::operations::Operation;
use crate::peer::Peer;
use crate::shared::Shared;

use self::conversation::{Conversation, Pause};
use self::late_hello::LateHello;
use self::lent::Lent;
use self::socket::IdleSocket;

/// Serves a connection until the client closes it, breaks the protocol or stalls, or the server
/// stops. A command that runs when the server stops is still answered.
pub async fn serve(
    socket: IdleSocket,
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    mut stop: watch::Receiver<bool>,
) {
    let shaken = tokio::select! {
        shaken = handshake::shake(socket, shared.tls.as_ref(), (&shared.log, &peer)) => shaken,
        _ = stop.wait_for(|stop| *stop) => return,
    };
    let Some((mut socket, session)) = shaken else { return };
    if let Some(subject) = session.as_ref().and_then(|session| session.client_subject()) {
        peer.note_subject(subject);
    }
    let mut conversation =
        Conversation::new(Arc::clone(&shared), Arc::clone(&peer), stop.clone(), session);
    let mut interest = interest_of(&conversation);
    while wait(&socket, interest, &conversation, &mut stop).await {
        let lent = talk(&shared, &peer, socket, conversation, &mut stop);
        let Ok((back, talked, pause)) = lent.await else { return };
        (socket, conversation) = (back, talked);
        interest = match pause {
            Pause::Silent => Interest::READABLE,
            Pause::Full => Interest::WRITABLE,
            Pause::Late(delay) => tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = sleep(delay) => Interest::WRITABLE,
            },
            Pause::Parked(operation, until) => {
                let waiting = (&*operation, until, conversation.has_more());
                if !parked(&shared, &socket, waiting, &mut stop).await {
                    return;
                }
                Interest::WRITABLE
            }
            // It doesn't leave the threads.
            Pause::Held(..) | Pause::Closed => return,
            Pause::Hello { wait, request_id } => {
                let hello = LateHello { shared: &shared, peer: &peer, wait, request_id };
                let has_more = conversation.has_more();
                let session = conversation.session();
                if !hello.answer_until_change(&socket, session, has_more, &mut stop).await {
                    return;
                }
                interest_of(&conversation)
            }
        };
    }
}

/// Returns the event to wait for where it is the client's turn. Messages that came in already are
/// answered, whether or not more comes: writing is possible now.
fn interest_of(conversation: &Conversation) -> Interest {
    match conversation.has_more() {
        true => Interest::WRITABLE,
        false => Interest::READABLE,
    }
}

/// Waits until the conversation can go on; returns whether it may.
async fn wait(
    socket: &IdleSocket,
    interest: Interest,
    conversation: &Conversation,
    stop: &mut watch::Receiver<bool>,
) -> bool {
    let mut ready = pin!(socket.ready(interest));
    let mut stalled = Duration::ZERO;
    while stalled < STALL_MAX {
        // First: both are true of one that stalled for long before anybody waited for its memory.
        if conversation.should_spill(Instant::now()) {
            return true;
        }
        if conversation.is_too_slow(Instant::now()) {
            return false;
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop), if !conversation.is_answering() => return false,
            ready = &mut ready => return ready.is_ok(),
            () = sleep(STALL_STEP), if conversation.is_inside() => stalled += STALL_STEP,
        }
    }
    false
}

/// Waits until a command that waits for a write is to go on; returns whether its client is still
/// there. `has_more`: the client has said more already.
async fn parked(
    shared: &Shared,
    socket: &IdleSocket,
    (operation, until, mut has_more): (&Operation, Instant, bool),
    stop: &mut watch::Receiver<bool>,
) -> bool {
    let mut topology = shared.topology.subscribe();
    let mut late = pin!(sleep(until.saturating_duration_since(Instant::now())));
    // A drain is news of the topology, and ends what waits.
    while !shared.drain.is_begun() {
        let mut byte = [0];
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return false,
            () = operation.woken() => break,
            () = &mut late => break,
            _ = topology.changed() => {}
            peeked = socket.peek(&mut byte), if !has_more => match peeked {
                Ok(1..) => has_more = true,
                _ => return false,
            },
        }
    }
    true
}

/// Lends the connection to threads until there is a pause that they can't end.
async fn talk(
    shared: &Shared,
    peer: &Peer,
    socket: IdleSocket,
    conversation: Conversation,
    stop: &mut watch::Receiver<bool>,
) -> io::Result<(IdleSocket, Conversation, Pause)> {
    let is_tls = conversation.is_tls();
    let socket = Arc::new(socket.into_lent()?);
    let (ends, mut ended) = oneshot::channel();
    let loan = shared.lent_connections.lend(peer.id, Arc::clone(&socket) as _, is_tls);
    let lent = Arc::clone(&socket);
    let stop_seen = stop.clone();
    let talk = Lent { socket: lent, conversation, ends, stop: stop_seen, blocks_for: None };
    shared.workers.talk(Box::new(talk))?;
    let talked = tokio::select! {
        talked = &mut ended => Some(talked),
        _ = stop.wait_for(|stop| *stop) => None,
    };
    let talked = match talked {
        Some(talked) => talked,
        None => {
            // A thread that waits for its client wakes up, or one comes; one that runs a command
            // still answers it.
            let _ = socket.shutdown(Shutdown::Read);
            ended.await
        }
    };
    // Nothing comes only if it panicked outside of a handler, which ends this connection alone, or
    // if the server stops.
    let (conversation, pause) = talked.map_err(io::Error::other)??;
    drop(loan);
    let socket = Arc::into_inner(socket).ok_or(io::ErrorKind::ResourceBusy)?;
    Ok((socket.into_idle()?, conversation, pause))
}
