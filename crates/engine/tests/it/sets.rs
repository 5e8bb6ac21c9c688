//! A set of three engines: what is agreed on is on all of them, whichever of them leads.
//!
//! *Method*: a stand-in for a majority ([`Agreed`]) keeps what was proposed, in its order, or fails
//! with or without having kept it. Random steps write on the leader (small values, changed ones,
//! large ones some of whose chunks are only in its own packs, trees that are made, replaced and
//! dropped), apply entries on followers, flush, fold and collect on any of them, kill processes and
//! cut the power, move the lead, and give a follower a copy of what the leader has. A follower must
//! show exactly what some prefix of the entries makes, in whole transactions; at the end all have
//! the same, and nothing acknowledged is missing. Each transaction records its number: each member
//! has kept what was recorded since the first entry, or since its copy.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use frond_engine::TreeId;
use frond_engine::order::{ENTRY_BYTES_MAX, Order, SetEntry, first_sequence};
use frond_engine::{
    ChangeEvent, EngineOptions, EventContent, Image, RetentionBegins, Sequence, Snapshot,
};
use frond_engine::{ChangeRetention, ChangesError, Durability, Engine, EngineError};
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{ChunkHash, StoreError};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use frond_tree::{Bounds, Direction, Tree, Value};

use crate::large::{self, Parts, brought, chunks_of, value_of};
use crate::rig::{changed, churning, collect, get, make_trees, new_bytes, put, quiet, small_nodes};

const MEMBERS: usize = 3;
/// Members keep it at once, whatever is said of that.
const RECORDING: ChangeRetention =
    ChangeRetention { begins: RetentionBegins::WhenRequested, seconds: 3600, bytes: 1 << 30 };

/// The entries that a majority would keep.
#[derive(Default)]
struct Agreed {
    entries: Mutex<Vec<Bytes>>,
    fails: Mutex<Option<Fails>>,
}

#[derive(Clone, Copy)]
enum Fails {
    Kept,
    Lost,
}

impl Order for Agreed {
    fn agree(&self, entries: Vec<Bytes>, _report: &dyn Fn(StoreError)) -> Result<(), StoreError> {
        let fails = *self.fails.lock().unwrap();
        if !matches!(fails, Some(Fails::Lost)) {
            self.entries.lock().unwrap().extend(entries);
        }
        let why = || std::io::Error::other("this member doesn't lead any more");
        fails.map_or(Ok(()), |_| Err(StoreError::io("the set's log", why())))
    }
}

/// Agrees, or fails, once the test says so.
#[derive(Default)]
struct Silent {
    state: Mutex<Silence>,
    changed: Condvar,
}

#[derive(Default)]
struct Silence {
    proposed: usize,
    answers: VecDeque<Result<(), ()>>,
    pauses: usize,
}

impl Silent {
    fn answer(&self, answer: Result<(), ()>) {
        self.state.lock().unwrap().answers.push_back(answer);
        self.changed.notify_all();
    }

    fn until(&self, is_so: impl Fn(&Silence) -> bool) {
        let waited =
            self.changed.wait_timeout_while(self.state.lock().unwrap(), LONG, |it| !is_so(it));
        assert!(!waited.unwrap().1.timed_out(), "it doesn't come to that");
    }
}

impl Order for Silent {
    fn agree(&self, _: Vec<Bytes>, _report: &dyn Fn(StoreError)) -> Result<(), StoreError> {
        let mut state = self.state.lock().unwrap();
        state.proposed += 1;
        self.changed.notify_all();
        let mut state = self.changed.wait_while(state, |it| it.answers.is_empty()).unwrap();
        let why = |()| StoreError::io("the set's log", std::io::Error::other("it doesn't lead"));
        state.answers.pop_front().expect("there is one").map_err(why)
    }

    fn pause(&self) {
        self.state.lock().unwrap().pauses += 1;
        self.changed.notify_all();
    }
}

/// Trees, and what they hold: of large values the parts.
pub type World = BTreeMap<(TreeId, Bytes), Parts>;

