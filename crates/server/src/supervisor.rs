//! Notifies a supervisor of the server's state, as in sd_notify(3): datagrams to the socket that
//! `NOTIFY_SOCKET` names.
//!
//! - `READY=1` once clients are served, `STOPPING=1` once the server drains.
//! - `WATCHDOG=1` twice in the time that `WATCHDOG_USEC` gives, each time after a thread was had
//!   and the engine's locks were taken: a server that hangs is silent, and is started again.
//!
//! A supervisor that doesn't listen gets no message: nothing of this fails the server.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The supervisor to notify.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Supervisor {
    socket: OsString,
    /// The interval at which the supervisor wants a message.
    pub watchdog: Option<Duration>,
}

impl Supervisor {
    /// The one that started this process, by what it put into the environment.
    pub fn of_environment() -> Option<Supervisor> {
        let variable = |name: &str| std::env::var(name).ok();
        let is_for_another =
            variable("WATCHDOG_PID").is_some_and(|pid| pid.parse() != Ok(std::process::id()));
        let micros = variable("WATCHDOG_USEC").and_then(|micros| micros.parse().ok());
        let micros = micros.filter(|micros| *micros > 0 && !is_for_another);
        Some(Supervisor {
            socket: std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())?,
            watchdog: micros.map(Duration::from_micros),
        })
    }

    /// Sends it a message: lines of `NAME=VALUE`.
    ///
    /// # Errors
    /// If no supervisor listens.
    pub fn notify(&self, state: &str) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        // A supervisor that reads nothing must not hold the server up.
        socket.set_nonblocking(true)?;
        socket.send_to_addr(state.as_bytes(), &self.address()?)?;
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn address(&self) -> io::Result<SocketAddr> {
        use std::os::linux::net::SocketAddrExt;
        match self.socket.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(&self.socket),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn address(&self) -> io::Result<SocketAddr> {
        SocketAddr::from_pathname(&self.socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_reach_a_path_and_an_abstract_name() {
        let name = format!("frond-supervisor-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        let listener = UnixDatagram::bind(&path).expect("room");
        check(&listener, path.clone().into_os_string());
        std::fs::remove_file(&path).expect("it is there");
        let gone = Supervisor { socket: path.into_os_string(), watchdog: None };
        assert!(gone.notify("READY=1").is_err());
        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt;
            let address = SocketAddr::from_abstract_name(&name).expect("it is short");
            let listener = UnixDatagram::bind_addr(&address).expect("room");
            check(&listener, format!("@{name}").into());
        }
    }

    fn check(listener: &UnixDatagram, socket: OsString) {
        Supervisor { socket, watchdog: None }
            .notify("READY=1\nSTATUS=x")
            .expect("the test listens");
        let mut bytes = [0; 64];
        let count = listener.recv(&mut bytes).expect("it was told");
        assert_eq!(&bytes[..count], b"READY=1\nSTATUS=x");
    }
}
