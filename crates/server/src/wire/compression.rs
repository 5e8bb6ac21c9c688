//! OP_COMPRESSED: another message, compressed.
//!
//! ```text
//! SIZE  FIELD
//!   16  header, whose length is that of what follows
//!    4  operation code of the message inside
//!    4  bytes of the message inside, its header not counted
//!    1  compressor
//!       the message inside without its header, compressed
//! ```
//!
//! *Invariants*
//! 1. A length that is announced is checked against the largest message before anything is made of
//!    it, and what comes out has exactly that length, or the message is refused.
//! 2. Inflating takes no more memory than what was announced: each format is decoded in one step
//!    into one piece, never by a window of a size that the sender chooses.

use bytes::Bytes;
use flate2::{Compression, Decompress, FlushDecompress, Status};

use crate::wire::error::WireError;
use crate::wire::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, OperationCode};

const OFFSET_OPERATION_CODE: usize = HEADER_BYTES;
const OFFSET_BYTES: usize = OFFSET_OPERATION_CODE + size_of::<i32>();
const OFFSET_COMPRESSOR: usize = OFFSET_BYTES + size_of::<i32>();
const OFFSET_COMPRESSED: usize = OFFSET_COMPRESSOR + 1;
/// The bytes of a compressed message before the compressed ones.
pub const COMPRESSED_HEADER_BYTES: usize = OFFSET_COMPRESSED;
const _: () = assert!(OFFSET_COMPRESSED == 25); // Fixed by the protocol.

/// zstd's fastest usual level: an answer waits for it.
const ZSTD_LEVEL: i32 = 1;

/// A way to compress messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Compressor {
    Snappy,
    Zstd,
    Zlib,
}

impl Compressor {
    /// All, in the order in which MongoDB offers them.
    pub const ALL: [Compressor; 3] = [Compressor::Snappy, Compressor::Zstd, Compressor::Zlib];

    /// Its name in `hello`.
    pub fn name(self) -> &'static str {
        match self {
            Compressor::Snappy => "snappy",
            Compressor::Zstd => "zstd",
            Compressor::Zlib => "zlib",
        }
    }

    /// The compressor that `hello` calls `name`.
    pub fn named(name: &str) -> Option<Compressor> {
        Compressor::ALL.into_iter().find(|compressor| compressor.name() == name)
    }

    fn number(self) -> u8 {
        match self {
            Compressor::Snappy => 1,
            Compressor::Zlib => 2,
            Compressor::Zstd => 3,
        }
    }
}

/// The header of the message inside a compressed one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed {
    /// The header that the message inside has.
    pub header: Header,
    /// The compressor.
    pub compressor: Compressor,
}

impl Compressed {
    /// Reads what stands before the compressed bytes of a `message`, whose `header` was decoded.
    ///
    /// # Errors
    /// [`WireError`] if there is no OP_MSG inside, if its length isn't one that a message has, or
    /// if the compressor is unknown.
    pub fn decode(header: Header, message: &[u8]) -> Result<Compressed, WireError> {
        let Some(head) = message.get(..OFFSET_COMPRESSED) else {
            let field = "the head of a compressed message";
            return Err(WireError::Truncated { end: message.len(), field });
        };
        let number = |offset: usize| {
            let end = offset + size_of::<i32>();
            i32::from_le_bytes(head[offset..end].try_into().expect("four bytes were cut"))
        };
        let code = number(OFFSET_OPERATION_CODE);
        if code != OperationCode::Message.number() {
            return Err(WireError::OperationCode(code));
        }
        let found = number(OFFSET_BYTES);
        let max = MESSAGE_BYTES_MAX - HEADER_BYTES;
        let bytes = usize::try_from(found).ok().filter(|bytes| *bytes <= max);
        let bytes = bytes.ok_or(WireError::Length { found, min: 0, max })?;
        let compressor = head[OFFSET_COMPRESSOR];
        let compressor = Compressor::ALL
            .into_iter()
            .find(|known| known.number() == compressor)
            .ok_or_else(|| WireError::Compression(format!("compressor {compressor} is unknown")))?;
        let operation = OperationCode::Message;
        let header = Header { bytes: bytes + HEADER_BYTES, operation, ..header };
        Ok(Compressed { header, compressor })
    }

