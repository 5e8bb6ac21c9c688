//! Indexes against the scan. Goal: whatever asks a document for a field finds the same with an
//! index and without: shapes, hash buckets, several fields in one walk. Method: random documents
//! with few letters in their names, so that names repeat in a document and from one to the next.

use frond_doc::field_index::FieldIndex;
use frond_doc::field_index::cache::FieldIndexes;
use frond_doc::field_index::shape::{FIELD_COUNT_MAX, NAME_BYTES_MAX, ShapeRegistry};
use frond_doc::field_scan::{FieldScan, SCANNED_NAMES_MAX, ScannedNames};
use frond_doc::path::Path;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_testkit::random::{Random, assert_met, for_seeds};

use crate::generate;

const NAMES: [&str; 10] = ["a", "b", "c", "", "ß", "a\0b", "aa", "filler", "\u{1}", "a.b"];
const PATHS: [&str; 14] = [
    "a", "b", "a.b", "b.a", "a.a.b", "", "ß", "a.b.", ".", "a.0", "b.1.a", "a.0.0", "a.a", "c.c.c",
];

/// A document that is long enough to be indexed.
fn large(random: &mut Random, depth: usize) -> DocumentBuf {
    let filler = "x".repeat(1100);
    let mut builder = DocumentBuilder::new();
    let place = random.below(3);
    let fields = generate::document(random, depth);
    for (position, (name, value)) in fields.iter().enumerate() {
        if position == place {
            builder.append("filler", Value::String(&filler));
        }
        builder.append(name, value);
    }
    builder.append("filler", Value::String(&filler));
    builder.build()
}

/// Returns what is reached as text, so that NaN equals itself.
fn reached(path: &Path, document: &DocumentBuf) -> String {
    let mut text = format!("{:?}", path.get(document.view()));
    path.visit_reached(document.view(), &mut |reached| {
        text += &format!("; {reached:?}");
        false
    });
    path.visit_leaves(document.view(), &mut |reached| {
        text += &format!(", {reached:?}");
        false
    });
    text
}

#[test]
fn indexed_documents_equal_scanned_ones() {
    let (mut shaped, mut bucketed) = (0, 0);
    for_seeds(200, |mut random| {
        let indexes = FieldIndexes::new(1 << 20);
        let paths = PATHS.map(Path::new);
        let documents: Vec<DocumentBuf> = (0..8).map(|_| large(&mut random, 4)).collect();
        for turn in 0..30_u8 {
            let plain = random.choose(&documents).clone();
            if random.one_in(2) {
                let index = FieldIndex::of(plain.as_bytes(), indexes.shapes()).expect("few fields");
                shaped += usize::from(index.is_shaped());
                bucketed += usize::from(!index.is_shaped());
            }
            let indexed = indexes.attach([turn; 32], plain.clone());
            assert!(indexed.view().is_indexed() && !plain.view().is_indexed());
            for path in &paths {
                let expected = reached(path, &plain);
                assert_eq!(reached(path, &indexed), expected, "{path:?} of {plain:?}");
            }
            let ready = plain.clone().indexed(indexes.shapes());
            for path in PATHS {
                let expected = format!("{:?}", Path::new(path).get(plain.view()));
                for document in [&plain, &indexed, &ready] {
                    let found = document.view().field_at(path).and_then(|it| it.decode());
                    assert_eq!(format!("{found:?}"), expected, "{path:?} of {plain:?}");
                }
            }
            for name in NAMES {
                let expected = format!("{:?}", plain.get(name));
                assert_eq!(format!("{:?}", indexed.get(name)), expected, "{name:?} of {plain:?}");
            }
        }
    });
    assert_met("indexes with shapes", shaped, 1);
    assert_met("indexes with buckets", bucketed, 1);
}

