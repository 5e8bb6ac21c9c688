//! Places on the Earth and in the plane: what `$geoWithin`, `$geoIntersects`, `$near` and
//! `$geoNear` compare.
//!
//! GeoJSON lies on a sphere, with great circles as edges ([`sphere`], [`polygon`]); legacy pairs
//! (`[x, y]`, `{x: 1, y: 2}`) lie in the plane ([`planar`]), and count as points on the sphere
//! where a question is about the sphere. `cells` and [`grid`] number places for indexes. Reading
//! order: `sphere`, `polygon`, `planar`, `parse` (from BSON, with MongoDB's refusals), `region`
//! (what a query asks to be within), this file: shapes and how they stand to each other.
//!
//! *Invariants*
//! 1. All relations are closed: what touches, intersects; what lies on an edge, is within.
//! 2. A shape of several parts intersects if one part does, is within if all parts are, and is as
//!    near as its nearest part.

pub(crate) mod cells;
pub mod grid;
pub(crate) mod near;
pub(crate) mod parse;
pub(crate) mod planar;
pub(crate) mod polygon;
pub(crate) mod region;
pub(crate) mod sphere;

use planar::Position;
use polygon::Polygon;
use sphere::{Point, TOLERANCE, arcs_touch};

/// A geometry that is stored, or asked for.
#[derive(Clone, Debug)]
pub(crate) enum Geometry {
    /// A legacy pair.
    Flat(Position),
    /// GeoJSON.
    Sphere(Vec<Part>),
}

/// A part of a GeoJSON object; each object is a list of them.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// A point, and its coordinates as they were given.
    Point(Point, Position),
    /// Arcs from point to point.
    Line(Vec<Point>),
    /// A polygon.
    Polygon(Box<Polygon>),
}

impl Geometry {
    /// The shape on the sphere; `None` of a legacy pair that isn't there.
    pub(crate) fn on_sphere(self) -> Option<Vec<Part>> {
        match self {
            Geometry::Flat(at) if at.is_on_earth() => Some(vec![Part::Point(at.to_sphere(), at)]),
            Geometry::Flat(_) => None,
            Geometry::Sphere(parts) => Some(parts),
        }
    }

    /// The point in the plane; `None` of other shapes.
    pub(crate) fn in_plane(&self) -> Option<Position> {
        match self {
            Geometry::Flat(at) => Some(*at),
            Geometry::Sphere(parts) => match parts.as_slice() {
                [Part::Point(_, at)] => Some(*at),
                _ => None,
            },
        }
    }
}

impl Part {
    /// The angle between a point and the nearest point of this.
    pub(crate) fn distance(&self, point: Point) -> f64 {
        match self {
            Part::Point(own, _) => own.distance(point),
            Part::Line(points) => distance_to_line(points, point),
            Part::Polygon(polygon) => polygon.distance(point),
        }
    }

    /// Whether the two have a point in common.
    pub(crate) fn touches(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::Point(point, _), Part::Polygon(polygon))
            | (Part::Polygon(polygon), Part::Point(point, _)) => polygon.covers(*point),
            (Part::Point(point, _), _) => other.distance(*point) <= TOLERANCE,
            (_, Part::Point(point, _)) => self.distance(*point) <= TOLERANCE,
            (Part::Line(left), Part::Line(right)) => left.windows(2).any(|arc| {
                right.windows(2).any(|with| arcs_touch(arc[0], arc[1], with[0], with[1]))
            }),
            (Part::Line(line), Part::Polygon(polygon))
            | (Part::Polygon(polygon), Part::Line(line)) => {
                line.first().is_some_and(|first| polygon.covers(*first))
                    || line
                        .windows(2)
                        .any(|arc| polygon.edges().any(|(c, d)| arcs_touch(arc[0], arc[1], c, d)))
            }
            (Part::Polygon(left), Part::Polygon(right)) => left.touches(right),
        }
    }

    /// Whether this lies within a polygon.
    pub(crate) fn is_within(&self, polygon: &Polygon) -> bool {
        match self {
            Part::Point(point, _) => polygon.covers(*point),
            Part::Line(points) => points.windows(2).all(|arc| polygon.covers_arc(arc[0], arc[1])),
            Part::Polygon(other) => polygon.covers_polygon(other),
        }
    }

    /// Its corners.
    pub(crate) fn corners(&self) -> &[Point] {
        match self {
            Part::Point(point, _) => std::slice::from_ref(point),
            Part::Line(points) => points,
            Part::Polygon(polygon) => polygon.outer.corners(),
        }
    }
}

fn distance_to_line(points: &[Point], point: Point) -> f64 {
    let arcs = points.windows(2).map(|arc| point.distance_to_arc(arc[0], arc[1]));
    arcs.fold(f64::INFINITY, f64::min)
}

/// The angle between a point and the nearest part.
pub(crate) fn distance(parts: &[Part], point: Point) -> f64 {
    parts.iter().map(|part| part.distance(point)).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;
