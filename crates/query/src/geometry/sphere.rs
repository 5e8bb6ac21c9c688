//! Points and arcs on the unit sphere.
//!
//! A point's coordinates are rounded to multiples of 2^-40 (6 micrometres on the Earth), so that
//! the orientation of three points is an exact determinant of integers where floating point can't
//! decide: predicates never contradict each other, and no rounding makes a point be on both sides
//! of an arc.
//!
//! Arcs are the shorter parts of great circles. A place nearer than [`TOLERANCE`] counts as
//! touching: MongoDB compares there with a cell of about the same size.

/// Radians that count as no distance: 6 mm on the Earth.
pub(crate) const TOLERANCE: f64 = 1e-9;
/// The Earth's radius in metres, as MongoDB has it.
pub(crate) const EARTH_RADIUS_METRES: f64 = 6_378_100.0;

/// Coordinates are multiples of one divided by this.
const LATTICE: f64 = (1_u64 << 40) as f64;
/// A determinant above this has the sign that floating point gives it.
const CERTAIN: f64 = 1e-14;

/// A vector.
pub(crate) type Vector = [f64; 3];

/// A point on the sphere. *Invariant*: coordinates are multiples of 2^-40.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point(Vector);

impl Point {
    /// The point at a longitude and a latitude in degrees, which are within their bounds.
    pub(crate) fn from_degrees(longitude: f64, latitude: f64) -> Point {
        let (longitude, latitude) = (longitude.to_radians(), latitude.to_radians());
        let across = latitude.cos();
        Point::toward([across * longitude.cos(), across * longitude.sin(), latitude.sin()])
    }

    /// The point in the direction of a vector that isn't zero.
    pub(crate) fn toward(vector: Vector) -> Point {
        let length = dot(vector, vector).sqrt();
        Point(vector.map(|part| (part / length * LATTICE).round() / LATTICE))
    }

    /// Its vector, of length 1 within rounding.
    pub(crate) fn vector(self) -> Vector {
        self.0
    }

    fn lattice(self) -> [i128; 3] {
        self.0.map(|part| (part * LATTICE) as i128)
    }

    /// The angle to another point, in radians.
    pub(crate) fn distance(self, other: Point) -> f64 {
        let crossed = cross(self.0, other.0);
        dot(crossed, crossed).sqrt().atan2(dot(self.0, other.0))
    }

    /// The angle to the nearest point of an arc.
    pub(crate) fn distance_to_arc(self, from: Point, to: Point) -> f64 {
        let normal = cross(from.0, to.0);
        let length = dot(normal, normal).sqrt();
        let is_beside = length > 0.0
            && dot(cross(normal, from.0), self.0) >= 0.0
            && dot(cross(to.0, normal), self.0) >= 0.0;
        if is_beside {
            return (dot(self.0, normal) / length).clamp(-1.0, 1.0).asin().abs();
        }
        self.distance(from).min(self.distance(to))
    }

    /// The point half way on the arc to another one.
    pub(crate) fn middle(self, other: Point) -> Point {
        let [a, b, c] = self.0;
        let sum = [a + other.0[0], b + other.0[1], c + other.0[2]];
        if dot(sum, sum) == 0.0 { self } else { Point::toward(sum) }
    }
}

/// The scalar product.
pub(crate) fn dot(left: Vector, right: Vector) -> f64 {
    left[0] * right[0] + left[1] * right[1] + left[2] * right[2]
}

/// The vector product.
pub(crate) fn cross(left: Vector, right: Vector) -> Vector {
    [
        left[1] * right[2] - left[2] * right[1],
        left[2] * right[0] - left[0] * right[2],
        left[0] * right[1] - left[1] * right[0],
    ]
}

