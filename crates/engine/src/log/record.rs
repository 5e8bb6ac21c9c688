//! The payload of a log record: one transaction. The authority is docs/format/log.md.
//!
//! Lists stand behind their counts; nothing is trusted when it is read: a count only bounds a loop
//! that ends where the bytes do, and nothing is allocated ahead by a count.

use std::ops::Range;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash};
use frond_tree::{Content, Tree, TreeFormat, Value};

use crate::ids::TreeId;
use crate::overlay::memtable::OverlayEntry;

/// Stored: never renumber.
const TAG_DELETION: u8 = 0;
const TAG_INLINE: u8 = 1;
const TAG_CHUNK: u8 = 2;
const TAG_SEQUENCE: u8 = 3;

/// Stored: never renumber.
const TAG_DROPPED: u8 = 0;
const TAG_REPLACED: u8 = 1;

/// Stored: never renumber.
const TAG_NO_EVENT: u8 = 0;
const TAG_EVENT: u8 = 1;

const COUNT_BYTES: usize = size_of::<u32>();
/// A tree that gets a base: tree, tag, format, root.
const BASE_BYTES_MAX: usize =
    size_of::<u64>() + 1 + 2 * size_of::<u32>() + size_of::<u64>() + size_of::<ChunkHash>();
/// A tree that is written: tree, count.
const TREE_BYTES: usize = size_of::<u64>() + COUNT_BYTES;
/// An inline value before its content: tag, flags, length.
const VALUE_HEAD_BYTES: usize = 2 + COUNT_BYTES;
/// All else: the next tree's id, three counts, the event's tag and length.
const HEAD_BYTES_MAX: usize = size_of::<u64>() + 3 * COUNT_BYTES + 1 + COUNT_BYTES;

/// All that a transaction does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Record {
    /// Every tree's id so far is less than this.
    pub next_tree_id: u64,
    /// Trees that get a new base, or go; they come before the writes.
    pub bases: Vec<(TreeId, Option<Tree>)>,
    /// Writes by tree, the keys ascending.
    pub writes: Vec<(TreeId, Vec<OverlayEntry>)>,
    /// Chunks born in the transaction.
    pub chunks: Vec<Chunk>,
    /// For the layer above.
    pub event: Option<Bytes>,
}

impl Record {
    /// The payload.
    #[cfg(test)]
    pub fn encode(&self) -> Vec<u8> {
        self.encode_into(Vec::with_capacity)
    }

    /// The payload, in an empty buffer that `make` makes for so many bytes.
    pub fn encode_into(&self, make: impl FnOnce(usize) -> Vec<u8>) -> Vec<u8> {
        // As large as it gets: the memtable keeps it.
        let mut out = make(self.encoded_bytes());
        out.extend_from_slice(&self.next_tree_id.to_le_bytes());
        put_count(&mut out, self.bases.len());
        for (tree, base) in &self.bases {
            put_base(&mut out, *tree, base.as_ref());
        }
        put_count(&mut out, self.writes.len());
        for (tree, entries) in &self.writes {
            out.extend_from_slice(&tree.0.to_le_bytes());
            put_count(&mut out, entries.len());
            for (key, value) in entries {
                put_bytes(&mut out, key);
                put_value(&mut out, value.as_ref());
            }
        }
        put_count(&mut out, self.chunks.len());
        for chunk in &self.chunks {
            put_bytes(&mut out, chunk.encoded());
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

    /// Bytes of the payload, about.
    fn encoded_bytes(&self) -> usize {
        let entries = self.writes.iter().flat_map(|(_, entries)| entries);
        let entries = entries.map(|(key, value)| COUNT_BYTES + key.len() + value_bytes(value));
        let chunks = self.chunks.iter().map(|chunk| COUNT_BYTES + chunk.encoded().len());
        HEAD_BYTES_MAX
            + self.bases.len() * BASE_BYTES_MAX
            + self.writes.len() * TREE_BYTES
            + entries.chain(chunks).sum::<usize>()
            + self.event.as_ref().map_or(0, |event| event.len())
    }

    /// Reads a payload; keys and values share its bytes. The error says what is wrong with it.
    pub fn decode(payload: Bytes) -> Result<Record, &'static str> {
        let mut reader = Reader { rest: payload };
        let mut record = Record { next_tree_id: reader.u64()?, ..Record::default() };
        for _ in 0..reader.u32()? {
            record.bases.push(reader.base()?);
        }
        for _ in 0..reader.u32()? {
            let tree = TreeId(reader.u64()?);
            let mut entries = Vec::new();
            for _ in 0..reader.u32()? {
                entries.push((reader.bytes()?, reader.value()?));
            }
            record.writes.push((tree, entries));
        }
        for _ in 0..reader.u32()? {
            let chunk = Chunk::from_encoded(reader.bytes()?, ("a log record", 0));
            record.chunks.push(chunk.map_err(|_| "a chunk is not one")?);
        }
        record.event = match reader.u8()? {
            TAG_NO_EVENT => None,
            TAG_EVENT => Some(reader.bytes()?),
            _ => return Err("an unknown tag of an event"),
        };
        if reader.rest.is_empty() { Ok(record) } else { Err("bytes after the last field") }
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
        return Reader { rest: bytes.slice(position..) }.value();
    };
    let content = bytes.slice(position + VALUE_HEAD_BYTES..);
    Ok(Some(Value { flags: *flags, content: Content::Inline(content) }))
}

/// Finds the parts of a payload without taking them.
pub(crate) struct Walker<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Walker<'a> {
    /// Begins at the front.
    pub fn new(bytes: &'a [u8]) -> Walker<'a> {
        Walker { bytes, position: 0 }
    }

    /// Where it stands.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Goes to the first tree that is written; tells how many there are, and whether chunks follow.
    pub fn find_writes(&mut self) -> Option<(u32, bool)> {
        self.skip(size_of::<u64>())?;
        for _ in 0..self.u32()? {
            self.skip(size_of::<u64>())?;
            if self.u8()? == TAG_REPLACED {
                self.skip(BASE_BYTES_MAX - size_of::<u64>() - 1)?;
            }
        }
        let tree_count = self.u32()?;
        let mut ahead = Walker { bytes: self.bytes, position: self.position };
        ahead.skip_trees(tree_count)?;
        Some((tree_count, ahead.u32()? > 0))
    }

    /// Where the writes end.
    pub fn writes_end(&self) -> Option<usize> {
        let mut ahead = Walker { bytes: self.bytes, position: 0 };
        let (tree_count, _) = ahead.find_writes()?;
        ahead.skip_trees(tree_count)?;
        Some(ahead.position)
    }

    fn skip_trees(&mut self, count: u32) -> Option<()> {
        for _ in 0..count {
            for _ in 0..self.tree_head()?.1 {
                self.entry()?;
            }
        }
        Some(())
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
            _ => self.skip(1 + size_of::<ChunkHash>() + size_of::<u64>())?,
        }
        Some((start..start + key_bytes, self.position))
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

const TOO_SHORT: &str = "a field exceeds the record";

/// Takes fields from the front; never beyond the end.
struct Reader {
    rest: Bytes,
}

impl Reader {
    fn take(&mut self, bytes: usize) -> Result<Bytes, &'static str> {
        if bytes <= self.rest.len() { Ok(self.rest.split_to(bytes)) } else { Err(TOO_SHORT) }
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], &'static str> {
        let mut array = [0; BYTES];
        array.copy_from_slice(&self.take(BYTES)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn bytes(&mut self) -> Result<Bytes, &'static str> {
        let bytes = usize::try_from(self.u32()?).map_err(|_| TOO_SHORT)?;
        self.take(bytes)
    }

    fn base(&mut self) -> Result<(TreeId, Option<Tree>), &'static str> {
        let tree = TreeId(self.u64()?);
        match self.u8()? {
            TAG_DROPPED => Ok((tree, None)),
            TAG_REPLACED => {
                let format = TreeFormat {
                    chunk_bytes_target: self.u32()?,
                    inline_bytes_max: self.u32()?,
                    salt: self.u64()?,
                };
                Ok((tree, Some(Tree { root: ChunkHash(self.array()?), format })))
            }
            _ => Err("an unknown tag of a base"),
        }
    }

