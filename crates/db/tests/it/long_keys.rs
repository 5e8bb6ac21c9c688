//! Keys above 8 KB, which trees have cut: what is shown of them, and what must stay exact.

use frond_db::catalog::{IndexChange, IndexSpec};
use frond_db::{FindRequest, UpdateStatement};
use frond_doc::{DocumentBuf, Value, ValueBuf, document};
use frond_query::Code;

use crate::support::*;

/// Strings of 9 KB that differ in their last letter.
fn long(end: &str) -> String {
    "x".repeat(9_000) + end
}

fn spec(text: &str) -> IndexSpec {
    IndexSpec::parse(json(text).view()).expect("a proper index")
}

fn ids(found: &[DocumentBuf]) -> Vec<i64> {
    found.iter().map(|it| it.get("_id").and_then(|id| id.as_integer()).expect("one")).collect()
}

#[test]
fn long_values_are_found_sorted_and_unique() {
    let shop = shop();
    let specs = ["{'key': {'a': 1}}", "{'key': {'u': 1, 'c': 1}, 'unique': true}"].map(spec);
    shop.create_indexes("things", &specs).expect("made");
    for (id, end) in [(1, "c"), (2, "a"), (3, "d"), (4, "b")] {
        let document = document! { "_id": id, "a": long(end).as_str(), "u": long(end).as_str() };
        assert_eq!(try_insert(&shop, "things", &[document]).count, 1);
    }
    let range = document! { "$gte": long("b").as_str(), "$lt": long("d").as_str() };
    let by_range = FindRequest {
        filter: Some(document! { "a": &range }),
        sort: Some(json("{'a': 1}")),
        ..FindRequest::default()
    };
    assert_eq!(ids(&run(&shop, "things", &by_range).expect("right")), [4, 1]);
    let explained = shop.explain("things", &by_range).expect("right");
    assert_eq!(stages(&explained), "FETCH IXSCAN");
    let backwards = FindRequest { sort: Some(json("{'a': -1}")), skip: 1, ..by_range.clone() };
    assert_eq!(ids(&run(&shop, "things", &backwards).expect("right")), [4]);
    let one = FindRequest { filter: Some(document! { "u": long("d").as_str() }), ..by_range };
    assert_eq!(ids(&run(&shop, "things", &one).expect("right")), [3]);
    let again = document! { "_id": 5, "u": long("d").as_str() };
    let report = try_insert(&shop, "things", &[again]);
    let error = &report.errors[0].error;
    assert_eq!(error.code, Code::DuplicateKey);
    let value = error.details.as_ref().and_then(|details| details.get("keyValue")).expect("told");
    let stored = value.as_document().and_then(|value| value.get("u")).expect("told");
    assert_eq!(stored, Value::String(&long("d")));
}

#[test]
fn long_ids_are_found_updated_and_unique() {
    let shop = shop();
    for end in ["c", "a", "b"] {
        let document = document! { "_id": long(end).as_str(), "end": end };
        assert_eq!(try_insert(&shop, "things", &[document]).count, 1);
    }
    let by_id = |end: &str| document! { "_id": long(end).as_str() };
    let report = try_insert(&shop, "things", &[by_id("a")]);
    assert_eq!(report.errors[0].error.code, Code::DuplicateKey);
    let upsert = |end: &str| UpdateStatement {
        upsert: true,
        ..UpdateStatement::new(by_id(end), value("{'$set': {'seen': true}}"))
    };
    let reports = ["a", "z"].map(|end| update(&shop, "things", upsert(end)));
    assert_eq!(reports.map(|report| report.matched), [1, 0]);
    let sorted = |direction: i32| {
        let request = FindRequest {
            filter: Some(document! { "_id": &document! { "$gt": long("a").as_str() } }),
            sort: Some(document! { "_id": direction }),
            projection: Some(json("{'_id': 0, 'end': 1}")),
            ..FindRequest::default()
        };
        texts(&run(&shop, "things", &request).expect("right"))
    };
    assert_eq!(sorted(1), "[{'end':'b'},{'end':'c'},{}]");
    assert_eq!(sorted(-1), "[{},{'end':'c'},{'end':'b'}]");
    shop.frond().engine().checkpoint().expect("folded");
    assert_eq!(sorted(-1), "[{},{'end':'c'},{'end':'b'}]");
}

