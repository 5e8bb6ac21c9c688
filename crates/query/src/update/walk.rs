//! One pass that copies a document and edits it.
//!
//! At each place, [`value`] gets the nodes of the tree that lead there. There may be several: `$`
//! and `1` can name the same element, `$[x]` and `$[y]` too. Below they go on together; two of
//! them that end at the same place are a conflict that only the document could show.
//!
//! *Invariants*: the recursion follows the tree, whose depth is bounded by the paths' parts.

use std::borrow::Cow;
use std::collections::HashMap;

use frond_doc::builder::position_name;
use frond_doc::{Array, Document, DocumentBuilder, Value};

use super::modifier::Modifier;
use super::scope::{Scope, Slot, Trail};
use super::tree::{Branch, Node, Step, conflict};
use crate::code::Code;
use crate::error::QueryError;
use crate::text;

/// An array is padded with at most so many nulls.
const PADDING_COUNT_MAX: usize = 1_500_000;
/// The number of edits of one document above which they are looked up by a hash.
const LINEAR_COUNT_MAX: usize = 8;

/// A field or element that is edited.
struct Edit<'t> {
    name: Cow<'t, str>,
    nodes: Vec<&'t Node>,
}

/// Edits the whole document.
pub(super) fn root(
    out: &mut DocumentBuilder,
    root: &Branch,
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    fields(out, scope.document, &[root], scope, &mut Trail::default())
}

/// Copies a document's fields and edits those that the branches name.
fn fields(
    out: &mut DocumentBuilder,
    document: Document<'_>,
    branches: &[&Branch],
    scope: &Scope<'_>,
    trail: &mut Trail,
) -> Result<(), QueryError> {
    let edits = named_edits(branches, document, scope, trail)?;
    let by_name: HashMap<&[u8], usize> = if edits.len() > LINEAR_COUNT_MAX {
        edits.iter().enumerate().map(|(place, edit)| (edit.name.as_bytes(), place)).collect()
    } else {
        HashMap::new()
    };
    let mut is_done = vec![false; edits.len()];
    for element in document.elements() {
        let place = if by_name.is_empty() {
            edits.iter().position(|edit| edit.name.as_bytes() == element.name)
        } else {
            by_name.get(element.name).copied()
        };
        // A name that stands twice is edited once, where queries see it.
        match place.filter(|place| !is_done[*place]) {
            Some(place) => {
                is_done[place] = true;
                value(out, &edits[place], element.decode(), Holder::Document, scope, trail)?;
            }
            None => {
                out.append_element(&element);
            }
        }
    }
    for (edit, _) in edits.iter().zip(is_done).filter(|(_, is_done)| !is_done) {
        value(out, edit, None, Holder::Document, scope, trail)?;
    }
    Ok(())
}

/// The edits of a document, in the order in which new fields are made.
fn named_edits<'t>(
    branches: &[&'t Branch],
    document: Document<'_>,
    scope: &Scope<'_>,
    trail: &Trail,
) -> Result<Vec<Edit<'t>>, QueryError> {
    let mut edits: Vec<Edit<'t>> = Vec::new();
    for (step, node) in branches.iter().flat_map(|branch| branch.steps()) {
        let name = match step {
            Step::Name(name) => Cow::Borrowed(name.as_str()),
            Step::Number(number) => Cow::Owned(number.to_string()),
            Step::Positional => Cow::Owned(position(scope)?.to_string()),
            Step::Every | Step::Filtered(_) => return Err(no_array(document, trail)),
        };
        // Only several branches, or a `$`, can name one field twice.
        let is_repeatable = branches.len() > 1 || *step == Step::Positional;
        match edits.iter_mut().find(|edit| is_repeatable && edit.name == name) {
            Some(edit) => edit.nodes.push(node),
            None => edits.push(Edit { name, nodes: vec![node] }),
        }
    }
    Ok(edits)
}

/// Returns the array position that `$` stands for.
pub(super) fn position(scope: &Scope<'_>) -> Result<usize, QueryError> {
    scope.context.position.ok_or_else(|| {
        QueryError::new(
            Code::BadValue,
            "The positional operator did not find the match needed from the query.",
        )
    })
}

