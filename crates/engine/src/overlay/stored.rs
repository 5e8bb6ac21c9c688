//! The overlay's entries as they lie in a transaction's payload.
//!
//! The memtable keeps a payload as the log gets one (or the very one, if that has all values
//! whole), instead of keys and values one by one: an entry is then one slice of it, and a
//! transaction one piece of memory to take and to give back, however many entries it has.
//!
//! The bytes are a payload's that this process has encoded, or has decoded whole before: they are
//! right, and what is not found in them is a defect of ours.

use bytes::Bytes;
use frond_tree::Value;

use crate::entry::OverlayEntry;
use crate::ids::TreeId;
use crate::log::record::{Walker, read_value};

const RIGHT: &str = "a payload that was encoded here, or decoded before, is right";

/// The writes of one transaction to one tree: a part of its payload.
#[derive(Clone)]
pub(crate) struct TreeWrites {
    /// The tree.
    pub tree: TreeId,
    /// The number of entries.
    pub count: u32,
    entries: Bytes,
}

/// Returns what a payload writes, by tree.
pub(crate) fn writes_of(payload: &Bytes) -> Vec<TreeWrites> {
    let mut walker = Walker::new(payload);
    let tree_count = walker.find_writes().expect(RIGHT);
    let writes = (0..tree_count).map(|_| {
        let (tree, count) = walker.tree_head().expect(RIGHT);
        let start = walker.position();
        for _ in 0..count {
            walker.entry().expect(RIGHT);
        }
        TreeWrites { tree, count, entries: payload.slice(start..walker.position()) }
    });
    writes.collect()
}

impl TreeWrites {
    /// The entries, keys ascending.
    pub fn iter(&self) -> impl Iterator<Item = Stored> + '_ {
        let mut walker = Walker::new(&self.entries);
        (0..self.count).map(move |_| {
            let (key, end) = walker.entry().expect(RIGHT);
            let key_bytes = u32::try_from(key.len()).expect("a key's length is stored in 32 bits");
            let is_deletion =
                Walker::new(&self.entries[key.end..end]).stands_before_deletion().expect(RIGHT);
            let bytes = self.entries.slice(key.start..end);
            Stored { bytes, key_bytes, has_value: !is_deletion, replaces: None }
        })
    }
}

// Memtables have many: what is known of an entry lies where nothing did.
const _: () = assert!(size_of::<Stored>() == size_of::<Bytes>() + size_of::<usize>());

/// A key and what became of it.
#[derive(Clone)]
pub(crate) struct Stored {
    /// The key, and behind it the value as a payload has it.
    bytes: Bytes,
    key_bytes: u32,
    has_value: bool,
    replaces: Option<bool>,
}

impl Stored {
    /// Whether the key had a value just before; `None` if that isn't known here. It is found out
    /// when entries are counted.
    pub fn replaces(&self) -> Option<bool> {
        self.replaces
    }

    /// Notes whether the key had a value just before.
    pub fn note_replaces(&mut self, replaces: bool) {
        self.replaces = Some(replaces);
    }

    /// Whether the key has a value now.
    pub fn has_value(&self) -> bool {
        self.has_value
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.bytes[..self.key_bytes as usize]
    }

    /// The key, sharing the payload.
    pub fn owned_key(&self) -> Bytes {
        self.bytes.slice(..self.key_bytes as usize)
    }

    /// The value; `None`: it was deleted.
    pub fn value(&self) -> Option<Value> {
        read_value(&self.bytes, self.key_bytes as usize).expect(RIGHT)
    }

    /// Key and value.
    pub fn entry(&self) -> OverlayEntry {
        (self.owned_key(), self.value())
    }

    /// The value's flags; none if it was deleted.
    pub fn flags(&self) -> u8 {
        Walker::new(&self.bytes[self.key_bytes as usize..]).flags().expect(RIGHT)
    }

    /// Bytes of key and value as they are stored.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use frond_store::{Chunk, ChunkHash, ChunkKind};
    use frond_tree::Content;

    use super::*;
    use crate::log::record::Record;

    #[test]
    fn a_payload_gives_back_what_was_written() {
        let out_of_line = Content::Chunk { hash: ChunkHash([7; 32]), bytes: 9 };
        let sequence = Content::Sequence { root: ChunkHash([8; 32]), bytes: 1 << 40 };
        let first: Vec<OverlayEntry> = vec![
            (Bytes::new(), Some(Value { flags: 3, content: out_of_line })),
            (Bytes::from("b"), None),
            (Bytes::from("c"), Some(Value { flags: 4, content: sequence })),
        ];
        let second: Vec<OverlayEntry> = vec![(Bytes::from("a"), Some(Value::inline("value")))];
        let writes = vec![(TreeId(2), first), (TreeId(9), second), (TreeId(10), Vec::new())];
        let chunk = Chunk::new(ChunkKind::Blob, &[], b"pending here");
        let tree =
            frond_tree::Tree { root: ChunkHash([3; 32]), format: frond_tree::TreeFormat::new(1) };
        for (bases, chunks) in
            [(vec![], vec![]), (vec![(TreeId(1), None), (TreeId(2), Some(tree))], vec![chunk])]
        {
            let event = Some(Bytes::from("event"));
            let (writes, patches) = (writes.clone(), Default::default());
            let record = Record { next_tree_id: 11, bases, writes, chunks, event, patches };
            let found: Vec<(TreeId, Vec<OverlayEntry>)> = writes_of(&record.encode().into())
                .iter()
                .map(|found| (found.tree, found.iter().map(|stored| stored.entry()).collect()))
                .collect();
            assert_eq!(found, record.writes);
        }
        let payload = Record { writes, ..Record::default() }.encode().into();
        let flags: Vec<u8> = writes_of(&payload)[0].iter().map(|stored| stored.flags()).collect();
        assert_eq!(flags, [3, 0, 4]);
    }
}
