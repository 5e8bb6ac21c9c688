//! What is asked of a change stream.

use frond_doc::{DocumentBuf, Timestamp, ValueBuf};
use frond_query::collation::Collation;

use crate::database::Database;
use crate::frond::Frond;

/// What a stream watches.
#[derive(Clone)]
pub enum Watched {
    /// A collection of a branch.
    Collection(Database, String),
    /// All collections of a branch.
    Database(Database),
    /// The default branches of all databases.
    Deployment(Frond),
}

/// Where a stream begins.
#[derive(Clone, Debug, Default)]
pub enum StreamStart {
    /// With what comes after now.
    #[default]
    Now,
    /// With what happened at this time or after it.
    At(Timestamp),
    /// Behind the event of a token; not behind an invalidation.
    Resume(DocumentBuf),
    /// Behind the event of a token.
    After(DocumentBuf),
    /// With what differs now from a commit of the branch's history, which a revision names, and
    /// then with what comes after.
    AfterCommit(String),
}

/// Whether an event has a document as it was at a certain time, which is kept only where its
/// collection says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Image {
    /// It hasn't.
    #[default]
    Off,
    /// It has, or `null`.
    WhenAvailable,
    /// It has, or the stream ends.
    Required,
}

/// Which document an update has beside what changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FullDocument {
    /// None.
    #[default]
    Default,
    /// As it is when the event is read.
    UpdateLookup,
    /// As it was after the change, or `null`.
    WhenAvailable,
    /// As it was after the change, or the stream ends.
    Required,
}

/// What is asked of a stream.
#[derive(Clone, Debug, Default)]
pub struct ChangeStreamRequest {
    /// Where it begins.
    pub start: StreamStart,
    /// Which document an update tells, too.
    pub full_document: FullDocument,
    /// Whether an update, a replacement and a deletion tell what the document was.
    pub before_change: Image,
    /// Whether collections and indexes that are made, dropped and changed are told too.
    pub is_expanded: bool,
    /// The stages behind `$changeStream`: an array.
    pub stages: Option<ValueBuf>,
    /// How strings compare.
    pub collation: Option<Collation>,
    /// A command's `let`.
    pub variables: Option<DocumentBuf>,
}
