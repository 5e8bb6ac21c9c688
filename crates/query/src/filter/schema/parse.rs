//! From BSON to a schema.

use frond_doc::{Array, Document, Value, order};

use super::{Dependency, Limit, Rule, Schema, Test};
use crate::code::Code;
use crate::error::QueryError;
use crate::filter::pattern::Pattern;
use crate::filter::shape::TypeSet;
use crate::filter::tree::TREE_DEPTH_MAX;

/// Keywords of JSON Schema that MongoDB refuses, too.
const REFUSED: [&str; 6] = ["$ref", "$schema", "default", "definitions", "format", "id"];

fn failed(message: impl Into<String>) -> QueryError {
    QueryError::new(Code::FailedToParse, message)
}

fn wrong_type(keyword: &str, expected: &str) -> QueryError {
    let message = format!("$jsonSchema keyword '{keyword}' must be {expected}");
    QueryError::new(Code::TypeMismatch, message)
}

impl Schema {
    /// Parses a schema, which lies so deep in others.
    pub(crate) fn parse(schema: Document<'_>, depth: usize) -> Result<Schema, QueryError> {
        if depth > TREE_DEPTH_MAX {
            let message = format!("exceeded maximum query tree depth of {TREE_DEPTH_MAX}");
            return Err(QueryError::new(Code::BadValue, message));
        }
        let mut parsed = Schema::default();
        if schema.get("type").is_some() && schema.get("bsonType").is_some() {
            return Err(failed("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'"));
        }
        for (keyword, value) in schema.iter() {
            match keyword {
                "title" => parsed.title = Some(text(keyword, value)?.to_owned()),
                "description" => parsed.description = Some(text(keyword, value)?.to_owned()),
                _ => {
                    let rule = |test| Rule {
                        keyword: keyword.to_owned(),
                        specified: value.to_buf(),
                        test,
                    };
                    parsed.rules.extend(test(keyword, value, schema, depth)?.map(rule));
                }
            }
        }
        Ok(parsed)
    }
}

/// Parses one keyword; `None` if it says nothing by itself.
fn test(
    keyword: &str,
    value: Value<'_>,
    siblings: Document<'_>,
    depth: usize,
) -> Result<Option<Test>, QueryError> {
    let inner = depth + 1;
    Ok(Some(match keyword {
        "type" => Test::Type(json_type(value)?),
        "bsonType" => Test::Type(bson_type(value)?),
        "enum" => Test::Enum(values(keyword, value)?.into_iter().map(super::unordered).collect()),
        "properties" => Test::Properties(schemas_by_name(keyword, value, inner)?),
        "patternProperties" => Test::PatternProperties(patterns(keyword, value, inner)?),
        "additionalProperties" => return other_properties(keyword, value, siblings, inner),
        "required" => Test::Required(strings(keyword, value)?),
        "minProperties" => Test::PropertyCount(Limit::Min(count(keyword, value)?)),
        "maxProperties" => Test::PropertyCount(Limit::Max(count(keyword, value)?)),
        "dependencies" => Test::Dependencies(dependencies(keyword, value, inner)?),
        "items" => match value {
            Value::Document(schema) => Test::Items(Box::new(Schema::parse(schema, inner)?)),
            Value::Array(schemas) => Test::ItemsInOrder(list(keyword, schemas, inner)?),
            _ => return Err(wrong_type(keyword, "an array or an object")),
        },
        "additionalItems" => return other_items(keyword, value, siblings, inner),
        "minItems" => Test::ItemCount(Limit::Min(count(keyword, value)?)),
        "maxItems" => Test::ItemCount(Limit::Max(count(keyword, value)?)),
        "uniqueItems" => match value {
            Value::Boolean(true) => Test::UniqueItems,
            Value::Boolean(false) => return Ok(None),
            _ => return Err(wrong_type(keyword, "a boolean")),
        },
        "minimum" | "maximum" => bound(keyword, value, siblings)?,
        "exclusiveMinimum" | "exclusiveMaximum" => {
            let other = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
            check_exclusive(keyword, other, value, siblings)?;
            return Ok(None);
        }
        "multipleOf" => multiple_of(keyword, value)?,
        "minLength" => Test::Length(Limit::Min(count(keyword, value)?)),
        "maxLength" => Test::Length(Limit::Max(count(keyword, value)?)),
        "pattern" => Test::Pattern(Pattern::new(text(keyword, value)?, "")?),
        "allOf" => Test::All(schemas(keyword, value, inner)?),
        "anyOf" => Test::Any(schemas(keyword, value, inner)?),
        "oneOf" => Test::One(schemas(keyword, value, inner)?),
        "not" => match value {
            Value::Document(schema) => Test::Not(Box::new(Schema::parse(schema, inner)?)),
            _ => return Err(wrong_type(keyword, "an object")),
        },
        _ if REFUSED.contains(&keyword) => {
            let message = format!("$jsonSchema keyword '{keyword}' is not currently supported");
            return Err(failed(message));
        }
        _ => return Err(failed(format!("Unknown $jsonSchema keyword: {keyword}"))),
    }))
}

