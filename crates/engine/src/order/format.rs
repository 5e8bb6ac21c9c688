//! An entry of a set's log: a group of transactions. The authority is docs/format/set-entry.md.

use bytes::Bytes;
use frond_store::{Chunk, StoreError};

use crate::ids::{Sequence, TreeId};
use crate::log::decode::{each_key, has_bases};
use crate::log::writer::PendingRecord;

/// The version that this build writes and the only one that it reads.
const VERSION: u16 = 0;
const OFFSET_RECORD_COUNT: usize = size_of::<u16>();
const OFFSET_CHUNK_COUNT: usize = OFFSET_RECORD_COUNT + size_of::<u32>();
const HEAD_BYTES: usize = OFFSET_CHUNK_COUNT + size_of::<u32>();
/// A transaction before its payload: Sequence, length.
const RECORD_HEAD_BYTES: usize = size_of::<u64>() + size_of::<u32>();
/// A chunk before its bytes: length.
const CHUNK_HEAD_BYTES: usize = size_of::<u32>();

/// The most that an entry carries of one transaction, with the chunks that it names.
pub const ENTRY_BYTES_MAX: usize = 48 << 20;

/// The content of an entry.
pub struct SetEntry {
    /// The transactions: their Sequences, which ascend, and what the log gets of them.
    pub(crate) records: Vec<(Sequence, Bytes)>,
    /// Chunks that they name and don't bring.
    pub(crate) chunks: Vec<Chunk>,
}

/// The entry that carries `records`.
pub(super) fn encode(records: &[PendingRecord]) -> Bytes {
    let chunks = || records.iter().flat_map(|record| &record.referenced_chunks);
    let bytes = records.iter().map(|record| RECORD_HEAD_BYTES + record.payload.len());
    let chunk_bytes = chunks().map(|chunk| CHUNK_HEAD_BYTES + chunk.encoded().len());
    let mut out = Vec::with_capacity(HEAD_BYTES + bytes.chain(chunk_bytes).sum::<usize>());
    out.extend_from_slice(&VERSION.to_le_bytes());
    put_count(&mut out, records.len());
    put_count(&mut out, chunks().count());
    for record in records {
        out.extend_from_slice(&record.sequence.0.to_le_bytes());
        put_count(&mut out, record.payload.len());
        out.extend_from_slice(&record.payload);
    }
    for chunk in chunks() {
        put_count(&mut out, chunk.encoded().len());
        out.extend_from_slice(chunk.encoded());
    }
    out.into()
}

impl SetEntry {
    /// Reads an entry.
    ///
    /// # Errors
    /// [`StoreError::Version`] if another version wrote it; [`StoreError::Damaged`] if it is none.
    pub fn decode(entry: &Bytes) -> Result<SetEntry, StoreError> {
        let mut reader = Reader { rest: entry.clone() };
        let found = u16::from_le_bytes(reader.array()?);
        if found != VERSION {
            return Err(StoreError::Version { file: FILE.to_owned(), found, readable: VERSION });
        }
        let (record_count, chunk_count) = (reader.u32()?, reader.u32()?);
        let mut records: Vec<(Sequence, Bytes)> = Vec::new();
        for _ in 0..record_count {
            let sequence = Sequence(u64::from_le_bytes(reader.array()?));
            if records.last().is_some_and(|(last, _)| sequence <= *last) {
                return Err(damaged("a transaction goes back in time"));
            }
            records.push((sequence, reader.bytes()?));
        }
        // With bytes of their own: a cache that keeps one, or a memtable, would keep the entry.
        let mut chunks = Vec::new();
        for _ in 0..chunk_count {
            let encoded = Bytes::copy_from_slice(&reader.bytes()?);
            chunks.push(Chunk::from_encoded(encoded, (FILE, 0))?);
        }
        if !chunks.is_empty() {
            records.iter_mut().for_each(|(_, payload)| *payload = Bytes::copy_from_slice(payload));
        }
        if records.is_empty() || !reader.rest.is_empty() {
            return Err(damaged("no transaction, or bytes after the last field"));
        }
        Ok(SetEntry { records, chunks })
    }

