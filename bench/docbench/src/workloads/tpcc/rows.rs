//! TPC-C as rows in SQL: the specification's tables, prepared statements, row locks where there are
//! any.
//!
//! As many round trips as the documents' form has, or nearly: what is read or changed of one table
//! is one statement (`in`, `case`), as is what is changed and asked for where the dialect has
//! `returning`. They stand in the same order, too: what many write comes first, which spares
//! conflicts where a transaction's snapshot is as old as its first statement.
//!
//! Money is in cents, rates in ten-thousandths, so that sums are exact.

mod load;
mod schema;

use std::collections::BTreeMap;

use crate::sql::{SqlSession, SqlValue};
use crate::target::{Failure, Session};
use crate::workload::Context;
use crate::workloads::tpcc::Form;
use crate::workloads::tpcc::check::{District, State};
use crate::workloads::tpcc::input::{DISTRICTS, Input, Line, Sizes, Who, stock_after};

/// The form.
pub struct Rows {
    sizes: Sizes,
}

impl Rows {
    /// Makes it for a database of this size.
    pub fn new(sizes: Sizes) -> Rows {
        Rows { sizes }
    }
}

fn sql(session: &mut dyn Session) -> Result<&mut dyn SqlSession, Failure> {
    session.sql().ok_or_else(|| Failure::Other("a SQL target without SQL".into()))
}

fn one(
    sql: &mut dyn SqlSession,
    statement: &str,
    parameters: &[i64],
) -> Result<Vec<SqlValue>, Failure> {
    let parameters: Vec<SqlValue> = parameters.iter().map(|value| (*value).into()).collect();
    let row = sql.row(statement, &parameters)?;
    row.ok_or_else(|| Failure::Wrong(format!("no row of {parameters:?}: {statement}")))
}

fn change(sql: &mut dyn SqlSession, statement: &str, parameters: &[i64]) -> Result<(), Failure> {
    let parameters: Vec<SqlValue> = parameters.iter().map(|value| (*value).into()).collect();
    match sql.execute(statement, &parameters)? {
        1 => Ok(()),
        count => Err(Failure::Wrong(format!("{count} rows changed by {statement}"))),
    }
}

/// Changes so many rows.
fn change_all(
    sql: &mut dyn SqlSession,
    statement: &str,
    parameters: &[i64],
    expected: usize,
) -> Result<(), Failure> {
    let parameters: Vec<SqlValue> = parameters.iter().map(|value| (*value).into()).collect();
    match sql.execute(statement, &parameters)? {
        count if count == expected as u64 => Ok(()),
        count => Err(Failure::Wrong(format!("{count} rows changed by {statement}"))),
    }
}

/// The value in a column.
fn at(row: &[SqlValue], column: usize) -> Result<i64, Failure> {
    row.get(column).ok_or_else(|| Failure::Wrong("a column is missing".into()))?.integer()
}

impl Form for Rows {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn load(&self, session: &mut dyn Session, context: &Context<'_>) -> Result<(), Failure> {
        let sql = sql(session)?;
        schema::create(sql)?;
        load::load(sql, &self.sizes, context)
    }

    fn run(&self, session: &mut dyn Session, input: &Input) -> Result<bool, Failure> {
        let sql = sql(session)?;
        sql.begin()?;
        let done = match input {
            Input::NewOrder { warehouse, district, customer, lines, time } => {
                new_order(sql, *warehouse, *district, *customer, lines, *time)
            }
            Input::Payment { .. } => payment(sql, input).map(|()| true),
            Input::OrderStatus { warehouse, district, who } => {
                order_status(sql, *warehouse, *district, who).map(|()| true)
            }
            Input::Delivery { warehouse, carrier, time } => {
                delivery(sql, *warehouse, *carrier, *time).map(|()| true)
            }
            Input::StockLevel { warehouse, district, threshold } => {
                stock_level(sql, *warehouse, *district, *threshold).map(|()| true)
            }
        };
        match done {
            Ok(true) => sql.commit().map(|()| true),
            Ok(false) => sql.rollback().map(|()| false),
            Err(failure) => Err(failure),
        }
    }

