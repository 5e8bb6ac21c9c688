//! Goal: several threads, each of which reads a part, give the same answer as one, byte by byte,
//! errors included. Method: random pipelines, counts, distinct values and sorted finds over random
//! documents, some of which lie over the trees, some are a transaction's own, and some are a
//! branch's committed ones; by one thread, and in 2 to 7 parts.

use frond_db::catalog::IndexSpec;
use frond_db::{AggregateRequest, Database, Error, FindRequest, Frond, FrondOptions, Interrupt};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf, decimal};
use frond_query::Collation;
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;

use crate::support::*;

const INDEXES: &[&str] = &[
    "{'key': {'a': 1}}",
    "{'key': {'g': -1, 'p': 1}}",
    "{'key': {'s': 1}, 'name': 'collated', 'collation': {'locale': 'en', 'strength': 2}}",
    "{'key': {'p': 1}, 'name': 'partial', 'partialFilterExpression': {'g': {'$gt': 2}}}",
    "{'key': {'tags': 1}, 'name': 'multikey'}",
];

const FILTERS: &[&str] = &[
    "{}",
    "{'g': {'$gte': 3}}",
    "{'a': {'$lt': 60}, 'p': {'$gt': 10}}",
    "{'tags': 'x'}",
    "{'s': {'$in': ['one', 'Two']}}",
    "{'$expr': {'$gt': [{'$add': ['$p', 1]}, 20]}}",
    "{'_id': {'$gte': 40, '$lt': 350}, 'g': {'$ne': 2}}",
    "{'a': {'$in': [1, 5, 9, 40, 41, 42, 43]}, 'd': {'$exists': true}}",
    "{'a': {'$gte': 10}, 's': 'one'}",
    "{'s': {'$ne': 'two'}, 'p': {'$lt': 50}}",
    // Fails for one document of many.
    "{'$expr': {'$gt': [{'$divide': [1, {'$subtract': ['$a', 77]}]}, 0.05]}}",
];

/// Stages that look at one document at a time.
const EACH: &[&str] = &[
    "{'$match': {'g': {'$ne': 4}}}",
    "{'$match': {'$expr': {'$lt': ['$p', 60]}}}",
    "{'$set': {'m': {'$multiply': ['$p', 2]}, 'k': {'$concat': ['k', '$s']}}}",
    "{'$project': {'g': 1, 'p': 1, 's': 1, 'tags': 1, 'a': 1, 'd': 1}}",
    "{'$unset': 'n'}",
    "{'$unwind': '$tags'}",
    "{'$unwind': {'path': '$tags', 'includeArrayIndex': 'at', 'preserveNullAndEmptyArrays': true}}",
    "{'$replaceWith': {'$mergeObjects': ['$$ROOT', {'r': '$g', 'p': {'$abs': '$p'}}]}}",
    "{'$redact': {'$cond': [{'$eq': ['$g', 1]}, '$$PRUNE', '$$KEEP']}}",
    "{'$addFields': {'z': {'$toInt': {'$ifNull': ['$a', 0]}}}}",
    "{'$lookup': {'from': 'things', 'localField': 'g', 'foreignField': 'a', 'as': 'x'}}",
    "{'$lookup': {'from': 'things', 'let': {'g': '$g'}, 'as': 'x', 'pipeline': [
        {'$match': {'$expr': {'$eq': ['$a', '$$g']}}}, {'$project': {'s': 1}}, {'$limit': 3}]}}",
    "{'$graphLookup': {'from': 'things', 'startWith': '$g', 'connectFromField': 'g',
        'connectToField': 'a', 'as': 'x', 'maxDepth': 1}}",
    // Fail for some documents.
    "{'$set': {'q': {'$divide': [10, {'$subtract': ['$a', 33]}]}}}",
    "{'$replaceWith': {'$cond': [{'$eq': ['$a', 50]}, 5, '$$ROOT']}}",
    // Stop what is behind them from being divided.
    "{'$limit': 120}",
    "{'$skip': 30}",
];

