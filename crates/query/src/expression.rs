//! Aggregation expressions: `{$add: ["$price", 1]}`.
//!
//! Reading order: [`node`] (what an expression is, and how it is evaluated), `parse` (from BSON),
//! `table` (every operator, supported or refused), `scope` (variables), `evaluated` (a value that
//! is borrowed where it can be), `path` (how a field path fans out over arrays), `number` (how the
//! four number types combine), then the families: `arithmetic`, `rounding`, `comparison`,
//! `conditional`, `string`, `substring`, `search`, `array`, `iterate`, `pairs`, `set`, `object`,
//! `convert`, `hash`, `date`, `total`, `several` (whose parts, `parameters`, `extreme` and
//! `percentile`, accumulators use too), `trigonometry`, `bits`, `variable`.
//!
//! *Surprises*: "missing" is a value of its own, less than null and unequal to it; most operators
//! answer null where an argument is null or missing, but not all; unbound variables are noticed
//! when the expression runs, because a command's `let` is known only then.

mod arithmetic;
mod array;
mod bits;
mod comparison;
mod conditional;
mod convert;
mod date;
mod evaluated;
mod extreme;
mod hash;
mod iterate;
mod meta;
mod node;
mod object;
mod pairs;
pub(crate) mod parameters;
mod parse;
mod path;
pub(crate) mod percentile;
mod rounding;
mod scope;
mod search;
mod set;
mod several;
mod string;
mod substring;
mod table;
#[cfg(test)]
mod tests;
mod total;
mod trigonometry;
mod variable;

pub(crate) use parse::variable_features;
pub(crate) use table::features;

use std::sync::Arc;

use frond_doc::{Document, Value, ValueBuf};

use crate::error::QueryError;
pub(crate) use crate::error::failure;
use node::Node;

pub(crate) use evaluated::{Elements, Evaluated, Fields, check_bytes, check_depth};
pub(crate) use extreme::Extreme;
pub(crate) use hash::hashed_key;
pub(crate) use object::not_mergeable;
pub(crate) use parse::Parser;
pub(crate) use path::parse as parse_path;
pub use scope::Variables;
pub(crate) use scope::{Binding, Scope, check_name, undefined};
pub(crate) use variable::{random, random_share};

/// A parsed expression. Cloning is cheap: the tree is shared.
#[derive(Clone, Debug)]
pub struct Expression(Arc<Node>);

/// A value, null where it is missing.
#[derive(Debug)]
struct OrNull(Node);

impl node::Operation for OrNull {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> node::Answer<'a> {
        match self.0.evaluate(scope)? {
            Evaluated::Missing => Ok(Evaluated::NULL),
            value => Ok(value),
        }
    }
}

impl Expression {
    /// Parses any value as an expression: a document with an operator, a `"$field.path"`, a
    /// `"$$variable"`, a literal, an array or a document of expressions.
    ///
    /// # Errors
    /// MongoDB's codes: 168 for an operator that isn't there, 16020 for a wrong count of
    /// arguments, 40218 for `$meta`, and so on.
    pub fn parse(value: Value<'_>) -> Result<Expression, QueryError> {
        let mut parser = Parser::default();
        let parsed = Expression::parse_with(value, &mut parser)?;
        parser.metadata().refuse()?;
        Ok(parsed)
    }

    /// As `parse`, and tells `parser` of the variables that are used and not bound.
    pub(crate) fn parse_with(
        value: Value<'_>,
        parser: &mut Parser,
    ) -> Result<Expression, QueryError> {
        Ok(Expression(Arc::new(parser.expression(value)?)))
    }

    /// Parses the key of a group. Of a document with one field, unlike with several, MongoDB groups
    /// by the field's value, so that missing and null are one group, whose key has a null.
    pub(crate) fn parse_key(
        value: Value<'_>,
        parser: &mut Parser,
    ) -> Result<Expression, QueryError> {
        let mut node = parser.expression(value)?;
        if let Node::Document(fields) = &mut node
            && let [(_, field)] = &mut fields[..]
            && !matches!(field, Node::Document(_) | Node::Constant(_))
        {
            let inner = std::mem::replace(field, Node::of_constant(Value::Null));
            *field = Node::special(OrNull(inner));
        }
        Ok(Expression(Arc::new(node)))
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
