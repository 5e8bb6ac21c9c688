//! The bytes of pieces: these are stored, so that a change here is a change of the format.

use super::*;
use crate::document;
use crate::{DocumentBuf, DocumentBuilder, Value};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check(document: &DocumentBuf, expected: &[&str]) {
    let pieces: Vec<Bytes> = to_pieces(document.view()).collect();
    let written: Vec<String> = pieces.iter().map(|piece| hex(piece)).collect();
    assert_eq!(written, expected);
    let back = from_pieces(&mut pieces.into_iter().map(Ok)).expect("pieces are a document");
    assert_eq!(back, *document);
}

#[test]
fn bytes_of_pieces() {
    check(&DocumentBuf::empty(), &[]);
    check(&document! { "a": 1_i32, "b": "x" }, &["10610001000000", "02620078"]);
    let mut builder = DocumentBuilder::new();
    builder.begin_document("d").append("n", Value::Null).end();
    builder.begin_array("l").push(Value::from(true)).push(Value::from("y"));
    builder.push_begin_array().end().end();
    check(
        &builder.build(),
        &["036400", "0a6e00", "00", "046c00", "0801", "0279", "04", "00", "00"],
    );
    let odd = document! { "7": true };
    let odd = crate::Array::from_validated(odd.as_bytes());
    check(&document! { "o": odd }, &["216f00090000000837000100"]);
}

#[test]
fn long_values_are_cut() {
    let mut text: String = (0..20_000).map(|n| format!("{n} ")).collect();
    let before = document! { "a": &text, "b": 1_i32 };
    text.insert_str(50_000, "an insertion");
    let after = document! { "a": &text, "b": 1_i32 };
    let pieces = |it: &DocumentBuf| to_pieces(it.view()).collect::<Vec<Bytes>>();
    let (before, after) = (pieces(&before), pieces(&after));
    assert!(before.len() > 50, "{} pieces", before.len());
    assert!(before.iter().all(|piece| piece.len() <= PIECE_BYTES_MAX));
    let changed = after.iter().filter(|piece| !before.contains(piece)).count();
    assert!(changed <= 4, "{changed} pieces changed");
}

#[test]
fn damage_is_an_error() {
    let check = |items: &[&[u8]], expected: &str| {
        let mut items = items.iter().map(|item| Ok(Bytes::copy_from_slice(item)));
        let error = from_pieces(&mut items).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&[b""], "an empty piece");
    check(&[b"\0"], "an end of nothing");
    check(&[b"\x20x"], "type 0x20");
    check(&[b"\x03a\0"], "not ended");
    check(&[b"\x03a"], "without a name");
    check(&[b"\x03a\0x", b"\0"], "behind a beginning");
    check(&[b"\x05a\0"], "without subtype");
    check(&[b"\x10a\0\x01"], "reaches past");
    check(&[b"\x02a\0\xff"], "UTF-8");
    check(&[b"\x21a\0"], "reaches past");
    let deep = vec![b"\x03a\0".as_slice(); 1000];
    check(&deep, "too deep");
}
