//! The changes of a merge to our documents, kept while they are few.
//!
//! Indexes follow the documents that differ between a side and the result. Of our side the
//! documents' merge has just had them in hand; to find them again, both trees would be read once
//! more where they differ. Kept values are copied, since values hold on to the leaves that they
//! came from.

use bytes::Bytes;
use frond_store::ChunkHash;
use frond_tree::{Change, Content, Tree, Value};

/// Keys and values that are kept, at most; a merge that changes more reads the trees again.
const BYTES_MAX: usize = 16 << 20;

/// Changes on the way from one tree to another, ascending by key.
#[derive(Default)]
pub(crate) struct MergeNotes {
    changes: Vec<Change>,
    bytes: usize,
    /// The roots of the trees between which these are all changes; `None` if that isn't known.
    ends: Option<[ChunkHash; 2]>,
}

impl MergeNotes {
    /// Keeps a change, as long as there is room.
    pub fn note(&mut self, key: &Bytes, from: Option<&Value>, to: Option<&Value>) {
        if self.bytes > BYTES_MAX {
            return;
        }
        let mut copied = |value: &Value| match &value.content {
            Content::Inline(bytes) => {
                self.bytes += bytes.len();
                Value { flags: value.flags, ..Value::inline(Bytes::copy_from_slice(bytes)) }
            }
            Content::Chunk { .. } | Content::Sequence { .. } => value.clone(),
        };
        let (from, to) = (from.map(&mut copied), to.map(&mut copied));
        self.bytes += key.len() + size_of::<Change>();
        self.changes.push(Change { key: Bytes::copy_from_slice(key), from, to });
    }

    /// All that leads from `from` to `to` was noted.
    pub fn finish(&mut self, from: &Tree, to: &Tree) {
        if self.bytes > BYTES_MAX {
            self.changes = Vec::new();
        } else {
            self.ends = Some([from.root, to.root]);
        }
    }

    /// The changes from `from` to `to`, if they are known.
    pub fn between(&self, from: &Tree, to: &Tree) -> Option<&[Change]> {
        (self.ends == Some([from.root, to.root])).then_some(&self.changes)
    }
}
