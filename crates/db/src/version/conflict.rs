//! A merge that waits, and its conflicts: data, durable with the branch, outside of every commit.
//!
//! The merge's record is `{theirs, message, author}`; a conflict's `{base, ours, theirs, paths}`, with
//! the documents that there are. The conflict's key ends with that of the document's `_id`; its id is
//! the beginning of a hash over both names, so that it fits a command line.

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, key};
use frond_engine::{Engine, Transaction, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkKind};
use frond_tree::{Bounds, Direction, Value as TreeValue};

use crate::database::{self, Database};
use crate::error::Error;
use crate::reader::{Reader, TreePlace};
use crate::system;
use crate::version::commit_id::{COMMIT_ID_BYTES, letters};
use crate::version::{CommitId, Conflict, history};

/// Bytes of a conflict's id: sixteen letters.
const ID_BYTES: usize = 10;
/// Of a longer key of `_id` only so much stands in the conflict's key, and a hash of all of it: with
/// the names before it, it would be longer than a key may be.
const ID_KEY_BYTES_MAX: usize = 7_000;

/// A merge whose conflicts wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MergeState {
    /// The commit that is merged in.
    pub theirs: CommitId,
    /// The merge commit's, unless another one is given when it is continued.
    pub message: String,
    pub author: String,
}

/// A conflict as it is stored.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StoredConflict {
    pub collection: String,
    /// The key of the document's `_id`.
    pub id_key: Bytes,
    /// Empty if one side removed the document.
    pub paths: Vec<String>,
    pub base: Option<DocumentBuf>,
    pub ours: Option<DocumentBuf>,
    pub theirs: Option<DocumentBuf>,
}

fn damaged(what: &str) -> Error {
    Error::damaged(format!("a stored merge or conflict has no proper field {what}"))
}

impl MergeState {
    /// The record to store.
    pub fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        system::append_bytes(&mut builder, "theirs", system::SUBTYPE_GENERIC, &self.theirs.0);
        builder.append("message", Value::String(&self.message));
        builder.append("author", Value::String(&self.author));
        builder.build().into_bytes()
    }

    /// Reads a stored record.
    pub fn decode(bytes: Bytes) -> Result<MergeState, Error> {
        let record = system::record(bytes)?;
        let theirs = match record.get("theirs") {
            Some(Value::Binary(binary)) => <[u8; COMMIT_ID_BYTES]>::try_from(binary.bytes).ok(),
            _ => None,
        };
        let text = |name: &str| match record.get(name) {
            Some(Value::String(text)) => Ok(text.to_owned()),
            _ => Err(damaged(name)),
        };
        Ok(MergeState {
            theirs: CommitId(theirs.ok_or_else(|| damaged("theirs"))?),
            message: text("message")?,
            author: text("author")?,
        })
    }
}

