//! The initial population (4.3.3 of the specification), as documents, many in each insert.

use bson::{Bson, Document, doc};

use crate::query::{CollectionSpec, Kind};
use crate::random::Random;
use crate::target::{Encoded, Failure, Session};
use crate::workload::Context;
use crate::workloads::tpcc::documents::encoded;
use crate::workloads::tpcc::input::{
    DISTRICTS, Sizes, district_key, key_in_district, last_name, stock_key,
};

const BATCH: usize = 500;
const PAID: i64 = 1_000;
const DISTRICT_YTD: i64 = 3_000_000;

/// Gathers a collection's documents into batches.
struct Filler<'a> {
    session: &'a mut dyn Session,
    collection: &'static str,
    batch: Vec<Encoded>,
}

impl<'a> Filler<'a> {
    fn new(session: &'a mut dyn Session, collection: &'static str) -> Filler<'a> {
        Filler { session, collection, batch: Vec::new() }
    }

    fn add(&mut self, document: &Document) -> Result<(), Failure> {
        self.batch.push(encoded(document)?);
        if self.batch.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if !self.batch.is_empty() {
            self.session.insert(self.collection, &self.batch)?;
            self.batch.clear();
        }
        Ok(())
    }
}

/// Makes and fills all collections.
pub fn load(
    session: &mut dyn Session,
    sizes: &Sizes,
    context: &Context<'_>,
) -> Result<(), Failure> {
    for name in ["warehouse", "district", "item", "stock", "history", "new_order"] {
        session.create(&CollectionSpec::new(name, Kind::Integer))?;
    }
    let by_name = [("district", Kind::Integer), ("last", Kind::Text), ("first", Kind::Text)];
    session.create(&CollectionSpec::new("customer", Kind::Integer).index(&by_name))?;
    let by_customer = [("customer", Kind::Integer), ("number", Kind::Integer)];
    session.create(&CollectionSpec::new("orders", Kind::Integer).index(&by_customer))?;
    let mut random = Random::of(sizes.seed, &[7]);
    items(session, sizes, &mut random)?;
    for warehouse in 1..=sizes.warehouses {
        let all = sizes.warehouses;
        context.progress.say(&format!("loading warehouse {warehouse} of {all}, as documents"));
        warehouse_and_stock(session, sizes, warehouse, &mut random)?;
        for district in 1..=DISTRICTS {
            let district = district_key(warehouse, district);
            customers(session, sizes, district, &mut random)?;
            orders(session, sizes, warehouse, district, &mut random)?;
        }
    }
    Ok(())
}

fn items(session: &mut dyn Session, sizes: &Sizes, random: &mut Random) -> Result<(), Failure> {
    let mut filler = Filler::new(session, "item");
    for item in 1..=sizes.items() {
        filler.add(&doc! {
            "_id": item,
            "name": random.letters(20),
            "price": random.between(100, 10_000) as i64,
            "data": random.letters(40),
        })?;
    }
    filler.flush()
}

fn warehouse_and_stock(
    session: &mut dyn Session,
    sizes: &Sizes,
    warehouse: i64,
    random: &mut Random,
) -> Result<(), Failure> {
    let mut filler = Filler::new(session, "warehouse");
    filler.add(&doc! {
        "_id": warehouse,
        "name": random.letters(8),
        "tax": random.below(2_000) as i64,
        "ytd": DISTRICT_YTD * DISTRICTS,
    })?;
    filler.flush()?;
    let mut filler = Filler::new(session, "district");
    for district in 1..=DISTRICTS {
        filler.add(&doc! {
            "_id": district_key(warehouse, district),
            "name": random.letters(8),
            "tax": random.below(2_000) as i64,
            "ytd": DISTRICT_YTD,
            "next": sizes.orders() + 1,
        })?;
    }
    filler.flush()?;
    let mut filler = Filler::new(session, "stock");
    for item in 1..=sizes.items() {
        filler.add(&doc! {
            "_id": stock_key(warehouse, item),
            "quantity": random.between(10, 100) as i64,
            "ytd": 0_i64,
            "orders": 0_i64,
            "remote": 0_i64,
            "dist": random.letters(24),
            "data": random.letters(40),
        })?;
    }
    filler.flush()
}

fn customers(
    session: &mut dyn Session,
    sizes: &Sizes,
    district: i64,
    random: &mut Random,
) -> Result<(), Failure> {
    let mut filler = Filler::new(session, "customer");
    for customer in 1..=sizes.customers() {
        filler.add(&doc! {
            "_id": key_in_district(district, customer),
            "district": district,
            "last": last_name((customer - 1) as u64 % sizes.last_names()),
            "first": random.letters(12),
            "credit": if random.below(10) == 0 { "BC" } else { "GC" },
            "discount": random.below(5_000) as i64,
            "balance": -PAID,
            "ytd": PAID,
            "payments": 1_i64,
            "deliveries": 0_i64,
            "data": random.letters(400),
        })?;
    }
    filler.flush()
}

fn orders(
    session: &mut dyn Session,
    sizes: &Sizes,
    warehouse: i64,
    district: i64,
    random: &mut Random,
) -> Result<(), Failure> {
    let mut customers: Vec<i64> = (1..=sizes.customers()).collect();
    random.shuffle(&mut customers);
    let mut filler = Filler::new(session, "orders");
    for (order, customer) in (1..).zip(customers) {
        let delivered = order < sizes.undelivered();
        let mut lines = Vec::new();
        for _ in 0..random.between(5, 15) {
            lines.push(doc! {
                "item": random.between(1, sizes.items() as u64) as i64,
                "supplier": warehouse,
                "quantity": 5_i64,
                "amount": if delivered { 0 } else { random.between(1, 999_999) as i64 },
                "dist": random.letters(24),
            });
        }
        let carrier = match delivered {
            true => Bson::Int64(random.between(1, 10) as i64),
            false => Bson::Null,
        };
        filler.add(&doc! {
            "_id": key_in_district(district, order),
            "number": order,
            "customer": key_in_district(district, customer),
            "entry": 0_i64,
            "carrier": carrier,
            "line_count": lines.len() as i64,
            "lines": lines,
        })?;
    }
    filler.flush()?;
    let mut filler = Filler::new(session, "new_order");
    for order in sizes.undelivered()..=sizes.orders() {
        filler.add(&doc! { "_id": key_in_district(district, order), "number": order })?;
    }
    filler.flush()
}