/// Names of all lengths around eight and sixteen bytes, which end differently, in documents most of
/// which have the names, the types and the lengths that the walk has learnt to expect, while some
/// have others in between.
#[test]
fn one_walk_finds_what_a_walk_a_field_finds() {
    for_seeds(200, |mut random| {
        let longest = *random.choose(&[3, 9, 18, 40]);
        let name = |random: &mut Random| {
            let letter = *random.choose(&["a", "b"]);
            let shared = *random.choose(&[0, 7, 8, 15, 16, 17]);
            "x".repeat(shared.min(longest)) + &letter.repeat(random.below(longest))
        };
        let all: Vec<String> = (0..12).map(|_| name(&mut random)).collect();
        let mut names = ScannedNames::default();
        let numbers: Vec<(u8, &str)> =
            all.iter().filter_map(|name| Some((names.add(name)?, name.as_str()))).collect();
        assert!(numbers.iter().all(|(number, _)| usize::from(*number) < SCANNED_NAMES_MAX));
        let count = if random.one_in(10) { 80 } else { random.below(12) };
        let usual: Vec<(String, ValueBuf)> = (0..count)
            .map(|_| (random.choose(&all).clone(), generate::value(&mut random, 2)))
            .collect();
        let varies = *random.choose(&[2, 10, 100]);
        for _ in 0..12 {
            let mut builder = DocumentBuilder::new();
            for (name, value) in &usual {
                let other = random.one_in(30).then(|| random.choose(&all).clone());
                let new = random.one_in(varies).then(|| generate::value(&mut random, 2));
                let value = new.as_ref().unwrap_or(value);
                builder.append(other.as_ref().unwrap_or(name), value.as_value());
            }
            check_walk(&mut random, &builder.build(), &names, &numbers);
        }
    });
    assert_eq!(ScannedNames::default().add("a\0b"), None);
}

/// Asks in any order, and again, one by one and for all at once.
fn check_walk(
    random: &mut Random,
    document: &DocumentBuf,
    names: &ScannedNames,
    numbers: &[(u8, &str)],
) {
    let mut scan = FieldScan::new(document.view(), names);
    check_meetings(random, document, names, numbers);
    let places = names.places(document.view()).expect("names, and no index");
    for _ in 0..12 {
        let (number, name) = *random.choose(numbers);
        let expected = document.iter().find(|field| field.0 == name).map(|field| field.1);
        let expected = format!("{expected:?}");
        let found =
            [scan.get(number).and_then(|it| it.decode()), places.get(number), document.get(name)];
        for found in found {
            assert_eq!(format!("{found:?}"), expected, "{name:?} of {document:?}");
        }
    }
}

/// The first field of each name, in the document's order, up to where it is enough; then any one.
fn check_meetings(
    random: &mut Random,
    document: &DocumentBuf,
    names: &ScannedNames,
    numbers: &[(u8, &str)],
) {
    let mut expected: Vec<u8> = Vec::new();
    for (name, _) in document.iter() {
        if let Some((number, _)) = numbers.iter().find(|known| known.1 == name)
            && !expected.contains(number)
        {
            expected.push(*number);
        }
    }
    let wanted = 1 + random.below(expected.len() + 1);
    expected.truncate(wanted);
    let mut scan = FieldScan::new(document.view(), names);
    let mut fields = Vec::new();
    let is_stopped = scan.visit_all(|number, kind, value| {
        let name = numbers.iter().find(|known| known.0 == number).expect("a number of theirs").1;
        let field = document.view().field(name.as_bytes()).expect("it was met");
        assert_eq!((field.kind, field.value), (kind, value));
        fields.push(number);
        fields.len() == wanted
    });
    assert_eq!((&fields, is_stopped), (&expected, expected.len() == wanted), "of {document:?}");
    let (number, name) = *random.choose(numbers);
    let found = scan.get(number).and_then(|it| it.decode());
    assert_eq!(format!("{found:?}"), format!("{:?}", document.get(name)));
}

