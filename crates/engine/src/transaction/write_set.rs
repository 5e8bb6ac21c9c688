//! The write set of a transaction, and how it is rolled back to a savepoint.

use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map};
use std::num::NonZeroU32;
use std::ops::Bound;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkStore, Layered, StoreLayer};
use frond_tree::{Bounds, Content, Direction, Tree, Value};

use crate::change_event::{self, ChangeEvent, EventContent};
use crate::entry::OverlayEntry;
use crate::error::EngineError;
use crate::ids::TreeId;
use crate::log::record::Record;
use crate::order::SharedChunks;
use crate::overlay::before::Befores;
use crate::overlay::interleave::Source;
use crate::overlay::memtable::entry_bytes;
use crate::transaction::difference::Difference;

type TreeWrites = BTreeMap<Bytes, StagedWrite>;

/// A write to a key.
#[derive(Clone)]
pub(crate) struct StagedWrite {
    /// Its value; `None`: it was deleted.
    pub value: Option<Value>,
    /// The difference from the value before the transaction, if it is small. Most have none: a
    /// pointer is all that it takes then.
    pub difference: Option<Box<Difference>>,
    /// Whether the key had a value before the transaction, if that is known.
    pub had_value: Option<bool>,
    /// The event whose content the value is, counted from 1: the log has it once. After a rollback
    /// it may be another event's number, so its content is compared.
    event: Option<NonZeroU32>,
}

impl StagedWrite {
    /// A write of which nothing else is known.
    pub fn of(value: Option<Value>) -> StagedWrite {
        StagedWrite { value, difference: None, had_value: None, event: None }
    }

    /// A write of a key of which it is known whether it had a value before.
    pub fn knowing(value: Option<Value>, had_value: bool) -> StagedWrite {
        StagedWrite { had_value: Some(had_value), ..StagedWrite::of(value) }
    }
}

/// The writes of an open transaction.
#[derive(Default)]
pub(crate) struct WriteSet {
    writes: BTreeMap<TreeId, TreeWrites>,
    /// Trees that get another base, or go. `writes` lie over these bases.
    bases: BTreeMap<TreeId, Option<Tree>>,
    validated: BTreeSet<(TreeId, Bytes)>,
    /// The same, in the order in which it was asked.
    validated_order: Vec<(TreeId, Bytes)>,
    /// Trees in which no key must change.
    validated_trees: BTreeSet<TreeId>,
    /// Whether a tree got a base whose chunks may not be durable.
    has_unsynced_base: bool,
    chunks: BTreeMap<ChunkHash, Chunk>,
    /// The events it records, in order.
    events: Vec<ChangeEvent>,
    /// Whether a value was written that refers to chunks.
    has_references: bool,
    /// The way to undo each change since the first savepoint, which begins the list.
    undo: Vec<Undo>,
    has_savepoint: bool,
    bytes: u64,
    /// The chunks that it names and that the members of a set have.
    pub members_have: SharedChunks,
    /// Chunks that were gathered for the members of a set, where that is known already.
    pub carried: Option<Vec<Chunk>>,
}

/// The state before a change.
enum Undo {
    Write { tree: TreeId, key: Bytes, old: Option<StagedWrite> },
    Base { tree: TreeId, old: Option<Option<Tree>>, writes: Option<TreeWrites> },
    Chunk(ChunkHash),
    ChangeEvent,
}

impl WriteSet {
    /// About how much memory the transaction takes, and how long its log record will be.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many keys it writes.
    pub fn written_count(&self) -> usize {
        self.writes.values().map(TreeWrites::len).sum()
    }

