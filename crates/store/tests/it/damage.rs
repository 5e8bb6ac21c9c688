//! Bytes that are not what was written: every changed bit is found and named, nothing wrong is ever
//! returned, and no bytes whatever make the store panic.

use std::ops::ControlFlow;

use frond_store::field::FORMAT_VERSION;
use frond_store::io::Disk;
use frond_store::local::examine::{examine, rescue};
use frond_store::{Chunk, ChunkStore, MANIFEST_NAMES, Maintenance, StoreError};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};

use crate::{assert_stored, blob, open, random_chunks};

/// A store with sealed packs and an open one, all listed by the manifest.
fn sample(random: &mut Random) -> (SimDisk, Vec<Chunk>) {
    let disk = SimDisk::new(random.next());
    let chunks = random_chunks(random, 20);
    let store = open(&disk).unwrap();
    chunks.chunks(5).for_each(|part| store.put_many(part).unwrap());
    store.swap_root("r", None, Some(chunks[0].hash())).unwrap();
    assert!(2 < disk.list().unwrap().len());
    (disk, chunks)
}

/// Reads all of `chunks`; true if one was refused. A chunk that is returned is right.
fn some_refused(store: &dyn ChunkStore, chunks: &[Chunk], file: &str) -> bool {
    let mut refused = false;
    for chunk in chunks {
        match store.get(chunk.hash()) {
            Ok(found) => assert_eq!(found, *chunk),
            Err(StoreError::Damaged { file: named, .. }) => {
                assert_eq!(named, file);
                refused = true;
            }
            Err(other) => panic!("{other}"),
        }
    }
    refused
}

#[test]
fn every_changed_bit_is_found_when_opening_or_verifying() {
    for_seeds(2, |mut random| {
        let (disk, chunks) = sample(&mut random);
        for name in disk.list().unwrap() {
            let bits = disk.contents(&name).unwrap().len() as u64 * 8;
            for bit in (random.next() % 11..bits).step_by(11) {
                let damaged = disk.copy(0);
                damaged.flip_bit(&name, bit);
                let examined = examine(&damaged.machine(), &mut |_| ()).unwrap();
                assert!(!examined.damages.is_empty(), "{name} bit {bit}");
                // A chunk that is lost may be what the root names.
                let is_at = |file: &str| file == name || file == "MANIFEST";
                assert!(examined.damages.iter().all(|damage| {
                    matches!(damage, StoreError::Damaged { file, .. } if is_at(file))
                }));
                assert!(chunks.len() as u64 <= examined.chunks + 5, "{name} bit {bit}");
                let store = open(&damaged).unwrap();
                some_refused(&*store, &chunks, &name);
                let found = store.verify(&mut |_| ()).unwrap();
                let findings = store.take_findings();
                let names_it = |error: &StoreError| matches!(error, StoreError::Damaged { file, .. } if *file == name);
                assert!(!findings.is_empty(), "{name} bit {bit}");
                assert!(findings.iter().all(|finding| finding.file == name));
                assert!(found.iter().all(names_it));
                store.put_many(&chunks).unwrap();
                assert_stored(&*store, &chunks);
                drop(store);
                assert_stored(&*open(&damaged).unwrap(), &chunks);
            }
        }
    });
}

#[test]
fn a_bit_that_changes_while_the_store_is_open_is_never_returned() {
    for_seeds(300, |mut random| {
        let (disk, chunks) = sample(&mut random);
        let store = open(&disk).unwrap();
        let names: Vec<_> = disk.list().unwrap();
        let name = random.choose(&names);
        let bits = disk.contents(name).unwrap().len() * 8;
        disk.flip_bit(name, random.below(bits) as u64);
        let refused = some_refused(&*store, &chunks, name);
        let found = store.verify(&mut |_| ()).unwrap();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert!(!refused || matches!(&found[0], StoreError::Damaged { file, .. } if file == name));
    });
}

