//! Goal: whatever is damaged in a data directory, a salvage writes all readable data into a sound
//! one and reports what is missing. Method: a directory with commits, a branch and changes that are
//! not committed; for many seeds files of it are damaged (bits, cuts, the manifest, packs' indexes,
//! the log), and what a salvage makes is checked and compared.

mod records;

use std::collections::BTreeMap;

use frond_db::inside::{Frond, FrondOptions, IndexSpec};
use frond_db::{Durability, FindRequest};
use frond_doc::{DocumentBuf, Value, document};
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{ChunkKind, ChunkStore};
use frond_testkit::{Random, SimDisk, random};

use super::{LostPart, PartRequest, SalvageReport, part, salvage_on};
use crate::remote::{DataImage, PlainRemote, Reread};
use crate::repository::Repository;

fn open(disk: &SimDisk) -> Frond {
    crate::open::open_on(&disk.machine(), FrondOptions::default()).expect("a good directory")
}

fn insert(database: &Repository, documents: &[DocumentBuf]) {
    let report = database.insert("things", documents, true, Durability::Synced);
    assert!(report.expect("it is there").errors.is_empty());
}

/// A document of some letters of its own; some are large.
fn thing(id: i32, round: i32) -> DocumentBuf {
    let count = if id % 300 == 7 { 7_000 } else { 20 };
    let mut random = Random::new((id as u64) << 32 | round as u64);
    let text: String = (0..count).map(|_| format!("{:08x}", random.next() as u32)).collect();
    document! { "_id": id, "round": round, "text": text.as_str() }
}

fn all(database: &Repository) -> BTreeMap<i64, DocumentBuf> {
    let cursor = database.find("things", &FindRequest::default()).expect("it can be read");
    let document = |document: Result<DocumentBuf, _>| {
        let document = document.expect("it can be read");
        let id = document.get("_id").and_then(|id| id.as_integer()).expect("a number");
        (id, document)
    };
    cursor.map(document).collect()
}

/// Two commits, a branch `side` at the first, and changes that are not committed.
fn make(disk: &SimDisk) -> (BTreeMap<i64, DocumentBuf>, BTreeMap<i64, DocumentBuf>) {
    let frond = open(disk);
    let main = Repository::open(&frond, "shop").expect("a name");
    insert(&main, &(0..1_500).map(|id| thing(id, 0)).collect::<Vec<_>>());
    let index = IndexSpec::plain("round_1".to_owned(), document! { "round": 1 });
    main.create_indexes("things", &[index]).expect("an index");
    main.commit("first", "Ada").expect("a commit");
    main.create_branch("side", None).expect("a branch");
    insert(&main, &(1_500..1_700).map(|id| thing(id, 1)).collect::<Vec<_>>());
    main.commit("second", "Ada").expect("a commit");
    insert(&main, &(1_700..1_800).map(|id| thing(id, 2)).collect::<Vec<_>>());
    let side = Repository::open(&frond, "shop@side").expect("a branch");
    let found = (all(&main), all(&side));
    frond.close().expect("it closes");
    found
}

fn damage(random: &mut Random, disk: &SimDisk) -> String {
    let mut names = disk.machine().disk.list().expect("it answers");
    names.retain(|name| {
        name != "LOCK" && disk.contents(name).is_some_and(|bytes| !bytes.is_empty())
    });
    let name = random.choose(&names);
    let contents = disk.contents(name).expect("it is there");
    let position = random.below(contents.len());
    match random.below(6) {
        0..=3 => disk.flip_bit(name, position as u64 * 8),
        4 => {
            let mut bad = contents.clone();
            let end = (position + 4_096).min(bad.len());
            bad[position..end].fill(0);
            disk.set_contents(name, &bad);
        }
        _ => disk.set_contents(name, &contents[..position]),
    }
    format!("{name} at {position}")
}

