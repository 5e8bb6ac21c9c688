//! Goal: `$text` finds by a text index what its rules say, by every way of reading; scores follow
//! the formula. Method: tables over a few documents, and random documents against a scan with the
//! same tokens.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, FindRequest};
use frond_doc::{DocumentBuf, Value};
use frond_query::search::{TextMatcher, TextSpec};
use frond_query::{Code, Filter};
use frond_vcs::Repository;

use crate::support::*;

const SHOPS: &str = "[
    {'_id': 1, 'name': 'Java Hut', 'about': 'Coffee and cakes'},
    {'_id': 2, 'name': 'Burger Buns', 'about': 'Gourmet hamburgers'},
    {'_id': 3, 'name': 'Coffee Shop', 'about': 'Just coffee'},
    {'_id': 4, 'name': 'Clothes Clothes Clothes', 'about': 'Discount clothing'},
    {'_id': 5, 'name': 'Java Shopping', 'about': 'Indonesian goods', 'tags': ['x', 'y']}]";

fn try_index(database: &Database, text: &str) -> Result<(), frond_db::Error> {
    let spec = IndexSpec::parse(json(text).view())?;
    database.create_indexes("shops", &[spec]).map(|_| ())
}

fn index(database: &Database, text: &str) {
    try_index(database, text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn ids(found: &[DocumentBuf]) -> Vec<i64> {
    let id = |document: &DocumentBuf| document.get("_id").and_then(|id| id.as_integer());
    let mut ids: Vec<i64> = found.iter().map(|document| id(document).expect("a number")).collect();
    ids.sort_unstable();
    ids
}

fn found(database: &Database, filter: &str) -> Vec<i64> {
    let found = run(database, "shops", &request(filter));
    ids(&found.unwrap_or_else(|error| panic!("{filter}: {error}")))
}

fn refused(database: &Database, filter: &str) -> i32 {
    run(database, "shops", &request(filter)).expect_err(filter).code.number()
}

fn stocked() -> Repository {
    let shop = shop();
    insert(&shop, "shops", SHOPS);
    index(&shop, "{'key': {'name': 'text', 'about': 'text'}}");
    shop
}

#[test]
fn searches_find_the_documents() {
    let shop = stocked();
    for (filter, expected) in [
        ("{'$text': {'$search': 'java coffee shop'}}", vec![1, 3, 5]),
        ("{'$text': {'$search': 'Java -shop'}}", vec![1]),
        ("{'$text': {'$search': 'hamburger'}}", vec![2]),
        ("{'$text': {'$search': 'the and'}}", vec![]),
        ("{'$text': {'$search': ''}}", vec![]),
        ("{'$text': {'$search': 'Coffee', '$caseSensitive': true}}", vec![1, 3]),
        ("{'$text': {'$search': 'clothes'}, '_id': {'$lt': 4}}", vec![]),
        ("{'$text': {'$search': 'java'}, 'tags': 'y'}", vec![5]),
        ("{'$and': [{'$text': {'$search': 'java'}}, {'_id': 5}]}", vec![5]),
        ("{'$or': [{'$text': {'$search': 'burger'}}, {'_id': 4}]}", vec![2, 4]),
    ] {
        assert_eq!(found(&shop, filter), expected, "{filter}");
    }
    let phrase = json(r#"{"$text": {"$search": "\"coffee shop\""}}"#);
    let request = FindRequest { filter: Some(phrase), ..FindRequest::default() };
    assert_eq!(ids(&run(&shop, "shops", &request).expect("found")), [3]);
    // Every command that searches asks the same.
    let java = json("{'$text': {'$search': 'java'}}");
    assert_eq!(shop.count("shops", &FindRequest::of(java.view())).expect("counted"), 2);
    let names = shop.distinct("shops", "name", &FindRequest::of(java.view())).expect("distinct");
    assert_eq!(names.len(), 2);
    let change = statement("{'$text': {'$search': 'hamburgers'}}", "{'$set': {'about': 'Tea'}}");
    assert_eq!(update(&shop, "shops", change).modified, 1);
    assert!(found(&shop, "{'$text': {'$search': 'hamburgers'}}").is_empty());
    assert_eq!(found(&shop, "{'$text': {'$search': 'tea'}}"), [2]);
    assert_eq!(delete(&shop, "shops", "{'$text': {'$search': 'tea'}}"), 1);
    assert!(found(&shop, "{'$text': {'$search': 'burger tea'}}").is_empty());
}

#[test]
fn searches_without_an_index_are_refused() {
    let shop = shop();
    let search = "{'$text': {'$search': 'java'}}";
    assert_eq!(refused(&shop, search), 27, "there is no collection");
    insert(&shop, "shops", SHOPS);
    assert_eq!(refused(&shop, search), 27, "there is no index");
    index(&shop, "{'key': {'kind': 1, 'name': 'text', 'size': 1}}");
    for (filter, code) in [
        (search, 291),
        ("{'kind': {'$gt': 1}, '$text': {'$search': 'java'}}", 291),
        ("{'kind': 1, '$or': [{'$text': {'$search': 'java'}}, {'x': 4}]}", 291),
        ("{'$nor': [{'$text': {'$search': 'java'}}]}", 2),
        ("{'$and': [{'$text': {'$search': 'a'}}, {'$text': {'$search': 'b'}}]}", 2),
        ("{'tags': {'$elemMatch': {'$or': [{'$text': {'$search': 'a'}}]}}}", 2),
        ("{'kind': 1, '$text': {'$search': 'java', '$language': 'x'}}", 2),
    ] {
        assert_eq!(refused(&shop, filter), code, "{filter}");
    }
    let with_kind = "{'kind': 1, '$text': {'$search': 'java'}}";
    let hinted = FindRequest { hint: Some(value("'_id_'")), ..request(with_kind) };
    assert_eq!(run(&shop, "shops", &hinted).unwrap_err().code, Code::BadValue);
    let natural = FindRequest { sort: Some(json("{'$natural': 1}")), ..request(with_kind) };
    assert_eq!(run(&shop, "shops", &natural).unwrap_err().code, Code::BadValue);
    assert_eq!(try_index(&shop, "{'key': {'about': 'text'}}").unwrap_err().code.number(), 67);
    // The same again is no other.
    index(&shop, "{'key': {'kind': 1, 'name': 'text', 'size': 1}}");
    for (pipeline, code) in [
        ("[{'$limit': 1}, {'$match': {'$text': {'$search': 'a'}}}]", 17313),
        ("[{'$facet': {'a': [{'$match': {'$text': {'$search': 'a'}}}]}}]", 40600),
        ("[{'$project': {'s': {'$meta': 'textScore'}}}]", 40218),
        ("[{'$sort': {'s': {'$meta': 'textScore'}}}]", 40218),
        ("[{'$sort': {'s': {'$meta': 'recordId'}}}]", 31138),
        ("[{'$sort': {'s': {'$meta': 'x'}}}]", 31138),
        ("[{'$sort': {'s': {'$meta': 1}}}]", 31138),
        ("[{'$sort': {'s': {'$meta': 'searchScore'}}}]", 40218),
        ("[{'$project': {'s': {'$meta': 'x'}}}]", 17308),
        ("[{'$project': {'s': {'$meta': 'searchScore'}}}]", 40218),
    ] {
        let error = aggregate(&shop, Some("shops"), pipeline).unwrap_err();
        assert_eq!(error.code.number(), code, "{pipeline}: {error}");
    }
    let scored =
        FindRequest { projection: Some(json("{'s': {'$meta': 'textScore'}}")), ..request("{}") };
    assert_eq!(run(&shop, "shops", &scored).unwrap_err().code.number(), 40218);
}

#[test]
fn compound_keys_and_partial_indexes() {
    let shop = shop();
    insert(
        &shop,
        "shops",
        "[{'_id': 1, 'k': 1, 't': 'red car', 's': 5}, {'_id': 2, 'k': 2, 't': 'red car', 's': 6},
          {'_id': 3, 'k': 1, 't': 'blue car', 's': [6, 7]}, {'_id': 4, 't': 'car'}]",
    );
    index(&shop, "{'key': {'k': -1, 't': 'text', 's': 1}}");
    for (filter, expected) in [
        ("{'k': 1, '$text': {'$search': 'car'}}", vec![1, 3]),
        ("{'k': 1, '$text': {'$search': 'red blue'}}", vec![1, 3]),
        ("{'k': 1, '$text': {'$search': 'car'}, 's': 6}", vec![3]),
        ("{'k': 2, '$text': {'$search': 'car'}, 's': {'$gt': 5}}", vec![2]),
        ("{'k': null, '$text': {'$search': 'car'}}", vec![4]),
    ] {
        assert_eq!(found(&shop, filter), expected, "{filter}");
    }
    let report = try_insert(&shop, "shops", &jsons("[{'k': [1], 't': 'car'}]"));
    assert_eq!(report.errors[0].error.code, Code::Location(16675));
    let report = try_insert(&shop, "shops", &jsons("[{'k': 1, 't': 'car', 'language': 'x'}]"));
    assert_eq!(report.errors[0].error.code, Code::Location(17262));

    let other = self::shop();
    insert(&other, "shops", "[{'_id': 1, 't': 'car', 'a': 1}, {'_id': 2, 't': 'car', 'a': 9}]");
    index(&other, "{'key': {'t': 'text'}, 'partialFilterExpression': {'a': {'$gt': 5}}}");
    assert_eq!(found(&other, "{'$text': {'$search': 'car'}, 'a': {'$gt': 6}}"), [2]);
    assert_eq!(refused(&other, "{'$text': {'$search': 'car'}}"), 291);
}

#[test]
fn scores_are_shown_and_sorted_by() {
    let shop = stocked();
    let scored = |sort: Option<&str>, projection: &str| {
        let request = FindRequest {
            sort: sort.map(json),
            projection: Some(json(projection)),
            ..request("{'$text': {'$search': 'java coffee shop'}}")
        };
        texts(&run(&shop, "shops", &request).expect("found"))
    };
    let expected = "[{'_id':3,'score':2.25},{'_id':1,'score':1.5},{'_id':5,'score':1.5}]";
    let best = Some("{'score': {'$meta': 'textScore'}, '_id': 1}");
    assert_eq!(scored(best, "{'_id': 1, 'score': {'$meta': 'textScore'}}"), expected);
    assert_eq!(scored(best, "{'_id': 1}"), "[{'_id':3},{'_id':1},{'_id':5}]");
    assert_eq!(
        scored(best, "{'name': 0, 'about': 0, 'tags': 0, 'score': {'$meta': 'textScore'}}"),
        expected
    );
    let whole = FindRequest {
        sort: Some(json("{'s': {'$meta': 'textScore'}}")),
        limit: Some(1),
        ..request("{'$text': {'$search': 'coffee'}}")
    };
    let found = run(&shop, "shops", &whole).expect("found");
    assert_eq!(texts(&found), "[{'_id':3,'name':'Coffee Shop','about':'Just coffee'}]");
    for (stages, expected) in [
        (
            "{'$sort': {'s': {'$meta': 'textScore'}}}, {'$project': {'s': {'$meta': 'textScore'}}}, {'$limit': 1}",
            "[{'_id':3,'s':2.25}]",
        ),
        (
            "{'$project': {'_id': 1}}, {'$addFields': {'s': {'$meta': 'textScore'}}}, {'$match': {'_id': 1}}",
            "[{'_id':1,'s':1.5}]",
        ),
        (
            "{'$match': {'_id': 1}}, {'$replaceWith': {'r': '$$ROOT', 's': {'$meta': 'textScore'}}}, {'$unset': ['r.about']}",
            "[{'r':{'_id':1,'name':'Java Hut'},'s':1.5}]",
        ),
        (
            "{'$group': {'_id': null, 's': {'$sum': {'$meta': 'textScore'}}}}",
            "[{'_id':null,'s':5.25}]",
        ),
        (
            "{'$sort': {'_id': -1}}, {'$limit': 1}, {'$set': {'s': {'$gt': [{'$meta': 'textScore'}, 1]}}}",
            "[{'_id':5,'name':'Java Shopping','about':'Indonesian goods','tags':['x','y'],'s':true}]",
        ),
        (
            "{'$facet': {'a': [{'$match': {'_id': 3}}, {'$project': {'s': {'$meta': 'textScore'}}}], 'b': [{'$match': {'_id': 1}}, {'$project': {'about': 0}}]}}",
            "[{'a':[{'_id':3,'s':2.25}],'b':[{'_id':1,'name':'Java Hut'}]}]",
        ),
    ] {
        let pipeline =
            format!("[{{'$match': {{'$text': {{'$search': 'java coffee shop'}}}}}}, {stages}]");
        let made = aggregate(&shop, Some("shops"), &pipeline);
        let made = made.unwrap_or_else(|error| panic!("{pipeline}: {error}"));
        assert_eq!(texts(&made), expected, "{pipeline}");
    }
    insert(&shop, "one", "[{'_id': 1}]");
    let lookup = "[{'$lookup': {'from': 'shops', 'as': 'found', 'pipeline': [
        {'$match': {'$text': {'$search': 'coffee'}}}, {'$sort': {'s': {'$meta': 'textScore'}}},
        {'$project': {'s': {'$meta': 'textScore'}}}]}}]";
    let made = aggregate(&shop, Some("one"), lookup).expect("the pipeline is right");
    assert_eq!(texts(&made), "[{'_id':1,'found':[{'_id':3,'s':1.5},{'_id':1,'s':0.75}]}]");
}

