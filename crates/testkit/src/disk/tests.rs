//! The simulated disk keeps what was synced, loses what was not, and repeats by its seed.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use frond_store::io::Disk;

use super::SimDisk;

fn synced_file(disk: &SimDisk, name: &str, contents: &[u8]) {
    let file = disk.create(name).unwrap();
    file.write_all_at(0, contents).unwrap();
    file.sync().unwrap();
    disk.sync_directory().unwrap();
}

#[test]
fn synced_writes_survive_and_others_may() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        synced_file(&disk, "a", b"one");
        let file = disk.open("a").unwrap();
        file.write_all_at(3, b"two").unwrap();
        file.write_all_at(6, b"three").unwrap();
        let after = disk.crash().contents("a").unwrap();
        assert!(after.starts_with(b"one"));
        outcomes.insert(after);
    }
    let has = |contents: &[u8]| outcomes.contains(contents);
    assert!(has(b"one") && has(b"onetwo") && has(b"onetwothree"));
    assert!(has(b"one\0\0\0three"), "a later write alone is kept: reordering");
    assert!(has(b"onet"), "a write is torn");
}

#[test]
fn large_writes_lose_single_sectors() {
    let lost_inside = (0..100).any(|seed| {
        let disk = SimDisk::new(seed);
        synced_file(&disk, "a", b"");
        disk.open("a").unwrap().write_all_at(0, &[7; 4096]).unwrap();
        let after = disk.crash().contents("a").unwrap();
        after.len() == 4096 && after[..512] != [7; 512] && after[3584..] == [7; 512]
    });
    assert!(lost_inside);
}

#[test]
fn a_synced_file_is_lost_with_its_name() {
    let found = |seed| {
        let disk = SimDisk::new(seed);
        let file = disk.create("a").unwrap();
        file.write_all_at(0, b"data").unwrap();
        file.sync().unwrap();
        disk.crash().contents("a")
    };
    let outcomes: BTreeSet<_> = (0..50).map(found).collect();
    assert_eq!(outcomes, BTreeSet::from([None, Some(b"data".to_vec())]));
}

#[test]
fn names_change_in_order_and_as_a_whole() {
    let found = |seed| {
        let disk = SimDisk::new(seed);
        synced_file(&disk, "a", b"old");
        synced_file(&disk, "b", b"new");
        disk.rename("b", "a").unwrap();
        disk.remove("a").unwrap();
        let after = disk.crash();
        (after.contents("a"), after.contents("b"))
    };
    let (old, new) = (Some(b"old".to_vec()), Some(b"new".to_vec()));
    let outcomes: BTreeSet<_> = (0..50).map(found).collect();
    let expected = BTreeSet::from([(old, new.clone()), (new, None), (None, None)]);
    assert_eq!(outcomes, expected);
}

#[test]
fn the_power_fails_at_the_chosen_operation() {
    for crash_point in 0..4 {
        let disk = SimDisk::new(1);
        disk.crash_after(crash_point);
        let results = [
            disk.create("a").map(drop),
            disk.open("a").and_then(|file| file.write_all_at(0, b"x")),
            disk.open("a").and_then(|file| file.sync()),
            disk.sync_directory(),
        ];
        let succeeded = results.iter().take_while(|result| result.is_ok()).count();
        assert_eq!(succeeded as u64, crash_point);
        assert!(results[succeeded..].iter().all(|result| result.is_err()));
        assert!(disk.list().is_err());
        assert!(disk.crash().list().is_ok());
    }
}

#[test]
fn a_failed_sync_saves_nothing_for_later() {
    let lost = (0..50).any(|seed| {
        let disk = SimDisk::new(seed);
        synced_file(&disk, "a", b"");
        let file = disk.open("a").unwrap();
        file.write_all_at(0, b"data").unwrap();
        disk.fail_sync_after(0);
        assert!(file.sync().is_err());
        assert_eq!(disk.contents("a").unwrap(), b"data");
        file.sync().unwrap();
        disk.crash().contents("a").unwrap() != b"data"
    });
    assert!(lost);
}

#[test]
fn a_full_disk_takes_what_fits() {
    let disk = SimDisk::new(0);
    synced_file(&disk, "a", b"12345");
    disk.fill_after(3);
    let file = disk.open("a").unwrap();
    file.write_all_at(0, b"abcde").unwrap();
    assert_eq!(file.write_all_at(4, b"efghijk").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.contents("a").unwrap(), b"abcdefgh");
    disk.make_room();
    file.write_all_at(4, b"efghijk").unwrap();
    assert_eq!(disk.contents("a").unwrap(), b"abcdefghijk");
}

#[test]
fn killing_the_process_keeps_what_was_written_but_pending() {
    let disk = SimDisk::new(3);
    disk.create("a").unwrap().write_all_at(0, b"data").unwrap();
    let after = disk.kill();
    assert_eq!(after.contents("a").unwrap(), b"data");
    assert!(disk.open("a").is_err());
    after.open("a").unwrap().sync().unwrap();
    after.sync_directory().unwrap();
    assert_eq!(after.crash().contents("a").unwrap(), b"data");
}

#[test]
fn bits_flip_locks_hold_and_reads_end_at_the_end() {
    let disk = SimDisk::new(0);
    synced_file(&disk, "a", b"AB");
    disk.flip_bit("a", 9);
    assert_eq!(disk.contents("a").unwrap(), b"A@");
    let file = disk.open("a").unwrap();
    assert_eq!(file.read_exact_at(1, &mut [0; 2]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    disk.lock().unwrap();
    assert_eq!(disk.clone().lock().unwrap_err().kind(), ErrorKind::WouldBlock);
    disk.unlock();
    disk.lock().unwrap();
}

#[test]
fn only_the_sync_of_chosen_bytes_fails() {
    let disk = SimDisk::new(1);
    synced_file(&disk, "a", b"one");
    let (chosen, other) = (disk.open("a").unwrap(), disk.create("b").unwrap());
    disk.fail_sync_of(b"one");
    chosen.write_all_at(3, b"two").unwrap();
    chosen.sync().expect("what is sought was synced before");
    other.write_all_at(0, b"two").unwrap();
    chosen.write_all_at(6, b"and one").unwrap();
    other.sync().expect("another file");
    disk.sync_directory().expect("the directory");
    chosen.sync().expect_err("chosen");
    chosen.sync().expect("it fails once");
}
