//! The demands of a filter on places, as intervals of the numbers of cells or squares.

use frond_doc::Value;
use frond_doc::key;

use super::conditions::PathBounds;
use super::interval::{Cut, Interval, Intervals};
use crate::filter::tree::{Condition, Node, Test};
use crate::geometry::cells;
use crate::geometry::grid::Grid;
use crate::geometry::planar;
use crate::geometry::region::Region;

/// The surface on which an index files places.
#[derive(Clone, Copy, Debug)]
pub(super) enum Surface<'s> {
    /// The sphere.
    Sphere,
    /// The plane.
    Plane(&'s Grid),
}

/// Returns the demand of `node` on the places at `path`; `None` if there is none, or none on this
/// surface. Of several demands the first is taken: different places may fulfil them.
pub(super) fn of_node(node: &Node, path: &str, surface: Surface<'_>) -> Option<PathBounds> {
    match node {
        Node::And(nodes) => nodes.iter().find_map(|inner| of_node(inner, path, surface)),
        Node::Field(field) if field.dotted == path => of_condition(&field.condition, surface),
        _ => None,
    }
}

fn of_condition(condition: &Condition, surface: Surface<'_>) -> Option<PathBounds> {
    let cells = match (condition, surface) {
        (Condition::All(inner), _) => {
            return inner.iter().find_map(|inner| of_condition(inner, surface));
        }
        (Condition::Test(Test::Geo(geo)), _) => within(geo.region(), surface)?,
        (Condition::Test(Test::Near(near)), Surface::Sphere) => near.cells()?,
        (Condition::Test(Test::Near(near)), Surface::Plane(grid)) => near.squares(grid)?,
        _ => return None,
    };
    let number = |number: i64| key::of_value(Value::Int64(number)).to_vec();
    let interval = |(low, high): (i64, i64)| Interval {
        start: Cut::Before(number(low)),
        end: Cut::After(number(high)),
    };
    let intervals = Intervals::union_of(cells.into_iter().map(interval).collect());
    Some(PathBounds { intervals, is_present: true, is_exact: false })
}

/// Ranges of numbers, the least and the greatest of each.
type Cells = Vec<(i64, i64)>;

fn within(region: &Region, surface: Surface<'_>) -> Option<Cells> {
    match (surface, region) {
        (Surface::Sphere, Region::Plane(_)) | (Surface::Plane(_), Region::Shape(_)) => None,
        (Surface::Sphere, _) => Some(cells::searched(&|point| region.distance(point))),
        (Surface::Plane(grid), Region::Plane(area)) => {
            Some(grid.searched(&[area.bounds()], &|low, high| area.may_intersect(low, high)))
        }
        (Surface::Plane(grid), Region::Cap(centre, angle)) => {
            Some(grid.searched(&planar::boxes_of_cap(*centre, *angle), &|_, _| true))
        }
    }
}
