//! Indexes come back as written and sorted; each page is found by itself; any changed bit is seen.

use super::*;

/// `count` chunks, one frame of 10 bytes each.
fn entries(count: u32) -> (Vec<PackedChunk>, u32) {
    let entry = |number: u32| PackedChunk {
        hash: ChunkHash(*blake3::hash(&number.to_le_bytes()).as_bytes()),
        place: FrameOffset { offset: OFFSET_FIRST_FRAME + 10 * number, bytes: 10 },
        refers: number.is_multiple_of(3),
    };
    ((0..count).map(entry).collect(), OFFSET_FIRST_FRAME + 10 * count)
}

#[test]
fn an_index_comes_back_sorted_and_any_bit_changed_is_refused() {
    for count in [1, 2, 103] {
        let (mut entries, offset) = entries(count);
        let good = encode_index(offset, &mut entries);
        assert!(entries.is_sorted());
        let pack_bytes = u64::from(offset) + good.len() as u64;
        let trailer = |index: &[u8]| index[index.len() - TRAILER_BYTES..].to_vec();
        assert_eq!(parse_trailer(&trailer(&good), pack_bytes), Some((offset, count)));
        assert_eq!(parse_trailer(&trailer(&good), pack_bytes + 1), None);
        assert_eq!(parse_index(&good, u64::from(offset)).unwrap(), entries);
        parse_index(&good, u64::from(offset) - 1).expect_err("a frame reaches into the index");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let refused = parse_index(&bad, u64::from(offset)).is_err()
                || parse_trailer(&trailer(&bad), pack_bytes).is_none();
            assert!(refused, "bit {bit}");
        }
        for bytes in 0..good.len() {
            let end = u64::from(offset) + bytes as u64;
            let trailer = &good[bytes.saturating_sub(TRAILER_BYTES)..bytes];
            assert_eq!(parse_trailer(trailer, end), None, "an index cut short");
        }
    }
}

#[test]
fn each_chunk_is_found_in_its_page_and_others_are_not() {
    let (mut entries, offset) = entries(250);
    let index = encode_index(offset, &mut entries);
    for (position, entry) in entries.iter().enumerate() {
        let page = position / PAGE_ENTRY_COUNT;
        let (place, bytes) = page_place(offset, 250, page as u32);
        let start = (place - u64::from(offset)) as usize;
        let found = check_page(&index[start..start + bytes], place).unwrap();
        assert_eq!(
            search_page(found, entry.hash, |count| count / 2),
            Some((position % PAGE_ENTRY_COUNT, *entry))
        );
        let mut other = entry.hash;
        other.0[31] ^= 1;
        assert_eq!(search_page(found, other, |_| 0), None);
        check_page(&index[start..start + bytes], place + 1).expect_err("a page of elsewhere");
    }
    assert_eq!(search_page(&[], ChunkHash([0; 32]), |count| count), None);
}
