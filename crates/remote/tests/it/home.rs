//! Goal: a directory that takes over begins with one moment of the one before: never with half of
//! what was written, and with all that was flushed. Method: documents are inserted in the order of
//! their ids, with version commits and flushes between; then an empty directory takes over, and
//! what it has must be all up to some id.

use std::sync::Arc;

use frond_db::{Error, Frond, FrondOptions};
use frond_store::home::{HomeDisk, HomeOptions, LogPlace};
use frond_store::io::Machine;
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDepot, SimDisk};

use super::{all, insert, shop, thing};

fn open(disk: &SimDisk, depot: &SimDepot, take_over: bool) -> Result<Frond, Error> {
    let machine = disk.machine();
    let options = HomeOptions {
        place: "sim://depot".to_owned(),
        cache_bytes: 1 << 20,
        local_bytes_max: 256 << 10,
        take_over,
        log: LogPlace::Local,
    };
    let home = HomeDisk::open(&machine, Arc::new(depot.other_client()), options)?;
    let machine = Machine { disk: Arc::new(home), ..machine };
    frond_vcs::open_on(&machine, FrondOptions::default())
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
fn who_takes_over_begins_with_one_moment() {
    for_seeds(6, |mut random| {
        let depot = SimDepot::new(random.next());
        let mut frond = open(&SimDisk::new(random.next()), &depot, false).expect("it is new");
        frond.engine().flush().expect("the disk has room");
        let mut count = 0;
        for _ in 0..3 {
            insert(&shop(&frond), &[thing(count as i32, 0)]);
            frond.engine().flush().expect("the disk has room");
            let (flushed, now) = write(&frond, &mut random, count + 1);
            let least = flushed.unwrap_or(count + 1);
            let taken = open(&SimDisk::new(random.next()), &depot, true).expect("it takes over");
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
fn who_was_deposed_writes_no_more() {
    let depot = SimDepot::new(1);
    let first = open(&SimDisk::new(2), &depot, false).expect("it is new");
    insert(&shop(&first), &[thing(1, 0)]);
    first.engine().flush().expect("the disk has room");
    let second = open(&SimDisk::new(3), &depot, true).expect("it takes over");
    insert(&shop(&first), &[thing(2, 0)]);
    // It sends, and hears that it is deposed.
    let _ = first.engine().flush();
    let things = [thing(3, 0)];
    let written = shop(&first).insert("things", &things, true, frond_db::Durability::Synced);
    assert!(written.is_err(), "it writes on");
    assert_eq!(all(&shop(&second)).len(), 1);
    insert(&shop(&second), &[thing(2, 1)]);
}
