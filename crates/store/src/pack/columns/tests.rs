//! Goal: whatever chunks hold, columns give them back byte by byte, similar documents take little,
//! and bytes that are no columns are refused without a panic.
//!
//! Method: leaves of documents made by a generator of random shapes and values, and of what is no
//! document; then their columns with random bytes changed, cut off or put in.

use super::{Encoder, decode};
use crate::chunk::Chunk;
use crate::pack::codec::{Codec, Effort, compress_columns, decompress};
use crate::pack::format::Frame;
use crate::pack::frames::Frames;

/// The columns of chunks before which no others were.
fn encode(chunks: &[&[u8]]) -> Option<Vec<u8>> {
    Encoder::default().encode(chunks)
}

/// A leaf's entry: key, flags and value.
type Entry = (Vec<u8>, u8, Vec<u8>);

/// The chunk of a leaf, as docs/format/map-node.md has it.
fn leaf(entries: &[Entry]) -> Vec<u8> {
    let sum = |bytes: fn(&Entry) -> usize| entries.iter().map(bytes).sum::<usize>() as u64;
    let mut chunk = vec![2, 0, 0, 0, 0, 0, 0, 0];
    chunk.extend([0, entries.iter().fold(0, |all, entry| all | entry.1), 0, 0]);
    chunk.extend((entries.len() as u32).to_le_bytes());
    chunk.extend((entries.len() as u64).to_le_bytes());
    chunk.extend(sum(|entry| entry.0.len()).to_le_bytes());
    chunk.extend(sum(|entry| entry.2.len()).to_le_bytes());
    let mut start = 32 + 4 * entries.len();
    for (key, _, value) in entries {
        chunk.extend((start as u32).to_le_bytes());
        start += 4 + key.len() + value.len();
    }
    for (key, flags, value) in entries {
        chunk.extend((key.len() as u16).to_le_bytes());
        chunk.extend([*flags, 0]);
        chunk.extend(key);
        chunk.extend(value);
    }
    chunk
}

fn element(kind: u8, name: &str, value: &[u8]) -> Vec<u8> {
    [&[kind], name.as_bytes(), &[0], value].concat()
}

fn document(elements: &[Vec<u8>]) -> Vec<u8> {
    let content = elements.concat();
    [&(content.len() as i32 + 5).to_le_bytes()[..], &content, &[0]].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as i32 + 1).to_le_bytes()[..], text.as_bytes(), &[0]].concat()
}

fn object_id(time: u32, counter: u32) -> Vec<u8> {
    [&time.to_be_bytes()[..], &[7, 1, 200, 4, 5], &counter.to_be_bytes()[1..]].concat()
}

/// A point of a time series, and its key: source, time and `_id`.
fn point(number: u32, drift: u32) -> Entry {
    let id = object_id(1_767_225_600 + number, 5000 + 100 * number);
    let millis = 1_767_225_600_000 + 1000 * i64::from(number);
    let degrees = f64::from(2100 + drift) / 100.0;
    let source = document(&[element(2, "id", &text("s007")), element(16, "room", &[3, 0, 0, 0])]);
    let value = document(&[
        element(9, "at", &millis.to_le_bytes()),
        element(3, "sensor", &source),
        element(7, "_id", &id),
        element(1, "temperature", &degrees.to_le_bytes()),
    ]);
    let time = (millis as u64 ^ 1 << 63).to_be_bytes();
    let source_key = b"\x40\x38\x30id\x00\x30s007\x00\x20room\x00\x25\x80\x90\x00";
    ([&source_key[..], &[0x60], &time, &[0x50], &id, &[0]].concat(), 0, value)
}

