//! Goal: places are found by a 2dsphere or 2d index as by a scan; `$near` and `$geoNear` give the
//! nearest first, and want an index. Method: a table over a few places, and random places, shapes
//! and regions.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, FindRequest};
use frond_doc::DocumentBuf;
use frond_query::Code;

use crate::support::*;

const PLACES: &str = "[
    {'_id': 1, 'p': {'type': 'Point', 'coordinates': [13.4, 52.5]}, 'kind': 'city'},
    {'_id': 2, 'p': {'type': 'Point', 'coordinates': [2.35, 48.86]}, 'kind': 'city'},
    {'_id': 3, 'p': [-0.13, 51.5], 'kind': 'city'},
    {'_id': 4, 'p': {'type': 'LineString', 'coordinates': [[6, 50], [8, 49]]}, 'kind': 'road'},
    {'_id': 5, 'p': {'type': 'Polygon', 'coordinates':
        [[[9, 47], [10, 47], [10, 48], [9, 48], [9, 47]]]}, 'kind': 'park'},
    {'_id': 6, 'p': [[100, 10], [14, 52]], 'kind': 'pair'},
    {'_id': 7, 'kind': 'none'}]";

fn index(database: &Database, text: &str) {
    let spec = IndexSpec::parse(json(text).view()).expect("a proper index");
    database.create_indexes("places", &[spec]).expect("made");
}

fn ids(found: &[DocumentBuf]) -> Vec<i64> {
    let id = |document: &DocumentBuf| document.get("_id").and_then(|id| id.as_integer());
    found.iter().map(|document| id(document).expect("a number")).collect()
}

fn found(database: &Database, filter: &str, limit: Option<u64>) -> Vec<i64> {
    let request = FindRequest { limit, ..request(filter) };
    ids(&run(database, "places", &request).unwrap_or_else(|error| panic!("{filter}: {error}")))
}

#[test]
fn the_nearest_comes_first() {
    let shop = shop();
    insert(&shop, "places", PLACES);
    let berlin = "{'$geometry': {'type': 'Point', 'coordinates': [13.4, 52.5]}}";
    let near = format!("{{'p': {{'$near': {berlin}}}}}");
    let error = run(&shop, "places", &request(&near)).unwrap_err();
    assert_eq!(error.code, Code::NoQueryExecutionPlans);
    assert!(error.message.contains("unable to find index for $geoNear query"), "{error}");
    let stage = |options: &str| {
        format!(
            "[{{'$geoNear': {{'near': {{'type': 'Point', 'coordinates': [13.4, 52.5]}}{options}}}}}]"
        )
    };
    let error = aggregate(&shop, Some("places"), &stage("")).unwrap_err();
    assert_eq!(error.code, Code::IndexNotFound);
    index(&shop, "{'key': {'p': '2dsphere', 'kind': 1}}");
    assert_eq!(found(&shop, &near, None), [1, 6, 4, 5, 2, 3]);
    assert_eq!(found(&shop, &near, Some(2)), [1, 6]);
    for (filter, expected) in [
        (
            "{'p': {'$near': {'$geometry': {'type': 'Point', 'coordinates': [13.4, 52.5]}, '$maxDistance': 100000}}}",
            vec![1, 6],
        ),
        (
            "{'p': {'$near': {'$geometry': {'type': 'Point', 'coordinates': [13.4, 52.5]}, '$minDistance': 10, '$maxDistance': 100000}}}",
            vec![6],
        ),
        ("{'p': {'$nearSphere': [13.4, 52.5], '$maxDistance': 0.02}}", vec![1, 6]),
        ("{'kind': 'city', 'p': {'$nearSphere': [0, 50]}}", vec![3, 2, 1]),
    ] {
        assert_eq!(found(&shop, filter, None), expected, "{filter}");
    }
    // A sort has the last word.
    let sorted = FindRequest { sort: Some(json("{'_id': -1}")), ..request(&near) };
    assert_eq!(ids(&run(&shop, "places", &sorted).expect("found")), [6, 5, 4, 3, 2, 1]);
    let flat = run(&shop, "places", &request("{'p': {'$near': [0, 0]}}")).unwrap_err();
    assert_eq!(flat.code, Code::NoQueryExecutionPlans);
    let pipeline = stage(
        ", 'distanceField': 'd.m', 'includeLocs': 'at', 'maxDistance': 100000, 'query': {'kind': 'pair'}, 'distanceMultiplier': 0.001",
    );
    let made = aggregate(&shop, Some("places"), &pipeline).expect("the pipeline is right");
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].get("at").map(|at| at.to_buf()), Some(value("[14, 52]")));
    let distance = made[0].get("d").and_then(|d| d.as_document()?.get("m").map(|m| m.to_buf()));
    let Some(frond_doc::Value::Double(kilometres)) = distance.as_ref().map(|d| d.as_value()) else {
        panic!("{distance:?}");
    };
    assert!((68.0..70.0).contains(&kilometres), "{kilometres}");
    let limited = format!(
        "{}, {{'$limit': 2}}, {{'$project': {{'_id': 1}}}}]",
        stage("").trim_end_matches(']')
    );
    let made = aggregate(&shop, Some("places"), &limited).expect("the pipeline is right");
    assert_eq!(texts(&made), "[{'_id':1},{'_id':6}]");
    for (pipeline, code) in [
        (format!("[{{'$match': {near}}}]"), 5_626_500),
        (format!("[{{'$limit': 1}}, {}", stage("").trim_start_matches('[')), 40602),
        ("[{'$geoNear': {}}]".to_owned(), 5_860_400),
        (stage(", 'limit': 5"), 50_858),
    ] {
        let error = aggregate(&shop, Some("places"), &pipeline).unwrap_err();
        assert_eq!(error.code.number(), code, "{pipeline}: {error}");
    }
    // The nearest is the one that is changed.
    let change = statement("{'p': {'$nearSphere': [2, 49]}}", "{'$set': {'hit': 1}}");
    assert_eq!(update(&shop, "places", change).modified, 1);
    assert_eq!(found(&shop, "{'hit': 1}", None), [2]);
}

