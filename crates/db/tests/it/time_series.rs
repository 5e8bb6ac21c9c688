//! Goal: a time series answers as a plain collection of the same documents does, through every way
//! of writing, in every state of storage; its own tree serves as an index; what MongoDB refuses is
//! refused. Method: the same documents in both, with the same requests; plans by `explain`;
//! `check_collection` after writes, commits and merges.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, FindRequest, Interrupt, UpdateStatement};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_vcs::{MergeRequest, Repository};

use crate::support::*;

const OPTIONS: &str = "{'timeseries': {'timeField': 't', 'metaField': 'm'}}";

fn series(options: &str) -> Repository {
    let shop = shop();
    shop.create_collection("points", json(options).view()).expect("made");
    shop
}

/// A point; `source` is JSON, or nothing for none.
fn point(id: i32, source: &str, seconds: i64, value: i32) -> DocumentBuf {
    let mut point = DocumentBuilder::new();
    point.append("_id", Value::Int32(id)).append("t", Value::DateTime(seconds * 1_000));
    if !source.is_empty() {
        let source = json(&format!("{{'m': {source}}}"));
        point.append("m", source.get("m").expect("a value"));
    }
    point.append("v", Value::Int32(value));
    point.build()
}

/// Points of five sources, each a minute after the other, in no order.
fn points(sources: &[&str]) -> Vec<DocumentBuf> {
    (0..400)
        .map(|n| {
            let n = n * 173 % 400;
            let source = sources[n as usize % sources.len()];
            point(n, source, i64::from(n / 5) * 60, n % 17)
        })
        .collect()
}

fn check_valid(database: &Database) {
    let checked = database.check_collection("points", &Interrupt::default()).expect("read");
    assert!(checked.is_valid(), "{:?}", checked.errors());
}

fn plan(database: &Database, request: &FindRequest) -> (String, [i64; 2]) {
    let explained = database.explain("points", request).expect("the request is right");
    let names = ["nReturned", "totalDocsExamined"];
    (stages(&explained), names.map(|name| examined(&explained, name)))
}

fn sorted(filter: &str, sort: &str) -> FindRequest {
    FindRequest { sort: Some(json(sort)), ..request(filter) }
}

fn code<T>(result: Result<T, frond_db::Error>) -> i32 {
    result.map_or_else(|error| error.code.number(), |_| 0)
}

#[test]
fn its_own_tree_is_an_index_of_source_and_time() {
    let shop = series(OPTIONS);
    let sources = ["'a'", "'b'", "'c'", "'d'", "{'e': 1}"];
    assert_eq!(try_insert(&shop, "points", &points(&sources)).count, 400);
    check_valid(&shop);
    let at = |seconds: i64| format!("{{'$date': {}}}", seconds * 1_000);
    let hour = format!("{{'$gte': {}, '$lt': {}}}", at(600), at(1_200));
    let fetched = "FETCH IXSCAN";
    for (filter, sort, stages, examined) in [
        ("{'m': 'a'}".to_owned(), "{}", fetched, [80, 80]),
        (format!("{{'m': 'a', 't': {hour}}}"), "{}", fetched, [10, 10]),
        (format!("{{'m': {{'e': 1}}, 't': {hour}}}"), "{'t': -1}", fetched, [10, 10]),
        ("{}".to_owned(), "{'m': 1, 't': 1}", fetched, [400, 400]),
        ("{'v': 3}".to_owned(), "{}", "COLLSCAN", [24, 400]),
        ("{'_id': 3}".to_owned(), "{'_id': 1}", "SORT COLLSCAN", [1, 400]),
    ] {
        assert_eq!(plan(&shop, &sorted(&filter, sort)), (stages.to_owned(), examined), "{filter}");
    }
    // For a stretch of time of all sources, no more is read than a few on each side of it.
    let (stages, [found, read]) = plan(&shop, &request(&format!("{{'t': {hour}}}")));
    assert_eq!((&*stages, found), (fetched, 50));
    assert!(read < 200, "{read}");
    let hinted = |hint| FindRequest { hint: Some(value(hint)), ..request("{'v': 3}") };
    assert_eq!(plan(&shop, &hinted("'m_1_t_1'")).1, [24, 400]);
    assert_eq!(plan(&shop, &hinted("{'m': 1, 't': 1}")).1, [24, 400]);
    assert_eq!(code(shop.explain("points", &hinted("{'_id': 1}"))), 2);
    let indexes = shop.describe_indexes("points").expect("listed");
    assert_eq!(texts(&indexes), "[{'v':2,'key':{'m':1,'t':1},'name':'m_1_t_1'}]");
    let spec = |text: &str| IndexSpec::parse(json(text).view()).expect("a spec");
    let made = |text| shop.create_indexes("points", &[spec(text)]);
    made("{'key': {'m': 1, 't': 1}, 'name': 'm_1_t_1'}").expect("there already");
    assert_eq!(shop.list_indexes("points").expect("listed").len(), 1);
    assert_eq!(code(made("{'key': {'m': 1, 't': 1}, 'name': 'other'}")), 85);
    assert_eq!(code(made("{'key': {'v': 1}, 'unique': true, 'name': 'v'}")), 72);
    made("{'key': {'m.e': 1}, 'name': 'e'}").expect("made");
    assert_eq!(plan(&shop, &request("{'m.e': 1}")), (fetched.to_owned(), [80, 80]));
    check_valid(&shop);
    assert_eq!(code(shop.drop_indexes("points", "m_1_t_1")), 72);
    assert_eq!(shop.drop_indexes("points", "*").expect("dropped"), 2);
}

