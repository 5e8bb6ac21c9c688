//! The parts of an index's key as the planner sees them: on which path each is, and which of its
//! bytes a filter leaves possible.
//!
//! Here the kinds of index differ: a new [`FieldKind`] is one more arm of [`variants`] and
//! [`Part::demand`].
//! - A field of values has one part, whose intervals are what the filter demands of its path.
//! - A hashed field has one part, whose intervals are hashes: only equality has any.
//! - A field of places has one part, whose intervals are the cells or squares that a region lies in
//!   ([`places`]); a document without a place is not filed, so that the filter must ask for one.
//! - A text index has two parts for its terms: the terms, some of which a `$text` asks for
//!   ([`terms`]), and their scores. A document without terms is not filed, so that the filter must
//!   have a `$text`.
//! - A wildcard stands for an index on each path that the filter names: a part for the paths of its
//!   leaves, and one of their values ([`leaves`](super::leaves)). It files no whole documents, and
//!   no document in which the path is absent.

use frond_doc::{ValueBuf, key};

use super::IndexFacts;
use super::conditions::{self, PathBounds, Rules};
use super::defect::{Defect, is_planted};
use super::leaves::Leaves;
use super::places::{self, Surface};
use super::terms;
use crate::collation::Collation;
use crate::filter::tree::{Condition, Node, Test};
use crate::geometry::grid::Grid;
use crate::index::{FieldKind, TERMS_FIRST, TERMS_SECOND};

/// A part of a key.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The path of the values in it; empty for a wildcard's path.
    pub(super) path: String,
    /// The name by which bounds are shown.
    pub(super) name: String,
    pub(super) descending: bool,
    /// Whether some document has an array on the path.
    pub(super) is_multikey: bool,
    /// Whether an element of an array on the path has one value there.
    has_single_elements: bool,
    kind: PartKind,
    /// The collation by which its strings are ordered.
    collation: Collation,
}

#[derive(Clone, PartialEq, Debug)]
enum PartKind {
    Values,
    Hashes,
    /// The paths of a wildcard's leaves.
    Paths(Leaves),
    /// Their values.
    Leaves(Leaves),
    /// The cells of places.
    Cells,
    /// The terms of texts.
    Terms,
    /// The index files these values in a form that can't be searched.
    Unsearched,
    /// The squares of places in the plane.
    Squares(Grid),
}

impl Part {
    /// Returns the demand of `root` on the part.
    pub(super) fn demand(&self, root: &Node) -> Option<PathBounds> {
        let rules = self.rules();
        match &self.kind {
            PartKind::Values => conditions::of_node(root, &self.path, rules),
            PartKind::Leaves(leaves) => {
                let demand = conditions::of_node(root, &self.path, rules)?;
                leaves.answer(&demand, self.is_multikey).then(|| leaves.values(demand))
            }
            PartKind::Hashes => conditions::of_node(root, &self.path, rules.hashed()),
            PartKind::Cells => places::of_node(root, &self.path, Surface::Sphere),
            PartKind::Squares(grid) => places::of_node(root, &self.path, Surface::Plane(grid)),
            PartKind::Terms => terms::of_node(root),
            PartKind::Unsearched => None,
            PartKind::Paths(leaves) => {
                Some(PathBounds { intervals: leaves.paths(), is_present: false, is_exact: true })
            }
        }
    }

