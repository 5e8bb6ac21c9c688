//! Goal: answers to concurrent writers of the same few documents (numbers handed out, counts of
//! nothing matched, duplicate keys, answers to retries), in transactions too, before and after they
//! commit, hold after a crash, whatever fails and when; every reader sees a transfer as a whole or
//! not at all. Method: threads on a disk that fills and is emptied again; then a write or a sync
//! fails, or the power; by seeds.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use frond_db::catalog::IndexSpec;
use frond_db::retry::StatementIds;
use frond_db::{
    Database, Durability, Error, FindAndModify, Frond, FrondOptions, RetryKey, RetryableWrite,
};
use frond_engine::EngineOptions;
use frond_query::Code;
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};

use crate::support::*;

const WORKERS: u64 = 5;
const STATEMENTS: usize = 25;
const NAMES: usize = 40;
const ACCOUNTS: i64 = 3;
const TOTAL: i64 = 100 * ACCOUNTS;

/// The answers that clients got.
struct Acknowledged {
    /// The counter was at least this.
    counter: AtomicI64,
    /// There is a user of this name.
    names: Vec<AtomicBool>,
    /// The number of times the session's counter was raised, by worker.
    raised: Vec<AtomicI64>,
    /// The number of attempts.
    tried: Vec<AtomicI64>,
    /// The number of statements that were refused for a full disk.
    refused: AtomicI64,
}

impl Acknowledged {
    fn new() -> Acknowledged {
        Acknowledged {
            counter: AtomicI64::new(0),
            names: (0..NAMES).map(|_| AtomicBool::new(false)).collect(),
            raised: (0..WORKERS).map(|_| AtomicI64::new(0)).collect(),
            tried: (0..WORKERS).map(|_| AtomicI64::new(0)).collect(),
            refused: AtomicI64::new(0),
        }
    }
}

fn open_on(disk: &SimDisk) -> Result<Frond, Error> {
    let engine = EngineOptions { relaxed_sync_millis: 1, ..EngineOptions::default() };
    frond_vcs::open_on(&disk.machine(), FrondOptions { engine, ..FrondOptions::default() })
}

/// Raises the counter; what it was raised to.
fn hand_out(shop: &Database) -> Result<i64, Error> {
    let request = FindAndModify {
        filter: json("{'_id': 'counter'}"),
        sort: None,
        update: Some(value("{'$inc': {'n': 1}}")),
        upsert: false,
        return_new: true,
        projection: None,
        array_filters: None,
        hint: None,
        variables: None,
        collation: None,
    };
    let document = shop.find_and_modify("things", &request, Durability::Synced)?.value;
    let document = document.expect("it is never removed");
    Ok(document.get("n").and_then(|n| n.as_integer()).expect("a number"))
}

/// Raises the counter if it is below a number; returns whether it was.
fn raise_below(shop: &Database, below: i64) -> Result<bool, Error> {
    let filter = format!("{{'_id': 'counter', 'n': {{'$lt': {below}}}}}");
    let raise = statement(&filter, "{'$inc': {'n': 1}}");
    let report = shop.update("things", &[raise], true, Durability::Synced)?;
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    Ok(report.matched == 1)
}

/// Inserts a user; the name is taken then. Returns whether by this one.
fn register(shop: &Database, name: usize) -> Result<bool, Error> {
    let user = json(&format!("{{'name': {name}}}"));
    let report = shop.insert("users", &[user], true, Durability::Synced)?;
    match &report.errors[..] {
        [] => assert_eq!(report.count, 1),
        [error] => assert_eq!(error.error.code, Code::DuplicateKey),
        more => panic!("{more:?}"),
    }
    Ok(report.errors.is_empty())
}

/// Raises a worker's own number, sent twice at once; both answers say that it was raised.
fn raise_twice_sent(shop: &Database, worker: u64, number: i64) -> Result<(), Error> {
    let key = RetryKey { session: [worker as u8 + 1; 16], number };
    let write = RetryableWrite { key, statements: StatementIds::From(0) };
    let raise = || {
        let shop = shop.clone().retryable(write.clone());
        let filter = format!("{{'_id': 'of {worker}'}}");
        let raise = statement(&filter, "{'$inc': {'n': 1}}");
        shop.update("things", &[raise], true, Durability::Synced)
    };
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(raise);
        (raise(), other.join().expect("no panic"))
    });
    // Either answer says that it was done.
    let report = one.or(other)?;
    assert!(report.errors.is_empty() && report.matched == 1, "{:?}", report.errors);
    Ok(())
}

