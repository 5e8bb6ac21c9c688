//! Evaluates a filter for a document.
//!
//! 1. A logical node asks its branches, and stops when the answer is known.
//! 2. A path fans out (`Path::visit_reached`); a test is asked for each value that it reaches, for
//!    `None` where the path ends early, and, where the value is an array, for each of its elements
//!    too, unless the test is about arrays as a whole.
//! 3. A document without an index is walked once for all the paths' first names (`FieldScan`), and
//!    conditions that must all hold are asked as it comes to their fields (`conjunction`).
//! 4. A field that is reached through documents alone, and is no array, is compared as it lies
//!    where that can be done ([`on_value`]): most filters ask nothing else.

use std::cell::RefCell;

use frond_doc::field_scan::{FieldScan, ScannedNames};
use frond_doc::path::{Path, Reached};
use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, ElementType, Reference, Value, ValueBuf};

use super::long_values;
use super::pattern::Pattern;
use super::tree::{Condition, Field, Node, Test};
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, Variables, random_share};
use crate::script::Script;

/// The number of branches below which they aren't counted as work, and of those that are a unit
/// each.
const COUNTED_NODES: usize = 16;
const NODE_UNITS: usize = 4;

/// One evaluation: what `$expr` sees, and with what it (or a pattern) failed.
pub(crate) struct Run<'a> {
    variables: &'a Variables,
    /// The walk over the outermost document, if it has no index and the filter's names are
    /// numbered.
    scan: Option<RefCell<FieldScan<'a>>>,
    failure: RefCell<Option<QueryError>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(variables: &'a Variables) -> Run<'a> {
        Run { variables, scan: None, failure: RefCell::new(None) }
    }

    /// As `new`, for a filter whose names are numbered, over `document`.
    pub(super) fn over(
        document: Document<'a>,
        names: &'a ScannedNames,
        variables: &'a Variables,
    ) -> Run<'a> {
        let scan = (!document.is_indexed()).then(|| FieldScan::new(document, names).into());
        Run { variables, scan, failure: RefCell::new(None) }
    }

    /// As `over`, where the walk was begun.
    pub(super) fn after(scan: FieldScan<'a>, variables: &'a Variables) -> Run<'a> {
        Run { variables, scan: Some(scan.into()), failure: RefCell::new(None) }
    }

    /// Returns where the field's path begins in `document`.
    fn start<'d>(&self, field: &Field, document: Document<'d>) -> Start<'d>
    where
        'a: 'd,
    {
        match (field.scanned, &self.scan) {
            (Some(number), Some(scan)) => Start::First(scan.borrow_mut().get(number)),
            _ => Start::Document(document),
        }
    }

    /// The answer, if nothing failed.
    pub(super) fn finish(self, answer: bool) -> Result<bool, QueryError> {
        self.failure.into_inner().map_or(Ok(answer), Err)
    }

    /// The one place where an expression is asked.
    fn is_true(&self, expression: &Expression, document: Document<'_>) -> bool {
        if self.has_failed() {
            return false;
        }
        match expression.evaluate(document, self.variables) {
            Ok(value) => value.is_some_and(|value| value.as_value().is_truthy()),
            Err(error) => self.fail(error),
        }
    }

    /// The one place where a script is asked.
    fn is_script_true(&self, script: &Script, document: Document<'_>) -> bool {
        if self.has_failed() {
            return false;
        }
        let answer = || {
            let bare = self.variables.bare(document);
            let document = bare.as_ref().map_or(document, DocumentBuf::view);
            let whole = self.variables.whole(Evaluated::Borrowed(Value::Document(document)))?;
            let this = whole.or_null().as_document().unwrap_or(document);
            script.holds(self.variables.memory(), this)
        };
        answer().unwrap_or_else(|error| self.fail(error))
    }

    /// The one place where a pattern is asked.
    pub(super) fn matches(&self, pattern: &Pattern, value: Value<'_>) -> bool {
        if self.has_failed() {
            return false;
        }
        pattern.matches(value, self.variables.memory()).unwrap_or_else(|error| self.fail(error))
    }

    /// Applies `test` to one level of the value that a reference stands for.
    pub(super) fn on_opened(
        &self,
        reference: Reference<'_>,
        test: &dyn Fn(Value<'_>) -> bool,
    ) -> bool {
        match self.variables.large().open(reference) {
            Ok(opened) => test(opened.as_value()),
            Err(error) => self.fail(error),
        }
    }

    /// Applies `test` to a value without references.
    pub(super) fn on_whole(&self, value: Value<'_>, test: &dyn Fn(Value<'_>) -> bool) -> bool {
        match self.variables.large().whole_value(value) {
            Ok(whole) => test(whole.as_ref().map_or(value, ValueBuf::as_value)),
            Err(error) => self.fail(error),
        }
    }

    /// Returns how many elements an array has; `None` if it can't be read.
    pub(super) fn element_count(&self, array: Reference<'_>) -> Option<i64> {
        match self.variables.large().element_count(array) {
            Ok(count) => i64::try_from(count).ok(),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// Counts asking so many nodes as work; `false` if the answer doesn't count any more.
    fn keep_going(&self, count: usize) -> bool {
        if count < COUNTED_NODES {
            return true;
        }
        match self.variables.memory().work(count * NODE_UNITS) {
            Ok(()) => !self.has_failed(),
            Err(error) => self.fail(error),
        }
    }

    /// Whether the answer doesn't count any more: nothing that takes time is asked then.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Keeps the first failure; the answer that then goes on doesn't count.
    fn fail(&self, error: QueryError) -> bool {
        self.failure.borrow_mut().get_or_insert(error);
        false
    }
}

/// The start of a path.
#[derive(Clone, Copy)]
enum Start<'d> {
    /// In a document.
    Document(Document<'d>),
    /// At the element that its first part names.
    First(Option<RawElement<'d>>),
    /// At the value that its first part names.
    Value(Value<'d>),
}

impl<'d> Start<'d> {
    fn visit(self, path: &Path, visit: &mut dyn FnMut(Reached<'d>) -> bool) -> bool {
        match self {
            Start::Document(document) => path.visit_reached(document, visit),
            Start::First(element) => {
                path.visit_reached_from(element.and_then(|element| element.decode()), visit)
            }
            Start::Value(value) => path.visit_reached_from(Some(value), visit),
        }
    }

    /// The element that the path names, if it leads through documents alone and that is known at
    /// once.
    fn element(self, path: &Path) -> Option<RawElement<'d>> {
        match self {
            Start::First(element) => element.filter(|_| path.parts().len() == 1),
            Start::Document(document) if document.is_indexed() => path.find(document),
            Start::Document(_) | Start::Value(_) => None,
        }
    }
}

/// Whether `document` passes `node`.
pub(super) fn node(node: &Node, document: Document<'_>, run: &Run<'_>) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) if !run.keep_going(nodes.len()) => {
            false
        }
        Node::And(nodes) => nodes.iter().all(|inner| self::node(inner, document, run)),
        Node::Or(nodes) => nodes.iter().any(|inner| self::node(inner, document, run)),
        Node::Nor(nodes) => !nodes.iter().any(|inner| self::node(inner, document, run)),
        Node::Constant(answer) => *answer,
        Node::Field(field) => {
            let start = run.start(field, document);
            let element = start.element(&field.path);
            let answer = element.and_then(|it| on_value(&field.condition, it.kind, it.value));
            match answer {
                Some(answer) => answer,
                None => condition(&field.condition, &field.path, start, run),
            }
        }
        Node::Expression(expression) => run.is_true(expression, document),
        Node::Schema(schema) => schema.matches(Value::Document(document), run),
        Node::Text(test) => test.passes(document),
        Node::Sample(rate) => random_share() < *rate,
        Node::Script(script) => run.is_script_true(script, document),
    }
}

