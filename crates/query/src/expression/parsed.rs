//! An expression, once it is parsed.

use std::sync::Arc;

use frond_doc::{Document, Value, ValueBuf};

use super::compared_fields::{self, Implied, KnownComparison};
use super::constants::NotedConstant;
use super::evaluated::{Evaluated, check_depth};
use super::node::{Answer, Node, Operation};
use super::parse::Parser;
use super::scope::{Scope, Variables};
use crate::error::QueryError;

/// A parsed expression. Cloning is cheap: the tree is shared.
#[derive(Clone, Debug)]
pub struct Expression {
    node: Arc<Node>,
    /// Whether a client's script may be run to evaluate it.
    runs_scripts: bool,
    constants: Arc<[NotedConstant]>,
    /// Comparisons that hold wherever it is true, if they were noted.
    implied: Arc<Implied>,
    /// Those of them by which the planner may find documents, if they are known by now.
    ordered: Arc<[KnownComparison]>,
}

/// A value, null where it is missing.
#[derive(Debug)]
struct OrNull(Node);

impl Operation for OrNull {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        match self.0.evaluate(scope)? {
            Evaluated::Missing => Ok(Evaluated::NULL),
            value => Ok(value),
        }
    }
}

impl Expression {
    fn new(node: Node, runs_scripts: bool, constants: Arc<[NotedConstant]>) -> Expression {
        let (implied, ordered) = (Arc::default(), Arc::default());
        Expression { node: Arc::new(node), runs_scripts, constants, implied, ordered }
    }

    /// An expression that is always true, with comparisons of which the caller knows that they
    /// hold, by which the planner may find documents.
    pub(crate) fn always(ordered: Vec<KnownComparison>) -> Expression {
        let always = Node::of_constant(Value::Boolean(true));
        Expression::new(always, false, Arc::default()).with_ordered(ordered)
    }

    /// Parses any value as an expression, and notes in `parser` the variables that are used and not
    /// bound.
    pub(crate) fn parse_with(
        value: Value<'_>,
        parser: &mut Parser,
    ) -> Result<Expression, QueryError> {
        let before = parser.constants().len();
        let node = parser.expression(value)?;
        let constants = parser.constants()[before..].into();
        Ok(Expression::new(node, parser.runs_scripts(), constants))
    }

    /// Parses the key of a group. Of a document with one field, unlike with several, MongoDB groups
    /// by the field's value, so that missing and null are one group, whose key has a null.
    pub(crate) fn parse_key(
        value: Value<'_>,
        parser: &mut Parser,
    ) -> Result<Expression, QueryError> {
        let before = parser.constants().len();
        let mut node = parser.expression(value)?;
        if let Node::Document(fields) = &mut node
            && let [(_, field)] = &mut fields[..]
            && !matches!(field, Node::Document(_) | Node::Constant(_))
        {
            let inner = std::mem::replace(field, Node::of_constant(Value::Null));
            *field = Node::special(OrNull(inner));
        }
        let constants = parser.constants()[before..].into();
        Ok(Expression::new(node, parser.runs_scripts(), constants))
    }

    /// The same, parsed of `value`, with the comparisons noted that hold wherever it is true.
    pub(crate) fn with_comparisons(self, value: Value<'_>) -> Expression {
        Expression { implied: Arc::new(compared_fields::of(value)), ..self }
    }

    /// What holds wherever it is true, if that was noted.
    pub(crate) fn implied(&self) -> &Implied {
        &self.implied
    }

    /// The same, with comparisons by which the planner may find documents.
    pub(crate) fn with_ordered(self, ordered: Vec<KnownComparison>) -> Expression {
        Expression { ordered: ordered.into(), ..self }
    }

    /// The comparisons by which documents may be found.
    pub(crate) fn ordered(&self) -> &[KnownComparison] {
        &self.ordered
    }

    /// Evaluates over `document`; `None` is "missing".
    ///
    /// # Errors
    /// MongoDB's codes for values of the wrong type, numbers out of range, and results that are
    /// too large or too deep.
    pub fn evaluate(
        &self,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<Option<ValueBuf>, QueryError> {
        let scope = Scope::new(document, variables);
        let evaluated = self.node.evaluate(&scope)?;
        if let Some(value) = evaluated.value() {
            check_depth(value, 2)?;
        }
        Ok(evaluated.into_buf())
    }

    /// Whether a client's script may be run to evaluate it.
    pub(crate) fn runs_scripts(&self) -> bool {
        self.runs_scripts
    }

    /// Returns the parts that give the same value for all documents.
    pub(crate) fn constants(&self) -> &[NotedConstant] {
        &self.constants
    }

    /// The value, if the expression is nothing but a constant.
    pub(crate) fn constant(&self) -> Option<Value<'_>> {
        self.node.constant()
    }

    /// Whether it is the same for all documents, as far as that can be seen.
    pub(crate) fn is_constant(&self) -> bool {
        self.node.is_constant()
    }

    /// The path's parts, if the expression is nothing but a field's path.
    pub(crate) fn field(&self) -> Option<&[String]> {
        self.node.field()
    }

    /// As [`Expression::evaluate`], where what comes out may be a reference, or hold some.
    pub(crate) fn carry(
        &self,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<Option<ValueBuf>, QueryError> {
        let scope = Scope::new(document, variables);
        let evaluated = self.node.carry(&scope)?;
        if let Some(value) = evaluated.value() {
            check_depth(value, 2)?;
        }
        Ok(evaluated.into_buf())
    }

    /// As [`Expression::evaluate_in`], where what comes out may be a reference, or hold some.
    pub(crate) fn carry_in<'a>(&'a self, scope: &Scope<'a>) -> Result<Evaluated<'a>, QueryError> {
        self.node.carry(scope)
    }

    /// Evaluates where the caller copies the value on.
    pub(crate) fn evaluate_in<'a>(
        &'a self,
        scope: &Scope<'a>,
    ) -> Result<Evaluated<'a>, QueryError> {
        self.node.evaluate(scope)
    }
}
