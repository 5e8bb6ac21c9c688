//! Updates change what they name and nothing else, and never make what isn't BSON.

use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_query::expression::Variables;
use frond_query::memory::RequestMemory;
use frond_query::update::UpdateContext;
use frond_query::{Code, Collation, QueryError, Update};
use frond_store::budget::Reservation;
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};

use crate::model;

const CONTEXT: UpdateContext = UpdateContext { now_millis: 1, timestamp: 2, position: Some(0) };
const PATHS: [&str; 8] = ["a", "a.b", "a.0", "a.2.b", "a.$", "a.$[]", "a.$[].b", "a.b.a"];

/// An update whose paths all begin with `a`.
fn update(random: &mut Random) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    let operator = *random.choose(&[
        "$set",
        "$unset",
        "$push",
        "$addToSet",
        "$pull",
        "$min",
        "$max",
        "$inc",
        "$mul",
        "$pop",
        "$setOnInsert",
        "$bit",
        "$pullAll",
        "$currentDate",
    ]);
    out.begin_document(operator);
    let path = random.choose(&PATHS);
    match operator {
        "$inc" | "$mul" => out.append(path, Value::Int32(random.below(3) as i32)),
        "$pop" => out.append(path, Value::Int32(1)),
        "$bit" => out.begin_document(path).append("or", Value::Int32(6)).end(),
        "$currentDate" => out.append(path, Value::Boolean(true)),
        "$pullAll" => out.begin_array(path).push(Value::Int32(1)).end(),
        _ => {
            model::value(random, 2).append(&mut out, path);
            &mut out
        }
    };
    out.end();
    out.build()
}

fn other_fields(document: &DocumentBuf) -> Vec<(String, Vec<u8>)> {
    document
        .view()
        .elements()
        .filter(|element| element.name != b"a")
        .map(|element| (element.name().expect("UTF-8").to_owned(), element.value.to_vec()))
        .collect()
}

#[test]
fn other_fields_stay_byte_for_byte() {
    let mut changed = 0;
    for_seeds(8000, |mut random| {
        let before = model::to_bson(&model::document(&mut random, 3), 1);
        let bson = update(&mut random);
        let Ok(update) = Update::parse(Value::from(&bson), None) else { return };
        let Ok(Some(after)) = update.apply(before.view(), &CONTEXT) else { return };
        changed += 1;
        DocumentBuf::validated(after.clone().into_bytes()).expect("an update makes BSON");
        assert_eq!(other_fields(&before), other_fields(&after), "{bson:?} {before:?}");
        assert_ne!(before, after);
    });
    assert_met("updates that change something", changed, 1_000);
}

#[test]
fn setting_twice_changes_once() {
    for_seeds(3000, |mut random| {
        let before = model::to_bson(&model::document(&mut random, 3), 1);
        let mut bson = DocumentBuilder::new();
        let operator = *random.choose(&["$set", "$unset", "$min", "$max", "$addToSet", "$pull"]);
        bson.begin_document(operator);
        model::value(&mut random, 2).append(&mut bson, random.choose::<&str>(&PATHS));
        bson.end();
        let bson = bson.build();
        let Ok(update) = Update::parse(Value::from(&bson), None) else { return };
        let Ok(Some(after)) = update.apply(before.view(), &CONTEXT) else { return };
        assert_eq!(update.apply(after.view(), &CONTEXT), Ok(None), "{bson:?} {before:?} {after:?}");
    });
}

/// An operator on `a` with these operands.
fn on_a(operator: &str, operands: &[ValueBuf]) -> Update {
    let mut values = DocumentBuilder::new();
    values.begin_array("$each");
    operands.iter().for_each(|value| {
        values.push(value.as_value());
    });
    values.end();
    let values = values.build();
    let operand = match operator {
        "$pullAll" => values.get("$each").expect("it is there"),
        _ => Value::from(&values),
    };
    let mut update = DocumentBuilder::new();
    update.begin_document(operator).append("a", operand).end();
    Update::parse(Value::from(&update.build()), None).expect("an update")
}

fn array_of(values: &[ValueBuf]) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.begin_array("a");
    values.iter().for_each(|value| {
        out.push(value.as_value());
    });
    out.end();
    out.build()
}

