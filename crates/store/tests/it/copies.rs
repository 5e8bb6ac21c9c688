//! Second copies of chunks: they are there after a power cut, they heal what is damaged elsewhere,
//! and damage to them makes another file due and costs nothing else.

use frond_store::local::LocalStore;
use frond_store::local::examine::examine;
use frond_store::{Chunk, ChunkStore, Copies, Maintenance, StoreError};
use frond_testkit::machine::machine;
use frond_testkit::{Random, SimClock, SimDisk};

use crate::{SMALL, blob, open, random_chunks};

const NAME: &str = "COPIES";

/// As a caller does if `chunks` is all that is to have copies.
fn copy(copies: &Copies, chunks: &[Chunk]) {
    if copies.is_due() {
        let mut new = copies.replace().unwrap();
        assert!(new.add(chunks));
        new.finish();
    } else {
        copies.add(chunks);
    }
}

fn has(copies: &Copies, chunks: &[Chunk]) -> usize {
    chunks.iter().filter(|chunk| copies.has(&chunk.hash())).count()
}

/// Turns over a bit of each pack in the stored bytes of `chunk`.
fn damage_in_packs(disk: &SimDisk, chunk: &Chunk) {
    use frond_store::io::Disk;
    for name in disk.list().unwrap().into_iter().filter(|name| name.ends_with(".pack")) {
        let contents = disk.contents(&name).unwrap();
        if let Some(at) = contents.windows(32).position(|window| window == chunk.hash().0) {
            disk.flip_bit(&name, (at as u64 + 36) * 8);
        }
    }
}

#[test]
fn copies_survive_a_power_cut() {
    let (disk, clock) = (SimDisk::new(0), SimClock::new());
    let chunks = random_chunks(&mut Random::new(0), 9);
    let store = LocalStore::open(&machine(&disk, &clock, 0), SMALL).unwrap();
    let copies = store.copies().unwrap();
    assert!(copies.is_due(), "there is no file");
    copies.add(&chunks);
    assert_eq!(has(copies, &chunks), 0, "a file is added to that is whole");
    copy(copies, &chunks[..3]);
    copy(copies, &chunks[3..7]);
    let bytes = disk.contents(NAME).unwrap().len();
    copy(copies, &chunks[..7]);
    assert_eq!(disk.contents(NAME).unwrap().len(), bytes, "they have copies");
    // A minute later: what was added before is synced, too.
    clock.step(60_000_000);
    copy(copies, &chunks[7..8]);
    let disk = disk.crash();
    let store = open(&disk).unwrap();
    let copies = store.copies().unwrap();
    assert!(!copies.is_due());
    assert_eq!((has(copies, &chunks[..8]), has(copies, &chunks[8..])), (8, 0));
    disk.fail_sync_after(0);
    copy(copies, &chunks[8..]);
    assert!(!copies.is_due(), "a sync a minute at most");
    assert_eq!(has(copies, &chunks), 9);
    copies.clear().expect_err("no sync came before");
    copies.clear().unwrap();
    assert!(copies.is_due() && has(copies, &chunks) == 0);
    drop(store);
    assert_eq!(disk.crash().contents(NAME), None);
}

#[test]
fn a_chunk_with_a_copy_is_read_whatever_became_of_its_pack() {
    let chunks = random_chunks(&mut Random::new(1), 9);
    // Damaged while the store is open, or found when it is opened.
    for is_open in [false, true] {
        for (chunk, other) in chunks.iter().zip(chunks.iter().cycle().skip(1)) {
            let disk = SimDisk::new(1);
            let store = open(&disk).unwrap();
            store.put_many(&chunks).unwrap();
            store.sync().unwrap();
            copy(store.copies().unwrap(), &chunks);
            copy(store.copies().unwrap(), std::slice::from_ref(chunk));
            drop(store);
            let before = is_open.then(|| open(&disk).unwrap());
            damage_in_packs(&disk, chunk);
            let store = before.unwrap_or_else(|| open(&disk).unwrap());
            assert_eq!(store.get(chunk.hash()).unwrap(), *chunk);
            assert!(store.damages().is_empty(), "it is healed");
            assert!(!store.take_findings().is_empty(), "and told");
            store.sync().unwrap();
            drop(store);
            disk.set_contents(NAME, b"");
            let store = open(&disk).unwrap();
            assert_eq!(store.get_many(&[chunk.hash()]).unwrap(), std::slice::from_ref(chunk));
            damage_in_packs(&disk, other);
            assert!(matches!(store.get(other.hash()), Err(StoreError::Damaged { .. })));
        }
    }
}

