//! Goal: a full disk can always be cleared. Growth is refused while there is still room for
//! deletes; deleting, dropping and collecting always work and give the space back, after a kill
//! too, and if others fill the disk to the last byte. Method: a simulated disk with a capacity,
//! filled until it refuses.

use frond_db::{Database, Durability, Error, Frond, FrondOptions, ReclaimOptions};
use frond_doc::{Binary, DocumentBuf, Value, document};
use frond_engine::{EngineOptions, Reserve};
use frond_query::Code;
use frond_testkit::SimDisk;
use frond_testkit::random::Random;
use frond_vcs::Repository;

use super::support::{all, delete, find};

const MB: u64 = 1 << 20;
const CAPACITY: u64 = 40 * MB;
const RESERVE: u64 = 12 * MB;

fn open(disk: &SimDisk, reserve: u64) -> Frond {
    open_with(disk, reserve, MB)
}

fn open_with(disk: &SimDisk, reserve: u64, memtable_bytes_max: u64) -> Frond {
    let engine = EngineOptions {
        memtable_bytes_max,
        cache_bytes: 4 * MB,
        reserve: Reserve::Bytes(reserve),
        ..EngineOptions::default()
    };
    let options = FrondOptions { engine, ..FrondOptions::default() };
    frond_vcs::open_on(&disk.machine(), options).expect("it opens, however full")
}

fn shop(frond: &Frond) -> Repository {
    Repository::open(frond, "shop").expect("a proper name")
}

/// Documents of about 8 KB that don't compress.
fn batch(random: &mut Random, first: i32) -> Vec<DocumentBuf> {
    let of = |id: i32, random: &mut Random| {
        let noise = random.bytes(8_000);
        let noise = Value::Binary(Binary { subtype: 0, bytes: &noise });
        document! { "_id": id, "k": id % 100, "noise": noise }
    };
    (first..first + 16).map(|id| of(id, random)).collect()
}

fn insert(shop: &Database, documents: &[DocumentBuf]) -> Result<(), Error> {
    let report = shop.insert("things", documents, true, Durability::Synced)?;
    match report.errors.into_iter().next() {
        Some(error) => Err(error.error),
        None => Ok(()),
    }
}

fn count_of(shop: &Database) -> u64 {
    let found = super::support::run(shop, "things", &super::support::request("{}"));
    found.expect("reads go on").len() as u64
}

/// Waits until the background has nothing to do, or can't go on.
fn rest(frond: &Frond) {
    while !frond.engine().is_idle().expect("trees can be read") {
        std::thread::yield_now();
    }
}

/// Inserts until the disk is as full as it may be, also after the background has given back what it
/// could; how many documents there are then.
fn fill(frond: &Frond, random: &mut Random, mut first: i32) -> i32 {
    let shop = shop(frond);
    let mut refused_at = None;
    loop {
        match insert(&shop, &batch(random, first)) {
            Ok(()) => first += 16,
            Err(error) => {
                assert_eq!(error.code, Code::OutOfDiskSpace, "{error:?}");
                if refused_at.replace(first) == Some(first) {
                    return first;
                }
                rest(frond);
            }
        }
        assert!((first as u64) * 8_000 < CAPACITY, "it never refused");
    }
}

fn collect(frond: &Frond) -> u64 {
    let options = ReclaimOptions { thorough: true, ..ReclaimOptions::default() };
    let collected =
        frond_vcs::reclaim(frond, 0, options).expect("a collection works on a full disk");
    collected.collected.bytes_after
}

/// Takes all that is free, as another program would.
fn fill_by_others(disk: &SimDisk, frond: &Frond) {
    let free = frond.engine().disk_status().expect("a disk that tells").free;
    disk.set_contents("somebody's", &vec![7; free as usize]);
}

