//! Compresses the bytes of a frame: LZ4 for what is soon rewritten, zstd for what stays.
//!
//! Measured on 320 commits of a real data set, one chunk a frame: with LZ4 a commit takes 0.91 ms
//! of CPU and all take 16.8 MB; zstd's level 1: 1.19 ms and 12.5 MB; 3: 1.16 ms and 12.1 MB; 6:
//! 1.97 ms and 11.3 MB; 9: 2.75 ms and 11.2 MB. On 100 random edits in 200,000 entries of random
//! letters, level 3 costs twice the processor time of level 1. So commits take level 1, and LZ4
//! where it doesn't pay.
//!
//! Leaves of like documents may be stored by columns first ([`columns`]), which are then compressed
//! as any bytes where that pays.
//!
//! *Hostile bytes*: a frame's header says how long its content is, and that is bounded before it
//! gets here. Content is decompressed into exactly so many bytes, in one piece, so that neither
//! codec allocates by the compressed bytes' own word.
//!
//! zstd's contexts are dear to make (hundreds of kilobytes), so each thread keeps its own.

use std::cell::RefCell;

use lz4_flex::block::compress_into;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::get_frame_content_size;

use super::columns::{self, Encoder};
use super::lz4::{self, SlotTable};
use crate::Lifetime;
use crate::chunk::{Chunk, HASH_BYTES};
use crate::field::u32_at;

/// Compression must save one part in sixteen, or the frame is stored raw and costs reads nothing.
const SAVING_DIVISOR: usize = 16;
/// zstd's level for single chunks: see the measurement above.
const LEVEL_CHUNK: i32 = 1;
/// zstd's level where time was asked for to save space.
const LEVEL_FIRM: i32 = 6;
/// Single chunks below this, as the leaves of indexes are, get no zstd on the way: making its
/// tables, and reading them, costs as much as for long ones. Measured on 400,000 documents with
/// four indexes: a commit of 100 takes 34 instead of 43 ms of processor time, a merge of 1,000 a
/// side that reads such commits 179 instead of 253; a commit writes 2.5 instead of 2.1 MB until a
/// collection packs it. LZ4 for all chunks: 34 ms, 186, 2.7 MB.
const MEDIUM_BYTES_MIN: usize = 8 << 10;
/// If names are more than one byte in so many, zstd finds little that LZ4 doesn't.
const NAMES_SHARE: usize = 4;
/// zstd's level for groups of chunks, which are made once, in the background.
const LEVEL_GROUP: i32 = 9;
/// Shorter columns of chunks that are written on the way are left as they are: what compressing
/// them wins, names mostly, doesn't pay for the tables.
const COLUMNS_BYTES_MIN: usize = 768;
/// The offset of a frame's columns if they are stored as they were written: behind their codec.
const OFFSET_COLUMNS_BYTES: usize = size_of::<u8>();
/// The offset if they are compressed: behind their length.
const OFFSET_COMPRESSED_COLUMNS: usize = OFFSET_COLUMNS_BYTES + size_of::<u32>();

/// The encoding of a frame's chunks. Stored: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Codec {
    Raw = 0,
    Lz4 = 1,
    Zstd = 2,
    Columns = 3,
}

impl Codec {
    pub(crate) fn from_byte(byte: u8) -> Option<Codec> {
        let all = [Codec::Raw, Codec::Lz4, Codec::Zstd, Codec::Columns];
        all.into_iter().find(|codec| *codec as u8 == byte)
    }
}

/// The effort that compression is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// LZ4, never columns: for what is gone or rewritten with the next fold.
    Brief,
    /// LZ4: for what is soon rewritten.
    Light,
    /// zstd for one chunk that stays.
    Medium,
    /// zstd for one chunk of the working state that a thorough collection moves.
    Firm,
    /// zstd for a group of related chunks that are seldom read.
    Strong,
}

impl Effort {
    /// This effort, or less where it can't pay: in short chunks, and in a single interior node,
    /// which is made of names that look random. Most chunks of a small version commit in a large
    /// tree are one of these.
    pub(crate) fn worth(self, chunks: &[&Chunk]) -> Effort {
        match (self, chunks) {
            (Effort::Medium, [chunk]) if chunk.encoded().len() < MEDIUM_BYTES_MIN => Effort::Light,
            (Effort::Medium | Effort::Firm, [chunk])
                if chunk.encoded().len() / NAMES_SHARE < chunk.reference_count() * HASH_BYTES =>
            {
                Effort::Light
            }
            _ => self,
        }
    }
}

