//! Goal: small rules of MongoDB that applications meet: each was answered otherwise once. Method:
//! the least request that shows it, and its neighbours.

use std::sync::atomic::{AtomicUsize, Ordering};

use frond_db::catalog::{IndexChange, IndexSpec, UnknownOptions};
use frond_db::inside::{LatchMode, Outcome, Scope};
use frond_db::{AggregateRequest, Database, Durability, Error, FindRequest, Interrupt};
use frond_doc::{DocumentBuf, Value};
use frond_query::Code;

use crate::support::*;

fn index(database: &Database, text: &str) -> Result<(), Error> {
    let spec = IndexSpec::parse(json(text).view())?;
    database.create_indexes("things", &[spec]).map(drop)
}

fn code(result: Result<impl Sized, Error>) -> i32 {
    result.err().map_or(0, |error| error.code.number())
}

/// Returns the documents that a find by an index gives, and those of one that reads all documents.
fn both_ways(database: &Database, filter: &str, hint: &str) -> [String; 2] {
    [hint, "{'$natural': 1}"].map(|hint| {
        let request = FindRequest {
            hint: Some(value(hint)),
            sort: None,
            projection: Some(json("{'_id': 1}")),
            ..request(filter)
        };
        let mut found = run(database, "things", &request).expect("the request is right");
        found.sort_by_key(|document| document.get("_id").and_then(|id| id.as_integer()));
        texts(&found)
    })
}

#[test]
fn arrays_of_arrays_are_found_by_an_index_as_without_one() {
    let shop = shop();
    insert(
        &shop,
        "things",
        "[{'_id': 1, 'a': [[6, 7]]}, {'_id': 2, 'a': [6]}, {'_id': 3, 'a': [[1], [9, [6]]]},
          {'_id': 4, 'a': [[{'b': 1}], {'b': [2]}]}, {'_id': 5, 'a': 6}, {'_id': 6, 'a': null},
          {'_id': 7}, {'_id': 8, 'a': []}, {'_id': 9, 'a': [null, [null]]}, {'_id': 10, 'a': [[]]}]",
    );
    for key in ["{'a': 1}", "{'a.b': -1}", "{'a.0': 1}"] {
        index(&shop, &format!("{{'key': {key}}}")).expect("made");
        for filter in [
            "{'a': {'$elemMatch': {'$elemMatch': {'$gt': 5}}}}",
            "{'a': {'$elemMatch': {'$elemMatch': {'$elemMatch': {'$eq': 6}}}}}",
            "{'a': {'$elemMatch': {'$elemMatch': {'$eq': null}}}}",
            "{'a': {'$elemMatch': {'$gt': 5, '$elemMatch': {'$lt': 9}}}}",
            "{'a': {'$elemMatch': {'$not': {'$elemMatch': {'$gt': 5}}}}}",
            "{'a': {'$elemMatch': {'$elemMatch': {'b': 1}}}}",
            "{'a': {'$elemMatch': {'$eq': null}}}",
            "{'a': {'$not': {'$elemMatch': {'$eq': null}}}}",
            "{'a': {'$not': {'$elemMatch': {'$in': [null]}}}}",
            "{'a': {'$not': {'$elemMatch': {'$gt': 5}}}}",
            "{'a': {'$elemMatch': {'$ne': null}}}",
            "{'a': {'$elemMatch': {'b': null}}}",
            "{'a': {'$elemMatch': {'0': {'$gte': 1}}}}",
            "{'a.b': null}",
            "{'a.b': {'$ne': null}}",
            "{'a.b': {'$exists': false}}",
            "{'a.0': {'$elemMatch': {'$gt': 5}}}",
        ] {
            let [by_index, by_scan] = both_ways(&shop, filter, key);
            assert_eq!(by_index, by_scan, "{key} {filter}");
        }
    }
}

