//! Frames: chunks as they travel and as they lie in a plain remote, several together. The authority
//! is docs/format/plain-remote.md.
//!
//! Chunks that lie together are compressed together, so that versions of the same data share their
//! bytes. A frame is small enough to be read for the sake of one chunk.
//!
//! Everything here comes from outside: lengths are bounded before anything is allocated for them,
//! and a chunk is what its bytes hash to; the caller compares that with what it asked for.

use bytes::Bytes;
use frond_db::inside::Error;
use frond_store::{Chunk, ChunkHash, field};

use crate::remote::transfer::CHUNK_BYTES_MAX;

/// A frame ends when its chunks have grown to this.
pub const FRAME_BYTES_TARGET: usize = 512 << 10;
/// The greatest number of uncompressed bytes of a frame.
pub const FRAME_BYTES_MAX: usize = FRAME_BYTES_TARGET + CHUNK_BYTES_MAX;

const CODEC_RAW: u8 = 0;
/// Stored: 1 was LZ4 once; never renumber.
const CODEC_ZSTD: u8 = 2;
const OFFSET_RESERVED: usize = size_of::<u8>();
const OFFSET_STORED_BYTES: usize = OFFSET_RESERVED + 3;
const OFFSET_PLAIN_BYTES: usize = OFFSET_STORED_BYTES + size_of::<u32>();
const OFFSET_CHUNK_COUNT: usize = OFFSET_PLAIN_BYTES + size_of::<u32>();
const FRAME_HEADER_BYTES: usize = OFFSET_CHUNK_COUNT + size_of::<u32>();
const _: () = assert!(FRAME_HEADER_BYTES == 16); // Stored: change only with a new version.
const LENGTH_BYTES: usize = size_of::<u32>();

/// The effort of compressing a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameEffort {
    /// For the way only.
    Quick,
    /// To be kept.
    Thorough,
}

impl FrameEffort {
    fn level(self) -> i32 {
        match self {
            FrameEffort::Quick => 1,
            FrameEffort::Thorough => 5,
        }
    }
}

/// Gathers chunks for a frame.
#[derive(Default)]
pub struct FrameBuilder {
    chunks: Vec<Chunk>,
    bytes: usize,
}

/// Returns the error for damaged bytes from outside.
fn damaged(file: &str, what: &str) -> Error {
    Error::damaged(format!("remote: {file}: {what}"))
}

fn length(bytes: usize) -> [u8; LENGTH_BYTES] {
    u32::try_from(bytes).expect("frames are far smaller than 4 GiB").to_le_bytes()
}

impl FrameBuilder {
    /// Adds a chunk. Returns whether the frame is full.
    pub fn push(&mut self, chunk: Chunk) -> bool {
        self.bytes += LENGTH_BYTES + chunk.encoded().len();
        self.chunks.push(chunk);
        self.is_full()
    }

