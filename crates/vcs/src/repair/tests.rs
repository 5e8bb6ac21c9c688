//! Goal: whatever bits flip in packs, a repair from a source with the same data leaves a sound
//! directory with every document, or reports what is lost; it changes nothing else. Method: a
//! directory with commits, a branch, an index, large documents and changes that are not committed,
//! backed up; for many seeds bits of its packs are turned over, and packs cut or removed.

use std::collections::BTreeMap;

use frond_db::inside::{Frond, FrondOptions, IndexSpec};
use frond_db::{Durability, FindRequest};
use frond_doc::{DocumentBuf, document};
use frond_testkit::{Random, SimDisk, random};

use super::*;
use crate::remote::{DataImage, PlainRemote, Remote, Reread};
use crate::repository::Repository;

type Documents = BTreeMap<i64, DocumentBuf>;

fn open(disk: &SimDisk) -> Frond {
    crate::open::open_on(&disk.machine(), FrondOptions::default()).expect("a good directory")
}

fn thing(id: i32) -> DocumentBuf {
    let count = if id % 300 == 7 { 7_000 } else { 20 };
    let mut random = Random::new(id as u64);
    let text: String = (0..count).map(|_| format!("{:08x}", random.next() as u32)).collect();
    document! { "_id": id, "round": id % 7, "text": text.as_str() }
}

fn insert(database: &Repository, ids: std::ops::Range<i32>) {
    let documents: Vec<_> = ids.map(thing).collect();
    let report = database.insert("things", &documents, true, Durability::Synced);
    assert!(report.expect("it is there").errors.is_empty());
}

fn all(frond: &Frond, name: &str) -> Documents {
    let database = Repository::open(frond, name).expect("a name");
    let cursor = database.find("things", &FindRequest::default()).expect("it can be read");
    let document = |document: Result<DocumentBuf, _>| {
        let document = document.expect("it can be read");
        (document.get("_id").and_then(|id| id.as_integer()).expect("a number"), document)
    };
    cursor.map(document).collect()
}

/// A directory and a backup of it.
fn make() -> (SimDisk, SimDisk) {
    let (disk, place) = (SimDisk::new(1), SimDisk::new(2));
    let frond = open(&disk);
    let main = Repository::open(&frond, "shop").expect("a name");
    insert(&main, 0..1_500);
    let index = IndexSpec::plain("round_1".to_owned(), document! { "round": 1 });
    main.create_indexes("things", &[index]).expect("an index");
    main.commit("first", "Ada").expect("a commit");
    main.create_branch("side", None).expect("a branch");
    insert(&main, 1_500..1_700);
    main.commit("second", "Ada").expect("a commit");
    insert(&main, 1_700..1_800);
    frond.engine().checkpoint().expect("it folds");
    let image = DataImage::take(&frond).expect("an image");
    let plain = PlainRemote::open(&place.machine()).expect("it opens");
    plain.back_up("monday", &image, Reread::Share, &mut |_| {}).expect("a backup");
    drop(image);
    frond.close().expect("it closes");
    (disk, place)
}

fn source(place: &SimDisk) -> ChunkSource {
    let remote = PlainRemote::open(&place.machine()).expect("it opens");
    Box::new(move |hashes| remote.get_many(hashes))
}

fn damage(random: &mut Random, disk: &SimDisk) -> String {
    let mut names = disk.machine().disk.list().expect("it answers");
    names.retain(|name| {
        name.ends_with(".pack") && disk.contents(name).is_some_and(|bytes| !bytes.is_empty())
    });
    if names.is_empty() {
        return "nothing is left".to_owned();
    }
    let name = random.choose(&names).clone();
    let contents = disk.contents(&name).expect("it is there");
    let position = random.below(contents.len());
    match random.below(8) {
        0..=4 => disk.flip_bit(&name, position as u64 * 8),
        5 => disk.set_contents(&name, &contents[..position]),
        6 => disk.machine().disk.remove(&name).expect("it is there"),
        _ => {
            let mut bad = contents.clone();
            let end = (position + 4_096).min(bad.len());
            bad[position..end].fill(0);
            disk.set_contents(&name, &bad);
        }
    }
    format!("{name} at {position}")
}