#[test]
fn chunks_of_a_damaged_index_are_damaged_and_never_missing() {
    for_seeds(300, |mut random| {
        let (disk, chunks) = sample(&mut random);
        let store = open(&disk).unwrap();
        let packs = packs(&disk);
        let name = random.choose(&packs);
        let bits = disk.contents(name).unwrap().len() * 8;
        (0..12).for_each(|_| disk.flip_bit(name, random.below(bits) as u64));
        if some_refused(&*store, &chunks, name) {
            assert!(store.take_findings().iter().any(|finding| finding.file == *name));
        }
        store.put_many(&chunks).unwrap();
        assert_stored(&*store, &chunks);
    });
}

#[test]
fn damage_in_the_open_pack_is_not_cut_off() {
    for_seeds(100, |mut random| {
        let disk = SimDisk::new(random.next());
        let listed = blob(&random.bytes(100));
        let store = open(&disk).unwrap();
        store.put_many(std::slice::from_ref(&listed)).unwrap();
        store.swap_root("r", None, Some(listed.hash())).unwrap();
        let pack = disk.list().unwrap().into_iter().find(|name| name.ends_with(".pack")).unwrap();
        let bits_listed = disk.contents(&pack).unwrap().len() * 8;
        let later: Vec<Chunk> = (0..3).map(|_| blob(&random.bytes(100))).collect();
        later.iter().for_each(|chunk| store.put_many(std::slice::from_ref(chunk)).unwrap());
        drop(store);
        let bytes = disk.contents(&pack).unwrap().len();
        // The bit lies in a recorded frame, or in a later one: the last of these may be taken for
        // torn, but isn't gone.
        let first = if random.one_in(2) { 16 * 8 } else { bits_listed };
        let bits = if first < bits_listed { bits_listed } else { bytes * 8 } - first;
        let bit = first + random.below(bits);
        disk.flip_bit(&pack, bit as u64);
        for _ in 0..2 {
            let store = open(&disk).unwrap();
            assert_eq!(disk.contents(&pack).unwrap().len(), bytes);
            let all: Vec<Chunk> = std::iter::once(&listed).chain(&later).cloned().collect();
            let lost = all.iter().filter(|chunk| match store.get(chunk.hash()) {
                Ok(found) => {
                    assert_eq!(found, **chunk);
                    false
                }
                Err(StoreError::Damaged { file, offset, .. }) => {
                    assert!(file == pack && offset <= bit as u64 / 8);
                    true
                }
                Err(other) => panic!("{other}"),
            });
            assert_eq!(lost.count(), 1);
            assert_eq!(store.damages().is_empty(), bits_listed <= bit);
        }
    });
}

/// Many frames damaged at once, in a pack whose index is damaged too: each is named, and what lies
/// between them is found.
#[test]
fn an_examination_goes_on_behind_damage() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..40u8).map(|byte| blob(&[byte; 200])).collect();
    {
        let store = open(&disk).unwrap();
        chunks.iter().for_each(|chunk| store.put_many(std::slice::from_ref(chunk)).unwrap());
        store.sync().unwrap();
    }
    let pack = "00000000.pack";
    let contents = disk.contents(pack).unwrap();
    let place = |chunk: &Chunk| contents.windows(32).position(|name| name == chunk.hash().0);
    let lost = [3usize, 4, 9];
    let offsets = lost.map(|lost| place(&chunks[lost]).unwrap() as u64 - 24);
    offsets.iter().for_each(|offset| disk.flip_bit(pack, (offset + 60) * 8));
    disk.flip_bit(pack, (contents.len() as u64 - 30) * 8);
    let examined = examine(&disk.machine(), &mut |_| ()).unwrap();
    assert_eq!(examined.chunks, chunks.len() as u64 - 3);
    let found = examined.damages.iter().map(|damage| match damage {
        StoreError::Damaged { file, offset, .. } => (file.as_str(), *offset),
        other => panic!("{other}"),
    });
    let found: Vec<_> = found.collect();
    assert!(offsets.iter().all(|offset| found.contains(&(pack, *offset))), "{found:?}");
    assert_eq!(found.len(), 4, "{found:?}");
    // Opening makes another index, and what is left is served.
    for _ in 0..2 {
        let store = open(&disk).unwrap();
        let damages = store.damages();
        let named = damages.iter().map(|damage| (&damage.file[..], damage.offset));
        assert!(named.eq(offsets.map(|offset| (pack, offset))), "{damages:?}");
        for (position, chunk) in chunks.iter().enumerate() {
            assert_eq!(store.get(chunk.hash()).is_err(), lost.contains(&position));
        }
    }
}

