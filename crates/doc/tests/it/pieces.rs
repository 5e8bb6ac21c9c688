//! Large documents as pieces. Goals: any document comes back byte for byte, whole, by field and by
//! path; edits give the bytes that the same edits of a plain document give, and the very head that
//! storing those bytes gives; damage never panics. Method: random documents around the threshold,
//! random splices in random containers, each done on both.

use frond_doc::extended_json::Form;
use frond_doc::pieces::{
    Edited, Element, HEAD_FLAG, ITEM_VALUE_BYTES_MAX, JsonWriter, LARGE_DOCUMENT_BYTES,
    LargeDocument, build, whole,
};
use frond_doc::raw::RawElements;
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, ElementType, Value, ValueBuf};
use frond_store::memory::MemoryStore;
use frond_store::{Chunk, ChunkKind, ChunkStore};
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};
use frond_tree::{Content, Sequence, TreeFormat, Value as TreeValue};

use crate::generate;

fn put(
    store: &dyn ChunkStore,
    format: TreeFormat,
    document: &DocumentBuf,
) -> Option<LargeDocument> {
    build(store, format, document.view()).expect("the memory store takes everything")
}

/// A value that is longer than most: text, bytes, documents and arrays.
fn value(random: &mut Random, depth: usize) -> ValueBuf {
    match random.below(if depth == 0 { 3 } else { 5 }) {
        0 => generate::value(random, 2),
        1 => Value::String(&"some text ".repeat(random.below(300))).to_buf(),
        2 => {
            let count = random.below(9_000);
            let bytes = random.bytes(count);
            Value::Binary(frond_doc::Binary { subtype: 0, bytes: &bytes }).to_buf()
        }
        3 => {
            let document = document(random, depth - 1, 14);
            Value::Document(document.view()).to_buf()
        }
        _ => {
            let mut builder = DocumentBuilder::new();
            let named = random.one_in(12);
            for position in 0..random.below(130) {
                let name = format!("{}{position}", if named { "n" } else { "" });
                let inner = if random.one_in(8) {
                    value(random, depth - 1)
                } else {
                    generate::value(random, 1)
                };
                builder.append(&name, inner.as_value());
            }
            let array = builder.build();
            Value::Array(Array::from_validated(array.as_bytes())).to_buf()
        }
    }
}

pub fn document(random: &mut Random, depth: usize, field_count: usize) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    for position in 0..random.below(field_count) {
        let name = format!("{}{position}", random.choose(&["f", "field_", "ß"]));
        builder.append(&name, value(random, depth).as_value());
    }
    builder.build()
}

#[test]
fn documents_come_back() {
    let mut large_count = 0;
    for_seeds(25, |mut random| {
        let store = MemoryStore::new();
        let store: &dyn ChunkStore = &*store;
        let format = TreeFormat::new(random.next());
        let document = document(&mut random, 3, 30);
        let is_large = LARGE_DOCUMENT_BYTES <= document.as_bytes().len();
        let large = put(store, format, &document);
        assert_eq!(large.is_some(), is_large);
        let Some(large) = large else { return };
        large_count += 1;
        let opened = LargeDocument::open(format, &large.value());
        assert_eq!(opened, Some(large));
        assert_eq!(large.bytes(), document.as_bytes().len() as u64);
        assert_eq!(large.read(store).expect("it is whole").as_bytes(), document.as_bytes());
        for (name, value) in document.iter() {
            let got = large.get(store, &[name]).expect("it is whole").expect("it is there");
            assert_eq!(got.as_value().element_type(), value.element_type());
            assert_eq!(format!("{:?}", got.as_value()), format!("{value:?}"));
            let projected = large.project(store, &[name.as_bytes()]).expect("it is whole");
            assert_eq!(projected.iter().count(), 1);
            assert_eq!(format!("{:?}", projected.get(name)), format!("{:?}", Some(value)));
            // One step further.
            let inner = match value {
                Value::Document(inner) => inner,
                Value::Array(inner) => inner.as_document(),
                _ => continue,
            };
            for (part, value) in inner.iter() {
                let got = large.get(store, &[name, part]).expect("it is whole");
                let got = format!("{:?}", got.as_ref().map(|it| it.as_value()));
                let expected = inner.get(part).unwrap_or(value);
                assert_eq!(got, format!("{:?}", Some(expected)), "{name}.{part}");
            }
        }
        assert_eq!(large.get(store, &["absent", "x"]).expect("it is whole"), None);
        // Names that are too long keep a document whole.
        let mut long = DocumentBuilder::new();
        long.append(&"n".repeat(701), Value::Document(document.view()));
        assert_eq!(put(store, format, &long.build()), None);
    });
    assert_met("large documents", large_count, 3);
}

