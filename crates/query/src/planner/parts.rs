//! The parts of an index's key as the planner sees them: on which path each is, and which of its
//! bytes a filter leaves possible.
//!
//! Here the kinds of index differ: a new [`FieldKind`] is one more arm of [`variants`] and
//! [`Part::demand`].
//! - A field of values has one part, whose intervals are what the filter demands of its path.
//! - A hashed field has one part, whose intervals are hashes: only equality has any.
//! - A field of places has one part, whose intervals are the cells or squares that a region lies in
//!   ([`places`]); a document without a place is not filed, so that the filter must ask for one.
//! - A text index has two parts for its terms: the terms, of which a `$text` asks for some
//!   ([`terms`]), and their scores. A document without terms is not filed, so that the filter must
//!   have a `$text`.
//! - A wildcard stands for an index on each path that the filter names: a part that is always this
//!   path, and one of its values. It files no whole documents, and no document in which the path is
//!   absent.

use frond_doc::{Value, ValueBuf, key};

use super::IndexFacts;
use super::conditions::{self, PathBounds, Rules};
use super::interval::{Interval, Intervals};
use super::places::{self, Surface};
use super::terms;
use crate::collation::Collation;
use crate::filter::tree::{Condition, Node, Test};
use crate::geometry::grid::Grid;
use crate::index::{FieldKind, TERMS_FIRST, TERMS_SECOND};

/// One part of a key.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Whose values are in it; empty for a wildcard's path.
    pub(super) path: String,
    /// What it is called where bounds are told.
    pub(super) name: String,
    pub(super) descending: bool,
    /// Whether some document has an array on the path.
    pub(super) is_multikey: bool,
    kind: PartKind,
    /// By which its strings are ordered.
    collation: Collation,
}

#[derive(Clone, PartialEq, Debug)]
enum PartKind {
    Values,
    Hashes,
    /// A wildcard's path: always this string.
    Path(String),
    /// A wildcard's value.
    Leaves,
    /// The cells of places.
    Cells,
    /// The terms of texts.
    Terms,
    /// What is filed otherwise than it is asked for, so that nothing is looked for in it.
    Unsearched,
    /// The squares of places in the plane.
    Squares(Grid),
}

impl Part {
    /// What `root` demands of the part.
    pub(super) fn demand(&self, root: &Node) -> Option<PathBounds> {
        let rules = Rules::new(&self.path, self.is_multikey, &self.collation);
        match &self.kind {
            PartKind::Values | PartKind::Leaves => conditions::of_node(root, &self.path, rules),
            PartKind::Hashes => conditions::of_node(root, &self.path, rules.hashed()),
            PartKind::Cells => places::of_node(root, &self.path, Surface::Sphere),
            PartKind::Squares(grid) => places::of_node(root, &self.path, Surface::Plane(grid)),
            PartKind::Terms => terms::of_node(root),
            PartKind::Unsearched => None,
            PartKind::Path(path) => Some(PathBounds {
                intervals: Intervals::union_of(vec![Interval::point(Value::String(path))]),
                is_present: false,
                is_exact: true,
            }),
        }
    }

    /// The part's path below `outer`, if it may lie below an array there, and what an `$elemMatch`
    /// at `outer` with the conditions `inner` demands of it.
    pub(super) fn demand_of_elements(
        &self,
        outer: &str,
        inner: &Node,
    ) -> Option<(&str, PathBounds)> {
        let is_of_values = matches!(self.kind, PartKind::Values | PartKind::Leaves);
        if !is_of_values || !self.is_multikey {
            return None;
        }
        let below = self.path.strip_prefix(outer)?.strip_prefix('.')?;
        let rules = Rules::new(&self.path, self.is_multikey, &self.collation);
        Some((below, conditions::of_element(inner, below, rules)?))
    }

    /// Whether both may lie below one array.
    pub(super) fn shares_arrays(&self, other: &Part) -> bool {
        let top = |part: &Part| part.path.split('.').next().unwrap_or_default().to_owned();
        let are_multikey = self.is_multikey && other.is_multikey;
        are_multikey && !self.is_constant() && top(self) == top(other)
    }

    /// Whether keys are in the order of the path's values by `collation`.
    pub(super) fn is_ordered(&self, collation: &Collation) -> bool {
        self.collation == *collation
            && matches!(self.kind, PartKind::Values | PartKind::Leaves)
            && !self.is_multikey
    }

    /// Whether the part is the same in all keys that are scanned, whatever the filter says.
    fn is_constant(&self) -> bool {
        matches!(self.kind, PartKind::Path(_))
    }

