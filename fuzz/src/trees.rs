//! Nodes of trees, of sequences and of large documents, of which bytes were changed.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use frond_doc::pieces::{LargeDocument, Part, build};
use frond_doc::{DocumentBuilder, Value as DocumentValue};
use frond_store::memory::MemoryStore;
use frond_store::{Chunk, ChunkHash, ChunkStore, Layered, StoreLayer};
use frond_tree::{Bounds, Content, Direction, Edit, Entry, Sequence, Tree, TreeFormat, Value};

const FORMAT: TreeFormat = TreeFormat { chunk_bytes_target: 512, inline_bytes_max: 64, salt: 1 };
const READ_MAX: usize = 10_000;

/// What is changed: all chunks below some roots, in a fixed order.
struct Base<R> {
    store: Arc<MemoryStore>,
    root: R,
    chunks: Vec<ChunkHash>,
}

impl<R> Base<R> {
    fn new(store: Arc<MemoryStore>, root: R, first: Vec<ChunkHash>) -> Base<R> {
        let (mut waiting, mut chunks) = (first, BTreeSet::new());
        while let Some(hash) = waiting.pop() {
            let chunk = store.get(hash).expect("the base is whole");
            if chunks.insert(hash) {
                waiting.extend(chunk.references());
            }
        }
        Base { store, root, chunks: chunks.into_iter().collect() }
    }

    /// The base with changes: of four bytes each, the chunk, where in it, and what stands there
    /// then.
    fn changed(&self, edits: &[u8]) -> Arc<dyn ChunkStore> {
        let mut payloads: HashMap<ChunkHash, Vec<u8>> = HashMap::new();
        for &[chunk, low, high, byte] in edits.as_chunks::<4>().0 {
            let hash = self.chunks[usize::from(chunk) % self.chunks.len()];
            let original = || self.store.get(hash).expect("whole").payload().to_vec();
            let payload = payloads.entry(hash).or_insert_with(original);
            let offset = usize::from(u16::from_le_bytes([low, high]));
            match payload.get_mut(offset) {
                Some(place) => *place = byte,
                None => payload.truncate(offset % (payload.len() + 1)),
            }
        }
        let chunk = |(hash, payload): (ChunkHash, Vec<u8>)| {
            let old = self.store.get(hash).expect("whole");
            let references: Vec<ChunkHash> = old.references().collect();
            (hash, Chunk::new(old.kind(), &references, &payload))
        };
        let chunks = payloads.into_iter().map(chunk).collect();
        Arc::new(Layered(Changed { inner: Arc::clone(&self.store), chunks }))
    }
}

/// A store in which some names lead to other chunks.
struct Changed {
    inner: Arc<MemoryStore>,
    chunks: HashMap<ChunkHash, Chunk>,
}

impl StoreLayer for Changed {
    fn inner(&self) -> &dyn ChunkStore {
        &*self.inner
    }

    fn own(&self, hash: ChunkHash) -> Option<Chunk> {
        self.chunks.get(&hash).cloned()
    }
}

static TREES: LazyLock<Base<(Tree, Sequence)>> = LazyLock::new(|| {
    let store = MemoryStore::new();
    let mut entries = (0..100_u8).map(|number| {
        let bytes = if number % 20 == 0 { 200 } else { 20 };
        let value = Value { flags: 1, ..Value::inline(vec![number; bytes]) };
        Ok(Entry { key: format!("k{number:04}").into(), value })
    });
    let tree = Tree::build(&*store, FORMAT, &mut entries).expect("builds");
    let mut items = (0..200).map(|number: usize| Ok(Bytes::from(number.to_string())));
    let sequence = Sequence::build(&*store, FORMAT, &mut items).expect("builds");
    Base::new(store, (tree, sequence), vec![tree.root, sequence.root])
});