    /// Returns how conditions on its path are read.
    fn rules(&self) -> Rules<'_> {
        let has_single_elements = self.has_single_elements;
        let rules = Rules::new(&self.path, self.is_multikey, &self.collation);
        Rules { has_single_elements, ..rules }
    }

    /// Whether an element of an array on the path has one value there, in all documents.
    pub(super) fn has_single_elements(&self) -> bool {
        self.has_single_elements
    }

    /// The part's path below `outer`, if it may lie below an array there, and what an `$elemMatch`
    /// at `outer` with the conditions `inner` demands of it.
    pub(super) fn demand_of_elements(
        &self,
        outer: &str,
        inner: &Node,
    ) -> Option<(&str, PathBounds)> {
        let is_of_values = match &self.kind {
            PartKind::Values => true,
            PartKind::Leaves(leaves) => !leaves.are_several(),
            _ => false,
        };
        if !is_of_values || !self.is_multikey {
            return None;
        }
        let below = self.path.strip_prefix(outer)?.strip_prefix('.')?;
        let demand = conditions::of_element(inner, below, self.rules())?;
        let is_answered = match &self.kind {
            PartKind::Leaves(leaves) => leaves.answer(&demand, self.is_multikey),
            _ => true,
        };
        is_answered.then_some((below, demand))
    }

    /// Whether both may lie below one array.
    pub(super) fn shares_arrays(&self, other: &Part) -> bool {
        let top = |part: &Part| part.path.split('.').next().unwrap_or_default().to_owned();
        let are_multikey = self.is_multikey && other.is_multikey;
        are_multikey && !self.is_constant() && top(self) == top(other)
    }

    /// Whether keys are in the order of the path's values by `collation`.
    pub(super) fn is_ordered(&self, collation: &Collation) -> bool {
        let is_of_values = matches!(self.kind, PartKind::Values | PartKind::Leaves(_));
        let may_repeat = self.may_repeat() && !is_planted(Defect::ArraysInOrder);
        self.collation == *collation && is_of_values && !may_repeat
    }

    /// Whether a document may have several keys that differ in this part.
    pub(super) fn may_repeat(&self) -> bool {
        let is_several = match &self.kind {
            PartKind::Paths(leaves) | PartKind::Leaves(leaves) => leaves.are_several(),
            _ => false,
        };
        self.is_multikey || is_several
    }

    /// Whether the part is the same in all keys that are scanned, whatever the filter says.
    fn is_constant(&self) -> bool {
        matches!(self.kind, PartKind::Paths(_))
    }

    /// Whether the index has what `demand` asks for: what a wildcard lacks makes no demand.
    pub(super) fn is_answered(&self, demand: Option<&PathBounds>) -> bool {
        match self.kind {
            PartKind::Leaves(_) | PartKind::Cells | PartKind::Squares(_) | PartKind::Terms => {
                demand.is_some()
            }
            _ => true,
        }
    }
}

/// The parts of an index's keys; of a wildcard's for the paths of `wild`, which begin alike.
fn parts_of(facts: &IndexFacts, wild: Option<(&str, Leaves)>) -> Vec<Part> {
    let shape = &facts.shape;
    let is_text = shape.has_kind(FieldKind::Text);
    let mut parts = Vec::new();
    for (place, field) in shape.fields().iter().enumerate() {
        let part = |path: &str, name: &str, descending: bool, kind: PartKind| Part {
            path: path.to_owned(),
            name: name.to_owned(),
            descending,
            is_multikey: !matches!(kind, PartKind::Hashes | PartKind::Unsearched)
                && facts.is_multikey(place),
            has_single_elements: facts.has_single_elements(),
            kind,
            collation: shape.collation().clone(),
        };
        let descending = field.descending;
        parts.extend(match (field.kind, &wild) {
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
            (FieldKind::Wildcard, Some((wild, leaves))) => vec![
                part("", "$_path", false, PartKind::Paths(leaves.clone())),
                part(wild, wild, descending, PartKind::Leaves(leaves.clone())),
            ],
            (FieldKind::Wildcard, None) => Vec::new(),
        });
    }
    parts
}

/// The keys that an index has, for a filter: one list of parts, or for a wildcard one for each
/// path.
pub(super) fn variants(root: &Node, facts: &IndexFacts) -> Vec<Vec<Part>> {
    let shape = &facts.shape;
    let parts = |wild| parts_of(facts, wild);
    if !shape.has_kind(FieldKind::Wildcard) {
        return vec![parts(None)];
    }
    let mut paths = Vec::new();
    paths_of(root, "", &mut paths);
    let mut variants = Vec::new();
    for path in &paths {
        let Some(leaves) = Leaves::of(path, shape) else { continue };
        let subtree = leaves.subtree(shape);
        variants.push(parts(Some((path, leaves))));
        // Where values say it, all below isn't looked at.
        let is_answered =
            |parts: &[Part]| parts.iter().all(|part| part.is_answered(part.demand(root).as_ref()));
        if let Some(subtree) =
            subtree.filter(|_| !variants.last().is_some_and(|it| is_answered(it)))
        {
            variants.push(parts(Some((path, subtree))));
        }
    }
    variants
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

/// A value of a key, for showing bounds: numbers of types that the key doesn't name are shown as
/// the first type that has them.
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
