//! Matches a filter against the pieces of a large document, without assembling it.
//!
//! An answer is `None` where only the document itself decides: of expressions, of comparisons with
//! documents and arrays, of what fails. Of several conditions one may decide, whatever the others
//! would say.

use frond_doc::path::Path;
use frond_doc::pieces::VisitPart;

use super::evaluate::Run;
use super::long_values;
use super::tree::{Condition, Field, Node};

/// Shows what a path reaches until it is enough; returns whether it was, if that can be decided.
pub type Reach<'r, E> = dyn FnMut(&Path, &mut VisitPart<'_>) -> Result<Option<bool>, E> + 'r;

/// Whether a path leads on from an outermost field.
pub(super) fn descends(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(descends),
        Node::Field(field) => is_below(field),
        _ => false,
    }
}

fn is_below(field: &Field) -> bool {
    1 < field.path.parts().len()
}

/// Whether a document passes, by what `reach` shows of its paths.
pub(super) fn node<E>(
    node: &Node,
    run: &Run<'_>,
    reach: &mut Reach<'_, E>,
) -> Result<Option<bool>, E> {
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
    let of_kind = |below| nodes.iter().filter(move |inner| descends(inner) == below);
    let mut result = Some(true);
    for inner in of_kind(false).chain(of_kind(true)) {
        match node(inner, run, reach)? {
            Some(given) if given != answer => return Ok(Some(false)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// Checks whether the values that a path reaches fulfil a condition.
fn condition<E>(
    condition: &Condition,
    path: &Path,
    run: &Run<'_>,
    reach: &mut Reach<'_, E>,
) -> Result<Option<bool>, E> {
    match condition {
        Condition::All(inner) => {
            let mut answer = Some(true);
            for inner in inner {
                match self::condition(inner, path, run, reach)? {
                    Some(false) => return Ok(Some(false)),
                    Some(true) => {}
                    None => answer = None,
                }
            }
            Ok(answer)
        }
        Condition::Not(inner) => Ok(self::condition(inner, path, run, reach)?.map(|holds| !holds)),
        Condition::Test(test) => reach(path, &mut |part| long_values::passes(test, part, run)),
    }
}
