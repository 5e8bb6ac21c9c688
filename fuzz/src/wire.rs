//! Messages of clients, and frames of chunks that remotes send.

use bytes::Bytes;
use frond_server::wire::{LegacyQuery, LegacyReply, Message};
use frond_vcs::remote::frame;

/// Most that a frame's chunks may take.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// Bytes that may be a message: what was read and is written reads the same.
pub fn message(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let _ = Message::peek_flags(&bytes);
    let _ = (LegacyQuery::decode(bytes.clone()), LegacyReply::decode(bytes.clone()));
    if let Ok(message) = Message::decode(bytes) {
        let again = Message::decode(message.encode(7, 9).into()).expect("what was written is read");
        assert_eq!(again.body, message.body);
        assert_eq!(again.sequences.len(), message.sequences.len());
    }
}

/// Bytes that may be frames: what was read and is written reads the same.
pub fn frame(bytes: &[u8]) {
    let _ = frame::decode("fuzz", bytes);
    if let Ok(chunks) = frame::decode_all("fuzz", bytes, FRAME_BYTES_MAX) {
        let written = frame::encode(&chunks, frame::FrameEffort::Quick);
        let again = frame::decode_all("fuzz", &written, FRAME_BYTES_MAX).expect("it is read");
        let names = |chunks: &[frond_store::Chunk]| -> Vec<_> {
            chunks.iter().map(frond_store::Chunk::hash).collect()
        };
        assert_eq!(names(&again), names(&chunks));
    }
}
