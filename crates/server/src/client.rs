//! A small blocking client: what the command line and the tests need to talk to a server.
//!
//! One connection, one command at a time, no pool, no sessions. Applications use MongoDB's drivers.

mod transport;

use std::io::{self, Read, Write};
use std::time::Duration;

use bytes::Bytes;
use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value, document};

pub use self::transport::ClientTls;
use self::transport::Transport;
use crate::replica::key::ClusterKey;
use crate::scram::{Login, Mechanism, OF_ROUTERS};
use crate::wire::{DocumentSequence, HEADER_BYTES, Header, Message, WireError};

/// The reason why a command got no answer that says ok.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection failed.
    #[error("connection to {address}: {source}")]
    Connection {
        /// The server.
        address: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The server sent something that isn't an answer.
    #[error("answer of {address}: {source}")]
    Answer {
        /// The server.
        address: String,
        /// A description of the fault.
        source: WireError,
    },
    /// The server isn't what it should be.
    #[error("{address}: {why}")]
    Server {
        /// The server.
        address: String,
        /// A description of the fault.
        why: String,
    },
    /// The server refused the command.
    #[error("{message} (code {code})")]
    Command {
        /// MongoDB's code.
        code: i32,
        /// The error's text.
        message: String,
        /// The whole answer.
        answer: DocumentBuf,
    },
}

/// The message for an address that a console, metrics or remotes are served at.
const NOT_HTTP: &str = "an HTTP server answers there; use the address that drivers use, which is \
                        that of frond serve --listen";

/// The payload of an answer to `saslStart` or `saslContinue`.
pub(crate) fn payload(answer: &DocumentBuf) -> &[u8] {
    match answer.get("payload") {
        Some(Value::Binary(binary)) => binary.bytes,
        _ => &[],
    }
}

/// A connection to a server.
pub struct Client {
    stream: Transport,
    address: String,
    last_request_id: i32,
}

impl Client {
    /// Connects to `address`: `HOST:PORT`, or the path of a socket of the Unix domain.
    ///
    /// # Errors
    /// [`ClientError::Connection`] with what the last of its addresses answered.
    pub fn connect(address: &str) -> Result<Client, ClientError> {
        Client::connect_by(address, None)
    }

    /// As [`Client::connect`], by TLS where `tls` says so.
    ///
    /// # Errors
    /// As [`Client::connect`]; also where the server's certificate isn't trusted.
    pub fn connect_by(address: &str, tls: Option<&ClientTls>) -> Result<Client, ClientError> {
        match Transport::connect(address, tls) {
            Ok(stream) => Ok(Client { stream, address: address.to_owned(), last_request_id: 0 }),
            Err(source) => Err(ClientError::Connection { address: address.to_owned(), source }),
        }
    }

