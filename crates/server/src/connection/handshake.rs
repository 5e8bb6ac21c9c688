//! Shaking hands: before its first message a connection may speak TLS, as the server's mode says.
//!
//! It is done by the connection's task, which waits without a thread, within [`HANDSHAKE_MAX`].
//! Where a client may come either way, its first bytes show how it comes: a TLS record of a
//! handshake begins with 0x16, then the version, 3 and 1 to 4. A message that begins so would have
//! 66 KB or more, and the first one is a `hello`.

use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::connection::socket::IdleSocket;
use crate::connection::stream::Session;
use crate::limits::{HANDSHAKE_MAX, HANDSHAKE_STEP};
use crate::log::Log;
use crate::peer::Peer;
use crate::tls::{self, Tls, TlsMode};

/// The first byte of a record that belongs to a handshake.
const RECORD_HANDSHAKE: u8 = 0x16;
/// The bytes that follow: the major version, and the greatest minor one.
const RECORD_MAJOR: u8 = 3;
const RECORD_MINOR_MAX: u8 = 4;

/// Shakes hands if the client wants to or has to. `None` if it fails: nothing is to be said to the
/// client then, and the log says why.
pub async fn shake(
    socket: IdleSocket,
    tls: Option<&Tls>,
    (log, peer): (&Log, &Peer),
) -> Option<(IdleSocket, Option<Box<Session>>)> {
    let Some(secured) = tls else { return Some((socket, None)) };
    // Connections within this machine aren't encrypted, as in MongoDB.
    let is_plain = matches!(socket, IdleSocket::Unix(_))
        || secured.mode() == TlsMode::Allowed && !begins_with_tls(&socket).await?;
    if is_plain {
        return Some((socket, None));
    }
    let IdleSocket::Tcp(stream) = socket else { return None };
    let accepted = TlsAcceptor::from(secured.config()).accept(stream);
    let accepted = timeout(HANDSHAKE_MAX, accepted).await.ok()?;
    if let Err(error) = &accepted
        && let Some(fault) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
    {
        log.write_failed_handshake(peer, &tls::fault(fault));
    }
    let (stream, connection) = accepted.ok()?.into_inner();
    Some((IdleSocket::Tcp(stream), Some(Box::new(Session::new(connection).ok()?))))
}

/// Whether a client's first bytes are TLS. It may say nothing for as long as it likes, as between
/// messages; `None` if it goes, or stops within those bytes.
pub(crate) async fn begins_with_tls(socket: &IdleSocket) -> Option<bool> {
    let mut bytes = [0; 3];
    let first = socket.peek(&mut bytes).await.ok()?;
    if first == 0 {
        return None;
    }
    if bytes[0] != RECORD_HANDSHAKE {
        return Some(false);
    }
    let rest = async {
        loop {
            match socket.peek(&mut bytes).await.ok()? {
                0 => return None,
                3 => {
                    let [_, major, minor] = bytes;
                    let is_tls = major == RECORD_MAJOR && (1..=RECORD_MINOR_MAX).contains(&minor);
                    return Some(is_tls);
                }
                // A peek waits for the first byte only.
                _ => sleep(HANDSHAKE_STEP).await,
            }
        }
    };
    timeout(HANDSHAKE_MAX, rest).await.ok()?
}
