//! Goal: a clone in the same store copies no pack, reads what its source had, and keeps on reading
//! it whatever the source collects, erases or hands over; what no pin names goes as ever. Method:
//! two lines below two prefixes of one simulated bucket, whose replies are lost, or which is cut
//! off at each call.

use std::sync::Mutex;

use frond_store::tiered::{Pin, pins, remove_pin};
use frond_testkit::SimChance;

use super::*;

pub(super) const SOURCE: &str = "sim://source";
pub(super) const CLONE: &str = "sim://clone";
const FURTHER: &str = "sim://further";
/// More than readers have to leave what is dropped.
const LONG_MICROS: i64 = 80 * 60 * 1_000_000;

/// The part of a simulated bucket below a prefix.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) bucket: Arc<SimDepot>,
    prefix: String,
    /// What happens before an object is replaced, once.
    intruder: Arc<Mutex<Option<Intruder>>>,
}

/// Another's doing, before an object of this name's beginning is replaced.
type Intruder = (&'static str, Box<dyn FnOnce() + Send>);

impl Part {
    pub(super) fn of(bucket: &SimDepot, place: &str) -> Part {
        let prefix = format!("{}/", place.strip_prefix("sim://").expect("a place"));
        Part { bucket: Arc::new(bucket.other_client()), prefix, intruder: Arc::default() }
    }

    /// Has `what` happen before an object is replaced whose name begins so.
    pub(super) fn before_swap(&self, prefix: &'static str, what: impl FnOnce() + Send + 'static) {
        *self.intruder.lock().unwrap() = Some((prefix, Box::new(what)));
    }

    fn intrude(&self, name: &str) {
        let intruder =
            self.intruder.lock().unwrap().take_if(|(prefix, _)| name.starts_with(*prefix));
        if let Some((_, what)) = intruder {
            what();
        }
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

impl Bucket for Part {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        self.bucket.create(&self.name(name), bytes)
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError> {
        self.intrude(name);
        self.bucket.swap(&self.name(name), was, bytes)
    }

    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError> {
        self.bucket.load(&self.name(name))
    }

    fn read_many(&self, parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, BucketError> {
        let below = |part: &ObjectPart| ObjectPart {
            name: self.name(&part.name),
            range: part.range.clone(),
        };
        self.bucket.read_many(&parts.iter().map(below).collect::<Vec<_>>())
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        self.bucket.remove(&self.name(name))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, BucketError> {
        let names = self.bucket.list(&self.name(prefix))?;
        Ok(names.iter().filter_map(|it| it.strip_prefix(&self.prefix)).map(str::to_owned).collect())
    }

    fn beside(&self, place: &str) -> Option<Arc<dyn Bucket>> {
        let prefix = format!("{}/", place.strip_prefix("sim://")?);
        Some(Arc::new(Part { prefix, ..self.clone() }))
    }

    fn wait(&self, _attempt: u32) {}
}

/// A directory of a line.
pub(super) struct Line {
    pub(super) node: Node,
    pub(super) part: Part,
    pub(super) place: &'static str,
    pub(super) clone_of: Option<&'static str>,
}

impl Line {
    pub(super) fn new(seed: u64, bucket: &SimDepot, place: &'static str) -> Line {
        let (node, part) = (Node::new(seed, bucket), Part::of(bucket, place));
        Line { node, part, place, clone_of: None }
    }

    pub(super) fn clone_of(seed: u64, bucket: &SimDepot, source: &'static str) -> Line {
        Line { clone_of: Some(source), ..Line::new(seed, bucket, CLONE) }
    }

    /// A clone of the clone.
    fn further(seed: u64, bucket: &SimDepot) -> Line {
        Line { clone_of: Some(CLONE), ..Line::new(seed, bucket, FURTHER) }
    }

    /// Sends something after readers have left what isn't listed any more.
    fn send_later(&self, store: &LocalStore, random: &mut Random) {
        self.node.clock.step(LONG_MICROS);
        put(store, &random_chunks(random, 30));
    }

    /// Another directory, which takes over from this one.
    pub(super) fn taken_by(&self, seed: u64, bucket: &SimDepot) -> Line {
        let mut line = Line { clone_of: None, ..Line::new(seed, bucket, self.place) };
        line.node.take_over = true;
        line.node.clock = self.node.clock.clone();
        line
    }

    pub(super) fn open(&self) -> Result<Arc<LocalStore>, StoreError> {
        let machine =
            Machine { clock: Arc::new(self.node.clock.clone()), ..self.node.disk.machine() };
        let options = TieredOptions {
            place: self.place.to_owned(),
            clone_of: self.clone_of.map(str::to_owned),
            ..self.node.tiered_options()
        };
        let tiered = TieredDisk::open(&machine, Arc::new(self.part.clone()), options)?;
        LocalStore::open(&Machine { disk: Arc::new(tiered), ..machine }, self.node.options)
    }

    pub(super) fn pins(&self) -> Vec<Pin> {
        pins(&self.part).unwrap()
    }
}

/// Puts chunks, and a root above them; the root. All of it is sent.
pub(super) fn put(store: &LocalStore, chunks: &[Chunk]) -> ChunkHash {
    store.put_many(chunks).unwrap();
    let root = above(chunks);
    store.put_many(std::slice::from_ref(&root)).unwrap();
    swap(store, root.hash()).unwrap();
    root.hash()
}

/// Drops all but what `root` reaches.
pub(super) fn collect(store: &LocalStore, root: ChunkHash) {
    store
        .collect(&mut GarbageCollection {
            roots: &mut || Ok(vec![root]),
            throttle: &mut |_| std::ops::ControlFlow::Continue(()),
            options: GcOptions { live_percent_min: 101, dry_run: false, pack_history: true },
        })
        .unwrap();
}

pub(super) fn objects(bucket: &SimDepot, prefix: &str) -> Vec<String> {
    bucket.objects().into_keys().filter(|name| name.starts_with(prefix)).collect()
}

#[test]
fn a_clone_copies_no_pack_and_writes_its_own() {
    for_seeds(4, |mut random| {
        let bucket = SimDepot::new(random.next());
        let source = Line::new(random.next(), &bucket, SOURCE);
        let store = source.open().unwrap();
        let chunks = random_chunks(&mut random, 200);
        put(&store, &chunks);
        let packs = objects(&bucket, "source/packs/");
        let mut clone = Line::clone_of(random.next(), &bucket, SOURCE);
        let copy = clone.open().unwrap();
        assert_stored(&*copy, &chunks);
        assert_eq!(objects(&bucket, "clone/"), ["clone/lines/main/HEAD"]);
        let [pin] = &source.pins()[..] else { panic!("one pin") };
        assert_eq!((pin.place.as_str(), pin.is_used), (CLONE, Some(true)));
        assert_eq!(pin.objects, packs.len());
        // Neither has what the other one writes, and neither deposes the other.
        let (own, theirs) = (random_chunks(&mut random, 60), random_chunks(&mut random, 60));
        put(&copy, &own);
        put(&store, &theirs);
        put(&store, &random_chunks(&mut random, 60));
        assert_stored(&*copy, &own);
        assert_eq!(copy.has_many(&[theirs[0].hash()]).unwrap(), [false]);
        assert_eq!(store.has_many(&[own[0].hash()]).unwrap(), [false]);
        assert!(!objects(&bucket, "clone/packs/").is_empty());
        drop((copy, store));
        // Each opens again, the clone by another directory, too.
        clone.node = clone.node.again(clone.node.disk.kill(), &bucket);
        assert_stored(&*clone.open().unwrap(), &chunks);
        assert_stored(&*clone.taken_by(random.next(), &bucket).open().unwrap(), &own);
        assert_eq!(source.pins().len(), 1);
    });
}

#[test]
fn what_a_pin_names_outlives_a_collection_and_a_take_over() {
    for_seeds(4, |mut random| {
        let bucket = SimDepot::new(random.next());
        let source = Line::new(random.next(), &bucket, SOURCE);
        let store = source.open().unwrap();
        let chunks = random_chunks(&mut random, 200);
        put(&store, &chunks);
        let pinned = objects(&bucket, "source/packs/");
        let clone = Line::clone_of(random.next(), &bucket, SOURCE);
        drop(clone.open().unwrap());
        put(&store, &random_chunks(&mut random, 200));
        let kept = random_chunks(&mut random, 30);
        let root = put(&store, &kept);
        let unpinned = objects(&bucket, "source/packs/");
        collect(&store, root);
        // The first time HEAD is swapped to one without them.
        source.send_later(&store, &mut random);
        source.send_later(&store, &mut random);
        let there = objects(&bucket, "source/packs/");
        assert!(pinned.iter().all(|name| there.contains(name)), "{pinned:?} of {there:?}");
        let dropped = unpinned.iter().filter(|name| !pinned.contains(name));
        assert!(dropped.filter(|name| !there.contains(name)).count() > 0, "others go");
        // Nor does another directory that leads the source remove it.
        drop(store);
        let successor = source.taken_by(random.next(), &bucket);
        let store = successor.open().unwrap();
        source.send_later(&store, &mut random);
        source.send_later(&store, &mut random);
        assert_stored(&*clone.taken_by(random.next(), &bucket).open().unwrap(), &chunks);
        assert_stored(&*store, &kept);
        // Without the pin it goes.
        let [pin] = &source.pins()[..] else { panic!("one pin") };
        let chance = SimChance::new(7);
        assert!(!remove_pin(&chance, &source.part, "no pin").unwrap());
        assert!(remove_pin(&chance, &source.part, &pin.id).unwrap());
        assert!(!remove_pin(&chance, &source.part, &pin.id).unwrap());
        assert_eq!(objects(&bucket, "source/pins/"), Vec::<String>::new());
        source.send_later(&store, &mut random);
        let there = objects(&bucket, "source/packs/");
        assert!(pinned.iter().all(|name| !there.contains(name)), "{there:?}");
        assert_stored(&*store, &kept);
    });
}

#[test]
fn a_purge_says_what_pins_keep() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(1);
    let source = Line::new(2, &bucket, SOURCE);
    let store = source.open().unwrap();
    put(&store, &random_chunks(&mut random, 60));
    let pinned = objects(&bucket, "source/packs/");
    let clone = Line::clone_of(3, &bucket, SOURCE);
    drop(clone.open().unwrap());
    let kept = random_chunks(&mut random, 30);
    collect(&store, put(&store, &kept));
    for _ in 0..2 {
        let error = store.purge_tier().unwrap_err().to_string();
        assert!(error.contains("clones rely on them (sim://clone)"), "{error}");
        assert!(error.contains(&format!("{} objects stay", pinned.len())), "{error}");
    }
    assert!(remove_pin(&SimChance::new(4), &source.part, &source.pins()[0].id).unwrap());
    // Its next swap shows that the pin is gone.
    put(&store, &random_chunks(&mut random, 30));
    store.purge_tier().unwrap();
    let there = objects(&bucket, "source/packs/");
    assert!(pinned.iter().all(|name| !there.contains(name)));
}

/// As far as it isn't known what a pin names, nothing goes.
#[test]
fn a_pin_that_cannot_be_read_keeps_everything() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(1);
    let source = Line::new(2, &bucket, SOURCE);
    let store = source.open().unwrap();
    put(&store, &random_chunks(&mut random, 60));
    drop(Line::clone_of(3, &bucket, SOURCE).open().unwrap());
    let [pin] = &objects(&bucket, "source/pins/")[..] else { panic!("one pin") };
    bucket.remove(pin).unwrap();
    let before = objects(&bucket, "source/packs/");
    collect(&store, put(&store, &random_chunks(&mut random, 30)));
    assert!(store.purge_tier().is_err());
    let there = objects(&bucket, "source/packs/");
    assert!(before.iter().all(|name| there.contains(name)));
    assert_eq!((source.pins()[0].objects, source.pins()[0].is_used), (0, None));
}

#[test]
fn only_an_empty_place_becomes_a_clone_of_one_that_is_whole() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(1);
    let refused = |line: &Line| line.open().err().expect("it is refused").to_string();
    let error = refused(&Line::clone_of(2, &bucket, SOURCE));
    assert!(error.contains("there is nothing to clone"), "{error}");
    let source = Line::new(3, &bucket, SOURCE);
    put(&source.open().unwrap(), &random_chunks(&mut random, 30));
    let clone = Line::clone_of(4, &bucket, SOURCE);
    drop(clone.open().unwrap());
    // Once more, as the same command does.
    drop(clone.open().unwrap());
    assert_eq!(source.pins().len(), 1);
    let over =
        Line { place: SOURCE, part: source.part.clone(), ..Line::clone_of(6, &bucket, CLONE) };
    let error = refused(&over);
    assert!(error.contains("has data, and isn't a clone of"), "{error}");
    let full = Line::new(7, &bucket, "sim://full");
    put(&full.open().unwrap(), &random_chunks(&mut random, 30));
    bucket.remove("full/lines/main/HEAD").unwrap();
    let error = refused(&Line { clone_of: Some(SOURCE), ..full });
    assert!(error.contains("a clone begins with none"), "{error}");
}

/// A clone, of a clone too, is cut off at each of its calls; then another attempt ends well, and
/// the source goes on.
#[test]
fn a_clone_that_is_cut_off_begins_again() {
    cut_off(|bucket| Line::clone_of(2, bucket, SOURCE));
    cut_off(|bucket| {
        drop(Line::clone_of(3, bucket, SOURCE).open().unwrap());
        Line::further(2, bucket)
    });
}

fn cut_off(clone_in: impl Fn(&SimDepot) -> Line) {
    let mut calls = None;
    // The first time it isn't.
    for cut in 0.. {
        let mut random = Random::new(cut);
        let bucket = SimDepot::new(cut);
        let source = Line::new(1, &bucket, SOURCE);
        let store = source.open().unwrap();
        let chunks = random_chunks(&mut random, 40);
        put(&store, &chunks);
        let mut clone = clone_in(&bucket);
        if cut > 0 {
            clone.part.bucket.cut_after(cut - 1);
        }
        let opened = clone.open();
        assert_eq!(opened.is_ok(), !clone.part.bucket.is_cut());
        drop(opened);
        let calls = *calls.get_or_insert_with(|| clone.part.bucket.calls());
        if calls < cut {
            return;
        }
        bucket.settle();
        clone.node = clone.node.again(clone.node.disk.kill(), &bucket);
        clone.part = Part::of(&bucket, clone.place);
        assert_stored(&*clone.open().unwrap(), &chunks);
        assert!(source.pins().iter().any(|pin| pin.is_used == Some(true)));
        assert!(source.pins().iter().all(|pin| pin.objects > 0));
        put(&store, &chunks[..10]);
    }
}

/// Replies are lost, puts come late and twice: a pin that counts is always whole.
#[test]
fn in_a_busy_bucket_a_pin_that_counts_is_there() {
    for_seeds(20, |mut random| {
        let bucket = SimDepot::new(random.next());
        let source = Line::new(random.next(), &bucket, SOURCE);
        let store = source.open().unwrap();
        let chunks = random_chunks(&mut random, 40);
        put(&store, &chunks);
        bucket.set_faults(DepotFaults::MANY);
        let clone = Line::clone_of(random.next(), &bucket, SOURCE);
        let is_open = clone.open().is_ok();
        // The leader swaps HEAD, too.
        let _ = store.put_many(&random_chunks(&mut random, 60));
        bucket.set_faults(DepotFaults::default());
        bucket.settle();
        put(&store, &random_chunks(&mut random, 10));
        assert!(source.pins().iter().all(|pin| pin.objects > 0));
        if is_open {
            let copy = clone.taken_by(random.next(), &bucket).open().unwrap();
            assert_stored(&*copy, &chunks);
        }
    });
}

/// Once a clone has copied all that it had there, its source may remove it.
#[test]
fn a_clone_that_needs_nothing_there_gives_its_pin_back() {
    for_seeds(4, |mut random| {
        let bucket = SimDepot::new(random.next());
        let source = Line::new(random.next(), &bucket, SOURCE);
        let store = source.open().unwrap();
        let chunks = random_chunks(&mut random, 100);
        put(&store, &chunks);
        let pinned = objects(&bucket, "source/packs/");
        let clone = Line::clone_of(random.next(), &bucket, SOURCE);
        let copy = clone.open().unwrap();
        clone.send_later(&copy, &mut random);
        assert_eq!(source.pins()[0].is_used, Some(true));
        // Every pack is written anew.
        let root = put(&copy, &chunks);
        collect(&copy, root);
        put(&copy, &random_chunks(&mut random, 10));
        assert_eq!(source.pins()[0].is_used, Some(false), "its readers may hold them yet");
        let is_purged = random.one_in(2);
        match is_purged {
            true => copy.purge_tier().unwrap(),
            false => clone.send_later(&copy, &mut random),
        }
        assert_eq!((source.pins().len(), objects(&bucket, "source/pins/").len()), (0, 0));
        // The source isn't deposed by that, and drops what nothing keeps.
        let kept = random_chunks(&mut random, 30);
        collect(&store, put(&store, &kept));
        source.send_later(&store, &mut random);
        source.send_later(&store, &mut random);
        let there = objects(&bucket, "source/packs/");
        assert!(pinned.iter().all(|name| !there.contains(name)), "{there:?}");
        put(&copy, &random_chunks(&mut random, 10));
        drop(copy);
        assert_stored(&*clone.taken_by(random.next(), &bucket).open().unwrap(), &chunks);
    });
}

/// A clone of a clone reads what lies at both, whatever these collect, and gives both pins back.
#[test]
fn a_clone_of_a_clone_copies_no_pack_either() {
    for_seeds(4, |mut random| {
        let bucket = SimDepot::new(random.next());
        let source = Line::new(random.next(), &bucket, SOURCE);
        let store = source.open().unwrap();
        let chunks = random_chunks(&mut random, 100);
        put(&store, &chunks);
        let clone = Line::clone_of(random.next(), &bucket, SOURCE);
        let copy = clone.open().unwrap();
        let own = random_chunks(&mut random, 60);
        put(&copy, &own);
        let there = [objects(&bucket, "source/packs/"), objects(&bucket, "clone/packs/")].concat();
        let further = Line::further(random.next(), &bucket);
        let third = further.open().unwrap();
        assert_eq!(objects(&bucket, "further/"), ["further/lines/main/HEAD"]);
        let places = |line: &Line| {
            let used = line.pins().into_iter().filter(|pin| pin.is_used == Some(true));
            used.map(|pin| pin.place).collect::<Vec<_>>()
        };
        assert_eq!(places(&source), [CLONE, FURTHER]);
        assert_eq!(places(&clone), [FURTHER]);
        // Neither keeps anything of it for itself.
        for (line, store) in [(&clone, &copy), (&source, &store)] {
            collect(store, put(store, &random_chunks(&mut random, 30)));
            line.send_later(store, &mut random);
            line.send_later(store, &mut random);
        }
        assert_eq!((places(&source), places(&clone)), (vec![FURTHER.to_owned()], places(&clone)));
        let now = [objects(&bucket, "source/packs/"), objects(&bucket, "clone/packs/")].concat();
        assert!(there.iter().all(|name| now.contains(name)), "{there:?} of {now:?}");
        drop(third);
        let taken = further.taken_by(random.next(), &bucket);
        let third = taken.open().unwrap();
        assert_stored(&*third, &chunks);
        assert_stored(&*third, &own);
        let all = [chunks, own].concat();
        collect(&third, put(&third, &all));
        put(&third, &random_chunks(&mut random, 10));
        third.purge_tier().unwrap();
        assert_eq!((source.pins().len(), clone.pins().len()), (0, 0));
        assert_stored(&*third, &all);
    });
}
