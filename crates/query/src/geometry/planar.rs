//! The plane: legacy pairs, and the boxes, polygons and circles that they may lie in.

use super::sphere::{Point, TOLERANCE};

/// A place in the plane, or longitude and latitude in degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Position {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// An area in the plane; edges belong to it.
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

    /// The corners of a square around it, a little more than so far away.
    pub(crate) fn square(self, reach: f64) -> (Position, Position) {
        let reach = reach + (reach + self.x.abs() + self.y.abs()) * 1e-12;
        let low = Position { x: self.x - reach, y: self.y - reach };
        (low, Position { x: self.x + reach, y: self.y + reach })
    }

    /// The nearest place of a rectangle.
    pub(crate) fn within(self, low: Position, high: Position) -> Position {
        // A rectangle of no width may be the wrong way round by an error of rounding.
        let between = |low: f64, high: f64, at: f64| at.max(low).min(high.max(low));
        Position { x: between(low.x, high.x, self.x), y: between(low.y, high.y, self.y) }
    }

    /// The distance to another place.
    pub(crate) fn distance(self, other: Position) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }
}

/// Boxes of longitudes and latitudes that hold all that lies within an angle of a point: two where
/// it reaches over the 180th meridian.
pub(crate) fn boxes_of_cap(centre: Point, angle: f64) -> Vec<(Position, Position)> {
    // Rounding of degrees, and what counts as touching.
    let angle = angle + 4.0 * TOLERANCE;
    let [x, y, z] = centre.vector();
    let (longitude, latitude) = (y.atan2(x), z.clamp(-1.0, 1.0).asin());
    let (low, high) = (latitude - angle, latitude + angle);
    let half_turn = std::f64::consts::PI;
    let bounded = |west: f64, east: f64| {
        let corner = |x: f64, y: f64| Position { x: x.to_degrees(), y: y.to_degrees() };
        (corner(west, low.max(-half_turn / 2.0)), corner(east, high.min(half_turn / 2.0)))
    };
    if low <= -half_turn / 2.0 || half_turn / 2.0 <= high {
        return vec![bounded(-half_turn - TOLERANCE, half_turn + TOLERANCE)];
    }
    let reach = (angle.sin() / latitude.cos()).clamp(0.0, 1.0).asin() + TOLERANCE;
    let (west, east) = (longitude - reach, longitude + reach);
    let mut boxes = vec![bounded(west, east)];
    if west < -half_turn {
        boxes.push(bounded(west + 2.0 * half_turn, half_turn + TOLERANCE));
    }
    if half_turn < east {
        boxes.push(bounded(-half_turn - TOLERANCE, east - 2.0 * half_turn));
    }
    boxes
}

impl Area {
    /// The box between two corners, whichever they are.
    pub(crate) fn of_corners(one: Position, other: Position) -> Area {
        let low = Position { x: one.x.min(other.x), y: one.y.min(other.y) };
        Area::Box(low, Position { x: one.x.max(other.x), y: one.y.max(other.y) })
    }

    /// The corners with the least and the greatest coordinates between which it lies.
    pub(crate) fn bounds(&self) -> (Position, Position) {
        match self {
            Area::Box(low, high) => (*low, *high),
            Area::Circle(centre, radius) => centre.square(*radius),
            Area::Polygon(corners) => {
                let first = corners.first().copied().unwrap_or(Position { x: 0.0, y: 0.0 });
                corners.iter().fold((first, first), |(low, high), at| {
                    let low = Position { x: low.x.min(at.x), y: low.y.min(at.y) };
                    (low, Position { x: high.x.max(at.x), y: high.y.max(at.y) })
                })
            }
        }
    }

    /// Whether a rectangle may have a point of it; only for circles and boxes is the answer close.
    pub(crate) fn may_intersect(&self, low: Position, high: Position) -> bool {
        match self {
            Area::Box(..) => true,
            Area::Circle(centre, radius) => centre.distance(centre.within(low, high)) <= *radius,
            Area::Polygon(corners) => {
                let is_passed = |to: &Position, from: &Position| is_passed(*from, *to, low, high);
                let before = corners.iter().cycle().skip(corners.len().saturating_sub(1));
                corners.iter().zip(before).any(|(to, from)| is_passed(to, from))
                    || polygon_covers(corners, low)
            }
        }
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

/// Whether an edge may have a point in a rectangle: neither lies aside of the other.
fn is_passed(from: Position, to: Position, low: Position, high: Position) -> bool {
    let is_aside = from.x.max(to.x) < low.x
        || high.x < from.x.min(to.x)
        || from.y.max(to.y) < low.y
        || high.y < from.y.min(to.y);
    let side = |x: f64, y: f64| (to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x);
    let sides =
        [side(low.x, low.y), side(low.x, high.y), side(high.x, low.y), side(high.x, high.y)];
    !is_aside && !sides.iter().all(|side| *side > 0.0) && !sides.iter().all(|side| *side < 0.0)
}

/// Decides by the edges that a ray to the right crosses: an odd number of them.
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
