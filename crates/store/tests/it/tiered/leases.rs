//! Goal: a clone that is served, or opened now and then, keeps what it relies on, however long that
//! is; one that is gone loses its pin after its time, and the source what only that kept; one that
//! comes back has what is left, and says what isn't. Method: two lines below two prefixes of one
//! simulated bucket, whose clocks are set on by days; each of the two comes between the other's
//! reading and writing, or is cut off at each call.

use frond_store::tiered::PinState;

use super::pins::{CLONE, Line, Part, SOURCE, collect, objects, put};
use super::*;

const HOUR_MICROS: i64 = 60 * 60 * 1_000_000;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;
/// A lease has so many days.
const LEASE_DAYS: i64 = 30;

/// A source and what it had when it was cloned, which is all that the clone has.
struct Cloned {
    random: Random,
    bucket: SimDepot,
    source: Line,
    store: Arc<LocalStore>,
    chunks: Vec<Chunk>,
    /// The objects that the clone relies on.
    pinned: Vec<String>,
    clone: Line,
}

impl Cloned {
    fn new(mut random: Random) -> Cloned {
        let bucket = SimDepot::new(random.next());
        let source = Line::new(random.next(), &bucket, SOURCE);
        let store = source.open().unwrap();
        let chunks = random_chunks(&mut random, 60);
        put(&store, &chunks);
        let pinned = objects(&bucket, "source/packs/");
        let clone = Line::clone_of(random.next(), &bucket, SOURCE);
        drop(clone.open().unwrap());
        let mut cloned = Cloned { random, bucket, source, store, chunks, pinned, clone };
        // Its swap shows the leader the pin, at which it looks as it sends again.
        cloned.send();
        cloned.send();
        cloned
    }

    /// A store for a moment in which there is none.
    fn stand_in(bucket: &SimDepot) -> Arc<LocalStore> {
        Line::new(1, bucket, "sim://none").open().unwrap()
    }

    /// Has the clone served; the source has seen that its pin was renewed.
    fn serve(&mut self) -> Arc<LocalStore> {
        let copy = self.clone.open().unwrap();
        self.pass(2 * HOUR_MICROS);
        self.send();
        copy
    }

    fn send(&mut self) {
        put(&self.store, &random_chunks(&mut self.random, 3));
    }

    /// The source sends each day; so old the clone is then, too.
    fn pass_days(&mut self, days: i64) {
        for _ in 0..days {
            self.pass(DAY_MICROS);
            self.send();
        }
    }

    fn pass(&self, micros: i64) {
        self.source.node.clock.step(micros);
        self.clone.node.clock.step(micros);
    }

    /// Drops all that the clone relies on.
    fn collect(&mut self) {
        let kept = random_chunks(&mut self.random, 10);
        collect(&self.store, put(&self.store, &kept));
        self.send();
    }

    fn has_pinned(&self) -> bool {
        let there = objects(&self.bucket, "source/packs/");
        self.pinned.iter().all(|name| there.contains(name))
    }

    fn states(&self) -> Vec<PinState> {
        self.source.pins().iter().map(|pin| pin.state).collect()
    }

    /// Days for which the source has seen no renewal.
    fn silent_days(&self) -> i64 {
        let [pin] = &self.source.pins()[..] else { panic!("one pin") };
        pin.silent_micros / DAY_MICROS
    }
}

#[test]
fn the_pin_of_a_clone_that_is_gone_is_let_go() {
    let mut it = Cloned::new(Random::fresh());
    it.collect();
    it.pass_days(LEASE_DAYS - 1);
    assert_eq!((it.silent_days(), it.has_pinned()), (LEASE_DAYS - 1, true));
    assert_eq!(it.store.tend_tier(), Vec::<String>::new());
    it.pass_days(1);
    assert_eq!(it.states(), [PinState::LetGo]);
    let notices = it.store.tend_tier();
    let is_said = |notice: &String| notice.contains(CLONE) && notice.contains("30 days");
    assert!(notices.len() == 1 && is_said(&notices[0]), "{notices:?}");
    assert_eq!(it.store.tend_tier(), Vec::<String>::new());
    let there = objects(&it.bucket, "source/packs/");
    assert!(it.pinned.iter().all(|name| !there.contains(name)), "{there:?}");
    // What says so is removed by hand, or by a clone that comes back.
    let pin = it.source.pins()[0].clone();
    let chance = frond_testkit::SimChance::new(7);
    assert!(frond_store::tiered::remove_pin(&chance, &it.source.part, &pin.id).unwrap());
    assert_eq!(objects(&it.bucket, "source/pins/"), Vec::<String>::new());
}

