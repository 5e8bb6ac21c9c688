//! The reflog: each change of a branch's ref is remembered, so that it can be undone; and each that
//! moved or deleted a tag, under the tag's name.
//!
//! A record is `{from, to, why, time}`; `from` is absent before the first commit, `to` when the
//! branch was deleted. Its key ends with the Sequence of its transaction's snapshot. Two changes of
//! one ref never share that: the second would not have seen the first, and conflicts.
//!
//! The state that a change took away stays with its record, as a reference to chunks, so that no
//! collection of garbage takes it as long as the record is there:
//! - `working`: the catalog of the working state that was replaced (a hard reset, a merge, a
//!   deleted branch). Without it the change left the working state as it was. A merge that waited
//!   in it is kept beside it (`merge`).
//! - `entry`: the catalog entry of a collection that was dropped, and the order of a capped one;
//!   the ref stays where it is.
//! - `left`: the catalog of the working state that came in its place, where that isn't the one of
//!   the commit which the ref names then: of a restored collection, or of a moment.
//! - `tag`: the tag as it was, by value.
//! - `policy`: the policy of a deleted branch, by value.
//!
//! A change that undid another one names it (`undid`). One that its branch made under another name
//! has the Sequence of the renaming (`arrived`): it comes after all that an earlier branch of the
//! present name did, which may have been deleted later than the change was made.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bytes::Bytes;
use frond_db::inside::{CommitId, Error, Reader, TreeRef, refs, system};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_engine::{Engine, Transaction, TreeId};
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::{Bounds, Direction, Entry, Tree};

use crate::repository::Repository;
use crate::{BranchPolicy, TagInfo};

/// The reason why a ref changes, and what the change takes away.
#[derive(Clone, Copy)]
pub(crate) struct RefWhy<'a> {
    /// `commit: first`, in git's words.
    pub why: &'a str,
    pub time_millis: i64,
    pub lost: Lost<'a>,
    /// The working state that it leaves, if that isn't the one of its commit.
    pub left: Option<Tree>,
    /// The policy that the branch loses with it.
    pub policy: Option<BranchPolicy>,
    /// The change that this one undoes.
    pub undid: Option<u64>,
}

