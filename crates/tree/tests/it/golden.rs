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
        "1f0187065bd625af32098a015211be258e10cbfa2f47e09d5da9691f2a0e5bfa",
        "72ef60c48696ae0d45b891e34f7cf174d58ead8987641d9520c63f5836d76b88",
    ),
    (
        1,
        100,
        "73e5ec4b0788cf2fcc7100668fb01840e786bfb05c9f57db9cab1078176dcb04",
        "0ec0d8c2f0a057fb55844ee4bd19151af738c78a55fe32b115553df01761e4c6",
    ),
    (
        1,
        20000,
        "4dc83e9f986647c784d3d6becbdb458022ec1e4eac1165213d32e0cd43a1037b",
        "44c7f02ce3344d7dba12c63e37e1b60de4d5e9aa18a7b03c8280b374e47e8f74",
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