    /// Whether committing has any effect.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.bases.is_empty()
            && self.chunks.is_empty()
            && self.events.is_empty()
    }

    /// The base that the transaction gave the tree; `Some(None)` if it dropped it.
    pub fn base(&self, tree: TreeId) -> Option<Option<Tree>> {
        self.bases.get(&tree).copied()
    }

    /// Returns the transaction's write of `key`; `Some(None)` if it deleted it.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Option<Option<Value>> {
        Some(self.writes.get(&tree)?.get(key)?.value.clone())
    }

    /// Whether a key within `bounds` was written.
    pub fn wrote(&self, tree: TreeId, bounds: &Bounds) -> bool {
        self.within(tree, bounds).is_some_and(|mut writes| writes.next().is_some())
    }

    fn within(
        &self,
        tree: TreeId,
        bounds: &Bounds,
    ) -> Option<btree_map::Range<'_, Bytes, StagedWrite>> {
        let writes = self.writes.get(&tree)?;
        if let (Some(start), Some(end)) = (&bounds.start, &bounds.end)
            && start >= end
        {
            return None;
        }
        let start = bounds.start.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let end = bounds.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        Some(writes.range::<[u8], _>((start, end)))
    }

    /// Returns by how much the writes within `bounds` change how many keys have a value; `had`
    /// returns whether one had a value before them, where that isn't known.
    ///
    /// # Errors
    /// The error of `had`.
    pub fn change(
        &self,
        tree: TreeId,
        bounds: &Bounds,
        had: impl Fn(&[u8]) -> Result<bool, EngineError>,
    ) -> Result<i64, EngineError> {
        let mut change = 0;
        for (key, own) in self.within(tree, bounds).into_iter().flatten() {
            let had_value = own.had_value.map_or_else(|| had(key), Ok)?;
            change += i64::from(own.value.is_some()) - i64::from(had_value);
        }
        Ok(change)
    }

    /// Copies the writes within `bounds`.
    pub fn source(&self, tree: TreeId, bounds: &Bounds, direction: Direction) -> Option<Source> {
        let range = self.within(tree, bounds)?;
        let copy = |(key, own): (&Bytes, &StagedWrite)| (key.clone(), own.value.clone());
        let copied: VecDeque<OverlayEntry> = match direction {
            Direction::Ascending => range.map(copy).collect(),
            Direction::Descending => range.rev().map(copy).collect(),
        };
        (!copied.is_empty()).then_some(Source::Copied(copied))
    }

    /// Gives `key` a value, or deletes it. If it was written before, that knows what it had before
    /// the transaction, and not `write`.
    pub fn write(&mut self, tree: TreeId, key: Bytes, mut write: StagedWrite) {
        self.bytes += write_bytes(&key, &write);
        let value = write.value.as_ref();
        self.has_references |= value.is_some_and(|it| !matches!(it.content, Content::Inline(_)));
        // Sharing a key costs: only a savepoint needs it.
        let noted = self.has_savepoint.then(|| key.clone());
        let old = match self.writes.entry(tree).or_default().entry(key) {
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(write);
                None
            }
            btree_map::Entry::Occupied(mut written) => {
                self.bytes -= write_bytes(written.key(), written.get());
                write.had_value = written.get().had_value;
                Some(written.insert(write))
            }
        };
        self.undo.extend(noted.map(|key| Undo::Write { tree, key, old }));
    }

    /// Gives the tree another base, or drops it. Its writes so far are gone.
    pub fn set_base(&mut self, tree: TreeId, base: Option<Tree>) {
        self.has_unsynced_base |= base.is_some();
        self.set_synced_base(tree, base);
    }

    /// As `set_base`, of a base whose chunks are durable.
    pub fn set_synced_base(&mut self, tree: TreeId, base: Option<Tree>) {
        let writes = self.writes.remove(&tree);
        self.bytes -= writes.as_ref().map_or(0, writes_bytes);
        let old = self.bases.insert(tree, base);
        self.note(Undo::Base { tree, old, writes });
    }

    /// Whether a base was given whose chunks may not be durable.
    pub fn has_unsynced_base(&self) -> bool {
        self.has_unsynced_base
    }

    /// Asks that `key` be unchanged. Not undone by a rollback: what was read may have been used.
    pub fn validate(&mut self, tree: TreeId, key: Bytes) {
        let read = (tree, key);
        // Each statement of a transaction asks the same.
        if !self.validated.contains(&read) {
            self.validated_order.push(read.clone());
            self.validated.insert(read);
        }
    }

    /// Asks that no key of `tree` change.
    pub fn validate_tree(&mut self, tree: TreeId) {
        self.validated_trees.insert(tree);
    }

    /// Returns how much was asked to be unchanged so far.
    pub fn validated_count(&self) -> usize {
        self.validated_order.len()
    }

    /// Returns the keys that must be unchanged, after the first `count`.
    pub fn validated_since(&self, count: usize) -> &[(TreeId, Bytes)] {
        &self.validated_order[count..]
    }

    /// Asks only what the first `count` asked: the client wasn't shown what came of the others.
    pub fn forget_validated_since(&mut self, count: usize) {
        for read in self.validated_order.drain(count..) {
            self.validated.remove(&read);
        }
    }

    /// Takes a chunk.
    pub fn put_chunk(&mut self, chunk: &Chunk) {
        if self.chunks.insert(chunk.hash(), chunk.clone()).is_none() {
            self.bytes += chunk.encoded().len() as u64;
            self.note(Undo::Chunk(chunk.hash()));
        }
    }

    /// Records an event.
    pub fn record_event(&mut self, event: ChangeEvent) {
        let number = self.next_event();
        if let EventContent::Written { tree, key, .. } = &event.content
            && let Some(written) = self.writes.get_mut(tree).and_then(|writes| writes.get_mut(key))
        {
            written.event = number;
        }
        self.push_event(event);
    }

    /// As `write`, and records an event whose content is the value: it isn't looked up again.
    pub fn write_recorded(
        &mut self,
        (tree, key): (TreeId, Bytes),
        mut write: StagedWrite,
        event: ChangeEvent,
    ) {
        write.event = self.next_event();
        self.write(tree, key, write);
        self.push_event(event);
    }

    fn next_event(&self) -> Option<NonZeroU32> {
        u32::try_from(self.events.len() + 1).ok().and_then(NonZeroU32::new)
    }

    fn push_event(&mut self, event: ChangeEvent) {
        self.bytes += event.bytes();
        self.events.push(event);
        self.note(Undo::ChangeEvent);
    }

    /// The events so far.
    pub fn events(&self) -> &[ChangeEvent] {
        &self.events
    }

    /// Marks this point: the count of changes that can be undone.
    pub fn savepoint(&mut self) -> usize {
        self.has_savepoint = true;
        self.undo.len()
    }

    /// Forgets how to undo what was done so far: it would be remembered until the end, and counts
    /// nowhere.
    pub fn forget_savepoints(&mut self) {
        self.undo.clear();
        self.has_savepoint = false;
    }

    /// Undoes all changes since there were `undo_count`.
    pub fn rollback_to(&mut self, undo_count: usize) {
        while self.undo.len() > undo_count {
            match self.undo.pop() {
                Some(Undo::Write { tree, key, old }) => self.undo_write(tree, key, old),
                Some(Undo::Base { tree, old, writes }) => {
                    match old {
                        Some(base) => self.bases.insert(tree, base),
                        None => self.bases.remove(&tree),
                    };
                    if let Some(writes) = writes {
                        self.bytes += writes_bytes(&writes);
                        self.writes.insert(tree, writes);
                    }
                }
                Some(Undo::Chunk(hash)) => {
                    let chunk = self.chunks.remove(&hash);
                    self.bytes -= chunk.map_or(0, |chunk| chunk.encoded().len() as u64);
                }
                Some(Undo::ChangeEvent) => {
                    self.bytes -= self.events.pop().map_or(0, |events| events.bytes());
                }
                None => return,
            }
        }
    }

    fn undo_write(&mut self, tree: TreeId, key: Bytes, old: Option<StagedWrite>) {
        let Some(writes) = self.writes.get_mut(&tree) else { return };
        let undone = match old {
            Some(old) => {
                self.bytes += write_bytes(&key, &old);
                writes.insert(key.clone(), old)
            }
            None => writes.remove(&key),
        };
        if let Some(undone) = undone {
            self.bytes -= write_bytes(&key, &undone);
        }
        if writes.is_empty() {
            self.writes.remove(&tree);
        }
    }

    /// Notes what to undo: without a savepoint nothing can be undone, and nothing is remembered.
    fn note(&mut self, undo: Undo) {
        if self.has_savepoint {
            self.undo.push(undo);
        }
    }

    /// The chunk, if this transaction brought it.
    pub fn chunk(&self, hash: ChunkHash) -> Option<Chunk> {
        self.chunks.get(&hash).cloned()
    }

    /// The chunks that this transaction didn't bring, and that are referred to by values that don't
    /// come in the place of others: those of the value before are there whatever happens.
    pub fn foreign(&self) -> Vec<ChunkHash> {
        if !self.has_references {
            return Vec::new();
        }
        let writes = self.writes.values().flat_map(BTreeMap::values);
        let mut open: Vec<ChunkHash> = Vec::new();
        for value in
            writes.filter(|write| write.difference.is_none()).filter_map(|it| it.value.as_ref())
        {
            match value.content {
                Content::Inline(_) => {}
                Content::Chunk { hash, .. } => open.push(hash),
                Content::Sequence { root, .. } => open.push(root),
            }
        }
        let (mut foreign, mut known) = (Vec::new(), BTreeSet::new());
        while let Some(hash) = open.pop() {
            match self.chunks.get(&hash) {
                None => foreign.push(hash),
                Some(chunk) if known.insert(hash) => open.extend(chunk.references()),
                Some(_) => {}
            }
        }
        foreign
    }

    /// Returns the keys that must be unchanged.
    pub fn validated(&self) -> impl Iterator<Item = (TreeId, &[u8])> {
        self.validated.iter().map(|(tree, key)| (*tree, &key[..]))
    }

    /// The trees that were asked to be unchanged as a whole.
    pub fn validated_trees(&self) -> impl Iterator<Item = TreeId> {
        self.validated_trees.iter().copied()
    }

    /// The trees with writes.
    pub fn written_trees(&self) -> impl Iterator<Item = TreeId> {
        self.writes.keys().copied()
    }

    /// The trees that get another base, or go.
    pub fn based_trees(&self) -> impl Iterator<Item = TreeId> {
        self.bases.keys().copied()
    }

    /// Turns the writes into what the log and the memtable take, and what is known of the keys.
    pub fn into_record(mut self, next_tree_id: u64) -> (Record, Befores) {
        let events = std::mem::take(&mut self.events);
        let mut places = EventPlaces::of(&events);
        let mut record = Record {
            next_tree_id,
            bases: self.bases.into_iter().collect(),
            chunks: self.chunks.into_values().collect(),
            ..Record::default()
        };
        let (mut position, mut befores) = (0, Befores::default());
        record.writes.reserve(self.writes.len());
        for (tree, writes) in self.writes.into_iter().filter(|(_, writes)| !writes.is_empty()) {
            let mut entries: Vec<OverlayEntry> = Vec::with_capacity(writes.len());
            for (key, StagedWrite { value, difference, had_value, event }) in writes {
                if let Some(had_value) = had_value {
                    befores.note(position, had_value);
                }
                let is_event_content =
                    event.is_some_and(|event| places.note(event, value.as_ref(), position));
                // Events are read by followers, which don't have the former value.
                if let Some(difference) = difference.filter(|_| !is_event_content) {
                    let Difference { value, chunks } = *difference;
                    record.patches.values.extend(value.map(|patch| (position, patch)));
                    record.patches.chunks.extend(chunks);
                }
                entries.push((key, value));
                position += 1;
            }
            record.writes.push((tree, entries));
        }
        record.find_repeats();
        keep_whole_where_in_event(&mut record, &events);
        if !events.is_empty() {
            let encoded = change_event::encode(&events, |number| places.position_of(number));
            record.event = Some(encoded);
        }
        (record, befores)
    }
}

