//! Goal: keys go from one to the next in the order in which they were asked for, and circles are
//! broken. Method: cases by hand, and random ones, for which a model knows who must hold what.

use std::collections::BTreeMap;
use std::thread;

use frond_testkit::random::for_seeds;

use super::*;

const NOW: Duration = Duration::ZERO;

fn queued(taken: Acquired) -> Arc<Waiter> {
    match taken {
        Acquired::Queued(waiter) => waiter,
        _ => panic!("no other transaction had it"),
    }
}

#[test]
fn a_key_goes_to_the_first_in_its_queue() {
    let key_locks = KeyLocks::default();
    let [one, two, three] = [(); 3].map(|()| key_locks.owner());
    assert!(!key_locks.may_be_held(7));
    assert!(matches!(key_locks.take(one, 7), Acquired::New));
    assert!(matches!(key_locks.take(one, 7), Acquired::Held));
    assert!(key_locks.is_foreign(two, 7) && !key_locks.is_foreign(one, 7));
    let (second, third) = (queued(key_locks.take(two, 7)), queued(key_locks.take(three, 7)));
    assert_eq!((second.wait(NOW), third.wait(NOW)), (WaitState::Waiting, WaitState::Waiting));
    key_locks.release(one, 7);
    assert_eq!((second.wait(NOW), third.wait(NOW)), (WaitState::Granted, WaitState::Waiting));
    assert_eq!(key_locks.leave(&third), WaitState::Ended);
    assert_eq!(key_locks.leave(&second), WaitState::Granted);
    // One that has nothing lets go of nothing.
    key_locks.release(one, 7);
    assert!(key_locks.is_foreign(one, 7));
    key_locks.release(two, 7);
    assert!(!key_locks.may_be_held(7));
    assert_eq!(key_locks.waiting_count(), 0);
}

#[test]
fn the_youngest_in_a_circle_has_lost() {
    let key_locks = KeyLocks::default();
    let owners = [(); 3].map(|()| key_locks.owner());
    let [one, two, three] = owners;
    for (key, owner) in owners.into_iter().enumerate() {
        assert!(matches!(key_locks.take(owner, key as u64), Acquired::New));
    }
    let first = queued(key_locks.take(one, 1));
    let third = queued(key_locks.take(three, 0));
    // two -> three -> one -> two
    let second = queued(key_locks.take(two, 2));
    assert_eq!(third.wait(NOW), WaitState::Deadlock);
    assert_eq!((first.wait(NOW), second.wait(NOW)), (WaitState::Waiting, WaitState::Waiting));
    key_locks.release(three, 2);
    assert_eq!(second.wait(NOW), WaitState::Granted);
    // The youngest may be the one that comes.
    assert!(matches!(key_locks.take(three, 2), Acquired::Queued(_)));
    let fourth = key_locks.owner();
    assert!(matches!(key_locks.take(fourth, 9), Acquired::New));
    queued(key_locks.take(two, 9));
    assert!(matches!(key_locks.take(fourth, 2), Acquired::Deadlock));
}

#[test]
fn a_key_has_one_holder_at_a_time_and_every_wait_ends() {
    const OWNERS: usize = 6;
    for_seeds(300, |mut random| {
        let key_locks = KeyLocks::default();
        let mut owners: Vec<Owner> = (0..OWNERS).map(|_| key_locks.owner()).collect();
        let mut held: Vec<Vec<u64>> = vec![Vec::new(); OWNERS];
        let mut waits: Vec<Option<Arc<Waiter>>> = vec![None; OWNERS];
        for _ in 0..200 {
            // An owner that was given an outcome learns it; one that lost or is done begins again.
            for at in 0..OWNERS {
                let state = waits[at].as_ref().map(|waiter| waiter.wait(NOW));
                match state {
                    Some(WaitState::Granted) => {
                        held[at].push(waits[at].take().expect("it waited").fingerprint());
                    }
                    Some(WaitState::Deadlock) => waits[at] = None,
                    _ => continue,
                }
                if state == Some(WaitState::Deadlock) {
                    held[at].drain(..).for_each(|key| key_locks.release(owners[at], key));
                    owners[at] = key_locks.owner();
                }
            }
            let mut holders = BTreeMap::new();
            for (at, key) in held
                .iter()
                .enumerate()
                .flat_map(|(at, keys)| keys.iter().map(move |key| (at, *key)))
            {
                assert!(holders.insert(key, at).is_none(), "two hold {key}");
            }
            let free: Vec<usize> = (0..OWNERS).filter(|at| waits[*at].is_none()).collect();
            assert!(!free.is_empty(), "all wait for one another");
            let at = *random.choose(&free);
            if random.one_in(4) {
                held[at].drain(..).for_each(|key| key_locks.release(owners[at], key));
                owners[at] = key_locks.owner();
                continue;
            }
            let key = random.below(5) as u64;
            match key_locks.take(owners[at], key) {
                Acquired::New => held[at].push(key),
                Acquired::Held => assert!(held[at].contains(&key)),
                Acquired::Queued(waiter) => waits[at] = Some(waiter),
                Acquired::Deadlock => {
                    held[at].drain(..).for_each(|key| key_locks.release(owners[at], key));
                    owners[at] = key_locks.owner();
                }
            }
        }
    });
}

#[test]
fn threads_take_turns() {
    let key_locks = KeyLocks::default();
    let counter = Mutex::new(0_u32);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let owner = key_locks.owner();
                    if let Acquired::Queued(waiter) = key_locks.take(owner, 3) {
                        assert_eq!(waiter.wait(Duration::from_secs(60)), WaitState::Granted);
                    }
                    *counter.try_lock().expect("no other owner has the key") += 1;
                    key_locks.release(owner, 3);
                }
            });
        }
    });
    assert_eq!(*counter.lock().expect("no panic"), 2_000);
    assert!(!key_locks.may_be_held(3));
}