#[test]
fn sparse_indexes_have_no_entry_below_an_empty_array() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': []}, {'_id': 2, 'a': [{'b': 3}]}, {'_id': 3}]");
    index(&shop, "{'key': {'a.b': 1}, 'sparse': true, 'unique': true}").expect("made");
    insert(&shop, "things", "[{'_id': 4, 'a': []}]");
    let request = FindRequest { hint: Some(value("'a.b_1'")), ..request("{}") };
    let found = run(&shop, "things", &request).expect("found");
    assert_eq!(texts(&found), "[{'_id':2,'a':[{'b':3}]}]");
    let sorted = FindRequest { sort: Some(json("{'a.b': 1, '_id': 1}")), ..FindRequest::default() };
    let found = run(&shop, "things", &sorted).expect("found");
    let ids: Vec<Option<i64>> =
        found.iter().map(|document| document.get("_id").and_then(|id| id.as_integer())).collect();
    assert_eq!(ids, [Some(1), Some(3), Some(4), Some(2)]);
}

#[test]
fn a_key_that_several_indexes_have_names_none() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': 1}]");
    index(&shop, "{'key': {'a': 1}}").expect("made");
    let hinted = |hint: &str| {
        let request = FindRequest { hint: Some(value(hint)), ..request("{'a': 1}") };
        code(run(&shop, "things", &request))
    };
    let hide = IndexChange { hidden: Some(true), ..IndexChange::default() };
    let change =
        |key: &str, change: &IndexChange| code(shop.change_index("things", &value(key), change));
    assert_eq!(hinted("{'a': 1}"), 0);
    index(&shop, "{'key': {'a': 1}, 'name': 'other', 'collation': {'locale': 'de'}}")
        .expect("made");
    assert_eq!([hinted("{'a': 1}"), hinted("'a_1'"), hinted("'other'")], [27, 0, 0]);
    assert_eq!(hinted("{'a': -1}"), 2);
    assert_eq!(change("{'a': 1}", &hide), 181);
    assert_eq!(change("'other'", &hide), 0);
    // An index that is hidden can't be named by a hint.
    assert_eq!(hinted("{'a': 1}"), 0);
}

#[test]
fn indexes_are_the_same_in_other_words() {
    let shop = shop();
    shop.create_collection("things", json("{'collation': {'locale': 'de'}}").view()).expect("made");
    for text in [
        "{'key': {'a': 1}}",
        "{'key': {'b': 1}, 'collation': {'locale': 'simple'}}",
        "{'key': {'c': 1}, 'partialFilterExpression': {'d': 5, 'e': {'$gt': 1}}}",
        "{'key': {'f.$id': 1, 'f.$ref': -1, 'f.$db': 1}, 'background': true}",
    ] {
        let spec = IndexSpec::parse(json(text).view()).expect("a proper index");
        for (time, count) in [("first", 1), ("second", 0)] {
            let made = shop.create_indexes("things", std::slice::from_ref(&spec)).expect(text);
            assert_eq!(made.after - made.before, count, "{text}, the {time} time");
        }
    }
    let other = "{'key': {'c': 1},
        'partialFilterExpression': {'$and': [{'e': {'$gt': 1}}, {'d': {'$eq': 5}}]}}";
    index(&shop, other).expect("it is there already");
    let more = "{'key': {'c': 1}, 'partialFilterExpression': {'d': 5, 'e': {'$gt': 2}}}";
    assert_eq!(code(index(&shop, more)), 86);
    let described = texts(&shop.describe_indexes("things").expect("told"));
    assert!(described.contains("'background':true"), "{described}");
    assert_eq!(code(index(&shop, "{'key': {'a.$other': 1}}")), 67);
    let odd = json("{'key': {'z': 1}, 'fast': true}");
    assert_eq!(code(IndexSpec::parse(odd.view())), 197);
    let spec = IndexSpec::parse_with(odd.view(), UnknownOptions::Ignored).expect("taken");
    assert_eq!(spec, IndexSpec::parse(json("{'key': {'z': 1}}").view()).expect("taken"));
    for (option, expected) in [
        ("'unique': true", 197),
        ("'sparse': false", 197),
        ("'background': true", 197),
        ("'fast': 1", 197),
        ("'hidden': true", 2),
        ("'collation': {'locale': 'simple'}", 0),
        ("'v': 2", 0),
    ] {
        let spec = json(&format!("{{'key': {{'_id': 1}}, {option}}}"));
        let found = IndexSpec::parse(spec.view()).map_or_else(|error| error.code.number(), |_| 0);
        assert_eq!(found, expected, "{option}");
    }
}

