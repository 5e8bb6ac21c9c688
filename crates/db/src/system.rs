//! What the database keeps in the engine's own tree, [`TreeId::SYSTEM`]: the one place that knows
//! its keys and records.
//!
//! A key is components joined by a zero byte (names hold none), the first one a letter:
//!
//! ```text
//! d/<db>                              the repository                      RepositoryRecord
//! r/<db>/<branch>                     a ref: the branch's HEAD            BranchRef
//! c/<db>/<commit id, 20 bytes>        a reference to the commit's chunk
//! w/<db>/<branch>/<collection>        a working entry                     WorkingEntry
//! l/<db>/<branch>/<sequence>          what moved the ref
//! m/<db>/<branch>                     a merge that waits
//! x/<db>/<branch>/<collection>/<key>  a conflict that waits
//! s/<session id, 16 bytes>[part]      a session's last write       retry::Record
//! y/<db>/<branch>/<conflict's id>     where that conflict lies
//! g/<db>/<tag>                        a tag
//! n/<db>/<remote>                     a remote: where it is
//! o/<db>/<remote>/<branch>            where a remote's branch was when it was last seen
//! p/<db>/<branch>                     what may be done to a branch
//! q/<db>/commit                       when and how commits are made
//! e/<db>/<commit id, 20 bytes>        the commit that took the place of an erased one
//! t/<db>/<sequence>                   a dropped database, to bring it back
//! k                                   what time it was when that was last recorded
//! u/<db>/<user>                       a user                              access
//! a/<db>/<role>                       a role                              access
//! h//                                 what logins of unknown users are answered by
//! ```
//!
//! Commit ids, session ids, sequences and keys of `_id`s may hold zeros, so they stand last.
//!
//! A collection has a working entry only if it was touched on this branch since it was last the
//! same as HEAD's by construction. Without one it is what HEAD's catalog says.

use bytes::Bytes;
use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_engine::{Transaction, TreeId};
use frond_store::{Chunk, ChunkHash};
use frond_tree::{Bounds, Content, TreeFormat, Value as TreeValue};

use crate::commit_id::CommitId;
use crate::definition::{self, IndexSpec};
use crate::error::Error;

const SEPARATOR: u8 = 0;
/// The branch that a new repository begins with.
pub const DEFAULT_BRANCH: &str = "main";
/// Binary of no particular meaning.
pub const SUBTYPE_GENERIC: u8 = 0;
const SUBTYPE_UUID: u8 = 4;

/// What a document of users and roles tells of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AccessKind {
    /// A user.
    User,
    /// A role.
    Role,
    /// What the server needs to know beside them, and tells no client; it belongs to no database.
    Secret,
    /// What clients set for all of the server; it belongs to no database.
    Setting,
}

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

/// How a collection on a branch differs from HEAD's.
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

fn key(kind: u8, parts: &[&[u8]]) -> Bytes {
    let mut key = vec![kind];
    for part in parts {
        key.push(SEPARATOR);
        key.extend_from_slice(part);
    }
    key.into()
}

/// The key of a [`RepositoryRecord`].
pub fn repository_key(database: &str) -> Bytes {
    key(b'd', &[database.as_bytes()])
}

/// What the keys of all repositories begin with.
pub(crate) fn repositories_prefix() -> Bytes {
    key(b'd', &[b""])
}

/// The key of a [`BranchRef`].
pub fn branch_key(database: &str, branch: &str) -> Bytes {
    key(b'r', &[database.as_bytes(), branch.as_bytes()])
}

/// What the keys of a database's branches begin with.
pub fn branches_prefix(database: &str) -> Bytes {
    key(b'r', &[database.as_bytes(), b""])
}

/// The key of a commit's chunk hash; with fewer than 20 bytes of the id, a prefix of such keys.
pub fn commit_key(database: &str, id: &[u8]) -> Bytes {
    key(b'c', &[database.as_bytes(), id])
}

/// The key of a [`WorkingEntry`].
pub fn working_key(database: &str, branch: &str, collection: &str) -> Bytes {
    key(b'w', &[database.as_bytes(), branch.as_bytes(), collection.as_bytes()])
}

/// What the keys of a branch's working entries begin with.
pub fn working_prefix(database: &str, branch: &str) -> Bytes {
    key(b'w', &[database.as_bytes(), branch.as_bytes(), b""])
}

/// What the keys of all working entries of a database, on every branch, begin with.
pub(crate) fn working_of_database_prefix(database: &str) -> Bytes {
    key(b'w', &[database.as_bytes(), b""])
}

/// The key of what moved a branch's ref at `sequence`; they ascend in time.
pub fn reflog_key(database: &str, branch: &str, sequence: u64) -> Bytes {
    key(b'l', &[database.as_bytes(), branch.as_bytes(), &sequence.to_be_bytes()])
}

