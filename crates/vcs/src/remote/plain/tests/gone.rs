//! Reports about a place are right: on a pack that is gone, on one whose index is damaged, on one
//! little of which is needed.

use frond_db::collection::DeleteStatement;

use super::*;

/// One bit of a name in an index, or of its trailer: the frames describe themselves.
#[test]
fn a_pack_whose_index_is_damaged_serves_what_its_frames_hold() {
    const TRAILER_BYTES: usize = 48;
    const ENTRY_BYTES: usize = 40;
    let (_frond, main, whole) = begin(1);
    for from_end in [TRAILER_BYTES + ENTRY_BYTES, TRAILER_BYTES] {
        let disk = whole.copy(from_end as u64);
        let packs = files(&disk.machine(), "pack-").into_iter();
        let packs = packs.map(|name| (disk.contents(&name).expect("it is there").len(), name));
        let (bytes, name) = packs.max().expect("two");
        disk.flip_bit(&name, (bytes - from_end) as u64 * 8);
        let found = verify(&disk, None);
        let [damage] = &found.damages[..] else { panic!("{found:?}") };
        assert_eq!(damage.file, name);
        assert!(damage.chunks.is_empty() && !damage.may_hold_more, "{damage:?}");
        assert!(found.parts.iter().all(|part| part.lost.is_empty()), "{found:?}");
        let restored = restore(&disk, "tuesday").expect("its frames are whole");
        assert_eq!(all(&shop(&restored)), all(&main));
    }
}

/// A backup is reported as damaged if, and only if, it can't be restored.
#[test]
fn a_backup_lacks_what_a_pack_had_that_is_gone() {
    let (_frond, _main, whole) = begin(1);
    let mut lost_count = 0;
    for (position, pack) in files(&whole.machine(), "pack-").into_iter().enumerate() {
        let disk = whole.copy(position as u64);
        disk.machine().disk.remove(&pack).expect("it is there");
        let found = verify(&disk, None);
        assert!(found.damages.iter().any(|damage| damage.file == pack), "{found:?}");
        for (part, name) in found.parts.iter().zip(["monday", "tuesday"]) {
            assert_eq!(part.lost.is_empty(), restore(&disk, name).is_some(), "{name} {found:?}");
            lost_count += part.lost.len();
        }
    }
    assert!(lost_count > 0);
}

#[test]
fn a_collection_writes_packs_again_of_which_little_is_needed() {
    let frond = open(&SimDisk::new(3));
    let main = shop(&frond);
    insert(&main, &(0..2_000).map(|id| thing(id, 0)).collect::<Vec<_>>());
    let disk = SimDisk::new(4);
    back_up(&disk, &frond, "monday");
    let most = document! { "$gte": 200_i32 };
    let filter = document! { "_id": &most };
    let statement =
        DeleteStatement { filter, only_first: false, hint: None, variables: None, collation: None };
    main.delete("things", &[statement], true, Durability::Synced).expect("they are there");
    back_up(&disk, &frond, "tuesday");
    let place = PlainRemote::open(&disk.machine()).expect("it opens");
    place.remove_backup("monday").expect("it is there");
    let done = place.reclaim(&mut |_| {}).expect("all that is needed is there");
    assert!(done.packs_removed > 0 && done.bytes_after < done.bytes_before / 2, "{done:?}");
    let restored = restore(&disk, "tuesday").expect("it is whole");
    assert_eq!(all(&shop(&restored)), all(&main));
    assert_eq!(all(&main).len(), 200);
}
