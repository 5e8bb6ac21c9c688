//! One version of one database: what a command works on.

use crate::name::DatabaseName;

/// A database at a version: the working state of a branch (read and written) or a commit (read
/// only). Cloning is cheap. Each call works on what is visible when it begins.
#[derive(Clone)]
pub struct Database {}

impl Database {
    /// The name by which it was opened.
    pub fn name(&self) -> &DatabaseName {
        todo!()
    }

    /// Whether it is a commit rather than a branch.
    pub fn is_read_only(&self) -> bool {
        todo!()
    }

    /// The branch whose working state this is.
    pub fn branch(&self) -> Option<&str> {
        todo!()
    }
}
