//! The payload of a log record: one transaction. The authority is docs/format/log.md.
//!
//! Lists stand behind their counts; nothing is trusted when it is read: a count only bounds a loop
//! that ends where the bytes do, and nothing is allocated ahead by a count.

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
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
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
