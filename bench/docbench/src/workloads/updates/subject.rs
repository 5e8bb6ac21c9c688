//! The documents that are updated, and what an update makes of a plain value.

use std::fmt;

use bson::{Bson, Document, doc};

use crate::query::Change;
use crate::random::Random;
use crate::target::Failure;

/// The array that is pushed to.
pub const ARRAY: &str = "items";
/// Letters of a value.
pub const VALUE_LETTERS: usize = 40;
/// The approximate size of a field or an element: name and value.
const FIELD_BYTES: u64 = 60;
const SEED: u64 = 7;

/// A kind of document.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// So many fields of text.
    Fields(u64),
    /// An array of so many elements.
    Array {
        /// The number of elements.
        elements: u64,
        /// Whether they are objects.
        is_object: bool,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Fields(fields) => write!(formatter, "a document of {fields} fields"),
            Subject::Array { elements, .. } => write!(formatter, "an array of {elements} elements"),
        }
    }
}

impl Subject {
    /// Makes one with so many fields.
    pub fn fields(fields: u64) -> Subject {
        Subject::Fields(fields)
    }

    /// Fields that are about so large.
    pub fn bytes(bytes: u64) -> Subject {
        Subject::Fields(bytes / FIELD_BYTES)
    }

    /// An array that is about so large.
    pub fn array(bytes: u64, is_object: bool) -> Subject {
        let element = if is_object { FIELD_BYTES + 30 } else { FIELD_BYTES };
        Subject::Array { elements: bytes / element, is_object }
    }

    /// About how many bytes it has.
    pub fn bytes_about(self) -> u64 {
        match self {
            Subject::Fields(count) | Subject::Array { elements: count, .. } => count * FIELD_BYTES,
        }
    }

    /// The document.
    pub fn document(self, id: i64) -> Document {
        let mut random = Random::new(SEED);
        let mut document = doc! { "_id": id };
        match self {
            Subject::Fields(fields) => {
                for position in 0..fields {
                    document.insert(name(position), random.letters(VALUE_LETTERS));
                }
            }
            Subject::Array { elements, is_object } => {
                let elements = (0..elements).map(|position| {
                    let value = Bson::String(random.letters(VALUE_LETTERS));
                    element(is_object, position as i64, value)
                });
                document.insert(ARRAY, elements.collect::<Vec<_>>());
            }
        }
        document
    }

    /// The field that is `position`th of `count` to be changed: evenly apart, the only one in the
    /// middle.
    pub fn path(self, position: u64, count: u64) -> String {
        let fields = match self {
            Subject::Fields(fields) => fields,
            Subject::Array { .. } => 1,
        };
        name(fields * (2 * position + 1) / (2 * count))
    }
}

fn name(position: u64) -> String {
    format!("field_{position:07}")
}

/// An element of the array: no other is equal to it.
pub fn element(is_object: bool, number: i64, value: Bson) -> Bson {
    match is_object {
        false => value,
        true => Bson::Document(doc! { "number": number, "name": value, "done": false }),
    }
}

/// Returns how long the array is.
pub fn array_length(document: &Document) -> u64 {
    document.get_array(ARRAY).map_or(0, |array| array.len() as u64)
}

/// The element at a position of the array.
pub fn array_element(document: &Document, position: u64) -> Bson {
    let array = document.get_array(ARRAY).ok();
    array.and_then(|array| array.get(position as usize).cloned()).unwrap_or(Bson::Null)
}

/// Makes the change in a plain value: outermost fields, and places in outermost arrays.
pub fn apply(document: &mut Document, change: &Change) -> Result<(), Failure> {
    let missing = || Failure::Other("the change names no such place".into());
    match change {
        Change::Set(path, value) => {
            document.insert(path, value.clone());
        }
        Change::Add(path, number) => {
            let before = document.get_i64(path).map_err(|_| missing())?;
            document.insert(path, before + number);
        }
        Change::InsertAt { path, position, value } => {
            let array = document.get_array_mut(path).map_err(|_| missing())?;
            array.insert((*position as usize).min(array.len()), value.clone());
        }
        Change::RemoveAt { path, position, .. } => {
            let array = document.get_array_mut(path).map_err(|_| missing())?;
            if array.len() as u64 <= *position {
                return Err(missing());
            }
            array.remove(*position as usize);
        }
    }
    Ok(())
}

/// Whether two documents are equal, whatever the order of names inside and the width of integers.
pub fn same(one: &Document, other: &Document) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|(name, value)| other.get(name).is_some_and(|other| same_value(value, other)))
}

fn same_value(one: &Bson, other: &Bson) -> bool {
    match (one, other) {
        (Bson::Document(one), Bson::Document(other)) => same(one, other),
        (Bson::Array(one), Bson::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same_value(one, other))
        }
        (Bson::Int32(one), Bson::Int64(other)) | (Bson::Int64(other), Bson::Int32(one)) => {
            i64::from(*one) == *other
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_about_as_large_as_asked_for() {
        for bytes in [10_000, 1_000_000] {
            for subject in
                [Subject::bytes(bytes), Subject::array(bytes, false), Subject::array(bytes, true)]
            {
                let size = subject.document(1).to_vec().expect("it can be encoded").len() as u64;
                assert!(bytes * 7 / 10 <= size && size <= bytes * 13 / 10, "{subject}: {size}");
            }
        }
    }

    #[test]
    fn fields_are_evenly_apart() {
        assert_eq!(Subject::fields(100).path(0, 1), "field_0000050");
        let paths: Vec<String> = (0..5).map(|at| Subject::fields(100).path(at, 5)).collect();
        assert_eq!(paths.first().map(String::as_str), Some("field_0000010"));
        assert_eq!(paths.last().map(String::as_str), Some("field_0000090"));
    }

    #[test]
    fn changes_of_a_plain_value() {
        let mut document = doc! { "_id": 1_i64, "items": ["a", "b"], "n": 1_i64 };
        let insert = |position, value: &str| Change::InsertAt {
            path: ARRAY.into(),
            position,
            value: value.into(),
        };
        for change in [
            insert(1, "x"),
            insert(3, "z"),
            Change::RemoveAt { path: ARRAY.into(), position: 0, value: "a".into() },
            Change::Add("n".into(), 4),
            Change::Set("m".into(), true.into()),
        ] {
            apply(&mut document, &change).expect("the places are there");
        }
        let expected = doc! { "_id": 1, "items": ["x", "b", "z"], "m": true, "n": 5 };
        assert!(same(&document, &expected), "{document}");
        let beyond = Change::RemoveAt { path: ARRAY.into(), position: 9, value: Bson::Null };
        assert!(apply(&mut document, &beyond).is_err());
    }
}