#[test]
fn damage_is_repaired_from_a_backup_or_reported() {
    let (whole, place) = make();
    let (main, side) = {
        let frond = open(&whole.copy(3));
        (all(&frond, "shop"), all(&frond, "shop@side"))
    };
    let state = {
        let disk = whole.copy(3);
        let store = LocalStore::open(&disk.machine(), LocalOptions::default()).expect("it opens");
        store.root("engine").expect("it is read").expect("a state").to_string()
    };
    let mut repaired = 0;
    random::for_seeds(60, |mut random| {
        let disk = whole.copy(random.next());
        let count = random.below(4);
        let what: Vec<String> = (0..count).map(|_| damage(&mut random, &disk)).collect();
        let what = what.join(", ");
        let report = repair_on(&disk.machine(), &[source(&place)], &mut |_| {});
        let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(report.damages.is_empty(), count == 0, "{what}: {report:?}");
        if !report.left.damages.is_empty() {
            // The state of the directory itself, which lies nowhere else.
            let is_lost = |damage: &String| damage.contains(&state);
            assert!(report.left.damages.iter().any(is_lost), "{what}: {report:?}");
            return;
        }
        repaired += usize::from(count > 0);
        assert!(0 < report.brought[0] || report.damages.len() <= count, "{what}: {report:?}");
        let again = fsck_on(&disk.machine(), &mut |_| {}).expect("it is read");
        assert!(again.damages.is_empty(), "{what}: {again:?}");
        let frond = open(&disk);
        assert!(all(&frond, "shop") == main && all(&frond, "shop@side") == side, "{what}");
        let shop = Repository::open(&frond, "shop").expect("a name");
        assert_eq!(shop.log(None, None).expect("a log").len(), 2, "{what}");
        frond.engine().check().expect("it is whole");
        frond.close().expect("it closes");
    });
    random::assert_met("directories that were repaired", repaired, 10);
}

/// Opening finds what is damaged near a pack's end, and so does the check: it is reported once,
/// also where a second copy makes it whole and no source has to bring anything. So it is where a
/// pack ends within a frame (FROND_SEED=2634258130).
#[test]
fn one_damage_is_reported_once() {
    let (whole, place) = make();
    let mut healed = 0;
    for name in ["00000000.pack", "00000001.pack"] {
        let bytes = whole.contents(name).expect("a pack").len();
        for position in (bytes.saturating_sub(2_000)..bytes).step_by(250) {
            for is_cut in [false, true] {
                let disk = whole.copy(5);
                if is_cut {
                    let contents = disk.contents(name).expect("a pack");
                    disk.set_contents(name, &contents[..position]);
                } else {
                    disk.flip_bit(name, position as u64 * 8);
                }
                let report = repair_on(&disk.machine(), &[source(&place)], &mut |_| {});
                let report = report.expect("it can be opened");
                let context = format!("{name} at {position}, cut: {is_cut}: {report:?}");
                assert!(report.left.damages.is_empty(), "{context}");
                if report.brought == [0] {
                    assert!(report.damages.len() == 1, "{context}");
                    healed += 1;
                }
            }
        }
    }
    assert!(0 < healed, "no second copy healed anything");
}