    /// Gives an answer up that takes longer; the connection can't be used then.
    ///
    /// # Errors
    /// [`ClientError::Connection`] with what the system says.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> Result<(), ClientError> {
        self.stream.set_read_timeout(time).map_err(|source| self.failed(source))
    }

    /// Logs in as a user of `database`, by SCRAM-SHA-256.
    ///
    /// # Errors
    /// [`ClientError::Command`] if the server refuses; [`ClientError::Server`] if it can't prove
    /// that it knows the user.
    pub fn log_in(
        &mut self,
        database: &str,
        user: &str,
        password: &str,
    ) -> Result<(), ClientError> {
        self.log_in_by(Mechanism::Sha256, database, user, password)
    }

    /// As [`Client::log_in`], by another mechanism.
    ///
    /// # Errors
    /// As [`Client::log_in`].
    pub fn log_in_by(
        &mut self,
        mechanism: Mechanism,
        database: &str,
        user: &str,
        password: &str,
    ) -> Result<(), ClientError> {
        self.prove(mechanism, mechanism.name(), (database, user), password)
    }

    /// Logs in as a user, as a router does: by the key that routers and servers share.
    ///
    /// # Errors
    /// As [`Client::log_in`].
    pub(crate) fn log_in_by_router_key(
        &mut self,
        database: &str,
        user: &str,
        key: &ClusterKey,
    ) -> Result<(), ClientError> {
        self.prove(Mechanism::Sha256, OF_ROUTERS, (database, user), &key.text())
    }

    fn prove(
        &mut self,
        mechanism: Mechanism,
        name: &str,
        (database, user): (&str, &str),
        password: &str,
    ) -> Result<(), ClientError> {
        let address = self.address.clone();
        let wrong =
            |why: &str| ClientError::Server { address: address.clone(), why: why.to_owned() };
        let (login, first) =
            Login::begin(mechanism, user, password).map_err(|error| wrong(&error.message))?;
        let options = document! { "skipEmptyExchange": true };
        let first = Value::Binary(Binary { subtype: 0, bytes: first.as_bytes() });
        let start = document! {
            "saslStart": 1, "mechanism": name, "payload": first, "options": &options,
        };
        let answer = self.command(database, start.view())?;
        let proof = login.prove(payload(&answer)).map_err(|_| wrong("its login isn't SCRAM"))?;
        let number = answer.get("conversationId").and_then(|id| id.as_integer()).unwrap_or(0);
        let message = Value::Binary(Binary { subtype: 0, bytes: proof.message.as_bytes() });
        let go_on = document! { "saslContinue": 1, "conversationId": number, "payload": message };
        let answer = self.command(database, go_on.view())?;
        match payload(&answer) == proof.expected.as_bytes() {
            true => Ok(()),
            false => Err(wrong("it doesn't know the user's password")),
        }
    }

    /// Runs a command on a database and returns its answer.
    ///
    /// # Errors
    /// [`ClientError::Command`] if the answer says `ok: 0`. Errors of single documents
    /// (`writeErrors`) stand in the answer of a command that is ok.
    pub fn command(
        &mut self,
        database: &str,
        command: Document<'_>,
    ) -> Result<DocumentBuf, ClientError> {
        self.command_with(database, command, Vec::new())
    }

    /// As [`Client::command`], with documents beside the command: the fast way to insert many.
    ///
    /// # Errors
    /// As [`Client::command`].
    pub fn command_with(
        &mut self,
        database: &str,
        command: Document<'_>,
        sequences: Vec<DocumentSequence>,
    ) -> Result<DocumentBuf, ClientError> {
        let mut body = DocumentBuilder::new();
        for (name, value) in command.iter() {
            body.append(name, value);
        }
        body.append("$db", Value::String(database));
        self.last_request_id = self.last_request_id.wrapping_add(1);
        let message = Message { sequences, ..Message::new(body.build()) };
        let bytes = message.encode(self.last_request_id, 0);
        let sent = self.stream.write_all(&bytes).and_then(|()| self.stream.flush());
        sent.map_err(|source| self.failed(source))?;
        let answer = self.read_answer()?;
        if answer.get("ok").is_some_and(|ok| ok.is_truthy()) {
            return Ok(answer);
        }
        let code = answer.get("code").and_then(|code| code.as_integer()).unwrap_or(1);
        let message = answer.get("errmsg").and_then(|message| message.as_str()).unwrap_or("");
        Err(ClientError::Command {
            code: i32::try_from(code).unwrap_or(1),
            message: message.to_owned(),
            answer,
        })
    }

    /// Runs a command that answers with a cursor and returns all documents of all its batches.
    ///
    /// # Errors
    /// As [`Client::command`], of the first batch that fails.
    pub fn documents(
        &mut self,
        database: &str,
        command: Document<'_>,
    ) -> Result<Vec<DocumentBuf>, ClientError> {
        let mut documents = Vec::new();
        let mut answer = self.command(database, command)?;
        while let Some((id, namespace)) = take_batch(&answer, &mut documents) {
            let collection = namespace.split_once('.').map_or("", |(_, collection)| collection);
            let more = frond_doc::document! { "getMore": id, "collection": collection };
            answer = self.command(database, more.view())?;
        }
        Ok(documents)
    }

    fn read_answer(&mut self) -> Result<DocumentBuf, ClientError> {
        let mut header_bytes = [0; HEADER_BYTES];
        let read = self.stream.read_exact(&mut header_bytes);
        read.map_err(|source| self.failed(self.explain(source)))?;
        if header_bytes.starts_with(b"HTTP/") {
            return Err(ClientError::Server {
                address: self.address.clone(),
                why: NOT_HTTP.into(),
            });
        }
        let header = Header::decode(&header_bytes).map_err(|source| self.broken(source))?;
        let mut message = header_bytes.to_vec();
        message.resize(header.bytes, 0);
        let body = &mut message[HEADER_BYTES..];
        self.stream.read_exact(body).map_err(|source| self.failed(source))?;
        let answer = Message::decode_answer(Bytes::from(message));
        answer.map(|message| message.body).map_err(|source| self.broken(source))
    }

    /// A server that wants TLS ends a connection that doesn't speak it, before any answer.
    fn explain(&self, error: io::Error) -> io::Error {
        let is_ended = error.kind() == io::ErrorKind::UnexpectedEof;
        let why = match &self.stream {
            Transport::Tcp(_) if is_ended && self.last_request_id == 1 => {
                "it ended the connection: if it requires TLS, use mongodb://HOST:PORT/?tls=true"
            }
            _ if is_ended => "it ended the connection",
            _ => return error,
        };
        io::Error::new(error.kind(), why)
    }

    fn failed(&self, source: io::Error) -> ClientError {
        ClientError::Connection { address: self.address.clone(), source }
    }

    fn broken(&self, source: WireError) -> ClientError {
        ClientError::Answer { address: self.address.clone(), source }
    }
}

/// Moves a batch's documents to `documents`; returns the cursor's id and namespace if there is
/// more.
fn take_batch(answer: &DocumentBuf, documents: &mut Vec<DocumentBuf>) -> Option<(i64, String)> {
    let cursor = answer.get("cursor")?.as_document()?;
    let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()?;
    documents.extend(
        batch.iter().filter_map(|value| value.as_document()).map(|document| document.to_buf()),
    );
    let id = cursor.get("id")?.as_integer().filter(|id| *id != 0)?;
    Some((id, cursor.get("ns")?.as_str()?.to_owned()))
}
