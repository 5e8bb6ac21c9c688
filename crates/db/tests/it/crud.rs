//! Goal: insert, update, delete and findAndModify have MongoDB's effects and answers. Method:
//! tables of small cases on a collection of a few documents.

use frond_db::{Durability, FindAndModify, FindRequest, FrondOptions, UpdateStatement};
use frond_doc::{Timestamp, Value, ValueBuf, document};
use frond_query::Code;
use frond_testkit::{SimClock, SimDisk};

use crate::support::*;

const THINGS: &str =
    "[{'_id': 1, 'a': 1, 't': ['x', 'y']}, {'_id': 2, 'a': 2}, {'_id': 3, 'a': 3}]";

#[test]
fn inserted_documents_are_found() {
    let shop = shop();
    assert_eq!(all(&shop, "things"), "[]");
    insert(&shop, "things", THINGS);
    assert_eq!(
        all(&shop, "things"),
        "[{'_id':1,'a':1,'t':['x','y']},{'_id':2,'a':2},{'_id':3,'a':3}]"
    );
    assert_eq!(find(&shop, "things", "{'a': {'$gte': 2}}"), "[{'_id':2,'a':2},{'_id':3,'a':3}]");
    assert_eq!(find(&shop, "things", "{'t': 'y', 'a': 1}"), "[{'_id':1,'a':1,'t':['x','y']}]");
}

#[test]
fn the_id_comes_first_and_is_made_where_absent() {
    let shop = shop();
    insert(&shop, "things", "[{'a': 1, '_id': 7}, {'a': 2}]");
    let found = run(&shop, "things", &request("{}")).expect("found");
    assert_eq!(text(&found[0]), "{'_id':7,'a':1}");
    let names: Vec<&str> = found[1].iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["_id", "a"]);
    assert!(matches!(found[1].get("_id"), Some(Value::ObjectId(_))));
}

#[test]
fn ordered_inserts_stop_at_the_first_error_and_unordered_ones_go_on() {
    let documents = jsons("[{'_id': 1}, {'_id': 1}, {'_id': 2}, {'_id': [1]}, {'_id': 3}]");
    for (ordered, count, positions) in [(true, 1, vec![1]), (false, 3, vec![1, 3])] {
        let shop = shop();
        let report =
            shop.insert("things", &documents, ordered, Durability::Synced).expect("a report");
        assert_eq!(report.count, count);
        let failed: Vec<usize> = report.errors.iter().map(|error| error.position).collect();
        assert_eq!(failed, positions);
        let duplicate = &report.errors[0].error;
        assert_eq!(duplicate.code, Code::DuplicateKey);
        assert_eq!(
            duplicate.message,
            "E11000 duplicate key error collection: shop.things index: _id_ dup key: { _id: 1 }"
        );
        let details = duplicate.details.as_ref().map(text);
        assert_eq!(details.as_deref(), Some("{'keyPattern':{'_id':1},'keyValue':{'_id':1}}"));
        assert_eq!(shop.count("things", &FindRequest::default()).expect("a count"), count);
    }
}

#[test]
fn inserts_of_many_batches_keep_their_positions() {
    let shop = shop();
    let mut documents: Vec<_> = (0..2_500).map(|number| document! { "_id": number }).collect();
    documents.push(document! { "_id": 2_000 });
    documents.push(document! { "_id": 2_500 });
    let report = shop.insert("things", &documents, false, Durability::Relaxed).expect("a report");
    assert_eq!(report.count, 2_501);
    assert_eq!(report.errors.len(), 1);
    assert_eq!(report.errors[0].position, 2_500);
}

/// Applies one update to [`THINGS`] and compares (matched, modified) and the documents.
fn check(statement: UpdateStatement, counts: (u64, u64), expected: &str) {
    let shop = shop();
    insert(&shop, "things", THINGS);
    let described = format!("{statement:?}");
    let report = update(&shop, "things", statement);
    assert!(report.errors.is_empty(), "{described}: {:?}", report.errors);
    assert_eq!((report.matched, report.modified), counts, "{described}");
    assert_eq!(all(&shop, "things"), expected, "{described}");
}

#[test]
fn updates() {
    let rest = "{'_id':2,'a':2},{'_id':3,'a':3}]";
    let first = "[{'_id':1,'a':1,'t':['x','y']},";
    check(
        statement("{'_id': 1}", "{'$set': {'a': 9}}"),
        (1, 1),
        &format!("[{{'_id':1,'a':9,'t':['x','y']}},{rest}"),
    );
    check(statement("{'_id': 1}", "{'$set': {'a': 1}}"), (1, 0), &format!("{first}{rest}"));
    check(statement("{'_id': 9}", "{'$set': {'a': 1}}"), (0, 0), &format!("{first}{rest}"));
    check(
        statement("{'t': 'y'}", "{'$set': {'t.$': 'z'}}"),
        (1, 1),
        &format!("[{{'_id':1,'a':1,'t':['x','z']}},{rest}"),
    );
    check(statement("{'_id': 1}", "{'b': 5}"), (1, 1), &format!("[{{'_id':1,'b':5}},{rest}"));
    let multi =
        UpdateStatement { multi: true, ..statement("{'a': {'$gt': 1}}", "{'$inc': {'a': 1}}") };
    check(multi, (2, 2), &format!("{first}{{'_id':2,'a':3}},{{'_id':3,'a':4}}]"));
    let filtered = UpdateStatement {
        array_filters: Some(value("[{'e': 'x'}]")),
        ..statement("{'_id': 1}", "{'$set': {'t.$[e]': 'w'}}")
    };
    check(filtered, (1, 1), &format!("[{{'_id':1,'a':1,'t':['w','y']}},{rest}"));
}

