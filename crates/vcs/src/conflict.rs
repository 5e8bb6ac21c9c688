//! A merge that waits, and its conflicts: data, durable with the branch, outside of every commit.
//!
//! The merge's record says what is merged, by which rules, and how many conflicts are left; a
//! conflict's has the three sides that there are. The conflict's key ends with that of the
//! document's `_id`; its id is the beginning of a hash over both names, so that it fits a command
//! line, and a record of its own leads from the id to the key, so that deciding one conflict
//! doesn't read all.
//!
//! *Two phases*: a collection dropped here and changed there, options or an index that both changed
//! are conflicts of the *schema*. While there are such nothing is merged: they are decided first,
//! then the merge runs again with these decisions, and may find conflicts of documents. So their
//! keys, which begin with a byte that no key of an `_id` has, never stand beside those.

mod merge_state;

use bytes::Bytes;
use frond_db::inside::commit_id::{letters, prefix_range};
use frond_db::inside::{Error, Reader, TreeRef, refs, system};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, key};
use frond_engine::{Engine, Transaction, TreeId};
use frond_query::Code;
use frond_store::{Chunk, ChunkKind};
use frond_tree::{Bounds, Direction, Value as TreeValue};
pub(crate) use merge_state::{MergeKind, MergeState};

use crate::conflict::merge_state::damaged;
use crate::repository::Repository;
use crate::three_way::ThreeWay;
use crate::{Conflict, ConflictKind, history};

/// Bytes of a conflict's id: sixteen letters.
const ID_BYTES: usize = 10;
/// The number of bytes of a longer key of `_id` that stand in the conflict's key, beside a hash of
/// all of it: with the names before it, it would be longer than a key may be.
const ID_KEY_BYTES_MAX: usize = 7_000;
/// The first byte of the key of a schema conflict: no key of a value has it.
const SCHEMA_KEY: u8 = 0xff;

/// A conflict as it is stored.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StoredConflict {
    pub collection: String,
    pub kind: ConflictKind,
    /// The key of the document's `_id`; of the schema, what names the collection's part.
    pub id_key: Bytes,
    /// Empty if one side removed the document, or it is in conflict as a whole.
    pub paths: Vec<String>,
    pub base: Option<DocumentBuf>,
    pub ours: Option<DocumentBuf>,
    pub theirs: Option<DocumentBuf>,
}

impl StoredConflict {
    /// A conflict of a collection's own, as opposed to its documents'; `name` is an index's.
    pub fn of_schema(
        collection: &str,
        kind: ConflictKind,
        name: &str,
        sides: ThreeWay<Option<DocumentBuf>>,
    ) -> StoredConflict {
        let ThreeWay { base, ours, theirs } = sides;
        let mut id_key = vec![SCHEMA_KEY, kind as u8];
        id_key.extend_from_slice(name.as_bytes());
        let (collection, id_key) = (collection.to_owned(), id_key.into());
        StoredConflict { collection, kind, id_key, paths: Vec::new(), base, ours, theirs }
    }

