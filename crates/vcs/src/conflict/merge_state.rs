//! The record of a merge that waits.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_db::inside::commit_id::COMMIT_ID_BYTES;
use frond_db::inside::merge_rules::{MergeRules, MergeSide};
use frond_db::inside::{CommitId, Error, system};
use frond_doc::{Document, DocumentBuilder, Value};
use frond_engine::{Transaction, TreeId};
use frond_store::ChunkHash;

/// The kind of a merge that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MergeKind {
    /// A commit of two parents.
    Merge,
    /// A commit of one parent with all that the other side did.
    Squash,
    /// A commit of one parent with what one commit did.
    Pick,
    /// With the opposite of it.
    Revert,
    /// Several such commits, on top of another version.
    Rebase,
}

impl MergeKind {
    const ALL: [MergeKind; 5] = [
        MergeKind::Merge,
        MergeKind::Squash,
        MergeKind::Pick,
        MergeKind::Revert,
        MergeKind::Rebase,
    ];

    fn name(self) -> &'static str {
        match self {
            MergeKind::Merge => "merge",
            MergeKind::Squash => "squash",
            MergeKind::Pick => "pick",
            MergeKind::Revert => "revert",
            MergeKind::Rebase => "rebase",
        }
    }

    /// Returns the verb of the client's request.
    pub fn verb(self) -> &'static str {
        if self == MergeKind::Pick { "cherry-pick" } else { self.name() }
    }

    /// Whether commits are done again one by one, on top of a tip.
    pub fn is_replay(self) -> bool {
        matches!(self, MergeKind::Pick | MergeKind::Revert | MergeKind::Rebase)
    }
}

/// A merge whose conflicts wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MergeState {
    /// The commit that is merged in.
    pub theirs: CommitId,
    /// The merge commit's, unless another one is given when it is continued.
    pub message: String,
    pub author: String,
    pub kind: MergeKind,
    /// The parent with which a merge commit is compared in a replay.
    pub parent: Option<u32>,
    /// The commit on which the next one of a replay goes.
    pub tip: Option<CommitId>,
    /// The commits of a replay that come after this one.
    pub rest: Vec<CommitId>,
    /// The text that the reflog will have of a replay.
    pub why: String,
    /// The catalog of the working state to which an abort goes back.
    pub before: ChunkHash,
    /// The merged catalog, as ours has it where both sides conflict and as theirs has it: with
    /// them, what was written since is distinguished from what the merge did. None if there can't
    /// be both.
    pub merged: Vec<ChunkHash>,
    /// The rules by which documents were merged.
    pub rules: MergeRules,
    /// Conflicts of the schema that were decided, by id; `Some` while they are.
    pub decisions: Option<BTreeMap<String, MergeSide>>,
    /// Conflicts that are left.
    pub remaining: u64,
}

impl MergeState {
    /// The catalogs that it needs.
    pub fn catalogs(&self) -> impl Iterator<Item = ChunkHash> {
        [self.before].into_iter().chain(self.merged.iter().copied())
    }

    /// The commits that it needs.
    pub fn commits(&self) -> impl Iterator<Item = CommitId> {
        self.rest.iter().copied().chain(self.tip).chain([self.theirs])
    }

