//! Reads and writes whole messages on sockets, and rewrites answers on their way.
//!
//! A message is read as it comes in: its memory grows with what came, not with what was claimed.
//! Of an answer, the moment of the line that gave it is cut out ([`rewrite`]): lines have clocks of
//! their own, and a driver would send one line's moment to another, which would wait for it.

use std::io;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use crate::limits::progress_time;
use crate::wire::{HEADER_BYTES, Header};

const FLAGS_END: usize = HEADER_BYTES + size_of::<u32>();
const BODY_BEGIN: usize = FLAGS_END + 1;
const CHECKSUM_BYTES: usize = size_of::<u32>();
const CHECKSUM_PRESENT: u8 = 1;
const MORE_TO_COME: u8 = 2;
/// The bit in the third byte of the flags by which the sender takes several answers.
const EXHAUST_ALLOWED: u8 = 1;
const SECTION_BODY: u8 = 0;
const SECTION_SEQUENCE: u8 = 1;
/// The fields in which a line gives its own time.
const MOMENTS: [&[u8]; 2] = [b"operationTime", b"$clusterTime"];

/// A stream of messages, encrypted or not.
pub(super) trait MessageStream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> MessageStream for T {}

/// A socket, by TLS or not.
pub(super) type Socket = BufReader<Box<dyn MessageStream>>;

/// Makes a socket of a stream.
pub(super) fn socket(stream: impl MessageStream + 'static) -> Socket {
    BufReader::new(Box::new(stream))
}

/// Reads a message, header included; `None` if the other side has ended before it.
///
/// # Errors
/// An error of the socket; `InvalidData` for what is no message; `TimedOut` if it stops within one.
pub(super) async fn read(socket: &mut Socket) -> io::Result<Option<(Header, Vec<u8>)>> {
    let mut head = [0; HEADER_BYTES];
    let first = socket.read(&mut head).await?;
    if first == 0 {
        return Ok(None);
    }
    let rest = timeout(progress_time(0), socket.read_exact(&mut head[first..])).await;
    rest.map_err(io::Error::from)??;
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let header = Header::decode(&head).map_err(invalid)?;
    let mut message = head.to_vec();
    let left = (header.bytes - HEADER_BYTES) as u64;
    let mut body = socket.take(left);
    let read = timeout(progress_time(header.bytes), body.read_to_end(&mut message)).await;
    read.map_err(io::Error::from)??;
    match message.len() == header.bytes {
        true => Ok(Some((header, message))),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes a message, or several.
///
/// # Errors
/// An error of the socket.
pub(super) async fn write(socket: &mut Socket, bytes: &[u8]) -> io::Result<()> {
    socket.write_all(bytes).await?;
    socket.flush().await
}

/// Whether the sender of an OP_MSG wants no answer.
pub(super) fn wants_no_answer(message: &[u8]) -> bool {
    message.get(HEADER_BYTES).is_some_and(|flags| flags & MORE_TO_COME != 0)
}

/// Takes back that several answers may come: a router has one for each message.
pub(super) fn forbid_exhaust(message: &mut Vec<u8>) {
    let Some(flags) = message.get_mut(HEADER_BYTES..FLAGS_END) else { return };
    if flags[2] & EXHAUST_ALLOWED != 0 {
        flags[2] &= !EXHAUST_ALLOWED;
        drop_checksum(message);
    }
}

/// Leaves out a checksum, which isn't right any more once something was changed.
fn drop_checksum(message: &mut Vec<u8>) {
    let has_room = message.len() >= BODY_BEGIN + CHECKSUM_BYTES;
    if has_room && message[HEADER_BYTES] & CHECKSUM_PRESENT != 0 {
        message[HEADER_BYTES] &= !CHECKSUM_PRESENT;
        message.truncate(message.len() - CHECKSUM_BYTES);
        let bytes = message.len();
        set_length(message, 0, bytes);
    }
}

fn set_length(bytes: &mut [u8], at: usize, length: usize) {
    let length = i32::try_from(length).expect("a message has less than 2 GiB");
    bytes[at..at + size_of::<i32>()].copy_from_slice(&length.to_le_bytes());
}

fn length_at(bytes: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok()
}

/// The command of an OP_MSG, validated; the documents beside it aren't looked at.
pub(super) fn body(message: &[u8]) -> Option<Document<'_>> {
    let mut sections = message.get(FLAGS_END..)?;
    loop {
        let (kind, section) = sections.split_first()?;
        let length = length_at(section)?;
        match *kind {
            SECTION_SEQUENCE if length >= size_of::<i32>() => sections = section.get(length..)?,
            SECTION_BODY => {
                let document = section.get(..length)?;
                frond_doc::validate::validate(document).ok()?;
                return Some(Document::from_validated(document));
            }
            _ => return None,
        }
    }
}

/// The body of an answer that one of our servers gave.
///
/// # Errors
/// `InvalidData` if there is none.
pub(super) fn answer_body(answer: &[u8]) -> io::Result<Document<'_>> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a line's answer is no answer");
    if answer.get(FLAGS_END) != Some(&SECTION_BODY) {
        return Err(wrong());
    }
    let length = answer.get(BODY_BEGIN..).and_then(length_at).ok_or_else(wrong)?;
    let end = BODY_BEGIN.checked_add(length).ok_or_else(wrong)?;
    let document = answer.get(BODY_BEGIN..end).filter(|document| document.len() > 4);
    let document = document.ok_or_else(wrong)?;
    let mut elements = frond_doc::raw::RawElements::new(document);
    // Its own fields alone: the documents in it are the client's to read.
    if elements.by_ref().last().is_none() && length > 5 {
        return Err(wrong());
    }
    Ok(Document::from_validated(document))
}

