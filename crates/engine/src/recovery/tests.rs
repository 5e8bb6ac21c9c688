//! Goal: a directory whose creation was cut short is made all the same, what a lost store leaves is
//! never taken for one, and only a salvage goes on without what is missing.

use std::sync::Mutex;

use frond_store::local::{LocalOptions, LocalStore};
use frond_store::memory::MemoryStore;
use frond_store::{ChunkKind, StoreLayer};
use frond_testkit::SimDisk;

use super::*;
use crate::Engine;

/// Readers pass over what is lost, as a salvage has them.
struct Salvaging {
    store: Arc<dyn ChunkStore>,
    lost: Mutex<Vec<String>>,
}

impl Salvaging {
    fn new(store: Arc<dyn ChunkStore>) -> Arc<Layered<Salvaging>> {
        Arc::new(Layered(Salvaging { store, lost: Mutex::default() }))
    }

    fn lost(&self) -> Vec<String> {
        self.lost.lock().expect("no panic while the lock is held").clone()
    }
}

impl StoreLayer for Salvaging {
    fn inner(&self) -> &dyn ChunkStore {
        &*self.store
    }

    fn note_lost(&self, lost: UnreadableRange) -> bool {
        self.lost.lock().expect("no panic while the lock is held").push(lost.why);
        true
    }
}

#[test]
fn each_base_that_can_be_read_stays_its_own_trees() {
    let chunks = [1, 2, 3].map(|number| Chunk::new(ChunkKind::Blob, &[], &[number; 50]));
    let store = Salvaging::new(MemoryStore::new());
    store.put_many(&[chunks[0].clone(), chunks[2].clone()]).expect("memory takes all");
    let hashes = chunks.each_ref().map(Chunk::hash);
    let found = readable(&*store, &hashes).expect("what is missing is passed over");
    let found: Vec<_> = found.iter().map(|found| found.as_ref().map(Chunk::hash)).collect();
    assert_eq!(found, [Some(hashes[0]), None, Some(hashes[2])]);
    assert_eq!(store.lost().len(), 1);
    assert!(readable(&*store.store, &hashes).is_err(), "only where they may be passed over");
}

fn options() -> EngineOptions {
    EngineOptions { fold_threads: 0, ..EngineOptions::default() }
}

/// A directory in which the power failed at the `cut`th operation of its creation, and whether
/// it has a log that no state knows of. `None`: it was complete by then.
fn creation_cut_short(seed: u64, cut: u64) -> Option<(SimDisk, bool)> {
    let disk = SimDisk::new(seed);
    disk.crash_after(cut);
    let engine = Engine::open(&disk.machine(), options());
    if !disk.is_dead() {
        return None;
    }
    drop(engine);
    let disk = disk.crash();
    let store = LocalStore::open(&disk.machine(), LocalOptions::default()).expect("no damage");
    let has_log = disk.contents(&SEGMENT_FIRST.file_name()).is_some();
    let has_state = store.root(ROOT_NAME).expect("the store is whole").is_some();
    Some((disk, has_log && !has_state))
}

#[test]
fn a_creation_that_was_cut_short_is_begun_again() {
    let mut with_log_only = 0;
    for seed in 0..4 {
        for cut in 1.. {
            let Some((disk, has_log_only)) = creation_cut_short(seed, cut) else { break };
            with_log_only += usize::from(has_log_only);
            for _ in 0..2 {
                let engine = Engine::open(&disk.machine(), options()).expect("nothing is lost");
                engine.close().expect("the disk works");
            }
        }
    }
    assert!(with_log_only > 0, "no power cut came between the log and the state");
}

/// A log that has a record, or had one before this one, is what is left of a lost store.
#[test]
fn a_log_with_records_and_no_state_is_damage() {
    let cut_short = (1..).map_while(|cut| creation_cut_short(0, cut));
    let with_log_only = cut_short.filter(|(_, has_log_only)| *has_log_only).last();
    let (disk, _) = with_log_only.expect("a power cut between the log and the state");
    let first = SEGMENT_FIRST.file_name();
    let header = disk.contents(&first).expect("it is there");
    for (name, contents) in
        [(&first, [&header[..], &[0]].concat()), (&SEGMENT_FIRST.next().file_name(), header)]
    {
        let disk = disk.copy(0);
        disk.set_contents(name, &contents);
        let error = Engine::open(&disk.machine(), options()).err().expect("the store is lost");
        assert!(error.to_string().contains("no engine state"), "{error}");
        assert!(disk.contents(&first).is_some() && disk.contents(name).is_some());
    }
}

#[test]
fn only_a_salvage_goes_on_without_the_log() {
    let disk = SimDisk::new(1);
    let engine =
        Engine::open(&disk.machine(), EngineOptions::default()).expect("an empty directory");
    let mut transaction = engine.begin();
    let value = frond_tree::Value::inline("folded");
    transaction.put(TreeId::SYSTEM, Bytes::from("a"), value).expect("fits");
    transaction.commit(Default::default()).expect("there is room");
    engine.checkpoint().expect("there is room");
    engine.close().expect("there is room");
    drop(engine);
    let machine = disk.machine();
    let names = disk.list().expect("the disk works");
    for name in names.iter().filter(|name| SegmentNumber::of_file_name(name).is_some()) {
        disk.remove(name).expect("the disk works");
    }
    let local = LocalStore::open(&machine, LocalOptions::default()).expect("whole packs");
    let options = EngineOptions::default();
    assert!(super::open(&machine, Arc::clone(&local) as Arc<dyn ChunkStore>, options).is_err());
    let store = Salvaging::new(local);
    let shared = super::open(&machine, Arc::clone(&store) as Arc<dyn ChunkStore>, options);
    let shared = shared.expect("it goes on without");
    assert!(store.lost()[0].contains("it is missing"), "{:?}", store.lost());
    let found = shared.snapshot().get(TreeId::SYSTEM, b"a").expect("readable");
    assert_eq!(found.map(|value| value.bytes()), Some(6));
}
