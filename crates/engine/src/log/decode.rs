//! Reads the payload of a log record back. The authority is docs/format/log.md.
//!
//! Lists stand behind their counts; nothing is trusted: a count only bounds a loop that ends where
//! the bytes do, and nothing is allocated ahead by a count.
//!
//! A patch is applied to what it is a patch of, for which the caller is asked ([`Before`]).

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash};
use frond_tree::{Content, Tree, TreeFormat, Value};

use super::patch::Patch;
use super::record::{
    Record, TAG_CHUNK, TAG_DELETION, TAG_DROPPED, TAG_EVENT, TAG_INLINE, TAG_NO_EVENT, TAG_PATCHED,
    TAG_PATCHED_CHUNK, TAG_REPEATED, TAG_REPLACED, TAG_SEQUENCE, TAG_WHOLE_CHUNK,
};
use crate::change_event::{self, LoggedContent, LoggedEvent};
use crate::error::EngineError;
use crate::ids::TreeId;
use crate::log::TRANSACTION_BYTES_MAX;

/// Looks up values and chunks as they were before a record's transaction.
pub(crate) trait PriorValues {
    /// The bytes of the value that `key` had; `None`: what it got isn't needed any more.
    ///
    /// # Errors
    /// [`DecodeError::Before`] if it can't be read.
    fn value(&mut self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>, DecodeError>;

    /// The chunk `old`, from which another is made.
    ///
    /// # Errors
    /// [`DecodeError::Before`] if it can't be read.
    fn chunk(&mut self, old: ChunkHash) -> Result<Chunk, DecodeError>;
}

/// The reason why a payload can't be read.
#[derive(Debug)]
pub(crate) enum DecodeError {
    /// A description of the fault.
    Wrong(&'static str),
    /// The value before it can't be read.
    Before(EngineError),
}

impl From<&'static str> for DecodeError {
    fn from(what: &'static str) -> DecodeError {
        DecodeError::Wrong(what)
    }
}

/// A record, and the payload that the memtable keeps of it.
pub(crate) struct Decoded {
    pub record: Record,
    pub for_memtable: Bytes,
}

impl Decoded {
    /// Reads a payload; keys and whole values share its bytes. The record has all values and chunks
    /// whole, without those that aren't needed any more.
    ///
    /// # Errors
    /// [`DecodeError::Wrong`] if the bytes are no record, a patch doesn't fit what lies before, or
    /// the whole is larger than a transaction may be; what `before` fails with.
    pub fn new(payload: &Bytes, before: &mut dyn PriorValues) -> Result<Decoded, DecodeError> {
        let mut reader = Reader::new(payload.clone());
        let mut is_whole = true;
        let mut repeated_bytes = 0;
        let mut record = Record { next_tree_id: reader.u64()?, ..Record::default() };
        record.bases = reader.bases()?;
        for _ in 0..reader.u32()? {
            let tree = TreeId(reader.u64()?);
            let mut entries = Vec::new();
            for _ in 0..reader.u32()? {
                let key = reader.bytes()?;
                let value = match reader.u8()? {
                    TAG_DELETION => None,
                    TAG_PATCHED => {
                        is_whole = false;
                        let (flags, patch) = (reader.u8()?, reader.patch()?);
                        let Some(old) = before.value(tree, &key)? else { continue };
                        let content = Content::Inline(patch.apply(&old)?.into());
                        Some(Value { flags, content })
                    }
                    TAG_REPEATED => {
                        is_whole = false;
                        let repeated = reader.repeated(payload)?;
                        repeated_bytes += repeated.bytes();
                        if TRANSACTION_BYTES_MAX < repeated_bytes {
                            return Err(DecodeError::Wrong(
                                "repeats of more than a transaction holds",
                            ));
                        }
                        Some(repeated)
                    }
                    tag => Some(reader.value_of(tag)?),
                };
                entries.push((key, value));
            }
            record.writes.push((tree, entries));
        }
        for _ in 0..reader.u32()? {
            record.chunks.push(reader.chunk(before)?);
        }
        record.event = match reader.u8()? {
            TAG_NO_EVENT => None,
            TAG_EVENT => Some(reader.bytes()?),
            _ => return Err(DecodeError::Wrong("an unknown tag of an event")),
        };
        if !reader.rest.is_empty() {
            return Err(DecodeError::Wrong("bytes after the last field"));
        }
        let for_memtable = match is_whole && record.is_for_memtable() {
            true => payload.clone(),
            false => record.writes_alone(Vec::with_capacity).into(),
        };
        Ok(Decoded { record, for_memtable })
    }
}

/// Calls `take` with each key whose new value a payload has as a patch, in their order. A fault of
/// the payload is found again by reading it.
pub(crate) fn patched_keys(
    payload: &Bytes,
    take: &mut dyn FnMut(TreeId, Bytes),
) -> Result<(), &'static str> {
    each_key(payload, &mut |tree, key, is_patched| {
        if is_patched {
            take(tree, key);
        }
    })
}

