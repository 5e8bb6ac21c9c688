//! The documents of the benchmark: orders of a shop, about 1 KB each, made from their number.
//!
//! The same number always gives the same order, so whatever a target answers can be checked without
//! keeping what was written. Three fields are indexed: `customer.number` (about ten orders each, at
//! random), `created` (rises with the number, out of order by up to a day) and `total` (random).

use serde::{Deserialize, Serialize};

/// Different values of `address.city`: a scan for one of them passes a hundredth of all orders.
const CITIES: u64 = 100;
/// Orders a customer has on average.
const ORDERS_PER_CUSTOMER: u64 = 10;
const CREATED_FIRST_MILLIS: i64 = 1_700_000_000_000;
const DAY_MILLIS: u64 = 86_400_000;
const WORDS: [&str; 16] = [
    "granite", "harbour", "lantern", "meadow", "orchard", "pebble", "quarry", "ribbon", "saddle",
    "timber", "umbrella", "velvet", "willow", "yarrow", "zephyr", "amber",
];

/// One order. The fields' names are those of the documents.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// `_id`: ascends.
    #[serde(rename = "_id")]
    pub number: i64,
    /// The customer.
    pub customer: Customer,
    /// Milliseconds since 1970.
    pub created: i64,
    /// The field that is updated; not indexed.
    pub status: String,
    /// Cents.
    pub total: i64,
    /// The address for the delivery.
    pub address: Address,
    /// The ordered items.
    pub items: Vec<Item>,
    /// Some words.
    pub note: String,
}

/// The customer of an order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Customer {
    pub number: i64,
    pub name: String,
    pub mail: String,
}

/// The address for the delivery.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Address {
    pub street: String,
    pub city: String,
    pub country: String,
}

/// One line of an order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Item {
    pub article: String,
    pub name: String,
    pub quantity: i64,
    pub price: i64,
}

/// Numbers that look random, from a seed: splitmix64 (Steele, Lea, Flood: Fast Splittable
/// Pseudorandom Number Generators, 2014).
pub struct Numbers(u64);

impl Numbers {
    /// Begins at `seed`.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// The next one below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The bias is below limit / 2^64.
        ((u128::from(mixed) * u128::from(limit)) >> 64) as u64
    }

    fn words(&mut self, count: u64) -> String {
        let words: Vec<_> =
            (0..count).map(|_| WORDS[self.below(WORDS.len() as u64) as usize]).collect();
        words.join(" ")
    }
}

/// The data set: orders 0 to `count` - 1, and the single inserts behind them.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    /// The number of documents that are loaded in batches; the number of customers follows from it.
    pub count: u64,
}

impl Orders {
    /// Returns how many customers there are.
    pub fn customers(&self) -> u64 {
        (self.count / ORDERS_PER_CUSTOMER).max(1)
    }

    /// The name of a city.
    pub fn city(position: u64) -> String {
        format!("{} {}", WORDS[(position % 16) as usize], position % CITIES)
    }

    /// The order called `number`.
    pub fn order(&self, number: u64) -> Order {
        let mut numbers = Numbers::new(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let customer = numbers.below(self.customers());
        let items: Vec<Item> = (0..3 + numbers.below(4)).map(|_| item(&mut numbers)).collect();
        Order {
            number: number as i64,
            customer: Customer {
                number: customer as i64,
                name: format!("{} of {}", numbers.words(2), customer),
                mail: format!("customer{customer}@{}.example", numbers.words(1)),
            },
            created: CREATED_FIRST_MILLIS
                + (number * 1_000) as i64
                + numbers.below(DAY_MILLIS) as i64,
            status: "paid".into(),
            total: items.iter().map(|item| item.price * item.quantity).sum(),
            address: Address {
                street: format!("{} {}", numbers.words(2), numbers.below(200)),
                city: Orders::city(numbers.below(CITIES)),
                country: WORDS[numbers.below(16) as usize].to_uppercase(),
            },
            items,
            note: numbers.words(35),
        }
    }
}

fn item(numbers: &mut Numbers) -> Item {
    Item {
        article: format!("{:08x}", numbers.below(1 << 32)),
        name: numbers.words(3),
        quantity: 1 + numbers.below(9) as i64,
        price: 100 + numbers.below(100_000) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_follows_from_its_number() {
        let orders = Orders { count: 1_000 };
        assert_eq!(orders.order(7), orders.order(7));
        assert_ne!(orders.order(7), orders.order(8));
        assert!(orders.order(7).customer.number < 100);
    }

    #[test]
    fn a_hundredth_is_in_a_city() {
        let orders = Orders { count: 10_000 };
        let city = Orders::city(42);
        let there = (0..10_000).filter(|number| orders.order(*number).address.city == city).count();
        assert!((50..200).contains(&there), "{there}");
    }
}