/// Returns the present content.
pub fn world(engine: &Engine, snapshot: &Snapshot, trees: &[TreeId]) -> World {
    let mut world = World::new();
    for tree in trees.iter().filter(|tree| snapshot.has_tree(**tree)) {
        for entry in snapshot.range(*tree, Bounds::all(), Direction::Ascending).unwrap() {
            let entry = entry.unwrap();
            let parts = large::read(&**engine.store(), &entry.value)
                .unwrap_or_else(|| vec![snapshot.read(&entry.value).unwrap()]);
            world.insert((*tree, entry.key), parts);
        }
    }
    world
}

/// Whether an entry only brings what a later one names, or is of that no more.
fn is_staging(entry: &Bytes) -> bool {
    let entry = SetEntry::decode(entry).unwrap();
    entry.writes(TreeId::SYSTEM, |key| key.starts_with(b"\0staged"))
}

struct Member {
    disk: SimDisk,
    engine: Option<Engine>,
    /// Entries that were applied, or were its own.
    applied: usize,
}

fn install(disk: &SimDisk, root: ChunkHash) -> Result<(), StoreError> {
    let machine = disk.machine();
    let store = LocalStore::open(&machine, LocalOptions::default())?;
    Image::install_over(&*machine.disk, &*store, root)
}

struct Set {
    members: Vec<Member>,
    leader: usize,
    agreed: Arc<Agreed>,
    options: EngineOptions,
    trees: Vec<TreeId>,
    /// The visible state before all entries, and after each.
    worlds: Vec<World>,
    now: World,
}

impl Set {
    fn new(random: &mut Random, options: EngineOptions) -> Set {
        let members = (0..MEMBERS).map(|_| Member {
            disk: SimDisk::new(random.next()),
            engine: None,
            applied: 0,
        });
        let mut set = Set {
            members: members.collect(),
            leader: 0,
            agreed: Arc::default(),
            options,
            trees: Vec::new(),
            worlds: vec![World::new()],
            now: World::new(),
        };
        (0..MEMBERS).for_each(|position| set.open(position));
        set.engine(0).lead();
        set
    }

    fn engine(&self, position: usize) -> &Engine {
        self.members[position].engine.as_ref().unwrap()
    }

    /// Opens a member: it goes on from what its engine holds.
    fn open(&mut self, position: usize) {
        let order = Arc::clone(&self.agreed) as Arc<dyn Order>;
        let machine = self.members[position].disk.machine();
        let engine = Engine::open_in_set(&machine, self.options, order).unwrap();
        let last = engine.visible();
        let entries = self.agreed.entries.lock().unwrap();
        let behind = entries.partition_point(|entry| first_sequence(entry).unwrap() <= last);
        drop(entries);
        let member = &mut self.members[position];
        // Of the last one some transactions may be missing.
        member.applied = behind.saturating_sub(1);
        member.engine = Some(engine);
    }

    /// Ends a member's process, or its machine's power.
    fn end(&mut self, position: usize, is_crash: bool) {
        let member = &mut self.members[position];
        member.engine = None;
        member.disk = if is_crash { member.disk.crash() } else { member.disk.kill() };
    }

    /// A follower's content becomes what the leader has, though its power is cut on the way.
    fn copy(&mut self, position: usize, random: &mut Random) {
        let leader = self.engine(self.leader).clone();
        let image = leader.image().unwrap();
        let store = Arc::clone(self.engine(position).store());
        let session = store.session();
        let (mut left, mut seen) = (vec![image.root()], HashSet::new());
        while let Some(hash) = left.pop() {
            if seen.insert(hash) {
                let chunk = leader.store().get(hash).unwrap();
                left.extend(chunk.references());
                store.put_many(&[chunk]).unwrap();
            }
        }
        store.sync().unwrap();
        drop((session, store));
        self.end(position, random.one_in(2));
        let member = &mut self.members[position];
        if random.one_in(2) {
            member.disk.crash_after(random.below(8) as u64);
            let _ = install(&member.disk, image.root());
            member.disk = member.disk.crash();
        }
        install(&member.disk, image.root()).unwrap();
        self.open(position);
        assert_eq!(self.engine(position).visible(), image.snapshot().sequence());
    }

