//! Goal: what the log in a bucket guarantees holds in every small history, and each of its four
//! means is needed for that: the epoch, the tombstone, the conditional swap of HEAD, and looking up
//! what became of an unknown answer.
//!
//! *Method*: actors are what a leader and those that take over do, in this crate's own code, up to
//! the next request to the bucket. All orders of their requests are explored, and what may become
//! of each: a put is done, or done and its reply lost, or not done, or done late. A directory may
//! end anywhere, so at each state another one takes over, undisturbed: it must find all that each
//! actor knows, in the same order and with nothing before or between. So does a reader beside them:
//! it finds a beginning of that, and whatever happens next it has what it had.
//!
//! An actor goes on by being run again with the answers that it got so far and one more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;

use super::format::{Content, Slot};
use super::{PlacedSlots, Slots};
use crate::bucket::{Bucket, BucketError, Created, ObjectPart, ObjectVersion, Swapped};
use crate::error::StoreError;
use crate::io::Chance;
use crate::tiered::format::{HEAD_NAME, Head, SlotId};
use crate::tiered::head::refused;
use crate::tiered::lead;

/// The safeguard that is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Without {
    Nothing,
    Epoch,
    Tombstone,
    Condition,
    LookUp,
    /// A slot that is made is acknowledged, whatever lies before it.
    Order,
}

type Objects = BTreeMap<String, Bytes>;

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The kind of an actor.
#[derive(Clone, Copy, Debug)]
enum Actor {
    /// It leads in the first epoch, and puts two entries side by side, the second one first, and
    /// one behind them.
    Leader,
    /// It takes over, and puts an entry.
    Successor(u8),
    /// It reads beside the others.
    Reader,
}

/// Takes over where nothing happens beside it.
const LOOKS: Actor = Actor::Successor(9);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Request {
    Create(String, Bytes),
    Swap(String, String, Bytes),
    Load(String),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Answer {
    Done(String),
    Refused,
    Unknown,
    Found(Option<Bytes>),
}

/// The fate of a put.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    ReplyLost,
    NotDone,
    Late,
}

/// The bucket as an actor sees it: it has the answers that were given, and keeps the first request
/// beyond them, or does it at once where nothing happens beside it.
struct Script {
    without: Without,
    state: Mutex<ScriptState>,
}

struct ScriptState {
    answers: Vec<Answer>,
    position: usize,
    next: Option<Request>,
    undisturbed: Option<Objects>,
}

impl Script {
    fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().expect("no panic while the lock is held")
    }

    fn send(&self, request: Request) -> Result<Answer, BucketError> {
        let mut state = self.state();
        if let Some(answer) = state.answers.get(state.position).cloned() {
            state.position += 1;
            return Ok(answer);
        }
        let without = self.without;
        if let Some(objects) = &mut state.undisturbed {
            return Ok(apply(objects, &request, without));
        }
        state.next.get_or_insert(request);
        Err(BucketError::Refused { name: String::new(), what: "it isn't answered yet".to_owned() })
    }
}

fn version(bytes: &Bytes) -> String {
    // Each object ends with a checksum of itself.
    format!("{:?}", &bytes[bytes.len().saturating_sub(8)..])
}

impl Bucket for Script {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        let slot = SlotId::of_name(name).and_then(|id| Slot::parse(&bytes, id).ok());
        let is_tombstone =
            slot.is_some_and(|(slot, _)| matches!(slot.content, Content::Tombstone { .. }));
        if is_tombstone && self.without == Without::Tombstone {
            return Ok(Created::Made(ObjectVersion(version(&bytes))));
        }
        Ok(match self.send(Request::Create(name.to_owned(), bytes.clone()))? {
            Answer::Done(version) => Created::Made(ObjectVersion(version)),
            Answer::Unknown if self.without == Without::LookUp => {
                Created::Made(ObjectVersion(version(&bytes)))
            }
            Answer::Refused => Created::Exists,
            _ => Created::Unknown,
        })
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError> {
        Ok(match self.send(Request::Swap(name.to_owned(), was.0.clone(), bytes))? {
            Answer::Done(version) => Swapped::Yes(ObjectVersion(version)),
            Answer::Refused => Swapped::No,
            _ => Swapped::Unknown,
        })
    }

    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError> {
        let Answer::Found(found) = self.send(Request::Load(name.to_owned()))? else {
            panic!("{name}: another answer than was asked for");
        };
        Ok(found.map(|bytes| (bytes.clone(), ObjectVersion(version(&bytes)))))
    }