#[test]
fn plans_are_explained_as_mongodb_explains_them() {
    let shop = stocked();
    let explain = |search: &str, projection: Option<&str>| {
        let filter = format!("{{'$text': {{'$search': '{search}'}}}}");
        let request = FindRequest { projection: projection.map(json), ..request(&filter) };
        let explained = shop.explain("shops", &request).expect("explained");
        (stages(&explained), explained)
    };
    assert_eq!(explain("java", None).0, "TEXT_MATCH FETCH IXSCAN");
    let (names, explained) = explain("java coffee", Some("{'s': {'$meta': 'textScore'}}"));
    assert_eq!(names, "PROJECTION_DEFAULT TEXT_MATCH TEXT_OR IXSCAN");
    assert_eq!(examined(&explained, "nReturned"), 3);
    assert_eq!(examined(&explained, "totalKeysExamined"), 4);
}

#[test]
fn versions_have_their_text_indexes() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    insert(&shop, "shops", SHOPS);
    index(&shop, "{'key': {'$**': 'text'}, 'weights': {'name': 3}}");
    shop.commit("all", "Ada").expect("committed");
    delete(&shop, "shops", "{'$text': {'$search': 'java'}}");
    assert!(found(&shop, "{'$text': {'$search': 'java'}}").is_empty());
    let before = Repository::open(&frond, "shop@HEAD").expect("a version");
    assert_eq!(found(&before, "{'$text': {'$search': 'java'}}"), [1, 5]);
}

