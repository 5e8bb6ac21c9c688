//! The payload of a log record: one transaction. The authority is docs/format/log.md.
//!
//! The log gets a value, or a chunk, as a patch of the one before where that is much shorter, and
//! what a value repeats of an earlier one of the same record as a reference ([`Patches`]); the
//! memtable gets each value whole, as the same kind of payload. So there are two payloads of a
//! transaction, or one if they would be equal.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash};
use frond_tree::{Content, Tree, Value};

use super::decode::Reader;
use super::patch::Patch;
use super::repeat::{Repeat, find_repeats};
use crate::entry::OverlayEntry;
use crate::ids::TreeId;

/// Stored: never renumber.
pub(super) const TAG_DELETION: u8 = 0;
pub(super) const TAG_INLINE: u8 = 1;
pub(super) const TAG_CHUNK: u8 = 2;
pub(super) const TAG_SEQUENCE: u8 = 3;
pub(super) const TAG_PATCHED: u8 = 4;
pub(super) const TAG_REPEATED: u8 = 5;

/// Stored: never renumber.
pub(super) const TAG_DROPPED: u8 = 0;
pub(super) const TAG_REPLACED: u8 = 1;

/// Stored: never renumber.
pub(super) const TAG_WHOLE_CHUNK: u8 = 0;
pub(super) const TAG_PATCHED_CHUNK: u8 = 1;

/// Stored: never renumber.
pub(super) const TAG_NO_EVENT: u8 = 0;
pub(super) const TAG_EVENT: u8 = 1;

const COUNT_BYTES: usize = size_of::<u32>();
/// A tree that gets a base: tree, tag, format, root.
const BASE_BYTES_MAX: usize =
    size_of::<u64>() + 1 + 2 * size_of::<u32>() + size_of::<u64>() + size_of::<ChunkHash>();
/// A tree that is written: tree, count.
const TREE_BYTES: usize = size_of::<u64>() + COUNT_BYTES;
/// An inline value before its content: tag, flags, length.
const VALUE_HEAD_BYTES: usize = 2 + COUNT_BYTES;
/// A value that repeats another, without its own bytes: tag, flags, their count, where the others
/// begin, how many.
const REPEAT_BYTES: usize = 2 + 3 * COUNT_BYTES;
/// All else: the next tree's id, three counts, the event's tag and length.
const HEAD_BYTES_MAX: usize = size_of::<u64>() + 3 * COUNT_BYTES + 1 + COUNT_BYTES;

/// Everything that a transaction does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Record {
    /// The id that every tree's id so far is less than.
    pub next_tree_id: u64,
    /// Trees that get a new base, or go; they come before the writes.
    pub bases: Vec<(TreeId, Option<Tree>)>,
    /// Writes by tree, the keys ascending.
    pub writes: Vec<(TreeId, Vec<OverlayEntry>)>,
    /// Chunks that the transaction made, ascending by their names.
    pub chunks: Vec<Chunk>,
    /// The event for the layer above.
    pub event: Option<Bytes>,
    /// The patches from which the log gets some of the values and chunks.
    pub patches: Patches,
}

/// The patches that the log gets in place of whole values and chunks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Patches {
    /// The patches of the values that keys had before the transaction, by the entry's position
    /// among all that are written.
    pub values: BTreeMap<usize, Patch>,
    /// The patches of other chunks, by the new one's name.
    pub chunks: BTreeMap<ChunkHash, ChunkPatch>,
    /// The repeats of earlier values of the record, by ascending position. Neither has a patch.
    pub repeats: Vec<Repeat>,
}

/// A chunk as a patch of another, to which the key's value before the transaction refers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ChunkPatch {
    pub old: ChunkHash,
    /// The patch of the encoded chunk.
    pub patch: Patch,
}

impl Patches {
    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.chunks.is_empty() && self.repeats.is_empty()
    }
}

impl Record {
    /// The chunks from which the log makes some of the record's.
    pub fn origins(&self) -> Vec<ChunkHash> {
        self.patches.chunks.values().map(|patched| patched.old).collect()
    }

    /// The chunks that values name, in the order of the entries.
    pub fn named_chunks(&self) -> impl Iterator<Item = ChunkHash> {
        let values = self.writes.iter().flat_map(|(_, entries)| entries);
        values.filter_map(|(_, value)| match value.as_ref()?.content {
            Content::Chunk { hash, .. } | Content::Sequence { root: hash, .. } => Some(hash),
            Content::Inline(_) => None,
        })
    }

    /// The chunks that values name and the record doesn't bring.
    pub fn referenced_chunks(&self) -> impl Iterator<Item = ChunkHash> {
        self.named_chunks()
            .filter(|hash| self.chunks.binary_search_by_key(hash, Chunk::hash).is_err())
    }

    /// Has the log get what repeats earlier values as references.
    pub fn find_repeats(&mut self) {
        let patched = &self.patches.values;
        let repeats = find_repeats(&self.writes, |position| !patched.contains_key(&position));
        self.patches.repeats = repeats;
    }

