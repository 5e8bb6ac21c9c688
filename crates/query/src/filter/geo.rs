//! `$geoWithin`, `$geoIntersects`, `$near`, `$nearSphere`: conditions on places.
//!
//! A place is a GeoJSON object or a legacy pair; of an array of places each is asked. A value that
//! is no place fulfils nothing. `$near` also orders what is found, so that a filter has at most
//! one, and not within `$or` and the like: see [`Filter::near`](super::Filter::near).

use std::sync::Arc;

use frond_doc::{Document, Value};

use super::operators::Operand;
use super::parse::bad_value;
use super::tree::{Condition, Field, Node, Test};
use crate::error::QueryError;
use crate::geometry::near::Near;
use crate::geometry::parse;
use crate::geometry::region::{Question, Region};
use crate::text;

/// A region and what is asked of places.
#[derive(Clone, Debug)]
pub(crate) struct GeoTest {
    region: Arc<Region>,
    question: Question,
}

impl GeoTest {
    /// Whether a value is a place as asked.
    pub(crate) fn matches(&self, value: Value<'_>) -> bool {
        let (Value::Document(_) | Value::Array(_)) = value else { return false };
        parse::stored(value).is_ok_and(|stored| self.region.answers(self.question, stored))
    }

    /// Where all answers lie, or touch.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }
}

/// `$geoWithin`, `$within`, `$geoIntersects`
pub(super) fn region(operand: Operand<'_>) -> Result<Condition, QueryError> {
    let (region, question) = Region::parse(operand.name, operand.value).map_err(bad_value)?;
    Ok(Condition::Test(Test::Geo(GeoTest { region: Arc::new(region), question })))
}

/// `$near`, `$nearSphere`
pub(super) fn near(operand: Operand<'_>) -> Result<Condition, QueryError> {
    let near = Near::parse(operand.name, operand.value, operand.siblings).map_err(bad_value)?;
    Ok(Condition::Test(Test::Near(Arc::new(near))))
}

/// Beside a `$near` stands nothing but its limits, and it stands first.
pub(super) fn check_place_of_near(operators: Document<'_>) -> Result<(), QueryError> {
    let place = operators.iter().position(|(name, _)| matches!(name, "$near" | "$nearSphere"));
    let is_limit = |name: &str| matches!(name, "$maxDistance" | "$minDistance" | "$uniqueDocs");
    match place {
        None => Ok(()),
        Some(0) => match operators.iter().skip(1).find(|(name, _)| !is_limit(name)) {
            Some((name, _)) => {
                Err(bad_value(format!("invalid argument in geo near query: {name}")))
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

/// The `$near` of a filter: its path and itself.
///
/// # Errors
/// `BadValue` if there are two, or one stands where it can't order what is found.
pub(super) fn find_near(root: &Node) -> Result<Option<(&str, &Arc<Near>)>, QueryError> {
    let mut found = None;
    let nodes = match root {
        Node::And(nodes) => nodes.as_slice(),
        other => std::slice::from_ref(other),
    };
    for node in nodes {
        let direct = match node {
            Node::Field(field) => near_of(field),
            Node::And(_) => find_near(node)?,
            _ => None,
        };
        if direct.is_some() && found.is_some() {
            return Err(bad_value("Too many geoNear expressions"));
        }
        if direct.is_none() && holds_near(node) {
            return Err(bad_value("geo $near must be top-level expr"));
        }
        found = found.or(direct);
    }
    Ok(found)
}

/// Puts another `$near` where one is. Recursion is bounded by the depth of filters.
pub(super) fn replace_near(node: &mut Node, near: &Arc<Near>) {
    match node {
        Node::And(nodes) => nodes.iter_mut().for_each(|inner| replace_near(inner, near)),
        Node::Field(field) => {
            let conditions = match &mut field.condition {
                Condition::All(conditions) => conditions.as_mut_slice(),
                condition => std::slice::from_mut(condition),
            };
            for condition in conditions {
                if let Condition::Test(test @ Test::Near(_)) = condition {
                    *test = Test::Near(Arc::clone(near));
                }
            }
        }
        _ => {}
    }
}

fn near_of(field: &Field) -> Option<(&str, &Arc<Near>)> {
    let test = |condition| match condition {
        &Condition::Test(Test::Near(ref near)) => Some((field.dotted.as_str(), near)),
        _ => None,
    };
    match &field.condition {
        Condition::All(conditions) => conditions.iter().find_map(test),
        condition => test(condition),
    }
}

/// Recursion is bounded by the depth of filters.
fn holds_near(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(holds_near),
        Node::Field(field) => condition_holds_near(&field.condition),
        _ => false,
    }
}

fn condition_holds_near(condition: &Condition) -> bool {
    match condition {
        Condition::All(conditions) => conditions.iter().any(condition_holds_near),
        Condition::Not(inner) => condition_holds_near(inner),
        Condition::Test(Test::Near(_)) => true,
        Condition::Test(Test::ElementValue(inner)) => condition_holds_near(inner),
        Condition::Test(Test::ElementDocument(inner)) => holds_near(inner),
        Condition::Test(_) => false,
    }
}