/// Checks that only the reported documents of `database` are missing or older.
fn compare(
    target: &Frond,
    report: &SalvageReport,
    name: &str,
    expected: &BTreeMap<i64, DocumentBuf>,
    what: &str,
) {
    let salvaged = report.collections.iter().find(|collection| collection.database == name);
    let may_differ =
        salvaged.is_some_and(|salvaged| !salvaged.lost.is_empty()) || !report.notes.is_empty();
    let database = Repository::open(target, name).expect("a name");
    let found = all(&database);
    for (id, document) in &found {
        assert!(
            expected.get(id) == Some(document) || may_differ,
            "{what}: {name} {id}: {report:?}"
        );
    }
    if found.len() < expected.len() {
        assert!(may_differ, "{what}: {} of {}: {report:?}", found.len(), expected.len());
        let lost = salvaged.map_or(0, |salvaged| salvaged.lost.iter().map(count).sum());
        let is_reported = u64::MAX == lost || (expected.len() - found.len()) as u64 <= lost;
        assert!(is_reported || !report.notes.is_empty(), "{what}: {report:?}");
    }
    let filter = document! { "round": 0 };
    if !found.is_empty() && database.list_indexes("things").expect("they can be read").len() > 1 {
        let request = FindRequest { filter: Some(filter), ..FindRequest::default() };
        let by_index = database.find("things", &request).expect("a plan").count();
        let of_round = |document: &&DocumentBuf| document.get("round") == Some(Value::Int32(0));
        assert_eq!(by_index, found.values().filter(of_round).count(), "{what}");
    }
}

fn count(part: &LostPart) -> u64 {
    match part {
        LostPart::Document(_) => 1,
        LostPart::Range(_, _, Some(count)) => *count,
        LostPart::Range(..) | LostPart::Whole(_) => u64::MAX,
    }
}

#[test]
fn readable_data_is_saved_and_the_rest_reported() {
    let whole = SimDisk::new(1);
    let (main, side) = make(&whole);
    let names = whole.machine().disk.list().expect("it answers");
    random::for_seeds(40, |mut random| {
        let disk = SimDisk::new(random.next());
        for name in names.iter().filter(|name| *name != "LOCK") {
            let file = disk.machine().disk.create(name).expect("a new file");
            file.write_all_at(0, &whole.contents(name).expect("it is there")).expect("room");
        }
        let count = random.below(4);
        let what: Vec<String> = (0..count).map(|_| damage(&mut random, &disk)).collect();
        let what = what.join(", ");
        let before: Vec<_> = names.iter().map(|name| disk.contents(name)).collect();
        let (left, to) = (SimDisk::new(random.next()), SimDisk::new(random.next()));
        let target = open(&to);
        let machines = (&disk.machine(), &left.machine());
        let report = salvage_on(machines, None, &target, &mut |_| {});
        let after: Vec<_> = names.iter().map(|name| disk.contents(name)).collect();
        assert!(before == after, "{what}: the damaged directory was written");
        let report = match report {
            Ok(report) => report,
            // Hardly ever: only if no state of the directory is left.
            Err(error) => return assert!(count > 0, "{error}"),
        };
        assert!(count > 0 || report.is_whole(), "{report:?}");
        compare(&target, &report, "shop", &main, &what);
        if Repository::open(&target, "shop@side").is_ok() {
            compare(&target, &report, "shop@side", &side, &what);
        }
        target.engine().check().expect("what was made is whole");
        target.close().expect("it closes");
    });
}

