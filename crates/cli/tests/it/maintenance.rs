//! Goal: `frond fsck` finds nothing in a directory that is whole, and finds a byte that changed,
//! also in one that can't be opened; `frond gc` gives space back and loses nothing. Method: the
//! tour's database; then one byte after another of its largest pack is flipped.

use std::path::{Path, PathBuf};

use crate::serving::Server;
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
fn dropping_gives_space_back() {
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
    // No codec finds an order in it.
    let mixed = |n: u64| {
        let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ (n >> 31)
    };
    let lines: String = (0..3000u64)
        .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .enumerate()
        .map(|(id, n)| format!("{{\"_id\": {id}, \"noise\": \"{:x}{:x}\"}}\n", mixed(n), mixed(!n)))
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
fn the_doctor_reports_how_a_directory_is() {
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
    std::fs::write(directory.path().join("world/MANIFEST.copy"), "no manifest").unwrap();
    let ran = frond(&directory, "doctor --data world");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("MANIFEST") && ran.out.contains("frond fsck"), "{ran:?}");
}

/// Copies a directory of files.
fn copy(directory: &Directory, from: &str, to: &str) {
    let to = directory.path().join(to);
    let _ = std::fs::remove_dir_all(&to);
    std::fs::create_dir_all(&to).unwrap();
    for file in std::fs::read_dir(directory.path().join(from)).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// Documents to import.
fn noise() -> String {
    let line = |n: u64| {
        let noise = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{{\"_id\": {n}, \"noise\": \"{noise:x}\"}}\n")
    };
    (0..4000).map(line).collect()
}

/// Makes a data directory with a collection that fills most of a pack, `shop.noise`.
fn store_noise(directory: &Directory, data: &str) {
    directory.file("noise.jsonl", &noise());
    frond(directory, &format!("import noise.jsonl -d shop -c noise --data {data}")).ok();
    frond(directory, &format!("commit shop -m all --data {data}")).ok();
    frond(directory, &format!("gc --quick --data {data}")).ok();
}

fn largest_pack(data: &Path) -> PathBuf {
    let files = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "pack"))
        .max_by_key(|path| path.metadata().unwrap().len())
        .expect("a database has packs")
}

#[test]
fn the_doctor_reports_a_servers_damage_and_full_disk() {
    let directory = Directory::new();
    store_noise(&directory, "frond-data");
    let server = Server::start(&directory);
    let out = frond(&directory, &format!("doctor --uri {}", server.address)).ok();
    assert!(!out.contains("damage") && !out.contains("room"), "{out}");
    server.stop();
    let pack = largest_pack(&directory.path().join("frond-data"));
    let mut bytes = std::fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&pack, bytes).unwrap();
    let server = Server::start_with(&directory, "--reserve 1000000GB");
    frond(&directory, &format!("export -d shop -c noise --uri {}", server.address)).fails(1);
    let ran = frond(&directory, &format!("doctor --uri {}", server.address));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("1 place known to be damaged"), "{ran:?}");
    assert!(ran.out.contains(" held back") && ran.err.contains("2 problems"), "{ran:?}");
}

#[test]
fn a_place_without_a_backup_is_not_whole() {
    let directory = Directory::new();
    std::fs::create_dir(directory.path().join("empty")).unwrap();
    let output = frond(&directory, "backup empty --verify").fails(1);
    assert!(output.contains("empty holds no backup"), "{output}");
    assert!(frond(&directory, "backup empty --list").err.contains("empty holds no backup"));
    // Nor is a place made where there is nothing to put there.
    frond(&directory, "backup none --data nothing").fails(1);
    frond(&directory, "backup none --from http://127.0.0.1:1").fails(1);
    assert!(!directory.path().join("none").exists());
}

