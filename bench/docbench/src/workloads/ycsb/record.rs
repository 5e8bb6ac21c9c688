//! Records whose every value can be checked by itself.
//!
//! A value is 100 letters: `record.field.version.` and letters that follow from these three.

use bson::{Bson, Document};

use crate::random::{Random, fnv64};
use crate::target::{Encoded, Failure, Target};

/// Fields of a record.
pub const FIELDS: u64 = 10;
const VALUE_BYTES: usize = 100;

/// The key of a record, as YCSB makes it: numbers are hashed, so that neighbours aren't.
pub fn key(number: u64) -> Bson {
    Bson::String(format!("user{:020}", fnv64(number)))
}

/// The name of a field.
pub fn field(position: u64) -> String {
    format!("field{position}")
}

/// A value.
pub fn value(number: u64, position: u64, version: u64) -> String {
    let mut text = format!("{number}.{position}.{version}.");
    let mut random = Random::of(number, &[position, version]);
    let rest = random.letters(VALUE_BYTES - text.len());
    text.push_str(&rest);
    text
}

/// A new record.
pub fn encoded(target: &dyn Target, number: u64) -> Result<Encoded, Failure> {
    let id = key(number);
    let mut document = Document::new();
    document.insert("_id", id.clone());
    for position in 0..FIELDS {
        document.insert(field(position), value(number, position, 0));
    }
    Ok(Encoded { id, bytes: target.encode(&document)? })
}

/// Checks a record that was read.
pub fn check(document: &Document, number: u64) -> Result<(), Failure> {
    let wrong = |what: String| Err(Failure::Wrong(format!("record {number}: {what}")));
    if document.get("_id") != Some(&key(number)) {
        return wrong(format!("its _id is {:?}", document.get("_id")));
    }
    if document.len() as u64 != FIELDS + 1 {
        return wrong(format!("it has {} fields", document.len()));
    }
    for position in 0..FIELDS {
        let text = document.get_str(field(position)).unwrap_or_default();
        let version = text.split('.').nth(2).and_then(|part| part.parse().ok());
        let right = version.map(|version| value(number, position, version));
        if right.as_deref() != Some(text) {
            return wrong(format!("field {position} is {text:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_letter_is_found() {
        let mut document = Document::new();
        document.insert("_id", key(7));
        for position in 0..FIELDS {
            document.insert(field(position), value(7, position, position));
        }
        assert!(check(&document, 7).is_ok());
        assert!(check(&document, 8).is_err());
        let mut text = value(7, 3, 3);
        text.replace_range(99..100, if text.ends_with('a') { "b" } else { "a" });
        document.insert(field(3), text);
        assert!(matches!(check(&document, 7), Err(Failure::Wrong(_))));
    }
}