    /// The record to store.
    pub fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        system::append_bytes(&mut builder, "theirs", system::SUBTYPE_GENERIC, &self.theirs.0);
        builder.append("message", Value::String(&self.message));
        builder.append("author", Value::String(&self.author));
        builder.append("kind", Value::String(self.kind.name()));
        if let Some(parent) = self.parent {
            builder.append("parent", Value::Int64(i64::from(parent)));
        }
        if let Some(tip) = &self.tip {
            system::append_bytes(&mut builder, "tip", system::SUBTYPE_GENERIC, &tip.0);
        }
        if self.kind.is_replay() {
            let rest: Vec<u8> = self.rest.iter().flat_map(|id| id.0).collect();
            system::append_bytes(&mut builder, "rest", system::SUBTYPE_GENERIC, &rest);
            builder.append("why", Value::String(&self.why));
        }
        let catalogs: Vec<u8> = self.catalogs().flat_map(|catalog| catalog.0).collect();
        system::append_bytes(&mut builder, "catalogs", system::SUBTYPE_GENERIC, &catalogs);
        builder.append("rules", Value::from(&self.rules.to_document()));
        if let Some(decisions) = &self.decisions {
            builder.begin_document("decisions");
            for (id, side) in decisions {
                builder.append(id, Value::String(side.name()));
            }
            builder.end();
        }
        builder.append("remaining", Value::Int64(self.remaining as i64));
        builder.build().into_bytes()
    }

    /// Reads a stored record.
    ///
    /// # Errors
    /// `Damaged` if a field is missing or of another type.
    pub fn decode(bytes: Bytes) -> Result<MergeState, Error> {
        let record = system::record(bytes)?;
        let id = |name: &str| match record.get(name) {
            Some(Value::Binary(binary)) => {
                <[u8; COMMIT_ID_BYTES]>::try_from(binary.bytes).ok().map(CommitId)
            }
            _ => None,
        };
        let Some(Value::Binary(catalogs)) = record.get("catalogs") else {
            return Err(damaged("catalogs"));
        };
        let (catalogs, left) = catalogs.bytes.as_chunks::<32>();
        let Some((before, merged)) = catalogs.split_first().filter(|_| left.is_empty()) else {
            return Err(damaged("catalogs"));
        };
        let text = |name: &str| match record.get(name) {
            Some(Value::String(text)) => Ok(text.to_owned()),
            _ => Err(damaged(name)),
        };
        let kind = text("kind")?;
        let kind = MergeKind::ALL.into_iter().find(|known| known.name() == kind);
        let kind = kind.ok_or_else(|| damaged("kind"))?;
        let parent = record.get("parent").and_then(|parent| parent.as_integer());
        let Some(Value::Document(rules)) = record.get("rules") else {
            return Err(damaged("rules"));
        };
        let remaining = record.get("remaining").and_then(|value| value.as_integer());
        Ok(MergeState {
            theirs: id("theirs").ok_or_else(|| damaged("theirs"))?,
            message: text("message")?,
            author: text("author")?,
            kind,
            parent: parent.and_then(|parent| u32::try_from(parent).ok()),
            tip: id("tip"),
            rest: rest_of(record.view())?,
            why: if kind.is_replay() { text("why")? } else { String::new() },
            before: ChunkHash(*before),
            merged: merged.iter().copied().map(ChunkHash).collect(),
            rules: MergeRules::from_document(rules)?,
            decisions: decisions_of(record.view())?,
            remaining: remaining.ok_or_else(|| damaged("remaining"))? as u64,
        })
    }

    /// Writes the record.
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn put(
        &self,
        transaction: &mut Transaction,
        database: &str,
        branch: &str,
    ) -> Result<(), Error> {
        let catalogs: Vec<ChunkHash> = self.catalogs().collect();
        let record = system::referring_value(transaction, &catalogs, &self.encode());
        Ok(transaction.put(TreeId::SYSTEM, system::merge_key(database, branch), record)?)
    }
}

/// The commits that come after the one at which a replay waits.
fn rest_of(record: Document<'_>) -> Result<Vec<CommitId>, Error> {
    let Some(Value::Binary(binary)) = record.get("rest") else { return Ok(Vec::new()) };
    let (ids, left) = binary.bytes.as_chunks::<COMMIT_ID_BYTES>();
    if !left.is_empty() {
        return Err(damaged("rest"));
    }
    Ok(ids.iter().copied().map(CommitId).collect())
}

/// Conflicts of the schema that were decided.
fn decisions_of(record: Document<'_>) -> Result<Option<BTreeMap<String, MergeSide>>, Error> {
    let Some(Value::Document(decisions)) = record.get("decisions") else { return Ok(None) };
    let decision = |(id, side): (&str, Value<'_>)| {
        let side = side.as_str().ok_or_else(|| damaged("decisions"))?;
        Ok::<_, Error>((id.to_owned(), MergeSide::parse(side)?))
    };
    decisions.iter().map(decision).collect::<Result<_, _>>().map(Some)
}

/// The error of a record without a field.
pub(super) fn damaged(what: &str) -> Error {
    Error::damaged(format!("a stored merge or conflict has no proper field {what}"))
}