#[test]
fn hinted_indexes_are_scanned_whole() {
    let shop = shop();
    insert(
        &shop,
        "things",
        "[{'_id': 1, 'a': 1, 'b': 9}, {'_id': 2, 'a': 2}, {'_id': 3, 'p': [1, 2], 'a': 3}]",
    );
    index(&shop, "{'key': {'a': 1}, 'partialFilterExpression': {'b': {'$gt': 5}}}").expect("made");
    index(&shop, "{'key': {'p': '2dsphere'}}").expect("made");
    for (hint, filter, expected) in [
        ("'a_1'", "{}", "[{'_id':1}]"),
        ("'a_1'", "{'a': {'$gte': 2}}", "[]"),
        ("'p_2dsphere'", "{'a': {'$gte': 1}}", "[{'_id':3}]"),
    ] {
        let request = FindRequest {
            hint: Some(value(hint)),
            projection: Some(json("{'_id': 1}")),
            ..request(filter)
        };
        let found = run(&shop, "things", &request).expect("found");
        assert_eq!(texts(&found), expected, "{hint} {filter}");
    }
}

#[test]
fn converting_to_capped_keeps_the_documents() {
    let shop = shop();
    let options =
        "{'collation': {'locale': 'de', 'strength': 1}, 'validator': {'a': {'$gt': 'b'}}}";
    shop.create_collection("things", json("{}").view()).expect("made");
    insert(&shop, "things", "[{'_id': 1, 'a': 'B'}]");
    shop.drop_collection("things").expect("dropped");
    shop.create_collection("things", json(options).view()).expect("made");
    insert(&shop, "things", "[{'_id': 1, 'a': 'C'}]");
    for (from, to) in [("things", "copy"), ("things", "things")] {
        shop.copy_capped(from, to, 4096).expect("made");
        assert_eq!(find(&shop, to, "{'a': 'c'}"), "[{'_id':1,'a':'C'}]", "{to}");
        let refused = try_insert(&shop, to, &[json("{'_id': 2, 'a': 'a'}")]);
        assert_eq!(refused.errors.len(), 1, "{to}");
    }
}

#[test]
fn an_interrupted_conversion_to_capped_changes_nothing() {
    let shop = shop();
    let documents: Vec<String> = (0..20).map(|id| format!("{{'_id': {id}}}")).collect();
    insert(&shop, "things", &format!("[{}]", documents.join(", ")));
    // While the documents are read, and while they are written.
    for checks_max in [5, 25, 1000] {
        let checks = AtomicUsize::new(0);
        let stopped = Database::clone(&shop).interruptible(Interrupt::new(move || {
            match checks.fetch_add(1, Ordering::Relaxed) < checks_max {
                true => Ok(()),
                false => {
                    Err(Error::invalid(Code::MaxTimeMSExpired, "operation exceeded time limit"))
                }
            }
        }));
        let converted = stopped.copy_capped("things", "things", 4096);
        if checks_max < 1000 {
            assert_eq!(code(converted), 50, "{checks_max}");
            let options = shop.list_collections().expect("a listing").remove(0).options;
            assert_eq!(options.get("capped"), None, "{checks_max}");
            assert_eq!(run(&shop, "things", &request("{}")).expect("a find").len(), 20);
        } else {
            converted.expect("it was let go on");
        }
    }
}

/// Whatever a command of versions loses to, it ends when it is interrupted.
#[test]
fn repeated_conflicts_can_be_interrupted() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1}]");
    let tries = std::sync::Arc::new(AtomicUsize::new(0));
    let tried = std::sync::Arc::clone(&tries);
    let stopped = Database::clone(&shop).interruptible(Interrupt::new(move || {
        match tried.load(Ordering::Relaxed) < 3 {
            true => Ok(()),
            false => Err(Error::invalid(Code::Interrupted, "operation was interrupted")),
        }
    }));
    let scope = Scope::collection(shop.repository_name(), "main", "things");
    let lost = stopped.transact_alone(scope, LatchMode::Writer, Durability::Relaxed, |_| {
        tries.fetch_add(1, Ordering::Relaxed);
        Err::<Outcome<()>, Error>(Error::write_conflict())
    });
    assert_eq!((code(lost), tries.load(Ordering::Relaxed)), (11601, 3));
}

