//! Goal: a transaction reads queued commits correctly, and such reads count for nothing once a
//! commit is refused. Method: the moment between lining up and the write is made to last, by taking
//! the writer from the queue. (Threads, and disks that fail at any moment: `tests/it/hot_keys.rs`.)

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use frond_testkit::SimDisk;
use frond_tree::{Bounds, Direction, Value};

use super::super::Payloads;
use super::super::lead::GROUPS_LED_MAX;
use super::*;
use crate::engine::Engine;
use crate::ids::{Sequence, TreeId};
use crate::log::record::Record;
use crate::log::writer::Writer;
use crate::options::EngineOptions;
use crate::overlay::pending::NewChunks;
use crate::queue::conflicts::ConflictSet;
use crate::slow_commits::Stopwatch;
use crate::transaction::held_locks::LockMode;
use crate::transaction::{Durability, Transaction};

const TREE: TreeId = TreeId::SYSTEM;
const LARGE: usize = 60_000;

/// An engine in which something is durable, and the writer that others lack meanwhile.
fn open(disk: &SimDisk) -> (Engine, Writer) {
    let options = EngineOptions { relaxed_sync_millis: 3_600_000, ..EngineOptions::default() };
    let engine = Engine::open(&disk.machine(), options).expect("the disk opens");
    put(&engine, "first", 1).expect("there is room");
    let writer = engine.shared().queue().writer.take().expect("no thread leads");
    (engine, writer)
}

fn put(engine: &Engine, key: &'static str, bytes: usize) -> Result<Sequence, EngineError> {
    let mut transaction = engine.begin();
    write(&mut transaction, key, bytes)?;
    transaction.commit(Durability::Synced)
}

fn write(
    transaction: &mut Transaction,
    key: &'static str,
    bytes: usize,
) -> Result<(), EngineError> {
    transaction.put(TREE, Bytes::from_static(key.as_bytes()), Value::inline("x".repeat(bytes)))
}

fn has(transaction: &Transaction, key: &str) -> Result<bool, EngineError> {
    transaction.get(TREE, key.as_bytes()).map(|found| found.is_some())
}

fn is_visible(engine: &Engine, key: &str) -> bool {
    engine.snapshot().get(TREE, key.as_bytes()).expect("readable").is_some()
}

fn await_members(engine: &Engine, count: usize) {
    while engine.shared().queue().members.len() < count {
        thread::yield_now();
    }
}

fn lead(engine: &Engine, writer: Writer) {
    engine.shared().lead(writer, (Durability::Synced, GROUPS_LED_MAX), &mut Stopwatch::start());
}

