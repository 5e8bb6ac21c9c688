//! TPC-C as documents: an order embeds its lines, so that five tables of the nine are left, and
//! items.
//!
//! Each transaction is one of the database, over several documents. Keys are numbers joined from
//! their parts, so that a district's orders lie together and ascend.
//!
//! As in MongoDB's own adaptation (Kamsky, "Adapting TPC-C Benchmark to Measure Performance of
//! Multi-Document Transactions in MongoDB", VLDB 2019), a document is changed and answered in one
//! step (`findAndModify`), and what is read or changed of one collection is one request. Statements
//! stand in the order that suits a database which reports at once that another transaction is in
//! the way: rows that many transactions write come first, before the transaction has a snapshot
//! that the others' writes would make stale; stock is changed before it is read; rows that are only
//! read come last.

mod load;

use bson::{Bson, Document, doc};
use bytes::Bytes;

use crate::query::{Change, Comparison, Direction, Kind, Query};
use crate::target::{Encoded, Failure, Session, Target};
use crate::workload::Context;
use crate::workloads::tpcc::Form;
use crate::workloads::tpcc::check::{District, State};
use crate::workloads::tpcc::input::{
    DISTRICTS, Input, Line, STOCK_LEAST, STOCK_REFILL, Sizes, Who, district_key, key_in_district,
    stock_key,
};

/// The form.
pub struct Documents {
    sizes: Sizes,
}

impl Documents {
    /// Makes it for a database of this size on a target whose documents are BSON.
    pub fn new(sizes: Sizes, target: &dyn Target) -> Result<Documents, Failure> {
        let probe = doc! { "_id": 1_i64 };
        if target.encode(&probe)? != probe.to_vec()? {
            return Err(Failure::Unsupported("as documents it runs on BSON only".into()));
        }
        Ok(Documents { sizes })
    }
}

fn encoded(document: &Document) -> Result<Encoded, Failure> {
    let id = document.get("_id").cloned().unwrap_or_default();
    Ok(Encoded { id, bytes: Bytes::from(document.to_vec()?) })
}

fn insert(session: &mut dyn Session, collection: &str, document: &Document) -> Result<(), Failure> {
    session.insert(collection, &[encoded(document)?])
}

fn get(session: &mut dyn Session, collection: &str, id: i64) -> Result<Document, Failure> {
    let found = session.get(collection, &Bson::Int64(id))?;
    let bytes = found.ok_or_else(|| Failure::Wrong(format!("no {id} in {collection}")))?;
    Ok(Document::from_reader(&bytes[..])?)
}

fn find(session: &mut dyn Session, query: &Query) -> Result<Vec<Document>, Failure> {
    let mut found = Vec::new();
    session.find(query, &mut |bytes| {
        found.push(Document::from_reader(bytes)?);
        Ok(())
    })?;
    Ok(found)
}

fn update(
    session: &mut dyn Session,
    collection: &str,
    id: i64,
    changes: &[Change],
) -> Result<(), Failure> {
    match session.update(collection, &Bson::Int64(id), changes)? {
        1 => Ok(()),
        count => Err(Failure::Wrong(format!("{count} of {id} in {collection} were updated"))),
    }
}

/// Changes documents in one request.
fn update_each(
    session: &mut dyn Session,
    collection: &str,
    changes: &[(Bson, Vec<Change>)],
) -> Result<(), Failure> {
    match session.update_each(collection, changes)? {
        count if count == changes.len() as u64 => Ok(()),
        count => Err(Failure::Wrong(format!("{count} of {changes:?} in {collection} updated"))),
    }
}

/// Changes a document; answers it as it was before.
fn modify(
    session: &mut dyn Session,
    collection: &str,
    id: i64,
    changes: &[Change],
) -> Result<Document, Failure> {
    let found = session.modify(collection, &Bson::Int64(id), changes)?;
    let bytes = found.ok_or_else(|| Failure::Wrong(format!("no {id} in {collection}")))?;
    Ok(Document::from_reader(&bytes[..])?)
}

fn number(document: &Document, name: &str) -> Result<i64, Failure> {
    match document.get(name) {
        Some(Bson::Int64(number)) => Ok(*number),
        Some(Bson::Int32(number)) => Ok(i64::from(*number)),
        other => Err(Failure::Wrong(format!("{name} is {other:?}"))),
    }
}

fn set(path: &str, value: impl Into<Bson>) -> Change {
    Change::Set(path.into(), value.into())
}

fn add(path: &str, number: i64) -> Change {
    Change::Add(path.into(), number)
}

/// Documents whose keys are from `least` to below `end`.
fn range(collection: &str, least: i64, end: i64) -> Query {
    Query::all(collection).filter("_id", Comparison::AtLeast, least).filter(
        "_id",
        Comparison::Less,
        end,
    )
}

/// A district's documents.
fn of_district(collection: &str, district: i64) -> Query {
    range(collection, key_in_district(district, 0), key_in_district(district + 1, 0))
}

fn any_of(collection: &str, keys: impl Iterator<Item = i64>) -> Query {
    let keys: Vec<Bson> = keys.map(Bson::Int64).collect();
    Query::all(collection).filter("_id", Comparison::AnyOf, Bson::Array(keys))
}