impl From<Lifetime> for Effort {
    fn from(lifetime: Lifetime) -> Effort {
        match lifetime {
            // Columns of a leaf that scattered changes rewrite with each fold cost inserts under
            // four indexes a quarter more of the processor: collections take them.
            Lifetime::Brief | Lifetime::Rewritten => Effort::Brief,
            Lifetime::Working | Lifetime::Loaded => Effort::Light,
            Lifetime::Lasting => Effort::Medium,
        }
    }
}

thread_local! {
    static PLACES: RefCell<SlotTable> = RefCell::new(SlotTable::default());
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Returns how much room [`compress`] needs for content of `bytes`.
pub(crate) fn compressed_bytes_max(bytes: usize) -> usize {
    // More than zstd's own bound, too.
    lz4_flex::block::get_maximum_output_size(bytes) + 128
}

/// Compresses `content` into the beginning of `out`, which has room for it
/// ([`compressed_bytes_max`]). Returns how long it has become. `None` if that doesn't pay.
pub(crate) fn compress(effort: Effort, content: &[u8], out: &mut [u8]) -> Option<(Codec, usize)> {
    let (codec, bytes) = match effort {
        Effort::Brief | Effort::Light => (Codec::Lz4, compress_lz4(content, out)?),
        Effort::Medium => (Codec::Zstd, compress_zstd(LEVEL_CHUNK, content, out)?),
        Effort::Firm => (Codec::Zstd, compress_zstd(LEVEL_FIRM, content, out)?),
        Effort::Strong => (Codec::Zstd, compress_zstd(LEVEL_GROUP, content, out)?),
    };
    let pays = bytes + content.len() / SAVING_DIVISOR < content.len();
    pays.then_some((codec, bytes))
}

/// Returns the bytes that a frame stores of `chunks` by columns: their codec, their length if they
/// are compressed, and the columns. `None` if that can't pay. `are_compressed` says whether
/// compression is worth trying.
pub(crate) fn compress_columns(
    encoder: &mut Encoder,
    effort: Effort,
    chunks: &[&Chunk],
    are_compressed: bool,
) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> = chunks.iter().map(|chunk| &chunk.encoded()[..]).collect();
    let columns = encoder.encode(&parts)?;
    let is_tried = match effort {
        Effort::Brief => return None,
        _ if !are_compressed => false,
        Effort::Light | Effort::Medium => COLUMNS_BYTES_MIN <= columns.len(),
        Effort::Firm | Effort::Strong => true,
    };
    if !is_tried {
        return Some(plain_columns(columns));
    }
    let mut out = vec![0; OFFSET_COMPRESSED_COLUMNS + compressed_bytes_max(columns.len())];
    if let Some((codec, bytes)) = compress(effort, &columns, &mut out[OFFSET_COMPRESSED_COLUMNS..])
    {
        out[0] = codec as u8;
        let columns_bytes = u32::try_from(columns.len()).ok()?.to_le_bytes();
        out[OFFSET_COLUMNS_BYTES..OFFSET_COMPRESSED_COLUMNS].copy_from_slice(&columns_bytes);
        out.truncate(OFFSET_COMPRESSED_COLUMNS + bytes);
        return Some(out);
    }
    Some(plain_columns(columns))
}

/// Returns the bytes that a frame stores of columns that aren't compressed.
fn plain_columns(mut columns: Vec<u8>) -> Vec<u8> {
    columns.insert(0, Codec::Raw as u8);
    columns
}

fn decompress_columns(stored: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let codec = Codec::from_byte(*stored.first()?)?;
    if codec == Codec::Raw {
        return columns::decode(&stored[OFFSET_COLUMNS_BYTES..], bytes);
    }
    // Columns are stored only where they are shorter than what they stand for.
    let columns_bytes = u32_at(stored, OFFSET_COLUMNS_BYTES)? as usize;
    if codec == Codec::Columns || bytes < columns_bytes {
        return None;
    }
    let columns = decompress(codec, stored.get(OFFSET_COMPRESSED_COLUMNS..)?, columns_bytes)?;
    columns::decode(&columns, bytes)
}

