//! The documents that `$project`, `$addFields` and `$unset` make.
//!
//! A shape is a tree of rules by field name. One walk over a document keeps, drops or computes each
//! field; through an array on the way, the rules apply to each of its elements. Expressions see
//! the document as it came in.
//!
//! *Surprises*: `$addFields` computes in place, `$project` appends what it computes after what it
//! keeps; a rule below a field that is no document replaces it by one if it computes something,
//! otherwise `$project` drops the field when including and keeps it when excluding.

use frond_doc::field_scan::ScannedNames;
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};

use crate::error::QueryError;
use crate::expression::{Expression, Scope, Variables, check_bytes, check_depth};
use crate::large::{Depth, NeededPaths};
use crate::memory::{Charge, bytes_of};
use crate::outermost::OutermostNames;

/// The treatment of fields that no rule names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// They are dropped.
    Include,
    /// They are kept.
    Exclude,
    /// They are kept, and what is computed takes the place of what was there.
    Add,
}

/// The rule for one field.
#[derive(Debug)]
pub(super) enum Rule {
    Include,
    Exclude,
    Compute(Expression),
    Nested(Tree),
}

/// Rules by name, in the order in which they were given.
///
/// *Invariants*: 1. `sorted` holds each position in `rules` once, in the order of the names.
/// 2. names differ.
#[derive(Debug, Default)]
pub(super) struct Tree {
    rules: Vec<(String, Rule)>,
    sorted: Vec<usize>,
    /// Whether there is an expression among the rules or below.
    computes: bool,
}

impl Tree {
    fn search(&self, name: &[u8]) -> Result<usize, usize> {
        self.sorted.binary_search_by(|position| self.rules[*position].0.as_bytes().cmp(name))
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        self.search(name).ok().map(|found| self.sorted[found])
    }

    /// The rule of a name, put there by `make` if there is none.
    pub(super) fn entry(&mut self, name: &str, make: impl FnOnce() -> Rule) -> (&mut Rule, bool) {
        let (position, is_new) = match self.search(name.as_bytes()) {
            Ok(found) => (self.sorted[found], false),
            Err(place) => {
                self.sorted.insert(place, self.rules.len());
                self.rules.push((name.to_owned(), make()));
                (self.rules.len() - 1, true)
            }
        };
        (&mut self.rules[position].1, is_new)
    }

    /// Adds what is on the way to rules below these.
    fn add_needed(&self, needed: &mut NeededPaths) {
        for (name, rule) in &self.rules {
            if let Rule::Nested(inner) = rule {
                let field = needed.field(name);
                field.look(Depth::Level);
                inner.add_needed(field);
                // The elements of an array that have no rule below are asked what they are.
                inner.rules.iter().for_each(|(name, _)| {
                    field.field(name);
                });
            }
        }
    }

    /// Returns the names of those fields that stay, or have a part that does.
    pub(super) fn kept_names(&self) -> impl Iterator<Item = &str> {
        let stays = |rule: &Rule| matches!(rule, Rule::Include | Rule::Nested(_));
        self.rules.iter().filter(move |(_, rule)| stays(rule)).map(|(name, _)| name.as_str())
    }

    fn runs_scripts(&self) -> bool {
        self.computes
            && self.rules.iter().any(|(_, rule)| match rule {
                Rule::Compute(expression) => expression.runs_scripts(),
                Rule::Nested(inner) => inner.runs_scripts(),
                Rule::Include | Rule::Exclude => false,
            })
    }

    /// Notes that something is computed here or below.
    pub(super) fn mark_computing(&mut self) {
        self.computes = true;
    }
}

/// A parsed `$project`, `$addFields` or `$unset`.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) mode: Mode,
    pub(super) root: Tree,
    /// The names of all fields that expressions read.
    pub(super) names: ScannedNames,
    /// The outermost fields that decide the result; `None` if others may.
    pub(super) outermost: Option<OutermostNames>,
}

impl Shape {
    /// Whether what is at `path` stays as it is, whatever it is. A rule below an outer field of the
    /// path may make a document of a scalar, or drop it, so that such a path isn't kept.
    pub(super) fn keeps(&self, path: &str) -> bool {
        let outer = path.split('.').next().unwrap_or_default();
        match self.root.position(outer.as_bytes()).map(|position| &self.root.rules[position].1) {
            None => self.mode != Mode::Include,
            Some(Rule::Include) => true,
            Some(Rule::Exclude | Rule::Compute(_) | Rule::Nested(_)) => false,
        }
    }

    /// Where what is at `path` was before: there, or, where an outermost field was computed by the
    /// path of one, below that one.
    pub(super) fn origin(&self, path: &str) -> Option<String> {
        let outer = path.split('.').next().unwrap_or_default();
        let position = self.root.position(outer.as_bytes());
        if let Some(Rule::Compute(expression)) = position.map(|it| &self.root.rules[it].1) {
            let [before] = expression.field()? else { return None };
            return Some(format!("{before}{}", &path[outer.len()..]));
        }
        self.keeps(path).then(|| path.to_owned())
    }

    /// What of documents the rules look at: what is on the way to a rule.
    pub(super) fn needed_paths(&self) -> NeededPaths {
        let mut needed = NeededPaths::default();
        self.root.add_needed(&mut needed);
        needed
    }

    /// Whether a client's script may be run to make a document.
    pub(super) fn runs_scripts(&self) -> bool {
        self.root.runs_scripts()
    }

