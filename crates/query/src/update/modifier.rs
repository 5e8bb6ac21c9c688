//! The actions of an update at the end of a path.

use frond_doc::{Value, ValueBuf};

use super::arithmetic::{self, BitOperation};
use super::pull::{self, PullCondition};
use super::push::{self, Push};
use super::scope::{Occasion, Scope, Slot, Trail};
use super::value_set::{ValueSet, count_lookup};
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::Variables;
use frond_doc::Timestamp;
use frond_doc::path::Path;

/// A change of one value. Most are of one value too: what is larger lies elsewhere, since an update
/// moves them about while it is parsed.
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
    Push(Box<Push>),
    /// `$addToSet`
    AddToSet(ValueSet),
    /// `$pull`
    Pull(Box<PullCondition>),
    /// `$pullAll`
    PullAll(ValueSet),
    /// `$pop: -1`
    PopFirst,
    /// `$pop: 1`
    PopLast,
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

    /// Compares strings as `variables` say where the modifier has a condition or an order of its
    /// own.
    pub(super) fn bind(&mut self, variables: &Variables) {
        match self {
            Modifier::Pull(condition) => condition.bind(variables),
            Modifier::AddToSet(values) | Modifier::PullAll(values) => {
                values.collate(variables.collation());
            }
            _ => {}
        }
    }

    /// Returns the memory it takes, if that may be much.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Modifier::Push(push) => push.bytes(),
            Modifier::AddToSet(values) | Modifier::PullAll(values) => {
                push::bytes_of_all(values.values())
            }
            Modifier::Set(value) | Modifier::SetOnInsert(value) => {
                push::bytes_of_all(std::iter::once(value.as_value()))
            }
            _ => 0,
        }
    }

    /// Writes the changed value.
    pub(super) fn apply(
        &self,
        slot: Slot<'_, '_>,
        scope: &Scope<'_>,
        trail: &Trail,
    ) -> Result<(), QueryError> {
        let memory = scope.variables.memory();
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
                put_if(slot, value, scope.variables.collation(), |ordering| ordering.is_lt());
            }
            Modifier::Maximum(value) => {
                put_if(slot, value, scope.variables.collation(), |ordering| ordering.is_gt());
            }
            Modifier::Bit(operations) => {
                return arithmetic::apply_bits(slot, operations, scope);
            }
            Modifier::Push(push) => return push::apply_push(slot, push, scope, trail),
            Modifier::AddToSet(values) => {
                return push::apply_add_to_set(slot, values, memory);
            }
            Modifier::Pull(condition) => {
                let is_unwanted = |value: Value<'_>| condition.matches(value, scope.variables);
                return pull::apply_pull(slot, "$pull", memory, &is_unwanted);
            }
            Modifier::PullAll(values) => {
                let is_unwanted = |value: Value<'_>| {
                    count_lookup(value, memory)?;
                    Ok(values.contains(value))
                };
                return pull::apply_pull(slot, "$pullAll", memory, &is_unwanted);
            }
            Modifier::PopFirst => return pull::apply_pop(slot, pull::End::First, memory, trail),
            Modifier::PopLast => return pull::apply_pop(slot, pull::End::Last, memory, trail),
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