/// The point and the distances of a `$geoNear` may come from the request's variables.
#[test]
fn the_point_may_be_an_expression() {
    let shop = shop();
    let places = "[{'_id': 1, 'p': [1, 0]}, {'_id': 2, 'p': [5, 0]}, {'_id': 3, 'p': [9, 0]}]";
    insert(&shop, "places", places);
    index(&shop, "{'key': {'p': '2d'}}");
    let near = |options: &str| format!("{{'$geoNear': {{'distanceField': 'd', {options}}}}}");
    let distances = "'maxDistance': '$$most', 'minDistance': {'$subtract': ['$$most', 4]}";
    let by_let = near(&format!("'near': '$$at', {distances}"));
    let lookup = format!(
        "{{'$lookup': {{'from': 'places', 'as': 'n', 'let': {{'at': '$p', 'most': 4}},
            'pipeline': [{by_let}, {{'$project': {{'_id': 1}}}}]}}}}"
    );
    let project = "{'$project': {'_id': 1, 'n': '$n._id'}}";
    for (pipeline, expected) in [
        (
            format!("{lookup}, {project}"),
            "[{'_id':1,'n':[1,2]},{'_id':2,'n':[2,1,3]},{'_id':3,'n':[3,2]}]",
        ),
        (
            format!(
                "{}, {project}",
                near("'near': {'$literal': [9, 0]}, 'maxDistance': {'$add': [1, 1]}")
            ),
            "[{'_id':3}]",
        ),
        (
            format!("{}, {project}", near("'near': [{'$add': [4, 1]}, 0], 'maxDistance': 1")),
            "[{'_id':2}]",
        ),
    ] {
        let found = aggregate(&shop, Some("places"), &format!("[{pipeline}]")).expect(&pipeline);
        assert_eq!(texts(&found), expected, "{pipeline}");
    }
    for (options, code) in [
        ("'near': '$p'", 5_860_402),
        ("'near': 'x'", 5_860_401),
        ("'near': null", 5_860_401),
        ("'near': [1, 0], 'maxDistance': '$d'", 7_555_702),
        ("'near': [1, 0], 'minDistance': '$d'", 7_555_701),
        ("'near': [1, 0], 'minDistance': 'x'", 14),
        ("'near': [1, 0], 'maxDistance': {'$subtract': [1, 2]}", 2),
        ("'near': '$$nothing'", 17276),
        ("'near': [1, 0], 'num': 1", 50857),
        ("'near': [1, 0], 'collation': {}", 40227),
        ("'near': [1, 0], 'includeLocs': 1", 16607),
        ("'near': [1, 0], 'other': 1", 2),
    ] {
        let found = aggregate(&shop, Some("places"), &format!("[{}]", near(options)));
        assert_eq!(found.expect_err(options).code.number(), code, "{options}");
    }
}

