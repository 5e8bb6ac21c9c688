//! OP_MSG: flags, one body, any number of document sequences, perhaps a checksum.
//!
//! ```text
//! SIZE  FIELD
//!    4  flag bits
//!       sections, each: 1 byte kind
//!         kind 0: the body, one document
//!         kind 1: 4 bytes length (itself included), a name ended by zero, documents
//!    4  CRC-32C of everything before it, header included, if flag bit 0 is set
//! ```
//!
//! A sequence is the same as an array field of that name in the body, cheaper to read.

use bytes::{Buf, Bytes};
use frond_doc::DocumentBuf;

use crate::wire::crc32c;
use crate::wire::error::WireError;
use crate::wire::header::{self, HEADER_BYTES, OperationCode};
use crate::wire::reader::Reader;

const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 1 << 1;
const EXHAUST_ALLOWED: u32 = 1 << 16;
/// Bits 0 to 15 must be understood; the others may be ignored.
const REQUIRED_BITS: u32 = 0xffff;
const CHECKSUM_BYTES: usize = size_of::<u32>();

const SECTION_BODY: u8 = 0;
const SECTION_SEQUENCE: u8 = 1;

/// The greatest number of document sequences of a message: no command takes more than two.
pub const SEQUENCES_MAX: usize = 8;
/// The greatest number of documents of a message: what `hello` announces as `maxWriteBatchSize`. A
/// document of five bytes costs 32 bytes of memory, so without this limit a message would cost six
/// times its size.
pub const DOCUMENTS_MAX: usize = 100_000;

/// The flags of an OP_MSG.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// The sender expects no answer, or has another one to send.
    pub more_to_come: bool,
    /// The sender takes several answers.
    pub exhaust_allowed: bool,
}

impl Flags {
    fn of_bits(bits: u32) -> Flags {
        Flags {
            more_to_come: bits & MORE_TO_COME != 0,
            exhaust_allowed: bits & EXHAUST_ALLOWED != 0,
        }
    }

    fn bits(self) -> u32 {
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        bit(self.more_to_come, MORE_TO_COME) | bit(self.exhaust_allowed, EXHAUST_ALLOWED)
    }
}

/// Documents that stand beside the body.
#[derive(Clone, PartialEq, Debug)]
pub struct DocumentSequence {
    /// The field of the body that they stand for.
    pub name: String,
    /// The documents in their order.
    pub documents: Vec<DocumentBuf>,
}

/// One OP_MSG, decoded.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// The flags.
    pub flags: Flags,
    /// The command or the answer.
    pub body: DocumentBuf,
    /// Documents that stand beside it.
    pub sequences: Vec<DocumentSequence>,
}

impl Message {
    /// A message with a body alone.
    pub fn new(body: DocumentBuf) -> Message {
        Message { flags: Flags::default(), body, sequences: Vec::new() }
    }

    /// Reads the flags alone: what is known of a message whose documents are broken.
    pub fn peek_flags(message: &[u8]) -> Flags {
        let bytes = message.get(HEADER_BYTES..HEADER_BYTES + size_of::<u32>());
        let Some(bytes) = bytes else { return Flags::default() };
        let bits = u32::from_le_bytes(bytes.try_into().expect("four bytes were cut"));
        Flags::of_bits(bits)
    }

    /// Whether a checksum is behind a message, by what its flags say.
    pub fn has_checksum(message: &[u8]) -> bool {
        message.get(HEADER_BYTES).is_some_and(|byte| u32::from(*byte) & CHECKSUM_PRESENT != 0)
    }

    /// Reads the name of the command alone; `None` if the message is broken.
    pub fn peek_command(message: &[u8]) -> Option<&str> {
        let mut sections = message.get(HEADER_BYTES + size_of::<u32>()..)?;
        loop {
            let (kind, section) = sections.split_first()?;
            let length = u32::from_le_bytes(*section.first_chunk()?) as usize;
            match *kind {
                SECTION_SEQUENCE => sections = section.get(length..)?,
                SECTION_BODY => {
                    // Behind the document's length and the type of its first field.
                    let name = section.get(size_of::<u32>() + 1..)?;
                    let end = name.iter().position(|byte| *byte == 0)?;
                    return std::str::from_utf8(&name[..end]).ok();
                }
                _ => return None,
            }
        }
    }