const IDS: &[&str] = &[
    "null",
    "'$g'",
    "'$s'",
    "{'g': '$g', 's': '$s'}",
    "'$tags'",
    "{'$mod': ['$a', 7]}",
    "'$a'",
    "'$missing'",
];

const ACCUMULATORS: &[&str] = &[
    "{'$sum': 1}",
    "{'$sum': '$p'}",
    "{'$sum': '$wide'}",
    "{'$sum': '$d'}",
    "{'$sum': '$long'}",
    "{'$avg': '$p'}",
    "{'$avg': '$a'}",
    "{'$avg': {'$multiply': ['$p', '$g']}}",
    "{'$count': {}}",
    "{'$min': '$p'}",
    "{'$max': '$s'}",
    "{'$min': '$mixed'}",
    "{'$max': '$mixed'}",
    "{'$first': '$mixed'}",
    "{'$last': '$mixed'}",
    "{'$first': '$n'}",
    "{'$last': '$n'}",
    "{'$push': '$mixed'}",
    "{'$push': {'p': '$p', 's': '$s'}}",
    "{'$addToSet': '$mixed'}",
    "{'$addToSet': '$s'}",
    "{'$mergeObjects': '$n'}",
    "{'$mergeObjects': '$mixed'}",
    "{'$firstN': {'input': '$p', 'n': 3}}",
    "{'$lastN': {'input': '$mixed', 'n': 4}}",
    "{'$firstN': {'input': '$p', 'n': {'$cond': [{'$eq': ['$s', 'one']}, 1, 3]}}}",
    "{'$minN': {'input': '$mixed', 'n': 3}}",
    "{'$maxN': {'input': '$mixed', 'n': 3}}",
    "{'$top': {'sortBy': {'g': 1}, 'output': '$mixed'}}",
    "{'$topN': {'sortBy': {'mixed': 1}, 'output': '$_id', 'n': 3}}",
    "{'$bottomN': {'sortBy': {'mixed': 1}, 'output': '$_id', 'n': 3}}",
    "{'$bottom': {'sortBy': {'g': 1}, 'output': '$mixed'}}",
    "{'$stdDevPop': '$p'}",
    "{'$stdDevSamp': '$a'}",
    "{'$stdDevPop': '$mixed'}",
    "{'$avg': '$d'}",
    "{'$median': {'input': '$p', 'method': 'approximate'}}",
    "{'$percentile': {'input': '$p', 'p': [0.5, 0.9], 'method': 'approximate'}}",
];

const TAILS: &[&str] = &[
    "{'$sort': {'_id': 1}}",
    "{'$limit': 5}",
    "{'$set': {'later': {'$size': {'$ifNull': ['$x', []]}}}}",
    "{'$match': {'_id': {'$ne': 2}}}",
    "{'$group': {'_id': null, 'x': {'$push': '$_id'}}}",
    "{'$count': 'all'}",
    "{'$unwind': {'path': '$x', 'preserveNullAndEmptyArrays': true}}",
    "{'$bucketAuto': {'groupBy': '$w', 'buckets': 3, 'output': {'x': {'$push': '$_id'}}}}",
    "{'$setWindowFields': {'partitionBy': '$w', 'sortBy': {'_id': -1}, 'output': {
        'v': {'$sum': '$p', 'window': {'documents': [-2, 1]}}}}}",
];

/// Stages that no part of the documents goes through by itself.
const WHOLE: &[&str] = &[
    "{'$densify': {'field': 'a', 'partitionByFields': ['s'],
        'range': {'step': 9, 'bounds': [0, 50]}}}",
    "{'$fill': {'sortBy': {'_id': 1}, 'output': {'p': {'method': 'locf'}}}}",
    "{'$group': {'_id': '$g', 'x': {'$maxN': {'input': '$mixed', 'n': 3}}}}",
    "{'$limit': 300}",
    "{'$unionWith': 'none'}",
    "{'$set': {'last': 1}}",
];

