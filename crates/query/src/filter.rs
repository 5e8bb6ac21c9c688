//! Filters: `{qty: {$gt: 5}, tags: "red"}`.
//!
//! A filter is parsed once into a tree ([`tree`]) and then asked document by document
//! ([`evaluate`]). Reading order: `tree` (what a filter is), `parse` (from BSON), `operators` (the
//! one table of operators), the families, each of an `operand` (`compare`, `membership`, `pattern`,
//! `shape`, `array`, `number`, `geo`), `alternatives` (an `$or` of many equalities), `evaluate`
//! (how a path fans out), `near` and `text` (where a `$near` or `$text` may stand), `position`
//! (what `$` stands for), `equalities` (what an upsert takes over).
//!
//! *Surprises*: a condition on a path holds if **any** value that the path reaches fulfils it, and
//! two conditions on one path may be fulfilled by two different elements of an array; a negated
//! condition (`$ne`, `$nin`, `$not`) holds if **no** value fulfils the inner one.

pub(crate) mod allowed;
mod alternatives;
mod array;
mod compare;
mod conjunction;
mod equalities;
mod equivalence;
mod evaluate;
mod explain;
mod geo;
mod implied;
mod long_values;
mod match_pieces;
mod membership;
mod near;
mod number;
mod operand;
mod operators;
mod origins;
mod parse;
mod pattern;
mod pieces;
mod position;
mod query_shape;
mod schema;
mod scripts;
mod shape;
pub(crate) mod text;
pub(crate) mod tree;

use std::sync::Arc;

use frond_doc::field_scan::ScannedNames;
use frond_doc::{Document, DocumentBuf, Value};

use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{self, NotedConstant, Variables};
use crate::geometry::near::{Distance, Near};
use crate::large::{Depth, Large, NeededPaths};
use crate::memory::RequestMemory;
use crate::metadata::{Metadata, MetadataKind};
use crate::search::{TextMatcher, TextSearch};
use conjunction::Conjunction;
use evaluate::Run;
use tree::{Condition, Node};

pub(crate) use compare::{Comparison, Relation};
pub(crate) use membership::Membership;
pub(crate) use operand::near_not_allowed;
pub(crate) use pattern::Pattern;
pub use text::TextPosition;

/// Returns every operator of filters, for the list of what works.
pub(crate) fn features() -> impl Iterator<Item = crate::feature::Feature> {
    parse::features().chain(operators::features())
}

/// A parsed filter. Cloning is cheap: the tree is shared.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Arc<Node>,
    /// The conjuncts that are tested while a document is walked over.
    conjunction: Arc<Conjunction>,
    /// The names of outermost fields that `root` asks for: one walk over a document finds all of
    /// them.
    names: Arc<ScannedNames>,
    /// Whether it asks for no others.
    tests_names_only: bool,
    /// The variables of `$expr`.
    variables: Variables,
    /// The metadata of the search that is left in the documents it finds.
    metadata: Metadata,
}

impl Filter {
    /// Parses a filter document, of a validator for example.
    ///
    /// # Errors
    /// As [`Filter::parse_with_functions`]; `$function`, which only a request may ask.
    pub fn parse(filter: Document<'_>) -> Result<Filter, QueryError> {
        let filter = Filter::parse_with_functions(filter)?;
        scripts::refuse_functions(&filter.root)?;
        Ok(filter)
    }

    /// As [`Filter::parse`], for one of a request: its expressions may have a `$function`.
    ///
    /// # Errors
    /// MongoDB's codes and words, where it has them: unknown operators, operands of the wrong
    /// type, invalid patterns, a tree deeper than 100; and `$text` and `$where`, which only a
    /// search may ask.
    pub fn parse_with_functions(filter: Document<'_>) -> Result<Filter, QueryError> {
        let root = parse::document(filter, 0)?;
        text::refuse(&root)?;
        scripts::refuse(&root)?;
        Filter::of_root(root)
    }

    /// As [`Filter::parse`], for one that only tests documents: nothing is ordered by it.
    ///
    /// # Errors
    /// As [`Filter::parse`]; 5626500 for `$near` and `$nearSphere`.
    pub fn parse_test(filter: Document<'_>) -> Result<Filter, QueryError> {
        let filter = Filter::parse(filter)?;
        if filter.near().is_some() {
            return Err(operand::near_not_allowed());
        }
        Ok(filter)
    }

