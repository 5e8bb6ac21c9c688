//! One field of a document in memory: Frond's index, its scan, and the `bson` crate.
//!
//! A turn asks a row of [`ROW`] documents of one shape, so that what hides them from the optimiser
//! is paid once a row. The field found is used: its length is added up.

use std::hint::black_box;
use std::time::Instant;

use bson::{Document as BsonDocument, RawDocument};
use frond_doc::field_index::cache::FieldIndexes;
use frond_doc::field_index::shape::{SHAPES_BYTES_MAX, ShapeRegistry};
use frond_doc::field_index::{FieldIndex, INDEXED_BYTES_MIN};
use frond_doc::path::Path;
use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, Value};
use frond_tree::TreeFormat;

use crate::documents::{self, Case};
use crate::measure::{nanos, text};

/// Documents of a row.
const ROW: usize = 64;

/// Prints the tables.
pub fn run() {
    opened();
    not_opened();
    index_cost();
    cold();
}

/// One get, in nanoseconds: of `get` with each place of a row.
fn each(mut get: impl FnMut(usize) -> usize) -> f64 {
    nanos(|_| row(&mut get)) / ROW as f64
}

/// A function by itself, so that `get` becomes a part of its loop, as of a query's: a call costs a
/// third of what is measured.
#[inline(never)]
fn row(get: &mut impl FnMut(usize) -> usize) -> usize {
    let mut sum = 0;
    for place in 0..black_box(ROW) {
        sum += get(place);
    }
    sum
}

fn value_bytes(found: Option<RawElement<'_>>) -> usize {
    found.map_or(0, |found| found.value.len())
}

fn opened() {
    let documents: Vec<DocumentBuf> = (0..ROW).map(|_| documents::flat(1, 1)).collect();
    let views: Vec<Document<'_>> = documents.iter().map(DocumentBuf::view).collect();
    let empty = each(|place| views[place].as_bytes().len());
    println!("\nThe harness alone, which the columns below include: {}.", text(empty));
    println!(
        "\n| opened | compiled: found | decoded | by name: found | decoded | random name | absent: compiled | by name | scan | `bson` raw | `bson` decoded |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for case in documents::cases() {
        let indexes = FieldIndexes::new(1 << 20);
        let documents: Vec<DocumentBuf> = (0..ROW).map(|_| warm(&indexes, &case)).collect();
        let views: Vec<Document<'_>> = documents.iter().map(DocumentBuf::view).collect();
        let plain = case.document.view();
        let path = Path::new(&case.path);
        let absent = Path::new("absent_field");
        let names = vec![case.path.as_str(); ROW];
        let absent_names = vec!["absent_field"; ROW];
        let random = shuffled(&case.paths);
        assert!(path.get(views[0]).is_some() && path.get(views[0]) == path.get(plain));
        let raw = RawDocument::from_bytes(plain.as_bytes()).expect("BSON");
        let decoded: BsonDocument = BsonDocument::try_from(raw).expect("BSON");
        let parts: Vec<&str> = case.path.split('.').collect();
        let columns = [
            each(|place| value_bytes(path.find(views[place]))),
            each(|place| string_bytes(path.get(views[place]))),
            each(|place| value_bytes(views[place].field_at(names[place]))),
            each(|place| {
                string_bytes(views[place].field_at(names[place]).and_then(|it| it.decode()))
            }),
            each(|place| value_bytes(views[place].field_at(&random[place]))),
            each(|place| value_bytes(absent.find(views[place]))),
            each(|place| value_bytes(views[place].field_at(absent_names[place]))),
            nanos(|_| string_bytes(path.get(black_box(plain)))),
            nanos(|_| raw_get(black_box(raw), &parts)),
            nanos(|_| decoded_get(black_box(&decoded), &parts)),
        ];
        print_row(case.name, &columns);
    }
}

/// Each column begins with bytes: those of a stored record whose index is in the cache, those of
/// one that is seen first, and those of the wire, which are validated before.
fn not_opened() {
    println!(
        "\n| not opened | stored record | first time | from wire bytes | random name | absent | `bson` raw from bytes | `bson` decoded from bytes |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for case in documents::cases() {
        let indexes = FieldIndexes::new(1 << 20);
        warm(&indexes, &case);
        let bytes = case.document.clone().into_bytes();
        let path = Path::new(&case.path);
        let random = shuffled(&case.paths);
        let parts: Vec<&str> = case.path.split('.').collect();
        let from_wire = |name: &str| {
            let document = DocumentBuf::validated(bytes.clone()).expect("BSON");
            value_bytes(document.view().field_at(name))
        };
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
            nanos(|turn| from_wire(&random[turn % random.len()])),
            nanos(|_| from_wire(black_box("absent_field"))),
            nanos(|_| raw_get(RawDocument::from_bytes(black_box(&bytes)).expect("BSON"), &parts)),
            nanos(|_| {
                let raw = RawDocument::from_bytes(black_box(&bytes)).expect("BSON");
                decoded_get(&BsonDocument::try_from(raw).expect("BSON"), &parts)
            }),
        ];
        print_row(case.name, &columns);
    }
}

