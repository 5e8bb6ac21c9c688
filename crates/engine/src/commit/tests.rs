//! Goal: outcomes that a leader reports are those that the next opening finds, also where the disk
//! is full. Method: the moment between taking the writer and leading, in which others are queued,
//! is made to last, by taking the writer from the queue.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use frond_store::StoreError;
use frond_testkit::SimDisk;
use frond_tree::{Tree, TreeFormat, Value};

use super::*;
use crate::engine::Engine;
use crate::ids::TreeId;
use crate::options::EngineOptions;
use crate::overlay::pending::NewChunks;
use crate::queue::Refusal;
use crate::transaction::PendingCommit;

const SMALL: usize = 100;
const LARGE: usize = 60_000;

fn open(disk: &SimDisk, memtable_bytes_max: u64) -> Engine {
    let options = EngineOptions {
        relaxed_sync_millis: 3_600_000,
        memtable_bytes_max,
        ..EngineOptions::default()
    };
    Engine::open(&disk.machine(), options).expect("the disk opens")
}

fn commit(
    engine: &Engine,
    name: &'static str,
    bytes: usize,
    durability: Durability,
) -> Result<Sequence, EngineError> {
    let mut transaction = engine.begin();
    let value = Value::inline(name.repeat(bytes));
    transaction.put(TreeId::SYSTEM, Bytes::from_static(name.as_bytes()), value).expect("fits");
    transaction.commit(durability)
}

fn has(engine: &Engine, name: &str) -> bool {
    engine.snapshot().get(TreeId::SYSTEM, name.as_bytes()).expect("readable").is_some()
}

