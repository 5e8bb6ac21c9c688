//! The worked examples of docs/format are what the store writes, byte for byte. So neither the
//! format nor its documents change unnoticed.

use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{Chunk, ChunkKind, ChunkStore};
use frond_testkit::SimDisk;

use crate::blob;

/// The bytes in a document's fenced blocks of kind `hex`: whatever stands before two spaces or more
/// and a semicolon.
fn example(document: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let blocks = document.split("```hex\n").skip(1).filter_map(|rest| rest.split("```").next());
    for line in blocks.flat_map(str::lines) {
        let digits = line.split(';').next().unwrap_or_default();
        bytes.extend(digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    bytes
}

fn hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<String>();
    bytes.chunks(16).map(|bytes| line(bytes) + "\n").collect()
}

#[track_caller]
fn check(document: &str, written: &[u8]) {
    assert_eq!(hex(&example(document)), hex(written));
}

fn referring_chunk() -> Chunk {
    Chunk::new(ChunkKind::CatalogEntry, &[blob(b"hello").hash()], b"world")
}

#[test]
fn the_example_of_a_chunk() {
    check(include_str!("../../../../docs/format/chunk.md"), referring_chunk().encoded());
    let name = referring_chunk().hash().to_string();
    assert!(include_str!("../../../../docs/format/chunk.md").contains(&name), "its name is {name}");
}

/// One raw frame, one compressed, sealed because the second call finds the pack full; then the
/// manifest that lists it and the pack begun after it.
#[test]
fn the_examples_of_a_pack_and_a_manifest() {
    let disk = SimDisk::new(0);
    let options = LocalOptions {
        cache_bytes: 0,
        index_cache_bytes: 0,
        keys_memory_max: u64::MAX,
        slow_read_micros: 0,
        pack_bytes_target: 100,
        reserve_bytes: 0,
    };
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    let chunks = [blob(b"hello"), blob(&[b'z'; 300])];
    store.put_many(&chunks).unwrap();
    store.put_many(&[referring_chunk()]).unwrap();
    store.swap_root("main", None, Some(referring_chunk().hash())).unwrap();
    let file = |name| disk.contents(name).unwrap();
    check(include_str!("../../../../docs/format/manifest.md"), &file("MANIFEST"));
    check(include_str!("../../../../docs/format/pack.md"), &file("00000000.pack"));
}
