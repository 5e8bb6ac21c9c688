//! What an expression evaluates to: borrowed where a value lies in the document already, owned
//! where it was made, or missing.
//!
//! Scalars are never owned: a number fits into `Value` itself, so arithmetic allocates nothing.

use frond_doc::document::DEPTH_MAX;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf};

use super::failure;
use crate::code::Code;
use crate::error::QueryError;

/// The largest value that an expression may make. Larger than a stored document may be, since an
/// array may be made only to be counted; bounded, since a small expression can double a value many
/// times over.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// What each level of nesting costs at least: a length, a type, a name's end and a final zero.
const LEVEL_BYTES: usize = 7;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Evaluated<'a> {
    /// There is none: an absent field, `$$REMOVE`.
    Missing,
    /// A part of the document, of a variable or of the expression itself; or any scalar.
    Borrowed(Value<'a>),
    /// A value that was made.
    Owned(ValueBuf),
}

impl<'a> Evaluated<'a> {
    /// Null.
    pub(crate) const NULL: Evaluated<'static> = Evaluated::Borrowed(Value::Null);

    /// The value; `None` is "missing".
    pub(crate) fn value(&self) -> Option<Value<'_>> {
        match self {
            Evaluated::Missing => None,
            Evaluated::Borrowed(value) => Some(*value),
            Evaluated::Owned(value) => Some(value.as_value()),
        }
    }

    /// The value, null where it is missing.
    pub(crate) fn or_null(&self) -> Value<'_> {
        self.value().unwrap_or(Value::Null)
    }

    /// Whether missing, null or undefined: what most operators pass on as null.
    pub(crate) fn is_nullish(&self) -> bool {
        matches!(self.value(), None | Some(Value::Null | Value::Undefined))
    }

    /// Whether the value counts as true.
    pub(crate) fn is_truthy(&self) -> bool {
        self.value().is_some_and(|value| value.is_truthy())
    }

    /// The type's name, as error messages print it.
    pub(crate) fn type_name(&self) -> &'static str {
        self.value().map_or("missing", |value| value.element_type().alias())
    }

    /// The value as error messages print it.
    pub(crate) fn text(&self) -> String {
        self.value().map_or_else(|| "MISSING".to_owned(), crate::text::value)
    }

    /// The value of its own; `None` is "missing".
    pub(crate) fn into_buf(self) -> Option<ValueBuf> {
        match self {
            Evaluated::Missing => None,
            Evaluated::Borrowed(value) => Some(value.to_buf()),
            Evaluated::Owned(value) => Some(value),
        }
    }

    /// A copy that borrows nothing; scalars cost no allocation.
    pub(crate) fn detach(self) -> Evaluated<'static> {
        match self {
            Evaluated::Missing => Evaluated::Missing,
            Evaluated::Borrowed(value) => Evaluated::copy(value),
            Evaluated::Owned(value) => Evaluated::Owned(value),
        }
    }

    /// A value that borrows nothing from `value`.
    pub(crate) fn copy(value: Value<'_>) -> Evaluated<'static> {
        let scalar: Value<'static> = match value {
            Value::Double(number) => Value::Double(number),
            Value::Undefined => Value::Undefined,
            Value::ObjectId(id) => Value::ObjectId(id),
            Value::Boolean(boolean) => Value::Boolean(boolean),
            Value::DateTime(millis) => Value::DateTime(millis),
            Value::Null => Value::Null,
            Value::Int32(number) => Value::Int32(number),
            Value::Timestamp(timestamp) => Value::Timestamp(timestamp),
            Value::Int64(number) => Value::Int64(number),
            Value::Decimal128(number) => Value::Decimal128(number),
            Value::MinKey => Value::MinKey,
            Value::MaxKey => Value::MaxKey,
            other => return Evaluated::Owned(other.to_buf()),
        };
        Evaluated::Borrowed(scalar)
    }

    /// A part of this value, chosen by `choose`: borrowed if this value is.
    pub(crate) fn part(
        self,
        choose: impl for<'v> FnOnce(Value<'v>) -> Option<Value<'v>>,
    ) -> Evaluated<'a> {
        match self {
            Evaluated::Missing => Evaluated::Missing,
            Evaluated::Borrowed(value) => {
                choose(value).map_or(Evaluated::Missing, Evaluated::Borrowed)
            }
            Evaluated::Owned(value) => {
                choose(value.as_value()).map_or(Evaluated::Missing, Evaluated::copy)
            }
        }
    }

    /// A string that was made.
    ///
    /// # Errors
    /// `BSONObjectTooLarge`.
    pub(crate) fn string(text: String) -> Result<Evaluated<'static>, QueryError> {
        check_bytes(text.len())?;
        Ok(Evaluated::Owned(ValueBuf::from(Value::String(&text))))
    }

    /// A document that was made.
    pub(crate) fn document(document: DocumentBuf) -> Result<Evaluated<'static>, QueryError> {
        check_bytes(document.as_bytes().len())?;
        Ok(Evaluated::Owned(ValueBuf::from(document)))
    }
}