    /// As [`Filter::parse`], for one by which documents of a collection are looked for: it may have
    /// a `$text`. A caller that looks for them supplies what it needs, see [`Filter::with_text`].
    ///
    /// # Errors
    /// As [`Filter::parse`]; a `$text` that stands where it can't be asked.
    pub fn parse_search(filter: Document<'_>) -> Result<Filter, QueryError> {
        let mut root = parse::document(filter, 0)?;
        text::check(&root)?;
        if text::find(&root).is_some() && near::find(&root)?.is_some() {
            return Err(operand::bad_value("text and geoNear not allowed in same query"));
        }
        alternatives::join(&mut root);
        Filter::of_root(root)
    }

    /// Refuses a `$where`, where only a search for documents may have one.
    ///
    /// # Errors
    /// `BadValue`.
    pub(crate) fn refuse_scripts(&self) -> Result<(), QueryError> {
        scripts::refuse(&self.root)
    }

    /// Checks that a `$where` or a `$function` may be run.
    ///
    /// # Errors
    /// `BadValue` and 31264 where the request may run no scripts.
    pub fn check_scripts(&self) -> Result<(), QueryError> {
        if self.memory().allows_scripts() || !self.runs_scripts() {
            return Ok(());
        }
        match scripts::stands_in(&self.root) {
            true => Err(operand::bad_value("no globalScriptEngine in $where parsing")),
            false => self.memory().check_scripts(),
        }
    }

    /// Computes what gives the same for all documents, for the request whose variables it has.
    ///
    /// # Errors
    /// An error of an expression.
    pub fn compute_constants(&self) -> Result<(), QueryError> {
        expression::compute(&self.constants(), &self.variables)
    }

    /// Returns the parts of its expressions that give the same value for all documents.
    pub(crate) fn constants(&self) -> Vec<NotedConstant> {
        scripts::constants(&self.root)
    }

    /// Whether a client's script may be run to ask it.
    pub fn runs_scripts(&self) -> bool {
        scripts::are_run(&self.root)
    }

    /// Whether there is a `$where`.
    pub fn has_where(&self) -> bool {
        scripts::stands_in(&self.root)
    }

    /// What every document that passes fulfils, without running scripts.
    pub fn without_scripts(&self) -> Filter {
        let mut conjuncts = self.conjuncts();
        conjuncts.retain(|conjunct| !conjunct.runs_scripts());
        Filter::all_of(&conjuncts).unwrap_or_else(|| self.with_root(Node::And(Vec::new())))
    }

    /// As [`Filter::parse`], for one that stands in an update or a projection.
    ///
    /// # Errors
    /// As [`Filter::parse`]; `$expr` and `$jsonSchema` (224), `$near`.
    pub(crate) fn parse_inner(filter: Document<'_>) -> Result<Filter, QueryError> {
        let filter = Filter::parse(filter)?;
        allowed::check(&filter.root)?;
        Ok(filter)
    }

    fn of_root(mut root: Node) -> Result<Filter, QueryError> {
        near::find(&root)?;
        let mut names = ScannedNames::default();
        let tests_names_only = root.number_names(&mut names);
        Ok(Filter {
            conjunction: Conjunction::of(&root).into(),
            root: root.into(),
            names: names.into(),
            tests_names_only,
            variables: Variables::default(),
            metadata: Metadata::default(),
        })
    }

    /// The filter that everything passes.
    pub fn all() -> Filter {
        Filter {
            root: Arc::new(Node::And(Vec::new())),
            conjunction: Arc::default(),
            names: Arc::default(),
            tests_names_only: true,
            variables: Variables::default(),
            metadata: Metadata::default(),
        }
    }

    /// Gives `$expr` its variables (`$$NOW`, a command's `let`, those of `$lookup`), and the filter
    /// the collation that comes with them.
    pub fn with_variables(mut self, variables: Variables) -> Filter {
        if variables.collation() != self.variables.collation() {
            Arc::make_mut(&mut self.root).collate(variables.collation());
        }
        self.variables = variables;
        self
    }

    /// The same, asked for a request that may use so much.
    pub fn with_memory(self, memory: RequestMemory) -> Filter {
        Filter { variables: self.variables.clone().with_memory(memory), ..self }
    }

    /// The same, asked of documents whose references `large` reads.
    pub fn with_large(self, large: &Large) -> Filter {
        Filter { variables: self.variables.clone().with_large(large.clone()), ..self }
    }

    /// Compares strings by `collation`.
    pub fn with_collation(self, collation: &Collation) -> Filter {
        let variables = self.variables.clone().with_collation(collation.clone());
        self.with_variables(variables)
    }

    /// The `$text`, and where it stands.
    pub fn text(&self) -> Option<(&TextSearch, TextPosition)> {
        match text::find(&self.root)? {
            (text::TextTest::Search(search), place) => Some((search, place)),
            (text::TextTest::Bound(_), _) => None,
        }
    }

