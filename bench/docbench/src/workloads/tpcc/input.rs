//! The inputs of the transactions, by the specification's distributions (2.1.6, 2.4 to 2.8, 4.3.2).

use crate::random::Random;

/// Districts of a warehouse.
pub const DISTRICTS: i64 = 10;
/// Keys are joined from their parts, so that documents have one number: see [`district_key`].
const DISTRICT_BASE: i64 = 100;
const ORDER_BASE: i64 = 100_000_000;
const ITEM_BASE: i64 = 1_000_000;
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The size of the database.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Warehouses.
    pub warehouses: i64,
    /// The number by which the specification's numbers are divided.
    pub divisor: i64,
    /// The seed of all data.
    pub seed: u64,
}

impl Sizes {
    /// Items, and stock of each warehouse.
    pub fn items(&self) -> i64 {
        100_000 / self.divisor
    }

    /// Customers of a district.
    pub fn customers(&self) -> i64 {
        3_000 / self.divisor
    }

    /// Orders of a district at the beginning, one for each customer.
    pub fn orders(&self) -> i64 {
        self.customers()
    }

    /// The first order that isn't delivered at the beginning.
    pub fn undelivered(&self) -> i64 {
        self.orders() * 7 / 10 + 1
    }

    /// Different last names: a thousand, for three thousand customers.
    pub fn last_names(&self) -> u64 {
        (self.customers() as u64 / 3).clamp(1, 1_000)
    }

    /// A district of a warehouse, as one number.
    pub fn districts(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        (1..=self.warehouses)
            .flat_map(|warehouse| (1..=DISTRICTS).map(move |district| (warehouse, district)))
    }
}

/// A district's key.
pub fn district_key(warehouse: i64, district: i64) -> i64 {
    warehouse * DISTRICT_BASE + district
}

/// The key of an order or of a customer of a district.
pub fn key_in_district(district_key: i64, number: i64) -> i64 {
    district_key * ORDER_BASE + number
}

/// The key of a warehouse's stock of an item.
pub fn stock_key(warehouse: i64, item: i64) -> i64 {
    warehouse * ITEM_BASE + item
}

/// The last name with this number.
pub fn last_name(number: u64) -> String {
    let syllable = |at: u64| SYLLABLES[(number / at % 10) as usize];
    format!("{}{}{}", syllable(100), syllable(10), syllable(1))
}

/// The way a customer is named.
#[derive(Clone, Debug)]
pub enum Who {
    /// By number.
    Number(i64),
    /// The middle one, by first name, of those with this last name.
    LastName(String),
}

/// A line of an order to make.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// 0 is no item: the order rolls back.
    pub item: i64,
    /// The warehouse that supplies it.
    pub supplier: i64,
    /// The quantity.
    pub quantity: i64,
}

/// One transaction.
#[derive(Clone, Debug)]
pub enum Input {
    /// 45 %.
    NewOrder { warehouse: i64, district: i64, customer: i64, lines: Vec<Line>, time: i64 },
    /// 43 %.
    Payment {
        warehouse: i64,
        district: i64,
        customer_warehouse: i64,
        customer_district: i64,
        who: Who,
        amount: i64,
        /// The history record's key.
        id: i64,
    },
    /// 4 %.
    OrderStatus { warehouse: i64, district: i64, who: Who },
    /// 4 %.
    Delivery { warehouse: i64, carrier: i64, time: i64 },
    /// 4 %.
    StockLevel { warehouse: i64, district: i64, threshold: i64 },
}

impl Input {
    /// The name by which its latency is filed.
    pub fn name(&self) -> &'static str {
        match self {
            Input::NewOrder { .. } => "new order",
            Input::Payment { .. } => "payment",
            Input::OrderStatus { .. } => "order status",
            Input::Delivery { .. } => "delivery",
            Input::StockLevel { .. } => "stock level",
        }
    }

    /// The next one of a client whose home is `warehouse`; `id` is new each time.
    pub fn draw(random: &mut Random, sizes: &Sizes, warehouse: i64, id: i64) -> Input {
        let district = random.between(1, DISTRICTS as u64) as i64;
        // Any time will do that differs: the data don't follow the clock.
        let time = 1_700_000_000_000 + id % 1_000_000_000;
        match random.below(100) {
            0..45 => Input::NewOrder {
                warehouse,
                district,
                customer: customer_number(random, sizes),
                lines: lines(random, sizes, warehouse),
                time,
            },
            45..88 => {
                let is_home = random.below(100) < 85 || sizes.warehouses == 1;
                Input::Payment {
                    warehouse,
                    district,
                    customer_warehouse: match is_home {
                        true => warehouse,
                        false => other_warehouse(random, sizes, warehouse),
                    },
                    customer_district: match is_home {
                        true => district,
                        false => random.between(1, DISTRICTS as u64) as i64,
                    },
                    who: who(random, sizes),
                    amount: random.between(100, 500_000) as i64,
                    id,
                }
            }
            88..92 => Input::OrderStatus { warehouse, district, who: who(random, sizes) },
            92..96 => Input::Delivery { warehouse, carrier: random.between(1, 10) as i64, time },
            _ => {
                Input::StockLevel { warehouse, district, threshold: random.between(10, 20) as i64 }
            }
        }
    }
}