impl Form for Documents {
    fn name(&self) -> &'static str {
        "documents"
    }

    fn load(&self, session: &mut dyn Session, context: &Context<'_>) -> Result<(), Failure> {
        load::load(session, &self.sizes, context)
    }

    fn run(&self, session: &mut dyn Session, input: &Input) -> Result<bool, Failure> {
        session.begin()?;
        let done = match input {
            Input::NewOrder { warehouse, district, customer, lines, time } => {
                new_order(session, *warehouse, *district, *customer, lines, *time)
            }
            Input::Payment { .. } => payment(session, input).map(|()| true),
            Input::OrderStatus { warehouse, district, who } => {
                order_status(session, district_key(*warehouse, *district), who).map(|()| true)
            }
            Input::Delivery { warehouse, carrier, time } => {
                delivery(session, *warehouse, *carrier, *time).map(|()| true)
            }
            Input::StockLevel { warehouse, district, threshold } => {
                stock_level(session, *warehouse, *district, *threshold).map(|()| true)
            }
        };
        match done {
            Ok(true) => session.commit().map(|()| true),
            Ok(false) => session.rollback().map(|()| false),
            Err(failure) => Err(failure),
        }
    }

    fn state(&self, session: &mut dyn Session) -> Result<State, Failure> {
        let mut state = State::default();
        for warehouse in 1..=self.sizes.warehouses {
            state.warehouses.push(number(&get(session, "warehouse", warehouse)?, "ytd")?);
        }
        for (warehouse, district) in self.sizes.districts() {
            let mut found = district_state(session, district_key(warehouse, district))?;
            found.warehouse = warehouse;
            state.districts.push(found);
        }
        Ok(state)
    }
}

fn district_state(session: &mut dyn Session, district: i64) -> Result<District, Failure> {
    let row = get(session, "district", district)?;
    let mut state = District {
        ytd: number(&row, "ytd")?,
        next: number(&row, "next")?,
        new_order_min: i64::MAX,
        ..District::default()
    };
    session.find(&of_district("orders", district), &mut |bytes| {
        let order = Document::from_reader(bytes)?;
        state.order_max = state.order_max.max(number(&order, "number")?);
        state.line_totals += number(&order, "line_count")?;
        state.lines += order.get_array("lines").map_or(0, |lines| lines.len() as i64);
        Ok(())
    })?;
    session.find(&of_district("new_order", district), &mut |bytes| {
        let order = number(&Document::from_reader(bytes)?, "number")?;
        state.new_order_max = state.new_order_max.max(order);
        state.new_order_min = state.new_order_min.min(order);
        state.new_orders += 1;
        Ok(())
    })?;
    Ok(state)
}

fn new_order(
    session: &mut dyn Session,
    warehouse: i64,
    district: i64,
    customer: i64,
    lines: &[Line],
    time: i64,
) -> Result<bool, Failure> {
    let district = district_key(warehouse, district);
    let order = number(&modify(session, "district", district, &[add("next", 1)])?, "next")?;
    let items = find(session, &any_of("item", lines.iter().map(|line| line.item)))?;
    if items.len() < lines.len() {
        return Ok(false);
    }
    let stock = order_stock(session, warehouse, lines)?;
    let mut embedded = Vec::new();
    for line in lines {
        let item = with_key(&items, line.item)?;
        let stock = with_key(&stock, stock_key(line.supplier, line.item))?;
        embedded.push(doc! {
            "item": line.item,
            "supplier": line.supplier,
            "quantity": line.quantity,
            "amount": number(item, "price")? * line.quantity,
            "dist": stock.get("dist").cloned().unwrap_or_default(),
        });
    }
    get(session, "warehouse", warehouse)?;
    get(session, "customer", key_in_district(district, customer))?;
    let id = key_in_district(district, order);
    let document = doc! {
        "_id": id,
        "number": order,
        "customer": key_in_district(district, customer),
        "entry": time,
        "carrier": Bson::Null,
        "line_count": lines.len() as i64,
        "lines": embedded,
    };
    insert(session, "orders", &document)?;
    insert(session, "new_order", &doc! { "_id": id, "number": order })?;
    Ok(true)
}

fn with_key(documents: &[Document], key: i64) -> Result<&Document, Failure> {
    let found = documents.iter().find(|one| number(one, "_id").is_ok_and(|id| id == key));
    found.ok_or_else(|| Failure::Wrong(format!("{key} is missing")))
}

/// Takes what is ordered out of stock; answers the stock as it is then, before what runs low is
/// filled up.
fn order_stock(
    session: &mut dyn Session,
    warehouse: i64,
    lines: &[Line],
) -> Result<Vec<Document>, Failure> {
    let key = |line: &Line| stock_key(line.supplier, line.item);
    let take = |line: &Line| {
        let remote = i64::from(line.supplier != warehouse);
        let numbers = [add("quantity", -line.quantity), add("ytd", line.quantity)];
        let counts = [add("orders", 1), add("remote", remote)];
        (Bson::Int64(key(line)), numbers.into_iter().chain(counts).collect())
    };
    update_each(session, "stock", &lines.iter().map(take).collect::<Vec<_>>())?;
    let stock = find(session, &any_of("stock", lines.iter().map(key)))?;
    let mut fillings = Vec::new();
    for one in &stock {
        if number(one, "quantity")? < STOCK_LEAST {
            let key = Bson::Int64(number(one, "_id")?);
            fillings.push((key, vec![add("quantity", STOCK_REFILL)]));
        }
    }
    if !fillings.is_empty() {
        update_each(session, "stock", &fillings)?;
    }
    Ok(stock)
}