fn one<'a>(random: &mut Random, choices: &[&'a str]) -> &'a str {
    choices[random.below(choices.len())]
}

/// The common facts about the documents of one run.
struct Kind {
    has_wide: bool,
    has_decimals: bool,
}

fn document(random: &mut Random, id: i32, kind: &Kind) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", Value::Int32(id)).append("a", Value::Int32(random.below(100) as i32));
    match random.below(3) {
        0 => out.append("g", Value::Double(random.below(6) as f64)),
        _ => out.append("g", Value::Int32(random.below(6) as i32)),
    };
    if !random.one_in(9) {
        out.append("p", Value::Double(random.below(9999) as f64 / 100.0));
    }
    if kind.has_wide {
        let power = random.below(60) as i32 - 30;
        out.append("wide", Value::Double(10_f64.powi(power) * (random.below(9) as f64 - 4.0)));
    }
    if kind.has_decimals {
        let number = format!("{}.{}", random.below(50), random.below(1000));
        let number = decimal::parse(&number).expect("digits");
        out.append("d", Value::Decimal128(number));
    } else if random.one_in(3) {
        out.append("d", Value::Double(random.below(100) as f64 * 0.1));
    }
    out.append("long", Value::Int64(random.next() as i64 >> random.below(40)));
    out.append("s", Value::String(one(random, &["one", "One", "two", "Two", "três"])));
    if !random.one_in(5) {
        out.begin_array("tags");
        for _ in 0..random.below(4) {
            out.push(Value::String(one(random, &["x", "y", "z"])));
        }
        out.end();
    }
    if random.one_in(3) {
        let name = one(random, &["u", "v", "w"]);
        out.begin_document("n").append(name, Value::Int32(random.below(4) as i32)).end();
    }
    match random.below(6) {
        0 => out.append("mixed", Value::Int32(random.below(4) as i32)),
        1 => out.append("mixed", Value::Double(random.below(4) as f64)),
        2 => out.append("mixed", Value::Int64(random.below(4) as i64)),
        3 => out.append("mixed", Value::String(one(random, &["b", "B", "c"]))),
        4 => out.append("mixed", Value::Null),
        _ => &mut out,
    };
    out.build()
}

fn pipeline(random: &mut Random) -> String {
    let mut stages: Vec<String> = Vec::new();
    if random.one_in(2) {
        stages.push(format!("{{'$match': {}}}", one(random, FILTERS)));
    }
    for _ in 0..random.below(4) {
        // The last ones seldom.
        let most = if random.one_in(4) { EACH.len() } else { EACH.len() - 4 };
        stages.push(one(random, &EACH[..most]).to_owned());
    }
    stages.push(match random.below(12) {
        // Several pipelines, some of which gather.
        11 => {
            let nested = |random: &mut Random| {
                let gathers = gathering(random);
                let tail = one(random, TAILS);
                match random.below(4) {
                    0 => format!("[{tail}]"),
                    1 => format!("[{}, {gathers}]", one(random, EACH)),
                    2 => format!("[{gathers}, {tail}]"),
                    _ => format!("[{gathers}]"),
                }
            };
            let facets =
                (0..1 + random.below(3)).map(|facet| format!("'f{facet}': {}", nested(random)));
            format!("{{'$facet': {{{}}}}}", facets.collect::<Vec<_>>().join(", "))
        }
        _ => gathering(random),
    });
    for _ in 0..random.below(3) {
        stages.push(one(random, TAILS).to_owned());
    }
    format!("[{}]", stages.join(", "))
}

