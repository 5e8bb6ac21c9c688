//! Goal: whatever was acknowledged as a slot of the log is handed over to each that takes over
//! later, once and in its order; who was deposed acknowledges nothing once another leads. Method:
//! leaders put numbers in a simulated bucket that refuses, loses, delays and doubles. Those that
//! were deposed, or are about to be, put on in the midst of others' calls to the bucket, so that a
//! put falls before and behind each step of taking over; one seed decides all.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use frond_store::depot::{Created, Depot, DepotError, ObjectPart, ObjectVersion, Swapped};
use frond_store::home::{HomeDisk, HomeOptions, LogPlace};
use frond_store::io::Machine;
use frond_store::local::LocalStore;
use frond_store::{ChunkStore, StoreError};
use frond_testkit::random::for_seeds;
use frond_testkit::{DepotFaults, Random, SimDepot, SimDisk};

use crate::{SMALL, blob};

/// A bucket before each call to which something else happens.
struct Meddled {
    depot: SimDepot,
    meddle: Mutex<Box<dyn FnMut() + Send>>,
}

impl Meddled {
    fn calm(depot: &SimDepot) -> Arc<Meddled> {
        Arc::new(Meddled { depot: depot.other_client(), meddle: Mutex::new(Box::new(|| {})) })
    }

    fn inner(&self) -> &SimDepot {
        (self.meddle.lock().unwrap())();
        &self.depot
    }
}

impl Depot for Meddled {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, DepotError> {
        self.inner().create(name, bytes)
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, DepotError> {
        self.inner().swap(name, was, bytes)
    }

    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, DepotError> {
        self.inner().load(name)
    }

    fn read_many(&self, parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, DepotError> {
        self.inner().read_many(parts)
    }

    fn remove(&self, name: &str) -> Result<(), DepotError> {
        self.inner().remove(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, DepotError> {
        self.inner().list(prefix)
    }

    fn wait(&self, _attempt: u32) {}
}

/// One that led once, and what it acknowledged.
struct Leader {
    home: Arc<HomeDisk>,
    acknowledged: Vec<u64>,
    /// A put failed: it puts no more.
    has_failed: bool,
}

impl Leader {
    /// Puts the next number, unless a put has failed before.
    fn put(&mut self, number: &mut u64) {
        if self.has_failed {
            return;
        }
        *number += 1;
        let entry = Bytes::from(number.to_le_bytes().to_vec());
        let slots = self.home.slots().expect("the log lies there");
        match slots.put(entry, *number, &|_| {}) {
            Ok(()) => self.acknowledged.push(*number),
            Err(_) => self.has_failed = true,
        }
    }
}

/// Takes the lead; what it was handed over.
fn take(
    disk: &SimDisk,
    depot: Arc<Meddled>,
) -> Result<(Arc<HomeDisk>, Machine, Vec<u64>), StoreError> {
    let machine = disk.machine();
    let options = HomeOptions {
        place: "sim://depot".to_owned(),
        cache_bytes: 1 << 20,
        local_bytes_max: 16 << 10,
        take_over: true,
        log: LogPlace::Bucket,
    };
    let home = Arc::new(HomeDisk::open(&machine, depot, options)?);
    let mut found = Vec::new();
    home.slots().expect("the log lies there").replay(&mut |entry| {
        found.push(u64::from_le_bytes(entry[..].try_into().expect("a number")));
        Ok::<_, StoreError>(())
    })?;
    let machine = Machine { disk: Arc::clone(&home) as _, ..machine };
    Ok((home, machine, found))
}

/// The first that leads: HEAD has a manifest, and says where the log begins.
fn begin(disk: &SimDisk, depot: &SimDepot) -> Arc<HomeDisk> {
    let (home, machine, _) = take(disk, Meddled::calm(depot)).expect("it is new");
    let store = LocalStore::open(&machine, SMALL).expect("the disk works");
    let root = blob(b"a root");
    store.put_many(std::slice::from_ref(&root)).expect("the disk works");
    home.slots().expect("the log lies there").note_root(root.hash(), 0);
    for name in ["engine", "engine.whole"] {
        store.swap_root(name, None, Some(root.hash())).expect("the bucket works");
    }
    assert!(home.is_log_begun());
    home
}

/// Leaders follow one another, the old ones going on.
fn follow_one_another(mut random: Random, faults: DepotFaults) {
    let depot = SimDepot::new(random.next());
    let home = begin(&SimDisk::new(random.next()), &depot);
    depot.set_faults(faults);
    let leader = |home| Leader { home, acknowledged: Vec::new(), has_failed: false };
    let world = Arc::new(Mutex::new((vec![leader(home)], 0_u64)));
    let mut before: Vec<u64> = Vec::new();
    for _ in 0..6 {
        {
            let (leaders, number) = &mut *world.lock().unwrap();
            let last = leaders.last_mut().expect("there is one");
            (0..random.below(6)).for_each(|_| last.put(number));
        }
        let meddled = Meddled::calm(&depot);
        let (others, mut chance) = (Arc::clone(&world), Random::new(random.next()));
        // With one for each read, who takes over would never come to the end.
        let mut left = 8;
        *meddled.meddle.lock().unwrap() = Box::new(move || {
            if left == 0 || chance.one_in(2) {
                return;
            }
            left -= 1;
            let (leaders, number) = &mut *others.lock().unwrap();
            let position = chance.below(leaders.len());
            leaders[position].put(number);
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
            (0..3).for_each(|_| leader.put(number));
            assert!(leader.has_failed, "a deposed leader acknowledges");
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
        leaders.push(leader(home));
    }
}

#[test]
fn what_was_acknowledged_is_handed_over_and_the_deposed_are_refused() {
    for_seeds(200, |random| follow_one_another(random, DepotFaults::default()));
}

#[test]
fn a_bucket_that_answers_badly_changes_nothing_of_that() {
    for_seeds(200, |random| follow_one_another(random, DepotFaults::MANY));
}

#[test]
fn a_slot_that_is_missing_or_changed_is_damage() {
    let depot = SimDepot::new(1);
    let mut leader = Leader {
        home: begin(&SimDisk::new(2), &depot),
        acknowledged: Vec::new(),
        has_failed: false,
    };
    let mut number = 0;
    (0..5).for_each(|_| leader.put(&mut number));
    let objects = depot.objects();
    for (position, name) in ["0", "3"].iter().enumerate() {
        let name = format!("lines/main/log/1/{name}");
        let bits = 8 * objects[&name].len();
        let bit = (position * 7 + 300) % bits;
        depot.flip_bit(&name, bit);
        let taken = take(&SimDisk::new(3), Meddled::calm(&depot));
        assert!(matches!(taken.err(), Some(StoreError::Damaged { .. })), "{name}");
        depot.flip_bit(&name, bit);
    }
    let (_, _, found) = take(&SimDisk::new(4), Meddled::calm(&depot)).expect("it is whole again");
    assert_eq!(found, leader.acknowledged);
}