    fn state(&self, session: &mut dyn Session) -> Result<State, Failure> {
        let sql = sql(session)?;
        let mut state = State::default();
        for warehouse in 1..=self.sizes.warehouses {
            let row = one(sql, "select w_ytd from warehouse where w_id = ?", &[warehouse])?;
            state.warehouses.push(at(&row, 0)?);
        }
        for (warehouse, district) in self.sizes.districts() {
            state.districts.push(district_state(sql, warehouse, district)?);
        }
        Ok(state)
    }
}

fn district_state(
    sql: &mut dyn SqlSession,
    warehouse: i64,
    district: i64,
) -> Result<District, Failure> {
    let key = [warehouse, district];
    let row = one(sql, "select d_ytd, d_next from district where d_w = ? and d_id = ?", &key)?;
    let sum = sql.dialect().sum("o_lines");
    let orders = format!(
        "select coalesce(max(o_id), 0), coalesce({sum}, 0) from orders where o_w = ? and o_d = ?"
    );
    let orders = one(sql, &orders, &key)?;
    let new_orders = one(
        sql,
        "select coalesce(max(n_o), 0), coalesce(min(n_o), 0), count(*) \
         from new_orders where n_w = ? and n_d = ?",
        &key,
    )?;
    let lines = "select count(*) from order_line where l_w = ? and l_d = ?";
    let lines = one(sql, lines, &key)?;
    Ok(District {
        warehouse,
        ytd: at(&row, 0)?,
        next: at(&row, 1)?,
        order_max: at(&orders, 0)?,
        new_order_max: at(&new_orders, 0)?,
        new_order_min: at(&new_orders, 1)?,
        new_orders: at(&new_orders, 2)?,
        line_totals: at(&orders, 1)?,
        lines: at(&lines, 0)?,
    })
}

fn new_order(
    sql: &mut dyn SqlSession,
    warehouse: i64,
    district: i64,
    customer: i64,
    lines: &[Line],
    time: i64,
) -> Result<bool, Failure> {
    let order = next_order(sql, warehouse, district)?;
    let prices = prices(sql, lines)?;
    if prices.len() < lines.len() {
        return Ok(false);
    }
    let stock = order_stock(sql, warehouse, lines)?;
    one(sql, "select w_tax from warehouse where w_id = ?", &[warehouse])?;
    one(
        sql,
        "select c_discount, c_last, c_credit from customer where c_w = ? and c_d = ? and c_id = ?",
        &[warehouse, district, customer],
    )?;
    change(
        sql,
        "insert into orders (o_w, o_d, o_id, o_c, o_entry, o_carrier, o_lines) \
         values (?, ?, ?, ?, ?, null, ?)",
        &[warehouse, district, order, customer, time, lines.len() as i64],
    )?;
    change(
        sql,
        "insert into new_orders (n_w, n_d, n_o) values (?, ?, ?)",
        &[warehouse, district, order],
    )?;
    let mut values: Vec<SqlValue> = Vec::with_capacity(9 * lines.len());
    for (position, line) in lines.iter().enumerate() {
        let amount = prices.get(&line.item).map(|price| price * line.quantity);
        let dist = stock.get(&(line.supplier, line.item));
        let (Some(amount), Some(dist)) = (amount, dist) else {
            return Err(Failure::Wrong(format!("{line:?} is missing")));
        };
        let numbers = [warehouse, district, order, position as i64 + 1, line.item];
        let more = [line.supplier, line.quantity, amount];
        values.extend(numbers.iter().chain(&more).map(|value| SqlValue::from(*value)));
        values.push(dist.clone());
    }
    let rows = vec!["(?, ?, ?, ?, ?, ?, ?, ?, null, ?)"; lines.len()].join(", ");
    sql.execute(
        &format!(
            "insert into order_line (l_w, l_d, l_o, l_number, l_i, l_supplier, l_quantity, \
             l_amount, l_delivered, l_dist) values {rows}"
        ),
        &values,
    )?;
    Ok(true)
}

