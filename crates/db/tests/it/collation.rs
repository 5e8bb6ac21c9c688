//! Goal: a collation reaches whatever compares strings: filters, sorts, groups, sets, joins,
//! updates; a collection's own is taken where a request names none. Method: tables over one small
//! collection, where case decides.

use frond_db::{AggregateRequest, DeleteStatement, FindAndModify, FindRequest};
use frond_query::{Code, Collation};
use frond_vcs::Repository;

use crate::support::*;

const WORDS: &str = "[{'_id': 1, 'w': 'b', 'n': 'x10'}, {'_id': 2, 'w': 'A', 'n': 'x9'},
    {'_id': 3, 'w': 'B', 'n': 'X1'}, {'_id': 4, 'w': 'a', 't': ['C', 'd']}, {'_id': 5, 'w': 7}]";

pub fn collation(text: &str) -> Collation {
    Collation::parse(json(text).view()).expect("the specification is right")
}

/// Case doesn't count.
fn caseless() -> Option<Collation> {
    Some(collation("{'locale': 'en', 'strength': 2}"))
}

/// The numbers of the documents that are found.
fn ids(found: &[frond_doc::DocumentBuf]) -> Vec<i64> {
    let id = |document: &frond_doc::DocumentBuf| document.get("_id").and_then(|id| id.as_integer());
    found.iter().map(|document| id(document).expect("a number")).collect()
}

fn words() -> Repository {
    let shop = shop();
    insert(&shop, "words", WORDS);
    shop
}

#[test]
fn filters_and_sorts() {
    let shop = words();
    for (filter, sort, collation, expected) in [
        ("{'w': 'a'}", "{'_id': 1}", caseless(), vec![2, 4]),
        ("{'w': 'a'}", "{'_id': 1}", None, vec![4]),
        ("{'w': {'$in': ['A', 'q']}}", "{'_id': 1}", caseless(), vec![2, 4]),
        ("{'w': {'$ne': 'a'}}", "{'_id': 1}", caseless(), vec![1, 3, 5]),
        ("{'w': {'$gt': 'A'}}", "{'_id': 1}", caseless(), vec![1, 3]),
        ("{'w': {'$lte': 'A'}}", "{'_id': 1}", caseless(), vec![2, 4]),
        ("{'w': {'$not': {'$lte': 'A'}}}", "{'_id': 1}", caseless(), vec![1, 3, 5]),
        ("{'w': {'$regex': 'a'}}", "{'_id': 1}", caseless(), vec![4]),
        ("{'t': {'$elemMatch': {'$eq': 'D'}}}", "{'_id': 1}", caseless(), vec![4]),
        ("{'t': {'$all': ['c', 'D']}}", "{'_id': 1}", caseless(), vec![4]),
        ("{'t': ['c', 'D']}", "{'_id': 1}", caseless(), vec![4]),
        ("{'$expr': {'$eq': ['$w', 'B']}}", "{'_id': 1}", caseless(), vec![1, 3]),
        ("{'$expr': {'$in': ['$w', ['B', 'c']]}}", "{'_id': 1}", caseless(), vec![1, 3]),
        ("{'$jsonSchema': {'properties': {'w': {'enum': ['a']}}}}", "{}", caseless(), vec![4]),
        ("{'w': {'$type': 'string'}}", "{'w': 1, '_id': -1}", caseless(), vec![4, 2, 3, 1]),
        ("{'w': {'$type': 'string'}}", "{'w': 1, '_id': -1}", None, vec![2, 3, 4, 1]),
        (
            "{'n': {'$exists': true}}",
            "{'n': 1}",
            Some(collation("{'locale': 'en', 'numericOrdering': true}")),
            vec![3, 2, 1],
        ),
        (
            "{'n': {'$exists': true}}",
            "{'n': -1}",
            Some(collation("{'locale': 'en'}")),
            vec![2, 1, 3],
        ),
    ] {
        let sorted = Some(json(sort));
        let request = FindRequest { sort: sorted, collation, ..request(filter) };
        let found = run(&shop, "words", &request).expect("the request is right");
        assert_eq!(ids(&found), expected, "{filter} {sort} {:?}", request.collation);
        let count = shop.count("words", &request).expect("counted");
        assert_eq!(count, expected.len() as u64, "{filter}");
    }
    let request = FindRequest { collation: caseless(), ..request("{}") };
    let values = shop.distinct("words", "w", &request).expect("found");
    assert_eq!(values, [value("7"), value("'A'"), value("'b'")]);
}

