//! Goal: `frond fsck` finds nothing in a directory that is whole, and finds a byte that changed,
//! also in one that can't be opened; `frond gc` gives space back and loses nothing. Method: the
//! tour's database; then one byte after another of its largest pack is flipped.

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
    for offset in [30, bytes.len() / 4, bytes.len() / 3, bytes.len() / 2] {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 0x10;
        std::fs::write(&pack, &damaged).unwrap();
        let ran = frond(&directory, "fsck --data world");
        assert_eq!(ran.code, 1, "offset {offset}: {ran:?}");
        let name = pack.file_name().and_then(|name| name.to_str()).unwrap();
        assert!(ran.out.contains(name), "offset {offset}: {ran:?}");
        assert!(ran.out.contains("offset "), "offset {offset}: {ran:?}");
    }
    std::fs::write(&pack, &bytes).unwrap();
    frond(&directory, "fsck --data world").ok();
    frond(&directory, "fsck --data nowhere").fails(1);
}

#[test]
fn what_is_dropped_gives_its_space_back() {
    let directory = Directory::new();
    frond(&directory, "tour --keep world").ok();
    let versions = frond(&directory, "log world --data world --json").ok();
    let first = frond(&directory, "gc --data world").ok();
    assert!(first.contains(" before, "), "{first}");
    let out = frond(&directory, "fsck --data world").ok();
    assert!(out.starts_with("world is whole: "), "{out}");
    assert_eq!(frond(&directory, "log world --data world --json").ok(), versions);
    let stored = || {
        let files = std::fs::read_dir(directory.path().join("world")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let before = stored();
    let lines: String = (0..3000u64)
        .map(|n| {
            format!(
                "{{\"_id\": {n}, \"noise\": \"{:x}\"}}\n",
                n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            )
        })
        .collect();
    std::fs::write(directory.path().join("noise.jsonl"), lines).unwrap();
    frond(&directory, "import noise.jsonl -d noise -c noise --data world").ok();
    frond(&directory, "gc --data world").ok();
    let filled = stored();
    assert!(before + 40_000 < filled, "what is there stays: {before}, then {filled}");
    std::fs::write(directory.path().join("one.jsonl"), "{\"_id\": 1}\n").unwrap();
    frond(&directory, "import one.jsonl -d noise -c noise --drop --data world").ok();
    frond(&directory, "gc --data world").ok();
    assert!(before + 40_000 < stored(), "what was dropped can be brought back");
    frond(&directory, "gc --data world --undo-days 0").ok();
    assert!(stored() < before + 20_000, "{before}, then {}", stored());
    frond(&directory, "fsck --data world").ok();
    frond(&directory, "gc --data nowhere").fails(1);
    frond(&directory, "gc --data world --rate 0").fails(2);
}

#[test]
fn the_doctor_tells_how_a_directory_is() {
    let directory = Directory::new();
    frond(&directory, "tour --keep world").ok();
    let out = frond(&directory, "doctor --data world").ok();
    for word in ["1 database", "commits; format version 0", "needed", "free", "ms", "open files"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    let names = std::fs::read_dir(directory.path().join("world")).unwrap();
    assert!(!names.map(|name| name.unwrap().file_name()).any(|name| name == "doctor.probe"));
    frond(&directory, "doctor --data nowhere").fails(1);
    std::fs::write(directory.path().join("world/MANIFEST"), "no manifest").unwrap();
    let ran = frond(&directory, "doctor --data world");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("MANIFEST") && ran.out.contains("frond fsck"), "{ran:?}");
}
