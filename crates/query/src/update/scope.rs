//! The common scope of the modifiers of one pass: the values that stay the same during it, the
//! place, and the output for a changed value.

use frond_doc::{Document, DocumentBuilder, Value};

use super::array_filters::ArrayFilters;
use crate::expression::Variables;

/// The context of an update.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext {
    /// The time for `$currentDate`: milliseconds since 1970.
    pub now_millis: i64,
    /// The time for `$currentDate` with `timestamp`.
    pub timestamp: u64,
    /// The array position that the positional `$` stands for.
    pub position: Option<usize>,
}

/// The occasion: whether a document is changed or made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Occasion {
    /// A stored document is changed.
    Update,
    /// An upsert makes one.
    Insert,
}

/// The context of one pass.
pub(super) struct Scope<'a> {
    /// The document before the update.
    pub(super) document: Document<'a>,
    /// Time and position.
    pub(super) context: &'a UpdateContext,
    /// The filters that `$[name]` stands for.
    pub(super) filters: &'a ArrayFilters,
    /// The occasion, which decides whether `$setOnInsert` counts.
    pub(super) occasion: Occasion,
    /// The collation, and the variables that the update may take.
    pub(super) variables: &'a Variables,
}

/// The path from the document's root to where the pass is, for messages.
#[derive(Default)]
pub(super) struct Trail(pub(super) Vec<String>);

impl Trail {
    /// The path with its dots.
    pub(super) fn dotted(&self) -> String {
        self.0.join(".")
    }
}

/// The place for a modifier's result: the next field of the document that is being written.
pub(super) struct Slot<'o, 'd> {
    /// The document that is being written.
    pub(super) out: &'o mut DocumentBuilder,
    /// The field's name.
    pub(super) name: &'o str,
    /// The value there; `None` if there is none.
    pub(super) current: Option<Value<'d>>,
    /// Whether this is an element of an array: those can't be removed, only become null.
    pub(super) is_element: bool,
}

impl Slot<'_, '_> {
    /// Writes a value.
    pub(super) fn put(self, value: Value<'_>) {
        self.out.append(self.name, value);
    }

    /// Leaves things as they are.
    pub(super) fn keep(self) {
        if let Some(value) = self.current {
            self.out.append(self.name, value);
        }
    }

    /// Takes the value away, or leaves a null where an element was.
    pub(super) fn remove(self) {
        if self.is_element {
            self.out.append(self.name, Value::Null);
        }
    }
}
