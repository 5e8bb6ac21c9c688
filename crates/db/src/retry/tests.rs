//! Goal: a record is read as it was written, and a write that was done isn't repeated. Method:
//! records with runs of statements; writes sent twice on a simulated disk, over a crash too.

use frond_doc::{DocumentBuf, ValueBuf, document};
use frond_testkit::SimDisk;

use super::*;
use crate::collection::{DeleteStatement, FindAndModify, FindRequest, UpdateStatement};
use crate::database::Database;
use crate::frond::FrondOptions;

fn done(count: u64, upserted: Option<i32>) -> StatementDone {
    let upserted = upserted.map(|id| ValueBuf::from(frond_doc::Value::Int32(id)));
    StatementDone { count, modified: 0, upserted }
}

#[test]
fn equal_statements_in_a_row_are_one_run() {
    let mut record = Record::new(7, 1_000);
    for id in [0, 1, 2, 5, 6] {
        record.add(id, &done(1, None));
    }
    record.add(7, &done(0, Some(7)));
    record.add(8, &done(0, Some(8)));
    let record = Record::decode(record.encode()).expect("read");
    assert_eq!((record.number, record.used_millis), (7, 1_000));
    let Remembered::Statements(runs) = &record.what else { panic!("{record:?}") };
    assert_eq!(runs.keys().copied().collect::<Vec<_>>(), [0, 5, 7, 8]);
    for (id, expected) in [
        (-1, None),
        (0, Some(done(1, None))),
        (2, Some(done(1, None))),
        (3, None),
        (6, Some(done(1, None))),
        (8, Some(done(0, Some(8)))),
        (9, None),
    ] {
        assert_eq!(record.statement(id), expected.as_ref(), "{id}");
    }
}

#[test]
fn damaged_records_are_errors() {
    let mut record = Record::new(7, 1_000);
    record.add(3, &done(0, Some(1)));
    let whole = record.encode();
    for end in 0..whole.len() {
        assert!(Record::decode(whole.slice(..end)).is_err(), "{end} bytes");
    }
    for wrong in [
        document! { "number": 1 },
        document! { "number": 1, "modified": 1 },
        document! { "number": 1, "committed": true },
    ] {
        assert!(Record::decode(wrong.clone().into_bytes()).is_err(), "{wrong:?}");
    }
}

fn open(disk: &SimDisk) -> Frond {
    Frond::open_bare(&disk.machine(), FrondOptions::default()).expect("opens")
}

fn write(frond: &Frond, number: i64) -> Database {
    let key = RetryKey { session: [3; 16], number };
    let statements = StatementIds::From(0);
    frond.database("shop").expect("opens").retryable(RetryableWrite { key, statements })
}

fn documents(ids: &[i32]) -> Vec<DocumentBuf> {
    ids.iter().map(|id| document! { "_id": *id }).collect()
}

fn insert(frond: &Frond, number: i64, ids: &[i32]) -> (u64, usize, Vec<i32>) {
    let documents = documents(ids);
    let report = write(frond, number).insert("things", &documents, false, Durability::Synced);
    let report = report.expect("the request is right");
    (report.count, report.errors.len(), report.retried)
}

fn count(frond: &Frond) -> u64 {
    let database = frond.database("shop").expect("opens");
    database.count("things", &FindRequest::default()).expect("a count")
}

#[test]
fn an_insert_that_is_sent_twice_is_done_once() {
    let disk = SimDisk::new(1);
    let mut frond = open(&disk);
    assert_eq!(insert(&frond, 1, &[1, 2]), (2, 0, vec![]));
    assert_eq!(insert(&frond, 1, &[1, 2]), (2, 0, vec![0, 1]));
    // A statement that failed runs again; one that is new runs now.
    assert_eq!(insert(&frond, 2, &[2, 3]), (1, 1, vec![]));
    assert_eq!(insert(&frond, 2, &[2, 3, 4]), (2, 1, vec![1]));
    drop(frond);
    frond = open(&disk.crash());
    assert_eq!(insert(&frond, 2, &[2, 3, 4]), (2, 1, vec![1, 2]));
    assert_eq!(count(&frond), 4);
    let old = write(&frond, 1).insert("things", &documents(&[9]), true, Durability::Synced);
    assert_eq!(old.expect_err("too old").code, Code::TransactionTooOld);
}

