//! Update operators on a large document, piece by piece.
//!
//! 1. The paths are taken in the order in which an update makes new fields (paths of one update
//!    never lie in one another). Those that lead to different elements are looked up in the same
//!    document and changed in it at once ([`Together`]); operators on containers change it by
//!    themselves.
//! 2. A path is followed through containers. The element that it comes to becomes a document of its
//!    own, `{name: value}`; the operator is applied to that with what is left of the path, and the
//!    element that comes out takes its place. So every operator means what it means elsewhere.
//! 3. Where the path ends at a container, `$set`, `$unset`, `$push` (with `$each`, `$position` and
//!    `$slice`; with `$sort` see [`ordered`](super::ordered)) and `$pop` do without its content;
//!    `$pull`, `$pullAll` and `$addToSet` look at its elements one by one; any other operator reads
//!    the container.
//! 4. A positional `$` is the number that the filter found. `$[]` and `$[x]` look at the elements
//!    of their array one by one ([`every`](super::every)). `$rename` moves an item as it is.
//!
//! Anything else is left to the update of the whole document: `_id`, arrays that would be padded,
//! `$[x]` in arrays of which one lies in another, and whatever fails or is to stop, so that it
//! fails with the same words.

use std::borrow::Cow;

use frond_doc::pieces::{Edited, Element, Found, LargeDocument, Part, PiecesError, Splice};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Update;
use frond_query::expression::Variables;
use frond_query::update::{AddToSet, Pull, UpdateContext};
use frond_store::ChunkStore;

use super::every;
use super::ordered::InOrder;

/// Operators that change one value by itself.
const OPERATORS: [&str; 12] = [
    "$addToSet",
    "$bit",
    "$currentDate",
    "$inc",
    "$max",
    "$min",
    "$mul",
    "$pop",
    "$pull",
    "$pullAll",
    "$push",
    SET,
];
/// Those of them that do without the content of an array that is a container, or look at it piece
/// by piece.
const CONTAINER_OPERATORS: [&str; 5] = ["$addToSet", "$pop", "$pull", "$pullAll", "$push"];
const SET: &str = "$set";
const UNSET: &str = "$unset";
/// Paths and operands that are nested deeper together are left to the other way, which checks.
const DEPTH_CHECKED: usize = 90;
/// The name of an element that is looked at by itself.
const ELEMENT: &str = "e";
/// More elements of an array, one of so many at least, that come or go are left to the other way,
/// which costs less then.
const APART_COUNT_MAX: usize = 1_000;
const APART_SHARE: u64 = 64;

const RENAME: &str = "$rename";

/// An operator on one path.
struct Step<'u> {
    operator: &'u str,
    parts: Vec<Cow<'u, str>>,
    operand: Value<'u>,
}

/// Applies `update`, which was parsed without complaint, to a large document, or says `None` if the
/// whole document is needed. New chunks are put into `store`.
pub(crate) fn apply(
    store: &dyn ChunkStore,
    document: &LargeDocument,
    update: Document<'_>,
    array_filters: Option<Array<'_>>,
    context: &UpdateContext,
    variables: &Variables,
) -> Result<Option<LargeDocument>, PiecesError> {
    let Some(every) = every::EveryElement::cut(update, array_filters, variables) else {
        return Ok(None);
    };
    if let [(RENAME, paths)] = update.iter().collect::<Vec<_>>()[..] {
        return renamed(store, *document, paths);
    }
    let Some(steps) = steps(update, context.position) else { return Ok(None) };
    if steps.iter().any(|step| every.iter().any(|every| every.is_under(&step.parts))) {
        return Ok(None);
    }
    let mut current = *document;
    for every in &every {
        match every.apply(store, &current, context)? {
            Some(changed) => current = changed,
            None => return Ok(None),
        }
    }
    let mut together =
        Together { store, document: current, places: Vec::new(), splices: Vec::new() };
    for step in &steps {
        let is_alone = CONTAINER_OPERATORS.contains(&step.operator);
        if (is_alone || together.is_in_one(step)) && !together.apply()? {
            return Ok(None);
        }
        let change = Change { store, document: together.document, context, variables };
        if is_alone {
            let Some(changed) = change.in_container(step)? else { return Ok(None) };
            together.document = changed;
            continue;
        }
        let parts: Vec<&str> = step.parts.iter().map(|part| &**part).collect();
        let found = together.document.find(store, &parts)?;
        match change.splice_of(step, &parts, &found)? {
            Stepped::Nothing => {}
            Stepped::Splice(splice) => together.add(parts[..=found.part_count].to_vec(), splice),
            Stepped::Refused => return Ok(None),
        }
    }
    Ok(together.apply()?.then_some(together.document))
}

