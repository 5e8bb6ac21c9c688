//! Goal: a directory that is being begun is synced late and loses nothing by that; its mark costs
//! no data where it comes back.

use std::sync::Arc;

use frond_store::io::{Disk, Machine};
use frond_store::local::LocalStore;
use frond_store::{ChunkStore, EMPTY_LOG_BYTES_MAX, NewDirectory, StoreError};
use frond_testkit::SimDisk;

use crate::{SMALL, assert_stored, blob, open};

const MARK: &str = "UNSYNCED";

fn open_late(disk: &SimDisk) -> Result<(Arc<LocalStore>, Arc<NewDirectory>), StoreError> {
    let machine = disk.machine();
    let directory = NewDirectory::over(&machine.disk);
    let machine = Machine { disk: Arc::clone(&directory) as Arc<dyn Disk>, ..machine };
    Ok((LocalStore::open(&machine, SMALL)?, directory))
}

fn is_marked(disk: &SimDisk) -> bool {
    disk.contents(MARK).is_some()
}

#[test]
fn one_sync_comes_before_the_end_of_a_creation_and_all_before_what_follows() {
    let disk = SimDisk::new(1);
    disk.fail_sync_after(1);
    let (store, directory) = open_late(&disk).expect("its second sync would fail");
    directory.end_creation();
    assert!(is_marked(&disk));
    let refused = store.put_many(&[blob(b"a")]).and_then(|()| store.sync());
    assert!(refused.is_err(), "the second sync comes before the write");
    disk.fail_sync_after(u64::MAX);
    let refused = store.put_many(&[blob(b"b")]).and_then(|()| store.sync());
    assert!(refused.is_err(), "what the failed sync has saved is unknown for good");
    drop(store);
    let (store, directory) = open_late(&disk).expect("nothing was acknowledged");
    directory.end_creation();
    store.put_many(&[blob(b"c")]).expect("the disk works");
    assert!(!is_marked(&disk), "it has settled");
    store.sync().expect("the disk works");
    drop(store);
    assert_stored(&*open(&disk.crash()).expect("settled"), &[blob(b"c")]);
}

/// At each operation, whether the next process syncs late or not, and at each of its own opening.
#[test]
fn a_power_cut_leaves_a_new_directory_or_all_that_was_acknowledged() {
    let mut unsettled = 0;
    for seed in 0..8 {
        for cut in 0.. {
            let disk = SimDisk::new(seed);
            disk.crash_after(cut);
            let acknowledged = open_late(&disk).and_then(|(store, directory)| {
                directory.end_creation();
                store.put_many(&[blob(b"a")])?;
                store.sync()
            });
            let is_whole = !disk.is_dead();
            let left = disk.crash();
            unsettled += usize::from(is_marked(&left));
            for again in 0..cut % 12 {
                let left = left.copy(seed);
                left.crash_after(again);
                drop(open(&left));
                open(&left.crash()).expect("a new directory, or what was acknowledged");
            }
            let store = match cut % 2 {
                0 => open(&left).expect("a new directory, or what was acknowledged"),
                _ => open_late(&left).expect("a new directory, or what was acknowledged").0,
            };
            if acknowledged.is_ok() {
                assert_stored(&*store, &[blob(b"a")]);
            }
            if is_whole {
                break;
            }
        }
    }
    assert!(unsettled > 20, "the power was hardly cut while a directory was unsettled");
}

/// Files that are copied over those of an hour ago bring the mark of then back.
#[test]
fn a_mark_beside_data_costs_none_of_them() {
    let disk = SimDisk::new(1);
    let (store, directory) = open_late(&disk).expect("an empty directory");
    directory.end_creation();
    let chunk = blob(b"small");
    store.put_many(std::slice::from_ref(&chunk)).expect("the disk works");
    store.sync().expect("the disk works");
    drop(store);
    let record = vec![1; usize::try_from(EMPTY_LOG_BYTES_MAX).expect("few") + 1];
    let evidence =
        [("log-0000000001", &record[..]), ("RESERVE", b""), ("COPIES", &[0; 5000]), ("DEPOT", b"")];
    for (name, contents) in evidence {
        let disk = disk.copy(1);
        disk.set_contents(MARK, b"");
        disk.set_contents(name, contents);
        // What says where a store lies is refused by itself.
        let Ok((store, _)) = open_late(&disk) else {
            assert!(name == "DEPOT" && disk.contents(MARK).is_none());
            continue;
        };
        assert_stored(&*store, std::slice::from_ref(&chunk));
        assert!(!is_marked(&disk), "{name}");
    }
    // Only a directory that nothing was written to since has none.
    disk.set_contents(MARK, b"");
    assert!(open(&disk).expect("a new one").get(chunk.hash()).is_err());
}

/// Others' files stay, and are no reason to sync each by itself.
#[test]
fn files_that_hold_no_data_are_left_alone() {
    let disk = SimDisk::new(1);
    for name in ["set-waits", "SOCKET", "letter.txt", MARK, "log-0000000001"] {
        disk.set_contents(name, b"");
    }
    disk.fail_sync_after(3);
    drop(open_late(&disk).expect("two syncs remove what was left, and one is the mark's"));
    for name in ["set-waits", "SOCKET", "letter.txt", MARK] {
        assert!(disk.contents(name).is_some(), "{name}");
    }
    assert!(disk.contents("log-0000000001").is_none());
}
