//! Goal: a sequence is right for all items and splices. Method: random splices on a sequence and on
//! a `Vec`; after each the sequence has the root of a fresh build, passes `check`, and answers
//! every read as the model does. Data of low entropy is part of the choice.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_store::memory::MemoryStore;
use frond_testkit::Random;
use frond_testkit::random::for_seeds;
use frond_tree::{Hunk, Replacement, Sequence, TreeError, TreeFormat, Value};

fn build(store: &dyn ChunkStore, format: TreeFormat, items: &[Bytes]) -> Sequence {
    Sequence::build(store, format, &mut items.iter().cloned().map(Ok)).unwrap()
}

/// The ways of making items: each defeats another naive boundary rule.
const KINDS: usize = 8;

fn random_item(random: &mut Random, kind: usize, position: usize) -> Bytes {
    match kind {
        0 => {
            let bytes = random.below(60);
            random.bytes(bytes).into()
        }
        1 => Bytes::from_static(b"same"),
        2 => vec![(position % 7) as u8; 5].into(),
        3 => vec![random.below(2) as u8].into(),
        4 => Bytes::new(),
        5 => vec![random.below(20) as u8; 30].into(),
        6 if random.one_in(20) => vec![7; 110].into(),
        6 => vec![random.below(3) as u8; random.below(5)].into(),
        _ => vec![random.below(2) as u8; 60].into(),
    }
}

fn check_reads(
    store: &Arc<dyn ChunkStore>,
    sequence: &Sequence,
    model: &[Bytes],
    random: &mut Random,
) {
    assert_eq!(sequence.count(&**store).unwrap(), model.len() as u64);
    let bytes: usize = model.iter().map(Bytes::len).sum();
    assert_eq!(sequence.bytes(&**store).unwrap(), bytes as u64);
    for _ in 0..10 {
        let position = random.below(model.len() + 2);
        let found = sequence.get(&**store, position as u64).unwrap();
        assert_eq!(found.as_ref(), model.get(position));
        let start = position.min(model.len());
        let items: Vec<Bytes> =
            sequence.items(store, position as u64).map(|item| item.unwrap()).collect();
        assert_eq!(items, &model[start..]);

        let byte = random.below(bytes + 2);
        let mut rest = byte;
        let item = model.iter().position(|item| {
            let within = rest < item.len();
            rest -= if within { 0 } else { item.len() };
            within
        });
        let expected = item.map(|position| (position as u64, rest));
        assert_eq!(sequence.seek_byte(&**store, byte as u64).unwrap(), expected);
    }
}

#[test]
fn splices_give_the_root_of_a_fresh_build() {
    for_seeds(60, |mut random| {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let chunk_bytes_target = *random.choose(&[256, 512]);
        let format = TreeFormat { chunk_bytes_target, inline_bytes_max: 128, salt: random.next() };
        let kind = random.below(KINDS);
        let count = random.below(3000);
        let mut model: Vec<Bytes> =
            (0..count).map(|position| random_item(&mut random, kind, position)).collect();
        let mut sequence = build(&*store, format, &model);
        sequence.check(&*store).unwrap();
        for round in 0..30 {
            let position = random.below(model.len() + 1);
            let many = if random.one_in(4) { model.len() } else { 5 };
            let removed = random.below((model.len() - position).min(many) + 1);
            let many = if random.one_in(4) { 300 } else { 4 };
            let inserted = random.below(many);
            let kind = if random.one_in(3) { random.below(KINDS) } else { kind };
            let items: Vec<Bytes> =
                (0..inserted).map(|position| random_item(&mut random, kind, position)).collect();
            sequence = sequence.splice(&*store, position as u64, removed as u64, &items).unwrap();
            model.splice(position..position + removed, items);
            assert_eq!(sequence, build(&*store, format, &model), "round {round}");
            sequence.check(&*store).unwrap();
        }
        check_reads(&store, &sequence, &model, &mut random);
        let emptied = sequence.splice(&*store, 0, model.len() as u64, &[]).unwrap();
        assert_eq!(emptied, build(&*store, format, &[]));
        check_reads(&store, &emptied, &[], &mut random);
    });
}

/// Several replacements at once are the same as one after the other.
#[test]
fn many_replacements_give_the_root_of_a_fresh_build() {
    for_seeds(60, |mut random| {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let chunk_bytes_target = *random.choose(&[256, 512]);
        let format = TreeFormat { chunk_bytes_target, inline_bytes_max: 128, salt: random.next() };
        let kind = random.below(KINDS);
        let count = random.below(3000);
        let mut model: Vec<Bytes> =
            (0..count).map(|position| random_item(&mut random, kind, position)).collect();
        let mut sequence = build(&*store, format, &model);
        for round in 0..20 {
            let reach = *random.choose(&[3, 40, 700]);
            let (mut replacements, mut position) = (Vec::new(), random.below(reach));
            while position <= model.len() && replacements.len() < 12 {
                let many = *random.choose(&[1, 2, 60]);
                let removed = random.below((model.len() - position).min(many) + 1);
                let kind = if random.one_in(3) { random.below(KINDS) } else { kind };
                let items: Vec<Bytes> =
                    (0..random.below(4)).map(|at| random_item(&mut random, kind, at)).collect();
                let at = position as u64;
                replacements.push(Replacement { position: at, removed: removed as u64, items });
                position += removed + random.below(reach);
            }
            sequence = sequence.replace_referring(&*store, &replacements, |_| false).unwrap();
            for Replacement { position, removed, items } in replacements.into_iter().rev() {
                let position = position as usize;
                model.splice(position..position + removed as usize, items);
            }
            assert_eq!(sequence, build(&*store, format, &model), "round {round}");
        }
        sequence.check(&*store).unwrap();
    });
}

