//! Whether a document passes that isn't put together: by what paths reach in its pieces, or in a
//! value that stands for one.
//!
//! An answer is `None` where only the document itself tells: of expressions, of values that are
//! long, of what fails. Of several conditions one may tell, whatever the others would say.

use frond_doc::path::{Path, Reached};

use super::Filter;
use super::evaluate::{Run, test_reached};
use super::position::of_reached;
use super::tree::{Condition, Field, Node};

/// The position of the element that matched, if one did.
pub type Position = Option<usize>;

/// Shows what a path reaches until it is enough; tells whether it was, if that can be told.
pub type Reach<'r, E> =
    dyn FnMut(&Path, &mut dyn FnMut(Reached<'_>) -> bool) -> Result<Option<bool>, E> + 'r;

impl Filter {
    /// Whether a path of the filter leads on from an outermost field: else a document's outermost
    /// fields are all that need be read.
    pub fn asks_below(&self) -> bool {
        asks_below(&self.root)
    }

    /// Whether a document passes of which `reach` shows what paths reach, if that tells.
    ///
    /// # Errors
    /// What `reach` fails with.
    pub fn passes_by<E>(&self, reach: &mut Reach<'_, E>) -> Result<Option<bool>, E> {
        let run = Run::new(&self.variables);
        let told = node(&self.root, &run, reach)?;
        Ok(told.filter(|_| !run.has_failed()))
    }

    /// As [`Filter::matches_position`] of a document that passes, of which `reach` shows what paths
    /// reach; `None` if that doesn't tell.
    ///
    /// # Errors
    /// What `reach` fails with.
    pub fn position_by<E>(&self, reach: &mut Reach<'_, E>) -> Result<Option<Position>, E> {
        let run = Run::new(&self.variables);
        let told = position(&self.root, &run, reach)?;
        Ok(told.filter(|_| !run.has_failed()))
    }
}

fn asks_below(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(asks_below),
        Node::Field(field) => is_below(field),
        _ => false,
    }
}

fn is_below(field: &Field) -> bool {
    1 < field.path.parts().len()
}

fn node<E>(node: &Node, run: &Run<'_>, reach: &mut Reach<'_, E>) -> Result<Option<bool>, E> {
    match node {
        Node::And(nodes) => all(nodes, true, run, reach),
        Node::Or(nodes) => Ok(all(nodes, false, run, reach)?.map(|none| !none)),
        Node::Nor(nodes) => all(nodes, false, run, reach),
        Node::Constant(answer) => Ok(Some(*answer)),
        Node::Field(field) => condition(&field.condition, &field.path, run, reach),
        Node::Expression(_)
        | Node::Schema(_)
        | Node::Sample(_)
        | Node::Script(_)
        | Node::Text(_) => Ok(None),
    }
}

/// Whether all give `answer`. Those that ask for outermost fields are asked first: others may read
/// much.
fn all<E>(
    nodes: &[Node],
    answer: bool,
    run: &Run<'_>,
    reach: &mut Reach<'_, E>,
) -> Result<Option<bool>, E> {
    let of_kind = |below| nodes.iter().filter(move |inner| asks_below(inner) == below);
    let mut told = Some(true);
    for inner in of_kind(false).chain(of_kind(true)) {
        match node(inner, run, reach)? {
            Some(given) if given != answer => return Ok(Some(false)),
            Some(_) => {}
            None => told = None,
        }
    }
    Ok(told)
}

/// Whether what a path reaches fulfils a condition.
fn condition<E>(
    condition: &Condition,
    path: &Path,
    run: &Run<'_>,
    reach: &mut Reach<'_, E>,
) -> Result<Option<bool>, E> {
    match condition {
        Condition::All(inner) => {
            let mut told = Some(true);
            for inner in inner {
                match self::condition(inner, path, run, reach)? {
                    Some(false) => return Ok(Some(false)),
                    Some(true) => {}
                    None => told = None,
                }
            }
            Ok(told)
        }
        Condition::Not(inner) => Ok(self::condition(inner, path, run, reach)?.map(|holds| !holds)),
        Condition::Test(test) => reach(path, &mut |reached| test_reached(test, reached, run)),
    }
}

/// As [`super::position::node`].
fn position<E>(
    node: &Node,
    run: &Run<'_>,
    reach: &mut Reach<'_, E>,
) -> Result<Option<Position>, E> {
    match node {
        Node::And(nodes) => {
            first_told(nodes.iter().rev(), &mut |inner| position(inner, run, reach))
        }
        Node::Or(nodes) => {
            first_told(nodes.iter(), &mut |inner| match self::node(inner, run, reach)? {
                Some(true) => position(inner, run, reach),
                Some(false) => Ok(Some(None)),
                None => Ok(None),
            })
        }
        Node::Field(field) => of_condition(&field.condition, &field.path, run, reach),
        Node::Nor(_)
        | Node::Constant(_)
        | Node::Expression(_)
        | Node::Schema(_)
        | Node::Sample(_)
        | Node::Script(_)
        | Node::Text(_) => Ok(Some(None)),
    }
}

/// The first position that one of them has; `None` once one doesn't tell.
fn first_told<T, E>(
    mut all: impl Iterator<Item = T>,
    position: &mut dyn FnMut(T) -> Result<Option<Position>, E>,
) -> Result<Option<Position>, E> {
    all.find_map(|one| position(one).map(|told| (told != Some(None)).then_some(told)).transpose())
        .unwrap_or(Ok(Some(None)))
}

fn of_condition<E>(
    condition: &Condition,
    path: &Path,
    run: &Run<'_>,
    reach: &mut Reach<'_, E>,
) -> Result<Option<Position>, E> {
    match condition {
        Condition::All(inner) => {
            first_told(inner.iter().rev(), &mut |inner| of_condition(inner, path, run, reach))
        }
        Condition::Not(_) => Ok(Some(None)),
        Condition::Test(test) => {
            let mut found = None;
            let told = reach(path, &mut |reached| of_reached(test, reached, run, &mut found))?;
            Ok(told.map(|_| found))
        }
    }
}
