//! Goal: updates and deletes of many documents, which take several transactions, reach each
//! document once, end at a refusal or an interrupt, and take little memory; within a transaction
//! their memory is charged. Method: more documents than a part has, and an interrupt that looks, or
//! writes, between parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use frond_db::catalog::IndexSpec;
use frond_db::{
    Database, Durability, Effort, Error, FindRequest, FrondOptions, Interrupt, Purpose,
    UpdateStatement,
};
use frond_doc::{DocumentBuf, document};
use frond_engine::EngineOptions;
use frond_query::Code;
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;

use crate::support::*;

/// Some parts.
const COUNT: i32 = 25_000;

fn filled() -> Repository {
    filled_with(EngineOptions::default())
}

fn filled_with(engine: EngineOptions) -> Repository {
    let options = FrondOptions { engine, ..FrondOptions::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    for begun in (0..COUNT).step_by(5_000) {
        let of = |id: i32| document! { "_id": id, "n": id };
        let documents: Vec<DocumentBuf> = (begun..begun + 5_000).map(of).collect();
        let inserted = try_insert(&shop, "things", &documents);
        assert_eq!(inserted.count, 5_000, "{:?}", inserted.errors);
    }
    shop
}

fn index(shop: &Database, unique: bool) {
    let spec = IndexSpec { unique, ..IndexSpec::plain("n_1".to_owned(), document! { "n": 1 }) };
    shop.create_indexes("things", &[spec]).expect("an index");
}

/// Text no part of which is like another: equal parts are stored once.
fn text_of(bytes: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    (0..bytes / 16).map(|_| format!("{:016x}", random.next())).collect()
}

/// Checks that every entry of the index is right.
fn check(shop: &Database) {
    let checked = shop.check_collection("things", &Interrupt::default()).expect("readable");
    let wrong = checked.indexes.iter().map(|index| index.missing + index.extra).sum::<u64>();
    assert_eq!((wrong, checked.invalid), (0, 0), "{checked:?}");
}

fn count(shop: &Database, filter: &str) -> u64 {
    shop.count("things", &request(filter)).expect("a count")
}

fn many(filter: &str, change: &str) -> UpdateStatement {
    UpdateStatement { multi: true, ..statement(filter, change) }
}

/// Calls `look` each `every` times that a statement asks whether to go on.
fn looked_at(
    shop: &Database,
    every: usize,
    look: impl Fn(&Database) -> Result<(), Error> + Send + Sync + 'static,
) -> Database {
    let outside = shop.clone();
    let count = AtomicUsize::new(0);
    shop.clone().interruptible(Interrupt::new(move || {
        match (count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every) {
            true => look(&outside),
            false => Ok(()),
        }
    }))
}

#[test]
fn an_update_that_moves_documents_ahead_of_itself_meets_each_once() {
    let shop = filled();
    index(&shop, false);
    let statement = UpdateStatement {
        hint: Some(value("'n_1'")),
        ..many("{'n': {'$gte': 0}}", "{'$inc': {'n': 10000}, '$push': {'times': 1}}")
    };
    let report = update(&shop, "things", statement);
    assert_eq!((report.matched, report.modified), (COUNT as u64, COUNT as u64));
    assert_eq!(
        count(
            &shop,
            "{'times': {'$size': 1}, '$expr': {'$eq': ['$n', {'$add': ['$_id', 10000]}]}}"
        ),
        COUNT as u64
    );
    check(&shop);
}

#[test]
fn an_update_that_outlives_its_snapshot_visits_each_document_once() {
    let little = || EngineOptions {
        memtable_bytes_max: 256 << 10,
        snapshots_bytes_max: 128 << 10,
        ..EngineOptions::default()
    };
    for filter in ["{}", "{'n': {'$gte': 0}}", "{'_id': {'$gte': 10, '$lt': 20010}}"] {
        let shop = filled_with(little());
        // The input of an index build, and the data read below, is a snapshot, too.
        let rest = || shop.frond().engine().checkpoint().expect("folded");
        rest();
        index(&shop, false);
        rest();
        let passing = count(&shop, filter);
        let done = update(&shop, "things", many(filter, "{'$inc': {'n': 100000}}"));
        assert!(done.errors.is_empty(), "{filter}: {:?}", done.errors);
        assert_eq!((done.matched, done.modified), (passing, passing), "{filter}");
        rest();
        assert_eq!(count(&shop, "{'n': {'$gte': 200000}}"), 0, "{filter}: twice");
        assert_eq!(count(&shop, "{'n': {'$gte': 100000}}"), passing, "{filter}");
        assert_eq!(delete(&shop, "things", "{'n': {'$gte': 100005}}"), passing.min(24_995));
        rest();
        check(&shop);
    }
}

#[test]
fn a_refused_document_ends_the_update_and_earlier_ones_stay() {
    let shop = filled();
    index(&shop, true);
    insert(&shop, "things", "[{'_id': -1, 'n': -7}]");
    // The document 21,000 is to get what another one has.
    let new = "{'$cond': [{'$eq': ['$_id', 21000]}, -7, {'$add': ['$n', 100000]}]}";
    let statements = [
        many("{'_id': {'$gte': 0}}", &format!("[{{'$set': {{'n': {new}}}}}]")),
        many("{}", "{'$set': {'x': 1}}"),
    ];
    let report = shop.update("things", &statements, true, Durability::Relaxed).expect("a report");
    assert_eq!((report.matched, report.modified, report.errors.len()), (0, 0, 1));
    let failed = &report.errors[0];
    assert_eq!((failed.position, failed.error.code), (0, Code::DuplicateKey));
    assert_eq!(count(&shop, "{'n': {'$gte': 100000}}"), 21_000);
    assert_eq!(count(&shop, "{'x': 1}"), 0, "an ordered request ends there");
    let report = shop.update("things", &statements, false, Durability::Relaxed).expect("a report");
    assert_eq!((report.modified, report.errors.len()), (COUNT as u64 + 1, 1));
}

#[test]
fn a_stopped_update_keeps_what_was_done() {
    let shop = filled();
    let stopped = looked_at(&shop, 1000, |shop| match count(shop, "{'x': 1}") {
        0 => Ok(()),
        _ => Err(Error::invalid(Code::MaxTimeMSExpired, "it is time")),
    });
    let statements = [many("{}", "{'$set': {'x': 1}}")];
    let error =
        stopped.update("things", &statements, false, Durability::Relaxed).expect_err("told");
    assert_eq!(error.code, Code::MaxTimeMSExpired);
    let done = count(&shop, "{'x': 1}");
    assert!((1..COUNT as u64).contains(&done), "{done}");
}

#[test]
fn a_delete_of_many_is_several_transactions() {
    let shop = filled();
    index(&shop, false);
    let between = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&between);
    let looked = looked_at(&shop, 1000, move |shop| {
        let left = count(shop, "{'n': {'$gte': 1}}");
        if (1..COUNT as u64 - 1).contains(&left) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    assert_eq!(delete(&looked, "things", "{'n': {'$gte': 1}}"), COUNT as u64 - 1);
    assert!(0 < between.load(Ordering::Relaxed), "all of them at once");
    assert_eq!(all(&shop, "things"), "[{'_id':0,'n':0}]");
    check(&shop);
}

/// Documents that are small where they are found and large once they are written.
#[test]
fn large_writes_to_few_documents_are_several_transactions() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1}, {'_id': 2}, {'_id': 3}, {'_id': 4}]");
    let between = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&between);
    let looked = looked_at(&shop, 1, move |shop| {
        seen.fetch_max(count(shop, "{'x': {'$exists': true}}") as usize % 4, Ordering::Relaxed);
        Ok(())
    });
    let text = text_of(5 << 20, 1);
    let report = update(&looked, "things", many("{}", &format!("{{'$set': {{'x': '{text}'}}}}")));
    assert_eq!((report.matched, report.modified), (4, 4));
    assert!(0 < between.load(Ordering::Relaxed), "all of them at once");
    assert_eq!(delete(&shop, "things", "{}"), 4);
}