/// Calls `take` with each key that a payload writes, in their order, and whether it has the new
/// value as a patch.
///
/// # Errors
/// Says what of the bytes is no record.
pub(crate) fn each_key(
    payload: &Bytes,
    take: &mut dyn FnMut(TreeId, Bytes, bool),
) -> Result<(), &'static str> {
    let mut reader = Reader::new(payload.clone());
    reader.u64()?;
    reader.bases()?;
    for _ in 0..reader.u32()? {
        let tree = TreeId(reader.u64()?);
        for _ in 0..reader.u32()? {
            let key = reader.bytes()?;
            let tag = reader.u8()?;
            match tag {
                TAG_DELETION => {}
                TAG_PATCHED => {
                    reader.u8()?;
                    reader.patch()?;
                }
                TAG_REPEATED => drop(reader.repeated(payload)?),
                tag => drop(reader.value_of(tag)?),
            }
            take(tree, key, tag == TAG_PATCHED);
        }
    }
    Ok(())
}

/// Whether a payload gives a tree a base, or drops one.
pub(crate) fn has_bases(payload: &Bytes) -> bool {
    let mut reader = Reader::new(payload.clone());
    let count = reader.u64().and_then(|_| reader.u32());
    count.is_ok_and(|count| count > 0)
}

/// Returns the events in a payload ([`crate::change_event`]), and the whole chunks that it has if
/// events lead to some.
///
/// # Errors
/// Says which part of the bytes is no record.
pub(crate) fn events(payload: &Bytes) -> Result<(Vec<LoggedEvent>, Vec<Chunk>), &'static str> {
    let mut reader = Reader::new(payload.clone());
    reader.u64()?;
    reader.bases()?;
    let mut values: Vec<Option<Bytes>> = Vec::new();
    for _ in 0..reader.u32()? {
        reader.u64()?;
        for _ in 0..reader.u32()? {
            reader.bytes()?;
            values.push(match reader.u8()? {
                TAG_DELETION => None,
                TAG_PATCHED => {
                    reader.u8()?;
                    reader.patch()?;
                    None
                }
                TAG_REPEATED => inline(reader.repeated(payload)?),
                tag => inline(reader.value_of(tag)?),
            });
        }
    }
    let mut chunks: Vec<Bytes> = Vec::new();
    for _ in 0..reader.u32()? {
        match reader.u8()? {
            TAG_WHOLE_CHUNK => chunks.push(reader.bytes()?),
            TAG_PATCHED_CHUNK => {
                reader.take(2 * size_of::<ChunkHash>())?;
                reader.patch()?;
            }
            _ => return Err("an unknown tag of a chunk"),
        }
    }
    let events = match reader.u8()? {
        TAG_NO_EVENT => Vec::new(),
        TAG_EVENT => change_event::decode(&reader.bytes()?, &values)?,
        _ => return Err("an unknown tag of an event"),
    };
    let leads = |one: &LoggedEvent| matches!(one.content, LoggedContent::Chunks { .. });
    if !events.iter().any(leads) {
        return Ok((events, Vec::new()));
    }
    let chunks = chunks.into_iter().map(chunk_of).collect::<Result<_, _>>()?;
    Ok((events, chunks))
}

fn inline(value: Value) -> Option<Bytes> {
    match value.content {
        Content::Inline(bytes) => Some(bytes),
        Content::Chunk { .. } | Content::Sequence { .. } => None,
    }
}

