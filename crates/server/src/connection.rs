//! One client's connection: read a message, answer it on a blocking thread, write the answer.
//!
//! *Invariants*
//! 1. Memory for a message grows with the bytes that came in, never with the length that its header
//!    claims.
//! 2. One message of a connection is worked on at a time, so answers keep the order of requests.
//! 3. A connection that stalls inside a message is closed; one that is idle between messages is not.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::dispatch::{self, Outcome};
use crate::limits::{IDLE_BUFFER_BYTES, READ_STEP_BYTES, STALL_MAX};
use crate::shared::{Peer, Shared};
use crate::wire::{HEADER_BYTES, Header};

/// Serves a connection until the client closes it, breaks the protocol or stalls, or the server
/// stops. A command that runs when the server stops is still answered.
pub async fn serve(
    mut stream: TcpStream,
    shared: Arc<Shared>,
    peer: Peer,
    mut stop: watch::Receiver<bool>,
) {
    let mut buffer = BytesMut::new();
    loop {
        let message = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            message = read_message(&mut stream, &mut buffer) => message,
        };
        // Whatever is wrong with the stream or the header, there is nobody left to tell.
        let Ok(Some((header, message))) = message else { return };
        let outcome = answer(&shared, peer, header, message).await;
        if let Some(reply) = &outcome.reply {
            if write(&mut stream, reply).await.is_err() {
                return;
            }
        }
        if outcome.close {
            // Otherwise the system may throw away the answer with what the client has yet to say.
            let _ = stream.shutdown().await;
            return;
        }
    }
}

async fn answer(shared: &Arc<Shared>, peer: Peer, header: Header, message: Bytes) -> Outcome {
    let shared = Arc::clone(shared);
    let task =
        tokio::task::spawn_blocking(move || dispatch::answer(&shared, peer, header, message));
    // The task fails only if it panicked outside of the handler, which ends this connection alone.
    task.await.unwrap_or(Outcome { reply: None, close: true })
}

/// Reads one message, its header included. `None` if the client closed the connection. `buffer`
/// holds what came in beyond it, and is empty for a client that waits for its answers.
async fn read_message(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
) -> io::Result<Option<(Header, Bytes)>> {
    if buffer.is_empty() {
        buffer.reserve(IDLE_BUFFER_BYTES);
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    fill(stream, buffer, HEADER_BYTES).await?;
    let header_bytes = buffer[..HEADER_BYTES].try_into().expect("the header was filled");
    let header = Header::decode(header_bytes).map_err(io::Error::other)?;
    fill(stream, buffer, header.bytes).await?;
    // The rest moves to memory of its own, so that an idle connection doesn't keep its last
    // message alive.
    let rest = BytesMut::from(&buffer[header.bytes..]);
    let mut message = std::mem::replace(buffer, rest);
    message.truncate(header.bytes);
    Ok(Some((header, message.freeze())))
}

/// Reads until `buffer` has `length` bytes.
async fn fill(stream: &mut TcpStream, buffer: &mut BytesMut, length: usize) -> io::Result<()> {
    while buffer.len() < length {
        if buffer.capacity() == buffer.len() {
            // Doubling keeps the copying linear; it is never more than twice what came in.
            let missing = length - buffer.len();
            buffer.reserve(missing.min(buffer.len().max(READ_STEP_BYTES)));
        }
        if timeout(STALL_MAX, stream.read_buf(buffer)).await?? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Writes an answer; gives up if the client takes nothing for long.
async fn write(stream: &mut TcpStream, mut reply: &[u8]) -> io::Result<()> {
    while !reply.is_empty() {
        let written = timeout(STALL_MAX, stream.write(reply)).await??;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        reply = &reply[written..];
    }
    Ok(())
}
