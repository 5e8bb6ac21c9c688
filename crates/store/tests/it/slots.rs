//! Goal: acknowledged slots of the log are handed over to each later leader, once and in order; a
//! deposed leader acknowledges nothing once another leads. Method: leaders put numbers in a
//! simulated bucket that refuses, loses, delays and doubles. Those that were deposed, or are about
//! to be, put on in the midst of others' calls to the bucket, several slots side by side and in any
//! order, so that a put falls before and behind each step of taking over; one seed decides all.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use frond_store::bucket::{Bucket, BucketError, Created, ObjectPart, ObjectVersion, Swapped};
use frond_store::io::Machine;
use frond_store::local::LocalStore;
use frond_store::tiered::{LogPlace, PlacedSlots, TieredDisk, TieredOptions};
use frond_store::{ChunkStore, StoreError};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{DepotFaults, Random, SimDepot, SimDisk};

use crate::{SMALL, blob};

/// A bucket before each call to which something else happens.
struct Meddled {
    bucket: SimDepot,
    meddle: Mutex<Box<dyn FnMut() + Send>>,
}

impl Meddled {
    fn calm(bucket: &SimDepot) -> Arc<Meddled> {
        Arc::new(Meddled { bucket: bucket.other_client(), meddle: Mutex::new(Box::new(|| {})) })
    }

    fn inner(&self) -> &SimDepot {
        (self.meddle.lock().unwrap())();
        &self.bucket
    }
}

impl Bucket for Meddled {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        self.inner().create(name, bytes)
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError> {
        self.inner().swap(name, was, bytes)
    }

    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError> {
        self.inner().load(name)
    }