#[test]
fn values_that_are_no_places_are_not_indexed() {
    let shop = shop();
    index(&shop, "{'key': {'p': '2dsphere'}}");
    for (document, fits) in [
        ("[{'p': {'type': 'Point', 'coordinates': [200, 0]}}]", false),
        ("[{'p': 'x'}]", false),
        ("[{'p': [1, 'x']}]", false),
        ("[{'p': [1, 95]}]", false),
        ("[{'p': null}]", true),
        ("[{}]", true),
        ("[{'p': []}]", true),
    ] {
        let report = try_insert(&shop, "places", &jsons(document));
        assert_eq!(report.errors.is_empty(), fits, "{document}");
        if let Some(failed) = report.errors.first() {
            assert_eq!(failed.error.code, Code::Location(16755), "{document}");
            assert!(failed.error.message.starts_with("Can't extract geo keys"), "{document}");
        }
    }
    let listed = shop.list_indexes("places").expect("listed");
    let listed = listed.iter().find(|index| index.name == "p_2dsphere").expect("it is there");
    let version = listed.to_document().get("2dsphereIndexVersion").map(|version| version.to_buf());
    assert_eq!(version, Some(value("3")));
}

/// Goal: `$geoWithin`, `$geoIntersects` and `$near` find by an index what they find by a scan.
#[test]
fn by_an_index_or_by_a_scan() {
    frond_testkit::random::for_seeds(4, |mut random| {
        let shop = shop();
        let spread = [0.01, 1.0, 60.0][random.below(3)];
        let centre = *random.choose(&[(0.0, 0.0), (179.5, 10.0), (30.0, 89.0), (-45.0, 35.0)]);
        // There is one place only at a pole: what has two vertices there is refused.
        let (pole, near_pole) = (90.0, 89.9);
        let mut at = |reach: f64, latitude_max: f64| {
            let offset = |random: usize| (random as f64 / 10_000.0 - 1.0) * reach;
            let longitude = centre.0 + offset(random.below(20_001));
            let longitude = if longitude > 180.0 { longitude - 360.0 } else { longitude };
            (longitude, (centre.1 + offset(random.below(20_001))).min(latitude_max))
        };
        let pair = |(x, y): (f64, f64)| format!("[{x:?}, {y:?}]");
        let mut shape = |number: usize, reach: f64| {
            let first = pair(at(reach, pole));
            let mut next = || pair(at(reach, near_pole));
            match number % 4 {
                0 | 1 => format!("{{'type': 'Point', 'coordinates': {first}}}"),
                2 => format!("{{'type': 'LineString', 'coordinates': [{first}, {}]}}", next()),
                _ => {
                    let (second, third) = (next(), next());
                    let ring = format!("[{first}, {second}, {third}, {first}]");
                    format!("{{'type': 'Polygon', 'coordinates': [{ring}]}}")
                }
            }
        };
        let documents: Vec<String> =
            (0..150).map(|id| format!("{{'_id': {id}, 'p': {}}}", shape(id, spread))).collect();
        insert(&shop, "places", &format!("[{}]", documents.join(",")));
        let mut filters = Vec::new();
        for number in 0..16 {
            let region = shape(number, spread);
            filters.push(format!("{{'p': {{'$geoIntersects': {{'$geometry': {region}}}}}}}"));
            let area = shape(3, spread);
            filters.push(format!("{{'p': {{'$geoWithin': {{'$geometry': {area}}}}}}}"));
        }
        let sort = Some(json("{'_id': 1}"));
        let search = |filter: &String| {
            let request = FindRequest { sort: sort.clone(), ..request(filter) };
            ids(&run(&shop, "places", &request).unwrap_or_else(|error| panic!("{filter}: {error}")))
        };
        let by_scan: Vec<Vec<i64>> = filters.iter().map(search).collect();
        index(&shop, "{'key': {'p': '2dsphere'}}");
        for (filter, expected) in filters.iter().zip(by_scan) {
            let hinted = FindRequest {
                hint: Some(value("'p_2dsphere'")),
                sort: sort.clone(),
                ..request(filter)
            };
            let by_index = run(&shop, "places", &hinted);
            let by_index = by_index.unwrap_or_else(|error| panic!("{filter}: {error}"));
            assert_eq!(ids(&by_index), expected, "{filter}");
        }
    });
}