    /// Reads a whole message, its header included (which was decoded before).
    ///
    /// # Errors
    /// `WireError` names the section or field that isn't there or isn't what it must be.
    pub fn decode(message: Bytes) -> Result<Message, WireError> {
        Message::decode_as(message, false)
    }

    /// As [`Message::decode`], of an answer: the documents in it are as deep as any, and lie
    /// deeper.
    ///
    /// # Errors
    /// As [`Message::decode`].
    pub fn decode_answer(message: Bytes) -> Result<Message, WireError> {
        Message::decode_as(message, true)
    }

    fn decode_as(mut message: Bytes, is_answer: bool) -> Result<Message, WireError> {
        if message.len() < HEADER_BYTES {
            return Err(WireError::Truncated { end: message.len(), field: "the header" });
        }
        let whole = Message::has_checksum(&message).then(|| message.clone());
        message.advance(HEADER_BYTES);
        let mut reader = Reader::new(message, HEADER_BYTES);
        let bits = reader.i32("the flags")? as u32;
        let unknown = bits & REQUIRED_BITS & !(CHECKSUM_PRESENT | MORE_TO_COME);
        if unknown != 0 {
            return Err(WireError::Flags(unknown));
        }
        if let Some(whole) = whole {
            reader = verify_checksum(&whole)?;
        }
        let (body, sequences) = read_sections(&mut reader.of_answer(is_answer))?;
        Ok(Message { flags: Flags::of_bits(bits), body, sequences })
    }

    /// Writes the message, header included, without a checksum.
    pub fn encode(&self, request_id: i32, response_to: i32) -> Vec<u8> {
        let mut out = header::begin(request_id, response_to, OperationCode::Message);
        out.extend_from_slice(&self.flags.bits().to_le_bytes());
        out.push(SECTION_BODY);
        out.extend_from_slice(self.body.as_bytes());
        for sequence in &self.sequences {
            out.push(SECTION_SEQUENCE);
            let start = out.len();
            out.extend_from_slice(&[0; size_of::<i32>()]);
            out.extend_from_slice(sequence.name.as_bytes());
            out.push(0);
            for document in &sequence.documents {
                out.extend_from_slice(document.as_bytes());
            }
            let length = i32::try_from(out.len() - start).expect("a message is under 2 GiB");
            out[start..start + size_of::<i32>()].copy_from_slice(&length.to_le_bytes());
        }
        header::finish(out)
    }
}

/// Returns the bytes before the body of an answer that has `body_bytes`.
pub fn answer_head(flags: Flags, body_bytes: usize, request_id: i32, response_to: i32) -> Vec<u8> {
    let mut out = header::begin(request_id, response_to, OperationCode::Message);
    out.extend_from_slice(&flags.bits().to_le_bytes());
    out.push(SECTION_BODY);
    header::finish_with(out, body_bytes)
}

/// Makes a message whose bytes are `head` and `rest` one with a checksum, which is returned: it
/// goes behind them.
///
/// Panics if `head` is too short to have flags.
pub fn announce_checksum(head: &mut [u8], rest: &[u8]) -> [u8; CHECKSUM_BYTES] {
    head[HEADER_BYTES] |= CHECKSUM_PRESENT as u8;
    let bytes = i32::try_from(head.len() + rest.len() + CHECKSUM_BYTES);
    let bytes = bytes.expect("a message has less than 2 GiB");
    head[..size_of::<i32>()].copy_from_slice(&bytes.to_le_bytes());
    crc32c::checksum_of(&[head, rest]).to_le_bytes()
}

/// Checks the checksum at a message's end and returns a reader of the sections before it.
fn verify_checksum(whole: &Bytes) -> Result<Reader, WireError> {
    let sections_start = HEADER_BYTES + size_of::<u32>();
    let covered = whole.len().saturating_sub(CHECKSUM_BYTES);
    if covered < sections_start {
        return Err(WireError::Truncated { end: whole.len(), field: "the checksum" });
    }
    let sent = whole[covered..].try_into().expect("four bytes were cut");
    let found = u32::from_le_bytes(sent);
    let expected = crc32c::checksum(&whole[..covered]);
    if found != expected {
        return Err(WireError::Checksum { expected, found });
    }
    Ok(Reader::new(whole.slice(sections_start..covered), sections_start))
}