/// The key of a branch's merge that waits.
pub fn merge_key(database: &str, branch: &str) -> Bytes {
    key(b'm', &[database.as_bytes(), branch.as_bytes()])
}

/// The key of a conflict that waits.
pub fn conflict_key(database: &str, branch: &str, collection: &str, id: &[u8]) -> Bytes {
    key(b'x', &[database.as_bytes(), branch.as_bytes(), collection.as_bytes(), id])
}

/// What the keys of a branch's conflicts begin with.
pub fn conflicts_prefix(database: &str, branch: &str) -> Bytes {
    key(b'x', &[database.as_bytes(), branch.as_bytes(), b""])
}

/// The key of a part of what is remembered of a session's last write; part 0 is its record.
pub(crate) fn session_key(session: [u8; 16], part: i32) -> Bytes {
    let part = part.to_be_bytes();
    key(b's', &[&[&session[..], if part == [0; 4] { &[] } else { &part }].concat()])
}

/// What the keys of all sessions' records begin with.
pub(crate) fn sessions_prefix() -> Bytes {
    key(b's', &[b""])
}

/// What the keys of a branch's reflog begin with.
pub fn reflog_prefix(database: &str, branch: &str) -> Bytes {
    key(b'l', &[database.as_bytes(), branch.as_bytes(), b""])
}

/// What the keys of all reflogs of a database begin with.
pub fn reflogs_prefix(database: &str) -> Bytes {
    key(b'l', &[database.as_bytes(), b""])
}

/// The key of the record that leads from a conflict's id to its key; with no id, what all of a
/// branch's begin with.
pub fn conflict_id_key(database: &str, branch: &str, id: &[u8]) -> Bytes {
    key(b'y', &[database.as_bytes(), branch.as_bytes(), id])
}

/// The key of a tag.
pub fn tag_key(database: &str, tag: &str) -> Bytes {
    key(b'g', &[database.as_bytes(), tag.as_bytes()])
}

/// The key of a remote.
pub fn remote_key(database: &str, remote: &str) -> Bytes {
    key(b'n', &[database.as_bytes(), remote.as_bytes()])
}

/// The key of where a remote's branch was; `name` is `origin/main`.
pub fn tracking_key(database: &str, name: &str) -> Bytes {
    key(b'o', &[database.as_bytes(), name.as_bytes()])
}

/// The key of a branch's policy.
pub fn policy_key(database: &str, branch: &str) -> Bytes {
    key(b'p', &[database.as_bytes(), branch.as_bytes()])
}

/// What the keys of the policies of all branches begin with.
pub fn all_policies_prefix() -> Bytes {
    key(b'p', &[b""])
}

/// Database and branch of a policy's key.
///
/// # Errors
/// `Damaged` if the key has another prefix or other parts.
pub fn database_and_branch(prefix: &[u8], key: &[u8]) -> Result<(String, String), Error> {
    let damaged = || Error::damaged("a key of the system tree names no database and branch");
    let rest = key.strip_prefix(prefix).and_then(|rest| std::str::from_utf8(rest).ok());
    let (database, branch) = rest.and_then(|rest| rest.split_once('\0')).ok_or_else(damaged)?;
    Ok((database.to_owned(), branch.to_owned()))
}

/// The key of the record that says when and how commits of a database are made.
pub fn commit_policy_key(database: &str) -> Bytes {
    key(b'q', &[database.as_bytes(), b"commit"])
}

/// What the keys of all such records begin with.
pub fn all_commit_policies_prefix() -> Bytes {
    key(b'q', &[b""])
}

/// The key under which the commit stands that took the place of an erased one; with no id, what
/// all of a database's begin with.
pub fn erased_key(database: &str, id: &[u8]) -> Bytes {
    key(b'e', &[database.as_bytes(), id])
}

/// The key of a database that was dropped at `sequence`.
pub fn dropped_key(database: &str, sequence: u64) -> Bytes {
    key(b't', &[database.as_bytes(), &sequence.to_be_bytes()])
}

/// What the keys of the drops of a database begin with.
pub fn dropped_prefix(database: &str) -> Bytes {
    key(b't', &[database.as_bytes(), b""])
}

/// What the keys of all drops begin with.
pub fn all_dropped_prefix() -> Bytes {
    key(b't', &[b""])
}

/// The key of what time it was.
pub(crate) fn clock_key() -> Bytes {
    key(b'k', &[])
}

/// The key of a user, a role, or (with empty names) of a secret.
pub(crate) fn access_key(kind: AccessKind, database: &str, name: &str) -> Bytes {
    key(access_letter(kind), &[database.as_bytes(), name.as_bytes()])
}

/// What the keys of all users, or all roles, begin with.
pub(crate) fn access_prefix(kind: AccessKind) -> Bytes {
    key(access_letter(kind), &[b""])
}