/// Mostly a stage that gathers its documents.
fn gathering(random: &mut Random) -> String {
    match random.below(12) {
        10 => {
            let by = one(random, &["", "'partitionBy': '$g', ", "'partitionBy': '$s', "]);
            let sort = one(random, &["{'mixed': 1}", "{'p': -1, 'a': 1}"]);
            let function = one(
                random,
                &[
                    "{'$sum': '$p', 'window': {'documents': ['unbounded', 'current']}}",
                    "{'$push': '$mixed', 'window': {'documents': [-1, 1]}}",
                    "{'$documentNumber': {}}",
                    "{'$rank': {}}",
                    "{'$shift': {'output': '$_id', 'by': -2}}",
                    "{'$locf': '$d'}",
                ],
            );
            format!(
                "{{'$setWindowFields': {{{by}'sortBy': {sort}, 'output': {{'w': {function}}}}}}}"
            )
        }
        9 | 11 => one(random, WHOLE).to_owned(),
        0 => "{'$count': 'n'}".to_owned(),
        1 => "{'$sort': {'g': 1, 's': -1}}".to_owned(),
        2 => format!("{{'$sort': {{'mixed': 1}}}}, {{'$limit': {}}}", 1 + random.below(50)),
        3 => format!("{{'$sortByCount': {}}}", one(random, &["'$s'", "'$g'", "'$tags'"])),
        4 => "{'$bucket': {'groupBy': '$p', 'boundaries': [0, 20, 50], 'default': 'other', \
              'output': {'n': {'$sum': 1}, 'x': {'$push': '$s'}}}}"
            .to_owned(),
        5 => {
            let by = one(random, &["'$p'", "'$a'", "'$mixed'", "'$s'", "{'$mod': ['$a', 7]}"]);
            let output =
                one(random, &["", ", 'output': {'n': {'$sum': '$p'}, 'x': {'$push': '$_id'}}"]);
            let granularity = one(random, &["", "", ", 'granularity': 'R5'"]);
            let count = 1 + random.below(7);
            format!(
                "{{'$bucketAuto': {{'groupBy': {by}, 'buckets': {count}{output}{granularity}}}}}"
            )
        }
        _ => {
            let mut fields = vec![format!("'_id': {}", one(random, IDS))];
            // Most of them can be divided, so few of each.
            for field in 0..1 + random.below(3) {
                fields.push(format!("'f{field}': {}", one(random, ACCUMULATORS)));
            }
            format!("{{'$group': {{{}}}}}", fields.join(", "))
        }
    }
}

/// The answer, as far as a client sees it.
type Answer = Result<Vec<Vec<u8>>, String>;

fn answer(documents: Result<Vec<DocumentBuf>, Error>) -> Answer {
    let bytes = |document: DocumentBuf| document.as_bytes().to_vec();
    let documents = documents.map_err(|error| format!("{:?} {error}", error.code))?;
    Ok(documents.into_iter().map(bytes).collect())
}

/// One random request, to be run as often as one likes.
enum Request {
    Stages(AggregateRequest),
    Count(FindRequest),
    Distinct(String, FindRequest),
    Find(FindRequest),
}

impl Request {
    fn random(random: &mut Random) -> Request {
        let by = Collation::parse(json("{'locale': 'en', 'strength': 2}").view()).expect("right");
        let collation = random.one_in(4).then_some(by);
        let hints = ["'a_1'", "'g_-1_p_1'", "'collated'", "'partial'", "'multikey'", "'_id_'"];
        let hint = random.one_in(3).then(|| value(one(random, &hints)));
        if !random.one_in(4) {
            return Request::Stages(AggregateRequest {
                pipeline: value(&pipeline(random)),
                variables: None,
                collation,
                hint,
                in_memory_only: random.one_in(3),
                interrupt: Interrupt::default(),
            });
        }
        let filter = Some(json(one(random, FILTERS)));
        let find = FindRequest { filter, hint, collation, ..FindRequest::default() };
        match random.below(3) {
            0 => Request::Count(find),
            1 => Request::Distinct(one(random, &["s", "mixed", "tags", "n.u"]).to_owned(), find),
            _ => Request::Find(FindRequest {
                sort: match random.below(4) {
                    0 => Some(json("{'mixed': 1}")),
                    1 => Some(json("{'s': -1, 'g': 1}")),
                    _ => None,
                },
                skip: random.below(20) as u64,
                limit: random.one_in(2).then(|| 1 + random.below(60) as u64),
                in_memory_only: random.one_in(3),
                ..find
            }),
        }
    }