#[test]
fn errors_are_handed_on() {
    let store = MemoryStore::new();
    let format = TreeFormat::new(3);
    let sequence = build(&*store, format, &[Bytes::from_static(b"one")]);
    let beyond = sequence.splice(&*store, 1, 1, &[]);
    assert!(matches!(beyond, Err(TreeError::OutOfRange { position: 2, count: 1 })));
    let beyond = sequence.splice(&*store, u64::MAX, 1, &[]);
    assert!(matches!(beyond, Err(TreeError::OutOfRange { .. })));
    let long = sequence.splice(&*store, 0, 0, &[Bytes::from(vec![0; 4097])]);
    assert!(matches!(long, Err(TreeError::ItemTooLong { bytes: 4097, max: 4096 })));
}

/// A long value goes out of line the same way each time it is written, and a change in its middle
/// leaves most of its chunks as they were.
#[test]
fn long_values_are_canonical_and_share_chunks() {
    let (mut insertions, mut again) = (0, 0);
    for_seeds(3, |mut random| {
        let store = MemoryStore::new();
        let format = TreeFormat::new(random.next());
        let mut value = random.bytes(1 << 20);
        let chunks_written = |value: &[u8]| {
            let before = store.counters().chunks_written;
            let entry = frond_tree::Entry {
                key: Bytes::from_static(b"key"),
                value: Value::inline(value.to_vec()),
            };
            let tree =
                frond_tree::Tree::build(&*store, format, &mut std::iter::once(Ok(entry))).unwrap();
            tree.check(&*store).unwrap();
            let stored = tree.get(&*store, b"key").unwrap().unwrap();
            assert_eq!(stored.bytes(), value.len() as u64);
            assert_eq!(&stored.read(&*store).unwrap()[..], value);
            store.counters().chunks_written - before
        };
        let first = chunks_written(&value);
        assert!((30..150).contains(&first), "{first} chunks for 1 MB");
        assert_eq!(chunks_written(&value), 0);
        // The number of chunks after which the cuts fall in step again is chance, and has no bound:
        // 3.4 on average, the path included; of 480 insertions one took 11.
        for _ in 0..8 {
            let place = random.below(value.len());
            value.splice(place..place, *b"inserted");
            insertions += 1;
            again += chunks_written(&value);
        }
    });
    assert!(again <= insertions * 6, "{again} chunks for {insertions} changes");
}

/// Hunks laid over the items before give those after; what lies between two is in both.
fn follow(before: &[Bytes], hunks: &[Hunk]) -> Vec<Bytes> {
    let (mut after, mut place) = (Vec::new(), 0);
    for hunk in hunks {
        let from = hunk.before_at as usize;
        assert!(place <= from, "they ascend, and are apart");
        assert!(!(hunk.before.is_empty() && hunk.after.is_empty()));
        assert_ne!(hunk.before.first(), hunk.after.first());
        assert_ne!(hunk.before.last(), hunk.after.last());
        after.extend_from_slice(&before[place..from]);
        assert_eq!(hunk.after_at, after.len() as u64);
        place = from + hunk.before.len();
        assert_eq!(hunk.before, &before[from..place]);
        after.extend_from_slice(&hunk.after);
    }
    after.extend_from_slice(&before[place..]);
    after
}

/// Differences, laid over the one sequence, give the other, whatever lies between.
#[test]
fn differences_turn_one_into_the_other() {
    for_seeds(60, |mut random| {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let chunk_bytes_target = *random.choose(&[256, 512]);
        let format = TreeFormat { chunk_bytes_target, inline_bytes_max: 128, salt: random.next() };
        let kind = random.below(KINDS);
        let count = *random.choose(&[0, 5, 3000]);
        let items: Vec<Bytes> =
            (0..count).map(|position| random_item(&mut random, kind, position)).collect();
        let sequence = build(&*store, format, &items);
        let (mut changed, mut model) = (sequence, items.clone());
        for _ in 0..10 {
            let position = random.below(model.len() + 1);
            let many = if random.one_in(10) { model.len() } else { 3 };
            let removed = random.below((model.len() - position).min(many) + 1);
            let many = if random.one_in(10) { 3000 } else { 3 };
            let inserted = random.below(many);
            let new: Vec<Bytes> =
                (0..inserted).map(|position| random_item(&mut random, kind, position)).collect();
            changed = changed.splice(&*store, position as u64, removed as u64, &new).unwrap();
            model.splice(position..position + removed, new);
            let hunks = sequence.differing(&*store, &changed).unwrap();
            assert_eq!(follow(&items, &hunks), model);
            let back = changed.differing(&*store, &sequence).unwrap();
            assert_eq!(follow(&model, &back), items);
        }
    });
}

/// Where items differ from each other, the changed ones are reported, and no others.
#[test]
fn differences_are_no_more_than_the_changes() {
    for_seeds(40, |mut random| {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let format =
            TreeFormat { chunk_bytes_target: 256, inline_bytes_max: 128, salt: random.next() };
        let items: Vec<Bytes> =
            (0..3000).map(|number| Bytes::from(format!("item {number}"))).collect();
        let sequence = build(&*store, format, &items);
        let places = [0, 1000, 2000].map(|from| from + random.below(900));
        let mut changed = sequence;
        for place in places {
            let new = [Bytes::from_static(b"another")];
            changed = changed.splice(&*store, place as u64, 1, &new).unwrap();
        }
        let hunks = sequence.differing(&*store, &changed).unwrap();
        let found: Vec<_> = hunks
            .iter()
            .map(|it| (it.before_at as usize, it.before.len(), it.after.len()))
            .collect();
        assert_eq!(found, places.map(|place| (place, 1, 1)));
    });
}
