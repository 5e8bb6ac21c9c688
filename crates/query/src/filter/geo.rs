//! `$geoWithin`, `$geoIntersects`, `$near`, `$nearSphere`: conditions on places.
//!
//! A place is a GeoJSON object or a legacy pair; of an array of places each is tested. A value that
//! is no place fulfils nothing. `$near` also orders what is found, so that a filter has at most
//! one, and not within `$or` and the like: see [`Filter::near`](super::Filter::near).

use std::sync::Arc;

use frond_doc::{Document, Value};

use super::operand::{Operand, bad_value};
use crate::code::Code;
use crate::error::QueryError;
use crate::geometry::near::Near;
use crate::geometry::parse;
use crate::geometry::region::{Region, SpatialRelation};
use crate::text;

/// A region, and how places must lie to it.
#[derive(Clone, Debug)]
pub(crate) struct GeoTest {
    region: Arc<Region>,
    relation: SpatialRelation,
}

impl GeoTest {
    /// Whether a value is a place that lies so.
    pub(crate) fn matches(&self, value: Value<'_>) -> bool {
        let (Value::Document(_) | Value::Array(_)) = value else { return false };
        parse::stored(value).is_ok_and(|stored| self.region.relates(self.relation, stored))
    }

    /// Returns the region in which all matching places lie, or which they touch.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }
}

/// `$geoWithin`, `$within`, `$geoIntersects`
pub(super) fn region(operand: Operand<'_>) -> Result<GeoTest, QueryError> {
    let (region, relation) = Region::parse(operand.name, operand.value).map_err(bad_value)?;
    Ok(GeoTest { region: Arc::new(region), relation })
}

/// `$near`, `$nearSphere`
pub(super) fn near(operand: Operand<'_>) -> Result<Near, QueryError> {
    Near::parse(operand.name, operand.value, operand.siblings).map_err(bad_value)
}

/// Beside a `$near` stands nothing but its limits, and it stands first.
pub(super) fn check_place_of_near(operators: Document<'_>) -> Result<(), QueryError> {
    let place = operators.iter().position(|(name, _)| matches!(name, "$near" | "$nearSphere"));
    let is_limit = |name: &str| matches!(name, "$maxDistance" | "$minDistance" | "$uniqueDocs");
    match place {
        None => Ok(()),
        Some(0) => match operators.iter().skip(1).find(|(name, _)| !is_limit(name)) {
            Some((name, _)) => {
                let message = format!("invalid argument in geo near query: {name}");
                let is_near = matches!(name, "$near" | "$nearSphere");
                let code = if is_near { Code::BadValue } else { Code::Location(34413) };
                Err(QueryError::new(code, message))
            }
            None => Ok(()),
        },
        Some(_) => {
            let shown = text::value(Value::Document(operators));
            Err(bad_value(format!("near must be first in: {shown}")))
        }
    }
}

/// `$maxDistance`, `$minDistance`, `$uniqueDocs`: `$near` reads them.
pub(super) fn limit(operand: Operand<'_>) -> Result<(), QueryError> {
    let is_near = |name: &str| matches!(name, "$near" | "$nearSphere");
    if operand.siblings.iter().any(|(name, _)| is_near(name)) {
        return Ok(());
    }
    Err(bad_value(format!("{} needs a $near or $nearSphere beside it", operand.name)))
}