#[test]
fn strings_in_ids_are_no_others() {
    let shop = shop();
    insert(&shop, "words", "[{'_id': 'a'}, {'_id': 'A'}, {'_id': 'b'}]");
    for (filter, collation, expected) in [
        ("{'_id': 'A'}", caseless(), "[{'_id':'A'},{'_id':'a'}]"),
        ("{'_id': {'$in': ['A', 'B']}}", caseless(), "[{'_id':'A'},{'_id':'a'},{'_id':'b'}]"),
        ("{'_id': 'B'}", None, "[]"),
        ("{'_id': 'A'}", None, "[{'_id':'A'}]"),
    ] {
        let request = FindRequest { collation, ..request(filter) };
        assert_eq!(texts(&run(&shop, "words", &request).expect("right")), expected, "{filter}");
    }
}

#[test]
fn pipelines() {
    let shop = words();
    insert(&shop, "more", "[{'_id': 10, 'k': 'A'}, {'_id': 11, 'k': 'B', 'to': 'a'}]");
    for (pipeline, expected) in [
        (
            "[{'$group': {'_id': '$w', 'n': {'$sum': 1}}}]",
            "[{'_id':'b','n':2},{'_id':'A','n':2},{'_id':7,'n':1}]",
        ),
        (
            "[{'$group': {'_id': null, 's': {'$addToSet': '$w'}, 'x': {'$max': '$n'},
               'f': {'$bottom': {'sortBy': {'n': 1}, 'output': '$_id'}}}}]",
            "[{'_id':null,'s':['b','A',7],'x':'x9','f':2}]",
        ),
        (
            "[{'$match': {'_id': 1}}, {'$project': {'c': {'$cmp': ['$w', 'B']},
               's': {'$setUnion': [['a'], ['A', 'b']]}, 'i': {'$indexOfArray': [['a', 'B'], '$w']},
               'm': {'$min': ['B', 'a']}, 'q': {'$strcasecmp': ['a', 'b']}}}]",
            "[{'_id':1,'c':0,'s':['a','b'],'i':1,'m':'a','q':-1}]",
        ),
        (
            "[{'$match': {'_id': 1}}, {'$lookup': {'from': 'more', 'localField': 'w',
               'foreignField': 'k', 'as': 'm'}}, {'$project': {'m._id': 1}}]",
            "[{'_id':1,'m':[{'_id':11}]}]",
        ),
        (
            "[{'$match': {'_id': 1}}, {'$graphLookup': {'from': 'more', 'startWith': '$w',
               'connectToField': 'k', 'connectFromField': 'to', 'as': 'm'}},
              {'$project': {'m': {'$size': '$m'}}}]",
            "[{'_id':1,'m':2}]",
        ),
        (
            "[{'$match': {'w': {'$type': 'string'}}}, {'$bucket': {'groupBy': '$w',
               'boundaries': ['a', 'B', 'c']}}]",
            "[{'_id':'a','count':2},{'_id':'B','count':2}]",
        ),
        (
            "[{'$setWindowFields': {'partitionBy': '$w', 'sortBy': {'_id': 1},
               'output': {'r': {'$documentNumber': {}}}}}, {'$match': {'r': 2}},
              {'$project': {'r': 1}}, {'$sort': {'_id': 1}}]",
            "[{'_id':3,'r':2},{'_id':4,'r':2}]",
        ),
        (
            "[{'$sortByCount': '$w'}, {'$limit': 2}, {'$match': {'_id': 'a'}}]",
            "[{'_id':'A','count':2}]",
        ),
        ("[{'$facet': {'f': [{'$match': {'w': 'B'}}, {'$count': 'n'}]}}]", "[{'f':[{'n':2}]}]"),
    ] {
        let request = AggregateRequest {
            pipeline: value(pipeline),
            variables: None,
            collation: caseless(),
            hint: None,
            in_memory_only: false,
            interrupt: Default::default(),
        };
        let found = shop.aggregate(Some("words"), &request).expect("the pipeline is right");
        let found: Vec<_> = found.collect::<Result<_, _>>().expect("the pipeline runs");
        assert_eq!(texts(&found), expected, "{pipeline}");
    }
}