fn merge(database: &Database, source: &str, into: &str) -> Result<(), Error> {
    let pipeline = format!("[{{'$documents': {source}}}, {{'$merge': {into}}}]");
    aggregate(database, None, &pipeline).map(drop)
}

#[test]
fn a_match_keeps_its_id() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'k': 'x', 'a': 1}]");
    index(&shop, "{'key': {'k': 1}, 'unique': true}").expect("made");
    for (mode, expected) in [
        ("'merge'", "[{'_id':1,'k':'x','a':1,'b':2}]"),
        (
            "[{'$set': {'b': '$$new.b', 'i': {'$type': '$$new._id'}}}]",
            "[{'_id':1,'k':'x','a':1,'b':2,'i':'missing'}]",
        ),
        ("'replace'", "[{'_id':1,'k':'x','b':2}]"),
        ("'keepExisting'", "[{'_id':1,'k':'x','b':2}]"),
    ] {
        let into = format!("{{'into': 'things', 'on': 'k', 'whenMatched': {mode}}}");
        merge(&shop, "[{'k': 'x', 'b': 2}]", &into).expect(mode);
        assert_eq!(all(&shop, "things"), expected, "{mode}");
    }
    let into = "{'into': 'things', 'on': 'k'}";
    assert_eq!(code(merge(&shop, "[{'_id': 2, 'k': 'x'}]", into)), 66);
    index(&shop, "{'key': {'a.b': 1}, 'unique': true, 'sparse': true}").expect("made");
    for (on, source, expected) in [
        ("k", "{}", 51132),
        ("k", "{'k': null}", 51132),
        ("k", "{'k': ['x']}", 51185),
        ("a.b", "{'a': [{'b': 1}]}", 51185),
        ("a.b", "{'a': {'b': []}}", 51185),
        ("a.b", "{'a': 1}", 51132),
        ("_id", "{'_id': {'x': 1}, 'k': 'z', 'a': {'b': 7}}", 0),
    ] {
        let into = format!("{{'into': 'things', 'on': '{on}'}}");
        let merged = merge(&shop, &format!("[{source}]"), &into);
        let found = merged.err().map_or(0, |error| error.code.number());
        assert_eq!(found, expected, "{on} {source}");
    }
    merge(&shop, "[{'k': 'y'}]", into).expect("merged");
    assert_eq!(
        find(&shop, "things", "{'k': 'y', '_id': {'$type': 'objectId'}}").matches('k').count(),
        1
    );
}

#[test]
fn a_merge_writes_what_it_can() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 2, 'u': 5}]");
    index(&shop, "{'key': {'u': 1}, 'unique': true, 'sparse': true}").expect("made");
    let source = "[{'_id': 1}, {'_id': 2}, {'_id': 3, 'u': 5}, {'_id': 4}]";
    let error = merge(&shop, source, "{'into': 'things', 'whenMatched': 'fail'}").unwrap_err();
    assert_eq!(error.code.number(), 11000);
    let details = error.details.expect("it tells which");
    assert_eq!(text(&details), "{'keyPattern':{'_id':1},'keyValue':{'_id':2}}");
    assert_eq!(all(&shop, "things"), "[{'_id':1},{'_id':2,'u':5},{'_id':4}]");
    // A pipeline is read when there is something to do.
    let late = "{'into': 'things', 'whenMatched': [{'$sort': {'a': 1}}]}";
    assert_eq!(code(merge(&shop, "[{'_id': 1}]", late)), 72);
    let empty = format!("[{{'$match': {{'_id': 99}}}}, {{'$merge': {late}}}]");
    assert!(aggregate(&shop, Some("things"), &empty).is_ok());
}