/// Whichever of the chunks is damaged by which all others are found, its copy is there. Where that
/// is damaged too, an older state may be all that is left, or none: that is reported, and not only
/// the place, and all commits are saved.
#[test]
fn metadata_chunks_are_stored_twice() {
    let whole = SimDisk::new(1);
    let (main, _) = make(&whole);
    let names = whole.machine().disk.list().expect("it answers");
    let copy = || {
        let copy = SimDisk::new(2);
        for name in names.iter().filter(|name| *name != "LOCK") {
            copy.set_contents(name, &whole.contents(name).expect("it is there"));
        }
        copy
    };
    let parts = {
        let disk = copy();
        let store = LocalStore::open(&disk.machine(), LocalOptions::default()).expect("it opens");
        let state = store.root("engine").expect("it is read").expect("a state");
        let below = |hash| store.get(hash).expect("it is there").references().collect::<Vec<_>>();
        let first = below(state);
        let bases: Vec<_> = first.iter().flat_map(|hash| below(*hash)).collect();
        // All of the system tree, which comes first.
        let system: Vec<_> = bases.iter().take(1).flat_map(|hash| below(*hash)).collect();
        [vec![state], first, bases, system].concat()
    };
    let (mut harmed, mut nameless) = (0, 0);
    for (hash, has_copy) in parts.into_iter().flat_map(|hash| [(hash, true), (hash, false)]) {
        let disk = copy();
        let is_file = |name: &&String| name.ends_with(".pack") || (*name == "COPIES" && !has_copy);
        for name in names.iter().filter(is_file) {
            let bytes = disk.contents(name).expect("it is there");
            let places = bytes.windows(32).enumerate().filter(|(_, name)| *name == hash.0);
            // Of references to it too.
            for (place, _) in places {
                disk.flip_bit(name, (place as u64 + 40) * 8);
                harmed += 1;
            }
        }
        let target = open(&SimDisk::new(3));
        let machines = (&disk.machine(), &SimDisk::new(4).machine());
        let report = salvage_on(machines, None, &target, &mut |_| {}).expect("commits are left");
        assert!(!report.damages.is_empty(), "{hash}");
        assert_eq!(report.commits, 2, "{hash}: {report:?}");
        if has_copy {
            assert!(report.is_whole(), "{hash}: {report:?}");
            assert_eq!(all(&Repository::open(&target, "shop").expect("a name")), main);
            continue;
        }
        compare(&target, &report, "shop", &main, &hash.to_string());
        let databases = target.list_databases().expect("they can be listed");
        let name = databases.iter().map(|database| &database.name[..]).next().expect("one");
        let saved = all(&Repository::open(&target, name).expect("a name"));
        assert!(1_700 <= saved.len(), "{hash}: {} in {name}: {report:?}", saved.len());
        nameless += usize::from(name != "shop");
        target.engine().check().expect("what was made is whole");
    }
    assert!(harmed > 6 && nameless > 0, "{harmed} {nameless}");
}

#[test]
fn a_database_or_a_collection_of_a_backup_comes_alone() {
    let disk = SimDisk::new(5);
    let (main, side) = make(&disk);
    let frond = open(&disk);
    let other = Repository::open(&frond, "other").expect("a name");
    insert(&other, &[thing(1, 1)]);
    let place = SimDisk::new(6);
    let opened = || PlainRemote::open(&place.machine()).expect("it opens");
    let image = DataImage::take(&frond).expect("an image");
    opened().back_up("monday", &image, Reread::Share, &mut |_| {}).expect("a backup");
    let target = open(&SimDisk::new(7));
    insert(&Repository::open(&target, "mine").expect("a name"), &[thing(9, 9)]);
    let restore = |database: &str, collection: Option<&str>| {
        let (database, collection) = (database.to_owned(), collection.map(str::to_owned));
        let request = PartRequest { backup: None, database, collection };
        let left = SimDisk::new(8);
        part::restore_on(opened(), &request, &left.machine(), &target)
    };
    for (database, collection) in
        [("nothing", None), ("shop", Some("nothing")), ("mine", None), ("shop@side", None)]
    {
        assert!(restore(database, collection).is_err(), "{database} {collection:?}");
    }
    // One collection of a branch, into a database that isn't there.
    let report = restore("shop", Some("things")).expect("it is there");
    assert!(report.is_whole(), "{report:?}");
    let shop = Repository::open(&target, "shop").expect("a name");
    assert_eq!(all(&shop), main);
    assert_eq!(shop.list_indexes("things").expect("they can be read").len(), 2);
    assert!(restore("shop", Some("things")).is_err(), "it is there by now");
    assert!(restore("shop", None).is_err(), "it is there by now");
    shop.drop_database().expect("it can be dropped");
    // As another branch has it: into the default branch, since a branch begins at a commit.
    let report = restore("shop@side", Some("things")).expect("it is there");
    assert!(report.is_whole() && report.collections[0].database == "shop", "{report:?}");
    assert_eq!(all(&shop), side);
    shop.drop_database().expect("it can be dropped");
    // All of a database: history, branches, and what isn't committed.
    let report = restore("shop", None).expect("it is there");
    assert!(report.is_whole() && report.commits == 2, "{report:?}");
    assert_eq!(all(&Repository::open(&target, "shop").expect("a name")), main);
    assert_eq!(all(&Repository::open(&target, "shop@side").expect("a branch")), side);
    let (from, to) = (Repository::open(&frond, "shop"), Repository::open(&target, "shop"));
    let status = |database: Result<Repository, _>| {
        format!("{:?}", database.expect("a name").status().expect("a status"))
    };
    assert_eq!(status(from), status(to));
    assert_eq!(target.list_databases().expect("they can be listed").len(), 2);
    target.engine().check().expect("it is whole");
}