/// Goal: a merge leaves the text index that the merged documents would have made. Method: random
/// changes of texts on both branches; the merged index is checked, and searched beside one that is
/// built anew.
#[test]
fn merged_text_indexes_are_as_those_built_anew() {
    const WORDS: [&str; 8] = ["running", "cats", "tea", "coffee", "the", "shop", "ran", "cakes"];
    frond_testkit::random::for_seeds(6, |mut random| {
        let mut made = |id: usize, side: &str| {
            let mut words = |count: usize| {
                let words: Vec<&str> = (0..count).map(|_| *random.choose(&WORDS)).collect();
                words.join(" ")
            };
            let (title, body) = (words(id % 3), words(1 + id % 5));
            json(&format!(
                "{{'_id': {id}, '{side}': 1, 'title': '{title}', 'body': ['{body}', 7]}}"
            ))
        };
        let frond = open();
        let main = Repository::open(&frond, "shop").expect("a proper name");
        let documents: Vec<DocumentBuf> = (0..60).map(|id| made(id, "base")).collect();
        assert_eq!(try_insert(&main, "shops", &documents).count, 60);
        let definition = "{'key': {'title': 'text', 'body': 'text'}, 'weights': {'title': 3}}";
        index(&main, definition);
        main.commit("all", "Ada").expect("committed");
        main.create_branch("side", None).expect("made");
        let side = Repository::open(&frond, "shop@side").expect("a branch");
        // Both sides change, remove and insert, and both change fields of document 30.
        for (database, offset, fresh) in [(&main, 0, 100), (&side, 1, 200)] {
            for id in (offset..20).step_by(2) {
                let after = made(id + 7, "changed");
                let body = after.get("body").expect("it has one").to_buf();
                let set = frond_doc::document! { "body": body.as_value() };
                let set = frond_doc::document! { "$set": &set };
                let change = frond_db::UpdateStatement {
                    update: frond_doc::ValueBuf::from(set),
                    ..statement(&format!("{{'_id': {id}}}"), "{}")
                };
                update(database, "shops", change);
            }
            let removed =
                format!("{{'_id': {{'$gte': {}, '$lt': {}}}}}", 40 + 5 * offset, 45 + 5 * offset);
            assert_eq!(delete(database, "shops", &removed), 5);
            let inserted: Vec<DocumentBuf> =
                (fresh..fresh + 10).map(|id| made(id, "new")).collect();
            assert_eq!(try_insert(database, "shops", &inserted).count, 10);
            let field = if offset == 0 { "title" } else { "body" };
            let both = statement("{'_id': 30}", &format!("{{'$set': {{'{field}': 'tea shop'}}}}"));
            update(database, "shops", both);
            database.commit("changed", "Ada").expect("committed");
        }
        let everything = request("{}");
        let merge = frond_vcs::MergeRequest { merge_in: "side".to_owned(), ..Default::default() };
        let merged = main.merge(&merge).expect("merged");
        assert!(matches!(merged, frond_vcs::MergeOutcome::Merged { .. }), "{merged:?}");
        let checked = main.check_collection("shops", &Default::default()).expect("checked");
        assert!(checked.is_valid(), "{:?}", checked.errors());
        let documents = run(&main, "shops", &everything).expect("found");
        assert_eq!(documents.len(), 60 - 10 + 20);
        let anew = shop();
        assert_eq!(try_insert(&anew, "shops", &documents).count, documents.len() as u64);
        index(&anew, definition);
        for word in WORDS {
            let search = FindRequest {
                projection: Some(json("{'s': {'$meta': 'textScore'}, '_id': 1}")),
                sort: Some(json("{'s': {'$meta': 'textScore'}, '_id': 1}")),
                ..request(&format!("{{'$text': {{'$search': '{word} cake'}}}}"))
            };
            let (found, expected) = (run(&main, "shops", &search), run(&anew, "shops", &search));
            assert_eq!(found.expect("found"), expected.expect("found"), "{word}");
        }
        assert!(found(&main, "{'$text': {'$search': '\\\"tea shop\\\"'}}").contains(&30));
    });
}