#[test]
fn documents_that_no_longer_match_are_left_alone() {
    let shop = filled();
    let changed = AtomicU64::new(0);
    let looked = looked_at(&shop, 1000, move |shop| {
        if changed.load(Ordering::Relaxed) == 0 && 0 < count(shop, "{'x': 1}") {
            let last = format!("{{'_id': {}}}", COUNT - 1);
            changed.store(
                update(shop, "things", statement(&last, "{'$set': {'n': -1}}")).modified,
                Ordering::Relaxed,
            );
            assert_eq!(delete(shop, "things", &format!("{{'_id': {}}}", COUNT - 2)), 1);
            insert(shop, "things", &format!("[{{'_id': {COUNT}, 'n': 1}}]"));
        }
        Ok(())
    });
    let report = update(&looked, "things", many("{'n': {'$gte': 0}}", "{'$set': {'x': 1}}"));
    assert_eq!((report.matched, report.modified), (COUNT as u64 - 2, COUNT as u64 - 2));
    assert_eq!(find(&shop, "things", "{'n': -1}"), format!("[{{'_id':{},'n':-1}}]", COUNT - 1));
}

#[test]
fn a_batch_goes_on_behind_what_is_run_in_parts() {
    let shop = filled();
    let statements = [
        many("{'_id': 0}", "{'$set': {'a': 1}}"),
        many("{}", "{'$inc': {'b': 1}}"),
        many("{'a': 1}", "{'$inc': {'b': 1}}"),
        UpdateStatement { upsert: true, ..many("{'_id': -5}", "{'$set': {'b': 7}}") },
        many("{}", "{'$inc': {'b': 1}}"),
    ];
    let report = shop.update("things", &statements, true, Durability::Relaxed).expect("a report");
    let each: Vec<(usize, u64)> = report.each.iter().map(|it| (it.position, it.modified)).collect();
    let all = COUNT as u64;
    assert_eq!(each, [(0, 1), (1, all), (2, 1), (3, 0), (4, all + 1)]);
    assert_eq!(report.upserted.len(), 1);
    assert_eq!(
        find(&shop, "things", "{'b': {'$gte': 3}}"),
        "[{'_id':-5,'b':8},{'_id':0,'n':0,'a':1,'b':3}]"
    );
}