/// An empty timestamp stands for now, wherever a whole document is given, and so does
/// `$currentDate`; also where no client has written for long, or ever.
#[test]
fn timestamps_are_of_now() {
    let (disk, clock) = (SimDisk::new(1), SimClock::new());
    let machine = frond_testkit::machine::machine(&disk, &clock, 1);
    let frond = frond_vcs::open_on(&machine, FrondOptions::default()).expect("the disk works");
    let shop = frond.database("shop").expect("proper");
    let zero = Timestamp(0);
    let document = document! { "_id": 1_i32, "t": Value::Timestamp(zero), "sub": &document! { "t": Value::Timestamp(zero) } };
    try_insert(&shop, "things", &[document]);
    let seen = |id: i32| {
        let found = run(&shop, "things", &request(&format!("{{'_id': {id}}}"))).expect("found");
        let Some(Value::Timestamp(seen)) = found[0].get("t") else { panic!("{found:?}") };
        (seen.0, (frond.now_millis() / 1_000) as u64)
    };
    let mut last = 0;
    let mut check = |id: i32| {
        let (seen, now) = seen(id);
        assert!(last < seen, "each is another one");
        assert_eq!(seen >> 32, now);
        last = seen;
    };
    check(1);
    let found = run(&shop, "things", &request("{}")).expect("found");
    let nested = found[0].get("sub").and_then(|sub| sub.as_document()?.get("t"));
    assert_eq!(nested, Some(Value::Timestamp(zero)), "nested ones stay");
    let whole = || ValueBuf::from(document! { "t": Value::Timestamp(zero) });
    let current = || value("{'$currentDate': {'t': {'$type': 'timestamp'}}}");
    for (id, change) in [(1, whole()), (2, whole()), (1, current()), (3, current())] {
        clock.step(3_600_000_000);
        let filter = json(&format!("{{'_id': {id}}}"));
        let change =
            UpdateStatement { filter, update: change, upsert: true, ..statement("{}", "{}") };
        assert!(update(&shop, "things", change).errors.is_empty());
        check(id);
    }
}

#[test]
fn updates_that_are_wrong_change_nothing() {
    let cases = [
        (statement("{'_id': 1}", "{'$set': {'_id': 5}}"), Code::ImmutableField),
        (statement("{'_id': 1}", "{'_id': 5, 'a': 1}"), Code::ImmutableField),
        (statement("{'_id': 1}", "{'$bad': {'a': 1}}"), Code::FailedToParse),
        (statement("{'_id': 1}", "{'$inc': {'t': 1}}"), Code::TypeMismatch),
        (UpdateStatement { multi: true, ..statement("{}", "{'a': 1}") }, Code::FailedToParse),
        (
            UpdateStatement {
                hint: Some(value("'nope'")),
                ..statement("{}", "{'$set': {'a': 1}}")
            },
            Code::BadValue,
        ),
    ];
    for (statement, code) in cases {
        let shop = shop();
        insert(&shop, "things", THINGS);
        let before = all(&shop, "things");
        let described = format!("{statement:?}");
        let report = update(&shop, "things", statement);
        assert_eq!(report.errors.len(), 1, "{described}");
        assert_eq!(report.errors[0].error.code, code, "{described}");
        assert_eq!(all(&shop, "things"), before, "{described}");
    }
}

#[test]
fn upserts_insert_what_filter_and_update_say() {
    let shop = shop();
    let upsert = |filter: &str, change: &str| {
        update(&shop, "things", UpdateStatement { upsert: true, ..statement(filter, change) })
    };
    let report = upsert("{'_id': 1, 'a': {'$gt': 5}}", "{'$set': {'b': 2}}");
    assert_eq!((report.matched, report.modified), (0, 0));
    assert_eq!(report.upserted, [(0, value("1"))]);
    assert_eq!(all(&shop, "things"), "[{'_id':1,'b':2}]");
    let report = upsert("{'_id': 1}", "{'$set': {'b': 3}, '$setOnInsert': {'c': 1}}");
    assert_eq!((report.matched, report.modified, report.upserted.len()), (1, 1, 0));
    assert_eq!(all(&shop, "things"), "[{'_id':1,'b':3}]");
    let report = upsert("{'_id': 1, 'b': 4}", "{'$set': {'c': 3}}");
    assert_eq!(report.errors[0].error.code, Code::DuplicateKey);
    let report = upsert("{'x': 4}", "{'y': 3}");
    assert!(matches!(report.upserted[0].1.as_value(), Value::ObjectId(_)));
    assert_eq!(shop.count("things", &FindRequest::default()).expect("a count"), 2);
}