    /// The record to store.
    pub fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        let sides = [("base", &self.base), ("ours", &self.ours), ("theirs", &self.theirs)];
        for (name, document) in sides {
            if let Some(document) = document {
                builder.append(name, Value::from(document));
            }
        }
        builder.append("kind", Value::String(self.kind.name()));
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
        let kind = record.get("kind").and_then(|kind| kind.as_str());
        let kind = ConflictKind::ALL.into_iter().find(|known| Some(known.name()) == kind);
        let kind = kind.ok_or_else(|| damaged("kind"))?;
        let (base, ours, theirs) = (side("base"), side("ours"), side("theirs"));
        let mut id_key = id_key;
        if id_key.len() > ID_KEY_BYTES_MAX {
            let any: Option<&DocumentBuf> = base.as_ref().or(ours.as_ref()).or(theirs.as_ref());
            let id = any.and_then(|document| document.get("_id"));
            id_key = key::of_id(id.ok_or_else(|| damaged("_id"))?);
        }
        Ok(StoredConflict { collection, kind, id_key, paths, base, ours, theirs })
    }

    /// The bytes whose letters name the conflict.
    fn id_bytes(&self) -> [u8; ID_BYTES] {
        let mut named = self.collection.as_bytes().to_vec();
        named.push(0);
        named.extend_from_slice(&self.id_key);
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&Chunk::new(ChunkKind::Blob, &[], &named).hash().0[..ID_BYTES]);
        id
    }

    /// The letters that name the conflict.
    pub fn id(&self) -> String {
        letters(&self.id_bytes())
    }

    /// Returns the conflict in the form of `frondConflicts`.
    pub fn public(self) -> Conflict {
        let any = self.ours.as_ref().or(self.theirs.as_ref()).or(self.base.as_ref());
        let name = self.id_key.get(2..).unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        let document_id = match self.kind {
            kind if kind.is_document() => any.and_then(|document| document.get("_id")),
            ConflictKind::Index => Some(Value::String(&name)),
            _ => None,
        };
        Conflict {
            id: self.id(),
            kind: self.kind,
            document_id: document_id.unwrap_or(Value::Null).to_buf(),
            collection: self.collection,
            paths: self.paths,
            base: self.base,
            ours: self.ours,
            theirs: self.theirs,
        }
    }

    /// Returns where it is stored.
    pub fn key(&self, database: &str, branch: &str) -> Bytes {
        if self.id_key.len() <= ID_KEY_BYTES_MAX {
            return system::conflict_key(database, branch, &self.collection, &self.id_key);
        }
        let mut shortened = self.id_key[..ID_KEY_BYTES_MAX].to_vec();
        shortened.extend_from_slice(&Chunk::new(ChunkKind::Blob, &[], &self.id_key).hash().0);
        system::conflict_key(database, branch, &self.collection, &shortened)
    }

    /// Removes it.
    ///
    /// # Errors
    /// As the transaction's `delete`.
    pub fn remove(
        &self,
        transaction: &mut Transaction,
        database: &str,
        branch: &str,
    ) -> Result<(), Error> {
        transaction.delete(TreeId::SYSTEM, self.key(database, branch))?;
        let id = system::conflict_id_key(database, branch, &self.id_bytes());
        Ok(transaction.delete(TreeId::SYSTEM, id)?)
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
    merge.put(transaction, database, branch)?;
    for (collection, _) in count_all(conflicts) {
        // Conflicts go by its name: renaming it meanwhile must not pass unseen, also where the
        // merge leaves the collection as HEAD has it.
        let entry = system::working_key(database, branch, &collection);
        transaction.validate(TreeId::SYSTEM, entry);
    }
    for conflict in conflicts {
        let (key, record) = (conflict.key(database, branch), TreeValue::inline(conflict.encode()));
        let id = system::conflict_id_key(database, branch, &conflict.id_bytes());
        transaction.put(TreeId::SYSTEM, id, TreeValue::inline(key.clone()))?;
        transaction.put(TreeId::SYSTEM, key, record)?;
    }
    Ok(())
}

/// The conflict that some letters name.
pub(crate) fn by_id(
    reader: &Reader<'_>,
    database: &str,
    branch: &str,
    id: &str,
) -> Result<Option<StoredConflict>, Error> {
    let place = TreeRef::Live(TreeId::SYSTEM);
    if id.len() != ID_BYTES * 8 / 5 {
        return Ok(None);
    }
    let Some((first, _)) = prefix_range(id) else { return Ok(None) };
    let record = system::conflict_id_key(database, branch, &first.0[..ID_BYTES]);
    let Some(key) = reader.get_bytes(place, &record)? else { return Ok(None) };
    let Some(bytes) = reader.get_bytes(place, &key)? else {
        return Err(Error::damaged(format!("conflict {id} leads nowhere")));
    };
    let (collection, id_key) = split_key(&system::conflicts_prefix(database, branch), &key)?;
    StoredConflict::decode(collection, id_key, bytes).map(Some)
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
        let place = TreeRef::Live(TreeId::SYSTEM);
        let merge = system::merge_key(database, branch);
        if reader.get(place, &merge)?.is_some() {
            keys.push(merge);
        }
        let conflicts = system::conflicts_prefix(database, branch);
        let ids = system::conflict_id_key(database, branch, &[]);
        for prefix in [conflicts, ids] {
            for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
                keys.push(entry?.key);
            }
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
    let place = TreeRef::Live(TreeId::SYSTEM);
    let all = system::conflicts_prefix(database, branch);
    let prefix = match collection {
        Some(collection) => system::conflict_key(database, branch, collection, &[]),
        None => all.clone(),
    };
    let mut conflicts = Vec::new();
    for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
        let entry = entry?;
        conflicts.push(read(&all, &entry.key, reader.read(&entry.value)?)?);
    }
    Ok(conflicts)
}

