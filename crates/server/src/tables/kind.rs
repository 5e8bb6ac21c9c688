//! The kinds of values that fields take: types, and the messages about others.

use frond_doc::{ElementType, Value};
use frond_query::Code;

use super::field::Field;

/// The kind of values that a field takes. Null and undefined count as an absent field, but where a
/// field's [`MismatchMessage`] says otherwise.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Every value; its reader has a word of its own for what doesn't fit.
    Any,
    /// Values of these types, in the order in which MongoDB names them.
    Of(&'static [ElementType]),
    /// Numbers without a fraction.
    Whole,
    /// Numbers from 0 to 1.
    Share,
    /// Sixteen bytes that are marked as a UUID.
    Uuid,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A document of these fields.
    Part(&'static [Field]),
    /// An array of documents of these fields.
    Each(&'static [Field]),
    /// An array of values of this type.
    EachOf(ElementType),
    /// An array of documents, whose first field says which fields they have.
    EachKind(&'static [(&'static str, &'static [Field])]),
}

/// MongoDB's message about a value of another type, where it isn't the usual sentence.
pub struct MismatchMessage {
    /// The code.
    pub code: Code,
    /// The message, of the field's name and the name of the type that was found.
    pub message: fn(&str, &str) -> String,
    /// Whether null is refused like others, instead of being an absent field.
    pub refuses_null: bool,
}

const BOOLEAN: &[ElementType] = &[
    ElementType::Boolean,
    ElementType::Int64,
    ElementType::Int32,
    ElementType::Decimal128,
    ElementType::Double,
];
const NUMBER: &[ElementType] =
    &[ElementType::Int64, ElementType::Int32, ElementType::Decimal128, ElementType::Double];

/// `true` or `false`.
pub const BOOL: Kind = Kind::Of(&[ElementType::Boolean]);
/// A boolean, or a number of any type.
pub const FLAG: Kind = Kind::Of(BOOLEAN);
/// A number of any type, whose fraction is cut off.
pub const NUMERIC: Kind = Kind::Of(NUMBER);
/// An integer of 32 bits.
pub const INT: Kind = Kind::Of(&[ElementType::Int32]);
/// An integer of 64 bits.
pub const LONG: Kind = Kind::Of(&[ElementType::Int64]);
/// A document.
pub const OBJECT: Kind = Kind::Of(&[ElementType::Document]);
/// An array.
pub const ARRAY: Kind = Kind::Of(&[ElementType::Array]);
/// A string.
pub const TEXT: Kind = Kind::Of(&[ElementType::String]);
/// Bytes.
pub const BYTES: Kind = Kind::Of(&[ElementType::Binary]);
/// A date.
pub const DATE: Kind = Kind::Of(&[ElementType::DateTime]);
/// A moment of the cluster's clock.
pub const MOMENT: Kind = Kind::Of(&[ElementType::Timestamp]);
/// A string or a document.
pub const TEXT_OR_OBJECT: Kind = Kind::Of(&[ElementType::String, ElementType::Document]);

/// The message for `hint`.
pub const HINT: &MismatchMessage = &MismatchMessage {
    code: Code::FailedToParse,
    message: |_, _| "Hint must be a string or an object".to_owned(),
    refuses_null: true,
};
/// The message for an update.
pub const UPDATE: &MismatchMessage = &MismatchMessage {
    code: Code::FailedToParse,
    message: |_, _| "Update argument must be either an object or an array".to_owned(),
    refuses_null: true,
};
/// The message for documents of a `find`, with the space that MongoDB forgets.
pub const EXPECTED_OBJECT: &MismatchMessage = &MismatchMessage {
    code: Code::TypeMismatch,
    message: |name, _| format!("Expected field {name}to be of type object"),
    refuses_null: true,
};
/// The message for booleans that take no numbers.
pub const EXPECTED_BOOL: &MismatchMessage = &MismatchMessage {
    code: Code::TypeMismatch,
    message: |name, found| format!("Field '{name}' should be a boolean value, but found: {found}"),
    refuses_null: true,
};
/// The message for `aggregate.pipeline`.
pub const PIPELINE: &MismatchMessage = &MismatchMessage {
    code: Code::TypeMismatch,
    message: |_, _| "A pipeline must be an array of objects".to_owned(),
    refuses_null: true,
};
/// The message for `aggregate.cursor`.
pub const CURSOR: &MismatchMessage = &MismatchMessage {
    code: Code::TypeMismatch,
    message: |_, _| "cursor field must be missing or an object".to_owned(),
    refuses_null: true,
};
/// The message for `count.limit`.
pub const LIMIT: &MismatchMessage = &MismatchMessage {
    code: Code::BadValue,
    message: |name, _| format!("{name} value is not a valid number"),
    refuses_null: true,
};

impl Kind {
    /// Whether a value is of one of its types; what a document or an array holds is another
    /// question.
    pub fn has(&self, value: Value<'_>) -> bool {
        match self {
            Kind::Any => true,
            Kind::Of(types) => types.contains(&value.element_type()),
            Kind::Whole | Kind::Share => value.is_number(),
            Kind::Uuid => matches!(
                value,
                Value::Binary(binary) if binary.subtype == 4 && binary.bytes.len() == 16
            ),
            Kind::Word(_) => matches!(value, Value::String(_)),
            Kind::Part(_) => matches!(value, Value::Document(_)),
            Kind::Each(_) | Kind::EachOf(_) | Kind::EachKind(_) => {
                matches!(value, Value::Array(_))
            }
        }
    }

    /// The types that it takes, as MongoDB's messages name them: `type 'object'`.
    pub fn expected(&self) -> String {
        let of = |types: &[ElementType]| match types {
            [one] => format!("type '{}'", one.alias()),
            several => {
                let names: Vec<&str> = several.iter().map(|one| one.alias()).collect();
                format!("types '[{}]'", names.join(", "))
            }
        };
        match self {
            Kind::Any => "any type".to_owned(),
            Kind::Of(types) => of(types),
            Kind::Whole | Kind::Share => of(NUMBER),
            Kind::Uuid => "type 'UUID'".to_owned(),
            Kind::Word(_) => of(&[ElementType::String]),
            Kind::Part(_) => of(&[ElementType::Document]),
            Kind::Each(_) | Kind::EachOf(_) | Kind::EachKind(_) => of(&[ElementType::Array]),
        }
    }

    /// Its name in COMPATIBILITY.md.
    pub fn short(&self) -> String {
        match self {
            Kind::Any => String::new(),
            Kind::Of(types) if *types == BOOLEAN => "bool or number".to_owned(),
            Kind::Of(types) if *types == NUMBER => "number".to_owned(),
            Kind::Of(types) => types.iter().map(|one| one.alias()).collect::<Vec<_>>().join(" or "),
            Kind::Whole => "whole number".to_owned(),
            Kind::Share => "number from 0 to 1".to_owned(),
            Kind::Uuid => "UUID".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(" ")),
            Kind::Part(_) => "object".to_owned(),
            Kind::Each(_) | Kind::EachKind(_) => "objects".to_owned(),
            Kind::EachOf(one) => format!("array of {}", one.alias()),
        }
    }

    /// The fields of the document, or of each document, that it takes.
    pub fn fields(&self) -> &'static [Field] {
        match self {
            Kind::Part(fields) | Kind::Each(fields) => fields,
            _ => &[],
        }
    }
}
