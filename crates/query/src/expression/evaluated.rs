//! The value of an expression: borrowed where it lies in the document already, owned where it was
//! made, or missing.
//!
//! Scalars are never owned: a number fits into `Value` itself, so arithmetic allocates nothing.

use frond_doc::document::DEPTH_MAX;
use frond_doc::{DocumentBuilder, Value, ValueBuf};

use super::failure;
use crate::code::Code;
use crate::error::QueryError;
use crate::memory::{Charge, RequestMemory, bytes_of};
use crate::number::any_type::Number;

/// The largest value that an expression may make. Larger than a stored document may be, since an
/// array may be made only to be counted; bounded, since a small expression can double a value many
/// times over.
const VALUE_BYTES_MAX: usize = 64 << 20;

/// The least bytes of each level of nesting: a length, a type, a name's end and a final zero.
const LEVEL_BYTES: usize = 7;

/// A value that was made, and what it is charged with while it lives.
#[derive(Debug)]
pub(crate) struct Made {
    value: ValueBuf,
    charge: Charge,
}

impl Clone for Made {
    fn clone(&self) -> Made {
        Made { value: self.value.clone(), charge: Charge::uncounted() }
    }
}

impl Made {
    /// The value.
    pub(crate) fn as_value(&self) -> Value<'_> {
        self.value.as_value()
    }
}

/// The value of an expression. A copy of a value that was made shares its bytes, for which the
/// first is charged.
#[derive(Clone, Debug)]
pub(crate) enum Evaluated<'a> {
    /// There is none: an absent field, `$$REMOVE`.
    Missing,
    /// A part of the document, of a variable or of the expression itself; or any scalar.
    Borrowed(Value<'a>),
    /// A value that was made.
    Owned(Made),
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
            Evaluated::Owned(made) => Some(made.value),
        }
    }

    /// The same value, borrowed.
    pub(crate) fn borrow(&self) -> Evaluated<'_> {
        self.value().map_or(Evaluated::Missing, Evaluated::Borrowed)
    }

    /// About how many bytes it takes to read the value.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Evaluated::Missing => 0,
            Evaluated::Borrowed(value) => bytes_of(*value),
            Evaluated::Owned(made) => bytes_of(made.as_value()),
        }
    }

    /// A copy that borrows nothing; scalars cost no allocation.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn detach(self, memory: &RequestMemory) -> Result<Evaluated<'static>, QueryError> {
        match self {
            Evaluated::Missing => Ok(Evaluated::Missing),
            Evaluated::Borrowed(value) => Evaluated::copy(value, memory),
            Evaluated::Owned(made) => Ok(Evaluated::Owned(made)),
        }
    }

    /// As [`detach`](Self::detach), uncharged: for what is in a stage's own reservation.
    pub(crate) fn detach_uncounted(self) -> Evaluated<'static> {
        match self {
            Evaluated::Missing => Evaluated::Missing,
            Evaluated::Borrowed(value) => Evaluated::copy_with(value, Charge::uncounted()),
            Evaluated::Owned(made) => Evaluated::kept(made.value),
        }
    }

    /// A value that borrows nothing from `value`.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn copy(
        value: Value<'_>,
        memory: &RequestMemory,
    ) -> Result<Evaluated<'static>, QueryError> {
        Ok(Evaluated::copy_with(value, memory.charge_of(bytes_of(value))?))
    }

    /// As [`copy`](Self::copy), uncharged: for a part of the request, or of a stage's own
    /// reservation.
    pub(crate) fn copy_uncounted(value: Value<'_>) -> Evaluated<'static> {
        Evaluated::copy_with(value, Charge::uncounted())
    }

    /// A value that a stage has kept in its own reservation.
    pub(crate) fn kept(value: ValueBuf) -> Evaluated<'static> {
        Evaluated::Owned(Made { value, charge: Charge::uncounted() })
    }

    /// A value that was made as `charge` allowed.
    pub(crate) fn charged(value: ValueBuf, charge: Charge) -> Evaluated<'static> {
        Evaluated::Owned(Made { value, charge })
    }

    fn copy_with(value: Value<'_>, charge: Charge) -> Evaluated<'static> {
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
            other => return Evaluated::charged(other.to_buf(), charge),
        };
        Evaluated::Borrowed(scalar)
    }

    /// A part of this value, chosen by `choose`: borrowed if this value is.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn part(
        self,
        choose: impl for<'v> FnOnce(Value<'v>) -> Option<Value<'v>>,
    ) -> Result<Evaluated<'a>, QueryError> {
        match self {
            Evaluated::Missing => Ok(Evaluated::Missing),
            Evaluated::Borrowed(value) => {
                Ok(choose(value).map_or(Evaluated::Missing, Evaluated::Borrowed))
            }
            Evaluated::Owned(made) => match choose(made.as_value()) {
                None => Ok(Evaluated::Missing),
                Some(part) => {
                    let charge = made.charge.another(bytes_of(part))?;
                    Ok(Evaluated::copy_with(part, charge))
                }
            },
        }
    }

    /// A copy of a string.
    ///
    /// # Errors
    /// `BSONObjectTooLarge`, `ExceededMemoryLimit`.
    pub(crate) fn string(
        text: &str,
        memory: &RequestMemory,
    ) -> Result<Evaluated<'static>, QueryError> {
        check_bytes(text.len())?;
        Evaluated::copy(Value::String(text), memory)
    }
}

