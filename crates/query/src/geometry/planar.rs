//! The plane: legacy pairs, and the boxes, polygons and circles that they may lie in.

use super::sphere::Point;

/// A place in the plane, or longitude and latitude in degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Position {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// What a point may lie in; edges belong to it.
#[derive(Clone, Debug)]
pub(crate) enum Area {
    /// The corners with the least and the greatest coordinates.
    Box(Position, Position),
    /// Its corners; edges may cross.
    Polygon(Vec<Position>),
    /// Centre and radius.
    Circle(Position, f64),
}

impl Position {
    /// Whether this is a longitude and a latitude.
    pub(crate) fn is_on_earth(self) -> bool {
        (-180.0..=180.0).contains(&self.x) && (-90.0..=90.0).contains(&self.y)
    }

    /// The point on the sphere; the caller has asked whether there is one.
    pub(crate) fn to_sphere(self) -> Point {
        Point::from_degrees(self.x, self.y)
    }

    /// The distance to another place.
    pub(crate) fn distance(self, other: Position) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }
}

impl Area {
    /// The box between two corners, whichever they are.
    pub(crate) fn of_corners(one: Position, other: Position) -> Area {
        let low = Position { x: one.x.min(other.x), y: one.y.min(other.y) };
        Area::Box(low, Position { x: one.x.max(other.x), y: one.y.max(other.y) })
    }

    /// Whether a point lies in it.
    pub(crate) fn covers(&self, at: Position) -> bool {
        match self {
            Area::Box(low, high) => {
                low.x <= at.x && at.x <= high.x && low.y <= at.y && at.y <= high.y
            }
            Area::Circle(centre, radius) => centre.distance(at) <= *radius,
            Area::Polygon(corners) => polygon_covers(corners, at),
        }
    }
}

/// By the edges that a ray to the right crosses: an odd number of them.
fn polygon_covers(corners: &[Position], at: Position) -> bool {
    let Some(mut from) = corners.last().copied() else { return false };
    let mut is_inside = false;
    for to in corners.iter().copied() {
        let turn = (to.x - from.x) * (at.y - from.y) - (to.y - from.y) * (at.x - from.x);
        let is_between = |a: f64, b: f64, value: f64| a.min(b) <= value && value <= a.max(b);
        if turn == 0.0 && is_between(from.x, to.x, at.x) && is_between(from.y, to.y, at.y) {
            return true;
        }
        if (from.y > at.y) != (to.y > at.y) && (turn > 0.0) == (to.y > from.y) {
            is_inside = !is_inside;
        }
        from = to;
    }
    is_inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas() {
        let at = |x: f64, y: f64| Position { x, y };
        let square = Area::of_corners(at(2.0, 2.0), at(0.0, 0.0));
        let arrow = Area::Polygon(vec![at(0.0, 0.0), at(4.0, 0.0), at(2.0, 1.0), at(4.0, 4.0)]);
        let circle = Area::Circle(at(0.0, 0.0), 5.0);
        for (area, x, y, expected) in [
            (&square, 1.0, 1.0, true),
            (&square, 2.0, 0.0, true),
            (&square, 2.1, 1.0, false),
            (&arrow, 1.5, 0.5, true),
            (&arrow, 3.0, 0.0, true),
            (&arrow, 3.5, 1.0, false),
            (&arrow, 2.0, 1.0, true),
            (&arrow, -1.0, 0.0, false),
            (&arrow, 5.0, 4.0, false),
            (&circle, 3.0, 4.0, true),
            (&circle, 3.1, 4.0, false),
        ] {
            assert_eq!(area.covers(at(x, y)), expected, "{area:?} {x} {y}");
        }
    }
}
