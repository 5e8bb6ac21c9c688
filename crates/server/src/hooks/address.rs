//! A hook that is an address: what it is about is sent there.
//!
//! A thread of its own talks to it: to look up a host's name, and to connect, can't be broken off.
//! The caller waits for as long as it may, and leaves that thread to its own limits.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use frond_db::Interrupt;

use super::command::took_too_long;
use super::{HookFailure, MESSAGE_BYTES_MAX};

/// The interval of checks whether the caller must stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Sends `line` and waits for the answer.
///
/// # Errors
/// The answer, if that is no 2xx; that no answer came in time; what `interrupt` says.
pub fn send(
    address: &str,
    line: String,
    time_max: Duration,
    interrupt: &Interrupt,
) -> Result<(), HookFailure> {
    let begun = Instant::now();
    let (sender, receiver) = channel();
    let address = address.to_owned();
    // Too late for a caller that has gone on.
    thread::spawn(move || drop(sender.send(post(&address, &line, time_max))));
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(answer) => return answer.map_err(HookFailure::Refused),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < time_max => {
                interrupt.check().map_err(HookFailure::Interrupted)?;
            }
            Err(_) => return Err(HookFailure::Refused(took_too_long(time_max))),
        }
    }
}

fn post(address: &str, line: &str, time_max: Duration) -> Result<(), String> {
    let rest = address.strip_prefix("http://");
    let rest = rest.ok_or_else(|| format!("{address}: http://HOST[:PORT]/PATH is expected"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() || address.contains(|letter: char| letter.is_control() || letter == ' ') {
        return Err(format!("{address}: http://HOST[:PORT]/PATH is expected"));
    }
    let answer =
        exchange(host, path, line, time_max).map_err(|error| format!("{address}: {error}"))?;
    let status = answer.split(' ').nth(1).unwrap_or("");
    match status.len() == 3 && status.starts_with('2') {
        true => Ok(()),
        false => {
            let message = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body.trim());
            Err(if message.is_empty() {
                format!("{address}: status {status}")
            } else {
                message.to_owned()
            })
        }
    }
}

fn exchange(host: &str, path: &str, line: &str, time_max: Duration) -> io::Result<String> {
    let begun = Instant::now();
    let with_port = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let resolved = with_port.to_socket_addrs()?.next();
    let resolved = resolved.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let mut stream = TcpStream::connect_timeout(&resolved, time_max)?;
    stream.set_write_timeout(Some(time_max))?;
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        line.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(line.as_bytes())?;
    let mut answer = Vec::new();
    let mut buffer = [0; 1024];
    while (answer.len() as u64) < MESSAGE_BYTES_MAX {
        let left = time_max.checked_sub(begun.elapsed());
        let left = left.filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        match stream.read(&mut buffer)? {
            0 => break,
            count => answer.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use frond_db::Error;
    use frond_query::Code;

    use super::*;

    /// Goal: an address that takes what is sent and never answers is waited for no longer than the
    /// limit, or the caller's interrupt, says.
    #[test]
    fn a_silent_address_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = format!("http://{}/x", listener.local_addr().expect("bound"));
        let begun = Instant::now();
        let short = Duration::from_millis(300);
        match send(&address, "{}\n".to_owned(), short, &Interrupt::default()) {
            Err(HookFailure::Refused(_)) => assert!(short <= begun.elapsed()),
            other => panic!("{other:?}"),
        }
        let killed = Interrupt::new(|| Err(Error::invalid(Code::Interrupted, "killed")));
        match send(&address, "{}\n".to_owned(), Duration::from_secs(60), &killed) {
            Err(HookFailure::Interrupted(error)) => assert_eq!(error.code, Code::Interrupted),
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
