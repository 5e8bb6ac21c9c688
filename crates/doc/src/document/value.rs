//! One value: borrowed from a document's bytes, or owned.

use std::fmt;

use super::{Array, Document, DocumentBuf};
use crate::element_type::ElementType;
use crate::reference::Reference;

/// Twelve bytes: seconds, a random part, a counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 12]);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

/// The sixteen bytes of an IEEE 754-2008 decimal (binary integer significand), as BSON has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decimal128(pub [u8; 16]);

/// MongoDB's internal time: seconds in the high 32 bits, a counter in the low ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Timestamp(pub u64);

/// Bytes and their subtype. For the old subtype 2 the inner length is part of `bytes`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Binary<'a> {
    /// The kind of data, as BSON numbers it.
    pub subtype: u8,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A pattern and its options, in alphabetical order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Regex<'a> {
    /// The pattern.
    pub pattern: &'a str,
    /// The options.
    pub options: &'a str,
}

/// A value that borrows from the bytes of a document. Two values of different number types are
/// never `==` here: that is [`crate::order`]'s business.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Value<'a> {
    Double(f64),
    String(&'a str),
    Document(Document<'a>),
    Array(Array<'a>),
    Binary(Binary<'a>),
    Undefined,
    ObjectId(ObjectId),
    Boolean(bool),
    /// Milliseconds since 1970, UTC.
    DateTime(i64),
    Null,
    Regex(Regex<'a>),
    DbPointer {
        namespace: &'a str,
        id: ObjectId,
    },
    JavaScript(&'a str),
    Symbol(&'a str),
    JavaScriptWithScope {
        code: &'a str,
        scope: Document<'a>,
    },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
    /// One that lies in the store.
    Reference(Reference<'a>),
}

impl<'a> Value<'a> {
    /// The value's type; of a reference that of what it stands for.
    pub fn element_type(&self) -> ElementType {
        match self {
            Value::Double(_) => ElementType::Double,
            Value::String(_) => ElementType::String,
            Value::Document(_) => ElementType::Document,
            Value::Array(_) => ElementType::Array,
            Value::Binary(_) => ElementType::Binary,
            Value::Undefined => ElementType::Undefined,
            Value::ObjectId(_) => ElementType::ObjectId,
            Value::Boolean(_) => ElementType::Boolean,
            Value::DateTime(_) => ElementType::DateTime,
            Value::Null => ElementType::Null,
            Value::Regex(_) => ElementType::Regex,
            Value::DbPointer { .. } => ElementType::DbPointer,
            Value::JavaScript(_) => ElementType::JavaScript,
            Value::Symbol(_) => ElementType::Symbol,
            Value::JavaScriptWithScope { .. } => ElementType::JavaScriptWithScope,
            Value::Int32(_) => ElementType::Int32,
            Value::Timestamp(_) => ElementType::Timestamp,
            Value::Int64(_) => ElementType::Int64,
            Value::Decimal128(_) => ElementType::Decimal128,
            Value::MinKey => ElementType::MinKey,
            Value::MaxKey => ElementType::MaxKey,
            Value::Reference(reference) => reference.kind(),
        }
    }

    /// The type byte of the value's element.
    pub(crate) fn type_byte(&self) -> u8 {
        match self {
            Value::Reference(_) => ElementType::Reference as u8,
            other => other.element_type() as u8,
        }
    }

    /// Whether the value is of one of the four number types.
    pub fn is_number(&self) -> bool {
        use Value::*;
        matches!(self, Double(_) | Int32(_) | Int64(_) | Decimal128(_))
    }

    /// The document, if it is one.
    pub fn as_document(&self) -> Option<Document<'a>> {
        if let Value::Document(document) = self { Some(*document) } else { None }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<Array<'a>> {
        if let Value::Array(array) = self { Some(*array) } else { None }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&'a str> {
        if let Value::String(string) = self { Some(string) } else { None }
    }

    /// The number as an i64 if it is an integer, or a double that is a whole number in range.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Int32(number) => Some(i64::from(*number)),
            Value::Int64(number) => Some(*number),
            Value::Double(number)
                if number.fract() == 0.0 && (-9.2e18..9.2e18).contains(number) =>
            {
                Some(*number as i64)
            }
            _ => None,
        }
    }

    /// Returns how MongoDB reads a value where it wants a boolean: false, zero, null and undefined
    /// are false, everything else is true.
    pub fn is_truthy(&self) -> bool {
        match self {
            Value::Boolean(boolean) => *boolean,
            Value::Int32(number) => *number != 0,
            Value::Int64(number) => *number != 0,
            Value::Double(number) => *number != 0.0,
            Value::Decimal128(number) => !number.is_zero(),
            Value::Null | Value::Undefined => false,
            _ => true,
        }
    }
}

impl Decimal128 {
    /// Whether the number is a zero, of either sign and any exponent.
    pub fn is_zero(&self) -> bool {
        let high = u64::from_le_bytes(self.0[8..].try_into().expect("eight bytes"));
        let low = u64::from_le_bytes(self.0[..8].try_into().expect("eight bytes"));
        let combination = (high >> 58) & 0x1f;
        if combination >= 0x1e {
            return false; // Infinity or NaN.
        }
        // A significand of the second form, or above 10^34 - 1, is not canonical: it counts as 0.
        if (high >> 61) & 0x3 == 0x3 {
            return true;
        }
        let significand = (u128::from(high & 0x1_ffff_ffff_ffff) << 64) | u128::from(low);
        significand == 0 || significand > 9_999_999_999_999_999_999_999_999_999_999_999
    }
}

/// A value of its own: one element of a document kept apart, so every type is kept exactly.
///
/// *Invariants*: the inner document has exactly one field, whose name is empty.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueBuf(DocumentBuf);

impl ValueBuf {
    /// Takes a document whose only field has an empty name.
    pub fn from_only_field(document: DocumentBuf) -> ValueBuf {
        debug_assert!(document.iter().map(|(name, _)| name).eq([""]));
        ValueBuf(document)
    }

    /// Returns how many bytes it takes, with what is around it.
    pub fn bytes(&self) -> usize {
        self.0.as_bytes().len()
    }

    /// Borrows the value.
    pub fn as_value(&self) -> Value<'_> {
        self.0.iter().next().expect("an owned value has exactly one field").1
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl<'a> From<$from> for Value<'a> {
            fn from(value: $from) -> Value<'a> {
                Value::$variant(value)
            }
        })*
    };
}

value_from! {
    f64 => Double, &'a str => String, Document<'a> => Document, Array<'a> => Array,
    bool => Boolean, i32 => Int32, i64 => Int64, ObjectId => ObjectId, Timestamp => Timestamp,
    Decimal128 => Decimal128, Binary<'a> => Binary, Regex<'a> => Regex,
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Value<'a> {
        Value::String(value)
    }
}

impl<'a> From<&'a DocumentBuf> for Value<'a> {
    fn from(value: &'a DocumentBuf) -> Value<'a> {
        Value::Document(value.view())
    }
}

impl<'a> From<&'a ValueBuf> for Value<'a> {
    fn from(value: &'a ValueBuf) -> Value<'a> {
        value.as_value()
    }
}