/// Has the log get whole all chunks to which events lead.
fn keep_whole_where_in_event(record: &mut Record, events: &[ChangeEvent]) {
    if record.patches.chunks.is_empty() {
        return;
    }
    let roots = events.iter().filter_map(|one| match one.content {
        EventContent::Chunks { root, .. } => Some(root),
        _ => None,
    });
    let (mut open, mut known): (Vec<ChunkHash>, _) = (roots.collect(), BTreeSet::new());
    while let Some(hash) = open.pop() {
        if known.insert(hash)
            && let Ok(place) = record.chunks.binary_search_by_key(&hash, Chunk::hash)
        {
            open.extend(record.chunks[place].references());
            record.patches.chunks.remove(&hash);
        }
    }
}

/// The positions in a record of the values that events refer to.
struct EventPlaces<'a> {
    events: &'a [ChangeEvent],
    /// By the event's number.
    positions: Vec<u32>,
}

/// The position of no entry: a record has fewer.
const NO_POSITION: u32 = u32::MAX;

impl<'a> EventPlaces<'a> {
    fn of(events: &'a [ChangeEvent]) -> EventPlaces<'a> {
        EventPlaces { events, positions: vec![NO_POSITION; events.len()] }
    }

    /// Notes that the value of an event stands at `position`; returns whether the event has it.
    fn note(&mut self, event: NonZeroU32, value: Option<&Value>, position: usize) -> bool {
        let number = event.get() as usize - 1;
        let content = self.events.get(number).map(|event| &event.content);
        let (
            Some(EventContent::Written { content, .. }),
            Some(Value { content: Content::Inline(value), .. }),
        ) = (content, value)
        else {
            return false;
        };
        // Mostly they are the same bytes.
        let is_same = std::ptr::eq(&content[..], &value[..]) || content == value;
        if is_same {
            let position = u32::try_from(position).expect("a transaction's limit is below 4 GiB");
            self.positions[number] = position;
        }
        is_same
    }

    fn position_of(&self, number: usize) -> Option<u32> {
        Some(self.positions[number]).filter(|position| *position != NO_POSITION)
    }
}

fn writes_bytes(writes: &TreeWrites) -> u64 {
    writes.iter().map(|(key, write)| write_bytes(key, write)).sum()
}

fn write_bytes(key: &[u8], write: &StagedWrite) -> u64 {
    entry_bytes(key, write.value.as_ref())
}

/// The store as a transaction sees it: with the chunks that it brought.
pub(crate) struct StoreWithOwn<'a> {
    own: &'a WriteSet,
    store: &'a dyn ChunkStore,
}

