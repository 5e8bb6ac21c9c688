//! Goal: a statement that was in conflict with a commit that isn't durable yet is answered early
//! only if the answer is the same without that commit; otherwise it waits. Method: a disk whose
//! syncs are held, and a second transaction that waits for the first one's document.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, FindAndModify, Frond, FrondOptions, Transaction};
use frond_query::Code;
use frond_testkit::{Gate, Keeper, SimDisk};

use crate::support::*;

/// Long enough for an answer that waits for nothing.
pub const LONG: Duration = Duration::from_secs(60);
/// Long enough for most answers that wrongly wait for nothing.
pub const SHORT: Duration = Duration::from_millis(50);

pub fn open_gated() -> (Frond, Keeper) {
    let gate = Arc::new(Gate::default());
    let machine = Gate::before(&gate, SimDisk::new(1).machine());
    let frond = frond_vcs::open_on(&machine, FrondOptions::default());
    let frond = frond.expect("opens");
    let shop = frond.database("shop").expect("opens");
    insert(&shop, "things", "[{'_id': 1, 'n': 0}, {'_id': 2, 'n': 0}]");
    let spec = IndexSpec::parse(json("{'key': {'name': 1}, 'unique': true}").view());
    shop.create_indexes("users", &[spec.expect("a proper index")]).expect("made");
    frond.engine().begin().commit(Durability::Synced).expect("durable");
    (frond, Keeper(gate))
}

/// Updates documents and returns the outcome, in words.
fn update(shop: &Database, filter: &str, change: &str) -> String {
    let report = shop.update("things", &[statement(filter, change)], true, Durability::Synced);
    report.map_or_else(|error| error.message, |report| format!("{} changed", report.modified))
}

fn raise(shop: &Database) -> String {
    update(shop, "{'_id': 1}", "{'$inc': {'n': 1}}")
}

fn modify(shop: &Database, projection: Option<&str>) -> String {
    let request = FindAndModify {
        filter: json("{'_id': 1}"),
        sort: None,
        update: Some(value("{'$inc': {'n': 1}}")),
        upsert: false,
        return_new: true,
        projection: projection.map(json),
        array_filters: None,
        hint: None,
        variables: None,
        collation: None,
    };
    let report = shop.find_and_modify("things", &request, Durability::Synced).expect("done");
    text(&report.value.expect("it is there"))
}

fn register(shop: &Database, id: i32) -> String {
    let user = json(&format!("{{'_id': {id}, 'name': 'Ada'}}"));
    let report = shop.insert("users", &[user], true, Durability::Synced).expect("done");
    match &report.errors[..] {
        [] => format!("{} inserted", report.count),
        [error] => {
            assert_eq!(error.error.code, Code::DuplicateKey);
            "a duplicate".to_owned()
        }
        more => panic!("{more:?}"),
    }
}

/// A first transaction has run one statement and commits, and no sync ends; a second one that runs
/// the other meanwhile is answered `expected`, at once or once the first is durable.
struct Case {
    first: fn(&Database) -> String,
    second: fn(&Database) -> String,
    expected: &'static str,
    at_once: bool,
}

pub fn answered<T: Send + 'static>(answer: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(answer()));
    receiver
}

fn commit(transaction: &Transaction) -> Receiver<Result<(), frond_db::Error>> {
    let transaction = transaction.clone();
    answered(move || transaction.commit(Durability::Synced, None))
}

fn check(case: &Case) {
    let (frond, gate) = open_gated();
    let shop_of = |transaction: &Transaction| transaction.database("shop").expect("opens");
    let (one, two) = (frond.begin(), frond.begin());
    (case.first)(&shop_of(&one));
    let waits = || frond.engine().counters().key_lock_waits;
    let (before, second, shop) = (waits(), case.second, shop_of(&two));
    let answer = answered(move || second(&shop));
    while waits() == before {
        thread::yield_now();
    }
    gate.0.close();
    let committed = commit(&one);
    if case.at_once {
        assert_eq!(answer.recv_timeout(LONG).as_deref(), Ok(case.expected));
        let shop = shop_of(&two);
        let read = answered(move || all(&shop, "things"));
        assert_eq!(read.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout), "it isn't durable");
        let shop = shop_of(&two);
        let next = answered(move || update(&shop, "{'_id': 2}", "{'$inc': {'n': 1}}"));
        assert_eq!(next.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout), "it isn't durable");
        gate.0.open();
        read.recv_timeout(LONG).expect("it is durable");
        next.recv_timeout(LONG).expect("it is durable");
    } else {
        let received = answer.recv_timeout(SHORT);
        assert_eq!(received, Err(RecvTimeoutError::Timeout), "it rests on what isn't durable");
        gate.0.open();
        assert_eq!(answer.recv_timeout(LONG).as_deref(), Ok(case.expected));
    }
    committed.recv_timeout(LONG).expect("answered").expect("committed");
    two.commit(Durability::Synced, None).expect("no other transaction wrote it");
}

#[test]
fn an_answer_leaves_at_once_only_if_queued_commits_do_not_change_it() {
    let cases = [
        Case { first: raise, second: raise, expected: "1 changed", at_once: true },
        Case {
            first: raise,
            second: |shop| modify(shop, Some("{'_id': 1}")),
            expected: "{'_id':1}",
            at_once: true,
        },
        Case {
            first: raise,
            second: |shop| modify(shop, None),
            expected: "{'_id':1,'n':2}",
            at_once: false,
        },
        Case {
            first: raise,
            second: |shop| update(shop, "{'_id': 1, 'n': 0}", "{'$set': {'n': 7}}"),
            expected: "0 changed",
            at_once: false,
        },
        Case {
            first: raise,
            second: |shop| update(shop, "{'_id': 1}", "{'$set': {'n': 1}}"),
            expected: "0 changed",
            at_once: false,
        },
        Case {
            first: |shop| register(shop, 1),
            second: |shop| register(shop, 2),
            expected: "a duplicate",
            at_once: false,
        },
    ];
    for case in &cases {
        check(case);
    }
}

#[test]
fn transactions_on_one_document_share_a_sync() {
    const COUNT: usize = 8;
    let (frond, gate) = open_gated();
    gate.0.close();
    let syncs = || frond.engine().counters().log_syncs;
    let before = syncs();
    let ends: Vec<_> = (0..COUNT)
        .map(|_| {
            let transaction = frond.begin();
            let shop = transaction.database("shop").expect("opens");
            assert_eq!(
                answered(move || raise(&shop)).recv_timeout(LONG).as_deref(),
                Ok("1 changed")
            );
            commit(&transaction)
        })
        .collect();
    gate.0.open();
    for end in ends {
        end.recv_timeout(LONG).expect("answered").expect("committed");
    }
    let shop = frond.database("shop").expect("opens");
    assert_eq!(all(&shop, "things"), format!("[{{'_id':1,'n':{COUNT}}},{{'_id':2,'n':0}}]"));
    assert!(syncs() - before <= 3, "the first one's, all others', the last one's if it was late");
}
