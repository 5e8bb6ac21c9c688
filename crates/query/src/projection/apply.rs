//! Copying a document as a projection asks. Recursion follows the projection's tree, and arrays in
//! arrays, both bounded by validation.

use frond_doc::{
    Array, Document, DocumentBuf, DocumentBuilder, ElementType, Reference, Value, ValueBuf,
};

use super::{Computed, Kind, Node, Projection, Slice, Tree};
use crate::code::Code;
use crate::error::QueryError;
use crate::filter::Filter;
use crate::large::Large;

/// The number of fields that are counted as work together.
const CHECK_COUNT: usize = 64;

/// The number of elements that are read first of an array that is searched for one that passes.
const FIRST_ELEMENTS_READ: u64 = 64;

/// The context of projecting one document.
#[derive(Clone, Copy)]
struct Scope<'a> {
    projection: &'a Projection,
    root: Document<'a>,
    /// The array position that the positional `$` stands for.
    position: Option<usize>,
    /// Whether it has stood for an element: it does so in the outermost array of its path alone.
    is_placed: bool,
}

/// Projects a whole document.
pub(super) fn document(
    projection: &Projection,
    document: Document<'_>,
    filter: &Filter,
) -> Result<DocumentBuf, QueryError> {
    if projection.is_identity() {
        return Ok(document.to_buf());
    }
    let position = match projection.positional {
        Some(_) => position_in(document, filter, projection.large())?,
        None => None,
    };
    let scope = Scope { projection, root: document, position, is_placed: false };
    let mut out = DocumentBuilder::new();
    fields(&mut out, document, &projection.root, &scope)?;
    Ok(out.build())
}

/// Returns the position that `$` stands for in a document that `filter` let through: found by the
/// values that its paths reach, or by the document with all fields that the filter tests.
fn position_in(
    document: Document<'_>,
    filter: &Filter,
    large: &Large,
) -> Result<Option<usize>, QueryError> {
    if !large.has_references() {
        return Ok(filter.matches_position(document).1);
    }
    if let Some(answer) =
        filter.position_in_pieces(&mut |path, visit| large.reach(document, path, visit))?
    {
        return Ok(answer);
    }
    let opened = large.opened(&filter.needed_paths_by_element(), document)?;
    Ok(filter.matches_position(opened.as_ref().map_or(document, DocumentBuf::view)).1)
}

fn fields(
    out: &mut DocumentBuilder,
    document: Document<'_>,
    tree: &Tree,
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    let is_exclusion = scope.projection.kind == Kind::Exclusion;
    let memory = scope.projection.variables.memory();
    for (position, element) in document.elements().enumerate() {
        if position % CHECK_COUNT == CHECK_COUNT - 1 {
            memory.work(CHECK_COUNT)?;
        }
        match tree.get(element.name) {
            None if !is_exclusion => {}
            None | Some(Node::Include) => {
                out.append_element(&element);
            }
            Some(Node::Exclude | Node::Computed(_) | Node::ElementMatch(_)) => {}
            Some(node) => {
                if let (Some(name), Some(value)) = (element.name(), element.decode()) {
                    named(out, name, value, node, scope)?;
                }
            }
        }
    }
    for (name, node) in tree.fields.iter() {
        match node {
            Node::Computed(computed) => compute(out, name, computed, scope)?,
            Node::ElementMatch(filter) => {
                let large = scope.projection.large();
                let found = match document.get(name) {
                    Some(Value::Array(array)) => first_match(array, filter, large)?,
                    Some(Value::Reference(reference)) if is_array(reference) => {
                        first_match_elsewhere(reference, filter, large)?
                    }
                    _ => None,
                };
                if let Some(found) = found {
                    out.begin_array(name).push(found.as_value()).end();
                }
            }
            Node::Inner(inner) if inner.makes_fields() && document.get(name).is_none() => {
                out.begin_document(name);
                fields(out, Document::empty(), inner, scope)?;
                out.end();
            }
            _ => {}
        }
    }
    Ok(())
}

/// A field that is there, part of which stays.
fn named(
    out: &mut DocumentBuilder,
    name: &str,
    value: Value<'_>,
    node: &Node,
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    match (node, value) {
        (Node::Inner(tree), _) => return inner(out, Some(name), value, tree, scope),
        (Node::Slice(slice), Value::Array(array)) => {
            let (skip, take) = slice.range(array.iter().count());
            out.begin_array(name);
            array.iter().skip(skip).take(take).for_each(|element| {
                out.push(element);
            });
            out.end();
        }
        (Node::Slice(slice), Value::Reference(reference)) if is_array(reference) => {
            let large = scope.projection.large();
            let count = usize::try_from(large.element_count(reference)?).unwrap_or(usize::MAX);
            let (skip, take) = slice.range(count);
            let end = skip.saturating_add(take).min(count);
            let stays = large.elements_at(reference, skip as u64..end as u64)?;
            out.append(name, stays.as_value());
        }
        (Node::Positional, Value::Reference(reference))
            if is_array(reference) && !scope.is_placed =>
        {
            let position = scope.position()? as u64;
            let large = scope.projection.large();
            let found = large.elements_at(reference, position..position.saturating_add(1))?;
            let element = found.as_value().as_array().and_then(|found| found.iter().next());
            out.begin_array(name).push(element.ok_or_else(no_element)?).end();
        }
        (Node::Positional, Value::Array(array)) if !scope.is_placed => {
            let element = positional_element(array.iter(), scope)?;
            out.begin_array(name).push(element).end();
        }
        _ => {
            out.append(name, value);
        }
    }
    Ok(())
}