#[test]
fn updates_and_deletes() {
    let shop = words();
    let collated = |filter: &str, change: &str| frond_db::UpdateStatement {
        multi: true,
        collation: caseless(),
        ..statement(filter, change)
    };
    let report = update(&shop, "words", collated("{'w': 'B'}", "{'$max': {'w': 'b'}}"));
    assert_eq!((report.matched, report.modified), (2, 0), "{:?}", report.errors);
    update(&shop, "words", collated("{'_id': 4}", "{'$addToSet': {'t': 'c'}}"));
    update(&shop, "words", collated("{'_id': 4}", "{'$pull': {'t': {'$in': ['D']}}}"));
    assert_eq!(find(&shop, "words", "{'_id': 4}"), "[{'_id':4,'w':'a','t':['C']}]");
    update(&shop, "words", collated("{'_id': 4}", "{'$pullAll': {'t': ['c']}}"));
    let push = "{'$push': {'t': {'$each': ['b', 'A', 'C'], '$sort': 1}}}";
    update(&shop, "words", collated("{'_id': 4}", push));
    assert_eq!(find(&shop, "words", "{'_id': 4}"), "[{'_id':4,'w':'a','t':['A','b','C']}]");
    let filtered = frond_db::UpdateStatement {
        array_filters: Some(value("[{'x': {'$gte': 'B'}}]")),
        ..collated("{'_id': 4}", "{'$set': {'t.$[x]': 1}}")
    };
    update(&shop, "words", filtered);
    assert_eq!(find(&shop, "words", "{'_id': 4}"), "[{'_id':4,'w':'a','t':['A',1,1]}]");
    let modify = FindAndModify {
        filter: json("{'w': 'B'}"),
        sort: Some(json("{'_id': -1}")),
        update: Some(value("{'$set': {'hit': 1}}")),
        upsert: false,
        return_new: true,
        projection: None,
        array_filters: None,
        hint: None,
        variables: None,
        collation: caseless(),
    };
    let relaxed = frond_db::Durability::Relaxed;
    let report = shop.find_and_modify("words", &modify, relaxed).expect("the request is right");
    assert_eq!(text(&report.value.expect("found")), "{'_id':3,'w':'B','n':'X1','hit':1}");
    let all_b = DeleteStatement {
        filter: json("{'w': 'b'}"),
        only_first: false,
        hint: None,
        variables: None,
        collation: caseless(),
    };
    let report = shop.delete("words", &[all_b], true, relaxed).expect("the request is right");
    assert_eq!(report.count, 2);
}

#[test]
fn a_collection_s_own_collation_is_taken_where_none_is_named() {
    let shop = shop();
    let options = "{'collation': {'locale': 'en', 'strength': 2},
        'validator': {'w': {'$ne': 'bad'}}}";
    shop.create_collection("words", json(options).view()).expect("made");
    insert(&shop, "words", WORDS);
    let simple = Some(Collation::SIMPLE);
    assert_eq!(ids(&run(&shop, "words", &request("{'w': 'a'}")).expect("found")), [2, 4]);
    let by_bytes = FindRequest { collation: simple, ..request("{'w': 'a'}") };
    assert_eq!(ids(&run(&shop, "words", &by_bytes).expect("found")), [4]);
    let report = try_insert(&shop, "words", &jsons("[{'_id': 6, 'w': 'BAD'}]"));
    assert_eq!(report.errors[0].error.code, Code::DocumentValidationFailure);
    let report = update(&shop, "words", statement("{'w': 'B'}", "{'$min': {'w': 'A'}}"));
    assert_eq!(report.modified, 1);
    assert_eq!(find(&shop, "words", "{'_id': 1}"), "[{'_id':1,'w':'A','n':'x10'}]");
    let found = aggregate(&shop, Some("words"), "[{'$group': {'_id': '$w'}}]").expect("grouped");
    assert_eq!(found.len(), 3);
    assert_eq!(delete(&shop, "words", "{'w': 'a'}"), 3);
    let info = shop.list_collections().expect("listed").remove(0);
    let kept = info.options.get("collation").and_then(|value| value.as_document());
    assert_eq!(kept.and_then(|kept| kept.get("version")).and_then(|v| v.as_str()), Some("57.1"));
    for wrong in ["{'collation': {}}", "{'collation': {'locale': 'nowhere'}}"] {
        let error = shop.create_collection("more", json(wrong).view()).unwrap_err();
        assert_eq!(error.code, Code::BadValue, "{wrong}");
    }
}