#[test]
fn views_read_views_of_their_own_collation() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': 1}]");
    let make = |name: &str, options: &str| code(shop.create_collection(name, json(options).view()));
    let french = "'collation': {'locale': 'fr'}";
    assert_eq!(make("french", &format!("{{'viewOn': 'things', {french}}}")), 0);
    assert_eq!(make("plain", "{'viewOn': 'french'}"), 167);
    assert_eq!(make("other", "{'viewOn': 'french', 'collation': {'locale': 'de'}}"), 167);
    let inner = "[{'$lookup': {'from': 'french', 'as': 'o', 'pipeline': []}}]";
    assert_eq!(make("plain", &format!("{{'viewOn': 'things', 'pipeline': {inner}}}")), 167);
    assert_eq!(make("same", &format!("{{'viewOn': 'french', {french}}}")), 0);
    assert_eq!(make("series", "{'timeseries': {'timeField': 't'}}"), 0);
    assert_eq!(make("of_series", &format!("{{'viewOn': 'series', {french}}}")), 167);
    assert_eq!(make("of_series", "{'viewOn': 'series'}"), 0);
    let changed = json("{'viewOn': 'series', 'pipeline': []}");
    assert_eq!(code(shop.change_collection("french", changed.view())), 167);
}

#[test]
fn views_never_read_themselves() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': 1}]");
    let view = |name: &str, on: &str, pipeline: &str| {
        let options = json(&format!("{{'viewOn': '{on}', 'pipeline': {pipeline}}}"));
        code(shop.create_collection(name, options.view()))
    };
    assert_eq!(view("one", "two", "[]"), 0);
    assert_eq!(view("two", "one", "[]"), 5);
    assert_eq!(view("own", "own", "[]"), 5);
    let inner = "[{'$facet': {'x': [{'$lookup': {'from': 'one', 'as': 'o', 'pipeline': []}}]}}]";
    assert_eq!(view("two", "things", inner), 5);
    assert_eq!(view("two", "things", "[{'$unionWith': 'one'}]"), 5);
    assert_eq!(view("two", "things", "[{'$changeStream': {}}]"), 167);
    assert_eq!(view("two", "things", "[{'$unionWith': {'coll': 'things'}}]"), 0);
    let changes = json("{'viewOn': 'one', 'pipeline': []}");
    assert_eq!(code(shop.change_collection("two", changes.view())), 5);
    assert_eq!(find(&shop, "one", "{}"), "[{'_id':1,'a':1},{'_id':1,'a':1}]");
}

#[test]
fn the_nearest_are_found_in_pipelines_within_others() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'p': [1, 1]}, {'_id': 2, 'p': [0, 0]}]");
    index(&shop, "{'key': {'p': '2dsphere'}}").expect("made");
    let near =
        "{'$geoNear': {'near': {'type': 'Point', 'coordinates': [0, 0]}, 'distanceField': 'd'}}";
    let ids = |documents: Vec<DocumentBuf>| texts(&documents);
    for (pipeline, expected) in [
        (format!("[{{'$match': {{}}}}, {near}, {{'$project': {{'_id': 1}}}}]"), "[{'_id':2},{'_id':1}]"),
        (
            format!("[{{'$limit': 1}}, {{'$lookup': {{'from': 'things', 'as': 'n', 'pipeline': [{near}]}}}},
                      {{'$project': {{'n': '$n._id'}}}}]"),
            "[{'_id':1,'n':[2,1]}]",
        ),
        (
            format!("[{{'$match': {{'_id': 9}}}}, {{'$unionWith': {{'coll': 'things', 'pipeline': [{near}]}}}},
                      {{'$project': {{'_id': 1}}}}]"),
            "[{'_id':2},{'_id':1}]",
        ),
    ] {
        let found = aggregate(&shop, Some("things"), &pipeline);
        assert_eq!(ids(found.expect(&pipeline)), expected, "{pipeline}");
    }
    for pipeline in
        [format!("[{{'$match': {{'_id': 1}}}}, {near}]"), format!("[{{'$limit': 5}}, {near}]")]
    {
        assert_eq!(code(aggregate(&shop, Some("things"), &pipeline)), 40602, "{pipeline}");
    }
}

