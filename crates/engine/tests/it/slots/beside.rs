//! Goal: groups that are on their way to the bucket at once are acknowledged in their order, and
//! none behind one that never arrived.
//!
//! *Method*: clients on threads of their own count up in one document and note in another what
//! they counted, so what survives has to be the first so many counts, each once. Slots are held
//! back on their way and let through one by one in an order that the test wants, or lost; or the
//! bucket answers badly at random, and directories follow one another.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use frond_store::bucket::{BucketError, Created, ObjectPart, ObjectVersion, Swapped};
use frond_store::io::steady_now;
use frond_tree::Content;

use super::*;

const COUNTER: &[u8] = b"counter";

/// A bucket that slots of the log reach one by one.
struct Gate {
    bucket: SimDepot,
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_shut: bool,
    /// Those that wait at it, and what is to become of them: true, they go through.
    held: BTreeMap<String, Option<bool>>,
}

impl Gate {
    fn new(bucket: &SimDepot) -> Arc<Gate> {
        let bucket = bucket.other_client();
        Arc::new(Gate { bucket, state: Mutex::default(), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().expect("no panic while the lock is held")
    }

    fn shut(&self) {
        self.state().is_shut = true;
    }

    /// Waits until so many slots were held; their names, in the order of their places.
    fn await_held(&self, count: usize) -> Vec<String> {
        let mut state = self.state();
        while state.held.len() < count {
            state = self.changed.wait(state).expect("no panic while the lock is held");
        }
        state.held.keys().cloned().collect()
    }

    /// Lets a slot through, or loses it for good.
    fn decide(&self, name: &str, goes_through: bool) {
        self.state().held.insert(name.to_owned(), Some(goes_through));
        self.changed.notify_all();
    }

    fn goes_through(&self, name: &str) -> bool {
        let mut state = self.state();
        if !state.is_shut || !name.starts_with("lines/main/log/") {
            return true;
        }
        state.held.entry(name.to_owned()).or_default();
        self.changed.notify_all();
        loop {
            if let Some(goes_through) = state.held[name] {
                return goes_through;
            }
            state = self.changed.wait(state).expect("no panic while the lock is held");
        }
    }
}

impl Bucket for Gate {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        match self.goes_through(name) {
            true => self.bucket.create(name, bytes),
            false => Ok(Created::Unknown),
        }
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError> {
        self.bucket.swap(name, was, bytes)
    }

    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError> {
        self.bucket.load(name)
    }

    fn read_many(&self, parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, BucketError> {
        self.bucket.read_many(parts)
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        self.bucket.remove(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, BucketError> {
        self.bucket.list(prefix)
    }

    fn wait(&self, _attempt: u32) {}
}

fn number(value: Option<Value>) -> u64 {
    let Some(Content::Inline(bytes)) = value.map(|value| value.content) else { return 0 };
    u64::from_le_bytes(bytes[..].try_into().expect("eight bytes"))
}

fn value(number: u64) -> Value {
    Value::inline(number.to_le_bytes().to_vec())
}

fn note_key(number: u64) -> Bytes {
    Bytes::from([b"note ", &number.to_be_bytes()[..]].concat())
}

/// Puts one key of its own.
fn put(engine: &Engine, name: &'static str) -> Result<(), EngineError> {
    let mut transaction = engine.begin();
    transaction.put(TreeId::SYSTEM, Bytes::from(name), value(1))?;
    transaction.commit(Durability::Synced).map(drop)
}

/// Counts up and notes the count, ahead of what is acknowledged; which count that is, and whether
/// it was acknowledged: not where another was faster.
fn count_up(engine: &Engine) -> (u64, Result<bool, EngineError>) {
    let mut transaction = engine.begin_ahead();
    loop {
        let before = transaction.get(TreeId::SYSTEM, COUNTER).expect("it is read");
        let count = number(before) + 1;
        let counted = transaction
            .put(TreeId::SYSTEM, Bytes::from(COUNTER), value(count))
            .and_then(|()| transaction.put(TreeId::SYSTEM, note_key(count), value(count)));
        let done = match counted {
            Ok(()) => transaction.commit(Durability::Synced).map(|_| true),
            Err(EngineError::Conflict { .. }) => {
                let has_its_turn = transaction.blocked().is_none_or(|wait| {
                    while !wait.wait(Duration::from_secs(1)) {}
                    transaction.unblock()
                });
                if has_its_turn {
                    transaction.restart_ahead();
                    continue;
                }
                Ok(false)
            }
            Err(error) => Err(error),
        };
        return match done {
            Err(EngineError::Conflict { .. } | EngineError::Withdrawn) => (count, Ok(false)),
            done => (count, done),
        };
    }
}

/// Returns the count: the first so many counts are noted, and no other.
fn counted(engine: &Engine, most: u64) -> u64 {
    let snapshot = engine.snapshot();
    let count = number(snapshot.get(TreeId::SYSTEM, COUNTER).expect("it is read"));
    for other in 1..=most + 20 {
        let note = number(snapshot.get(TreeId::SYSTEM, &note_key(other)).expect("it is read"));
        assert_eq!(note, if other <= count { other } else { 0 }, "of {count}");
    }
    count
}

#[test]
fn groups_on_their_way_at_once_are_all_acknowledged() {
    let bucket = SimDepot::new(1);
    let gate = Gate::new(&bucket);
    let engine = Node::new(2, &bucket).open_on(gate.clone(), quiet()).expect("it is new");
    gate.shut();
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for (position, name) in ["one", "two", "three"].into_iter().enumerate() {
            let engine = &engine;
            clients.push(scope.spawn(move || put(engine, name)));
            gate.await_held(position + 1);
        }
        for name in gate.await_held(3).iter().rev() {
            gate.decide(name, true);
        }
        for client in clients {
            client.join().expect("no panic").expect("it is acknowledged");
        }
    });
    drop(engine);
    let next = Node::successor(3, &bucket).open().expect("it takes over");
    for name in ["one", "two", "three"] {
        assert_eq!(number(next.snapshot().get(TreeId::SYSTEM, name.as_bytes()).unwrap()), 1);
    }
}

#[test]
fn behind_a_slot_that_never_came_nothing_is_acknowledged_or_taken_over() {
    let bucket = SimDepot::new(1);
    let gate = Gate::new(&bucket);
    let engine = Node::new(2, &bucket).open_on(gate.clone(), quiet()).expect("it is new");
    gate.shut();
    let names = ["there", "lost", "behind", "far behind"];
    let ends = thread::scope(|scope| {
        let mut clients = Vec::new();
        for (position, name) in names.into_iter().enumerate() {
            let engine = &engine;
            clients.push(scope.spawn(move || put(engine, name)));
            gate.await_held(position + 1);
        }
        let held = gate.await_held(4);
        for position in [2, 3, 0] {
            gate.decide(&held[position], true);
        }
        // The first is acknowledged before the second ends the engine.
        let there = clients.remove(0).join().expect("no panic");
        gate.decide(&held[1], false);
        let ends = clients.into_iter().map(|client| client.join().expect("no panic"));
        [there].into_iter().chain(ends).collect::<Vec<_>>()
    });
    assert!(ends[0].is_ok(), "{ends:?}");
    for end in &ends[1..] {
        assert!(matches!(end, Err(EngineError::Unknown(_))), "{ends:?}");
    }
    assert_eq!(bucket.objects().keys().filter(|name| name.contains("/log/")).count(), 3);
    drop(engine);
    let next = Node::successor(3, &bucket).open().expect("it takes over");
    let found =
        names.map(|name| number(next.snapshot().get(TreeId::SYSTEM, name.as_bytes()).unwrap()));
    assert_eq!(found, [1, 0, 0, 0]);
}

/// Clients count up until the engine ends or each has counted so often; the greatest count that was
/// acknowledged, and that was tried.
fn count_beside(engine: &Engine, clients: usize, times: usize) -> (u64, u64) {
    let run = || {
        let (mut acknowledged, mut tried) = (0, 0);
        for _ in 0..times {
            let (count, done) = count_up(engine);
            tried = count.max(tried);
            match done {
                Ok(true) => acknowledged = count.max(acknowledged),
                Ok(false) => {}
                Err(_) => break,
            }
        }
        (acknowledged, tried)
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(run)).collect();
        let ends = clients.into_iter().map(|client| client.join().expect("no panic"));
        ends.fold((0, 0), |(all, most), (one, tried)| (one.max(all), tried.max(most)))
    })
}

#[test]
fn concurrent_counters_keep_every_acknowledged_increment() {
    for_seeds(20, |mut random| {
        let bucket = SimDepot::new(random.next());
        let mut node = Node::new(random.next(), &bucket);
        drop(node.open().expect("it is new"));
        let (mut acknowledged, mut most) = (0, 0);
        for _ in 0..4 {
            let left = node.disk.kill();
            node = match random.one_in(2) {
                true => node.again(left),
                false => Node::successor(random.next(), &bucket),
            };
            let engine = node.open().expect("the bucket works");
            let count = counted(&engine, most);
            assert!(acknowledged <= count, "{acknowledged} were acknowledged, {count} are there");
            bucket.set_faults(DepotFaults::MANY);
            node.bucket.cut_after(30 + random.below(60) as u64);
            let (more, tried) = count_beside(&engine, 6, 12);
            (acknowledged, most) = (more.max(count), tried.max(most));
            bucket.set_faults(DepotFaults::default());
            bucket.settle();
        }
        let last = Node::successor(random.next(), &bucket).open().expect("it takes over");
        let count = counted(&last, most);
        assert!(acknowledged <= count, "{acknowledged} were acknowledged, {count} are there");
    });
}

#[test]
fn an_interrupted_wait_reports_an_unknown_outcome_and_the_engine_goes_on() {
    let bucket = SimDepot::new(1);
    let engine = Node::new(2, &bucket).open_with(quiet()).expect("it is new");
    bucket.set_silent(true);
    let mut transaction = engine.begin();
    transaction.put(TreeId::SYSTEM, Bytes::from("late"), value(1)).expect("it fits");
    let outcome = transaction.commit_unless_interrupted(Durability::Synced, &|| false);
    assert!(matches!(outcome, Err(EngineError::Unawaited)), "{outcome:?}");
    let seen = engine.begin_ahead();
    assert_eq!(number(seen.get(TreeId::SYSTEM, b"late").expect("it is read")), 1);
    let outcome = seen.end_while(&|| false);
    assert!(matches!(outcome, Err(EngineError::Interrupted)), "{outcome:?}");
    bucket.set_silent(false);
    engine.begin_ahead().end().expect("what it saw is acknowledged");
    assert_eq!(number(engine.snapshot().get(TreeId::SYSTEM, b"late").expect("it is read")), 1);
    put(&engine, "behind it").expect("the engine goes on");
}

#[test]
fn a_close_beside_a_silent_bucket_ends_soon_and_loses_nothing_acknowledged() {
    let bucket = SimDepot::new(1);
    let node = Node::new(2, &bucket);
    let engine = node.open_with(quiet()).expect("it is new");
    put(&engine, "acknowledged").expect("the bucket works");
    bucket.set_silent(true);
    let begun = steady_now();
    thread::scope(|scope| {
        let client = scope.spawn(|| put(&engine, "unknown"));
        while engine.begin_ahead().get(TreeId::SYSTEM, b"unknown").expect("it is read").is_none() {
            thread::yield_now();
        }
        // As the databases are closed.
        engine.begin_close();
        engine.checkpoint().expect_err("not all of it is acknowledged");
        engine.close().expect_err("not all of it is acknowledged");
        let outcome = client.join().expect("no panic");
        assert!(matches!(outcome, Err(EngineError::Unknown(_))), "{outcome:?}");
    });
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    bucket.set_silent(false);
    let left = node.disk.kill();
    drop(engine);
    let next = node.again(left).open().expect("it opens");
    let found = next.snapshot().get(TreeId::SYSTEM, b"acknowledged").expect("it is read");
    assert_eq!(number(found), 1);
}
