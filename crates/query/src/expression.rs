//! Aggregation expressions: `{$add: ["$price", 1]}`.
//!
//! Reading order: [`node`] (what an expression is, and how it is evaluated), `parse` (from BSON),
//! `parsed`, `compared_fields`, `constants` (what is computed before the first document), `table`
//! (every operator, supported or refused; handed to the parser, since operators parse their
//! arguments with it),
//! `scope` (variables), `let_values`, `evaluated` (a value that is borrowed where it can be),
//! `path` (how a field path fans out over arrays), `number` (how the four number types combine),
//! then the families: `arithmetic`, `rounding`, `comparison`, `conditional`, `string`, `substring`,
//! `search`, `array`, `iterate`, `pairs`, `set`, `object`, `convert`, `hash`, `date`, `total`,
//! `several` (whose parts, `parameters`, `extreme` and `percentile`, accumulators use too),
//! `trigonometry`, `bits`, `variable`, `scripted`.
//!
//! *Surprises*: "missing" is a value of its own, less than null and unequal to it; most operators
//! answer null where an argument is null or missing, but not all; unbound variables are noticed
//! when the expression runs, because a command's `let` is known only then.

mod arithmetic;
mod array;
mod bits;
mod compared_fields;
mod comparison;
mod conditional;
mod constants;
mod convert;
mod date;
mod evaluated;
mod extreme;
mod hash;
mod iterate;
mod let_values;
mod meta;
mod node;
mod object;
mod pairs;
pub(crate) mod parameters;
mod parse;
mod parsed;
mod path;
pub(crate) mod percentile;
mod rounding;
mod scope;
mod scripted;
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
pub(crate) use table::{features, is_operator};

use frond_doc::Value;

use crate::error::QueryError;
pub(crate) use crate::error::failure;

pub(crate) use compared_fields::{Implied, KnownComparison, Relation};
pub(crate) use constants::{NotedConstant, compute};
pub(crate) use evaluated::{Elements, Evaluated, Fields, check_bytes, check_depth};
pub(crate) use extreme::Extreme;
pub(crate) use hash::hashed_key;
pub(crate) use object::not_mergeable;
pub(crate) use parse::Parser;
pub use parsed::Expression;
pub(crate) use path::parse as parse_path;
pub use scope::Variables;
pub(crate) use scope::{Binding, Scope, check_name, undefined};
pub(crate) use variable::{random, random_share};

impl Default for Parser {
    /// A parser that knows all operators.
    fn default() -> Parser {
        Parser::new(table::find)
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
}
