//! The tree of a parsed filter.

use std::sync::Arc;

use frond_doc::field_scan::ScannedNames;
use frond_doc::path::Path;
use frond_doc::{ElementType, Value, ValueBuf};

use super::compare::Comparison;
use super::geo::GeoTest;
use super::membership::Membership;
use super::number::{BitTest, Remainder};
use super::pattern::Pattern;
use super::schema::Schema;
use super::shape::TypeSet;
use super::text::TextTest;
use crate::collation::Collation;
use crate::expression::Expression;
use crate::geometry::near::Near;
use crate::large::{Depth, NeededPaths};
use crate::script::Script;

/// Filters deeper than this are refused, as MongoDB does; it bounds every recursion over a tree.
pub(crate) const TREE_DEPTH_MAX: usize = 100;

/// A filter on a whole document.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// All of them pass; everything passes where there is none.
    And(Vec<Node>),
    /// At least one passes.
    Or(Vec<Node>),
    /// None passes.
    Nor(Vec<Node>),
    /// Everything passes, or nothing.
    Constant(bool),
    /// A condition on what a path reaches.
    Field(Field),
    /// `$expr`: a truthy result passes.
    Expression(Expression),
    /// `$jsonSchema`
    Schema(Arc<Schema>),
    /// `$sampleRate`: so many of all documents pass, by chance.
    Sample(f64),
    /// `$where`
    Script(Script),
    /// `$text`
    Text(TextTest),
}

/// A path and its condition.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// The path as it was written.
    pub(crate) dotted: String,
    /// The path, cut.
    pub(crate) path: Path,
    /// Its first part's number in the walk over the document that the whole filter shares; `None`
    /// within `$elemMatch`, and where there are too many names.
    pub(crate) scanned: Option<u8>,
    /// The condition.
    pub(crate) condition: Condition,
}

/// A condition on what a path reaches, or on one value (in `$elemMatch`, `$pull`).
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// Each of them holds, on a path perhaps for different array elements.
    All(Vec<Condition>),
    /// The inner one holds for nothing that the path reaches.
    Not(Box<Condition>),
    /// It holds for something that the path reaches.
    Test(Test),
}

/// A question to one value.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// `$eq`, `$gt`, `$gte`, `$lt`, `$lte`.
    Compare(Comparison),
    /// `$in`.
    In(Membership),
    /// `$regex`, or a pattern where a value could stand.
    Pattern(Pattern),
    /// `$exists: true`.
    Exists,
    /// `$type`.
    Type(TypeSet),
    /// `$mod`.
    Remainder(Remainder),
    /// `$bitsAllSet` and its relatives.
    Bits(BitTest),
    /// `$size`.
    Size(i64),
    /// `$elemMatch` with operators: the condition holds for one single element.
    ElementValue(Box<Condition>),
    /// `$elemMatch` with a filter: one element is a document that passes.
    ElementDocument(Box<Node>),
    /// `$geoWithin`, `$geoIntersects`.
    Geo(GeoTest),
    /// `$near`, `$nearSphere`: a place within its limits.
    Near(Arc<Near>),
    /// `$all: []`: holds for nothing.
    Never,
}

impl Node {
    /// Numbers the names of the outermost fields that the filter asks for, and returns whether it
    /// asks for nothing else. Recursion is bounded by [`TREE_DEPTH_MAX`].
    pub(crate) fn number_names(&mut self, names: &mut ScannedNames) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                // Each of them is numbered, also behind one that asks for something else.
                let mut all = true;
                for node in nodes {
                    all &= node.number_names(names);
                }
                all
            }
            Node::Field(field) => {
                field.scanned = names.add(&field.path.parts()[0]);
                field.scanned.is_some()
            }
            Node::Constant(_) => true,
            _ => false,
        }
    }
}

