//! Frames on their way to a pack: they lie one after the other in one buffer, as they will in the file,
//! so that each is compressed into its place and all are written by one call, without a copy between.
//!
//! The buffer is used again ([`Frames::into_buffer`]): the kernel clears each page of a fresh one.

use std::ops::Range;

use super::codec::{Codec, Effort, compress, compressed_bytes_max};
use super::format::{FRAME_HEADER_BYTES, FrameHead, MAX_FRAME_CHUNKS, TABLE_ENTRY_BYTES};
use crate::chunk::{CHUNK_BYTES_MAX, Chunk, ChunkHash};

/// Encoded frames, in one buffer.
#[derive(Default)]
pub(crate) struct Frames {
    /// What lies behind `end` is of no account.
    buffer: Vec<u8>,
    end: usize,
    chunks: Vec<NewChunk>,
    frames: Vec<NewFrame>,
}

/// One of them.
#[derive(Clone)]
pub(crate) struct NewFrame {
    bytes: Range<usize>,
    chunks: Range<usize>,
}

/// A chunk in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NewChunk {
    pub(crate) hash: ChunkHash,
    /// Whether it refers to others.
    pub(crate) refers: bool,
}

impl NewFrame {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl Frames {
    /// No frames yet; `buffer` is used for them, whatever it holds.
    pub(crate) fn new(buffer: Vec<u8>) -> Frames {
        Frames { buffer, ..Frames::default() }
    }

    /// Makes room for `count` frames of `bytes` in all, so that the buffer grows once.
    pub(crate) fn reserve(&mut self, count: usize, bytes: usize) {
        let heads = count * (FRAME_HEADER_BYTES + TABLE_ENTRY_BYTES + compressed_bytes_max(0));
        self.grow_to(self.end + heads + compressed_bytes_max(bytes));
    }

    /// The buffer, for the next frames.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Adds the frame of `chunks`: one at least, together at most [`CHUNK_BYTES_MAX`] long.
    pub(crate) fn push(&mut self, effort: Effort, chunks: &[&Chunk]) {
        let uncompressed: usize = chunks.iter().map(|chunk| chunk.encoded().len()).sum();
        assert!(!chunks.is_empty() && uncompressed <= CHUNK_BYTES_MAX);
        assert!(chunks.len() <= MAX_FRAME_CHUNKS);
        let together: Vec<u8>;
        let content: &[u8] = match chunks {
            [chunk] => chunk.encoded(),
            _ => {
                let parts: Vec<&[u8]> = chunks.iter().map(|chunk| &chunk.encoded()[..]).collect();
                together = parts.concat();
                &together
            }
        };
        let start = self.end;
        let stored_start = start + FRAME_HEADER_BYTES + chunks.len() * TABLE_ENTRY_BYTES;
        self.grow_to(stored_start + compressed_bytes_max(content.len()));
        let effort = effort.worth(chunks);
        let compressed = compress(effort, content, &mut self.buffer[stored_start..]);
        let (codec, stored_bytes) = compressed.unwrap_or_else(|| {
            self.buffer[stored_start..stored_start + content.len()].copy_from_slice(content);
            (Codec::Raw, content.len())
        });
        self.end = stored_start + stored_bytes;
        let frame = &mut self.buffer[start..self.end];
        FrameHead { codec, uncompressed, chunks }.write(frame);
        let first_chunk = self.chunks.len();
        self.chunks.extend(
            chunks
                .iter()
                .map(|chunk| NewChunk { hash: chunk.hash(), refers: chunk.reference_count() > 0 }),
        );
        self.frames
            .push(NewFrame { bytes: start..self.end, chunks: first_chunk..self.chunks.len() });
    }

    /// Adds a frame that lay in another pack, as it is. It holds `chunk` alone.
    pub(crate) fn push_stored(&mut self, stored: &[u8], chunk: NewChunk) {
        let start = self.end;
        self.end += stored.len();
        self.grow_to(self.end);
        self.buffer[start..self.end].copy_from_slice(stored);
        let first_chunk = self.chunks.len();
        self.chunks.push(chunk);
        self.frames.push(NewFrame { bytes: start..self.end, chunks: first_chunk..first_chunk + 1 });
    }

    fn grow_to(&mut self, bytes: usize) {
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
    }

    /// Takes away the frames for which `keep` says no.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&[NewChunk]) -> bool) {
        let chunks = &self.chunks;
        self.frames.retain(|frame| keep(&chunks[frame.chunks.clone()]));
    }

    /// The frames, in their order.
    pub(crate) fn frames(&self) -> &[NewFrame] {
        &self.frames
    }

    /// The chunks of a frame.
    pub(crate) fn chunks_of(&self, frame: &NewFrame) -> &[NewChunk] {
        &self.chunks[frame.chunks.clone()]
    }

    /// How many of `frames`, from the first, lie together, and their bytes.
    pub(crate) fn first_run<'a>(&'a self, frames: &[NewFrame]) -> (usize, &'a [u8]) {
        let Some(first) = frames.first() else { return (0, &[]) };
        let (mut count, mut end) = (0, first.bytes.start);
        for frame in frames.iter().take_while(|frame| {
            let follows = frame.bytes.start == end;
            end = if follows { frame.bytes.end } else { end };
            follows
        }) {
            debug_assert!(frame.bytes.end <= self.end);
            count += 1;
        }
        (count, &self.buffer[first.bytes.start..end])
    }
}
