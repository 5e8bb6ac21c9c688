//! `$[]` and `$[x]` on a large document.
//!
//! 1. A filter is asked of each element of the array where it lies: no more is read of the element
//!    than its paths need.
//! 2. Where few elements are taken each step becomes one with the element's position in its path,
//!    so that nothing else of the element is read or written.
//! 3. Where many are, the steps that go through the same array become an update of
//!    `{e: [element]}`, which is applied to each element that a filter takes; those that come out
//!    changed take their places.
//!
//! 4. An array that is no container is changed as one value.
//!
//! So `$[x]` means what it means elsewhere, whatever its filter and however many steps there are,
//! in as many arrays as there are, as long as none lies in another.

use std::borrow::Cow;

use frond_doc::pieces::{Edited, Element, LargeDocument, LocatedElement, Lying, PiecesError};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_query::Update;
use frond_query::expression::Variables;
use frond_query::update::UpdateContext;
use frond_store::ChunkStore;

use super::update::steps::{Step, is_taken};

/// The name of an array with one element, which is looked at by itself.
const ARRAY: &str = "e";
/// The number of elements that change above which the whole document is updated, which costs less
/// then.
const CHANGED_COUNT_MAX: usize = 10_000;

/// The path before the first `$[]` or `$[x]`, and the path from there on; `None` if it has neither.
pub(crate) fn prefix(path: &str) -> Option<(&str, &str)> {
    let start = path.find(".$[")?;
    Some((&path[..start], &path[start + 1..]))
}

/// The steps of an update through the elements of one array.
pub(crate) struct EveryElement<'u> {
    array: Vec<&'u str>,
    steps: Vec<ElementStep<'u>>,
    /// All of them.
    update: Update,
}

/// A step from an array's elements on.
struct ElementStep<'u> {
    operator: &'u str,
    /// The name of the filter that takes elements; empty: all are.
    filter: &'u str,
    /// The path from the element on.
    rest: Vec<&'u str>,
    operand: Value<'u>,
}

impl<'u> ElementStep<'u> {
    /// Parses a path that begins with `$[x]`.
    fn of(operator: &'u str, path: &'u str, operand: Value<'u>) -> Option<ElementStep<'u>> {
        let (filter, rest) = path.strip_prefix("$[")?.split_once(']')?;
        let rest = rest.split('.').skip(1).collect();
        Some(ElementStep { operator, filter, rest, operand })
    }

    /// The step for one element of an array.
    fn at(&self, array: &[&'u str], position: u64) -> Step<'u> {
        let (before, after) = (array.iter().copied(), self.rest.iter().copied());
        let element = [Cow::from(position.to_string())];
        let parts = before.map(Cow::from).chain(element).chain(after.map(Cow::from)).collect();
        Step { operator: self.operator, parts, operand: self.operand }
    }
}

impl<'u> EveryElement<'u> {
    /// Cuts such steps out of an update, by array; `None` if one array lies in another, or the path
    /// to it is none that can be followed.
    pub(crate) fn cut(
        update: Document<'u>,
        array_filters: Option<Array<'_>>,
        variables: &Variables,
    ) -> Option<Vec<EveryElement<'u>>> {
        let mut arrays: Vec<&str> = Vec::new();
        for (_, paths) in update.iter() {
            for (path, _) in paths.as_document()?.iter() {
                if let Some((array, _)) = prefix(path)
                    && !arrays.contains(&array)
                {
                    arrays.push(array);
                }
            }
        }
        let mut every: Vec<EveryElement<'u>> = Vec::new();
        for array in arrays {
            let through = EveryElement::through(array, update, array_filters, variables)?;
            if every.iter().any(|other| other.is_under(&through.array)) {
                return None;
            }
            every.push(through);
        }
        Some(every)
    }

    /// The steps through one array.
    fn through(
        array: &'u str,
        update: Document<'u>,
        array_filters: Option<Array<'_>>,
        variables: &Variables,
    ) -> Option<EveryElement<'u>> {
        let (mut inner, mut steps) = (DocumentBuilder::new(), Vec::new());
        let mut filters_used = String::new();
        for (operator, paths) in update.iter() {
            let mut own = DocumentBuilder::new();
            for (path, operand) in paths.as_document()?.iter() {
                let Some((_, after)) = prefix(path).filter(|(before, _)| *before == array) else {
                    continue;
                };
                filters_used.push_str(after);
                steps.push(ElementStep::of(operator, after, operand)?);
                own.append(&format!("{ARRAY}.{after}"), operand);
            }
            let own = own.build();
            if !own.view().is_empty() {
                inner.append(operator, Value::Document(own.view()));
            }
        }
        let array: Vec<&str> = array.split('.').collect();
        if array.iter().any(|part| part.is_empty() || part.starts_with('$')) {
            return None;
        }
        let filters = array_filters.map(|filters| used_by(filters, &filters_used));
        let filters = filters.as_ref().and_then(|filters| filters.as_value().as_array());
        let inner = inner.build();
        let update = Update::parse(Value::Document(inner.view()), filters).ok()?;
        Some(EveryElement { array, steps, update: update.with_variables(variables) })
    }

    /// Whether a path lies at, above or below the array.
    pub(crate) fn is_under<P: AsRef<str>>(&self, parts: &[P]) -> bool {
        self.array.iter().zip(parts).all(|(own, other)| *own == other.as_ref())
    }

    /// The steps of each element that is taken; `None` if they are more than `max`, or only the
    /// elements themselves decide.
    pub(super) fn expand(
        &self,
        store: &dyn ChunkStore,
        document: &LargeDocument,
        max: usize,
    ) -> Result<Option<Vec<Step<'u>>>, PiecesError> {
        let (mut steps, mut is_refused) = (Vec::new(), false);
        let Some(inside) = self.inside(store, document)? else { return Ok(None) };
        document.visit_elements(store, &inside, &mut |position, element| {
            for step in &self.steps {
                let takes = match step.filter {
                    "" => Some(true),
                    filter => self.update.takes_element(filter, element),
                };
                if takes == Some(true) {
                    steps.push(step.at(&self.array, position));
                }
                is_refused |= takes.is_none();
            }
            is_refused |= max < steps.len();
            is_refused
        })?;
        is_refused |= !steps.iter().all(is_taken);
        Ok((!is_refused).then_some(steps))
    }