/// An answer as the client gets it: without the line's moment, and with the token by which any
/// router finds the line of a transaction, where there is one.
///
/// # Errors
/// `InvalidData` if it is none.
pub(super) fn rewrite(mut answer: Vec<u8>, transaction_on: Option<&str>) -> io::Result<Vec<u8>> {
    drop_checksum(&mut answer);
    let document = answer_body(&answer)?;
    let mut cuts = Vec::new();
    let whole = document.as_bytes();
    if BODY_BEGIN + whole.len() != answer.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer has one section"));
    }
    let mut elements = document.elements();
    let mut at = whole.len() - elements.rest().len();
    while let Some(element) = elements.next() {
        let end = whole.len() - elements.rest().len();
        if MOMENTS.contains(&element.name) {
            cuts.push(BODY_BEGIN + at..BODY_BEGIN + end);
        }
        at = end;
    }
    if cuts.is_empty() && transaction_on.is_none() {
        return Ok(answer);
    }
    for cut in cuts.into_iter().rev() {
        answer.drain(cut);
    }
    if let Some(line) = transaction_on {
        let mut token = DocumentBuilder::new();
        token.begin_document("recoveryToken").append("line", Value::String(line)).end();
        let token = token.build();
        let fields = &token.as_bytes()[size_of::<i32>()..token.as_bytes().len() - 1];
        let end = answer.len() - 1;
        drop(answer.splice(end..end, fields.iter().copied()));
    }
    let bytes = answer.len();
    set_length(&mut answer, 0, bytes);
    set_length(&mut answer, BODY_BEGIN, bytes - BODY_BEGIN);
    Ok(answer)
}

/// The same of an answer that was read.
pub(super) fn without_moment(answer: Document<'_>) -> DocumentBuf {
    let mut rewritten = DocumentBuilder::new();
    for element in answer.elements().filter(|element| !MOMENTS.contains(&element.name)) {
        rewritten.append_element(&element);
    }
    rewritten.build()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use frond_doc::document;

    use super::*;
    use crate::wire::message::announce_checksum;
    use crate::wire::{Flags, Message};

    fn rewritten(body: DocumentBuf, line: Option<&str>) -> DocumentBuf {
        let answer = rewrite(Message::new(body).encode(7, 3), line).expect("an answer");
        Message::decode_answer(Bytes::from(answer)).expect("still a message").body
    }

    #[test]
    fn a_lines_moment_is_cut_out() {
        let time = document! { "clusterTime": 1_i32 };
        let body = document! {
            "operationTime": 5_i64, "n": 1_i32, "$clusterTime": &time, "ok": 1.0,
        };
        assert_eq!(rewritten(body.clone(), None), document! { "n": 1_i32, "ok": 1.0 });
        let token = document! { "line": "eu" };
        let expected = document! { "n": 1_i32, "ok": 1.0, "recoveryToken": &token };
        assert_eq!(rewritten(body, Some("eu")), expected);
        assert_eq!(rewritten(document! {}, None), document! {});
        assert_eq!(rewritten(document! { "operationTime": 5_i64 }, None), document! {});
    }

    #[test]
    fn a_checksum_goes_with_what_it_was_of() {
        let mut message =
            Message::new(document! { "operationTime": 1_i32, "ok": 1.0 }).encode(7, 3);
        let checksum = announce_checksum(&mut message, &[]);
        message.extend_from_slice(&checksum);
        let answer = rewrite(message, None).expect("an answer");
        let read = Message::decode_answer(Bytes::from(answer)).expect("a message");
        assert_eq!(read.body, document! { "ok": 1.0 });
        let flags = Flags { exhaust_allowed: true, more_to_come: false };
        let request = Message { flags, ..Message::new(document! { "getMore": 1_i64 }) };
        let mut message = request.encode(7, 0);
        let checksum = announce_checksum(&mut message, &[]);
        message.extend_from_slice(&checksum);
        forbid_exhaust(&mut message);
        let read = Message::decode(Bytes::from(message)).expect("a message");
        assert!(!read.flags.exhaust_allowed);
    }

    #[test]
    fn a_body_is_found_behind_other_documents() {
        let documents = vec![document! { "a": 1_i32 }];
        let sequence = crate::wire::DocumentSequence { name: "documents".to_owned(), documents };
        let body_of = document! { "insert": "items", "$db": "shop" };
        let message = Message { sequences: vec![sequence], ..Message::new(body_of.clone()) };
        let encoded = message.encode(1, 0);
        assert_eq!(body(&encoded).map(|body| body.to_buf()), Some(body_of));
        for end in 0..encoded.len().min(60) {
            // Only that it doesn't read past the end.
            let _ = body(&encoded[..end]);
            let _ = rewrite(encoded[..end.max(BODY_BEGIN)].to_vec(), Some("eu"));
        }
    }
}