/// Lets synced transactions be queued, one after the other; a leader for relaxed ones writes them
/// when `free` bytes are left on the disk. Returns what became of each.
fn lead_relaxed(
    disk: &SimDisk,
    engine: &Engine,
    transactions: &[(&'static str, usize)],
    free: u64,
) -> Vec<Result<Sequence, EngineError>> {
    let shared = engine.shared();
    let writer = shared.queue().writer.take().expect("no thread leads");
    thread::scope(|scope| {
        let mut waiting = Vec::new();
        for (position, (name, bytes)) in transactions.iter().enumerate() {
            waiting.push(scope.spawn(|| commit(engine, name, *bytes, Durability::Synced)));
            while shared.queue().members.len() <= position {
                thread::yield_now();
            }
        }
        disk.fill_after(free);
        shared.lead(writer, (Durability::Relaxed, GROUPS_LED_MAX), &mut Stopwatch::start());
        waiting.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn is_refused(result: &Result<Sequence, EngineError>) -> bool {
    matches!(result, Err(EngineError::Store(error)) if error.is_full())
}

#[test]
fn refused_commits_do_not_come_back_after_a_crash() {
    for seed in 0..64 {
        let disk = SimDisk::new(seed);
        let engine = open(&disk, 64 << 20);
        commit(&engine, "first", SMALL, Durability::Synced).expect("there is room");
        // The first fits into what is left, the second doesn't: one write, which is cut back.
        let outcomes = lead_relaxed(&disk, &engine, &[("one", SMALL), ("two", LARGE)], 20_000);
        assert!(outcomes.iter().all(is_refused), "seed {seed}: {outcomes:?}");
        let restarted = open(&disk.crash(), 64 << 20);
        drop(engine);
        assert!(has(&restarted, "first"), "seed {seed}");
        assert!(!has(&restarted, "one") && !has(&restarted, "two"), "seed {seed}");
    }
}

#[test]
fn visible_commits_after_a_refusal_between_segments_survive_a_crash() {
    for seed in 0..64 {
        let disk = SimDisk::new(seed);
        let engine = open(&disk, 20_000);
        commit(&engine, "first", SMALL, Durability::Synced).expect("there is room");
        commit(&engine, "relaxed", SMALL, Durability::Relaxed).expect("there is room");
        // The first ends its segment; the next one's can't be made, or not be written.
        let outcomes =
            lead_relaxed(&disk, &engine, &[("one", 8_000), ("two", LARGE)], 30_000 + seed);
        assert!(is_refused(&outcomes[1]), "seed {seed}: {outcomes:?}");
        let visible = ["first", "relaxed", "one"].map(|name| has(&engine, name));
        assert_eq!(visible, [true; 3], "seed {seed}: {outcomes:?}");
        assert!(outcomes[0].is_ok(), "seed {seed}: {outcomes:?}");
        let restarted = open(&disk.crash(), 20_000);
        drop(engine);
        assert!(has(&restarted, "first") && has(&restarted, "one"), "seed {seed}");
        assert!(!has(&restarted, "two"), "seed {seed}");
    }
}

#[test]
fn refused_commits_block_no_later_ones() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, 64 << 20);
    commit(&engine, "first", SMALL, Durability::Synced).expect("there is room");
    disk.fill_after(1_000);
    assert!(is_refused(&commit(&engine, "two", LARGE, Durability::Synced)));
    let queue = engine.shared().queue();
    assert_eq!(queue.visible, queue.last);
    drop(queue);
    disk.make_room();
    commit(&engine, "two", SMALL, Durability::Synced).expect("there is room again");
}

/// What has no file descriptor is refused, not unknown: the next segment of the log isn't made, nor
/// the files of a flush.
#[test]
fn without_file_descriptors_writes_are_refused_for_as_long() {
    for seed in 0..16 {
        let disk = SimDisk::new(seed);
        let engine = open(&disk, 20_000);
        commit(&engine, "first", SMALL, Durability::Synced).expect("it may open files");
        disk.limit_open_files_to(Some(0));
        let mut outcomes = (0..40).map(|_| commit(&engine, "one", 3_000, Durability::Synced));
        let refused = outcomes.find(Result::is_err).expect("a segment is full");
        assert!(is_refused(&refused), "seed {seed}: {refused:?}");
        assert!(is_refused(&commit(&engine, "two", SMALL, Durability::Synced)), "seed {seed}");
        disk.limit_open_files_to(None);
        commit(&engine, "three", SMALL, Durability::Synced).expect("it may open files again");
        engine.flush().expect("it may open files again");
        let restarted = open(&disk.crash(), 20_000);
        drop(engine);
        let kept = ["first", "one", "two", "three"].map(|name| has(&restarted, name));
        assert_eq!(kept, [true, true, false, true], "seed {seed}");
    }
}

/// A synced transaction was written by one relaxed leader, and its own thread hasn't come to sync
/// it; the disk refuses what the next relaxed leader writes, in the same segment or in one behind.
#[test]
fn a_refused_relaxed_leader_shows_nothing_that_a_crash_takes() {
    for seed in 0..64 {
        let disk = SimDisk::new(seed);
        let engine = open(&disk, if seed % 2 == 0 { 64 << 20 } else { 20_000 });
        commit(&engine, "first", SMALL, Durability::Synced).expect("there is room");
        let shared = engine.shared();
        let mut writer = shared.queue().writer.take().expect("no thread leads");
        let watch = &mut Stopwatch::start();
        let await_member = || {
            while shared.queue().members.is_empty() {
                thread::yield_now();
            }
        };
        let restarted = thread::scope(|scope| {
            let one = scope.spawn(|| commit(&engine, "one", 8_000, Durability::Synced));
            await_member();
            let (queue, one_group, _) =
                shared.lead_one(shared.queue(), &mut writer, Durability::Relaxed, watch);
            drop(queue);
            assert!(!has(&engine, "one"), "seed {seed}: it isn't durable");
            let two = scope.spawn(|| commit(&engine, "two", LARGE, Durability::Synced));
            await_member();
            disk.fill_after(1_000);
            let (mut queue, two_group, outcome) =
                shared.lead_one(shared.queue(), &mut writer, Durability::Relaxed, watch);
            let restarted = disk.crash();
            assert!(has(&engine, "one"), "seed {seed}: it was written, and all else refused");
            queue.writer = Some(writer);
            shared.hand_over(queue, &one_group, outcome);
            two_group.notify(outcome);
            one.join().expect("no panic").expect("it is durable");
            assert!(is_refused(&two.join().expect("no panic")), "seed {seed}");
            restarted
        });
        drop(engine);
        let restarted = open(&restarted, 64 << 20);
        assert!(has(&restarted, "first") && has(&restarted, "one"), "seed {seed}");
        assert!(!has(&restarted, "two"), "seed {seed}");
    }
}

/// Their records that it wrote are there, not synced: the members get their answers once they are.
#[test]
fn a_relaxed_leader_ends_no_wait_for_a_sync() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, 64 << 20);
    commit(&engine, "first", SMALL, Durability::Synced).expect("there is room");
    let shared = engine.shared();
    let mut writer = shared.queue().writer.take().expect("no thread leads");
    thread::scope(|scope| {
        let one = scope.spawn(|| commit(&engine, "one", SMALL, Durability::Synced));
        while shared.queue().members.is_empty() {
            thread::yield_now();
        }
        let watch = &mut Stopwatch::start();
        let (mut queue, group, outcome) =
            shared.lead_one(shared.queue(), &mut writer, Durability::Relaxed, watch);
        assert!(outcome == Outcome::Recheck && queue.durable < queue.written);
        assert!(queue.visible < queue.written);
        queue.writer = Some(writer);
        shared.hand_over(queue, &group, outcome);
        one.join().expect("no panic").expect("its own thread syncs it");
    });
    let restarted = open(&disk.crash(), 64 << 20);
    assert!(has(&restarted, "first") && has(&restarted, "one"));
}

/// A transaction that was queued behind what is refused inserts its entries late: they are waited
/// for, since what comes after a taking back would stay.
#[test]
fn late_inserts_are_taken_back_too() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, 64 << 20);
    let shared = engine.shared();
    let late = (Bytes::from_static(b"late"), Some(Value::inline("late")));
    let record = Record { writes: vec![(TreeId::SYSTEM, vec![late])], ..Record::default() };
    let conflict_set = ConflictSet::new(shared.conflict_seed, &record, Vec::new(), Vec::new());
    let payloads = Payloads::of(&record, NewChunks::default(), &shared.recycler);
    let mut queue = shared.queue();
    let sequence = queue.last.following(1).expect("there are Sequences");
    let place = (sequence, Durability::Synced);
    let member = shared.enqueue(&mut queue, &record, &conflict_set, payloads, place);
    let Member { insertion, group } = member.expect("it waits for its group");
    let (group, insertion) = (&group, &insertion);
    let (done, is_done) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            // Nothing shows that the refusal waits: it has had the time to.
            let _ = is_done.recv_timeout(Duration::from_millis(200));
            shared.insert(group, insertion);
        });
        let full = StoreError::io("the log", std::io::ErrorKind::StorageFull.into());
        shared.refuse(&mut queue, Vec::new(), 0, Refusal::new(&full));
        shared.pass_refused(&mut queue);
        drop(queue);
        // It may have gone on by now.
        let _ = done.send(());
    });
    assert!(!has(&engine, "late"));
}