/// Prints the cost of an index, beside one walk over the document that looks at every element. An
/// insert makes none; the first read of a field does, of a document that is long enough.
fn index_cost() {
    println!(
        "\n| index | at insert | first read of a field | ratio to a walk | one walk | validation | the index alone | buckets | bytes a field |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for case in documents::cases() {
        let shapes = ShapeRegistry::new(SHAPES_BYTES_MAX);
        let none = ShapeRegistry::new(0);
        let view = case.document.view();
        assert!(!view.is_indexed(), "making a document makes no index");
        FieldIndex::of(view.as_bytes(), &shapes);
        let index = FieldIndex::of(view.as_bytes(), &shapes).expect("few fields");
        assert!(index.is_shaped());
        let walk = nanos(|_| walk_all(black_box(case.document.as_bytes())));
        let validation =
            nanos(|_| frond_doc::validate::validate(black_box(case.document.as_bytes())).is_ok());
        let shaped = nanos(|_| FieldIndex::of(black_box(view).as_bytes(), &shapes));
        let bucketed = nanos(|_| FieldIndex::of(black_box(view).as_bytes(), &none));
        let (first, ratio) = match first_read(&case) {
            Some(first) => (text(first), format!("{:.2}", first / walk)),
            None => ("makes none".to_owned(), String::new()),
        };
        println!(
            "| {} | 0 | {first} | {ratio} | {} | {} | {} | {} | {:.1} |",
            case.name,
            text(walk),
            text(validation),
            text(shaped),
            text(bucketed),
            index.bytes() as f64 / case.paths.len() as f64,
        );
    }
}

/// The first read of a field in a document that was not read before: its index is made and kept.
/// `None` if it gets none.
fn first_read(case: &Case) -> Option<f64> {
    let indexes = FieldIndexes::new(1 << 20);
    let path = Path::new(&case.path);
    warm(&indexes, case);
    if case.document.as_bytes().len() <= TreeFormat::new(0).inline_bytes_max as usize {
        return None; // It lies in a leaf of its tree, and is scanned.
    }
    let mut number = 0_u64;
    Some(nanos(|_| {
        number += 1;
        let mut hash = [1; 32];
        hash[..8].copy_from_slice(&number.to_le_bytes());
        let document = indexes.attach(hash, black_box(case.document.clone()));
        string_bytes(path.get(document.view()))
    }))
}

/// Random documents of a set that no cache holds: how many times as long a get takes as one access
/// of memory that depends on the one before. The next document is chosen by what was found.
fn cold() {
    const COUNT: usize = 20_000;
    let shapes = ShapeRegistry::new(SHAPES_BYTES_MAX);
    let case = documents::flat(1, 100);
    for _ in 0..2 {
        FieldIndex::of(case.as_bytes(), &shapes);
    }
    let made = |id: usize| documents::flat(id as i32, 100).indexed(&shapes);
    let in_order: Vec<DocumentBuf> = (0..COUNT).map(made).collect();
    let bytes: usize = in_order.iter().map(|document| document.as_bytes().len()).sum();
    // Handles one behind the other, documents anywhere: what handles cost is then little, and the
    // same beside what is behind them.
    let order = permutation(COUNT);
    let documents: Vec<DocumentBuf> = order.iter().map(|place| in_order[*place].clone()).collect();
    drop(in_order);
    let fields = permutation(100);
    let paths: Vec<Path> = (1..=100).map(|it| Path::new(&documents::field_name(it))).collect();
    // One element a page of the same memory: nothing but the chain of accesses.
    let chain: Vec<[usize; 64]> = {
        let mut chain = vec![[0; 64]; COUNT * 8];
        let order = permutation(COUNT * 8);
        for pair in order.windows(2) {
            chain[pair[0]][0] = pair[1];
        }
        chain[order[order.len() - 1]][0] = order[0];
        chain
    };
    let access = chased(|place| chain[place][0]);
    // The value found decides nothing, but the next place waits for it.
    let handle = chased(|place| {
        let view = documents[place % COUNT].view();
        let found = view.as_bytes().len() + usize::from(view.is_indexed());
        (place + found / (1 << 40) + 1) % COUNT
    });
    let get = chased(|place| {
        let view = documents[place % COUNT].view();
        let found = value_bytes(paths[fields[place % 100]].find(view));
        (place + found / (1 << 40) + 1) % COUNT
    });
    println!(
        "\n| cold: {COUNT} documents of 100 fields, {} MB | a dependent access | the handle alone | a field of a random document | accesses behind the handle |",
        bytes >> 20
    );
    println!("|---|---|---|---|---|");
    println!(
        "| | {} | {} | {} | {:.1} |",
        text(access),
        text(handle),
        text(get),
        (get - handle) / access
    );
}

/// Nanoseconds of a step, each of which begins where the one before led: the fastest of several
/// runs.
fn chased(mut next: impl FnMut(usize) -> usize) -> f64 {
    const STEPS: usize = 50_000;
    let mut place = 0;
    (0..7)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..STEPS {
                place = next(black_box(place));
            }
            start.elapsed().as_nanos() as f64 / STEPS as f64
        })
        .fold(f64::INFINITY, f64::min)
}

/// All numbers below `count`, in an order that no prefetcher knows.
fn permutation(count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    let mut state = 7_u64;
    for end in (1..count).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.swap(end, (state >> 33) as usize % (end + 1));
    }
    all
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
    FieldIndex::of(case.document.as_bytes(), indexes.shapes());
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

/// Returns the paths in an order that no predictor learns; few enough to stay in the caches.
fn shuffled(paths: &[String]) -> Vec<String> {
    let order = permutation(paths.len());
    (0..ROW.max(paths.len())).map(|it| paths[order[it % paths.len()]].clone()).collect()
}

fn print_row(name: &str, columns: &[f64]) {
    let columns: Vec<String> = columns.iter().map(|nanos| text(*nanos)).collect();
    println!("| {name} | {} |", columns.join(" | "));
}