fn other_properties(
    keyword: &str,
    value: Value<'_>,
    siblings: Document<'_>,
    depth: usize,
) -> Result<Option<Test>, QueryError> {
    let schema = schema_or_boolean(keyword, value, depth)?;
    let Some(schema) = schema else { return Ok(None) };
    let names = |keyword| names_of(siblings.get(keyword));
    let mut patterns = Vec::new();
    for name in names("patternProperties") {
        patterns.push(Pattern::new(name, "")?);
    }
    let names = names("properties").into_iter().map(str::to_owned).collect();
    Ok(Some(Test::OtherProperties { names, patterns, schema }))
}

fn other_items(
    keyword: &str,
    value: Value<'_>,
    siblings: Document<'_>,
    depth: usize,
) -> Result<Option<Test>, QueryError> {
    let schema = schema_or_boolean(keyword, value, depth)?;
    // Without items in order there are no others.
    Ok(match (siblings.get("items"), schema) {
        (Some(Value::Array(items)), Some(schema)) => {
            Some(Test::OtherItems(items.iter().count(), schema))
        }
        _ => None,
    })
}

/// Checks what says of the keyword `other`, beside which it stands, whether its bound is excluded.
fn check_exclusive(
    keyword: &str,
    other: &str,
    value: Value<'_>,
    siblings: Document<'_>,
) -> Result<(), QueryError> {
    if siblings.get(other).is_none() {
        return Err(failed(format!(
            "$jsonSchema keyword '{other}' must be a present if {keyword} is present"
        )));
    }
    match value {
        Value::Boolean(_) => Ok(()),
        _ => Err(wrong_type(keyword, "a boolean")),
    }
}

fn multiple_of(keyword: &str, value: Value<'_>) -> Result<Test, QueryError> {
    if !value.is_number() {
        return Err(wrong_type(keyword, "a number"));
    }
    if order::compare(value, Value::Int32(0)).is_le() {
        let message = "$jsonSchema keyword 'multipleOf' must have a positive value";
        return Err(failed(message));
    }
    Ok(Test::MultipleOf(value.to_buf()))
}

fn text<'v>(keyword: &str, value: Value<'v>) -> Result<&'v str, QueryError> {
    value.as_str().ok_or_else(|| wrong_type(keyword, "a string"))
}

fn count(keyword: &str, value: Value<'_>) -> Result<u64, QueryError> {
    let whole = crate::number::whole(value).and_then(|number| u64::try_from(number).ok());
    whole.ok_or_else(|| match value.is_number() {
        true => failed(format!("Expected a non-negative integer in: {keyword}")),
        // As MongoDB, which reads these as it does other counts.
        false => failed(format!("Expected a number in: {keyword}")),
    })
}

/// The elements of an array that must not be empty nor hold a value twice.
fn values<'v>(keyword: &str, value: Value<'v>) -> Result<Vec<Value<'v>>, QueryError> {
    let Value::Array(array) = value else { return Err(wrong_type(keyword, "an array")) };
    let values: Vec<Value<'v>> = array.iter().collect();
    if values.is_empty() {
        return Err(failed(format!("$jsonSchema keyword '{keyword}' cannot be an empty array")));
    }
    if super::duplicate(array).is_some() {
        let message =
            format!("$jsonSchema keyword '{keyword}' array cannot contain duplicate values");
        return Err(failed(message));
    }
    Ok(values)
}

fn strings(keyword: &str, value: Value<'_>) -> Result<Vec<String>, QueryError> {
    let mut strings = Vec::new();
    for value in values(keyword, value)? {
        let text = value.as_str();
        strings.push(text.ok_or_else(|| wrong_type(keyword, "an array of strings"))?.to_owned());
    }
    Ok(strings)
}

fn json_type(value: Value<'_>) -> Result<TypeSet, QueryError> {
    let names: Vec<Value<'_>> = match value {
        Value::String(_) => vec![value],
        Value::Array(_) => values("type", value)?,
        _ => return Err(wrong_type("type", "either a string or an array of strings")),
    };
    let mut array = frond_doc::DocumentBuilder::new();
    array.begin_array("");
    for name in names {
        let alias = match name.as_str() {
            Some("boolean") => "bool",
            Some(name @ ("array" | "null" | "number" | "object" | "string")) => name,
            Some("integer") => {
                return Err(failed("$jsonSchema type 'integer' is not currently supported."));
            }
            _ => {
                let shown = crate::text::value(name);
                let message = format!("Unknown type name alias: {shown}");
                return Err(QueryError::new(Code::BadValue, message));
            }
        };
        array.push(Value::String(alias));
    }
    array.end();
    TypeSet::parse(array.build().get("").unwrap_or(Value::Null))
}

