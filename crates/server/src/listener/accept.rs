//! Taking a connection.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::commands::set_initiation;
use crate::connection;
use crate::connection::socket::IdleSocket;
use crate::peer::Peer;
use crate::replica::{channel, links};
use crate::shared::Shared;
use crate::unix_socket::UnixSocket;

/// The time after which it tries again to accept connections.
pub(super) const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The next client of the addresses, if there are any.
pub(super) async fn accept_tcp(listeners: &[TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    poll_fn(|context| {
        let mut polled = listeners.iter().map(|listener| listener.poll_accept(context));
        polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}

/// The next client of the Unix socket, if there is one.
pub(super) async fn accept_unix(socket: Option<&UnixSocket>) -> io::Result<UnixStream> {
    match socket {
        Some(socket) => socket.listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

/// Serves one more connection, or closes it if there are too many.
pub(super) fn accept(
    connections: &mut JoinSet<()>,
    shared: &Arc<Shared>,
    stop: &watch::Sender<bool>,
    socket: IdleSocket,
    address: SocketAddr,
) {
    let Some(peer) = shared.connect(address) else {
        return shared.log.write_refused(address, shared.connection_counts().0);
    };
    if let IdleSocket::Tcp(stream) = &socket
        && let Ok(local) = stream.local_addr()
    {
        peer.note_local_address(local.ip());
    }
    let (shared, stop) = (Arc::clone(shared), stop.subscribe());
    connections.spawn(async move {
        let socket = match (socket, member_answer(&shared)) {
            (IdleSocket::Tcp(stream), Some(answer)) => {
                match keep_client(stream, answer, stop.clone()).await {
                    Some(stream) => IdleSocket::Tcp(stream),
                    None => return shared.disconnect(),
                }
            }
            (socket, _) => socket,
        };
        shared.log.write_accepted(&peer, shared.connection_counts().0);
        let entry = Entry(Arc::clone(&shared), Arc::clone(&peer));
        connection::serve(socket, shared, peer, stop).await;
        drop(entry);
    });
}

/// Answers a member of the set, or one that is to be.
type MemberAnswer = Box<dyn FnOnce(std::net::TcpStream) + Send>;

/// Returns how members are answered; `None` where there can be none.
fn member_answer(shared: &Arc<Shared>) -> Option<MemberAnswer> {
    // The caller sees the end of the stream, and calls again.
    if let Some(replica) = shared.replica.clone() {
        return Some(Box::new(move |stream| drop(links::answer(&replica, stream))));
    }
    let (beginning, shared) = (shared.beginning.clone()?, Arc::clone(shared));
    Some(Box::new(move |stream| drop(set_initiation::answer(&shared, &beginning, stream))))
}

/// Gives the stream back if it is a client's; another member's is taken by a thread of its own.
async fn keep_client(
    stream: TcpStream,
    answer: MemberAnswer,
    mut stop: watch::Receiver<bool>,
) -> Option<TcpStream> {
    let mut first = [0; channel::MAGIC.len()];
    loop {
        let peeked = tokio::select! {
            peeked = stream.peek(&mut first) => peeked.ok()?,
            _ = stop.wait_for(|stop| *stop) => return None,
        };
        if !channel::MAGIC.starts_with(&first[..peeked]) || peeked == 0 {
            return Some(stream);
        }
        if peeked == first.len() {
            break;
        }
        tokio::time::sleep(ACCEPT_RETRY).await;
    }
    let stream = stream.into_std().ok()?;
    stream.set_nonblocking(false).ok()?;
    let answer = move || answer(stream);
    let _ = std::thread::Builder::new().name("frond-member".to_owned()).spawn(answer);
    None
}

/// A connection's place among those counted, given back however the connection ends.
struct Entry(Arc<Shared>, Arc<Peer>);

impl Drop for Entry {
    fn drop(&mut self) {
        let Entry(shared, peer) = self;
        peer.presence.end(Instant::now());
        shared.disconnect();
        shared.log.write_ended(peer, shared.connection_counts().0);
    }
}