#[test]
fn min_and_max_within_what_was_cut_are_exact() {
    let shop = shop();
    shop.create_indexes("things", &[spec("{'key': {'a': 1}}")]).expect("made");
    for (id, end) in [(1, "a"), (2, "b"), (3, "c")] {
        let document = document! { "_id": id, "a": long(end).as_str() };
        assert_eq!(try_insert(&shop, "things", &[document]).count, 1);
    }
    let between = FindRequest {
        hint: Some(value("{'a': 1}")),
        min: Some(document! { "a": long("b").as_str() }),
        max: Some(document! { "a": long("c").as_str() }),
        ..FindRequest::default()
    };
    assert_eq!(ids(&run(&shop, "things", &between).expect("right")), [2]);
    for end in ["a", "b", "c"] {
        let document = document! { "_id": long(end).as_str(), "end": end };
        assert_eq!(try_insert(&shop, "ids", &[document]).count, 1);
    }
    let between = FindRequest {
        hint: Some(value("{'_id': 1}")),
        min: Some(document! { "_id": long("b").as_str() }),
        max: Some(document! { "_id": long("c").as_str() }),
        projection: Some(json("{'_id': 0}")),
        ..FindRequest::default()
    };
    assert_eq!(texts(&run(&shop, "ids", &between).expect("right")), "[{'end':'b'}]");
}

#[test]
fn a_hinted_index_is_read_in_the_order_of_its_keys() {
    let shop = shop();
    let specs = ["{'key': {'a': 1}}", "{'key': {'b': 1, 'a': -1}}"].map(spec);
    shop.create_indexes("things", &specs).expect("made");
    let ends = ["e", "b", "f", "a", "d", "c"];
    for (id, end) in (0_i32..).zip(ends) {
        let document = document! { "_id": id, "a": long(end).as_str(), "b": 1_i32, "end": end };
        assert_eq!(try_insert(&shop, "things", &[document]).count, 1);
        let by_name = document! { "_id": long(end).as_str(), "end": end };
        assert_eq!(try_insert(&shop, "ids", &[by_name]).count, 1);
    }
    let answer = |collection: &str, request: FindRequest| {
        let found = run(&shop, collection, &request).expect("right");
        let ends = found.iter().map(|it| it.get("end").and_then(|end| end.as_str()).expect("one"));
        ends.collect::<String>()
    };
    let by = |hint: &str| FindRequest { hint: Some(value(hint)), ..FindRequest::default() };
    assert_eq!(answer("things", by("{'a': 1}")), "abcdef");
    assert_eq!(answer("things", by("{'b': 1, 'a': -1}")), "fedcba");
    assert_eq!(answer("ids", by("{'_id': 1}")), "abcdef");
    let from = |path: &str, hint: &str| FindRequest {
        min: Some(json(&format!("{{'{path}': '{}'}}", long("c")))),
        skip: 1,
        limit: Some(2),
        ..by(hint)
    };
    assert_eq!(answer("things", from("a", "{'a': 1}")), "de", "pages by min and limit");
    assert_eq!(answer("ids", from("_id", "{'_id': 1}")), "de");
}

#[test]
fn an_index_with_a_long_key_reports_no_arrays_and_gives_its_keys() {
    let shop = shop();
    shop.create_indexes("things", &[spec("{'key': {'a': 1, 'b': 1}}")]).expect("made");
    let document = document! { "_id": 1, "a": long("a").as_str(), "b": 2 };
    assert_eq!(try_insert(&shop, "things", &[document]).count, 1);
    insert(&shop, "things", "[{'_id': 2, 'a': 'y', 'b': 3}]");
    let hint = Some(value("{'a': 1, 'b': 1}"));
    let request = FindRequest { hint, ..request("{}") };
    let explained = shop.explain("things", &request).expect("right");
    let explanation = text(&explained);
    assert!(explanation.contains("'isMultiKey':false"), "{explanation}");
    let keys = FindRequest { gives_keys: true, ..request };
    let keys = run(&shop, "things", &keys).expect("right");
    assert_eq!(keys[0], document! { "a": long("a").as_str(), "b": 2 });
    assert_eq!(text(&keys[1]), "{'a':'y','b':3}");
}