const PAIRS: &str = "[
    {'_id': 1, 'p': [1, 1], 'kind': 'a'},
    {'_id': 2, 'p': {'lng': 5, 'lat': 5}, 'kind': 'b'},
    {'_id': 3, 'p': [-170, 3], 'kind': 'a'},
    {'_id': 4, 'p': [[100, 100], [2, 3]], 'kind': 'b'},
    {'_id': 5, 'p': [179.5, -80, 'more'], 'kind': 'a'},
    {'_id': 6, 'p': [], 'kind': 'a'},
    {'_id': 7, 'kind': 'a'},
    {'_id': 8, 'p': 'nowhere', 'kind': 'a'},
    {'_id': 9, 'q': [{'p': [1, 1]}, {'p': [7, 7]}], 'p': [180, 180], 'kind': ['a', 'b']}]";

#[test]
fn pairs_of_the_plane() {
    let shop = shop();
    insert(&shop, "places", PAIRS);
    let near = "{'p': {'$near': [1, 1]}}";
    assert_eq!(run(&shop, "places", &request(near)).unwrap_err().code, Code::NoQueryExecutionPlans);
    index(&shop, "{'key': {'p': '2d', 'kind': 1}}");
    for (filter, expected) in [
        (near, vec![1, 4, 2, 3, 5, 9]),
        ("{'p': {'$near': {'lng': 1, 'lat': 1}, '$maxDistance': 6}}", vec![1, 4, 2]),
        ("{'p': {'$near': [1, 1, 6]}}", vec![1, 4, 2]),
        ("{'p': {'$near': [1, 1], '$minDistance': 1, '$maxDistance': 6}}", vec![4, 2]),
        ("{'kind': 'b', 'p': {'$near': [1, 1], '$maxDistance': 6}}", vec![4, 2]),
        // Over the 180th meridian.
        ("{'p': {'$nearSphere': [179, 3], '$maxDistance': 0.3}}", vec![3]),
        ("{'p': {'$nearSphere': [0, -89], '$maxDistance': 0.3}}", vec![5]),
    ] {
        assert_eq!(found(&shop, filter, None), expected, "{filter}");
    }
    assert_eq!(found(&shop, near, Some(2)), [1, 4]);
    for (filter, expected) in [
        ("{'p': {'$geoWithin': {'$box': [[0, 0], [5, 5]]}}}", vec![1, 2, 4]),
        ("{'p': {'$within': {'$center': [[0, 0], 1.5]}}}", vec![1]),
        ("{'p': {'$geoWithin': {'$polygon': [[0, 0], [0, 10], [10, 10]]}}}", vec![1, 2, 4]),
        ("{'p': {'$geoWithin': {'$polygon': [[0, 0], [10, 0], [10, 10]]}}}", vec![1, 2]),
        ("{'p': {'$geoWithin': {'$centerSphere': [[179, 3], 0.3]}}}", vec![3]),
        ("{'p': {'$geoWithin': {'$centerSphere': [[0, 90], 1.55]}}}", vec![2, 3, 4]),
        ("{'p': {'$geoWithin': {'$box': [[170, 170], [180, 180]]}}, 'kind': 'b'}", vec![9]),
    ] {
        let order = Some(json("{'_id': 1}"));
        let by_id = FindRequest { sort: order.clone(), ..request(filter) };
        let hint = Some(value("'p_2d_kind_1'"));
        let hinted = FindRequest { hint, ..by_id.clone() };
        for request in [by_id, hinted] {
            assert_eq!(ids(&run(&shop, "places", &request).expect(filter)), expected, "{filter}");
        }
    }
    let plan = shop.explain("places", &request(near)).expect("explained");
    let text = format!("{plan:?}");
    assert!(text.contains("GEO_NEAR_2D") && text.contains("p_2d_kind_1"), "{text}");
    let pipeline =
        "[{'$geoNear': {'near': [1, 1], 'key': 'p', 'distanceField': 'd', 'maxDistance': 3}},
        {'$project': {'d': {'$round': ['$d', 2]}}}]";
    let made = aggregate(&shop, Some("places"), pipeline).expect("the pipeline is right");
    assert_eq!(texts(&made), "[{'_id':1,'d':0.0},{'_id':4,'d':2.24}]");
    // A query on the sphere needs another index.
    let filter = "{'p': {'$near': {'$geometry': {'type': 'Point', 'coordinates': [1, 1]}}}}";
    let refused = run(&shop, "places", &request(filter)).unwrap_err();
    assert_eq!(refused.code, Code::NoQueryExecutionPlans);
}