/// Moves an amount between two accounts, in a transaction of two requests.
fn transfer(frond: &Frond, random: &mut Random) -> Result<(), Error> {
    let from = random.below(ACCOUNTS as usize) as i64;
    let to = (from + 1) % ACCOUNTS;
    let transaction = frond.begin();
    let shop = transaction.database("shop")?;
    for (account, amount) in [(from.min(to), -7), (from.max(to), 7)] {
        let filter = format!("{{'_id': {account}}}");
        let update = format!("{{'$inc': {{'amount': {amount}}}}}");
        let report =
            shop.update("accounts", &[statement(&filter, &update)], true, Durability::Synced)?;
        assert!(report.errors.is_empty(), "{:?}", report.errors);
    }
    check_accounts(&shop)?;
    transaction.commit(Durability::Synced, None)
}

/// Raises the counter in a transaction, and notes what that shows of it: before the commit, too.
fn hand_out_within(frond: &Frond, acknowledged: &Acknowledged) -> Result<(), Error> {
    let transaction = frond.begin();
    let n = hand_out(&transaction.database("shop")?)?;
    acknowledged.counter.fetch_max(n - 1, Ordering::SeqCst);
    transaction.commit(Durability::Synced, None)?;
    acknowledged.counter.fetch_max(n, Ordering::SeqCst);
    Ok(())
}

/// Raises the counter in a transaction if it is below a number, and notes what that shows of it.
fn raise_within(frond: &Frond, below: i64, acknowledged: &Acknowledged) -> Result<(), Error> {
    let transaction = frond.begin();
    let shop = transaction.database("shop")?;
    if raise_below(&shop, below)? {
        acknowledged.counter.fetch_max(number(&shop, "counter")? - 1, Ordering::SeqCst);
    } else {
        acknowledged.counter.fetch_max(below, Ordering::SeqCst);
    }
    transaction.commit(Durability::Synced, None)
}

/// Inserts a user in a transaction; a name that is taken is known to be so before the end.
fn register_within(frond: &Frond, name: usize, acknowledged: &Acknowledged) -> Result<(), Error> {
    let transaction = frond.begin();
    let is_new = register(&transaction.database("shop")?, name)?;
    let note = || acknowledged.names[name].store(true, Ordering::SeqCst);
    if !is_new {
        note();
    }
    transaction.commit(Durability::Synced, None)?;
    note();
    Ok(())
}

/// Changes all accounts in one statement.
fn touch_all(shop: &Database) -> Result<(), Error> {
    let mut all = statement("{}", "{'$inc': {'touched': 1}}");
    all.multi = true;
    let report = shop.update("accounts", &[all], true, Durability::Synced)?;
    assert_eq!(report.matched, ACCOUNTS as u64);
    Ok(())
}

fn work(frond: &Frond, worker: u64, acknowledged: &Acknowledged, mut random: Random) {
    let shop = frond.database("shop").expect("opens");
    for number in 1..=STATEMENTS as i64 {
        let done = match random.below(9) {
            0 => hand_out(&shop).map(|n| {
                acknowledged.counter.fetch_max(n, Ordering::SeqCst);
            }),
            1 => {
                let below = acknowledged.counter.load(Ordering::SeqCst) + 3;
                raise_below(&shop, below).map(|was_below| {
                    if !was_below {
                        acknowledged.counter.fetch_max(below, Ordering::SeqCst);
                    }
                })
            }
            2 => {
                let name = random.below(NAMES);
                register(&shop, name)
                    .map(|_| acknowledged.names[name].store(true, Ordering::SeqCst))
            }
            3 => {
                acknowledged.tried[worker as usize].fetch_add(1, Ordering::SeqCst);
                raise_twice_sent(&shop, worker, number).map(|()| {
                    acknowledged.raised[worker as usize].fetch_add(1, Ordering::SeqCst);
                })
            }
            4 => transfer(frond, &mut random),
            5 => hand_out_within(frond, acknowledged),
            6 => raise_within(frond, acknowledged.counter.load(Ordering::SeqCst) + 3, acknowledged),
            7 => register_within(frond, random.below(NAMES), acknowledged),
            _ => touch_all(&shop),
        };
        match done {
            Ok(()) => {}
            Err(error) if error.code == Code::OutOfDiskSpace => {
                acknowledged.refused.fetch_add(1, Ordering::SeqCst);
            }
            Err(error) if error.code == Code::WriteConflict => {}
            Err(_) => {
                assert!(frond.engine().fault().is_some(), "nothing else fails: {done:?}");
                return;
            }
        }
    }
}