    fn run(&self, database: &Database, things: &str) -> Answer {
        match self {
            Request::Stages(request) => {
                let found = database.aggregate(Some(things), request);
                answer(found.and_then(Iterator::collect))
            }
            Request::Count(request) => {
                let count = database.count(things, request);
                count.map(|count| vec![count.to_le_bytes().to_vec()]).map_err(|it| it.to_string())
            }
            Request::Distinct(path, request) => {
                let values = database.distinct(things, path, request);
                let bytes = |value: &ValueBuf| frond_doc::document! { "": value.as_value() };
                answer(values.map(|values| values.iter().map(bytes).collect()))
            }
            Request::Find(request) => answer(run(database, things, request)),
        }
    }

    fn text(&self) -> String {
        match self {
            Request::Stages(request) => format!("{request:?}"),
            Request::Count(request) => format!("count {request:?}"),
            Request::Distinct(path, request) => format!("distinct {path} {request:?}"),
            Request::Find(request) => format!("find {request:?}"),
        }
    }
}

fn check(random: &mut Random, frond: &Frond, database: &Database, what: &str, times: usize) {
    for _ in 0..times {
        let request = Request::random(random);
        let things = one(random, &["things", "things", "things", "seen"]);
        frond.cores().divide_into(1);
        let expected = request.run(database, things);
        let parts = 2 + random.below(6);
        frond.cores().divide_into(parts);
        let found = request.run(database, things);
        assert!(found == expected, "{what}, {things}, in {parts} parts: {}\n{}", request.text(), {
            let text = |answer: &Answer| match answer {
                Ok(documents) => documents
                    .iter()
                    .map(|bytes| DocumentBuf::from_validated(bytes.clone().into()))
                    .map(|document| text(&document))
                    .collect::<Vec<_>>()
                    .join("\n"),
                Err(error) => error.clone(),
            };
            format!("{}\n-- expected\n{}", text(&found), text(&expected))
        });
    }
}

/// Documents some of which are folded, some lie in runs or memtables, some were changed and some
/// removed since.
fn filled(random: &mut Random, frond: &Frond) -> Repository {
    let shop = Repository::open(frond, "shop").expect("a proper name");
    let kind = Kind { has_wide: random.one_in(3), has_decimals: random.one_in(4) };
    let count = 150 + random.below(300) as i32;
    let mut make = |from: i32, to: i32| {
        let batch: Vec<DocumentBuf> = (from..to).map(|id| document(random, id, &kind)).collect();
        assert_eq!(try_insert(&shop, "things", &batch).count, batch.len() as u64);
    };
    make(0, count);
    let specs = INDEXES.iter().map(|spec| IndexSpec::parse(json(spec).view()).expect("an index"));
    let specs: Vec<IndexSpec> = specs.collect();
    shop.create_indexes("things", &specs).expect("made");
    let seen = "{'viewOn': 'things', 'pipeline': [
        {'$match': {'g': {'$ne': 4}}}, {'$set': {'m': {'$add': ['$a', 1]}}}]}";
    shop.create_collection("seen", json(seen).view()).expect("made");
    frond.engine().checkpoint().expect("folded");
    make(count, count + 60);
    frond.flush().expect("flushed");
    make(count + 60, count + 90);
    assert!(0 < delete(&shop, "things", "{'_id': {'$gte': 20, '$lt': 50}}"));
    let changed = frond_db::UpdateStatement {
        multi: true,
        ..statement("{'_id': {'$gte': 90, '$lt': 120}}", "{'$set': {'p': 7.25, 's': 'one'}}")
    };
    update(&shop, "things", changed);
    shop
}