#[test]
fn writes_of_a_transaction_are_charged() {
    let options =
        FrondOptions { stages_memory_bytes_max: Some(8 << 20), ..FrondOptions::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens");
    let shop = frond.database("shop").expect("a proper name");
    insert(&shop, "things", "[{'_id': 1}, {'_id': 2}, {'_id': 3}, {'_id': 4}]");
    let text = text_of(1 << 20, 1);
    let big = format!("{{'$set': {{'x': '{text}'}}}}");
    let transaction = frond.begin();
    let within = transaction.database("shop").expect("opens");
    let report = update(&within, "things", many("{'_id': {'$lt': 3}}", &big));
    assert_eq!((report.modified, report.errors.len()), (2, 0));
    assert!(1 << 20 <= frond.stages_memory_bytes(), "{}", frond.stages_memory_bytes());
    let more: Vec<DocumentBuf> = (10..20)
        .map(|id: i32| document! { "_id": id, "text": &text_of(1 << 20, id as u64)[..] })
        .collect();
    let report = try_insert(&within, "things", &more);
    assert_eq!(report.errors[0].error.code, Code::TransactionTooLarge);
    assert_eq!(report.count as usize, report.errors[0].position);
    transaction.abort();
    assert_eq!(frond.stages_memory_bytes(), 0);
    // By themselves they are as many transactions as it takes.
    assert_eq!(try_insert(&shop, "things", &more).count, 10);
    assert_eq!(update(&shop, "things", many("{}", &big)).modified, 14);
    assert_eq!(frond.stages_memory_bytes(), 0);
}

/// A thousand ranges of an index none of which is long.
#[test]
fn a_search_along_many_short_ranges_can_be_stopped() {
    let shop = filled();
    index(&shop, false);
    let checks = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&checks);
    let interrupt = Interrupt::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let branches: Vec<String> = (0..1_000).map(|number| format!("{{'n': {number}}}")).collect();
    let request =
        FindRequest { interrupt, ..request(&format!("{{'$or': [{}]}}", branches.join(","))) };
    assert_eq!(run(&shop, "things", &request).expect("the request is right").len(), 1_000);
    assert!(3 <= checks.load(Ordering::Relaxed), "{checks:?}");
}

/// Returns how often `run` asks whether to go on. Interrupted at the last of them, it must fail
/// with the interrupt's error.
fn checks_of<T: std::fmt::Debug>(run: impl Fn(Interrupt) -> Result<T, Error>) -> usize {
    let stopped_at = |last: usize| {
        let count = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&count);
        let answer = run(Interrupt::new(move || match seen.fetch_add(1, Ordering::Relaxed) + 1 {
            number if number == last => Err(Error::invalid(Code::Interrupted, "killed")),
            _ => Ok(()),
        }));
        (answer, count.load(Ordering::Relaxed))
    };
    let (answer, count) = stopped_at(usize::MAX);
    answer.expect("nothing stops it");
    if 0 < count {
        assert_eq!(stopped_at(count).0.expect_err("stopped").code, Code::Interrupted);
    }
    count
}