/// A place in a plain document: names from the outermost on, and how many elements lie there.
struct Place {
    parts: Vec<String>,
    count: usize,
    is_array: bool,
}

/// A random container, as pieces have them.
fn place(random: &mut Random, document: Document<'_>) -> Place {
    let mut place = Place { parts: Vec::new(), count: 0, is_array: false };
    let mut bytes = document.as_bytes();
    loop {
        let elements: Vec<_> = RawElements::new(bytes).collect();
        place.count = elements.len();
        let nested: Vec<_> = elements
            .iter()
            .filter(|it| matches!(it.kind, ElementType::Document | ElementType::Array))
            .filter(|it| ITEM_VALUE_BYTES_MAX < it.value.len())
            .filter(|it| it.kind == ElementType::Document || !it.value[5..].starts_with(b"n"))
            .collect();
        if nested.is_empty() || random.one_in(3) {
            return place;
        }
        let chosen = random.choose(&nested);
        place.parts.push(chosen.name().expect("UTF-8").to_owned());
        place.is_array = chosen.kind == ElementType::Array;
        bytes = chosen.value;
    }
}

/// The same splice of a plain document.
fn splice(
    out: &mut DocumentBuilder,
    bytes: &[u8],
    is_array: bool,
    parts: &[String],
    at: (usize, usize),
    elements: &[(String, ValueBuf)],
) {
    let mut all: Vec<(String, Option<ValueBuf>, &[u8])> = Vec::new();
    for element in RawElements::new(bytes) {
        let name = element.name().expect("UTF-8").to_owned();
        let value = element.decode().expect("valid").to_buf();
        let goes_in = parts.first() == Some(&name);
        all.push((name, (!goes_in).then_some(value), element.value));
    }
    if parts.is_empty() {
        let new = elements.iter().map(|(name, value)| (name.clone(), Some(value.clone()), &[][..]));
        all.splice(at.0..at.0 + at.1, new);
    }
    for (position, (name, value, bytes)) in all.into_iter().enumerate() {
        let name = if is_array { position.to_string() } else { name };
        match value {
            Some(value) => {
                out.append(&name, value.as_value());
            }
            None => {
                // A container that the edit descends into keeps its type: arrays begin with the
                // name 0, or are empty.
                let inner_is_array = bytes.get(5..7) == Some(b"0\0");
                if inner_is_array {
                    out.begin_array(&name)
                } else {
                    out.begin_document(&name)
                };
                splice(out, bytes, inner_is_array, &parts[1..], at, elements);
                out.end();
            }
        }
    }
}

