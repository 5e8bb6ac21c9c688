//! Goal: a directory that takes over begins with one moment of the previous one: never with half of
//! a transaction, and with everything that was flushed. Method: documents are inserted in the order
//! of their ids, with version commits and flushes between; then an empty directory takes over, and
//! what it has must be all up to some id.

use std::sync::Arc;
use std::time::Duration;

use frond_db::{Code, Durability, Error, Frond, FrondOptions};
use frond_remote::tiered;
use frond_store::io::{pause, steady_now};
use frond_store::tiered::{LogPlace, TieredDisk, TieredOptions};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDepot, SimDisk};

use super::{all, insert, shop, thing};

fn open(disk: &SimDisk, bucket: &SimDepot, take_over: bool) -> Result<Frond, Error> {
    open_with(disk, bucket, take_over, LogPlace::Local)
}

fn open_with(
    disk: &SimDisk,
    bucket: &SimDepot,
    take_over: bool,
    log: LogPlace,
) -> Result<Frond, Error> {
    let machine = disk.machine();
    let options = TieredOptions {
        place: "sim://bucket".to_owned(),
        cache_bytes: 1 << 20,
        local_bytes_max: 256 << 10,
        take_over,
        clone_of: None,
        pin_lease: None,
        log,
        linger: Duration::ZERO,
        keep_slots: Duration::ZERO,
    };
    let tiered = TieredDisk::open(&machine, Arc::new(bucket.other_client()), options)?;
    let mut options = FrondOptions::default();
    if log == LogPlace::Local {
        // Flushing threads send, and no thread does at some other time.
        options.engine.fold_threads = 0;
    }
    tiered::open_on(&machine, tiered, options)
}

/// Writes, commits and flushes; how many documents there were at the last flush, and now.
fn write(frond: &Frond, random: &mut Random, mut count: usize) -> (Option<usize>, usize) {
    let main = shop(frond);
    let mut flushed = None;
    for _ in 0..1 + random.below(5) {
        let more = 1 + random.below(400);
        let things: Vec<_> = (count..count + more).map(|id| thing(id as i32, 0)).collect();
        insert(&main, &things);
        count += more;
        if random.one_in(2) {
            main.commit("a version", "Ada").expect("a commit");
        }
        if random.one_in(2) {
            frond.engine().flush().expect("the disk has room");
            flushed = Some(count);
        }
    }
    (flushed, count)
}

#[test]
fn a_takeover_begins_with_one_moment() {
    for_seeds(6, |mut random| {
        let bucket = SimDepot::new(random.next());
        let mut frond = open(&SimDisk::new(random.next()), &bucket, false).expect("it is new");
        frond.engine().flush().expect("the disk has room");
        let mut count = 0;
        for _ in 0..3 {
            insert(&shop(&frond), &[thing(count as i32, 0)]);
            frond.engine().flush().expect("the disk has room");
            let (flushed, now) = write(&frond, &mut random, count + 1);
            let least = flushed.unwrap_or(count + 1);
            let taken = open(&SimDisk::new(random.next()), &bucket, true).expect("it takes over");
            let found = all(&shop(&taken)).len();
            assert!((least..=now).contains(&found), "{found}, of {least} to {now}");
            taken.engine().check().expect("it is whole");
            insert(&shop(&taken), &[thing(-1 - found as i32, 1)]);
            shop(&taken).commit("taken over", "Ada").expect("a commit");
            (frond, count) = (taken, found + 1);
        }
    });
}

#[test]
fn a_deposed_directory_writes_no_more() {
    let bucket = SimDepot::new(1);
    let first = open(&SimDisk::new(2), &bucket, false).expect("it is new");
    insert(&shop(&first), &[thing(1, 0)]);
    first.engine().flush().expect("the disk has room");
    let second = open(&SimDisk::new(3), &bucket, true).expect("it takes over");
    insert(&shop(&first), &[thing(2, 0)]);
    // It sends, and hears that it is deposed.
    let _ = first.engine().flush();
    let things = [thing(3, 0)];
    let written = shop(&first).insert("things", &things, true, Durability::Synced);
    assert!(written.is_err(), "it writes on");
    assert_eq!(all(&shop(&second)).len(), 1);
    insert(&shop(&second), &[thing(2, 1)]);
}

#[test]
fn with_the_log_in_the_bucket_a_takeover_has_every_acknowledged_write() {
    for_seeds(4, |mut random| {
        let bucket = SimDepot::new(random.next());
        let open =
            |seed, take_over| open_with(&SimDisk::new(seed), &bucket, take_over, LogPlace::Bucket);
        let mut frond = open(random.next(), false).expect("it is new");
        let mut count = 0;
        for round in 0..3 {
            let main = shop(&frond);
            let (_, now) = write(&frond, &mut random, count);
            insert(&main, &[thing(now as i32, 0)]);
            let version = main.commit(&format!("round {round}"), "Ada").expect("a commit").id;
            insert(&main, &[thing(now as i32 + 1, 0)]);
            let taken = open(random.next(), true).expect("it takes over");
            let main = shop(&taken);
            assert_eq!(all(&main).len(), now + 2);
            assert_eq!(main.log(None, None).expect("its history")[0].id, version);
            taken.engine().check().expect("it is whole");
            let written = shop(&frond).insert("things", &[thing(-1, 0)], true, Durability::Synced);
            written.expect_err("it was deposed");
            let refused = shop(&frond).insert("things", &[thing(-1, 0)], true, Durability::Synced);
            assert_eq!(refused.expect_err("it was deposed").code, Code::NotWritablePrimary);
            (frond, count) = (taken, now + 2);
        }
    });
}

#[test]
fn a_log_goes_into_the_bucket_before_anything_is_acknowledged_there() {
    let bucket = SimDepot::new(1);
    let disk = SimDisk::new(2);
    let first = open(&disk, &bucket, false).expect("it is new");
    insert(&shop(&first), &[thing(1, 0)]);
    drop(first);
    let disk = disk.kill();
    let first = open_with(&disk, &bucket, false, LogPlace::Bucket).expect("its log goes there");
    insert(&shop(&first), &[thing(2, 0)]);
    drop(first);
    let back = open(&disk.kill(), &bucket, false).err().expect("it isn't on the disk alone");
    assert!(back.message.contains("--store-log bucket"), "{}", back.message);
    let second = open_with(&SimDisk::new(3), &bucket, true, LogPlace::Bucket);
    assert_eq!(all(&shop(&second.expect("it takes over"))).len(), 2);
}

#[test]
fn an_unsynced_write_is_in_the_bucket_soon() {
    let bucket = SimDepot::new(1);
    let first = open_with(&SimDisk::new(2), &bucket, false, LogPlace::Bucket).expect("it is new");
    insert(&shop(&first), &[thing(1, 0)]);
    let calls = bucket.objects().len();
    let things = [thing(2, 0)];
    let written = shop(&first).insert("things", &things, true, Durability::Relaxed);
    assert!(written.expect("it leads").errors.is_empty());
    let since = steady_now();
    while bucket.objects().len() == calls {
        assert!(since.elapsed() < Duration::from_secs(60), "it isn't there");
        pause(Duration::from_millis(5));
    }
    let second = open_with(&SimDisk::new(3), &bucket, true, LogPlace::Bucket);
    assert_eq!(all(&shop(&second.expect("it takes over"))).len(), 2);
}