#[test]
fn a_base_that_was_refused_leaves_the_one_before() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, 64 << 20);
    let tree = engine.reserve_tree_id();
    let put_base = |durability, bytes: usize| {
        let mut transaction = engine.begin();
        let base = Tree::empty(&**engine.store(), TreeFormat::new(1)).expect("there is room");
        transaction.set_base(tree, base).expect("a base");
        let value = Value::inline(vec![7; bytes]);
        transaction.put(tree, Bytes::from(bytes.to_string()), value).expect("fits");
        transaction.commit(durability)
    };
    put_base(Durability::Synced, SMALL).expect("there is room");
    disk.fill_after(1_000);
    assert!(is_refused(&put_base(Durability::Synced, LARGE)));
    let check = |engine: &Engine| {
        let snapshot = engine.snapshot();
        let has = |bytes: usize| {
            snapshot.get(tree, bytes.to_string().as_bytes()).expect("readable").is_some()
        };
        assert!(has(SMALL) && !has(LARGE));
    };
    check(&engine);
    disk.make_room();
    engine.checkpoint().expect("there is room again");
    check(&engine);
    let restarted = open(&disk.crash(), 64 << 20);
    drop(engine);
    check(&restarted);
}

/// A transaction that requires one which a full disk refused is refused with it, though there is
/// room by then; a transaction that requires one which became durable is not.
#[test]
fn a_commit_that_requires_a_refused_one_is_refused() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, 64 << 20);
    let pending = |name: &'static str, bytes: usize, requires| {
        let mut transaction = engine.begin();
        transaction.require(requires);
        let value = Value::inline(name.repeat(bytes));
        transaction.put(TreeId::SYSTEM, Bytes::from_static(name.as_bytes()), value).expect("fits");
        transaction.commit_pending(Durability::Synced, &|| true)
    };
    let first = pending("first", SMALL, None).expect("it has its place");
    let second = pending("second", SMALL, first.sequence()).expect("it has its place");
    let place = second.sequence();
    first.wait(&|| true).and(second.wait(&|| true)).expect("there is room");
    let large = pending("large", LARGE, place).expect("it has its place");
    let refused = large.sequence();
    disk.fill_after(1_000);
    // Another request meets the full disk, and the one before it with it.
    assert!(is_refused(&commit(&engine, "another", SMALL, Durability::Synced)));
    disk.make_room();
    let behind = pending("behind", SMALL, refused).map(|_| Sequence::ZERO);
    assert!(is_refused(&behind), "it stands behind what isn't");
    assert!(large.wait(&|| true).is_err());
    commit(&engine, "later", SMALL, Durability::Synced).expect("there is room");
    let there =
        ["first", "second", "large", "another", "behind", "later"].map(|name| has(&engine, name));
    assert_eq!(there, [true, true, false, false, false, true]);
}