/// Splices of one document at different places, made at once: what lies on the way to several is
/// written once.
struct Together<'a, 'u> {
    store: &'a dyn ChunkStore,
    document: LargeDocument,
    /// The path to the element that each one replaces, removes or adds.
    places: Vec<Vec<&'u str>>,
    splices: Vec<Splice>,
}

impl<'u> Together<'_, 'u> {
    fn add(&mut self, place: Vec<&'u str>, splice: Splice) {
        self.places.push(place);
        self.splices.push(splice);
    }

    /// Whether a step lies in an element that is to be changed: it needs that as it will be.
    fn is_in_one(&self, step: &Step<'_>) -> bool {
        self.places.iter().any(|place| {
            place.len() <= step.parts.len() && place.iter().zip(&step.parts).all(|(a, b)| *a == b)
        })
    }

    /// Makes what was added; `false` if the document isn't large any more.
    fn apply(&mut self) -> Result<bool, PiecesError> {
        self.places.clear();
        let splices = std::mem::take(&mut self.splices);
        if splices.is_empty() {
            return Ok(true);
        }
        match self.document.splice_all(self.store, splices)? {
            Edited::Large(changed) => self.document = changed,
            Edited::Small(_) => return Ok(false),
        }
        Ok(true)
    }
}

/// Takes an item to another name.
fn renamed(
    store: &dyn ChunkStore,
    document: LargeDocument,
    paths: Value<'_>,
) -> Result<Option<LargeDocument>, PiecesError> {
    let mut fields = paths.as_document().into_iter().flat_map(|paths| paths.iter());
    let (Some((source, Value::String(target))), None) = (fields.next(), fields.next()) else {
        return Ok(None);
    };
    let (from, to): (Vec<&str>, Vec<&str>) =
        (source.split('.').collect(), target.split('.').collect());
    let is_plain = |part: &&str| !part.is_empty() && !part.starts_with('$') && *part != "_id";
    // What would lie deeper than before is left to the other way, which checks.
    if !from.iter().chain(&to).all(is_plain) || from.len() < to.len() {
        return Ok(None);
    }
    let found = document.find(store, &from)?;
    let is_whole = found.part_count + 1 == from.len() && found.is_in_documents();
    let Some((position, item)) = found.item.as_ref().filter(|_| is_whole) else { return Ok(None) };
    let without = match document.splice(store, &found, *position, 1, &[])? {
        Some(Edited::Large(without)) => without,
        _ => return Ok(None),
    };
    let place = without.find(store, &to)?;
    if place.part_count + 1 != to.len() || !place.is_in_documents() {
        return Ok(None);
    }
    let (position, removed) = match &place.item {
        Some((position, _)) => (*position, 1),
        None => (place.count(store)?, 0),
    };
    let name = to[place.part_count];
    match without.splice_item(store, &place, position, removed, item, name)? {
        Some(Edited::Large(changed)) => Ok(Some(changed)),
        _ => Ok(None),
    }
}

