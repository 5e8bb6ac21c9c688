//! Giving back the disk space of what no database needs any more.
//!
//! Collection follows references from the engine's trees and knows nothing of databases: a commit stays
//! as long as the system tree has a record of it (docs/format/system-tree.md).

use frond_engine::ReclaimOptions;
use frond_store::Collected;

use crate::error::Error;
use crate::frond::Frond;

impl Frond {
    /// Removes what nobody can reach, while everybody else goes on. Thorough: folds everything first and
    /// packs history in groups of related chunks.
    ///
    /// # Errors
    /// `Damaged` if something reachable can't be read (nothing that can be read was removed);
    /// `Unavailable` if the disk is full.
    pub fn reclaim(&self, options: ReclaimOptions) -> Result<Collected, Error> {
        Ok(self.engine().reclaim(options)?)
    }
}
