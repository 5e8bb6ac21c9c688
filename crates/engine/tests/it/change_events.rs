//! Events of transactions are read back, each once and in order, or are said to be gone.
//!
//! *Method*: numbered transactions, under options that flush often; readers that begin anywhere and
//! stop anywhere; power cuts at random operations. A reader must get every acknowledged number
//! behind its place, at most the one that was tried besides, and nothing twice.

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use frond_engine::{
    ChangeEvent, ChangeRetention, Changes, ChangesError, Durability, Engine, EngineError,
    EngineOptions, EventContent, LoggedContent, LoggedEvent, RetentionBegins, Sequence,
    Transaction, TreeId,
};
use frond_store::io::Disk;
use frond_store::{Chunk, ChunkKind};
use frond_testkit::machine::machine;
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{SimClock, SimDisk};
use frond_tree::{Content, Value};

use crate::rig::{churning, make_trees, open, quiet};

const MUCH: ChangeRetention =
    ChangeRetention { begins: RetentionBegins::AtOnce, seconds: 3600, bytes: 1 << 30 };

fn with_recording(options: EngineOptions) -> EngineOptions {
    EngineOptions { changes: MUCH, ..options }
}

fn put_recorded(transaction: &mut Transaction, tree: TreeId, key: &str, content: &str) {
    let (key, content) = (Bytes::from(key.to_owned()), Bytes::from(content.to_owned()));
    let value = Value::inline(content.clone());
    transaction.put_changed(tree, key.clone(), value).unwrap();
    let head = Bytes::from("put");
    let content = EventContent::Written { tree, key, content };
    transaction.record_event(ChangeEvent { scope: Bytes::from("scope"), head, content });
}

fn text(event: &LoggedEvent) -> String {
    match &event.content {
        LoggedContent::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        _ => String::new(),
    }
}

/// Commits numbers from `first` on, until one fails; returns the last that was acknowledged.
fn write(engine: &Engine, tree: TreeId, first: u64, count: u64) -> u64 {
    for number in first..first + count {
        let mut transaction = engine.begin();
        // Much alike: the log would get patches.
        let content = format!("{}{number}", "x".repeat(300));
        put_recorded(&mut transaction, tree, "key", &content);
        if transaction.commit(Durability::Synced).is_err() {
            return number - 1;
        }
    }
    first + count - 1
}

/// The numbers of the events up to the end.
fn numbers(changes: &mut Changes, most: usize) -> Result<Vec<u64>, ChangesError> {
    let mut numbers = Vec::new();
    while numbers.len() < most
        && let Some(record) = changes.next_record()?
    {
        let events = record.events.iter();
        numbers.extend(events.map(|it| text(it).trim_matches('x').parse::<u64>().unwrap()));
    }
    Ok(numbers)
}

#[test]
fn every_acknowledged_transaction_is_delivered_once_whatever_a_crash_leaves() {
    for_seeds(60, |mut random| {
        let mut disk = SimDisk::new(random.next());
        let engine = open(&disk, with_recording(churning(20))).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let (mut last, mut place, mut seen) = (0, Sequence(0), Vec::new());
        let read = |engine: &Engine, place: &mut Sequence, seen: &mut Vec<u64>, most| {
            let mut changes = engine.changes(*place);
            seen.extend(numbers(&mut changes, most).unwrap());
            *place = changes.position();
        };
        last = write(&engine, tree, last + 1, 1 + random.below(40) as u64);
        read(&engine, &mut place, &mut seen, random.below(30));
        let mut engine = Some(engine);
        for _ in 0..4 {
            drop(engine.take());
            let opened = open(&disk, with_recording(churning(20))).unwrap();
            if random.one_in(3) {
                opened.flush().unwrap();
            }
            disk.crash_after(random.below(300) as u64);
            last = write(&opened, tree, last + 1, random.below(50) as u64);
            if !disk.is_dead() {
                read(&opened, &mut place, &mut seen, random.below(60));
            }
            drop(opened);
            disk = if random.one_in(4) { disk.kill() } else { disk.crash() };
            let opened = open(&disk, with_recording(churning(20))).unwrap();
            read(&opened, &mut place, &mut seen, usize::MAX);
            // The one that was tried may be there.
            last = last.max(seen.last().copied().unwrap_or(0));
            let all: Vec<u64> = (1..=last).collect();
            assert_eq!(seen, all);
            let mut again = opened.changes(Sequence(0));
            assert_eq!(numbers(&mut again, usize::MAX).unwrap(), all);
            engine = Some(opened);
        }
    });
}

