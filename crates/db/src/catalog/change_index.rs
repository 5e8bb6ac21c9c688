//! Changing an index that is there: `collMod` with `index`.
//!
//! Whether it is hidden, when documents expire and its name are in its definition alone: no entry changes.

use frond_doc::{Value, ValueBuf};
use frond_engine::Durability;
use frond_query::Code;

use crate::catalog::{ID_INDEX_NAME, IndexSpec, adopt};
use crate::contention::{Outcome, Role, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::system::WorkingEntry;

/// What is to change of an index.
#[derive(Clone, Debug, Default)]
pub struct IndexChange {
    /// Whether queries don't use it.
    pub hidden: Option<bool>,
    /// When documents expire.
    pub expire_after_seconds: Option<i64>,
    /// Its name.
    pub name: Option<String>,
}

impl Database {
    /// Changes the index that `index`, a name or a key, stands for; answers with it before and after.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `IndexNotFound` (27); `InvalidOptions` (72) for what that index can't
    /// be; `IndexKeySpecsConflict` (86) if another has the name.
    pub fn change_index(
        &self,
        collection: &str,
        index: &ValueBuf,
        change: &IndexChange,
    ) -> Result<(IndexSpec, IndexSpec), Error> {
        let branch = self.writable_branch()?;
        let scope = Scope::collection(self.repository_name(), branch, collection);
        self.transact(scope, Role::Replacer, Durability::Synced, |transaction| {
            let Some(found) = adopt::find(transaction, self, branch, collection)? else {
                return Err(self.no_collection(collection));
            };
            let is_wanted = |spec: &IndexSpec| match index.as_value() {
                Value::String(name) => spec.name == name,
                Value::Document(key) => spec.has_key(key),
                _ => false,
            };
            if is_wanted(&IndexSpec::of_id()) {
                return Err(of_id(change));
            }
            let mut live = adopt::adopt(transaction, self, branch, collection, &found)?;
            let position = live.indexes.iter().position(|index| is_wanted(&index.spec));
            let Some(position) = position else {
                let message = format!(
                    "cannot find index {:?} for ns {}",
                    index.as_value(),
                    self.namespace(collection)
                );
                return Err(Error::invalid(Code::IndexNotFound, message));
            };
            let before = live.indexes[position].spec.clone();
            let after = changed(&before, change)?;
            let is_taken = |(place, name): (usize, &str)| place != position && name == after.name;
            let mut names = live.indexes.iter().map(|index| index.spec.name.as_str()).enumerate();
            if names.any(is_taken) || after.name == ID_INDEX_NAME {
                let message = format!("another index is called {}", after.name);
                return Err(Error::invalid(Code::IndexKeySpecsConflict, message));
            }
            if before == after {
                return Ok(Outcome::Discard((before, after)));
            }
            live.indexes[position].spec = after.clone();
            adopt::put_entry(transaction, self, branch, collection, &WorkingEntry::Live(live))?;
            Ok(Outcome::Commit((before, after)))
        })
    }
}

fn changed(before: &IndexSpec, change: &IndexChange) -> Result<IndexSpec, Error> {
    let mut after = before.clone();
    if let Some(hidden) = change.hidden {
        after.hidden = hidden;
    }
    if let Some(seconds) = change.expire_after_seconds {
        after.expire_after_seconds = Some(seconds);
    }
    if let Some(name) = &change.name {
        after.name.clone_from(name);
    }
    // What it was when it was made is checked again: a compound index can't have documents expire.
    IndexSpec::parse(after.to_document().view())
}

fn of_id(change: &IndexChange) -> Error {
    let (code, message) = match change {
        IndexChange { hidden: Some(_), .. } => (Code::BadValue, "can't hide _id index"),
        IndexChange { expire_after_seconds: Some(_), .. } => {
            (Code::InvalidOptions, "the _id field does not support TTL indexes")
        }
        _ => (Code::InvalidOptions, "can't rename _id index"),
    };
    Error::invalid(code, message)
}
