//! What a filter demands of places, as intervals of the numbers of cells.

use frond_doc::Value;
use frond_doc::key;

use super::conditions::Demand;
use super::interval::{Cut, Interval, Intervals};
use crate::filter::tree::{Condition, Node, Test};
use crate::geometry::cells;
use crate::geometry::near::Near;
use crate::geometry::region::Region;

/// What `node` demands of the places at `path`; `None` if nothing, or nothing on the sphere. Of several
/// demands the first is taken: different places may fulfil them.
pub(super) fn of_node(node: &Node, path: &str) -> Option<Demand> {
    match node {
        Node::And(nodes) => nodes.iter().find_map(|inner| of_node(inner, path)),
        Node::Field(field) if field.dotted == path => of_condition(&field.condition),
        _ => None,
    }
}

fn of_condition(condition: &Condition) -> Option<Demand> {
    match condition {
        Condition::All(inner) => inner.iter().find_map(of_condition),
        Condition::Test(Test::Geo(geo)) => within(geo.region()),
        Condition::Test(Test::Near(near)) => around(near),
        _ => None,
    }
}

fn within(region: &Region) -> Option<Demand> {
    let cells = cells::searched(region)?;
    let number = |number: i64| key::of_value(Value::Int64(number)).to_vec();
    let interval = |(low, high): (i64, i64)| Interval {
        start: Cut::Before(number(low)),
        end: Cut::After(number(high)),
    };
    let intervals = Intervals::union_of(cells.into_iter().map(interval).collect());
    Some(Demand { intervals, is_present: true, is_exact: false })
}

fn around(near: &Near) -> Option<Demand> {
    let (centre, angle) = near.cap()?;
    if angle < std::f64::consts::PI {
        return within(&Region::Cap(centre, angle));
    }
    // All places: cells are numbers.
    let intervals = Intervals::union_of(vec![Interval::bracket(Value::Int64(0))]);
    Some(Demand { intervals, is_present: true, is_exact: false })
}
