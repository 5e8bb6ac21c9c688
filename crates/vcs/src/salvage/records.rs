//! What a database has beside its commits and documents: merges that wait, policies, remotes, the
//! reflog, which commits were erased.
//!
//! A record comes with all that it refers to, or not at all, and that is noted: half a merge would
//! be continued as if it were whole, and half a change undone to something that never was. So of a
//! merge that waits each of its conflicts must be there, too; without it, what it had changed is a
//! change that isn't committed.
//!
//! What was done to the new directory until now is no part of the database's history, so its own
//! reflog goes.

use std::collections::HashSet;

use bytes::Bytes;
use frond_db::inside::{
    CommitId, Error, ErrorKind, Frond, Reader, RepositoryRecord, TreeRef, system,
};
use frond_doc::{DocumentBuf, Value};
use frond_engine::{Transaction, TreeId};
use frond_store::{ChunkHash, Lifetime};
use frond_tree::{Bounds, Direction, Entry};

use crate::conflict::{self, MergeState, StoredConflict};
use crate::history::load;
use crate::policy;
use crate::remote::carry_trees;
use crate::repository::Repository;
use crate::salvage::history::{Branch, Whole, write};
use crate::salvage::source::Source;
use crate::salvage::{SalvageReport, unreadable_note};

const SYSTEM: TreeRef = TreeRef::Live(TreeId::SYSTEM);

/// A record that comes as it is.
struct RawRecord {
    key: Bytes,
    record: DocumentBuf,
    references: Vec<ChunkHash>,
}

/// A branch's merge that waits.
struct Waiting {
    branch: String,
    merge: MergeState,
    conflicts: Vec<StoredConflict>,
}

/// Reads the records of one database.
struct Records<'a> {
    source: &'a Source,
    reader: Reader<'static>,
    name: &'a str,
    whole: Whole,
    /// Commits that don't come.
    lost: HashSet<String>,
}

/// Saves the records of a database whose commits and working states are in `target`. It is known of
/// some chunks whether they are `whole`.
pub(super) fn save(
    (source, whole): (&Source, Whole),
    target: &Frond,
    (name, repository): (&str, &RepositoryRecord),
    branches: &[Branch],
    report: &mut SalvageReport,
) -> Result<(), Error> {
    let lost = report.commits_lost.iter().filter(|(database, _)| database == name);
    let lost = lost.map(|(_, commit)| commit.clone()).collect();
    let mut records = Records { source, reader: source.reader(), name, whole, lost };
    let (mut kept, mut waiting, mut policies) = (Vec::new(), Vec::new(), Vec::new());
    for (what, prefix) in [
        ("the reflog", system::reflogs_prefix(name)),
        ("its remotes", system::remote_key(name, "")),
        ("where remotes' branches were", system::tracking_key(name, "")),
        ("its commit policy", system::commit_policy_key(name)),
        ("which commits were erased", system::erased_key(name, &[])),
    ] {
        kept.extend(records.kept(what, &prefix, &mut report.notes)?);
    }
    for branch in branches {
        waiting.extend(records.waiting(branch, &mut report.notes)?);
        match policy::read(&records.reader, name, &branch.name) {
            Ok(policy) => policies.push((&branch.name, policy)),
            Err(error) if error.kind == ErrorKind::Damaged => {
                report.notes.push(format!("{name}@{}: its policy: {error}", branch.name));
            }
            Err(error) => return Err(error),
        }
    }
    let mut roots: Vec<ChunkHash> =
        kept.iter().flat_map(|kept| kept.references.iter().copied()).collect();
    roots.extend(waiting.iter().flat_map(|waiting| waiting.merge.catalogs()));
    let (store, new) = (source.store(), target.engine().store());
    let _session = new.session();
    let mut there = Vec::new();
    for head in branches.iter().filter_map(|branch| branch.saved) {
        there.push(load(&*store, head)?.catalog.root);
    }
    carry_trees(&store, new, Lifetime::Lasting, (roots, there))?;
    new.sync()?;
    let database = Repository::open(target, name)?;
    write(&database, repository, |transaction| {
        forget_reflog(target, transaction, name)?;
        for RawRecord { key, record, references } in &kept {
            let value = system::referring_value(transaction, references, record.as_bytes());
            transaction.put(TreeId::SYSTEM, key.clone(), value)?;
        }
        for Waiting { branch, merge, conflicts } in &waiting {
            conflict::store(transaction, name, branch, merge, conflicts)?;
        }
        let mut policies = policies.iter();
        policies.try_for_each(|(name, policy)| database.restore_policy(transaction, name, *policy))
    })
}