/// Takes the next order's number of a district.
fn next_order(sql: &mut dyn SqlSession, warehouse: i64, district: i64) -> Result<i64, Failure> {
    let key = [warehouse, district];
    let update = "update district set d_next = d_next + 1 where d_w = ? and d_id = ?";
    if sql.dialect().has_returning() {
        return at(&one(sql, &format!("{update} returning d_next - 1, d_tax"), &key)?, 0);
    }
    let lock = sql.dialect().for_update();
    let select = format!("select d_next, d_tax from district where d_w = ? and d_id = ?{lock}");
    let found = one(sql, &select, &key)?;
    change(sql, update, &key)?;
    at(&found, 0)
}

/// `?, ?, ?`
fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// `case COLUMN when ? then 0 + ? ... end`: the sum shows PostgreSQL that the parameter is a
/// number.
fn case_of(column: &str, count: usize) -> String {
    format!("case {column}{} end", " when ? then 0 + ?".repeat(count))
}

/// Returns the prices of the ordered items; numbers that belong to no item are left out.
fn prices(sql: &mut dyn SqlSession, lines: &[Line]) -> Result<BTreeMap<i64, i64>, Failure> {
    let mut prices = BTreeMap::new();
    let items: Vec<SqlValue> = lines.iter().map(|line| line.item.into()).collect();
    let query = format!("select i_id, i_price from item where i_id in ({})", places(lines.len()));
    sql.query(&query, &items, &mut |row| {
        prices.insert(at(row, 0)?, at(row, 1)?);
        Ok(())
    })?;
    Ok(prices)
}

/// Takes what is ordered out of stock, warehouse by warehouse; answers each stock's text, by
/// warehouse and item.
fn order_stock(
    sql: &mut dyn SqlSession,
    warehouse: i64,
    lines: &[Line],
) -> Result<BTreeMap<(i64, i64), SqlValue>, Failure> {
    let mut texts = BTreeMap::new();
    let lock = sql.dialect().for_update();
    for of_one in lines.chunk_by(|left, right| left.supplier == right.supplier) {
        let supplier = of_one[0].supplier;
        let (count, among) = (of_one.len(), format!("s_i in ({})", places(of_one.len())));
        let items: Vec<i64> = of_one.iter().map(|line| line.item).collect();
        let key: Vec<i64> = std::iter::once(supplier).chain(items.iter().copied()).collect();
        let select = format!(
            "select s_i, s_quantity, s_dist from stock where s_w = ? and {among} order by s_i{lock}"
        );
        let mut quantities = BTreeMap::new();
        let parameters: Vec<SqlValue> = key.iter().map(|value| (*value).into()).collect();
        sql.query(&select, &parameters, &mut |row| {
            quantities.insert(at(row, 0)?, at(row, 1)?);
            texts.insert((supplier, at(row, 0)?), row.get(2).cloned().unwrap_or(SqlValue::Null));
            Ok(())
        })?;
        let update = format!(
            "update stock set s_quantity = {0}, s_ytd = s_ytd + {0}, s_orders = s_orders + 1, \
             s_remote = s_remote + ? where s_w = ? and {among}",
            case_of("s_i", count)
        );
        let mut parameters = Vec::with_capacity(5 * count + 2);
        for line in of_one {
            let quantity = quantities.get(&line.item).copied();
            let quantity =
                quantity.ok_or_else(|| Failure::Wrong(format!("{line:?}: no such stock")))?;
            parameters.extend([line.item, stock_after(quantity, line.quantity)]);
        }
        parameters.extend(of_one.iter().flat_map(|line| [line.item, line.quantity]));
        parameters.push(i64::from(supplier != warehouse));
        parameters.extend(key);
        change_all(sql, &update, &parameters, count)?;
    }
    Ok(texts)
}

