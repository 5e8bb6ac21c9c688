//! Goal: where packs lie in a bucket, and perhaps the log, what is erased is gone from there and
//! from the directory; what is damaged there comes back from a backup, or what is whole is saved.
//! Method: a shop with versions and changes that aren't committed, on a simulated disk and bucket;
//! bytes that are searched for; objects in which bits turn over, or that go.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use frond_db::{Error, Frond, FrondOptions, ReclaimOptions};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_remote::tiered;
use frond_store::bucket::Bucket;
use frond_store::io::Disk;
use frond_store::tiered::{LogPlace, TieredDisk, TieredOptions};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDepot, SimDisk};
use frond_vcs::remote::{DataImage, PlainRemote, Remote, Reread};
use frond_vcs::{ChunkSource, EraseRequest};

use super::{all, insert, quiet, shop, thing};

const LOGS: [LogPlace; 2] = [LogPlace::Local, LogPlace::Bucket];

fn tiered_of(
    disk: &SimDisk,
    bucket: &SimDepot,
    log: LogPlace,
    over: bool,
) -> Result<TieredDisk, Error> {
    let options = TieredOptions {
        place: "sim://bucket".to_owned(),
        cache_bytes: 8 << 20,
        local_bytes_max: 256 << 10,
        take_over: over,
        clone_of: None,
        pin_lease: None,
        log,
        linger: Duration::ZERO,
        keep_slots: Duration::ZERO,
    };
    Ok(TieredDisk::open(&disk.machine(), Arc::new(bucket.other_client()), options)?)
}

fn open(disk: &SimDisk, bucket: &SimDepot, log: LogPlace, take_over: bool) -> Result<Frond, Error> {
    let tiered = tiered_of(disk, bucket, log, take_over)?;
    tiered::open_on(&disk.machine(), tiered, FrondOptions::default())
}

/// The names of objects and files that have these bytes.
fn places(disk: &SimDisk, bucket: &SimDepot, marker: &[u8]) -> Vec<String> {
    let has = |bytes: &[u8]| bytes.windows(marker.len()).any(|window| window == marker);
    let objects = bucket.objects().into_iter().filter(|(_, bytes)| has(bytes));
    let mut places: Vec<String> = objects.map(|(name, _)| name).collect();
    let mut files = disk.list().expect("it answers");
    files.retain(|name| disk.contents(name).is_some_and(|bytes| has(&bytes)));
    places.extend(files);
    places
}

fn secret(id: i32, marker: &[u8]) -> DocumentBuf {
    let mut document = DocumentBuilder::new();
    document.append("_id", Value::Int32(id));
    let binary = frond_doc::Binary { subtype: 0, bytes: marker };
    document.append("bytes", Value::Binary(binary));
    document.build()
}

#[test]
fn erased_data_is_in_no_object_and_no_file() {
    for log in LOGS {
        for_seeds(2, |mut random| erase(log, &mut random));
    }
}

fn erase(log: LogPlace, random: &mut Random) {
    let (disk, bucket) = (SimDisk::new(random.next()), SimDepot::new(random.next()));
    let frond = open(&disk, &bucket, log, false).expect("it is new");
    let main = shop(&frond);
    // A document that is stored by itself: among others its bytes would be encoded.
    let marker = random.bytes(60_000);
    insert(&main, &(0..300).map(|id| thing(id, 0)).collect::<Vec<_>>());
    insert(&main, &[secret(-1, &marker)]);
    main.commit("with a secret", "Ada").expect("a commit");
    insert(&main, &(300..400).map(|id| thing(id, 0)).collect::<Vec<_>>());
    main.commit("and more", "Ada").expect("a commit");
    insert(&main, &[thing(400, 0)]);
    frond.engine().send_all().expect("the bucket answers");
    frond.engine().store().maintenance().purge_tier().expect("the bucket answers");
    assert_eq!(all(&main).len(), 402);
    let before = places(&disk, &bucket, &marker[1_000..1_064]);
    assert!(before.iter().any(|place| place.starts_with("packs/")), "{before:?}");

    let documents = vec![Value::Int32(-1).to_buf()];
    let request =
        EraseRequest { collection: "things".to_owned(), documents, ..EraseRequest::default() };
    let erased = main.erase(&request).expect("it is there");
    assert_eq!(erased.commits.len(), 2);
    let options = ReclaimOptions { thorough: true, bytes_a_second: None, purge: true };
    frond_vcs::reclaim(&frond, 1 << 40, options).expect("the bucket answers");
    assert_eq!(main.erased_left(&erased).expect("it is read"), 0);
    assert_eq!(places(&disk, &bucket, &marker[1_000..1_064]), Vec::<String>::new(), "{log:?}");
    assert_eq!(all(&main).len(), 401);
    drop((main, frond));
    let taken = open(&SimDisk::new(random.next()), &bucket, log, true).expect("it takes over");
    assert_eq!(all(&shop(&taken)).len(), 401);
    taken.engine().check().expect("it is whole");
}