/// Chunks that no source has are reported by collection and `_id`, all else is served, and a source
/// that has them makes the directory whole later.
#[test]
fn missing_chunks_are_reported_until_a_source_has_them() {
    let (whole, place) = make();
    let name = "00000001.pack";
    let bytes = whole.contents(name).expect("a pack").len() as u64;
    let mut reported = 0;
    for step in 1..8 {
        let disk = whole.copy(4);
        disk.flip_bit(name, bytes * step / 8 * 8);
        let report = repair_on(&disk.machine(), &[], &mut |_| {}).expect("it can be opened");
        assert!(!report.damages.is_empty() && report.brought.is_empty(), "{report:?}");
        if let Some(lost) = report.left.lost.filter(|lost| !lost.collections.is_empty()) {
            let collection = &lost.collections[0];
            assert!(collection.name == "things" && !collection.lost.is_empty(), "{lost:?}");
            reported += 1;
        }
        let report = repair_on(&disk.machine(), &[source(&place)], &mut |_| {});
        let report = report.expect("it can be opened");
        assert!(report.left.damages.is_empty(), "{report:?}");
    }
    assert!(reported > 0);
}

/// A chunk whose hash differs from the requested one isn't stored, whatever the source says.
#[test]
fn a_source_that_lies_is_not_believed() {
    let (whole, place) = make();
    let disk = whole.copy(6);
    let name = "00000000.pack";
    let bytes = disk.contents(name).expect("a pack").len() as u64;
    disk.flip_bit(name, bytes / 2 * 8);
    let honest = PlainRemote::open(&place.machine()).expect("it opens");
    let other = frond_store::Chunk::new(frond_store::ChunkKind::Blob, &[], b"other");
    let liar: ChunkSource = Box::new(move |hashes| Ok(vec![other.clone(); hashes.len()]));
    let report = repair_on(&disk.machine(), &[liar], &mut |_| {}).expect("it can be opened");
    assert!(report.brought == [0] && !report.left.damages.is_empty(), "{report:?}");
    let honest: ChunkSource = Box::new(move |hashes| honest.get_many(hashes));
    let report = repair_on(&disk.machine(), &[honest], &mut |_| {}).expect("it can be opened");
    assert!(report.brought[0] > 0 && report.left.damages.is_empty(), "{report:?}");
}

/// An error that isn't damage isn't passed over: nothing more is repaired.
#[test]
fn a_disk_without_room_ends_a_repair() {
    let (whole, place) = make();
    let disk = whole.copy(7);
    let frond = open(&disk);
    insert(&Repository::open(&frond, "shop").expect("a name"), 2_000..2_010);
    let disk = disk.kill().copy(7);
    disk.fill_after(0);
    let error = repair_on(&disk.machine(), &[source(&place)], &mut |_| {});
    assert_eq!(error.expect_err("it can't fold").kind, ErrorKind::Unavailable);
    disk.make_room();
    let report = repair_on(&disk.machine(), &[source(&place)], &mut |_| {}).expect("there is room");
    assert!(report.damages.is_empty() && report.left.damages.is_empty(), "{report:?}");
}

/// A commit's chunks are in packs while the log still has what they were made of.
#[test]
fn what_the_log_has_is_repaired_without_a_source() {
    let disk = SimDisk::new(8);
    let frond = open(&disk);
    let main = Repository::open(&frond, "shop").expect("a name");
    insert(&main, 0..1_000);
    main.commit("first", "Ada").expect("a commit");
    let documents = all(&frond, "shop");
    let killed = disk.kill();
    let (mut by_log, mut lost) = (0, 0);
    for name in ["00000000.pack", "00000001.pack"] {
        let bytes = killed.contents(name).expect("a pack").len() as u64;
        for step in 1..16 {
            let disk = killed.copy(9);
            disk.flip_bit(name, bytes * step / 16 * 8);
            let report = repair_on(&disk.machine(), &[], &mut |_| {}).expect("it can be opened");
            if !report.left.damages.is_empty() {
                lost += 1;
                continue;
            }
            by_log += report.from_log;
            let frond = open(&disk);
            assert!(all(&frond, "shop") == documents, "{name} {step}");
            let shop = Repository::open(&frond, "shop@main~0").expect("a name");
            assert_eq!(shop.count("things", &Default::default()).expect("it is read"), 1_000);
            frond.close().expect("it closes");
        }
    }
    assert!(10 < by_log, "{by_log} chunks from the log, {lost} damages that it doesn't reach");
}