    /// Into the array, if it is one whose elements are named by their positions.
    fn inside(
        &self,
        store: &dyn ChunkStore,
        document: &LargeDocument,
    ) -> Result<Option<LocatedElement>, PiecesError> {
        let mut parts = self.array.clone();
        parts.push(""); // Names nothing in an array.
        let inside = document.find(store, &parts)?;
        let is_there = inside.part_count == self.array.len() && inside.is_in_array();
        Ok(is_there.then_some(inside))
    }

    /// Changes the elements; `None` if the whole document is needed.
    pub(crate) fn apply(
        &self,
        store: &dyn ChunkStore,
        document: &LargeDocument,
        context: &UpdateContext,
    ) -> Result<Option<LargeDocument>, PiecesError> {
        let Some(inside) = self.inside(store, document)? else {
            return self.apply_to_short(store, document, context);
        };
        let mut changed: Vec<(u64, DocumentBuf)> = Vec::new();
        let mut is_refused = false;
        document.visit_elements(store, &inside, &mut |position, element| {
            if self.update.leaves_element(ARRAY, element) {
                return false;
            }
            let mut change = |value: Value<'_>| {
                let mut before = DocumentBuilder::new();
                before.begin_array(ARRAY).push(value).end();
                match self.update.apply(before.build().view(), context) {
                    Ok(Some(after)) => changed.push((position, after)),
                    Ok(None) => {}
                    Err(_) => is_refused = true,
                }
                is_refused |= CHANGED_COUNT_MAX < changed.len();
                is_refused
            };
            match element {
                Lying::Here(value) => change(value),
                Lying::Elsewhere(long) => long.test_value(change).unwrap_or(true),
            }
        })?;
        if is_refused {
            return Ok(None);
        }
        let mut splices = Vec::with_capacity(changed.len());
        for (position, after) in &changed {
            let Some(Value::Array(after)) = after.get(ARRAY) else { return Ok(None) };
            let elements: Vec<Element<'_>> = after.elements().collect();
            let splice = document.prepare(store, &inside, *position, 1, &elements)?;
            let Some(splice) = splice.filter(|_| elements.len() == 1) else { return Ok(None) };
            splices.push(splice);
        }
        if splices.is_empty() {
            return Ok(Some(*document));
        }
        match document.splice_all(store, splices)? {
            Edited::Large(changed) => Ok(Some(changed)),
            Edited::Small(_) => Ok(None),
        }
    }
}

impl EveryElement<'_> {
    /// Changes an array that is no container, as one value; `None` if the whole document is needed.
    fn apply_to_short(
        &self,
        store: &dyn ChunkStore,
        document: &LargeDocument,
        context: &UpdateContext,
    ) -> Result<Option<LargeDocument>, PiecesError> {
        let found = document.find(store, &self.array)?;
        let (Some((position, item)), Some(name)) = (&found.item, self.array.last()) else {
            return Ok(None);
        };
        if found.part_count + 1 != self.array.len() || !found.is_plain() || item.is_container() {
            return Ok(None);
        }
        let value = document.value_of(store, item)?;
        let mut before = DocumentBuilder::new();
        before.append(ARRAY, value.as_value());
        let after = match self.update.apply(before.build().view(), context) {
            Ok(Some(after)) => after,
            Ok(None) => return Ok(Some(*document)),
            // What is wrong with it is said of the whole document.
            Err(_) => return Ok(None),
        };
        let Some(after) = after.get(ARRAY) else { return Ok(None) };
        let mut element = DocumentBuilder::new();
        element.append(name, after);
        let element = element.build();
        let elements: Vec<Element<'_>> = element.view().elements().collect();
        let Some(splice) = document.prepare(store, &found, *position, 1, &elements)? else {
            return Ok(None);
        };
        match document.splice_all(store, vec![splice])? {
            Edited::Large(changed) => Ok(Some(changed)),
            Edited::Small(_) => Ok(None),
        }
    }
}

/// The array filters whose names stand in `paths`: others would be refused as unused.
fn used_by(filters: Array<'_>, paths: &str) -> ValueBuf {
    let mut out = DocumentBuilder::new();
    out.begin_array("");
    for filter in filters.iter() {
        let name = filter.as_document().and_then(|filter| Some(filter.iter().next()?.0.to_owned()));
        let name = name.as_deref().and_then(|name| name.split('.').next()).unwrap_or_default();
        // A filter that begins otherwise (`$or`) is kept: it is parsed as it would be with all
        // others.
        if name.starts_with('$') || paths.contains(&format!("$[{name}]")) {
            out.push(filter);
        }
    }
    out.end();
    ValueBuf::from_only_field(out.build())
}
