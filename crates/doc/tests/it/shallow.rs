//! Documents with references for what lies in the store. Goals: they are the documents that they
//! stand for, however far they were opened; and stored they are what the whole is, wherever their
//! values were moved to. Method: random documents, opened and put together at random, beside the
//! whole ones.

use frond_doc::pieces::{
    LargeDocument, build, build_referring, has_deepened, has_references, open, whole, whole_bytes,
};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, ElementType, Value};
use frond_store::ChunkStore;
use frond_store::memory::MemoryStore;
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};
use frond_tree::TreeFormat;

use crate::pieces::document;

/// The document, some of whose references are opened.
fn opened(random: &mut Random, store: &dyn ChunkStore, document: Document<'_>) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    for element in document.elements() {
        let value = element.decode().expect("a value");
        let (Some(name), true) = (element.name(), random.one_in(2)) else {
            out.append_element(&element);
            continue;
        };
        let value = match value {
            Value::Reference(reference) => open(store, reference).expect("it is there"),
            other => other.to_buf(),
        };
        match value.as_value() {
            Value::Document(inner) => {
                out.append(name, Value::Document(opened(random, store, inner).view()));
            }
            Value::Array(inner) => {
                let inner = opened(random, store, inner.as_document());
                out.append(name, Value::Array(frond_doc::Array::from_validated(inner.as_bytes())));
            }
            other => {
                out.append(name, other);
            }
        }
    }
    out.build()
}

/// Some values of both, in other places: in documents, in arrays, twice.
fn moved(random: &mut Random, both: [&DocumentBuf; 2]) -> [DocumentBuf; 2] {
    let seed = random.next();
    both.map(|document| {
        let mut random = Random::new(seed);
        let mut out = DocumentBuilder::new();
        out.append("_id", Value::Int32(1)).begin_array("all");
        for (_, value) in document.iter() {
            out.push(value);
        }
        out.end();
        for (position, (_, value)) in document.iter().enumerate() {
            let name = format!("f{position}");
            match random.below(4) {
                0 => out.append(&name, value),
                1 => out.begin_document(&name).append("in", value).end(),
                2 => out.begin_array(&name).push(value).push(value).end(),
                _ => &mut out,
            };
        }
        out.build()
    })
}

#[test]
fn they_are_the_documents_that_they_stand_for() {
    let (mut count, mut moved_count) = (0, 0);
    for_seeds(40, |mut random| {
        let store = MemoryStore::new();
        let store: &dyn ChunkStore = &*store;
        let format = TreeFormat::new(random.next());
        let document = document(&mut random, 3, 30);
        let large = build(store, format, document.view()).expect("put");
        let Some(large) = large else { return };
        let shallow = large.shallow(store, None).expect("it is whole");
        assert!(shallow.as_bytes().len() <= document.as_bytes().len());
        for _ in 0..4 {
            let shallow = match random.one_in(4) {
                true => shallow.clone(),
                false => opened(&mut random, store, shallow.view()),
            };
            count += usize::from(has_references(shallow.view()));
            assert!(!has_deepened(shallow.view()));
            assert_eq!(whole_bytes(shallow.view()), document.as_bytes().len() as u64);
            let read = whole(store, shallow.view()).expect("it is whole");
            assert_eq!(read.as_bytes(), document.as_bytes());
            assert!(!has_references(read.view()));
            let built = build_referring(store, format, shallow.view()).expect("put");
            assert_eq!(built, Some(large));
            let [shallow, document] = moved(&mut random, [&shallow, &document]);
            assert_eq!(whole_bytes(shallow.view()), document.as_bytes().len() as u64);
            let read = whole(store, shallow.view()).expect("it is whole");
            assert_eq!(read.as_bytes(), document.as_bytes());
            let expected = build(store, format, document.view()).expect("put");
            assert_eq!(build_referring(store, format, shallow.view()).expect("put"), expected);
            moved_count += usize::from(has_deepened(shallow.view()));
        }
        let name = document.iter().last().map(|(name, _)| name.to_owned()).expect("it is large");
        let some = large.shallow(store, Some(&[name.as_bytes()])).expect("it is whole");
        assert!(some.iter().map(|(name, _)| name).eq([name.as_str()]));
    });
    assert_met("documents with references", count, 20);
    assert_met("documents with moved references", moved_count, 20);
}

#[test]
fn nothing_from_outside_is_a_reference() {
    let store = MemoryStore::new();
    let store: &dyn ChunkStore = &*store;
    let mut out = DocumentBuilder::new();
    out.append("text", Value::String(&"long ".repeat(20_000)));
    let large = build(store, TreeFormat::new(1), out.build().view()).expect("put").expect("large");
    let shallow = LargeDocument::shallow(&large, store, None).expect("it is whole");
    let kind = shallow.view().elements().next().map(|element| element.kind);
    assert_eq!(kind, Some(ElementType::Reference));
    assert!(DocumentBuf::validated(shallow.into_bytes()).is_err());
}