/// The update's steps in the order of their paths, without those of `$[]` and `$[x]`; `position` is
/// what `$` stands for.
fn steps(update: Document<'_>, position: Option<usize>) -> Option<Vec<Step<'_>>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut has_positional = false;
    for (operator, paths) in update.iter() {
        if !OPERATORS.contains(&operator) && operator != UNSET {
            return None;
        }
        for (path, operand) in paths.as_document()?.iter() {
            if every::prefix(path).is_some() {
                continue;
            }
            let mut parts: Vec<Cow<'_, str>> = Vec::new();
            for part in path.split('.') {
                has_positional |= part == "$";
                parts.push(match part {
                    "$" => position?.to_string().into(),
                    part => part.into(),
                });
            }
            let is_plain = parts.iter().all(|part| !part.is_empty() && !part.starts_with('$'));
            if !is_plain
                || parts[0] == "_id"
                || !is_shallow(operand, DEPTH_CHECKED - parts.len().min(DEPTH_CHECKED))
            {
                return None;
            }
            steps.push(Step { operator, parts, operand });
        }
    }
    steps.sort_by(|left, right| {
        let (left, right) = (left.parts.iter(), right.parts.iter());
        left.map(|part| order_of(part)).cmp(right.map(|part| order_of(part)))
    });
    // A `$` may stand for what another path names too: a conflict that only the document shows.
    let are_apart = |pair: &[Step<'_>]| !pair[1].parts.starts_with(&pair[0].parts);
    (!has_positional || steps.windows(2).all(are_apart)).then_some(steps)
}

/// Numbers come before names, by their value.
fn order_of(part: &str) -> (bool, usize, &str) {
    match position(part) {
        Some(number) => (false, number, ""),
        None => (true, 0, part),
    }
}

/// The position that a part of a path means in an array.
fn position(part: &str) -> Option<usize> {
    let is_position = part == "0" || !part.starts_with(['0', '+']);
    part.parse().ok().filter(|_| is_position)
}

fn is_shallow(value: Value<'_>, depth: usize) -> bool {
    let inner = match value {
        Value::Document(inner) => inner,
        Value::Array(inner) => inner.as_document(),
        Value::JavaScriptWithScope { scope, .. } => scope,
        _ => return true,
    };
    depth > 0 && inner.iter().all(|(_, value)| is_shallow(value, depth - 1))
}

/// What becomes of a step.
enum Stepped {
    Nothing,
    Splice(Splice),
    /// The whole document is needed.
    Refused,
}

/// One step on one document.
struct Change<'a> {
    store: &'a dyn ChunkStore,
    document: LargeDocument,
    context: &'a UpdateContext,
    variables: &'a Variables,
}