/// A generator (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn bytes(&mut self, bound: u64) -> Vec<u8> {
        (0..self.below(bound)).map(|_| self.next() as u8).collect()
    }

    /// A value of the type, sometimes like others, sometimes not.
    fn value(&mut self, kind: u8, depth: u32) -> Vec<u8> {
        let number = match self.below(4) {
            0 => self.next(),
            1 => 40,
            _ => self.below(1000),
        };
        match kind {
            1 if self.below(4) > 0 => (number as f64 / 100.0).to_le_bytes().to_vec(),
            1 | 9 | 17 | 18 => number.to_le_bytes().to_vec(),
            2 | 13 | 14 => text(["GET", "PUT", "order-17", ""][self.below(4) as usize]),
            3 => self.document(depth + 1, number),
            4 => document(&[element(16, "0", &[1, 0, 0, 0]), element(16, "1", &[2, 0, 0, 0])]),
            5 => {
                let bytes = self.bytes(9);
                [&(bytes.len() as i32).to_le_bytes()[..], &[4], &bytes].concat()
            }
            7 => object_id(number as u32, self.next() as u32),
            8 => vec![number as u8 & 1],
            16 => (number as u32).to_le_bytes().to_vec(),
            19 => [number.to_le_bytes(), 7u64.to_le_bytes()].concat(),
            11 => b"pattern\0i\0".to_vec(),
            _ => Vec::new(),
        }
    }

    /// A document whose shape follows from `shape`.
    fn document(&mut self, depth: u32, shape: u64) -> Vec<u8> {
        let kinds = [1, 2, 3, 4, 5, 7, 8, 9, 10, 13, 14, 16, 17, 18, 19, 6, 127, 255, 11];
        let mut shapes = Chance(shape);
        let count = if depth > 3 { 0 } else { shapes.below(7) };
        let elements = (0..count).map(|_| {
            // The last kind has no shape, and is rare.
            let bound = if shapes.below(40) == 0 { kinds.len() } else { kinds.len() - 1 };
            let kind = kinds[shapes.below(bound as u64) as usize];
            let name = ["a", "b", "twice", "twice", ""][shapes.below(5) as usize];
            element(kind, name, &self.value(kind, depth))
        });
        document(&elements.collect::<Vec<_>>())
    }

    fn leaf(&mut self) -> Vec<u8> {
        let shapes: Vec<u64> = (0..=self.below(4)).map(|_| self.next()).collect();
        let entries: Vec<Entry> = (0..self.below(60))
            .map(|position| {
                let shape = shapes[self.below(shapes.len() as u64) as usize];
                let mut value = self.document(0, shape);
                if self.below(400) == 0 {
                    value = self.bytes(30);
                }
                // Keys of what the document holds, of what it doesn't, and of nothing.
                let own = value.get(4 + self.below(8) as usize..).unwrap_or(&[]);
                let own = own[..own.len().min(20)].to_vec();
                let key = [&(position as u32).to_be_bytes()[..], &own, &self.bytes(3)].concat();
                (key, if self.below(50) == 0 { 1 } else { 0 }, value)
            })
            .collect();
        leaf(&entries)
    }
}

/// Checks that `chunk` comes back, where it has columns; returns how many bytes they have.
fn check(chunk: &[u8]) -> Option<usize> {
    let columns = encode(&[chunk])?;
    assert_eq!(decode(&columns, chunk.len()).as_deref(), Some(chunk));
    assert_eq!(decode(&columns, chunk.len() - 1), None);
    assert_eq!(decode(&columns, chunk.len() + 1), None);
    Some(columns.len())
}

#[test]
fn a_regular_series_takes_a_few_bytes_a_point() {
    let drift = |number: u32| number.wrapping_mul(0x9e37_79b9) >> 28;
    let points: Vec<Entry> = (0..50).map(|number| point(number, drift(number))).collect();
    let chunk = leaf(&points);
    let bytes = check(&chunk).unwrap();
    assert!(bytes < 190 && chunk.len() > 7000, "{bytes} of {}", chunk.len());
    // A point that is missing is a gap in the clock, and of the counter: four numbers more.
    let gap = leaf(&[&points[..20], &points[23..]].concat());
    let with_gap = check(&gap).unwrap();
    assert!(with_gap < bytes + 30, "{with_gap}, without the gap {bytes}");
}

#[test]
fn other_leaves_have_no_columns() {
    let points: Vec<Entry> = (0..50).map(|number| point(number, number)).collect();
    let chunk = leaf(&points);
    let changed = |offset: usize, byte: u8| {
        let mut changed = chunk.clone();
        changed[offset] = byte;
        changed
    };
    // Another kind, references, a level, reserved bytes, a sum, a place, a document's length.
    let length = 8 + 32 + 4 * points.len() + 4 + points[0].0.len();
    for (offset, byte) in [(0, 1), (4, 1), (8, 1), (10, 1), (24, 9), (40, 0), (length, 77)] {
        assert_eq!(check(&changed(offset, byte)), None, "the byte at {offset}");
    }
    assert_eq!(check(&leaf(&points[..3])), None);
    let many_shapes = (0..50u32).map(|number| {
        let name = format!("field {number}");
        (number.to_be_bytes().to_vec(), 0, document(&[element(2, &name, &text("value"))]))
    });
    assert_eq!(check(&leaf(&many_shapes.collect::<Vec<_>>())), None);
    assert_eq!(check(&[7; 1000]), None);
    assert_eq!(check(&[]), None);
}

