//! `$bucket`: short for a `$group` by a `$switch` over the boundaries, and a `$sort`.

use std::sync::Arc;

use frond_doc::{DocumentBuilder, Value, ValueBuf, document};

use super::group::group;
use super::parse::StageParser;
use super::sort::Sort;
use super::stage::Stage;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{Expression, Parser, Variables, failure};
use crate::sort::SortPattern;

/// The value of an expression that reads no document.
fn constant(value: Value<'_>, what: &str, code: i32) -> Result<ValueBuf, QueryError> {
    let refuse = || {
        let text = crate::text::value(value);
        failure(code, format!("The $bucket '{what}' field must be a constant, but found: {text}."))
    };
    let mut parser = Parser::default();
    let expression = Expression::parse_with(value, &mut parser)?;
    if parser.reads_document() || !parser.free().is_empty() {
        return Err(refuse());
    }
    let empty = frond_doc::Document::empty();
    expression.evaluate(empty, &Variables::default())?.ok_or_else(refuse)
}

fn boundaries(value: Value<'_>, by: &Collation) -> Result<Vec<ValueBuf>, QueryError> {
    let Value::Array(array) = value else {
        let name = value.element_type().alias();
        let message =
            format!("The $bucket 'boundaries' field must be an array, but found type: {name}.");
        return Err(failure(40200, message));
    };
    let mut boundaries = Vec::new();
    for element in array.iter() {
        boundaries.push(constant(element, "boundaries", 40191)?);
    }
    if boundaries.len() < 2 {
        let message = "The $bucket 'boundaries' field must have at least 2 values, but found \
                       fewer.";
        return Err(failure(40192, message));
    }
    for pair in boundaries.windows(2) {
        let (low, high) = (pair[0].as_value(), pair[1].as_value());
        let both_numbers = low.is_number() && high.is_number();
        if !both_numbers && low.element_type() != high.element_type() {
            let message = "All values in the 'boundaries' option to $bucket must have the same \
                           type.";
            return Err(failure(40193, message));
        }
        if by.compare(low, high).is_ge() {
            let message = "The 'boundaries' option to $bucket must be sorted in ascending order.";
            return Err(failure(40194, message));
        }
    }
    Ok(boundaries)
}

/// `{$literal: value}`
fn append_literal(builder: &mut DocumentBuilder, name: &str, value: &ValueBuf) {
    builder.begin_document(name).append("$literal", value.as_value()).end();
}

/// `{name: [by, {$literal: boundary}]}` as an element of the array that is open.
fn push_comparison(builder: &mut DocumentBuilder, name: &str, by: Value<'_>, boundary: &ValueBuf) {
    builder.push_begin_document().begin_array(name).push(by).push_begin_document();
    builder.append("$literal", boundary.as_value()).end().end().end();
}

/// The specification of the `$group`.
fn specification(
    by: Value<'_>,
    boundaries: &[ValueBuf],
    default: Option<&ValueBuf>,
    output: Option<Value<'_>>,
) -> Result<DocumentBuilder, QueryError> {
    let mut builder = DocumentBuilder::new();
    builder.begin_document("_id").begin_document("$switch").begin_array("branches");
    for pair in boundaries.windows(2) {
        builder.push_begin_document().begin_document("case").begin_array("$and");
        push_comparison(&mut builder, "$gte", by, &pair[0]);
        push_comparison(&mut builder, "$lt", by, &pair[1]);
        builder.end().end();
        append_literal(&mut builder, "then", &pair[0]);
        builder.end();
    }
    builder.end();
    if let Some(default) = default {
        append_literal(&mut builder, "default", default);
    }
    builder.end().end();
    match output {
        Some(Value::Document(output)) => {
            for (name, value) in output.iter() {
                builder.append(name, value);
            }
        }
        Some(other) => {
            let name = other.element_type().alias();
            let message =
                format!("The $bucket 'output' field must be an object, but found type: {name}.");
            return Err(failure(40196, message));
        }
        None => {
            builder.begin_document("count").append("$sum", Value::Int32(1)).end();
        }
    }
    Ok(builder)
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(options) = argument else {
        let name = argument.element_type().alias();
        let message =
            format!("Argument to $bucket stage must be an object, but found type: {name}.");
        return Err(failure(40201, message));
    };
    let known = ["groupBy", "boundaries", "default", "output"];
    if let Some((name, _)) = options.iter().find(|(name, _)| !known.contains(name)) {
        return Err(failure(40197, format!("Unrecognized option to $bucket: {name}.")));
    }
    let (Some(by), Some(limits)) = (options.get("groupBy"), options.get("boundaries")) else {
        let message = "$bucket requires 'groupBy' and 'boundaries' to be specified.";
        return Err(failure(40198, message));
    };
    let is_expression = match by {
        Value::String(path) => path.starts_with('$'),
        Value::Document(document) => !document.is_empty(),
        _ => false,
    };
    if !is_expression {
        let message = "The $bucket 'groupBy' field must be defined as a $-prefixed path or an \
                       expression object.";
        return Err(failure(40202, message));
    }
    let limits = boundaries(limits, parser.collation())?;
    let default =
        options.get("default").map(|value| constant(value, "default", 40195)).transpose()?;
    if let (Some(default), Some(first), Some(last)) = (&default, limits.first(), limits.last()) {
        let default = default.as_value();
        let by = parser.collation();
        let is_inside = by.compare(first.as_value(), default).is_le()
            && by.compare(default, last.as_value()).is_lt();
        if is_inside {
            let message = "The $bucket 'default' field must be less than the lowest boundary or \
                           greater than or equal to the highest boundary.";
            return Err(failure(40199, message));
        }
    }
    let specification = specification(by, &limits, default.as_ref(), options.get("output"))?;
    let group = group(specification.build().view(), parser)?;
    let sort = Sort::of(SortPattern::parse(document! { "_id": 1_i32 }.view())?);
    Ok(vec![Arc::new(group), Arc::new(sort)])
}
