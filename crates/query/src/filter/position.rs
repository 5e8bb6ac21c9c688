//! Finds the array element that matched: `$` stands for it in updates and projections.
//!
//! It is found in a second pass over a document that is known to pass, since it is rarely wanted.
//! The *outermost* array on the path counts. Of several conditions that pass through arrays, the
//! last one decides, as in MongoDB (which calls it undefined).

use std::convert::Infallible;

use frond_doc::path::{Path, Reached};
use frond_doc::pieces::{ReachedPart, VisitPart};
use frond_doc::{Document, Value};

use super::evaluate::{self, Run};
use super::long_values;
use super::tree::{Condition, Node, Test};

/// The position of the element that matched, if one did.
pub type Position = Option<usize>;

/// A document, whole or in pieces, as its filter asks for it.
pub(super) trait Subject {
    /// The reason why it can't be read.
    type Error;

    /// Whether it passes; `None` where that can't be decided.
    fn passes(&mut self, node: &Node, run: &Run<'_>) -> Result<Option<bool>, Self::Error>;

    /// Shows what a path reaches until it is enough; returns whether it was, if that can be
    /// decided.
    fn reach(
        &mut self,
        path: &Path,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, Self::Error>;
}

impl Subject for Document<'_> {
    type Error = Infallible;

    fn passes(&mut self, node: &Node, run: &Run<'_>) -> Result<Option<bool>, Infallible> {
        Ok(Some(evaluate::node(node, *self, run)))
    }

    fn reach(
        &mut self,
        path: &Path,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, Infallible> {
        let visit = &mut |reached: Reached<'_>| visit(ReachedPart::Value(reached)) == Some(true);
        Ok(Some(path.visit_reached(*self, visit)))
    }
}

/// The position of the element that made `document` pass `node`.
pub(super) fn of_document(node: &Node, mut document: Document<'_>, run: &Run<'_>) -> Position {
    let Ok(answer) = of_node(node, run, &mut document);
    answer.flatten()
}

/// The position of the element that made `subject` pass `node`; `None` if that can't be decided.
pub(super) fn of_node<S: Subject>(
    node: &Node,
    run: &Run<'_>,
    subject: &mut S,
) -> Result<Option<Position>, S::Error> {
    match node {
        Node::And(nodes) => first_known(nodes.iter().rev(), |inner| of_node(inner, run, subject)),
        Node::Or(nodes) => first_known(nodes.iter(), |inner| match subject.passes(inner, run)? {
            Some(true) => of_node(inner, run, subject),
            Some(false) => Ok(Some(None)),
            None => Ok(None),
        }),
        Node::Field(field) => of_condition(&field.condition, &field.path, run, subject),
        Node::Nor(_)
        | Node::Constant(_)
        | Node::Expression(_)
        | Node::Schema(_)
        | Node::Sample(_)
        | Node::Script(_)
        | Node::Text(_) => Ok(Some(None)),
    }
}

fn of_condition<S: Subject>(
    condition: &Condition,
    path: &Path,
    run: &Run<'_>,
    subject: &mut S,
) -> Result<Option<Position>, S::Error> {
    match condition {
        Condition::All(inner) => {
            first_known(inner.iter().rev(), |inner| of_condition(inner, path, run, subject))
        }
        Condition::Not(_) => Ok(Some(None)),
        Condition::Test(test) => {
            let mut found = None;
            let answer = subject.reach(path, &mut |part| of_part(test, part, run, &mut found))?;
            Ok(answer.map(|_| found))
        }
    }
}

/// The first position that one of them has; `None` once one is undecided.
fn first_known<T, E>(
    mut all: impl Iterator<Item = T>,
    mut position: impl FnMut(T) -> Result<Option<Position>, E>,
) -> Result<Option<Position>, E> {
    all.find_map(|one| {
        position(one).map(|answer| (answer != Some(None)).then_some(answer)).transpose()
    })
    .unwrap_or(Ok(Some(None)))
}

/// Checks whether the value that a path reached, or an element of it, passes; notes its position,
/// if that is known.
fn of_part(
    test: &Test,
    part: ReachedPart<'_>,
    run: &Run<'_>,
    found: &mut Option<usize>,
) -> Option<bool> {
    match (part, test) {
        (ReachedPart::Value(reached), _) => Some(of_reached(test, reached, run, found)),
        // Their elements are asked too, here.
        (ReachedPart::Long { .. }, Test::Size(_) | Test::Type(_)) => None,
        (ReachedPart::Long { value, position, is_expandable }, _) => {
            let passes = long_values::long_passes(test, &value, is_expandable, run, found);
            *found = position.or(*found).filter(|_| passes == Some(true));
            passes
        }
    }
}

/// Whether what a path reached, or an element of it, passes; notes its position.
fn of_reached(test: &Test, reached: Reached<'_>, run: &Run<'_>, found: &mut Option<usize>) -> bool {
    if !matches!(test, Test::ElementValue(_) | Test::ElementDocument(_)) {
        return reached.visit_leaves(&mut |leaf| {
            let passes = evaluate::test(test, leaf.value, run);
            *found = leaf.position.filter(|_| passes);
            passes
        });
    }
    let Some(Value::Array(array)) = reached.value else { return false };
    let place = array.iter().position(|element| evaluate::is_element(test, element, run));
    *found = place.map(|place| reached.position.unwrap_or(place));
    place.is_some()
}
