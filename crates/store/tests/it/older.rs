//! A manifest that is older than its packs, the other copy being damaged: what it doesn't list is
//! found all the same, when the store is opened and when an unreadable directory is rescued.

use frond_store::io::Disk;
use frond_store::local::examine::rescue;
use frond_store::{Chunk, ChunkStore, MANIFEST_NAMES};
use frond_testkit::{Random, SimDisk};

use crate::{assert_stored, blob, hashes, open};

/// Some packs, the first of which the manifest lists.
fn sample() -> (SimDisk, Vec<Chunk>, Vec<String>) {
    let (disk, mut random) = (SimDisk::new(0), Random::new(1));
    let chunks: Vec<Chunk> = (0..20).map(|_| blob(&random.bytes(900))).collect();
    let store = open(&disk).unwrap();
    store.put_many(&chunks[..1]).unwrap();
    store.swap_root("r", None, Some(chunks[0].hash())).unwrap();
    let packs = || disk.list().unwrap().into_iter().filter(|name| name.ends_with(".pack"));
    let (older, listed) = (disk.contents(MANIFEST_NAMES[0]).unwrap(), packs().count());
    for chunk in &chunks[1..] {
        store.put_many(std::slice::from_ref(chunk)).unwrap();
        store.sync().unwrap();
    }
    drop(store);
    disk.set_contents(MANIFEST_NAMES[0], &older);
    disk.flip_bit(MANIFEST_NAMES[1], 40 * 8);
    let unlisted: Vec<String> = packs().skip(listed).collect();
    assert!(unlisted.len() > 1);
    (disk, chunks, unlisted)
}

#[test]
fn packs_missing_from_an_older_manifest_are_opened_whatever_their_headers() {
    for damages in [false, true] {
        let (disk, chunks, unlisted) = sample();
        let header = |name: &String| disk.contents(name).unwrap()[..16].to_vec();
        let before: Vec<_> = unlisted.iter().map(header).collect();
        if damages {
            unlisted.iter().for_each(|name| disk.flip_bit(name, 9 * 8));
        }
        let store = open(&disk).unwrap();
        assert_stored(&*store, &chunks);
        assert_eq!(unlisted.iter().map(header).collect::<Vec<_>>(), before);
        drop(store);
        assert_stored(&*open(&disk).unwrap(), &chunks);
    }
}

#[test]
fn a_rescue_brings_what_an_older_manifest_does_not_list() {
    let (disk, chunks, _) = sample();
    let mut found = Vec::new();
    let mut take = |chunk: Chunk| {
        found.push(chunk.hash());
        Ok(())
    };
    rescue(&disk.machine(), &mut take, &mut |_| ()).unwrap();
    let mut expected = hashes(&chunks);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