#[test]
fn missing_and_shortened_files_are_damage() {
    let (disk, _) = sample(&mut Random::new(1));
    for name in disk.list().unwrap() {
        let without = disk.copy(0);
        without.remove(&name).unwrap();
        check_reported(&without, &name);
        let contents = disk.contents(&name).unwrap();
        for bytes in 0..contents.len() {
            let shorter = disk.copy(0);
            shorter.set_contents(&name, &contents[..bytes]);
            check_reported(&shorter, &name);
        }
    }
}

/// Checks that the damage to `name` is reported, and nothing else.
fn check_reported(disk: &SimDisk, name: &str) {
    let findings = open(disk).unwrap().take_findings();
    assert!(!findings.is_empty() && findings.iter().all(|it| it.file == name), "{name}");
}

/// The manifest lies there twice: either is enough, what is wrong with the other is reported once,
/// and it is written again. Without both, nothing is opened.
#[test]
fn either_copy_of_the_manifest_is_enough() {
    type Harm<'a> = (&'a str, &'a dyn Fn(&SimDisk, &str));
    let harms: [Harm<'_>; 4] = [
        ("flipped", &|disk, name| disk.flip_bit(name, 300)),
        ("cut", &|disk, name| disk.set_contents(name, &disk.contents(name).unwrap()[..40])),
        ("empty", &|disk, name| disk.set_contents(name, &[])),
        ("gone", &|disk, name| disk.remove(name).unwrap()),
    ];
    for (harm, harm_file) in harms {
        let (disk, chunks) = sample(&mut Random::new(3));
        for name in MANIFEST_NAMES {
            let damaged = disk.copy(0);
            harm_file(&damaged, name);
            let store = open(&damaged).unwrap();
            assert_eq!(store.root("r").unwrap(), Some(chunks[0].hash()));
            let findings = store.take_findings();
            assert_eq!(findings.len(), 1, "{harm} {name}: {findings:?}");
            assert_eq!(findings[0].file, name);
            assert!(store.verify(&mut |_| ()).unwrap().is_empty());
            assert_stored(&*store, &chunks);
            drop(store);
            let [one, two] = MANIFEST_NAMES.map(|name| damaged.contents(name).unwrap());
            assert_eq!(one, two, "{harm} {name}");
            assert!(open(&damaged).unwrap().take_findings().is_empty());
        }
        MANIFEST_NAMES.into_iter().for_each(|name| harm_file(&disk, name));
        assert!(matches!(open(&disk), Err(StoreError::Damaged { .. })), "{harm}");
        assert!(!examine(&disk.machine(), &mut |_| ()).unwrap().damages.is_empty());
    }
}

