//! Goal: a damaged node is an error and never a panic or an endless walk. Method: random bytes, and
//! real nodes with random changes, as the payload of every node kind; every read is tried. Debug
//! builds check arithmetic, so overflows count as panics too.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::memory::MemoryStore;
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore};
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};
use frond_tree::{Bounds, Direction, Edit, Entry, Sequence, Tree, TreeError, TreeFormat, Value};

const FORMAT: TreeFormat = TreeFormat { chunk_bytes_target: 512, inline_bytes_max: 64, salt: 1 };

/// Tries everything on a root; results don't matter, returning does. Returns whether the node at
/// the root was refused.
fn read_all(store: &Arc<dyn ChunkStore>, root: ChunkHash) -> bool {
    let tree = Tree { root, format: FORMAT };
    let sequence = Sequence { root, format: FORMAT };
    let refused = tree.count(&**store).is_err() && sequence.count(&**store).is_err();
    let empty = Tree::empty(&**store, FORMAT).unwrap();
    let keys: [&[u8]; 3] = [b"", b"k0050", b"\xff"];
    for key in keys {
        drop(tree.get(&**store, key).map(|value| value.map(|value| value.read(&**store))));
        drop(tree.rank(&**store, key));
    }
    drop(tree.get_many(&**store, &keys));
    for position in [0, 70, u64::MAX] {
        drop(tree.select(&**store, position));
        drop(sequence.get(&**store, position));
        drop(sequence.seek_byte(&**store, position));
        let _ = sequence.items(store, position).take(10_000).count();
    }
    for direction in [Direction::Ascending, Direction::Descending] {
        let bounds = Bounds { start: Some(Bytes::from_static(b"k0010")), end: None };
        let _ = tree.range(store, bounds, direction).take(10_000).count();
    }
    let edits = ["k0000", "k0050x", "z"].map(|key| Ok((Bytes::from(key), Edit::Delete)));
    drop(tree.apply(&**store, &mut edits.into_iter()));
    drop(tree.check(&**store));
    drop(sequence.check(&**store));
    let _ = tree.diff(store, &empty).take(10_000).count();
    let _ = empty.diff(store, &tree).take(10_000).count();
    refused
}

/// A tree and a sequence of two levels and more, with values inline and out of line.
fn real_roots(store: &dyn ChunkStore) -> [ChunkHash; 2] {
    let mut entries = (0..100).map(|number| {
        let bytes = if number % 20 == 0 { 200 } else { 20 };
        let value = Value { flags: 1, ..Value::inline(vec![number as u8; bytes]) };
        Ok(Entry { key: format!("k{number:04}").into(), value })
    });
    let tree = Tree::build(store, FORMAT, &mut entries).unwrap();
    let mut items = (0..200).map(|number: usize| Ok(Bytes::from(number.to_string())));
    let sequence = Sequence::build(store, FORMAT, &mut items).unwrap();
    [tree.root, sequence.root]
}

fn leftmost_path(store: &dyn ChunkStore, root: ChunkHash) -> Vec<Chunk> {
    let mut path = vec![store.get(root).unwrap()];
    while path[path.len() - 1].payload()[0] > 0 {
        path.push(store.get(path[path.len() - 1].reference(0)).unwrap());
    }
    path
}

fn damage(random: &mut Random, payload: &mut Vec<u8>) {
    match random.below(4) {
        0 => payload.truncate(random.below(payload.len() + 1)),
        1 => payload.push(random.next() as u8),
        // Headers and tables lie at the beginning.
        2 => {
            let position = random.below(payload.len().min(60));
            payload[position] = random.next() as u8;
        }
        _ => {
            let position = random.below(payload.len());
            payload[position] = *random.choose(&[0, 1, 2, 3, 0x7f, 0xff]);
        }
    }
}

