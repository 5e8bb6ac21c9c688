//! Encodes frames for a pack in one buffer, laid out as in the file: each is compressed into its
//! place and all are written by one call, without a copy between.
//!
//! The buffer is used again ([`Frames::into_buffer`]): the kernel clears each page of a fresh one.

use std::ops::Range;

use super::codec::{Codec, Effort, compress, compress_columns, compressed_bytes_max};
use super::columns::Encoder;
use super::format::{FRAME_HEADER_BYTES, FrameHead, MAX_FRAME_CHUNKS, TABLE_ENTRY_BYTES};
use crate::chunk::{CHUNK_BYTES_MAX, Chunk, ChunkHash, ChunkKind};

/// The number of attempts in vain after which only one in `TRIED_AFTERWARDS` is made: chunks that
/// are put together are mostly of one tree. On 8 KB of random letters LZ4 takes 10 to 16 µs and
/// saves 4 %, zstd 27 and saves 35 %; on documents 15 to 20 and a third, 27 and two thirds.
const IN_VAIN_MAX: usize = 4;
const TRIED_AFTERWARDS: usize = 8;
/// Single chunks of which zstd saves less than such a part get LZ4: history is packed once more
/// later.
const ZSTD_SAVING_DIVISOR: usize = 2;
/// Columns that take at most such a part of their content are taken without asking what the bytes
/// would compress to: that is hardly less. Where it was asked in vain, this is asked seldom of a
/// larger part, too.
const COLUMNS_SURE_DIVISOR: usize = 8;
const COLUMNS_LIKELY_DIVISOR: usize = 2;
/// Columns must save such a part of their content beside what its bytes compress to: they are read
/// and written more slowly. Texts of a few hundred bytes saved a twentieth, and took 1.1 to 1.4
/// times as long to read, and twice as long to collect.
const COLUMNS_SAVING_DIVISOR: usize = 16;
/// The same for what is written on the way, which a collection packs once more. At a sixteenth
/// inserts under four indexes took a tenth to a quarter more of the processor for a tenth less
/// disk; series and tables of numbers save half and more.
const COLUMNS_SAVING_DIVISOR_ON_THE_WAY: usize = 4;

/// Decides whether a way to compress is worth trying.
#[derive(Clone, Copy, Default)]
struct CompressionTrials {
    in_vain: usize,
}

impl CompressionTrials {
    fn is_tried(self) -> bool {
        self.in_vain < IN_VAIN_MAX || self.in_vain.is_multiple_of(TRIED_AFTERWARDS)
    }

    fn note(&mut self, won: bool) {
        self.in_vain = if won { 0 } else { self.in_vain + 1 };
    }
}

/// The compressions that have paid lately.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lucks {
    /// The trials of chunks that refer to none, and of the others.
    lz4: [CompressionTrials; 2],
    zstd: CompressionTrials,
    columns: CompressionTrials,
    /// The trials of columns, compressed.
    packed_columns: CompressionTrials,
    /// The trials of bytes, beside columns.
    beside_columns: CompressionTrials,
}

/// Encoded frames, in one buffer.
#[derive(Default)]
pub(crate) struct Frames {
    /// Bytes behind `end` don't count.
    buffer: Vec<u8>,
    end: usize,
    chunks: Vec<NewChunk>,
    frames: Vec<NewFrame>,
    lucks: Lucks,
    encoder: Encoder,
}