impl Record {
    /// The trees that get a base, or go, by a payload that this process has encoded.
    pub fn based_trees(payload: &Bytes) -> Vec<TreeId> {
        let mut reader = Reader::new(payload.clone());
        let bases = reader.u64().and_then(|_| reader.bases());
        let bases = bases.expect("the record was encoded by this process and not changed since");
        bases.into_iter().map(|(tree, _)| tree).collect()
    }
}

const TOO_SHORT: &str = "a field exceeds the record";

/// Takes fields from the front; never beyond the end.
pub(super) struct Reader {
    rest: Bytes,
}

impl Reader {
    pub fn new(bytes: Bytes) -> Reader {
        Reader { rest: bytes }
    }

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

    fn bases(&mut self) -> Result<Vec<(TreeId, Option<Tree>)>, &'static str> {
        let mut bases = Vec::new();
        for _ in 0..self.u32()? {
            bases.push(self.base()?);
        }
        Ok(bases)
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

    /// A whole value.
    ///
    /// # Errors
    /// Says what of the bytes is no value.
    pub fn value(&mut self) -> Result<Option<Value>, &'static str> {
        match self.u8()? {
            TAG_DELETION => Ok(None),
            tag => self.value_of(tag).map(Some),
        }
    }

    fn value_of(&mut self, tag: u8) -> Result<Value, &'static str> {
        let flags = self.u8()?;
        let content = match tag {
            TAG_INLINE => Content::Inline(self.bytes()?),
            TAG_CHUNK => Content::Chunk { hash: ChunkHash(self.array()?), bytes: self.u64()? },
            TAG_SEQUENCE => {
                Content::Sequence { root: ChunkHash(self.array()?), bytes: self.u64()? }
            }
            _ => return Err("an unknown tag of a value"),
        };
        Ok(Value { flags, content })
    }

    /// A value that repeats bytes of `payload`, which stand before it.
    fn repeated(&mut self, payload: &Bytes) -> Result<Value, &'static str> {
        let before = payload.len() - self.rest.len();
        let (flags, own) = (self.u8()?, self.bytes()?);
        let (start, bytes) = (self.u32()? as usize, self.u32()? as usize);
        let end = start.checked_add(bytes).filter(|end| *end <= before);
        let repeated = payload.slice(start..end.ok_or("a repeat of what doesn't stand before it")?);
        let content = match own.is_empty() {
            true => repeated,
            false => [own, repeated].concat().into(),
        };
        Ok(Value { flags, content: Content::Inline(content) })
    }

    fn patch(&mut self) -> Result<Patch, &'static str> {
        let (patch, bytes) = Patch::decode(&self.rest)?;
        self.take(bytes)?;
        Ok(patch)
    }

    fn chunk(&mut self, before: &mut dyn PriorValues) -> Result<Chunk, DecodeError> {
        let encoded = match self.u8()? {
            TAG_WHOLE_CHUNK => self.bytes()?,
            TAG_PATCHED_CHUNK => return self.patched_chunk(before),
            _ => return Err(DecodeError::Wrong("an unknown tag of a chunk")),
        };
        Ok(chunk_of(encoded)?)
    }

    fn patched_chunk(&mut self, before: &mut dyn PriorValues) -> Result<Chunk, DecodeError> {
        let (new, old) = (ChunkHash(self.array()?), ChunkHash(self.array()?));
        let patch = self.patch()?;
        let old = before.chunk(old)?;
        let chunk = chunk_of(patch.apply_to_chunk(&old)?.into())?;
        if chunk.hash() != new {
            return Err(DecodeError::Wrong("a patched chunk is another than it was"));
        }
        Ok(chunk)
    }
}

fn chunk_of(encoded: Bytes) -> Result<Chunk, &'static str> {
    Chunk::from_encoded(encoded, ("a log record", 0)).map_err(|_| "a chunk is not one")
}

#[cfg(test)]
mod tests {
    use frond_store::ChunkKind;
    use frond_testkit::random::for_seeds;

    use super::super::record::{ChunkPatch, Patches};
    use super::*;
    use crate::change_event::{ChangeEvent, EventContent};
    use crate::entry::OverlayEntry;
    use crate::overlay::stored::writes_of;

    const OLD: [u8; 300] = [7; 300];

    fn old_chunk() -> Chunk {
        Chunk::new(ChunkKind::Blob, &[], &OLD)
    }

