//! An expression, once it is parsed.

use std::sync::Arc;

use frond_doc::{Document, Value, ValueBuf};

use super::constants::NotedConstant;
use super::equalities::{self, Equality};
use super::evaluated::{Evaluated, check_depth};
use super::node::{Answer, Node, Operation};
use super::parse::Parser;
use super::scope::{Scope, Variables};
use crate::error::QueryError;

/// A parsed expression. Cloning is cheap: the tree is shared.
#[derive(Clone, Debug)]
pub struct Expression(Arc<Node>, RunsScripts, Arc<[NotedConstant]>, Arc<[Equality]>);

/// Whether a client's script may be run to evaluate it.
type RunsScripts = bool;

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
    /// Parses any value as an expression, and notes in `parser` the variables that are used and not
    /// bound.
    pub(crate) fn parse_with(
        value: Value<'_>,
        parser: &mut Parser,
    ) -> Result<Expression, QueryError> {
        let before = parser.constants().len();
        let node = parser.expression(value)?;
        let constants = parser.constants()[before..].into();
        Ok(Expression(Arc::new(node), parser.runs_scripts(), constants, Arc::default()))
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
        Ok(Expression(Arc::new(node), parser.runs_scripts(), constants, Arc::default()))
    }

    /// The same, parsed of `value`, knowing the equalities that hold wherever it is true.
    pub(crate) fn with_equalities(self, value: Value<'_>) -> Expression {
        Expression(self.0, self.1, self.2, equalities::of(value).into())
    }

    /// Equalities that hold wherever it is true, if they were noted.
    pub(crate) fn equalities(&self) -> &[Equality] {
        &self.3
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
        let evaluated = self.0.evaluate(&scope)?;
        if let Some(value) = evaluated.value() {
            check_depth(value, 2)?;
        }
        Ok(evaluated.into_buf())
    }

    /// Whether a client's script may be run to evaluate it.
    pub(crate) fn runs_scripts(&self) -> bool {
        self.1
    }

    /// Returns the parts that give the same value for all documents.
    pub(crate) fn constants(&self) -> &[NotedConstant] {
        &self.2
    }

    /// The value, if the expression is nothing but a constant.
    pub(crate) fn constant(&self) -> Option<Value<'_>> {
        self.0.constant()
    }

    /// Whether it is the same for all documents, as far as that can be seen.
    pub(crate) fn is_constant(&self) -> bool {
        self.0.is_constant()
    }

    /// The path's parts, if the expression is nothing but a field's path.
    pub(crate) fn field(&self) -> Option<&[String]> {
        self.0.field()
    }

    /// As [`Expression::evaluate`], where what comes out may be a reference, or hold some.
    pub(crate) fn carry(
        &self,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<Option<ValueBuf>, QueryError> {
        let scope = Scope::new(document, variables);
        let evaluated = self.0.carry(&scope)?;
        if let Some(value) = evaluated.value() {
            check_depth(value, 2)?;
        }
        Ok(evaluated.into_buf())
    }

    /// As [`Expression::evaluate_in`], where what comes out may be a reference, or hold some.
    pub(crate) fn carry_in<'a>(&'a self, scope: &Scope<'a>) -> Result<Evaluated<'a>, QueryError> {
        self.0.carry(scope)
    }

    /// Evaluates where the caller copies the value on.
    pub(crate) fn evaluate_in<'a>(
        &'a self,
        scope: &Scope<'a>,
    ) -> Result<Evaluated<'a>, QueryError> {
        self.0.evaluate(scope)
    }
}