/// A frame in the buffer.
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
    /// Begins with no frames; `buffer` is used for them, whatever it holds.
    pub(crate) fn new(buffer: Vec<u8>) -> Frames {
        Frames::after(Lucks::default(), buffer)
    }

    /// As [`Frames::new`], for chunks that are like those of frames before.
    pub(crate) fn after(lucks: Lucks, buffer: Vec<u8>) -> Frames {
        Frames { buffer, lucks, ..Frames::default() }
    }

    /// Returns the compressions that have paid: for the next frames of such chunks.
    pub(crate) fn lucks(&self) -> Lucks {
        self.lucks
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
        let (codec, stored_bytes) =
            self.compress(effort.worth(chunks), chunks, content, stored_start);
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

    /// Puts `content`, which `chunks` are, at `start` of the buffer, in the way that is shortest.
    /// Returns which, and how long it has become.
    fn compress(
        &mut self,
        effort: Effort,
        chunks: &[&Chunk],
        content: &[u8],
        start: usize,
    ) -> (Codec, usize) {
        let columns = self.by_columns(effort, chunks);
        if let Some(columns) = &columns
            && self.are_surely_short(effort, columns.len(), content.len())
        {
            self.lucks.columns.note(true);
            self.lucks.beside_columns.note(false);
            return self.take_columns(columns, start);
        }
        let refers = chunks[0].reference_count() > 0;
        let (codec, bytes) = self.by_bytes(effort, content, start, refers);
        let Some(columns) = columns else { return (codec, bytes) };
        let divisor = match effort {
            Effort::Firm | Effort::Strong => COLUMNS_SAVING_DIVISOR,
            Effort::Brief | Effort::Light | Effort::Medium => COLUMNS_SAVING_DIVISOR_ON_THE_WAY,
        };
        let is_worth_it = columns.len() + content.len() / divisor < bytes;
        self.lucks.columns.note(is_worth_it);
        self.lucks.beside_columns.note(!is_worth_it);
        if is_worth_it { self.take_columns(&columns, start) } else { (codec, bytes) }
    }

    /// Whether columns of so many bytes needn't be compared with the content's bytes, compressed.
    fn are_surely_short(&self, effort: Effort, columns: usize, content: usize) -> bool {
        // Bytes of a group may repeat others of its bytes: that has to be tried.
        columns <= content / COLUMNS_SURE_DIVISOR
            || effort != Effort::Strong
                && columns <= content / COLUMNS_LIKELY_DIVISOR
                && !self.lucks.beside_columns.is_tried()
    }

    fn take_columns(&mut self, columns: &[u8], start: usize) -> (Codec, usize) {
        self.buffer[start..start + columns.len()].copy_from_slice(columns);
        (Codec::Columns, columns.len())
    }

    /// Returns the bytes that a frame of `chunks` would store by columns, if that is worth trying.
    fn by_columns(&mut self, effort: Effort, chunks: &[&Chunk]) -> Option<Vec<u8>> {
        let may_be_leaf =
            |chunk: &&Chunk| chunk.kind() == ChunkKind::MapNode && chunk.reference_count() == 0;
        if effort == Effort::Brief || !chunks.iter().any(may_be_leaf) {
            return None;
        }
        if !self.lucks.columns.is_tried() {
            self.lucks.columns.note(false);
            return None;
        }
        let are_packed = self.lucks.packed_columns.is_tried();
        let columns = compress_columns(&mut self.encoder, effort, chunks, are_packed);
        match &columns {
            None => self.lucks.columns.note(false),
            Some(columns) => self.lucks.packed_columns.note(columns[0] != Codec::Raw as u8),
        }
        columns
    }

    /// Compresses `content` as bytes, or copies it, to `start` of the buffer.
    fn by_bytes(
        &mut self,
        mut effort: Effort,
        content: &[u8],
        start: usize,
        refers: bool,
    ) -> (Codec, usize) {
        if effort == Effort::Medium && !self.lucks.zstd.is_tried() {
            self.lucks.zstd.note(false);
            effort = Effort::Light;
        }
        let is_light = matches!(effort, Effort::Brief | Effort::Light);
        let lz4 = &mut self.lucks.lz4[usize::from(refers)];
        let is_tried = !is_light || lz4.is_tried();
        let out = &mut self.buffer[start..];
        let compressed = if is_tried { compress(effort, content, out) } else { None };
        match (effort, compressed) {
            (Effort::Brief | Effort::Light, compressed) => lz4.note(compressed.is_some()),
            (Effort::Medium, Some((_, bytes))) => {
                self.lucks.zstd.note(bytes <= content.len() / ZSTD_SAVING_DIVISOR);
            }
            (Effort::Medium, None) => self.lucks.zstd.note(false),
            (Effort::Firm | Effort::Strong, _) => {}
        }
        compressed.unwrap_or_else(|| {
            self.buffer[start..start + content.len()].copy_from_slice(content);
            (Codec::Raw, content.len())
        })
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

    /// Returns how many of `frames`, from the first, lie together, and their bytes.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkKind;
    use crate::pack::format::Frame;

    const CHUNK_BYTES: usize = 10 << 10;

    /// The content of a chunk of letters, all `letters` of them, whose order looks random.
    fn content(seed: u32, letters: u32) -> Chunk {
        let mut state = seed | 1;
        let letter = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b'a' + ((state >> 16) % letters) as u8
        };
        Chunk::new(ChunkKind::Blob, &[], &(0..CHUNK_BYTES).map(letter).collect::<Vec<u8>>())
    }

    /// Returns how many frames have which codec after `count` chunks of some letters, and that all
    /// can be read.
    fn codecs(effort: Effort, letters: u32, count: u32) -> [usize; 4] {
        let (mut frames, mut codecs) = (Frames::default(), [0; 4]);
        let chunks: Vec<Chunk> = (0..count).map(|seed| content(seed * 2, letters)).collect();
        chunks.iter().for_each(|chunk| frames.push(effort, &[chunk]));
        for (frame, chunk) in frames.frames().iter().zip(&chunks) {
            let bytes = &frames.buffer[frame.bytes.clone()];
            codecs[usize::from(bytes[0])] += 1;
            let decoded: Vec<_> = Frame::parse(bytes).unwrap().decode(None).unwrap().collect();
            assert_eq!(&decoded[0].1, chunk.encoded());
        }
        codecs
    }

    #[test]
    fn futile_compression_is_tried_less() {
        // Two letters: zstd makes an eighth of them. Thirty: a third less, and LZ4 nothing.
        assert_eq!(codecs(Effort::Medium, 2, 40), [0, 0, 40, 0]);
        let found = codecs(Effort::Medium, 30, 40);
        assert_eq!(found, [32, 0, 8, 0], "raw, LZ4, zstd");
        assert_eq!(codecs(Effort::Light, 30, 40), [40, 0, 0, 0]);
        assert_eq!(codecs(Effort::Firm, 30, 40), [0, 0, 40, 0]);
    }

    /// A leaf has no columns if its documents have nothing in common: that is seen from its
    /// neighbours.
    #[test]
    fn columns_that_are_none_are_tried_less() {
        let leaf = |seed: u32| Chunk::new(ChunkKind::MapNode, &[], &seed.to_le_bytes().repeat(300));
        let mut frames = Frames::default();
        (0..20).for_each(|seed| frames.push(Effort::Firm, &[&leaf(seed)]));
        assert_eq!(frames.lucks().columns.in_vain, 20);
        let mut after = Frames::after(frames.lucks(), Vec::new());
        after.push(Effort::Firm, &[&leaf(20)]);
        assert_eq!(after.lucks().columns.in_vain, 21);
    }

    #[test]
    fn luck_turns() {
        let mut luck = CompressionTrials::default();
        let tried = |luck: &mut CompressionTrials, won: bool| {
            let is_tried = luck.is_tried();
            luck.note(is_tried && won);
            is_tried
        };
        let count = (0..36).filter(|_| tried(&mut luck, false)).count();
        assert_eq!(count, 4 + 4, "four at first, then every eighth");
        let begun = (0..8).position(|_| tried(&mut luck, true)).unwrap();
        assert!((0..20).all(|_| tried(&mut luck, true)), "from the {begun}th on");
    }
}