    /// Returns the matcher of the `$text`, once it is known.
    pub fn text_matcher(&self) -> Option<&TextMatcher> {
        match text::find(&self.root)? {
            (text::TextTest::Bound(matcher), _) => Some(matcher),
            (text::TextTest::Search(_), _) => None,
        }
    }

    /// Gives the `$text` what it is asked with. Without that everything passes it.
    pub fn with_text(mut self, matcher: TextMatcher) -> Filter {
        text::bind(Arc::make_mut(&mut self.root), &Arc::new(matcher));
        self
    }

    /// Has these kinds of metadata left in the documents that it finds.
    pub fn with_metadata(self, metadata: Metadata) -> Filter {
        Filter { metadata, ..self }
    }

    /// Has this kind left in them, too.
    pub fn also_with_metadata(mut self, kind: MetadataKind) -> Filter {
        self.metadata.insert(kind);
        self
    }

    /// Returns the metadata that is left in the documents that it finds.
    pub fn metadata(&self) -> Metadata {
        self.metadata
    }

    /// Returns the memory for evaluating it.
    pub fn memory(&self) -> &RequestMemory {
        self.variables.memory()
    }

    /// Returns how strings compare.
    pub fn collation(&self) -> &Collation {
        self.variables.collation()
    }

    /// Whether `document` passes. A document on which `$expr` fails does not pass: see
    /// [`Filter::try_matches`].
    pub fn matches(&self, document: Document<'_>) -> bool {
        self.try_matches(document).unwrap_or(false)
    }

    /// Whether `document` passes.
    ///
    /// # Errors
    /// An error of evaluating `$expr`.
    pub fn try_matches(&self, document: Document<'_>) -> Result<bool, QueryError> {
        self.conjunction.passes(&self.root, &self.names, document, &self.variables)
    }

    /// Returns why `document` doesn't pass, as MongoDB reports it of a document that fails a
    /// validator.
    pub fn failure_details(&self, document: Document<'_>) -> DocumentBuf {
        explain::details(&self.root, document, &Run::new(&self.variables))
    }

    /// As `matches`, and returns the position of the first array element that matched on a path
    /// through an array: what `$` in an update stands for.
    pub fn matches_position(&self, document: Document<'_>) -> (bool, Option<usize>) {
        if !self.matches(document) {
            return (false, None);
        }
        let run = Run::new(&self.variables);
        (true, position::of_document(&self.root, document, &run))
    }

    /// The conditions that all must hold for a document to pass.
    pub(crate) fn conjuncts(&self) -> Vec<Filter> {
        let mut nodes = vec![&*self.root];
        let mut parts = Vec::new();
        while let Some(node) = nodes.pop() {
            match node {
                Node::And(inner) => nodes.extend(inner.iter().rev()),
                other => parts.push(self.with_root(other.clone())),
            }
        }
        parts
    }

    /// Joins filters that see the same variables into one that all of them must let pass; `None` of
    /// no filters.
    pub(crate) fn all_of(filters: &[Filter]) -> Option<Filter> {
        let mut nodes = Vec::new();
        for filter in filters {
            match &*filter.root {
                Node::And(inner) => nodes.extend(inner.iter().cloned()),
                other => nodes.push(other.clone()),
            }
        }
        filters.first().map(|first| first.with_root(Node::And(nodes)))
    }

    fn with_root(&self, mut root: Node) -> Filter {
        let mut names = ScannedNames::default();
        let tests_names_only = root.number_names(&mut names);
        Filter {
            conjunction: Conjunction::of(&root).into(),
            root: root.into(),
            names: names.into(),
            tests_names_only,
            ..self.clone()
        }
    }

    /// Whether every document passes.
    pub fn is_all(&self) -> bool {
        matches!(&*self.root, Node::And(nodes) if nodes.is_empty())
    }

    /// The outermost fields that decide whether a document passes; `None` if others may.
    pub fn outermost_names(&self) -> Option<impl Iterator<Item = &[u8]>> {
        self.tests_names_only.then(|| self.names.iter())
    }

    /// Returns the distance by which found documents are ordered if the request asks for no other
    /// order.
    pub fn distance(&self) -> Option<Distance> {
        self.near().map(|(path, near)| Distance::new(near.clone(), path))
    }

    /// Returns how far the nearest place of a document is from that of the filter's `$near`, and
    /// that place.
    pub fn nearest(&self, document: Document<'_>) -> Option<(f64, frond_doc::ValueBuf)> {
        let (path, near) = self.near()?;
        let path = frond_doc::path::Path::new(path);
        let found = crate::geometry::near::nearest(near, document, &path)?;
        Some((found.distance, found.place))
    }

