//! Packs and refs come back; what is damaged is refused, never believed.

use super::*;

fn pack() -> (Vec<u8>, Vec<Chunk>, Vec<(ChunkHash, Place)>) {
    let chunks: Vec<Chunk> = [&b"hello"[..], &[b'z'; 3_000], b""]
        .iter()
        .map(|payload| Chunk::new(ChunkKind::Blob, &[ChunkHash([7; HASH_BYTES])], payload))
        .collect();
    let mut bytes = begin_pack();
    let mut places: Vec<_> = chunks
        .iter()
        .map(|chunk| (chunk.hash(), Frame::append(&mut bytes, chunk.encoded())))
        .collect();
    end_pack(&mut bytes, &mut places);
    (bytes, chunks, places)
}

fn index(bytes: &[u8]) -> Result<Vec<(ChunkHash, Place)>, Error> {
    let mut read = |offset: u64, count: usize| {
        let start = offset as usize;
        let found = bytes.get(start..start + count).map(<[u8]>::to_vec);
        found.ok_or_else(|| damaged("test", "read past its end"))
    };
    read_index("test", bytes.len() as u64, &mut read)
}

#[test]
fn packs_come_back() {
    let (bytes, chunks, places) = pack();
    let found = index(&bytes).expect("a whole pack");
    assert_eq!(found, places);
    for chunk in &chunks {
        let (_, place) = found.iter().find(|(hash, _)| *hash == chunk.hash()).expect("it is in");
        let frame = &bytes[place.offset as usize..][..place.bytes as usize];
        let encoded = Frame::decode("test", place, frame).expect("a whole frame");
        assert_eq!(&encoded[..], chunk.encoded());
    }
    assert!(bytes.len() < 1_000, "what can be compressed is: {}", bytes.len());
}

#[test]
fn damaged_packs_are_refused() {
    let (bytes, _, places) = pack();
    for end in 0..bytes.len() {
        assert!(index(&bytes[..end]).is_err(), "cut at {end}");
    }
    let frames_end = places.iter().map(|(_, place)| place.offset + place.bytes).max().unwrap();
    for position in (frames_end as usize..bytes.len()).chain(0..PREFIX_BYTES) {
        let mut bad = bytes.clone();
        bad[position] ^= 0x40;
        assert!(index(&bad).is_err(), "a bit of byte {position}");
    }
    let (_, place) = places[0];
    let frame = &bytes[place.offset as usize..][..place.bytes as usize];
    for end in 0..frame.len() {
        assert!(Frame::decode("test", &place, &frame[..end]).is_err(), "a frame cut at {end}");
    }
    for position in 0..FRAME_HEADER_BYTES {
        let mut bad = frame.to_vec();
        bad[position] ^= 0x81;
        assert!(Frame::decode("test", &place, &bad).is_err(), "byte {position} of a frame");
    }
}

#[test]
fn refs_come_back_and_damage_is_refused() {
    let tag = TagInfo {
        name: "v1".to_owned(),
        commit: format::id_of(ChunkHash([3; HASH_BYTES])),
        message: Some("released".to_owned()),
        author: None,
        time_millis: 5,
    };
    let state = RemoteState {
        salt: u64::MAX,
        default_branch: "main".to_owned(),
        branches: BTreeMap::from([("a/b".to_owned(), ChunkHash([9; HASH_BYTES]))]),
        tags: BTreeMap::from([("v1".to_owned(), (tag, ChunkHash([3; HASH_BYTES])))]),
    };
    let bytes = encode_refs(&state);
    assert_eq!(decode_refs(&bytes).expect("what was encoded"), state);
    for end in 0..bytes.len() {
        assert!(decode_refs(&bytes[..end]).is_err(), "cut at {end}");
    }
    for position in PREFIX_BYTES..bytes.len() {
        let mut bad = bytes.clone();
        bad[position] ^= 1;
        assert!(decode_refs(&bad).is_err(), "a bit of byte {position}");
    }
}
