//! Goal: an index that is built beside writers files every document as it is in the end, whatever
//! was written, deleted or given back meanwhile, and creating a collection or an index makes no
//! transaction fail that has read nothing there. Method: threads that write while indexes of
//! several kinds are built; transactions that begin before and after.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, Error, ErrorKind, FindRequest, Interrupt, UpdateStatement};
use frond_doc::document;
use frond_query::Code;
use frond_testkit::random::{Random, for_seeds};
use frond_vcs::Repository;

use crate::support::*;

fn spec(text: &str) -> IndexSpec {
    IndexSpec::parse(json(text).view()).expect("a proper index")
}

/// Documents that the index finds, each with its field, in the order of `_id`.
fn by_index(shop: &Database, name: &str) -> Vec<String> {
    let request = FindRequest { hint: Some(value(&format!("'{name}'"))), ..request("{}") };
    let mut found: Vec<String> =
        run(shop, "things", &request).expect("found").iter().map(text).collect();
    found.sort();
    found
}

fn by_scan(shop: &Database) -> Vec<String> {
    let request = FindRequest { hint: Some(value("{'$natural': 1}")), ..request("{}") };
    let mut found: Vec<String> =
        run(shop, "things", &request).expect("found").iter().map(text).collect();
    found.sort();
    found
}

/// Writes of a few documents, so that the same ones come again and again, with unique numbers that
/// pass from one to another; now and then of many, and a flush, so that rounds of both kinds come.
fn write(shop: &Database, random: &mut Random, thread: usize) {
    let id = (thread * 1_000 + random.below(60)) as i32;
    let unique = (thread * 1_000 + random.below(40)) as i32;
    match random.below(12) {
        0..=4 => {
            let document = document! { "_id": id, "u": unique, "a": unique % 7, "t": "new" };
            try_insert(shop, "things", &[document]);
        }
        5..=7 => {
            let set = format!("{{'$set': {{'u': {unique}, 'a': {}}}}}", unique % 7);
            let filter = format!("{{'_id': {id}}}");
            let done =
                shop.update("things", &[statement(&filter, &set)], true, Durability::Relaxed);
            done.expect("the request is right");
        }
        8 => {
            let documents: Vec<_> = (0..600)
                .map(|number| {
                    let id = (1_000_000 + thread * 100_000 + random.below(50_000)) as i32;
                    document! { "_id": id, "u": id, "a": number, "t": "many" }
                })
                .collect();
            shop.insert("things", &documents, false, Durability::Relaxed).expect("written");
        }
        9 if random.one_in(4) => shop.frond().engine().flush().expect("flushed"),
        _ => drop(delete(shop, "things", &format!("{{'_id': {id}}}"))),
    }
}

#[test]
fn an_index_built_beside_writers_is_what_a_rebuilt_one_is() {
    for_seeds(3, |mut random| {
        let shop = shop();
        // The unique one from the beginning: so that writers are refused what it would refuse.
        shop.create_indexes("things", &[spec("{'key': {'u': 1}, 'unique': true}")]).expect("made");
        let documents: Vec<_> = (0..3_000)
            .map(|number| document! { "_id": -1 - number, "u": -1 - number, "a": number % 7 })
            .collect();
        assert_eq!(try_insert(&shop, "things", &documents).count, 3_000);
        let stop = AtomicBool::new(false);
        let seeds = [random.next(), random.next()];
        thread::scope(|scope| {
            for (thread, seed) in seeds.into_iter().enumerate() {
                let (shop, stop) = (&shop, &stop);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    while !stop.load(Ordering::Relaxed) {
                        write(shop, &mut random, thread);
                    }
                });
            }
            let at_end = StopAtEnd(&stop);
            for text in [
                "{'key': {'a': 1}}",
                "{'key': {'u': -1}, 'unique': true, 'name': 'again'}",
                "{'key': {'t': 1, 'a': 1}}",
            ] {
                shop.create_indexes("things", &[spec(text)]).expect("built");
            }
            drop(at_end);
        });
        let whole = by_scan(&shop);
        for name in ["u_1", "a_1", "again", "t_1_a_1"] {
            assert!(by_index(&shop, name) == whole, "{name} isn't what a scan finds");
        }
        shop.frond().engine().check().expect("sound");
    });
}

