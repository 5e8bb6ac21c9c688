//! Goal: a single flipped bit in a backup destroys nothing that can still be had: the next backup
//! notices and repairs it, and irreparable damage is reported while the rest is restored. Method: a
//! place on a simulated disk with two backups; for many seeds a bit of any of its files is flipped
//! (or a file is cut, or removed), then a backup is taken and all of them are verified and
//! restored.

use frond_db::inside::refs::repositories;
use frond_db::inside::{Error, Frond, FrondOptions, Reader};
use frond_db::{Durability, FindRequest};
use frond_doc::{DocumentBuf, document};
use frond_store::io::Machine;
use frond_testkit::{Random, SimDisk, random};

use crate::remote::{
    BackupInfo, BackupReport, DataImage, Moved, ORIGIN, PlaceReport, PlainRemote, PushRequest,
    Remote, Reread, RestoreRequest, StorageDamage,
};
use crate::repository::Repository;
use crate::salvage::{SalvagedCollection, survey_on};

mod gone;
mod unrecorded;

fn quiet() -> impl FnMut(&Moved) {
    |_: &Moved| {}
}

fn open(disk: &SimDisk) -> Frond {
    crate::open::open_on(&disk.machine(), FrondOptions::default()).expect("a good directory")
}

fn shop(frond: &Frond) -> Repository {
    Repository::open(frond, "shop").expect("a database's name")
}

fn insert(database: &Repository, documents: &[DocumentBuf]) {
    let report = database.insert("things", documents, true, Durability::Synced);
    assert!(report.expect("it is there").errors.is_empty());
}

/// A document whose text is its own, some longer than fits into a leaf.
fn thing(id: i32, round: i32) -> DocumentBuf {
    let long = if id % 250 == 0 { 40_000 } else { 60 };
    let mut number =
        (id as u32).wrapping_add(1).wrapping_mul(2_654_435_761).wrapping_add(round as u32);
    let mut text = String::new();
    while text.len() < long {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(&format!("{number:08x} "));
    }
    document! { "_id": id, "round": round, "text": text.as_str() }
}

/// A shop with some documents and a commit.
fn origin(seed: u64) -> (Frond, Repository) {
    let frond = open(&SimDisk::new(seed));
    let main = shop(&frond);
    insert(&main, &(0..2_000).map(|id| thing(id, 0)).collect::<Vec<_>>());
    main.commit("first", "Ada").expect("a commit");
    (frond, main)
}

/// All documents, in order.
fn all(database: &Repository) -> Vec<DocumentBuf> {
    let cursor = database.find("things", &FindRequest::default()).expect("it can be read");
    cursor.collect::<Result<_, _>>().expect("it can be read")
}

fn named(name: &str) -> RestoreRequest {
    RestoreRequest { name: Some(name.to_owned()), ..RestoreRequest::default() }
}

fn push(database: &Repository, remote: &dyn Remote) -> Result<u64, Error> {
    let request = PushRequest { tags: true, ..PushRequest::default() };
    database.push(ORIGIN, remote, &request, &mut quiet()).map(|report| report.moved.chunks)
}

fn files(machine: &Machine, prefix: &str) -> Vec<String> {
    let mut names = machine.disk.list().expect("it answers");
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    names
}

fn back_up(disk: &SimDisk, frond: &Frond, name: &str) -> BackupReport {
    let place = PlainRemote::open(&disk.machine()).expect("it opens whatever is damaged");
    let image = DataImage::take(frond).expect("an image");
    place.back_up(name, &image, Reread::Share, &mut quiet()).expect("a backup")
}

fn verify(disk: &SimDisk, name: Option<&str>) -> PlaceReport {
    let place = PlainRemote::open(&disk.machine()).expect("it opens");
    place.verify(name, &mut |_| {}).expect("it answers")
}