    fn apply(&mut self, position: usize, count: usize) {
        let entries = self.agreed.entries.lock().unwrap();
        for _ in 0..count {
            let member = &mut self.members[position];
            let Some(entry) = entries.get(member.applied) else { return };
            let entry = SetEntry::decode(entry).unwrap();
            member.engine.as_ref().unwrap().apply(entry).unwrap();
            member.applied += 1;
        }
    }

    /// Notes what there is after a transaction, if it was agreed on.
    fn note(&mut self, after: World) {
        let entries = self.agreed.entries.lock().unwrap();
        for entry in &entries[self.worlds.len() - 1..] {
            if !is_staging(entry) {
                self.now.clone_from(&after);
            }
            self.worlds.push(self.now.clone());
        }
    }

    /// Another leads, or the same again: all that was agreed on is applied before.
    fn change_leader(&mut self, random: &mut Random, fails: Fails) {
        let old = self.leader;
        *self.agreed.fails.lock().unwrap() = Some(fails);
        let mut unacknowledged = self.now.clone();
        let written = self.write(random, &mut unacknowledged);
        assert!(matches!(written, Err(EngineError::Unknown(_))), "{written:?}");
        let refused = self.write(random, &mut World::new());
        assert!(matches!(refused, Err(EngineError::Closed(_))), "{refused:?}");
        *self.agreed.fails.lock().unwrap() = None;
        self.note(unacknowledged);
        self.end(old, random.one_in(2));
        self.open(old);
        self.leader = random.below(MEMBERS);
        self.apply(self.leader, usize::MAX);
        self.check(self.leader);
        let engine = self.engine(self.leader).clone();
        engine.lead();
        engine.remove_left_staging().unwrap();
        assert_eq!(engine.snapshot().count(TreeId::SYSTEM).unwrap(), 0, "half-staged");
        self.note(self.now.clone());
    }

    /// Returns how many transactions with events were agreed on.
    fn event_count(&self) -> usize {
        let entries = self.agreed.entries.lock().unwrap();
        entries.iter().filter(|entry| !is_staging(entry)).count()
    }

    /// A random transaction of the leader; what is there then stands in `after`.
    fn write(&mut self, random: &mut Random, after: &mut World) -> Result<(), EngineError> {
        let engine = self.engine(self.leader).clone();
        let mut transaction = engine.begin();
        assert!(engine.records_events());
        transaction.record_event(ChangeEvent {
            scope: Bytes::new(),
            head: format!("{}", self.event_count()).into(),
            content: EventContent::None,
        });
        let here: Vec<TreeId> =
            self.trees.iter().copied().filter(|tree| transaction.has_tree(*tree)).collect();
        let mut made = None;
        if here.len() < 2 || random.one_in(12) {
            let tree = engine.reserve_tree_id();
            transaction.set_base(tree, Tree::empty(&**engine.store(), small_nodes())?)?;
            self.trees.push(tree);
            made = Some(tree);
        } else if random.one_in(25) {
            let tree = *random.choose(&here);
            transaction.drop_tree(tree)?;
            after.retain(|(of, _), _| *of != tree);
            return transaction.commit(Durability::Relaxed).map(drop);
        }
        for _ in 0..1 + random.below(3) {
            let tree = made.unwrap_or_else(|| *random.choose(&here));
            let key = Bytes::from(vec![b'a' + random.below(9) as u8]);
            let before = after.get(&(tree, key.clone())).cloned();
            let parts = match random.below(6) {
                0 => {
                    transaction.delete(tree, key.clone())?;
                    after.remove(&(tree, key));
                    continue;
                }
                1 | 2 => {
                    let mut parts =
                        before.clone().filter(|parts| parts.len() > 1).unwrap_or_else(|| {
                            // More than a memtable: it is staged.
                            let bytes = *random.choose(&[400, 400, 1_500]);
                            (0..4).map(|_| random.bytes(bytes).into()).collect()
                        });
                    let place = random.below(parts.len());
                    parts[place] = changed(&parts[place], random);
                    if random.one_in(3) {
                        // Only this member's packs have them.
                        engine.store().put_many(&chunks_of(&parts))?;
                        transaction.put(tree, key.clone(), value_of(&parts))?;
                    } else {
                        let known = before.as_ref().filter(|parts| parts.len() > 1);
                        let value = brought(&mut transaction, &parts, known);
                        transaction.put_changed(tree, key.clone(), value)?;
                    }
                    parts
                }
                kind => {
                    let bytes = match &before {
                        Some(parts) if parts.len() == 1 && kind < 5 => changed(&parts[0], random),
                        _ => new_bytes(random),
                    };
                    let value = Value::inline(bytes.clone());
                    transaction.put_changed(tree, key.clone(), value)?;
                    vec![bytes]
                }
            };
            after.insert((tree, key), parts);
        }
        transaction.commit(Durability::Relaxed).map(drop)
    }