    /// Whether it has grown to its target.
    pub fn is_full(&self) -> bool {
        self.bytes >= FRAME_BYTES_TARGET
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Appends the frame to `out`, and begins anew. Returns the names of its chunks.
    pub fn end(&mut self, effort: FrameEffort, out: &mut Vec<u8>) -> Vec<ChunkHash> {
        let chunks = std::mem::take(&mut self.chunks);
        let mut plain = Vec::with_capacity(std::mem::take(&mut self.bytes));
        for chunk in &chunks {
            plain.extend_from_slice(&length(chunk.encoded().len()));
        }
        for chunk in &chunks {
            plain.extend_from_slice(chunk.encoded());
        }
        let compressed = zstd::bulk::compress(&plain, effort.level()).ok();
        let pays = |stored: &Vec<u8>| stored.len() < plain.len() - plain.len() / 16;
        let (codec, stored) = match &compressed {
            Some(stored) if pays(stored) => (CODEC_ZSTD, stored),
            _ => (CODEC_RAW, &plain),
        };
        out.extend_from_slice(&[codec, 0, 0, 0]);
        out.extend_from_slice(&length(stored.len()));
        out.extend_from_slice(&length(plain.len()));
        out.extend_from_slice(&length(chunks.len()));
        out.extend_from_slice(stored);
        chunks.iter().map(Chunk::hash).collect()
    }
}

/// The place of a frame among others (offset, bytes), and the chunks that it holds.
pub(crate) type EncodedFrame = (usize, usize, Vec<ChunkHash>);

/// The frames that hold `chunks`, one after the other, and which frame has which.
pub(crate) fn encode_frames(chunks: &[Chunk], effort: FrameEffort) -> (Vec<u8>, Vec<EncodedFrame>) {
    let (mut out, mut frames, mut builder) = (Vec::new(), Vec::new(), FrameBuilder::default());
    for (position, chunk) in chunks.iter().enumerate() {
        if builder.push(chunk.clone()) || position + 1 == chunks.len() {
            let start = out.len();
            let hashes = builder.end(effort, &mut out);
            frames.push((start, out.len() - start, hashes));
        }
    }
    (out, frames)
}

/// Chunks as they travel.
pub fn encode(chunks: &[Chunk], effort: FrameEffort) -> Vec<u8> {
    encode_frames(chunks, effort).0
}

/// Reads one frame, which ends where `frame` ends.
///
/// # Errors
/// `Damaged`, with the place, if it is none.
pub fn decode(file: &str, frame: &[u8]) -> Result<Vec<Chunk>, Error> {
    let (chunks, rest) = decode_first(file, frame)?;
    match rest.is_empty() {
        true => Ok(chunks),
        false => Err(damaged(file, "something follows a frame")),
    }
}

/// Reads the frame that `bytes` begins with. Returns its chunks, and how long it is; `None` if
/// there is none.
pub(crate) fn decode_here(file: &str, bytes: &[u8]) -> Option<(Vec<Chunk>, usize)> {
    // An empty frame is never written, and zeros look like one.
    let count = number(bytes, OFFSET_CHUNK_COUNT);
    let plain_bytes = number(bytes, OFFSET_PLAIN_BYTES);
    let is_likely = FRAME_HEADER_BYTES <= bytes.len()
        && matches!(bytes[0], CODEC_RAW | CODEC_ZSTD)
        && count != 0
        && count.checked_mul(LENGTH_BYTES).is_some_and(|table| table <= plain_bytes);
    if !is_likely {
        return None;
    }
    let (chunks, rest) = decode_first(file, bytes).ok()?;
    Some((chunks, bytes.len() - rest.len()))
}

/// Reads frames that follow one another. Their chunks take at most `bytes_max`.
///
/// # Errors
/// `Damaged` if it is something else.
pub fn decode_all(file: &str, mut frames: &[u8], bytes_max: usize) -> Result<Vec<Chunk>, Error> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    while !frames.is_empty() {
        bytes += number(frames, OFFSET_PLAIN_BYTES);
        if bytes_max < bytes {
            return Err(damaged(file, "more chunks than were to be expected"));
        }
        let (chunks, rest) = decode_first(file, frames)?;
        found.extend(chunks);
        frames = rest;
    }
    Ok(found)
}

/// The number at `offset`, or nothing.
fn number(bytes: &[u8], offset: usize) -> usize {
    field::u32_at(bytes, offset).unwrap_or_default() as usize
}