/// Restores a backup; `None` if it isn't whole.
fn restore(disk: &SimDisk, name: &str) -> Option<Frond> {
    let place = PlainRemote::open(&disk.machine()).expect("it opens");
    let target = SimDisk::new(99);
    let report = place.restore_on(&named(name), &target.machine(), &mut quiet()).ok()?;
    report.is_there.then(|| open(&target))
}

/// A data directory, and a place with two backups of it: `monday`, and `tuesday` with one change
/// more.
fn begin(seed: u64) -> (Frond, Repository, SimDisk) {
    let (frond, main) = origin(seed);
    let disk = SimDisk::new(seed + 1_000);
    assert!(back_up(&disk, &frond, "monday").damages.is_empty());
    insert(&main, &(5_000..5_200).map(|id| thing(id, 1)).collect::<Vec<_>>());
    assert!(back_up(&disk, &frond, "tuesday").damages.is_empty());
    let report = verify(&disk, None);
    assert!(report.damages.is_empty() && report.parts.iter().all(|part| part.lost.is_empty()));
    (frond, main, disk)
}

/// Flips a bit of a file, or cuts it, or zeroes a part, or removes it.
fn damage(random: &mut Random, disk: &SimDisk, name: &str) -> String {
    let contents = disk.contents(name).expect("it is there");
    let position = random.below(contents.len());
    match random.below(8) {
        0..=4 => {
            let bit = position as u64 * 8 + random.below(8) as u64;
            disk.flip_bit(name, bit);
            format!("bit {bit} of {name}")
        }
        5 => {
            let mut bad = contents.clone();
            let end = (position + 512).min(bad.len());
            bad[position..end].fill(0);
            disk.set_contents(name, &bad);
            format!("zeros at {position} of {name}")
        }
        6 => {
            disk.set_contents(name, &contents[..position]);
            format!("{name} cut at {position}")
        }
        _ => {
            disk.machine().disk.remove(name).expect("it is there");
            format!("{name} removed")
        }
    }
}

#[test]
fn damage_in_a_remote_is_noticed_and_repaired() {
    let (frond, main, whole) = begin(1);
    let before = all(&main);
    let files = files(&whole.machine(), "");
    let files: Vec<&String> = files.iter().filter(|name| *name != "LOCK").collect();
    random::for_seeds(40, |mut random| {
        let disk = SimDisk::new(random.next());
        for name in &files {
            let file = disk.machine().disk.create(name).expect("a new file");
            file.write_all_at(0, &whole.contents(name).expect("it is there")).expect("room");
        }
        let name = random.choose(&files);
        let what = damage(&mut random, &disk, name);
        let changed = disk.contents(name) != whole.contents(name);
        let report = back_up(&disk, &frond, "wednesday");
        // A bit of compressed bytes may turn over and what they stand for stay: a match may begin
        // elsewhere in a run.
        let may_be_same = what.starts_with("bit ") && report.damages.is_empty();
        assert!(report.damages.is_empty() != changed || may_be_same, "{what}: {report:?}");
        assert!(report.unread.is_empty(), "{what}");
        // All of it is still to be had, so all backups are whole again, and nothing is damaged.
        assert!(report.gone.is_empty(), "{what}: {report:?}");
        for name in ["monday", "tuesday", "wednesday"] {
            let restored = restore(&disk, name).unwrap_or_else(|| panic!("{name}: {what}"));
            let count = if name == "monday" { 2_000 } else { 2_200 };
            assert_eq!(all(&shop(&restored)), before[..count], "{name}: {what}");
            restored.engine().check().expect("it is whole");
        }
        let after = verify(&disk, None);
        assert!(after.parts.iter().all(|part| part.lost.is_empty()), "{what}: {:?}", after.parts);
        if report.damages.iter().any(|damage| damage.may_hold_more) {
            // The pack's content is unknown, but a collection finds that nothing in it is needed.
            let place = PlainRemote::open(&disk.machine()).expect("it opens");
            place.reclaim(&mut |_| {}).expect("all that is needed is there");
        }
        assert!(
            verify(&disk, None).damages.is_empty(),
            "{what}: {:?}",
            verify(&disk, None).damages
        );
        let again = back_up(&disk, &frond, "thursday");
        assert!(again.damages.is_empty() && again.mended == 0, "{what}: {again:?}");
    });
}