/// It is served, without writing; or opened now and then.
#[test]
fn a_clone_that_is_served_keeps_its_pin() {
    for is_served in [true, false] {
        let mut it = Cloned::new(Random::fresh());
        it.collect();
        let copy = is_served.then(|| it.clone.open().unwrap());
        for round in 0..4 {
            it.pass_days(LEASE_DAYS - 2);
            match &copy {
                Some(copy) => {
                    assert_eq!(copy.tend_tier(), Vec::<String>::new());
                    let calls = it.clone.part.bucket.calls();
                    copy.tend_tier();
                    assert_eq!(it.clone.part.bucket.calls(), calls, "it isn't due again");
                }
                None => drop(it.clone.open().unwrap()),
            }
            assert_eq!(it.silent_days(), 0, "round {round}");
        }
        assert!(it.has_pinned());
        assert_eq!(it.store.tend_tier(), Vec::<String>::new());
        assert_stored(
            &*it.clone.taken_by(it.random.next(), &it.bucket).open().unwrap(),
            &it.chunks,
        );
    }
}

/// A reader of a clone renews its pins, too: nothing else may run for months.
#[test]
fn a_clone_that_is_only_read_keeps_its_pin() {
    let mut it = Cloned::new(Random::fresh());
    it.collect();
    let clock = Arc::new(it.clone.node.clock.clone());
    let reader = Node::new(it.random.next(), &it.bucket);
    let machine = Machine { clock, ..reader.disk.machine() };
    let options = TieredOptions { place: CLONE.to_owned(), ..reader.tiered_options() };
    let part = Arc::new(Part::of(&it.bucket, CLONE));
    let tiered = TieredDisk::open_reader(&machine, part, options).unwrap();
    let machine = Machine { disk: Arc::new(tiered), ..machine };
    let store = LocalStore::open(&machine, SMALL).unwrap();
    for _ in 0..3 {
        it.pass_days(LEASE_DAYS - 2);
        assert_eq!(store.tend_tier(), Vec::<String>::new());
        assert_eq!(it.silent_days(), 0);
    }
    assert_stored(&*store, &it.chunks);
    // One whose pin was let go says so, and makes none.
    it.pass_days(LEASE_DAYS + 1);
    let notices = store.tend_tier();
    assert!(notices.len() == 1 && notices[0].contains("counts no more"), "{notices:?}");
    assert_eq!(it.states(), [PinState::LetGo]);
}

/// Neither clocks that disagree nor a source that is away take time from a clone.
#[test]
fn time_in_which_the_source_does_not_look_does_not_count() {
    let mut it = Cloned::new(Random::fresh());
    it.collect();
    it.pass_days(LEASE_DAYS - 1);
    it.store = it.source.again_after(it.store, 3 * LEASE_DAYS * DAY_MICROS);
    it.send();
    assert_eq!((it.states(), it.has_pinned()), (vec![PinState::Counts], true));
    assert_eq!(it.silent_days(), LEASE_DAYS - 1);
    // It sends nothing for longer than a lease, in whose middle the clone is opened.
    it.pass((LEASE_DAYS - 3) * DAY_MICROS);
    drop(it.clone.open().unwrap());
    it.pass((LEASE_DAYS - 3) * DAY_MICROS);
    it.send();
    assert_eq!((it.states(), it.silent_days()), (vec![PinState::Counts], 0));
    it.pass_days(LEASE_DAYS);
    assert_eq!(it.states(), [PinState::LetGo]);
}

impl Line {
    /// The line after its directory was closed for so long.
    fn again_after(&self, store: Arc<LocalStore>, micros: i64) -> Arc<LocalStore> {
        drop(store);
        self.node.clock.step(micros);
        self.open().unwrap()
    }
}

