//! Frames come back as written; any changed bit is seen.

use super::*;
use crate::chunk::{Chunk, ChunkKind};
use crate::pack::codec::Effort;
use crate::pack::frames::Frames;

fn chunk(payload: &[u8]) -> Chunk {
    Chunk::new(ChunkKind::Blob, &[], payload)
}

fn encode(effort: Effort, chunks: &[&Chunk]) -> (Vec<u8>, Vec<NewChunk>) {
    // A used buffer: nothing of it may be seen in a frame.
    let mut frames = Frames::new(vec![0xee; 100]);
    frames.push(effort, chunks);
    let (count, bytes) = frames.first_run(frames.frames());
    assert_eq!(count, 1);
    (bytes.to_vec(), frames.chunks_of(&frames.frames()[0]).to_vec())
}

fn frame_of(chunk: &Chunk) -> Vec<u8> {
    encode(Effort::Light, &[chunk]).0
}

#[test]
fn a_frame_gives_its_chunk_back() {
    let noise: Vec<u8> =
        (0..1000u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    let cases = [(vec![], Codec::Raw), (vec![7; 5000], Codec::Lz4), (noise, Codec::Raw)];
    for (payload, codec) in cases {
        let chunk = chunk(&payload);
        let bytes = frame_of(&chunk);
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.codec, codec, "{} bytes", payload.len());
        let new = NewChunk { hash: chunk.hash(), refers: false };
        assert!(frame.decode(None).unwrap().eq([(new, chunk.encoded().clone())]));
        assert!(bytes.len() <= chunk.encoded().len() + FRAME_HEADER_BYTES + TABLE_ENTRY_BYTES);
    }
}

#[test]
fn a_frame_may_hold_several_chunks() {
    let one = chunk(b"one");
    let referring = Chunk::new(ChunkKind::MapNode, &[one.hash()], &[b'x'; 900]);
    let chunks = [&one, &chunk(b""), &referring, &chunk(&[b'x'; 1000])];
    for effort in [Effort::Light, Effort::Medium, Effort::Strong] {
        let (bytes, table) = encode(effort, &chunks);
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame_bytes(&bytes), Some(bytes.len()));
        assert!(bytes.len() < 500, "compressed as one");
        let expected: Vec<_> = table.iter().copied().zip(chunks).collect();
        for ((found, bytes), (new, chunk)) in frame.decode(None).unwrap().zip(expected) {
            assert_eq!((found, &bytes), (new, chunk.encoded()));
            assert_eq!(found.refers, chunk.reference_count() > 0);
        }
    }
}

#[test]
fn a_frame_with_any_bit_changed_is_refused() {
    for payload in [vec![], vec![b'x'; 300]] {
        let good = frame_of(&chunk(&payload));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            Frame::parse(&bad).expect_err("a changed bit");
        }
        for bytes in 0..good.len() {
            Frame::parse(&good[..bytes]).expect_err("a frame cut short");
        }
        Frame::parse(&vec![0; good.len()]).expect_err("zeros");
    }
}

#[test]
fn a_frame_that_contradicts_itself_is_refused_though_its_checksum_is_right() {
    let good = frame_of(&chunk(b"some"));
    let check = |change: &dyn Fn(&mut [u8])| {
        let mut bad = good.clone();
        change(&mut bad);
        let checksum = frame_checksum(&bad);
        put(&mut bad, OFFSET_FRAME_CHECKSUM, &checksum.to_le_bytes());
        Frame::parse(&bad).map(drop)
    };
    check(&|_| ()).unwrap();
    check(&|frame| frame[OFFSET_FRAME_ZERO] = 1).unwrap_err();
    check(&|frame| frame[OFFSET_DICTIONARY] = 1).unwrap_err();
    check(&|frame| frame[OFFSET_UNCOMPRESSED_BYTES] += 1).unwrap_err();
    check(&|frame| frame[FRAME_HEADER_BYTES + OFFSET_ENTRY_CHUNK_BYTES] += 1).unwrap_err();
    // Both of the sums, but not what is stored.
    check(&|frame| {
        frame[OFFSET_UNCOMPRESSED_BYTES] += 1;
        frame[FRAME_HEADER_BYTES + OFFSET_ENTRY_CHUNK_BYTES] += 1;
    })
    .unwrap_err();
}

#[test]
fn a_frame_stores_what_the_largest_chunk_has_and_no_more() {
    let mut header = frame_of(&chunk(b""))[..FRAME_HEADER_BYTES].to_vec();
    let mut check = |stored: usize, expected: Option<usize>| {
        put(&mut header, OFFSET_STORED_BYTES, &(stored as u32).to_le_bytes());
        assert_eq!(frame_bytes(&header), expected);
    };
    let before = FRAME_HEADER_BYTES + TABLE_ENTRY_BYTES;
    check(CHUNK_BYTES_MAX, Some(before + CHUNK_BYTES_MAX));
    check(CHUNK_BYTES_MAX + 1, None);
}
