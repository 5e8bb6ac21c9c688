//! A full disk, failing writes and failing syncs.

use std::io::ErrorKind;
use std::ops::ControlFlow;

use frond_store::{ChunkStore, Maintenance, StoreError};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};

use crate::{assert_stored, blob, open, pack_bytes, random_chunks};

fn is_full(error: &StoreError) -> bool {
    matches!(error, StoreError::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    for_seeds(100, |mut random| {
        let disk = SimDisk::new(random.next());
        let store = open(&disk).unwrap();
        let mut put = random_chunks(&mut random, 10);
        store.put_many(&put).unwrap();
        store.swap_root("r", None, Some(put[0].hash())).unwrap();
        disk.fill_after(random.below(3000) as u64);
        let mut refused = Vec::new();
        for _ in 0..20 {
            let chunks = random_chunks(&mut random, 4);
            match store.put_many(&chunks).and_then(|()| store.sync()) {
                Ok(()) => put.extend(chunks),
                Err(error) => {
                    assert!(is_full(&error), "{error}");
                    refused.push(chunks);
                }
            }
        }
        assert!(!refused.is_empty());
        assert_stored(&*store, &put);
        assert!(is_full(&store.swap_root("r", Some(put[0].hash()), None).unwrap_err()));
        assert_eq!(store.root("r").unwrap(), Some(put[0].hash()));
        if random.one_in(2) {
            // A full disk can be opened and read.
            drop(store);
            let store = open(&disk).unwrap();
            assert_stored(&*store, &put);
        } else {
            drop(store);
        }
        disk.make_room();
        let store = open(&disk).unwrap();
        refused.iter().for_each(|chunks| store.put_many(chunks).unwrap());
        put.extend(refused.into_iter().flatten());
        store.swap_root("r", Some(put[0].hash()), None).unwrap();
        assert_stored(&*open(&disk.crash()).unwrap(), &put);
    });
}

#[test]
fn the_store_goes_on_after_a_failed_write() {
    for_seeds(200, |mut random| {
        let disk = SimDisk::new(random.next());
        let store = open(&disk).unwrap();
        let mut put = Vec::new();
        disk.fail_write_after(random.below(6) as u64);
        for _ in 0..6 {
            let chunks = random_chunks(&mut random, 5);
            let result = store.put_many(&chunks).and_then(|()| store.sync());
            if result.is_err() {
                assert!(matches!(result, Err(StoreError::Io { .. })));
                store.put_many(&chunks).unwrap();
                store.sync().unwrap();
            }
            put.extend(chunks);
        }
        assert_stored(&*store, &put);
        assert!(store.verify(&mut |_| ()).unwrap().is_empty());
        assert_eq!(store.counters().bytes_stored, pack_bytes(&disk), "nothing torn is left");
        let after = disk.crash();
        let store = open(&after).unwrap();
        assert_stored(&*store, &put);
        assert_eq!(store.counters().bytes_stored, pack_bytes(&after));
    });
}

#[test]
fn a_failed_sync_poisons() {
    // Syncing a new pack takes four syncs: of the pack, of the manifest's two copies, of the
    // directory.
    for failing in 0..4 {
        let disk = SimDisk::new(failing);
        let chunks = random_chunks(&mut Random::new(failing), 5);
        let store = open(&disk).unwrap();
        store.put_many(&chunks).unwrap();
        disk.fail_sync_after(failing);
        let error = store.swap_root("r", None, Some(chunks[0].hash())).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert_eq!(store.root("r").unwrap(), None);
        assert_stored(&*store, &chunks);
        let swap = || store.swap_root("r", None, None);
        let refused =
            [store.put_many(&[blob(b"x")]), store.put_many(&chunks), store.sync(), swap()];
        for result in refused {
            assert!(matches!(result, Err(StoreError::Poisoned { .. })));
        }
        let scrubbed = store.scrub(0, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(scrubbed, Err(StoreError::Poisoned { .. })), "{scrubbed:?}");
        drop(store);
        let store = open(&disk).unwrap();
        store.put_many(&chunks).unwrap();
        let found = store.root("r").unwrap();
        store.swap_root("r", found, Some(chunks[1].hash())).unwrap();
        let store = open(&disk.crash()).unwrap();
        assert_stored(&*store, &chunks);
        assert_eq!(store.root("r").unwrap(), Some(chunks[1].hash()));
    }
}

#[test]
fn a_failed_sync_while_opening_is_an_error_and_the_next_opening_works() {
    for failing in 0..4 {
        let disk = SimDisk::new(failing);
        let chunks = random_chunks(&mut Random::new(failing), 5);
        {
            let store = open(&disk).unwrap();
            store.put_many(&chunks).unwrap();
            store.sync().unwrap();
        }
        disk.fail_sync_after(failing);
        assert!(matches!(open(&disk), Err(StoreError::Io { .. })));
        assert_stored(&*open(&disk).unwrap(), &chunks);
    }
}