/// A directory with all kinds of state, a backup of it, and what its documents are. It was killed
/// with writes that are in no pack yet.
fn made(log: LogPlace, bucket: &SimDepot) -> (SimDisk, SimDisk, Vec<DocumentBuf>) {
    let (disk, place) = (SimDisk::new(1), SimDisk::new(2));
    let frond = open(&disk, bucket, log, false).expect("it is new");
    let main = shop(&frond);
    insert(&main, &(0..800).map(|id| thing(id, 0)).collect::<Vec<_>>());
    main.commit("first", "Ada").expect("a commit");
    insert(&main, &(800..900).map(|id| thing(id, 0)).collect::<Vec<_>>());
    main.commit("second", "Ada").expect("a commit");
    insert(&main, &(900..950).map(|id| thing(id, 0)).collect::<Vec<_>>());
    frond.engine().send_all().expect("the bucket answers");
    frond.engine().store().maintenance().purge_tier().expect("the bucket answers");
    let image = DataImage::take(&frond).expect("an image");
    let plain = PlainRemote::open(&place.machine()).expect("it opens");
    plain.back_up("monday", &image, Reread::Share, &mut quiet()).expect("a backup");
    drop(image);
    insert(&main, &[document! { "_id": 5_000, "text": "later" }]);
    let documents = all(&main);
    // With the log in the bucket a power cut may take what of it lies here.
    let disk = if log == LogPlace::Bucket { disk.crash() } else { disk.kill() };
    drop((main, frond));
    (disk, place, documents)
}

fn source(place: &SimDisk) -> ChunkSource {
    let remote = PlainRemote::open(&place.machine()).expect("it opens");
    Box::new(move |hashes| remote.get_many(hashes))
}

/// Damages a pack in the bucket.
fn damage(random: &mut Random, bucket: &SimDepot) -> String {
    let objects = bucket.objects();
    let packs: Vec<_> = objects.iter().filter(|(name, _)| name.starts_with("packs/")).collect();
    let (name, bytes) = *random.choose(&packs);
    match random.below(4) {
        0 => bucket.remove(name).expect("it answers"),
        // Of the first half: an index that is damaged there keeps who takes over from opening.
        _ => bucket.flip_bit(name, random.below(4 * bytes.len())),
    }
    name.clone()
}

#[test]
fn damage_in_a_bucket_is_repaired_from_a_backup() {
    for log in LOGS {
        let mut found = 0;
        for_seeds(6, |mut random| {
            let bucket = SimDepot::new(random.next());
            let (disk, place, documents) = made(log, &bucket);
            let damaged = [damage(&mut random, &bucket), damage(&mut random, &bucket)];
            let tiered = || tiered_of(&disk, &bucket, log, false);
            let report =
                tiered::repair_on(&disk.machine(), &tiered, &[source(&place)], &mut |_| {});
            let report = report.unwrap_or_else(|error| panic!("{damaged:?}: {error}"));
            found += usize::from(!report.damages.is_empty());
            assert_eq!(report.left.damages, Vec::<String>::new(), "{damaged:?}: {report:?}");
            let frond = open(&disk, &bucket, log, false).expect("it is whole");
            assert_eq!(all(&shop(&frond)), documents);
            // What was brought goes to the bucket with what is written next.
            insert(&shop(&frond), &[thing(6_000, 0)]);
            frond.engine().send_all().expect("the bucket answers");
            frond.engine().store().maintenance().purge_tier().expect("the bucket answers");
            drop(frond);
            let taken = open(&SimDisk::new(3), &bucket, log, true).expect("it takes over");
            assert_eq!(all(&shop(&taken)).len(), documents.len() + 1);
            taken.engine().check().expect("it is whole");
        });
        // A bit of a header is damaged in the bucket, and not on the disk.
        assert!(found > 2, "{found} of 6 damages are found");
    }
}

/// An empty directory of the test's own.
fn new_directory(random: &mut Random) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("salvaged-{:x}", random.next()))
}

#[test]
fn whole_data_in_a_bucket_is_saved() {
    for log in LOGS {
        for_seeds(3, |mut random| {
            let bucket = SimDepot::new(random.next());
            let (disk, _, documents) = made(log, &bucket);
            let is_damaged = random.one_in(2);
            if is_damaged {
                damage(&mut random, &bucket);
            }
            let to = new_directory(&mut random);
            let tiered = tiered_of(&disk, &bucket, log, false).expect("it leads");
            let report = tiered::salvage_on(&disk.machine(), tiered, &to, &mut |_| {});
            let report = report.expect("most is there");
            assert!(is_damaged || report.is_whole(), "{log:?}: {report:?}");
            let saved = frond_vcs::open(&to, FrondOptions::default()).expect("it is whole");
            let found = all(&shop(&saved));
            assert!(found.iter().all(|document| documents.contains(document)));
            assert!(!report.is_whole() || found == documents, "{report:?}");
            assert!(!found.is_empty());
            drop(saved);
            std::fs::remove_dir_all(&to).expect("it goes");
        });
    }
}