    /// The payload that goes into the log.
    #[cfg(test)]
    pub fn encode(&self) -> Vec<u8> {
        self.encode_into(Vec::with_capacity)
    }

    /// The payload that goes into the log, in an empty buffer that `make` makes for so many bytes.
    pub fn encode_into(&self, make: impl FnOnce(usize) -> Vec<u8>) -> Vec<u8> {
        let bytes = HEAD_BYTES_MAX
            + self.bases.len() * BASE_BYTES_MAX
            + self.writes_bytes(&self.patches)
            + self.chunks.iter().map(|chunk| self.chunk_bytes(chunk)).sum::<usize>()
            + self.event.as_ref().map_or(0, |event| event.len());
        let mut out = make(bytes);
        out.extend_from_slice(&self.next_tree_id.to_le_bytes());
        put_count(&mut out, self.bases.len());
        for (tree, base) in &self.bases {
            put_base(&mut out, *tree, base.as_ref());
        }
        self.put_writes(&mut out, &self.patches);
        put_count(&mut out, self.chunks.len());
        for chunk in &self.chunks {
            self.put_chunk(&mut out, chunk);
        }
        match &self.event {
            None => out.push(TAG_NO_EVENT),
            Some(event) => {
                out.push(TAG_EVENT);
                put_bytes(&mut out, event);
            }
        }
        out
    }

    /// Whether the memtable may keep the log's payload: if that has all values whole, and nothing
    /// large beside.
    pub fn is_for_memtable(&self) -> bool {
        self.patches.is_empty() && self.chunks.is_empty()
    }

    /// The payload of a transaction that only writes, each value whole, in an empty buffer that
    /// `make` makes for so many bytes.
    pub fn writes_alone(&self, make: impl FnOnce(usize) -> Vec<u8>) -> Vec<u8> {
        let none = Patches::default();
        // As large as it gets: it is kept.
        let mut out = make(HEAD_BYTES_MAX + self.writes_bytes(&none));
        out.extend_from_slice(&self.next_tree_id.to_le_bytes());
        put_count(&mut out, 0);
        self.put_writes(&mut out, &none);
        put_count(&mut out, 0);
        out.push(TAG_NO_EVENT);
        out
    }

    fn put_writes(&self, out: &mut Vec<u8>, patches: &Patches) {
        let mut position = 0;
        let mut repeats = patches.repeats.iter().peekable();
        // The ends of the values of entries, as long as a later entry may repeat one.
        let mut ends: Vec<usize> = Vec::new();
        put_count(out, self.writes.len());
        for (tree, entries) in &self.writes {
            out.extend_from_slice(&tree.0.to_le_bytes());
            put_count(out, entries.len());
            for (key, value) in entries {
                put_bytes(out, key);
                let repeat = repeats.next_if(|repeat| repeat.position == position);
                match (patches.values.get(&position), repeat, value) {
                    (Some(patch), _, Some(value)) => {
                        out.extend_from_slice(&[TAG_PATCHED, value.flags]);
                        out.extend_from_slice(patch.form());
                    }
                    (None, Some(repeat), Some(value)) => {
                        put_repeat(out, value, repeat.own_bytes, ends[repeat.of]);
                    }
                    _ => put_value(out, value.as_ref()),
                }
                if repeats.peek().is_some() {
                    ends.push(out.len());
                }
                position += 1;
            }
        }
    }

    fn put_chunk(&self, out: &mut Vec<u8>, chunk: &Chunk) {
        match self.patches.chunks.get(&chunk.hash()) {
            None => {
                out.push(TAG_WHOLE_CHUNK);
                put_bytes(out, chunk.encoded());
            }
            Some(ChunkPatch { old, patch }) => {
                out.push(TAG_PATCHED_CHUNK);
                out.extend_from_slice(&chunk.hash().0);
                out.extend_from_slice(&old.0);
                out.extend_from_slice(patch.form());
            }
        }
    }

    /// Bytes of all entries, about.
    fn writes_bytes(&self, patches: &Patches) -> usize {
        let entries = self.writes.iter().flat_map(|(_, entries)| entries);
        let mut repeats = patches.repeats.iter().peekable();
        let bytes = entries.enumerate().map(|(position, (key, value))| {
            let repeat = repeats.next_if(|repeat| repeat.position == position);
            let value = match (patches.values.get(&position), repeat) {
                (Some(patch), _) => 2 + patch.form().len(),
                (None, Some(repeat)) => REPEAT_BYTES + repeat.own_bytes,
                (None, None) => value_bytes(value),
            };
            COUNT_BYTES + key.len() + value
        });
        self.writes.len() * TREE_BYTES + bytes.sum::<usize>()
    }

    /// Bytes of a chunk as the log gets it.
    fn chunk_bytes(&self, chunk: &Chunk) -> usize {
        1 + match self.patches.chunks.get(&chunk.hash()) {
            Some(patched) => 2 * size_of::<ChunkHash>() + patched.patch.form().len(),
            None => COUNT_BYTES + chunk.encoded().len(),
        }
    }
}