#[test]
fn deletes_work_on_a_full_disk_and_give_space_back() {
    for how in ["delete", "drop", "drop database"] {
        for (restart, others) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut random = Random::new(7);
            let mut disk = SimDisk::new(1);
            disk.limit_to(Some(CAPACITY));
            let mut frond = open(&disk, RESERVE);
            let case = format!("{how}, restart {restart}, others {others}");
            frond.engine().hold_reserve();
            assert!(frond.engine().disk_status().expect("told").held > 0, "{case}");
            let count = fill(&frond, &mut random, 0);
            rest(&frond);
            if others {
                fill_by_others(&disk, &frond);
            }
            if restart {
                disk = disk.kill();
                frond = open(&disk, RESERVE);
            }
            let shop = shop(&frond);
            assert_eq!(count_of(&shop), count as u64, "{case}");
            // A restart gives back files that the log keeps for later.
            if others || !restart {
                assert!(insert(&shop, &batch(&mut random, count)).is_err(), "{case}: still full");
            }
            match how {
                "delete" => assert_eq!(delete(&shop, "things", "{}"), count as u64, "{case}"),
                "drop" => assert!(shop.drop_collection("things").expect("dropped"), "{case}"),
                _ => shop.drop_database().expect("dropped"),
            }
            let after = collect(&frond);
            assert!(after < CAPACITY / 8, "{case}: {after} are left");
            assert_eq!(all(&shop, "things"), "[]", "{case}");
            if others {
                assert!(frond.engine().disk_status().expect("told").free > CAPACITY / 4, "{case}");
            }
            let again = fill(&frond, &mut random, 0);
            assert!(again > count / 3 * if others { 1 } else { 2 }, "{case}: {again} of {count}");
            frond.engine().check().expect("whole");
            assert_eq!(find(&shop, "things", "{'_id': 3, 'k': {'$ne': 3}}"), "[]", "{case}");
        }
    }
}

/// Others fill the disk while more waits in memory than a flush has room for, and an application
/// goes on inserting. On a large disk what a file holds back is a small part of the reserve.
#[test]
fn refused_inserts_take_nothing_from_what_gives_space_back() {
    for (capacity, reserve, restart) in
        [(CAPACITY, RESERVE, false), (CAPACITY, RESERVE, true), (340 * MB, 300 * MB, false)]
    {
        let mut random = Random::new(9);
        let mut disk = SimDisk::new(1);
        disk.limit_to(Some(capacity));
        let mut frond = open_with(&disk, reserve, 32 * MB);
        let case = format!("reserve {reserve}, restart {restart}");
        let (base, other) = (shop(&frond), Repository::open(&frond, "other").expect("a name"));
        for first in 0..24 {
            insert(&base, &batch(&mut random, first * 16)).expect("there is room");
            insert(&other, &batch(&mut random, first * 16)).expect("there is room");
        }
        frond.engine().hold_reserve();
        fill_by_others(&disk, &frond);
        // The free space is cached for 20 ms.
        assert_eq!(frond.engine().disk_status().expect("told").free, 0, "{case}");
        for first in 100..103 {
            assert!(insert(&base, &batch(&mut random, first * 16)).is_err(), "{case}: full");
        }
        assert_eq!(delete(&base, "things", "{'k': {'$lt': 9}}"), 36, "{case}");
        if restart {
            disk = disk.kill();
            frond = open_with(&disk, reserve, 32 * MB);
        }
        let (base, other) = (shop(&frond), Repository::open(&frond, "other").expect("a name"));
        assert!(insert(&base, &batch(&mut random, 2000)).is_err(), "{case}: full");
        assert_eq!(delete(&base, "things", "{'_id': 10}"), 1, "{case}");
        assert!(base.drop_collection("things").expect("dropped"), "{case}");
        let _ = insert(&base, &batch(&mut random, 3000));
        other.drop_database().expect("dropped");
        collect(&frond);
        frond.engine().check().expect("whole");
        disk.set_contents("somebody's", &[]);
        insert(&base, &batch(&mut random, 4000)).expect("there is room again");
    }
}

