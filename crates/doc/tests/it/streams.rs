//! Large documents that are never whole in memory. Goals: what is written element by element has
//! the very head that storing the whole document gives; what is read piece by piece is the
//! document; input that is no document ends in an error. Method: random documents around the
//! threshold, read in bits of a few bytes; the same with bytes changed.

use std::io::Read;

use frond_doc::extended_json::{self, Form};
use frond_doc::pieces::{
    Edited, JsonWriter, LARGE_DOCUMENT_BYTES, PiecesError, Writer, build, read_bson, read_json,
};
use frond_doc::{
    Array, DocumentBuf, DocumentBuilder, ObjectId, Timestamp, Value, document, normalise,
};
use frond_store::ChunkStore;
use frond_store::memory::MemoryStore;
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};
use frond_tree::TreeFormat;

use crate::pieces;

const ID: ObjectId = ObjectId([7; 12]);

/// Gives few bytes at a time.
struct Drip<'a> {
    rest: &'a [u8],
    count: usize,
}

impl Read for Drip<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.count.min(bytes.len()).min(self.rest.len());
        let (now, rest) = self.rest.split_at(count);
        bytes[..count].copy_from_slice(now);
        self.rest = rest;
        Ok(count)
    }
}

/// A random document whose `_id` stands somewhere, or nowhere.
fn document_with_id(random: &mut Random) -> DocumentBuf {
    let fields = pieces::document(random, 3, 30);
    let (count, mut builder) = (fields.iter().count(), DocumentBuilder::new());
    let place = random.below(count + 3);
    for (position, (name, value)) in fields.iter().enumerate() {
        if position == place {
            builder.append("_id", Value::Int64(5));
        }
        builder.append(name, value);
    }
    builder.build()
}