/// The customer's number.
fn customer_of(
    sql: &mut dyn SqlSession,
    warehouse: i64,
    district: i64,
    who: &Who,
) -> Result<i64, Failure> {
    let name = match who {
        Who::Number(number) => return Ok(*number),
        Who::LastName(name) => name,
    };
    let mut numbers = Vec::new();
    sql.query(
        "select c_id from customer where c_w = ? and c_d = ? and c_last = ? order by c_first",
        &[warehouse.into(), district.into(), name.as_str().into()],
        &mut |row| {
            numbers.push(at(row, 0)?);
            Ok(())
        },
    )?;
    let middle = numbers.len().div_ceil(2).saturating_sub(1);
    numbers.get(middle).copied().ok_or_else(|| Failure::Wrong(format!("no customer called {name}")))
}

fn payment(sql: &mut dyn SqlSession, input: &Input) -> Result<(), Failure> {
    let Input::Payment {
        warehouse,
        district,
        customer_warehouse,
        customer_district,
        who,
        amount,
        id,
    } = input
    else {
        return Err(Failure::Other("not a payment".into()));
    };
    let lock = sql.dialect().for_update();
    let update = "update warehouse set w_ytd = w_ytd + ? where w_id = ?";
    if sql.dialect().has_returning() {
        one(sql, &format!("{update} returning w_tax, w_name"), &[*amount, *warehouse])?;
    } else {
        change(sql, update, &[*amount, *warehouse])?;
        one(sql, "select w_tax, w_name from warehouse where w_id = ?", &[*warehouse])?;
    }
    change(
        sql,
        "update district set d_ytd = d_ytd + ? where d_w = ? and d_id = ?",
        &[*amount, *warehouse, *district],
    )?;
    let customer = customer_of(sql, *customer_warehouse, *customer_district, who)?;
    let key = [*customer_warehouse, *customer_district, customer];
    let found = one(
        sql,
        &format!(
            "select c_balance, c_credit, c_data from customer \
             where c_w = ? and c_d = ? and c_id = ?{lock}"
        ),
        &key,
    )?;
    let mut values: Vec<SqlValue> = vec![(*amount).into(), (*amount).into()];
    let mut data = "";
    // A customer of bad credit has the payment noted: 2.5.2.2.
    if found.get(1) == Some(&SqlValue::from("BC")) {
        let before = found.get(2).map(SqlValue::text).transpose()?.unwrap_or_default();
        let mut after = format!("{customer} {amount} {warehouse} {district};{before}");
        after.truncate(500);
        values.push(after.into());
        data = ", c_data = ?";
    }
    values.extend(key.map(SqlValue::from));
    sql.execute(
        &format!(
            "update customer set c_balance = c_balance - ?, c_ytd = c_ytd + ?, \
             c_payments = c_payments + 1{data} where c_w = ? and c_d = ? and c_id = ?"
        ),
        &values,
    )?;
    change(
        sql,
        "insert into history (h_id, h_c_w, h_c_d, h_c, h_w, h_d, h_amount) \
         values (?, ?, ?, ?, ?, ?, ?)",
        &[*id, key[0], key[1], key[2], *warehouse, *district, *amount],
    )
}

fn order_status(
    sql: &mut dyn SqlSession,
    warehouse: i64,
    district: i64,
    who: &Who,
) -> Result<(), Failure> {
    let customer = customer_of(sql, warehouse, district, who)?;
    let key = [warehouse, district, customer];
    one(
        sql,
        "select c_balance, c_first, c_last from customer where c_w = ? and c_d = ? and c_id = ?",
        &key,
    )?;
    let order = one(
        sql,
        "select o_id, o_lines, o_carrier from orders where o_w = ? and o_d = ? and o_c = ? \
         order by o_id desc limit 1",
        &key,
    )?;
    let mut lines = 0;
    sql.query(
        "select l_i, l_supplier, l_quantity, l_amount, l_delivered from order_line \
         where l_w = ? and l_d = ? and l_o = ?",
        &[warehouse.into(), district.into(), at(&order, 0)?.into()],
        &mut |_| {
            lines += 1;
            Ok(())
        },
    )?;
    if lines == at(&order, 1)? {
        Ok(())
    } else {
        Err(Failure::Wrong(format!("an order of {:?} lines has {lines}", order.get(1))))
    }
}

