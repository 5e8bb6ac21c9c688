//! One client's connection: read a message, answer it on a blocking thread, write the answer.
//!
//! *Invariants*
//! 1. Memory for a message grows with the bytes that came in, never with the length that its header
//!    claims.
//! 2. One message of a connection is worked on at a time, so answers keep the order of requests.
//! 3. A connection that stalls inside a message is closed, sooner if memory is short; one that is idle
//!    between messages is not.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::dispatch::{self, Outcome, Wait};
use crate::limits::{IDLE_BUFFER_BYTES, READ_STEP_BYTES, STALL_STEP};
use crate::pressure::Pressure;
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
            message = read_message(&mut stream, &mut buffer, &shared.pressure) => message,
        };
        // Whatever is wrong with the stream or the header, there is nobody left to tell.
        let Ok(Some((header, message))) = message else { return };
        let outcome = answer(&shared, peer, header, message).await;
        if let Some(wait) = &outcome.wait {
            let id = header.request_id;
            if !tell_when_late(&mut stream, &shared, peer, wait, id, &buffer, &mut stop).await {
                return;
            }
            continue;
        }
        if let Some(reply) = &outcome.reply
            && write(&mut stream, reply, &shared.pressure).await.is_err()
        {
            return;
        }
        if outcome.close {
            // Otherwise the system may throw away the answer with what the client has yet to say.
            let _ = stream.shutdown().await;
            return;
        }
    }
}

/// Answers a `hello` that asks for news. There never is any, so the answer goes out when the time is
/// up, again and again if the client takes several. Tells whether the connection goes on.
async fn tell_when_late(
    stream: &mut TcpStream,
    shared: &Arc<Shared>,
    peer: Peer,
    wait: &Wait,
    request_id: i32,
    buffer: &BytesMut,
    stop: &mut watch::Receiver<bool>,
) -> bool {
    let mut response_to = request_id;
    // A client that is gone is noticed by the end of its stream; one that has more to say (which
    // ends the repeating) can't be watched.
    let mut has_more = !buffer.is_empty();
    loop {
        let late = tokio::time::sleep(wait.time);
        let mut late = pin!(late);
        loop {
            let mut byte = [0];
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return false,
                () = &mut late => break,
                peeked = stream.peek(&mut byte), if !has_more => match peeked {
                    Ok(1..) => has_more = true,
                    _ => return false,
                },
            }
        }
        let wait = Wait { repeats: wait.repeats && !has_more, ..wait.clone() };
        let (reply, id) = dispatch::answer_hello(shared, peer, &wait, response_to);
        if write(stream, &reply, &shared.pressure).await.is_err() {
            return false;
        }
        if !wait.repeats {
            return true;
        }
        response_to = id;
    }
}

async fn answer(shared: &Arc<Shared>, peer: Peer, header: Header, message: Bytes) -> Outcome {
    let shared = Arc::clone(shared);
    let task =
        tokio::task::spawn_blocking(move || dispatch::answer(&shared, peer, header, message));
    // The task fails only if it panicked outside of the handler, which ends this connection alone.
    task.await.unwrap_or(Outcome::closing())
}