/// By an index's ranges and keys, without reading documents.
#[test]
fn counts_and_distinct_values_can_be_stopped() {
    const RANGES: usize = 1_000;
    let shop = filled();
    index(&shop, false);
    let numbers = |end: usize| (0..end).map(|number| number.to_string()).collect::<Vec<_>>();
    let search = format!("{{'n': {{'$in': [{}]}}}}", numbers(RANGES).join(","));
    let branches: Vec<String> =
        numbers(RANGES).iter().map(|number| format!("{{'n': {number}}}")).collect();
    let same = format!("{{'$or': [{}]}}", branches.join(","));
    let of = |search: &str, interrupt| FindRequest { interrupt, ..request(search) };
    let explained = |search: &str, purpose, effort| {
        checks_of(|interrupt| {
            let mut request = of(search, interrupt);
            request.projection = Some(document! { "n": 1 });
            shop.explain_as("things", &request, purpose, effort)
        })
    };
    for search in [&search, &same] {
        // Once to plan, and once to count.
        let count = checks_of(|interrupt| shop.count("things", &of(search, interrupt)));
        assert!(2 * RANGES / 64 <= count, "{count}");
        let planned = explained(search, Purpose::Count, Effort::Plan);
        let executed = explained(search, Purpose::Count, Effort::Run);
        assert!(planned + RANGES / 64 <= executed, "{planned} {executed}");
    }
    for search in ["{}", "{'n': {'$gte': 0}}"] {
        let distinct = checks_of(|interrupt| shop.distinct("things", "n", &of(search, interrupt)));
        assert!(COUNT as usize / 64 <= distinct, "{distinct} {search}");
        let planned = explained(search, Purpose::Distinct, Effort::Plan);
        let executed = explained(search, Purpose::Distinct, Effort::Run);
        assert!(planned + COUNT as usize / 64 <= executed, "{planned} {executed}");
        let planned = explained(search, Purpose::Find, Effort::Plan);
        let executed = explained(search, Purpose::Find, Effort::Run);
        assert!(planned + COUNT as usize / 256 <= executed, "{planned} {executed}");
    }
    // Skipped documents pass the filter, so that each is found by a step of its own.
    let passed = checks_of(|interrupt| {
        let request = FindRequest { skip: COUNT as u64, ..of("{'x': null}", interrupt) };
        Ok(run(&shop, "things", &request)?.len())
    });
    assert!(COUNT as usize / 256 <= passed, "{passed}");
}

/// Writes that each want all the memory there is for them, of the same documents, so that they wait
/// for keys, too.
#[test]
fn large_writes_take_turns_and_all_get_through() {
    const THREADS: i32 = 6;
    const ROUNDS: i32 = 4;
    let engine = frond_engine::EngineOptions {
        writes_bytes_max: 1 << 20,
        ..frond_engine::EngineOptions::default()
    };
    let options = FrondOptions { engine, ..FrondOptions::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(5).machine(), options).expect("opens");
    let shop = frond.database("shop").expect("a proper name");
    for id in 0..3 {
        let text = text_of(600_000, id as u64);
        let document = document! { "_id": id, "n": 0_i32, "text": &text };
        assert_eq!(try_insert(&shop, "things", &[document]).count, 1);
    }
    let changes = [
        "[{'$set': {'n': {'$add': ['$n', 1]}, 'text': {'$concat': ['$text', 'x']}}}]",
        "{'$inc': {'n': 1}, '$set': {'other': 'y'}}",
        "{'$inc': {'n': 1}, '$push': {'more': {'$each': [1, 2, 3], '$position': 0}}}",
        "[{'$replaceWith': {'$mergeObjects': ['$$ROOT', {'n': {'$add': ['$n', 1]}}]}}]",
    ];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let shop = &shop;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let filter = format!("{{'_id': {}}}", (thread + round) % 3);
                    let change = changes[(thread * 3 + round) as usize % changes.len()];
                    let report = update(shop, "things", statement(&filter, change));
                    assert_eq!(report.matched, 1, "{change}");
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                update(&shop, "things", many("{}", "[{'$set': {'n': {'$add': ['$n', 1]}}}]"));
            }
        });
    });
    let sum = aggregate(&shop, Some("things"), "[{'$group': {'_id': null, 'n': {'$sum': '$n'}}}]");
    let expected = format!("[{{'_id':null,'n':{}}}]", THREADS * ROUNDS + 3 * ROUNDS);
    assert_eq!(texts(&sum.expect("right")), expected);
    assert_eq!(frond.engine().write_memory_bytes(), (1 << 20, 0));
}