#[test]
fn chunks_of_a_group_come_back_together() {
    let points: Vec<Entry> = (0..50).map(|number| point(number, number)).collect();
    let chunk = leaf(&points);
    let parts = [&chunk[..], b"no leaf", &chunk, b""];
    let columns = encode(&parts).unwrap();
    assert_eq!(decode(&columns, parts.concat().len()), Some(parts.concat()));
    assert_eq!(encode(&[b"no leaf", b"nor this"]), None);
}

/// The codec of a frame of `chunks`, and how long it is; all come back.
fn frame(effort: Effort, chunks: &[&[u8]]) -> (u8, usize) {
    let chunks: Vec<Chunk> = chunks
        .iter()
        .map(|bytes| Chunk::from_encoded(bytes.to_vec().into(), ("a test", 0)).unwrap())
        .collect();
    let mut frames = Frames::default();
    frames.push(effort, &chunks.iter().collect::<Vec<_>>());
    let (_, bytes) = frames.first_run(frames.frames());
    let frame = Frame::parse(bytes).unwrap();
    let decoded = frame.decode(None).unwrap();
    assert!(decoded.map(|(_, bytes)| bytes).eq(chunks.iter().map(|chunk| chunk.encoded().clone())));
    (bytes[0], bytes.len())
}

#[test]
fn frames_take_columns_where_they_are_shorter() {
    let like = leaf(&(0..50).map(|number| point(number, number)).collect::<Vec<_>>());
    for effort in [Effort::Light, Effort::Medium, Effort::Firm, Effort::Strong] {
        let (codec, bytes) = frame(effort, &[&like]);
        assert_eq!(codec, Codec::Columns as u8, "{effort:?}");
        assert!(bytes < 300, "{effort:?}: {bytes} bytes");
    }
    assert_eq!(frame(Effort::Brief, &[&like]).0, Codec::Lz4 as u8);
    let mut chance = Chance(1);
    let noise: Vec<Entry> = (0..20u32)
        .map(|number| {
            let noise: Vec<u8> = (0..200).map(|_| chance.next() as u8).collect();
            let noise = [&200i32.to_le_bytes()[..], &[0], &noise].concat();
            (number.to_be_bytes().to_vec(), 0, document(&[element(5, "n", &noise)]))
        })
        .collect();
    // Names are all that is saved, and less than a quarter.
    for effort in [Effort::Light, Effort::Medium] {
        assert_ne!(frame(effort, &[&leaf(&noise)]).0, Codec::Columns as u8, "{effort:?}");
    }
    // A second version of a leaf costs nothing beside the first as bytes, but as columns.
    let versions: Vec<Vec<u8>> = (0..20)
        .map(|version| {
            let mut noise = noise.clone();
            noise[7].2 = document(&[element(16, "n", &[version, 0, 0, 0])]);
            leaf(&noise)
        })
        .collect();
    let versions: Vec<&[u8]> = versions.iter().map(Vec::as_slice).collect();
    let (_, bytes) = frame(Effort::Strong, &versions);
    assert!(bytes < 8_000, "{bytes} bytes");
}

/// Texts: columns save names, which are next to nothing beside them.
#[test]
fn columns_that_save_little_are_left() {
    let mut chance = Chance(2);
    let texts: Vec<Entry> = (0..20u32)
        .map(|number| {
            let letters: String =
                (0..600).map(|_| char::from(b'a' + chance.below(16) as u8)).collect();
            (number.to_be_bytes().to_vec(), 0, document(&[element(2, "body", &text(&letters))]))
        })
        .collect();
    let texts = leaf(&texts);
    for effort in [Effort::Light, Effort::Firm, Effort::Strong] {
        assert_ne!(frame(effort, &[&texts]).0, Codec::Columns as u8, "{effort:?}");
    }
}

