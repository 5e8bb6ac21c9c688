//! Goal: `frond fsck` finds nothing in a directory that is whole, and finds a byte that changed.
//! Method: the tour's database; then one byte after another of its largest pack is flipped.

use crate::{Directory, frond};

#[test]
fn damage_is_found() {
    let directory = Directory::new();
    frond(&directory, "tour --keep world").ok();
    let out = frond(&directory, "fsck --data world").ok();
    assert!(out.starts_with("world is whole: "), "{out}");

    let packs = std::fs::read_dir(directory.path().join("world")).unwrap();
    let pack = packs
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pack"))
        .max_by_key(|path| path.metadata().unwrap().len())
        .expect("a database has packs");
    let bytes = std::fs::read(&pack).unwrap();
    for offset in [bytes.len() / 4, bytes.len() / 3, bytes.len() / 2] {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 0x10;
        std::fs::write(&pack, &damaged).unwrap();
        let ran = frond(&directory, "fsck --data world");
        assert_eq!(ran.code, 1, "offset {offset}: {ran:?}");
    }
    std::fs::write(&pack, &bytes).unwrap();
    frond(&directory, "fsck --data world").ok();
    frond(&directory, "fsck --data nowhere").fails(1);
}