#[test]
fn a_2d_index_refuses_what_is_no_pair() {
    let shop = shop();
    index(&shop, "{'key': {'p': '2d'}, 'bits': 10, 'min': 0, 'max': 50}");
    let listed = shop.list_indexes("places").expect("listed");
    let listed = listed.iter().find(|index| index.name == "p_2d").expect("it is there");
    for (option, given) in [("bits", "10"), ("min", "0"), ("max", "50")] {
        let stored = listed.to_document().get(option).map(|stored| stored.to_buf());
        assert_eq!(stored, Some(value(given)), "{option}");
    }
    for (document, code) in [
        ("[{'p': [50, 0]}]", None),
        ("[{'p': {}}]", None),
        ("[{'p': [[], [1, 2]]}]", None),
        ("[{'p': [51, 0]}]", Some(13027)),
        ("[{'p': [0, -0.1]}]", Some(13027)),
        ("[{'p': [1]}]", Some(13068)),
        ("[{'p': [1, 'x']}]", Some(13026)),
        ("[{'p': ['x', 1]}]", Some(16804)),
        ("[{'p': {'type': 'Point', 'coordinates': [1, 1]}}]", Some(16804)),
    ] {
        let report = try_insert(&shop, "places", &jsons(document));
        let failed = report.errors.first().map(|failed| failed.error.code.number());
        assert_eq!(failed, code, "{document}");
    }
    for (spec, code) in [
        ("{'key': {'p': '2d'}, 'bits': 33}", 72),
        ("{'key': {'p': '2d'}, 'bits': 0}", 72),
        ("{'key': {'p': '2d'}, 'bits': 'x'}", 14),
        ("{'key': {'p': '2d'}, 'min': 5, 'max': 5}", 72),
        ("{'key': {'k': 1, 'p': '2d'}}", 16801),
        ("{'key': {'p': '2d', 'q': '2d'}}", 16800),
        ("{'key': {'p': '2d'}, 'collation': {'locale': 'en'}}", 67),
    ] {
        let error = IndexSpec::parse(json(spec).view()).unwrap_err();
        assert_eq!(error.code.number(), code, "{spec}: {error}");
    }
}

/// Goal: a 2d index finds what a scan finds, whatever its grid is.
#[test]
fn the_plane_by_an_index_or_by_a_scan() {
    frond_testkit::random::for_seeds(6, |mut random| {
        let shop = shop();
        let reach = [0.01, 3.0, 180.0][random.below(3)];
        let mut part = || (random.below(20_001) as f64 / 10_000.0 - 1.0) * reach;
        let mut pair = || format!("[{:?}, {:?}]", part(), part());
        let documents: Vec<String> = (0..200)
            .map(|id| match id % 5 {
                0 => format!("{{'_id': {id}, 'p': [{}, {}], 'n': {}}}", pair(), pair(), id % 3),
                _ => format!("{{'_id': {id}, 'p': {}, 'n': {}}}", pair(), id % 3),
            })
            .collect();
        insert(&shop, "places", &format!("[{}]", documents.join(",")));
        let mut filters = Vec::new();
        for number in 0..12 {
            let size = reach / [2.0, 8.0, 50.0][number % 3];
            let (one, other, third, fourth) = (pair(), pair(), pair(), pair());
            for region in [
                format!("{{'$box': [{one}, {other}]}}"),
                format!("{{'$center': [{one}, {size:?}]}}"),
                format!("{{'$polygon': [{one}, {other}, {third}, {fourth}]}}"),
                format!("{{'$centerSphere': [[{:?}, 20], {:?}]}}", 180.0 - size, size / 57.0),
            ] {
                filters.push(format!("{{'p': {{'$geoWithin': {region}}}, 'n': {}}}", number % 3));
            }
        }
        let sort = Some(json("{'_id': 1}"));
        let by_id = |filter: &String, hint: Option<&str>| {
            let hint = hint.map(value);
            let request = FindRequest { sort: sort.clone(), hint, ..request(filter) };
            ids(&run(&shop, "places", &request).unwrap_or_else(|error| panic!("{filter}: {error}")))
        };
        let by_scan: Vec<Vec<i64>> = filters.iter().map(|filter| by_id(filter, None)).collect();
        let bits = 1 + random.below(32);
        index(&shop, &format!("{{'name': 'plane', 'key': {{'p': '2d', 'n': 1}}, 'bits': {bits}}}"));
        for (filter, expected) in filters.iter().zip(by_scan) {
            assert_eq!(by_id(filter, Some("'plane'")), expected, "{bits} bits: {filter}");
        }
        // The nearest first, as a sort of all by their distance gives them.
        let at = "{'$sqrt': {'$add': [{'$pow': ['$q.x', 2]}, {'$pow': ['$q.y', 2]}]}}";
        let measured = format!(
            "[{{'$set': {{'p': {{'$cond': [{{'$isNumber': {{'$first': '$p'}}}}, ['$p'], '$p']}}}}}}, {{'$unwind': '$p'}},
              {{'$set': {{'q': {{'x': {{'$first': '$p'}}, 'y': {{'$last': '$p'}}}}}}}},
              {{'$group': {{'_id': '$_id', 'd': {{'$min': {at}}}}}}}, {{'$sort': {{'d': 1}}}}, {{'$limit': 9}}]"
        );
        let expected = ids(&aggregate(&shop, Some("places"), &measured).expect("measured"));
        assert_eq!(found(&shop, "{'p': {'$near': [0, 0]}}", Some(9)), expected);
    });
}

