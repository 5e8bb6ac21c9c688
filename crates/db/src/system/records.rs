//! The records of the system tree.

use bytes::Bytes;
use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_engine::TreeId;
use frond_store::{Chunk, ChunkHash};
use frond_tree::{Content, TreeFormat, Value as TreeValue};

use crate::commit_id::CommitId;
use crate::definition::{self, IndexSpec};
use crate::error::Error;

/// The branch that a new repository begins with.
pub const DEFAULT_BRANCH: &str = "main";
/// Binary of no particular meaning.
pub const SUBTYPE_GENERIC: u8 = 0;
const SUBTYPE_UUID: u8 = 4;

/// A database: a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepositoryRecord {
    /// Makes the repository's trees what they are; clones inherit it.
    pub salt: u64,
    /// Local to this data directory.
    pub uuid: [u8; 16],
    /// Milliseconds since 1970.
    pub created_millis: i64,
    /// The branch that the bare name of the database means.
    pub default_branch: String,
}

/// A branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BranchRef {
    /// HEAD; `None` before the first commit.
    pub commit: Option<CommitId>,
}

/// The difference between a collection on a branch and HEAD's.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkingEntry {
    /// It lies in these trees.
    Live(LiveCollection),
    /// HEAD has it, this branch doesn't.
    Dropped,
}

/// A collection in trees of this data directory.
#[derive(Clone, PartialEq, Debug)]
pub struct LiveCollection {
    /// Local to this data directory.
    pub uuid: [u8; 16],
    /// As given to `create`.
    pub options: DocumentBuf,
    /// The documents by `_id`.
    pub documents: TreeId,
    /// All indexes but `_id`'s.
    pub indexes: Vec<LiveIndex>,
    /// The order of insertion, of a capped collection: see `collection::capped`.
    pub order: Option<TreeId>,
}

/// An index of a [`LiveCollection`].
#[derive(Clone, PartialEq, Debug)]
pub struct LiveIndex {
    /// As it was asked for.
    pub spec: IndexSpec,
    /// Its entries.
    pub tree: TreeId,
}

impl LiveCollection {
    /// Whether commits have it.
    pub fn is_versioned(&self) -> bool {
        definition::is_versioned(&self.options)
    }

    /// All trees: the documents', then each index's, then the order's.
    pub fn trees(&self) -> Vec<TreeId> {
        let indexes = self.indexes.iter().map(|index| index.tree);
        std::iter::once(self.documents).chain(indexes).chain(self.order).collect()
    }

    /// Whether no two of its trees are the same.
    pub fn has_trees_of_its_own(&self) -> bool {
        let mut trees = self.trees();
        trees.sort_unstable();
        trees.is_sorted_by(|left, right| left < right)
    }
}

/// The value of a record that refers to chunks: itself a chunk, so that a walk along references
/// reaches them. It is taken along by `transaction`.
pub fn referring_value(
    transaction: &mut frond_engine::Transaction,
    references: &[ChunkHash],
    record: &[u8],
) -> TreeValue {
    if references.is_empty() {
        return TreeValue::inline(Bytes::copy_from_slice(record));
    }
    let chunk = Chunk::new(frond_store::ChunkKind::Blob, references, record);
    transaction.put_chunks(std::slice::from_ref(&chunk));
    let bytes = record.len() as u64;
    TreeValue { flags: 0, content: Content::Chunk { hash: chunk.hash(), bytes } }
}

/// The chunks that such a value refers to.
///
/// # Errors
/// `Damaged` if the chunk is absent; `Unavailable` if the store doesn't answer.
pub fn references_of(
    store: &dyn frond_store::ChunkStore,
    value: &TreeValue,
) -> Result<Vec<ChunkHash>, Error> {
    match &value.content {
        Content::Chunk { hash, .. } => Ok(store.get(*hash)?.references().collect()),
        _ => Ok(Vec::new()),
    }
}