/// Requests whose answers must not depend on how documents lie.
const FILTERS: &[&str] = &[
    "{}",
    "{'m': 'a'}",
    "{'m': {'$in': ['a', 'b', 1]}}",
    "{'m': null}",
    "{'m': {'$exists': false}}",
    "{'m': {'$ne': 'a'}}",
    "{'m': {'e': 1}}",
    "{'m.e': 1}",
    "{'m': 1}",
    "{'m': [1, 'a']}",
    "{'m': {'$type': 'array'}}",
    "{'m': {'$regex': '^a'}}",
    "{'m': 'a', 't': {'$lt': {'$date': 900000}}}",
    "{'t': {'$gte': {'$date': 600000}, '$lt': {'$date': 1200000}}}",
    "{'t': {'$gte': {'$date': 600000}}, 'v': 3}",
    "{'$or': [{'m': 'a', 't': {'$lt': {'$date': 900000}}}, {'m': 1}]}",
    "{'_id': 7}",
    "{'_id': {'$in': [3, 9, 400]}}",
    "{'v': {'$gt': 12}}",
];

fn same_answers(shop: &Database, what: &str) {
    for filter in FILTERS {
        for sort in ["{'_id': 1}", "{'m': 1, 't': 1}", "{'m': -1, 't': -1, '_id': 1}"] {
            let request = sorted(filter, sort);
            let [points, plain] = ["points", "plain"].map(|name| {
                let found = shop.find(name, &request).expect("right");
                found.collect::<Result<Vec<_>, _>>().expect("read")
            });
            assert_eq!(texts(&points), texts(&plain), "{what}: {filter} {sort}");
        }
        let [points, plain] =
            ["points", "plain"].map(|name| shop.count(name, &request(filter)).expect("right"));
        assert_eq!(points, plain, "{what}: {filter}");
    }
}

