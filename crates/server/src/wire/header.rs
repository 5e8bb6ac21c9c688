//! The sixteen bytes that begin each message: length, id, the id it answers, operation code.

use crate::wire::error::WireError;

const OFFSET_REQUEST_ID: usize = size_of::<i32>();
const OFFSET_RESPONSE_TO: usize = OFFSET_REQUEST_ID + size_of::<i32>();
const OFFSET_OPERATION_CODE: usize = OFFSET_RESPONSE_TO + size_of::<i32>();
/// Bytes of a header.
pub const HEADER_BYTES: usize = OFFSET_OPERATION_CODE + size_of::<i32>();
const _: () = assert!(HEADER_BYTES == 16); // Fixed by the protocol.

/// The greatest number of bytes of a message, its header included: what `hello` announces.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// The operation of a message, which decides the form of its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationCode {
    /// OP_REPLY: the answer to a legacy query.
    Reply,
    /// OP_QUERY: a legacy query, taken for the first hello only.
    Query,
    /// OP_MSG: a command or its answer.
    Message,
    /// OP_COMPRESSED: another message, compressed.
    Compressed,
}

impl OperationCode {
    /// The number on the wire.
    pub fn number(self) -> i32 {
        match self {
            OperationCode::Reply => 1,
            OperationCode::Query => 2004,
            OperationCode::Compressed => 2012,
            OperationCode::Message => 2013,
        }
    }

    fn from_number(number: i32) -> Result<OperationCode, WireError> {
        match number {
            1 => Ok(OperationCode::Reply),
            2004 => Ok(OperationCode::Query),
            2012 => Ok(OperationCode::Compressed),
            2013 => Ok(OperationCode::Message),
            other => Err(WireError::OperationCode(other)),
        }
    }
}

/// A message's header, checked.
///
/// *Invariants*: `bytes` is between [`HEADER_BYTES`] and [`MESSAGE_BYTES_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Bytes of the whole message, this header included.
    pub bytes: usize,
    /// Chosen by the sender.
    pub request_id: i32,
    /// The `request_id` of the message that this one answers, otherwise 0.
    pub response_to: i32,
    /// The operation of the message.
    pub operation: OperationCode,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`WireError::Length`] and [`WireError::OperationCode`]: after either, nothing is known of
    /// the bytes that follow, and the connection can't go on.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, WireError> {
        let field = |offset: usize| {
            let end = offset + size_of::<i32>();
            i32::from_le_bytes(bytes[offset..end].try_into().expect("four bytes were cut"))
        };
        let found = field(0);
        let length = usize::try_from(found).unwrap_or(0);
        if !(HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(WireError::Length { found, min: HEADER_BYTES, max: MESSAGE_BYTES_MAX });
        }
        Ok(Header {
            bytes: length,
            request_id: field(OFFSET_REQUEST_ID),
            response_to: field(OFFSET_RESPONSE_TO),
            operation: OperationCode::from_number(field(OFFSET_OPERATION_CODE))?,
        })
    }

    /// Appends the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let length = i32::try_from(self.bytes).expect("a message has at most 48,000,000 bytes");
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&self.request_id.to_le_bytes());
        out.extend_from_slice(&self.response_to.to_le_bytes());
        out.extend_from_slice(&self.operation.number().to_le_bytes());
    }
}

/// Begins a message in `out`, its length to be filled in by [`finish`].
pub(super) fn begin(request_id: i32, response_to: i32, operation: OperationCode) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    Header { bytes: HEADER_BYTES, request_id, response_to, operation }.encode(&mut out);
    out
}

/// Fills in the length of a message that [`begin`] began.
pub(super) fn finish(out: Vec<u8>) -> Vec<u8> {
    finish_with(out, 0)
}

/// The same, where so many bytes follow that are kept elsewhere.
pub(super) fn finish_with(mut out: Vec<u8>, more: usize) -> Vec<u8> {
    let length = i32::try_from(out.len() + more).expect("a message has less than 2 GiB");
    out[..size_of::<i32>()].copy_from_slice(&length.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_codes_outside_the_protocol_are_refused() {
        let header = |length: i32, code: i32| {
            let mut bytes = [0; HEADER_BYTES];
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            bytes[12..].copy_from_slice(&code.to_le_bytes());
            Header::decode(&bytes)
        };
        for length in [i32::MIN, -1, 0, 15, 48_000_001, i32::MAX] {
            assert!(matches!(header(length, 2013), Err(WireError::Length { .. })), "{length}");
        }
        for code in [0, 2, 1000, 2001, 2002, 2005, 2010, 2011, 2014, -1] {
            assert_eq!(header(16, code), Err(WireError::OperationCode(code)));
        }
        for code in [1, 2004, 2012, 2013] {
            assert_eq!(header(48_000_000, code).map(|header| header.operation.number()), Ok(code));
        }
    }

    #[test]
    fn a_header_survives_the_way_there_and_back() {
        let operation = OperationCode::Message;
        let header = Header { bytes: 77, request_id: -5, response_to: 9, operation };
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(Header::decode(out[..].try_into().expect("sixteen bytes")), Ok(header));
    }
}