fn bson_type(value: Value<'_>) -> Result<TypeSet, QueryError> {
    let are_strings = match value {
        Value::String(_) => true,
        Value::Array(_) => values("bsonType", value)?.iter().all(|name| name.as_str().is_some()),
        _ => false,
    };
    if !are_strings {
        return Err(wrong_type("bsonType", "either a string or an array of strings"));
    }
    TypeSet::parse(value)
}

fn bound(keyword: &str, value: Value<'_>, siblings: Document<'_>) -> Result<Test, QueryError> {
    if !value.is_number() {
        return Err(wrong_type(keyword, "a number"));
    }
    let is_minimum = keyword == "minimum";
    let exclusive = if is_minimum { "exclusiveMinimum" } else { "exclusiveMaximum" };
    let is_exclusive = siblings.get(exclusive) == Some(Value::Boolean(true));
    Ok(Test::Bound { bound: value.to_buf(), is_minimum, is_exclusive })
}

/// `true` demands nothing, `false` that there is none.
fn schema_or_boolean(
    keyword: &str,
    value: Value<'_>,
    depth: usize,
) -> Result<Option<Option<Box<Schema>>>, QueryError> {
    match value {
        Value::Boolean(true) => Ok(None),
        Value::Boolean(false) => Ok(Some(None)),
        Value::Document(schema) => Ok(Some(Some(Box::new(Schema::parse(schema, depth)?)))),
        _ => Err(wrong_type(keyword, "either an object or a boolean")),
    }
}

fn names_of(value: Option<Value<'_>>) -> Vec<&str> {
    let document = value.and_then(|value| value.as_document());
    document.map_or_else(Vec::new, |document| document.iter().map(|(name, _)| name).collect())
}

fn schemas_by_name(
    keyword: &str,
    value: Value<'_>,
    depth: usize,
) -> Result<Vec<(String, Schema)>, QueryError> {
    let Value::Document(document) = value else { return Err(wrong_type(keyword, "an object")) };
    let mut schemas = Vec::new();
    for (name, schema) in document.iter() {
        let Value::Document(schema) = schema else {
            let message =
                format!("Nested schema for $jsonSchema property '{name}' must be an object");
            return Err(QueryError::new(Code::TypeMismatch, message));
        };
        schemas.push((name.to_owned(), Schema::parse(schema, depth)?));
    }
    Ok(schemas)
}

fn patterns(
    keyword: &str,
    value: Value<'_>,
    depth: usize,
) -> Result<Vec<(Pattern, Schema)>, QueryError> {
    let by_name = schemas_by_name(keyword, value, depth)?;
    by_name.into_iter().map(|(name, schema)| Ok((Pattern::new(&name, "")?, schema))).collect()
}

fn schemas(keyword: &str, value: Value<'_>, depth: usize) -> Result<Vec<Schema>, QueryError> {
    let Value::Array(array) = value else { return Err(wrong_type(keyword, "an array")) };
    if array.is_empty() {
        let message = format!("$jsonSchema keyword '{keyword}' must be a non-empty array");
        return Err(QueryError::new(Code::BadValue, message));
    }
    list(keyword, array, depth)
}

fn list(keyword: &str, array: Array<'_>, depth: usize) -> Result<Vec<Schema>, QueryError> {
    let mut schemas = Vec::new();
    for schema in array.iter() {
        let Value::Document(schema) = schema else {
            return Err(wrong_type(keyword, "an array of objects"));
        };
        schemas.push(Schema::parse(schema, depth)?);
    }
    Ok(schemas)
}

fn dependencies(
    keyword: &str,
    value: Value<'_>,
    depth: usize,
) -> Result<Vec<(String, Dependency)>, QueryError> {
    let Value::Document(document) = value else { return Err(wrong_type(keyword, "an object")) };
    let mut dependencies = Vec::new();
    for (name, demand) in document.iter() {
        let dependency = match demand {
            Value::Document(schema) => Dependency::Schema(Schema::parse(schema, depth)?),
            Value::Array(_) => Dependency::Properties(strings(keyword, demand)?),
            _ => return Err(wrong_type(keyword, "an object of objects and arrays")),
        };
        dependencies.push((name.to_owned(), dependency));
    }
    Ok(dependencies)
}
