//! Goal: a map is right for all contents and edits. Method: random edits on a tree and on a
//! `BTreeMap`; after each batch the tree has the root of a fresh build, passes `check`, and answers
//! every read as the model does. Small nodes make trees of several levels from few entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::memory::MemoryStore;
use frond_store::{ChunkStore, StoreError};
use frond_testkit::Random;
use frond_testkit::random::for_seeds;
use frond_tree::{
    Bounds, Change, Direction, Edit, Entry, MergeConflict, Tree, TreeError, TreeFormat, Value,
};

type Model = BTreeMap<Vec<u8>, (u8, Vec<u8>)>;
type Edits = BTreeMap<Vec<u8>, Option<(u8, Vec<u8>)>>;

fn small_format(random: &mut Random) -> TreeFormat {
    let chunk_bytes_target = *random.choose(&[256, 512, 1024]);
    let inline_bytes_max = *random.choose(&[0, 20, chunk_bytes_target / 4]);
    TreeFormat { chunk_bytes_target, inline_bytes_max, salt: random.next() }
}

fn value_of((flags, bytes): &(u8, Vec<u8>)) -> Value {
    Value { flags: *flags, ..Value::inline(bytes.clone()) }
}

fn build(store: &dyn ChunkStore, format: TreeFormat, model: &Model) -> Tree {
    let mut entries = model
        .iter()
        .map(|(key, value)| Ok(Entry { key: Bytes::copy_from_slice(key), value: value_of(value) }));
    Tree::build(store, format, &mut entries).unwrap()
}

fn apply(store: &dyn ChunkStore, tree: &Tree, edits: &Edits) -> Tree {
    let mut edits = edits.iter().map(|(key, value)| {
        let edit = value.as_ref().map_or(Edit::Delete, |value| Edit::Put(value_of(value)));
        Ok((Bytes::copy_from_slice(key), edit))
    });
    tree.apply(store, &mut edits).unwrap()
}

fn random_key(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0 => vec![random.next() as u8],
        1 => random.bytes(300),
        _ => format!("{:05}", random.below(3000)).into_bytes(),
    }
}

fn random_value(random: &mut Random) -> (u8, Vec<u8>) {
    let bytes = match random.below(60) {
        0 => 6000,
        1..3 => 500,
        _ => 30,
    };
    let flags = if random.one_in(50) { 1 << random.below(8) } else { 0 };
    let bytes = random.below(bytes);
    (flags, random.bytes(bytes))
}

/// Scattered edits, a run of neighbours, or a deletion of a whole range.
fn random_edits(random: &mut Random, model: &Model) -> Edits {
    let mut edits = Edits::new();
    match random.below(5) {
        0 => {
            let start = random_key(random);
            let count = random.below(model.len() + 1);
            let range = model.range(start..).take(count);
            edits.extend(range.map(|(key, _)| (key.clone(), None)));
        }
        1 => {
            let start = random.below(3000);
            for number in start..start + random.below(400) {
                edits.insert(format!("{number:05}").into_bytes(), Some(random_value(random)));
            }
        }
        _ => {
            for _ in 0..random.below(60) {
                let value = (!random.one_in(3)).then(|| random_value(random));
                edits.insert(random_key(random), value);
            }
        }
    }
    edits
}