impl<'a, T: Into<Value<'a>>> From<T> for Evaluated<'a> {
    fn from(value: T) -> Evaluated<'a> {
        Evaluated::Borrowed(value.into())
    }
}

/// Refuses values that are too large.
pub(crate) fn check_bytes(bytes: usize) -> Result<(), QueryError> {
    if bytes <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let message = format!("an expression made a value of more than {VALUE_BYTES_MAX} bytes");
    Err(QueryError::new(Code::BSONObjectTooLarge, message))
}

/// Refuses values that are nested deeper than a document may be, which recursive readers of
/// documents rely on. `depth` is the value's own: 1 for a whole document, 2 for a field's value.
/// Costs a scan of large values only.
pub(crate) fn check_depth(value: Value<'_>, depth: usize) -> Result<(), QueryError> {
    let outermost = match value {
        Value::Document(document) => document,
        Value::Array(array) => array.as_document(),
        Value::JavaScriptWithScope { scope, .. } => scope,
        _ => return Ok(()),
    };
    // Documents still to be looked into, each with its depth: an explicit stack, because depth is
    // the very thing in doubt.
    let mut open = vec![(outermost, depth)];
    while let Some((document, depth)) = open.pop() {
        let levels_left = DEPTH_MAX.saturating_sub(depth);
        if document.as_bytes().len() < levels_left * LEVEL_BYTES {
            continue; // Too small to hold so many.
        }
        if depth > DEPTH_MAX {
            let message = format!("the value is nested deeper than {DEPTH_MAX} levels");
            return Err(QueryError::new(Code::Overflow, message));
        }
        for (_, value) in document.iter() {
            match value {
                Value::Document(inner) => open.push((inner, depth + 1)),
                Value::Array(inner) => open.push((inner.as_document(), depth + 1)),
                Value::JavaScriptWithScope { scope, .. } => open.push((scope, depth + 1)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Builds an array, bounded.
pub(crate) struct Elements(DocumentBuilder);

impl Elements {
    /// Begins an empty array.
    pub(crate) fn new() -> Elements {
        let mut builder = DocumentBuilder::new();
        builder.begin_array("");
        Elements(builder)
    }

    /// Appends an element.
    pub(crate) fn push(&mut self, value: Value<'_>) -> Result<(), QueryError> {
        self.0.push(value);
        check_bytes(self.0.bytes())
    }

    /// Appends an element, null where it is missing.
    pub(crate) fn push_evaluated(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        self.push(value.or_null())
    }

    /// Ends the array.
    pub(crate) fn finish(mut self) -> Evaluated<'static> {
        self.0.end();
        Evaluated::Owned(ValueBuf::from_only_field(self.0.build()))
    }

    /// Collects values into an array.
    pub(crate) fn collect<'v>(
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<Evaluated<'static>, QueryError> {
        let mut elements = Elements::new();
        for value in values {
            elements.push(value)?;
        }
        Ok(elements.finish())
    }
}

/// The elements of an array, or the error that `describe` makes of another type.
pub(crate) fn elements<'v>(
    value: &'v Evaluated<'_>,
    code: i32,
    describe: impl FnOnce(&'static str) -> String,
) -> Result<frond_doc::Array<'v>, QueryError> {
    match value.value() {
        Some(Value::Array(array)) => Ok(array),
        _ => Err(failure(code, describe(value.type_name()))),
    }
}