/// A stage that must come first in a pipeline may stand first in a view, and over a view that
/// changes nothing: MongoDB puts a view's stages before the request's.
#[test]
fn the_nearest_and_texts_are_found_in_views() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'p': [1, 1], 't': 'cat'}, {'_id': 2, 'p': [0, 0]}]");
    index(&shop, "{'key': {'p': '2dsphere'}}").expect("made");
    index(&shop, "{'key': {'t': 'text'}}").expect("made");
    let view = |name: &str, on: &str, pipeline: &str| {
        let options = json(&format!("{{'viewOn': '{on}', 'pipeline': [{pipeline}]}}"));
        shop.create_collection(name, options.view()).expect("a view");
    };
    let near =
        "{'$geoNear': {'near': {'type': 'Point', 'coordinates': [0, 0]}, 'distanceField': 'd'}}";
    view("bare", "things", "");
    view("barer", "bare", "{'$match': {}}");
    view("nearest", "bare", near);
    view("some", "things", "{'$match': {'_id': {'$gt': 0}}}");
    let text = "{'$match': {'$text': {'$search': 'cat'}}}";
    let ids = |collection: &str, pipeline: &str| {
        let pipeline = format!("[{pipeline} {{'$project': {{'_id': 1}}}}]");
        aggregate(&shop, Some(collection), &pipeline).map(|found| texts(&found))
    };
    for (collection, pipeline, expected) in [
        ("bare", format!("{near}, "), "[{'_id':2},{'_id':1}]"),
        ("barer", format!("{near}, "), "[{'_id':2},{'_id':1}]"),
        ("nearest", String::new(), "[{'_id':2},{'_id':1}]"),
        ("nearest", "{'$match': {'_id': 1}}, ".to_owned(), "[{'_id':1}]"),
        ("nearest", "{'$match': {'d': {'$lt': 1}}}, ".to_owned(), "[{'_id':2}]"),
        ("barer", format!("{text}, "), "[{'_id':1}]"),
    ] {
        assert_eq!(ids(collection, &pipeline).expect(&pipeline), expected, "{collection}");
    }
    let found = run(&shop, "barer", &request("{'$text': {'$search': 'cat'}}")).expect("a find");
    assert_eq!(found.len(), 1);
    assert_eq!(code(ids("some", &format!("{near}, "))), 40602);
    assert_eq!(code(ids("nearest", &format!("{near}, "))), 40602);
    assert_eq!(code(ids("some", &format!("{text}, "))), 17313);
}

/// Random values in a `$lookup`'s stages are drawn for each document, at any depth.
#[test]
fn random_values_are_drawn_for_each_document() {
    let shop = shop();
    let documents: Vec<String> = (0..40).map(|id| format!("{{'_id': {id}}}")).collect();
    insert(&shop, "things", &format!("[{}]", documents.join(",")));
    let rand = "{'$set': {'r': {'$rand': {}}}}";
    for pipeline in [
        format!("{{'$limit': 1}}, {rand}"),
        "{'$sample': {'size': 3}}".to_owned(),
        "{'$match': {'$sampleRate': 0.5}}".to_owned(),
        "{'$match': {'$expr': {'$lt': [{'$rand': {}}, 0.5]}}}".to_owned(),
        format!("{{'$facet': {{'f': [{{'$limit': 1}}, {rand}]}}}}"),
        format!("{{'$limit': 1}}, {{'$unionWith': {{'coll': 'things', 'pipeline': [{rand}]}}}}"),
        format!(
            "{{'$limit': 1}}, {{'$lookup': {{'from': 'things', 'as': 'n', 'pipeline': [{rand}]}}}}"
        ),
    ] {
        let lookup = format!(
            "[{{'$lookup': {{'from': 'things', 'as': 'j', 'pipeline': [{pipeline}]}}}},
              {{'$group': {{'_id': '$j'}}}}, {{'$count': 'n'}}]"
        );
        let found = aggregate(&shop, Some("things"), &lookup).expect(&pipeline);
        let count = found[0].get("n").and_then(|count| count.as_integer());
        assert!(count.is_some_and(|count| 1 < count), "{pipeline}: {found:?}");
    }
}

