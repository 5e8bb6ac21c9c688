//! Goal: transactions of several requests are all or nothing, and names resolve to the collections
//! of each moment. Method: transactions beside whatever changes their collections; threads that
//! replace a collection while others read it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use frond_db::catalog::IndexSpec;
use frond_db::{Durability, ErrorKind, FindRequest};
use frond_doc::document;
use frond_query::Code;
use frond_vcs::Repository;

use crate::support::*;

#[test]
fn a_transaction_is_visible_as_a_whole_or_never() {
    let frond = open();
    let outside = Repository::open(&frond, "shop").expect("opens");
    insert(&outside, "things", "[{'_id': 1}]");
    for commits in [false, true] {
        let transaction = frond.begin();
        let inside = transaction.database("shop").expect("opens");
        insert(&inside, "things", "[{'_id': 2}]");
        insert(&transaction.database("other").expect("opens"), "new", "[{'_id': 3}]");
        // A statement that fails is undone alone.
        assert_eq!(try_insert(&inside, "things", &jsons("[{'_id': 2}]")).errors.len(), 1);
        assert_eq!(all(&inside, "things"), "[{'_id':1},{'_id':2}]");
        assert_eq!(inside.count("things", &FindRequest::default()).expect("a count"), 2);
        assert_eq!(all(&outside, "things"), "[{'_id':1}]");
        if commits {
            transaction.commit(Durability::Synced, None).expect("no other transaction wrote");
        } else {
            transaction.abort();
        }
        assert!(inside.find("things", &FindRequest::default()).is_err(), "it has ended");
        assert!(transaction.commit(Durability::Synced, None).is_err());
    }
    assert_eq!(all(&outside, "things"), "[{'_id':1},{'_id':2}]");
    assert_eq!(all(&Repository::open(&frond, "other").expect("opens"), "new"), "[{'_id':3}]");
}

#[test]
fn a_database_that_is_dropped_takes_what_transactions_add_with_it() {
    for drops_first in [false, true] {
        let frond = open();
        let shop = Repository::open(&frond, "shop").expect("opens");
        insert(&shop, "things", "[{'_id': 1}]");
        let transaction = frond.begin();
        insert(&transaction.database("shop").expect("opens"), "new", "[{'_id': 2}]");
        if drops_first {
            shop.drop_database().expect("dropped");
            let error = transaction.commit(Durability::Synced, None).expect_err("it is gone");
            assert_eq!(error.kind, ErrorKind::Conflict);
        } else {
            transaction.commit(Durability::Synced, None).expect("no other transaction wrote");
            shop.drop_database().expect("dropped");
        }
        assert!(frond.list_databases().expect("a list").is_empty());
        insert(&Repository::open(&frond, "shop").expect("opens"), "things", "[{'_id': 7}]");
        assert_eq!(all(&Repository::open(&frond, "shop").expect("opens"), "new"), "[]");
    }
}

#[test]
fn replacing_a_collection_is_refused_in_a_transaction() {
    let frond = open();
    insert(&Repository::open(&frond, "shop").expect("opens"), "things", "[{'_id': 1}]");
    let transaction = frond.begin();
    let inside = transaction.database("shop").expect("opens");
    let code = |result: Result<(), frond_db::Error>| result.expect_err("refused").code.number();
    assert_eq!(code(inside.drop_collection("things").map(drop)), 263);
    assert_eq!(code(inside.rename_collection("things", "others", false)), 263);
    assert_eq!(code(inside.drop_database()), 263);
    assert_eq!(code(aggregate(&inside, Some("things"), "[{'$out': 'others'}]").map(drop)), 263);
}

/// Stops the threads that look at it when it goes, also by a failed assertion.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const REPLACEMENTS: i32 = 150;

#[test]
fn names_lead_to_what_is_there_now() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("opens");
    insert(&shop, "things", "[{'n': 0}]");
    let stop = AtomicBool::new(false);
    let number = |database: &frond_db::Database| {
        loop {
            let found = database.find("things", &FindRequest::default()).expect("finds");
            let documents: Result<Vec<_>, _> = found.collect();
            match documents {
                Ok(documents) => {
                    assert_eq!(documents.len(), 1, "the collection is replaced as a whole");
                    return documents[0].get("n").and_then(|n| n.as_integer()).expect("a number");
                }
                // It was replaced meanwhile.
                Err(error) => assert_eq!(error.code, Code::QueryPlanKilled, "{error}"),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) {
                    let now = number(&Repository::open(&frond, "shop").expect("opens"));
                    assert!(last <= now, "{now} after {last}");
                    last = now;
                }
            });
        }
        let _stop = StopAtEnd(&stop);
        for n in 1..=REPLACEMENTS {
            let next = [document! { "n": n }];
            shop.insert("next", &next, true, Durability::Relaxed).expect("inserts");
            shop.rename_collection("next", "things", true).expect("renames");
            // Once the rename is acknowledged, a reader sees it.
            assert_eq!(number(&Repository::open(&frond, "shop").expect("opens")), i64::from(n));
        }
    });
}

