//! Compares strings: by their bytes, or by the rules of a language.
//!
//! The rules are the Unicode Collation Algorithm with CLDR's tailorings, by ICU4X, whose data is
//! built in. Reading order: `locale` (the locales that MongoDB takes), `parse` (from BSON, with
//! MongoDB's refusals), `collator` (ICU4X set up as the specification says), then this file:
//! comparing values, and the bytes by which they are sorted, grouped and indexed.
//!
//! *Invariants*
//! 1. Only strings (and symbols) compare by the rules, wherever in a value they stand; names of
//!    fields, patterns and code don't.
//! 2. `comparable` gives a value whose order by bytes is the value's order by the rules, and that
//!    equals another's exactly where the rules call the two equal. So whatever sorts, groups or
//!    indexes by keys needs to know no more of a collation than that.
//! 3. A comparable value is never shown: it can't be turned back.
//!
//! *Surprise*: ICU4X always compares as if strings were normalised, which MongoDB does with
//! `normalization: true` only; it shows in strings with several accents on one letter in an order
//! that is not canonical.

mod collator;
mod locale;
mod parse;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf, key, order};

/// The version of the sort keys that are stored in indexes: another version of ICU4X or of its data
/// may make other keys, so that an index of another generation must be built again.
pub const DATA_VERSION: &str = "icu4x-2.4";

/// A collation; the default is the simple one. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Collation(Option<Arc<Rules>>);

struct Rules {
    /// The specification with every option, in MongoDB's order.
    specification: DocumentBuf,
    collator: icu_collator::Collator,
}

impl fmt::Debug for Collation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => formatter.write_str("simple"),
            Some(rules) => fmt::Debug::fmt(&rules.specification, formatter),
        }
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(left), Some(right)) => {
                Arc::ptr_eq(left, right) || left.specification == right.specification
            }
            _ => false,
        }
    }
}

impl Eq for Collation {}

impl Collation {
    /// Strings compare by their bytes.
    pub const SIMPLE: Collation = Collation(None);

    /// Parses `{locale: "fr", strength: 2, ...}`.
    ///
    /// # Errors
    /// MongoDB's codes: a missing locale (40414), unknown fields (40415), values of the wrong type
    /// (14), values and locales that don't exist and options that contradict each other (2),
    /// another version (161).
    pub fn parse(specification: Document<'_>) -> Result<Collation, crate::QueryError> {
        let Some(specification) = parse::specification(specification)? else {
            return Ok(Collation::SIMPLE);
        };
        let collator = collator::build(specification.view())?;
        Ok(Collation(Some(Arc::new(Rules { specification, collator }))))
    }

    /// Whether strings compare by their bytes.
    pub fn is_simple(&self) -> bool {
        self.0.is_none()
    }

    /// The specification with every option, as `listIndexes` shows it; `None` of the simple one.
    pub fn specification(&self) -> Option<Document<'_>> {
        self.0.as_ref().map(|rules| rules.specification.view())
    }

    /// Compares two values, in the order of their types first.
    pub fn compare(&self, left: Value<'_>, right: Value<'_>) -> Ordering {
        match &self.0 {
            None => order::compare(left, right),
            Some(rules) => rules.compare(left, right),
        }
    }

    /// Whether two values are equal.
    pub fn equal(&self, left: Value<'_>, right: Value<'_>) -> bool {
        self.compare(left, right).is_eq()
    }

    /// The bytes that order values, and are the same for equal ones.
    pub fn key_of(&self, value: Value<'_>) -> Bytes {
        key::of_value(self.comparable(value).as_value())
    }

    /// Appends [`key_of`](Self::key_of)'s bytes, inverted where `descending`.
    pub fn append_key(&self, key: &mut Vec<u8>, value: Value<'_>, descending: bool) {
        key::append(key, self.comparable(value).as_value(), descending);
    }

    /// A value whose order by bytes is the order of `value` by the collation.
    pub fn comparable<'v>(&self, value: Value<'v>) -> Comparable<'v> {
        match &self.0 {
            Some(rules) if holds_string(value) => Comparable::Made(rules.comparable(value)),
            _ => Comparable::Same(value),
        }
    }
}