/// Removes what is remembered of how the copy was made.
fn forget_reflog(target: &Frond, transaction: &mut Transaction, name: &str) -> Result<(), Error> {
    let mut keys = Vec::new();
    {
        let reader = Reader::within(target.engine(), transaction);
        let bounds = Bounds::prefix(&system::reflogs_prefix(name));
        for entry in reader.range(SYSTEM, bounds, Direction::Ascending)? {
            keys.push(entry?.key);
        }
    }
    keys.into_iter().try_for_each(|key| Ok(transaction.delete(TreeId::SYSTEM, key)?))
}

impl Records<'_> {
    /// The records whose keys begin with `prefix`, as far as they are whole.
    fn kept(
        &mut self,
        what: &str,
        prefix: &[u8],
        notes: &mut Vec<String>,
    ) -> Result<Vec<RawRecord>, Error> {
        let (mut kept, mut left_out) = (Vec::new(), 0_u64);
        let store = self.source.store();
        let found = self.reader.range(SYSTEM, Bounds::prefix(prefix), Direction::Ascending)?;
        let found = found.collect::<Result<Vec<Entry>, _>>()?;
        for entry in found {
            let read = || {
                let record = system::record(self.reader.read(&entry.value)?)?;
                Ok::<_, Error>((record, system::references_of(&*store, &entry.value)?))
            };
            match read() {
                Ok((record, references))
                    if !self.names_lost(&record) && self.are_whole(&references)? =>
                {
                    kept.push(RawRecord { key: entry.key, record, references });
                }
                Ok(_) => left_out += 1,
                Err(error) if error.kind == ErrorKind::Damaged => left_out += 1,
                Err(error) => return Err(error),
            }
        }
        let name = self.name;
        if left_out > 0 {
            notes
                .push(format!("{name}: {what}: {left_out} records can't be read, or lead nowhere"));
        }
        let losses = self.source.losses();
        notes.extend(losses.iter().map(|lost| unreadable_note(&format!("{name}: {what}"), lost)));
        Ok(kept)
    }

    /// The merge that waits on a branch, if it and all its conflicts can be read.
    fn waiting(
        &mut self,
        branch: &Branch,
        notes: &mut Vec<String>,
    ) -> Result<Option<Waiting>, Error> {
        let (name, branch_name) = (self.name, &branch.name);
        let what = match self.read_waiting(branch_name) {
            Ok(None) => return Ok(None),
            Ok(Some(waiting)) if self.is_whole(branch, &waiting)? => return Ok(Some(waiting)),
            Ok(Some(_)) => "the merge that waits can't be read whole",
            Err(error) if error.kind == ErrorKind::Damaged => "if a merge waited, it can't be read",
            Err(error) => return Err(error),
        };
        // What else could not be read of it is lost with it.
        self.source.losses();
        notes.push(format!(
            "{name}@{branch_name}: {what}: its conflicts are lost, and what it had changed is a \
             change that isn't committed"
        ));
        Ok(None)
    }

    /// Whether all is there of a merge that was just read.
    fn is_whole(&mut self, branch: &Branch, waiting: &Waiting) -> Result<bool, Error> {
        let catalogs: Vec<ChunkHash> = waiting.merge.catalogs().collect();
        let is_lost = |id: CommitId| self.lost.contains(&id.to_string());
        if branch.head != branch.saved
            || waiting.merge.commits().any(is_lost)
            || !self.source.losses().is_empty()
        {
            return Ok(false);
        }
        self.are_whole(&catalogs)
    }

    fn read_waiting(&self, branch: &str) -> Result<Option<Waiting>, Error> {
        let record = self.reader.get_bytes(SYSTEM, &system::merge_key(self.name, branch))?;
        let Some(record) = record else { return Ok(None) };
        let merge = MergeState::decode(record)?;
        let conflicts = conflict::list(&self.reader, self.name, branch, None)?;
        Ok(Some(Waiting { branch: branch.to_owned(), merge, conflicts }))
    }

    /// Whether a record names a commit that doesn't come.
    fn names_lost(&self, record: &DocumentBuf) -> bool {
        ["from", "to", "commit"].iter().any(|field| match record.get(field) {
            Some(Value::Binary(id)) => {
                let id = id.bytes.try_into().map(CommitId);
                id.is_ok_and(|id| self.lost.contains(&id.to_string()))
            }
            _ => false,
        })
    }

    fn are_whole(&mut self, roots: &[ChunkHash]) -> Result<bool, Error> {
        let store = self.source.store();
        for root in roots {
            if !self.whole.check(&*store, *root)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