/// The customer.
fn customer_of(session: &mut dyn Session, district: i64, who: &Who) -> Result<Document, Failure> {
    let name = match who {
        Who::Number(number) => {
            return get(session, "customer", key_in_district(district, *number));
        }
        Who::LastName(name) => name,
    };
    let query = Query::all("customer").equal("district", district).equal("last", name.as_str());
    let mut found = find(session, &query.sort("first", Kind::Text, Direction::Ascending))?;
    let middle = found.len().div_ceil(2).saturating_sub(1);
    if middle < found.len() {
        return Ok(found.swap_remove(middle));
    }
    Err(Failure::Wrong(format!("no customer called {name}")))
}

fn payment(session: &mut dyn Session, input: &Input) -> Result<(), Failure> {
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
    let home = district_key(*warehouse, *district);
    modify(session, "warehouse", *warehouse, &[add("ytd", *amount)])?;
    modify(session, "district", home, &[add("ytd", *amount)])?;
    let theirs = district_key(*customer_warehouse, *customer_district);
    let customer = customer_of(session, theirs, who)?;
    let key = number(&customer, "_id")?;
    let mut changes = vec![add("balance", -amount), add("ytd", *amount), add("payments", 1)];
    // A customer of bad credit has the payment noted: 2.5.2.2.
    if customer.get_str("credit").is_ok_and(|credit| credit == "BC") {
        let before = customer.get_str("data").unwrap_or_default();
        let mut after = format!("{key} {amount} {home};{before}");
        after.truncate(500);
        changes.push(set("data", after));
    }
    update(session, "customer", key, &changes)?;
    let record = doc! { "_id": *id, "customer": key, "district": home, "amount": *amount };
    insert(session, "history", &record)
}

fn order_status(session: &mut dyn Session, district: i64, who: &Who) -> Result<(), Failure> {
    let customer = number(&customer_of(session, district, who)?, "_id")?;
    let query = Query::all("orders").equal("customer", customer);
    let query = query.sort("number", Kind::Integer, Direction::Descending).limit(1);
    let found = find(session, &query)?;
    let order = found.first().ok_or_else(|| Failure::Wrong("a customer without order".into()))?;
    let lines = order.get_array("lines").map_or(0, |lines| lines.len() as i64);
    if lines == number(order, "line_count")? {
        Ok(())
    } else {
        Err(Failure::Wrong(format!("an order has {lines} lines: {order}")))
    }
}

fn delivery(
    session: &mut dyn Session,
    warehouse: i64,
    carrier: i64,
    time: i64,
) -> Result<(), Failure> {
    let mut keys = Vec::new();
    for district in 1..=DISTRICTS {
        let query = of_district("new_order", district_key(warehouse, district));
        let query = query.sort("_id", Kind::Integer, Direction::Ascending);
        if let Some(oldest) = session.remove_first(&query)? {
            keys.push(number(&Document::from_reader(&oldest[..])?, "_id")?);
        }
    }
    if keys.is_empty() {
        return Ok(());
    }
    let deliver =
        |key: &i64| (Bson::Int64(*key), vec![set("carrier", carrier), set("delivered", time)]);
    update_each(session, "orders", &keys.iter().map(deliver).collect::<Vec<_>>())?;
    let mut payments = Vec::new();
    for order in find(session, &any_of("orders", keys.iter().copied()))? {
        let mut amount = 0;
        for line in order.get_array("lines").map_err(|error| Failure::Wrong(error.to_string()))? {
            amount += line.as_document().map_or(Ok(0), |line| number(line, "amount"))?;
        }
        let customer = Bson::Int64(number(&order, "customer")?);
        payments.push((customer, vec![add("balance", amount), add("deliveries", 1)]));
    }
    update_each(session, "customer", &payments)
}

fn stock_level(
    session: &mut dyn Session,
    warehouse: i64,
    district: i64,
    threshold: i64,
) -> Result<(), Failure> {
    let district = district_key(warehouse, district);
    let next = number(&get(session, "district", district)?, "next")?;
    let (least, end) = (key_in_district(district, next - 20), key_in_district(district, next));
    let mut items = std::collections::BTreeSet::new();
    for order in find(session, &range("orders", least, end))? {
        for line in order.get_array("lines").into_iter().flatten().filter_map(Bson::as_document) {
            items.insert(number(line, "item")?);
        }
    }
    let keys = items.into_iter().map(|item| stock_key(warehouse, item));
    let query = any_of("stock", keys).filter("quantity", Comparison::Less, threshold).count();
    session.find(&query, &mut |_| Ok(()))?;
    Ok(())
}