/// If the file of refs is gone, or nothing in it is whole, its copy is taken and reported, and the
/// next change writes both.
#[test]
fn refs_that_are_gone_are_in_their_copy() {
    let (frond, main, whole) = begin(1);
    push(&main, &PlainRemote::open(&whole.machine()).expect("it opens")).expect("a push");
    for (round, name) in ["REFS", "REFS", "REFS", "REFS.copy"].into_iter().enumerate() {
        let disk = whole.copy(round as u64);
        let bytes = disk.contents(name).expect("it is there").len();
        match round {
            0 => disk.set_contents(name, b""),
            1 => disk.set_contents(name, &vec![0; bytes]),
            _ => disk.machine().disk.remove(name).expect("it is there"),
        }
        let place = PlainRemote::open(&disk.machine()).expect("it opens");
        let backups = place.backups().expect("they are listed");
        assert!(backups.iter().map(|backup| &backup.name[..]).eq(["monday", "tuesday"]));
        assert!(place.state().expect("it is read").is_some(), "what was pushed");
        assert!(restore(&disk, "tuesday").is_some());
        let found = verify(&disk, None);
        assert!(found.damages.iter().all(|damage| damage.file == name), "{found:?}");
        assert!(!found.damages.is_empty() && found.parts.iter().all(|part| part.lost.is_empty()));
        let request = PushRequest::default();
        let pushed = main.push(
            ORIGIN,
            &PlainRemote::open(&disk.machine()).expect("it opens"),
            &request,
            &mut quiet(),
        );
        let pushed = pushed.expect("it is there already");
        assert_eq!(pushed.mended, 0, "{pushed:?}");
        assert!(name != "REFS" || !pushed.damages.is_empty(), "{pushed:?}");
        let report = back_up(&disk, &frond, "wednesday");
        assert_eq!(report.damages.len(), found.damages.len(), "{report:?}");
        assert!(verify(&disk, None).damages.is_empty());
        assert_eq!(disk.contents("REFS"), disk.contents("REFS.copy"));
        // One that lacks the last change is no damage, and the file that is in force shows it.
        disk.set_contents("REFS.copy", &whole.contents("REFS.copy").expect("it is there"));
        let found = verify(&disk, None);
        assert!(found.damages.is_empty() && found.parts[2].name == "backup wednesday");
    }
}

/// Each pack of a place in turn becomes another one of it, whole: nothing in it is damaged, and
/// what it held is gone.
#[test]
fn a_pack_that_another_whole_one_replaced_is_reported_and_brought_again() {
    let (frond, main, whole) = begin(1);
    let packs = files(&whole.machine(), "pack-");
    for (position, name) in packs.iter().enumerate() {
        let disk = SimDisk::new(position as u64);
        for file in files(&whole.machine(), "") {
            disk.set_contents(&file, &whole.contents(&file).expect("it is there"));
        }
        let other = &packs[(position + 1) % packs.len()];
        disk.set_contents(name, &whole.contents(other).expect("it is there"));
        let is_reported = |damages: &[StorageDamage]| {
            damages.iter().any(|damage| damage.file == *name && damage.what.contains("another"))
        };
        assert!(is_reported(&verify(&disk, None).damages), "{name}");
        let report = back_up(&disk, &frond, "wednesday");
        assert!(is_reported(&report.damages), "{name}: {report:?}");
        assert!(report.gone.is_empty() && report.unread.is_empty(), "{name}: {report:?}");
        let after = verify(&disk, None);
        assert!(after.damages.is_empty(), "{name}: {after:?}");
        for backup in ["monday", "tuesday", "wednesday"] {
            assert!(restore(&disk, backup).is_some(), "{name}: {backup}");
        }
        let restored = restore(&disk, "tuesday").expect("it is whole");
        assert_eq!(all(&shop(&restored)), all(&main));
    }
}