impl<'a> StoreWithOwn<'a> {
    /// `store` with the chunks of `own`.
    pub fn new(own: &'a WriteSet, store: &'a dyn ChunkStore) -> Layered<StoreWithOwn<'a>> {
        Layered(StoreWithOwn { own, store })
    }
}

impl StoreLayer for StoreWithOwn<'_> {
    fn inner(&self) -> &dyn ChunkStore {
        self.store
    }

    fn own(&self, hash: ChunkHash) -> Option<Chunk> {
        self.own.chunk(hash)
    }
}

#[cfg(test)]
mod tests {
    use frond_store::ChunkKind;

    use super::*;

    fn new_event(head: &'static str) -> ChangeEvent {
        let (scope, head) = (Bytes::from("scope"), Bytes::from(head));
        ChangeEvent { scope, head, content: EventContent::None }
    }

    fn whole(value: Option<Value>) -> StagedWrite {
        StagedWrite::of(value)
    }

    #[test]
    fn a_rollback_gives_back_every_byte_and_every_write() {
        let mut own = WriteSet::default();
        let key = || Bytes::from("key");
        own.write(TreeId(2), key(), whole(Some(Value::inline("old"))));
        own.record_event(new_event("old event"));
        let before = own.bytes();
        let savepoint = own.savepoint();
        own.write(TreeId(2), key(), whole(None));
        own.write(TreeId(3), key(), whole(Some(Value::inline("new"))));
        own.record_event(new_event("event"));
        own.put_chunk(&Chunk::new(ChunkKind::Blob, &[], b"chunk"));
        own.set_base(TreeId(2), None);
        own.set_base(TreeId(3), None);
        own.rollback_to(savepoint);
        assert_eq!(own.bytes(), before);
        let (record, _) = own.into_record(9);
        assert_eq!(record.writes, [(TreeId(2), vec![(key(), Some(Value::inline("old")))])]);
        assert_eq!((record.bases.len(), record.chunks.len()), (0, 0));
        let events = change_event::decode(&record.event.expect("it tells"), &[None]).unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].head, "old event");
    }

    #[test]
    fn forgotten_savepoints_take_no_memory() {
        let mut own = WriteSet::default();
        let key = || Bytes::from("key");
        for number in 0..3 {
            let savepoint = own.savepoint();
            own.write(TreeId(2), key(), whole(Some(Value::inline(format!("kept {number}")))));
            assert_eq!(own.undo.len(), 1);
            own.forget_savepoints();
            assert!(own.undo.is_empty());
            let after = own.savepoint();
            own.write(TreeId(2), key(), whole(None));
            own.rollback_to(after);
            let kept = own.get(TreeId(2), b"key").flatten();
            assert_eq!(kept, Some(Value::inline(format!("kept {number}"))));
            assert_eq!(savepoint, after);
            own.forget_savepoints();
        }
    }
}
