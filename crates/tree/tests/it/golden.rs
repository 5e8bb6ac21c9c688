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
        "3a8a60b23609662d8a3214719272a23c8d5b4b60c7b7c97eae61ff02fbd99ffd",
        "01d55902630f360ee481a7e96c577f53fa80e8ae0ef41fb65de80a1bb7784baa",
    ),
    (
        1,
        100,
        "429899324fa139c823dcda2939fcf13b792e4b914d3642a5b39a5867c0e40924",
        "0ec0d8c2f0a057fb55844ee4bd19151af738c78a55fe32b115553df01761e4c6",
    ),
    (
        1,
        20000,
        "ad56b2bfd676601c7e7524778ff9dba6fcba25bb0434d81ec7ea18bbed2ca6f0",
        "73564b295ae94ea97bc6433d1f4fed12d0e42f307a03d25d1e33bb9d9bb3d196",
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