    /// A follower, or a leader, shows what there was after all that it has applied.
    fn check(&self, position: usize) {
        let engine = self.engine(position);
        engine.check().unwrap();
        let found = world(engine, &engine.snapshot(), &self.trees);
        let applied = match position == self.leader {
            true => self.worlds.len() - 1,
            // It was reopened, and may have had the last one whole.
            false => self.members[position].applied,
        };
        let next = self.worlds.get(applied + 1);
        assert!(found == self.worlds[applied] || Some(&found) == next, "member {position}");
    }

    /// A member has kept what the entries' transactions recorded, from where it says on.
    fn check_events(&self, position: usize) {
        let engine = self.engine(position);
        let mut changes = engine.changes(Sequence(0));
        let kept_after = match changes.check() {
            Ok(()) => Sequence(0),
            Err(ChangesError::Gone { kept_after }) => kept_after,
            Err(error) => panic!("{error}"),
        };
        if Sequence(0) < kept_after {
            changes = engine.changes(kept_after);
        }
        let mut events = Vec::new();
        while let Some(record) = changes.next_record().unwrap() {
            let heads = record.events.into_iter().map(|event| event.head);
            events.extend(heads.map(|head| (record.sequence, head)));
        }
        let entries = self.agreed.entries.lock().unwrap();
        let with_events = entries.iter().filter(|entry| !is_staging(entry));
        let numbered = with_events.enumerate().map(|(number, entry)| {
            (first_sequence(entry).unwrap(), Bytes::from(format!("{number}")))
        });
        let (from, to) = (kept_after, engine.visible());
        let expected: Vec<_> = numbered.filter(|(it, _)| from < *it && *it <= to).collect();
        assert_eq!(events, expected, "member {position} keeps what is behind {kept_after:?}");
    }

    fn step(&mut self, random: &mut Random) {
        let position = random.below(MEMBERS);
        let is_follower = position != self.leader;
        match random.below(20) {
            0 => self.engine(position).checkpoint().unwrap(),
            1 => self.engine(position).flush().unwrap(),
            2 => collect(self.engine(position), random).unwrap(),
            3 if is_follower => {
                let refused = self.engine(position).begin();
                let refused = {
                    let mut transaction = refused;
                    put(&mut transaction, TreeId::SYSTEM, "a", "b");
                    transaction.commit(Durability::Synced)
                };
                assert!(matches!(refused, Err(EngineError::Closed(_))));
            }
            4 | 5 if is_follower => {
                self.end(position, random.one_in(2));
                self.open(position);
            }
            6 => {
                let fails = if random.one_in(2) { Fails::Kept } else { Fails::Lost };
                self.change_leader(random, fails);
            }
            7 if is_follower => self.copy(position, random),
            8..=11 if is_follower => self.apply(position, 1 + random.below(5)),
            _ => {
                let mut after = self.now.clone();
                self.write(random, &mut after).unwrap();
                self.note(after);
            }
        }
        self.check(position);
    }
}