    /// Returns the message inside, its header included.
    ///
    /// # Errors
    /// [`WireError::Compression`] if `message` isn't compressed as it says, or what comes out has
    /// another length than announced.
    pub fn inflate(&self, message: &[u8]) -> Result<Bytes, WireError> {
        let bytes = self.header.bytes - HEADER_BYTES;
        let compressed = &message[OFFSET_COMPRESSED..];
        let failed =
            |what: String| WireError::Compression(format!("{}: {what}", self.compressor.name()));
        let mut out = Vec::with_capacity(self.header.bytes + 1);
        self.header.encode(&mut out);
        match self.compressor {
            Compressor::Snappy => inflate_snappy(compressed, bytes, &mut out),
            Compressor::Zstd => inflate_zstd(compressed, bytes, &mut out),
            Compressor::Zlib => inflate_zlib(compressed, &mut out),
        }
        .map_err(failed)?;
        if out.len() != self.header.bytes {
            let found = out.len().saturating_sub(HEADER_BYTES);
            return Err(failed(format!("{found} bytes came out where {bytes} were announced")));
        }
        Ok(Bytes::from(out))
    }
}

/// Appends what comes out, which must be `bytes`.
fn inflate_snappy(compressed: &[u8], bytes: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let found = snap::raw::decompress_len(compressed).map_err(|error| error.to_string())?;
    if found != bytes {
        return Err(format!("{found} bytes would come out where {bytes} were announced"));
    }
    let start = out.len();
    out.resize(start + bytes, 0);
    let mut decoder = snap::raw::Decoder::new();
    decoder.decompress(compressed, &mut out[start..]).map(drop).map_err(|error| error.to_string())
}

/// Appends what comes out, if it is at most `bytes`.
fn inflate_zstd(compressed: &[u8], bytes: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let start = out.len();
    out.resize(start + bytes, 0);
    let inflated = zstd::bulk::decompress_to_buffer(compressed, &mut out[start..]);
    let count = inflated.map_err(|error| error.to_string())?;
    out.truncate(start + count);
    Ok(())
}

/// Appends what comes out, as far as there is room.
fn inflate_zlib(compressed: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let mut inflater = Decompress::new(true);
    let status = inflater
        .decompress_vec(compressed, out, FlushDecompress::Finish)
        .map_err(|error| error.to_string())?;
    if status != Status::StreamEnd || inflater.total_in() != compressed.len() as u64 {
        return Err("more comes out than was announced, or the data is cut off".to_owned());
    }
    Ok(())
}

/// Returns a `message`, given whole, as a compressed one; `None` if that isn't smaller.
pub fn deflate(message: &[u8], compressor: Compressor) -> Option<Vec<u8>> {
    let header = Header::decode(message.first_chunk::<HEADER_BYTES>()?).ok()?;
    let inside = &message[HEADER_BYTES..];
    let compressed = match compressor {
        Compressor::Snappy => snap::raw::Encoder::new().compress_vec(inside).ok()?,
        Compressor::Zstd => zstd::bulk::compress(inside, ZSTD_LEVEL).ok()?,
        Compressor::Zlib => deflate_zlib(inside)?,
    };
    let bytes = OFFSET_COMPRESSED + compressed.len();
    if message.len() <= bytes {
        return None;
    }
    let mut out = Vec::with_capacity(bytes);
    Header { bytes, operation: OperationCode::Compressed, ..header }.encode(&mut out);
    out.extend_from_slice(&header.operation.number().to_le_bytes());
    let inside_bytes = i32::try_from(inside.len()).expect("a message has at most 48,000,000 bytes");
    out.extend_from_slice(&inside_bytes.to_le_bytes());
    out.push(compressor.number());
    out.extend_from_slice(&compressed);
    Some(out)
}

