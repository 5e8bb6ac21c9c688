//! One field of a document in memory: Frond's index, its scan, and the `bson` crate.

use std::hint::black_box;

use bson::{Document as BsonDocument, RawDocument};
use frond_doc::field_index::cache::FieldIndexes;
use frond_doc::field_index::shape::{SHAPES_BYTES_MAX, ShapeRegistry};
use frond_doc::field_index::{FieldIndex, INDEXED_BYTES_MIN};
use frond_doc::path::Path;
use frond_doc::{DocumentBuf, Value};

use crate::documents::{self, Case};
use crate::measure::{nanos, text};

/// Prints the tables.
pub fn run() {
    opened();
    not_opened();
    index_cost();
}

fn opened() {
    println!(
        "\n| opened | fixed, compiled: found | decoded | fixed, hashed: found | decoded | random | absent | scan | `bson` raw | `bson` decoded |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for case in documents::cases() {
        let indexes = FieldIndexes::new(1 << 20);
        let document = warm(&indexes, &case);
        let view = document.view();
        let plain = case.document.view();
        let path = Path::new(&case.path);
        let absent = Path::new("absent_field");
        let random = shuffled(&case.paths);
        let random_paths: Vec<Path> = random.iter().map(|path| Path::new(path)).collect();
        assert!(path.get(view).is_some() && path.get(view) == path.get(plain));
        let raw = RawDocument::from_bytes(plain.as_bytes()).expect("BSON");
        let decoded: BsonDocument = BsonDocument::try_from(raw).expect("BSON");
        let parts: Vec<&str> = case.path.split('.').collect();
        let columns = [
            nanos(|_| path.find(black_box(view)).is_some()),
            nanos(|_| string_bytes(path.get(black_box(view)))),
            // Hashed each time: a nested path is cut first.
            match parts.len() {
                1 => nanos(|_| black_box(view).field(black_box(&case.path).as_bytes()).is_some()),
                _ => nanos(|_| Path::new(black_box(&case.path)).find(black_box(view)).is_some()),
            },
            match parts.len() {
                1 => nanos(|_| string_bytes(black_box(view).get(black_box(&case.path)))),
                _ => nanos(|_| string_bytes(Path::new(black_box(&case.path)).get(black_box(view)))),
            },
            nanos(|turn| {
                string_bytes(random_paths[turn % random_paths.len()].get(black_box(view)))
            }),
            nanos(|_| absent.get(black_box(view)).is_some()),
            nanos(|_| string_bytes(path.get(black_box(plain)))),
            nanos(|_| raw_get(black_box(raw), &parts)),
            nanos(|_| decoded_get(black_box(&decoded), &parts)),
        ];
        print_row(case.name, &columns);
    }
}

/// Each column begins with bytes: those of a stored record whose index is in the cache, those of one
/// that is seen first, and those of the wire, which are validated before.
fn not_opened() {
    println!(
        "\n| not opened | stored record | first time | from wire bytes | `bson` raw from bytes | `bson` decoded from bytes |"
    );
    println!("|---|---|---|---|---|---|");
    for case in documents::cases() {
        let indexes = FieldIndexes::new(1 << 20);
        warm(&indexes, &case);
        let bytes = case.document.clone().into_bytes();
        let path = Path::new(&case.path);
        let parts: Vec<&str> = case.path.split('.').collect();
        let columns = [
            nanos(|_| {
                let document = DocumentBuf::from_validated(bytes.clone());
                string_bytes(path.get(indexes.attach([0; 32], document).view()))
            }),
            nanos(|turn| {
                let mut hash = [1; 32];
                hash[..8].copy_from_slice(&turn.to_le_bytes());
                let document = DocumentBuf::from_validated(bytes.clone());
                string_bytes(path.get(indexes.attach(hash, document).view()))
            }),
            nanos(|_| {
                let document = DocumentBuf::validated(bytes.clone()).expect("BSON");
                string_bytes(path.get(document.view()))
            }),
            nanos(|_| raw_get(RawDocument::from_bytes(black_box(&bytes)).expect("BSON"), &parts)),
            nanos(|_| {
                let raw = RawDocument::from_bytes(black_box(&bytes)).expect("BSON");
                decoded_get(&BsonDocument::try_from(raw).expect("BSON"), &parts)
            }),
        ];
        print_row(case.name, &columns);
    }
}

/// What an index costs, beside one walk over the document that looks at every element.
fn index_cost() {
    println!(
        "\n| index | one walk | validation | shape known | ratio to a walk | buckets | bytes a field |"
    );
    println!("|---|---|---|---|---|---|---|");
    for case in documents::cases() {
        let shapes = ShapeRegistry::new(SHAPES_BYTES_MAX);
        let none = ShapeRegistry::new(0);
        let view = case.document.view();
        FieldIndex::of(view, &shapes);
        let index = FieldIndex::of(view, &shapes).expect("few fields");
        assert!(index.is_shaped());
        let walk = nanos(|_| walk_all(black_box(case.document.as_bytes())));
        let validation =
            nanos(|_| frond_doc::validate::validate(black_box(case.document.as_bytes())).is_ok());
        let shaped = nanos(|_| FieldIndex::of(black_box(view), &shapes));
        let bucketed = nanos(|_| FieldIndex::of(black_box(view), &none));
        println!(
            "| {} | {} | {} | {} | {:.2} | {} | {:.1} |",
            case.name,
            text(walk),
            text(validation),
            text(shaped),
            shaped / walk,
            text(bucketed),
            index.bytes() as f64 / case.paths.len() as f64,
        );
    }
}

/// A walk over all elements, nested ones too: what any scan for an absent name does.
fn walk_all(bytes: &[u8]) -> usize {
    let mut count = 0;
    for element in frond_doc::raw::RawElements::new(bytes) {
        count += 1;
        if element.kind == frond_doc::ElementType::Document {
            count += walk_all(element.value);
        }
    }
    count
}

/// The document with its index in the cache, under the hash of zeros; its shape is known.
fn warm(indexes: &FieldIndexes, case: &Case) -> DocumentBuf {
    FieldIndex::of(case.document.view(), indexes.shapes());
    let document = indexes.attach([0; 32], case.document.clone());
    let is_long = INDEXED_BYTES_MIN <= case.document.as_bytes().len();
    assert_eq!(document.view().is_indexed(), is_long);
    document
}

fn string_bytes(value: Option<Value<'_>>) -> usize {
    match value {
        Some(Value::String(text)) => text.len(),
        _ => 0,
    }
}

fn raw_get(mut document: &RawDocument, parts: &[&str]) -> usize {
    let (last, before) = parts.split_last().expect("a path has parts");
    for part in before {
        document = document.get_document(part).expect("it is there");
    }
    document.get_str(last).expect("it is there").len()
}

fn decoded_get(mut document: &BsonDocument, parts: &[&str]) -> usize {
    let (last, before) = parts.split_last().expect("a path has parts");
    for part in before {
        document = document.get_document(part).expect("it is there");
    }
    document.get_str(last).expect("it is there").len()
}

/// In an order that no predictor learns.
fn shuffled(paths: &[String]) -> Vec<String> {
    let mut state = 1_u64;
    (0..8192)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            paths[(state >> 33) as usize % paths.len()].clone()
        })
        .collect()
}

fn print_row(name: &str, columns: &[f64]) {
    let columns: Vec<String> = columns.iter().map(|nanos| text(*nanos)).collect();
    println!("| {name} | {} |", columns.join(" | "));
}