/// Many names, most of them once, some twice: the first counts, in each kind of index.
#[test]
fn wide_documents() {
    for count in [1_usize, 9, 500, FIELD_COUNT_MAX - 1, FIELD_COUNT_MAX + 5] {
        let mut builder = DocumentBuilder::new();
        builder.append("filler", Value::String(&"x".repeat(1100)));
        for position in 0..count {
            let name = format!("name_{}", position % (count * 2 / 3 + 1));
            builder.append(&name, Value::Int64(position as i64));
        }
        let plain = builder.build();
        let indexes = FieldIndexes::new(1 << 20);
        for turn in 0..3 {
            let indexed = indexes.attach([turn; 32], plain.clone());
            for position in 0..count + 10 {
                let name = format!("name_{position}");
                assert_eq!(indexed.get(&name), plain.get(&name), "{name}");
                let path = Path::new(&name);
                assert_eq!(path.get(indexed.view()), plain.get(&name), "{name}");
            }
        }
        let is_narrow = count < FIELD_COUNT_MAX;
        assert_eq!(indexes.shapes().count(), usize::from(is_narrow), "{count} fields");
    }
}

/// A name with dots is no path, and hides none.
#[test]
fn names_with_dots() {
    let mut builder = DocumentBuilder::new();
    builder.append("filler", Value::String(&"x".repeat(300)));
    builder.append("a.b", Value::Int32(1)).begin_document("a");
    builder.append("b", Value::Int32(2)).append("c.d", Value::Int32(3)).end();
    let plain = builder.build();
    let indexes = FieldIndexes::new(1 << 20);
    FieldIndex::of(plain.as_bytes(), indexes.shapes());
    let ready = plain.clone().indexed(indexes.shapes());
    assert!(ready.view().is_indexed());
    for document in [&plain, &ready] {
        let at = |path| document.view().field_at(path).and_then(|found| found.decode());
        assert_eq!(document.get("a.b"), Some(Value::Int32(1)));
        assert_eq!(at("a.b"), Some(Value::Int32(2)));
        assert_eq!(at("a.c.d"), None);
        assert_eq!(Path::new("a.b").get(document.view()), Some(Value::Int32(2)));
    }
}

/// A client that sends new names with each document, each of them twice.
#[test]
fn shapes_are_bounded() {
    let bytes_max = 100 << 10;
    let shapes = ShapeRegistry::new(bytes_max);
    let mut shaped = 0;
    for number in 0..2_000 {
        let mut builder = DocumentBuilder::new();
        for field in 0..20 {
            builder.append(&format!("name_{number}_{field}"), Value::Null);
        }
        let document = builder.build();
        FieldIndex::of(document.as_bytes(), &shapes).expect("few fields");
        let index = FieldIndex::of(document.as_bytes(), &shapes).expect("few fields");
        shaped += usize::from(index.is_shaped());
        assert!(shapes.bytes() <= bytes_max);
    }
    assert!(0 < shaped && shaped < 2_000 && shaped == shapes.count());
    let long = "x".repeat(NAME_BYTES_MAX);
    let mut builder = DocumentBuilder::new();
    builder.append(&long, Value::Null);
    let document = builder.build();
    for _ in 0..3 {
        assert!(!FieldIndex::of(document.as_bytes(), &shapes).expect("one field").is_shaped());
    }
}

/// Bytes that are no BSON never panic, and are never found where a scan finds nothing.
#[test]
fn damaged_documents() {
    for_seeds(300, |mut random| {
        let indexes = FieldIndexes::new(1 << 20);
        let good = large(&mut random, 3);
        let mut bytes = good.as_bytes().to_vec();
        for _ in 0..2 {
            FieldIndex::of(good.as_bytes(), indexes.shapes());
        }
        for _ in 0..3 {
            let position = random.below(bytes.len());
            bytes[position] = random.next() as u8;
        }
        bytes.truncate(bytes.len() - random.below(3));
        let bad = DocumentBuf::from_validated(bytes.into());
        for turn in 0..3 {
            let indexed = indexes.attach([turn; 32], bad.clone());
            for path in PATHS.map(Path::new) {
                path.get(indexed.view());
                path.visit(indexed.view(), &mut |_| false);
            }
        }
    });
}
