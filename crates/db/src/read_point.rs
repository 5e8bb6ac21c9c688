//! Reading databases at moments that have gone by.
//!
//! A [`ReadPoint`] is a snapshot of the whole data directory, named by a time of the cluster. A
//! client that leases one gets its time, and can have the same moment again by it, as long as the
//! lease runs and the memory it keeps is within its budget; all times since the last flush or fold
//! can be had, too (`frond_engine::Engine::snapshot_at`). A moment is exact: documents, indexes,
//! options, views, branches and tags as they were then, whatever was dropped, renamed or moved.

use std::time::Duration;

use frond_doc::Timestamp;
use frond_engine::{EngineError, Sequence, Snapshot};
use frond_query::Code;

use crate::database::{Context, Database};
use crate::error::Error;
use crate::frond::Frond;
use crate::name::DatabaseName;

/// A moment at which databases are read. Cloning is cheap; it keeps what it shows.
#[derive(Clone)]
pub struct ReadPoint {
    snapshot: Snapshot,
}

impl ReadPoint {
    /// Its time.
    pub fn time(&self) -> Timestamp {
        Timestamp(self.snapshot.sequence().0)
    }
}

impl Frond {
    /// Now, which [`Frond::moment`] gives again for so long.
    pub fn lease_moment(&self, time: Duration) -> ReadPoint {
        ReadPoint { snapshot: self.engine().lease(time) }
    }

    /// The moment of that time. One to come, to which clocks must have come, is waited for: nothing
    /// is written before it any more.
    ///
    /// # Errors
    /// `SnapshotTooOld` if what it showed isn't kept any more.
    pub fn moment(&self, time: Timestamp) -> Result<ReadPoint, Error> {
        let snapshot =
            self.engine().snapshot_at(Sequence(time.0)).map_err(|error| match error {
                EngineError::SnapshotTooOld => {
                    let message = format!(
                        "Read timestamp Timestamp({}, {}) is older than the oldest available \
                     timestamp: what was visible then is not kept any more",
                        time.0 >> 32,
                        time.0 as u32
                    );
                    Error::invalid(Code::SnapshotTooOld, message)
                }
                other => other.into(),
            })?;
        Ok(ReadPoint { snapshot })
    }

    /// Waits until all is visible that will ever be written up to `time`, to which clocks must have
    /// come.
    ///
    /// # Errors
    /// `Closed` if the engine is, or a sync fails meanwhile.
    pub fn await_settled(&self, time: Timestamp) -> Result<(), Error> {
        Ok(self.engine().await_settled(Sequence(time.0))?)
    }

    /// The version of a database that `name` named at `moment`, as it was then. It is only read.
    ///
    /// # Errors
    /// As [`Frond::database`].
    pub fn database_at(&self, name: &str, moment: &ReadPoint) -> Result<Database, Error> {
        let name = DatabaseName::parse(name)?;
        if self.written().some_closed() {
            self.check_used_at(&name.name, &moment.snapshot)?;
        }
        Database::resolve(self, name, Context::At(moment.snapshot.clone()))
    }

    /// Lets no reader have a moment before now again: such moments hold what was erased.
    #[doc(hidden)]
    pub fn forget_moments(&self) {
        self.engine().forget_past();
    }
}