#[test]
fn it_answers_as_a_plain_collection_does() {
    for sources in
        [["'a'", "'ab'", "1", "{'e': 1}", ""], ["'a'", "1.5", "null", "[1, 'a']", "{'e': [1, 2]}"]]
    {
        let shop = series(OPTIONS);
        let documents = points(&sources);
        for name in ["points", "plain"] {
            assert_eq!(try_insert(&shop, name, &documents).count, 400);
        }
        same_answers(&shop, "in memory");
        let id = |n| point(n, sources[0], 60, 1);
        let stated = |filter: &str, update: &str| UpdateStatement {
            multi: true,
            ..statement(filter, update)
        };
        shop.commit("points", "").expect("committed");
        same_answers(&shop, "committed");
        shop.create_branch("side", None).expect("made");
        let side = Repository::open(shop.frond(), "shop@side").expect("there");
        for name in ["points", "plain"] {
            try_insert(&side, name, &[id(1_000), id(1_001)]);
            try_insert(&shop, name, &[id(1_002)]);
            update(&shop, name, stated("{'m': 'a'}", "{'$set': {'m': 'b'}}"));
            // Of what the other side moves that would be a conflict.
            delete(&side, name, "{'v': 5, 'm': {'$ne': 'a'}}");
        }
        same_answers(&side, "on a branch");
        same_answers(&shop, "changed");
        let merged = MergeRequest { merge_in: "side".to_owned(), ..MergeRequest::default() };
        let spec = IndexSpec::parse(json("{'key': {'v': 1}, 'name': 'v_1'}").view());
        shop.create_indexes("points", &[spec.expect("a spec")]).expect("made");
        side.commit("side", "").expect("committed");
        shop.commit("main", "").expect("committed");
        drop_collection(&shop, "plain");
        drop_collection(&side, "plain");
        shop.commit("main", "").expect("committed");
        side.commit("side", "").expect("committed");
        shop.merge(&merged).expect("merged");
        check_valid(&shop);
        let count = |filter| shop.count("points", &request(filter)).expect("right");
        assert_eq!(count("{'_id': {'$gte': 1000}}"), 3);
        assert_eq!(count("{'m': 'a', '_id': {'$lt': 1000}}"), 0);
    }
}

fn drop_collection(database: &Database, name: &str) {
    assert!(database.drop_collection(name).expect("dropped"));
}

#[test]
fn ids_need_not_differ() {
    let shop = series(OPTIONS);
    let same = vec![point(1, "'a'", 5, 1); 30];
    assert_eq!(try_insert(&shop, "points", &same).count, 30);
    check_valid(&shop);
    assert_eq!(shop.count("points", &request("{'m': 'a'}")).expect("right"), 30);
    shop.commit("thirty", "").expect("committed");
    assert_eq!(delete(&shop, "points", "{'_id': 1}"), 30);
    let unmade = |text: &str| {
        let report = try_insert(&shop, "points", &jsons(text));
        report.errors.first().map_or(0, |error| error.error.code.number())
    };
    assert_eq!(unmade("[{'m': 'a', 't': 5}]"), 2);
    assert_eq!(unmade("[{'m': 'a'}]"), 2);
    let long = format!("[{{'m': '{}', 't': {{'$date': 5}}}}]", "x".repeat(5_000));
    assert_eq!(unmade(&long), 10334);
}

#[test]
fn sources_are_updated_and_nothing_else() {
    let shop = series(OPTIONS);
    try_insert(&shop, "points", &points(&["{'e': 1}", "{'e': 2}", "'a'", "'b'", "'c'"]));
    let run = |multi, filter: &str, change: &str| {
        let statement = UpdateStatement { multi, ..statement(filter, change) };
        let report = shop
            .update("points", &[statement], true, Durability::Synced)
            .expect("the request is right");
        match report.errors.first() {
            Some(error) => Err(error.error.code.number()),
            None => Ok((report.matched, report.modified)),
        }
    };
    assert_eq!(run(true, "{'m.e': 1}", "{'$set': {'m.f': 2}}"), Ok((80, 80)));
    assert_eq!(run(true, "{'m.e': 1}", "{'$set': {'m.f': 2}}"), Ok((80, 0)));
    assert_eq!(run(true, "{'m': {'$type': 'object'}}", "{'$unset': {'m': 1}}"), Ok((160, 160)));
    for (multi, filter, change) in [
        (false, "{'m': 'a'}", "{'$set': {'m': 'b'}}"),
        (true, "{'v': 1}", "{'$set': {'m': 'b'}}"),
        (true, "{'m': 'a'}", "{'$set': {'v': 1}}"),
        (true, "{'m': 'a'}", "{'$set': {'t': 1}}"),
    ] {
        assert_eq!(run(multi, filter, change), Err(72), "{filter} {change}");
    }
    check_valid(&shop);
    assert_eq!(shop.count("points", &request("{'m': null}")).expect("right"), 160);
    assert_eq!(delete(&shop, "points", "{'v': 3, 'm': null}"), 9);
    check_valid(&shop);
}

