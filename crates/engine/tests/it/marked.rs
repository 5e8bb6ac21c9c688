//! Damage of the newest records of the log isn't taken for a torn write, once nothing else came.
//!
//! *Method*: transactions, and an ending: the engine is closed, or waits until it marks the end and
//! is killed, or loses its power and is opened and killed once more. Then any bit of the last
//! record turns over, or its whole sector is another, with those before it and the mark behind: no
//! opening may go on without the transaction. Where nothing marks the end, the bit is turned back.

use std::time::{Duration, Instant};

use frond_engine::{Durability, Engine, EngineError, TreeId};
use frond_store::StoreError;
use frond_store::io::Disk;
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};

use crate::rig::{get, make_trees, open, put, quiet};

const LAST: &[u8] = b"the value of the last transaction";
/// The bytes of a record's header, and those that a transaction's payload has before the value, at
/// least.
const BYTES_BEFORE: usize = 48 + 40;

fn write(engine: &Engine, tree: TreeId, random: &mut Random) {
    // Later records lie in no sector of the segment's head.
    let mut transaction = engine.begin();
    put(&mut transaction, tree, "first", &"x".repeat(6_000));
    transaction.commit(Durability::Synced).unwrap();
    for number in 0..random.below(8) {
        let mut transaction = engine.begin();
        put(&mut transaction, tree, &format!("{number}"), &"x".repeat(random.below(300)));
        transaction.commit(Durability::Synced).unwrap();
    }
    let mut transaction = engine.begin();
    put(&mut transaction, tree, "last", std::str::from_utf8(LAST).unwrap());
    transaction.commit(Durability::Synced).unwrap();
}

/// The file of the log with the last record, and where in it the record's value is.
fn place_of_last(disk: &SimDisk) -> (String, usize) {
    let names = disk.list().unwrap();
    let mut logs: Vec<String> = names.into_iter().filter(|name| name.starts_with("log-")).collect();
    logs.sort();
    let find = |name: String| {
        let contents = disk.contents(&name)?;
        let at = contents.windows(LAST.len()).rposition(|window| window == LAST)?;
        Some((name, at))
    };
    logs.into_iter().rev().find_map(find).expect("the transaction is in the log")
}

fn assert_no_bit_is_passed_over(disk: &SimDisk, random: &mut Random) {
    let (name, at) = place_of_last(disk);
    let range = at - BYTES_BEFORE..at + LAST.len();
    for _ in 0..40 {
        let byte = range.start + random.below(range.len());
        let damaged = disk.copy(0);
        damaged.flip_bit(&name, (byte * 8 + random.below(8)) as u64);
        let opened = open(&damaged, quiet()).map(drop);
        let is_reported = matches!(opened, Err(EngineError::Store(StoreError::Damaged { .. })));
        assert!(is_reported, "byte {byte} of {name}, {} from the value: {opened:?}", at - byte);
    }
}

fn assert_no_sector_is_passed_over(disk: &SimDisk, random: &mut Random) {
    let (name, at) = place_of_last(disk);
    let before = disk.contents(&name).unwrap();
    for sector in [512, 4096] {
        let begin = at / sector * sector;
        let end = (begin + sector).min(before.len());
        for content in [vec![0; end - begin], random.bytes(end - begin)] {
            let (damaged, mut contents) = (disk.copy(0), before.clone());
            contents[begin..end].copy_from_slice(&content);
            damaged.set_contents(&name, &contents);
            let opened = open(&damaged, quiet()).map(drop);
            let is_reported = matches!(opened, Err(EngineError::Store(StoreError::Damaged { .. })));
            assert!(is_reported, "{sector} bytes at {begin} of {name}: {opened:?}");
        }
    }
}

#[test]
fn a_bit_of_the_last_record_that_turned_over_after_closing_is_reported() {
    for_seeds(10, |mut random| {
        let disk = SimDisk::new(random.next());
        let engine = open(&disk, quiet()).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        write(&engine, tree, &mut random);
        engine.close().unwrap();
        drop(engine);
        assert_no_bit_is_passed_over(&disk, &mut random);
        assert_no_sector_is_passed_over(&disk, &mut random);
        // A segment that was opened and not written to is marked, too.
        drop(open(&disk, quiet()).unwrap());
        assert_no_bit_is_passed_over(&disk, &mut random);
        assert_no_sector_is_passed_over(&disk, &mut random);
        let engine = open(&disk, quiet()).unwrap();
        assert!(get(&engine.snapshot(), tree, "last").is_some());
    });
}

#[test]
fn a_log_that_rests_is_marked_and_one_that_was_recovered() {
    for_seeds(2, |mut random| {
        let disk = SimDisk::new(random.next());
        let engine = open(&disk, quiet()).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        write(&engine, tree, &mut random);
        let before = disk.operations();
        let deadline = Instant::now() + Duration::from_secs(60);
        while disk.operations() == before && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_no_bit_is_passed_over(&disk.copy(0), &mut random);
        assert_no_sector_is_passed_over(&disk.copy(0), &mut random);
        // Records that take the mark's place are read as any.
        write(&engine, tree, &mut random);
        let disk = disk.crash();
        drop(engine);
        let engine = open(&disk, quiet()).unwrap();
        assert!(get(&engine.snapshot(), tree, "last").is_some());
        let recovered = disk.copy(0);
        drop(engine);
        assert_no_bit_is_passed_over(&recovered, &mut random);
        assert_no_sector_is_passed_over(&recovered, &mut random);
    });
}

#[test]
fn a_bit_of_a_last_record_without_a_mark_is_turned_back() {
    for_seeds(10, |mut random| {
        let disk = SimDisk::new(random.next());
        let engine = open(&disk, quiet()).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        write(&engine, tree, &mut random);
        let disk = disk.crash();
        drop(engine);
        let (name, at) = place_of_last(&disk);
        let range = at - BYTES_BEFORE..at + LAST.len();
        for _ in 0..40 {
            let rotten = disk.copy(0);
            let bit = (range.start + random.below(range.len())) * 8 + random.below(8);
            rotten.flip_bit(&name, bit as u64);
            let engine = open(&rotten, quiet()).unwrap();
            assert!(get(&engine.snapshot(), tree, "last").is_some(), "bit {bit} of {name}");
            assert_eq!(engine.counters().log_bits_turned_back, 1, "bit {bit} of {name}");
            drop(engine);
            let engine = open(&rotten.crash(), quiet()).unwrap();
            assert!(get(&engine.snapshot(), tree, "last").is_some(), "bit {bit}, opened again");
        }
    });
}