#[test]
fn all_members_have_the_agreed_entries_under_any_leader() {
    for_seeds(60, |mut random| {
        let options = if random.one_in(2) { quiet() } else { churning(*random.choose(&[15, 90])) };
        let is_kept = random.one_in(2);
        let changes = if is_kept { RECORDING } else { ChangeRetention::default() };
        let options = EngineOptions { changes, ..options };
        let mut set = Set::new(&mut random, options);
        for _ in 0..120 {
            set.step(&mut random);
        }
        for position in 0..MEMBERS {
            if position != set.leader {
                set.apply(position, usize::MAX);
            }
            set.check(position);
            if is_kept {
                set.check_events(position);
            }
        }
        let shown = |position: usize| {
            let engine = set.engine(position);
            assert_eq!(engine.snapshot().count(TreeId::SYSTEM).unwrap(), 0, "what was staged");
            (engine.visible(), world(engine, &engine.snapshot(), &set.trees))
        };
        assert!((1..MEMBERS).all(|position| shown(position) == shown(0)));
        assert_eq!(shown(0).1, set.now);
    });
}

#[test]
fn a_transaction_from_before_the_lead_is_run_again() {
    let mut random = Random::new(4);
    let mut set = Set::new(&mut random, quiet());
    let old = set.engine(1).begin();
    assert_eq!(old.get(TreeId::SYSTEM, b"a").unwrap(), None);
    let mut transaction = set.engine(0).begin();
    put(&mut transaction, TreeId::SYSTEM, "a", "first");
    transaction.commit(Durability::Synced).unwrap();
    set.apply(1, 1);
    set.engine(1).lead();
    let mut old = old;
    put(&mut old, TreeId::SYSTEM, "a", "lost update");
    assert!(matches!(old.commit(Durability::Synced), Err(EngineError::Conflict { .. })));
    let mut new = set.engine(1).begin();
    put(&mut new, TreeId::SYSTEM, "a", "second");
    new.commit(Durability::Synced).unwrap();
}

/// It would be reported only when its patience ends, half a minute later.
#[test]
fn waiting_for_an_entry_ends_when_it_is_applied() {
    let mut set = Set::new(&mut Random::new(6), quiet());
    let mut transaction = set.engine(0).begin();
    put(&mut transaction, TreeId::SYSTEM, "a", "there");
    transaction.commit(Durability::Synced).unwrap();
    let (follower, moment) = (set.engine(1).clone(), set.engine(0).visible());
    let begun = Instant::now();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| follower.snapshot_at(moment).unwrap());
        thread::sleep(Duration::from_millis(50));
        set.apply(1, usize::MAX);
        let snapshot = waiter.join().unwrap();
        assert_eq!(get(&snapshot, TreeId::SYSTEM, "a").as_deref(), Some("there"));
    });
    assert!(begun.elapsed() < Duration::from_secs(15));
}

/// The folded tree is at a later moment than what a power cut leaves of the log.
#[test]
fn a_tree_that_was_folded_alone_takes_no_other_trees_for_applied() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let mut set = Set::new(&mut random, quiet());
        let trees = make_trees(set.engine(0), 2).unwrap();
        let (one, other) = (trees[0], trees[1]);
        set.apply(1, usize::MAX);
        // Only trees that were published once are by a fold.
        set.engine(1).flush().unwrap();
        for number in 0..20 {
            let mut transaction = set.engine(0).begin();
            put(&mut transaction, one, &format!("{number}"), "one");
            put(&mut transaction, other, &format!("{number}"), "other");
            transaction.commit(Durability::Synced).unwrap();
        }
        set.apply(1, usize::MAX);
        let follower = set.engine(1);
        follower.fold(&follower.snapshot(), &[one]).unwrap();
        set.end(1, true);
        set.open(1);
        set.apply(1, usize::MAX);
        let snapshot = set.engine(1).snapshot();
        let counts = [one, other].map(|tree| snapshot.count(tree).unwrap());
        assert_eq!(counts, [20, 20], "seed {seed}");
    }
}