/// The accounts at one moment: all were touched as often, and have as much as they had.
fn check_accounts(shop: &Database) -> Result<(), Error> {
    let found = run(shop, "accounts", &request("{}"))?;
    let sum = |field: &str| {
        let number = |document: &frond_doc::DocumentBuf| {
            document.get(field).and_then(|number| number.as_integer()).unwrap_or(0)
        };
        found.iter().map(number).collect::<Vec<_>>()
    };
    assert_eq!(sum("amount").iter().sum::<i64>(), TOTAL, "half of a transfer");
    assert!(sum("touched").windows(2).all(|two| two[0] == two[1]), "half of an update");
    Ok(())
}

fn number(shop: &Database, id: &str) -> Result<i64, Error> {
    let found = run(shop, "things", &request(&format!("{{'_id': '{id}'}}")))?;
    Ok(found[0].get("n").and_then(|n| n.as_integer()).expect("a number"))
}

fn set_up(frond: &Frond) {
    let shop = frond.database("shop").expect("opens");
    let spec = IndexSpec::parse(json("{'key': {'name': 1}, 'unique': true}").view());
    shop.create_indexes("users", &[spec.expect("a proper index")]).expect("made");
    insert(&shop, "things", "[{'_id': 'counter', 'n': 0}]");
    for worker in 0..WORKERS {
        insert(&shop, "things", &format!("[{{'_id': 'of {worker}', 'n': 0}}]"));
    }
    for account in 0..ACCOUNTS {
        insert(&shop, "accounts", &format!("[{{'_id': {account}, 'amount': 100, 'touched': 0}}]"));
    }
    frond.engine().begin().commit(Durability::Synced).expect("durable");
}

#[test]
fn nothing_acknowledged_is_lost_and_no_half_is_seen() {
    for_seeds(40, |mut random| {
        let disk = SimDisk::new(random.next());
        let frond = open_on(&disk).expect("opens");
        set_up(&frond);
        let (acknowledged, is_over) = (Acknowledged::new(), AtomicBool::new(false));
        thread::scope(|scope| {
            let (frond, acknowledged, is_over) = (&frond, &acknowledged, &is_over);
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let random = Random::new(random.next());
                    scope.spawn(move || work(frond, worker, acknowledged, random))
                })
                .collect();
            scope.spawn(move || {
                let shop = frond.database("shop").expect("opens");
                while !is_over.load(Ordering::SeqCst) {
                    check_accounts(&shop).expect("readable");
                    thread::yield_now();
                }
            });
            let is_done = || workers.iter().all(|worker| worker.is_finished());
            for _ in 0..random.below(5) {
                let before = acknowledged.refused.load(Ordering::SeqCst);
                disk.fill_after(random.below(12_000) as u64);
                while acknowledged.refused.load(Ordering::SeqCst) == before && !is_done() {
                    thread::yield_now();
                }
                disk.make_room();
            }
            match random.below(4) {
                0 => disk.fail_write_after(random.below(20) as u64),
                1 => disk.fail_sync_after(random.below(20) as u64),
                // A read of a dead disk fails, too: nothing is read from it here.
                _ => {}
            }
            while !is_done() {
                thread::yield_now();
            }
            is_over.store(true, Ordering::SeqCst);
        });
        let disk = disk.crash();
        drop(frond);
        let frond = open_on(&disk).expect("opens again");
        frond.engine().check().expect("every invariant holds");
        let shop = frond.database("shop").expect("opens");
        check_accounts(&shop).expect("readable");
        let (counter, found) =
            (acknowledged.counter.into_inner(), number(&shop, "counter").expect("readable"));
        assert!(counter <= found, "{counter} was told, {found} survived");
        for (name, is_acknowledged) in acknowledged.names.iter().enumerate() {
            let count = run(&shop, "users", &request(&format!("{{'name': {name}}}")));
            let count = count.expect("readable").len();
            assert!(
                count <= 1 && usize::from(is_acknowledged.load(Ordering::SeqCst)) <= count,
                "{name}"
            );
        }
        for (worker, (raised, tried)) in
            acknowledged.raised.iter().zip(&acknowledged.tried).enumerate()
        {
            let found = number(&shop, &format!("of {worker}")).expect("readable");
            let (raised, tried) = (raised.load(Ordering::SeqCst), tried.load(Ordering::SeqCst));
            assert!(raised <= found, "{raised} of {worker} were told, {found} survived");
            assert!(found <= tried, "{tried} of {worker} were sent, {found} were done");
        }
    });
}