fn decode_first<'a>(file: &str, bytes: &'a [u8]) -> Result<(Vec<Chunk>, &'a [u8]), Error> {
    let header = bytes.get(..FRAME_HEADER_BYTES);
    let header = header.ok_or_else(|| damaged(file, "a frame is too short"))?;
    let plain_bytes = number(header, OFFSET_PLAIN_BYTES);
    let stored_bytes = number(header, OFFSET_STORED_BYTES);
    let after = &bytes[FRAME_HEADER_BYTES..];
    if header[OFFSET_RESERVED..OFFSET_STORED_BYTES] != [0; 3] || after.len() < stored_bytes {
        return Err(damaged(file, "a frame has a wrong header"));
    }
    if FRAME_BYTES_MAX < plain_bytes {
        return Err(damaged(file, "a frame is longer than any may be"));
    }
    let (stored, rest) = after.split_at(stored_bytes);
    let plain = match header[0] {
        CODEC_RAW => stored.to_vec(),
        CODEC_ZSTD => zstd::bulk::decompress(stored, plain_bytes)
            .map_err(|error| damaged(file, &format!("a frame: {error}")))?,
        codec => return Err(damaged(file, &format!("a frame has the unknown codec {codec}"))),
    };
    if plain.len() != plain_bytes {
        return Err(damaged(file, "a frame is not as long as it says"));
    }
    Ok((cut(file, &plain, number(header, OFFSET_CHUNK_COUNT))?, rest))
}

/// Cuts a frame's bytes into its chunks. Each gets bytes of its own: it may be kept much longer
/// than its neighbours.
fn cut(file: &str, plain: &[u8], count: usize) -> Result<Vec<Chunk>, Error> {
    let wrong = || damaged(file, "a frame's chunks are not as long as it says");
    let table_bytes = count.checked_mul(LENGTH_BYTES).ok_or_else(wrong)?;
    let (table, mut rest) = plain.split_at_checked(table_bytes).ok_or_else(wrong)?;
    let mut chunks = Vec::with_capacity(count);
    for entry in table.chunks_exact(LENGTH_BYTES) {
        let (encoded, after) = rest.split_at_checked(number(entry, 0)).ok_or_else(wrong)?;
        chunks.push(Chunk::from_encoded(Bytes::copy_from_slice(encoded), (file, 0))?);
        rest = after;
    }
    if rest.is_empty() { Ok(chunks) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use frond_store::ChunkKind;

    use super::*;

    fn chunks(count: usize, bytes: usize) -> Vec<Chunk> {
        let payload = |number: usize| format!("{number:08} and the same again").repeat(bytes / 28);
        let of = |number| {
            let references = [ChunkHash([7; 32])];
            Chunk::new(ChunkKind::Blob, &references, payload(number).as_bytes())
        };
        (0..count).map(of).collect()
    }

    #[test]
    fn chunks_come_back_in_frames() {
        for (count, bytes) in [(0, 0), (1, 0), (3, 100), (300, 8_000)] {
            let chunks = chunks(count, bytes);
            let all = encode(&chunks, FrameEffort::Quick);
            assert_eq!(decode_all("test", &all, usize::MAX).expect("what was encoded"), chunks);
            assert!(all.len() <= 40 + count * (bytes / 2 + 60), "{} bytes", all.len());
            let (_, frames) = encode_frames(&chunks, FrameEffort::Thorough);
            assert_eq!(frames.len(), (count * (bytes + 8)).div_ceil(FRAME_BYTES_TARGET), "{count}");
        }
        let all = encode(&chunks(300, 8_000), FrameEffort::Quick);
        assert!(decode_all("test", &all, 1 << 20).is_err(), "more than the caller has room for");
    }

    #[test]
    fn truncated_or_changed_frames_are_refused_or_another_chunk() {
        let chunks = chunks(3, 100);
        let frame = encode(&chunks, FrameEffort::Quick);
        for end in 0..frame.len() {
            assert!(decode("test", &frame[..end]).is_err(), "cut at {end}");
        }
        for position in 0..frame.len() {
            let mut bad = frame.clone();
            bad[position] ^= 0x41;
            if let Ok(found) = decode("test", &bad) {
                assert_ne!(found, chunks, "byte {position}");
            }
        }
        let mut huge = frame.clone();
        huge[OFFSET_PLAIN_BYTES..OFFSET_CHUNK_COUNT].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode("test", &huge).is_err(), "nothing is allocated for it");
        let mut many = encode(&chunks[..0], FrameEffort::Quick);
        many.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
        many[OFFSET_CHUNK_COUNT..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode("test", &many).is_err());
    }
}