    fn read_many(&self, parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, BucketError> {
        self.inner().read_many(parts)
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        self.inner().remove(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, BucketError> {
        self.inner().list(prefix)
    }

    fn wait(&self, _attempt: u32) {}
}

/// One that led once, and what it acknowledged.
struct Leader {
    home: Arc<TieredDisk>,
    /// All that it gave a place, in their order.
    placed: Vec<u64>,
    /// The groups that aren't acknowledged yet, and whether they were put.
    under_way: VecDeque<(u64, PlacedSlots, bool)>,
    acknowledged: Vec<u64>,
    /// A put failed: it acknowledges nothing any more.
    has_failed: bool,
}

impl Leader {
    fn new(home: Arc<TieredDisk>) -> Leader {
        let (placed, acknowledged) = (Vec::new(), Vec::new());
        Leader { home, placed, under_way: VecDeque::new(), acknowledged, has_failed: false }
    }

    /// Puts numbers in any order, some of which are on their way, until it could acknowledge one
    /// more, unless a put has failed before.
    fn put(&mut self, number: &mut u64, random: &mut Random) {
        let before = self.acknowledged.len();
        while !self.has_failed && self.acknowledged.len() == before {
            if self.under_way.is_empty() || self.under_way.len() < 4 && random.one_in(2) {
                self.place(number, random);
            } else {
                self.make_one(random);
            }
        }
    }

    /// Gives places to one number, or to two that go together.
    fn place(&mut self, number: &mut u64, random: &mut Random) {
        let entry = |number: u64| (number, Bytes::from(number.to_le_bytes().to_vec()));
        let count = 1 + u64::from(random.one_in(4));
        let numbers = *number + 1..=*number + count;
        *number += count;
        let slots = self.home.slots().expect("the log lies there");
        let placed = slots.place(numbers.clone().map(entry).collect());
        self.placed.extend(numbers);
        self.under_way.push_back((*number, placed, false));
    }

    /// Puts one of those that have places, and acknowledges what may be.
    fn make_one(&mut self, random: &mut Random) {
        let slots = Arc::clone(self.home.slots().expect("the log lies there"));
        let left = self.under_way.iter_mut().filter(|(_, _, is_there)| !is_there);
        let mut left: Vec<_> = left.collect();
        let position = random.below(left.len());
        let (_, placed, is_there) = &mut left[position];
        match slots.make(placed, &|_| {}) {
            Ok(()) => *is_there = true,
            Err(_) => self.has_failed = true,
        }
        self.acknowledge();
    }

    /// Acknowledges what is there with all before it. Behind one that isn't, and never will be,
    /// nothing is.
    fn acknowledge(&mut self) {
        let slots = Arc::clone(self.home.slots().expect("the log lies there"));
        let mut is_behind_gap = false;
        while let Some((number, placed, is_there)) =
            self.under_way.pop_front_if(|(_, _, is_there)| *is_there || self.has_failed)
        {
            is_behind_gap |= !is_there;
            if !is_there {
                continue;
            }
            let outcome = slots.await_before(placed);
            assert_eq!(outcome.is_err(), is_behind_gap, "{number}: {outcome:?}");
            self.acknowledged.extend(outcome.is_ok().then_some(number));
        }
    }
}

/// Takes the lead; what it was handed over.
fn take(
    disk: &SimDisk,
    bucket: Arc<Meddled>,
) -> Result<(Arc<TieredDisk>, Machine, Vec<u64>), StoreError> {
    let machine = disk.machine();
    let options = TieredOptions {
        place: "sim://bucket".to_owned(),
        cache_bytes: 1 << 20,
        local_bytes_max: 16 << 10,
        take_over: true,
        clone_of: None,
        pin_lease: None,
        log: LogPlace::Bucket,
        linger: Duration::ZERO,
        keep_slots: Duration::ZERO,
    };
    let home = Arc::new(TieredDisk::open(&machine, bucket, options)?);
    let mut found = Vec::new();
    home.slots().expect("the log lies there").replay(&mut |entry| {
        found.push(u64::from_le_bytes(entry[..].try_into().expect("a number")));
        Ok::<_, StoreError>(())
    })?;
    let machine = Machine { disk: Arc::clone(&home) as _, ..machine };
    Ok((home, machine, found))
}

/// Has HEAD get a manifest with a root that has all up to `through`.
fn send(home: &TieredDisk, machine: &Machine, bytes: &[u8], through: u64) {
    let store = LocalStore::open(machine, SMALL).expect("the disk works");
    let root = blob(bytes);
    store.put_many(std::slice::from_ref(&root)).expect("the disk works");
    home.slots().expect("the log lies there").note_root(root.hash(), through);
    for name in ["engine", "engine.whole"] {
        let was = store.root(name).expect("the disk works");
        store.swap_root(name, was, Some(root.hash())).expect("the bucket works");
    }
}

/// The first that leads: HEAD has a manifest, and says where the log begins.
fn begin(disk: &SimDisk, bucket: &SimDepot) -> Arc<TieredDisk> {
    let (home, machine, _) = take(disk, Meddled::calm(bucket)).expect("it is new");
    send(&home, &machine, b"a root", 0);
    assert!(home.is_log_begun());
    home
}

/// Leaders follow one another, the old ones going on. Returns how many took over.
fn follow_one_another(mut random: Random, faults: DepotFaults) -> usize {
    let bucket = SimDepot::new(random.next());
    let home = begin(&SimDisk::new(random.next()), &bucket);
    bucket.set_faults(faults);
    let world = Arc::new(Mutex::new((vec![Leader::new(home)], 0_u64)));
    let mut before: Vec<u64> = Vec::new();
    for _ in 0..6 {
        {
            let (leaders, number) = &mut *world.lock().unwrap();
            let last = leaders.last_mut().expect("there is one");
            (0..random.below(6)).for_each(|_| last.put(number, &mut random));
        }
        let meddled = Meddled::calm(&bucket);
        let (others, mut chance) = (Arc::clone(&world), Random::new(random.next()));
        // With one for each read, a takeover would never come to the end.
        let mut left = 8;
        *meddled.meddle.lock().unwrap() = Box::new(move || {
            if left == 0 || chance.one_in(2) {
                return;
            }
            left -= 1;
            let (leaders, number) = &mut *others.lock().unwrap();
            let position = chance.below(leaders.len());
            leaders[position].put(number, &mut chance);
        });
        let Ok((home, _, found)) = take(&SimDisk::new(random.next()), meddled.clone()) else {
            continue;
        };
        *meddled.meddle.lock().unwrap() = Box::new(|| {});
        let (leaders, number) = &mut *world.lock().unwrap();
        // It leads: nothing of what the others put from now on counts.
        let acknowledged: Vec<u64> =
            leaders.iter().flat_map(|leader| leader.acknowledged.iter().copied()).collect();
        for leader in leaders.iter_mut() {
            (0..3).for_each(|_| leader.put(number, &mut random));
            assert!(leader.has_failed, "a deposed leader acknowledges");
            let taken = leader.placed.iter().take_while(|number| found.contains(number)).count();
            let is_void = |number| !found.contains(number);
            assert!(leader.placed[taken..].iter().all(is_void), "behind a gap: {found:?}");
        }
        assert!(
            found.is_sorted_by(|left, right| left < right),
            "not in their order, or doubled: {found:?}"
        );
        assert!(found.starts_with(&before), "{found:?} after {before:?}");
        for number in acknowledged {
            assert!(found.contains(&number), "{number} is lost: {found:?}");
        }
        before = found;
        leaders.push(Leader::new(home));
    }
    let leader_count = world.lock().unwrap().0.len();
    leader_count - 1
}

#[test]
fn acknowledged_writes_are_taken_over_and_deposed_writers_refused() {
    let mut count = 0;
    for_seeds(200, |random| count += follow_one_another(random, DepotFaults::default()));
    assert_met("take-overs", count, 600);
}

#[test]
fn a_bucket_that_answers_badly_changes_nothing_of_that() {
    let mut count = 0;
    for_seeds(200, |random| count += follow_one_another(random, DepotFaults::MANY));
    assert_met("take-overs", count, 20);
}

/// Several groups are on their way at once, and the one that is reported first may be any of them.
#[test]
fn each_that_is_on_its_way_says_why_nothing_is_acknowledged() {
    let depot = SimDepot::new(1);
    let home = begin(&SimDisk::new(2), &depot);
    let slots = home.slots().expect("the log lies there");
    let mut placed = Vec::new();
    for number in 1..=3_u64 {
        let entry = Bytes::from(number.to_le_bytes().to_vec());
        placed.push(slots.place(vec![(number, entry)]));
    }
    take(&SimDisk::new(3), Meddled::calm(&depot)).expect("it takes over");
    let taken = placed.remove(0);
    let mut errors = vec![slots.make(&taken, &|_| {}).expect_err("its slot is closed")];
    for behind in placed {
        slots.make(&behind, &|_| {}).expect("nothing lies there");
        errors.push(slots.await_before(behind).expect_err("behind a gap"));
    }
    for error in errors {
        assert!(error.to_string().contains("another directory took the lead"), "{error}");
    }
}

#[test]
fn a_slot_that_is_missing_or_changed_is_damage() {
    let bucket = SimDepot::new(1);
    let mut leader = Leader::new(begin(&SimDisk::new(2), &bucket));
    let slots = Arc::clone(leader.home.slots().expect("the log lies there"));
    for number in 1..=5_u64 {
        let placed = slots.place(vec![(number, number.to_le_bytes().to_vec().into())]);
        slots.make(&placed, &|_| {}).expect("the bucket works");
        slots.await_before(placed).expect("all before it are there");
        leader.acknowledged.push(number);
    }
    let objects = bucket.objects();
    for (position, name) in ["0", "3"].iter().enumerate() {
        let name = format!("lines/main/log/1/{name}");
        let bits = 8 * objects[&name].len();
        let bit = (position * 7 + 300) % bits;
        bucket.flip_bit(&name, bit);
        let taken = take(&SimDisk::new(3), Meddled::calm(&bucket));
        assert!(matches!(taken.err(), Some(StoreError::Damaged { .. })), "{name}");
        bucket.flip_bit(&name, bit);
    }
    let (_, _, found) = take(&SimDisk::new(4), Meddled::calm(&bucket)).expect("it is whole again");
    assert_eq!(found, leader.acknowledged);
}

/// The n-th reply arrives damaged, so many times: HEAD comes first, then slots.
#[test]
fn replies_damaged_once_are_requested_again() {
    for place in 0..6 {
        for (times, is_taken) in [(1, true), (2, true), (9, false)] {
            let bucket = SimDepot::new(1);
            let leader = begin(&SimDisk::new(2), &bucket);
            let slots = leader.slots().expect("the log lies there");
            for number in 1..=3_u64 {
                let placed = slots.place(vec![(number, number.to_le_bytes().to_vec().into())]);
                slots.make(&placed, &|_| {}).expect("the bucket works");
                slots.await_before(placed).expect("all before it are there");
            }
            let meddled = Meddled::calm(&bucket);
            let (garbles, mut calls) = (bucket.other_client(), 0);
            *meddled.meddle.lock().unwrap() = Box::new(move || {
                if calls == place {
                    garbles.garble_objects(times);
                }
                calls += 1;
            });
            let taken = take(&SimDisk::new(3), meddled);
            match taken {
                Ok((_, _, found)) => assert_eq!(found, [1, 2, 3], "{place} {times}"),
                Err(error) => assert!(!is_taken, "{place} {times}: {error}"),
            }
        }
    }
}

#[test]
fn slots_after_a_gap_go_and_its_tombstone_stays() {
    let bucket = SimDepot::new(1);
    let first = begin(&SimDisk::new(2), &bucket);
    let slots = first.slots().expect("the log lies there");
    let place = |number: u64| slots.place(vec![(number, number.to_le_bytes().to_vec().into())]);
    let [one, two, three, four] = [1, 2, 3, 4].map(place);
    for placed in [&one, &three, &four] {
        slots.make(placed, &|_| {}).expect("the bucket works");
    }
    slots.await_before(one).expect("it is the first");
    let (second, machine, found) =
        take(&SimDisk::new(3), Meddled::calm(&bucket)).expect("it takes over");
    assert_eq!(found, [1]);
    send(&second, &machine, b"another root", 1);
    let (_, _, found) = take(&SimDisk::new(4), Meddled::calm(&bucket)).expect("it takes over");
    assert_eq!(found, [0; 0]);
    let objects = bucket.objects();
    let names: Vec<&str> =
        objects.keys().filter_map(|it| it.strip_prefix("lines/main/log/")).collect();
    assert_eq!(names, ["1/1", "2/0"]);
    slots.make(&two, &|_| {}).expect_err("a slot that was closed");
    slots.await_before(three).expect_err("it lies behind the gap");
}
