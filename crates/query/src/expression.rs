//! Aggregation expressions: `{$add: ["$price", 1]}`.

use frond_doc::{Document, Value, ValueBuf};

use crate::error::QueryError;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {}

/// Variables: `$$ROOT`, `$$NOW`, and those of `$let`, `$map`, `$lookup`.
#[derive(Clone, Debug, Default)]
pub struct Variables {}

impl Variables {
    /// The system variables, `now_millis` being `$$NOW`; `let_values` are a command's `let`.
    pub fn new(
        _now_millis: i64,
        _let_values: Option<Document<'_>>,
    ) -> Result<Variables, QueryError> {
        todo!()
    }
}

impl Expression {
    /// Parses any value as an expression: a document with an operator, a `"$field.path"`, a
    /// `"$$variable"`, a literal, an array or a document of expressions.
    pub fn parse(_value: Value<'_>) -> Result<Expression, QueryError> {
        todo!()
    }

    /// Evaluates over `document`; `None` is "missing".
    pub fn evaluate(
        &self,
        _document: Document<'_>,
        _variables: &Variables,
    ) -> Result<Option<ValueBuf>, QueryError> {
        todo!()
    }
}