/// The beginning of a conflict's key that names its database and branch.
pub(crate) fn prefix_of(key: &[u8]) -> &[u8] {
    let ends = key.iter().enumerate().filter(|(_, byte)| **byte == 0);
    ends.map(|(position, _)| &key[..=position]).nth(2).unwrap_or_default()
}

/// Reads what is stored under a key that begins with `prefix`, that of a branch's conflicts.
pub(crate) fn read(prefix: &[u8], key: &Bytes, record: Bytes) -> Result<StoredConflict, Error> {
    let (collection, id_key) = split_key(prefix, key)?;
    StoredConflict::decode(collection, id_key, record)
}

/// Returns how many conflicts wait, a collection that has some.
pub(crate) fn counts(
    reader: &Reader<'_>,
    database: &str,
    branch: &str,
) -> Result<Vec<(String, u64)>, Error> {
    let prefix = system::conflicts_prefix(database, branch);
    let place = TreeRef::Live(TreeId::SYSTEM);
    let mut counts: Vec<(String, u64)> = Vec::new();
    for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
        let (collection, _) = split_key(&prefix, &entry?.key)?;
        count(&mut counts, &collection);
    }
    Ok(counts)
}

/// Returns how many conflicts there are, a collection that has some.
pub(crate) fn count_all(conflicts: &[StoredConflict]) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    for conflict in conflicts {
        count(&mut counts, &conflict.collection);
    }
    counts
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
    let message = format!("no merge, pick, revert or rebase of {branch} is in progress");
    Error::invalid(Code::IllegalOperation, message)
}

impl Repository {
    /// The conflicts that wait, of one collection or all.
    ///
    /// # Errors
    /// `IllegalOperation` if this is a commit; `NamespaceNotFound` if the branch is gone.
    pub fn conflicts(&self, collection: Option<&str>) -> Result<Vec<Conflict>, Error> {
        let branch = self.working_branch()?;
        let name = self.repository_name();
        let reader = self.reader();
        if refs::repository(&reader, name)?.is_none() {
            return Ok(Vec::new());
        }
        history::branch_head(&reader, name, branch)?;
        let stored = list(&reader, name, branch, collection)?;
        Ok(stored.into_iter().map(StoredConflict::public).collect())
    }
}

/// Refuses to go on while conflicts are left.
///
/// # Errors
/// `IllegalOperation`, with how many there are in each collection.
pub(crate) fn refuse_left(counts: &[(String, u64)]) -> Result<(), Error> {
    if counts.is_empty() {
        return Ok(());
    }
    let left: Vec<String> =
        counts.iter().map(|(collection, count)| format!("{collection}: {count}")).collect();
    let message = format!("conflicts are left to resolve ({})", left.join(", "));
    Err(Error::invalid(Code::IllegalOperation, message))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use frond_db::inside::CommitId;
    use frond_db::inside::commit_id::COMMIT_ID_BYTES;
    use frond_db::inside::merge_rules::{MergeRules, MergeSide};
    use frond_doc::document;
    use frond_store::ChunkHash;

    use super::*;

    #[test]
    fn records_come_back() {
        let merge = MergeState {
            theirs: CommitId([7; COMMIT_ID_BYTES]),
            message: "Merge".to_owned(),
            author: "Ada".to_owned(),
            kind: MergeKind::Rebase,
            parent: Some(2),
            tip: Some(CommitId([8; COMMIT_ID_BYTES])),
            rest: vec![CommitId([9; COMMIT_ID_BYTES]), CommitId([1; COMMIT_ID_BYTES])],
            why: "rebase".to_owned(),
            before: ChunkHash([3; 32]),
            merged: vec![ChunkHash([4; 32]), ChunkHash([5; 32])],
            rules: MergeRules::default(),
            decisions: Some(BTreeMap::from([("x".to_owned(), MergeSide::Theirs)])),
            remaining: 7,
        };
        assert_eq!(MergeState::decode(merge.encode()).expect("what was encoded"), merge);
        let conflict = StoredConflict {
            collection: "things".to_owned(),
            kind: ConflictKind::Document,
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
