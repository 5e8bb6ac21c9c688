//! Goal: the transactions of one request share a sync, see those before them, and are acknowledged
//! only once all are durable; operations that replace whole trees miss none of them, and a failed
//! sync or a full disk is reported at the end. Method: a disk whose syncs are held, fail, or that
//! is full.

use std::sync::Arc;

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Deferred, Durability, ErrorKind, FindRequest, Frond, FrondOptions};
use frond_doc::{DocumentBuf, document};
use frond_testkit::SimDisk;

use super::queued_commits::{LONG, SHORT, answered, open_gated};
use super::support::*;

fn insert_one(database: &Database, collection: &str, document: &str) -> u64 {
    let documents = [json(document)];
    let report = database.insert(collection, &documents, false, Durability::Synced);
    let report = report.expect("it has its place");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    report.count
}

/// Waits for all, elsewhere.
fn wait(deferred: &Arc<Deferred>) -> std::sync::mpsc::Receiver<Result<(), frond_db::Error>> {
    let deferred = Arc::clone(deferred);
    answered(move || deferred.wait(&frond_db::Interrupt::default()))
}

#[test]
fn writes_of_one_request_share_a_sync_and_see_each_other() {
    let (frond, gate) = open_gated();
    let shop = frond.database("shop").expect("opens");
    insert(&shop, "users", "[{'_id': 0, 'name': 'Ada'}]");
    let deferred = Arc::new(Deferred::default());
    let (deferring, plain) = (shop.deferring(&deferred), shop.clone());
    let syncs = || frond.engine().counters().log_syncs;
    let before = syncs();
    gate.0.close();
    let done = answered(move || {
        for number in 1..=20 {
            insert_one(&deferring, "things", &format!("{{'_id': {}, 'n': 0}}", 10 + number));
            insert_one(&deferring, "users", &format!("{{'_id': {number}, 'name': {number}}}"));
            let all = statement("{}", "{'$inc': {'n': 1}}");
            let all = frond_db::UpdateStatement { multi: true, ..all };
            let report = deferring.update("things", &[all], true, Durability::Synced);
            assert_eq!(report.expect("updated").modified, 2 + number, "it sees what is in line");
        }
        let twice =
            deferring.insert("users", &[json("{'_id': 99, 'name': 7}")], true, Durability::Synced);
        twice.expect("done").errors.len()
    });
    assert_eq!(done.recv_timeout(LONG), Ok(1), "a name that is in line is a duplicate");
    assert_eq!(find(&plain, "users", "{'_id': 3}"), "[]", "nothing of it is visible");
    let awaited = wait(&deferred);
    assert!(awaited.recv_timeout(SHORT).is_err(), "it isn't durable");
    gate.0.open();
    awaited.recv_timeout(LONG).expect("answered").expect("durable");
    assert_eq!(find(&plain, "things", "{'_id': 11}"), "[{'_id':11,'n':20}]");
    assert_eq!(find(&plain, "things", "{'_id': 1}"), "[{'_id':1,'n':20}]");
    assert_eq!(find(&plain, "users", "{'_id': 20}"), "[{'_id':20,'name':20}]");
    assert!(syncs() - before <= 3, "{} syncs of 61 transactions", syncs() - before);
}

#[test]
fn an_index_that_is_built_meanwhile_has_what_is_deferred() {
    let (frond, gate) = open_gated();
    let shop = frond.database("shop").expect("opens");
    let deferred = Arc::new(Deferred::default());
    gate.0.close();
    insert_one(&shop.deferring(&deferred), "things", "{'_id': 3, 'n': 5}");
    let builder = shop.clone();
    let built = answered(move || {
        let spec = IndexSpec::parse(json("{'key': {'n': 1}, 'name': 'by n'}").view());
        builder.create_indexes("things", &[spec.expect("a proper index")]).map(drop)
    });
    assert!(built.recv_timeout(SHORT).is_err(), "its own commit isn't durable");
    gate.0.open();
    built.recv_timeout(LONG).expect("answered").expect("built");
    wait(&deferred).recv_timeout(LONG).expect("answered").expect("durable");
    let hinted = FindRequest { hint: Some(value("'by n'")), ..request("{'n': 5}") };
    let found = run(&shop, "things", &hinted).expect("found");
    assert_eq!(texts(&found), "[{'_id':3,'n':5}]");
}

#[test]
fn a_sync_that_fails_is_reported_at_the_end() {
    let disk = SimDisk::new(1);
    let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
    let shop = frond.database("shop").expect("opens");
    insert(&shop, "things", "[{'_id': 0}]");
    let deferred = Arc::new(Deferred::default());
    disk.fail_sync_of(b"the fourth");
    let deferring = shop.deferring(&deferred);
    for (id, text) in ["a first", "a second", "a third", "the fourth"].iter().enumerate() {
        insert_one(&deferring, "things", &format!("{{'_id': {}, 'text': '{text}'}}", id + 1));
    }
    let awaited = wait(&deferred).recv_timeout(LONG).expect("answered");
    assert_eq!(awaited.map_err(|error| error.kind), Err(ErrorKind::Unknown));
    let more = shop.insert("things", &[json("{'_id': 9}")], true, Durability::Synced);
    assert_eq!(more.map(|report| report.count).map_err(|error| error.kind), Err(ErrorKind::Closed));
}

#[test]
fn a_full_disk_is_reported_at_the_end_and_refuses_an_end_of_it() {
    let disk = SimDisk::new(1);
    let open = || frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
    let frond = open();
    let shop = frond.database("shop").expect("opens");
    insert(&shop, "things", "[{'_id': 0}]");
    let deferred = Arc::new(Deferred::default());
    let deferring = shop.deferring(&deferred);
    disk.fill_after(0);
    let mut failed = None;
    for id in 1..=5 {
        let documents = [document! { "_id": id, "text": "x".repeat(100_000).as_str() }];
        let done = deferring.insert("things", &documents, true, Durability::Synced);
        failed = failed.or(done.err());
    }
    let awaited = wait(&deferred).recv_timeout(LONG).expect("answered");
    let failed = failed.or(awaited.err()).expect("the disk is full");
    assert_eq!(failed.kind, ErrorKind::Unavailable, "{failed:?}");
    disk.make_room();
    // The first ones of several may be there.
    let found = run(&shop, "things", &request("{}")).expect("reads go on");
    let ids = found.iter().map(|one| one.view().get("_id").and_then(|id| id.as_integer()));
    let expected = (0..).map(Some).take(found.len());
    assert!(ids.eq(expected) && found.len() < 6, "{} documents", found.len());
    insert(&shop, "things", "[{'_id': 9}]");
    frond.engine().check().expect("every invariant holds");
}

#[test]
fn transactions_of_one_large_insert_share_a_sync() {
    let (frond, _gate) = open_gated();
    let shop = frond.database("shop").expect("opens");
    let syncs = |frond: &Frond| frond.engine().counters().log_syncs;
    let before = syncs(&frond);
    let documents: Vec<DocumentBuf> = (10..15_010).map(|id| document! { "_id": id }).collect();
    let report = shop.insert("things", &documents, true, Durability::Synced).expect("inserted");
    assert_eq!(report.count, 15_000);
    let made = syncs(&frond) - before;
    assert!(made <= 6, "{made} syncs of 15 transactions");
    assert_eq!(find(&shop, "things", "{'_id': 15009}"), "[{'_id':15009}]", "it is visible");
}