#[test]
fn edits_equal_those_of_plain_documents() {
    let mut large_count = 0;
    for_seeds(10, |mut random| {
        let store = MemoryStore::new();
        let store: &dyn ChunkStore = &*store;
        let format = TreeFormat::new(random.next());
        let mut plain = document(&mut random, 3, 30);
        let Some(mut large) = put(store, format, &plain) else { return };
        for turn in 0..25 {
            let place = place(&mut random, plain.view());
            let at = random.below(place.count + 1);
            let removed = random.below(3).min(place.count - at);
            let elements: Vec<(String, ValueBuf)> = (0..random.below(3))
                .map(|number| (format!("new_{turn}_{number}"), value(&mut random, 1)))
                .collect();
            let mut after = DocumentBuilder::new();
            splice(&mut after, plain.as_bytes(), false, &place.parts, (at, removed), &elements);
            let after = after.build();

            // The last part names nothing: the path leads into the container.
            let mut parts: Vec<&str> = place.parts.iter().map(String::as_str).collect();
            parts.push("no such name");
            let found = large.find(store, &parts).expect("it is whole");
            assert_eq!(found.part_count, place.parts.len());
            assert_eq!(found.is_in_array(), place.is_array);
            let mut whole = DocumentBuilder::new();
            for (name, value) in &elements {
                whole.append(name, value.as_value());
            }
            let whole = whole.build();
            let raw: Vec<Element<'_>> = whole.view().elements().collect();
            let edited = large.splice(store, &found, at as u64, removed as u64, &raw);
            let edited = edited.expect("it is whole").expect("names are short");
            let expected = put(store, format, &after);
            match edited {
                Edited::Large(edited) => {
                    let read = edited.read(store).expect("it was just put");
                    assert_eq!(read.as_bytes(), after.as_bytes());
                    assert_eq!(Some(edited), expected, "the same content has the same head");
                    large = edited;
                    large_count += 1;
                }
                Edited::Small(document) => {
                    assert_eq!(document.as_bytes(), after.as_bytes());
                    assert_eq!(expected, None);
                    return;
                }
            }
            plain = after;
        }
    });
    assert_met("edits that leave large documents", large_count, 10);
}

/// Splices of several places at once equal the same ones after each other.
#[test]
fn edits_at_once_equal_those_after_each_other() {
    let mut many_count = 0;
    for_seeds(10, |mut random| {
        let store = MemoryStore::new();
        let store: &dyn ChunkStore = &*store;
        let plain = document(&mut random, 3, 30);
        let Some(mut large) = put(store, TreeFormat::new(random.next()), &plain) else { return };
        for turn in 0..20 {
            let text = format!("new {turn}").repeat(random.below(100));
            let element = [Element {
                kind: frond_doc::ElementType::Symbol,
                name: b"new",
                value: &[&(text.len() as i32 + 1).to_le_bytes(), text.as_bytes(), &[0]].concat(),
            }];
            let (mut places, mut splices) = (Vec::new(), Vec::new());
            for _ in 0..random.below(6) {
                let place = place(&mut random, plain.view());
                let mut parts = place.parts.clone();
                parts.push("no such name".to_owned());
                let parts_read: Vec<&str> = parts.iter().map(String::as_str).collect();
                let found = large.find(store, &parts_read).expect("it is whole");
                if found.part_count + 1 != parts.len() {
                    continue;
                }
                let at = found.count(store).expect("it is whole");
                let splice = large.prepare(store, &found, at, 0, &element);
                splices.push(splice.expect("it is whole").expect("names are short"));
                places.push(parts);
            }
            if splices.is_empty() {
                continue;
            }
            many_count += usize::from(1 < splices.len());
            let Edited::Large(together) = large.splice_all(store, splices).expect("whole") else {
                panic!("it has only grown");
            };
            for parts in &places {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                let found = large.find(store, &parts).expect("it is whole");
                let at = found.count(store).expect("it is whole");
                let edited = large.splice(store, &found, at, 0, &element).expect("it is whole");
                let Some(Edited::Large(edited)) = edited else { panic!("it has only grown") };
                large = edited;
            }
            assert_eq!(together, large);
        }
    });
    assert_met("edits of several places", many_count, 10);
}

/// One element of a large array changes: few chunks are put, and as few at the front as at the end.
#[test]
fn an_edit_puts_few_chunks() {
    let store = MemoryStore::new();
    let store: &dyn ChunkStore = &*store;
    let mut builder = DocumentBuilder::new();
    builder.append("_id", Value::Int32(1)).begin_array("items");
    for number in 0..40_000 {
        builder.push(Value::String(&format!("an element whose number is {number}")));
    }
    builder.end();
    let large = put(store, TreeFormat::new(7), &builder.build()).expect("2 MB");
    let found = large.find(store, &["items", "x"]).expect("it is whole");
    let mut element = DocumentBuilder::new();
    element.append("", Value::String("a new one"));
    let element = element.build();
    let element: Vec<Element<'_>> = element.view().elements().collect();
    for position in [0, 20_000, 40_000] {
        let before = store.counters();
        large.splice(store, &found, position, 0, &element).expect("it is whole");
        let after = store.counters();
        let (chunks, bytes) =
            (after.chunks_written - before.chunks_written, after.bytes_put - before.bytes_put);
        assert!(chunks <= 10 && bytes <= 24 << 10, "{chunks} chunks, {bytes} bytes at {position}");
    }
}