    /// Whether a transaction writes a key of `tree` that `is_meant`.
    pub fn writes(&self, tree: TreeId, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        let mut found = false;
        for (_, payload) in &self.records {
            // A payload that is no record is reported when it is applied.
            let _ = each_key(payload, &mut |written, key, _| {
                found |= written == tree && is_meant(&key);
            });
        }
        found
    }

    /// Whether a tree gets another base, or goes.
    pub fn has_bases(&self) -> bool {
        self.records.iter().any(|(_, payload)| has_bases(payload))
    }
}

/// The first Sequence of an entry: those of the entries of one log ascend.
///
/// # Errors
/// [`StoreError::Damaged`] if it is none.
pub fn first_sequence(entry: &Bytes) -> Result<Sequence, StoreError> {
    let mut reader = Reader { rest: entry.clone() };
    reader.take(HEAD_BYTES)?;
    Ok(Sequence(u64::from_le_bytes(reader.array()?)))
}

/// The last Sequence of an entry.
///
/// # Errors
/// As [`first_sequence`].
pub(super) fn last_sequence(entry: &Bytes) -> Result<Sequence, StoreError> {
    let mut reader = Reader { rest: entry.clone() };
    reader.take(OFFSET_RECORD_COUNT)?;
    let record_count = reader.u32()?;
    reader.u32()?;
    let mut last = Sequence::ZERO;
    for _ in 0..record_count {
        last = Sequence(u64::from_le_bytes(reader.array()?));
        reader.bytes()?;
    }
    Ok(last)
}

const FILE: &str = "an entry of the set's log";

fn damaged(what: &str) -> StoreError {
    StoreError::damaged(FILE, 0, what)
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("an entry's limit is below 4 GiB");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Takes fields from the front; never beyond the end.
struct Reader {
    rest: Bytes,
}

impl Reader {
    fn take(&mut self, bytes: usize) -> Result<Bytes, StoreError> {
        match bytes <= self.rest.len() {
            true => Ok(self.rest.split_to(bytes)),
            false => Err(damaged("a field exceeds the entry")),
        }
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], StoreError> {
        let mut array = [0; BYTES];
        array.copy_from_slice(&self.take(BYTES)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, StoreError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn bytes(&mut self) -> Result<Bytes, StoreError> {
        let bytes = self.u32()? as usize;
        self.take(bytes)
    }
}

#[cfg(test)]
mod tests {
    use frond_store::ChunkKind;

    use super::*;

    fn entry() -> Bytes {
        let pending = |sequence, payload: &'static str, referenced_chunks| PendingRecord {
            sequence: Sequence(sequence),
            referenced_chunks,
            ..PendingRecord::new(Bytes::from(payload))
        };
        let chunk = Chunk::new(ChunkKind::Blob, &[], b"large");
        encode(&[pending(7, "one", Vec::new()), pending(9, "two", vec![chunk])])
    }

    #[test]
    fn an_entry_reads_back() {
        let entry = entry();
        assert_eq!(first_sequence(&entry).expect("it has one"), Sequence(7));
        let SetEntry { records, chunks } = SetEntry::decode(&entry).expect("it was encoded");
        let expected = [(7, "one"), (9, "two")];
        assert_eq!(records, expected.map(|(number, it)| (Sequence(number), Bytes::from(it))));
        assert_eq!(chunks, [Chunk::new(ChunkKind::Blob, &[], b"large")]);
        let kept = [chunks[0].encoded().as_ptr(), records[0].1.as_ptr()];
        assert!(kept.iter().all(|at| !entry.as_ptr_range().contains(at)), "they keep the entry");
    }

    #[test]
    fn malformed_bytes_are_refused() {
        let whole = entry();
        for end in 0..whole.len() {
            assert!(SetEntry::decode(&whole.slice(..end)).is_err(), "cut at {end}");
        }
        let longer = Bytes::from([&whole[..], &[0]].concat());
        assert!(SetEntry::decode(&longer).is_err());
        let mut other = whole.to_vec();
        other[0] = 1;
        assert!(matches!(
            SetEntry::decode(&other.into()),
            Err(StoreError::Version { found: 1, .. })
        ));
        let mut back = whole.to_vec();
        back[HEAD_BYTES] = 9;
        assert!(SetEntry::decode(&back.into()).is_err());
    }
}
