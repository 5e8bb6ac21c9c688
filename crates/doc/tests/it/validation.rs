//! Bytes from outside. Goals: every document that the builder makes is taken; what is damaged is
//! refused, or can be read to its end, by walk, by name, by path and by index; names and texts that
//! aren't UTF-8 are found wherever they stand. Method: random documents with some bytes changed,
//! cut or doubled; texts whose bad byte stands at each place of a word of eight.

use frond_doc::field_index::shape::{SHAPES_BYTES_MAX, ShapeRegistry};
use frond_doc::path::Path;
use frond_doc::raw::RawElements;
use frond_doc::{Document, DocumentBuf, ElementType};
use frond_testkit::random::{assert_met, for_seeds};

use crate::generate;

/// Reads all of a document that was found valid.
fn read_all(document: Document<'_>) -> usize {
    let mut rest = document.elements();
    let mut count = 0;
    for element in rest.by_ref() {
        assert!(element.name().is_some() && element.decode().is_some(), "{element:?}");
        count += 1;
        if matches!(element.kind, ElementType::Document | ElementType::Array) {
            count += read_all(Document::from_validated(element.value));
        }
    }
    assert_eq!(rest.rest(), [0], "a walk ends at the document's end");
    count
}

#[test]
fn validated_documents_can_be_read() {
    let (mut taken, mut refused) = (0, 0);
    for_seeds(3_000, |mut random| {
        let whole = generate::document(&mut random, 3);
        assert!(DocumentBuf::validated(whole.clone().into_bytes()).is_ok(), "{whole:?}");
        let mut bytes = whole.as_bytes().to_vec();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            match random.below(5) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = [0, 1, 2, 3, 0x7f, 0x80, 0xff][random.below(7)],
                2 => bytes.truncate(at.max(1)),
                3 => bytes.insert(at, random.next() as u8),
                _ => drop(bytes.remove(at.min(bytes.len() - 1))),
            }
            if bytes.is_empty() {
                return;
            }
        }
        // Mostly the length in front is what is wrong: then the rest is looked at, too.
        if random.one_in(2) && bytes.len() > 4 {
            let length = (bytes.len() as u32).to_le_bytes();
            bytes[..4].copy_from_slice(&length);
        }
        let Ok(document) = DocumentBuf::validated(bytes.into()) else {
            refused += 1;
            return;
        };
        taken += 1;
        read_all(document.view());
        let shapes = ShapeRegistry::new(SHAPES_BYTES_MAX);
        document.clone().indexed(&shapes);
        let indexed = document.clone().indexed(&shapes);
        for (name, value) in document.iter() {
            let first = document.get(name).map(|value| format!("{value:?}"));
            assert!(first.is_some());
            assert_eq!(indexed.get(name).map(|value| format!("{value:?}")), first, "{value:?}");
            Path::new(name).visit(indexed.view(), &mut |_| false);
        }
    });
    assert_met("documents taken", taken, 100);
    assert_met("documents refused", refused, 500);
}

/// A document of one string.
fn around(name: &[u8], text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.push(2);
    bytes.extend_from_slice(name);
    bytes.push(0);
    bytes.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(&[0, 0]);
    let length = (bytes.len() as u32).to_le_bytes();
    bytes[..4].copy_from_slice(&length);
    bytes
}

#[test]
fn text_is_checked_at_every_place() {
    for count in 1..40 {
        for place in 0..count {
            let mut text = vec![b'a'; count];
            let (name, value) = (text.clone(), text.clone());
            text[place] = 0xe9; // Begins a character that doesn't follow.
            let is_taken = |bytes: Vec<u8>| DocumentBuf::validated(bytes.into()).is_ok();
            assert!(is_taken(around(&name, &value)));
            assert!(!is_taken(around(&text, &value)), "a name, {place} of {count}");
            assert!(!is_taken(around(&name, &text)), "a text, {place} of {count}");
            let accented = "\u{e9}".repeat(count);
            assert!(is_taken(around(accented.as_bytes(), accented.as_bytes())));
            assert_eq!(RawElements::new(&around(&name, &value)).count(), 1);
        }
    }
}