#[test]
fn a_document_that_only_moved_is_no_conflict() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("opens");
    // Values of these sizes lie inline, out of line once they are folded, and in pieces.
    for (id, bytes) in [(1, 100), (2, 20_000), (3, 200_000)] {
        let text = "x".repeat(bytes);
        insert(&shop, "things", &format!("[{{'_id': {id}, 'n': 0, 'text': '{text}'}}]"));
        let transaction = frond.begin();
        let inside = transaction.database("shop").expect("opens");
        insert(&shop, "others", &format!("[{{'_id': {id}}}]"));
        let options = frond_db::ReclaimOptions { thorough: true, ..Default::default() };
        frond_vcs::reclaim(&frond, u64::MAX, options).expect("collected");
        let change = statement(&format!("{{'_id': {id}}}"), "{'$set': {'n': 1}}");
        assert_eq!(update(&inside, "things", change).modified, 1, "{bytes} bytes");
        transaction.commit(Durability::Synced, None).expect("no other transaction wrote it");
    }
}

#[test]
fn documents_are_claimed_by_the_statement_that_writes_them() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("opens");
    insert(&shop, "things", "[{'_id': 1, 'n': 0}, {'_id': 2, 'n': 0}]");
    let spec = frond_db::catalog::IndexSpec::parse(json("{'key': {'n': 1}}").view());
    shop.create_indexes("things", &[spec.expect("a proper index")]).expect("made");
    let add = |id: i32| statement(&format!("{{'_id': {id}}}"), "{'$inc': {'n': 1}}");
    let try_add = |database: &frond_db::Database, id| {
        let done = database.update("things", &[add(id)], true, Durability::Relaxed);
        done.map(|done| done.modified).map_err(|error| error.kind)
    };
    let (one, two) = (frond.begin(), frond.begin());
    let (first, second) =
        (one.database("shop").expect("opens"), two.database("shop").expect("opens"));
    assert_eq!(try_add(&first, 1), Ok(1));
    // The first doesn't end: the second has waited long enough, and goes on with something else.
    assert_eq!(try_add(&second, 1), Err(ErrorKind::Conflict));
    assert_eq!(try_add(&second, 2), Ok(1));
    one.commit(Durability::Relaxed, None).expect("no other transaction wrote it");
    // The second has read nothing of the first document: it sees what the first one made of it.
    assert_eq!(try_add(&second, 1), Ok(1));
    assert_eq!(all(&second, "things"), "[{'_id':1,'n':2},{'_id':2,'n':1}]");
    assert_eq!(
        shop.count("things", &FindRequest::of(json("{'n': 1}").view())).expect("a count"),
        1
    );
    two.commit(Durability::Relaxed, None).expect("no other transaction wrote it");
    assert_eq!(all(&shop, "things"), "[{'_id':1,'n':2},{'_id':2,'n':1}]");
}

#[test]
fn a_cursor_goes_on_where_it_began_when_the_snapshot_moves() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("opens");
    insert(&shop, "things", "[{'_id': 1}, {'_id': 2}, {'_id': 3}]");
    insert(&shop, "others", "[{'_id': 1, 'n': 0}]");
    let add = || statement("{'_id': 1}", "{'$inc': {'n': 1}}");
    for (changes_what_is_read, expected) in [(false, None), (true, Some(ErrorKind::Conflict))] {
        let transaction = frond.begin();
        let inside = transaction.database("shop").expect("opens");
        let mut cursor = inside.find("things", &FindRequest::default()).expect("finds");
        assert_eq!(text(&cursor.next().expect("a document").expect("reads")), "{'_id':1}");
        update(&shop, "others", add());
        if changes_what_is_read {
            // Behind where the cursor is, but it may come there.
            insert(&shop, "things", "[{'_id': 4}]");
        }
        let done = inside.update("others", &[add()], true, Durability::Relaxed);
        assert_eq!(done.map(|done| done.modified).err().map(|error| error.kind), expected);
        let rest: Vec<_> = cursor.map(|document| text(&document.expect("reads"))).collect();
        assert_eq!(rest, ["{'_id':2}", "{'_id':3}"]);
        transaction.abort();
    }
}

