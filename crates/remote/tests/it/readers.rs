//! Goal: a server that reads what another one has in a bucket shows a beginning of what was
//! acknowledged, all of it once it has read on or was opened again, and takes no writes. Method: a
//! leader inserts documents in the order of their ids, flushes, records versions, collects, and is
//! taken over from; a reader beside it reads on at random, and is opened again when it says so.

use std::sync::Arc;
use std::time::Duration;

use frond_db::{Code, Durability, Frond, FrondOptions, ReclaimOptions};
use frond_doc::{DocumentBuf, document};
use frond_remote::tiered::{self, Reading};
use frond_store::tiered::{LogPlace, TieredDisk, TieredOptions};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDepot, SimDisk};

use super::{all, insert, shop, thing};

fn options(log: LogPlace, take_over: bool) -> TieredOptions {
    TieredOptions {
        place: "sim://bucket".to_owned(),
        cache_bytes: 1 << 20,
        local_bytes_max: 256 << 10,
        take_over,
        clone_of: None,
        pin_lease: None,
        log,
        linger: Duration::ZERO,
        keep_slots: Duration::ZERO,
    }
}

fn lead(random: &mut Random, bucket: &SimDepot, log: LogPlace, take_over: bool) -> Frond {
    let machine = SimDisk::new(random.next()).machine();
    let bucket = Arc::new(bucket.other_client());
    let tiered = TieredDisk::open(&machine, bucket, options(log, take_over)).expect("it leads");
    tiered::open_on(&machine, tiered, FrondOptions::default()).expect("it leads")
}

fn read(disk: &SimDisk, bucket: &SimDepot) -> Reading {
    let machine = disk.machine();
    let bucket = Arc::new(bucket.other_client());
    let tiered = TieredDisk::open_reader(&machine, bucket, options(LogPlace::Local, false));
    let tiered = tiered.expect("there is something to read");
    Reading::open_on(&machine, tiered, FrondOptions::default()).expect("it reads")
}

/// What a reader has, which is a beginning of what there is.
fn beginning_of(expected: &[DocumentBuf], reader: &Reading) -> usize {
    let found = all(&shop(reader.frond()));
    assert!(expected.starts_with(&found), "{} of {}", found.len(), expected.len());
    found.len()
}

/// What a leader does.
fn act(random: &mut Random, bucket: &SimDepot, leader: &mut Frond, count: &mut i32) {
    let more = 1 + random.below(60) as i32;
    insert(&shop(leader), &(*count..*count + more).map(|id| thing(id, 0)).collect::<Vec<_>>());
    *count += more;
    match random.below(8) {
        0 | 1 => drop(shop(leader).commit("a version", "Ada").expect("a commit")),
        2 | 3 => leader.engine().send_all().expect("the bucket answers"),
        4 => {
            let options = ReclaimOptions { thorough: true, bytes_a_second: None, purge: true };
            frond_vcs::reclaim(leader, 0, options).expect("the bucket answers");
        }
        5 => *leader = lead(random, bucket, LogPlace::Bucket, true),
        _ => {}
    }
}

#[test]
fn a_reader_shows_what_was_acknowledged() {
    for_seeds(3, |mut random| {
        let bucket = SimDepot::new(random.next());
        let mut leader = lead(&mut random, &bucket, LogPlace::Bucket, false);
        let disk = SimDisk::new(random.next());
        let (mut reader, mut count, mut opened) = (read(&disk, &bucket), 0, 0);
        for _ in 0..20 {
            act(&mut random, &bucket, &mut leader, &mut count);
            let expected = all(&shop(&leader));
            let is_outdated = || reader.is_outdated().expect("the bucket answers");
            if random.one_in(3) {
                if !is_outdated() {
                    beginning_of(&expected, &reader);
                }
                continue;
            }
            // What was purged can't be read any more, nor can what changes it be applied. The
            // leader may send while it is opened: no slot stays for it here.
            let mut is_behind = reader.read_on().is_err() | is_outdated();
            while is_behind {
                drop(reader);
                reader = read(&disk, &bucket);
                opened += 1;
                is_behind = reader.is_outdated().expect("the bucket answers");
            }
            assert_eq!(beginning_of(&expected, &reader), expected.len());
            let commits = |frond| shop(frond).log(None, None).map(|log| log.len()).ok();
            assert_eq!(commits(reader.frond()), commits(&leader));
        }
        reader.frond().engine().check().expect("it is whole");
        assert!(0 < opened && opened < 40, "it was opened {opened} times");
    });
}