/// Beside deletes: index builds, commits and updates are refused as inserts are, reads go on.
#[test]
fn growth_is_refused_and_reads_go_on() {
    let mut random = Random::new(3);
    let disk = SimDisk::new(1);
    disk.limit_to(Some(CAPACITY));
    let frond = open(&disk, RESERVE);
    let shop = shop(&frond);
    shop.insert("others", &[document! { "_id": 1_i32 }], true, Durability::Synced).expect("room");
    shop.create_branch("side", None).expect("room");
    let count = fill(&frond, &mut random, 0);
    let room = frond.engine().disk_status().expect("told");
    assert!(room.is_short() && room.free > RESERVE / 3, "{room:?}");
    assert_eq!(shop.commit("all", "Ada").expect_err("it grows").code, Code::OutOfDiskSpace);
    let spec = document! { "key": &document! { "k": 1_i32 } };
    let spec = frond_db::catalog::IndexSpec::parse(spec.view()).expect("a good index");
    let refused = shop.create_indexes("things", &[spec]).expect_err("it grows");
    assert_eq!(refused.code, Code::OutOfDiskSpace);
    assert_eq!(count_of(&shop), count as u64);
    shop.delete_branch("side", true).expect("it gives space back");
    assert_eq!(find(&shop, "things", "{'_id': -1}"), "[]");
    let expected = (0..count).filter(|id| id % 100 < 90).count() as u64;
    assert_eq!(delete(&shop, "things", "{'k': {'$lt': 90}}"), expected);
    // Without a reserve the last byte is taken, and a restart still finds all.
    let unlimited = SimDisk::new(2);
    unlimited.limit_to(Some(CAPACITY));
    let frond = open(&unlimited, 0);
    let more = fill(&frond, &mut random, 0);
    assert!(count < more, "{count} and {more}");
}

/// Temporary files of sorts are growth, too: sorts are refused while the reserve isn't free, though
/// there would be room for them, and go on when there is room again.
#[test]
fn temporary_files_leave_what_is_held_back() {
    let mut random = Random::new(3);
    let disk = SimDisk::new(1);
    disk.limit_to(Some(CAPACITY));
    let options = FrondOptions {
        engine: EngineOptions { reserve: Reserve::Bytes(RESERVE), ..EngineOptions::default() },
        stage_memory_bytes_max: Some(100_000),
        ..FrondOptions::default()
    };
    let frond = frond_vcs::open_on(&disk.machine(), options).expect("it opens");
    let shop = shop(&frond);
    let count = fill(&frond, &mut random, 0);
    rest(&frond);
    let sort = "[{'$match': {'k': {'$lt': 5}}}, {'$sort': {'noise': 1}}, {'$project': {'k': 1}}]";
    let sorted = || super::support::aggregate(&shop, Some("things"), sort);
    let room = frond.engine().disk_status().expect("told");
    assert!(room.is_short() && room.free > RESERVE / 3, "{room:?}");
    assert_eq!(sorted().expect_err("it grows").code, Code::OutOfDiskSpace);
    assert_eq!(frond.temporary_disk_bytes(), 0);
    let expected = (0..count).filter(|id| id % 100 >= 50).count() as u64;
    assert_eq!(delete(&shop, "things", "{'k': {'$gte': 50}}"), expected);
    collect(&frond);
    let expected = (0..count).filter(|id| id % 100 < 5).count();
    assert_eq!(sorted().expect("there is room").len(), expected);
}

