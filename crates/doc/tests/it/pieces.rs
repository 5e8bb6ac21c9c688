//! Large documents as pieces: goal: any document comes back byte for byte, through a store too.

use frond_doc::{DocumentBuf, DocumentBuilder, Value, pieces};
use frond_store::memory::MemoryStore;
use frond_testkit::{Random, random::for_seeds};
use frond_tree::TreeFormat;

use crate::generate;

/// A document with some long texts, bytes and names among other values.
fn large(random: &mut Random) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    for _ in 0..random.below(8) {
        let name = if random.one_in(10) { "n".repeat(5000) } else { generate::name(random) };
        match random.below(4) {
            0 => {
                let text = "text ".repeat(random.below(4000));
                builder.append(&name, Value::String(&text));
            }
            1 => {
                let count = random.below(20_000);
                let bytes = random.bytes(count);
                let binary = frond_doc::Binary { subtype: 0, bytes: &bytes };
                builder.append(&name, Value::Binary(binary));
            }
            2 => {
                builder.begin_array(&name);
                for _ in 0..random.below(300) {
                    builder.push(generate::value(random, 2).as_value());
                }
                builder.end();
            }
            _ => {
                builder.append(&name, generate::value(random, 4).as_value());
            }
        }
    }
    builder.build()
}

#[test]
fn documents_come_back() {
    for_seeds(500, |mut random| {
        let document = large(&mut random);
        let items: Vec<_> = pieces::to_pieces(document.view()).collect();
        assert!(items.iter().all(|item| item.len() <= pieces::PIECE_BYTES_MAX));
        let back = pieces::from_pieces(&mut items.into_iter().map(Ok)).expect("pieces");
        assert_eq!(back.as_bytes(), document.as_bytes());
    });
}

#[test]
fn documents_come_back_from_a_store() {
    for_seeds(40, |mut random| {
        let store: std::sync::Arc<dyn frond_store::ChunkStore> = MemoryStore::new();
        let document = large(&mut random);
        let sequence = pieces::build(&*store, TreeFormat::new(random.next()), document.view());
        let sequence = sequence.expect("the memory store takes everything");
        let back = pieces::read(&store, &sequence).expect("it was just stored");
        assert_eq!(back.as_bytes(), document.as_bytes());
    });
}

/// Random damage ends in an error or another document, never in a panic.
#[test]
fn damage_is_survived() {
    for_seeds(3000, |mut random| {
        let document = generate::document(&mut random, 3);
        let mut items: Vec<Vec<u8>> =
            pieces::to_pieces(document.view()).map(|item| item.to_vec()).collect();
        if items.is_empty() {
            return;
        }
        let position = random.below(items.len());
        match random.below(3) {
            0 => drop(items.remove(position)),
            1 => items[position].truncate(1),
            _ => items[position][0] = random.next() as u8,
        }
        let mut items = items.into_iter().map(|item| Ok(item.into()));
        if let Ok(document) = pieces::from_pieces(&mut items) {
            DocumentBuf::validated(document.into_bytes()).expect("what is returned is valid");
        }
    });
}