/// Reads a stored record as a document.
///
/// # Errors
/// `Damaged` if the bytes are no document.
pub fn record(bytes: Bytes) -> Result<DocumentBuf, Error> {
    DocumentBuf::validated(bytes)
        .map_err(|error| Error::damaged(format!("a record of the system tree: {error}")))
}

impl RepositoryRecord {
    /// Returns how the repository's trees are made.
    pub fn format(&self) -> TreeFormat {
        TreeFormat::new(self.salt)
    }

    /// The record to store.
    pub fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        builder.append("salt", Value::Int64(self.salt as i64));
        append_bytes(&mut builder, "uuid", SUBTYPE_UUID, &self.uuid);
        builder.append("created", Value::DateTime(self.created_millis));
        builder.append("defaultBranch", Value::String(&self.default_branch));
        builder.build().into_bytes()
    }

    /// Reads a stored record.
    ///
    /// # Errors
    /// `Damaged` if a field is missing or of another type.
    pub fn decode(bytes: Bytes) -> Result<RepositoryRecord, Error> {
        let record = record(bytes)?;
        Ok(RepositoryRecord {
            salt: field(&record, "salt", |value| value.as_integer())? as u64,
            uuid: field(&record, "uuid", as_array)?,
            created_millis: field(&record, "created", |value| match value {
                Value::DateTime(millis) => Some(millis),
                _ => None,
            })?,
            default_branch: field(&record, "defaultBranch", as_string)?,
        })
    }
}

impl BranchRef {
    /// The record to store.
    pub fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        if let Some(commit) = &self.commit {
            append_bytes(&mut builder, "commit", SUBTYPE_GENERIC, &commit.0);
        }
        builder.build().into_bytes()
    }

    /// Reads a stored record.
    ///
    /// # Errors
    /// `Damaged` if a field is missing or of another type.
    pub fn decode(bytes: Bytes) -> Result<BranchRef, Error> {
        let record = record(bytes)?;
        if record.get("commit").is_none() {
            return Ok(BranchRef::default());
        }
        Ok(BranchRef { commit: Some(CommitId(field(&record, "commit", as_array)?)) })
    }
}

/// The value that leads from a commit's id to its chunk: a reference to it, so that a walk along
/// references reaches every commit of the directory.
pub fn commit_value(chunk: &Chunk) -> TreeValue {
    let bytes = chunk.payload().len() as u64;
    TreeValue { flags: 0, content: Content::Chunk { hash: chunk.hash(), bytes } }
}

/// The chunk that such a value leads to.
///
/// # Errors
/// `Damaged` if it leads to none.
pub fn commit_chunk(value: &TreeValue) -> Result<ChunkHash, Error> {
    match &value.content {
        Content::Chunk { hash, .. } => Ok(*hash),
        _ => Err(Error::damaged("a commit's id leads to no chunk")),
    }
}

impl WorkingEntry {
    /// The record to store.
    pub fn encode(&self) -> Bytes {
        let WorkingEntry::Live(live) = self else {
            return document! { "dropped": true }.into_bytes();
        };
        let mut builder = DocumentBuilder::new();
        append_bytes(&mut builder, "uuid", SUBTYPE_UUID, &live.uuid);
        builder.append("options", Value::from(&live.options));
        builder.append("documents", Value::Int64(live.documents.0 as i64));
        builder.begin_array("indexes");
        for index in &live.indexes {
            let mut entry = DocumentBuilder::new();
            index.spec.append_stored(&mut entry);
            entry.append("tree", Value::Int64(index.tree.0 as i64));
            builder.push(Value::from(&entry.build()));
        }
        builder.end();
        if let Some(order) = live.order {
            builder.append("order", Value::Int64(order.0 as i64));
        }
        builder.build().into_bytes()
    }