#[test]
fn few_documents_are_found_by_an_index() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': 1}, {'_id': 2, 'a': 1}, {'_id': 3, 'a': 2}]");
    index(&shop, "{'key': {'a': 1}}").expect("made");
    for (filter, expected) in [
        ("{'a': 1}", "FETCH IXSCAN"),
        ("{'a': {'$gte': 0}}", "FETCH IXSCAN"),
        ("{'b': 1}", "COLLSCAN"),
    ] {
        let explained = shop.explain("things", &request(filter)).expect("told");
        assert_eq!(stages(&explained), expected, "{filter}");
    }
}

#[test]
fn distinct_values_are_in_order() {
    let shop = shop();
    insert(
        &shop,
        "things",
        "[{'_id': 1, 'a': [3, 'x']}, {'_id': 2, 'a': 1}, {'_id': 3, 'a': 2.5}]",
    );
    for indexed in [false, true] {
        if indexed {
            index(&shop, "{'key': {'a': -1}}").expect("made");
        }
        let found = shop.distinct("things", "a", &request("{}")).expect("found");
        let shown: Vec<String> =
            found.iter().map(|value| frond_query::text::value(value.as_value())).collect();
        assert_eq!(shown, ["1", "2.5", "3.0", "\"x\""].map(|text| text.replace("3.0", "3")));
    }
}

#[test]
fn old_binaries_come_back_as_they_were() {
    let shop = shop();
    // `b: BinData(2, ...)` whose inner length is 9, and there is one byte behind it.
    let bytes = b"\x1b\0\0\0\x10_id\0\x01\0\0\0\x05b\0\x05\0\0\0\x02\x09\0\0\0x\0";
    let document = DocumentBuf::validated(bytes.to_vec().into()).expect("it is BSON");
    assert_eq!(try_insert(&shop, "things", std::slice::from_ref(&document)).count, 1);
    let found = run(&shop, "things", &request("{}")).expect("found");
    assert_eq!(found, [document]);
    let is_binary =
        |value: Value<'_>| matches!(value, Value::Binary(binary) if binary.bytes.len() == 5);
    assert!(found[0].get("b").is_some_and(is_binary));
}

#[test]
fn references_are_read_in_pipelines_and_views() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'r': {'$ref': 'other', '$id': 7, '$db': 'shop'}}]");
    insert(&shop, "other", "[{'_id': 7, 'b': 2}]");
    let lookup =
        "[{'$lookup': {'from': 'other', 'localField': 'r.$id', 'foreignField': '_id', 'as': 'o'}},
                   {'$project': {'o.b': 1}}]";
    let found = aggregate(&shop, Some("things"), lookup).expect("found");
    assert_eq!(texts(&found), "[{'_id':1,'o':[{'b':2}]}]");
    let options = json("{'viewOn': 'things', 'pipeline': []}");
    shop.create_collection("seen", options.view()).expect("made");
    let request = FindRequest {
        sort: Some(json("{'r.$id': 1}")),
        projection: Some(json("{'r.$id': 1}")),
        ..request("{'r.$id': 7}")
    };
    let found = run(&shop, "seen", &request).expect("found");
    assert_eq!(texts(&found), "[{'_id':1,'r':{'$id':7}}]");
    let hinted = AggregateRequest {
        pipeline: value(
            "[{'$match': {'r.$id': {'$gt': 6}}}, {'$project': {'_id': 0, 'r.$ref': 1}}]",
        ),
        variables: None,
        collation: None,
        hint: None,
        in_memory_only: false,
        interrupt: Default::default(),
    };
    index(&shop, "{'key': {'r.$id': 1}}").expect("made");
    let found: Vec<DocumentBuf> = shop
        .aggregate(Some("things"), &hinted)
        .expect("runs")
        .collect::<Result<_, _>>()
        .expect("found");
    assert_eq!(texts(&found), "[{'r':{'$ref':'other'}}]");
}