impl<'a, T: Into<Value<'a>>> From<T> for Evaluated<'a> {
    fn from(value: T) -> Evaluated<'a> {
        Evaluated::Borrowed(value.into())
    }
}

/// A string that grows, bounded and charged.
pub(crate) struct Text {
    text: String,
    charge: Charge,
}

impl Text {
    /// Begins an empty string.
    pub(crate) fn new(memory: &RequestMemory) -> Text {
        Text { text: String::new(), charge: memory.charge() }
    }

    /// Appends to it.
    ///
    /// # Errors
    /// `BSONObjectTooLarge`, `ExceededMemoryLimit`, what the request is to fail with.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), QueryError> {
        let bytes = self.text.len() + text.len();
        check_bytes(bytes)?;
        // Twice as much: what it outgrew lives until it is copied.
        self.charge.cover(bytes * 2)?;
        self.charge.work(1 + text.len() / 64)?;
        self.text.push_str(text);
        Ok(())
    }

    /// Ends the string.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn finish(mut self) -> Result<Evaluated<'static>, QueryError> {
        let value = ValueBuf::from(Value::String(&self.text));
        drop(self.text);
        self.charge.set(value_bytes(&value))?;
        Ok(Evaluated::charged(value, self.charge))
    }
}

fn value_bytes(value: &ValueBuf) -> usize {
    bytes_of(value.as_value())
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

/// Builds an array, bounded and charged.
pub(crate) struct Elements {
    builder: DocumentBuilder,
    charge: Charge,
}

impl Elements {
    /// Begins an empty array.
    pub(crate) fn new(memory: &RequestMemory) -> Elements {
        Elements::charged(memory.charge())
    }

    /// Begins an empty array that isn't charged: for what a stage has kept in its own reservation.
    pub(crate) fn uncounted() -> Elements {
        Elements::charged(Charge::uncounted())
    }

    fn charged(charge: Charge) -> Elements {
        let mut builder = DocumentBuilder::new();
        builder.begin_array("");
        Elements { builder, charge }
    }

    /// Appends an element.
    ///
    /// # Errors
    /// `BSONObjectTooLarge`, `ExceededMemoryLimit`, what the request is to fail with.
    pub(crate) fn push(&mut self, value: Value<'_>) -> Result<(), QueryError> {
        self.make_way(bytes_of(value))?;
        self.builder.push(value);
        Ok(())
    }

    /// Appends an element, null where it is missing.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn push_evaluated(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        self.push(value.or_null())
    }

    /// Appends a document, whose fields `append` writes, of about so many bytes.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn push_document(
        &mut self,
        bytes: usize,
        append: impl FnOnce(&mut DocumentBuilder),
    ) -> Result<(), QueryError> {
        self.make_way(bytes)?;
        self.builder.push_begin_document();
        append(&mut self.builder);
        self.builder.end();
        Ok(())
    }

    #[inline]
    fn make_way(&mut self, bytes: usize) -> Result<(), QueryError> {
        let bytes_after = self.builder.bytes() + bytes;
        check_bytes(bytes_after)?;
        // Twice as much: what it outgrew lives until it is copied.
        self.charge.cover(bytes_after * 2)?;
        self.charge.work(1 + bytes / 64)
    }

    /// Ends the array.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn finish(mut self) -> Result<Evaluated<'static>, QueryError> {
        self.builder.end();
        let value = ValueBuf::from_only_field(self.builder.build());
        self.charge.set(value_bytes(&value))?;
        Ok(Evaluated::charged(value, self.charge))
    }

    /// Collects values into an array.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn collect<'v>(
        values: impl IntoIterator<Item = Value<'v>>,
        memory: &RequestMemory,
    ) -> Result<Evaluated<'static>, QueryError> {
        let mut elements = Elements::new(memory);
        for value in values {
            elements.push(value)?;
        }
        elements.finish()
    }
}