impl Change<'_> {
    /// A step of an operator on containers, done.
    fn in_container(&self, step: &Step<'_>) -> Result<Option<LargeDocument>, PiecesError> {
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

    /// What a step makes of the element that its path leads to.
    fn splice_of(
        &self,
        step: &Step<'_>,
        parts: &[&str],
        found: &Found,
    ) -> Result<Stepped, PiecesError> {
        let is_missing_in_array = found.is_in_array() && found.item.is_none();
        if !found.is_plain() || is_missing_in_array {
            return Ok(Stepped::Refused); // To be padded, or an error.
        }
        let rest = &parts[found.part_count..];
        let is_container = found.item.as_ref().is_some_and(|(_, item)| item.is_container());
        let is_replaced = matches!(step.operator, "$currentDate" | UNSET);
        match rest {
            [name] if step.operator == SET => self.set(found, name, step.operand),
            [_] if is_container && is_replaced => self.element(step, found, rest, false),
            _ => self.element(step, found, rest, true),
        }
    }

    /// Puts a value in the place of the element, whatever that is.
    fn set(&self, found: &Found, name: &str, value: Value<'_>) -> Result<Stepped, PiecesError> {
        let mut after = DocumentBuilder::new();
        after.append(name, value);
        let after = after.build();
        let elements: Vec<Element<'_>> = after.view().elements().collect();
        match &found.item {
            Some((_, item)) if item.has_value(&elements[0]) => Ok(Stepped::Nothing),
            _ => self.replaced(found, &elements),
        }
    }

    /// Puts elements in the place of the one that was found, or behind all others.
    fn replaced(&self, found: &Found, elements: &[Element<'_>]) -> Result<Stepped, PiecesError> {
        let (position, removed) = match &found.item {
            Some((position, _)) => (*position, 1),
            None => (found.count(self.store)?, 0),
        };
        let splice = self.document.prepare(self.store, found, position, removed, elements)?;
        Ok(splice.map_or(Stepped::Refused, Stepped::Splice))
    }

    /// Applies the operator to the element as a document of its own; with nothing in it if what is
    /// there doesn't matter.
    fn element(
        &self,
        step: &Step<'_>,
        found: &Found,
        rest: &[&str],
        is_content_wanted: bool,
    ) -> Result<Stepped, PiecesError> {
        let mut before = DocumentBuilder::new();
        if let Some((_, item)) = found.item.as_ref().filter(|_| is_content_wanted) {
            before.append(rest[0], self.document.value_of(self.store, item)?.as_value());
        }
        let before = before.build();
        let Some(update) = update(step.operator, &rest.join("."), step.operand) else {
            return Ok(Stepped::Refused);
        };
        let update = update.with_variables(self.variables);
        let after = match update.apply(before.view(), self.context) {
            Ok(Some(after)) => after,
            Ok(None) if is_content_wanted => return Ok(Stepped::Nothing),
            Ok(None) => before, // A container is unset.
            Err(_) => return Ok(Stepped::Refused),
        };
        let mut elements: Vec<Element<'_>> = after.view().elements().collect();
        let null = null();
        if elements.is_empty() && found.is_in_array() {
            elements = null.view().elements().collect();
        }
        self.replaced(found, &elements)
    }

    /// Appends to a container that is an array, or puts values where `$position` or `$sort` says.
    fn push(&self, step: &Step<'_>) -> Result<Option<LargeDocument>, PiecesError> {
        let Some(inside) = self.inside(step)? else { return Ok(None) };
        let count = inside.count(self.store)?;
        if let Some(in_order) = InOrder::of(step.operand, self.variables.collation()) {
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
        inside: &Found,
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

    /// What a `$slice` leaves of the array of `count` elements in `pushed`.
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
        let mut met = Ok(false);
        self.document.visit_values(self.store, &inside, Part::All, &mut |_, known| {
            met = missing.meet(known);
            met != Ok(false)
        })?;
        match met {
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
    fn inside(&self, step: &Step<'_>) -> Result<Option<Found>, PiecesError> {
        let mut parts: Vec<&str> = step.parts.iter().map(|part| &**part).collect();
        parts.push(""); // Names nothing in an array.
        let inside = self.document.find(self.store, &parts)?;
        let is_there = inside.part_count == step.parts.len() && inside.is_in_array();
        Ok(is_there.then_some(inside))
    }

    /// `None` too if the document isn't large any more.
    fn splice(
        &self,
        found: &Found,
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

/// The document if it is still large: the other way gives the whole one.
fn large(edited: Edited) -> Option<LargeDocument> {
    match edited {
        Edited::Large(changed) => Some(changed),
        Edited::Small(_) => None,
    }
}

/// `{operator: {path: operand}}`, parsed.
fn update(operator: &str, path: &str, operand: Value<'_>) -> Option<Update> {
    let mut update = DocumentBuilder::new();
    update.begin_document(operator).append(path, operand).end();
    Update::parse(Value::Document(update.build().view()), None::<Array<'_>>).ok()
}

fn null() -> DocumentBuf {
    single(Value::Null)
}

/// A document with one field.
fn single(value: Value<'_>) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append(ELEMENT, value);
    builder.build()
}