    /// Whether the index has what `demand` asks for: a wildcard lacks documents without the path,
    /// and sub-documents; where arrays are on the path, also what is absent in one element and
    /// there in another.
    pub(super) fn is_answered(&self, demand: Option<&PathBounds>) -> bool {
        match self.kind {
            PartKind::Leaves => {}
            PartKind::Cells | PartKind::Squares(_) | PartKind::Terms => return demand.is_some(),
            _ => return true,
        }
        let sample = Value::Document(frond_doc::Document::empty());
        demand.is_some_and(|PathBounds { intervals, is_present, .. }| {
            let may_be_absent = self.is_multikey && intervals.meets_type(Value::Null);
            *is_present && !may_be_absent && !intervals.is_all() && !intervals.meets_type(sample)
        })
    }
}

/// The keys that an index has, for a filter: one list of parts, or for a wildcard one for each
/// path.
pub(super) fn variants(root: &Node, facts: &IndexFacts) -> Vec<Vec<Part>> {
    let shape = &facts.shape;
    let is_text = shape.has_kind(FieldKind::Text);
    let parts = |wild: Option<&str>| {
        let mut parts = Vec::new();
        for (place, field) in shape.fields().iter().enumerate() {
            let part = |path: &str, name: &str, descending: bool, kind: PartKind| Part {
                path: path.to_owned(),
                name: name.to_owned(),
                descending,
                is_multikey: !matches!(kind, PartKind::Hashes | PartKind::Unsearched)
                    && facts.is_multikey(place),
                kind,
                collation: shape.collation().clone(),
            };
            let descending = field.descending;
            parts.extend(match (field.kind, wild) {
                // A text index files an array behind its terms as a whole.
                (FieldKind::Value, _) if is_text && facts.is_multikey(place) => {
                    vec![part(&field.path, &field.path, descending, PartKind::Unsearched)]
                }
                (FieldKind::Text, _) => vec![
                    part(TERMS_FIRST, TERMS_FIRST, false, PartKind::Terms),
                    part(TERMS_SECOND, TERMS_SECOND, false, PartKind::Unsearched),
                ],
                (FieldKind::Value, _) => {
                    vec![part(&field.path, &field.path, descending, PartKind::Values)]
                }
                (FieldKind::Hashed, _) => {
                    vec![part(&field.path, &field.path, descending, PartKind::Hashes)]
                }
                (FieldKind::Sphere, _) => {
                    vec![part(&field.path, &field.path, false, PartKind::Cells)]
                }
                (FieldKind::Plane, _) => {
                    vec![part(&field.path, &field.path, false, PartKind::Squares(*shape.grid()))]
                }
                (FieldKind::Wildcard, Some(wild)) => vec![
                    part("", "$_path", false, PartKind::Path(wild.to_owned())),
                    part(wild, wild, descending, PartKind::Leaves),
                ],
                (FieldKind::Wildcard, None) => Vec::new(),
            });
        }
        parts
    };
    if !shape.has_kind(FieldKind::Wildcard) {
        return vec![parts(None)];
    }
    let mut paths = Vec::new();
    paths_of(root, "", &mut paths);
    let is_filed = |path: &&String| shape.wildcard_takes(path) && !has_number(path);
    paths.iter().filter(is_filed).map(|path| parts(Some(path))).collect()
}

/// Elements are filed without their positions.
fn has_number(path: &str) -> bool {
    path.split('.').any(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The paths that a filter names, those in `$elemMatch` too.
fn paths_of(node: &Node, outer: &str, paths: &mut Vec<String>) {
    match node {
        Node::And(nodes) | Node::Or(nodes) => {
            nodes.iter().for_each(|inner| paths_of(inner, outer, paths));
        }
        Node::Field(field) => {
            let path = match outer {
                "" => field.dotted.clone(),
                _ => format!("{outer}.{}", field.dotted),
            };
            paths_of_condition(&field.condition, &path, paths);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        _ => {}
    }
}

fn paths_of_condition(condition: &Condition, path: &str, paths: &mut Vec<String>) {
    match condition {
        Condition::All(inner) => {
            inner.iter().for_each(|inner| paths_of_condition(inner, path, paths));
        }
        Condition::Test(Test::ElementDocument(node)) => paths_of(node, path, paths),
        _ => {}
    }
}

/// A value of a key, for telling bounds: numbers of types that the key doesn't name are told as the
/// first type that has them.
pub(super) fn value_of_key(bytes: &[u8]) -> Option<ValueBuf> {
    for bits in [&[][..], &[2], &[1]] {
        let (mut rest, mut bits) = (bytes, bits);
        if let Ok(value) = key::decode(&mut rest, &mut bits, false)
            && rest.is_empty()
        {
            return Some(value);
        }
    }
    None
}