impl Node {
    /// Compares strings by `collation`; expressions have theirs from the variables, and a schema
    /// compares by bytes always. Recursion is bounded by [`TREE_DEPTH_MAX`].
    pub(crate) fn collate(&mut self, collation: &Collation) {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter_mut().for_each(|node| node.collate(collation));
            }
            Node::Field(field) => field.condition.collate(collation),
            Node::Constant(_)
            | Node::Expression(_)
            | Node::Schema(_)
            | Node::Sample(_)
            | Node::Script(_)
            | Node::Text(_) => {}
        }
    }

    /// Adds what the filter looks at, but for what its expressions and schemas open themselves, and
    /// at least `depth` of what its paths reach; returns whether that is all.
    pub(crate) fn add_needed(&self, depth: Depth, needed: &mut NeededPaths) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter().all(|node| node.add_needed(depth, needed))
            }
            Node::Field(field) => {
                let own = field.condition.depth();
                let is_whole = depth != Depth::Parts && own != Depth::Parts;
                needed.add(&field.dotted, if is_whole { Depth::Whole } else { own.max(depth) });
                true
            }
            Node::Constant(_) | Node::Expression(_) | Node::Schema(_) | Node::Sample(_) => true,
            Node::Script(_) | Node::Text(_) => false,
        }
    }

    /// Adds the paths that the filter tests, and returns whether it tests nothing else.
    pub(crate) fn add_paths<'n>(&'n self, paths: &mut Vec<&'n str>) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter().all(|node| node.add_paths(paths))
            }
            Node::Field(field) => {
                paths.push(&field.dotted);
                true
            }
            Node::Constant(_) => true,
            Node::Expression(_)
            | Node::Schema(_)
            | Node::Sample(_)
            | Node::Script(_)
            | Node::Text(_) => false,
        }
    }

    /// Adds the outermost fields that the filter asks for, and returns whether it asks for nothing
    /// else.
    pub(crate) fn add_outermost<'n>(&'n self, names: &mut Vec<&'n str>) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter().all(|node| node.add_outermost(names))
            }
            Node::Field(field) => {
                names.extend(field.dotted.split('.').next());
                true
            }
            Node::Schema(schema) => schema.add_outermost(names),
            Node::Constant(_) => true,
            Node::Expression(_) | Node::Sample(_) | Node::Script(_) | Node::Text(_) => false,
        }
    }
}

impl Test {
    fn collate(&mut self, collation: &Collation) {
        match self {
            Test::Compare(comparison) => comparison.collate(collation),
            Test::In(membership) => membership.collate(collation),
            Test::ElementValue(condition) => condition.collate(collation),
            Test::ElementDocument(node) => node.collate(collation),
            Test::Pattern(_)
            | Test::Exists
            | Test::Type(_)
            | Test::Remainder(_)
            | Test::Bits(_)
            | Test::Size(_)
            | Test::Geo(_)
            | Test::Near(_)
            | Test::Never => {}
        }
    }

    /// Whether a document or an array may pass by itself, for what is in it.
    pub(crate) fn may_take_containers(&self) -> bool {
        let is_container = |value| matches!(value, Value::Document(_) | Value::Array(_));
        match self {
            Test::Compare(comparison) => {
                let operand = comparison.operand();
                is_container(operand) || matches!(operand, Value::MinKey | Value::MaxKey)
            }
            Test::In(membership) => {
                membership.values().iter().any(|value| is_container(value.as_value()))
            }
            Test::Pattern(_) | Test::Remainder(_) | Test::Bits(_) | Test::Never => false,
            Test::Exists
            | Test::Type(_)
            | Test::Size(_)
            | Test::ElementValue(_)
            | Test::ElementDocument(_)
            | Test::Geo(_)
            | Test::Near(_) => true,
        }
    }

    /// Whether the test asks arrays as a whole only, so that their elements are not asked.
    pub(crate) fn is_on_whole_arrays(&self) -> bool {
        matches!(
            self,
            Test::Size(_) | Test::ElementValue(_) | Test::ElementDocument(_) | Test::Exists
        )
    }
}

impl Condition {
    /// Returns how much of a value that the path reaches it looks at.
    fn depth(&self) -> Depth {
        match self {
            Condition::All(conditions) => {
                conditions.iter().map(Condition::depth).max().unwrap_or_default()
            }
            Condition::Not(inner) => inner.depth(),
            // The reference decides.
            Condition::Test(Test::Size(_) | Test::Exists) => Depth::Parts,
            Condition::Test(Test::Type(types)) if types.types().contains(&ElementType::Array) => {
                Depth::Parts
            }
            Condition::Test(Test::Geo(_) | Test::Near(_)) => Depth::Whole,
            Condition::Test(_) => Depth::Lying,
        }
    }

    /// The condition that a value equals `value`.
    pub(crate) fn equal(value: ValueBuf) -> Condition {
        Condition::Test(Test::Compare(Comparison::equal(value)))
    }

    /// Compares strings by `collation`.
    pub(crate) fn collate(&mut self, collation: &Collation) {
        match self {
            Condition::All(conditions) => {
                conditions.iter_mut().for_each(|condition| condition.collate(collation));
            }
            Condition::Not(inner) => inner.collate(collation),
            Condition::Test(test) => test.collate(collation),
        }
    }

    /// The opposite.
    pub(crate) fn negated(self) -> Condition {
        Condition::Not(Box::new(self))
    }
}
