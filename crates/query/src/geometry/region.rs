//! The region that a query names for being within, or for intersecting: `$geometry`, `$box`,
//! `$polygon`, `$center`, `$centerSphere`.

use frond_doc::{Document, Value};

use super::parse::{self, Fault};
use super::planar::Area;
use super::sphere::{Point, TOLERANCE};
use super::{Geometry, Part};
use crate::number::any_type::Number;
use crate::text;

/// A region.
#[derive(Clone, Debug)]
pub(crate) enum Region {
    /// GeoJSON.
    Shape(Vec<Part>),
    /// The area within an angle of a point.
    Cap(Point, f64),
    /// In the plane.
    Plane(Area),
}

/// The relation that a query asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpatialRelation {
    /// `$geoWithin`
    Within,
    /// `$geoIntersects`
    Intersects,
}

/// Names that a region can have.
const SHAPES: [&str; 5] = ["$box", "$center", "$centerSphere", "$geometry", "$polygon"];

impl Region {
    /// Parses the argument of `$geoWithin` or `$geoIntersects`.
    pub(crate) fn parse(
        operator: &str,
        argument: Value<'_>,
    ) -> Result<(Region, SpatialRelation), Fault> {
        let relation = match operator {
            "$geoIntersects" => SpatialRelation::Intersects,
            _ => SpatialRelation::Within,
        };
        let Value::Document(argument) = argument else {
            return Err(format!(
                "$geoWithin/$geoIntersects needs an object, found: {}",
                text::value(argument)
            )
            .replace("$geoWithin/$geoIntersects", operator));
        };
        let mut region = None;
        for (name, value) in argument.iter() {
            match name {
                // Where documents lie on both sides of a hole in the data: nothing to us.
                "$uniqueDocs" => {}
                _ if region.is_some() || !SHAPES.contains(&name) => {
                    return Err(match name {
                        _ if SHAPES.contains(&name) => {
                            format!("{operator} takes one shape, found {name} too")
                        }
                        _ => format!("unknown geo specifier: {}", text::field(name, value)),
                    });
                }
                _ => region = Some(Region::shape(name, value)?),
            }
        }
        let Some(region) = region else {
            return Err(format!("{operator} must be provided with a geometry"));
        };
        let is_polygon = |parts: &[Part]| parts.iter().all(|part| matches!(part, Part::Polygon(_)));
        match (&region, relation) {
            (Region::Shape(_), SpatialRelation::Intersects) => {}
            (_, SpatialRelation::Intersects) => {
                let shown = text::value(Value::Document(argument));
                return Err(format!("$geoIntersect not supported with provided geometry: {shown}"));
            }
            (Region::Shape(parts), SpatialRelation::Within) if !is_polygon(parts) => {
                let shown = text::value(Value::Document(argument));
                return Err(format!("$within not supported with provided geometry: {shown}"));
            }
            _ => {}
        }
        Ok((region, relation))
    }

    fn shape(name: &str, value: Value<'_>) -> Result<Region, Fault> {
        let document = match value {
            Value::Document(document) => document,
            Value::Array(array) if name != "$geometry" => array.as_document(),
            _ => return Err(format!("unknown geo specifier: {}", text::field(name, value))),
        };
        match name {
            "$geometry" => {
                if !parse::is_geojson(document) {
                    let shown = text::value(Value::Document(document));
                    return Err(format!("Unknown GeoJSON type: {shown}"));
                }
                match parse::geojson(document)? {
                    Geometry::Sphere(parts) => Ok(Region::Shape(parts)),
                    Geometry::Flat(at) => Ok(Region::Shape(vec![Part::Point(at.to_sphere(), at)])),
                }
            }
            "$box" => {
                let mut values = document.iter().map(|(_, value)| value);
                let one = parse::flat_point(values.next())?;
                Ok(Region::Plane(Area::of_corners(one, parse::flat_point(values.next())?)))
            }
            "$polygon" => {
                let mut corners = Vec::new();
                for (_, value) in document.iter() {
                    corners.push(parse::flat_point(Some(value))?);
                }
                if corners.len() < 3 {
                    return Err("Polygon must have at least 3 points".to_owned());
                }
                Ok(Region::Plane(Area::Polygon(corners)))
            }
            _ => {
                let (centre, radius) = circle(document)?;
                if name == "$center" {
                    return Ok(Region::Plane(Area::Circle(centre, radius)));
                }
                if !centre.is_on_earth() {
                    let (x, y) = (centre.x, centre.y);
                    return Err(format!("longitude/latitude is out of bounds, lng: {x} lat: {y}"));
                }
                Ok(Region::Cap(centre.to_sphere(), radius))
            }
        }
    }

    /// Whether a stored shape is as the relation asks.
    pub(crate) fn relates(&self, relation: SpatialRelation, stored: Geometry) -> bool {
        let parts = match self {
            Region::Plane(area) => return stored.in_plane().is_some_and(|at| area.covers(at)),
            _ => stored.on_sphere(),
        };
        let Some(parts) = parts else { return false };
        match (self, relation) {
            (Region::Shape(own), SpatialRelation::Intersects) => {
                parts.iter().any(|part| own.iter().any(|own| own.touches(part)))
            }
            (Region::Shape(own), SpatialRelation::Within) => parts.iter().all(|part| {
                let is_within = |own: &Part| match own {
                    Part::Polygon(polygon) => part.is_within(polygon),
                    _ => false,
                };
                own.iter().any(is_within)
            }),
            (Region::Cap(centre, angle), _) => parts.iter().all(|part| {
                part.corners().iter().all(|corner| corner.distance(*centre) <= angle + TOLERANCE)
                    && (*angle <= std::f64::consts::FRAC_PI_2
                        || !reaches_out(part, *centre, *angle))
            }),
            (Region::Plane(_), _) => false,
        }
    }

    /// The angle between a point and the nearest point of a region on the sphere; 0 within.
    pub(crate) fn distance(&self, point: Point) -> f64 {
        match self {
            Region::Shape(parts) => super::distance(parts, point),
            Region::Cap(centre, angle) => (centre.distance(point) - angle).max(0.0),
            Region::Plane(_) => 0.0,
        }
    }
}

/// Whether a part leaves a cap of more than a hemisphere: comes too near to what is opposite.
fn reaches_out(part: &Part, centre: Point, angle: f64) -> bool {
    let opposite = Point::toward(centre.vector().map(|part| -part));
    part.distance(opposite) < std::f64::consts::PI - angle - TOLERANCE
}

/// Reads `[[x, y], radius]`.
fn circle(document: Document<'_>) -> Result<(super::planar::Position, f64), Fault> {
    let mut values = document.iter().map(|(_, value)| value);
    let centre = parse::flat_point(values.next())?;
    let radius = values.next().and_then(Number::of).map(Number::double);
    let Some(radius) = radius.filter(|radius| *radius >= 0.0) else {
        return Err("radius must be a non-negative number".to_owned());
    };
    if values.next().is_some() {
        return Err("Only 2 fields allowed for circular region".to_owned());
    }
    Ok((centre, radius))
}
