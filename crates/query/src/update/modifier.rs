//! What an update does at the end of a path.

use frond_doc::{DocumentBuilder, Value, ValueBuf};

use super::Occasion;
use super::arithmetic::{self, BitOperation};
use super::pull::{self, PullCondition};
use super::push::{self, Push};
use super::walk::{Scope, Trail};
use crate::collation::Collation;
use crate::error::QueryError;
use frond_doc::Timestamp;
use frond_doc::path::Path;

/// A change of one value.
#[derive(Clone, Debug)]
pub(super) enum Modifier {
    /// `$set`
    Set(ValueBuf),
    /// `$setOnInsert`
    SetOnInsert(ValueBuf),
    /// `$unset`, and the old path of a `$rename`.
    Unset,
    /// `$currentDate`
    CurrentDate,
    /// `$currentDate` with `timestamp`
    CurrentTimestamp,
    /// The new path of a `$rename`: the value that stood at the old one.
    RenamedFrom(Path),
    /// `$inc`
    Increment(ValueBuf),
    /// `$mul`
    Multiply(ValueBuf),
    /// `$min`
    Minimum(ValueBuf),
    /// `$max`
    Maximum(ValueBuf),
    /// `$bit`
    Bit(Vec<BitOperation>),
    /// `$push`
    Push(Push),
    /// `$addToSet`
    AddToSet(Vec<ValueBuf>),
    /// `$pull`
    Pull(PullCondition),
    /// `$pullAll`
    PullAll(Vec<ValueBuf>),
    /// `$pop: -1`
    PopFirst,
    /// `$pop: 1`
    PopLast,
}

/// Where a modifier puts its result: the next field of the document that is being written.
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

    fn remove(self) {
        if self.is_element {
            self.out.append(self.name, Value::Null);
        }
    }
}

impl Modifier {
    /// Whether the modifier makes something where nothing is, so that its path is made too.
    pub(super) fn creates(&self, scope: &Scope<'_>) -> bool {
        match self {
            Modifier::Unset
            | Modifier::Pull(_)
            | Modifier::PullAll(_)
            | Modifier::PopFirst
            | Modifier::PopLast => false,
            Modifier::SetOnInsert(_) => scope.occasion == Occasion::Insert,
            Modifier::RenamedFrom(source) => source.get(scope.document).is_some(),
            _ => true,
        }
    }

    /// Whether the modifier asks that its path could be made, though it makes nothing.
    pub(super) fn needs_possible_path(&self) -> bool {
        matches!(
            self,
            Modifier::Pull(_) | Modifier::PullAll(_) | Modifier::PopFirst | Modifier::PopLast
        )
    }

    /// Compares strings by `collation` where the modifier has a condition of its own.
    pub(super) fn collate(&mut self, collation: &Collation) {
        if let Modifier::Pull(condition) = self {
            condition.collate(collation);
        }
    }

    /// Writes the changed value.
    pub(super) fn apply(
        &self,
        slot: Slot<'_, '_>,
        scope: &Scope<'_>,
        trail: &Trail,
    ) -> Result<(), QueryError> {
        match self {
            Modifier::Set(value) => slot.put(value.as_value()),
            Modifier::SetOnInsert(value) => match scope.occasion {
                Occasion::Insert => slot.put(value.as_value()),
                Occasion::Update => slot.keep(),
            },
            Modifier::Unset => match slot.current {
                Some(_) => slot.remove(),
                None => slot.keep(),
            },
            Modifier::CurrentDate => slot.put(Value::DateTime(scope.context.now_millis)),
            Modifier::CurrentTimestamp => {
                slot.put(Value::Timestamp(Timestamp(scope.context.timestamp)));
            }
            Modifier::RenamedFrom(source) => match source.get(scope.document) {
                Some(value) => slot.put(value),
                None => slot.keep(),
            },
            Modifier::Increment(by) => {
                return arithmetic::apply_increment(slot, by.as_value(), scope);
            }
            Modifier::Multiply(by) => {
                return arithmetic::apply_multiply(slot, by.as_value(), scope);
            }
            Modifier::Minimum(value) => {
                put_if(slot, value, scope.collation, |ordering| ordering.is_lt());
            }
            Modifier::Maximum(value) => {
                put_if(slot, value, scope.collation, |ordering| ordering.is_gt());
            }
            Modifier::Bit(operations) => {
                return arithmetic::apply_bits(slot, operations, scope);
            }
            Modifier::Push(push) => return push::apply_push(slot, push, scope, trail),
            Modifier::AddToSet(values) => {
                return push::apply_add_to_set(slot, values, scope.collation);
            }
            Modifier::Pull(condition) => {
                let is_unwanted = |value: Value<'_>| condition.matches(value, scope.collation);
                return pull::apply_pull(slot, "$pull", &is_unwanted);
            }
            Modifier::PullAll(values) => {
                let is_unwanted =
                    |value: Value<'_>| pull::is_any_of(values, value, scope.collation);
                return pull::apply_pull(slot, "$pullAll", &is_unwanted);
            }
            Modifier::PopFirst => return pull::apply_pop(slot, pull::End::First, trail),
            Modifier::PopLast => return pull::apply_pop(slot, pull::End::Last, trail),
        }
        Ok(())
    }
}

/// Puts `value` where nothing is, or where its order to what is there is as wanted.
fn put_if(
    slot: Slot<'_, '_>,
    value: &ValueBuf,
    collation: &Collation,
    wanted: fn(std::cmp::Ordering) -> bool,
) {
    let value = value.as_value();
    match slot.current {
        Some(current) if !wanted(collation.compare(value, current)) => slot.keep(),
        _ => slot.put(value),
    }
}
