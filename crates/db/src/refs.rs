//! Refs: what names commits. Repositories, branches and commits as the system tree names them.
//!
//! Reading order: `format` (a commit's bytes), `revision` (`main~2`, `main@{yesterday}`), `history`
//! (from a name to a commit, and back along parents), `past_position` (where a branch stood),
//! `shallow` (where history ends early), `tag`, `erased`, `policy` (what may be done to a branch),
//! `moment` (`shop@{2026-11-20T10:00:03Z}`).

pub mod erased;
pub mod format;
pub mod history;
pub mod moment;
pub mod past_position;
pub mod policy;
pub mod revision;
pub mod shallow;
pub mod tag;

use frond_engine::{Engine, Transaction, TreeId};
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::{Bounds, Direction};

use crate::commit_id::CommitId;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::system::{self, BranchRef, RepositoryRecord};

/// Databases of MongoDB's own, which every server has.
const ALWAYS_THERE: [&str; 3] = ["admin", "config", "local"];

/// All repositories, by name.
///
/// # Errors
/// `Damaged` if a record or its key isn't one; as [`Reader::get`].
pub fn repositories(reader: &Reader<'_>) -> Result<Vec<(String, RepositoryRecord)>, Error> {
    let prefix = system::repositories_prefix();
    let place = TreeRef::Live(TreeId::SYSTEM);
    let mut repositories = Vec::new();
    for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
        let entry = entry?;
        let repository = RepositoryRecord::decode(reader.read(&entry.value)?)?;
        repositories.push((system::name_after(&prefix, &entry.key)?, repository));
    }
    Ok(repositories)
}

/// The repository record of `database`, if it exists.
///
/// # Errors
/// `Damaged` if the record isn't one; as [`Reader::get`].
pub fn repository(reader: &Reader<'_>, database: &str) -> Result<Option<RepositoryRecord>, Error> {
    let record =
        reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &system::repository_key(database))?;
    record.map(RepositoryRecord::decode).transpose()
}

/// Asks, for a transaction that makes the repository `name`, that no other has a name that differs
/// in nothing but case, as MongoDB does.
///
/// Two that are made at once don't see each other. Each therefore also writes the record of the
/// name in lower case: there is none, and there will be none, but writing it twice is a conflict.
///
/// # Errors
/// `DatabaseDifferCase` (13297); as [`Reader::get`] and the transaction's `delete`.
pub fn claim_name(engine: &Engine, transaction: &mut Transaction, name: &str) -> Result<(), Error> {
    let repositories = repositories(&Reader::within(engine, transaction))?;
    let others = repositories.iter().map(|(other, _)| other.as_str()).chain(ALWAYS_THERE);
    for other in others.filter(|other| *other != name) {
        if other.eq_ignore_ascii_case(name) {
            let message = format!(
                "db already exists with different case already have: [{other}] trying to create \
                 [{name}]"
            );
            return Err(Error::invalid(Code::DatabaseDifferCase, message));
        }
    }
    let lower = name.to_ascii_lowercase();
    if lower != name {
        transaction.delete(TreeId::SYSTEM, system::repository_key(&lower))?;
    }
    Ok(())
}

/// Says that there is no such database.
pub fn missing(database: &str) -> Error {
    let message = format!("database {database} doesn't exist yet");
    Error::invalid(Code::NamespaceNotFound, message)
}

/// The ref of `branch`, if there is such a branch.
///
/// # Errors
/// `Damaged` if the ref isn't one; as [`Reader::get`].
pub fn branch_ref(
    reader: &Reader<'_>,
    database: &str,
    branch: &str,
) -> Result<Option<BranchRef>, Error> {
    let record =
        reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &system::branch_key(database, branch))?;
    record.map(BranchRef::decode).transpose()
}

/// The names of the branches of `database`.
pub(crate) fn branches(reader: &Reader<'_>, database: &str) -> Result<Vec<String>, Error> {
    let prefix = system::branches_prefix(database);
    let place = TreeRef::Live(TreeId::SYSTEM);
    let mut names = Vec::new();
    for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
        names.push(system::name_after(&prefix, &entry?.key)?);
    }
    Ok(names)
}

/// The chunk of the commit `id`, if the repository knows it.
///
/// # Errors
/// `Damaged` if its id leads to no chunk; as [`Reader::get`].
pub fn commit_chunk(
    reader: &Reader<'_>,
    database: &str,
    id: &CommitId,
) -> Result<Option<ChunkHash>, Error> {
    let key = system::commit_key(database, &id.0);
    let value = reader.get(TreeRef::Live(TreeId::SYSTEM), &key)?;
    value.as_ref().map(system::commit_chunk).transpose()
}