    /// Reads a stored record.
    ///
    /// # Errors
    /// `Damaged` if a field is missing or of another type.
    pub fn decode(bytes: Bytes) -> Result<WorkingEntry, Error> {
        let record = record(bytes)?;
        if record.get("dropped").is_some() {
            return Ok(WorkingEntry::Dropped);
        }
        let mut indexes = Vec::new();
        let stored = field(&record, "indexes", |value| value.as_array())?;
        for index in stored.iter() {
            let index = index.as_document().ok_or_else(|| missing("indexes"))?;
            let tree = index.get("tree").and_then(|value| as_tree(value));
            let tree = tree.ok_or_else(|| missing("tree"))?;
            indexes.push(LiveIndex { spec: IndexSpec::decode_stored(index)?, tree });
        }
        Ok(WorkingEntry::Live(LiveCollection {
            uuid: field(&record, "uuid", as_array)?,
            options: field(&record, "options", as_owned_document)?,
            documents: field(&record, "documents", as_tree)?,
            indexes,
            order: match record.get("order") {
                Some(order) => Some(as_tree(order).ok_or_else(|| missing("order"))?),
                None => None,
            },
        }))
    }
}

/// Appends bytes as BSON's binary.
pub fn append_bytes(builder: &mut DocumentBuilder, name: &str, subtype: u8, bytes: &[u8]) {
    builder.append(name, Value::Binary(Binary { subtype, bytes }));
}

/// The field `name` of a stored record, as what `read` makes of it.
///
/// # Errors
/// `Damaged` if it is missing, or `read` makes nothing of it.
pub fn field<'a, T>(
    record: &'a DocumentBuf,
    name: &str,
    read: impl FnOnce(Value<'a>) -> Option<T>,
) -> Result<T, Error> {
    record.get(name).and_then(read).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::damaged(format!("a record of the system tree has no proper field {name}"))
}

/// Reads bytes of a known length.
pub fn as_array<const N: usize>(value: Value<'_>) -> Option<[u8; N]> {
    match value {
        Value::Binary(binary) => binary.bytes.try_into().ok(),
        _ => None,
    }
}

/// Reads a string.
pub fn as_string(value: Value<'_>) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn as_owned_document(value: Value<'_>) -> Option<DocumentBuf> {
    value.as_document().map(|document: Document<'_>| document.to_buf())
}

fn as_tree(value: Value<'_>) -> Option<TreeId> {
    value.as_integer().map(|number| TreeId(number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> LiveCollection {
        let spec = IndexSpec { unique: true, ..IndexSpec::of_id() };
        LiveCollection {
            uuid: [7; 16],
            options: document! { "a": 1 },
            documents: TreeId(3),
            indexes: vec![LiveIndex { spec, tree: TreeId(u64::MAX) }],
            order: Some(TreeId(9)),
        }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let repository = RepositoryRecord {
            salt: u64::MAX - 5,
            uuid: [9; 16],
            created_millis: -1,
            default_branch: "main".to_owned(),
        };
        assert_eq!(RepositoryRecord::decode(repository.encode()).expect("read"), repository);
        for head in [BranchRef::default(), BranchRef { commit: Some(CommitId([3; 20])) }] {
            assert_eq!(BranchRef::decode(head.encode()).expect("read"), head);
        }
        for entry in [WorkingEntry::Dropped, WorkingEntry::Live(live())] {
            assert_eq!(WorkingEntry::decode(entry.encode()).expect("read"), entry);
        }
        let chunk = Chunk::new(frond_store::ChunkKind::Commit, &[], b"x");
        assert_eq!(commit_chunk(&commit_value(&chunk)).expect("read"), chunk.hash());
    }

    #[test]
    fn damaged_records_are_errors() {
        let whole = WorkingEntry::Live(live()).encode();
        for end in 0..whole.len() {
            assert!(WorkingEntry::decode(whole.slice(..end)).is_err(), "{end} bytes");
        }
        for wrong in [document! {}, document! { "uuid": 1 }, document! { "documents": "x" }] {
            assert!(WorkingEntry::decode(wrong.clone().into_bytes()).is_err(), "{wrong:?}");
            assert!(RepositoryRecord::decode(wrong.clone().into_bytes()).is_err(), "{wrong:?}");
            assert!(commit_chunk(&TreeValue::inline(wrong.into_bytes())).is_err());
        }
        assert!(BranchRef::decode(document! { "commit": 5 }.into_bytes()).is_err());
    }
}