fn delivery(
    sql: &mut dyn SqlSession,
    warehouse: i64,
    carrier: i64,
    time: i64,
) -> Result<(), Failure> {
    let lock = sql.dialect().for_update();
    // District and order.
    let mut oldest: Vec<[i64; 2]> = Vec::new();
    for district in 1..=DISTRICTS {
        let found = sql.row(
            &format!(
                "select n_o from new_orders where n_w = ? and n_d = ? order by n_o limit 1{lock}"
            ),
            &[warehouse.into(), district.into()],
        )?;
        if let Some(found) = found {
            oldest.push([district, at(&found, 0)?]);
        }
    }
    if oldest.is_empty() {
        return Ok(());
    }
    let all = oldest.len();
    let delete = format!("delete from new_orders where n_w = ? and {}", any_of("n_d", "n_o", all));
    let key = || std::iter::once(warehouse).chain(oldest.iter().flatten().copied());
    let key_values: Vec<SqlValue> = key().map(SqlValue::from).collect();
    // Another client may have been first, where reading didn't lock.
    if sql.execute(&delete, &key_values)? < all as u64 {
        return Err(Failure::Conflict("a new order was delivered by another".into()));
    }
    let with_first = |first: i64| std::iter::once(first).chain(key()).collect::<Vec<i64>>();
    let of_orders = any_of("o_d", "o_id", all);
    let update = format!("update orders set o_carrier = ? where o_w = ? and {of_orders}");
    change_all(sql, &update, &with_first(carrier), all)?;
    let of_lines = any_of("l_d", "l_o", all);
    let update = format!("update order_line set l_delivered = ? where l_w = ? and {of_lines}");
    let parameters: Vec<SqlValue> = with_first(time).into_iter().map(SqlValue::from).collect();
    sql.execute(&update, &parameters)?;
    let customers = format!("select o_d, o_c from orders where o_w = ? and {of_orders}");
    let customers = pairs(sql, &customers, &key_values)?;
    let sum = sql.dialect().sum("l_amount");
    let amounts =
        format!("select l_d, {sum} from order_line where l_w = ? and {of_lines} group by l_d");
    let amounts = pairs(sql, &amounts, &key_values)?;
    let update = format!(
        "update customer set c_balance = c_balance + {}, c_deliveries = c_deliveries + 1 \
         where c_w = ? and {}",
        case_of("c_d", amounts.len()),
        any_of("c_d", "c_id", all)
    );
    let mut parameters: Vec<i64> = amounts.into_iter().flatten().collect();
    parameters.push(warehouse);
    parameters.extend(customers.into_iter().flatten());
    change_all(sql, &update, &parameters, all)
}

/// `(first = ? and second = ? or ...)`: row values aren't found by an index in every dialect.
fn any_of(first: &str, second: &str, count: usize) -> String {
    format!("({})", vec![format!("{first} = ? and {second} = ?"); count].join(" or "))
}

/// All rows of a query with two columns of integers.
fn pairs(
    sql: &mut dyn SqlSession,
    query: &str,
    parameters: &[SqlValue],
) -> Result<Vec<[i64; 2]>, Failure> {
    let mut found = Vec::new();
    sql.query(query, parameters, &mut |row| {
        found.push([at(row, 0)?, at(row, 1)?]);
        Ok(())
    })?;
    Ok(found)
}

fn stock_level(
    sql: &mut dyn SqlSession,
    warehouse: i64,
    district: i64,
    threshold: i64,
) -> Result<(), Failure> {
    let next = "select d_next from district where d_w = ? and d_id = ?";
    let next = at(&one(sql, next, &[warehouse, district])?, 0)?;
    one(
        sql,
        "select count(distinct s_i) from order_line join stock on s_w = l_w and s_i = l_i \
         where l_w = ? and l_d = ? and l_o >= ? and l_o < ? and s_quantity < ?",
        &[warehouse, district, next - 20, next, threshold],
    )?;
    Ok(())
}