/// Goal: the first few, read outward, are the first few of all, on the sphere and in the plane.
#[test]
fn the_first_few_are_read_outward() {
    let shop = shop();
    let mut random = frond_testkit::Random::new(11);
    let mut part = |reach: f64| (random.below(20_001) as f64 / 10_000.0 - 1.0) * reach;
    let documents: Vec<String> = (0..1_500)
        .map(|id| {
            let pair = format!("[{:?}, {:?}]", part(3.0), part(3.0));
            let far = format!("[{:?}, {:?}]", part(170.0), part(80.0));
            let places = if id % 3 == 0 { format!("[{pair}, {far}]") } else { pair };
            format!("{{'_id': {id}, 'p': {places}, 'n': {}}}", id % 40)
        })
        .collect();
    insert(&shop, "places", &format!("[{}]", documents.join(",")));
    for kind in ["2d", "2dsphere"] {
        index(&shop, &format!("{{'name': '{kind}', 'key': {{'p': '{kind}'}}}}"));
        for condition in [
            "{'p': {'$nearSphere': [1, 1]}}",
            "{'p': {'$nearSphere': [1, 1], '$minDistance': 0.02}}",
            "{'p': {'$nearSphere': [1, 1], '$maxDistance': 0.01}, 'n': 7}",
            "{'p': {'$nearSphere': [-120, 40]}, 'n': {'$lt': 3}}",
        ] {
            let hint = Some(value(&format!("'{kind}'")));
            let all = FindRequest { hint: hint.clone(), ..request(condition) };
            let all = ids(&run(&shop, "places", &all).expect("found"));
            let few = FindRequest { hint, limit: Some(9), skip: 2, ..request(condition) };
            let found = ids(&run(&shop, "places", &few).expect("found"));
            assert_eq!(found, all[2.min(all.len())..11.min(all.len())], "{kind} {condition}");
        }
    }
    let near = FindRequest { limit: Some(5), ..request("{'p': {'$near': [1, 1]}}") };
    let explained = shop.explain("places", &near).expect("explained");
    let stats =
        explained.get("executionStats").and_then(|stats| stats.as_document()).expect("stats");
    let read = stats.get("totalDocsExamined").and_then(|read| read.as_integer()).expect("a count");
    assert!(read < 500, "{read} documents were read for five");
    let stages = "[{'$geoNear': {'near': [1, 1], 'key': 'p', 'distanceField': 'd'}}, {'$limit': 7},
        {'$project': {'_id': 1}}]";
    let few = ids(&aggregate(&shop, Some("places"), stages).expect("the pipeline is right"));
    assert_eq!(few, found(&shop, "{'p': {'$near': [1, 1]}}", None)[..7]);
}
