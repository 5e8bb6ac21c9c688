//! A client's bytes, as they are or by TLS: what a thread reads and writes that talks with it.
//!
//! The socket blocks for as long as a client may be silent, then says `WouldBlock`. A TLS session
//! lives in the conversation, so that it goes on when another thread takes over.
//!
//! *Invariants*
//! 1. A read that ends with `WouldBlock` has handed out all that came in: a reader that then waits
//!    for the socket waits for what isn't here yet.
//! 2. A flush that ends well leaves nothing to be sent.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;

use rustls::ServerConnection;

use crate::connection::socket::Socket;
use crate::limits::CIPHERTEXT_BYTES;
use crate::tls::subject;

/// A client's side of a TLS connection, shaken hands with.
pub struct Session {
    connection: ServerConnection,
    /// The received ciphertext. It takes no memory while no thread talks with the client.
    ciphertext: Vec<u8>,
    /// The bytes of it that were decrypted.
    begun: usize,
    /// The number of bytes that were decrypted and not read.
    plaintext_bytes: usize,
}

/// A stream that is read and written.
pub enum Stream<'a> {
    /// As it is.
    Plain(&'a Socket),
    /// By TLS.
    Tls(&'a Socket, &'a mut Session),
}

impl Session {
    /// A session after its handshake, with which the client's first bytes may have come.
    ///
    /// # Errors
    /// Where those are wrong.
    pub fn new(mut connection: ServerConnection) -> Result<Session, rustls::Error> {
        let plaintext_bytes = connection.process_new_packets()?.plaintext_bytes_to_read();
        Ok(Session { connection, ciphertext: Vec::new(), begun: 0, plaintext_bytes })
    }

    /// Returns the subject of the client's certificate, if it has shown one.
    pub fn client_subject(&self) -> Option<String> {
        let certificate = self.connection.peer_certificates()?.first()?;
        subject::of_certificate(certificate)
    }

    /// Whether something came in that wasn't read.
    pub fn has_more(&self) -> bool {
        self.plaintext_bytes > 0 || self.begun < self.ciphertext.len()
    }

    /// Whether something is to be sent.
    pub fn is_sending(&self) -> bool {
        self.connection.wants_write()
    }

    /// Gives back the memory that it needs only while a thread talks with the client.
    pub fn rest(&mut self) {
        if self.begun == self.ciphertext.len() {
            (self.ciphertext, self.begun) = (Vec::new(), 0);
        }
    }

    /// Takes bytes that are to be sent: as many as there is room for.
    ///
    /// # Errors
    /// An error of the TLS session: its buffers fail for no other reason.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.connection.writer().write(bytes)
    }

    /// Sends what is to be sent.
    ///
    /// # Errors
    /// `WouldBlock` where `socket` takes no more, and others of it.
    pub fn send(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self, mut socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Ok(count) => {
                    self.plaintext_bytes = self.plaintext_bytes.saturating_sub(count);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Also at an end without `close_notify`: an attacker may have cut the stream.
                Err(error) => return Err(error),
            }
            // The protocol's own answers are sent first.
            self.send(&mut socket)?;
            if self.begun == self.ciphertext.len() {
                self.receive(socket)?;
            }
            self.decrypt(socket)?;
        }
    }

    /// Waits for bytes.
    fn receive(&mut self, mut socket: &Socket) -> io::Result<()> {
        self.begun = 0;
        self.ciphertext.resize(CIPHERTEXT_BYTES, 0);
        let received = socket.read(&mut self.ciphertext);
        self.ciphertext.truncate(*received.as_ref().unwrap_or(&0));
        received.map(drop)
    }

    /// Decrypts what came in until there is something to read, or nothing left. Of nothing it
    /// learns that the client is gone.
    fn decrypt(&mut self, mut socket: &Socket) -> io::Result<()> {
        loop {
            let mut rest = &self.ciphertext[self.begun..];
            self.begun += self.connection.read_tls(&mut rest)?;
            let state = self.connection.process_new_packets().map_err(|error| {
                // The client gets the fault, if it listens.
                let _ = self.connection.write_tls(&mut socket);
                io::Error::new(io::ErrorKind::InvalidData, error)
            })?;
            self.plaintext_bytes = state.plaintext_bytes_to_read();
            if self.plaintext_bytes > 0
                || state.peer_has_closed()
                || self.begun == self.ciphertext.len()
            {
                return Ok(());
            }
        }
    }
}

impl<'a> Stream<'a> {
    /// The stream over `socket`.
    pub fn new(socket: &'a Socket, session: Option<&'a mut Session>) -> Stream<'a> {
        match session {
            Some(session) => Stream::Tls(socket, session),
            None => Stream::Plain(socket),
        }
    }

    /// Says that nothing more comes, as well as the client lets it.
    pub fn finish(&mut self) {
        let socket = match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(socket, session) => {
                session.connection.send_close_notify();
                let _ = session.send(socket);
                socket
            }
        };
        let _ = socket.shutdown(Shutdown::Write);
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Tls(socket, session) => session.read(socket, buffer),
        }
    }
}

impl Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Tls(..) => self.write_vectored(&[IoSlice::new(bytes)]),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write_vectored(pieces),
            Stream::Tls(socket, session) => {
                session.send(socket)?;
                let count = session.connection.writer().write_vectored(pieces)?;
                match session.send(socket) {
                    // The next write, or flush, goes on there.
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
                    _ => Ok(count),
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(socket, session) => session.send(socket),
        }
    }
}
