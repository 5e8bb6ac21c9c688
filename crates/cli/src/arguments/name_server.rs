//! Questions to the servers of the name system (DNS) that the operating system's own calls don't
//! ask: for records of services and texts (RFC 1035, RFC 2782).
//!
//! A question goes to each server of `/etc/resolv.conf` by UDP, twice, and by TCP where the answer
//! is cut. Answers are bytes from a network: nothing in them is trusted, no length, no pointer.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

const PORT: u16 = 53;
const SERVERS_MAX: usize = 3;
const ROUNDS: usize = 2;
const TIMEOUT: Duration = Duration::from_secs(2);

const HEADER_BYTES: usize = 12;
const NAME_BYTES_MAX: usize = 255;
const LABEL_BYTES_MAX: usize = 63;
/// An answer by UDP is at most so long, without what extends the protocol.
const DATAGRAM_BYTES_MAX: usize = 512;

const RECURSION_DESIRED: u8 = 0x01;
const IS_ANSWER: u8 = 0x80;
const IS_CUT: u8 = 0x02;
const NO_SUCH_NAME: u8 = 3;
const CLASS_INTERNET: u16 = 1;

/// The kind of record asked for.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Text = 16,
    Service = 33,
}

/// The servers that are asked.
pub struct NameServers(Vec<SocketAddr>);

impl NameServers {
    /// Those of this machine.
    pub fn of_machine() -> NameServers {
        let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let named = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
        let addresses = named.filter_map(|rest| rest.trim().parse::<IpAddr>().ok());
        let mut servers: Vec<_> = addresses.map(|ip| SocketAddr::new(ip, PORT)).collect();
        servers.truncate(SERVERS_MAX);
        if servers.is_empty() {
            servers.push((Ipv4Addr::LOCALHOST, PORT).into());
        }
        NameServers(servers)
    }

    /// Those at `addresses`.
    #[cfg(test)]
    pub fn at(addresses: &[SocketAddr]) -> NameServers {
        NameServers(addresses.to_vec())
    }

    /// The names and ports of a service.
    ///
    /// # Errors
    /// If no server answers, or none of them rightly.
    pub fn services(&self, name: &str) -> io::Result<Vec<(String, u16)>> {
        let answer = self.ask(name, Kind::Service)?;
        let read = |record: &Record| {
            // Before them stand priority and weight, by which nothing is chosen here.
            let port = short(&answer, record.start + 4)?;
            Some((read_name(&answer, record.start + 6)?.0, port))
        };
        records(&answer, Kind::Service)
            .and_then(|records| records.iter().map(read).collect())
            .ok_or_else(|| nonsense(name))
    }

    /// The texts of a name; none where it has none.
    ///
    /// # Errors
    /// If no server answers, or none of them rightly.
    pub fn texts(&self, name: &str) -> io::Result<Vec<String>> {
        let answer = match self.ask(name, Kind::Text) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            answer => answer?,
        };
        let read = |record: &Record| {
            // A text may lie in several parts, each behind its length.
            let mut bytes = answer.get(record.start..record.end)?;
            let mut text = Vec::new();
            while let Some((count, rest)) = bytes.split_first() {
                text.extend_from_slice(rest.get(..usize::from(*count))?);
                bytes = &rest[usize::from(*count)..];
            }
            String::from_utf8(text).ok()
        };
        records(&answer, Kind::Text)
            .and_then(|records| records.iter().map(read).collect())
            .ok_or_else(|| nonsense(name))
    }

    fn ask(&self, name: &str, kind: Kind) -> io::Result<Vec<u8>> {
        let question = question(name, kind).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is not a host name"))
        })?;
        let mut last = io::Error::other("there is no name server");
        for server in self.0.repeat(ROUNDS) {
            match ask_one(server, &question, name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => last = error,
                done => return done,
            }
        }
        Err(last)
    }
}

fn ask_one(server: SocketAddr, question: &[u8], name: &str) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.connect(server)?;
    socket.send(question)?;
    let mut answer = vec![0; DATAGRAM_BYTES_MAX];
    let count = socket.recv(&mut answer)?;
    answer.truncate(count);
    if is_answer(&answer, question) && answer[2] & IS_CUT != 0 {
        answer = ask_by_stream(server, question)?;
    }
    if !is_answer(&answer, question) {
        return Err(nonsense(name));
    }
    match answer[3] & 0x0f {
        0 => Ok(answer),
        NO_SUCH_NAME => {
            Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no name {name}")))
        }
        code => Err(io::Error::other(format!("the name server refused {name} with code {code}"))),
    }
}

/// Messages have their length before them there.
fn ask_by_stream(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// Header, name, kind and class; nothing if it is no name.
fn question(name: &str, kind: Kind) -> Option<Vec<u8>> {
    let id = RandomState::new().hash_one(name).to_be_bytes();
    let mut bytes = vec![id[0], id[1], RECURSION_DESIRED, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        if label.is_empty() || label.len() > LABEL_BYTES_MAX {
            return None;
        }
        bytes.push(u8::try_from(label.len()).ok()?);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    if bytes.len() - HEADER_BYTES > NAME_BYTES_MAX {
        return None;
    }
    bytes.extend_from_slice(&(kind as u16).to_be_bytes());
    bytes.extend_from_slice(&CLASS_INTERNET.to_be_bytes());
    Some(bytes)
}

/// Whether these bytes answer that question: they repeat its id, and it.
fn is_answer(answer: &[u8], question: &[u8]) -> bool {
    let question_name = &question[HEADER_BYTES..];
    answer.len() >= question.len()
        && answer[..2] == question[..2]
        && answer[2] & IS_ANSWER != 0
        && answer[HEADER_BYTES..question.len()].eq_ignore_ascii_case(question_name)
}

/// The place of a record's data.
struct Record {
    start: usize,
    end: usize,
}

/// The records of a kind among the answers; nothing if they are cut off.
fn records(answer: &[u8], kind: Kind) -> Option<Vec<Record>> {
    let count = short(answer, 6)?;
    // The question was compared with ours: its name is whole.
    let mut at = read_name(answer, HEADER_BYTES)?.1 + 4;
    let mut found = Vec::new();
    for _ in 0..count {
        at = read_name(answer, at)?.1;
        let is_it = short(answer, at)? == kind as u16 && short(answer, at + 2)? == CLASS_INTERNET;
        let start = at + 10;
        let end = start + usize::from(short(answer, at + 8)?);
        if end > answer.len() {
            return None;
        }
        if is_it {
            found.push(Record { start, end });
        }
        at = end;
    }
    Some(found)
}

/// A name, and where what follows it begins. Its end may be that of another before it.
fn read_name(bytes: &[u8], start: usize) -> Option<(String, usize)> {
    let (mut name, mut at, mut after) = (String::new(), start, None);
    loop {
        let count = usize::from(*bytes.get(at)?);
        match count >> 6 {
            0 if count == 0 => return Some((name, after.unwrap_or(at + 1))),
            0 => {
                let label = bytes.get(at + 1..at + 1 + count)?;
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(std::str::from_utf8(label).ok()?);
                if name.len() > NAME_BYTES_MAX {
                    return None;
                }
                at += 1 + count;
            }
            3 => {
                let to = (count & 0x3f) << 8 | usize::from(*bytes.get(at + 1)?);
                // Only backwards: so no name goes round in a ring.
                if to >= at {
                    return None;
                }
                after = after.or(Some(at + 2));
                at = to;
            }
            _ => return None,
        }
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn nonsense(name: &str) -> io::Error {
    let what = format!("the name server's answer about {name} can't be read");
    io::Error::new(io::ErrorKind::InvalidData, what)
}