#[test]
fn points_expire_by_their_time() {
    let options = "{'timeseries': {'timeField': 't', 'metaField': 'm'}, 'expireAfterSeconds': 60}";
    let shop = series(options);
    let mut documents = points(&["'a'", "'b'", "'c'", "'d'", "'e'"]);
    documents.extend((0..1_000).map(|n| point(n, "'old'", i64::from(n), 0)));
    documents.push(point(1, "'later'", 1 << 40, 0));
    try_insert(&shop, "points", &documents);
    assert_eq!(shop.frond().expire_documents(&Interrupt::default()).expect("done"), 1_400);
    assert_eq!(shop.count("points", &FindRequest::default()).expect("right"), 1);
    check_valid(&shop);
    shop.change_expiry("points", None).expect("changed");
    try_insert(&shop, "points", &[point(1, "'a'", 1, 1)]);
    assert_eq!(shop.frond().expire_documents(&Interrupt::default()).expect("done"), 0);
}

#[test]
fn out_writes_a_time_series() {
    let shop = series(OPTIONS);
    try_insert(&shop, "points", &points(&["'a'", "'b'", "'c'", "'d'", "'e'"]));
    insert(&shop, "plain", "[{'_id': 1}]");
    let out = |target: &str, options: &str| {
        let pipeline = format!(
            "[{{'$match': {{'v': 3}}}}, {{'$set': {{'_id': 1}}}}, {{'$out': {{'db': 'shop', \
             'coll': '{target}'{options}}}}}]"
        );
        aggregate(&shop, Some("points"), &pipeline).map(|_| ()).map_err(|error| error.code.number())
    };
    let kind = ", 'timeseries': {'timeField': 't', 'metaField': 'm'}";
    assert_eq!(out("made", kind), Ok(()));
    let listed = shop.list_collections().expect("listed");
    assert!(listed.iter().any(|info| info.name == "made" && info.is_series()));
    assert_eq!(shop.count("made", &request("{'m': 'a'}")).expect("right"), 5);
    assert_eq!(out("made", ""), Ok(()));
    assert_eq!(out("points", ""), Ok(()));
    check_valid(&shop);
    assert_eq!(out("plain", kind), Err(7_268_700));
    assert_eq!(out("made", ", 'timeseries': {'timeField': 't'}"), Err(7_268_702));
    let merge = "[{'$merge': {'into': 'made'}}]";
    assert_eq!(
        aggregate(&shop, Some("plain"), merge).map_err(|error| error.code.number()),
        Err(166)
    );
    assert_eq!(code(shop.rename_collection("made", "other", false)), 166);
}

/// Documents of a find, all of them.
fn all(shop: &Database, name: &str, request: &FindRequest) -> Vec<DocumentBuf> {
    shop.find(name, request).expect("right").collect::<Result<_, _>>().expect("read")
}

#[test]
fn buckets_are_read_and_inserted() {
    let shop = series(OPTIONS);
    let sources = ["'a'", "{'e': 1}", "[1, 'a']", "", "'b'"];
    let mut documents = points(&sources);
    documents.push(json("{'_id': 1000, 'w': [1], 'm': 'a', 't': {'$date': 60000}, 'v': 1}"));
    documents.push(json(
        "{'_id': {'x': 1}, 't': {'$date': -5}, 'm': 1.5, 'ts': {'$timestamp': {'t': 0, 'i': 0}}}",
    ));
    try_insert(&shop, "points", &documents[..200]);
    shop.commit("some", "").expect("committed");
    try_insert(&shop, "points", &documents[200..]);
    let buckets = all(&shop, "system.buckets.points", &request("{}"));
    assert!((7..40).contains(&buckets.len()), "{}", buckets.len());
    let ids: std::collections::HashSet<_> =
        buckets.iter().map(|bucket| format!("{:?}", bucket.get("_id"))).collect();
    assert_eq!(ids.len(), buckets.len());
    shop.create_collection("again", json(OPTIONS).view()).expect("made");
    assert_eq!(try_insert(&shop, "system.buckets.again", &buckets).count, buckets.len() as u64);
    let by_id = sorted("{}", "{'_id': 1}");
    let [before, after] = ["points", "again"].map(|name| all(&shop, name, &by_id));
    assert_eq!(before.len(), 402);
    assert_eq!(before, after);
    // As after a restore that is repeated.
    let again = shop.insert("system.buckets.again", &buckets, false, Durability::Synced);
    let again = again.expect("each is refused");
    assert_eq!((again.count, again.errors.len()), (0, buckets.len()));
    assert!(again.errors.iter().all(|error| error.error.code.number() == 11000));
    assert_eq!(all(&shop, "again", &by_id), before);
    // Buckets are searched by what they are.
    let of_a = request("{'meta': 'a'}");
    let found = all(&shop, "system.buckets.points", &of_a);
    assert!(!found.is_empty() && found.len() < buckets.len());
    let count = shop.count("system.buckets.points", &of_a).expect("counted");
    assert_eq!(count, found.len() as u64);
    let metas = shop.distinct("system.buckets.points", "meta", &request("{}")).expect("right");
    assert!(metas.contains(&value("'a'")));
    let stages = "[{'$match': {'meta': {'e': 1}}}, {'$project': {'n': {'$size': {'$objectToArray': \
                  '$data.t'}}}}, {'$group': {'_id': null, 'n': {'$sum': '$n'}}}]";
    let counted = aggregate(&shop, Some("system.buckets.points"), stages).expect("right");
    assert_eq!(texts(&counted), "[{'_id':null,'n':80}]");
}