fn access_letter(kind: AccessKind) -> u8 {
    match kind {
        AccessKind::User => b'u',
        AccessKind::Role => b'a',
        AccessKind::Secret => b'h',
        AccessKind::Setting => b'v',
    }
}

/// Cuts what follows `prefix` in a key that ends with a name and a Sequence.
///
/// # Errors
/// `Damaged` if the key has another prefix or other parts.
pub fn name_and_sequence(prefix: &[u8], key: &[u8]) -> Result<(String, u64), Error> {
    let damaged = || Error::damaged("a key of the system tree has no name and Sequence");
    let rest = key.strip_prefix(prefix).ok_or_else(damaged)?;
    let (name, sequence) = rest.split_last_chunk::<8>().ok_or_else(damaged)?;
    let name = name.strip_suffix(&[SEPARATOR]).ok_or_else(damaged)?;
    let name = std::str::from_utf8(name).map_err(|_| damaged())?;
    Ok((name.to_owned(), u64::from_be_bytes(*sequence)))
}

/// The Sequence that ends a key.
///
/// # Errors
/// `Damaged` if the key is shorter.
pub fn sequence_at_end(key: &[u8]) -> Result<u64, Error> {
    let sequence = key.last_chunk::<8>();
    let sequence = sequence.ok_or_else(|| Error::damaged("a key ends with no Sequence"))?;
    Ok(u64::from_be_bytes(*sequence))
}

/// Whether a transaction has written a record by which databases and collections are found: any but
/// those of sessions.
pub(crate) fn changes_catalog(transaction: &Transaction) -> bool {
    let before = Bounds { start: None, end: Some(Bytes::from_static(b"s\0")) };
    let after = Bounds { start: Some(Bytes::from_static(b"s\x01")), end: None };
    transaction.wrote(TreeId::SYSTEM, &before) || transaction.wrote(TreeId::SYSTEM, &after)
}

/// Whether a key is that of a session's record.
pub(crate) fn is_of_session(key: &[u8]) -> bool {
    key.starts_with(b"s\0")
}

/// Whether a key is that of a user, a role, or what the server needs to know beside them.
pub(crate) fn is_of_access(key: &[u8]) -> bool {
    [b"u\0", b"a\0", b"h\0"].iter().any(|kind| key.starts_with(*kind))
}

/// What the keys of everything else that a database has begin with: refs, commits, working
/// entries, reflog, merges, conflicts and their ids, tags, remotes and what is known of them,
/// policies, what became of erased commits. What would bring back a database of that name that was
/// dropped is not its own.
pub(crate) fn database_prefixes(database: &str) -> [Bytes; 13] {
    [b'r', b'c', b'w', b'l', b'm', b'x', b'y', b'g', b'n', b'o', b'p', b'q', b'e']
        .map(|kind| key(kind, &[database.as_bytes(), b""]))
}

/// The value of a record that refers to chunks: itself a chunk, so that who follows references
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

/// The name that ends a key which begins with `prefix`.
///
/// # Errors
/// `Damaged` if it begins otherwise, or the name isn't UTF-8.
pub fn name_after(prefix: &[u8], key: &[u8]) -> Result<String, Error> {
    let name = key.strip_prefix(prefix).and_then(|name| std::str::from_utf8(name).ok());
    name.map(str::to_owned).ok_or_else(|| Error::damaged("a key of the system tree has no name"))
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
    /// How the repository's trees are made.
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

/// The value that leads from a commit's id to its chunk: a reference to it, so that who follows
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

    #[test]
    fn keys_of_one_database_or_branch_share_no_prefix_with_anothers() {
        let prefix = working_prefix("shop", "main");
        assert!(working_key("shop", "main", "things").starts_with(&prefix));
        assert!(!working_key("shop", "main2", "things").starts_with(&prefix));
        assert!(!working_key("shop2", "main", "things").starts_with(&prefix));
        assert_eq!(
            name_after(&prefix, &working_key("shop", "main", "a.b")).expect("a name"),
            "a.b"
        );
        let prefixes = database_prefixes("shop");
        let keys = [
            branch_key("shop", "x"),
            commit_key("shop", &[0; 20]),
            working_key("shop", "x", "y"),
            reflog_key("shop", "x", 7),
            merge_key("shop", "x"),
            conflict_key("shop", "x", "y", &[0, 1]),
            conflict_id_key("shop", "x", &[0; 10]),
            tag_key("shop", "v1"),
            remote_key("shop", "origin"),
            tracking_key("shop", "origin/main"),
            policy_key("shop", "main"),
            commit_policy_key("shop"),
            erased_key("shop", &[0; 20]),
        ];
        for (key, prefix) in keys.iter().zip(&prefixes) {
            assert!(key.starts_with(prefix));
        }
    }
}