#[test]
fn deletes() {
    let shop = shop();
    insert(&shop, "things", THINGS);
    assert_eq!(delete(&shop, "things", "{'a': {'$lt': 3}}"), 2);
    assert_eq!(all(&shop, "things"), "[{'_id':3,'a':3}]");
    assert_eq!(delete(&shop, "things", "{'a': 17}"), 0);
    assert_eq!(delete(&shop, "nothing", "{}"), 0);
    insert(&shop, "things", "[{'_id': 1, 'a': 3}]");
    let first = frond_db::DeleteStatement {
        filter: json("{'a': 3}"),
        only_first: true,
        hint: None,
        variables: None,
        collation: None,
    };
    let report = shop.delete("things", &[first], true, Durability::Synced).expect("a report");
    assert_eq!(report.count, 1);
    assert_eq!(all(&shop, "things"), "[{'_id':3,'a':3}]");
}

pub(crate) fn modify(filter: &str, update: Option<&str>) -> FindAndModify {
    FindAndModify {
        filter: json(filter),
        sort: None,
        update: update.map(value),
        upsert: false,
        return_new: false,
        projection: None,
        array_filters: None,
        hint: None,
        variables: None,
        collation: None,
    }
}

#[test]
fn find_and_modify() {
    let shop = shop();
    insert(&shop, "things", THINGS);
    let run = |request: FindAndModify| {
        let report = shop.find_and_modify("things", &request, Durability::Synced);
        let report = report.expect("the request is right");
        let value = report.value.as_ref().map_or("null".to_owned(), text);
        (value, report.updated_existing, report.count)
    };
    let old = run(modify("{'_id': 2}", Some("{'$inc': {'a': 10}}")));
    assert_eq!(old, ("{'_id':2,'a':2}".to_owned(), true, 1));
    let new = run(FindAndModify {
        return_new: true,
        sort: Some(json("{'a': -1}")),
        projection: Some(json("{'a': 1, '_id': 0}")),
        ..modify("{}", Some("{'$inc': {'a': 10}}"))
    });
    assert_eq!(new, ("{'a':22}".to_owned(), true, 1));
    let removed = run(FindAndModify { sort: Some(json("{'_id': -1}")), ..modify("{}", None) });
    assert_eq!(removed, ("{'_id':3,'a':3}".to_owned(), false, 1));
    assert_eq!(run(modify("{'_id': 3}", None)), ("null".to_owned(), false, 0));
    let upserted = run(FindAndModify {
        upsert: true,
        return_new: true,
        ..modify("{'_id': 8}", Some("{'$set': {'a': 8}}"))
    });
    assert_eq!(upserted, ("{'_id':8,'a':8}".to_owned(), false, 1));
    let wrong = FindAndModify { upsert: true, ..modify("{}", None) };
    let error = shop.find_and_modify("things", &wrong, Durability::Synced).unwrap_err();
    assert_eq!(error.code, Code::FailedToParse);
}

#[test]
fn pipelines_variables_sorts_and_hints_in_writes() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': 5, 'b': 1}, {'_id': 2, 'a': 3, 'b': 1}]");
    let let_values = Some(json("{'wanted': 1, 'step': 10}"));
    let by_expression = "{'$expr': {'$eq': ['$b', '$$wanted']}}";
    let change = UpdateStatement {
        variables: let_values.clone(),
        sort: Some(json("{'a': 1}")),
        ..statement(by_expression, "[{'$set': {'a': {'$add': ['$a', '$$step']}}}]")
    };
    let report = update(&shop, "things", change);
    assert_eq!((report.matched, report.modified, report.errors.len()), (1, 1, 0));
    assert_eq!(all(&shop, "things"), "[{'_id':1,'a':5,'b':1},{'_id':2,'a':13,'b':1}]");
    let modify = FindAndModify {
        hint: Some(value("'_id_'")),
        variables: let_values.clone(),
        return_new: true,
        ..modify(by_expression, Some("[{'$unset': 'b'}]"))
    };
    let report = shop.find_and_modify("things", &modify, Durability::Relaxed).expect("right");
    assert_eq!(report.value.as_ref().map(text), Some("{'_id':1,'a':5}".to_owned()));
    let unhinted = FindAndModify { hint: Some(value("'nope'")), ..modify };
    let error = shop.find_and_modify("things", &unhinted, Durability::Relaxed).unwrap_err();
    assert_eq!(error.code, Code::BadValue);
    let statement = frond_db::DeleteStatement {
        filter: json(by_expression),
        only_first: false,
        hint: None,
        variables: let_values,
        collation: None,
    };
    let report = shop.delete("things", &[statement], true, Durability::Relaxed).expect("right");
    assert_eq!(report.count, 1);
    assert_eq!(all(&shop, "things"), "[{'_id':1,'a':5}]");
}