#[test]
fn a_view_has_its_own_collation_and_no_other() {
    let shop = words();
    let caseless_view =
        "{'viewOn': 'words', 'pipeline': [], 'collation': {'locale': 'en', 'strength': 2}}";
    shop.create_collection("caseless", json(caseless_view).view()).expect("made");
    shop.create_collection("plain", json("{'viewOn': 'words'}").view()).expect("made");
    assert_eq!(ids(&run(&shop, "caseless", &request("{'w': 'A'}")).expect("found")), [2, 4]);
    assert_eq!(ids(&run(&shop, "plain", &request("{'w': 'A'}")).expect("found")), [2]);
    let named = FindRequest { collation: caseless(), ..request("{'w': 'A'}") };
    assert_eq!(ids(&run(&shop, "caseless", &named).expect("found")), [2, 4]);
    let error = run(&shop, "plain", &named).unwrap_err();
    assert_eq!(error.code, Code::OptionNotSupportedOnView);
    assert_eq!(error.message, "Cannot override a view's default collation");
    let joined = "[{'$lookup': {'from': 'caseless', 'localField': 'w', 'foreignField': 'w',
        'as': 'm'}}]";
    let error = aggregate(&shop, Some("words"), joined).unwrap_err();
    assert_eq!(error.code, Code::OptionNotSupportedOnView);
}

#[test]
fn a_collated_index_answers_requests_of_its_collation_only() {
    let shop = words();
    let index = |text: &str| frond_db::catalog::IndexSpec::parse(json(text).view());
    let caseless_index =
        index("{'key': {'w': 1}, 'collation': {'locale': 'en', 'strength': 2}}").expect("proper");
    shop.create_indexes("words", &[caseless_index]).expect("made");
    for number in 100..300 {
        insert(&shop, "words", &format!("[{{'_id': {number}, 'w': 'filler{number}'}}]"));
    }
    let of = |filter: &str, sort: &str, collation| FindRequest {
        sort: Some(json(sort)),
        collation,
        ..request(filter)
    };
    for (filter, sort, collation, expected, plan) in [
        ("{'w': 'a'}", "{}", caseless(), vec![2, 4], "FETCH IXSCAN"),
        ("{'w': 'a'}", "{}", None, vec![4], "COLLSCAN"),
        ("{'w': 7}", "{}", None, vec![5], "FETCH IXSCAN"),
        ("{'w': {'$gt': 'A', '$lt': 'C'}}", "{}", caseless(), vec![1, 3], "FETCH IXSCAN"),
        ("{'w': {'$in': ['B', 'q']}}", "{}", caseless(), vec![1, 3], "FETCH IXSCAN"),
        (
            "{'w': {'$lt': 'C', '$gt': ''}}",
            "{'w': 1}",
            caseless(),
            vec![2, 4, 1, 3],
            "FETCH IXSCAN",
        ),
        (
            "{'w': {'$in': ['a', 'A', 'b', 'B']}}",
            "{'w': 1}",
            None,
            vec![2, 3, 4, 1],
            "SORT COLLSCAN",
        ),
        ("{'w': {'$regex': '^B'}}", "{}", caseless(), vec![3], "COLLSCAN"),
    ] {
        let request = of(filter, sort, collation);
        let mut found = ids(&run(&shop, "words", &request).expect("the request is right"));
        if sort == "{}" {
            found.sort_unstable();
        }
        assert_eq!(found, expected, "{filter} {sort}");
        let explained = shop.explain("words", &request).expect("explained");
        assert_eq!(stages(&explained), plan, "{filter} {sort} {:?}", request.collation);
    }
    let shown = shop.list_indexes("words").expect("listed");
    let shown = shown.iter().find(|index| index.name == "w_1").expect("it is there").to_document();
    let collation = shown.get("collation").and_then(|value| value.as_document());
    assert_eq!(collation.and_then(|full| full.get("strength")), Some(frond_doc::Value::Int32(2)));
}

