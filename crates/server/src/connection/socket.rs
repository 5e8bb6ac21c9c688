//! A client's socket, over TCP or of the Unix domain: lent to a thread, or waited for by a task.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags};
use tokio::io::Interest;

/// What a write says to the system: it doesn't block, and where the client has gone it is an error.
#[cfg(target_os = "linux")]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// Elsewhere the signal is ignored, as Rust has it for each program and socket.
#[cfg(not(target_os = "linux"))]
const SEND: SendFlags = SendFlags::DONTWAIT;

/// A socket whose reads block. A write takes what there is room for.
pub enum Socket {
    /// Over TCP.
    Tcp(std::net::TcpStream),
    /// A socket of the Unix domain.
    Unix(std::os::unix::net::UnixStream),
}

/// A socket that is waited for.
pub enum IdleSocket {
    /// Over TCP.
    Tcp(tokio::net::TcpStream),
    /// A socket of the Unix domain.
    Unix(tokio::net::UnixStream),
}

/// Calls a method that both kinds have.
macro_rules! either {
    ($kind:ident, $socket:expr, $stream:ident => $call:expr) => {
        match $socket {
            $kind::Tcp($stream) => $call,
            $kind::Unix($stream) => $call,
        }
    };
}

impl Socket {
    /// Has its reads block for as long as a client may be silent.
    ///
    /// # Errors
    /// An error of the system.
    pub fn block(&self, quiet: Duration) -> io::Result<()> {
        either!(Socket, self, stream => {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(quiet))
        })
    }

    /// Waits until there is room for a write, or the client is gone, for so long at most; returns
    /// whether it is so.
    pub fn wait_for_room(&self, at_most: Duration) -> bool {
        let at_most = Timespec::try_from(at_most).ok();
        let polled = poll(&mut [PollFd::new(self, PollFlags::OUT)], at_most.as_ref());
        polled.is_ok_and(|ready| 0 < ready)
    }

    /// Has it not block any more.
    ///
    /// # Errors
    /// An error of the system.
    pub fn unblock(&self) -> io::Result<()> {
        either!(Socket, self, stream => stream.set_nonblocking(true))
    }

    /// Ends one way, or both.
    ///
    /// # Errors
    /// An error of the system; `NotConnected` if the client has gone already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        either!(Socket, self, stream => stream.shutdown(how))
    }

    /// The socket, to be waited for. It doesn't block.
    ///
    /// # Errors
    /// An error of the runtime when it is to watch the socket.
    pub fn into_idle(self) -> io::Result<IdleSocket> {
        Ok(match self {
            Socket::Tcp(stream) => IdleSocket::Tcp(stream.try_into()?),
            Socket::Unix(stream) => IdleSocket::Unix(stream.try_into()?),
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(Socket, self, stream => stream.as_fd())
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(Socket, self, stream => (&mut &*stream).read(buffer))
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(self, bytes, SEND)?)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(net::sendmsg(self, pieces, &mut SendAncillaryBuffer::default(), SEND)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl IdleSocket {
    /// Waits until it can be read, or written.
    ///
    /// # Errors
    /// An error of the runtime.
    pub async fn ready(&self, interest: Interest) -> io::Result<()> {
        either!(IdleSocket, self, stream => stream.ready(interest).await.map(drop))
    }

    /// Waits for bytes and reads the first of them, which stay to be read again. 0 if no more come.
    ///
    /// # Errors
    /// An error of the system.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.ready(Interest::READABLE).await?;
            let mut peek = || {
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                let received = either!(IdleSocket, self, stream => {
                    net::recv(stream, &mut *buffer, flags)
                });
                received.map(|(_, bytes)| bytes.min(buffer.len())).map_err(io::Error::from)
            };
            let peeked = either!(IdleSocket, self, stream => {
                stream.try_io(Interest::READABLE, &mut peek)
            });
            match peeked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    /// The socket, to be lent to a thread. It doesn't block yet.
    ///
    /// # Errors
    /// An error of the system when it is to be watched no more.
    pub fn into_lent(self) -> io::Result<Socket> {
        Ok(match self {
            IdleSocket::Tcp(stream) => Socket::Tcp(stream.into_std()?),
            IdleSocket::Unix(stream) => Socket::Unix(stream.into_std()?),
        })
    }
}

/// Writes what it takes at once.
impl Write for &IdleSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(IdleSocket, self, stream => stream.try_write(bytes))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(IdleSocket, self, stream => stream.try_write_vectored(pieces))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