/// A lost sector of an index leaves zeros, and a part of a name, that look like names of chunks
/// that are gone.
#[test]
fn zeros_in_an_index_are_no_names_of_what_is_gone() {
    const TRAILER_BYTES: usize = 48;
    const ENTRY_BYTES: usize = 40;
    let (frond, main, whole) = begin(1);
    for first in (0..ENTRY_BYTES).step_by(6) {
        let disk = whole.copy(first as u64);
        let packs = files(&disk.machine(), "pack-").into_iter();
        let packs = packs.map(|name| (disk.contents(&name).expect("it is there"), name));
        let (mut pack, name) = packs.max_by_key(|(pack, _)| pack.len()).expect("two");
        let end = pack.len() - TRAILER_BYTES - ENTRY_BYTES + first;
        pack[end - 3 * ENTRY_BYTES..end].fill(0);
        disk.set_contents(&name, &pack);
        let report = back_up(&disk, &frond, "wednesday");
        assert_eq!(report.damages.len(), 1, "{report:?}");
        assert!(report.gone.is_empty() && report.unread.is_empty(), "{first}: {report:?}");
        let restored = restore(&disk, "tuesday").expect("it is whole");
        assert_eq!(all(&shop(&restored)), all(&main));
        let after = verify(&disk, None);
        assert!(after.damages.is_empty(), "{first}: {after:?}");
    }
}

#[test]
fn irreparable_damage_is_reported_and_the_rest_restored() {
    let mut reported_count = 0;
    random::for_seeds(12, |mut random| {
        let (frond, main, disk) = begin(random.next() % 1_000);
        // One with documents: what they are found by lies twice.
        let mut packs = files(&disk.machine(), "pack-");
        packs.retain(|name| 20_000 < disk.contents(name).expect("it is there").len());
        // Chunks that only the old backups have.
        main.drop_collection("things").expect("it is there");
        insert(&main, &(0..50).map(|id| thing(id, 7)).collect::<Vec<_>>());
        drop(main);
        let other = open(&SimDisk::new(random.next()));
        insert(&shop(&other), &[thing(1, 1)]);
        let name = random.choose(&packs);
        let bytes = disk.contents(name).expect("it is there").len();
        disk.flip_bit(name, (16 + random.below(bytes / 2)) as u64 * 8);
        // Another directory's backup can't mend it.
        let report = back_up(&disk, &other, "other");
        assert_eq!(report.damages.len(), 1, "{report:?}");
        assert!(report.unread.is_empty(), "{report:?}");
        assert!(restore(&disk, "other").is_some());
        let found = verify(&disk, None);
        let lost: Vec<bool> = found.parts.iter().map(|part| !part.lost.is_empty()).collect();
        // A chunk that lies in another pack, too, isn't gone.
        assert_eq!(lost[0] || lost[1], !report.gone.is_empty(), "{report:?} {found:?}");
        assert!(!lost[2]);
        for (name, lost) in ["monday", "tuesday"].into_iter().zip(lost) {
            assert_eq!(restore(&disk, name).is_none(), lost, "{name}");
            let one = verify(&disk, Some(name));
            assert_eq!((one.parts.len(), one.parts[0].lost.is_empty()), (1, !lost));
            if !lost {
                continue;
            }
            let place = PlainRemote::open(&disk.machine()).expect("it opens");
            let target = SimDisk::new(7);
            let request = RestoreRequest { partial: true, ..named(name) };
            let report = place.restore_on(&request, &target.machine(), &mut quiet());
            let report = report.expect("what all else is found by lies twice");
            assert!(report.is_there && !report.lost.is_empty());
            // And the report says of what: of documents, of commits, or of what leads to them.
            let left = SimDisk::new(8);
            let survey = survey_on(place, name, &left.machine()).expect("as much is there");
            let is_of_shop = |collection: &SalvagedCollection| {
                (&*collection.database, &*collection.name) == ("shop", "things")
            };
            assert!(survey.collections.iter().all(is_of_shop), "{survey:?}");
            reported_count += usize::from(!survey.collections.is_empty());
        }
        // The first directory's next backup brings it, as far as it has it: all of it, which undo
        // keeps.
        let report = back_up(&disk, &frond, "wednesday");
        assert!(report.gone.is_empty(), "{report:?}");
        for name in ["monday", "tuesday", "wednesday", "other"] {
            assert!(restore(&disk, name).is_some(), "{name}");
        }
    });
    // Documents are most of it.
    random::assert_met("collections that were told of", reported_count, 1);
}