#[test]
fn a_transactions_cursor_filters_documents_the_transaction_changed() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("opens");
    insert(&shop, "things", "[{'_id': 1, 'n': 1}, {'_id': 2, 'n': 1}, {'_id': 3, 'n': 1}]");
    let spec = IndexSpec::parse(json("{'key': {'n': 1}}").view()).expect("a proper index");
    shop.create_indexes("things", &[spec]).expect("made");
    let transaction = frond.begin();
    let inside = transaction.database("shop").expect("opens");
    let hinted = FindRequest { hint: Some(value("'n_1'")), ..request("{'n': 1}") };
    let mut cursor = inside.find("things", &hinted).expect("finds");
    assert_eq!(text(&cursor.next().expect("a document").expect("reads")), "{'_id':1,'n':1}");
    update(&inside, "things", statement("{'_id': 3}", "{'$set': {'n': 2}}"));
    let rest: Vec<_> = cursor.map(|document| text(&document.expect("reads"))).collect();
    assert_eq!(rest, ["{'_id':2,'n':1}"]);
}

#[test]
fn a_snapshot_stays_where_names_that_were_known_lead_elsewhere() {
    let add = || statement("{'_id': 1}", "{'$inc': {'n': 1}}");
    for changes_branch in [false, true] {
        let frond = open();
        let main = Repository::open(&frond, "shop").expect("opens");
        insert(&main, "things", "[{'_id': 1}]");
        insert(&main, "others", "[{'_id': 1, 'n': 0}]");
        main.commit("first", "").expect("something changed");
        insert(&main, "things", "[{'_id': 2}]");
        main.commit("second", "").expect("something changed");
        // A branch that shares what it has with a commit, and a commit by a name that leads to it
        // now.
        main.create_branch("side", Some("HEAD~1")).expect("made");
        let name = if changes_branch { "shop@side" } else { "shop@main~1" };
        // Others have found out where the collection lies.
        assert_eq!(all(&Repository::open(&frond, name).expect("opens"), "things"), "[{'_id':1}]");
        let transaction = frond.begin();
        let inside = |name| transaction.database(name).expect("opens");
        assert_eq!(all(&inside(name), "things"), "[{'_id':1}]");
        if changes_branch {
            insert(&Repository::open(&frond, name).expect("opens"), "things", "[{'_id': 3}]");
        } else {
            insert(&main, "things", "[{'_id': 3}]");
            main.commit("third", "").expect("something changed");
        }
        update(&main, "others", add());
        let done = inside("shop").update("others", &[add()], true, Durability::Relaxed);
        assert_eq!(done.map(|_| ()).map_err(|error| error.kind), Err(ErrorKind::Conflict));
        assert_eq!(all(&inside(name), "things"), "[{'_id':1}]");
    }
}

#[test]
fn commands_of_versions_are_no_part_of_a_transaction() {
    let frond = open();
    let outside = Repository::open(&frond, "shop").expect("opens");
    insert(&outside, "things", "[{'_id': 1}]");
    outside.commit("first", "").expect("something changed");
    let transaction = frond.begin();
    let inside = Repository::from(transaction.database("shop").expect("opens"));
    insert(&inside, "things", "[{'_id': 2}]");
    let refusals = [
        inside.commit("second", "").err(),
        inside.create_branch("side", None).err(),
        inside.create_tag("v1", None, None, false).err(),
        inside.reset(None, true).err(),
        inside.merge(&Default::default()).err(),
        inside.status().err(),
        inside.diff(None, None).err(),
        inside.undo(None, None).err(),
        inside.expire_reflog(0).err(),
        inside.restore_collection("things", None).err(),
        inside.set_branch_policy("main", Default::default()).err(),
    ];
    for (position, refusal) in refusals.into_iter().enumerate() {
        let code = refusal.map(|error| error.code.number());
        assert_eq!(code, Some(263), "command {position}");
    }
    assert_eq!(inside.log(None, None).expect("history can be read").len(), 1);
    transaction.commit(Durability::Synced, None).expect("no other transaction wrote");
    assert_eq!(all(&outside, "things"), "[{'_id':1},{'_id':2}]");
}
