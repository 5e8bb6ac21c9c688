//! What an erase leaves behind: the commits that took the place of erased ones, and how many erases
//! there were.
//!
//! - What is known by its old id is found by its new one. A commit with an old id, or a child of
//!   one, that comes from elsewhere would bring back what was erased: it is refused ([`refuse`]).
//! - A request that reads at one moment and writes in later transactions (`$out`, `$merge`) notes
//!   the count of erases at the moment of its reading, and each of its transactions asks whether it
//!   is the same still ([`EraseCount`]). The count is a record of the system tree, written by the
//!   transaction that erases: so it is exact at any snapshot, on any member of a set.

use frond_doc::{DocumentBuilder, Value};
use frond_engine::{Engine, Transaction, TreeId};
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::{Bounds, Direction, Value as TreeValue};

use crate::commit_id::CommitId;
use crate::error::Error;
use crate::name::Target;
use crate::reader::Reader;
use crate::refs::{commit_chunk, format};
use crate::schema::TreeRef;
use crate::system;

/// A commit that took another one's place.
#[derive(Clone, Copy, Debug)]
pub struct Replaced {
    /// The commit that was.
    pub old: CommitId,
    /// The one that is.
    pub new: CommitId,
    /// The time: milliseconds since 1970.
    pub time_millis: i64,
}

/// Returns the commits that were replaced, and those in their places.
///
/// # Errors
/// `Damaged` if a record isn't one; as [`Reader::get`].
pub fn replaced(reader: &Reader<'_>, database: &str) -> Result<Vec<Replaced>, Error> {
    in_range(reader, database, Bounds::prefix(&system::erased_key(database, &[])))
}

/// Those whose old ids lie between two.
pub(crate) fn in_range(
    reader: &Reader<'_>,
    database: &str,
    bounds: Bounds,
) -> Result<Vec<Replaced>, Error> {
    let prefix = system::erased_key(database, &[]);
    let mut found = Vec::new();
    let place = TreeRef::Live(TreeId::SYSTEM);
    for entry in reader.range(place, bounds, Direction::Ascending)? {
        let entry = entry?;
        let old = entry.key.strip_prefix(&prefix[..]).and_then(|id| id.try_into().ok());
        let old = old.ok_or_else(|| Error::damaged("the key of an erased commit has no id"))?;
        let record = system::record(reader.read(&entry.value)?)?;
        let time = |value: Value<'_>| match value {
            Value::DateTime(millis) => Some(millis),
            _ => None,
        };
        found.push(Replaced {
            old: CommitId(old),
            new: CommitId(system::field(&record, "commit", system::as_array)?),
            time_millis: system::field(&record, "time", time)?,
        });
    }
    Ok(found)
}

/// Refuses commits from elsewhere that were erased here, or are children of such: the data came
/// back with them.
///
/// # Errors
/// `IllegalOperation` that names the commit; `Damaged` if a record isn't one.
pub fn refuse(
    reader: &Reader<'_>,
    database: &str,
    commits: impl IntoIterator<Item = (ChunkHash, Vec<ChunkHash>)>,
) -> Result<(), Error> {
    let place = TreeRef::Live(TreeId::SYSTEM);
    if replaced(reader, database)?.is_empty() {
        return Ok(());
    }
    for (commit, parents) in commits {
        for hash in parents.into_iter().chain([commit]) {
            let id = format::id_of(hash);
            if reader.get(place, &system::erased_key(database, &id.0))?.is_some() {
                let message = format!(
                    "commit {id} holds what was erased from {database}: erase the same where it \
                     comes from, or clone this repository there anew"
                );
                return Err(Error::invalid(Code::IllegalOperation, message));
            }
        }
    }
    Ok(())
}

/// Refuses a version that was opened at a commit which is known no more, since it was erased: a
/// handle of it may be older than the erase, and still read it.
///
/// # Errors
/// `BadValue` that names the commit; as [`Reader::get`].
pub fn refuse_gone(reader: &Reader<'_>, database: &str, version: &Target) -> Result<(), Error> {
    let Target::Commit(id, chunk) = version else { return Ok(()) };
    if commit_chunk(reader, database, id)? == Some(*chunk) {
        return Ok(());
    }
    let message = format!("commit {id} of {database} is known no more: open that version again");
    Err(Error::invalid(Code::BadValue, message))
}

/// The number of erases that a moment of a data directory has behind it: what was read where it is
/// another one may hold what is erased by now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EraseCount(i64);

impl EraseCount {
    /// The count at the moment of `reader`.
    ///
    /// # Errors
    /// `Damaged` if the record isn't one; as [`Reader::get`].
    pub fn at(reader: &Reader<'_>) -> Result<EraseCount, Error> {
        let record = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &system::erase_count_key())?;
        let Some(record) = record.map(system::record).transpose()? else {
            return Ok(EraseCount(0));
        };
        system::field(&record, "count", |value| value.as_integer()).map(EraseCount)
    }

    /// Counts one more, from `transaction` on.
    ///
    /// # Errors
    /// As [`EraseCount::at`] and the transaction's `put`.
    pub fn note(engine: &Engine, transaction: &mut Transaction) -> Result<(), Error> {
        let EraseCount(before) = EraseCount::at(&Reader::within(engine, transaction))?;
        let mut record = DocumentBuilder::new();
        record.append("count", Value::Int64(before.saturating_add(1)));
        let record = TreeValue::inline(record.build().into_bytes());
        Ok(transaction.put(TreeId::SYSTEM, system::erase_count_key(), record)?)
    }

    /// Refuses to write in `transaction` what was read when this was the count, if it is another
    /// one; conflicts with an erase meanwhile.
    ///
    /// # Errors
    /// As [`EraseCount::check_at`].
    pub fn check(self, engine: &Engine, transaction: &mut Transaction) -> Result<(), Error> {
        transaction.validate(TreeId::SYSTEM, system::erase_count_key());
        self.check_at(&Reader::within(engine, transaction))
    }

    /// Refuses to go on with what was read when this was the count, if it is another one at the
    /// moment of `reader`.
    ///
    /// # Errors
    /// `QueryPlanKilled` (175) then; as [`EraseCount::at`].
    pub fn check_at(self, reader: &Reader<'_>) -> Result<(), Error> {
        if EraseCount::at(reader)? == self {
            return Ok(());
        }
        let message = "something was erased after this began to read: run it again";
        Err(Error::invalid(Code::QueryPlanKilled, message))
    }
}