#[test]
fn a_push_notices_too() {
    let (frond, main) = origin(3);
    let disk = SimDisk::new(4);
    push(&main, &PlainRemote::open(&disk.machine()).expect("it opens")).expect("a push");
    let (packs, mut id) = (files(&disk.machine(), "pack-"), 10_000);
    for (round, name) in packs.iter().enumerate() {
        let bytes = disk.contents(name).expect("it is there").len();
        disk.flip_bit(name, (bytes / 3) as u64 * 8);
        // Each push looks at some of what is there, the next one at what follows.
        let mended = (0..packs.len() * 4).find(|more| {
            id += 1;
            insert(&main, &[thing(id, *more as i32)]);
            main.commit("more", "Ada").expect("a commit");
            let remote = PlainRemote::open(&disk.machine()).expect("it opens");
            push(&main, &remote).expect("a push");
            !remote.damages().is_empty()
        });
        assert!(mended.is_some(), "round {round}");
        let found = verify(&disk, None);
        assert!(found.damages.is_empty(), "{found:?}");
        assert!(found.parts.iter().all(|part| part.lost.is_empty()), "{found:?}");
    }
    frond.engine().check().expect("it is whole");
}

/// Chunks that a push found in a place, and did not put, may be gone once the place was collected:
/// the push is refused, and finds out what is missing when it is run again.
#[test]
fn a_push_brings_again_what_was_gone_of_older_commits() {
    let (_, main) = origin(31);
    let disk = SimDisk::new(32);
    let open_place = || PlainRemote::open(&disk.machine()).expect("it opens");
    push(&main, &open_place()).expect("all of it");
    let first = files(&disk.machine(), "pack-");
    for round in 1..4 {
        insert(&main, &[thing(9_000 + round, round)]);
        main.commit("more", "Ada").expect("a commit");
        push(&main, &open_place()).expect("what is new");
    }
    disk.machine().disk.remove(&first[0]).expect("it is there");
    insert(&main, &[thing(10_000, 1)]);
    main.commit("last", "Ada").expect("a commit");
    push(&main, &open_place()).expect("all that was gone, too");
    let clone = shop(&open(&SimDisk::new(33)));
    clone.clone_from("place", &open_place(), &mut quiet()).expect("nothing is missing");
    assert!(all(&clone) == all(&main));
    assert_eq!(clone.log(None, None).expect("all of it").len(), 5);
}

#[test]
fn a_push_is_refused_that_a_collection_overtook() {
    let (_frond, main) = origin(8);
    let disk = SimDisk::new(9);
    let open_place = || PlainRemote::open(&disk.machine()).expect("it opens");
    push(&main, &open_place()).expect("a push");
    insert(&main, &(3_000..4_000).map(|id| thing(id, 2)).collect::<Vec<_>>());
    main.commit("to be given up", "Ada").expect("a commit");
    push(&main, &open_place()).expect("a fast-forward");
    main.reset(Some("HEAD~1"), true).expect("it goes back");
    let force = PushRequest { force_with_lease: true, ..PushRequest::default() };
    main.push(ORIGIN, &open_place(), &force, &mut quiet()).expect("as it was seen");
    // The stale client knows the packs with what is now garbage, and pushes the same again.
    let stale = open_place();
    let done = open_place().reclaim(&mut |_| {}).expect("a collection");
    assert!(done.packs_removed > 0, "{done:?}");
    insert(&main, &(3_000..4_000).map(|id| thing(id, 2)).collect::<Vec<_>>());
    main.commit("again", "Ada").expect("a commit");
    let error = push(&main, &stale).expect_err("what it found may be gone");
    assert!(error.message.contains("collected meanwhile"), "{error}");
    push(&main, &open_place()).expect("it looks again");
    let found = verify(&disk, None);
    assert!(found.parts.iter().all(|part| part.lost.is_empty()), "{found:?}");
}