    /// A store where every key had `OLD`, and there is one chunk.
    #[derive(Default)]
    struct Known {
        /// The key whose old value isn't needed any more.
        needless: Option<&'static [u8]>,
    }

    impl PriorValues for Known {
        fn value(&mut self, _: TreeId, key: &[u8]) -> Result<Option<Bytes>, DecodeError> {
            Ok((self.needless != Some(key)).then(|| Bytes::from_static(&OLD)))
        }

        fn chunk(&mut self, old: ChunkHash) -> Result<Chunk, DecodeError> {
            if old == old_chunk().hash() { Ok(old_chunk()) } else { Err("none".into()) }
        }
    }

    fn decode(payload: impl Into<Bytes>) -> Result<Decoded, DecodeError> {
        Decoded::new(&payload.into(), &mut Known::default())
    }

    fn sample() -> Record {
        let format = TreeFormat { chunk_bytes_target: 512, inline_bytes_max: 128, salt: 11 };
        let base = Tree { root: ChunkHash([3; 32]), format };
        let chunk = Chunk::new(ChunkKind::Blob, &[], b"pending here");
        let out_of_line = |content| Some(Value { flags: 5, content });
        let head = Content::Chunk { hash: chunk.hash(), bytes: 9 };
        let sequence = Content::Sequence { root: ChunkHash([4; 32]), bytes: 1 << 40 };
        let first = vec![(Bytes::from("a"), None), (Bytes::from("b"), Some(Value::inline("x")))];
        let second =
            vec![(Bytes::new(), out_of_line(head)), (Bytes::from("s"), out_of_line(sequence))];
        Record {
            next_tree_id: 7,
            bases: vec![(TreeId(2), Some(base)), (TreeId(3), None)],
            writes: vec![(TreeId(1), first), (TreeId(2), second)],
            chunks: vec![chunk],
            event: Some(Bytes::from("event")),
            patches: Patches::default(),
        }
    }

    /// As `sample`, with a value and a chunk more, for which the log gets patches.
    fn patched_sample() -> Record {
        let mut record = sample();
        let mut new = OLD.to_vec();
        new[200] = 8;
        let chunk = Chunk::new(ChunkKind::Blob, &[], &new);
        let of_chunk = Patch::between_chunks(&old_chunk(), &chunk).unwrap();
        let chunk_patch = ChunkPatch { old: old_chunk().hash(), patch: of_chunk };
        record.patches.chunks.insert(chunk.hash(), chunk_patch);
        record.chunks.push(chunk);
        record.patches.values.insert(2, Patch::between(&OLD, &new).unwrap());
        let value = Some(Value { flags: 3, content: Content::Inline(new.into()) });
        record.writes[0].1.push((Bytes::from("patched"), value));
        record
    }

    /// As `patched_sample`, with values that end with an earlier one.
    fn repeating_sample() -> Record {
        let mut record = patched_sample();
        let entry =
            |key: &'static str, value: Vec<u8>| (Bytes::from(key), Some(Value::inline(value)));
        let document: Vec<u8> = (0..200).collect();
        record.writes[0].1.push((Bytes::from("q"), Some(Value::inline(document.clone()))));
        let held = [&[1, 2, 3], &document[..]].concat();
        let entries = vec![entry("x", held), entry("y", vec![9; 70]), entry("z", document)];
        record.writes.push((TreeId(5), entries));
        record.find_repeats();
        assert_eq!(record.patches.repeats.len(), 2);
        record
    }

    /// Returns the entries that the memtable would get from a payload.
    fn entries_of(payload: &Bytes) -> Vec<(TreeId, Vec<OverlayEntry>)> {
        let writes = writes_of(payload).into_iter();
        writes.map(|it| (it.tree, it.iter().map(|stored| stored.entry()).collect())).collect()
    }