/// A tree and a sequence of several levels.
pub fn tree(edits: &[u8]) {
    let (store, (tree, sequence)) = (TREES.changed(edits), TREES.root);
    let keys: [&[u8]; 3] = [b"", b"k0050", b"\xff"];
    for key in keys {
        let _ = tree.get(&*store, key).map(|value| value.map(|value| value.read(&*store)));
        let _ = tree.rank(&*store, key);
    }
    let _ = (tree.get_many(&*store, &keys), tree.summary(&*store));
    for position in [0, 70, u64::MAX] {
        let _ = (tree.select(&*store, position), sequence.get(&*store, position));
        let _ = sequence.seek_byte(&*store, position);
        sequence.items(&store, position).take(READ_MAX).for_each(drop);
    }
    for direction in [Direction::Ascending, Direction::Descending] {
        let bounds = Bounds { start: Some(Bytes::from_static(b"k0010")), end: None };
        tree.range(&store, bounds, direction).take(READ_MAX).for_each(drop);
    }
    let empty = Tree::empty(&*store, FORMAT).expect("an empty tree");
    tree.diff(&store, &empty).take(READ_MAX).for_each(drop);
    let _ = (tree.check(&*store), sequence.check(&*store));
    let put = |key| Ok((Bytes::from_static(key), Edit::Put(Value::inline("new"))));
    let edits = [&b"k0000"[..], b"k0050x", b"z"].map(put);
    let _ = tree.apply(&*store, &mut edits.into_iter());
    let _ = sequence.splice(&*store, 100, 3, &[Bytes::from_static(b"x")]);
}

static DOCUMENT: LazyLock<Base<LargeDocument>> = LazyLock::new(|| {
    let mut builder = DocumentBuilder::new();
    builder.append("_id", DocumentValue::Int32(1));
    builder.append("text", DocumentValue::String(&"long ".repeat(1000)));
    builder.begin_array("sections");
    for number in 0..150 {
        let mut section = DocumentBuilder::new();
        section.append("title", DocumentValue::Int64(number));
        section.append("body", DocumentValue::String(&format!("{number} ").repeat(80)));
        builder.push(DocumentValue::Document(section.build().view()));
    }
    builder.end();
    let store = MemoryStore::new();
    let document = builder.build();
    let large = build(&*store, TreeFormat::new(1), document.view()).expect("builds");
    let large = large.expect("it is large");
    Base::new(store, large, vec![large.hash()])
});

/// A large document: whole, by paths, as a stream, and edited.
pub fn pieces(edits: &[u8]) {
    let store = DOCUMENT.changed(edits);
    let mut value = DOCUMENT.root.value();
    // What its entry says of its length may be wrong too.
    if let (Content::Chunk { bytes, .. }, [u8::MAX, low, high, ..]) = (&mut value.content, edits) {
        *bytes = u64::from(u16::from_le_bytes([*low, *high]));
    }
    let Some(large) = LargeDocument::open(TreeFormat::new(1), &value) else { return };
    if let Ok(document) = large.read(&*store) {
        let bytes = Bytes::copy_from_slice(document.as_bytes());
        // A value's own bytes are believed: they are what a chunk's name says.
        let _ = frond_doc::DocumentBuf::validated(bytes);
    }
    let _ = large.project(&*store, &[b"_id", b"sections"]);
    if let Ok(shallow) = large.shallow(&*store, None) {
        let _ = frond_doc::pieces::whole(&*store, shallow.view());
    }
    let _ = large.write_bson(&*store, &mut std::io::sink());
    for path in [&["sections", "70", "title"][..], &["text"], &["sections", "200"], &["absent"]] {
        let Ok(found) = large.find(&*store, path) else { continue };
        let _ = (found.count(&*store), large.get(&*store, path));
        let _ = large.splice(&*store, &found, 0, 1, &[]);
        for part in [Part::All, Part::Short, Part::Fields(&[b"title"])] {
            let _ = large.visit_values(&*store, &found, part, &mut |_, _| false);
        }
    }
}
