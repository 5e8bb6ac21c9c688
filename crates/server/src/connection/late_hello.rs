//! Answers to a `hello` that waits for news: they are small and take no thread.

use std::io::{self, Write};
use std::pin::pin;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::connection::socket::IdleSocket;
use crate::connection::stream::Session;
use crate::dispatch::{self, Wait};
use crate::limits::STALL_MAX;
use crate::peer::Peer;
use crate::shared::Shared;

/// A `hello` that asks for news. The answer goes out when there is some, or the time is up; again
/// and again if the client takes several.
pub struct LateHello<'a> {
    /// The server.
    pub shared: &'a Shared,
    /// The client's connection.
    pub peer: &'a Arc<Peer>,
    /// The request that waits.
    pub wait: Wait,
    /// The id of the request that the first answer answers.
    pub request_id: i32,
}

impl LateHello<'_> {
    /// Answers; returns whether the connection goes on. `has_more`: the client has said more
    /// already, which ends the repeating.
    pub async fn answer_until_change(
        mut self,
        socket: &IdleSocket,
        mut session: Option<&mut Session>,
        mut has_more: bool,
        stop: &mut watch::Receiver<bool>,
    ) -> bool {
        let mut topology = self.shared.topology.subscribe();
        // TLS has better ones.
        self.wait.has_checksum &= session.is_none();
        loop {
            let known = self.wait.topology;
            let mut late = pin!(sleep(self.wait.time));
            loop {
                // A client that is gone is noticed by the end of its stream.
                let mut byte = [0];
                tokio::select! {
                    biased;
                    // That the server stops is news, sent before the connection ends.
                    _ = topology.wait_for(|now| *now != known) => break,
                    _ = stop.wait_for(|stop| *stop) => return false,
                    () = &mut late => break,
                    peeked = socket.peek(&mut byte), if !has_more => match peeked {
                        Ok(1..) => has_more = true,
                        _ => return false,
                    },
                }
            }
            self.wait.repeats &= !has_more;
            // Later news go into the next answer.
            self.wait.topology = *topology.borrow_and_update();
            let answered =
                dispatch::answer_hello(self.shared, self.peer, &self.wait, self.request_id);
            let Some((reply, id)) = answered else { return false };
            self.shared.usage.count_answer(reply.len(), reply.len());
            let sent = send(socket, session.as_deref_mut(), &reply);
            if !matches!(timeout(STALL_MAX, sent).await, Ok(Ok(()))) {
                return false;
            }
            if !self.wait.repeats || self.shared.drain.is_begun() {
                return true;
            }
            self.request_id = id;
        }
    }
}

/// Sends `bytes`, by TLS if there is a session.
async fn send(
    socket: &IdleSocket,
    mut session: Option<&mut Session>,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() || session.as_ref().is_some_and(|session| session.is_sending()) {
        let mut writer = socket;
        let sent = match &mut session {
            None => writer.write(bytes),
            Some(session) => {
                let taken = session.write(bytes)?;
                bytes = &bytes[taken..];
                session.send(&mut writer).map(|()| 0)
            }
        };
        match sent {
            Ok(0) if session.is_none() => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                socket.ready(Interest::WRITABLE).await?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
