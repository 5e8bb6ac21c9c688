//! A hook that is an address: what it is about is sent there.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Instant;

use super::{MESSAGE_BYTES_MAX, TIME_MAX};

/// Sends `line` and waits for the answer.
///
/// # Errors
/// The answer, if that is no 2xx; that no answer came in time.
pub fn send(address: &str, line: &str) -> Result<(), String> {
    let rest = address.strip_prefix("http://");
    let rest = rest.ok_or_else(|| format!("{address}: http://HOST[:PORT]/PATH is expected"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() || address.contains(|letter: char| letter.is_control() || letter == ' ') {
        return Err(format!("{address}: http://HOST[:PORT]/PATH is expected"));
    }
    let answer = exchange(host, path, line).map_err(|error| format!("{address}: {error}"))?;
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

fn exchange(host: &str, path: &str, line: &str) -> io::Result<String> {
    let begun = Instant::now();
    let with_port = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let resolved = with_port.to_socket_addrs()?.next();
    let resolved = resolved.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let mut stream = TcpStream::connect_timeout(&resolved, TIME_MAX)?;
    stream.set_write_timeout(Some(TIME_MAX))?;
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
        let left = TIME_MAX.checked_sub(begun.elapsed());
        let left = left.filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        match stream.read(&mut buffer)? {
            0 => break,
            count => answer.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
