//! Operators on an array that is a container: `$push`, `$pop`, `$pull`, `$pullAll` and `$addToSet`.

use frond_doc::pieces::{Element, LargeDocument, LocatedElement, Part, PiecesError};
use frond_doc::{DocumentBuilder, Value};
use frond_query::update::{AddToSet, Pull};

use super::steps::Step;
use super::{Change, ELEMENT, Stepped, large, single};
use crate::large::ordered_array::OrderedArray;

/// The number of elements of an array, one of so many at least, that come or go, above which the
/// other way is taken, which costs less then.
const APART_COUNT_MAX: usize = 1_000;
const APART_SHARE: u64 = 64;

impl Change<'_> {
    /// A step of an operator on containers, done.
    pub(super) fn in_container(
        &self,
        step: &Step<'_>,
    ) -> Result<Option<LargeDocument>, PiecesError> {
        let parts: Vec<&str> = step.parts.iter().map(|part| &**part).collect();
        let found = self.document.find(self.store, &parts)?;
        let is_container = found.item.as_ref().is_some_and(|(_, item)| item.is_container());
        if found.is_plain() && is_container && found.part_count + 1 == parts.len() {
            let changed = match step.operator {
                "$push" => self.push(step)?,
                "$pop" => self.pop(step)?,
                "$pull" | "$pullAll" => self.pull(step)?,
                _ => self.add_to_set(step)?,
            };
            if changed.is_some() {
                return Ok(changed);
            }
        }
        match self.splice_of(step, &parts, &found)? {
            Stepped::Nothing => Ok(Some(self.document)),
            Stepped::Refused => Ok(None),
            Stepped::Splice(splice) => {
                Ok(large(self.document.splice_all(self.store, vec![splice])?))
            }
        }
    }

    /// Appends to a container that is an array, or puts values where `$position` or `$sort` says.
    fn push(&self, step: &Step<'_>) -> Result<Option<LargeDocument>, PiecesError> {
        let Some(inside) = self.inside(step)? else { return Ok(None) };
        let count = inside.count(self.store)?;
        if let Some(in_order) = OrderedArray::of(step.operand, self.variables.collation()) {
            if is_much(in_order.count(), count) {
                return Ok(None);
            }
            let places = in_order.places(self.store, &self.document, &inside, count)?;
            let Some(places) = places else { return Ok(None) };
            let Some(pushed) = self.put_at(&inside, &places)? else { return Ok(None) };
            let count = count + places.len() as u64;
            let kept = self.kept(step, pushed, count, in_order.slice())?;
            if let Some(kept) = kept {
                let change = Change { document: kept, ..*self };
                change.inside(step)?.iter().for_each(|inside| in_order.note(inside));
            }
            return Ok(kept);
        }
        let clauses = step.operand.as_document().filter(|clauses| clauses.get("$each").is_some());
        let single = single(step.operand);
        let (values, place, slice) = match clauses {
            None => (single.view(), None, None),
            Some(clauses) => {
                let is_known = |name: &str| matches!(name, "$each" | "$position" | "$slice");
                let slice = match clauses.get("$slice").map(|slice| slice.as_integer()) {
                    Some(None) => return Ok(None),
                    slice => slice.flatten(),
                };
                let place = clauses.get("$position").map(|place| place.as_integer());
                match (clauses.get("$each"), place) {
                    _ if !clauses.iter().all(|(name, _)| is_known(name)) => return Ok(None),
                    (Some(Value::Array(values)), None) => (values.as_document(), None, slice),
                    (Some(Value::Array(values)), Some(Some(place))) => {
                        (values.as_document(), Some(place), slice)
                    }
                    _ => return Ok(None),
                }
            }
        };
        let place = match place {
            None => count,
            Some(place) if place >= 0 => count.min(place.unsigned_abs()),
            Some(place) => count.saturating_sub(place.unsigned_abs()),
        };
        let elements: Vec<Element<'_>> = values.elements().collect();
        let Some(pushed) = self.splice(&inside, place, 0, &elements)? else { return Ok(None) };
        self.kept(step, pushed, count + elements.len() as u64, slice)
    }

    /// Puts values before the elements at places that ascend.
    fn put_at(
        &self,
        inside: &LocatedElement,
        places: &[(u64, Value<'_>)],
    ) -> Result<Option<LargeDocument>, PiecesError> {
        let mut splices = Vec::new();
        for group in places.chunk_by(|(left, _), (right, _)| left == right) {
            let mut values = DocumentBuilder::new();
            for (_, value) in group {
                values.append(ELEMENT, *value);
            }
            let values = values.build();
            let elements: Vec<Element<'_>> = values.view().elements().collect();
            let splice = self.document.prepare(self.store, inside, group[0].0, 0, &elements)?;
            let Some(splice) = splice else { return Ok(None) };
            splices.push(splice);
        }
        if splices.is_empty() {
            return Ok(Some(self.document));
        }
        Ok(large(self.document.splice_all(self.store, splices)?))
    }

    /// Returns the part of the array of `count` elements that a `$slice` leaves in `pushed`.
    fn kept(
        &self,
        step: &Step<'_>,
        pushed: LargeDocument,
        count: u64,
        slice: Option<i64>,
    ) -> Result<Option<LargeDocument>, PiecesError> {
        let kept = slice.map(i64::unsigned_abs);
        let (Some(slice), Some(kept)) = (slice, kept.filter(|kept| *kept < count)) else {
            return Ok(Some(pushed));
        };
        let change = Change { document: pushed, ..*self };
        let Some(inside) = change.inside(step)? else { return Ok(None) };
        // A negative slice keeps the last ones.
        let first = if slice < 0 { 0 } else { kept };
        change.splice(&inside, first, count - kept, &[])
    }

    /// Appends the values that no element equals.
    fn add_to_set(&self, step: &Step<'_>) -> Result<Option<LargeDocument>, PiecesError> {
        let Some(inside) = self.inside(step)? else { return Ok(None) };
        let Some(added) = AddToSet::parse(step.operand, self.variables) else { return Ok(None) };
        let Ok(mut missing) = added.missing() else { return Ok(None) };
        let mut is_known = Ok(false);
        self.document.visit_values(self.store, &inside, Part::All, &mut |_, known| {
            is_known = missing.strike_out(known);
            is_known != Ok(false)
        })?;
        match is_known {
            Err(_) => return Ok(None),
            Ok(true) => return Ok(Some(self.document)),
            Ok(false) => {}
        }
        let mut new = DocumentBuilder::new();
        missing.into_values().for_each(|value| {
            new.append(ELEMENT, value);
        });
        let new = new.build();
        let new: Vec<Element<'_>> = new.view().elements().collect();
        if new.is_empty() {
            return Ok(Some(self.document));
        }
        self.splice(&inside, inside.count(self.store)?, 0, &new)
    }

    fn pop(&self, step: &Step<'_>) -> Result<Option<LargeDocument>, PiecesError> {
        let Some(inside) = self.inside(step)? else { return Ok(None) };
        let count = inside.count(self.store)?;
        match step.operand.as_integer() {
            Some(-1) => self.splice(&inside, 0, count.min(1), &[]),
            Some(1) => self.splice(&inside, count.saturating_sub(1), count.min(1), &[]),
            _ => Ok(None),
        }
    }

    /// Asks of each element by itself whether it goes: of documents no more is read than decides
    /// that.
    fn pull(&self, step: &Step<'_>) -> Result<Option<LargeDocument>, PiecesError> {
        let Some(inside) = self.inside(step)? else { return Ok(None) };
        let Some(pull) = Pull::parse(step.operator, step.operand, self.variables) else {
            return Ok(None);
        };
        let names = pull.names_in_documents();
        let part = match &names {
            Some(names) => Part::Fields(names),
            None if pull.leaves_containers() => Part::Short,
            None => Part::All,
        };
        let (mut gone, mut is_refused): (Vec<u64>, bool) = (Vec::new(), false);
        self.document.visit_values(self.store, &inside, part, &mut |position, value| {
            match pull.removes(value) {
                Ok(true) => gone.push(position),
                Ok(false) => {}
                Err(_) => is_refused = true,
            }
            is_refused
        })?;
        if is_refused {
            return Ok(None);
        }
        if gone.is_empty() {
            return Ok(Some(self.document));
        }
        let runs = gone.chunk_by(|before, after| before + 1 == *after).count();
        if is_much(runs, inside.count(self.store)?) {
            return Ok(None);
        }
        let mut splices = Vec::new();
        for run in gone.chunk_by(|before, after| before + 1 == *after) {
            let (first, count) = (run[0], run.len() as u64);
            let splice = self.document.prepare(self.store, &inside, first, count, &[])?;
            let Some(splice) = splice else { return Ok(None) };
            splices.push(splice);
        }
        Ok(large(self.document.splice_all(self.store, splices)?))
    }

    /// Into the array that the path names, if it is one.
    fn inside(&self, step: &Step<'_>) -> Result<Option<LocatedElement>, PiecesError> {
        let mut parts: Vec<&str> = step.parts.iter().map(|part| &**part).collect();
        parts.push(""); // Names nothing in an array.
        let inside = self.document.find(self.store, &parts)?;
        let is_reached = inside.part_count == step.parts.len() && inside.is_in_array();
        Ok(is_reached.then_some(inside))
    }

    /// `None` too if the document isn't large any more.
    fn splice(
        &self,
        found: &LocatedElement,
        position: u64,
        removed: u64,
        elements: &[Element<'_>],
    ) -> Result<Option<LargeDocument>, PiecesError> {
        let edited = self.document.splice(self.store, found, position, removed, elements)?;
        Ok(edited.and_then(large))
    }
}

/// Whether the whole array is better made anew than changed at so many places.
fn is_much(places: usize, count: u64) -> bool {
    APART_COUNT_MAX < places && count < places as u64 * APART_SHARE
}
