//! The states of accumulators, for groups and windows: the two traits, and their common parts.

use std::any::Any;

use frond_doc::{Value, ValueBuf};

use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Elements, Evaluated};

/// The memory of an entry of a list or a set besides its value.
const ENTRY_BYTES: usize = 64;

/// The state of an accumulator over a group, to which one document's value after the other is
/// added. One document's value after the other goes in.
pub(crate) trait State: Any + Send {
    /// Takes one document's value; returns about how many bytes that took.
    ///
    /// # Errors
    /// MongoDB's codes for values of the wrong type and results that are too large.
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError>;

    /// Takes what another state was given of the values behind, once this one is settled: both are
    /// of one accumulator, whose values may be gathered in parts
    /// ([`Accumulator::divides`](super::Accumulator::divides)).
    ///
    /// # Errors
    /// If that may be something else than to be given the values one after the other.
    fn append(&mut self, _next: Box<dyn State>) -> Result<(), QueryError> {
        Err(not_divided())
    }

    /// Works in what was only kept because the state is of a part of the values: nothing comes
    /// before them any more.
    fn settle(&mut self) {}

    /// The result; null where there is none.
    ///
    /// # Errors
    /// `BSONObjectTooLarge`.
    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError>;

    /// Returns the result of [`finish`](Self::finish), if scripts make it: they are asked for
    /// several groups together, and so more than once.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    fn scripted(&self) -> Result<Option<Evaluated<'static>>, QueryError> {
        Ok(None)
    }
}

/// The state of an accumulator over a window, which moves along.
pub(crate) trait Window: State {
    /// Takes back the value that came first of those that are in; `value` is that very value, or
    /// an equal one of the same type.
    fn remove(&mut self, value: Evaluated<'_>);

    /// The result over the values that are in; null where there is none.
    ///
    /// # Errors
    /// `BSONObjectTooLarge`.
    fn current(&self) -> Result<Evaluated<'static>, QueryError>;
}

/// The state of another part of the values of one accumulator.
pub(super) fn of_same_kind<S: State>(next: Box<dyn State>) -> Box<S> {
    let next: Box<dyn Any> = next;
    next.downcast().expect("both are of one accumulator")
}

/// Shown to no client: the values are then gathered once more, one after the other.
pub(super) fn not_divided() -> QueryError {
    QueryError::new(Code::InternalError, "the parts of a group can't be put together")
}

/// About what a value takes in memory.
pub(crate) fn cost(value: Value<'_>) -> usize {
    ENTRY_BYTES
        + match value {
            Value::String(text) | Value::Symbol(text) | Value::JavaScript(text) => text.len(),
            Value::Document(document) => document.as_bytes().len(),
            Value::Array(array) => array.as_bytes().len(),
            Value::Binary(binary) => binary.bytes.len(),
            Value::JavaScriptWithScope { code, scope } => code.len() + scope.as_bytes().len(),
            _ => 0,
        }
}

/// Returns the memory that a value takes beyond that of the one it replaces.
pub(super) fn replaced(old: Option<Value<'_>>, new: Value<'_>) -> usize {
    cost(new).saturating_sub(old.map_or(0, cost))
}

/// An array of values that were kept.
pub(super) fn array_of<'v>(
    values: impl IntoIterator<Item = &'v ValueBuf>,
) -> Result<Evaluated<'static>, QueryError> {
    let mut elements = Elements::uncounted();
    for value in values {
        elements.push(value.as_value())?;
    }
    elements.finish()
}
