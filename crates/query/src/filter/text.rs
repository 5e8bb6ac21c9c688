//! `$text`: where it may stand, and what it is asked with.
//!
//! A parsed filter knows what is searched for ([`TextTest::Asked`]); what a text index files is
//! known to the planner of the search, which passes it on
//! ([`Filter::with_text`](super::Filter::with_text)). Before that, every document passes: a scan
//! has to find them by the index, and that is why only
//! [`Filter::parse_search`](super::Filter::parse_search) takes a `$text`.

use std::sync::Arc;

use frond_doc::Document;

use super::operand::bad_value;
use super::tree::{Condition, Node, Test};
use crate::error::QueryError;
use crate::search::{TextMatcher, TextSearch};

/// A `$text`.
#[derive(Clone, Debug)]
pub(crate) enum TextTest {
    /// The search as it was requested.
    Search(Arc<TextSearch>),
    /// The same, asked of what an index files.
    Bound(Arc<TextMatcher>),
}

impl TextTest {
    /// Whether `document` passes.
    pub(crate) fn passes(&self, document: Document<'_>) -> bool {
        match self {
            TextTest::Search(_) => true,
            TextTest::Bound(matcher) => matcher.matches(document),
        }
    }
}

/// The position of the `$text` in a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextPosition {
    /// Each document that passes is one that is searched for.
    Top,
    /// Below an `$or`.
    Branch,
}

/// The `$text` of a filter, and where it stands. Recursion is bounded by the tree's depth, as
/// below.
pub(super) fn find(node: &Node) -> Option<(&TextTest, TextPosition)> {
    match node {
        Node::Text(test) => Some((test, TextPosition::Top)),
        Node::And(nodes) => nodes.iter().find_map(find),
        Node::Or(nodes) => {
            nodes.iter().find_map(find).map(|(test, _)| (test, TextPosition::Branch))
        }
        _ => None,
    }
}

/// Gives the `$text` what it is asked with.
pub(super) fn bind(node: &mut Node, matcher: &Arc<TextMatcher>) {
    match node {
        Node::Text(test) => *test = TextTest::Bound(Arc::clone(matcher)),
        Node::And(nodes) | Node::Or(nodes) => {
            nodes.iter_mut().for_each(|inner| bind(inner, matcher));
        }
        _ => {}
    }
}

/// Refuses a `$text` wherever it stands.
pub(super) fn refuse(root: &Node) -> Result<(), QueryError> {
    match count(root) {
        0 => Ok(()),
        _ => Err(bad_value("$text is not allowed in this context")),
    }
}

/// Refuses a `$text` that stands where it can't be asked.
pub(super) fn check(root: &Node) -> Result<(), QueryError> {
    let all = count(root);
    if all == 0 {
        return Ok(());
    }
    if count_in_elements(root) > 0 {
        return Err(bad_value("$text can only be applied to the top-level document"));
    }
    if all > 1 {
        return Err(bad_value("Too many text expressions"));
    }
    if find(root).is_none() {
        return Err(bad_value("text expression not allowed in nor"));
    }
    Ok(())
}

fn count(node: &Node) -> usize {
    match node {
        Node::Text(_) => 1,
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().map(count).sum(),
        Node::Field(field) => count_in_condition(&field.condition),
        _ => 0,
    }
}

fn count_in_elements(node: &Node) -> usize {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter().map(count_in_elements).sum()
        }
        Node::Field(field) => count_in_condition(&field.condition),
        _ => 0,
    }
}

fn count_in_condition(condition: &Condition) -> usize {
    match condition {
        Condition::All(inner) => inner.iter().map(count_in_condition).sum(),
        Condition::Not(inner) => count_in_condition(inner),
        Condition::Test(Test::ElementDocument(node)) => count(node),
        Condition::Test(Test::ElementValue(inner)) => count_in_condition(inner),
        Condition::Test(_) => 0,
    }
}