/// The specification's NURand (2.1.6), with its constant C as 7 of its ranges' 9ths.
fn skewed(random: &mut Random, mask: u64, least: u64, most: u64) -> u64 {
    let constant = mask * 7 / 9;
    let mixed = random.between(0, mask) | random.between(least, most);
    (mixed + constant) % (most - least + 1) + least
}

fn customer_number(random: &mut Random, sizes: &Sizes) -> i64 {
    skewed(random, 1_023, 1, sizes.customers() as u64) as i64
}

fn who(random: &mut Random, sizes: &Sizes) -> Who {
    if random.below(100) < 60 {
        Who::LastName(last_name(skewed(random, 255, 0, sizes.last_names() - 1)))
    } else {
        Who::Number(customer_number(random, sizes))
    }
}

fn other_warehouse(random: &mut Random, sizes: &Sizes, warehouse: i64) -> i64 {
    let other = random.between(1, sizes.warehouses as u64 - 1) as i64;
    if other < warehouse { other } else { other + 1 }
}

fn lines(random: &mut Random, sizes: &Sizes, warehouse: i64) -> Vec<Line> {
    let count = random.between(5, 15);
    let mut lines: Vec<Line> = Vec::new();
    while (lines.len() as u64) < count {
        let item = skewed(random, 8_191, 1, sizes.items() as u64) as i64;
        if lines.iter().any(|line| line.item == item) {
            continue;
        }
        let is_remote = sizes.warehouses > 1 && random.below(100) == 0;
        let supplier =
            if is_remote { other_warehouse(random, sizes, warehouse) } else { warehouse };
        lines.push(Line { item, supplier, quantity: random.between(1, 10) as i64 });
    }
    // In one order, so that two orders that lock their stock don't wait for each other.
    lines.sort_unstable_by_key(|line| (line.supplier, line.item));
    if random.below(100) == 0
        && let Some(last) = lines.last_mut()
    {
        last.item = 0;
    }
    lines
}

/// Stock that falls below this by an order is filled up by [`STOCK_REFILL`]: 2.4.2.2.
pub const STOCK_LEAST: i64 = 10;
/// See [`STOCK_LEAST`].
pub const STOCK_REFILL: i64 = 91;

/// Returns the stock that remains after an order.
pub fn stock_after(quantity: i64, ordered: i64) -> i64 {
    let rest = quantity - ordered;
    if rest >= STOCK_LEAST { rest } else { rest + STOCK_REFILL }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_have_three_syllables() {
        for (number, name) in [(0, "BARBARBAR"), (371, "PRICALLYOUGHT"), (999, "EINGEINGEING")] {
            assert_eq!(last_name(number), name);
        }
    }

    #[test]
    fn the_mix_is_the_specification_s() {
        let sizes = Sizes { warehouses: 3, divisor: 10, seed: 1 };
        let mut random = Random::new(1);
        let mut counts = std::collections::BTreeMap::new();
        for id in 0..10_000 {
            let input = Input::draw(&mut random, &sizes, 2, id);
            *counts.entry(input.name()).or_insert(0u32) += 1;
            if let Input::NewOrder { lines, customer, .. } = &input {
                assert!((5..=15).contains(&lines.len()) && (1..=300).contains(customer));
                assert!(lines.iter().all(|line| (0..=10_000).contains(&line.item)));
                assert!(lines.iter().all(|line| (1..=3).contains(&line.supplier)));
            }
        }
        assert!((4_300..4_700).contains(&counts["new order"]), "{counts:?}");
        assert!((300..500).contains(&counts["delivery"]), "{counts:?}");
    }

    #[test]
    fn stock_is_filled_up_below_ten() {
        for (quantity, ordered, expected) in [(20, 5, 15), (15, 5, 10), (14, 5, 100)] {
            assert_eq!(stock_after(quantity, ordered), expected);
        }
    }
}
