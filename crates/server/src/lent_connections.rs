//! The connections that threads have, and whether their clients are still there.
//!
//! A command may wait for long, for another's transaction say, while its client leaves. So once in
//! [`GONE_STEP`](crate::limits::GONE_STEP) a task of the server looks at the clients of all
//! commands that run. A timer for each connection would find the same, but wakes the runtime for
//! each: five hundred clients that have threads cost as many wake-ups a second, however little
//! they ask.
//!
//! *Invariant*: a connection is in the table while a thread may have it, and no longer: when it is
//! taken back its socket has no other holder.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};

use crate::operations::Operations;

/// A socket, whatever its kind.
type Socket = dyn AsFd + Send + Sync;

/// By connection.
#[derive(Default)]
pub struct LentConnections(Mutex<HashMap<i32, Lent>>);

struct Lent {
    socket: Arc<Socket>,
    is_tls: bool,
}

/// A connection's place in the table, which is empty when this is dropped.
pub struct Loan<'a> {
    all: &'a LentConnections,
    connection: i32,
}

impl LentConnections {
    /// Enters a connection that is lent to a thread.
    pub fn lend(&self, connection: i32, socket: Arc<Socket>, is_tls: bool) -> Loan<'_> {
        self.lock().insert(connection, Lent { socket, is_tls });
        Loan { all: self, connection }
    }

    /// Stops the commands whose clients have gone.
    pub fn abandon_gone(&self, operations: &Operations) {
        for operation in operations.list() {
            let connection = operation.peer.id;
            // No other thread gets the lock meanwhile, and so no socket's last holder is this one.
            let is_gone = self.lock().get(&connection).is_some_and(Lent::is_gone);
            if is_gone {
                operations.abandon(connection);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Lent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.connection);
    }
}

impl Lent {
    /// Whether the client has closed its side, and all that it said was read. By TLS a client says
    /// farewell, which isn't read while its command runs: there it is enough that it has closed.
    fn is_gone(&self) -> bool {
        if self.is_tls {
            return has_hung_up(self.socket.as_fd());
        }
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match net::recv(self.socket.as_fd(), &mut [0; 1], flags) {
            Ok((_, bytes)) => bytes == 0,
            Err(error) => error != Errno::AGAIN && error != Errno::INTR,
        }
    }
}

#[cfg(target_os = "linux")]
fn has_hung_up(socket: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok_and(|count| count > 0)
}

/// Elsewhere it isn't known: the command is finished.
#[cfg(not(target_os = "linux"))]
fn has_hung_up(_: BorrowedFd<'_>) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    /// A connection's two sides: the server's and the client's.
    fn connect() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address).expect("listens");
        (listener.accept().expect("it connected").0, client)
    }

    /// Whether its client has gone, as soon as the system knows.
    fn is_gone_soon(socket: &Arc<TcpStream>, is_tls: bool) -> bool {
        let lent = Lent { socket: Arc::clone(socket) as Arc<Socket>, is_tls };
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !lent.is_gone() && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        lent.is_gone()
    }

    #[test]
    fn clients_that_are_silent_or_have_more_to_say_have_not_gone() {
        for is_tls in [false, true] {
            let (server, mut client) = connect();
            let server = Arc::new(server);
            let lent = Lent { socket: Arc::clone(&server) as Arc<Socket>, is_tls };
            assert!(!lent.is_gone(), "it is silent");
            client.write_all(b"more").expect("sends");
            assert!(!lent.is_gone(), "it has more to say");
            drop(client);
            // By TLS what wasn't read is a farewell; else it is a request.
            match is_tls && cfg!(target_os = "linux") {
                true => assert!(is_gone_soon(&server, is_tls)),
                false => assert!(!lent.is_gone()),
            }
        }
        let (server, client) = connect();
        drop(client);
        assert!(is_gone_soon(&Arc::new(server), false));
    }

    #[test]
    fn a_socket_that_is_taken_back_has_no_other_holder() {
        let (server, _client) = connect();
        let (socket, all) = (Arc::new(server), LentConnections::default());
        let loan = all.lend(7, Arc::clone(&socket) as Arc<Socket>, false);
        assert_eq!(Arc::strong_count(&socket), 2);
        all.abandon_gone(&Operations::default());
        drop(loan);
        assert!(Arc::into_inner(socket).is_some());
    }
}