    fn value(&mut self) -> Result<Option<Value>, &'static str> {
        let tag = self.u8()?;
        if tag == TAG_DELETION {
            return Ok(None);
        }
        let flags = self.u8()?;
        let content = match tag {
            TAG_INLINE => Content::Inline(self.bytes()?),
            TAG_CHUNK => Content::Chunk { hash: ChunkHash(self.array()?), bytes: self.u64()? },
            TAG_SEQUENCE => {
                Content::Sequence { root: ChunkHash(self.array()?), bytes: self.u64()? }
            }
            _ => return Err("an unknown tag of a value"),
        };
        Ok(Some(Value { flags, content }))
    }
}

#[cfg(test)]
mod tests {
    use frond_store::ChunkKind;
    use frond_testkit::random::for_seeds;

    use super::*;

    fn sample() -> Record {
        let format = TreeFormat { chunk_bytes_target: 512, inline_bytes_max: 128, salt: 11 };
        let base = Tree { root: ChunkHash([3; 32]), format };
        let chunk = Chunk::new(ChunkKind::Blob, &[], b"born here");
        let out_of_line = |content| Some(Value { flags: 5, content });
        Record {
            next_tree_id: 7,
            bases: vec![(TreeId(2), Some(base)), (TreeId(3), None)],
            writes: vec![
                (
                    TreeId(1),
                    vec![(Bytes::from("a"), None), (Bytes::from("b"), Some(Value::inline("x")))],
                ),
                (
                    TreeId(2),
                    vec![
                        (
                            Bytes::new(),
                            out_of_line(Content::Chunk { hash: chunk.hash(), bytes: 9 }),
                        ),
                        (
                            Bytes::from("s"),
                            out_of_line(Content::Sequence {
                                root: ChunkHash([4; 32]),
                                bytes: 1 << 40,
                            }),
                        ),
                    ],
                ),
            ],
            chunks: vec![chunk],
            event: Some(Bytes::from("event")),
        }
    }

    #[test]
    fn what_is_encoded_is_read_back() {
        for record in [Record::default(), sample()] {
            assert_eq!(Record::decode(record.encode().into()), Ok(record));
        }
    }

    #[test]
    fn every_shorter_or_longer_payload_is_refused() {
        let bytes = Bytes::from(sample().encode());
        for end in 0..bytes.len() {
            assert!(Record::decode(bytes.slice(..end)).is_err(), "{end} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Record::decode(longer.into()).is_err());
    }

    #[test]
    fn changed_bytes_never_panic() {
        let bytes = sample().encode();
        for_seeds(300, |mut random| {
            let mut changed = bytes.clone();
            for _ in 0..1 + random.below(3) {
                let position = random.below(changed.len());
                changed[position] = random.next() as u8;
            }
            if let Ok(record) = Record::decode(Bytes::from(changed.clone())) {
                assert_eq!(record.encode(), changed, "only one encoding of a record is accepted");
            }
        });
    }
}