#[test]
fn a_unique_index_by_the_collection_s_collation() {
    let shop = shop();
    let options = json("{'collation': {'locale': 'en', 'strength': 1}}");
    shop.create_collection("words", options.view()).expect("made");
    let unique = json("{'key': {'w': 1}, 'unique': true}");
    let unique = frond_db::catalog::IndexSpec::parse(unique.view()).expect("proper");
    shop.create_indexes("words", &[unique]).expect("made");
    let documents = jsons("[{'_id': 1, 'w': 'cafe'}, {'_id': 2, 'w': 'Café'}]");
    let report = try_insert(&shop, "words", &documents);
    assert_eq!(report.count, 1);
    assert_eq!(report.errors[0].error.code, Code::DuplicateKey);
    assert!(report.errors[0].error.message.contains("Café"), "{}", report.errors[0].error);
    let simple = json("{'key': {'w': 1}, 'name': 'bytes', 'collation': {'locale': 'simple'}}");
    let simple = frond_db::catalog::IndexSpec::parse(simple.view()).expect("proper");
    shop.create_indexes("words", &[simple]).expect("another order is another index");
    assert_eq!(shop.list_indexes("words").expect("listed").len(), 3);
    let hashed = json("{'key': {'w': 'hashed'}, 'collation': {'locale': 'en'}}");
    let error = frond_db::catalog::IndexSpec::parse(hashed.view()).unwrap_err();
    assert_eq!(error.code, Code::CannotCreateIndex);
}

/// Goal: a search by a collated index and the same search by a scan give the same documents.
#[test]
fn by_a_collated_index_or_by_a_scan() {
    const LETTERS: [&str; 12] = ["a", "A", "á", "Á", "b", "B", "ß", "ss", "1", "10", "9", " "];
    frond_testkit::random::for_seeds(4, |mut random| {
        let shop = shop();
        let strength = random.below(3) + 1;
        let by = format!("{{'locale': 'de', 'strength': {strength}, 'numericOrdering': true}}");
        let mut word = || {
            let count = random.below(3) + 1;
            let word = (0..count).map(|_| *random.choose(&LETTERS));
            word.collect::<String>()
        };
        let documents: Vec<String> = (0..120)
            .map(|id| {
                format!("{{'_id': {id}, 'w': '{}', 'v': ['{}', '{}']}}", word(), word(), word())
            })
            .collect();
        insert(&shop, "words", &format!("[{}]", documents.join(",")));
        let filters: Vec<String> = (0..12)
            .flat_map(|_| {
                let (one, two) = (word(), word());
                [
                    format!("{{'w': '{one}'}}"),
                    format!("{{'w': {{'$gte': '{one}', '$lt': '{two}'}}}}"),
                    format!("{{'v': {{'$in': ['{one}', '{two}']}}}}"),
                    format!("{{'v': {{'$elemMatch': {{'$gt': '{one}', '$lte': '{two}'}}}}}}"),
                ]
            })
            .collect();
        let search = |filter: &String| {
            let collation = Some(collation(&by));
            let sort = Some(json("{'w': -1, '_id': 1}"));
            let request = FindRequest { collation, sort, ..request(filter) };
            ids(&run(&shop, "words", &request).expect("the request is right"))
        };
        let by_scan: Vec<Vec<i64>> = filters.iter().map(search).collect();
        for path in ["w", "v"] {
            let spec = json(&format!("{{'key': {{'{path}': 1}}, 'collation': {by}}}"));
            let spec = frond_db::catalog::IndexSpec::parse(spec.view()).expect("proper");
            shop.create_indexes("words", &[spec]).expect("made");
        }
        for (filter, expected) in filters.iter().zip(by_scan) {
            assert_eq!(search(filter), expected, "{filter} {by}");
        }
    });
}