/// A copy that a disk doesn't return is as good as damaged, where the other copy is whole. If
/// neither can be read, the error says so: they may be whole.
#[test]
fn a_copy_of_the_manifest_that_the_disk_does_not_give_back() {
    let (disk, chunks) = sample(&mut Random::new(3));
    for name in MANIFEST_NAMES {
        let damaged = disk.copy(0);
        damaged.make_unreadable(name);
        assert_eq!(examine(&damaged.machine(), &mut |_| ()).unwrap().damages.len(), 1);
        let store = open(&damaged).unwrap();
        let findings = store.take_findings();
        assert!(findings.len() == 1 && findings[0].file == name, "{findings:?}");
        assert!(findings[0].what.contains("can't be read"), "{findings:?}");
        assert_stored(&*store, &chunks);
        // It was written again.
        damaged.make_unreadable(name);
        let scrubbed = store.scrub(0, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(scrubbed.damaged, 1, "{name}");
        drop(store);
        assert!(open(&damaged).unwrap().take_findings().is_empty());
    }
    MANIFEST_NAMES.into_iter().for_each(|name| disk.make_unreadable(name));
    assert!(matches!(open(&disk), Err(StoreError::Io { .. })));
}

/// A pack that the disk doesn't give back costs a rescue what lies in it.
#[test]
fn unreadable_sectors_do_not_end_a_rescue() {
    let (disk, chunks) = sample(&mut Random::new(6));
    let packs = disk.list().unwrap().into_iter().filter(|name| name.ends_with(".pack"));
    for name in packs {
        let damaged = disk.copy(0);
        damaged.make_unreadable(&name);
        let mut taken = Vec::new();
        let mut take = |chunk: Chunk| {
            taken.push(chunk);
            Ok(())
        };
        let rescued = rescue(&damaged.machine(), &mut take, &mut |_| ()).unwrap();
        let damages = rescued.examined.damages;
        let is_at = |error: &StoreError| match error {
            StoreError::Damaged { file, .. } => *file == name || file == MANIFEST_NAMES[0],
            _ => false,
        };
        assert!(!damages.is_empty() && damages.iter().all(is_at), "{name}: {damages:?}");
        let kept = chunks.iter().filter(|chunk| taken.contains(chunk)).count();
        assert!(0 < kept && kept < chunks.len(), "{name}: {kept}");
    }
}

/// A copy that is alone may be older than the other was: then what it doesn't list isn't removed.
#[test]
fn packs_that_only_the_damaged_copy_of_the_manifest_listed_are_kept() {
    for behind in MANIFEST_NAMES {
        let (disk, chunks) = sample(&mut Random::new(4));
        let old = disk.contents(behind).unwrap();
        let store = open(&disk).unwrap();
        let more = random_chunks(&mut Random::new(5), 20);
        more.chunks(5).for_each(|part| store.put_many(part).unwrap());
        store.swap_root("r", Some(chunks[0].hash()), Some(more[0].hash())).unwrap();
        drop(store);
        disk.set_contents(behind, &old);
        for name in MANIFEST_NAMES.into_iter().filter(|name| *name != behind) {
            disk.flip_bit(name, 300);
        }
        for round in 0..2 {
            let store = open(&disk).unwrap();
            assert_eq!(store.root("r").unwrap(), Some(chunks[0].hash()), "{behind}");
            assert_stored(&*store, &chunks);
            assert_stored(&*store, &more);
            assert!(store.verify(&mut |_| ()).unwrap().is_empty());
            assert_eq!(store.take_findings().is_empty(), round == 1);
        }
    }
}

/// The newer of two whole copies that differ, as a crash leaves them, is in force, and what it
/// doesn't name is gone.
#[test]
fn of_two_copies_of_the_manifest_the_newer_one_counts() {
    for behind in MANIFEST_NAMES {
        let (disk, chunks) = sample(&mut Random::new(4));
        let old = disk.contents(behind).unwrap();
        let store = open(&disk).unwrap();
        store.put_many(&[blob(b"more")]).unwrap();
        store.swap_root("r", Some(chunks[0].hash()), Some(blob(b"more").hash())).unwrap();
        drop(store);
        disk.set_contents(behind, &old);
        let store = open(&disk).unwrap();
        assert_eq!(store.root("r").unwrap(), Some(blob(b"more").hash()), "{behind}");
        assert!(store.take_findings().is_empty());
        let [one, two] = MANIFEST_NAMES.map(|name| disk.contents(name).unwrap());
        assert_eq!(one, two);
    }
}

/// A scrub reads both copies, reports, and mends at once.
#[test]
fn a_scrub_mends_a_copy_of_the_manifest() {
    for name in MANIFEST_NAMES {
        let (disk, chunks) = sample(&mut Random::new(5));
        let store = open(&disk).unwrap();
        disk.flip_bit(name, 200);
        let scrubbed = store.scrub(0, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(scrubbed.damaged, 1);
        let findings = store.take_findings();
        assert!(findings.len() == 1 && findings[0].file == name, "{findings:?}");
        assert!(store.verify(&mut |_| ()).unwrap().is_empty());
        assert_eq!(store.root("r").unwrap(), Some(chunks[0].hash()));
        drop(store);
        assert!(open(&disk).unwrap().take_findings().is_empty());
    }
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let (disk, _) = sample(&mut Random::new(1));
    for name in disk.list().unwrap() {
        let other = disk.copy(0);
        let mut contents = disk.contents(&name).unwrap();
        // A prefix of version 3, as docs/format/pack.md and manifest.md describe it.
        contents[8..12].copy_from_slice(&[3, 0, 3, 0]);
        let checksum = twox_hash::XxHash3_64::oneshot(&contents[..12]) as u32;
        contents[12..16].copy_from_slice(&checksum.to_le_bytes());
        other.set_contents(&name, &contents);
        match open(&other).map(drop).unwrap_err() {
            StoreError::Version { file, found: 3, readable: FORMAT_VERSION } => {
                assert_eq!(file, name);
            }
            error => panic!("{error}"),
        }
        assert_eq!(other.contents(&name).unwrap(), contents, "and it is left alone");
    }
}

/// A checksum protects from accidents only, and that is what reading looks for; a forged one is
/// found by what hashes: `verify`, `fsck`, and a collection that would move the chunk.
#[test]
fn a_forged_name_is_found_by_hashing() {
    let disk = SimDisk::new(0);
    let chunk = blob(&[1; 300]);
    {
        let store = open(&disk).unwrap();
        store.put_many(std::slice::from_ref(&chunk)).unwrap();
    }
    let pack = "00000000.pack";
    let mut contents = disk.contents(pack).unwrap();
    // The only frame begins behind the prefix: 24 bytes of header, then the chunk's name.
    let frame = &mut contents[16..];
    frame[24] ^= 1;
    let seed = twox_hash::XxHash3_64::oneshot(&frame[..16]);
    let checksum = twox_hash::XxHash3_64::oneshot_with_seed(seed, &frame[24..]);
    frame[16..24].copy_from_slice(&checksum.to_le_bytes());
    disk.set_contents(pack, &contents);
    let store = open(&disk).unwrap();
    let renamed = store.chunk_hashes().unwrap()[0];
    assert_ne!(renamed, chunk.hash());
    let is_found = |error: &StoreError| matches!(error, StoreError::Damaged { offset: 16, .. });
    let found = store.verify(&mut |_| ()).unwrap();
    assert!(found.iter().all(is_found) && found.len() == 1, "{found:?}");
    drop(store);
    let found = examine(&disk.machine(), &mut |_| ()).unwrap().damages;
    assert!(found.iter().all(is_found) && found.len() == 1, "{found:?}");
}

#[test]
fn random_bytes_never_panic() {
    for_seeds(2000, |mut random| {
        let (disk, chunks) = if random.one_in(50) {
            sample(&mut random)
        } else {
            let disk = SimDisk::new(0);
            let chunk = blob(&[1; 300]);
            open(&disk).unwrap().put_many(std::slice::from_ref(&chunk)).unwrap();
            let store = open(&disk).unwrap();
            store.put_many(std::slice::from_ref(&chunk)).unwrap();
            store.swap_root("r", None, Some(chunk.hash())).unwrap();
            (disk.clone(), vec![chunk])
        };
        let names: Vec<_> = disk.list().unwrap();
        let name = random.choose(&names);
        let mut contents = disk.contents(name).unwrap();
        // Keep a part, so that more than the first check is reached.
        let start = random.below(contents.len());
        let end = start + random.below(contents.len() - start) + 1;
        let noise = random.bytes(end - start);
        contents[start..end].copy_from_slice(&noise);
        let more = random.below(40);
        contents.extend(random.bytes(more));
        disk.set_contents(name, &contents);
        let examined = examine(&disk.machine(), &mut |_| ());
        if let Ok(store) = open(&disk) {
            some_refused(&*store, &chunks, name);
            store.verify(&mut |_| ()).unwrap();
        } else if let Ok(examined) = examined {
            assert!(!examined.damages.is_empty());
        }
    });
}

fn packs(disk: &SimDisk) -> Vec<String> {
    disk.list().unwrap().into_iter().filter(|name| name.ends_with(".pack")).collect()
}

/// Alone, and with damage in the index, or the last frame of an open pack.
#[test]
fn a_wrong_header_is_written_again() {
    let (good, chunks) = sample(&mut Random::new(1));
    for name in packs(&good) {
        let contents = good.contents(&name).unwrap();
        for others in [&[][..], &[contents.len() as u64 - 30][..]] {
            let disk = good.copy(0);
            disk.flip_bit(&name, 9 * 8);
            others.iter().for_each(|offset| disk.flip_bit(&name, offset * 8));
            let store = open(&disk).unwrap();
            assert!(!store.take_findings().is_empty(), "{name}");
            assert_eq!(disk.contents(&name).unwrap()[..16], contents[..16], "{name}");
            if others.is_empty() {
                assert_stored(&*store, &chunks);
            }
        }
    }
}

/// A pack as it was before opening gave it another index: the index that it had is whole, and will
/// do.
#[test]
fn a_pack_that_is_put_back_is_as_good_as_before() {
    let (disk, chunks) = sample(&mut Random::new(1));
    let name = packs(&disk).remove(0);
    let before = disk.contents(&name).unwrap();
    disk.flip_bit(&name, (before.len() as u64 - 30) * 8);
    drop(open(&disk).unwrap());
    assert!(before.len() < disk.contents(&name).unwrap().len(), "it has another index");
    disk.set_contents(&name, &before);
    for _ in 0..2 {
        let store = open(&disk).unwrap();
        assert!(store.take_findings().is_empty());
        assert_stored(&*store, &chunks);
        let stored = packs(&disk).iter().map(|name| disk.contents(name).unwrap().len()).sum();
        assert_eq!(store.counters().bytes_stored as usize, stored);
    }
}

/// The store goes on without a pack, also where it was the one that was written to, and has it
/// again once its file is back.
#[test]
fn a_missing_pack_may_come_back_after_others_were_written() {
    let (good, chunks) = sample(&mut Random::new(1));
    for name in packs(&good) {
        let disk = good.copy(0);
        disk.remove(&name).unwrap();
        let more = [blob(b"written meanwhile")];
        let store = open(&disk).unwrap();
        store.put_many(&more).unwrap();
        store.sync().unwrap();
        drop(store);
        assert_stored(&*open(&disk).unwrap(), &more);
        disk.set_contents(&name, &good.contents(&name).unwrap());
        let store = open(&disk).unwrap();
        assert_stored(&*store, &more);
        assert_stored(&*store, &chunks);
    }
}

/// A chunk behind the durable end that a crash cut short was never acknowledged.
#[test]
fn an_examination_reports_nothing_of_what_was_never_durable() {
    let disk = SimDisk::new(0);
    let store = open(&disk).unwrap();
    store.put_many(&[blob(b"durable")]).unwrap();
    store.sync().unwrap();
    store.put_many(&[blob(b"put a moment ago")]).unwrap();
    drop(store);
    let name = packs(&disk).remove(0);
    let contents = disk.contents(&name).unwrap();
    disk.set_contents(&name, &contents[..contents.len() - 5]);
    let examined = examine(&disk.machine(), &mut |_| ()).unwrap();
    assert!(examined.damages.is_empty() && examined.chunks == 1, "{:?}", examined.damages);
}

#[test]
fn an_examination_reports_a_root_whose_chunk_is_damaged() {
    let (disk, chunks) = sample(&mut Random::new(1));
    let root = chunks[0].hash();
    let holds = |name: &String| {
        let contents = disk.contents(name).unwrap();
        contents.windows(32).position(|window| window == root.0)
    };
    let name = packs(&disk).into_iter().find(|name| holds(name).is_some()).unwrap();
    disk.flip_bit(&name, (holds(&name).unwrap() as u64 - 8) * 8);
    let damages = examine(&disk.machine(), &mut |_| ()).unwrap().damages;
    let what = format!("root \"r\" names chunk {root}, which is not whole");
    assert!(damages.iter().any(|damage| damage.to_string().contains(&what)), "{damages:?}");
}