#[test]
fn a_transaction_records_what_it_did_and_not_what_it_undid() {
    let disk = SimDisk::new(3);
    let engine = open(&disk, with_recording(quiet())).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let mut transaction = engine.begin();
    put_recorded(&mut transaction, tree, "a", "first");
    put_recorded(&mut transaction, tree, "a", "second");
    let savepoint = transaction.savepoint();
    put_recorded(&mut transaction, tree, "a", "undone");
    put_recorded(&mut transaction, tree, "b", "undone");
    transaction.rollback_to(savepoint);
    put_recorded(&mut transaction, tree, "c", "third");
    transaction.commit(Durability::Synced).unwrap();
    let mut aborted = engine.begin();
    put_recorded(&mut aborted, tree, "d", "aborted");
    drop(aborted);
    let mut changes = engine.changes(Sequence(0));
    let mut recorded = Vec::new();
    while let Some(record) = changes.next_record().unwrap() {
        recorded.extend(record.events.iter().map(text));
    }
    assert_eq!(recorded, ["first", "second", "third"]);
}

/// Gives the key the value that `chunks`, the first of which is its root, make.
fn put_chunks_recorded(transaction: &mut Transaction, tree: TreeId, chunks: &[Chunk]) {
    let (root, bytes) = (chunks[0].hash(), 9);
    let content = Content::Chunk { hash: root, bytes };
    transaction.put_chunks(chunks);
    transaction.put_changed(tree, Bytes::from("key"), Value { flags: 1, content }).unwrap();
    let (scope, head) = (Bytes::from("scope"), Bytes::from("put"));
    let content = EventContent::Chunks { root, bytes };
    transaction.record_event(ChangeEvent { scope, head, content });
}

#[test]
fn chunked_values_are_read_from_their_own_record() {
    for is_flushed in [false, true] {
        let disk = SimDisk::new(7);
        let engine = open(&disk, with_recording(quiet())).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let shared = Chunk::new(ChunkKind::Blob, &[], &[1; 4000]);
        let versions: Vec<Vec<Chunk>> = (2..6)
            .map(|byte| {
                // Much like the one before: the log would get patches.
                let mut bytes = [7; 4000];
                bytes[9] = byte;
                let names = [shared.hash()];
                vec![Chunk::new(ChunkKind::Blob, &names, &bytes), shared.clone()]
            })
            .collect();
        for chunks in &versions {
            let mut transaction = engine.begin();
            put_chunks_recorded(&mut transaction, tree, chunks);
            transaction.commit(Durability::Synced).unwrap();
            if is_flushed {
                engine.flush().unwrap();
            }
        }
        // The event of a replaced value is nowhere but in the log.
        let mut gone = engine.begin();
        gone.delete(tree, Bytes::from("key")).unwrap();
        gone.commit(Durability::Synced).unwrap();
        let mut changes = engine.changes(Sequence(0));
        let mut recorded = Vec::new();
        while let Some(record) = changes.next_record().unwrap() {
            for event in &record.events {
                let LoggedContent::Chunks { root, bytes: 9 } = event.content else { panic!() };
                let find = |hash| record.chunks.iter().find(|it| it.hash() == hash).unwrap();
                recorded.push(vec![find(root).clone(), find(shared.hash()).clone()]);
            }
        }
        assert_eq!(recorded, versions);
    }
}

#[test]
fn events_are_not_delivered_before_they_are_durable() {
    let disk = SimDisk::new(4);
    let engine = open(&disk, with_recording(quiet())).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let horizon = engine.horizon();
    let mut changes = engine.changes(horizon);
    let mut transaction = engine.begin();
    put_recorded(&mut transaction, tree, "key", "1");
    let sequence = transaction.commit(Durability::Relaxed).unwrap();
    assert_eq!(engine.visible(), sequence);
    assert!(changes.next_record().unwrap().is_none());
    assert!(!engine.await_horizon(horizon, Duration::from_millis(5)));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| engine.await_horizon(horizon, Duration::from_secs(600)));
        write(&engine, tree, 2, 1);
        assert!(waiting.join().unwrap());
    });
    assert_eq!(numbers(&mut changes, usize::MAX).unwrap(), [1, 2]);
}