/// 1 if `c` lies to the left of the great circle from `a` to `b`, -1 if to its right, 0 if on it.
pub(crate) fn side(a: Point, b: Point, c: Point) -> i32 {
    let determinant = dot(cross(a.0, b.0), c.0);
    if determinant.abs() > CERTAIN {
        return if determinant > 0.0 { 1 } else { -1 };
    }
    // 40 bits a factor, three factors, six terms: 123 bits.
    let ([a0, a1, a2], [b0, b1, b2], [c0, c1, c2]) = (a.lattice(), b.lattice(), c.lattice());
    let exact = (a1 * b2 - a2 * b1) * c0 + (a2 * b0 - a0 * b2) * c1 + (a0 * b1 - a1 * b0) * c2;
    exact.signum() as i32
}

/// Whether two arcs cross, each properly: not where one of them ends.
pub(crate) fn arcs_cross(a: Point, b: Point, c: Point, d: Point) -> bool {
    let first = side(a, b, c);
    first != 0 && side(a, b, d) == -first && side(c, d, b) == first && side(c, d, a) == -first
}

/// Whether two arcs have a point in common.
pub(crate) fn arcs_touch(a: Point, b: Point, c: Point, d: Point) -> bool {
    arcs_cross(a, b, c, d)
        || a.distance_to_arc(c, d) <= TOLERANCE
        || b.distance_to_arc(c, d) <= TOLERANCE
        || c.distance_to_arc(a, b) <= TOLERANCE
        || d.distance_to_arc(a, b) <= TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(longitude: f64, latitude: f64) -> Point {
        Point::from_degrees(longitude, latitude)
    }

    #[test]
    fn distances() {
        for (left, right, degrees) in [
            ((0.0, 0.0), (90.0, 0.0), 90.0),
            ((0.0, 0.0), (180.0, 0.0), 180.0),
            ((10.0, 20.0), (10.0, 20.0), 0.0),
            ((-170.0, 0.0), (170.0, 0.0), 20.0),
            ((0.0, 89.0), (180.0, 89.0), 2.0),
        ] {
            let found = at(left.0, left.1).distance(at(right.0, right.1)).to_degrees();
            assert!((found - degrees).abs() < 1e-9, "{left:?} {right:?}: {found}");
        }
        for (point, degrees) in [((5.0, 3.0), 3.0), ((-2.0, 0.0), 2.0), ((12.0, 0.0), 2.0)] {
            let found = at(point.0, point.1).distance_to_arc(at(0.0, 0.0), at(10.0, 0.0));
            assert!((found.to_degrees() - degrees).abs() < 1e-9, "{point:?}: {found}");
        }
    }

    #[test]
    fn sides_are_exact() {
        let (a, b) = (at(0.0, 0.0), at(90.0, 0.0));
        assert_eq!(side(a, b, at(45.0, 1e-9)), 1);
        assert_eq!(side(a, b, at(45.0, -1e-9)), -1);
        assert_eq!(side(a, b, at(45.0, 0.0)), 0);
        let (c, d) = (at(20.0, 30.0), at(21.0, 31.0));
        for point in [at(20.5, 30.5), at(22.0, 32.0), at(20.0, 30.000_000_001)] {
            assert_eq!(side(c, d, point), -side(d, c, point));
            assert_eq!(side(c, d, point), side(d, point, c));
        }
    }

    #[test]
    fn arcs() {
        let (a, b) = (at(0.0, 0.0), at(10.0, 0.0));
        for (from, to, cross, touch) in [
            ((5.0, -5.0), (5.0, 5.0), true, true),
            ((5.0, 1.0), (5.0, 5.0), false, false),
            ((5.0, 0.0), (5.0, 5.0), false, true),
            ((10.0, 0.0), (20.0, 0.0), false, true),
            ((185.0, -5.0), (185.0, 5.0), false, false),
            ((11.0, -5.0), (11.0, 5.0), false, false),
        ] {
            let (c, d) = (at(from.0, from.1), at(to.0, to.1));
            assert_eq!(arcs_cross(a, b, c, d), cross, "{from:?} {to:?}");
            assert_eq!(arcs_touch(a, b, c, d), touch, "{from:?} {to:?}");
        }
    }
}