#[test]
fn damage_is_repaired_from_a_backup_a_clone_and_a_server() {
    let directory = Directory::new();
    store_noise(&directory, "world");
    frond(&directory, "backup place --data world").ok();
    frond(&directory, "clone world#shop shop --data mine").ok();
    copy(&directory, "world", "served");
    let token = "0123456789abcdef-of-this-test";
    directory.file("tokens", &format!("{token} # everything\n"));
    directory.file("my-token", &format!("{token}\n"));
    let server = "serve --data served --listen 127.0.0.1:0 --remote-listen 127.0.0.1:0 \
                  --remote-token-file tokens";
    let server = crate::remotes::Server::start(&directory, server);
    let export = frond(&directory, "export -d shop -c noise --data world").ok();

    let largest = largest_pack(&directory.path().join("world"));
    let name = largest.file_name().and_then(|name| name.to_str()).unwrap().to_owned();
    let bytes = std::fs::read(&largest).unwrap();
    let places = [
        "place".to_owned(),
        "mine".to_owned(),
        format!("http://{}/shop", server.address),
        format!("http://{}", server.address),
    ];
    for place in &places {
        for part in [3, 2] {
            copy(&directory, "world", "damaged");
            let mut damaged = bytes.clone();
            damaged[bytes.len() / part] ^= 0x10;
            std::fs::write(directory.path().join("damaged").join(&name), &damaged).unwrap();
            frond(&directory, "fsck --data damaged").fails(1);
            let ran =
                frond(&directory, &format!("repair damaged --from {place} --token-file my-token"));
            assert_eq!(ran.code, 3, "{place} {part}: {ran:?}");
            assert!(ran.out.contains(&name) && ran.out.contains(" is whole"), "{ran:?}");
            assert!(ran.out.contains(&format!("1 chunk from {place}")), "{ran:?}");
            let out = frond(&directory, "fsck --data damaged").ok();
            assert!(out.starts_with("damaged is whole: "), "{out}");
            assert_eq!(frond(&directory, "export -d shop -c noise --data damaged").ok(), export);
            let again = format!("repair --data damaged --from {place} --token-file my-token");
            let out = frond(&directory, &again).ok();
            assert!(out.contains(&format!("0 chunks from {place}")), "{out}");
        }
    }
    // Chunks that no place has are reported, and the rest is served.
    copy(&directory, "world", "damaged");
    frond(&directory, "tour --keep other").ok();
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 0x10;
    std::fs::write(directory.path().join("damaged").join(&name), &damaged).unwrap();
    let ran = frond(&directory, "repair damaged --from other");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("shop.noise") && ran.out.contains("lost: "), "{ran:?}");
    assert!(ran.err.contains("still damaged in 1 place"), "{ran:?}");
    frond(&directory, "repair damaged --from nowhere").fails(1);
    frond(&directory, "repair damaged").fails(1);
}

/// A commit's chunks are in a pack, and what they were made of is still in the log.
#[test]
fn damage_is_repaired_from_the_log() {
    let directory = Directory::new();
    let server = Server::start(&directory);
    directory.file("noise.jsonl", &noise());
    let import = "import noise.jsonl -d shop -c noise --commit first --uri";
    frond(&directory, &format!("{import} {}", server.address)).ok();
    drop(server); // Killed, so nothing was flushed.
    copy(&directory, "frond-data", "whole");
    let export = frond(&directory, "export -d shop -c noise --data whole").ok();
    let name = largest_pack(&directory.path().join("frond-data"));
    let name = name.file_name().and_then(|name| name.to_str()).unwrap().to_owned();
    for part in [3, 2] {
        copy(&directory, "frond-data", "damaged");
        let pack = directory.path().join("damaged").join(&name);
        let mut bytes = std::fs::read(&pack).unwrap();
        let middle = bytes.len() / part;
        bytes[middle] ^= 0x10;
        std::fs::write(&pack, bytes).unwrap();
        let report = frond(&directory, "fsck --data damaged --json").fails(1);
        let ran = frond(&directory, "repair damaged");
        assert_eq!(ran.code, 3, "{report} {ran:?}");
        assert!(ran.out.contains(" from the log") && ran.out.contains(" is whole"), "{ran:?}");
        assert!(!ran.out.contains("\n0 chunks from the log"), "{ran:?}");
        let out = frond(&directory, "fsck --data damaged").ok();
        assert!(out.starts_with("damaged is whole: "), "{out}");
        assert_eq!(frond(&directory, "export -d shop -c noise --data damaged").ok(), export);
    }
}

#[test]
fn a_directory_opens_by_either_copy_of_its_manifest() {
    let directory = Directory::new();
    frond(&directory, "tour --keep world").ok();
    for name in ["MANIFEST", "MANIFEST.copy"] {
        let path = directory.path().join("world").join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let ran = frond(&directory, "doctor --data world");
        assert!(ran.out.contains(&format!("{name}: damaged")), "{name}: {ran:?}");
        frond(&directory, "doctor --data world").ok();
        std::fs::remove_file(&path).unwrap();
        let ran = frond(&directory, "fsck --data world");
        assert!(ran.code == 1 && ran.out.contains(&format!("{name}: damaged")), "{ran:?}");
        let out = frond(&directory, "fsck --data world").ok();
        assert!(out.starts_with("world is whole"), "{out}");
    }
}
