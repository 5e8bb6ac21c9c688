//! Goal: the outcome of a put to a bucket is found out, whatever became of the reply. Method:
//! writers race for one object in a simulated bucket that refuses, loses, delays and doubles; each
//! success names the one before it, so one that was lost or doubled breaks the chain.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_store::bucket::{
    Bucket, BucketError, ObjectVersion, create_until_known, swap_until_known,
};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{DepotFaults, Random, SimDepot};

const HEAD: &str = "lines/main/HEAD";

/// A state of the object: its writer, and the state that it replaced.
fn state(own: u64, before: u64) -> Bytes {
    Bytes::from(format!("{own} {before}"))
}

fn read(bytes: &[u8]) -> (u64, u64) {
    let text = std::str::from_utf8(bytes).expect("a state is text");
    let (own, before) = text.split_once(' ').expect("two numbers");
    (own.parse().expect("a number"), before.parse().expect("a number"))
}

/// Loads the object, however often that fails.
fn load(bucket: &SimDepot) -> Option<(Bytes, ObjectVersion)> {
    loop {
        if let Ok(found) = bucket.load(HEAD) {
            return found;
        }
    }
}

/// Races writers.
fn race(random: &mut Random) {
    let bucket = SimDepot::new(random.next());
    bucket.set_faults(DepotFaults::MANY);
    let clients = [bucket.other_client(), bucket.other_client(), bucket.other_client()];
    let (mut won, mut unknown) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..60 {
        let client = &clients[random.below(clients.len())];
        let own = random.next();
        // The state that was read may be old by the time it is replaced.
        let found = load(client);
        let before = found.as_ref().map_or(0, |(bytes, _)| read(bytes).0);
        let put = match &found {
            None => create_until_known(client, HEAD, &state(own, before)),
            Some((_, version)) => {
                if random.one_in(3) {
                    let other = random.next();
                    let put = swap_until_known(&clients[0], HEAD, version, &state(other, before));
                    note(put, other, before, (&mut won, &mut unknown));
                }
                swap_until_known(client, HEAD, version, &state(own, before))
            }
        };
        note(put, own, before, (&mut won, &mut unknown));
    }
    bucket.settle();
    // Each that won was replaced by at most one that won, and all lie on one chain.
    let last = bucket.objects().get(HEAD).map(|bytes| read(bytes)).expect("one was made");
    let (mut own, mut count) = (last.0, 0);
    while own != 0 {
        count += usize::from(won.contains_key(&own));
        let before = won.get(&own).or_else(|| unknown.get(&own));
        own = *before.expect("it was told that it lost, and lies there");
    }
    assert_eq!(count, won.len(), "what was told that it won is gone");
}

type Outcome = Result<Option<ObjectVersion>, BucketError>;

fn note(
    put: Outcome,
    own: u64,
    before: u64,
    (won, unknown): (&mut BTreeMap<u64, u64>, &mut BTreeMap<u64, u64>),
) {
    match put {
        Ok(Some(_)) => drop(won.insert(own, before)),
        Ok(None) => {}
        Err(_) => drop(unknown.insert(own, before)),
    }
}

#[test]
fn of_writers_that_race_one_wins_and_knows() {
    for_seeds(300, |mut random| race(&mut random));
}

#[test]
fn a_store_that_ignores_conditions_breaks_the_chain() {
    let mut broken = 0;
    for_seeds(20, |mut random| {
        let bucket = SimDepot::new(random.next());
        bucket.ignore_conditions();
        let (one, two) = (state(1, 0), state(2, 0));
        let both = [&one, &two].map(|bytes| create_until_known(&bucket, HEAD, bytes));
        broken += usize::from(both.iter().all(|won| matches!(won, Ok(Some(_)))));
    });
    assert_met("two that won", broken, 1);
}

#[test]
fn a_client_that_is_cut_off_may_still_have_put() {
    let (mut came, mut lost) = (0, 0);
    for_seeds(60, |mut random| {
        let bucket = SimDepot::new(random.next());
        let client = bucket.other_client();
        client.cut_after(0);
        assert!(create_until_known(&client, HEAD, &state(1, 0)).is_err() && client.is_cut());
        bucket.settle();
        match bucket.objects().contains_key(HEAD) {
            true => came += 1,
            false => lost += 1,
        }
    });
    assert_met("puts of a dead client", came, 1);
    assert_met("puts that were lost", lost, 1);
}