/// The state that a change takes away.
#[derive(Clone, Copy)]
pub(crate) enum Lost<'a> {
    /// Nothing that isn't in a commit.
    Nothing,
    /// The working state, which was this catalog.
    Working(Tree),
    /// The working state, and the merge that waited in it.
    Waiting(Tree, &'a RememberedMerge),
    /// A collection, whose entry lies in this chunk; of a capped one, the tree of its order.
    Collection(&'a str, ChunkHash, Option<ChunkHash>),
    /// A tag, which was this.
    Tag(&'a TagInfo),
}

/// A merge that waited.
#[derive(Clone, Debug)]
pub(crate) struct RememberedMerge {
    /// The merge's.
    pub record: Bytes,
    /// The tree of its conflicts, and what else it needs.
    pub references: Vec<ChunkHash>,
}

impl<'a> Lost<'a> {
    /// The working state, and the merge that waited in it, if one did.
    pub fn working(working: Tree, merge: Option<&'a RememberedMerge>) -> Lost<'a> {
        merge.map_or(Lost::Working(working), |merge| Lost::Waiting(working, merge))
    }
}

/// A change of a ref, to be remembered.
pub(crate) struct RefChange<'a> {
    pub from: Option<CommitId>,
    pub to: Option<CommitId>,
    pub why: RefWhy<'a>,
}

/// A change that was remembered.
#[derive(Clone, Debug)]
pub struct RefChangeInfo {
    /// Names it on its branch; rises in time, but from a branch to one that took its name.
    pub change: u64,
    /// The branch, or the tag.
    pub branch: String,
    /// HEAD before; `None` before the first commit, or where the branch began.
    pub from: Option<CommitId>,
    /// HEAD after; `None` if the branch or the tag was deleted.
    pub to: Option<CommitId>,
    /// The reason in words: `commit: first`.
    pub why: String,
    /// Milliseconds since 1970.
    pub time_millis: i64,
    /// The collection that it dropped.
    pub collection: Option<String>,
    /// The tag that it moved or deleted, as it was before.
    pub tag: Option<TagInfo>,
    /// The change that it undid.
    pub undid: Option<u64>,
    /// Whether it replaced the working state.
    pub replaced_working: bool,
    /// The catalog or catalog entry that it took away.
    pub(crate) lost: Option<ChunkHash>,
    /// The catalog of the working state that it left, if that isn't the one of `to`.
    pub(crate) left: Option<ChunkHash>,
    /// The merge that waited in the working state that it took away.
    pub(crate) merge: Option<RememberedMerge>,
    /// The order of the capped collection that it dropped.
    pub(crate) order: Option<ChunkHash>,
    /// The policy of the branch that it deleted.
    pub(crate) policy: Option<BranchPolicy>,
    /// When the branch got its name, if the change was made before that.
    arrived: Option<u64>,
}

const ARRIVED: &str = "arrived";
const UNDID: &str = "undid";

/// The reflog's message for deleting a branch.
pub(crate) const DELETED: &str = "branch: deleted";

/// The beginning of the reflog's message for a branch that came from another line.
pub(crate) const MOVED: &str = "move: ";

impl RefChangeInfo {
    /// Its place among what was done to all branches that ever had the name.
    fn position(&self) -> (u64, u64) {
        (self.arrived.unwrap_or(self.change), self.change)
    }

    /// Whether the branch came from another line. Changes made there aren't remembered here, so
    /// nothing before can be undone.
    pub(crate) fn is_move(&self) -> bool {
        self.why.starts_with(MOVED)
    }

    /// Whether the branch was deleted.
    pub(crate) fn is_deletion(&self) -> bool {
        self.why == DELETED
    }

    /// Whether a merge that waited was given up.
    pub(crate) fn is_abort(&self) -> bool {
        self.merge.is_some() && self.from == self.to && !self.why.starts_with("reset")
    }
}

impl<'a> RefWhy<'a> {
    /// A change that takes nothing away.
    pub fn plain(why: &'a str, time_millis: i64) -> RefWhy<'a> {
        RefWhy { why, time_millis, lost: Lost::Nothing, left: None, policy: None, undid: None }
    }

    /// A change that replaces the working state, which was `working`.
    pub fn replacing(why: &'a str, time_millis: i64, working: Tree) -> RefWhy<'a> {
        RefWhy { lost: Lost::Working(working), ..RefWhy::plain(why, time_millis) }
    }
}

impl RefChange<'_> {
    /// Remembers the change with the transaction that makes it.
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn log(
        &self,
        transaction: &mut Transaction,
        database: &str,
        branch: &str,
    ) -> Result<(), Error> {
        let sequence = transaction.snapshot().sequence().0;
        let key = system::reflog_key(database, branch, sequence);
        let mut builder = DocumentBuilder::new();
        for (name, id) in [("from", self.from), ("to", self.to)] {
            if let Some(id) = id {
                system::append_bytes(&mut builder, name, system::SUBTYPE_GENERIC, &id.0);
            }
        }
        builder.append("why", Value::String(self.why.why));
        builder.append("time", Value::DateTime(self.why.time_millis));
        let mut references = Vec::new();
        match self.why.lost {
            Lost::Nothing => {}
            Lost::Working(catalog) => {
                builder.append("working", Value::Boolean(true));
                references.push(catalog.root);
            }
            Lost::Waiting(catalog, merge) => {
                builder.append("working", Value::Boolean(true));
                let record = DocumentBuf::from_validated(merge.record.clone());
                builder.append("merge", Value::from(&record));
                references.push(catalog.root);
                references.extend(&merge.references);
            }
            Lost::Collection(name, entry, order) => {
                builder.append("collection", Value::String(name));
                references.push(entry);
                references.extend(order);
            }
            Lost::Tag(tag) => {
                builder.append("tag", Value::from(&tag.to_record()));
            }
        }
        if let Some(left) = self.why.left {
            builder.append("left", Value::Boolean(true));
            references.push(left.root);
        }
        if let Some(policy) = &self.why.policy {
            let record = DocumentBuf::from_validated(policy.encode());
            builder.append("policy", Value::from(&record));
        }
        if let Some(undid) = self.why.undid {
            builder.append(UNDID, Value::Int64(undid as i64));
        }
        let record = builder.build();
        let value = system::referring_value(transaction, &references, record.as_bytes());
        Ok(transaction.put(TreeId::SYSTEM, key, value)?)
    }
}

/// The changes whose keys begin with `prefix`, that of a whole database's reflogs; newest first on
/// each branch.
fn read(reader: &Reader<'_>, database: &str, bounds: Bounds) -> Result<Vec<RefChangeInfo>, Error> {
    let prefix = system::reflogs_prefix(database);
    let place = TreeRef::Live(TreeId::SYSTEM);
    let mut changes = Vec::new();
    for entry in reader.range(place, bounds, Direction::Descending)? {
        changes.push(decode(reader, &prefix, &entry?)?);
    }
    Ok(changes)
}

fn decode(reader: &Reader<'_>, prefix: &[u8], entry: &Entry) -> Result<RefChangeInfo, Error> {
    let (branch, change) = system::name_and_sequence(prefix, &entry.key)?;
    let record = system::record(reader.read(&entry.value)?)?;
    let id = |name: &str| match record.get(name) {
        None => Ok(None),
        Some(_) => system::field(&record, name, system::as_array).map(|id| Some(CommitId(id))),
    };
    let time = |value: Value<'_>| match value {
        Value::DateTime(millis) => Some(millis),
        _ => None,
    };
    let undid = record.get(UNDID).and_then(|value| value.as_integer());
    let tag = record.get("tag").and_then(|tag| tag.as_document());
    let tag = tag.map(|tag| TagInfo::from_record(branch.clone(), &tag.to_buf())).transpose()?;
    let policy = record.get("policy").and_then(|policy| policy.as_document());
    let policy = policy.map(|policy| BranchPolicy::decode(policy.to_buf().into_bytes()));
    let mut references = system::references_of(&**reader.store(), &entry.value)?.into_iter();
    let lost = references.next();
    let merge = record.get("merge").and_then(|merge| merge.as_document());
    let mut rest: Vec<ChunkHash> = references.collect();
    let left = record.get("left").and_then(|_| rest.pop());
    let order = rest.first().copied().filter(|_| merge.is_none());
    let merge = merge
        .map(|merge| RememberedMerge { record: merge.to_buf().into_bytes(), references: rest });
    Ok(RefChangeInfo {
        change,
        branch,
        tag,
        from: id("from")?,
        to: id("to")?,
        why: system::field(&record, "why", system::as_string)?,
        time_millis: system::field(&record, "time", time)?,
        collection: record.get("collection").and_then(system::as_string),
        undid: undid.map(|undid| undid as u64),
        arrived: record.get(ARRIVED).and_then(|value| value.as_integer()).map(|it| it as u64),
        replaced_working: record.get("working").is_some(),
        lost,
        left,
        merge,
        order,
        policy: policy.transpose()?,
    })
}

/// Returns the reflog of one branch, newest first.
pub(crate) fn of_branch(
    reader: &Reader<'_>,
    database: &str,
    branch: &str,
) -> Result<Vec<RefChangeInfo>, Error> {
    let bounds = Bounds::prefix(&system::reflog_prefix(database, branch));
    let mut changes = read(reader, database, bounds)?;
    changes.sort_by_key(|change| Reverse(change.position()));
    Ok(changes)
}

/// The first of `changes`, newest first, that are neither undoings nor undone; with its position.
pub(crate) fn standing(changes: &[RefChangeInfo]) -> impl Iterator<Item = (usize, &RefChangeInfo)> {
    // A change that was undone, and all since, counts as if it had not been.
    let mut undone_to = 0;
    changes.iter().enumerate().filter(move |(position, change)| {
        if *position < undone_to {
            return false;
        }
        if let Some(undid) = change.undid {
            let is_older = |each: &RefChangeInfo| each.change < undid;
            let rest = &changes[position + 1..];
            let undone = rest.iter().position(|each| each.change == undid).map(|at| at + 1);
            let undone = undone.or_else(|| rest.iter().position(is_older)).unwrap_or(rest.len());
            undone_to = position + 1 + undone;
        }
        change.undid.is_none()
    })
}

/// Gives what was remembered of the branch `old` to `new`, its name from `transaction` on. What was
/// done to an earlier branch of either name, which was deleted, stays where it is.
pub(crate) fn rename(
    engine: &Engine,
    transaction: &mut Transaction,
    database: &str,
    (old, new): (&str, &str),
) -> Result<(), Error> {
    let arrived = transaction.snapshot().sequence().0;
    let mut moved = Vec::new();
    let mut taken = BTreeMap::new();
    {
        let reader = Reader::within(engine, transaction);
        let changes = of_branch(&reader, database, old)?;
        let deleted = standing(&changes).find(|(_, change)| change.is_deletion());
        let own = &changes[..deleted.map_or(changes.len(), |(position, _)| position)];
        for change in own.iter().rev() {
            let key = system::reflog_key(database, old, change.change);
            let Some(value) = transaction.get(TreeId::SYSTEM, &key)? else { continue };
            let record = system::record(reader.read(&value)?)?;
            let references = system::references_of(&**reader.store(), &value)?;
            moved.push((change.change, key, record, references));
        }
        for change in of_branch(&reader, database, new)? {
            taken.insert(change.change, change.change);
        }
    }
    let mut numbers = BTreeMap::new();
    for (number, ..) in &moved {
        // Two branches may have changes of the same number.
        let mut free = *number;
        while free == arrived || taken.insert(free, free).is_some() {
            free += 1;
        }
        numbers.insert(*number, free);
    }
    for (number, key, record, references) in moved {
        let mut builder = DocumentBuilder::new();
        for (name, value) in record.iter().filter(|(name, _)| ![ARRIVED, UNDID].contains(name)) {
            builder.append(name, value);
        }
        if let Some(undid) = record.get(UNDID).and_then(|undid| undid.as_integer()) {
            let undid = numbers.get(&(undid as u64)).map_or(undid, |undid| *undid as i64);
            builder.append(UNDID, Value::Int64(undid));
        }
        builder.append(ARRIVED, Value::Int64(arrived as i64));
        let record = builder.build();
        let value = system::referring_value(transaction, &references, record.as_bytes());
        transaction.delete(TreeId::SYSTEM, key)?;
        transaction.put(
            TreeId::SYSTEM,
            system::reflog_key(database, new, numbers[&number]),
            value,
        )?;
    }
    Ok(())
}

impl Repository {
    /// Returns the changes of refs, newest first: those of `branch` (or of a tag; it may be gone),
    /// or of all.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there never was such a branch.
    pub fn reflog(&self, branch: Option<&str>) -> Result<Vec<RefChangeInfo>, Error> {
        let reader = self.reader();
        let name = self.repository_name();
        let Some(branch) = branch else {
            let bounds = Bounds::prefix(&system::reflogs_prefix(name));
            let mut changes = read(&reader, name, bounds)?;
            changes.sort_by_key(|change| std::cmp::Reverse(change.change));
            return Ok(changes);
        };
        let changes = of_branch(&reader, name, branch)?;
        if changes.is_empty()
            && refs::repository(&reader, name)?.is_some()
            && refs::branch_ref(&reader, name, branch)?.is_none()
        {
            let message = format!("no branch {branch} in {name}, and there was none");
            return Err(Error::invalid(Code::NamespaceNotFound, message));
        }
        Ok(changes)
    }

    /// Forgets what was remembered before `before_millis`, and with it what only that kept alive:
    /// it can't be undone any more, and its chunks can be collected. Returns how many.
    ///
    /// # Errors
    /// `Damaged` if a record isn't one; as a commit of a transaction: then nothing is forgotten.
    pub fn expire_reflog(&self, before_millis: i64) -> Result<u64, Error> {
        use frond_db::inside::Outcome;
        use frond_db::inside::{LatchMode, Scope};
        let name = self.repository_name();
        let engine = self.frond().engine();
        let durability = frond_engine::Durability::Synced;
        let scope = Scope::branch(name, "");
        self.transact_alone(scope, LatchMode::Writer, durability, |transaction| {
            let old: Vec<RefChangeInfo> = {
                let reader = Reader::within(engine, transaction);
                read(&reader, name, Bounds::prefix(&system::reflogs_prefix(name)))?
            };
            transaction.give_back();
            let mut count = 0;
            for change in old.iter().filter(|change| change.time_millis < before_millis) {
                let key = system::reflog_key(name, &change.branch, change.change);
                transaction.delete(TreeId::SYSTEM, key)?;
                count += 1;
            }
            Ok(Outcome::commit_if(count > 0, count))
        })
    }
}