#[test]
fn parts_answer_what_one_thread_answers() {
    let mut divided = 0;
    for_seeds(12, |mut random| {
        // Some of what is gathered has to go to files, or is refused.
        let options = FrondOptions {
            stage_memory_bytes_max: random.one_in(2).then_some(40 << 10),
            ..FrondOptions::default()
        };
        let disk = SimDisk::new(random.next());
        let frond = frond_vcs::open_on(&disk.machine(), options).expect("opens");
        let shop = filled(&mut random, &frond);
        check(&mut random, &frond, &shop, "the working state", 60);
        shop.commit("one", "a").expect("committed");
        shop.create_branch("side", None).expect("made");
        let side = Repository::open(&frond, "shop@side").expect("opens");
        check(&mut random, &frond, &side, "a branch", 20);
        insert(&side, "things", "[{'_id': 10000, 'a': 3, 'p': 1.5}, {'_id': -1, 'g': 2}]");
        check(&mut random, &frond, &side, "a branch that was written", 20);
        let transaction = frond.begin();
        let inside = transaction.database("shop").expect("opens");
        insert(&inside, "things", "[{'_id': 20000, 'a': 33, 'p': 2.5}, {'_id': -5, 'g': 1}]");
        delete(&inside, "things", "{'_id': {'$gte': 200, '$lt': 230}}");
        check(&mut random, &frond, &inside, "a transaction", 30);
        transaction.abort();
        divided += frond.cores().divided_count();
    });
    assert_met("queries divided", divided, 300);
}

/// A scan that reads little, or has no core beside its own, isn't divided.
#[test]
fn large_scans_are_divided_while_a_core_is_idle() {
    let options = FrondOptions { query_cores_max: Some(2), ..FrondOptions::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let make = |id| frond_doc::document! { "_id": Value::Int32(id), "g": Value::Int32(id % 10) };
    let batch: Vec<DocumentBuf> = (0..40_000).map(make).collect();
    assert_eq!(try_insert(&shop, "things", &batch).count, 40_000);
    frond.engine().checkpoint().expect("folded");
    let grouped = |matched: &str| {
        let group = "{'$group': {'_id': '$g', 'n': {'$sum': '$_id'}}}";
        let pipeline = format!("[{{'$match': {matched}}}, {group}]");
        aggregate(&shop, Some("things"), &pipeline).expect("the pipeline is right")
    };
    let others = [frond.cores().enter(), frond.cores().enter()];
    let expected = grouped("{}");
    assert_eq!(frond.cores().divided_count(), 0, "both cores are used");
    drop(others);
    // A query that ran lately counts as running.
    let begun = std::time::Instant::now();
    while frond.cores().divided_count() == 0 {
        assert!(begun.elapsed().as_secs() < 60, "nothing is divided");
        assert_eq!(grouped("{}"), expected);
    }
    assert_eq!(grouped("{'_id': {'$lt': 1000}}").len(), 10);
    assert_eq!(frond.cores().divided_count(), 1, "it isn't worth it");
    // So is one over a view, or with several pipelines.
    let view = json("{'viewOn': 'things', 'pipeline': [{'$set': {'h': {'$mod': ['$g', 3]}}}]}");
    shop.create_collection("seen", view.view()).expect("made");
    let by = "{'$group': {'_id': '$h', 'n': {'$sum': 1}}}, {'$sort': {'_id': 1}}";
    for (count, source, pipeline) in [
        (2, "seen", format!("[{by}]")),
        (3, "seen", format!("[{{'$facet': {{'all': [{{'$count': 'n'}}], 'by': [{by}]}}}}]")),
        (
            4,
            "things",
            "[{'$setWindowFields': {'sortBy': {'_id': 1}, 'output': {'n': {
            '$documentNumber': {}}}}}]"
                .to_owned(),
        ),
        (5, "things", "[{'$group': {'_id': '$g', 'd': {'$stdDevPop': '$_id'}}}]".to_owned()),
        (
            6,
            "seen",
            "[{'$group': {'_id': '$h', 'm': {
            '$median': {'input': '$_id', 'method': 'approximate'}}}}]"
                .to_owned(),
        ),
        (
            7,
            "things",
            "[{'$group': {'_id': '$g', 'd': {'$sum': {'$toDecimal': '$_id'}}}}]".to_owned(),
        ),
    ] {
        while frond.cores().divided_count() < count {
            assert!(begun.elapsed().as_secs() < 60, "{pipeline} over {source} isn't divided");
            aggregate(&shop, Some(source), &pipeline).expect("the pipeline is right");
        }
    }
}

