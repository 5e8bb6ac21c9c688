//! Reads a `$geoNear` ([`GeoNearStage`]).

use std::sync::Arc;

use frond_doc::{Document, Value};

use super::geo_near::{GeoNear, GeoNearStage, Given};
use super::parse::{StageParser, one};
use super::stage::Stage;
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{failure, parse_path};
use crate::filter::Filter;
use crate::metadata::Metadata;
use crate::number::any_type::Number;

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(options) = argument else {
        return Err(failure(10065, "$geoNear must be an object"));
    };
    let text = |name: &str, code: Code| match options.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => {
            let message = format!("$geoNear requires that the '{name}' option is a String");
            Err(QueryError::new(code, message))
        }
    };
    refuse_unknown(options)?;
    let Some(near) = options.get("near") else {
        return Err(failure(5_860_400, "$geoNear requires a 'near' argument"));
    };
    let near = given(near, parser)?;
    let distance = text("distanceField", Code::Location(16606))?;
    let mut limit = |name: &str| options.get(name).map(|value| given(value, parser)).transpose();
    let (most, least) = (limit("maxDistance")?, limit("minDistance")?);
    let multiplier = parse_multiplier(options)?;
    let query = parse_query(options)?;
    let location = text("includeLocs", Code::Location(16607))?;
    let key = text("key", Code::TypeMismatch)?;
    if key == Some("") {
        let message = "$geoNear parameter 'key' cannot be the empty string";
        return Err(QueryError::new(Code::BadValue, message));
    }
    let rest = GeoNear {
        near: (),
        key: key.map(str::to_owned),
        query,
        distance: distance.map(parse_path).transpose()?,
        location: location.map(parse_path).transpose()?,
        multiplier,
        metadata: Metadata::default(),
    };
    let spherical = options.get("spherical").is_some_and(|value| value.is_truthy());
    one(GeoNearStage { near, least, most, spherical, rest })
}

fn given(value: Value<'_>, parser: &mut StageParser) -> Result<Given, QueryError> {
    let (expression, reads_document) = parser.expressions.parse_noting_reads(value)?;
    Ok(Given { expression, reads_document })
}

fn refuse_unknown(options: Document<'_>) -> Result<(), QueryError> {
    let known = [
        "near",
        "key",
        "query",
        "distanceField",
        "includeLocs",
        "distanceMultiplier",
        "spherical",
        "minDistance",
        "maxDistance",
        "uniqueDocs",
    ];
    let Some((name, _)) = options.iter().find(|(name, _)| !known.contains(name)) else {
        return Ok(());
    };
    Err(match name {
        "limit" | "num" => {
            let code = if name == "limit" { 50_858 } else { 50_857 };
            let message = format!(
                "$geoNear no longer supports the '{name}' parameter. Use a $limit stage instead."
            );
            failure(code, message)
        }
        "start" => failure(50_856, "$geoNear no longer supports the 'start' argument."),
        "collation" => {
            let message = "$geoNear does not accept the 'collation' parameter. Instead, specify a \
                           collation for the entire aggregation command.";
            failure(40_227, message)
        }
        _ => QueryError::new(Code::BadValue, format!("Unknown argument to $geoNear: {name}")),
    })
}

fn parse_multiplier(options: Document<'_>) -> Result<f64, QueryError> {
    let multiplier = match options.get("distanceMultiplier") {
        None => 1.0,
        Some(value) => Number::of(value).map(Number::double).ok_or_else(|| {
            QueryError::new(Code::TypeMismatch, "distanceMultiplier must be a number")
        })?,
    };
    if multiplier < 0.0 || multiplier.is_nan() {
        return Err(QueryError::new(Code::BadValue, "distanceMultiplier must be nonnegative"));
    }
    Ok(multiplier)
}

fn parse_query(options: Document<'_>) -> Result<Filter, QueryError> {
    let query = match options.get("query") {
        None => Filter::all(),
        Some(Value::Document(query)) => Filter::parse_with_functions(query)?,
        Some(_) => return Err(QueryError::new(Code::TypeMismatch, "query must be an object")),
    };
    if query.near().is_some() {
        let message = "$near cannot be used inside the 'query' of $geoNear";
        return Err(QueryError::new(Code::BadValue, message));
    }
    Ok(query)
}