fn no_array(document: Document<'_>, trail: &Trail) -> QueryError {
    let path = trail.dotted();
    let message = if document.is_empty() {
        format!("The path '{path}' must exist in the document in order to apply array updates.")
    } else {
        let last = trail.0.last().map_or("", String::as_str);
        let shown = text::field(last, Value::Document(document));
        format!("Cannot apply array updates to non-array element {shown}")
    };
    QueryError::new(Code::BadValue, message)
}

/// The holder of a value: only a document can lose one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Document,
    Array,
}

/// Edits one value, or makes it.
fn value(
    out: &mut DocumentBuilder,
    edit: &Edit<'_>,
    current: Option<Value<'_>>,
    holder: Holder,
    scope: &Scope<'_>,
    trail: &mut Trail,
) -> Result<(), QueryError> {
    trail.0.push(edit.name.to_string());
    let result = value_on_trail(out, edit, current, holder, scope, trail);
    trail.0.pop();
    result
}

fn value_on_trail(
    out: &mut DocumentBuilder,
    edit: &Edit<'_>,
    current: Option<Value<'_>>,
    holder: Holder,
    scope: &Scope<'_>,
    trail: &mut Trail,
) -> Result<(), QueryError> {
    if let [Node::Leaf(modifier)] = edit.nodes.as_slice() {
        let is_element = holder == Holder::Array;
        let slot = Slot { out, name: &edit.name, current, is_element };
        return modifier.apply(slot, scope, trail);
    }
    let mut branches = Vec::with_capacity(edit.nodes.len());
    for node in &edit.nodes {
        match node {
            Node::Branch(branch) => branches.push(branch),
            Node::Leaf(_) => return Err(conflict(&trail.dotted(), &trail.dotted())),
        }
    }
    match current {
        Some(Value::Document(document)) => {
            out.begin_document(&edit.name);
            fields(out, document, &branches, scope, trail)?;
            out.end();
        }
        Some(Value::Array(array)) => {
            out.begin_array(&edit.name);
            elements(out, array, &branches, scope, trail)?;
            out.end();
        }
        Some(scalar) => {
            if let Some(step) = first_blocked(&branches, scope) {
                return Err(not_viable(step, &edit.name, scalar, scope));
            }
            out.append(&edit.name, scalar);
        }
        None if first_created(&branches, scope).is_some() => {
            out.begin_document(&edit.name);
            fields(out, Document::empty(), &branches, scope, trail)?;
            out.end();
        }
        None => {}
    }
    Ok(())
}

/// The first step below which something would be made where nothing is.
fn first_created<'t>(branches: &[&'t Branch], scope: &Scope<'_>) -> Option<&'t Step> {
    first_step(branches, &|modifier| modifier.creates(scope))
}

/// The first step that can't be taken from a value that has no parts.
fn first_blocked<'t>(branches: &[&'t Branch], scope: &Scope<'_>) -> Option<&'t Step> {
    first_step(branches, &|modifier| modifier.creates(scope) || modifier.needs_possible_path())
}

/// The first step below which a modifier is as `wanted`.
fn first_step<'t>(branches: &[&'t Branch], wanted: &dyn Fn(&Modifier) -> bool) -> Option<&'t Step> {
    let is_wanted = |node: &Node| match node {
        Node::Leaf(modifier) => wanted(modifier),
        Node::Branch(branch) => first_step(&[branch], wanted).is_some(),
    };
    branches
        .iter()
        .flat_map(|branch| branch.steps())
        // Array steps want an array: whether there is one is asked when they are taken.
        .find(|(step, node)| matches!(step, Step::Every | Step::Filtered(_)) || is_wanted(node))
        .map(|(step, _)| step)
}

fn creates(node: &Node, scope: &Scope<'_>) -> bool {
    match node {
        Node::Leaf(modifier) => modifier.creates(scope),
        Node::Branch(branch) => first_created(&[branch], scope).is_some(),
    }
}

