//! Goal: keys go from one to the next in the order in which they were asked for, and circles are broken. Method: cases by
//! hand, and random ones of which a model knows who must hold what.

use std::collections::BTreeMap;
use std::thread;

use frond_testkit::random::for_seeds;

use super::*;

const NOW: Duration = Duration::ZERO;

fn queued(taken: Taken) -> Arc<Waiter> {
    match taken {
        Taken::Queued(waiter) => waiter,
        _ => panic!("nobody else had it"),
    }
}

#[test]
fn a_key_goes_to_the_first_in_its_queue() {
    let intents = Intents::default();
    let [one, two, three] = [(); 3].map(|()| intents.owner());
    assert!(!intents.may_be_held(7));
    assert!(matches!(intents.take(one, 7), Taken::New));
    assert!(matches!(intents.take(one, 7), Taken::Held));
    assert!(intents.is_foreign(two, 7) && !intents.is_foreign(one, 7));
    let (second, third) = (queued(intents.take(two, 7)), queued(intents.take(three, 7)));
    assert_eq!((second.wait(NOW), third.wait(NOW)), (Standing::Waiting, Standing::Waiting));
    intents.release(one, 7);
    assert_eq!((second.wait(NOW), third.wait(NOW)), (Standing::Granted, Standing::Waiting));
    assert_eq!(intents.leave(&third), Standing::Ended);
    assert_eq!(intents.leave(&second), Standing::Granted);
    // One that has nothing lets go of nothing.
    intents.release(one, 7);
    assert!(intents.is_foreign(one, 7));
    intents.release(two, 7);
    assert!(!intents.may_be_held(7));
    assert_eq!(intents.waiting_count(), 0);
}

#[test]
fn the_youngest_in_a_circle_has_lost() {
    let intents = Intents::default();
    let owners = [(); 3].map(|()| intents.owner());
    let [one, two, three] = owners;
    for (key, owner) in owners.into_iter().enumerate() {
        assert!(matches!(intents.take(owner, key as u64), Taken::New));
    }
    let first = queued(intents.take(one, 1));
    let third = queued(intents.take(three, 0));
    // two -> three -> one -> two
    let second = queued(intents.take(two, 2));
    assert_eq!(third.wait(NOW), Standing::Deadlock);
    assert_eq!((first.wait(NOW), second.wait(NOW)), (Standing::Waiting, Standing::Waiting));
    intents.release(three, 2);
    assert_eq!(second.wait(NOW), Standing::Granted);
    // The youngest may be the one that comes.
    assert!(matches!(intents.take(three, 2), Taken::Queued(_)));
    let fourth = intents.owner();
    assert!(matches!(intents.take(fourth, 9), Taken::New));
    queued(intents.take(two, 9));
    assert!(matches!(intents.take(fourth, 2), Taken::Deadlock));
}

#[test]
fn one_holder_at_a_time_and_nobody_waits_for_ever() {
    const OWNERS: usize = 6;
    for_seeds(300, |mut random| {
        let intents = Intents::default();
        let mut owners: Vec<Owner> = (0..OWNERS).map(|_| intents.owner()).collect();
        let mut held: Vec<Vec<u64>> = vec![Vec::new(); OWNERS];
        let mut waits: Vec<Option<Arc<Waiter>>> = vec![None; OWNERS];
        for _ in 0..200 {
            // Whoever was told something hears of it; who lost, or is done, begins again.
            for at in 0..OWNERS {
                let standing = waits[at].as_ref().map(|waiter| waiter.wait(NOW));
                match standing {
                    Some(Standing::Granted) => {
                        held[at].push(waits[at].take().expect("it waited").fingerprint());
                    }
                    Some(Standing::Deadlock) => waits[at] = None,
                    _ => continue,
                }
                if standing == Some(Standing::Deadlock) {
                    held[at].drain(..).for_each(|key| intents.release(owners[at], key));
                    owners[at] = intents.owner();
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
                held[at].drain(..).for_each(|key| intents.release(owners[at], key));
                owners[at] = intents.owner();
                continue;
            }
            let key = random.below(5) as u64;
            match intents.take(owners[at], key) {
                Taken::New => held[at].push(key),
                Taken::Held => assert!(held[at].contains(&key)),
                Taken::Queued(waiter) => waits[at] = Some(waiter),
                Taken::Deadlock => {
                    held[at].drain(..).for_each(|key| intents.release(owners[at], key));
                    owners[at] = intents.owner();
                }
            }
        }
    });
}

#[test]
fn threads_take_turns() {
    let intents = Intents::default();
    let counter = Mutex::new(0_u32);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let owner = intents.owner();
                    if let Taken::Queued(waiter) = intents.take(owner, 3) {
                        assert_eq!(waiter.wait(Duration::from_secs(60)), Standing::Granted);
                    }
                    *counter.try_lock().expect("nobody else has the key") += 1;
                    intents.release(owner, 3);
                }
            });
        }
    });
    assert_eq!(*counter.lock().expect("no panic"), 2_000);
    assert!(!intents.may_be_held(3));
}