/// Builds a document, bounded and charged.
pub(crate) struct Fields {
    builder: DocumentBuilder,
    charge: Charge,
}

impl Fields {
    /// Begins an empty document.
    pub(crate) fn new(memory: &RequestMemory) -> Fields {
        Fields::charged(memory.charge())
    }

    /// Begins an empty document that isn't charged: for what a stage has kept in its own
    /// reservation.
    pub(crate) fn uncounted() -> Fields {
        Fields::charged(Charge::uncounted())
    }

    fn charged(charge: Charge) -> Fields {
        let mut builder = DocumentBuilder::new();
        builder.begin_document("");
        Fields { builder, charge }
    }

    /// Opens a nested array, to which [`push`](Self::push) appends, until [`end`](Self::end).
    pub(crate) fn begin_array(&mut self, name: &str) {
        self.builder.begin_array(name);
    }

    /// Appends an element to the array that is open.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) fn push(&mut self, value: Value<'_>) -> Result<(), QueryError> {
        self.make_way(bytes_of(value))?;
        self.builder.push(value);
        Ok(())
    }

    /// Opens a nested document, until [`end`](Self::end).
    pub(crate) fn begin(&mut self, name: &str) {
        self.builder.begin_document(name);
    }

    /// Closes what was opened last.
    pub(crate) fn end(&mut self) {
        self.builder.end();
    }

    /// Appends a field.
    ///
    /// # Errors
    /// `BSONObjectTooLarge`, `ExceededMemoryLimit`, what the request is to fail with.
    pub(crate) fn append(&mut self, name: &str, value: Value<'_>) -> Result<(), QueryError> {
        self.make_way(name.len() + bytes_of(value))?;
        self.builder.append(name, value);
        Ok(())
    }

    #[inline]
    fn make_way(&mut self, bytes: usize) -> Result<(), QueryError> {
        let bytes_after = self.builder.bytes() + bytes;
        check_bytes(bytes_after)?;
        self.charge.cover(bytes_after * 2)?;
        self.charge.work(1 + bytes / 64)
    }

    /// Ends the document.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(crate) fn finish(mut self) -> Result<Evaluated<'static>, QueryError> {
        self.builder.end();
        let value = ValueBuf::from_only_field(self.builder.build());
        self.charge.set(value_bytes(&value))?;
        Ok(Evaluated::charged(value, self.charge))
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

impl From<Number> for Evaluated<'_> {
    fn from(number: Number) -> Self {
        Evaluated::Borrowed(number.value())
    }
}