fn is_blocked(node: &Node, scope: &Scope<'_>) -> bool {
    match node {
        Node::Leaf(modifier) => modifier.creates(scope) || modifier.needs_possible_path(),
        Node::Branch(branch) => first_blocked(&[branch], scope).is_some(),
    }
}

fn not_viable(step: &Step, name: &str, value: Value<'_>, scope: &Scope<'_>) -> QueryError {
    let shown = text::field(name, value);
    let step = match step {
        Step::Name(name) => name.clone(),
        Step::Number(number) => number.to_string(),
        Step::Positional => scope.context.position.unwrap_or_default().to_string(),
        Step::Every | Step::Filtered(_) => {
            let message = format!("Cannot apply array updates to non-array element {shown}");
            return QueryError::new(Code::BadValue, message);
        }
    };
    QueryError::new(
        Code::PathNotViable,
        format!("Cannot create field '{step}' in element {{{shown}}}"),
    )
}

/// Copies an array's elements and edits those that the branches name.
fn elements(
    out: &mut DocumentBuilder,
    array: Array<'_>,
    branches: &[&Branch],
    scope: &Scope<'_>,
    trail: &mut Trail,
) -> Result<(), QueryError> {
    let mut by_position: Vec<(usize, &Node)> = Vec::new();
    let mut by_filter: Vec<(&Step, &Node)> = Vec::new();
    for (step, node) in branches.iter().flat_map(|branch| branch.steps()) {
        match step {
            Step::Number(number) => by_position.push((*number, node)),
            Step::Positional => by_position.push((position(scope)?, node)),
            Step::Every | Step::Filtered(_) => by_filter.push((step, node)),
            Step::Name(_) if is_blocked(node, scope) => {
                let name = trail.0.last().map_or("", String::as_str);
                return Err(not_viable(step, name, Value::Array(array), scope));
            }
            Step::Name(_) => {}
        }
    }
    by_position.sort_by_key(|(position, _)| *position);
    let mut next = by_position.into_iter().peekable();
    let mut count = 0;
    let mut digits = [0; 20];
    let memory = scope.variables.memory();
    for element in array.as_document().elements() {
        memory.work(1)?;
        let mut nodes = Vec::new();
        while let Some((_, node)) = next.next_if(|(position, _)| *position == count) {
            nodes.push(node);
        }
        let current = element.decode();
        for (step, node) in &by_filter {
            let is_meant = match (step, current) {
                (Step::Filtered(name), Some(element)) => scope.filters.matches(name, element)?,
                _ => true,
            };
            nodes.extend(is_meant.then_some(*node));
        }
        if nodes.is_empty() {
            out.append_element(&element);
        } else {
            let name = Cow::Borrowed(position_name(count, &mut digits));
            value(out, &Edit { name, nodes }, current, Holder::Array, scope, trail)?;
        }
        count += 1;
    }
    append_elements(out, count, next.collect(), scope, trail)
}

/// Makes elements behind the array's end, with nulls before them.
fn append_elements(
    out: &mut DocumentBuilder,
    mut count: usize,
    new: Vec<(usize, &Node)>,
    scope: &Scope<'_>,
    trail: &mut Trail,
) -> Result<(), QueryError> {
    let mut digits = [0; 20];
    let mut new = new.into_iter().filter(|(_, node)| creates(node, scope)).peekable();
    while let Some((position, node)) = new.next() {
        if position - count > PADDING_COUNT_MAX {
            return Err(QueryError::new(
                Code::CannotBackfillArray,
                format!("can't backfill more than {PADDING_COUNT_MAX} elements"),
            ));
        }
        while count < position {
            scope.variables.memory().work(1)?;
            out.append(position_name(count, &mut digits), Value::Null);
            count += 1;
        }
        let mut nodes = vec![node];
        while let Some((_, node)) = new.next_if(|(other, _)| *other == position) {
            nodes.push(node);
        }
        let name = Cow::Borrowed(position_name(count, &mut digits));
        value(out, &Edit { name, nodes }, None, Holder::Array, scope, trail)?;
        count += 1;
    }
    Ok(())
}