/// Whether a value fulfils `condition`, where its bytes decide; `None` if it must be decoded.
pub(super) fn on_value(condition: &Condition, kind: ElementType, value: &[u8]) -> Option<bool> {
    if kind == ElementType::Reference {
        return None;
    }
    match condition {
        Condition::All(inner) => {
            for condition in inner {
                if !on_value(condition, kind, value)? {
                    return Some(false);
                }
            }
            Some(true)
        }
        Condition::Not(inner) => on_value(inner, kind, value).map(|holds| !holds),
        Condition::Test(Test::Compare(comparison)) => comparison.matches_bytes(kind, value),
        Condition::Test(Test::Exists) => Some(true),
        Condition::Test(_) => None,
    }
}

/// Whether what `path` reaches from `start` fulfils `condition`.
fn condition(condition: &Condition, path: &Path, start: Start<'_>, run: &Run<'_>) -> bool {
    match condition {
        Condition::All(inner) => inner.iter().all(|inner| self::condition(inner, path, start, run)),
        Condition::Not(inner) => !self::condition(inner, path, start, run),
        Condition::Test(test) => start.visit(path, &mut |reached| test_reached(test, reached, run)),
    }
}

/// Whether one value that a path reached, or an element of it, passes.
pub(super) fn test_reached(test: &Test, reached: Reached<'_>, run: &Run<'_>) -> bool {
    if let Some(Value::Reference(reference)) = reached.value {
        return test_reference(test, reference, reached.is_expandable, run);
    }
    if self::test(test, reached.value, run) {
        return true;
    }
    match reached.value {
        Some(Value::Array(array)) if reached.is_expandable && !test.is_on_whole_arrays() => {
            array.iter().any(|element| self::test(test, Some(element), run))
        }
        _ => false,
    }
}

