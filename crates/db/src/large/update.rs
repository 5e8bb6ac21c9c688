//! Update operators on a large document, piece by piece.
//!
//! 1. The paths are taken in the order in which an update makes new fields (paths of one update
//!    never lie in one another). Those that lead to different elements are looked up in the same
//!    document and changed in it at once ([`CombinedSplices`]); operators on containers change it
//!    by themselves.
//! 2. A path is followed through containers. The element that it comes to becomes a document of its
//!    own, `{name: value}`; the operator is applied to that with what is left of the path, and the
//!    element that comes out takes its place. So every operator means what it means elsewhere.
//! 3. Where the path ends at a container, `$set`, `$unset`, `$push` (with `$each`, `$position` and
//!    `$slice`; with `$sort` see [`ordered`](super::ordered_array)) and `$pop` do without its
//!    content; `$pull`, `$pullAll` and `$addToSet` look at its elements one by one; any other
//!    operator reads the container.
//! 4. A positional `$` is the number that the filter found. `$[]` and `$[x]` look at the elements
//!    of their array one by one ([`every`](super::every)). `$rename` moves an item as it is.
//!
//! Anything else is left to the update of the whole document: many paths, `_id`, arrays that would
//! be padded, `$[x]` in arrays one of which lies in another, and whatever fails or is to stop, so
//! that it fails with the same words.

mod combined_splices;
mod containers;
mod rename;
pub(super) mod steps;

use frond_doc::pieces::{Edited, Element, LargeDocument, LocatedElement, PiecesError, Splice};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Update;
use frond_query::expression::Variables;
use frond_query::update::UpdateContext;
use frond_store::ChunkStore;

use super::every;
use combined_splices::CombinedSplices;
use rename::renamed;
use steps::Step;

/// Operators that do without the content of an array that is a container, or look at it piece by
/// piece.
const CONTAINER_OPERATORS: [&str; 5] = ["$addToSet", "$pop", "$pull", "$pullAll", "$push"];
/// A step looks its path up from the first field on. Above so many, or more than one for so many
/// bytes, one pass over the whole document costs less.
const STEPS_MAX: usize = 32;
const STEP_BYTES: u64 = 16 << 10;
const SET: &str = "$set";
const UNSET: &str = "$unset";
const RENAME: &str = "$rename";
/// The name of an element that is looked at by itself.
const ELEMENT: &str = "e";

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
    let Some(mut steps) = steps::steps(update, context.position) else { return Ok(None) };
    let max = usize::try_from(document.bytes() / STEP_BYTES).unwrap_or(usize::MAX).max(STEPS_MAX);
    if steps.len() > max {
        return Ok(None);
    }
    if steps.iter().any(|step| every.iter().any(|every| every.is_under(&step.parts))) {
        return Ok(None);
    }
    let mut current = *document;
    for every in &every {
        if let Some(expanded) = every.expand(store, &current, max - steps.len())? {
            steps.extend(expanded);
            continue;
        }
        match every.apply(store, &current, context)? {
            Some(changed) => current = changed,
            None => return Ok(None),
        }
    }
    if !every.is_empty() && !steps::sort(&mut steps) {
        return Ok(None);
    }
    let mut together =
        CombinedSplices { store, document: current, places: Vec::new(), splices: Vec::new() };
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

/// The outcome of a step.
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
    /// Returns the change that a step makes to the element that its path leads to.
    fn splice_of(
        &self,
        step: &Step<'_>,
        parts: &[&str],
        found: &LocatedElement,
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
    fn set(
        &self,
        found: &LocatedElement,
        name: &str,
        value: Value<'_>,
    ) -> Result<Stepped, PiecesError> {
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
    fn replaced(
        &self,
        found: &LocatedElement,
        elements: &[Element<'_>],
    ) -> Result<Stepped, PiecesError> {
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
        found: &LocatedElement,
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
}

/// `{operator: {path: operand}}`, parsed.
fn update(operator: &str, path: &str, operand: Value<'_>) -> Option<Update> {
    let mut update = DocumentBuilder::new();
    update.begin_document(operator).append(path, operand).end();
    Update::parse(Value::Document(update.build().view()), None::<Array<'_>>).ok()
}

/// The document if it is still large: the other way gives the whole one.
fn large(edited: Edited) -> Option<LargeDocument> {
    match edited {
        Edited::Large(changed) => Some(changed),
        Edited::Small(_) => None,
    }
}

/// A document with one field.
fn single(value: Value<'_>) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append(ELEMENT, value);
    builder.build()
}

fn null() -> DocumentBuf {
    single(Value::Null)
}
