//! Keys that are longer than a tree takes: cut, and ended by a hash.
//!
//! A key of more than [`KEY_BYTES_MAX`] bytes becomes its first [`CUT_PREFIX_BYTES`] and the BLAKE3
//! hash of all of it, in hexadecimal: [`KEY_BYTES_MAX`] bytes again.
//!
//! *Invariants*
//! 1. Equal keys are cut to equal bytes, and different ones to different bytes.
//! 2. Cut or not, keys order as they did where their first [`CUT_PREFIX_BYTES`] differ. Among those
//!    that share them the hash decides, so a caller that wants the values' order sorts these.
//! 3. No value ends within the hash: a cut key never reads as whole values. Values that are open
//!    where the key was cut end by a `00` (inverted: `ff`), which hexadecimal hasn't, or by a
//!    length that reaches beyond, since more than the hash's bytes were cut off.

use bytes::Bytes;
use frond_tree::format::KEY_BYTES_MAX;

use super::decode::skip;
use super::of_value;
use crate::document::value::Value;

/// The hash's digits.
const DIGITS: usize = 2 * blake3::OUT_LEN;
/// The length of the prefix that is left of a cut key.
pub const CUT_PREFIX_BYTES: usize = KEY_BYTES_MAX - DIGITS;

/// The key under which a tree has `key`: itself, unless it is too long.
pub fn cut(mut key: Vec<u8>) -> Bytes {
    if key.len() > KEY_BYTES_MAX {
        let hash = blake3::hash(&key).to_hex();
        key.truncate(CUT_PREFIX_BYTES);
        key.extend_from_slice(hash.as_bytes());
        key.shrink_to_fit();
    }
    key.into()
}

/// The key of an `_id` in its collection's tree.
pub fn of_id(id: Value<'_>) -> Bytes {
    let key = of_value(id);
    if key.len() > KEY_BYTES_MAX { cut(key.into()) } else { key }
}

/// Whether `key`, which is that of values so many of which descend, was cut.
pub fn is_cut(key: &[u8], descending: impl IntoIterator<Item = bool>) -> bool {
    if key.len() != KEY_BYTES_MAX {
        return false;
    }
    let mut rest = key;
    let are_whole = descending.into_iter().all(|descending| skip(&mut rest, descending).is_ok());
    !are_whole || !rest.is_empty()
}

/// Whether the key of an `_id` was cut, so that it doesn't determine the `_id`.
pub fn is_id_cut(id_key: &[u8]) -> bool {
    is_cut(id_key, [false])
}

/// Returns how many of the first bytes are the key of an `_id`, cut or not; `None` if they aren't
/// one.
pub fn id_bytes(bytes: &[u8]) -> Option<usize> {
    let most = &bytes[..bytes.len().min(KEY_BYTES_MAX)];
    let mut rest = most;
    match skip(&mut rest, false) {
        Ok(id) => Some(id.len()),
        Err(_) => (most.len() == KEY_BYTES_MAX).then_some(KEY_BYTES_MAX),
    }
}

/// Returns the part of `key` that cutting cannot have changed.
pub fn known(key: &[u8], is_cut: bool) -> &[u8] {
    if is_cut { &key[..CUT_PREFIX_BYTES.min(key.len())] } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::DocumentBuilder;
    use crate::document::value::{Binary, ObjectId};
    use crate::key;

    /// Keys of two values each, whose first one has so many bytes more or less of its own.
    fn keys(long: usize, descending: bool) -> Vec<Vec<u8>> {
        let text = "x".repeat(long);
        let mut array = DocumentBuilder::new();
        array.begin_array("a");
        for _ in 0..long / 13 {
            array.push(Value::ObjectId(ObjectId([7; 12])));
        }
        array.end();
        let array = array.build();
        let binary = Value::Binary(Binary { subtype: 0, bytes: text.as_bytes() });
        let first = [Value::String(&text), array.get("a").unwrap(), Value::from(&array), binary];
        let second =
            [Value::ObjectId(ObjectId([0x30; 12])), Value::Double(0.1), Value::String(&text)];
        let mut keys = Vec::new();
        for value in first {
            for behind in second {
                let mut key = Vec::new();
                key::append(&mut key, value, descending);
                key::append(&mut key, behind, descending);
                keys.push(key);
            }
        }
        keys
    }

    #[test]
    fn only_what_was_cut_reads_as_cut_wherever_the_cut_falls() {
        let mut found = [0, 0];
        let lengths = (8_000..8_250).chain([4_090, 4_096, 9_000, 20_000]);
        for (long, descending) in lengths.flat_map(|long| [(long, false), (long, true)]) {
            for whole in keys(long, descending) {
                let cut = cut(whole.clone());
                let is_longer = whole.len() > KEY_BYTES_MAX;
                assert!(cut.len() <= KEY_BYTES_MAX, "{long}");
                assert_eq!(is_longer, is_cut(&cut, [descending; 2]), "{long} {descending}");
                assert_eq!(is_longer, cut != whole, "{long}");
                found[usize::from(is_longer)] += 1;
            }
        }
        assert!(found.iter().all(|count| *count > 500), "{found:?}");
    }

    #[test]
    fn the_key_of_an_id_is_found_whatever_follows() {
        for long in [3, 8_189, 8_190, 8_191, 9_000] {
            let id_key = of_id(Value::String(&"x".repeat(long)));
            assert_eq!(is_id_cut(&id_key), long > 8_190, "{long}");
            for behind in [&b""[..], b"\0", b"30\0"] {
                assert_eq!(id_bytes(&[&id_key[..], behind].concat()), Some(id_key.len()), "{long}");
            }
        }
        assert_eq!(id_bytes(b"\x30ab"), None);
    }

    #[test]
    fn equal_keys_stay_equal_and_keys_that_differ_after_the_cut_differ() {
        let of = |end: &str| of_id(Value::String(&("x".repeat(9_000) + end)));
        assert_eq!(of("a"), of("a"));
        assert_ne!(of("a"), of("b"));
        assert_eq!(of("a")[..CUT_PREFIX_BYTES], of("b")[..CUT_PREFIX_BYTES]);
    }
}