/// Whether the order of `value` depends on the collation.
pub(crate) fn holds_string(value: Value<'_>) -> bool {
    match value {
        Value::String(_) | Value::Symbol(_) => true,
        // Walking them costs as much as copying them.
        Value::Document(document) => !document.is_empty(),
        Value::Array(array) => !array.is_empty(),
        _ => false,
    }
}

/// The result of [`Collation::comparable`].
#[derive(Debug)]
pub enum Comparable<'v> {
    /// The value itself.
    Same(Value<'v>),
    /// Its strings replaced.
    Made(ValueBuf),
}

impl Comparable<'_> {
    /// The value.
    pub fn as_value(&self) -> Value<'_> {
        match self {
            Comparable::Same(value) => *value,
            Comparable::Made(value) => value.as_value(),
        }
    }
}

impl Rules {
    /// Recursion follows the values' nesting, which is bounded.
    fn compare(&self, left: Value<'_>, right: Value<'_>) -> Ordering {
        match (left, right) {
            (
                Value::String(left) | Value::Symbol(left),
                Value::String(right) | Value::Symbol(right),
            ) => self.collator.as_borrowed().compare(left, right),
            (Value::Document(left), Value::Document(right)) => self.compare_documents(left, right),
            (Value::Array(left), Value::Array(right)) => self.compare_arrays(left, right),
            _ => order::compare(left, right),
        }
    }

    fn compare_documents(&self, left: Document<'_>, right: Document<'_>) -> Ordering {
        let (mut left, mut right) = (left.iter(), right.iter());
        loop {
            let ((left_name, left), (right_name, right)) = match (left.next(), right.next()) {
                (Some(left), Some(right)) => (left, right),
                (left, right) => return left.is_some().cmp(&right.is_some()),
            };
            let kind = |value: Value<'_>| order::type_order(value.element_type());
            let ordering = kind(left)
                .cmp(&kind(right))
                .then_with(|| left_name.cmp(right_name))
                .then_with(|| self.compare(left, right));
            if ordering.is_ne() {
                return ordering;
            }
        }
    }

    fn compare_arrays(&self, left: Array<'_>, right: Array<'_>) -> Ordering {
        let (mut left, mut right) = (left.iter(), right.iter());
        loop {
            let (left, right) = match (left.next(), right.next()) {
                (Some(left), Some(right)) => (left, right),
                (left, right) => return left.is_some().cmp(&right.is_some()),
            };
            let ordering = self.compare(left, right);
            if ordering.is_ne() {
                return ordering;
            }
        }
    }

    fn comparable(&self, value: Value<'_>) -> ValueBuf {
        let mut builder = DocumentBuilder::new();
        self.append(&mut builder, "", value);
        ValueBuf::from_only_field(builder.build())
    }

    fn append(&self, builder: &mut DocumentBuilder, name: &str, value: Value<'_>) {
        match value {
            Value::String(text) | Value::Symbol(text) => {
                builder.append(name, Value::String(&self.sort_key(text)));
            }
            Value::Document(document) => {
                builder.begin_document(name);
                for (name, value) in document.iter() {
                    self.append(builder, name, value);
                }
                builder.end();
            }
            Value::Array(array) => {
                builder.begin_array(name);
                for (name, value) in array.as_document().iter() {
                    self.append(builder, name, value);
                }
                builder.end();
            }
            _ => {
                builder.append(name, value);
            }
        }
    }

    /// The string's sort key. Its bytes are taken for the code points 0 to 255, so that they are a
    /// string again; UTF-8 keeps the order of code points.
    fn sort_key(&self, text: &str) -> String {
        let mut key = Vec::with_capacity(text.len() + 8);
        match self.collator.as_borrowed().write_sort_key_to(text, &mut key) {
            Ok(()) => {}
        }
        match String::from_utf8(key) {
            Ok(ascii) if ascii.is_ascii() => ascii,
            Ok(other) => latin(other.as_bytes()).into_owned(),
            Err(error) => latin(error.as_bytes()).into_owned(),
        }
    }
}

fn latin(bytes: &[u8]) -> Cow<'_, str> {
    bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into()
}

#[cfg(test)]
mod tests;