/// Reads one message, its header included. `None` if the client closed the connection. `buffer`
/// holds what came in beyond it, and is empty for a client that waits for its answers.
async fn read_message(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    pressure: &Pressure,
) -> io::Result<Option<(Header, Bytes)>> {
    if buffer.is_empty() {
        buffer.reserve(IDLE_BUFFER_BYTES);
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    fill(stream, buffer, HEADER_BYTES, pressure).await?;
    let header_bytes = buffer[..HEADER_BYTES].try_into().expect("the header was filled");
    let header = Header::decode(header_bytes).map_err(io::Error::other)?;
    fill(stream, buffer, header.bytes, pressure).await?;
    // The rest moves to memory of its own, so that an idle connection doesn't keep its last
    // message alive.
    let rest = BytesMut::from(&buffer[header.bytes..]);
    let mut message = std::mem::replace(buffer, rest);
    message.truncate(header.bytes);
    Ok(Some((header, message.freeze())))
}

/// Reads until `buffer` has `length` bytes.
async fn fill(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    length: usize,
    pressure: &Pressure,
) -> io::Result<()> {
    let mut held = pressure.hold(buffer.len());
    while buffer.len() < length {
        if buffer.capacity() == buffer.len() {
            // Doubling keeps the copying linear; it is never more than twice what came in.
            let missing = length - buffer.len();
            buffer.reserve(missing.min(buffer.len().max(READ_STEP_BYTES)));
        }
        if progress(pressure, stream.read_buf(buffer)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        held.resize(buffer.len());
    }
    Ok(())
}

/// Writes an answer; gives up if the client takes nothing for long.
async fn write(stream: &mut TcpStream, mut reply: &[u8], pressure: &Pressure) -> io::Result<()> {
    let _held = pressure.hold(reply.len());
    while !reply.is_empty() {
        let written = progress(pressure, stream.write(reply)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        reply = &reply[written..];
    }
    Ok(())
}

/// Waits until `step` has read or written something, for as long as memory allows.
async fn progress(
    pressure: &Pressure,
    step: impl Future<Output = io::Result<usize>>,
) -> io::Result<usize> {
    let mut step = pin!(step);
    let mut stalled = Duration::ZERO;
    loop {
        if let Ok(result) = timeout(STALL_STEP, &mut step).await {
            return result;
        }
        stalled += STALL_STEP;
        if pressure.is_too_long(stalled) {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;
    use crate::limits::{MESSAGE_MEMORY_MAX, STALL_MAX};
    use crate::wire::{MESSAGE_BYTES_MAX, Message};

    #[tokio::test]
    async fn messages_that_came_together_are_cut_apart() {
        let one = Message::new(document! { "ping": 1_i32 }).encode(1, 0);
        let two = Message::new(document! { "text": &"x".repeat(100_000) }).encode(2, 0);
        let stream = [&one[..], &two, &one, &one[..20]].concat();
        let (mut stream, mut buffer) = (&stream[..], BytesMut::new());
        for expected in [&one, &two, &one] {
            let read =
                read_message(&mut stream, &mut buffer, &Pressure::default()).await.expect("whole");
            assert_eq!(read.expect("not the end").1, expected[..]);
        }
        let error = read_message(&mut stream, &mut buffer, &Pressure::default())
            .await
            .expect_err("cut off");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(
            read_message(&mut &b""[..], &mut BytesMut::new(), &Pressure::default())
                .await
                .expect("end")
                .is_none()
        );
    }

    #[tokio::test]
    async fn memory_grows_with_what_came_in_not_with_what_was_claimed() {
        let mut claim = vec![0; HEADER_BYTES];
        claim[..4].copy_from_slice(&(MESSAGE_BYTES_MAX as i32).to_le_bytes());
        claim[12..].copy_from_slice(&2013_i32.to_le_bytes());
        for sent in [0, 1_000, 100_000, 1_000_000] {
            let mut buffer = BytesMut::new();
            let stream = [claim.clone(), vec![0; sent]].concat();
            assert!(
                read_message(&mut &stream[..], &mut buffer, &Pressure::default()).await.is_err()
            );
            assert_eq!(buffer.len(), stream.len());
            let most = 2 * stream.len() + 2 * READ_STEP_BYTES;
            assert!(buffer.capacity() <= most, "{} for {sent}", buffer.capacity());
        }
    }

    #[tokio::test]
    async fn an_idle_connection_keeps_no_message_alive() {
        let big = Message::new(document! { "text": &"x".repeat(3 << 20) }).encode(2, 0);
        let mut buffer = BytesMut::new();
        let read =
            read_message(&mut &big[..], &mut buffer, &Pressure::default()).await.expect("whole");
        assert_eq!(read.expect("not the end").1.len(), big.len());
        assert!(buffer.capacity() <= READ_STEP_BYTES, "{}", buffer.capacity());
    }

    #[tokio::test]
    async fn a_stalled_message_is_given_up_sooner_when_memory_is_short() {
        let pressure = Pressure::default();
        let _others = pressure.hold(2 * MESSAGE_MEMORY_MAX);
        let (mut client, mut server) = tokio::io::duplex(1024);
        client.write_all(&[100, 0, 0, 0]).await.expect("there is room");
        let mut buffer = BytesMut::new();
        let read = timeout(STALL_MAX / 4, read_message(&mut server, &mut buffer, &pressure)).await;
        let error = read.expect("long before it would be otherwise").expect_err("given up");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
