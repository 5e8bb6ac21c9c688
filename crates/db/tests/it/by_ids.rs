//! Goal: a list of `_id`s finds what it finds the usual way, whatever is in the list, in
//! transactions and past versions too. Method: each search twice, once with a hint on the index of
//! `_id`, which has it planned.

use frond_db::request_profile::{self, Plan};
use frond_db::{Database, FindRequest};
use frond_query::Code;
use frond_vcs::Repository;

use crate::support::*;

/// What a search finds, and how.
fn found(database: &Database, request: &FindRequest) -> (String, Plan, u64) {
    request_profile::begin(None, &Default::default());
    let found = texts(&run(database, "things", request).expect("the request is right"));
    let profile = request_profile::end();
    (found, profile.plan, profile.examined.documents)
}

/// Checks that a search finds the same the usual way. Returns whether it took no plan.
fn check(database: &Database, list: &str, limit: Option<u64>) -> bool {
    let by_list = FindRequest { limit, ..request(&format!("{{'_id': {{'$in': {list}}}}}")) };
    let planned = FindRequest { hint: Some(value("{'_id': 1}")), ..by_list.clone() };
    let ((one, plan, read), (other, usual, read_usually)) =
        (found(database, &by_list), found(database, &planned));
    assert_eq!((&one, read), (&other, read_usually), "{list}, limit {limit:?}");
    assert!(!matches!(usual, Plan::ByIds), "{list}");
    assert_eq!(plan.summary(), usual.summary(), "{list}");
    matches!(plan, Plan::ByIds)
}

const THINGS: &str = "[{'_id': 1}, {'_id': 2, 'a': 'x'}, {'_id': 2.5}, {'_id': 'a'}, {'_id': 'b'}, \
                      {'_id': null}, {'_id': {'k': 1}}, {'_id': true}]";

#[test]
fn lists_find_the_same_as_by_a_plan() {
    let shop = shop();
    insert(&shop, "things", THINGS);
    for (list, takes_no_plan) in [
        ("[2, 1]", true),
        ("['b', 1, true, 2, 'a', 7]", true),
        // No document is there twice.
        ("[1, 2, 1, {'$numberLong': '2'}]", true),
        ("[8, 9]", true),
        // One, or none.
        ("[1]", false),
        ("[1, 1]", false),
        ("[]", false),
        // What may mean more than its key says.
        ("[1, null]", false),
        ("[1, 2.5]", false),
        ("[1, {'k': 1}]", false),
        ("[1, {'$regularExpression': {'pattern': '^a', 'options': ''}}]", false),
    ] {
        for limit in [None, Some(1), Some(2), Some(100)] {
            assert_eq!(check(&shop, list, limit), takes_no_plan, "{list}");
        }
    }
}

/// What stages find, and how.
fn aggregated(database: &Database, stages: &str) -> (String, Option<String>, u64) {
    request_profile::begin(None, &Default::default());
    let found = texts(&aggregate(database, Some("things"), stages).expect("the stages are right"));
    let profile = request_profile::end();
    (found, profile.plan.summary(), profile.examined.documents)
}

/// An `$and` around the condition, and a pipeline, find the same, and it is shown as it was.
#[test]
fn other_wordings_find_the_same_and_show_the_same_plan() {
    let shop = shop();
    insert(&shop, "things", THINGS);
    insert(&shop, "things", "[{'_id': {'$numberLong': '77'}, 'a': 5}]");
    for filter in [
        "{'_id': 2}",
        "{'_id': {'$eq': 77}}",
        "{'_id': 'b'}",
        "{'_id': 999}",
        "{'_id': {'$in': [2]}}",
        "{'_id': {'$in': [77, 2, 'a']}}",
        "{'_id': {'$in': [77, 2, 'a']}, 'a': 5}",
        "{'_id': {'k': 1}}",
        "{'_id': null}",
        "{}",
    ] {
        let anded = format!("{{'$and': [{filter}]}}");
        let hint = Some(value("{'_id': 1}"));
        let planned = found(&shop, &FindRequest { hint: hint.clone(), ..request(filter) });
        let (documents, plan, examined) = found(&shop, &request(&anded));
        assert_eq!((&documents, examined), (&planned.0, planned.2), "{anded}");
        if filter != "{}" {
            assert_eq!(plan.summary(), planned.1.summary(), "{anded}");
        }
        for wording in [filter, &anded] {
            for (limit, usual) in [
                ("", "{'$skip': 0}"),
                (", {'$limit': 1}", "{'$limit': {'$numberLong': '1'}}"),
                (", {'$limit': 2}", "{'$limit': {'$numberLong': '2'}}"),
            ] {
                let stages = format!("[{{'$match': {wording}}}{limit}]");
                let usual = format!("[{{'$match': {wording}}}, {usual}]");
                assert_eq!(aggregated(&shop, &stages), aggregated(&shop, &usual), "{stages}");
            }
        }
    }
    insert(&shop, "things", "[{'_id': 11, 'z': 1, 'b': {'c': [1, 2]}, 'a': null}]");
    for shown in [
        "{'a': 1}",
        "{'a': true, 'z': 1}",
        "{'b': 1, 'a': 1, '_id': 0}",
        "{'_id': 0, 'z': 0}",
        "{'_id': 0}",
        "{'_id': 1}",
        "{'_id': 1, 'b': 0}",
        "{'a': 0, 'z': false}",
        "{'nothing': 1}",
        "{'a': '$z'}",
        "{'b.c': 1}",
        "{'a': 2}",
        "{'a': {'$numberDouble': '-0.0'}}",
    ] {
        for id in [11, 12] {
            let wordings = ["", ", {'$limit': 1}"].map(|limit| {
                format!("[{{'$match': {{'_id': {id}}}}}, {{'$project': {shown}}}{limit}]")
            });
            for stages in wordings {
                let usual = stages.replace(", {'$project'", ", {'$skip': 0}, {'$project'");
                assert_eq!(aggregated(&shop, &stages), aggregated(&shop, &usual), "{stages}");
            }
        }
    }
    for wrong in [
        "{'$project': {}}",
        "{'$project': {'a': 1, 'z': 0}}",
        "{'$project': {'$a': 1}}",
        "{'$project': {'': 1}}",
        "{'$project': 1}",
        "{'$limit': 0}",
        "{'$limit': -1}",
        "{'$limit': 'x'}",
        "{'$nothing': 1}",
        "5",
    ] {
        let stages = format!("[{{'$match': {{'_id': 2}}}}, {wrong}]");
        aggregate(&shop, Some("things"), &stages).expect_err(wrong);
    }
}