/// Stops the threads that look at it when it goes, also by a failed assertion.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Builds indexes while `meanwhile` is done once, after the documents were read for the first one.
fn build_while(shop: &Database, text: &str, meanwhile: fn(&Database)) -> Result<(), Error> {
    let (other, count) = (shop.clone(), AtomicU32::new(0));
    let interrupt = Interrupt::new(move || {
        // Before it begins, before the documents are read, while they are.
        if count.fetch_add(1, Ordering::Relaxed) == 2 {
            meanwhile(&other);
        }
        Ok(())
    });
    shop.create_indexes_unless("things", &[spec(text)], &interrupt).map(|_| ())
}

fn update_all(shop: &Database, filter: &str, stages: &str) {
    let all = UpdateStatement { multi: true, ..statement(filter, stages) };
    assert!(update(shop, "things", all).errors.is_empty());
}

/// As many as are filed in several parts.
const MANY: i32 = 10_000;

fn many_things() -> Repository {
    let shop = shop();
    let thing = |id| json(&format!("{{'_id': {id}, 'u': {id}, 'tags': [{id}, {}]}}", id + 1));
    let things: Vec<_> = (0..MANY).map(thing).collect();
    assert_eq!(try_insert(&shop, "things", &things).count, 10_000);
    shop
}

#[test]
fn keys_pass_among_thousands_of_documents_while_an_index_is_built() {
    for text in ["{'key': {'u': 1}, 'unique': true}", "{'key': {'tags': 1}}", "{'key': {'u': 1}}"] {
        let shop = many_things();
        let built = build_while(&shop, text, |shop| {
            // Each key passes to another document; some go, and some new ones come.
            update_all(shop, "{}", "[{'$set': {'u': {'$subtract': [9999, '$u']}}}]");
            update_all(shop, "{'_id': {'$mod': [3, 1]}}", "[{'$set': {'tags': ['$_id', 7]}}]");
            assert_eq!(delete(shop, "things", "{'_id': {'$gte': 9000}}"), 1_000);
            let new = (20_000..26_000).map(|id| document! { "_id": id, "u": id - 20_000 - 6_000 });
            try_insert(shop, "things", &new.collect::<Vec<_>>());
        });
        built.expect("no two documents have one key in the end");
        let name = shop.list_indexes("things").expect("a list")[1].name.clone();
        let whole = by_scan(&shop);
        assert_eq!(whole.len(), 15_000);
        assert!(by_index(&shop, &name) == whole, "{name} isn't what a scan finds");
        shop.frond().engine().check().expect("sound");
    }
}

#[test]
fn two_of_thousands_of_documents_that_come_to_one_key_end_a_build() {
    let unique = "{'key': {'u': 1}, 'unique': true}";
    let whiles: [fn(&Database); 3] = [
        // With one that hasn't changed, with one of another part, with the next one.
        |shop| {
            update_all(shop, "{'_id': {'$gte': 3000}}", "[{'$set': {'u': {'$add': ['$u', -1]}}}]")
        },
        |shop| {
            update_all(shop, "{}", "[{'$set': {'u': {'$add': ['$u', 20000]}}}]");
            update_all(shop, "{'_id': {'$in': [5, 9990]}}", "[{'$set': {'u': -1}}]");
        },
        |shop| {
            update_all(shop, "{}", "[{'$set': {'u': {'$add': ['$u', 20000]}}}]");
            update_all(shop, "{'_id': {'$in': [7, 8]}}", "[{'$set': {'u': -1}}]");
        },
    ];
    for meanwhile in whiles {
        let shop = many_things();
        let refused = build_while(&shop, unique, meanwhile).expect_err("two have one key");
        assert_eq!(refused.code, Code::DuplicateKey);
        assert_eq!(shop.list_indexes("things").expect("a list").len(), 1);
    }
}