#[test]
fn garbage_with_a_copy_does_not_come_back() {
    let disk = SimDisk::new(0);
    let store = open(&disk).unwrap();
    copy(store.copies().unwrap(), &[blob(b"gone")]);
    assert!(matches!(store.get(blob(b"gone").hash()), Err(StoreError::Missing(_))));
    assert_eq!(store.has_many(&[blob(b"gone").hash()]).unwrap(), [false]);
}

#[test]
fn damage_to_copies_makes_another_file_due_and_hides_one_at_most() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 100])).collect();
    let mut store = open(&disk).unwrap();
    store.put_many(&chunks).unwrap();
    copy(store.copies().unwrap(), &chunks);
    for byte in 0..disk.contents(NAME).unwrap().len() as u64 {
        disk.flip_bit(NAME, byte * 8);
        let found = store.verify(&mut |_| ()).unwrap();
        assert!(!found.is_empty() && store.copies().unwrap().is_due(), "byte {byte}: {found:?}");
        drop(store);
        // The last frame may be one that a crash left.
        let is_reported = !examine(&disk.machine(), &mut |_| ()).unwrap().damages.is_empty();
        store = open(&disk).unwrap();
        let copies = store.copies().unwrap();
        assert!(copies.is_due() && 2 <= has(copies, &chunks), "byte {byte}");
        assert!(is_reported || !copies.has(&chunks[2].hash()), "byte {byte}");
        copy(copies, &chunks);
        assert!(!copies.is_due() && has(copies, &chunks) == 3);
        assert!(store.verify(&mut |_| ()).unwrap().is_empty());
    }
}

#[test]
fn superseded_copies_go_when_the_file_has_grown() {
    let disk = SimDisk::new(0);
    let store = open(&disk).unwrap();
    let copies = store.copies().unwrap();
    let large = |seed: u64| blob(&Random::new(seed).bytes(50 << 10));
    let count = (0..100).take_while(|number| {
        copy(copies, &[large(*number)]);
        copies.has(&large(0).hash())
    });
    assert_eq!(count.count(), 8, "the file is due above twice 50 KB and 256");
    assert!(disk.contents(NAME).unwrap().len() < 52 << 10);
}

#[test]
fn a_failed_copy_fails_nothing_and_is_made_later() {
    let (disk, clock) = (SimDisk::new(0), SimClock::new());
    let store = LocalStore::open(&machine(&disk, &clock, 0), SMALL).unwrap();
    let copies = store.copies().unwrap();
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 100])).collect();
    copy(copies, &chunks[..1]);
    clock.step(60_000_000);
    disk.fail_sync_after(0);
    copies.add(&chunks);
    assert!(copies.is_due(), "what the disk has is unknown");
    disk.fill_after(50);
    let mut new = copies.replace().unwrap();
    assert!(!new.add(&chunks), "the disk is full");
    new.abandon();
    disk.make_room();
    copy(copies, &chunks);
    assert!(!copies.is_due());
    drop(store);
    let store = open(&disk.crash()).unwrap();
    assert_eq!(has(store.copies().unwrap(), &chunks), 3);
}

#[test]
fn copies_for_which_there_is_no_room_leave_the_file_in_force() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..2u8).map(|byte| blob(&[byte; 100])).collect();
    let store = open(&disk).unwrap();
    let copies = store.copies().unwrap();
    copy(copies, &chunks[..1]);
    let mut new = copies.replace().unwrap();
    disk.limit_to(Some(50));
    assert!(!new.add(&chunks[1..]), "its caller would put it in force");
    new.abandon();
    assert_eq!((has(copies, &chunks[..1]), has(copies, &chunks[1..])), (1, 0));
}
