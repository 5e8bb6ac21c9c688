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

use super::set_path::set_path;
use super::sorter::Sorter;
use super::stage::{Context, Stage, lazily};
use super::{Documents, Resources};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Expression, Variables, failure};
use crate::filter::Filter;
use crate::geometry::near::{self, Near};
use crate::metadata::{self, Metadata, MetadataKind};

/// `$geoNear` as it was parsed.
#[derive(Debug)]
pub(super) struct GeoNearStage {
    pub near: Given,
    pub least: Option<Given>,
    pub most: Option<Given>,
    pub spherical: bool,
    /// All else.
    pub rest: GeoNear<()>,
}

/// An expression that has to be the same for all documents.
#[derive(Debug)]
pub(super) struct Given {
    pub expression: Expression,
    pub reads_document: bool,
}

/// A `$geoNear` whose point is known.
#[derive(Clone, Debug)]
pub struct GeoNear<Place = Near> {
    pub(super) near: Place,
    /// The field whose index is asked; `None`: the only one.
    pub(super) key: Option<String>,
    pub(super) query: Filter,
    pub(super) distance: Option<Vec<String>>,
    pub(super) location: Option<Vec<String>>,
    pub(super) multiplier: f64,
    /// The metadata of the search that is left in the documents.
    pub(super) metadata: Metadata,
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
