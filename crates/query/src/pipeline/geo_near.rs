//! `$geoNear`: documents by their distance from a point, the nearest first.
//!
//! It reads a collection, so it stands first, and the caller that runs the pipeline cuts it off
//! ([`Pipeline::take_geo_near`](super::Pipeline::take_geo_near)): it asks for the documents within
//! the limits ([`GeoNear::filter`], by an index of the place's path), and hands them to
//! [`GeoNear::run`], which measures and sorts them.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value};

use super::set_path::set_path;
use super::sorter::Sorter;
use super::stage::{Context, Stage, lazily};
use super::{Documents, Resources};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Variables, failure, parse_path};
use crate::filter::Filter;
use crate::geometry::near::{self, Near};
use crate::metadata::{self, Metadata, MetadataKind};
use crate::number::any_type::Number;

/// A parsed `$geoNear`.
#[derive(Clone, Debug)]
pub struct GeoNear {
    near: Near,
    /// The field whose index is asked; `None`: the only one.
    key: Option<String>,
    query: Filter,
    distance: Option<Vec<String>>,
    location: Option<Vec<String>>,
    multiplier: f64,
    /// What of the search is to be left in the documents.
    metadata: Metadata,
}

impl Stage for GeoNear {
    fn run<'a>(
        self: Arc<Self>,
        _: Documents<'a>,
        _: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        Err(failure(40602, "$geoNear is only valid as the first stage in a pipeline"))
    }

    fn geo_near(&self) -> Option<&GeoNear> {
        Some(self)
    }
}

impl GeoNear {
    /// The path that was named.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Leaves these kinds of metadata in the documents.
    pub(super) fn with_metadata(self, metadata: Metadata) -> GeoNear {
        GeoNear { metadata, ..self }
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

fn number(name: &str, value: Value<'_>) -> Result<f64, QueryError> {
    Number::of(value)
        .map(Number::double)
        .ok_or_else(|| QueryError::new(Code::TypeMismatch, format!("{name} must be a number")))
}

pub(super) fn parse(argument: Value<'_>) -> Result<Arc<dyn Stage>, QueryError> {
    let Value::Document(options) = argument else {
        return Err(failure(10065, "$geoNear must be an object"));
    };
    let text = |name: &str| match options.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => {
            let message = format!("$geoNear requires that '{name}' option is a String");
            Err(QueryError::new(Code::TypeMismatch, message))
        }
    };
    refuse_unknown(options)?;
    let near = parse_near(options)?;
    let multiplier = parse_multiplier(options)?;
    let query = parse_query(options)?;
    if options.get("key") == Some(Value::String("")) {
        return Err(QueryError::new(
            Code::BadValue,
            "$geoNear parameter 'key' cannot be the empty string",
        ));
    }
    Ok(Arc::new(GeoNear {
        near,
        key: text("key")?.map(str::to_owned),
        query,
        distance: text("distanceField")?.map(parse_path).transpose()?,
        location: text("includeLocs")?.map(parse_path).transpose()?,
        multiplier,
        metadata: Metadata::default(),
    }))
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
            let message = "$geoNear no longer supports the 'limit' parameter. Use a $limit stage \
                           instead.";
            failure(50_858, message.replace("limit' p", &format!("{name}' p")))
        }
        "start" => failure(50_856, "$geoNear no longer supports the 'start' parameter."),
        _ => failure(5_860_400, format!("Unrecognized option to $geoNear: {name}")),
    })
}

fn parse_near(options: Document<'_>) -> Result<Near, QueryError> {
    let Some(point) = options.get("near") else {
        return Err(failure(5_860_400, "$geoNear requires a 'near' argument"));
    };
    let (Value::Document(_) | Value::Array(_)) = point else {
        let message = "$geoNear requires near argument to be an object or array";
        return Err(failure(5_860_401, message));
    };
    let spherical = options.get("spherical").is_some_and(|value| value.is_truthy());
    let refuse = |fault: String| QueryError::new(Code::BadValue, fault);
    let mut near = Near::of_stage(point, spherical).map_err(refuse)?;
    for name in ["minDistance", "maxDistance"] {
        if let Some(limit) = options.get(name) {
            number(name, limit)?;
            near.limit(name, limit).map_err(refuse)?;
        }
    }
    Ok(near)
}

fn parse_multiplier(options: Document<'_>) -> Result<f64, QueryError> {
    let multiplier = match options.get("distanceMultiplier") {
        None => 1.0,
        Some(value) => number("distanceMultiplier", value)?,
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
