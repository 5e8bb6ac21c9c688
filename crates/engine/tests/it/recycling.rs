//! Files of old log segments take new ones: what is left in them is never read, whatever a crash
//! tears.
//!
//! *Method*: transactions under options that flush often, so that each segment is written into a
//! file that held others. The power fails at a random operation; what the opening finds is every
//! acknowledged transaction, at most the one that was tried besides, and nothing older.

use frond_engine::{Durability, Engine, EngineOptions, ReclaimOptions, TreeId};
use frond_store::io::Disk;
use frond_testkit::SimDisk;
use frond_testkit::random::for_seeds;

use crate::rig::{churning, get, make_trees, open, put};

const KEY: &str = "number";

/// Commits the numbers from `first` on until it fails or `count` are written. Returns the last that
/// was acknowledged.
fn write(engine: &Engine, tree: TreeId, first: u64, count: u64) -> u64 {
    for number in first..first + count {
        let mut transaction = engine.begin();
        put(&mut transaction, tree, KEY, &number.to_string());
        // Records of one size lie at the same places in each segment.
        put(&mut transaction, tree, "content", &"x".repeat(400));
        if transaction.commit(Durability::Synced).is_err() {
            return number - 1;
        }
    }
    first + count - 1
}

fn found(engine: &Engine, tree: TreeId) -> u64 {
    get(&engine.snapshot(), tree, KEY).map_or(0, |number| number.parse().unwrap())
}

#[test]
fn leftovers_in_a_recycled_file_are_not_read() {
    for_seeds(60, |mut random| {
        let mut disk = SimDisk::new(random.next());
        let engine = open(&disk, churning(20)).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let mut last = write(&engine, tree, 1, 40);
        let recycled = |disk: &SimDisk| {
            let names = disk.list().unwrap();
            names.iter().filter(|name| name.starts_with("spare-")).count()
        };
        engine.flush().unwrap();
        assert!(recycled(&disk) > 0, "segments that ended are kept for others");
        let options = ReclaimOptions { thorough: true, ..ReclaimOptions::default() };
        engine.reclaim(options).unwrap();
        assert_eq!(recycled(&disk), 0, "a collection that gives all space back");
        last = write(&engine, tree, last + 1, 40);
        drop(engine);
        assert_eq!(recycled(&disk), 0, "a closing leaves none");
        for _ in 0..3 {
            let engine = open(&disk, churning(20)).unwrap();
            disk.crash_after(random.below(300) as u64);
            let acknowledged = write(&engine, tree, last + 1, 60);
            drop(engine);
            disk = if random.one_in(4) { disk.kill() } else { disk.crash() };
            let engine = open(&disk, churning(20)).unwrap();
            assert_eq!(recycled(&disk), 0, "an opening removes what it finds");
            let found = found(&engine, tree);
            assert!(acknowledged <= found && found <= acknowledged + 1, "{acknowledged}, {found}");
            engine.check().unwrap();
            last = found;
        }
    });
}

/// A failure behind a publication is reported, and the work is done by the next flush.
#[test]
fn a_segment_that_could_not_be_given_up_is_given_up_later() {
    let mut went_on = 0;
    for changes in 0..12 {
        let disk = SimDisk::new(changes);
        let engine = open(&disk, churning(20)).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        write(&engine, tree, 1, 2);
        disk.fail_name_change_after(changes);
        // Where the manifest or a pack got no name the engine is closed, or has its memtables
        // still.
        if engine.flush().is_ok() || engine.flush().is_err() {
            continue;
        }
        let names = disk.list().unwrap();
        let segments = names.iter().filter(|name| name.starts_with("log-")).count();
        assert_eq!(segments, 1, "{names:?}");
        went_on += 1;
        write(&engine, tree, 3, 2);
        engine.close().unwrap();
        assert_eq!(found(&open(&disk.crash(), churning(20)).unwrap(), tree), 4);
    }
    assert!(went_on > 0);
}

/// An opening reads the log in windows of a megabyte, and cuts off what a file has beyond its
/// records: whatever both lengths are.
#[test]
fn logs_of_several_windows_are_read_after_a_kill() {
    for_seeds(12, |mut random| {
        let disk = SimDisk::new(random.next());
        let engine = open(&disk, EngineOptions::default()).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let count = 10 + random.below(30) as u64;
        for number in 1..=count {
            let mut transaction = engine.begin();
            put(&mut transaction, tree, KEY, &number.to_string());
            put(&mut transaction, tree, "content", &"x".repeat(60_000 + random.below(60_000)));
            transaction.commit(Durability::Synced).unwrap();
        }
        drop(engine);
        let engine = open(&disk.kill(), EngineOptions::default()).unwrap();
        assert_eq!(found(&engine, tree), count);
    });
}