#[test]
fn only_buckets_of_a_time_series_are_inserted() {
    let shop = series(OPTIONS);
    insert(&shop, "plain", "[{'_id': 1}]");
    let bucket = |text: &str| jsons(&format!("[{text}]"));
    let insert = |name: &str, documents: &[DocumentBuf]| {
        let report = shop.insert(name, documents, true, Durability::Synced);
        report.map(|report| report.errors.first().map_or(0, |error| error.error.code.number()))
    };
    let empty = bucket("{'_id': 1}");
    for name in ["system.buckets.plain", "system.buckets.none", "system.other"] {
        assert_eq!(code(insert(name, &empty)), 73, "{name}");
    }
    for (text, expected) in [
        ("{'_id': 1}", 121),
        ("{'control': {'version': 9}, 'data': {'t': {}}}", 121),
        ("{'control': {'version': 1}, 'data': {}}", 121),
        ("{'control': {'version': 1}, 'data': {'t': 1}}", 121),
        ("{'control': {'version': 1}, 'data': {'t': {'0': {'$date': 1}}, 'v': {'1': 1}}}", 121),
        ("{'control': {'version': 1}, 'data': {'t': {'0': {'$date': 1}}, 'm': {'0': 1}}}", 121),
        ("{'control': {'version': 1}, 'data': {'t': {'0': 5}}}", 2),
        ("{'control': {'version': 2}, 'data': {'t': {'0': {'$date': 1}}}}", 121),
        ("{'control': {'version': 1}, 'data': {'t': {'0': {'$date': 1}, '1': 5}}}", 2),
        ("{'control': {'version': 1}, 'data': {'t': {}}}", 0),
    ] {
        assert_eq!(
            insert("system.buckets.points", &bucket(text)).expect("done"),
            expected,
            "{text}"
        );
        assert_eq!(shop.count("points", &FindRequest::default()).expect("right"), 0, "{text}");
    }
    let column = |base64: &str| format!("{{'$binary': {{'base64': '{base64}', 'subType': '07'}}}}");
    let compressed = format!(
        "{{'_id': {{'$oid': '65a6eb806ffc9fa4280ecac4'}}, 'control': {{'version': 2, 'count': 2}}, \
         'meta': 0, 'data': {{'t': {}, 'a': {}, '_id': {}}}}}",
        column("CQAYhggUjQEAAIAOAAAAAAAAAAA="),
        column("AQAAAAAAAAAAAJAuAAAAAAAAAAA="),
        column("BwBlpuun5tLoSOCMN1CALgAAAAAAAAAA"),
    );
    assert_eq!(insert("system.buckets.points", &bucket(&compressed)).expect("done"), 0);
    let expected = "[{'_id':{'$oid':'65a6eba7e6d2e848e08c3750'},'t':{'$date':'2024-01-16T20:48:39.448Z'},\
                    'm':0,'a':0.0},{'_id':{'$oid':'65a6eba7e6d2e848e08c3751'},\
                    't':{'$date':'2024-01-16T20:48:39.448Z'},'m':0,'a':1.0}]";
    assert_eq!(texts(&all(&shop, "points", &sorted("{}", "{'_id': 1}"))), expected);
}