fn edit_model(model: &mut Model, edits: &Edits) {
    for (key, value) in edits {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

fn read_entry(store: &dyn ChunkStore, entry: Entry) -> (Vec<u8>, (u8, Vec<u8>)) {
    let bytes = entry.value.read(store).unwrap();
    assert_eq!(bytes.len() as u64, entry.value.bytes());
    (entry.key.to_vec(), (entry.value.flags, bytes.to_vec()))
}

fn check_reads(store: &Arc<dyn ChunkStore>, tree: &Tree, model: &Model, random: &mut Random) {
    let summary = tree.summary(&**store).unwrap();
    assert_eq!(summary.count, model.len() as u64);
    assert_eq!(summary.flags, model.values().fold(0, |flags, value| flags | value.0));
    assert_eq!(summary.key_bytes, model.keys().map(|key| key.len() as u64).sum::<u64>());
    assert_eq!(summary.value_bytes, model.values().map(|value| value.1.len() as u64).sum::<u64>());

    let mut keys: Vec<Vec<u8>> = (0..40).map(|_| random_key(random)).collect();
    keys.sort();
    keys.dedup();
    let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
    let borrowed: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let read = |value: Option<Value>| {
        value.map(|value| (value.flags, value.read(&**store).unwrap().to_vec()))
    };
    let many = tree.get_many(&**store, &borrowed).unwrap();
    assert_eq!(many.into_iter().map(read).collect::<Vec<_>>(), expected);
    for (key, expected) in keys.iter().zip(&expected) {
        assert_eq!(&read(tree.get(&**store, key).unwrap()), expected);
        let rank = model.range(..key.clone()).count() as u64;
        assert_eq!(tree.rank(&**store, key).unwrap(), rank);
        let selected = tree.select(&**store, rank).unwrap();
        let expected = model.range(key.clone()..).next();
        let expected = expected.map(|(key, value)| (key.clone(), value.clone()));
        assert_eq!(selected.map(|entry| read_entry(&**store, entry)), expected);
    }
    assert!(tree.select(&**store, u64::MAX).unwrap().is_none());
    for _ in 0..4 {
        check_range(store, tree, model, random);
    }
}

fn check_range(store: &Arc<dyn ChunkStore>, tree: &Tree, model: &Model, random: &mut Random) {
    let start = (!random.one_in(4)).then(|| random_key(random));
    let end = (!random.one_in(4)).then(|| random_key(random));
    let within = |key: &&Vec<u8>| {
        start.as_ref().is_none_or(|start| start <= *key)
            && end.as_ref().is_none_or(|end| *key < end)
    };
    let mut expected: Vec<Vec<u8>> = model.keys().filter(within).cloned().collect();
    let bounds =
        Bounds { start: start.clone().map(Bytes::from), end: end.clone().map(Bytes::from) };
    assert_eq!(tree.count_range(&**store, &bounds).unwrap(), expected.len() as u64);
    for direction in [Direction::Ascending, Direction::Descending] {
        let keys = tree.range(store, bounds.clone(), direction).map(|entry| {
            let (key, value) = read_entry(&**store, entry.unwrap());
            assert_eq!(model[&key], value);
            key
        });
        assert_eq!(keys.collect::<Vec<_>>(), expected);
        let mut cursor = tree.range(store, bounds.clone(), direction);
        for key in &expected {
            assert!(cursor.step().unwrap());
            assert_eq!(cursor.entry_ref().map(|entry| entry.key), Some(&key[..]));
            assert_eq!(cursor.entry().unwrap().key, *key);
        }
        assert!(!cursor.step().unwrap() && cursor.entry_ref().is_none());
        expected.reverse();
    }
    check_split(store, tree, &bounds, &expected, 1 + random.below(9));
}

/// The parts follow one another without a gap, are equally large, and hold what the whole does.
fn check_split(
    store: &Arc<dyn ChunkStore>,
    tree: &Tree,
    bounds: &Bounds,
    expected: &[Vec<u8>],
    part_count: usize,
) {
    let parts = tree.split(&**store, bounds, part_count).unwrap();
    assert_eq!(parts.len(), part_count.min(expected.len()).max(1));
    assert_eq!(parts[0].start, bounds.start);
    assert_eq!(parts[parts.len() - 1].end, bounds.end);
    assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
    let mut keys = Vec::new();
    for part in parts {
        let before = keys.len();
        let entries = tree.range(store, part, Direction::Ascending);
        keys.extend(entries.map(|entry| entry.unwrap().key.to_vec()));
        let ideal = expected.len() / part_count;
        assert!((ideal..=ideal + 1).contains(&(keys.len() - before)) || ideal == 0);
    }
    assert_eq!(keys, expected);
}

fn check_diff(store: &Arc<dyn ChunkStore>, from: (&Tree, &Model), to: (&Tree, &Model)) {
    let mut keys: Vec<&Vec<u8>> = from.1.keys().chain(to.1.keys()).collect();
    keys.sort();
    keys.dedup();
    let expected: Vec<_> = keys
        .into_iter()
        .map(|key| (key.clone(), from.1.get(key).cloned(), to.1.get(key).cloned()))
        .filter(|(_, from, to)| from != to)
        .collect();
    let read = |value: Option<Value>| {
        value.map(|value| (value.flags, value.read(&**store).unwrap().to_vec()))
    };
    for differences in [from.0.diff(store, to.0), from.0.diff_passing(store, to.0)] {
        let changes = differences.map(|change| {
            let Change { key, from, to } = change.unwrap();
            (key.to_vec(), read(from), read(to))
        });
        assert_eq!(changes.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn edits_give_the_root_of_a_fresh_build() {
    for_seeds(40, |mut random| {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let format = small_format(&mut random);
        let mut model = Model::new();
        let mut tree = Tree::empty(&*store, format).unwrap();
        assert_eq!(tree, build(&*store, format, &model));
        for round in 0..20 {
            let (tree_before, model_before) = (tree, model.clone());
            let edits = random_edits(&mut random, &model);
            edit_model(&mut model, &edits);
            tree = apply(&*store, &tree, &edits);
            assert_eq!(tree.root, build(&*store, format, &model).root, "round {round}");
            assert_eq!(tree.root, apply(&*store, &tree, &edits).root, "edits that change nothing");
            tree.check(&*store).unwrap();
            check_diff(&store, (&tree_before, &model_before), (&tree, &model));
            if round % 5 == 4 {
                check_reads(&store, &tree, &model, &mut random);
            }
        }
        let deletions = model.keys().map(|key| (key.clone(), None)).collect();
        let emptied = apply(&*store, &tree, &deletions);
        assert_eq!(emptied, Tree::empty(&*store, format).unwrap());
        check_diff(&store, (&tree, &model), (&emptied, &Model::new()));
        check_reads(&store, &emptied, &Model::new(), &mut random);
    });
}

/// The last node of a level may have a single child. When everything before it goes, the tree is
/// that child alone, as a build would make it.
#[test]
fn a_lone_last_child_becomes_the_root() {
    let format = TreeFormat { chunk_bytes_target: 256, inline_bytes_max: 64, salt: 5 };
    let store = MemoryStore::new();
    let mut found_count = 0;
    let mut model = Model::new();
    for number in 0..900 {
        model.insert(format!("{number:05}").into_bytes(), (0, vec![7; 10]));
        let tree = build(&*store, format, &model);
        let root = store.get(tree.root).unwrap();
        if root.payload()[0] < 2 {
            continue;
        }
        let last = store.get(root.reference(root.reference_count() - 1)).unwrap();
        if last.reference_count() != 1 {
            continue;
        }
        found_count += 1;
        let kept = Tree { root: last.reference(0), format }.count(&*store).unwrap() as usize;
        let edits: Edits =
            model.keys().take(model.len() - kept).map(|key| (key.clone(), None)).collect();
        let edited = apply(&*store, &tree, &edits);
        edited.check(&*store).unwrap();
        let rest = model.iter().skip(model.len() - kept);
        let rest = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(edited, build(&*store, format, &rest));
    }
    assert!(found_count > 0);
}

#[test]
fn any_order_of_edits_gives_the_same_root() {
    for_seeds(10, |mut random| {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let format = small_format(&mut random);
        let mut model = Model::new();
        while model.len() < 400 {
            model.insert(random_key(&mut random), random_value(&mut random));
        }
        let expected = build(&*store, format, &model);
        let mut keys: Vec<_> = model.keys().cloned().collect();
        for _ in 0..3 {
            for position in (1..keys.len()).rev() {
                keys.swap(position, random.below(position + 1));
            }
            let mut tree = Tree::empty(&*store, format).unwrap();
            for batch in keys.chunks(1 + random.below(50)) {
                let edits: Edits =
                    batch.iter().map(|key| (key.clone(), Some(model[key].clone()))).collect();
                tree = apply(&*store, &tree, &edits);
            }
            assert_eq!(tree, expected);
        }
    });
}

#[test]
fn merge_is_per_key() {
    for_seeds(25, |mut random| {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let format = small_format(&mut random);
        let mut base = Model::new();
        for _ in 0..random.below(2000) {
            base.insert(random_key(&mut random), random_value(&mut random));
        }
        let (mut ours, mut theirs) = (base.clone(), base.clone());
        let shared = random_edits(&mut random, &base);
        edit_model(&mut ours, &shared);
        edit_model(&mut theirs, &shared);
        edit_model(&mut ours, &random_edits(&mut random, &base));
        edit_model(&mut theirs, &random_edits(&mut random, &base));

        // Conflicts are answered by the key's first byte: theirs, nothing, a deletion, a new value.
        let answer = |key: &[u8], theirs: Option<(u8, Vec<u8>)>| match key.first().unwrap_or(&0) % 4
        {
            0 => Some(theirs),
            1 => None,
            2 => Some(None),
            _ => Some(Some((1, b"resolved".to_vec()))),
        };
        let mut expected = ours.clone();
        let mut expected_conflicts = Vec::new();
        for key in base.keys().chain(ours.keys()).chain(theirs.keys()) {
            let (base, ours, theirs) = (base.get(key), ours.get(key), theirs.get(key));
            if theirs == base || theirs == ours {
                continue;
            }
            let edit = if ours == base {
                Some(theirs.cloned())
            } else {
                expected_conflicts.push(key.clone());
                answer(key, theirs.cloned())
            };
            if let Some(value) = edit {
                edit_model(&mut expected, &Edits::from([(key.clone(), value)]));
            }
        }
        expected_conflicts.sort();
        expected_conflicts.dedup();

        let trees = [&base, &ours, &theirs].map(|model| build(&*store, format, model));
        let mut conflicts = Vec::new();
        let mut resolve = |conflict: MergeConflict| {
            let MergeConflict { key, base: was, ours: our, theirs: their } = conflict;
            assert_eq!(was.is_some(), base.contains_key(&key[..]));
            assert_eq!(our.is_some(), ours.contains_key(&key[..]));
            conflicts.push(key.to_vec());
            let their = their.map(|value| (value.flags, value.read(&*store).unwrap().to_vec()));
            Ok(answer(&key, their)
                .map(|value| value.map_or(Edit::Delete, |value| Edit::Put(value_of(&value)))))
        };
        let merged = Tree::merge(&store, &trees[0], &trees[1], &trees[2], &mut resolve).unwrap();
        assert_eq!(conflicts, expected_conflicts);
        assert_eq!(merged, build(&*store, format, &expected));
        merged.check(&*store).unwrap();
    });
}

/// Makes so many changes that other threads help, and some of them fail.
#[test]
fn many_changes_are_merged_and_applied_by_several_threads() {
    let store: Arc<dyn ChunkStore> = MemoryStore::new();
    let format = TreeFormat::new(5);
    let key = |number: u32| number.to_be_bytes().to_vec();
    let model = |step: u32, text: &[u8]| -> Model {
        let value = |number: u32| {
            if number.is_multiple_of(step) { text.to_vec() } else { b"base".to_vec() }
        };
        (0..20_000).map(|number| (key(number), (0, value(number)))).collect()
    };
    let (base, ours, theirs) = (model(1, b"base"), model(5, b"ours"), model(7, b"theirs"));
    let trees = [&base, &ours, &theirs].map(|model| build(&*store, format, model));
    let mut conflicts = 0;
    let mut resolve = |conflict: MergeConflict| {
        conflicts += 1;
        Ok(conflict.theirs.map(Edit::Put))
    };
    let merged = Tree::merge(&store, &trees[0], &trees[1], &trees[2], &mut resolve).unwrap();
    let mut expected = ours.clone();
    expected.extend(
        theirs
            .iter()
            .filter(|(_, value)| value.1 == b"theirs")
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    assert_eq!(merged, build(&*store, format, &expected));
    assert_eq!(conflicts, 20_000_usize.div_ceil(35));
    let mut refuse = |_: MergeConflict| Err(TreeError::KeyTooLong { bytes: 1, max: 0 });
    let refused = Tree::merge(&store, &trees[0], &trees[1], &trees[2], &mut refuse);
    assert!(matches!(refused, Err(TreeError::KeyTooLong { .. })));

    let edits = |number: u32| -> frond_tree::Edits<'static> {
        let keys = (0..20_000).step_by(number as usize + 1);
        Box::new(
            keys.map(move |n: u32| Ok((Bytes::copy_from_slice(&n.to_be_bytes()), Edit::Delete))),
        )
    };
    let together: Vec<_> = (1..6).map(|number| (trees[number % 3], edits(number as u32))).collect();
    let together = Tree::apply_many(&*store, together).unwrap();
    for (number, tree) in (1..6).zip(together) {
        assert_eq!(tree, trees[number % 3].apply(&*store, &mut edits(number as u32)).unwrap());
    }
    let failing: frond_tree::Edits<'_> =
        Box::new(std::iter::once(Err(TreeError::KeyTooLong { bytes: 1, max: 0 })));
    let failed = Tree::apply_many(&*store, vec![(trees[0], edits(1)), (trees[1], failing)]);
    assert!(matches!(failed, Err(TreeError::KeyTooLong { .. })));
}

#[test]
fn errors_are_handed_on() {
    let store: Arc<dyn ChunkStore> = MemoryStore::new();
    let format = TreeFormat::new(1);
    let long = Entry { key: Bytes::from(vec![1; 8193]), value: Value::inline("") };
    let built = Tree::build(&*store, format, &mut std::iter::once(Ok(long)));
    assert!(matches!(built, Err(TreeError::KeyTooLong { bytes: 8193, max: 8192 })));

    let tree = Tree::empty(&*store, format).unwrap();
    let missing = Tree { root: frond_store::ChunkHash([7; 32]), format };
    let is_missing = |error: TreeError| matches!(error, TreeError::Store(StoreError::Missing(_)));
    assert!(is_missing(missing.get(&*store, b"").unwrap_err()));
    let mut range = missing.range(&store, Bounds::all(), Direction::Ascending);
    assert!(is_missing(range.next().unwrap().unwrap_err()));
    assert!(range.next().is_none());
    let mut diff = tree.diff(&store, &missing);
    assert!(is_missing(diff.next().unwrap().unwrap_err()));
    assert!(diff.next().is_none());
    let mut failing = std::iter::once(Err(TreeError::KeyTooLong { bytes: 1, max: 0 }));
    assert!(matches!(tree.apply(&*store, &mut failing), Err(TreeError::KeyTooLong { .. })));
    let merged = Tree::merge(&store, &tree, &tree, &missing, &mut |_| Ok(None));
    assert!(is_missing(merged.unwrap_err()));
}