/// The same of a value that lies in the store.
fn test_reference(
    test: &Test,
    reference: Reference<'_>,
    is_expandable: bool,
    run: &Run<'_>,
) -> bool {
    let large = run.variables.large();
    let answer = large.long(reference, &mut |value| {
        long_values::long_passes(test, &value, is_expandable, run, &mut None)
    });
    match answer {
        Ok(Some(passes)) => passes,
        Ok(None) => run.on_whole(Value::Reference(reference), &|whole| {
            let reached = Reached { value: Some(whole), position: None, is_expandable };
            test_reached(test, reached, run)
        }),
        Err(error) => run.fail(error),
    }
}

/// Whether `value` fulfils `condition` as a field of that value would, by its elements too if it is
/// an array.
pub(super) fn condition_on_field(condition: &Condition, value: Value<'_>, run: &Run<'_>) -> bool {
    self::condition(condition, &Path::new(""), Start::Value(value), run)
}

/// Whether one value by itself fulfils `condition`.
fn condition_on_value(condition: &Condition, value: Option<Value<'_>>, run: &Run<'_>) -> bool {
    match condition {
        Condition::All(inner) => inner.iter().all(|inner| condition_on_value(inner, value, run)),
        Condition::Not(inner) => !condition_on_value(inner, value, run),
        Condition::Test(test) => self::test(test, value, run),
    }
}

/// Whether one value by itself (`None`: absent) passes.
pub(super) fn test(test: &Test, value: Option<Value<'_>>, run: &Run<'_>) -> bool {
    match test {
        Test::Compare(comparison) => return comparison.matches(value),
        Test::In(membership) => {
            let is_match =
                |value| membership.patterns().iter().any(|pattern| run.matches(pattern, value));
            return membership.contains(value) || value.is_some_and(is_match);
        }
        _ => {}
    }
    let Some(value) = value else { return false };
    match test {
        Test::Compare(_) | Test::In(_) => unreachable!("asked above"),
        Test::Pattern(pattern) => run.matches(pattern, value),
        Test::Exists => true,
        Test::Type(types) => types.matches(value),
        Test::Remainder(remainder) => remainder.matches(value),
        Test::Bits(bits) => bits.matches(value),
        Test::Size(size) => match value {
            Value::Array(array) => array.iter().count() as i64 == *size,
            _ => false,
        },
        Test::ElementValue(_) | Test::ElementDocument(_) => value
            .as_array()
            .is_some_and(|array| array.iter().any(|element| is_element(test, element, run))),
        Test::Geo(geo) => geo.matches(value),
        Test::Near(near) => near.distance(value).is_some(),
        Test::Never => false,
    }
}

/// Whether an array's element is one that `$elemMatch` looks for.
pub(super) fn is_element(test: &Test, element: Value<'_>, run: &Run<'_>) -> bool {
    match (test, element) {
        (Test::ElementValue(condition), _) => condition_on_value(condition, Some(element), run),
        (Test::ElementDocument(inner), Value::Document(document)) => node(inner, document, run),
        // A nested array counts as a document whose names are its positions.
        (Test::ElementDocument(inner), Value::Array(array)) => {
            node(inner, array.as_document(), run)
        }
        _ => false,
    }
}
