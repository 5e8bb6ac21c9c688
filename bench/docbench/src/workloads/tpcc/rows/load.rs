//! The initial population (4.3.3 of the specification), as rows, many in each statement.

use crate::random::Random;
use crate::sql::{SqlSession, SqlValue};
use crate::target::Failure;
use crate::workload::Context;
use crate::workloads::tpcc::input::{Sizes, last_name};

const ROWS_MAX: usize = 200;
/// The amount that each customer of the specification has paid at the beginning, and that its
/// district has received.
const PAID: i64 = 1_000;
const DISTRICT_YTD: i64 = 3_000_000;

/// Gathers a table's rows into statements.
struct Filler<'a> {
    sql: &'a mut dyn SqlSession,
    table: &'static str,
    columns: usize,
    values: Vec<SqlValue>,
}

impl<'a> Filler<'a> {
    fn new(sql: &'a mut dyn SqlSession, table: &'static str) -> Filler<'a> {
        Filler { sql, table, columns: 0, values: Vec::new() }
    }

    fn row(&mut self, row: Vec<SqlValue>) -> Result<(), Failure> {
        self.columns = row.len();
        self.values.extend(row);
        if self.values.len() >= self.columns * ROWS_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if self.values.is_empty() {
            return Ok(());
        }
        let row = format!("({})", vec!["?"; self.columns].join(", "));
        let rows = vec![row; self.values.len() / self.columns].join(", ");
        let statement = format!("insert into {} values {rows}", self.table);
        self.sql.execute(&statement, &self.values)?;
        self.values.clear();
        Ok(())
    }
}

/// Fills all tables.
pub fn load(sql: &mut dyn SqlSession, sizes: &Sizes, context: &Context<'_>) -> Result<(), Failure> {
    let mut random = Random::of(sizes.seed, &[7]);
    sql.begin()?;
    items(sql, sizes, &mut random)?;
    sql.commit()?;
    for warehouse in 1..=sizes.warehouses {
        let all = sizes.warehouses;
        context.progress.say(&format!("loading warehouse {warehouse} of {all}, as rows"));
        sql.begin()?;
        warehouse_and_stock(sql, sizes, warehouse, &mut random)?;
        sql.commit()?;
        for district in 1..=super::DISTRICTS {
            sql.begin()?;
            customers(sql, sizes, warehouse, district, &mut random)?;
            orders(sql, sizes, warehouse, district, &mut random)?;
            sql.commit()?;
        }
    }
    Ok(())
}

fn items(sql: &mut dyn SqlSession, sizes: &Sizes, random: &mut Random) -> Result<(), Failure> {
    let mut filler = Filler::new(sql, "item");
    for item in 1..=sizes.items() {
        let price = random.between(100, 10_000) as i64;
        filler.row(vec![
            item.into(),
            random.letters(20).into(),
            price.into(),
            random.letters(40).into(),
        ])?;
    }
    filler.flush()
}

fn warehouse_and_stock(
    sql: &mut dyn SqlSession,
    sizes: &Sizes,
    warehouse: i64,
    random: &mut Random,
) -> Result<(), Failure> {
    let mut filler = Filler::new(sql, "warehouse");
    let ytd = DISTRICT_YTD * super::DISTRICTS;
    let tax = random.below(2_000) as i64;
    filler.row(vec![warehouse.into(), random.letters(8).into(), tax.into(), ytd.into()])?;
    filler.flush()?;
    let mut filler = Filler::new(sql, "district");
    for district in 1..=super::DISTRICTS {
        filler.row(vec![
            warehouse.into(),
            district.into(),
            random.letters(8).into(),
            (random.below(2_000) as i64).into(),
            DISTRICT_YTD.into(),
            (sizes.orders() + 1).into(),
        ])?;
    }
    filler.flush()?;
    let mut filler = Filler::new(sql, "stock");
    for item in 1..=sizes.items() {
        filler.row(vec![
            warehouse.into(),
            item.into(),
            (random.between(10, 100) as i64).into(),
            0.into(),
            0.into(),
            0.into(),
            random.letters(24).into(),
            random.letters(40).into(),
        ])?;
    }
    filler.flush()
}

fn customers(
    sql: &mut dyn SqlSession,
    sizes: &Sizes,
    warehouse: i64,
    district: i64,
    random: &mut Random,
) -> Result<(), Failure> {
    let mut filler = Filler::new(sql, "customer");
    for customer in 1..=sizes.customers() {
        let credit = if random.below(10) == 0 { "BC" } else { "GC" };
        filler.row(vec![
            warehouse.into(),
            district.into(),
            customer.into(),
            last_name((customer - 1) as u64 % sizes.last_names()).into(),
            random.letters(12).into(),
            credit.into(),
            (random.below(5_000) as i64).into(),
            (-PAID).into(),
            PAID.into(),
            1.into(),
            0.into(),
            random.letters(400).into(),
        ])?;
    }
    filler.flush()
}

fn orders(
    sql: &mut dyn SqlSession,
    sizes: &Sizes,
    warehouse: i64,
    district: i64,
    random: &mut Random,
) -> Result<(), Failure> {
    let mut customers: Vec<i64> = (1..=sizes.customers()).collect();
    random.shuffle(&mut customers);
    let counts: Vec<i64> = customers.iter().map(|_| random.between(5, 15) as i64).collect();
    let key = |order: usize| [warehouse, district, order as i64 + 1].map(SqlValue::from);
    let mut filler = Filler::new(sql, "orders");
    for (order, customer) in customers.iter().enumerate() {
        let delivered = (order as i64) + 1 < sizes.undelivered();
        let carrier =
            if delivered { (random.between(1, 10) as i64).into() } else { SqlValue::Null };
        let mut row = key(order).to_vec();
        row.extend([(*customer).into(), 0.into(), carrier, counts[order].into()]);
        filler.row(row)?;
    }
    filler.flush()?;
    let mut filler = Filler::new(sql, "new_orders");
    for order in sizes.undelivered()..=sizes.orders() {
        filler.row(key(order as usize - 1).to_vec())?;
    }
    filler.flush()?;
    let mut filler = Filler::new(sql, "order_line");
    for (order, count) in counts.iter().enumerate() {
        let delivered = (order as i64) + 1 < sizes.undelivered();
        for number in 1..=*count {
            let mut row = key(order).to_vec();
            let amount = if delivered { 0 } else { random.between(1, 999_999) as i64 };
            row.extend([
                number.into(),
                (random.between(1, sizes.items() as u64) as i64).into(),
                warehouse.into(),
                5.into(),
                amount.into(),
                if delivered { 0.into() } else { SqlValue::Null },
                random.letters(24).into(),
            ]);
            filler.row(row)?;
        }
    }
    filler.flush()
}
