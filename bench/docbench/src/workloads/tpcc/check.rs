//! The consistency conditions 1 to 4 of the specification (3.3.2), on the whole database.

use crate::target::Failure;

/// The state that the consistency conditions speak of.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// `W_YTD` of each warehouse, from the first.
    pub warehouses: Vec<i64>,
    /// All districts, warehouse by warehouse.
    pub districts: Vec<District>,
}

/// One district.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct District {
    /// The warehouse, from 1.
    pub warehouse: i64,
    /// `D_YTD`.
    pub ytd: i64,
    /// `D_NEXT_O_ID`.
    pub next: i64,
    /// The greatest order.
    pub order_max: i64,
    /// The greatest and the least new order, and how many there are.
    pub new_order_max: i64,
    /// The least.
    pub new_order_min: i64,
    /// The number of new orders.
    pub new_orders: i64,
    /// The sum of `O_OL_CNT`.
    pub line_totals: i64,
    /// The number of order lines.
    pub lines: i64,
}

/// Checks all four; answers how many equations that were.
pub fn check(state: &State) -> Result<u64, Failure> {
    let mut checked = 0;
    let mut equal = |condition: u32, what: &str, place: i64, left: i64, right: i64| {
        checked += 1;
        if left == right {
            return Ok(());
        }
        Err(Failure::Wrong(format!(
            "consistency condition {condition}: {what} of {place}: {left} is not {right}"
        )))
    };
    for (position, ytd) in state.warehouses.iter().enumerate() {
        let warehouse = position as i64 + 1;
        let districts = state.districts.iter().filter(|one| one.warehouse == warehouse);
        let sum: i64 = districts.map(|district| district.ytd).sum();
        equal(1, "the payments of warehouse and districts", warehouse, *ytd, sum)?;
    }
    for (position, district) in state.districts.iter().enumerate() {
        let place = position as i64 + 1;
        let last = district.next - 1;
        equal(2, "the next order and the greatest", place, last, district.order_max)?;
        // All may have been delivered.
        if district.new_orders > 0 {
            let greatest = district.new_order_max;
            equal(2, "the next order and the greatest new order", place, last, greatest)?;
            let range = greatest - district.new_order_min + 1;
            equal(3, "the range of new orders and their count", place, range, district.new_orders)?;
        }
        equal(4, "the lines of orders and counted", place, district.line_totals, district.lines)?;
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let district = District {
            warehouse: 1,
            ytd: 40,
            next: 11,
            order_max: 10,
            new_order_max: 10,
            new_order_min: 8,
            new_orders: 3,
            line_totals: 100,
            lines: 100,
        };
        State { warehouses: vec![80], districts: vec![district.clone(), district] }
    }

    #[test]
    fn each_violation_is_found() {
        assert_eq!(check(&state()).expect("it is consistent"), 9);
        type Damage = fn(&mut State);
        let damages: [(&str, Damage); 5] = [
            ("condition 1", |state| state.warehouses[0] += 1),
            ("condition 2", |state| state.districts[0].next += 1),
            ("condition 2", |state| state.districts[1].new_order_max = 9),
            ("condition 3", |state| state.districts[1].new_orders = 2),
            ("condition 4", |state| state.districts[0].lines -= 1),
        ];
        for (expected, damage) in damages {
            let mut damaged = state();
            damage(&mut damaged);
            match check(&damaged) {
                Err(Failure::Wrong(text)) => assert!(text.contains(expected), "{text}"),
                other => panic!("{expected}: {other:?}"),
            }
        }
    }
}