/// Puts `name`, and has what becomes of it sent, with whether it is visible by then.
fn hand_on(
    engine: &Engine,
    (name, bytes): (&'static str, usize),
    ended: &Sender<(&'static str, Result<(), EngineError>, bool)>,
) {
    let pending = place(engine, name, bytes);
    let (ended, engine) = (ended.clone(), engine.clone());
    pending.hand_on(move |done| {
        let is_visible = has(&engine, name);
        ended.send((name, done, is_visible)).expect("the test waits");
    });
}

fn place(engine: &Engine, name: &'static str, bytes: usize) -> PendingCommit {
    let mut transaction = engine.begin();
    let value = Value::inline(name.repeat(bytes));
    transaction.put(TreeId::SYSTEM, Bytes::from_static(name.as_bytes()), value).expect("fits");
    transaction.commit_handed_on(Durability::Synced, &|| true).expect("it has its place")
}

/// Longer than any thread waits for a processor.
const LONG: Duration = Duration::from_secs(120);

/// No thread waits for any of them, and the caller of the first leads for all.
#[test]
fn what_becomes_of_commits_is_handed_on_by_their_leader() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, 64 << 20);
    let (ended, ends) = channel();
    let shared = engine.shared();
    let writer = shared.queue().writer.take().expect("no thread leads");
    hand_on(&engine, ("one", SMALL), &ended);
    hand_on(&engine, ("two", SMALL), &ended);
    assert!(ends.try_recv().is_err(), "nothing is written");
    shared.queue().writer = Some(writer);
    hand_on(&engine, ("three", SMALL), &ended);
    let all: Vec<_> = ends.try_iter().collect();
    let names: Vec<_> = all.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["one", "two", "three"], "this thread has led");
    for (name, done, is_visible) in all {
        assert!(done.is_ok() && is_visible, "{name}: {done:?}");
    }
    let restarted = open(&disk.crash(), 64 << 20);
    assert!(["one", "two", "three"].iter().all(|name| has(&restarted, name)));
}

#[test]
fn commits_that_are_handed_on_are_refused_by_a_full_disk() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, 64 << 20);
    let (ended, ends) = channel();
    let writer = engine.shared().queue().writer.take().expect("no thread leads");
    hand_on(&engine, ("one", SMALL), &ended);
    engine.shared().queue().writer = Some(writer);
    disk.fill_after(1_000);
    hand_on(&engine, ("two", LARGE), &ended);
    for _ in 0..2 {
        let (name, done, is_visible) = ends.recv_timeout(LONG).expect("it ends");
        assert!(is_refused(&done.map(|()| Sequence::ZERO)) && !is_visible, "{name}");
    }
    disk.make_room();
    hand_on(&engine, ("three", SMALL), &ended);
    let (_, done, is_visible) = ends.recv_timeout(LONG).expect("it ends");
    assert!(done.is_ok() && is_visible, "{done:?}");
}

/// Their leader has led enough, and no member of the next group waits: the engine's thread leads.
#[test]
fn groups_for_which_no_thread_waits_are_led_all_the_same() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, 64 << 20);
    let shared = engine.shared();
    let (ended, ends) = channel();
    for drops in [false, true] {
        let mut queue = shared.queue();
        let writer = queue.writer.take().expect("no thread leads");
        drop(queue);
        let last = match drops {
            // No thread asks what becomes of it, and others may wait behind it.
            true => place(&engine, "two", SMALL),
            false => {
                hand_on(&engine, ("one", SMALL), &ended);
                place(&engine, "behind", SMALL)
            }
        };
        let sequence = last.sequence().expect("it writes");
        if drops {
            shared.queue().writer = Some(writer);
            drop(last);
        } else {
            let mut queue = shared.queue();
            queue.writer = Some(writer);
            shared.hand_over(queue, &Group::default(), Outcome::Recheck);
            let (_, done, is_visible) = ends.recv_timeout(LONG).expect("it is led");
            assert!(done.is_ok() && is_visible, "{done:?}");
            last.wait(&|| true).expect("it was written with it");
        }
        let begun = frond_store::io::steady_now();
        while shared.queue().durable < sequence {
            assert!(begun.elapsed() < LONG, "it is led");
            thread::yield_now();
        }
    }
}

#[test]
fn a_commit_that_is_handed_on_is_unknown_where_the_engine_is_closed() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, 64 << 20);
    let (ended, ends) = channel();
    let writer = engine.shared().queue().writer.take().expect("no thread leads");
    hand_on(&engine, ("one", SMALL), &ended);
    engine.shared().poison("the test wants it");
    let (_, done, _) = ends.recv_timeout(LONG).expect("it ends");
    assert!(matches!(done, Err(EngineError::Unknown(_))), "{done:?}");
    engine.shared().queue().writer = Some(writer);
}