#[test]
fn expressions_find_documents_by_an_index() {
    let shop = shop();
    let documents: Vec<String> = (0..300)
        .map(|id| match id {
            0 => "{'_id': 0, 'a': [3], 'n': [{'x': 3}]}".to_owned(),
            1 => "{'_id': 1, 'a': null}".to_owned(),
            2 => "{'_id': 2, 'n': {'x': 3.0}}".to_owned(),
            // Of a type above numbers, and of one below.
            3 => "{'_id': 3, 'm': {'y': 'text'}}".to_owned(),
            4 => "{'_id': 4}".to_owned(),
            _ => {
                let (a, x) = (id % 60, id % 50);
                format!("{{'_id': {id}, 'a': {a}, 'm': {x}, 'n': {{'x': {x}}}}}")
            }
        })
        .collect();
    insert(&shop, "things", &format!("[{}]", documents.join(", ")));
    index(&shop, "{'key': {'a': 1}}").expect("made");
    index(&shop, "{'key': {'n.x': 1}}").expect("made");
    index(&shop, "{'key': {'m': -1}}").expect("made");
    for (expression, is_found) in [
        ("{'$eq': ['$a', 3]}", true),
        ("{'$eq': [3.0, '$a']}", true),
        ("{'$eq': ['$n.x', '$$v']}", true),
        ("{'$eq': ['$a', {'$literal': 3}]}", true),
        ("{'$eq': ['$_id', '$$v']}", true),
        ("{'$and': [{'$gt': ['$_id', 5]}, {'$and': [{'$eq': ['$a', '$$v']}]}]}", true),
        ("{'$gt': ['$m', 47]}", true),
        ("{'$gte': ['$$v', '$m']}", true),
        ("{'$and': [{'$gt': ['$m', 5]}, {'$lte': ['$m', 7]}]}", true),
        ("{'$gt': ['$n.x', 47]}", false),
        ("{'$lt': ['$_id', '$$v']}", true),
        ("{'$gt': ['$a', 57]}", false),
        ("{'$gt': ['$m', null]}", false),
        ("{'$gt': ['$m', '$$list']}", false),
        ("{'$eq': ['$a', null]}", false),
        ("{'$eq': ['$a', '$$none']}", false),
        ("{'$eq': ['$a', '$$list']}", false),
        ("{'$eq': ['$n.x', '$$list']}", false),
        ("{'$eq': ['$a', '$_id']}", false),
        ("{'$or': [{'$eq': ['$a', 3]}, {'$eq': ['$a', 4]}]}", true),
        ("{'$in': ['$a', [3, 4]]}", true),
        ("{'$in': ['$a', '$$list']}", false),
        ("{'$or': [{'$eq': ['$a', 3]}, {'$eq': ['$b', 4]}]}", false),
        ("{'$or': [{'$eq': ['$a', 3]}, {'$eq': ['$a', null]}]}", false),
        ("{'$not': {'$eq': ['$a', 3]}}", false),
        ("{'$ne': ['$a', 3]}", false),
    ] {
        let find = FindRequest {
            variables: Some(json("{'v': 3, 'none': null, 'list': [3]}")),
            ..request(&format!("{{'$expr': {expression}}}"))
        };
        let plan = stages(&shop.explain("things", &find).expect("explained"));
        assert_eq!(plan != "COLLSCAN", is_found, "{expression}: {plan}");
        let natural = FindRequest { hint: Some(value("{'$natural': 1}")), ..find.clone() };
        let [mut found, mut all] =
            [&find, &natural].map(|request| run(&shop, "things", request).expect("found"));
        for documents in [&mut found, &mut all] {
            documents.sort_by_key(|document| document.get("_id").and_then(|id| id.as_integer()));
        }
        assert_eq!(texts(&found), texts(&all), "{expression}");
    }
    let joined = "[{'$match': {'_id': {'$gte': 100, '$lt': 102}}}, {'$lookup': {'from': 'things',
        'let': {'v': '$a'}, 'as': 'o', 'pipeline': [{'$match': {'$expr': {'$eq': ['$a', '$$v']}}}]}},
        {'$project': {'o._id': 1}}]";
    let found = aggregate(&shop, Some("things"), joined).expect("joined");
    assert_eq!(found.len(), 2);
    let of_first = found[0].get("o").and_then(|found| found.as_array()).expect("an array");
    assert_eq!(of_first.iter().count(), 5);
}
