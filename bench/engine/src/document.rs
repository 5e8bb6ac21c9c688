//! The documents of TokuMX's insertion benchmark: URI, name, origin, creation.
//!
//! About 230 bytes in BSON's shape. Five trees: 0 by `_id`, which holds the document; 1 by URI, 2
//! by name, 3 by origin, each with the `_id` behind the value in the key and nothing else; 4 by
//! creation, clustered: it holds the document too. `_id` ascends, all other values are random.

use bytes::{BufMut, Bytes, BytesMut};

use crate::random::Random;
use crate::target::Put;

/// The number of trees.
pub const TREE_COUNT: usize = 5;
/// The tree by `_id`.
pub const PRIMARY: usize = 0;
/// The tree that is clustered by creation.
pub const CLUSTERED: usize = 4;

/// Creation is a number of 42 bits, as milliseconds since 1970 are.
const CREATION_SHIFT: u32 = 22;
const TAG_STRING: u8 = 2;
const TAG_DATE: u8 = 9;
const TAG_INTEGER: u8 = 18;
const DOMAINS: [&str; 4] = ["example.com", "example.org", "example.net", "test.example"];
const PARTS: [&str; 6] = ["articles", "images", "downloads", "people", "search", "archive"];

/// Appends the five entries of the document called `number`.
pub fn puts(number: u64, random: &mut Random, out: &mut Vec<Put>) {
    let mut text = Vec::with_capacity(160);
    text.extend_from_slice(b"http://www.");
    random.letters(8, &mut text);
    text.push(b'.');
    text.extend_from_slice(DOMAINS[random.below(DOMAINS.len() as u64) as usize].as_bytes());
    text.push(b'/');
    text.extend_from_slice(PARTS[random.below(PARTS.len() as u64) as usize].as_bytes());
    text.push(b'/');
    random.letters(24, &mut text);
    text.extend_from_slice(b".html");
    let uri_end = text.len();
    random.letters(22, &mut text);
    let name_end = text.len();
    random.letters(16, &mut text);
    text.extend_from_slice(b", Unknown");
    let (uri, name, origin) = (&text[..uri_end], &text[uri_end..name_end], &text[name_end..]);
    let creation = random.next() >> CREATION_SHIFT;
    let document = document(number, uri, name, origin, creation);
    let key = |value: &[u8]| {
        let mut key = BytesMut::with_capacity(value.len() + 9);
        key.put_slice(value);
        key.put_u8(0);
        key.put_u64(number);
        key.freeze()
    };
    let id = Bytes::copy_from_slice(&number.to_be_bytes());
    out.push(Put { tree: PRIMARY, key: id, value: document.clone() });
    for (tree, value) in [(1, uri), (2, name), (3, origin)] {
        out.push(Put { tree, key: key(value), value: Bytes::new() });
    }
    out.push(Put { tree: CLUSTERED, key: key(&creation.to_be_bytes()), value: document });
}

/// A random place in the lower half of the clustered index, so that enough lies behind it.
pub fn clustered_key(random: &mut Random) -> [u8; 8] {
    (random.next() >> (CREATION_SHIFT + 1)).to_be_bytes()
}

fn document(number: u64, uri: &[u8], name: &[u8], origin: &[u8], creation: u64) -> Bytes {
    let mut out = BytesMut::with_capacity(300);
    out.put_u32_le(0);
    field(&mut out, TAG_INTEGER, b"_id");
    out.put_u64_le(number);
    for (title, value) in [(&b"URI"[..], uri), (b"name", name), (b"origin", origin)] {
        field(&mut out, TAG_STRING, title);
        out.put_u32_le(value.len() as u32 + 1);
        out.put_slice(value);
        out.put_u8(0);
    }
    field(&mut out, TAG_DATE, b"creation");
    out.put_u64_le(creation);
    for (title, value) in [(&b"language"[..], &b"en"[..]), (b"type", b"text/html; charset=utf-8")] {
        field(&mut out, TAG_STRING, title);
        out.put_u32_le(value.len() as u32 + 1);
        out.put_slice(value);
        out.put_u8(0);
    }
    out.put_u8(0);
    let bytes = out.len() as u32;
    out[..4].copy_from_slice(&bytes.to_le_bytes());
    out.freeze()
}

fn field(out: &mut BytesMut, tag: u8, title: &[u8]) {
    out.put_u8(tag);
    out.put_slice(title);
    out.put_u8(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_the_size_that_is_said() {
        let (mut random, mut puts_made) = (Random::new(1), Vec::new());
        puts(7, &mut random, &mut puts_made);
        assert_eq!(puts_made.len(), TREE_COUNT);
        assert!((200..=250).contains(&puts_made[0].value.len()), "{}", puts_made[0].value.len());
        assert_eq!(puts_made[0].value, puts_made[CLUSTERED].value);
    }
}
