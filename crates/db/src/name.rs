//! Names of databases and their versions: `shop`, `shop@feature`, `shop@main~2`, `shop@<commit>`.
//!
//! Characters that drivers refuse in a database's name can be percent-encoded:
//! `shop@feature%2Flogin`. `db@branch` is read and written; anything else after the `@` (a commit,
//! an ancestor `~n` or `^n`) is read only.

use crate::error::Error;

/// A database's name, parsed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DatabaseName {
    /// The part before the `@`, decoded.
    pub name: String,
    /// Which version of it.
    pub version: VersionName,
}

/// What stands after the `@`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum VersionName {
    /// Nothing: the default branch's working state.
    Default,
    /// A branch's name or a revision, decoded: which one it is only the repository can tell.
    Named(String),
}

impl DatabaseName {
    /// Parses and checks a name by MongoDB's rules (no `/\. "$*<>:|?`, no NUL, at most 63 bytes in
    /// the part before the `@`, not empty).
    ///
    /// # Errors
    /// `InvalidNamespace` (73).
    pub fn parse(_name: &str) -> Result<DatabaseName, Error> {
        todo!()
    }
}
