//! The little of MySQL's protocol that reads from Dolt: a login without a password, and queries
//! whose rows come as text.
//!
//! A packet is three bytes of length, a number, and the payload; one of the greatest length goes on
//! in the next. Rows are shown as they come, so that a table needs no memory. The types of columns
//! aren't read from here: the repository's schema says it better (`column`).

use std::io::{self, BufReader, Read, Write};

use crate::failure::Failure;
use crate::output::plain;

const PACKET_BYTES_MAX: usize = 0xff_ffff;
/// A row that Dolt can hold is shorter.
const PAYLOAD_BYTES_MAX: usize = 1 << 30;
const COLUMNS_MAX: u64 = 1 << 16;

const OK: u8 = 0x00;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
const NULL: u8 = 0xfb;
const QUERY: u8 = 0x03;
/// The payload of an `END` is shorter than this; a row that begins so is longer.
const END_BYTES_MAX: usize = 8;

const LONG_PASSWORD: u32 = 1;
const LONG_FLAG: u32 = 1 << 2;
const PROTOCOL_41: u32 = 1 << 9;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGIN_AUTH: u32 = 1 << 19;
const UTF8MB4: u8 = 45;
const USER: &[u8] = b"root\0";
const PLUGIN: &[u8] = b"mysql_native_password\0";

/// A connection to Dolt's server.
pub struct Connection {
    reader: BufReader<Box<dyn Read>>,
    writer: Box<dyn Write>,
    number: u8,
}

/// A row: the text of each cell, `None` where it is NULL.
pub struct Row(Vec<Option<Vec<u8>>>);

impl Row {
    /// The bytes of a cell.
    pub fn bytes(&self, position: usize) -> Option<&[u8]> {
        self.0.get(position)?.as_deref()
    }

    /// The text of a cell; empty where it is NULL or no UTF-8.
    pub fn text(&self, position: usize) -> &str {
        self.bytes(position).and_then(|cell| std::str::from_utf8(cell).ok()).unwrap_or_default()
    }
}

impl Connection {
    /// Logs in as `root`, for which a server that was just started on a repository asks no
    /// password.
    ///
    /// # Errors
    /// [`Failure::Failed`] with what the server says.
    pub fn begin(reader: Box<dyn Read>, writer: Box<dyn Write>) -> Result<Connection, Failure> {
        let reader = BufReader::with_capacity(1 << 16, reader);
        let mut connection = Connection { reader, writer, number: 0 };
        let greeting = connection.read()?;
        if greeting.first() == Some(&ERROR) {
            return Err(server_failure(&greeting));
        }
        let abilities = LONG_PASSWORD
            | LONG_FLAG
            | PROTOCOL_41
            | TRANSACTIONS
            | SECURE_CONNECTION
            | PLUGIN_AUTH;
        let mut answer = abilities.to_le_bytes().to_vec();
        answer.extend_from_slice(&(PACKET_BYTES_MAX as u32).to_le_bytes());
        answer.push(UTF8MB4);
        answer.extend_from_slice(&[0; 23]);
        answer.extend_from_slice(USER);
        // The proof of no password is empty.
        answer.push(0);
        answer.extend_from_slice(PLUGIN);
        connection.write(&answer)?;
        let mut reply = connection.read()?;
        if reply.first() == Some(&END) {
            // It wants another plugin: an empty password is an empty proof in each.
            connection.write(&[])?;
            reply = connection.read()?;
        }
        match reply.first() {
            Some(&OK) => Ok(connection),
            Some(&ERROR) => Err(server_failure(&reply)),
            _ => Err(Failure::failed("Dolt's server asks for a password")),
        }
    }

    /// Runs a query and shows each row to `visit`.
    ///
    /// # Errors
    /// [`Failure::Failed`] with what the server says, or what `visit` fails with; then the
    /// connection is of no more use.
    pub fn query(
        &mut self,
        sql: &str,
        visit: &mut dyn FnMut(&Row) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.number = 0;
        let mut query_packet = vec![QUERY];
        query_packet.extend_from_slice(sql.as_bytes());
        self.write(&query_packet)?;
        let first = self.read()?;
        let columns = match first.first() {
            Some(&OK) => return Ok(()),
            Some(&ERROR) => return Err(server_failure(&first)),
            _ => Cells(&first).count().filter(|count| *count <= COLUMNS_MAX).ok_or_else(broken)?,
        };
        for _ in 0..columns {
            self.read()?;
        }
        if !is_end(&self.read()?) {
            return Err(broken());
        }
        loop {
            let payload = self.read()?;
            if is_end(&payload) {
                return Ok(());
            }
            if payload.first() == Some(&ERROR) {
                return Err(server_failure(&payload));
            }
            let mut cells = Cells(&payload);
            let row: Option<Vec<_>> = (0..columns).map(|_| cells.cell()).collect();
            visit(&Row(row.ok_or_else(broken)?))?;
        }
    }