#[test]
fn a_capped_collection_comes_in_its_order() {
    let disk = SimDisk::new(5);
    let frond = open(&disk);
    let shop = Repository::open(&frond, "shop").expect("a name");
    let capped = document! { "capped": true, "size": 4096_i32, "max": 5_i32 };
    shop.create_collection("things", capped.view()).expect("made");
    for id in [8, 2, 9, 3, 7, 1, 5] {
        insert(&shop, &[document! { "_id": id }]);
    }
    let in_order = |frond: &Frond| -> Vec<i64> {
        let shop = Repository::open(frond, "shop").expect("a name");
        let found = shop.find("things", &FindRequest::default()).expect("it can be read");
        let id = |found: Result<DocumentBuf, _>| {
            found.expect("it can be read").get("_id").and_then(|id| id.as_integer())
        };
        found.map(|found| id(found).expect("a number")).collect()
    };
    let place = SimDisk::new(6);
    let opened = || PlainRemote::open(&place.machine()).expect("it opens");
    let image = DataImage::take(&frond).expect("an image");
    opened().back_up("monday", &image, Reread::Share, &mut |_| {}).expect("a backup");
    let disk = disk.kill();
    for way in ["salvage", "database", "collection"] {
        let (left, target) = (SimDisk::new(8), open(&SimDisk::new(7)));
        let collection = (way == "collection").then(|| "things".to_owned());
        let request = PartRequest { backup: None, database: "shop".to_owned(), collection };
        let report = match way {
            "salvage" => salvage_on((&disk.machine(), &left.machine()), None, &target, &mut |_| {}),
            _ => part::restore_on(opened(), &request, &left.machine(), &target),
        };
        let report = report.expect("it is there");
        assert!(report.is_whole(), "{way}: {report:?}");
        assert_eq!(report.collections[0].documents, 5, "{way}");
        assert_eq!(in_order(&target), [9, 3, 7, 1, 5], "{way}");
        insert(&Repository::open(&target, "shop").expect("a name"), &[document! { "_id": 4 }]);
        assert_eq!(in_order(&target), [3, 7, 1, 5, 4], "{way}: the oldest goes");
    }
}

#[test]
fn a_lost_log_costs_what_it_had_and_is_reported() {
    let disk = SimDisk::new(5);
    let (main, side) = make(&disk);
    let frond = open(&disk);
    let shop = Repository::open(&frond, "shop").expect("a name");
    insert(&shop, &[thing(9_000, 0)]);
    shop.commit("which no branch names without the log", "Ada").expect("a commit");
    let disk = disk.kill();
    let names = disk.machine().disk.list().expect("it answers");
    let log: Vec<_> = names.iter().filter(|name| name.starts_with("log-")).collect();
    assert!(!log.is_empty());
    log.iter().for_each(|name| disk.machine().disk.remove(name).expect("it is there"));
    let opened = crate::open::open_on(&disk.machine(), FrondOptions::default());
    let error = opened.err().expect("it isn't as it was");
    assert!(error.message.contains(log[0].as_str()), "{error:?}");
    let target = open(&SimDisk::new(7));
    let machines = (&disk.machine(), &SimDisk::new(8).machine());
    let report = salvage_on(machines, None, &target, &mut |_| {}).expect("most is there");
    assert!(!report.is_whole(), "{report:?}");
    for (name, expected) in [("shop", main), ("shop@side", side)] {
        assert!(all(&Repository::open(&target, name).expect("a name")) == expected, "{report:?}");
    }
    let tags = Repository::open(&target, "shop").expect("a name").list_tags().expect("a list");
    assert!(tags.iter().any(|tag| tag.name.starts_with("salvaged-")), "{report:?}");
}