    /// This filter, and a place within the limits of `near` at `path`.
    pub(crate) fn and_near(self, path: &str, near: Near) -> Filter {
        let field = Node::Field(tree::Field {
            dotted: path.to_owned(),
            path: frond_doc::path::Path::new(path),
            scanned: None,
            condition: Condition::Test(tree::Test::Near(Arc::new(near))),
        });
        self.with_root(Node::And(vec![field, (*self.root).clone()]))
    }

    /// This filter, whose `$near` is another.
    pub fn with_near(&self, near: &Near) -> Filter {
        let mut root = (*self.root).clone();
        near::replace(&mut root, &Arc::new(near.clone()));
        Filter { root: root.into(), ..self.clone() }
    }

    /// The `$near` by which what is found is ordered, and its path.
    pub fn near(&self) -> Option<(&str, &Near)> {
        let near = near::find(&self.root).expect("checked when it was parsed");
        near.map(|(path, near)| (path, &**near))
    }

    /// The paths that decide whether a document passes; `None` if others may.
    pub fn paths(&self) -> Option<Vec<&str>> {
        let mut paths = Vec::new();
        self.root.add_paths(&mut paths).then_some(paths)
    }

    /// The outermost fields that decide whether a document passes, and that are shown of one that
    /// doesn't, each once; `None` if others may.
    pub fn deciding_names(&self) -> Option<Vec<&str>> {
        let mut names = Vec::new();
        let are_all = self.root.add_outermost(&mut names);
        names.sort_unstable();
        names.dedup();
        are_all.then_some(names)
    }

    /// Returns the paths at which the filter looks by itself: its expressions and schemas open what
    /// they want.
    pub fn needed_paths(&self) -> NeededPaths {
        let mut needed = NeededPaths::default();
        if self.root.add_needed(Depth::Parts, &mut needed) { needed } else { NeededPaths::all() }
    }

    /// The same where each element of an array is looked at that a path ends at.
    pub fn needed_paths_by_element(&self) -> NeededPaths {
        let mut needed = NeededPaths::default();
        if self.root.add_needed(Depth::Level, &mut needed) { needed } else { NeededPaths::all() }
    }

    /// The tree, for the planner.
    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// The paths that a passing document must have with one certain value (`$eq`, `$and`, `$in`,
    /// `$all` and `$or` of a single value), in the filter's order: what an upsert inserts.
    ///
    /// # Errors
    /// `NotSingleValueField` if a path is given twice, or one path lies within another.
    pub fn equalities(&self) -> Result<Vec<(&str, Value<'_>)>, QueryError> {
        equalities::of(&self.root)
    }

    /// The value that a passing document must have as `_id`: all that an upsert takes from the
    /// filter whose update is a replacement.
    ///
    /// # Errors
    /// `NotSingleValueField` if it is given twice, `NotExactValueField` for a field of it.
    pub fn id_equality(&self) -> Result<Option<Value<'_>>, QueryError> {
        equalities::of_id(&self.root)
    }
}

/// A condition on one value, as `$pull` has it.
#[derive(Clone, Debug)]
pub(crate) struct ValueFilter {
    condition: Condition,
    variables: Variables,
}

impl ValueFilter {
    /// Parses `{$gt: 5, ...}` or a pattern; `None` for other values, which must be equal, and for
    /// filters on documents.
    pub(crate) fn parse(operand: Value<'_>) -> Result<Option<ValueFilter>, QueryError> {
        let condition = match operand {
            Value::Document(document)
                if operand::first_name(document).is_some_and(operators::takes_values) =>
            {
                parse::operators("", document, 0)?
            }
            Value::Regex(_) => parse::implicit(operand)?,
            _ => return Ok(None),
        };
        allowed::check_condition(&condition)?;
        Ok(Some(ValueFilter { condition, variables: Variables::default() }))
    }

    /// Compares strings as `variables` say, and takes what they allow.
    pub(crate) fn bind(&mut self, variables: &Variables) {
        self.condition.collate(variables.collation());
        self.variables = variables.clone();
    }

    /// Whether `value` fulfils it, or, if it is an array, one of its elements.
    ///
    /// # Errors
    /// As [`Filter::try_matches`].
    pub(crate) fn matches(&self, value: Value<'_>) -> Result<bool, QueryError> {
        let run = Run::new(&self.variables);
        let answer = evaluate::condition_on_field(&self.condition, value, &run);
        run.finish(answer)
    }
}

#[cfg(test)]
mod tests;