/// A directory that takes the lead of the source goes on counting.
#[test]
fn the_time_outlives_a_take_over_of_the_source() {
    let mut it = Cloned::new(Random::fresh());
    it.pass_days(LEASE_DAYS / 2);
    let successor = it.source.taken_by(it.random.next(), &it.bucket);
    (it.store, it.source) = (successor.open().unwrap(), successor);
    it.send();
    it.pass_days(LEASE_DAYS / 2 - 1);
    assert_eq!((it.states(), it.silent_days()), (vec![PinState::Counts], LEASE_DAYS - 1));
    it.pass_days(1);
    assert_eq!(it.states(), [PinState::LetGo]);
}

/// The leader has read a pin whose time is over, and the clone renews it before it is let go.
#[test]
fn a_renewal_that_comes_first_counts() {
    let mut it = Cloned::new(Random::fresh());
    let copy = it.serve();
    it.pass_days(LEASE_DAYS - 1);
    let served = Arc::clone(&copy);
    assert_eq!(it.silent_days(), LEASE_DAYS - 1);
    it.source.part.before_swap("pins/", move || {
        assert_eq!(served.tend_tier(), Vec::<String>::new());
    });
    it.pass_days(1);
    assert_eq!((it.states(), it.silent_days()), (vec![PinState::Counts], 0));
    it.pass_days(LEASE_DAYS - 1);
    assert_eq!(it.states(), [PinState::Counts], "it has a whole lease from then on");
    it.pass_days(2);
    assert_eq!(it.states(), [PinState::LetGo]);
}

/// The clone has read a pin that counts, and its source lets go of that before it is renewed.
#[test]
fn a_letting_go_that_comes_first_is_noticed() {
    let mut it = Cloned::new(Random::fresh());
    let copy = it.serve();
    it.pass_days(LEASE_DAYS - 1);
    it.pass(DAY_MICROS);
    let (store, chunks) = (Arc::clone(&it.store), random_chunks(&mut it.random, 3));
    it.clone.part.before_swap("pins/", move || {
        put(&store, &chunks);
    });
    let notices = copy.tend_tier();
    assert!(notices.len() == 1 && notices[0].contains("another one keeps all"), "{notices:?}");
    it.collect();
    it.pass_days(2);
    assert_eq!((it.states(), it.has_pinned()), (vec![PinState::Counts], true));
    assert_stored(&*copy, &it.chunks);
    assert_eq!(copy.tend_tier(), Vec::<String>::new());
    // Its HEAD names the other pin from the next sending on.
    put(&copy, &random_chunks(&mut it.random, 3));
    assert_eq!(it.source.pins()[0].is_used, Some(true));
}

#[test]
fn a_clone_that_comes_back_has_another_pin_for_what_is_kept() {
    let mut it = Cloned::new(Random::fresh());
    it.pass_days(LEASE_DAYS + 1);
    assert_eq!(it.states(), [PinState::LetGo]);
    let copy = it.clone.open().unwrap();
    let notices = copy.tend_tier();
    assert!(notices.len() == 1 && notices[0].contains("another one keeps all"), "{notices:?}");
    let [pin] = &it.source.pins()[..] else { panic!("one pin") };
    assert_eq!((pin.state, pin.is_used), (PinState::Counts, Some(true)));
    it.collect();
    it.pass_days(2);
    assert!(it.has_pinned());
    assert_stored(&*copy, &it.chunks);
}

/// Of what only the clone needed, the source has removed what no other clone's pin names.
#[test]
fn a_clone_that_comes_back_too_late_says_what_is_lost() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(random.next());
    let source = Line::new(random.next(), &bucket, SOURCE);
    let store = source.open().unwrap();
    let (stays, goes) = (random_chunks(&mut random, 60), random_chunks(&mut random, 60));
    put(&store, &stays);
    let other = Line::new(random.next(), &bucket, "sim://other");
    let other = Line { clone_of: Some(SOURCE), ..other };
    let other_store = other.open().unwrap();
    put(&store, &goes);
    let clone = Line::clone_of(random.next(), &bucket, SOURCE);
    drop(clone.open().unwrap());
    let needed = objects(&bucket, "source/packs/").len();
    collect(&store, put(&store, &random_chunks(&mut random, 10)));
    for _ in 0..LEASE_DAYS + 2 {
        source.node.clock.step(DAY_MICROS);
        other.node.clock.step(DAY_MICROS);
        assert_eq!(other_store.tend_tier(), Vec::<String>::new());
        put(&store, &random_chunks(&mut random, 3));
    }
    let copy = clone.open().unwrap();
    let notices = copy.tend_tier();
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    let pins = source.pins();
    let pin = pins.iter().find(|pin| pin.place == CLONE).expect("it has another pin");
    assert_eq!((pins.len(), pin.state, pin.is_used), (2, PinState::Counts, Some(true)));
    let expected = format!("{} of the {needed} objects", needed - pin.objects);
    assert!(0 < pin.objects && pin.objects < needed && notice.contains(&expected), "{notice}");
    assert_stored(&*copy, &stays);
    assert!(!copy.take_findings().is_empty());
    assert!(goes.iter().any(|chunk| copy.get(chunk.hash()).is_err()));
    // It doesn't say it every few hours.
    clone.node.clock.step(DAY_MICROS);
    assert_eq!(copy.tend_tier(), Vec::<String>::new());
}