/// The chunks by which a backup's others are found lie twice: damage to any pack, a whole one too,
/// leaves the rest.
#[test]
fn no_damage_of_one_pack_takes_all_of_a_backup() {
    let (frond, main) = origin(5);
    // Databases enough for a system tree of some nodes.
    for number in 0..40 {
        let other = Repository::open(&frond, &format!("other{number}")).expect("a name");
        insert(&other, &[thing(number, 2)]);
        other.commit("first", "Ada").expect("a commit");
    }
    let disk = SimDisk::new(6);
    let packs = |disk: &SimDisk| files(&disk.machine(), "pack-");
    for (round, name) in ["monday", "tuesday", "wednesday"].into_iter().enumerate() {
        back_up(&disk, &frond, name);
        insert(&main, &[thing(3_000 + round as i32, 1)]);
    }
    for is_collected in [false, true] {
        if is_collected {
            let place = PlainRemote::open(&disk.machine()).expect("it opens");
            place.remove_backup("tuesday").expect("it is there");
            place.reclaim(&mut |_| {}).expect("all that is needed is there");
        }
        let report = verify(&disk, None);
        assert!(report.damages.is_empty() && report.parts.iter().all(|it| it.lost.is_empty()));
        for pack in packs(&disk) {
            let bytes = disk.contents(&pack).expect("it is there");
            disk.set_contents(&pack, &vec![0; bytes.len()]);
            let place = PlainRemote::open(&disk.machine()).expect("it opens");
            for backup in place.backups().expect("they are listed") {
                let request = RestoreRequest { partial: true, ..named(&backup.name) };
                let target = SimDisk::new(7);
                let restored = place.restore_on(&request, &target.machine(), &mut quiet());
                assert!(restored.expect("some is there").is_there, "{pack} {}", backup.name);
                let restored = open(&target);
                let databases = repositories(&Reader::now(restored.engine()));
                assert_eq!(databases.expect("they are read").len(), 41);
            }
            disk.set_contents(&pack, &bytes);
        }
    }
}

/// A directory that a restore was cut short in isn't one without data, whatever opens it.
#[test]
fn a_cut_restore_is_no_data_directory() {
    let (_, main, disk) = begin(3);
    let before = all(&main);
    let (mut refused, mut is_done) = (0, false);
    for operations in (0..).step_by(3) {
        let target = SimDisk::new(operations);
        target.crash_after(operations);
        let place = PlainRemote::open(&disk.machine()).expect("it opens");
        let request = named("tuesday");
        is_done = place.restore_on(&request, &target.machine(), &mut quiet()).is_ok();
        let target = target.crash();
        match crate::open::open_on(&target.machine(), FrondOptions::default()) {
            // Cut before it began, or behind its end.
            Ok(frond) => assert!(refused == 0 || all(&shop(&frond)) == before),
            Err(error) => {
                assert!(error.message.contains("restore again"), "{error}");
                refused += 1;
                place.restore_on(&request, &target.machine(), &mut quiet()).expect("goes on");
                let frond = open(&target);
                assert_eq!(all(&shop(&frond)), before);
            }
        }
        if is_done {
            break;
        }
    }
    assert!(is_done && refused > 0);
}
