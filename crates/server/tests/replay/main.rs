//! Goal: inputs that the fuzzers once found, and small changes of them, are read by stable builds
//! too, without the fuzzers' toolchain. Method: each target of `fuzz/` is given its seeds (the
//! lines of `fuzz/corpus`, and what is made of them here) as they are, and changed at random. A
//! test binary of its own, since the targets are modules of `fuzz/`, which has its own workspace.
//! Checksums are checked here, unlike there: so files and frames mostly fail at the first.

#[path = "../../../../fuzz/src/commands.rs"]
mod commands;
#[path = "../../../../fuzz/src/directory.rs"]
mod directory;
#[path = "../../../../fuzz/src/documents.rs"]
mod documents;
#[path = "../../../../fuzz/src/trees.rs"]
mod trees;
#[path = "../../../../fuzz/src/wire.rs"]
mod wire;

use frond_doc::{DocumentBuf, extended_json, key};
use frond_server::wire::Message;
use frond_store::{Chunk, ChunkKind};
use frond_testkit::random::{Random, for_seeds};
use frond_vcs::remote::frame::{self, FrameEffort};

/// One document a line: every type, and names and nestings that once were trouble.
const DOCUMENTS: &str = include_str!("../../../../fuzz/corpus/documents.txt");
/// One command a line.
const COMMANDS: &str = include_str!("../../../../fuzz/corpus/commands.txt");
/// The greatest number of bytes that are changed, inserted or cut at once.
const EDIT_BYTES_MAX: usize = 8;

fn read(lines: &str) -> Vec<DocumentBuf> {
    lines.lines().map(|line| extended_json::parse(line).expect("the corpus is JSON")).collect()
}

/// Gives a target each of `seeds`, and each changed some times.
fn replay(target: fn(&[u8]), seeds: &[Vec<u8>], times: usize) {
    assert!(!seeds.is_empty());
    seeds.iter().for_each(|seed| target(seed));
    for_seeds(1, |mut random| {
        for seed in seeds {
            for _ in 0..times {
                let mut changed = seed.clone();
                for _ in 0..=random.below(3) {
                    change(&mut changed, seeds, &mut random);
                }
                target(&changed);
            }
        }
    });
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let count = random.below(EDIT_BYTES_MAX + 1).min(bytes.len() - at);
    match random.below(6) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..at + count)),
        2 => drop(bytes.splice(at..at, random.bytes(count))),
        3 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        // Numbers at the ends of their ranges.
        4 if at < bytes.len() => bytes[at] = *random.choose(&[0, 1, 0x7f, 0x80, 0xff]),
        _ => {
            let other = random.choose(seeds);
            let from = random.below(other.len() + 1);
            let most = (other.len() - from).min(64);
            let piece = &other[from..from + random.below(most + 1)];
            bytes.splice(at..at + count, piece.iter().copied());
        }
    }
}

/// Edits of what the target has made itself: pieces of so many bytes.
fn edits(bytes: usize) -> Vec<Vec<u8>> {
    let mut random = Random::new(1);
    (0..40).map(|count| random.bytes(count % 6 * bytes)).collect()
}

fn lines(text: &str) -> Vec<Vec<u8>> {
    text.lines().map(|line| line.as_bytes().to_vec()).collect()
}

#[test]
fn documents_are_read() {
    let seeds: Vec<_> = read(DOCUMENTS).iter().map(|found| found.as_bytes().to_vec()).collect();
    replay(documents::document, &seeds, 200);
}

#[test]
fn json_is_read() {
    replay(documents::json, &lines(DOCUMENTS), 200);
}

#[test]
fn keys_are_read() {
    let mut seeds = Vec::new();
    for document in read(DOCUMENTS) {
        for (_, value) in document.iter() {
            let (mut bits, mut written) = (Vec::new(), Vec::new());
            key::append_type_bits(&mut bits, value);
            key::append(&mut written, value, false);
            let Ok(count) = u8::try_from(bits.len() << 1) else { continue };
            seeds.push([vec![count], bits, written].concat());
        }
    }
    replay(documents::key, &seeds, 50);
}

#[test]
fn columns_are_read() {
    let seeds = [
        &b"\x10\0\x05\0\0\0\x80\x4e\0\0\0\0\0\0\0\0"[..],
        b"\x09\0\0\0\0\0\0\0\0\0\x80\xff\0\0\0\0\0\0\0\0",
        b"\xf1\x0c\0\0\0\x10a\0\x01\0\0\0\0\x80\x2e\0\0\0\0\0\0\0\0\0",
    ];
    replay(documents::column, &seeds.map(<[u8]>::to_vec), 200);
}

#[test]
fn pieces_of_large_documents_are_read() {
    replay(trees::pieces, &edits(4), 10);
}

#[test]
fn trees_are_read() {
    replay(trees::tree, &edits(4), 20);
}

#[test]
fn messages_are_read() {
    let encode = |body: DocumentBuf| Message::new(body).encode(1, 0);
    let seeds: Vec<_> = read(DOCUMENTS).into_iter().chain(read(COMMANDS)).map(encode).collect();
    replay(wire::message, &seeds, 200);
}

#[test]
fn frames_are_read() {
    let chunks: Vec<Chunk> = read(DOCUMENTS)
        .iter()
        .map(|found| Chunk::new(ChunkKind::Blob, &[], found.as_bytes()))
        .collect();
    let encode = |chunks: &[Chunk]| frame::encode(chunks, FrameEffort::Quick);
    let seeds: Vec<_> = chunks.chunks(3).chain([&chunks[..]]).map(encode).collect();
    replay(wire::frame, &seeds, 200);
}

#[test]
fn commands_are_answered() {
    replay(commands::command, &lines(COMMANDS), 4);
}

#[test]
fn directories_are_opened() {
    replay(directory::directory, &edits(5), 1);
}