#[test]
fn expired_events_are_reported_gone_and_never_skipped() {
    let (mut gone, mut read) = (0, 0);
    for_seeds(30, |mut random| {
        let disk = SimDisk::new(random.next());
        let clock = SimClock::new();
        let machine = machine(&disk, &clock, random.next());
        let changes = ChangeRetention { seconds: 100, bytes: 20_000, ..MUCH };
        let options = EngineOptions { changes, ..churning(20) };
        let engine = Engine::open(&machine, options).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let mut last = 0;
        let mut reader = engine.changes(Sequence(0));
        let mut expected = 1;
        for _ in 0..60 {
            last = write(&engine, tree, last + 1, random.below(12) as u64);
            engine.flush().unwrap();
            if random.one_in(4) {
                clock.step(1_000_000 * random.below(60) as i64);
            }
            match numbers(&mut reader, random.below(12)) {
                Ok(seen) => {
                    read += seen.len() as u64;
                    let all: Vec<u64> = (expected..expected + seen.len() as u64).collect();
                    assert_eq!(seen, all);
                    expected += seen.len() as u64;
                }
                Err(ChangesError::Gone { kept_after }) => {
                    gone += 1;
                    reader = engine.changes(kept_after);
                    let Some(first) = numbers(&mut reader, 1).unwrap().first().copied() else {
                        expected = last + 1;
                        continue;
                    };
                    assert!(expected <= first && first <= last, "{expected} {first} {last}");
                    expected = first + 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        let bytes = |name: &String| disk.contents(name).map_or(0, |contents| contents.len());
        let log = disk.list().unwrap();
        let log: usize = log.iter().filter(|name| name.starts_with("log-")).map(bytes).sum();
        assert!(log < 60_000, "{log} bytes of log");
    });
    assert_met("readers that came too late", gone, 10);
    assert_met("changes read", read, 1_000);
}

#[test]
fn forgotten_events_are_on_no_disk() {
    let disk = SimDisk::new(5);
    let engine = open(&disk, with_recording(churning(20))).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    write(&engine, tree, 1, 40);
    let mut lagging = engine.changes(Sequence(0));
    assert_eq!(numbers(&mut lagging, 3).unwrap(), [1, 2, 3]);
    engine.forget_changes().unwrap();
    let names = disk.list().unwrap();
    assert!(!names.iter().any(|name| name.starts_with("spare-")));
    let mut logs = names.iter().filter(|name| name.starts_with("log-"));
    let next = disk.contents(logs.next().expect("the one that comes next")).unwrap();
    assert!(next.len() <= 56 && logs.next().is_none(), "it has its header alone");
    assert!(matches!(lagging.next_record(), Err(ChangesError::Gone { .. })));
    let mut after = engine.changes(engine.horizon());
    write(&engine, tree, 41, 20);
    assert_eq!(numbers(&mut after, usize::MAX).unwrap(), (41..=60).collect::<Vec<_>>());
}

#[test]
fn opening_without_retention_discards_retained_events() {
    let disk = SimDisk::new(6);
    let engine = open(&disk, with_recording(churning(20))).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    write(&engine, tree, 1, 10);
    let place = engine.horizon();
    drop(engine);
    let nothing = EngineOptions { changes: ChangeRetention::default(), ..churning(20) };
    let engine = open(&disk, nothing).unwrap();
    assert!(!engine.records_events());
    assert!(matches!(engine.changes(place).next_record(), Err(ChangesError::Gone { .. })));
    write(&engine, tree, 11, 1);
    drop(engine);
    let engine = open(&disk, with_recording(churning(20))).unwrap();
    assert!(matches!(engine.changes(place).next_record(), Err(ChangesError::Gone { .. })));
    let mut changes = engine.changes(engine.horizon());
    write(&engine, tree, 12, 1);
    assert_eq!(numbers(&mut changes, usize::MAX).unwrap(), [12]);
}

fn on_request(options: EngineOptions) -> EngineOptions {
    let changes = ChangeRetention { begins: RetentionBegins::WhenRequested, seconds: 100, ..MUCH };
    EngineOptions { changes, ..options }
}

#[test]
fn retention_outlives_restarts_until_no_stream_reads() {
    for kills in [false, true] {
        let mut disk = SimDisk::new(8);
        let clock = SimClock::new();
        let open =
            |disk: &SimDisk| Engine::open(&machine(disk, &clock, 9), on_request(quiet())).unwrap();
        let engine = open(&disk);
        let trees = make_trees(&engine, 2).unwrap();
        write(&engine, trees[0], 1, 5);
        assert!(!engine.records_events());
        let mut before = engine.begin();
        put_recorded(&mut before, trees[1], "before", "5");
        assert!(engine.keep_changes().unwrap() && engine.records_events());
        assert!(matches!(before.commit(Durability::Synced), Err(EngineError::Withdrawn)));
        let place = engine.horizon();
        write(&engine, trees[0], 6, 3);
        drop(engine);
        disk = if kills { disk.kill() } else { disk.crash() };
        let engine = open(&disk);
        assert!(engine.records_events());
        write(&engine, trees[0], 9, 2);
        let mut changes = engine.changes(place);
        assert_eq!(numbers(&mut changes, usize::MAX).unwrap(), [6, 7, 8, 9, 10]);
        clock.step(99_000_000);
        engine.flush().unwrap();
        assert!(engine.records_events());
        changes.check().unwrap();
        clock.step(102_000_000);
        write(&engine, trees[0], 11, 1);
        engine.flush().unwrap();
        assert!(!engine.records_events());
        assert!(matches!(changes.next_record(), Err(ChangesError::Gone { .. })));
        write(&engine, trees[0], 12, 1);
        assert!(engine.keep_changes().unwrap());
        assert!(matches!(changes.next_record(), Err(ChangesError::Gone { .. })));
        let mut changes = engine.changes(engine.horizon());
        write(&engine, trees[0], 13, 1);
        assert_eq!(numbers(&mut changes, usize::MAX).unwrap(), [13]);
    }
}

#[test]
fn commits_after_retention_began_are_recorded_whenever_they_started() {
    for_seeds(20, |mut random| {
        let disk = SimDisk::new(random.next());
        let engine = open(&disk, on_request(churning(20))).unwrap();
        let trees = make_trees(&engine, 3).unwrap();
        let (waits, writes) = (random.below(300), 60);
        let (place, written) = thread::scope(|scope| {
            let writers: Vec<_> = (0..3u64)
                .map(|writer| {
                    let (engine, tree) = (&engine, trees[writer as usize]);
                    scope.spawn(move || {
                        let mut written = Vec::new();
                        let mut number = writer * 1000;
                        while written.len() < writes {
                            let mut transaction = engine.begin();
                            thread::yield_now();
                            put_recorded(&mut transaction, tree, "key", &number.to_string());
                            match transaction.commit(Durability::Synced) {
                                Ok(sequence) => written.push((sequence, number)),
                                Err(EngineError::Withdrawn) => continue,
                                Err(error) => panic!("{error}"),
                            }
                            number += 1;
                        }
                        written
                    })
                })
                .collect();
            (0..waits).for_each(|_| thread::yield_now());
            assert!(engine.keep_changes().unwrap());
            let place = engine.horizon();
            let written = writers.into_iter().flat_map(|writer| writer.join().unwrap());
            (place, written.collect::<Vec<_>>())
        });
        let mut behind: Vec<_> = written.into_iter().filter(|(at, _)| place < *at).collect();
        behind.sort_unstable();
        let behind: Vec<u64> = behind.into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers(&mut engine.changes(place), usize::MAX).unwrap(), behind);
    });
}

#[test]
fn a_record_that_is_damaged_is_reported_as_that() {
    let disk = SimDisk::new(7);
    let engine = open(&disk, with_recording(quiet())).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    write(&engine, tree, 1, 10);
    engine.flush().unwrap();
    write(&engine, tree, 11, 1);
    for name in ["log-0000000001", "log-0000000002"] {
        let end = disk.contents(name).unwrap().len() as u64;
        let broken = if name.ends_with('2') { 200 } else { end / 2 };
        disk.flip_bit(name, broken * 8);
        let mut changes = engine.changes(Sequence(0));
        assert!(matches!(numbers(&mut changes, usize::MAX), Err(ChangesError::Store(_))));
        disk.flip_bit(name, broken * 8);
        let mut changes = engine.changes(Sequence(0));
        assert_eq!(numbers(&mut changes, usize::MAX).unwrap(), (1..=11).collect::<Vec<_>>());
    }
}