/// Finds that don't sort are read ahead by rounds, behind a first piece that is read alone, and as
/// long as what passes is little.
#[test]
fn finds_are_divided_once_they_read_much() {
    let options = FrondOptions { query_cores_max: Some(2), ..FrondOptions::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let pad = "x".repeat(100);
    let make = |id| frond_doc::document! { "_id": id, "g": id % 10_000, "pad": &pad };
    for first in (0..100_000).step_by(10_000) {
        let batch: Vec<DocumentBuf> = (first..first + 10_000_i32).map(make).collect();
        assert_eq!(try_insert(&shop, "things", &batch).count, 10_000);
    }
    frond.engine().checkpoint().expect("folded");
    let ids = |filter: &str, limit: Option<u64>| -> Vec<i64> {
        let request = FindRequest { limit, ..request(filter) };
        let found = run(&shop, "things", &request).expect("found");
        found.iter().filter_map(|it| it.get("_id")?.as_integer()).collect()
    };
    let divided = |ask: &dyn Fn()| {
        let before = frond.cores().divided_count();
        ask();
        frond.cores().divided_count() - before
    };
    let few: Vec<i64> = (0..10).map(|thousand| thousand * 10_000 + 77).collect();
    let others = [frond.cores().enter(), frond.cores().enter()];
    assert_eq!(divided(&|| assert_eq!(ids("{'g': 77}", None), few)), 0, "both cores are used");
    drop(others);
    // A query that ran lately counts as running.
    frond_store::io::pause(std::time::Duration::from_millis(100));
    assert!(divided(&|| assert_eq!(ids("{'g': 77}", None), few)) > 1);
    assert_eq!(divided(&|| assert_eq!(ids("{'g': 77}", Some(1)), few[..1])), 0, "it is near");
    let all: Vec<i64> = (0..100_000).collect();
    assert_eq!(divided(&|| assert_eq!(ids("{'pad': {'$gt': ''}}", None), all)), 0, "much passes");
    let stages = "[{'$match': {'g': 77}}, {'$set': {'m': 1}}, {'$project': {'_id': 1}}]";
    let aggregated = || {
        let found = aggregate(&shop, Some("things"), stages).expect("right");
        let ids = found.iter().filter_map(|it| it.get("_id")?.as_integer());
        assert!(ids.eq(few.iter().copied()));
    };
    assert!(divided(&aggregated) > 1, "stages that gather nothing");
}

/// Stages that gather nothing run by rounds, behind what is read and behind windows, whose
/// partitions are computed apart.
#[test]
fn stages_are_run_by_rounds() {
    let options = FrondOptions { query_cores_max: Some(2), ..FrondOptions::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let make = |id| frond_doc::document! { "_id": id, "g": id % 100, "a": id % 7 };
    for first in (0..70_000).step_by(10_000) {
        let batch: Vec<DocumentBuf> = (first..first + 10_000_i32).map(make).collect();
        assert_eq!(try_insert(&shop, "things", &batch).count, 10_000);
    }
    insert(&shop, "few", "[{'_id': 0}, {'_id': 5}]");
    let index = IndexSpec::parse(json("{'key': {'a': 1}}").view()).expect("an index");
    shop.create_indexes("things", &[index]).expect("made");
    frond.engine().checkpoint().expect("folded");
    let windows = "{'$setWindowFields': {'partitionBy': '$g', 'sortBy': {'_id': 1}, 'output': {
        'n': {'$sum': '$a', 'window': {'documents': ['unbounded', 'current']}}}}}";
    let lookup =
        "{'$lookup': {'from': 'few', 'localField': 'a', 'foreignField': '_id', 'as': 'x'}}";
    for (least, pipeline) in [
        (1, "[{'$unwind': '$a'}, {'$project': {'g': 1}}]".to_owned()),
        (1, format!("[{lookup}]")),
        (1, format!("[{lookup}, {{'$limit': 60000}}, {{'$unwind': '$x'}}]")),
        (1, format!("[{{'$set': {{'b': 1}}}}, {{'$unionWith': 'few'}}, {windows}]")),
        (1, "[{'$match': {'a': {'$gte': 0, '$lte': 5}}}, {'$set': {'b': '$g'}}]".to_owned()),
        // Reading and sorting is one, what comes behind the other.
        (2, format!("[{windows}]")),
        (2, format!("[{windows}, {{'$group': {{'_id': '$g', 'n': {{'$max': '$n'}}}}}}]")),
        (2, format!("[{windows}, {{'$set': {{'m': 1}}}}, {{'$sort': {{'n': 1, '_id': 1}}}}]")),
        (3, format!("[{windows}, {}, {{'$count': 'all'}}]", windows.replace("'n'", "'o'"))),
    ] {
        is_divided(&shop, &pipeline, least);
    }
}