#[test]
fn an_index_of_long_keys_becomes_unique_if_they_are() {
    let shop = shop();
    shop.create_indexes("things", &[spec("{'key': {'a': 1}}")]).expect("made");
    for (id, end) in [(1, "a"), (2, "b"), (3, "a")] {
        let document = document! { "_id": id, "a": long(end).as_str() };
        assert_eq!(try_insert(&shop, "things", &[document]).count, 1);
    }
    let change = |change: IndexChange| shop.change_index("things", &by_name("a_1"), &change);
    let prepared = IndexChange { prepare_unique: Some(true), ..IndexChange::default() };
    let unique = IndexChange { becomes_unique: true, ..IndexChange::default() };
    change(prepared).expect("prepared");
    let again = document! { "_id": 4, "a": long("b").as_str() };
    assert_eq!(try_insert(&shop, "things", &[again]).errors[0].error.code, Code::DuplicateKey);
    let other = document! { "_id": 5, "a": long("c").as_str() };
    assert_eq!(try_insert(&shop, "things", &[other]).count, 1);
    let error = change(unique.clone()).expect_err("two have one key");
    assert_eq!(error.code, Code::CannotConvertIndexToUnique);
    assert_eq!(text(&error.details.expect("told")), "{'violations':[{'ids':[1,3]}]}");
    assert_eq!(delete(&shop, "things", "{'_id': 3}"), 1);
    change(unique).expect("they are unique now");
}

fn by_name(name: &str) -> ValueBuf {
    Value::String(name).to_buf()
}

#[test]
fn the_seventh_field_of_an_index_may_be_an_array() {
    let shop = shop();
    let key = "{'key': {'a': 1, 'b': 1, 'c': 1, 'd': 1, 'e': 1, 'f': 1, 'g': 1, 'h': 1}}";
    shop.create_indexes("things", &[spec(key)]).expect("made");
    insert(&shop, "things", "[{'_id': 1, 'a': 1, 'g': [1, 5]}, {'_id': 2, 'a': 1, 'h': [2]}]");
    shop.frond().engine().checkpoint().expect("folded");
    assert_eq!(
        find(&shop, "things", "{'a': 1, 'g': {'$gt': 4, '$lt': 2}}"),
        "[{'_id':1,'a':1,'g':[1,5]}]"
    );
}

#[test]
fn a_unique_index_of_short_keys_leads_to_long_ids() {
    let shop = shop();
    shop.create_indexes("things", &[spec("{'key': {'u': 1}, 'unique': true, 'name': 'u_1'}")])
        .expect("made");
    for number in 0..4_i32 {
        let id = long(&number.to_string());
        let document = document! { "_id": id.as_str(), "u": number };
        assert_eq!(try_insert(&shop, "things", &[document]).count, 1);
    }
    for (filter, count) in
        [("{'u': {'$gte': 1}}", 3), ("{'u': 2}", 1), ("{'u': {'$mod': [2, 0]}}", 2)]
    {
        let covered =
            FindRequest { projection: Some(json("{'u': 1, '_id': 0}")), ..request(filter) };
        assert_eq!(run(&shop, "things", &covered).expect("right").len(), count, "{filter}");
        let hinted = FindRequest { hint: Some(value("'u_1'")), ..covered };
        assert_eq!(run(&shop, "things", &hinted).expect("right").len(), count, "{filter}");
    }
    assert_eq!(delete(&shop, "things", "{'u': {'$mod': [2, 0]}}"), 2);
}