/// Records behind a damaged one are whole, and each says so itself.
#[test]
fn a_damaged_record_of_the_log_costs_itself_alone() {
    let disk = SimDisk::new(5);
    let frond = open(&disk);
    let shop = Repository::open(&frond, "shop").expect("a name");
    for id in 10..210 {
        insert(&shop, &[thing(id, 0)]);
        if id % 100 == 50 {
            shop.commit("some", "Ada").expect("a commit");
        }
    }
    let whole = disk.kill();
    let names = whole.machine().disk.list().expect("it answers");
    let log = names.iter().find(|name| name.starts_with("log-")).expect("a log");
    let bytes = whole.contents(log).expect("it is there").len() as u64;
    for eighth in 1..8 {
        let disk = whole.copy(2);
        // Two bits: one alone is turned back.
        disk.flip_bit(log, bytes * eighth);
        disk.flip_bit(log, bytes * eighth + 9);
        let target = open(&SimDisk::new(7));
        let machines = (&disk.machine(), &SimDisk::new(8).machine());
        let report = salvage_on(machines, None, &target, &mut |_| {}).expect("most is there");
        assert!(!report.is_whole(), "{report:?}");
        let is_reported = |note: &String| note.contains("a record of the log can't be read");
        assert!(report.notes.iter().any(is_reported), "{report:?}");
        assert!(report.commits_lost.is_empty(), "{report:?}");
        let found = all(&Repository::open(&target, "shop").expect("a name"));
        assert!(198 <= found.len(), "{} are there: {report:?}", found.len());
        assert!(found.keys().all(|id| (10..210).contains(id)), "{report:?}");
        target.engine().check().expect("what was made is whole");
    }
}

fn salvaged(disk: &SimDisk) -> SalvageReport {
    let target = open(&SimDisk::new(3));
    let machines = (&disk.machine(), &SimDisk::new(4).machine());
    salvage_on(machines, None, &target, &mut |_| {}).expect("most is there")
}

/// One copy of the manifest can't be read, the other is from before the last change.
#[test]
fn a_manifest_that_is_older_than_what_is_there_is_reported() {
    let disk = SimDisk::new(1);
    make(&disk);
    let before = disk.contents("MANIFEST.copy").expect("it is there");
    let frond = open(&disk);
    let shop = Repository::open(&frond, "shop").expect("a name");
    insert(&shop, &[thing(9_000, 0)]);
    frond.engine().checkpoint().expect("it folds");
    frond.close().expect("it closes");
    drop((shop, frond));
    assert!(salvaged(&disk.copy(2)).is_whole());
    assert!(before != disk.contents("MANIFEST.copy").expect("it is there"));
    disk.set_contents("MANIFEST.copy", &before);
    disk.flip_bit("MANIFEST", 100);
    let report = salvaged(&disk);
    let is_reported = |note: &String| note.contains("the other is older than what is there");
    assert!(report.notes.iter().any(is_reported), "{report:?}");
}

/// The catalog of the last commit can't be read, while there is a working state.
#[test]
fn commits_that_nothing_lists_any_more_are_reported() {
    let whole = SimDisk::new(1);
    make(&whole);
    let catalogs: Vec<_> = {
        let disk = whole.copy(2);
        let store = LocalStore::open(&disk.machine(), LocalOptions::default()).expect("it opens");
        let all = store.get_many(&store.chunk_hashes().expect("they are read"));
        let commits = all.expect("they are whole").into_iter();
        let commits = commits.filter(|chunk| chunk.kind() == ChunkKind::Commit);
        commits.filter_map(|commit| commit.references().next()).collect()
    };
    let mut reported = 0;
    for catalog in catalogs {
        let disk = whole.copy(2);
        for name in disk.machine().disk.list().expect("it answers") {
            let bytes = disk.contents(&name).expect("it is there");
            let places = bytes.windows(32).enumerate().filter(|(_, name)| *name == catalog.0);
            places.for_each(|(place, _)| disk.flip_bit(&name, (place as u64 + 40) * 8));
        }
        let report = salvaged(&disk);
        let is_it = |note: &&String| note.contains("what its last commit had can't be listed");
        reported += report.notes.iter().filter(is_it).count();
    }
    assert!(0 < reported);
}
