//! Loops of arcs, and polygons: one loop outside, others that are holes in it.
//!
//! A loop divides the sphere in two; its inside is the smaller part (MongoDB ignores in which order
//! the corners come), or, of a *strict* loop, what lies to its left. Whether a point is inside:
//!
//! 1. Once a loop, a point just left of the middle of one of its edges decides whether [`ORIGIN`]
//!    is inside, by counting the edges between the two.
//! 2. A point is inside if the arc from the origin to it crosses edges an odd number of times, or,
//!    if the origin is inside, an even number. An edge's end that lies exactly on the arc counts as
//!    lying to the left of it, so that no corner is counted twice.
//!
//! Polygons are closed: their edges and those of their holes belong to them.

use super::sphere::{Point, TOLERANCE, arcs_cross, arcs_touch, cross, dot, side};

/// The place from where edges are counted, in the South Pacific, far from all land and from round
/// numbers.
const ORIGIN: [f64; 3] = [-0.362_017, -0.549_113, -0.753_291];

/// A closed chain of arcs; the last corner is joined with the first.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    corners: Vec<Point>,
    origin_is_inside: bool,
    /// All of the inside lies within this angle of that point, if that is less than a right angle.
    bound: Option<(Point, f64)>,
}

/// The inside of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inside {
    /// The smaller part.
    Smaller,
    /// The area on the left.
    Left,
}

/// A loop and the holes in it.
#[derive(Clone, Debug)]
pub(crate) struct Polygon {
    pub(crate) outer: Loop,
    pub(crate) holes: Vec<Loop>,
}

impl Loop {
    /// Makes a loop of three corners at least.
    pub(crate) fn new(corners: Vec<Point>, inside: Inside) -> Loop {
        let bound = bound(&corners).filter(|_| inside == Inside::Smaller);
        let mut made = Loop { corners, origin_is_inside: false, bound: None };
        let left_is_inside = inside == Inside::Left || made.area_of_left() <= std::f64::consts::TAU;
        let beside = made.point_on_the_left();
        made.origin_is_inside = made.holds(beside) != left_is_inside;
        made.bound = bound;
        made
    }

    /// Its corners.
    pub(crate) fn corners(&self) -> &[Point] {
        &self.corners
    }