    fn read_many(&self, _parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, BucketError> {
        Ok(Vec::new())
    }

    fn remove(&self, _name: &str) -> Result<(), BucketError> {
        Ok(())
    }

    fn list(&self, _prefix: &str) -> Result<Vec<String>, BucketError> {
        Ok(Vec::new())
    }

    fn wait(&self, _attempt: u32) {}
}

/// Gives each actor a number of its own.
struct Own(u8);

impl Chance for Own {
    fn fill(&self, buffer: &mut [u8]) {
        buffer.fill(self.0);
    }
}

/// The progress of an actor.
#[derive(Clone)]
struct Run {
    /// The next request; `None`: it has ended.
    next: Option<Request>,
    /// The slots that it has taken over, and then acknowledged.
    known: Vec<u8>,
}

fn run(actor: Actor, answers: &[Answer], undisturbed: Option<Objects>, without: Without) -> Run {
    let state = ScriptState { answers: answers.to_vec(), position: 0, next: None, undisturbed };
    let script = Arc::new(Script { without, state: Mutex::new(state) });
    let mut known = Vec::new();
    // Its errors are its end, or that it isn't answered yet.
    let _ = match actor {
        Actor::Leader => lead_on(&script, &mut known),
        Actor::Successor(own) => succeed(&script, own, &mut known),
        Actor::Reader => read_beside(&script, &mut known),
    };
    let next = script.state().next.take();
    Run { next, known }
}

fn place(slots: &Slots, entry: u8) -> PlacedSlots {
    slots.place(vec![(u64::from(entry), Bytes::copy_from_slice(&[entry]))])
}

fn acknowledge(
    script: &Script,
    slots: &Slots,
    placed: PlacedSlots,
    known: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let through = placed.slots[0].through;
    match script.without {
        Without::Order => {}
        _ => slots.await_before(placed)?,
    }
    known.push(u8::try_from(through).expect("entries are small"));
    Ok(())
}

fn lead_on(script: &Arc<Script>, known: &mut Vec<u8>) -> Result<(), StoreError> {
    let first = SlotId { epoch: 1, number: 0 };
    let slots = Slots::new(Arc::clone(script) as _, 1, Some(first), Duration::ZERO);
    let (one, two) = (place(&slots, 101), place(&slots, 102));
    slots.make(&two, &|_| {})?;
    if script.without == Without::Order {
        return acknowledge(script, &slots, two, known);
    }
    slots.make(&one, &|_| {})?;
    acknowledge(script, &slots, one, known)?;
    acknowledge(script, &slots, two, known)?;
    let three = place(&slots, 103);
    slots.make(&three, &|_| {})?;
    acknowledge(script, &slots, three, known)
}

fn succeed(script: &Arc<Script>, own: u8, known: &mut Vec<u8>) -> Result<(), StoreError> {
    let there = script.load(HEAD_NAME).map_err(crate::tiered::errors::store_error)?;
    let (bytes, was) = there.expect("HEAD is never removed");
    let head = Head::parse(&bytes)?;
    let (before, first) = (head.epoch, head.slot);
    let led = lead::swap(&Own(own), &**script, Some((head, was)), [own; 16])?;
    let led = led.ok_or_else(|| refused("another took the lead".to_owned()))?;
    let epoch = if script.without == Without::Epoch { before } else { led.head.epoch };
    let slots = Slots::new(Arc::clone(script) as _, epoch, first, Duration::ZERO);
    let mut found = Vec::new();
    slots.replay(&mut |entry| {
        found.push(entry[0]);
        Ok::<_, StoreError>(())
    })?;
    *known = found;
    let placed = place(&slots, own);
    slots.make(&placed, &|_| {})?;
    acknowledge(script, &slots, placed, known)
}

fn read_beside(script: &Arc<Script>, known: &mut Vec<u8>) -> Result<(), StoreError> {
    let there = script.load(HEAD_NAME).map_err(crate::tiered::errors::store_error)?;
    let head = Head::parse(&there.expect("HEAD is never removed").0)?;
    let slots = Slots::new(Arc::clone(script) as _, head.epoch, head.slot, Duration::ZERO);
    slots.begin_to_read();
    slots.read_on(&mut |entry| {
        known.push(entry[0]);
        Ok::<_, StoreError>(())
    })
}

/// Does a request under its condition.
fn apply(objects: &mut Objects, request: &Request, without: Without) -> Answer {
    let (name, bytes, is_fulfilled) = match request {
        Request::Load(name) => return Answer::Found(objects.get(name).cloned()),
        Request::Create(name, bytes) => (name, bytes, !objects.contains_key(name)),
        Request::Swap(name, was, bytes) => {
            let is_as_was = objects.get(name).is_some_and(|now| version(now) == *was);
            (name, bytes, is_as_was || without == Without::Condition)
        }
    };
    if !is_fulfilled {
        return Answer::Refused;
    }
    objects.insert(name.clone(), bytes.clone());
    Answer::Done(version(bytes))
}

/// The bucket, and how far the actors are.
#[derive(Clone)]
struct World {
    objects: Objects,
    /// Puts that may yet be done.
    late: Vec<Request>,
    /// The number of faults that may still happen.
    faults: u32,
    answers: Vec<Vec<Answer>>,
    runs: Vec<Run>,
}

impl World {
    fn begin(actors: &[Actor], faults: u32, without: Without) -> World {
        let slot = Some(SlotId { epoch: 1, number: 0 });
        let head = Head { generation: 1, epoch: 1, slot, ..Head::default() };
        World {
            objects: BTreeMap::from([(HEAD_NAME.to_owned(), head.encode())]),
            late: Vec::new(),
            faults,
            answers: vec![Vec::new(); actors.len()],
            runs: actors.iter().map(|actor| run(*actor, &[], None, without)).collect(),
        }
    }