#[test]
fn columns_are_compressed_where_that_pays_and_a_lie_about_it_is_refused() {
    let texts = |number: u32| {
        let words = format!("the same words in another order {}", number * 7919 % 1000);
        let value = document(&[element(2, "text", &text(&words.repeat(3)))]);
        (number.to_be_bytes().to_vec(), 0, value)
    };
    let chunk = leaf(&(0..50).map(texts).collect::<Vec<_>>());
    let chunk = Chunk::from_encoded(chunk.into(), ("a test", 0)).unwrap();
    let bytes = chunk.encoded().len();
    for effort in [Effort::Light, Effort::Medium, Effort::Strong] {
        let stored = compress_columns(&mut Encoder::default(), effort, &[&chunk], true).unwrap();
        assert_ne!(stored[0], Codec::Raw as u8, "{effort:?}");
        let decompress = |stored: &[u8], bytes| decompress(Codec::Columns, stored, bytes);
        assert_eq!(decompress(&stored, bytes).as_deref(), Some(&chunk.encoded()[..]));
        assert_eq!(decompress(&stored, bytes - 1), None);
        let changed = |offset: usize, byte: u8| {
            let mut changed = stored.clone();
            changed[offset] = byte;
            changed
        };
        // No codec, columns of columns, a length that nothing has.
        for hostile in [changed(0, 9), changed(0, Codec::Columns as u8), changed(4, 0xff)] {
            assert_eq!(decompress(&hostile, bytes), None);
        }
        assert_eq!(decompress(&[], bytes), None);
        assert_eq!(decompress(&stored[..3], bytes), None);
    }
}

#[test]
fn arbitrary_leaves_come_back() {
    let mut with_columns = 0;
    for seed in 0..3000 {
        with_columns += usize::from(check(&Chance(seed).leaf()).is_some());
    }
    assert!(1000 < with_columns, "only {with_columns} leaves had columns");
}

/// Leaves of series that are alike, but not all the same, take about as much by what is known of
/// those before as alone; and none comes back otherwise.
#[test]
fn leaves_after_one_another_take_what_they_take_alone() {
    let mut encoder = Encoder::default();
    let (mut known_bytes, mut alone_bytes) = (0, 0);
    for leaf_number in 0..70u32 {
        let drift = |number: u32| number.wrapping_mul(0x9e37_79b9) >> (26 + leaf_number % 3);
        let numbers = leaf_number * 50..leaf_number * 50 + 40 + leaf_number % 9;
        // A gap in the clock of some.
        let at = |number: u32| number + u32::from(leaf_number % 11 == 5 && number % 50 > 20) * 99;
        let points: Vec<Entry> = numbers.map(|number| point(at(number), drift(number))).collect();
        let chunk = leaf(&points);
        let columns = encoder.encode(&[&chunk]).expect("a series");
        assert_eq!(decode(&columns, chunk.len()).as_deref(), Some(&chunk[..]));
        known_bytes += columns.len();
        alone_bytes += check(&chunk).expect("a series");
    }
    let most = alone_bytes + alone_bytes / 50;
    assert!(known_bytes <= most, "{known_bytes} bytes, {alone_bytes} alone");
    let mut with_columns = 0;
    for seed in 0..3000 {
        let chunk = Chance(seed / 3).leaf();
        if let Some(columns) = encoder.encode(&[&chunk]) {
            assert_eq!(decode(&columns, chunk.len()).as_deref(), Some(&chunk[..]));
            with_columns += 1;
        }
    }
    assert!(1000 < with_columns, "only {with_columns} leaves had columns");
}

#[test]
fn hostile_bytes_never_panic() {
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let chunk = chance.leaf();
        let Some(columns) = encode(&[&chunk]) else { continue };
        for _ in 0..100 {
            let mut hostile = columns.clone();
            for _ in 0..=chance.below(3) {
                let at = chance.below(hostile.len() as u64) as usize;
                match chance.below(4) {
                    0 => hostile.truncate(at + 1),
                    1 => hostile.insert(at, chance.next() as u8),
                    2 => hostile[at] = [0, 0x7f, 0x80, 0xff][chance.below(4) as usize],
                    _ => hostile[at] ^= 1 << chance.below(8),
                }
            }
            if let Some(found) = decode(&hostile, chunk.len()) {
                assert_eq!(found.len(), chunk.len());
            }
        }
    }
}