    /// The rows of a query that has few.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        self.query(sql, &mut |row| {
            rows.push(Row(row.0.clone()));
            Ok(())
        })?;
        Ok(rows)
    }

    fn read(&mut self) -> Result<Vec<u8>, Failure> {
        let mut payload = Vec::new();
        loop {
            let mut head = [0; 4];
            self.reader.read_exact(&mut head).map_err(|error| lost(&error))?;
            let [low, middle, high, number] = head;
            let bytes = u32::from_le_bytes([low, middle, high, 0]) as usize;
            if PAYLOAD_BYTES_MAX < payload.len() + bytes {
                return Err(broken());
            }
            let start = payload.len();
            payload.resize(start + bytes, 0);
            self.reader.read_exact(&mut payload[start..]).map_err(|error| lost(&error))?;
            self.number = number.wrapping_add(1);
            if bytes < PACKET_BYTES_MAX {
                return Ok(payload);
            }
        }
    }

    /// Writes a payload: all of ours are shorter than a packet.
    fn write(&mut self, payload: &[u8]) -> Result<(), Failure> {
        assert!(payload.len() < PACKET_BYTES_MAX);
        let [low, middle, high, _] = (payload.len() as u32).to_le_bytes();
        let mut packet = vec![low, middle, high, self.number];
        packet.extend_from_slice(payload);
        let written = self.writer.write_all(&packet).and_then(|()| self.writer.flush());
        written.map_err(|error| lost(&error))
    }
}

/// Numbers and texts with their length before them.
struct Cells<'a>(&'a [u8]);

impl Cells<'_> {
    fn take(&mut self, bytes: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn count(&mut self) -> Option<u64> {
        let bytes = match *self.take(1)?.first()? {
            small @ 0..=0xfa => return Some(u64::from(small)),
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            _ => return None,
        };
        let mut count = [0; 8];
        count[..bytes].copy_from_slice(self.take(bytes)?);
        Some(u64::from_le_bytes(count))
    }

    /// The next cell; an inner `None` is NULL.
    fn cell(&mut self) -> Option<Option<Vec<u8>>> {
        if self.0.first() == Some(&NULL) {
            self.take(1)?;
            return Some(None);
        }
        let bytes = usize::try_from(self.count()?).ok()?;
        Some(Some(self.take(bytes)?.to_vec()))
    }
}

fn is_end(payload: &[u8]) -> bool {
    payload.first() == Some(&END) && payload.len() <= END_BYTES_MAX
}

/// What an error of the server says: behind its number and state.
fn server_failure(payload: &[u8]) -> Failure {
    let text = payload.get(3..).unwrap_or_default();
    let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    Failure::failed(format!("dolt: {}", plain(&String::from_utf8_lossy(text))))
}

fn broken() -> Failure {
    Failure::failed("Dolt's server sent what isn't MySQL's protocol")
}

fn lost(error: &io::Error) -> Failure {
    Failure::failed(format!("the connection to Dolt's server is lost: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result of one column with the rows `payloads`, behind a login.
    fn answered(payloads: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let mut sent = Vec::new();
        let begin: [&[u8]; 5] = [b"\x0agreeting", b"\0", b"\x01", b"column", b"\xfe\0\0\0\0"];
        for payload in begin.iter().chain(payloads) {
            let pieces = payload.chunks(PACKET_BYTES_MAX);
            let ends_so = payload.len().is_multiple_of(PACKET_BYTES_MAX);
            for piece in pieces.chain(ends_so.then_some(&[][..])) {
                sent.extend_from_slice(&(piece.len() as u32).to_le_bytes()[..3]);
                sent.push(0);
                sent.extend_from_slice(piece);
            }
        }
        let mut connection =
            Connection::begin(Box::new(io::Cursor::new(sent)), Box::new(io::sink()))?;
        let rows = connection.rows("select 1")?;
        Ok(rows.iter().map(|row| row.bytes(0).map(<[u8]>::to_vec)).collect())
    }

    #[test]
    fn rows_and_errors() {
        let end: &[u8] = b"\xfe\0\0\0\0";
        let rows = answered(&[b"\x02ab", b"\xfb", b"\0", end]).expect("rows");
        assert_eq!(rows, [Some(b"ab".to_vec()), None, Some(Vec::new())]);
        for wrong in [&b"\x05ab"[..], b"\xff\0\0#HY000no such table", b"", b"\xfc\x01"] {
            assert!(answered(&[wrong, end]).is_err(), "{wrong:?}");
        }
        assert!(answered(&[b"\x02ab"]).is_err(), "it ends before its end");
    }

    #[test]
    fn a_row_longer_than_a_packet() {
        // The length's eight bytes begin as an end does.
        for bytes in [PACKET_BYTES_MAX - 9, PACKET_BYTES_MAX, 2 * PACKET_BYTES_MAX] {
            let mut row = vec![0xfe];
            row.extend_from_slice(&(bytes as u64).to_le_bytes());
            row.resize(9 + bytes, b'x');
            let rows = answered(&[&row, b"\xfe\0\0\0\0"]).expect("a row");
            assert_eq!(rows, [Some(vec![b'x'; bytes])]);
        }
    }
}