/// The element that `$` stands for, of those that the projection lets through.
fn positional_element<'a>(
    mut elements: impl Iterator<Item = Value<'a>>,
    scope: &Scope<'_>,
) -> Result<Value<'a>, QueryError> {
    elements.nth(scope.position()?).ok_or_else(no_element)
}

fn no_element() -> QueryError {
    unplaced(51247, "positional operator '.$' element mismatch")
}

fn unplaced(code: i32, message: &str) -> QueryError {
    let message = format!("Executor error during find command :: caused by :: {message}");
    QueryError::new(Code::Location(code), message)
}

impl Scope<'_> {
    fn position(&self) -> Result<usize, QueryError> {
        let message = "positional operator '.$' couldn't find a matching element in the array";
        self.position.ok_or_else(|| unplaced(51246, message))
    }
}

/// A value whose parts the tree names; `name` is `None` for an array's element.
fn inner(
    out: &mut DocumentBuilder,
    name: Option<&str>,
    value: Value<'_>,
    tree: &Tree,
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    match (value, name) {
        (Value::Document(document), _) => {
            match name {
                Some(name) => out.begin_document(name),
                None => out.push_begin_document(),
            };
            fields(out, document, tree, scope)?;
            out.end();
        }
        (Value::Array(array), _) => {
            match name {
                Some(name) => out.begin_array(name),
                None => out.push_begin_array(),
            };
            if tree.has_positional() && !scope.is_placed {
                // As MongoDB counts: what the inclusion drops has no place any more.
                let stays = |element: &Value<'_>| {
                    tree.makes_fields() || matches!(element, Value::Document(_) | Value::Array(_))
                };
                let element = positional_element(array.iter().filter(stays), scope)?;
                inner(out, None, element, tree, &Scope { is_placed: true, ..*scope })?;
            } else {
                for element in array.iter() {
                    inner(out, None, element, tree, scope)?;
                }
            }
            out.end();
        }
        // The tree names parts that a scalar doesn't have; computed ones take its place.
        _ if tree.makes_fields() => {
            return inner(out, name, Value::Document(Document::empty()), tree, scope);
        }
        _ if scope.projection.kind == Kind::Inclusion => {}
        (_, Some(name)) => {
            out.append(name, value);
        }
        (_, None) => {
            out.push(value);
        }
    }
    Ok(())
}

fn compute(
    out: &mut DocumentBuilder,
    name: &str,
    computed: &Computed,
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    match computed {
        Computed::Literal(value) => {
            out.append(name, value.as_value());
        }
        Computed::Expression(expression) => {
            if let Some(value) = expression.carry(scope.root, &scope.projection.variables)? {
                out.append(name, value.as_value());
            }
        }
    }
    Ok(())
}

/// The first element that passes.
fn first_match(
    array: Array<'_>,
    filter: &Filter,
    large: &Large,
) -> Result<Option<ValueBuf>, QueryError> {
    for element in array.iter() {
        let whole = large.whole_value(element)?;
        let element = whole.as_ref().map_or(element, ValueBuf::as_value);
        let mut alone = DocumentBuilder::new();
        alone.begin_array("").push(element).end();
        if filter.matches(alone.build().view()) {
            return Ok(Some(element.to_buf()));
        }
    }
    Ok(None)
}

/// The same of an array in the store: a few elements are read, then always twice as many.
fn first_match_elsewhere(
    array: Reference<'_>,
    filter: &Filter,
    large: &Large,
) -> Result<Option<ValueBuf>, QueryError> {
    let count = large.element_count(array)?;
    let (mut start, mut step) = (0, FIRST_ELEMENTS_READ);
    while start < count {
        let end = start.saturating_add(step).min(count);
        let part = large.elements_at(array, start..end)?;
        if let Some(part) = part.as_value().as_array()
            && let Some(found) = first_match(part, filter, large)?
        {
            return Ok(Some(found));
        }
        (start, step) = (end, step.saturating_mul(2));
    }
    Ok(None)
}

fn is_array(reference: Reference<'_>) -> bool {
    reference.kind() == ElementType::Array
}

impl Slice {
    /// Returns how many elements of `count` are skipped, and how many are taken.
    fn range(&self, count: usize) -> (usize, usize) {
        let skip = match usize::try_from(self.skip) {
            Ok(skip) => skip.min(count),
            Err(_) => count.saturating_sub(self.skip.unsigned_abs() as usize),
        };
        let take = self.limit.map_or(count, |limit| usize::try_from(limit).unwrap_or(0));
        (skip, take)
    }
}
