//! Root hashes that must never change: names by content make the node encoding, the boundary rule
//! and the hash part of the format. Lines are only ever added; a line that fails means that the
//! change needs a new format version.

use bytes::Bytes;
use frond_store::memory::MemoryStore;
use frond_testkit::Random;
use frond_tree::{Entry, Sequence, Tree, TreeFormat, Value};

const FORMATS: [TreeFormat; 2] = [
    TreeFormat { chunk_bytes_target: 16 << 10, inline_bytes_max: 4 << 10, salt: 0 },
    TreeFormat { chunk_bytes_target: 4 << 10, inline_bytes_max: 256, salt: 0xf30d },
];

/// `(format, entries, root of the map, root of the sequence)`
const ROOTS: &[(usize, usize, &str, &str)] = &[
    (
        0,
        0,
        "67d35e20d23888a58b31bf166db3efc48cb96c5af871f1becef7735bedf3bac9",
        "0c405c0c2a7d47a92132d20aeca4336320bbb115e2910f7afefe8381c54e97ea",
    ),
    (
        0,
        1,
        "ecd7cb4653bddf319a47b70941812717cd11843de275ca6ef4793ab25482e5ee",
        "2ac67ea8f301c986fe1915806f09f69be4e08a494072ee90282c6b41a9d7fc70",
    ),
    (
        0,
        20000,
        "db887f86371625de84772993c1523e886cde8ec9c16f79c0add90c3636e62f24",
        "92a65774a19f7277d1e008a2379a6bf99d65a43024505e94095112bf13e75481",
    ),
    (
        1,
        100,
        "efa403dd503f141cb73ab7eb49a89b458049c5649bdba0ed7470a1ad5276a07f",
        "0ec0d8c2f0a057fb55844ee4bd19151af738c78a55fe32b115553df01761e4c6",
    ),
    (
        1,
        20000,
        "f766f13caa79cd147449d5677c3f7f5fe3e546210c25ec8a21b1aa0cbf4367df",
        "b7218dd9ecebabbd993b9f4578b8ddeb6884a608eec0966d08f421fc79015b04",
    ),
];

#[test]
fn roots_are_as_ever() {
    let mut found = Vec::new();
    for (format, entries) in [(0, 0), (0, 1), (0, 20_000), (1, 100), (1, 20_000)] {
        let store = MemoryStore::new();
        let mut random = Random::new(2026);
        let value_bytes = |number: usize| match number {
            77 => 300_000,
            _ if number % 50 == 3 => 6_000,
            _ => number % 90,
        };
        let mut map = (0..entries).map(|number| {
            let bytes = random.bytes(value_bytes(number));
            let value = Value { flags: (number % 3) as u8, ..Value::inline(bytes) };
            Ok(Entry { key: format!("key {number:07}").into(), value })
        });
        let tree = Tree::build(&*store, FORMATS[format], &mut map).unwrap();
        let mut items = (0..entries).map(|number| Ok(Bytes::from(random.bytes(number % 40))));
        let sequence = Sequence::build(&*store, FORMATS[format], &mut items).unwrap();
        found.push((format, entries, tree.root.to_string(), sequence.root.to_string()));
    }
    let found: Vec<_> = found
        .iter()
        .map(|(format, entries, map, sequence)| (*format, *entries, &map[..], &sequence[..]))
        .collect();
    assert_eq!(found, ROOTS);
}

/// A sequence some of whose items end with the name of a chunk.
#[test]
fn a_root_with_references_is_as_ever() {
    let store = MemoryStore::new();
    let mut random = Random::new(2026);
    let mut items = (0..5000).map(|number| {
        let mut item = vec![u8::from(number % 3 > 0)];
        item.extend_from_slice(&random.bytes(32 + number % 8));
        Ok(item.into())
    });
    let sequence =
        Sequence::build_referring(&*store, FORMATS[1], &mut items, |item| item[0] == 1).unwrap();
    let root = sequence.root.to_string();
    assert_eq!(root, "7bb49d1495be782e45a204d2e4846878cca506e318407f8f99c3d07ac3b76d52");
}