#[test]
fn a_write_of_many_statements_is_remembered_in_parts() {
    let disk = SimDisk::new(1);
    let mut frond = open(&disk);
    let ids: Vec<i32> = (0..4_500).collect();
    // Every fifth one is there already, so its statement fails, and runs again when it is sent
    // again.
    let there: Vec<i32> = ids.iter().copied().filter(|id| id % 5 == 0).collect();
    insert(&frond, 1, &there);
    let new: Vec<i32> = ids.iter().copied().filter(|id| id % 5 != 0).collect();
    assert_eq!(insert(&frond, 2, &ids), (3_600, 900, vec![]));
    drop(frond);
    frond = open(&disk.crash());
    assert_eq!(insert(&frond, 2, &ids), (3_600, 900, new));
    // The parts that number 2 left are nothing to number 3, and go with the session's record.
    let next: Vec<i32> = (10_000..12_500).collect();
    assert_eq!(insert(&frond, 3, &next), (2_500, 0, vec![]));
    assert_eq!(insert(&frond, 3, &next), (2_500, 0, (0..2_500).collect()));
    // Statements that begin in a later part record the session's number too.
    let key = RetryKey { session: [3; 16], number: 4 };
    let write = RetryableWrite { key, statements: StatementIds::From(7_999) };
    let shop = frond.database("shop").expect("opens").retryable(write);
    for retried in [vec![], vec![7_999, 8_000]] {
        let report = shop.insert("things", &documents(&[20_000, 20_001]), true, Durability::Synced);
        assert_eq!(report.expect("right").retried, retried);
    }
    assert_eq!(frond.number_state(key).expect("read"), NumberState::Write);
    assert_eq!(frond.forget_retries(i64::MAX).expect("removed"), 7);
}

#[test]
fn updates_deletes_and_find_and_modify_are_done_once() {
    let frond = open(&SimDisk::new(1));
    insert(&frond, 1, &[1, 2]);
    let increment = |number| {
        let statement = |id: i32, upsert| UpdateStatement {
            upsert,
            ..UpdateStatement::new(
                document! { "_id": id },
                document! { "$inc": &document! { "a": 1 } },
            )
        };
        let statements = [statement(1, false), statement(7, false), statement(9, true)];
        write(&frond, number).update("things", &statements, true, Durability::Synced)
    };
    for retried in [vec![], vec![0, 2]] {
        let report = increment(2).expect("right");
        assert_eq!((report.matched, report.modified, report.upserted.len()), (1, 1, 1));
        assert_eq!(report.retried, retried);
    }
    let modify = || {
        let request = FindAndModify {
            filter: document! { "_id": 1 },
            sort: None,
            update: Some(ValueBuf::from(document! { "$inc": &document! { "a": 1 } })),
            upsert: false,
            return_new: true,
            projection: None,
            array_filters: None,
            hint: None,
            variables: None,
            collation: None,
        };
        write(&frond, 3).find_and_modify("things", &request, Durability::Synced).expect("right")
    };
    for retried in [false, true] {
        let report = modify();
        assert_eq!(report.value, Some(document! { "_id": 1, "a": 2 }));
        assert_eq!(report.retried, retried);
    }
    for retried in [vec![], vec![0]] {
        let delete = DeleteStatement {
            filter: document! {},
            only_first: true,
            hint: None,
            variables: None,
            collation: None,
        };
        let report = write(&frond, 4).delete("things", &[delete], true, Durability::Synced);
        assert_eq!(report.expect("right").retried, retried);
    }
    assert_eq!(count(&frond), 2);
    let all = DeleteStatement {
        filter: document! {},
        only_first: false,
        hint: None,
        variables: None,
        collation: None,
    };
    let report = write(&frond, 5).delete("things", &[all], true, Durability::Synced);
    assert_eq!(report.expect("right").errors[0].error.code, Code::InvalidOptions);
}