#[test]
fn damaged_nodes_are_errors() {
    let mut refused_count = 0;
    for_seeds(400, |mut random| {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let root = real_roots(&*store)[random.below(2)];
        let path = leftmost_path(&*store, root);
        let damaged = random.below(path.len());
        let mut payload = path[damaged].payload().to_vec();
        damage(&mut random, &mut payload);
        let mut references: Vec<ChunkHash> = path[damaged].references().collect();
        if random.one_in(8) {
            // A child that is of the wrong kind or level, or one reference too few.
            references.pop();
            if random.one_in(2) {
                references.push(root);
            }
        }
        let mut chunk = Chunk::new(path[damaged].kind(), &references, &payload);
        store.put_many(std::slice::from_ref(&chunk)).unwrap();
        // The nodes above name the damaged one.
        for above in path[..damaged].iter().rev() {
            let mut references: Vec<ChunkHash> = above.references().collect();
            references[0] = chunk.hash();
            chunk = Chunk::new(above.kind(), &references, above.payload());
            store.put_many(std::slice::from_ref(&chunk)).unwrap();
        }
        refused_count += u32::from(read_all(&store, chunk.hash()));
    });
    assert_met("trees refused", refused_count, 20);
}

/// Each byte of a root in turn: whatever comes, it ends.
#[test]
fn every_byte_of_a_root_is_changed() {
    let store = MemoryStore::new();
    for root in real_roots(&*store) {
        let node = store.get(root).unwrap();
        let references: Vec<ChunkHash> = node.references().collect();
        for position in 0..node.payload().len() {
            for byte in [0, 1, 5, 0x6a, 0x6c, 0xff] {
                let mut payload = node.payload().to_vec();
                payload[position] = byte;
                let chunk = Chunk::new(node.kind(), &references, &payload);
                store.put_many(std::slice::from_ref(&chunk)).unwrap();
                read_all(&(Arc::clone(&store) as Arc<dyn ChunkStore>), chunk.hash());
            }
        }
    }
}

#[test]
fn random_bytes_are_errors() {
    for_seeds(3000, |mut random| {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let kind = *random.choose(&[ChunkKind::MapNode, ChunkKind::SequenceNode, ChunkKind::Blob]);
        let bytes = random.below(200);
        let mut payload = random.bytes(bytes);
        // Small numbers where counts are stand a better chance of getting further.
        payload.iter_mut().take(8).for_each(|byte| *byte &= *random.choose(&[0, 0, 0, 1, 3]));
        let references = vec![ChunkHash([1; 32]); random.below(3)];
        let chunk = Chunk::new(kind, &references, &payload);
        store.put_many(std::slice::from_ref(&chunk)).unwrap();
        read_all(&store, chunk.hash());
    });
}

/// Sums that lie are found by `check`, and where the walk depends on them.
#[test]
fn wrong_counts_are_found() {
    let store = MemoryStore::new();
    let [root, _] = real_roots(&*store);
    let node = store.get(root).unwrap();
    let mut payload = node.payload().to_vec();
    payload[8] = payload[8].wrapping_add(50); // The count of entries in the subtree.
    let references: Vec<ChunkHash> = node.references().collect();
    let chunk = Chunk::new(ChunkKind::MapNode, &references, &payload);
    store.put_many(std::slice::from_ref(&chunk)).unwrap();
    let tree = Tree { root: chunk.hash(), format: FORMAT };
    assert!(matches!(tree.check(&*store), Err(TreeError::Damaged { .. })));
    assert!(matches!(tree.select(&*store, 120), Err(TreeError::Damaged { .. })));
}

/// A value out of line that is not what its entry says is refused, not returned.
#[test]
fn values_of_another_length_are_refused() {
    let store = MemoryStore::new();
    let format = TreeFormat::new(2);
    for length in [5_000, 200_000] {
        let entry =
            Entry { key: Bytes::from_static(b"key"), value: Value::inline(vec![5; length]) };
        let tree = Tree::build(&*store, format, &mut std::iter::once(Ok(entry))).unwrap();
        let leaf = store.get(tree.root).unwrap();
        let mut payload = leaf.payload().to_vec();
        let last = payload.len() - 8;
        payload[last] ^= 1; // The length beside the reference.
        let references: Vec<ChunkHash> = leaf.references().collect();
        let chunk = Chunk::new(ChunkKind::MapNode, &references, &payload);
        store.put_many(std::slice::from_ref(&chunk)).unwrap();
        let tree = Tree { root: chunk.hash(), format };
        let value = tree.get(&*store, b"key").unwrap().unwrap();
        assert!(matches!(value.read(&*store), Err(TreeError::Damaged { .. })));
        assert!(matches!(tree.check(&*store), Err(TreeError::Damaged { .. })));
        let edit = (Bytes::from_static(b"other"), Edit::Delete);
        tree.apply(&*store, &mut std::iter::once(Ok(edit))).unwrap();
    }
}
