//! Projections of `find`: inclusion, exclusion, `$slice`, `$elemMatch`, positional, expressions.
//!
//! 1. `parse` ([`parse`]) makes a tree of names and decides whether what isn't named stays
//!    (exclusion) or goes (inclusion).
//! 2. `apply` ([`apply`]) copies the document in its order, entering what the tree names. Computed
//!    fields come after the others.

mod apply;
mod parse;

pub(crate) use parse::features;

use frond_doc::{Document, DocumentBuf, ValueBuf};

use crate::by_name::ByName;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{self, Expression, NotedConstant, Variables};
use crate::filter::Filter;
use crate::large::{Depth, Large, NeededPaths};
use crate::memory::RequestMemory;
use crate::metadata::Metadata;

/// A parsed projection.
#[derive(Clone, Debug)]
pub struct Projection {
    kind: Kind,
    root: Tree,
    /// The array in which the element stays that made the filter match.
    positional: Option<String>,
    variables: Variables,
    metadata: Metadata,
    /// The parts of its expressions that give the same value for all documents.
    constants: Vec<NotedConstant>,
    runs_scripts: bool,
}

/// The treatment of fields that aren't named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Inclusion,
    Exclusion,
}

/// The named fields of one level, in the projection's order.
#[derive(Clone, Debug, Default)]
struct Tree {
    fields: ByName<Node>,
}

/// The rule for a named field.
#[derive(Clone, Debug)]
enum Node {
    /// It stays.
    Include,
    /// It goes.
    Exclude,
    /// Something in it is named.
    Inner(Tree),
    /// Some of its elements stay.
    Slice(Slice),
    /// Of an array the element stays that made the filter match.
    Positional,
    /// Of an array the first element stays that passes: a filter on `{"": [element]}`.
    ElementMatch(Filter),
    /// It is computed.
    Computed(Box<Computed>),
}

/// A computed field's value.
#[derive(Clone, Debug)]
enum Computed {
    Expression(Expression),
    Literal(ValueBuf),
}

/// A `$slice`.
#[derive(Clone, Copy, Debug)]
struct Slice {
    /// Elements that are skipped; negative: where to begin, counted from the end.
    skip: i64,
    /// The number of elements that stay; `None`: to the end.
    limit: Option<i64>,
}

impl Projection {
    /// Parses a projection document; an empty one lets everything through.
    ///
    /// # Errors
    /// MongoDB's codes: inclusion mixed with exclusion (31253, 31254), colliding paths (31249,
    /// 31250), operands that are none, `$meta` (40218).
    pub fn parse(projection: Document<'_>) -> Result<Projection, QueryError> {
        let parsed = parse::document(projection)?;
        parsed.metadata.refuse()?;
        Ok(parsed)
    }

    /// As [`Projection::parse`], for what a search has found, which may show what the search knows
    /// (`$meta`). The documents that it makes may still carry metadata.
    ///
    /// # Errors
    /// As [`Projection::parse`], but for `$meta`.
    pub fn parse_search(projection: Document<'_>) -> Result<Projection, QueryError> {
        parse::document(projection)
    }

    /// Returns the metadata of the search that it shows.
    pub fn metadata(&self) -> Metadata {
        self.metadata
    }

    /// Gives expressions their variables, and `$elemMatch` the collation that comes with them.
    pub fn with_variables(mut self, variables: Variables) -> Projection {
        self.root.collate(variables.collation());
        self.variables = variables;
        self
    }

    /// Computes what gives the same for all documents, for the request whose variables it has.
    ///
    /// # Errors
    /// An error of an expression; 31264 where it runs scripts and the request may run none.
    pub fn compute_constants(&self) -> Result<(), QueryError> {
        if self.runs_scripts {
            self.variables.memory().check_scripts()?;
        }
        expression::compute(&self.constants, &self.variables)
    }

    /// Whether a client's script is run.
    pub fn runs_scripts(&self) -> bool {
        self.runs_scripts
    }

    /// Returns the memory of the request.
    pub fn memory(&self) -> &RequestMemory {
        self.variables.memory()
    }