/// An erase takes what documents held out of all answers; no write is done twice for that.
#[test]
fn writes_whose_answers_were_forgotten_are_not_done_again() {
    let disk = SimDisk::new(1);
    let mut frond = open(&disk);
    insert(&frond, 1, &[1, 2]);
    let of_session = |session: u8| RetryableWrite {
        key: RetryKey { session: [session; 16], number: 1 },
        statements: StatementIds::From(0),
    };
    let database = |frond: &Frond, session: u8| {
        frond.database("shop").expect("opens").retryable(of_session(session))
    };
    let modify = |frond: &Frond| {
        let request = FindAndModify {
            filter: document! { "_id": 1 },
            sort: None,
            update: Some(ValueBuf::from(document! { "$inc": &document! { "a": 1 } })),
            upsert: false,
            return_new: true,
            projection: None,
            array_filters: None,
            hint: None,
            variables: None,
            collation: None,
        };
        database(frond, 50).find_and_modify("things", &request, Durability::Synced)
    };
    let update = |frond: &Frond, session: u8, ids: &[i32], upsert: bool| {
        let increment = document! { "$inc": &document! { "a": 1 } };
        let statement = |id: &i32| UpdateStatement {
            upsert,
            ..UpdateStatement::new(document! { "_id": *id }, increment.clone())
        };
        let statements: Vec<UpdateStatement> = ids.iter().map(statement).collect();
        database(frond, session).update("things", &statements, true, Durability::Synced)
    };
    // Of the last, only a later part of the record has an `_id`.
    let many: Vec<i32> = (0..1_100).map(|place| if place == 1_050 { 77 } else { 2 }).collect();
    modify(&frond).expect("right");
    update(&frond, 51, &[2], false).expect("right");
    update(&frond, 52, &[9], true).expect("right");
    update(&frond, 53, &many, true).expect("right");
    assert_eq!(frond.forget_answers().expect("forgotten"), 3);
    for is_restarted in [false, true] {
        if is_restarted {
            drop(frond);
            frond = open(&disk.crash());
        }
        assert_eq!(modify(&frond).expect_err("erased").code, Code::IncompleteTransactionHistory);
        assert_eq!(update(&frond, 51, &[2], false).expect("right").retried, [0]);
        for (session, ids) in [(52, &[9][..]), (53, &many)] {
            let code = match update(&frond, session, ids, true) {
                Err(error) => error.code,
                Ok(report) => report.errors[0].error.code,
            };
            assert_eq!(code, Code::IncompleteTransactionHistory);
        }
        assert_eq!(frond.forget_answers().expect("forgotten"), 0);
    }
    let found = frond.database("shop").expect("opens").find("things", &FindRequest::default());
    let found: Vec<DocumentBuf> = found.expect("right").collect::<Result<_, _>>().expect("right");
    let count = |id: i32| {
        let document =
            found.iter().find(|document| document.get("_id") == Some(frond_doc::Value::Int32(id)));
        document.and_then(|document| document.get("a")?.as_integer())
    };
    assert_eq!([1, 2, 9, 77].map(count), [Some(1), Some(1_100), Some(1), Some(1)]);
}

#[test]
fn the_same_write_sent_twice_at_once_is_done_once() {
    let frond = open(&SimDisk::new(1));
    for number in 0..50 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let id = number as i32;
                let frond = &frond;
                scope.spawn(move || assert_eq!(insert(frond, number, &[id]).0, 1));
            }
        });
    }
    assert_eq!(count(&frond), 50);
}

#[test]
fn old_records_are_forgotten() {
    let disk = SimDisk::new(1);
    let frond = open(&disk);
    insert(&frond, 1, &[1]);
    let now = frond.now_millis();
    let key = RetryKey { session: [3; 16], number: 1 };
    assert_eq!(frond.number_state(key).expect("read"), NumberState::Write);
    assert_eq!(frond.forget_retries(now).expect("removed"), 0);
    assert_eq!(frond.forget_retries(now + 1).expect("removed"), 1);
    assert_eq!(frond.number_state(key).expect("read"), NumberState::Unused);
}