/// The space kept for undo is reported: how much, why and until when; and it is given back when it
/// needn't be kept.
#[test]
fn space_kept_for_undo_is_reported() {
    let frond = open(&SimDisk::new(1), 0);
    let mut random = Random::new(5);
    let shop = shop(&frond);
    insert(&shop, &batch(&mut random, 0)).expect("room");
    assert_eq!(frond_vcs::undoable(&frond).expect("read").collections, 0);
    shop.drop_collection("things").expect("dropped");
    insert(&Repository::open(&frond, "other").expect("proper"), &batch(&mut random, 0))
        .expect("room");
    Repository::open(&frond, "other").expect("proper").drop_database().expect("dropped");
    let kept = frond_vcs::undoable(&frond).expect("read");
    assert_eq!((kept.collections, kept.databases), (2, 1), "{kept:?}");
    assert!((250_000..300_000).contains(&kept.bytes), "{kept:?}");
    let now = frond.now_millis();
    assert_eq!(kept.times_millis, Some((now, now)));
    let options = ReclaimOptions { thorough: true, ..ReclaimOptions::default() };
    let week = 7 * 24 * 3_600 * 1_000;
    let before =
        frond_vcs::reclaim(&frond, week, options).expect("collected").collected.bytes_after;
    assert_eq!(frond_vcs::undoable(&frond).expect("read").collections, 2);
    let after = frond_vcs::reclaim(&frond, 0, options).expect("collected").collected.bytes_after;
    assert!(after + 200_000 < before, "{before} and {after}");
    assert_eq!(frond_vcs::undoable(&frond).expect("read").collections, 0);
}

/// Whatever is deleted, dropped and collected in whatever order on a full disk, and with restarts
/// between: when nothing is left, there is room again. And no more is taken than leaves room for
/// that.
#[test]
fn no_order_of_giving_back_is_a_trap() {
    for seed in 0..5 {
        let mut random = Random::new(seed);
        let capacity = (24 + random.below(40) as u64) * MB;
        let reserve = capacity / 8;
        let mut disk = SimDisk::new(seed);
        disk.limit_to(Some(capacity));
        let mut frond = open(&disk, reserve);
        frond.engine().hold_reserve();
        let commits = random.one_in(2);
        let mut count = 0;
        for round in 0..3 {
            let base = shop(&frond);
            loop {
                let documents = mixed(&mut random, count);
                count += documents.len() as i32;
                if insert(&base, &documents).is_err() {
                    break;
                }
                if commits && random.one_in(4) {
                    let _ = base.commit("some", "Ada");
                }
            }
            for step in 0..6 {
                let case = format!("seed {seed}, round {round}, step {step}");
                let base = shop(&frond);
                match random.below(6) {
                    0 => {
                        disk = disk.kill();
                        frond = open(&disk, reserve);
                    }
                    1 => drop(delete(&base, "things", "{'k': {'$lt': 50}}")),
                    2 => drop(delete(&base, "things", "{'_id': {'$mod': [2, 0]}}")),
                    _ => {
                        let thorough = !random.one_in(3);
                        let undo = if random.one_in(3) { 1 << 40 } else { 0 };
                        let options = ReclaimOptions { thorough, ..ReclaimOptions::default() };
                        // It may find no room; but what others need to give back must stay.
                        let _ = frond_vcs::reclaim(&frond, undo, options);
                        let room = frond.engine().disk_status().expect("told");
                        assert!(reserve / 64 < room.free, "{case}: {room:?}");
                    }
                }
            }
            let base = shop(&frond);
            match random.one_in(2) {
                true => base.drop_database().expect("a drop works on a full disk"),
                false => assert!(base.drop_collection("things").expect("dropped")),
            }
            if random.one_in(2) {
                disk = disk.kill();
                frond = open(&disk, reserve);
            }
            if commits {
                shop(&frond).drop_database().expect("dropped");
            }
            let after = collect(&frond);
            let room = frond.engine().disk_status().expect("told");
            assert!(!room.is_short(), "seed {seed}, round {round}: {after} stored, {room:?}");
            assert!(after < capacity / 8, "seed {seed}, round {round}: {after} stored");
            frond.engine().check().expect("whole");
        }
    }
}

/// Documents from 100 bytes to 100 KB that don't compress.
fn mixed(random: &mut Random, first: i32) -> Vec<DocumentBuf> {
    let of = |id: i32, random: &mut Random| {
        let bytes = [100, 3_000, 20_000, 100_000][random.below(4)];
        let noise = random.bytes(bytes);
        let noise = Value::Binary(Binary { subtype: 0, bytes: &noise });
        document! { "_id": id, "k": random.below(100) as i32, "noise": noise }
    };
    (first..first + 8).map(|id| of(id, random)).collect()
}