fn put_base(out: &mut Vec<u8>, tree: TreeId, base: Option<&Tree>) {
    out.extend_from_slice(&tree.0.to_le_bytes());
    let Some(base) = base else {
        out.push(TAG_DROPPED);
        return;
    };
    out.push(TAG_REPLACED);
    out.extend_from_slice(&base.format.chunk_bytes_target.to_le_bytes());
    out.extend_from_slice(&base.format.inline_bytes_max.to_le_bytes());
    out.extend_from_slice(&base.format.salt.to_le_bytes());
    out.extend_from_slice(&base.root.0);
}

fn put_value(out: &mut Vec<u8>, value: Option<&Value>) {
    let Some(value) = value else {
        out.push(TAG_DELETION);
        return;
    };
    match &value.content {
        Content::Inline(bytes) => {
            out.extend_from_slice(&[TAG_INLINE, value.flags]);
            put_bytes(out, bytes);
        }
        Content::Chunk { hash, bytes } => {
            out.extend_from_slice(&[TAG_CHUNK, value.flags]);
            out.extend_from_slice(&hash.0);
            out.extend_from_slice(&bytes.to_le_bytes());
        }
        Content::Sequence { root, bytes } => {
            out.extend_from_slice(&[TAG_SEQUENCE, value.flags]);
            out.extend_from_slice(&root.0);
            out.extend_from_slice(&bytes.to_le_bytes());
        }
    }
}

/// Puts the first `own_bytes` of an inline value, and where the others stand: they end at `end`.
fn put_repeat(out: &mut Vec<u8>, value: &Value, own_bytes: usize, end: usize) {
    let Content::Inline(content) = &value.content else {
        unreachable!("only inline values repeat")
    };
    let (own, repeated) = content.split_at(own_bytes);
    out.extend_from_slice(&[TAG_REPEATED, value.flags]);
    put_bytes(out, own);
    put_count(out, end - repeated.len());
    put_count(out, repeated.len());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("a transaction's limit is below 4 GiB");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Bytes of an encoded value.
fn value_bytes(value: &Option<Value>) -> usize {
    match value.as_ref().map(|value| &value.content) {
        None => 1,
        Some(Content::Inline(bytes)) => VALUE_HEAD_BYTES + bytes.len(),
        Some(_) => 2 + size_of::<ChunkHash>() + size_of::<u64>(),
    }
}

/// Reads the value that lies from `position` to the end of `bytes`.
pub(crate) fn read_value(bytes: &Bytes, position: usize) -> Result<Option<Value>, &'static str> {
    // Inline values, nearly all, are found without a cursor that counts references at each step.
    let (tag, flags) = (bytes.get(position), bytes.get(position + 1));
    let (Some(&TAG_INLINE), Some(flags)) = (tag, flags) else {
        return Reader::new(bytes.slice(position..)).value();
    };
    let content = bytes.slice(position + VALUE_HEAD_BYTES..);
    Ok(Some(Value { flags: *flags, content: Content::Inline(content) }))
}

/// Finds the writes of a payload that has them whole, without taking them.
pub(crate) struct Walker<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Walker<'a> {
    /// Begins at the front.
    pub fn new(bytes: &'a [u8]) -> Walker<'a> {
        Walker { bytes, position: 0 }
    }

    /// Returns where it stands.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Goes to the first tree that is written; returns how many there are.
    pub fn find_writes(&mut self) -> Option<u32> {
        self.skip(size_of::<u64>())?;
        for _ in 0..self.u32()? {
            self.skip(size_of::<u64>())?;
            if self.u8()? == TAG_REPLACED {
                self.skip(BASE_BYTES_MAX - size_of::<u64>() - 1)?;
            }
        }
        self.u32()
    }

    /// Takes a tree's id and how many entries follow.
    pub fn tree_head(&mut self) -> Option<(TreeId, u32)> {
        let tree = u64::from_le_bytes(self.array()?);
        Some((TreeId(tree), self.u32()?))
    }

    /// Takes an entry: where its key lies, and where its value, which follows at once, ends.
    pub fn entry(&mut self) -> Option<(Range<usize>, usize)> {
        let key_bytes = self.u32()? as usize;
        let start = self.position;
        self.skip(key_bytes)?;
        match self.u8()? {
            TAG_DELETION => {}
            TAG_INLINE => {
                self.skip(1)?;
                let bytes = self.u32()? as usize;
                self.skip(bytes)?;
            }
            TAG_CHUNK | TAG_SEQUENCE => self.skip(1 + size_of::<ChunkHash>() + size_of::<u64>())?,
            _ => return None,
        }
        Some((start..start + key_bytes, self.position))
    }

    /// Whether it stands before a deletion.
    pub fn stands_before_deletion(mut self) -> Option<bool> {
        Some(self.u8()? == TAG_DELETION)
    }

    /// The flags of the value that it stands before.
    pub fn flags(mut self) -> Option<u8> {
        if self.u8()? == TAG_DELETION { Some(0) } else { self.u8() }
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.position = self.position.checked_add(bytes).filter(|end| *end <= self.bytes.len())?;
        Some(())
    }

    fn array<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let start = self.position;
        self.skip(BYTES)?;
        self.bytes.get(start..self.position)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
}
