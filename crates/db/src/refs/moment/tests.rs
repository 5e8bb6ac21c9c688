//! Goal: a member of a set that follows waits for an `operationTime` that it hasn't come to, and
//! reads exactly that; what no member can have acknowledged is refused at once.
//!
//! *Method*: two members; what one commits as the leader is applied on the other by hand, once a
//! reader there waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use frond_doc::document;
use frond_engine::Durability;
use frond_engine::order::Order;
use frond_query::Code;
use frond_store::StoreError;
use frond_testkit::SimDisk;

use crate::frond::FrondOptions;
use crate::hook::NoVersions;

use super::*;

/// What the set has agreed on.
#[derive(Default)]
struct Agreed(Mutex<Vec<Bytes>>);

impl Order for Agreed {
    fn agree(&self, entries: Vec<Bytes>, _report: &dyn Fn(StoreError)) -> Result<(), StoreError> {
        self.0.lock().unwrap().extend(entries);
        Ok(())
    }
}

fn member(agreed: &Arc<Agreed>, seed: u64) -> Frond {
    let order = Arc::clone(agreed) as Arc<dyn Order>;
    let machine = SimDisk::new(seed).machine();
    Frond::open_in_set(&machine, FrondOptions::default(), NoVersions, order).unwrap()
}

/// Inserts a document; returns the `operationTime`.
fn insert(leader: &Frond, id: i32) -> u64 {
    let shop = leader.database("shop").unwrap();
    shop.insert("things", &[document! { "_id": id }], true, Durability::Synced).unwrap();
    leader.operation_time().0
}

fn name_at(time: u64) -> String {
    format!("shop@{{Timestamp({}, {})}}", time >> 32, time as u32)
}

#[test]
fn a_member_waits_for_a_moment_that_another_has_acknowledged() {
    let agreed = Arc::new(Agreed::default());
    let [leader, follower] = [1, 2].map(|seed| member(&agreed, seed));
    leader.lead();
    let names = [1, 2, 3].map(|id| name_at(insert(&leader, id)));
    let waits_begun = Arc::new(AtomicUsize::new(0));
    let waits = Arc::clone(&waits_begun);
    let interrupt = Interrupt::new(move || {
        waits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let count = |name: &str| {
        let past = follower.database_while(name, &interrupt)?;
        past.count("things", &Default::default())
    };
    thread::scope(|scope| {
        let readers = names.each_ref().map(|name| scope.spawn(|| count(name)));
        while waits_begun.load(Ordering::SeqCst) < readers.len()
            && !readers.iter().any(|reader| reader.is_finished())
        {
            thread::yield_now();
        }
        let entries = std::mem::take(&mut *agreed.0.lock().unwrap());
        for entry in &entries {
            follower.apply_entry(entry).unwrap();
        }
        let counts = readers.map(|reader| reader.join().unwrap().unwrap());
        assert_eq!(counts, [1, 2, 3]);
    });
}

#[test]
fn a_moment_that_does_not_come_is_refused() {
    let agreed = Arc::new(Agreed::default());
    let [leader, follower] = [1, 2].map(|seed| member(&agreed, seed));
    leader.lead();
    let (next, far) = (name_at(insert(&leader, 1) + 1), name_at(4_000_000_000 << 32));
    let stops = Interrupt::new(|| Err(Error::invalid(Code::MaxTimeMSExpired, "it takes too long")));
    let refused = |member: &Frond, name: &str| member.database_while(name, &stops).err().unwrap();
    assert_eq!(refused(&leader, &next).code, Code::BadValue);
    assert_eq!(refused(&follower, &next).code, Code::MaxTimeMSExpired);
    assert_eq!(refused(&follower, &far).code, Code::BadValue, "no clock has come to it");
}
