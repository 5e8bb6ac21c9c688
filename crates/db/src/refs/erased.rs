//! Commits that took the place of erased ones: what is known by its old id is found by its new one.

use frond_doc::Value;
use frond_engine::TreeId;
use frond_tree::{Bounds, Direction};

use crate::commit_id::CommitId;
use crate::error::Error;
use crate::reader::Reader;
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