#[test]
fn other_searches_leave_metadata_too() {
    let shop = shop();
    insert(&shop, "shops", "[{'_id': 1, 'a': {'b': 5.0}, 'c': 'x'}, {'_id': 2, 'a': {'b': 7}}]");
    index(&shop, "{'key': {'a.b': -1, 'c': 1}}");
    let shown = |filter: &str, projection: &str| {
        let request = FindRequest { projection: Some(json(projection)), ..request(filter) };
        texts(&run(&shop, "shops", &request).expect("found"))
    };
    let key = "{'_id': 1, 'k': {'$meta': 'indexKey'}}";
    assert_eq!(shown("{'a.b': 5}", key), "[{'_id':1,'k':{'a.b':5.0,'c':'x'}}]");
    assert_eq!(shown("{'c': 'x'}", key), "[{'_id':1}]", "no index led there");
    insert(&shop, "places", "[{'_id': 1, 'p': [0, 0]}, {'_id': 2, 'p': [0, 90]}]");
    let spec = IndexSpec::parse(json("{'key': {'p': '2dsphere'}}").view()).expect("an index");
    shop.create_indexes("places", &[spec]).expect("made");
    let stages = "[{'$geoNear': {'near': [0, 0], 'spherical': true}},
        {'$project': {'d': {'$lt': [{'$meta': 'geoNearDistance'}, 1]}, 'p': {'$meta': 'geoNearPoint'}}}]";
    let made = aggregate(&shop, Some("places"), stages).expect("the pipeline is right");
    assert_eq!(texts(&made), "[{'_id':1,'d':true,'p':[0,0]},{'_id':2,'d':false,'p':[0,90]}]");
}