    #[test]
    fn encoding_round_trips() {
        for record in [Record::default(), sample(), patched_sample(), repeating_sample()] {
            let logged = Bytes::from(record.encode());
            let whole = Record { patches: Patches::default(), ..record.clone() };
            let decoded = decode(logged.clone()).unwrap();
            assert_eq!(decoded.record, whole);
            assert_eq!(entries_of(&decoded.for_memtable), whole.writes);
            let alone = record.writes_alone(Vec::with_capacity).into();
            assert_eq!(entries_of(&alone), whole.writes);
            let bases: Vec<TreeId> = whole.bases.iter().map(|(tree, _)| *tree).collect();
            assert_eq!(Record::based_trees(&logged), bases);
        }
        let bytes = |record: Record| record.encode().len();
        assert!(bytes(patched_sample()) < bytes(sample()) + 200, "two values of 300 bytes more");
        let more = bytes(repeating_sample()) - bytes(patched_sample());
        assert!(more < 400, "three values of 200 bytes more, and one of 70: {more}");
    }

    /// As the log has it, by patches and repetitions, or whole: an event names a value that comes
    /// behind these.
    #[test]
    fn events_are_found_after_any_other_part_of_a_record() {
        for mut record in [sample(), patched_sample(), repeating_sample()] {
            let last = (Bytes::from("zz"), Some(Value::inline("told")));
            record.writes.push((TreeId(9), vec![last]));
            let position =
                record.writes.iter().map(|(_, entries)| entries.len()).sum::<usize>() - 1;
            let (tree, key) = (TreeId(9), Bytes::from("zz"));
            let content = EventContent::Written { tree, key, content: Bytes::from("told") };
            let event = ChangeEvent { scope: Bytes::from("s"), head: Bytes::from("h"), content };
            record.event = Some(change_event::encode(&[event], |_| u32::try_from(position).ok()));
            let (events, chunks) = super::events(&record.encode().into()).unwrap();
            let content = LoggedContent::Whole(Bytes::from("told"));
            let (scope, head) = (Bytes::from("s"), Bytes::from("h"));
            assert_eq!(events, [LoggedEvent { scope, head, content }]);
            assert!(chunks.is_empty());
        }
    }

    #[test]
    fn unneeded_values_are_left_out() {
        let mut known = Known { needless: Some(b"patched") };
        let payload = patched_sample().encode().into();
        let decoded = Decoded::new(&payload, &mut known).unwrap();
        assert_eq!(decoded.record.writes, sample().writes);
        assert_eq!(entries_of(&decoded.for_memtable), sample().writes);
    }

    #[test]
    fn every_shorter_or_longer_payload_is_refused() {
        let bytes = Bytes::from(repeating_sample().encode());
        for end in 0..bytes.len() {
            assert!(decode(bytes.slice(..end)).is_err(), "{end} bytes");
        }
        assert!(decode([&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn only_what_stands_before_is_repeated() {
        let payload = |start: u32, bytes: u32| {
            let mut payload = Record::default().encode();
            // One tree instead of none, and one entry of it, without a key.
            let position = size_of::<u64>() + size_of::<u32>();
            let entry = [
                &[0; 4][..],
                &[TAG_REPEATED, 0],
                &[0; 4],
                &start.to_le_bytes(),
                &bytes.to_le_bytes(),
            ];
            let tree = [&1u32.to_le_bytes()[..], &[7, 0, 0, 0, 0, 0, 0, 0], &1u32.to_le_bytes()];
            payload.splice(position..position + 4, [tree.concat(), entry.concat()].concat());
            payload
        };
        let before = 8 + 4 + 4 + 8 + 4 + 4 + 1;
        let read = |start, bytes| {
            decode(payload(start, bytes)).map(|decoded| decoded.record.writes[0].1[0].1.clone())
        };
        let found = read(0, before).unwrap().unwrap();
        assert_eq!(
            found.content,
            Content::Inline(payload(0, before)[..before as usize].to_vec().into())
        );
        for (start, bytes) in
            [(0, before + 1), (before, 1), (1, before), (u32::MAX, 2), (2, u32::MAX)]
        {
            assert!(read(start, bytes).is_err(), "{bytes} bytes from {start}");
        }
    }

    #[test]
    fn changed_bytes_never_panic() {
        for_seeds(300, |mut random| {
            let (record, is_whole) =
                if random.one_in(2) { (sample(), true) } else { (repeating_sample(), false) };
            let mut changed = record.encode();
            for _ in 0..1 + random.below(3) {
                let position = random.below(changed.len());
                changed[position] = random.next() as u8;
            }
            if let Ok(decoded) = decode(changed.clone())
                && is_whole
            {
                assert_eq!(decoded.record.encode(), changed, "a record has one form only");
            }
        });
    }
}
