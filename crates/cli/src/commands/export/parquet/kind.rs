//! Finds a column's type from all values that it is to hold.
//!
//! Kinds meet as in a lattice: from nothing by one type to JSON, which can hold any value. Numbers
//! of different types meet as doubles, where all of them are exact as such and types needn't be
//! kept.

use std::collections::HashMap;

use frond_doc::extended_json::Form;
use frond_doc::{Document, Value};

/// Names that a document may have in all documents together: where there are more they are data.
pub const NAMES_MAX: usize = 2000;
/// The depth to which documents and arrays become columns.
const DEPTH_MAX: usize = 24;
/// Integers up to this, and their opposites, are exact as doubles.
const EXACT_MAX: i64 = 1 << 53;
/// The subtype of a UUID.
const UUID: u8 = 4;

/// The type of a column.
#[derive(Debug)]
pub enum Kind {
    /// No value yet but nulls.
    Nothing,
    Boolean,
    Int32,
    /// `exact`: as doubles, too.
    Int64 {
        exact: bool,
    },
    Double,
    Date,
    Text,
    Bytes,
    Uuid,
    /// As text.
    ObjectId,
    /// As text.
    Decimal,
    Document(Names),
    Array(Box<Kind>),
    /// As the text of extended JSON.
    Json,
}

/// The fields of documents, in the order in which they were seen.
#[derive(Debug, Default)]
pub struct Names {
    pub all: Vec<(String, Kind)>,
    pub positions: HashMap<String, usize>,
}

/// The rules for turning values into types.
pub struct Typing {
    /// In the canonical form types are kept.
    pub form: Form,
}

impl Typing {
    /// Has a column of this kind hold `value`, too.
    pub fn note(&self, kind: &mut Kind, value: Value<'_>, depth: usize) {
        match (&mut *kind, value) {
            (_, Value::Null | Value::Undefined) | (Kind::Json, _) => {}
            (_, Value::Document(_) | Value::Array(_)) if DEPTH_MAX < depth => *kind = Kind::Json,
            (Kind::Nothing, Value::Document(_)) => {
                *kind = Kind::Document(Names::default());
                self.note(kind, value, depth);
            }
            (Kind::Nothing, Value::Array(_)) => {
                *kind = Kind::Array(Box::new(Kind::Nothing));
                self.note(kind, value, depth);
            }
            (Kind::Document(names), Value::Document(document)) => {
                if !self.note_document(names, document, depth) {
                    *kind = Kind::Json;
                }
            }
            (Kind::Array(inner), Value::Array(array)) => {
                array.iter().for_each(|element| self.note(inner, element, depth + 1));
            }
            (_, other) => {
                let previous = std::mem::replace(kind, Kind::Nothing);
                *kind = self.meet(previous, of_plain(other));
            }
        }
    }

    /// Whether the document's fields can be columns.
    fn note_document(&self, names: &mut Names, document: Document<'_>, depth: usize) -> bool {
        let mut has_field = vec![false; names.all.len()];
        for (name, value) in document.iter() {
            let position = names.position(name);
            has_field.resize(names.all.len(), false);
            if std::mem::replace(&mut has_field[position], true) || NAMES_MAX < names.all.len() {
                return false;
            }
            self.note(&mut names.all[position].1, value, depth + 1);
        }
        true
    }

    fn meet(&self, left: Kind, right: Kind) -> Kind {
        use Kind::{Double, Int32, Int64, Json, Nothing};
        let widens = self.form == Form::Relaxed;
        match (left, right) {
            (Nothing, other) | (other, Nothing) => other,
            (Int64 { exact: left }, Int64 { exact: right }) => Int64 { exact: left && right },
            (Int32, Int64 { exact }) | (Int64 { exact }, Int32) if widens => Int64 { exact },
            (Double, Int32 | Int64 { exact: true }) | (Int32 | Int64 { exact: true }, Double)
                if widens =>
            {
                Double
            }
            (Kind::Document(_) | Kind::Array(_), _) => Json,
            (left, right) if std::mem::discriminant(&left) == std::mem::discriminant(&right) => {
                left
            }
            _ => Json,
        }
    }
}

impl Names {
    /// Returns where a name is, at the end if it wasn't met before.
    fn position(&mut self, name: &str) -> usize {
        if let Some(position) = self.positions.get(name) {
            return *position;
        }
        let position = self.all.len();
        self.positions.insert(name.to_owned(), position);
        self.all.push((name.to_owned(), Kind::Nothing));
        position
    }
}

/// The kind of a value that is neither a document nor an array, and alone.
fn of_plain(value: Value<'_>) -> Kind {
    match value {
        Value::Boolean(_) => Kind::Boolean,
        Value::Int32(_) => Kind::Int32,
        Value::Int64(number) => Kind::Int64 { exact: (-EXACT_MAX..=EXACT_MAX).contains(&number) },
        Value::Double(_) => Kind::Double,
        Value::DateTime(_) => Kind::Date,
        Value::String(_) => Kind::Text,
        Value::Binary(binary) if binary.subtype == 0 => Kind::Bytes,
        Value::Binary(binary) if binary.subtype == UUID && binary.bytes.len() == 16 => Kind::Uuid,
        Value::ObjectId(_) => Kind::ObjectId,
        Value::Decimal128(_) => Kind::Decimal,
        _ => Kind::Json,
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json::parse;

    use super::*;

    /// The kind of the first field of these documents.
    fn of(form: Form, documents: &[&str]) -> String {
        let (typing, mut kind) = (Typing { form }, Kind::Nothing);
        for document in documents {
            let document = parse(&document.replace('\'', "\"")).expect("a document");
            typing.note(&mut kind, Value::Document(document.view()), 0);
        }
        let Kind::Document(names) = kind else { return format!("{kind:?}") };
        format!("{:?}", names.all[0].1)
    }

    #[test]
    fn numbers_meet_where_nothing_is_lost() {
        let relaxed = |documents: &[&str]| of(Form::Relaxed, documents);
        assert_eq!(relaxed(&["{'a': 1}", "{'a': null}", "{}", "{'a': 2}"]), "Int32");
        assert_eq!(relaxed(&["{'a': 1}", "{'a': 5000000000}"]), "Int64 { exact: true }");
        assert_eq!(relaxed(&["{'a': 5000000000}", "{'a': 0.5}", "{'a': 1}"]), "Double");
        let large = "{'a': 9007199254740993}";
        for order in [[large, "{'a': 0.5}"], ["{'a': 0.5}", large]] {
            assert_eq!(relaxed(&order), "Json");
        }
        assert_eq!(of(Form::Canonical, &["{'a': 1}", "{'a': 0.5}"]), "Json");
        assert_eq!(relaxed(&["{'a': 1}", "{'a': 'x'}", "{'a': 1}"]), "Json");
        assert_eq!(relaxed(&["{'a': {}}", "{'a': [1]}"]), "Json");
        assert_eq!(relaxed(&["{'a': {}}", "{'a': 1}"]), "Json");
        assert_eq!(relaxed(&["{'a': 1}", "{'a': {}}"]), "Json");
        assert_eq!(relaxed(&["{'a': []}", "{'a': [1, 2.5]}"]), "Array(Double)");
        assert_eq!(relaxed(&["{'a': 1, 'a': 1}"]), "Json");
    }
}