    /// Stands for it among those that were seen.
    fn key(&self) -> u64 {
        hash((&self.objects, &self.late, self.faults, &self.answers))
    }

    /// Stands for what is to hold in it.
    fn view(&self) -> u64 {
        let known: Vec<&Vec<u8>> = self.runs.iter().map(|run| &run.known).collect();
        hash((&self.objects, known))
    }

    /// The world once an actor's request has met its fate; `None` if it can't.
    fn step(
        &self,
        (position, actor): (usize, Actor),
        fate: Fate,
        without: Without,
    ) -> Option<World> {
        let request = self.runs[position].next.clone()?;
        let mut after = self.clone();
        if fate != Fate::Done {
            after.faults = after.faults.checked_sub(1)?;
        }
        let answer = match (fate, &request) {
            (Fate::Done, _) => apply(&mut after.objects, &request, without),
            (_, Request::Load(_)) => return None,
            (Fate::ReplyLost, _) => {
                apply(&mut after.objects, &request, without);
                Answer::Unknown
            }
            (Fate::NotDone, _) => Answer::Unknown,
            (Fate::Late, _) => {
                after.late.push(request);
                Answer::Unknown
            }
        };
        after.answers[position].push(answer);
        after.runs[position] = run(actor, &after.answers[position], None, without);
        Some(after)
    }

    /// Does what is late.
    fn do_late(&self, position: usize, without: Without) -> World {
        let mut after = self.clone();
        let request = after.late.remove(position);
        apply(&mut after.objects, &request, without);
        after
    }

    /// All that may come next.
    fn following(&self, actors: &[Actor], without: Without) -> Vec<World> {
        let mut next: Vec<World> =
            (0..self.late.len()).map(|position| self.do_late(position, without)).collect();
        for (position, actor) in actors.iter().enumerate() {
            for fate in [Fate::Done, Fate::ReplyLost, Fate::NotDone, Fate::Late] {
                next.extend(self.step((position, *actor), fate, without));
            }
        }
        next
    }

    /// Returns the slots that the next successor finds.
    fn found(&self, without: Without) -> Vec<u8> {
        run(LOOKS, &[], Some(self.objects.clone()), without).known
    }

    /// What a reader finds.
    fn read(&self, without: Without) -> Vec<u8> {
        run(Actor::Reader, &[], Some(self.objects.clone()), without).known
    }

    /// Whether all that each actor and a reader know is there, as they know it.
    fn holds(&self, without: Without) -> bool {
        let found = self.found(without);
        let known = self.runs.iter().map(|run| &run.known);
        known.chain([&self.read(without)]).all(|known| found.starts_with(known))
    }
}

/// Explores all histories; how many states there are, or one in which something is lost.
fn explore(actors: &[Actor], faults: u32, without: Without) -> Result<usize, String> {
    let begin = World::begin(actors, faults, without);
    let (mut seen, mut open) = (HashSet::from([begin.key()]), vec![begin]);
    let mut views = HashSet::new();
    let mut reads: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut read = |world: &World| {
        let found = reads.entry(hash(&world.objects)).or_insert_with(|| world.read(without));
        found.clone()
    };
    while let Some(world) = open.pop() {
        if views.insert(world.view()) && !world.holds(without) {
            let known: Vec<&Vec<u8>> = world.runs.iter().map(|run| &run.known).collect();
            return Err(format!("{known:?} known, {:?} found", world.found(without)));
        }
        let before = read(&world);
        for next in world.following(actors, without) {
            let after = read(&next);
            if !after.starts_with(&before) {
                return Err(format!("a reader has {before:?}, and then {after:?}"));
            }
            if seen.insert(next.key()) {
                open.push(next);
            }
        }
    }
    Ok(seen.len())
}

const FIRST: [Actor; 3] = [Actor::Leader, Actor::Successor(1), Actor::Successor(2)];
const LATER: [Actor; 3] = [Actor::Successor(1), Actor::Successor(2), Actor::Successor(3)];

#[test]
fn in_every_small_history_what_is_known_is_there() {
    let two = [(&FIRST[..2], 1), (&FIRST[..2], 2), (&LATER[..2], 1)];
    let three = [(&FIRST[..], 0), (&LATER[..], 0)];
    for (actors, faults) in two.into_iter().chain(three) {
        let states = explore(actors, faults, Without::Nothing);
        assert!(states.as_ref().is_ok_and(|count| 1_000 < *count), "{actors:?}: {states:?}");
    }
}

#[test]
fn without_one_of_its_means_something_is_lost() {
    let each =
        [Without::Epoch, Without::Tombstone, Without::Condition, Without::LookUp, Without::Order];
    for without in each {
        let histories = [&FIRST[..], &LATER[..]].map(|actors| explore(actors, 1, without));
        let lost = histories.into_iter().find_map(Result::err);
        let lost = lost.unwrap_or_else(|| panic!("without {without:?} nothing is lost"));
        eprintln!("without {without:?}: {lost}");
    }
}