/// Values some of which are equal by MongoDB's rules and not by their bytes.
fn alike(random: &mut Random) -> ValueBuf {
    let nested = |fields: &[(&str, Value<'_>)]| {
        let mut out = DocumentBuilder::new();
        fields.iter().for_each(|(name, value)| {
            out.append(name, *value);
        });
        out.build()
    };
    match random.below(14) {
        0 => Value::Int32(random.below(3) as i32).to_buf(),
        1 => Value::Int64(random.below(3) as i64).to_buf(),
        2 => Value::Double(random.below(3) as f64).to_buf(),
        3 => Value::Decimal128(frond_doc::decimal::from_i64(1)).to_buf(),
        4 => Value::Double(-0.0).to_buf(),
        5 => Value::Double(f64::NAN).to_buf(),
        6 => Value::Double(-f64::NAN).to_buf(),
        7 => Value::Null.to_buf(),
        8 => Value::String(random.choose::<&str>(&["a", "A", "á"])).to_buf(),
        9 => Value::from(&nested(&[("x", Value::Int32(1)), ("y", Value::Int32(2))])).to_buf(),
        10 => Value::from(&nested(&[("y", Value::Int32(2)), ("x", Value::Double(1.0))])).to_buf(),
        11 => Value::from(&nested(&[("x", Value::Double(1.0)), ("y", Value::Int64(2))])).to_buf(),
        12 => Value::from(&nested(&[])).to_buf(),
        _ => Value::Boolean(random.below(2) == 0).to_buf(),
    }
}

/// `$addToSet` and `$pullAll` find by searching the same as by comparing each with each, also under
/// a collation.
#[test]
fn sets_of_values_are_as_compared_one_by_one() {
    let specification = frond_doc::extended_json::parse(r#"{"locale": "en", "strength": 1}"#);
    let collation = Collation::parse(specification.expect("JSON").view()).expect("a collation");
    for_seeds(3000, |mut random| {
        let some = |random: &mut Random| -> Vec<ValueBuf> {
            (0..random.below(12)).map(|_| alike(random)).collect()
        };
        let (before, values) = (some(&mut random), some(&mut random));
        let collation = if random.below(2) == 0 { Collation::SIMPLE } else { collation.clone() };
        let is_in = |values: &[ValueBuf], value: &ValueBuf| {
            values.iter().any(|known| collation.equal(known.as_value(), value.as_value()))
        };
        let mut added = before.clone();
        for value in &values {
            if !is_in(&added, value) {
                added.push(value.clone());
            }
        }
        let pulled: Vec<ValueBuf> =
            before.iter().filter(|value| !is_in(&values, value)).cloned().collect();
        for (operator, expected) in [("$addToSet", added), ("$pullAll", pulled)] {
            let update = on_a(operator, &values).with_collation(&collation);
            let document = array_of(&before);
            let after = update.apply(document.view(), &CONTEXT).expect("it can be applied");
            let after = after.unwrap_or(document);
            assert_eq!(after, array_of(&expected), "{operator} {values:?} {before:?}");
        }
    });
}

/// A hundred thousand values and an array of as many: compared one by one it took minutes.
#[test]
fn large_sets_of_values_take_no_minutes() {
    let numbers = |from: i32| -> Vec<ValueBuf> {
        (from..from + 100_000).map(|number| Value::Int32(number).to_buf()).collect()
    };
    let before = array_of(&numbers(0));
    let count = |update: Update| {
        let after = update.apply(before.view(), &CONTEXT).expect("it can be applied");
        let after = after.expect("it changes something");
        after.get("a").and_then(|array| array.as_array()).expect("an array").iter().count()
    };
    let begun = std::time::Instant::now();
    assert_eq!(count(on_a("$addToSet", &numbers(50_000))), 150_000);
    assert_eq!(count(on_a("$pullAll", &numbers(50_000))), 50_000);
    // A debug build takes half a second.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// Every operator on arrays asks whether to go on, and what it makes of little is charged.
#[test]
fn operators_on_arrays_stop_on_request() {
    let numbers: Vec<ValueBuf> = (0..9_000).map(|number| Value::Int32(number).to_buf()).collect();
    let before = array_of(&numbers);
    let stop = || Err(QueryError::new(Code::MaxTimeMSExpired, "it is time"));
    let bound = |text: &str, memory: RequestMemory| {
        let update = frond_doc::extended_json::parse(text).expect("JSON");
        let filters = update.get("filters").and_then(|filters| filters.as_array());
        let mut parsed = Update::parse(update.get("u").expect("it is there"), filters).expect(text);
        let variables = Variables::default().with_memory(memory);
        parsed.bind(&variables, None).expect("nothing is wrong");
        parsed.apply(before.view(), &CONTEXT).map_err(|error| error.code)
    };
    for text in [
        r#"{"u": {"$push": {"a": {"$each": [1], "$sort": -1}}}}"#,
        r#"{"u": {"$push": {"a": 1}}}"#,
        r#"{"u": {"$addToSet": {"a": -1}}}"#,
        r#"{"u": {"$pull": {"a": {"$in": [1, 2]}}}}"#,
        r#"{"u": {"$pull": {"a": {"x": 1}}}}"#,
        r#"{"u": {"$pullAll": {"a": [1, 2]}}}"#,
        r#"{"u": {"$pop": {"a": 1}}}"#,
        r#"{"u": {"$inc": {"a.$[]": 1}}}"#,
        r#"{"u": {"$inc": {"a.$[x]": 1}}, "filters": [{"x": 7}]}"#,
        r#"{"u": {"$set": {"a.100000": 1}}}"#,
    ] {
        let memory = RequestMemory::new(Reservation::new(1 << 30, None), Some(Arc::new(stop)));
        assert_eq!(bound(text, memory), Err(Code::MaxTimeMSExpired), "{text}");
        let memory = RequestMemory::new(Reservation::new(100, None), None);
        assert_eq!(bound(text, memory), Err(Code::ExceededMemoryLimit), "{text}");
    }
}
