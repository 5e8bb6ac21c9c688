//! `$geoNear`: documents by their distance from a point, the nearest first.
//!
//! It reads a collection, so it stands first, and the caller that runs the pipeline cuts it off
//! ([`Pipeline::take_geo_near`](super::Pipeline::take_geo_near)): it asks for the documents within
//! the limits ([`GeoNear::filter`], by an index of the place's path), and hands them to
//! [`GeoNear::run`], which measures and sorts them.
//!
//! The point and the distances are expressions that may use the request's variables: those of a
//! `$lookup` differ from document to document. They are computed when the stage is cut off.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value, ValueBuf};

use super::parse::{StageParser, one};
use super::set_path::set_path;
use super::sorter::Sorter;
use super::stage::{Context, Stage, lazily};
use super::{Documents, Resources};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Expression, Variables, failure, parse_path};
use crate::filter::Filter;
use crate::geometry::near::{self, Near};
use crate::metadata::{self, Metadata, MetadataKind};
use crate::number::any_type::Number;

/// `$geoNear` as it was parsed.
#[derive(Debug)]
pub(super) struct GeoNearStage {
    near: Given,
    least: Option<Given>,
    most: Option<Given>,
    spherical: bool,
    /// All else.
    rest: GeoNear<()>,
}

/// An expression that has to be the same for all documents.
#[derive(Debug)]
struct Given {
    expression: Expression,
    reads_document: bool,
}

/// A `$geoNear` whose point is known.
#[derive(Clone, Debug)]
pub struct GeoNear<Place = Near> {
    near: Place,
    /// The field whose index is asked; `None`: the only one.
    key: Option<String>,
    query: Filter,
    distance: Option<Vec<String>>,
    location: Option<Vec<String>>,
    multiplier: f64,
    /// What of the search is to be left in the documents.
    metadata: Metadata,
}

impl Stage for GeoNearStage {
    fn run<'a>(
        self: Arc<Self>,
        _: Documents<'a>,
        _: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        Err(failure(40602, "$geoNear is only valid as the first stage in a pipeline"))
    }

    fn geo_near(&self) -> Option<&GeoNearStage> {
        Some(self)
    }
}

impl GeoNearStage {
    /// Computes the point and the distances; leaves these kinds of metadata in the documents.
    ///
    /// # Errors
    /// MongoDB's codes for what is no point and no distance.
    pub(super) fn computed(
        &self,
        variables: &Variables,
        metadata: Metadata,
    ) -> Result<GeoNear, QueryError> {
        let not_constant = (5_860_402, "$geoNear requires a constant near argument");
        let point = self.near.value(variables, not_constant)?;
        let (Value::Document(_) | Value::Array(_)) = point.as_value() else {
            let message =
                "$geoNear requires near argument to be a GeoJSON object or a legacy point(array)";
            return Err(failure(5_860_401, message));
        };
        let refuse = |fault: String| QueryError::new(Code::BadValue, fault);
        let mut near = Near::of_stage(point.as_value(), self.spherical).map_err(refuse)?;
        for (name, code, given) in
            [("minDistance", 7_555_701, &self.least), ("maxDistance", 7_555_702, &self.most)]
        {
            let Some(given) = given else { continue };
            let evaluates = format!("$geoNear requires ${name} to evaluate to a");
            let message = format!("{evaluates} constant number");
            let limit = given.value(variables, (code, &message))?;
            if !limit.as_value().is_number() {
                let message = format!("{evaluates} number");
                return Err(QueryError::new(Code::TypeMismatch, message));
            }
            near.limit(name, limit.as_value()).map_err(refuse)?;
        }
        let GeoNear { key, query, distance, location, multiplier, .. } = self.rest.clone();
        Ok(GeoNear { near, key, query, distance, location, multiplier, metadata })
    }
}

impl Given {
    fn parse(value: Value<'_>, parser: &mut StageParser) -> Result<Given, QueryError> {
        let (expression, reads_document) = parser.expressions.told(value)?;
        Ok(Given { expression, reads_document })
    }

    /// Its value; fails with a code and message of `not_constant` if it reads documents.
    fn value(
        &self,
        variables: &Variables,
        not_constant: (i32, &str),
    ) -> Result<ValueBuf, QueryError> {
        if self.reads_document {
            return Err(failure(not_constant.0, not_constant.1));
        }
        let value = self.expression.evaluate(Document::empty(), variables)?;
        Ok(value.unwrap_or_else(|| Value::Null.to_buf()))
    }
}

impl GeoNear {
    /// The path that was named.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The documents that are wanted.
    pub fn filter(&self, path: &str, variables: &Variables) -> Filter {
        let filter = self.query.clone().with_variables(variables.clone());
        filter.and_near(path, self.near.clone())
    }

    /// Measures and sorts documents whose place is at `path`.
    pub fn run<'a>(self, path: &str, input: Documents<'a>, resources: &Resources) -> Documents<'a> {
        let (path, resources) = (frond_doc::path::Path::new(path), resources.clone());
        lazily(move || {
            let mut sorter = Sorter::new("$geoNear", &resources, usize::MAX);
            for document in input {
                let document = document?;
                let Some(found) = near::nearest(&self.near, document.view(), &path) else {
                    continue;
                };
                let distance = Value::Double(found.distance * self.multiplier);
                let mut made: Option<DocumentBuf> = None;
                if let Some(field) = &self.distance {
                    made = Some(set_path(document.view(), field, Some(distance)));
                }
                if let Some(field) = &self.location {
                    let base = made.as_ref().unwrap_or(&document);
                    made = Some(set_path(base.view(), field, Some(found.place.as_value())));
                }
                let made = made.unwrap_or(document);
                let made = self.leave_metadata(made, distance, found.place.as_value());
                sorter.add(near::key_of(found.distance), made)?;
            }
            Ok(Box::new(sorter.finish()?.map(|entry| Ok(entry?.1))))
        })
    }
}

impl GeoNear {
    fn leave_metadata(
        &self,
        document: DocumentBuf,
        distance: Value<'_>,
        place: Value<'_>,
    ) -> DocumentBuf {
        let kinds =
            [(MetadataKind::GeoNearDistance, distance), (MetadataKind::GeoNearPoint, place)];
        let wanted: Vec<_> =
            kinds.into_iter().filter(|(kind, _)| self.metadata.contains(*kind)).collect();
        if wanted.is_empty() { document } else { metadata::append(document.view(), &wanted) }
    }
}

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
    let near = Given::parse(near, parser)?;
    let distance = text("distanceField", Code::Location(16606))?;
    let mut limit =
        |name: &str| options.get(name).map(|value| Given::parse(value, parser)).transpose();
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