    /// Gives each path that the rules set or remove to `visit`.
    pub(super) fn visit_leaves<'s>(&'s self, visit: &mut dyn FnMut(&[&'s str], Leaf)) {
        visit_leaves(&self.root, &mut Vec::new(), visit);
    }

    /// Makes the document.
    pub(super) fn apply(
        &self,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<DocumentBuf, QueryError> {
        let fields = self.names.places(document);
        let scope = Scope::new(document, variables).with_fields(fields.as_ref());
        let mut writer = Writer {
            mode: self.mode,
            scope,
            builder: DocumentBuilder::with_capacity(document.as_bytes().len()),
            charge: None,
        };
        writer.document(&self.root, document)?;
        let made = writer.builder.build();
        check_depth(Value::Document(made.view()), 1)?;
        Ok(made)
    }
}

/// The rule at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    Removed,
    Set,
}

/// The recursion is as deep as the rules.
fn visit_leaves<'s>(
    tree: &'s Tree,
    path: &mut Vec<&'s str>,
    visit: &mut dyn FnMut(&[&'s str], Leaf),
) {
    for (name, rule) in &tree.rules {
        path.push(name);
        match rule {
            Rule::Include => {}
            Rule::Exclude => visit(path, Leaf::Removed),
            Rule::Compute(_) => visit(path, Leaf::Set),
            Rule::Nested(inner) => visit_leaves(inner, path, visit),
        }
        path.pop();
    }
}

struct Writer<'a> {
    mode: Mode,
    scope: Scope<'a>,
    builder: DocumentBuilder,
    /// The charge of what is made, once it is large.
    charge: Option<Charge>,
}

/// The size from which on what is made is charged.
const LARGE_BYTES: usize = 64 << 10;

impl<'a> Writer<'a> {
    /// Writes the fields of a document into the one that is open. The recursion is as deep as the
    /// rules.
    fn document(&mut self, tree: &'a Tree, document: Document<'_>) -> Result<(), QueryError> {
        let mut is_done = vec![false; if tree.computes { tree.rules.len() } else { 0 }];
        for element in document.elements() {
            let Some(position) = tree.position(element.name) else {
                if self.mode != Mode::Include {
                    self.builder.append_element(&element);
                }
                continue;
            };
            let (name, rule) = &tree.rules[position];
            match rule {
                Rule::Include => {
                    self.builder.append_element(&element);
                }
                Rule::Exclude => {}
                Rule::Compute(expression) => {
                    if self.mode == Mode::Add && !is_done[position] {
                        is_done[position] = true;
                        self.compute(name, expression)?;
                    }
                }
                Rule::Nested(inner) => {
                    let Some(value) = element.decode() else { continue };
                    let is_written = self.value(inner, name, value)?;
                    if let Some(is_done) = is_done.get_mut(position) {
                        *is_done |= is_written;
                    }
                }
            }
        }
        if tree.computes { self.absent(tree, &is_done) } else { Ok(()) }
    }

    /// Writes what is computed and has no place yet.
    fn absent(&mut self, tree: &'a Tree, is_done: &[bool]) -> Result<(), QueryError> {
        for ((name, rule), is_done) in tree.rules.iter().zip(is_done) {
            match rule {
                _ if *is_done => {}
                Rule::Compute(expression) => self.compute(name, expression)?,
                Rule::Nested(inner) if inner.computes => {
                    self.builder.begin_document(name);
                    self.document(inner, Document::empty())?;
                    self.builder.end();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn compute(&mut self, name: &str, expression: &'a Expression) -> Result<(), QueryError> {
        if let Some(value) = expression.carry_in(&self.scope)?.value() {
            let bytes = self.builder.bytes() + bytes_of(value);
            Writer::check(&mut self.charge, &self.scope, bytes)?;
            self.builder.append(name, value);
        }
        Ok(())
    }

    /// Asks whether the document may grow to so many bytes.
    fn check(
        charge: &mut Option<Charge>,
        scope: &Scope<'_>,
        bytes: usize,
    ) -> Result<(), QueryError> {
        if bytes <= LARGE_BYTES {
            return Ok(());
        }
        check_bytes(bytes)?;
        charge.get_or_insert_with(|| scope.memory().charge()).cover(bytes * 2)
    }

    /// Writes a field that has rules below; says whether it did.
    fn value(&mut self, tree: &'a Tree, name: &str, value: Value<'_>) -> Result<bool, QueryError> {
        match value {
            Value::Document(document) => {
                self.builder.begin_document(name);
                self.document(tree, document)?;
            }
            Value::Array(array) => {
                self.builder.begin_array(name);
                self.elements(tree, array)?;
            }
            _ if self.mode == Mode::Add && tree.computes => {
                self.builder.begin_document(name);
                self.document(tree, Document::empty())?;
            }
            _ if self.mode == Mode::Include => return Ok(false),
            other => {
                self.builder.append(name, other);
                return Ok(true);
            }
        }
        self.builder.end();
        Ok(true)
    }

    fn elements(&mut self, tree: &'a Tree, array: Array<'_>) -> Result<(), QueryError> {
        for element in array.iter() {
            match element {
                Value::Document(document) => {
                    self.builder.push_begin_document();
                    self.document(tree, document)?;
                    self.builder.end();
                }
                Value::Array(inner) => {
                    self.builder.push_begin_array();
                    self.elements(tree, inner)?;
                    self.builder.end();
                }
                _ if self.mode == Mode::Add && tree.computes => {
                    self.builder.push_begin_document();
                    self.document(tree, Document::empty())?;
                    self.builder.end();
                }
                _ if self.mode == Mode::Include => {}
                other => {
                    self.builder.push(other);
                }
            }
            Writer::check(&mut self.charge, &self.scope, self.builder.bytes())?;
        }
        Ok(())
    }
}