impl StoredConflict {
    /// The record to store.
    fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        let sides = [("base", &self.base), ("ours", &self.ours), ("theirs", &self.theirs)];
        for (name, document) in sides {
            if let Some(document) = document {
                builder.append(name, Value::from(document));
            }
        }
        builder.begin_array("paths");
        for path in &self.paths {
            builder.push(Value::String(path));
        }
        builder.end();
        builder.build().into_bytes()
    }

    /// Reads a stored record; the key names collection and document.
    fn decode(collection: String, id_key: Bytes, bytes: Bytes) -> Result<StoredConflict, Error> {
        // Three documents, each as deep as one may be, lie one level deeper here: what was
        // validated when it came in is not validated again.
        let record = DocumentBuf::from_validated(bytes);
        let side = |name: &str| {
            let document = record.get(name).and_then(|value| value.as_document());
            document.map(|document: Document<'_>| document.to_buf())
        };
        let stored = record.get("paths").and_then(|value| value.as_array());
        let stored = stored.ok_or_else(|| damaged("paths"))?;
        let mut paths = Vec::new();
        for path in stored.iter() {
            paths.push(path.as_str().ok_or_else(|| damaged("paths"))?.to_owned());
        }
        let (base, ours, theirs) = (side("base"), side("ours"), side("theirs"));
        let mut id_key = id_key;
        if id_key.len() > ID_KEY_BYTES_MAX {
            let any: Option<&DocumentBuf> = base.as_ref().or(ours.as_ref()).or(theirs.as_ref());
            let id = any.and_then(|document| document.get("_id"));
            id_key = key::of_value(id.ok_or_else(|| damaged("_id"))?);
        }
        Ok(StoredConflict { collection, id_key, paths, base, ours, theirs })
    }

    /// The letters that name the conflict.
    pub fn id(&self) -> String {
        let mut named = self.collection.as_bytes().to_vec();
        named.push(0);
        named.extend_from_slice(&self.id_key);
        letters(&Chunk::new(ChunkKind::Blob, &[], &named).hash().0[..ID_BYTES])
    }

    /// What `frondConflicts` tells.
    pub fn public(self) -> Conflict {
        let any = self.ours.as_ref().or(self.theirs.as_ref()).or(self.base.as_ref());
        let document_id = any.and_then(|document| document.get("_id"));
        Conflict {
            id: self.id(),
            kind: crate::version::ConflictKind::Document,
            document_id: document_id.unwrap_or(Value::Null).to_buf(),
            collection: self.collection,
            paths: self.paths,
            base: self.base,
            ours: self.ours,
            theirs: self.theirs,
        }
    }

    /// Where it is stored.
    pub fn key(&self, database: &str, branch: &str) -> Bytes {
        if self.id_key.len() <= ID_KEY_BYTES_MAX {
            return system::conflict_key(database, branch, &self.collection, &self.id_key);
        }
        let mut shortened = self.id_key[..ID_KEY_BYTES_MAX].to_vec();
        shortened.extend_from_slice(&Chunk::new(ChunkKind::Blob, &[], &self.id_key).hash().0);
        system::conflict_key(database, branch, &self.collection, &shortened)
    }
}

/// Lets a merge wait, with its conflicts.
pub(crate) fn store(
    transaction: &mut Transaction,
    database: &str,
    branch: &str,
    merge: &MergeState,
    conflicts: &[StoredConflict],
) -> Result<(), Error> {
    let record = TreeValue::inline(merge.encode());
    transaction.put(TreeId::SYSTEM, system::merge_key(database, branch), record)?;
    for conflict in conflicts {
        let record = TreeValue::inline(conflict.encode());
        transaction.put(TreeId::SYSTEM, conflict.key(database, branch), record)?;
    }
    Ok(())
}

/// Forgets the merge that waits, if one does, and its conflicts.
pub(crate) fn clear(
    engine: &Engine,
    transaction: &mut Transaction,
    database: &str,
    branch: &str,
) -> Result<(), Error> {
    let mut keys = Vec::new();
    {
        let reader = Reader::within(engine, transaction);
        let place = TreePlace::Live(TreeId::SYSTEM);
        let merge = system::merge_key(database, branch);
        if reader.get(place, &merge)?.is_some() {
            keys.push(merge);
        }
        let conflicts = Bounds::prefix(&system::conflicts_prefix(database, branch));
        for entry in reader.range(place, conflicts, Direction::Ascending)? {
            keys.push(entry?.key);
        }
    }
    for key in keys {
        transaction.delete(TreeId::SYSTEM, key)?;
    }
    Ok(())
}