/// A set has what was agreed on, so a member's own log is behind: until it is asked.
#[test]
fn durable_entries_of_a_member_survive_a_power_cut() {
    for seed in 0..10 {
        let mut set = Set::new(&mut Random::new(seed), quiet());
        for number in 0..20 {
            let mut transaction = set.engine(0).begin();
            put(&mut transaction, TreeId::SYSTEM, &format!("{number}"), "there");
            transaction.commit(Durability::Synced).unwrap();
        }
        set.apply(1, usize::MAX);
        let visible = set.engine(1).visible();
        set.engine(1).sync_log().unwrap();
        // Before its end, which would sync as well.
        set.members[1].disk = set.members[1].disk.crash();
        set.open(1);
        assert_eq!(set.engine(1).visible(), visible, "seed {seed}");
        assert_eq!(set.engine(1).snapshot().count(TreeId::SYSTEM).unwrap(), 20, "seed {seed}");
    }
}

/// Chunks that a transaction names go before it in pieces; those it brings itself don't.
#[test]
fn a_transaction_names_more_than_an_entry_carries() {
    let mut random = Random::new(5);
    let mut set = Set::new(&mut random, quiet());
    let engine = set.engine(0).clone();
    let part = Bytes::from(vec![7; 1 << 20]);
    let parts: Parts = (0..=(ENTRY_BYTES_MAX >> 20) as u8)
        .map(|number| [&part[..], &[number]].concat().into())
        .collect();
    engine.store().put_many(&chunks_of(&parts)).unwrap();
    let put_large = |engine: &Engine| {
        let mut transaction = engine.begin();
        transaction.put(TreeId::SYSTEM, Bytes::from("large"), value_of(&parts)).unwrap();
        transaction
    };
    put_large(&engine).commit(Durability::Synced).unwrap();
    let entries = set.agreed.entries.lock().unwrap().clone();
    assert!(entries.len() > 3 && entries.iter().all(|entry| entry.len() < 20 << 20));
    set.apply(1, usize::MAX);
    let value = set.engine(1).snapshot().get(TreeId::SYSTEM, b"large").unwrap().unwrap();
    assert_eq!(large::read(&**set.engine(1).store(), &value), Some(parts.clone()));
    assert_eq!(set.engine(1).snapshot().count(TreeId::SYSTEM).unwrap(), 1);
    // All have it: nothing of it travels again.
    let mut again = put_large(&engine);
    again.note_shared(chunks_of(&parts).last().unwrap().hash());
    again.commit(Durability::Synced).unwrap();
    let entries = set.agreed.entries.lock().unwrap().clone();
    assert!(entries.last().unwrap().len() < 1 << 10);
    let mut own = engine.begin();
    let value = brought(&mut own, &parts, None);
    own.put(TreeId::SYSTEM, Bytes::from("larger"), value).unwrap();
    let refused = own.commit(Durability::Synced);
    assert!(matches!(refused, Err(EngineError::TooLargeForSet { .. })), "{refused:?}");
    assert_eq!(set.agreed.entries.lock().unwrap().len(), entries.len());
}