/// Runs a pipeline over `things` by one thread, and again by those that the server would take: it
/// answers the same, and was divided so many times at least.
fn is_divided(shop: &Repository, pipeline: &str, least: u64) {
    let cores = shop.frond().cores();
    let run = || aggregate(shop, Some("things"), pipeline).expect("right");
    cores.divide_into(1);
    let expected = run();
    cores.divide_into(0);
    // A query that ran lately counts as running.
    frond_store::io::pause(std::time::Duration::from_millis(100));
    let before = cores.divided_count();
    assert!(run() == expected, "{pipeline}");
    let divided = cores.divided_count() - before;
    assert!(least <= divided, "{pipeline}: {divided}");
}

/// What parts of groups keep until it is their turn, and documents that are sorted in files, may be
/// more than a share of a stage's memory.
#[test]
fn much_is_divided_too() {
    let options = FrondOptions {
        query_cores_max: Some(2),
        stage_memory_bytes_max: Some(32 << 20),
        ..FrondOptions::default()
    };
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let pad = "long ".repeat(120);
    let make = |id| {
        let price = f64::from(id * 7919 % 1009) / 16.0;
        frond_doc::document! { "_id": id, "g": id * 31 % 97, "p": price, "pad": pad.as_str() }
    };
    for first in (0..70_000).step_by(5_000) {
        let batch: Vec<DocumentBuf> = (first..first + 5_000_i32).map(make).collect();
        assert_eq!(try_insert(&shop, "things", &batch).count, 5_000);
    }
    let seven = |accumulator: &str| {
        let field = |field| format!(", 'f{field}': {accumulator}");
        let fields: String = (0..7).map(field).collect();
        format!("[{{'$group': {{'_id': '$g'{fields}}}}}]")
    };
    let windows = "{'$setWindowFields': {'partitionBy': '$g', 'sortBy': {'_id': 1}, 'output': {
        'n': {'$sum': '$p', 'window': {'documents': ['unbounded', 'current']}}}}}";
    let long = "{'$group': {'_id': '$g', 'n': {'$max': '$n'}, 'long': {'$max': '$pad'}}}";
    for (least, pipeline) in [
        (1, seven("{'$stdDevSamp': '$p'}")),
        (1, seven("{'$stdDevPop': {'$multiply': ['$p', '$_id']}}")),
        (1, seven("{'$avg': {'$toDecimal': '$p'}}")),
        (2, format!("[{windows}, {long}]")),
    ] {
        is_divided(&shop, &pipeline, least);
    }
}
