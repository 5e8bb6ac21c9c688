//! Blocks against a sorted map, in random order and from several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use std::thread;

use frond_testkit::random::for_seeds;

use super::*;
use crate::ids::TreeId;
use crate::log::record::Record;
use crate::overlay::stored::writes_of;

type Model = BTreeMap<(Vec<u8>, Reverse<Sequence>), ()>;

fn recycler() -> Arc<Recycler> {
    Arc::new(Recycler::new(16 << 10))
}

fn versioned(key: &[u8], sequence: u64) -> Versioned {
    let entry = (Bytes::copy_from_slice(key), None);
    let record = Record { writes: vec![(TreeId(2), vec![entry])], ..Record::default() };
    let stored = writes_of(&record.encode().into())[0].iter().next().unwrap();
    Versioned { sequence: Sequence(sequence), stored }
}

fn name(entry: &Versioned) -> (Vec<u8>, Reverse<Sequence>) {
    (entry.stored.key().to_vec(), Reverse(entry.sequence))
}

fn compare(blocks: &Blocks, model: &Model, key: &[u8], up_to: Sequence) {
    let mut found = Vec::new();
    blocks.ascend(Some(key), |entry| {
        found.push(name(entry));
        true
    });
    let from = (key.to_vec(), Reverse(Sequence(u64::MAX)));
    let expected: Vec<_> = model.range(from.clone()..).map(|(place, ())| place.clone()).collect();
    assert_eq!(found, expected);
    found.clear();
    blocks.descend(Some(key), |entry| {
        found.push(name(entry));
        true
    });
    let expected: Vec<_> = model.range(..from).rev().map(|(place, ())| place.clone()).collect();
    assert_eq!(found, expected);
    let newest = blocks.newest(key, up_to).map(|entry| entry.sequence);
    let versions = (key.to_vec(), Reverse(up_to))..=(key.to_vec(), Reverse(Sequence::ZERO));
    let expected = model.range(versions).next().map(|((_, sequence), ())| sequence.0);
    assert_eq!(newest, expected, "{key:?} up to {up_to:?}");
}

#[test]
fn blocks_do_what_a_sorted_map_does() {
    for_seeds(20, |mut random| {
        let (blocks, mut model) = (Blocks::new(&recycler()), Model::new());
        // Few keys have versions that fill several blocks; long ones share their first bytes.
        let (keys, rising) = (1 + random.below(300), random.below(3) == 0);
        let long = random.below(2) * 20;
        for sequence in 1..=600u64 {
            let number = if rising { sequence } else { random.below(keys) as u64 };
            let key = [&b"the same in all keys"[..long], &number.to_be_bytes()].concat();
            let entry = versioned(&key, sequence);
            model.insert(name(&entry), ());
            blocks.insert(entry);
            if random.below(10) == 0 {
                let (key, Reverse(sequence)) =
                    model.keys().nth(random.below(model.len())).unwrap().clone();
                blocks.remove(&key, sequence);
                blocks.remove(&key, Sequence(9999));
                model.remove(&(key, Reverse(sequence)));
            }
            if sequence % 50 == 0 {
                compare(&blocks, &model, &key, Sequence(1 + random.below(600) as u64));
            }
        }
        assert_eq!(blocks.check(), Ok(model.len()));
    });
}

/// As transactions insert: some entries at once, in order, near one another or far apart.
#[test]
fn entries_that_ascend_are_inserted_as_each_by_itself() {
    for_seeds(40, |mut random| {
        let (blocks, mut model) = (Blocks::new(&recycler()), Model::new());
        let keys = 1 + random.below(3_000);
        for sequence in 1..=60u64 {
            let (mut number, reach) = (random.below(keys), 1 + random.below(200));
            let mut entries = Vec::new();
            for _ in 0..random.below(120) {
                entries.push(versioned(&number.to_be_bytes(), sequence));
                number += 1 + random.below(reach);
            }
            model.extend(entries.iter().map(|entry| (name(entry), ())));
            blocks.insert_ascending(entries.into_iter());
            assert_eq!(blocks.check(), Ok(model.len()));
        }
        compare(&blocks, &model, &[], Sequence(60));
    });
}

#[test]
fn threads_insert_side_by_side_while_others_read() {
    const WRITERS: u64 = 4;
    const COUNT: u64 = 3000;
    let (blocks, stop) = (Blocks::new(&recycler()), AtomicBool::new(false));
    // Before the others: whatever is divided, readers find all of it, once and in order.
    (0..1000u64).for_each(|key| blocks.insert(versioned(&(key * 97).to_be_bytes(), 1)));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut progress = 0;
            while progress == 0 || !stop.load(Atomic::Relaxed) {
                let (mut up, mut down) = (Vec::new(), Vec::new());
                blocks.ascend(None, |entry| {
                    up.push(name(entry));
                    true
                });
                blocks.descend(None, |entry| {
                    down.push(name(entry));
                    true
                });
                for (found, in_order) in [
                    (&up, up.is_sorted_by(|left, right| left < right)),
                    (&down, down.is_sorted_by(|left, right| left > right)),
                ] {
                    let first = found.iter().filter(|(_, sequence)| sequence.0 == Sequence(1));
                    assert!(in_order && first.count() == 1000);
                }
                progress += 1;
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let blocks = &blocks;
                scope.spawn(move || {
                    let sequence_of = |number: u64| 2 + number * WRITERS + writer;
                    let key_of = |number: u64| {
                        (sequence_of(number).wrapping_mul(0x9E37_79B9) % 97_000).to_be_bytes()
                    };
                    for number in (0..COUNT).step_by(3) {
                        // Two transactions of one entry, and one of two that lie side by side.
                        let [first, second, third] = [0, 1, 2].map(|more| number + more);
                        let one = versioned(&key_of(first), sequence_of(first));
                        let other = versioned(&key_of(second), sequence_of(second));
                        let behind = [&key_of(first)[..], &[1]].concat();
                        let both = [&key_of(first)[..], &behind]
                            .map(|key| versioned(key, sequence_of(third)));
                        blocks.insert(one.clone());
                        blocks.insert(other.clone());
                        blocks.insert_ascending(both.clone().into_iter());
                        for entry in [one, other].iter().chain(&both) {
                            let found = blocks.newest(entry.stored.key(), entry.sequence).unwrap();
                            assert_eq!(found.sequence, entry.sequence);
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Atomic::Relaxed);
        reader.join().unwrap();
    });
    // Four of each three.
    assert_eq!(blocks.check(), Ok((1000 + WRITERS * COUNT / 3 * 4) as usize));
}