/// Random damage ends in an error or another document, never in a panic.
#[test]
fn damage_is_survived() {
    for_seeds(800, |mut random| {
        let store = MemoryStore::new();
        let store: &dyn ChunkStore = &*store;
        let format = TreeFormat::new(1);
        let mut items: Vec<Vec<u8>> = Vec::new();
        for element in generate::document(&mut random, 3).view().elements() {
            let mut item = vec![element.kind as u8 | if random.one_in(3) { 0x40 } else { 0 }];
            item.extend_from_slice(element.name);
            item.push(0);
            item.extend_from_slice(element.value);
            let at = random.below(item.len());
            match random.below(4) {
                0 => item.truncate(at),
                1 => item[at] = random.next() as u8,
                2 => item.extend_from_slice(&[0; 40]),
                _ => {}
            }
            items.push(item);
        }
        let mut items = items.into_iter().map(|item| Ok(item.into()));
        let sequence = Sequence::build(store, format, &mut items).expect("short items");
        let no_root = Chunk::new(ChunkKind::Blob, &[sequence.root], &[0; 16]);
        store.put_many(std::slice::from_ref(&no_root)).expect("the memory store takes everything");
        let hash = if random.one_in(40) { no_root.hash() } else { sequence.root };
        let bytes = if random.one_in(20) { random.next() } else { random.next() & 0xff };
        let value = TreeValue { flags: HEAD_FLAG, content: Content::Chunk { hash, bytes } };
        if let Some(large) = LargeDocument::open(format, &value) {
            if let Ok(document) = large.read(store) {
                document.iter().count();
            }
            large.write_bson(store, &mut Vec::new()).ok();
            JsonWriter::new(Form::Relaxed).write_pieces(&large, store, &mut Vec::new()).ok();
            large.get(store, &["a", "b"]).ok();
            large.project(store, &[b"a", b"b"]).ok();
            if let Ok(shallow) = large.shallow(store, None) {
                whole(store, shallow.view()).ok();
                large.shallow(store, Some(&[b"a", b"b"])).ok();
            }
            if let Ok(found) = large.find(store, &["a", "b"]) {
                large.splice(store, &found, 0, 1, &[]).ok();
            }
        }
    });
}

/// Pieces that refer to the same ones again and again end when they are longer than they say: sixty
/// arrays, each of the one before twice, would be 2^60 elements.
#[test]
fn pieces_longer_than_their_length_are_not_read() {
    let store = MemoryStore::new();
    let store: &dyn ChunkStore = &*store;
    let format = TreeFormat::new(1);
    let parameters = TreeFormat { chunk_bytes_target: 4096, inline_bytes_max: 2048, salt: 1 };
    let sequence = |items: [Vec<u8>; 2]| {
        let mut items = items.into_iter().map(|item| Ok(item.into()));
        Sequence::build_referring(store, parameters, &mut items, |item| item[0] == 0x44)
            .expect("short items")
    };
    let mut inner = sequence([vec![0x0a], vec![0x0a]]);
    for depth in 0..60 {
        let mut item = vec![0x44];
        if depth == 59 {
            item.extend_from_slice(b"a\0"); // The outermost is a document.
        }
        item.extend_from_slice(&1000_u32.to_le_bytes());
        item.extend_from_slice(&inner.root.0);
        inner = sequence([item.clone(), item]);
    }
    let content = Content::Chunk { hash: inner.root, bytes: 100_000 };
    let value = TreeValue { flags: HEAD_FLAG, content };
    let large = LargeDocument::open(format, &value).expect("it is a head");
    let message = large.read(store).expect_err("too long").to_string();
    assert!(message.contains("longer than its pieces say"), "{message}");
}