/// A leader whose set is silent, and what becomes of the commits that are handed on there.
struct SilentSet {
    order: Arc<Silent>,
    engine: Engine,
    ended: Sender<(&'static str, Result<(), EngineError>, bool)>,
    ends: Receiver<(&'static str, Result<(), EngineError>, bool)>,
}

impl SilentSet {
    fn new() -> SilentSet {
        let (disk, order) = (SimDisk::new(1), Arc::<Silent>::default());
        let as_order = Arc::clone(&order) as Arc<dyn Order>;
        let engine = Engine::open_in_set(&disk.machine(), quiet(), as_order).unwrap();
        engine.lead();
        let (ended, ends) = channel();
        SilentSet { order, engine, ended, ends }
    }

    /// Writes a key, by a thread of its own that waits for nothing but to lead; returns that.
    fn write(&self, key: &'static str) -> JoinHandle<()> {
        let (engine, ended) = (self.engine.clone(), self.ended.clone());
        let mut transaction = engine.begin();
        put(&mut transaction, TreeId::SYSTEM, key, "written");
        let placed = transaction.commit_handed_on(Durability::Synced, &|| true).unwrap();
        assert!(placed.can_hand_on(), "no thread waits for it");
        thread::spawn(move || {
            let after = engine.clone();
            placed.hand_on(move |done| {
                let is_visible = has(&after, key);
                ended.send((key, done, is_visible)).unwrap();
            });
        })
    }

    fn end(&self) -> (&'static str, Result<(), EngineError>, bool) {
        self.ends.recv_timeout(LONG).expect("it comes to an end")
    }
}

fn has(engine: &Engine, key: &str) -> bool {
    get(&engine.snapshot(), TreeId::SYSTEM, key).is_some()
}

/// Longer than any thread waits for a processor.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn a_commit_is_handed_on_once_the_set_agrees_and_pauses_are_announced() {
    let set = SilentSet::new();
    let first = set.write("first");
    set.order.until(|it| it.proposed == 1);
    // The log was begun, and nothing followed.
    let before = set.order.state.lock().unwrap().pauses;
    for other in ["second", "third"] {
        set.write(other).join().expect("it neither waits nor leads");
    }
    assert!(set.ends.try_recv().is_err(), "nothing is agreed on");
    set.order.answer(Ok(()));
    let (key, done, is_visible) = set.end();
    assert!(key == "first" && done.is_ok() && is_visible, "{key}: {done:?}");
    set.order.until(|it| it.proposed == 2);
    assert!(set.ends.try_recv().is_err(), "the second group isn't agreed on");
    assert_eq!(set.order.state.lock().unwrap().pauses, before, "entries follow");
    set.order.answer(Ok(()));
    let keys: Vec<_> =
        (0..2).map(|_| set.end()).map(|(key, done, _)| (key, done.is_ok())).collect();
    assert_eq!(keys, [("second", true), ("third", true)]);
    first.join().expect("it has led");
    set.order.until(|it| before < it.pauses);
}

/// It can't be known whether a majority holds them, or will.
#[test]
fn commits_that_are_handed_on_are_unknown_where_their_leader_is_deposed() {
    for is_kept in [false, true] {
        let set = SilentSet::new();
        let leads = set.write("first");
        set.order.until(|it| it.proposed == 1);
        set.write("second").join().expect("it neither waits nor leads");
        set.engine.depose();
        for _ in 0..2 {
            let (key, done, is_visible) = set.end();
            assert!(matches!(done, Err(EngineError::Unknown(_))), "{key}: {done:?}");
            assert!(!is_visible, "{key}");
        }
        // What the set comes to later changes nothing.
        set.order.answer(if is_kept { Ok(()) } else { Err(()) });
        leads.join().expect("it has led");
        assert!(set.ends.try_recv().is_err(), "each is handed on once");
        assert_eq!(set.order.state.lock().unwrap().proposed, 1, "nothing is proposed any more");
        assert!(!has(&set.engine, "first"));
    }
}

#[test]
fn commits_that_are_handed_on_are_unknown_where_agreement_fails() {
    let set = SilentSet::new();
    let leads = set.write("first");
    set.order.until(|it| it.proposed == 1);
    set.write("second").join().expect("it neither waits nor leads");
    set.order.answer(Err(()));
    for _ in 0..2 {
        let (key, done, is_visible) = set.end();
        assert!(matches!(done, Err(EngineError::Unknown(_))), "{key}: {done:?}");
        assert!(!is_visible, "{key}");
    }
    leads.join().expect("it has led");
}