fn read_sections(reader: &mut Reader) -> Result<(DocumentBuf, Vec<DocumentSequence>), WireError> {
    let mut body = None;
    let mut sequences: Vec<DocumentSequence> = Vec::new();
    while !reader.is_empty() {
        match reader.u8("a section's kind")? {
            SECTION_BODY => {
                if body.replace(reader.document_around("the body", levels_of_command)?).is_some() {
                    return Err(WireError::Bodies(2));
                }
            }
            SECTION_SEQUENCE => {
                let sequence = read_sequence(reader)?;
                if sequences.iter().any(|other| other.name == sequence.name) {
                    return Err(WireError::DuplicateSequence(sequence.name));
                }
                if sequences.len() == SEQUENCES_MAX {
                    let what = "document sequences";
                    return Err(WireError::TooMany { what, max: SEQUENCES_MAX });
                }
                sequences.push(sequence);
            }
            other => return Err(WireError::SectionKind(other)),
        }
    }
    let body = body.ok_or(WireError::Bodies(0))?;
    Ok((body, sequences))
}

/// How many levels down in a command the documents lie that it writes, by its name.
fn levels_of_command(command: &[u8]) -> usize {
    // Behind the length of the command and the type of its first field.
    let name = command.get(5..).and_then(|rest| rest.split(|byte| *byte == 0).next());
    match name {
        Some(b"update" | b"delete" | b"bulkWrite") => 3,
        Some(b"insert") => 2,
        Some(b"findAndModify" | b"findandmodify") => 1,
        _ => 0,
    }
}

