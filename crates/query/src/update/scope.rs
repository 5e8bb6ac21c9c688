//! What the modifiers of one pass share: what stays the same during it, where it is, and where a
//! changed value is written.

use frond_doc::{Document, DocumentBuilder, Value};

use super::array_filters::ArrayFilters;
use crate::expression::Variables;

/// The context of an update.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext {
    /// For `$currentDate`: milliseconds since 1970.
    pub now_millis: i64,
    /// For `$currentDate` with `timestamp`.
    pub timestamp: u64,
    /// What a positional `$` stands for.
    pub position: Option<usize>,
}

/// Whether a document is changed or made.
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
    /// What `$[name]` stands for.
    pub(super) filters: &'a ArrayFilters,
    /// Whether `$setOnInsert` counts.
    pub(super) occasion: Occasion,
    /// How strings compare, and what the update may take.
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
    /// What stands there; `None` if nothing does.
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
