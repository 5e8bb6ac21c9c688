//! Indexes of packs and refs come back; what is damaged is refused, never believed.

use super::*;

fn pack() -> (Vec<u8>, Vec<(ChunkHash, ChunkLocation)>) {
    let mut bytes = begin_pack();
    bytes.extend_from_slice(&[5; 100]);
    let place = |offset, bytes| ChunkLocation { offset, bytes };
    let name = |number| ChunkHash([number; HASH_BYTES]);
    let mut places =
        vec![(name(9), place(16, 40)), (name(3), place(16, 40)), (name(5), place(56, 60))];
    end_pack(&mut bytes, &mut places);
    (bytes, places)
}

#[test]
fn indexes_come_back_from_any_tail_that_holds_them() {
    let (bytes, places) = pack();
    assert!(places.is_sorted_by_key(|(hash, _)| *hash));
    let all = bytes.len() as u64;
    let needed = index_bytes("test", all, &bytes[bytes.len() - TRAILER_BYTES..]).expect("whole");
    for tail in [needed as usize, needed as usize + 1, bytes.len()] {
        let tail = &bytes[bytes.len() - tail..];
        assert_eq!(read_index("test", all, tail).expect("a whole pack"), places);
    }
}

#[test]
fn damaged_packs_are_refused() {
    let (bytes, _) = pack();
    for end in 0..bytes.len() {
        assert!(read_index("test", end as u64, &bytes[..end]).is_err(), "cut at {end}");
        assert!(read_index("test", bytes.len() as u64, &bytes[..end]).is_err(), "cut at {end}");
    }
    for position in 116..bytes.len() {
        let mut bad = bytes.clone();
        bad[position] ^= 0x40;
        assert!(read_index("test", bad.len() as u64, &bad).is_err(), "a bit of byte {position}");
    }
}

/// The index is as it was written, and what it says is of no pack.
#[test]
fn frames_outside_of_their_pack_are_refused() {
    let index_of = |offset, bytes| {
        let mut pack = begin_pack();
        pack.extend_from_slice(&[5; 100]);
        end_pack(&mut pack, &mut [(ChunkHash([3; HASH_BYTES]), ChunkLocation { offset, bytes })]);
        read_index("test", pack.len() as u64, &pack)
    };
    assert!(index_of(16, 100).is_ok());
    for (offset, bytes) in [(15, 40), (0, 10), (16, 101), (116, 1), (u32::MAX, u32::MAX)] {
        assert!(index_of(offset, bytes).is_err(), "{bytes} bytes at {offset}");
    }
}

fn refs() -> Refs {
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
    let backup = BackupInfo {
        name: "monday".to_owned(),
        root: ChunkHash([4; HASH_BYTES]),
        time_millis: 7,
        databases: vec!["shop".to_owned(), "other".to_owned()],
        absent: vec![ChunkHash([8; HASH_BYTES])],
        lost: vec![ChunkHash([7; HASH_BYTES])],
        has_parents: false,
    };
    Refs {
        repository: Some(state),
        backups: vec![backup],
        collections: 3,
        doomed: vec!["pack-x".to_owned()],
        packs: BTreeMap::from([(CommitId([5; 20]), Some([1; 8])), (CommitId([6; 20]), None)]),
        reread: Some(CommitId([5; 20])),
        changes: 7,
    }
}

#[test]
fn refs_come_back_and_one_damage_takes_nothing_away() {
    let mut with_parents = refs();
    with_parents.backups[0].has_parents = true;
    for refs in [Refs::default(), refs(), with_parents] {
        let bytes = encode_refs(&refs);
        let (found, damage) = decode_refs(&bytes).expect("what was encoded");
        assert_eq!((found, damage.is_none()), (refs.clone(), true));
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 1;
            let (found, damage) = decode_refs(&bad).expect("the other copy");
            assert_eq!((found, damage.is_some()), (refs.clone(), true), "byte {position}");
            // A sector that is gone, too.
            let end = bad.len().min(position + 512);
            bad[position..end].fill(0);
            let (found, damage) = decode_refs(&bad).expect("the other copy");
            assert!(found == refs && (damage.is_some() || bad == bytes), "zeros at {position}");
        }
        for end in 0..bytes.len() {
            let found = decode_refs(&bytes[..end]).ok();
            let found = found.map(|(found, damage)| (found, damage.is_some()));
            let length = number(&bytes, PREFIX_BYTES + HASH_BYTES) as usize;
            let is_whole = PREFIX_BYTES + COPY_HEAD_BYTES + length <= end;
            assert_eq!(found, is_whole.then(|| (refs.clone(), true)), "cut at {end}");
        }
        let (first, last) = (PREFIX_BYTES + 3, bytes.len() - 30);
        let mut bad = bytes.clone();
        bad[first] ^= 1;
        bad[last] ^= 1;
        assert!(decode_refs(&bad).is_err(), "both");
    }
}

#[test]
fn the_example_of_the_page_is_what_is_written() {
    let chunk = Chunk::new(ChunkKind::Blob, &[], b"hello");
    let (mut pack, mut places) = (begin_pack(), Vec::new());
    let frame =
        crate::remote::frame::encode(std::slice::from_ref(&chunk), super::super::packs::EFFORT);
    let place = ChunkLocation { offset: pack.len() as u32, bytes: frame.len() as u32 };
    pack.extend_from_slice(&frame);
    places.push((chunk.hash(), place));
    end_pack(&mut pack, &mut places);
    let page = include_str!("../../../../../../docs/format/plain-remote.md");
    let example = page.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next());
    let example: Vec<u8> = example
        .expect("the page has an example")
        .lines()
        .flat_map(|line| line.split("  ").next().unwrap_or_default().split(' '))
        .filter(|word| !word.is_empty())
        .map(|word| u8::from_str_radix(word, 16).expect("two digits"))
        .collect();
    let hex: Vec<String> = pack.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(example, pack, "{}", hex.join(" "));
}