/// The conflicts that wait, in the order of collections and `_id`s; of `collection` or of all.
pub(crate) fn list(
    reader: &Reader<'_>,
    database: &str,
    branch: &str,
    collection: Option<&str>,
) -> Result<Vec<StoredConflict>, Error> {
    let place = TreePlace::Live(TreeId::SYSTEM);
    let all = system::conflicts_prefix(database, branch);
    let prefix = match collection {
        Some(collection) => system::conflict_key(database, branch, collection, &[]),
        None => all.clone(),
    };
    let mut conflicts = Vec::new();
    for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
        let entry = entry?;
        let (collection, id_key) = split_key(&all, &entry.key)?;
        conflicts.push(StoredConflict::decode(collection, id_key, reader.read(&entry.value)?)?);
    }
    Ok(conflicts)
}

/// How many conflicts wait, a collection that has some.
pub(crate) fn counts(
    reader: &Reader<'_>,
    database: &str,
    branch: &str,
) -> Result<Vec<(String, u64)>, Error> {
    let prefix = system::conflicts_prefix(database, branch);
    let place = TreePlace::Live(TreeId::SYSTEM);
    let mut counts: Vec<(String, u64)> = Vec::new();
    for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
        let (collection, _) = split_key(&prefix, &entry?.key)?;
        count(&mut counts, &collection);
    }
    Ok(counts)
}

/// Counts one more for `collection`, whose conflicts follow one another.
pub(crate) fn count(counts: &mut Vec<(String, u64)>, collection: &str) {
    match counts.last_mut() {
        Some((last, count)) if last == collection => *count += 1,
        _ => counts.push((collection.to_owned(), 1)),
    }
}

/// Collection and key of `_id` in a conflict's key.
fn split_key(prefix: &[u8], key: &Bytes) -> Result<(String, Bytes), Error> {
    let rest = key.strip_prefix(prefix).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0);
    let name = end.and_then(|end| std::str::from_utf8(&rest[..end]).ok());
    match (name, end) {
        (Some(name), Some(end)) => Ok((name.to_owned(), key.slice_ref(&rest[end + 1..]))),
        _ => Err(Error::damaged("the key of a conflict names no collection")),
    }
}

/// Says that no merge waits.
pub(crate) fn no_merge(branch: &str) -> Error {
    Error::invalid(Code::IllegalOperation, format!("no merge into {branch} is in progress"))
}

impl Database {
    /// The conflicts that wait, of one collection or all.
    ///
    /// # Errors
    /// `IllegalOperation` if this is a commit; `NamespaceNotFound` if the branch is gone.
    pub fn conflicts(&self, collection: Option<&str>) -> Result<Vec<Conflict>, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let reader = self.reader();
        if database::repository(&reader, name)?.is_none() {
            return Ok(Vec::new());
        }
        history::branch_head(&reader, name, branch)?;
        let stored = list(&reader, name, branch, collection)?;
        Ok(stored.into_iter().map(StoredConflict::public).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::document;

    #[test]
    fn records_come_back() {
        let merge = MergeState {
            theirs: CommitId([7; COMMIT_ID_BYTES]),
            message: "Merge".to_owned(),
            author: "Ada".to_owned(),
        };
        assert_eq!(MergeState::decode(merge.encode()).expect("what was encoded"), merge);
        let conflict = StoredConflict {
            collection: "things".to_owned(),
            id_key: Bytes::from_static(b"\x30\x00\x01"),
            paths: vec!["a.b".to_owned(), "c".to_owned()],
            base: None,
            ours: Some(document! { "_id": 1_i32, "a": 2_i32 }),
            theirs: Some(document! { "_id": 1_i32, "a": 3_i32 }),
        };
        let prefix = system::conflicts_prefix("shop", "main");
        let (collection, id_key) =
            split_key(&prefix, &conflict.key("shop", "main")).expect("a conflict's key");
        let found = StoredConflict::decode(collection, id_key, conflict.encode());
        assert_eq!(found.expect("what was encoded"), conflict);
        assert_eq!(conflict.id().len(), 16);
        assert!(split_key(&prefix, &Bytes::from_static(b"x")).is_err());
        assert!(MergeState::decode(Bytes::from_static(b"x")).is_err());
    }
}