/// Goal: by the index a search finds what a scan with the same tokens finds, with the same scores,
/// also after changes.
#[test]
fn by_an_index_or_by_a_scan() {
    const WORDS: [&str; 12] = [
        "running",
        "Runs",
        "the",
        "café",
        "CAFE",
        "don't",
        "state-of-the-art",
        "maison",
        "Häuser",
        "x_y",
        "l'eau",
        "cat",
    ];
    frond_testkit::random::for_seeds(6, |mut random| {
        let shop = shop();
        let is_wildcard = random.below(3) == 0;
        let key = if is_wildcard { "'$**': 'text'" } else { "'a': 'text', 'b.c': 'text'" };
        let language = *random.choose(&["english", "french", "none"]);
        let weights = if is_wildcard { "{'$**': 1, 'b': 4}" } else { "{'a': 1, 'b.c': 7}" };
        let definition =
            format!("{{'key': {{{key}}}, 'weights': {weights}, 'default_language': '{language}'}}");
        let mut phrase = |count: usize| {
            let words: Vec<&str> = (0..count).map(|_| *random.choose(&WORDS)).collect();
            words.join(" ")
        };
        let quoted = |text: String| format!("\"{text}\"");
        let mut documents = Vec::new();
        for id in 0..80 {
            let (a, b, c) = (quoted(phrase(id % 4)), quoted(phrase(2)), quoted(phrase(id % 3)));
            let own = ["", ", \"language\": \"german\"", ", \"language\": \"fr\""][id % 3];
            let text =
                format!("{{\"_id\": {id}, \"a\": [{a}, 1], \"b\": [{{\"c\": {b}{own}}}, {c}]}}");
            documents.push(frond_doc::extended_json::parse(&text).expect("JSON"));
        }
        let half = documents.len() / 2;
        assert_eq!(try_insert(&shop, "shops", &documents[..half]).count, half as u64);
        index(&shop, &definition);
        assert_eq!(try_insert(&shop, "shops", &documents[half..]).count, half as u64);
        let removed = delete(&shop, "shops", "{'_id': {'$mod': [7, 3]}}");
        assert!(removed > 0);
        documents.retain(|document| {
            document.get("_id").and_then(|id| id.as_integer()).is_some_and(|id| id % 7 != 3)
        });
        let checked = shop.check_collection("shops", &Default::default()).expect("checked");
        assert!(checked.is_valid(), "{:?}", checked.errors());
        let weights = json(weights);
        let spec = TextSpec::new(weights.view(), language, "language").expect("a spec");
        for round in 0..25 {
            let search = match round % 5 {
                0 => phrase(1),
                1 => format!("{} -{}", phrase(2), phrase(1)),
                2 => format!("\\\"{}\\\" {}", phrase(2), phrase(1)),
                3 => format!("{} -\\\"{}\\\"", phrase(3), phrase(2)),
                _ => phrase(3),
            };
            let (case, marks) = (round % 7 == 6, round % 6 == 5);
            let text = format!(
                "{{\"$text\": {{\"$search\": \"{search}\", \"$caseSensitive\": {case}, \"$diacriticSensitive\": {marks}}}}}"
            );
            let filter = frond_doc::extended_json::parse(&text).expect("JSON");
            let parsed = Filter::parse_search(filter.view()).expect("a search");
            let (text_search, _) = parsed.text().expect("a search");
            let matcher = TextMatcher::new(text_search, &spec).expect("a matcher");
            let scan = parsed.clone().with_text(matcher.clone());
            let mut expected: Vec<(i64, f64)> = documents
                .iter()
                .filter(|document| scan.matches(document.view()))
                .map(|document| {
                    (ids(std::slice::from_ref(document))[0], matcher.score(document.view()))
                })
                .collect();
            expected.sort_by_key(|found| found.0);
            let request = FindRequest {
                filter: Some(filter),
                projection: Some(json("{'_id': 1, 's': {'$meta': 'textScore'}}")),
                ..FindRequest::default()
            };
            let found = run(&shop, "shops", &request).expect("found");
            let score = |document: &DocumentBuf| match document.get("s") {
                Some(Value::Double(score)) => score,
                other => panic!("{other:?}"),
            };
            let mut by_index: Vec<(i64, f64)> =
                found.iter().map(|one| (ids(std::slice::from_ref(one))[0], score(one))).collect();
            by_index.sort_by_key(|found| found.0);
            assert_eq!(by_index, expected, "{definition} {text}");
        }
    });
}
