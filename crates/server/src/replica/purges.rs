//! The purges that the set wants, and those that a member has done.
//!
//! Documents that `frondErase` has erased are nowhere in the databases once its transactions are
//! applied. A *purge* also removes them from members' packs and logs. The leader counts purges in a
//! setting that each member gets in its place among the entries, and with a copy; a member notes
//! the number of those it has done in the file `set-purged`, and reports it to the others. So one
//! that was away purges when it comes back.

use std::sync::Arc;

use frond_db::{AccessChange, AccessKind, Error, Frond};
use frond_doc::{DocumentBuilder, Value};
use frond_store::StoreError;
use frond_store::io::Machine;

use super::identity::{read_file, replace_file};
use super::{Replica, lock};

/// The setting's name.
const NAME: &str = "ReplicaSetPurge";
const FILE_NAME: &str = "set-purged";
const NEW_FILE_NAME: &str = "set-purged.new";
const HEAD: &str = "frond-set-purged 0";

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Purges {
    /// The last that the set wants.
    pub wanted: u64,
    /// The last that this member has done.
    pub done: u64,
}

impl Purges {
    /// Reads the number of purges that the set wants, and that a directory has done.
    ///
    /// # Errors
    /// An error of reading; `Damaged` if something isn't what was written.
    pub fn read(frond: &Frond, machine: &Machine) -> Result<Purges, Error> {
        let done = match read_file(machine, FILE_NAME)? {
            None => 0,
            Some(text) => parse(&text).ok_or_else(|| {
                StoreError::damaged(FILE_NAME, 0, "it isn't what a member has written")
            })?,
        };
        Ok(Purges { wanted: wanted(frond)?, done })
    }
}

/// The last purge that the set wants.
fn wanted(frond: &Frond) -> Result<u64, Error> {
    let stored = frond.access_documents(AccessKind::Setting)?;
    let Some(found) = stored.iter().find(|it| it.get("_id") == Some(Value::String(NAME))) else {
        return Ok(0);
    };
    match found.get("number") {
        Some(Value::Int64(number)) => Ok(number.cast_unsigned()),
        _ => Err(Error::damaged("the replica set's count of purges isn't one")),
    }
}

fn parse(text: &str) -> Option<u64> {
    text.strip_prefix(HEAD)?.trim().strip_prefix("number ")?.parse().ok()
}

impl Replica {
    /// Returns the purges that the set wants, and those that this member has done.
    pub fn purges(&self) -> Purges {
        *lock(&self.purges)
    }

    /// Reads again what the set wants.
    ///
    /// # Errors
    /// An error of reading.
    pub(crate) fn read_purges(&self, frond: &Frond) -> Result<(), Error> {
        lock(&self.purges).wanted = wanted(frond)?;
        Ok(())
    }

    /// Has all members purge. Returns the number of that.
    ///
    /// # Errors
    /// An error of writing.
    pub fn want_purge(&self, frond: &Frond) -> Result<u64, Error> {
        let _one = lock(&self.configuring);
        let number = wanted(frond)? + 1;
        let mut document = DocumentBuilder::new();
        document
            .append("_id", Value::String(NAME))
            .append("number", Value::Int64(number.cast_signed()));
        let (database, name) = (String::new(), NAME.to_owned());
        let document = Some(document.build());
        let kind = AccessKind::Setting;
        frond.change_access(&[AccessChange { kind, database, name, document }])?;
        lock(&self.purges).wanted = number;
        Ok(number)
    }

    /// Notes that this member has done a purge.
    ///
    /// # Errors
    /// An error of the disk.
    pub(crate) fn note_purged(&self, machine: &Machine, number: u64) -> Result<(), StoreError> {
        let text = format!("{HEAD}\nnumber {number}\n");
        replace_file(machine, FILE_NAME, NEW_FILE_NAME, &text)?;
        lock(&self.purges).done = number;
        Ok(())
    }

    /// The members that aren't known to have done a purge.
    pub fn left_to_purge(&self, number: u64) -> Vec<String> {
        let has_done = |address: &&String| match **address == self.options.own {
            true => number <= self.purges().done,
            false => {
                self.last_status_of(address).is_some_and(|(_, status)| number <= status.purged)
            }
        };
        let members = Arc::clone(&self.members());
        members.addresses().filter(|address| !has_done(address)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purges_are_read_back() {
        assert_eq!(parse(&format!("{HEAD}\nnumber 12\n")), Some(12));
        for text in ["", HEAD, "number 12\n", "frond-set-purged 1\nnumber 12\n"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
