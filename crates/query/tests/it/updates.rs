//! Updates change what they name and nothing else, and never make what isn't BSON.

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::Update;
use frond_query::update::UpdateContext;
use frond_testkit::Random;
use frond_testkit::random::for_seeds;

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
    assert!(changed > 1000 || changed <= 1, "only {changed} updates changed something");
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