/// The source is cut off at each of its calls in the sending that lets go of a pin: another opening
/// goes on.
#[test]
fn a_letting_go_that_is_cut_off_is_gone_on_with() {
    for cut in 0.. {
        let mut it = Cloned::new(Random::new(cut));
        it.pass_days(LEASE_DAYS - 1);
        it.pass(DAY_MICROS);
        it.source.part.bucket.cut_after(cut);
        let is_sent = it.store.put_many(&random_chunks(&mut it.random, 3)).is_ok()
            && swap(&it.store, it.chunks[0].hash()).is_ok();
        let was_cut = it.source.part.bucket.is_cut();
        drop(std::mem::replace(&mut it.store, Cloned::stand_in(&it.bucket)));
        it.bucket.settle();
        it.source.node = it.source.node.again(it.source.node.disk.kill(), &it.bucket);
        it.source.part = Part::of(&it.bucket, SOURCE);
        it.store = it.source.open().unwrap();
        it.send();
        it.pass_days(2);
        assert_eq!(it.states(), [PinState::LetGo], "cut at {cut}");
        it.collect();
        it.pass_days(1);
        assert!(!it.has_pinned(), "cut at {cut}");
        if is_sent && !was_cut {
            return;
        }
    }
}

/// A clone whose pin was let go is cut off at each of its calls as it comes back.
#[test]
fn a_return_that_is_cut_off_begins_again() {
    for cut in 0.. {
        let mut it = Cloned::new(Random::new(cut));
        it.pass_days(LEASE_DAYS + 1);
        it.clone.part.bucket.cut_after(cut);
        let is_open = it.clone.open().is_ok();
        let was_cut = it.clone.part.bucket.is_cut();
        it.bucket.settle();
        it.clone.node = it.clone.node.again(it.clone.node.disk.kill(), &it.bucket);
        it.clone.part = Part::of(&it.bucket, CLONE);
        it.send();
        let copy = it.clone.open().unwrap();
        it.collect();
        it.pass_days(2);
        assert!(it.has_pinned(), "cut at {cut}");
        assert!(it.source.pins().iter().any(|pin| pin.is_used == Some(true)), "cut at {cut}");
        assert_stored(&*copy, &it.chunks);
        if is_open && !was_cut {
            return;
        }
    }
}

/// Whatever the bucket does with replies and puts, a clone that was renewed within its lease has
/// all that it had.
#[test]
fn in_a_busy_bucket_a_renewal_is_worth_a_lease() {
    for_seeds(20, |random| {
        let mut it = Cloned::new(random);
        let copy = it.clone.open().unwrap();
        it.collect();
        // The days of the source since the pin was last renewed, as its clone knows.
        let mut silent = 0;
        for _ in 0..40 {
            let days = it.random.below(6) as i64;
            it.pass(days * DAY_MICROS);
            silent += days;
            if LEASE_DAYS <= silent {
                break;
            }
            it.bucket.set_faults(DepotFaults::MANY);
            if it.random.one_in(2) && copy.tend_tier().is_empty() && 0 < days {
                silent = 0;
            }
            let _ = it.store.put_many(&random_chunks(&mut it.random, 3));
            let _ = it.store.sync();
            it.bucket.set_faults(DepotFaults::default());
            it.bucket.settle();
            it.send();
            assert!(it.has_pinned(), "{silent} days after its renewal");
        }
        assert_stored(&*copy, &it.chunks);
    });
}