    /// Compares strings by `collation`.
    pub fn with_collation(self, collation: &Collation) -> Projection {
        let variables = self.variables.clone().with_collation(collation.clone());
        self.with_variables(variables)
    }

    /// Projects a document that `filter` (for the positional `$`) let through.
    ///
    /// # Errors
    /// An error of an expression; code 51246 where `$` has nothing to stand for, 51247 where the
    /// array has no element at its place.
    pub fn apply(
        &self,
        document: Document<'_>,
        filter: &Filter,
    ) -> Result<DocumentBuf, QueryError> {
        apply::document(self, document, filter)
    }

    /// The outermost fields that decide the result; `None` if others may.
    pub fn outermost_names(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let fields = &self.root.fields;
        let is_plain =
            self.kind == Kind::Inclusion && self.positional.is_none() && !self.root.makes_fields();
        is_plain.then(|| fields.iter().map(|(name, _)| name.as_bytes()))
    }

    /// Returns the paths at which the projection looks by itself: its expressions open what they
    /// want, and so does what looks for the element that a `$` stands for.
    pub fn needed_paths(&self) -> NeededPaths {
        let mut needed = NeededPaths::default();
        self.root.add_needed(&mut needed);
        needed
    }

    /// The same for documents whose references `large` reads.
    pub fn reading(&self, large: &Large) -> Projection {
        let variables = self.variables.clone().with_large(large.clone());
        Projection { variables, ..self.clone() }
    }

    /// Returns the reader of values that references stand for.
    pub fn large(&self) -> &Large {
        self.variables.large()
    }

    /// The paths that decide the result; `None` if others may.
    pub fn paths(&self) -> Option<Vec<String>> {
        if self.kind != Kind::Inclusion || self.positional.is_some() {
            return None;
        }
        let mut paths = Vec::new();
        self.root.add_paths("", &mut paths)?;
        Some(paths)
    }

    /// Whether documents go through unchanged.
    pub fn is_identity(&self) -> bool {
        self.kind == Kind::Exclusion && self.root.fields.is_empty()
    }
}

impl Tree {
    fn collate(&mut self, collation: &Collation) {
        for node in self.fields.values_mut() {
            match node {
                Node::Inner(tree) => tree.collate(collation),
                Node::ElementMatch(filter) if filter.collation() != collation => {
                    *filter = filter.clone().with_collation(collation);
                }
                _ => {}
            }
        }
    }

    fn get(&self, name: &[u8]) -> Option<&Node> {
        self.fields.get(name)
    }

    fn add_needed(&self, needed: &mut NeededPaths) {
        for (name, node) in self.fields.iter() {
            let field = needed.field(name);
            match node {
                // Those elements of an array that lies elsewhere are read that stay, or as far as
                // one passes.
                Node::Include
                | Node::Exclude
                | Node::Computed(_)
                | Node::Slice(_)
                | Node::Positional
                | Node::ElementMatch(_) => {}
                Node::Inner(tree) => {
                    field.look(Depth::Level);
                    tree.add_needed(field);
                }
            }
        }
    }

    /// Adds the paths of what stays; `None` if something is computed.
    fn add_paths(&self, outer: &str, paths: &mut Vec<String>) -> Option<()> {
        for (name, node) in self.fields.iter() {
            let path = if outer.is_empty() { name.to_owned() } else { format!("{outer}.{name}") };
            match node {
                Node::Exclude => {}
                Node::Include | Node::Slice(_) | Node::ElementMatch(_) => paths.push(path),
                Node::Inner(tree) => tree.add_paths(&path, paths)?,
                Node::Positional | Node::Computed(_) => return None,
            }
        }
        Some(())
    }

    /// Whether something in it is made where nothing is.
    fn makes_fields(&self) -> bool {
        self.fields.iter().any(|(_, node)| match node {
            Node::Computed(_) => true,
            Node::Inner(tree) => tree.makes_fields(),
            _ => false,
        })
    }

    fn has_positional(&self) -> bool {
        self.fields.iter().any(|(_, node)| match node {
            Node::Positional => true,
            Node::Inner(tree) => tree.has_positional(),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests;
