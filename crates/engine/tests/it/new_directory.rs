//! Goal: an engine in an empty directory opens after one sync, and its first write is as durable as
//! any other.

use frond_engine::{Durability, Engine, EngineError, TreeId};
use frond_testkit::SimDisk;

use crate::rig::{get, open, put, quiet};

const MARK: &str = "UNSYNCED";

fn write(engine: &Engine) -> Result<(), EngineError> {
    let mut transaction = engine.begin();
    put(&mut transaction, TreeId::SYSTEM, "a", "first");
    transaction.commit(Durability::Synced).map(drop)
}

#[test]
fn one_sync_comes_before_an_empty_directory_is_open() {
    let disk = SimDisk::new(1);
    disk.fail_sync_after(1);
    let engine = open(&disk, quiet()).expect("its second sync would fail");
    assert!(write(&engine).is_err(), "the second sync comes before the write");
    drop(engine);
    disk.fail_sync_after(u64::MAX);
    let engine = open(&disk, quiet()).expect("begun anew");
    write(&engine).expect("the disk works");
    assert!(disk.contents(MARK).is_none());
}

/// The power fails, or the process is killed, at each operation of the opening and the first write.
#[test]
fn a_first_start_that_is_cut_short_is_begun_again() {
    let mut unsettled = 0;
    for (seed, is_killed) in (0..4).flat_map(|seed| [(seed, false), (seed, true)]) {
        for cut in 0.. {
            let disk = SimDisk::new(seed);
            disk.crash_after(cut);
            let acknowledged = open(&disk, quiet()).and_then(|engine| write(&engine));
            let is_whole = !disk.is_dead();
            let left = if is_killed { disk.kill() } else { disk.crash() };
            unsettled += usize::from(left.contents(MARK).is_some());
            let engine = open(&left, quiet()).expect("a new directory, or what was acknowledged");
            let found = get(&engine.snapshot(), TreeId::SYSTEM, "a");
            match acknowledged {
                Ok(()) => assert_eq!(found.as_deref(), Some("first"), "{cut}"),
                Err(_) => assert!(found.is_none_or(|found| found == "first")),
            }
            engine.close().expect("the disk works");
            assert!(left.contents(MARK).is_none(), "a directory that was closed is whole");
            if is_whole {
                break;
            }
        }
    }
    assert!(unsettled > 20, "hardly any first start was cut short while it was unsettled");
}