#[test]
fn long_lists_and_long_documents_are_not_read_ahead() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1}]");
    let long = format!("[{{'_id': 2, 'a': '{0}'}}, {{'_id': 3, 'a': '{0}'}}]", "x".repeat(300_000));
    insert(&shop, "things", &long);
    assert!(check(&shop, "[1, 4]", None));
    assert!(!check(&shop, "[1, 2, 3]", None));
    let list = |count: usize| format!("{:?}", (0..count).collect::<Vec<_>>());
    insert(&shop, "things", "[{'_id': 60}]");
    assert!(!check(&shop, &list(65), None));
}

#[test]
fn a_transaction_finds_its_own_writes_and_a_commit_none_of_them() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("opens");
    insert(&shop, "things", THINGS);
    let commit = shop.commit("all", "Ada").expect("committed");
    let transaction = frond.begin();
    let inside = transaction.database("shop").expect("opens");
    insert(&inside, "things", "[{'_id': 3}]");
    update(&inside, "things", statement("{'_id': 1}", "{'$set': {'b': 1}}"));
    assert_eq!(delete(&inside, "things", "{'_id': 2}"), 1);
    assert!(check(&inside, "[1, 2, 3]", None));
    assert_eq!(
        find(&inside, "things", "{'_id': {'$in': [3, 2, 1]}}"),
        "[{'_id':1,'b':1},{'_id':3}]"
    );
    let past = Repository::open(&frond, &format!("shop@{}", commit.id)).expect("opens");
    for database in [&*shop, &*past] {
        assert!(check(database, "[1, 2, 3]", None));
        assert_eq!(find(database, "things", "{'_id': {'$in': [3, 2]}}"), "[{'_id':2,'a':'x'}]");
    }
}

#[test]
fn a_dropped_collection_ends_the_cursor() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1}, {'_id': 2}]");
    let mut cursor = shop.find("things", &request("{'_id': {'$in': [1, 2]}}")).expect("found");
    cursor.next().expect("the first").expect("it is there");
    shop.drop_collection("things").expect("dropped");
    let error = cursor.next().expect("an error").expect_err("the collection is gone");
    assert_eq!(error.code, Code::QueryPlanKilled);
}

#[test]
fn strings_by_a_collation_and_views_go_the_usual_way() {
    let shop = shop();
    let caseless = json("{'collation': {'locale': 'en', 'strength': 2}}");
    shop.create_collection("things", caseless.view()).expect("made");
    insert(&shop, "things", "[{'_id': 'A'}, {'_id': 'b'}, {'_id': 1}, {'_id': 2}]");
    assert!(!check(&shop, "['a', 'B']", None));
    assert_eq!(find(&shop, "things", "{'_id': {'$in': ['a', 'B']}}"), "[{'_id':'A'},{'_id':'b'}]");
    let view = json("{'viewOn': 'things', 'pipeline': [{'$match': {'_id': {'$ne': 1}}}]}");
    shop.create_collection("view", view.view()).expect("made");
    assert_eq!(find(&shop, "view", "{'_id': {'$in': [1, 2]}}"), "[{'_id':2}]");
}