/// `None` if it wouldn't be smaller.
fn deflate_zlib(inside: &[u8]) -> Option<Vec<u8>> {
    let mut compressed = Vec::with_capacity(inside.len());
    let mut deflater = flate2::Compress::new(Compression::default(), true);
    let status =
        deflater.compress_vec(inside, &mut compressed, flate2::FlushCompress::Finish).ok()?;
    (status == Status::StreamEnd).then_some(compressed)
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;
    use crate::wire::Message;

    fn sample() -> Vec<u8> {
        let text = "all work and no play ".repeat(500);
        Message::new(document! { "ping": 1_i32, "$db": "admin", "text": &text }).encode(7, 3)
    }

    fn inflate(bytes: &[u8]) -> Result<(Header, Bytes), WireError> {
        let header = Header::decode(bytes.first_chunk().expect("sixteen bytes"))?;
        assert_eq!((header.bytes, header.operation), (bytes.len(), OperationCode::Compressed));
        let compressed = Compressed::decode(header, bytes)?;
        Ok((compressed.header, compressed.inflate(bytes)?))
    }

    fn compressed(compressor: Compressor) -> Vec<u8> {
        let compressed = deflate(&sample(), compressor).expect("it is smaller");
        assert!(compressed.len() < sample().len() / 5, "{compressor:?}");
        compressed
    }

    #[test]
    fn a_message_survives_the_way_there_and_back() {
        for compressor in Compressor::ALL {
            let (header, inside) = inflate(&compressed(compressor)).expect("as it was");
            assert_eq!(inside, sample(), "{compressor:?}");
            assert_eq!((header.request_id, header.response_to), (7, 3));
            assert_eq!(Compressor::named(compressor.name()), Some(compressor));
        }
        assert_eq!(Compressor::named("noop"), None);
    }

    #[test]
    fn messages_that_would_grow_are_not_compressed() {
        let small = Message::new(document! { "ok": 1.0 }).encode(7, 3);
        for compressor in Compressor::ALL {
            assert_eq!(deflate(&small, compressor), None, "{compressor:?}");
        }
    }

    #[test]
    fn lying_lengths_are_refused() {
        for compressor in Compressor::ALL {
            let good = compressed(compressor);
            let announced = sample().len() as i32 - HEADER_BYTES as i32;
            for wrong in [i32::MIN, -1, 0, 1, announced - 1, announced + 1, 47_999_984] {
                let mut bytes = good.clone();
                bytes[OFFSET_BYTES..OFFSET_COMPRESSOR].copy_from_slice(&wrong.to_le_bytes());
                assert!(inflate(&bytes).is_err(), "{compressor:?} {wrong}");
            }
            for wrong in [47_999_985, i32::MAX] {
                let mut bytes = good.clone();
                bytes[OFFSET_BYTES..OFFSET_COMPRESSOR].copy_from_slice(&wrong.to_le_bytes());
                assert!(matches!(inflate(&bytes), Err(WireError::Length { .. })), "{wrong}");
            }
        }
    }

    #[test]
    fn only_commands_are_inside() {
        for code in [0, 1, 2004, 2012, -1] {
            let mut bytes = compressed(Compressor::Snappy);
            bytes[OFFSET_OPERATION_CODE..OFFSET_BYTES].copy_from_slice(&i32::to_le_bytes(code));
            assert_eq!(inflate(&bytes), Err(WireError::OperationCode(code)));
        }
        for compressor in [0, 4, 255] {
            let mut bytes = compressed(Compressor::Snappy);
            bytes[OFFSET_COMPRESSOR] = compressor;
            assert!(matches!(inflate(&bytes), Err(WireError::Compression(_))), "{compressor}");
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_survived() {
        for compressor in Compressor::ALL {
            let good = compressed(compressor);
            let header = Header::decode(good.first_chunk().expect("sixteen bytes")).expect("good");
            for end in HEADER_BYTES..good.len() {
                let cut = Compressed::decode(header, &good[..end])
                    .and_then(|inside| inside.inflate(&good[..end]));
                assert!(cut.is_err(), "{compressor:?} cut at {end}");
            }
            for position in OFFSET_COMPRESSED..good.len() {
                let mut bytes = good.clone();
                bytes[position] ^= 0x10;
                // Where no checksum is in the format, other bytes of the same length may come out.
                if let Ok((_, inside)) = inflate(&bytes) {
                    assert_eq!(inside.len(), sample().len());
                }
            }
        }
    }
}
