//! The worked examples of docs/format are what is written, byte for byte. So neither the formats
//! nor their documents change unnoticed.

use frond_doc::{DocumentBuf, document};
use frond_store::{Chunk, ChunkHash};
use frond_tree::{Tree, TreeFormat};

use crate::definition::IndexSpec;
use crate::refs::format::{self, Commit};
use crate::schema::entry::CatalogEntry;

/// The bytes in a document's fenced blocks of kind `hex`: whatever stands before a semicolon.
fn example(document: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let blocks = document.split("```hex\n").skip(1).filter_map(|rest| rest.split("```").next());
    for line in blocks.flat_map(str::lines) {
        let digits = line.split(';').next().unwrap_or_default();
        let byte = |digits: &str| u8::from_str_radix(digits, 16).expect("two digits");
        bytes.extend(digits.split_whitespace().map(byte));
    }
    bytes
}

fn hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<String>();
    bytes.chunks(16).map(|bytes| line(bytes) + "\n").collect()
}

#[track_caller]
fn check(document: &str, name: &str, written: &Chunk) {
    assert_eq!(hex(&example(document)), hex(written.encoded()));
    assert!(document.contains(name), "its name is {name}");
}

#[test]
fn the_example_of_a_commit() {
    let commit = Commit {
        catalog: Tree { root: ChunkHash([0x11; 32]), format: TreeFormat::new(7) },
        parents: vec![ChunkHash([0x22; 32])],
        author: "Ada".to_owned(),
        message: "hi".to_owned(),
        committer: None,
        authored_millis: None,
        timestamp_millis: 1_767_225_600_000,
        generation: 2,
        automatic: false,
        reverts: None,
    };
    let chunk = commit.encode();
    let id = format::id_of(chunk.hash()).to_string();
    check(include_str!("../../../docs/format/commit.md"), &id, &chunk);
}

#[test]
fn catalog_entry_example() {
    let spec = IndexSpec {
        name: "a_1".to_owned(),
        key: document! { "a": 1_i32 },
        unique: true,
        ..IndexSpec::of_id()
    };
    let indexes = vec![(spec, ChunkHash([0x44; 32]))];
    let chunk = CatalogEntry::new(DocumentBuf::empty(), ChunkHash([0x33; 32]), indexes).encode();
    let name = chunk.hash().to_string();
    check(include_str!("../../../docs/format/catalog.md"), &name, &chunk);
}