    /// Its edges.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (Point, Point)> + Clone {
        let next = self.corners.iter().cycle().skip(1);
        self.corners.iter().zip(next).map(|(from, to)| (*from, *to))
    }

    /// Returns why this is no loop: corners that come twice, edges that cross.
    pub(crate) fn fault(&self) -> Option<String> {
        let count = self.corners.len();
        let mut sorted: Vec<usize> = (0..count).collect();
        let of = |position: usize| self.corners[position].vector();
        sorted.sort_by(|left, right| {
            of(*left).partial_cmp(&of(*right)).unwrap_or(std::cmp::Ordering::Equal)
        });
        if let Some(pair) = sorted.windows(2).find(|pair| of(pair[0]) == of(pair[1])) {
            let (first, second) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            return Some(format!("Duplicate vertices: {first} and {second}"));
        }
        let crossing = crossing_edges(&self.edges().collect::<Vec<_>>())?;
        Some(format!("Edges {} and {} cross.", crossing.0, crossing.1))
    }

    /// Whether a point is inside. One on an edge may be or not.
    pub(crate) fn holds(&self, point: Point) -> bool {
        if let Some((centre, angle)) = self.bound
            && point.distance(centre) > angle + TOLERANCE
        {
            return false;
        }
        let origin = Point::toward(ORIGIN);
        let mut is_inside = self.origin_is_inside;
        let mut before = self.corners.last().map_or(1, |last| half(origin, point, *last));
        for (from, to) in self.edges_from_last() {
            let after = half(origin, point, to);
            if before != after
                && side(from, to, origin) == -before
                && side(from, to, point) == before
            {
                is_inside = !is_inside;
            }
            before = after;
        }
        is_inside
    }

    /// Whether a point lies on an edge.
    pub(crate) fn is_on_edge(&self, point: Point) -> bool {
        let vector = point.vector();
        self.edges().any(|(from, to)| {
            let normal = cross(from.vector(), to.vector());
            // Most edges are far away: that is seen without an angle.
            dot(normal, vector).powi(2) <= (2.0 * TOLERANCE).powi(2) * dot(normal, normal)
                && point.distance_to_arc(from, to) <= TOLERANCE
        })
    }

    fn edges_from_last(&self) -> impl Iterator<Item = (Point, Point)> {
        let before = self.corners.last().into_iter().chain(&self.corners);
        before.zip(&self.corners).map(|(from, to)| (*from, *to))
    }

    /// The area to the left, of 4 pi in all: a fan of triangles, each with its sign.
    fn area_of_left(&self) -> f64 {
        let Some(first) = self.corners.first().map(|first| first.vector()) else { return 0.0 };
        let mut sum = 0.0;
        for (from, to) in self.edges() {
            let (from, to) = (from.vector(), to.vector());
            let volume = dot(first, cross(from, to));
            let rest = 1.0 + dot(first, from) + dot(from, to) + dot(to, first);
            sum += 2.0 * volume.atan2(rest);
        }
        sum.rem_euclid(4.0 * std::f64::consts::PI)
    }

    /// A point so near to the left of an edge that no other edge lies between.
    fn point_on_the_left(&self) -> Point {
        let mut found = self.corners[0];
        for reach in [1e-6, 1e-9, 1e-11] {
            for (from, to) in self.edges() {
                let middle = from.middle(to);
                let normal = cross(from.vector(), to.vector());
                let length = dot(normal, normal).sqrt();
                if length <= 4.0 * reach {
                    continue;
                }
                let moved = |part: usize| middle.vector()[part] + reach * normal[part] / length;
                let beside = Point::toward([moved(0), moved(1), moved(2)]);
                let is_cut = |(c, d): (Point, Point)| {
                    (c, d) != (from, to) && arcs_touch_exactly(middle, beside, c, d)
                };
                if side(from, to, beside) == 1 {
                    found = beside;
                    if !self.edges().any(is_cut) {
                        return beside;
                    }
                }
            }
        }
        found
    }
}

/// As `arcs_touch`, without tolerance.
fn arcs_touch_exactly(a: Point, b: Point, c: Point, d: Point) -> bool {
    arcs_cross(a, b, c, d) || side(c, d, a) * side(c, d, b) == 0 && b.distance_to_arc(c, d) < 1e-10
}

/// Returns the side of the arc on which a corner lies; on it counts as left.
fn half(origin: Point, point: Point, corner: Point) -> i32 {
    if side(origin, point, corner) < 0 { -1 } else { 1 }
}

/// A cap that holds all corners.
fn bound(corners: &[Point]) -> Option<(Point, f64)> {
    let mut sum = [0.0; 3];
    for corner in corners {
        for (part, more) in sum.iter_mut().zip(corner.vector()) {
            *part += more;
        }
    }
    if dot(sum, sum) < 1e-12 {
        return None;
    }
    let centre = Point::toward(sum);
    let angle = corners.iter().map(|corner| corner.distance(centre)).fold(0.0, f64::max);
    (angle < std::f64::consts::FRAC_PI_2 - 1e-6).then_some((centre, angle))
}

/// Two edges, not next to each other in the loop, that have a point in common: by a sweep along one
/// axis, in which only edges are compared whose extents overlap.
fn crossing_edges(edges: &[(Point, Point)]) -> Option<(usize, usize)> {
    let extent = |(from, to): &(Point, Point)| {
        let (low, high) = (from.vector()[0], to.vector()[0]);
        // An arc bulges beyond its ends by less than this.
        let bulge = from.distance(*to).powi(2) / 8.0 + TOLERANCE;
        (low.min(high) - bulge, low.max(high) + bulge)
    };
    let mut by_start: Vec<(f64, f64, usize)> = Vec::with_capacity(edges.len());
    for (position, edge) in edges.iter().enumerate() {
        let (low, high) = extent(edge);
        by_start.push((low, high, position));
    }
    by_start.sort_by(|left, right| left.0.total_cmp(&right.0));
    let count = edges.len();
    let mut active: Vec<(f64, usize)> = Vec::new();
    for (low, high, position) in by_start {
        active.retain(|(end, _)| low <= *end);
        for (_, other) in &active {
            let is_next = (position + 1) % count == *other || (*other + 1) % count == position;
            let ((a, b), (c, d)) = (edges[position], edges[*other]);
            let meet = match is_next {
                true => folds_back(edges, position, *other),
                false => arcs_cross(a, b, c, d) || arcs_touch(a, b, c, d),
            };
            if meet {
                return Some((position.min(*other), position.max(*other)));
            }
        }
        active.push((high, position));
    }
    None
}

