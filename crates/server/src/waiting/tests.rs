//! A command that waits for a place is woken by what is written there, and nothing of it is missed.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Waker};

use frond_db::{ChangeRetention, Durability, FrondOptions};
use frond_doc::{DocumentBuf, document};
use frond_testkit::SimDisk;

use super::*;
use crate::common_fields::Common;
use crate::operations;
use crate::peer::Peer;

fn frond() -> Frond {
    let mut options = FrondOptions::default();
    options.engine.changes =
        ChangeRetention { seconds: 3600, bytes: 64 << 20, ..ChangeRetention::default() };
    frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("an empty disk opens")
}

fn operation(operations: &operations::Operations) -> Arc<Operation> {
    let peer = Arc::new(Peer::new(1, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))));
    Arc::clone(
        &operations
            .begin(&peer, "getMore", ("shop", &DocumentBuf::empty()), &Common::default())
            .operation,
    )
}

/// Whether it was woken since it was asked last.
fn was_woken(operation: &Operation) -> bool {
    pin!(operation.woken()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn write(frond: &Frond, collection: &str) {
    let database = frond.database("shop").expect("a proper name");
    let documents = [document! { "a": 1 }];
    database.insert(collection, &documents, true, Durability::Synced).expect("written");
}

#[test]
fn a_write_wakes_its_waiters_and_no_others() {
    let (frond, operations, waiting) =
        (frond(), operations::Operations::default(), Waiting::default());
    write(&frond, "things");
    let of =
        |name: &str| WatchTarget::Collection("shop".to_owned(), "main".to_owned(), name.to_owned());
    let branch = |name: &str| WatchTarget::Branch("shop".to_owned(), name.to_owned());
    let places = [
        of("things"),
        of("others"),
        branch("main"),
        branch("dev"),
        WatchTarget::All,
        WatchTarget::Unrecorded,
    ];
    let all: Vec<_> = places.iter().map(|place| (place, operation(&operations))).collect();
    for (place, operation) in &all {
        waiting.enter(&frond, place, operation);
    }
    let mut followed = waiting.next().expect("they wait");
    let woken = || -> Vec<bool> { all.iter().map(|(_, operation)| was_woken(operation)).collect() };
    assert_eq!(woken(), [false; 6]);
    write(&frond, "things");
    followed.advance(&mut |touched| waiting.touch(touched));
    assert_eq!(woken(), [true, false, true, false, true, false]);
    write(&frond, "more");
    followed.advance(&mut |touched| waiting.touch(touched));
    assert_eq!(woken(), [false, false, true, false, true, false]);
    // A transaction that can't be read may have written anything.
    waiting.touch(None);
    assert_eq!(woken(), [true, true, true, true, true, false]);
    for (place, operation) in &all {
        waiting.leave(place, operation);
        waiting.leave(place, operation);
    }
    let table = waiting.table();
    assert!(table.count == 0 && table.by_branch.is_empty());
}

#[test]
fn the_thread_wakes_what_waits_sleeps_where_nothing_does_and_ends() {
    let (frond, operations, waiting) =
        (frond(), operations::Operations::default(), Waiting::default());
    let place = WatchTarget::Collection("shop".to_owned(), "main".to_owned(), "things".to_owned());
    std::thread::scope(|scope| {
        scope.spawn(|| waiting.run());
        for _ in 0..20 {
            let (first, unrecorded) = (operation(&operations), operation(&operations));
            waiting.enter(&frond, &place, &first);
            waiting.enter(&frond, &WatchTarget::Unrecorded, &unrecorded);
            write(&frond, "things");
            let (mut first_is, mut unrecorded_is) = (false, false);
            while !first_is || !unrecorded_is {
                first_is |= was_woken(&first);
                unrecorded_is |= was_woken(&unrecorded);
                std::thread::yield_now();
            }
            waiting.leave(&place, &first);
            waiting.leave(&WatchTarget::Unrecorded, &unrecorded);
        }
        assert_eq!(waiting.count(), 0);
        waiting.close(&frond);
    });
}