/// What is written so; empty timestamps, which a random document may have, stay so.
fn written(
    store: &dyn ChunkStore,
    format: TreeFormat,
    fill: impl FnOnce(&mut Writer<'_>) -> Result<(), PiecesError>,
) -> Result<Edited, PiecesError> {
    written_at(0, store, format, fill)
}

fn written_at(
    now: u64,
    store: &dyn ChunkStore,
    format: TreeFormat,
    fill: impl FnOnce(&mut Writer<'_>) -> Result<(), PiecesError>,
) -> Result<Edited, PiecesError> {
    let mut writer = Writer::new(store, format, now);
    fill(&mut writer)?;
    writer.finish(|| ID)
}

/// Checks that `edited` is what storing `document` gives.
fn check(store: &dyn ChunkStore, format: TreeFormat, edited: Edited, document: &DocumentBuf) {
    let expected = normalise::for_insert(document, || ID).expect("one _id at most");
    let large = build(store, format, expected.view()).expect("the memory store takes everything");
    match edited {
        Edited::Large(edited) => {
            assert_eq!(Some(edited), large, "the same content has the same head");
            let mut bson = Vec::new();
            edited.write_bson(store, &mut bson).expect("it is whole");
            assert_eq!(bson, expected.as_bytes());
            for form in [Form::Canonical, Form::Relaxed] {
                let (mut json, mut text) = (Vec::new(), String::new());
                let mut writer = JsonWriter::new(form);
                writer.write_pieces(&edited, store, &mut json).expect("it is whole");
                writer.finish(&mut json).expect("a vector takes everything");
                extended_json::write(expected.view(), form, &mut text);
                assert_eq!(String::from_utf8(json).expect("UTF-8"), text);
            }
        }
        Edited::Small(small) => {
            assert_eq!(small.as_bytes(), expected.as_bytes());
            assert_eq!(large, None);
        }
    }
}

#[test]
fn writing_piece_by_piece_equals_storing_the_whole() {
    let mut large_count = 0;
    for_seeds(12, |mut random| {
        let store = MemoryStore::new();
        let store: &dyn ChunkStore = &*store;
        let format = TreeFormat::new(random.next());
        let document = document_with_id(&mut random);
        large_count += usize::from(LARGE_DOCUMENT_BYTES <= document.as_bytes().len());
        let mut drip = Drip { rest: document.as_bytes(), count: 1 + random.below(300) };
        let edited = written(store, format, |writer| read_bson(&mut drip, writer));
        check(store, format, edited.expect("a document"), &document);

        let mut text = String::new();
        extended_json::write(document.view(), Form::Canonical, &mut text);
        let document = extended_json::parse(&text).expect("it was just written");
        let mut drip = Drip { rest: text.as_bytes(), count: 1 + random.below(300) };
        let edited = written(store, format, |writer| read_json(&mut drip, writer));
        check(store, format, edited.expect("a document"), &document);
    });
    assert_met("large documents", large_count, 1);
}

#[test]
fn empty_timestamps_become_now() {
    let store = MemoryStore::new();
    let zero = Value::Timestamp(Timestamp(0));
    let document = document! { "a": zero, "b": &document! { "c": zero }, "_id": zero };
    let mut bytes = document.as_bytes();
    let edited = written_at(9, &*store, TreeFormat::new(1), |writer| read_bson(&mut bytes, writer));
    let Ok(Edited::Small(small)) = edited else { panic!("{edited:?}") };
    let inner = document! { "c": zero };
    let expected = document! { "_id": zero, "a": Value::Timestamp(Timestamp(9)), "b": &inner };
    assert_eq!(small.as_bytes(), expected.as_bytes());
}

#[test]
fn values_too_large_for_a_piece_are_refused() {
    let store = MemoryStore::new();
    let refusal = |json: &str| {
        let mut bytes = json.as_bytes();
        let written = written(&*store, TreeFormat::new(1), |it| read_json(&mut bytes, it));
        written.expect_err("it is refused").to_string()
    };
    let long = "n".repeat(701);
    for (json, expected) in [
        (r#"{"a": 1, "a": 2}"#.to_owned(), "two outermost fields called \"a\""),
        (r#"{"_id": 1, "_id": 2}"#.to_owned(), "two outermost fields"),
        (format!(r#"{{"a": {{"{long}": 1}}}}"#), "a name of more than 700 bytes"),
        (r#"{"a": {"$oid": "x"}}"#.to_owned(), "field \"a\": $oid"),
        (r#"{"a": [1, {"b": }]}"#.to_owned(), "expected value"),
        (r#"{"a": 1} {"#.to_owned(), "trailing characters"),
        (r#"{"a": "#.to_owned(), "EOF"),
    ] {
        let error = refusal(&json);
        assert!(error.contains(expected), "{error}, expected {expected}");
    }
}

/// Changed bytes: a stream is taken exactly if validation takes the whole, and gives the same.
#[test]
fn damaged_input_is_reported() {
    let (mut taken, mut refused) = (0, 0);
    for_seeds(150, |mut random| {
        let store = MemoryStore::new();
        let store: &dyn ChunkStore = &*store;
        let format = TreeFormat::new(1);
        let document = pieces::document(&mut random, 2, 6);
        let mut bytes = document.as_bytes().to_vec();
        for _ in 0..random.below(3) {
            let near = 60 + random.below(4000);
            let position = random.below(bytes.len().min(near));
            bytes[position] = random.next() as u8;
        }
        if random.one_in(4) {
            bytes.truncate(random.below(bytes.len() + 1));
        }
        let mut drip = Drip { rest: &bytes, count: 1 + random.below(300) };
        let edited = written(store, format, |writer| read_bson(&mut drip, writer));
        match DocumentBuf::validated(bytes.into()) {
            Ok(document) => {
                let mut names: Vec<&str> = document.iter().map(|field| field.0).collect();
                names.sort_unstable();
                if names.windows(2).any(|pair| pair[0] == pair[1]) {
                    assert!(edited.is_err());
                    return;
                }
                let zero = Value::Timestamp(Timestamp(0));
                if document.iter().any(|(name, value)| name != "_id" && value == zero) {
                    return; // It becomes the time: `empty_timestamps_become_now`.
                }
                check(store, format, edited.expect("a document"), &document);
                taken += 1;
            }
            // Bytes behind the document aren't read.
            Err(_) => refused += usize::from(edited.is_err()),
        }
    });
    assert_met("documents taken", taken, 20);
    assert_met("documents refused", refused, 20);
}

/// One writer of many documents, whose equal parts it writes down once: as documents and as arrays,
/// at several depths, behind others with the same items, more of them than are kept.
#[test]
fn equal_parts_are_written_as_unequal_ones_are() {
    let store = MemoryStore::new();
    let store: &dyn ChunkStore = &*store;
    let format = TreeFormat::new(5);
    let part = |number: usize, count: usize| {
        let mut part = DocumentBuilder::new();
        for field in 0..count {
            part.append(&field.to_string(), Value::Int64(number as i64));
        }
        part.build()
    };
    for form in [Form::Canonical, Form::Relaxed] {
        let mut json = JsonWriter::new(form);
        for number in 0..300 {
            let (own, shared, long) = (part(number, 800), part(3, 50), part(3, 9_000));
            let mut document = DocumentBuilder::new();
            document.append("_id", Value::Int64(number as i64));
            for (name, part) in [("a", &own), ("b", &shared), ("c", &own), ("d", &long)] {
                document.append(name, Value::Document(part.view()));
            }
            document.append("e", Value::Array(Array::from_validated(shared.as_bytes())));
            document.begin_document("f").append("own", Value::Document(own.view()));
            document.append("shared", Value::Document(shared.view())).end();
            let document = document.build();
            let large = build(store, format, document.view()).expect("the memory store takes it");
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            let large = large.expect("it is large");
            json.write_pieces(&large, store, &mut found).expect("it is whole");
            json.finish(&mut found).expect("a vector takes everything");
            extended_json::append(document.view(), form, &mut expected);
            assert!(found == expected, "document {number}, {form:?}");
        }
    }
}

/// Documents in memory and in pieces, and text between, in one order; each is there once, and of
/// one whose pieces are gone nothing is.
#[test]
fn documents_and_text_come_out_in_their_order() {
    let store = MemoryStore::new();
    let store: &dyn ChunkStore = &*store;
    let nothing = MemoryStore::new();
    let mut json = JsonWriter::new(Form::Relaxed);
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for number in 0..120_usize {
        let mut document = DocumentBuilder::new();
        document.append("_id", Value::Int32(number as i32));
        for field in 0..number * number % 1_900 {
            document.append(&format!("gravel{field}"), Value::Int64((number * field) as i64));
        }
        let document = document.build();
        let large = build(store, TreeFormat::new(5), document.view()).expect("it takes it");
        match &large {
            Some(large) => json.write_pieces(large, store, &mut found).expect("it is whole"),
            None => json.write(document.view(), &mut found).expect("a vector takes everything"),
        }
        extended_json::append(document.view(), Form::Relaxed, &mut expected);
        json.push(";\n");
        expected.extend_from_slice(b";\n");
        if let Some(large) = large.filter(|_| number % 3 == 0) {
            assert!(json.write_pieces(&large, &*nothing, &mut found).is_err());
        }
        assert!(found.len() <= expected.len() && expected.starts_with(&found));
    }
    assert!(!found.is_empty() && found.len() < expected.len(), "some wait for the end");
    json.finish(&mut found).expect("a vector takes everything");
    assert!(found == expected);
}