/// Whether of two edges that follow each other one lies on the other.
fn folds_back(edges: &[(Point, Point)], left: usize, right: usize) -> bool {
    let ((a, b), (c, d)) = (edges[left], edges[right]);
    let (outer, corner, other) = if b == c { (a, b, d) } else { (c, d, b) };
    side(outer, corner, other) == 0
        && (outer.distance_to_arc(corner, other) <= TOLERANCE
            || other.distance_to_arc(outer, corner) <= TOLERANCE)
}

impl Polygon {
    /// All loops.
    pub(crate) fn loops(&self) -> impl Iterator<Item = &Loop> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    /// All edges.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (Point, Point)> {
        self.loops().flat_map(Loop::edges)
    }

    /// Whether a point is inside or on an edge.
    pub(crate) fn covers(&self, point: Point) -> bool {
        if let Some((centre, angle)) = self.outer.bound
            && point.distance(centre) > angle + TOLERANCE
        {
            return false;
        }
        self.loops().any(|each| each.is_on_edge(point)) || self.holds(point)
    }

    /// Whether a point is inside. One on an edge may be or not.
    pub(crate) fn holds(&self, point: Point) -> bool {
        self.outer.holds(point) && !self.holes.iter().any(|hole| hole.holds(point))
    }

    /// The angle to the nearest point of it: 0 within.
    pub(crate) fn distance(&self, point: Point) -> f64 {
        if self.holds(point) {
            return 0.0;
        }
        self.edges().map(|(from, to)| point.distance_to_arc(from, to)).fold(f64::INFINITY, f64::min)
    }

    /// Whether an arc lies within.
    pub(crate) fn covers_arc(&self, from: Point, to: Point) -> bool {
        self.covers(from)
            && self.covers(to)
            && !self.edges().any(|(c, d)| passes_through(from, to, c, d))
            && self.covers(from.middle(to))
    }

    /// Whether another polygon lies within.
    pub(crate) fn covers_polygon(&self, other: &Polygon) -> bool {
        other.edges().all(|(from, to)| self.covers_arc(from, to))
            // Around nothing of this one's holes.
            && !self.holes.iter().any(|hole| {
                hole.corners().iter().any(|corner| {
                    other.holds(*corner) && !other.loops().any(|each| each.is_on_edge(*corner))
                }) || other.covers(hole.point_inside())
            })
    }

    /// Whether the two have a point in common.
    pub(crate) fn touches(&self, other: &Polygon) -> bool {
        let corner = |polygon: &Polygon| polygon.outer.corners()[0];
        self.covers(corner(other))
            || other.covers(corner(self))
            || self.edges().any(|(a, b)| other.edges().any(|(c, d)| arcs_touch(a, b, c, d)))
    }
}

impl Loop {
    /// Some point inside.
    fn point_inside(&self) -> Point {
        let left = self.point_on_the_left();
        if self.holds(left) {
            return left;
        }
        let corners = self.corners.iter().rev().copied().collect();
        Loop { corners, origin_is_inside: false, bound: None }.point_on_the_left()
    }
}

/// Whether two arcs cross, and neither merely ends on the other.
fn passes_through(a: Point, b: Point, c: Point, d: Point) -> bool {
    arcs_cross(a, b, c, d)
        && a.distance_to_arc(c, d) > TOLERANCE
        && b.distance_to_arc(c, d) > TOLERANCE
        && c.distance_to_arc(a, b) > TOLERANCE
        && d.distance_to_arc(a, b) > TOLERANCE
}