#[test]
fn a_reader_takes_no_writes() {
    let mut random = Random::new(1);
    for log in [LogPlace::Local, LogPlace::Bucket] {
        let bucket = SimDepot::new(1);
        let leader = lead(&mut random, &bucket, log, false);
        insert(&shop(&leader), &[thing(1, 0)]);
        leader.engine().send_all().expect("the bucket answers");
        leader.engine().store().maintenance().purge_tier().expect("the bucket answers");
        // HEAD may be swapped for another that says the same.
        let names = || bucket.objects().into_keys().collect::<Vec<_>>();
        let before = names();
        let reader = read(&SimDisk::new(2), &bucket);
        assert_eq!(all(&shop(reader.frond())).len(), 1);
        let written =
            shop(reader.frond()).insert("things", &[thing(2, 0)], true, Durability::Synced);
        assert_eq!(written.expect_err("it reads").code, Code::NotWritablePrimary);
        drop(reader);
        assert_eq!(names(), before, "it changes nothing there");
        insert(&shop(&leader), &[thing(3, 0)]);
    }
}

/// Nothing is collected of what its own flushes write.
#[test]
fn a_reader_that_has_written_much_begins_anew() {
    let mut random = Random::new(4);
    let bucket = SimDepot::new(4);
    let leader = lead(&mut random, &bucket, LogPlace::Bucket, false);
    insert(&shop(&leader), &[thing(0, 0)]);
    let disk = SimDisk::new(5);
    let reader = read(&disk, &bucket);
    let mut add = |first: i32, count: i32| {
        let ids = first..first + count;
        let more: Vec<_> =
            ids.map(|id| document! { "_id": id, "text": &noise(&mut random) }).collect();
        insert(&shop(&leader), &more);
        // Before the leader sends: no slot stays for it then.
        reader.read_on().expect("no slot is gone");
        leader.engine().send_all().expect("the bucket answers");
        reader.frond().engine().flush().expect("the disk has room");
        reader.is_outdated().expect("the bucket answers")
    };
    assert!(!add(1, 10), "it has all, and little of its own");
    let is_outdated = (1..60).any(|round| add(round * 100, 50));
    assert!(is_outdated, "it goes on writing");
    let expected = all(&shop(&leader));
    drop(reader);
    let reader = read(&disk, &bucket);
    assert_eq!(beginning_of(&expected, &reader), expected.len());
    assert!(!reader.is_outdated().expect("the bucket answers"));
}

/// A text that doesn't compress to less than half.
fn noise(random: &mut Random) -> String {
    random.bytes(1_000).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn without_the_log_a_reader_shows_what_was_sent() {
    let mut random = Random::new(2);
    let bucket = SimDepot::new(2);
    let leader = lead(&mut random, &bucket, LogPlace::Local, false);
    insert(&shop(&leader), &[thing(1, 0)]);
    leader.engine().send_all().expect("the bucket answers");
    leader.engine().store().maintenance().purge_tier().expect("the bucket answers");
    insert(&shop(&leader), &[thing(2, 0)]);
    let disk = SimDisk::new(3);
    let reader = read(&disk, &bucket);
    assert!(!reader.follows() && !reader.is_outdated().expect("it answers"));
    assert_eq!(all(&shop(reader.frond())).len(), 1);
    leader.engine().send_all().expect("the bucket answers");
    leader.engine().store().maintenance().purge_tier().expect("the bucket answers");
    reader.read_on().expect("there is nothing to read on");
    assert!(reader.is_outdated().expect("it answers"));
    drop(reader);
    assert_eq!(all(&shop(read(&disk, &bucket).frond())).len(), 2);
}
