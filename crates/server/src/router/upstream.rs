//! A connection to a server of a line: one message at a time, and its answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::frames::{self, Socket};
use crate::wire::Message;

/// The time that a server may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// A connection to one of a line's servers.
pub(super) struct Upstream {
    socket: Socket,
    last_request_id: i32,
}

impl Upstream {
    /// Connects to `HOST:PORT`, by TLS where there is a `tls`.
    ///
    /// # Errors
    /// An error of the system; a certificate that isn't trusted.
    pub async fn connect(address: &str, tls: Option<&Arc<ClientConfig>>) -> io::Result<Upstream> {
        timeout(CONNECT_MAX, Upstream::shake(address, tls)).await.map_err(io::Error::from)?
    }

    async fn shake(address: &str, tls: Option<&Arc<ClientConfig>>) -> io::Result<Upstream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let socket = match tls {
            None => frames::socket(stream),
            Some(tls) => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let name = ServerName::try_from(host)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                let connector = TlsConnector::from(Arc::clone(tls));
                frames::socket(connector.connect(name, stream).await?)
            }
        };
        Ok(Upstream { socket, last_request_id: 0 })
    }

    /// Whether the server hasn't ended it. One that was idle may have been ended long ago, and what
    /// is sent then is lost without a word.
    pub fn is_open(&mut self) -> bool {
        if !self.socket.buffer().is_empty() {
            return false;
        }
        let mut room = [0];
        let mut room = ReadBuf::new(&mut room);
        let socket = Pin::new(self.socket.get_mut());
        let polled = socket.poll_read(&mut Context::from_waker(Waker::noop()), &mut room);
        matches!(polled, Poll::Pending)
    }

    /// Sends a message that has no answer.
    ///
    /// # Errors
    /// An error of the socket.
    pub async fn send(&mut self, message: &[u8]) -> io::Result<()> {
        frames::write(&mut self.socket, message).await
    }

    /// Sends a message and returns its answer.
    ///
    /// # Errors
    /// An error of the socket: whether the message was acted on isn't known then.
    pub async fn exchange(&mut self, message: &[u8]) -> io::Result<Vec<u8>> {
        self.send(message).await?;
        match frames::read(&mut self.socket).await? {
            Some((_, answer)) => Ok(answer),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Runs a command of the router's own and returns the answer, whatever it says.
    ///
    /// # Errors
    /// As [`Upstream::exchange`].
    pub async fn command(
        &mut self,
        database: &str,
        command: Document<'_>,
    ) -> io::Result<DocumentBuf> {
        let mut body = DocumentBuilder::new();
        for element in command.elements() {
            body.append_element(&element);
        }
        body.append("$db", Value::String(database));
        self.last_request_id = self.last_request_id.wrapping_add(1);
        let message = Message::new(body.build()).encode(self.last_request_id, 0);
        decoded(self.exchange(&message).await?)
    }
}

/// The document of an answer.
///
/// # Errors
/// `InvalidData` if it is no answer.
pub(super) fn decoded(answer: Vec<u8>) -> io::Result<DocumentBuf> {
    let answer = Message::decode_answer(Bytes::from(answer));
    answer
        .map(|answer| answer.body)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Whether an answer says that all went well.
pub(super) fn is_ok(answer: Document<'_>) -> bool {
    answer.get("ok").is_some_and(|ok| ok.is_truthy())
}
