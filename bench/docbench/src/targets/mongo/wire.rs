//! One connection that speaks MongoDB's protocol (OP_MSG), and nothing else: no pool, no monitor,
//! no retries.

use std::io::{Read, Write};
use std::net::TcpStream;

use bson::{Document, RawDocument};

use crate::target::Failure;

/// MongoDB's WriteConflict.
const WRITE_CONFLICT: i32 = 112;
/// By this label a server says that the whole transaction may be run again.
const TRANSIENT: &str = "TransientTransactionError";
const OP_MSG: i32 = 2013;
const HEADER_BYTES: usize = 16;
/// Header, flags and the first section's kind.
const BODY_OFFSET: usize = HEADER_BYTES + 5;
const MESSAGE_BYTES_MAX: usize = 64 << 20;
const STEP_BYTES: usize = 16 << 10;

/// Documents that travel beside a command.
pub struct Sequence<'a> {
    /// The command's field that they stand for.
    pub name: &'a str,
    /// As BSON.
    pub documents: &'a [&'a [u8]],
}

/// A connection.
pub struct Connection {
    stream: TcpStream,
    last_id: i32,
    message: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects to `HOST:PORT`.
    pub fn open(address: &str) -> Result<Connection, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, last_id: 0, message: Vec::new(), answer: Vec::new() })
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// [`Failure::Conflict`] if another transaction was first; [`Failure::Other`] for whatever else
    /// the answer says, of single documents too.
    pub fn ask(
        &mut self,
        command: &Document,
        sequence: Option<Sequence<'_>>,
    ) -> Result<&RawDocument, Failure> {
        self.write_message(command, sequence)?;
        self.stream.write_all(&self.message)?;
        let bytes = self.read_answer()?;
        let body = self.answer.get(BODY_OFFSET..bytes).ok_or_else(not_an_answer)?;
        let answer = RawDocument::from_bytes(body).map_err(Failure::other)?;
        check(answer)?;
        Ok(answer)
    }

    fn write_message(
        &mut self,
        command: &Document,
        sequence: Option<Sequence<'_>>,
    ) -> Result<(), Failure> {
        self.last_id = self.last_id.wrapping_add(1);
        let message = &mut self.message;
        message.clear();
        // The length is known at the end.
        for number in [0, self.last_id, 0, OP_MSG] {
            message.extend_from_slice(&number.to_le_bytes());
        }
        message.extend_from_slice(&[0; BODY_OFFSET - HEADER_BYTES]);
        command.to_writer(&mut *message)?;
        if let Some(Sequence { name, documents }) = sequence {
            message.push(1);
            let bytes: usize = documents.iter().map(|document| document.len()).sum();
            message.extend_from_slice(&length(4 + name.len() + 1 + bytes)?);
            message.extend_from_slice(name.as_bytes());
            message.push(0);
            documents.iter().for_each(|document| message.extend_from_slice(document));
        }
        let bytes = length(message.len())?;
        message[..bytes.len()].copy_from_slice(&bytes);
        Ok(())
    }

    /// Reads one message; returns how long it is.
    fn read_answer(&mut self) -> Result<usize, Failure> {
        let mut have = 0;
        let mut wanted = HEADER_BYTES;
        while have < wanted {
            if self.answer.len() < wanted.max(have + 1) {
                self.answer.resize(wanted.max(STEP_BYTES), 0);
            }
            match self.stream.read(&mut self.answer[have..])? {
                0 => return Err(Failure::Other("the server closed the connection".into())),
                count => have += count,
            }
            if let Some(bytes) = self.answer[..have].first_chunk::<4>() {
                wanted = i32::from_le_bytes(*bytes) as usize;
                if !(HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&wanted) {
                    return Err(not_an_answer());
                }
            }
        }
        Ok(wanted)
    }
}

fn length(bytes: usize) -> Result<[u8; 4], Failure> {
    Ok(i32::try_from(bytes).map_err(Failure::other)?.to_le_bytes())
}

fn not_an_answer() -> Failure {
    Failure::Other("what came is no answer".into())
}

/// Whether an answer says that all went well.
fn check(answer: &RawDocument) -> Result<(), Failure> {
    let is_ok = answer.get_f64("ok").is_ok_and(|ok| ok == 1.0)
        || answer.get_i32("ok").is_ok_and(|ok| ok == 1);
    let errors = answer.get_array("writeErrors").ok().and_then(|errors| errors.into_iter().next());
    if is_ok && errors.is_none() && answer.get_document("writeConcernError").is_err() {
        return Ok(());
    }
    let first = errors.and_then(|error| error.ok()?.as_document()).unwrap_or(answer);
    let labels = answer.get_array("errorLabels").ok().into_iter().flatten();
    let is_transient = labels.flatten().any(|label| label.as_str() == Some(TRANSIENT));
    if is_transient || first.get_i32("code").is_ok_and(|code| code == WRITE_CONFLICT) {
        return Err(Failure::Conflict(format!("{first:?}")));
    }
    Err(Failure::Other(format!("{first:?}")))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use bson::doc;

    use super::*;

    /// Sends an answer in pieces of three bytes to the client that connects; returns the address.
    fn answering(answer: Document) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("it connects");
            stream.set_nodelay(true).expect("a socket");
            let body = answer.to_vec().expect("a document");
            let bytes = (BODY_OFFSET + body.len()) as i32;
            let mut message = bytes.to_le_bytes().to_vec();
            message.resize(BODY_OFFSET, 0);
            message.extend(body);
            for piece in message.chunks(3) {
                stream.write_all(piece).expect("it reads");
            }
            let mut rest = Vec::new();
            // Until the client has gone: what it said is checked by real servers.
            let _ = stream.read_to_end(&mut rest);
        });
        address
    }

    #[test]
    fn an_answer_is_taken_apart() {
        let conflict = doc! { "ok": 0.0, "code": WRITE_CONFLICT, "errmsg": "conflict" };
        let transient = doc! { "ok": 0, "code": 251, "errorLabels": [TRANSIENT] };
        let duplicate = doc! { "ok": 1.0, "n": 0, "writeErrors": [{ "index": 0, "code": 11000 }] };
        let late = doc! { "ok": 1.0, "writeErrors": [{ "index": 0, "code": WRITE_CONFLICT }] };
        let unsynced = doc! { "ok": 1.0, "writeConcernError": { "code": 64 } };
        for (answer, expected) in [
            (doc! { "ok": 1.0, "n": 3 }, "fine"),
            (doc! { "ok": 1, "text": "x".repeat(3 * STEP_BYTES) }, "fine"),
            (conflict, "conflict"),
            (transient, "conflict"),
            (duplicate, "other"),
            (late, "conflict"),
            (unsynced, "other"),
        ] {
            let mut connection = Connection::open(&answering(answer.clone())).expect("listens");
            let outcome = match connection.ask(&doc! { "ping": 1 }, None) {
                Ok(reply) => {
                    assert_eq!(reply.as_bytes(), answer.to_vec().expect("a document"));
                    "fine"
                }
                Err(Failure::Conflict(_)) => "conflict",
                Err(_) => "other",
            };
            assert_eq!(outcome, expected, "{}", answer.get_str("errmsg").unwrap_or_default());
        }
    }
}