fn compress_lz4(content: &[u8], out: &mut [u8]) -> Option<usize> {
    if lz4::CONTENT_BYTES_MAX < content.len() {
        return compress_into(content, out).ok();
    }
    PLACES.with_borrow_mut(|places| Some(lz4::compress(content, out, places)))
}

/// `None` if there is no memory for a context.
fn compress_zstd(level: i32, content: &[u8], out: &mut [u8]) -> Option<usize> {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Compressor::new(level).ok();
        }
        let compressor = kept.as_mut()?;
        compressor.set_compression_level(level).ok()?;
        compressor.compress_to_buffer(content, out).ok()
    })
}

/// Decompresses `stored` into what must be exactly `bytes` bytes, which the caller has bounded.
pub(crate) fn decompress(codec: Codec, stored: &[u8], bytes: usize) -> Option<Vec<u8>> {
    match codec {
        Codec::Raw => (stored.len() == bytes).then(|| stored.to_vec()),
        Codec::Lz4 => {
            let mut content = vec![0; bytes];
            let count = lz4_flex::block::decompress_into(stored, &mut content).ok()?;
            (count == bytes).then_some(content)
        }
        Codec::Columns => decompress_columns(stored, bytes),
        Codec::Zstd => {
            let announced = get_frame_content_size(stored).ok()??;
            if announced != bytes as u64 {
                return None;
            }
            // Filled from its beginning, as far as its capacity goes: clearing it first would cost.
            let mut content = Vec::with_capacity(bytes);
            let count = DECOMPRESSOR.with_borrow_mut(|kept| {
                if kept.is_none() {
                    *kept = Decompressor::new().ok();
                }
                kept.as_mut()?.decompress_to_buffer(stored, &mut content).ok()
            })?;
            (count == bytes).then_some(content)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORTS: [Effort; 4] = [Effort::Light, Effort::Medium, Effort::Firm, Effort::Strong];

    fn compressed(effort: Effort, content: &[u8]) -> Option<(Codec, Vec<u8>)> {
        let mut out = vec![1; compressed_bytes_max(content.len())];
        let (codec, bytes) = compress(effort, content, &mut out)?;
        out.truncate(bytes);
        Some((codec, out))
    }

    fn text() -> Vec<u8> {
        (0..400).flat_map(|number| format!("country {number}, ").into_bytes()).collect()
    }

    #[test]
    fn compression_round_trips() {
        for effort in EFFORTS {
            let (codec, compressed) = compressed(effort, &text()).unwrap();
            assert!(compressed.len() < text().len() / 2);
            assert_eq!(decompress(codec, &compressed, text().len()), Some(text()));
            assert_eq!(Codec::from_byte(codec as u8), Some(codec));
        }
        let bytes = |effort| compressed(effort, &text()).unwrap().1.len();
        assert!(bytes(Effort::Medium) < bytes(Effort::Light));
        assert!(bytes(Effort::Strong) <= bytes(Effort::Medium));
    }

    #[test]
    fn incompressible_frames_are_stored_as_they_are() {
        let noise: Vec<u8> =
            (0..1000u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        for effort in EFFORTS {
            assert_eq!(compressed(effort, &noise), None);
            assert_eq!(compressed(effort, b""), None);
        }
    }

    #[test]
    fn another_length_than_announced_is_refused() {
        for effort in EFFORTS {
            let (codec, compressed) = compressed(effort, &text()).unwrap();
            for bytes in [0, 1, text().len() - 1, text().len() + 1] {
                assert_eq!(decompress(codec, &compressed, bytes), None);
            }
            for bytes in 0..compressed.len() {
                assert_eq!(decompress(codec, &compressed[..bytes], text().len()), None);
            }
        }
        assert_eq!(decompress(Codec::Raw, b"abc", 2), None);
    }

    /// A few bytes that say they hold 2 GiB are refused before anything is allocated for them.
    #[test]
    fn a_frame_that_lies_about_its_content_is_refused() {
        // Magic; a descriptor with an eight-byte content size and no window; the size.
        let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
        bomb.extend((2u64 << 30).to_le_bytes());
        assert_eq!(decompress(Codec::Zstd, &bomb, 1000), None);
        // Without a content size there is nothing to compare.
        let unsized_frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x01, 0x00, 0x00];
        assert_eq!(decompress(Codec::Zstd, &unsized_frame, 0), None);
    }
}