fn read_sequence(reader: &mut Reader) -> Result<DocumentSequence, WireError> {
    let field = "a document sequence";
    let length = reader.i32(field)?;
    let rest = usize::try_from(length).ok().and_then(|length| length.checked_sub(4));
    let rest = rest.unwrap_or(usize::MAX);
    let mut part = reader.part(rest, field)?;
    let name = part.name("a document sequence's name")?;
    let mut documents = Vec::new();
    while !part.is_empty() {
        // A statement has its documents within it.
        let levels = usize::from(name != "documents");
        let document = part.document_around("a document of a sequence", |_| levels)?;
        // One more than there may be is enough for the command to refuse them, and tiny documents
        // can't multiply the memory of the message.
        if documents.len() <= DOCUMENTS_MAX {
            documents.push(document);
        }
    }
    Ok(DocumentSequence { name, documents })
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    fn sample() -> Message {
        let documents = vec![document! { "_id": 1_i32 }, document! { "_id": 2_i32 }];
        let sequences = vec![DocumentSequence { name: "documents".to_owned(), documents }];
        Message {
            flags: Flags { more_to_come: true, exhaust_allowed: true },
            body: document! { "insert": "c", "$db": "test" },
            sequences,
        }
    }

    fn decode(bytes: Vec<u8>) -> Result<Message, WireError> {
        Message::decode(Bytes::from(bytes))
    }

    /// Appends the checksum and sets its flag.
    fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = announce_checksum(&mut bytes, &[]);
        bytes.extend_from_slice(&checksum);
        bytes
    }

    #[test]
    fn a_message_survives_the_way_there_and_back() {
        let bytes = sample().encode(7, 3);
        assert_eq!(bytes.len(), i32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize);
        assert!(Message::peek_flags(&bytes).more_to_come);
        assert_eq!(Message::peek_command(&bytes), Some("insert"));
        assert_eq!(decode(bytes), Ok(sample()));
        let body = sample().body;
        let mut answer = answer_head(Flags::default(), body.as_bytes().len(), 1, 2);
        answer.extend_from_slice(body.as_bytes());
        assert_eq!(decode(answer), Ok(Message::new(body)));
    }

    #[test]
    fn a_checksum_is_verified() {
        assert!(!Message::has_checksum(&sample().encode(7, 3)));
        let bytes = with_checksum(sample().encode(7, 3));
        assert!(Message::has_checksum(&bytes));
        assert_eq!(decode(bytes.clone()), Ok(sample()));
        let (head, rest) = bytes.split_at(60);
        let mut head = head.to_vec();
        let checksum = announce_checksum(&mut head, &rest[..rest.len() - CHECKSUM_BYTES]);
        assert_eq!((&head[..], &checksum[..]), (&bytes[..60], &bytes[bytes.len() - 4..]));
        for position in HEADER_BYTES + 4..bytes.len() {
            let mut broken = bytes.clone();
            broken[position] ^= 0x40;
            assert!(matches!(decode(broken), Err(WireError::Checksum { .. })), "{position}");
        }
    }

    #[test]
    fn a_command_behind_its_sequences_is_found() {
        let bytes = sample().encode(7, 3);
        let body_bytes = 1 + sample().body.as_bytes().len();
        let mut turned = bytes.clone();
        turned[HEADER_BYTES + 4..].rotate_left(body_bytes);
        assert_eq!(decode(turned.clone()), Ok(sample()));
        assert_eq!(Message::peek_command(&turned), Some("insert"));
        for end in 0..turned.len() - body_bytes {
            assert_eq!(Message::peek_command(&turned[..end]), None);
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = sample().encode(7, 3);
        for end in 0..bytes.len() {
            let command = Message::peek_command(&bytes[..end]);
            assert!(command.is_none_or(|name| name == "insert"), "cut at {end}");
            // A cut right after the body leaves a message that is whole.
            if let Ok(message) = decode(bytes[..end].to_vec()) {
                assert!(message.sequences.is_empty(), "cut at {end}");
            }
        }
    }

    #[test]
    fn wrong_sections_are_refused() {
        let body = document! { "ping": 1_i32 };
        let mut bytes = Message::new(body.clone()).encode(1, 0);
        let check = |extra: &[u8], expected: &dyn Fn(&WireError) -> bool| {
            let mut bytes = bytes.clone();
            bytes.extend_from_slice(extra);
            let error = decode(bytes).expect_err("refused");
            assert!(expected(&error), "{error}");
        };
        check(&[2], &|error| *error == WireError::SectionKind(2));
        check(&[1, 3, 0, 0, 0], &|error| matches!(error, WireError::Truncated { .. }));
        check(&[1, 0xff, 0xff, 0xff, 0xff], &|error| matches!(error, WireError::Truncated { .. }));
        check(&[1, 5, 0, 0, 0, 0x61], &|error| matches!(error, WireError::Truncated { .. }));
        check(&[1, 6, 0, 0, 0, 0xff, 0], &|error| matches!(error, WireError::Utf8(_)));
        check(&[0, 4, 0, 0, 0, 0], &|error| matches!(error, WireError::Document(_)));
        let twice = [&[0], body.as_bytes()].concat();
        check(&twice, &|error| *error == WireError::Bodies(2));
        let sequence = [1, 6, 0, 0, 0, b'a', 0];
        let named_twice = [sequence, sequence].concat();
        check(&named_twice, &|error| matches!(error, WireError::DuplicateSequence(_)));
        bytes[16] = 4;
        assert_eq!(decode(bytes.clone()), Err(WireError::Flags(4)));
        assert_eq!(decode(bytes[..20].to_vec()), Err(WireError::Flags(4)));
        bytes[16] = 0;
        assert_eq!(decode(bytes[..20].to_vec()), Err(WireError::Bodies(0)));
    }

    #[test]
    fn tiny_documents_cannot_multiply_memory() {
        let documents = vec![DocumentBuf::empty(); DOCUMENTS_MAX + 9];
        let sequences = vec![DocumentSequence { name: "documents".to_owned(), documents }];
        let message = Message { sequences, ..Message::new(document! { "insert": "c" }) };
        let decoded = decode(message.encode(1, 0)).expect("the command refuses them");
        assert_eq!(decoded.sequences[0].documents.len(), DOCUMENTS_MAX + 1);
    }
}
