//! The data that a chunk carries besides its bytes.

use super::*;

#[test]
fn a_weak_chunk_is_empty_only_before_it_led_to_one() {
    assert!(WeakChunk::default().is_empty());
    let chunk = Chunk::new(ChunkKind::Blob, &[], b"");
    let weak = chunk.downgrade();
    assert!(!weak.is_empty() && weak.upgrade().is_some());
    drop(chunk);
    assert!(!weak.is_empty() && weak.upgrade().is_none());
}

#[test]
fn a_chunk_is_busy_after_so_many_uses() {
    let chunk = Chunk::new(ChunkKind::Blob, &[], b"");
    assert!((0..BUSY_USES).all(|_| !chunk.is_busy()));
    assert!((0..300).all(|_| chunk.is_busy()));
}

#[test]
fn the_first_derived_value_is_kept() {
    for bytes in [0, DERIVED_NEAR_BYTES, DERIVED_NEAR_BYTES + 1] {
        let chunk = Chunk::new(ChunkKind::Blob, &[], b"");
        assert_eq!(chunk.derived(), None);
        chunk.clone().derive(&vec![7; bytes]);
        chunk.derive(b"later");
        assert_eq!(chunk.derived(), Some(&vec![7; bytes][..]));
    }
}

#[test]
fn a_chunk_is_pinned_as_long_as_one_of_its_pins_is_left() {
    let chunk = Chunk::new(ChunkKind::Blob, &[], b"");
    assert!((0..255).all(|_| chunk.pin()) && !chunk.pin(), "so many at most");
    (0..254).for_each(|_| chunk.unpin());
    assert!(chunk.is_pinned());
    chunk.unpin();
    assert!(!chunk.is_pinned() && chunk.take_used(), "the cache spares it once more");
}