#[test]
fn two_documents_with_one_key_end_a_build() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'u': 1}, {'_id': 2, 'u': 1}]");
    let refused = shop.create_indexes("things", &[spec("{'key': {'u': 1}, 'unique': true}")]);
    assert_eq!(refused.expect_err("refused").code, Code::DuplicateKey);
    assert_eq!(shop.list_indexes("things").expect("a list").len(), 1);
    // Nothing of it is left: writers go on, and another try after one is gone succeeds.
    assert_eq!(delete(&shop, "things", "{'_id': 2}"), 1);
    shop.create_indexes("things", &[spec("{'key': {'u': 1}, 'unique': true}")]).expect("built");
    assert_eq!(try_insert(&shop, "things", &jsons("[{'_id': 3, 'u': 1}]")).errors.len(), 1);
}

/// Makes something.
type Make = fn(&Database);

#[test]
fn an_index_created_after_the_start_does_not_conflict_with_the_first_write() {
    let makes: [(&str, Make); 3] = [
        ("a collection", |shop| {
            shop.create_collection("things", json("{}").view()).expect("made");
        }),
        ("a collection with an index", |shop| {
            shop.create_indexes("things", &[spec("{'key': {'a': 1}}")]).expect("made");
        }),
        ("documents", |shop| insert(shop, "things", "[{'_id': 1, 'a': 1}]")),
    ];
    for has_database in [false, true] {
        for (what, make) in &makes {
            let frond = open();
            let outside = frond.database("shop").expect("opens");
            if has_database {
                insert(&outside, "others", "[{'_id': 1}]");
            }
            let transaction = frond.begin();
            let inside = transaction.database("shop").expect("opens");
            if has_database {
                // That something else was read doesn't matter.
                assert_eq!(all(&inside, "others"), "[{'_id':1}]");
                insert(&inside, "others", "[{'_id': 2}]");
            }
            make(&outside);
            insert(&inside, "things", "[{'_id': 7, 'a': 7}]");
            let done = transaction.commit(Durability::Synced, None);
            done.unwrap_or_else(|error| panic!("{what}, {has_database}: {error}"));
            assert_eq!(find(&outside, "things", "{'a': 7}"), "[{'_id':7,'a':7}]", "{what}");
        }
    }
}

#[test]
fn a_read_before_the_index_was_created_is_a_conflict() {
    let frond = open();
    let outside = frond.database("shop").expect("opens");
    insert(&outside, "others", "[{'_id': 1}]");
    let transaction = frond.begin();
    let inside = transaction.database("shop").expect("opens");
    assert_eq!(all(&inside, "things"), "[]");
    insert(&outside, "things", "[{'_id': 1}]");
    let refused = inside.insert("things", &jsons("[{'_id': 2}]"), true, Durability::Relaxed);
    assert_eq!(refused.map(|_| ()).map_err(|error| error.kind), Err(ErrorKind::Conflict));
}

#[test]
fn an_index_is_published_when_transactions_that_have_written_have_ended() {
    for commits in [true, false] {
        let frond = open();
        let outside = frond.database("shop").expect("opens");
        insert(&outside, "things", "[{'_id': 1, 'a': 1}]");
        let transaction = frond.begin();
        insert(&transaction.database("shop").expect("opens"), "things", "[{'_id': 2, 'a': 2}]");
        let indexes = || outside.list_indexes("things").expect("a list").len();
        thread::scope(|scope| {
            let build =
                scope.spawn(|| outside.create_indexes("things", &[spec("{'key': {'a': 1}}")]));
            // Long enough for it to be published, if nothing held it back.
            let begun = Instant::now();
            while indexes() == 1 && begun.elapsed() < Duration::from_millis(100) {
                // Others write meanwhile.
                insert(&outside, "others", "[{}]");
            }
            assert_eq!(indexes(), 1);
            if commits {
                transaction.commit(Durability::Synced, None).expect("no conflicting write");
            } else {
                transaction.abort();
            }
            build.join().expect("no panic").expect("built");
        });
        let expected =
            if commits { "[{'_id':1,'a':1}, {'_id':2,'a':2}]" } else { "[{'_id':1,'a':1}]" };
        assert_eq!(
            by_index(&outside, "a_1").join(","),
            expected.replace(", ", ",").trim_matches(['[', ']'])
        );
    }
}