/// Adds one to a number, in as many attempts as it takes.
fn increment(engine: &Engine) -> Result<u64, EngineError> {
    let mut transaction = engine.begin_ahead();
    loop {
        let found = transaction.get(TREE, b"number")?;
        let before = found.map_or(0, |value| value.bytes());
        let after = Value::inline("x".repeat(before as usize + 1));
        match transaction.put(TREE, Bytes::from_static(b"number"), after) {
            Ok(()) => return transaction.commit(Durability::Synced).map(|_| before + 1),
            Err(EngineError::Conflict { .. }) => {
                if let Some(blocked) = transaction.blocked() {
                    while !blocked.wait(Duration::from_secs(1)) {}
                    assert!(transaction.unblock(), "none waits for two keys");
                }
                transaction.restart_ahead();
            }
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn all_that_change_one_key_share_one_sync() {
    const COUNT: usize = 8;
    let (engine, writer) = open(&SimDisk::new(1));
    let syncs = engine.counters().log_syncs;
    let mut sequences: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..COUNT).map(|_| scope.spawn(|| increment(&engine).expect("a commit"))).collect();
        await_members(&engine, COUNT);
        assert!(!is_visible(&engine, "number"), "none is durable");
        lead(&engine, writer);
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    sequences.sort_unstable();
    assert_eq!(sequences, (1..=COUNT as u64).collect::<Vec<_>>(), "each saw the one before it");
    assert_eq!(engine.counters().log_syncs - syncs, 1);
    engine.check().expect("every invariant holds");
}

#[test]
fn a_read_waits_for_queued_entries_to_reach_the_memtable() {
    let (engine, writer) = open(&SimDisk::new(1));
    let shared = engine.shared();
    let entry = (Bytes::from_static(b"late"), Some(Value::inline("x")));
    let record = Record { writes: vec![(TREE, vec![entry])], ..Record::default() };
    let conflict_set = ConflictSet::new(shared.conflict_seed, &record, Vec::new(), Vec::new());
    let payloads = Payloads::of(&record, NewChunks::default(), &shared.recycler);
    let member = {
        let mut queue = shared.queue();
        let sequence = Sequence(queue.last.0 + 1);
        let place = (sequence, Durability::Synced);
        shared.enqueue(&mut queue, &record, &conflict_set, payloads, place)
    };
    let member = member.expect("it isn't durable");
    assert!(!member.insertion.is_done());
    let ahead = engine.begin_ahead();
    assert!(has(&ahead, "late").expect("readable"));
    assert!(!is_visible(&engine, "late"));
    lead(&engine, writer);
    ahead.end().expect("it is durable");
    assert!(is_visible(&engine, "late"));
}

#[test]
fn ending_without_a_commit_waits_for_the_queued_commits_that_were_read() {
    for commits in [false, true] {
        let (engine, writer) = open(&SimDisk::new(1));
        thread::scope(|scope| {
            let one = scope.spawn(|| put(&engine, "one", 1));
            await_members(&engine, 1);
            let reader = scope.spawn(|| {
                let reader = engine.begin_ahead();
                let found = has(&reader, "one").expect("readable");
                let ended = match commits {
                    true => reader.commit(Durability::Relaxed).map(drop),
                    false => reader.end(),
                };
                (found, ended, is_visible(&engine, "one"))
            });
            while engine.shared().queue().watchers == 0 {
                assert!(!reader.is_finished(), "it was told of what isn't durable");
                thread::yield_now();
            }
            lead(&engine, writer);
            let (found, ended, is_visible) = reader.join().expect("no panic");
            assert!(found && is_visible && ended.is_ok());
            one.join().expect("no panic").expect("durable");
        });
    }
}

#[test]
fn no_read_passes_on_a_refused_commit() {
    let disk = SimDisk::new(1);
    let (engine, writer) = open(&disk);
    thread::scope(|scope| {
        let one = scope.spawn(|| put(&engine, "one", LARGE));
        await_members(&engine, 1);
        let (reader, mut committer, ender) =
            (engine.begin_ahead(), engine.begin_ahead(), engine.begin_ahead());
        let follower = scope.spawn(|| {
            let mut follower = engine.begin_ahead();
            assert!(has(&follower, "one")?);
            write(&mut follower, "two", 1)?;
            follower.commit(Durability::Synced)
        });
        await_members(&engine, 2);
        let both = engine.begin_ahead();
        for ahead in [&reader, &committer, &ender, &both] {
            assert!(has(ahead, "one").expect("readable"));
        }
        assert!(has(&both, "two").expect("readable") && !has(&reader, "two").expect("readable"));
        let mut cursor = reader.range(TREE, Bounds::all(), Direction::Ascending).expect("readable");
        assert!(cursor.step().expect("readable"));
        write(&mut committer, "three", 1).expect("staged");
        disk.fill_after(20_000);
        lead(&engine, writer);
        for refused in [one, follower] {
            let refused = refused.join().expect("no panic");
            assert!(refused.as_ref().is_err_and(EngineError::is_full), "{refused:?}");
        }
        let withdrawn = |error: &EngineError| matches!(error, EngineError::Withdrawn);
        assert!(cursor.step().is_err_and(|error| withdrawn(&error)));
        assert!(has(&reader, "one").is_err_and(|error| withdrawn(&error)));
        assert!(has(&both, "first").is_err_and(|error| withdrawn(&error)));
        assert!(reader.count(TREE).is_err_and(|error| withdrawn(&error)));
        assert!(ender.end().is_err_and(|error| withdrawn(&error)));
        let committed = committer.commit(Durability::Synced);
        assert!(committed.is_err_and(|error| withdrawn(&error)));
        assert!(both.commit(Durability::Synced).is_err_and(|error| withdrawn(&error)));
    });
    disk.make_room();
    assert_eq!(increment(&engine).expect("there is room"), 1);
    let after = engine.begin_ahead();
    for (key, is_there) in [("first", true), ("one", false), ("two", false), ("three", false)] {
        assert_eq!(has(&after, key).expect("readable"), is_there, "{key}");
    }
    engine.check().expect("every invariant holds");
}

/// A transaction of several statements waits for a key of another's, whose commit has its place in
/// the log then; neither is reported to it.
fn held_up<'e>(
    engine: &'e Engine,
    scope: &'e thread::Scope<'e, '_>,
    bytes: usize,
) -> (Transaction, thread::ScopedJoinHandle<'e, Result<Sequence, EngineError>>) {
    let mut one = engine.begin_as(LockMode::Interactive);
    let mut two = engine.begin_as(LockMode::Interactive);
    assert!(has(&two, "first").expect("readable"));
    write(&mut one, "one", bytes).expect("no other has it");
    let statement = two.begin_statement();
    assert!(!has(&two, "one").expect("readable"));
    assert!(matches!(write(&mut two, "one", 1), Err(EngineError::Conflict { .. })));
    two.undo_statement(statement);
    let wait = two.blocked().expect("the other has it");
    let one = scope.spawn(move || one.commit(Durability::Synced));
    while !wait.wait(Duration::from_secs(1)) {}
    assert!(two.unblock() && two.is_stale_among_queued() && !two.is_ahead());
    (two, one)
}

#[test]
fn a_statement_is_foreseen_where_it_was_and_runs_again_ahead() {
    let (engine, writer) = open(&SimDisk::new(1));
    let syncs = engine.counters().log_syncs;
    thread::scope(|scope| {
        let (mut two, one) = held_up(&engine, scope, 1);
        let run = |two: &mut Transaction| {
            let found = has(two, "one").expect("readable");
            write(two, "one", 2).map(|()| found)
        };
        assert!(matches!(two.dry_run(run), Ok(false)));
        assert!(!two.has_written(TREE, b"one"), "it is undone");
        let statement = two.begin_statement();
        assert!(matches!(run(&mut two), Err(EngineError::Conflict { .. })), "it is stale again");
        two.undo_statement(statement);
        assert!(two.refresh_ahead().expect("what it has read is unchanged"));
        assert!(two.is_ahead() && matches!(run(&mut two), Ok(true)));
        let two = scope.spawn(move || {
            two.await_shown().expect("it is durable by then");
            assert!(!two.is_ahead());
            two.commit(Durability::Synced)
        });
        while engine.shared().queue().watchers == 0 {
            assert!(!two.is_finished(), "it was told of what isn't durable");
            thread::yield_now();
        }
        lead(&engine, writer);
        one.join().expect("no panic").expect("durable");
        two.join().expect("no panic").expect("durable");
    });
    assert_eq!(engine.counters().log_syncs - syncs, 2);
    engine.check().expect("every invariant holds");
}

/// A key that another holds isn't worth a wait for what is undone.
#[test]
fn a_dry_run_leaves_no_wait_behind() {
    let engine = Engine::open(&SimDisk::new(1).machine(), EngineOptions::default()).expect("opens");
    let mut one = engine.begin_as(LockMode::Interactive);
    let mut two = engine.begin_as(LockMode::Interactive);
    write(&mut one, "one", 1).expect("no other has it");
    let foreseen = two.dry_run(|two| write(two, "one", 2));
    assert!(matches!(foreseen, Err(EngineError::Conflict { .. })));
    assert!(two.blocked().is_none());
    write(&mut two, "two", 2).expect("it goes on");
    two.commit(Durability::Synced).expect("nothing is in its way");
}

#[test]
fn a_transaction_that_saw_what_is_refused_neither_goes_on_nor_commits() {
    for moves in [false, true] {
        let disk = SimDisk::new(1);
        let (engine, writer) = open(&disk);
        thread::scope(|scope| {
            let (mut two, one) = held_up(&engine, scope, LARGE);
            assert!(two.refresh_ahead().expect("what it has read is unchanged"));
            assert!(has(&two, "one").expect("it is in line"));
            write(&mut two, "one", 2).expect("it has the key");
            disk.fill_after(20_000);
            lead(&engine, writer);
            assert!(one.join().expect("no panic").is_err_and(|error| error.is_full()));
            disk.make_room();
            let withdrawn = |error: EngineError| matches!(error, EngineError::Withdrawn);
            assert!(two.await_shown().is_err_and(withdrawn));
            if moves {
                // A newer snapshot doesn't know what the older one saw.
                assert!(two.refresh_ahead().is_err_and(withdrawn));
            }
            assert!(two.commit(Durability::Synced).is_err_and(withdrawn));
        });
        assert!(!is_visible(&engine, "one"));
    }
}

#[test]
fn writes_before_a_refusal_still_count() {
    let disk = SimDisk::new(1);
    let options = EngineOptions {
        relaxed_sync_millis: 3_600_000,
        memtable_bytes_max: 20_000,
        ..EngineOptions::default()
    };
    let engine = Engine::open(&disk.machine(), options).expect("the disk opens");
    put(&engine, "first", 1).expect("there is room");
    let writer = engine.shared().queue().writer.take().expect("no thread leads");
    thread::scope(|scope| {
        // Ends its segment; there is no room for the next.
        let one = scope.spawn(|| put(&engine, "one", 21_000));
        await_members(&engine, 1);
        let before = engine.begin_ahead();
        let two = scope.spawn(|| put(&engine, "two", LARGE));
        await_members(&engine, 2);
        let behind = engine.begin_ahead();
        disk.fill_after(45_000);
        lead(&engine, writer);
        one.join().expect("no panic").expect("there was room");
        let two = two.join().expect("no panic");
        assert!(two.as_ref().is_err_and(EngineError::is_full), "{two:?}");
        assert!(has(&before, "one").expect("it is durable"));
        before.end().expect("it is durable");
        assert!(matches!(behind.end(), Err(EngineError::Withdrawn)));
    });
}

#[test]
fn where_a_sync_fails_nothing_that_was_read_queued_is_acknowledged() {
    let disk = SimDisk::new(1);
    let (engine, writer) = open(&disk);
    thread::scope(|scope| {
        let one = scope.spawn(|| put(&engine, "one", 1));
        await_members(&engine, 1);
        let (ender, mut committer) = (engine.begin_ahead(), engine.begin_ahead());
        assert!(has(&ender, "one").expect("readable"));
        write(&mut committer, "two", 1).expect("staged");
        disk.fail_sync_after(0);
        lead(&engine, writer);
        assert!(matches!(one.join().expect("no panic"), Err(EngineError::Unknown(_))));
        assert!(matches!(ender.end(), Err(EngineError::Closed(_))));
        assert!(matches!(committer.commit(Durability::Synced), Err(EngineError::Closed(_))));
    });
    let late = engine.begin_ahead();
    assert!(!has(&late, "one").expect("readable"), "it never becomes visible");
    late.end().expect("what it saw is durable");
}
